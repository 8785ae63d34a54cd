/*
 * early.c - the blocks that were there when the history begins, told by what became of them.
 *
 *   history:        free_requested(A)      ... alloc(C at the end of A) ...      end: B active
 *   so at the start:  |  A  | slack? |..free..|  B  |
 *
 * A block that is released but was never allocated was there; so was one that is active in the end
 * and was never allocated. What it occupies is its rounded size, and in the large pool perhaps
 * slack: a free block there is larger than 1 MiB, so a smaller gap is slack. A larger gap may hold
 * slack and a free block: the first allocation that lands in it while the block still lives begins
 * where the free block did. Where none tells, the block has no slack, until the model would serve
 * a request from such a gap that PyTorch served elsewhere: then the gap's free block was smaller.
 */
#include "validate/layout.h"

#include <stdlib.h>

static early_block *add_block(early_blocks *found, uint64_t address, uint64_t requested_bytes)
{
    if (!vram_reserve((void **)&found->blocks, &found->capacity, found->count + 1,
                      sizeof *found->blocks))
        return NULL;
    early_block *block = &found->blocks[found->count++];
    *block =
        (early_block){.address = address, .requested_bytes = requested_bytes, .death = SIZE_MAX};
    return block;
}

enum { WITHIN = UINT32_MAX - 1 }; /* in the map of live blocks: allocated within the history */

/* Follows one event. `live` maps the address of each block in use to its number in `found`. */
static bool follow(const recording *self, size_t i, vram_offset_map *live, early_blocks *found)
{
    const vram_snapshot_event *event = &self->events[i];
    if (event->action == VRAM_SNAPSHOT_ALLOC)
        return vram_offset_map_set(live, event->address, WITHIN);
    const bool requested = event->action == VRAM_SNAPSHOT_FREE_REQUESTED;
    if (!requested && event->action != VRAM_SNAPSHOT_FREE_COMPLETED)
        return true;
    uint32_t number = vram_offset_map_find(live, event->address);
    if (number == VRAM_OFFSET_MAP_NONE) {
        early_block *block = add_block(found, event->address, event->size_bytes);
        if (block == NULL)
            return false;
        block->pending = !requested;
        number = (uint32_t)found->count - 1;
    }
    if (requested)
        return vram_offset_map_set(live, event->address, number);
    if (number != WITHIN)
        found->blocks[number].death = i;
    vram_offset_map_remove(live, event->address);
    return true;
}

/* The active blocks of the snapshot that no event of the history explains. */
static bool add_survivors(const recording *self, vram_offset_map *live, early_blocks *found)
{
    const vram_snapshot *snapshot = self->snapshot;
    for (size_t i = 0; i < snapshot->segment_count; i++) {
        const vram_snapshot_segment *segment = &snapshot->segments[i];
        for (size_t k = 0; recording_owns(self, segment) && k < segment->block_count; k++) {
            const vram_snapshot_block *shown = &snapshot->blocks[segment->first_block + k];
            if (shown->state == VRAM_SNAPSHOT_INACTIVE)
                continue;
            const uint32_t number = vram_offset_map_find(live, shown->address);
            if (number == WITHIN)
                continue;
            early_block *block = number == VRAM_OFFSET_MAP_NONE
                                     ? add_block(found, shown->address, shown->requested_bytes)
                                     : &found->blocks[number];
            if (block == NULL)
                return false;
            block->size_bytes = shown->size_bytes;
            block->size_known = true;
            block->pending |=
                number == VRAM_OFFSET_MAP_NONE && shown->state == VRAM_SNAPSHOT_PENDING_FREE;
        }
    }
    return true;
}

static int by_address(const void *a, const void *b)
{
    const early_block *x = a;
    const early_block *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

bool early_find(const recording *self, early_blocks *found)
{
    vram_offset_map live = {.capacity = 0};
    bool whole = true;
    for (size_t i = 0; whole && i < self->count; i++)
        whole = follow(self, i, &live, found);
    whole = whole && add_survivors(self, &live, found);
    vram_offset_map_free(&live);
    if (whole && found->count > 0)
        qsort(found->blocks, found->count, sizeof *found->blocks, by_address);
    for (size_t k = 0; k < found->count; k++)
        if (!found->blocks[k].size_known)
            found->blocks[k].size_bytes =
                vram_caching_round(&self->settings, found->blocks[k].requested_bytes);
    return whole;
}

/* ------------------------------------------------------------------------------------------------
 * slack */

/* The unused bytes behind a block, up to the next one or the end of the segment. */
typedef struct gap {
    uint64_t from, to;
    size_t block;
    uint64_t first_landing; /* address of the first later allocation in it; 0: none */
    size_t landed;          /* and its event */
} gap;

/* The end of what a block could occupy, or 0 when it can have no slack. */
static uint64_t limit_of(const recording *self, const early_blocks *found, size_t k)
{
    const early_block *block = &found->blocks[k];
    const segment_life *life = recording_life_at(self, block->address, 0);
    if (block->size_known || life == NULL || !life->before || life->small)
        return 0;
    const uint64_t end = life->address + life->size_bytes;
    const bool last = k + 1 == found->count || found->blocks[k + 1].address >= end;
    return last ? end : found->blocks[k + 1].address;
}

static gap *list_gaps(const recording *self, const early_blocks *found, size_t *count)
{
    gap *gaps = calloc(found->count + 1, sizeof *gaps);
    *count = 0;
    for (size_t k = 0; gaps != NULL && k < found->count; k++) {
        const uint64_t from = found->blocks[k].address + found->blocks[k].size_bytes;
        const uint64_t to = limit_of(self, found, k);
        if (to > from)
            gaps[(*count)++] = (gap){.from = from, .to = to, .block = k};
    }
    return gaps;
}

static void note_landings(const recording *self, gap *gaps, size_t count)
{
    for (size_t i = 0; i < self->count; i++) {
        const uint64_t address = self->events[i].address;
        if (self->events[i].action != VRAM_SNAPSHOT_ALLOC)
            continue;
        size_t low = 0;
        size_t high = count; /* the first gap that begins above the address */
        while (low < high) {
            const size_t middle = (low + high) / 2;
            if (gaps[middle].from <= address)
                low = middle + 1;
            else
                high = middle;
        }
        if (low > 0 && address < gaps[low - 1].to && gaps[low - 1].first_landing == 0) {
            gaps[low - 1].first_landing = address;
            gaps[low - 1].landed = i;
        }
    }
}

/* The open gap that begins there, made when it is new. NULL: the host is out of memory. */
static open_gap *open_gap_at(recording *self, const gap *from)
{
    for (size_t k = 0; k < self->open_gap_count; k++)
        if (self->open_gaps[k].from == from->from)
            return &self->open_gaps[k];
    if (!vram_reserve((void **)&self->open_gaps, &self->open_gap_capacity, self->open_gap_count + 1,
                      sizeof *self->open_gaps))
        return NULL;
    open_gap *made = &self->open_gaps[self->open_gap_count++];
    *made = (open_gap){.from = from->from, .to = from->to, .start = from->from};
    return made;
}

bool recording_learn(recording *self, uint64_t address, uint64_t rounded_bytes)
{
    for (size_t k = 0; k < self->open_gap_count; k++) {
        open_gap *open = &self->open_gaps[k];
        if (open->start != address || open->to - open->from < rounded_bytes)
            continue;
        const uint64_t start = open->to - rounded_bytes + VRAM_CACHING_MIN_BLOCK;
        if (start <= open->start || start - open->from > VRAM_CACHING_SMALL_MAX)
            return false;
        open->start = start;
        return true;
    }
    return false;
}

/* Where the block before the gap ends, slack included; 0 when the host is out of memory. */
static uint64_t end_of(recording *self, const gap *behind, const early_block *block)
{
    if (block->size_bytes >= self->settings.max_split_bytes ||
        behind->to - behind->from <= VRAM_CACHING_SMALL_MAX)
        return behind->to;
    if (behind->first_landing != 0 && behind->landed < block->death)
        return behind->first_landing;
    const open_gap *untold = open_gap_at(self, behind);
    return untold == NULL ? 0 : untold->start;
}

bool early_find_slack(recording *self, early_blocks *found, uint64_t *slack_bytes)
{
    size_t count;
    gap *gaps = list_gaps(self, found, &count);
    if (gaps == NULL)
        return false;
    note_landings(self, gaps, count);
    bool whole = true;
    for (size_t k = 0; whole && k < count; k++) {
        early_block *block = &found->blocks[gaps[k].block];
        const uint64_t end = end_of(self, &gaps[k], block);
        whole = end != 0;
        if (whole) {
            *slack_bytes += end - gaps[k].from;
            block->size_bytes += end - gaps[k].from;
        }
    }
    free(gaps);
    return whole;
}
