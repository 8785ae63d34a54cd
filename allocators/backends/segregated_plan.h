/*
 * segregated_plan.h - which classes segregated has, and how many blocks of each.
 */
#ifndef VRAMLAB_SEGREGATED_PLAN_H
#define VRAMLAB_SEGREGATED_PLAN_H

#include "core/core.h"

enum { SEGREGATED_CLASSES = 16 };

typedef struct segregated_plan {
    uint32_t class_count;
    uint64_t block_bytes[SEGREGATED_CLASSES]; /* ascending, multiples of the unit */
    uint64_t counts[SEGREGATED_CLASSES];      /* in all no more bytes than the arena has */
    uint64_t large_bytes; /* in: the option; out: at least the largest class, unless it was given */
    bool large_is_given;
} segregated_plan;

/* Reads the options `classes` and `shares`. False with a message that names what is wrong. */
bool segregated_make_plan(const vram_config *config, const char *classes, const char *shares,
                          uint64_t unit_bytes, segregated_plan *plan, vram_error *error);

#endif
