/*
 * cells.h - what lies in each cell of a stretch of addresses, at any moment.
 *
 * Each cell holds whole-number sums to which an operation adds and from which it takes, so that
 * any moment is reached from another by the operations between them, in either direction.
 */
#ifndef VRAMLAB_VIZ_CELLS_H
#define VRAMLAB_VIZ_CELLS_H

#include "../key.h"

#include <vramlab/cursor.h>
#include <vramlab/history.h>

typedef struct vram_cells vram_cells;

/* Cell i covers the i-th cell_bytes of the window; the last may be shorter. */
typedef struct vram_cell_span {
    vram_window bytes;
    uint64_t cell_bytes;
    uint32_t count;
} vram_cell_span;

/* The cursor and the history are of the same timeline and outlive the cells. NULL: out of memory.
 */
vram_cells *vram_cells_new(vram_cursor *cursor, const vram_history *history);
void vram_cells_free(vram_cells *self);

/* What to hold from now on. Nothing happens when it is as before. The key must outlive the cells or
 * the next call. False: out of host memory. */
bool vram_cells_set(vram_cells *self, const vram_cell_span *span, const vram_key *key);

/* Goes to the moment after `op` operations, at which so many blocks live. False: out of memory. */
bool vram_cells_seek(vram_cells *self, size_t op, size_t live_blocks);

/* Makes keyframes for at most so many operations more; worth its time where many blocks live. False
 * when all are made. */
bool vram_cells_prepare(vram_cells *self, size_t operations);

/* Whether anything covers the cell, and if so its tint. */
bool vram_cells_tint(const vram_cells *self, uint32_t cell, vram_tint *tint);

#endif
