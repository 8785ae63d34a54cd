/*
 * sound.c - is a timeline what timeline.h promises? One replay of its operations against its lives.
 *
 * O(operations). Holds 16 bytes a block if blocks move and 1 if blocks retire, else nothing.
 */
#include <vramlab/timeline.h>

#include <stdlib.h>
#include <string.h>

typedef struct life_check {
    const vram_timeline *timeline;
    vram_places places;
    bool *retired; /* NULL until the first RETIRE */
    uint64_t allocs, releases, fails;
} life_check;

static const char out_of_memory[] = "the host is out of memory";

static const char *retire(life_check *self, const vram_op *op)
{
    if (self->retired == NULL) {
        self->retired = calloc(self->timeline->life_count, sizeof *self->retired);
        if (self->retired == NULL)
            return out_of_memory;
    }
    if (self->retired[op->block])
        return "a block is retired twice";
    self->retired[op->block] = true;
    return NULL;
}

static const char *alloc(life_check *self, const vram_op *op, uint32_t index)
{
    const vram_timeline *const timeline = self->timeline;
    if (op->block != self->allocs || op->block >= timeline->life_count ||
        timeline->lives[op->block].birth != index)
        return "the block's number is not the next one";
    self->allocs++;
    if (op->size_bytes == 0 || op->granted_bytes < op->size_bytes ||
        op->granted_bytes > timeline->arena_bytes ||
        op->offset_bytes > timeline->arena_bytes - op->granted_bytes)
        return "the block does not lie within the arena";
    return NULL;
}

/* RELEASE, RETIRE and MOVE: about a block that is alive, of the size it was born with. */
static const char *on_block(life_check *self, const vram_op *op, uint32_t index)
{
    const vram_timeline *const timeline = self->timeline;
    if (op->block >= self->allocs || timeline->lives[op->block].death < index)
        return "the block is not alive";
    const vram_life *const life = &timeline->lives[op->block];
    const vram_op *const birth = &timeline->ops[life->birth];
    if (op->size_bytes != birth->size_bytes || op->granted_bytes != birth->granted_bytes)
        return "the block is not of the size it was born with";
    if (op->kind == VRAM_OP_MOVE)
        return op->offset_bytes > timeline->arena_bytes - op->granted_bytes
                   ? "the block does not lie within the arena"
               : vram_place_move(&self->places, index) ? NULL
                                                       : out_of_memory;
    if (op->offset_bytes != vram_place_of(&self->places, op->block).offset_bytes)
        return "the block is elsewhere";
    if (op->kind == VRAM_OP_RETIRE)
        return retire(self, op);
    self->releases++;
    return life->death == index ? NULL : "the block is released twice";
}

static const char *step(life_check *self, const vram_op *op, uint32_t index)
{
    switch ((vram_op_kind)op->kind) {
    case VRAM_OP_ALLOC:
        return alloc(self, op, index);
    case VRAM_OP_RELEASE:
    case VRAM_OP_RETIRE:
    case VRAM_OP_MOVE:
        return on_block(self, op, index);
    case VRAM_OP_FAIL:
        if (op->block != self->fails || op->block >= self->timeline->failure_count ||
            self->timeline->failures[op->block].op != index)
            return "the failure is not in the list of failures";
        self->fails++;
        return NULL;
    case VRAM_OP_MARK:
        return NULL;
    case VRAM_OP_KINDS:
        break;
    }
    return "the kind is unknown";
}

static bool ops_are_sound(life_check *self, vram_error *error)
{
    const vram_timeline *const timeline = self->timeline;
    uint64_t time_ns = 0;
    uint32_t event = 0;
    for (size_t i = 0; i < timeline->op_count; i++) {
        const vram_op *const op = &timeline->ops[i];
        const char *wrong = step(self, op, (uint32_t)i);
        if (wrong == NULL && (op->time_ns < time_ns || op->event < event))
            wrong = "time runs backwards";
        if (wrong != NULL)
            return vram_fail(error, "operation %zu (%s): %s", i,
                             vram_op_kind_name((vram_op_kind)op->kind), wrong);
        time_ns = op->time_ns;
        event = op->event;
    }
    return true;
}

static bool causes_are_sound(const vram_timeline *timeline)
{
    for (size_t i = 0; i < timeline->cause_count; i++) {
        const vram_op_causes *const causes = &timeline->causes[i];
        if (causes->op >= timeline->op_count || (i > 0 && causes->op <= causes[-1].op))
            return false;
        uint64_t left_bytes = timeline->arena_bytes;
        const uint64_t parts[] = {causes->bound_bytes, causes->pending_bytes, causes->reserve_bytes,
                                  causes->padding_bytes};
        for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
            if (parts[k] > left_bytes)
                return false;
            left_bytes -= parts[k];
        }
    }
    return true;
}

static bool reasons_are_texts(const vram_timeline *timeline)
{
    for (size_t i = 0; i < timeline->failure_count; i++) {
        const vram_op_failure *const failure = &timeline->failures[i];
        if (memchr(failure->reason, '\0', sizeof failure->reason) == NULL)
            return false;
    }
    return true;
}

static bool counts_agree(const life_check *self)
{
    uint64_t deaths = 0;
    for (size_t i = 0; i < self->timeline->life_count; i++)
        deaths += self->timeline->lives[i].death != UINT32_MAX;
    return self->allocs == self->timeline->life_count && self->releases == deaths &&
           self->fails == self->timeline->failure_count;
}

bool vram_timeline_check(const vram_timeline *timeline, vram_error *error)
{
    life_check check = {.timeline = timeline, .places = {.timeline = timeline}};
    const bool good = ops_are_sound(&check, error);
    vram_places_free(&check.places);
    free(check.retired);
    if (!good)
        return false;
    if (!counts_agree(&check))
        return vram_fail(error, "there are more lives or failures than operations tell of");
    if (!reasons_are_texts(timeline))
        return vram_fail(error, "the reason of a failure is not a text");
    return causes_are_sound(timeline) ||
           vram_fail(error, "bytes by cause are out of order or exceed the arena");
}
