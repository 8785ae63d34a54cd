/* advise.c - advice about options: never worse than what it started from, and true when it is
 * pasted into `fit`. All bundled recordings with VRAMLAB_LONG, else the three quickest. */
#include "shell.h"

#include "study/advise.h"

#include <vramlab/registry.h>

#include <criterion/new/assert.h>

static const char *const recordings[] = {
    "video_pipeline_mixed", "oom_fragmented",    "unet_train_frames", "resnet50_train",
    "multi_stream",         "gpt2_train_varlen", "bert_infer_varlen",
};

static size_t recordings_to_try(void)
{
    return getenv("VRAMLAB_LONG") != NULL ? sizeof recordings / sizeof recordings[0] : 3;
}

static const char *path_of(size_t recording, char path[128])
{
    snprintf(path, 128, "traces/data/%s.pickle.gz", recordings[recording]);
    return path;
}

/* What `vramlab fit` says of the stack is what the advice says. */
static void fit_agrees(const char *path, const char *spec, const vram_fit_result *expected)
{
    char smallest[64], from[64];
    snprintf(smallest, sizeof smallest, "\"smallest_arena_bytes\": %llu,",
             (unsigned long long)expected->smallest_bytes);
    snprintf(from, sizeof from, "\"no_failure_from_bytes\": %llu,",
             (unsigned long long)expected->no_failure_from_bytes);
    said *fit = vramlab("fit %s --backend '%s' --format json", path, spec);
    cr_assert(eq(int, fit->status, 0), "%s on %s: %s", spec, path, fit->text);
    cr_assert(strstr(fit->text, smallest) != NULL, "%s on %s: %s not in %s", spec, path, smallest,
              fit->text);
    cr_assert(strstr(fit->text, from) != NULL, "%s on %s: %s not in %s", spec, path, from,
              fit->text);
    free(fit);
}

/* How many backends the advice improved on. */
static size_t advise_each_backend(size_t recording)
{
    char path[128];
    size_t improved = 0;
    vram_trace *trace = NULL;
    vram_trace_summary summary;
    vram_profile profile;
    vram_error error = {""};
    cr_assert(vram_trace_open(path_of(recording, path), NULL, &trace, &error), "%s", error.text);
    cr_assert(vram_trace_summarise(trace, &summary, &error), "%s", error.text);
    cr_assert(vram_profile_of(trace, &profile, &error), "%s", error.text);
    for (size_t i = 0; vram_registry_at(i) != NULL; i++) {
        const vram_ops *ops = vram_registry_at(i);
        if (ops->layer || ops->special)
            continue;
        const vram_advise_options how = {.spec = ops->name,
                                         .lower_bound_bytes = summary.peak_live_unit_bytes,
                                         .profile = &profile};
        vram_advice advice;
        cr_assert(vram_advise(trace, &how, &advice, &error), "%s: %s", ops->name, error.text);
        const vram_fit_result *fit = &advice.fit, *from = &advice.from;
        if (from->smallest_bytes > 0) {
            cr_assert(gt(u64, fit->smallest_bytes, 0), "%s on %s", advice.spec, path);
            cr_assert(le(u64, fit->smallest_bytes, from->smallest_bytes), "%s on %s", advice.spec,
                      path);
            cr_assert(le(u64, fit->no_failure_from_bytes, from->no_failure_from_bytes), "%s on %s",
                      advice.spec, path);
        }
        if (strcmp(advice.spec, ops->name) != 0)
            improved++;
        if (fit->smallest_bytes > 0)
            fit_agrees(path, advice.spec, fit);
        free(advice.spec);
    }
    vram_trace_close(trace);
    return improved;
}

Test(advise, is_never_worse_than_the_defaults_and_fit_says_the_same)
{
    size_t improved = 0;
    for (size_t i = 0; i < recordings_to_try(); i++)
        improved += advise_each_backend(i);
    cr_assert(gt(sz, improved, 0), "no option of any backend helped on any recording");
}

Test(advise, prints_a_stack_that_can_be_pasted)
{
    said *advice = vramlab("advise traces/data/oom_fragmented.pickle.gz --backend slab:steps=8 "
                           "--quick --format json");
    cr_assert(eq(int, advice->status, 0), "%s", advice->text);
    const char *stack = strstr(advice->text, "\"stack\": \"");
    cr_assert(stack != NULL, "%s", advice->text);
    stack += strlen("\"stack\": \"");
    char spec[256];
    snprintf(spec, sizeof spec, "%.*s", (int)strcspn(stack, "\""), stack);
    cr_assert(eq(int, strncmp(spec, "slab:steps=8", 12), 0), "what is given must stay: %s", spec);
    vram_error error = {""};
    cr_assert(vram_spec_is_valid(spec, &error), "%s: %s", spec, error.text);
    free(advice);
}

Test(advise, adds_an_option_only_where_it_is_not_set)
{
    static const struct {
        const char *spec, *key, *value, *expected;
    } cases[] = {
        {"buddy", "min", "2KiB", "buddy:min=2KiB"},
        {"buddy:trim=on", "min", "2KiB", "buddy:trim=on,min=2KiB"},
        {"buddy:min=64", "min", "2KiB", NULL},
        {"buddy:trim=on,min=64", "min", "2KiB", NULL},
        {"slab:empty=0", "slab", "64KiB", "slab:empty=0,slab=64KiB"},
        {"list+stream", "policy", "first", "list:policy=first+stream"},
        {"tlsf+reserve:share=8%", "look", "1", "tlsf:look=1+reserve:share=8%"},
        {"tlsf", "+", "reserve:share=5%", "tlsf+reserve:share=5%"},
        {"tlsf+stream", "+", "reserve:share=5%", "tlsf+reserve:share=5%+stream"},
        {"tlsf+reserve", "+", "reserve:share=5%", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *made = vram_advise_with(cases[i].spec, cases[i].key, cases[i].value);
        if (cases[i].expected == NULL)
            cr_assert(made == NULL, "%s became %s", cases[i].spec, made);
        else
            cr_assert(made != NULL && strcmp(made, cases[i].expected) == 0, "%s, not %s", made,
                      cases[i].expected);
        free(made);
    }
}

Test(advise, is_better_only_when_neither_size_grows)
{
    static const struct {
        uint64_t smallest, from, best_smallest, best_from;
        bool better;
    } cases[] = {
        {10, 10, 0, 0, true},    {0, 0, 10, 10, false},   {0, 0, 0, 0, false},
        {10, 10, 10, 10, false}, {9, 10, 10, 10, true},   {10, 11, 10, 12, true},
        {9, 13, 10, 12, false},  {11, 11, 10, 12, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const vram_fit_result fit = {.smallest_bytes = cases[i].smallest,
                                     .no_failure_from_bytes = cases[i].from};
        const vram_fit_result best = {.smallest_bytes = cases[i].best_smallest,
                                      .no_failure_from_bytes = cases[i].best_from};
        cr_assert(eq(int, vram_advise_is_better(&fit, &best), cases[i].better), "case %zu", i);
    }
}

/* Class 9: 10 blocks of at most 1000 B, so 1024 B in units of 512; class 12: 4 of 5000 B, so 5120.
 */
Test(advise, pools_get_the_share_that_their_class_needs)
{
    char text[VRAM_ADVISE_POOLS];
    vram_profile profile = {0};
    cr_assert(not(vram_advise_pools(&profile, 512, 102400, 1, text)));
    profile.class_peak_blocks[9] = 10;
    profile.class_peak_bytes[9] = 9000;
    profile.class_largest_bytes[9] = 1000;
    profile.class_peak_blocks[12] = 4;
    profile.class_peak_bytes[12] = 20000;
    profile.class_largest_bytes[12] = 5000;
    profile.class_peak_blocks[21] = 1; /* too large for a pool */
    profile.class_peak_bytes[21] = 3000000;
    profile.class_largest_bytes[21] = 3000000;
    cr_assert(vram_advise_pools(&profile, 512, 102400, 1, text));
    cr_assert(eq(str, text, "1024/5120,shares=10.000%/20.000%"));
    cr_assert(vram_advise_pools(&profile, 512, 102400, 0.5, text));
    cr_assert(eq(str, text, "1024/5120,shares=5.000%/10.000%"));
}
