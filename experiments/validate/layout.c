/*
 * layout.c - the segments that were there when the history begins, with their blocks, put into the
 * model.
 *
 * Segments are those that are given back or there in the end without having been taken. Of the
 * ranges of expandable segments, one for each stream and half, the mapped runs at the start come
 * from undoing the history: what it maps was not mapped, what it unmaps was.
 */
#include "validate/layout.h"

#include <inttypes.h>
#include <stdlib.h>

/* A mapped run of a range. */
typedef struct run {
    uint64_t from, to;
    uint32_t stream;
    bool small;
} run;

typedef struct runs {
    run *runs; /* by address */
    size_t count, capacity;
} runs;

/* The pieces of one segment as they are collected. */
typedef struct pieces {
    vram_caching_piece *pieces;
    size_t count, capacity;
    uint32_t *slots;
    size_t slot_capacity;
} pieces;

/* ------------------------------------------------------------------------------------------------
 * mapped runs, backwards in time */

static bool insert_run(runs *self, size_t at, run added)
{
    if (!vram_reserve((void **)&self->runs, &self->capacity, self->count + 1, sizeof *self->runs))
        return false;
    for (size_t k = self->count; k > at; k--)
        self->runs[k] = self->runs[k - 1];
    self->runs[at] = added;
    self->count++;
    return true;
}

static size_t first_after(const runs *self, uint64_t address)
{
    size_t at = 0;
    while (at < self->count && self->runs[at].from <= address)
        at++;
    return at;
}

static bool add_run(runs *self, run added)
{
    const size_t at = first_after(self, added.from);
    run *below = at > 0 ? &self->runs[at - 1] : NULL;
    run *above = at < self->count ? &self->runs[at] : NULL;
    const bool joins_below = below != NULL && below->to == added.from;
    const bool joins_above = above != NULL && above->from == added.to;
    if (!joins_below && !joins_above)
        return insert_run(self, at, added);
    if (!joins_below) {
        above->from = added.from;
        return true;
    }
    below->to = joins_above ? above->to : added.to;
    if (joins_above) {
        self->count--;
        for (size_t k = at; k < self->count; k++)
            self->runs[k] = self->runs[k + 1];
    }
    return true;
}

/* Takes a part out of the run that holds it; a part that no run holds is left alone. */
static bool remove_run(runs *self, uint64_t from, uint64_t to)
{
    const size_t after = first_after(self, from);
    if (after == 0 || self->runs[after - 1].to < to)
        return true;
    run *holder = &self->runs[after - 1];
    const run rest = {to, holder->to, holder->stream, holder->small};
    holder->to = from;
    if (holder->from == from) {
        self->count--;
        for (size_t k = after - 1; k < self->count; k++)
            self->runs[k] = self->runs[k + 1];
        return rest.from == rest.to || insert_run(self, after - 1, rest);
    }
    return rest.from == rest.to || insert_run(self, after, rest);
}

static bool find_runs(const recording *self, runs *found)
{
    const vram_snapshot *snapshot = self->snapshot;
    for (size_t i = 0; i < snapshot->segment_count; i++) {
        const vram_snapshot_segment *s = &snapshot->segments[i];
        const run shown = {s->address, s->address + s->total_bytes,
                           recording_stream_number(self, s->stream), s->small};
        if (recording_owns(self, s) && s->expandable && !add_run(found, shown))
            return false;
    }
    for (size_t i = self->count; i-- > 0;) {
        const vram_snapshot_event *event = &self->events[i];
        const uint64_t from = event->address;
        const uint64_t to = from + event->size_bytes;
        const bool small = event->size_bytes % self->settings.large_segment_bytes != 0;
        if (event->action == VRAM_SNAPSHOT_SEGMENT_MAP && !remove_run(found, from, to))
            return false;
        if (event->action == VRAM_SNAPSHOT_SEGMENT_UNMAP &&
            !add_run(found, (run){from, to, recording_stream(self, event), small}))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------
 * segments into the model */

static bool add_piece(pieces *self, uint64_t size_bytes, uint64_t requested_bytes,
                      vram_caching_state state)
{
    if (size_bytes == 0)
        return true;
    if (!vram_reserve((void **)&self->pieces, &self->capacity, self->count + 1,
                      sizeof *self->pieces))
        return false;
    self->pieces[self->count++] = (vram_caching_piece){size_bytes, requested_bytes, state};
    return true;
}

/* The blocks from *next on that lie below `to`, with what is free between them. */
static bool fill_run(pieces *self, const early_blocks *found, size_t *next, uint64_t from,
                     uint64_t to, vram_error *error)
{
    for (; *next < found->count && found->blocks[*next].address < to; ++*next) {
        const early_block *block = &found->blocks[*next];
        if (block->address < from || block->size_bytes > to - block->address)
            return vram_fail(error,
                             "what was there before its history cannot be rebuilt: the block of "
                             "%" PRIu64 " bytes at %#" PRIx64
                             " does not fit between its neighbours",
                             block->size_bytes, block->address);
        if (!add_piece(self, block->address - from, 0, VRAM_CACHING_FREE) ||
            !add_piece(self, block->size_bytes, block->requested_bytes,
                       block->pending ? VRAM_CACHING_PENDING : VRAM_CACHING_LIVE))
            return vram_fail(error, "out of host memory");
        from = block->address + block->size_bytes;
    }
    return add_piece(self, to - from, 0, VRAM_CACHING_FREE) ||
           vram_fail(error, "out of host memory");
}

static bool put_segment(vram_caching *model, const vram_caching_segment *s, pieces *filled,
                        vram_offset_map *slots, vram_error *error)
{
    if (!vram_reserve((void **)&filled->slots, &filled->slot_capacity, filled->count,
                      sizeof *filled->slots) ||
        !vram_caching_adopt(model, s, filled->pieces, filled->count, filled->slots))
        return vram_fail(error, "out of host memory");
    uint64_t address = s->address_bytes;
    for (size_t k = 0; k < filled->count; k++) {
        const vram_caching_state state = filled->pieces[k].state;
        if ((state == VRAM_CACHING_LIVE || state == VRAM_CACHING_PENDING) &&
            !vram_offset_map_set(slots, address, filled->slots[k]))
            return vram_fail(error, "out of host memory");
        address += filled->pieces[k].size_bytes;
    }
    filled->count = 0;
    return true;
}

/* The next block at or above an address. Blocks below it lie in no segment. */
static size_t skip_to(const early_blocks *found, uint64_t address)
{
    size_t low = 0;
    size_t high = found->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (found->blocks[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool put_lives(const recording *self, vram_caching *model, const early_blocks *found,
                      pieces *filled, vram_offset_map *slots, validate_report *report,
                      vram_error *error)
{
    for (size_t k = 0; k < self->life_count; k++) {
        const segment_life *life = &self->lives[k];
        if (!life->before)
            continue;
        const vram_caching_segment s = {.address_bytes = life->address,
                                        .size_bytes = life->size_bytes,
                                        .stream = life->stream,
                                        .pool = life->pool,
                                        .small = life->small};
        size_t next = skip_to(found, life->address);
        if (!fill_run(filled, found, &next, life->address, life->address + life->size_bytes,
                      error) ||
            !put_segment(model, &s, filled, slots, error))
            return false;
        report->before_segments++;
    }
    return true;
}

/* Where a range begins: at its lowest run, now or later. */
static uint64_t base_of(const recording *self, const run *lowest)
{
    uint64_t base = lowest->from;
    for (size_t i = 0; i < self->count; i++) {
        const vram_snapshot_event *event = &self->events[i];
        const bool near = event->address < base && base - event->address < (UINT64_C(1) << 37);
        const bool small = event->size_bytes % self->settings.large_segment_bytes != 0;
        if (event->action == VRAM_SNAPSHOT_SEGMENT_MAP && near && small == lowest->small &&
            recording_stream(self, event) == lowest->stream)
            base = event->address;
    }
    return base;
}

/* All runs of the first one's stream and half, as one range. */
static bool put_range(const recording *self, vram_caching *model, const early_blocks *found,
                      const runs *mapped, size_t first, pieces *filled, vram_offset_map *slots,
                      vram_error *error)
{
    const run *lowest = &mapped->runs[first];
    vram_caching_segment s = {.address_bytes = base_of(self, lowest),
                              .size_bytes = self->settings.device_bytes,
                              .stream = lowest->stream,
                              .small = lowest->small,
                              .expandable = true};
    uint64_t at = s.address_bytes;
    for (size_t k = first; k < mapped->count; k++) {
        const run *next_run = &mapped->runs[k];
        if (next_run->stream != lowest->stream || next_run->small != lowest->small)
            continue;
        size_t next = skip_to(found, next_run->from);
        if (!add_piece(filled, next_run->from - at, 0, VRAM_CACHING_UNMAPPED))
            return vram_fail(error, "out of host memory");
        if (!fill_run(filled, found, &next, next_run->from, next_run->to, error))
            return false;
        at = next_run->to;
    }
    if (!add_piece(filled, s.address_bytes + s.size_bytes - at, 0, VRAM_CACHING_UNMAPPED))
        return vram_fail(error, "out of host memory");
    return put_segment(model, &s, filled, slots, error);
}

static bool is_first_of_range(const runs *mapped, size_t k)
{
    for (size_t i = 0; i < k; i++)
        if (mapped->runs[i].stream == mapped->runs[k].stream &&
            mapped->runs[i].small == mapped->runs[k].small)
            return false;
    return true;
}

static bool put_ranges(const recording *self, vram_caching *model, const early_blocks *found,
                       pieces *filled, vram_offset_map *slots, validate_report *report,
                       vram_error *error)
{
    runs mapped = {.count = 0};
    bool done = find_runs(self, &mapped) || vram_fail(error, "out of host memory");
    for (size_t k = 0; done && k < mapped.count; k++) {
        if (!is_first_of_range(&mapped, k))
            continue;
        done = put_range(self, model, found, &mapped, k, filled, slots, error);
        report->before_segments++;
    }
    free(mapped.runs);
    return done;
}

static bool put_all(recording *self, vram_caching *model, early_blocks *found, pieces *filled,
                    vram_offset_map *slots, validate_report *report, vram_error *error)
{
    for (size_t k = 1; k < self->pool_count; k++)
        if (vram_caching_add_pool(model) == VRAM_CACHING_NONE)
            return vram_fail(error, "out of host memory");
    if (!early_find(self, found) || !early_find_slack(self, found, &report->before_slack_bytes))
        return vram_fail(error, "out of host memory");
    for (size_t k = 0; k < found->count; k++)
        report->before_bytes += found->blocks[k].size_bytes;
    report->before_blocks = found->count;
    return put_lives(self, model, found, filled, slots, report, error) &&
           put_ranges(self, model, found, filled, slots, report, error);
}

bool recording_start(recording *self, vram_caching *model, vram_offset_map *slots,
                     validate_report *report, vram_error *error)
{
    early_blocks found = {.count = 0};
    pieces filled = {.count = 0};
    bool done = put_all(self, model, &found, &filled, slots, report, error);
    if (done && slots->count != found.count)
        done = vram_fail(error,
                         "what was there before its history cannot be rebuilt: %zu of %zu blocks "
                         "lie in no segment",
                         found.count - slots->count, found.count);
    free(found.blocks);
    free(filled.pieces);
    free(filled.slots);
    return done;
}
