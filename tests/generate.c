/*
 * generate.c - generated workloads: the same from the same text, sound, and of the kind they claim.
 */
#include "made_file.h"

#include <vramlab/model.h>
#include <vramlab/trace.h>

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Small versions of each, in one and in several ways. */
static const char *const specs[] = {
    "random,allocs=3000",
    "random,allocs=3000,size=uniform,life=uniform,life-most=500",
    "random,allocs=3000,size=log-normal,life=log-normal,correlation=0.9,inverse=1",
    "random,allocs=3000,size=zipf,life=log-uniform,life-most=900",
    "random,allocs=3000,size=exponential,phases=3,swing=1,ramp=4,streams=5,share=0.5",
    "training,steps=3,layers=4",
    "training,steps=2,layers=3,vary=0,streams=2",
    "serving,requests=40",
    "serving,requests=40,pages=0",
    "inference,jobs=60,streams=3",
    "frames,jobs=60,streams=2",
    "like,file=traces/data/oom_fragmented.pickle.gz,allocs=2000",
    "like,file=traces/data/multi_stream.pickle.gz,allocs=2000,run=1",
};
enum { SPECS = sizeof specs / sizeof specs[0] };

static char *events_of_spec(const char *spec, const char *more)
{
    char path[256];
    vram_error error = {{0}};
    snprintf(path, sizeof path, "generate:%s%s", spec, more);
    char *const events = events_of(path, &(vram_trace_options){.strict = true}, &error);
    cr_assert_not_null(events, "%s: %s", path, error.text);
    return events;
}

Test(generate, the_same_text_gives_the_same_events_and_another_seed_others)
{
    for (size_t i = 0; i < SPECS; i++) {
        char *const first = events_of_spec(specs[i], ""), *const again =
                                                              events_of_spec(specs[i], "");
        char *const other = events_of_spec(specs[i], ",seed=9");
        cr_expect_str_eq(first, again, "%s", specs[i]);
        if (strstr(specs[i], "vary=0") == NULL)
            cr_expect_str_neq(first, other, "%s", specs[i]);
        free(first);
        free(again);
        free(other);
    }
}

Test(generate, nothing_is_odd_and_rewinding_starts_anew)
{
    for (size_t i = 0; i < SPECS; i++) {
        char path[256];
        vram_trace *trace;
        vram_trace_summary first, second;
        vram_error error = {{0}};
        snprintf(path, sizeof path, "generate:%s", specs[i]);
        cr_assert(vram_trace_open(path, NULL, &trace, &error), "%s", error.text);
        cr_assert(vram_trace_summarise(trace, &first, &error), "%s", error.text);
        cr_assert(vram_trace_summarise(trace, &second, &error), "%s", error.text);
        cr_expect_eq(memcmp(&first, &second, sizeof first), 0, "%s", path);
        for (unsigned k = 0; k < VRAM_ANOMALIES; k++)
            cr_expect(k == VRAM_ANOMALY_NEVER_FREED ||
                      vram_trace_info_of(trace)->anomalies[k] == 0);
        vram_trace_close(trace);
    }
}

Test(generate, wrong_options_are_named)
{
    static const struct {
        const char *spec, *says;
    } cases[] = {
        {"random,colour=3", "there is no option 'colour'"},
        {"random,size=square", "'square' is none of"},
        {"random,size-least=0", "1 <= least <= most"},
        {"random,size-least=2MiB,size-most=1MiB", "1 <= least <= most"},
        {"random,correlation=1.5", "between 0 and 1"},
        {"random,streams=0", "between 1 and 4096"},
        {"random,allocs=many", "many"},
        {"training,layers=1000", "between 1 and 512"},
        {"training,steps=0", "between 1 and"},
        {"serving,batch=0", "batch is between"},
        {"serving,prompt=9999999", "tokens"},
        {"inference,layers=0", "layers are between"},
        {"frames,planes=0", "planes is between"},
        {"frames,streams=65", "between 1 and 64"},
        {"like", "file must name a trace"},
        {"like,file=/nowhere", "cannot open"},
        {"like,file=traces/data/README.md", "none of the formats"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[256];
        vram_error error = {{0}};
        snprintf(path, sizeof path, "generate:%s", cases[i].spec);
        cr_expect_not(reads(path, NULL, &error), "%s", path);
        cr_expect_not_null(strstr(error.text, cases[i].says), "'%s' does not say '%s'", error.text,
                           cases[i].says);
    }
}

/* ---- distributions ---- */

static vram_model model_of(const char *path)
{
    vram_trace *trace;
    vram_model model;
    vram_error error = {{0}};
    cr_assert(vram_trace_open(path, NULL, &trace, &error), "%s", error.text);
    cr_assert(vram_model_measure(trace, &model, &error), "%s", error.text);
    vram_trace_close(trace);
    return model;
}

/* What was asked for is what is measured, by code that shares nothing with the drawing. */
Test(generate, random_draws_what_it_was_asked_for)
{
    static const struct {
        const char *options;
        vram_family sizes, lives;
        double correlation;
    } cases[] = {
        {"size=uniform,size-least=1,size-most=1000000,life=exponential", VRAM_FAMILY_UNIFORM,
         VRAM_FAMILY_EXPONENTIAL, 0},
        {"size=log-uniform,life=uniform,life-most=2000", VRAM_FAMILY_LOG_UNIFORM,
         VRAM_FAMILY_UNIFORM, 0},
        {"size=log-normal,size-least=1,size-most=1GiB,life=log-normal,life-median=50,correlation=0."
         "8",
         VRAM_FAMILY_LOG_NORMAL, VRAM_FAMILY_LOG_NORMAL, 0.8},
        {"size=log-normal,size-least=1,size-most=1GiB,life=log-normal,life-median=50,correlation=0."
         "5,inverse=1",
         VRAM_FAMILY_LOG_NORMAL, VRAM_FAMILY_LOG_NORMAL, -0.5},
        {"size=exponential,size-least=1,size-most=1GiB,life=log-uniform,life-most=5000",
         VRAM_FAMILY_EXPONENTIAL, VRAM_FAMILY_LOG_UNIFORM, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[256];
        snprintf(path, sizeof path, "generate:random,allocs=20000,%s", cases[i].options);
        vram_model model = model_of(path);
        cr_expect_eq(model.sizes.nearest, cases[i].sizes, "%s: sizes are %s", path,
                     vram_family_name(model.sizes.nearest));
        cr_expect_eq(model.lives.nearest, cases[i].lives, "%s: lives are %s", path,
                     vram_family_name(model.lives.nearest));
        cr_expect_lt(model.sizes.distance[model.sizes.nearest], 0.03, "%s", path);
        cr_expect(fabs(model.correlation - cases[i].correlation) < 0.05, "%s: correlation %.3f",
                  path, model.correlation);
        vram_model_free(&model);
    }
    vram_model zipf = model_of("generate:random,allocs=50000,size=zipf");
    cr_expect_eq(zipf.distinct_sizes, 64);
    cr_expect(fabs(zipf.zipf_exponent - 1) < 0.1, "exponent %.3f", zipf.zipf_exponent);
    vram_model_free(&zipf);
}

Test(generate, a_trace_like_another_has_its_sizes_lives_and_their_tie)
{
    static const char original[] = "traces/data/gpt2_train_varlen.pickle.gz";
    char path[256];
    snprintf(path, sizeof path, "generate:like,file=%s,allocs=60000", original);
    vram_model from = model_of(original), to = model_of(path);
    cr_expect_eq(to.count, 60000 + from.never_freed);
    cr_expect_eq(to.never_freed, from.never_freed);
    for (int i = 2; i <= 4; i++) { /* a tenth, half, nine tenths */
        const double sizes = (double)to.sizes.quantiles[i] / (double)from.sizes.quantiles[i];
        const double lives = (double)to.lives.quantiles[i] / (double)from.lives.quantiles[i];
        cr_expect(sizes > 0.8 && sizes < 1.25, "size at %g: %.3f", vram_model_shares[i], sizes);
        cr_expect(lives > 0.5 && lives < 2, "life at %g: %.3f", vram_model_shares[i], lives);
    }
    cr_expect(fabs(to.correlation - from.correlation) < 0.1, "%.3f and %.3f", to.correlation,
              from.correlation);
    vram_model_free(&from);
    vram_model_free(&to);
}

Test(generate, a_model_measures_what_a_hand_counts)
{
    static const char text[] = "vramlab trace 1\na 1 8\na 2 8\na 3 4\nf 1\nr 2 16\nf 3\na 4 8\n";
    const made_file file = make_file(text, sizeof text - 1);
    vram_model model = model_of(file.path);
    static const uint64_t sizes[] = {8, 8, 4, 16, 8},
                          lives[] = {2, 1, 1, VRAM_LIVES_ON, VRAM_LIVES_ON};
    cr_assert_eq(model.count, 5);
    for (size_t i = 0; i < 5; i++) {
        cr_expect_eq(model.blocks[i].size_bytes, sizes[i]);
        cr_expect_eq(model.blocks[i].life, lives[i], "%zu: %" PRIu64, i, model.blocks[i].life);
    }
    cr_expect_eq(model.never_freed, 2);
    cr_expect_eq(model.distinct_sizes, 3);
    cr_expect_eq(model.sizes.quantiles[3], 8);
    cr_expect_eq(model.lives.count, 3);
    vram_model_free(&model);
    drop_file(file);
}
