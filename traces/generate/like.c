/*
 * like.c - "like": as many blocks as wanted, drawn from those of another trace.
 *
 * Blocks that are never freed come first, once, as there. Then runs of consecutive blocks are drawn
 * at random and laid end to end (the moving-block bootstrap of Kuensch 1989): sizes, lifetimes,
 * what ties them and the order within a run are the trace's own, and what lies farther apart is
 * mixed.
 */
#include "maker.h"
#include "workloads.h"

#include <vramlab/model.h>

#include <stdlib.h>
#include <string.h>

enum { STEP_NS = 1000 };

typedef struct workload {
    maker maker; /* first */
    vram_model model;
    vram_trace *from;        /* for its tags */
    vram_model_block *freed; /* those that are freed, in order */
    size_t freed_count;
    uint64_t allocs, run, made, run_left;
    size_t next;
} workload;

static const vram_workload_option options[] = {
    {"file", "", "the trace whose blocks are drawn (a path without commas)"},
    {"allocs", "100000", "allocations beside those that are never freed"},
    {"run", "64", "blocks that stay together, 1: each for itself"},
    {"seed", "1", "start of the random numbers"},
    {NULL, NULL, NULL},
};

static void like_close(vram_source *source)
{
    workload *w = source->state;
    vram_model_free(&w->model);
    vram_trace_close(w->from);
    free(w->freed);
    maker_close(source);
}

static bool keep_freed(workload *w)
{
    w->freed = malloc((w->model.count + 1) * sizeof *w->freed);
    if (w->freed == NULL)
        return false;
    for (size_t i = 0; i < w->model.count; i++)
        if (w->model.blocks[i].life != VRAM_LIVES_ON)
            w->freed[w->freed_count++] = w->model.blocks[i];
    return true;
}

static void add_block(workload *w, const vram_model_block *block)
{
    maker *m = &w->maker;
    m->stream = block->stream;
    m->align_log2 = block->align_log2;
    maker_tag(m, vram_trace_tag(w->from, block->tag));
    if (block->life == VRAM_LIVES_ON)
        maker_hold(m, block->size_bytes);
    else
        maker_alloc(m, block->size_bytes, (block->life + 1) * STEP_NS - STEP_NS / 2);
    m->now_ns += STEP_NS;
}

static bool read_trace(vram_source *source, workload *w, vram_error *error)
{
    char path[4096];
    const char *spec = source->path;
    if (!vram_workload_text(spec, options, "file", path, sizeof path, error) ||
        !vram_workload_count(spec, options, "allocs", &w->allocs, error) ||
        !vram_workload_count(spec, options, "run", &w->run, error))
        return false;
    if (path[0] == '\0' || w->run == 0)
        return vram_fail(error, "%s: file must name a trace, and run be at least 1", spec);
    if (!vram_trace_open(path, NULL, &w->from, error) ||
        !vram_model_measure(w->from, &w->model, error))
        return false;
    return keep_freed(w) || vram_fail(error, "%s: out of memory", spec);
}

static bool like_open(vram_source *source, vram_error *error)
{
    uint64_t seed;
    if (!vram_workload_check(source->path, options, error) ||
        !vram_workload_count(source->path, options, "seed", &seed, error))
        return false;
    workload *w = maker_open(source, sizeof *w, seed, error);
    if (w == NULL)
        return false;
    if (!read_trace(source, w, error)) {
        like_close(source);
        return false;
    }
    source->info->unit_bytes = vram_trace_info_of(w->from)->unit_bytes;
    for (size_t i = 0; i < w->model.count; i++)
        if (w->model.blocks[i].life == VRAM_LIVES_ON)
            add_block(w, &w->model.blocks[i]);
    return true;
}

static bool like_step(void *self)
{
    workload *w = self;
    if (w->made == w->allocs || w->freed_count == 0)
        return false;
    if (w->run_left == 0 || w->next == w->freed_count) {
        w->next = (size_t)vram_random_below(&w->maker.random, w->freed_count);
        w->run_left = w->run;
    }
    w->run_left--;
    w->made++;
    add_block(w, &w->freed[w->next++]);
    return true;
}

static vram_step like_next(vram_source *source, vram_raw *event, vram_error *error)
{
    return maker_next(source, like_step, event, error);
}

const vram_workload vram_workload_like = {
    .format = {.name = "like",
               .summary = "a longer trace of another's kind: its blocks, drawn in runs",
               .open = like_open,
               .next = like_next,
               .close = like_close},
    .options = options,
};
