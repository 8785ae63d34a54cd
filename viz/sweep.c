/*
 * sweep.c - exact coverage of a grid by difference arrays.
 *
 *   along addresses             a block from s to e adds to row differences
 *   rows  0     1     2     3
 *         |   s#|#####|##e  |     +(part of 0 above s), +(rest), ..., -(part of 2 above e), -(rest)
 *
 * A block end is two entries, whatever lies between: the prefix sum over the rows fills it in. Time
 * is done the same way, one column at a time: an operation at a share r of its column changes this
 * column by (1 - r) of what it changes all later ones by, so
 *
 *   column = level at its start x span + sum over its operations of (span - r) x change
 *   level += change
 *
 * All in whole numbers modulo 2^128; the results fit, so they are exact, whatever went on between.
 */
#include "sweep.h"

#include <stdlib.h>

/* A place on an axis of `cells` cells, each `span` long in scaled units: cell and rest within it.
 */
typedef struct spot {
    uint32_t cell;
    uint64_t rest;
} spot;

static spot spot_of(uint64_t position, vram_window window, uint32_t cells)
{
    const uint64_t span = window.to - window.from;
    const uint64_t clipped = position <= window.from ? 0
                             : position >= window.to ? span
                                                     : position - window.from;
    if (clipped <= UINT64_MAX / cells) {
        const uint64_t scaled = clipped * cells;
        return (spot){(uint32_t)(scaled / span), scaled % span};
    }
    const vram_area scaled = (vram_area)clipped * cells;
    return (spot){(uint32_t)(scaled / span), (uint64_t)(scaled % span)};
}

typedef struct sweep {
    const vram_timeline *timeline;
    const vram_grid *grid;
    uint64_t span;      /* of a column, scaled */
    uint64_t byte_span; /* of a row, scaled */
    vram_area *level;   /* row differences of what is live now */
    vram_area *column;  /* row differences of the column that is being swept */
    vram_area *covered;
    bool *touched;
    uint32_t *untouched; /* next row at or above this one that is not touched yet */
    uint32_t at;         /* the column */
    vram_sweep_visit *visit;
    void *context;
} sweep;

/* ---- rows that have been touched: each is marked once ---- */

static uint32_t next_untouched(sweep *self, uint32_t row)
{
    while (self->untouched[row] != row) {
        self->untouched[row] = self->untouched[self->untouched[row]];
        row = self->untouched[row];
    }
    return row;
}

static void touch(sweep *self, spot from, spot to)
{
    const uint32_t end = to.cell + (to.rest > 0 ? 1u : 0u);
    for (uint32_t row = next_untouched(self, from.cell); row < end;
         row = next_untouched(self, row)) {
        self->touched[row] = true;
        self->untouched[row] = row + 1;
    }
}

/* ---- blocks ---- */

/* Adds `sign` times the rows from `from` on, for the rest of this column and for all later ones. */
static void add_edge(sweep *self, spot from, vram_area sign, uint64_t rest_of_column)
{
    const vram_area here = sign * (self->byte_span - from.rest);
    const vram_area above = sign * from.rest;
    self->level[from.cell] += here;
    self->level[from.cell + 1] += above;
    self->column[from.cell] += here * rest_of_column;
    self->column[from.cell + 1] += above * rest_of_column;
}

static void add_block(sweep *self, uint64_t offset_bytes, uint64_t size_bytes, bool appears,
                      uint64_t rest_of_column)
{
    const vram_grid *const grid = self->grid;
    const uint64_t end_bytes = offset_bytes + size_bytes;
    if (end_bytes <= grid->bytes.from || offset_bytes >= grid->bytes.to)
        return;
    const spot from = spot_of(offset_bytes, grid->bytes, grid->rows);
    const spot to = spot_of(end_bytes, grid->bytes, grid->rows);
    const vram_area plus = appears ? 1 : (vram_area)-1;
    add_edge(self, from, plus, rest_of_column);
    add_edge(self, to, -plus, rest_of_column);
    if (appears)
        touch(self, from, to);
}

/* ---- columns ---- */

static bool finish_column(sweep *self)
{
    const uint32_t rows = self->grid->rows;
    vram_area sum = 0;
    for (uint32_t row = 0; row < rows; row++)
        self->covered[row] = sum += self->column[row];
    if (!self->visit(self->context, self->at, self->covered, self->touched))
        return false;
    for (uint32_t row = 0; row < rows + 2; row++)
        self->column[row] = self->level[row] * self->span;
    self->at++;
    return true;
}

static bool step(sweep *self, vram_places *places, uint32_t index, bool *out_of_memory)
{
    const vram_op *const op = &self->timeline->ops[index];
    const bool moves = op->kind == VRAM_OP_MOVE;
    if (op->kind != VRAM_OP_ALLOC && op->kind != VRAM_OP_RELEASE && !moves)
        return true;
    const spot now =
        spot_of(vram_op_position(op, self->grid->axis), self->grid->time, self->grid->columns);
    while (self->at < now.cell)
        if (!finish_column(self))
            return false;
    if (self->at == self->grid->columns)
        return false; /* beyond the window */
    const uint64_t rest_of_column = self->span - now.rest;
    if (moves) {
        add_block(self, vram_place_of(places, op->block).offset_bytes, op->granted_bytes, false,
                  rest_of_column);
        *out_of_memory = !vram_place_move(places, index);
    }
    add_block(self, op->offset_bytes, op->granted_bytes, op->kind != VRAM_OP_RELEASE,
              rest_of_column);
    return !*out_of_memory;
}

static bool reserve(sweep *self)
{
    const size_t rows = (size_t)self->grid->rows + 2;
    self->level = calloc(rows, sizeof *self->level);
    self->column = calloc(rows, sizeof *self->column);
    self->covered = calloc(rows, sizeof *self->covered);
    self->touched = calloc(rows, sizeof *self->touched);
    self->untouched = calloc(rows, sizeof *self->untouched);
    if (self->level == NULL || self->column == NULL || self->covered == NULL ||
        self->touched == NULL || self->untouched == NULL)
        return false;
    for (uint32_t row = 0; row < rows; row++)
        self->untouched[row] = row;
    return true;
}

bool vram_sweep(const vram_timeline *timeline, const vram_grid *grid, vram_sweep_visit *visit,
                void *context, vram_error *error)
{
    if (grid->time.from >= grid->time.to || grid->bytes.from >= grid->bytes.to ||
        grid->columns == 0 || grid->rows == 0)
        return vram_fail(error, "the window of the picture is empty");
    sweep self = {
        .timeline = timeline,
        .grid = grid,
        .span = grid->time.to - grid->time.from,
        .byte_span = grid->bytes.to - grid->bytes.from,
        .visit = visit,
        .context = context,
    };
    vram_places places = {.timeline = timeline};
    bool out_of_memory = !reserve(&self);
    bool going = !out_of_memory;
    for (uint32_t i = 0; going && i < timeline->op_count; i++)
        going = step(&self, &places, i, &out_of_memory);
    while (!out_of_memory && self.at < grid->columns && finish_column(&self))
        continue;
    vram_places_free(&places);
    free(self.level);
    free(self.column);
    free(self.covered);
    free(self.touched);
    free(self.untouched);
    return !out_of_memory || vram_fail(error, "the picture: the host is out of memory");
}
