/*
 * ranges.h - a space of addresses, cut into taken and free ranges: where segments are carved from.
 *
 *   | segment 0 | segment 1 |..free..| segment 2 |.............free............|
 *   0                                                                     total
 *
 * R1  ranges tile the space, in address order.
 * R2  no two neighbours are both free.
 *
 * take: the lowest free range that is large enough, O(ranges). give: O(1). Sizes are a driver's:
 * some thousands of ranges at most.
 */
#ifndef VRAM_CACHING_RANGES_H
#define VRAM_CACHING_RANGES_H

#include "model.h"

typedef struct caching_range {
    uint64_t offset_bytes;
    uint64_t size_bytes;
    uint32_t previous, next; /* NONE at the ends; next also chains ranges that are not in use */
    uint32_t owner;          /* the segment's index, NONE when free */
} caching_range;

typedef struct caching_ranges {
    caching_range *ranges; /* [0] is the first in address order */
    size_t count, capacity;
    uint32_t vacant;
    uint64_t used; /* ranges in the space */
} caching_ranges;

/* total_bytes may be 0. False when the host is out of memory. */
bool caching_ranges_create(caching_ranges *self, uint64_t total_bytes);
void caching_ranges_destroy(caching_ranges *self);

/* The index of a range of exactly this size, or NONE: no room, or the host is out of memory. */
uint32_t caching_ranges_take(caching_ranges *self, uint64_t size_bytes, uint32_t owner);
void caching_ranges_give(caching_ranges *self, uint32_t index);
bool caching_ranges_check(const caching_ranges *self, uint64_t total_bytes, vram_fault *fault);

#endif
