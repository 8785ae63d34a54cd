/*
 * raster.c - shapes on a picture in memory.
 */
#include "raster.h"

#include <stdlib.h>

bool vram_raster_make(vram_raster *self, int width, int height)
{
    *self =
        (vram_raster){width, height, calloc((size_t)width * (size_t)height, sizeof(vram_colour))};
    return self->pixels != NULL;
}

void vram_raster_free(vram_raster *self)
{
    free(self->pixels);
    *self = (vram_raster){0};
}

static int clamp(int value, int least, int most)
{
    return value < least ? least : value > most ? most : value;
}

void vram_fill(vram_raster *self, vram_rect rect, vram_colour colour)
{
    const int left = clamp(rect.x, 0, self->width);
    const int right = clamp(rect.x + rect.width, 0, self->width);
    const int top = clamp(rect.y, 0, self->height);
    const int bottom = clamp(rect.y + rect.height, 0, self->height);
    for (int y = top; y < bottom; y++) {
        vram_colour *const row = self->pixels + (size_t)y * (size_t)self->width;
        for (int x = left; x < right; x++)
            row[x] = colour;
    }
}

void vram_frame(vram_raster *self, vram_rect rect, int thickness, vram_colour colour)
{
    const int t = thickness;
    vram_fill(self, (vram_rect){rect.x - t, rect.y - t, rect.width + 2 * t, t}, colour);
    vram_fill(self, (vram_rect){rect.x - t, rect.y + rect.height, rect.width + 2 * t, t}, colour);
    vram_fill(self, (vram_rect){rect.x - t, rect.y, t, rect.height}, colour);
    vram_fill(self, (vram_rect){rect.x + rect.width, rect.y, t, rect.height}, colour);
}

void vram_line_across(vram_raster *self, int x, int y, int length, int thickness, int on, int off,
                      vram_colour colour)
{
    for (int at = 0; at < length; at += on + off)
        vram_fill(self, (vram_rect){x + at, y, length - at < on ? length - at : on, thickness},
                  colour);
}

void vram_line_down(vram_raster *self, int x, int y, int length, int thickness, int on, int off,
                    vram_colour colour)
{
    for (int at = 0; at < length; at += on + off)
        vram_fill(self, (vram_rect){x, y + at, thickness, length - at < on ? length - at : on},
                  colour);
}

void vram_pointer_left(vram_raster *self, int x, int y, int size, vram_colour colour)
{
    for (int step = 0; step < size; step++)
        vram_fill(self, (vram_rect){x + step, y - step / 2, 1, step / 2 * 2 + 1}, colour);
}

void vram_pointer_down(vram_raster *self, int x, int y, int size, vram_colour colour)
{
    for (int step = 0; step < size; step++)
        vram_fill(self, (vram_rect){x - step / 2, y - step, step / 2 * 2 + 1, 1}, colour);
}

void vram_blend(vram_raster *self, int x, int y, vram_colour colour, uint32_t share)
{
    if (share == 0 || x < 0 || y < 0 || x >= self->width || y >= self->height)
        return;
    vram_colour *const pixel = &self->pixels[(size_t)y * (size_t)self->width + (size_t)x];
    *pixel = share >= 255 ? colour : vram_mix(*pixel, colour, share);
}
