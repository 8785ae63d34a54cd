/*
 * bitmap.h - a set of numbers whose least member is found in a few bit scans. Not installed.
 *
 *   level 2   [1.......]                      one bit for each word of level 1 that is not zero
 *   level 1   [.1..1...]                      one bit for each word of level 0 that is not zero
 *   level 0   [........][..1.....] ... [1...] one bit for each number; words have 64 bits
 *
 * The highest level is one word. There are at least three levels, enough for 262,144 numbers; that
 * case, which is the common one, runs without loops, and its upper levels lie in the struct.
 *
 * insert, remove, pop: O(levels), that is one level for each factor of 64. Memory: 1.02 bits a
 * number, grown by doubling.
 */
#ifndef VRAMLAB_BITMAP_H
#define VRAMLAB_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

enum {
    VRAM_BITMAP_LEVELS = 6, /* 64^6: more than 32 bits can name */
    VRAM_BITMAP_SHALLOW = 3,
};
#define VRAM_BITMAP_NONE UINT32_MAX

/* Numbers are below UINT32_MAX. vram_bitmap_reserve must have made room before the first use; from
 * then on the struct must stay where it is. */
typedef struct vram_bitmap {
    uint64_t top;        /* the levels above the lowest while there are three; */
    uint64_t middle[64]; /* both all zero when there are more */
    uint64_t *levels[VRAM_BITMAP_LEVELS];
    uint32_t depth;
    uint64_t capacity; /* numbers below it have a bit: a multiple of 64 */
} vram_bitmap;

/* Makes room for the numbers below count. False, with nothing changed, when the host is out of
 * memory. */
bool vram_bitmap_reserve(vram_bitmap *self, uint64_t count);
void vram_bitmap_free(vram_bitmap *self);
uint64_t vram_bitmap_host_bytes(const vram_bitmap *self); /* without the struct itself */

/* True when each level tells the truth about the one below; otherwise *number is the first that is
 * hidden or pretended. */
bool vram_bitmap_check(const vram_bitmap *self, uint64_t *number);

/* The least member that is at least `from`, or VRAM_BITMAP_NONE. */
uint32_t vram_bitmap_next(const vram_bitmap *self, uint32_t from);

/* The number must be below the capacity in the calls that follow. */
static inline bool vram_bitmap_has(const vram_bitmap *self, uint32_t number)
{
    return (self->levels[0][number >> 6] >> (number & 63) & 1) != 0;
}

void vram_bitmap_remove(vram_bitmap *self, uint32_t number);

void vram_bitmap_insert(vram_bitmap *self, uint32_t number);

/* Removes and returns the least member; VRAM_BITMAP_NONE when there is none. */
uint32_t vram_bitmap_pop(vram_bitmap *self);

static inline bool vram_bitmap_is_shallow(const vram_bitmap *self)
{
    return self->depth == VRAM_BITMAP_SHALLOW;
}

/* vram_bitmap_insert into a shallow bitmap. Writes all levels without a look at what is there,
 * which is cheaper than to branch on it. */
static inline void vram_bitmap_insert_shallow(vram_bitmap *self, uint32_t number)
{
    self->levels[0][number >> 6] |= UINT64_C(1) << (number & 63);
    self->middle[number >> 12] |= UINT64_C(1) << (number >> 6 & 63);
    self->top |= UINT64_C(1) << (number >> 12 & 63);
}

/* vram_bitmap_pop from a shallow bitmap that is not empty: one whose `top` is not 0. */
static inline uint32_t vram_bitmap_pop_shallow(vram_bitmap *self)
{
    uint32_t number = (uint32_t)__builtin_ctzll(self->top);
    uint64_t *const middle = &self->middle[number];
    number = number << 6 | (uint32_t)__builtin_ctzll(*middle);
    uint64_t *const lowest = &self->levels[0][number];
    number = number << 6 | (uint32_t)__builtin_ctzll(*lowest);
    if ((*lowest &= *lowest - 1) == 0 && (*middle &= *middle - 1) == 0)
        self->top &= self->top - 1;
    return number;
}

#endif
