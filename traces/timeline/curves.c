/*
 * curves.c - a timeline's numbers at a width: each column keeps the least and the greatest of every
 * number that held at any time within it.
 */
#include <vramlab/metrics.h>

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

static void widen(vram_curve_column *column, const vram_moment *moment)
{
#define WIDEN(field)                                                                               \
    if (moment->field < column->least.field)                                                       \
        column->least.field = moment->field;                                                       \
    if (moment->field > column->greatest.field)                                                    \
        column->greatest.field = moment->field;
    FOR_EACH_FIELD(WIDEN)
#undef WIDEN
    const double external = vram_moment_external(moment);
    if (external < column->least_external)
        column->least_external = external;
    if (external > column->greatest_external)
        column->greatest_external = external;
}

static void begin(vram_curve_column *column, const vram_moment *moment)
{
    const double external = vram_moment_external(moment);
    *column = (vram_curve_column){*moment, *moment, external, external};
}

/* ---- the walk ---- */

typedef struct curve_walk {
    const vram_timeline *timeline;
    vram_curves *curves;
    uint64_t next_column; /* all before it have begun */
    vram_moment now;
} curve_walk;

/* Begins, in the state of now, all columns that start before `position`; or also exactly there. */
static void begin_columns(curve_walk *self, uint64_t position, bool there_too)
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

static bool take(void *context, const vram_moment *moment)
{
    curve_walk *const self = context;
    vram_curves *const curves = self->curves;
    const uint64_t position = vram_op_position(&self->timeline->ops[moment->op], curves->axis);
    begin_columns(self, position, false);
    self->now = *moment;
    begin_columns(self, position, true);
    if (self->next_column > 0 && position < curves->window.to)
        widen(&curves->columns[self->next_column - 1], moment);
    if (moment->live_bytes > curves->peak.live_bytes)
        curves->peak = *moment;
    return true;
}

bool vram_curves_make(const vram_timeline *timeline, vram_axis axis, vram_window window,
                      uint32_t width, vram_curves *curves, vram_error *error)
{
    *curves = (vram_curves){.axis = axis, .window = window, .width = width};
    if (window.from >= window.to)
        return vram_fail(error, "the window of the curves is empty");
    if (width > 0 && (curves->columns = calloc(width, sizeof *curves->columns)) == NULL)
        return vram_fail(error, "curves: the host is out of memory");
    curve_walk walk = {
        .timeline = timeline,
        .curves = curves,
        .now = {.free_bytes = timeline->arena_bytes,
                .unoccupied_bytes = timeline->arena_bytes,
                .largest_free_bytes = timeline->arena_bytes},
    };
    curves->peak = walk.now;
    if (!vram_metrics_walk(timeline, take, &walk, error)) {
        vram_curves_free(curves);
        return false;
    }
    begin_columns(&walk, UINT64_MAX, true);
    curves->end = walk.now;
    return true;
}

void vram_curves_free(vram_curves *curves)
{
    free(curves->columns);
    *curves = (vram_curves){0};
}
