/*
 * pattern.h - what a verified block is filled with, for every kind of arena; not installed.
 */
#ifndef VRAMLAB_ARENA_PATTERN_H
#define VRAMLAB_ARENA_PATTERN_H

#include <stdint.h>

/* The word at index i is vram_pattern_first(seed) + i * step. */
#define VRAM_PATTERN_STEP UINT64_C(0x9E3779B97F4A7C15) /* odd: 2^64 / golden ratio */
uint64_t vram_pattern_first(uint64_t seed);

/* Writes the pattern of this seed from its beginning. */
void vram_pattern_fill(unsigned char *bytes, uint64_t size_bytes, uint64_t seed);

/* The first byte that is not as filled, or UINT64_MAX. */
uint64_t vram_pattern_compare(const unsigned char *bytes, uint64_t size_bytes, uint64_t seed);

#endif
