/* device_bench.c - see device_bench.h. */
#include "study/device_bench.h"

#include "arena/cudart.h"
#include "driver/histogram.h"
#include "study/draw.h"

#include <vramlab/registry.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

struct device_bench {
    const vram_cudart *runtime;
    vram_kernels *kernels;
    vram_cuda_stream stream; /* for the kernel in flight */
    uint64_t clock_cost_ns;
    vram_histogram alloc_ns, free_ns;
};

device_bench *device_bench_open(vram_error *error)
{
    const vram_cudart *runtime = vram_cudart_load(error);
    if (runtime == NULL)
        return NULL;
    device_bench *self = calloc(1, sizeof *self);
    if (self == NULL) {
        vram_fail(error, "out of host memory");
        return NULL;
    }
    self->runtime = runtime;
    self->clock_cost_ns = vram_clock_cost_ns();
    self->kernels = vram_kernels_load(error);
    if (self->kernels != NULL) {
        const int result = runtime->stream_create(&self->stream, VRAM_CUDA_NON_BLOCKING);
        if (result == 0)
            return self;
        vram_cudart_fail(error, "cudaStreamCreate", result);
    }
    device_bench_close(self);
    return NULL;
}

void device_bench_close(device_bench *self)
{
    if (self == NULL)
        return;
    if (self->stream != NULL)
        self->runtime->stream_destroy(self->stream);
    vram_kernels_unload(self->kernels);
    free(self);
}

void device_bench_machine(char *text, size_t size)
{
    char name[128];
    int driver = 0;
    int runtime = 0;
    const vram_cudart *calls = vram_cudart_load(NULL);
    vram_device_name(name, sizeof name);
    if (calls != NULL) {
        calls->driver_version(&driver);
        calls->runtime_version(&runtime);
    }
    snprintf(text, size, "%s, driver %d.%d, runtime %d.%d", name, driver / 1000, driver % 1000 / 10,
             runtime / 1000, runtime % 1000 / 10);
}

/* ------------------------------------------------------------------------------------------------
 * timed calls */

static void note(const device_bench *self, vram_histogram *times, uint64_t started_ns)
{
    const uint64_t took_ns = vram_now_ns() - started_ns;
    vram_histogram_add(times, took_ns > self->clock_cost_ns ? took_ns - self->clock_cost_ns : 0);
}

static bool timed_alloc(device_bench *self, vram_backend *backend, uint64_t size_bytes,
                        device_bench_row *row, vram_block *block)
{
    const vram_request request = {.size_bytes = size_bytes};
    row->operations++;
    const uint64_t started_ns = vram_now_ns();
    const vram_result result = vram_alloc(backend, request, block);
    note(self, &self->alloc_ns, started_ns);
    row->refused += result != VRAM_OK;
    return result == VRAM_OK;
}

static void timed_free(device_bench *self, vram_backend *backend, vram_block block,
                       device_bench_row *row)
{
    row->operations++;
    const uint64_t started_ns = vram_now_ns();
    vram_release(backend, block);
    note(self, &self->free_ns, started_ns);
}

/* ------------------------------------------------------------------------------------------------
 * workloads */

/* Sizes that are drawn log-uniformly, in multiples of a grain. */
typedef struct mix {
    uint64_t least_bytes, most_bytes, grain_bytes;
    uint64_t live;
} mix;

static const mix idle = {4096, 16 * MIB, 1, DEVICE_BENCH_LIVE};
static const mix large = {2 * MIB, 64 * MIB, 2 * MIB, 96};
enum { LARGE_SHARE = 5 }; /* of the rounds: a call may take 100 us */

static uint64_t draw_size(const mix *of, uint64_t *random)
{
    const uint64_t drawn_bytes =
        draw_log_uniform(random, (double)of->least_bytes, (double)of->most_bytes);
    return (drawn_bytes + of->grain_bytes / 2) / of->grain_bytes * of->grain_bytes;
}

/* Blocks at random take each other's place; the first rounds warm up and are not counted. */
static void run_mix(device_bench *self, vram_backend *backend, const mix *of, uint64_t rounds,
                    device_bench_row *row)
{
    vram_block blocks[DEVICE_BENCH_LIVE] = {{0}};
    uint64_t random = UINT64_C(0x9E3779B97F4A7C15);
    const uint64_t warm_up = 2 * of->live;
    for (uint64_t round = 0; round < warm_up + rounds; round++) {
        if (round == warm_up) {
            const uint64_t calls = vram_cudart_calls();
            *row = (device_bench_row){.workload = row->workload, .driver_calls = calls};
            self->alloc_ns = self->free_ns = (vram_histogram){0};
        }
        vram_block *block = &blocks[draw_below(&random, of->live)];
        if (block->handle != 0)
            timed_free(self, backend, *block, row);
        *block = (vram_block){0};
        timed_alloc(self, backend, draw_size(of, &random), row, block);
    }
    row->driver_calls = vram_cudart_calls() - row->driver_calls;
}

static bool run_busy(device_bench *self, vram_backend *backend, device_bench_row *row,
                     vram_error *error)
{
    const uint64_t calls = vram_cudart_calls();
    for (int round = 0; round < DEVICE_BENCH_BUSY_ROUNDS; round++) {
        const int launched = vram_kernels_spin(
            self->kernels, DEVICE_BENCH_KERNEL_MS * UINT64_C(1000000), self->stream);
        if (launched != 0)
            return vram_fail(error, "a kernel cannot be started (driver error %d)", launched);
        vram_block block;
        if (timed_alloc(self, backend, 2 * MIB, row, &block))
            timed_free(self, backend, block, row);
        const int result = self->runtime->stream_synchronize(self->stream);
        if (result != 0)
            return vram_cudart_fail(error, "cudaStreamSynchronize", result);
    }
    row->driver_calls = vram_cudart_calls() - calls;
    return true;
}

static bool run_same(device_bench *self, vram_backend *backend, uint64_t count, uint64_t size_bytes,
                     device_bench_row *row, vram_error *error)
{
    vram_block *blocks = calloc(count, sizeof *blocks);
    if (blocks == NULL)
        return vram_fail(error, "out of host memory");
    const uint64_t calls = vram_cudart_calls();
    const uint64_t started_ns = vram_now_ns();
    for (uint64_t i = 0; i < count; i++)
        timed_alloc(self, backend, size_bytes, row, &blocks[i]);
    row->alloc_total_ns = vram_now_ns() - started_ns;
    for (uint64_t i = 0; i < count; i++)
        if (blocks[i].handle != 0)
            timed_free(self, backend, blocks[i], row);
    row->driver_calls = vram_cudart_calls() - calls;
    free(blocks);
    return true;
}

static bool run(device_bench *self, vram_backend *backend, uint64_t rounds, device_bench_row *row,
                vram_error *error)
{
    const char *name = row->workload;
    if (strcmp(name, "busy") == 0)
        return run_busy(self, backend, row, error);
    if (strcmp(name, "one") == 0)
        return run_same(self, backend, 1, 1024 * MIB, row, error);
    if (strcmp(name, "many") == 0)
        return run_same(self, backend, 1024, MIB, row, error);
    const bool is_large = strcmp(name, "large") == 0;
    run_mix(self, backend, is_large ? &large : &idle, is_large ? rounds / LARGE_SHARE : rounds,
            row);
    return true;
}

bool device_bench_run(device_bench *self, const char *spec, uint64_t arena_bytes, uint64_t rounds,
                      device_bench_row rows[DEVICE_BENCH_ROWS], vram_error *error)
{
    static const char *const names[DEVICE_BENCH_ROWS] = {"idle", "large", "busy", "one", "many"};
    bool done = true;
    for (int k = 0; done && k < DEVICE_BENCH_ROWS; k++) {
        const vram_config config = {.arena_bytes = arena_bytes, .unit_bytes = 512};
        vram_backend *backend = NULL;
        if (!vram_create_from_text(spec, &config, &backend, error))
            return false;
        rows[k] = (device_bench_row){.workload = names[k]};
        self->alloc_ns = self->free_ns = (vram_histogram){0};
        done = run(self, backend, rounds, &rows[k], error);
        rows[k].alloc_ns = vram_histogram_summary(&self->alloc_ns);
        rows[k].free_ns = vram_histogram_summary(&self->free_ns);
        vram_destroy(backend);
    }
    return done;
}
