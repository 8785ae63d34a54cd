/*
 * damage_segregated.c - what segregated's check notices; which class serves; and how classes and
 * shares are read from text and from a profile.
 */
#include "backends/segregated.c"
#include "damage.h"

#include <criterion/criterion.h>
#include <string.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

static vram_backend *make_with(const char *spec, const vram_config *config)
{
    vram_backend *backend = NULL;
    vram_error error;
    cr_assert(vram_create_from_text(spec, config, &backend, &error), "%s", error.text);
    cr_assert(vram_check(backend, NULL));
    return backend;
}

static vram_backend *make(const char *spec, uint64_t arena_bytes)
{
    return make_with(spec, &(vram_config){.arena_bytes = arena_bytes});
}

static vram_block take(vram_backend *backend, uint64_t size_bytes, uint64_t align_bytes)
{
    vram_block block = {0};
    const vram_request request = {.size_bytes = size_bytes, .align_bytes = align_bytes};
    cr_assert_eq(vram_alloc(backend, request, &block), VRAM_OK, "%llu bytes",
                 (unsigned long long)size_bytes);
    return block;
}

/* ---- damage ---- */

static void swap_two_classes(segregated *self)
{
    const uint64_t block_bytes = self->classes[1].pool.block_bytes;
    self->classes[1].pool.block_bytes = self->classes[2].pool.block_bytes;
    self->classes[2].pool.block_bytes = block_bytes;
}
static void shift_a_pool(segregated *self)
{
    self->classes[1].pool.base_bytes += 512;
}
static void grow_the_general_region(segregated *self)
{
    self->general->arena_bytes += 512;
}
static void lengthen_the_pools(segregated *self)
{
    self->end_bytes += 512;
}
static void renumber_a_pool(segregated *self)
{
    self->classes[0].first_slot++;
}
static void forget_a_live_block(segregated *self)
{
    self->classes[1].pool.generations[0] = 0;
}
static void miscount_a_pool(segregated *self)
{
    self->classes[2].pool.given++;
}

static const struct {
    const char *name;
    void (*inflict)(segregated *self);
    const char *invariant;
} damages[] = {
    {"swap_two_classes", swap_two_classes, "I1 laid out"},
    {"shift_a_pool", shift_a_pool, "I1 laid out"},
    {"grow_the_general_region", grow_the_general_region, "I1 laid out"},
    {"lengthen_the_pools", lengthen_the_pools, "I1 laid out"},
    {"renumber_a_pool", renumber_a_pool, "I2 numbered"},
    {"forget_a_live_block", forget_a_live_block, "P1 marked"},
    {"miscount_a_pool", miscount_a_pool, "P3 counted"},
};

Test(damage_segregated, every_damage_is_noticed_under_its_invariant)
{
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        vram_backend *backend = make("segregated:classes=2KiB/8KiB/32KiB", 16 * MIB);
        take(backend, 2000, 0);
        take(backend, 8000, 0);
        take(backend, 30000, 0);
        take(backend, 5 * MIB / 4, 0);
        damages[i].inflict((segregated *)backend);
        expect_noticed(backend, "segregated", damages[i].name, damages[i].invariant);
    }
}

/* ---- which part serves ---- */

Test(damage_segregated, full_classes_pass_requests_up_and_large_ones_stay_apart)
{
    /* Two blocks of 2 KiB, one of 8, one of 32; 956 KiB in general. */
    vram_backend *backend =
        make("segregated:classes=2KiB/8KiB/32KiB,shares=0.4%/0.8%/3.2%,large=100KiB", 1000 * KIB);
    static const uint64_t granted_bytes[] = {2048, 2048, 8192, 32768, 1536};
    vram_block blocks[5];
    for (int i = 0; i < 5; i++) {
        blocks[i] = take(backend, 1500, 0);
        cr_expect_eq(blocks[i].granted_bytes, granted_bytes[i], "%d", i);
    }
    const uint64_t pools_bytes = ((segregated *)backend)->pools_bytes;
    cr_expect_geq(blocks[3].offset_bytes, pools_bytes);
    cr_expect_lt(blocks[4].offset_bytes, pools_bytes, "all full: the general region");
    cr_assert_eq(vram_release(backend, blocks[3]), VRAM_OK);
    cr_expect_lt(take(backend, 100 * KIB + 1, 0).offset_bytes, pools_bytes, "large");
    cr_expect_lt(take(backend, 50 * KIB, 0).offset_bytes, pools_bytes, "above every class");
    cr_expect_eq(take(backend, 30 * KIB, 0).offset_bytes, blocks[3].offset_bytes);
    vram_destroy(backend);
}

Test(damage_segregated, an_alignment_that_a_class_cannot_keep_is_served_further_up)
{
    vram_backend *backend = make("segregated:classes=3KiB/64KiB,shares=20%/40%", 16 * MIB);
    for (uint64_t align_bytes = 1; align_bytes <= 2 * MIB; align_bytes *= 2)
        cr_expect_eq(take(backend, 3000, align_bytes).offset_bytes % align_bytes, 0);
    cr_expect_eq(take(backend, 3000, 1024).granted_bytes, 3 * KIB);
    cr_expect_eq(take(backend, 3000, 2048).granted_bytes, 64 * KIB);
    cr_expect(vram_check(backend, NULL));
    vram_destroy(backend);
}

Test(damage_segregated, a_refusal_names_the_full_class_or_the_general_regions_reason)
{
    vram_backend *backend = make("segregated:classes=2KiB/8KiB,shares=50%/50%", 64 * KIB);
    const vram_request small = {.size_bytes = 5000}, large = {.size_bytes = 20000};
    vram_block block;
    cr_expect_eq(vram_alloc(backend, large, &block), VRAM_NO_SPACE);
    cr_expect_eq(vram_explain(backend, large).reason, VRAM_REASON_OVERSIZE, "no general region");
    while (vram_alloc(backend, small, &block) == VRAM_OK)
        ;
    cr_expect_eq(vram_explain(backend, small).reason, VRAM_REASON_CLASS_FULL);
    vram_destroy(backend);
}

/* ---- classes and shares ---- */

static segregated_plan plan_of(const char *spec, const vram_config *config)
{
    vram_backend *backend = make_with(spec, config);
    const segregated *self = (const segregated *)backend;
    segregated_plan plan = {.class_count = self->class_count};
    for (uint32_t k = 0; k < self->class_count; k++) {
        plan.block_bytes[k] = self->classes[k].pool.block_bytes;
        plan.counts[k] = self->classes[k].pool.count;
    }
    vram_destroy(backend);
    return plan;
}

static void expect_classes(const char *spec, const vram_config *config, uint32_t count,
                           const uint64_t *block_bytes)
{
    const segregated_plan plan = plan_of(spec, config);
    cr_assert_eq(plan.class_count, count, "%s: %u classes", spec, plan.class_count);
    for (uint32_t k = 0; k < count; k++)
        cr_expect_eq(plan.block_bytes[k], block_bytes[k], "%s: class %u is %llu", spec, k,
                     (unsigned long long)plan.block_bytes[k]);
}

/* Many requests of 600, few of 1,000 and 1,500 bytes; 20,000; 300,000; large ones. */
static const vram_profile profile = {
    .largest_bytes = 8 * MIB,
    .smallest_bytes = 600,
    .peak_live_bytes = 40 * MIB,
    .class_requests = {[9] = 500, [10] = 9, [14] = 40, [18] = 10, [23] = 4},
    .class_peak_blocks = {[9] = 1000, [10] = 5, [14] = 40, [18] = 10, [23] = 4},
    .class_peak_bytes = {[9] = 600000, [10] = 7500, [14] = 800000, [18] = 3000000, [23] = 32 * MIB},
    .class_largest_bytes = {[9] = 1000, [10] = 1500, [14] = 20000, [18] = 300000, [23] = 8 * MIB},
};

Test(damage_segregated, classes_come_from_a_list_from_powers_of_two_or_from_the_profile)
{
    const vram_config plain = {.arena_bytes = UINT64_C(1) << 30};
    const vram_config coarse = {.arena_bytes = UINT64_C(1) << 30, .unit_bytes = 4096};
    const vram_config known = {
        .arena_bytes = UINT64_C(1) << 30, .unit_bytes = 256, .profile = &profile};
    expect_classes("segregated", &plain, 5,
                   (uint64_t[]){2 * KIB, 8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB});
    expect_classes("segregated", &coarse, 5,
                   (uint64_t[]){4 * KIB, 8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB});
    expect_classes("segregated:classes=600/1%,unit=1", &plain, 2,
                   (uint64_t[]){600, (UINT64_C(1) << 30) / 100});
    expect_classes("segregated:classes=pow2,large=4KiB", &plain, 4,
                   (uint64_t[]){512, 1024, 2048, 4096});
    cr_expect_eq(plan_of("segregated:classes=pow2,unit=1", &plain).class_count, 16);
    expect_classes("segregated", &known, 4, (uint64_t[]){1024, 1536, 20224, 300032});
    expect_classes("segregated:classes=3", &known, 3, (uint64_t[]){1024, 20224, 300032});
    expect_classes("segregated:classes=2", &known, 2, (uint64_t[]){1024, 300032});
}

Test(damage_segregated, shares_are_equal_listed_or_as_many_blocks_as_were_alive)
{
    const vram_config plain = {.arena_bytes = 60 * MIB};
    const vram_config known = {.arena_bytes = 60 * MIB, .unit_bytes = 256, .profile = &profile};
    const vram_config tight = {.arena_bytes = 18 * MIB, .unit_bytes = 256, .profile = &profile};
    const segregated_plan equal = plan_of("segregated:classes=2KiB/1MiB,shares=equal", &known);
    cr_expect_eq(equal.counts[0], 20 * MIB / (2 * KIB));
    cr_expect_eq(equal.counts[1], 20);
    const segregated_plan listed = plan_of("segregated:classes=2KiB/1MiB,shares=10%/0.5", &plain);
    cr_expect_eq(listed.counts[0], 6 * MIB / (2 * KIB));
    cr_expect_eq(listed.counts[1], 30);
    const segregated_plan measured = plan_of("segregated:shares=trace", &known);
    static const uint64_t alive[] = {1000, 5, 40, 10};
    for (int k = 0; k < 4; k++)
        cr_expect_eq(measured.counts[k], alive[k], "class %d: %llu", k,
                     (unsigned long long)measured.counts[k]);
    const segregated_plan scaled = plan_of("segregated", &tight); /* about half of what it wants */
    cr_expect(scaled.counts[0] > 400 && scaled.counts[0] < 600, "%llu",
              (unsigned long long)scaled.counts[0]);
}

Test(damage_segregated, what_is_wrong_in_an_option_is_named)
{
    static const struct {
        const char *spec, *says;
    } cases[] = {
        {"segregated:classes=8KiB", "2 to 16 sizes"},
        {"segregated:classes=8KiB/2KiB", "2KiB is not above"},
        {"segregated:classes=600/700", "700 is not above"},
        {"segregated:classes=2KiB/many", "many"},
        {"segregated:classes=0/1KiB", "no size of a block"},
        {"segregated:classes=1K/2K/3K/4K/5K/6K/7K/8K/9K/10K/11K/12K/13K/14K/15K/16K/17K",
         "more than 16"},
        {"segregated:classes=2KiB/2MiB,large=1MiB", "above large"},
        {"segregated:classes=6", "needs a trace"},
        {"segregated:shares=trace", "needs a trace"},
        {"segregated:classes=2KiB/8KiB,shares=10%", "a share for each of the 2"},
        {"segregated:classes=2KiB/8KiB,shares=10%/10%/10%", "more shares than"},
        {"segregated:classes=2KiB/8KiB,shares=60%/60%", "more than the arena"},
        {"segregated:classes=2KiB/8KiB,shares=10/20", "write 10%"},
        {"segregated:general=nothing", "general=nothing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        vram_error error = {""};
        vram_backend *backend = NULL;
        cr_expect(!vram_create_from_text(cases[i].spec, &(vram_config){.arena_bytes = MIB},
                                         &backend, &error),
                  "%s was accepted", cases[i].spec);
        cr_expect_not_null(strstr(error.text, cases[i].says), "%s: %s", cases[i].spec, error.text);
    }
}
