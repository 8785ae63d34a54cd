/*
 * map.c - an arena at one moment, as cells.
 *
 *   rows      0 1 2 3        Hilbert   0 1 14 15      time    a heatmap of all moments
 *             4 5 6 7                  3 2 13 12              with a playhead
 *             8 9 ...                  4 7  8 11
 *                                      5 6  9 10
 *
 * What lies in a cell is told by cells.c, its colour by the key. Free memory and memory never used
 * until then have colours of their own.
 */
#include "view.h"

#include "../sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *layout_name(map_layout layout)
{
    static const char *const names[MAP_LAYOUTS] = {"rows", "hilbert", "time"};
    return names[layout];
}

static size_t pixel_at(const vram_view *view, int x, int y)
{
    return (size_t)y * (size_t)view->raster.width + (size_t)x;
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

static bool reserve_hilbert(vram_view *view, const cell_grid *grid)
{
    if (view->layout != MAP_HILBERT || view->hilbert_side == grid->rows)
        return true;
    free(view->hilbert);
    view->hilbert_side = 0;
    view->hilbert = malloc(grid->count * sizeof *view->hilbert);
    if (view->hilbert == NULL)
        return false;
    for (uint32_t i = 0; i < grid->count; i++)
        view->hilbert[i] = hilbert_place(grid->rows, i);
    view->hilbert_side = grid->rows;
    return true;
}

/* Where a cell is on the picture. */
static vram_rect square_of(const vram_view *view, const cell_grid *grid, uint32_t number)
{
    const bool hilbert = view->layout == MAP_HILBERT;
    const uint32_t column = hilbert ? view->hilbert[number] & 0xffff : number % grid->columns;
    const uint32_t row = hilbert ? view->hilbert[number] >> 16 : number / grid->columns;
    return (vram_rect){grid->area.x + (int)column * grid->side,
                       grid->area.y + (int)row * grid->side, grid->side, grid->side};
}

/* ---- cells into colours ---- */

/* Neighbours are mostly parts of one block: what was worked out for one cell serves the next. */
typedef struct last_colour {
    vram_tint of;
    vram_colour colour;
} last_colour;

static vram_colour colour_of(const vram_view *view, const panel *of, const cell_grid *grid,
                             uint32_t number, last_colour *last)
{
    vram_tint tint;
    const vram_theme *theme = theme_of(view);
    if (!vram_cells_tint(of->cells, number, &tint)) {
        const uint64_t start = view->zoom.from + number * grid->cell_bytes;
        return start >= of->highest_bytes ? theme->never : theme->free;
    }
    if (tint.share != last->of.share || tint.mean_weight != last->of.mean_weight ||
        tint.slot != last->of.slot)
        *last = (last_colour){tint, vram_key_colour(&view->key, theme, tint, (double)view->event)};
    return last->colour;
}

/* The first row of pixels is drawn, the others of the same cells are copies. */
static void paint_row_of_cells(vram_view *view, const panel *of, const cell_grid *grid,
                               uint32_t row, uint32_t cells, last_colour *last)
{
    vram_colour *const first =
        view->raster.pixels + pixel_at(view, grid->area.x, grid->area.y + (int)row * grid->side);
    vram_colour *at = first;
    for (uint32_t column = 0; column < cells; column++) {
        const vram_colour colour = colour_of(view, of, grid, row * grid->columns + column, last);
        for (int x = 0; x < grid->side; x++)
            *at++ = colour;
    }
    for (int y = 1; y < grid->side; y++)
        memcpy(first + (size_t)y * (size_t)view->raster.width, first,
               cells * (size_t)grid->side * sizeof *first);
}

static void paint_cells(vram_view *view, const panel *of, const cell_grid *grid)
{
    last_colour last = {.of = {.share = -1}};
    const uint64_t length = view->zoom.to - view->zoom.from;
    const uint32_t used = (uint32_t)((length + grid->cell_bytes - 1) / grid->cell_bytes);
    if (view->layout == MAP_ROWS) {
        for (uint32_t row = 0; row * grid->columns < used; row++) {
            const uint32_t left = used - row * grid->columns;
            paint_row_of_cells(view, of, grid, row, left < grid->columns ? left : grid->columns,
                               &last);
        }
        return;
    }
    for (uint32_t i = 0; i < used; i++)
        vram_fill(&view->raster, square_of(view, grid, i), colour_of(view, of, grid, i, &last));
}

/* The followed block's cells take the colour of alarm; of many, every other one. */
static void paint_followed_block(vram_view *view, const panel *of, const cell_grid *grid)
{
    const vram_life *life = &of->timeline->lives[view->followed_block];
    if (of->op <= life->birth || of->op > life->death)
        return;
    const uint64_t from =
        vram_history_offset(&of->history, view->followed_block, (uint32_t)(of->op - 1));
    const uint64_t to = from + birth_of(of->timeline, view->followed_block)->granted_bytes;
    if (to <= view->zoom.from || from >= view->zoom.to)
        return;
    const uint64_t first =
        from <= view->zoom.from ? 0 : (from - view->zoom.from) / grid->cell_bytes;
    const uint64_t last =
        ((to < view->zoom.to ? to : view->zoom.to) - 1 - view->zoom.from) / grid->cell_bytes;
    for (uint64_t k = first; k <= last; k++) {
        const vram_rect square = square_of(view, grid, (uint32_t)k);
        if (last - first < 400 || k == first || k == last ||
            (square.x + square.y) / grid->side % 2 == 0)
            vram_fill(&view->raster, square, theme_of(view)->alarm);
    }
}

/* ---- address by time ---- */

typedef struct heat_column {
    const vram_view *view;
    panel *of;
    vram_grid grid;
} heat_column;

static bool draw_heat(void *context, uint32_t column, const vram_area *covered,
                      const vram_tint *tints, const bool *touched)
{
    const heat_column *heat = context;
    const vram_theme *theme = theme_of(heat->view);
    const uint32_t rows = heat->grid.rows;
    const double now =
        (column + 0.5) * (double)(heat->grid.time.to - heat->grid.time.from) / heat->grid.columns;
    vram_raster *on = &heat->of->heat;
    for (uint32_t row = 0; row < rows; row++)
        on->pixels[(size_t)(rows - 1 - row) * (size_t)on->width + column] =
            covered[row] > 0 ? vram_key_colour(&heat->view->key, theme, tints[row], now)
            : touched[row]   ? theme->free
                             : theme->never;
    return true;
}

static bool make_heat(const vram_view *view, panel *of)
{
    const vram_rect area = of->map;
    if (of->heat.pixels != NULL && of->heat.width == area.width && of->heat.height == area.height &&
        of->heat_zoom.from == view->zoom.from && of->heat_zoom.to == view->zoom.to &&
        of->heat_by == view->key.by && of->heat_light == view->light)
        return true;
    vram_raster_free(&of->heat);
    if (!vram_raster_make(&of->heat, area.width, area.height))
        return false;
    heat_column heat = {.view = view,
                        .of = of,
                        .grid = {.columns = (uint32_t)area.width,
                                 .rows = (uint32_t)area.height,
                                 .axis = VRAM_AXIS_EVENT,
                                 .time = {0, view->events},
                                 .bytes = view->zoom}};
    of->heat_zoom = view->zoom;
    of->heat_by = view->key.by;
    of->heat_light = view->light;
    return vram_sweep(of->timeline, &heat.grid, &view->key, draw_heat, &heat, NULL);
}

static bool paint_heat(vram_view *view, panel *of)
{
    if (of->map.width < 1 || of->map.height < 1)
        return true;
    if (!make_heat(view, of))
        return false;
    for (int y = 0; y < of->map.height; y++)
        memcpy(view->raster.pixels + pixel_at(view, of->map.x, of->map.y + y),
               of->heat.pixels + (size_t)y * (size_t)of->heat.width,
               (size_t)of->heat.width * sizeof(vram_colour));
    const int x =
        of->map.x + (int)((double)view->event / (double)view->events * (of->map.width - 1));
    vram_line_down(&view->raster, x, of->map.y, of->map.height, letters_of(view) > 20 ? 2 : 1, 1, 0,
                   theme_of(view)->alarm);
    return true;
}

/* ---- the whole map ---- */

static bool seek_cells(vram_view *view, panel *of, const cell_grid *grid)
{
    const vram_cell_span span = {view->zoom, grid->cell_bytes, grid->count};
    return vram_cells_set(of->cells, &span, &view->key) &&
           vram_cells_seek(of->cells, of->op, of->moment.live_blocks);
}

bool seek_maps(vram_view *view)
{
    bool found = true;
    seek_all(view);
    for (int i = 0; i < view->panel_count; i++) {
        panel *each = &view->panels[i];
        const cell_grid grid = grid_of(view, each);
        if (each->shown && view->layout != MAP_TIME && grid.count > 0)
            found = seek_cells(view, each, &grid) && found;
    }
    return found;
}

bool paint_map(vram_view *view, panel *of)
{
    if (view->layout == MAP_TIME)
        return paint_heat(view, of);
    const cell_grid grid = grid_of(view, of);
    if (grid.count == 0)
        return true;
    if (!reserve_hilbert(view, &grid) || !seek_cells(view, of, &grid))
        return false;
    paint_cells(view, of, &grid);
    if (view->followed_panel != NO_PANEL && of == &view->panels[view->followed_panel])
        paint_followed_block(view, of, &grid);
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
        if (view->hilbert_side != grid.rows)
            return false; /* not painted yet */
        const uint32_t wanted = (uint32_t)row << 16 | (uint32_t)column;
        for (found = 0; found < grid.count && view->hilbert[found] != wanted; found++)
            continue;
    }
    *address_bytes = view->zoom.from + found * grid.cell_bytes + grid.cell_bytes / 2;
    return *address_bytes < view->zoom.to;
}
