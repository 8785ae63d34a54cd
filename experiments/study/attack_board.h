/*
 * attack_board.h - a backend in the middle of a game: what the parts of the attack share.
 */
#ifndef VRAMLAB_STUDY_ATTACK_BOARD_H
#define VRAMLAB_STUDY_ATTACK_BOARD_H

#include "attack.h"

#include <vramlab/registry.h>

typedef struct attack_block {
    vram_block block;
    uint32_t units;
} attack_block;

typedef struct attack_board {
    const attack_game *game;
    vram_backend *backend;
    attack_block *blocks; /* alive, oldest first */
    size_t count;
    uint32_t live_units;
    uint64_t extent_units; /* highest end of a block so far */
    bool refused;          /* an allocation was */
} attack_board;

/* board_close is safe after a failure. */
bool board_open(attack_board *self, const attack_game *game, uint64_t arena_units,
                vram_error *error);
void board_close(attack_board *self);

/* Is the move within the rules of the game now? */
bool board_allows(const attack_board *self, int32_t move);

/* Plays it; what is not allowed is passed over. */
void board_play(attack_board *self, int32_t move);

#endif
