/*
 * attack.c - plays sequences on a backend, and makes bad ones: Robson's adversary and hill
 * climbing.
 */
#include "attack.h"

#include "attack_board.h"

#include <vramlab/output.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool attack_append(attack_moves *moves, int32_t move)
{
    if (!vram_reserve((void **)&moves->list, &moves->capacity, moves->count + 1,
                      sizeof *moves->list))
        return false;
    moves->list[moves->count++] = move;
    return true;
}

void attack_free(attack_moves *moves)
{
    free(moves->list);
    *moves = (attack_moves){NULL, 0, 0};
}

/* ---- the board ---- */

bool board_open(attack_board *self, const attack_game *game, uint64_t arena_units,
                vram_error *error)
{
    const vram_config config = {.arena_bytes = arena_units * game->unit_bytes,
                                .unit_bytes = game->unit_bytes};
    *self = (attack_board){.game = game};
    self->blocks = malloc((game->live + 1) * sizeof *self->blocks);
    if (self->blocks == NULL)
        return vram_fail(error, "out of host memory");
    return vram_create_from_text(game->spec, &config, &self->backend, error);
}

void board_close(attack_board *self)
{
    vram_destroy(self->backend);
    free(self->blocks);
}

static void board_allocate(attack_board *self, uint32_t units)
{
    const uint64_t unit_bytes = self->game->unit_bytes;
    attack_block block = {.units = units};
    const vram_request request = {.size_bytes = units * unit_bytes, .align_bytes = unit_bytes};
    if (vram_alloc(self->backend, request, &block.block) != VRAM_OK) {
        self->refused = true;
        return;
    }
    const uint64_t end_bytes = block.block.offset_bytes + units * unit_bytes;
    const uint64_t end_units = (end_bytes + unit_bytes - 1) / unit_bytes;
    self->extent_units = end_units > self->extent_units ? end_units : self->extent_units;
    self->live_units += units;
    self->blocks[self->count++] = block;
}

static void board_release(attack_board *self, size_t index)
{
    const attack_block block = self->blocks[index];
    vram_release(self->backend, block.block);
    self->live_units -= block.units;
    memmove(&self->blocks[index], &self->blocks[index + 1],
            (--self->count - index) * sizeof *self->blocks);
}

static size_t released_by(int32_t move)
{
    return move == ATTACK_OLDEST ? 0 : (size_t)-move;
}

bool board_allows(const attack_board *self, int32_t move)
{
    if (move > 0)
        return (uint32_t)move <= self->game->largest &&
               self->live_units + (uint32_t)move <= self->game->live;
    return move != 0 && released_by(move) < self->count;
}

void board_play(attack_board *self, int32_t move)
{
    if (!board_allows(self, move))
        return;
    if (move > 0)
        board_allocate(self, (uint32_t)move);
    else
        board_release(self, released_by(move));
}

/* Far more than any allocator here has ever been seen to need. */
static uint64_t without_limits(const attack_game *game)
{
    return (uint64_t)game->live * (game->largest + 64);
}

static bool play(attack_board *board, const attack_game *game, const attack_moves *moves,
                 uint64_t arena_units, vram_error *error)
{
    const bool opened = board_open(board, game, arena_units, error);
    for (size_t i = 0; opened && i < moves->count && !board->refused; i++)
        board_play(board, moves->list[i]);
    board_close(board);
    return opened;
}

bool attack_fails(const attack_game *game, const attack_moves *moves, uint64_t arena_units,
                  bool *failed, vram_error *error)
{
    attack_board board;
    const bool played = play(&board, game, moves, arena_units, error);
    *failed = board.refused;
    return played;
}

/* ---- Robson's adversary ---- */

static bool make_move(attack_board *board, attack_moves *moves, int32_t move)
{
    board_play(board, move);
    return attack_append(moves, move);
}

static bool fill(attack_board *board, attack_moves *moves, uint32_t units)
{
    while (!board->refused && board_allows(board, (int32_t)units))
        if (!make_move(board, moves, (int32_t)units))
            return false;
    return true;
}

/* Does the block cover a unit whose number is `residue` modulo `modulus`? */
static bool covers(const attack_board *board, size_t index, uint64_t modulus, uint64_t residue)
{
    const uint64_t at = board->blocks[index].block.offset_bytes / board->game->unit_bytes;
    return (residue + modulus - at % modulus) % modulus < board->blocks[index].units;
}

/* Units of the blocks that would be kept. */
static uint64_t kept_units(const attack_board *board, uint64_t modulus, uint64_t residue)
{
    uint64_t units = 0;
    for (size_t i = 0; i < board->count; i++)
        units += covers(board, i, modulus, residue) ? board->blocks[i].units : 0;
    return units;
}

static bool keep_only(attack_board *board, attack_moves *moves, uint64_t modulus, uint64_t residue)
{
    for (size_t i = board->count; i-- > 0;)
        if (!covers(board, i, modulus, residue) &&
            !make_move(board, moves, i == 0 ? ATTACK_OLDEST : -(int32_t)i))
            return false;
    return true;
}

bool attack_robson(const attack_game *game, attack_moves *moves, vram_error *error)
{
    attack_board board;
    moves->count = 0;
    uint64_t residue = 0;
    bool good = board_open(&board, game, without_limits(game), error);
    good = good && fill(&board, moves, 1);
    for (uint64_t size = 2; good && size <= game->largest; size *= 2) {
        /* The residue may stay or move on by half: whichever pins more holes with fewer units. */
        const uint64_t other = residue + size / 2;
        if (kept_units(&board, size, other) < kept_units(&board, size, residue))
            residue = other;
        good = keep_only(&board, moves, size, residue) && fill(&board, moves, (uint32_t)size);
    }
    board_close(&board);
    return good;
}

/* ---- hill climbing ---- */

static int32_t random_move(const attack_game *game, uint64_t *random)
{
    const uint64_t number = vram_next_random(random);
    if (number & 1)
        return (int32_t)(1 + (number >> 1) % game->largest);
    const uint64_t index = (number >> 1) % game->live;
    return index == 0 ? ATTACK_OLDEST : -(int32_t)index;
}

/* Inserts, deletes, replaces or exchanges some moves that lie together. */
static bool mutate(const attack_game *game, attack_moves *moves, uint64_t *random)
{
    const uint64_t changes = 1 + vram_next_random(random) % 4;
    const uint64_t what = vram_next_random(random) % 4;
    for (uint64_t k = 0; k < changes; k++) {
        const size_t at = vram_next_random(random) % (moves->count + 1);
        if (what == 0 || moves->count < 2) {
            if (!attack_append(moves, 0))
                return false;
            memmove(&moves->list[at + 1], &moves->list[at],
                    (moves->count - 1 - at) * sizeof *moves->list);
            moves->list[at] = random_move(game, random);
        } else if (at == moves->count) {
            continue;
        } else if (what == 1) {
            memmove(&moves->list[at], &moves->list[at + 1],
                    (--moves->count - at) * sizeof *moves->list);
        } else if (what == 2) {
            moves->list[at] = random_move(game, random);
        } else {
            const size_t with = vram_next_random(random) % moves->count;
            const int32_t kept = moves->list[at];
            moves->list[at] = moves->list[with];
            moves->list[with] = kept;
        }
    }
    return true;
}

static bool copy_moves(attack_moves *to, const attack_moves *from)
{
    if (!vram_reserve((void **)&to->list, &to->capacity, from->count + 1, sizeof *to->list))
        return false;
    if (from->count > 0) /* else its list may be NULL */
        memcpy(to->list, from->list, from->count * sizeof *to->list);
    to->count = from->count;
    return true;
}

/* The highest end of a block in an arena of so many units; one more than the arena if one is
 * refused. */
static bool score_in(const attack_game *game, const attack_moves *moves, uint64_t arena_units,
                     uint64_t *score, vram_error *error)
{
    attack_board board;
    const bool played = play(&board, game, moves, arena_units, error);
    *score = board.refused ? arena_units + 1 : board.extent_units;
    return played;
}

/* Raises the arena as long as the moves fail in it. */
static bool raise_arena(const attack_game *game, const attack_moves *moves, uint64_t *arena_units,
                        uint64_t *score, vram_error *error)
{
    bool good = score_in(game, moves, *arena_units, score, error);
    while (good && *score > *arena_units)
        good = score_in(game, moves, ++*arena_units, score, error);
    return good;
}

static void swap_moves(attack_moves *a, attack_moves *b)
{
    const attack_moves kept = *a;
    *a = *b;
    *b = kept;
}

bool attack_climb(const attack_game *game, attack_moves *moves, uint64_t tries, uint64_t seed,
                  uint64_t *needed_units, void (*progress)(void *context, double share),
                  vram_error *error)
{
    const size_t longest = moves->count + 16 * (size_t)game->live;
    attack_moves changed = {NULL, 0, 0};
    attack_moves failing = {NULL, 0, 0};
    uint64_t random = seed;
    uint64_t arena_units = game->live;
    uint64_t best;
    bool good = raise_arena(game, moves, &arena_units, &best, error) && copy_moves(&failing, moves);
    for (uint64_t k = 0; good && k < tries; k++) {
        if (progress != NULL && k % 256 == 0)
            progress(NULL, (double)k / (double)tries);
        uint64_t score;
        good = (copy_moves(&changed, moves) && mutate(game, &changed, &random)) ||
               vram_fail(error, "out of host memory");
        if (!good || changed.count > longest)
            continue;
        good = score_in(game, &changed, arena_units, &score, error);
        if (!good || score < best)
            continue;
        best = score;
        swap_moves(moves, &changed);
        if (score > arena_units)
            good =
                copy_moves(&failing, moves) && raise_arena(game, moves, &arena_units, &best, error);
    }
    swap_moves(moves, &failing);
    attack_free(&failing);
    attack_free(&changed);
    *needed_units = arena_units;
    return good;
}

/* ---- bounds and files ---- */

uint64_t attack_bound(const attack_game *game)
{
    const uint64_t log2 = 31 - (uint32_t)__builtin_clz(game->largest);
    const uint64_t live = game->live;
    return live * log2 / 2 + live - (UINT64_C(1) << log2) + 1;
}

/* Writes a move as it is played; `names` are of the blocks alive, oldest first. */
static void write_move(attack_board *board, FILE *out, uint64_t *names, uint64_t *born,
                       int32_t move)
{
    if (!board_allows(board, move))
        return;
    if (move > 0) {
        names[board->count] = ++*born;
        fprintf(out, "a %" PRIu64 " %" PRIu64 "\n", *born,
                (uint64_t)move * board->game->unit_bytes);
    } else {
        const size_t index = released_by(move);
        fprintf(out, "f %" PRIu64 "\n", names[index]);
        memmove(&names[index], &names[index + 1], (board->count - index - 1) * sizeof *names);
    }
    board_play(board, move);
}

static void write_all(attack_board *board, const attack_moves *moves, FILE *out, uint64_t *names)
{
    const attack_game *game = board->game;
    uint64_t born = 0;
    fprintf(out,
            "vramlab trace 1\n# found by vramlab attack %s: %" PRIu32
            " units live, blocks of at most "
            "%" PRIu32 "\nunit %" PRIu64 "\n",
            game->spec, game->live, game->largest, game->unit_bytes);
    for (size_t i = 0; i < moves->count; i++)
        write_move(board, out, names, &born, moves->list[i]);
    while (board->count > 0)
        write_move(board, out, names, &born, ATTACK_OLDEST);
}

bool attack_write(const attack_game *game, const attack_moves *moves, const char *path,
                  vram_error *error)
{
    attack_board board;
    vram_output output;
    uint64_t *names = malloc((game->live + 1) * sizeof *names);
    if (names == NULL)
        return vram_fail(error, "out of host memory");
    bool good = board_open(&board, game, without_limits(game), error);
    if (good && vram_output_open(&output, path, error)) {
        write_all(&board, moves, output.file, names);
        good = vram_output_commit(&output, error);
    } else {
        good = false;
    }
    board_close(&board);
    free(names);
    return good;
}
