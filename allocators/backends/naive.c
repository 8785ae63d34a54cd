/*
 * naive.c - the first pool that a course builds: one list of blocks, reused whole.
 *
 *   [ A live ][ B free ][ C live ][ D free ][ E live ]...........................
 *   0                                               cut                     arena
 *
 *   bins=list   E - D - C - B - A            newest first, searched from its head
 *   bins=hash   size of B -> B               free blocks by their exact size
 *               size of D -> D
 *
 * A request takes a free block whole, the first that is large enough (list) or one of exactly its
 * size (hash); when there is none it cuts a new one at `cut`. Nothing is split or merged, so in the
 * list a small request may sit in a large block for ever. round=pow2 rounds sizes up to powers of
 * two, so that fewer sizes meet more blocks. When the last live block goes, the list is emptied and
 * cutting starts anew.
 *
 * I1  blocks tile the arena from 0 to cut, in the order of their numbers.
 * I2  bins=hash: each free block is in the list of its size, and no other block is in any.
 * I3  the counters of stats equal the sums over the blocks.
 *
 * alloc: O(blocks) with bins=list, as taught; O(1) with bins=hash, more only while blocks of the
 * size are not aligned as asked for. release: O(1). check: O(blocks). Host memory: 32 bytes a
 * block, with bins=hash up to 32 more for each size. The course, chapter 3.
 */
#include "core/core.h"
#include "core/offset_map.h"

#include <stdlib.h>

#define NO_BLOCK UINT32_MAX

typedef struct naive_block {
    uint64_t offset_bytes;
    uint64_t size_bytes;
    uint32_t generation; /* grows with every release; the handle's upper half */
    uint32_t next;       /* bins=hash, free: the next of its size */
    bool live;
} naive_block;

typedef struct naive {
    vram_backend head;
    naive_block *blocks; /* in address order; the list is searched from the newest */
    size_t count;
    size_t capacity;
    uint64_t end_bytes; /* the arena in whole units */
    uint64_t cut_bytes;
    uint64_t granted_bytes;
    uint64_t live_blocks;
    vram_offset_map bins;      /* bins=hash: from a size to the first free block of it */
    uint32_t first_generation; /* of new blocks: handles of an emptied list stay stale */
    bool hash, pow2;
} naive;

enum { NAIVE_BINS, NAIVE_ROUND, NAIVE_UNIT };
enum { BINS_LIST, BINS_HASH };
enum { ROUND_UNIT, ROUND_POW2 };

static const vram_option naive_options[] = {
    [NAIVE_BINS] = {.name = "bins",
                    .type = VRAM_OPTION_CHOICE,
                    .fallback = "list",
                    .choices = "list|hash",
                    .help = "how a free block is found: the first that is large enough, or by its "
                            "exact size"},
    [NAIVE_ROUND] = {.name = "round",
                     .type = VRAM_OPTION_CHOICE,
                     .fallback = "unit",
                     .choices = "unit|pow2",
                     .help = "what sizes are rounded up to: a multiple of the unit, or a power of "
                             "two"},
    [NAIVE_UNIT] = VRAM_UNIT_OPTION,
    {.name = NULL},
};

static bool naive_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    uint64_t unit_bytes = 0;
    if (!vram_unit_of(config, &config->values[NAIVE_UNIT], &unit_bytes, error))
        return false;
    naive *self = calloc(1, sizeof *self);
    if (self == NULL)
        return vram_fail(error, "naive: out of host memory");
    self->head.arena_bytes = config->arena_bytes;
    self->head.unit_bytes = unit_bytes;
    self->end_bytes = config->arena_bytes & -unit_bytes;
    self->hash = config->values[NAIVE_BINS].number == BINS_HASH;
    self->pow2 = config->values[NAIVE_ROUND].number == ROUND_POW2;
    self->first_generation = 1;
    *out = &self->head;
    return true;
}

static void naive_destroy(vram_backend *backend)
{
    naive *self = (naive *)backend;
    vram_offset_map_free(&self->bins);
    free(self->blocks);
    free(self);
}

static uint64_t rounded(const naive *self, uint64_t size_bytes)
{
    const uint64_t units_bytes = vram_round_up(size_bytes, self->head.unit_bytes);
    if (!self->pow2 || vram_is_power_of_two(units_bytes))
        return units_bytes;
    return UINT64_C(1) << (64 - __builtin_clzll(units_bytes));
}

/* ---- bins=hash: free blocks by their size; there is room for the entry ---- */

static void put_in_bin(naive *self, uint32_t number)
{
    naive_block *block = &self->blocks[number];
    block->next = vram_offset_map_find(&self->bins, block->size_bytes);
    if (block->next != VRAM_OFFSET_MAP_NONE)
        vram_offset_map_remove(&self->bins, block->size_bytes);
    vram_offset_map_put(&self->bins, block->size_bytes, number);
}

/* Takes the block behind `before` in its bin, or its first when before is NO_BLOCK. */
static void take_from_bin(naive *self, uint32_t before, uint32_t number)
{
    const naive_block *block = &self->blocks[number];
    if (before != NO_BLOCK) {
        self->blocks[before].next = block->next;
        return;
    }
    vram_offset_map_remove(&self->bins, block->size_bytes);
    if (block->next != NO_BLOCK)
        vram_offset_map_put(&self->bins, block->size_bytes, block->next);
}

static uint32_t find_in_bin(naive *self, uint64_t size_bytes, uint64_t align_bytes)
{
    uint32_t before = NO_BLOCK;
    uint32_t number = vram_offset_map_find(&self->bins, size_bytes);
    while (number != NO_BLOCK && (self->blocks[number].offset_bytes & (align_bytes - 1)) != 0) {
        before = number;
        number = self->blocks[number].next;
    }
    if (number != NO_BLOCK)
        take_from_bin(self, before, number);
    return number;
}

/* ---- bins=list ---- */

static uint32_t find_in_list(const naive *self, uint64_t size_bytes, uint64_t align_bytes)
{
    for (size_t i = self->count; i-- > 0;) {
        const naive_block *block = &self->blocks[i];
        if (!block->live && block->size_bytes >= size_bytes &&
            (block->offset_bytes & (align_bytes - 1)) == 0)
            return (uint32_t)i;
    }
    return NO_BLOCK;
}

/* ---- cutting ---- */

static void append(naive *self, uint64_t size_bytes)
{
    self->blocks[self->count++] = (naive_block){.offset_bytes = self->cut_bytes,
                                                .size_bytes = size_bytes,
                                                .generation = self->first_generation,
                                                .next = NO_BLOCK};
    self->cut_bytes += size_bytes;
}

/* Cuts a new block; the gap that its alignment leaves is a free block like any other. */
static vram_result cut(naive *self, uint64_t size_bytes, uint64_t align_bytes, uint32_t *number)
{
    const uint64_t start_bytes = vram_round_up(self->cut_bytes, align_bytes);
    const uint64_t gap_bytes = start_bytes - self->cut_bytes;
    if (start_bytes > self->end_bytes || size_bytes > self->end_bytes - start_bytes)
        return VRAM_NO_SPACE;
    if (self->count + 2 >= NO_BLOCK ||
        !vram_reserve((void **)&self->blocks, &self->capacity, self->count + 2,
                      sizeof *self->blocks) ||
        !vram_offset_map_reserve(&self->bins))
        return VRAM_NO_METADATA;
    if (gap_bytes > 0) {
        append(self, gap_bytes);
        if (self->hash)
            put_in_bin(self, (uint32_t)self->count - 1);
    }
    append(self, size_bytes);
    *number = (uint32_t)self->count - 1;
    return VRAM_OK;
}

static vram_block publish(naive *self, uint32_t number)
{
    naive_block *block = &self->blocks[number];
    block->live = true;
    self->granted_bytes += block->size_bytes;
    self->live_blocks++;
    return (vram_block){.offset_bytes = block->offset_bytes,
                        .granted_bytes = block->size_bytes,
                        .handle = (uint64_t)block->generation << 32 | number};
}

static vram_result naive_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    naive *self = (naive *)backend;
    const uint64_t size_bytes = rounded(self, request->size_bytes);
    uint32_t number = self->hash ? find_in_bin(self, size_bytes, request->align_bytes)
                                 : find_in_list(self, size_bytes, request->align_bytes);
    if (number == NO_BLOCK) {
        const vram_result result = cut(self, size_bytes, request->align_bytes, &number);
        if (result != VRAM_OK)
            return result;
    }
    *out = publish(self, number);
    return VRAM_OK;
}

/* ---- release ---- */

static uint32_t next_generation(uint32_t generation)
{
    return generation == UINT32_MAX ? 1 : generation + 1;
}

/* The number of a live block, or NO_BLOCK when the block is stale. */
static uint32_t look_up(const naive *self, vram_block given)
{
    const uint32_t number = (uint32_t)given.handle;
    return number < self->count && self->blocks[number].live &&
                   self->blocks[number].generation == given.handle >> 32 &&
                   self->blocks[number].offset_bytes == given.offset_bytes
               ? number
               : NO_BLOCK;
}

static void forget_all(naive *self)
{
    self->count = 0;
    self->cut_bytes = 0;
    vram_offset_map_clear(&self->bins);
}

static vram_result naive_release(vram_backend *backend, vram_block given)
{
    naive *self = (naive *)backend;
    const uint32_t number = look_up(self, given);
    if (number == NO_BLOCK)
        return VRAM_STALE_BLOCK;
    if (self->hash && !vram_offset_map_reserve(&self->bins))
        return VRAM_NO_METADATA;
    naive_block *block = &self->blocks[number];
    block->live = false;
    block->generation = next_generation(block->generation);
    if (block->generation > self->first_generation)
        self->first_generation = block->generation;
    self->granted_bytes -= block->size_bytes;
    self->live_blocks--;
    if (self->live_blocks == 0)
        forget_all(self);
    else if (self->hash)
        put_in_bin(self, number);
    return VRAM_OK;
}

/* A block is what it is: a resize succeeds while it is large enough. */
static vram_result naive_resize(vram_backend *backend, vram_block *block, uint64_t size_bytes)
{
    const naive *self = (const naive *)backend;
    const uint32_t number = look_up(self, *block);
    if (number == NO_BLOCK)
        return VRAM_STALE_BLOCK;
    return size_bytes <= self->blocks[number].size_bytes ? VRAM_OK : VRAM_NO_SPACE;
}

/* ---- walk, check, stats ---- */

static void visit_rest(uint64_t from_bytes, uint64_t to_bytes, vram_span_kind kind,
                       vram_visit *visit, void *context)
{
    if (from_bytes < to_bytes)
        visit(context, &(vram_span){.offset_bytes = from_bytes,
                                    .size_bytes = to_bytes - from_bytes,
                                    .block_bytes = to_bytes - from_bytes,
                                    .kind = kind});
}

static void naive_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const naive *self = (const naive *)backend;
    for (size_t i = 0; i < self->count; i++) {
        const naive_block *block = &self->blocks[i];
        visit(context,
              &(vram_span){.offset_bytes = block->offset_bytes,
                           .size_bytes = block->size_bytes,
                           .block_bytes = block->size_bytes,
                           .handle = block->live ? (uint64_t)block->generation << 32 | i : 0,
                           .kind = block->live ? VRAM_SPAN_LIVE : VRAM_SPAN_BOUND});
    }
    visit_rest(self->cut_bytes, self->end_bytes, VRAM_SPAN_FREE, visit, context);
    visit_rest(self->end_bytes, self->head.arena_bytes, VRAM_SPAN_PADDING, visit, context);
}

/* I2: every free block is met by following its bin, and the bins hold no more than those. */
static bool bins_are_sound(const naive *self, vram_fault *fault)
{
    size_t free_blocks = 0;
    size_t listed = 0;
    for (size_t i = 0; i < self->count; i++) {
        const naive_block *block = &self->blocks[i];
        free_blocks += !block->live;
        if (block->live || vram_offset_map_find(&self->bins, block->size_bytes) != (uint32_t)i)
            continue; /* counted from the first block of its bin */
        for (uint32_t at = (uint32_t)i; at != NO_BLOCK; at = self->blocks[at].next)
            if (at >= self->count || self->blocks[at].live ||
                self->blocks[at].size_bytes != block->size_bytes || listed++ >= self->count)
                return vram_fault_at(fault, "I2 binned", block->offset_bytes);
    }
    return listed == free_blocks || vram_fault_at(fault, "I2 binned", 0);
}

static bool naive_check(const vram_backend *backend, vram_fault *fault)
{
    const naive *self = (const naive *)backend;
    uint64_t end_bytes = 0;
    uint64_t granted_bytes = 0;
    uint64_t live_blocks = 0;
    for (size_t i = 0; i < self->count; i++) {
        const naive_block *block = &self->blocks[i];
        if (block->offset_bytes != end_bytes || block->size_bytes == 0 ||
            block->size_bytes > self->end_bytes - end_bytes)
            return vram_fault_at(fault, "I1 tiled", block->offset_bytes);
        end_bytes += block->size_bytes;
        granted_bytes += block->live ? block->size_bytes : 0;
        live_blocks += block->live;
    }
    if (end_bytes != self->cut_bytes)
        return vram_fault_at(fault, "I1 tiled", end_bytes);
    if (self->hash && !bins_are_sound(self, fault))
        return false;
    if (granted_bytes != self->granted_bytes || live_blocks != self->live_blocks)
        return vram_fault_at(fault, "I3 counted", 0);
    return true;
}

static void naive_stats(const vram_backend *backend, vram_stats *out)
{
    const naive *self = (const naive *)backend;
    *out = (vram_stats){.granted_bytes = self->granted_bytes,
                        .bound_bytes = self->cut_bytes - self->granted_bytes,
                        .free_bytes = self->end_bytes - self->cut_bytes,
                        .padding_bytes = self->head.arena_bytes - self->end_bytes,
                        .live_blocks = self->live_blocks,
                        .spans = self->count,
                        .bookkeeping_bytes = sizeof *self + self->capacity * sizeof *self->blocks +
                                             self->bins.capacity * sizeof *self->bins.entries};
}

/* The largest request that such a free stretch serves: rounded up it must not exceed it. */
static uint64_t most_served(const naive *self, uint64_t free_bytes)
{
    if (!self->pow2 || free_bytes == 0 || vram_is_power_of_two(free_bytes))
        return free_bytes;
    return UINT64_C(1) << (63 - __builtin_clzll(free_bytes));
}

/* A block in a bin serves only its own size, and after rounding there may be no such request. */
static void naive_explain(const vram_backend *backend, const vram_request *request,
                          vram_failure *failure)
{
    const naive *self = (const naive *)backend;
    if (failure->reason == VRAM_REASON_FRAGMENTED &&
        request->size_bytes <= failure->largest_free_bytes)
        failure->reason = VRAM_REASON_CLASS_FULL;
    failure->largest_free_bytes = most_served(self, self->end_bytes - self->cut_bytes);
    for (size_t i = 0; i < self->count; i++) {
        const uint64_t size_bytes = self->blocks[i].size_bytes;
        const uint64_t served_bytes = most_served(self, size_bytes);
        if (!self->blocks[i].live && (!self->hash || served_bytes == size_bytes) &&
            served_bytes > failure->largest_free_bytes)
            failure->largest_free_bytes = served_bytes;
    }
}

const vram_ops vram_naive_ops = {
    .abi = VRAM_ABI,
    .name = "naive",
    .summary = "one list, whole blocks reused, never split or merged (the course's first pool)",
    .options = naive_options,
    .create = naive_create,
    .destroy = naive_destroy,
    .alloc = naive_alloc,
    .release = naive_release,
    .walk = naive_walk,
    .check = naive_check,
    .stats = naive_stats,
    .explain = naive_explain,
    .resize = naive_resize,
};
