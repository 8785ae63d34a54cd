/*
 * cmd_advise.c - `vramlab advise`: which backend, with which options, in which arena.
 */
#include "cli/job.h"

#include "study/advise.h"

#include <stdlib.h>
#include <string.h>

enum { PASSES = 5 };

typedef struct fields {
    job_fields job; /* first */
    bool quick;
    const char *format;
} fields;

static const option_row options[] = {
    JOB_OPTION_ROWS,
    {.name = "--quick",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, quick),
     .help = "try only the most promising value of each option"},
    {.name = "--format",
     .kind = OPTION_WORD,
     .words = "table|csv|json",
     .offset = offsetof(fields, format),
     .help = "what to print"},
    {.name = NULL},
};

static int advise_run(int count, char **arguments);

const command command_advise = {
    .name = "advise",
    .usage = "TRACE [--backend A,B] [--quick] [--format table|csv|json]",
    .summary = "from a trace to an allocator, its options and the arena it needs",
    .text =
        "Tries, for each backend, the options that decide about space (size classes, shares,\n"
        "slabs, least order, policy, unit, a reserve), keeps what helps, and prints the stack to\n"
        "paste after --backend. `smallest` is the least arena in which the trace completes, as\n"
        "`fit` finds it; `arena` is what to set up: from there on no larger arena that was tried\n"
        "fails, and the margin is what that costs. It is no margin for other runs: a job with\n"
        "longer inputs needs a recording of its own. `default` is the stack as given, its options\n"
        "left at their defaults; advice is never above it.\n\n"
        "`ns` is the time of a call in that arena, the least of 5 passes, less that of the\n"
        "backend null in the same run: compare the rows of one run with each other only.\n\n"
        "  vramlab advise traces/data/multi_stream.pickle.gz\n"
        "  vramlab advise traces/data/multi_stream.pickle.gz --backend buddy,segregated --quick\n\n"
        "Options that --backend sets stay as they are: buddy:min=4KiB is improved around that.",
    .options = options,
    .run = advise_run,
};

static const column columns[] = {
    {"trace", NULL, COLUMN_TEXT},
    {"backend", NULL, COLUMN_TEXT},
    {"stack", "stack to paste", COLUMN_TEXT},
    {"outcome", NULL, COLUMN_TEXT},
    {"lower_bound_bytes", NULL, COLUMN_NUMBER},
    {"smallest_arena_bytes", "smallest", COLUMN_NUMBER},
    {"smallest_ratio", "of bound", COLUMN_NUMBER},
    {"default_smallest_bytes", NULL, COLUMN_NUMBER},
    {"default_ratio", "default", COLUMN_NUMBER},
    {"arena_bytes", "arena", COLUMN_NUMBER},
    {"arena_ratio", "of bound", COLUMN_NUMBER},
    {"margin_share", "margin", COLUMN_NUMBER},
    {"margin_reason", "because", COLUMN_TEXT},
    {"net_ns_per_call", "ns", COLUMN_NUMBER},
    {"candidates", "tried", COLUMN_NUMBER},
};

/* One backend's advice and what a call of it costs. */
typedef struct line {
    vram_advice advice;
    double net_ns; /* a call, less null's */
} line;

/* ---- the cost of a call ---- */

static bool make_for_cost(const replay_job *job, const char *spec, uint64_t arena_bytes,
                          vram_backend **out, vram_error *error)
{
    const vram_config config = {
        .arena_bytes = arena_bytes,
        .unit_bytes = vram_trace_info_of(job->trace)->unit_bytes,
        .profile = &job->profile,
    };
    return vram_create_from_text(spec, &config, out, error);
}

/* The least time of a call over the passes. */
static bool time_stack(const replay_job *job, vram_calls *calls, const char *spec,
                       uint64_t arena_bytes, double *call_ns, vram_error *error)
{
    vram_backend *backend;
    if (!make_for_cost(job, spec, arena_bytes, &backend, error))
        return false;
    uint64_t least_ns = UINT64_MAX;
    for (int pass = 0; pass < PASSES; pass++) {
        uint64_t refused;
        const uint64_t ns = vram_calls_run(calls, backend, &refused);
        least_ns = ns < least_ns ? ns : least_ns;
    }
    vram_destroy(backend);
    *call_ns = (double)least_ns / (double)vram_calls_count(calls);
    return true;
}

static bool time_all(const replay_job *job, line *lines, vram_error *error)
{
    vram_calls *calls;
    double null_ns;
    if (!vram_calls_of(job->trace, &calls, error))
        return false;
    bool done = time_stack(job, calls, "null", VRAM_ARENA_MAX, &null_ns, error);
    for (size_t i = 0; done && i < job->spec_count; i++) {
        const vram_advice *advice = &lines[i].advice;
        if (advice->fit.smallest_bytes == 0)
            continue;
        done = time_stack(job, calls, advice->spec, advice->fit.no_failure_from_bytes,
                          &lines[i].net_ns, error);
        lines[i].net_ns -= null_ns;
    }
    vram_calls_free(calls);
    return done;
}

/* ---- the report ---- */

static void add_sizes(table *rows, const vram_fit_result *fit, double bound)
{
    char size[VRAM_SIZE_TEXT];
    const uint64_t arena_bytes = fit->no_failure_from_bytes;
    const double margin = (double)arena_bytes / (double)fit->smallest_bytes - 1;
    table_set(rows, "smallest_arena_bytes", "%llu", (unsigned long long)fit->smallest_bytes);
    table_show(rows, "smallest_arena_bytes", "%s", vram_format_size(fit->smallest_bytes, size));
    table_set(rows, "smallest_ratio", "%.6f", (double)fit->smallest_bytes / bound);
    table_show(rows, "smallest_ratio", "%.3f", (double)fit->smallest_bytes / bound);
    table_set(rows, "arena_bytes", "%llu", (unsigned long long)arena_bytes);
    table_show(rows, "arena_bytes", "%s", vram_format_size(arena_bytes, size));
    table_set(rows, "arena_ratio", "%.6f", (double)arena_bytes / bound);
    table_show(rows, "arena_ratio", "%.3f", (double)arena_bytes / bound);
    table_set(rows, "margin_share", "%.6f", margin);
    table_show(rows, "margin_share", "%.1f %%", 100 * margin);
    if (fit->anomalies > 0)
        table_set(rows, "margin_reason", "%llu larger fail", (unsigned long long)fit->anomalies);
    else
        table_set(rows, "margin_reason", "no larger fails");
}

static void add_row(table *rows, const replay_job *job, const char *given, const line *self)
{
    const vram_advice *advice = &self->advice;
    const uint64_t bound_bytes = job->summary.peak_live_unit_bytes;
    table_row(rows);
    table_set(rows, "trace", "%s", file_name(vram_trace_info_of(job->trace)->path));
    table_set(rows, "backend", "%s", given);
    table_set(rows, "stack", "%s", advice->spec);
    table_set(rows, "lower_bound_bytes", "%llu", (unsigned long long)bound_bytes);
    table_set(rows, "candidates", "%llu", (unsigned long long)advice->candidates);
    table_set(rows, "outcome", "%s", advice->fit.smallest_bytes > 0 ? "fits" : "does not fit");
    if (advice->from.smallest_bytes > 0) {
        const double ratio = (double)advice->from.smallest_bytes / (double)bound_bytes;
        table_set(rows, "default_smallest_bytes", "%llu",
                  (unsigned long long)advice->from.smallest_bytes);
        table_set(rows, "default_ratio", "%.6f", ratio);
        table_show(rows, "default_ratio", "%.3f", ratio);
    }
    if (advice->fit.smallest_bytes == 0)
        return;
    add_sizes(rows, &advice->fit, (double)bound_bytes);
    table_set(rows, "net_ns_per_call", "%.1f", self->net_ns);
    table_show(rows, "net_ns_per_call", "%.0f", self->net_ns);
}

/* The one that needs the least to be safe, then the least at all, then the least time. */
static const line *best_of(const line *lines, size_t count)
{
    const line *best = NULL;
    for (size_t i = 0; i < count; i++) {
        const vram_fit_result *fit = &lines[i].advice.fit;
        if (fit->smallest_bytes == 0)
            continue;
        const vram_fit_result *held = best != NULL ? &best->advice.fit : NULL;
        const bool same_arena =
            held != NULL && fit->no_failure_from_bytes == held->no_failure_from_bytes;
        if (held == NULL || fit->no_failure_from_bytes < held->no_failure_from_bytes ||
            (same_arena && fit->smallest_bytes < held->smallest_bytes) ||
            (same_arena && fit->smallest_bytes == held->smallest_bytes &&
             lines[i].net_ns < best->net_ns))
            best = &lines[i];
    }
    return best;
}

static void print_best(const replay_job *job, const line *best)
{
    char size[VRAM_SIZE_TEXT];
    const uint64_t arena_bytes = best->advice.fit.no_failure_from_bytes;
    const uint64_t reserved_bytes = vram_trace_info_of(job->trace)->recorded.peak_reserved_bytes;
    printf("\nBest: %s in an arena of %s (%llu B), %.3f of the lower bound", best->advice.spec,
           vram_format_size(arena_bytes, size), (unsigned long long)arena_bytes,
           (double)arena_bytes / (double)job->summary.peak_live_unit_bytes);
    if (reserved_bytes > 0)
        printf(" and %.3f of what PyTorch had reserved",
               (double)arena_bytes / (double)reserved_bytes);
    fputs(".\n", stdout);
}

static void report(const replay_job *job, const line *lines, const char *word)
{
    const table_format format = table_format_of(word);
    table *rows = table_new(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < job->spec_count; i++)
        add_row(rows, job, job->specs[i], &lines[i]);
    if (format == TABLE_TEXT) {
        char size[VRAM_SIZE_TEXT];
        job_describe(job, stdout);
        printf("Lower bound: %s.\n\n", vram_format_size(job->summary.peak_live_unit_bytes, size));
    }
    table_write(rows, format, stdout);
    const line *best = best_of(lines, job->spec_count);
    if (format == TABLE_TEXT && best != NULL)
        print_best(job, best);
    table_free(rows);
}

/* ---- the command ---- */

static int advise_all(const replay_job *job, const fields *given, line *lines)
{
    vram_error error = {""};
    for (size_t i = 0; i < job->spec_count; i++) {
        const vram_advise_options how = {
            .spec = job->specs[i],
            .lower_bound_bytes = job->summary.peak_live_unit_bytes,
            .profile = &job->profile,
            .quick = given->quick,
            .progress = progress_show,
        };
        progress_begin(job->specs[i]);
        const bool done = vram_advise(job->trace, &how, &lines[i].advice, &error);
        progress_end();
        if (!done)
            return fail_with(job->self, "%s: %s", job->specs[i], error.text);
    }
    if (!time_all(job, lines, &error))
        return fail_with(job->self, "%s", error.text);
    report(job, lines, given->format);
    return best_of(lines, job->spec_count) != NULL ? EXIT_DONE : EXIT_NO;
}

static int advise_run(int count, char **arguments)
{
    fields given = {.format = "table"};
    int status = options_read(&command_advise, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (count != 1)
        return fail_with(&command_advise, "one trace is expected: vramlab advise TRACE");
    replay_job job;
    status = job_open(&job, &command_advise, &given.job, arguments[0]);
    if (status < 0) {
        line *lines = calloc(job.spec_count, sizeof *lines);
        status = lines != NULL ? advise_all(&job, &given, lines)
                               : fail_with(&command_advise, "out of host memory");
        for (size_t i = 0; lines != NULL && i < job.spec_count; i++)
            free(lines[i].advice.spec);
        free(lines);
    }
    job_close(&job);
    return status;
}
