/*
 * png.h - a picture as a PNG file.
 */
#ifndef VRAMLAB_VIZ_PNG_H
#define VRAMLAB_VIZ_PNG_H

#include "raster.h"

#include <vramlab/text.h>

/* The file is whole or absent, and the same bytes for the same pixels. dpi tells how large it is on
 * paper; 0 leaves that open. */
bool vram_png_save(const vram_raster *raster, uint32_t dpi, const char *path, vram_error *error);

#endif
