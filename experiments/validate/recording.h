/*
 * recording.h - one device's history, prepared for a replay. Not for users of validate.h.
 */
#ifndef VRAMLAB_VALIDATE_RECORDING_H
#define VRAMLAB_VALIDATE_RECORDING_H

#include "validate/validate.h"

#include "core/offset_map.h"

/* The life of one segment that is no range. */
typedef struct segment_life {
    uint64_t address, size_bytes;
    size_t born, died; /* index of its events; born 0 with `before`: there at the start */
    uint32_t stream;
    uint32_t pool; /* number in recording.pools; meaningless while unknown */
    uint32_t live; /* while inferring: blocks in use */
    bool before;
    bool known; /* the pool is known or settled */
    bool small;
} segment_life;

/* A gap behind a block that was there at the start: how much of it is the block's slack no event
 * tells. The free block in it is taken to begin at `start`; see recording_learn. */
typedef struct open_gap {
    uint64_t from, to;
    uint64_t start;
} open_gap;

typedef struct pool_id {
    uint64_t id[2];
} pool_id;

typedef struct recording {
    const vram_snapshot *snapshot;
    const vram_snapshot_event *events;
    size_t count;
    size_t first_event; /* in the device's whole history */
    uint32_t device;
    uint32_t *context_streams; /* number of the stream of each context */
    uint64_t *streams;         /* handles, sorted */
    size_t stream_count;
    pool_id *pools; /* [0] is the default one */
    size_t pool_count, pool_capacity;
    segment_life *lives; /* sorted by address, then birth */
    size_t life_count, life_capacity;
    open_gap *open_gaps;
    size_t open_gap_count, open_gap_capacity;
    vram_caching_settings settings;
    uint64_t reserved_bytes; /* when the history begins */
    uint64_t peak_reserved_bytes;
    size_t peak_event;                                  /* after which it was first reached */
    size_t first_oom;                                   /* SIZE_MAX: none */
    uint64_t reserved_least_bytes, refused_least_bytes; /* the bracket of the cap */
    uint64_t largest_segment_bytes;
    bool has_private_pools;
    uint64_t inferred_pools;
} recording;

bool recording_open(recording *self, const vram_snapshot *snapshot, const validate_options *options,
                    vram_error *error);
void recording_close(recording *self);

static inline uint32_t recording_stream(const recording *self, const vram_snapshot_event *event)
{
    return self->context_streams[event->context];
}
uint32_t recording_stream_number(const recording *self, uint64_t handle);

/* Segments of this device, in the file's order. */
bool recording_owns(const recording *self, const vram_snapshot_segment *segment);

static inline bool is_segment_event(const vram_snapshot_event *event)
{
    return event->action >= VRAM_SNAPSHOT_SEGMENT_ALLOC &&
           event->action <= VRAM_SNAPSHOT_SEGMENT_UNMAP;
}

/* The number of a pool, made known when it is new. VRAM_OFFSET_MAP_NONE: out of memory. */
uint32_t recording_pool(recording *self, const uint64_t id[2]);

/* The segment that has this address at this event; NULL when there is none (a range). */
segment_life *recording_life_at(const recording *self, uint64_t address, size_t event);

/* ---- replay.c ---- */

/* Replays up to this event, included, and shows the model, whose blocks have as their cookie the
 * event that allocated them + 1, or 0. False when it differs before, or look returns false. */
bool recording_look(recording *self, size_t event,
                    bool (*look)(void *context, const vram_caching *model), void *context,
                    vram_error *error);

/* ---- pools.c ---- */

/* Finds the lives of all segments, and the pools of those that the file tells or implies. */
bool recording_find_lives(recording *self); /* false: the host is out of memory */

/* ---- early.c ---- */

/* The model took the free block at this address for a request that PyTorch served elsewhere: if it
 * lies in an open gap, it must be smaller, and the rest is slack. True when that may be so; the
 * replay is worth another try then. */
bool recording_learn(recording *self, uint64_t address, uint64_t rounded_bytes);

/* ---- layout.c ---- */

/* Puts in place what was there when the history begins; `slots` gets the slot of each active
 * block by address. */
bool recording_start(recording *self, vram_caching *model, vram_offset_map *slots,
                     validate_report *report, vram_error *error);

#endif
