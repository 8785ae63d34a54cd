/*
 * cells.c - sums in cells, and keyframes of them.
 *
 *   operations   |------------K-----------K-----------K-----|
 *   keyframes    {cells}      {cells}     {cells}     {cells}
 *   seek                              >>>>^                     from the nearest keyframe or from
 *                                                               where one stands, forwards or back
 *
 *   a cell       occupancy  [bytes]                             32-bit words
 *                size       [bytes] [bytes x place on the scale]
 *                age        [bytes] [bytes x birth, low] [high]
 *                kinds      [bytes of each slot]
 *
 * Bytes are counted in grains, so that a full cell times a weight fits: 2^19 grains a cell at most,
 * one grain a byte for cells of up to 512 KiB. A stretch within a cell rounds to at least a grain,
 * and alike when it comes and when it goes: sums return to zero exactly.
 *
 * With 10^6 live blocks a list of them costs a walk over all for each picture; sums cost the
 * operations from the nearest keyframe. With few live blocks, which are large and cover many cells
 * each, the list is the cheaper one: seek takes whichever has less to do.
 *
 * seek: O(cells + the lesser of live blocks and operations to the nearest keyframe). Keyframes:
 * FRAME_BUDGET_BYTES in all.
 */
#include "cells.h"

#include <stdlib.h>
#include <string.h>

enum {
    GRAIN_BITS = 19,
    FRAME_BUDGET_BYTES = 96 << 20,
    LEAST_DISTANCE = 16384, /* operations between keyframes */
};

struct vram_cells {
    const vram_timeline *timeline;
    vram_cursor *cursor;
    const vram_history *history;
    const vram_key *key;
    vram_by by; /* of the key, for which the sums are */
    vram_cell_span span;
    uint32_t words; /* a cell */
    uint32_t grain; /* bytes are shifted by it */
    uint32_t *sums; /* at `op` */
    size_t op;
    size_t distance;   /* operations from one keyframe to the next */
    uint32_t **frames; /* frame k is the moment after k * distance operations; the first is empty */
    size_t frame_count, frames_wanted;
    uint32_t *growing; /* the moment after `grown` operations, on the way to the next keyframe */
    size_t grown;
};

static size_t sum_bytes(const vram_cells *self)
{
    return (size_t)self->span.count * self->words * sizeof(uint32_t);
}

static void drop_frames(vram_cells *self)
{
    for (size_t i = 0; i < self->frame_count; i++)
        free(self->frames[i]);
    free(self->frames);
    free(self->growing);
    self->frames = NULL;
    self->growing = NULL;
    self->frame_count = self->frames_wanted = self->grown = 0;
}

vram_cells *vram_cells_new(vram_cursor *cursor, const vram_history *history)
{
    vram_cells *const self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->timeline = cursor->timeline;
    self->cursor = cursor;
    self->history = history;
    return self;
}

void vram_cells_free(vram_cells *self)
{
    if (self == NULL)
        return;
    drop_frames(self);
    free(self->sums);
    free(self);
}

static uint32_t words_for(const vram_key *key)
{
    switch (key->by) {
    case VRAM_BY_OCCUPANCY:
        return 1;
    case VRAM_BY_SIZE:
        return 2;
    case VRAM_BY_AGE:
        return 3;
    case VRAM_BY_STREAM:
    case VRAM_BY_TAG:
    case VRAM_BY_STATE:
    case VRAM_BYS:
        break;
    }
    return key->slots;
}

bool vram_cells_set(vram_cells *self, const vram_cell_span *span, const vram_key *key)
{
    if (self->sums != NULL && self->key == key && self->by == key->by &&
        self->span.bytes.from == span->bytes.from && self->span.bytes.to == span->bytes.to &&
        self->span.cell_bytes == span->cell_bytes && self->span.count == span->count)
        return true;
    drop_frames(self);
    free(self->sums);
    self->span = *span;
    self->key = key;
    self->by = key->by;
    self->words = words_for(key);
    self->grain = 0;
    while (span->cell_bytes >> self->grain > UINT64_C(1) << GRAIN_BITS)
        self->grain++;
    self->op = 0;
    self->sums = calloc((size_t)span->count * self->words + 1, sizeof *self->sums);
    const size_t most_frames = FRAME_BUDGET_BYTES / (sum_bytes(self) + 1) + 1;
    self->distance = self->timeline->op_count / most_frames + 1;
    if (self->distance < LEAST_DISTANCE)
        self->distance = LEAST_DISTANCE;
    self->frames_wanted = self->timeline->op_count / self->distance + 1;
    return self->sums != NULL;
}

/* ---- operations ---- */

/* Adds `grains` of a part to a cell; a sign of -1 takes them away, modulo 2^32. */
static void add_to_cell(const vram_cells *self, uint32_t *cell, uint32_t grains,
                        const vram_part *part, uint32_t sign)
{
    switch (self->key->by) {
    case VRAM_BY_OCCUPANCY:
        cell[0] += sign * grains;
        break;
    case VRAM_BY_SIZE:
        cell[0] += sign * grains;
        cell[1] += sign * grains * (uint32_t)part->weight;
        break;
    case VRAM_BY_AGE: {
        uint64_t sum = (uint64_t)cell[2] << 32 | cell[1];
        const uint64_t change = grains * part->weight;
        sum += sign == 1 ? change : -change;
        cell[0] += sign * grains;
        cell[1] = (uint32_t)sum;
        cell[2] = (uint32_t)(sum >> 32);
        break;
    }
    case VRAM_BY_STREAM:
    case VRAM_BY_TAG:
    case VRAM_BY_STATE:
    case VRAM_BYS:
    default:
        cell[part->slot] += sign * grains;
        break;
    }
}

static uint32_t grains_of(const vram_cells *self, uint64_t bytes)
{
    const uint64_t grains = bytes >> self->grain;
    return grains == 0 ? 1 : (uint32_t)grains;
}

static void add_part(const vram_cells *self, uint32_t *sums, const vram_part *part, uint32_t sign)
{
    const vram_window bytes = self->span.bytes;
    const uint64_t end = part->offset_bytes + part->size_bytes;
    const uint64_t from = part->offset_bytes > bytes.from ? part->offset_bytes : bytes.from;
    const uint64_t to = end < bytes.to ? end : bytes.to;
    if (from >= to)
        return;
    const uint64_t size = self->span.cell_bytes;
    const uint64_t first = (from - bytes.from) / size;
    const uint64_t last = (to - 1 - bytes.from) / size;
    uint32_t *cell = sums + first * self->words;
    if (first == last) {
        add_to_cell(self, cell, grains_of(self, to - from), part, sign);
        return;
    }
    const uint64_t first_end = bytes.from + (first + 1) * size;
    add_to_cell(self, cell, grains_of(self, first_end - from), part, sign);
    const uint32_t full = grains_of(self, size);
    for (uint64_t i = first + 1; i < last; i++)
        add_to_cell(self, cell += self->words, full, part, sign);
    add_to_cell(self, cell + self->words, grains_of(self, to - (bytes.from + last * size)), part,
                sign);
}

static void add_block(const vram_cells *self, uint32_t *sums, const vram_op *op,
                      uint64_t offset_bytes, bool retired, uint32_t sign)
{
    vram_part parts[2];
    /* Every operation on a block tells its sizes; the rest is told by the first. */
    const bool by_itself = self->key->by == VRAM_BY_OCCUPANCY || self->key->by == VRAM_BY_SIZE;
    const vram_op *const about =
        by_itself ? op : &self->timeline->ops[self->timeline->lives[op->block].birth];
    const int count =
        vram_key_parts(self->key, self->timeline, about, offset_bytes, retired, parts);
    for (int i = 0; i < count; i++)
        add_part(self, sums, &parts[i], sign);
}

/* Does an operation (sign 1) or undoes it (sign -1). */
static void apply(const vram_cells *self, uint32_t *sums, uint32_t index, uint32_t sign)
{
    const vram_op *const op = &self->timeline->ops[index];
    switch ((vram_op_kind)op->kind) {
    case VRAM_OP_ALLOC:
        add_block(self, sums, op, op->offset_bytes, false, sign);
        break;
    case VRAM_OP_RELEASE:
        add_block(self, sums, op, op->offset_bytes,
                  vram_history_retired(self->history, op->block, index), -sign);
        break;
    case VRAM_OP_MOVE: {
        const bool retired = vram_history_retired(self->history, op->block, index);
        add_block(self, sums, op, vram_history_offset(self->history, op->block, index - 1), retired,
                  -sign);
        add_block(self, sums, op, op->offset_bytes, retired, sign);
        break;
    }
    case VRAM_OP_RETIRE:
        if (self->key->by != VRAM_BY_STATE)
            break;
        add_block(self, sums, op, op->offset_bytes, false, -sign);
        add_block(self, sums, op, op->offset_bytes, true, sign);
        break;
    case VRAM_OP_FAIL:
    case VRAM_OP_MARK:
    case VRAM_OP_KINDS:
        break;
    }
}

static void replay(const vram_cells *self, uint32_t *sums, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        apply(self, sums, (uint32_t)i, 1);
    for (size_t i = from; i > to; i--)
        apply(self, sums, (uint32_t)(i - 1), (uint32_t)-1);
}

/* ---- keyframes ---- */

static bool begin_frames(vram_cells *self)
{
    if (self->frames != NULL)
        return true;
    self->frames = calloc(self->frames_wanted, sizeof *self->frames);
    self->growing = calloc((size_t)self->span.count * self->words + 1, sizeof *self->growing);
    if (self->frames == NULL || self->growing == NULL) {
        drop_frames(self);
        return false;
    }
    self->frame_count = 1; /* the first needs no memory: nothing lives */
    self->grown = 0;
    return true;
}

bool vram_cells_prepare(vram_cells *self, size_t operations)
{
    if (self->sums == NULL || (self->frames == NULL && self->frames_wanted <= 1) ||
        (self->frames != NULL && self->frame_count >= self->frames_wanted))
        return false;
    if (!begin_frames(self))
        return false; /* without memory for keyframes seeking is slow, not wrong */
    while (operations > 0 && self->frame_count < self->frames_wanted) {
        const size_t due = self->frame_count * self->distance;
        const size_t to = due - self->grown < operations ? due : self->grown + operations;
        operations -= to - self->grown;
        replay(self, self->growing, self->grown, to);
        self->grown = to;
        if (to < due)
            break;
        uint32_t *const frame = malloc(sum_bytes(self) + 1);
        if (frame == NULL) {
            self->frames_wanted = self->frame_count;
            break;
        }
        memcpy(frame, self->growing, sum_bytes(self));
        self->frames[self->frame_count++] = frame;
    }
    if (self->frame_count == self->frames_wanted) {
        free(self->growing);
        self->growing = NULL;
        return false;
    }
    return true;
}

static size_t apart(size_t a, size_t b)
{
    return a > b ? a - b : b - a;
}

/* The keyframe nearest to a moment, of those that are made; the first is always there. */
static size_t nearest_frame(const vram_cells *self, size_t op)
{
    const size_t made = self->frame_count > 0 ? self->frame_count : 1;
    size_t frame = (op + self->distance / 2) / self->distance;
    return frame < made ? frame : made - 1;
}

/* From nothing, by the blocks that live at the moment. */
static bool fill(vram_cells *self, size_t op)
{
    if (!vram_cursor_seek(self->cursor, op))
        return false;
    memset(self->sums, 0, sum_bytes(self));
    for (size_t i = 0; i < self->cursor->count; i++) {
        const vram_live *const live = &self->cursor->live[i];
        const vram_op *const birth = &self->timeline->ops[self->timeline->lives[live->block].birth];
        const bool retired =
            op > 0 && vram_history_retired(self->history, live->block, (uint32_t)(op - 1));
        add_block(self, self->sums, birth, live->offset_bytes, retired, 1);
    }
    self->op = op;
    return true;
}

bool vram_cells_seek(vram_cells *self, size_t op, size_t live_blocks)
{
    const size_t to = op < self->timeline->op_count ? op : self->timeline->op_count;
    const size_t frame = nearest_frame(self, to);
    const size_t start = frame * self->distance;
    const size_t from_frame = apart(start, to);
    const size_t from_here = apart(self->op, to);
    /* The cursor walks its own list and the operations since its own keyframe. */
    const size_t from_list = 2 * live_blocks + 4096;
    if (from_list < from_frame && from_list < from_here)
        return fill(self, to);
    if (from_frame < from_here) {
        if (frame == 0)
            memset(self->sums, 0, sum_bytes(self));
        else
            memcpy(self->sums, self->frames[frame], sum_bytes(self));
        self->op = start;
    }
    replay(self, self->sums, self->op, to);
    self->op = to;
    return true;
}

/* ---- looking ---- */

static double share_of(const vram_cells *self, uint32_t cell, double grains)
{
    const uint64_t left =
        self->span.bytes.to - self->span.bytes.from - cell * self->span.cell_bytes;
    const uint64_t bytes = left < self->span.cell_bytes ? left : self->span.cell_bytes;
    const double share = grains / (double)grains_of(self, bytes);
    return share < 1 ? share : 1;
}

bool vram_cells_tint(const vram_cells *self, uint32_t cell, vram_tint *tint)
{
    const uint32_t *const sum = self->sums + (size_t)cell * self->words;
    *tint = (vram_tint){0};
    if (!vram_by_is_number(self->key->by)) {
        double grains = 0;
        for (uint32_t slot = 0; slot < self->words; slot++) {
            grains += sum[slot];
            tint->slot = sum[slot] > sum[tint->slot] ? slot : tint->slot;
        }
        tint->share = grains > 0 ? share_of(self, cell, grains) : 0;
        return grains > 0;
    }
    if (sum[0] == 0)
        return false;
    tint->share = share_of(self, cell, sum[0]);
    if (self->key->by == VRAM_BY_SIZE)
        tint->mean_weight = (double)sum[1] / sum[0];
    else if (self->key->by == VRAM_BY_AGE)
        tint->mean_weight = ((double)sum[2] * 4294967296.0 + sum[1]) / sum[0];
    return true;
}
