/*
 * heatmap.c - address by time: what to draw, and where.
 *
 *     title                                                        '.' never held a block
 *     trace, arena, what one cell is                               '#' viridis by the share in use
 *       +--------------------------------+
 *   GiB |................................|  [ ] colour bar
 *     - |....####........................|  [ ] share in use
 *     - |##########......#####...........|  [ ]
 *       +--------------------------------+
 *           '       '        '   events      [.] never used
 *
 * A cell is a pixel of the plot, so that nothing is resampled.
 */
#include <vramlab/heatmap.h>

#include "axis.h"
#include "png.h"
#include "sweep.h"
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_WIDTH = 1600, DEFAULT_HEIGHT = 1000 };

enum {
    GROUND = 0xFFFFFF,
    INK = 0x222222,
    GREY = 0x6B6B6B,
    FRAME = 0x555555,
    NEVER = 0xE6E6E6,
    ALARM = 0xD1495B,
};

/* The picture in the making. Lengths are in pixels and scale with the picture's height. */
typedef struct picture {
    const vram_timeline *timeline;
    vram_grid grid;
    vram_font *font;
    vram_raster raster;
    vram_rect plot;
    int letters; /* size of ordinary lettering */
    int tick;    /* length of a labelled tick */
} picture;

/* ---- the plot ---- */

static vram_colour colour_of(vram_area covered, vram_area full)
{
    if (covered == 0)
        return vram_viridis(0);
    /* The upper 255 steps are for cells in use, so that the least use differs from none. */
    const double share = (double)covered / (double)full;
    return vram_viridis((1 + 254 * share) / 255);
}

static bool draw_column(void *context, uint32_t column, const vram_area *covered,
                        const bool *touched)
{
    picture *self = context;
    const vram_area full = vram_cell_area(&self->grid);
    const int x = self->plot.x + (int)column;
    int y = self->plot.y + self->plot.height - 1;
    for (uint32_t row = 0; row < self->grid.rows; row++, y--)
        self->raster.pixels[(size_t)y * (size_t)self->raster.width + (size_t)x] =
            touched[row] ? colour_of(covered[row], full) : NEVER;
    return true;
}

/* ---- axes ---- */

static double first_tick(uint64_t from, double step_positions)
{
    return ceil((double)from / step_positions - 1e-9) * step_positions;
}

static void draw_address_axis(picture *self)
{
    const vram_window window = self->grid.bytes;
    const vram_scale scale = vram_scale_of_bytes(window, self->plot.height, self->letters * 4);
    const double minor = scale.step * scale.per_unit / scale.minor;
    const double per_pixel = (double)(window.to - window.from) / self->plot.height;
    double widest = 0;
    for (double at = first_tick(window.from, minor); at <= (double)window.to * (1 + 1e-12);
         at += minor) {
        const double units = at / scale.per_unit;
        const bool labelled = fabs(remainder(units, scale.step)) < scale.step * 1e-6;
        const int y =
            self->plot.y + self->plot.height - (int)lround((at - (double)window.from) / per_pixel);
        const int length = labelled ? self->tick : self->tick / 2;
        vram_line_across(&self->raster, self->plot.x - 1 - length, y, length, 1, 1, 0, FRAME);
        if (!labelled)
            continue;
        char label[40];
        vram_tick_label(&scale, units, label);
        widest = fmax(widest, vram_text_width(self->font, self->letters, label));
        vram_text(self->font, &self->raster, self->plot.x - self->tick - 6,
                  y + self->letters * 35 / 100, self->letters, INK, VRAM_ALIGN_RIGHT, label);
    }
    char name[40];
    snprintf(name, sizeof name, "address (%s)", scale.unit);
    vram_text_up(self->font, &self->raster,
                 self->plot.x - self->tick - (int)widest - self->letters * 14 / 10,
                 self->plot.y + self->plot.height / 2.0, self->letters, INK, VRAM_ALIGN_CENTRE,
                 name);
}

static void draw_time_axis(picture *self)
{
    const vram_window window = self->grid.time;
    const vram_scale scale = vram_scale_of_axis(window, self->grid.axis, self->timeline->has_clock,
                                                self->plot.width, self->letters * 8);
    const double minor = scale.step * scale.per_unit / scale.minor;
    const double per_pixel = (double)(window.to - window.from) / self->plot.width;
    const int bottom = self->plot.y + self->plot.height;
    for (double at = first_tick(window.from, minor); at <= (double)window.to * (1 + 1e-12);
         at += minor) {
        const double units = at / scale.per_unit;
        const bool labelled = fabs(remainder(units, scale.step)) < scale.step * 1e-6;
        const int x = self->plot.x + (int)lround((at - (double)window.from) / per_pixel);
        const int length = labelled ? self->tick : self->tick / 2;
        vram_line_down(&self->raster, x, bottom + 1, length, 1, 1, 0, FRAME);
        char label[40];
        if (labelled)
            vram_text(self->font, &self->raster, x, bottom + self->tick + self->letters * 12 / 10,
                      self->letters, INK, VRAM_ALIGN_CENTRE, vram_tick_label(&scale, units, label));
    }
    const bool time = self->grid.axis == VRAM_AXIS_TIME && self->timeline->has_clock;
    char name[40];
    snprintf(name, sizeof name, time ? "time (%s)" : "trace events", scale.unit);
    vram_text(self->font, &self->raster, self->plot.x + self->plot.width / 2.0,
              bottom + self->tick + self->letters * 29 / 10, self->letters, INK, VRAM_ALIGN_CENTRE,
              name);
}

/* ---- the key ---- */

static void draw_key(picture *self)
{
    const int bar_width = self->letters * 11 / 10;
    const int never_height = bar_width;
    const vram_rect bar = {self->plot.x + self->plot.width + self->letters * 2, self->plot.y,
                           bar_width, self->plot.height - never_height - self->letters * 2};
    for (int y = 0; y < bar.height; y++)
        vram_fill(&self->raster, (vram_rect){bar.x, bar.y + y, bar.width, 1},
                  vram_viridis(1 - (double)y / (bar.height - 1)));
    vram_frame(&self->raster, bar, 1, FRAME);
    for (int percent = 0; percent <= 100; percent += 20) {
        const int y = bar.y + bar.height - bar.height * percent / 100;
        char label[40];
        snprintf(label, sizeof label, "%d %%", percent);
        vram_line_across(&self->raster, bar.x + bar.width + 1, y, self->tick, 1, 1, 0, FRAME);
        vram_text(self->font, &self->raster, bar.x + bar.width + self->tick + 6,
                  y + self->letters * 35 / 100, self->letters, INK, VRAM_ALIGN_LEFT, label);
    }
    vram_text_up(self->font, &self->raster,
                 bar.x + bar.width + self->tick + self->letters * 46 / 10, bar.y + bar.height / 2.0,
                 self->letters, INK, VRAM_ALIGN_CENTRE, "share of the cell in live blocks");
    const vram_rect never = {bar.x, self->plot.y + self->plot.height - never_height, bar.width,
                             never_height};
    vram_fill(&self->raster, never, NEVER);
    vram_frame(&self->raster, never, 1, FRAME);
    vram_text(self->font, &self->raster, never.x + never.width + self->tick + 6,
              never.y + never.height - self->letters * 25 / 100, self->letters, INK,
              VRAM_ALIGN_LEFT, "never used");
}

/* ---- failures ---- */

static int column_of(const picture *self, const vram_op *op)
{
    const vram_window window = self->grid.time;
    const uint64_t at = vram_op_position(op, self->grid.axis);
    if (at < window.from || at >= window.to)
        return -1;
    return (int)((double)(at - window.from) / (double)(window.to - window.from) * self->plot.width);
}

/* A pointer above the plot for each refusal that is in it, and words for the first. */
static void draw_failures(picture *self)
{
    int last = -1;
    bool told = false;
    for (size_t i = 0; i < self->timeline->failure_count; i++) {
        const vram_op_failure *failure = &self->timeline->failures[i];
        const vram_op *op = &self->timeline->ops[failure->op];
        const int column = column_of(self, op);
        if (column < 0 || column == last)
            continue;
        last = column;
        const int x = self->plot.x + column;
        vram_line_down(&self->raster, x, self->plot.y, self->plot.height, 1, 6, 4, ALARM);
        vram_pointer_down(&self->raster, x, self->plot.y - 2, self->letters * 6 / 10, ALARM);
        if (told)
            continue;
        told = true;
        char asked[VRAM_SIZE_TEXT];
        char free_text[VRAM_SIZE_TEXT];
        char largest[VRAM_SIZE_TEXT];
        char words[200];
        snprintf(words, sizeof words, "refused: %s asked, %s free, largest span %s (%s)",
                 vram_format_size(op->size_bytes, asked),
                 vram_format_size(failure->free_bytes, free_text),
                 vram_format_size(failure->largest_free_bytes, largest), failure->reason);
        const double width = vram_text_width(self->font, self->letters, words);
        const bool to_the_right = x + self->letters + width < self->plot.x + self->plot.width;
        vram_text(self->font, &self->raster, to_the_right ? x + self->letters : x - self->letters,
                  self->plot.y - self->letters * 5 / 10, self->letters, ALARM,
                  to_the_right ? VRAM_ALIGN_LEFT : VRAM_ALIGN_RIGHT, words);
    }
}

/* ---- words ---- */

static void draw_words(picture *self, const char *title)
{
    const vram_timeline *timeline = self->timeline;
    const int large = self->letters * 16 / 10;
    const double room = self->raster.width - self->plot.x - self->letters;
    char text[400];
    char cut[400];
    if (title == NULL)
        snprintf(text, sizeof text, "%s on %s", timeline->trace, timeline->backend);
    vram_text_fit(self->font, large, room, title != NULL ? title : text, cut, sizeof cut);
    vram_text(self->font, &self->raster, self->plot.x, self->letters * 24 / 10, large, INK,
              VRAM_ALIGN_LEFT, cut);

    char arena[VRAM_SIZE_TEXT];
    char cell_bytes[VRAM_SIZE_TEXT];
    char events[32];
    const double cell_time =
        (double)(self->grid.time.to - self->grid.time.from) / self->grid.columns;
    const bool time = self->grid.axis == VRAM_AXIS_TIME && timeline->has_clock;
    vram_format_size((self->grid.bytes.to - self->grid.bytes.from) / self->grid.rows, cell_bytes);
    const uint64_t last_event =
        timeline->op_count > 0 ? timeline->ops[timeline->op_count - 1].event + UINT64_C(1) : 0;
    snprintf(text, sizeof text, "arena %s, %s events, %s; one cell is %s by %.3g %s",
             vram_format_size(timeline->arena_bytes, arena), vram_format_count(last_event, events),
             timeline->failure_count == 0 ? "every request served" : "ended by a refusal",
             cell_bytes, time ? cell_time / 1e6 : cell_time, time ? "ms" : "events");
    if (timeline->failure_count > 0 && timeline->complete)
        snprintf(text, sizeof text,
                 "arena %s, %s events, %zu requests refused; one cell is %s by %.3g %s", arena,
                 events, timeline->failure_count, cell_bytes, time ? cell_time / 1e6 : cell_time,
                 time ? "ms" : "events");
    vram_text_fit(self->font, self->letters, room, text, cut, sizeof cut);
    vram_text(self->font, &self->raster, self->plot.x, self->letters * 41 / 10, self->letters, GREY,
              VRAM_ALIGN_LEFT, cut);
}

/* ---- layout ---- */

static uint64_t highest_address(const vram_timeline *timeline)
{
    uint64_t highest_bytes = timeline->arena_bytes;
    for (size_t i = 0; i < timeline->op_count; i++) {
        const vram_op *op = &timeline->ops[i];
        const uint64_t end_bytes = op->offset_bytes + op->granted_bytes;
        if (op->kind != VRAM_OP_FAIL && end_bytes > highest_bytes)
            highest_bytes = end_bytes;
    }
    return highest_bytes;
}

static void lay_out(picture *self, const vram_heatmap_options *options)
{
    const int width = self->raster.width;
    const int height = self->raster.height;
    self->letters = height * 17 / 1000 < 10 ? 10 : height * 17 / 1000;
    self->tick = self->letters / 2;
    const int left = self->letters * 6;
    const int right = self->letters * 10;
    const int top = self->letters * 65 / 10;
    const int bottom = self->letters * 45 / 10;
    self->plot = (vram_rect){left, top, width - left - right, height - top - bottom};
    const bool whole_time = options->time.from == 0 && options->time.to == 0;
    const bool whole_arena = options->bytes.from == 0 && options->bytes.to == 0;
    self->grid = (vram_grid){
        .columns = (uint32_t)self->plot.width,
        .rows = (uint32_t)self->plot.height,
        .axis = options->axis,
        .time = whole_time ? vram_axis_whole(self->timeline, options->axis) : options->time,
        .bytes = whole_arena ? (vram_window){0, highest_address(self->timeline)} : options->bytes,
    };
}

static bool draw(picture *self, const vram_heatmap_options *options, vram_error *error)
{
    lay_out(self, options);
    vram_fill(&self->raster, (vram_rect){0, 0, self->raster.width, self->raster.height}, GROUND);
    if (!vram_sweep(self->timeline, &self->grid, draw_column, self, error))
        return false;
    vram_frame(&self->raster, self->plot, 1, FRAME);
    draw_address_axis(self);
    draw_time_axis(self);
    draw_key(self);
    draw_failures(self);
    draw_words(self, options->title);
    return true;
}

bool vram_heatmap_write(const vram_timeline *timeline, const vram_heatmap_options *options,
                        const char *path, vram_error *error)
{
    static const vram_heatmap_options defaults = {0};
    const vram_heatmap_options *const how = options != NULL ? options : &defaults;
    const uint32_t width = how->width != 0 ? how->width : DEFAULT_WIDTH;
    const uint32_t height = how->height != 0 ? how->height : DEFAULT_HEIGHT;
    if (width < VRAM_HEATMAP_LEAST || height < VRAM_HEATMAP_LEAST || width > VRAM_HEATMAP_MOST ||
        height > VRAM_HEATMAP_MOST)
        return vram_fail(error, "a picture of %u x %u pixels is not possible: %d to %d each", width,
                         height, VRAM_HEATMAP_LEAST, VRAM_HEATMAP_MOST);
    picture self = {.timeline = timeline, .font = vram_font_new()};
    bool written = self.font != NULL && vram_raster_make(&self.raster, (int)width, (int)height);
    if (!written)
        vram_fail(error, "the picture: the host is out of memory");
    written = written && draw(&self, how, error) && vram_png_save(&self.raster, path, error);
    vram_raster_free(&self.raster);
    vram_font_free(self.font);
    return written;
}
