/*
 * scale.c - long traces in bounded memory; with VRAMLAB_LONG set, as long as they may become.
 *
 * Memory is the process's greatest resident set (VmHWM), reset before each measurement. Under a
 * sanitizer it means nothing, so this suite is built without one only.
 */
#include "made_file.h"
#include "made_pickle.h"

#include <vramlab/driver.h>
#include <vramlab/registry.h>
#include <vramlab/snapshot.h>

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static bool is_long(void)
{
    return getenv("VRAMLAB_LONG") != NULL;
}

/* A figure of /proc/self/status, in bytes. */
static uint64_t status_bytes(const char *name)
{
    FILE *const file = fopen("/proc/self/status", "r");
    cr_assert_not_null(file);
    char line[256];
    uint64_t kib = 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoull(line + strlen(name) + 1, NULL, 10);
    fclose(file);
    cr_assert_gt(kib, 0, "%s", name);
    return kib * 1024;
}

/* Starts a measurement: the greatest resident set so far is forgotten. What is resident is
 * returned. Huge pages are refused: they would count memory that was never touched. */
static uint64_t begin_measuring(void)
{
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    FILE *const file = fopen("/proc/self/clear_refs", "w");
    if (file == NULL || fputs("5", file) < 0 || fclose(file) != 0)
        cr_skip_test("the kernel does not let the peak of memory be reset");
    return status_bytes("VmRSS");
}

/* What the kernel may be wrong by: each processor counts up to a batch of pages by itself. */
static uint64_t counted_apart_bytes(void)
{
    const uint64_t processors = (uint64_t)sysconf(_SC_NPROCESSORS_CONF);
    const uint64_t batch = processors > 16 ? 2 * processors : 32;
    return processors * batch * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t grown_since(uint64_t before)
{
    const uint64_t peak = status_bytes("VmHWM");
    const uint64_t surely = before + counted_apart_bytes();
    return peak > surely ? peak - surely : 0;
}

/* ---- replay ---- */

static void replay_streamed(const char *path, uint64_t events, uint64_t allowed_bytes)
{
    vram_trace *trace;
    vram_backend *backend;
    vram_replay_result result;
    vram_error error = {{0}};
    const uint64_t before = begin_measuring();
    cr_assert(vram_trace_open(path, NULL, &trace, &error), "%s", error.text);
    cr_assert(vram_create_from_text(
                  "tlsf", &(vram_config){.arena_bytes = UINT64_C(8) << 30, .unit_bytes = 256},
                  &backend, &error),
              "%s", error.text);
    cr_assert(vram_replay(trace, backend, &(vram_replay_options){.look_at_event = UINT64_MAX},
                          &result, &error),
              "%s", error.text);
    cr_expect(result.completed);
    cr_expect_geq(result.events, events);
    cr_expect_lt(grown_since(before), allowed_bytes, "%s: %" PRIu64 " bytes for %" PRIu64 " events",
                 path, grown_since(before), result.events);
    vram_destroy(backend);
    vram_trace_close(trace);
}

Test(scale, a_long_trace_is_replayed_in_the_memory_of_its_live_blocks)
{
    replay_streamed("generate:mix,ops=1000000", 1000000, 16 * MIB);
    if (is_long())
        replay_streamed("generate:mix,ops=100000000", 100000000, 256 * MIB);
}

/* ---- text ---- */

static made_file long_text(uint64_t pairs)
{
    const made_file file = make_file("", 0);
    FILE *const out = fopen(file.path, "w");
    cr_assert_not_null(out);
    fprintf(out, "vramlab trace 1\n");
    enum { LIVE = 1000 };
    for (uint64_t i = 0; i < pairs + LIVE; i++) {
        if (i < pairs)
            fprintf(out, "a %" PRIu64 " %" PRIu64 "\n", i, 512 + i * 37 % 100000);
        if (i >= LIVE)
            fprintf(out, "f %" PRIu64 "\n", i - LIVE);
    }
    fclose(out);
    return file;
}

Test(scale, a_long_text_is_replayed_in_the_memory_of_its_live_blocks)
{
    const uint64_t pairs = is_long() ? 20000000 : 500000;
    const made_file file = long_text(pairs);
    replay_streamed(file.path, 2 * pairs, (is_long() ? 64 : 16) * MIB);
    drop_file(file);
}

/* ---- snapshots ---- */

enum { KEYS = 7, ACTIONS = 2 };
static const char *const texts[KEYS + ACTIONS] = {"action",        "addr",    "size",
                                                  "stream",        "time_us", "compile_context",
                                                  "user_metadata", "alloc",   "free_completed"};

static void recall(made_pickle *p, unsigned slot)
{
    pickle_raw(p, (const unsigned char[]){'h', (unsigned char)slot}, 2);
}

/* An event as CPython writes it when the keys were written before: 55 bytes. */
static void put_event(made_pickle *p, unsigned action, uint64_t addr, uint32_t size, uint64_t time)
{
    pickle_put(p, "}\x94(");
    recall(p, 0);
    recall(p, KEYS + action);
    recall(p, 1);
    pickle_raw(p, "\x8a\x06", 2);
    pickle_raw(p, &addr, 6);
    recall(p, 2);
    pickle_raw(p, "J", 1);
    pickle_raw(p, &size, 4);
    recall(p, 3);
    pickle_raw(p, "K\0", 2);
    recall(p, 4);
    pickle_raw(p, "\x8a\x07", 2);
    pickle_raw(p, &time, 7);
    recall(p, 5);
    pickle_raw(p, "\x8c\x03N/A\x94", 6);
    recall(p, 6);
    pickle_raw(p, "\x8c\0\x94u", 4);
}

/* Writes what is in the pickle and empties it: the file is larger than memory should be. */
static void flush(made_pickle *p, FILE *out)
{
    cr_assert_eq(fwrite(p->bytes, 1, p->count, out), p->count);
    p->count = 0;
}

static void write_snapshot(const char *path, uint64_t events)
{
    FILE *const out = fopen(path, "wb");
    cr_assert_not_null(out);
    made_pickle p = pickle_start(4);
    for (size_t i = 0; i < KEYS + ACTIONS; i++) {
        pickle_text(&p, texts[i]); /* remembered, and dropped */
        pickle_put(&p, "0");
    }
    pickle_put(&p, "}\x94(");
    pickle_text(&p, "segments");
    pickle_put(&p, "]\x94");
    pickle_text(&p, "device_traces");
    pickle_put(&p, "]\x94(]\x94");
    for (uint64_t i = 0; i < events; i++) {
        if (i % 1000 == 0)
            pickle_put(&p, "(");
        put_event(&p, i % 2, UINT64_C(0x7f0000000000) + i / 2 * 512 % (1 << 30), 4096,
                  UINT64_C(1796078876000000) + i);
        if (i % 1000 == 999 || i + 1 == events) {
            pickle_put(&p, "e");
            flush(&p, out);
        }
    }
    pickle_put(&p, "eu.");
    flush(&p, out);
    fclose(out);
    free(p.bytes);
}

Test(scale, a_snapshot_is_loaded_in_less_memory_than_its_file)
{
    const uint64_t events = is_long() ? 20000000 : 600000;
    const made_file file = make_file("", 0);
    const pid_t child = fork(); /* so that writing costs this process nothing */
    cr_assert_geq(child, 0);
    if (child == 0) {
        write_snapshot(file.path, events);
        _exit(0);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    struct stat of_file;
    cr_assert_eq(stat(file.path, &of_file), 0);
    vram_snapshot *snapshot;
    vram_error error = {{0}};
    const uint64_t before = begin_measuring();
    cr_assert(vram_snapshot_open(file.path, NULL, &snapshot, &error), "%s", error.text);
    cr_expect_eq(snapshot->devices[0].event_count, events);
    cr_expect_lt(grown_since(before), (uint64_t)of_file.st_size,
                 "%" PRIu64 " bytes for a file of %" PRIu64, grown_since(before),
                 (uint64_t)of_file.st_size);
    cr_log_info("%" PRIu64 " bytes for a file of %" PRIu64, grown_since(before),
                (uint64_t)of_file.st_size);
    vram_snapshot_close(snapshot);
    drop_file(file);
}
