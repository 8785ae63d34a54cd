/*
 * span_tree.h - free spans in search order: by address, or by size and then address.
 *
 *            (8)            a treap: a binary tree by the order, a heap by a hash of the span's
 *           /   \           number, so that it is balanced in expectation whatever the caller
 *        (3)     (9)        does and needs no word for it. Links are the `left` and `right` of a
 *       /   \               free span; a tree is the number of its root, 0 when it is empty.
 *     (1)   (5)
 *
 * A tree by address may also know the largest span under each one, so that the lowest that is large
 * enough is found without looking at the others.
 *
 * Every call: O(log spans) expected. Seidel and Aragon 1996; Stephenson 1983 kept free blocks in a
 * tree by address that is a heap by size.
 */
#ifndef VRAMLAB_SPAN_TREE_H
#define VRAMLAB_SPAN_TREE_H

#include "core/spans.h"

typedef struct span_order {
    spans *spans;
    bool by_address;
    bool knows_largest;        /* by address only */
    uint32_t *largest;         /* of each span, the largest under it, itself included */
    uint32_t largest_capacity; /* its length */
} span_order;

/* Brings `largest` to the table's length; call it after spans_reserve. False: out of host memory.
 */
bool span_order_reserve(span_order *self);

void span_tree_insert(const span_order *self, uint32_t *root, uint32_t number);
void span_tree_remove(const span_order *self, uint32_t *root, uint32_t number);

/* The ends of the order; 0 when the tree is empty. */
uint32_t span_tree_first(const span_order *self, uint32_t root);
uint32_t span_tree_last(const span_order *self, uint32_t root);

/* The first in the order that holds such a block, or 0. Linear only in the spans that are large
 * enough and yet too small for their own gap of alignment. */
uint32_t span_tree_smallest_fit(const span_order *self, uint32_t root, uint64_t size_bytes,
                                uint64_t align_bytes);
/* The same among those that end above from_bytes; for trees that know the largest. */
uint32_t span_tree_lowest_fit(const span_order *self, uint32_t root, uint64_t from_bytes,
                              uint64_t size_bytes, uint64_t align_bytes);

/* Adds what the tree holds to *found. False, with *fault saying where, when it is no such tree or
 * holds a span that does not belong there. */
bool span_tree_check(const span_order *self, uint32_t root,
                     bool (*belongs)(const void *context, const span *it), const void *context,
                     spans_free *found, vram_fault *fault);

#endif
