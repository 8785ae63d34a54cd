/*
 * pool.c - the parts of a pool that are not called with every allocation.
 */
#include "core/pool.h"

#include <stdlib.h>
#include <string.h>

void vram_pool_free(vram_pool *self)
{
    vram_bitmap_free(&self->free);
    free(self->generations);
    self->generations = NULL;
    self->capacity = 0;
}

bool vram_pool_touch(vram_pool *self, uint32_t touched)
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
                                    .handle = live ? vram_pool_handle(self, (uint32_t)slot) : 0,
                                    .kind = live ? VRAM_SPAN_LIVE : VRAM_SPAN_BOUND});
        slot = end;
    }
}

bool vram_pool_check(const vram_pool *self, vram_fault *fault)
{
    if (self->touched > self->count || self->touched > self->free.capacity ||
        self->touched > self->capacity)
        return vram_fault_at(fault, "P4 untouched", self->base_bytes);
    uint64_t number = 0;
    if (!vram_bitmap_check(&self->free, &number))
        return vram_fault_at(fault, "P2 summed", vram_pool_offset(self, (uint32_t)number));
    uint32_t live = 0;
    for (uint32_t slot = 0; slot < self->touched; slot++) {
        if (vram_bitmap_has(&self->free, slot) == vram_pool_is_live(self, slot))
            return vram_fault_at(fault, "P1 marked", vram_pool_offset(self, slot));
        live += vram_pool_is_live(self, slot);
    }
    if (vram_bitmap_next(&self->free, self->touched) != VRAM_BITMAP_NONE)
        return vram_fault_at(fault, "P4 untouched", vram_pool_offset(self, self->touched));
    if (live != self->live)
        return vram_fault_at(fault, "P3 counted", self->base_bytes);
    return true;
}

uint64_t vram_pool_host_bytes(const vram_pool *self)
{
    return vram_bitmap_host_bytes(&self->free) + self->capacity * sizeof *self->generations;
}
