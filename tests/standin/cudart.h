/*
 * cudart.h - what tests may ask of the stand-in runtime, beside CUDA's own calls.
 */
#ifndef VRAMLAB_TESTS_STANDIN_H
#define VRAMLAB_TESTS_STANDIN_H

#include <stddef.h>
#include <stdint.h>

typedef struct standin_counts {
    uint64_t allocations, frees; /* cudaMalloc and cudaMallocAsync; cudaFree and cudaFreeAsync */
    uint64_t events;             /* recorded */
} standin_counts;

standin_counts standin_count(void);

/* A held stream's work stays outstanding until it is let go, or waited for. NULL: the default
 * stream. */
void standin_hold(void *stream, int held);

#endif
