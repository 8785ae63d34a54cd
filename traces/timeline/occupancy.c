/*
 * occupancy.c - the live blocks in address order, each with the gap after it.
 *
 *   order   | leaf 2        | leaf 0              | leaf 1 |         by address; firsts[] beside it
 *   leaf    [start end gap] [start end gap] ...                      at most LEAF_BLOCKS
 *   arena   ####....########..##..........####......                 gap = the dots after a block
 *   winners        max                                               a tree of maxima over the
 * leaves' max       max                                          largest gaps, by leaf number: a
 *           g(0) g(1) g(2)                                           leaf's number never changes
 *
 * A block of no bytes at address 0 is always there, so that every gap follows a block.
 *
 * I1  starts ascend within and across leaves; start + size + gap is the next start, or the arena.
 * I2  no leaf in `order` is empty.
 * I3  widest of a leaf is the maximum of its gaps; winners[1] that of all.
 *
 * occupy, vacate: a binary search, a shift within one leaf and, once in LEAF_BLOCKS / 2 times, a
 * shift of `order`: near constant up to a million blocks. largest gap, extent: O(1).
 */
#include "occupancy.h"

#include <stdlib.h>
#include <string.h>

enum { LEAF_BLOCKS = 128 };

typedef struct block_leaf {
    uint64_t start[LEAF_BLOCKS];
    uint64_t end[LEAF_BLOCKS];
    uint64_t gap[LEAF_BLOCKS];
    uint64_t widest;
    uint32_t count;
} block_leaf;

struct vram_occupancy {
    block_leaf **leaves; /* by number */
    uint64_t *winners;   /* [1] is the root; leaf n is at [capacity + n] */
    uint32_t *order;     /* leaf numbers by address */
    uint64_t *firsts;    /* first start of each leaf in order */
    uint32_t *spare;     /* numbers of leaves that are not in order */
    uint32_t capacity;   /* of all of these; a power of two */
    uint32_t leaf_count, order_count, spare_count;
};

/* Where a block is: the place of its leaf in order, and its place in the leaf. */
typedef struct seat {
    uint32_t place, index;
} seat;

static block_leaf *leaf_at(const vram_occupancy *self, uint32_t place)
{
    return self->leaves[self->order[place]];
}

/* ---- I3 ---- */

static void set_winner(vram_occupancy *self, uint32_t number, uint64_t widest)
{
    uint32_t node = self->capacity + number;
    self->winners[node] = widest;
    while (node > 1) {
        const uint64_t sibling = self->winners[node ^ 1u];
        const uint64_t winner = self->winners[node] > sibling ? self->winners[node] : sibling;
        node /= 2;
        if (self->winners[node] == winner)
            return;
        self->winners[node] = winner;
    }
}

static void rescan(vram_occupancy *self, uint32_t place)
{
    block_leaf *const leaf = leaf_at(self, place);
    uint64_t widest = 0;
    for (uint32_t i = 0; i < leaf->count; i++)
        widest = leaf->gap[i] > widest ? leaf->gap[i] : widest;
    leaf->widest = widest;
    set_winner(self, self->order[place], widest);
}

/* ---- leaves ---- */

static bool grow_array(void **array, size_t count, size_t element_bytes)
{
    void *const grown = realloc(*array, count * element_bytes);
    if (grown == NULL)
        return false;
    *array = grown;
    return true;
}

static bool grow(vram_occupancy *self)
{
    const uint32_t wanted = self->capacity == 0 ? 16 : self->capacity * 2;
    uint64_t *const winners = calloc((size_t)wanted * 2, sizeof *winners);
    if (winners == NULL || !grow_array((void **)&self->leaves, wanted, sizeof *self->leaves) ||
        !grow_array((void **)&self->order, wanted, sizeof *self->order) ||
        !grow_array((void **)&self->firsts, wanted, sizeof *self->firsts) ||
        !grow_array((void **)&self->spare, wanted, sizeof *self->spare)) {
        free(winners);
        return false;
    }
    for (uint32_t i = 0; i < self->leaf_count; i++)
        winners[wanted + i] = self->winners[self->capacity + i];
    for (uint32_t i = wanted - 1; i > 0; i--)
        winners[i] = winners[2 * i] > winners[2 * i + 1] ? winners[2 * i] : winners[2 * i + 1];
    free(self->winners);
    self->winners = winners;
    self->capacity = wanted;
    return true;
}

/* Makes sure that a leaf can be added without fail. */
static bool reserve_leaf(vram_occupancy *self)
{
    if (self->spare_count > 0)
        return true;
    if (self->leaf_count == self->capacity && !grow(self))
        return false;
    block_leaf *const fresh = malloc(sizeof *fresh);
    if (fresh == NULL)
        return false;
    fresh->count = 0;
    self->leaves[self->leaf_count] = fresh;
    self->spare[self->spare_count++] = self->leaf_count++;
    return true;
}

static block_leaf *add_leaf(vram_occupancy *self, uint32_t place)
{
    const size_t after = self->order_count - place;
    memmove(self->order + place + 1, self->order + place, after * sizeof *self->order);
    memmove(self->firsts + place + 1, self->firsts + place, after * sizeof *self->firsts);
    self->order[place] = self->spare[--self->spare_count];
    self->order_count++;
    return leaf_at(self, place);
}

static void drop_leaf(vram_occupancy *self, uint32_t place)
{
    const uint32_t number = self->order[place];
    const size_t after = self->order_count - place - 1;
    set_winner(self, number, 0);
    memmove(self->order + place, self->order + place + 1, after * sizeof *self->order);
    memmove(self->firsts + place, self->firsts + place + 1, after * sizeof *self->firsts);
    self->order_count--;
    self->spare[self->spare_count++] = number;
}

static void copy_blocks(block_leaf *to, uint32_t to_index, const block_leaf *from,
                        uint32_t from_index, uint32_t count)
{
    memmove(to->start + to_index, from->start + from_index, count * sizeof *to->start);
    memmove(to->end + to_index, from->end + from_index, count * sizeof *to->end);
    memmove(to->gap + to_index, from->gap + from_index, count * sizeof *to->gap);
}

/* Moves the upper half of a full leaf to a new one after it. */
static void split_leaf(vram_occupancy *self, uint32_t place)
{
    block_leaf *const lower = leaf_at(self, place);
    block_leaf *const upper = add_leaf(self, place + 1);
    const uint32_t kept = LEAF_BLOCKS / 2;
    upper->count = LEAF_BLOCKS - kept;
    copy_blocks(upper, 0, lower, kept, upper->count);
    lower->count = kept;
    self->firsts[place + 1] = upper->start[0];
    rescan(self, place);
    rescan(self, place + 1);
}

/* ---- look-up ---- */

/* Last of the ascending values that is at most `key`; values[0] is. */
static uint32_t last_at_most(const uint64_t *values, uint32_t count, uint64_t key)
{
    const uint64_t *base = values;
    while (count > 1) {
        const uint32_t half = count / 2;
        base += base[half] <= key ? half : 0; /* no branch to mispredict */
        count -= half;
    }
    return (uint32_t)(base - values);
}

/* The last block that begins at or before the offset. */
static seat find(const vram_occupancy *self, uint64_t offset_bytes)
{
    const uint32_t place = last_at_most(self->firsts, self->order_count, offset_bytes);
    const block_leaf *const leaf = leaf_at(self, place);
    return (seat){place, last_at_most(leaf->start, leaf->count, offset_bytes)};
}

/* ---- calls ---- */

vram_occupancy *vram_occupancy_new(uint64_t arena_bytes)
{
    vram_occupancy *const self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    if (!reserve_leaf(self)) {
        vram_occupancy_free(self);
        return NULL;
    }
    block_leaf *const first = add_leaf(self, 0);
    first->start[0] = first->end[0] = 0;
    first->gap[0] = arena_bytes;
    first->count = 1;
    self->firsts[0] = 0;
    rescan(self, 0);
    return self;
}

void vram_occupancy_free(vram_occupancy *self)
{
    if (self == NULL)
        return;
    for (uint32_t i = 0; i < self->leaf_count; i++)
        free(self->leaves[i]);
    free(self->leaves);
    free(self->winners);
    free(self->order);
    free(self->firsts);
    free(self->spare);
    free(self);
}

vram_occupied vram_occupy(vram_occupancy *self, uint64_t offset_bytes, uint64_t size_bytes)
{
    seat before = find(self, offset_bytes);
    block_leaf *leaf = leaf_at(self, before.place);
    const uint64_t gap_start = leaf->end[before.index];
    const uint64_t gap_end = gap_start + leaf->gap[before.index];
    if (offset_bytes < gap_start || offset_bytes > gap_end || size_bytes > gap_end - offset_bytes)
        return VRAM_OVERLAPS;
    if (leaf->count == LEAF_BLOCKS) {
        if (!reserve_leaf(self))
            return VRAM_OCCUPANCY_FULL;
        split_leaf(self, before.place);
        before = find(self, offset_bytes);
        leaf = leaf_at(self, before.place);
    }
    const uint32_t index = before.index + 1;
    copy_blocks(leaf, index + 1, leaf, index, leaf->count - index);
    leaf->count++;
    leaf->start[index] = offset_bytes;
    leaf->end[index] = offset_bytes + size_bytes;
    leaf->gap[index] = gap_end - leaf->end[index];
    leaf->gap[before.index] = offset_bytes - gap_start;
    if (gap_end - gap_start == leaf->widest) /* the gap that was cut may have been the widest */
        rescan(self, before.place);
    return VRAM_OCCUPIED;
}

/* Gives the bytes from the end of the block at `at` on to it as its gap. */
static void widen(vram_occupancy *self, seat at, uint64_t gap_end)
{
    block_leaf *const leaf = leaf_at(self, at.place);
    const uint64_t gap = gap_end - leaf->end[at.index];
    leaf->gap[at.index] = gap;
    if (gap > leaf->widest) {
        leaf->widest = gap;
        set_winner(self, self->order[at.place], gap);
    }
}

bool vram_vacate(vram_occupancy *self, uint64_t offset_bytes)
{
    const seat at = find(self, offset_bytes);
    block_leaf *const leaf = leaf_at(self, at.place);
    if (leaf->start[at.index] != offset_bytes || leaf->end[at.index] == offset_bytes)
        return false;
    const uint64_t gap = leaf->gap[at.index];
    const uint64_t gap_end = leaf->end[at.index] + gap;
    /* There is always one before: the block of no bytes at address 0. */
    const seat before = at.index > 0 ? (seat){at.place, at.index - 1}
                                     : (seat){at.place - 1, leaf_at(self, at.place - 1)->count - 1};
    copy_blocks(leaf, at.index, leaf, at.index + 1, leaf->count - at.index - 1);
    leaf->count--;
    if (leaf->count == 0)
        drop_leaf(self, at.place);
    else if (at.index == 0)
        self->firsts[at.place] = leaf->start[0];
    widen(self, before, gap_end);
    if (before.place != at.place && leaf->count > 0 && gap == leaf->widest)
        rescan(self, at.place);
    return true;
}

uint64_t vram_largest_gap(const vram_occupancy *self)
{
    return self->winners[1];
}

uint64_t vram_extent(const vram_occupancy *self)
{
    const block_leaf *const last = leaf_at(self, self->order_count - 1);
    return last->end[last->count - 1];
}
