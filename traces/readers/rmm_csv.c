/*
 * rmm_csv.c - logs of RAPIDS RMM's allocations, in three generations of columns.
 *
 *     Thread,Time,Action,Pointer,Size,Stream          2020 and later
 *     140573312345856,12:34:56.123456,allocate,0x7f8a40000000,1024,0x0
 *
 *     Event Type,Device ID,Address,Stream,Size (bytes),...,Start,End,Elapsed,Location      2019
 *
 * The time of day has a colon before the microseconds until 2021; it wraps at midnight, and a step
 * back by more than half a day is taken as that. "allocate failure" (2022 and later) becomes a TRY.
 * RMM source, logging_resource_adaptor.hpp and the issue #75.
 */
#include "csv.h"
#include "formats.h"

#include <stdlib.h>

enum { FIRST_LINE_MAX = 512 };
#define DAY_NS (UINT64_C(86400) * 1000000000)

typedef struct rmm_csv {
    size_t time, action, address, size, stream, device; /* columns */
    uint64_t day_ns;                                    /* what midnights have added */
    uint64_t last_ns;
    vram_csv row;
} rmm_csv;

static int rmm_probe(const char *head, size_t head_bytes)
{
    vram_scan scan = scan_over(head, head_bytes < FIRST_LINE_MAX ? head_bytes : FIRST_LINE_MAX);
    vram_csv header;
    vram_csv_split(scan_until(&scan, "\r\n"), &header);
    const bool now = vram_csv_column(&header, "Action") != VRAM_CSV_NONE &&
                     vram_csv_column(&header, "Pointer") != VRAM_CSV_NONE;
    const bool then = vram_csv_column(&header, "Event Type") != VRAM_CSV_NONE &&
                      vram_csv_column(&header, "Address") != VRAM_CSV_NONE;
    return now || then ? 3 : 0;
}

static void rmm_close(vram_source *source)
{
    free(source->state);
    source->state = NULL;
}

static bool read_header(vram_source *source, rmm_csv *state, vram_error *error)
{
    vram_scan line;
    if (vram_source_line(source, &line, error) != VRAM_STEP_EVENT)
        return false;
    vram_csv *header = &state->row;
    vram_csv_split(line, header);
    state->time = vram_csv_column(header, "Time|Start");
    state->action = vram_csv_column(header, "Action|Event Type");
    state->address = vram_csv_column(header, "Pointer|Address");
    state->size = vram_csv_column(header, "Size|Size (bytes)");
    state->stream = vram_csv_column(header, "Stream");
    state->device = vram_csv_column(header, "Device ID");
    if (state->time != VRAM_CSV_NONE && state->size != VRAM_CSV_NONE)
        return true;
    vram_source_expected(source, &line, "columns for time and size", error);
    return false;
}

static bool rmm_open(vram_source *source, vram_error *error)
{
    rmm_csv *state = calloc(1, sizeof *state);
    if (state == NULL)
        return vram_fail(error, "%s: out of memory", source->path);
    source->state = state;
    if (!read_header(source, state, error)) {
        rmm_close(source);
        return false;
    }
    source->info->unit_bytes = 256;
    source->info->has_clock = true;
    return true;
}

static bool read_time(vram_source *source, uint64_t *time_ns, vram_error *error)
{
    rmm_csv *state = source->state;
    vram_scan field = vram_csv_field(&state->row, state->time);
    const vram_scan start = field;
    bool of_day;
    if (!vram_scan_time(&field, time_ns, &of_day) || !scan_done(&field)) {
        vram_source_expected(source, &start, "a time such as 12:34:56.123456", error);
        return false;
    }
    if (of_day && state->last_ns > *time_ns && state->last_ns - *time_ns > DAY_NS / 2) {
        state->day_ns += DAY_NS;
        if (!vram_source_anomaly(source, VRAM_ANOMALY_CLOCK, error, "the clock passed midnight"))
            return false;
    }
    state->last_ns = *time_ns;
    *time_ns += state->day_ns;
    return true;
}

/* A pointer as printf and fmt have written it. */
static bool read_address(vram_source *source, vram_raw *event, vram_error *error)
{
    const rmm_csv *state = source->state;
    vram_scan field = vram_csv_field(&state->row, state->address);
    const vram_scan start = field;
    const bool nil = scan_text(&field, "(nil)");
    if ((!nil && !scan_number(&field, &event->id)) || !scan_done(&field)) {
        vram_source_expected(source, &start, "a pointer such as 0x7f8a40000000", error);
        return false;
    }
    event->null_id = nil || event->id == 0;
    return true;
}

static bool read_number(vram_source *source, size_t column, uint64_t *number, const char *what,
                        vram_error *error)
{
    const rmm_csv *state = source->state;
    vram_scan field = vram_csv_field(&state->row, column);
    const vram_scan start = field;
    if (scan_number(&field, number) && scan_done(&field))
        return true;
    vram_source_expected(source, &start, what, error);
    return false;
}

static bool read_action(vram_source *source, vram_raw *event, vram_error *error)
{
    static const struct {
        const char *name;
        vram_event_kind kind;
    } actions[] = {{"allocate", VRAM_EVENT_ALLOC},  {"free", VRAM_EVENT_FREE},
                   {"deallocate", VRAM_EVENT_FREE}, {"allocate failure", VRAM_EVENT_TRY},
                   {"Alloc", VRAM_EVENT_ALLOC},     {"Free", VRAM_EVENT_FREE},
                   {"Realloc", VRAM_EVENT_RESIZE}};
    const rmm_csv *state = source->state;
    const vram_scan field = vram_csv_field(&state->row, state->action);
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (scan_is(&field, actions[i].name)) {
            event->kind = (uint8_t)actions[i].kind;
            return true;
        }
    vram_source_expected(source, &field, "allocate, free, allocate failure, Alloc, Free or Realloc",
                         error);
    return false;
}

static bool read_row(vram_source *source, vram_raw *event, bool *other_device, vram_error *error)
{
    const rmm_csv *state = source->state;
    uint64_t device = source->options->device;
    if (state->device != VRAM_CSV_NONE &&
        !read_number(source, state->device, &device, "the number of a device", error))
        return false;
    *other_device = device != source->options->device;
    if (*other_device)
        return true;
    if (!read_action(source, event, error) || !read_time(source, &event->time_ns, error) ||
        !read_address(source, event, error) ||
        !read_number(source, state->size, &event->size_bytes, "a size in bytes", error))
        return false;
    if (event->kind == VRAM_EVENT_ALLOC && event->null_id && event->size_bytes > 0)
        event->kind = VRAM_EVENT_TRY;
    return state->stream == VRAM_CSV_NONE ||
           read_number(source, state->stream, &event->stream, "a stream's handle", error);
}

static vram_step rmm_next(vram_source *source, vram_raw *event, vram_error *error)
{
    rmm_csv *state = source->state;
    for (;;) {
        vram_scan line;
        const vram_step step = vram_source_line(source, &line, error);
        if (step != VRAM_STEP_EVENT)
            return step;
        scan_blanks(&line);
        if (scan_done(&line))
            continue;
        vram_csv_split(line, &state->row);
        bool other_device;
        if (!read_row(source, event, &other_device, error))
            return VRAM_STEP_ERROR;
        if (!other_device)
            return VRAM_STEP_EVENT;
    }
}

const vram_format vram_format_rmm_csv = {
    .name = "rmm-csv",
    .summary = "RAPIDS RMM allocation log (CSV of 2019, 2020 and now)",
    .probe = rmm_probe,
    .open = rmm_open,
    .next = rmm_next,
    .close = rmm_close,
};
