/* intervals.c - see intervals.h. */
#include "intervals.h"

#include <stdlib.h>

bool vram_intervals_add(vram_intervals *intervals, const vram_interval *row)
{
    if (intervals->count >= UINT32_MAX ||
        !vram_reserve((void **)&intervals->rows, &intervals->capacity, intervals->count + 1,
                      sizeof *intervals->rows))
        return false;
    intervals->rows[intervals->count++] = *row;
    return true;
}

static int compare(uint64_t a, uint64_t b, uint32_t first, uint32_t second)
{
    if (a != b)
        return a < b ? -1 : 1;
    return first < second ? -1 : first > second;
}

static int earlier_start(const void *left, const void *right, void *rows)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const vram_interval *row = rows;
    return compare(row[a].start, row[b].start, a, b);
}

static int earlier_end(const void *left, const void *right, void *rows)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const vram_interval *row = rows;
    return compare(row[a].end, row[b].end, a, b);
}

bool vram_intervals_sort(vram_intervals *intervals)
{
    const size_t count = intervals->count;
    intervals->by_start = malloc((count + 1) * sizeof *intervals->by_start);
    intervals->by_end = malloc((count + 1) * sizeof *intervals->by_end);
    if (intervals->by_start == NULL || intervals->by_end == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        intervals->by_start[i] = intervals->by_end[i] = (uint32_t)i;
    if (count > 0) {
        qsort_r(intervals->by_start, count, sizeof *intervals->by_start, earlier_start,
                intervals->rows);
        qsort_r(intervals->by_end, count, sizeof *intervals->by_end, earlier_end, intervals->rows);
    }
    return true;
}

vram_step vram_intervals_next(vram_intervals *intervals, vram_raw *event)
{
    if (intervals->next_end == intervals->count)
        return VRAM_STEP_END;
    const vram_interval *end = &intervals->rows[intervals->by_end[intervals->next_end]];
    const vram_interval *start = intervals->next_start < intervals->count
                                     ? &intervals->rows[intervals->by_start[intervals->next_start]]
                                     : NULL;
    if (start == NULL || end->end <= start->start) {
        *event = (vram_raw){.kind = VRAM_EVENT_FREE, .id = end->id, .time_ns = end->end};
        intervals->next_end++;
        return VRAM_STEP_EVENT;
    }
    *event = (vram_raw){.kind = VRAM_EVENT_ALLOC,
                        .id = start->id,
                        .size_bytes = start->size_bytes,
                        .time_ns = start->start,
                        .tag = start->tag,
                        .align_log2 = start->align_log2};
    intervals->next_start++;
    return VRAM_STEP_EVENT;
}

void vram_intervals_rewind(vram_intervals *intervals)
{
    intervals->next_start = intervals->next_end = 0;
}

void vram_intervals_free(vram_intervals *intervals)
{
    free(intervals->rows);
    free(intervals->by_start);
    free(intervals->by_end);
    *intervals = (vram_intervals){0};
}
