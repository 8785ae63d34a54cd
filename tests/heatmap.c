/*
 * heatmap.c - pictures conserve bytes, and are the same from run to run.
 */
#include "made_timeline.h"
#include "sweep.h"

#include <vramlab/heatmap.h>

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static vram_timeline random_timeline(uint64_t seed, uint64_t arena_bytes, uint64_t most_bytes)
{
    return made_random_timeline(seed, 2000, arena_bytes, most_bytes);
}

/* Granted bytes times axis units within the window, operation by operation. */
static vram_area integral(const vram_timeline *timeline, vram_axis axis, vram_window window)
{
    vram_area sum = 0;
    for (size_t i = 0; i < timeline->life_count; i++) {
        const vram_life *life = &timeline->lives[i];
        const vram_op *birth = &timeline->ops[life->birth];
        uint64_t from = vram_op_position(birth, axis);
        uint64_t to = life->death == UINT32_MAX
                          ? window.to
                          : vram_op_position(&timeline->ops[life->death], axis);
        from = from < window.from ? window.from : from;
        to = to > window.to ? window.to : to;
        if (from < to)
            sum += (vram_area)(to - from) * birth->granted_bytes;
    }
    return sum;
}

typedef struct sum {
    vram_area covered;
    vram_area full;
    bool overfull;
} sum;

static bool add_column(void *context, uint32_t column, const vram_area *covered,
                       const vram_tint *tints, const bool *touched)
{
    sum *total = context;
    (void)column;
    (void)tints;
    for (uint32_t row = 0; row < 37; row++) {
        total->covered += covered[row];
        total->overfull |= covered[row] > total->full || (covered[row] > 0 && !touched[row]);
    }
    return true;
}

Test(heatmap, the_sum_of_all_cells_is_the_integral_of_live_bytes_over_time)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        vram_timeline timeline =
            random_timeline(seed, UINT64_C(1000003) << (seed * 2), 50021 * seed);
        for (vram_axis axis = VRAM_AXIS_EVENT; axis <= VRAM_AXIS_TIME; axis++) {
            const vram_window whole = vram_axis_whole(&timeline, axis);
            const vram_window part = {whole.from + (whole.to - whole.from) / 3,
                                      whole.to - (whole.to - whole.from) / 5};
            const vram_window windows[] = {whole, part};
            for (size_t i = 0; i < 2 * VRAM_BYS; i++) {
                const vram_window window = windows[i % 2];
                const vram_grid grid = {.columns = 113,
                                        .rows = 37,
                                        .axis = axis,
                                        .time = window,
                                        .bytes = {0, timeline.arena_bytes}};
                const vram_timeline *const all = &timeline;
                sum total = {.full = vram_cell_area(&grid)};
                vram_error error = {""};
                vram_key key;
                cr_assert(vram_key_make(&key, (vram_by)(i / 2), axis, &all, 1, &error));
                cr_assert(vram_sweep(&timeline, &grid, &key, add_column, &total, &error), "%s",
                          error.text);
                cr_expect(total.covered == integral(&timeline, axis, window) * 113 * 37,
                          "seed %llu axis %d by %s", (unsigned long long)seed, (int)axis,
                          vram_by_name(key.by));
                cr_expect(!total.overfull);
                vram_key_free(&key);
            }
        }
        vram_timeline_free(&timeline);
    }
}

static char *read_whole(const char *path, size_t *length)
{
    FILE *in = fopen(path, "rb");
    cr_assert(in != NULL);
    char *bytes = malloc(1 << 22);
    *length = fread(bytes, 1, 1 << 22, in);
    fclose(in);
    return bytes;
}

Test(heatmap, is_a_png_of_the_same_bytes_from_run_to_run)
{
    char folder[] = P_tmpdir "/vramlab-heatmap-XXXXXX";
    cr_assert(mkdtemp(folder) != NULL);
    char path[2][64];
    char *bytes[2];
    size_t length[2];
    for (size_t i = 0; i < 2; i++) {
        vram_timeline timeline = random_timeline(7, 1 << 24, 1 << 18);
        made_fail(&timeline, (uint32_t)timeline.ops[timeline.op_count - 1].event + 1, 1 << 22,
                  "fragmented");
        vram_error error = {""};
        snprintf(path[i], sizeof path[i], "%s/%zu.png", folder, i);
        cr_assert(vram_heatmap_write(&timeline, NULL, path[i], &error), "%s", error.text);
        bytes[i] = read_whole(path[i], &length[i]);
        cr_expect(unlink(path[i]) == 0);
        vram_timeline_free(&timeline);
    }
    cr_expect(rmdir(folder) == 0, "nothing but the pictures was left");
    cr_expect(length[0] > 1000 && memcmp(bytes[0], "\x89PNG\r\n\x1a\n", 8) == 0);
    cr_expect(length[0] == length[1] && memcmp(bytes[0], bytes[1], length[0]) == 0);
    free(bytes[0]);
    free(bytes[1]);
}

Test(heatmap, that_cannot_be_made_leaves_no_file)
{
    char folder[] = P_tmpdir "/vramlab-heatmap-XXXXXX";
    char path[64];
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/never.png", folder);
    vram_timeline timeline = random_timeline(3, 1 << 20, 1 << 14);
    const vram_heatmap_options wrong[] = {
        {.width = 10},
        {.height = 1000000},
        {.time = {5, 5}},
        {.bytes = {9, 3}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        vram_error error = {""};
        cr_expect(!vram_heatmap_write(&timeline, &wrong[i], path, &error));
        cr_expect(error.text[0] != '\0');
    }
    cr_expect(rmdir(folder) == 0, "a file was left");
    vram_error error = {""};
    cr_expect(!vram_heatmap_write(&timeline, NULL, "/dev/null/never.png", &error));
    cr_expect(strstr(error.text, "/dev/null/never.png") != NULL, "%s", error.text);
    vram_timeline_free(&timeline);
}
