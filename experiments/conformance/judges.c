/*
 * judges.c - ways of playing a script, each of which proves something.
 */
#include "conformance/judges.h"

#include "conformance/host_memory.h"
#include "conformance/player.h"

#include <vramlab/registry.h>

#include <inttypes.h>

enum { REPETITIONS = 4, CYCLES = 4, CREATIONS_MAX = 1000 };

static vram_verdict verdict_of(const vram_stage *stage)
{
    return stage->finding.found ? BROKEN : HOLDS;
}

static vram_verdict refused(vram_opening opening)
{
    return opening == OPENING_REFUSED ? NOT_POSSIBLE : BROKEN;
}

/* Opens, plays it all, does what comes after, closes. */
static vram_verdict play_then(vram_stage *stage, bool (*after)(vram_player *self))
{
    vram_player player;
    const vram_opening opening = player_open(&player, stage);
    if (opening == OPENING_DONE && player_acts(&player, 0, stage->script.count) && after != NULL)
        after(&player);
    player_close(&player);
    return opening == OPENING_DONE ? verdict_of(stage) : refused(opening);
}

vram_verdict judge_steps(vram_stage *stage)
{
    return play_then(stage, NULL);
}

/* ---- recovery ---- */

static bool try_alloc(vram_player *self, uint64_t size_bytes, vram_block *block)
{
    stage_call(self->stage, "alloc");
    return vram_alloc(self->backend, (vram_request){.size_bytes = size_bytes}, block) == VRAM_OK;
}

/* The same as two acts, so that the script shows what was done should they break something. */
static bool try_as_acts(vram_player *self, uint64_t size_bytes)
{
    vram_script *script = &self->stage->script;
    const uint64_t served = self->stage->served;
    script_add(script, (vram_act){.kind = ACT_ALLOC, .size_bytes = size_bytes});
    script_add(script, (vram_act){.kind = ACT_RELEASE});
    player_acts(self, script->count - 2, script->count);
    return self->stage->served > served;
}

static bool try_and_release(vram_player *self, uint64_t size_bytes)
{
    vram_block block;
    if (!try_alloc(self, size_bytes, &block))
        return false;
    stage_call(self->stage, "release");
    vram_release(self->backend, block);
    return true;
}

/* The largest request that is served, by bisection; 0: none. */
static uint64_t bisect_served(vram_player *self, bool (*is_served)(vram_player *, uint64_t))
{
    uint64_t served_bytes = 0;
    uint64_t refused_bytes = self->stage->script.arena_bytes + 1;
    while (refused_bytes - served_bytes > 1 && !self->stage->finding.found) {
        const uint64_t tried_bytes = served_bytes + (refused_bytes - served_bytes) / 2;
        if (is_served(self, tried_bytes))
            served_bytes = tried_bytes;
        else
            refused_bytes = tried_bytes;
    }
    return served_bytes;
}

vram_verdict judge_largest_served(vram_stage *stage, const vram_ops **ops)
{
    vram_player player;
    stage->finding = (vram_finding){.found = false};
    const vram_opening opening = player_open(&player, stage);
    if (opening == OPENING_DONE) {
        *ops = player.backend->ops;
        stage->script.served_bytes = bisect_served(&player, try_as_acts);
    }
    player_close(&player);
    return opening == OPENING_DONE ? verdict_of(stage) : refused(opening);
}

static uint64_t served_by_fresh(vram_stage *stage)
{
    vram_player fresh;
    uint64_t served_bytes = 0;
    if (player_open(&fresh, stage) == OPENING_DONE)
        served_bytes = bisect_served(&fresh, try_and_release);
    player_close(&fresh);
    return served_bytes;
}

static bool is_as_good_as_new(vram_player *self)
{
    vram_block block;
    if (!player_release_all(self) || !player_settle(self))
        return false;
    const uint64_t served_bytes = served_by_fresh(self->stage);
    const vram_stats stats = vram_stats_of(self->backend);
    if (stats.granted_bytes != 0 || stats.live_blocks != 0 || stats.pending_bytes != 0)
        return stage_find(self->stage, "recovery", "an empty arena has nothing granted or pending",
                          "%" PRIu64 " bytes are granted in %" PRIu64 " blocks, %" PRIu64
                          " are pending",
                          stats.granted_bytes, stats.live_blocks, stats.pending_bytes);
    if (served_bytes == 0 || try_alloc(self, served_bytes, &block))
        return true;
    return stage_find(self->stage, "recovery",
                      "when all is released, what a fresh backend served is served again",
                      "%" PRIu64 " bytes are refused now: %s", served_bytes,
                      vram_reason_name(vram_explain(self->backend,
                                                    (vram_request){
                                                        .size_bytes = served_bytes,
                                                    })
                                           .reason));
}

vram_verdict judge_recovery(vram_stage *stage)
{
    return play_then(stage, is_as_good_as_new);
}

/* ---- the same answers ---- */

/* Compares what became of every request; offsets too when they must be equal. */
static bool answered_alike(vram_player *one, const vram_player *other, bool offsets,
                           const char *broken, const char *expected)
{
    for (uint32_t id = 0; id < one->block_count; id++) {
        const vram_player_block *first = &one->blocks[id];
        const vram_player_block *second = &other->blocks[id];
        const bool differ = first->result != second->result ||
                            (offsets && first->result == VRAM_OK &&
                             first->block.offset_bytes != second->block.offset_bytes);
        if (differ)
            return stage_find(one->stage, broken, expected,
                              "block %" PRIu32 " was answered \"%s\" (at %" PRIu64
                              "), and the other time \"%s\" (at %" PRIu64 ")",
                              id, vram_result_name(first->result),
                              first->result == VRAM_OK ? first->block.offset_bytes : 0,
                              vram_result_name(second->result),
                              second->result == VRAM_OK ? second->block.offset_bytes : 0);
    }
    return true;
}

vram_verdict judge_same_again(vram_stage *stage)
{
    const uint32_t count = stage->script.count;
    vram_player one;
    vram_player other = {.stage = stage};
    vram_opening opening = player_open(&one, stage);
    if (opening == OPENING_DONE && player_acts(&one, 0, count))
        opening = player_open(&other, stage);
    if (opening == OPENING_DONE && !stage->finding.found && player_acts(&other, 0, count))
        answered_alike(&one, &other, true, "determinism",
                       "the same calls on another instance get the same answers");
    player_close(&one);
    player_close(&other);
    return opening == OPENING_DONE ? verdict_of(stage) : refused(opening);
}

/* Two instances take turns, one of them half a script ahead; a third plays alone. */
static bool take_turns(vram_player *one, vram_player *ahead)
{
    const uint32_t count = one->stage->script.count;
    if (!player_acts(ahead, 0, count / 2))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!player_acts(one, i, i + 1) || !player_acts(ahead, count / 2 + i, count / 2 + i + 1))
            return false;
    return true;
}

vram_verdict judge_apart(vram_stage *stage)
{
    vram_player alone;
    vram_player one = {.stage = stage};
    vram_player ahead = {.stage = stage};
    vram_opening opening = player_open(&alone, stage);
    if (opening == OPENING_DONE && player_acts(&alone, 0, stage->script.count))
        opening = player_open(&one, stage);
    if (opening == OPENING_DONE && !stage->finding.found)
        opening = player_open(&ahead, stage);
    if (opening == OPENING_DONE && !stage->finding.found && take_turns(&one, &ahead))
        answered_alike(&one, &alone, true, "independence",
                       "an instance answers the same whatever another one does");
    player_close(&alone);
    player_close(&one);
    player_close(&ahead);
    return opening == OPENING_DONE ? verdict_of(stage) : refused(opening);
}

/* Plays the script again and again, and compares each time with what `first` got. */
static bool repeat(vram_player *self, vram_player *first)
{
    for (uint32_t k = 1; k <= REPETITIONS; k++) {
        for (uint32_t id = 0; id < self->block_count; id++)
            self->blocks[id] = (vram_player_block){.state = BLOCK_NONE};
        if (!player_acts(self, 0, self->stage->script.count) || !player_release_all(self))
            return false;
        self->stage->act = UINT32_MAX;
        if (!answered_alike(self, first, false, "repetition",
                            "a trace that ends empty gets the same answers however often it was "
                            "replayed before"))
            return false;
    }
    return true;
}

vram_verdict judge_repetition(vram_stage *stage)
{
    vram_player first;
    vram_player again = {.stage = stage};
    vram_opening opening = player_open(&first, stage);
    if (opening == OPENING_DONE && player_acts(&first, 0, stage->script.count))
        opening = player_open(&again, stage);
    if (opening == OPENING_DONE && !stage->finding.found)
        repeat(&again, &first);
    player_close(&first);
    player_close(&again);
    return opening == OPENING_DONE ? verdict_of(stage) : refused(opening);
}

/* ---- what explain promises ---- */

static bool largest_is_true(vram_player *self)
{
    static const char promise[] = "largest_free_bytes is the largest request that could be served";
    if (!player_settle(self)) /* what is kept back for reuse is not meant */
        return false;
    stage_call(self->stage, "explain");
    const vram_failure failure =
        vram_explain(self->backend, (vram_request){.size_bytes = self->backend->arena_bytes});
    const uint64_t largest_bytes = failure.largest_free_bytes;
    vram_block block;
    if (largest_bytes < self->backend->arena_bytes && try_alloc(self, largest_bytes + 1, &block))
        return stage_find(self->stage, "explain", promise,
                          "it is said to be %" PRIu64 ", and a byte more was served",
                          largest_bytes);
    if (largest_bytes > 0 && !try_alloc(self, largest_bytes, &block))
        return stage_find(self->stage, "explain", promise,
                          "it is said to be %" PRIu64 ", which was refused", largest_bytes);
    return true;
}

vram_verdict judge_largest(vram_stage *stage)
{
    return play_then(stage, largest_is_true);
}

/* ---- host memory ---- */

vram_verdict judge_leaks(vram_stage *stage)
{
    int64_t blocks = 0;
    for (uint32_t cycle = 0; cycle < CYCLES; cycle++) {
        const int64_t before = host_memory_blocks();
        const vram_verdict played = play_then(stage, NULL);
        if (played != HOLDS)
            return played;
        blocks = host_memory_blocks() - before;
    }
    if (blocks != 0) /* the first cycle may keep what is made once a process */
        stage_find(stage, "leak", "destroy gives all host memory back",
                   "%" PRId64 " blocks of host memory are left by each instance", blocks);
    return verdict_of(stage);
}

/* Create, with no memory from the n-th allocation on, for every n until it succeeds. */
static bool create_starved(vram_stage *stage)
{
    const vram_config config = {.arena_bytes = stage->script.arena_bytes,
                                .unit_bytes = stage->script.unit_bytes};
    for (uint64_t n = 0; n < CREATIONS_MAX; n++) {
        vram_backend *backend = NULL;
        vram_error error = {""};
        stage_call(stage, "create");
        const int64_t before = host_memory_blocks();
        host_memory_fail_from(n);
        const bool created = vram_create_from_text(stage->spec, &config, &backend, &error);
        const bool starved = host_memory_restore() > 0;
        if (created)
            vram_destroy(backend);
        if (host_memory_blocks() != before)
            return stage_find(stage, "metadata", "a create that fails leaks nothing",
                              "with no memory from allocation %" PRIu64 " on, %" PRId64
                              " blocks of host memory are left",
                              n, host_memory_blocks() - before);
        if (!created && error.text[0] == '\0')
            return stage_find(stage, "metadata", "a create that fails leaves a message",
                              "with no memory from allocation %" PRIu64 " on there is none", n);
        if (!starved)
            return created;
    }
    return true;
}

vram_verdict judge_starvation(vram_stage *stage)
{
    if (!host_memory_is_watched())
        return NOT_POSSIBLE;
    vram_player player;
    const vram_opening opening = player_open(&player, stage);
    player.starved = true;
    if (opening == OPENING_DONE && create_starved(stage))
        player_acts(&player, 0, stage->script.count);
    player_close(&player);
    return opening == OPENING_DONE ? verdict_of(stage) : refused(opening);
}
