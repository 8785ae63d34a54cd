/*
 * replay.c - the history through the model, one call of PyTorch's allocator after the other.
 *
 *   ... free_requested | free_completed ... segment_free ... segment_alloc  alloc | ...
 *                        `------------ one call of malloc, or empty_cache ------'
 *
 * An allocation stands at the end of what it caused: completions of delayed releases, calls of the
 * driver. Where the file leaves open what was called, each explanation is tried on a copy of the
 * model, the likeliest first, and the first that explains every event is taken:
 *   - the pool, when the segment's is not known;
 *   - that empty_cache was called before, when segments were given back;
 *   - that events completed only while memory was given back, after the search.
 */
#include "validate/oracle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct replay {
    recording *recording;
    validate_report *report;
    vram_caching *model;
    size_t stop; /* the history is replayed up to this event */
    oracle oracle;
    vram_offset_map slots; /* of blocks in use or pending, by address */
    vram_error *error;
} replay;

/* What may lie behind the events [first, event], of which the last is the allocation. */
typedef struct explanation {
    uint32_t pool;
    bool emptied_before;
    bool completed_late;
} explanation;

static bool out_of_memory(replay *self)
{
    return vram_fail(self->error, "out of host memory");
}

/* Is the event the completion of the release right before it? */
static bool is_completed_at_once(const recording *history, size_t i)
{
    return history->events[i].action == VRAM_SNAPSHOT_FREE_COMPLETED &&
           history->events[i - 1].address == history->events[i].address;
}

/* ------------------------------------------------------------------------------------------------
 * releases */

static void request_free(replay *self, size_t i)
{
    const vram_snapshot_event *event = &self->recording->events[i];
    const uint32_t slot = vram_offset_map_find(&self->slots, event->address);
    const vram_caching_block *block =
        slot == VRAM_OFFSET_MAP_NONE ? NULL : vram_caching_at(self->model, slot);
    if (block == NULL || block->state != VRAM_CACHING_LIVE)
        oracle_differs(&self->oracle, i, "no block in use there");
    else if (block->requested_bytes != event->size_bytes)
        oracle_differs(&self->oracle, i, "a block of %" PRIu64 " requested bytes",
                       block->requested_bytes);
    else
        vram_caching_free_later(self->model, slot);
}

/* A release is done. The slot stays valid while the block is pending. */
static void complete_free(replay *self, vram_caching *model, size_t i)
{
    const uint64_t address = self->recording->events[i].address;
    const uint32_t slot = vram_offset_map_find(&self->slots, address);
    if (slot == VRAM_OFFSET_MAP_NONE ||
        vram_caching_at(model, slot)->state != VRAM_CACHING_PENDING ||
        vram_caching_at(model, slot)->address_bytes != address)
        oracle_differs(&self->oracle, i, "no block there that waits for events");
    else
        vram_caching_complete(model, slot);
}

/* ------------------------------------------------------------------------------------------------
 * trying an explanation */

/* Private pools of which a segment goes back have lost their last user. */
static void mark_unused_pools(replay *self, vram_caching *model, size_t first, size_t end)
{
    for (size_t i = first; self->recording->has_private_pools && i < end; i++) {
        if (self->recording->events[i].action != VRAM_SNAPSHOT_SEGMENT_FREE)
            continue;
        const segment_life *life =
            recording_life_at(self->recording, self->recording->events[i].address, i);
        if (life != NULL && life->known && life->pool != 0)
            vram_caching_pool_unused(model, life->pool);
    }
}

static bool all_completed(const replay *self, const vram_caching *model, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        const vram_snapshot_event *event = &self->recording->events[i];
        const uint32_t slot = event->action == VRAM_SNAPSHOT_FREE_COMPLETED
                                  ? vram_offset_map_find(&self->slots, event->address)
                                  : VRAM_OFFSET_MAP_NONE;
        if (slot != VRAM_OFFSET_MAP_NONE &&
            vram_caching_at(model, slot)->state == VRAM_CACHING_PENDING &&
            vram_caching_at(model, slot)->address_bytes == event->address)
            return false;
    }
    return true;
}

/* Completions before the first call of the driver come with the poll of malloc; the others are for
 * the model to reach. */
static void complete_polled(replay *self, vram_caching *model, size_t first, size_t end)
{
    for (size_t i = first; i < end && !is_segment_event(&self->recording->events[i]); i++)
        if (self->recording->events[i].action == VRAM_SNAPSHOT_FREE_COMPLETED)
            complete_free(self, model, i);
}

static void allocate(replay *self, vram_caching *model, size_t i, uint32_t pool, uint32_t *slot)
{
    const vram_snapshot_event *event = &self->recording->events[i];
    const vram_caching_ask ask = {.size_bytes = event->size_bytes,
                                  .stream = recording_stream(self->recording, event),
                                  .pool = pool,
                                  .capturing = pool != 0};
    const vram_result result = vram_caching_alloc(model, &ask, slot);
    if (result == VRAM_OK) {
        self->oracle.chosen_address = vram_caching_at(model, *slot)->address_bytes;
        self->oracle.chosen_bytes =
            vram_caching_round(&self->recording->settings, event->size_bytes);
    }
    if (self->oracle.differs)
        return;
    const bool fails = event->action == VRAM_SNAPSHOT_OOM;
    if (!oracle_is_done(&self->oracle))
        return;
    if (result != VRAM_OK) {
        if (!fails)
            oracle_differs(&self->oracle, i, "out of memory");
        return;
    }
    const uint64_t address = vram_caching_at(model, *slot)->address_bytes;
    if (fails || address != event->address)
        oracle_differs(&self->oracle, i, "a block at %#" PRIx64, address);
}

/* Runs the call on `model`; true when all of it is as recorded. */
static bool explains(replay *self, vram_caching *model, const explanation *why, size_t first,
                     size_t event, uint32_t *slot)
{
    if (!why->completed_late)
        complete_polled(self, model, first, event);
    mark_unused_pools(self, model, first, event);
    if (why->emptied_before)
        vram_caching_empty_cache(model);
    allocate(self, model, event, why->pool, slot);
    if (!self->oracle.differs && !all_completed(self, model, first, event))
        oracle_differs(&self->oracle, event, "a delayed release is not done yet");
    return !self->oracle.differs;
}

/* ------------------------------------------------------------------------------------------------
 * one call of malloc */

/* The pool to allocate from, or VRAM_OFFSET_MAP_NONE when it must be tried. */
static uint32_t known_pool(const replay *self, size_t event)
{
    const recording *history = self->recording;
    if (!history->has_private_pools)
        return 0;
    const segment_life *life =
        history->events[event].action == VRAM_SNAPSHOT_ALLOC
            ? recording_life_at(history, history->events[event].address, event)
            : NULL;
    return life == NULL ? 0 : life->known ? life->pool : VRAM_OFFSET_MAP_NONE;
}

static void settle_pool(replay *self, size_t event, uint32_t pool)
{
    segment_life *life =
        recording_life_at(self->recording, self->recording->events[event].address, event);
    if (life == NULL || life->known)
        return;
    life->known = true;
    life->pool = pool;
    self->recording->inferred_pools += pool != 0;
}

static bool accept(replay *self, size_t first, size_t event, uint32_t slot)
{
    const recording *history = self->recording;
    self->oracle.chosen_address = 0;
    for (size_t i = first; i < event; i++)
        if (history->events[i].action == VRAM_SNAPSHOT_FREE_COMPLETED)
            vram_offset_map_remove(&self->slots, history->events[i].address);
    if (history->events[event].action == VRAM_SNAPSHOT_OOM) {
        self->report->out_of_memory.equal++;
        return true;
    }
    self->report->allocations.equal++;
    vram_caching_note(self->model, slot, event + 1); /* for whoever asks where a block is from */
    return vram_offset_map_set(&self->slots, history->events[event].address, slot) ||
           out_of_memory(self);
}

typedef enum trial { TRIAL_EXPLAINS, TRIAL_DIFFERS, TRIAL_NO_MEMORY } trial;

/* Tries on a copy, which becomes the model when it explains everything. Otherwise the difference of
 * the explanation that came furthest is kept in *best. */
static trial try_on_copy(replay *self, const explanation *why, size_t first, size_t event,
                         uint32_t *slot, oracle *best)
{
    const oracle before = self->oracle;
    const vram_caching_driver driver = oracle_driver(&self->oracle);
    vram_caching *copy = vram_caching_clone(self->model, &driver);
    if (copy == NULL)
        return TRIAL_NO_MEMORY;
    if (explains(self, copy, why, first, event, slot)) {
        vram_caching_destroy(self->model);
        self->model = copy;
        return TRIAL_EXPLAINS;
    }
    if (!best->differs || self->oracle.differs_at > best->differs_at)
        *best = self->oracle;
    self->oracle = before;
    vram_caching_destroy(copy);
    return TRIAL_DIFFERS;
}

/* What the events before an allocation show. */
typedef struct preamble {
    bool driver_calls, gives_back, completes;
} preamble;

static preamble look_at(const recording *history, size_t first, size_t event)
{
    preamble seen = {false, false, false};
    for (size_t i = first; i < event; i++) {
        const uint32_t action = history->events[i].action;
        seen.driver_calls |= is_segment_event(&history->events[i]);
        seen.gives_back |=
            action == VRAM_SNAPSHOT_SEGMENT_FREE || action == VRAM_SNAPSHOT_SEGMENT_UNMAP;
        seen.completes |= action == VRAM_SNAPSHOT_FREE_COMPLETED;
    }
    return seen;
}

static bool try_explanations(replay *self, const preamble *seen, size_t first, size_t event)
{
    const uint32_t known = known_pool(self, event);
    const uint32_t pools =
        known == VRAM_OFFSET_MAP_NONE ? (uint32_t)self->recording->pool_count : 1;
    oracle best = {.differs = false};
    for (uint32_t k = 0; k < pools; k++)
        for (int emptied = 0; emptied <= (int)seen->gives_back; emptied++)
            for (int late = 0; late <= (int)seen->completes; late++) {
                const explanation why = {.pool = known == VRAM_OFFSET_MAP_NONE ? k : known,
                                         .emptied_before = emptied == 1,
                                         .completed_late = late == 1};
                uint32_t slot = VRAM_CACHING_NONE;
                const trial result = try_on_copy(self, &why, first, event, &slot, &best);
                if (result == TRIAL_NO_MEMORY)
                    return out_of_memory(self);
                if (result == TRIAL_DIFFERS)
                    continue;
                if (known == VRAM_OFFSET_MAP_NONE)
                    settle_pool(self, event, k);
                self->report->empty_caches += why.emptied_before;
                return accept(self, first, event, slot);
            }
    self->oracle = best;
    return true;
}

static bool replay_malloc(replay *self, size_t first, size_t event)
{
    self->oracle.next = first;
    self->oracle.end = event;
    const preamble seen = look_at(self->recording, first, event);
    const uint32_t pool = known_pool(self, event);
    const bool fails = self->recording->events[event].action == VRAM_SNAPSHOT_OOM;
    if (seen.driver_calls || pool == VRAM_OFFSET_MAP_NONE || (fails && seen.completes))
        return try_explanations(self, &seen, first, event);
    const explanation why = {.pool = pool};
    uint32_t slot = VRAM_CACHING_NONE;
    return !explains(self, self->model, &why, first, event, &slot) ||
           accept(self, first, event, slot);
}

/* Events that no allocation follows: completions, and calls of empty_cache. */
static void replay_rest(replay *self, size_t first, size_t end)
{
    self->oracle.next = first;
    self->oracle.end = end;
    complete_polled(self, self->model, first, end);
    if (look_at(self->recording, first, end).driver_calls) {
        mark_unused_pools(self, self->model, first, end);
        vram_caching_empty_cache(self->model);
        self->report->empty_caches++;
        oracle_is_done(&self->oracle);
    }
    for (size_t i = first; i < end && !self->oracle.differs; i++)
        if (self->recording->events[i].action == VRAM_SNAPSHOT_FREE_COMPLETED)
            vram_offset_map_remove(&self->slots, self->recording->events[i].address);
}

/* ------------------------------------------------------------------------------------------------
 * the history */

static bool replay_history(replay *self)
{
    const recording *history = self->recording;
    size_t first = 0; /* what came since the last call that is done */
    for (size_t i = 0; i < self->stop && !self->oracle.differs; i++) {
        const uint32_t action = history->events[i].action;
        if (action == VRAM_SNAPSHOT_ALLOC || action == VRAM_SNAPSHOT_OOM) {
            if (!replay_malloc(self, first, i))
                return false;
            first = i + 1;
        } else if (action == VRAM_SNAPSHOT_FREE_REQUESTED) {
            replay_rest(self, first, i);
            if (!self->oracle.differs)
                request_free(self, i);
            first = i + 1;
            const bool at_once = first < self->stop && is_completed_at_once(history, first);
            if (at_once && !self->oracle.differs)
                replay_rest(self, first, first + 1);
            i += at_once;
            first += at_once;
        }
    }
    if (!self->oracle.differs)
        replay_rest(self, first, self->stop);
    return true;
}

static void count_events(const recording *history, validate_report *report)
{
    for (size_t i = 0; i < history->count; i++) {
        const uint32_t action = history->events[i].action;
        report->allocations.recorded += action == VRAM_SNAPSHOT_ALLOC;
        report->out_of_memory.recorded += action == VRAM_SNAPSHOT_OOM;
        report->segment_events.recorded += is_segment_event(&history->events[i]);
        report->delayed_frees +=
            action == VRAM_SNAPSHOT_FREE_COMPLETED && (i == 0 || !is_completed_at_once(history, i));
    }
    report->events = history->count;
    report->recorded_peak_reserved_bytes = history->peak_reserved_bytes;
    report->reserved_least_bytes = history->reserved_least_bytes;
    report->refused_least_bytes = history->refused_least_bytes;
    report->settings = history->settings;
}

static bool finish_report(replay *self)
{
    validate_report *report = self->report;
    report->model = *vram_caching_stats_of(self->model);
    report->segment_events.equal = self->oracle.matched;
    report->bases = self->oracle.bases;
    report->pools_inferred = self->recording->inferred_pools;
    if (!self->oracle.differs &&
        !validate_final_layout(self->recording, self->model, &self->oracle, report))
        return out_of_memory(self);
    if (!self->oracle.differs &&
        report->model.reserved_peak_bytes != report->recorded_peak_reserved_bytes)
        oracle_differs(&self->oracle, self->recording->count,
                       "a peak of %" PRIu64 " reserved bytes, recorded are %" PRIu64,
                       report->model.reserved_peak_bytes, report->recorded_peak_reserved_bytes);
    report->exact = !self->oracle.differs;
    report->difference_event = self->recording->first_event + self->oracle.differs_at;
    memcpy(report->difference, self->oracle.difference, sizeof report->difference);
    return true;
}

static bool replay_all(replay *self)
{
    const vram_caching_driver driver = oracle_driver(&self->oracle);
    self->model = vram_caching_create(&self->recording->settings, &driver);
    if (self->model == NULL)
        return out_of_memory(self);
    return recording_start(self->recording, self->model, &self->slots, self->report, self->error) &&
           replay_history(self);
}

/* Replays up to an event; the model and what differs are left for the caller. */
static bool run(replay *self, recording *history, validate_report *report, size_t stop,
                vram_error *error)
{
    *self = (replay){.recording = history, .report = report, .stop = stop, .error = error};
    self->oracle.recording = history;
    return replay_all(self);
}

static void end(replay *self)
{
    vram_caching_destroy(self->model);
    vram_offset_map_free(&self->slots);
}

/* Replays; where the start leaves open how much slack a block had, a difference may tell, and the
 * replay begins anew. */
static bool run_and_learn(recording *history, validate_report *report, vram_error *error)
{
    replay self;
    bool done;
    bool again;
    do {
        *report = (validate_report){.exact = false};
        count_events(history, report);
        done = run(&self, history, report, history->count, error) && finish_report(&self);
        again = done && self.oracle.differs && self.oracle.chosen_address != 0 &&
                recording_learn(history, self.oracle.chosen_address, self.oracle.chosen_bytes);
        end(&self);
    } while (again);
    return done;
}

bool validate_recording(const vram_snapshot *snapshot, const validate_options *options,
                        validate_report *report, vram_error *error)
{
    *report = (validate_report){.exact = false};
    recording history;
    if (!recording_open(&history, snapshot, options, error))
        return false;
    const bool done = run_and_learn(&history, report, error);
    recording_close(&history);
    return done;
}

bool recording_look(recording *history, size_t event,
                    bool (*look)(void *context, const vram_caching *model), void *context,
                    vram_error *error)
{
    validate_report report = {.exact = false};
    replay self;
    bool done = run(&self, history, &report, event + 1, error);
    if (done && self.oracle.differs)
        done = vram_fail(error, "event %zu differs: %s", self.oracle.differs_at,
                         self.oracle.difference);
    else if (done)
        done = look(context, self.model) || vram_fail(error, "out of host memory");
    end(&self);
    return done;
}
