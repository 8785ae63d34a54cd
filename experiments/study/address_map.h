/*
 * address_map.h - numbers by address: what a pointer stands for.
 *
 * Open addressing with linear probing; removal shifts back, so that there are no tombstones.
 * put, get, remove: O(1) on average. 16 bytes an entry, at most half full.
 */
#ifndef VRAMLAB_ADDRESS_MAP_H
#define VRAMLAB_ADDRESS_MAP_H

#include <vramlab/text.h>

/* Every address at most once. All zero is empty. */
typedef struct address_map {
    struct address_entry {
        uint64_t key; /* address + 1; 0: empty */
        uint32_t value;
    } * entries;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} address_map;

enum { ADDRESS_UNKNOWN = UINT32_MAX };

bool address_map_put(address_map *self, uint64_t address, uint32_t value);
uint32_t address_map_get(const address_map *self, uint64_t address); /* ADDRESS_UNKNOWN */
void address_map_remove(address_map *self, uint64_t address);
void address_map_free(address_map *self);

#endif
