/*
 * conformance.h - what every backend must do, as a table of properties.
 *
 *     stage *stage = stage_new("buddy:min=64");
 *     for (size_t i = 0; property_at(i) != NULL; i++)
 *         if (property_run(property_at(i), stage, &(effort){.random_acts = 100000}, seed) ==
 * BROKEN)
 *             ... stage->finding, stage->script
 *
 * A property is a plan, which makes scripts, and a judge, which plays one and says whether what it
 * proves holds. property_run plays in this process; contained.h does it in a child, so that a crash
 * or a hang is a finding too, and reduce.h cuts the script that failed down to what matters.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "conformance/plans.h"
#include "conformance/stage.h"

typedef enum verdict {
    HOLDS,
    BROKEN,       /* stage->finding says how, stage->script with what */
    NOT_OFFERED,  /* the backend does not have the optional calls that this is about */
    NOT_POSSIBLE, /* nothing could be tried: no arena of those tried suits the backend, or a
                     sanitizer stands in the way */
} vram_verdict;

typedef struct effort {
    uint64_t random_acts; /* of the property `random_steps`; the others do a fixed amount */
    uint32_t check_every; /* of the same; 0: 1 */
    uint32_t divide;      /* the others do this part of it; 0: 1 */
} vram_effort;

/* A size of arena, and the unit of the workload in it. */
typedef struct arena_shape {
    uint64_t arena_bytes;
    uint64_t unit_bytes;
} vram_arena_shape;

typedef struct property {
    const char *name;
    const char *proves;             /* one sentence */
    const vram_arena_shape *arenas; /* in turn, ending with size 0 */
    uint32_t rounds; /* scripts tried; 0: until effort.random_acts have been played */
    bool (*offered)(const vram_ops *ops); /* NULL: by every backend */
    void (*plan)(vram_script *script, vram_dice *dice, const vram_ops *ops, uint32_t round);
    vram_verdict (*judge)(vram_stage *stage);
} vram_property;

/* By index, NULL beyond the last. */
const vram_property *property_at(size_t index);

/* Tries the property on the backend that the stage names. */
vram_verdict property_run(const vram_property *self, vram_stage *stage, const vram_effort *effort,
                          uint64_t seed);

/* Plays the stage's script, perhaps changed since, once more. */
vram_verdict property_judge(const vram_property *self, vram_stage *stage);

#endif
