/*
 * timeline.c - a timeline in memory: written by appending, freed as a whole.
 *
 *   ops    | alloc 0 | alloc 1 | release 0 | fail 0 | alloc 2 | ...     in the order of the replay
 *   lives  | birth 0, death 2 | birth 1, alive | birth 4, alive |       the n-th ALLOC is block n
 *
 * I1  ops[lives[b].birth] is the ALLOC of block b; ops[lives[b].death], if there is one, its
 * RELEASE. I2  failures, causes and events are ascending by operation.
 */
#include <vramlab/timeline.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(vram_op) == 56, "the file format keeps operations as they are");
_Static_assert(sizeof(vram_life) == 24, "the file format keeps lives as they are");

/* Makes room for `count` elements of the array at `array`. */
#define RESERVE(timeline, name, count)                                                             \
    vram_reserve((void **)&(timeline)->name, &(timeline)->capacity.name, (count),                  \
                 sizeof *(timeline)->name)

static bool append_op(vram_timeline *timeline, const vram_op *op)
{
    if (timeline->op_count >= UINT32_MAX || !RESERVE(timeline, ops, timeline->op_count + 1))
        return false;
    timeline->ops[timeline->op_count++] = *op;
    return true;
}

bool vram_timeline_begin(vram_timeline *timeline, const char *trace, const char *backend,
                         uint64_t arena_bytes, uint64_t unit_bytes, bool has_clock)
{
    *timeline = (vram_timeline){
        .trace = strdup(trace),
        .backend = strdup(backend),
        .arena_bytes = arena_bytes,
        .unit_bytes = unit_bytes,
        .has_clock = has_clock,
    };
    if (timeline->trace != NULL && timeline->backend != NULL &&
        vram_timeline_set_tag(timeline, 0, "") && vram_timeline_set_stack(timeline, 0, ""))
        return true;
    vram_timeline_free(timeline);
    return false;
}

bool vram_timeline_append(vram_timeline *timeline, vram_op *op, uint64_t id, uint32_t stack)
{
    assert(op->kind != VRAM_OP_FAIL);
    if (op->kind == VRAM_OP_ALLOC) {
        if (!RESERVE(timeline, lives, timeline->life_count + 1))
            return false;
        op->block = (uint32_t)timeline->life_count;
    }
    if (!append_op(timeline, op))
        return false;
    const uint32_t index = (uint32_t)(timeline->op_count - 1);
    if (op->kind == VRAM_OP_ALLOC)
        timeline->lives[timeline->life_count++] =
            (vram_life){.birth = index, .death = UINT32_MAX, .id = id, .stack = stack};
    else if (op->kind == VRAM_OP_RELEASE)
        timeline->lives[op->block].death = index;
    return true;
}

bool vram_timeline_append_failure(vram_timeline *timeline, vram_op *op, vram_op_failure *failure)
{
    if (!RESERVE(timeline, failures, timeline->failure_count + 1))
        return false;
    op->kind = VRAM_OP_FAIL;
    op->block = (uint32_t)timeline->failure_count;
    if (!append_op(timeline, op))
        return false;
    failure->op = timeline->op_count - 1;
    timeline->failures[timeline->failure_count++] = *failure;
    return true;
}

static bool same_causes(const vram_op_causes *a, const vram_op_causes *b)
{
    return a->bound_bytes == b->bound_bytes && a->pending_bytes == b->pending_bytes &&
           a->reserve_bytes == b->reserve_bytes && a->padding_bytes == b->padding_bytes;
}

bool vram_timeline_note_causes(vram_timeline *timeline, const vram_op_causes *causes)
{
    const uint64_t op = timeline->op_count > 0 ? timeline->op_count - 1 : 0;
    /* An operation may be noted more than once; the last word counts. */
    while (timeline->cause_count > 0 && timeline->causes[timeline->cause_count - 1].op == op)
        timeline->cause_count--;
    const vram_op_causes none = {0};
    const vram_op_causes *const last =
        timeline->cause_count > 0 ? &timeline->causes[timeline->cause_count - 1] : &none;
    if (same_causes(last, causes))
        return true;
    if (!RESERVE(timeline, causes, timeline->cause_count + 1))
        return false;
    timeline->causes[timeline->cause_count] = *causes;
    timeline->causes[timeline->cause_count++].op = op;
    return true;
}

/* ---- names ---- */

static bool set_text(char ***texts, size_t *count, size_t *capacity, uint32_t index,
                     const char *text)
{
    if (!vram_reserve((void **)texts, capacity, (size_t)index + 1, sizeof **texts))
        return false;
    for (; *count <= index; ++*count)
        if (((*texts)[*count] = strdup("")) == NULL)
            return false;
    char *const copy = strdup(text);
    if (copy == NULL)
        return false;
    free((*texts)[index]);
    (*texts)[index] = copy;
    return true;
}

bool vram_timeline_set_tag(vram_timeline *timeline, uint32_t index, const char *text)
{
    return set_text(&timeline->tags, &timeline->tag_count, &timeline->capacity.tags, index, text);
}

bool vram_timeline_set_stack(vram_timeline *timeline, uint32_t index, const char *text)
{
    return set_text(&timeline->stacks, &timeline->stack_count, &timeline->capacity.stacks, index,
                    text);
}

bool vram_timeline_set_stream(vram_timeline *timeline, uint32_t index, uint64_t handle)
{
    if (!RESERVE(timeline, streams, (size_t)index + 1))
        return false;
    for (; timeline->stream_count <= index; timeline->stream_count++)
        timeline->streams[timeline->stream_count] = 0;
    timeline->streams[index] = handle;
    return true;
}

const char *vram_timeline_tag(const vram_timeline *timeline, uint32_t index)
{
    return index < timeline->tag_count ? timeline->tags[index] : "";
}

const char *vram_timeline_stack(const vram_timeline *timeline, uint32_t index)
{
    return index < timeline->stack_count ? timeline->stacks[index] : "";
}

const char *vram_op_kind_name(vram_op_kind kind)
{
    static const char *const names[VRAM_OP_KINDS] = {
        [VRAM_OP_ALLOC] = "alloc",   [VRAM_OP_RELEASE] = "release", [VRAM_OP_FAIL] = "fail",
        [VRAM_OP_RETIRE] = "retire", [VRAM_OP_MOVE] = "move",       [VRAM_OP_MARK] = "mark",
    };
    return (unsigned)kind < VRAM_OP_KINDS ? names[kind] : "unknown";
}

/* ---- places ---- */

vram_place vram_place_of(const vram_places *places, uint32_t block)
{
    if (places->moved != NULL && places->moved[block].since_op != 0)
        return places->moved[block];
    const uint32_t birth = places->timeline->lives[block].birth;
    return (vram_place){places->timeline->ops[birth].offset_bytes, birth};
}

bool vram_place_move(vram_places *places, uint32_t op)
{
    if (places->moved == NULL)
        places->moved = calloc(places->timeline->life_count, sizeof *places->moved);
    if (places->moved == NULL)
        return false;
    const vram_op *const move = &places->timeline->ops[op];
    places->moved[move->block] = (vram_place){move->offset_bytes, op};
    return true;
}

void vram_places_free(vram_places *places)
{
    free(places->moved);
    places->moved = NULL;
}

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

void vram_timeline_free(vram_timeline *timeline)
{
    free(timeline->trace);
    free(timeline->backend);
    free(timeline->ops);
    free(timeline->lives);
    free(timeline->failures);
    free(timeline->causes);
    free_texts(timeline->tags, timeline->tag_count);
    free_texts(timeline->stacks, timeline->stack_count);
    free(timeline->streams);
    *timeline = (vram_timeline){0};
}
