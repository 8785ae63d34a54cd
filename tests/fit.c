/* fit.c - the search for the smallest arena: on a backend whose answer is known, and on recordings
 * for which independent computations gave the figures. */
#include "hand_trace.h"

#include <vramlab/driver.h>
#include <vramlab/registry.h>

#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

static vram_fit_result fit(vram_trace *trace, vram_fit_options options)
{
    vram_fit_result result;
    vram_error error = {0};
    cr_assert(vram_fit(trace, &options, &result, &error), "%s", error.text);
    return result;
}

/* Bound 1000, unit 1: the sizes tried are 1000, 1001, 1002, ... 2000, then 1 % apart. */
Test(fit, finds_the_smallest_arena_and_the_failures_above_it)
{
    static const struct {
        const char *options;
        uint64_t smallest, from, anomalies;
    } cases[] = {
        {"", 1000, 1000, 0},
        {":least=1100", 1100, 1100, 0},
        {":least=1100,from=1101,to=1110", 1100, 1110, 9},
        {":least=1100,from=1120,to=1121", 1100, 1121, 1},
        {":least=1100,from=1200,to=1202,high=on", 1100, 1202, 2}, /* all of the arena is touched */
        {":least=1100,from=1200,to=1202", 1100, 1100,
         0}, /* never more than 10 bytes: no need to look */
        {":least=2000", 2000, 2000, 0},
        {":least=2001", 2020, 2020, 0},
        {":least=2030", 2040, 2040, 0},
        {":least=70000", 0, 0, 0}, /* beyond 64 times the bound */
    };
    vram_trace *trace = hand_trace("unit 1\na 1 10\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char spec[512];
        snprintf(spec, sizeof spec, "%s%s", PICKY, cases[i].options);
        const vram_fit_result result =
            fit(trace, (vram_fit_options){.spec = spec, .lower_bound_bytes = 1000});
        cr_assert(eq(u64, result.smallest_bytes, cases[i].smallest), "picky%s", cases[i].options);
        cr_assert(eq(u64, result.no_failure_from_bytes, cases[i].from), "picky%s",
                  cases[i].options);
        cr_assert(eq(u64, result.anomalies, cases[i].anomalies), "picky%s", cases[i].options);
    }
    vram_trace_close(trace);
}

Test(fit, tells_why_the_arena_below_fails)
{
    vram_trace *trace = hand_trace("unit 1\na 1 400\na 2 200\nf 1\na 3 500\n");
    const vram_fit_result result =
        fit(trace, (vram_fit_options){.spec = "list", .lower_bound_bytes = 700});
    cr_assert(eq(u64, result.smallest_bytes, 1100), "3 finds no room before 2");
    cr_assert(eq(u64, result.below_event, 3));
    cr_assert(eq(int, result.below.reason, VRAM_REASON_FRAGMENTED));
    cr_assert(eq(u64, result.below.largest_free_bytes, 499));
    vram_trace_close(trace);
}

Test(fit, a_stack_that_cannot_be_made_is_an_error_and_not_a_failure)
{
    vram_trace *trace = hand_trace("unit 1\na 1 400\n");
    vram_fit_result result;
    vram_error error = {0};
    const vram_fit_options options = {.spec = "list:policy=luck", .lower_bound_bytes = 400};
    cr_assert(not(vram_fit(trace, &options, &result, &error)));
    cr_assert(strstr(error.text, "luck") != NULL, "%s", error.text);
    vram_trace_close(trace);
}

/* Best fit, lowest address on ties, sizes rounded to 512 B, steps of 0.1 % of peak live. */
Test(fit, best_fit_needs_on_each_recording_what_was_computed_independently)
{
    static const struct {
        const char *name;
        bool tries;
        double smallest, from;
    } cases[] = {
        {"resnet50_train", false, 1.010, 1.014},    {"gpt2_train_varlen", false, 1.003, 1.003},
        {"bert_infer_varlen", false, 1.139, 1.174}, {"video_pipeline_mixed", false, 1.096, 1.096},
        {"multi_stream", false, 1.074, 1.135},      {"unet_train_frames", false, 1.059, 1.059},
        {"oom_fragmented", false, 1.054, 1.054},    {"oom_fragmented", true, 1.071, 1.071},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "traces/data/%s.pickle.gz", cases[i].name);
        vram_trace *trace = NULL;
        vram_trace_summary summary;
        vram_error error = {0};
        cr_assert(vram_trace_open(path, NULL, &trace, &error), "%s", error.text);
        cr_assert(vram_trace_summarise(trace, &summary, &error), "%s", error.text);
        const double peak = (double)summary.peak_live_unit_bytes;
        const vram_fit_result result =
            fit(trace, (vram_fit_options){.spec = "list:policy=best",
                                          .lower_bound_bytes = summary.peak_live_unit_bytes,
                                          .tries = cases[i].tries});
        cr_assert(lt(dbl, fabs((double)result.smallest_bytes / peak - cases[i].smallest), 1e-5),
                  "%s: %.4f", cases[i].name, (double)result.smallest_bytes / peak);
        cr_assert(lt(dbl, fabs((double)result.no_failure_from_bytes / peak - cases[i].from), 1e-5),
                  "%s: %.4f", cases[i].name, (double)result.no_failure_from_bytes / peak);
        vram_trace_close(trace);
    }
}

Test(fit, best_fit_serves_the_request_of_which_the_recorded_job_died)
{
    vram_trace *trace = NULL;
    vram_error error = {0};
    cr_assert(vram_trace_open("traces/data/oom_fragmented.pickle.gz", NULL, &trace, &error), "%s",
              error.text);
    vram_backend *backend = NULL;
    const vram_config config = {.arena_bytes = UINT64_C(3) << 30, .unit_bytes = 512};
    cr_assert(vram_create_from_text("list:policy=best", &config, &backend, &error));
    vram_replay_result result;
    const vram_replay_options options = {
        .tries = true, .verify = true, .look_at_event = UINT64_MAX};
    cr_assert(vram_replay(trace, backend, &options, &result, &error), "%s", error.text);
    cr_assert(result.completed);
    vram_destroy(backend);
    vram_trace_close(trace);
}
