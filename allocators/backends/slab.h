/*
 * slab.h - the structure that slab.c describes, for it and slab_look.c.
 */
#ifndef VRAMLAB_SLAB_H
#define VRAMLAB_SLAB_H

#include "core/core.h"
#include "core/offset_map.h"

#define SLAB_LARGE_SLOT (UINT32_C(1) << 31) /* set in the slot of a block of the page layer */

enum {
    SLAB_OBJECTS_LEAST = 8, /* so that at most an eighth of a slab is needed for one object */
    SLAB_OBJECTS_MOST = 64, /* bits of a mask */
    SLAB_CLASSES_MOST = 51 * 8,
    SLAB_TABLE_UNITS = 4096, /* sizes whose class is looked up rather than computed */
};

/* One slab. Number 0 is none: a slab without free objects, at the end of every list. */
typedef struct slab_record {
    vram_block page; /* handle 0: this record is unused */
    uint64_t free_mask;
    uint64_t all_mask; /* as many bits as it has objects */
    uint64_t object_bytes;
    uint32_t class;
    uint32_t before;                         /* in its cache's list; not kept for the first */
    uint32_t after;                          /* unused records are chained by it too */
    uint32_t generations[SLAB_OBJECTS_MOST]; /* of live objects; 0 while free */
} slab_record;

typedef struct slab_cache {
    uint64_t object_bytes;
    uint64_t align_bytes; /* every object starts at a multiple of it */
    uint32_t partial;     /* first of the list, or 0 */
    uint32_t empty;
    uint32_t empty_count;
    uint32_t slab_count;
} slab_cache;

typedef struct slab {
    vram_backend head;
    vram_backend *pages;
    vram_offset_map by_offset; /* of slabs, to their numbers */
    slab_record *slabs;
    size_t slab_capacity;
    uint32_t slabs_made; /* records below it have been used */
    uint32_t unused;     /* first of the unused records, or 0 */
    uint32_t unit_log2;
    uint32_t step_log2;
    uint32_t empty_kept;
    uint32_t class_count;
    uint64_t target_bytes; /* of a slab */
    uint64_t large_bytes;
    uint64_t taken; /* objects given out and released until now; the difference is live */
    uint64_t given;
    uint64_t large_blocks;
    uint64_t object_bytes;                     /* of all objects of all slabs */
    uint64_t free_object_bytes;                /* of those that are free */
    uint64_t tail_bytes;                       /* at the ends of slabs */
    uint16_t class_by_units[SLAB_TABLE_UNITS]; /* by whole units in size - 1 */
    slab_cache caches[SLAB_CLASSES_MOST];
} slab;

/* The handle that callers know: the taking's number and the object's. */
static inline uint64_t slab_handle(uint32_t generation, uint32_t number, uint32_t object)
{
    return (uint64_t)generation << 32 | (number * SLAB_OBJECTS_MOST + object);
}

static inline uint64_t slab_objects(const slab_record *record)
{
    return (uint64_t)__builtin_popcountll(record->all_mask);
}

static inline uint64_t slab_live_objects(const slab *self)
{
    return self->taken - self->given;
}

/* slab_look.c */
void slab_walk(const vram_backend *backend, vram_visit *visit, void *context);
bool slab_check(const vram_backend *backend, vram_fault *fault);
void slab_stats(const vram_backend *backend, vram_stats *out);
void slab_explain(const vram_backend *backend, const vram_request *request, vram_failure *failure);

#endif
