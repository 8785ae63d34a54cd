/*
 * pool.c - the parts of a pool that are not called with every allocation.
 */
#include "core/pool.h"

#include <stdlib.h>
#include <string.h>

bool vram_pool_init(vram_pool *self, uint64_t base_bytes, uint64_t block_bytes, uint32_t count)
{
    *self = (vram_pool){.base_bytes = base_bytes, .block_bytes = block_bytes, .count = count};
    return vram_bitmap_reserve(&self->free, 1);
}

void vram_pool_free(vram_pool *self)
{
    vram_bitmap_free(&self->free);
    free(self->generations);
    self->generations = NULL;
    self->capacity = 0;
}

/* Extends the touched slots to `touched`, the new ones free; all-or-nothing. */
static bool touch(vram_pool *self, uint32_t touched)
{
    if (!vram_reserve((void **)&self->generations, &self->capacity, touched,
                      sizeof *self->generations) ||
        !vram_bitmap_reserve(&self->free, touched))
        return false;
    for (uint32_t slot = self->touched; slot < touched; slot++) {
        self->generations[slot] = 0;
        vram_bitmap_insert(&self->free, slot);
    }
    self->touched = touched;
    return true;
}

vram_result vram_pool_take_slot(vram_pool *self, uint32_t slot, vram_block *out)
{
    if (slot >= self->touched && !touch(self, slot + 1))
        return VRAM_NO_METADATA;
    vram_bitmap_remove(&self->free, slot);
    vram_pool_publish(self, slot, out);
    return VRAM_OK;
}

vram_result vram_pool_take_slowly(vram_pool *self, vram_block *out)
{
    const uint32_t slot = vram_bitmap_pop(&self->free);
    if (slot == VRAM_BITMAP_NONE)
        return self->touched == self->count ? VRAM_NO_SPACE
                                            : vram_pool_take_slot(self, self->touched, out);
    vram_pool_publish(self, slot, out);
    return VRAM_OK;
}

vram_result vram_pool_give_slowly(vram_pool *self, uint64_t handle)
{
    self->generations[(uint32_t)handle] = 0;
    self->given++;
    vram_bitmap_insert(&self->free, (uint32_t)handle);
    return VRAM_OK;
}

static uint64_t handle_of(const vram_pool *self, uint64_t slot)
{
    return (uint64_t)self->generations[slot] << 32 | slot;
}

void vram_pool_walk(const vram_pool *self, vram_visit *visit, void *context)
{
    uint64_t slot = 0;
    while (slot < self->count) {
        uint64_t end = slot + 1;
        const bool live = slot < self->touched && vram_pool_is_live(self, (uint32_t)slot);
        while (!live && end < self->touched && !vram_pool_is_live(self, (uint32_t)end))
            end++;
        if (!live && end >= self->touched)
            end = self->count;
        visit(context, &(vram_span){.offset_bytes = vram_pool_offset(self, (uint32_t)slot),
                                    .size_bytes = (end - slot) * self->block_bytes,
                                    .block_bytes = self->block_bytes,
                                    .handle = live ? handle_of(self, slot) : 0,
                                    .kind = live ? VRAM_SPAN_LIVE : VRAM_SPAN_BOUND});
        slot = end;
    }
}

/* P1 and P3: generations against the bitmap. */
static bool check_slots(const vram_pool *self, vram_fault *fault)
{
    uint32_t live = 0;
    for (uint32_t slot = 0; slot < self->touched; slot++) {
        if (vram_bitmap_has(&self->free, slot) == vram_pool_is_live(self, slot))
            return vram_fault_at(fault, "P1 marked", vram_pool_offset(self, slot));
        live += vram_pool_is_live(self, slot);
    }
    return live == vram_pool_live(self) || vram_fault_at(fault, "P3 counted", self->base_bytes);
}

bool vram_pool_check(const vram_pool *self, vram_fault *fault)
{
    if (self->touched > self->count || self->touched > self->free.capacity ||
        self->touched > self->capacity)
        return vram_fault_at(fault, "P4 untouched", self->base_bytes);
    uint64_t number = 0;
    if (!vram_bitmap_check(&self->free, &number))
        return vram_fault_at(fault, "P2 summed", vram_pool_offset(self, (uint32_t)number));
    if (vram_bitmap_next(&self->free, self->touched) != VRAM_BITMAP_NONE)
        return vram_fault_at(fault, "P4 untouched", vram_pool_offset(self, self->touched));
    return check_slots(self, fault);
}

uint64_t vram_pool_host_bytes(const vram_pool *self)
{
    return vram_bitmap_host_bytes(&self->free) + self->capacity * sizeof *self->generations;
}
