/*
 * preload.c - libvramlab_record.so: writes down the memory that a CUDA program asks of the driver.
 *
 *     LD_PRELOAD=libvramlab_record.so VRAMLAB_TRACE=job.vt ./program
 *
 * Stands before cudaMalloc, cudaFree, cudaMallocAsync and cudaFreeAsync of the shared CUDA runtime,
 * passes each call on and logs it with its time and stream (default file: vramlab-PID.vt). A free
 * is logged before it is made and an allocation after, so that an address that another thread gets
 * at once is never live twice in the trace. A refused allocation is logged as such.
 *
 * A program that has the runtime linked into it (nvcc's default, cudart=static) makes no calls that
 * could be seen.
 */
#include "log.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { CUDA_UNIT = 256, NO_SYMBOL = 999 }; /* cudaMalloc's alignment; cudaErrorUnknown */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static trace_log *output;

/* The runtime's own calls; NULL where this version has none. */
static struct {
    int (*malloc)(void **pointer, size_t size);
    int (*free)(void *pointer);
    int (*malloc_async)(void **pointer, size_t size, void *stream);
    int (*malloc_async_ptsz)(void **pointer, size_t size, void *stream);
    int (*free_async)(void *pointer, void *stream);
    int (*free_async_ptsz)(void *pointer, void *stream);
} real;

/* A library of the runtime that is loaded, but not for everybody to see (as by Python). */
static int is_runtime(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    if (info->dlpi_name == NULL || strstr(info->dlpi_name, "libcudart") == NULL)
        return 0;
    *(void **)found = dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
    return *(void **)found != NULL;
}

/* Sets a call to the symbol that would have been called without us. ISO C has no cast from an
 * object's address to a function's; POSIX promises that this works. */
static void find(const char *name, void *call)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    void *library = NULL;
    if (symbol == NULL && dl_iterate_phdr(is_runtime, &library) != 0)
        symbol = dlsym(library, name);
    *(void **)call = symbol;
}

static void close_log(void)
{
    trace_log_close(output);
    output = NULL;
}

static void start(void)
{
    find("cudaMalloc", &real.malloc);
    find("cudaFree", &real.free);
    find("cudaMallocAsync", &real.malloc_async);
    find("cudaMallocAsync_ptsz", &real.malloc_async_ptsz);
    find("cudaFreeAsync", &real.free_async);
    find("cudaFreeAsync_ptsz", &real.free_async_ptsz);
    const char *path = getenv("VRAMLAB_TRACE");
    output = trace_log_open(path != NULL && path[0] != '\0' ? path : "vramlab-%p.vt", CUDA_UNIT);
    atexit(close_log);
}

static uint64_t number(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

/* Logs an allocation that was made; returns its result. */
static int logged(int result, void *const *pointer, size_t size, const void *stream)
{
    if (result != 0)
        trace_log_refused(output, size, number(stream));
    else if (size > 0)
        trace_log_alloc(output, number(*pointer), size, number(stream));
    return result;
}

static void log_free(const void *pointer)
{
    if (pointer != NULL)
        trace_log_free(output, number(pointer));
}

static int missing(const char *name)
{
    fprintf(stderr, "vramlab: %s was called, and no CUDA runtime has it\n", name);
    return NO_SYMBOL;
}

EXPORT int cudaMalloc(void **pointer, size_t size);
EXPORT int cudaFree(void *pointer);
EXPORT int cudaMallocAsync(void **pointer, size_t size, void *stream);
EXPORT int cudaMallocAsync_ptsz(void **pointer, size_t size, void *stream);
EXPORT int cudaFreeAsync(void *pointer, void *stream);
EXPORT int cudaFreeAsync_ptsz(void *pointer, void *stream);

int cudaMalloc(void **pointer, size_t size)
{
    pthread_once(&once, start);
    if (real.malloc == NULL)
        return missing("cudaMalloc");
    return logged(real.malloc(pointer, size), pointer, size, NULL);
}

int cudaFree(void *pointer)
{
    pthread_once(&once, start);
    log_free(pointer);
    return real.free != NULL ? real.free(pointer) : missing("cudaFree");
}

int cudaMallocAsync(void **pointer, size_t size, void *stream)
{
    pthread_once(&once, start);
    if (real.malloc_async == NULL)
        return missing("cudaMallocAsync");
    return logged(real.malloc_async(pointer, size, stream), pointer, size, stream);
}

int cudaMallocAsync_ptsz(void **pointer, size_t size, void *stream)
{
    pthread_once(&once, start);
    if (real.malloc_async_ptsz == NULL)
        return missing("cudaMallocAsync_ptsz");
    return logged(real.malloc_async_ptsz(pointer, size, stream), pointer, size, stream);
}

int cudaFreeAsync(void *pointer, void *stream)
{
    pthread_once(&once, start);
    log_free(pointer);
    return real.free_async != NULL ? real.free_async(pointer, stream) : missing("cudaFreeAsync");
}

int cudaFreeAsync_ptsz(void *pointer, void *stream)
{
    pthread_once(&once, start);
    log_free(pointer);
    return real.free_async_ptsz != NULL ? real.free_async_ptsz(pointer, stream)
                                        : missing("cudaFreeAsync_ptsz");
}
