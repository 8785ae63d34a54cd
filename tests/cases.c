/*
 * cases.c - named cases on every kind of allocator: pass or fail, and the bytes that are stranded.
 *
 * The expected answers are in tests/cases.csv. An answer that changes is a change of behaviour that
 * somebody must want: then `VRAMLAB_WRITE_CASES=1 build/release/tests/test_cases` writes the file
 * anew, and the difference belongs into the commit.
 */
#include "made_file.h"

#include <vramlab/driver.h>
#include <vramlab/registry.h>

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const stacks[] = {"list:policy=best",
                                     "list:policy=first",
                                     "list:policy=next",
                                     "list:policy=worst",
                                     "tlsf",
                                     "buddy",
                                     "segregated",
                                     "slab",
                                     "naive",
                                     "caching:driver=arena",
                                     "caching:driver=counting"};
enum { STACKS = sizeof stacks / sizeof stacks[0] };

static bool replay(const char *path, const char *stack, uint64_t arena_bytes,
                   vram_replay_result *result, uint64_t *there_bytes)
{
    vram_trace *trace;
    vram_backend *backend;
    vram_profile profile;
    vram_error error = {{0}};
    cr_assert(vram_trace_open(path, NULL, &trace, &error), "%s", error.text);
    cr_assert(vram_profile_of(trace, &profile, &error), "%s", error.text);
    const vram_trace_info *info = vram_trace_info_of(trace);
    *there_bytes = arena_bytes > 0 ? arena_bytes : info->arena_bytes;
    const vram_config config = {
        .arena_bytes = *there_bytes, .unit_bytes = info->unit_bytes, .profile = &profile};
    cr_assert(vram_create_from_text(stack, &config, &backend, &error), "%s", error.text);
    cr_assert(vram_replay(trace, backend,
                          &(vram_replay_options){.verify = true, .look_at_event = UINT64_MAX},
                          result, &error),
              "%s on %s: %s", path, stack, error.text);
    vram_destroy(backend);
    vram_trace_close(trace);
    return result->completed;
}

/* "rmm-1969,tlsf,completes,,1234": what is not live in the memory that was used, or at the refusal
 * in all of it. */
static void answer(const char *name, const char *stack, char row[256])
{
    char path[64];
    vram_replay_result result;
    uint64_t there_bytes;
    snprintf(path, sizeof path, "case:%s", name);
    if (replay(path, stack, 0, &result, &there_bytes))
        snprintf(row, 256, "%s,%s,completes,,%" PRIu64 "\n", name, stack,
                 result.peak_extent_bytes - result.peak_live_bytes);
    else
        snprintf(row, 256, "%s,%s,fails,%" PRIu64 ",%" PRIu64 "\n", name, stack,
                 result.first_failure_event, there_bytes - result.failure_look.live_bytes);
}

static char *all_answers(void)
{
    char *text;
    size_t bytes;
    FILE *const out = open_memstream(&text, &bytes);
    fprintf(out, "case,backend,outcome,failed_event,stranded_bytes\n");
    vram_trace_source source;
    for (size_t i = 0; vram_trace_source_at(i, &source); i++) {
        if (strcmp(source.group, "case") != 0)
            continue;
        for (size_t k = 0; k < STACKS; k++) {
            char row[256];
            answer(source.name, stacks[k], row);
            fputs(row, out);
        }
    }
    fclose(out);
    return text;
}

Test(cases, every_allocator_answers_as_it_did)
{
    static const char path[] = "tests/cases.csv";
    char *const answers = all_answers();
    if (getenv("VRAMLAB_WRITE_CASES") != NULL) {
        FILE *const out = fopen(path, "w");
        cr_assert_not_null(out);
        fputs(answers, out);
        fclose(out);
    }
    size_t count;
    char *const expected = bytes_of(path, &count);
    const char *got = answers, *want = expected;
    while (*got != '\0' && *want != '\0') {
        const int got_bytes = (int)strcspn(got, "\n"), want_bytes = (int)strcspn(want, "\n");
        cr_expect(got_bytes == want_bytes && memcmp(got, want, (size_t)got_bytes) == 0,
                  "now %.*s\nwas %.*s", got_bytes, got, want_bytes, want);
        got += got_bytes + 1;
        want += want_bytes + 1;
    }
    cr_expect(*got == '\0' && *want == '\0', "not as many rows as there were");
    free(expected);
    free(answers);
}

/* What each report is about: the kind of allocator that fails it, and one that does not. */
static const struct {
    const char *name, *fails, *completes;
} telling[] = {
    {"vllm-41268", "caching:driver=arena", "list:policy=best"},
    {"pytorch-35901", "caching:driver=arena", "list:policy=best"},
    {"torchrec-4584", "list:policy=first", "list:policy=best"},
    {"llamacpp-22107", "naive", "list:policy=best"},
    {"llamacpp-16788", "caching:driver=arena", "tlsf"},
    {"tensorflow-43850", "list:policy=best", NULL},
    {"tensorflow-43850-split", NULL, "list:policy=best"},
    {"rmm-1245", "list:policy=first", NULL},
    {"cudf-4045", "list:policy=first", NULL},
    {"pytorch-110194", "list:policy=first", NULL},
    {"rmm-1969", NULL, "list:policy=first"},
    {"rmm-2039", NULL, "list:policy=first"},
    {"rmm-496", NULL, "caching:driver=counting"},
    {"pytorch-189504", NULL, "list:policy=best+stream"},
    {"pytorch-96995", NULL, "list:policy=best"},
};

Test(cases, each_tells_the_allocator_at_fault_from_one_that_is_not)
{
    for (size_t i = 0; i < sizeof telling / sizeof telling[0]; i++) {
        char path[64];
        vram_replay_result result;
        uint64_t there_bytes;
        snprintf(path, sizeof path, "case:%s", telling[i].name);
        if (telling[i].fails != NULL)
            cr_expect_not(replay(path, telling[i].fails, 0, &result, &there_bytes), "%s on %s",
                          path, telling[i].fails);
        if (telling[i].completes != NULL)
            cr_expect(replay(path, telling[i].completes, 0, &result, &there_bytes), "%s on %s",
                      path, telling[i].completes);
    }
}

/* ---- MiniMalloc's benchmark, replayed online ---- */

/*
 * An independent computation found 1.56 for best fit and 1.55 for first fit, over the instances A
 * to K in file order: the highest address ever used, when memory does not run out, over peak live.
 */
Test(cases, minimalloc_instances_need_what_an_independent_computation_found)
{
    static const struct {
        const char *stack;
        double geomean;
    } expected[] = {{"list:policy=best", 1.56}, {"list:policy=first", 1.55}};
    static const char folder[] = "../shared/traces/public/minimalloc-csv/";
    if (access(folder, R_OK) != 0)
        cr_skip_test("%s is absent", folder);
    for (size_t i = 0; i < 2; i++) {
        double logs = 0;
        for (char letter = 'A'; letter <= 'K'; letter++) {
            char path[128];
            vram_replay_result result;
            uint64_t there_bytes;
            snprintf(path, sizeof path, "%sgoogle_%c.1048576.csv", folder, letter);
            cr_assert(replay(path, expected[i].stack, 1 << 24, &result, &there_bytes));
            logs += log((double)result.peak_extent_bytes / (double)result.peak_live_bytes);
        }
        cr_expect(fabs(exp(logs / 11) - expected[i].geomean) < 0.01, "%s: %.4f", expected[i].stack,
                  exp(logs / 11));
    }
}
