/*
 * cursor.c - keyframes of live blocks, and what has happened since.
 *
 *   operations  |--------K--------|--------K--------|----
 *   keyframes   {}                {3,7,8}           {3,9,..}
 *                                        ^ seek: those of the keyframe that die later, and those
 *                                          born since that do
 *
 * Birth and death are in the timeline, so that a block which is released between keyframe and
 * moment is never looked at twice. Where blocks have moved, keyframes remember the places too.
 */
#include <vramlab/cursor.h>

#include <stdlib.h>
#include <string.h>

enum {
    LEAST_DISTANCE = 4096,            /* operations between keyframes */
    BUDGET_ENTRIES = 8 * 1024 * 1024, /* of all keyframes together: 128 MiB */
};

typedef struct keyframe {
    size_t first; /* of its entries */
    size_t count;
    uint64_t highest_bytes;
} keyframe;

typedef struct cursor {
    vram_cursor head;
    size_t distance; /* operations from one keyframe to the next */
    keyframe *frames;
    size_t frame_count;
    vram_live *entries; /* of all keyframes */
    size_t entry_count, entry_capacity;
    vram_live *live; /* what head.live points to */
    size_t live_capacity;
    uint32_t *place_in_live; /* by block; only in a timeline with moves */
} cursor;

static bool has_moves(const vram_timeline *timeline)
{
    for (size_t i = 0; i < timeline->op_count; i++)
        if (timeline->ops[i].kind == VRAM_OP_MOVE)
            return true;
    return false;
}

static size_t most_live(const vram_timeline *timeline)
{
    size_t live = 0;
    size_t most = 0;
    for (size_t i = 0; i < timeline->op_count; i++) {
        live += timeline->ops[i].kind == VRAM_OP_ALLOC;
        live -= timeline->ops[i].kind == VRAM_OP_RELEASE;
        most = live > most ? live : most;
    }
    return most;
}

static size_t distance_for(const vram_timeline *timeline)
{
    const size_t frames = BUDGET_ENTRIES / (most_live(timeline) + 1) + 1;
    const size_t distance = timeline->op_count / frames + 1;
    return distance < LEAST_DISTANCE ? LEAST_DISTANCE : distance;
}

static bool dies_before(const vram_timeline *timeline, uint32_t block, size_t op)
{
    return timeline->lives[block].death < op; /* UINT32_MAX: never */
}

static void add_live(cursor *self, uint32_t block, uint64_t offset_bytes)
{
    if (self->place_in_live != NULL)
        self->place_in_live[block] = (uint32_t)self->head.count;
    self->live[self->head.count++] = (vram_live){.offset_bytes = offset_bytes, .block = block};
}

/* What operations [from, to) leave alive at `to`, added to what is there. */
static void replay(cursor *self, size_t from, size_t to)
{
    const vram_timeline *timeline = self->head.timeline;
    for (size_t i = from; i < to; i++) {
        const vram_op *op = &timeline->ops[i];
        const uint64_t end_bytes = op->offset_bytes + op->granted_bytes;
        if (op->kind != VRAM_OP_ALLOC && op->kind != VRAM_OP_MOVE)
            continue;
        if (end_bytes > self->head.highest_bytes)
            self->head.highest_bytes = end_bytes;
        if (dies_before(timeline, op->block, to))
            continue;
        if (op->kind == VRAM_OP_ALLOC)
            add_live(self, op->block, op->offset_bytes);
        else
            self->live[self->place_in_live[op->block]].offset_bytes = op->offset_bytes;
    }
}

static void sum_up(cursor *self)
{
    const vram_timeline *timeline = self->head.timeline;
    self->head.live_bytes = self->head.granted_bytes = 0;
    for (size_t i = 0; i < self->head.count; i++) {
        const vram_op *birth = &timeline->ops[timeline->lives[self->live[i].block].birth];
        self->head.live_bytes += birth->size_bytes;
        self->head.granted_bytes += birth->granted_bytes;
    }
}

bool vram_cursor_seek(vram_cursor *head, size_t op)
{
    cursor *self = (cursor *)head;
    const vram_timeline *timeline = head->timeline;
    const size_t to = op < timeline->op_count ? op : timeline->op_count;
    size_t frame = to / self->distance;
    if (frame >= self->frame_count)
        frame = self->frame_count - 1;
    const keyframe *from = &self->frames[frame];
    const size_t start = frame * self->distance;
    if (!vram_reserve((void **)&self->live, &self->live_capacity, from->count + (to - start) + 1,
                      sizeof *self->live))
        return false;
    head->live = self->live;
    head->count = 0;
    head->highest_bytes = from->highest_bytes;
    for (size_t i = 0; i < from->count; i++) {
        const vram_live *entry = &self->entries[from->first + i];
        if (!dies_before(timeline, entry->block, to))
            add_live(self, entry->block, entry->offset_bytes);
    }
    replay(self, start, to);
    head->op = to;
    sum_up(self);
    return true;
}

/* Keeps the present moment as the next keyframe. */
static bool keep_frame(cursor *self)
{
    const size_t count = self->head.count;
    if (!vram_reserve((void **)&self->entries, &self->entry_capacity, self->entry_count + count,
                      sizeof *self->entries))
        return false;
    if (count > 0)
        memcpy(self->entries + self->entry_count, self->live, count * sizeof *self->live);
    self->frames[self->frame_count++] = (keyframe){
        .first = self->entry_count, .count = count, .highest_bytes = self->head.highest_bytes};
    self->entry_count += count;
    return true;
}

static bool make_frames(cursor *self)
{
    const size_t frames = self->head.timeline->op_count / self->distance + 1;
    self->frames = calloc(frames, sizeof *self->frames);
    if (self->frames == NULL || !keep_frame(self))
        return false;
    for (size_t i = 1; i < frames; i++)
        if (!vram_cursor_seek(&self->head, i * self->distance) || !keep_frame(self))
            return false;
    return vram_cursor_seek(&self->head, 0);
}

bool vram_cursor_new(const vram_timeline *timeline, vram_cursor **out, vram_error *error)
{
    cursor *self = calloc(1, sizeof *self);
    if (self == NULL)
        return vram_fail(error, "the host is out of memory for a cursor");
    self->head.timeline = timeline;
    self->distance = distance_for(timeline);
    bool made = true;
    if (has_moves(timeline)) {
        self->place_in_live = calloc(timeline->life_count + 1, sizeof *self->place_in_live);
        made = self->place_in_live != NULL;
    }
    if (!made || !make_frames(self)) {
        vram_cursor_free(&self->head);
        return vram_fail(error, "the host is out of memory for keyframes");
    }
    *out = &self->head;
    return true;
}

void vram_cursor_free(vram_cursor *head)
{
    cursor *self = (cursor *)head;
    if (self == NULL)
        return;
    free(self->frames);
    free(self->entries);
    free(self->live);
    free(self->place_in_live);
    free(self);
}

typedef struct extent {
    uint64_t from, to;
} extent;

static int by_address(const void *a, const void *b)
{
    const uint64_t left = ((const extent *)a)->from;
    const uint64_t right = ((const extent *)b)->from;
    return (left > right) - (left < right);
}

uint64_t vram_cursor_largest_free(const vram_cursor *head)
{
    const vram_timeline *timeline = head->timeline;
    extent *extents = malloc((head->count + 1) * sizeof *extents);
    if (extents == NULL)
        return 0;
    for (size_t i = 0; i < head->count; i++) {
        const vram_op *birth = &timeline->ops[timeline->lives[head->live[i].block].birth];
        const uint64_t from = head->live[i].offset_bytes;
        extents[i] = (extent){from, from + birth->granted_bytes};
    }
    qsort(extents, head->count, sizeof *extents, by_address);
    uint64_t largest_bytes = 0;
    uint64_t end_bytes = 0;
    for (size_t i = 0; i <= head->count; i++) {
        const uint64_t next_bytes = i < head->count ? extents[i].from : timeline->arena_bytes;
        if (next_bytes > end_bytes && next_bytes - end_bytes > largest_bytes)
            largest_bytes = next_bytes - end_bytes;
        if (i < head->count)
            end_bytes = extents[i].to;
    }
    free(extents);
    return largest_bytes;
}

size_t vram_cursor_at(const vram_cursor *head, uint64_t address_bytes)
{
    const vram_timeline *timeline = head->timeline;
    for (size_t i = 0; i < head->count; i++) {
        const vram_op *birth = &timeline->ops[timeline->lives[head->live[i].block].birth];
        const uint64_t from = head->live[i].offset_bytes;
        if (address_bytes >= from && address_bytes - from < birth->granted_bytes)
            return i;
    }
    return SIZE_MAX;
}
