/*
 * curves.c - a timeline's numbers at a width: each column keeps the least and the greatest of every
 * number that held at any time within it.
 */
#include "curve_walk.h"

#include <stdlib.h>

vram_window vram_axis_whole(const vram_timeline *timeline, vram_axis axis)
{
    if (timeline->op_count == 0)
        return (vram_window){0, 1};
    const uint64_t last = vram_op_position(&timeline->ops[timeline->op_count - 1], axis);
    /* An event takes one step of its axis; time only has to be longer than nothing. */
    return (vram_window){0, axis == VRAM_AXIS_EVENT || last == 0 ? last + 1 : last};
}

size_t vram_axis_ops_until(const vram_timeline *timeline, vram_axis axis, uint64_t position)
{
    size_t low = 0;
    size_t high = timeline->op_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (vram_op_position(&timeline->ops[middle], axis) <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- least and greatest, field by field ---- */

#define FOR_EACH_FIELD(DO)                                                                         \
    DO(op)                                                                                         \
    DO(live_bytes)                                                                                 \
    DO(internal_bytes)                                                                             \
    DO(bound_bytes)                                                                                \
    DO(pending_bytes)                                                                              \
    DO(reserve_bytes)                                                                              \
    DO(padding_bytes)                                                                              \
    DO(free_bytes)                                                                                 \
    DO(retired_bytes)                                                                              \
    DO(live_blocks)                                                                                \
    DO(extent_bytes)                                                                               \
    DO(unoccupied_bytes)                                                                           \
    DO(largest_free_bytes)

static void widen_fields(vram_curve_column *column, const vram_moment *moment)
{
#define WIDEN(field)                                                                               \
    if (moment->field < column->least.field)                                                       \
        column->least.field = moment->field;                                                       \
    if (moment->field > column->greatest.field)                                                    \
        column->greatest.field = moment->field;
    FOR_EACH_FIELD(WIDEN)
#undef WIDEN
}

static void widen_external(vram_curve_column *column, double least, double greatest)
{
    if (least < column->least_external)
        column->least_external = least;
    if (greatest > column->greatest_external)
        column->greatest_external = greatest;
}

static void widen(vram_curve_column *column, const vram_moment *moment)
{
    const double external = vram_moment_external(moment);
    widen_fields(column, moment);
    widen_external(column, external, external);
}

static void begin(vram_curve_column *column, const vram_moment *moment)
{
    const double external = vram_moment_external(moment);
    *column = (vram_curve_column){*moment, *moment, external, external};
}

/* ---- the walk ---- */

vram_moment vram_moment_before(const vram_timeline *timeline)
{
    return (vram_moment){.free_bytes = timeline->arena_bytes,
                         .unoccupied_bytes = timeline->arena_bytes,
                         .largest_free_bytes = timeline->arena_bytes};
}

/* Begins, in the state of now, all columns that start before `position`; or also exactly there. */
static void begin_columns(vram_curve_walk *self, uint64_t position, bool there_too)
{
    vram_curves *const curves = self->curves;
    const uint64_t span = curves->window.to - curves->window.from;
    for (; self->next_column < curves->width; self->next_column++) {
        const uint64_t rest = span % curves->width * self->next_column;
        const uint64_t start =
            curves->window.from + span / curves->width * self->next_column + rest / curves->width;
        const bool between = rest % curves->width != 0; /* the column starts after `start` */
        if (start > position || (start == position && (between || !there_too)))
            return;
        begin(&curves->columns[self->next_column], &self->now);
    }
}

bool vram_curve_walk_begin(vram_curve_walk *self, const vram_timeline *timeline, vram_axis axis,
                           vram_window window, uint32_t width, vram_curves *curves,
                           vram_error *error)
{
    *curves = (vram_curves){.axis = axis, .window = window, .width = width};
    *self = (vram_curve_walk){
        .timeline = timeline, .curves = curves, .now = vram_moment_before(timeline)};
    curves->peak = self->now;
    if (window.from >= window.to)
        return vram_fail(error, "the window of the curves is empty");
    if (width > 0 && (curves->columns = calloc(width, sizeof *curves->columns)) == NULL)
        return vram_fail(error, "curves: the host is out of memory");
    return true;
}

void vram_curve_walk_take(vram_curve_walk *self, const vram_moment *moment)
{
    vram_curves *const curves = self->curves;
    const uint64_t position = vram_op_position(&self->timeline->ops[moment->op], curves->axis);
    begin_columns(self, position, false);
    self->now = *moment;
    begin_columns(self, position, true);
    if (self->next_column > 0 && position < curves->window.to)
        widen(&curves->columns[self->next_column - 1], moment);
    if (moment->live_bytes > curves->peak.live_bytes)
        curves->peak = *moment;
}

void vram_curve_walk_end(vram_curve_walk *self)
{
    begin_columns(self, UINT64_MAX, true);
    self->curves->end = self->now;
}

static bool take(void *context, const vram_moment *moment)
{
    vram_curve_walk_take(context, moment);
    return true;
}

bool vram_curves_make(const vram_timeline *timeline, vram_axis axis, vram_window window,
                      uint32_t width, vram_curves *curves, vram_error *error)
{
    vram_curve_walk walk;
    if (!vram_curve_walk_begin(&walk, timeline, axis, window, width, curves, error))
        return false;
    if (!vram_metrics_walk(timeline, take, &walk, error)) {
        vram_curves_free(curves);
        return false;
    }
    vram_curve_walk_end(&walk);
    return true;
}

/* ---- another width ---- */

static void merge(vram_curve_column *into, const vram_curve_column *from)
{
    widen_fields(into, &from->least);
    widen_fields(into, &from->greatest);
    widen_external(into, from->least_external, from->greatest_external);
}

bool vram_curves_resample(const vram_curves *from, uint32_t width, vram_curves *curves,
                          vram_error *error)
{
    *curves = *from;
    curves->width = width;
    curves->columns = width > 0 ? calloc(width, sizeof *curves->columns) : NULL;
    if (width > 0 && curves->columns == NULL)
        return vram_fail(error, "curves: the host is out of memory");
    for (uint64_t i = 0; i < width && from->width > 0; i++) {
        const uint64_t first = i * from->width / width;
        const uint64_t last = ((i + 1) * from->width - 1) / width;
        curves->columns[i] = from->columns[first];
        for (uint64_t k = first + 1; k <= last; k++)
            merge(&curves->columns[i], &from->columns[k]);
    }
    return true;
}

void vram_curves_free(vram_curves *curves)
{
    free(curves->columns);
    *curves = (vram_curves){0};
}
