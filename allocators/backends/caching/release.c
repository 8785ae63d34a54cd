/*
 * release.c - giving memory back: all of it, only what is oversize, or what is old.
 */
#include "model.h"

/* Gives a whole free segment back to the driver. */
static void release_segment(vram_caching *self, uint32_t slot)
{
    const uint32_t index = self->blocks[slot].segment;
    caching_take_free(self, slot);
    self->stats.reserved_bytes -= self->blocks[slot].size_bytes;
    self->stats.driver_returns++;
    self->driver.give_back(self->driver.context, &self->segments[index]);
    caching_drop_segment(self, index);
}

/* ------------------------------------------------------------------------------------------------
 * pages of expandable ranges */

/* Cuts the block down to the whole pages inside it; what is left over stays free. NONE when it
 * holds no whole page. */
static uint32_t isolate_pages(vram_caching *self, uint32_t slot)
{
    const block b = self->blocks[slot];
    const segment *s = &self->segments[b.segment];
    const uint64_t page_bytes = caching_page_bytes(self, s->small);
    const uint64_t offset_bytes = b.address_bytes - s->address_bytes;
    const uint64_t first_page = (offset_bytes + page_bytes - 1) / page_bytes;
    const uint64_t end_page = (offset_bytes + b.size_bytes) / page_bytes;
    if (first_page >= end_page)
        return NONE;
    caching_take_free(self, slot);
    const uint64_t front_bytes = first_page * page_bytes - offset_bytes;
    if (front_bytes > 0) {
        const uint32_t pages = caching_cut(self, slot, front_bytes);
        caching_put_free(self, slot);
        slot = pages;
    }
    const uint64_t pages_bytes = (end_page - first_page) * page_bytes;
    if (self->blocks[slot].size_bytes > pages_bytes)
        caching_put_free(self, caching_cut(self, slot, pages_bytes));
    return slot;
}

static void unmap(vram_caching *self, uint32_t slot)
{
    slot = isolate_pages(self, slot);
    if (slot == NONE)
        return;
    block *b = &self->blocks[slot];
    const uint32_t index = b->segment;
    self->driver.unmap(self->driver.context, &self->segments[index], b->address_bytes,
                       b->size_bytes);
    self->stats.reserved_bytes -= b->size_bytes;
    self->stats.driver_returns++;
    b->state = VRAM_CACHING_UNMAPPED;
    slot = caching_merge(self, slot);
    if (caching_is_whole(&self->blocks[slot])) {
        self->driver.unreserve(self->driver.context, &self->segments[index]);
        caching_drop_segment(self, index);
    } else {
        caching_order_add(self->blocks, &self->halves[self->blocks[slot].half].unmapped_root, slot);
    }
}

/* ------------------------------------------------------------------------------------------------
 * all of it */

/* Whole segments first, in the order of the set, then the pages of ranges in the same order. What
 * unmapping leaves behind is no larger than a page, so a second look would find nothing. */
static void release_half(vram_caching *self, uint32_t half)
{
    const uint32_t root_slot = caching_order_first(self->blocks, self->halves[half].free_root);
    size_t ranges_blocks = 0;
    for (uint32_t slot = root_slot, next; slot != NONE; slot = next) {
        next = caching_order_after(self->blocks, self->halves[half].free_root,
                                   caching_key_of(&self->blocks[slot]));
        if (caching_is_expandable(self, slot))
            ranges_blocks++;
        else if (caching_is_whole(&self->blocks[slot]))
            release_segment(self, slot);
    }
    /* each block may leave two pieces, and an allocation comes after; without room for them the
     * pages stay, which is no error */
    if (ranges_blocks == 0 ||
        !caching_reserve_blocks(self, 2 * ranges_blocks + CACHING_GROWTH_BLOCKS))
        return;
    order_key key = {0, 0, 0};
    for (uint32_t slot; (slot = caching_order_at_or_after(
                             self->blocks, self->halves[half].free_root, key)) != NONE;) {
        key = caching_key_of(&self->blocks[slot]);
        key.address_bytes++;
        if (caching_is_expandable(self, slot))
            unmap(self, slot);
    }
}

void caching_release_all(vram_caching *self, bool default_pool_too)
{
    if (default_pool_too) {
        self->stats.syncs++;
        caching_finish_events(self);
        release_half(self, 1);
        release_half(self, 0);
    }
    for (uint32_t half = 2; half < self->half_count; half++)
        if (self->halves[half].unused)
            release_half(self, half);
}

uint64_t vram_caching_empty_cache(vram_caching *self)
{
    const uint64_t before_bytes = self->stats.reserved_bytes;
    caching_release_all(self, true);
    return before_bytes - self->stats.reserved_bytes;
}

/* ------------------------------------------------------------------------------------------------
 * what is oversize */

/* Largest first, while they are oversize, until the sum reaches the goal. */
static bool release_from_largest(vram_caching *self, const caching_plan *plan, uint64_t goal_bytes)
{
    uint64_t released_bytes = 0;
    order_key at = {plan->stream, goal_bytes, 0};
    while (released_bytes < goal_bytes) {
        const uint32_t slot =
            caching_order_before(self->blocks, self->halves[plan->half].free_root, at);
        if (slot == NONE || self->blocks[slot].stream != plan->stream ||
            self->blocks[slot].size_bytes < self->settings.max_split_bytes)
            break;
        at = caching_key_of(&self->blocks[slot]);
        if (!caching_is_expandable(self, slot) && caching_is_whole(&self->blocks[slot])) {
            released_bytes += at.size_bytes;
            release_segment(self, slot);
        }
    }
    return released_bytes >= goal_bytes;
}

/* What is released stays so even when it is too little. */
bool caching_release_oversize(vram_caching *self, const caching_plan *plan)
{
    const uint64_t goal_bytes = plan->rounded_bytes > self->settings.max_split_bytes
                                    ? plan->rounded_bytes
                                    : self->settings.max_split_bytes;
    const uint32_t one = caching_order_at_or_after(self->blocks, self->halves[plan->half].free_root,
                                                   (order_key){plan->stream, goal_bytes, 0});
    if (one == NONE || self->blocks[one].stream != plan->stream ||
        caching_is_expandable(self, one) || !caching_is_whole(&self->blocks[one]))
        return release_from_largest(self, plan, goal_bytes);
    release_segment(self, one);
    return true;
}

/* ------------------------------------------------------------------------------------------------
 * what is old: passes over the default pool's whole large blocks, each with a new average age */

typedef struct ages {
    uint64_t total;
    uint64_t blocks;
} ages;

static uint64_t age_of(const vram_caching *self, uint32_t slot)
{
    const block *b = &self->blocks[slot];
    return self->halves[b->half].searches - b->cached_at;
}

static uint32_t next_large(const vram_caching *self, uint32_t slot)
{
    return caching_order_after(self->blocks, self->halves[1].free_root,
                               caching_key_of(&self->blocks[slot]));
}

static ages whole_ages(const vram_caching *self)
{
    ages sum = {0};
    for (uint32_t slot = caching_order_first(self->blocks, self->halves[1].free_root); slot != NONE;
         slot = next_large(self, slot)) {
        if (caching_is_whole(&self->blocks[slot])) {
            sum.total += age_of(self, slot);
            sum.blocks++;
        }
    }
    return sum;
}

/* A pass does not stop early. Returns the bytes given back. */
static uint64_t collect_old(vram_caching *self, ages *sum)
{
    const double average = (double)sum->total / (double)sum->blocks;
    uint64_t released_bytes = 0;
    for (uint32_t slot = caching_order_first(self->blocks, self->halves[1].free_root), next;
         slot != NONE; slot = next) {
        next = next_large(self, slot);
        if (!caching_is_whole(&self->blocks[slot]) || caching_is_expandable(self, slot) ||
            (double)age_of(self, slot) < average)
            continue;
        released_bytes += self->blocks[slot].size_bytes;
        sum->total -= age_of(self, slot);
        sum->blocks--;
        release_segment(self, slot);
    }
    return released_bytes;
}

void caching_collect_garbage(vram_caching *self)
{
    const uint64_t limit_bytes =
        (uint64_t)(self->settings.gc_threshold * (double)self->settings.cap_bytes);
    if (self->stats.reserved_bytes <= limit_bytes)
        return;
    const uint64_t target_bytes = self->stats.reserved_bytes - limit_bytes;
    ages sum = whole_ages(self);
    for (uint64_t released_bytes = 0; released_bytes < target_bytes && sum.blocks > 0;) {
        const uint64_t pass_bytes = collect_old(self, &sum);
        if (pass_bytes == 0)
            break;
        released_bytes += pass_bytes;
    }
}
