/*
 * moves.c - compaction and resizing in place, on every backend that offers them: what a plan
 * promises is what committing it brings.
 */
#include <criterion/criterion.h>
#include <vramlab/registry.h>

enum { ARENA = 1 << 20, UNIT = 256, BLOCKS = 600, MOVES = 32 }; /* moves in a plan, at most */

static const char *const specs[] = {
    "list:policy=first",
    "list:policy=next",
    "list:policy=best",
    "list:policy=worst",
    "tlsf",
    "buddy",
    "buddy:trim=on",
    "buddy:place=low",
    "buddy:trim=on,place=low,top=8KiB",
    "buddy:max=64KiB",
};

typedef struct world {
    vram_backend *backend;
    const char *spec;
    uint64_t random;
    vram_block blocks[BLOCKS];
    uint64_t aligns[BLOCKS];
    size_t count;
} world;

static uint64_t draw(world *self, uint64_t below)
{
    self->random ^= self->random << 13;
    self->random ^= self->random >> 7;
    self->random ^= self->random << 17;
    return self->random % below;
}

static void open_world(world *self, const char *spec, uint64_t seed)
{
    vram_error error;
    *self = (world){.spec = spec, .random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    const vram_config config = {.arena_bytes = ARENA, .unit_bytes = UNIT};
    cr_assert(vram_create_from_text(spec, &config, &self->backend, &error), "%s", error.text);
}

static void expect_sound(const world *self)
{
    vram_fault fault = {.invariant = ""};
    cr_assert(vram_check(self->backend, &fault), "%s: %s at %llu", self->spec, fault.invariant,
              (unsigned long long)fault.offset_bytes);
    for (size_t i = 0; i < self->count; i++) {
        const vram_block *one = &self->blocks[i];
        cr_assert_eq(one->offset_bytes % self->aligns[i], 0);
        cr_assert(one->granted_bytes <= ARENA - one->offset_bytes);
        for (size_t j = 0; j < i; j++) {
            const vram_block *other = &self->blocks[j];
            cr_assert(one->offset_bytes + one->granted_bytes <= other->offset_bytes ||
                          other->offset_bytes + other->granted_bytes <= one->offset_bytes,
                      "%s: two blocks overlap at %llu", self->spec,
                      (unsigned long long)one->offset_bytes);
        }
    }
}

/* Fills the arena with blocks of mixed sizes and a few large alignments, then frees a share. */
static void fragment(world *self, uint64_t freed_percent, bool aligned)
{
    for (size_t tries = 0; tries < BLOCKS && self->count < BLOCKS; tries++) {
        const vram_request request = {.size_bytes = 1 + draw(self, draw(self, 8) ? 2000 : 20000),
                                      .align_bytes = aligned && draw(self, 8) == 0 ? 4096 : UNIT};
        if (vram_alloc(self->backend, request, &self->blocks[self->count]) == VRAM_OK)
            self->aligns[self->count++] = request.align_bytes;
    }
    for (size_t i = self->count; i-- > 0;)
        if (draw(self, 100) < freed_percent) {
            cr_assert_eq(vram_release(self->backend, self->blocks[i]), VRAM_OK);
            self->blocks[i] = self->blocks[--self->count];
            self->aligns[i] = self->aligns[self->count];
        }
}

static uint64_t largest_free(const world *self)
{
    return vram_explain(self->backend, (vram_request){.size_bytes = 1}).largest_free_bytes;
}

static size_t owner_of(const world *self, const vram_move *move)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->blocks[i].handle == move->handle)
            return i;
    cr_assert_fail("%s moves a block that does not live", self->spec);
    return 0;
}

/* Makes one plan true; returns its moves. */
static size_t compact_once(world *self, uint64_t budget_bytes, size_t max_moves)
{
    static vram_move moves[BLOCKS];
    const uint64_t largest_bytes = largest_free(self);
    const size_t count =
        self->backend->ops->plan_moves(self->backend, budget_bytes, moves, max_moves);
    uint64_t moved_bytes = 0;
    cr_assert_leq(count, max_moves);
    for (size_t i = 0; i < count; i++) {
        vram_block *block = &self->blocks[owner_of(self, &moves[i])];
        cr_assert_eq(moves[i].from_bytes, block->offset_bytes);
        cr_assert_eq(moves[i].size_bytes, block->granted_bytes);
        cr_assert_lt(moves[i].to_bytes, moves[i].from_bytes);
        cr_assert_eq(self->backend->ops->commit_move(self->backend, &moves[i], block), VRAM_OK,
                     "%s refuses move %zu of its own plan", self->spec, i);
        cr_assert_eq(block->offset_bytes, moves[i].to_bytes);
        moved_bytes += moves[i].size_bytes;
        expect_sound(self);
    }
    cr_assert_leq(moved_bytes, budget_bytes);
    cr_assert(count == 0 || largest_free(self) > largest_bytes, "%s: nothing gained", self->spec);
    return count;
}

Test(moves, every_plan_keeps_to_its_budget_and_yields_a_larger_span)
{
    static const uint64_t budgets[] = {1, 2 * UNIT, 20000, 100000, UINT64_MAX};
    size_t plans[sizeof specs / sizeof specs[0]] = {0};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        for (uint64_t seed = 1; seed <= 3; seed++)
            for (size_t b = 0; b < sizeof budgets / sizeof budgets[0]; b++) {
                world self;
                open_world(&self, specs[i], seed);
                fragment(&self, 65, true);
                expect_sound(&self);
                while (compact_once(&self, budgets[b], 1 + draw(&self, MOVES)) > 0)
                    plans[i]++;
                vram_destroy(self.backend);
            }
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        cr_expect_gt(plans[i], 0, "%s never planned anything", specs[i]);
}

/* Sliding has no reason to stop before everything free is one span, unless alignments are in the
 * way. */
Test(moves, sliding_ends_with_one_free_span)
{
    for (size_t i = 0; i < 5; i++) {
        world self;
        open_world(&self, specs[i], i + 1);
        fragment(&self, 30, false);
        while (compact_once(&self, UINT64_MAX, BLOCKS) > 0)
            ;
        cr_expect_eq(largest_free(&self), vram_stats_of(self.backend).free_bytes, "%s", specs[i]);
        vram_destroy(self.backend);
    }
}

Test(moves, a_move_that_is_no_longer_possible_is_refused_and_changes_nothing)
{
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        world self;
        vram_move moves[MOVES];
        open_world(&self, specs[i], 7);
        fragment(&self, 40, false);
        const size_t count = self.backend->ops->plan_moves(self.backend, UINT64_MAX, moves, MOVES);
        cr_assert_gt(count, 0, "%s", specs[i]);
        const size_t owner = owner_of(&self, &moves[0]);
        vram_block block = self.blocks[owner];
        vram_move wrong = moves[0];
        wrong.to_bytes += 1;
        cr_expect_eq(self.backend->ops->commit_move(self.backend, &wrong, &block), VRAM_NO_SPACE,
                     "%s moves a block off its unit", specs[i]);
        wrong.to_bytes = moves[0].from_bytes;
        cr_expect_eq(self.backend->ops->commit_move(self.backend, &wrong, &block), VRAM_NO_SPACE,
                     "%s moves a block onto itself", specs[i]);
        expect_sound(&self);
        cr_assert_eq(vram_release(self.backend, block), VRAM_OK);
        cr_expect_eq(self.backend->ops->commit_move(self.backend, &moves[0], &block),
                     VRAM_STALE_BLOCK, "%s moves a block that was released", specs[i]);
        self.blocks[owner] = self.blocks[--self.count];
        self.aligns[owner] = self.aligns[self.count];
        expect_sound(&self);
        vram_destroy(self.backend);
    }
}

Test(moves, resizing_keeps_place_and_handle_and_gives_back_what_it_can)
{
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        world self;
        size_t grown = 0;
        size_t shrunk = 0;
        open_world(&self, specs[i], 11);
        fragment(&self, 50, true);
        for (size_t step = 0; step < 2000; step++) {
            vram_block *block = &self.blocks[draw(&self, self.count)];
            const vram_block before = *block;
            const uint64_t free_bytes = vram_stats_of(self.backend).granted_bytes;
            const vram_result result = vram_resize(self.backend, block, 1 + draw(&self, 6000));
            cr_assert(result == VRAM_OK || result == VRAM_NO_SPACE);
            cr_assert_eq(block->offset_bytes, before.offset_bytes);
            cr_assert_eq(block->handle, before.handle);
            cr_assert(result == VRAM_OK || block->granted_bytes == before.granted_bytes);
            cr_assert_eq(vram_stats_of(self.backend).granted_bytes,
                         free_bytes + block->granted_bytes - before.granted_bytes);
            grown += block->granted_bytes > before.granted_bytes;
            shrunk += block->granted_bytes < before.granted_bytes;
            if (step % 100 == 0)
                expect_sound(&self);
        }
        expect_sound(&self);
        cr_expect(grown > 0 && shrunk > 0, "%s: grown %zu times, shrunk %zu", specs[i], grown,
                  shrunk);
        vram_destroy(self.backend);
    }
}
