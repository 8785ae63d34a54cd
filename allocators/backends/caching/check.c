/*
 * check.c - the invariants that model.c lists, each by two unrelated walks: along the segments and
 * through the free sets.
 */
#include "model.h"

/* What the blocks add up to. */
typedef struct tally {
    uint64_t reserved_bytes, allocated_bytes, active_bytes, requested_bytes;
    uint64_t live, pending, free, unmapped, segments;
} tally;

static bool fault_at(vram_fault *fault, const char *invariant, uint64_t address_bytes)
{
    if (fault != NULL)
        *fault = (vram_fault){invariant, address_bytes};
    return false;
}

static bool is_cached(const block *b)
{
    return b->state == VRAM_CACHING_FREE || b->state == VRAM_CACHING_UNMAPPED;
}

static void count_block(tally *sum, const block *b)
{
    const bool live = b->state == VRAM_CACHING_LIVE;
    const bool active = live || b->state == VRAM_CACHING_PENDING;
    sum->reserved_bytes += b->state == VRAM_CACHING_UNMAPPED ? 0 : b->size_bytes;
    sum->allocated_bytes += live ? b->size_bytes : 0;
    sum->active_bytes += active ? b->size_bytes : 0;
    sum->requested_bytes += active ? b->requested_bytes : 0;
    sum->live += live;
    sum->pending += b->state == VRAM_CACHING_PENDING;
    sum->free += b->state == VRAM_CACHING_FREE;
    sum->unmapped += b->state == VRAM_CACHING_UNMAPPED;
}

static bool check_block(const vram_caching *self, uint32_t index, uint32_t slot, vram_fault *fault)
{
    const segment *s = &self->segments[index];
    const block *b = &self->blocks[slot];
    if (b->state == VRAM_CACHING_VACANT || b->segment != index || b->stream != s->stream ||
        b->half != 2 * s->pool + !s->small || (b->state == VRAM_CACHING_UNMAPPED && !s->expandable))
        return fault_at(fault, "I1 tiles", b->address_bytes);
    if (b->next != NONE && is_cached(b) && self->blocks[b->next].state == b->state)
        return fault_at(fault, "I2 merged", b->address_bytes);
    if (b->size_bytes == 0 || b->size_bytes % VRAM_CACHING_MIN_BLOCK != 0 ||
        b->address_bytes % VRAM_CACHING_MIN_BLOCK != 0 || b->requested_bytes > b->size_bytes)
        return fault_at(fault, "I4 sizes", b->address_bytes);
    return true;
}

static bool check_segment(const vram_caching *self, uint32_t index, tally *sum, vram_fault *fault)
{
    const segment *s = &self->segments[index];
    uint64_t at_bytes = s->address_bytes;
    uint32_t previous = NONE;
    for (uint32_t slot = s->first; slot != NONE; slot = self->blocks[slot].next) {
        const block *b = &self->blocks[slot];
        if (b->previous != previous || b->address_bytes != at_bytes ||
            b->size_bytes > s->address_bytes + s->size_bytes - at_bytes)
            return fault_at(fault, "I1 tiles", at_bytes);
        if (!check_block(self, index, slot, fault))
            return false;
        at_bytes += b->size_bytes;
        previous = slot;
        count_block(sum, b);
    }
    sum->segments++;
    return at_bytes == s->address_bytes + s->size_bytes || fault_at(fault, "I1 tiles", at_bytes);
}

/* Counts the members of a set in order; the order and the bound make a cycle a finding. */
static bool count_set(const vram_caching *self, uint32_t half, bool unmapped, uint64_t *count,
                      vram_fault *fault)
{
    const uint32_t root =
        unmapped ? self->halves[half].unmapped_root : self->halves[half].free_root;
    const uint8_t state = unmapped ? VRAM_CACHING_UNMAPPED : VRAM_CACHING_FREE;
    uint64_t left = self->block_count;
    for (uint32_t slot = caching_order_first(self->blocks, root); slot != NONE; left--) {
        const block *b = &self->blocks[slot];
        if (left == 0 || b->state != state || b->half != half)
            return fault_at(fault, "I3 listed", b->address_bytes);
        ++*count;
        slot = caching_order_after(self->blocks, root, caching_key_of(b));
    }
    return true;
}

static bool check_sets(const vram_caching *self, const tally *sum, vram_fault *fault)
{
    uint64_t free_blocks = 0, unmapped = 0, pending = 0;
    for (uint32_t half = 0; half < self->half_count; half++)
        if (!count_set(self, half, false, &free_blocks, fault) ||
            !count_set(self, half, true, &unmapped, fault))
            return false;
    if (free_blocks != sum->free || unmapped != sum->unmapped)
        return fault_at(fault, "I3 listed", 0);
    for (uint32_t slot = self->pending; slot != NONE && pending <= sum->pending;
         slot = self->blocks[slot].right, pending++)
        if (self->blocks[slot].state != VRAM_CACHING_PENDING)
            return fault_at(fault, "I5 pending", self->blocks[slot].address_bytes);
    return pending == sum->pending || fault_at(fault, "I5 pending", 0);
}

bool vram_caching_check(const vram_caching *self, vram_fault *fault)
{
    tally sum = {0};
    for (uint32_t index = 0; index < self->segment_count; index++)
        if (!self->segments[index].vacant && !check_segment(self, index, &sum, fault))
            return false;
    if (!check_sets(self, &sum, fault))
        return false;
    const vram_caching_stats *stats = &self->stats;
    if (sum.reserved_bytes != stats->reserved_bytes ||
        sum.allocated_bytes != stats->allocated_bytes || sum.active_bytes != stats->active_bytes ||
        sum.requested_bytes != stats->requested_bytes || sum.live != stats->live_blocks ||
        sum.segments != stats->segments ||
        sum.live + sum.pending + sum.free + sum.unmapped != stats->blocks)
        return fault_at(fault, "I6 counters", 0);
    return true;
}
