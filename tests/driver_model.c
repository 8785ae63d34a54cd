/* driver_model.c - the interval model against a map of bytes, the histogram against sorted values.
 */
#include "driver/histogram.h"
#include "driver/model.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA = 512, STEPS = 20000 };
static const uint64_t seed = 0x2545F4914F6CDD1D;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The naive oracle: a byte of the arena knows which block covers it; 0 is none. */
typedef struct byte_map {
    uint32_t owner[ARENA];
    vram_block blocks[ARENA + 1];
    uint64_t live;
} byte_map;

static bool is_free(const byte_map *map, uint64_t from, uint64_t size)
{
    for (uint64_t at = from; at < from + size; at++)
        if (map->owner[at] != 0)
            return false;
    return true;
}

static void paint(byte_map *map, const vram_block *block, uint32_t owner)
{
    for (uint64_t at = 0; at < block->granted_bytes; at++)
        map->owner[block->offset_bytes + at] = owner;
}

Test(driver_model, accepts_a_block_exactly_when_none_of_its_bytes_is_taken)
{
    cr_log_info("seed %#llx", (unsigned long long)seed);
    uint64_t random = seed;
    vram_model *model = vram_model_create(ARENA, ARENA);
    byte_map *map = calloc(1, sizeof *map);
    for (uint32_t step = 1; step <= STEPS; step++) {
        const uint64_t from = next_random(&random) % ARENA;
        const uint64_t size = 1 + next_random(&random) % 24;
        const vram_block block = {from, size, (uint64_t)step << 32};
        const vram_request request = {.size_bytes = size};
        const bool inside = size <= ARENA - from;
        const bool acceptable = inside && is_free(map, from, size);
        vram_error error = {0};
        cr_assert(eq(int, vram_model_add(model, &request, &block, &error), acceptable),
                  "step %u: %s", step, error.text);
        cr_assert(eq(int, error.text[0] == '\0', acceptable));
        if (acceptable) {
            map->blocks[from + 1] = block;
            paint(map, &block, (uint32_t)from + 1);
            map->live++;
        }
        const uint32_t owner = map->owner[next_random(&random) % ARENA];
        if (owner != 0) {
            cr_assert(vram_model_remove(model, &map->blocks[owner], &error), "%s", error.text);
            cr_assert(not(vram_model_remove(model, &map->blocks[owner], &error)), "removed twice");
            paint(map, &map->blocks[owner], 0);
            map->live--;
        }
        cr_assert(eq(u64, vram_model_live_blocks(model), map->live));
    }
    free(map);
    vram_model_destroy(model);
}

Test(driver_model, names_what_is_wrong_with_a_block)
{
    static const struct {
        vram_request request;
        vram_block block;
        const char *said;
    } wrong[] = {
        {{.size_bytes = 64}, {0, 63, 1ull << 32}, "64 bytes were asked for and 63 granted"},
        {{.size_bytes = 64}, {480, 64, 1ull << 32}, "leaves the arena"},
        {{.size_bytes = 64}, {UINT64_MAX, 64, 1ull << 32}, "leaves the arena"},
        {{.size_bytes = 64}, {64, UINT64_MAX, 1ull << 32}, "leaves the arena"},
        {{.size_bytes = 64, .align_bytes = 32}, {48, 64, 1ull << 32}, "not at a multiple of 32"},
        {{.size_bytes = 64}, {0, 64, 7}, "generation 0"},
        {{.size_bytes = 64}, {159, 64, 1ull << 32}, "overlaps the live block at [160, 200)"},
        {{.size_bytes = 8}, {199, 8, 1ull << 32}, "overlaps the live block at [160, 200)"},
        {{.size_bytes = 8}, {170, 8, 1ull << 32}, "overlaps the live block at [160, 200)"},
    };
    vram_model *model = vram_model_create(ARENA, ARENA);
    const vram_block held = {160, 40, 1ull << 32};
    vram_error error = {0};
    cr_assert(vram_model_add(model, &(vram_request){.size_bytes = 40}, &held, &error));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_assert(not(vram_model_add(model, &wrong[i].request, &wrong[i].block, &error)), "row %zu",
                  i);
        cr_assert(strstr(error.text, wrong[i].said) != NULL, "row %zu said: %s", i, error.text);
    }
    const vram_block impostor = {160, 40, 2ull << 32};
    cr_assert(not(vram_model_remove(model, &impostor, &error)), "another generation");
    cr_assert(vram_model_remove(model, &held, &error));
    vram_model_destroy(model);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

Test(driver_model, percentiles_are_right_to_one_part_in_32)
{
    enum { VALUES = 5000 };
    static const double shares[] = {0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1};
    uint64_t random = seed;
    vram_histogram histogram = {0}, half = {0};
    uint64_t values[VALUES];
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = next_random(&random) >> (next_random(&random) % 60);
        vram_histogram_add(i % 2 == 0 ? &histogram : &half, values[i]);
    }
    vram_histogram_merge(&histogram, &half);
    qsort(values, VALUES, sizeof values[0], by_value);
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        const double rank = shares[i] * VALUES;
        const uint64_t exact = values[rank < 1 ? 0 : (size_t)rank - 1];
        const uint64_t found = vram_histogram_percentile(&histogram, shares[i]);
        cr_assert(found >= exact && found - exact <= exact / 32, "share %g: %llu, not %llu",
                  shares[i], (unsigned long long)found, (unsigned long long)exact);
    }
    const vram_latency summary = vram_histogram_summary(&histogram);
    cr_assert(eq(u64, summary.max_ns, values[VALUES - 1]));
    cr_assert(eq(u64, summary.calls, VALUES));
}

Test(driver_model, a_histogram_of_nothing_is_all_zero)
{
    const vram_histogram histogram = {0};
    const vram_latency summary = vram_histogram_summary(&histogram);
    cr_assert(zero(u64, summary.calls));
    cr_assert(zero(u64, summary.max_ns));
    cr_assert(zero(u64, vram_histogram_percentile(&histogram, 0.5)));
}
