/*
 * naive.c - the first pool that a course builds: one list of blocks, reused whole.
 *
 *   [ A live ][ B free ][ C live ][ D free ][ E live ]...........................
 *   0                                               cut                     arena
 *      list, newest first: E - D - C - B - A
 *
 * A request takes the first free block of the list that is large enough, whole; when there is none
 * it cuts a new one at `cut`. Nothing is split or merged, so a small request may sit in a large
 * block for ever. When the last live block goes, the list is emptied and cutting starts anew.
 *
 * I1  blocks tile the arena from 0 to cut, in the order of their numbers.
 * I2  the counters of stats equal the sums over the blocks.
 *
 * alloc: O(blocks). release: O(1). check: O(blocks). Host memory: 32 bytes a block.
 */
#include "core/core.h"

#include <stdlib.h>

typedef struct naive_block {
    uint64_t offset_bytes;
    uint64_t size_bytes;
    uint32_t generation; /* grows with every release; the handle's upper half */
    bool live;
} naive_block;

typedef struct naive {
    vram_backend head;
    naive_block *blocks; /* in address order; the list is searched from the newest */
    size_t count;
    size_t capacity;
    uint64_t cut_bytes;
    uint64_t granted_bytes;
    uint64_t live_blocks;
    uint32_t first_generation; /* for blocks cut from now on, so that handles of an emptied list
                                  stay stale */
} naive;

enum { NAIVE_UNIT };
static const vram_option naive_options[] = {
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
        return vram_fail(error, "out of host memory");
    self->head.arena_bytes = config->arena_bytes;
    self->head.unit_bytes = unit_bytes;
    self->first_generation = 1;
    *out = &self->head;
    return true;
}

static void naive_destroy(vram_backend *backend)
{
    naive *self = (naive *)backend;
    free(self->blocks);
    free(self);
}

static vram_block publish(naive *self, size_t index)
{
    naive_block *block = &self->blocks[index];
    block->live = true;
    self->granted_bytes += block->size_bytes;
    self->live_blocks++;
    return (vram_block){.offset_bytes = block->offset_bytes,
                        .granted_bytes = block->size_bytes,
                        .handle = (uint64_t)block->generation << 32 | index};
}

static vram_result naive_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    naive *self = (naive *)backend;
    const uint64_t size_bytes = vram_round_up(request->size_bytes, self->head.unit_bytes);
    for (size_t i = self->count; i-- > 0;) {
        const naive_block *block = &self->blocks[i];
        if (!block->live && block->size_bytes >= size_bytes &&
            block->offset_bytes % request->align_bytes == 0) {
            *out = publish(self, i);
            return VRAM_OK;
        }
    }
    const uint64_t start_bytes = vram_round_up(self->cut_bytes, request->align_bytes);
    if (start_bytes > self->head.arena_bytes || size_bytes > self->head.arena_bytes - start_bytes)
        return VRAM_NO_SPACE;
    if (!vram_reserve((void **)&self->blocks, &self->capacity, self->count + 2,
                      sizeof *self->blocks))
        return VRAM_NO_METADATA;
    if (start_bytes > self->cut_bytes) /* the gap of alignment is a free block like any other */
        self->blocks[self->count++] = (naive_block){.offset_bytes = self->cut_bytes,
                                                    .size_bytes = start_bytes - self->cut_bytes,
                                                    .generation = self->first_generation};
    self->blocks[self->count++] = (naive_block){.offset_bytes = start_bytes,
                                                .size_bytes = size_bytes,
                                                .generation = self->first_generation};
    self->cut_bytes = start_bytes + size_bytes;
    *out = publish(self, self->count - 1);
    return VRAM_OK;
}

static uint32_t next_generation(uint32_t generation)
{
    return generation == UINT32_MAX ? 1 : generation + 1;
}

static vram_result naive_release(vram_backend *backend, vram_block given)
{
    naive *self = (naive *)backend;
    const size_t index = (size_t)(given.handle & UINT32_MAX);
    if (index >= self->count || !self->blocks[index].live ||
        self->blocks[index].generation != given.handle >> 32)
        return VRAM_STALE_BLOCK;
    naive_block *block = &self->blocks[index];
    block->live = false;
    block->generation = next_generation(block->generation);
    if (block->generation > self->first_generation)
        self->first_generation = block->generation;
    self->granted_bytes -= block->size_bytes;
    self->live_blocks--;
    if (self->live_blocks == 0) {
        self->count = 0;
        self->cut_bytes = 0;
    }
    return VRAM_OK;
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
    const uint64_t left_bytes = self->head.arena_bytes - self->cut_bytes;
    if (left_bytes > 0)
        visit(context, &(vram_span){.offset_bytes = self->cut_bytes,
                                    .size_bytes = left_bytes,
                                    .block_bytes = left_bytes,
                                    .kind = VRAM_SPAN_FREE});
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
            block->size_bytes > self->head.arena_bytes - end_bytes)
            return vram_fault_at(fault, "I1 tiles", block->offset_bytes);
        end_bytes += block->size_bytes;
        granted_bytes += block->live ? block->size_bytes : 0;
        live_blocks += block->live;
    }
    if (end_bytes != self->cut_bytes)
        return vram_fault_at(fault, "I1 tiles", end_bytes);
    if (granted_bytes != self->granted_bytes || live_blocks != self->live_blocks)
        return vram_fault_at(fault, "I2 counted", 0);
    return true;
}

static void naive_stats(const vram_backend *backend, vram_stats *out)
{
    const naive *self = (const naive *)backend;
    *out = (vram_stats){.granted_bytes = self->granted_bytes,
                        .bound_bytes = self->cut_bytes - self->granted_bytes,
                        .free_bytes = self->head.arena_bytes - self->cut_bytes,
                        .live_blocks = self->live_blocks,
                        .spans = self->count,
                        .bookkeeping_bytes = sizeof *self + self->capacity * sizeof *self->blocks};
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
};
