/*
 * offset_map.c - open addressing with linear probing; removal moves later entries back, so that
 * there are no tombstones.
 */
#include "core/offset_map.h"

#include <stdlib.h>

void vram_offset_map_free(vram_offset_map *self)
{
    free(self->entries);
    *self = (vram_offset_map){0};
}

void vram_offset_map_clear(vram_offset_map *self)
{
    for (size_t i = 0; i < self->capacity; i++)
        self->entries[i].key = 0;
    self->count = 0;
}

/* Where the search for a key begins. Fibonacci hashing (Knuth, TAOCP 6.4). */
static size_t home_of(const vram_offset_map *self, uint64_t key)
{
    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (self->capacity - 1);
}

/* The entry of the key, or the empty one where it would be. */
static size_t place_of(const vram_offset_map *self, uint64_t key)
{
    size_t at = home_of(self, key);
    while (self->entries[at].key != 0 && self->entries[at].key != key)
        at = (at + 1) & (self->capacity - 1);
    return at;
}

bool vram_offset_map_reserve(vram_offset_map *self)
{
    if (self->count < self->capacity / 2)
        return true;
    const size_t capacity = self->capacity == 0 ? 16 : self->capacity * 2;
    vram_offset_map grown = {.entries = calloc(capacity, sizeof *grown.entries),
                             .capacity = capacity,
                             .count = self->count};
    if (grown.entries == NULL)
        return false;
    for (size_t i = 0; i < self->capacity; i++)
        if (self->entries[i].key != 0)
            grown.entries[place_of(&grown, self->entries[i].key)] = self->entries[i];
    free(self->entries);
    *self = grown;
    return true;
}

void vram_offset_map_put(vram_offset_map *self, uint64_t offset_bytes, uint32_t number)
{
    self->entries[place_of(self, offset_bytes + 1)] =
        (vram_offset_entry){.key = offset_bytes + 1, .number = number};
    self->count++;
}

bool vram_offset_map_set(vram_offset_map *self, uint64_t offset_bytes, uint32_t number)
{
    if (!vram_offset_map_reserve(self))
        return false;
    vram_offset_map_remove(self, offset_bytes);
    vram_offset_map_put(self, offset_bytes, number);
    return true;
}

uint32_t vram_offset_map_find(const vram_offset_map *self, uint64_t offset_bytes)
{
    if (self->capacity == 0)
        return VRAM_OFFSET_MAP_NONE;
    const vram_offset_entry *entry = &self->entries[place_of(self, offset_bytes + 1)];
    return entry->key != 0 ? entry->number : VRAM_OFFSET_MAP_NONE;
}

bool vram_offset_map_remove(vram_offset_map *self, uint64_t offset_bytes)
{
    if (self->capacity == 0)
        return false;
    size_t hole = place_of(self, offset_bytes + 1);
    if (self->entries[hole].key == 0)
        return false;
    const size_t mask = self->capacity - 1;
    for (size_t at = (hole + 1) & mask; self->entries[at].key != 0; at = (at + 1) & mask) {
        /* An entry may move back into the hole unless its home lies behind the hole. */
        const size_t home = home_of(self, self->entries[at].key);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            self->entries[hole] = self->entries[at];
            hole = at;
        }
    }
    self->entries[hole].key = 0;
    self->count--;
    return true;
}
