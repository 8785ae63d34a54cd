/*
 * calls.c - a trace boiled down to the calls it makes, so that repeating it measures the backend.
 *
 *   events, 48 bytes each, with names, stacks, times  ->  calls, 16 bytes each: size, slot, align
 *
 * The loop is the benchmark: what it costs by itself is what the backend `null` shows.
 */
#include "calls.h"
#include "histogram.h"

#include <inttypes.h>
#include <stdlib.h>

static bool add_call(vram_calls *self, vram_call made)
{
    if (!vram_reserve((void **)&self->list, &self->capacity, self->count + 1, sizeof *self->list))
        return false;
    self->live[made.slot] = made.size_bytes > 0;
    self->list[self->count++] = made;
    return true;
}

static bool add_event(vram_calls *self, const vram_event *event, uint8_t unit_log2)
{
    const vram_call release = {.slot = event->slot};
    const vram_call alloc = {
        .size_bytes = event->size_bytes,
        .slot = event->slot,
        .align_log2 = event->align_log2 != 0 ? event->align_log2 : unit_log2,
    };
    const bool live = self->live[event->slot];
    if (event->kind == VRAM_EVENT_ALLOC)
        return add_call(self, alloc);
    if (event->kind == VRAM_EVENT_FREE)
        return !live || add_call(self, release);
    if (event->kind == VRAM_EVENT_RESIZE)
        return (!live || add_call(self, release)) && add_call(self, alloc);
    return true;
}

/* What lives to the end is released, so that the calls can be repeated. */
static bool add_last_releases(vram_calls *self)
{
    for (size_t slot = 0; slot < self->slots; slot++)
        if (self->live[slot] && !add_call(self, (vram_call){.slot = (uint32_t)slot}))
            return false;
    return true;
}

static bool collect(vram_calls *self, vram_trace *trace, vram_error *error)
{
    size_t count;
    const vram_event *const events = vram_trace_events(trace, &count);
    const vram_trace_info *const info = vram_trace_info_of(trace);
    const uint8_t unit_log2 = (uint8_t)__builtin_ctzll(info->unit_bytes);
    self->slots = (size_t)info->slots;
    self->blocks = calloc(self->slots + 1, sizeof *self->blocks);
    self->live = calloc(self->slots + 1, sizeof *self->live);
    bool room = self->blocks != NULL && self->live != NULL;
    for (size_t index = 0; room && index < count; index++)
        room = add_event(self, &events[index], unit_log2);
    if (!room || !add_last_releases(self))
        return vram_fail(error, "the host is out of memory for the calls of %s", info->path);
    free(self->live);
    self->live = NULL;
    return true;
}

bool vram_calls_of(vram_trace *trace, vram_calls **out, vram_error *error)
{
    if (!vram_trace_hold(trace, error))
        return false;
    vram_calls *self = calloc(1, sizeof *self);
    if (self == NULL)
        return vram_fail(error, "the host is out of memory for calls");
    if (!collect(self, trace, error)) {
        vram_calls_free(self);
        return false;
    }
    *out = self;
    return true;
}

void vram_calls_free(vram_calls *self)
{
    if (self == NULL)
        return;
    free(self->list);
    free(self->blocks);
    free(self->live);
    free(self);
}

uint64_t vram_calls_count(const vram_calls *self)
{
    return self->count;
}

uint64_t vram_calls_make(const vram_calls *self, vram_backend *backend, vram_block *blocks)
{
    const vram_call *const end = self->list + self->count;
    uint64_t refused = 0;
    for (const vram_call *at = self->list; at < end; at++) {
        if (at->size_bytes == 0) {
            vram_release(backend, blocks[at->slot]);
            continue;
        }
        const vram_request request = {
            .size_bytes = at->size_bytes,
            .align_bytes = UINT64_C(1) << at->align_log2,
        };
        if (vram_alloc(backend, request, &blocks[at->slot]) != VRAM_OK) {
            blocks[at->slot].handle = 0;
            refused++;
        }
    }
    return refused;
}

uint64_t vram_calls_run(vram_calls *self, vram_backend *backend, uint64_t *refused)
{
    const uint64_t begin_ns = vram_now_ns();
    *refused = vram_calls_make(self, backend, self->blocks);
    return vram_now_ns() - begin_ns;
}
