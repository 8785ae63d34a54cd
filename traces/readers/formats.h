/* formats.h - the formats by name, for formats.c and for those that share code. */
#ifndef VRAMLAB_READERS_FORMATS_H
#define VRAMLAB_READERS_FORMATS_H

#include "reader.h"

extern const vram_format vram_format_native;
extern const vram_format vram_format_pytorch;
extern const vram_format vram_format_pytorch_json;

#endif
