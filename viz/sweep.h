/*
 * sweep.h - how much of each cell of a grid (time by address) blocks cover, exactly.
 *
 * A cell is a `columns`-th of the time window by a `rows`-th of the address window. Areas are whole
 * numbers of (axis units x bytes), scaled by columns x rows so that cell borders are whole too: a
 * cell that is covered fully has the area span x bytes. Columns come one after the other, so memory
 * is a few columns whatever the width.
 */
#ifndef VRAMLAB_VIZ_SWEEP_H
#define VRAMLAB_VIZ_SWEEP_H

#include "key.h"

__extension__ typedef unsigned __int128 vram_area;

typedef struct vram_grid {
    uint32_t columns, rows;
    vram_axis axis;
    vram_window time;
    vram_window bytes;
} vram_grid;

/* The area of a cell that is covered fully. */
static inline vram_area vram_cell_area(const vram_grid *grid)
{
    return (vram_area)(grid->time.to - grid->time.from) * (grid->bytes.to - grid->bytes.from);
}

/*
 * One column, rows from the lowest addresses up: covered[row]; tints[row], of which the colour of
 * the cell is made; touched[row], whether any byte of the row has ever been in a block until the
 * end of the column. Returns false to stop.
 */
typedef bool vram_sweep_visit(void *context, uint32_t column, const vram_area *covered,
                              const vram_tint *tints, const bool *touched);

/* Sweeps from left to right: O(operations + columns x rows), however large the blocks are. */
bool vram_sweep(const vram_timeline *timeline, const vram_grid *grid, const vram_key *key,
                vram_sweep_visit *visit, void *context, vram_error *error);

#endif
