/* model.h - what the files of the caching model share. The picture is in model.c. */
#ifndef VRAM_CACHING_MODEL_H
#define VRAM_CACHING_MODEL_H

#include <vramlab/caching.h>

#define NONE ((uint32_t)VRAM_CACHING_NONE)

typedef vram_caching_block block;
typedef vram_caching_segment segment;

/* Another stream uses a block; once the block is released, an event stands for it. */
typedef struct stream_use {
    uint32_t slot;
    uint32_t stream;
    bool recorded; /* the block was released: the event is in the stream's queue */
    bool done;
} stream_use;

/* Half a pool: its small or its large side. */
typedef struct half_pool {
    uint32_t free_root;     /* FREE blocks by (stream, size, address) */
    uint32_t unmapped_root; /* UNMAPPED blocks by (stream, address) */
    uint64_t searches;      /* counted only while garbage collection is on */
    bool unused;            /* private, and its last user is gone */
} half_pool;

struct vram_caching {
    vram_caching_settings settings;
    vram_caching_driver driver;
    vram_caching_stats stats;
    block *blocks;
    size_t block_count, block_capacity;
    uint32_t vacant_block;  /* chain through `next` */
    uint32_t vacant_blocks; /* length of that chain */
    uint32_t pending;       /* list of PENDING blocks through `left` and `right` */
    stream_use *uses;       /* see events.c */
    size_t use_count, use_capacity;
    uint32_t random;
    half_pool *halves;
    size_t half_count, half_capacity;
    segment *segments;
    size_t segment_count, segment_capacity;
    uint32_t vacant_segment; /* chain through `first` */
};

/* ---- order.c: sets of blocks by (stream, size, address) ---- */

typedef struct order_key {
    uint32_t stream;
    uint64_t size_bytes; /* 0 in a set of UNMAPPED blocks */
    uint64_t address_bytes;
} order_key;

order_key caching_key_of(const block *b);
void caching_order_add(block *blocks, uint32_t *root, uint32_t slot);
void caching_order_remove(block *blocks, uint32_t *root, uint32_t slot);
/* The first block at or after the key, and the last before it; NONE when there is none. */
uint32_t caching_order_at_or_after(const block *blocks, uint32_t root, order_key key);
uint32_t caching_order_before(const block *blocks, uint32_t root, order_key key);
/* The next in order after this slot; the slot itself need not be in the set any more. */
uint32_t caching_order_after(const block *blocks, uint32_t root, order_key key);
uint32_t caching_order_first(const block *blocks, uint32_t root);

/* ---- model.c: blocks and segments ---- */

bool caching_reserve_blocks(vram_caching *self, size_t count);
/* A block between `previous` and what follows it; its slot must have been reserved. */
uint32_t caching_new_block(vram_caching *self, const block *like, uint64_t address_bytes,
                           uint64_t size_bytes, uint32_t previous);
/* Adds the block's upper part, from size_bytes on, as a block of its own in the same state. */
uint32_t caching_cut(vram_caching *self, uint32_t slot, uint64_t size_bytes);
/* Merges the free or unmapped block with its neighbours of the same state; returns the result. In
 * none of the sets before and after. */
uint32_t caching_merge(vram_caching *self, uint32_t slot);
void caching_put_free(vram_caching *self, uint32_t slot); /* into its free set, at a new age */
void caching_take_free(vram_caching *self, uint32_t slot);
bool caching_reserve_segment(vram_caching *self);
uint32_t caching_next_segment(const vram_caching *self); /* the index that it will have */
uint32_t caching_new_segment(vram_caching *self, const segment *s, vram_caching_state state);
void caching_drop_segment(vram_caching *self, uint32_t index); /* one block, in no set */
void caching_note_live(vram_caching *self, const block *b);
void caching_note_reserved(vram_caching *self, uint64_t more_bytes);

static inline bool caching_is_whole(const block *b)
{
    return b->previous == NONE && b->next == NONE;
}

static inline bool caching_is_expandable(const vram_caching *self, uint32_t slot)
{
    return self->segments[self->blocks[slot].segment].expandable;
}

static inline uint64_t caching_page_bytes(const vram_caching *self, bool small)
{
    return small ? VRAM_CACHING_SMALL_SEGMENT : self->settings.large_segment_bytes;
}

static inline uint64_t caching_round_up(uint64_t size_bytes, uint64_t multiple_bytes)
{
    return (size_bytes + multiple_bytes - 1) / multiple_bytes * multiple_bytes;
}

static inline bool caching_collects(const vram_caching *self)
{
    return self->settings.cap_bytes != VRAM_CACHING_UNLIMITED && self->settings.gc_threshold > 0;
}

/* What one allocation adds at most: a range, the rest of a mapped piece, the rest of a split. */
enum { CACHING_GROWTH_BLOCKS = 3 };

/* ---- events.c: blocks that other streams use ---- */

void caching_record_events(vram_caching *self, uint32_t slot);
void caching_poll_events(vram_caching *self);
void caching_finish_events(vram_caching *self); /* waits for all: nothing is pending then */

/* ---- grow.c: where a block comes from ---- */

typedef struct caching_plan {
    uint32_t half;
    uint32_t stream;
    uint64_t rounded_bytes;
    uint64_t segment_bytes;
} caching_plan;

/* Both take the block they return out of its set. */
uint32_t caching_search(vram_caching *self, const caching_plan *plan);
uint32_t caching_grow(vram_caching *self, const caching_plan *plan);

/* ---- release.c: giving memory back ---- */

void caching_release_all(vram_caching *self, bool default_pool_too);
bool caching_release_oversize(vram_caching *self, const caching_plan *plan);
void caching_collect_garbage(vram_caching *self);

#endif
