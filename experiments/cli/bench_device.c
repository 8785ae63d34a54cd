/* bench_device.c - see bench_device.h. */
#include "cli/bench_device.h"

#include "cli/job.h"
#include "study/device_bench.h"
#include "study/device_streams.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 20000, STREAM_ROUNDS = 10000 };

static const column columns[] = {
    {"machine", NULL, COLUMN_TEXT},
    {"workload", "workload", COLUMN_TEXT},
    {"backend", "backend", COLUMN_TEXT},
    {"arena_bytes", NULL, COLUMN_NUMBER},
    {"operations", "operations", COLUMN_NUMBER},
    {"refused", "refused", COLUMN_NUMBER},
    {"driver_calls", "driver calls", COLUMN_NUMBER},
    {"alloc_p50_ns", "alloc p50", COLUMN_NUMBER},
    {"alloc_p99_ns", "p99", COLUMN_NUMBER},
    {"alloc_p999_ns", NULL, COLUMN_NUMBER},
    {"alloc_max_ns", "max", COLUMN_NUMBER},
    {"free_p50_ns", "free p50", COLUMN_NUMBER},
    {"free_p99_ns", "p99", COLUMN_NUMBER},
    {"free_p999_ns", NULL, COLUMN_NUMBER},
    {"free_max_ns", "max", COLUMN_NUMBER},
    {"pair_mean_ns", "pair mean", COLUMN_NUMBER},
    {"alloc_total_ns", "all allocs", COLUMN_NUMBER},
};

typedef struct collected {
    const command *self;
    char **specs;
    size_t count, capacity;
} collected;

static bool collect(void *context, const char *spec)
{
    collected *all = context;
    vram_error error = {""};
    char *name = vram_spec_name(spec, &error);
    if (name == NULL ||
        !vram_reserve((void **)&all->specs, &all->capacity, all->count + 1, sizeof *all->specs)) {
        fail_with(all->self, "--backend: %s", name == NULL ? error.text : "out of host memory");
        free(name);
        return false;
    }
    all->specs[all->count++] = name;
    return true;
}

/* Those asked for, else every backend with its defaults. */
static bool collect_all(collected *all, const char *backends)
{
    if (backends != NULL)
        return vram_split_specs(backends, collect, all);
    for (size_t i = 0; vram_registry_at(i) != NULL; i++)
        if (!vram_registry_at(i)->layer && !vram_registry_at(i)->special &&
            !collect(all, vram_registry_at(i)->name))
            return false;
    return true;
}

static bool read_size(const char *text, uint64_t *size_bytes, vram_error *error)
{
    vram_error why = {""};
    return vram_parse_size(text, 0, size_bytes, &why) ||
           vram_fail(error, "--arena cuda:%s: %s", text, why.text);
}

static void free_all(collected *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->specs[i]);
    free(all->specs);
}

static void add_row(table *rows, const char *machine, const char *spec, uint64_t arena_bytes,
                    const device_bench_row *row)
{
    table_row(rows);
    table_set(rows, "machine", "%s", machine);
    table_set(rows, "workload", "%s", row->workload);
    table_set(rows, "backend", "%s", spec);
    table_set(rows, "arena_bytes", "%" PRIu64, arena_bytes);
    table_set(rows, "operations", "%" PRIu64, row->operations);
    table_set(rows, "refused", "%" PRIu64, row->refused);
    table_set(rows, "driver_calls", "%" PRIu64, row->driver_calls);
    table_latency(rows, "alloc", &row->alloc_ns);
    table_latency(rows, "free", &row->free_ns);
    if (row->free_ns.calls > 0) {
        const double pair_ns = row->alloc_ns.mean_ns + row->free_ns.mean_ns;
        table_set(rows, "pair_mean_ns", "%.1f", pair_ns);
    }
    if (row->alloc_total_ns > 0)
        table_set(rows, "alloc_total_ns", "%" PRIu64, row->alloc_total_ns);
}

static bool bench_all(const collected *all, uint64_t arena_bytes, table *rows, vram_error *error)
{
    char machine[256];
    device_bench *bench = device_bench_open(error);
    if (bench == NULL)
        return false;
    device_bench_machine(machine, sizeof machine);
    bool done = true;
    for (size_t i = 0; done && i < all->count; i++) {
        device_bench_row measured[DEVICE_BENCH_ROWS];
        done = device_bench_run(bench, all->specs[i], arena_bytes, ROUNDS, measured, error);
        for (int k = 0; done && k < DEVICE_BENCH_ROWS; k++)
            add_row(rows, machine, all->specs[i], arena_bytes, &measured[k]);
    }
    device_bench_close(bench);
    return done;
}

int bench_device(const bench_device_fields *given)
{
    collected all = {.self = given->self};
    vram_error error = {""};
    vram_arena *arena = NULL;
    uint64_t arena_bytes = 0;
    table *rows = table_new(columns, sizeof columns / sizeof columns[0]);
    int status = EXIT_WRONG;
    if (collect_all(&all, given->backends) &&
        (given->backends != NULL || (collect(&all, "cudamalloc") && collect(&all, "cudaasync") &&
                                     collect(&all, "cudaasync:release_threshold=100GiB")))) {
        /* the arena is there while its backends are measured, as in a program */
        const bool done = read_size(given->arena, &arena_bytes, &error) &&
                          vram_arena_create("cuda", arena_bytes, &arena, &error) &&
                          bench_all(&all, arena_bytes, rows, &error);
        status = done ? EXIT_DONE : fail_with(given->self, "%s", error.text);
    }
    if (status == EXIT_DONE)
        table_write(rows, given->format, stdout);
    vram_arena_destroy(arena);
    table_free(rows);
    free_all(&all);
    return status;
}

/* ------------------------------------------------------------------------------------------------
 * streams */

static const column stream_columns[] = {
    {"backend", "backend", COLUMN_TEXT},        {"reads", "reads", COLUMN_NUMBER},
    {"stale", "stale", COLUMN_NUMBER},          {"refused", "refused", COLUMN_NUMBER},
    {"waits", "waits inserted", COLUMN_NUMBER}, {"host_waits", "host waits", COLUMN_NUMBER},
    {"polls", "polls", COLUMN_NUMBER},
};

static bool streams_row(const char *spec, uint64_t arena_bytes, table *rows, uint64_t *stale,
                        vram_error *error)
{
    device_streams_result found;
    if (!device_streams_run(spec, arena_bytes, STREAM_ROUNDS, &found, error))
        return false;
    *stale = found.stale;
    table_row(rows);
    table_set(rows, "backend", "%s", spec);
    table_set(rows, "reads", "%" PRIu64, found.reads);
    table_set(rows, "stale", "%" PRIu64, found.stale);
    table_set(rows, "refused", "%" PRIu64, found.refused);
    table_set(rows, "waits", "%" PRIu64, found.waits);
    table_set(rows, "host_waits", "%" PRIu64, found.host_waits);
    table_set(rows, "polls", "%" PRIu64, found.polls);
    return true;
}

/* Each backend bare, to show what would happen, and under the layer. */
static bool streams_all(const collected *all, uint64_t arena_bytes, table *rows, bool *safe,
                        vram_error *error)
{
    for (size_t i = 0; i < all->count; i++) {
        char layered[256];
        uint64_t stale;
        snprintf(layered, sizeof layered, "%s+stream", all->specs[i]);
        if (!streams_row(all->specs[i], arena_bytes, rows, &stale, error) ||
            !streams_row(layered, arena_bytes, rows, &stale, error))
            return false;
        *safe = *safe && stale == 0;
    }
    return true;
}

int bench_device_streams(const bench_device_fields *given)
{
    collected all = {.self = given->self};
    vram_error error = {""};
    uint64_t arena_bytes = 0;
    bool safe = true;
    table *rows = table_new(stream_columns, sizeof stream_columns / sizeof stream_columns[0]);
    int status = EXIT_WRONG;
    if (collect_all(&all, given->backends)) {
        const bool done = read_size(given->arena, &arena_bytes, &error) &&
                          streams_all(&all, arena_bytes, rows, &safe, &error);
        status = done ? safe ? EXIT_DONE : EXIT_NO : fail_with(given->self, "%s", error.text);
    }
    if (status != EXIT_WRONG)
        table_write(rows, given->format, stdout);
    table_free(rows);
    free_all(&all);
    return status;
}
