/*
 * figure.c - ticks point outwards, lettering has one size, nothing stands within a plot.
 */
#include "figure.h"

#include <math.h>
#include <stdio.h>

void vram_pen_text(const vram_pen *pen, double x, int baseline, int letters, double width,
                   vram_colour colour, const char *text)
{
    char cut[512];
    if (width <= 0)
        return;
    vram_text_fit(pen->font, letters, width, text, cut, sizeof cut);
    vram_text(pen->font, pen->on, x, baseline, letters, colour, VRAM_ALIGN_LEFT, cut);
}

int vram_columns_for(int count, int width, int height, double wanted)
{
    int best = 1;
    double best_stretch = INFINITY;
    for (int columns = 1; columns <= count; columns++) {
        const int rows = (count + columns - 1) / columns;
        const double ratio = (double)width / columns / ((double)height / rows);
        const double stretch = fabs(log(ratio / wanted)) + 0.4 * (rows * columns - count);
        if (stretch < best_stretch) {
            best_stretch = stretch;
            best = columns;
        }
    }
    return best;
}

/* ---- axes ---- */

static int tick_of(const vram_pen *pen)
{
    return pen->letters / 2;
}

/* Lines are a pixel, and more where letters are large. */
static int hair_of(const vram_pen *pen)
{
    return pen->letters < 28 ? 1 : pen->letters / 14;
}

/* The ticks of a window, one after the other. */
typedef struct tick_walk {
    vram_window window;
    vram_scale scale;
    double minor; /* positions from one tick to the next */
    double at;
} tick_walk;

static tick_walk walk_ticks(vram_window window, vram_scale scale)
{
    const double minor = scale.step * scale.per_unit / scale.minor;
    return (tick_walk){window, scale, minor,
                       ceil((double)window.from / minor - 1e-9) * minor - minor};
}

/* The next tick: its share of the window, and its label, which is empty for a minor one. */
static bool next_tick(tick_walk *self, double *share, char label[40])
{
    self->at += self->minor;
    if (self->at > (double)self->window.to * (1 + 1e-12))
        return false;
    const double units = self->at / self->scale.per_unit;
    *share = fmin(1, fmax(0, (self->at - (double)self->window.from) /
                                 (double)(self->window.to - self->window.from)));
    label[0] = '\0';
    if (fabs(remainder(units, self->scale.step)) < self->scale.step * 1e-6)
        vram_tick_label(&self->scale, units, label);
    return true;
}

static tick_walk left_ticks(const vram_pen *pen, vram_rect plot, vram_window bytes)
{
    return walk_ticks(bytes, vram_scale_of_bytes(bytes, plot.height, pen->letters * 3));
}

static double widest_label(const vram_pen *pen, tick_walk ticks)
{
    double widest = 0;
    double share;
    char label[40];
    while (next_tick(&ticks, &share, label))
        widest = fmax(widest, vram_text_width(pen->font, pen->letters, label));
    return widest;
}

int vram_left_axis_width(const vram_pen *pen, vram_rect plot, vram_window bytes)
{
    return (int)ceil(widest_label(pen, left_ticks(pen, plot, bytes))) + tick_of(pen) +
           pen->letters * 24 / 10;
}

int vram_lower_axis_height(const vram_pen *pen)
{
    return tick_of(pen) + pen->letters * 36 / 10;
}

void vram_draw_left_axis(const vram_pen *pen, vram_rect plot, vram_window bytes, bool labelled)
{
    tick_walk ticks = left_ticks(pen, plot, bytes);
    const double widest = widest_label(pen, ticks);
    const int tick = tick_of(pen);
    const int hair = hair_of(pen);
    char label[40];
    double share;
    while (next_tick(&ticks, &share, label)) {
        const int y = plot.y + plot.height - 1 - (int)lround(share * (plot.height - 1));
        const int length = label[0] != '\0' ? tick : tick / 2;
        vram_fill(pen->on, (vram_rect){plot.x - hair - length, y, length, hair}, pen->theme->line);
        if (labelled)
            vram_text(pen->font, pen->on, plot.x - hair - tick - pen->letters / 3.0,
                      y + pen->letters * 36 / 100, pen->letters, pen->theme->ink, VRAM_ALIGN_RIGHT,
                      label);
    }
    char title[48];
    snprintf(title, sizeof title, "address (%s)", ticks.scale.unit);
    if (labelled)
        vram_text_up(pen->font, pen->on, plot.x - tick - (int)widest - pen->letters * 11 / 10,
                     plot.y + plot.height / 2.0, pen->letters, pen->theme->ink, VRAM_ALIGN_CENTRE,
                     title);
}

void vram_draw_lower_axis(const vram_pen *pen, vram_rect plot, vram_window window, vram_axis axis,
                          bool has_clock, bool labelled)
{
    const vram_scale scale =
        vram_scale_of_axis(window, axis, has_clock, plot.width, pen->letters * 6);
    tick_walk ticks = walk_ticks(window, scale);
    const int bottom = plot.y + plot.height + hair_of(pen);
    const int tick = tick_of(pen);
    char label[40];
    double share;
    while (next_tick(&ticks, &share, label)) {
        const int x = plot.x + (int)lround(share * (plot.width - 1));
        vram_fill(pen->on, (vram_rect){x, bottom, hair_of(pen), label[0] != '\0' ? tick : tick / 2},
                  pen->theme->line);
        if (labelled)
            vram_text(pen->font, pen->on, x, bottom + tick + pen->letters * 11 / 10, pen->letters,
                      pen->theme->ink, VRAM_ALIGN_CENTRE, label);
    }
    char title[48];
    const bool time = axis == VRAM_AXIS_TIME && has_clock;
    snprintf(title, sizeof title, time ? "time (%s)" : "trace events", scale.unit);
    if (labelled)
        vram_text(pen->font, pen->on, plot.x + plot.width / 2.0,
                  bottom + tick + pen->letters * 28 / 10, pen->letters, pen->theme->ink,
                  VRAM_ALIGN_CENTRE, title);
}

/* ---- keys ---- */

static int swatch_of(const vram_pen *pen)
{
    return pen->letters * 11 / 10;
}

/* A coloured square with its words; returns where the next one goes. */
static int draw_swatch(const vram_pen *pen, int x, int y, vram_colour colour, const char *words)
{
    const int side = swatch_of(pen);
    const vram_rect square = {x, y, side, side};
    vram_fill(pen->on, square, colour);
    vram_frame(pen->on, square, hair_of(pen), pen->theme->line);
    vram_pen_text(pen, x + side + pen->letters * 6 / 10, y + side - pen->letters / 4, pen->letters,
                  pen->letters * 14, pen->theme->ink, words);
    return y + side + pen->letters * 6 / 10;
}

static double widest_mark(const vram_pen *pen, const vram_key_marks *marks)
{
    double widest = 0;
    for (int i = 0; i < marks->count; i++)
        widest = fmax(widest, vram_text_width(pen->font, pen->letters, marks->mark[i].label));
    return widest;
}

static void draw_scale(const vram_pen *pen, const vram_key *key, vram_rect bar)
{
    const vram_key_marks marks = vram_key_marks_of(key);
    const int tick = tick_of(pen);
    const int right = bar.x + bar.width + hair_of(pen);
    for (int y = 0; y < bar.height; y++)
        vram_fill(pen->on, (vram_rect){bar.x, bar.y + y, bar.width, 1},
                  vram_key_scale_colour(key, 1 - (double)y / (bar.height - 1)));
    vram_frame(pen->on, bar, hair_of(pen), pen->theme->line);
    for (int i = 0; i < marks.count; i++) {
        const int y = bar.y + bar.height - 1 - (int)lround(marks.mark[i].at * (bar.height - 1));
        vram_fill(pen->on, (vram_rect){right, y, tick, hair_of(pen)}, pen->theme->line);
        vram_text(pen->font, pen->on, right + tick + pen->letters / 3.0,
                  y + pen->letters * 36 / 100, pen->letters, pen->theme->ink, VRAM_ALIGN_LEFT,
                  marks.mark[i].label);
    }
    vram_text_up(
        pen->font, pen->on, right + tick + (int)widest_mark(pen, &marks) + pen->letters * 18 / 10,
        bar.y + bar.height / 2.0, pen->letters, pen->theme->ink, VRAM_ALIGN_CENTRE, marks.title);
}

static const char *const free_words = "free again";
static const char *const never_words = "never used";

int vram_key_width(const vram_pen *pen, const vram_key *key)
{
    const double beside = swatch_of(pen) + pen->letters * 6 / 10.0;
    double widest = beside + vram_text_width(pen->font, pen->letters, never_words);
    if (vram_by_is_number(key->by)) {
        const vram_key_marks marks = vram_key_marks_of(key);
        return (int)ceil(fmax(widest, swatch_of(pen) + tick_of(pen) + widest_mark(pen, &marks) +
                                          pen->letters * 22 / 10.0));
    }
    for (uint32_t slot = 0; slot < key->slots; slot++) {
        char text[80];
        const char *name = vram_key_slot_name(key, slot, text);
        widest = fmax(widest, beside + fmin(vram_text_width(pen->font, pen->letters, name),
                                            pen->letters * 14));
    }
    return (int)ceil(widest);
}

void vram_draw_key(const vram_pen *pen, const vram_key *key, int x, int top, int bottom)
{
    const int line = swatch_of(pen) + pen->letters * 6 / 10;
    const bool free_too = key->by != VRAM_BY_OCCUPANCY; /* there it is the scale's end */
    const int ground = bottom - line * (free_too ? 2 : 1) + pen->letters * 6 / 10;
    int y = top;
    if (vram_by_is_number(key->by)) {
        draw_scale(pen, key,
                   (vram_rect){x, top, swatch_of(pen), ground - pen->letters * 12 / 10 - top});
        y = ground;
    }
    for (uint32_t slot = 0; !vram_by_is_number(key->by) && slot < key->slots; slot++) {
        char text[80];
        y = draw_swatch(pen, x, y, vram_key_slot_colour(key, slot),
                        vram_key_slot_name(key, slot, text));
    }
    if (free_too)
        y = draw_swatch(pen, x, y, pen->theme->free, free_words);
    draw_swatch(pen, x, y, pen->theme->never, never_words);
}
