/*
 * vramlab/moments.h - a timeline's numbers at any operation, and their curves, from one walk.
 */
#ifndef VRAMLAB_MOMENTS_H
#define VRAMLAB_MOMENTS_H

#include <vramlab/metrics.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From operation `op` on, until the next. */
typedef struct vram_largest_step {
    uint64_t largest_free_bytes, extent_bytes, retired_bytes;
    uint32_t op;
} vram_largest_step;

typedef struct vram_moments {
    const vram_timeline *timeline;
    vram_curves curves;       /* over events [0, events); resample to the width that is shown */
    vram_moment *checkpoints; /* after every so many operations */
    uint64_t *highest_bytes;  /* likewise: highest end of any block until then */
    size_t checkpoint_count;
    vram_largest_step *steps; /* where one of these numbers changes */
    size_t step_count;
    size_t step_capacity;
} vram_moments;

/* One vram_metrics_walk: O(n log n); memory for the changes of the largest free span. */
bool vram_moments_make(const vram_timeline *timeline, uint64_t events, uint32_t curve_width,
                       vram_moments *moments, vram_error *error);
void vram_moments_free(vram_moments *moments);

/* The arena once `op_count` operations have happened; op of the result is the last of them. Also
 * the highest end of any block until then. O(log n). */
vram_moment vram_moments_at(const vram_moments *moments, size_t op_count, uint64_t *highest_bytes);

#ifdef __cplusplus
}
#endif
#endif
