/* crooked.h - a backend that is right until it lies once, to see whether the lie is noticed. */
#ifndef VRAMLAB_TESTS_CROOKED_H
#define VRAMLAB_TESTS_CROOKED_H

#include <vramlab/arena.h>
#include <vramlab/registry.h>

typedef enum crooked_lie {
    LIE_NONE,
    LIE_OVERLAP,         /* hands out the bytes of the block before */
    LIE_OUTSIDE,         /* beyond the end of the arena */
    LIE_MISALIGNED,      /* one byte further than it ought to be */
    LIE_SHORT,           /* grants a byte less than asked for */
    LIE_GENERATION,      /* a handle that could be the null block's */
    LIE_STATS,           /* counts a granted byte too many */
    LIE_SHIFTED_STATS,   /* takes a byte from free for padding: the sum is still right */
    LIE_WALK_GAP,        /* leaves a span out of the walk */
    LIE_WALK_HANDLE,     /* shows a live span with another block's handle */
    LIE_CHECK,           /* its own check finds something */
    LIE_REFUSES_RELEASE, /* calls a live block stale */
    LIE_SCRIBBLE,        /* writes into a live block's bytes */
    LIE_BAD_RESULT,      /* calls a sound request a bad one */
    LIES
} crooked_lie;

/* A backend over `inner`, which it owns, that tells the lie at its n-th allocation and after. */
vram_backend *crooked_over(vram_backend *inner, crooked_lie lie, uint64_t at_alloc,
                           vram_arena *arena);

#endif
