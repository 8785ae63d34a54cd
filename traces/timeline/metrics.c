/*
 * metrics.c - the arena after every operation, from the operations alone.
 *
 * Counters move with the operations; where free spans are is kept by occupancy.c; the backend's own
 * bytes by cause come from the timeline's notes. After every operation the parts are added up: they
 * must be the arena.
 */
#include "occupancy.h"

#include <vramlab/metrics.h>

#include <stdlib.h>

double vram_moment_external(const vram_moment *moment)
{
    if (moment->unoccupied_bytes == 0)
        return 0;
    return 1.0 - (double)moment->largest_free_bytes / (double)moment->unoccupied_bytes;
}

double vram_moment_internal(const vram_moment *moment)
{
    const uint64_t granted_bytes = vram_moment_granted(moment);
    return granted_bytes == 0 ? 0 : (double)moment->internal_bytes / (double)granted_bytes;
}

/* ---- the walk ---- */

typedef struct metrics_walk {
    const vram_timeline *timeline;
    vram_occupancy *occupancy;
    vram_places places;
    bool *retired; /* by block; NULL until the first RETIRE */
    size_t next_cause;
    vram_moment moment;
    const char *wrong;
} metrics_walk;

static const char out_of_memory[] = "the host is out of memory";

static bool wrong(metrics_walk *self, const char *what)
{
    self->wrong = what;
    return false;
}

static bool occupy(metrics_walk *self, const vram_op *op)
{
    switch (vram_occupy(self->occupancy, op->offset_bytes, op->granted_bytes)) {
    case VRAM_OCCUPIED:
        return true;
    case VRAM_OVERLAPS:
        return wrong(self, "the block overlaps one that is live");
    case VRAM_OCCUPANCY_FULL:
        break;
    }
    return wrong(self, out_of_memory);
}

static bool alloc(metrics_walk *self, const vram_op *op)
{
    if (!occupy(self, op))
        return false;
    self->moment.live_blocks++;
    self->moment.live_bytes += op->size_bytes;
    self->moment.internal_bytes += op->granted_bytes - op->size_bytes;
    return true;
}

static bool release(metrics_walk *self, const vram_op *op)
{
    if (!vram_vacate(self->occupancy, op->offset_bytes))
        return wrong(self, "the block is not where it was");
    self->moment.live_blocks--;
    self->moment.live_bytes -= op->size_bytes;
    self->moment.internal_bytes -= op->granted_bytes - op->size_bytes;
    if (self->retired != NULL && self->retired[op->block])
        self->moment.retired_bytes -= op->size_bytes;
    return true;
}

static bool retire(metrics_walk *self, const vram_op *op)
{
    if (self->retired == NULL)
        self->retired = calloc(self->timeline->life_count, sizeof *self->retired);
    if (self->retired == NULL)
        return wrong(self, out_of_memory);
    self->retired[op->block] = true;
    self->moment.retired_bytes += op->size_bytes;
    return true;
}

static bool move(metrics_walk *self, const vram_op *op, uint32_t index)
{
    if (!vram_vacate(self->occupancy, vram_place_of(&self->places, op->block).offset_bytes))
        return wrong(self, "the block is not where it was");
    if (!vram_place_move(&self->places, index))
        return wrong(self, out_of_memory);
    return occupy(self, op);
}

static bool step(metrics_walk *self, const vram_op *op, uint32_t index)
{
    switch ((vram_op_kind)op->kind) {
    case VRAM_OP_ALLOC:
        return alloc(self, op);
    case VRAM_OP_RELEASE:
        return release(self, op);
    case VRAM_OP_RETIRE:
        return retire(self, op);
    case VRAM_OP_MOVE:
        return move(self, op, index);
    case VRAM_OP_FAIL:
    case VRAM_OP_MARK:
    case VRAM_OP_KINDS:
        break;
    }
    return true;
}

/* Brings what follows from the rest up to date; the parts must add up to the arena. */
static bool account(metrics_walk *self, uint32_t index)
{
    const vram_timeline *const timeline = self->timeline;
    vram_moment *const moment = &self->moment;
    while (self->next_cause < timeline->cause_count &&
           timeline->causes[self->next_cause].op <= index) {
        const vram_op_causes *const causes = &timeline->causes[self->next_cause++];
        moment->bound_bytes = causes->bound_bytes;
        moment->pending_bytes = causes->pending_bytes;
        moment->reserve_bytes = causes->reserve_bytes;
        moment->padding_bytes = causes->padding_bytes;
    }
    const uint64_t told_bytes =
        moment->bound_bytes + moment->pending_bytes + moment->reserve_bytes + moment->padding_bytes;
    moment->op = index;
    moment->unoccupied_bytes = timeline->arena_bytes - vram_moment_granted(moment);
    if (told_bytes > moment->unoccupied_bytes)
        return wrong(self, "live blocks and the backend's bytes by cause exceed the arena");
    moment->free_bytes = moment->unoccupied_bytes - told_bytes;
    moment->extent_bytes = vram_extent(self->occupancy);
    moment->largest_free_bytes = vram_largest_gap(self->occupancy);
    return true;
}

bool vram_metrics_walk(const vram_timeline *timeline, vram_moment_visit *visit, void *context,
                       vram_error *error)
{
    metrics_walk walk = {
        .timeline = timeline,
        .occupancy = vram_occupancy_new(timeline->arena_bytes),
        .places = {.timeline = timeline},
    };
    if (walk.occupancy == NULL)
        return vram_fail(error, "metrics: %s", out_of_memory);
    bool going = true;
    for (uint32_t i = 0; going && i < timeline->op_count; i++) {
        if (!step(&walk, &timeline->ops[i], i) || !account(&walk, i))
            vram_fail(error, "timeline of %s on %s: operation %u: %s", timeline->trace,
                      timeline->backend, i, walk.wrong);
        going = walk.wrong == NULL && visit(context, &walk.moment);
    }
    vram_occupancy_free(walk.occupancy);
    vram_places_free(&walk.places);
    free(walk.retired);
    return walk.wrong == NULL;
}
