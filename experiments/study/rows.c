/*
 * rows.c - reads a CSV of results whole and cuts it in place.
 */
#include "rows.h"

#include <readers/csv.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The whole file and a NUL; *size is without it. */
static char *read_file(const char *path, size_t *size, vram_error *error)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t capacity = 0;
    *size = 0;
    bool good = file != NULL;
    while (good) {
        good = vram_reserve((void **)&text, &capacity, *size + 65536, 1);
        const size_t got = good ? fread(text + *size, 1, 65535, file) : 0;
        *size += got;
        if (got == 0)
            break;
    }
    good = good && !ferror(file);
    if (!good)
        vram_fail(error, "%s: %s", path, strerror(errno));
    if (file != NULL)
        fclose(file);
    if (!good) {
        free(text);
        return NULL;
    }
    text[*size] = '\0';
    return text;
}

/* Cuts the line in place. */
static bool add_line(study_rows *self, char *line, char *end)
{
    vram_csv csv;
    vram_csv_split((vram_scan){.at = line, .end = end}, &csv);
    if (self->columns == 0)
        self->columns = csv.count;
    const size_t used = self->count * self->columns;
    if (csv.count != self->columns || !vram_reserve((void **)&self->cells, &self->capacity,
                                                    used + csv.count, sizeof *self->cells))
        return false;
    for (size_t i = 0; i < csv.count; i++) {
        line[csv.fields[i].end - line] = '\0';
        self->cells[used + i] = csv.fields[i].at;
    }
    self->count++;
    return true;
}

bool study_rows_load(const char *path, study_rows *out, vram_error *error)
{
    *out = (study_rows){.text = NULL};
    size_t size;
    out->text = read_file(path, &size, error);
    if (out->text == NULL)
        return false;
    size_t line = 1;
    for (char *at = out->text; at < out->text + size; line++) {
        char *end = at + strcspn(at, "\n");
        char *const next = end + (end < out->text + size);
        if (end > at && end[-1] == '\r')
            end--;
        if (end > at && !add_line(out, at, end))
            return vram_fail(error, "%s:%zu: expected %zu fields, as in the header", path, line,
                             out->columns);
        at = next;
    }
    if (out->count == 0)
        return vram_fail(error, "%s: empty, expected a header and rows", path);
    out->count--; /* the header */
    return true;
}

void study_rows_free(study_rows *self)
{
    free(self->cells);
    free(self->text);
    *self = (study_rows){.text = NULL};
}

int study_rows_column(const study_rows *self, const char *name)
{
    for (size_t i = 0; i < self->columns; i++)
        if (strcmp(self->cells[i], name) == 0)
            return (int)i;
    return STUDY_NO_COLUMN;
}

const char *study_rows_cell(const study_rows *self, size_t row, int column)
{
    return self->cells[(row + 1) * self->columns + (size_t)column];
}
