/*
 * vramlab/heatmap.h - timelines as a picture: address by time, one plot for each.
 *
 * A cell of a plot is a pixel: a stretch of time by a stretch of addresses. How much of it live
 * blocks cover is computed exactly; the colour tells that share, or the size, age, stream, tag or
 * state of what lives there. Bytes that no block has ever held are grey, so that "free again" and
 * "never needed" look different. The same timelines give the same bytes of PNG.
 */
#ifndef VRAMLAB_HEATMAP_H
#define VRAMLAB_HEATMAP_H

#include <vramlab/metrics.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VRAM_HEATMAP_LEAST = 320, /* pixels */
    VRAM_HEATMAP_MOST = 16384,
    VRAM_HEATMAP_PLOTS = 12,
};

/* Zeroed: 1600 x 1000 pixels, by events, the whole timeline and arena, occupancy, on white. */
typedef struct vram_heatmap_options {
    uint32_t width, height; /* pixels of the picture: VRAM_HEATMAP_LEAST .. MOST; 0: the default */
    uint32_t dpi;           /* letters are 9 points high; 0: they follow the picture's height */
    vram_axis axis;
    vram_window time;   /* of the axis; both 0: all */
    vram_window bytes;  /* of the addresses; both 0: the arena, or up to the highest address in use
                           when that lies beyond it */
    const char *colour; /* "occupancy", "size", "age", "stream", "tag", "state"; NULL: occupancy */
    const char *title;  /* NULL: the trace's name and the backend */
    bool dark;
} vram_heatmap_options;

/*
 * Draws and writes; options may be NULL. O(operations + pixels), whatever the blocks' sizes. False
 * with a message when an option is out of range, a window is empty, or the file cannot be written:
 * then there is none.
 */
bool vram_heatmap_write(const vram_timeline *timeline, const vram_heatmap_options *options,
                        const char *path, vram_error *error);

/* The same for 1 .. VRAM_HEATMAP_PLOTS timelines of one trace: small multiples with the same axes
 * and one key. */
bool vram_heatmap_compare(const vram_timeline *const *timelines, size_t count,
                          const vram_heatmap_options *options, const char *path, vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
