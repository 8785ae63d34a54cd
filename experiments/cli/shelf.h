/*
 * shelf.h - the timelines that a picture shows: from saved files, or from traces replayed on
 * backends; and what commands that draw ask for in the same words.
 */
#ifndef VRAMLAB_SHELF_H
#define VRAMLAB_SHELF_H

#include "cli/job.h"

#include <vramlab/metrics.h>

/* Embed as the first field of a command's own. */
typedef struct shelf_fields {
    job_fields job; /* first */
    bool skip;
} shelf_fields;

#define SHELF_OPTION_ROWS                                                                          \
    JOB_ARENA_ROW, JOB_OPTION_ROWS, JOB_COMPACT_ROW,                                               \
    {                                                                                              \
        .name = "--skip-failures", .kind = OPTION_FLAG, .offset = offsetof(shelf_fields, skip),    \
        .help = "go on after a refused request; default: the replay ends there"                    \
    }

typedef struct shelf {
    vram_timeline *timelines;
    size_t count;
    size_t most; /* how many there may be */
} shelf;

/* Adds what a file holds: a saved timeline, or a trace on each backend. -1 to go on, or the exit
 * status after a message. */
int shelf_add(shelf *self, const command *which, const shelf_fields *given, const char *path);
void shelf_free(shelf *self);

/* Pointers to the timelines, for a call that takes them so; free() it. Aborts when out of memory.
 */
const vram_timeline **shelf_pointers(const shelf *self);

/* "1600x1000". */
bool read_picture_size(const char *text, uint32_t *width, uint32_t *height, vram_error *error);

/* "1GiB..2GiB", "10%..50%", "..512MiB", "1GiB..": sizes; the ends of `whole` where left out. */
bool read_address_window(const char *text, vram_window whole, vram_window *window,
                         vram_error *error);

/* The same in events, or in seconds along the time axis. */
bool read_time_window(const char *text, vram_axis axis, vram_window whole, vram_window *window,
                      vram_error *error);

/* All of the timelines' events or time. */
vram_window shelf_whole_time(const shelf *self, vram_axis axis);
vram_window shelf_whole_arena(const shelf *self);

#endif
