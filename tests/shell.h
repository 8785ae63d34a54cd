/* shell.h - runs the command as a user would, and keeps what it said; for tests. */
#ifndef VRAMLAB_TESTS_SHELL_H
#define VRAMLAB_TESTS_SHELL_H

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* What a run of the command left. Longer output is cut. */
typedef struct said {
    int status;       /* exit status; 128 + signal when it died */
    char text[65536]; /* standard output and error, as they came */
} said;

/* Runs `vramlab` with these arguments, by the shell; the command is the one under test. */
__attribute__((format(printf, 1, 2))) static inline said *vramlab(const char *format, ...)
{
    const char *program = getenv("VRAMLAB");
    cr_assert(program != NULL, "the variable VRAMLAB must name the command: run by ctest");
    char *arguments = NULL;
    char *line = NULL;
    va_list list;
    va_start(list, format);
    cr_assert(vasprintf(&arguments, format, list) >= 0);
    va_end(list);
    cr_assert(asprintf(&line, "'%s' %s 2>&1 </dev/null", program, arguments) >= 0);
    said *result = calloc(1, sizeof *result);
    cr_assert(result != NULL);
    FILE *out = popen(line, "r");
    cr_assert(out != NULL);
    size_t used = 0;
    size_t got;
    char rest[4096];
    while ((got = fread(result->text + used, 1, sizeof result->text - 1 - used, out)) > 0)
        used += got;
    while (fread(rest, 1, sizeof rest, out) > 0)
        ;
    const int status = pclose(out);
    result->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    free(arguments);
    free(line);
    return result;
}

/* The field of a CSV row (0 is the header) under a column, for rows without quotes. Returns text.
 */
static inline const char *csv_field(const char *csv, size_t row, const char *column, char text[256])
{
    const size_t header_length = strcspn(csv, "\n");
    const char *line = csv;
    for (size_t i = 0; i < row; i++) {
        line += strcspn(line, "\n");
        cr_assert(*line == '\n', "there is no row %zu in:\n%s", row, csv);
        line++;
    }
    for (const char *at = csv; at <= csv + header_length; line++) {
        const size_t length = strcspn(at, ",\n");
        const size_t field = strcspn(line, ",\n");
        if (strlen(column) == length && strncmp(at, column, length) == 0) {
            snprintf(text, 256, "%.*s", (int)field, line);
            return text;
        }
        at += length + 1;
        line += field;
    }
    cr_assert(false, "there is no column %s in:\n%s", column, csv);
    return NULL;
}

static inline double csv_number(const char *csv, size_t row, const char *column)
{
    char text[256];
    return strtod(csv_field(csv, row, column, text), NULL);
}

#endif
