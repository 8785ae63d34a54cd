/* pytorch.h - the format "pytorch-snapshot": a snapshot's history as program events. */
#ifndef VRAMLAB_READERS_PYTORCH_H
#define VRAMLAB_READERS_PYTORCH_H

#include "reader.h"

#include <vramlab/snapshot.h>

/* Reads a snapshot from the input's start. */
bool vram_pytorch_load(vram_input *input, vram_snapshot **out, vram_error *error);

/* The snapshot behind an opened source of the format; NULL for any other format. */
const vram_snapshot *vram_pytorch_snapshot(const vram_source *source, const vram_format *format);

#endif
