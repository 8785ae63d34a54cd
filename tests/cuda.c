/*
 * cuda.c - the arena on a device and the driver's own allocators, on a runtime that stands in.
 *
 * Each Criterion test is a process of its own, so each loads the runtime that its environment
 * names.
 */
#include <vramlab/driver.h>
#include <vramlab/registry.h>

#include "standin/cudart.h"
#include "study/device_bench.h"
#include "study/device_streams.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

static void stand_in(const char *card_bytes)
{
    setenv("VRAMLAB_CUDART", STANDIN, 1);
    setenv("STANDIN_BYTES", card_bytes, 1);
    unsetenv("VRAMLAB_FORCE");
}

static standin_counts counts(void)
{
    standin_counts (*count)(void);
    *(void **)(void *)&count = dlsym(dlopen(STANDIN, RTLD_NOW), "standin_count");
    return count();
}

static vram_arena *arena_of(uint64_t size_bytes)
{
    vram_arena *arena = NULL;
    vram_error error = {""};
    cr_assert(vram_arena_create("cuda", size_bytes, &arena, &error), "%s", error.text);
    return arena;
}

static uint64_t compared(vram_arena *arena, uint64_t at, uint64_t size_bytes, uint64_t seed)
{
    uint64_t differs_at = 0;
    vram_error error = {""};
    cr_assert(arena->ops->compare(arena, at, size_bytes, seed, &differs_at, &error), "%s",
              error.text);
    return differs_at;
}

static void filled(vram_arena *arena, uint64_t at, uint64_t size_bytes, uint64_t seed)
{
    vram_error error = {""};
    cr_assert(arena->ops->fill(arena, at, size_bytes, seed, &error), "%s", error.text);
}

Test(cuda, without_a_runtime_an_arena_is_refused_by_name)
{
    setenv("VRAMLAB_CUDART", "/nowhere/libcudart.so", 1);
    vram_arena *arena = NULL;
    vram_backend *backend = NULL;
    vram_error error = {""};
    cr_expect(not(vram_arena_create("cuda", MIB, &arena, &error)));
    cr_expect(ne(ptr, strstr(error.text, "/nowhere/libcudart.so"), NULL), "%s", error.text);
    cr_expect(not(
        vram_create_from_text("cudamalloc", &(vram_config){.arena_bytes = MIB}, &backend, &error)));
    cr_expect(ne(ptr, strstr(error.text, "cudamalloc is the CUDA driver"), NULL), "%s", error.text);
}

Test(cuda, a_library_that_is_no_runtime_is_named_with_what_it_lacks)
{
    setenv("VRAMLAB_CUDART", "libm.so.6", 1);
    vram_arena *arena = NULL;
    vram_error error = {""};
    cr_expect(not(vram_arena_create("cuda", MIB, &arena, &error)));
    cr_expect(ne(ptr, strstr(error.text, "libm.so.6 has no cudaGetDeviceCount"), NULL), "%s",
              error.text);
}

Test(cuda, more_than_four_fifths_of_the_card_need_force)
{
    stand_in("1000000000");
    vram_arena *arena = NULL;
    vram_error error = {""};
    cr_expect(not(vram_arena_create("cuda", 800000001, &arena, &error)));
    cr_expect(ne(ptr, strstr(error.text, "VRAMLAB_FORCE=1"), NULL), "%s", error.text);
    vram_arena_destroy(arena_of(800000000));
    setenv("VRAMLAB_FORCE", "1", 1);
    vram_arena_destroy(arena_of(900000000));
    cr_expect(not(vram_arena_create("cuda", 1000000001, &arena, &error)));
    cr_expect(ne(ptr, strstr(error.text, "out of memory"), NULL), "%s", error.text);
    cr_expect(eq(u64, counts().allocations - 1, counts().frees)); /* the refused one */
}

Test(cuda, one_call_of_the_driver_makes_the_arena)
{
    stand_in("4294967296");
    vram_arena *arena = arena_of(64 * MIB);
    vram_backend *backend = NULL;
    vram_error error = {""};
    cr_assert(
        vram_create_from_text("list", &(vram_config){.arena_bytes = 64 * MIB}, &backend, &error));
    const standin_counts before = counts();
    for (int i = 0; i < 100; i++) {
        vram_block block;
        cr_assert(
            eq(int, vram_alloc(backend, (vram_request){.size_bytes = 5000}, &block), VRAM_OK));
    }
    cr_expect(eq(u64, counts().allocations, before.allocations));
    cr_expect(eq(u64, before.allocations, 1));
    vram_destroy(backend);
    vram_arena_destroy(arena);
}

Test(cuda, patterns_are_written_and_a_changed_byte_is_found)
{
    stand_in("4294967296");
    static const uint64_t sizes[] = {1, 7, 8, 9, 511, 512, 4097, 65536};
    vram_arena *arena = arena_of(MIB);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint64_t at = 0; at < 16; at += 5) {
            filled(arena, at, sizes[i], 42 + i);
            cr_expect(eq(u64, compared(arena, at, sizes[i], 42 + i), UINT64_MAX));
            cr_expect(ne(u64, compared(arena, at, sizes[i], 43 + i), UINT64_MAX));
            unsigned char *base = arena->ops->base(arena);
            const uint64_t broken = at + sizes[i] - 1;
            base[broken] ^= 1;
            cr_expect(eq(u64, compared(arena, at, sizes[i], 42 + i), broken));
        }
    vram_arena_destroy(arena);
}

Test(cuda, moves_keep_the_bytes_also_when_they_overlap)
{
    stand_in("4294967296");
    static const struct {
        uint64_t from, to, size_bytes;
    } rows[] = {
        {100 * MIB, 0, 70 * MIB},     /* apart */
        {40 * MIB, 0, 100 * MIB},     /* down, overlapping by more than the bounce buffer */
        {512, 0, 90 * MIB + 3},       /* down by one unit */
        {0, 40 * MIB + 1, 100 * MIB}, /* up */
    };
    vram_arena *arena = arena_of(256 * MIB);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        vram_error error = {""};
        filled(arena, rows[i].from, rows[i].size_bytes, i);
        cr_assert(arena->ops->move(arena, rows[i].to, rows[i].from, rows[i].size_bytes, &error),
                  "%s", error.text);
        cr_expect(eq(u64, compared(arena, rows[i].to, rows[i].size_bytes, i), UINT64_MAX),
                  "row %zu", i);
    }
    vram_arena_destroy(arena);
}

Test(cuda, a_verified_replay_runs_on_the_device)
{
    stand_in("4294967296");
    static const char *const specs[] = {"list", "tlsf", "buddy", "caching"};
    vram_trace *trace = NULL;
    vram_error error = {""};
    cr_assert(vram_trace_open("generate:mix,ops=2000,live=200", NULL, &trace, &error), "%s",
              error.text);
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        vram_backend *backend = NULL;
        vram_arena *arena = arena_of(256 * MIB);
        cr_assert(vram_create_from_text(specs[i], &(vram_config){.arena_bytes = 256 * MIB},
                                        &backend, &error),
                  "%s", error.text);
        vram_replay_result result;
        const vram_replay_options how = {
            .verify = true, .arena = arena, .look_at_event = UINT64_MAX, .check_every = 50};
        cr_assert(vram_replay(trace, backend, &how, &result, &error), "%s: %s", specs[i],
                  error.text);
        cr_expect(result.completed, "%s", specs[i]);
        vram_destroy(backend);
        vram_arena_destroy(arena);
    }
    vram_trace_close(trace);
}

/* That it finds stale bytes shows only on a card, where streams run on their own. */
Test(cuda, streams_ask_for_waits_when_memory_is_short)
{
    stand_in("4294967296");
    device_streams_result found;
    vram_error error = {""};
    cr_assert(device_streams_run("list+stream", 16 * MIB, 400, &found, &error), "%s", error.text);
    cr_expect(eq(u64, found.reads + found.refused, 400));
    cr_expect(gt(u64, found.reads, 200));
    cr_expect(eq(u64, found.stale, 0));
    cr_expect(gt(u64, found.waits + found.host_waits, 0));
}

/* A backend over the arena calls the driver for nothing; the driver's own are called once for each
 * allocation that they serve and each free, in every workload. The times decide nothing here. */
Test(cuda, the_bench_counts_the_calls_of_the_driver)
{
    stand_in("8589934592");
    static const struct {
        const char *spec;
        bool is_driver;
    } rows[] = {{"tlsf", false}, {"fixed", false}, {"cudamalloc", true}, {"cudaasync", true}};
    static const char *const workloads[] = {"idle", "large", "busy", "one", "many"};
    static const uint64_t rounds[] = {1000, 200, DEVICE_BENCH_BUSY_ROUNDS, 1, 1024};
    vram_error error = {""};
    device_bench *bench = device_bench_open(&error);
    cr_assert(bench != NULL, "%s", error.text);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        device_bench_row found[DEVICE_BENCH_ROWS];
        const standin_counts before = counts();
        cr_assert(device_bench_run(bench, rows[i].spec, 1024 * MIB, 1000, found, &error), "%s",
                  error.text);
        const standin_counts after = counts();
        for (int k = 0; k < DEVICE_BENCH_ROWS; k++) {
            const device_bench_row *row = &found[k];
            const uint64_t served = row->operations - row->refused;
            cr_expect(eq(str, (char *)row->workload, (char *)workloads[k]));
            cr_expect(eq(u64, row->alloc_ns.calls, rounds[k]), "%s", row->workload);
            cr_expect(eq(u64, row->alloc_ns.calls + row->free_ns.calls, row->operations));
            cr_expect(eq(u64, row->driver_calls, rows[i].is_driver ? served : 0), "%s, %s",
                      rows[i].spec, row->workload);
        }
        cr_expect(eq(u64, after.allocations - before.allocations, after.frees - before.frees));
        cr_expect(eq(int, after.allocations > before.allocations, rows[i].is_driver));
    }
    device_bench_close(bench);
}

/* ------------------------------------------------------------------------------------------------
 * the driver's own allocators */

static void check_driver(const char *spec)
{
    stand_in("4294967296");
    vram_backend *backend = NULL;
    vram_error error = {""};
    cr_assert(
        vram_create_from_text(spec, &(vram_config){.arena_bytes = 64 * MIB}, &backend, &error),
        "%s", error.text);
    vram_block blocks[16];
    for (int i = 0; i < 16; i++) {
        const vram_request request = {.size_bytes = 4 * MIB, .stream = (uint32_t)i % 3};
        cr_assert(eq(int, vram_alloc(backend, request, &blocks[i]), VRAM_OK));
        cr_expect(vram_check(backend, NULL));
    }
    cr_expect(eq(u64, counts().allocations, 16));
    vram_block extra;
    const vram_request one_more = {.size_bytes = 1};
    cr_expect(eq(int, vram_alloc(backend, one_more, &extra), VRAM_NO_SPACE));
    cr_expect(eq(int, vram_explain(backend, one_more).reason, VRAM_REASON_BYTES));
    for (int i = 0; i < 16; i += 2) {
        cr_expect(eq(int, vram_release(backend, blocks[i]), VRAM_OK));
        cr_expect(eq(int, vram_release(backend, blocks[i]), VRAM_STALE_BLOCK));
        cr_expect(vram_check(backend, NULL));
    }
    cr_expect(eq(u64, counts().frees, 8));
    cr_expect(eq(u64, vram_stats_of(backend).free_bytes, 32 * MIB));
    vram_destroy(backend);
    cr_expect(eq(u64, counts().frees, 16));
}

Test(cuda, cudamalloc_makes_one_call_a_request)
{
    check_driver("cudamalloc");
}

Test(cuda, cudaasync_makes_one_call_a_request)
{
    check_driver("cudaasync:release_threshold=1GiB,opportunistic=off");
}

Test(cuda, the_driver_replays_a_trace_under_the_interval_model)
{
    stand_in("4294967296");
    static const char *const specs[] = {"cudamalloc", "cudaasync"};
    for (size_t i = 0; i < 2; i++) {
        vram_trace *trace = NULL;
        vram_backend *backend = NULL;
        vram_error error = {""};
        cr_assert(vram_trace_open("generate:mix,ops=2000,live=200", NULL, &trace, &error), "%s",
                  error.text);
        cr_assert(vram_create_from_text(specs[i], &(vram_config){.arena_bytes = 256 * MIB},
                                        &backend, &error));
        vram_replay_result result;
        const vram_replay_options how = {.verify = true, .look_at_event = UINT64_MAX};
        cr_assert(vram_replay(trace, backend, &how, &result, &error), "%s: %s", specs[i],
                  error.text);
        cr_expect(result.completed);
        vram_destroy(backend);
        vram_trace_close(trace);
    }
}
