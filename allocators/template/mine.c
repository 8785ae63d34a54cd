/*
 * mine.c - live blocks in an array, in address order; a request takes the first gap that fits it.
 *
 *   |###A###|......|####B####|..|##C##|....................|~~|     '#' live  '.' free  '~' padding
 *   0                                                   end  arena
 *
 * What lies between two blocks is free, and nothing is kept about it: nothing to split or merge.
 *
 * I1  blocks ascend, do not overlap, and end at or before `end`; all are whole units.
 * I2  granted_bytes is the sum of their sizes.
 *
 * alloc, release: O(blocks). Host memory: 24 bytes a live block, grown by doubling.
 */
#include <vramlab/backend.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct mine {
    vram_backend head; /* must come first */
    vram_block *live;  /* ascending by offset */
    size_t count, capacity;
    uint64_t end_bytes; /* the arena in whole units */
    uint64_t granted_bytes;
    uint64_t taken; /* blocks given out until now */
} mine;

static bool mine_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    const uint64_t unit_bytes = config->unit_bytes != 0 ? config->unit_bytes : 512;
    mine *self = calloc(1, sizeof *self);
    if (self == NULL) {
        if (error != NULL)
            snprintf(error->text, sizeof error->text, "mine: out of host memory");
        return false;
    }
    self->head.arena_bytes = config->arena_bytes;
    self->head.unit_bytes = unit_bytes;
    self->end_bytes = config->arena_bytes / unit_bytes * unit_bytes;
    *out = &self->head;
    return true;
}

static void mine_destroy(vram_backend *backend)
{
    mine *self = (mine *)backend;
    free(self->live);
    free(self);
}

/* Both alignments and units are powers of two. */
static uint64_t round_up(uint64_t bytes, uint64_t unit_bytes)
{
    return (bytes + unit_bytes - 1) & ~(unit_bytes - 1);
}

/* Where the gap in front of block i begins, and where it ends; i = count is the last gap. */
static uint64_t gap_start(const mine *self, size_t i)
{
    return i == 0 ? 0 : self->live[i - 1].offset_bytes + self->live[i - 1].granted_bytes;
}

static uint64_t gap_end(const mine *self, size_t i)
{
    return i == self->count ? self->end_bytes : self->live[i].offset_bytes;
}

static bool gap_fits(const mine *self, size_t i, uint64_t size_bytes, uint64_t align_bytes)
{
    const uint64_t start_bytes = round_up(gap_start(self, i), align_bytes);
    return start_bytes <= gap_end(self, i) && size_bytes <= gap_end(self, i) - start_bytes;
}

/* The gap that the request shall have; above count when none fits. */
static size_t choose(const mine *self, uint64_t size_bytes, uint64_t align_bytes)
{
    size_t i = 0;
    while (i <= self->count && !gap_fits(self, i, size_bytes, align_bytes))
        i++;
    return i;
}

static bool make_room(mine *self)
{
    if (self->count < self->capacity)
        return true;
    const size_t capacity = self->capacity == 0 ? 64 : 2 * self->capacity;
    vram_block *grown = realloc(self->live, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    self->live = grown;
    self->capacity = capacity;
    return true;
}

static vram_result mine_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    mine *self = (mine *)backend;
    const uint64_t size_bytes = round_up(request->size_bytes, backend->unit_bytes);
    const uint64_t align_bytes =
        request->align_bytes > backend->unit_bytes ? request->align_bytes : backend->unit_bytes;
    const size_t i = choose(self, size_bytes, align_bytes);
    if (i > self->count)
        return VRAM_NO_SPACE;
    if (!make_room(self))
        return VRAM_NO_METADATA;
    memmove(&self->live[i + 1], &self->live[i], (self->count - i) * sizeof *self->live);
    self->count++; /* gap_start below looks at i - 1 only */
    self->live[i] = (vram_block){
        .offset_bytes = round_up(gap_start(self, i), align_bytes),
        .granted_bytes = size_bytes,
        .handle = UINT64_C(1) << 62 | ++self->taken, /* never the same again, so never stale */
    };
    self->granted_bytes += size_bytes;
    *out = self->live[i];
    return VRAM_OK;
}

/* The first block that is not below the offset. */
static size_t find(const mine *self, uint64_t offset_bytes)
{
    size_t low = 0, high = self->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (self->live[middle].offset_bytes < offset_bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static vram_result mine_release(vram_backend *backend, vram_block block)
{
    mine *self = (mine *)backend;
    const size_t i = find(self, block.offset_bytes);
    if (i == self->count || self->live[i].handle != block.handle ||
        self->live[i].offset_bytes != block.offset_bytes)
        return VRAM_STALE_BLOCK;
    self->granted_bytes -= self->live[i].granted_bytes;
    self->count--;
    memmove(&self->live[i], &self->live[i + 1], (self->count - i) * sizeof *self->live);
    return VRAM_OK;
}

static void visit_span(vram_visit *visit, void *context, vram_span_kind kind, uint64_t from_bytes,
                       uint64_t to_bytes, uint64_t handle)
{
    const vram_span span = {.offset_bytes = from_bytes,
                            .size_bytes = to_bytes - from_bytes,
                            .block_bytes = to_bytes - from_bytes,
                            .handle = handle,
                            .kind = kind};
    if (from_bytes < to_bytes)
        visit(context, &span);
}

static void mine_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const mine *self = (const mine *)backend;
    for (size_t i = 0; i <= self->count; i++) {
        visit_span(visit, context, VRAM_SPAN_FREE, gap_start(self, i), gap_end(self, i), 0);
        if (i < self->count)
            visit_span(visit, context, VRAM_SPAN_LIVE, gap_end(self, i), gap_start(self, i + 1),
                       self->live[i].handle);
    }
    visit_span(visit, context, VRAM_SPAN_PADDING, self->end_bytes, backend->arena_bytes, 0);
}

static bool mine_check(const vram_backend *backend, vram_fault *fault)
{
    const mine *self = (const mine *)backend;
    uint64_t sum_bytes = 0;
    for (size_t i = 0; i < self->count; i++) {
        const vram_block *block = &self->live[i];
        const uint64_t misfit = (block->offset_bytes | block->granted_bytes) % backend->unit_bytes;
        if (misfit != 0 || block->granted_bytes == 0 || block->offset_bytes < gap_start(self, i) ||
            block->offset_bytes > self->end_bytes ||
            block->granted_bytes > self->end_bytes - block->offset_bytes) {
            *fault = (vram_fault){"I1 ascending", block->offset_bytes};
            return false;
        }
        sum_bytes += block->granted_bytes;
    }
    if (sum_bytes == self->granted_bytes)
        return true;
    *fault = (vram_fault){"I2 counted", 0};
    return false;
}

static void mine_stats(const vram_backend *backend, vram_stats *out)
{
    const mine *self = (const mine *)backend;
    *out = (vram_stats){
        .granted_bytes = self->granted_bytes,
        .free_bytes = self->end_bytes - self->granted_bytes,
        .padding_bytes = backend->arena_bytes - self->end_bytes,
        .live_blocks = self->count,
        .spans = self->count,
        .bookkeeping_bytes = sizeof *self + self->capacity * sizeof *self->live,
    };
}

const vram_ops vram_plugin = {
    .abi = VRAM_ABI,
    .name = "mine",
    .summary = "the first gap between live blocks that is large enough",
    .create = mine_create,
    .destroy = mine_destroy,
    .alloc = mine_alloc,
    .release = mine_release,
    .walk = mine_walk,
    .check = mine_check,
    .stats = mine_stats,
};
