/*
 * verify.c - holds every answer of a backend against the model, and every block's bytes against
 * what was written into them.
 *
 * The pattern of a block is made from its number alone, so that two blocks that share a byte, a
 * copy that went wrong and a block that was moved without its contents all show on release.
 */
#include "run.h"

#include <inttypes.h>

static bool fill(vram_run *self, const vram_slot *slot)
{
    vram_error why = {0};
    if (self->bytes == NULL || self->bytes->ops->fill(self->bytes, slot->block.offset_bytes,
                                                      slot->size_bytes, slot->number, &why))
        return true;
    return vram_run_fail(self, "%s", why.text);
}

/* Compares the first size_bytes of `at` with the pattern of block `number`. */
static bool holds_pattern(vram_run *self, const vram_block *at, uint64_t size_bytes,
                          uint32_t number)
{
    if (self->bytes == NULL)
        return true;
    vram_error why = {0};
    uint64_t differs_at = 0;
    if (!self->bytes->ops->compare(self->bytes, at->offset_bytes, size_bytes, number, &differs_at,
                                   &why))
        return vram_run_fail(self, "%s", why.text);
    if (differs_at == UINT64_MAX)
        return true;
    return vram_run_fail(self,
                         "the block at [%" PRIu64 ", %" PRIu64 ") no longer holds at %" PRIu64
                         " what was written into it",
                         at->offset_bytes, at->offset_bytes + at->granted_bytes, differs_at);
}

bool vram_verify_alloc(vram_run *self, const vram_request *request, const vram_slot *slot)
{
    vram_error why = {0};
    if (!vram_model_add(self->model, request, &slot->block, &why))
        return vram_run_fail(self, "%s", why.text);
    return fill(self, slot);
}

bool vram_verify_release(vram_run *self, const vram_slot *slot)
{
    vram_error why = {0};
    if (!vram_model_remove(self->model, &slot->block, &why))
        return vram_run_fail(self, "%s", why.text);
    return holds_pattern(self, &slot->block, slot->size_bytes, slot->number);
}

bool vram_verify_copy(vram_run *self, const vram_slot *from, const vram_slot *to)
{
    const uint64_t kept_bytes =
        from->size_bytes < to->size_bytes ? from->size_bytes : to->size_bytes;
    return holds_pattern(self, &to->block, kept_bytes, from->number) && fill(self, to);
}

bool vram_verify_move(vram_run *self, const vram_slot *from, const vram_slot *to, uint64_t to_bytes)
{
    const vram_request kept = {
        .size_bytes = from->size_bytes,
        .align_bytes = vram_alignment_of(self, from->align_log2),
    };
    vram_error why = {0};
    if (to->block.offset_bytes != to_bytes)
        return vram_run_fail(self, "the block moved to %" PRIu64 " is said to live at %" PRIu64,
                             to_bytes, to->block.offset_bytes);
    if (!vram_model_remove(self->model, &from->block, &why) ||
        !vram_model_add(self->model, &kept, &to->block, &why))
        return vram_run_fail(self, "%s", why.text);
    return holds_pattern(self, &to->block, to->size_bytes, to->number);
}

bool vram_verify_state(vram_run *self)
{
    vram_fault fault = {0};
    if (!vram_check(self->backend, &fault))
        return vram_run_fail(self, "its own check finds \"%s\" broken at %" PRIu64, fault.invariant,
                             fault.offset_bytes);
    vram_error why = {0};
    return vram_model_agrees(self->model, self->backend, &why) ||
           vram_run_fail(self, "%s", why.text);
}

bool vram_verify_contents(vram_run *self)
{
    for (size_t index = 0; index < self->slot_count; index++) {
        const vram_slot *const slot = &self->slots[index];
        if (slot->block.handle != 0 &&
            !holds_pattern(self, &slot->block, slot->size_bytes, slot->number))
            return false;
    }
    return true;
}
