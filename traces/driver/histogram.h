/*
 * histogram.h - latencies counted in buckets whose width grows with the value, and the clock.
 *
 * Values below 32 ns have a bucket each; above, every power of two is cut into 32, so that a
 * percentile is right to 1/32. Adding costs a handful of instructions, whatever the value.
 */
#ifndef VRAMLAB_DRIVER_HISTOGRAM_H
#define VRAMLAB_DRIVER_HISTOGRAM_H

#include <time.h>
#include <vramlab/driver.h>

enum {
    VRAM_HISTOGRAM_SUB_BITS = 5,
    VRAM_HISTOGRAM_BUCKETS = (64 - VRAM_HISTOGRAM_SUB_BITS + 1) << VRAM_HISTOGRAM_SUB_BITS,
};

/* Zeroed storage is an empty histogram. */
typedef struct vram_histogram {
    uint64_t calls;
    uint64_t total_ns;
    uint64_t max_ns;
    uint64_t bucket_calls[VRAM_HISTOGRAM_BUCKETS];
} vram_histogram;

void vram_histogram_add(vram_histogram *self, uint64_t ns);
void vram_histogram_merge(vram_histogram *self, const vram_histogram *other);

/* The least value that at least `share` of the calls did not exceed; 0 when there were none. */
uint64_t vram_histogram_percentile(const vram_histogram *self, double share);
vram_latency vram_histogram_summary(const vram_histogram *self);

static inline uint64_t vram_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* What reading the clock twice costs: the least of many pairs, to be taken off each latency. */
uint64_t vram_clock_cost_ns(void);

#endif
