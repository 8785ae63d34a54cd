/*
 * occupancy.h - the live blocks of an arena in address order, and the largest gap between them.
 */
#ifndef VRAMLAB_OCCUPANCY_H
#define VRAMLAB_OCCUPANCY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct vram_occupancy vram_occupancy;

vram_occupancy *vram_occupancy_new(uint64_t arena_bytes); /* NULL: out of host memory */
void vram_occupancy_free(vram_occupancy *self);           /* NULL is allowed */

typedef enum vram_occupied { VRAM_OCCUPIED, VRAM_OVERLAPS, VRAM_OCCUPANCY_FULL } vram_occupied;

/* A block at [offset, offset + size), which lies within the arena. Unchanged unless OCCUPIED. */
vram_occupied vram_occupy(vram_occupancy *self, uint64_t offset_bytes, uint64_t size_bytes);
/* Takes the block that begins at offset out; false when there is none. */
bool vram_vacate(vram_occupancy *self, uint64_t offset_bytes);

uint64_t vram_largest_gap(const vram_occupancy *self);
uint64_t vram_extent(const vram_occupancy *self); /* highest end of a block; 0 when there is none */

#endif
