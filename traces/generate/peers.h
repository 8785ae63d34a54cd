/*
 * peers.h - the three workloads on which offset allocators are compared: mix, dl, fixed.
 */
#ifndef VRAMLAB_GENERATE_PEERS_H
#define VRAMLAB_GENERATE_PEERS_H

#include "generate.h"

extern const vram_workload vram_workload_mix;
extern const vram_workload vram_workload_dl;
extern const vram_workload vram_workload_fixed;

/* The random number that would be drawn next: at a trace's end it proves that every draw before
 * was made, in number and order. The source is one that a workload of this file has opened. */
uint64_t vram_peers_next_draw(const vram_source *source);

#endif
