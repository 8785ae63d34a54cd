/*
 * memory.h - a backend over an arena, for a program that knows pointers, streams and threads.
 *
 *   malloc(stream) -> wait list of this stream -> backend -> wait for events -> cudaMalloc, or stop
 *
 *   free           -> release, or onto the wait list behind an event of each stream in question
 *
 * A backend knows nothing of work that is still queued. While only one stream is in use, its order
 * makes early reuse safe. When a second one appears, the host waits once for the first; from then
 * on a freed block waits until every stream that may use it has passed an event
 * recorded at the free; only an allocation on the block's own stream may have it sooner, if no
 * other stream used it.
 *
 * All calls are safe from any thread.
 */
#ifndef VRAMLAB_TORCH_MEMORY_H
#define VRAMLAB_TORCH_MEMORY_H

#include <vramlab/backend.h>

typedef enum torch_on_full {
    TORCH_SPILL, /* take what does not fit from cudaMalloc */
    TORCH_STOP,  /* say why and end the process */
} torch_on_full;

typedef struct torch_settings {
    const char *backend; /* "tlsf" */
    const char *arena;   /* "cuda:70%", "cuda:16GiB", "host:2GiB" */
    const char *trace;   /* a file to record to; NULL: none */
    torch_on_full on_full;
} torch_settings;

typedef struct torch_stats {
    uint64_t allocations, frees;
    uint64_t live_bytes, peak_live_bytes;                /* requests rounded up to 512 */
    uint64_t peak_extent_bytes;                          /* highest address in the arena */
    uint64_t spilled, spilled_bytes, peak_spilled_bytes; /* taken from cudaMalloc */
    uint64_t refused;                                    /* the backend had no space at first */
    uint64_t reused;       /* taken from the wait list by the same stream */
    uint64_t delayed;      /* frees that had to wait for an event */
    uint64_t stream_waits; /* times the host waited for streams to make room */
    uint64_t streams;
    uint64_t unknown_frees;
} torch_stats;

typedef struct torch_memory torch_memory;

torch_memory *torch_memory_open(const torch_settings *settings, vram_error *error);
/* Ends the recording. The memory itself goes with the process: the device may be gone already. */
void torch_memory_finish(torch_memory *self);

/* NULL for size 0. Also when the request cannot be served, which is then said on stderr: the caller
 * must end the process, as PyTorch would go on with address 0. */
void *torch_memory_alloc(torch_memory *self, uint64_t size_bytes, void *stream);
void torch_memory_free(torch_memory *self, void *pointer);
/* Another stream uses the block too. */
void torch_memory_use(torch_memory *self, void *pointer, void *stream);
/* Waits for all streams, so that everything freed is free. */
void torch_memory_drain(torch_memory *self);

torch_stats torch_memory_stats(torch_memory *self);
/* One line for a person, and the same as JSON. */
void torch_memory_report(torch_memory *self, char *text, size_t size);
void torch_memory_json(torch_memory *self, char *text, size_t size);

#endif
