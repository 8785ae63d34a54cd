/*
 * cmd_sweep.c - `vramlab sweep`: runs a study's cells here, or one of them for a scheduler.
 *
 *   STUDY.ini -> cells -> DIR/cells/NAME.csv, each written whole or not at all -> DIR/STUDY.csv
 *
 * A cell's name holds a hash of all that it depends on, the commit included. So a finished cell is
 * a file that is there, resuming is running what is missing, and a changed study or program leaves
 * no stale rows behind in the result.
 */
#include "cli/cell.h"

#include "study/machine.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct fields {
    const char *out;
    uint64_t jobs;
    uint64_t seeds;
    uint64_t repetitions;
    const char *cell;
    bool list;
    bool collect;
    bool again;
} fields;

#define AS_IN_STUDY UINT64_MAX /* of --seeds, --repetitions */

static const option_row options[] = {
    {.name = "--out",
     .alias = "-o",
     .kind = OPTION_TEXT,
     .value = "DIR",
     .offset = offsetof(fields, out),
     .help = "where cells/ and NAME.csv go (default out/studies/NAME)"},
    {.name = "--jobs",
     .alias = "-j",
     .kind = OPTION_COUNT,
     .value = "N",
     .offset = offsetof(fields, jobs),
     .help = "cells at once (default: what the study says, else one a core)"},
    {.name = "--seeds",
     .kind = OPTION_COUNT,
     .value = "N",
     .offset = offsetof(fields, seeds),
     .help = "the seeds 1 to N instead of the study's (1 to 10000)"},
    {.name = "--repetitions",
     .kind = OPTION_COUNT,
     .value = "N",
     .offset = offsetof(fields, repetitions),
     .help = "so many instead of the study's"},
    {.name = "--again",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, again),
     .help = "also run the cells that are there"},
    {.name = "--list",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, list),
     .help = "print the names of the cells, a line each, and run nothing"},
    {.name = "--cell",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .offset = offsetof(fields, cell),
     .help = "run this cell only: what a scheduler calls"},
    {.name = "--collect",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, collect),
     .help = "run nothing, put the cells that are there into NAME.csv; exit 1 if some are missing"},
    {.name = NULL},
};

static int sweep_run(int count, char **arguments);

const command command_sweep = {
    .name = "sweep",
    .usage = "STUDY.ini [--out DIR] [--jobs N]",
    .summary = "run a study: traces x backends x arenas x seeds, one CSV row a cell",
    .text =
        "Runs every cell of a study on all cores and writes one CSV. A cell that was finished\n"
        "before is not run again, so that a sweep that was stopped goes on where it was. The\n"
        "format of a study is described at the top of experiments/study/study.h; studies are in\n"
        "experiments/studies. experiments/Snakefile runs the same cells here or on a cluster.\n\n"
        "  vramlab sweep experiments/studies/fit.ini\n"
        "  vramlab sweep experiments/studies/fit.ini --list",
    .options = options,
    .run = sweep_run,
};

typedef struct sweep {
    study study;
    const fields *given;
    char *folder; /* DIR */
    char *cells;  /* DIR/cells */
    size_t done, failed;
} sweep;

static bool cell_path(const sweep *self, const study_cell *cell, char **path)
{
    return asprintf(path, "%s/%s.csv", self->cells, cell->name) >= 0;
}

static bool cell_at(const sweep *self, size_t index, study_cell *cell)
{
    return study_cell_at(&self->study, index, machine_here().commit, cell);
}

static bool is_finished(const char *path)
{
    return access(path, R_OK) == 0;
}

static int run_cell(const sweep *self, const study_cell *cell, const char *path)
{
    table *rows = cell_table();
    vram_error error = {""};
    int status = cell_run(&command_sweep, &self->study, cell, rows);
    if (status == EXIT_DONE && !table_save(rows, TABLE_CSV, path, &error))
        status = fail_with(&command_sweep, "%s", error.text);
    table_free(rows);
    return status;
}

/* ---- all cells, some at once ---- */

/* Runs a cell in a process of its own: a crash costs one cell. It does not outlive this one. */
static bool start_cell(const sweep *self, const study_cell *cell, const char *path)
{
    const pid_t parent = getpid();
    fflush(NULL);
    const pid_t child = fork();
    if (child != 0)
        return child > 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_WRONG);
    const int status = run_cell(self, cell, path);
    fflush(NULL);
    _exit(status);
}

static bool await_cell(sweep *self)
{
    int status;
    pid_t ended;
    do
        ended = wait(&status);
    while (ended < 0 && errno == EINTR);
    if (ended < 0)
        return false;
    const bool good = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DONE;
    if (WIFSIGNALED(status))
        fprintf(stderr, "vramlab sweep: a cell was ended by signal %d\n", WTERMSIG(status));
    self->done++;
    self->failed += !good;
    return true;
}

static size_t jobs_of(const sweep *self)
{
    if (self->given->jobs > 0)
        return (size_t)self->given->jobs;
    if (self->study.jobs > 0)
        return (size_t)self->study.jobs;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (size_t)cores : 1;
}

/* Starts the cell unless it is there; waits first when as many run as may. */
static bool visit_cell(sweep *self, size_t index, size_t jobs, size_t *running)
{
    study_cell cell;
    char *path = NULL;
    if (!cell_at(self, index, &cell))
        return false;
    bool good = cell_path(self, &cell, &path);
    if (good && !self->given->again && is_finished(path)) {
        self->done++;
    } else if (good) {
        if (*running == jobs) {
            good = await_cell(self);
            (*running)--;
        }
        good = good && start_cell(self, &cell, path);
        *running += good;
    }
    free(path);
    study_cell_free(&cell);
    return good;
}

static bool run_all(sweep *self)
{
    const size_t cells = study_cells(&self->study);
    const size_t jobs = jobs_of(self);
    size_t running = 0;
    bool good = true;
    progress_begin(self->study.name);
    for (size_t i = 0; good && i < cells; i++) {
        good = visit_cell(self, i, jobs, &running);
        progress_show(NULL, (double)self->done / (double)cells);
    }
    for (; running > 0; running--) {
        good = await_cell(self) && good;
        progress_show(NULL, (double)self->done / (double)cells);
    }
    progress_end();
    return good;
}

/* ---- results ---- */

/* Copies a cell's file, its header only when it is the first. */
static bool copy_rows(FILE *from, FILE *to, bool with_header)
{
    char *line = NULL;
    size_t capacity = 0;
    for (bool header = true; getline(&line, &capacity, from) >= 0; header = false)
        if (!header || with_header)
            fputs(line, to);
    free(line);
    return !ferror(from) && !ferror(to);
}

static bool collect_cells(const sweep *self, FILE *to, size_t *missing, vram_error *error)
{
    const size_t cells = study_cells(&self->study);
    bool first = true;
    *missing = 0;
    for (size_t i = 0; i < cells; i++) {
        study_cell cell;
        char *path = NULL;
        if (!cell_at(self, i, &cell) || !cell_path(self, &cell, &path))
            return vram_fail(error, "out of host memory");
        FILE *from = fopen(path, "r");
        *missing += from == NULL;
        const bool good = from == NULL || copy_rows(from, to, first);
        first = first && from == NULL;
        if (from != NULL)
            fclose(from);
        if (!good)
            vram_fail(error, "%s: %s", path, strerror(errno));
        free(path);
        study_cell_free(&cell);
        if (!good)
            return false;
    }
    return true;
}

/* Writes DIR/NAME.csv beside and renames. */
static bool collect(const sweep *self, char **path, size_t *missing, vram_error *error)
{
    char *beside = NULL;
    if (asprintf(path, "%s/%s.csv", self->folder, self->study.name) < 0 ||
        asprintf(&beside, "%s.part", *path) < 0)
        return vram_fail(error, "out of host memory");
    FILE *to = fopen(beside, "w");
    bool good = to != NULL || vram_fail(error, "%s: %s", beside, strerror(errno));
    good = good && collect_cells(self, to, missing, error);
    if (to != NULL && fclose(to) != 0)
        good = vram_fail(error, "%s: %s", beside, strerror(errno));
    if (good && rename(beside, *path) != 0)
        good = vram_fail(error, "%s: %s", *path, strerror(errno));
    if (!good)
        unlink(beside);
    free(beside);
    return good;
}

static int report(const sweep *self)
{
    vram_error error = {""};
    char *path = NULL;
    size_t missing = 0;
    int status = EXIT_DONE;
    if (!collect(self, &path, &missing, &error))
        status = fail_with(&command_sweep, "%s", error.text);
    else
        printf("%s: %zu of %zu cells in %s\n", self->study.name,
               study_cells(&self->study) - missing, study_cells(&self->study), path);
    free(path);
    if (status != EXIT_DONE || missing == 0)
        return status;
    if (self->failed > 0)
        return fail_with(&command_sweep, "%zu cells could not be run (see above)", self->failed);
    return EXIT_NO;
}

/* ---- one cell, or their names ---- */

static int list_cells(const sweep *self)
{
    const size_t cells = study_cells(&self->study);
    for (size_t i = 0; i < cells; i++) {
        study_cell cell;
        if (!cell_at(self, i, &cell))
            return fail_with(&command_sweep, "out of host memory");
        puts(cell.name);
        study_cell_free(&cell);
    }
    return EXIT_DONE;
}

static int run_named(const sweep *self)
{
    const char *name = self->given->cell;
    char *end;
    const unsigned long long index = strtoull(name, &end, 10);
    study_cell cell;
    char *path = NULL;
    if (*end != '-' || index >= study_cells(&self->study))
        return fail_with(&command_sweep, "--cell: '%s' is not among the names that --list prints",
                         name);
    if (!cell_at(self, (size_t)index, &cell) || !cell_path(self, &cell, &path))
        return fail_with(&command_sweep, "out of host memory");
    int status = EXIT_DONE;
    if (strcmp(cell.name, name) != 0)
        status = fail_with(&command_sweep,
                           "--cell: '%s' was named by another study or program: here it is '%s'",
                           name, cell.name);
    else if (self->given->again || !is_finished(path))
        status = run_cell(self, &cell, path);
    free(path);
    study_cell_free(&cell);
    return status;
}

static int run_sweep(sweep *self)
{
    vram_error error = {""};
    if (self->given->list)
        return list_cells(self);
    if (!make_folder(self->cells, &error))
        return fail_with(&command_sweep, "%s", error.text);
    if (self->given->cell != NULL)
        return run_named(self);
    if (!self->given->collect && !run_all(self))
        return fail_with(&command_sweep, "processes for the cells cannot be had: %s",
                         strerror(errno));
    return report(self);
}

/* A longer or shorter version of a study: the same combinations, more or fewer times. */
static bool lengthen(sweep *self, vram_error *error)
{
    if (self->given->repetitions == 0)
        return vram_fail(error, "--repetitions: 0 is out of range: expected 1 or more");
    if (self->given->repetitions != AS_IN_STUDY)
        self->study.repetitions = self->given->repetitions;
    return self->given->seeds == AS_IN_STUDY ||
           study_set_seeds(&self->study, self->given->seeds, error);
}

static bool name_folders(sweep *self)
{
    const bool named = self->given->out != NULL
                           ? asprintf(&self->folder, "%s", self->given->out) >= 0
                           : asprintf(&self->folder, "out/studies/%s", self->study.name) >= 0;
    return named && asprintf(&self->cells, "%s/cells", self->folder) >= 0;
}

static int sweep_run(int count, char **arguments)
{
    fields given = {.seeds = AS_IN_STUDY, .repetitions = AS_IN_STUDY};
    int status = options_read(&command_sweep, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (count != 1)
        return fail_with(&command_sweep, "one study is expected: vramlab sweep STUDY.ini");
    sweep self = {.given = &given};
    vram_error error = {""};
    if (!study_load(arguments[0], &self.study, &error) || !lengthen(&self, &error))
        status = fail_with(&command_sweep, "%s", error.text);
    else if (!name_folders(&self))
        status = fail_with(&command_sweep, "out of host memory");
    else
        status = run_sweep(&self);
    free(self.cells);
    free(self.folder);
    study_free(&self.study);
    return status;
}
