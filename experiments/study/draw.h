/*
 * draw.h - the random numbers of the device's studies: xorshift64* (Vigna 2016), any start but 0.
 */
#ifndef VRAMLAB_STUDY_DRAW_H
#define VRAMLAB_STUDY_DRAW_H

#include <math.h>
#include <stdint.h>

static inline uint64_t draw_word(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

/* Below a bound far below 2^32. */
static inline uint64_t draw_below(uint64_t *state, uint64_t bound)
{
    return (draw_word(state) >> 32) % bound;
}

/* From least up to most, each doubling as likely as the others. */
static inline uint64_t draw_log_uniform(uint64_t *state, double least, double most)
{
    const double share = (double)(draw_word(state) >> 11) / (double)(UINT64_C(1) << 53);
    return (uint64_t)(least * exp(share * log(most / least)));
}

#endif
