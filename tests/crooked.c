/* crooked.c - forwards every call, but for one lie. */
#include "crooked.h"

#include <stdlib.h>
#include <string.h>

typedef struct crooked {
    vram_backend head;
    vram_backend *inner;
    vram_arena *arena;
    vram_block last;
    crooked_lie lie;
    uint64_t at_alloc, allocs;
} crooked;

static bool lies(const crooked *self, crooked_lie lie)
{
    return self->lie == lie && self->allocs >= self->at_alloc;
}

static void crooked_destroy(vram_backend *backend)
{
    crooked *self = (crooked *)backend;
    vram_destroy(self->inner);
    free(self);
}

static void bend(crooked *self, vram_block *block)
{
    if (lies(self, LIE_OVERLAP))
        block->offset_bytes = self->last.offset_bytes;
    if (lies(self, LIE_OUTSIDE))
        block->offset_bytes += self->head.arena_bytes;
    if (lies(self, LIE_MISALIGNED))
        block->offset_bytes += 1;
    if (lies(self, LIE_SHORT))
        block->granted_bytes = 1;
    if (lies(self, LIE_GENERATION))
        block->handle &= UINT32_MAX;
}

static vram_result crooked_alloc(vram_backend *backend, const vram_request *request,
                                 vram_block *out)
{
    crooked *self = (crooked *)backend;
    self->allocs++;
    if (lies(self, LIE_BAD_RESULT))
        return VRAM_BAD_REQUEST;
    vram_block block;
    const vram_result outcome = vram_alloc(self->inner, *request, &block);
    if (outcome != VRAM_OK)
        return outcome;
    if (lies(self, LIE_SCRIBBLE))
        self->arena->ops->fill(self->arena, self->last.offset_bytes, 1, self->allocs, NULL);
    bend(self, &block);
    self->last = block;
    *out = block;
    return VRAM_OK;
}

static vram_result crooked_release(vram_backend *backend, vram_block block)
{
    crooked *self = (crooked *)backend;
    return lies(self, LIE_REFUSES_RELEASE) ? VRAM_STALE_BLOCK : vram_release(self->inner, block);
}

typedef struct bent_walk {
    const crooked *self;
    vram_visit *visit;
    void *context;
    uint32_t spans;
} bent_walk;

static void pass_span(void *context, const vram_span *span)
{
    bent_walk *walk = context;
    vram_span shown = *span;
    if (lies(walk->self, LIE_WALK_GAP) && walk->spans++ == 0)
        return;
    if (lies(walk->self, LIE_WALK_HANDLE) && span->kind == VRAM_SPAN_LIVE)
        shown.handle += 1;
    walk->visit(walk->context, &shown);
}

static void crooked_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const crooked *self = (const crooked *)backend;
    bent_walk walk = {self, visit, context, 0};
    vram_walk(self->inner, pass_span, &walk);
}

static bool crooked_check(const vram_backend *backend, vram_fault *fault)
{
    const crooked *self = (const crooked *)backend;
    if (!lies(self, LIE_CHECK))
        return vram_check(self->inner, fault);
    *fault = (vram_fault){"I7 honest", 42};
    return false;
}

static void crooked_stats(const vram_backend *backend, vram_stats *out)
{
    const crooked *self = (const crooked *)backend;
    *out = vram_stats_of(self->inner);
    out->granted_bytes += lies(self, LIE_STATS);
    out->free_bytes -= lies(self, LIE_SHIFTED_STATS);
    out->padding_bytes += lies(self, LIE_SHIFTED_STATS);
}

static const vram_ops crooked_ops = {
    .abi = VRAM_ABI,
    .name = "crooked",
    .summary = "lies once",
    .destroy = crooked_destroy,
    .alloc = crooked_alloc,
    .release = crooked_release,
    .walk = crooked_walk,
    .check = crooked_check,
    .stats = crooked_stats,
};

vram_backend *crooked_over(vram_backend *inner, crooked_lie lie, uint64_t at_alloc,
                           vram_arena *arena)
{
    crooked *self = calloc(1, sizeof *self);
    self->head = (vram_backend){
        .ops = &crooked_ops,
        .arena_bytes = inner->arena_bytes,
        .address_bytes = inner->address_bytes,
        .unit_bytes = inner->unit_bytes,
        .spec = strdup("crooked"),
    };
    self->inner = inner;
    self->arena = arena;
    self->lie = lie;
    self->at_alloc = at_alloc;
    return &self->head;
}
