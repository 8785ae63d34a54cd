/*
 * cell.h - runs one cell of a study and writes its rows.
 */
#ifndef VRAMLAB_CELL_H
#define VRAMLAB_CELL_H

#include "cli/command.h"

#include "study/study.h"

/* An empty table with the columns of every study's results. */
table *cell_table(void);

/*
 * Appends the cell's rows: one, or for STUDY_TIME one a backend. Returns EXIT_DONE whatever the
 * outcome of the replay, EXIT_WRONG after a message when it could not be run.
 */
int cell_run(const command *which, const study *of, const study_cell *cell, table *rows);

#endif
