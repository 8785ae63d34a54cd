/*
 * plans.c - random scripts.
 */
#include "conformance/plans.h"

enum { LIVE_MAX = 4096, PALETTE = 5, FILL_MAX = 1024, FILL_PARTS = 300 };

uint64_t dice_below(vram_dice *self, uint64_t bound)
{
    return vram_next_random(&self->state) % bound;
}

static bool chance(vram_dice *self, uint32_t thousandths)
{
    return dice_below(self, 1000) < thousandths;
}

/* 1 .. most, each order of magnitude as likely as the next. */
static uint64_t log_uniform(vram_dice *self, uint64_t most)
{
    const uint32_t bits = 64 - (uint32_t)__builtin_clzll(most);
    const uint64_t drawn = vram_next_random(&self->state) >> (64 - 1 - dice_below(self, bits));
    return drawn == 0 ? 1 : drawn > most ? most : drawn;
}

/* A script while it is made. */
typedef struct plan {
    vram_script *script;
    vram_dice *dice;
    const vram_plan_mix *mix;
    uint64_t most_bytes;       /* of an ordinary request */
    uint64_t palette[PALETTE]; /* sizes that return */
    uint32_t live[LIVE_MAX];   /* ids */
    uint32_t live_count;
    uint32_t next_id;
    uint32_t streams;
    bool growing;
} plan;

static void choose_sizes(plan *self)
{
    const uint64_t served = self->script->served_bytes != 0 ? self->script->served_bytes : 1;
    const uint64_t part = served / (1 + dice_below(self->dice, self->mix->live));
    self->most_bytes = part != 0 ? part : 1;
    for (uint32_t i = 0; i < PALETTE; i++)
        self->palette[i] = log_uniform(self->dice, self->most_bytes);
}

static uint64_t draw_size(plan *self)
{
    const uint64_t unit_bytes = self->script->unit_bytes != 0 ? self->script->unit_bytes : 512;
    const uint64_t served = self->script->served_bytes;
    switch (dice_below(self->dice, 16)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
        return self->palette[dice_below(self->dice, PALETTE)];
    case 6:
    case 7:
        return 1 + dice_below(self->dice, 4 * unit_bytes);
    case 8:
        return served != 0 ? 1 + dice_below(self->dice, served) : 1;
    case 9:
        return served / 2 + dice_below(self->dice, 3);
    default:
        return log_uniform(self->dice, self->most_bytes);
    }
}

static uint64_t draw_align(plan *self)
{
    if (!chance(self->dice, self->mix->aligned))
        return 0;
    const uint32_t most_log2 = 63 - (uint32_t)__builtin_clzll(self->mix->most_align_bytes);
    return UINT64_C(1) << dice_below(self->dice, most_log2 + 1);
}

static uint16_t draw_stream(plan *self)
{
    return (uint16_t)dice_below(self->dice, self->streams);
}

static void add_alloc(plan *self)
{
    if (self->live_count == LIVE_MAX)
        return;
    uint64_t size_bytes = draw_size(self);
    if (size_bytes == 0)
        size_bytes = 1;
    script_add(self->script, (vram_act){.kind = ACT_ALLOC,
                                        .id = self->next_id,
                                        .size_bytes = size_bytes,
                                        .align_bytes = draw_align(self),
                                        .stream = draw_stream(self)});
    self->live[self->live_count++] = self->next_id++;
}

/* The block that lives longest, shortest or any. */
static uint32_t pick_live(plan *self)
{
    switch (dice_below(self->dice, 4)) {
    case 0:
        return 0;
    case 1:
        return self->live_count - 1;
    default:
        return (uint32_t)dice_below(self->dice, self->live_count);
    }
}

static void add_release_of(plan *self, uint32_t index)
{
    script_add(self->script, (vram_act){.kind = ACT_RELEASE, .id = self->live[index]});
    self->live[index] = self->live[--self->live_count];
}

static void add_bad(plan *self)
{
    static const vram_act bad[] = {
        {.size_bytes = 0},
        {.size_bytes = 0, .align_bytes = 3},
        {.size_bytes = 1, .align_bytes = 3},
        {.size_bytes = 1, .align_bytes = 768},
        {.size_bytes = 1, .align_bytes = VRAM_ALIGN_MAX << 1},
        {.size_bytes = 1, .align_bytes = UINT64_MAX},
        {.size_bytes = UINT64_MAX},
        {.size_bytes = UINT64_MAX - 510},
        {.size_bytes = UINT64_C(1) << 63, .align_bytes = VRAM_ALIGN_MAX},
        {.size_bytes = VRAM_ARENA_MAX},
        {.size_bytes = 1, .align_bytes = VRAM_ALIGN_MAX},
    };
    const uint64_t drawn = dice_below(self->dice, sizeof bad / sizeof bad[0] + 2);
    vram_act added = drawn < sizeof bad / sizeof bad[0]
                         ? bad[drawn]
                         : (vram_act){.size_bytes = self->script->arena_bytes + (drawn & 1)};
    added.kind = ACT_ALLOC;
    added.id = self->next_id++;
    script_add(self->script, added);
    script_add(self->script, (vram_act){.kind = ACT_RELEASE, .id = added.id});
}

/* A block that is not the caller's to release: most ids below next_id are gone by now. */
static void add_stale(plan *self)
{
    if (self->next_id == 0)
        return;
    const uint64_t drawn = dice_below(self->dice, FORGERIES + 4);
    if (drawn < FORGERIES) {
        const uint32_t id = self->live_count > 0 ? self->live[pick_live(self)] : 0;
        script_add(self->script,
                   (vram_act){.kind = ACT_FORGE, .id = id, .variant = (uint8_t)drawn});
        return;
    }
    const uint32_t recent = self->next_id < 64 ? self->next_id : 64;
    const uint32_t back =
        (uint32_t)dice_below(self->dice, drawn == FORGERIES ? self->next_id : recent);
    const uint32_t id = self->next_id - 1 - back;
    for (uint32_t i = 0; i < self->live_count; i++)
        if (self->live[i] == id)
            return;
    script_add(self->script, (vram_act){.kind = ACT_RELEASE, .id = id});
}

static void add_resize(plan *self)
{
    if (self->live_count > 0)
        script_add(self->script, (vram_act){.kind = ACT_RESIZE,
                                            .id = self->live[pick_live(self)],
                                            .size_bytes = draw_size(self) + 1});
}

static void add_stream_act(plan *self)
{
    switch (dice_below(self->dice, 6)) {
    case 0:
        script_add(self->script, (vram_act){.kind = ACT_SYNC, .stream = draw_stream(self)});
        break;
    case 1:
        script_add(self->script, (vram_act){.kind = ACT_WAIT,
                                            .stream = draw_stream(self),
                                            .size_bytes = draw_stream(self)});
        break;
    default:
        if (self->live_count > 0)
            script_add(self->script, (vram_act){.kind = ACT_USE,
                                                .id = self->live[pick_live(self)],
                                                .stream = draw_stream(self)});
    }
}

/* One of the acts that are neither allocation nor release. */
static bool add_special(plan *self)
{
    const vram_plan_mix *mix = self->mix;
    if (chance(self->dice, mix->bad))
        add_bad(self);
    else if (chance(self->dice, mix->stale))
        add_stale(self);
    else if (chance(self->dice, mix->resizes))
        add_resize(self);
    else if (chance(self->dice, mix->upkeep))
        script_add(self->script,
                   (vram_act){.kind = dice_below(self->dice, 2) == 0 ? ACT_MAINTAIN : ACT_TRIM});
    else if (chance(self->dice, mix->compaction))
        script_add(self->script,
                   (vram_act){.kind = ACT_COMPACT,
                              .size_bytes = log_uniform(self->dice, self->script->arena_bytes)});
    else if (self->streams > 1 && chance(self->dice, 100))
        add_stream_act(self);
    else
        return false;
    return true;
}

static void add_ordinary(plan *self)
{
    if (self->live_count >= 2 * self->mix->live)
        self->growing = false;
    if (self->live_count == 0)
        self->growing = true;
    if (chance(self->dice, 20)) {
        self->growing = !self->growing;
        choose_sizes(self);
    }
    if (chance(self->dice, self->growing ? 650 : 350) || self->live_count == 0)
        add_alloc(self);
    else
        add_release_of(self, pick_live(self));
}

void plan_random(vram_script *self, vram_dice *dice, const vram_plan_mix *mix)
{
    plan made = {.script = self, .dice = dice, .mix = mix, .growing = true};
    made.streams = mix->streams > 1 ? mix->streams : 1;
    choose_sizes(&made);
    while (self->count < mix->acts && self->count < SCRIPT_MAX - LIVE_MAX - 2)
        if (!add_special(&made))
            add_ordinary(&made);
    if (!mix->balanced)
        return;
    while (made.live_count > 0)
        add_release_of(&made, pick_live(&made));
    script_add(self, (vram_act){.kind = ACT_SYNC, .stream = ALL_STREAMS});
}

/* Releases ids [0, count) in this order: rising, falling, the odd ones before the even, shuffled.
 */
static void release_in_order(vram_script *self, vram_dice *dice, uint32_t first, uint32_t count,
                             uint32_t order)
{
    uint32_t ids[FILL_MAX];
    for (uint32_t i = 0; i < count; i++)
        ids[i] = first + (order == 1 ? count - 1 - i : order == 2 ? (2 * i + 1) % (count | 1) : i);
    for (uint32_t i = count; order == 3 && i > 1; i--) {
        const uint32_t other = (uint32_t)dice_below(dice, i);
        const uint32_t kept = ids[i - 1];
        ids[i - 1] = ids[other];
        ids[other] = kept;
    }
    for (uint32_t i = 0; i < count; i++)
        script_add(self, (vram_act){.kind = ACT_RELEASE, .id = ids[i]});
}

void plan_fill(vram_script *self, vram_dice *dice)
{
    const uint64_t served = self->served_bytes != 0 ? self->served_bytes : 1;
    uint32_t next_id = 0;
    for (uint32_t turn = 0; turn < 4; turn++) {
        const uint64_t parts = 1 + log_uniform(dice, FILL_PARTS);
        const uint64_t size_bytes = served / parts != 0 ? served / parts : 1;
        const uint64_t count = self->arena_bytes / size_bytes + 2;
        const uint32_t first = next_id;
        while (next_id - first < count && next_id - first < FILL_MAX)
            script_add(self,
                       (vram_act){.kind = ACT_ALLOC, .id = next_id++, .size_bytes = size_bytes});
        release_in_order(self, dice, first, next_id - first, turn);
        script_add(self, (vram_act){.kind = ACT_SYNC, .stream = ALL_STREAMS});
    }
}
