/*
 * step.c - one event: a call to the backend, and what becomes of the block.
 *
 * A step that nobody observes is a look into the slot table, the call and a few sums. While the
 * replay is recorded, verified or its order checked, the functions called observe_ hand every
 * outcome on:
 *
 *   observe_served, observe_ending, observe_ended -> record.c (timeline)
 *                                                    verify.c (interval model, bytes)
 *                                                    order.c  (streams)
 */
#include "run.h"

#include <inttypes.h>

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

/* ---- while somebody observes ---- */

/* These bytes are from now on used by the block's stream. */
static bool order_take(vram_run *self, const vram_slot *slot, uint64_t offset_bytes,
                       uint64_t size_bytes)
{
    vram_early_reuse early;
    if (!vram_order_take(self->order, self->event, slot->stream, offset_bytes, size_bytes, &early))
        return vram_run_no_memory(self, "the order of streams");
    if (early.event == UINT64_MAX)
        return true;
    if (self->result->early_reuses++ == 0)
        self->result->first_early_reuse = early;
    return true;
}

/* Its users may still be using these bytes. */
static bool order_give_back(vram_run *self, const vram_slot *slot, uint64_t offset_bytes,
                            uint64_t size_bytes)
{
    const uint64_t event = slot->retired ? slot->retired_event : self->event;
    return vram_order_give_back(self->order, event, slot->stream, slot->users, offset_bytes,
                                size_bytes) ||
           vram_run_no_memory(self, "the order of streams");
}

static bool observe_served(vram_run *self, const vram_event *event, vram_slot *slot)
{
    const vram_request request = request_of(self, event);
    return (self->record == NULL || vram_record_alloc(self, event, slot)) &&
           (self->model == NULL || vram_verify_alloc(self, &request, slot)) &&
           (self->order == NULL ||
            order_take(self, slot, slot->block.offset_bytes, slot->block.granted_bytes));
}

/* Before the backend is told. */
static bool observe_ending(vram_run *self, vram_slot *slot)
{
    if (self->model != NULL && !vram_verify_release(self, slot))
        return false;
    if (self->order == NULL)
        return true;
    const bool sound =
        order_give_back(self, slot, slot->block.offset_bytes, slot->block.granted_bytes);
    vram_order_forget_users(self->order, &slot->users);
    return sound;
}

static bool observe_ended(vram_run *self, const vram_event *event, const vram_slot *slot)
{
    return self->record == NULL || vram_record_about_block(self, event, slot, VRAM_OP_RELEASE);
}

/* The block stays where it is: for the timeline and the model its old self ends and a new one
 * begins; to the order of streams only the bytes at its end have come or gone. */
static bool observe_resized(vram_run *self, const vram_event *event, const vram_slot *before,
                            vram_slot *slot)
{
    const vram_request request = request_of(self, event);
    self->last_ns = 0;
    if ((self->model != NULL && !vram_verify_release(self, before)) ||
        (self->record != NULL &&
         (!observe_ended(self, event, before) || !vram_record_alloc(self, event, slot))) ||
        (self->model != NULL && !vram_verify_alloc(self, &request, slot)))
        return false;
    if (self->order == NULL)
        return true;
    const uint64_t old_end = before->block.offset_bytes + before->block.granted_bytes;
    const uint64_t new_end = slot->block.offset_bytes + slot->block.granted_bytes;
    if (new_end > old_end)
        return order_take(self, slot, old_end, new_end - old_end);
    return new_end == old_end || order_give_back(self, before, new_end, old_end - new_end);
}

/* ---- blocks ---- */

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
    return !self->observed || observe_served(self, event, slot);
}

static bool end_block(vram_run *self, const vram_event *event, vram_slot *slot)
{
    if (self->observed && !observe_ending(self, slot))
        return false;
    const vram_result outcome = call_release(self, slot->block);
    if (outcome != VRAM_OK)
        return vram_run_fail(self,
                             "the release of the live block at %" PRIu64 " was answered \"%s\"",
                             slot->block.offset_bytes, vram_result_name(outcome));
    note_ended(self, slot);
    if (self->observed && !observe_ended(self, event, slot))
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
    if (slot->block.handle == 0)
        return true;
    if (slot->retired &&
        self->order != NULL) /* it waited for the other streams, and they are done */
        vram_order_forget_users(self->order, &slot->users);
    return end_block(self, event, slot);
}

static bool do_retire(vram_run *self, const vram_event *event)
{
    if (self->options->free_at_retire)
        return do_release(self, event);
    vram_slot *const slot = &self->slots[event->slot];
    if (slot->block.handle == 0)
        return true;
    slot->retired = true;
    slot->retired_event = self->event;
    return self->record == NULL || vram_record_about_block(self, event, slot, VRAM_OP_RETIRE);
}

static bool do_try(vram_run *self, const vram_event *event)
{
    if (!self->options->tries)
        return true;
    vram_slot slot = {0};
    bool served;
    return serve(self, event, &slot, &served) && (!served || end_block(self, event, &slot));
}

static bool resized_in_place(vram_run *self, const vram_event *event, vram_slot *slot,
                             vram_block block)
{
    const vram_slot before = *slot;
    note_ended(self, slot);
    slot->block = block;
    slot->size_bytes = event->size_bytes;
    slot->number = self->blocks_served;
    self->result->requests++;
    note_served(self, slot);
    return !self->observed || observe_resized(self, event, &before, slot);
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
    vram_slot *const slot = &self->slots[event->slot];
    if (slot->block.handle == 0)
        return true;
    if (self->order != NULL && event->stream != slot->stream &&
        !vram_order_use(self->order, &slot->users, event->stream))
        return vram_run_no_memory(self, "the order of streams");
    if (self->backend->ops->use == NULL)
        return true;
    const vram_result outcome = self->backend->ops->use(self->backend, slot->block, event->stream);
    if (outcome != VRAM_OK && outcome != VRAM_UNSUPPORTED)
        return vram_run_fail(self, "use of the live block at %" PRIu64 " was answered \"%s\"",
                             slot->block.offset_bytes, vram_result_name(outcome));
    return true;
}

static bool do_sync(vram_run *self, const vram_event *event)
{
    if (self->backend->ops->sync != NULL)
        self->backend->ops->sync(self->backend, event->stream);
    return self->order == NULL || vram_order_sync(self->order, self->event, event->stream) ||
           vram_run_no_memory(self, "the order of streams");
}

static bool do_wait(vram_run *self, const vram_event *event)
{
    const uint32_t waited_for = (uint32_t)event->size_bytes;
    if (self->backend->ops->wait != NULL)
        self->backend->ops->wait(self->backend, event->stream, waited_for);
    return self->order == NULL ||
           vram_order_wait(self->order, self->event, event->stream, waited_for) ||
           vram_run_no_memory(self, "the order of streams");
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
        return do_sync(self, event);
    case VRAM_EVENT_WAIT:
        return do_wait(self, event);
    case VRAM_EVENT_MARK:
        return self->record == NULL || vram_record_mark(self, event);
    case VRAM_EVENT_KINDS:
        break;
    }
    return vram_run_fail(self, "an event of unknown kind %d", event->kind);
}

static uint64_t check_every(const vram_run *self)
{
    return self->options->check_every == 0 ? 1 : self->options->check_every;
}

/* After every event that is recorded or verified: each byte of the arena has one cause. */
bool vram_run_account(vram_run *self)
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
    return self->model == NULL || self->event % check_every(self) != 0 || vram_verify_state(self);
}

bool vram_run_step(vram_run *self, const vram_event *event)
{
    const bool goes_on = dispatch(self, event);
    if (!self->observed || (!goes_on && !self->stopped))
        return goes_on;
    if (vram_run_account(self))
        return goes_on;
    self->stopped = false; /* what was found weighs more than the refused request */
    return false;
}
