/*
 * situations.c - states that are hard on a splitting allocator, after those in which the Linux
 * kernel tests its gpu_buddy, for every backend here to which they apply.
 *
 * Left out: memory kept apart as cleared and dirty. Here a block's bytes are the caller's alone.
 */
#include <criterion/criterion.h>
#include <vramlab/registry.h>

#include <stdio.h>
#include <stdlib.h>

#define KIB   UINT64_C(1024)
#define MIB   (1024 * KIB)
#define CHUNK (4 * KIB)

/* Backends that hand out any bytes that are free; `looks` stops a search early. */
static const struct subject {
    const char *spec;
    bool powers; /* takes powers of two only, at multiples of themselves */
    bool looks;
} subjects[] = {
    {"buddy", true, false},
    {"buddy:place=low", true, false},
    {"buddy:place=low,top=1", true, false},
    {"buddy:trim=on", true, false},
    {"list:policy=first", false, false},
    {"list:policy=next", false, false},
    {"list:policy=best", false, false},
    {"list:policy=worst", false, false},
    {"tlsf", false, true},
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

typedef struct world {
    const char *spec;
    vram_backend *backend;
    vram_block *blocks; /* in the order in which they were served */
    size_t count;
    size_t capacity;
} world;

static world open_world(const char *spec, uint64_t arena_bytes)
{
    world self = {.spec = spec};
    vram_error error;
    const vram_config config = {.arena_bytes = arena_bytes, .unit_bytes = CHUNK};
    cr_assert(vram_create_from_text(spec, &config, &self.backend, &error), "%s", error.text);
    return self;
}

static bool take_aligned(world *self, uint64_t size_bytes, uint64_t align_bytes)
{
    cr_assert(vram_reserve((void **)&self->blocks, &self->capacity, self->count + 1,
                           sizeof *self->blocks));
    const vram_request request = {.size_bytes = size_bytes, .align_bytes = align_bytes};
    vram_block *block = &self->blocks[self->count];
    const vram_result result = vram_alloc(self->backend, request, block);
    cr_assert(result == VRAM_OK || result == VRAM_NO_SPACE);
    if (result != VRAM_OK)
        return false;
    cr_assert_eq(block->offset_bytes % (align_bytes > 0 ? align_bytes : CHUNK), 0, "%s",
                 self->spec);
    self->count++;
    return true;
}

static bool take(world *self, uint64_t size_bytes)
{
    return take_aligned(self, size_bytes, 0);
}

static void give(world *self, size_t index)
{
    cr_assert_eq(vram_release(self->backend, self->blocks[index]), VRAM_OK, "%s", self->spec);
    self->blocks[index].handle = 0;
}

static void expect_sound(const world *self)
{
    vram_fault fault = {.invariant = ""};
    cr_assert(vram_check(self->backend, &fault), "%s: %s at %llu", self->spec, fault.invariant,
              (unsigned long long)fault.offset_bytes);
}

static void expect_reason(const world *self, vram_request request, vram_reason reason)
{
    const vram_failure failure = vram_explain(self->backend, request);
    cr_expect_eq(failure.reason, reason, "%s: refused as %s, not as %s", self->spec,
                 vram_reason_name(failure.reason), vram_reason_name(reason));
}

/* Gives all back, from the last to the first, and ends the world. Nothing may be left behind. */
static void close_world(world *self)
{
    for (size_t i = self->count; i-- > 0;)
        if (self->blocks[i].handle != 0)
            give(self, i);
    expect_sound(self);
    const vram_stats stats = vram_stats_of(self->backend);
    cr_assert_eq(stats.granted_bytes, 0);
    cr_assert_eq(stats.live_blocks, 0);
    vram_destroy(self->backend);
    free(self->blocks);
}

Test(situations, limit__the_whole_arena_is_one_block_and_nothing_exceeds_it)
{
    for (size_t i = 0; i < SUBJECTS; i++)
        for (unsigned order = 0; order <= 38; order++) { /* 4 KiB to 2^50 */
            const uint64_t arena_bytes = CHUNK << order;
            world self = open_world(subjects[i].spec, arena_bytes);
            cr_expect_not(take(&self, UINT64_MAX));
            cr_expect_not(take(&self, arena_bytes + 1));
            expect_reason(&self, (vram_request){.size_bytes = UINT64_MAX}, VRAM_REASON_OVERSIZE);
            cr_expect(take(&self, arena_bytes), "%s, 4 KiB * 2^%u", self.spec, order);
            cr_expect_eq(self.blocks[0].offset_bytes, 0);
            cr_expect_not(take(&self, 1));
            expect_reason(&self, (vram_request){.size_bytes = 1}, VRAM_REASON_BYTES);
            close_world(&self);
        }
}

Test(situations, optimistic__one_block_of_each_order_fills_an_arena_of_as_many_roots)
{
    for (size_t i = 0; i < SUBJECTS; i++) {
        enum { ORDERS = 16 };
        world self = open_world(subjects[i].spec, CHUNK * ((1u << ORDERS) - 1));
        for (unsigned order = 0; order < ORDERS; order++)
            cr_expect(take(&self, CHUNK << order), "%s, order %u", self.spec, order);
        cr_expect_eq(vram_stats_of(self.backend).free_bytes, 0);
        cr_expect_not(take(&self, CHUNK));
        expect_sound(&self);
        close_world(&self);
    }
}

Test(situations, pessimistic__releasing_upwards_makes_each_larger_order_available)
{
    for (size_t i = 0; i < SUBJECTS; i++) {
        enum { ORDERS = 16 };
        world self = open_world(subjects[i].spec, CHUNK << ORDERS);
        for (unsigned order = ORDERS; order-- > 0;)
            cr_expect(take(&self, CHUNK << order), "%s, order %u", self.spec, order);
        cr_expect(take(&self, CHUNK)); /* two of the least: full */
        cr_expect_not(take(&self, CHUNK));
        give(&self, self.count - 1);
        for (size_t index = ORDERS; index-- > 0;) {
            const unsigned order = ORDERS - 1 - (unsigned)index;
            cr_expect_not(take(&self, CHUNK << (order + 1)), "%s, order %u", self.spec, order + 1);
            give(&self, index);
            cr_expect(take(&self, CHUNK << (order + 1)), "%s, order %u", self.spec, order + 1);
            give(&self, --self.count);
        }
        close_world(&self);
    }
}

Test(situations, pathological__half_is_free_and_only_the_least_block_fits)
{
    for (size_t i = 0; i < SUBJECTS; i++) {
        enum { CHUNKS = 1 << 12 };
        world self = open_world(subjects[i].spec, CHUNK * CHUNKS);
        while (take(&self, CHUNK))
            ;
        cr_expect_eq(self.count, CHUNKS);
        for (size_t index = 0; index < CHUNKS; index++)
            if (self.blocks[index].offset_bytes / CHUNK % 2 == 0)
                give(&self, index);
        cr_expect_eq(vram_stats_of(self.backend).free_bytes, CHUNK * CHUNKS / 2);
        cr_expect_not(take(&self, 2 * CHUNK));
        expect_reason(&self, (vram_request){.size_bytes = 2 * CHUNK}, VRAM_REASON_FRAGMENTED);
        for (size_t index = 0; index < CHUNKS / 2; index++)
            cr_expect(take(&self, CHUNK), "%s", self.spec);
        cr_expect_not(take(&self, 1));
        expect_sound(&self);
        close_world(&self);
    }
}

/* Thirds of the arena in turn: chunk k belongs to third k % 3. */
static void give_third(world *self, size_t chunks, uint64_t third)
{
    for (size_t index = 0; index < chunks; index++)
        if (self->blocks[index].handle != 0 &&
            self->blocks[index].offset_bytes / CHUNK % 3 == third)
            give(self, index);
}

Test(situations, contiguous__two_thirds_free_hold_pairs_but_no_triples)
{
    for (size_t i = 0; i < SUBJECTS; i++) {
        enum { CHUNKS = 3 << 10 };
        world self = open_world(subjects[i].spec, CHUNK * CHUNKS);
        while (take(&self, CHUNK))
            ;
        give_third(&self, CHUNKS, 1);
        cr_expect_not(take(&self, 2 * CHUNK), "%s: a pair where only single chunks are", self.spec);
        give_third(&self, CHUNKS, 2);
        cr_expect_not(take(&self, 3 * CHUNK), "%s: a triple where only pairs are", self.spec);
        expect_reason(&self, (vram_request){.size_bytes = 3 * CHUNK}, VRAM_REASON_FRAGMENTED);
        size_t pairs = 0;
        while (take(&self, 2 * CHUNK))
            pairs++;
        /* Of the pairs 3k+1, 3k+2 every second one is a pair of twins. */
        cr_expect_eq(pairs, subjects[i].powers ? CHUNKS / 6 : CHUNKS / 3, "%s: %zu pairs",
                     self.spec, pairs);
        expect_sound(&self);
        close_world(&self);
    }
}

Test(situations, fragmentation__blocks_at_wide_alignment_leave_gaps_that_refill)
{
    for (size_t i = 0; i < SUBJECTS; i++) {
        enum { SLOTS = 1 << 10 };
        world self = open_world(subjects[i].spec, SLOTS * 64 * KIB);
        while (take_aligned(&self, 8 * KIB, 64 * KIB))
            ;
        cr_expect_eq(self.count, SLOTS, "%s: %zu of %d slots", self.spec, self.count, SLOTS);
        cr_expect_not(take_aligned(&self, 64 * KIB, 64 * KIB));
        size_t refills = 0;
        while (take(&self, 8 * KIB))
            refills++;
        cr_expect_eq(refills, SLOTS * 7, "%s: %zu refills", self.spec, refills);
        cr_expect_eq(vram_stats_of(self.backend).free_bytes, 0);
        close_world(&self);
    }
}

Test(situations, offset_alignment__freed_slots_are_found_again_and_no_more)
{
    for (size_t i = 0; i < SUBJECTS; i++) {
        enum { SLOTS = 1 << 10 };
        world self = open_world(subjects[i].spec, SLOTS * 256 * KIB);
        while (take_aligned(&self, 8 * KIB, 256 * KIB))
            ;
        cr_expect_eq(self.count, SLOTS, "%s: %zu of %d slots", self.spec, self.count, SLOTS);
        for (size_t index = 0; index < SLOTS; index += 2)
            give(&self, index);
        size_t refills = 0;
        while (take_aligned(&self, 16 * KIB, 256 * KIB))
            refills++;
        cr_expect_eq(refills, SLOTS / 2, "%s: %zu refills", self.spec, refills);
        cr_expect(take(&self, 16 * KIB));
        expect_sound(&self);
        close_world(&self);
    }
}

/* One well-aligned chunk among thousands of free ones that are not. */
Test(situations, subtree_alignment__the_only_aligned_chunk_is_found)
{
    for (size_t i = 0; i < SUBJECTS; i++)
        for (uint64_t align_bytes = MIB; align_bytes >= 8 * KIB; align_bytes /= 2) {
            enum { CHUNKS = 1 << 12 };
            world self = open_world(subjects[i].spec, CHUNK * CHUNKS);
            while (take(&self, CHUNK))
                ;
            const uint64_t only_bytes = 3 * align_bytes;
            for (size_t index = 0; index < CHUNKS; index++)
                if (self.blocks[index].offset_bytes / CHUNK % 2 != 0 ||
                    self.blocks[index].offset_bytes == only_bytes)
                    give(&self, index);
            const bool served = take_aligned(&self, CHUNK, align_bytes);
            if (subjects[i].looks && !served)
                expect_reason(&self,
                              (vram_request){.size_bytes = CHUNK, .align_bytes = align_bytes},
                              VRAM_REASON_CLASS_FULL);
            else
                cr_expect(served && self.blocks[self.count - 1].offset_bytes == only_bytes,
                          "%s at %llu KiB", self.spec, (unsigned long long)(align_bytes / KIB));
            expect_sound(&self);
            close_world(&self);
        }
}

Test(situations, exceeds_max_order__a_block_above_the_largest_is_refused_by_name)
{
    world self = open_world("buddy:max=64KiB", 16 * MIB);
    cr_expect_not(take(&self, 64 * KIB + 1));
    expect_reason(&self, (vram_request){.size_bytes = 64 * KIB + 1}, VRAM_REASON_OVERSIZE);
    for (size_t root = 0; root < 256; root++)
        cr_expect(take(&self, 64 * KIB));
    cr_expect_not(take(&self, CHUNK));
    close_world(&self);

    /* The roots of 10 MiB are 8 and 2: nothing above 8 can ever be served. */
    self = open_world("buddy", 10 * MIB);
    cr_expect_not(take(&self, 8 * MIB + 1));
    expect_reason(&self, (vram_request){.size_bytes = 8 * MIB + 1}, VRAM_REASON_OVERSIZE);
    cr_expect(take(&self, 8 * MIB) && take(&self, 2 * MIB));
    close_world(&self);
}

/* ---- ranges: a buddy restricted to a window of the arena ---- */

static world open_window(uint64_t arena_bytes, uint64_t from_bytes, uint64_t to_bytes)
{
    char spec[96];
    snprintf(spec, sizeof spec, "buddy:from=%llu,to=%llu", (unsigned long long)from_bytes,
             (unsigned long long)to_bytes);
    world self = open_world(spec, arena_bytes);
    self.spec = "buddy with from and to";
    return self;
}

/* Takes chunks until none is left; all lie in the window and there are as many as it holds. */
static void exhaust_window(world *self, uint64_t from_bytes, uint64_t to_bytes)
{
    while (take(self, CHUNK)) {
        const vram_block *block = &self->blocks[self->count - 1];
        cr_assert(block->offset_bytes >= from_bytes &&
                  block->offset_bytes + block->granted_bytes <= to_bytes);
    }
    const uint64_t first = (from_bytes + CHUNK - 1) / CHUNK;
    cr_expect_eq(self->count, to_bytes / CHUNK > first ? to_bytes / CHUNK - first : 0);
}

Test(situations, range__windows_hand_out_all_of_themselves_and_nothing_else)
{
    const uint64_t arena_bytes = 7 * MIB; /* roots of 4, 2 and 1 MiB */
    const uint64_t windows[][2] = {
        {0, arena_bytes}, /* exact */
        {0, MIB},
        {MIB, 2 * MIB},               /* parts of a root */
        {2 * MIB, 6 * MIB},           /* across roots */
        {CHUNK, arena_bytes - CHUNK}, /* nothing at the ends */
        {CHUNK + 1, 3 * CHUNK - 1},   /* misaligned: one whole chunk within */
        {5 * CHUNK, 5 * CHUNK + 1},   /* not even one */
    };
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        world self = open_window(arena_bytes, windows[i][0], windows[i][1]);
        for (int round = 0; round < 5; round++) { /* freed and taken again */
            exhaust_window(&self, windows[i][0], windows[i][1]);
            while (self.count > 0)
                give(&self, --self.count);
            expect_sound(&self);
        }
        close_world(&self);
    }
    vram_backend *backend;
    vram_error error = {""};
    cr_expect_not(vram_create_from_text(
        "buddy:from=8MiB", &(vram_config){.arena_bytes = arena_bytes}, &backend, &error));
    cr_expect(error.text[0] != '\0');
}

/* Sixteen windows that share an arena, each hit in random order: they never leak into each other.
 */
Test(situations, range_bias__random_windows_never_leak_out)
{
    enum { WINDOWS = 16 };
    uint64_t random = 20240607; /* printed on failure by its window */
    uint64_t cuts[WINDOWS + 1] = {0};
    for (size_t i = 1; i <= WINDOWS; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        cuts[i] = cuts[i - 1] + CHUNK * (1 + (random >> 40) % 200);
    }
    world windows[WINDOWS];
    for (size_t i = 0; i < WINDOWS; i++)
        windows[i] = open_window(cuts[WINDOWS], cuts[i], cuts[i + 1]);
    for (size_t step = 0; step < 20000; step++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        const size_t i = (size_t)(random >> 33) % WINDOWS;
        world *self = &windows[i];
        if ((random >> 60) < 9 || self->count == 0) {
            if (!take(self, CHUNK << ((random >> 50) % 4)))
                continue;
            const vram_block *block = &self->blocks[self->count - 1];
            cr_assert(block->offset_bytes >= cuts[i] &&
                          block->offset_bytes + block->granted_bytes <= cuts[i + 1],
                      "window %zu leaks", i);
        } else {
            give(self, --self->count);
        }
    }
    for (size_t i = 0; i < WINDOWS; i++)
        close_world(&windows[i]);
}
