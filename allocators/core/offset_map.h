/*
 * offset_map.h - from an offset (or a size) to a number; open addressing, never more than half
 * full. Not installed.
 *
 * find, put, remove: O(1) expected. Host memory: 32 bytes an entry at most, grown by doubling.
 */
#ifndef VRAMLAB_OFFSET_MAP_H
#define VRAMLAB_OFFSET_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VRAM_OFFSET_MAP_NONE UINT32_MAX

typedef struct vram_offset_entry {
    uint64_t key; /* offset + 1; 0: empty */
    uint32_t number;
} vram_offset_entry;

/* Zeroed storage is an empty map. */
typedef struct vram_offset_map {
    vram_offset_entry *entries;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} vram_offset_map;

void vram_offset_map_free(vram_offset_map *self);

/* Makes room for one more entry. False when the host is out of memory; nothing has changed then. */
bool vram_offset_map_reserve(vram_offset_map *self);

/* There must be room, and no entry of this offset. */
void vram_offset_map_put(vram_offset_map *self, uint64_t offset_bytes, uint32_t number);

/* As put, but makes room and replaces an entry of this offset. False when the host is out of
 * memory. */
bool vram_offset_map_set(vram_offset_map *self, uint64_t offset_bytes, uint32_t number);

/* The number under the offset, or VRAM_OFFSET_MAP_NONE. */
uint32_t vram_offset_map_find(const vram_offset_map *self, uint64_t offset_bytes);

/* Forgets every entry and keeps the room. */
void vram_offset_map_clear(vram_offset_map *self);

/* False when there is no such entry. */
bool vram_offset_map_remove(vram_offset_map *self, uint64_t offset_bytes);

#endif
