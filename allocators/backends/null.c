/*
 * null.c - no allocator at all: what a benchmark measures when the backend costs next to nothing.
 *
 *   [###########gone###########][...............................................]
 *   0                          cut                                          arena
 *
 * A request gets the bytes at `cut`, and no byte is ever handed out twice: a released block is
 * padding from then on. Nothing is remembered of single blocks, so the walk shows all that was ever
 * cut as padding, blocks that live included, and a second release of the same block goes unnoticed.
 *
 * I1  granted + padding = cut, in stats.
 *
 * alloc, release: a handful of instructions. Host memory: none that grows.
 */
#include "core/core.h"

#include <stdlib.h>

typedef struct null_backend {
    vram_backend head;
    uint64_t cut_bytes;
    uint64_t granted_bytes;
    uint64_t live_blocks;
} null_backend;

enum { NULL_UNIT };
static const vram_option null_options[] = {
    [NULL_UNIT] = VRAM_UNIT_OPTION,
    {.name = NULL},
};

static bool null_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    uint64_t unit_bytes = 0;
    if (!vram_unit_of(config, &config->values[NULL_UNIT], &unit_bytes, error))
        return false;
    null_backend *self = calloc(1, sizeof *self);
    if (self == NULL)
        return vram_fail(error, "out of host memory");
    self->head.arena_bytes = config->arena_bytes;
    self->head.unit_bytes = unit_bytes;
    *out = &self->head;
    return true;
}

static void null_destroy(vram_backend *backend)
{
    free(backend);
}

static vram_result null_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    null_backend *self = (null_backend *)backend;
    const uint64_t offset_bytes = vram_round_up(self->cut_bytes, request->align_bytes);
    if (offset_bytes > backend->arena_bytes ||
        request->size_bytes > backend->arena_bytes - offset_bytes)
        return VRAM_NO_SPACE;
    self->cut_bytes = offset_bytes + request->size_bytes;
    self->granted_bytes += request->size_bytes;
    self->live_blocks++;
    *out = (vram_block){
        .offset_bytes = offset_bytes,
        .granted_bytes = request->size_bytes,
        .handle = UINT64_C(1) << 32,
    };
    return VRAM_OK;
}

static vram_result null_release(vram_backend *backend, vram_block block)
{
    null_backend *self = (null_backend *)backend;
    if (self->live_blocks == 0)
        return VRAM_STALE_BLOCK;
    self->live_blocks--;
    self->granted_bytes -= block.granted_bytes;
    return VRAM_OK;
}

static void null_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const null_backend *self = (const null_backend *)backend;
    const uint64_t left_bytes = backend->arena_bytes - self->cut_bytes;
    if (self->cut_bytes > 0)
        visit(context, &(vram_span){
                           .size_bytes = self->cut_bytes,
                           .block_bytes = self->cut_bytes,
                           .kind = VRAM_SPAN_PADDING,
                       });
    if (left_bytes > 0)
        visit(context, &(vram_span){
                           .offset_bytes = self->cut_bytes,
                           .size_bytes = left_bytes,
                           .block_bytes = left_bytes,
                           .kind = VRAM_SPAN_FREE,
                       });
}

static bool null_check(const vram_backend *backend, vram_fault *fault)
{
    const null_backend *self = (const null_backend *)backend;
    return self->granted_bytes <= self->cut_bytes ||
           vram_fault_at(fault, "I1 granted", self->cut_bytes);
}

static void null_stats(const vram_backend *backend, vram_stats *out)
{
    const null_backend *self = (const null_backend *)backend;
    *out = (vram_stats){
        .granted_bytes = self->granted_bytes,
        .free_bytes = backend->arena_bytes - self->cut_bytes,
        .padding_bytes = self->cut_bytes - self->granted_bytes,
        .live_blocks = self->live_blocks,
        .bookkeeping_bytes = sizeof *self,
    };
}

const vram_ops vram_null_ops = {
    .abi = VRAM_ABI,
    .name = "null",
    .summary = "reuses nothing and remembers nothing: what bench measures and takes off",
    .options = null_options,
    .special = true,
    .create = null_create,
    .destroy = null_destroy,
    .alloc = null_alloc,
    .release = null_release,
    .walk = null_walk,
    .check = null_check,
    .stats = null_stats,
};
