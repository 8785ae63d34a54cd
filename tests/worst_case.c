/*
 * worst_case.c - the slowest operation, in instructions, on arenas that are nearly full of many
 * blocks.
 *
 *   the processor traps after every instruction of a call; the handler counts
 *
 *   checkerboard   |#|.|#|.|#|.|#|.|     every other block free, no two free neighbours
 *   near misses    |##..|##..|##..|      free spans of the request's bin, each a unit too small
 *   churn          random allocations and releases with 19 of 20 bytes taken
 *
 * Where the worst case is said to be bounded, it may not grow with the live blocks: it is measured
 * with few blocks and with many times as many. What grows with them, naive, must be seen to grow,
 * or the measurement would prove nothing. Growth of the bookkeeping itself is not counted: the
 * arena is filled, emptied and filled again before.
 */
#include <vramlab/registry.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77 };

#if !defined(__x86_64__)
int main(void)
{
    puts("worst_case: instructions are counted on x86-64 only");
    return SKIPPED;
}
#else

enum { UNIT = 512, SLOT_UNITS = 16 };

/* ---- counting ---- */

static volatile uint64_t steps;

static void count_step(int signal)
{
    (void)signal;
    steps++;
}

/* Sets and clears the trap flag; the red zone below the stack is left alone. */
#define TRAP_ON()                                                                                  \
    __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; "                \
                     "lea 128(%%rsp), %%rsp" ::                                                    \
                         : "cc", "memory")
#define TRAP_OFF()                                                                                 \
    __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; andq $-257, (%%rsp); popfq; "                \
                     "lea 128(%%rsp), %%rsp" ::                                                    \
                         : "cc", "memory")

typedef struct probe {
    vram_backend *backend;
    uint64_t calls;
    uint64_t total;
    uint64_t worst;
    const char *worst_call;
} probe;

static void note(probe *self, const char *call)
{
    self->calls++;
    self->total += steps;
    if (steps > self->worst) {
        self->worst = steps;
        self->worst_call = call;
    }
}

static vram_block counted_alloc(probe *self, uint64_t size_bytes, const char *call)
{
    vram_block block = {0};
    const vram_request request = {.size_bytes = size_bytes};
    steps = 0;
    TRAP_ON();
    vram_alloc(self->backend, request, &block);
    TRAP_OFF();
    note(self, call);
    return block;
}

static void counted_release(probe *self, vram_block block, const char *call)
{
    if (block.handle == 0)
        return;
    steps = 0;
    TRAP_ON();
    vram_release(self->backend, block);
    TRAP_OFF();
    note(self, call);
}

/* ---- arenas ---- */

typedef struct world {
    probe probe;
    vram_block *blocks;
    size_t count; /* of places; a released one has handle 0 */
    uint32_t probes;
    uint64_t random;
} world;

static size_t random_place(world *self)
{
    self->random ^= self->random << 13;
    self->random ^= self->random >> 7;
    self->random ^= self->random << 17;
    return (size_t)(self->random >> 20) % self->count;
}

static void release(world *self, size_t place)
{
    vram_release(self->probe.backend, self->blocks[place]);
    self->blocks[place].handle = 0;
}

static void fill(world *self, uint64_t size_bytes)
{
    const vram_request request = {.size_bytes = size_bytes};
    for (size_t place = 0; place < self->count; place++)
        if (self->blocks[place].handle == 0 &&
            vram_alloc(self->probe.backend, request, &self->blocks[place]) != VRAM_OK)
            self->blocks[place].handle = 0;
}

static void empty(world *self)
{
    for (size_t place = 0; place < self->count; place++)
        if (self->blocks[place].handle != 0)
            release(self, place);
}

/* Allocations that just fit, that fit nowhere, and releases that merge with both neighbours. */
static void probe_checkerboard(world *self)
{
    fill(self, UNIT);
    for (size_t place = 1; place < self->count; place += 2)
        release(self, place);
    for (uint32_t round = 0; round < self->probes; round++) {
        counted_release(&self->probe, counted_alloc(&self->probe, UNIT, "alloc that fits"),
                        "release between live blocks");
        const vram_block large = counted_alloc(&self->probe, 2 * UNIT, "alloc that fits nowhere");
        counted_release(&self->probe, large, "release of what did fit");
        const size_t live = random_place(self) & ~(size_t)1;
        counted_release(&self->probe, self->blocks[live], "release that merges twice");
        self->blocks[live] = counted_alloc(&self->probe, UNIT, "alloc from a merged span");
    }
    empty(self);
}

/* Every free span is in the bin of the request, or near it, and a unit too small. */
static void probe_near_misses(world *self)
{
    for (uint64_t units = 17; units <= 33; units += 4) {
        fill(self, units * UNIT);
        for (size_t place = 1; place < self->count; place += 2)
            release(self, place);
        for (uint32_t round = 0; round < 1 + self->probes / 8; round++) {
            const vram_block block =
                counted_alloc(&self->probe, (units + 1) * UNIT, "alloc of a unit too many");
            counted_release(&self->probe, block, "release of what did fit");
        }
        empty(self);
    }
}

/* Sizes of 1 to 16 units at random, 19 of 20 places taken. */
static void probe_churn(world *self)
{
    for (uint32_t round = 0; round < 2 * self->probes; round++) {
        const size_t place = random_place(self);
        if (self->blocks[place].handle != 0) {
            counted_release(&self->probe, self->blocks[place], "release at random");
            self->blocks[place].handle = 0;
        }
        if (random_place(self) % 20 != 0)
            self->blocks[place] = counted_alloc(&self->probe, (1 + random_place(self) % 16) * UNIT,
                                                "alloc at random");
    }
    empty(self);
}

/* An arena with SLOT_UNITS units for each of `count` blocks, which are a unit each at first. */
static probe measure(const char *spec, size_t count, uint32_t probes)
{
    world self = {.blocks = calloc(count, sizeof(vram_block)),
                  .count = count,
                  .probes = probes,
                  .random = 0x9E3779B97F4A7C15};
    vram_error error = {""};
    vram_profile profile = {.largest_bytes = 64 * UNIT,
                            .smallest_bytes = UNIT,
                            .peak_live_bytes = count * SLOT_UNITS * UNIT};
    for (uint32_t class = 9; class < 16; class ++) {
        profile.class_requests[class] = count;
        profile.class_peak_blocks[class] = count / 8;
        profile.class_peak_bytes[class] = (count / 8) << class;
        profile.class_largest_bytes[class] = UINT64_C(1) << class;
    }
    const vram_config config = {
        .arena_bytes = count * SLOT_UNITS * UNIT, .unit_bytes = UNIT, .profile = &profile};
    if (self.blocks == NULL || !vram_create_from_text(spec, &config, &self.probe.backend, &error)) {
        fprintf(stderr, "worst_case: %s: %s\n", spec, error.text);
        exit(EXIT_FAILURE);
    }
    fill(&self, UNIT);
    for (size_t place = 1; place < count; place += 2)
        release(&self, place);
    fill(&self, UNIT);
    empty(&self);
    probe_checkerboard(&self);
    probe_near_misses(&self);
    probe_churn(&self);
    vram_destroy(self.probe.backend);
    free(self.blocks);
    return self.probe;
}

static void print_row(const char *spec, size_t count, const probe *found)
{
    printf("%-18s %8zu %8" PRIu64 " %8.1f %8" PRIu64 "  %s\n", spec, count, found->calls,
           (double)found->total / (double)found->calls, found->worst, found->worst_call);
}

/* The probes are few because a trap costs as much as thousands of instructions. */
int main(void)
{
    static const struct {
        const char *spec;
        bool bounded;
        size_t few, many;
        uint32_t probes;
    } cases[] = {
        {"fixed:block=32KiB", true, 1000, 64000, 24},
        {"slab", true, 1000, 64000, 24},
        {"tlsf", true, 1000, 64000, 24},
        {"buddy", true, 1000, 64000, 24},
        {"naive", false, 100, 1600, 1},
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGTRAP, count_step);
    bool sound = true;
    printf("%-18s %8s %8s %8s %8s  %s\n", "backend", "blocks", "calls", "mean", "worst",
           "the worst call");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const probe few = measure(cases[i].spec, cases[i].few, cases[i].probes);
        const probe many = measure(cases[i].spec, cases[i].many, cases[i].probes);
        print_row(cases[i].spec, cases[i].few, &few);
        print_row(cases[i].spec, cases[i].many, &many);
        const bool bounded = many.worst <= 2 * few.worst;
        if (bounded != cases[i].bounded)
            printf("%s: the worst call %s with the live blocks\n", cases[i].spec,
                   bounded ? "was not seen to grow" : "grows");
        sound = sound && bounded == cases[i].bounded;
    }
    return sound ? EXIT_SUCCESS : EXIT_FAILURE;
}
#endif
