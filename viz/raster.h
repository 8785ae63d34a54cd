/*
 * raster.h - a picture in memory, 32 bits a pixel, and the few shapes that are drawn on it. All
 * shapes are clipped.
 */
#ifndef VRAMLAB_VIZ_RASTER_H
#define VRAMLAB_VIZ_RASTER_H

#include "palette.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct vram_rect {
    int x, y, width, height;
} vram_rect;

typedef struct vram_raster {
    int width, height;
    vram_colour *pixels; /* row by row from the top */
} vram_raster;

bool vram_raster_make(vram_raster *self, int width, int height); /* false: out of host memory */
void vram_raster_free(vram_raster *self);

void vram_fill(vram_raster *self, vram_rect rect, vram_colour colour);
void vram_frame(vram_raster *self, vram_rect rect, int thickness, vram_colour colour); /* outside */
/* Dashes of `on` pixels with `off` between; off 0 is a whole line. */
void vram_line_across(vram_raster *self, int x, int y, int length, int thickness, int on, int off,
                      vram_colour colour);
void vram_line_down(vram_raster *self, int x, int y, int length, int thickness, int on, int off,
                    vram_colour colour);
/* A triangle that points at (x, y) from the right, from above. */
void vram_pointer_left(vram_raster *self, int x, int y, int size, vram_colour colour);
void vram_pointer_down(vram_raster *self, int x, int y, int size, vram_colour colour);
void vram_blend(vram_raster *self, int x, int y, vram_colour colour, uint32_t share);

#endif
