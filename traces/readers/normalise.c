/* normalise.c - see normalise.h. */
#include "normalise.h"

#include <inttypes.h>
#include <stdlib.h>

#define RETIRED        (UINT64_C(1) << 63)
#define LIVE_BYTES_MAX (UINT64_C(1) << 62)
enum { ALIGN_LOG2_MAX = 40 };

typedef struct normalising { /* one call of vram_normalise */
    vram_normaliser *self;
    vram_source *source;
    const vram_raw *raw;
    vram_event *events;
    uint32_t count;
    vram_error *error;
} normalising;

static bool out_of_memory(const normalising *n)
{
    vram_source_fail(n->source, n->error, "out of memory");
    return false;
}

#define ANOMALY(n, anomaly, ...) vram_source_anomaly((n)->source, anomaly, (n)->error, __VA_ARGS__)

static bool set_time(normalising *n)
{
    vram_normaliser *self = n->self;
    if (!n->source->info->has_clock)
        return true;
    if (n->raw->time_ns < self->last_ns &&
        !ANOMALY(n, VRAM_ANOMALY_CLOCK,
                 "the time runs backwards, from %" PRIu64 " to %" PRIu64 " ns", self->last_ns,
                 n->raw->time_ns))
        return false;
    if (n->raw->time_ns > self->last_ns)
        self->last_ns = n->raw->time_ns;
    return true;
}

/* Time starts with the first event that is given out. */
static uint64_t time_since_start(normalising *n)
{
    vram_normaliser *self = n->self;
    if (!n->source->info->has_clock)
        return self->emitted;
    if (self->emitted == 0)
        n->source->info->origin_ns = self->last_ns;
    return self->last_ns - n->source->info->origin_ns;
}

static bool emit(normalising *n, vram_event_kind kind, uint64_t id, uint32_t slot,
                 uint64_t size_bytes)
{
    const bool all_streams = kind == VRAM_EVENT_SYNC && n->raw->stream == UINT64_MAX;
    uint32_t stream = UINT32_MAX;
    if (!all_streams && !vram_source_stream(n->source, n->raw->stream, &stream))
        return out_of_memory(n);
    n->events[n->count++] = (vram_event){
        .id = id,
        .size_bytes = size_bytes,
        .time_ns = time_since_start(n),
        .slot = slot,
        .stream = stream,
        .tag = n->raw->tag,
        .stack = n->raw->stack,
        .kind = (uint8_t)kind,
        .align_log2 = n->raw->align_log2,
    };
    n->self->emitted++;
    return true;
}

/* ---- slots ---- */

static bool take_slot(normalising *n, uint64_t id, uint64_t size_bytes, uint32_t *slot)
{
    vram_normaliser *self = n->self;
    const bool fresh = self->free_count == 0;
    if (fresh && (self->slot_count >= UINT32_MAX - 1 ||
                  !vram_reserve((void **)&self->slots, &self->slot_capacity, self->slot_count + 1,
                                sizeof *self->slots) ||
                  !vram_reserve((void **)&self->free_slots, &self->free_capacity,
                                self->slot_count + 1, sizeof *self->free_slots)))
        return out_of_memory(n);
    *slot = fresh ? (uint32_t)self->slot_count : self->free_slots[self->free_count - 1];
    if (!vram_idmap_put(&self->live, id, *slot))
        return out_of_memory(n);
    self->slot_count += fresh;
    self->free_count -= !fresh;
    self->slots[*slot] = size_bytes;
    self->live_bytes += size_bytes;
    n->source->info->slots = self->slot_count;
    if (self->live.count > n->source->peak_blocks)
        n->source->peak_blocks = self->live.count;
    return true;
}

static bool drop_slot(normalising *n, uint64_t id, uint32_t slot)
{
    vram_normaliser *self = n->self;
    if (!vram_idset_add(&self->freed, id))
        return out_of_memory(n);
    vram_idmap_remove(&self->live, id);
    self->live_bytes -= self->slots[slot] & ~RETIRED;
    self->free_slots[self->free_count++] = slot;
    return true;
}

/* ---- kinds ---- */

static bool check_size(const normalising *n, uint64_t size_bytes)
{
    if (size_bytes < LIVE_BYTES_MAX && n->self->live_bytes < LIVE_BYTES_MAX - size_bytes)
        return true;
    vram_source_fail(n->source, n->error,
                     "%" PRIu64 " bytes on top of %" PRIu64
                     " live ones: no machine has 2^62 bytes, so this is not a size",
                     size_bytes, n->self->live_bytes);
    return false;
}

static bool note_zero(normalising *n, uint64_t id)
{
    if (!ANOMALY(n, VRAM_ANOMALY_ZERO_SIZE, "allocation of 0 bytes (id %" PRIu64 ")", id))
        return false;
    if (n->raw->null_id)
        return true;
    const uint32_t *before = vram_idmap_find(&n->self->zero, id);
    const uint32_t count = before == NULL ? 1 : *before < UINT32_MAX ? *before + 1 : *before;
    return vram_idmap_put(&n->self->zero, id, count) || out_of_memory(n);
}

/* True when the id names a zero-size block; it is then one fewer. */
static bool take_zero(normalising *n, uint64_t id)
{
    uint32_t *count = vram_idmap_find(&n->self->zero, id);
    if (count == NULL)
        return false;
    if (--*count == 0)
        vram_idmap_remove(&n->self->zero, id);
    return true;
}

static bool free_block(normalising *n, uint64_t id, uint32_t slot)
{
    const uint64_t size_bytes = n->self->slots[slot] & ~RETIRED;
    return drop_slot(n, id, slot) && emit(n, VRAM_EVENT_FREE, id, slot, size_bytes);
}

/* Makes the id free to be given to a new block. */
static bool evict(normalising *n, uint64_t id)
{
    const uint32_t *slot = vram_idmap_find(&n->self->live, id);
    if (slot == NULL)
        return true;
    if (!ANOMALY(n, VRAM_ANOMALY_LIVE_ALLOC, "allocation of id %" PRIu64 ", which is still live",
                 id))
        return false;
    return free_block(n, id, *slot);
}

static bool on_alloc(normalising *n, uint64_t id)
{
    const uint64_t size_bytes = n->raw->size_bytes;
    if (size_bytes == 0)
        return note_zero(n, id);
    uint32_t slot = 0;
    return evict(n, id) && check_size(n, size_bytes) && take_slot(n, id, size_bytes, &slot) &&
           emit(n, VRAM_EVENT_ALLOC, id, slot, size_bytes);
}

/* A free, retire or use of an id that is not live. */
static bool on_missing(normalising *n)
{
    const uint64_t id = n->raw->id;
    if (n->raw->null_id)
        return ANOMALY(n, VRAM_ANOMALY_NULL_FREE, "free of NULL");
    if (n->raw->kind == VRAM_EVENT_FREE ? take_zero(n, id)
                                        : vram_idmap_find(&n->self->zero, id) != NULL)
        return true;
    if (vram_idset_has(&n->self->freed, id))
        return ANOMALY(n, VRAM_ANOMALY_DOUBLE_FREE, "id %" PRIu64 " was freed before", id);
    return ANOMALY(n, VRAM_ANOMALY_UNKNOWN_FREE, "id %" PRIu64 " was never allocated", id);
}

static bool on_block(normalising *n)
{
    const uint64_t id = n->raw->id;
    const uint32_t *slot = n->raw->null_id ? NULL : vram_idmap_find(&n->self->live, id);
    if (slot == NULL)
        return on_missing(n);
    uint64_t *state = &n->self->slots[*slot];
    if (n->raw->kind == VRAM_EVENT_FREE)
        return free_block(n, id, *slot);
    if (n->raw->kind == VRAM_EVENT_RETIRE) {
        if (*state & RETIRED)
            return ANOMALY(n, VRAM_ANOMALY_DOUBLE_FREE, "id %" PRIu64 " was let go before", id);
        *state |= RETIRED;
    }
    return emit(n, (vram_event_kind)n->raw->kind, id, *slot, *state & ~RETIRED);
}

static bool rename_block(normalising *n, uint64_t id, uint64_t new_id, uint32_t slot)
{
    if (id == new_id)
        return true;
    if (!evict(n, new_id))
        return false;
    if (!vram_idset_add(&n->self->freed, id) || !vram_idmap_put(&n->self->live, new_id, slot))
        return out_of_memory(n);
    vram_idmap_remove(&n->self->live, id);
    return true;
}

static bool on_resize(normalising *n)
{
    const vram_raw *raw = n->raw;
    const uint64_t new_id = raw->renames ? raw->new_id : raw->id;
    const uint32_t *found = raw->null_id ? NULL : vram_idmap_find(&n->self->live, raw->id);
    if (found == NULL) {
        const bool zero = !raw->null_id && take_zero(n, raw->id);
        if (!zero && !ANOMALY(n, VRAM_ANOMALY_UNKNOWN_RESIZE,
                              "resize of id %" PRIu64 ", which is not live", raw->id))
            return false;
        return on_alloc(n, new_id);
    }
    const uint32_t slot = *found;
    if (raw->size_bytes == 0)
        return free_block(n, raw->id, slot) && note_zero(n, new_id);
    const uint64_t old_bytes = n->self->slots[slot] & ~RETIRED;
    if (!rename_block(n, raw->id, new_id, slot))
        return false;
    n->self->live_bytes -= old_bytes;
    if (!check_size(n, raw->size_bytes))
        return false;
    n->self->live_bytes += raw->size_bytes;
    n->self->slots[slot] = raw->size_bytes;
    return emit(n, VRAM_EVENT_RESIZE, new_id, slot, raw->size_bytes);
}

static bool on_try(normalising *n)
{
    if (n->raw->size_bytes == 0)
        return ANOMALY(n, VRAM_ANOMALY_ZERO_SIZE, "a refused allocation of 0 bytes");
    return check_size(n, n->raw->size_bytes) &&
           emit(n, VRAM_EVENT_TRY, n->raw->id, 0, n->raw->size_bytes);
}

static bool on_wait(normalising *n)
{
    uint32_t other;
    if (!vram_source_stream(n->source, n->raw->size_bytes, &other))
        return out_of_memory(n);
    return emit(n, VRAM_EVENT_WAIT, 0, 0, other);
}

static bool dispatch(normalising *n)
{
    switch ((vram_event_kind)n->raw->kind) {
    case VRAM_EVENT_ALLOC:
        return on_alloc(n, n->raw->id);
    case VRAM_EVENT_FREE:
    case VRAM_EVENT_RETIRE:
    case VRAM_EVENT_USE:
        return on_block(n);
    case VRAM_EVENT_RESIZE:
        return on_resize(n);
    case VRAM_EVENT_TRY:
        return on_try(n);
    case VRAM_EVENT_WAIT:
        return on_wait(n);
    case VRAM_EVENT_SYNC:
    case VRAM_EVENT_MARK:
        return emit(n, (vram_event_kind)n->raw->kind, 0, 0, 0);
    case VRAM_EVENT_KINDS:
        break;
    }
    return ANOMALY(n, VRAM_ANOMALY_SKIPPED, "an entry that has no meaning here");
}

bool vram_normalise(vram_normaliser *normaliser, vram_source *source, const vram_raw *raw,
                    vram_event events[VRAM_NORMALISED_MAX], uint32_t *count, vram_error *error)
{
    normalising n = {
        .self = normaliser, .source = source, .raw = raw, .events = events, .error = error};
    *count = 0;
    if (raw->align_log2 > ALIGN_LOG2_MAX) {
        vram_source_fail(source, error, "an alignment of 2^%u; the largest is 2^%u",
                         (unsigned)raw->align_log2, (unsigned)ALIGN_LOG2_MAX);
        return false;
    }
    if (!set_time(&n))
        return false;
    normaliser->raws++;
    if (!dispatch(&n))
        return false;
    *count = n.count;
    return true;
}

void vram_normaliser_reset(vram_normaliser *normaliser)
{
    vram_idmap_clear(&normaliser->live);
    vram_idmap_clear(&normaliser->zero);
    vram_idset_clear(&normaliser->freed);
    normaliser->slot_count = normaliser->free_count = 0;
    normaliser->live_bytes = normaliser->last_ns = 0;
    normaliser->raws = normaliser->emitted = 0;
}

void vram_normaliser_free(vram_normaliser *normaliser)
{
    vram_idmap_free(&normaliser->live);
    vram_idmap_free(&normaliser->zero);
    vram_idset_free(&normaliser->freed);
    free(normaliser->slots);
    free(normaliser->free_slots);
    *normaliser = (vram_normaliser){0};
}
