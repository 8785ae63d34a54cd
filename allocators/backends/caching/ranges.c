/* ranges.c - see ranges.h. */
#include "ranges.h"

#include "core/core.h"

#include <stdlib.h>

bool caching_ranges_create(caching_ranges *self, uint64_t total_bytes)
{
    *self = (caching_ranges){.vacant = NONE};
    if (!vram_reserve((void **)&self->ranges, &self->capacity, 1, sizeof *self->ranges))
        return false;
    self->ranges[0] =
        (caching_range){.size_bytes = total_bytes, .previous = NONE, .next = NONE, .owner = NONE};
    self->count = 1;
    self->used = 1;
    return true;
}

void caching_ranges_destroy(caching_ranges *self)
{
    free(self->ranges);
}

/* Splits a free range in front of its upper part, which becomes a range of its own. */
static bool split(caching_ranges *self, uint32_t index, uint64_t size_bytes)
{
    uint32_t upper = self->vacant;
    if (upper == NONE) {
        if (!vram_reserve((void **)&self->ranges, &self->capacity, self->count + 1,
                          sizeof *self->ranges))
            return false;
        upper = (uint32_t)self->count++;
    } else {
        self->vacant = self->ranges[upper].next;
    }
    caching_range *lower = &self->ranges[index];
    self->ranges[upper] = (caching_range){.offset_bytes = lower->offset_bytes + size_bytes,
                                          .size_bytes = lower->size_bytes - size_bytes,
                                          .previous = index,
                                          .next = lower->next,
                                          .owner = NONE};
    if (lower->next != NONE)
        self->ranges[lower->next].previous = upper;
    lower->next = upper;
    lower->size_bytes = size_bytes;
    self->used++;
    return true;
}

/* Makes the range after this one part of it. */
static void absorb_next(caching_ranges *self, uint32_t index)
{
    caching_range *lower = &self->ranges[index];
    const uint32_t upper = lower->next;
    lower->size_bytes += self->ranges[upper].size_bytes;
    lower->next = self->ranges[upper].next;
    if (lower->next != NONE)
        self->ranges[lower->next].previous = index;
    self->ranges[upper].next = self->vacant;
    self->vacant = upper;
    self->used--;
}

uint32_t caching_ranges_take(caching_ranges *self, uint64_t size_bytes, uint32_t owner)
{
    uint32_t index = 0;
    while (index != NONE &&
           (self->ranges[index].owner != NONE || self->ranges[index].size_bytes < size_bytes))
        index = self->ranges[index].next;
    if (index == NONE ||
        (self->ranges[index].size_bytes > size_bytes && !split(self, index, size_bytes)))
        return NONE;
    self->ranges[index].owner = owner;
    return index;
}

void caching_ranges_give(caching_ranges *self, uint32_t index)
{
    self->ranges[index].owner = NONE;
    const uint32_t next = self->ranges[index].next;
    const uint32_t previous = self->ranges[index].previous;
    if (next != NONE && self->ranges[next].owner == NONE)
        absorb_next(self, index);
    if (previous != NONE && self->ranges[previous].owner == NONE)
        absorb_next(self, previous);
}

bool caching_ranges_check(const caching_ranges *self, uint64_t total_bytes, vram_fault *fault)
{
    uint64_t end_bytes = 0;
    uint64_t used = 0;
    uint32_t previous = NONE;
    for (uint32_t index = 0; index != NONE; index = self->ranges[index].next) {
        const caching_range *range = &self->ranges[index];
        if (used++ == self->count || range->offset_bytes != end_bytes ||
            range->previous != previous || range->size_bytes > total_bytes - end_bytes)
            return vram_fault_at(fault, "R1 tiles", end_bytes);
        if (previous != NONE && range->owner == NONE && self->ranges[previous].owner == NONE)
            return vram_fault_at(fault, "R2 merged", end_bytes);
        end_bytes += range->size_bytes;
        previous = index;
    }
    return (end_bytes == total_bytes && used == self->used) ||
           vram_fault_at(fault, "R1 tiles", end_bytes);
}
