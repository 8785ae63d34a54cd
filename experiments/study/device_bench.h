/*
 * device_bench.h - what an allocation costs on a card: backends over one arena, and the driver's
 * own allocators, one after the other in one process.
 *
 *   idle     a mix of sizes (4 KiB to 16 MiB, log-uniform), 256 live, each call timed
 *   large    the same with multiples of 2 MiB from 2 to 64 MiB, 96 live: cudaMalloc takes memory in
 *            pages of 2 MiB and cuts smaller requests out of those it holds, so that only from here
 *            on each of its calls does the whole work
 *   busy     one allocation and one free of 2 MiB while a kernel of 5 ms is in flight
 *   one      1 GiB in one allocation; beside it
 *   many     1024 allocations of 1 MiB: the time is of all together
 *
 * A call that waits for the card shows in `busy`: it takes milliseconds.
 */
#ifndef VRAMLAB_DEVICE_BENCH_H
#define VRAMLAB_DEVICE_BENCH_H

#include <vramlab/driver.h>

enum {
    DEVICE_BENCH_LIVE = 256, /* of idle, the most of all */
    DEVICE_BENCH_BUSY_ROUNDS = 40,
    DEVICE_BENCH_KERNEL_MS = 5,
};

typedef struct device_bench_row {
    const char *workload; /* "idle", "large", "busy", "one", "many" */
    uint64_t operations;  /* allocations and frees */
    uint64_t refused;
    uint64_t driver_calls; /* cudaMalloc, cudaFree and their asynchronous kin */
    vram_latency alloc_ns, free_ns;
    uint64_t alloc_total_ns; /* of all allocations together */
} device_bench_row;

enum { DEVICE_BENCH_ROWS = 5 };

typedef struct device_bench device_bench;

/* Takes what the backends need of the card: nothing but kernels. NULL with a message otherwise. */
device_bench *device_bench_open(vram_error *error);
void device_bench_close(device_bench *self); /* NULL is allowed */

/* Runs all workloads on a fresh backend for each. rounds: allocations and frees of `idle`; `large`
 * makes a fifth of them. */
bool device_bench_run(device_bench *self, const char *spec, uint64_t arena_bytes, uint64_t rounds,
                      device_bench_row rows[DEVICE_BENCH_ROWS], vram_error *error);

/* "NVIDIA H200, driver 13.0, runtime 13.0" */
void device_bench_machine(char *text, size_t size);

#endif
