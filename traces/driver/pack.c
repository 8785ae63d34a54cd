/*
 * pack.c - branch and bound for offline placement.
 *
 *      ^ offset
 *  cap |--------------------          The axis of moments is cut into sections, the largest sets of
 *      |        =====                 blocks that are alive together; a block covers a run of them.
 *      |######  =====  ####           low[b]   highest top under the open block b: where it would
 *      |######################                 stand if it were placed now
 *      +--s0--s1--s2--s3--s4-->       open[s]  bytes of the section's blocks not yet placed
 *
 * Any placement can be pushed down until each block stands on another or on the ground, and then be
 * read off in order of rising offset, equal offsets in order of rank. So it is enough to look for
 * these: place an open block at its low, never below the block placed last, nor at its height with
 * a lesser rank. Four observations cut the search:
 *
 * P1  The open blocks of a section stand one above another, each at or above its own low. Stacked
 *     in the order of their lows they must end within the cap.
 *
 * P2  A block that would fit wholly below low[b] would have been placed before b.
 *
 * P3  Where no open block spans from one section to the next, left and right are independent.
 *
 * P4  Of blocks with the same sections and size only the first in rank is tried.
 *
 * The ranks decide whether a hard case takes a millisecond or a year, so several take turns with a
 * growing allowance of steps. Canonical order, section bounds and taking turns are those of
 * Moffitt, "MiniMalloc", ASPLOS 2023.
 *
 * A step costs O(m log m + m * sections a block covers) for m open blocks.
 */
#include "pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct item {
    uint64_t size_bytes;
    uint64_t low_bytes;
    uint64_t offset_bytes;
    double key;           /* ranks fall with it */
    uint32_t first, last; /* sections covered, both included */
    uint32_t block;       /* index into the caller's blocks */
} item;

typedef struct raised {
    uint32_t item;
    uint64_t low_bytes; /* before */
} raised;

typedef struct packer {
    item *items; /* by rank */
    size_t count;
    size_t sections;
    uint64_t *stacked_bytes; /* scratch by section: P1 */
    uint64_t *open_bytes;    /* scratch by section: P1 */
    int32_t *spans;          /* scratch by section: P3 */
    raised *undo;            /* what to set back, a stack */
    size_t undo_count, undo_capacity;
    uint64_t cap_bytes;
    uint64_t steps_left;
    bool gave_up;
} packer;

/* The block placed last: the next stands higher, or as high with a greater rank. */
typedef struct mark {
    uint64_t offset_bytes;
    int64_t rank;
} mark;

static bool overlap(const item *a, const item *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static bool solve(packer *self, const uint32_t *open, size_t count, mark last);

/* ---- bounds ---- */

static bool stands_before(const packer *self, uint32_t a, uint32_t b)
{
    const uint64_t low_a = self->items[a].low_bytes;
    const uint64_t low_b = self->items[b].low_bytes;
    return low_a != low_b ? low_a < low_b : a < b;
}

/* Orders the open blocks by low, then rank. They nearly are already, as one placement raised a few.
 */
static void sort_by_low(const packer *self, uint32_t *open, size_t count)
{
    for (size_t k = 1; k < count; k++) {
        const uint32_t moved = open[k];
        size_t to = k;
        for (; to > 0 && stands_before(self, moved, open[to - 1]); to--)
            open[to] = open[to - 1];
        open[to] = moved;
    }
}

static bool stands_at(const packer *self, uint32_t index, mark last)
{
    return self->items[index].low_bytes == last.offset_bytes && (int64_t)index > last.rank;
}

/* Stacks one block on what stands in its sections, no lower than from_bytes. */
static bool stack_up(packer *self, const item *block, uint64_t from_bytes)
{
    for (uint32_t s = block->first; s <= block->last; s++) {
        uint64_t *const top_bytes = &self->stacked_bytes[s];
        if (*top_bytes < from_bytes)
            *top_bytes = from_bytes;
        if (block->size_bytes > self->cap_bytes - *top_bytes)
            return false;
        *top_bytes += block->size_bytes;
    }
    return true;
}

static void clear_sections(packer *self, const uint32_t *open, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        const item *const block = &self->items[open[k]];
        const size_t bytes = (block->last - block->first + 1) * sizeof(uint64_t);
        memset(&self->stacked_bytes[block->first], 0, bytes);
        memset(&self->open_bytes[block->first], 0, bytes);
    }
}

/* Where the next block must stand at the latest, so that all open ones still fit above it. */
static uint64_t latest_offset(packer *self, const uint32_t *open, size_t count)
{
    uint64_t fullest_bytes = 0;
    for (size_t k = 0; k < count; k++) {
        const item *const block = &self->items[open[k]];
        for (uint32_t s = block->first; s <= block->last; s++) {
            self->open_bytes[s] += block->size_bytes;
            if (self->open_bytes[s] > fullest_bytes)
                fullest_bytes = self->open_bytes[s];
        }
    }
    return self->cap_bytes - fullest_bytes; /* P1 has shown that it fits */
}

/* P1. What may still stand at the last offset goes first, all others stand above it. */
static bool sections_fit(packer *self, const uint32_t *open, size_t count, mark last)
{
    clear_sections(self, open, count);
    for (size_t k = 0; k < count; k++)
        if (stands_at(self, open[k], last) &&
            !stack_up(self, &self->items[open[k]], last.offset_bytes))
            return false;
    for (size_t k = 0; k < count; k++) {
        const item *const block = &self->items[open[k]];
        const uint64_t above_bytes = last.offset_bytes + (last.rank >= 0);
        if (!stands_at(self, open[k], last) &&
            !stack_up(self, block, block->low_bytes > above_bytes ? block->low_bytes : above_bytes))
            return false;
    }
    return true;
}

/* P2: no block may be placed at or above this. */
static uint64_t least_top(const packer *self, const uint32_t *open, size_t count)
{
    uint64_t least_bytes = UINT64_MAX;
    for (size_t k = 0; k < count; k++) {
        const item *const block = &self->items[open[k]];
        if (block->low_bytes + block->size_bytes < least_bytes)
            least_bytes = block->low_bytes + block->size_bytes;
    }
    return least_bytes;
}

/* P4: is there an open block of lesser rank that is just like this one? */
static bool has_elder_twin(const packer *self, const uint32_t *open, size_t count, uint32_t index)
{
    const item *const block = &self->items[index];
    for (size_t k = 0; k < count; k++) {
        const item *const other = &self->items[open[k]];
        if (open[k] < index && other->first == block->first && other->last == block->last &&
            other->size_bytes == block->size_bytes)
            return true;
    }
    return false;
}

/* ---- placing and taking back ---- */

/* Puts the block on its low, raises the open ones above it and leaves them in `rest`. */
static bool place(packer *self, const uint32_t *open, size_t count, uint32_t index, uint32_t *rest)
{
    item *const block = &self->items[index];
    const uint64_t top_bytes = block->low_bytes + block->size_bytes;
    block->offset_bytes = block->low_bytes;
    if (!vram_reserve((void **)&self->undo, &self->undo_capacity, self->undo_count + count,
                      sizeof *self->undo)) {
        self->gave_up = true;
        return false;
    }
    size_t kept = 0;
    for (size_t k = 0; k < count; k++) {
        if (open[k] == index)
            continue;
        rest[kept++] = open[k];
        item *const other = &self->items[open[k]];
        if (other->low_bytes >= top_bytes || !overlap(block, other))
            continue;
        self->undo[self->undo_count++] = (raised){open[k], other->low_bytes};
        other->low_bytes = top_bytes;
    }
    return true;
}

static void take_back(packer *self, size_t undo_mark)
{
    while (self->undo_count > undo_mark) {
        const raised was = self->undo[--self->undo_count];
        self->items[was.item].low_bytes = was.low_bytes;
    }
}

/* ---- the search ---- */

/* Tries the open blocks, ordered by low, one after another as the next; `rest` is scratch. */
static bool try_each(packer *self, const uint32_t *open, size_t count, mark last, uint32_t *rest)
{
    const uint64_t top_bytes = least_top(self, open, count);
    const uint64_t latest_bytes = latest_offset(self, open, count);
    for (size_t k = 0; k < count && !self->gave_up; k++) {
        const uint32_t index = open[k];
        const uint64_t low_bytes = self->items[index].low_bytes;
        if (low_bytes < last.offset_bytes)
            continue;
        if (low_bytes == last.offset_bytes && (int64_t)index <= last.rank)
            continue;
        if (low_bytes >= top_bytes || low_bytes > latest_bytes)
            return false;
        if (has_elder_twin(self, open, count, index))
            continue;
        if (self->steps_left == 0) {
            self->gave_up = true;
            return false;
        }
        self->steps_left--;
        const size_t undo_mark = self->undo_count;
        if (place(self, open, count, index, rest) &&
            solve(self, rest, count - 1, (mark){low_bytes, index}))
            return true;
        take_back(self, undo_mark);
    }
    return false;
}

/* Numbers the independent parts of the open blocks (P3) into self->spans by section. */
static void number_parts(packer *self, const uint32_t *open, size_t count)
{
    memset(self->spans, 0, self->sections * sizeof *self->spans);
    for (size_t k = 0; k < count; k++) {
        self->spans[self->items[open[k]].first]++;
        self->spans[self->items[open[k]].last]--;
    }
    int32_t parts = 0;
    int32_t spanning = 0;
    for (size_t s = 0; s < self->sections; s++) {
        spanning += self->spans[s];
        self->spans[s] = parts;
        parts += spanning == 0;
    }
}

/* Blocks that are not connected through sections are placed apart. */
static bool solve_parts(packer *self, const uint32_t *open, size_t count, mark last,
                        uint32_t *scratch)
{
    number_parts(self, open, count);
    const int32_t first_part = self->spans[self->items[open[0]].first];
    size_t inside = 0;
    size_t outside = count;
    for (size_t k = 0; k < count; k++) {
        const bool is_inside = self->spans[self->items[open[k]].first] == first_part;
        scratch[is_inside ? inside++ : --outside] = open[k];
    }
    if (inside < count)
        return solve(self, scratch, inside, last) &&
               solve(self, scratch + inside, count - inside, last);
    sort_by_low(self, scratch, count);
    return sections_fit(self, scratch, count, last) &&
           try_each(self, scratch, count, last, scratch + count);
}

static bool solve(packer *self, const uint32_t *open, size_t count, mark last)
{
    if (count == 0)
        return true;
    uint32_t *const scratch = malloc(2 * count * sizeof *scratch);
    if (scratch == NULL) {
        self->gave_up = true;
        return false;
    }
    const bool found = solve_parts(self, open, count, last, scratch);
    free(scratch);
    return found;
}

/* ---- setting up ---- */

typedef struct moment {
    uint64_t at;
    uint32_t block;
    bool begins;
} moment;

/* At equal moments ends come first: a life ends before its last moment. */
static int by_moment(const void *left, const void *right)
{
    const moment *const a = left;
    const moment *const b = right;
    return a->at != b->at ? (a->at > b->at) - (a->at < b->at) : a->begins - b->begins;
}

/* A section ends at the first end of a life after a beginning: there the set alive was a largest.
 */
static bool cut_into_sections(packer *self, const vram_plan_block *blocks)
{
    moment *const moments = malloc(2 * self->count * sizeof *moments);
    if (moments == NULL)
        return false;
    for (uint32_t i = 0; i < self->count; i++) {
        moments[2 * i] = (moment){blocks[i].from, i, true};
        moments[2 * i + 1] = (moment){blocks[i].to, i, false};
    }
    qsort(moments, 2 * self->count, sizeof *moments, by_moment);
    uint32_t section = 0;
    bool grown = false;
    for (size_t k = 0; k < 2 * self->count; k++) {
        item *const block = &self->items[moments[k].block];
        if (moments[k].begins) {
            block->first = section;
        } else {
            section += grown;
            block->last = section - 1;
        }
        grown = moments[k].begins;
    }
    self->sections = section;
    free(moments);
    return true;
}

/* How much is alive at the fullest moment of the block's life. */
static double crowd_at(const packer *self, const item *block)
{
    uint64_t most_bytes = 0;
    for (uint32_t s = block->first; s <= block->last; s++)
        if (self->open_bytes[s] > most_bytes)
            most_bytes = self->open_bytes[s];
    return (double)most_bytes;
}

static int by_rank(const void *left, const void *right)
{
    const item *const a = left;
    const item *const b = right;
    return a->key != b->key ? (a->key < b->key) - (a->key > b->key)
                            : (a->block > b->block) - (a->block < b->block);
}

static int by_block(const void *left, const void *right)
{
    const item *const a = left;
    const item *const b = right;
    return (a->block > b->block) - (a->block < b->block);
}

/* Ranks by crowd^a * lifetime^b * size^c: the fixed turns first, then random ones. */
static void rank_items(packer *self, const vram_plan_block *blocks, uint32_t turn, uint64_t *random)
{
    static const double fixed[][3] = {{30, 1, 0}, {30, 1, 1}, {0, 1, 0},
                                      {0, 1, 1},  {0, 0, 1},  {30, 0, 1}};
    double power[3];
    for (int i = 0; i < 3; i++)
        power[i] = turn < sizeof fixed / sizeof fixed[0]
                       ? fixed[turn][i]
                       : (double)(vram_next_random(random) >> 11) * 0x1p-53 * (i == 0 ? 10 : 2);
    qsort(self->items, self->count, sizeof *self->items, by_block);
    memset(self->open_bytes, 0, self->sections * sizeof *self->open_bytes);
    for (size_t i = 0; i < self->count; i++)
        for (uint32_t s = self->items[i].first; s <= self->items[i].last; s++)
            self->open_bytes[s] += self->items[i].size_bytes;
    for (size_t i = 0; i < self->count; i++) {
        item *const it = &self->items[i];
        it->low_bytes = 0;
        it->key = power[0] * log(crowd_at(self, it)) + power[1] * log((double)blocks[i].life + 1) +
                  power[2] * log((double)it->size_bytes);
    }
    qsort(self->items, self->count, sizeof *self->items, by_rank);
}

/* One turn with at most `steps` steps. */
static vram_pack_answer take_turn(packer *self, uint32_t *open, uint64_t steps)
{
    for (uint32_t i = 0; i < self->count; i++)
        open[i] = i;
    self->undo_count = 0;
    self->gave_up = false;
    self->steps_left = steps;
    if (solve(self, open, self->count, (mark){0, -1}))
        return VRAM_PACK_FOUND;
    return self->gave_up ? VRAM_PACK_GAVE_UP : VRAM_PACK_NONE;
}

/* Turns with a growing allowance, until one answers or the steps run out. */
static vram_pack_answer take_turns(packer *self, const vram_plan_block *blocks, uint32_t *open,
                                   uint64_t steps)
{
    enum { FIXED_TURNS = 6, TURNS = 24, FIRST_ALLOWANCE = 1500 };
    uint64_t random = 1;
    uint64_t allowance = FIRST_ALLOWANCE;
    for (;; allowance *= 4)
        for (uint32_t turn = 0; turn < TURNS; turn++) {
            if (steps == 0)
                return VRAM_PACK_GAVE_UP;
            const uint64_t wanted = turn < FIXED_TURNS ? 4 * allowance : allowance;
            const uint64_t granted = wanted < steps ? wanted : steps;
            rank_items(self, blocks, turn, &random);
            const vram_pack_answer answer = take_turn(self, open, granted);
            if (answer != VRAM_PACK_GAVE_UP)
                return answer;
            steps -= granted;
        }
}

vram_pack_answer vram_pack(vram_plan_block *blocks, size_t count, uint64_t height_bytes,
                           uint64_t steps)
{
    packer self = {.count = count, .cap_bytes = height_bytes};
    vram_pack_answer answer = VRAM_PACK_GAVE_UP;
    uint32_t *const open = malloc((count + 1) * sizeof *open);
    self.items = calloc(count + 1, sizeof *self.items);
    self.stacked_bytes = calloc(count + 1, sizeof *self.stacked_bytes);
    self.open_bytes = calloc(count + 1, sizeof *self.open_bytes);
    self.spans = calloc(count + 1, sizeof *self.spans);
    bool ready = open != NULL && self.items != NULL && self.stacked_bytes != NULL &&
                 self.open_bytes != NULL && self.spans != NULL;
    for (uint32_t i = 0; ready && i < count; i++)
        self.items[i] = (item){.size_bytes = blocks[i].size_bytes, .block = i};
    ready = ready && cut_into_sections(&self, blocks);
    if (ready)
        answer = take_turns(&self, blocks, open, steps);
    if (answer == VRAM_PACK_FOUND)
        for (size_t i = 0; i < count; i++)
            blocks[self.items[i].block].offset_bytes = self.items[i].offset_bytes;
    free(self.undo);
    free(self.spans);
    free(self.open_bytes);
    free(self.stacked_bytes);
    free(self.items);
    free(open);
    return answer;
}
