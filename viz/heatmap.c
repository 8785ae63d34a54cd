/*
 * heatmap.c - address by time: what to draw, and where.
 *
 *     title                                                one plot: '.' never held a block
 *     trace, arena, what one cell is                                 '#' coloured by the key
 *       +--------------------------------+
 *   GiB |................................|<          [ ]
 *     - |....####........................|< peaks    [ ] key
 *     - |##########......#####...........|           [ ]
 *       +--------------------------------+
 *           '       '        '   events              [.] never used
 *
 *     title                                                several: the same axes, one key
 *     arena, what one cell is
 *       backend, outcome       backend, outcome
 *       +----------------+     +----------------+    [ ]
 *   GiB |                |     |                |    [ ] key
 *       +----------------+     +----------------+    [ ]
 *
 * A cell is a pixel of the plot, so that nothing is resampled.
 */
#include <vramlab/heatmap.h>

#include "figure.h"
#include "png.h"
#include "sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_WIDTH = 1600, DEFAULT_HEIGHT = 1000, LETTER_POINTS = 9, LEAST_PLOT = 24 };

/* One timeline in its plot. */
typedef struct heat_plot {
    const vram_timeline *timeline;
    vram_rect area;
    bool left_labels, lower_labels;
    uint64_t peak_live_bytes, peak_extent_bytes;
    uint64_t end; /* position behind its last operation */
} heat_plot;

/* The picture in the making. */
typedef struct heat_figure {
    const vram_heatmap_options *options;
    heat_plot plots[VRAM_HEATMAP_PLOTS];
    int count;
    vram_grid grid; /* of each plot */
    vram_key key;
    vram_pen pen;
    vram_raster raster;
    int key_x, key_top, key_bottom;
} heat_figure;

/* ---- data ---- */

typedef struct heat_painter {
    const heat_figure *figure;
    const heat_plot *plot;
} heat_painter;

static bool draw_column(void *context, uint32_t column, const vram_area *covered,
                        const vram_tint *tints, const bool *touched)
{
    const heat_painter *const self = context;
    const heat_figure *const figure = self->figure;
    const vram_grid *const grid = &figure->grid;
    const vram_theme *const theme = figure->pen.theme;
    const double per_column = (double)(grid->time.to - grid->time.from) / grid->columns;
    const double now = (double)grid->time.from + (column + 0.5) * per_column;
    const bool over = !self->plot->timeline->complete && now > (double)self->plot->end;
    const vram_colour free_colour =
        figure->key.by == VRAM_BY_OCCUPANCY ? vram_viridis(0) : theme->free;
    vram_colour *pixel =
        figure->raster.pixels +
        (size_t)(self->plot->area.y + self->plot->area.height - 1) * (size_t)figure->raster.width +
        (size_t)self->plot->area.x + column;
    for (uint32_t row = 0; row < grid->rows; row++, pixel -= figure->raster.width) {
        if (over)
            *pixel = theme->ground;
        else if (covered[row] > 0)
            *pixel = vram_key_colour(&figure->key, theme, tints[row], now);
        else
            *pixel = touched[row] ? free_colour : theme->never;
    }
    return true;
}

/* ---- what stands by the plots ---- */

/* The column of an operation, or -1 outside the window. */
static int column_of(const heat_figure *self, const vram_op *op)
{
    const vram_window window = self->grid.time;
    const uint64_t at = vram_op_position(op, self->grid.axis);
    if (at < window.from || at >= window.to)
        return -1;
    return (int)((double)(at - window.from) / (double)(window.to - window.from) *
                 self->grid.columns);
}

/* A pointer above the plot for each refusal that is in it, and a line for the first. */
static void draw_refusals(const heat_figure *self, const heat_plot *plot)
{
    const vram_pen *const pen = &self->pen;
    int last = -1;
    for (size_t i = 0; i < plot->timeline->failure_count; i++) {
        const int column = column_of(self, &plot->timeline->ops[plot->timeline->failures[i].op]);
        if (column < 0 || column == last)
            continue;
        const int x = plot->area.x + column;
        if (last < 0)
            vram_line_down(pen->on, x, plot->area.y, plot->area.height, 1, pen->letters / 3,
                           pen->letters / 4, pen->theme->alarm);
        vram_pointer_down(pen->on, x, plot->area.y - 2, pen->letters * 6 / 10, pen->theme->alarm);
        last = column;
    }
}

/* The words for the first refusal, from the fullest down to what always fits. */
static void tell_refusal(const vram_timeline *timeline, int briefness, char *text, size_t bytes)
{
    const vram_op_failure *const first = &timeline->failures[0];
    char asked[VRAM_SIZE_TEXT], free_text[VRAM_SIZE_TEXT], largest[VRAM_SIZE_TEXT], event[32];
    vram_format_size(timeline->ops[first->op].size_bytes, asked);
    vram_format_size(first->free_bytes, free_text);
    vram_format_size(first->largest_free_bytes, largest);
    vram_format_count(first->event, event);
    switch (briefness) {
    case 0:
        snprintf(text, bytes, "refused at event %s: %s asked, %s free, largest span %s (%s)", event,
                 asked, free_text, largest, first->reason);
        break;
    case 1:
        snprintf(text, bytes, "refused at event %s (%s)", event, first->reason);
        break;
    case 2:
        snprintf(text, bytes, "refused at %s", event);
        break;
    default:
        snprintf(text, bytes, "refused");
        break;
    }
}

static void draw_plot_words(const heat_figure *self, const heat_plot *plot)
{
    const vram_pen *const pen = &self->pen;
    const vram_timeline *const timeline = plot->timeline;
    const int baseline = plot->area.y - pen->letters; /* pointers stand below */
    const bool refused = timeline->failure_count > 0;
    double used = 0;
    char text[256] = "completes";
    if (self->count > 1) { /* else the title says it */
        vram_pen_text(pen, plot->area.x, baseline, pen->letters, plot->area.width, pen->theme->ink,
                      timeline->backend);
        used = vram_text_width(pen->font, pen->letters, timeline->backend) + pen->letters;
    } else if (!refused) {
        return;
    }
    const double room = plot->area.width - used;
    for (int briefness = self->count > 1 ? 1 : 0; refused && briefness < 4; briefness++) {
        tell_refusal(timeline, briefness, text, sizeof text);
        if (vram_text_width(pen->font, pen->letters, text) <= room)
            break;
    }
    vram_pen_text(pen, plot->area.x + used, baseline, pen->letters, room,
                  refused ? pen->theme->alarm : pen->theme->grey, text);
}

/* ---- peaks: where the highest block ended, and how high live bytes would stand if packed ---- */

static int level_of(const heat_figure *self, uint64_t bytes)
{
    const vram_window window = self->grid.bytes;
    const double share = ((double)bytes - (double)window.from) / (double)(window.to - window.from);
    const vram_rect area = self->plots[0].area;
    return area.y + area.height - 1 - (int)lround(share * (area.height - 1));
}

static void draw_peak(const heat_figure *self, uint64_t bytes, int words_y, const char *name)
{
    const vram_pen *const pen = &self->pen;
    const vram_rect area = self->plots[0].area;
    const int right = area.x + area.width;
    const int y = level_of(self, bytes);
    char text[VRAM_SIZE_TEXT];
    if (y < area.y || y >= area.y + area.height)
        return;
    vram_pointer_left(pen->on, right + 2, y, pen->letters / 2, pen->theme->ink);
    vram_text(pen->font, pen->on, right + pen->letters, words_y, pen->letters, pen->theme->ink,
              VRAM_ALIGN_LEFT, name);
    vram_text(pen->font, pen->on, right + pen->letters, words_y + pen->letters * 12 / 10,
              pen->letters, pen->theme->grey, VRAM_ALIGN_LEFT, vram_format_size(bytes, text));
}

static int clamp(int value, int least, int most)
{
    return value < least ? least : value > most ? most : value;
}

static void draw_peaks(const heat_figure *self)
{
    const heat_plot *const plot = &self->plots[0];
    const int letters = self->pen.letters;
    const int apart = letters * 28 / 10; /* two lines of words each */
    const int highest = plot->area.y + letters * 8 / 10;
    const int lowest = plot->area.y + plot->area.height - letters * 13 / 10;
    int extent_y = clamp(level_of(self, plot->peak_extent_bytes) + letters * 36 / 100, highest,
                         lowest - apart);
    int live_y =
        clamp(level_of(self, plot->peak_live_bytes) + letters * 36 / 100, highest + apart, lowest);
    if (live_y - extent_y < apart) {
        live_y = clamp(extent_y + apart, highest + apart, lowest);
        extent_y = live_y - apart;
    }
    draw_peak(self, plot->peak_extent_bytes, extent_y, "peak extent");
    draw_peak(self, plot->peak_live_bytes, live_y, "peak live");
}

/* Peaks are of the whole arena, so they stand by a single plot of all of it. */
static bool has_peaks(const heat_figure *self)
{
    return self->count == 1 && self->options->bytes.to == 0;
}

static double peaks_width(const heat_figure *self)
{
    const vram_pen *const pen = &self->pen;
    return has_peaks(self)
               ? vram_text_width(pen->font, pen->letters, "1023.00 MiB") + pen->letters * 1.5
               : 0;
}

/* ---- words above everything ---- */

static void tell_data(const heat_figure *self, char *text, size_t bytes)
{
    const vram_timeline *const timeline = self->plots[0].timeline;
    char arena[VRAM_SIZE_TEXT], cell[VRAM_SIZE_TEXT], count[32], ending[64] = "";
    const double cell_time =
        (double)(self->grid.time.to - self->grid.time.from) / self->grid.columns;
    const bool time = self->grid.axis == VRAM_AXIS_TIME && timeline->has_clock;
    uint64_t events = 0;
    for (int i = 0; i < self->count; i++) {
        const uint64_t end = vram_axis_whole(self->plots[i].timeline, VRAM_AXIS_EVENT).to;
        events = end > events ? end : events;
    }
    if (self->count == 1 && timeline->failure_count == 0)
        snprintf(ending, sizeof ending, ", every request served");
    else if (self->count == 1 && timeline->complete)
        snprintf(ending, sizeof ending, ", %zu requests refused", timeline->failure_count);
    else if (self->count == 1)
        snprintf(ending, sizeof ending, ", ended by a refusal");
    vram_format_size((self->grid.bytes.to - self->grid.bytes.from) / self->grid.rows, cell);
    snprintf(text, bytes, "arena %s, %s events%s; a cell is %s by %.3g %s",
             vram_format_size(timeline->arena_bytes, arena), vram_format_count(events, count),
             ending, cell, time ? cell_time / 1e6 : cell_time, time ? "ms" : "events");
}

static void draw_words(const heat_figure *self)
{
    const vram_pen *const pen = &self->pen;
    const vram_timeline *const timeline = self->plots[0].timeline;
    const int x = self->plots[0].area.x;
    const double room = self->raster.width - x - pen->letters;
    char text[400];
    if (self->options->title != NULL)
        snprintf(text, sizeof text, "%s", self->options->title);
    else if (self->count == 1)
        snprintf(text, sizeof text, "%s on %s", timeline->trace, timeline->backend);
    else
        snprintf(text, sizeof text, "%s", timeline->trace);
    vram_pen_text(pen, x, pen->letters * 24 / 10, pen->letters * 16 / 10, room, pen->theme->ink,
                  text);
    tell_data(self, text, sizeof text);
    vram_pen_text(pen, x, pen->letters * 41 / 10, pen->letters, room, pen->theme->grey, text);
}

/* ---- layout ---- */

static int letters_for(const vram_heatmap_options *options, int width, int height)
{
    if (options->dpi != 0)
        return clamp((int)options->dpi * LETTER_POINTS / 72, 6, 400);
    const int by_height = height * 17 / 1000;
    const int by_width = width * 17 / 1300; /* narrow pictures have room for fewer letters */
    return clamp(by_height < by_width ? by_height : by_width, 10, 400);
}

static vram_window whole_time(const heat_figure *self)
{
    vram_window whole = {0, 1};
    for (int i = 0; i < self->count; i++) {
        const uint64_t to = vram_axis_whole(self->plots[i].timeline, self->options->axis).to;
        whole.to = to > whole.to ? to : whole.to;
    }
    return whole;
}

static vram_window whole_arena(const heat_figure *self)
{
    vram_window whole = {0, 1};
    for (int i = 0; i < self->count; i++) {
        const uint64_t arena = self->plots[i].timeline->arena_bytes;
        const uint64_t extent = self->plots[i].peak_extent_bytes;
        whole.to = arena > whole.to ? arena : whole.to;
        whole.to = extent > whole.to ? extent : whole.to;
    }
    return whole;
}

/* Puts the plots into a grid of equal boxes. False when they would be too small to be read. */
static bool lay_out(heat_figure *self)
{
    const vram_heatmap_options *const options = self->options;
    const int letters = self->pen.letters;
    self->grid.axis = options->axis;
    self->grid.time =
        options->time.from == 0 && options->time.to == 0 ? whole_time(self) : options->time;
    self->grid.bytes =
        options->bytes.from == 0 && options->bytes.to == 0 ? whole_arena(self) : options->bytes;
    if (self->grid.time.from >= self->grid.time.to || self->grid.bytes.from >= self->grid.bytes.to)
        return true; /* the sweep says so */
    const int key_width = vram_key_width(&self->pen, &self->key);
    const int gap = letters * 15 / 10;
    const int head = self->count == 1 && self->plots[0].timeline->failure_count == 0
                         ? letters * 55 / 10
                         : letters * 70 / 10;
    const int row_gap = letters * 27 / 10;
    const int foot = vram_lower_axis_height(&self->pen) + letters * 4 / 10;
    const int right = key_width + letters * 3 + (int)peaks_width(self);
    const vram_rect guess = {0, 0, 0, self->raster.height - head - foot};
    const int columns =
        vram_columns_for(self->count, self->raster.width - right, guess.height, 1.5);
    const int rows = (self->count + columns - 1) / columns;
    const int height = (guess.height - (rows - 1) * row_gap) / rows;
    const int left =
        vram_left_axis_width(&self->pen, (vram_rect){0, 0, 0, height}, self->grid.bytes) +
        letters / 2;
    const int width = (self->raster.width - left - right - (columns - 1) * gap) / columns;
    if (width < LEAST_PLOT || height < LEAST_PLOT)
        return false;
    for (int i = 0; i < self->count; i++) {
        heat_plot *const plot = &self->plots[i];
        plot->area = (vram_rect){left + i % columns * (width + gap),
                                 head + i / columns * (height + row_gap), width, height};
        plot->left_labels = i % columns == 0;
        plot->lower_labels = i + columns >= self->count;
    }
    self->grid.columns = (uint32_t)width;
    self->grid.rows = (uint32_t)height;
    self->key_x = self->raster.width - key_width - letters;
    self->key_top = head;
    self->key_bottom = head + rows * height + (rows - 1) * row_gap;
    return true;
}

static void measure(heat_plot *self, const vram_timeline *timeline, vram_axis axis)
{
    uint64_t live_bytes = 0;
    *self = (heat_plot){.timeline = timeline, .end = vram_axis_whole(timeline, axis).to};
    for (size_t i = 0; i < timeline->op_count; i++) {
        const vram_op *const op = &timeline->ops[i];
        const uint64_t end_bytes = op->offset_bytes + op->granted_bytes;
        if (op->kind == VRAM_OP_ALLOC)
            live_bytes += op->size_bytes;
        else if (op->kind == VRAM_OP_RELEASE)
            live_bytes -= op->size_bytes;
        if (live_bytes > self->peak_live_bytes)
            self->peak_live_bytes = live_bytes;
        if (op->kind != VRAM_OP_FAIL && end_bytes > self->peak_extent_bytes)
            self->peak_extent_bytes = end_bytes;
    }
}

/* ---- the whole ---- */

static bool draw(heat_figure *self, vram_error *error)
{
    const vram_pen *const pen = &self->pen;
    vram_fill(&self->raster, (vram_rect){0, 0, self->raster.width, self->raster.height},
              pen->theme->ground);
    if (!lay_out(self))
        return vram_fail(error, "a picture of %d x %d pixels is too small for %d plots",
                         self->raster.width, self->raster.height, self->count);
    for (int i = 0; i < self->count; i++) {
        const heat_plot *const plot = &self->plots[i];
        heat_painter painter = {self, plot};
        if (!vram_sweep(plot->timeline, &self->grid, &self->key, draw_column, &painter, error))
            return false;
        vram_frame(&self->raster, plot->area, pen->letters < 28 ? 1 : pen->letters / 14,
                   pen->theme->line);
        vram_draw_left_axis(pen, plot->area, self->grid.bytes, plot->left_labels);
        vram_draw_lower_axis(pen, plot->area, self->grid.time, self->grid.axis,
                             plot->timeline->has_clock, plot->lower_labels);
        draw_refusals(self, plot);
        draw_plot_words(self, plot);
    }
    if (has_peaks(self))
        draw_peaks(self);
    vram_draw_key(pen, &self->key, self->key_x, self->key_top, self->key_bottom);
    draw_words(self);
    return true;
}

static bool begin(heat_figure *self, const vram_timeline *const *timelines, size_t count,
                  vram_error *error)
{
    const vram_heatmap_options *const options = self->options;
    const uint32_t width = options->width != 0 ? options->width : DEFAULT_WIDTH;
    const uint32_t height = options->height != 0 ? options->height : DEFAULT_HEIGHT;
    vram_by by = VRAM_BY_OCCUPANCY;
    if (count == 0 || count > VRAM_HEATMAP_PLOTS)
        return vram_fail(error, "%zu plots are not possible: 1 to %d", count, VRAM_HEATMAP_PLOTS);
    if (width < VRAM_HEATMAP_LEAST || height < VRAM_HEATMAP_LEAST || width > VRAM_HEATMAP_MOST ||
        height > VRAM_HEATMAP_MOST)
        return vram_fail(error, "a picture of %u x %u pixels is not possible: %d to %d each", width,
                         height, VRAM_HEATMAP_LEAST, VRAM_HEATMAP_MOST);
    if (options->colour != NULL && !vram_by_named(options->colour, &by, error))
        return false;
    if (!vram_key_make(&self->key, by, options->axis, timelines, count, error))
        return false;
    for (size_t i = 0; i < count; i++)
        measure(&self->plots[self->count++], timelines[i], options->axis);
    self->pen = (vram_pen){
        .on = &self->raster,
        .font = vram_font_new(),
        .theme = options->dark ? &vram_dark : &vram_light,
        .letters = letters_for(options, (int)width, (int)height),
    };
    return (self->pen.font != NULL && vram_raster_make(&self->raster, (int)width, (int)height)) ||
           vram_fail(error, "the picture: the host is out of memory");
}

bool vram_heatmap_compare(const vram_timeline *const *timelines, size_t count,
                          const vram_heatmap_options *options, const char *path, vram_error *error)
{
    static const vram_heatmap_options defaults = {0};
    heat_figure self = {.options = options != NULL ? options : &defaults};
    const bool written = begin(&self, timelines, count, error) && draw(&self, error) &&
                         vram_png_save(&self.raster, self.options->dpi, path, error);
    vram_key_free(&self.key);
    vram_raster_free(&self.raster);
    vram_font_free(self.pen.font);
    return written;
}

bool vram_heatmap_write(const vram_timeline *timeline, const vram_heatmap_options *options,
                        const char *path, vram_error *error)
{
    return vram_heatmap_compare(&timeline, 1, options, path, error);
}
