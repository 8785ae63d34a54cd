/*
 * buddy.h - the structure that buddy.c describes, for it and the two files beside it.
 */
#ifndef VRAMLAB_BUDDY_H
#define VRAMLAB_BUDDY_H

#include "core/span_tree.h"

enum { BUDDY_ORDERS = 51 }; /* an arena of 2^50 bytes with min = 1 */

typedef struct buddy_order {
    uint64_t lists;       /* a bit for each alignment whose list is not empty */
    uint64_t free_blocks; /* a run counts once */
} buddy_order;

typedef struct buddy {
    vram_backend head; /* unit_bytes is the smallest block */
    spans spans;
    span_order order;     /* place=low: how a list is a tree */
    uint64_t begin_bytes; /* of what may be handed out, in whole smallest blocks */
    uint64_t end_bytes;
    uint64_t max_bytes;   /* the largest block */
    uint64_t top_bytes;   /* requests of at least this are placed from the top */
    uint64_t bound_bytes; /* free in runs of more than one root */
    bool trim;
    bool by_address; /* place=low */
    uint32_t min_log2;
    uint32_t max_order;
    uint32_t alignments; /* lists an order */
    uint64_t orders;     /* a bit for each order that has a free block */
    buddy_order by_order[BUDDY_ORDERS];
    uint32_t heads[]; /* [order][alignment]: first of the list or root of the tree, 0: empty */
} buddy;

static inline uint32_t buddy_log2(uint64_t value)
{
    return 63 - (uint32_t)__builtin_clzll(value);
}

/* The least power of two that is not below. */
static inline uint64_t buddy_hull(uint64_t size_bytes)
{
    return size_bytes <= 1 ? 1 : UINT64_C(1) << (64 - __builtin_clzll(size_bytes - 1));
}

/* The order of a free block; every run has the largest. */
static inline uint32_t buddy_order_of(const buddy *self, uint64_t size_bytes)
{
    return size_bytes >= self->max_bytes ? self->max_order
                                         : buddy_log2(size_bytes) - self->min_log2;
}

/* By which power of two, in smallest blocks, an offset can be divided; offset 0 by the largest. */
static inline uint32_t buddy_alignment_of(const buddy *self, uint64_t offset_bytes)
{
    const uint64_t top = UINT64_C(1) << (self->min_log2 + self->alignments - 1);
    return (uint32_t)__builtin_ctzll(offset_bytes | top) - self->min_log2;
}

/* Bytes of the largest block, or run, that may start where this span does and ends within it. */
static inline uint64_t buddy_first_piece(const buddy *self, const span *it)
{
    const uint64_t offset_bytes = it->offset_bytes;
    const uint64_t aligned_bytes = offset_bytes & -offset_bytes; /* 0 at offset 0 */
    if (it->size_bytes >= self->max_bytes && (offset_bytes & (self->max_bytes - 1)) == 0)
        return it->size_bytes & -self->max_bytes;
    const uint64_t fits_bytes = UINT64_C(1) << buddy_log2(it->size_bytes);
    return aligned_bytes != 0 && aligned_bytes < fits_bytes ? aligned_bytes : fits_bytes;
}

/* vram_ops.check and .plan_moves */
bool buddy_check(const vram_backend *backend, vram_fault *fault);
size_t buddy_plan_moves(const vram_backend *backend, uint64_t budget_bytes, vram_move *moves,
                        size_t max_moves);

#endif
