/*
 * key.h - what colours mean: a block's place on a scale, or its kind, and the colour of a cell in
 * which blocks share the room. Heatmaps and the live map mean the same.
 *
 *   size, age, occupancy    numbers: viridis
 *   stream, tag             kinds: the seven that occupy most have colours, the rest one together
 *   state                   live, rounding (granted beyond what was asked for), let go but not yet
 *                           free
 */
#ifndef VRAMLAB_VIZ_KEY_H
#define VRAMLAB_VIZ_KEY_H

#include "theme.h"

#include <vramlab/metrics.h>

typedef enum vram_by {
    VRAM_BY_SIZE,
    VRAM_BY_AGE,
    VRAM_BY_OCCUPANCY,
    VRAM_BY_STREAM,
    VRAM_BY_TAG,
    VRAM_BY_STATE,
    VRAM_BYS
} vram_by;

#define VRAM_BY_WORDS "size|age|occupancy|stream|tag|state"

enum { VRAM_SLOTS = VRAM_KIND_COLOURS + 1, VRAM_SIZE_STEPS = 4095 };

const char *vram_by_name(vram_by by);
bool vram_by_named(const char *name, vram_by *by, vram_error *error);
bool vram_by_is_number(vram_by by);

typedef struct vram_key {
    vram_by by;
    vram_axis axis;                       /* in which age is counted */
    uint64_t least_bytes, greatest_bytes; /* SIZE: the ends of the scale */
    uint64_t span;                        /* AGE: its far end, in positions of the axis */
    uint32_t slots;                       /* kinds that are told apart; 1 for numbers */
    uint32_t kind_of_slot[VRAM_SLOTS];    /* STREAM, TAG: its index; the last may be "others" */
    bool others;                          /* the last slot stands for all other kinds */
    uint8_t *slot_of_kind;                /* STREAM, TAG */
    uint32_t kinds;                       /* entries of slot_of_kind */
    const vram_timeline *names;           /* whose names the kinds have */
} vram_key;

/* One key for all the timelines, so that a colour means the same in each. */
bool vram_key_make(vram_key *key, vram_by by, vram_axis axis, const vram_timeline *const *timelines,
                   size_t count, vram_error *error);
void vram_key_free(vram_key *key);

/* A stretch of a block that has one meaning. */
typedef struct vram_part {
    uint64_t offset_bytes, size_bytes;
    uint32_t slot;
    uint64_t weight; /* SIZE: place on the scale, 0 .. VRAM_SIZE_STEPS; AGE: its birth */
} vram_part;

/* The parts of a block at an address; at most two. */
int vram_key_parts(const vram_key *key, const vram_timeline *timeline, const vram_op *birth,
                   uint64_t offset_bytes, bool retired, vram_part parts[2]);

/* A cell in which blocks cover `share`; mean_weight of what they cover; or the slot that covers
 * most. `now` is the position for AGE. */
typedef struct vram_tint {
    double share;
    double mean_weight;
    uint32_t slot;
} vram_tint;
vram_colour vram_key_colour(const vram_key *key, const vram_theme *theme, vram_tint tint,
                            double now);

/* ---- for legends ---- */

enum { VRAM_KEY_MARKS = 12 };

/* What stands along the scale of a number. */
typedef struct vram_key_marks {
    const char *title; /* "mean size of the blocks" */
    int count;
    struct {
        double at; /* 0 .. 1 */
        char label[24];
    } mark[VRAM_KEY_MARKS];
} vram_key_marks;
vram_key_marks vram_key_marks_of(const vram_key *key);

vram_colour vram_key_scale_colour(const vram_key *key, double share); /* numbers: along the scale */
vram_colour vram_key_slot_colour(const vram_key *key, uint32_t slot);
/* "stream 0x0", "no tag", "rounding", "others". Returns text. */
const char *vram_key_slot_name(const vram_key *key, uint32_t slot, char text[80]);

#endif
