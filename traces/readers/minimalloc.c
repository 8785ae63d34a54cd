/*
 * minimalloc.c - MiniMalloc's CSV of buffer lifetimes: a plan's input, replayed as events.
 *
 *     id,lower,upper,size[,alignment,...]
 *     b1,0,9,4
 *
 * Columns are found by name: lower, begin or start; upper, or end, which is inclusive; others are
 * left aside. Times are logical and are taken as ns. At equal times frees come before allocations,
 * else in the order of the rows. Numeric ids are kept when they all differ; otherwise blocks are
 * numbered by row and the ids become tags. MiniMalloc, README.
 */
#include "csv.h"
#include "formats.h"
#include "intervals.h"

#include <stdlib.h>

typedef struct minimalloc {
    vram_intervals intervals;
    size_t id, lower, upper, size, alignment; /* columns */
    bool inclusive;
    uint64_t odd_rows; /* that end before they start, or at once */
    uint64_t next_odd;
} minimalloc;

static bool find_columns(minimalloc *state, vram_scan line)
{
    vram_csv header;
    vram_csv_split(line, &header);
    state->id = vram_csv_column(&header, "id|buffer|buffer_id");
    state->lower = vram_csv_column(&header, "lower|begin|start");
    state->upper = vram_csv_column(&header, "upper|end");
    state->inclusive = vram_csv_column(&header, "upper") == VRAM_CSV_NONE;
    state->size = vram_csv_column(&header, "size");
    state->alignment = vram_csv_column(&header, "alignment");
    return state->lower != VRAM_CSV_NONE && state->upper != VRAM_CSV_NONE &&
           state->size != VRAM_CSV_NONE;
}

static int minimalloc_probe(const char *head, size_t head_bytes)
{
    vram_scan scan = scan_over(head, head_bytes);
    minimalloc columns;
    return find_columns(&columns, scan_until(&scan, "\r\n")) ? 2 : 0;
}

static void minimalloc_close(vram_source *source)
{
    minimalloc *state = source->state;
    vram_intervals_free(&state->intervals);
    free(state);
    source->state = NULL;
}

static bool read_field(vram_source *source, const vram_csv *row, size_t column, uint64_t *number,
                       const char *what, vram_error *error)
{
    vram_scan field = vram_csv_field(row, column);
    const vram_scan start = field;
    if (scan_decimal(&field, number) && scan_done(&field))
        return true;
    vram_source_expected(source, &start, what, error);
    return false;
}

static bool read_alignment(vram_source *source, const vram_csv *row, vram_interval *interval,
                           vram_error *error)
{
    const minimalloc *state = source->state;
    const vram_scan field = vram_csv_field(row, state->alignment);
    uint64_t align_bytes = 1;
    if (scan_done(&field))
        return true;
    if (!read_field(source, row, state->alignment, &align_bytes, "an alignment", error))
        return false;
    if (align_bytes == 0 || (align_bytes & (align_bytes - 1)) != 0) {
        vram_source_expected(source, &field, "an alignment, a power of two", error);
        return false;
    }
    interval->align_log2 = (uint8_t)__builtin_ctzll(align_bytes);
    return true;
}

static bool read_row(vram_source *source, vram_scan line, vram_error *error)
{
    minimalloc *state = source->state;
    vram_csv row;
    vram_csv_split(line, &row);
    vram_interval interval = {.id = state->intervals.count};
    if (!read_field(source, &row, state->lower, &interval.start, "the time of its start", error) ||
        !read_field(source, &row, state->upper, &interval.end, "the time of its end", error) ||
        !read_field(source, &row, state->size, &interval.size_bytes, "a size", error) ||
        !read_alignment(source, &row, &interval, error))
        return false;
    interval.end += state->inclusive && interval.end < UINT64_MAX;
    if (interval.end <= interval.start) {
        state->odd_rows++;
        return true;
    }
    vram_raw named = {0};
    if (!vram_source_tag(source, vram_csv_field(&row, state->id), &named, error))
        return false;
    interval.tag = named.tag;
    if (vram_intervals_add(&state->intervals, &interval))
        return true;
    vram_source_fail(source, error, "out of memory");
    return false;
}

/* Whether every id is a number in its plainest form, and no two are the same. */
static bool ids_are_numbers(vram_source *source, vram_idmap *seen)
{
    const minimalloc *state = source->state;
    for (size_t i = 0; i < state->intervals.count; i++) {
        const char *text = vram_names_text(&source->tags, state->intervals.rows[i].tag);
        vram_scan scan = scan_over(text, strlen(text));
        const bool plain = *text != '0' || text[1] == '\0';
        uint64_t id;
        if (!plain || !scan_decimal(&scan, &id) || !scan_done(&scan) ||
            vram_idmap_find(seen, id) != NULL || !vram_idmap_put(seen, id, 0))
            return false;
    }
    return true;
}

static void take_numbers(vram_source *source)
{
    minimalloc *state = source->state;
    for (size_t i = 0; i < state->intervals.count; i++) {
        vram_interval *row = &state->intervals.rows[i];
        const char *text = vram_names_text(&source->tags, row->tag);
        vram_scan scan = scan_over(text, strlen(text));
        scan_decimal(&scan, &row->id);
        row->tag = 0;
    }
    vram_names_free(&source->tags);
}

static bool read_all(vram_source *source, vram_error *error)
{
    minimalloc *state = source->state;
    vram_scan line;
    vram_step step = vram_source_line(source, &line, error);
    if (step != VRAM_STEP_EVENT)
        return false;
    if (!find_columns(state, line)) {
        vram_source_expected(source, &line, "columns lower, upper and size", error);
        return false;
    }
    while ((step = vram_source_line(source, &line, error)) == VRAM_STEP_EVENT) {
        scan_blanks(&line);
        if (!scan_done(&line) && !read_row(source, line, error))
            return false;
    }
    if (step == VRAM_STEP_ERROR)
        return false;
    vram_idmap seen = {0};
    if (ids_are_numbers(source, &seen))
        take_numbers(source);
    vram_idmap_free(&seen);
    if (vram_intervals_sort(&state->intervals))
        return true;
    vram_source_fail(source, error, "out of memory");
    return false;
}

static bool minimalloc_open(vram_source *source, vram_error *error)
{
    minimalloc *state = calloc(1, sizeof *state);
    if (state == NULL)
        return vram_fail(error, "%s: out of memory", source->path);
    source->state = state;
    if (!read_all(source, error)) {
        minimalloc_close(source);
        return false;
    }
    source->info->unit_bytes = 1;
    source->info->has_clock = true;
    return true;
}

static vram_step minimalloc_next(vram_source *source, vram_raw *event, vram_error *error)
{
    minimalloc *state = source->state;
    for (; state->next_odd < state->odd_rows; state->next_odd++)
        if (!vram_source_anomaly(source, VRAM_ANOMALY_SKIPPED, error,
                                 "a buffer ends before it has lived"))
            return VRAM_STEP_ERROR;
    return vram_intervals_next(&state->intervals, event);
}

static bool minimalloc_rewind(vram_source *source, vram_error *error)
{
    (void)error;
    minimalloc *state = source->state;
    vram_intervals_rewind(&state->intervals);
    state->next_odd = 0;
    return true;
}

const vram_format vram_format_minimalloc = {
    .name = "minimalloc",
    .summary = "MiniMalloc CSV of buffer lifetimes",
    .probe = minimalloc_probe,
    .open = minimalloc_open,
    .next = minimalloc_next,
    .rewind = minimalloc_rewind,
    .close = minimalloc_close,
};
