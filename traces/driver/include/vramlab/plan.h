/*
 * vramlab/plan.h - what an allocator could reach that knew every lifetime beforehand.
 *
 * The offline problem: each block has a known life and size and gets one offset for all of it. No
 * online allocator that never moves a block can use less than the best plan, so the plan's height
 * says how much of an allocator's footprint is the price of not knowing the future. The best plan
 * is NP-hard to find; this is the best that was found, beside the bound that none can beat.
 */
#ifndef VRAMLAB_PLAN_H
#define VRAMLAB_PLAN_H

#include <vramlab/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A block's life and place. Alive at the moments from .. to-1. */
typedef struct vram_plan_block {
    uint64_t from, to;
    uint64_t size_bytes;
    uint64_t life;         /* how long it is: in ns where the trace has a clock, else to - from */
    uint64_t offset_bytes; /* set by the planner */
} vram_plan_block;

/*
 * The blocks of a trace in the order of their birth, sizes rounded up to its unit. Moments are
 * counted in events, but allocations that follow one another at the same time share one. What is
 * never freed lives to the end, a resized block is two, and an ask that was refused when recorded
 * is a block of one moment when `tries`. *blocks is the caller's to free. The trace is left at its
 * start. False with a message when it cannot be read.
 */
bool vram_plan_blocks_of(vram_trace *trace, bool tries, vram_plan_block **blocks, size_t *count,
                         vram_error *error);

typedef struct vram_plan_options {
    uint64_t target_bytes; /* stop at a plan as low as this; 0: at the bound */
    uint64_t looks;        /* how often the searches may look at a block; 0: 400 million */
} vram_plan_options;

typedef struct vram_plan {
    uint64_t bound_bytes;  /* most bytes alive at once: no plan is lower */
    uint64_t height_bytes; /* highest end of a block in the best plan found */
    const char *method;    /* what found it: "size", "area", "lifetime", "local search", "search" */
} vram_plan;

/*
 * Greedy by size, by area and by lifetime, a local search from the best of them, then a branch and
 * bound towards the target. The same input gives the same plan. False when the host is out of
 * memory or more than VRAM_PLAN_PAIRS pairs of blocks are alive together.
 */
bool vram_plan_make(vram_plan_block *blocks, size_t count, const vram_plan_options *options,
                    vram_plan *plan, vram_error *error);

#define VRAM_PLAN_PAIRS (UINT64_C(1) << 26)

/*
 * What a hint of each block's lifetime is worth online. Blocks are placed as they come, those of
 * one moment the longest-lived first: the longest-lived fifth from the bottom of the arena, the
 * others from its top, each into the smallest free span that is large enough. *smallest_bytes is
 * the least arena, in steps of a thousandth of the bound (most bytes alive at once), in which all
 * are placed. False when the host is out of memory.
 */
bool vram_plan_two_ended(vram_plan_block *blocks, size_t count, uint64_t bound_bytes,
                         uint64_t *smallest_bytes, vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
