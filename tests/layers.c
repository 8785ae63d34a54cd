/*
 * layers.c - what each layer adds to the backend inside it.
 */
#include <vramlab/registry.h>

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

static vram_backend *make(const char *spec, uint64_t arena_bytes)
{
    vram_backend *backend = NULL;
    vram_error error = {""};
    cr_assert(
        vram_create_from_text(spec, &(vram_config){.arena_bytes = arena_bytes}, &backend, &error),
        "%s", error.text);
    return backend;
}

static vram_result ask(vram_backend *backend, uint64_t size_bytes, uint32_t stream,
                       vram_block *block)
{
    vram_fault fault;
    const vram_result result =
        vram_alloc(backend, (vram_request){.size_bytes = size_bytes, .stream = stream}, block);
    cr_assert(vram_check(backend, &fault), "%s after alloc", fault.invariant);
    return result;
}

static void give(vram_backend *backend, vram_block block)
{
    vram_fault fault;
    cr_assert_eq(vram_release(backend, block), VRAM_OK);
    cr_assert(vram_check(backend, &fault), "%s after release", fault.invariant);
}

Test(layers, reserve_opens_only_when_the_rest_has_failed_and_is_counted)
{
    vram_backend *backend = make("list+reserve:share=10%", 100 * MIB);
    vram_block blocks[50];
    int served = 0;
    while (served < 50 && ask(backend, 2 * MIB, 0, &blocks[served]) == VRAM_OK)
        served++;
    const vram_stats full = vram_stats_of(backend);
    cr_expect_eq(served, 50);
    cr_expect_eq(full.reserve_requests, 5);
    cr_expect_eq(full.reserve_bytes, 0);
    give(backend, blocks[0]);
    cr_expect_eq(ask(backend, 2 * MIB, 0, &blocks[0]), VRAM_OK);
    cr_expect_eq(vram_stats_of(backend).reserve_requests, 5, "the regular part serves first");
    for (int i = 0; i < 50; i++)
        give(backend, blocks[i]);
    const vram_stats empty = vram_stats_of(backend);
    cr_expect_eq(empty.free_bytes + empty.reserve_bytes + empty.padding_bytes, 100 * MIB);
    cr_expect_eq(empty.reserve_bytes, 10 * MIB);
    vram_destroy(backend);
}

Test(layers, blocks_of_the_reserve_have_handles_of_their_own)
{
    vram_backend *backend = make("list+reserve:share=50%", 64 * KIB);
    vram_block blocks[16];
    for (int i = 0; i < 16; i++) {
        cr_assert_eq(ask(backend, 4 * KIB, 0, &blocks[i]), VRAM_OK);
        for (int j = 0; j < i; j++)
            cr_expect_neq(blocks[i].handle, blocks[j].handle, "blocks %d and %d", i, j);
    }
    cr_expect_eq(vram_stats_of(backend).reserve_requests, 8);
    for (int i = 0; i < 16; i++)
        give(backend, blocks[i]);
    vram_destroy(backend);
}

Test(layers, faulty_refuses_the_chosen_allocations_and_says_so)
{
    vram_backend *backend = make("list+faulty:nth=3,every=4", MIB);
    for (int i = 1; i <= 20; i++) {
        vram_block block;
        const bool chosen = i >= 3 && (i - 3) % 4 == 0;
        cr_expect_eq(ask(backend, 512, 0, &block), chosen ? VRAM_NO_SPACE : VRAM_OK, "%d", i);
        if (chosen)
            cr_expect_eq(vram_explain(backend, (vram_request){.size_bytes = 512}).reason,
                         VRAM_REASON_INJECTED);
    }
    vram_destroy(backend);
}

Test(layers, pointer_releases_by_offset_alone_and_still_knows_a_stale_handle)
{
    vram_backend *backend = make("list+pointer", MIB);
    vram_block first, second;
    cr_assert_eq(ask(backend, 1000, 0, &first), VRAM_OK);
    give(backend,
         (vram_block){.offset_bytes = first.offset_bytes, .handle = VRAM_HANDLE_BY_OFFSET});
    cr_assert_eq(ask(backend, 1000, 0, &second), VRAM_OK);
    cr_expect_eq(second.offset_bytes, first.offset_bytes);
    cr_expect_eq(vram_release(backend, first), VRAM_STALE_BLOCK);
    cr_expect_eq(vram_release(backend, (vram_block){.offset_bytes = 512 * KIB,
                                                    .handle = VRAM_HANDLE_BY_OFFSET}),
                 VRAM_STALE_BLOCK);
    give(backend, second);
    vram_destroy(backend);
}

Test(layers, stream_gives_a_block_back_at_once_to_its_own_stream_only)
{
    vram_backend *backend = make("list+stream:internal=off", 4 * MIB);
    vram_block a, b, c, other;
    cr_assert_eq(ask(backend, MIB, 0, &a), VRAM_OK);
    cr_assert_eq(ask(backend, MIB, 1, &other), VRAM_OK);
    give(backend, a);
    cr_expect_eq(vram_stats_of(backend).pending_bytes, MIB);
    cr_expect_eq(ask(backend, MIB, 1, &b), VRAM_OK);
    cr_expect_neq(b.offset_bytes, a.offset_bytes, "stream 0 may still use it");
    cr_expect_eq(ask(backend, MIB, 0, &c), VRAM_OK);
    cr_expect_eq(c.offset_bytes, a.offset_bytes);
    cr_expect_eq(vram_release(backend, a), VRAM_STALE_BLOCK);
    vram_destroy(backend);
}

Test(layers, stream_follows_the_waits_of_the_program_unless_told_not_to)
{
    for (int follow = 0; follow < 2; follow++) {
        vram_backend *backend = make(
            follow ? "list+stream:internal=off" : "list+stream:internal=off,follow=off", 4 * MIB);
        vram_block a, b, other;
        cr_assert_eq(ask(backend, MIB, 0, &a), VRAM_OK);
        cr_assert_eq(ask(backend, MIB, 1, &other), VRAM_OK);
        give(backend, a);
        backend->ops->wait(backend, 1, 0);
        cr_assert_eq(ask(backend, MIB, 1, &b), VRAM_OK);
        cr_expect_eq(b.offset_bytes == a.offset_bytes, follow == 1);
        vram_destroy(backend);
    }
}

Test(layers, stream_without_internal_waits_fails_as_pending_and_succeeds_after_a_sync)
{
    vram_backend *backend = make("list+stream:internal=off", 4 * MIB);
    vram_block a, b, other;
    cr_assert_eq(ask(backend, 3 * MIB, 0, &a), VRAM_OK);
    cr_assert_eq(ask(backend, MIB / 2, 1, &other), VRAM_OK);
    give(backend, a);
    const vram_request wanted = {.size_bytes = 2 * MIB, .stream = 1};
    cr_expect_eq(vram_alloc(backend, wanted, &b), VRAM_NO_SPACE);
    cr_expect_eq(vram_explain(backend, wanted).reason, VRAM_REASON_PENDING);
    backend->ops->sync(backend, 0);
    cr_expect_eq(ask(backend, 2 * MIB, 1, &b), VRAM_OK);
    vram_destroy(backend);
}

static void count_order(void *context, uint32_t waiter, uint32_t stream)
{
    int *count = context;
    cr_expect_eq(waiter, 1);
    cr_expect_eq(stream, 0);
    ++*count;
}

Test(layers, stream_inserts_a_wait_rather_than_fail_and_counts_it)
{
    vram_backend *backend = make("list+stream", 4 * MIB);
    vram_block a, b, other;
    int asked = 0;
    backend->ops->hook(backend, &(vram_stream_hooks){.order = count_order, .context = &asked});
    cr_assert_eq(ask(backend, 3 * MIB, 0, &a), VRAM_OK);
    cr_assert_eq(ask(backend, MIB / 2, 1, &other), VRAM_OK);
    give(backend, a);
    cr_expect_eq(ask(backend, 2 * MIB, 1, &b), VRAM_OK);
    cr_expect_eq(asked, 1);
    cr_expect_eq(vram_stats_of(backend).waits, 1);
    vram_destroy(backend);
}

Test(layers, stream_waits_for_every_stream_that_used_the_block)
{
    vram_backend *backend = make("list+stream:internal=off", 8 * MIB);
    vram_block a, b, other[2];
    cr_assert_eq(ask(backend, MIB, 0, &a), VRAM_OK);
    cr_assert_eq(ask(backend, MIB, 1, &other[0]), VRAM_OK);
    cr_assert_eq(ask(backend, MIB, 2, &other[1]), VRAM_OK);
    cr_assert_eq(backend->ops->use(backend, a, 2), VRAM_OK);
    give(backend, a);
    cr_assert_eq(ask(backend, MIB, 0, &b), VRAM_OK);
    cr_expect_neq(b.offset_bytes, a.offset_bytes, "stream 2 may still use it");
    give(backend, b);
    backend->ops->wait(backend, 0, 2);
    vram_block c, d;
    cr_assert_eq(ask(backend, MIB, 0, &c), VRAM_OK);
    cr_assert_eq(ask(backend, MIB, 0, &d), VRAM_OK);
    cr_expect(c.offset_bytes == a.offset_bytes || d.offset_bytes == a.offset_bytes);
    vram_destroy(backend);
}

Test(layers, an_empty_arena_has_no_memory_of_what_was_in_it)
{
    static const char *const stacks[] = {"list+stream",   "tlsf+stream:internal=off",
                                         "list+magazine", "slab+magazine+pointer",
                                         "list+reserve",  "buddy+reserve+stream"};
    for (size_t s = 0; s < sizeof stacks / sizeof stacks[0]; s++) {
        vram_backend *backend = make(stacks[s], 8 * MIB);
        uint64_t first_round[40];
        for (int round = 0; round < 3; round++) {
            vram_block blocks[40];
            for (uint32_t i = 0; i < 40; i++) {
                cr_assert_eq(ask(backend, (i * 7919) % 60000 + 1, i % 3, &blocks[i]), VRAM_OK);
                if (round == 0)
                    first_round[i] = blocks[i].offset_bytes;
                cr_expect_eq(blocks[i].offset_bytes, first_round[i], "%s, round %d, block %u",
                             stacks[s], round, i);
            }
            for (uint32_t i = 0; i < 40; i++)
                give(backend, blocks[(i * 17) % 40]);
            const vram_stats stats = vram_stats_of(backend);
            cr_expect_eq(stats.granted_bytes + stats.pending_bytes, 0);
        }
        vram_destroy(backend);
    }
}

Test(layers, magazine_hands_a_released_block_to_the_next_request_of_its_size)
{
    vram_backend *backend = make("list+magazine:depth=2", MIB);
    vram_block keep, blocks[4], again;
    cr_assert_eq(ask(backend, 4096, 0, &keep), VRAM_OK);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(ask(backend, 1000, 0, &blocks[i]), VRAM_OK);
    for (int i = 0; i < 4; i++)
        give(backend, blocks[i]);
    cr_expect_eq(vram_stats_of(backend).bound_bytes, 2 * 1024, "two are kept, two went back");
    cr_assert_eq(ask(backend, 1024, 0, &again), VRAM_OK);
    cr_expect_eq(again.offset_bytes, blocks[1].offset_bytes);
    cr_expect_eq(vram_release(backend, blocks[1]), VRAM_STALE_BLOCK);
    vram_block most;
    cr_expect_eq(ask(backend, MIB - 4096 - 2048, 0, &most), VRAM_OK, "magazines are emptied first");
    vram_destroy(backend);
}

/* ---- threads ---- */

enum { THREADS = 4, STEPS = 20000, HELD = 32 };

typedef struct share {
    vram_backend *backend;
    atomic_uchar *owner; /* by unit of 4 KiB: which thread has it */
    atomic_uint *clashes;
    unsigned char name;
} share;

static void mark(const share *self, vram_block block, unsigned char from, unsigned char to)
{
    for (uint64_t at = block.offset_bytes / 4096;
         at < (block.offset_bytes + block.granted_bytes + 4095) / 4096; at++)
        if (atomic_exchange(&self->owner[at], to) != from)
            atomic_fetch_add(self->clashes, 1);
}

static void *work(void *context)
{
    const share *self = context;
    vram_block held[HELD] = {{0}};
    uint64_t random = UINT64_C(88172645463325252) * self->name;
    for (int step = 0; step < STEPS; step++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        vram_block *block = &held[random % HELD];
        if (block->handle != 0) {
            mark(self, *block, self->name, 0);
            if (vram_release(self->backend, *block) != VRAM_OK)
                atomic_fetch_add(self->clashes, 1);
            block->handle = 0;
        } else if (vram_alloc(self->backend,
                              (vram_request){.size_bytes = 4096 * (1 + (random >> 20) % 4),
                                             .align_bytes = 4096},
                              block) == VRAM_OK) {
            mark(self, *block, 0, self->name);
        } else {
            block->handle = 0;
        }
    }
    for (int i = 0; i < HELD; i++)
        if (held[i].handle != 0) {
            mark(self, held[i], self->name, 0);
            vram_release(self->backend, held[i]);
        }
    return NULL;
}

Test(layers, threads_share_locked_and_magazine_without_a_clash)
{
    static const char *const stacks[] = {"list:unit=4096+locked", "tlsf:unit=4096+magazine",
                                         "buddy:min=4096+magazine+locked",
                                         "slab:unit=4096+stream+locked"};
    for (size_t s = 0; s < sizeof stacks / sizeof stacks[0]; s++) {
        vram_backend *backend = make(stacks[s], 2 * MIB);
        atomic_uint clashes = 0;
        static atomic_uchar owner[2 * MIB / 4096];
        pthread_t threads[THREADS];
        share shares[THREADS];
        for (unsigned char i = 0; i < THREADS; i++) {
            shares[i] = (share){backend, owner, &clashes, (unsigned char)(i + 1)};
            cr_assert_eq(pthread_create(&threads[i], NULL, work, &shares[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        vram_fault fault = {0};
        cr_expect_eq(atomic_load(&clashes), 0, "%s", stacks[s]);
        cr_expect(vram_check(backend, &fault), "%s: %s", stacks[s], fault.invariant);
        cr_expect_eq(vram_stats_of(backend).live_blocks, 0);
        vram_destroy(backend);
    }
}

/* ---- checked ---- */

/* The head of an inner backend of one byte too many: what its walk tiles is no longer its arena. */
Test(layers, checked_stops_the_program_at_the_first_broken_invariant, .signal = SIGABRT)
{
    vram_backend *backend = make("fixed:block=4KiB+checked", 64 * KIB);
    vram_backend *inner = *(vram_backend **)(void *)(backend + 1);
    vram_block block;
    cr_assert_str_eq(inner->ops->name, "fixed");
    cr_assert_eq(ask(backend, 4096, 0, &block), VRAM_OK);
    inner->arena_bytes += 4096;
    ask(backend, 4096, 0, &block);
}
