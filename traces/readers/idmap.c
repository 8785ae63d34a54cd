/* idmap.c - see idmap.h. */
#include "idmap.h"

#include "hash.h"

#include <stdlib.h>

enum { FIRST_SIZE = 64, PAGE_IDS = 512, PAGES_MAX = 1 << 19 };

static size_t home_of(const vram_idmap *map, uint64_t id)
{
    return (size_t)hash_number(map->seed, id) & (map->size - 1);
}

/* Where the id is, or the empty place where it would go. */
static size_t place_of(const vram_idmap *map, uint64_t id)
{
    size_t place = home_of(map, id);
    while (map->entries[place].used && map->entries[place].id != id)
        place = (place + 1) & (map->size - 1);
    return place;
}

uint32_t *vram_idmap_find(const vram_idmap *map, uint64_t id)
{
    if (map->count == 0)
        return NULL;
    vram_idmap_entry *entry = &map->entries[place_of(map, id)];
    return entry->used ? &entry->value : NULL;
}

static bool grow(vram_idmap *map)
{
    const size_t size = map->size == 0 ? FIRST_SIZE : map->size * 2;
    vram_idmap_entry *entries = calloc(size, sizeof *entries);
    if (entries == NULL)
        return false;
    vram_idmap old = *map;
    if (map->size == 0)
        map->seed = hash_seed();
    map->entries = entries;
    map->size = size;
    for (size_t i = 0; i < old.size; i++)
        if (old.entries[i].used)
            entries[place_of(map, old.entries[i].id)] = old.entries[i];
    free(old.entries);
    return true;
}

bool vram_idmap_put(vram_idmap *map, uint64_t id, uint32_t value)
{
    if ((map->count + 1) * 2 > map->size && !grow(map))
        return false;
    vram_idmap_entry *entry = &map->entries[place_of(map, id)];
    map->count += !entry->used;
    *entry = (vram_idmap_entry){.id = id, .value = value, .used = 1};
    return true;
}

/* Entries behind the hole that may not stay beyond it move into it, one after another. */
static void close_hole(vram_idmap *map, size_t hole)
{
    const size_t mask = map->size - 1;
    for (size_t at = (hole + 1) & mask; map->entries[at].used; at = (at + 1) & mask) {
        const size_t home = home_of(map, map->entries[at].id);
        if (((at - home) & mask) < ((at - hole) & mask))
            continue; /* its home lies behind the hole */
        map->entries[hole] = map->entries[at];
        hole = at;
    }
    map->entries[hole].used = 0;
}

bool vram_idmap_remove(vram_idmap *map, uint64_t id)
{
    if (map->count == 0)
        return false;
    const size_t place = place_of(map, id);
    if (!map->entries[place].used)
        return false;
    close_hole(map, place);
    map->count--;
    return true;
}

void vram_idmap_clear(vram_idmap *map)
{
    if (map->count > 0)
        memset(map->entries, 0, map->size * sizeof *map->entries);
    map->count = 0;
}

void vram_idmap_free(vram_idmap *map)
{
    free(map->entries);
    *map = (vram_idmap){0};
}

bool vram_idset_has(const vram_idset *set, uint64_t id)
{
    const uint32_t *index = vram_idmap_find(&set->pages, id / PAGE_IDS);
    return index != NULL && (set->bits[*index][id % PAGE_IDS / 64] >> (id % 64) & 1) != 0;
}

/* The index of the id's page, made when it is new; UINT32_MAX beyond the bound. */
static bool page_of(vram_idset *set, uint64_t page, uint32_t *found)
{
    const uint32_t *index = vram_idmap_find(&set->pages, page);
    *found = index != NULL ? *index : UINT32_MAX;
    if (index != NULL || set->pages.count >= PAGES_MAX)
        return true;
    const uint32_t fresh = (uint32_t)set->pages.count;
    if (!vram_reserve((void **)&set->bits, &set->capacity, fresh + 1u, sizeof *set->bits) ||
        !vram_idmap_put(&set->pages, page, fresh))
        return false;
    memset(set->bits[fresh], 0, sizeof *set->bits);
    *found = fresh;
    return true;
}

bool vram_idset_add(vram_idset *set, uint64_t id)
{
    const uint64_t page = id / PAGE_IDS;
    if (set->pages.count == 0 || page != set->last_page) {
        uint32_t index;
        if (!page_of(set, page, &index))
            return false;
        if (index == UINT32_MAX)
            return true;
        set->last_page = page;
        set->last_index = index;
    }
    set->bits[set->last_index][id % PAGE_IDS / 64] |= UINT64_C(1) << (id % 64);
    return true;
}

void vram_idset_clear(vram_idset *set)
{
    vram_idmap_clear(&set->pages);
}

void vram_idset_free(vram_idset *set)
{
    vram_idmap_free(&set->pages);
    free(set->bits);
    *set = (vram_idset){0};
}
