/*
 * palette.h - colours of pictures and of the viewer.
 */
#ifndef VRAMLAB_VIZ_PALETTE_H
#define VRAMLAB_VIZ_PALETTE_H

#include <stdint.h>

typedef uint32_t vram_colour; /* 0xRRGGBB */

enum {
    VRAM_KIND_COLOURS = 7,
    VRAM_COLOUR_OTHER = 0x999999, /* kinds beyond those that have a colour */
};

vram_colour vram_viridis(double share); /* 0 dark violet .. 1 yellow; clamped */

/* A colour for the n-th of a few kinds, told apart by colour-blind people too. */
vram_colour vram_kind_colour(uint32_t kind);

vram_colour vram_mix(vram_colour a, vram_colour b, uint32_t share_of_b); /* 0 .. 255 */

#endif
