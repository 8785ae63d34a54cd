/* memory.c - see memory.h. */
#include "torch/memory.h"

#include "arena/cudart.h"
#include "core/offset_map.h"
#include "record/log.h"

#include <vramlab/arena.h>
#include <vramlab/registry.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = UINT32_MAX, UNIT = 512, POLLED = 16 };

/* A stream that uses a block; once the block is freed, `event` tells when it no longer does. */
typedef struct use {
    void *stream;
    vram_cuda_event event;
    uint32_t next;
} use;

/* A block that was given out, or waits for events. */
typedef struct entry {
    vram_block block;
    uint64_t requested_bytes;
    void *pointer;
    void *stream;
    uint32_t uses; /* chain, the block's own stream left out while it is live */
    uint32_t next; /* unused entries, or the wait list */
    bool spilled;
} entry;

struct torch_memory {
    pthread_mutex_t lock;
    const vram_cudart *runtime; /* NULL on host memory: no work is ever outstanding */
    vram_arena *arena;
    vram_backend *backend;
    char *base;
    torch_on_full on_full;
    trace_log *trace;
    vram_offset_map by_address; /* entries of live blocks */
    entry *entries;
    size_t entry_count, entry_capacity;
    uint32_t unused_entry;
    use *uses;
    size_t use_count, use_capacity;
    uint32_t unused_use;
    uint32_t first_waiting, last_waiting;
    vram_cuda_event *events; /* to be used again */
    size_t event_count, event_capacity;
    void **streams; /* seen so far; their index is what the backend knows */
    size_t stream_count, stream_capacity;
    bool told[VRAM_REASON_COUNT];
    torch_stats stats;
};

/* ------------------------------------------------------------------------------------------------
 * opening */

static bool open_arena(torch_memory *self, const char *text, vram_error *error)
{
    const char *colon = strchr(text, ':');
    if (colon == NULL)
        return vram_fail(error, "VRAMLAB_ARENA=%s: write KIND:SIZE, such as cuda:16GiB", text);
    char kind[16];
    snprintf(kind, sizeof kind, "%.*s", (int)(colon - text), text);
    const char *runtime = getenv("VRAMLAB_CUDART");
    const bool is_cuda = strcmp(kind, "cuda") == 0;
    const bool wanted = is_cuda || (runtime != NULL && runtime[0] != '\0');
    vram_error why = {""};
    self->runtime = wanted ? vram_cudart_load(&why) : NULL;
    if (wanted && self->runtime == NULL)
        return vram_fail(error, "VRAMLAB_ARENA=%s: %s", text, why.text);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (is_cuda)
        self->runtime->mem_get_info(&free_bytes, &total_bytes);
    uint64_t size_bytes;
    if (!vram_parse_size(colon + 1, total_bytes, &size_bytes, &why) ||
        !vram_arena_create(kind, size_bytes / UNIT * UNIT, &self->arena, &why))
        return vram_fail(error, "VRAMLAB_ARENA=%s: %s", text, why.text);
    return vram_arena_has_bytes(self->arena) ||
           vram_fail(error, "VRAMLAB_ARENA=%s: it has no bytes to hand out", text);
}

static bool open_backend(torch_memory *self, const torch_settings *settings, vram_error *error)
{
    const vram_config config = {.arena_bytes = self->arena->size_bytes, .unit_bytes = UNIT};
    vram_error why = {""};
    if (!vram_create_from_text(settings->backend, &config, &self->backend, &why))
        return vram_fail(error, "VRAMLAB_BACKEND=%s: %s", settings->backend, why.text);
    if (self->backend->address_bytes > self->backend->arena_bytes)
        return vram_fail(error,
                         "VRAMLAB_BACKEND=%s: it hands out virtual addresses, which an arena does "
                         "not have",
                         settings->backend);
    self->base = self->arena->ops->base(self->arena);
    return true;
}

torch_memory *torch_memory_open(const torch_settings *settings, vram_error *error)
{
    torch_memory *self = calloc(1, sizeof *self);
    if (self == NULL) {
        vram_fail(error, "out of host memory");
        return NULL;
    }
    pthread_mutex_init(&self->lock, NULL);
    self->unused_entry = self->unused_use = NONE;
    self->first_waiting = self->last_waiting = NONE;
    self->on_full = settings->on_full;
    if (!open_arena(self, settings->arena, error) || !open_backend(self, settings, error)) {
        vram_arena_destroy(self->arena);
        free(self);
        return NULL;
    }
    if (settings->trace != NULL)
        self->trace = trace_log_open(settings->trace, UNIT);
    return self;
}

void torch_memory_finish(torch_memory *self)
{
    pthread_mutex_lock(&self->lock);
    trace_log_close(self->trace);
    self->trace = NULL;
    pthread_mutex_unlock(&self->lock);
}

/* ------------------------------------------------------------------------------------------------
 * entries, uses, streams. Out of host memory here ends the process: a block could not be found
 * again. */

static void *must(bool reserved, void *what)
{
    if (!reserved) {
        fputs("vramlab: out of host memory\n", stderr);
        abort();
    }
    return what;
}

static uint32_t take_entry(torch_memory *self)
{
    if (self->unused_entry == NONE) {
        must(vram_reserve((void **)&self->entries, &self->entry_capacity, self->entry_count + 1,
                          sizeof *self->entries),
             NULL);
        self->unused_entry = (uint32_t)self->entry_count++;
        self->entries[self->unused_entry].next = NONE;
    }
    const uint32_t taken = self->unused_entry;
    self->unused_entry = self->entries[taken].next;
    self->entries[taken] = (entry){.uses = NONE, .next = NONE};
    return taken;
}

static void drop_entry(torch_memory *self, uint32_t index)
{
    self->entries[index].next = self->unused_entry;
    self->unused_entry = index;
}

static void add_use(torch_memory *self, entry *e, void *stream)
{
    for (uint32_t at = e->uses; at != NONE; at = self->uses[at].next)
        if (self->uses[at].stream == stream)
            return;
    if (self->unused_use == NONE) {
        must(vram_reserve((void **)&self->uses, &self->use_capacity, self->use_count + 1,
                          sizeof *self->uses),
             NULL);
        self->unused_use = (uint32_t)self->use_count++;
        self->uses[self->unused_use].next = NONE;
    }
    const uint32_t taken = self->unused_use;
    self->unused_use = self->uses[taken].next;
    self->uses[taken] = (use){.stream = stream, .next = e->uses};
    e->uses = taken;
}

/* Forgets the first use; its event may be used again. */
static void drop_use(torch_memory *self, entry *e)
{
    const uint32_t dropped = e->uses;
    use *u = &self->uses[dropped];
    if (u->event != NULL) {
        must(vram_reserve((void **)&self->events, &self->event_capacity, self->event_count + 1,
                          sizeof *self->events),
             NULL);
        self->events[self->event_count++] = u->event;
    }
    e->uses = u->next;
    u->next = self->unused_use;
    self->unused_use = dropped;
}

static uint32_t stream_number(torch_memory *self, void *stream)
{
    for (size_t i = 0; i < self->stream_count; i++)
        if (self->streams[i] == stream)
            return (uint32_t)i;
    must(vram_reserve((void **)&self->streams, &self->stream_capacity, self->stream_count + 1,
                      sizeof *self->streams),
         NULL);
    if (self->stream_count == 1 && self->runtime != NULL) {
        /* until now blocks were released at once, in the trust that there is but one stream */
        self->runtime->stream_synchronize(self->streams[0]);
        self->stats.stream_waits++;
    }
    self->streams[self->stream_count++] = stream;
    self->stats.streams = self->stream_count;
    return (uint32_t)self->stream_count - 1;
}

/* ------------------------------------------------------------------------------------------------
 * the wait list, oldest first */

static bool record(torch_memory *self, use *u)
{
    if (self->event_count > 0)
        u->event = self->events[--self->event_count];
    else if (self->runtime->event_create(&u->event, VRAM_CUDA_NO_TIMING) != 0)
        u->event = NULL;
    return u->event != NULL && self->runtime->event_record(u->event, u->stream) == 0;
}

static void release(torch_memory *self, uint32_t index)
{
    vram_release(self->backend, self->entries[index].block);
    drop_entry(self, index);
}

/* An event for each stream that may still use the block. Where none can be recorded (a capture is
 * under way, say) the host waits: never wrong, only slow. */
static void start_waiting(torch_memory *self, uint32_t index)
{
    entry *e = &self->entries[index];
    add_use(self, e, e->stream);
    for (uint32_t at = e->uses; at != NONE; at = self->uses[at].next)
        if (!record(self, &self->uses[at]))
            self->runtime->stream_synchronize(self->uses[at].stream);
    e->next = NONE;
    if (self->last_waiting == NONE)
        self->first_waiting = index;
    else
        self->entries[self->last_waiting].next = index;
    self->last_waiting = index;
    self->stats.delayed++;
}

static void stop_waiting(torch_memory *self, uint32_t previous, uint32_t index)
{
    entry *e = &self->entries[index];
    while (e->uses != NONE)
        drop_use(self, e);
    if (previous == NONE)
        self->first_waiting = e->next;
    else
        self->entries[previous].next = e->next;
    if (self->last_waiting == index)
        self->last_waiting = previous;
}

static bool is_done(const torch_memory *self, const entry *e)
{
    for (uint32_t at = e->uses; at != NONE; at = self->uses[at].next)
        if (self->uses[at].event != NULL && self->runtime->event_query(self->uses[at].event) != 0)
            return false;
    return true;
}

/* Releases what is done among the oldest. */
static void poll(torch_memory *self)
{
    uint32_t previous = NONE;
    uint32_t next;
    int seen = 0;
    for (uint32_t at = self->first_waiting; at != NONE && seen < POLLED; at = next) {
        next = self->entries[at].next;
        if (!is_done(self, &self->entries[at])) {
            previous = at;
            seen++;
            continue;
        }
        stop_waiting(self, previous, at);
        release(self, at);
    }
}

/* Waits until nothing is outstanding. True when anything was. */
static bool drain(torch_memory *self)
{
    const bool any = self->first_waiting != NONE;
    self->stats.stream_waits += any;
    while (self->first_waiting != NONE) {
        const uint32_t at = self->first_waiting;
        for (uint32_t u = self->entries[at].uses; u != NONE; u = self->uses[u].next)
            if (self->uses[u].event != NULL)
                self->runtime->event_synchronize(self->uses[u].event);
        stop_waiting(self, NONE, at);
        release(self, at);
    }
    return any;
}

/* A waiting block that this stream freed, that nobody else uses, and that fits without much waste:
 * the stream's own order makes it safe. */
static uint32_t take_waiting(torch_memory *self, uint64_t size_bytes, const void *stream)
{
    uint32_t previous = NONE;
    int seen = 0;
    for (uint32_t at = self->first_waiting; at != NONE && seen < 4 * POLLED;
         previous = at, at = self->entries[at].next, seen++) {
        const entry *e = &self->entries[at];
        const bool alone = e->uses != NONE && self->uses[e->uses].next == NONE;
        if (e->stream == stream && alone && e->block.granted_bytes >= size_bytes &&
            e->block.granted_bytes - size_bytes <= size_bytes / 8) {
            stop_waiting(self, previous, at);
            self->stats.reused++;
            return at;
        }
    }
    return NONE;
}

/* ------------------------------------------------------------------------------------------------
 * allocation */

static bool take_block(torch_memory *self, const vram_request *request, void *stream,
                       uint32_t *index)
{
    if (self->first_waiting != NONE) {
        poll(self);
        *index = take_waiting(self, request->size_bytes, stream);
        if (*index != NONE)
            return true;
    }
    vram_block block;
    vram_result result = vram_alloc(self->backend, *request, &block);
    if (result != VRAM_OK) {
        self->stats.refused++;
        if (drain(self))
            result = vram_alloc(self->backend, *request, &block);
    }
    if (result != VRAM_OK)
        return false;
    *index = take_entry(self);
    self->entries[*index].block = block;
    return true;
}

/* Why the arena has no room, and what became of the request: once a cause while it is served. */
static void tell(torch_memory *self, const vram_request *request, bool served, const char *outcome)
{
    const vram_failure failure = vram_explain(self->backend, *request);
    if (self->told[failure.reason] && served)
        return;
    self->told[failure.reason] = true;
    char asked[VRAM_SIZE_TEXT];
    char free_text[VRAM_SIZE_TEXT];
    char largest[VRAM_SIZE_TEXT];
    char arena[VRAM_SIZE_TEXT];
    fprintf(
        stderr,
        "vramlab: %s has no room for %s in its arena of %s: %s free, the largest span %s: %s; %s\n",
        self->backend->spec, vram_format_size(request->size_bytes, asked),
        vram_format_size(self->backend->arena_bytes, arena),
        vram_format_size(failure.free_bytes, free_text),
        vram_format_size(failure.largest_free_bytes, largest), vram_reason_name(failure.reason),
        outcome);
}

/* Takes the request from the driver instead; NONE, and why, when that cannot be. */
static uint32_t spill(torch_memory *self, const vram_request *request, vram_error *why)
{
    void *pointer = NULL;
    if (self->on_full == TORCH_STOP)
        return vram_fail(why, "VRAMLAB_ON_FULL=stop"), NONE;
    if (self->runtime == NULL)
        return vram_fail(why, "there is no CUDA runtime to spill to"), NONE;
    const int result = self->runtime->malloc(&pointer, request->size_bytes);
    if (result != 0)
        return vram_cudart_fail(why, "cudaMalloc", result), NONE;
    const uint32_t index = take_entry(self);
    self->entries[index].spilled = true;
    self->entries[index].pointer = pointer;
    self->entries[index].block.granted_bytes = request->size_bytes;
    self->stats.spilled++;
    self->stats.spilled_bytes += request->size_bytes;
    if (self->stats.spilled_bytes > self->stats.peak_spilled_bytes)
        self->stats.peak_spilled_bytes = self->stats.spilled_bytes;
    return index;
}

/* The arena has no room: the driver's memory, or NONE; what came of it is said. */
static uint32_t go_beyond_arena(torch_memory *self, const vram_request *request)
{
    vram_error why = {""};
    char outcome[sizeof why.text + 64] = "taken from cudaMalloc (said once a cause)";
    const uint32_t index = spill(self, request, &why);
    if (index == NONE)
        snprintf(outcome, sizeof outcome, "%s: the process ends, as a NULL would crash a kernel",
                 why.text);
    tell(self, request, index != NONE, outcome);
    return index;
}

static void note_allocation(torch_memory *self, const entry *e)
{
    torch_stats *stats = &self->stats;
    stats->allocations++;
    stats->live_bytes += (e->requested_bytes + UNIT - 1) / UNIT * UNIT;
    if (stats->live_bytes > stats->peak_live_bytes)
        stats->peak_live_bytes = stats->live_bytes;
    const uint64_t end_bytes = e->block.offset_bytes + e->block.granted_bytes;
    if (!e->spilled && end_bytes > stats->peak_extent_bytes)
        stats->peak_extent_bytes = end_bytes;
}

static void *allocate(torch_memory *self, uint64_t size_bytes, void *stream)
{
    const vram_request request = {
        .size_bytes = size_bytes, .align_bytes = UNIT, .stream = stream_number(self, stream)};
    uint32_t index = NONE;
    if (!take_block(self, &request, stream, &index))
        index = go_beyond_arena(self, &request);
    if (index == NONE) {
        trace_log_refused(self->trace, size_bytes, (uint64_t)(uintptr_t)stream);
        return NULL;
    }
    entry *e = &self->entries[index];
    if (!e->spilled)
        e->pointer = self->base + e->block.offset_bytes;
    e->requested_bytes = size_bytes;
    e->stream = stream;
    e->next = NONE;
    must(vram_offset_map_set(&self->by_address, (uint64_t)(uintptr_t)e->pointer, index), NULL);
    note_allocation(self, e);
    trace_log_alloc(self->trace, (uint64_t)(uintptr_t)e->pointer, size_bytes,
                    (uint64_t)(uintptr_t)stream);
    return e->pointer;
}

void *torch_memory_alloc(torch_memory *self, uint64_t size_bytes, void *stream)
{
    if (size_bytes == 0)
        return NULL;
    pthread_mutex_lock(&self->lock);
    void *pointer = allocate(self, size_bytes, stream);
    pthread_mutex_unlock(&self->lock);
    return pointer;
}

/* ------------------------------------------------------------------------------------------------
 * release */

static void free_block(torch_memory *self, void *pointer)
{
    const uint64_t address = (uint64_t)(uintptr_t)pointer;
    const uint32_t index = vram_offset_map_find(&self->by_address, address);
    if (index == VRAM_OFFSET_MAP_NONE) {
        self->stats.unknown_frees++;
        return;
    }
    entry *e = &self->entries[index];
    vram_offset_map_remove(&self->by_address, address);
    trace_log_free(self->trace, address);
    self->stats.frees++;
    self->stats.live_bytes -= (e->requested_bytes + UNIT - 1) / UNIT * UNIT;
    if (e->spilled) {
        self->stats.spilled_bytes -= e->block.granted_bytes;
        while (e->uses != NONE)
            drop_use(self, e);
        self->runtime->free(pointer); /* waits for all streams */
        drop_entry(self, index);
    } else if (self->runtime != NULL && (self->stream_count > 1 || e->uses != NONE)) {
        start_waiting(self, index);
    } else {
        release(self, index);
    }
}

void torch_memory_free(torch_memory *self, void *pointer)
{
    if (pointer == NULL)
        return;
    pthread_mutex_lock(&self->lock);
    free_block(self, pointer);
    pthread_mutex_unlock(&self->lock);
}

void torch_memory_use(torch_memory *self, void *pointer, void *stream)
{
    pthread_mutex_lock(&self->lock);
    const uint64_t address = (uint64_t)(uintptr_t)pointer;
    const uint32_t index = vram_offset_map_find(&self->by_address, address);
    if (index != VRAM_OFFSET_MAP_NONE && self->runtime != NULL &&
        self->entries[index].stream != stream) {
        stream_number(self, stream);
        add_use(self, &self->entries[index], stream);
        trace_log_use(self->trace, address, (uint64_t)(uintptr_t)stream);
    }
    pthread_mutex_unlock(&self->lock);
}

void torch_memory_drain(torch_memory *self)
{
    pthread_mutex_lock(&self->lock);
    drain(self);
    pthread_mutex_unlock(&self->lock);
}

/* ------------------------------------------------------------------------------------------------
 * reports */

torch_stats torch_memory_stats(torch_memory *self)
{
    pthread_mutex_lock(&self->lock);
    const torch_stats stats = self->stats;
    pthread_mutex_unlock(&self->lock);
    return stats;
}

void torch_memory_report(torch_memory *self, char *text, size_t size)
{
    const torch_stats stats = torch_memory_stats(self);
    char arena[VRAM_SIZE_TEXT], live[VRAM_SIZE_TEXT], extent[VRAM_SIZE_TEXT];
    char spilled[VRAM_SIZE_TEXT], count[32];
    const double peak = stats.peak_live_bytes > 0 ? (double)stats.peak_live_bytes : 1;
    snprintf(text, size,
             "vramlab: %s on %s of %s memory: %s allocations on %" PRIu64
             " streams, peak live %s, highest address %s, %" PRIu64
             " spilled to cudaMalloc (%s at most), needed %.3f of peak live, %" PRIu64
             " waits for streams",
             self->backend->spec, vram_format_size(self->arena->size_bytes, arena),
             self->arena->ops->name, vram_format_count(stats.allocations, count), stats.streams,
             vram_format_size(stats.peak_live_bytes, live),
             vram_format_size(stats.peak_extent_bytes, extent), stats.spilled,
             vram_format_size(stats.peak_spilled_bytes, spilled),
             (double)(stats.peak_extent_bytes + stats.peak_spilled_bytes) / peak,
             stats.stream_waits);
}

void torch_memory_json(torch_memory *self, char *text, size_t size)
{
    const torch_stats stats = torch_memory_stats(self);
    snprintf(text, size,
             "{\"backend\": \"%s\", \"arena_bytes\": %" PRIu64 ", \"allocations\": %" PRIu64
             ", \"frees\": %" PRIu64 ", \"live_bytes\": %" PRIu64 ", \"peak_live_bytes\": %" PRIu64
             ", \"peak_extent_bytes\": %" PRIu64 ", \"spilled\": %" PRIu64
             ", \"peak_spilled_bytes\": %" PRIu64 ", \"refused\": %" PRIu64 ", \"reused\": %" PRIu64
             ", \"delayed\": %" PRIu64 ", \"stream_waits\": %" PRIu64 ", \"streams\": %" PRIu64
             ", \"unknown_frees\": %" PRIu64 "}",
             self->backend->spec, self->arena->size_bytes, stats.allocations, stats.frees,
             stats.live_bytes, stats.peak_live_bytes, stats.peak_extent_bytes, stats.spilled,
             stats.peak_spilled_bytes, stats.refused, stats.reused, stats.delayed,
             stats.stream_waits, stats.streams, stats.unknown_frees);
}
