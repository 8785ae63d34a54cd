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

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/*
 * A plane is one sum over blocks. Numbers have the area and, but for occupancy, the area times the
 * weight; kinds have an area each, and the area of all is their sum.
 */
typedef struct sweep_plane {
    vram_area *level;  /* row differences of what is live now */
    vram_area *column; /* row differences of the column that is being swept */
    vram_area *cells;  /* of that column, once it is finished */
} sweep_plane;

typedef struct cell_sweep {
    const vram_timeline *timeline;
    const vram_grid *grid;
    const vram_key *key;
    uint64_t span;         /* of a column, scaled */
    uint64_t byte_span;    /* of a row, scaled */
    uint32_t weight_shift; /* weights are counted in 2^this, so that sums fit */
    uint32_t plane_count;
    sweep_plane planes[VRAM_SLOTS];
    vram_area *covered;
    vram_tint *tints;
    bool *touched;
    uint32_t *untouched; /* next row at or above this one that is not touched yet */
    bool *retired;       /* by block; only where the key asks for it */
    vram_places places;
    uint32_t at; /* the column */
    vram_sweep_visit *visit;
    void *context;
    bool out_of_memory;
} cell_sweep;

/* ---- rows that have been touched: each is marked once ---- */

static uint32_t next_untouched(cell_sweep *self, uint32_t row)
{
    while (self->untouched[row] != row) {
        self->untouched[row] = self->untouched[self->untouched[row]];
        row = self->untouched[row];
    }
    return row;
}

static void touch(cell_sweep *self, spot from, spot to)
{
    const uint32_t end = to.cell + (to.rest > 0 ? 1u : 0u);
    for (uint32_t row = next_untouched(self, from.cell); row < end;
         row = next_untouched(self, row)) {
        self->touched[row] = true;
        self->untouched[row] = row + 1;
    }
}

/* ---- blocks ---- */

/* Adds `amount` times the rows from `from` on, for the rest of this column and for all later ones.
 */
static void add_edge(const cell_sweep *self, const sweep_plane *plane, spot from, vram_area amount,
                     uint64_t rest_of_column)
{
    const vram_area here = amount * (self->byte_span - from.rest);
    const vram_area above = amount * from.rest;
    plane->level[from.cell] += here;
    plane->level[from.cell + 1] += above;
    plane->column[from.cell] += here * rest_of_column;
    plane->column[from.cell + 1] += above * rest_of_column;
}

static void add_part(cell_sweep *self, const vram_part *part, bool appears, uint64_t rest_of_column)
{
    const vram_grid *const grid = self->grid;
    const uint64_t end_bytes = part->offset_bytes + part->size_bytes;
    if (end_bytes <= grid->bytes.from || part->offset_bytes >= grid->bytes.to)
        return;
    const spot from = spot_of(part->offset_bytes, grid->bytes, grid->rows);
    const spot to = spot_of(end_bytes, grid->bytes, grid->rows);
    const vram_area plus = appears ? 1 : (vram_area)-1;
    const bool number = vram_by_is_number(self->key->by);
    const sweep_plane *const area = &self->planes[number ? 0 : part->slot];
    add_edge(self, area, from, plus, rest_of_column);
    add_edge(self, area, to, -plus, rest_of_column);
    if (appears)
        touch(self, from, to);
    if (!number || self->plane_count == 1)
        return;
    const vram_area weight = plus * (part->weight >> self->weight_shift);
    add_edge(self, &self->planes[1], from, weight, rest_of_column);
    add_edge(self, &self->planes[1], to, -weight, rest_of_column);
}

static void add_block(cell_sweep *self, const vram_op *op, uint64_t offset_bytes, bool appears,
                      uint64_t rest_of_column)
{
    vram_part parts[2];
    /* Every operation on a block tells its sizes; the rest is told by the first. */
    const bool by_itself = self->key->by == VRAM_BY_OCCUPANCY || self->key->by == VRAM_BY_SIZE;
    const vram_op *const about =
        by_itself ? op : &self->timeline->ops[self->timeline->lives[op->block].birth];
    const bool retired = self->retired != NULL && self->retired[op->block];
    const int count =
        vram_key_parts(self->key, self->timeline, about, offset_bytes, retired, parts);
    for (int i = 0; i < count; i++)
        add_part(self, &parts[i], appears, rest_of_column);
}

/* ---- columns ---- */

static vram_tint tint_of_number(const cell_sweep *self, uint32_t row, double whole)
{
    const double area = (double)self->covered[row];
    vram_tint tint = {.share = area / whole};
    if (self->plane_count == 2 && area > 0)
        tint.mean_weight =
            ldexp((double)self->planes[1].cells[row] / area, (int)self->weight_shift);
    return tint;
}

static vram_tint tint_of_kind(const cell_sweep *self, uint32_t row, double whole)
{
    vram_tint tint = {.share = (double)self->covered[row] / whole};
    for (uint32_t plane = 1; plane < self->plane_count; plane++)
        if (self->planes[plane].cells[row] > self->planes[tint.slot].cells[row])
            tint.slot = plane;
    return tint;
}

static void sum_rows(cell_sweep *self)
{
    const uint32_t rows = self->grid->rows;
    const bool number = vram_by_is_number(self->key->by);
    memset(self->covered, 0, rows * sizeof *self->covered);
    for (uint32_t i = 0; i < self->plane_count; i++) {
        sweep_plane *const plane = &self->planes[i];
        vram_area sum = 0;
        for (uint32_t row = 0; row < rows; row++) {
            plane->cells[row] = sum += plane->column[row];
            self->covered[row] += i == 0 || !number ? sum : 0;
        }
        for (uint32_t row = 0; row < rows + 2; row++)
            plane->column[row] = plane->level[row] * self->span;
    }
    const double whole = (double)vram_cell_area(self->grid);
    for (uint32_t row = 0; row < rows; row++)
        self->tints[row] =
            number ? tint_of_number(self, row, whole) : tint_of_kind(self, row, whole);
}

/* False when no more columns are wanted. */
static bool finish_column(cell_sweep *self)
{
    sum_rows(self);
    const bool more =
        self->visit(self->context, self->at, self->covered, self->tints, self->touched);
    self->at = more ? self->at + 1 : self->grid->columns;
    return more;
}

/* What an operation does to the blocks that are there. */
static void apply(cell_sweep *self, const vram_op *op, uint32_t index, uint64_t rest_of_column)
{
    switch ((vram_op_kind)op->kind) {
    case VRAM_OP_ALLOC:
        add_block(self, op, op->offset_bytes, true, rest_of_column);
        break;
    case VRAM_OP_RELEASE:
        add_block(self, op, op->offset_bytes, false, rest_of_column);
        break;
    case VRAM_OP_MOVE:
        add_block(self, op, vram_place_of(&self->places, op->block).offset_bytes, false,
                  rest_of_column);
        self->out_of_memory = !vram_place_move(&self->places, index);
        add_block(self, op, op->offset_bytes, true, rest_of_column);
        break;
    case VRAM_OP_RETIRE:
        if (self->retired == NULL)
            break;
        add_block(self, op, op->offset_bytes, false, rest_of_column);
        self->retired[op->block] = true;
        add_block(self, op, op->offset_bytes, true, rest_of_column);
        break;
    case VRAM_OP_FAIL:
    case VRAM_OP_MARK:
    case VRAM_OP_KINDS:
        break;
    }
}

static bool step(cell_sweep *self, uint32_t index)
{
    const vram_op *const op = &self->timeline->ops[index];
    const spot now =
        spot_of(vram_op_position(op, self->grid->axis), self->grid->time, self->grid->columns);
    while (self->at < now.cell)
        if (!finish_column(self))
            return false;
    if (self->at == self->grid->columns)
        return false; /* beyond the window */
    apply(self, op, index, self->span - now.rest);
    return !self->out_of_memory;
}

/* ---- the whole ---- */

static uint32_t bits_of(vram_area value)
{
    uint32_t bits = 0;
    for (; value != 0; value >>= 1)
        bits++;
    return bits;
}

static bool reserve(cell_sweep *self)
{
    const size_t rows = (size_t)self->grid->rows + 2;
    bool reserved = true;
    for (uint32_t i = 0; i < self->plane_count; i++) {
        self->planes[i].level = calloc(rows, sizeof(vram_area));
        self->planes[i].column = calloc(rows, sizeof(vram_area));
        self->planes[i].cells = calloc(rows, sizeof(vram_area));
        reserved = reserved && self->planes[i].level != NULL && self->planes[i].column != NULL &&
                   self->planes[i].cells != NULL;
    }
    self->covered = calloc(rows, sizeof *self->covered);
    self->tints = calloc(rows, sizeof *self->tints);
    self->touched = calloc(rows, sizeof *self->touched);
    self->untouched = calloc(rows, sizeof *self->untouched);
    if (self->key->by == VRAM_BY_STATE) {
        self->retired = calloc(self->timeline->life_count + 1, sizeof *self->retired);
        reserved = reserved && self->retired != NULL;
    }
    if (!reserved || self->covered == NULL || self->tints == NULL || self->touched == NULL ||
        self->untouched == NULL)
        return false;
    for (uint32_t row = 0; row < rows; row++)
        self->untouched[row] = row;
    return true;
}

static void release(cell_sweep *self)
{
    for (uint32_t i = 0; i < self->plane_count; i++) {
        free(self->planes[i].level);
        free(self->planes[i].column);
        free(self->planes[i].cells);
    }
    vram_places_free(&self->places);
    free(self->covered);
    free(self->tints);
    free(self->touched);
    free(self->untouched);
    free(self->retired);
}

bool vram_sweep(const vram_timeline *timeline, const vram_grid *grid, const vram_key *key,
                vram_sweep_visit *visit, void *context, vram_error *error)
{
    if (grid->time.from >= grid->time.to || grid->bytes.from >= grid->bytes.to ||
        grid->columns == 0 || grid->rows == 0)
        return vram_fail(error, "the window of the picture is empty");
    const uint32_t weight_bits = bits_of(vram_cell_area(grid)) +
                                 bits_of(key->by == VRAM_BY_AGE ? key->span : VRAM_SIZE_STEPS);
    cell_sweep self = {
        .timeline = timeline,
        .grid = grid,
        .key = key,
        .span = grid->time.to - grid->time.from,
        .byte_span = grid->bytes.to - grid->bytes.from,
        .weight_shift = weight_bits > 127 ? weight_bits - 127 : 0,
        .plane_count = key->by == VRAM_BY_OCCUPANCY ? 1
                       : vram_by_is_number(key->by) ? 2
                                                    : key->slots,
        .places = {.timeline = timeline},
        .visit = visit,
        .context = context,
    };
    self.out_of_memory = !reserve(&self);
    bool going = !self.out_of_memory;
    for (uint32_t i = 0; going && i < timeline->op_count; i++)
        going = step(&self, i);
    while (!self.out_of_memory && self.at < grid->columns)
        finish_column(&self);
    release(&self);
    return !self.out_of_memory || vram_fail(error, "the picture: the host is out of memory");
}
