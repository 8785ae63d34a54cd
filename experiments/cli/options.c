/*
 * options.c - arguments by a table, the help made from it, and messages.
 */
#include "cli/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int fail_with(const command *self, const char *format, ...)
{
    fprintf(stderr, "vramlab %s: ", self->name);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return EXIT_WRONG;
}

static void print_option(const option_row *row)
{
    char left[80];
    snprintf(left, sizeof left, "%s%s%s%s%s", row->name, row->alias != NULL ? ", " : "",
             row->alias != NULL ? row->alias : "", row->kind == OPTION_FLAG ? "" : " ",
             row->kind == OPTION_FLAG   ? ""
             : row->kind == OPTION_WORD ? row->words
                                        : row->value);
    const char *line = row->help;
    printf("  %-24s", left);
    if (strlen(left) > 23)
        printf("\n%26s", "");
    while (*line != '\0') {
        const size_t length = strcspn(line, "\n");
        printf("%.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
        if (*line != '\0')
            printf("%26s", "");
    }
}

void options_help(const command *self)
{
    printf("usage: vramlab %s %s\n\n%s\n", self->name, self->usage, self->text);
    if (self->options != NULL && self->options[0].name != NULL)
        puts("\noptions:");
    for (const option_row *row = self->options; row != NULL && row->name != NULL; row++)
        print_option(row);
}

static const option_row *find_option(const command *self, const char *name, size_t length)
{
    for (const option_row *row = self->options; row != NULL && row->name != NULL; row++)
        if ((strlen(row->name) == length && strncmp(row->name, name, length) == 0) ||
            (row->alias != NULL && strlen(row->alias) == length &&
             strncmp(row->alias, name, length) == 0))
            return row;
    return NULL;
}

static bool is_word(const char *words, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = words; *at != '\0';) {
        const size_t span = strcspn(at, "|");
        if (span == length && strncmp(at, word, span) == 0)
            return true;
        at += span + (at[span] == '|');
    }
    return false;
}

static bool store(const option_row *row, const char *text, void *fields, vram_error *error)
{
    char *field = (char *)fields + row->offset;
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)(void *)field = true;
        return true;
    case OPTION_WORD:
        if (!is_word(row->words, text))
            return vram_fail(error, "'%s' is none of %s", text, row->words);
        *(const char **)(void *)field = text;
        return true;
    case OPTION_TEXT:
        *(const char **)(void *)field = text;
        return true;
    case OPTION_COUNT:
        return vram_parse_count(text, (uint64_t *)(void *)field, error);
    case OPTION_INDEX: {
        uint64_t index;
        if (!vram_parse_count(text, &index, error))
            return false;
        *(uint32_t *)(void *)field = (uint32_t)index;
        return index <= UINT32_MAX || vram_fail(error, "'%s' is out of range", text);
    }
    case OPTION_REAL: {
        char *end = NULL;
        const double value = strtod(text, &end);
        if (end == text || *end != '\0' || !(value == value))
            return vram_fail(error, "'%s' is not a number", text);
        *(double *)(void *)field = value;
        return true;
    }
    }
    return false;
}

int options_read(const command *self, int *count, char **arguments, void *fields)
{
    int kept = 0;
    bool only_names = false;
    for (int i = 0; i < *count; i++) {
        char *argument = arguments[i];
        if (only_names || argument[0] != '-' || argument[1] == '\0') {
            arguments[kept++] = argument;
            continue;
        }
        if (strcmp(argument, "--") == 0) {
            only_names = true;
            continue;
        }
        if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            options_help(self);
            return EXIT_DONE;
        }
        const size_t length = strcspn(argument, "=");
        const option_row *row = find_option(self, argument, length);
        if (row == NULL)
            return fail_with(self, "no option is called '%.*s'; see `vramlab %s --help`",
                             (int)length, argument, self->name);
        const char *text = argument[length] == '=' ? argument + length + 1 : NULL;
        if (row->kind == OPTION_FLAG && text != NULL)
            return fail_with(self, "%s takes no value", row->name);
        if (row->kind != OPTION_FLAG && text == NULL) {
            if (i + 1 == *count)
                return fail_with(self, "%s needs a value: %s %s", row->name, row->name,
                                 row->kind == OPTION_WORD ? row->words : row->value);
            text = arguments[++i];
        }
        vram_error error = {""};
        if (!store(row, text, fields, &error))
            return fail_with(self, "%s: %s", row->name, error.text);
    }
    *count = kept;
    return -1;
}

/* ------------------------------------------------------------------------------ progress */

static struct {
    const char *what;
    struct timespec started;
    bool shown;
    int last_percent;
} progress;

void progress_begin(const char *what)
{
    progress.what = what;
    progress.shown = false;
    progress.last_percent = -1;
    clock_gettime(CLOCK_MONOTONIC, &progress.started);
}

void progress_show(void *unused, double share)
{
    (void)unused;
    if (progress.what == NULL || !isatty(STDERR_FILENO))
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double seconds = (double)(now.tv_sec - progress.started.tv_sec) +
                           (double)(now.tv_nsec - progress.started.tv_nsec) / 1e9;
    const int percent = (int)(share * 100);
    if (seconds < 1 || percent == progress.last_percent)
        return;
    enum { WIDTH = 40 };
    char bar[WIDTH + 1];
    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < percent * WIDTH / 100 ? '#' : '.';
    bar[WIDTH] = '\0';
    fprintf(stderr, "\r\033[K%s [%s] %3d %%", progress.what, bar, percent);
    fflush(stderr);
    progress.shown = true;
    progress.last_percent = percent;
}

void progress_end(void)
{
    if (progress.shown)
        fputs("\r\033[K", stderr);
    progress.what = NULL;
    progress.shown = false;
}

/* ------------------------------------------------------------------------------ surroundings */

bool colour_wanted(void)
{
    const char *no_colour = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && (no_colour == NULL || no_colour[0] == '\0');
}

bool make_folder(const char *path, vram_error *error)
{
    char *copy = strdup(path);
    if (copy == NULL)
        return vram_fail(error, "out of host memory");
    bool made = true;
    for (char *at = copy + 1; made; at++) {
        const char kept = *at;
        if (kept != '/' && kept != '\0')
            continue;
        *at = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            made = vram_fail(error, "cannot make the folder %s: %s", copy, strerror(errno));
        *at = kept;
        if (kept == '\0')
            break;
    }
    struct stat status;
    if (made && (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)))
        made = vram_fail(error, "%s exists and is not a folder", path);
    free(copy);
    return made;
}

const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}
