/* oracle.c - see oracle.h. */
#include "validate/oracle.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const char *oracle_event_text(const recording *self, size_t event, char text[EVENT_TEXT])
{
    if (event >= self->count) {
        snprintf(text, EVENT_TEXT, "the end of the recording");
        return text;
    }
    const vram_snapshot_event *e = &self->events[event];
    char size[VRAM_SIZE_TEXT];
    vram_format_size(e->size_bytes, size);
    const char *name = vram_snapshot_action_name((vram_snapshot_action)e->action);
    const uint64_t stream = self->snapshot->contexts[e->context].stream;
    if (e->action == VRAM_SNAPSHOT_OOM)
        snprintf(text, EVENT_TEXT, "%s of %s (%" PRIu64 " bytes) on stream %#" PRIx64, name, size,
                 e->size_bytes, stream);
    else
        snprintf(text, EVENT_TEXT,
                 "%s of %s (%" PRIu64 " bytes) at %#" PRIx64 " on stream %#" PRIx64, name, size,
                 e->size_bytes, e->address, stream);
    return text;
}

void oracle_differs(oracle *self, size_t event, const char *format, ...)
{
    if (self->differs)
        return;
    self->differs = true;
    self->differs_at = event;
    char did[256];
    char recorded[EVENT_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(did, sizeof did, format, arguments);
    va_end(arguments);
    snprintf(self->difference, sizeof self->difference, "recorded: %s; the model: %s",
             oracle_event_text(self->recording, event, recorded), did);
}

/* The next call of the driver that the recording has; what lies between is not the driver's. */
static size_t next_call(oracle *self)
{
    while (self->next < self->end && !is_segment_event(&self->recording->events[self->next]))
        self->next++;
    return self->next;
}

/* Compares a call with the recording's next. An address of 0 is not known to the model. */
static bool expect(oracle *self, vram_snapshot_action action, uint64_t address, uint64_t size_bytes,
                   uint32_t stream)
{
    const size_t at = next_call(self);
    const vram_snapshot_event *event = &self->recording->events[at];
    if (!self->differs && at < self->end && event->action == action &&
        event->size_bytes == size_bytes && (address == 0 || event->address == address) &&
        recording_stream(self->recording, event) == stream) {
        self->next++;
        self->matched++;
        return true;
    }
    char size[VRAM_SIZE_TEXT];
    oracle_differs(self, at, "%s of %s (%" PRIu64 " bytes) at %#" PRIx64 " on stream %#" PRIx64,
                   vram_snapshot_action_name(action), vram_format_size(size_bytes, size),
                   size_bytes, address, self->recording->streams[stream]);
    return false;
}

static bool oracle_take(void *context, vram_caching_segment *segment)
{
    oracle *self = context;
    const size_t at = next_call(self);
    if (!expect(self, VRAM_SNAPSHOT_SEGMENT_ALLOC, 0, segment->size_bytes, segment->stream))
        return false;
    segment->address_bytes = self->recording->events[at].address;
    self->bases++;
    return true;
}

static void oracle_give_back(void *context, const vram_caching_segment *segment)
{
    expect(context, VRAM_SNAPSHOT_SEGMENT_FREE, segment->address_bytes, segment->size_bytes,
           segment->stream);
}

/* A range begins where its first page is mapped. */
static bool oracle_reserve(void *context, vram_caching_segment *segment)
{
    oracle *self = context;
    const size_t at = next_call(self);
    if (at == self->end || self->recording->events[at].action != VRAM_SNAPSHOT_SEGMENT_MAP) {
        oracle_differs(self, at, "a new range of addresses for expandable segments");
        return false;
    }
    segment->address_bytes = self->recording->events[at].address;
    self->bases++;
    return true;
}

static void oracle_unreserve(void *context, const vram_caching_segment *segment)
{
    (void)context;
    (void)segment;
}

static bool oracle_map(void *context, const vram_caching_segment *segment, uint64_t address_bytes,
                       uint64_t size_bytes)
{
    return expect(context, VRAM_SNAPSHOT_SEGMENT_MAP, address_bytes, size_bytes, segment->stream);
}

static void oracle_unmap(void *context, const vram_caching_segment *segment, uint64_t address_bytes,
                         uint64_t size_bytes)
{
    expect(context, VRAM_SNAPSHOT_SEGMENT_UNMAP, address_bytes, size_bytes, segment->stream);
}

vram_caching_driver oracle_driver(oracle *self)
{
    return (vram_caching_driver){.context = self,
                                 .take = oracle_take,
                                 .give_back = oracle_give_back,
                                 .reserve = oracle_reserve,
                                 .unreserve = oracle_unreserve,
                                 .map = oracle_map,
                                 .unmap = oracle_unmap};
}

bool oracle_is_done(oracle *self)
{
    const size_t left = next_call(self);
    if (left < self->end)
        oracle_differs(self, left, "no call of the driver");
    return !self->differs;
}
