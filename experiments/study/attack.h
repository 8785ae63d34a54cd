/*
 * attack.h - the game against an allocator: at most `live` units alive, blocks of at most `largest`
 * units, and as large an arena as possible is to be needed.
 *
 * Sizes are counted in units, Robson's "words". What the game needs at worst is known for any
 * allocator, and by exhaustive search for small cases of first and best fit; see attack_bound.
 */
#ifndef VRAMLAB_STUDY_ATTACK_H
#define VRAMLAB_STUDY_ATTACK_H

#include <vramlab/text.h>

typedef struct attack_game {
    const char *spec; /* the backend */
    uint64_t unit_bytes;
    uint32_t live, largest; /* in units */
} attack_game;

/* A sequence: a positive number allocates so many units; -k releases the (k+1)-th oldest block that
 * is alive, counted from 0. -0 is written ATTACK_OLDEST. What would exceed the live units or names
 * no block is passed over, so that any list of numbers is a sequence. */
typedef struct attack_moves {
    int32_t *list;
    size_t count, capacity;
} attack_moves;

#define ATTACK_OLDEST INT32_MIN

bool attack_append(attack_moves *moves, int32_t move);
void attack_free(attack_moves *moves);

/* True in *failed when some allocation is refused in an arena of so many units. */
bool attack_fails(const attack_game *game, const attack_moves *moves, uint64_t arena_units,
                  bool *failed, vram_error *error);

/*
 * Robson's adversary (JACM 1971): fills with blocks of 1, 2, 4, ... units, and after each fill
 * keeps only the blocks that cover a chosen residue, so that no hole is large enough for the next
 * size. It looks at the offsets that the backend gives.
 */
bool attack_robson(const attack_game *game, attack_moves *moves, vram_error *error);

/* Hill climbing, from these moves: random changes are kept unless the moves come less near to the
 * end of the arena, which grows by a unit whenever they fail in it. Ends after so many tries with
 * moves that fail one unit below *needed_units. */
bool attack_climb(const attack_game *game, attack_moves *moves, uint64_t tries, uint64_t seed,
                  uint64_t *needed_units, void (*progress)(void *context, double share),
                  vram_error *error);

/*
 * Every sequence that leads to a new layout of the arena, for each size of arena from the live
 * units up, until none fails any more. *needed_units is that size, *moves fail one unit below.
 * Complete for backends whose answers depend on the layout alone (list but for next fit, buddy);
 * for others a lower bound. False with a message when more than `most` layouts are met.
 */
bool attack_exhaust(const attack_game *game, uint64_t most, attack_moves *moves,
                    uint64_t *needed_units, vram_error *error);

/* What any allocator that never moves a block needs at worst, at least: n (log2 m / 2 + 1) - m + 1
 * for m a power of two (Robson, JACM 1971); a lesser power of two stands in for other m. */
uint64_t attack_bound(const attack_game *game);

/* Writes the moves and the releases that balance them as a trace in vramlab's own format. */
bool attack_write(const attack_game *game, const attack_moves *moves, const char *path,
                  vram_error *error);

#endif
