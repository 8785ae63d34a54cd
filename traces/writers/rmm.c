/*
 * rmm.c - RAPIDS RMM's log, in its present columns: Thread,Time,Action,Pointer,Size,Stream.
 *
 * Times are of the day, in microseconds, and wrap at midnight; without a clock, events are a
 * microsecond apart. The id is the pointer; as no pointer is 0, id 0 becomes 2^64 - 1.
 */
#include "writer.h"

#include <inttypes.h>
#include <stdio.h>

#define DAY_US (UINT64_C(86400) * 1000000)

static bool rmm_begin(writing *w)
{
    sink_text(&w->sink, "Thread,Time,Action,Pointer,Size,Stream\n");
    return true;
}

static uint64_t microseconds(writing *w, const vram_event *event)
{
    if (!w->info->has_clock)
        return w->report->events;
    if (clock_ns(w, event) % 1000 != 0)
        lose(w, VRAM_LOSS_PRECISION);
    return clock_ns(w, event) / 1000;
}

static void row(writing *w, const vram_event *event, const char *action, uint64_t id,
                uint64_t size_bytes)
{
    const uint64_t us = microseconds(w, event) % DAY_US;
    char text[160], pointer[24] = "(nil)";
    if (event->kind != VRAM_EVENT_TRY)
        snprintf(pointer, sizeof pointer, "0x%" PRIx64, id != 0 ? id : UINT64_MAX);
    const int bytes =
        snprintf(text, sizeof text,
                 "0,%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ".%06" PRIu64 ",%s,%s,%" PRIu64
                 ",0x%" PRIx64 "\n",
                 us / 3600000000, us / 60000000 % 60, us / 1000000 % 60, us % 1000000, action,
                 pointer, size_bytes, vram_trace_stream(w->trace, event->stream));
    sink_bytes(&w->sink, text, (size_t)bytes);
    w->report->lines++;
}

/* A log tells a block's size again at its free: an event of a block carries it. */
static bool rmm_event(writing *w, const vram_event *event)
{
    const uint64_t id = w->ids[event->slot];
    lose_attributes(w, event, LOSE_ALIGN | LOSE_TAG | LOSE_STACK);
    switch ((vram_event_kind)event->kind) {
    case VRAM_EVENT_ALLOC:
        if (id == 0)
            lose(w, VRAM_LOSS_ID);
        row(w, event, "allocate", id, event->size_bytes);
        break;
    case VRAM_EVENT_FREE:
        row(w, event, "free", id, event->size_bytes);
        break;
    case VRAM_EVENT_TRY:
        row(w, event, "allocate failure", 0, event->size_bytes);
        break;
    case VRAM_EVENT_RESIZE:
        lose_event(w, event);
        row(w, event, "free", id, event->size_bytes);
        row(w, event, "allocate", event->id, event->size_bytes);
        break;
    case VRAM_EVENT_RETIRE:
    case VRAM_EVENT_USE:
    case VRAM_EVENT_SYNC:
    case VRAM_EVENT_WAIT:
    case VRAM_EVENT_MARK:
    case VRAM_EVENT_KINDS:
        lose_event(w, event);
        break;
    }
    if (!w->info->has_clock)
        lose(w, VRAM_LOSS_TIME);
    return true;
}

const vram_writer vram_writer_rmm_csv = {
    .name = "rmm-csv",
    .summary = "RAPIDS RMM log (CSV): times in microseconds, streams, refused asks",
    .unit_bytes = 256,
    .begin = rmm_begin,
    .event = rmm_event,
};
