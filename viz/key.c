/*
 * key.c - see key.h.
 */
#include "key.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATE_LIVE, STATE_ROUNDING, STATE_RETIRED, STATES };

static const struct {
    const char *name;
    bool number;
} table[VRAM_BYS] = {
    [VRAM_BY_SIZE] = {"size", true},
    [VRAM_BY_AGE] = {"age", true},
    [VRAM_BY_OCCUPANCY] = {"occupancy", true},
    [VRAM_BY_STREAM] = {"stream", false},
    [VRAM_BY_TAG] = {"tag", false},
    [VRAM_BY_STATE] = {"state", false},
};

const char *vram_by_name(vram_by by)
{
    return table[by].name;
}

bool vram_by_is_number(vram_by by)
{
    return table[by].number;
}

bool vram_by_named(const char *name, vram_by *by, vram_error *error)
{
    for (int i = 0; i < VRAM_BYS; i++)
        if (strcmp(table[i].name, name) == 0) {
            *by = (vram_by)i;
            return true;
        }
    return vram_fail(error, "no colour is called '%s': size, age, occupancy, stream, tag, state",
                     name);
}

/* ---- making ---- */

static void widen_sizes(vram_key *key, const vram_timeline *timeline)
{
    for (size_t i = 0; i < timeline->life_count; i++) {
        const uint64_t bytes = timeline->ops[timeline->lives[i].birth].granted_bytes;
        key->least_bytes = bytes < key->least_bytes ? bytes : key->least_bytes;
        key->greatest_bytes = bytes > key->greatest_bytes ? bytes : key->greatest_bytes;
    }
}

/* A tag without a name is none: its number might be anything. */
static uint32_t kind_of(const vram_key *key, const vram_timeline *timeline, const vram_op *birth)
{
    if (key->by == VRAM_BY_STREAM)
        return birth->stream;
    return birth->tag < timeline->tag_count ? birth->tag : 0;
}

/* Bytes times positions that blocks of each kind occupy; NULL when the host is out of memory. */
static double *areas_of_kinds(vram_key *key, const vram_timeline *const *timelines, size_t count)
{
    for (size_t t = 0; t < count; t++)
        for (size_t i = 0; i < timelines[t]->life_count; i++) {
            const vram_life *life = &timelines[t]->lives[i];
            const uint32_t kind = kind_of(key, timelines[t], &timelines[t]->ops[life->birth]);
            key->kinds = kind >= key->kinds ? kind + 1 : key->kinds;
        }
    double *const areas = calloc((size_t)key->kinds + 1, sizeof *areas);
    for (size_t t = 0; areas != NULL && t < count; t++) {
        const double end = (double)vram_axis_whole(timelines[t], key->axis).to;
        for (size_t i = 0; i < timelines[t]->life_count; i++) {
            const vram_life *life = &timelines[t]->lives[i];
            const vram_op *birth = &timelines[t]->ops[life->birth];
            const double until =
                life->death == UINT32_MAX
                    ? end
                    : (double)vram_op_position(&timelines[t]->ops[life->death], key->axis);
            areas[kind_of(key, timelines[t], birth)] +=
                (until - (double)vram_op_position(birth, key->axis) + 1) *
                (double)birth->granted_bytes;
        }
    }
    return areas;
}

/* Gives slots to the kinds that occupy most, in the order of their indices. */
static bool rank_kinds(vram_key *key, const vram_timeline *const *timelines, size_t count)
{
    double *const areas = areas_of_kinds(key, timelines, count);
    key->slot_of_kind = areas != NULL ? malloc((size_t)key->kinds + 1) : NULL;
    if (key->slot_of_kind == NULL) {
        free(areas);
        return false;
    }
    memset(key->slot_of_kind, VRAM_KIND_COLOURS, (size_t)key->kinds + 1);
    uint32_t present = 0;
    for (uint32_t kind = 0; kind < key->kinds; kind++)
        present += areas[kind] > 0;
    const uint32_t told = present < VRAM_KIND_COLOURS ? present : VRAM_KIND_COLOURS;
    for (uint32_t chosen = 0; chosen < told; chosen++) {
        uint32_t best = 0;
        for (uint32_t kind = 1; kind < key->kinds; kind++)
            best = areas[kind] > areas[best] ? kind : best;
        areas[best] = -1; /* has a slot */
    }
    key->slots = 0;
    for (uint32_t kind = 0; kind < key->kinds; kind++)
        if (areas[kind] < 0) {
            key->kind_of_slot[key->slots] = kind;
            key->slot_of_kind[kind] = (uint8_t)key->slots++;
        }
    key->others = present > told;
    key->slots += key->others || key->slots == 0;
    free(areas);
    return true;
}

bool vram_key_make(vram_key *key, vram_by by, vram_axis axis, const vram_timeline *const *timelines,
                   size_t count, vram_error *error)
{
    *key = (vram_key){
        .by = by, .axis = axis, .least_bytes = UINT64_MAX, .slots = 1, .names = timelines[0]};
    for (size_t t = 0; t < count; t++) {
        const uint64_t span = vram_axis_whole(timelines[t], axis).to;
        key->span = span > key->span ? span : key->span;
        if (by == VRAM_BY_SIZE)
            widen_sizes(key, timelines[t]);
    }
    if (key->greatest_bytes == 0)
        key->least_bytes = key->greatest_bytes = 1;
    if (by == VRAM_BY_STATE)
        key->slots = STATES;
    if ((by == VRAM_BY_STREAM || by == VRAM_BY_TAG) && !rank_kinds(key, timelines, count))
        return vram_fail(error, "the host is out of memory for the colours");
    return true;
}

void vram_key_free(vram_key *key)
{
    free(key->slot_of_kind);
    *key = (vram_key){0};
}

/* ---- blocks ---- */

/* The binary logarithm in 1/256, straight between powers of two: cheap, and the same everywhere. */
static uint32_t log2_256(uint64_t value)
{
    const uint32_t whole = 63u - (uint32_t)__builtin_clzll(value | 1);
    const uint64_t fraction = whole >= 8 ? value >> (whole - 8) : value << (8 - whole);
    return whole * 256 + (uint32_t)(fraction & 255);
}

static uint64_t size_weight(const vram_key *key, uint64_t bytes)
{
    const uint32_t least = log2_256(key->least_bytes);
    const uint32_t range = log2_256(key->greatest_bytes) - least;
    return range == 0 ? VRAM_SIZE_STEPS
                      : (log2_256(bytes) - least) * (uint64_t)VRAM_SIZE_STEPS / range;
}

int vram_key_parts(const vram_key *key, const vram_timeline *timeline, const vram_op *birth,
                   uint64_t offset_bytes, bool retired, vram_part parts[2])
{
    parts[0] = (vram_part){.offset_bytes = offset_bytes, .size_bytes = birth->granted_bytes};
    switch (key->by) {
    case VRAM_BY_SIZE:
        parts[0].weight = size_weight(key, birth->granted_bytes);
        return 1;
    case VRAM_BY_AGE:
        parts[0].weight = vram_op_position(birth, key->axis);
        return 1;
    case VRAM_BY_STREAM:
    case VRAM_BY_TAG:
        parts[0].slot = key->slot_of_kind[kind_of(key, timeline, birth)];
        return 1;
    case VRAM_BY_STATE:
        break;
    case VRAM_BY_OCCUPANCY:
    case VRAM_BYS:
        return 1;
    }
    if (retired || birth->granted_bytes == birth->size_bytes) {
        parts[0].slot = retired ? STATE_RETIRED : STATE_LIVE;
        return 1;
    }
    parts[0].slot = STATE_LIVE;
    parts[0].size_bytes = birth->size_bytes;
    parts[1] = (vram_part){.offset_bytes = offset_bytes + birth->size_bytes,
                           .size_bytes = birth->granted_bytes - birth->size_bytes,
                           .slot = STATE_ROUNDING};
    return 2;
}

/* ---- colours ---- */

/* ---- legends ---- */

static void add_mark(vram_key_marks *marks, double at, const char *label)
{
    if (marks->count == VRAM_KEY_MARKS || at < 0 || at > 1)
        return;
    marks->mark[marks->count].at = at;
    snprintf(marks->mark[marks->count++].label, sizeof marks->mark[0].label, "%s", label);
}

/* Powers of two, as many as there is room for. */
static void mark_sizes(const vram_key *key, vram_key_marks *marks)
{
    const int first = 64 - __builtin_clzll(key->least_bytes | 1) - 1;
    const int last = 64 - __builtin_clzll(key->greatest_bytes | 1) - 1;
    const int every = (last - first) / 7 + 1;
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    for (int power = (first + every - 1) / every * every; power <= last; power += every) {
        char label[24];
        if (UINT64_C(1) << power < key->least_bytes)
            continue;
        snprintf(label, sizeof label, "%d %s", 1 << power % 10, units[power / 10]);
        add_mark(marks, (double)size_weight(key, UINT64_C(1) << power) / VRAM_SIZE_STEPS, label);
    }
}

/* Ages spread over six powers of ten at most: below, all are young. */
static double youngest(const vram_key *key)
{
    return fmax(1, (double)key->span / 1e6);
}

static double age_share(const vram_key *key, double age)
{
    const double young = youngest(key);
    return log2(fmax(0, age) / young + 1) / log2((double)key->span / young + 1);
}

static void mark_ages(const vram_key *key, vram_key_marks *marks)
{
    static const char *const units[] = {"ns", "\xc2\xb5s", "ms", "s"};
    const int decades = (int)floor(log10((double)key->span + 1));
    const int first = (int)ceil(log10(youngest(key)) - 1e-9);
    for (int decade = first; decade <= decades; decade++) {
        const double age = pow(10, decade);
        char label[24];
        char count[32];
        if (key->axis == VRAM_AXIS_EVENT)
            snprintf(label, sizeof label, "%s", vram_format_count((uint64_t)age, count));
        else if (decade < 12)
            snprintf(label, sizeof label, "%.0f %s", pow(10, decade % 3), units[decade / 3]);
        else
            snprintf(label, sizeof label, "%.0f s", age / 1e9);
        add_mark(marks, age_share(key, age), label);
    }
}

vram_key_marks vram_key_marks_of(const vram_key *key)
{
    vram_key_marks marks = {.title = "share of a cell in live blocks"};
    switch (key->by) {
    case VRAM_BY_SIZE:
        marks.title = "size of the blocks";
        mark_sizes(key, &marks);
        break;
    case VRAM_BY_AGE:
        marks.title =
            key->axis == VRAM_AXIS_EVENT ? "age of the blocks, in events" : "age of the blocks";
        mark_ages(key, &marks);
        break;
    case VRAM_BY_OCCUPANCY:
    case VRAM_BY_STREAM:
    case VRAM_BY_TAG:
    case VRAM_BY_STATE:
    case VRAM_BYS:
        for (int percent = 0; percent <= 100; percent += 20) {
            char label[24];
            snprintf(label, sizeof label, "%d %%", percent);
            add_mark(&marks, percent / 100.0, label);
        }
        break;
    }
    return marks;
}

vram_colour vram_key_scale_colour(const vram_key *key, double share)
{
    /* For occupancy the darkest is "free"; elsewhere it would only look like it. */
    return vram_viridis(key->by == VRAM_BY_OCCUPANCY ? share : 0.12 + 0.88 * share);
}

vram_colour vram_key_slot_colour(const vram_key *key, uint32_t slot)
{
    return key->others && slot + 1 == key->slots ? VRAM_COLOUR_OTHER : vram_kind_colour(slot);
}

const char *vram_key_slot_name(const vram_key *key, uint32_t slot, char text[80])
{
    static const char *const states[STATES] = {"live", "rounding", "let go, not yet free"};
    const vram_timeline *timeline = key->names;
    if (key->by == VRAM_BY_STATE)
        return states[slot];
    if (key->others && slot + 1 == key->slots)
        return "others";
    const uint32_t kind = key->kind_of_slot[slot];
    if (key->by == VRAM_BY_TAG)
        return kind == 0 ? "no tag" : vram_timeline_tag(timeline, kind);
    snprintf(text, 80, "stream 0x%llx",
             (unsigned long long)(kind < timeline->stream_count ? timeline->streams[kind] : kind));
    return text;
}

vram_colour vram_key_colour(const vram_key *key, const vram_theme *theme, vram_tint tint,
                            double now)
{
    vram_colour full;
    switch (key->by) {
    case VRAM_BY_OCCUPANCY:
        /* The upper 255 steps are for cells in use, so that the least use differs from none. */
        return vram_viridis((1 + 254 * tint.share) / 255);
    case VRAM_BY_SIZE:
        full = vram_key_scale_colour(key, tint.mean_weight / VRAM_SIZE_STEPS);
        break;
    case VRAM_BY_AGE:
        full = vram_key_scale_colour(key, age_share(key, now - tint.mean_weight));
        break;
    case VRAM_BY_STREAM:
    case VRAM_BY_TAG:
    case VRAM_BY_STATE:
    case VRAM_BYS:
    default:
        full = vram_key_slot_colour(key, tint.slot);
        break;
    }
    const uint32_t strength =
        (uint32_t)(72 + 183 * fmin(1, tint.share)); /* the least can be seen */
    return vram_mix(theme->free, full, strength);
}
