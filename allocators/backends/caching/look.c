/* look.c - putting in place what was there before, and looking at what is there. */
#include "model.h"

bool vram_caching_adopt(vram_caching *self, const segment *s, const vram_caching_piece *pieces,
                        size_t count, uint32_t *slots)
{
    if (!caching_reserve_blocks(self, count) || !caching_reserve_segment(self))
        return false;
    uint32_t slot = caching_new_segment(self, s, VRAM_CACHING_UNMAPPED);
    for (size_t k = 0; k < count; k++) {
        const uint32_t next = k + 1 < count ? caching_cut(self, slot, pieces[k].size_bytes) : NONE;
        block *b = &self->blocks[slot];
        b->state = (uint8_t)pieces[k].state;
        b->requested_bytes = pieces[k].requested_bytes;
        if (pieces[k].state == VRAM_CACHING_FREE)
            caching_put_free(self, slot);
        else if (pieces[k].state == VRAM_CACHING_UNMAPPED)
            caching_order_add(self->blocks, &self->halves[b->half].unmapped_root, slot);
        else
            b->generation++, caching_note_live(self, b);
        if (pieces[k].state == VRAM_CACHING_PENDING)
            vram_caching_free_later(self, slot);
        if (pieces[k].state != VRAM_CACHING_UNMAPPED)
            caching_note_reserved(self, pieces[k].size_bytes);
        if (slots != NULL)
            slots[k] = slot;
        slot = next;
    }
    return true;
}

void vram_caching_note(vram_caching *self, uint32_t slot, uint64_t cookie)
{
    self->blocks[slot].cookie = cookie;
}

uint64_t vram_caching_largest_free(const vram_caching *self, uint32_t stream)
{
    const order_key beyond = {stream, UINT64_MAX, UINT64_MAX};
    uint64_t largest_bytes = 0;
    for (uint32_t half = 0; half < 2; half++) {
        const uint32_t slot =
            caching_order_before(self->blocks, self->halves[half].free_root, beyond);
        if (slot != NONE && self->blocks[slot].stream == stream &&
            self->blocks[slot].size_bytes > largest_bytes)
            largest_bytes = self->blocks[slot].size_bytes;
        if (half == 0 && largest_bytes > VRAM_CACHING_SMALL_MAX)
            largest_bytes = VRAM_CACHING_SMALL_MAX; /* the most that its small half serves */
    }
    return largest_bytes;
}

const vram_caching_block *vram_caching_at(const vram_caching *self, uint32_t slot)
{
    return &self->blocks[slot];
}

uint32_t vram_caching_slots(const vram_caching *self)
{
    return (uint32_t)self->block_count;
}

const vram_caching_segment *vram_caching_segment_at(const vram_caching *self, uint32_t index)
{
    return index < self->segment_count ? &self->segments[index] : NULL;
}

const vram_caching_stats *vram_caching_stats_of(const vram_caching *self)
{
    return &self->stats;
}

const vram_caching_settings *vram_caching_settings_of(const vram_caching *self)
{
    return &self->settings;
}

uint64_t vram_caching_host_bytes(const vram_caching *self)
{
    return sizeof *self + self->block_capacity * sizeof(block) +
           self->half_capacity * sizeof(half_pool) + self->segment_capacity * sizeof(segment) +
           self->use_capacity * sizeof(stream_use);
}
