/*
 * command.h - what every command of `vramlab` is made of: a table row, options, errors, tables,
 * progress.
 *
 * A command is a file cmd_NAME.c that defines `const command command_NAME` and is listed in main.c.
 * Its options are a table, from which the parser and --help are made.
 */
#ifndef VRAMLAB_COMMAND_H
#define VRAMLAB_COMMAND_H

#include <vramlab/text.h>

#include <stdio.h>

/* How a run ended. */
enum {
    EXIT_DONE = 0,
    EXIT_NO = 1,    /* the answer is no: a trace does not fit, a check fails */
    EXIT_WRONG = 2, /* the input or the call was wrong */
};

/* One option of a command. A value is stored in the caller's struct through `offset`. */
typedef enum option_kind {
    OPTION_FLAG,  /* bool */
    OPTION_TEXT,  /* const char * */
    OPTION_COUNT, /* uint64_t */
    OPTION_INDEX, /* uint32_t */
    OPTION_REAL,  /* double */
    OPTION_WORD,  /* const char *, one of `words` */
} option_kind;

typedef struct option_row {
    const char *name; /* "--arena", or "-o" with long form in `alias` */
    const char *alias;
    option_kind kind;
    const char *value; /* shown in --help: "SIZE" */
    const char *words; /* OPTION_WORD: "table|csv|json" */
    size_t offset;     /* of the field in the options struct */
    const char *help;  /* may have several lines */
} option_row;

typedef struct command {
    const char *name;
    const char *usage;                       /* "TRACE [--backend A,B]" */
    const char *summary;                     /* one line */
    const char *text;                        /* paragraphs for --help: what it does, examples */
    const option_row *options;               /* ends with a null name; --help is added */
    int (*run)(int count, char **arguments); /* arguments after the name */
} command;

/*
 * Reads the arguments by the command's table into `fields` and collects the others, in place, in
 * arguments[0..*count). Prints the help for --help. Returns -1 to go on, or the exit status to end
 * with.
 */
int options_read(const command *self, int *count, char **arguments, void *fields);

/* Writes the whole help of a command to stdout. */
void options_help(const command *self);

/* Prints "vramlab NAME: message" to stderr and returns EXIT_WRONG. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int fail_with(const command *self, const char *format, ...);

/* ---- tables: one set of rows, written as an aligned table, CSV or JSON ---- */

typedef enum table_format { TABLE_TEXT, TABLE_CSV, TABLE_JSON } table_format;

typedef enum column_kind {
    COLUMN_TEXT,
    COLUMN_NUMBER, /* JSON: unquoted; right-aligned */
} column_kind;

typedef struct column {
    const char *name;  /* CSV and JSON: snake_case */
    const char *title; /* aligned table; NULL leaves the column out there */
    column_kind kind;
} column;

typedef struct table table;

table *table_new(const column *columns,
                 size_t count); /* aborts when out of memory, as all of table_ */
void table_free(table *self);
void table_row(table *self); /* begins a row; cells not set are empty (JSON: null) */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void table_set(table *self, const char *column, const char *format, ...);
/* As table_set, with another text for the aligned table: 1.096 for 1.0957421. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void table_show(table *self, const char *column, const char *format, ...);
void table_write(const table *self, table_format format, FILE *out);
/* Writes beside and renames; false with a message on failure. */
bool table_save(const table *self, table_format format, const char *path, vram_error *error);

/* What --format was given: "table", "csv" or "json". */
table_format table_format_of(const char *word);

/* ---- progress on stderr: only on a terminal, and only once a second has passed ---- */

void progress_begin(const char *what); /* such as "buddy: fit" */
void progress_show(void *unused, double share);
void progress_end(void); /* wipes the line */

/* True when stdout is a terminal and NO_COLOR is not set. */
bool colour_wanted(void);

/* Makes a folder and its parents. */
bool make_folder(const char *path, vram_error *error);

/* The last part of a path, as in basename; points into it. */
const char *file_name(const char *path);

#endif
