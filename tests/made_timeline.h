/*
 * made_timeline.h - timelines made by hand or at random, for the suites of timeline and pictures.
 */
#ifndef VRAMLAB_TESTS_MADE_TIMELINE_H
#define VRAMLAB_TESTS_MADE_TIMELINE_H

#include <vramlab/timeline.h>

/* A block of `size` requested and `granted` bytes at `offset`, as event number `event`. Returns its
 * number. All of these abort when the host is out of memory. */
uint32_t made_alloc(vram_timeline *timeline, uint32_t event, uint64_t offset, uint64_t size,
                    uint64_t granted);
void made_on_block(vram_timeline *timeline, vram_op_kind kind, uint32_t event, uint32_t block,
                   uint64_t offset);
void made_release(vram_timeline *timeline, uint32_t event, uint32_t block); /* that never moved */
void made_fail(vram_timeline *timeline, uint32_t event, uint64_t size, const char *reason);

/*
 * Adds to a timeline that has begun at least `ops` operations of every kind, blocks of up to
 * `most_bytes` placed at the lowest address that fits; roughly half the arena is live. Time jumps;
 * events are dense.
 */
void made_at_random(vram_timeline *timeline, uint64_t seed, size_t ops, uint64_t most_bytes);

/* The same, begun with names of its own. */
vram_timeline made_random_timeline(uint64_t seed, size_t ops, uint64_t arena_bytes,
                                   uint64_t most_bytes);

#endif
