/*
 * locked.c - one lock around every operation: the simplest way in which threads share a backend.
 *
 *   thread 1  --->  [ lock ]  --->  inner backend
 *   thread 2  --->  [ lock ]
 *
 * Every call of the contract may be made from any thread at any time; visitors of walk run under
 * the lock and must not call the backend. Cost: a lock and an unlock a call.
 */
#include "layers/layer.h"

#include <pthread.h>

typedef struct locked {
    vram_layer layer;
    pthread_mutex_t mutex;
} locked;

static locked *enter(const vram_backend *backend)
{
    locked *self = (locked *)(uintptr_t)backend; /* the lock of a const backend is not const */
    pthread_mutex_lock(&self->mutex);
    return self;
}

static void leave(locked *self)
{
    pthread_mutex_unlock(&self->mutex);
}

static bool locked_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    locked *self = vram_layer_new(config, sizeof *self, "locked", error);
    if (self == NULL)
        return false;
    pthread_mutex_init(&self->mutex, NULL);
    *out = &self->layer.head;
    return true;
}

static void locked_destroy(vram_backend *backend)
{
    pthread_mutex_destroy(&((locked *)backend)->mutex);
    vram_layer_destroy(backend);
}

static vram_result locked_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    locked *self = enter(backend);
    const vram_result result = vram_layer_alloc(backend, request, out);
    leave(self);
    return result;
}

static vram_result locked_release(vram_backend *backend, vram_block block)
{
    locked *self = enter(backend);
    const vram_result result = vram_layer_release(backend, block);
    leave(self);
    return result;
}

static void locked_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    locked *self = enter(backend);
    vram_layer_walk(backend, visit, context);
    leave(self);
}

static bool locked_check(const vram_backend *backend, vram_fault *fault)
{
    locked *self = enter(backend);
    const bool sound = vram_layer_check(backend, fault);
    leave(self);
    return sound;
}

static void locked_stats(const vram_backend *backend, vram_stats *out)
{
    locked *self = enter(backend);
    vram_layer_stats(backend, out);
    leave(self);
}

static void locked_explain(const vram_backend *backend, const vram_request *request,
                           vram_failure *failure)
{
    locked *self = enter(backend);
    vram_layer_explain(backend, request, failure);
    leave(self);
}

static vram_result locked_resize(vram_backend *backend, vram_block *block, uint64_t size_bytes)
{
    locked *self = enter(backend);
    const vram_result result = vram_layer_resize(backend, block, size_bytes);
    leave(self);
    return result;
}

static bool locked_maintain(vram_backend *backend)
{
    locked *self = enter(backend);
    const bool more = vram_layer_maintain(backend);
    leave(self);
    return more;
}

static size_t locked_plan_moves(const vram_backend *backend, uint64_t budget_bytes,
                                vram_move *moves, size_t max_moves)
{
    locked *self = enter(backend);
    const size_t count = vram_layer_plan_moves(backend, budget_bytes, moves, max_moves);
    leave(self);
    return count;
}

static vram_result locked_commit_move(vram_backend *backend, const vram_move *move,
                                      vram_block *block)
{
    locked *self = enter(backend);
    const vram_result result = vram_layer_commit_move(backend, move, block);
    leave(self);
    return result;
}

static uint64_t locked_trim(vram_backend *backend)
{
    locked *self = enter(backend);
    const uint64_t trimmed_bytes = vram_layer_trim(backend);
    leave(self);
    return trimmed_bytes;
}

static vram_result locked_use(vram_backend *backend, vram_block block, uint32_t stream)
{
    locked *self = enter(backend);
    const vram_result result = vram_layer_use(backend, block, stream);
    leave(self);
    return result;
}

static void locked_sync(vram_backend *backend, uint32_t stream)
{
    locked *self = enter(backend);
    vram_layer_sync(backend, stream);
    leave(self);
}

static void locked_wait(vram_backend *backend, uint32_t waiter, uint32_t stream)
{
    locked *self = enter(backend);
    vram_layer_wait(backend, waiter, stream);
    leave(self);
}

static void locked_hook(vram_backend *backend, const vram_stream_hooks *hooks)
{
    locked *self = enter(backend);
    vram_layer_hook(backend, hooks);
    leave(self);
}

const vram_ops vram_locked_ops = {
    .abi = VRAM_ABI,
    .layer = true,
    .concurrent = true,
    .name = "locked",
    .summary = "one lock around every operation, for threads",
    .create = locked_create,
    .destroy = locked_destroy,
    .alloc = locked_alloc,
    .release = locked_release,
    .walk = locked_walk,
    .check = locked_check,
    .stats = locked_stats,
    .explain = locked_explain,
    .resize = locked_resize,
    .maintain = locked_maintain,
    .plan_moves = locked_plan_moves,
    .commit_move = locked_commit_move,
    .trim = locked_trim,
    .use = locked_use,
    .sync = locked_sync,
    .wait = locked_wait,
    .hook = locked_hook,
};
