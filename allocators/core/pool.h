/*
 * pool.h - a row of equal slots, the lowest free one first: what fixed is and segregated has many
 * of. Not installed.
 *
 *   base                                     touched              count
 *   |  #  |  .  |  #  |  #  |  .  |  .  |  #  |.....|.....|.....|.....|
 *      1     2     5     1     4     2     3    never given out: no record
 *      generations: odd while live; even once released
 *
 * P1 marked     below touched, the bitmap holds a slot exactly when its generation is even.
 * P2 summed     each level of the bitmap tells the truth about the one below.
 * P3 counted    `live` slots have an odd generation.
 * P4 untouched  touched is at most count, and no slot from there on is in the bitmap.
 *
 * take, give: O(1), one bit scan for each factor of 64 in the number of slots touched. Host memory:
 * 4.2 bytes for each slot touched, grown by half.
 */
#ifndef VRAMLAB_POOL_H
#define VRAMLAB_POOL_H

#include "core/bitmap.h"
#include "core/core.h"

typedef struct vram_pool {
    vram_bitmap free;
    uint32_t *generations;
    size_t capacity;     /* generations there is memory for */
    uint32_t first_slot; /* number of the lowest slot in a handle: pools of one backend differ */
    uint32_t count;
    uint32_t touched;
    uint32_t live;
    uint64_t base_bytes;
    uint64_t block_bytes;
} vram_pool;

void vram_pool_free(vram_pool *self);

/* Extends the touched slots to `touched`, those below free; all-or-nothing. */
bool vram_pool_touch(vram_pool *self, uint32_t touched);

void vram_pool_walk(const vram_pool *self, vram_visit *visit, void *context);
bool vram_pool_check(const vram_pool *self, vram_fault *fault);
uint64_t vram_pool_host_bytes(const vram_pool *self); /* without the struct itself */

static inline uint64_t vram_pool_offset(const vram_pool *self, uint32_t slot)
{
    return self->base_bytes + slot * self->block_bytes;
}

static inline bool vram_pool_is_live(const vram_pool *self, uint32_t slot)
{
    return (self->generations[slot] & 1) != 0;
}

static inline uint64_t vram_pool_handle(const vram_pool *self, uint32_t slot)
{
    return (uint64_t)self->generations[slot] << 32 | (self->first_slot + slot);
}

/* Gives out a slot that is touched and free. */
static inline void vram_pool_publish(vram_pool *self, uint32_t slot, vram_block *out)
{
    vram_bitmap_remove(&self->free, slot);
    self->generations[slot]++;
    self->live++;
    out->offset_bytes = vram_pool_offset(self, slot);
    out->granted_bytes = self->block_bytes;
    out->handle = vram_pool_handle(self, slot);
}

/* The lowest free slot. VRAM_NO_SPACE when all are live. */
static inline vram_result vram_pool_take(vram_pool *self, vram_block *out)
{
    uint32_t slot = self->touched;
    if (!vram_bitmap_is_empty(&self->free))
        slot = (uint32_t)vram_bitmap_first(&self->free);
    else if (slot == self->count)
        return VRAM_NO_SPACE;
    else if (!vram_pool_touch(self, slot + 1))
        return VRAM_NO_METADATA;
    vram_pool_publish(self, slot, out);
    return VRAM_OK;
}

/* True when the block is a live one of this pool. */
static inline bool vram_pool_owns(const vram_pool *self, vram_block block)
{
    const uint32_t slot = (uint32_t)block.handle - self->first_slot;
    return slot < self->touched && self->generations[slot] == block.handle >> 32 &&
           vram_pool_is_live(self, slot) && block.offset_bytes == vram_pool_offset(self, slot);
}

static inline vram_result vram_pool_give(vram_pool *self, vram_block block)
{
    if (!vram_pool_owns(self, block))
        return VRAM_STALE_BLOCK;
    const uint32_t slot = (uint32_t)block.handle - self->first_slot;
    self->generations[slot]++;
    self->live--;
    vram_bitmap_insert(&self->free, slot);
    return VRAM_OK;
}

#endif
