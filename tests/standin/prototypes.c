/*
 * prototypes.c - our declarations of the CUDA runtime against its own headers, where they are
 * found.
 *
 * Compiling it is the test: an enumerator or a prototype that differs does not compile. An enum of
 * the runtime is an int to us, which the calling convention does not tell apart.
 */
#include "arena/cudart.h"

#include <cuda_runtime_api.h>

_Static_assert(VRAM_CUDA_OUT_OF_MEMORY == (int)cudaErrorMemoryAllocation, "error number");
_Static_assert(VRAM_CUDA_NOT_READY == (int)cudaErrorNotReady, "error number");
_Static_assert(VRAM_CUDA_COPY == (int)cudaMemcpyDefault, "kind of copy");
_Static_assert(VRAM_CUDA_NON_BLOCKING == (int)cudaStreamNonBlocking, "stream flag");
_Static_assert(VRAM_CUDA_NO_TIMING == (int)cudaEventDisableTiming, "event flag");
_Static_assert(VRAM_CUDA_POOL_FOLLOW_EVENTS == (int)cudaMemPoolReuseFollowEventDependencies,
               "pool");
_Static_assert(VRAM_CUDA_POOL_OPPORTUNISTIC == (int)cudaMemPoolReuseAllowOpportunistic, "pool");
_Static_assert(VRAM_CUDA_POOL_INTERNAL == (int)cudaMemPoolReuseAllowInternalDependencies, "pool");
_Static_assert(VRAM_CUDA_POOL_THRESHOLD == (int)cudaMemPoolAttrReleaseThreshold, "pool");
_Static_assert(VRAM_CUDA_POOL_RESERVED == (int)cudaMemPoolAttrReservedMemCurrent, "pool");
_Static_assert(sizeof(cudaError_t) == sizeof(int), "errors travel as int");
_Static_assert(sizeof(cudaStream_t) == sizeof(vram_cuda_stream), "streams travel as pointers");
_Static_assert(sizeof(cudaEvent_t) == sizeof(vram_cuda_event), "events travel as pointers");

/* The runtime's own types of the calls that we declare. */
#define SAME(call, ...)                                                                            \
    _Static_assert(_Generic(&call, cudaError_t(*)(__VA_ARGS__) : 1, default : 0), #call)

SAME(cudaGetDeviceCount, int *);
SAME(cudaGetDevice, int *);
SAME(cudaSetDevice, int);
SAME(cudaDeviceSynchronize, void);
SAME(cudaRuntimeGetVersion, int *);
SAME(cudaDriverGetVersion, int *);
SAME(cudaMemGetInfo, size_t *, size_t *);
SAME(cudaMalloc, void **, size_t);
SAME(cudaFree, void *);
SAME(cudaMemcpy, void *, const void *, size_t, enum cudaMemcpyKind);
SAME(cudaMemcpyAsync, void *, const void *, size_t, enum cudaMemcpyKind, cudaStream_t);
SAME(cudaStreamCreateWithFlags, cudaStream_t *, unsigned);
SAME(cudaStreamDestroy, cudaStream_t);
SAME(cudaStreamSynchronize, cudaStream_t);
SAME(cudaStreamQuery, cudaStream_t);
SAME(cudaStreamWaitEvent, cudaStream_t, cudaEvent_t, unsigned);
SAME(cudaEventCreateWithFlags, cudaEvent_t *, unsigned);
SAME(cudaEventRecord, cudaEvent_t, cudaStream_t);
SAME(cudaEventQuery, cudaEvent_t);
SAME(cudaEventSynchronize, cudaEvent_t);
SAME(cudaEventDestroy, cudaEvent_t);
SAME(cudaMallocAsync, void **, size_t, cudaStream_t);
SAME(cudaFreeAsync, void *, cudaStream_t);
SAME(cudaDeviceGetDefaultMemPool, cudaMemPool_t *, int);
SAME(cudaMemPoolSetAttribute, cudaMemPool_t, enum cudaMemPoolAttr, void *);
SAME(cudaMemPoolGetAttribute, cudaMemPool_t, enum cudaMemPoolAttr, void *);
SAME(cudaMemPoolTrimTo, cudaMemPool_t, size_t);
SAME(cudaGetLastError, void);
