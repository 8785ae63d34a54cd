/*
 * map.c - an arena at one moment, as cells.
 *
 *   rows      0 1 2 3        Hilbert   0 1 14 15      time    a heatmap of all moments
 *             4 5 6 7                  3 2 13 12              with a playhead
 *             8 9 ...                  4 7  8 11
 *                                      5 6  9 10
 *
 * Every live block adds to the cells that it covers: the bytes, and those bytes times the block's
 * number (its size or age on a scale of 0 to 1); for kinds (stream, tag, state) the one that covers
 * most of the cell wins. Free memory and memory never used until now have colours of their own.
 */
#include "view.h"

#include "../sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct cell {
    float covered; /* bytes */
    float sum;     /* bytes times number */
    float most;    /* bytes of the kind below */
    uint32_t kind;
} cell;

struct cells {
    cell *at;
    size_t capacity;
    uint32_t *hilbert; /* [distance] = y << 16 | x, for the side below */
    uint32_t hilbert_side;
};

static const struct {
    const char *name;
    bool numeric;
} colour_table[COLOURS] = {
    [BY_SIZE] = {"size", true},
    [BY_AGE] = {"age", true},
    [BY_OCCUPANCY] = {"occupancy", true},
    [BY_STREAM] = {"stream", false},
    [BY_TAG] = {"tag", false},
    [BY_STATE] = {"state", false},
};

const char *colour_name(colour_by colour)
{
    return colour_table[colour].name;
}

bool colour_is_numeric(colour_by colour)
{
    return colour_table[colour].numeric;
}

const char *layout_name(map_layout layout)
{
    static const char *const names[MAP_LAYOUTS] = {"rows", "hilbert", "time"};
    return names[layout];
}

vram_colour colour_of_share(double share)
{
    return vram_viridis(0.12 + 0.88 * share); /* the darkest would look like free memory */
}

vram_colour colour_of_kind(const vram_view *view, uint32_t kind)
{
    return view->colour == BY_STATE && kind == STATE_ROUNDING ? 0xE69F00 : vram_kind_colour(kind);
}

void free_cells(vram_view *view)
{
    if (view->cells != NULL) {
        free(view->cells->at);
        free(view->cells->hilbert);
    }
    free(view->cells);
    view->cells = NULL;
}

/* ---- the curve (Hilbert 1891; the walk of Warren, Hacker's Delight 16) ---- */

static uint32_t hilbert_place(uint32_t side, uint32_t distance)
{
    uint32_t x = 0;
    uint32_t y = 0;
    for (uint32_t s = 1; s < side; s *= 2, distance /= 4) {
        const uint32_t right = 1 & (distance / 2);
        const uint32_t up = 1 & (distance ^ right);
        if (up == 0) {
            if (right == 1) {
                x = s - 1 - x;
                y = s - 1 - y;
            }
            const uint32_t swapped = x;
            x = y;
            y = swapped;
        }
        x += s * right;
        y += s * up;
    }
    return y << 16 | x;
}

static bool reserve_cells(vram_view *view, const cell_grid *grid)
{
    if (view->cells == NULL && (view->cells = calloc(1, sizeof *view->cells)) == NULL)
        return false;
    struct cells *cells = view->cells;
    if (!vram_reserve((void **)&cells->at, &cells->capacity, grid->count, sizeof *cells->at))
        return false;
    if (view->layout != MAP_HILBERT || cells->hilbert_side == grid->rows)
        return true;
    free(cells->hilbert);
    cells->hilbert_side = 0;
    cells->hilbert = malloc(grid->count * sizeof *cells->hilbert);
    if (cells->hilbert == NULL)
        return false;
    for (uint32_t i = 0; i < grid->count; i++)
        cells->hilbert[i] = hilbert_place(grid->rows, i);
    cells->hilbert_side = grid->rows;
    return true;
}

/* Column and row of a cell; row 0 is at the top for rows, at the bottom for the curve. */
static void place_of(const vram_view *view, const cell_grid *grid, uint32_t number,
                     uint32_t *column, uint32_t *row)
{
    if (view->layout == MAP_HILBERT) {
        *column = view->cells->hilbert[number] & 0xffff;
        *row = view->cells->hilbert[number] >> 16;
    } else {
        *column = number % grid->columns;
        *row = number / grid->columns;
    }
}

/* ---- blocks into cells ---- */

/* Where a size stands between the least unit and the largest block of all panels, by its logarithm.
 */
static double size_share(const vram_view *view, const panel *of, uint64_t size_bytes)
{
    const double least = log2((double)of->timeline->unit_bytes + 1);
    double largest = least + 1;
    for (int i = 0; i < view->panel_count; i++)
        largest = fmax(largest, log2((double)view->panels[i].largest_granted + 1));
    return (log2((double)size_bytes + 1) - least) / (largest - least);
}

static double age_share(const vram_view *view, const vram_op *birth)
{
    const double age = view->event > birth->event ? (double)(view->event - birth->event) : 0;
    return log2(age + 1) / log2((double)view->events + 2);
}

/* A stretch of the arena that has one colour. */
typedef struct stretch {
    uint64_t from, to;
    double number;
    uint32_t kind;
} stretch;

static void add_to_cell(cell *at, float bytes, const stretch *what)
{
    at->covered += bytes;
    at->sum += bytes * (float)what->number;
    if (bytes > at->most) {
        at->most = bytes;
        at->kind = what->kind;
    }
}

static void add_stretch(const vram_view *view, const cell_grid *grid, stretch what)
{
    const uint64_t from = what.from > view->zoom.from ? what.from : view->zoom.from;
    const uint64_t to = what.to < view->zoom.to ? what.to : view->zoom.to;
    if (from >= to)
        return;
    const uint64_t size = grid->cell_bytes;
    const uint64_t first = (from - view->zoom.from) / size;
    const uint64_t last = (to - 1 - view->zoom.from) / size;
    cell *at = view->cells->at;
    if (first == last) {
        add_to_cell(&at[first], (float)(to - from), &what);
        return;
    }
    const uint64_t first_end = view->zoom.from + (first + 1) * size;
    const uint64_t last_start = view->zoom.from + last * size;
    add_to_cell(&at[first], (float)(first_end - from), &what);
    const cell full = {(float)size, (float)((double)size * what.number), (float)size, what.kind};
    for (uint64_t i = first + 1; i < last; i++)
        at[i] = full;
    add_to_cell(&at[last], (float)(to - last_start), &what);
}

static void add_block(const vram_view *view, const panel *of, const cell_grid *grid,
                      const vram_live *live)
{
    const vram_op *birth = birth_of(of->timeline, live->block);
    stretch what = {.from = live->offset_bytes, .to = live->offset_bytes + birth->granted_bytes};
    switch (view->colour) {
    case BY_SIZE:
        what.number = size_share(view, of, birth->granted_bytes);
        break;
    case BY_AGE:
        what.number = age_share(view, birth);
        break;
    case BY_STREAM:
        what.kind = birth->stream;
        break;
    case BY_TAG:
        what.kind = birth->tag;
        break;
    case BY_STATE:
        what.kind = of->retired_at != NULL && of->retired_at[live->block] < of->cursor->op
                        ? STATE_PENDING
                        : STATE_LIVE;
        if (birth->granted_bytes > birth->size_bytes) {
            stretch rounding = what;
            rounding.from += birth->size_bytes;
            rounding.kind = STATE_ROUNDING;
            what.to = rounding.from;
            add_stretch(view, grid, rounding);
        }
        break;
    case BY_OCCUPANCY:
    case COLOURS:
        break;
    }
    add_stretch(view, grid, what);
}

/* ---- cells into colours ---- */

static vram_colour colour_of_cell(const vram_view *view, const cell *at, bool never,
                                  double cell_bytes)
{
    const colour_theme *colours = theme_of(view);
    const vram_colour ground = never ? colours->never : colours->free;
    if (at->covered <= 0)
        return ground;
    const double share = fmin(1, at->covered / cell_bytes);
    if (view->colour == BY_OCCUPANCY)
        return colour_of_share(share);
    const vram_colour full = colour_is_numeric(view->colour)
                                 ? colour_of_share(at->sum / at->covered)
                                 : colour_of_kind(view, at->kind);
    const uint32_t strength = (uint32_t)(72 + 183 * share); /* the least use can be seen */
    return vram_mix(ground, full, strength);
}

/* Neighbours are mostly parts of one block: what was worked out for one cell serves the next. */
typedef struct last_colour {
    cell of;
    bool never;
    vram_colour colour;
} last_colour;

static vram_colour colour_again(const vram_view *view, const cell *at, bool never, double bytes,
                                last_colour *last)
{
    if (never != last->never || at->covered != last->of.covered || at->sum != last->of.sum ||
        at->kind != last->of.kind)
        *last = (last_colour){*at, never, colour_of_cell(view, at, never, bytes)};
    return last->colour;
}

/* Whether the cell was ever used, and how many bytes it has: the last may be short. */
static double bytes_of(const vram_view *view, const cell_grid *grid, uint64_t start)
{
    const uint64_t left = view->zoom.to - start;
    return (double)(left < grid->cell_bytes ? left : grid->cell_bytes);
}

static void put_cell(vram_view *view, const cell_grid *grid, uint32_t column, uint32_t row,
                     vram_colour colour)
{
    const size_t width = (size_t)view->raster.width;
    vram_colour *at = view->raster.pixels + (size_t)(grid->area.y + (int)row * grid->side) * width +
                      (size_t)(grid->area.x + (int)column * grid->side);
    for (int y = 0; y < grid->side; y++, at += width)
        for (int x = 0; x < grid->side; x++)
            at[x] = colour;
}

static void colour_cells(vram_view *view, const panel *of, const cell_grid *grid)
{
    last_colour last = {.of = {.covered = -1}};
    for (uint32_t i = 0; i < grid->count; i++) {
        const uint64_t start = view->zoom.from + i * grid->cell_bytes;
        if (start >= view->zoom.to)
            break;
        uint32_t column;
        uint32_t row;
        place_of(view, grid, i, &column, &row);
        put_cell(view, grid, column, row,
                 colour_again(view, &view->cells->at[i], start >= of->cursor->highest_bytes,
                              bytes_of(view, grid, start), &last));
    }
}

/* The followed block's cells get a rim where they border on others. */
static void outline_followed(vram_view *view, const panel *of, const cell_grid *grid)
{
    for (size_t i = 0; i < of->cursor->count; i++) {
        const vram_live *live = &of->cursor->live[i];
        if (live->block != view->followed_block)
            continue;
        const uint64_t from = live->offset_bytes;
        const uint64_t to = from + birth_of(of->timeline, live->block)->granted_bytes;
        if (to <= view->zoom.from || from >= view->zoom.to)
            return;
        const uint64_t first =
            from <= view->zoom.from ? 0 : (from - view->zoom.from) / grid->cell_bytes;
        const uint64_t last =
            ((to < view->zoom.to ? to : view->zoom.to) - 1 - view->zoom.from) / grid->cell_bytes;
        for (uint64_t k = first; k <= last; k++) {
            uint32_t column;
            uint32_t row;
            place_of(view, grid, (uint32_t)k, &column, &row);
            const vram_rect square = {grid->area.x + (int)column * grid->side,
                                      grid->area.y + (int)row * grid->side, grid->side, grid->side};
            if (last - first < 400 || k == first || k == last || (column + row) % 2 == 0)
                vram_fill(&view->raster, square, theme_of(view)->alarm);
        }
        return;
    }
}

/* ---- address by time ---- */

typedef struct heat_column {
    const vram_view *view;
    panel *of;
    vram_area full;
    uint32_t rows;
} heat_column;

static bool draw_heat(void *context, uint32_t column, const vram_area *covered, const bool *touched)
{
    const heat_column *heat = context;
    const colour_theme *colours = theme_of(heat->view);
    vram_raster *on = &heat->of->heat;
    for (uint32_t row = 0; row < heat->rows; row++) {
        const double share = (double)covered[row] / (double)heat->full;
        on->pixels[(size_t)(heat->rows - 1 - row) * (size_t)on->width + column] =
            covered[row] > 0 ? colour_of_share(share)
            : touched[row]   ? colours->free
                             : colours->never;
    }
    return true;
}

static bool make_heat(const vram_view *view, panel *of)
{
    const vram_rect area = of->map;
    if (of->heat.pixels != NULL && of->heat.width == area.width && of->heat.height == area.height &&
        of->heat_zoom.from == view->zoom.from && of->heat_zoom.to == view->zoom.to)
        return true;
    vram_raster_free(&of->heat);
    if (!vram_raster_make(&of->heat, area.width, area.height))
        return false;
    const vram_grid grid = {.columns = (uint32_t)area.width,
                            .rows = (uint32_t)area.height,
                            .axis = VRAM_AXIS_EVENT,
                            .time = {0, view->events},
                            .bytes = view->zoom};
    heat_column heat = {.view = view, .of = of, .full = vram_cell_area(&grid), .rows = grid.rows};
    vram_error error;
    of->heat_zoom = view->zoom;
    return vram_sweep(of->timeline, &grid, draw_heat, &heat, &error);
}

static bool paint_heat(vram_view *view, panel *of)
{
    const colour_theme *colours = theme_of(view);
    if (of->map.width < 1 || of->map.height < 1)
        return true;
    if (!make_heat(view, of))
        return false;
    for (int y = 0; y < of->map.height; y++)
        memcpy(view->raster.pixels + (size_t)(of->map.y + y) * (size_t)view->raster.width +
                   of->map.x,
               of->heat.pixels + (size_t)y * (size_t)of->heat.width,
               (size_t)of->heat.width * sizeof(vram_colour));
    const int x =
        of->map.x + (int)((double)view->event / (double)view->events * (of->map.width - 1));
    vram_line_down(&view->raster, x, of->map.y, of->map.height, letters_of(view) > 20 ? 2 : 1, 1, 0,
                   colours->alarm);
    return true;
}

/* ---- the whole map ---- */

bool paint_map(vram_view *view, panel *of)
{
    const cell_grid grid = grid_of(view, of);
    if (view->layout == MAP_TIME)
        return paint_heat(view, of);
    if (grid.count == 0)
        return true;
    if (!reserve_cells(view, &grid))
        return false;
    memset(view->cells->at, 0, grid.count * sizeof *view->cells->at);
    for (size_t i = 0; i < of->cursor->count; i++)
        add_block(view, of, &grid, &of->cursor->live[i]);
    colour_cells(view, of, &grid);
    if (view->followed_panel != NO_PANEL && of == &view->panels[view->followed_panel])
        outline_followed(view, of, &grid);
    return true;
}

bool address_at(const vram_view *view, const panel *of, int x, int y, uint64_t *address_bytes)
{
    const cell_grid grid = grid_of(view, of);
    if (view->layout == MAP_TIME) {
        const int row = of->map.y + of->map.height - 1 - y;
        if (row < 0 || row >= of->map.height || x < of->map.x || x >= of->map.x + of->map.width)
            return false;
        *address_bytes = view->zoom.from + (uint64_t)((double)(view->zoom.to - view->zoom.from) *
                                                      (row + 0.5) / of->map.height);
        return true;
    }
    const int column = (x - grid.area.x) / (grid.side > 0 ? grid.side : 1);
    const int row = (y - grid.area.y) / (grid.side > 0 ? grid.side : 1);
    if (x < grid.area.x || y < grid.area.y || column >= (int)grid.columns || row >= (int)grid.rows)
        return false;
    uint64_t found = (uint64_t)row * grid.columns + (uint64_t)column;
    if (view->layout == MAP_HILBERT) {
        if (view->cells == NULL || view->cells->hilbert_side != grid.rows)
            return false; /* not painted yet */
        const uint32_t wanted = (uint32_t)row << 16 | (uint32_t)column;
        for (found = 0; found < grid.count && view->cells->hilbert[found] != wanted; found++)
            continue;
    }
    *address_bytes = view->zoom.from + found * grid.cell_bytes + grid.cell_bytes / 2;
    return *address_bytes < view->zoom.to;
}
