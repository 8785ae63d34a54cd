/*
 * table.c - one set of rows, written as an aligned table, as CSV (RFC 4180) or as JSON.
 */
#include "cli/command.h"

#include <vramlab/output.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_WIDTH = 100 }; /* characters of an aligned line, as far as the numbers allow */

typedef struct cell {
    char *exact; /* CSV and JSON */
    char *shown; /* aligned table; NULL: as exact */
} cell;

struct table {
    const column *columns;
    size_t column_count;
    cell *cells; /* row by row */
    size_t capacity;
    size_t row_count;
};

static void *must(void *memory)
{
    if (memory == NULL) {
        fputs("vramlab: out of host memory\n", stderr);
        abort();
    }
    return memory;
}

table *table_new(const column *columns, size_t count)
{
    table *self = must(calloc(1, sizeof *self));
    self->columns = columns;
    self->column_count = count;
    return self;
}

void table_free(table *self)
{
    if (self == NULL)
        return;
    for (size_t i = 0; i < self->row_count * self->column_count; i++) {
        free(self->cells[i].exact);
        free(self->cells[i].shown);
    }
    free(self->cells);
    free(self);
}

void table_row(table *self)
{
    const size_t used = self->row_count * self->column_count;
    if (!vram_reserve((void **)&self->cells, &self->capacity, used + self->column_count,
                      sizeof *self->cells))
        must(NULL);
    memset(self->cells + used, 0, self->column_count * sizeof *self->cells);
    self->row_count++;
}

/* The cell of the current row; a name that is not in the table is a bug. */
static cell *cell_of(table *self, const char *name)
{
    for (size_t i = 0; i < self->column_count; i++)
        if (strcmp(self->columns[i].name, name) == 0)
            return &self->cells[(self->row_count - 1) * self->column_count + i];
    fprintf(stderr, "vramlab: no column is called %s\n", name);
    abort();
}

static void set_text(char **slot, const char *format, va_list arguments)
{
    free(*slot);
    if (vasprintf(slot, format, arguments) < 0)
        must(NULL);
}

void table_set(table *self, const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_text(&cell_of(self, name)->exact, format, arguments);
    va_end(arguments);
}

void table_show(table *self, const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_text(&cell_of(self, name)->shown, format, arguments);
    va_end(arguments);
}

static const char *shown_text(const cell *self)
{
    return self->shown != NULL ? self->shown : self->exact != NULL ? self->exact : "-";
}

/* Characters on the screen: UTF-8 continuation bytes take no room. */
static size_t text_width(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

static void pad(FILE *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fputc(' ', out);
}

/* A text wider than its column, which only the first may be, has a line of its own. */
static void write_aligned_line(const table *self, const cell *row, const size_t *widths, FILE *out)
{
    const char *gap = "";
    size_t owed = 0; /* blanks are written only in front of text: no line ends with them */
    for (size_t i = 0; i < self->column_count; i++) {
        const column *of = &self->columns[i];
        if (of->title == NULL)
            continue;
        const char *text = row == NULL ? of->title : shown_text(&row[i]);
        if (text_width(text) > widths[i]) {
            fprintf(out, "%s\n", text);
            text = "";
        }
        const size_t blanks = widths[i] - text_width(text);
        pad(out, owed);
        owed = 0;
        fputs(gap, out);
        if (of->kind == COLUMN_NUMBER)
            pad(out, blanks);
        fputs(text, out);
        if (of->kind == COLUMN_TEXT)
            owed = blanks;
        gap = "  ";
    }
    fputc('\n', out);
}

/* Narrows the first column, where it is a text, until the whole line has TABLE_WIDTH characters. */
static void narrow_first(const table *self, size_t *widths)
{
    size_t first = 0;
    while (first < self->column_count && self->columns[first].title == NULL)
        first++;
    if (first == self->column_count || self->columns[first].kind != COLUMN_TEXT)
        return;
    size_t rest = 0;
    for (size_t i = first + 1; i < self->column_count; i++)
        if (self->columns[i].title != NULL)
            rest += 2 + widths[i];
    const size_t title = text_width(self->columns[first].title);
    const size_t room = rest + title < TABLE_WIDTH ? TABLE_WIDTH - rest : title;
    widths[first] = widths[first] < room ? widths[first] : room;
}

static void write_aligned(const table *self, FILE *out)
{
    size_t *widths = must(calloc(self->column_count + 1, sizeof *widths));
    for (size_t i = 0; i < self->column_count; i++) {
        widths[i] = self->columns[i].title != NULL ? text_width(self->columns[i].title) : 0;
        for (size_t row = 0; row < self->row_count; row++) {
            const size_t width = text_width(shown_text(&self->cells[row * self->column_count + i]));
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    narrow_first(self, widths);
    if (colour_wanted() && out == stdout)
        fputs("\033[1m", out);
    write_aligned_line(self, NULL, widths, out);
    if (colour_wanted() && out == stdout)
        fputs("\033[0m", out);
    for (size_t row = 0; row < self->row_count; row++)
        write_aligned_line(self, &self->cells[row * self->column_count], widths, out);
    free(widths);
}

static void write_csv_text(const char *text, FILE *out)
{
    if (text[strcspn(text, ",\"\r\n")] == '\0') {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void write_csv(const table *self, FILE *out)
{
    for (size_t i = 0; i < self->column_count; i++)
        fprintf(out, "%s%s", i == 0 ? "" : ",", self->columns[i].name);
    fputc('\n', out);
    for (size_t row = 0; row < self->row_count; row++) {
        for (size_t i = 0; i < self->column_count; i++) {
            const char *text = self->cells[row * self->column_count + i].exact;
            if (i > 0)
                fputc(',', out);
            write_csv_text(text != NULL ? text : "", out);
        }
        fputc('\n', out);
    }
}

static void write_json_text(const char *text, FILE *out)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        const unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            fprintf(out, "\\%c", byte);
        else if (byte < 0x20)
            fprintf(out, "\\u%04x", byte);
        else
            fputc(byte, out);
    }
    fputc('"', out);
}

static void write_json(const table *self, FILE *out)
{
    fputs("[\n", out);
    for (size_t row = 0; row < self->row_count; row++) {
        fputs("  {", out);
        for (size_t i = 0; i < self->column_count; i++) {
            const char *text = self->cells[row * self->column_count + i].exact;
            fprintf(out, "%s\"%s\": ", i == 0 ? "" : ", ", self->columns[i].name);
            if (text == NULL)
                fputs("null", out);
            else if (self->columns[i].kind == COLUMN_NUMBER)
                fputs(text, out);
            else
                write_json_text(text, out);
        }
        fputs(row + 1 < self->row_count ? "},\n" : "}\n", out);
    }
    fputs("]\n", out);
}

void table_write(const table *self, table_format format, FILE *out)
{
    switch (format) {
    case TABLE_TEXT:
        write_aligned(self, out);
        break;
    case TABLE_CSV:
        write_csv(self, out);
        break;
    case TABLE_JSON:
        write_json(self, out);
        break;
    }
}

bool table_save(const table *self, table_format format, const char *path, vram_error *error)
{
    vram_output output;
    if (!vram_output_open(&output, path, error))
        return false;
    table_write(self, format, output.file);
    return vram_output_commit(&output, error);
}

table_format table_format_of(const char *word)
{
    return strcmp(word, "csv") == 0    ? TABLE_CSV
           : strcmp(word, "json") == 0 ? TABLE_JSON
                                       : TABLE_TEXT;
}
