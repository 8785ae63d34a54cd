/*
 * span_tree.h - free spans in search order: by address, or by size and then address.
 *
 *            (8)            a treap: a binary tree by the order, a heap by a hash of the span's
 *           /   \           number, so that it is balanced in expectation whatever the caller
 *        (3)     (9)        does and needs no word for it. Links are the `left` and `right` of a
 *       /   \               free span; a tree is the number of its root, 0 when it is empty.
 *     (1)   (5)
 *
 * A tree by address also knows the largest span under each one, so that the lowest that is large
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
    uint32_t *largest; /* by address: the largest span under each, itself included; else NULL */
    uint32_t largest_capacity; /* its length */
    bool by_address;
} span_order;

/* Brings `largest` to the table's length; call it after spans_reserve. False: out of host memory.
 */
bool span_order_reserve(span_order *self);

void span_tree_insert(const span_order *self, uint32_t *root, uint32_t number);
void span_tree_remove(const span_order *self, uint32_t *root, uint32_t number);

/* The first in the order that holds such a block, or 0. Linear only in the spans that are large
 * enough and yet too small for their own gap of alignment. */
uint32_t span_tree_smallest_fit(const span_order *self, uint32_t root, uint64_t size_bytes,
                                uint64_t align_bytes);
/* By address only: the same among those that end above from_bytes. */
uint32_t span_tree_lowest_fit(const span_order *self, uint32_t root, uint64_t from_bytes,
                              uint64_t size_bytes, uint64_t align_bytes);

/* Adds what the tree holds to *found. False, with *fault saying where, when it is no such tree. */
bool span_tree_check(const span_order *self, uint32_t root, spans_free *found, vram_fault *fault);

#endif
