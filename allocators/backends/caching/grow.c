/*
 * grow.c - where a block comes from: the free set, a new segment, or more pages of a range.
 */
#include "model.h"

/* ------------------------------------------------------------------------------------------------
 * best fit */

/* What the block could become without moving: an unmapped neighbour above counts with it. */
static uint64_t reach_bytes(const vram_caching *self, uint32_t slot)
{
    const block *b = &self->blocks[slot];
    const block *above = b->next == NONE ? NULL : &self->blocks[b->next];
    const bool grows = above != NULL && above->state == VRAM_CACHING_UNMAPPED;
    return b->size_bytes + (grows ? above->size_bytes : 0);
}

/* The next block of the free set, if it belongs to the same stream. */
static uint32_t next_of_stream(const vram_caching *self, const caching_plan *plan, uint32_t slot)
{
    const uint32_t next = caching_order_after(self->blocks, self->halves[plan->half].free_root,
                                              caching_key_of(&self->blocks[slot]));
    return next != NONE && self->blocks[next].stream == plan->stream ? next : NONE;
}

/* From the smallest that fits on to larger ones, while they can become less. */
static uint32_t least_reach(const vram_caching *self, const caching_plan *plan, uint32_t slot)
{
    for (uint32_t next; caching_is_expandable(self, slot); slot = next) {
        next = next_of_stream(self, plan, slot);
        if (next == NONE || reach_bytes(self, next) >= reach_bytes(self, slot))
            break;
    }
    return slot;
}

uint32_t caching_search(vram_caching *self, const caching_plan *plan)
{
    half_pool *half = &self->halves[plan->half];
    if (caching_collects(self))
        half->searches++;
    uint32_t found = caching_order_at_or_after(self->blocks, half->free_root,
                                               (order_key){plan->stream, plan->rounded_bytes, 0});
    if (found == NONE || self->blocks[found].stream != plan->stream)
        return NONE;
    if (self->settings.expandable)
        found = least_reach(self, plan, found);
    const uint64_t found_bytes = self->blocks[found].size_bytes;
    const uint64_t oversize_bytes = self->settings.max_split_bytes;
    if (plan->rounded_bytes < oversize_bytes && found_bytes >= oversize_bytes)
        return NONE;
    if (plan->rounded_bytes >= oversize_bytes &&
        found_bytes - plan->rounded_bytes >= self->settings.max_non_split_rounding_bytes)
        return NONE;
    caching_take_free(self, found);
    return found;
}

/* ------------------------------------------------------------------------------------------------
 * expandable ranges */

static bool is_usable(const vram_caching *self, uint32_t slot)
{
    return slot != NONE && (self->blocks[slot].state == VRAM_CACHING_FREE ||
                            self->blocks[slot].state == VRAM_CACHING_UNMAPPED);
}

static bool has_room(const vram_caching *self, uint32_t slot, uint64_t need_bytes)
{
    uint64_t run_bytes = 0;
    for (; run_bytes < need_bytes && is_usable(self, slot); slot = self->blocks[slot].next)
        run_bytes += self->blocks[slot].size_bytes;
    return run_bytes >= need_bytes;
}

/* A new range, as one unmapped block. */
static uint32_t new_range(vram_caching *self, const caching_plan *plan)
{
    const bool small = (plan->half & 1u) == 0;
    const uint64_t span_bytes = self->settings.device_bytes + self->settings.device_bytes / 8;
    segment s = {.size_bytes = caching_round_up(span_bytes, caching_page_bytes(self, small)),
                 .index = caching_next_segment(self),
                 .stream = plan->stream,
                 .pool = plan->half / 2,
                 .small = small,
                 .expandable = true};
    if (s.size_bytes < plan->rounded_bytes || !self->driver.reserve(self->driver.context, &s))
        return NONE;
    const uint32_t slot = caching_new_segment(self, &s, VRAM_CACHING_UNMAPPED);
    caching_order_add(self->blocks, &self->halves[plan->half].unmapped_root, slot);
    return slot;
}

/* Where growth starts: the lowest unmapped block of the stream that, with a free block right
 * before it, has room up to the next block in use. */
static uint32_t growth_start(vram_caching *self, const caching_plan *plan)
{
    const uint32_t root = self->halves[plan->half].unmapped_root;
    uint32_t slot = caching_order_at_or_after(self->blocks, root, (order_key){plan->stream, 0, 0});
    while (slot != NONE && self->blocks[slot].stream == plan->stream) {
        const uint32_t before = self->blocks[slot].previous;
        const uint32_t start = is_usable(self, before) ? before : slot;
        if (has_room(self, start, plan->rounded_bytes))
            return start;
        slot = caching_order_after(self->blocks, root, caching_key_of(&self->blocks[slot]));
    }
    return new_range(self, plan);
}

/* Maps the first need_bytes of an unmapped block, in whole pages; the mapped part merges with free
 * neighbours and is in the free set then. NONE when the driver has no more memory. */
static uint32_t map_front(vram_caching *self, uint32_t slot, uint64_t need_bytes)
{
    const block b = self->blocks[slot];
    const segment *s = &self->segments[b.segment];
    const uint64_t page_bytes = caching_page_bytes(self, s->small);
    const uint64_t map_bytes = caching_round_up(need_bytes, page_bytes);
    if (!self->driver.map(self->driver.context, s, b.address_bytes, map_bytes))
        return NONE;
    uint32_t *unmapped = &self->halves[b.half].unmapped_root;
    caching_order_remove(self->blocks, unmapped, slot);
    if (map_bytes < b.size_bytes)
        caching_order_add(self->blocks, unmapped, caching_cut(self, slot, map_bytes));
    self->blocks[slot].state = VRAM_CACHING_FREE;
    slot = caching_merge(self, slot);
    caching_put_free(self, slot);
    self->stats.driver_takes++;
    caching_note_reserved(self, map_bytes);
    return slot;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint32_t grow_range(vram_caching *self, const caching_plan *plan)
{
    uint32_t slot = growth_start(self, plan);
    if (slot == NONE)
        return NONE;
    if (self->blocks[slot].state == VRAM_CACHING_UNMAPPED)
        slot = map_front(self, slot, least(self->blocks[slot].size_bytes, plan->rounded_bytes));
    while (slot != NONE && self->blocks[slot].size_bytes < plan->rounded_bytes) {
        const uint64_t missing_bytes = plan->rounded_bytes - self->blocks[slot].size_bytes;
        const uint32_t next = self->blocks[slot].next; /* unmapped: free ones have merged */
        slot = map_front(self, next, least(self->blocks[next].size_bytes, missing_bytes));
    }
    if (slot != NONE)
        caching_take_free(self, slot);
    return slot;
}

/* ------------------------------------------------------------------------------------------------
 * segments */

static uint32_t grow_segment(vram_caching *self, const caching_plan *plan)
{
    segment s = {.size_bytes = plan->segment_bytes,
                 .index = caching_next_segment(self),
                 .stream = plan->stream,
                 .pool = plan->half / 2,
                 .small = (plan->half & 1u) == 0};
    if (!self->driver.take(self->driver.context, &s))
        return NONE;
    self->stats.driver_takes++;
    caching_note_reserved(self, s.size_bytes);
    return caching_new_segment(self, &s, VRAM_CACHING_FREE);
}

uint32_t caching_grow(vram_caching *self, const caching_plan *plan)
{
    const uint64_t reserved_bytes = self->stats.reserved_bytes;
    uint32_t slot = NONE;
    /* tested with the segment's size even where pages are mapped: PyTorch may end above the cap */
    const bool allowed = self->settings.cap_bytes == VRAM_CACHING_UNLIMITED ||
                         (reserved_bytes <= self->settings.cap_bytes &&
                          plan->segment_bytes <= self->settings.cap_bytes - reserved_bytes);
    if (allowed)
        slot = self->settings.expandable ? grow_range(self, plan) : grow_segment(self, plan);
    if (slot == NONE && self->stats.refused_bytes > reserved_bytes + plan->segment_bytes)
        self->stats.refused_bytes = reserved_bytes + plan->segment_bytes;
    return slot;
}
