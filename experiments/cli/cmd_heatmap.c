/*
 * cmd_heatmap.c - `vramlab heatmap`: address by time, one backend or several beside each other.
 */
#include "cli/shelf.h"

#include <vramlab/heatmap.h>

#include <stdlib.h>
#include <string.h>

typedef struct fields {
    shelf_fields shelf; /* first */
    const char *compare;
    const char *out;
    const char *by;
    const char *time;
    const char *window;
    const char *addresses;
    const char *size;
    const char *theme;
    const char *title;
    uint64_t dpi;
} fields;

static const option_row options[] = {
    {.name = "--out",
     .alias = "-o",
     .kind = OPTION_TEXT,
     .value = "F.png",
     .offset = offsetof(fields, out),
     .help = "the picture; default: heatmap.png"},
    SHELF_OPTION_ROWS,
    {.name = "--compare",
     .kind = OPTION_TEXT,
     .value = "A,B",
     .offset = offsetof(fields, compare),
     .help = "as --backend: several stand beside each other, with the same axes and one key"},
    {.name = "--by",
     .kind = OPTION_WORD,
     .words = "occupancy|size|age|stream|tag|state",
     .offset = offsetof(fields, by),
     .help = "what colours mean; default occupancy"},
    {.name = "--time",
     .kind = OPTION_WORD,
     .words = "events|seconds",
     .offset = offsetof(fields, time),
     .help = "what the horizontal axis counts"},
    {.name = "--window",
     .kind = OPTION_TEXT,
     .value = "FROM..TO",
     .offset = offsetof(fields, window),
     .help = "only this stretch of it: 1000..2000, 40%..60%, 1000.."},
    {.name = "--addresses",
     .kind = OPTION_TEXT,
     .value = "FROM..TO",
     .offset = offsetof(fields, addresses),
     .help = "only these addresses: 1GiB..2GiB, 50%.."},
    {.name = "--size",
     .kind = OPTION_TEXT,
     .value = "WxH",
     .offset = offsetof(fields, size),
     .help = "pixels of the picture; default 1600x1000"},
    {.name = "--dpi",
     .kind = OPTION_COUNT,
     .value = "N",
     .offset = offsetof(fields, dpi),
     .help = "for paper: letters of 9 points at so many pixels an inch; default: letters\n"
             "follow the picture's size"},
    {.name = "--theme",
     .kind = OPTION_WORD,
     .words = "light|dark",
     .offset = offsetof(fields, theme),
     .help = "white or dark ground; default light"},
    {.name = "--title",
     .kind = OPTION_TEXT,
     .value = "TEXT",
     .offset = offsetof(fields, title),
     .help = "default: the trace's name and the backend"},
    {.name = NULL},
};

static int heatmap_run(int count, char **arguments);

const command command_heatmap = {
    .name = "heatmap",
    .usage = "TRACE|TIMELINE... [--backend A,B] [-o F.png] [--by WORD] [--time events|seconds]",
    .summary = "address by time: where the memory went, as a picture",
    .text =
        "Replays a trace on backends and draws the arena over time. How much of a cell live\n"
        "blocks cover is exact, and its colour tells that share, or the size, age, stream, tag\n"
        "or state of what lives there; memory that was never used is grey. A refused request\n"
        "is marked, with what was free. The picture is the same from run to run.\n\n"
        "  vramlab heatmap traces/data/oom_fragmented.pickle.gz --backend caching -o oom.png\n"
        "  vramlab heatmap job.pickle --compare caching,tlsf,buddy --by size\n"
        "  vramlab heatmap job.pickle -b tlsf --window 40%..60% --addresses 1GiB.. --dpi 300",
    .options = options,
    .run = heatmap_run,
};

static bool read_options(const fields *given, const shelf *from, vram_heatmap_options *how,
                         vram_error *error)
{
    *how = (vram_heatmap_options){
        .axis = strcmp(given->time, "seconds") == 0 ? VRAM_AXIS_TIME : VRAM_AXIS_EVENT,
        .colour = given->by,
        .title = given->title,
        .dark = strcmp(given->theme, "dark") == 0,
        .dpi = (uint32_t)given->dpi,
    };
    if (given->dpi > 2400)
        return vram_fail(error, "--dpi: %llu is out of range: at most 2400",
                         (unsigned long long)given->dpi);
    vram_error wrong = {""};
    if (given->size != NULL && !read_picture_size(given->size, &how->width, &how->height, &wrong))
        return vram_fail(error, "--size: %s", wrong.text);
    if (given->window != NULL &&
        !read_time_window(given->window, how->axis, shelf_whole_time(from, how->axis), &how->time,
                          &wrong))
        return vram_fail(error, "--window: %s", wrong.text);
    if (given->addresses != NULL &&
        !read_address_window(given->addresses, shelf_whole_arena(from), &how->bytes, &wrong))
        return vram_fail(error, "--addresses: %s", wrong.text);
    return true;
}

static int draw(const fields *given, const shelf *from)
{
    vram_heatmap_options how;
    vram_error error = {""};
    if (!read_options(given, from, &how, &error))
        return fail_with(&command_heatmap, "%s", error.text);
    const vram_timeline **timelines = shelf_pointers(from);
    progress_begin("heatmap");
    const bool drawn = vram_heatmap_compare(timelines, from->count, &how, given->out, &error);
    progress_end();
    free(timelines);
    if (!drawn)
        return fail_with(&command_heatmap, "%s", error.text);
    printf("written to %s\n", given->out);
    return EXIT_DONE;
}

static int heatmap_run(int count, char **arguments)
{
    fields given = {.out = "heatmap.png", .time = "events", .theme = "light"};
    int status = options_read(&command_heatmap, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (count == 0)
        return fail_with(&command_heatmap, "a trace is expected: vramlab heatmap TRACE");
    if (given.compare != NULL && given.shelf.job.backends != NULL)
        return fail_with(&command_heatmap, "--compare and --backend mean the same: give one");
    if (given.compare != NULL)
        given.shelf.job.backends = given.compare;
    shelf shown = {.most = VRAM_HEATMAP_PLOTS};
    for (int i = 0; i < count && status < 0; i++)
        status = shelf_add(&shown, &command_heatmap, &given.shelf, arguments[i]);
    if (status < 0)
        status = draw(&given, &shown);
    shelf_free(&shown);
    return status;
}
