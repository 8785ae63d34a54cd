/*
 * cmd_trace_info.c - `vramlab trace info`: what a trace holds.
 */
#include "cli/job.h"

#include <string.h>

typedef struct fields {
    uint32_t device;
    bool strict;
    const char *inflate_limit;
    const char *format;
} fields;

static const option_row options[] = {
    {.name = "--device",
     .kind = OPTION_INDEX,
     .value = "N",
     .offset = offsetof(fields, device),
     .help = "PyTorch snapshots: whose history to read (default 0)"},
    {.name = "--strict",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, strict),
     .help = "an anomaly of the trace is an error rather than a count"},
    {.name = "--inflate-limit",
     .kind = OPTION_TEXT,
     .value = "SIZE",
     .offset = offsetof(fields, inflate_limit),
     .help = "most bytes a packed file may unfold to; default: 64 GiB"},
    {.name = "--format",
     .kind = OPTION_WORD,
     .words = "table|csv|json",
     .offset = offsetof(fields, format),
     .help = "csv and json: one row a trace"},
    {.name = NULL},
};

static int info_run(int count, char **arguments);

const command command_trace_info = {
    .name = "trace info",
    .usage = "TRACE... [--device N] [--strict] [--format table|csv|json]",
    .summary = "what a trace holds: events, sizes, peak live, anomalies",
    .text =
        "Reads each trace once and tells its format, events, sizes, most bytes live at once, what\n"
        "the recording program's own allocator had reserved, and what is odd about the file.\n\n"
        "  vramlab trace info traces/data/*.pickle.gz",
    .options = options,
    .run = info_run,
};

static const column columns[] = {
    {"trace", NULL, COLUMN_TEXT},
    {"format", NULL, COLUMN_TEXT},
    {"unit_bytes", NULL, COLUMN_NUMBER},
    {"recorded_events", NULL, COLUMN_NUMBER},
    {"events", NULL, COLUMN_NUMBER},
    {"allocs", NULL, COLUMN_NUMBER},
    {"frees", NULL, COLUMN_NUMBER},
    {"resizes", NULL, COLUMN_NUMBER},
    {"retires", NULL, COLUMN_NUMBER},
    {"refused_asks", NULL, COLUMN_NUMBER},
    {"seconds", NULL, COLUMN_NUMBER},
    {"least_bytes", NULL, COLUMN_NUMBER},
    {"greatest_bytes", NULL, COLUMN_NUMBER},
    {"peak_live_bytes", NULL, COLUMN_NUMBER},
    {"peak_live_unit_bytes", NULL, COLUMN_NUMBER},
    {"peak_live_blocks", NULL, COLUMN_NUMBER},
    {"live_at_end_blocks", NULL, COLUMN_NUMBER},
    {"live_at_end_bytes", NULL, COLUMN_NUMBER},
    {"streams", NULL, COLUMN_NUMBER},
    {"tags", NULL, COLUMN_NUMBER},
    {"stacks", NULL, COLUMN_NUMBER},
    {"blocks_before", NULL, COLUMN_NUMBER},
    {"bytes_before", NULL, COLUMN_NUMBER},
    {"peak_reserved_bytes", NULL, COLUMN_NUMBER},
    {"peak_allocated_bytes", NULL, COLUMN_NUMBER},
    {"out_of_memory", NULL, COLUMN_NUMBER},
    {"unknown_frees", NULL, COLUMN_NUMBER},
    {"double_frees", NULL, COLUMN_NUMBER},
    {"null_frees", NULL, COLUMN_NUMBER},
    {"zero_sizes", NULL, COLUMN_NUMBER},
    {"allocs_of_live", NULL, COLUMN_NUMBER},
    {"never_freed", NULL, COLUMN_NUMBER},
    {"wrong_headers", NULL, COLUMN_NUMBER},
    {"clock_steps_back", NULL, COLUMN_NUMBER},
    {"unknown_resizes", NULL, COLUMN_NUMBER},
    {"skipped", NULL, COLUMN_NUMBER},
};

/* Columns of the anomalies, in their order. */
static const char *const anomaly_columns[] = {
    "unknown_frees", "double_frees",  "null_frees",       "zero_sizes",      "allocs_of_live",
    "never_freed",   "wrong_headers", "clock_steps_back", "unknown_resizes", "skipped",
};
_Static_assert(sizeof anomaly_columns / sizeof anomaly_columns[0] == VRAM_ANOMALIES,
               "a column for each anomaly");

static void set_count(table *rows, const char *name, uint64_t count)
{
    table_set(rows, name, "%llu", (unsigned long long)count);
}

static void add_row(table *rows, const vram_trace_info *info, const vram_trace_summary *summary)
{
    table_row(rows);
    table_set(rows, "trace", "%s", file_name(info->path));
    table_set(rows, "format", "%s", info->format);
    if (info->has_clock)
        table_set(rows, "seconds", "%.6f", (double)(summary->last_ns - summary->first_ns) / 1e9);
    const vram_recorded *recorded = &info->recorded;
    const struct {
        const char *name;
        uint64_t count;
    } counts[] = {
        {"unit_bytes", info->unit_bytes},
        {"recorded_events",
         recorded->device_events > 0 ? recorded->device_events : summary->events},
        {"events", summary->events},
        {"allocs", summary->by_kind[VRAM_EVENT_ALLOC]},
        {"frees", summary->by_kind[VRAM_EVENT_FREE]},
        {"resizes", summary->by_kind[VRAM_EVENT_RESIZE]},
        {"retires", summary->by_kind[VRAM_EVENT_RETIRE]},
        {"refused_asks", summary->by_kind[VRAM_EVENT_TRY]},
        {"least_bytes", summary->least_bytes},
        {"greatest_bytes", summary->greatest_bytes},
        {"peak_live_bytes", summary->peak_live_bytes},
        {"peak_live_unit_bytes", summary->peak_live_unit_bytes},
        {"peak_live_blocks", summary->peak_live_blocks},
        {"live_at_end_blocks", summary->live_at_end_blocks},
        {"live_at_end_bytes", summary->live_at_end_bytes},
        {"streams", info->streams},
        {"tags", info->tags},
        {"stacks", info->stacks},
        {"blocks_before", recorded->blocks_before},
        {"bytes_before", recorded->bytes_before},
        {"peak_reserved_bytes", recorded->peak_reserved_bytes},
        {"peak_allocated_bytes", recorded->peak_allocated_bytes},
        {"out_of_memory", recorded->out_of_memory},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        set_count(rows, counts[i].name, counts[i].count);
    for (size_t i = 0; i < VRAM_ANOMALIES; i++)
        set_count(rows, anomaly_columns[i], info->anomalies[i]);
}

static void print_size(const char *what, uint64_t size_bytes)
{
    char size[VRAM_SIZE_TEXT];
    char count[32];
    printf("  %-28s %s (%s B)\n", what, vram_format_size(size_bytes, size),
           vram_format_count(size_bytes, count));
}

static void print_count(const char *what, uint64_t number)
{
    char count[32];
    printf("  %-28s %s\n", what, vram_format_count(number, count));
}

static void print_info(const vram_trace_info *info, const vram_trace_summary *summary)
{
    char count[32];
    printf("%s\n", info->path);
    printf("  %-28s %s\n", "format", info->format);
    if (info->recorded.device_events > 0)
        print_count("events in the file", info->recorded.device_events);
    print_count("events to replay", summary->events);
    for (size_t i = 0; i < VRAM_EVENT_KINDS; i++)
        if (summary->by_kind[i] > 0)
            printf("    %-26s %s\n", vram_event_kind_name((vram_event_kind)i),
                   vram_format_count(summary->by_kind[i], count));
    if (info->has_clock)
        printf("  %-28s %.6f s\n", "span of time",
               (double)(summary->last_ns - summary->first_ns) / 1e9);
    print_size("unit and default alignment", info->unit_bytes);
    print_size("least request", summary->least_bytes);
    print_size("greatest request", summary->greatest_bytes);
    print_size("peak live", summary->peak_live_bytes);
    print_size("peak live in units", summary->peak_live_unit_bytes);
    print_count("blocks live at that moment", summary->peak_live_blocks);
    if (summary->live_at_end_blocks > 0) {
        print_count("blocks live at the end", summary->live_at_end_blocks);
        print_size("bytes live at the end", summary->live_at_end_bytes);
    }
    if (info->streams > 1)
        print_count("streams", info->streams);
    if (info->tags > 1)
        print_count("tags", info->tags - 1u);
    if (info->stacks > 1)
        print_count("different stacks", info->stacks - 1u);
    if (info->recorded.blocks_before > 0) {
        print_count("blocks live before recording", info->recorded.blocks_before);
        print_size("bytes live before recording", info->recorded.bytes_before);
    }
    if (info->recorded.peak_reserved_bytes > 0) {
        print_size("PyTorch: peak reserved", info->recorded.peak_reserved_bytes);
        if (info->recorded.peak_allocated_bytes > 0)
            print_size("PyTorch: peak allocated", info->recorded.peak_allocated_bytes);
        print_count("PyTorch: out of memory", info->recorded.out_of_memory);
    }
    for (size_t i = 0; i < VRAM_ANOMALIES; i++)
        if (info->anomalies[i] > 0)
            printf("  %-28s %s\n", vram_anomaly_name((vram_anomaly)i),
                   vram_format_count(info->anomalies[i], count));
}

/* Reads one trace and adds or prints what it holds. */
static bool inform(const char *path, const fields *given, table *rows, vram_error *error)
{
    vram_trace_options how = {
        .device = given->device, .strict = given->strict, .progress = progress_show};
    if (given->inflate_limit != NULL &&
        !vram_parse_size(given->inflate_limit, 0, &how.inflate_limit, error))
        return false;
    vram_trace *trace = NULL;
    vram_trace_summary summary;
    progress_begin(file_name(path));
    const bool read =
        vram_trace_open(path, &how, &trace, error) && vram_trace_summarise(trace, &summary, error);
    progress_end();
    if (read && rows != NULL)
        add_row(rows, vram_trace_info_of(trace), &summary);
    else if (read)
        print_info(vram_trace_info_of(trace), &summary);
    vram_trace_close(trace);
    return read;
}

static int info_run(int count, char **arguments)
{
    fields given = {.format = "table"};
    int status = options_read(&command_trace_info, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (count == 0)
        return fail_with(&command_trace_info, "a trace is expected: vramlab trace info TRACE");
    const table_format format = table_format_of(given.format);
    table *rows =
        format == TABLE_TEXT ? NULL : table_new(columns, sizeof columns / sizeof columns[0]);
    status = EXIT_DONE;
    for (int i = 0; i < count; i++) {
        vram_error error = {""};
        if (!inform(arguments[i], &given, rows, &error))
            status = fail_with(&command_trace_info, "%s", error.text);
    }
    if (rows != NULL)
        table_write(rows, format, stdout);
    table_free(rows);
    return status;
}
