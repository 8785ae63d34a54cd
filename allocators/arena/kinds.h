/*
 * kinds.h - the tables of the kinds of arena; not installed.
 */
#ifndef VRAMLAB_ARENA_KINDS_H
#define VRAMLAB_ARENA_KINDS_H

#include <vramlab/arena.h>

extern const vram_arena_ops vram_arena_virtual;
extern const vram_arena_ops vram_arena_host;
extern const vram_arena_ops vram_arena_cuda;

#endif
