/*
 * buddy_moves.c - which blocks to move so that a larger block becomes free.
 *
 *   |##|..|..........|########|..##|#.......|        the part of a wanted order that holds least
 *         `-- a free place below <-'-'               live bytes, emptied into places below it
 *
 * Orders are tried from the largest down to the one above the largest free block, each with the
 * parts of that order which are cheapest to empty.
 */
#include "backends/buddy.h"

enum {
    PLAN_MOST = 128, /* moves in a plan: each looks for its place among all spans */
    PARTS_MOST = 16, /* of an order that are tried */
};

/* A part of the arena that could be one block, and what it costs to empty it. */
typedef struct part {
    uint64_t offset_bytes;
    uint64_t live_bytes;
    uint64_t live_blocks;
    uint32_t first; /* its first span */
} part;

static uint64_t largest_free(const buddy *self)
{
    const span *at = self->spans.at;
    uint64_t largest_bytes = 0;
    for (uint32_t number = at[0].after; number != 0; number = at[number].after)
        if (span_is_free(&at[number]) && at[number].size_bytes > largest_bytes)
            largest_bytes = at[number].size_bytes;
    return largest_bytes;
}

/* Cheaper, or as cheap and higher: most free places lie below it. */
static bool is_better(const part *one, const part *other)
{
    return one->live_bytes != other->live_bytes ? one->live_bytes < other->live_bytes
                                                : one->offset_bytes > other->offset_bytes;
}

/* The best part of part_bytes that is worse than the last one; live_bytes is UINT64_MAX when there
 * is none. */
static part next_part(const buddy *self, uint64_t part_bytes, const part *last)
{
    const span *at = self->spans.at;
    part best = {.live_bytes = UINT64_MAX};
    part now = {.live_bytes = UINT64_MAX};
    for (uint32_t number = at[0].after; number != 0; number = at[number].after) {
        const span *it = &at[number];
        if ((it->offset_bytes & (part_bytes - 1)) == 0)
            now = (part){.offset_bytes = it->offset_bytes, .first = number};
        if (now.live_bytes == UINT64_MAX || it->offset_bytes - now.offset_bytes >= part_bytes)
            continue;
        if (span_end(it) - now.offset_bytes > part_bytes) {
            now.live_bytes = UINT64_MAX; /* one span reaches beyond */
            continue;
        }
        now.live_bytes += span_is_free(it) ? 0 : it->size_bytes;
        now.live_blocks += !span_is_free(it);
        if (span_end(it) - now.offset_bytes == part_bytes && is_better(&now, &best) &&
            is_better(last, &now))
            best = now;
    }
    return best;
}

/* A place in a free span for a block, free of the targets of the moves so far; UINT64_MAX: none. */
static uint64_t place_in(const span *it, uint64_t size_bytes, uint64_t align_bytes,
                         const vram_move *moves, size_t count)
{
    uint64_t place_bytes = vram_round_up(it->offset_bytes, align_bytes);
    for (size_t i = 0; i < count && place_bytes < span_end(it); i++) {
        const uint64_t end_bytes = moves[i].to_bytes + moves[i].size_bytes;
        if (place_bytes < end_bytes && moves[i].to_bytes < place_bytes + size_bytes) {
            place_bytes = vram_round_up(end_bytes, align_bytes);
            i = (size_t)-1; /* behind that one, and compared with all again */
        }
    }
    return place_bytes < span_end(it) && size_bytes <= span_end(it) - place_bytes ? place_bytes
                                                                                  : UINT64_MAX;
}

/* The place for a live span in the smallest free block below the part; UINT64_MAX: none. */
static uint64_t place_below(const buddy *self, const part *emptied, const span *live,
                            const vram_move *moves, size_t count)
{
    const span *at = self->spans.at;
    const uint64_t hull_bytes = buddy_hull(live->size_bytes);
    const uint64_t asked_bytes = span_alignment(live, self->head.unit_bytes);
    const uint64_t align_bytes = hull_bytes > asked_bytes ? hull_bytes : asked_bytes;
    uint64_t found_bytes = UINT64_MAX;
    uint64_t least_bytes = UINT64_MAX;
    for (uint32_t number = at[0].after; number != emptied->first; number = at[number].after) {
        const span *it = &at[number];
        if (!span_is_free(it) || it->size_bytes < live->size_bytes || it->size_bytes >= least_bytes)
            continue;
        const uint64_t place_bytes = place_in(it, live->size_bytes, align_bytes, moves, count);
        if (place_bytes != UINT64_MAX) {
            found_bytes = place_bytes;
            least_bytes = it->size_bytes;
        }
    }
    return found_bytes;
}

/* Plans to empty a part; 0 moves when there is no place for one of its blocks. */
static size_t empty_part(const buddy *self, const part *emptied, uint64_t part_bytes,
                         vram_move *moves)
{
    const span *at = self->spans.at;
    size_t count = 0;
    for (uint32_t number = emptied->first;
         number != 0 && at[number].offset_bytes - emptied->offset_bytes < part_bytes;
         number = at[number].after) {
        if (span_is_free(&at[number]))
            continue;
        const uint64_t to_bytes = place_below(self, emptied, &at[number], moves, count);
        if (to_bytes == UINT64_MAX)
            return 0;
        moves[count++] = (vram_move){.handle = (uint64_t)at[number].generation << 32 | number,
                                     .from_bytes = at[number].offset_bytes,
                                     .to_bytes = to_bytes,
                                     .size_bytes = at[number].size_bytes};
    }
    return count;
}

size_t buddy_plan_moves(const vram_backend *backend, uint64_t budget_bytes, vram_move *moves,
                        size_t max_moves)
{
    const buddy *self = (const buddy *)backend;
    const uint64_t largest_bytes = largest_free(self);
    if (max_moves > PLAN_MOST)
        max_moves = PLAN_MOST;
    for (uint64_t part_bytes = self->max_bytes; part_bytes > largest_bytes; part_bytes /= 2) {
        part tried = {.offset_bytes = UINT64_MAX}; /* better than any */
        for (unsigned parts = 0; parts < PARTS_MOST; parts++) {
            tried = next_part(self, part_bytes, &tried);
            if (tried.live_bytes == UINT64_MAX || tried.live_bytes > budget_bytes)
                break;
            const size_t count =
                tried.live_blocks <= max_moves ? empty_part(self, &tried, part_bytes, moves) : 0;
            if (count > 0)
                return count;
        }
    }
    return 0;
}
