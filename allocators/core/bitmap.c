/*
 * bitmap.c - the parts of the bitmap that are not called with every allocation.
 */
#include "core/bitmap.h"

#include <stdlib.h>
#include <string.h>

/* Words in each level of a bitmap for so many numbers; returns the depth. */
static uint32_t measure(uint64_t count, uint64_t words[VRAM_BITMAP_LEVELS])
{
    uint32_t depth = 0;
    for (uint64_t below = count; depth == 0 || below > 1; depth++) {
        words[depth] = (below + 63) / 64;
        below = words[depth];
    }
    return depth;
}

/* Derives every level above the lowest from it. */
static void summarise(vram_bitmap *self, const uint64_t words[VRAM_BITMAP_LEVELS])
{
    for (uint32_t level = 1; level < self->depth; level++)
        for (uint64_t i = 0; i < words[level - 1]; i++)
            if (self->levels[level - 1][i] != 0)
                self->levels[level][i >> 6] |= UINT64_C(1) << (i & 63);
}

bool vram_bitmap_reserve(vram_bitmap *self, uint64_t count)
{
    if (count <= self->capacity)
        return true;
    const uint64_t wanted = count > 2 * self->capacity ? count : 2 * self->capacity;
    vram_bitmap grown = {.capacity = (wanted + 63) / 64 * 64};
    uint64_t words[VRAM_BITMAP_LEVELS];
    grown.depth = measure(grown.capacity, words);
    uint64_t total_words = 1;
    for (uint32_t level = 0; level < grown.depth; level++)
        total_words += words[level];
    uint64_t *next = calloc(total_words, sizeof *next);
    if (next == NULL)
        return false;
    for (uint32_t level = 0; level < grown.depth; level++) {
        grown.levels[level] = next;
        next += words[level];
    }
    grown.levels[grown.depth] = next;
    *next = UINT64_C(1) << 63;
    if (self->capacity > 0)
        memcpy(grown.levels[0], self->levels[0], self->capacity / 8);
    summarise(&grown, words);
    free(self->levels[0]);
    *self = grown;
    return true;
}

void vram_bitmap_free(vram_bitmap *self)
{
    free(self->levels[0]);
    *self = (vram_bitmap){.depth = 0};
}

uint64_t vram_bitmap_host_bytes(const vram_bitmap *self)
{
    uint64_t words[VRAM_BITMAP_LEVELS];
    uint64_t total_words = self->capacity > 0;
    const uint32_t depth = self->capacity > 0 ? measure(self->capacity, words) : 0;
    for (uint32_t level = 0; level < depth; level++)
        total_words += words[level];
    return total_words * sizeof(uint64_t);
}

bool vram_bitmap_check(const vram_bitmap *self, uint64_t *number)
{
    uint64_t bits = self->capacity;
    uint64_t reach = 1; /* numbers that one bit of the level below stands for */
    for (uint32_t level = 1; level < self->depth; level++) {
        bits = (bits + 63) / 64;
        reach *= 64;
        for (uint64_t i = 0; i < (bits + 63) / 64 * 64; i++) {
            const bool said = (self->levels[level][i >> 6] >> (i & 63) & 1) != 0;
            const bool so = i < bits && self->levels[level - 1][i] != 0;
            if (said != so) {
                *number = i * reach;
                return false;
            }
        }
    }
    return true;
}

/* The least member whose bit at this level is in word `from >> 6`, at `from` or behind it. */
static bool next_in_word(const vram_bitmap *self, uint32_t level, uint64_t from, uint64_t *bit)
{
    const uint64_t word = self->levels[level][from >> 6] & UINT64_MAX << (from & 63);
    if (word == 0)
        return false;
    *bit = (from & ~UINT64_C(63)) | (uint64_t)__builtin_ctzll(word);
    return true;
}

uint64_t vram_bitmap_next(const vram_bitmap *self, uint64_t from)
{
    uint64_t bits = self->capacity;
    for (uint32_t level = 0; level < self->depth && from < bits; level++) {
        uint64_t bit = 0;
        if (next_in_word(self, level, from, &bit)) {
            while (level-- > 0)
                bit = bit << 6 | (uint64_t)__builtin_ctzll(self->levels[level][bit]);
            return bit;
        }
        bits = (bits + 63) / 64;
        from = (from >> 6) + 1;
    }
    return VRAM_BITMAP_NONE;
}
