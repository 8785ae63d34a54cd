/*
 * calls.h - a trace as an array of calls, as calls.c and threads.c share it.
 */
#ifndef VRAMLAB_DRIVER_CALLS_H
#define VRAMLAB_DRIVER_CALLS_H

#include <vramlab/driver.h>

typedef struct vram_call {
    uint64_t size_bytes; /* 0: release */
    uint32_t slot;
    uint8_t align_log2;
} vram_call;

struct vram_calls {
    vram_call *list;
    size_t count, capacity;
    vram_block *blocks; /* by slot */
    size_t slots;
    bool *live; /* by slot, while the calls are collected */
};

/* Makes the calls once, with these blocks; returns how many allocations were refused. */
uint64_t vram_calls_make(const vram_calls *calls, vram_backend *backend, vram_block *blocks);

#endif
