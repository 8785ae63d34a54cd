/*
 * cmd_view.c - `vramlab view`: the animated map, several backends in step.
 */
#include "cli/shelf.h"

#include <viewer/window.h>

#include <stdlib.h>
#include <string.h>

typedef struct fields {
    shelf_fields shelf; /* first */
    bool light;
    const char *layout, *colour, *size, *at;
    double scale;
    const char *screenshot, *frames, *video, *script, *save;
    uint64_t frame_count, per_second, bench;
} fields;

static const option_row options[] = {
    SHELF_OPTION_ROWS,
    {.name = "--at",
     .kind = OPTION_TEXT,
     .value = "MOMENT",
     .offset = offsetof(fields, at),
     .help = "40%, event=1234, time=0.5 (seconds), failure, start or end"},
    {.name = "--layout",
     .kind = OPTION_WORD,
     .words = "rows|hilbert|time",
     .offset = offsetof(fields, layout),
     .help = "how addresses lie"},
    {.name = "--colour",
     .kind = OPTION_WORD,
     .words = "size|age|occupancy|stream|tag|state",
     .offset = offsetof(fields, colour),
     .help = "what colours mean (default size)"},
    {.name = "--light",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, light),
     .help = "dark letters on white"},
    {.name = "--size",
     .kind = OPTION_TEXT,
     .value = "WxH",
     .offset = offsetof(fields, size),
     .help = "pixels, at least 640x400 (default 1280x800)"},
    {.name = "--scale",
     .kind = OPTION_REAL,
     .value = "X",
     .offset = offsetof(fields, scale),
     .help = "of letters and cells, 0.5 to 4 (default 1)"},
    {.name = "--screenshot",
     .kind = OPTION_TEXT,
     .value = "F.png",
     .offset = offsetof(fields, screenshot),
     .help = "save the view and end; no display is needed"},
    {.name = "--frames",
     .kind = OPTION_TEXT,
     .value = "DIR",
     .offset = offsetof(fields, frames),
     .help = "save the whole run as pictures and end"},
    {.name = "--video",
     .kind = OPTION_TEXT,
     .value = "F.mp4",
     .offset = offsetof(fields, video),
     .help = "save it as a film (.mp4, .webm, .gif; needs ffmpeg) and end"},
    {.name = "--count",
     .kind = OPTION_COUNT,
     .value = "N",
     .offset = offsetof(fields, frame_count),
     .help = "pictures of --frames and --video (default 300)"},
    {.name = "--rate",
     .kind = OPTION_COUNT,
     .value = "N",
     .offset = offsetof(fields, per_second),
     .help = "pictures a second of --video (default 30)"},
    {.name = "--bench",
     .kind = OPTION_COUNT,
     .value = "N",
     .offset = offsetof(fields, bench),
     .help = "measure N frames with a random seek each, print, and end"},
    {.name = "--script",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .offset = offsetof(fields, script),
     .help = "play keys and pointer moves from a file and end; see viz/viewer/script.c"},
    {.name = "--save",
     .kind = OPTION_TEXT,
     .value = "DIR",
     .offset = offsetof(fields, save),
     .help = "save each timeline as DIR/STACK.vtl, which view opens again, and end"},
    {.name = NULL},
};

static int view_run(int count, char **arguments);

const command command_view = {
    .name = "view",
    .usage = "TRACE|TIMELINE... [--backend A,B,C] [--at MOMENT] [--screenshot F.png]",
    .summary = "watch several allocators work through a trace, in step",
    .text =
        "Opens a window with a panel a backend: the arena at this moment, what is live and\n"
        "granted, the largest free span, and external fragmentation; below, curves over all\n"
        "time that are also the scrubber. Keys and pointer (shown by ? in the window):\n\n"
        "  space          play and pause          m  map: rows, Hilbert, by time\n"
        "  right, left    one event               c  colour: size, age, occupancy, ...\n"
        "  shift, ctrl    a hundred; to a refusal t  dark or light     tab  whose curves\n"
        "  home, end      start, end              1 to 9  panels       g    go to ...\n"
        "  [ ]            slower, faster          s  save as PNG       0    whole arena\n"
        "  wheel, drag    zoom and move along the addresses; double click: all of them\n"
        "  hover, click   what a block is; follow it through time\n\n"
        "  vramlab view traces/data/oom_fragmented.pickle.gz --backend caching,list,tlsf,buddy\n"
        "  vramlab view job.pickle --backend tlsf --screenshot end.png --at failure",
    .options = options,
    .run = view_run,
};

static bool make_view(const fields *given, const shelf *from, vram_view **out, vram_error *error)
{
    vram_view_options how = {.scale = given->scale,
                             .light = given->light,
                             .layout = given->layout,
                             .colour = given->colour};
    vram_error wrong = {""};
    if (given->size != NULL && !read_picture_size(given->size, &how.width, &how.height, &wrong))
        return vram_fail(error, "--size: %s", wrong.text);
    const vram_timeline **timelines = shelf_pointers(from);
    const bool made = vram_view_new(timelines, from->count, &how, out, error);
    free(timelines);
    if (!made || given->at == NULL || vram_view_go(*out, given->at, error))
        return made;
    vram_view_free(*out);
    return false;
}

/* ---- a file dropped on the window ---- */

typedef struct opener {
    const fields *given;
    shelf shelves[2]; /* the one that is shown, and the one before or to come */
    int shown;
} opener;

static vram_view *open_dropped(void *context, const char *path)
{
    opener *self = context;
    shelf *next = &self->shelves[1 - self->shown];
    vram_view *view = NULL;
    vram_error error = {""};
    shelf_free(next);
    if (shelf_add(next, &command_view, &self->given->shelf, path) >= 0 ||
        !make_view(self->given, next, &view, &error)) {
        shelf_free(next);
        return NULL;
    }
    /* The caller frees the old view; its timelines go when the next file comes, or at the end. */
    self->shown = 1 - self->shown;
    return view;
}

static int save_timelines(const fields *given, const shelf *from)
{
    vram_error error = {""};
    if (!make_folder(given->save, &error))
        return fail_with(&command_view, "--save: %s", error.text);
    for (size_t i = 0; i < from->count; i++) {
        char stem[64];
        char path[4096];
        job_file_stem(from->timelines[i].backend, stem);
        snprintf(path, sizeof path, "%s/%s.vtl", given->save, stem);
        if (!vram_timeline_save(&from->timelines[i], path, &error))
            return fail_with(&command_view, "%s", error.text);
        printf("written to %s\n", path);
    }
    return EXIT_DONE;
}

static int bench(vram_view *view, uint64_t frames)
{
    vram_view_bench measured;
    vram_error error = {""};
    if (frames > UINT32_MAX || !vram_view_measure(view, (uint32_t)frames, &measured, &error))
        return fail_with(&command_view, "--bench: %s", error.text);
    printf("%llu frames, a random seek each: %.1f frames a second; seek %.2f ms mean, %.2f worst; "
           "painting %.2f ms mean, %.2f worst\n",
           (unsigned long long)frames, measured.frames_per_second, measured.seek_ms_mean,
           measured.seek_ms_worst, measured.paint_ms_mean, measured.paint_ms_worst);
    return EXIT_DONE;
}

/* What needs no window; -1 when none of it was asked for. */
static int without_hands(const fields *given, vram_view *view)
{
    vram_error error = {""};
    const uint32_t count = given->frame_count > 0 ? (uint32_t)given->frame_count : 300;
    const uint32_t rate = given->per_second > 0 ? (uint32_t)given->per_second : 30;
    bool done = true;
    const char *written = given->screenshot != NULL ? given->screenshot
                          : given->frames != NULL   ? given->frames
                                                    : given->video;
    if (given->bench > 0)
        return bench(view, given->bench);
    if (given->script != NULL)
        return vram_view_script(view, given->script, &error)
                   ? EXIT_DONE
                   : fail_with(&command_view, "%s", error.text);
    if (given->screenshot != NULL)
        done = vram_view_save(view, given->screenshot, &error);
    else if (given->frames != NULL)
        done = vram_view_frames(view, given->frames, count, &error);
    else if (given->video != NULL)
        done = vram_view_film(view, given->video, count, rate, &error);
    else
        return -1;
    if (!done)
        return fail_with(&command_view, "%s", error.text);
    printf("written to %s\n", written);
    return EXIT_DONE;
}

static int show(const fields *given, opener *files, const char *title)
{
    vram_view *view = NULL;
    vram_error error = {""};
    if (!make_view(given, &files->shelves[0], &view, &error))
        return fail_with(&command_view, "%s", error.text);
    int status = without_hands(given, view);
    if (status < 0)
        status = vram_view_window(&view, title, open_dropped, files, &error)
                     ? EXIT_DONE
                     : fail_with(&command_view, "%s", error.text);
    vram_view_free(view);
    return status;
}

static int view_run(int count, char **arguments)
{
    fields given = {.scale = 0};
    int status = options_read(&command_view, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (count == 0)
        return fail_with(&command_view, "a trace is expected: vramlab view TRACE --backend A,B");
    opener files = {.given = &given,
                    .shelves = {{.most = VRAM_VIEW_PANELS}, {.most = VRAM_VIEW_PANELS}}};
    for (int i = 0; i < count && status < 0; i++)
        status = shelf_add(&files.shelves[0], &command_view, &given.shelf, arguments[i]);
    if (status < 0 && given.save != NULL)
        status = save_timelines(&given, &files.shelves[0]);
    if (status < 0) {
        char title[200];
        snprintf(title, sizeof title, "vramlab: %.180s", file_name(arguments[0]));
        status = show(&given, &files, title);
    }
    shelf_free(&files.shelves[0]);
    shelf_free(&files.shelves[1]);
    return status;
}
