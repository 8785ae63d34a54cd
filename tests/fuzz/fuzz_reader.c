/*
 * fuzz_reader.c - any bytes, read as one format: no crash, no hang, memory within a small multiple.
 *
 * The format is named by the variable VRAMLAB_FORMAT. What is read must keep the promises of
 * vramlab/trace.h, whatever the bytes: they are checked here with no help of the library's tables.
 */
#include "fuzz.h"

#include <vramlab/trace.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define COUNTED_BY_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COUNTED_BY_SANITIZER 1
#endif
#endif
#ifdef COUNTED_BY_SANITIZER
size_t __sanitizer_get_current_allocated_bytes(void);
#endif

/* The windows of a file and of inflate, zlib's and SQLite's own needs. */
enum { MEMORY_BASE = 4 << 20, MEMORY_PER_BYTE = 256 };

static size_t allocated(void)
{
#ifdef COUNTED_BY_SANITIZER
    return __sanitizer_get_current_allocated_bytes();
#else
    return mallinfo2().uordblks;
#endif
}

static void broken(const char *promise)
{
    fprintf(stderr, "promise broken: %s\n", promise);
    abort();
}

static void expect(bool kept, const char *promise)
{
    if (!kept)
        broken(promise);
}

/* What is live, by slot. */
typedef struct live_blocks {
    uint64_t *bytes; /* 0: not live */
    size_t capacity;
    uint64_t sum, last_ns;
} live_blocks;

static void make_room(live_blocks *live, uint64_t slots)
{
    const size_t before = live->capacity;
    expect(vram_reserve((void **)&live->bytes, &live->capacity, (size_t)slots, sizeof *live->bytes),
           "memory for as many slots as there are blocks");
    for (size_t i = before; i < live->capacity; i++)
        live->bytes[i] = 0;
}

static void check_block(live_blocks *live, const vram_trace_info *info, const vram_event *event)
{
    expect(event->slot < info->slots, "slots are dense");
    make_room(live, info->slots);
    uint64_t *bytes = &live->bytes[event->slot];
    expect(event->size_bytes > 0, "sizes are at least 1");
    expect((event->kind == VRAM_EVENT_ALLOC) == (*bytes == 0), "live once from ALLOC to FREE");
    live->sum -= *bytes;
    if (event->kind == VRAM_EVENT_ALLOC || event->kind == VRAM_EVENT_RESIZE)
        *bytes = event->size_bytes;
    else if (event->kind == VRAM_EVENT_FREE)
        *bytes = 0;
    live->sum += *bytes;
    expect(live->sum < UINT64_C(1) << 62, "live bytes stay below 2^62");
}

static void check_event(live_blocks *live, const vram_trace *trace, const vram_event *event)
{
    const vram_trace_info *info = vram_trace_info_of(trace);
    expect(event->kind < VRAM_EVENT_KINDS, "kinds are known");
    expect(event->time_ns >= live->last_ns, "time does not run backwards");
    live->last_ns = event->time_ns;
    expect(event->stream < info->streams ||
               (event->stream == UINT32_MAX && event->kind == VRAM_EVENT_SYNC),
           "streams are numbered");
    expect(event->tag < info->tags && event->stack < info->stacks, "tags and stacks are numbered");
    expect(strlen(vram_trace_tag(trace, event->tag)) < SIZE_MAX, "tags are texts");
    expect(event->align_log2 <= 40, "alignments are bounded");
    if (event->kind == VRAM_EVENT_WAIT)
        expect(event->size_bytes < info->streams, "waits name a stream");
    const bool block = event->kind == VRAM_EVENT_ALLOC || event->kind == VRAM_EVENT_FREE ||
                       event->kind == VRAM_EVENT_RETIRE || event->kind == VRAM_EVENT_RESIZE ||
                       event->kind == VRAM_EVENT_USE;
    if (block)
        check_block(live, info, event);
}

static void read_to_end(vram_trace *trace, size_t before, size_t size)
{
    live_blocks live = {0};
    vram_error error = {{0}};
    vram_event event;
    vram_step step;
    while ((step = vram_trace_next(trace, &event, &error)) == VRAM_STEP_EVENT)
        check_event(&live, trace, &event);
    expect(step == VRAM_STEP_END || error.text[0] != '\0', "an error has a message");
    const size_t now = allocated() - live.capacity * sizeof *live.bytes;
    expect(now - before < MEMORY_BASE + MEMORY_PER_BYTE * size, "memory is bounded by the file");
    free(live.bytes);
}

static int descriptor_of(const uint8_t *data, size_t size, char path[64])
{
    const int descriptor = memfd_create("fuzz", MFD_CLOEXEC);
    expect(descriptor >= 0 && write(descriptor, data, size) == (ssize_t)size, "a file in memory");
    snprintf(path, 64, "/proc/self/fd/%d", descriptor);
    return descriptor;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    const int descriptor = descriptor_of(data, size, path);
    const size_t before = allocated();
    /* A packed input may unfold, but only so far that the bound above still means something. */
    const vram_trace_options options = {.format = getenv("VRAMLAB_FORMAT"),
                                        .inflate_limit = 16 * size + 4096};
    vram_trace *trace;
    vram_error error = {{0}};
    if (vram_trace_open(path, &options, &trace, &error)) {
        read_to_end(trace, before, size * 16);
        vram_trace_close(trace);
    } else {
        expect(error.text[0] != '\0', "an error has a message");
    }
    close(descriptor);
    return 0;
}
