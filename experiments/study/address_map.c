/* address_map.c - see address_map.h. */
#include "study/address_map.h"

#include <stdlib.h>

static size_t home_of(const address_map *self, uint64_t key)
{
    return (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (self->capacity - 1);
}

static size_t place_of(const address_map *self, uint64_t key)
{
    size_t at = home_of(self, key);
    while (self->entries[at].key != 0 && self->entries[at].key != key)
        at = (at + 1) & (self->capacity - 1);
    return at;
}

static bool grow(address_map *self)
{
    address_map grown = {.capacity = self->capacity == 0 ? 256 : 2 * self->capacity,
                         .count = self->count};
    grown.entries = calloc(grown.capacity, sizeof *grown.entries);
    if (grown.entries == NULL)
        return false;
    for (size_t i = 0; i < self->capacity; i++)
        if (self->entries[i].key != 0)
            grown.entries[place_of(&grown, self->entries[i].key)] = self->entries[i];
    free(self->entries);
    *self = grown;
    return true;
}

bool address_map_put(address_map *self, uint64_t address, uint32_t value)
{
    if (2 * (self->count + 1) > self->capacity && !grow(self))
        return false;
    const size_t at = place_of(self, address + 1);
    self->count += self->entries[at].key == 0;
    self->entries[at].key = address + 1;
    self->entries[at].value = value;
    return true;
}

uint32_t address_map_get(const address_map *self, uint64_t address)
{
    if (self->capacity == 0)
        return ADDRESS_UNKNOWN;
    const size_t at = place_of(self, address + 1);
    return self->entries[at].key == 0 ? ADDRESS_UNKNOWN : self->entries[at].value;
}

void address_map_remove(address_map *self, uint64_t address)
{
    if (self->capacity == 0)
        return;
    const size_t mask = self->capacity - 1;
    size_t hole = place_of(self, address + 1);
    if (self->entries[hole].key == 0)
        return;
    self->count--;
    for (size_t at = (hole + 1) & mask; self->entries[at].key != 0; at = (at + 1) & mask) {
        const size_t home = home_of(self, self->entries[at].key);
        if (((at - home) & mask) < ((at - hole) & mask))
            continue; /* its home lies behind the hole */
        self->entries[hole] = self->entries[at];
        hole = at;
    }
    self->entries[hole].key = 0;
}

void address_map_free(address_map *self)
{
    free(self->entries);
    *self = (address_map){.capacity = 0};
}
