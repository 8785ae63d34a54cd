/*
 * text.h - lettering: one embedded font, any size, antialiased, the same pixels everywhere.
 */
#ifndef VRAMLAB_VIZ_TEXT_H
#define VRAMLAB_VIZ_TEXT_H

#include "raster.h"

typedef struct vram_font vram_font; /* keeps every glyph that it has drawn */

vram_font *vram_font_new(void); /* NULL: out of host memory */
void vram_font_free(vram_font *self);

typedef enum vram_align { VRAM_ALIGN_LEFT, VRAM_ALIGN_CENTRE, VRAM_ALIGN_RIGHT } vram_align;

/* Width of a UTF-8 text in letters of `size` pixels from baseline to baseline. */
double vram_text_width(vram_font *self, int size, const char *text);

/* Draws with (x, y) at the left, the middle or the right of the baseline. */
void vram_text(vram_font *self, vram_raster *on, double x, int y, int size, vram_colour colour,
               vram_align align, const char *text);

/* As vram_text, turned to read upwards; the text runs from (x, y) to smaller y. */
void vram_text_up(vram_font *self, vram_raster *on, int x, double y, int size, vram_colour colour,
                  vram_align align, const char *text);

/* The longest beginning of the text that fits, with an ellipsis when it was cut. */
void vram_text_fit(vram_font *self, int size, double width, const char *text, char *out,
                   size_t out_bytes);

#endif
