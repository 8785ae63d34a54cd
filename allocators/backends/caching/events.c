/*
 * events.c - blocks that other streams use, and the events that tell when they no longer do.
 *
 * record_stream notes a use. When the block is released, an event goes into the queue of each
 * stream that uses it, and the block is pending until all of them are done. PyTorch looks at the
 * queues when memory is asked for, and waits for all of them before it gives memory back.
 *
 * Uses are an array in the order in which they were noted. use, sync: O(uses). A poll without
 * anything pending: O(1).
 */
#include "model.h"

vram_result vram_caching_use(vram_caching *self, uint32_t slot, uint32_t stream)
{
    if (stream == self->blocks[slot].stream)
        return VRAM_OK;
    for (size_t k = 0; self->blocks[slot].events > 0 && k < self->use_count; k++)
        if (self->uses[k].slot == slot && self->uses[k].stream == stream)
            return VRAM_OK;
    if (!vram_reserve((void **)&self->uses, &self->use_capacity, self->use_count + 1,
                      sizeof(stream_use)))
        return VRAM_NO_METADATA;
    self->uses[self->use_count++] = (stream_use){.slot = slot, .stream = stream};
    self->blocks[slot].events++;
    return VRAM_OK;
}

void caching_record_events(vram_caching *self, uint32_t slot)
{
    for (size_t k = 0; k < self->use_count; k++)
        if (self->uses[k].slot == slot)
            self->uses[k].recorded = true;
}

void vram_caching_sync(vram_caching *self, uint32_t stream)
{
    for (size_t k = 0; k < self->use_count; k++)
        if (self->uses[k].recorded && (stream == UINT32_MAX || self->uses[k].stream == stream))
            self->uses[k].done = true;
}

void caching_poll_events(vram_caching *self)
{
    if (self->pending == NONE)
        return;
    size_t kept = 0;
    for (size_t k = 0; k < self->use_count; k++) {
        const stream_use use = self->uses[k];
        if (!use.done)
            self->uses[kept++] = use;
        else if (--self->blocks[use.slot].events == 0)
            vram_caching_complete(self, use.slot);
    }
    self->use_count = kept;
}

void caching_finish_events(vram_caching *self)
{
    size_t kept = 0;
    for (size_t k = 0; k < self->use_count; k++)
        if (!self->uses[k].recorded)
            self->uses[kept++] = self->uses[k];
    self->use_count = kept;
    while (self->pending != NONE)
        vram_caching_complete(self, self->pending);
}
