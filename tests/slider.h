/* slider.h - a small first-fit backend that can be compacted, rightly or wrongly. */
#ifndef VRAMLAB_TESTS_SLIDER_H
#define VRAMLAB_TESTS_SLIDER_H

#include <vramlab/backend.h>

typedef enum slider_fault {
    SLIDER_SOUND,
    SLIDER_MOVES_UP,
    SLIDER_MOVES_THE_DEAD,  /* names a handle that is not live */
    SLIDER_WRONG_SIZE,      /* moves fewer bytes than the block has */
    SLIDER_WRONG_ORDER,     /* moves onto a block that has not moved away yet */
    SLIDER_LIVES_ELSEWHERE, /* says after a move that the block is somewhere else */
    SLIDER_REFUSES,         /* does not make its own move true */
    SLIDER_OVER_BUDGET,     /* plans more bytes than allowed */
    SLIDER_FAULTS
} slider_fault;

vram_backend *slider_create(uint64_t arena_bytes, uint64_t unit_bytes, slider_fault fault);

#endif
