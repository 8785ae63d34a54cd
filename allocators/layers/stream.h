/*
 * stream.h - the structure that stream.c describes, for it and stream_look.c. Not installed.
 */
#ifndef VRAMLAB_STREAM_H
#define VRAMLAB_STREAM_H

#include "core/offset_map.h"
#include "layers/lanes.h"
#include "layers/layer.h"

#define STREAM_NONE UINT32_MAX

typedef enum record_state { RECORD_UNUSED, RECORD_LIVE, RECORD_PENDING } record_state;

/* A stream that uses a block, and until where. */
typedef struct block_user {
    uint64_t mark; /* 0 while the block is live */
    uint32_t stream;
    uint32_t next; /* of the same block; unused ones are chained too */
} block_user;

typedef struct record {
    vram_block inner;
    uint64_t size_bytes; /* what was asked for, in units: the key of the pending lists */
    uint32_t generation;
    uint32_t users;         /* first of its users */
    uint32_t before, after; /* in its list; unused ones are chained by `after` */
    uint8_t state;          /* record_state */
    uint8_t align_log2;     /* of the request that it serves now */
} record;

typedef struct stream {
    vram_layer layer;
    lanes lanes;
    bool seen[LANES_MOST]; /* streams that have had a block */
    uint32_t seen_count;
    uint64_t floor[LANES_MOST]; /* marks that the inner backend's memory may be waiting for */
    bool follow, opportunistic, internal;
    vram_stream_hooks hooks;
    vram_offset_map by_offset; /* of inner blocks, to records */
    vram_offset_map by_size;   /* to the first pending record of the size */
    record *records;
    size_t record_capacity;
    uint32_t records_made, unused_record;
    block_user *users;
    size_t user_capacity;
    uint32_t users_made, unused_user;
    uint32_t generation;
    uint64_t live, pending, pending_bytes;
    uint64_t waits;
} stream;

static inline uint64_t stream_handle(const stream *self, uint32_t number)
{
    return (uint64_t)self->records[number].generation << 32 | number;
}

/* stream_look.c */
void stream_walk(const vram_backend *backend, vram_visit *visit, void *context);
bool stream_check(const vram_backend *backend, vram_fault *fault);
void stream_stats(const vram_backend *backend, vram_stats *out);
void stream_explain(const vram_backend *backend, const vram_request *request,
                    vram_failure *failure);

#endif
