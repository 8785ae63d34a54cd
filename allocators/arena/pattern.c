/*
 * pattern.c - what a verified block is filled with.
 *
 * The word at index i of a block is first(seed) + i * odd: a byte that another block overwrote, or
 * that moved within its own block, does not match. One addition a word, so that filling runs at the
 * memory's pace.
 */
#include "arena/pattern.h"

#include <vramlab/text.h>

#include <string.h>

/* Near seeds give unrelated words. */
uint64_t vram_pattern_first(uint64_t seed)
{
    return vram_next_random(&seed);
}

void vram_pattern_fill(unsigned char *bytes, uint64_t size_bytes, uint64_t seed)
{
    const uint64_t whole_bytes = size_bytes & ~UINT64_C(7);
    uint64_t word = vram_pattern_first(seed);
    for (uint64_t at = 0; at < whole_bytes; at += sizeof word, word += VRAM_PATTERN_STEP)
        memcpy(bytes + at, &word, sizeof word);
    memcpy(bytes + whole_bytes, &word, size_bytes - whole_bytes);
}

/* The first byte of at most eight that is not the word's, or count. */
static uint64_t first_difference(const unsigned char *bytes, uint64_t word, uint64_t count)
{
    const unsigned char *expected = (const unsigned char *)&word;
    uint64_t at = 0;
    while (at < count && bytes[at] == expected[at])
        at++;
    return at;
}

uint64_t vram_pattern_compare(const unsigned char *bytes, uint64_t size_bytes, uint64_t seed)
{
    const uint64_t whole_bytes = size_bytes & ~UINT64_C(7);
    uint64_t word = vram_pattern_first(seed);
    for (uint64_t at = 0; at < whole_bytes; at += sizeof word, word += VRAM_PATTERN_STEP) {
        uint64_t found;
        memcpy(&found, bytes + at, sizeof found);
        if (found != word)
            return at + first_difference(bytes + at, word, sizeof word);
    }
    const uint64_t rest_bytes = size_bytes - whole_bytes;
    const uint64_t same_bytes = first_difference(bytes + whole_bytes, word, rest_bytes);
    return same_bytes < rest_bytes ? whole_bytes + same_bytes : UINT64_MAX;
}
