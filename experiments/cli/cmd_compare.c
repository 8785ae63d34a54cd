/*
 * cmd_compare.c - `vramlab compare`: one recording, interchangeable allocators, a verdict.
 */
#include "cli/job.h"

#include "validate/gap.h"

#include <vramlab/heatmap.h>

#include <stdlib.h>
#include <string.h>

typedef struct fields {
    job_fields job; /* first */
    bool verify;
    bool streams;
    bool skip;
    bool quick;
    const char *format;
    const char *out;
} fields;

static const option_row options[] = {
    JOB_ARENA_ROW,
    JOB_COMPACT_ROW,
    JOB_OPTION_ROWS,
    {.name = "--out",
     .alias = "-o",
     .kind = OPTION_TEXT,
     .value = "DIR",
     .offset = offsetof(fields, out),
     .help = "also write compare.csv, compare.json and a heatmap of each backend there"},
    {.name = "--format",
     .kind = OPTION_WORD,
     .words = "table|csv|json",
     .offset = offsetof(fields, format),
     .help = "what to print"},
    {.name = "--quick",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, quick),
     .help = "do not search for the smallest arenas"},
    {.name = "--skip-failures",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, skip),
     .help = "go on after a refused request, as if the program had done without it;\n"
             "default: stop there, as a program dies of it"},
    {.name = "--verify",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, verify),
     .help = "check every answer against an independent interval model, and on an arena\n"
             "with bytes (host:SIZE) write and read back a pattern in every block"},
    {.name = "--streams",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, streams),
     .help = "count the allocations that get bytes which another stream may still be using"},
    {.name = NULL},
};

static int compare_run(int count, char **arguments);

const command command_compare = {
    .name = "compare",
    .usage = "TRACE [--arena SIZE] [--backend A,B] [--out DIR]",
    .summary = "replay a recording on several allocators: which would have survived, in how much",
    .text =
        "Replays a recording on each backend in the same arena and prints a row a backend:\n"
        "outcome, most bytes live and granted, footprint (highest address over peak live), the\n"
        "smallest arena that would do over peak live, internal and external fragmentation when\n"
        "most was live, and the ns of an operation. The last line is the verdict. Asks that were\n"
        "refused when recorded are made too, and count for the smallest arena. Exit status 1 when\n"
        "no backend completes.\n\n"
        "  vramlab compare traces/data/oom_fragmented.pickle.gz\n"
        "  vramlab compare job.pickle --arena 110% --backend list:policy=best,buddy --out results",
    .options = options,
    .run = compare_run,
};

static const column columns[] = {
    {"trace", NULL, COLUMN_TEXT},
    {"backend", "backend", COLUMN_TEXT},
    {"options", NULL, COLUMN_TEXT},
    {"arena_bytes", NULL, COLUMN_NUMBER},
    {"arena_kind", NULL, COLUMN_TEXT},
    {"outcome", "outcome", COLUMN_TEXT},
    {"failed_event", NULL, COLUMN_NUMBER},
    {"failed_bytes", NULL, COLUMN_NUMBER},
    {"free_bytes", NULL, COLUMN_NUMBER},
    {"largest_free_bytes", NULL, COLUMN_NUMBER},
    {"reason", NULL, COLUMN_TEXT},
    {"refused", NULL, COLUMN_NUMBER},
    {"peak_live_bytes", "live", COLUMN_NUMBER},
    {"peak_granted_bytes", "granted", COLUMN_NUMBER},
    {"peak_extent_bytes", NULL, COLUMN_NUMBER},
    {"footprint_ratio", "footprint", COLUMN_NUMBER},
    {"lower_bound_bytes", NULL, COLUMN_NUMBER},
    {"recorded_reserved_bytes", NULL, COLUMN_NUMBER},
    {"smallest_arena_bytes", NULL, COLUMN_NUMBER},
    {"smallest_ratio", "smallest", COLUMN_NUMBER},
    {"no_failure_from_bytes", NULL, COLUMN_NUMBER},
    {"internal_at_peak", "internal", COLUMN_NUMBER},
    {"external_at_peak", "external", COLUMN_NUMBER},
    {"ns_per_op", "ns", COLUMN_NUMBER},
    {"bookkeeping_bytes", NULL, COLUMN_NUMBER},
    {"compactions", NULL, COLUMN_NUMBER},
    {"moves", NULL, COLUMN_NUMBER},
    {"moved_bytes", NULL, COLUMN_NUMBER},
    {"early_reuses", NULL, COLUMN_NUMBER},
};

/* What one backend did. */
typedef struct row {
    vram_replay_result replay;
    vram_fit_result fit;
    double ns_per_op;
} row;

static double ns_per_op(const vram_replay_result *replay)
{
    const double calls = (double)(replay->alloc_ns.calls + replay->release_ns.calls);
    return calls > 0 ? ((double)replay->alloc_ns.calls * replay->alloc_ns.mean_ns +
                        (double)replay->release_ns.calls * replay->release_ns.mean_ns) /
                           calls
                     : 0;
}

static bool write_heatmap(const char *folder, const char *spec, const vram_timeline *timeline,
                          vram_error *error)
{
    char stem[64];
    char *path = NULL;
    job_file_stem(spec, stem);
    if (asprintf(&path, "%s/heatmap-%s.png", folder, stem) < 0)
        return vram_fail(error, "out of host memory");
    const bool written = vram_heatmap_write(timeline, NULL, path, error);
    free(path);
    return written;
}

static vram_on_failure on_failure(const fields *given)
{
    return given->skip ? VRAM_SKIP_FAILURES : VRAM_STOP_AT_FAILURE;
}

/* What the backend does, every answer as it comes: recorded, drawn and verified as asked for. */
static bool replay(const replay_job *job, const fields *given, size_t index, row *out,
                   vram_error *error)
{
    vram_backend *backend = NULL;
    vram_arena *arena = NULL;
    vram_timeline timeline = {0};
    const bool records = given->out != NULL;
    bool done = job_backend(job, index, job->arena_bytes, &backend, error) &&
                vram_arena_create(job->arena_kind, job->arena_bytes, &arena, error);
    if (done) {
        const vram_replay_options how = {
            .on_failure = on_failure(given),
            .tries = true,
            .verify = given->verify,
            .streams = given->streams,
            .compact = job_compaction(job, backend),
            .look_at_event = job->summary.peak_event,
            .arena = arena,
            .record = records ? &timeline : NULL,
            .progress = progress_show,
        };
        done = vram_replay(job->trace, backend, &how, &out->replay, error) &&
               (!records || write_heatmap(given->out, job->specs[index], &timeline, error));
    }
    vram_timeline_free(&timeline);
    vram_arena_destroy(arena);
    vram_destroy(backend);
    return done;
}

/* The least of some passes that do nothing but time the calls, on a fresh backend each: what
 * disturbs a pass only ever adds to it. */
static bool time_calls(const replay_job *job, const fields *given, size_t index, row *out,
                       vram_error *error)
{
    enum { PASSES = 5 };
    bool done = true;
    for (int pass = 0; done && pass < PASSES; pass++) {
        const vram_replay_options how = {
            .on_failure = on_failure(given),
            .tries = true,
            .time_calls = true,
            .look_at_event = UINT64_MAX,
        };
        vram_backend *backend = NULL;
        vram_replay_result timed;
        done = job_backend(job, index, job->arena_bytes, &backend, error) &&
               vram_replay(job->trace, backend, &how, &timed, error);
        if (done && (pass == 0 || ns_per_op(&timed) < out->ns_per_op))
            out->ns_per_op = ns_per_op(&timed);
        vram_destroy(backend);
    }
    return done;
}

static bool fit(const replay_job *job, size_t index, row *out, vram_error *error)
{
    const vram_fit_options search = {
        .spec = job->specs[index],
        .lower_bound_bytes = job->summary.peak_with_try_unit_bytes,
        .tries = true,
        .compact = job->compact,
        .profile = &job->profile,
        .progress = progress_show,
    };
    return vram_fit(job->trace, &search, &out->fit, error);
}

/* Replays, draws, times and fits one backend. */
static bool measure(const replay_job *job, const fields *given, size_t index, row *out,
                    vram_error *error)
{
    progress_begin(job->specs[index]);
    const bool done = replay(job, given, index, out, error) &&
                      time_calls(job, given, index, out, error) &&
                      (given->quick || fit(job, index, out, error));
    progress_end();
    return done;
}

static void set_size(table *rows, const char *name, uint64_t size_bytes, const unit_scale *scale)
{
    table_set(rows, name, "%llu", (unsigned long long)size_bytes);
    table_show(rows, name, "%.*f", scale->decimals, (double)size_bytes / scale->bytes);
}

static void set_outcome(table *rows, const vram_replay_result *replay)
{
    char count[32];
    table_set(rows, "outcome", "%s", replay->completed ? "completes" : "fails");
    table_set(rows, "refused", "%llu", (unsigned long long)replay->refused);
    if (replay->completed)
        return;
    table_show(rows, "outcome", "fails at %s",
               vram_format_count(replay->first_failure_event, count));
    table_set(rows, "failed_event", "%llu", (unsigned long long)replay->first_failure_event);
    table_set(rows, "failed_bytes", "%llu", (unsigned long long)replay->first_failure.size_bytes);
    table_set(rows, "free_bytes", "%llu", (unsigned long long)replay->failure.free_bytes);
    table_set(rows, "largest_free_bytes", "%llu",
              (unsigned long long)replay->failure.largest_free_bytes);
    table_set(rows, "reason", "%s", vram_reason_name(replay->failure.reason));
}

static void set_fragmentation(table *rows, const vram_replay_result *replay)
{
    const vram_look *look = replay->look.taken ? &replay->look : &replay->failure_look;
    if (!look->taken)
        return;
    table_set(rows, "internal_at_peak", "%.6f", vram_look_internal(look));
    table_show(rows, "internal_at_peak", "%.1f %%", 100 * vram_look_internal(look));
    table_set(rows, "external_at_peak", "%.6f", vram_look_external(look));
    table_show(rows, "external_at_peak", "%.1f %%", 100 * vram_look_external(look));
}

static void set_fit(table *rows, const vram_fit_result *fit, uint64_t bound_bytes)
{
    if (fit->smallest_bytes == 0) {
        if (fit->arenas_tried > 0)
            table_show(rows, "smallest_ratio", "none");
        return;
    }
    const double ratio = bound_bytes > 0 ? (double)fit->smallest_bytes / (double)bound_bytes : 0;
    table_set(rows, "smallest_arena_bytes", "%llu", (unsigned long long)fit->smallest_bytes);
    table_set(rows, "no_failure_from_bytes", "%llu",
              (unsigned long long)fit->no_failure_from_bytes);
    table_set(rows, "smallest_ratio", "%.6f", ratio);
    table_show(rows, "smallest_ratio", "%.3f", ratio);
}

static void add_row(table *rows, const replay_job *job, const char *spec, const row *from,
                    const unit_scale *scale)
{
    const vram_replay_result *replay = &from->replay;
    const size_t name_length = strcspn(spec, ":+");
    const char *rest = spec + name_length;
    table_row(rows);
    table_set(rows, "trace", "%s", file_name(vram_trace_info_of(job->trace)->path));
    table_set(rows, "backend", "%.*s", (int)name_length, spec);
    table_show(rows, "backend", "%s", spec);
    table_set(rows, "options", "%s", *rest == ':' ? rest + 1 : rest);
    table_set(rows, "arena_bytes", "%llu", (unsigned long long)job->arena_bytes);
    table_set(rows, "arena_kind", "%s", job->arena_kind);
    set_outcome(rows, replay);
    set_size(rows, "peak_live_bytes", replay->peak_live_bytes, scale);
    set_size(rows, "peak_granted_bytes", replay->peak_granted_bytes, scale);
    set_size(rows, "peak_extent_bytes", replay->peak_extent_bytes, scale);
    if (replay->peak_live_bytes > 0) {
        const double footprint =
            (double)replay->peak_extent_bytes / (double)replay->peak_live_bytes;
        table_set(rows, "footprint_ratio", "%.6f", footprint);
        /* Of a run that ended early it would say nothing. */
        if (replay->completed)
            table_show(rows, "footprint_ratio", "%.3f", footprint);
        else
            table_show(rows, "footprint_ratio", "-");
    }
    table_set(rows, "lower_bound_bytes", "%llu",
              (unsigned long long)job->summary.peak_live_unit_bytes);
    const uint64_t reserved_bytes = vram_trace_info_of(job->trace)->recorded.peak_reserved_bytes;
    if (reserved_bytes > 0)
        table_set(rows, "recorded_reserved_bytes", "%llu", (unsigned long long)reserved_bytes);
    set_fit(rows, &from->fit, job->summary.peak_live_unit_bytes);
    set_fragmentation(rows, replay);
    table_set(rows, "ns_per_op", "%.1f", from->ns_per_op);
    table_show(rows, "ns_per_op", "%.0f", from->ns_per_op);
    table_set(rows, "bookkeeping_bytes", "%llu", (unsigned long long)replay->bookkeeping_bytes);
    table_set(rows, "compactions", "%llu", (unsigned long long)replay->compactions);
    table_set(rows, "moves", "%llu", (unsigned long long)replay->moves);
    table_set(rows, "moved_bytes", "%llu", (unsigned long long)replay->moved_bytes);
    if (replay->streams_checked)
        table_set(rows, "early_reuses", "%llu", (unsigned long long)replay->early_reuses);
}

/* In the aligned table: what PyTorch itself had, its reserved peak where others have their smallest
 * arena. */
static void add_recorded_row(table *rows, const replay_job *job, const unit_scale *scale)
{
    const vram_recorded *recorded = &vram_trace_info_of(job->trace)->recorded;
    if (recorded->peak_reserved_bytes == 0)
        return;
    table_row(rows);
    table_set(rows, "backend", "PyTorch itself");
    table_set(rows, "outcome", "%s", recorded->out_of_memory > 0 ? "ran out" : "completed");
    set_size(rows, "peak_live_bytes", job->summary.peak_live_bytes, scale);
    if (job->summary.peak_live_unit_bytes > 0)
        table_set(rows, "smallest_ratio", "%.3f",
                  (double)recorded->peak_reserved_bytes /
                      (double)job->summary.peak_live_unit_bytes);
}

/* One line for each backend that failed: what was asked, what was free, and why that was not
 * enough. */
static void print_failures(const replay_job *job, const row *rows)
{
    const char *lead = "\n";
    for (size_t i = 0; i < job->spec_count; i++) {
        const vram_replay_result *replay = &rows[i].replay;
        if (replay->completed)
            continue;
        char asked[VRAM_SIZE_TEXT];
        char free_text[VRAM_SIZE_TEXT];
        char largest[VRAM_SIZE_TEXT];
        char event[32];
        printf("%s%s: event %s asked for %s; %s free, the largest span %s: %s.\n", lead,
               job->specs[i], vram_format_count(replay->first_failure_event, event),
               vram_format_size(replay->first_failure.size_bytes, asked),
               vram_format_size(replay->failure.free_bytes, free_text),
               vram_format_size(replay->failure.largest_free_bytes, largest),
               vram_reason_name(replay->failure.reason));
        lead = "";
    }
}

/* One line for each backend that was compacted. */
static void print_compactions(const replay_job *job, const row *rows)
{
    for (size_t i = 0; i < job->spec_count; i++) {
        const vram_replay_result *replay = &rows[i].replay;
        char compactions[32];
        char moves[32];
        char moved[VRAM_SIZE_TEXT];
        if (replay->compactions > 0)
            printf("%s: %s compactions made %s moves of %s in all.\n", job->specs[i],
                   vram_format_count(replay->compactions, compactions),
                   vram_format_count(replay->moves, moves),
                   vram_format_size(replay->moved_bytes, moved));
    }
}

/* Of a PyTorch recording: where its reserved memory was, and who held it. */
static void print_gap(const replay_job *job, const fields *given)
{
    const vram_snapshot *snapshot = vram_trace_snapshot(job->trace);
    if (snapshot == NULL || vram_trace_info_of(job->trace)->recorded.peak_reserved_bytes == 0)
        return;
    gap_report gap;
    vram_error error = {""};
    fputc('\n', stdout);
    if (gap_measure(snapshot, given->job.device, &gap, &error)) {
        gap_print(&gap, snapshot, stdout);
        gap_free(&gap);
    } else {
        printf("What PyTorch's reserved memory was cannot be told: %s.\n", error.text);
    }
}

/* One line for each backend that gave bytes to a stream too early. */
static void print_early_reuses(const replay_job *job, const row *rows)
{
    for (size_t i = 0; i < job->spec_count; i++) {
        const vram_replay_result *replay = &rows[i].replay;
        const vram_early_reuse *first = &replay->first_early_reuse;
        char early[32];
        char event[32];
        if (replay->early_reuses > 0)
            printf("%s: %s allocations got bytes that another stream might still use; the first, "
                   "event %s,\n    on stream %#llx after %#llx (the layer stream prevents it).\n",
                   job->specs[i], vram_format_count(replay->early_reuses, early),
                   vram_format_count(first->event, event),
                   (unsigned long long)vram_trace_stream(job->trace, first->by_stream),
                   (unsigned long long)vram_trace_stream(job->trace, first->of_stream));
    }
}

static void print_verdict(const replay_job *job, const row *rows)
{
    size_t survivors = 0;
    const row *best = NULL;
    const char *best_spec = "";
    for (size_t i = 0; i < job->spec_count; i++) {
        survivors += rows[i].replay.completed;
        const uint64_t smallest_bytes = rows[i].fit.smallest_bytes;
        if (smallest_bytes > 0 && (best == NULL || smallest_bytes < best->fit.smallest_bytes)) {
            best = &rows[i];
            best_spec = job->specs[i];
        }
    }
    char arena[VRAM_SIZE_TEXT];
    char smallest[VRAM_SIZE_TEXT];
    const bool died = vram_trace_info_of(job->trace)->recorded.out_of_memory > 0;
    printf("\nVerdict: %zu of %zu allocators %s in %s%s", survivors, job->spec_count,
           died ? "would have survived" : "complete", vram_format_size(job->arena_bytes, arena),
           died && survivors > 0 ? ", where PyTorch ran out of memory" : "");
    if (best != NULL)
        printf("; %s needs the least, %s (%.3f of peak live)", best_spec,
               vram_format_size(best->fit.smallest_bytes, smallest),
               (double)best->fit.smallest_bytes / (double)job->summary.peak_live_unit_bytes);
    puts(".");
}

static int save_all(const replay_job *job, const fields *given, const table *rows)
{
    static const struct {
        const char *name;
        table_format format;
    } files[] = {{"compare.csv", TABLE_CSV}, {"compare.json", TABLE_JSON}};
    vram_error error = {""};
    for (size_t i = 0; i < 2; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s", given->out, files[i].name) < 0)
            return fail_with(job->self, "out of host memory");
        const bool saved = table_save(rows, files[i].format, path, &error);
        free(path);
        if (!saved)
            return fail_with(job->self, "%s", error.text);
    }
    return EXIT_DONE;
}

static int report(const replay_job *job, const fields *given, const row *measured)
{
    const table_format format = table_format_of(given->format);
    const unit_scale scale = unit_for(job->arena_bytes);
    column titled[sizeof columns / sizeof columns[0]];
    memcpy(titled, columns, sizeof columns);
    char live_title[32];
    snprintf(live_title, sizeof live_title, "live %s", scale.name);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        if (strcmp(titled[i].name, "peak_live_bytes") == 0)
            titled[i].title = live_title;
    table *rows = table_new(titled, sizeof titled / sizeof titled[0]);
    for (size_t i = 0; i < job->spec_count; i++)
        add_row(rows, job, job->specs[i], &measured[i], &scale);
    const int status = given->out != NULL ? save_all(job, given, rows) : EXIT_DONE;
    if (format == TABLE_TEXT) {
        char arena[VRAM_SIZE_TEXT];
        job_describe(job, stdout);
        printf("Replayed in %s of %s memory: %s.\n\n", vram_format_size(job->arena_bytes, arena),
               job->arena_kind, job->arena_origin);
        add_recorded_row(rows, job, &scale);
    }
    table_write(rows, format, stdout);
    if (format == TABLE_TEXT) {
        print_failures(job, measured);
        print_compactions(job, measured);
        print_early_reuses(job, measured);
        print_gap(job, given);
        print_verdict(job, measured);
        if (given->out != NULL && status == EXIT_DONE)
            printf("Written to %s: compare.csv, compare.json, heatmap-*.png\n", given->out);
    }
    table_free(rows);
    return status;
}

static bool any_completes(const replay_job *job, const row *rows)
{
    for (size_t i = 0; i < job->spec_count; i++)
        if (rows[i].replay.completed)
            return true;
    return false;
}

static int compare_all(const replay_job *job, const fields *given)
{
    vram_error error = {""};
    if (given->out != NULL && !make_folder(given->out, &error))
        return fail_with(&command_compare, "--out: %s", error.text);
    row *measured = calloc(job->spec_count, sizeof *measured);
    if (measured == NULL)
        return fail_with(&command_compare, "out of host memory");
    int status = EXIT_DONE;
    for (size_t i = 0; i < job->spec_count && status == EXIT_DONE; i++)
        if (!measure(job, given, i, &measured[i], &error))
            status = fail_with(&command_compare, "%s: %s", job->specs[i], error.text);
    if (status == EXIT_DONE)
        status = report(job, given, measured);
    if (status == EXIT_DONE && !any_completes(job, measured))
        status = EXIT_NO;
    free(measured);
    return status;
}

static int compare_run(int count, char **arguments)
{
    fields given = {.format = "table"};
    int status = options_read(&command_compare, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (count != 1)
        return fail_with(&command_compare, "one trace is expected: vramlab compare TRACE");
    replay_job job;
    status = job_open(&job, &command_compare, &given.job, arguments[0]);
    if (status < 0)
        status = compare_all(&job, &given);
    job_close(&job);
    return status;
}
