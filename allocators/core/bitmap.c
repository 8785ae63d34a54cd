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
    for (uint64_t below = count; depth < VRAM_BITMAP_SHALLOW || below > 1; depth++) {
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

/* Words that do not lie in the struct. */
static uint64_t outer_words(uint32_t depth, const uint64_t words[VRAM_BITMAP_LEVELS])
{
    uint64_t total = 0;
    for (uint32_t level = 0; level < (depth == VRAM_BITMAP_SHALLOW ? 1 : depth); level++)
        total += words[level];
    return total;
}

bool vram_bitmap_reserve(vram_bitmap *self, uint64_t count)
{
    if (count <= self->capacity)
        return true;
    const uint64_t wanted = count > 2 * self->capacity ? count : 2 * self->capacity;
    vram_bitmap grown = {.capacity = (wanted + 63) / 64 * 64};
    uint64_t words[VRAM_BITMAP_LEVELS];
    grown.depth = measure(grown.capacity, words);
    uint64_t *next = calloc(outer_words(grown.depth, words), sizeof *next);
    if (next == NULL)
        return false;
    for (uint32_t level = 0; level < grown.depth; next += words[level++])
        grown.levels[level] = next;
    if (vram_bitmap_is_shallow(&grown)) {
        grown.levels[1] = self->middle;
        grown.levels[2] = &self->top;
    }
    if (self->capacity > 0)
        memcpy(grown.levels[0], self->levels[0], self->capacity / 8);
    free(self->levels[0]);
    *self = grown;
    summarise(self, words);
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
    const uint32_t depth = measure(self->capacity, words);
    return self->capacity == 0 ? 0 : outer_words(depth, words) * sizeof(uint64_t);
}

void vram_bitmap_insert(vram_bitmap *self, uint32_t number)
{
    for (uint32_t level = 0; level < self->depth; level++) {
        self->levels[level][number >> 6] |= UINT64_C(1) << (number & 63);
        number >>= 6;
    }
}

void vram_bitmap_remove(vram_bitmap *self, uint32_t number)
{
    for (uint32_t level = 0; level < self->depth; level++) {
        if ((self->levels[level][number >> 6] &= ~(UINT64_C(1) << (number & 63))) != 0)
            return;
        number >>= 6;
    }
}

uint32_t vram_bitmap_pop(vram_bitmap *self)
{
    const uint32_t number = vram_bitmap_next(self, 0);
    if (number != VRAM_BITMAP_NONE)
        vram_bitmap_remove(self, number);
    return number;
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

uint32_t vram_bitmap_next(const vram_bitmap *self, uint32_t from)
{
    uint64_t bits = self->capacity;
    for (uint32_t level = 0; level < self->depth && from < bits; level++) {
        const uint64_t word = self->levels[level][from >> 6] & UINT64_MAX << (from & 63);
        if (word != 0) {
            uint32_t number = (from & ~UINT32_C(63)) | (uint32_t)__builtin_ctzll(word);
            while (level-- > 0)
                number = number << 6 | (uint32_t)__builtin_ctzll(self->levels[level][number]);
            return number;
        }
        bits = (bits + 63) / 64;
        from = (from >> 6) + 1;
    }
    return VRAM_BITMAP_NONE;
}
