/*
 * pool.h - a row of equal slots, the lowest free one first: what fixed is and segregated has many
 * of. Not installed.
 *
 *   base                                     touched              count
 *   |  #  |  .  |  #  |  #  |  .  |  .  |  #  |.....|.....|.....|.....|      '#' live   '.' free
 *      7     0     3     9     0     0     5    never given out: no record
 *      generation: which take it was; 0 while free
 *
 * P1 marked     below touched, the bitmap holds a slot exactly when its generation is 0.
 * P2 summed     each level of the bitmap tells the truth about the one below.
 * P3 counted    taken less given slots have a generation.
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
    size_t capacity; /* of generations */
    uint32_t count;
    uint32_t touched;
    uint64_t taken; /* takes and gives until now; the difference is live */
    uint64_t given;
    uint64_t base_bytes;
    uint64_t block_bytes;
} vram_pool;

/* False when the host is out of memory. The pool must then stay where it is. */
bool vram_pool_init(vram_pool *self, uint64_t base_bytes, uint64_t block_bytes, uint32_t count);
void vram_pool_free(vram_pool *self);

void vram_pool_walk(const vram_pool *self, vram_visit *visit, void *context);
bool vram_pool_check(const vram_pool *self, vram_fault *fault);
uint64_t vram_pool_host_bytes(const vram_pool *self); /* without the struct itself */

static inline uint64_t vram_pool_offset(const vram_pool *self, uint32_t slot)
{
    return self->base_bytes + slot * self->block_bytes;
}

static inline bool vram_pool_is_live(const vram_pool *self, uint32_t slot)
{
    return self->generations[slot] != 0;
}

static inline uint64_t vram_pool_live(const vram_pool *self)
{
    return self->taken - self->given;
}

/* Gives out a slot that is touched, free and no longer in the bitmap. */
static inline void vram_pool_publish(vram_pool *self, uint32_t slot, vram_block *out)
{
    const uint32_t generation = (uint32_t)self->taken * 2 + 1; /* never 0 */
    self->taken++;
    self->generations[slot] = generation;
    out->offset_bytes = vram_pool_offset(self, slot);
    out->granted_bytes = self->block_bytes;
    out->handle = (uint64_t)generation << 32 | slot;
}

/* Gives out this slot, free and perhaps not touched yet. */
vram_result vram_pool_take_slot(vram_pool *self, uint32_t slot, vram_block *out);

/* vram_pool_take and vram_pool_give of any pool; the handle is known to be good. */
vram_result vram_pool_take_slowly(vram_pool *self, vram_block *out);
vram_result vram_pool_give_slowly(vram_pool *self, uint64_t handle);

/* The lowest free slot. VRAM_NO_SPACE when all are live. */
static inline vram_result vram_pool_take(vram_pool *self, vram_block *out)
{
    if (__builtin_expect(self->free.top == 0, false))
        return vram_pool_take_slowly(self, out);
    vram_pool_publish(self, vram_bitmap_pop_shallow(&self->free), out);
    return VRAM_OK;
}

/* True when the handle, whose generation is not 0, is that of a live slot, and the offset is where
 * it lies: another backend's block has often the same handle. */
static inline bool vram_pool_owns(const vram_pool *self, uint64_t handle, uint64_t offset_bytes)
{
    const uint32_t slot = (uint32_t)handle;
    return slot < self->touched && self->generations[slot] == handle >> 32 &&
           offset_bytes == vram_pool_offset(self, slot);
}

static inline vram_result vram_pool_give(vram_pool *self, uint64_t handle, uint64_t offset_bytes)
{
    if (!vram_pool_owns(self, handle, offset_bytes))
        return VRAM_STALE_BLOCK;
    if (__builtin_expect(!vram_bitmap_is_shallow(&self->free), false))
        return vram_pool_give_slowly(self, handle);
    self->generations[(uint32_t)handle] = 0;
    self->given++;
    vram_bitmap_insert_shallow(&self->free, (uint32_t)handle);
    return VRAM_OK;
}

#endif
