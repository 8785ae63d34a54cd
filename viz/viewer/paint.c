/*
 * paint.c - the whole view into its raster: panels, legend, curves, status, and what lies over
 * them.
 */
#include "view.h"

#include "../png.h"

#include <math.h>
#include <string.h>

enum {
    HOVER_LIVE = 100000
}; /* live blocks among which the one under the pointer is found at once */

const vram_theme *theme_of(const vram_view *view)
{
    return view->light ? &vram_light : &vram_dark;
}

/* Text from the left, cut to the width. Returns the width that it took. */
double put(vram_view *view, double x, int baseline, double width, vram_colour colour,
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

static void paint_name(vram_view *view, panel *of)
{
    const vram_theme *colours = theme_of(view);
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
    const vram_moment *moment = &of->moment;
    const uint64_t arena_bytes = of->timeline->arena_bytes;
    size_t unit = 0;
    while (unit < 3 && (double)arena_bytes >= 2 * units[unit + 1].bytes)
        unit++;
    const double bytes = units[unit].bytes;
    const int decimals = unit == 0 ? 0 : 2;
    snprintf(text, sizeof text,
             "live %.*f   granted %.*f   largest free %.*f %s   external %.1f %%", decimals,
             (double)moment->live_bytes / bytes, decimals,
             (double)vram_moment_granted(moment) / bytes, decimals,
             (double)moment->largest_free_bytes / bytes, units[unit].name,
             100 * vram_moment_external(moment));
    put(view, of->map.x, of->box.y + letters_of(view) * 28 / 10, of->map.width,
        theme_of(view)->grey, text);
}

static bool paint_panel(vram_view *view, panel *of)
{
    const vram_theme *colours = theme_of(view);
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
    const vram_theme *colours = theme_of(view);
    const int letters = letters_of(view);
    const int baseline = view->legend.y + letters * 14 / 10;
    const int width = letters * 10;
    x += (int)put(view, x, baseline, letters * 14, colours->grey, from) + letters / 2;
    const vram_rect bar = {x, baseline - letters * 8 / 10, width, letters * 9 / 10};
    for (int i = 0; i < width; i++)
        vram_fill(&view->raster, (vram_rect){x + i, bar.y, 1, bar.height},
                  vram_key_scale_colour(&view->key, (double)i / (width - 1)));
    vram_frame(&view->raster, bar, 1, colours->line);
    x += width + letters / 2;
    return x + (int)put(view, x, baseline, letters * 14, colours->grey, to) + letters * 2;
}

static int put_number_legend(vram_view *view, int x)
{
    char least[VRAM_SIZE_TEXT];
    char greatest[VRAM_SIZE_TEXT];
    char events[48];
    char count[32];
    if (view->key.by == VRAM_BY_SIZE)
        return put_scale(view, x, vram_format_size(view->key.least_bytes, least),
                         vram_format_size(view->key.greatest_bytes, greatest));
    if (view->key.by == VRAM_BY_OCCUPANCY)
        return put_scale(view, x, "0 %", "100 % of a cell");
    snprintf(events, sizeof events, "%s events old", vram_format_count(view->key.span, count));
    return put_scale(view, x, "new", events);
}

static void paint_legend(vram_view *view)
{
    const vram_theme *colours = theme_of(view);
    const int letters = letters_of(view);
    char words[80];
    snprintf(words, sizeof words, "colour: %s", vram_by_name(view->key.by));
    int x = view->legend.x;
    x += (int)put(view, x, view->legend.y + letters * 14 / 10, letters * 14, colours->ink, words) +
         letters * 3 / 2;
    if (vram_by_is_number(view->key.by))
        x = put_number_legend(view, x);
    for (uint32_t slot = 0; !vram_by_is_number(view->key.by) && slot < view->key.slots; slot++)
        x = put_swatch(view, x, vram_key_slot_colour(&view->key, slot),
                       vram_key_slot_name(&view->key, slot, words));
    x = put_swatch(view, x, colours->free, "free");
    put_swatch(view, x, colours->never, "never used so far");
}

/* ---- status ---- */

static void paint_status(vram_view *view)
{
    const vram_theme *colours = theme_of(view);
    const int letters = letters_of(view);
    const int baseline = view->status.y + letters * 13 / 10;
    char event[32];
    char events[32];
    char speed[32];
    char time[48] = "";
    char text[300];
    const panel *of = &view->panels[view->focus];
    if (of->timeline->has_clock && of->op > 0)
        snprintf(time, sizeof time, ", %.6f s",
                 (double)of->timeline->ops[of->op - 1].time_ns / 1e9);
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
    const vram_theme *colours = theme_of(view);
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
    if (view->playing && of->moment.live_blocks > HOVER_LIVE)
        return; /* finding a block among so many takes longer than a frame */
    const size_t found = look_closely(of) ? vram_cursor_at(of->cursor, address_bytes) : SIZE_MAX;
    if (found == SIZE_MAX)
        snprintf(text, sizeof text, "%s\n0x%llx",
                 address_bytes >= of->highest_bytes ? "never used so far" : "free",
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
    const vram_theme *colours = theme_of(view);
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
    bool painted = true;
    seek_all(view);
    vram_fill(&view->raster, (vram_rect){0, 0, view->raster.width, view->raster.height},
              theme_of(view)->ground);
    for (int i = 0; i < view->panel_count; i++)
        if (view->panels[i].shown)
            painted = paint_panel(view, &view->panels[i]) && painted;
    paint_legend(view);
    painted = paint_curves(view) && painted;
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
               ? vram_png_save(&view->raster, 0, path, error)
               : vram_fail(error, "%s: the host is out of memory", path);
}
