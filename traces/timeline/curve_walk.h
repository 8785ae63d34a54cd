/*
 * curve_walk.h - curves while they are made, for those that walk the metrics for more than curves.
 */
#ifndef VRAMLAB_CURVE_WALK_H
#define VRAMLAB_CURVE_WALK_H

#include <vramlab/metrics.h>

typedef struct vram_curve_walk {
    const vram_timeline *timeline;
    vram_curves *curves;
    uint32_t next_column; /* all before it have begun */
    vram_moment now;
} vram_curve_walk;

/* The arena before the first operation. */
vram_moment vram_moment_before(const vram_timeline *timeline);

bool vram_curve_walk_begin(vram_curve_walk *self, const vram_timeline *timeline, vram_axis axis,
                           vram_window window, uint32_t width, vram_curves *curves,
                           vram_error *error);
void vram_curve_walk_take(vram_curve_walk *self, const vram_moment *moment);
void vram_curve_walk_end(vram_curve_walk *self);

#endif
