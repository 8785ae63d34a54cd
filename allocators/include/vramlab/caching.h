/*
 * vramlab/caching.h - PyTorch's CUDA caching allocator as a decision model, without any memory.
 *
 *     vram_caching *model = vram_caching_create(&settings, &driver);
 *     vram_caching_alloc(model, &(vram_caching_ask){.size_bytes = 3456, .stream = 0}, &slot);
 *     vram_caching_at(model, slot)->address_bytes ...
 *     vram_caching_free(model, slot);
 *
 * It decides what PyTorch decides: which cached block serves a request, when a block is split or
 * merged, when a segment is taken from the driver or given back, when it runs out. Where segments
 * lie is the driver's answer, a table of calls below; so the same model stands on the arena of a
 * backend (`caching`) and on the addresses of a recording (`vramlab validate`).
 *
 * Rules and constants: PyTorch 2.11 source, c10/cuda/CUDACachingAllocator.cpp.
 */
#ifndef VRAMLAB_CACHING_H
#define VRAMLAB_CACHING_H

#include <vramlab/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VRAM_CACHING_MIN_BLOCK     UINT64_C(512)        /* every size is a multiple of it */
#define VRAM_CACHING_SMALL_MAX     (UINT64_C(1) << 20)  /* rounded requests up to it are small */
#define VRAM_CACHING_SMALL_SEGMENT (UINT64_C(2) << 20)  /* a segment of the small pool */
#define VRAM_CACHING_MIN_LARGE     (UINT64_C(10) << 20) /* from here a segment of its own ... */
#define VRAM_CACHING_ROUND_LARGE   (UINT64_C(2) << 20)  /* ... rounded up to a multiple of this */
#define VRAM_CACHING_UNLIMITED     UINT64_MAX

enum { VRAM_CACHING_INTERVALS = 16 }; /* powers of two from 1 MiB to 32 GiB and above */

/* What PYTORCH_ALLOC_CONF and the memory fraction set. */
typedef struct vram_caching_settings {
    uint64_t cap_bytes;       /* memory fraction times the card; UNLIMITED: no fraction was set */
    uint64_t device_bytes;    /* the card: an expandable range spans 9/8 of it */
    uint64_t max_split_bytes; /* max_split_size; UNLIMITED: none */
    uint64_t max_non_split_rounding_bytes;
    uint64_t large_segment_bytes;
    uint32_t roundup_divisions[VRAM_CACHING_INTERVALS]; /* 0 and 1: multiples of 512 */
    double gc_threshold;                                /* share of the cap; 0: no collection */
    bool expandable;
    bool search_after_sync; /* look again after waiting for events; PyTorch up to 2.13 does not */
} vram_caching_settings;

/* PyTorch's defaults, on a card of this size. */
vram_caching_settings vram_caching_defaults(uint64_t device_bytes);

/* `roundup_power2_divisions`: "4", or "256:1,512:2,>:8" with ':' or '=' and ',' or '/'. */
bool vram_caching_parse_divisions(const char *text, uint32_t divisions[VRAM_CACHING_INTERVALS],
                                  vram_error *error);

/* The size of the block that serves a request, before any slack that is not split off. */
uint64_t vram_caching_round(const vram_caching_settings *settings, uint64_t size_bytes);
/* What is asked of the driver when no cached block serves a request of this rounded size. */
uint64_t vram_caching_segment_bytes(const vram_caching_settings *settings, uint64_t rounded_bytes);

/* One allocation of the driver, or one range of addresses into which pages are mapped. */
typedef struct vram_caching_segment {
    uint64_t address_bytes;
    uint64_t size_bytes;
    uint64_t cookie; /* the driver's own note */
    uint32_t index;  /* of this entry in the table of segments */
    uint32_t stream;
    uint32_t pool;  /* 0 the default one, else as vram_caching_add_pool gave it */
    uint32_t first; /* slot of the block at its start; the others follow by `next` */
    bool small;
    bool expandable; /* a range with pages; otherwise all of it is memory */
    bool vacant;     /* this entry of the table is not in use */
} vram_caching_segment;

/* The memory underneath. Each call sees the segment; take and reserve fill its address (distinct
 * from every other one's) and cookie. False: the driver is out of memory, or of addresses. */
typedef struct vram_caching_driver {
    void *context;
    bool (*take)(void *context, vram_caching_segment *segment);
    void (*give_back)(void *context, const vram_caching_segment *segment);
    /* The four below may be NULL when settings.expandable is never set. */
    bool (*reserve)(void *context, vram_caching_segment *segment);
    void (*unreserve)(void *context, const vram_caching_segment *segment);
    bool (*map)(void *context, const vram_caching_segment *segment, uint64_t address_bytes,
                uint64_t size_bytes);
    void (*unmap)(void *context, const vram_caching_segment *segment, uint64_t address_bytes,
                  uint64_t size_bytes);
} vram_caching_driver;

typedef enum vram_caching_state {
    VRAM_CACHING_VACANT,   /* no block has this slot */
    VRAM_CACHING_FREE,     /* cached, in its pool's free set */
    VRAM_CACHING_LIVE,     /* given out */
    VRAM_CACHING_PENDING,  /* released, but events on other streams are outstanding */
    VRAM_CACHING_UNMAPPED, /* addresses of an expandable range with no memory behind them */
} vram_caching_state;

enum { VRAM_CACHING_NONE = UINT32_MAX };

/* A slice of a segment. Fields below the line are the model's own. */
typedef struct vram_caching_block {
    uint64_t address_bytes;
    uint64_t size_bytes;
    uint64_t requested_bytes; /* LIVE and PENDING */
    uint64_t cookie;          /* the user's own note, 0 when given out */
    uint32_t stream;          /* the order of streams is the order of their handles */
    uint32_t segment;
    uint32_t previous, next; /* neighbours in the segment, or VRAM_CACHING_NONE */
    uint32_t generation;     /* grows each time the slot is given out; never 0 then */
    uint32_t events;         /* streams that use it too and whose events are outstanding */
    uint8_t state;           /* vram_caching_state */
    /* ---- */
    uint32_t half; /* pool * 2, + 1 when large */
    uint32_t priority, left, right;
    uint64_t cached_at; /* number of searches of its pool when it was put into the free set */
} vram_caching_block;

/* As torch.cuda.memory_stats counts them. */
typedef struct vram_caching_stats {
    uint64_t reserved_bytes, reserved_peak_bytes;
    uint64_t allocated_bytes, allocated_peak_bytes; /* LIVE, with slack */
    uint64_t active_bytes, active_peak_bytes;       /* LIVE and PENDING */
    uint64_t requested_bytes, requested_peak_bytes; /* LIVE and PENDING, as requested */
    uint64_t live_blocks, blocks, segments;
    uint64_t retries;        /* num_alloc_retries */
    uint64_t out_of_memory;  /* num_ooms */
    uint64_t syncs;          /* num_sync_all_streams */
    uint64_t driver_takes;   /* num_device_alloc */
    uint64_t driver_returns; /* num_device_free */
    uint64_t refused_bytes;  /* the least reserved + asked that the cap or the driver refused */
} vram_caching_stats;

typedef struct vram_caching vram_caching;

/* NULL when the host is out of memory. */
vram_caching *vram_caching_create(const vram_caching_settings *settings,
                                  const vram_caching_driver *driver);
/* A copy that goes its own way, on another driver that must answer as the first did. */
vram_caching *vram_caching_clone(const vram_caching *self, const vram_caching_driver *driver);
void vram_caching_destroy(vram_caching *self); /* gives nothing back to the driver; NULL allowed */

typedef struct vram_caching_ask {
    uint64_t size_bytes; /* at least 1 */
    uint32_t stream;
    uint32_t pool;  /* 0: the default one */
    bool capturing; /* a graph is being captured: cached memory is not released to make room */
} vram_caching_ask;

/* VRAM_OK and *slot, VRAM_NO_SPACE as PyTorch would raise OutOfMemoryError, or VRAM_NO_METADATA. */
vram_result vram_caching_alloc(vram_caching *self, const vram_caching_ask *ask, uint32_t *slot);
/* Releases a LIVE block: it becomes PENDING when other streams use it, else FREE at once. */
void vram_caching_free(vram_caching *self, uint32_t slot);

/* record_stream: the LIVE block is used by that stream too. VRAM_OK or VRAM_NO_METADATA. */
vram_result vram_caching_use(vram_caching *self, uint32_t slot, uint32_t stream);
/* All that the stream (UINT32_MAX: every stream) was given so far is done: blocks whose last event
 * that was become free with the next allocation outside a capture, which is when PyTorch looks. */
void vram_caching_sync(vram_caching *self, uint32_t stream);

/* For a user who knows better when events complete: releases a LIVE block, which becomes PENDING
 * whatever streams use it, and ends that. */
void vram_caching_free_later(vram_caching *self, uint32_t slot);
void vram_caching_complete(vram_caching *self, uint32_t slot);
/* torch.cuda.empty_cache(). Returns the bytes given back. */
uint64_t vram_caching_empty_cache(vram_caching *self);

/* A private pool, as graph captures use. VRAM_CACHING_NONE when the host is out of memory. */
uint32_t vram_caching_add_pool(vram_caching *self);
/* Its last user is gone: the next empty_cache gives its memory back. */
void vram_caching_pool_unused(vram_caching *self, uint32_t pool);

/* A stretch of a segment that existed before the model began. */
typedef struct vram_caching_piece {
    uint64_t size_bytes;
    uint64_t requested_bytes;
    vram_caching_state state;
} vram_caching_piece;

/* Puts a segment with its blocks in place, without asking the driver. slots (may be NULL) gets the
 * slot of each piece. False when the host is out of memory. */
bool vram_caching_adopt(vram_caching *self, const vram_caching_segment *segment,
                        const vram_caching_piece *pieces, size_t count, uint32_t *slots);

/* Sets the block's cookie. */
void vram_caching_note(vram_caching *self, uint32_t slot, uint64_t cookie);

/* The largest cached block of the default pool that this stream may have. */
uint64_t vram_caching_largest_free(const vram_caching *self, uint32_t stream);

/* Valid until the next call that is not const. The slot must be below vram_caching_slots. */
const vram_caching_block *vram_caching_at(const vram_caching *self, uint32_t slot);
uint32_t vram_caching_slots(const vram_caching *self);
/* The table of segments, vacant entries included; NULL beyond its end. */
const vram_caching_segment *vram_caching_segment_at(const vram_caching *self, uint32_t index);
const vram_caching_stats *vram_caching_stats_of(const vram_caching *self);
const vram_caching_settings *vram_caching_settings_of(const vram_caching *self);
uint64_t vram_caching_host_bytes(const vram_caching *self); /* of bookkeeping, capacity included */

/* The invariants listed in backends/caching/model.c; false and *fault for the first broken one. */
bool vram_caching_check(const vram_caching *self, vram_fault *fault);

#ifdef __cplusplus
}
#endif
#endif
