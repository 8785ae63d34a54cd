/*
 * rows.h - a CSV of results in memory: a table of texts with named columns.
 */
#ifndef VRAMLAB_STUDY_ROWS_H
#define VRAMLAB_STUDY_ROWS_H

#include <vramlab/text.h>

typedef struct study_rows {
    char *text;         /* the file, cut into the cells */
    const char **cells; /* row by row; the header's names first */
    size_t columns;
    size_t count; /* rows, the header left out */
    size_t capacity;
} study_rows;

enum { STUDY_NO_COLUMN = -1 };

/* False with file, line and cause. Lines of another number of fields than the header are an error.
 * study_rows_free is safe in every case. */
bool study_rows_load(const char *path, study_rows *out, vram_error *error);
void study_rows_free(study_rows *self);

/* STUDY_NO_COLUMN when there is none of that name. */
int study_rows_column(const study_rows *self, const char *name);

/* Rows count from 0, the header left out. */
const char *study_rows_cell(const study_rows *self, size_t row, int column);

#endif
