/*
 * cmd_fit.c - `vramlab fit`: the smallest arena in which each backend completes a trace.
 */
#include "cli/job.h"

#include <vramlab/plan.h>

#include <stdlib.h>
#include <string.h>

typedef struct fields {
    job_fields job; /* first */
    bool with_asks;
    double step;
    const char *bound;
    uint64_t looks;
    const char *format;
    const char *out;
} fields;

static const option_row options[] = {
    JOB_OPTION_ROWS,
    JOB_COMPACT_ROW,
    {.name = "--with-asks",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, with_asks),
     .help = "the arena must also serve the asks that were refused when recorded"},
    {.name = "--step",
     .kind = OPTION_REAL,
     .value = "SHARE",
     .offset = offsetof(fields, step),
     .help = "distance of the sizes tried, as a share of peak live (default 0.001)"},
    {.name = "--bound",
     .kind = OPTION_WORD,
     .words = "live|offline",
     .offset = offsetof(fields, bound),
     .help = "offline: also what could be reached by knowing every lifetime: the best plan found\n"
             "(rows offline), and online placement by lifetime hints (two-ended)"},
    {.name = "--looks",
     .kind = OPTION_COUNT,
     .value = "N",
     .offset = offsetof(fields, looks),
     .help = "how often the offline planner may look at a block (default 400 million: seconds)"},
    {.name = "--format",
     .kind = OPTION_WORD,
     .words = "table|csv|json",
     .offset = offsetof(fields, format),
     .help = "what to print"},
    {.name = "--out",
     .alias = "-o",
     .kind = OPTION_TEXT,
     .value = "FILE.csv",
     .offset = offsetof(fields, out),
     .help = "also write the rows as CSV (or JSON, by the name's end)"},
    {.name = NULL},
};

static int fit_run(int count, char **arguments);

const command command_fit = {
    .name = "fit",
    .usage = "TRACE [--backend A,B] [--with-asks] [--bound offline] [--step SHARE] [--format "
             "table|csv|json]",
    .summary = "the smallest arena in which each backend completes a trace",
    .text =
        "Finds, for each backend, the smallest arena in which the trace completes, and the size\n"
        "from which every larger one that was tried completes too: a trace may fit in an arena\n"
        "and fail in a larger one, so sizes are scanned, not bisected. Both stand beside the\n"
        "lower bound of any allocator: peak live, each request rounded up to the trace's unit.\n\n"
        "  vramlab fit traces/data/bert_infer_varlen.pickle.gz --backend list:policy=best,buddy",
    .options = options,
    .run = fit_run,
};

static const column columns[] = {
    {"trace", NULL, COLUMN_TEXT},
    {"backend", "backend", COLUMN_TEXT},
    {"options", NULL, COLUMN_TEXT},
    {"outcome", "outcome", COLUMN_TEXT},
    {"peak_live_bytes", NULL, COLUMN_NUMBER},
    {"lower_bound_bytes", NULL, COLUMN_NUMBER},
    {"smallest_arena_bytes", "smallest arena", COLUMN_NUMBER},
    {"smallest_ratio", "of bound", COLUMN_NUMBER},
    {"no_failure_from_bytes", "no failure from", COLUMN_NUMBER},
    {"no_failure_ratio", "of bound", COLUMN_NUMBER},
    {"arenas_tried", "tried", COLUMN_NUMBER},
    {"failures_between", "failures between", COLUMN_NUMBER},
    {"reason", "one step below", COLUMN_TEXT},
};

static void add_row(table *rows, const replay_job *job, const char *spec, uint64_t bound_bytes,
                    const vram_fit_result *fit)
{
    char size[VRAM_SIZE_TEXT];
    const char *options_text = strchr(spec, ':');
    table_row(rows);
    table_set(rows, "trace", "%s", file_name(vram_trace_info_of(job->trace)->path));
    table_set(rows, "backend", "%.*s", (int)strcspn(spec, ":+"), spec);
    table_show(rows, "backend", "%s", spec);
    table_set(rows, "options", "%s", options_text != NULL ? options_text + 1 : "");
    table_set(rows, "peak_live_bytes", "%llu", (unsigned long long)job->summary.peak_live_bytes);
    table_set(rows, "lower_bound_bytes", "%llu", (unsigned long long)bound_bytes);
    table_set(rows, "arenas_tried", "%llu", (unsigned long long)fit->arenas_tried);
    table_set(rows, "outcome", "%s", fit->smallest_bytes > 0 ? "fits" : "does not fit");
    if (fit->below.reason != VRAM_REASON_NONE)
        table_set(rows, "reason", "%s", vram_reason_name(fit->below.reason));
    if (fit->smallest_bytes == 0)
        return;
    const double bound = bound_bytes > 0 ? (double)bound_bytes : 1;
    table_set(rows, "smallest_arena_bytes", "%llu", (unsigned long long)fit->smallest_bytes);
    table_show(rows, "smallest_arena_bytes", "%s", vram_format_size(fit->smallest_bytes, size));
    table_set(rows, "smallest_ratio", "%.6f", (double)fit->smallest_bytes / bound);
    table_show(rows, "smallest_ratio", "%.3f", (double)fit->smallest_bytes / bound);
    table_set(rows, "no_failure_from_bytes", "%llu",
              (unsigned long long)fit->no_failure_from_bytes);
    table_show(rows, "no_failure_from_bytes", "%s",
               vram_format_size(fit->no_failure_from_bytes, size));
    table_set(rows, "no_failure_ratio", "%.6f", (double)fit->no_failure_from_bytes / bound);
    table_show(rows, "no_failure_ratio", "%.3f", (double)fit->no_failure_from_bytes / bound);
    table_set(rows, "failures_between", "%llu", (unsigned long long)fit->anomalies);
}

static bool fit_all(const replay_job *job, const fields *given, table *rows, bool *all_fit,
                    vram_error *error)
{
    const uint64_t bound_bytes = given->with_asks ? job->summary.peak_with_try_unit_bytes
                                                  : job->summary.peak_live_unit_bytes;
    for (size_t i = 0; i < job->spec_count; i++) {
        const vram_fit_options how = {
            .spec = job->specs[i],
            .lower_bound_bytes = bound_bytes,
            .step_share = given->step,
            .tries = given->with_asks,
            .compact = job->compact,
            .profile = &job->profile,
            .progress = progress_show,
        };
        vram_fit_result found = {0};
        progress_begin(job->specs[i]);
        const bool done = vram_fit(job->trace, &how, &found, error);
        progress_end();
        if (!done)
            return false;
        add_row(rows, job, job->specs[i], bound_bytes, &found);
        *all_fit = *all_fit && found.smallest_bytes > 0;
    }
    return true;
}

/* A bound is a row like a backend's: an arena that suffices, and what found it. */
static void add_bound(table *rows, const replay_job *job, const char *name, const char *method,
                      uint64_t bound_bytes, uint64_t suffices_bytes)
{
    const vram_fit_result reached = {.smallest_bytes = suffices_bytes,
                                     .no_failure_from_bytes = suffices_bytes};
    add_row(rows, job, name, bound_bytes, &reached);
    table_set(rows, "options", "%s", method);
    table_set(rows, "outcome", "%s", "bound");
}

/* What could be reached with the future known. */
static bool add_offline(const replay_job *job, const fields *given, table *rows, vram_error *error)
{
    vram_plan_block *blocks = NULL;
    size_t count = 0;
    if (!vram_plan_blocks_of(job->trace, given->with_asks, &blocks, &count, error))
        return false;
    const vram_plan_options how = {.looks = given->looks};
    vram_plan plan;
    uint64_t two_ended_bytes = 0;
    const bool planned =
        vram_plan_make(blocks, count, &how, &plan, error) &&
        vram_plan_two_ended(blocks, count, plan.bound_bytes, &two_ended_bytes, error);
    free(blocks);
    if (!planned)
        return false;
    add_bound(rows, job, "offline", plan.method, plan.bound_bytes, plan.height_bytes);
    add_bound(rows, job, "two-ended", "hints", plan.bound_bytes, two_ended_bytes);
    return true;
}

/* Prints and saves what was found. */
static int report(const replay_job *job, const fields *given, const table *rows)
{
    const table_format format = table_format_of(given->format);
    if (format == TABLE_TEXT) {
        char size[VRAM_SIZE_TEXT];
        job_describe(job, stdout);
        printf("Lower bound: %s, peak live with each request rounded up to %llu B%s.\n\n",
               vram_format_size(given->with_asks ? job->summary.peak_with_try_unit_bytes
                                                 : job->summary.peak_live_unit_bytes,
                                size),
               (unsigned long long)vram_trace_info_of(job->trace)->unit_bytes,
               given->with_asks ? ", refused asks included" : "");
    }
    table_write(rows, format, stdout);
    if (given->out == NULL)
        return EXIT_DONE;
    const char *end = strrchr(given->out, '.');
    const bool json = end != NULL && strcmp(end, ".json") == 0;
    vram_error error = {""};
    if (!table_save(rows, json ? TABLE_JSON : TABLE_CSV, given->out, &error))
        return fail_with(job->self, "%s", error.text);
    return EXIT_DONE;
}

static int fit_run(int count, char **arguments)
{
    fields given = {.format = "table", .bound = "live"};
    int status = options_read(&command_fit, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (count != 1)
        return fail_with(&command_fit, "one trace is expected: vramlab fit TRACE");
    if (given.step < 0 || given.step > 1)
        return fail_with(&command_fit, "--step: %g is out of range: above 0, at most 1",
                         given.step);
    replay_job job;
    table *rows = table_new(columns, sizeof columns / sizeof columns[0]);
    bool all_fit = true;
    vram_error error = {""};
    status = job_open(&job, &command_fit, &given.job, arguments[0]);
    if (status < 0)
        status =
            fit_all(&job, &given, rows, &all_fit, &error) &&
                    (strcmp(given.bound, "live") == 0 || add_offline(&job, &given, rows, &error))
                ? report(&job, &given, rows)
                : fail_with(&command_fit, "%s", error.text);
    if (status == EXIT_DONE && !all_fit)
        status = EXIT_NO;
    table_free(rows);
    job_close(&job);
    return status;
}
