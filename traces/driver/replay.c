/*
 * replay.c - events in, calls to a backend out.
 *
 *   trace -> chunk of events -> step -> do_alloc, do_release, do_resize, do_try ... -> backend
 *                                 |
 *                                 +--> while observed: record.c (timeline), verify.c (model, bytes)
 *
 * Replaying is what `fit` does hundreds of times, so a step that nobody observes is a look into the
 * slot table, the backend's call and a few sums. All that happens once in a while - reading a
 * streaming trace, sampling the bookkeeping, progress, the look at one event - happens between
 * chunks.
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

/* ---- calls, timed when asked to ---- */

static void end_timed_call(vram_run *self, vram_histogram *into, uint64_t begin_ns)
{
    const uint64_t spent_ns = vram_now_ns() - begin_ns;
    const uint64_t call_ns = spent_ns > self->clock_cost_ns ? spent_ns - self->clock_cost_ns : 0;
    vram_histogram_add(into, call_ns);
    self->last_ns = call_ns < UINT32_MAX ? (uint32_t)call_ns : UINT32_MAX;
}

static inline vram_result call_alloc(vram_run *self, vram_request request, vram_block *block)
{
    if (self->alloc_ns == NULL)
        return vram_alloc(self->backend, request, block);
    const uint64_t begin_ns = vram_now_ns();
    const vram_result outcome = vram_alloc(self->backend, request, block);
    end_timed_call(self, self->alloc_ns, begin_ns);
    return outcome;
}

static inline vram_result call_release(vram_run *self, vram_block block)
{
    if (self->release_ns == NULL)
        return vram_release(self->backend, block);
    const uint64_t begin_ns = vram_now_ns();
    const vram_result outcome = vram_release(self->backend, block);
    end_timed_call(self, self->release_ns, begin_ns);
    return outcome;
}

/* ---- outcomes ---- */

static inline vram_request request_of(const vram_run *self, const vram_event *event)
{
    return (vram_request){
        .size_bytes = event->size_bytes,
        .align_bytes = vram_alignment_of(self, event->align_log2),
        .stream = event->stream,
        .tag = event->tag,
    };
}

static inline void note_served(vram_run *self, const vram_slot *slot)
{
    vram_replay_result *const result = self->result;
    const uint64_t end_bytes = slot->block.offset_bytes + slot->block.granted_bytes;
    result->served++;
    self->blocks_served++;
    self->live_bytes += slot->size_bytes;
    self->granted_bytes += slot->block.granted_bytes;
    if (self->live_bytes > result->peak_live_bytes)
        result->peak_live_bytes = self->live_bytes;
    if (self->granted_bytes > result->peak_granted_bytes)
        result->peak_granted_bytes = self->granted_bytes;
    if (end_bytes > result->peak_extent_bytes)
        result->peak_extent_bytes = end_bytes;
}

static inline void note_ended(vram_run *self, const vram_slot *slot)
{
    self->live_bytes -= slot->size_bytes;
    self->granted_bytes -= slot->block.granted_bytes;
}

/* The backend refused. True to go on, false to stop: at the first failure, or on an error. */
static bool refuse(vram_run *self, const vram_event *event, const vram_request *request,
                   vram_result outcome)
{
    if (outcome != VRAM_NO_SPACE)
        return vram_run_fail(self, "a request of %" PRIu64 " bytes was answered \"%s\"",
                             request->size_bytes, vram_result_name(outcome));
    vram_replay_result *const result = self->result;
    const bool first = result->refused++ == 0;
    if (first || self->record != NULL) {
        const vram_failure failure = vram_explain(self->backend, *request);
        if (first) {
            result->first_failure_event = self->event;
            result->first_failure = *request;
            result->failure = failure;
            result->failure_look = vram_look_at(self->backend, self->event, self->live_bytes);
        }
        if (self->record != NULL && !vram_record_failure(self, event, &failure))
            return false;
    }
    self->stopped = self->options->on_failure == VRAM_STOP_AT_FAILURE;
    return !self->stopped;
}

/* Asks for the event's block and fills *slot. *served tells whether there is one; false to stop. */
static bool serve(vram_run *self, const vram_event *event, vram_slot *slot, bool *served)
{
    const vram_request request = request_of(self, event);
    vram_block block;
    self->result->requests++;
    vram_result outcome = call_alloc(self, request, &block);
    if (outcome == VRAM_NO_SPACE && self->options->compact.on_failure) {
        if (!vram_compact(self, event))
            return false;
        outcome = call_alloc(self, request, &block);
    }
    *served = outcome == VRAM_OK;
    if (outcome != VRAM_OK)
        return refuse(self, event, &request, outcome);
    *slot = (vram_slot){
        .block = block,
        .size_bytes = event->size_bytes,
        .number = self->blocks_served,
        .tag = event->tag,
        .stack = event->stack,
        .stream = (uint16_t)event->stream,
        .align_log2 = event->align_log2,
    };
    note_served(self, slot);
    if (self->record != NULL && !vram_record_alloc(self, event, slot))
        return false;
    return self->model == NULL || vram_verify_alloc(self, &request, slot);
}

static bool end_block(vram_run *self, const vram_event *event, vram_slot *slot)
{
    if (self->model != NULL && !vram_verify_release(self, slot))
        return false;
    const vram_result outcome = call_release(self, slot->block);
    if (outcome != VRAM_OK)
        return vram_run_fail(self,
                             "the release of the live block at %" PRIu64 " was answered \"%s\"",
                             slot->block.offset_bytes, vram_result_name(outcome));
    note_ended(self, slot);
    if (self->record != NULL && !vram_record_about_block(self, event, slot, VRAM_OP_RELEASE))
        return false;
    slot->block.handle = 0;
    return true;
}

/* ---- events ---- */

static bool do_alloc(vram_run *self, const vram_event *event)
{
    bool served;
    return serve(self, event, &self->slots[event->slot], &served);
}

static bool do_release(vram_run *self, const vram_event *event)
{
    vram_slot *const slot = &self->slots[event->slot];
    return slot->block.handle == 0 || end_block(self, event, slot);
}

static bool do_retire(vram_run *self, const vram_event *event)
{
    if (self->options->free_at_retire)
        return do_release(self, event);
    vram_slot *const slot = &self->slots[event->slot];
    if (slot->block.handle == 0 || self->record == NULL)
        return true;
    return vram_record_about_block(self, event, slot, VRAM_OP_RETIRE);
}

static bool do_try(vram_run *self, const vram_event *event)
{
    if (!self->options->tries)
        return true;
    vram_slot slot = {0};
    bool served;
    return serve(self, event, &slot, &served) && (!served || end_block(self, event, &slot));
}

/* The block stays where it is: for the timeline and the model its old self ends, a new one begins.
 */
static bool resized_in_place(vram_run *self, const vram_event *event, vram_slot *slot,
                             vram_block block)
{
    const vram_request request = request_of(self, event);
    self->last_ns = 0;
    if (self->model != NULL && !vram_verify_release(self, slot))
        return false;
    if (self->record != NULL && !vram_record_about_block(self, event, slot, VRAM_OP_RELEASE))
        return false;
    note_ended(self, slot);
    slot->block = block;
    slot->size_bytes = event->size_bytes;
    slot->number = self->blocks_served;
    self->result->requests++;
    note_served(self, slot);
    if (self->record != NULL && !vram_record_alloc(self, event, slot))
        return false;
    return self->model == NULL || vram_verify_alloc(self, &request, slot);
}

static bool copy_contents(vram_run *self, const vram_slot *from, const vram_slot *to)
{
    vram_error why = {0};
    if (self->bytes == NULL)
        return true;
    const uint64_t kept_bytes =
        from->size_bytes < to->size_bytes ? from->size_bytes : to->size_bytes;
    if (!self->bytes->ops->move(self->bytes, to->block.offset_bytes, from->block.offset_bytes,
                                kept_bytes, &why))
        return vram_run_fail(self, "%s", why.text);
    return self->model == NULL || vram_verify_copy(self, from, to);
}

/* In place when the backend can; else as realloc does: a new block, a copy, the old one released.
 * When there is no new block the old one lives on as it was. */
static bool do_resize(vram_run *self, const vram_event *event)
{
    vram_slot *const slot = &self->slots[event->slot];
    if (slot->block.handle == 0)
        return true;
    vram_event wanted = *event;
    if (wanted.align_log2 == 0)
        wanted.align_log2 = slot->align_log2;
    vram_block block = slot->block;
    const vram_result outcome = vram_resize(self->backend, &block, event->size_bytes);
    if (outcome == VRAM_OK)
        return resized_in_place(self, &wanted, slot, block);
    if (outcome != VRAM_NO_SPACE && outcome != VRAM_UNSUPPORTED)
        return vram_run_fail(self,
                             "the resize of the live block at %" PRIu64 " was answered \"%s\"",
                             slot->block.offset_bytes, vram_result_name(outcome));
    vram_slot successor = {0};
    bool served;
    if (!serve(self, &wanted, &successor, &served))
        return false;
    if (!served)
        return true;
    if (!copy_contents(self, slot, &successor) || !end_block(self, event, slot))
        return false;
    *slot = successor;
    return true;
}

static bool do_use(vram_run *self, const vram_event *event)
{
    const vram_slot *const slot = &self->slots[event->slot];
    if (slot->block.handle == 0 || self->backend->ops->use == NULL)
        return true;
    const vram_result outcome = self->backend->ops->use(self->backend, slot->block, event->stream);
    if (outcome != VRAM_OK && outcome != VRAM_UNSUPPORTED)
        return vram_run_fail(self, "use of the live block at %" PRIu64 " was answered \"%s\"",
                             slot->block.offset_bytes, vram_result_name(outcome));
    return true;
}

static bool dispatch(vram_run *self, const vram_event *event)
{
    switch ((vram_event_kind)event->kind) {
    case VRAM_EVENT_ALLOC:
        return do_alloc(self, event);
    case VRAM_EVENT_FREE:
        return do_release(self, event);
    case VRAM_EVENT_RETIRE:
        return do_retire(self, event);
    case VRAM_EVENT_RESIZE:
        return do_resize(self, event);
    case VRAM_EVENT_TRY:
        return do_try(self, event);
    case VRAM_EVENT_USE:
        return do_use(self, event);
    case VRAM_EVENT_SYNC:
        if (self->backend->ops->sync != NULL)
            self->backend->ops->sync(self->backend, event->stream);
        return true;
    case VRAM_EVENT_WAIT:
        if (self->backend->ops->wait != NULL)
            self->backend->ops->wait(self->backend, event->stream, (uint32_t)event->size_bytes);
        return true;
    case VRAM_EVENT_MARK:
        return self->record == NULL || vram_record_mark(self, event);
    case VRAM_EVENT_KINDS:
        break;
    }
    return vram_run_fail(self, "an event of unknown kind %d", event->kind);
}

/* After every event that is recorded or verified: each byte of the arena has one cause. */
static bool account(vram_run *self)
{
    const vram_stats stats = vram_stats_of(self->backend);
    if (stats.bookkeeping_bytes > self->result->bookkeeping_bytes)
        self->result->bookkeeping_bytes = stats.bookkeeping_bytes;
    if (!vram_stats_add_up(&stats, self->backend->arena_bytes))
        return vram_run_fail(self,
                             "its bytes by cause do not add up to the arena of %" PRIu64
                             ": granted %" PRIu64 ", free %" PRIu64 ", bound %" PRIu64
                             ", pending %" PRIu64 ", reserve %" PRIu64 ", padding %" PRIu64,
                             self->backend->arena_bytes, stats.granted_bytes, stats.free_bytes,
                             stats.bound_bytes, stats.pending_bytes, stats.reserve_bytes,
                             stats.padding_bytes);
    if (stats.granted_bytes != self->granted_bytes)
        return vram_run_fail(
            self, "it counts %" PRIu64 " granted bytes; the blocks that it gave have %" PRIu64,
            stats.granted_bytes, self->granted_bytes);
    if (self->record != NULL && !vram_record_causes(self, &stats))
        return false;
    return self->model == NULL || vram_verify_event(self);
}

/* True to go on with the next event. */
static inline bool step(vram_run *self, const vram_event *event)
{
    const bool goes_on = dispatch(self, event);
    if (!self->observed || (!goes_on && !self->stopped))
        return goes_on;
    return account(self) && goes_on;
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
        const bool sound = vram_compact(self, last) && (!self->observed || account(self));
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
            if (!step(self, &events[index]))
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
    self->observed = options->verify || options->record != NULL;
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
            return vram_run_fail(self, "the host is out of memory for latencies");
        self->clock_cost_ns = vram_clock_cost_ns();
    }
    if (options->verify) {
        self->model = vram_model_create(self->backend->arena_bytes, self->backend->address_bytes);
        if (self->model == NULL)
            return vram_run_fail(self, "the host is out of memory for the model");
    }
    self->record = options->record;
    return self->record == NULL || vram_record_begin(self);
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
    const bool replayed = replay_events(self);
    const bool recorded = self->record == NULL || vram_record_finish(self);
    return replayed && recorded && (self->model == NULL || vram_verify_contents(self));
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
    free(self.alloc_ns);
    free(self.release_ns);
    free(self.slots);
    return replayed;
}
