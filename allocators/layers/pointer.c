/*
 * pointer.c - blocks are found by their offset, as cudaFree finds them by their address.
 *
 *   offset --> map --> number --> [ block of the inner backend ]
 *
 * A release whose handle is VRAM_HANDLE_BY_OFFSET names whatever lives at the offset: all that a
 * pointer can say. With a real handle a stale block is still told from its successor at the same
 * place, which an address alone cannot do.
 *
 * I1  the map and the blocks hold the live blocks of the inner backend, each once.
 *
 * Cost: O(1) expected a call, and up to 64 bytes a live block.
 */
#include "core/offset_map.h"
#include "layers/layer.h"

#include <stdlib.h>

#define NO_BLOCK UINT32_MAX

typedef struct pointed {
    vram_block block;
    uint32_t next_unused;
} pointed;

typedef struct pointer {
    vram_layer layer;
    vram_offset_map by_offset;
    pointed *blocks;
    size_t capacity;
    uint32_t made;
    uint32_t unused; /* first of the unused entries, or NO_BLOCK */
} pointer;

static bool pointer_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    pointer *self = vram_layer_new(config, sizeof *self, "pointer", error);
    if (self == NULL)
        return false;
    self->unused = NO_BLOCK;
    *out = &self->layer.head;
    return true;
}

static void pointer_destroy(vram_backend *backend)
{
    pointer *self = (pointer *)backend;
    vram_offset_map_free(&self->by_offset);
    free(self->blocks);
    vram_layer_destroy(backend);
}

static bool reserve_entry(pointer *self)
{
    return vram_offset_map_reserve(&self->by_offset) &&
           (self->unused != NO_BLOCK || vram_reserve((void **)&self->blocks, &self->capacity,
                                                     self->made + 1u, sizeof *self->blocks));
}

static void remember(pointer *self, vram_block block)
{
    uint32_t number = self->unused;
    if (number == NO_BLOCK)
        number = self->made++;
    else
        self->unused = self->blocks[number].next_unused;
    self->blocks[number].block = block;
    vram_offset_map_put(&self->by_offset, block.offset_bytes, number);
}

/* The entry of a live block, or NO_BLOCK when the block is stale. */
static uint32_t look_up(const pointer *self, vram_block block)
{
    const uint32_t number = vram_offset_map_find(&self->by_offset, block.offset_bytes);
    if (number == VRAM_OFFSET_MAP_NONE)
        return NO_BLOCK;
    return block.handle == VRAM_HANDLE_BY_OFFSET ||
                   block.handle == self->blocks[number].block.handle
               ? number
               : NO_BLOCK;
}

static void forget(pointer *self, uint32_t number)
{
    vram_offset_map_remove(&self->by_offset, self->blocks[number].block.offset_bytes);
    self->blocks[number].block.handle = 0;
    self->blocks[number].next_unused = self->unused;
    self->unused = number;
}

static vram_result pointer_alloc(vram_backend *backend, const vram_request *request,
                                 vram_block *out)
{
    pointer *self = (pointer *)backend;
    if (!reserve_entry(self))
        return VRAM_NO_METADATA;
    vram_block block;
    const vram_result result = vram_layer_alloc(backend, request, &block);
    if (result != VRAM_OK)
        return result;
    remember(self, block);
    *out = block;
    return VRAM_OK;
}

static vram_result pointer_release(vram_backend *backend, vram_block block)
{
    pointer *self = (pointer *)backend;
    const uint32_t number = look_up(self, block);
    if (number == NO_BLOCK)
        return VRAM_STALE_BLOCK;
    const vram_result result = vram_layer_release(backend, self->blocks[number].block);
    if (result == VRAM_OK)
        forget(self, number);
    return result;
}

static vram_result pointer_resize(vram_backend *backend, vram_block *block, uint64_t size_bytes)
{
    pointer *self = (pointer *)backend;
    const uint32_t number = look_up(self, *block);
    if (number == NO_BLOCK)
        return VRAM_STALE_BLOCK;
    const vram_result result = vram_layer_resize(backend, &self->blocks[number].block, size_bytes);
    if (result == VRAM_OK)
        *block = self->blocks[number].block;
    return result;
}

static vram_result pointer_use(vram_backend *backend, vram_block block, uint32_t stream)
{
    pointer *self = (pointer *)backend;
    const uint32_t number = look_up(self, block);
    return number == NO_BLOCK ? VRAM_STALE_BLOCK
                              : vram_layer_use(backend, self->blocks[number].block, stream);
}

static vram_result pointer_commit_move(vram_backend *backend, const vram_move *move,
                                       vram_block *block)
{
    pointer *self = (pointer *)backend;
    const uint32_t number = vram_offset_map_find(&self->by_offset, move->from_bytes);
    if (number == VRAM_OFFSET_MAP_NONE || self->blocks[number].block.handle != move->handle)
        return VRAM_STALE_BLOCK;
    if (!vram_offset_map_reserve(&self->by_offset))
        return VRAM_NO_METADATA;
    const vram_result result = vram_layer_commit_move(backend, move, block);
    if (result != VRAM_OK)
        return result;
    vram_offset_map_remove(&self->by_offset, move->from_bytes);
    self->blocks[number].block = *block;
    vram_offset_map_put(&self->by_offset, block->offset_bytes, number);
    return VRAM_OK;
}

/* Live spans of the inner backend against the map. */
typedef struct pointer_check_walk {
    const pointer *self;
    uint64_t live;
    uint64_t wrong_at; /* UINT64_MAX: nothing wrong */
} pointer_check_walk;

static void compare_span(void *context, const vram_span *span)
{
    pointer_check_walk *walk = context;
    if (span->kind != VRAM_SPAN_LIVE)
        return;
    const uint32_t number = vram_offset_map_find(&walk->self->by_offset, span->offset_bytes);
    walk->live++;
    if (number >= walk->self->made || walk->self->blocks[number].block.handle != span->handle)
        walk->wrong_at = span->offset_bytes;
}

static bool pointer_check(const vram_backend *backend, vram_fault *fault)
{
    const pointer *self = (const pointer *)backend;
    if (!vram_layer_check(backend, fault))
        return false;
    pointer_check_walk walk = {.self = self, .wrong_at = UINT64_MAX};
    vram_layer_walk(backend, compare_span, &walk);
    if (walk.wrong_at != UINT64_MAX || walk.live != self->by_offset.count)
        return vram_fault_at(fault, "I1 mapped", walk.wrong_at);
    return true;
}

static void pointer_stats(const vram_backend *backend, vram_stats *out)
{
    const pointer *self = (const pointer *)backend;
    vram_layer_stats(backend, out);
    out->bookkeeping_bytes += sizeof *self - sizeof self->layer +
                              self->capacity * sizeof *self->blocks +
                              self->by_offset.capacity * sizeof *self->by_offset.entries;
}

const vram_ops vram_pointer_ops = {
    .abi = VRAM_ABI,
    .layer = true,
    .name = "pointer",
    .summary = "blocks are found by their offset, as cudaFree finds them",
    .create = pointer_create,
    .destroy = pointer_destroy,
    .alloc = pointer_alloc,
    .release = pointer_release,
    .walk = vram_layer_walk,
    .check = pointer_check,
    .stats = pointer_stats,
    .explain = vram_layer_explain,
    .resize = pointer_resize,
    .maintain = vram_layer_maintain,
    .plan_moves = vram_layer_plan_moves,
    .commit_move = pointer_commit_move,
    .trim = vram_layer_trim,
    .use = pointer_use,
    .sync = vram_layer_sync,
    .wait = vram_layer_wait,
    .hook = vram_layer_hook,
};
