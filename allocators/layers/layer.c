/*
 * layer.c - operations passed on to the inner backend.
 */
#include "layers/layer.h"

#include <stdlib.h>

static vram_backend *inner_of(const vram_backend *self)
{
    return ((const vram_layer *)self)->inner;
}

void *vram_layer_new(const vram_config *config, size_t bytes, const char *name, vram_error *error)
{
    vram_layer *self = calloc(1, bytes);
    if (self == NULL) {
        vram_fail(error, "%s: out of host memory", name);
        return NULL;
    }
    self->inner = config->inner;
    self->head.address_bytes = config->inner->address_bytes;
    return self;
}

void vram_layer_destroy(vram_backend *self)
{
    vram_destroy(inner_of(self));
    free(self);
}

vram_result vram_layer_alloc(vram_backend *self, const vram_request *request, vram_block *out)
{
    return vram_alloc(inner_of(self), *request, out);
}

vram_result vram_layer_release(vram_backend *self, vram_block block)
{
    return vram_release(inner_of(self), block);
}

void vram_layer_walk(const vram_backend *self, vram_visit *visit, void *context)
{
    vram_walk(inner_of(self), visit, context);
}

bool vram_layer_check(const vram_backend *self, vram_fault *fault)
{
    return vram_check(inner_of(self), fault);
}

void vram_layer_stats(const vram_backend *self, vram_stats *out)
{
    *out = vram_stats_of(inner_of(self));
    out->bookkeeping_bytes += sizeof(vram_layer);
}

void vram_layer_explain(const vram_backend *self, const vram_request *request,
                        vram_failure *failure)
{
    const vram_failure inner = vram_explain(inner_of(self), *request);
    if (inner.reason != VRAM_REASON_BYTES) /* else more may be free in the layer than inside it */
        failure->reason = inner.reason;
    failure->largest_free_bytes = inner.largest_free_bytes;
}

vram_result vram_layer_resize(vram_backend *self, vram_block *block, uint64_t size_bytes)
{
    return vram_resize(inner_of(self), block, size_bytes);
}

bool vram_layer_maintain(vram_backend *self)
{
    vram_backend *inner = inner_of(self);
    return inner->ops->maintain != NULL && inner->ops->maintain(inner);
}

size_t vram_layer_plan_moves(const vram_backend *self, uint64_t budget_bytes, vram_move *moves,
                             size_t max_moves)
{
    const vram_backend *inner = inner_of(self);
    return inner->ops->plan_moves == NULL
               ? 0
               : inner->ops->plan_moves(inner, budget_bytes, moves, max_moves);
}

vram_result vram_layer_commit_move(vram_backend *self, const vram_move *move, vram_block *block)
{
    vram_backend *inner = inner_of(self);
    return inner->ops->commit_move == NULL ? VRAM_UNSUPPORTED
                                           : inner->ops->commit_move(inner, move, block);
}

uint64_t vram_layer_trim(vram_backend *self)
{
    vram_backend *inner = inner_of(self);
    return inner->ops->trim == NULL ? 0 : inner->ops->trim(inner);
}

vram_result vram_layer_use(vram_backend *self, vram_block block, uint32_t stream)
{
    vram_backend *inner = inner_of(self);
    return inner->ops->use == NULL ? VRAM_UNSUPPORTED : inner->ops->use(inner, block, stream);
}

void vram_layer_sync(vram_backend *self, uint32_t stream)
{
    vram_backend *inner = inner_of(self);
    if (inner->ops->sync != NULL)
        inner->ops->sync(inner, stream);
}

void vram_layer_wait(vram_backend *self, uint32_t waiter, uint32_t stream)
{
    vram_backend *inner = inner_of(self);
    if (inner->ops->wait != NULL)
        inner->ops->wait(inner, waiter, stream);
}

void vram_layer_hook(vram_backend *self, const vram_stream_hooks *hooks)
{
    vram_backend *inner = inner_of(self);
    if (inner->ops->hook != NULL)
        inner->ops->hook(inner, hooks);
}
