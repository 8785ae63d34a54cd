/*
 * bitmap.h - a set of numbers whose least member is found in a few bit scans. Not installed.
 *
 *   level 2   [1.......]                      one bit for each word of level 1 that is not zero
 *   level 1   [.1..1...]                      one bit for each word of level 0 that is not zero
 *   level 0   [........][..1.....] ... [1...] one bit for each number; words have 64 bits
 *
 * The highest level is one word. A guard word above it, never zero, ends every climb without a
 * test of the depth. insert, remove, first: O(levels), that is one level for each factor of 64.
 * Memory: 1.02 bits a number, grown by doubling.
 */
#ifndef VRAMLAB_BITMAP_H
#define VRAMLAB_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

enum { VRAM_BITMAP_LEVELS = 6 }; /* 64^6 numbers: more than a slot of 32 bits can name */
#define VRAM_BITMAP_NONE UINT64_MAX

/* All zero is the empty set without capacity. */
typedef struct vram_bitmap {
    uint64_t *levels[VRAM_BITMAP_LEVELS + 1]; /* one block of memory; [depth] is the guard */
    uint32_t depth;
    uint64_t capacity; /* numbers below it have a bit: a multiple of 64 */
} vram_bitmap;

/* Makes room for the numbers below count. False, with nothing changed, when the host is out of
 * memory. */
bool vram_bitmap_reserve(vram_bitmap *self, uint64_t count);
void vram_bitmap_free(vram_bitmap *self); /* leaves it empty, without capacity */
uint64_t vram_bitmap_host_bytes(const vram_bitmap *self);

/* True when each level tells the truth about the one below; otherwise *number is the first that is
 * hidden or pretended. */
bool vram_bitmap_check(const vram_bitmap *self, uint64_t *number);

/* The least member that is at least `from`, or VRAM_BITMAP_NONE. */
uint64_t vram_bitmap_next(const vram_bitmap *self, uint64_t from);

/* The number must be below the capacity in the three calls that follow. */
static inline bool vram_bitmap_has(const vram_bitmap *self, uint64_t number)
{
    return (self->levels[0][number >> 6] >> (number & 63) & 1) != 0;
}

static inline void vram_bitmap_insert(vram_bitmap *self, uint64_t number)
{
    for (uint64_t *const *level = self->levels;; level++) {
        uint64_t *word = &(*level)[number >> 6];
        const uint64_t before = *word;
        *word = before | UINT64_C(1) << (number & 63);
        if (before != 0)
            return;
        number >>= 6;
    }
}

static inline void vram_bitmap_remove(vram_bitmap *self, uint64_t number)
{
    for (uint64_t *const *level = self->levels;; level++) {
        uint64_t *word = &(*level)[number >> 6];
        const uint64_t after = *word & ~(UINT64_C(1) << (number & 63));
        *word = after;
        if (after != 0)
            return;
        number >>= 6;
    }
}

static inline bool vram_bitmap_is_empty(const vram_bitmap *self)
{
    return self->depth == 0 || self->levels[self->depth - 1][0] == 0;
}

/* The least member; the set must not be empty. */
static inline uint64_t vram_bitmap_first(const vram_bitmap *self)
{
    uint64_t number = 0;
    for (uint32_t level = self->depth; level-- > 0;)
        number = number << 6 | (uint64_t)__builtin_ctzll(self->levels[level][number]);
    return number;
}

#endif
