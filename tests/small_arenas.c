/*
 * small_arenas.c - the worst case of first and best fit, exactly, on arenas that can be searched
 * whole.
 *
 * An adversary asks for blocks of at most m units while at most n units are live. Every layout that
 * it can bring about is visited, each a word of two bits a unit; a layout in which some allowed
 * request is refused means that the arena is too small. The smallest arena without one is known
 * from an independent computation (live at most n, blocks at most m: first fit / best fit, leftmost
 * on ties).
 */
#include <criterion/criterion.h>
#include <vramlab/registry.h>

#include <stdlib.h>

enum {
    FREE,
    FIRST,
    MORE
}; /* what a unit of a layout holds: nothing, a block's first unit, or more of it */
enum { UNITS_MAX = 14 };

static unsigned unit_at(uint32_t layout, unsigned unit)
{
    return layout >> (2 * unit) & 3;
}

static uint32_t with_block(uint32_t layout, unsigned from, unsigned size)
{
    for (unsigned unit = from; unit < from + size; unit++)
        layout |= (uint32_t)(unit == from ? FIRST : MORE) << (2 * unit);
    return layout;
}

static unsigned block_size(uint32_t layout, unsigned from, unsigned arena)
{
    unsigned size = 1;
    while (from + size < arena && unit_at(layout, from + size) == MORE)
        size++;
    return size;
}

static uint32_t without_block(uint32_t layout, unsigned from, unsigned arena)
{
    const unsigned size = block_size(layout, from, arena);
    return layout & ~(((UINT32_C(1) << (2 * size)) - 1) << (2 * from));
}

static unsigned live_units(uint32_t layout, unsigned arena)
{
    unsigned live = 0;
    for (unsigned unit = 0; unit < arena; unit++)
        live += unit_at(layout, unit) != FREE;
    return live;
}

/* Brings an empty backend into a layout, left to right: its free units are blocks too until the
 * end. */
static void lay_out(vram_backend *backend, uint32_t layout, unsigned arena)
{
    vram_block fillers[UNITS_MAX];
    unsigned filler_count = 0;
    for (unsigned unit = 0; unit < arena;) {
        const bool filler = unit_at(layout, unit) == FREE;
        const unsigned size = filler ? 1 : block_size(layout, unit, arena);
        vram_block block;
        cr_assert_eq(vram_alloc(backend, (vram_request){.size_bytes = size}, &block), VRAM_OK);
        cr_assert_eq(block.offset_bytes, unit);
        if (filler)
            fillers[filler_count++] = block;
        unit += size;
    }
    while (filler_count > 0)
        cr_assert_eq(vram_release(backend, fillers[--filler_count]), VRAM_OK);
}

/* Where the policy puts a block, or UNITS_MAX when it refuses. */
static unsigned placed_at(const char *spec, unsigned arena, uint32_t layout, unsigned size)
{
    vram_backend *backend;
    vram_error error;
    cr_assert(vram_create_from_text(spec, &(vram_config){.arena_bytes = arena}, &backend, &error),
              "%s", error.text);
    lay_out(backend, layout, arena);
    vram_block block = {.offset_bytes = UNITS_MAX};
    (void)vram_alloc(backend, (vram_request){.size_bytes = size}, &block);
    vram_destroy(backend);
    return (unsigned)block.offset_bytes;
}

typedef struct search {
    uint8_t *seen; /* a bit a layout */
    uint32_t *open;
    size_t open_count;
    size_t open_capacity;
} search;

static void meet(search *self, uint32_t layout)
{
    if (self->seen[layout / 8] >> (layout % 8) & 1)
        return;
    self->seen[layout / 8] |= (uint8_t)(1u << (layout % 8));
    cr_assert(vram_reserve((void **)&self->open, &self->open_capacity, self->open_count + 1,
                           sizeof *self->open));
    self->open[self->open_count++] = layout;
}

/* True when no sequence of requests and releases makes the policy refuse. */
static bool always_serves(const char *spec, unsigned arena, unsigned live_most, unsigned block_most)
{
    search self = {.seen = calloc((size_t)1 << (2 * arena), 1)};
    cr_assert_not_null(self.seen);
    bool serves = true;
    meet(&self, 0);
    while (serves && self.open_count > 0) {
        const uint32_t layout = self.open[--self.open_count];
        const unsigned live = live_units(layout, arena);
        for (unsigned unit = 0; unit < arena; unit++)
            if (unit_at(layout, unit) == FIRST)
                meet(&self, without_block(layout, unit, arena));
        for (unsigned size = 1; serves && size <= block_most && live + size <= live_most; size++) {
            const unsigned at = placed_at(spec, arena, layout, size);
            serves = at != UNITS_MAX;
            if (serves)
                meet(&self, with_block(layout, at, size));
        }
    }
    free(self.seen);
    free(self.open);
    return serves;
}

static unsigned smallest_arena(const char *spec, unsigned live_most, unsigned block_most)
{
    for (unsigned arena = live_most; arena <= UNITS_MAX; arena++)
        if (always_serves(spec, arena, live_most, block_most))
            return arena;
    return 0;
}

Test(small_arenas, worst_cases_of_first_and_best_fit_are_exact)
{
    static const struct {
        unsigned live_most, block_most, first, best;
    } cases[] = {{4, 2, 6, 6}, {6, 2, 9, 9},   {8, 2, 12, 13},
                 {5, 3, 8, 9}, {6, 3, 10, 12}, {6, 4, 10, 12}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const unsigned n = cases[i].live_most;
        const unsigned m = cases[i].block_most;
        const unsigned first = smallest_arena("list:policy=first,unit=1", n, m);
        const unsigned best = smallest_arena("list:policy=best,unit=1", n, m);
        cr_expect_eq(first, cases[i].first, "first fit, live %u, blocks %u: %u, not %u", n, m,
                     first, cases[i].first);
        cr_expect_eq(best, cases[i].best, "best fit, live %u, blocks %u: %u, not %u", n, m, best,
                     cases[i].best);
    }
}
