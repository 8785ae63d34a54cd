/* device_streams.c - see device_streams.h. */
#include "study/device_streams.h"

#include "arena/cudart.h"
#include "arena/pattern.h"
#include "study/draw.h"

#include <vramlab/arena.h>
#include <vramlab/registry.h>

#include <stdlib.h>
#include <string.h>

enum { STREAMS = 4, HELD = 32, ROUNDS_A_SYNC = 250 };
#define SPIN_NS UINT64_C(100000)

typedef struct world {
    const vram_cudart *runtime;
    vram_kernels *kernels;
    vram_arena *arena;
    vram_backend *backend;
    vram_cuda_stream streams[STREAMS];
    vram_cuda_event event;
    uint64_t *found; /* on the device: a word for each read */
    char *base;
    int failed; /* the first error of the runtime or driver, and where */
    const char *failed_call;
    device_streams_result *result;
    uint64_t random;
} world;

static void note(world *self, const char *call, int result)
{
    if (result == 0 || self->failed != 0)
        return;
    self->failed = result;
    self->failed_call = call;
}

/* ------------------------------------------------------------------------------------------------
 * what the stack asks of the streams */

static bool hook_poll(void *context, uint32_t stream)
{
    world *self = context;
    self->result->polls++;
    const int result = self->runtime->stream_query(self->streams[stream]);
    if (result != VRAM_CUDA_NOT_READY)
        note(self, "cudaStreamQuery", result);
    return result == 0;
}

static void queue_wait(world *self, uint32_t waiter, uint32_t stream)
{
    note(self, "cudaEventRecord", self->runtime->event_record(self->event, self->streams[stream]));
    note(self, "cudaStreamWaitEvent",
         self->runtime->stream_wait_event(self->streams[waiter], self->event, 0));
}

static void hook_order(void *context, uint32_t waiter, uint32_t stream)
{
    world *self = context;
    self->result->waits++;
    queue_wait(self, waiter, stream);
}

static void hook_sync(void *context)
{
    world *self = context;
    self->result->host_waits++;
    note(self, "cudaDeviceSynchronize", self->runtime->device_synchronize());
}

/* ------------------------------------------------------------------------------------------------
 * rounds */

static void spin_sometimes(world *self, uint32_t stream)
{
    if (draw_below(&self->random, 2) == 0)
        note(self, "spin", vram_kernels_spin(self->kernels, SPIN_NS, self->streams[stream]));
}

/* Another stream will read the block: on the device, and as the stack is told. */
static void hand_over(world *self, vram_block block, uint32_t writer, uint32_t reader)
{
    const vram_ops *ops = self->backend->ops;
    queue_wait(self, reader, writer);
    if (ops->wait != NULL)
        ops->wait(self->backend, reader, writer);
    if (ops->use != NULL)
        ops->use(self->backend, block, reader);
}

static void run_round(world *self, uint64_t round, vram_block held[HELD])
{
    const uint32_t writer = (uint32_t)draw_below(&self->random, STREAMS);
    const uint32_t reader = (uint32_t)draw_below(&self->random, STREAMS);
    const uint64_t size_bytes = draw_log_uniform(&self->random, 4096, 4 << 20);
    vram_block block;
    if (vram_alloc(self->backend, (vram_request){.size_bytes = size_bytes, .stream = writer},
                   &block) != VRAM_OK) {
        self->result->refused++;
        return;
    }
    const uint64_t address = (uint64_t)(uintptr_t)self->base + block.offset_bytes;
    const uint64_t first = vram_pattern_first(round);
    spin_sometimes(self, writer);
    note(self, "fill",
         vram_kernels_fill(self->kernels, address, size_bytes, first, self->streams[writer]));
    if (reader != writer)
        hand_over(self, block, writer, reader);
    spin_sometimes(self, reader);
    note(self, "compare",
         vram_kernels_compare(self->kernels, address, size_bytes, first,
                              (uint64_t)(uintptr_t)&self->found[round], self->streams[reader]));
    self->result->reads++;
    /* half the blocks go at once, half take the place of one that is held */
    vram_block *place = &held[draw_below(&self->random, HELD)];
    if (draw_below(&self->random, 2) == 0) {
        const vram_block other = *place;
        *place = block;
        block = other;
    }
    if (block.handle != 0)
        vram_release(self->backend, block);
}

/* The host waits now and then, so that queues stay short, and says so. */
static void sync_all(world *self)
{
    note(self, "cudaDeviceSynchronize", self->runtime->device_synchronize());
    if (self->backend->ops->sync != NULL)
        self->backend->ops->sync(self->backend, UINT32_MAX);
}

static bool count_stale(world *self, uint64_t rounds, vram_error *error)
{
    uint64_t *found = malloc(rounds * sizeof *found);
    if (found == NULL)
        return vram_fail(error, "out of host memory");
    note(self, "cudaMemcpy",
         self->runtime->memcpy(found, self->found, rounds * sizeof *found, VRAM_CUDA_COPY));
    for (uint64_t round = 0; round < rounds; round++)
        self->result->stale += found[round] != UINT64_MAX;
    free(found);
    return true;
}

/* ------------------------------------------------------------------------------------------------
 * all of it */

static bool open_world(world *self, const char *spec, uint64_t arena_bytes, uint64_t rounds,
                       vram_error *error)
{
    self->runtime = vram_cudart_load(error);
    if (self->runtime == NULL || !vram_arena_create("cuda", arena_bytes, &self->arena, error))
        return false;
    self->base = self->arena->ops->base(self->arena);
    self->kernels = vram_kernels_load(error);
    if (self->kernels == NULL ||
        !vram_create_from_text(spec, &(vram_config){.arena_bytes = arena_bytes, .unit_bytes = 512},
                               &self->backend, error))
        return false;
    if (self->backend->ops->hook != NULL)
        self->backend->ops->hook(self->backend, &(vram_stream_hooks){.poll = hook_poll,
                                                                     .order = hook_order,
                                                                     .sync = hook_sync,
                                                                     .context = self});
    for (int k = 0; k < STREAMS; k++)
        note(self, "cudaStreamCreate",
             self->runtime->stream_create(&self->streams[k], VRAM_CUDA_NON_BLOCKING));
    note(self, "cudaEventCreate", self->runtime->event_create(&self->event, VRAM_CUDA_NO_TIMING));
    void *blank = malloc(rounds * sizeof *self->found);
    if (blank == NULL)
        return vram_fail(error, "out of host memory");
    memset(blank, 0xff, rounds * sizeof *self->found);
    note(self, "cudaMalloc",
         self->runtime->malloc((void **)&self->found, rounds * sizeof *self->found));
    if (self->failed == 0)
        note(self, "cudaMemcpy",
             self->runtime->memcpy(self->found, blank, rounds * sizeof *self->found,
                                   VRAM_CUDA_COPY));
    free(blank);
    return self->failed == 0 || vram_cudart_fail(error, self->failed_call, self->failed);
}

static void close_world(world *self)
{
    vram_destroy(self->backend);
    if (self->runtime != NULL) {
        for (int k = 0; k < STREAMS; k++)
            if (self->streams[k] != NULL)
                self->runtime->stream_destroy(self->streams[k]);
        if (self->event != NULL)
            self->runtime->event_destroy(self->event);
        self->runtime->free(self->found);
    }
    vram_kernels_unload(self->kernels);
    vram_arena_destroy(self->arena);
}

bool device_streams_run(const char *spec, uint64_t arena_bytes, uint64_t rounds,
                        device_streams_result *result, vram_error *error)
{
    *result = (device_streams_result){.reads = 0};
    world self = {.result = result, .random = UINT64_C(0x9E3779B97F4A7C15)};
    vram_block held[HELD] = {{0}};
    bool done = open_world(&self, spec, arena_bytes, rounds, error);
    for (uint64_t round = 0; done && round < rounds && self.failed == 0; round++) {
        run_round(&self, round, held);
        if (round % ROUNDS_A_SYNC == ROUNDS_A_SYNC - 1)
            sync_all(&self);
    }
    if (done) {
        sync_all(&self);
        done = count_stale(&self, rounds, error);
    }
    if (done && self.failed != 0)
        done = vram_cudart_fail(error, self.failed_call, self.failed);
    close_world(&self);
    return done;
}
