/*
 * pattern.h - what a verified block is filled with, for every kind of arena; not installed.
 */
#ifndef VRAMLAB_ARENA_PATTERN_H
#define VRAMLAB_ARENA_PATTERN_H

#include <stdint.h>

/* Writes the pattern of this seed from its beginning. */
void vram_pattern_fill(unsigned char *bytes, uint64_t size_bytes, uint64_t seed);

/* The first byte that is not as filled, or UINT64_MAX. */
uint64_t vram_pattern_compare(const unsigned char *bytes, uint64_t size_bytes, uint64_t seed);

#endif
