/* summary.c - one pass over a trace: counts, extremes, and the most that was live at once. */
#include "reader.h"

#include <stdlib.h>

typedef struct summing {
    vram_trace_summary *sum;
    uint64_t unit_bytes;
    uint64_t *slot_bytes; /* by slot, of live blocks */
    size_t slot_capacity;
    uint64_t live_bytes, live_unit_bytes, live_blocks;
} summing;

static uint64_t in_units(const summing *s, uint64_t size_bytes)
{
    return (size_bytes + s->unit_bytes - 1) & ~(s->unit_bytes - 1);
}

static void note_request(summing *s, uint64_t size_bytes)
{
    vram_trace_summary *sum = s->sum;
    if (sum->least_bytes == 0 || size_bytes < sum->least_bytes)
        sum->least_bytes = size_bytes;
    if (size_bytes > sum->greatest_bytes)
        sum->greatest_bytes = size_bytes;
}

static void note_peak(summing *s)
{
    vram_trace_summary *sum = s->sum;
    if (s->live_bytes > sum->peak_live_bytes)
        sum->peak_live_bytes = s->live_bytes;
    if (s->live_blocks > sum->peak_live_blocks)
        sum->peak_live_blocks = s->live_blocks;
    if (s->live_unit_bytes > sum->peak_live_unit_bytes) {
        sum->peak_live_unit_bytes = s->live_unit_bytes;
        sum->peak_event = sum->events;
    }
    if (s->live_unit_bytes > sum->peak_with_try_unit_bytes)
        sum->peak_with_try_unit_bytes = s->live_unit_bytes;
}

static void add_block(summing *s, const vram_event *event)
{
    s->slot_bytes[event->slot] = event->size_bytes;
    s->live_bytes += event->size_bytes;
    s->live_unit_bytes += in_units(s, event->size_bytes);
}

static void remove_block(summing *s, const vram_event *event)
{
    s->live_bytes -= s->slot_bytes[event->slot];
    s->live_unit_bytes -= in_units(s, s->slot_bytes[event->slot]);
}

static void note_try(summing *s, uint64_t size_bytes)
{
    vram_trace_summary *sum = s->sum;
    if (size_bytes > sum->largest_try_bytes)
        sum->largest_try_bytes = size_bytes;
    if (s->live_unit_bytes + in_units(s, size_bytes) > sum->peak_with_try_unit_bytes)
        sum->peak_with_try_unit_bytes = s->live_unit_bytes + in_units(s, size_bytes);
}

static void take_event(summing *s, const vram_event *event)
{
    switch ((vram_event_kind)event->kind) {
    case VRAM_EVENT_ALLOC:
        note_request(s, event->size_bytes);
        add_block(s, event);
        s->live_blocks++;
        break;
    case VRAM_EVENT_RESIZE:
        note_request(s, event->size_bytes);
        remove_block(s, event);
        add_block(s, event);
        break;
    case VRAM_EVENT_FREE:
        remove_block(s, event);
        s->live_blocks--;
        break;
    case VRAM_EVENT_TRY:
        note_try(s, event->size_bytes);
        break;
    case VRAM_EVENT_RETIRE:
    case VRAM_EVENT_USE:
    case VRAM_EVENT_SYNC:
    case VRAM_EVENT_WAIT:
    case VRAM_EVENT_MARK:
    case VRAM_EVENT_KINDS:
        break;
    }
    note_peak(s);
}

static bool sum_events(vram_trace *trace, summing *s, vram_error *error)
{
    const vram_trace_info *info = vram_trace_info_of(trace);
    vram_event event;
    vram_step step;
    while ((step = vram_trace_next(trace, &event, error)) == VRAM_STEP_EVENT) {
        if (!vram_reserve((void **)&s->slot_bytes, &s->slot_capacity, (size_t)info->slots,
                          sizeof *s->slot_bytes))
            return vram_fail(error, "%s: out of memory", info->path);
        if (s->sum->events == 0)
            s->sum->first_ns = event.time_ns;
        s->sum->last_ns = event.time_ns;
        s->sum->by_kind[event.kind]++;
        take_event(s, &event);
        s->sum->events++;
    }
    s->sum->live_at_end_blocks = s->live_blocks;
    s->sum->live_at_end_bytes = s->live_bytes;
    return step == VRAM_STEP_END;
}

bool vram_trace_summarise(vram_trace *trace, vram_trace_summary *summary, vram_error *error)
{
    *summary = (vram_trace_summary){0};
    summing s = {.sum = summary, .unit_bytes = vram_trace_info_of(trace)->unit_bytes};
    const bool summed = vram_trace_rewind(trace, error) && sum_events(trace, &s, error) &&
                        vram_trace_look_closer(trace, error);
    free(s.slot_bytes);
    return summed && vram_trace_rewind(trace, error);
}
