/*
 * paint.c - the whole view into its raster: panels, legend, curves, status, and what lies over
 * them.
 */
#include "view.h"

#include "../axis.h"
#include "../png.h"

#include <math.h>
#include <string.h>

static const colour_theme dark = {
    .ground = 0x121317,
    .panel = 0x1B1D23,
    .ink = 0xE8E8EA,
    .grey = 0x9A9CA5,
    .line = 0x3A3D47,
    .free = 0x32353F,
    .never = 0x202229,
    .accent = 0x56B4E9,
    .alarm = 0xFF6B5E,
};
static const colour_theme light = {
    .ground = 0xFFFFFF,
    .panel = 0xF7F7F8,
    .ink = 0x1F2024,
    .grey = 0x63656D,
    .line = 0xC4C6CC,
    .free = 0xFFFFFF,
    .never = 0xDDDFE4,
    .accent = 0x0072B2,
    .alarm = 0xC8402F,
};

const colour_theme *theme_of(const vram_view *view)
{
    return view->light ? &light : &dark;
}

/* Text from the left, cut to the width. Returns the width that it took. */
static double put(vram_view *view, double x, int baseline, double width, vram_colour colour,
                  const char *text)
{
    char cut[512];
    const int size = letters_of(view);
    if (width <= 0)
        return 0;
    vram_text_fit(view->font, size, width, text, cut, sizeof cut);
    vram_text(view->font, &view->raster, x, baseline, size, colour, VRAM_ALIGN_LEFT, cut);
    return vram_text_width(view->font, size, cut);
}

/* ---- panels ---- */

static uint64_t largest_free(panel *of)
{
    if (of->largest_free_op != of->cursor->op) {
        of->largest_free_bytes = vram_cursor_largest_free(of->cursor);
        of->largest_free_op = of->cursor->op;
    }
    return of->largest_free_bytes;
}

static void paint_name(vram_view *view, panel *of)
{
    const colour_theme *colours = theme_of(view);
    const int letters = letters_of(view);
    const vram_timeline *timeline = of->timeline;
    const int baseline = of->box.y + letters * 13 / 10;
    char outcome[120];
    char count[32];
    vram_colour colour = colours->grey;
    if (timeline->failure_count == 0) {
        snprintf(outcome, sizeof outcome, "completes");
    } else {
        const vram_op_failure *first = &timeline->failures[0];
        colour = colours->alarm;
        snprintf(outcome, sizeof outcome, "refuses at event %s: %s",
                 vram_format_count(first->event, count), first->reason);
    }
    const double used =
        put(view, of->map.x, baseline, of->map.width, colours->ink, timeline->backend);
    const double left = of->map.width - used - letters;
    put(view, of->map.x + used + letters, baseline, left, colour, outcome);
}

/* The numbers in one unit, so that four of them fit above a narrow map. */
static void paint_numbers(vram_view *view, panel *of)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};
    char text[200];
    const vram_cursor *cursor = of->cursor;
    const uint64_t arena_bytes = of->timeline->arena_bytes;
    const uint64_t free_bytes =
        arena_bytes > cursor->granted_bytes ? arena_bytes - cursor->granted_bytes : 0;
    const uint64_t largest_bytes = largest_free(of);
    const double external =
        free_bytes == 0 ? 0 : 100 * (1 - (double)largest_bytes / (double)free_bytes);
    size_t unit = 0;
    while (unit < 3 && (double)arena_bytes >= 2 * units[unit + 1].bytes)
        unit++;
    const double bytes = units[unit].bytes;
    const int decimals = unit == 0 ? 0 : 2;
    snprintf(text, sizeof text,
             "live %.*f   granted %.*f   largest free %.*f %s   external %.1f %%", decimals,
             (double)cursor->live_bytes / bytes, decimals, (double)cursor->granted_bytes / bytes,
             decimals, (double)largest_bytes / bytes, units[unit].name, external);
    put(view, of->map.x, of->box.y + letters_of(view) * 28 / 10, of->map.width,
        theme_of(view)->grey, text);
}

static bool paint_panel(vram_view *view, panel *of)
{
    const colour_theme *colours = theme_of(view);
    vram_fill(&view->raster, of->box, colours->panel);
    vram_frame(&view->raster, of->box, 1,
               of == &view->panels[view->focus] ? colours->accent : colours->line);
    paint_name(view, of);
    paint_numbers(view, of);
    return paint_map(view, of);
}

/* ---- legend ---- */

/* A swatch and its words; returns where the next may begin. */
static int put_swatch(vram_view *view, int x, vram_colour colour, const char *words)
{
    const int letters = letters_of(view);
    const int baseline = view->legend.y + letters * 14 / 10;
    const vram_rect swatch = {x, baseline - letters * 8 / 10, letters, letters * 9 / 10};
    if (x + letters * 3 > view->legend.x + view->legend.width)
        return x;
    vram_fill(&view->raster, swatch, colour);
    vram_frame(&view->raster, swatch, 1, theme_of(view)->line);
    const double used = put(view, x + letters * 14 / 10, baseline,
                            view->legend.x + view->legend.width - x - letters * 14 / 10,
                            theme_of(view)->grey, words);
    return x + letters * 26 / 10 + (int)used;
}

static int put_scale(vram_view *view, int x, const char *from, const char *to)
{
    const colour_theme *colours = theme_of(view);
    const int letters = letters_of(view);
    const int baseline = view->legend.y + letters * 14 / 10;
    const int width = letters * 10;
    x += (int)put(view, x, baseline, letters * 14, colours->grey, from) + letters / 2;
    const vram_rect bar = {x, baseline - letters * 8 / 10, width, letters * 9 / 10};
    for (int i = 0; i < width; i++)
        vram_fill(&view->raster, (vram_rect){x + i, bar.y, 1, bar.height},
                  colour_of_share((double)i / (width - 1)));
    vram_frame(&view->raster, bar, 1, colours->line);
    x += width + letters / 2;
    return x + (int)put(view, x, baseline, letters * 14, colours->grey, to) + letters * 2;
}

static int put_numeric_legend(vram_view *view, int x)
{
    char least[VRAM_SIZE_TEXT];
    char largest[VRAM_SIZE_TEXT];
    char events[48];
    char count[32];
    uint64_t largest_bytes = 0;
    for (int i = 0; i < view->panel_count; i++)
        if (view->panels[i].largest_granted > largest_bytes)
            largest_bytes = view->panels[i].largest_granted;
    switch (view->colour) {
    case BY_SIZE:
        return put_scale(view, x, vram_format_size(view->panels[0].timeline->unit_bytes, least),
                         vram_format_size(largest_bytes, largest));
    case BY_AGE:
        snprintf(events, sizeof events, "%s events old", vram_format_count(view->events, count));
        return put_scale(view, x, "new", events);
    case BY_OCCUPANCY:
        return put_scale(view, x, "0 %", "100 % of a cell");
    case BY_STREAM:
    case BY_TAG:
    case BY_STATE:
    case COLOURS:
        break;
    }
    return x;
}

static int put_kind_legend(vram_view *view, int x)
{
    static const char *const states[STATES] = {"live", "rounding", "released, still in use"};
    const vram_timeline *timeline = view->panels[view->focus].timeline;
    const size_t count = view->colour == BY_STATE    ? STATES
                         : view->colour == BY_STREAM ? timeline->stream_count
                                                     : timeline->tag_count;
    const size_t most = count < VRAM_KIND_COLOURS ? count : VRAM_KIND_COLOURS;
    for (size_t i = 0; i < most; i++) {
        char words[80];
        if (view->colour == BY_STATE)
            snprintf(words, sizeof words, "%s", states[i]);
        else if (view->colour == BY_STREAM)
            snprintf(words, sizeof words, "stream 0x%llx",
                     (unsigned long long)timeline->streams[i]);
        else
            snprintf(words, sizeof words, "%.60s", i == 0 ? "no tag" : timeline->tags[i]);
        x = put_swatch(view, x, colour_of_kind(view, (uint32_t)i), words);
    }
    return count > most ? put_swatch(view, x, VRAM_COLOUR_OTHER, "others") : x;
}

static void paint_legend(vram_view *view)
{
    const colour_theme *colours = theme_of(view);
    char words[64];
    const bool heat = view->layout == MAP_TIME;
    snprintf(words, sizeof words, "colour: %s", heat ? "occupancy" : colour_name(view->colour));
    int x = view->legend.x;
    const int letters = letters_of(view);
    x += (int)put(view, x, view->legend.y + letters * 14 / 10, letters * 14, colours->ink, words) +
         letters * 3 / 2;
    if (heat)
        x = put_scale(view, x, "0 %", "100 % of a cell");
    else if (colour_is_numeric(view->colour))
        x = put_numeric_legend(view, x);
    else
        x = put_kind_legend(view, x);
    x = put_swatch(view, x, colours->free, "free");
    put_swatch(view, x, colours->never, "never used so far");
}

/* ---- curves ---- */

/* The names stand above the curves. */
static int height_of(const vram_view *view, double share)
{
    const double clamped = share < 0 ? 0 : share > 1 ? 1 : share;
    const int height = view->curves.height - letters_of(view) * 16 / 10;
    return view->curves.y + view->curves.height - 1 - (int)lround(clamped * (height - 1));
}

/* A line through a column's extremes and on from the last column. */
static void put_line(vram_view *view, int column, double least, double greatest, int *last,
                     vram_colour colour)
{
    int top = height_of(view, greatest);
    int bottom = height_of(view, least);
    if (*last >= 0) {
        top = *last < top ? *last : top;
        bottom = *last > bottom ? *last : bottom;
    }
    *last = height_of(view, (least + greatest) / 2);
    vram_fill(&view->raster, (vram_rect){view->curves.x + column, top, 1, bottom - top + 1},
              colour);
}

static vram_colour granted_colour(const vram_view *view)
{
    return view->light ? 0xB45F06 : 0xE69F00;
}

static vram_colour extent_colour(const vram_view *view)
{
    return view->light ? 0x00795A : 0x2FBF94;
}

static vram_colour external_colour(const vram_view *view)
{
    return view->light ? 0xA0457C : 0xDD8FBE;
}

static void paint_curve_lines(vram_view *view)
{
    const colour_theme *colours = theme_of(view);
    const vram_curves *curves = &view->panels[view->focus].curves;
    const double full = (double)view->address_end;
    int granted = -1;
    int extent = -1;
    int external = -1;
    for (uint32_t i = 0; i < curves->width; i++) {
        const vram_curve_column *at = &curves->columns[i];
        const int live = height_of(view, (double)at->greatest.live_bytes / full);
        vram_fill(&view->raster,
                  (vram_rect){view->curves.x + (int)i, live, 1,
                              view->curves.y + view->curves.height - live},
                  vram_mix(colours->panel, colours->accent, 110));
    }
    for (uint32_t i = 0; i < curves->width; i++) {
        const vram_curve_column *at = &curves->columns[i];
        put_line(view, (int)i, (double)at->least.extent_bytes / full,
                 (double)at->greatest.extent_bytes / full, &extent, extent_colour(view));
        put_line(view, (int)i, at->least_external, at->greatest_external, &external,
                 external_colour(view));
        put_line(view, (int)i, (double)vram_moment_granted(&at->least) / full,
                 (double)vram_moment_granted(&at->greatest) / full, &granted, granted_colour(view));
    }
}

static void paint_curve_names(vram_view *view)
{
    const colour_theme *colours = theme_of(view);
    const int letters = letters_of(view);
    const struct {
        const char *words;
        vram_colour colour;
    } names[] = {{"live", colours->accent},
                 {"granted", granted_colour(view)},
                 {"extent", extent_colour(view)},
                 {"external fragmentation, 0 to 100 %", external_colour(view)}};
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
    const colour_theme *colours = theme_of(view);
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

static void paint_curves(vram_view *view)
{
    const colour_theme *colours = theme_of(view);
    vram_fill(&view->raster, view->curves, colours->panel);
    paint_curve_lines(view);
    paint_curve_names(view);
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
}

/* ---- status ---- */

static void paint_status(vram_view *view)
{
    const colour_theme *colours = theme_of(view);
    const int letters = letters_of(view);
    const int baseline = view->status.y + letters * 13 / 10;
    char event[32];
    char events[32];
    char speed[32];
    char time[48] = "";
    char text[300];
    const vram_cursor *cursor = view->panels[view->focus].cursor;
    if (cursor->timeline->has_clock && cursor->op > 0)
        snprintf(time, sizeof time, ", %.6f s",
                 (double)cursor->timeline->ops[cursor->op - 1].time_ns / 1e9);
    if (view->asking)
        snprintf(text, sizeof text, "go to: %s_", view->asked);
    else if (view->message_seconds > 0)
        snprintf(text, sizeof text, "%s", view->message);
    else
        snprintf(text, sizeof text, "%s event %s of %s%s   %s events a second   %s",
                 view->playing ? "playing:" : "at", vram_format_count(view->event, event),
                 vram_format_count(view->events, events), time,
                 vram_format_count(UINT64_C(1) << view->speed, speed), layout_name(view->layout));
    const char *hint = "? shows the keys";
    const double hint_width = vram_text_width(view->font, letters, hint);
    put(view, view->status.x, baseline, view->status.width - hint_width - letters,
        view->asking ? colours->accent : colours->ink, text);
    vram_text(view->font, &view->raster, view->status.x + view->status.width, baseline, letters,
              colours->grey, VRAM_ALIGN_RIGHT, hint);
}

/* ---- over everything ---- */

/* A box of lines, kept on the picture. */
static void paint_box(vram_view *view, int x, int y, const char *text)
{
    const colour_theme *colours = theme_of(view);
    const int letters = letters_of(view);
    const int line_height = letters * 14 / 10;
    double widest = 0;
    int lines = 0;
    for (const char *at = text; *at != '\0' && lines < 16; lines++) {
        char line[160];
        const int length = (int)strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", length, at);
        widest = fmax(widest, vram_text_width(view->font, letters, line));
        at += length + (at[length] == '\n');
    }
    const int most = view->raster.width - 4 * letters;
    const int width = (widest < most ? (int)ceil(widest) + 2 : most) + letters * 2;
    const int height = lines * line_height + letters;
    if (x + width > view->raster.width)
        x = view->raster.width - width;
    if (y + height > view->raster.height)
        y = view->raster.height - height;
    const vram_rect box = {x < 0 ? 0 : x, y < 0 ? 0 : y, width, height};
    vram_fill(&view->raster, box, colours->ground);
    vram_frame(&view->raster, box, 1, colours->accent);
    for (int i = 0; i < lines; i++) {
        char line[160];
        const int length = (int)strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", length, text);
        put(view, box.x + letters, box.y + letters * 15 / 10 + i * line_height, width - 2 * letters,
            colours->ink, line);
        text += length + (text[length] == '\n');
    }
}

static void paint_hover(vram_view *view)
{
    const int index = view->inside && !view->dragged ? panel_at(view, view->x, view->y) : NO_PANEL;
    uint64_t address_bytes;
    char text[1200];
    if (index == NO_PANEL || view->layout == MAP_TIME ||
        !address_at(view, &view->panels[index], view->x, view->y, &address_bytes))
        return;
    const panel *of = &view->panels[index];
    const size_t found = vram_cursor_at(of->cursor, address_bytes);
    if (found == SIZE_MAX)
        snprintf(text, sizeof text, "%s\n0x%llx",
                 address_bytes >= of->cursor->highest_bytes ? "never used so far" : "free",
                 (unsigned long long)address_bytes);
    else
        describe_block(view, of, of->cursor->live[found].block, text, sizeof text);
    paint_box(view, view->x + letters_of(view), view->y + letters_of(view), text);
}

/* What is followed, while the pointer says nothing else. */
static void paint_followed(vram_view *view)
{
    char text[1200];
    if (view->followed_panel == NO_PANEL ||
        (view->inside && panel_at(view, view->x, view->y) != NO_PANEL))
        return;
    const panel *of = &view->panels[view->followed_panel];
    describe_block(view, of, view->followed_block, text, sizeof text);
    paint_box(view, of->map.x, of->map.y, text);
}

static void paint_help(vram_view *view)
{
    const colour_theme *colours = theme_of(view);
    const int letters = letters_of(view);
    char text[4096] = "";
    FILE *out = fmemopen(text, sizeof text - 1, "w");
    if (out == NULL)
        return;
    vram_view_print_keys(out);
    fclose(out);
    int lines = 0;
    for (const char *at = text; *at != '\0'; at++)
        lines += *at == '\n';
    const int line_height = view->raster.height / (lines + 4) < letters * 15 / 10
                                ? view->raster.height / (lines + 4)
                                : letters * 15 / 10;
    const int size = line_height * 10 / 14 < letters ? line_height * 10 / 14 : letters;
    const int width = size * 48 < view->raster.width ? size * 48 : view->raster.width;
    const vram_rect box = {(view->raster.width - width) / 2,
                           (view->raster.height - line_height * (lines + 2)) / 2, width,
                           line_height * (lines + 2)};
    vram_fill(&view->raster, box, colours->ground);
    vram_frame(&view->raster, box, 2, colours->accent);
    const char *at = text;
    for (int i = 0; i < lines; i++) {
        char keys[32];
        char help[160];
        const int length = (int)strcspn(at, "\n");
        snprintf(keys, sizeof keys, "%.20s", at + 2);
        snprintf(help, sizeof help, "%.*s", length > 23 ? length - 23 : 0, at + 23);
        const int baseline = box.y + line_height * (i + 1) + line_height * 8 / 10;
        vram_text(view->font, &view->raster, box.x + size * 2, baseline, size, colours->accent,
                  VRAM_ALIGN_LEFT, keys);
        vram_text(view->font, &view->raster, box.x + size * 13, baseline, size, colours->ink,
                  VRAM_ALIGN_LEFT, help);
        at += length + 1;
    }
}

/* ---- all ---- */

const uint32_t *vram_view_paint(vram_view *view, int *width, int *height)
{
    bool painted = seek_all(view);
    vram_fill(&view->raster, (vram_rect){0, 0, view->raster.width, view->raster.height},
              theme_of(view)->ground);
    for (int i = 0; i < view->panel_count; i++)
        if (view->panels[i].shown)
            painted = paint_panel(view, &view->panels[i]) && painted;
    paint_legend(view);
    paint_curves(view);
    paint_status(view);
    paint_followed(view);
    paint_hover(view);
    if (view->help)
        paint_help(view);
    *width = view->raster.width;
    *height = view->raster.height;
    return painted ? view->raster.pixels : NULL;
}

bool vram_view_save(vram_view *view, const char *path, vram_error *error)
{
    int width;
    int height;
    return vram_view_paint(view, &width, &height) != NULL
               ? vram_png_save(&view->raster, path, error)
               : vram_fail(error, "%s: the host is out of memory", path);
}
