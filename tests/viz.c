/*
 * viz.c - what pictures are made of: coverage, cells, colours, ticks, lettering.
 */
#include "made_timeline.h"

#include "axis.h"
#include "png.h"
#include "sweep.h"
#include "text.h"
#include "viewer/cells.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vramlab/heatmap.h>
#include <vramlab/moments.h>

/* ---- coverage ---- */

typedef struct kept_cells {
    vram_area *cells; /* column by column */
    bool *touched;
    vram_tint *tints;
    const vram_grid *grid;
} kept_cells;

static bool keep(void *context, uint32_t column, const vram_area *covered, const vram_tint *tints,
                 const bool *touched)
{
    kept_cells *const self = context;
    const size_t rows = self->grid->rows;
    memcpy(self->cells + column * rows, covered, rows * sizeof *covered);
    memcpy(self->touched + column * rows, touched, rows * sizeof *touched);
    if (self->tints != NULL)
        memcpy(self->tints + column * rows, tints, rows * sizeof *tints);
    return true;
}

static vram_key key_for(vram_by by, vram_axis axis, const vram_timeline *timeline)
{
    vram_key key;
    cr_assert(vram_key_make(&key, by, axis, &timeline, 1, NULL));
    return key;
}

/* What a stretch [from, to) has in common with a cell, both scaled by the number of cells. */
static uint64_t common(uint64_t from, uint64_t to, vram_window window, uint32_t cells,
                       uint32_t cell)
{
    const uint64_t span = window.to - window.from;
    const uint64_t left = span * cell, right = left + span;
    from = from < window.from ? 0 : (from - window.from) * cells;
    to = to < window.from ? 0 : (to - window.from) * cells;
    from = from > left ? from : left;
    to = to < right ? to : right;
    return to > from ? to - from : 0;
}

Test(sweep, gives_every_cell_the_area_that_its_definition_gives)
{
    enum { COLUMNS = 37, ROWS = 23 };
    vram_timeline made = made_random_timeline(8, 600, 1000, 200);
    for (vram_axis axis = VRAM_AXIS_EVENT; axis <= VRAM_AXIS_TIME; axis++) {
        const vram_window whole = vram_axis_whole(&made, axis);
        const vram_grid grid = {COLUMNS, ROWS, axis, {whole.to / 5, whole.to}, {130, 900}};
        vram_area expected[COLUMNS * ROWS] = {0}, cells[COLUMNS * ROWS];
        bool touched[COLUMNS * ROWS];
        uint64_t at[1000], since[1000]; /* where each block is, and since when */
        for (size_t i = 0; i <= made.op_count; i++) {
            const bool end = i == made.op_count;
            for (uint32_t block = 0; block < made.life_count; block++) {
                const vram_op *const op = end ? NULL : &made.ops[i];
                const vram_life *const life = &made.lives[block];
                const bool leaves = end ? life->death == UINT32_MAX
                                        : op->block == block && (op->kind == VRAM_OP_RELEASE ||
                                                                 op->kind == VRAM_OP_MOVE);
                const uint64_t now = end ? whole.to : vram_op_position(op, axis);
                const uint64_t size = made.ops[life->birth].granted_bytes;
                for (uint32_t c = 0; leaves && c < COLUMNS; c++)
                    for (uint32_t r = 0; r < ROWS; r++)
                        expected[c * ROWS + r] +=
                            (vram_area)common(since[block], now, grid.time, COLUMNS, c) *
                            common(at[block], at[block] + size, grid.bytes, ROWS, r);
                if (!end && op->block == block &&
                    (op->kind == VRAM_OP_ALLOC || op->kind == VRAM_OP_MOVE)) {
                    at[block] = op->offset_bytes;
                    since[block] = now;
                }
            }
        }
        kept_cells kept = {.grid = &grid, .cells = cells, .touched = touched};
        vram_key key = key_for(VRAM_BY_STATE, axis, &made);
        cr_assert(vram_sweep(&made, &grid, &key, keep, &kept, NULL));
        vram_key_free(&key);
        for (size_t i = 0; i < COLUMNS * ROWS; i++) {
            cr_assert(cells[i] == expected[i], "cell %zu", i);
            cr_assert(touched[i] || cells[i] == 0, "cell %zu", i);
        }
    }
    vram_timeline_free(&made);
}

Test(sweep, tells_what_has_been_touched_until_then)
{
    vram_timeline made;
    cr_assert(vram_timeline_begin(&made, "t", "b", 100, 1, false));
    made_release(&made, 1, made_alloc(&made, 0, 10, 20, 20)); /* rows 1 and 2 */
    made_alloc(&made, 2, 45, 10, 10);                         /* rows 4 and 5 */
    made_alloc(&made, 3, 60, 1, 1);                           /* row 6 */
    const vram_grid grid = {4, 10, VRAM_AXIS_EVENT, {0, 4}, {0, 100}};
    vram_area cells[40];
    bool touched[40];
    kept_cells kept = {.grid = &grid, .cells = cells, .touched = touched};
    const vram_key key = key_for(VRAM_BY_OCCUPANCY, VRAM_AXIS_EVENT, &made);
    cr_assert(vram_sweep(&made, &grid, &key, keep, &kept, NULL));
    static const char *const expected[] = {"0110000000", "0110000000", "0110110000", "0110111000"};
    for (int column = 0; column < 4; column++)
        for (int row = 0; row < 10; row++)
            cr_assert_eq(touched[column * 10 + row], expected[column][row] == '1', "%d %d", column,
                         row);
    vram_timeline_free(&made);
}

/* ---- colours ---- */

static double linear(uint32_t channel)
{
    const double value = channel / 255.0;
    return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4);
}

/* CIE 1976 lightness of an sRGB colour, 0 .. 100. */
static double lightness(vram_colour colour)
{
    const double y = 0.2126 * linear(colour >> 16) + 0.7152 * linear(colour >> 8 & 0xff) +
                     0.0722 * linear(colour & 0xff);
    return y > 0.008856 ? 116 * cbrt(y) - 16 : 903.3 * y;
}

Test(palette, viridis_grows_lighter_in_equal_steps)
{
    cr_assert_float_eq(lightness(vram_viridis(0)), 15, 1.5);
    cr_assert_float_eq(lightness(vram_viridis(1)), 91, 1.5);
    const double whole = lightness(vram_viridis(1)) - lightness(vram_viridis(0));
    for (int i = 0; i < 16; i++) {
        const double step =
            lightness(vram_viridis((i + 1) / 16.0)) - lightness(vram_viridis(i / 16.0));
        cr_assert_float_eq(step / whole * 16, 1, 0.15, "step %d: %g", i, step);
    }
}

/* A red-green blind eye sees about what is left when red and green are mixed into one. Kinds must
 * differ there too: in lightness or in blue. */
Test(palette, kinds_differ_without_red_and_green)
{
    for (uint32_t a = 0; a < VRAM_KIND_COLOURS; a++)
        for (uint32_t b = a + 1; b < VRAM_KIND_COLOURS; b++) {
            const vram_colour x = vram_kind_colour(a), y = vram_kind_colour(b);
            const double light = fabs(lightness(x) - lightness(y));
            const double blue = fabs((double)(x & 0xff) - (double)(y & 0xff));
            cr_assert(light > 9 || blue > 40, "kinds %u and %u: %g %g", a, b, light, blue);
        }
    cr_assert_eq(vram_kind_colour(99), VRAM_COLOUR_OTHER);
}

Test(palette, clamps_shares)
{
    cr_assert_eq(vram_viridis(-1), vram_viridis(0));
    cr_assert_eq(vram_viridis(7), vram_viridis(1));
    cr_assert_eq(vram_viridis(NAN), vram_viridis(0));
    cr_assert_eq(vram_mix(0x102030, 0xf0e0d0, 0), 0x102030);
    cr_assert_eq(vram_mix(0x102030, 0xf0e0d0, 255), 0xf0e0d0);
}

/* ---- ticks ---- */

Test(ticks, are_round_and_as_close_as_their_labels_allow)
{
    static const struct {
        uint64_t to;
        int pixels, label_pixels;
        double step;
        const char *unit, *third;
    } cases[] = {
        {UINT64_C(80) << 30, 500, 100, 20, "GiB", "40"},
        {UINT64_C(3) << 29, 500, 100, 500, "MiB", "1,000"},
        {1000, 400, 100, 500, "B", "1,000"},
        {UINT64_C(5) << 30, 1000, 100, 0.5, "GiB", "1.0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char label[40];
        const vram_scale scale = vram_scale_of_bytes((vram_window){0, cases[i].to}, cases[i].pixels,
                                                     cases[i].label_pixels);
        cr_expect_float_eq(scale.step, cases[i].step, 1e-12, "case %zu: %g", i, scale.step);
        cr_expect_str_eq(scale.unit, cases[i].unit);
        cr_expect_str_eq(vram_tick_label(&scale, 2 * scale.step, label), cases[i].third);
    }
}

/* ---- lettering ---- */

Test(text, is_cut_to_the_room_there_is)
{
    vram_font *const font = vram_font_new();
    const char *const text = "best fit \xc2\xb7 \xc3\xa4\xc3\xb6\xc3\xbc \xe2\x80\x93 resnet50";
    for (int size = 8; size < 40; size += 3)
        for (double room = 0; room < 400; room += 17) {
            char out[64];
            vram_text_fit(font, size, room, text, out, sizeof out);
            const bool whole = strcmp(out, text) == 0;
            cr_assert(whole || strcmp(out, "\xe2\x80\xa6") == 0 ||
                      vram_text_width(font, size, out) <= room);
            cr_assert_eq(whole, vram_text_width(font, size, text) <= room);
        }
    vram_font_free(font);
}

static int ink_of(const vram_raster *raster)
{
    int ink = 0;
    for (int i = 0; i < raster->width * raster->height; i++)
        ink += raster->pixels[i] != 0 ? 1 : 0;
    return ink;
}

Test(text, upwards_has_the_ink_of_text_across)
{
    vram_font *const font = vram_font_new();
    vram_raster across, up;
    cr_assert(vram_raster_make(&across, 200, 40) && vram_raster_make(&up, 40, 200));
    vram_text(font, &across, 10, 30, 20, 0xffffff, VRAM_ALIGN_LEFT, "GiB (12)");
    vram_text_up(font, &up, 30, 190, 20, 0xffffff, VRAM_ALIGN_LEFT, "GiB (12)");
    cr_assert_eq(ink_of(&across), ink_of(&up));
    cr_assert(ink_of(&across) > 200);
    vram_raster_free(&across);
    vram_raster_free(&up);
    vram_font_free(font);
}

Test(raster, clips_every_shape)
{
    vram_font *const font = vram_font_new();
    vram_raster raster;
    cr_assert(vram_raster_make(&raster, 30, 20));
    for (int x = -40; x < 60; x += 7)
        for (int y = -40; y < 60; y += 7) {
            vram_fill(&raster, (vram_rect){x, y, 25, 25}, 1);
            vram_frame(&raster, (vram_rect){x, y, 9, 9}, 3, 2);
            vram_line_across(&raster, x, y, 50, 2, 3, 2, 3);
            vram_line_down(&raster, x, y, 50, 2, 3, 2, 3);
            vram_pointer_left(&raster, x, y, 9, 4);
            vram_pointer_down(&raster, x, y, 9, 4);
            vram_text(font, &raster, x, y, 18, 5, VRAM_ALIGN_CENTRE, "clip");
            vram_text_up(font, &raster, x, y, 18, 5, VRAM_ALIGN_RIGHT, "clip");
        }
    vram_raster_free(&raster);
    vram_font_free(font);
}

/* ---- keys ---- */

Test(key, gives_colours_to_the_kinds_that_occupy_most)
{
    vram_timeline made;
    cr_assert(vram_timeline_begin(&made, "t", "b", 100000, 1, false));
    for (uint32_t i = 0; i < 20; i++) { /* streams 0 and 1 alternate; tags 0, 1, 2 go round */
        const uint32_t block = made_alloc(&made, i, i * 1000, 10 + i, 10 + i);
        made.ops[made.lives[block].birth].tag = i;
        cr_assert(vram_timeline_set_tag(&made, i, "tag"));
    }
    made.ops[made.lives[7].birth].tag = 4000000000u; /* has no name: counts as none */
    vram_key key = key_for(VRAM_BY_TAG, VRAM_AXIS_EVENT, &made);
    cr_assert_eq(key.slots, VRAM_SLOTS);
    cr_assert(key.others);
    vram_part parts[2];
    for (uint32_t block = 0; block < 20; block++) {
        const vram_op *const birth = &made.ops[made.lives[block].birth];
        cr_assert_eq(vram_key_parts(&key, &made, birth, birth->offset_bytes, false, parts), 1);
        cr_assert(parts[0].slot < key.slots);
    }
    char text[80];
    cr_assert_str_eq(vram_key_slot_name(&key, VRAM_SLOTS - 1, text), "others");
    vram_key_free(&key);
    vram_timeline_free(&made);
}

Test(key, splits_a_block_into_parts_that_fill_it)
{
    vram_timeline made = made_random_timeline(4, 500, 5000, 300);
    for (vram_by by = 0; by < VRAM_BYS; by++) {
        vram_key key = key_for(by, VRAM_AXIS_EVENT, &made);
        for (size_t i = 0; i < made.life_count; i++)
            for (int retired = 0; retired < 2; retired++) {
                const vram_op *const birth = &made.ops[made.lives[i].birth];
                vram_part parts[2];
                uint64_t end = 77;
                const int count = vram_key_parts(&key, &made, birth, end, retired, parts);
                for (int k = 0; k < count; k++) {
                    cr_assert_eq(parts[k].offset_bytes, end);
                    cr_assert(parts[k].size_bytes > 0 && parts[k].slot < key.slots);
                    end += parts[k].size_bytes;
                }
                cr_assert_eq(end, 77 + birth->granted_bytes);
            }
        vram_key_free(&key);
    }
    vram_timeline_free(&made);
}

Test(key, marks_its_scale_in_order)
{
    vram_timeline made = made_random_timeline(4, 500, 1 << 30, 1 << 26);
    for (vram_by by = VRAM_BY_SIZE; by <= VRAM_BY_OCCUPANCY; by++)
        for (vram_axis axis = VRAM_AXIS_EVENT; axis <= VRAM_AXIS_TIME; axis++) {
            const vram_key key = key_for(by, axis, &made);
            const vram_key_marks marks = vram_key_marks_of(&key);
            cr_assert(marks.count >= 3, "%s: %d", vram_by_name(by), marks.count);
            for (int i = 0; i < marks.count; i++) {
                cr_assert(marks.mark[i].at >= 0 && marks.mark[i].at <= 1);
                cr_assert(i == 0 || marks.mark[i].at > marks.mark[i - 1].at);
                cr_assert(marks.mark[i].label[0] != '\0');
            }
        }
    vram_timeline_free(&made);
}

/* ---- cells of the live map ---- */

typedef struct cell_stage {
    vram_timeline made;
    vram_history history;
    vram_cursor *cursor;
} cell_stage;

static void set_stage(cell_stage *self, uint64_t seed, size_t ops, uint64_t arena, uint64_t most)
{
    self->made = made_random_timeline(seed, ops, arena, most);
    cr_assert(vram_history_make(&self->made, &self->history, NULL));
    cr_assert(vram_cursor_new(&self->made, &self->cursor, NULL));
}

static void strike(cell_stage *self)
{
    vram_cursor_free(self->cursor);
    vram_history_free(&self->history);
    vram_timeline_free(&self->made);
}

/* What each byte of a small arena holds after `op` operations: block + 1, or 0. */
static void fill_bytes(const vram_timeline *timeline, size_t op, uint32_t *holds, uint64_t arena)
{
    uint64_t *const at = calloc(timeline->life_count + 1, sizeof *at);
    memset(holds, 0, arena * sizeof *holds);
    for (size_t i = 0; i < op; i++) {
        const vram_op *const each = &timeline->ops[i];
        if (each->kind == VRAM_OP_FAIL || each->kind == VRAM_OP_MARK ||
            each->kind == VRAM_OP_RETIRE)
            continue;
        if (each->kind != VRAM_OP_ALLOC)
            for (uint64_t k = 0; k < each->granted_bytes; k++)
                holds[at[each->block] + k] = 0;
        if (each->kind != VRAM_OP_RELEASE)
            for (uint64_t k = 0; k < each->granted_bytes; k++)
                holds[each->offset_bytes + k] = each->block + 1;
        at[each->block] = each->offset_bytes;
    }
    free(at);
}

/* A cell's tint from its definition, byte by byte. */
static bool tint_by_bytes(const cell_stage *stage, const vram_key *key, const uint32_t *holds,
                          size_t op, uint64_t from, uint64_t to, vram_tint *tint)
{
    double covered = 0, weights = 0, slots[VRAM_SLOTS] = {0};
    *tint = (vram_tint){0};
    for (uint64_t byte = from; byte < to; byte++) {
        if (holds[byte] == 0)
            continue;
        const uint32_t block = holds[byte] - 1;
        const vram_op *const birth = &stage->made.ops[stage->made.lives[block].birth];
        const uint64_t offset = vram_history_offset(&stage->history, block, (uint32_t)op - 1);
        const bool retired = vram_history_retired(&stage->history, block, (uint32_t)op - 1);
        vram_part parts[2];
        const int count = vram_key_parts(key, &stage->made, birth, offset, retired, parts);
        const vram_part *const part = &parts[count == 2 && byte >= parts[1].offset_bytes];
        covered++;
        weights += (double)part->weight;
        slots[part->slot]++;
    }
    for (uint32_t slot = 0; slot < VRAM_SLOTS; slot++)
        tint->slot = slots[slot] > slots[tint->slot] ? slot : tint->slot;
    tint->share = covered / (double)(to - from);
    tint->mean_weight = covered > 0 ? weights / covered : 0;
    return covered > 0;
}

static void check_cells(const cell_stage *stage, const vram_cells *cells, const vram_key *key,
                        const vram_cell_span *span, size_t op)
{
    const uint64_t arena = stage->made.arena_bytes;
    uint32_t *const holds = malloc(arena * sizeof *holds);
    fill_bytes(&stage->made, op, holds, arena);
    for (uint32_t i = 0; i < span->count; i++) {
        const uint64_t from = span->bytes.from + i * span->cell_bytes;
        const uint64_t to =
            from + span->cell_bytes < span->bytes.to ? from + span->cell_bytes : span->bytes.to;
        vram_tint expected, found;
        const bool any = tint_by_bytes(stage, key, holds, op, from, to, &expected);
        cr_assert_eq(vram_cells_tint(cells, i, &found), any, "op %zu cell %u", op, i);
        cr_assert_float_eq(found.share, expected.share, 1e-9, "op %zu cell %u", op, i);
        if (key->by == VRAM_BY_SIZE || key->by == VRAM_BY_AGE)
            cr_assert_float_eq(found.mean_weight, expected.mean_weight, 1e-6);
        if (!vram_by_is_number(key->by))
            cr_assert_eq(found.slot, expected.slot, "op %zu cell %u", op, i);
    }
    free(holds);
}

Test(cells, hold_what_the_bytes_hold_wherever_one_comes_from)
{
    enum { ARENA = 3000, CELL = 70 };
    cell_stage stage;
    set_stage(&stage, 12, 3000, ARENA, 250);
    for (vram_by by = 0; by < VRAM_BYS; by++)
        for (int zoomed = 0; zoomed < 2; zoomed++) {
            vram_key key = key_for(by, VRAM_AXIS_EVENT, &stage.made);
            const vram_cell_span span = {.bytes = {zoomed ? 333 : 0, zoomed ? 1777 : ARENA},
                                         .cell_bytes = CELL,
                                         .count = zoomed ? (1777 - 333 + CELL - 1) / CELL
                                                         : (ARENA + CELL - 1) / CELL};
            vram_cells *const cells = vram_cells_new(stage.cursor, &stage.history);
            uint64_t seed = by + 1;
            cr_assert(vram_cells_set(cells, &span, &key));
            for (int i = 0; i < 25; i++) {
                const size_t op = 1 + vram_next_random(&seed) % stage.made.op_count;
                /* By the list of live blocks, which is cheaper, or by operations. */
                cr_assert(vram_cells_seek(cells, op, i % 2 == 0 ? 0 : SIZE_MAX / 4));
                check_cells(&stage, cells, &key, &span, op);
            }
            vram_cells_free(cells);
            vram_key_free(&key);
        }
    strike(&stage);
}

Test(cells, are_the_same_with_keyframes_and_without)
{
    cell_stage stage;
    set_stage(&stage, 3, 120000, 1 << 16, 3000);
    for (vram_by by = 0; by < VRAM_BYS; by++) {
        vram_key key = key_for(by, VRAM_AXIS_EVENT, &stage.made);
        const vram_cell_span span = {.bytes = {0, 1 << 16}, .cell_bytes = 300, .count = 219};
        vram_cells *const with = vram_cells_new(stage.cursor, &stage.history);
        vram_cells *const without = vram_cells_new(stage.cursor, &stage.history);
        uint64_t seed = 8;
        cr_assert(vram_cells_set(with, &span, &key) && vram_cells_set(without, &span, &key));
        cr_assert(vram_cells_prepare(with, 1000), "one step does not make them all");
        while (vram_cells_prepare(with, 7001))
            continue;
        for (int i = 0; i < 40; i++) {
            const size_t op = vram_next_random(&seed) % (stage.made.op_count + 1);
            cr_assert(vram_cells_seek(with, op, SIZE_MAX / 4));
            cr_assert(vram_cells_seek(without, op, 0));
            for (uint32_t cell = 0; cell < span.count; cell++) {
                vram_tint a, b;
                cr_assert_eq(vram_cells_tint(with, cell, &a), vram_cells_tint(without, cell, &b));
                cr_assert(a.share == b.share && a.mean_weight == b.mean_weight && a.slot == b.slot);
            }
        }
        vram_cells_free(with);
        vram_cells_free(without);
        vram_key_free(&key);
    }
    strike(&stage);
}

Test(cells, of_an_arena_as_large_as_can_be_return_to_nothing)
{
    vram_timeline made;
    vram_history history;
    vram_cursor *cursor;
    enum { BLOCKS = 200 };
    uint32_t blocks[BLOCKS];
    const uint64_t arena = UINT64_C(1) << 50;
    cr_assert(vram_timeline_begin(&made, "t", "b", arena, 512, false));
    for (uint32_t i = 0; i < BLOCKS; i++)
        blocks[i] = made_alloc(&made, i, arena / BLOCKS * i, 1 + (arena / BLOCKS >> i % 40),
                               2 + (arena / BLOCKS >> i % 40));
    for (uint32_t i = 0; i < BLOCKS; i++)
        made_release(&made, BLOCKS + i, blocks[i]);
    cr_assert(vram_history_make(&made, &history, NULL) && vram_cursor_new(&made, &cursor, NULL));
    for (vram_by by = 0; by < VRAM_BYS; by++) {
        vram_key key = key_for(by, VRAM_AXIS_EVENT, &made);
        const vram_cell_span span = {
            .bytes = {0, arena}, .cell_bytes = (arena + 1000) / 1001, .count = 1001};
        vram_cells *const cells = vram_cells_new(cursor, &history);
        vram_tint tint;
        cr_assert(vram_cells_set(cells, &span, &key));
        cr_assert(vram_cells_seek(cells, BLOCKS, SIZE_MAX / 4));
        for (uint32_t i = 0; i < BLOCKS; i++) { /* the smallest can be seen too */
            const uint32_t cell = (uint32_t)(arena / BLOCKS * i / span.cell_bytes);
            cr_assert(vram_cells_tint(cells, cell, &tint), "%s block %u", vram_by_name(by), i);
            cr_assert(tint.share > 0 && tint.share <= 1);
        }
        cr_assert(vram_cells_seek(cells, made.op_count, SIZE_MAX / 4));
        for (uint32_t cell = 0; cell < span.count; cell++)
            cr_assert_not(vram_cells_tint(cells, cell, &tint), "cell %u", cell);
        vram_cells_free(cells);
        vram_key_free(&key);
    }
    vram_cursor_free(cursor);
    vram_history_free(&history);
    vram_timeline_free(&made);
}
