/*
 * cmd_validate.c - `vramlab validate`: does the model of PyTorch's allocator decide as PyTorch did?
 */
#include "cli/command.h"

#include "validate/validate.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct fields {
    const char *cap;
    const char *cut;
    uint32_t device;
    const char *format;
    const char *out;
} fields;

static const option_row options[] = {
    {.name = "--cap",
     .kind = OPTION_TEXT,
     .value = "SIZE",
     .offset = offsetof(fields, cap),
     .help = "the memory that PyTorch was allowed (memory fraction times the card), which no\n"
             "file holds; default: inferred between the largest total that was reserved and\n"
             "the smallest that was refused"},
    {.name = "--device",
     .kind = OPTION_INDEX,
     .value = "N",
     .offset = offsetof(fields, device),
     .help = "whose history to replay (default 0)"},
    {.name = "--cut",
     .kind = OPTION_TEXT,
     .value = "SHARE",
     .offset = offsetof(fields, cut),
     .help = "forget this share of the history first (30%), to try how the state at its\n"
             "start is rebuilt"},
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
     .help = "also write the rows as CSV"},
    {.name = NULL},
};

static int validate_run(int count, char **arguments);

const command command_validate = {
    .name = "validate",
    .usage = "SNAPSHOT... [--cap SIZE] [--cut SHARE]",
    .summary = "replay PyTorch recordings on `caching` and compare every decision with PyTorch's",
    .text =
        "Drives the model behind the backend `caching` with a recording's requests, under the\n"
        "settings that the recording carries, and compares every block's address, every segment\n"
        "taken or given back, every out-of-memory, the peak of reserved memory, and every block\n"
        "that the snapshot shows in the end. What the file cannot tell is taken from it or\n"
        "inferred, and named below the table. Exit status 0 only when all is equal.\n\n"
        "  vramlab validate traces/data/oom_fragmented.pickle.gz\n"
        "  vramlab validate *.pickle --out validate.csv",
    .options = options,
    .run = validate_run,
};

static const column columns[] = {
    {"recording", "recording", COLUMN_TEXT},
    {"outcome", "outcome", COLUMN_TEXT},
    {"events", NULL, COLUMN_NUMBER},
    {"allocations", "allocations", COLUMN_NUMBER},
    {"allocations_equal", "at the recorded address", COLUMN_NUMBER},
    {"segment_events", "segment events", COLUMN_NUMBER},
    {"segment_events_equal", "equal", COLUMN_NUMBER},
    {"out_of_memory", "OOM", COLUMN_NUMBER},
    {"out_of_memory_equal", NULL, COLUMN_NUMBER},
    {"retries", "retries", COLUMN_NUMBER},
    {"final_blocks", "final blocks", COLUMN_NUMBER},
    {"final_blocks_equal", "equal", COLUMN_NUMBER},
    {"peak_allocated_bytes", "peak allocated", COLUMN_NUMBER},
    {"peak_reserved_bytes", "peak reserved", COLUMN_NUMBER},
    {"recorded_peak_reserved_bytes", NULL, COLUMN_NUMBER},
    {"settings", NULL, COLUMN_TEXT},
    {"cap_bytes", NULL, COLUMN_NUMBER},
    {"cap_at_least_bytes", NULL, COLUMN_NUMBER},
    {"cap_below_bytes", NULL, COLUMN_NUMBER},
    {"empty_caches", NULL, COLUMN_NUMBER},
    {"delayed_frees", NULL, COLUMN_NUMBER},
    {"pools_inferred", NULL, COLUMN_NUMBER},
    {"blocks_before", NULL, COLUMN_NUMBER},
    {"bytes_before", NULL, COLUMN_NUMBER},
    {"slack_before_bytes", NULL, COLUMN_NUMBER},
    {"difference_event", NULL, COLUMN_NUMBER},
    {"difference", NULL, COLUMN_TEXT},
};

/* ------------------------------------------------------------------------------------------------
 * a row */

/* What differs from the defaults, as options of the backend. */
static void describe_settings(const vram_caching_settings *settings, char *text, size_t size)
{
    const vram_caching_settings defaults = vram_caching_defaults(settings->device_bytes);
    char bytes[VRAM_SIZE_TEXT];
    size_t used = 0;
    text[0] = '\0';
    if (settings->expandable)
        used += (size_t)snprintf(text + used, size - used, " expandable_segments");
    if (settings->max_split_bytes != defaults.max_split_bytes)
        used += (size_t)snprintf(text + used, size - used, " max_split_size=%s",
                                 vram_format_size(settings->max_split_bytes, bytes));
    if (settings->gc_threshold > 0)
        used += (size_t)snprintf(text + used, size - used, " garbage_collection_threshold=%g",
                                 settings->gc_threshold);
    if (settings->large_segment_bytes != defaults.large_segment_bytes)
        used += (size_t)snprintf(text + used, size - used, " large_segment_size=%s",
                                 vram_format_size(settings->large_segment_bytes, bytes));
    for (int i = 0; i < VRAM_CACHING_INTERVALS; i++)
        if (settings->roundup_divisions[i] > 1) {
            snprintf(text + used, size - used, " roundup_power2_divisions");
            break;
        }
}

static void set_count(table *rows, const char *name, uint64_t value)
{
    char text[32];
    table_set(rows, name, "%" PRIu64, value);
    table_show(rows, name, "%s", vram_format_count(value, text));
}

static void set_inferred(table *rows, const validate_report *report)
{
    set_count(rows, "empty_caches", report->empty_caches);
    set_count(rows, "delayed_frees", report->delayed_frees);
    set_count(rows, "pools_inferred", report->pools_inferred);
    set_count(rows, "blocks_before", report->before_blocks);
    set_count(rows, "bytes_before", report->before_bytes);
    set_count(rows, "slack_before_bytes", report->before_slack_bytes);
    set_count(rows, "cap_at_least_bytes", report->reserved_least_bytes);
    if (report->refused_least_bytes != UINT64_MAX)
        set_count(rows, "cap_below_bytes", report->refused_least_bytes);
    if (report->settings.cap_bytes != VRAM_CACHING_UNLIMITED)
        set_count(rows, "cap_bytes", report->settings.cap_bytes);
}

static void add_row(table *rows, const char *path, const validate_report *report)
{
    char settings[160];
    describe_settings(&report->settings, settings, sizeof settings);
    table_row(rows);
    table_set(rows, "recording", "%s", file_name(path));
    table_set(rows, "outcome", "%s", report->exact ? "exact" : "differs");
    set_count(rows, "events", report->events);
    set_count(rows, "allocations", report->allocations.recorded);
    set_count(rows, "allocations_equal", report->allocations.equal);
    set_count(rows, "segment_events", report->segment_events.recorded);
    set_count(rows, "segment_events_equal", report->segment_events.equal);
    set_count(rows, "out_of_memory", report->out_of_memory.recorded);
    set_count(rows, "out_of_memory_equal", report->out_of_memory.equal);
    set_count(rows, "retries", report->model.retries);
    set_count(rows, "final_blocks", report->final_blocks.recorded);
    set_count(rows, "final_blocks_equal", report->final_blocks.equal);
    set_count(rows, "peak_allocated_bytes", report->model.allocated_peak_bytes);
    set_count(rows, "peak_reserved_bytes", report->model.reserved_peak_bytes);
    set_count(rows, "recorded_peak_reserved_bytes", report->recorded_peak_reserved_bytes);
    table_set(rows, "settings", "%s", settings[0] == '\0' ? "defaults" : settings + 1);
    set_inferred(rows, report);
    if (report->exact)
        return;
    set_count(rows, "difference_event", report->difference_event);
    table_set(rows, "difference", "%s", report->difference);
}

/* ------------------------------------------------------------------------------------------------
 * below the table: what was not in the file, and the first difference */

static void print_cap(const validate_report *report, bool given)
{
    char cap[VRAM_SIZE_TEXT];
    char least[32];
    char refused[32];
    const uint64_t cap_bytes = report->settings.cap_bytes;
    if (report->refused_least_bytes == UINT64_MAX)
        printf("  memory cap: none was reached");
    else
        printf("  memory cap: at least %s bytes, below %s",
               vram_format_count(report->reserved_least_bytes, least),
               vram_format_count(report->refused_least_bytes, refused));
    if (cap_bytes != VRAM_CACHING_UNLIMITED)
        printf("; %s %s", given ? "given:" : "taken:", vram_format_size(cap_bytes, cap));
    puts("");
}

static void print_counted(uint64_t count, const char *text)
{
    char number[32];
    if (count > 0)
        printf("  %s %s\n", vram_format_count(count, number), text);
}

static void print_notes(const char *path, const validate_report *report, bool cap_given)
{
    char settings[160];
    describe_settings(&report->settings, settings, sizeof settings);
    printf("\n%s, settings:%s\n", file_name(path), settings[0] == '\0' ? " defaults" : settings);
    print_cap(report, cap_given);
    print_counted(report->bases, "segment addresses: the driver's choice, taken from the file");
    print_counted(report->delayed_frees,
                  "delayed releases: the moment of completion taken from the file");
    print_counted(report->empty_caches, "calls of empty_cache inferred from what was given back");
    print_counted(report->pools_inferred,
                  "segments inferred to have been a graph capture's: they are gone in the end");
    if (report->before_blocks > 0) {
        char blocks[32];
        char bytes[32];
        char slack[32];
        printf("  %s blocks of %s bytes were there before the history begins, %s of them slack "
               "told by small gaps or later placements\n",
               vram_format_count(report->before_blocks, blocks),
               vram_format_count(report->before_bytes, bytes),
               vram_format_count(report->before_slack_bytes, slack));
    }
    if (!report->exact)
        printf("  FIRST DIFFERENCE at event %" PRIu64 ": %s\n", report->difference_event,
               report->difference);
}

/* ------------------------------------------------------------------------------------------------
 * the command */

/* The caller's options as the library's. */
static bool read_options(const fields *given, validate_options *how, vram_error *error)
{
    *how = (validate_options){.device = given->device};
    vram_error why = {""};
    if (given->cap != NULL && !vram_parse_size(given->cap, 0, &how->cap_bytes, &why))
        return vram_fail(error, "--cap: %s", why.text);
    if (given->cap != NULL && how->cap_bytes == 0)
        return vram_fail(error,
                         "--cap: '%s' is no memory at all: write what PyTorch was allowed, "
                         "such as 3GiB, or leave it out to have it inferred",
                         given->cap);
    if (given->cut != NULL && !vram_parse_ratio(given->cut, &how->cut_share, &why))
        return vram_fail(error, "--cut: %s", why.text);
    return how->cut_share < 1 ||
           vram_fail(error, "--cut: '%s' leaves nothing: write less than 1", given->cut);
}

static bool validate_file(const char *path, const validate_options *how, validate_report *report,
                          vram_error *error)
{
    vram_snapshot *snapshot = NULL;
    if (!vram_snapshot_open(path, NULL, &snapshot, error))
        return false;
    vram_error why = {""};
    const bool done = validate_recording(snapshot, how, report, &why) ||
                      vram_fail(error, "%s: %s", path, why.text);
    vram_snapshot_close(snapshot);
    return done;
}

static int validate_all(const fields *given, const validate_options *how, char **paths, int count,
                        table *rows, validate_report *reports)
{
    bool exact = true;
    vram_error error = {""};
    for (int i = 0; i < count; i++) {
        if (!validate_file(paths[i], how, &reports[i], &error))
            return fail_with(&command_validate, "%s", error.text);
        add_row(rows, paths[i], &reports[i]);
        exact = exact && reports[i].exact;
    }
    const table_format format = table_format_of(given->format);
    table_write(rows, format, stdout);
    for (int i = 0; format == TABLE_TEXT && i < count; i++)
        print_notes(paths[i], &reports[i], given->cap != NULL);
    if (given->out != NULL && !table_save(rows, TABLE_CSV, given->out, &error))
        return fail_with(&command_validate, "--out: %s", error.text);
    return exact ? EXIT_DONE : EXIT_NO;
}

static int validate_run(int count, char **arguments)
{
    fields given = {.format = "table"};
    int status = options_read(&command_validate, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (count == 0)
        return fail_with(&command_validate, "a recording is expected: vramlab validate SNAPSHOT");
    validate_options how;
    vram_error error = {""};
    if (!read_options(&given, &how, &error))
        return fail_with(&command_validate, "%s", error.text);
    validate_report *reports = NULL;
    size_t capacity = 0;
    if (!vram_reserve((void **)&reports, &capacity, (size_t)count, sizeof *reports))
        return fail_with(&command_validate, "out of host memory");
    table *rows = table_new(columns, sizeof columns / sizeof columns[0]);
    status = validate_all(&given, &how, arguments, count, rows, reports);
    table_free(rows);
    free(reports);
    return status;
}
