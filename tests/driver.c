/* driver.c - replaying: what becomes of each kind of event, and that no lie of a backend passes. */
#include "crooked.h"
#include "hand_trace.h"

#include <vramlab/driver.h>

#include <criterion/new/assert.h>
#include <string.h>

static vram_backend *backend_of(const char *spec, uint64_t arena_bytes, uint64_t unit_bytes)
{
    vram_backend *backend = NULL;
    vram_error error = {0};
    const vram_config config = {.arena_bytes = arena_bytes, .unit_bytes = unit_bytes};
    cr_assert(vram_create_from_text(spec, &config, &backend, &error), "%s", error.text);
    return backend;
}

/* Replays on a fresh backend; the replay itself must succeed. */
static vram_replay_result replay(const char *text, const char *spec, uint64_t arena_bytes,
                                 const vram_replay_options *options)
{
    vram_trace *trace = hand_trace(text);
    vram_backend *backend = backend_of(spec, arena_bytes, vram_trace_info_of(trace)->unit_bytes);
    vram_replay_result result;
    vram_error error = {0};
    cr_assert(vram_replay(trace, backend, options, &result, &error), "%s", error.text);
    vram_destroy(backend);
    vram_trace_close(trace);
    return result;
}

#define NO_LOOK .look_at_event = UINT64_MAX

/* ---- failures ---- */

static const char too_much[] = "unit 1\n"
                               "a 1 600\n"
                               "a 2 600\n" /* does not fit into 1000 */
                               "f 2\n"
                               "a 3 300\n"
                               "f 1\n"
                               "f 3\n";

Test(driver, stops_at_the_first_failure_and_tells_why)
{
    const vram_replay_result result =
        replay(too_much, "naive", 1000, &(vram_replay_options){NO_LOOK});
    cr_assert(not(result.completed));
    cr_assert(eq(u64, result.events, 2));
    cr_assert(eq(u64, result.first_failure_event, 1));
    cr_assert(eq(u64, result.first_failure.size_bytes, 600));
    cr_assert(eq(int, result.failure.reason, VRAM_REASON_BYTES));
    cr_assert(eq(u64, result.failure.free_bytes, 400));
    cr_assert(eq(u64, result.failure.largest_free_bytes, 400));
    cr_assert(eq(u64, result.failure_look.live_bytes, 600));
    cr_assert(eq(u64, result.requests, 2));
    cr_assert(eq(u64, result.served, 1));
    cr_assert(eq(u64, result.refused, 1));
}

Test(driver, skips_failures_and_the_later_events_of_refused_blocks)
{
    const vram_replay_result result =
        replay(too_much, "naive", 1000,
               &(vram_replay_options){.on_failure = VRAM_SKIP_FAILURES, .verify = true, NO_LOOK});
    cr_assert(not(result.completed));
    cr_assert(eq(u64, result.events, 6));
    cr_assert(eq(u64, result.requests, 3));
    cr_assert(eq(u64, result.served, 2));
    cr_assert(eq(u64, result.peak_live_bytes, 900));
    cr_assert(eq(u64, result.peak_extent_bytes, 900));
    cr_assert(eq(u64, result.first_failure_event, 1));
}

Test(driver, a_refused_ask_of_the_recording_is_made_only_when_wanted_and_leaves_nothing)
{
    static const char text[] = "unit 1\na 1 600\nt 300\nt 500\na 2 400\n";
    const vram_replay_result without = replay(text, "naive", 1000, &(vram_replay_options){NO_LOOK});
    cr_assert(without.completed);
    cr_assert(eq(u64, without.requests, 2));
    cr_assert(eq(u64, without.peak_live_bytes, 1000));
    const vram_replay_result with =
        replay(text, "naive", 1000, &(vram_replay_options){.tries = true, NO_LOOK});
    cr_assert(not(with.completed), "500 do not fit beside 600");
    cr_assert(eq(u64, with.first_failure_event, 2));
    const vram_replay_result roomy =
        replay(text, "list", 1100, &(vram_replay_options){.tries = true, NO_LOOK});
    cr_assert(roomy.completed);
    cr_assert(eq(u64, roomy.peak_live_bytes, 1100), "for a moment 600 and 500 were live");
}

/* ---- lifetimes ---- */

Test(driver, a_retired_block_keeps_its_bytes_until_its_free_or_not)
{
    static const char text[] = "unit 1\na 1 600\np 1\na 2 600\nf 1\nf 2\n";
    cr_assert(not(replay(text, "naive", 1000, &(vram_replay_options){NO_LOOK}).completed));
    const vram_replay_result early =
        replay(text, "naive", 1000, &(vram_replay_options){.free_at_retire = true, NO_LOOK});
    cr_assert(early.completed, "released at RETIRE; the FREE after it is not a second release");
    cr_assert(eq(u64, early.peak_live_bytes, 600));
}

Test(driver, alignment_is_the_events_or_the_traces_unit)
{
    static const char text[] = "unit 256\na 1 100\na 2 100 ^4096\na 3 100\n";
    for (uint32_t verify = 0; verify < 2; verify++) {
        vram_timeline record = {0};
        replay(text, "naive:unit=1", 1 << 16,
               &(vram_replay_options){.verify = verify != 0, .record = &record, NO_LOOK});
        cr_assert(eq(u64, record.ops[0].offset_bytes % 256, 0));
        cr_assert(eq(u64, record.ops[1].offset_bytes % 4096, 0));
        cr_assert(eq(u64, record.ops[2].offset_bytes % 256, 0));
        vram_timeline_free(&record);
    }
}

/* naive cannot resize: a new block, a copy, a release. list grows into the free bytes behind. */
Test(driver, a_resize_keeps_the_contents_and_counts_both_blocks_while_it_copies)
{
    static const char text[] = "unit 1\na 1 600\nr 1 700\nr 1 100\nf 1\n";
    static const struct {
        const char *spec;
        uint64_t peak_live_bytes;
    } cases[] = {{"naive", 1300}, {"list", 700}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        vram_arena *arena = NULL;
        vram_error error = {0};
        cr_assert(vram_arena_create("host", 4096, &arena, &error), "%s", error.text);
        vram_timeline record = {0};
        const vram_replay_options options = {
            .verify = true, .arena = arena, .record = &record, NO_LOOK};
        const vram_replay_result result = replay(text, cases[i].spec, 4096, &options);
        cr_assert(result.completed);
        cr_assert(eq(u64, result.peak_live_bytes, cases[i].peak_live_bytes), "%s", cases[i].spec);
        cr_assert(vram_timeline_check(&record, &error), "%s", error.text);
        cr_assert(eq(sz, record.life_count, 3), "each size is a block of its own");
        cr_assert(eq(u32, record.lives[2].death, 5));
        vram_timeline_free(&record);
        vram_arena_destroy(arena);
    }
}

Test(driver, a_resize_that_finds_no_room_leaves_the_block_as_it_was)
{
    static const char text[] = "unit 1\na 1 600\nr 1 700\nf 1\na 2 1000\n";
    const vram_replay_result result =
        replay(text, "list", 1000,
               &(vram_replay_options){.on_failure = VRAM_SKIP_FAILURES, .verify = true, NO_LOOK});
    cr_assert(eq(u64, result.refused, 0), "700 fit in place");
    const vram_replay_result tight =
        replay("unit 1\na 1 600\na 2 300\nr 1 700\nf 1\nf 2\na 3 1000\n", "list", 1000,
               &(vram_replay_options){.on_failure = VRAM_SKIP_FAILURES, .verify = true, NO_LOOK});
    cr_assert(eq(u64, tight.refused, 1));
    cr_assert(eq(u64, tight.served, 3), "what was not resized was released once, whole");
    cr_assert(eq(u64, tight.peak_live_bytes, 1000));
}

/* ---- what is written down ---- */

Test(driver, the_timeline_tells_each_event_in_order)
{
    static const char text[] = "unit 512\n"
                               "a 7 1000 @100 \"weights\"\n"
                               "m @150 \"step 1\"\n"
                               "p 7 @200\n"
                               "a 8 9000 @250\n" /* refused */
                               "t 400 @300\n"
                               "f 7 @400\n";
    static const struct {
        vram_op_kind kind;
        uint64_t time_ns, size_bytes, granted_bytes;
        uint32_t event, block;
        uint8_t flags;
    } expected[] = {
        {VRAM_OP_ALLOC, 0, 1000, 1024, 0, 0, 0},
        {VRAM_OP_MARK, 50, 0, 0, 1, 0, 0},
        {VRAM_OP_RETIRE, 100, 1000, 1024, 2, 0, 0},
        {VRAM_OP_FAIL, 150, 9000, 0, 3, 0, 0},
        {VRAM_OP_ALLOC, 200, 400, 512, 4, 1, VRAM_OP_FLAG_TRY},
        {VRAM_OP_RELEASE, 200, 400, 512, 4, 1, VRAM_OP_FLAG_TRY},
        {VRAM_OP_RELEASE, 300, 1000, 1024, 5, 0, 0},
    };
    enum { EXPECTED = sizeof expected / sizeof expected[0] };
    vram_timeline record = {0};
    replay(text, "naive", 8192,
           &(vram_replay_options){
               .on_failure = VRAM_SKIP_FAILURES, .tries = true, .record = &record, NO_LOOK});
    cr_assert(eq(sz, record.op_count, EXPECTED));
    for (size_t i = 0; i < EXPECTED; i++) {
        const vram_op *op = &record.ops[i];
        cr_assert(eq(int, op->kind, expected[i].kind), "op %zu", i);
        cr_assert(eq(u64, op->time_ns, expected[i].time_ns), "op %zu", i);
        cr_assert(eq(u64, op->size_bytes, expected[i].size_bytes), "op %zu", i);
        cr_assert(eq(u64, op->granted_bytes, expected[i].granted_bytes), "op %zu", i);
        cr_assert(eq(u32, op->event, expected[i].event), "op %zu", i);
        cr_assert(eq(u32, op->block, expected[i].block), "op %zu", i);
        cr_assert(eq(int, op->flags, expected[i].flags), "op %zu", i);
    }
    cr_assert(eq(str, (char *)vram_timeline_tag(&record, record.ops[0].tag), "weights"));
    cr_assert(eq(str, (char *)vram_timeline_tag(&record, record.ops[1].tag), "step 1"));
    cr_assert(eq(u64, record.lives[0].id, 7));
    cr_assert(eq(str, record.failures[0].reason, "oversize"));
    cr_assert(eq(str, record.backend, "naive"));
    cr_assert(record.complete, "skipping, every event was replayed");
    vram_error error = {0};
    cr_assert(vram_timeline_check(&record, &error), "%s", error.text);
    vram_timeline_free(&record);
}

Test(driver, a_timeline_that_ended_at_a_failure_says_so)
{
    vram_timeline record = {0};
    replay(too_much, "naive", 1000, &(vram_replay_options){.record = &record, NO_LOOK});
    cr_assert(not(record.complete));
    cr_assert(eq(sz, record.op_count, 2));
    vram_timeline_free(&record);
}

Test(driver, looks_at_the_event_that_was_asked_for)
{
    static const char text[] = "unit 64\na 1 90\na 2 100\na 3 300\nf 2\na 4 50\n";
    for (uint64_t event = 0; event < 5; event++) {
        static const uint64_t live[] = {90, 190, 490, 390, 440};
        static const uint64_t granted[] = {128, 256, 576, 448, 576}; /* 2 is reused whole */
        static const uint64_t largest[] = {896, 768, 448, 448, 448};
        const vram_replay_result result =
            replay(text, "naive", 1024, &(vram_replay_options){.look_at_event = event});
        cr_assert(result.look.taken);
        cr_assert(eq(u64, result.look.event, event));
        cr_assert(eq(u64, result.look.live_bytes, live[event]));
        cr_assert(eq(u64, result.look.internal_bytes, granted[event] - live[event]));
        cr_assert(eq(u64, result.look.largest_free_bytes, largest[event]));
        const vram_look *look = &result.look;
        cr_assert(eq(u64,
                     look->live_bytes + look->internal_bytes + look->free_bytes +
                         look->bound_bytes + look->pending_bytes + look->reserve_bytes +
                         look->padding_bytes,
                     1024));
    }
    const vram_replay_result never =
        replay(text, "naive", 1024, &(vram_replay_options){.look_at_event = 99});
    cr_assert(not(never.look.taken));
}

Test(driver, fragmentation_is_zero_where_nothing_is_free_or_granted)
{
    const vram_look full = {.live_bytes = 10};
    const vram_look empty = {.free_bytes = 10, .largest_free_bytes = 10};
    const vram_look halves = {
        .live_bytes = 6, .internal_bytes = 2, .free_bytes = 8, .largest_free_bytes = 4};
    cr_assert(epsilon_eq(dbl, vram_look_external(&full), 0, 1e-12));
    cr_assert(epsilon_eq(dbl, vram_look_internal(&empty), 0, 1e-12));
    cr_assert(epsilon_eq(dbl, vram_look_external(&empty), 0, 1e-12));
    cr_assert(epsilon_eq(dbl, vram_look_external(&halves), 0.5, 1e-12));
    cr_assert(epsilon_eq(dbl, vram_look_internal(&halves), 0.25, 1e-12));
}

Test(driver, times_calls_only_when_asked_to)
{
    const vram_replay_result untimed =
        replay(too_much, "naive", 4096, &(vram_replay_options){NO_LOOK});
    cr_assert(zero(u64, untimed.alloc_ns.calls));
    const vram_replay_result timed =
        replay(too_much, "naive", 4096, &(vram_replay_options){.time_calls = true, NO_LOOK});
    cr_assert(eq(u64, timed.alloc_ns.calls, 3));
    cr_assert(eq(u64, timed.release_ns.calls, 3));
    cr_assert(le(u64, timed.alloc_ns.p50_ns, timed.alloc_ns.max_ns));
}

/* ---- no lie passes ---- */

static const char honest_work[] = "unit 64\n"
                                  "a 1 300\na 2 300\na 3 300\nf 2\na 4 200\na 5 100\n"
                                  "f 1\nf 3\na 6 500\nf 4\nf 5\nf 6\n";

static bool replay_crooked(crooked_lie lie, uint64_t at_alloc, bool host, vram_error *error)
{
    vram_trace *trace = hand_trace(honest_work);
    vram_arena *arena = NULL;
    cr_assert(vram_arena_create(host ? "host" : "virtual", 4096, &arena, error), "%s", error->text);
    vram_backend *crooked = crooked_over(backend_of("naive", 4096, 64), lie, at_alloc, arena);
    const vram_replay_options options = {.verify = true, .arena = arena, NO_LOOK};
    vram_replay_result result;
    const bool sound = vram_replay(trace, crooked, &options, &result, error);
    vram_destroy(crooked);
    vram_arena_destroy(arena);
    vram_trace_close(trace);
    return sound;
}

Test(driver, verification_passes_an_honest_backend)
{
    for (int host = 0; host < 2; host++) {
        vram_error error = {0};
        cr_assert(replay_crooked(LIE_NONE, 1, host != 0, &error), "%s", error.text);
    }
}

Test(driver, verification_names_every_lie_with_its_event_and_the_backend)
{
    static const char *const said[LIES] = {
        [LIE_OVERLAP] = "overlaps",
        [LIE_OUTSIDE] = "leaves the arena",
        [LIE_MISALIGNED] = "alignment asked for",
        [LIE_SHORT] = "were asked for and 1 granted",
        [LIE_GENERATION] = "generation 0",
        [LIE_STATS] = "do not add up",
        [LIE_SHIFTED_STATS] = "stats counts",
        [LIE_WALK_GAP] = "untiled",
        [LIE_WALK_HANDLE] = "that the model does not have",
        [LIE_CHECK] = "\"I7 honest\" broken at 42",
        [LIE_REFUSES_RELEASE] = "answered \"stale block\"",
        [LIE_SCRIBBLE] = "no longer holds",
        [LIE_BAD_RESULT] = "answered \"bad request\"",
    };
    for (crooked_lie lie = LIE_NONE + 1; lie < LIES; lie++)
        for (uint64_t at_alloc = 2; at_alloc <= 4; at_alloc++) {
            vram_error error = {0};
            cr_assert(not(replay_crooked(lie, at_alloc, true, &error)), "lie %d passed", lie);
            cr_assert(strstr(error.text, said[lie]) != NULL, "lie %d: %s", lie, error.text);
            cr_assert(strstr(error.text, " on crooked: ") != NULL, "%s", error.text);
            cr_assert(strstr(error.text, ", event ") != NULL, "%s", error.text);
        }
}

Test(driver, a_finding_at_the_event_of_the_first_failure_is_not_lost)
{
    vram_trace *trace = hand_trace(too_much);
    vram_backend *crooked = crooked_over(backend_of("naive", 1000, 1), LIE_STATS, 2, NULL);
    vram_replay_result result;
    vram_error error = {0};
    const vram_replay_options options = {.verify = true, NO_LOOK};
    cr_assert(not(vram_replay(trace, crooked, &options, &result, &error)));
    cr_assert(strstr(error.text, "event 1 on crooked") != NULL, "%s", error.text);
    vram_destroy(crooked);
    vram_trace_close(trace);
}

Test(driver, whatever_the_distance_of_the_checks_the_end_is_checked)
{
    for (uint64_t every = 1; every < 20; every++) {
        vram_trace *trace = hand_trace(honest_work);
        vram_backend *crooked = crooked_over(backend_of("naive", 4096, 64), LIE_CHECK, 6, NULL);
        vram_replay_result result;
        vram_error error = {0};
        const vram_replay_options options = {.verify = true, .check_every = every, NO_LOOK};
        cr_assert(not(vram_replay(trace, crooked, &options, &result, &error)), "every %d",
                  (int)every);
        vram_destroy(crooked);
        vram_trace_close(trace);
    }
}

/* Recording alone, without verification, accounts for every byte too. */
Test(driver, a_recorded_replay_fails_when_the_bytes_do_not_add_up)
{
    vram_trace *trace = hand_trace(honest_work);
    vram_backend *crooked = crooked_over(backend_of("naive", 4096, 64), LIE_STATS, 2, NULL);
    vram_timeline record = {0};
    vram_replay_result result;
    vram_error error = {0};
    const vram_replay_options options = {.record = &record, NO_LOOK};
    cr_assert(not(vram_replay(trace, crooked, &options, &result, &error)));
    cr_assert(strstr(error.text, "event 1 on crooked") != NULL, "%s", error.text);
    vram_timeline_free(&record);
    vram_destroy(crooked);
    vram_trace_close(trace);
}

/* ---- profile and calls ---- */

Test(driver, the_profile_counts_requests_and_peaks_by_class)
{
    vram_trace *trace = hand_trace("unit 1\n"
                                   "a 1 1000\na 2 600\nf 1\na 3 513\na 4 8\nr 3 2000\nf 2\nf 3\n");
    vram_profile profile;
    vram_error error = {0};
    cr_assert(vram_profile_of(trace, &profile, &error), "%s", error.text);
    cr_assert(eq(u64, profile.largest_bytes, 2000));
    cr_assert(eq(u64, profile.smallest_bytes, 8));
    cr_assert(eq(u64, profile.peak_live_bytes, 2608));
    cr_assert(eq(u64, profile.class_requests[9], 3));
    cr_assert(eq(u64, profile.class_peak_blocks[9], 2));
    cr_assert(eq(u64, profile.class_peak_bytes[9], 1600));
    cr_assert(eq(u64, profile.class_largest_bytes[9], 1000));
    cr_assert(eq(u64, profile.class_requests[10], 1));
    cr_assert(eq(u64, profile.class_largest_bytes[10], 2000));
    cr_assert(eq(u64, profile.class_peak_blocks[3], 1));
    vram_trace_close(trace);
}

Test(driver, calls_are_balanced_so_that_they_can_be_repeated)
{
    vram_trace *trace = hand_trace("unit 1\na 1 600\nt 900\na 2 100\nr 1 300\nf 2\na 3 50\n");
    vram_calls *calls = NULL;
    vram_error error = {0};
    cr_assert(vram_calls_of(trace, &calls, &error), "%s", error.text);
    cr_assert(eq(u64, vram_calls_count(calls), 8), "3 of ALLOC, 2 of RESIZE, 1 of FREE, 2 to end");
    vram_backend *backend = backend_of("list", 1000, 1);
    for (uint32_t pass = 0; pass < 100; pass++) {
        uint64_t refused = 1;
        vram_calls_run(calls, backend, &refused);
        cr_assert(zero(u64, refused));
        cr_assert(zero(u64, vram_stats_of(backend).live_blocks));
    }
    vram_destroy(backend);
    vram_calls_free(calls);
    vram_trace_close(trace);
}
