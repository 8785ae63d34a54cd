/*
 * histogram.c - latencies in log-linear buckets.
 *
 *   bucket  0 .. 31 | 32 .. 63 | 64 .. 95 | ...        32 a power of two
 *   from     0   31 | 32    63 | 64   126 | 128 ...    in ns
 *   width         1 |        1 |        2 |   4 ...
 */
#include "histogram.h"

enum { SUB_COUNT = 1 << VRAM_HISTOGRAM_SUB_BITS };

static uint32_t bucket_of(uint64_t ns)
{
    if (ns < SUB_COUNT)
        return (uint32_t)ns;
    const uint32_t top_bit = 63 - (uint32_t)__builtin_clzll(ns);
    const uint32_t shift = top_bit - VRAM_HISTOGRAM_SUB_BITS;
    return (shift << VRAM_HISTOGRAM_SUB_BITS) + (uint32_t)(ns >> shift);
}

static uint64_t last_ns_of(uint32_t bucket)
{
    if (bucket < SUB_COUNT)
        return bucket;
    const uint32_t shift = (bucket >> VRAM_HISTOGRAM_SUB_BITS) - 1;
    const uint64_t sub = bucket - (shift << VRAM_HISTOGRAM_SUB_BITS);
    return (sub << shift) + ((UINT64_C(1) << shift) - 1);
}

void vram_histogram_add(vram_histogram *self, uint64_t ns)
{
    self->calls++;
    self->total_ns += ns;
    if (ns > self->max_ns)
        self->max_ns = ns;
    self->bucket_calls[bucket_of(ns)]++;
}

void vram_histogram_merge(vram_histogram *self, const vram_histogram *other)
{
    self->calls += other->calls;
    self->total_ns += other->total_ns;
    if (other->max_ns > self->max_ns)
        self->max_ns = other->max_ns;
    for (uint32_t bucket = 0; bucket < VRAM_HISTOGRAM_BUCKETS; bucket++)
        self->bucket_calls[bucket] += other->bucket_calls[bucket];
}

uint64_t vram_histogram_percentile(const vram_histogram *self, double share)
{
    const double wanted_calls = share * (double)self->calls;
    uint64_t calls = 0;
    for (uint32_t bucket = 0; bucket < VRAM_HISTOGRAM_BUCKETS; bucket++) {
        calls += self->bucket_calls[bucket];
        if (calls > 0 && (double)calls >= wanted_calls) {
            const uint64_t last_ns = last_ns_of(bucket);
            return last_ns < self->max_ns ? last_ns : self->max_ns;
        }
    }
    return self->max_ns;
}

vram_latency vram_histogram_summary(const vram_histogram *self)
{
    if (self->calls == 0)
        return (vram_latency){0};
    return (vram_latency){
        .calls = self->calls,
        .mean_ns = (double)self->total_ns / (double)self->calls,
        .p50_ns = vram_histogram_percentile(self, 0.5),
        .p99_ns = vram_histogram_percentile(self, 0.99),
        .p999_ns = vram_histogram_percentile(self, 0.999),
        .max_ns = self->max_ns,
    };
}

uint64_t vram_clock_cost_ns(void)
{
    uint64_t least_ns = UINT64_MAX;
    for (uint32_t pair = 0; pair < 1000; pair++) {
        const uint64_t begin_ns = vram_now_ns();
        const uint64_t spent_ns = vram_now_ns() - begin_ns;
        if (spent_ns < least_ns)
            least_ns = spent_ns;
    }
    return least_ns;
}
