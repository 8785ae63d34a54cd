/*
 * record.c - writes a replay down in a timeline.
 */
#include "run.h"

#include <stdio.h>
#include <string.h>

static bool out_of_memory(vram_run *self)
{
    return vram_run_no_memory(self, "the timeline");
}

static const char *without_folders(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

bool vram_record_begin(vram_run *self)
{
    if (!vram_timeline_begin(self->record, without_folders(self->info->path), self->backend->spec,
                             self->backend->address_bytes, self->info->unit_bytes,
                             self->info->has_clock))
        return out_of_memory(self);
    return true;
}

static uint8_t flags_of(const vram_event *event)
{
    return event->kind == VRAM_EVENT_TRY ? VRAM_OP_FLAG_TRY : 0;
}

static vram_op op_on_block(const vram_run *self, const vram_event *event, const vram_slot *slot,
                           vram_op_kind kind)
{
    return (vram_op){
        .time_ns = event->time_ns,
        .event = (uint32_t)self->event,
        .offset_bytes = slot->block.offset_bytes,
        .size_bytes = slot->size_bytes,
        .granted_bytes = slot->block.granted_bytes,
        .block = slot->number,
        .latency_ns = self->last_ns,
        .tag = slot->tag,
        .stream = slot->stream,
        .kind = (uint8_t)kind,
        .flags = flags_of(event),
    };
}

bool vram_record_alloc(vram_run *self, const vram_event *event, vram_slot *slot)
{
    vram_op op = op_on_block(self, event, slot, VRAM_OP_ALLOC);
    if (!vram_timeline_append(self->record, &op, event->id, slot->stack))
        return out_of_memory(self);
    slot->number = op.block;
    return true;
}

bool vram_record_about_block(vram_run *self, const vram_event *event, const vram_slot *slot,
                             vram_op_kind kind)
{
    vram_op op = op_on_block(self, event, slot, kind);
    if (kind == VRAM_OP_RETIRE)
        op.latency_ns = 0;
    return vram_timeline_append(self->record, &op, event->id, slot->stack) || out_of_memory(self);
}

bool vram_record_failure(vram_run *self, const vram_event *event, const vram_failure *failure)
{
    vram_op op = {
        .time_ns = event->time_ns,
        .event = (uint32_t)self->event,
        .size_bytes = event->size_bytes,
        .latency_ns = self->last_ns,
        .tag = event->tag,
        .stream = (uint16_t)event->stream,
        .kind = VRAM_OP_FAIL,
        .flags = flags_of(event),
    };
    vram_op_failure written = {
        .event = self->event,
        .free_bytes = failure->free_bytes,
        .largest_free_bytes = failure->largest_free_bytes,
    };
    snprintf(written.reason, sizeof written.reason, "%s", vram_reason_name(failure->reason));
    return vram_timeline_append_failure(self->record, &op, &written) || out_of_memory(self);
}

bool vram_record_mark(vram_run *self, const vram_event *event)
{
    vram_op op = {
        .time_ns = event->time_ns,
        .event = (uint32_t)self->event,
        .tag = event->tag,
        .stream = (uint16_t)event->stream,
        .kind = VRAM_OP_MARK,
    };
    return vram_timeline_append(self->record, &op, 0, 0) || out_of_memory(self);
}

bool vram_record_causes(vram_run *self, const vram_stats *stats)
{
    const vram_op_causes causes = {
        .bound_bytes = stats->bound_bytes,
        .pending_bytes = stats->pending_bytes,
        .reserve_bytes = stats->reserve_bytes,
        /* to a timeline, addresses without memory are a part of the arena that serves nobody */
        .padding_bytes =
            stats->padding_bytes + self->backend->address_bytes - self->backend->arena_bytes,
    };
    return vram_timeline_note_causes(self->record, &causes) || out_of_memory(self);
}

bool vram_record_finish(vram_run *self)
{
    vram_timeline *const record = self->record;
    for (uint32_t tag = 0; tag < self->info->tags; tag++)
        if (!vram_timeline_set_tag(record, tag, vram_trace_tag(self->trace, tag)))
            return out_of_memory(self);
    for (uint32_t stack = 0; stack < self->info->stacks; stack++)
        if (!vram_timeline_set_stack(record, stack, vram_trace_stack(self->trace, stack)))
            return out_of_memory(self);
    for (uint32_t stream = 0; stream < self->info->streams; stream++)
        if (!vram_timeline_set_stream(record, stream, vram_trace_stream(self->trace, stream)))
            return out_of_memory(self);
    record->complete = !self->stopped;
    return true;
}
