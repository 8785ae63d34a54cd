/*
 * names.c - interned texts: chunks of characters that never move, and an open hash table of
 * indices, at most half full.
 */
#include "names.h"

#include "hash.h"

#include <stdlib.h>

enum { CHUNK_BYTES = 1 << 16, FIRST_TABLE = 64 };

static bool new_chunk(vram_names *names, size_t bytes)
{
    if (!vram_reserve((void **)&names->chunks, &names->chunk_capacity, names->chunk_count + 1,
                      sizeof *names->chunks))
        return false;
    char *chunk = malloc(bytes);
    if (chunk == NULL)
        return false;
    names->chunks[names->chunk_count++] = chunk;
    names->room = chunk;
    names->room_bytes = bytes;
    return true;
}

/* A copy of the text that ends with a null byte; NULL when out of memory. */
static const char *keep(vram_names *names, const char *text, size_t bytes)
{
    if (names->room_bytes < bytes + 1 &&
        !new_chunk(names, bytes + 1 > CHUNK_BYTES ? bytes + 1 : CHUNK_BYTES))
        return NULL;
    char *copy = names->room;
    if (bytes > 0)
        memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    names->room += bytes + 1;
    names->room_bytes -= bytes + 1;
    return copy;
}

static bool append(vram_names *names, const char *text, size_t bytes)
{
    if (names->count >= UINT32_MAX - 1 || bytes > UINT32_MAX ||
        !vram_reserve((void **)&names->texts, &names->text_capacity, names->count + 1,
                      sizeof *names->texts) ||
        !vram_reserve((void **)&names->sizes, &names->size_capacity, names->count + 1,
                      sizeof *names->sizes))
        return false;
    const char *copy = keep(names, text, bytes);
    if (copy == NULL)
        return false;
    names->texts[names->count] = copy;
    names->sizes[names->count] = (uint32_t)bytes;
    names->count++;
    return true;
}

/* The place of the text in the table: its own, or the empty one where it would go. */
static size_t place_of(const vram_names *names, const char *text, size_t bytes)
{
    const size_t mask = names->table_size - 1;
    size_t place = (size_t)hash_bytes(names->seed, text, bytes) & mask;
    for (; names->table[place] != 0; place = (place + 1) & mask) {
        const uint32_t index = names->table[place] - 1;
        if (names->sizes[index] == bytes && memcmp(names->texts[index], text, bytes) == 0)
            break;
    }
    return place;
}

static bool grow_table(vram_names *names)
{
    const size_t size = names->table_size == 0 ? FIRST_TABLE : names->table_size * 2;
    uint32_t *table = calloc(size, sizeof *table);
    if (table == NULL)
        return false;
    free(names->table);
    names->table = table;
    names->table_size = size;
    for (size_t i = 0; i < names->count; i++)
        table[place_of(names, names->texts[i], names->sizes[i])] = (uint32_t)i + 1;
    return true;
}

static bool start(vram_names *names)
{
    names->seed = hash_seed();
    if (!grow_table(names) || !append(names, "", 0))
        return false;
    names->table[place_of(names, "", 0)] = 1;
    return true;
}

bool vram_names_intern(vram_names *names, const char *text, size_t bytes, uint32_t *index)
{
    if (bytes == 0) {
        *index = 0;
        return names->count > 0 || start(names);
    }
    if (names->count == 0 && !start(names))
        return false;
    if (names->count * 2 >= names->table_size && !grow_table(names))
        return false;
    const size_t place = place_of(names, text, bytes);
    if (names->table[place] == 0) {
        if (!append(names, text, bytes))
            return false;
        names->table[place] = (uint32_t)names->count;
    }
    *index = names->table[place] - 1;
    return true;
}

const char *vram_names_text(const vram_names *names, uint32_t index)
{
    return index < names->count ? names->texts[index] : "";
}

uint32_t vram_names_bytes(const vram_names *names, uint32_t index)
{
    return index < names->count ? names->sizes[index] : 0;
}

uint32_t vram_names_count(const vram_names *names)
{
    return names->count == 0 ? 1 : (uint32_t)names->count;
}

void vram_names_free(vram_names *names)
{
    for (size_t i = 0; i < names->chunk_count; i++)
        free(names->chunks[i]);
    free(names->chunks);
    free(names->texts);
    free(names->sizes);
    free(names->table);
    *names = (vram_names){0};
}
