/* plan.c - plans against exhaustive search on small cases, and against what a plan must be on large
 * ones. */
#include "hand_trace.h"

#include <vramlab/plan.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

static bool alive_together(const vram_plan_block *a, const vram_plan_block *b)
{
    return a->from < b->to && b->from < a->to;
}

static uint64_t top_of(const vram_plan_block *block)
{
    return block->offset_bytes + block->size_bytes;
}

static bool overlap(const vram_plan_block *a, const vram_plan_block *b)
{
    return alive_together(a, b) && a->offset_bytes < top_of(b) && b->offset_bytes < top_of(a);
}

/* No two overlap in moments and bytes, and the highest end is the plan's height. */
static void expect_sound(const vram_plan_block *blocks, size_t count, const vram_plan *plan)
{
    uint64_t height_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        height_bytes = top_of(&blocks[i]) > height_bytes ? top_of(&blocks[i]) : height_bytes;
        for (size_t k = 0; k < i; k++)
            cr_assert(not(overlap(&blocks[i], &blocks[k])), "blocks %zu and %zu", k, i);
    }
    cr_assert(eq(u64, height_bytes, plan->height_bytes));
    cr_assert(plan->height_bytes >= plan->bound_bytes);
}

/* ---- the optimum by trying every order ---- */

typedef struct exhaustive {
    vram_plan_block *blocks;
    size_t count;
    uint64_t bound_bytes; /* none can be lower */
    uint64_t least_bytes;
} exhaustive;

/* Some order, each block at the lowest offset free among those before it, gives an optimal plan. */
static uint64_t lowest_free(const exhaustive *self, const bool *placed, size_t index)
{
    uint64_t at_bytes = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t k = 0; k < self->count; k++)
            if (placed[k] && alive_together(&self->blocks[k], &self->blocks[index]) &&
                at_bytes < top_of(&self->blocks[k]) &&
                self->blocks[k].offset_bytes < at_bytes + self->blocks[index].size_bytes) {
                at_bytes = top_of(&self->blocks[k]);
                moved = true;
            }
    }
    return at_bytes;
}

static void try_all_orders(exhaustive *self, bool *placed, size_t left, uint64_t height_bytes)
{
    if (height_bytes >= self->least_bytes || self->least_bytes == self->bound_bytes)
        return;
    if (left == 0)
        self->least_bytes = height_bytes;
    for (size_t i = 0; i < self->count; i++) {
        if (placed[i])
            continue;
        self->blocks[i].offset_bytes = lowest_free(self, placed, i);
        const uint64_t top_bytes = top_of(&self->blocks[i]);
        placed[i] = true;
        try_all_orders(self, placed, left - 1, top_bytes > height_bytes ? top_bytes : height_bytes);
        placed[i] = false;
    }
}

static size_t random_blocks(vram_plan_block *blocks, size_t most, uint64_t moments, uint64_t sizes,
                            uint64_t *seed)
{
    const size_t count = 1 + vram_next_random(seed) % most;
    for (size_t i = 0; i < count; i++) {
        const uint64_t from = vram_next_random(seed) % moments;
        const uint64_t life = 1 + vram_next_random(seed) % (moments - from);
        blocks[i] = (vram_plan_block){.from = from,
                                      .to = from + life,
                                      .size_bytes = 1 + vram_next_random(seed) % sizes,
                                      .life = life};
    }
    return count;
}

/* The plan is sound and as low as any; returns whether the optimum lies above the bound. */
static bool expect_optimal(vram_plan_block *blocks, size_t count)
{
    vram_plan plan;
    vram_error error = {""};
    const vram_plan_options how = {.looks = 4000000};
    cr_assert(vram_plan_make(blocks, count, &how, &plan, &error), "%s", error.text);
    expect_sound(blocks, count, &plan);
    exhaustive all = {blocks, count, plan.bound_bytes, UINT64_MAX};
    bool placed[16] = {false};
    try_all_orders(&all, placed, count, 0);
    cr_assert(eq(u64, plan.height_bytes, all.least_bytes));
    return plan.height_bytes > plan.bound_bytes;
}

Test(plan, small_cases_are_planned_as_low_as_any_plan_can_be)
{
    uint64_t seed = 1;
    for (int k = 0; k < 150; k++) {
        vram_plan_block blocks[10];
        expect_optimal(blocks, random_blocks(blocks, 10, 9, 4, &seed));
    }
}

/* Such cases are rare: one in 25,000 at random with eleven blocks. */
Test(plan, where_no_plan_reaches_the_bound_the_best_is_found)
{
    static const uint64_t lives[][3] = {{1, 4, 4}, {3, 5, 1}, {4, 5, 2}, {1, 2, 3},
                                        {5, 6, 4}, {4, 6, 3}, {3, 6, 2}, {2, 5, 4},
                                        {2, 3, 4}, {5, 6, 4}, {2, 5, 1}};
    enum { COUNT = sizeof lives / sizeof lives[0] };
    vram_plan_block blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] =
            (vram_plan_block){.from = lives[i][0], .to = lives[i][1], .size_bytes = lives[i][2]};
    cr_assert(expect_optimal(blocks, COUNT), "14 where the bound is 13");
}

Test(plan, large_cases_are_sound_and_come_out_the_same_twice)
{
    enum { CASES = 8, MOST = 300 };
    uint64_t seed = 2;
    static vram_plan_block blocks[MOST];
    static vram_plan_block again[MOST];
    for (int k = 0; k < CASES; k++) {
        const size_t count = random_blocks(blocks, MOST, 400, 1000, &seed);
        memcpy(again, blocks, sizeof blocks);
        const vram_plan_options how = {.looks = 2000000};
        vram_plan plan;
        vram_plan plan_again;
        vram_error error = {""};
        cr_assert(vram_plan_make(blocks, count, &how, &plan, &error), "%s", error.text);
        expect_sound(blocks, count, &plan);
        cr_assert(vram_plan_make(again, count, &how, &plan_again, &error));
        cr_assert(memcmp(blocks, again, count * sizeof *blocks) == 0, "case %d", k);
    }
}

/* Equal blocks whose lives chain: only a perfect packing reaches the bound, greedy orders do not.
 */
Test(plan, a_target_above_the_bound_ends_the_search_early)
{
    uint64_t seed = 3;
    vram_plan_block blocks[60];
    const size_t count = random_blocks(blocks, 60, 50, 100, &seed);
    vram_plan low;
    vram_plan high;
    vram_error error = {""};
    cr_assert(vram_plan_make(blocks, count, &(vram_plan_options){.looks = 20000000}, &low, &error));
    const vram_plan_options easy = {.target_bytes = low.bound_bytes * 4};
    cr_assert(vram_plan_make(blocks, count, &easy, &high, &error));
    expect_sound(blocks, count, &high);
    cr_assert(eq(str, (char *)high.method, "size"), "the first greedy order is good enough");
    cr_assert(low.height_bytes <= high.height_bytes);
}

Test(plan, nothing_to_plan_needs_nothing)
{
    vram_plan plan;
    vram_error error = {""};
    uint64_t smallest_bytes = 1;
    cr_assert(vram_plan_make(NULL, 0, &(vram_plan_options){0}, &plan, &error), "%s", error.text);
    cr_assert(eq(u64, plan.height_bytes, 0));
    cr_assert(vram_plan_two_ended(NULL, 0, 0, &smallest_bytes, &error));
    cr_assert(eq(u64, smallest_bytes, 0));
}

/* Short-lived blocks come and go between long-lived ones: from one end they would strand holes. */
Test(plan, two_ends_keep_long_lives_apart_from_short_ones)
{
    enum { PAIRS = 50 };
    vram_plan_block blocks[5 * PAIRS];
    size_t count = 0;
    for (uint64_t i = 0; i < PAIRS; i++) {
        for (uint64_t k = 0; k < 4; k++)
            blocks[count++] = (vram_plan_block){
                .from = 10 * i + k, .to = 10 * i + 9, .size_bytes = 70, .life = 9 - k};
        blocks[count++] = (vram_plan_block){.from = 10 * i + 5,
                                            .to = 10 * PAIRS,
                                            .size_bytes = 10,
                                            .life = 10 * PAIRS - 10 * i - 5};
    }
    vram_plan plan;
    vram_error error = {""};
    uint64_t smallest_bytes;
    cr_assert(vram_plan_make(blocks, count, &(vram_plan_options){.looks = 100000}, &plan, &error));
    cr_assert(vram_plan_two_ended(blocks, count, plan.bound_bytes, &smallest_bytes, &error));
    cr_assert(eq(u64, smallest_bytes, plan.bound_bytes));
    expect_sound(blocks, count, &(vram_plan){.bound_bytes = 0, .height_bytes = smallest_bytes});
}

/* ---- the lives of a trace ---- */

static vram_plan_block *blocks_of(const char *text, bool tries, size_t *count)
{
    vram_trace *trace = hand_trace(text);
    vram_plan_block *blocks = NULL;
    vram_error error = {""};
    cr_assert(vram_plan_blocks_of(trace, tries, &blocks, count, &error), "%s", error.text);
    vram_trace_close(trace);
    return blocks;
}

Test(plan, lives_are_read_from_a_trace)
{
    static const char text[] = "unit 16\n"
                               "a 1 10 @100\n"
                               "a 2 20 @100\n" /* the same moment as 1 */
                               "a 3 16 @150\n"
                               "f 2 @200\n"
                               "t 100 @250\n" /* refused when recorded */
                               "r 1 50 @300\n"
                               "f 3 @400\n";
    size_t count = 0;
    vram_plan_block *blocks = blocks_of(text, false, &count);
    cr_assert(eq(sz, count, 4));
    static const vram_plan_block expected[] = {
        {.from = 1, .to = 5, .size_bytes = 16, .life = 200},
        {.from = 1, .to = 3, .size_bytes = 32, .life = 100},
        {.from = 2, .to = 6, .size_bytes = 16, .life = 250},
        {.from = 5, .to = 7, .size_bytes = 64, .life = 101}, /* 1, grown; lives to the end */
    };
    for (size_t i = 0; i < count; i++) {
        cr_expect(eq(u64, blocks[i].from, expected[i].from), "block %zu", i);
        cr_expect(eq(u64, blocks[i].to, expected[i].to), "block %zu", i);
        cr_expect(eq(u64, blocks[i].size_bytes, expected[i].size_bytes), "block %zu", i);
        cr_expect(eq(u64, blocks[i].life, expected[i].life), "block %zu", i);
    }
    free(blocks);
    blocks = blocks_of(text, true, &count);
    cr_assert(eq(sz, count, 5));
    cr_assert(eq(u64, blocks[3].size_bytes, 112));
    cr_assert(eq(u64, blocks[3].to - blocks[3].from, 1));
    free(blocks);
}
