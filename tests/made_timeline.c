/*
 * made_timeline.c - see made_timeline.h.
 */
#include "made_timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(bool done)
{
    if (!done)
        abort();
}

static uint64_t time_of(uint32_t event)
{
    return (uint64_t)event * 1000 + event % 7 * 100;
}

uint32_t made_alloc(vram_timeline *timeline, uint32_t event, uint64_t offset, uint64_t size,
                    uint64_t granted)
{
    vram_op op = {
        .time_ns = time_of(event),
        .offset_bytes = offset,
        .size_bytes = size,
        .granted_bytes = granted,
        .event = event,
        .tag = event % 3,
        .stream = (uint16_t)(event % 2),
        .kind = VRAM_OP_ALLOC,
    };
    must(vram_timeline_append(timeline, &op, 1000 + event, event % 2));
    return op.block;
}

void made_on_block(vram_timeline *timeline, vram_op_kind kind, uint32_t event, uint32_t block,
                   uint64_t offset)
{
    const vram_op *const birth = &timeline->ops[timeline->lives[block].birth];
    vram_op op = *birth;
    op.time_ns = time_of(event);
    op.event = event;
    op.offset_bytes = offset;
    op.kind = (uint8_t)kind;
    must(vram_timeline_append(timeline, &op, 0, 0));
}

void made_release(vram_timeline *timeline, uint32_t event, uint32_t block)
{
    made_on_block(timeline, VRAM_OP_RELEASE, event, block,
                  timeline->ops[timeline->lives[block].birth].offset_bytes);
}

void made_fail(vram_timeline *timeline, uint32_t event, uint64_t size, const char *reason)
{
    vram_op op = {.time_ns = time_of(event), .size_bytes = size, .event = event};
    vram_op_failure failure = {
        .event = event, .free_bytes = size + 1, .largest_free_bytes = size - 1};
    snprintf(failure.reason, sizeof failure.reason, "%s", reason);
    must(vram_timeline_append_failure(timeline, &op, &failure));
}

/* ---- at random ---- */

typedef struct made_block {
    uint64_t offset, granted;
    uint32_t number;
    bool retired;
} made_block;

typedef struct made_arena {
    made_block *blocks; /* by address */
    size_t count, capacity;
    uint64_t arena_bytes;
} made_arena;

/* Where the first gap of `bytes` below `limit` is; false when there is none. */
static bool find_gap(const made_arena *arena, uint64_t bytes, uint64_t limit, size_t *place,
                     uint64_t *offset)
{
    uint64_t end = 0;
    for (size_t i = 0; i <= arena->count; i++) {
        const uint64_t next = i < arena->count ? arena->blocks[i].offset : arena->arena_bytes;
        if (end >= limit)
            return false;
        if (next - end >= bytes) {
            *place = i;
            *offset = end;
            return true;
        }
        end = next + (i < arena->count ? arena->blocks[i].granted : 0);
    }
    return false;
}

static void insert(made_arena *arena, size_t place, made_block block)
{
    must(vram_reserve((void **)&arena->blocks, &arena->capacity, arena->count + 1,
                      sizeof *arena->blocks));
    memmove(arena->blocks + place + 1, arena->blocks + place,
            (arena->count - place) * sizeof *arena->blocks);
    arena->blocks[place] = block;
    arena->count++;
}

static made_block take_out(made_arena *arena, size_t place)
{
    const made_block block = arena->blocks[place];
    arena->count--;
    memmove(arena->blocks + place, arena->blocks + place + 1,
            (arena->count - place) * sizeof *arena->blocks);
    return block;
}

static void alloc_one(vram_timeline *timeline, made_arena *arena, uint64_t *seed, uint32_t event,
                      uint64_t most_bytes)
{
    const uint64_t size = 1 + vram_next_random(seed) % most_bytes;
    const uint64_t granted = size + vram_next_random(seed) % (1 + size / 8);
    size_t place;
    uint64_t offset;
    if (find_gap(arena, granted, UINT64_MAX, &place, &offset))
        insert(
            arena, place,
            (made_block){offset, granted, made_alloc(timeline, event, offset, size, granted), 0});
    else
        made_fail(timeline, event, size, "fragmented");
}

/* Releases, retires or moves a block. */
static void touch_one(vram_timeline *timeline, made_arena *arena, uint64_t *seed, uint32_t event)
{
    size_t place = vram_next_random(seed) % arena->count;
    const uint64_t choice = vram_next_random(seed) % 10;
    if (choice == 0 && !arena->blocks[place].retired) {
        arena->blocks[place].retired = true;
        made_on_block(timeline, VRAM_OP_RETIRE, event, arena->blocks[place].number,
                      arena->blocks[place].offset);
        return;
    }
    made_block block = take_out(arena, place);
    if (choice == 1 && find_gap(arena, block.granted, block.offset, &place, &block.offset)) {
        insert(arena, place, block);
        made_on_block(timeline, VRAM_OP_MOVE, event, block.number, block.offset);
        return;
    }
    made_on_block(timeline, VRAM_OP_RELEASE, event, block.number, block.offset);
}

void made_at_random(vram_timeline *timeline, uint64_t seed, size_t ops, uint64_t most_bytes)
{
    const uint64_t arena_bytes = timeline->arena_bytes;
    must(vram_timeline_set_tag(timeline, 2, "gradients"));
    must(vram_timeline_set_stack(timeline, 1, "forward\nmain"));
    must(vram_timeline_set_stream(timeline, 1, 77));
    made_arena arena = {.arena_bytes = arena_bytes};
    uint64_t live_bytes = 0;
    for (uint32_t event = 0; timeline->op_count < ops; event++) {
        live_bytes = 0;
        for (size_t i = 0; i < arena.count; i++)
            live_bytes += arena.blocks[i].granted;
        const uint64_t share = vram_next_random(&seed) % arena_bytes;
        if (arena.count == 0 || share > live_bytes)
            alloc_one(timeline, &arena, &seed, event, most_bytes);
        else
            touch_one(timeline, &arena, &seed, event);
        if (event % 5 == 0)
            must(vram_timeline_note_causes(
                timeline, &(vram_op_causes){.padding_bytes = event % 11 == 0 ? 1 : 0}));
    }
    timeline->complete = true;
    free(arena.blocks);
}

vram_timeline made_random_timeline(uint64_t seed, size_t ops, uint64_t arena_bytes,
                                   uint64_t most_bytes)
{
    vram_timeline timeline;
    must(vram_timeline_begin(&timeline, "made.trace", "made:by=hand", arena_bytes, 1, true));
    made_at_random(&timeline, seed, ops, most_bytes);
    return timeline;
}
