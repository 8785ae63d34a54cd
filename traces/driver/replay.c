/*
 * replay.c - a whole replay: events in chunks, and what is due between them.
 *
 *   trace -> chunk of events -> step.c, event by event -> backend
 *                |
 *                +-> at its end: the look at one event, a compaction, a sample of the bookkeeping
 *
 * All that happens once in a while happens between chunks, so that a step has nothing to ask.
 */
#include "run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHUNK_EVENTS = 256 };

bool vram_run_fail(vram_run *self, const char *format, ...)
{
    if (self->error == NULL)
        return false;
    char message[sizeof self->error->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return vram_fail(self->error, "%s, event %" PRIu64 " on %s: %s", self->info->path, self->event,
                     self->backend->spec, message);
}

/* ---- between the events ---- */

/* The next events, at most `most`: out of the held ones, else read into `buffer`. */
static bool next_chunk(vram_run *self, vram_event *buffer, size_t most, const vram_event **events,
                       size_t *count)
{
    size_t held_count;
    const vram_event *const held = vram_trace_events(self->trace, &held_count);
    if (held != NULL) {
        const size_t left = held_count - (size_t)self->event;
        *events = held + self->event;
        *count = left < most ? left : most;
    } else {
        *events = buffer;
        for (*count = 0; *count < most; (*count)++) {
            const vram_step got = vram_trace_next(self->trace, &buffer[*count], self->error);
            if (got == VRAM_STEP_ERROR)
                return false;
            if (got == VRAM_STEP_END)
                break;
        }
    }
    if (!vram_reserve((void **)&self->slots, &self->slot_capacity, (size_t)self->info->slots,
                      sizeof *self->slots))
        return vram_run_fail(self, "the host is out of memory for %" PRIu64 " slots",
                             self->info->slots);
    while (self->slot_count < self->info->slots)
        self->slots[self->slot_count++] = (vram_slot){0};
    return true;
}

static void sample_bookkeeping(vram_run *self)
{
    const vram_stats stats = vram_stats_of(self->backend);
    if (stats.bookkeeping_bytes > self->result->bookkeeping_bytes)
        self->result->bookkeeping_bytes = stats.bookkeeping_bytes;
}

static void show_progress(const vram_run *self)
{
    size_t held_count;
    if (self->options->progress != NULL && vram_trace_events(self->trace, &held_count) != NULL)
        self->options->progress(self->options->progress_context,
                                (double)self->event / (double)held_count);
}

/* A chunk ends where the look is to be taken, and where a compaction is due. */
static size_t chunk_limit(const vram_run *self)
{
    const uint64_t look_at = self->options->look_at_event;
    const uint64_t every = self->options->compact.every;
    uint64_t limit = CHUNK_EVENTS;
    if (look_at >= self->event && look_at - self->event < limit)
        limit = look_at - self->event + 1;
    if (every != 0 && every - self->event % every < limit)
        limit = every - self->event % every;
    return (size_t)limit;
}

/* What is due after the chunk's last event. */
static bool end_chunk(vram_run *self, const vram_event *last)
{
    const uint64_t every = self->options->compact.every;
    if (every != 0 && self->event % every == 0) {
        self->event--; /* it is the last event's doing */
        const bool sound = vram_compact(self, last) && (!self->observed || vram_run_account(self));
        self->event++;
        if (!sound)
            return false;
    }
    if (self->event - 1 == self->options->look_at_event)
        self->result->look =
            vram_look_at(self->backend, self->options->look_at_event, self->live_bytes);
    return true;
}

static bool replay_events(vram_run *self)
{
    vram_event buffer[CHUNK_EVENTS];
    const vram_event *events;
    size_t count;
    do {
        if (!next_chunk(self, buffer, chunk_limit(self), &events, &count))
            return false;
        for (size_t index = 0; index < count; index++, self->event++)
            if (!vram_run_step(self, &events[index]))
                return self->stopped;
        if (count > 0 && !end_chunk(self, &events[count - 1]))
            return false;
        sample_bookkeeping(self);
        show_progress(self);
    } while (count > 0);
    return true;
}

/* ---- beginning and end ---- */

static bool begin(vram_run *self)
{
    const vram_replay_options *const options = self->options;
    self->observed = options->verify || options->streams || options->record != NULL;
    if (options->arena != NULL && vram_arena_has_bytes(options->arena))
        self->bytes = options->arena;
    if (self->bytes != NULL && self->backend->address_bytes > self->backend->arena_bytes)
        return vram_run_fail(self, "it hands out virtual addresses, which an arena with bytes does "
                                   "not have");
    if (options->arena != NULL && options->arena->size_bytes < self->backend->arena_bytes)
        return vram_run_fail(self,
                             "the arena has %" PRIu64 " bytes and the backend hands out %" PRIu64,
                             options->arena->size_bytes, self->backend->arena_bytes);
    if (options->time_calls) {
        self->alloc_ns = calloc(1, sizeof *self->alloc_ns);
        self->release_ns = calloc(1, sizeof *self->release_ns);
        if (self->alloc_ns == NULL || self->release_ns == NULL)
            return vram_run_no_memory(self, "latencies");
        self->clock_cost_ns = vram_clock_cost_ns();
    }
    if (options->verify) {
        self->model = vram_model_create(self->backend->arena_bytes, self->backend->address_bytes);
        if (self->model == NULL)
            return vram_run_no_memory(self, "the model");
    }
    if (options->streams) {
        self->order = vram_order_create();
        if (self->order == NULL)
            return vram_run_no_memory(self, "the order of streams");
        self->result->streams_checked = true;
    }
    self->record = options->record;
    return self->record == NULL || vram_record_begin(self);
}

/* ---- what the layer `stream` does about streams is part of their order ---- */

static void hook_order(void *context, uint32_t waiter, uint32_t stream)
{
    vram_run *const self = context;
    if (!vram_order_wait(self->order, self->event, waiter, stream))
        self->order_broke = true;
}

static void hook_sync(void *context)
{
    vram_run *const self = context;
    if (!vram_order_sync(self->order, self->event, UINT32_MAX))
        self->order_broke = true;
}

static void set_hooks(vram_run *self, const vram_stream_hooks *hooks)
{
    if (self->order != NULL && self->backend->ops->hook != NULL)
        self->backend->ops->hook(self->backend, hooks);
}

static void finish_result(vram_run *self)
{
    vram_replay_result *const result = self->result;
    result->completed = result->refused == 0;
    result->events = self->event + self->stopped;
    if (self->alloc_ns != NULL && self->release_ns != NULL) {
        result->alloc_ns = vram_histogram_summary(self->alloc_ns);
        result->release_ns = vram_histogram_summary(self->release_ns);
    }
}

static bool run_through(vram_run *self)
{
    if (!begin(self) || !vram_trace_rewind(self->trace, self->error))
        return false;
    set_hooks(self, &(vram_stream_hooks){.order = hook_order, .sync = hook_sync, .context = self});
    const bool replayed = replay_events(self);
    set_hooks(self, &(vram_stream_hooks){0}); /* they end with this run */
    if (self->order_broke)
        return vram_run_no_memory(self, "the order of streams");
    const bool recorded = self->record == NULL || vram_record_finish(self);
    return replayed && recorded &&
           (self->model == NULL || (vram_verify_state(self) && vram_verify_contents(self)));
}

bool vram_replay(vram_trace *trace, vram_backend *backend, const vram_replay_options *options,
                 vram_replay_result *result, vram_error *error)
{
    static const vram_replay_options defaults = {.look_at_event = UINT64_MAX};
    vram_run self = {
        .options = options != NULL ? options : &defaults,
        .trace = trace,
        .info = vram_trace_info_of(trace),
        .backend = backend,
        .result = result,
        .error = error,
    };
    *result = (vram_replay_result){.first_failure_event = UINT64_MAX};
    const bool replayed = run_through(&self);
    finish_result(&self);
    vram_model_destroy(self.model);
    vram_order_destroy(self.order);
    free(self.alloc_ns);
    free(self.release_ns);
    free(self.slots);
    return replayed;
}
