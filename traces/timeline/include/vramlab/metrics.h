/*
 * vramlab/metrics.h - what a timeline tells in numbers, at every operation.
 *
 * live = requested bytes of the blocks not yet released; internal = granted - live; extent =
 * highest end of a live block; a free span = a maximal run of bytes that no live block occupies;
 * external = 1 - largest free span / all bytes in free spans, 0 when there are none.
 */
#ifndef VRAMLAB_METRICS_H
#define VRAMLAB_METRICS_H

#include <vramlab/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The arena after one operation. live + internal + bound + pending + reserve + padding + free add
 * up to the arena exactly; so do live + internal + unoccupied.
 */
typedef struct vram_moment {
    uint64_t op; /* index of the operation that has just happened */
    uint64_t live_bytes;
    uint64_t internal_bytes;
    uint64_t bound_bytes, pending_bytes, reserve_bytes, padding_bytes; /* as the backend told */
    uint64_t free_bytes;
    uint64_t retired_bytes; /* the part of live_bytes that the program has let go already */
    uint64_t live_blocks;
    uint64_t extent_bytes;
    uint64_t unoccupied_bytes; /* in free spans: no live block is there, whatever the cause */
    uint64_t largest_free_bytes;
} vram_moment;

static inline uint64_t vram_moment_granted(const vram_moment *moment)
{
    return moment->live_bytes + moment->internal_bytes;
}

double vram_moment_external(const vram_moment *moment);
double vram_moment_internal(const vram_moment *moment); /* internal / granted, 0 when none is */

/*
 * Visits the arena after every operation, in order; stops when `visit` returns false. False with a
 * message when two live blocks overlap, the bytes by cause exceed the arena, or the host is out of
 * memory. About 0.2 us an operation; memory for the live blocks only.
 */
typedef bool vram_moment_visit(void *context, const vram_moment *moment);
bool vram_metrics_walk(const vram_timeline *timeline, vram_moment_visit *visit, void *context,
                       vram_error *error);

/* ---- the horizontal axis of curves and pictures ---- */

typedef enum vram_axis {
    VRAM_AXIS_EVENT, /* index of the trace event */
    VRAM_AXIS_TIME,  /* nanoseconds of the trace's clock */
} vram_axis;

/* A window of an axis: [from, to). */
typedef struct vram_window {
    uint64_t from, to;
} vram_window;

static inline uint64_t vram_op_position(const vram_op *op, vram_axis axis)
{
    return axis == VRAM_AXIS_TIME ? op->time_ns : op->event;
}

/* All of a timeline: from 0 to the end of its last event, at least 1 long. */
vram_window vram_axis_whole(const vram_timeline *timeline, vram_axis axis);

/* Operations that have happened once the axis stands at `position`: O(log n). */
size_t vram_axis_ops_until(const vram_timeline *timeline, vram_axis axis, uint64_t position);

/* ---- curves: all of it, at a width ---- */

/* What happened within one column, field by field; the state in which the column begins counts. */
typedef struct vram_curve_column {
    vram_moment least, greatest;
    double least_external, greatest_external;
} vram_curve_column;

typedef struct vram_curves {
    vram_axis axis;
    vram_window window;
    uint32_t width;
    vram_curve_column *columns; /* NULL when width is 0 */
    vram_moment peak;           /* where live_bytes was first at its greatest, of all operations */
    vram_moment end;            /* after the last operation */
} vram_curves;

/* Makes curves of `width` columns over the window; no spike is lost to the width. */
bool vram_curves_make(const vram_timeline *timeline, vram_axis axis, vram_window window,
                      uint32_t width, vram_curves *curves, vram_error *error);
/* The same curves at another width: each column has the extremes of all that it overlaps. */
bool vram_curves_resample(const vram_curves *from, uint32_t width, vram_curves *curves,
                          vram_error *error);
void vram_curves_free(vram_curves *curves);

#ifdef __cplusplus
}
#endif
#endif
