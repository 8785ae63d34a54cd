/*
 * caching.c - the model of PyTorch's caching allocator against worked examples of its rules.
 *
 * Sizes, splits and golden sequences: PyTorch 2.11 source and the sequences that its tests publish.
 */
#include <vramlab/caching.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define MIB (UINT64_C(1) << 20)

/* A driver with so many bytes and fresh addresses, which notes what it was told. */
typedef struct fake_driver {
    uint64_t free_bytes;
    uint64_t next_address_bytes;
    uint64_t given_back[16]; /* sizes, in order */
    size_t returns;
} fake_driver;

static bool fake_take(void *context, vram_caching_segment *segment)
{
    fake_driver *self = context;
    if (segment->size_bytes > self->free_bytes)
        return false;
    self->free_bytes -= segment->size_bytes;
    self->next_address_bytes -= segment->size_bytes;
    segment->address_bytes = self->next_address_bytes;
    return true;
}

static bool fake_reserve(void *context, vram_caching_segment *segment)
{
    fake_driver *self = context;
    self->next_address_bytes -= segment->size_bytes;
    segment->address_bytes = self->next_address_bytes;
    return true;
}

static void fake_note(fake_driver *self, uint64_t size_bytes)
{
    self->free_bytes += size_bytes;
    if (self->returns < sizeof self->given_back / sizeof self->given_back[0])
        self->given_back[self->returns] = size_bytes;
    self->returns++;
}

static void fake_give_back(void *context, const vram_caching_segment *segment)
{
    fake_note(context, segment->size_bytes);
}

static void fake_unreserve(void *context, const vram_caching_segment *segment)
{
    (void)context;
    (void)segment;
}

static bool fake_map(void *context, const vram_caching_segment *segment, uint64_t address_bytes,
                     uint64_t size_bytes)
{
    (void)segment;
    (void)address_bytes;
    fake_driver *self = context;
    if (size_bytes > self->free_bytes)
        return false;
    self->free_bytes -= size_bytes;
    return true;
}

static void fake_unmap(void *context, const vram_caching_segment *segment, uint64_t address_bytes,
                       uint64_t size_bytes)
{
    (void)segment;
    (void)address_bytes;
    fake_note(context, size_bytes);
}

/* A model on a card of 8 GiB, with what a test changes. */
typedef struct bench {
    fake_driver driver;
    vram_caching_settings settings;
    vram_caching *model;
} bench;

static void start(bench *self)
{
    const vram_caching_driver driver = {.context = &self->driver,
                                        .take = fake_take,
                                        .give_back = fake_give_back,
                                        .reserve = fake_reserve,
                                        .unreserve = fake_unreserve,
                                        .map = fake_map,
                                        .unmap = fake_unmap};
    self->driver =
        (fake_driver){.free_bytes = UINT64_C(8) << 30, .next_address_bytes = UINT64_C(1) << 50};
    self->model = vram_caching_create(&self->settings, &driver);
    cr_assert(ne(ptr, self->model, NULL));
}

static bench bench_of_8_gib(void)
{
    return (bench){.settings = vram_caching_defaults(UINT64_C(8) << 30)};
}

static void sound(const bench *self)
{
    vram_fault fault = {"none", 0};
    cr_assert(vram_caching_check(self->model, &fault), "%s at %llu", fault.invariant,
              (unsigned long long)fault.offset_bytes);
}

static uint32_t take_on(bench *self, uint64_t size_bytes, uint32_t stream)
{
    uint32_t slot = VRAM_CACHING_NONE;
    const vram_caching_ask ask = {.size_bytes = size_bytes, .stream = stream};
    const vram_result result = vram_caching_alloc(self->model, &ask, &slot);
    sound(self);
    return result == VRAM_OK ? slot : VRAM_CACHING_NONE;
}

static uint32_t take(bench *self, uint64_t size_bytes)
{
    return take_on(self, size_bytes, 0);
}

static void give(bench *self, uint32_t slot)
{
    vram_caching_free(self->model, slot);
    sound(self);
}

static uint64_t reserved(const bench *self)
{
    return vram_caching_stats_of(self->model)->reserved_bytes;
}

static uint64_t size_at(const bench *self, uint32_t slot)
{
    return vram_caching_at(self->model, slot)->size_bytes;
}

/* Each request on an empty allocator: what is asked of the driver, and what the block keeps. */
Test(caching, a_request_takes_the_segment_and_keeps_the_slack_of_the_rules)
{
    static const struct {
        uint64_t ask_bytes, segment_bytes, block_bytes;
    } rows[] = {
        {1, 2 * MIB, 512},
        {512, 2 * MIB, 512},
        {513, 2 * MIB, 1024},
        {1048576, 2 * MIB, 1048576},
        {1048577, 20 * MIB, 1049088},
        {10485248, 20 * MIB, 10485248},
        {10485249, 10 * MIB, 10485760},
        {10485760, 10 * MIB, 10485760},
        {10485761, 12 * MIB, 10486272},
        {11534336, 12 * MIB, 12 * MIB}, /* a rest of exactly 1 MiB is not split off */
        {11534848, 12 * MIB, 12 * MIB},
        {11533824, 12 * MIB, 11533824}, /* 512 more of a rest is */
        {20971520, 20 * MIB, 20 * MIB},
        {104857601, 106954752, 104858112},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bench b = bench_of_8_gib();
        start(&b);
        const uint32_t slot = take(&b, rows[i].ask_bytes);
        cr_expect(eq(u64, reserved(&b), rows[i].segment_bytes), "request %llu",
                  (unsigned long long)rows[i].ask_bytes);
        cr_expect(eq(u64, size_at(&b, slot), rows[i].block_bytes), "request %llu",
                  (unsigned long long)rows[i].ask_bytes);
        vram_caching_destroy(b.model);
    }
}

Test(caching, sizes_round_by_the_divisions_of_their_interval)
{
    static const struct {
        const char *divisions;
        uint64_t ask_bytes, rounded_bytes;
    } rows[] = {
        {"0", 1200, 1536},
        {"4", 1200, 1536}, /* too small for a step of a quarter */
        {"4", 2048, 2048},
        {"4", 2049, 2560},
        {"4", 5000, 5120},
        {"4", 9 * MIB, 10 * MIB},
        {"4", 16 * MIB, 16 * MIB},
        {"4", 17 * MIB, 20 * MIB},
        {"1", 17 * MIB, 17 * MIB},
        {"256:1,512:2,1024:4,>:8", 100 * MIB + 1, 100 * MIB + 512},
        {"256:1,512:2,1024:4,>:8", 600 * MIB, 768 * MIB},
        {"256=1/512=2/1024=4/>=8", 1100 * MIB, 1280 * MIB},
        {"256=1/512=2/1024=4/>=8", 2100 * MIB, 2304 * MIB},
        {"2=8", MIB + 1, MIB + MIB / 8}, /* the first key stands for all below it */
        {"2=8", 5 * MIB + 1, 5 * MIB + 512},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        vram_caching_settings settings = vram_caching_defaults(UINT64_C(8) << 30);
        vram_error error = {""};
        cr_assert(
            vram_caching_parse_divisions(rows[i].divisions, settings.roundup_divisions, &error),
            "%s", error.text);
        cr_expect(eq(u64, vram_caching_round(&settings, rows[i].ask_bytes), rows[i].rounded_bytes),
                  "%s: %llu", rows[i].divisions, (unsigned long long)rows[i].ask_bytes);
    }
}

Test(caching, divisions_that_are_no_powers_of_two_are_refused)
{
    static const char *const texts[] = {"",      "3",  "256", "four", "256:3",
                                        "100:4", ">4", "0:4", "1:"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint32_t divisions[VRAM_CACHING_INTERVALS] = {7};
        vram_error error = {""};
        if (strcmp(texts[i], "256") == 0)
            continue; /* a power of two, if a strange one */
        cr_expect(not(vram_caching_parse_divisions(texts[i], divisions, &error)), "'%s'", texts[i]);
        cr_expect(eq(u32, divisions[0], 7), "'%s' changed something", texts[i]);
    }
}

/* Takes `count` blocks of a size and gives all back; reserved bytes after each half, and then. */
static void take_all_and_give(bench *self, size_t count, uint64_t size_bytes)
{
    uint32_t slots[16];
    for (size_t i = 0; i < count; i++)
        slots[i] = take(self, size_bytes);
    for (size_t i = 0; i < count; i++)
        give(self, slots[i]);
}

Test(caching, golden_sequences)
{
    static const struct {
        size_t first_count;
        uint64_t first_bytes;
        size_t then_count;
        uint64_t then_bytes;
        bool expandable;
        uint64_t reserved_first, reserved_then;
    } rows[] = {
        {8, 16 * MIB, 4, 32 * MIB, false, 128 * MIB, 256 * MIB},
        {4, 32 * MIB, 8, 16 * MIB, false, 128 * MIB, 128 * MIB},
        {8, 16 * MIB, 4, 32 * MIB, true, 140 * MIB, 140 * MIB},
        {4, 32 * MIB, 8, 16 * MIB, true, 140 * MIB, 140 * MIB},
        {1, 2 * MIB, 1, MIB / 2, false, 20 * MIB, 22 * MIB},
        {1, 2 * MIB, 1, MIB / 2, true, 20 * MIB, 22 * MIB},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bench b = bench_of_8_gib();
        b.settings.expandable = rows[i].expandable;
        start(&b);
        take_all_and_give(&b, rows[i].first_count, rows[i].first_bytes);
        cr_expect(eq(u64, reserved(&b), rows[i].reserved_first), "row %zu", i);
        take_all_and_give(&b, rows[i].then_count, rows[i].then_bytes);
        cr_expect(eq(u64, reserved(&b), rows[i].reserved_then), "row %zu", i);
        vram_caching_destroy(b.model);
    }
}

Test(caching, a_cap_of_300_mib_forces_a_retry_that_gives_back_whole_segments)
{
    bench b = bench_of_8_gib();
    b.settings.cap_bytes = 300 * MIB;
    start(&b);
    uint32_t slots[3];
    for (int i = 0; i < 3; i++)
        slots[i] = take(&b, 100 * MIB);
    give(&b, slots[0]);
    give(&b, slots[2]);
    cr_assert(ne(u32, take(&b, 150 * MIB), VRAM_CACHING_NONE));
    cr_expect(eq(sz, b.driver.returns, 2));
    cr_expect(eq(u64, reserved(&b), 250 * MIB));
    cr_expect(eq(u64, vram_caching_stats_of(b.model)->retries, 1));
    vram_caching_destroy(b.model);
}

Test(caching, a_segment_held_by_one_live_block_cannot_help_a_larger_request)
{
    bench b = bench_of_8_gib();
    b.settings.cap_bytes = 300 * MIB;
    start(&b);
    give(&b, take(&b, 300 * MIB));
    take(&b, 2 * MIB);
    const uint32_t first = take(&b, 100 * MIB);
    take(&b, 100 * MIB);
    give(&b, first);
    cr_expect(eq(u32, take(&b, 150 * MIB), VRAM_CACHING_NONE));
    const vram_caching_stats *stats = vram_caching_stats_of(b.model);
    cr_expect(eq(u64, stats->reserved_bytes - stats->allocated_bytes, 198 * MIB));
    cr_expect(eq(u64, stats->out_of_memory, 1));
    cr_expect(eq(u64, stats->retries, 1));
    vram_caching_destroy(b.model);
}

Test(caching, the_lowest_address_wins_among_equal_blocks)
{
    bench b = bench_of_8_gib();
    start(&b);
    uint32_t slots[4];
    for (int i = 0; i < 4; i++)
        slots[i] = take(&b, 32 * MIB); /* each in a segment below the last */
    for (int i = 0; i < 4; i++)
        give(&b, slots[i]);
    const uint64_t first = vram_caching_at(b.model, take(&b, 32 * MIB))->address_bytes;
    const uint64_t second = vram_caching_at(b.model, take(&b, 32 * MIB))->address_bytes;
    cr_expect(eq(u64, second - first, 32 * MIB));
    cr_expect(eq(u64, first, b.driver.next_address_bytes));
    vram_caching_destroy(b.model);
}

Test(caching, a_cached_block_serves_its_own_stream_and_pool_only)
{
    bench b = bench_of_8_gib();
    start(&b);
    give(&b, take_on(&b, 32 * MIB, 1));
    take_on(&b, 32 * MIB, 0);
    cr_expect(eq(u64, reserved(&b), 64 * MIB));
    take_on(&b, 32 * MIB, 1);
    cr_expect(eq(u64, reserved(&b), 64 * MIB));
    give(&b, take_on(&b, 4 * MIB, 1));
    take_on(&b, MIB, 1);
    cr_expect(eq(u64, reserved(&b), 86 * MIB));
    vram_caching_destroy(b.model);
}

Test(caching, oversize_blocks_are_not_split_and_serve_no_small_request)
{
    bench b = bench_of_8_gib();
    b.settings.max_split_bytes = 64 * MIB;
    start(&b);
    give(&b, take(&b, 100 * MIB));
    take(&b, 32 * MIB); /* below 64 MiB: may not have the cached 100 */
    cr_expect(eq(u64, reserved(&b), 132 * MIB));
    const uint32_t near = take(&b, 81 * MIB); /* 19 MiB of slack are allowed */
    cr_expect(eq(u64, size_at(&b, near), 100 * MIB));
    give(&b, near);
    take(&b, 80 * MIB); /* 20 are not */
    cr_expect(eq(u64, reserved(&b), 212 * MIB));
    vram_caching_destroy(b.model);
}

Test(caching, oversize_release_frees_one_block_that_suffices_or_the_largest_first)
{
    bench b = bench_of_8_gib();
    b.settings.max_split_bytes = 64 * MIB;
    b.settings.cap_bytes = 460 * MIB;
    start(&b);
    uint32_t slots[3];
    const uint64_t sizes[] = {100 * MIB, 150 * MIB, 200 * MIB};
    for (int i = 0; i < 3; i++)
        slots[i] = take(&b, sizes[i]);
    for (int i = 0; i < 3; i++)
        give(&b, slots[i]);
    const uint32_t first = take(&b, 126 * MIB); /* 150 would leave too much slack: it goes */
    cr_expect(eq(sz, b.driver.returns, 1));
    cr_expect(eq(u64, b.driver.given_back[0], 150 * MIB));
    give(&b, first);
    take(&b, 300 * MIB); /* none suffices alone: 200 and 126 go, 100 stays */
    cr_expect(eq(sz, b.driver.returns, 3));
    cr_expect(eq(u64, b.driver.given_back[1], 200 * MIB));
    cr_expect(eq(u64, b.driver.given_back[2], 126 * MIB));
    cr_expect(eq(u64, reserved(&b), 400 * MIB));
    cr_expect(eq(u64, vram_caching_stats_of(b.model)->retries, 0));
    vram_caching_destroy(b.model);
}

Test(caching, release_at_out_of_memory_goes_through_large_then_small_by_size)
{
    bench b = bench_of_8_gib();
    b.settings.cap_bytes = 120 * MIB;
    start(&b);
    uint32_t slots[4];
    const uint64_t sizes[] = {MIB, 40 * MIB, 30 * MIB, 20 * MIB};
    for (int i = 0; i < 4; i++)
        slots[i] = take(&b, sizes[i]);
    for (int i = 0; i < 4; i++)
        give(&b, slots[i]);
    take(&b, 110 * MIB);
    const uint64_t expected[] = {20 * MIB, 30 * MIB, 40 * MIB, 2 * MIB};
    cr_assert(eq(sz, b.driver.returns, 4));
    for (int i = 0; i < 4; i++)
        cr_expect(eq(u64, b.driver.given_back[i], expected[i]));
    vram_caching_destroy(b.model);
}

Test(caching, garbage_collection_goes_by_average_age_pass_after_pass)
{
    static const struct {
        double threshold;
        size_t returns;
        uint64_t given_back[3];
    } rows[] = {
        {0.8, 0, {0}},
        {0.65, 1, {30 * MIB}},                    /* the target of 10 MiB is reached */
        {0.5, 3, {30 * MIB, 40 * MIB, 20 * MIB}}, /* 40 are not: a second pass, which is not cut */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bench b = bench_of_8_gib();
        b.settings.cap_bytes = 200 * MIB;
        b.settings.gc_threshold = rows[i].threshold;
        start(&b);
        const uint32_t old = take(&b, 30 * MIB);
        const uint32_t young = take(&b, 40 * MIB);
        take(&b, 50 * MIB);
        give(&b, old);
        for (int k = 0; k < 6; k++)
            give(&b, take_on(&b, 4 * MIB, 1)); /* each search of the pool makes `old` older */
        give(&b, young);
        take(&b, 60 * MIB); /* 140 are reserved */
        cr_expect(eq(sz, b.driver.returns, rows[i].returns), "threshold %g", rows[i].threshold);
        for (size_t k = 0; k < rows[i].returns; k++)
            cr_expect(eq(u64, b.driver.given_back[k], rows[i].given_back[k]));
        vram_caching_destroy(b.model);
    }
}

Test(caching, garbage_collection_is_inert_without_a_memory_fraction)
{
    bench b = bench_of_8_gib();
    b.settings.gc_threshold = 0.001;
    start(&b);
    take_all_and_give(&b, 8, 30 * MIB);
    take(&b, 60 * MIB);
    cr_expect(eq(sz, b.driver.returns, 0));
    vram_caching_destroy(b.model);
}

Test(caching, expandable_ranges_grow_in_place_and_give_back_whole_pages)
{
    bench b = bench_of_8_gib();
    b.settings.expandable = true;
    start(&b);
    const uint32_t first = take(&b, 30 * MIB);
    const uint32_t second = take(&b, 30 * MIB);
    const uint64_t base = vram_caching_at(b.model, first)->address_bytes;
    cr_expect(eq(u64, vram_caching_at(b.model, second)->address_bytes, base + 30 * MIB));
    cr_expect(eq(u64, reserved(&b), 60 * MIB));
    give(&b, first); /* pages of 20 MiB: the second page is shared */
    cr_expect(eq(u64, vram_caching_empty_cache(b.model), 20 * MIB));
    sound(&b);
    const uint32_t third =
        take(&b, 30 * MIB); /* the hole is mapped again, and used from its start */
    cr_expect(eq(u64, vram_caching_at(b.model, third)->address_bytes, base));
    cr_expect(eq(u64, reserved(&b), 60 * MIB));
    give(&b, second);
    give(&b, third);
    cr_expect(eq(u64, vram_caching_empty_cache(b.model), 60 * MIB));
    cr_expect(eq(u64, vram_caching_stats_of(b.model)->segments, 0));
    sound(&b);
    vram_caching_destroy(b.model);
}

Test(caching, one_growth_may_map_two_pieces_around_a_free_block)
{
    bench b = bench_of_8_gib();
    b.settings.expandable = true;
    start(&b);
    uint32_t slots[3];
    const uint64_t sizes[] = {20 * MIB, 30 * MIB, 30 * MIB};
    for (int i = 0; i < 3; i++)
        slots[i] = take(&b, sizes[i]);
    give(&b, slots[0]);
    give(&b, slots[1]);
    vram_caching_empty_cache(b.model); /* 40 MiB unmapped, then 10 free, then live */
    sound(&b);
    give(&b, slots[2]);
    const uint64_t takes = vram_caching_stats_of(b.model)->driver_takes;
    const uint32_t large = take(&b, 100 * MIB); /* 40 unmapped + 40 free + more unmapped */
    cr_expect(eq(u64, size_at(&b, large), 100 * MIB));
    cr_expect(eq(u64, vram_caching_stats_of(b.model)->driver_takes, takes + 2));
    vram_caching_destroy(b.model);
}

Test(caching, a_block_that_another_stream_uses_is_pending_until_that_stream_is_done)
{
    bench b = bench_of_8_gib();
    start(&b);
    const uint32_t slot = take(&b, 32 * MIB);
    cr_assert(eq(int, vram_caching_use(b.model, slot, 3), VRAM_OK));
    cr_assert(eq(int, vram_caching_use(b.model, slot, 3), VRAM_OK));
    cr_assert(
        eq(int, vram_caching_use(b.model, slot, 0), VRAM_OK)); /* its own: nothing to wait for */
    vram_caching_sync(b.model, 3); /* before the release: says nothing about it */
    give(&b, slot);
    cr_expect(eq(int, vram_caching_at(b.model, slot)->state, VRAM_CACHING_PENDING));
    const uint32_t other = take(&b, 32 * MIB);
    cr_expect(eq(u64, reserved(&b), 64 * MIB));
    vram_caching_sync(b.model, 2);
    take(&b, 512);
    cr_expect(eq(int, vram_caching_at(b.model, slot)->state, VRAM_CACHING_PENDING));
    vram_caching_sync(b.model, 3);
    cr_expect(eq(int, vram_caching_at(b.model, slot)->state, VRAM_CACHING_PENDING));
    cr_expect(eq(u32, take(&b, 32 * MIB), slot));
    give(&b, other);
    vram_caching_destroy(b.model);
}

/* pytorch#189504: the pool is not searched again after the wait for events. */
Test(caching, the_search_after_the_last_wait_is_an_option)
{
    for (int again = 0; again < 2; again++) {
        bench b = bench_of_8_gib();
        b.settings.cap_bytes = 104 * MIB;
        b.settings.search_after_sync = again == 1;
        start(&b);
        const uint32_t whole = take(&b, 100 * MIB);
        give(&b, whole);
        const uint32_t front = take(&b, 60 * MIB);
        take(&b, 30 * MIB); /* its segment cannot go back */
        vram_caching_use(b.model, front, 1);
        give(&b, front);
        const uint32_t first_try = take(&b, 50 * MIB);
        cr_expect(eq(int, first_try != VRAM_CACHING_NONE, again));
        if (!again)
            cr_expect(ne(u32, take(&b, 50 * MIB), VRAM_CACHING_NONE));
        vram_caching_destroy(b.model);
    }
}

Test(caching, a_private_pool_gives_its_memory_back_only_when_nobody_uses_it)
{
    bench b = bench_of_8_gib();
    start(&b);
    const uint32_t pool = vram_caching_add_pool(b.model);
    uint32_t slot;
    const vram_caching_ask ask = {.size_bytes = 32 * MIB, .pool = pool, .capturing = true};
    cr_assert(eq(int, vram_caching_alloc(b.model, &ask, &slot), VRAM_OK));
    give(&b, slot);
    take(&b, 32 * MIB); /* the default pool does not share */
    cr_expect(eq(u64, reserved(&b), 64 * MIB));
    cr_expect(eq(u64, vram_caching_empty_cache(b.model), 0));
    vram_caching_pool_unused(b.model, pool);
    cr_expect(eq(u64, vram_caching_empty_cache(b.model), 32 * MIB));
    sound(&b);
    vram_caching_destroy(b.model);
}

Test(caching, a_clone_goes_its_own_way)
{
    bench b = bench_of_8_gib();
    start(&b);
    const uint32_t slot = take(&b, 5 * MIB);
    fake_driver other = b.driver;
    const vram_caching_driver driver = {
        .context = &other, .take = fake_take, .give_back = fake_give_back};
    vram_caching *copy = vram_caching_clone(b.model, &driver);
    vram_caching_free(copy, slot);
    vram_caching_empty_cache(copy);
    cr_expect(eq(u64, vram_caching_stats_of(copy)->reserved_bytes, 0));
    cr_expect(eq(u64, reserved(&b), 20 * MIB));
    cr_expect(eq(int, vram_caching_at(b.model, slot)->state, VRAM_CACHING_LIVE));
    cr_expect(vram_caching_check(copy, NULL));
    sound(&b);
    vram_caching_destroy(copy);
    vram_caching_destroy(b.model);
}
