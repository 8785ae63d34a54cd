/*
 * rmm_log.c - RAPIDS RMM's debug log: "[thread][HH:MM:SS:micros][level] text".
 *
 * At its usual level it holds the banner and what the pool was refused; at level trace also
 * allocations and frees. A line says the latter when its text is
 *
 *     [A][Stream 0x1][Upstream 4096B][FAILURE ...]    an ask that was refused
 *     [A][stream 0x1][4096B][0x7f8a40000000]          an allocation
 *     [D][stream 0x1][4096B][0x7f8a40000000]          its free
 *
 * and is passed over otherwise. RMM source, pool_memory_resource.hpp and
 * stream_ordered_memory_resource.hpp.
 */
#include "formats.h"

#include <strings.h>

static int log_probe(const char *head, size_t head_bytes)
{
    vram_scan scan = scan_over(head, head_bytes);
    const vram_scan line = scan_until(&scan, "\n");
    return line.end > line.at && *line.at == '[' && scan_holds(&line, "RMM LOG BEGIN") ? 3 : 0;
}

static bool log_open(vram_source *source, vram_error *error)
{
    (void)error;
    source->info->unit_bytes = 256;
    source->info->has_clock = true;
    return true;
}

static void log_close(vram_source *source)
{
    (void)source;
}

/* The text between the next pair of brackets. */
static bool take_bracket(vram_scan *scan, vram_scan *inside)
{
    scan_blanks(scan);
    if (!scan_char(scan, '['))
        return false;
    *inside = scan_until(scan, "]");
    return scan_char(scan, ']');
}

/* "Stream 0x1" or "stream 0x1" */
static bool take_stream(vram_scan field, uint64_t *stream)
{
    if (field.end - field.at < 7 || strncasecmp(field.at, "stream ", 7) != 0)
        return false;
    field.at += 7;
    return scan_number(&field, stream) && scan_done(&field);
}

/* "4096B" */
static bool take_size(vram_scan field, uint64_t *size_bytes)
{
    return scan_decimal(&field, size_bytes) && scan_char(&field, 'B') && scan_done(&field);
}

/* What the text of a line says happened; false for nothing. */
static bool take_event(vram_scan text, vram_raw *event)
{
    vram_scan what, stream, size, where;
    if (!take_bracket(&text, &what) || !take_bracket(&text, &stream) ||
        !take_bracket(&text, &size) || !take_bracket(&text, &where))
        return false;
    const bool allocates = scan_is(&what, "A");
    if ((!allocates && !scan_is(&what, "D")) || !take_stream(stream, &event->stream))
        return false;
    const bool refused = allocates && scan_text(&size, "Upstream ") && scan_text(&where, "FAILURE");
    if (!take_size(size, &event->size_bytes))
        return false;
    event->kind = refused ? VRAM_EVENT_TRY : allocates ? VRAM_EVENT_ALLOC : VRAM_EVENT_FREE;
    return refused || (scan_number(&where, &event->id) && scan_done(&where));
}

static vram_step log_next(vram_source *source, vram_raw *event, vram_error *error)
{
    for (;;) {
        vram_scan line, thread, time, level;
        const vram_step step = vram_source_line(source, &line, error);
        if (step != VRAM_STEP_EVENT)
            return step;
        *event = (vram_raw){0};
        bool of_day;
        if (!take_bracket(&line, &thread) || !take_bracket(&line, &time) ||
            !take_bracket(&line, &level) || !vram_scan_time(&time, &event->time_ns, &of_day)) {
            if (!scan_done(&line) && !vram_source_anomaly(source, VRAM_ANOMALY_SKIPPED, error,
                                                          "not a line of RMM's log"))
                return VRAM_STEP_ERROR;
            continue;
        }
        if (take_event(line, event))
            return VRAM_STEP_EVENT;
    }
}

const vram_format vram_format_rmm_log = {
    .name = "rmm-log",
    .summary = "RAPIDS RMM debug log",
    .probe = log_probe,
    .open = log_open,
    .next = log_next,
    .close = log_close,
};
