/*
 * size_bins.h - sizes sorted into bins, and the next bin that is not empty in two bit scans.
 *
 *     size 1 0110 1...      bin = 32 * (position of the leading one) + (the six bits from it on)
 *          ^~~~~~           so that a bin's sizes differ by at most a thirty-second
 *
 *     levels  ..1.1.1......     a bit for each level, 32 bins, that has a bin in use
 *     steps   [2] 00100...      a bit for each bin of a level
 *
 * Two levels as in TLSF (Masmano et al. 2004). The six bits being at least 32, size 1 has bin 32
 * and level 0 stays empty.
 */
#ifndef VRAMLAB_SIZE_BINS_H
#define VRAMLAB_SIZE_BINS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SIZE_BIN_STEPS_LOG2 = 5,
    SIZE_BIN_STEPS = 1 << SIZE_BIN_STEPS_LOG2,
    SIZE_BIN_LEVELS = 52, /* sizes up to 2^50, the largest arena */
    SIZE_BIN_NONE = SIZE_BIN_LEVELS * SIZE_BIN_STEPS,
};

typedef struct size_bins {
    uint64_t levels;
    uint32_t steps[SIZE_BIN_LEVELS + 1]; /* the last stays 0: beyond every bin */
} size_bins;

/* The bin of a size, which is at least 1 and at most 2^50. Grows with the size. */
static inline uint32_t size_bin_of(uint64_t size_bytes)
{
    const uint32_t position = 63u ^ (uint32_t)__builtin_clzll(size_bytes);
    const uint64_t leading = size_bytes << (63 ^ position) >> (63 - SIZE_BIN_STEPS_LOG2);
    return (position << SIZE_BIN_STEPS_LOG2) + (uint32_t)leading;
}

static inline void size_bins_set(size_bins *self, uint32_t bin)
{
    const uint32_t level = bin >> SIZE_BIN_STEPS_LOG2;
    self->levels |= UINT64_C(1) << level;
    self->steps[level] |= UINT32_C(1) << (bin & (SIZE_BIN_STEPS - 1));
}

static inline void size_bins_clear(size_bins *self, uint32_t bin)
{
    const uint32_t level = bin >> SIZE_BIN_STEPS_LOG2;
    self->steps[level] &= ~(UINT32_C(1) << (bin & (SIZE_BIN_STEPS - 1)));
    if (self->steps[level] == 0)
        self->levels &= ~(UINT64_C(1) << level);
}

static inline bool size_bins_has(const size_bins *self, uint32_t bin)
{
    return self->steps[bin >> SIZE_BIN_STEPS_LOG2] >> (bin & (SIZE_BIN_STEPS - 1)) & 1;
}

/* The first bin in use at or above `bin` (which is at most SIZE_BIN_NONE), or SIZE_BIN_NONE. */
static inline uint32_t size_bins_next(const size_bins *self, uint32_t bin)
{
    uint32_t level = bin >> SIZE_BIN_STEPS_LOG2;
    uint32_t steps = self->steps[level] & (UINT32_MAX << (bin & (SIZE_BIN_STEPS - 1)));
    if (steps == 0) {
        const uint64_t levels = self->levels & (UINT64_MAX << level << 1);
        if (levels == 0)
            return SIZE_BIN_NONE;
        level = (uint32_t)__builtin_ctzll(levels);
        steps = self->steps[level];
    }
    return (level << SIZE_BIN_STEPS_LOG2) + (uint32_t)__builtin_ctz(steps);
}

#endif
