/*
 * theme.h - the colours of everything but the data, on dark and on white ground.
 */
#ifndef VRAMLAB_VIZ_THEME_H
#define VRAMLAB_VIZ_THEME_H

#include "palette.h"

typedef struct vram_theme {
    vram_colour ground;                    /* behind everything */
    vram_colour panel;                     /* behind one panel or plot */
    vram_colour ink;                       /* what one reads first */
    vram_colour grey;                      /* what one reads second */
    vram_colour line;                      /* frames, ticks */
    vram_colour free;                      /* memory that was used and is free again */
    vram_colour never;                     /* memory that was never used until then */
    vram_colour accent;                    /* the panel in focus, live bytes */
    vram_colour alarm;                     /* refused requests, the followed block */
    vram_colour granted, extent, external; /* curves */
} vram_theme;

extern const vram_theme vram_dark, vram_light;

#endif
