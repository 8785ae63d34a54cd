/* layout.h - between layout.c (segments) and early.c (blocks), which rebuild the start together. */
#ifndef VRAMLAB_VALIDATE_LAYOUT_H
#define VRAMLAB_VALIDATE_LAYOUT_H

#include "validate/recording.h"

/* A block that was there when the history begins. */
typedef struct early_block {
    uint64_t address, requested_bytes;
    uint64_t size_bytes; /* what it occupies, slack included; settled by early_find_slack */
    size_t death;        /* index of the event after which it is free; SIZE_MAX: never */
    bool pending;
    bool size_known; /* the snapshot shows it */
} early_block;

typedef struct early_blocks {
    early_block *blocks; /* by address */
    size_t count, capacity;
} early_blocks;

/* False: the host is out of memory. */
bool early_find(const recording *self, early_blocks *found);

/* Blocks of one segment of the large pool, which ends there: how much of each gap belongs to the
 * block before it. Only in segments that are no ranges. */
bool early_find_slack(recording *self, early_blocks *found, uint64_t *slack_bytes);

#endif
