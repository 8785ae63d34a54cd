/*
 * backend.c - the calls in front of every backend.
 *
 * What no backend may accept is refused here, once; what every backend would answer the same way
 * is answered here.
 */
#include "core/core.h"

#include <stdlib.h>

vram_result vram_alloc(vram_backend *self, vram_request request, vram_block *out)
{
    if (request.size_bytes == 0)
        return VRAM_BAD_REQUEST;
    if (request.align_bytes == 0)
        request.align_bytes = self->unit_bytes;
    else if (!vram_is_power_of_two(request.align_bytes) || request.align_bytes > VRAM_ALIGN_MAX)
        return VRAM_BAD_REQUEST;
    if (request.size_bytes > self->arena_bytes)
        return VRAM_NO_SPACE;
    return self->ops->alloc(self, &request, out);
}

vram_result vram_release(vram_backend *self, vram_block block)
{
    return block.handle >> 32 == 0 ? VRAM_STALE_BLOCK : self->ops->release(self, block);
}

vram_result vram_resize(vram_backend *self, vram_block *block, uint64_t size_bytes)
{
    if (self->ops->resize == NULL)
        return VRAM_UNSUPPORTED;
    if (block->handle >> 32 == 0)
        return VRAM_STALE_BLOCK;
    if (size_bytes == 0)
        return VRAM_BAD_REQUEST;
    if (size_bytes > self->arena_bytes)
        return VRAM_NO_SPACE;
    return self->ops->resize(self, block, size_bytes);
}

/* The longest stretch that one request could be given, as the walk shows it. */
static void note_largest(void *context, const vram_span *span)
{
    uint64_t *largest_bytes = context;
    if ((span->kind == VRAM_SPAN_FREE || span->kind == VRAM_SPAN_BOUND) &&
        span->block_bytes > *largest_bytes)
        *largest_bytes = span->block_bytes;
}

vram_failure vram_explain(const vram_backend *self, vram_request request)
{
    const vram_stats stats = vram_stats_of(self);
    vram_failure failure = {.free_bytes = stats.free_bytes + stats.bound_bytes +
                                          stats.pending_bytes + stats.reserve_bytes};
    if (request.align_bytes == 0)
        request.align_bytes = self->unit_bytes;
    self->ops->walk(self, note_largest, &failure.largest_free_bytes);
    const bool oversize = request.size_bytes > self->arena_bytes;
    if (oversize) /* the numbers are those of any request */
        request.size_bytes = self->arena_bytes;
    failure.reason =
        request.size_bytes > failure.free_bytes ? VRAM_REASON_BYTES : VRAM_REASON_FRAGMENTED;
    if (self->ops->explain != NULL)
        self->ops->explain(self, &request, &failure);
    if (oversize)
        failure.reason = VRAM_REASON_OVERSIZE;
    return failure;
}

void vram_walk(const vram_backend *self, vram_visit *visit, void *context)
{
    self->ops->walk(self, visit, context);
}

bool vram_check(const vram_backend *self, vram_fault *fault)
{
    vram_fault ignored;
    return self->ops->check(self, fault != NULL ? fault : &ignored);
}

vram_stats vram_stats_of(const vram_backend *self)
{
    vram_stats stats = {0};
    self->ops->stats(self, &stats);
    return stats;
}

void vram_destroy(vram_backend *self)
{
    if (self == NULL)
        return;
    char *spec = self->spec;
    void *owned_values = self->owned_values;
    self->ops->destroy(self);
    free(spec);
    free(owned_values);
}

const char *vram_result_name(vram_result result)
{
    static const char *const names[] = {"ok",          "no space",    "bad request",
                                        "stale block", "no metadata", "unsupported"};
    return (size_t)result < sizeof names / sizeof names[0] ? names[result] : "unknown";
}

const char *vram_reason_name(vram_reason reason)
{
    static const char *const names[] = {"none",     "too few bytes", "fragmented", "class full",
                                        "oversize", "pending",       "injected"};
    _Static_assert(sizeof names / sizeof names[0] == VRAM_REASON_COUNT, "a name for each reason");
    return (size_t)reason < VRAM_REASON_COUNT ? names[reason] : "unknown";
}

const char *vram_span_kind_name(vram_span_kind kind)
{
    static const char *const names[] = {"live", "free", "bound", "pending", "reserve", "padding"};
    _Static_assert(sizeof names / sizeof names[0] == VRAM_SPAN_KINDS, "a name for each kind");
    return (size_t)kind < VRAM_SPAN_KINDS ? names[kind] : "unknown";
}
