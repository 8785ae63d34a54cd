/*
 * properties.c - the table: what every backend must do, tried with which scripts in which arenas.
 */
#include "conformance/judges.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

/* From one that fifty blocks fill to one with room for segments of 20 MiB. */
static const vram_arena_shape usual[] = {
    {64 * KIB, 512},   {64 * MIB, 512}, {4 * KIB, 1},
    {MIB + 4321, 256}, {96 * MIB, 0},   {257 * 512, 512},
    {GIB - 3, 512},    {65521, 16},     {0, 0},
};

static const vram_arena_shape small[] = {
    {64 * KIB, 512}, {1000, 1}, {48 * MIB, 0}, {257 * 512 + 7, 512}, {0, 0},
};

static const vram_arena_shape roomy[] = {
    {64 * MIB, 512}, {16 * MIB, 1}, {GIB - 3, 256}, {21 * MIB + 511, 512}, {0, 0},
};

/* One byte, around a unit, primes, around powers of two, up to a tebibyte. */
static const vram_arena_shape odd[] = {
    {1, 0},           {1, 1},
    {2, 1},           {3, 1},
    {511, 512},       {512, 512},
    {513, 512},       {1023, 512},
    {1025, 512},      {7919, 1},
    {104729, 16},     {15485863, 256},
    {MIB - 1, 512},   {MIB + 1, 512},
    {2 * MIB - 1, 0}, {2 * MIB + 1, 0},
    {982451653, 512}, {GIB + 1, 1},
    {TIB - 1, 512},   {TIB, 512},
    {TIB, 0},         {TIB - 511, 4096},
    {0, 0},
};

static const vram_plan_mix everything = {
    .acts = 2000,
    .live = 24,
    .aligned = 150,
    .most_align_bytes = 64 * KIB,
    .stale = 10,
    .bad = 5,
    .balanced = true,
};

static vram_plan_mix with_offered(vram_plan_mix mix, const vram_ops *ops, uint32_t round)
{
    mix.resizes = ops->resize != NULL ? 60 : 0;
    mix.upkeep = ops->maintain != NULL || ops->trim != NULL ? 10 : 0;
    mix.compaction = ops->plan_moves != NULL ? 5 : 0;
    mix.streams = round % 3 == 2 ? 4 : 1;
    return mix;
}

/* Short at first, so that what fails soon fails in few acts. */
static void plan_everything(vram_script *script, vram_dice *dice, const vram_ops *ops,
                            uint32_t round)
{
    vram_plan_mix mix = with_offered(everything, ops, round);
    const uint32_t doublings = round / 8 < 7 ? round / 8 : 7;
    mix.acts = 100u << doublings;
    mix.live = 2 + (uint32_t)dice_below(dice, round % 16 == 15 ? 200 : 40);
    plan_random(script, dice, &mix);
}

static void plan_odd(vram_script *script, vram_dice *dice, const vram_ops *ops, uint32_t round)
{
    vram_plan_mix mix = with_offered(everything, ops, round);
    mix.acts = 300;
    plan_random(script, dice, &mix);
}

static void plan_aligned(vram_script *script, vram_dice *dice, const vram_ops *ops, uint32_t round)
{
    vram_plan_mix mix = with_offered(everything, ops, round);
    mix.aligned = 800;
    mix.most_align_bytes = 2 * MIB;
    plan_random(script, dice, &mix);
}

static void plan_stale(vram_script *script, vram_dice *dice, const vram_ops *ops, uint32_t round)
{
    vram_plan_mix mix = with_offered(everything, ops, round);
    mix.stale = 400;
    plan_random(script, dice, &mix);
}

static void plan_bad(vram_script *script, vram_dice *dice, const vram_ops *ops, uint32_t round)
{
    vram_plan_mix mix = with_offered(everything, ops, round);
    mix.bad = 300;
    plan_random(script, dice, &mix);
}

static void plan_exhaustion(vram_script *script, vram_dice *dice, const vram_ops *ops,
                            uint32_t round)
{
    (void)ops;
    (void)round;
    plan_fill(script, dice);
}

/* Only what a trace holds, on one stream. */
static void plan_plain(vram_script *script, vram_dice *dice, const vram_ops *ops, uint32_t round)
{
    (void)ops;
    vram_plan_mix mix = everything;
    mix.acts = 800;
    mix.live = 4 + round % 40;
    mix.bad = 0;
    plan_random(script, dice, &mix);
}

static void plan_unfinished(vram_script *script, vram_dice *dice, const vram_ops *ops,
                            uint32_t round)
{
    vram_plan_mix mix = with_offered(everything, ops, round);
    mix.acts = 20 + 20 * (round % 16);
    mix.balanced = false;
    plan_random(script, dice, &mix);
}

/* More and more blocks, so that the bookkeeping must grow. */
static void plan_growth(vram_script *script, vram_dice *dice, const vram_ops *ops, uint32_t round)
{
    vram_plan_mix mix = with_offered(everything, ops, round);
    mix.acts = 1500;
    mix.live = 400;
    mix.stale = 0;
    plan_random(script, dice, &mix);
}

static void plan_resizes(vram_script *script, vram_dice *dice, const vram_ops *ops, uint32_t round)
{
    vram_plan_mix mix = with_offered(everything, ops, round);
    mix.resizes = 500;
    plan_random(script, dice, &mix);
}

static void plan_upkeep(vram_script *script, vram_dice *dice, const vram_ops *ops, uint32_t round)
{
    vram_plan_mix mix = with_offered(everything, ops, round);
    mix.upkeep = 200;
    plan_random(script, dice, &mix);
}

static void plan_compaction(vram_script *script, vram_dice *dice, const vram_ops *ops,
                            uint32_t round)
{
    vram_plan_mix mix = with_offered(everything, ops, round);
    mix.compaction = 100;
    plan_random(script, dice, &mix);
}

static bool offers_resize(const vram_ops *ops)
{
    return ops->resize != NULL;
}

static bool offers_upkeep(const vram_ops *ops)
{
    return ops->maintain != NULL || ops->trim != NULL;
}

static bool offers_compaction(const vram_ops *ops)
{
    return ops->plan_moves != NULL && ops->commit_move != NULL;
}

static const vram_property properties[] = {
    {.name = "random_steps",
     .proves = "no overlap, in bounds, aligned, every byte accounted for, after each of many steps",
     .arenas = usual,
     .plan = plan_everything,
     .judge = judge_recovery},
    {.name = "odd_arenas",
     .proves = "the same in arenas of 1 byte, odd sizes, primes, and up to 1 TiB",
     .arenas = odd,
     .rounds = sizeof odd / sizeof odd[0] - 1,
     .plan = plan_odd,
     .judge = judge_recovery},
    {.name = "alignment",
     .proves = "every power of two up to 2 MiB is kept as an alignment",
     .arenas = roomy,
     .rounds = 8,
     .plan = plan_aligned,
     .judge = judge_recovery},
    {.name = "stale_blocks",
     .proves = "releasing a null, forged, foreign or released block is refused and changes nothing",
     .arenas = usual,
     .rounds = 16,
     .plan = plan_stale,
     .judge = judge_recovery},
    {.name = "bad_requests",
     .proves = "zero and enormous sizes and bad alignments are refused and change nothing",
     .arenas = usual,
     .rounds = 8,
     .plan = plan_bad,
     .judge = judge_recovery},
    {.name = "exhaustion",
     .proves = "filled beyond its end and emptied in any order, the arena is as good as new",
     .arenas = small,
     .rounds = 12,
     .plan = plan_exhaustion,
     .judge = judge_recovery},
    {.name = "determinism",
     .proves = "the same calls get the same offsets",
     .arenas = usual,
     .rounds = 16,
     .plan = plan_odd,
     .judge = judge_same_again},
    {.name = "repetition",
     .proves = "a balanced trace ends the same however often it was replayed before",
     .arenas = usual,
     .rounds = 32,
     .plan = plan_plain,
     .judge = judge_repetition},
    {.name = "independence",
     .proves = "instances side by side do not touch each other",
     .arenas = usual,
     .rounds = 8,
     .plan = plan_odd,
     .judge = judge_apart},
    {.name = "explain",
     .proves = "the largest request said to be possible is served, and a byte more is not",
     .arenas = usual,
     .rounds = 64,
     .plan = plan_unfinished,
     .judge = judge_largest},
    {.name = "resize",
     .proves = "a block grows and shrinks in place or stays as it was",
     .arenas = usual,
     .rounds = 16,
     .offered = offers_resize,
     .plan = plan_resizes,
     .judge = judge_recovery},
    {.name = "upkeep",
     .proves = "maintain comes to an end, and neither it nor trim touches a live block",
     .arenas = usual,
     .rounds = 16,
     .offered = offers_upkeep,
     .plan = plan_upkeep,
     .judge = judge_recovery},
    {.name = "compaction",
     .proves = "planned moves keep to their bounds, and can be made one after another",
     .arenas = usual,
     .rounds = 16,
     .offered = offers_compaction,
     .plan = plan_compaction,
     .judge = judge_recovery},
    {.name = "host_memory",
     .proves = "destroy gives all host memory back, whatever still lives",
     .arenas = usual,
     .rounds = 16,
     .plan = plan_unfinished,
     .judge = judge_leaks},
    {.name = "no_host_memory",
     .proves = "without host memory create and alloc say so and change nothing",
     .arenas = usual,
     .rounds = 8,
     .plan = plan_growth,
     .judge = judge_starvation},
};

const vram_property *property_at(size_t index)
{
    return index < sizeof properties / sizeof properties[0] ? &properties[index] : NULL;
}

vram_verdict property_judge(const vram_property *self, vram_stage *stage)
{
    stage->finding = (vram_finding){.found = false};
    return self->judge(stage);
}

/* One script. */
static vram_verdict run_round(const vram_property *self, vram_stage *stage, vram_dice *dice,
                              uint32_t round)
{
    uint32_t shapes = 0;
    while (self->arenas[shapes].arena_bytes != 0)
        shapes++;
    const vram_arena_shape *shape = &self->arenas[round % shapes];
    vram_script *script = &stage->script;
    script->arena_bytes = shape->arena_bytes;
    script->unit_bytes = shape->unit_bytes;
    script->count = 0;
    const vram_ops *ops = NULL;
    const vram_verdict probed = judge_largest_served(stage, &ops);
    if (probed != HOLDS)
        return probed;
    script->count = 0;
    if (self->offered != NULL && !self->offered(ops))
        return NOT_OFFERED;
    self->plan(script, dice, ops, round);
    return property_judge(self, stage);
}

vram_verdict property_run(const vram_property *self, vram_stage *stage, const vram_effort *effort,
                          uint64_t seed)
{
    vram_dice dice = {.state = seed};
    vram_verdict all = NOT_POSSIBLE;
    const bool by_acts = self->rounds == 0;
    const uint32_t divide = effort->divide > 1 ? effort->divide : 1;
    const uint32_t rounds = (self->rounds + divide - 1) / divide;
    const uint64_t last_step = stage->steps + effort->random_acts;
    stage->check_every = by_acts && effort->check_every > 1 ? effort->check_every : 1;
    for (uint32_t round = 0; by_acts ? stage->steps < last_step : round < rounds; round++) {
        const vram_verdict one = run_round(self, stage, &dice, round);
        if (one == BROKEN || one == NOT_OFFERED)
            return one;
        if (one == HOLDS)
            all = HOLDS;
        if (by_acts && round == 64 && all == NOT_POSSIBLE)
            break; /* no arena suits the backend */
    }
    return all;
}
