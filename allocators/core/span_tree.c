/*
 * span_tree.c - a treap over free spans.
 */
#include "core/span_tree.h"

#include <stdlib.h>

static span *at(const span_order *self, uint32_t number)
{
    return &self->spans->at[number];
}

bool span_order_reserve(span_order *self)
{
    if (!self->knows_largest || self->largest_capacity >= self->spans->room)
        return true;
    uint32_t *grown = realloc(self->largest, self->spans->room * sizeof *grown);
    if (grown == NULL)
        return false;
    self->largest = grown;
    self->largest_capacity = self->spans->room;
    return true;
}

/* Mixes a number's bits so that neither runs nor strides of numbers make a lopsided tree. */
static uint32_t priority(uint32_t number)
{
    uint32_t mixed = number * UINT32_C(0x9e3779b1);
    mixed ^= mixed >> 15;
    mixed *= UINT32_C(0x85ebca77);
    return mixed ^ mixed >> 13;
}

static bool precedes(const span_order *self, const span *a, const span *b)
{
    if (!self->by_address && a->size_bytes != b->size_bytes)
        return a->size_bytes < b->size_bytes;
    return a->offset_bytes < b->offset_bytes;
}

/* The larger of two spans; the one at the lower address when they are equal. */
static uint32_t larger(const span_order *self, uint32_t a, uint32_t b)
{
    const span *one = at(self, a);
    const span *other = at(self, b);
    if (one->size_bytes != other->size_bytes)
        return one->size_bytes > other->size_bytes ? a : b;
    return one->offset_bytes < other->offset_bytes ? a : b;
}

/* The largest span under a tree's root as its children know it. */
static uint32_t largest_under(const span_order *self, uint32_t root)
{
    const span *it = at(self, root);
    uint32_t largest = it->left != 0 ? larger(self, self->largest[it->left], root) : root;
    if (it->right != 0)
        largest = larger(self, largest, self->largest[it->right]);
    return largest;
}

static void note_largest(const span_order *self, uint32_t root)
{
    if (self->knows_largest)
        self->largest[root] = largest_under(self, root);
}

/* Parts a tree into what precedes a span and what follows it. */
static void part(const span_order *self, uint32_t root, const span *pivot, uint32_t *low,
                 uint32_t *high)
{
    if (root == 0) {
        *low = *high = 0;
        return;
    }
    span *it = at(self, root);
    if (precedes(self, it, pivot)) {
        *low = root;
        part(self, it->right, pivot, &it->right, high);
    } else {
        *high = root;
        part(self, it->left, pivot, low, &it->left);
    }
    note_largest(self, root);
}

/* Makes one tree of two, all of `low` preceding all of `high`. */
static uint32_t joined(const span_order *self, uint32_t low, uint32_t high)
{
    if (low == 0 || high == 0)
        return low + high;
    const bool low_on_top = priority(low) > priority(high);
    const uint32_t root = low_on_top ? low : high;
    span *it = at(self, root);
    if (low_on_top)
        it->right = joined(self, it->right, high);
    else
        it->left = joined(self, low, it->left);
    note_largest(self, root);
    return root;
}

void span_tree_insert(const span_order *self, uint32_t *root, uint32_t number)
{
    span *it = at(self, number);
    const uint32_t own_priority = priority(number);
    uint32_t *link = root;
    while (*link != 0 && priority(*link) > own_priority) {
        span *parent = at(self, *link);
        const bool goes_left = precedes(self, it, parent);
        if (self->knows_largest)
            self->largest[*link] = larger(self, self->largest[*link], number);
        link = goes_left ? &parent->left : &parent->right;
    }
    part(self, *link, it, &it->left, &it->right);
    *link = number;
    note_largest(self, number);
}

void span_tree_remove(const span_order *self, uint32_t *root, uint32_t number)
{
    const uint32_t top = *root;
    const span *it = at(self, number);
    if (top == number) {
        *root = joined(self, it->left, it->right);
        return;
    }
    span *parent = at(self, top);
    span_tree_remove(self, precedes(self, it, parent) ? &parent->left : &parent->right, number);
    note_largest(self, top);
}

uint32_t span_tree_first(const span_order *self, uint32_t root)
{
    while (root != 0 && at(self, root)->left != 0)
        root = at(self, root)->left;
    return root;
}

uint32_t span_tree_last(const span_order *self, uint32_t root)
{
    while (root != 0 && at(self, root)->right != 0)
        root = at(self, root)->right;
    return root;
}

/* The first in the order that is large enough and holds the block at its alignment. */
static uint32_t first_aligned(const span_order *self, uint32_t root, uint64_t size_bytes,
                              uint64_t align_bytes)
{
    if (root == 0)
        return 0;
    const span *it = at(self, root);
    if (it->size_bytes >= size_bytes) {
        const uint32_t earlier = first_aligned(self, it->left, size_bytes, align_bytes);
        if (earlier != 0)
            return earlier;
        if (span_fits(it, size_bytes, align_bytes))
            return root;
    }
    return first_aligned(self, it->right, size_bytes, align_bytes);
}

uint32_t span_tree_smallest_fit(const span_order *self, uint32_t root, uint64_t size_bytes,
                                uint64_t align_bytes)
{
    uint32_t found = 0;
    for (uint32_t number = root; number != 0;) {
        const span *it = at(self, number);
        const bool large_enough = it->size_bytes >= size_bytes;
        found = large_enough ? number : found;
        number = large_enough ? it->left : it->right;
    }
    if (found == 0 || span_fits(at(self, found), size_bytes, align_bytes))
        return found;
    return first_aligned(self, root, size_bytes, align_bytes);
}

uint32_t span_tree_lowest_fit(const span_order *self, uint32_t root, uint64_t from_bytes,
                              uint64_t size_bytes, uint64_t align_bytes)
{
    if (root == 0 || at(self, self->largest[root])->size_bytes < size_bytes)
        return 0;
    const span *it = at(self, root);
    if (span_end(it) > from_bytes) {
        const uint32_t lower =
            span_tree_lowest_fit(self, it->left, from_bytes, size_bytes, align_bytes);
        if (lower != 0)
            return lower;
        if (span_fits(it, size_bytes, align_bytes))
            return root;
    }
    return span_tree_lowest_fit(self, it->right, from_bytes, size_bytes, align_bytes);
}

/* A walk over one tree that stops at the first fault. */
typedef struct tree_walk {
    const span_order *order;
    bool (*belongs)(const void *context, const span *it);
    const void *context;
    spans_free *found;
    vram_fault *fault;
    uint64_t spans_left; /* that may still be met: a damaged tree may have a cycle */
    const span *last;    /* met before, NULL at the first */
} tree_walk;

enum { DEEPEST = 1024 }; /* far beyond what a treap of 2^32 spans ever is */

static bool check_under(tree_walk *walk, uint32_t root, uint32_t depth)
{
    const span_order *order = walk->order;
    if (root == 0)
        return true;
    if (root >= order->spans->capacity || walk->spans_left-- == 0 || depth > DEEPEST)
        return vram_fault_at(walk->fault, "I6 listed", 0);
    const span *it = at(order, root);
    if (!span_is_free(it) || !walk->belongs(walk->context, it))
        return vram_fault_at(walk->fault, "I6 listed", it->offset_bytes);
    if (!check_under(walk, it->left, depth + 1))
        return false;
    if (walk->last != NULL && !precedes(order, walk->last, it))
        return vram_fault_at(walk->fault, "I7 ordered", it->offset_bytes);
    walk->last = it;
    walk->found->count++;
    walk->found->bytes += it->size_bytes;
    if (!check_under(walk, it->right, depth + 1))
        return false;
    if ((it->left != 0 && priority(it->left) > priority(root)) ||
        (it->right != 0 && priority(it->right) > priority(root)))
        return vram_fault_at(walk->fault, "I7 ordered", it->offset_bytes);
    if (order->knows_largest && order->largest[root] != largest_under(order, root))
        return vram_fault_at(walk->fault, "I8 largest", it->offset_bytes);
    return true;
}

bool span_tree_check(const span_order *self, uint32_t root,
                     bool (*belongs)(const void *context, const span *it), const void *context,
                     spans_free *found, vram_fault *fault)
{
    tree_walk walk = {.order = self,
                      .belongs = belongs,
                      .context = context,
                      .found = found,
                      .fault = fault,
                      .spans_left = spans_count(self->spans)};
    return check_under(&walk, root, 0);
}
