/*
 * hash.h - mixing for the readers' tables.
 *
 * Files may be hostile, so every table is seeded anew: ids or strings chosen to collide in one run
 * do not collide in the next. Nothing that is reported depends on the seed.
 */
#ifndef VRAMLAB_READERS_HASH_H
#define VRAMLAB_READERS_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

/* A seed that no file can know. */
static inline uint64_t hash_seed(void)
{
    uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);
    (void)!getrandom(&seed, sizeof seed, GRND_NONBLOCK);
    return seed;
}

/* Every bit of the value reaches every bit of the result (two rounds of xor, shift, multiply). */
static inline uint64_t hash_number(uint64_t seed, uint64_t value)
{
    value ^= seed;
    value = (value ^ (value >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    value = (value ^ (value >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return value ^ (value >> 32);
}

static inline uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t hash = seed ^ count;
    for (; count >= 8; at += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = hash_number(hash, word);
    }
    uint64_t rest = 0;
    memcpy(&rest, at, count);
    return hash_number(hash, rest);
}

#endif
