/*
 * idmap.h - 64-bit ids to 32-bit values, and sets of ids, for files that choose their own ids.
 *
 * vram_idmap: open addressing, at most half full, removal shifts back, so it never holds more than
 *             its largest live content. 32 bytes an id at worst. O(1).
 * vram_idset: 512 consecutive ids a page, so ids that were counted up cost a bit each and
 *             addresses about 100 bytes; it stops learning at 2^19 pages (50 MiB). O(1).
 *
 * Zeroed storage is an empty map or set.
 */
#ifndef VRAMLAB_READERS_IDMAP_H
#define VRAMLAB_READERS_IDMAP_H

#include <vramlab/text.h>

typedef struct vram_idmap_entry {
    uint64_t id;
    uint32_t value;
    uint32_t used;
} vram_idmap_entry;

typedef struct vram_idmap {
    vram_idmap_entry *entries;
    size_t size; /* a power of two, or 0 */
    size_t count;
    uint64_t seed;
} vram_idmap;

/* The value of the id, to read or change until the next put or remove; NULL when absent. */
uint32_t *vram_idmap_find(const vram_idmap *map, uint64_t id);
/* Sets the value; false when the host is out of memory. */
bool vram_idmap_put(vram_idmap *map, uint64_t id, uint32_t value);
bool vram_idmap_remove(vram_idmap *map, uint64_t id); /* false: it was not there */
void vram_idmap_clear(vram_idmap *map);               /* keeps the memory */
void vram_idmap_free(vram_idmap *map);

typedef struct vram_idset {
    vram_idmap pages;    /* id / 512 -> index */
    uint64_t (*bits)[8]; /* by index */
    size_t capacity;
    uint64_t last_page; /* the page used last, and its index */
    uint32_t last_index;
} vram_idset;

bool vram_idset_has(const vram_idset *set, uint64_t id);
/* False when the host is out of memory; an id beyond the bound is quietly not learnt. */
bool vram_idset_add(vram_idset *set, uint64_t id);
void vram_idset_clear(vram_idset *set);
void vram_idset_free(vram_idset *set);

#endif
