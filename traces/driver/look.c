/*
 * look.c - bytes by cause at one moment, from a walk.
 */
#include "run.h"

typedef struct tally {
    vram_look look;
    uint64_t granted_bytes;
    uint64_t run_bytes; /* of spans that no live or pending block occupies, up to here */
    uint64_t end_bytes; /* of the last span; virtual addresses have gaps */
} tally;

static void count_span(void *context, const vram_span *span)
{
    tally *const self = context;
    const uint64_t size_bytes = span->size_bytes;
    bool occupied = false;
    switch (span->kind) {
    case VRAM_SPAN_LIVE:
        self->granted_bytes += size_bytes;
        occupied = true;
        break;
    case VRAM_SPAN_PENDING:
        self->look.pending_bytes += size_bytes;
        occupied = true;
        break;
    case VRAM_SPAN_FREE:
        self->look.free_bytes += size_bytes;
        break;
    case VRAM_SPAN_BOUND:
        self->look.bound_bytes += size_bytes;
        break;
    case VRAM_SPAN_RESERVE:
        self->look.reserve_bytes += size_bytes;
        break;
    case VRAM_SPAN_PADDING:
        self->look.padding_bytes += size_bytes;
        break;
    case VRAM_SPAN_KINDS:
        break;
    }
    if (occupied || span->offset_bytes != self->end_bytes)
        self->run_bytes = 0;
    self->run_bytes += occupied ? 0 : size_bytes;
    self->end_bytes = span->offset_bytes + size_bytes;
    if (self->run_bytes > self->look.largest_free_bytes)
        self->look.largest_free_bytes = self->run_bytes;
}

vram_look vram_look_at(const vram_backend *backend, uint64_t event, uint64_t live_bytes)
{
    tally counted = {.look = {.taken = true, .event = event, .live_bytes = live_bytes}};
    vram_walk(backend, count_span, &counted);
    counted.look.internal_bytes = counted.granted_bytes - live_bytes;
    return counted.look;
}

double vram_look_external(const vram_look *look)
{
    const uint64_t all_free_bytes =
        look->free_bytes + look->bound_bytes + look->reserve_bytes + look->padding_bytes;
    if (all_free_bytes == 0)
        return 0;
    return 1.0 - (double)look->largest_free_bytes / (double)all_free_bytes;
}

double vram_look_internal(const vram_look *look)
{
    const uint64_t granted_bytes = look->live_bytes + look->internal_bytes;
    return granted_bytes == 0 ? 0 : (double)look->internal_bytes / (double)granted_bytes;
}
