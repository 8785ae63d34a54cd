/*
 * plans.h - scripts made from a seed: the situations in which allocators go wrong.
 *
 * A plan knows the arena, the largest request that a fresh backend serves there and which optional
 * calls there are. It does not know what will be refused; what it releases may never have been
 * served.
 */
#ifndef CONFORMANCE_PLANS_H
#define CONFORMANCE_PLANS_H

#include "conformance/script.h"

/* What chance decides is drawn from here. */
typedef struct dice {
    uint64_t state;
} vram_dice;
uint64_t dice_below(vram_dice *self, uint64_t bound); /* bound at least 1 */

/* What a random script is made of; chances are in thousandths of all acts. */
typedef struct plan_mix {
    uint32_t acts;
    uint32_t live;    /* about so many blocks live when memory lasts */
    uint32_t aligned; /* requests with an alignment of their own, up to most_align_bytes */
    uint64_t most_align_bytes;
    uint32_t stale; /* releases of what was released before, and forged blocks */
    uint32_t bad;   /* zero sizes, bad alignments, enormous sizes */
    uint32_t resizes;
    uint32_t upkeep; /* maintain and trim */
    uint32_t compaction;
    uint32_t streams; /* more than one: blocks are shared, streams wait for each other */
    bool balanced;    /* ends by releasing everything and waiting for all streams */
} vram_plan_mix;

/* Grows and shrinks by turns, with sizes from a few units to all that can be served. */
void plan_random(vram_script *self, vram_dice *dice, const vram_plan_mix *mix);

/* Fills the arena with one size beyond its end, releases in one of several orders, and once more.
 */
void plan_fill(vram_script *self, vram_dice *dice);

#endif
