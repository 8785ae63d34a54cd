/*
 * device_streams.h - real streams and events over a backend: are bytes ever reused too early?
 *
 *   stream 0   ..write A..|        |..write C (in A's bytes?)..
 *   stream 2              |..........busy......|..read A..        A was released long before
 *
 * Each round allocates a block on one of four streams, writes a pattern there, reads it on another
 * behind a kernel that takes its time, and releases the block at once, while all of that is queued.
 * A backend under the layer `stream` keeps the bytes until it is safe, or inserts a wait; without
 * it, reads find what a later round has written, which shows that the test can fail.
 */
#ifndef VRAMLAB_DEVICE_STREAMS_H
#define VRAMLAB_DEVICE_STREAMS_H

#include <vramlab/text.h>

typedef struct device_streams_result {
    uint64_t reads;                    /* patterns compared on the device */
    uint64_t stale;                    /* of them, those that found another byte */
    uint64_t refused;                  /* allocations */
    uint64_t waits, host_waits, polls; /* what the stack asked for */
} device_streams_result;

/* The stack over an arena of this size on the card. False with a message when it cannot run. */
bool device_streams_run(const char *spec, uint64_t arena_bytes, uint64_t rounds,
                        device_streams_result *result, vram_error *error);

#endif
