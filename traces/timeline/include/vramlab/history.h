/*
 * vramlab/history.h - where a block was, and whether it had retired, at any moment.
 *
 * What the operations alone tell only to one who reads them from the start. Memory only for blocks
 * that move or retire.
 */
#ifndef VRAMLAB_HISTORY_H
#define VRAMLAB_HISTORY_H

#include <vramlab/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vram_moved {
    uint32_t block;
    uint32_t op; /* its MOVE */
} vram_moved;

typedef struct vram_history {
    const vram_timeline *timeline;
    vram_moved *moves; /* by block, then by operation; NULL: nothing moves */
    size_t move_count;
    uint32_t *retired_at; /* by block: its RETIRE, or UINT32_MAX; NULL: nothing retires */
} vram_history;

/* O(operations). The timeline must be sound and outlive the history. */
bool vram_history_make(const vram_timeline *timeline, vram_history *history, vram_error *error);
void vram_history_free(vram_history *history);

/* The block's offset once operation `op` has happened. O(log moves). */
uint64_t vram_history_offset(const vram_history *history, uint32_t block, uint32_t op);

/* Whether the program had let go of the block once operation `op` had happened. */
bool vram_history_retired(const vram_history *history, uint32_t block, uint32_t op);

#ifdef __cplusplus
}
#endif
#endif
