/*
 * script.h - a sequence of calls as data: it can be played, cut down to what matters, and printed.
 *
 *     plan (plans.h) -> script -> player (player.h) -> finding
 *                          ^                              |
 *                          '------ reduce (reduce.h) <----'
 *
 * Acts name blocks by ids that are never used twice, so that any subset of a script is a script: an
 * act on a block that was never allocated, or whose allocation was refused, is left out when
 * played.
 */
#ifndef CONFORMANCE_SCRIPT_H
#define CONFORMANCE_SCRIPT_H

#include <vramlab/backend.h>

#include <stdio.h>

typedef enum act_kind {
    ACT_ALLOC,    /* id, size, align, stream */
    ACT_RELEASE,  /* id; a block released before must be refused */
    ACT_RESIZE,   /* id, size */
    ACT_FORGE,    /* id, variant: a block made from this one that was never given out is released */
    ACT_USE,      /* id, stream */
    ACT_SYNC,     /* stream, ALL_STREAMS for all */
    ACT_WAIT,     /* stream waits for `size_bytes` */
    ACT_MAINTAIN, /* until there is nothing more to do */
    ACT_TRIM,
    ACT_COMPACT, /* plans moves and makes them all true */
} vram_act_kind;

#define ALL_STREAMS UINT16_MAX

typedef enum forgery {
    FORGE_NULL,       /* {0} */
    FORGE_SLOT,       /* a slot far beyond any that exists */
    FORGE_GENERATION, /* a generation that the slot has not reached */
    FORGE_OFFSET,     /* the handle of a live block with another offset: another backend's block */
    FORGERIES,
} vram_forgery;

typedef struct act {
    uint64_t size_bytes;
    uint64_t align_bytes; /* as in vram_request: 0 is the backend's unit */
    uint32_t id;          /* below SCRIPT_MAX */
    uint16_t stream;
    uint8_t kind;    /* act_kind */
    uint8_t variant; /* forgery */
} vram_act;

enum { SCRIPT_MAX = 1 << 17 };

typedef struct script {
    uint64_t arena_bytes;
    uint64_t unit_bytes;   /* vram_config.unit_bytes */
    uint64_t served_bytes; /* the largest request that a fresh backend serves here */
    uint32_t count;
    vram_act acts[SCRIPT_MAX];
} vram_script;

/* Adds an act; what does not fit is dropped. */
void script_add(vram_script *self, vram_act added);

/* Writes the acts in vramlab's native trace format; `note`, which may have several lines, and acts
 * that a trace cannot hold become comments. Line `marked` is pointed at; UINT32_MAX: none. */
void script_print(const vram_script *self, const char *note, uint32_t marked, FILE *out);

/* Writes one act as in a trace, without its line's end. */
void act_print(const vram_act *self, FILE *out);

#endif
