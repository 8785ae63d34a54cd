/*
 * cudart.h - the CUDA runtime as a table of calls, loaded when it is asked for; not installed.
 *
 * Nothing is linked: the same program runs where there is no card, and says so when one is asked
 * for. The prototypes are our own; where CMake finds the runtime's headers, a test compares them.
 * VRAMLAB_CUDART names a library to load instead, which stands in for runtime and driver.
 */
#ifndef VRAMLAB_ARENA_CUDART_H
#define VRAMLAB_ARENA_CUDART_H

#include <vramlab/text.h>

typedef void *vram_cuda_stream; /* NULL: the default stream */
typedef void *vram_cuda_event;
typedef void *vram_cuda_pool;

enum {
    VRAM_CUDA_OUT_OF_MEMORY = 2, /* cudaErrorMemoryAllocation */
    VRAM_CUDA_NOT_READY = 600,   /* cudaErrorNotReady */
    VRAM_CUDA_COPY = 4,          /* cudaMemcpyDefault: the direction follows from the pointers */
    VRAM_CUDA_NON_BLOCKING = 1,  /* cudaStreamNonBlocking */
    VRAM_CUDA_NO_TIMING = 2,     /* cudaEventDisableTiming */
};

/* cudaMemPoolAttr */
enum {
    VRAM_CUDA_POOL_FOLLOW_EVENTS = 1,
    VRAM_CUDA_POOL_OPPORTUNISTIC = 2,
    VRAM_CUDA_POOL_INTERNAL = 3,
    VRAM_CUDA_POOL_THRESHOLD = 4,
    VRAM_CUDA_POOL_RESERVED = 5,
};

/* Each returns 0 (cudaSuccess) or an error's number. */
typedef struct vram_cudart {
    int (*get_device_count)(int *count);
    int (*get_device)(int *device);
    int (*set_device)(int device);
    int (*device_synchronize)(void);
    int (*runtime_version)(int *version);
    int (*driver_version)(int *version);
    int (*mem_get_info)(size_t *free_bytes, size_t *total_bytes);
    int (*malloc)(void **pointer, size_t size_bytes);
    int (*free)(void *pointer);
    int (*memcpy)(void *to, const void *from, size_t size_bytes, int kind);
    int (*memcpy_async)(void *to, const void *from, size_t size_bytes, int kind,
                        vram_cuda_stream stream);
    int (*stream_create)(vram_cuda_stream *stream, unsigned flags);
    int (*stream_destroy)(vram_cuda_stream stream);
    int (*stream_synchronize)(vram_cuda_stream stream);
    int (*stream_query)(vram_cuda_stream stream);
    int (*stream_wait_event)(vram_cuda_stream stream, vram_cuda_event event, unsigned flags);
    int (*event_create)(vram_cuda_event *event, unsigned flags);
    int (*event_record)(vram_cuda_event event, vram_cuda_stream stream);
    int (*event_query)(vram_cuda_event event);
    int (*event_synchronize)(vram_cuda_event event);
    int (*event_destroy)(vram_cuda_event event);
    int (*malloc_async)(void **pointer, size_t size_bytes, vram_cuda_stream stream);
    int (*free_async)(void *pointer, vram_cuda_stream stream);
    int (*default_pool)(vram_cuda_pool *pool, int device);
    int (*pool_set)(vram_cuda_pool pool, int attribute, void *value);
    int (*pool_get)(vram_cuda_pool pool, int attribute, void *value);
    int (*pool_trim)(vram_cuda_pool pool, size_t keep_bytes);
    const char *(*error_text)(int error);
    int (*last_error)(void); /* and clears it */
} vram_cudart;

/* The runtime, with at least one device; NULL with a message otherwise. Loaded once and kept. */
const vram_cudart *vram_cudart_load(vram_error *error);

/* How often this process has called cudaMalloc, cudaFree and their asynchronous kin through the
 * table. */
uint64_t vram_cudart_calls(void);

/* "cudaMalloc: out of memory (2)"; returns false. */
bool vram_cudart_fail(vram_error *error, const char *call, int result);

/* ---- our kernels, through the driver's interface ---- */

typedef struct vram_kernels vram_kernels;

/* Translates the kernels for the current device; NULL with a message otherwise. */
vram_kernels *vram_kernels_load(vram_error *error);
void vram_kernels_unload(vram_kernels *self); /* NULL is allowed */

/* All are queued on the stream; `found` is a device address whose value is lowered. 0 or an error
 * of the driver. */
int vram_kernels_fill(vram_kernels *self, uint64_t address, uint64_t size_bytes, uint64_t first,
                      vram_cuda_stream stream);
int vram_kernels_compare(vram_kernels *self, uint64_t address, uint64_t size_bytes, uint64_t first,
                         uint64_t found, vram_cuda_stream stream);
int vram_kernels_spin(vram_kernels *self, uint64_t ns, vram_cuda_stream stream);

/* The name of the current device, "" when it cannot be told. */
void vram_device_name(char *name, size_t size);

#endif
