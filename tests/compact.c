/* compact.c - the driver moves blocks as planned, with their bytes, and notices plans that are
 * wrong. */
#include "hand_trace.h"
#include "slider.h"

#include <vramlab/driver.h>
#include <vramlab/registry.h>

#include <criterion/new/assert.h>
#include <string.h>

/* Leaves holes of 100 at 0 and 200 behind; the last request fits only when they are one. */
static const char holes[] = "unit 1\n"
                            "a 1 100\na 2 100\na 3 100\na 4 100\na 5 100\n"
                            "f 1\nf 3\n"
                            "a 6 200\n"
                            "f 2\nf 4\nf 5\nf 6\n";

static bool run(slider_fault fault, vram_replay_options options, vram_replay_result *result,
                vram_error *error)
{
    vram_trace *trace = hand_trace(holes);
    vram_arena *arena = NULL;
    cr_assert(vram_arena_create("host", 500, &arena, error), "%s", error->text);
    vram_backend *slider = slider_create(500, 1, fault);
    options.arena = arena;
    options.look_at_event = UINT64_MAX;
    const bool sound = vram_replay(trace, slider, &options, result, error);
    vram_destroy(slider);
    vram_arena_destroy(arena);
    vram_trace_close(trace);
    return sound;
}

Test(compact, makes_one_span_of_the_holes_and_keeps_every_blocks_bytes)
{
    static const struct {
        vram_replay_options options;
        bool completes;
        uint64_t compactions, moves, moved_bytes;
    } cases[] = {
        {{.verify = true}, false, 0, 0, 0},
        {{.verify = true, .compact.on_failure = true}, true, 1, 3, 300},
        {{.verify = true, .compact.every = 7}, true, 1, 3, 300},
        {{.verify = true, .compact.every = 1}, true, 12, 12, 1500},
        {{.verify = true, .compact.every = 5}, false, 1, 0, 0}, /* before there were holes */
        {{.compact.every = 7}, true, 1, 3, 300},
        {{.verify = true, .compact = {.every = 7, .budget_bytes = 99}}, false, 1, 0, 0},
        {{.verify = true, .compact = {.every = 7, .budget_bytes = 100}}, true, 1, 1, 100},
        {{.verify = true, .compact = {.every = 7, .budget_bytes = 299}}, true, 1, 2, 200},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        vram_replay_result result;
        vram_error error = {0};
        cr_assert(run(SLIDER_SOUND, cases[i].options, &result, &error), "%s", error.text);
        cr_assert(eq(int, result.completed, cases[i].completes), "case %zu", i);
        cr_assert(eq(u64, result.compactions, cases[i].compactions), "case %zu", i);
        cr_assert(eq(u64, result.moves, cases[i].moves), "case %zu", i);
        cr_assert(eq(u64, result.moved_bytes, cases[i].moved_bytes), "case %zu", i);
    }
}

Test(compact, the_timeline_tells_where_each_block_lives_now)
{
    vram_timeline record = {0};
    vram_replay_result result;
    vram_error error = {0};
    const vram_replay_options options = {.compact.every = 7, .record = &record};
    cr_assert(run(SLIDER_SOUND, options, &result, &error), "%s", error.text);
    static const uint64_t to[] = {0, 100, 200};
    static const uint32_t block[] = {1, 3, 4};
    for (size_t i = 0; i < 3; i++) {
        const vram_op *op = &record.ops[7 + i];
        cr_assert(eq(int, op->kind, VRAM_OP_MOVE));
        cr_assert(eq(u64, op->offset_bytes, to[i]));
        cr_assert(eq(u32, op->block, block[i]));
        cr_assert(eq(u32, op->event, 6));
    }
    cr_assert(vram_timeline_check(&record, &error), "%s", error.text);
    vram_timeline_free(&record);
}

Test(compact, a_wrong_plan_is_named)
{
    static const char *const said[SLIDER_FAULTS] = {
        [SLIDER_MOVES_UP] = "only moves down",
        [SLIDER_MOVES_THE_DEAD] = "does not live",
        [SLIDER_WRONG_SIZE] = "plans to move 99 bytes from 100; the block has 100 at 100",
        [SLIDER_WRONG_ORDER] = "overlaps the live block",
        [SLIDER_LIVES_ELSEWHERE] = "is said to live at 1",
        [SLIDER_REFUSES] = "was answered \"stale block\"",
        [SLIDER_OVER_BUDGET] = "planned moves of 300 bytes where 250 were allowed",
    };
    for (slider_fault fault = SLIDER_SOUND + 1; fault < SLIDER_FAULTS; fault++) {
        vram_replay_result result;
        vram_error error = {0};
        const vram_replay_options options = {.verify = true,
                                             .compact = {.every = 7, .budget_bytes = 250}};
        cr_assert(not(run(fault, options, &result, &error)), "fault %d passed", fault);
        cr_assert(strstr(error.text, said[fault]) != NULL, "fault %d: %s", fault, error.text);
    }
}

Test(compact, a_backend_that_plans_no_moves_cannot_be_compacted)
{
    vram_trace *trace = hand_trace(holes);
    vram_backend *backend = NULL;
    vram_error error = {0};
    const vram_config config = {.arena_bytes = 500};
    cr_assert(vram_create_from_text("naive:unit=1", &config, &backend, &error), "%s", error.text);
    vram_replay_result result;
    const vram_replay_options options = {.compact.every = 3, .look_at_event = UINT64_MAX};
    cr_assert(not(vram_replay(trace, backend, &options, &result, &error)));
    cr_assert(strstr(error.text, "cannot be compacted") != NULL, "%s", error.text);
    vram_destroy(backend);
    vram_trace_close(trace);
}

Test(compact, reads_when_and_how_much_from_text)
{
    vram_compaction read;
    vram_error error = {0};
    cr_assert(vram_parse_compaction("every=10000,failure,budget=64MiB", &read, &error), "%s",
              error.text);
    cr_assert(eq(u64, read.every, 10000));
    cr_assert(read.on_failure);
    cr_assert(eq(u64, read.budget_bytes, 64 << 20));
    static const char *const wrong[] = {"",        "never",    "every=",     "every=x",
                                        "every=0", "failure,", "budget=1MiB"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_assert(not(vram_parse_compaction(wrong[i], &read, &error)), "%s", wrong[i]);
}
