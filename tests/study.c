/* study.c - study files, their cells, and sweeps that are stopped, resumed, or run cell by cell. */
#include "shell.h"

#include "study/study.h"

#include <criterion/new/assert.h>
#include <unistd.h>

#define HEAD   "[study]\nmeasure = replay\n"
#define TRACES "[traces]\ngenerate:mix,ops=2000,live=100,seed={seed}\n"
#define REST   TRACES "[backends]\nbuddy\nlist:policy=best\n[arenas]\n100%\n120%\n150%\n"

/* A folder that is gone when the test is over, with the text in study.ini. */
static void with_study(const char *text, char folder[64])
{
    strcpy(folder, P_tmpdir "/vramlab-study-XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
    char path[96];
    snprintf(path, sizeof path, "%s/study.ini", folder);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL);
    fputs(text, file);
    fclose(file);
}

static void remove_folder(const char *folder)
{
    char line[128];
    snprintf(line, sizeof line, "rm -rf '%s'", folder);
    cr_assert(system(line) == 0);
}

static char *file_text(const char *folder, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s", path);
    char *text = calloc(1, 1 << 20);
    cr_assert(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static bool load(const char *text, study *out, vram_error *error)
{
    char folder[64];
    char path[96];
    with_study(text, folder);
    snprintf(path, sizeof path, "%s/study.ini", folder);
    const bool good = study_load(path, out, error);
    remove_folder(folder);
    return good;
}

Test(study, a_wrong_line_is_named_with_what_would_be_right)
{
    static const struct {
        const char *text, *told;
    } wrong[] = {
        {"measure = fit\n", ":1: 'measure = fit': expected a section"},
        {"[studies]\n", ":1: 'studies': expected one of [study]"},
        {"[study]\nmeasure = size\n", ":2: 'size': expected fit, replay or time"},
        {"[study]\nmeasure\n", ":2: 'measure': expected KEY = VALUE"},
        {"[study]\ncolour = red\n", ":2: 'colour': expected one of title, measure"},
        {"[study]\nseeds = 1 two\n", ":2: 'two': expected a number of at least 1"},
        {"[study]\nrepetitions = 0\n", ":2: '0': expected a number of at least 1"},
        {"[study]\nstep = 2\n", ":2: '2': expected a share"},
        {"[study]\nasks = yes\n", ":2: 'yes': expected on or off"},
        {"[traces]\nno/such.file\n", ":2: 'no/such.file': expected a file that exists"},
        {HEAD, "[traces] names none"},
        {HEAD "[traces]\n?no/such.file\n", "[traces] names none"},
        {HEAD TRACES, "[backends] is empty"},
        {HEAD TRACES "[backends]\nbuddy\n", "[arenas] is empty"},
        {"[study]\nmeasure = fit\n" REST, "[arenas] means nothing to measure = fit"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        study loaded;
        vram_error error = {""};
        cr_expect(not(load(wrong[i].text, &loaded, &error)), "%s", wrong[i].text);
        cr_expect(strstr(error.text, wrong[i].told) != NULL, "%s\n%s", wrong[i].text, error.text);
        study_free(&loaded);
    }
}

Test(study, cells_are_all_combinations_each_once)
{
    study loaded;
    vram_error error = {""};
    cr_assert(load("# three seeds, twice\n" HEAD
                   "seeds = 1 2 3 # and no more\nrepetitions = 2\n" REST,
                   &loaded, &error),
              "%s", error.text);
    const size_t count = study_cells(&loaded);
    cr_assert(eq(sz, count, 3 * 2 * 2 * 3));
    study_cell cells[36];
    for (size_t i = 0; i < count; i++)
        cr_assert(study_cell_at(&loaded, i, "v1", &cells[i]));
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++) {
            const bool same = cells[i].backend == cells[k].backend &&
                              cells[i].arena == cells[k].arena &&
                              cells[i].repetition == cells[k].repetition &&
                              strcmp(cells[i].trace, cells[k].trace) == 0;
            cr_assert(not(same), "%zu and %zu", i, k);
            cr_assert(strcmp(cells[i].name, cells[k].name) != 0);
        }
    cr_assert(strstr(cells[0].trace, "seed=1") != NULL);
    cr_assert(strstr(cells[count - 1].trace, "seed=3") != NULL);
    for (size_t i = 0; i < count; i++)
        study_cell_free(&cells[i]);
    study_free(&loaded);
}

Test(study, a_trace_without_a_seed_has_no_cell_a_seed_and_a_race_holds_all_backends)
{
    study loaded;
    vram_error error = {""};
    cr_assert(load("[study]\nmeasure = time\nseeds = 1 2 3\n[traces]\ngenerate:mix,ops=2000\n"
                   "[backends]\nbuddy\ntlsf\n[arenas]\n1GiB\n",
                   &loaded, &error),
              "%s", error.text);
    cr_assert(eq(sz, study_cells(&loaded), 1));
    study_cell cell;
    cr_assert(study_cell_at(&loaded, 0, "v1", &cell));
    cr_assert(cell.backend == NULL);
    study_cell_free(&cell);
    study_free(&loaded);
}

/* The name under which a cell's result is found again. */
static void first_name(const char *text, const char *version, char name[48])
{
    study loaded;
    study_cell cell;
    vram_error error = {""};
    cr_assert(load(text, &loaded, &error), "%s", error.text);
    cr_assert(study_cell_at(&loaded, 0, version, &cell));
    strcpy(name, cell.name);
    study_cell_free(&cell);
    study_free(&loaded);
}

Test(study, the_name_of_a_cell_changes_with_all_that_its_result_depends_on)
{
    static const char *const others[] = {
        HEAD "seeds = 2\n" REST,
        HEAD "compact = every=100\n" REST,
        "[study]\nmeasure = time\n" REST,
        HEAD TRACES "[backends]\nbuddy:trim=on\n[arenas]\n100%\n",
        HEAD TRACES "[backends]\nbuddy\n[arenas]\n101%\n",
        HEAD "[traces]\ngenerate:mix,ops=2001,live=100\n[backends]\nbuddy\n[arenas]\n100%\n",
    };
    char name[48];
    char other[48];
    first_name(HEAD REST, "v1", name);
    first_name(HEAD "title = words change nothing\n" REST, "v1", other);
    cr_assert(eq(str, other, name));
    first_name(HEAD REST, "v2", other);
    cr_assert(ne(str, other, name));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        first_name(others[i], "v1", other);
        cr_assert(ne(str, other, name), "%s", others[i]);
    }
}

/* ---- sweeps ---- */

static void sweep(const char *folder, const char *options, int status)
{
    said *answer = vramlab("sweep %s/study.ini --out %s/%s", folder, folder, options);
    cr_assert(answer->status == status, "%s: %d\n%s", options, answer->status, answer->text);
    free(answer);
}

Test(study, a_sweep_that_lost_cells_runs_these_and_no_others)
{
    char folder[64];
    char line[256];
    with_study(HEAD "seeds = 1 2\n" REST, folder);
    sweep(folder, "a", 0);
    char *whole = file_text(folder, "a/study.csv");
    cr_assert(eq(dbl, csv_number(whole, 12, "cell"), 11));

    /* One cell is lost, another is spoilt: the first is made again, the second taken as it is. */
    snprintf(line, sizeof line,
             "cd %s/a/cells && rm 00003-* && for f in 00005-*; do echo x >$f; done", folder);
    cr_assert(system(line) == 0);
    sweep(folder, "a --collect", 1);
    sweep(folder, "a", 0);
    char *resumed = file_text(folder, "a/study.csv");
    cr_assert(strlen(resumed) < strlen(whole), "the spoilt cell was run again");
    sweep(folder, "a --again", 0);
    char *again = file_text(folder, "a/study.csv");
    cr_assert(eq(str, again, whole));
    free(again);
    free(resumed);
    free(whole);
    remove_folder(folder);
}

Test(study, a_sweep_takes_more_or_fewer_seeds_and_repetitions)
{
    char folder[64];
    with_study(HEAD "seeds = 7 8\n[traces]\ngenerate:mix,ops=500,live=20,seed={seed}\n"
                    "[backends]\nbuddy\n[arenas]\n100%\n",
               folder);
    sweep(folder, "a --seeds 3 --repetitions 2", 0);
    char *text = file_text(folder, "a/study.csv");
    size_t lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    cr_assert(eq(sz, lines, 1 + 3 * 2)); /* a header, and three seeds twice */
    cr_assert(strstr(text, "seed=1\",1,1,") != NULL && strstr(text, "seed=3\",3,2,") != NULL, "%s",
              text);
    cr_assert(strstr(text, "seed=7") == NULL, "%s", text);
    free(text);
    sweep(folder, "b --seeds 10001", 2);
    sweep(folder, "b --seeds 0", 2);
    sweep(folder, "b --seeds many", 2);
    sweep(folder, "b --repetitions 0", 2);
    remove_folder(folder);
}

Test(study, cell_by_cell_in_any_order_gives_the_same_rows)
{
    char folder[64];
    char line[512];
    with_study(HEAD "seeds = 7 8\n" REST, folder);
    sweep(folder, "all --jobs 3", 0);
    snprintf(line, sizeof line,
             "\"$VRAMLAB\" sweep %s/study.ini --list | tac | while read -r cell; do "
             "\"$VRAMLAB\" sweep %s/study.ini --out %s/each --cell $cell || exit 1; done",
             folder, folder, folder);
    cr_assert(system(line) == 0);
    sweep(folder, "each --collect", 0);
    char *all = file_text(folder, "all/study.csv");
    char *each = file_text(folder, "each/study.csv");
    cr_assert(eq(str, each, all));
    free(each);
    free(all);
    sweep(folder, "each --cell 00000-0123456789abcdef", 2);
    sweep(folder, "each --cell first", 2);
    remove_folder(folder);
}

Test(study, a_cell_that_cannot_run_is_told_and_costs_no_other)
{
    char folder[64];
    with_study(HEAD TRACES "[backends]\nbuddy\nno-such\n[arenas]\n100%\n", folder);
    said *answer = vramlab("sweep %s/study.ini --out %s/a", folder, folder);
    cr_expect(answer->status == 2);
    cr_expect(strstr(answer->text, "no backend is called 'no-such'") != NULL, "%s", answer->text);
    cr_expect(strstr(answer->text, "1 of 2 cells") != NULL, "%s", answer->text);
    free(answer);
    remove_folder(folder);
}

/* ---- summaries ---- */

static said *stats(const char *rows, const char *options)
{
    char folder[64];
    with_study(rows, folder);
    said *answer = vramlab("stats %s/study.ini %s --format csv", folder, options);
    remove_folder(folder);
    return answer;
}

Test(study, rows_are_grouped_filtered_and_compared_pair_by_pair)
{
    static const char rows[] = "trace,arena,seed,repetition,stack,smallest_ratio,run\n"
                               "a,,1,1,x,1,\n"
                               "a,,1,1,y,2,\n"
                               "b,,1,1,\"y\",8,\n"
                               "b,,1,1,x,4,\n"
                               "c,,1,1,x,,\n"
                               "c,,1,1,y,100,\n";
    said *answer = stats(rows, "--against stack=x");
    cr_assert(answer->status == 0, "%s", answer->text);
    char text[256];
    cr_expect(eq(str, (char *)csv_field(answer->text, 1, "stack", text), "x"));
    cr_expect(eq(dbl, csv_number(answer->text, 1, "count"), 2));
    cr_expect(eq(dbl, csv_number(answer->text, 1, "missing"), 1));
    cr_expect(epsilon_eq(dbl, csv_number(answer->text, 1, "value"), 2, 1e-5));
    cr_expect(eq(dbl, csv_number(answer->text, 2, "count"), 3));
    cr_expect(epsilon_eq(dbl, csv_number(answer->text, 2, "ratio"), 2, 1e-5));
    cr_expect(eq(dbl, csv_number(answer->text, 2, "more"), 2), "c has no partner");
    free(answer);
    answer = stats(rows, "--where 'stack=y;trace=b' --statistic median --by trace");
    cr_expect(epsilon_eq(dbl, csv_number(answer->text, 1, "value"), 8, 1e-5));
    free(answer);
    answer = stats(rows, "--value colour");
    cr_expect(answer->status == 2);
    cr_expect(strstr(answer->text, "the file has no column 'colour'") != NULL);
    free(answer);
}

Test(study, times_of_different_runs_are_no_pair)
{
    said *answer = stats("trace,arena,seed,repetition,stack,ns,run\n"
                         "a,,1,1,x,1,first\n"
                         "a,,1,1,y,2,second\n",
                         "--value ns --against stack=x");
    cr_assert(answer->status == 0, "%s", answer->text);
    char text[256];
    cr_expect(eq(str, (char *)csv_field(answer->text, 2, "ratio", text), ""));
    cr_expect(eq(dbl, csv_number(answer->text, 2, "more"), 0));
    free(answer);
    answer = stats("trace,ns\na,1,2\n", "--value ns --by trace");
    cr_expect(answer->status == 2);
    cr_expect(strstr(answer->text, ":2: expected 2 fields") != NULL, "%s", answer->text);
    free(answer);
}

Test(study, a_misspelt_question_is_no_empty_answer)
{
    static const char rows[] = "trace,arena,seed,repetition,stack,smallest_ratio\n"
                               "a,,1,1,x,1\n"
                               "a,,1,1,y,none\n";
    static const struct {
        const char *options;
        const char *said;
    } cases[] = {
        {"--where stack=z", "--where: no row has stack=z"},
        {"--against stack=z", "--against: no row has stack=z"},
        {"--where stack=y --against stack=x", "--against: no row has stack=x"},
        {"--value stack", "row 1: stack is 'x', expected a number"},
        {"", "row 2: smallest_ratio is 'none', expected a number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        said *answer = stats(rows, cases[i].options);
        cr_expect(answer->status == 2 && strstr(answer->text, cases[i].said) != NULL, "%s: %d\n%s",
                  cases[i].options, answer->status, answer->text);
        free(answer);
    }
    said *answer = stats(rows, "--where stack=x");
    cr_expect(answer->status == 0, "%s", answer->text);
    free(answer);
}
