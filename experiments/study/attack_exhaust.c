/*
 * attack_exhaust.c - every sequence, in small games.
 *
 *      empty ---a1---> |1.....| ---a2---> |122...| ...     A node is a layout of the arena, an edge
 * a
 *         \\                                                move. Layouts are visited in the order
 * of
 *          ---a2---> |22....|                               the moves that lead to them, each once.
 *
 * A backend cannot be copied, so each layout remembers its last move and its parent, and is reached
 * again by playing the whole path. The first refusal ends the search: its path is the shortest
 * sequence that fails.
 */
#include "attack_board.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct layout {
    uint64_t key[2]; /* 128 bits of hash over the spans, tiny odds that two layouts share one */
    uint32_t parent;
    int32_t move;
} layout;

typedef struct search {
    const attack_game *game;
    uint64_t arena_units;
    layout *layouts; /* in the order of their discovery; the first is the empty arena */
    size_t count, capacity;
    uint32_t *table; /* index + 1 by hash, 0 free; a power of two of them */
    size_t table_size;
    int32_t *path; /* scratch */
    size_t path_capacity;
    uint64_t most;
    vram_error *error;
} search;

/* ---- layouts met ---- */

static void mix_span(void *context, const vram_span *span)
{
    uint64_t *const key = context;
    const uint64_t word = span->size_bytes << 3 | (uint64_t)span->kind;
    for (int i = 0; i < 2; i++) {
        key[i] ^= word + UINT64_C(0x9e3779b97f4a7c15) + (key[i] << 6) + (key[i] >> 2);
        key[i] = vram_next_random(&key[i]);
    }
}

static void key_of(const attack_board *board, uint64_t key[2])
{
    key[0] = 1;
    key[1] = 2;
    vram_walk(board->backend, mix_span, key);
}

static void put(search *self, uint32_t index)
{
    size_t at = self->layouts[index].key[0] & (self->table_size - 1);
    while (self->table[at] != 0)
        at = (at + 1) & (self->table_size - 1);
    self->table[at] = index + 1;
}

static bool is_known(const search *self, const uint64_t key[2])
{
    size_t at = key[0] & (self->table_size - 1);
    for (; self->table[at] != 0; at = (at + 1) & (self->table_size - 1)) {
        const layout *const other = &self->layouts[self->table[at] - 1];
        if (other->key[0] == key[0] && other->key[1] == key[1])
            return true;
    }
    return false;
}

static bool grow_table(search *self)
{
    const size_t size = self->table_size > 0 ? 2 * self->table_size : 4096;
    uint32_t *table = calloc(size, sizeof *table);
    if (table == NULL)
        return false;
    free(self->table);
    self->table = table;
    self->table_size = size;
    for (uint32_t i = 0; i < self->count; i++)
        put(self, i);
    return true;
}

/* Adds the layout unless it was met before. */
static bool meet(search *self, const attack_board *board, uint32_t parent, int32_t move)
{
    layout met = {.parent = parent, .move = move};
    key_of(board, met.key);
    if (self->table_size > 0 && is_known(self, met.key))
        return true;
    if (self->count == self->most)
        return vram_fail(self->error,
                         "more than %" PRIu64 " layouts in an arena of %" PRIu64
                         " units: too large a game to exhaust",
                         self->most, self->arena_units);
    if (!vram_reserve((void **)&self->layouts, &self->capacity, self->count + 1,
                      sizeof *self->layouts))
        return vram_fail(self->error, "out of host memory");
    self->layouts[self->count++] = met;
    if (2 * self->count > self->table_size)
        return grow_table(self) || vram_fail(self->error, "out of host memory");
    put(self, (uint32_t)self->count - 1);
    return true;
}

/* ---- moves from one layout ---- */

static size_t path_to(search *self, uint32_t index)
{
    size_t length = 0;
    for (uint32_t at = index; at != 0; at = self->layouts[at].parent) {
        if (!vram_reserve((void **)&self->path, &self->path_capacity, length + 1,
                          sizeof *self->path))
            return SIZE_MAX;
        self->path[length++] = self->layouts[at].move;
    }
    for (size_t i = 0; i < length / 2; i++) {
        const int32_t kept = self->path[i];
        self->path[i] = self->path[length - 1 - i];
        self->path[length - 1 - i] = kept;
    }
    return length;
}

/* The k-th move there may be: allocations of 1 .. largest, then releases. */
static int32_t move_at(const search *self, uint32_t k)
{
    if (k < self->game->largest)
        return (int32_t)(k + 1);
    const uint32_t index = k - self->game->largest;
    return index == 0 ? ATTACK_OLDEST : -(int32_t)index;
}

/* Plays one move from a layout; *refused when it is an allocation that fails. */
static bool try_move(search *self, uint32_t from, size_t path_length, int32_t move, bool *refused)
{
    attack_board board;
    bool good = board_open(&board, self->game, self->arena_units, self->error);
    for (size_t i = 0; good && i < path_length; i++)
        board_play(&board, self->path[i]);
    if (good && board_allows(&board, move)) {
        board_play(&board, move);
        *refused = board.refused;
        good = board.refused || meet(self, &board, from, move);
    }
    board_close(&board);
    return good;
}

/* Is there a failing sequence in this arena? Its moves are then in `moves`. */
static bool search_arena(search *self, bool *fails, attack_moves *moves)
{
    attack_board board;
    self->count = 0;
    if (self->table != NULL)
        memset(self->table, 0, self->table_size * sizeof *self->table);
    bool good =
        board_open(&board, self->game, self->arena_units, self->error) && meet(self, &board, 0, 0);
    board_close(&board);
    *fails = false;
    for (uint32_t at = 0; good && !*fails && at < self->count; at++) {
        const size_t length = path_to(self, at);
        good = length != SIZE_MAX || vram_fail(self->error, "out of host memory");
        for (uint32_t k = 0; good && !*fails && k < self->game->largest + self->game->live; k++) {
            good = try_move(self, at, length, move_at(self, k), fails);
            if (!*fails)
                continue;
            moves->count = 0;
            for (size_t i = 0; good && i < length; i++)
                good = attack_append(moves, self->path[i]);
            good = good && attack_append(moves, move_at(self, k));
        }
    }
    return good;
}

bool attack_exhaust(const attack_game *game, uint64_t most, attack_moves *moves,
                    uint64_t *needed_units, vram_error *error)
{
    search self = {.game = game,
                   .arena_units = game->live,
                   .most = most < UINT32_MAX ? most : UINT32_MAX - 1,
                   .error = error};
    bool fails = true;
    bool good = true;
    for (; good && fails; self.arena_units += fails)
        good = search_arena(&self, &fails, moves);
    *needed_units = self.arena_units;
    free(self.path);
    free(self.table);
    free(self.layouts);
    return good;
}
