/*
 * published.c - the figures that the bundled recordings must give, by an independent computation.
 */
#include "shell.h"

#include <math.h>

/* Events, allocations, peak live in units of 512 B, what PyTorch had reserved at its peak; smallest
 * arena of best fit over peak live, and the ratio from which no arena failed, in steps of 0.001. */
static const struct {
    const char *name;
    double events, allocs, peak_live, peak_reserved;
    double smallest, no_failure;
} recordings[] = {
    {"resnet50_train", 13760, 4546, 4443076608, 5813305344, 1.010, 1.014},
    {"gpt2_train_varlen", 36887, 12218, 13651973632, 17039360000, 1.003, 1.003},
    {"bert_infer_varlen", 109885, 36618, 552976384, 1027604480, 1.139, 1.174},
    {"video_pipeline_mixed", 6537, 2176, 3542667776, 3808428032, 1.096, 1.096},
    {"multi_stream", 20767, 6910, 288576512, 492830720, 1.074, 1.135},
    {"unet_train_frames", 14904, 4951, 1156675072, 1606418432, 1.059, 1.059},
    {"oom_fragmented", 4466, 1467, 2880303616, 3187671040, 1.054, 1.054},
};
enum { RECORDINGS = sizeof recordings / sizeof recordings[0] };

Test(published, events_allocations_and_peaks_are_those_of_the_files)
{
    for (size_t i = 0; i < RECORDINGS; i++) {
        said *info =
            vramlab("trace info traces/data/%s.pickle.gz --format csv", recordings[i].name);
        cr_assert(info->status == 0, "%s", info->text);
        const char *csv = info->text;
        cr_expect(csv_number(csv, 1, "recorded_events") == recordings[i].events, "%s", csv);
        cr_expect(csv_number(csv, 1, "allocs") - csv_number(csv, 1, "blocks_before") ==
                      recordings[i].allocs,
                  "%s", csv);
        cr_expect(csv_number(csv, 1, "peak_live_unit_bytes") == recordings[i].peak_live, "%s", csv);
        cr_expect(csv_number(csv, 1, "peak_reserved_bytes") == recordings[i].peak_reserved, "%s",
                  csv);
        free(info);
    }
}

Test(published, best_fit_needs_what_an_independent_model_needs)
{
    for (size_t i = 0; i < RECORDINGS; i++) {
        said *fit = vramlab("fit traces/data/%s.pickle.gz -b list:policy=best --format csv",
                            recordings[i].name);
        cr_assert(fit->status == 0, "%s", fit->text);
        const double smallest = csv_number(fit->text, 1, "smallest_ratio");
        const double no_failure = csv_number(fit->text, 1, "no_failure_ratio");
        cr_expect(fabs(smallest - recordings[i].smallest) < 0.0005, "%s: %f", recordings[i].name,
                  smallest);
        cr_expect(fabs(no_failure - recordings[i].no_failure) < 0.0005, "%s: %f",
                  recordings[i].name, no_failure);
        free(fit);
    }
}

Test(published, best_fit_serves_the_ask_of_which_the_program_died)
{
    said *fit = vramlab("fit traces/data/oom_fragmented.pickle.gz -b list:policy=best --with-asks "
                        "--format csv");
    cr_assert(fit->status == 0, "%s", fit->text);
    cr_expect(fabs(csv_number(fit->text, 1, "smallest_ratio") - 1.071) < 0.0005, "%s", fit->text);
    free(fit);
    said *compare = vramlab("compare traces/data/oom_fragmented.pickle.gz --arena 3GiB "
                            "-b list:policy=best,caching --quick --format csv");
    char text[256];
    cr_expect_str_eq(csv_field(compare->text, 1, "outcome", text), "completes");
    cr_expect_str_eq(csv_field(compare->text, 2, "outcome", text), "fails");
    cr_expect_str_eq(csv_field(compare->text, 2, "failed_bytes", text), "86738944");
    free(compare);
}

Test(published, pytorchs_own_rules_fail_where_pytorch_failed_with_the_same_bytes_free)
{
    said *compare =
        vramlab("compare traces/data/oom_fragmented.pickle.gz -b caching --quick --format csv");
    cr_expect(csv_number(compare->text, 1, "free_bytes") == 487717888, "%s", compare->text);
    cr_expect(csv_number(compare->text, 1, "largest_free_bytes") == 68929536, "%s", compare->text);
    free(compare);
}
