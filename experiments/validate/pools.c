/*
 * pools.c - the lives of segments, and to which pool each belonged.
 *
 * A snapshot says to which pool a segment belongs that is there in the end. Of one that was given
 * back before, later files say it in the event; otherwise it is inferred: a release of all cached
 * memory takes every segment of the default pool without a block in use, so one that it leaves must
 * be a capture's; and it takes the default pool's large ones before its small ones, so a large one
 * that comes later is a capture's too. What stays unknown is tried both ways when it is born.
 */
#include "validate/recording.h"

#include <stdlib.h>
#include <string.h>

uint32_t recording_pool(recording *self, const uint64_t id[2])
{
    for (size_t i = 0; i < self->pool_count; i++)
        if (self->pools[i].id[0] == id[0] && self->pools[i].id[1] == id[1])
            return (uint32_t)i;
    if (!vram_reserve((void **)&self->pools, &self->pool_capacity, self->pool_count + 1,
                      sizeof *self->pools))
        return VRAM_OFFSET_MAP_NONE;
    self->pools[self->pool_count] = (pool_id){{id[0], id[1]}};
    return (uint32_t)self->pool_count++;
}

static segment_life *add_life(recording *self, uint64_t address, uint64_t size_bytes)
{
    if (!vram_reserve((void **)&self->lives, &self->life_capacity, self->life_count + 1,
                      sizeof *self->lives))
        return NULL;
    segment_life *life = &self->lives[self->life_count++];
    *life = (segment_life){.address = address,
                           .size_bytes = size_bytes,
                           .died = SIZE_MAX,
                           .small = size_bytes <= VRAM_CACHING_SMALL_SEGMENT};
    if (size_bytes > self->largest_segment_bytes)
        self->largest_segment_bytes = size_bytes;
    return life;
}

static bool learn_pool(recording *self, segment_life *life, const uint64_t id[2])
{
    life->pool = recording_pool(self, id);
    life->known = true;
    return life->pool != VRAM_OFFSET_MAP_NONE;
}

static bool note_birth(recording *self, size_t i, vram_offset_map *open)
{
    const vram_snapshot_event *event = &self->events[i];
    const vram_snapshot_context *context = &self->snapshot->contexts[event->context];
    segment_life *life = add_life(self, event->address, event->size_bytes);
    if (life == NULL)
        return false;
    life->born = i;
    life->stream = recording_stream(self, event);
    return (!context->has_pool || learn_pool(self, life, context->pool)) &&
           vram_offset_map_set(open, event->address, (uint32_t)self->life_count - 1);
}

static bool note_death(recording *self, size_t i, vram_offset_map *open)
{
    const vram_snapshot_event *event = &self->events[i];
    const uint32_t number = vram_offset_map_find(open, event->address);
    segment_life *life = number == VRAM_OFFSET_MAP_NONE
                             ? add_life(self, event->address, event->size_bytes)
                             : &self->lives[number];
    if (life == NULL)
        return false;
    if (number == VRAM_OFFSET_MAP_NONE) {
        life->before = true;
        life->stream = recording_stream(self, event);
    }
    life->died = i;
    vram_offset_map_remove(open, event->address);
    return true;
}

/* The segments that are there in the end. */
static bool note_survivors(recording *self, const vram_offset_map *open)
{
    for (size_t i = 0; i < self->snapshot->segment_count; i++) {
        const vram_snapshot_segment *segment = &self->snapshot->segments[i];
        if (!recording_owns(self, segment) || segment->expandable)
            continue;
        const uint32_t number = vram_offset_map_find(open, segment->address);
        segment_life *life = number == VRAM_OFFSET_MAP_NONE
                                 ? add_life(self, segment->address, segment->total_bytes)
                                 : &self->lives[number];
        if (life == NULL || !learn_pool(self, life, segment->pool))
            return false;
        life->before = number == VRAM_OFFSET_MAP_NONE;
        life->small = segment->small;
        life->stream = recording_stream_number(self, segment->stream);
    }
    return true;
}

static int by_address(const void *a, const void *b)
{
    const segment_life *x = a;
    const segment_life *y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return x->born < y->born ? -1 : x->born > y->born;
}

segment_life *recording_life_at(const recording *self, uint64_t address, size_t event)
{
    size_t low = 0;
    size_t high = self->life_count; /* the first that begins above the address */
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (self->lives[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    while (low-- > 0) {
        segment_life *life = &self->lives[low];
        if (address - life->address >= self->largest_segment_bytes)
            break;
        if (address - life->address < life->size_bytes && (life->before || life->born <= event) &&
            event <= life->died)
            return life;
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------------
 * what a release leaves */

/* The private pool that was in use when a segment was born: that of the last known one before. */
static uint32_t pool_in_use(const recording *self, size_t born)
{
    const segment_life *found = NULL;
    uint32_t first = 0;
    for (size_t k = 0; k < self->life_count; k++) {
        const segment_life *life = &self->lives[k];
        if (!life->known || life->pool == 0)
            continue;
        if (first == 0 || life->pool < first)
            first = life->pool;
        if (life->born <= born && (found == NULL || life->born > found->born))
            found = life;
    }
    return found != NULL ? found->pool : first;
}

static void judge_private(recording *self, segment_life *life)
{
    life->pool = pool_in_use(self, life->born);
    life->known = true;
    self->inferred_pools++;
}

/* All of the default pool's free segments went: what is free and still there is not one. */
static void judge_the_left(recording *self, size_t event)
{
    for (size_t k = 0; k < self->life_count; k++) {
        segment_life *life = &self->lives[k];
        if (!life->known && !life->before && life->born <= event && life->died > event &&
            life->live == 0)
            judge_private(self, life);
    }
}

/* One segment of a release; *small_seen: a small one went before it. */
static void judge_released(recording *self, size_t event, bool *small_seen)
{
    segment_life *life = recording_life_at(self, self->events[event].address, event);
    if (life != NULL && !life->small && *small_seen && !life->known && !life->before)
        judge_private(self, life);
    *small_seen |= life != NULL && life->small;
}

static void infer_from_releases(recording *self)
{
    bool releasing = false;
    bool small_seen = false;
    for (size_t i = 0; i < self->count; i++) {
        const vram_snapshot_event *event = &self->events[i];
        const bool frees = event->action == VRAM_SNAPSHOT_SEGMENT_FREE;
        if (releasing && !frees)
            judge_the_left(self, i - 1);
        small_seen = small_seen && releasing;
        releasing = frees;
        if (frees)
            judge_released(self, i, &small_seen);
        if (event->action != VRAM_SNAPSHOT_ALLOC && event->action != VRAM_SNAPSHOT_FREE_COMPLETED)
            continue;
        segment_life *life = recording_life_at(self, event->address, i);
        if (life == NULL || life->before)
            continue;
        if (event->action == VRAM_SNAPSHOT_ALLOC)
            life->live++;
        else if (life->live > 0)
            life->live--;
    }
}

bool recording_find_lives(recording *self)
{
    const uint64_t default_id[2] = {0, 0};
    vram_offset_map open = {.capacity = 0};
    bool whole = recording_pool(self, default_id) == 0;
    for (size_t i = 0; whole && i < self->count; i++) {
        if (self->events[i].action == VRAM_SNAPSHOT_SEGMENT_ALLOC)
            whole = note_birth(self, i, &open);
        else if (self->events[i].action == VRAM_SNAPSHOT_SEGMENT_FREE)
            whole = note_death(self, i, &open);
    }
    whole = whole && note_survivors(self, &open);
    vram_offset_map_free(&open);
    if (!whole)
        return false;
    if (self->life_count > 0)
        qsort(self->lives, self->life_count, sizeof *self->lives, by_address);
    self->has_private_pools = self->pool_count > 1;
    const bool releases_are_whole = self->settings.gc_threshold <= 0 &&
                                    self->settings.max_split_bytes == VRAM_CACHING_UNLIMITED;
    if (self->has_private_pools && releases_are_whole)
        infer_from_releases(self);
    for (size_t k = 0; k < self->life_count; k++)
        if (!self->has_private_pools || self->lives[k].before)
            self->lives[k].known = true;
    return true;
}
