/*
 * curves.c - live, granted and extent in bytes and external fragmentation, over all time; below
 * them the scrubber with its marks.
 */
#include "view.h"

#include <math.h>
#include <string.h>

/* The names stand above the curves. */
static int height_of(const vram_view *view, double share)
{
    const double clamped = share < 0 ? 0 : share > 1 ? 1 : share;
    const int height = view->curves.height - letters_of(view) * 16 / 10;
    return view->curves.y + view->curves.height - 1 - (int)lround(clamped * (height - 1));
}

/* A column from one extreme to the other. Each begins where the one before ended, so that columns
 * join into a line. */
static void put_column(vram_view *view, int column, double least, double greatest,
                       vram_colour colour)
{
    const int thickness = view->scale < 1.5 ? 1 : (int)lround(view->scale);
    const int top = height_of(view, greatest);
    vram_fill(&view->raster,
              (vram_rect){view->curves.x + column, top, thickness,
                          height_of(view, least) - top + thickness},
              colour);
}

static void paint_curve_lines(vram_view *view)
{
    const vram_theme *colours = theme_of(view);
    const panel *of = &view->panels[view->focus];
    const double full = (double)view->address_end;
    const uint64_t end = vram_axis_whole(of->timeline, VRAM_AXIS_EVENT).to;
    /* After a refusal that ended it, there is nothing to show. */
    const uint32_t width =
        (uint32_t)ceil((double)of->curves.width * (double)end / (double)view->events);
    for (uint32_t i = 0; i < width; i++) { /* at most curves.width: end is at most events */
        const vram_curve_column *at = &of->curves.columns[i];
        const int live = height_of(view, (double)at->greatest.live_bytes / full);
        vram_fill(&view->raster,
                  (vram_rect){view->curves.x + (int)i, live, 1,
                              view->curves.y + view->curves.height - live},
                  vram_mix(colours->panel, colours->accent, 110));
    }
    for (uint32_t i = 0; i < width; i++) {
        const vram_curve_column *at = &of->curves.columns[i];
        put_column(view, (int)i, (double)at->least.extent_bytes / full,
                   (double)at->greatest.extent_bytes / full, colours->extent);
        put_column(view, (int)i, at->least_external, at->greatest_external, colours->external);
        put_column(view, (int)i, (double)vram_moment_granted(&at->least) / full,
                   (double)vram_moment_granted(&at->greatest) / full, colours->granted);
    }
}

static void paint_curve_names(vram_view *view)
{
    const vram_theme *colours = theme_of(view);
    const int letters = letters_of(view);
    const struct {
        const char *words;
        vram_colour colour;
    } names[] = {{"live", colours->accent},
                 {"granted", colours->granted},
                 {"extent", colours->extent},
                 {"external fragmentation, 0 to 100 %", colours->external}};
    char full[VRAM_SIZE_TEXT];
    char text[80];
    const int baseline = view->curves.y + letters * 11 / 10;
    double x = view->curves.x + letters / 2;
    snprintf(text, sizeof text, "%.40s, up to %s:", view->panels[view->focus].timeline->backend,
             vram_format_size(view->address_end, full));
    const double end = view->curves.x + view->curves.width;
    x += put(view, x, baseline, end - x, colours->ink, text) + letters;
    for (size_t i = 0; i < 4; i++)
        x += put(view, x, baseline, end - x, names[i].colour, names[i].words) + letters;
}

static int x_of_event(const vram_view *view, uint64_t event)
{
    return view->scrubber.x +
           (int)lround((double)event / (double)view->events * (view->scrubber.width - 1));
}

/* Refusals of every panel shown, and the asks that were refused when recorded. */
static void paint_marks(vram_view *view)
{
    const vram_theme *colours = theme_of(view);
    const int size = letters_of(view) / 2;
    for (int i = 0; i < view->panel_count; i++) {
        const vram_timeline *timeline = view->panels[i].timeline;
        if (!view->panels[i].shown)
            continue;
        for (size_t k = 0; k < timeline->failure_count; k++) {
            const int x = x_of_event(view, timeline->failures[k].event);
            if (k > 0 && x == x_of_event(view, timeline->failures[k - 1].event))
                continue;
            vram_pointer_down(&view->raster, x, view->scrubber.y + view->scrubber.height / 2, size,
                              colours->alarm);
        }
    }
    const panel *of = &view->panels[view->focus];
    for (size_t i = 0; i < of->try_count; i++)
        vram_line_down(&view->raster, x_of_event(view, of->tries[i]), view->curves.y,
                       view->curves.height, 1, 3, 3, colours->alarm);
}

/* The life of the followed block along the scrubber. */
static void paint_followed_life(vram_view *view)
{
    if (view->followed_panel == NO_PANEL)
        return;
    const vram_timeline *timeline = view->panels[view->followed_panel].timeline;
    const vram_life *life = &timeline->lives[view->followed_block];
    const int from = x_of_event(view, timeline->ops[life->birth].event);
    const int to = life->death == UINT32_MAX ? x_of_event(view, view->events)
                                             : x_of_event(view, timeline->ops[life->death].event);
    vram_fill(&view->raster,
              (vram_rect){from, view->scrubber.y + view->scrubber.height / 3, to - from + 1,
                          view->scrubber.height / 3},
              theme_of(view)->alarm);
}

/* ---- all ---- */

static void copy_rows(vram_raster *to, int to_x, int to_y, const vram_raster *from, int from_x,
                      int from_y, int width, int height)
{
    for (int y = 0; y < height; y++)
        memcpy(to->pixels + (size_t)(to_y + y) * (size_t)to->width + to_x,
               from->pixels + (size_t)(from_y + y) * (size_t)from->width + from_x,
               (size_t)width * sizeof *to->pixels);
}

/* Curves change with the focus, the theme and the size only: they are drawn once for each. */
static bool paint_still(vram_view *view)
{
    const vram_theme *colours = theme_of(view);
    const vram_rect area = view->curves;
    vram_raster *kept = &view->curve_picture;
    if (kept->pixels != NULL && view->curve_focus == view->focus &&
        view->curve_light == view->light) {
        copy_rows(&view->raster, area.x, area.y, kept, 0, 0, area.width, area.height);
        return true;
    }
    vram_fill(&view->raster, area, colours->panel);
    paint_curve_lines(view);
    paint_curve_names(view);
    vram_raster_free(kept);
    if (!vram_raster_make(kept, area.width, area.height))
        return false;
    copy_rows(kept, 0, 0, &view->raster, area.x, area.y, area.width, area.height);
    view->curve_focus = view->focus;
    view->curve_light = view->light;
    return true;
}

bool paint_curves(vram_view *view)
{
    const vram_theme *colours = theme_of(view);
    const bool painted = paint_still(view);
    vram_frame(&view->raster, view->curves, 1, colours->line);
    vram_fill(&view->raster, view->scrubber, colours->never);
    const int x = x_of_event(view, view->event);
    vram_fill(&view->raster,
              (vram_rect){view->scrubber.x, view->scrubber.y, x - view->scrubber.x,
                          view->scrubber.height},
              vram_mix(colours->never, colours->accent, 110));
    paint_followed_life(view);
    paint_marks(view);
    vram_fill(&view->raster,
              (vram_rect){x - 1, view->curves.y, 2,
                          view->scrubber.y + view->scrubber.height - view->curves.y},
              colours->ink);
    return painted;
}
