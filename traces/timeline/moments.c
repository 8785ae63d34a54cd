/*
 * moments.c - checkpoints of the numbers, and what cannot be counted on from them.
 *
 *   operations   |---1024---|---1024---|--      live, granted, blocks: from the checkpoint before,
 *   checkpoints  *          *          *        counted on through the operations since
 *   steps           x   x           x           largest free span, extent, retired bytes: from the
 *                                               last change of any
 *   causes       as the timeline notes them
 */
#include "curve_walk.h"

#include <vramlab/moments.h>

#include <stdlib.h>

enum { DISTANCE = 1024 }; /* operations from one checkpoint to the next */

typedef struct moment_walk {
    vram_moments *moments;
    vram_curve_walk curves;
    uint64_t highest_bytes;
    bool out_of_memory;
} moment_walk;

static bool note_step(vram_moments *self, const vram_moment *moment)
{
    const vram_largest_step *const last =
        self->step_count > 0 ? &self->steps[self->step_count - 1] : NULL;
    if (last != NULL && last->largest_free_bytes == moment->largest_free_bytes &&
        last->extent_bytes == moment->extent_bytes && last->retired_bytes == moment->retired_bytes)
        return true;
    if (!vram_reserve((void **)&self->steps, &self->step_capacity, self->step_count + 1,
                      sizeof *self->steps))
        return false;
    self->steps[self->step_count++] =
        (vram_largest_step){moment->largest_free_bytes, moment->extent_bytes, moment->retired_bytes,
                            (uint32_t)moment->op};
    return true;
}

static bool take(void *context, const vram_moment *moment)
{
    moment_walk *const self = context;
    vram_moments *const moments = self->moments;
    vram_curve_walk_take(&self->curves, moment);
    if (moment->extent_bytes > self->highest_bytes)
        self->highest_bytes = moment->extent_bytes;
    if ((moment->op + 1) % DISTANCE == 0) {
        moments->checkpoints[moments->checkpoint_count] = *moment;
        moments->highest_bytes[moments->checkpoint_count++] = self->highest_bytes;
    }
    self->out_of_memory = !note_step(moments, moment);
    return !self->out_of_memory;
}

bool vram_moments_make(const vram_timeline *timeline, uint64_t events, uint32_t curve_width,
                       vram_moments *moments, vram_error *error)
{
    const size_t checkpoints = timeline->op_count / DISTANCE + 1;
    *moments = (vram_moments){
        .timeline = timeline,
        .checkpoints = calloc(checkpoints, sizeof *moments->checkpoints),
        .highest_bytes = calloc(checkpoints, sizeof *moments->highest_bytes),
    };
    moment_walk walk = {.moments = moments};
    bool made = (moments->checkpoints != NULL && moments->highest_bytes != NULL) ||
                vram_fail(error, "the host is out of memory for checkpoints");
    if (made) {
        moments->checkpoints[0] = vram_moment_before(timeline);
        moments->checkpoint_count = 1;
        made =
            vram_curve_walk_begin(&walk.curves, timeline, VRAM_AXIS_EVENT, (vram_window){0, events},
                                  curve_width, &moments->curves, error) &&
            vram_metrics_walk(timeline, take, &walk, error);
    }
    if (made && walk.out_of_memory)
        made = vram_fail(error, "the host is out of memory for the largest free spans");
    if (!made) {
        vram_moments_free(moments);
        return false;
    }
    vram_curve_walk_end(&walk.curves);
    return true;
}

void vram_moments_free(vram_moments *moments)
{
    vram_curves_free(&moments->curves);
    free(moments->checkpoints);
    free(moments->highest_bytes);
    free(moments->steps);
    *moments = (vram_moments){0};
}

/* The last step or note at or before operation `op`; SIZE_MAX: none. */
static size_t last_step(const vram_moments *self, uint64_t op)
{
    size_t low = 0;
    size_t high = self->step_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (self->steps[middle].op <= op)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

static size_t last_note(const vram_timeline *timeline, uint64_t op)
{
    size_t low = 0;
    size_t high = timeline->cause_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (timeline->causes[middle].op <= op)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

/* Counts operations [from, to) on. */
static void count_on(const vram_timeline *timeline, size_t from, size_t to, vram_moment *moment,
                     uint64_t *highest_bytes)
{
    for (size_t i = from; i < to; i++) {
        const vram_op *const op = &timeline->ops[i];
        const uint64_t rounding_bytes = op->granted_bytes - op->size_bytes;
        const uint64_t end_bytes = op->offset_bytes + op->granted_bytes;
        if (op->kind == VRAM_OP_ALLOC) {
            moment->live_bytes += op->size_bytes;
            moment->internal_bytes += rounding_bytes;
            moment->live_blocks++;
        } else if (op->kind == VRAM_OP_RELEASE) {
            moment->live_bytes -= op->size_bytes;
            moment->internal_bytes -= rounding_bytes;
            moment->live_blocks--;
        }
        if ((op->kind == VRAM_OP_ALLOC || op->kind == VRAM_OP_MOVE) && end_bytes > *highest_bytes)
            *highest_bytes = end_bytes;
    }
}

vram_moment vram_moments_at(const vram_moments *moments, size_t op_count, uint64_t *highest_bytes)
{
    const vram_timeline *const timeline = moments->timeline;
    const size_t until = op_count < timeline->op_count ? op_count : timeline->op_count;
    const size_t checkpoint = until / DISTANCE;
    vram_moment moment = moments->checkpoints[checkpoint];
    *highest_bytes = moments->highest_bytes[checkpoint];
    count_on(timeline, checkpoint * DISTANCE, until, &moment, highest_bytes);
    if (until == 0)
        return moment;
    moment.op = until - 1;
    const vram_largest_step *const step = &moments->steps[last_step(moments, moment.op)];
    moment.largest_free_bytes = step->largest_free_bytes;
    moment.extent_bytes = step->extent_bytes;
    moment.retired_bytes = step->retired_bytes;
    const size_t note = last_note(timeline, moment.op);
    if (note != SIZE_MAX) {
        moment.bound_bytes = timeline->causes[note].bound_bytes;
        moment.pending_bytes = timeline->causes[note].pending_bytes;
        moment.reserve_bytes = timeline->causes[note].reserve_bytes;
        moment.padding_bytes = timeline->causes[note].padding_bytes;
    }
    moment.unoccupied_bytes = timeline->arena_bytes - vram_moment_granted(&moment);
    moment.free_bytes = moment.unoccupied_bytes - moment.bound_bytes - moment.pending_bytes -
                        moment.reserve_bytes - moment.padding_bytes;
    return moment;
}
