/*
 * cmd_attack.c - `vramlab attack`: the worst trace that can be found for a backend.
 */
#include "cli/command.h"

#include "study/attack.h"

#include <vramlab/registry.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Up to here every sequence is tried unless it is forbidden: some seconds. */
enum { SMALL_LIVE = 8, SMALL_LARGEST = 4, MOST_LAYOUTS = 5000000 };

typedef struct fields {
    uint64_t live, largest;
    const char *unit;
    uint64_t tries, restarts, seed;
    bool exhaust;
    const char *out;
    const char *format;
} fields;

static const option_row options[] = {
    {.name = "--live",
     .kind = OPTION_COUNT,
     .value = "UNITS",
     .offset = offsetof(fields, live),
     .help = "most that may be alive at once (default 64)"},
    {.name = "--largest",
     .kind = OPTION_COUNT,
     .value = "UNITS",
     .offset = offsetof(fields, largest),
     .help = "largest block (default 16)"},
    {.name = "--unit",
     .kind = OPTION_TEXT,
     .value = "SIZE",
     .offset = offsetof(fields, unit),
     .help = "bytes of a unit, a power of two (default 512)"},
    {.name = "--tries",
     .kind = OPTION_COUNT,
     .value = "N",
     .offset = offsetof(fields, tries),
     .help = "changes tried by each climb (default 100000)"},
    {.name = "--restarts",
     .kind = OPTION_COUNT,
     .value = "N",
     .offset = offsetof(fields, restarts),
     .help = "climbs from nothing, beside the one from Robson's sequence (default 4)"},
    {.name = "--seed",
     .kind = OPTION_COUNT,
     .value = "N",
     .offset = offsetof(fields, seed),
     .help = "of the random changes (default 1)"},
    {.name = "--exhaust",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, exhaust),
     .help = "also try every sequence, as is done for up to 8 units live and blocks of up to 4"},
    {.name = "--out",
     .alias = "-o",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .offset = offsetof(fields, out),
     .help = "write the worst sequence as a trace, releases that balance it included"},
    {.name = "--format",
     .kind = OPTION_WORD,
     .words = "table|csv|json",
     .offset = offsetof(fields, format),
     .help = "what to print"},
    {.name = NULL},
};

static int attack_run(int count, char **arguments);

const command command_attack = {
    .name = "attack",
    .usage = "BACKEND [--live N] [--largest M] [-o FILE]",
    .summary = "the worst trace that can be found for a backend",
    .text =
        "Looks for a sequence of allocations and releases, with at most N units alive and blocks\n"
        "of at most M, that needs as large an arena as possible: Robson's adversary, hill "
        "climbing\n"
        "from it and from nothing, and in small games every sequence there is. What is found "
        "stands\n"
        "beside what any allocator that moves nothing needs at worst: N (log2 M / 2 + 1) - M + "
        "1.\n\n"
        "  vramlab attack list:policy=best --live 6 --largest 3\n"
        "  vramlab attack tlsf --live 256 --largest 64 -o worst.trace",
    .options = options,
    .run = attack_run,
};

static const column columns[] = {
    {"backend", NULL, COLUMN_TEXT},
    {"live_units", NULL, COLUMN_NUMBER},
    {"largest_units", NULL, COLUMN_NUMBER},
    {"method", "method", COLUMN_TEXT},
    {"arena_units", "arena needed", COLUMN_NUMBER},
    {"arena_ratio", "of live", COLUMN_NUMBER},
    {"moves", "moves", COLUMN_NUMBER},
    {"exact", NULL, COLUMN_TEXT},
};

typedef struct attack {
    attack_game game;
    const fields *given;
    table *rows;
    attack_moves worst; /* fails one unit below worst_units */
    uint64_t worst_units;
    vram_error *error;
} attack;

static void add_row(attack *self, const char *method, uint64_t units, size_t moves, bool exact)
{
    table *const rows = self->rows;
    table_row(rows);
    table_set(rows, "backend", "%s", self->game.spec);
    table_set(rows, "live_units", "%" PRIu32, self->game.live);
    table_set(rows, "largest_units", "%" PRIu32, self->game.largest);
    table_set(rows, "method", "%s", method);
    table_set(rows, "arena_units", "%" PRIu64, units);
    table_set(rows, "arena_ratio", "%.6f", (double)units / self->game.live);
    table_show(rows, "arena_ratio", "%.3f", (double)units / self->game.live);
    if (moves > 0)
        table_set(rows, "moves", "%zu", moves);
    table_set(rows, "exact", "%s", exact ? "yes" : "no");
}

/* Keeps the moves when they are worse than what was known; takes them over in any case. */
static void note(attack *self, attack_moves *moves, uint64_t units)
{
    if (units > self->worst_units) {
        attack_free(&self->worst);
        self->worst = *moves;
        self->worst_units = units;
        *moves = (attack_moves){NULL, 0, 0};
    }
    attack_free(moves);
}

static bool run_robson(attack *self, attack_moves *moves)
{
    uint64_t units;
    if (!attack_robson(&self->game, moves, self->error) ||
        !attack_climb(&self->game, moves, 0, 1, &units, NULL, self->error))
        return false;
    add_row(self, "Robson's adversary", units, moves->count, false);
    return true;
}

/* From Robson's sequence, then from nothing; one row for the best of them. */
static bool run_climbs(attack *self, attack_moves *moves)
{
    uint64_t most = 0;
    size_t count = 0;
    bool good = true;
    for (uint64_t k = 0; good && k <= self->given->restarts; k++) {
        uint64_t units = 0;
        progress_begin("hill climbing");
        good = attack_climb(&self->game, moves, self->given->tries, self->given->seed + k, &units,
                            progress_show, self->error);
        progress_end();
        if (units > most) {
            most = units;
            count = moves->count;
        }
        if (good)
            note(self, moves, units);
        *moves = (attack_moves){NULL, 0, 0};
    }
    if (good)
        add_row(self, "hill climbing", most, count, false);
    return good;
}

static bool run_exhaust(attack *self)
{
    attack_moves moves = {NULL, 0, 0};
    uint64_t units;
    if (!attack_exhaust(&self->game, MOST_LAYOUTS, &moves, &units, self->error)) {
        attack_free(&moves);
        return false;
    }
    add_row(self, "every sequence", units, moves.count, true);
    note(self, &moves, units);
    return true;
}

static bool play(attack *self)
{
    attack_moves moves = {NULL, 0, 0};
    const bool small = self->game.live <= SMALL_LIVE && self->game.largest <= SMALL_LARGEST;
    const bool good = run_robson(self, &moves) && run_climbs(self, &moves) &&
                      (!(small || self->given->exhaust) || run_exhaust(self));
    attack_free(&moves);
    if (good)
        add_row(self, "any allocator, at least", attack_bound(&self->game), 0, false);
    return good && (self->given->out == NULL ||
                    attack_write(&self->game, &self->worst, self->given->out, self->error));
}

static int report(const attack *self)
{
    const table_format format = table_format_of(self->given->format);
    if (format == TABLE_TEXT)
        printf("%s against at most %" PRIu32 " units alive, blocks of at most %" PRIu32
               " (a unit is %" PRIu64 " B).\n\n",
               self->game.spec, self->game.live, self->game.largest, self->game.unit_bytes);
    table_write(self->rows, format, stdout);
    if (format == TABLE_TEXT && self->given->out != NULL)
        printf("\nWritten to %s: it fails in an arena of %" PRIu64 " B.\n", self->given->out,
               (self->worst_units - 1) * self->game.unit_bytes);
    return EXIT_DONE;
}

static int settle_game(const fields *given, const char *spec, attack_game *game)
{
    vram_error error = {""};
    uint64_t unit_bytes = 512;
    if (!vram_spec_is_valid(spec, &error))
        return fail_with(&command_attack, "%s", error.text);
    if (given->unit != NULL && !vram_parse_size(given->unit, 0, &unit_bytes, &error))
        return fail_with(&command_attack, "--unit: %s", error.text);
    if (unit_bytes == 0 || (unit_bytes & (unit_bytes - 1)) != 0 || unit_bytes > (1 << 30))
        return fail_with(&command_attack, "--unit: %s is no power of two up to 1GiB", given->unit);
    if (given->live < 1 || given->live > 65536)
        return fail_with(&command_attack, "--live: %" PRIu64 " is out of range: 1 to 65536",
                         given->live);
    if (given->largest < 1 || given->largest > given->live)
        return fail_with(&command_attack, "--largest: %" PRIu64 " is out of range: 1 to --live",
                         given->largest);
    *game = (attack_game){spec, unit_bytes, (uint32_t)given->live, (uint32_t)given->largest};
    return -1;
}

static int attack_run(int count, char **arguments)
{
    fields given = {
        .live = 64, .largest = 16, .tries = 100000, .restarts = 4, .seed = 1, .format = "table"};
    int status = options_read(&command_attack, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (count != 1)
        return fail_with(&command_attack, "one backend is expected: vramlab attack BACKEND");
    vram_error error = {""};
    attack self = {.given = &given, .error = &error};
    status = settle_game(&given, arguments[0], &self.game);
    if (status >= 0)
        return status;
    self.rows = table_new(columns, sizeof columns / sizeof columns[0]);
    status = play(&self) ? report(&self) : fail_with(&command_attack, "%s", error.text);
    table_free(self.rows);
    attack_free(&self.worst);
    return status;
}
