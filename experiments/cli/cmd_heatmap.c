/*
 * cmd_heatmap.c - `vramlab heatmap`: address by time of one backend, as a PNG.
 */
#include "cli/job.h"

#include <vramlab/heatmap.h>

#include <stdlib.h>
#include <string.h>

typedef struct fields {
    job_fields job; /* first */
    const char *out;
    const char *time;
    const char *size;
    const char *title;
    bool skip;
} fields;

static const option_row options[] = {
    {.name = "--out",
     .alias = "-o",
     .kind = OPTION_TEXT,
     .value = "F.png",
     .offset = offsetof(fields, out),
     .help = "the picture; default: heatmap.png"},
    JOB_ARENA_ROW,
    JOB_OPTION_ROWS,
    {.name = "--time",
     .kind = OPTION_WORD,
     .words = "events|seconds",
     .offset = offsetof(fields, time),
     .help = "what the horizontal axis counts"},
    {.name = "--size",
     .kind = OPTION_TEXT,
     .value = "WxH",
     .offset = offsetof(fields, size),
     .help = "pixels of the picture; default 1600x1000"},
    {.name = "--title",
     .kind = OPTION_TEXT,
     .value = "TEXT",
     .offset = offsetof(fields, title),
     .help = "default: the trace's name and the backend"},
    {.name = "--skip-failures",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, skip),
     .help = "go on after a refused request; default: the picture ends there"},
    {.name = NULL},
};

static int heatmap_run(int count, char **arguments);

const command command_heatmap = {
    .name = "heatmap",
    .usage = "TRACE --backend B [-o F.png] [--arena SIZE] [--time events|seconds]",
    .summary = "address by time: where the memory went, as a picture",
    .text = "Replays a trace on one backend and draws the arena over time. A cell's colour is the\n"
            "exact share of it in live blocks; memory that was never used is grey. A refused\n"
            "request is marked, with what was free. The picture is the same from run to run.\n\n"
            "  vramlab heatmap traces/data/oom_fragmented.pickle.gz --backend caching -o oom.png",
    .options = options,
    .run = heatmap_run,
};

static int read_size(const char *text, vram_heatmap_options *how)
{
    char *end = NULL;
    const unsigned long width = strtoul(text, &end, 10);
    const unsigned long height = *end == 'x' ? strtoul(end + 1, &end, 10) : 0;
    if (*end != '\0' || width > VRAM_HEATMAP_MOST || height > VRAM_HEATMAP_MOST ||
        width < VRAM_HEATMAP_LEAST || height < VRAM_HEATMAP_LEAST)
        return fail_with(&command_heatmap,
                         "--size: '%s' is not a size such as 1600x1000: %d to %d each", text,
                         VRAM_HEATMAP_LEAST, VRAM_HEATMAP_MOST);
    how->width = (uint32_t)width;
    how->height = (uint32_t)height;
    return -1;
}

static bool draw(const replay_job *job, const fields *given, const vram_heatmap_options *how,
                 vram_error *error)
{
    vram_backend *backend = NULL;
    vram_timeline timeline = {0};
    vram_replay_result result;
    const vram_replay_options replay = {
        .on_failure = given->skip ? VRAM_SKIP_FAILURES : VRAM_STOP_AT_FAILURE,
        .tries = true,
        .look_at_event = UINT64_MAX,
        .record = &timeline,
        .progress = progress_show,
    };
    progress_begin(job->specs[0]);
    const bool drawn = job_backend(job, 0, job->arena_bytes, &backend, error) &&
                       vram_replay(job->trace, backend, &replay, &result, error) &&
                       vram_heatmap_write(&timeline, how, given->out, error);
    progress_end();
    vram_timeline_free(&timeline);
    vram_destroy(backend);
    return drawn;
}

static int heatmap_run(int count, char **arguments)
{
    fields given = {.out = "heatmap.png", .time = "events"};
    int status = options_read(&command_heatmap, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (count != 1)
        return fail_with(&command_heatmap, "one trace is expected: vramlab heatmap TRACE");
    if (given.job.backends == NULL)
        return fail_with(&command_heatmap,
                         "--backend names the backend to draw, such as --backend list:policy=best");
    vram_heatmap_options how = {.axis = strcmp(given.time, "seconds") == 0 ? VRAM_AXIS_TIME
                                                                           : VRAM_AXIS_EVENT,
                                .title = given.title};
    if (given.size != NULL && (status = read_size(given.size, &how)) >= 0)
        return status;
    replay_job job;
    vram_error error = {""};
    status = job_open(&job, &command_heatmap, &given.job, arguments[0]);
    if (status < 0 && job.spec_count != 1)
        status = fail_with(&command_heatmap, "one backend is expected, not %zu", job.spec_count);
    if (status < 0)
        status = draw(&job, &given, &how, &error) ? EXIT_DONE
                                                  : fail_with(&command_heatmap, "%s", error.text);
    if (status == EXIT_DONE)
        printf("written to %s\n", given.out);
    job_close(&job);
    return status;
}
