/*
 * model.c - PyTorch's CUDA caching allocator: blocks, segments, malloc and free.
 *
 *   driver      | segment, 20 MiB                        |   | 2 MiB   |     one call each
 *   blocks      |#live#|..free..|#live#|~pending~|.free..|   |#|.......|     tile their segment
 *   free sets   large half:  (stream, size, address) ...     small half: ...
 *
 *   A pool is a small and a large half; 0 is the default pool, others belong to graph captures. A
 *   request is rounded, looked for in the free set of its half (best fit, lowest address), and
 * split if the rest is worth it; else a segment comes from the driver; else cached memory goes back
 *   first. With expandable segments a half grows inside one range of addresses for each stream,
 *   page by page; what is not mapped is a block of its own:
 *
 *   range       |#live#|..free..|#live#|      unmapped                              |
 *
 * I1  the blocks of a segment tile it, in address order; a segment that is no range has no
 *     unmapped block.
 * I2  no two neighbours are both free, or both unmapped.
 * I3  the free set of a half lists exactly its FREE blocks, in order; its unmapped set likewise.
 * I4  sizes and addresses are multiples of 512; live blocks are at least as large as requested.
 * I5  the list of pending blocks holds exactly the PENDING ones.
 * I6  the counters of bytes, blocks and segments are what the blocks add up to.
 *
 * alloc, free: O(log free blocks), plus the blocks that are given back. Host memory: 88 bytes a
 * block. check: O(blocks log blocks).
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(block) == 88, "the figure above");

/* ------------------------------------------------------------------------------------------------
 * creation */

vram_caching *vram_caching_create(const vram_caching_settings *settings,
                                  const vram_caching_driver *driver)
{
    vram_caching *self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->settings = *settings;
    self->driver = *driver;
    self->vacant_block = self->vacant_segment = self->pending = NONE;
    self->random = 2463534242u;
    self->stats.refused_bytes = UINT64_MAX;
    if (vram_caching_add_pool(self) == NONE) {
        vram_caching_destroy(self);
        return NULL;
    }
    return self;
}

void vram_caching_destroy(vram_caching *self)
{
    if (self == NULL)
        return;
    free(self->blocks);
    free(self->uses);
    free(self->halves);
    free(self->segments);
    free(self);
}

static void *copy_of(const void *bytes, size_t count, size_t element_bytes, bool *whole)
{
    void *copy = malloc(count * element_bytes + 1);
    if (copy == NULL)
        *whole = false;
    else if (count > 0)
        memcpy(copy, bytes, count * element_bytes);
    return copy;
}

vram_caching *vram_caching_clone(const vram_caching *self, const vram_caching_driver *driver)
{
    vram_caching *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return NULL;
    *copy = *self;
    copy->driver = *driver;
    copy->block_capacity = self->block_count;
    copy->half_capacity = self->half_count;
    copy->segment_capacity = self->segment_count;
    copy->use_capacity = self->use_count;
    bool whole = true;
    copy->blocks = copy_of(self->blocks, self->block_count, sizeof(block), &whole);
    copy->uses = copy_of(self->uses, self->use_count, sizeof(stream_use), &whole);
    copy->halves = copy_of(self->halves, self->half_count, sizeof(half_pool), &whole);
    copy->segments = copy_of(self->segments, self->segment_count, sizeof(segment), &whole);
    if (!whole) {
        vram_caching_destroy(copy);
        return NULL;
    }
    return copy;
}

uint32_t vram_caching_add_pool(vram_caching *self)
{
    if (!vram_reserve((void **)&self->halves, &self->half_capacity, self->half_count + 2,
                      sizeof(half_pool)))
        return NONE;
    for (int k = 0; k < 2; k++)
        self->halves[self->half_count++] = (half_pool){.free_root = NONE, .unmapped_root = NONE};
    return (uint32_t)(self->half_count / 2 - 1);
}

void vram_caching_pool_unused(vram_caching *self, uint32_t pool)
{
    self->halves[2 * pool].unused = true;
    self->halves[2 * pool + 1].unused = true;
}

/* ------------------------------------------------------------------------------------------------
 * slots of blocks and segments */

static uint32_t next_random(vram_caching *self)
{
    uint32_t x = self->random; /* xorshift32 */
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return self->random = x;
}

bool caching_reserve_blocks(vram_caching *self, size_t count)
{
    if (count <= self->vacant_blocks)
        return true;
    const size_t more = count - self->vacant_blocks;
    if (self->block_count + more >= NONE ||
        !vram_reserve((void **)&self->blocks, &self->block_capacity, self->block_count + more,
                      sizeof(block)))
        return false;
    for (size_t k = 0; k < more; k++) {
        const uint32_t slot = (uint32_t)self->block_count++;
        self->blocks[slot] = (block){.state = VRAM_CACHING_VACANT, .next = self->vacant_block};
        self->vacant_block = slot;
        self->vacant_blocks++;
    }
    return true;
}

static uint32_t take_slot(vram_caching *self)
{
    const uint32_t slot = self->vacant_block;
    self->vacant_block = self->blocks[slot].next;
    self->vacant_blocks--;
    self->stats.blocks++;
    return slot;
}

static void vacate_slot(vram_caching *self, uint32_t slot)
{
    self->blocks[slot].state = VRAM_CACHING_VACANT;
    self->blocks[slot].next = self->vacant_block;
    self->vacant_block = slot;
    self->vacant_blocks++;
    self->stats.blocks--;
}

uint32_t caching_new_block(vram_caching *self, const block *like, uint64_t address_bytes,
                           uint64_t size_bytes, uint32_t previous)
{
    const uint32_t slot = take_slot(self);
    block *b = &self->blocks[slot];
    const uint32_t generation = b->generation;
    const uint32_t next = previous == NONE ? NONE : self->blocks[previous].next;
    *b = (block){.address_bytes = address_bytes,
                 .size_bytes = size_bytes,
                 .stream = like->stream,
                 .segment = like->segment,
                 .previous = previous,
                 .next = next,
                 .generation = generation,
                 .state = like->state,
                 .half = like->half,
                 .priority = next_random(self)};
    if (previous != NONE)
        self->blocks[previous].next = slot;
    if (next != NONE)
        self->blocks[next].previous = slot;
    return slot;
}

uint32_t caching_cut(vram_caching *self, uint32_t slot, uint64_t size_bytes)
{
    const block whole = self->blocks[slot];
    self->blocks[slot].size_bytes = size_bytes;
    return caching_new_block(self, &whole, whole.address_bytes + size_bytes,
                             whole.size_bytes - size_bytes, slot);
}

bool caching_reserve_segment(vram_caching *self)
{
    return self->vacant_segment != NONE ||
           (self->segment_count < NONE &&
            vram_reserve((void **)&self->segments, &self->segment_capacity, self->segment_count + 1,
                         sizeof(segment)));
}

uint32_t caching_next_segment(const vram_caching *self)
{
    return self->vacant_segment != NONE ? self->vacant_segment : (uint32_t)self->segment_count;
}

uint32_t caching_new_segment(vram_caching *self, const segment *s, vram_caching_state state)
{
    const uint32_t index = caching_next_segment(self);
    if (self->vacant_segment != NONE)
        self->vacant_segment = self->segments[index].first;
    else
        self->segment_count++;
    self->segments[index] = *s;
    self->segments[index].index = index;
    self->segments[index].vacant = false;
    self->stats.segments++;
    const block like = {.stream = s->stream,
                        .segment = index,
                        .state = (uint8_t)state,
                        .half = 2 * s->pool + !s->small};
    const uint32_t slot = caching_new_block(self, &like, s->address_bytes, s->size_bytes, NONE);
    self->segments[index].first = slot;
    return slot;
}

void caching_drop_segment(vram_caching *self, uint32_t index)
{
    vacate_slot(self, self->segments[index].first);
    self->segments[index].vacant = true;
    self->segments[index].first = self->vacant_segment;
    self->vacant_segment = index;
    self->stats.segments--;
}

/* ------------------------------------------------------------------------------------------------
 * sets and counters */

void caching_put_free(vram_caching *self, uint32_t slot)
{
    block *b = &self->blocks[slot];
    b->state = VRAM_CACHING_FREE;
    b->cached_at = self->halves[b->half].searches;
    caching_order_add(self->blocks, &self->halves[b->half].free_root, slot);
}

void caching_take_free(vram_caching *self, uint32_t slot)
{
    caching_order_remove(self->blocks, &self->halves[self->blocks[slot].half].free_root, slot);
}

static void raise_peak(uint64_t *peak_bytes, uint64_t now_bytes)
{
    if (*peak_bytes < now_bytes)
        *peak_bytes = now_bytes;
}

void caching_note_reserved(vram_caching *self, uint64_t more_bytes)
{
    self->stats.reserved_bytes += more_bytes;
    raise_peak(&self->stats.reserved_peak_bytes, self->stats.reserved_bytes);
}

void caching_note_live(vram_caching *self, const block *b)
{
    vram_caching_stats *stats = &self->stats;
    stats->live_blocks++;
    stats->allocated_bytes += b->size_bytes;
    stats->active_bytes += b->size_bytes;
    stats->requested_bytes += b->requested_bytes;
    raise_peak(&stats->allocated_peak_bytes, stats->allocated_bytes);
    raise_peak(&stats->active_peak_bytes, stats->active_bytes);
    raise_peak(&stats->requested_peak_bytes, stats->requested_bytes);
}

static void note_released(vram_caching *self, const block *b)
{
    self->stats.live_blocks--;
    self->stats.allocated_bytes -= b->size_bytes;
}

static void list_pending(vram_caching *self, uint32_t slot)
{
    block *b = &self->blocks[slot];
    b->state = VRAM_CACHING_PENDING;
    b->left = NONE;
    b->right = self->pending;
    if (self->pending != NONE)
        self->blocks[self->pending].left = slot;
    self->pending = slot;
}

static void unlist_pending(vram_caching *self, uint32_t slot)
{
    const block *b = &self->blocks[slot];
    if (b->left != NONE)
        self->blocks[b->left].right = b->right;
    else
        self->pending = b->right;
    if (b->right != NONE)
        self->blocks[b->right].left = b->left;
}

/* ------------------------------------------------------------------------------------------------
 * malloc */

/* Is the rest beyond the request worth a block of its own? */
static bool should_split(const vram_caching *self, const block *b, uint64_t rounded_bytes)
{
    const uint64_t rest_bytes = b->size_bytes - rounded_bytes;
    const bool small = (b->half & 1u) == 0;
    if (small || self->settings.expandable)
        return rest_bytes >= VRAM_CACHING_MIN_BLOCK;
    return rounded_bytes < self->settings.max_split_bytes && rest_bytes > VRAM_CACHING_SMALL_MAX;
}

/* All that may serve, in PyTorch's order; the block is in no set then. */
static uint32_t find_block(vram_caching *self, const caching_plan *plan, bool capturing)
{
    uint32_t found = caching_search(self, plan);
    if (found == NONE && caching_collects(self))
        caching_collect_garbage(self);
    if (found == NONE)
        found = caching_grow(self, plan);
    if (found == NONE && self->settings.max_split_bytes != VRAM_CACHING_UNLIMITED &&
        caching_release_oversize(self, plan))
        found = caching_grow(self, plan);
    if (found == NONE && !capturing) {
        caching_release_all(self, true);
        if (self->settings.search_after_sync)
            found = caching_search(self, plan);
        if (found == NONE) {
            self->stats.retries++;
            found = caching_grow(self, plan);
        }
    }
    return found;
}

vram_result vram_caching_alloc(vram_caching *self, const vram_caching_ask *ask, uint32_t *slot)
{
    const uint64_t rounded_bytes = vram_caching_round(&self->settings, ask->size_bytes);
    const caching_plan plan = {
        .half = 2 * ask->pool + (rounded_bytes > VRAM_CACHING_SMALL_MAX),
        .stream = ask->stream,
        .rounded_bytes = rounded_bytes,
        .segment_bytes = vram_caching_segment_bytes(&self->settings, rounded_bytes),
    };
    if (!caching_reserve_blocks(self, CACHING_GROWTH_BLOCKS) || !caching_reserve_segment(self))
        return VRAM_NO_METADATA;
    if (!ask->capturing)
        caching_poll_events(self);
    const uint32_t found = find_block(self, &plan, ask->capturing);
    if (found == NONE) {
        self->stats.out_of_memory++;
        return VRAM_NO_SPACE;
    }
    if (should_split(self, &self->blocks[found], rounded_bytes))
        caching_put_free(self, caching_cut(self, found, rounded_bytes));
    block *b = &self->blocks[found];
    b->state = VRAM_CACHING_LIVE;
    b->requested_bytes = ask->size_bytes;
    b->cookie = 0;
    b->events = 0;
    b->generation = b->generation == UINT32_MAX ? 1 : b->generation + 1;
    caching_note_live(self, b);
    *slot = found;
    return VRAM_OK;
}

/* ------------------------------------------------------------------------------------------------
 * free */

/* Makes `upper`, the block right after `lower`, part of it. Neither is in a set. */
static void absorb(vram_caching *self, uint32_t lower, uint32_t upper)
{
    block *b = &self->blocks[lower];
    b->size_bytes += self->blocks[upper].size_bytes;
    b->next = self->blocks[upper].next;
    if (b->next != NONE)
        self->blocks[b->next].previous = lower;
    vacate_slot(self, upper);
}

static uint32_t *set_of(vram_caching *self, const block *b)
{
    half_pool *half = &self->halves[b->half];
    return b->state == VRAM_CACHING_FREE ? &half->free_root : &half->unmapped_root;
}

uint32_t caching_merge(vram_caching *self, uint32_t slot)
{
    block *blocks = self->blocks;
    const uint32_t before = blocks[slot].previous;
    const uint32_t after = blocks[slot].next;
    if (after != NONE && blocks[after].state == blocks[slot].state) {
        caching_order_remove(blocks, set_of(self, &blocks[after]), after);
        absorb(self, slot, after);
    }
    if (before != NONE && blocks[before].state == blocks[slot].state) {
        caching_order_remove(blocks, set_of(self, &blocks[before]), before);
        absorb(self, before, slot);
        return before;
    }
    return slot;
}

/* Nothing uses the block any more: it is cached. */
static void free_block(vram_caching *self, uint32_t slot)
{
    block *b = &self->blocks[slot];
    self->stats.active_bytes -= b->size_bytes;
    self->stats.requested_bytes -= b->requested_bytes;
    b->requested_bytes = 0;
    b->state = VRAM_CACHING_FREE;
    caching_put_free(self, caching_merge(self, slot));
}

void vram_caching_free(vram_caching *self, uint32_t slot)
{
    if (self->blocks[slot].events > 0) {
        vram_caching_free_later(self, slot);
        caching_record_events(self, slot);
        return;
    }
    note_released(self, &self->blocks[slot]);
    free_block(self, slot);
}

void vram_caching_free_later(vram_caching *self, uint32_t slot)
{
    note_released(self, &self->blocks[slot]);
    list_pending(self, slot);
}

void vram_caching_complete(vram_caching *self, uint32_t slot)
{
    unlist_pending(self, slot);
    free_block(self, slot);
}
