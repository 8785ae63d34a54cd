/*
 * reduce.c - delta debugging of scripts.
 */
#include "conformance/reduce.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IMPATIENCE = 8 }; /* a try that hangs or grows is given up so much sooner */

typedef struct reducer {
    vram_stage *best;  /* breaks the property */
    vram_stage *tried; /* may or may not */
    const vram_property *property;
    vram_limits limits;
    char broken[sizeof((vram_finding *)0)->broken];
    bool at_an_act; /* not before, between or after the acts */
    struct timespec end;
    vram_reduction *reduction;
} reducer;

static bool is_time_up(const reducer *self)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > self->end.tv_sec ||
           (now.tv_sec == self->end.tv_sec && now.tv_nsec > self->end.tv_nsec);
}

static vram_verdict judge(vram_stage *stage, const void *context)
{
    return property_judge(context, stage);
}

static void copy_script(vram_script *to, const vram_script *from)
{
    to->arena_bytes = from->arena_bytes;
    to->unit_bytes = from->unit_bytes;
    to->served_bytes = from->served_bytes;
    to->count = from->count;
    memcpy(to->acts, from->acts, from->count * sizeof from->acts[0]);
}

/* Plays what has been prepared in `tried`; it becomes the best when it breaks in the same way. */
static bool try_it(reducer *self)
{
    self->reduction->tried++;
    const vram_verdict verdict =
        contained_do(self->tried, &self->limits, judge, self->property, NULL);
    const vram_finding *found = &self->tried->finding;
    if (verdict != BROKEN || strcmp(found->broken, self->broken) != 0 ||
        (self->at_an_act && found->act == UINT32_MAX))
        return false;
    copy_script(&self->best->script, &self->tried->script);
    self->best->finding = *found;
    return true;
}

/* Tries the best script without the acts [from, to), or without the ids when by_id. */
static bool try_without(reducer *self, uint32_t from, uint32_t to, bool by_id)
{
    const vram_script *best = &self->best->script;
    vram_script *tried = &self->tried->script;
    copy_script(tried, best);
    tried->count = 0;
    for (uint32_t i = 0; i < best->count; i++) {
        const uint32_t key = by_id ? best->acts[i].id : i;
        if (key < from || key >= to)
            tried->acts[tried->count++] = best->acts[i];
    }
    return tried->count < best->count && try_it(self);
}

static uint32_t extent(const vram_script *script, bool by_id)
{
    uint32_t extent = by_id ? 0 : script->count;
    for (uint32_t i = 0; by_id && i < script->count; i++)
        if (script->acts[i].id >= extent)
            extent = script->acts[i].id + 1;
    return extent;
}

/* Leaves out ever smaller stretches until no single one can go. Backwards: what comes late matters
 * least to what stays. */
static bool leave_out(reducer *self, bool by_id)
{
    bool any = false;
    uint32_t length = extent(&self->best->script, by_id);
    while (length > 0) {
        bool gone = false;
        for (uint32_t to = extent(&self->best->script, by_id); to > 0;) {
            if (is_time_up(self))
                return any;
            const uint32_t from = to > length ? to - length : 0;
            gone = try_without(self, from, to, by_id) || gone;
            to = from;
        }
        any = any || gone;
        if (!gone || length > 1)
            length /= 2;
    }
    return any;
}

/* What failed at an act does not need those behind it. */
static void cut_tail(reducer *self)
{
    const uint32_t act = self->best->finding.act;
    if (act < self->best->script.count)
        try_without(self, act + 1, self->best->script.count, false);
}

/* Numbers blocks from 1 in the order of their first mention. */
static void renumber(reducer *self)
{
    copy_script(&self->tried->script, &self->best->script);
    vram_script *tried = &self->tried->script;
    uint32_t *names = calloc(SCRIPT_MAX, sizeof *names);
    if (names == NULL)
        return;
    uint32_t named = 0;
    for (uint32_t i = 0; i < tried->count; i++) {
        uint32_t *name = &names[tried->acts[i].id];
        if (*name == 0)
            *name = ++named;
        tried->acts[i].id = *name;
    }
    free(names);
    if (named < SCRIPT_MAX)
        try_it(self);
}

static bool try_value(reducer *self, uint64_t *in_tried, uint64_t value)
{
    if (*in_tried == value || is_time_up(self))
        return false;
    *in_tried = value;
    const bool works = try_it(self);
    copy_script(&self->tried->script, &self->best->script);
    return works;
}

/* Smaller, rounder, or not at all. */
static void simplify_act(reducer *self, uint32_t i)
{
    vram_act *tried = &self->tried->script.acts[i];
    copy_script(&self->tried->script, &self->best->script);
    if (tried->kind == ACT_ALLOC) {
        try_value(self, &tried->align_bytes, 0);
        if (tried->stream != 0) {
            tried->stream = 0;
            try_it(self);
            copy_script(&self->tried->script, &self->best->script);
        }
    }
    if (tried->kind != ACT_ALLOC && tried->kind != ACT_RESIZE)
        return;
    if (try_value(self, &tried->size_bytes, 1) || tried->size_bytes == 0)
        return;
    while (tried->size_bytes > 1 && try_value(self, &tried->size_bytes, tried->size_bytes / 2))
        ;
    const uint64_t top_bytes = UINT64_C(1) << (63 - __builtin_clzll(tried->size_bytes));
    try_value(self, &tried->size_bytes, top_bytes);
}

static void halve_arena(reducer *self)
{
    vram_script *tried = &self->tried->script;
    copy_script(tried, &self->best->script);
    while (tried->arena_bytes > 1 && try_value(self, &tried->arena_bytes, tried->arena_bytes / 2))
        ;
    cut_tail(self);
}

static void simplify(reducer *self)
{
    halve_arena(self);
    for (uint32_t i = 0; i < self->best->script.count; i++)
        simplify_act(self, i);
    halve_arena(self);
}

static void shorten(reducer *self)
{
    cut_tail(self);
    leave_out(self, true);
    leave_out(self, false);
    simplify(self);
    while (leave_out(self, false)) /* plainer acts may need fewer others */
        ;
    renumber(self);
}

/* What broke with little patience must break with all of it. */
static bool is_confirmed(reducer *self, const vram_limits *limits)
{
    self->limits.silence_s = limits->silence_s;
    self->limits.memory_bytes = limits->memory_bytes;
    copy_script(&self->tried->script, &self->best->script);
    return try_it(self);
}

vram_reduction reduce_script(vram_stage *stage, const vram_property *property,
                             const vram_limits *limits, double at_most_s)
{
    vram_reduction reduction = {.acts_had = stage->script.count};
    reducer self = {.best = stage_new(stage->spec),
                    .tried = stage_new(stage->spec),
                    .property = property,
                    .at_an_act = stage->finding.act != UINT32_MAX,
                    .limits = {limits->silence_s / IMPATIENCE, limits->memory_bytes / IMPATIENCE,
                               .quiet = true},
                    .reduction = &reduction};
    strcpy(self.broken, stage->finding.broken);
    clock_gettime(CLOCK_MONOTONIC, &self.end);
    self.end.tv_sec += (time_t)at_most_s;
    if (self.best != NULL && self.tried != NULL) {
        copy_script(&self.best->script, &stage->script);
        self.best->finding = stage->finding;
        shorten(&self);
        reduction.complete = !is_time_up(&self);
        if (is_confirmed(&self, limits)) {
            copy_script(&stage->script, &self.best->script);
            stage->finding = self.best->finding;
        } else {
            reduction.complete = false;
        }
    }
    stage_free(self.best);
    stage_free(self.tried);
    return reduction;
}
