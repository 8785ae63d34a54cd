/*
 * cmd_trace_convert.c - `vramlab trace convert` and `trace generate`: a trace into a file.
 */
#include "cli/job.h"

#include <vramlab/perfetto.h>
#include <vramlab/write.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct fields {
    job_fields job; /* first */
    const char *out;
    const char *to;
    const char *inflate_limit;
    const char *like;
    const char *export;
} fields;

#define OUT_ROW                                                                                    \
    {                                                                                              \
        .name = "--out", .alias = "-o", .kind = OPTION_TEXT, .value = "FILE",                      \
        .offset = offsetof(fields, out),                                                           \
        .help = "the file to write, packed when its name ends in .gz"                              \
    }
#define TO_ROW                                                                                     \
    {                                                                                              \
        .name = "--to", .kind = OPTION_WORD, .words = "native|minimalloc|rmm-csv|rep",             \
        .offset = offsetof(fields, to),                                                            \
        .help = "its format; default: by its name, .vt or .rep, else native"                       \
    }

static const option_row convert_options[] = {
    OUT_ROW,
    TO_ROW,
    {.name = "--export",
     .kind = OPTION_WORD,
     .words = "perfetto",
     .offset = offsetof(fields, export),
     .help = "instead: replay on --backend and write live, granted, free by cause and\n"
             "fragmentation over time as Chrome trace JSON, which ui.perfetto.dev opens"},
    JOB_ARENA_ROW,
    JOB_OPTION_ROWS,
    {.name = "--inflate-limit",
     .kind = OPTION_TEXT,
     .value = "SIZE",
     .offset = offsetof(fields, inflate_limit),
     .help = "most bytes a packed file may unfold to; default: 64 GiB"},
    {.name = NULL},
};

static const option_row generate_options[] = {
    OUT_ROW,
    TO_ROW,
    {.name = "--like",
     .kind = OPTION_TEXT,
     .value = "TRACE",
     .offset = offsetof(fields, like),
     .help = "draw from this trace's blocks: short for SPEC like,file=TRACE; SPEC is then\n"
             "options of `like` only, such as allocs=1000000,seed=7"},
    {.name = NULL},
};

static int convert_run(int count, char **arguments);
static int generate_run(int count, char **arguments);

const command command_trace_convert = {
    .name = "trace convert",
    .usage = "TRACE -o FILE [--to FORMAT | --export perfetto --backend B]",
    .summary = "translate a trace, and say what the format could not hold",
    .text =
        "Reads a trace of any format and writes it in another. What the format has no place for\n"
        "is counted and named.\n\n"
        "  vramlab trace convert job.pickle -o job.vt.gz\n"
        "  vramlab trace convert job.vt.gz -o job.csv --to rmm-csv\n"
        "  vramlab trace convert job.pickle --export perfetto -b caching -o job.json",
    .options = convert_options,
    .run = convert_run,
};

const command command_trace_generate = {
    .name = "trace generate",
    .usage = "SPEC [-o FILE] [--to FORMAT] [--like TRACE]",
    .summary = "make a trace: a workload with its options, such as mix,seed=7",
    .text = "Makes the events of a workload or a named case (`vramlab list` shows both with their\n"
            "options) and writes them, or only tells what they are. The same SPEC gives the same\n"
            "events everywhere; `vramlab compare generate:SPEC` needs no file at all.\n\n"
            "  vramlab trace generate mix,seed=7 -o mix.vt.gz\n"
            "  vramlab trace generate case:vllm-41268 -o case.vt\n"
            "  vramlab trace generate --like job.pickle allocs=1000000 -o longer.vt.gz",
    .options = generate_options,
    .run = generate_run,
};

static void print_report(const char *path, const char *format, const vram_write_report *report)
{
    char events[32], lines[32];
    printf("%s: %s, %s events in %s lines\n", path, format,
           vram_format_count(report->events, events), vram_format_count(report->lines, lines));
    bool any = false;
    for (unsigned i = 0; i < VRAM_LOSSES; i++) {
        if (report->lost[i] == 0)
            continue;
        char count[32];
        printf("%s  %12s  %s\n", any ? "" : "not held by the format:\n",
               vram_format_count(report->lost[i], count), vram_loss_name((vram_loss)i));
        any = true;
    }
}

/* The format asked for, by its own name or the file's. */
static const char *format_for(const fields *given)
{
    if (given->to != NULL)
        return given->to;
    const char *by_name = vram_write_format_of(given->out);
    return by_name != NULL ? by_name : "native";
}

static int convert(const command *self, const char *path, const fields *given,
                   const vram_trace_options *how)
{
    vram_error error = {""};
    vram_trace *trace = NULL;
    vram_write_report report;
    const char *format = format_for(given);
    progress_begin(file_name(path));
    const bool written = vram_trace_open(path, how, &trace, &error) &&
                         vram_trace_write(trace, format, given->out, &report, &error);
    progress_end();
    vram_trace_close(trace);
    if (!written)
        return fail_with(self, "%s", error.text);
    print_report(given->out, format, &report);
    return EXIT_DONE;
}

static bool replay_and_write(const replay_job *job, const char *path, vram_error *error)
{
    vram_backend *backend = NULL;
    vram_timeline timeline = {0};
    vram_replay_result result;
    const vram_replay_options how = {
        .tries = true, .look_at_event = UINT64_MAX, .record = &timeline, .progress = progress_show};
    progress_begin(job->specs[0]);
    const bool written = job_backend(job, 0, job->arena_bytes, &backend, error) &&
                         vram_replay(job->trace, backend, &how, &result, error) &&
                         vram_perfetto_write(&timeline, path, error);
    progress_end();
    vram_timeline_free(&timeline);
    vram_destroy(backend);
    return written;
}

static int export_timeline(const char *path, const fields *given)
{
    replay_job job;
    vram_error error = {""};
    int status = job_open(&job, &command_trace_convert, &given->job, path);
    if (status < 0 && (given->job.backends == NULL || job.spec_count != 1))
        status = fail_with(&command_trace_convert,
                           "--export replays on one backend: name it with --backend");
    if (status < 0)
        status = replay_and_write(&job, given->out, &error)
                     ? EXIT_DONE
                     : fail_with(&command_trace_convert, "%s", error.text);
    if (status == EXIT_DONE)
        printf("%s: open it in ui.perfetto.dev\n", given->out);
    job_close(&job);
    return status;
}

static int convert_run(int count, char **arguments)
{
    fields given = {0};
    int status = options_read(&command_trace_convert, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (count != 1 || given.out == NULL)
        return fail_with(&command_trace_convert,
                         "one trace and a file to write are expected: vramlab trace convert TRACE "
                         "-o FILE");
    if (given.export != NULL)
        return export_timeline(arguments[0], &given);
    if (given.job.backends != NULL || given.job.arena != NULL)
        return fail_with(&command_trace_convert, "--backend and --arena go with --export");
    vram_error error = {""};
    vram_trace_options how = {
        .device = given.job.device, .strict = given.job.strict, .progress = progress_show};
    if (given.inflate_limit != NULL &&
        !vram_parse_size(given.inflate_limit, 0, &how.inflate_limit, &error))
        return fail_with(&command_trace_convert, "--inflate-limit: %s", error.text);
    return convert(&command_trace_convert, arguments[0], &given, &how);
}

/* ---- generate ---- */

/* "mix,seed=7" and "generate:mix,seed=7" are the same; --like TRACE is like,file=TRACE. */
static char *full_spec(const char *spec, const char *like)
{
    const bool full = strncmp(spec, "generate:", 9) == 0 || strncmp(spec, "case:", 5) == 0;
    char *text = NULL;
    const int length =
        like != NULL ? asprintf(&text, "generate:like,file=%s%s%s", like, *spec ? "," : "", spec)
                     : asprintf(&text, "%s%s", full ? "" : "generate:", spec);
    return length < 0 ? NULL : text;
}

/* The value that the spec gives the option, into `text`; false when it gives none. */
static bool given_in(const char *spec, const char *name, char text[64])
{
    const size_t length = strlen(name);
    for (const char *at = strchr(spec, ','); at != NULL; at = strchr(at, ',')) {
        at++;
        if (strncmp(at, name, length) != 0 || at[length] != '=')
            continue;
        snprintf(text, 64, "%.*s", (int)strcspn(at + length + 1, ","), at + length + 1);
        return true;
    }
    return false;
}

/* Every option that is in force, the seed among them. */
static void print_options(const char *spec)
{
    const char *name = strchr(spec, ':') + 1;
    const size_t name_length = strcspn(name, ",");
    vram_trace_source source;
    for (size_t i = 0; vram_trace_source_at(i, &source); i++) {
        if (strlen(source.name) != name_length || strncmp(source.name, name, name_length) != 0 ||
            strncmp(source.group, spec, strlen(source.group)) != 0)
            continue;
        printf("%s:%s: %s\n", source.group, source.name, source.summary);
        vram_trace_source_option option;
        for (size_t k = 0; vram_trace_source_option_at(i, k, &option); k++) {
            char value[64];
            const bool set = given_in(spec, option.name, value);
            printf("  %-12s %-12s %s\n", option.name, set ? value : option.fallback, option.help);
        }
    }
}

static int describe(const char *spec)
{
    vram_error error = {""};
    vram_trace *trace = NULL;
    vram_trace_summary sum;
    progress_begin(spec);
    const bool read =
        vram_trace_open(spec, NULL, &trace, &error) && vram_trace_summarise(trace, &sum, &error);
    progress_end();
    vram_trace_close(trace);
    if (!read)
        return fail_with(&command_trace_generate, "%s", error.text);
    char events[32], allocs[32], peak[VRAM_SIZE_TEXT];
    printf("%s events, %s allocations, peak live %s\n", vram_format_count(sum.events, events),
           vram_format_count(sum.by_kind[VRAM_EVENT_ALLOC], allocs),
           vram_format_size(sum.peak_live_bytes, peak));
    return EXIT_DONE;
}

static int generate_run(int count, char **arguments)
{
    fields given = {0};
    int status = options_read(&command_trace_generate, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (count != 1 && !(count == 0 && given.like != NULL))
        return fail_with(&command_trace_generate,
                         "one workload is expected: vramlab trace generate mix,seed=7 [-o FILE]");
    char *spec = full_spec(count == 1 ? arguments[0] : "", given.like);
    if (spec == NULL)
        return fail_with(&command_trace_generate, "out of memory");
    print_options(spec);
    status = given.out == NULL ? describe(spec)
                               : convert(&command_trace_generate, spec, &given,
                                         &(vram_trace_options){.progress = progress_show});
    free(spec);
    return status;
}
