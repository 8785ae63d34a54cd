/*
 * cmd_trace_model.c - `vramlab trace fit-model`: what a trace's sizes and lifetimes are like.
 */
#include "cli/job.h"

#include <vramlab/model.h>

#include <inttypes.h>

typedef struct fields {
    const char *format;
    uint32_t device;
} fields;

static const option_row options[] = {
    {.name = "--device",
     .kind = OPTION_INDEX,
     .value = "N",
     .offset = offsetof(fields, device),
     .help = "PyTorch, RMM of 2019, Nsight: whose history to read (default 0)"},
    {.name = "--format",
     .kind = OPTION_WORD,
     .words = "table|csv|json",
     .offset = offsetof(fields, format),
     .help = "csv and json: one row each for sizes and lives"},
    {.name = NULL},
};

static int model_run(int count, char **arguments);

const command command_trace_model = {
    .name = "trace fit-model",
    .usage = "TRACE [--device N] [--format table|csv|json]",
    .summary = "measure a trace's sizes and lifetimes, and the family each is nearest to",
    .text =
        "Lifetimes are counted in allocations. Of four families of distributions the nearest is "
        "the\n"
        "one with the least distance of Kolmogorov and Smirnov: 0 fits perfectly, 0.05 well, 0.3\n"
        "hardly. A longer trace of the same kind is drawn from the same measurement by\n\n"
        "  vramlab trace generate like,file=TRACE,allocs=1000000 -o longer.vt.gz",
    .options = options,
    .run = model_run,
};

static const column columns[] = {
    {"trace", NULL, COLUMN_TEXT},
    {"of", "", COLUMN_TEXT},
    {"count", "blocks", COLUMN_NUMBER},
    {"least", "least", COLUMN_NUMBER},
    {"p1", "1 %", COLUMN_NUMBER},
    {"p10", "10 %", COLUMN_NUMBER},
    {"median", "median", COLUMN_NUMBER},
    {"p90", "90 %", COLUMN_NUMBER},
    {"p99", "99 %", COLUMN_NUMBER},
    {"greatest", "greatest", COLUMN_NUMBER},
    {"mean", NULL, COLUMN_NUMBER},
    {"log_mean", NULL, COLUMN_NUMBER},
    {"log_sigma", NULL, COLUMN_NUMBER},
    {"nearest", NULL, COLUMN_TEXT},
    {"distance", NULL, COLUMN_NUMBER},
    {"uniform_distance", NULL, COLUMN_NUMBER},
    {"log_uniform_distance", NULL, COLUMN_NUMBER},
    {"log_normal_distance", NULL, COLUMN_NUMBER},
    {"exponential_distance", NULL, COLUMN_NUMBER},
    {"never_freed", NULL, COLUMN_NUMBER},
    {"distinct_sizes", NULL, COLUMN_NUMBER},
    {"common_share", NULL, COLUMN_NUMBER},
    {"zipf_exponent", NULL, COLUMN_NUMBER},
    {"correlation", NULL, COLUMN_NUMBER},
};

static void add_row(table *rows, const char *trace, const char *of, const vram_distribution *d,
                    const vram_model *model)
{
    static const char *const quantiles[VRAM_MODEL_QUANTILES] = {"least", "p1",  "p10",     "median",
                                                                "p90",   "p99", "greatest"};
    static const char *const distances[VRAM_FAMILIES] = {
        "uniform_distance", "log_uniform_distance", "log_normal_distance", "exponential_distance"};
    table_row(rows);
    table_set(rows, "trace", "%s", trace);
    table_set(rows, "of", "%s", of);
    table_set(rows, "count", "%" PRIu64, d->count);
    for (int i = 0; i < VRAM_MODEL_QUANTILES; i++)
        table_set(rows, quantiles[i], "%" PRIu64, d->quantiles[i]);
    table_set(rows, "mean", "%.3f", d->mean);
    table_set(rows, "log_mean", "%.4f", d->log_mean);
    table_set(rows, "log_sigma", "%.4f", d->log_sigma);
    table_set(rows, "nearest", "%s", vram_family_name(d->nearest));
    table_set(rows, "distance", "%.4f", d->distance[d->nearest]);
    for (int i = 0; i < VRAM_FAMILIES; i++)
        table_set(rows, distances[i], "%.4f", d->distance[i]);
    table_set(rows, "never_freed", "%" PRIu64, model->never_freed);
    table_set(rows, "distinct_sizes", "%" PRIu64, model->distinct_sizes);
    table_set(rows, "common_share", "%.4f", model->common_share);
    table_set(rows, "zipf_exponent", "%.3f", model->zipf_exponent);
    table_set(rows, "correlation", "%.3f", model->correlation);
}

static void print_family(const char *what, const vram_distribution *d)
{
    if (d->count > 0)
        printf("%s are nearest to %s (distance %.3f; mean %.1f, logarithm %.2f with deviation "
               "%.2f).\n",
               what, vram_family_name(d->nearest), d->distance[d->nearest], d->mean, d->log_mean,
               d->log_sigma);
}

static void print_model(const vram_model *model)
{
    char blocks[32], never[32], distinct[32];
    print_family("Sizes", &model->sizes);
    print_family("Lives", &model->lives);
    printf("%s blocks, %s never freed, %s different sizes; the ten commonest are %.0f %% of the "
           "blocks.\nSize and life have a correlation of %.2f (of the logarithms).\n",
           vram_format_count(model->count, blocks), vram_format_count(model->never_freed, never),
           vram_format_count(model->distinct_sizes, distinct), 100 * model->common_share,
           model->correlation);
}

static int model_run(int count, char **arguments)
{
    fields given = {.format = "table"};
    int status = options_read(&command_trace_model, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (count != 1)
        return fail_with(&command_trace_model,
                         "one trace is expected: vramlab trace fit-model TRACE");
    vram_error error = {""};
    vram_trace *trace = NULL;
    vram_model model;
    const vram_trace_options how = {.device = given.device, .progress = progress_show};
    progress_begin(file_name(arguments[0]));
    const bool measured = vram_trace_open(arguments[0], &how, &trace, &error) &&
                          vram_model_measure(trace, &model, &error);
    progress_end();
    vram_trace_close(trace);
    if (!measured)
        return fail_with(&command_trace_model, "%s", error.text);
    const table_format format = table_format_of(given.format);
    table *rows = table_new(columns, sizeof columns / sizeof columns[0]);
    add_row(rows, file_name(arguments[0]), "size", &model.sizes, &model);
    add_row(rows, file_name(arguments[0]), "life", &model.lives, &model);
    table_write(rows, format, stdout);
    table_free(rows);
    if (format == TABLE_TEXT) {
        printf("\n");
        print_model(&model);
    }
    vram_model_free(&model);
    return EXIT_DONE;
}
