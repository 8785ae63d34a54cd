/*
 * study.h - a study: traces x arenas x seeds x repetitions x backends, each combination a cell.
 *
 *     # the file: sections of one entry a line, '#' starts a comment
 *     [study]
 *     title = Smallest arenas of the recordings
 *     measure = fit
 *     [traces]
 *     traces/data/oom_*.pickle.gz             a pattern of file names
 *     generate:mix,ops=20000,seed={seed}     {seed} stands for each seed in turn
 *     ?other/trace.csv                       left out where the file does not exist
 *     [backends]
 *     list:policy=best
 *     buddy
 *
 * File names are relative to the folder in which the command runs. The cells and their names follow
 * from the file alone, so that any scheduler can run them one by one, in any order and anywhere.
 */
#ifndef VRAMLAB_STUDY_STUDY_H
#define VRAMLAB_STUDY_STUDY_H

#include <vramlab/text.h>

enum { STUDY_MOST_SEEDS = 10000 };

typedef enum study_measure {
    STUDY_FIT,    /* the smallest arena; a cell is a backend, or a bound: offline, two-ended */
    STUDY_REPLAY, /* a replay in each arena, refused requests skipped; a cell is a backend */
    STUDY_TIME,   /* ns an operation; a cell is all backends, which take turns, as times of
                     different runs do not compare */
} study_measure;

typedef struct study_list {
    char **items;
    size_t count, capacity;
} study_list;

typedef struct study {
    char *name; /* the file's, without folder and ending */
    char *title;
    study_measure measure;
    uint64_t repetitions; /* FIT, REPLAY: cells; TIME: cells, too */
    uint64_t passes;      /* TIME: how often a cell runs the trace; the least counts */
    uint64_t jobs;        /* cells at once; 0: as many as there are cores. TIME: 1 unless given */
    uint64_t looks;       /* FIT, offline: see vram_plan_options */
    double step;          /* FIT: see vram_fit_options.step_share */
    char *compact;        /* see --compact; NULL: never */
    bool asks;            /* FIT: the asks refused when recorded must fit, too */
    study_list traces;    /* patterns resolved; may hold {seed} */
    study_list backends;
    study_list arenas; /* FIT: none */
    study_list seeds;  /* at least one, "1" when the file has none */
} study;

/* One combination. The strings belong to the study, except trace. */
typedef struct study_cell {
    size_t index;
    char *trace;         /* the seed filled in; owned */
    const char *backend; /* NULL: all of them */
    const char *arena;   /* NULL: none */
    const char *seed;
    uint64_t repetition; /* from 1 */
    char name[48];       /* of its file: number, and a hash of all that it depends on */
} study_cell;

/* False with file, line, what was found and what was expected. study_free is safe in every case. */
bool study_load(const char *path, study *out, vram_error *error);
void study_free(study *self);

/* The seeds 1 to count in place of the file's. At most STUDY_MOST_SEEDS. */
bool study_set_seeds(study *self, uint64_t count, vram_error *error);

const char *study_measure_name(study_measure measure);

size_t study_cells(const study *self);

/* `version` is what made the results, such as the program's commit: another version, other names.
 */
bool study_cell_at(const study *self, size_t index, const char *version, study_cell *out);
void study_cell_free(study_cell *cell);

#endif
