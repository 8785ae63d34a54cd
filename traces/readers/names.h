/*
 * names.h - texts by number: equal texts get one index, index 0 is "".
 *
 * The text of an index never moves, so that callers may keep the pointer as long as the table.
 */
#ifndef VRAMLAB_READERS_NAMES_H
#define VRAMLAB_READERS_NAMES_H

#include <vramlab/text.h>

typedef struct vram_names {
    const char **texts; /* by index, each ends with a null byte */
    uint32_t *sizes;
    uint32_t *table; /* hash -> index + 1; 0 is empty */
    void **chunks;   /* where the texts are */
    char *room;      /* unused end of the last chunk */
    size_t room_bytes, count, text_capacity, size_capacity, table_size, chunk_count, chunk_capacity;
    uint64_t seed;
} vram_names;

/* Zeroed storage is an empty table. False when the host is out of memory. */
bool vram_names_intern(vram_names *names, const char *text, size_t bytes, uint32_t *index);
/* "" for an index out of range. */
const char *vram_names_text(const vram_names *names, uint32_t index);
uint32_t vram_names_bytes(const vram_names *names, uint32_t index); /* its length */
uint32_t vram_names_count(const vram_names *names);                 /* at least 1: "" */
void vram_names_free(vram_names *names);

#endif
