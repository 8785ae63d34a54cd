/*
 * reduce.h - the script that broke a property, cut down to what breaks it still.
 */
#ifndef CONFORMANCE_REDUCE_H
#define CONFORMANCE_REDUCE_H

#include "conformance/contained.h"

typedef struct vram_reduction {
    uint32_t tried;    /* scripts */
    uint32_t acts_had; /* before */
    bool complete;     /* nothing more can be left out; otherwise time ran out */
} vram_reduction;

/*
 * Leaves in the stage the smallest script found that breaks the property in the same way, and what
 * it finds: acts are left out by halves, quarters and so on (delta debugging: Zeller and
 * Hildebrandt 2002), then sizes, alignments, streams and the arena are made plainer. Every try runs
 * in a child.
 */
vram_reduction reduce_script(vram_stage *stage, const vram_property *property,
                             const vram_limits *limits, double at_most_s);

#endif
