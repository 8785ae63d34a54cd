/*
 * cmd_list.c - `vramlab list`: backends, layers and arenas, with their options, from their own
 * tables.
 */
#include "cli/command.h"

#include <vramlab/arena.h>
#include <vramlab/registry.h>
#include <vramlab/trace.h>

#include <string.h>

static const char *option_range(const vram_option *option, char text[120])
{
    char least[VRAM_SIZE_TEXT];
    char most[VRAM_SIZE_TEXT];
    switch (option->type) {
    case VRAM_OPTION_SIZE:
        vram_format_size(option->least, least);
        vram_format_size(option->most, most);
        snprintf(text, 120, "%s%s%s%s%s", least, option->most == 0 ? " or more" : " to ",
                 option->most == 0 ? "" : most, option->choices != NULL ? ", or " : "",
                 option->choices != NULL ? option->choices : "");
        break;
    case VRAM_OPTION_COUNT:
        if (option->most == 0)
            snprintf(text, 120, "%llu or more", (unsigned long long)option->least);
        else
            snprintf(text, 120, "%llu to %llu", (unsigned long long)option->least,
                     (unsigned long long)option->most);
        if (option->choices != NULL)
            snprintf(text + strlen(text), 120 - strlen(text), ", or %s", option->choices);
        break;
    case VRAM_OPTION_RATIO:
        snprintf(text, 120, "%g to %g", (double)option->least / 1000, (double)option->most / 1000);
        break;
    case VRAM_OPTION_FLAG:
        snprintf(text, 120, "on|off");
        break;
    case VRAM_OPTION_CHOICE:
        snprintf(text, 120, "%s", option->choices);
        break;
    case VRAM_OPTION_TEXT:
        snprintf(text, 120, "text");
        break;
    }
    return text;
}

static void print_options(const vram_ops *ops)
{
    for (const vram_option *row = ops->options; row != NULL && row->name != NULL; row++) {
        char range[120];
        printf("      %s=%s  (%s)\n          %s\n", row->name, row->fallback,
               option_range(row, range), row->help);
    }
}

static void print_parts(bool layers, bool options)
{
    for (size_t i = 0; vram_registry_at(i) != NULL; i++) {
        const vram_ops *ops = vram_registry_at(i);
        if (ops->layer != layers)
            continue;
        printf("  %-12s %s\n", ops->name, ops->summary);
        if (options)
            print_options(ops);
    }
}

static void print_sources(const char *group, bool options)
{
    vram_trace_source source;
    for (size_t i = 0; vram_trace_source_at(i, &source); i++) {
        if (strcmp(source.group, group) != 0)
            continue;
        printf("  %-16s %s\n", source.name, source.summary);
        vram_trace_source_option row;
        for (size_t k = 0; options && vram_trace_source_option_at(i, k, &row); k++)
            printf("      %s=%s\n          %s\n", row.name, row.fallback, row.help);
    }
}

typedef struct fields {
    bool short_form;
    const char *format;
} fields;

static const option_row options[] = {
    {.name = "--short",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, short_form),
     .help = "names and summaries only, without options"},
    {.name = "--format",
     .kind = OPTION_WORD,
     .words = "table|csv|json",
     .offset = offsetof(fields, format),
     .help = "csv and json: kind,name,summary,option,type,default,range,help, a row an option"},
    {.name = NULL},
};

static int list_run(int count, char **arguments);

const command command_list = {
    .name = "list",
    .usage = "[--short] [--format table|csv|json]",
    .summary = "backends, layers, arenas, trace formats and workloads, with their options",
    .text = "Lists what a --backend may be made of, and what may be given as a TRACE.\n\n"
            "  A stack is a backend and any layers over it, with options behind a colon:\n"
            "    list:policy=best        tlsf+stream        tlsf+reserve:share=8%+stream\n"
            "  A path to a shared object is a backend too:\n"
            "    ./mine.so:depth=4",
    .options = options,
    .run = list_run,
};

static void add_part(table *rows, const char *kind, const char *name, const char *summary,
                     const vram_option *option)
{
    static const char *const types[] = {"size", "count", "ratio", "flag", "choice", "text"};
    table_row(rows);
    table_set(rows, "kind", "%s", kind);
    table_set(rows, "name", "%s", name);
    table_set(rows, "summary", "%s", summary);
    if (option == NULL)
        return;
    char range[120];
    table_set(rows, "option", "%s", option->name);
    table_set(rows, "type", "%s", types[option->type]);
    table_set(rows, "default", "%s", option->fallback);
    table_set(rows, "range", "%s", option_range(option, range));
    table_set(rows, "help", "%s", option->help);
}

static void add_sources(table *rows)
{
    vram_trace_source source;
    for (size_t i = 0; vram_trace_source_at(i, &source); i++) {
        vram_trace_source_option row;
        if (!vram_trace_source_option_at(i, 0, &row))
            add_part(rows, source.group, source.name, source.summary, NULL);
        for (size_t k = 0; vram_trace_source_option_at(i, k, &row); k++) {
            add_part(rows, source.group, source.name, source.summary, NULL);
            table_set(rows, "option", "%s", row.name);
            table_set(rows, "default", "%s", row.fallback);
            table_set(rows, "help", "%s", row.help);
        }
    }
}

static void print_rows(table_format format)
{
    static const column columns[] = {
        {.name = "kind"}, {.name = "name"},    {.name = "summary"}, {.name = "option"},
        {.name = "type"}, {.name = "default"}, {.name = "range"},   {.name = "help"},
    };
    table *rows = table_new(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; vram_registry_at(i) != NULL; i++) {
        const vram_ops *ops = vram_registry_at(i);
        const char *kind = ops->layer ? "layer" : "backend";
        const vram_option *row = ops->options;
        if (row == NULL || row->name == NULL)
            add_part(rows, kind, ops->name, ops->summary, NULL);
        for (; row != NULL && row->name != NULL; row++)
            add_part(rows, kind, ops->name, ops->summary, row);
    }
    for (size_t i = 0; vram_arena_kind_at(i) != NULL; i++)
        add_part(rows, "arena", vram_arena_kind_at(i)->name, vram_arena_kind_at(i)->summary, NULL);
    add_sources(rows);
    table_write(rows, format, stdout);
    table_free(rows);
}

static int list_run(int count, char **arguments)
{
    fields given = {.format = "table"};
    const int status = options_read(&command_list, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (count > 0)
        return fail_with(&command_list, "'%s' is not expected here", arguments[0]);
    const table_format format = table_format_of(given.format);
    if (format != TABLE_TEXT) {
        print_rows(format);
        return EXIT_DONE;
    }
    puts("backends:");
    print_parts(false, !given.short_form);
    puts("\nlayers, over any backend (BACKEND+LAYER):");
    print_parts(true, !given.short_form);
    puts("\narenas (--arena [KIND:]SIZE):");
    for (size_t i = 0; vram_arena_kind_at(i) != NULL; i++)
        printf("  %-12s %s\n", vram_arena_kind_at(i)->name, vram_arena_kind_at(i)->summary);
    puts("\ntraces in files, told apart by content, plain or gzip:");
    print_sources("format", !given.short_form);
    puts("\ngenerated traces (generate:NAME,KEY=VALUE):");
    print_sources("generate", !given.short_form);
    puts("\nnamed cases (case:NAME):");
    print_sources("case", !given.short_form);
    return EXIT_DONE;
}
