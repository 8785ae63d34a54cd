/*
 * order.c - sets of blocks in the order (stream, size, address).
 *
 * A treap inside the blocks themselves: a search tree by key and a heap by the random priority that
 * each block got when it was made, so that the tree is balanced whatever the order of the calls.
 * A block is in at most one set, so two links and a priority serve all of them.
 *
 * Every call: O(log n) steps on average, no memory.
 */
#include "model.h"

order_key caching_key_of(const block *b)
{
    const bool unmapped = b->state == VRAM_CACHING_UNMAPPED;
    return (order_key){b->stream, unmapped ? 0 : b->size_bytes, b->address_bytes};
}

static bool is_before(order_key a, order_key b)
{
    if (a.stream != b.stream)
        return a.stream < b.stream;
    if (a.size_bytes != b.size_bytes)
        return a.size_bytes < b.size_bytes;
    return a.address_bytes < b.address_bytes;
}

/* Hangs the nodes before the key under *low and the others under *high. */
static void split(block *blocks, uint32_t root, order_key key, uint32_t *low, uint32_t *high)
{
    while (root != NONE) {
        if (is_before(caching_key_of(&blocks[root]), key)) {
            *low = root;
            low = &blocks[root].right;
            root = *low;
        } else {
            *high = root;
            high = &blocks[root].left;
            root = *high;
        }
    }
    *low = NONE;
    *high = NONE;
}

/* Joins two trees, all of `low` before all of `high`. */
static void join(block *blocks, uint32_t low, uint32_t high, uint32_t *root)
{
    while (low != NONE && high != NONE) {
        if (blocks[low].priority >= blocks[high].priority) {
            *root = low;
            root = &blocks[low].right;
            low = *root;
        } else {
            *root = high;
            root = &blocks[high].left;
            high = *root;
        }
    }
    *root = low != NONE ? low : high;
}

void caching_order_add(block *blocks, uint32_t *root, uint32_t slot)
{
    const order_key key = caching_key_of(&blocks[slot]);
    while (*root != NONE && blocks[*root].priority >= blocks[slot].priority)
        root = is_before(caching_key_of(&blocks[*root]), key) ? &blocks[*root].right
                                                              : &blocks[*root].left;
    const uint32_t below = *root;
    *root = slot;
    split(blocks, below, key, &blocks[slot].left, &blocks[slot].right);
}

void caching_order_remove(block *blocks, uint32_t *root, uint32_t slot)
{
    const order_key key = caching_key_of(&blocks[slot]);
    while (*root != slot)
        root = is_before(caching_key_of(&blocks[*root]), key) ? &blocks[*root].right
                                                              : &blocks[*root].left;
    join(blocks, blocks[slot].left, blocks[slot].right, root);
}

uint32_t caching_order_at_or_after(const block *blocks, uint32_t root, order_key key)
{
    uint32_t best = NONE;
    while (root != NONE) {
        const bool before = is_before(caching_key_of(&blocks[root]), key);
        best = before ? best : root;
        root = before ? blocks[root].right : blocks[root].left;
    }
    return best;
}

uint32_t caching_order_before(const block *blocks, uint32_t root, order_key key)
{
    uint32_t best = NONE;
    while (root != NONE) {
        const bool before = is_before(caching_key_of(&blocks[root]), key);
        best = before ? root : best;
        root = before ? blocks[root].right : blocks[root].left;
    }
    return best;
}

uint32_t caching_order_after(const block *blocks, uint32_t root, order_key key)
{
    key.address_bytes++; /* addresses are multiples of 512: no key lies between */
    return caching_order_at_or_after(blocks, root, key);
}

uint32_t caching_order_first(const block *blocks, uint32_t root)
{
    while (root != NONE && blocks[root].left != NONE)
        root = blocks[root].left;
    return root;
}
