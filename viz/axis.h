/*
 * axis.h - where the ticks of an axis are, and what stands beside them.
 */
#ifndef VRAMLAB_VIZ_AXIS_H
#define VRAMLAB_VIZ_AXIS_H

#include <vramlab/metrics.h>

typedef struct vram_scale {
    const char *unit; /* "GiB", "events", "ms" */
    double per_unit;  /* axis positions in one unit */
    double step;      /* between labelled ticks, in units: 1, 2 or 5 times a power of ten */
    int minor;        /* unlabelled ticks within a step, the labelled one included */
    int decimals;     /* of the labels */
} vram_scale;

/* A scale for a window of `pixels` in which a label needs about label_pixels. */
vram_scale vram_scale_of_bytes(vram_window window, int pixels, int label_pixels);
vram_scale vram_scale_of_axis(vram_window window, vram_axis axis, bool has_clock, int pixels,
                              int label_pixels);

/* The label of a tick at `value` units, with thousands separators. Returns text. */
const char *vram_tick_label(const vram_scale *scale, double value, char text[40]);

#endif
