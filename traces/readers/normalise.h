/*
 * normalise.h - raw events made to fit the promises of vramlab/trace.h.
 *
 * N1  an id is live exactly once between its ALLOC and its FREE, and has one slot meanwhile.
 * N2  slots are dense: the one freed last is taken again first.
 * N3  sizes are at least 1, and all live bytes together stay below 2^62, so that no sum wraps.
 * N4  time does not run backwards, and starts at 0.
 * N5  what had to be changed to make N1 to N4 true is counted by the rules of vram_anomaly.
 *
 * O(1) an event. Memory: 24 to 48 bytes for each block live at once, and the ids freed (see
 * vram_idset) to tell a double free from an unknown one.
 */
#ifndef VRAMLAB_READERS_NORMALISE_H
#define VRAMLAB_READERS_NORMALISE_H

#include "reader.h"

enum { VRAM_NORMALISED_MAX = 2 };

typedef struct vram_normaliser {
    vram_idmap live; /* id -> slot */
    vram_idmap zero; /* id -> how many zero-size blocks bear it */
    vram_idset freed;
    uint64_t *slots;      /* by slot: the block's bytes, and whether it is retired */
    uint32_t *free_slots; /* a stack */
    size_t slot_count, slot_capacity, free_count, free_capacity;
    uint64_t live_bytes;
    uint64_t last_ns; /* by the file's clock */
    uint64_t raws;    /* events taken in */
    uint64_t emitted; /* events given out */
} vram_normaliser;

/* Turns one raw event into 0 to 2 events. False with a message on an anomaly under `strict`, on
 * sizes beyond N3, or when the host is out of memory. */
bool vram_normalise(vram_normaliser *normaliser, vram_source *source, const vram_raw *raw,
                    vram_event events[VRAM_NORMALISED_MAX], uint32_t *count, vram_error *error);
/* Back to the start; keeps the memory. */
void vram_normaliser_reset(vram_normaliser *normaliser);
void vram_normaliser_free(vram_normaliser *normaliser);

#endif
