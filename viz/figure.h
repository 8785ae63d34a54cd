/*
 * figure.h - what stands around the data of a picture for paper: axes, scales, swatches.
 */
#ifndef VRAMLAB_VIZ_FIGURE_H
#define VRAMLAB_VIZ_FIGURE_H

#include "axis.h"
#include "key.h"
#include "text.h"

typedef struct vram_pen {
    vram_raster *on;
    vram_font *font;
    const vram_theme *theme;
    int letters; /* size of ordinary lettering in pixels; all else follows from it */
} vram_pen;

/* Text from the left, cut to the width. */
void vram_pen_text(const vram_pen *pen, double x, int baseline, int letters, double width,
                   vram_colour colour, const char *text);

/* Ticks and, when labelled, labels and a title outside the left or the lower side of a plot. */
void vram_draw_left_axis(const vram_pen *pen, vram_rect plot, vram_window bytes, bool labelled);
void vram_draw_lower_axis(const vram_pen *pen, vram_rect plot, vram_window window, vram_axis axis,
                          bool has_clock, bool labelled);
/* Room that they take, labels and title included. */
int vram_left_axis_width(const vram_pen *pen, vram_rect plot, vram_window bytes);
int vram_lower_axis_height(const vram_pen *pen);

/* What the colours mean: a scale or swatches in a column from (x, top) to bottom. */
void vram_draw_key(const vram_pen *pen, const vram_key *key, int x, int top, int bottom);
int vram_key_width(const vram_pen *pen, const vram_key *key);

/* Columns of a grid of `count` boxes that come nearest to a ratio of width to height. */
int vram_columns_for(int count, int width, int height, double ratio);

#endif
