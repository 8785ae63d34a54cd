/*
 * inference.c - "inference" and "frames": streams of independent jobs that come in bursts or beats.
 *
 * inference: bursts of requests and pauses between them. A request of a random batch runs layer
 * after layer, two layers' buffers live at once, and its result lives a while longer.
 *
 * frames: video frames of mixed resolution, one a sixtieth of a second. A frame has an input,
 * planes of features and a result; the result joins a ring of 4 to 12 that later frames look at.
 *
 * With streams=N jobs take turns on N streams, and a result is used by the next job's stream too.
 */
#include "maker.h"
#include "workloads.h"

#include <stdlib.h>

enum { LAYER_NS = 100000, FRAME_NS = 16666667, RING_MAX = 12 };

typedef struct jobs {
    maker maker; /* first */
    uint64_t jobs, streams, made;
    uint64_t layers, batch, row_bytes, burst; /* inference */
    uint64_t burst_left;
    uint64_t planes; /* frames */
    uint64_t ring[RING_MAX + 1];
    size_t ring_count;
} jobs;

static const vram_workload_option inference_options[] = {
    {"jobs", "1000", "requests"},
    {"layers", "24", "layers of the model"},
    {"batch", "32", "greatest batch of a request"},
    {"row", "1MiB", "buffer of a layer for each of the batch"},
    {"burst", "20", "mean requests of a burst"},
    {"streams", "1", "streams that take turns, 1 to 64"},
    {"seed", "1", "start of the random numbers"},
    {NULL, NULL, NULL},
};

static const vram_workload_option frames_options[] = {
    {"jobs", "600", "frames"},
    {"planes", "32", "planes of features, at half a number of 4 bytes a pixel each"},
    {"streams", "1", "streams that take turns, 1 to 64"},
    {"seed", "1", "start of the random numbers"},
    {NULL, NULL, NULL},
};

static jobs *open_jobs(vram_source *source, const vram_workload_option *options, vram_error *error)
{
    const char *spec = source->path;
    uint64_t seed, count, streams;
    if (!vram_workload_check(spec, options, error) ||
        !vram_workload_count(spec, options, "seed", &seed, error) ||
        !vram_workload_count(spec, options, "jobs", &count, error) ||
        !vram_workload_count(spec, options, "streams", &streams, error))
        return NULL;
    if (streams < 1 || streams > 64) {
        vram_fail(error, "%s: streams is between 1 and 64", spec);
        return NULL;
    }
    jobs *j = maker_open(source, sizeof *j, seed, error);
    if (j != NULL) {
        j->jobs = count;
        j->streams = streams;
    }
    return j;
}

/* The result of a job, looked at by the stream of the next. */
static void share_result(jobs *j, uint64_t id)
{
    if (j->streams > 1)
        maker_use(&j->maker, id, (uint32_t)((j->made + 1) % j->streams));
}

/* ---- inference ---- */

static bool inference_open(vram_source *source, vram_error *error)
{
    jobs *j = open_jobs(source, inference_options, error);
    if (j == NULL)
        return false;
    const char *spec = source->path;
    if (vram_workload_count(spec, inference_options, "layers", &j->layers, error) &&
        vram_workload_count(spec, inference_options, "batch", &j->batch, error) &&
        vram_workload_size(spec, inference_options, "row", &j->row_bytes, error) &&
        vram_workload_count(spec, inference_options, "burst", &j->burst, error)) {
        if (j->batch >= 1 && j->batch <= 1 << 16 && j->layers >= 1 && j->layers <= 1 << 16 &&
            j->row_bytes <= 1 << 30)
            return true;
        vram_fail(error, "%s: batch and layers are between 1 and 65536, row up to 1 GiB", spec);
    }
    maker_close(source);
    return false;
}

/* Layers differ in width, always in the same way. */
static uint64_t layer_bytes(const jobs *j, uint64_t layer, uint64_t batch)
{
    return batch * j->row_bytes * (2 + layer * 7 % 5) / 4;
}

static bool inference_step(void *self)
{
    jobs *j = self;
    maker *m = &j->maker;
    if (j->made == j->jobs)
        return false;
    if (j->burst_left == 0) {
        maker_mark(m, "burst");
        j->burst_left = 1 + (uint64_t)maker_exponential(&m->random, (double)j->burst);
        m->now_ns += (uint64_t)maker_exponential(&m->random, 1e9);
    }
    j->burst_left--;
    m->stream = j->made % j->streams;
    const uint64_t batch = maker_log_uniform(&m->random, 1, j->batch);
    maker_tag(m, "layer");
    for (uint64_t layer = 0; layer < j->layers; layer++, m->now_ns += LAYER_NS)
        maker_alloc(m, layer_bytes(j, layer, batch), 2 * LAYER_NS - 1);
    maker_tag(m, "result");
    const uint64_t result = maker_alloc(m, 1 + batch * j->row_bytes / 64,
                                        1 + (uint64_t)maker_exponential(&m->random, 50e6));
    share_result(j, result);
    j->made++;
    m->now_ns += LAYER_NS;
    return true;
}

static vram_step inference_next(vram_source *source, vram_raw *event, vram_error *error)
{
    return maker_next(source, inference_step, event, error);
}

const vram_workload vram_workload_inference = {
    .format = {.name = "inference",
               .summary = "a server of a model: bursts of requests, layer after layer",
               .open = inference_open,
               .next = inference_next,
               .close = maker_close},
    .options = inference_options,
};

/* ---- frames ---- */

static bool frames_open(vram_source *source, vram_error *error)
{
    jobs *j = open_jobs(source, frames_options, error);
    if (j == NULL)
        return false;
    if (vram_workload_count(source->path, frames_options, "planes", &j->planes, error)) {
        if (j->planes >= 1 && j->planes <= 4096)
            return true;
        vram_fail(error, "%s: planes is between 1 and 4096", source->path);
    }
    maker_close(source);
    return false;
}

static uint64_t draw_pixels(vram_random *random)
{
    static const uint64_t pixels[] = {1280 * 720,  1280 * 720,  1280 * 720,
                                      1920 * 1080, 1920 * 1080, 3840 * 2160};
    return pixels[vram_random_below(random, sizeof pixels / sizeof pixels[0])];
}

static void join_ring(jobs *j, uint64_t id)
{
    j->ring[j->ring_count++] = id;
    const uint64_t wanted = maker_between(&j->maker.random, 4, RING_MAX);
    while (j->ring_count > wanted) {
        maker_free(&j->maker, j->ring[0]);
        for (size_t i = 1; i < j->ring_count; i++)
            j->ring[i - 1] = j->ring[i];
        j->ring_count--;
    }
}

static bool frames_step(void *self)
{
    jobs *j = self;
    maker *m = &j->maker;
    if (j->made == j->jobs)
        return false;
    m->stream = j->made % j->streams;
    const uint64_t pixels = draw_pixels(&m->random);
    maker_tag(m, "frame");
    maker_alloc(m, pixels * 3, FRAME_NS / 2);
    maker_tag(m, "features");
    for (int pass = 0; pass < 4; pass++, m->now_ns += FRAME_NS / 8)
        maker_alloc(m, pixels * 2 * j->planes, FRAME_NS / 5);
    maker_tag(m, "result");
    const uint64_t result = maker_hold(m, pixels * j->planes / 2);
    share_result(j, result);
    join_ring(j, result);
    j->made++;
    m->now_ns += FRAME_NS / 2;
    return true;
}

static vram_step frames_next(vram_source *source, vram_raw *event, vram_error *error)
{
    return maker_next(source, frames_step, event, error);
}

const vram_workload vram_workload_frames = {
    .format = {.name = "frames",
               .summary = "video frames of mixed resolution, with a ring of results",
               .open = frames_open,
               .next = frames_next,
               .close = maker_close},
    .options = frames_options,
};
