/* mutexed.c - takes the mutex, asks the inner backend. */
#include "mutexed.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct mutexed {
    vram_backend head;
    vram_backend *inner;
    pthread_mutex_t mutex;
} mutexed;

static void mutexed_destroy(vram_backend *backend)
{
    vram_destroy(((mutexed *)backend)->inner);
    free(backend);
}

static vram_result mutexed_alloc(vram_backend *backend, const vram_request *request,
                                 vram_block *out)
{
    mutexed *self = (mutexed *)backend;
    pthread_mutex_lock(&self->mutex);
    const vram_result outcome = vram_alloc(self->inner, *request, out);
    pthread_mutex_unlock(&self->mutex);
    return outcome;
}

static vram_result mutexed_release(vram_backend *backend, vram_block block)
{
    mutexed *self = (mutexed *)backend;
    pthread_mutex_lock(&self->mutex);
    const vram_result outcome = vram_release(self->inner, block);
    pthread_mutex_unlock(&self->mutex);
    return outcome;
}

static void mutexed_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    vram_walk(((const mutexed *)backend)->inner, visit, context);
}

static bool mutexed_check(const vram_backend *backend, vram_fault *fault)
{
    return vram_check(((const mutexed *)backend)->inner, fault);
}

static void mutexed_stats(const vram_backend *backend, vram_stats *out)
{
    *out = vram_stats_of(((const mutexed *)backend)->inner);
}

static const vram_ops mutexed_ops = {
    .abi = VRAM_ABI,
    .name = "mutexed",
    .summary = "behind a mutex",
    .concurrent = true,
    .destroy = mutexed_destroy,
    .alloc = mutexed_alloc,
    .release = mutexed_release,
    .walk = mutexed_walk,
    .check = mutexed_check,
    .stats = mutexed_stats,
};

vram_backend *mutexed_over(vram_backend *inner)
{
    mutexed *self = calloc(1, sizeof *self);
    self->head = *inner;
    self->head.ops = &mutexed_ops;
    self->head.spec = strdup("mutexed");
    self->head.owned_values = NULL;
    self->inner = inner;
    pthread_mutex_init(&self->mutex, NULL);
    return &self->head;
}
