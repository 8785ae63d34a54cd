/* slider.c - blocks in an array ordered by address; compaction slides each down to the end of the
 * one before it. */
#include "slider.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 64 };

typedef struct slider {
    vram_backend head;
    vram_block blocks[BLOCKS]; /* in address order */
    size_t count;
    uint64_t handles;
    slider_fault fault;
} slider;

static void slider_destroy(vram_backend *backend)
{
    free(backend);
}

static uint64_t end_of(const vram_block *block)
{
    return block->offset_bytes + block->granted_bytes;
}

static uint64_t rounded(const slider *self, uint64_t size_bytes)
{
    return (size_bytes + self->head.unit_bytes - 1) / self->head.unit_bytes * self->head.unit_bytes;
}

static vram_result slider_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    slider *self = (slider *)backend;
    const uint64_t size_bytes = rounded(self, request->size_bytes);
    uint64_t from = 0;
    size_t at = 0;
    while (at < self->count && self->blocks[at].offset_bytes - from < size_bytes)
        from = end_of(&self->blocks[at++]);
    if (self->count == BLOCKS || size_bytes > backend->arena_bytes - from)
        return VRAM_NO_SPACE;
    memmove(&self->blocks[at + 1], &self->blocks[at], (self->count++ - at) * sizeof(vram_block));
    self->blocks[at] = (vram_block){from, size_bytes, UINT64_C(1) << 32 | ++self->handles};
    *out = self->blocks[at];
    return VRAM_OK;
}

static size_t index_of(const slider *self, uint64_t handle)
{
    size_t at = 0;
    while (at < self->count && self->blocks[at].handle != handle)
        at++;
    return at;
}

static vram_result slider_release(vram_backend *backend, vram_block block)
{
    slider *self = (slider *)backend;
    const size_t at = index_of(self, block.handle);
    if (at == self->count)
        return VRAM_STALE_BLOCK;
    memmove(&self->blocks[at], &self->blocks[at + 1], (--self->count - at) * sizeof(vram_block));
    return VRAM_OK;
}

static void show(vram_visit *visit, void *context, uint64_t from, uint64_t size, uint64_t handle)
{
    const vram_span span = {from, size, size, handle,
                            handle != 0 ? VRAM_SPAN_LIVE : VRAM_SPAN_FREE};
    if (size > 0)
        visit(context, &span);
}

static void slider_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const slider *self = (const slider *)backend;
    uint64_t end = 0;
    for (size_t at = 0; at < self->count; at++) {
        const vram_block *block = &self->blocks[at];
        show(visit, context, end, block->offset_bytes - end, 0);
        show(visit, context, block->offset_bytes, block->granted_bytes, block->handle);
        end = end_of(block);
    }
    show(visit, context, end, backend->arena_bytes - end, 0);
}

static bool slider_check(const vram_backend *backend, vram_fault *fault)
{
    (void)backend;
    (void)fault;
    return true;
}

static void slider_stats(const vram_backend *backend, vram_stats *out)
{
    const slider *self = (const slider *)backend;
    *out = (vram_stats){.live_blocks = self->count, .free_bytes = backend->arena_bytes};
    for (size_t at = 0; at < self->count; at++) {
        out->granted_bytes += self->blocks[at].granted_bytes;
        out->free_bytes -= self->blocks[at].granted_bytes;
    }
}

static void bend(const slider *self, vram_move *move)
{
    if (self->fault == SLIDER_MOVES_UP)
        move->to_bytes = move->from_bytes;
    if (self->fault == SLIDER_MOVES_THE_DEAD)
        move->handle += 1000;
    if (self->fault == SLIDER_WRONG_SIZE)
        move->size_bytes -= 1;
    if (self->fault == SLIDER_WRONG_ORDER)
        move->to_bytes = 0;
}

static size_t slider_plan(const vram_backend *backend, uint64_t budget_bytes, vram_move *moves,
                          size_t max_moves)
{
    const slider *self = (const slider *)backend;
    size_t count = 0;
    uint64_t end = 0;
    for (size_t at = 0; at < self->count && count < max_moves; at++) {
        const vram_block *block = &self->blocks[at];
        if (block->offset_bytes != end) {
            if (block->granted_bytes > budget_bytes && self->fault != SLIDER_OVER_BUDGET)
                break;
            budget_bytes -= block->granted_bytes;
            moves[count] =
                (vram_move){block->handle, block->offset_bytes, end, block->granted_bytes};
            bend(self, &moves[count++]);
        }
        end += block->granted_bytes;
    }
    return count;
}

static vram_result slider_commit(vram_backend *backend, const vram_move *move, vram_block *block)
{
    slider *self = (slider *)backend;
    if (self->fault == SLIDER_REFUSES)
        return VRAM_STALE_BLOCK;
    vram_block *moved = &self->blocks[index_of(self, move->handle)];
    moved->offset_bytes = move->to_bytes;
    *block = *moved;
    if (self->fault == SLIDER_LIVES_ELSEWHERE)
        block->offset_bytes += 1;
    return VRAM_OK;
}

static const vram_ops slider_ops = {
    .abi = VRAM_ABI,
    .name = "slider",
    .summary = "first fit that slides",
    .destroy = slider_destroy,
    .alloc = slider_alloc,
    .release = slider_release,
    .walk = slider_walk,
    .check = slider_check,
    .stats = slider_stats,
    .plan_moves = slider_plan,
    .commit_move = slider_commit,
};

vram_backend *slider_create(uint64_t arena_bytes, uint64_t unit_bytes, slider_fault fault)
{
    slider *self = calloc(1, sizeof *self);
    self->head = (vram_backend){
        .ops = &slider_ops,
        .arena_bytes = arena_bytes,
        .address_bytes = arena_bytes,
        .unit_bytes = unit_bytes,
        .spec = strdup("slider"),
    };
    self->fault = fault;
    return &self->head;
}
