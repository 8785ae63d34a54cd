/* attack.c - the game against allocators, whose worst cases are known exactly for small games. */
#include "shell.h"

#include "study/attack.h"

#include <criterion/new/assert.h>
#include <unistd.h>

/* The least arena in which no sequence fails, first fit and best fit with the lowest of equals. */
static const struct {
    uint32_t live, largest;
    uint64_t first, best;
} solved[] = {{4, 2, 6, 6}, {6, 2, 9, 9},   {8, 2, 12, 13},
              {5, 3, 8, 9}, {6, 3, 10, 12}, {6, 4, 10, 12}};
enum { SOLVED = sizeof solved / sizeof solved[0] };

static void expect_needs(const char *spec, uint32_t live, uint32_t largest, uint64_t expected)
{
    const attack_game game = {spec, 512, live, largest};
    attack_moves moves = {NULL, 0, 0};
    uint64_t units = 0;
    bool failed = false;
    vram_error error = {""};
    cr_assert(attack_exhaust(&game, 1000000, &moves, &units, &error), "%s", error.text);
    cr_expect(eq(u64, units, expected), "%s (%u, %u)", spec, live, largest);
    cr_assert(attack_fails(&game, &moves, units - 1, &failed, &error));
    cr_expect(failed, "%s (%u, %u): the moves fail one unit below", spec, live, largest);
    cr_assert(attack_fails(&game, &moves, units, &failed, &error));
    cr_expect(not(failed), "%s (%u, %u)", spec, live, largest);
    attack_free(&moves);
}

Test(attack, small_games_end_as_solved_elsewhere_for_first_fit)
{
    for (size_t i = 0; i < SOLVED; i++)
        expect_needs("list:policy=first", solved[i].live, solved[i].largest, solved[i].first);
}

Test(attack, small_games_end_as_solved_elsewhere_for_best_fit)
{
    for (size_t i = 0; i < SOLVED; i++)
        expect_needs("list:policy=best", solved[i].live, solved[i].largest, solved[i].best);
}

/* With one size there is nothing to fragment; N(n, 2) = floor((3n - 1) / 2) and N(16, 2) = 23. */
Test(attack, the_bound_is_robsons)
{
    static const uint64_t known[][3] = {{4, 1, 4},   {4, 2, 5}, {6, 2, 8},    {8, 2, 11},
                                        {16, 2, 23}, {6, 4, 9}, {64, 16, 177}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const attack_game game = {"list", 512, (uint32_t)known[i][0], (uint32_t)known[i][1]};
        cr_expect(eq(u64, attack_bound(&game), known[i][2]), "case %zu", i);
    }
}

Test(attack, robsons_adversary_forces_the_bound_on_every_policy)
{
    static const char *const specs[] = {"list:policy=first",
                                        "list:policy=best",
                                        "list:policy=next",
                                        "list:policy=worst",
                                        "tlsf",
                                        "buddy"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        const attack_game game = {specs[i], 512, 64, 16};
        attack_moves moves = {NULL, 0, 0};
        bool failed = false;
        vram_error error = {""};
        cr_assert(attack_robson(&game, &moves, &error), "%s", error.text);
        /* A policy may be luckier in an arena of some size than without limits, by a few units. */
        cr_assert(attack_fails(&game, &moves, attack_bound(&game) * 9 / 10, &failed, &error));
        cr_expect(failed, "%s", specs[i]);
        attack_free(&moves);
    }
}

Test(attack, climbing_never_ends_below_where_it_began_and_is_the_same_twice)
{
    const attack_game game = {"list:policy=best", 512, 24, 8};
    uint64_t units[2];
    uint64_t robson = 0;
    for (int k = 0; k < 2; k++) {
        attack_moves moves = {NULL, 0, 0};
        bool failed = false;
        vram_error error = {""};
        cr_assert(attack_robson(&game, &moves, &error));
        cr_assert(attack_climb(&game, &moves, 0, 1, &robson, NULL, &error));
        cr_assert(attack_climb(&game, &moves, 5000, 7, &units[k], NULL, &error));
        cr_assert(attack_fails(&game, &moves, units[k] - 1, &failed, &error));
        cr_assert(failed);
        attack_free(&moves);
    }
    cr_assert(units[0] >= robson);
    cr_assert(eq(u64, units[0], units[1]));
}

Test(attack, what_is_written_needs_the_arena_that_was_told)
{
    char path[] = P_tmpdir "/vramlab-attack-XXXXXX";
    const int file = mkstemp(path);
    cr_assert(file >= 0);
    close(file);
    said *found = vramlab("attack list:policy=best --live 6 --largest 3 -o %s --format csv", path);
    cr_assert(found->status == 0, "%s", found->text);
    cr_expect(strstr(found->text, "every sequence,12,2.000000") != NULL, "%s", found->text);
    said *fit = vramlab("fit %s --backend list:policy=best --format csv", path);
    cr_assert(fit->status == 0, "%s", fit->text);
    cr_expect(eq(dbl, csv_number(fit->text, 1, "no_failure_from_bytes"), 12 * 512));
    free(fit);
    free(found);
    unlink(path);
}

Test(attack, wrong_games_are_refused)
{
    static const char *const wrong[][2] = {
        {"", "one backend is expected"},
        {"liszt", "no backend is called 'liszt'"},
        {"list --live 0", "--live: 0 is out of range"},
        {"list --live 4 --largest 5", "--largest: 5 is out of range"},
        {"list --unit 3", "--unit: 3 is no power of two"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        said *answer = vramlab("attack %s", wrong[i][0]);
        cr_expect(answer->status == 2, "%s", wrong[i][0]);
        cr_expect(strstr(answer->text, wrong[i][1]) != NULL, "%s", answer->text);
        free(answer);
    }
}
