/*
 * damage_fixed.c - what fixed's check notices, and that the bitmap, the pool and the scan answer as
 * their pictures say.
 */
#include "backends/fixed.c"
#include "damage.h"

#include <vramlab/registry.h>

#include <criterion/criterion.h>
#include <string.h>

enum { BLOCK = 4096, COUNT = 64 * 64 * 3, TOUCHED = 64 * 64 + 200 };

static vram_backend *make(const char *spec, uint64_t arena_bytes)
{
    vram_backend *backend = NULL;
    vram_error error;
    cr_assert(
        vram_create_from_text(spec, &(vram_config){.arena_bytes = arena_bytes}, &backend, &error),
        "%s", error.text);
    return backend;
}

/* Blocks in more than one word of each level; every third one released. */
static fixed *make_used(void)
{
    vram_backend *backend = make("fixed:block=4KiB", (uint64_t)COUNT * BLOCK + 100);
    static vram_block blocks[TOUCHED];
    for (int i = 0; i < TOUCHED; i++)
        cr_assert(vram_alloc(backend, (vram_request){.size_bytes = 1}, &blocks[i]) == VRAM_OK);
    for (int i = 128; i < TOUCHED; i += 3)
        cr_assert(vram_release(backend, blocks[i]) == VRAM_OK);
    cr_assert(vram_check(backend, NULL));
    return (fixed *)backend;
}

static void lose_a_block_of_the_arena(fixed *self)
{
    self->pool.count--;
}
static void free_a_live_block(fixed *self)
{
    vram_bitmap_insert(&self->pool.free, 129);
}
static void hide_a_free_block(fixed *self)
{
    vram_bitmap_remove(&self->pool.free, 131);
}
static void revive_a_block(fixed *self)
{
    self->pool.generations[128] = 7;
}
static void forget_a_live_block(fixed *self)
{
    self->pool.generations[0] = 0;
}
static void hide_a_word(fixed *self)
{
    self->pool.free.middle[0] &= ~(UINT64_C(1) << 5);
}
static void pretend_a_word(fixed *self)
{
    self->pool.free.middle[0] |= 1;
}
static void hide_the_middle(fixed *self)
{
    self->pool.free.top &= ~UINT64_C(1);
}
static void miscount_the_live(fixed *self)
{
    self->pool.given++;
}
static void touch_more_than_there_are(fixed *self)
{
    self->pool.touched = COUNT + 1;
}
static void free_an_untouched_block(fixed *self)
{
    vram_bitmap_insert(&self->pool.free, TOUCHED);
}

static const struct {
    const char *name;
    void (*inflict)(fixed *self);
    const char *invariant;
} damages[] = {
    {"lose_a_block_of_the_arena", lose_a_block_of_the_arena, "I1 tiles"},
    {"free_a_live_block", free_a_live_block, "P1 marked"},
    {"hide_a_free_block", hide_a_free_block, "P1 marked"},
    {"revive_a_block", revive_a_block, "P1 marked"},
    {"forget_a_live_block", forget_a_live_block, "P1 marked"},
    {"hide_a_word", hide_a_word, "P2 summed"},
    {"pretend_a_word", pretend_a_word, "P2 summed"},
    {"hide_the_middle", hide_the_middle, "P2 summed"},
    {"miscount_the_live", miscount_the_live, "P3 counted"},
    {"touch_more_than_there_are", touch_more_than_there_are, "P4 untouched"},
    {"free_an_untouched_block", free_an_untouched_block, "P4 untouched"},
};

Test(damage_fixed, every_damage_is_noticed_under_its_invariant)
{
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        fixed *self = make_used();
        damages[i].inflict(self);
        expect_noticed(&self->head, "fixed", damages[i].name, damages[i].invariant);
    }
}

/* ---- the bitmap, shallow and deep, against a plain array of flags ---- */

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

static uint32_t next_flag(const bool *flags, uint32_t from, uint32_t count)
{
    while (from < count && !flags[from])
        from++;
    return from < count ? from : VRAM_BITMAP_NONE;
}

Test(damage_fixed, a_bitmap_of_any_depth_is_a_set_in_ascending_order)
{
    static const uint32_t counts[] = {1, 64, 65, 4096, 262144, 262145, 1000000};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        const uint32_t count = counts[c];
        bool *flags = calloc(count, sizeof *flags);
        vram_bitmap *set = calloc(1, sizeof *set);
        uint64_t random = 7, number = 0;
        cr_assert(vram_bitmap_reserve(set, count));
        for (int step = 0; step < 3000; step++) {
            const uint32_t at = (uint32_t)(draw(&random) % count);
            if (flags[at])
                vram_bitmap_remove(set, at);
            else
                vram_bitmap_insert(set, at);
            flags[at] = !flags[at];
            if (step % 100 == 0)
                cr_assert_eq(vram_bitmap_next(set, at), next_flag(flags, at, count));
        }
        cr_assert(vram_bitmap_check(set, &number), "%u at %llu", count, (unsigned long long)number);
        for (uint32_t expected = next_flag(flags, 0, count);;
             expected = next_flag(flags, expected + 1, count)) {
            cr_assert_eq(vram_bitmap_pop(set), expected, "of %u", count);
            if (expected == VRAM_BITMAP_NONE)
                break;
        }
        cr_assert(vram_bitmap_check(set, &number));
        vram_bitmap_free(set);
        free(set);
        free(flags);
    }
}

/* ---- fixed as a whole ---- */

Test(damage_fixed, bitmap_and_scan_give_the_same_blocks_whatever_the_alignment)
{
    static const char *const specs[][2] = {
        {"fixed:block=4KiB", "fixed:block=4KiB,search=scan"},
        {"fixed:block=3000,unit=8", "fixed:block=3000,unit=8,search=scan"},
    };
    enum { HELD = 300 };
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
        vram_backend *quick = make(specs[s][0], 1 << 20), *slow = make(specs[s][1], 1 << 20);
        vram_block blocks[HELD][2] = {0};
        uint64_t random = 11;
        for (int step = 0; step < 20000; step++) {
            vram_block *pair = blocks[draw(&random) % HELD];
            if (pair[0].handle != 0) {
                cr_assert_eq(vram_release(quick, pair[0]), VRAM_OK);
                cr_assert_eq(vram_release(slow, pair[1]), VRAM_OK);
                pair[0].handle = 0;
                continue;
            }
            const vram_request request = {.size_bytes = 3000,
                                          .align_bytes = UINT64_C(1) << draw(&random) % 16};
            const vram_result result = vram_alloc(quick, request, &pair[0]);
            cr_assert_eq(vram_alloc(slow, request, &pair[1]), result);
            cr_assert_eq(pair[0].offset_bytes, pair[1].offset_bytes, "step %d", step);
            if (result != VRAM_OK)
                pair[0].handle = 0;
        }
        vram_destroy(quick);
        vram_destroy(slow);
    }
}

Test(damage_fixed, bookkeeping_grows_with_the_blocks_given_out_not_with_the_arena)
{
    vram_backend *backend = make("fixed:block=512", UINT64_C(1) << 40); /* 2^31 blocks */
    const uint64_t empty_bytes = vram_stats_of(backend).bookkeeping_bytes;
    vram_block first, last, block;
    cr_expect_leq(empty_bytes, 4096);
    cr_assert_eq(vram_alloc(backend, (vram_request){.size_bytes = 1}, &first), VRAM_OK);
    for (int i = 1; i < 300000; i++)
        cr_assert_eq(vram_alloc(backend, (vram_request){.size_bytes = 1}, &last), VRAM_OK);
    cr_expect_leq(vram_stats_of(backend).bookkeeping_bytes, 300000 * 9);
    cr_assert_eq(vram_release(backend, last), VRAM_OK);
    cr_assert_eq(vram_release(backend, first), VRAM_OK);
    cr_assert(vram_check(backend, NULL));
    cr_assert_eq(vram_alloc(backend, (vram_request){.size_bytes = 1}, &block), VRAM_OK);
    cr_expect_eq(block.offset_bytes, first.offset_bytes);
    cr_assert_eq(vram_alloc(backend, (vram_request){.size_bytes = 1}, &block), VRAM_OK);
    cr_expect_eq(block.offset_bytes, last.offset_bytes);
    vram_destroy(backend);
}

Test(damage_fixed, a_refusal_says_whether_it_is_the_size_the_number_or_the_alignment)
{
    vram_backend *backend = make("fixed:block=3000,unit=8", 6100);
    const vram_request above = {.size_bytes = 3001};
    const vram_request aligned = {.size_bytes = 1, .align_bytes = 512};
    const vram_request one = {.size_bytes = 1};
    vram_block block, other;
    cr_expect_eq(vram_alloc(backend, above, &block), VRAM_NO_SPACE);
    cr_expect_eq(vram_explain(backend, above).reason, VRAM_REASON_OVERSIZE);
    cr_assert_eq(vram_alloc(backend, one, &block), VRAM_OK);
    cr_expect_eq(vram_alloc(backend, aligned, &other), VRAM_NO_SPACE);
    cr_expect_eq(vram_explain(backend, aligned).reason, VRAM_REASON_FRAGMENTED);
    cr_assert_eq(vram_alloc(backend, one, &other), VRAM_OK);
    cr_expect_eq(vram_alloc(backend, one, &block), VRAM_NO_SPACE);
    cr_expect_eq(vram_explain(backend, one).reason, VRAM_REASON_CLASS_FULL);
    vram_destroy(backend);
}

Test(damage_fixed, the_block_is_the_traces_largest_request_or_what_was_asked_for)
{
    static const vram_profile profile = {.largest_bytes = 100000};
    static const struct {
        const char *spec;
        const vram_profile *profile;
        uint64_t arena_bytes, block_bytes, blocks;
    } cases[] = {
        {"fixed", NULL, 1 << 30, 2 << 20, 512},
        {"fixed", NULL, 1000000, 524288, 1},
        {"fixed", &profile, 1 << 20, 100352, 10},
        {"fixed:block=70000", &profile, 1 << 20, 70144, 14},
        {"fixed:block=2MiB", NULL, 1 << 20, 2 << 20, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const vram_config config = {.arena_bytes = cases[i].arena_bytes,
                                    .profile = cases[i].profile};
        vram_backend *backend = NULL;
        cr_assert(vram_create_from_text(cases[i].spec, &config, &backend, NULL));
        const vram_stats stats = vram_stats_of(backend);
        cr_expect_eq(((fixed *)backend)->pool.block_bytes, cases[i].block_bytes, "%zu", i);
        cr_expect_eq(stats.bound_bytes, cases[i].blocks * cases[i].block_bytes, "%zu", i);
        cr_expect_eq(stats.bound_bytes + stats.padding_bytes, cases[i].arena_bytes, "%zu", i);
        vram_destroy(backend);
    }
    vram_error error = {""};
    vram_backend *backend = NULL;
    cr_expect(!vram_create_from_text("fixed:block=1,unit=1",
                                     &(vram_config){.arena_bytes = UINT64_C(1) << 40}, &backend,
                                     &error));
    cr_expect_not_null(strstr(error.text, "block="), "%s", error.text);
}
