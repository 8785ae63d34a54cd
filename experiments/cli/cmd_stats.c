/*
 * cmd_stats.c - `vramlab stats`: what the rows of a study say, with their uncertainty.
 */
#include "cli/command.h"

#include "study/rows.h"
#include "study/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KEYS = 8, MOST_FILTERS = 8 };

typedef struct fields {
    const char *value;
    const char *by;
    const char *where;
    const char *pairs;
    const char *against;
    const char *statistic;
    uint64_t seed;
    const char *format;
} fields;

static const option_row options[] = {
    {.name = "--value",
     .kind = OPTION_TEXT,
     .value = "COLUMN",
     .offset = offsetof(fields, value),
     .help =
         "what is summarised (default smallest_ratio); rows where it is empty count as missing"},
    {.name = "--by",
     .kind = OPTION_TEXT,
     .value = "A,B",
     .offset = offsetof(fields, by),
     .help = "a line for each combination of these columns (default stack)"},
    {.name = "--where",
     .kind = OPTION_TEXT,
     .value = "A=X;B=Y",
     .offset = offsetof(fields, where),
     .help = "only rows with these values"},
    {.name = "--statistic",
     .kind = OPTION_WORD,
     .words = "geomean|median",
     .offset = offsetof(fields, statistic),
     .help = "default: geomean of a column that ends in _ratio, else median"},
    {.name = "--against",
     .kind = OPTION_TEXT,
     .value = "A=X",
     .offset = offsetof(fields, against),
     .help = "compare each line with this one, pair by pair: geometric mean of the ratios,\n"
             "in how many pairs it is less, equal and more, and the sign test's p"},
    {.name = "--pairs",
     .kind = OPTION_TEXT,
     .value = "A,B",
     .offset = offsetof(fields, pairs),
     .help = "rows are a pair when they agree in these (default trace,arena,seed,repetition);\n"
             "and, always, in the run: times of different runs do not compare"},
    {.name = "--seed",
     .kind = OPTION_COUNT,
     .value = "N",
     .offset = offsetof(fields, seed),
     .help = "of the bootstrap's random numbers (default 1)"},
    {.name = "--format",
     .kind = OPTION_WORD,
     .words = "table|csv|json",
     .offset = offsetof(fields, format),
     .help = "what to print"},
    {.name = NULL},
};

static int stats_run(int count, char **arguments);

const command command_stats = {
    .name = "stats",
    .usage = "RESULTS.csv [--value COLUMN] [--by A,B] [--against A=X]",
    .summary = "summarise a study: medians, geometric means, intervals, paired comparisons",
    .text = "Groups the rows of a study's CSV and gives a median or geometric mean with its 95 %\n"
            "bootstrap interval; with --against, also the paired comparison with one group.\n\n"
            "  vramlab stats out/studies/fit/fit.csv --against stack=list:policy=best\n"
            "  vramlab stats times.csv --value net_ns_per_op --by trace,stack",
    .options = options,
    .run = stats_run,
};

/* Columns by name. */
typedef struct keys {
    char *text; /* the names, cut */
    const char *names[MOST_KEYS];
    int columns[MOST_KEYS];
    size_t count;
} keys;

typedef struct filters {
    keys columns;
    const char *values[MOST_FILTERS];
} filters;

typedef struct summary {
    const fields *given;
    study_rows rows;
    int value;
    keys by;
    keys pairs;
    int run; /* column, or STUDY_NO_COLUMN */
    filters where;
    filters against;
    table *table;
    column columns[MOST_KEYS + 12];
    size_t column_count;
    double *values; /* scratch: as many as rows */
    double *others;
} summary;

static bool find_column(const study_rows *rows, const char *option, const char *name, int *found,
                        vram_error *error)
{
    *found = study_rows_column(rows, name);
    return *found != STUDY_NO_COLUMN ||
           vram_fail(error, "%s: the file has no column '%s'", option, name);
}

/* Cuts "a,b" into columns. */
static bool read_keys(const study_rows *rows, const char *option, const char *text, keys *out,
                      vram_error *error)
{
    char *rest = NULL;
    out->text = strdup(text);
    if (out->text == NULL)
        return vram_fail(error, "out of host memory");
    for (char *name = strtok_r(out->text, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        if (out->count == MOST_KEYS)
            return vram_fail(error, "%s: more than %d columns", option, MOST_KEYS);
        if (!find_column(rows, option, name, &out->columns[out->count], error))
            return false;
        out->names[out->count++] = name;
    }
    return true;
}

/* Cuts "a=x;b=y" into columns and values; a value may hold commas and '=', as options do. */
static bool read_filters(const study_rows *rows, const char *option, const char *text, filters *out,
                         vram_error *error)
{
    if (text == NULL)
        return true;
    char *at = out->columns.text = strdup(text);
    if (at == NULL)
        return vram_fail(error, "out of host memory");
    while (*at != '\0') {
        char *const equals = strchr(at, '=');
        keys *const into = &out->columns;
        if (equals == NULL || into->count == MOST_FILTERS)
            return vram_fail(error, "%s: '%s': expected COLUMN=VALUE, at most %d", option, at,
                             MOST_FILTERS);
        *equals = '\0';
        if (!find_column(rows, option, at, &into->columns[into->count], error))
            return false;
        char *const end = equals + 1 + strcspn(equals + 1, ";");
        out->values[into->count++] = equals + 1;
        at = *end == '\0' ? end : end + 1;
        *end = '\0';
    }
    return true;
}

static const char *cell(const summary *self, size_t row, int at)
{
    return study_rows_cell(&self->rows, row, at);
}

static bool passes(const summary *self, const filters *filter, size_t row)
{
    for (size_t i = 0; i < filter->columns.count; i++)
        if (strcmp(cell(self, row, filter->columns.columns[i]), filter->values[i]) != 0)
            return false;
    return true;
}

static bool agree(const summary *self, const keys *on, size_t a, size_t b)
{
    for (size_t i = 0; i < on->count; i++)
        if (strcmp(cell(self, a, on->columns[i]), cell(self, b, on->columns[i])) != 0)
            return false;
    return true;
}

static bool has_value(const summary *self, size_t row, double *value)
{
    const char *text = cell(self, row, self->value);
    *value = strtod(text, NULL);
    return *text != '\0';
}

/* The row of the reference group that belongs to this one. */
static bool partner(const summary *self, size_t row, size_t *found)
{
    for (size_t i = 0; i < self->rows.count; i++) {
        double ignored;
        const bool same_run = self->run == STUDY_NO_COLUMN ||
                              strcmp(cell(self, i, self->run), cell(self, row, self->run)) == 0;
        if (same_run && passes(self, &self->where, i) && passes(self, &self->against, i) &&
            agree(self, &self->pairs, row, i) && has_value(self, i, &ignored)) {
            *found = i;
            return true;
        }
    }
    return false;
}

static void set_estimate(table *rows, const char *names[3], const vram_estimate *estimate)
{
    const double numbers[] = {estimate->value, estimate->low, estimate->high};
    for (int i = 0; i < 3; i++) {
        if (isnan(numbers[i]))
            continue;
        table_set(rows, names[i], "%.6g", numbers[i]);
        table_show(rows, names[i], "%.4g", numbers[i]);
    }
}

static void compare_group(const summary *self, size_t first)
{
    static const char *names[] = {"ratio", "ratio_low", "ratio_high"};
    size_t count = 0;
    for (size_t i = first; i < self->rows.count; i++) {
        size_t other;
        if (passes(self, &self->where, i) && agree(self, &self->by, first, i) &&
            has_value(self, i, &self->values[count]) && partner(self, i, &other) &&
            has_value(self, other, &self->others[count]))
            count++;
    }
    const vram_paired paired =
        vram_compare_pairs(self->others, self->values, count, self->given->seed);
    set_estimate(self->table, names, &paired.ratio);
    table_set(self->table, "less", "%zu", paired.less);
    table_set(self->table, "equal", "%zu", paired.equal);
    table_set(self->table, "more", "%zu", paired.more);
    table_set(self->table, "sign_p", "%.3g", paired.sign_p);
}

static bool wants_geomean(const fields *given)
{
    const char *end = strrchr(given->value, '_');
    return given->statistic != NULL ? strcmp(given->statistic, "geomean") == 0
                                    : end != NULL && strcmp(end, "_ratio") == 0;
}

/* The line of the group that begins at this row. */
static void add_group(const summary *self, size_t first)
{
    static const char *names[] = {"value", "low", "high"};
    size_t count = 0;
    size_t missing = 0;
    for (size_t i = first; i < self->rows.count; i++) {
        if (!passes(self, &self->where, i) || !agree(self, &self->by, first, i))
            continue;
        if (has_value(self, i, &self->values[count]))
            count++;
        else
            missing++;
    }
    const vram_estimate estimate =
        wants_geomean(self->given) ? vram_geomean_estimate(self->values, count, self->given->seed)
                                   : vram_median_estimate(self->values, count, self->given->seed);
    table_row(self->table);
    for (size_t i = 0; i < self->by.count; i++)
        table_set(self->table, self->by.names[i], "%s", cell(self, first, self->by.columns[i]));
    table_set(self->table, "count", "%zu", count);
    table_set(self->table, "missing", "%zu", missing);
    set_estimate(self->table, names, &estimate);
    if (self->given->against != NULL)
        compare_group(self, first);
}

static bool is_first_of_group(const summary *self, size_t row)
{
    if (!passes(self, &self->where, row))
        return false;
    for (size_t i = 0; i < row; i++)
        if (passes(self, &self->where, i) && agree(self, &self->by, i, row))
            return false;
    return true;
}

static void add_column(summary *self, const char *name, column_kind kind)
{
    self->columns[self->column_count++] = (column){name, name, kind};
}

static void make_table(summary *self)
{
    static const char *const numbers[] = {"count", "missing", "value",     "low",
                                          "high",  "ratio",   "ratio_low", "ratio_high",
                                          "less",  "equal",   "more",      "sign_p"};
    const size_t wanted = self->given->against != NULL ? 12 : 5;
    for (size_t i = 0; i < self->by.count; i++)
        add_column(self, self->by.names[i], COLUMN_TEXT);
    for (size_t i = 0; i < wanted; i++)
        add_column(self, numbers[i], COLUMN_NUMBER);
    self->table = table_new(self->columns, self->column_count);
}

/* Every row that counts holds a number, or nothing. */
static bool holds_numbers(const summary *self, const char *path, vram_error *error)
{
    for (size_t row = 0; row < self->rows.count; row++) {
        const char *text = cell(self, row, self->value);
        char *end;
        const double value = strtod(text, &end);
        if (passes(self, &self->where, row) && (*end != '\0' || !isfinite(value)))
            return vram_fail(error, "%s: row %zu: %s is '%s', expected a number or nothing", path,
                             row + 1, self->given->value, text);
    }
    return true;
}

/* Some row has what an option asks for: a misspelt value must not pass for an empty answer. */
static bool meets_some_row(const summary *self, const filters *filter, const char *option,
                           const char *text, vram_error *error)
{
    for (size_t row = 0; row < self->rows.count; row++)
        if (passes(self, &self->where, row) && passes(self, filter, row))
            return true;
    return text == NULL || vram_fail(error, "%s: no row has %s", option, text);
}

static bool prepare(summary *self, const char *path, vram_error *error)
{
    if (!study_rows_load(path, &self->rows, error) ||
        !find_column(&self->rows, "--value", self->given->value, &self->value, error) ||
        !read_keys(&self->rows, "--by", self->given->by, &self->by, error) ||
        !read_filters(&self->rows, "--where", self->given->where, &self->where, error) ||
        !read_filters(&self->rows, "--against", self->given->against, &self->against, error) ||
        !meets_some_row(self, &self->where, "--where", self->given->where, error) ||
        !meets_some_row(self, &self->against, "--against", self->given->against, error) ||
        !holds_numbers(self, path, error))
        return false;
    if (self->given->against != NULL &&
        !read_keys(&self->rows, "--pairs", self->given->pairs, &self->pairs, error))
        return false;
    self->run = study_rows_column(&self->rows, "run");
    self->values = calloc(self->rows.count + 1, sizeof *self->values);
    self->others = calloc(self->rows.count + 1, sizeof *self->others);
    if (self->values == NULL || self->others == NULL)
        return vram_fail(error, "out of host memory");
    make_table(self);
    return true;
}

static int stats_run(int count, char **arguments)
{
    fields given = {.value = "smallest_ratio",
                    .by = "stack",
                    .pairs = "trace,arena,seed,repetition",
                    .seed = 1,
                    .format = "table"};
    int status = options_read(&command_stats, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (count != 1)
        return fail_with(&command_stats, "one CSV is expected: vramlab stats RESULTS.csv");
    summary self = {.given = &given};
    vram_error error = {""};
    status = EXIT_DONE;
    if (prepare(&self, arguments[0], &error)) {
        const table_format format = table_format_of(given.format);
        for (size_t row = 0; row < self.rows.count; row++)
            if (is_first_of_group(&self, row))
                add_group(&self, row);
        table_write(self.table, format, stdout);
    } else {
        status = fail_with(&command_stats, "%s", error.text);
    }
    table_free(self.table);
    free(self.others);
    free(self.values);
    free(self.against.columns.text);
    free(self.where.columns.text);
    free(self.pairs.text);
    free(self.by.text);
    study_rows_free(&self.rows);
    return status;
}
