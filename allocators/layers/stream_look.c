/*
 * stream_look.c - what can be seen of the layer stream: its spans, the invariants that stream.c
 * numbers, its bytes by cause.
 */
#include "layers/stream.h"

typedef struct stream_walk_state {
    const stream *self;
    vram_visit *visit;
    void *context;
} stream_walk_state;

static void visit_inner(void *context, const vram_span *span)
{
    const stream_walk_state *walk = context;
    vram_span own = *span;
    if (own.kind == VRAM_SPAN_LIVE) {
        const uint32_t number = vram_offset_map_find(&walk->self->by_offset, own.offset_bytes);
        const record *it = &walk->self->records[number];
        const bool is_live = it->state == RECORD_LIVE;
        own.kind = is_live ? VRAM_SPAN_LIVE : VRAM_SPAN_PENDING;
        own.handle = is_live ? stream_handle(walk->self, number) : 0;
    }
    walk->visit(walk->context, &own);
}

void stream_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    stream_walk_state walk = {.self = (const stream *)backend, .visit = visit, .context = context};
    vram_layer_walk(backend, visit_inner, &walk);
}

typedef struct stream_check_state {
    const stream *self;
    uint64_t live;
    uint64_t wrong_at; /* UINT64_MAX: nothing wrong */
} stream_check_state;

static void check_inner_span(void *context, const vram_span *span)
{
    stream_check_state *check = context;
    const stream *self = check->self;
    if (span->kind != VRAM_SPAN_LIVE)
        return;
    const uint32_t number = vram_offset_map_find(&self->by_offset, span->offset_bytes);
    check->live++;
    if (number >= self->records_made || self->records[number].state == RECORD_UNUSED ||
        self->records[number].inner.handle != span->handle)
        check->wrong_at = span->offset_bytes;
}

/* I2: the record is where its state says. */
static bool is_listed_rightly(const stream *self, uint32_t number)
{
    const record *it = &self->records[number];
    if (it->state != RECORD_PENDING)
        return true;
    const bool is_first = vram_offset_map_find(&self->by_size, it->size_bytes) == number;
    if (is_first != (it->before == STREAM_NONE))
        return false;
    if (!is_first &&
        (it->before >= self->records_made || self->records[it->before].after != number ||
         self->records[it->before].state != RECORD_PENDING))
        return false;
    return it->after == STREAM_NONE ||
           (it->after < self->records_made && self->records[it->after].before == number);
}

bool stream_check(const vram_backend *backend, vram_fault *fault)
{
    const stream *self = (const stream *)backend;
    if (!vram_layer_check(backend, fault))
        return false;
    stream_check_state check = {.self = self, .wrong_at = UINT64_MAX};
    vram_layer_walk(backend, check_inner_span, &check);
    if (check.wrong_at != UINT64_MAX || check.live != self->by_offset.count ||
        check.live != self->live + self->pending)
        return vram_fault_at(fault, "I1 recorded", check.wrong_at);
    uint64_t live = 0, pending = 0, pending_bytes = 0;
    for (uint32_t number = 0; number < self->records_made; number++) {
        const record *it = &self->records[number];
        if (!is_listed_rightly(self, number))
            return vram_fault_at(fault, "I2 listed", it->inner.offset_bytes);
        live += it->state == RECORD_LIVE;
        pending += it->state == RECORD_PENDING;
        pending_bytes += it->state == RECORD_PENDING ? it->inner.granted_bytes : 0;
    }
    if (live != self->live || pending != self->pending || pending_bytes != self->pending_bytes)
        return vram_fault_at(fault, "I3 counted", 0);
    return true;
}

void stream_stats(const vram_backend *backend, vram_stats *out)
{
    const stream *self = (const stream *)backend;
    vram_layer_stats(backend, out);
    out->granted_bytes -= self->pending_bytes;
    out->pending_bytes += self->pending_bytes;
    out->live_blocks -= self->pending;
    out->waits += self->waits;
    out->bookkeeping_bytes +=
        sizeof *self - sizeof self->layer + self->record_capacity * sizeof *self->records +
        self->user_capacity * sizeof *self->users + lanes_host_bytes(&self->lanes) +
        (self->by_offset.capacity + self->by_size.capacity) * sizeof *self->by_offset.entries;
}

/* Enough bytes are free or pending, but those that are free did not do: the pending ones are why.
 */
void stream_explain(const vram_backend *backend, const vram_request *request, vram_failure *failure)
{
    const stream *self = (const stream *)backend;
    vram_layer_explain(backend, request, failure);
    if (self->pending_bytes > 0 && failure->reason != VRAM_REASON_OVERSIZE &&
        request->size_bytes <= failure->free_bytes)
        failure->reason = VRAM_REASON_PENDING;
}
