/*
 * player.h - plays a script on one instance and examines every answer.
 *
 * The interval model (driver/model.h) stands beside the backend and is told what it answers; the
 * contract in vramlab/backend.h says what may be answered. Whatever breaks is noted on the stage
 * under the name of the rule, and the player goes no further.
 */
#ifndef CONFORMANCE_PLAYER_H
#define CONFORMANCE_PLAYER_H

#include "conformance/stage.h"

#include "driver/model.h"

typedef enum block_state {
    BLOCK_NONE, /* never asked for, or refused */
    BLOCK_LIVE,
    BLOCK_GONE, /* released */
} vram_block_state;

/* What became of an id. */
typedef struct player_block {
    vram_block block;
    uint64_t align_bytes;
    vram_result result; /* of its allocation */
    vram_block_state state;
} vram_player_block;

typedef struct player {
    vram_stage *stage;
    vram_backend *backend;
    vram_model *model;
    vram_player_block *blocks; /* by id */
    uint32_t block_count;
    uint32_t since_check;
    bool starved; /* each call that may answer "no metadata" is first made with no host memory left
                   */
} vram_player;

typedef enum opening { OPENING_DONE, OPENING_REFUSED, OPENING_BROKEN } vram_opening;

/*
 * Makes the stage's backend over the script's arena. REFUSED: the backend says, with a message,
 * that this arena is not for it; nothing is found then. Ends with player_close in any case.
 */
vram_opening player_open(vram_player *self, vram_stage *stage);
void player_close(vram_player *self);

/* Plays one act. False when something has been found. */
bool player_act(vram_player *self, const vram_act *played);

/* Plays the acts [from, to) of the stage's script. */
bool player_acts(vram_player *self, uint32_t from, uint32_t to);

/* Releases what still lives. */
bool player_release_all(vram_player *self);
/* Upkeep to its end, all streams waited for, all cached memory given back. */
bool player_settle(vram_player *self);

/* The backend's own check, and its walk and counters against the model. */
bool player_examine(vram_player *self);

/* ---- answers.c: what alloc and release may answer ---- */

bool answer_to_alloc(vram_player *self, const vram_request *request, vram_result result,
                     const vram_block *out, const vram_block *before);
bool answer_to_release(vram_player *self, const vram_player_block *released, vram_result result);
/* result and block (as before, as after) of a resize of a live block. */
bool answer_to_resize(vram_player *self, const vram_block *before, const vram_block *after,
                      uint64_t size_bytes, vram_result result);
/* One block instead of another, at the same time. */
bool answer_replaces(vram_player *self, const vram_block *before, const vram_block *after,
                     uint64_t size_bytes, uint64_t align_bytes);

#endif
