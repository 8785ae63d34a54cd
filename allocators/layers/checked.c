/*
 * checked.c - the backend examines itself after every operation, and stops the program at the first
 * broken invariant, while the call that broke it is still on the stack.
 *
 * `every=N` checks after each Nth operation. Cost: the inner check, O(spans) for most.
 */
#include "layers/layer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct checked {
    vram_layer layer;
    uint64_t every;
    uint64_t operations;
} checked;

enum { CHECKED_EVERY };
static const vram_option checked_options[] = {
    [CHECKED_EVERY] = {.name = "every",
                       .type = VRAM_OPTION_COUNT,
                       .fallback = "1",
                       .least = 1,
                       .help = "operations from one check to the next"},
    {.name = NULL},
};

static bool checked_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    checked *self = vram_layer_new(config, sizeof *self, "checked", error);
    if (self == NULL)
        return false;
    self->every = config->values[CHECKED_EVERY].number;
    *out = &self->layer.head;
    return true;
}

/* A broken structure is a bug, not an outcome: the program stops here, where it can be looked at.
 */
static void examine(vram_backend *backend, const char *after)
{
    checked *self = (checked *)backend;
    vram_fault fault;
    if (++self->operations % self->every != 0 || vram_check(self->layer.inner, &fault))
        return;
    fprintf(stderr,
            "vramlab: %s: \"%s\" does not hold at offset %" PRIu64 " after operation %" PRIu64
            " (%s)\n",
            self->layer.inner->ops->name, fault.invariant, fault.offset_bytes, self->operations,
            after);
    abort();
}

static vram_result checked_alloc(vram_backend *backend, const vram_request *request,
                                 vram_block *out)
{
    const vram_result result = vram_layer_alloc(backend, request, out);
    examine(backend, "alloc");
    return result;
}

static vram_result checked_release(vram_backend *backend, vram_block block)
{
    const vram_result result = vram_layer_release(backend, block);
    examine(backend, "release");
    return result;
}

static vram_result checked_resize(vram_backend *backend, vram_block *block, uint64_t size_bytes)
{
    const vram_result result = vram_layer_resize(backend, block, size_bytes);
    examine(backend, "resize");
    return result;
}

static bool checked_maintain(vram_backend *backend)
{
    const bool more = vram_layer_maintain(backend);
    examine(backend, "maintain");
    return more;
}

static vram_result checked_commit_move(vram_backend *backend, const vram_move *move,
                                       vram_block *block)
{
    const vram_result result = vram_layer_commit_move(backend, move, block);
    examine(backend, "commit_move");
    return result;
}

static uint64_t checked_trim(vram_backend *backend)
{
    const uint64_t trimmed_bytes = vram_layer_trim(backend);
    examine(backend, "trim");
    return trimmed_bytes;
}

static void checked_sync(vram_backend *backend, uint32_t stream)
{
    vram_layer_sync(backend, stream);
    examine(backend, "sync");
}

const vram_ops vram_checked_ops = {
    .abi = VRAM_ABI,
    .layer = true,
    .name = "checked",
    .summary =
        "examines the backend after every operation, and stops at the first broken invariant",
    .options = checked_options,
    .create = checked_create,
    .destroy = vram_layer_destroy,
    .alloc = checked_alloc,
    .release = checked_release,
    .walk = vram_layer_walk,
    .check = vram_layer_check,
    .stats = vram_layer_stats,
    .explain = vram_layer_explain,
    .resize = checked_resize,
    .maintain = checked_maintain,
    .plan_moves = vram_layer_plan_moves,
    .commit_move = checked_commit_move,
    .trim = checked_trim,
    .use = vram_layer_use,
    .sync = checked_sync,
    .wait = vram_layer_wait,
    .hook = vram_layer_hook,
};
