/* formats.h - the formats by name, for formats.c and for those that share code. */
#ifndef VRAMLAB_READERS_FORMATS_H
#define VRAMLAB_READERS_FORMATS_H

#include "reader.h"

extern const vram_format vram_format_native;
extern const vram_format vram_format_pytorch;
extern const vram_format vram_format_pytorch_json;
extern const vram_format vram_format_rmm_csv;
extern const vram_format vram_format_rmm_log;
extern const vram_format vram_format_rep;
extern const vram_format vram_format_minimalloc;
extern const vram_format vram_format_mtrace;
extern const vram_format vram_format_weealloc;
extern const vram_format vram_format_mallocbench;
extern const vram_format vram_format_umpire;
extern const vram_format vram_format_vma_recording;
extern const vram_format vram_format_vma_json;
extern const vram_format vram_format_interval_log;
#ifdef VRAMLAB_SQLITE
extern const vram_format vram_format_sqlite;
#endif

#endif
