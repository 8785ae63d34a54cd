/*
 * final.c - every block in the end, as the snapshot shows it and as the model has it.
 *
 * Addresses of allocations do not tell how much of a segment each block keeps; this does.
 */
#include "validate/oracle.h"

#include <inttypes.h>

static bool map_blocks(const vram_caching *model, vram_offset_map *slots)
{
    for (uint32_t slot = 0; slot < vram_caching_slots(model); slot++) {
        const vram_caching_block *block = vram_caching_at(model, slot);
        if (block->state != VRAM_CACHING_VACANT && block->state != VRAM_CACHING_UNMAPPED &&
            !vram_offset_map_set(slots, block->address_bytes, slot))
            return false;
    }
    return true;
}

static const char *state_name(uint32_t state)
{
    static const char *const names[] = {"no block", "a free block", "a block in use",
                                        "a pending block", "unmapped addresses"};
    return state < sizeof names / sizeof names[0] ? names[state] : "unknown";
}

static uint32_t state_of(const vram_snapshot_block *shown)
{
    switch ((vram_snapshot_state)shown->state) {
    case VRAM_SNAPSHOT_ALLOCATED:
        return VRAM_CACHING_LIVE;
    case VRAM_SNAPSHOT_PENDING_FREE:
        return VRAM_CACHING_PENDING;
    case VRAM_SNAPSHOT_INACTIVE:
        break;
    }
    return VRAM_CACHING_FREE;
}

/* What the model's block has that the snapshot's has not, or NULL. */
static const char *difference_of(const recording *history, const vram_caching *model,
                                 const vram_snapshot_segment *segment,
                                 const vram_snapshot_block *shown, const vram_caching_block *block)
{
    const vram_caching_segment *holder = vram_caching_segment_at(model, block->segment);
    const uint64_t *pool = history->pools[holder->pool].id;
    if (block->size_bytes != shown->size_bytes || block->state != state_of(shown))
        return "";
    if (shown->state != VRAM_SNAPSHOT_INACTIVE && block->requested_bytes != shown->requested_bytes)
        return " for another request";
    if (history->streams[block->stream] != segment->stream)
        return " of another stream";
    if (holder->small != segment->small || pool[0] != segment->pool[0] ||
        pool[1] != segment->pool[1])
        return " of another pool";
    return NULL;
}

static void compare_block(const recording *history, const vram_caching *model,
                          const vram_offset_map *slots, const vram_snapshot_segment *segment,
                          const vram_snapshot_block *shown, oracle *differences,
                          validate_report *report)
{
    static const vram_caching_block nothing = {.state = VRAM_CACHING_VACANT};
    report->final_blocks.recorded++;
    const uint32_t slot = vram_offset_map_find(slots, shown->address);
    const vram_caching_block *block =
        slot == VRAM_OFFSET_MAP_NONE ? &nothing : vram_caching_at(model, slot);
    const char *other =
        slot == VRAM_OFFSET_MAP_NONE ? "" : difference_of(history, model, segment, shown, block);
    if (other == NULL)
        report->final_blocks.equal++;
    else
        oracle_differs(differences, history->count,
                       "%s of %" PRIu64 " bytes at %#" PRIx64 "%s, where the snapshot shows %s of "
                       "%" PRIu64,
                       state_name(block->state), block->size_bytes, shown->address, other,
                       state_name(state_of(shown)), shown->size_bytes);
}

bool validate_final_layout(const recording *history, const vram_caching *model, oracle *differences,
                           validate_report *report)
{
    const vram_snapshot *snapshot = history->snapshot;
    vram_offset_map slots = {.capacity = 0};
    if (!map_blocks(model, &slots)) {
        vram_offset_map_free(&slots);
        return false;
    }
    for (size_t i = 0; i < snapshot->segment_count; i++) {
        const vram_snapshot_segment *segment = &snapshot->segments[i];
        for (size_t k = 0; recording_owns(history, segment) && k < segment->block_count; k++)
            compare_block(history, model, &slots, segment,
                          &snapshot->blocks[segment->first_block + k], differences, report);
    }
    if (slots.count != report->final_blocks.recorded)
        oracle_differs(differences, history->count,
                       "%zu blocks in all, where the snapshot shows %" PRIu64, slots.count,
                       report->final_blocks.recorded);
    vram_offset_map_free(&slots);
    return true;
}
