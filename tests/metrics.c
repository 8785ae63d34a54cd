/*
 * metrics.c - numbers and curves of a timeline, against slow models.
 */
#include "made_timeline.h"

#include "timeline/occupancy.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <vramlab/history.h>
#include <vramlab/moments.h>

enum { ARENA = 5000 };

/* ---- a model that holds every byte of a small arena ---- */

typedef struct byte_model {
    const vram_timeline *timeline;
    bool used[ARENA];
    uint64_t at[4000]; /* where each block is */
    uint64_t live, granted, blocks, retired;
    bool retired_blocks[4000];
    size_t ops, cause;
    vram_moment seen[8000];
    size_t seen_count;
} byte_model;

static void set(byte_model *self, uint64_t offset, uint64_t size, bool used)
{
    for (uint64_t i = offset; i < offset + size; i++) {
        cr_assert_neq(self->used[i], used);
        self->used[i] = used;
    }
}

static void model_step(byte_model *self, const vram_op *op)
{
    switch ((vram_op_kind)op->kind) {
    case VRAM_OP_ALLOC:
        set(self, op->offset_bytes, op->granted_bytes, true);
        self->at[op->block] = op->offset_bytes;
        self->live += op->size_bytes;
        self->granted += op->granted_bytes;
        self->blocks++;
        break;
    case VRAM_OP_RELEASE:
        set(self, op->offset_bytes, op->granted_bytes, false);
        self->live -= op->size_bytes;
        self->granted -= op->granted_bytes;
        self->blocks--;
        self->retired -= self->retired_blocks[op->block] ? op->size_bytes : 0;
        break;
    case VRAM_OP_RETIRE:
        self->retired += op->size_bytes;
        self->retired_blocks[op->block] = true;
        break;
    case VRAM_OP_MOVE:
        set(self, self->at[op->block], op->granted_bytes, false);
        set(self, op->offset_bytes, op->granted_bytes, true);
        self->at[op->block] = op->offset_bytes;
        break;
    case VRAM_OP_FAIL:
    case VRAM_OP_MARK:
    case VRAM_OP_KINDS:
        break;
    }
}

static bool compare(void *context, const vram_moment *moment)
{
    byte_model *const self = context;
    const vram_timeline *const timeline = self->timeline;
    cr_assert_eq(moment->op, self->ops);
    model_step(self, &timeline->ops[self->ops++]);
    uint64_t run = 0, largest = 0, extent = 0;
    for (uint64_t i = 0; i < ARENA; i++) {
        run = self->used[i] ? 0 : run + 1;
        largest = run > largest ? run : largest;
        extent = self->used[i] ? i + 1 : extent;
    }
    uint64_t padding = 0;
    for (size_t i = 0; i < timeline->cause_count && timeline->causes[i].op <= moment->op; i++)
        padding = timeline->causes[i].padding_bytes;
    cr_assert_eq(moment->live_bytes, self->live);
    cr_assert_eq(moment->internal_bytes, self->granted - self->live);
    cr_assert_eq(moment->live_blocks, self->blocks);
    cr_assert_eq(moment->retired_bytes, self->retired);
    cr_assert_eq(moment->largest_free_bytes, largest, "op %zu", self->ops - 1);
    cr_assert_eq(moment->extent_bytes, extent);
    cr_assert_eq(moment->padding_bytes, padding);
    cr_assert_eq(moment->unoccupied_bytes, ARENA - self->granted);
    cr_assert_eq(moment->live_bytes + moment->internal_bytes + moment->bound_bytes +
                     moment->pending_bytes + moment->reserve_bytes + moment->padding_bytes +
                     moment->free_bytes,
                 ARENA);
    self->seen[self->seen_count++] = *moment;
    return true;
}

Test(metrics, agree_with_a_model_of_every_byte)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        vram_error error = {""};
        vram_timeline made = made_random_timeline(seed, 3000, ARENA, seed % 2 == 0 ? 20 : 600);
        byte_model *const model = calloc(1, sizeof *model);
        model->timeline = &made;
        cr_assert(vram_metrics_walk(&made, compare, model, &error), "seed %d: %s", (int)seed,
                  error.text);
        cr_assert_eq(model->ops, made.op_count);
        free(model);
        vram_timeline_free(&made);
    }
}

Test(metrics, of_a_timeline_made_by_hand)
{
    vram_timeline made;
    cr_assert(vram_timeline_begin(&made, "t", "b", 1000, 1, false));
    const uint32_t low = made_alloc(&made, 0, 0, 90, 100);
    made_alloc(&made, 1, 400, 200, 200);
    made_release(&made, 2, low);
    made_alloc(&made, 3, 900, 100, 100);
    static const struct {
        uint64_t live, internal, extent, largest, unoccupied;
        double external;
    } expected[] = {
        {90, 10, 100, 900, 900, 0},
        {290, 10, 600, 400, 700, 1 - 400.0 / 700},
        {200, 0, 600, 400, 800, 0.5},
        {300, 0, 1000, 400, 700, 1 - 400.0 / 700},
    };
    vram_curves curves;
    cr_assert(vram_curves_make(&made, VRAM_AXIS_EVENT, (vram_window){0, 4}, 4, &curves, NULL));
    for (size_t i = 0; i < 4; i++) {
        const vram_moment *const moment = &curves.columns[i].greatest;
        const vram_moment *const least = &curves.columns[i].least;
        cr_assert_eq(least->live_bytes, expected[i].live, "column %zu", i);
        cr_assert_eq(moment->live_bytes, expected[i].live);
        cr_assert_eq(moment->internal_bytes, expected[i].internal);
        cr_assert_eq(moment->extent_bytes, expected[i].extent);
        cr_assert_eq(moment->largest_free_bytes, expected[i].largest);
        cr_assert_eq(moment->unoccupied_bytes, expected[i].unoccupied);
        cr_assert_float_eq(curves.columns[i].greatest_external, expected[i].external, 1e-12);
    }
    cr_assert_eq(curves.peak.op, 3);
    vram_curves_free(&curves);
    vram_timeline_free(&made);
}

Test(metrics, of_a_full_arena_have_no_external_fragmentation)
{
    const vram_moment full = {.live_bytes = 1000};
    cr_assert_eq(vram_moment_external(&full), 0);
    cr_assert_eq(vram_moment_internal(&full), 0);
    const vram_moment empty = {.unoccupied_bytes = 1000, .largest_free_bytes = 1000};
    cr_assert_eq(vram_moment_external(&empty), 0);
    cr_assert_eq(vram_moment_internal(&empty), 0);
}

static bool ignore(void *context, const vram_moment *moment)
{
    (void)context;
    (void)moment;
    return true;
}

Test(metrics, refuse_blocks_that_overlap)
{
    static const struct {
        uint64_t offset, size;
    } over[] = {{0, 1}, {99, 1}, {50, 10}, {0, 100}, {90, 100}, {150, 51}, {100, 101}, {0, 1000}};
    for (size_t i = 0; i < sizeof over / sizeof over[0]; i++) {
        vram_timeline made;
        vram_error error = {""};
        cr_assert(vram_timeline_begin(&made, "t", "b", 1000, 1, false));
        made_alloc(&made, 0, 0, 100, 100);
        made_alloc(&made, 1, 200, 100, 100);
        made_alloc(&made, 2, over[i].offset, over[i].size, over[i].size);
        cr_assert(vram_timeline_check(&made, &error), "%s", error.text);
        cr_expect_not(vram_metrics_walk(&made, ignore, NULL, &error), "case %zu", i);
        cr_expect_not_null(strstr(error.text, "operation 2"), "%s", error.text);
        vram_timeline_free(&made);
    }
}

Test(metrics, refuse_causes_that_exceed_the_arena)
{
    vram_timeline made;
    vram_error error = {""};
    cr_assert(vram_timeline_begin(&made, "t", "b", 1000, 1, false));
    made_alloc(&made, 0, 0, 600, 600);
    cr_assert(vram_timeline_note_causes(&made, &(vram_op_causes){.bound_bytes = 401}));
    cr_assert_not(vram_metrics_walk(&made, ignore, NULL, &error));
    vram_timeline_free(&made);
}

/* ---- curves ---- */

static void widen(uint64_t value, uint64_t *least, uint64_t *greatest)
{
    *least = value < *least ? value : *least;
    *greatest = value > *greatest ? value : *greatest;
}

/* Column by column from its definition: every moment that held at some time within the column. */
static void check_curves(const byte_model *model, vram_axis axis, vram_window window,
                         uint32_t width)
{
    const vram_timeline *const timeline = model->timeline;
    vram_curves curves;
    vram_error error = {""};
    cr_assert(vram_curves_make(timeline, axis, window, width, &curves, &error), "%s", error.text);
    const double span = (double)(window.to - window.from);
    for (uint32_t c = 0; c < width; c++) {
        const double start = (double)window.from + span * c / width;
        const double end = (double)window.from + span * (c + 1) / width;
        uint64_t least = UINT64_MAX, greatest = 0;
        double most_external = 0;
        for (size_t i = 0; i < timeline->op_count; i++) {
            const double from = (double)vram_op_position(&timeline->ops[i], axis);
            const double until = i + 1 < timeline->op_count
                                     ? (double)vram_op_position(&timeline->ops[i + 1], axis)
                                     : INFINITY;
            /* It held in [from, until), or at least at the moment `from`. */
            const bool within =
                (from < end && until > start) || (from == until && from >= start && from < end);
            if (!within)
                continue;
            widen(model->seen[i].live_bytes, &least, &greatest);
            most_external = fmax(most_external, vram_moment_external(&model->seen[i]));
        }
        if (least == UINT64_MAX)
            least = 0; /* before the first operation */
        const double first = (double)vram_op_position(&timeline->ops[0], axis);
        if (start < first)
            least = 0;
        cr_assert_eq(curves.columns[c].least.live_bytes, least, "column %u of %u", c, width);
        cr_assert_eq(curves.columns[c].greatest.live_bytes, greatest, "column %u of %u", c, width);
        cr_assert_float_eq(curves.columns[c].greatest_external, most_external, 1e-12);
    }
    vram_curves_free(&curves);
}

Test(curves, keep_the_extremes_of_every_column_at_every_width)
{
    vram_timeline made = made_random_timeline(9, 700, ARENA, 300);
    byte_model *const model = calloc(1, sizeof *model);
    model->timeline = &made;
    cr_assert(vram_metrics_walk(&made, compare, model, NULL));
    static const uint32_t widths[] = {1, 2, 3, 7, 64, 640, 701, 1999};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        for (vram_axis axis = VRAM_AXIS_EVENT; axis <= VRAM_AXIS_TIME; axis++) {
            const vram_window whole = vram_axis_whole(&made, axis);
            check_curves(model, axis, whole, widths[i]);
            check_curves(model, axis, (vram_window){whole.to / 3, whole.to / 2}, widths[i]);
            check_curves(model, axis, (vram_window){whole.to / 2, whole.to * 2}, widths[i]);
        }
    free(model);
    vram_timeline_free(&made);
}

Test(curves, at_another_width_keep_the_extremes)
{
    static const uint32_t widths[] = {1, 7, 100, 699, 700, 701, 3000};
    vram_timeline made = made_random_timeline(9, 700, ARENA, 300);
    const vram_window whole = vram_axis_whole(&made, VRAM_AXIS_EVENT);
    vram_curves all, some;
    cr_assert(vram_curves_make(&made, VRAM_AXIS_EVENT, whole, 700, &all, NULL));
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
        uint64_t greatest[2] = {0}, least[2] = {UINT64_MAX, UINT64_MAX};
        cr_assert(vram_curves_resample(&all, widths[w], &some, NULL));
        for (uint32_t i = 0; i < 700; i++)
            widen(all.columns[i].greatest.live_bytes, &least[0], &greatest[0]);
        for (uint32_t i = 0; i < widths[w]; i++) {
            const vram_curve_column *const each = &some.columns[i];
            widen(each->greatest.live_bytes, &least[1], &greatest[1]);
            const uint32_t within = (uint32_t)((uint64_t)i * 700 / widths[w]);
            cr_assert(each->greatest.live_bytes >= all.columns[within].greatest.live_bytes);
            cr_assert(each->least_external <= all.columns[within].least_external);
            cr_assert(each->greatest_external >= all.columns[within].greatest_external);
        }
        cr_assert_eq(greatest[0], greatest[1]);
        vram_curves_free(&some);
    }
    vram_curves_free(&all);
    vram_timeline_free(&made);
}

Test(moments, are_those_of_the_walk_at_every_operation)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        vram_timeline made = made_random_timeline(seed, 4000, ARENA, 100);
        byte_model *const model = calloc(1, sizeof *model);
        vram_moments moments;
        uint64_t highest = 0, expected_highest = 0;
        model->timeline = &made;
        cr_assert(vram_metrics_walk(&made, compare, model, NULL));
        cr_assert(vram_moments_make(&made, 5000, 64, &moments, NULL));
        const vram_moment before = vram_moments_at(&moments, 0, &highest);
        cr_assert(before.free_bytes == ARENA && before.largest_free_bytes == ARENA && highest == 0);
        for (size_t i = 0; i < made.op_count; i++) {
            const vram_moment found = vram_moments_at(&moments, i + 1, &highest);
            if (model->seen[i].extent_bytes > expected_highest)
                expected_highest = model->seen[i].extent_bytes;
            cr_assert_eq(memcmp(&found, &model->seen[i], sizeof found), 0, "op %zu", i);
            cr_assert_eq(highest, expected_highest, "op %zu", i);
        }
        vram_moments_free(&moments);
        free(model);
        vram_timeline_free(&made);
    }
}

Test(history, tells_where_each_block_was_and_whether_it_had_retired)
{
    vram_timeline made = made_random_timeline(6, 2000, ARENA, 100);
    vram_history history;
    uint64_t *const at = calloc(made.life_count, sizeof *at);
    bool *const retired = calloc(made.life_count, sizeof *retired);
    size_t moves = 0;
    cr_assert(vram_history_make(&made, &history, NULL));
    for (uint32_t i = 0; i < made.op_count; i++) {
        const vram_op *const op = &made.ops[i];
        if (op->kind == VRAM_OP_ALLOC || op->kind == VRAM_OP_MOVE)
            at[op->block] = op->offset_bytes;
        if (op->kind == VRAM_OP_RETIRE)
            retired[op->block] = true;
        moves += op->kind == VRAM_OP_MOVE;
        for (uint32_t block = 0; block < made.life_count; block++)
            if (made.lives[block].birth <= i && made.lives[block].death >= i) {
                cr_assert_eq(vram_history_offset(&history, block, i), at[block]);
                cr_assert_eq(vram_history_retired(&history, block, i), retired[block]);
            }
    }
    cr_assert(moves > 10);
    free(at);
    free(retired);
    vram_history_free(&history);
    vram_timeline_free(&made);
}

Test(curves, of_an_empty_timeline_are_flat)
{
    vram_timeline made;
    vram_curves curves;
    cr_assert(vram_timeline_begin(&made, "t", "b", 1000, 1, false));
    cr_assert(vram_curves_make(&made, VRAM_AXIS_EVENT, vram_axis_whole(&made, VRAM_AXIS_EVENT), 5,
                               &curves, NULL));
    for (size_t i = 0; i < 5; i++)
        cr_assert_eq(curves.columns[i].greatest.largest_free_bytes, 1000);
    vram_curves_free(&curves);
    cr_assert_not(vram_curves_make(&made, VRAM_AXIS_EVENT, (vram_window){3, 3}, 5, &curves, NULL));
    vram_timeline_free(&made);
}

Test(axis, finds_the_operations_until_a_position)
{
    vram_timeline made = made_random_timeline(4, 300, ARENA, 300);
    for (vram_axis axis = VRAM_AXIS_EVENT; axis <= VRAM_AXIS_TIME; axis++)
        for (uint64_t position = 0; position <= vram_axis_whole(&made, axis).to + 5;
             position += 7) {
            size_t expected = 0;
            while (expected < made.op_count &&
                   vram_op_position(&made.ops[expected], axis) <= position)
                expected++;
            cr_assert_eq(vram_axis_ops_until(&made, axis, position), expected);
        }
    vram_timeline_free(&made);
}

/* ---- many blocks: leaves split, empty and come back ---- */

Test(occupancy, finds_the_largest_gap_among_many_blocks)
{
    enum { UNITS = 1 << 16 };
    uint64_t seed = 5;
    bool *const used = calloc(UNITS, sizeof *used);
    vram_occupancy *const occupancy = vram_occupancy_new(UNITS);
    for (size_t step = 0; step < 400000; step++) {
        /* Waves of filling and emptying, so that whole leaves come and go. */
        const bool filling = (step >> 16) % 2 == 0;
        const uint64_t unit = vram_next_random(&seed) % UNITS;
        if (filling) {
            cr_assert_eq(vram_occupy(occupancy, unit, 1),
                         used[unit] ? VRAM_OVERLAPS : VRAM_OCCUPIED);
            used[unit] = true;
        } else {
            cr_assert_eq(vram_vacate(occupancy, unit), used[unit]);
            used[unit] = false;
        }
        if (step % 4001 != 0)
            continue;
        uint64_t run = 0, largest = 0, extent = 0;
        for (uint64_t i = 0; i < UNITS; i++) {
            run = used[i] ? 0 : run + 1;
            largest = run > largest ? run : largest;
            extent = used[i] ? i + 1 : extent;
        }
        cr_assert_eq(vram_largest_gap(occupancy), largest, "step %zu", step);
        cr_assert_eq(vram_extent(occupancy), extent, "step %zu", step);
    }
    vram_occupancy_free(occupancy);
    free(used);
}
