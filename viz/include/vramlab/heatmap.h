/*
 * vramlab/heatmap.h - a timeline as a picture: address by time, coloured by the share in use.
 *
 * A cell of the picture is a stretch of time by a stretch of addresses; its colour is the exact
 * share of that area which live blocks cover. Bytes that no block has ever held are grey, so that
 * "free again" and "never needed" look different. The same timeline gives the same bytes of PNG.
 */
#ifndef VRAMLAB_HEATMAP_H
#define VRAMLAB_HEATMAP_H

#include <vramlab/metrics.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { VRAM_HEATMAP_LEAST = 320, VRAM_HEATMAP_MOST = 16384 };

/* Zeroed: 1600 x 1000 pixels, by events, the whole timeline and arena. */
typedef struct vram_heatmap_options {
    uint32_t width, height; /* pixels of the picture: VRAM_HEATMAP_LEAST .. MOST; 0: the default */
    vram_axis axis;
    vram_window time;  /* of the axis; both 0: all */
    vram_window bytes; /* of the addresses; both 0: the arena, or up to the highest address in use
                          when that lies beyond it */
    const char *title; /* NULL: the trace's name and the backend */
} vram_heatmap_options;

/*
 * Draws and writes; options may be NULL. O(operations + pixels), whatever the blocks' sizes. False
 * with a message when an option is out of range, a window is empty, or the file cannot be written:
 * then there is none.
 */
bool vram_heatmap_write(const vram_timeline *timeline, const vram_heatmap_options *options,
                        const char *path, vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
