/*
 * layout.c - where everything is on the picture.
 *
 *   +--------------------+--------------------+
 *   | name, outcome      | name, outcome      |
 *   | numbers            | numbers            |
 *   | map                | map                |
 *   +--------------------+--------------------+
 *   | legend                                  |
 *   | curves of the panel in focus            |
 *   | scrubber                                |
 *   | status                                  |
 *   +-----------------------------------------+
 */
#include "view.h"

#include <math.h>

int letters_of(const vram_view *view)
{
    const int letters = (int)lround(14 * view->scale);
    return letters < 8 ? 8 : letters;
}

static void lay_out_panels(vram_view *view, vram_rect area)
{
    const int letters = letters_of(view);
    const int gap = letters / 2;
    int shown = 0;
    for (int i = 0; i < view->panel_count; i++)
        shown += view->panels[i].shown;
    const int columns =
        vram_columns_for(shown, area.width, area.height, view->layout == MAP_HILBERT ? 0.9 : 1.3);
    const int rows = (shown + columns - 1) / columns;
    int place = 0;
    for (int i = 0; i < view->panel_count; i++) {
        panel *each = &view->panels[i];
        if (!each->shown)
            continue;
        const int column = place % columns;
        const int row = place / columns;
        const int left = area.x + area.width * column / columns + gap;
        const int right = area.x + area.width * (column + 1) / columns - gap;
        const int top = area.y + area.height * row / rows + gap;
        const int bottom = area.y + area.height * (row + 1) / rows - gap;
        const int head = letters * 36 / 10;
        each->box = (vram_rect){left, top, right - left, bottom - top};
        each->map =
            (vram_rect){left + gap, top + head, right - left - 2 * gap, bottom - top - head - gap};
        place++;
    }
}

void lay_out(vram_view *view)
{
    const int letters = letters_of(view);
    const int width = view->raster.width;
    const int height = view->raster.height;
    const int side = letters;
    const int status_height = letters * 18 / 10;
    const int scrubber_height = letters;
    const int curves_height = height / 6 < letters * 5 ? letters * 5 : height / 6;
    const int legend_height = letters * 2;
    int y = height - status_height;
    view->status = (vram_rect){side, y, width - 2 * side, status_height};
    y -= scrubber_height;
    view->scrubber = (vram_rect){side, y, width - 2 * side, scrubber_height};
    y -= curves_height + letters / 4;
    view->curves = (vram_rect){side, y, width - 2 * side, curves_height};
    y -= legend_height;
    view->legend = (vram_rect){side, y, width - 2 * side, legend_height};
    lay_out_panels(view, (vram_rect){side / 2, 0, width - side, y});
}

/* Cells along a side of the curve's square: the largest power of two whose cells are not smaller
 * than wanted and that, with whole pixels a cell, leaves at most a quarter of the length. */
static uint32_t curve_side(int length, int wanted_side)
{
    uint32_t best = 1;
    for (uint32_t side = 1; side <= 1024 && (int)side * wanted_side <= length; side *= 2)
        if (length / (int)side * (int)side * 4 >= length * 3)
            best = side;
    return best;
}

cell_grid grid_of(const vram_view *view, const panel *of)
{
    const int side = view->scale >= 1.5 ? (int)lround(2 * view->scale) : 2;
    cell_grid grid = {.area = of->map, .side = side};
    if (of->map.width < side || of->map.height < side)
        return grid;
    grid.columns = (uint32_t)(of->map.width / side);
    grid.rows = (uint32_t)(of->map.height / side);
    if (view->layout == MAP_HILBERT) {
        const int shorter = of->map.width < of->map.height ? of->map.width : of->map.height;
        grid.columns = grid.rows = curve_side(shorter, side);
        /* The square may be as large as whole pixels a cell allow. */
        grid.side = shorter / (int)grid.rows;
        const int length = grid.side * (int)grid.rows;
        grid.area.x += (of->map.width - length) / 2;
        grid.area.y += (of->map.height - length) / 2;
    }
    grid.area.width = grid.side * (int)grid.columns;
    grid.area.height = grid.side * (int)grid.rows;
    grid.count = grid.columns * grid.rows;
    grid.cell_bytes = (view->zoom.to - view->zoom.from + grid.count - 1) / grid.count;
    return grid;
}

int panel_at(const vram_view *view, int x, int y)
{
    for (int i = 0; i < view->panel_count; i++)
        if (view->panels[i].shown && rect_holds(view->panels[i].box, x, y))
            return i;
    return NO_PANEL;
}

bool vram_view_resize(vram_view *view, int width, int height)
{
    const int w = width < VRAM_VIEW_LEAST_WIDTH ? VRAM_VIEW_LEAST_WIDTH : width;
    const int h = height < VRAM_VIEW_LEAST_HEIGHT ? VRAM_VIEW_LEAST_HEIGHT : height;
    vram_raster raster;
    if (!vram_raster_make(&raster, w, h))
        return false;
    vram_raster_free(&view->raster);
    view->raster = raster;
    lay_out(view);
    vram_raster_free(&view->curve_picture);
    for (int i = 0; i < view->panel_count; i++) {
        panel *each = &view->panels[i];
        vram_curves_free(&each->curves);
        if (!vram_curves_resample(&each->moments.curves, (uint32_t)view->curves.width,
                                  &each->curves, NULL))
            return false;
    }
    return true;
}
