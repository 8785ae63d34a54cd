/*
 * pack.h - exact search for a placement below a given height, when all lifetimes are known.
 *
 * Private to the planner: see plan.c for the heuristics that run first.
 */
#ifndef VRAMLAB_DRIVER_PACK_H
#define VRAMLAB_DRIVER_PACK_H

#include <vramlab/plan.h>

typedef enum vram_pack_answer {
    VRAM_PACK_FOUND,   /* the blocks have offsets below the height */
    VRAM_PACK_NONE,    /* proven: there is no such placement */
    VRAM_PACK_GAVE_UP, /* the steps ran out, or the host's memory did */
} vram_pack_answer;

/*
 * Looks for offsets such that no two blocks alive at once overlap and none ends above height_bytes.
 * Tries at most `steps` placements; the same input gives the same answer.
 */
vram_pack_answer vram_pack(vram_plan_block *blocks, size_t count, uint64_t height_bytes,
                           uint64_t steps);

#endif
