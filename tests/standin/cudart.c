/*
 * cudart.c - stands in for the CUDA runtime and driver where there is no card: device memory is
 * host memory, kernels run when they are launched.
 *
 * STANDIN_BYTES is the size of the card (default 4 GiB). What a stream was given is done at once,
 * unless the stream is held: then its events complete when it is let go, which is how tests make
 * work outstanding.
 */
#include "standin/cudart.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

enum { OUT_OF_MEMORY = 2, INVALID = 1, NOT_READY = 600 };
enum { MOST_BLOCKS = 1 << 16 };

typedef struct stream {
    uint64_t given, done;
    bool held;
} stream;

typedef struct event {
    stream *on;
    uint64_t ticket;
} event;

typedef struct block {
    char *address;
    size_t size;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static stream default_stream;
static block blocks[MOST_BLOCKS];
static size_t used_bytes;
static standin_counts counts;
static uint64_t pool_attributes[16];

static size_t card_bytes(void)
{
    const char *text = getenv("STANDIN_BYTES");
    return text != NULL ? strtoull(text, NULL, 10) : (size_t)4 << 30;
}

/* ------------------------------------------------------------------------------------------------
 * for tests */

EXPORT standin_counts standin_count(void)
{
    pthread_mutex_lock(&lock);
    const standin_counts now = counts;
    pthread_mutex_unlock(&lock);
    return now;
}

EXPORT void standin_hold(void *of, int held)
{
    stream *s = of == NULL ? &default_stream : of;
    pthread_mutex_lock(&lock);
    s->held = held != 0;
    if (!s->held)
        s->done = s->given;
    pthread_mutex_unlock(&lock);
}

/* ------------------------------------------------------------------------------------------------
 * devices and memory */

EXPORT int cudaGetDeviceCount(int *count)
{
    *count = 1;
    return 0;
}

EXPORT int cudaGetDevice(int *device)
{
    *device = 0;
    return 0;
}

EXPORT int cudaSetDevice(int device)
{
    return device == 0 ? 0 : 101;
}

EXPORT int cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

EXPORT int cudaDriverGetVersion(int *version)
{
    return cudaRuntimeGetVersion(version);
}

EXPORT int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *total_bytes = card_bytes();
    *free_bytes = *total_bytes - used_bytes;
    return 0;
}

static int take(void **pointer, size_t size)
{
    pthread_mutex_lock(&lock);
    counts.allocations++;
    size_t slot = 0;
    while (slot < MOST_BLOCKS && blocks[slot].address != NULL)
        slot++;
    int result = OUT_OF_MEMORY;
    *pointer = NULL;
    if (slot < MOST_BLOCKS && size <= card_bytes() - used_bytes) {
        char *address = mmap(NULL, size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (address != MAP_FAILED) {
            blocks[slot] = (block){address, size};
            used_bytes += size;
            *pointer = address;
            result = 0;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static int give(void *pointer)
{
    if (pointer == NULL)
        return 0;
    pthread_mutex_lock(&lock);
    counts.frees++;
    int result = INVALID;
    for (size_t slot = 0; slot < MOST_BLOCKS && result != 0; slot++)
        if (blocks[slot].address == pointer) {
            munmap(blocks[slot].address, blocks[slot].size);
            used_bytes -= blocks[slot].size;
            blocks[slot].address = NULL;
            result = 0;
        }
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT int cudaMalloc(void **pointer, size_t size)
{
    return take(pointer, size);
}

EXPORT int cudaFree(void *pointer)
{
    return give(pointer);
}

EXPORT int cudaMemcpy(void *to, const void *from, size_t size, int kind)
{
    (void)kind;
    memcpy(to, from, size);
    return 0;
}

EXPORT int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *on)
{
    (void)on;
    return cudaMemcpy(to, from, size, kind);
}

/* ------------------------------------------------------------------------------------------------
 * streams and events */

EXPORT int cudaDeviceSynchronize(void)
{
    return 0;
}

EXPORT int cudaStreamCreateWithFlags(void **out, unsigned flags)
{
    (void)flags;
    *out = calloc(1, sizeof(stream));
    return *out != NULL ? 0 : OUT_OF_MEMORY;
}

EXPORT int cudaStreamDestroy(void *of)
{
    free(of);
    return 0;
}

static void finish(stream *s)
{
    pthread_mutex_lock(&lock);
    s->done = s->given;
    pthread_mutex_unlock(&lock);
}

EXPORT int cudaStreamSynchronize(void *of)
{
    finish(of == NULL ? &default_stream : of);
    return 0;
}

EXPORT int cudaStreamQuery(void *of)
{
    const stream *s = of == NULL ? &default_stream : of;
    pthread_mutex_lock(&lock);
    const bool done = s->done >= s->given;
    pthread_mutex_unlock(&lock);
    return done ? 0 : NOT_READY;
}

EXPORT int cudaStreamWaitEvent(void *of, void *waits_for, unsigned flags)
{
    (void)of;
    (void)waits_for;
    (void)flags;
    return 0;
}

EXPORT int cudaEventCreateWithFlags(void **out, unsigned flags)
{
    (void)flags;
    *out = calloc(1, sizeof(event));
    return *out != NULL ? 0 : OUT_OF_MEMORY;
}

EXPORT int cudaEventRecord(void *of, void *on)
{
    event *e = of;
    pthread_mutex_lock(&lock);
    counts.events++;
    e->on = on == NULL ? &default_stream : on;
    e->ticket = ++e->on->given;
    if (!e->on->held)
        e->on->done = e->on->given;
    pthread_mutex_unlock(&lock);
    return 0;
}

EXPORT int cudaEventQuery(void *of)
{
    const event *e = of;
    pthread_mutex_lock(&lock);
    const bool done = e->on == NULL || e->on->done >= e->ticket;
    pthread_mutex_unlock(&lock);
    return done ? 0 : NOT_READY;
}

EXPORT int cudaEventSynchronize(void *of)
{
    const event *e = of;
    if (e->on != NULL)
        finish(e->on);
    return 0;
}

EXPORT int cudaEventDestroy(void *of)
{
    free(of);
    return 0;
}

/* ------------------------------------------------------------------------------------------------
 * memory in stream order, and pools */

EXPORT int cudaMallocAsync(void **pointer, size_t size, void *on)
{
    (void)on;
    return take(pointer, size);
}

EXPORT int cudaFreeAsync(void *pointer, void *on)
{
    (void)on;
    return give(pointer);
}

EXPORT int cudaDeviceGetDefaultMemPool(void **pool, int device)
{
    (void)device;
    *pool = pool_attributes;
    return 0;
}

/* The first three are ints, the others 64-bit numbers, as in the runtime. */
EXPORT int cudaMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    uint64_t *attributes = pool;
    if (attribute <= 3)
        attributes[attribute] = (uint64_t) * (int *)value;
    else
        attributes[attribute] = *(uint64_t *)value;
    return 0;
}

EXPORT int cudaMemPoolGetAttribute(void *pool, int attribute, void *value)
{
    const uint64_t *attributes = pool;
    if (attribute <= 3)
        *(int *)value = (int)attributes[attribute];
    else
        *(uint64_t *)value = attributes[attribute];
    return 0;
}

EXPORT int cudaMemPoolTrimTo(void *pool, size_t keep)
{
    (void)pool;
    (void)keep;
    return 0;
}

EXPORT const char *cudaGetErrorString(int error)
{
    return error == 0 ? "no error" : error == OUT_OF_MEMORY ? "out of memory" : "an error";
}

EXPORT int cudaGetLastError(void)
{
    return 0;
}

/* ------------------------------------------------------------------------------------------------
 * the driver: a function is its name */

EXPORT int cuModuleLoadData(void **module, const void *image)
{
    *module = strstr(image, ".entry") != NULL ? &counts : NULL;
    return *module != NULL ? 0 : 218;
}

EXPORT int cuModuleUnload(void *module)
{
    (void)module;
    return 0;
}

EXPORT int cuModuleGetFunction(void **function, void *module, const char *name)
{
    static const char *const names[] = {"vram_fill", "vram_compare", "vram_spin"};
    (void)module;
    for (size_t i = 0; i < 3; i++)
        if (strcmp(names[i], name) == 0) {
            *function = (void *)(uintptr_t)names[i];
            return 0;
        }
    return 500;
}

/* The pattern from a word on, as many bytes as there are. */
static uint64_t word_at(uint64_t first, uint64_t index)
{
    return first + index * UINT64_C(0x9E3779B97F4A7C15);
}

static void fill(uint8_t *bytes, uint64_t size, uint64_t first)
{
    for (uint64_t at = 0; at < size; at += 8) {
        const uint64_t word = word_at(first, at / 8);
        memcpy(bytes + at, &word, size - at < 8 ? size - at : 8);
    }
}

static uint64_t first_difference(const uint8_t *bytes, uint64_t size, uint64_t first)
{
    for (uint64_t at = 0; at < size; at += 8) {
        const uint64_t word = word_at(first, at / 8);
        const uint64_t count = size - at < 8 ? size - at : 8;
        if (memcmp(bytes + at, &word, count) == 0)
            continue;
        uint64_t same = 0;
        while (bytes[at + same] == ((const uint8_t *)&word)[same])
            same++;
        return at + same;
    }
    return UINT64_MAX;
}

EXPORT int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                          void *on, void **parameters, void **extra)
{
    (void)grid_y, (void)grid_z, (void)block_y, (void)block_z, (void)shared, (void)on, (void)extra;
    if (grid_x == 0 || block_x == 0)
        return INVALID;
    if (strcmp(function, "vram_spin") == 0)
        return 0;
    uint8_t *bytes = (uint8_t *)(uintptr_t) * (uint64_t *)parameters[0];
    const uint64_t size = *(uint64_t *)parameters[1];
    const uint64_t first = *(uint64_t *)parameters[2];
    if (strcmp(function, "vram_fill") == 0) {
        fill(bytes, size, first);
        return 0;
    }
    uint64_t *found = (uint64_t *)(uintptr_t) * (uint64_t *)parameters[3];
    const uint64_t at = first_difference(bytes, size, first);
    *found = at < *found ? at : *found;
    return 0;
}

EXPORT int cuCtxGetDevice(int *device)
{
    *device = 0;
    return 0;
}

EXPORT int cuDeviceGetName(char *name, int size, int device)
{
    (void)device;
    strncpy(name, "stand-in", (size_t)size);
    return 0;
}
