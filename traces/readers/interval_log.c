/*
 * interval_log.c - three numbers a line: event of the allocation, event of the free, bytes.
 *
 * Each event number is used once (allocatorSim's input); when one is used again, frees come first.
 */
#include "formats.h"
#include "intervals.h"

#include <stdlib.h>

static bool read_row(vram_scan line, vram_interval *row)
{
    scan_blanks(&line);
    if (!scan_decimal(&line, &row->start) || !scan_blanks(&line) ||
        !scan_decimal(&line, &row->end) || !scan_blanks(&line) ||
        !scan_decimal(&line, &row->size_bytes))
        return false;
    scan_blanks(&line);
    return scan_done(&line);
}

/* Only lines of this kind in the head, the last, which may be cut, left aside. */
static int interval_probe(const char *head, size_t head_bytes)
{
    vram_scan scan = scan_over(head, head_bytes);
    int lines = 0;
    while (!scan_done(&scan)) {
        const vram_scan line = scan_until(&scan, "\r\n");
        vram_interval row;
        const bool fits = read_row(line, &row) && row.start < row.end;
        if (!fits && (!scan_done(&scan) || lines == 0))
            return 0;
        lines++;
        while (scan_char(&scan, '\r') || scan_char(&scan, '\n'))
            continue;
    }
    return lines > 0 ? 1 : 0;
}

static void interval_close(vram_source *source)
{
    vram_intervals_free(source->state);
    free(source->state);
    source->state = NULL;
}

static bool read_all(vram_source *source, vram_intervals *intervals, vram_error *error)
{
    vram_scan line;
    vram_step step;
    while ((step = vram_source_line(source, &line, error)) == VRAM_STEP_EVENT) {
        vram_interval row = {.id = intervals->count};
        scan_blanks(&line);
        if (scan_done(&line))
            continue;
        if (!read_row(line, &row) || row.start >= row.end) {
            vram_source_expected(source, &line, "three numbers: start, a later end, bytes", error);
            return false;
        }
        if (!vram_intervals_add(intervals, &row)) {
            vram_source_fail(source, error, "out of memory");
            return false;
        }
    }
    if (step == VRAM_STEP_ERROR)
        return false;
    if (vram_intervals_sort(intervals))
        return true;
    vram_source_fail(source, error, "out of memory");
    return false;
}

static bool interval_open(vram_source *source, vram_error *error)
{
    vram_intervals *intervals = calloc(1, sizeof *intervals);
    if (intervals == NULL)
        return vram_fail(error, "%s: out of memory", source->path);
    source->state = intervals;
    if (read_all(source, intervals, error))
        return true;
    interval_close(source);
    return false;
}

static vram_step interval_next(vram_source *source, vram_raw *event, vram_error *error)
{
    (void)error;
    return vram_intervals_next(source->state, event);
}

static bool interval_rewind(vram_source *source, vram_error *error)
{
    (void)error;
    vram_intervals_rewind(source->state);
    return true;
}

const vram_format vram_format_interval_log = {
    .name = "interval-log",
    .summary = "three numbers a line: event of allocation, event of free, bytes",
    .probe = interval_probe,
    .open = interval_open,
    .next = interval_next,
    .rewind = interval_rewind,
    .close = interval_close,
};
