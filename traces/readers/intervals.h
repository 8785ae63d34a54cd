/*
 * intervals.h - lifetimes, in any order, as events in time order.
 *
 * At equal times the frees come before the allocations, and each group in the order of the rows.
 */
#ifndef VRAMLAB_READERS_INTERVALS_H
#define VRAMLAB_READERS_INTERVALS_H

#include "reader.h"

typedef struct vram_interval {
    uint64_t start, end; /* live from start up to, not including, end; start < end */
    uint64_t id, size_bytes;
    uint32_t tag;
    uint8_t align_log2;
} vram_interval;

typedef struct vram_intervals {
    vram_interval *rows;
    size_t count, capacity;
    uint32_t *by_start, *by_end; /* indices of rows, once sorted */
    size_t next_start, next_end;
} vram_intervals;

bool vram_intervals_add(vram_intervals *intervals, const vram_interval *row);
/* Both false when out of memory. */
bool vram_intervals_sort(vram_intervals *intervals);
vram_step vram_intervals_next(vram_intervals *intervals, vram_raw *event);
void vram_intervals_rewind(vram_intervals *intervals);
void vram_intervals_free(vram_intervals *intervals);

#endif
