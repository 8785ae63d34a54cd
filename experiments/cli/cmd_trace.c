/*
 * cmd_trace.c - `vramlab trace ...`: read, translate and make traces. Each subcommand is a command
 * of its own.
 */
#include "cli/job.h"

#include <string.h>

extern const command command_trace_info, command_trace_convert, command_trace_generate,
    command_trace_model;

static const command *const subcommands[] = {
    &command_trace_info,
    &command_trace_convert,
    &command_trace_generate,
    &command_trace_model,
};
enum { SUBCOMMANDS = sizeof subcommands / sizeof subcommands[0] };

static int trace_run(int count, char **arguments);

const command command_trace = {
    .name = "trace",
    .usage = "SUBCOMMAND ...",
    .summary = "read, translate and make traces",
    .text = "Works on traces themselves. Each subcommand has its own --help.",
    .run = trace_run,
};

static void print_help(FILE *out)
{
    fprintf(out, "usage: vramlab trace %s\n\n%s\n\n", command_trace.usage, command_trace.text);
    for (size_t i = 0; i < SUBCOMMANDS; i++)
        fprintf(out, "  %-16s %s\n", subcommands[i]->name, subcommands[i]->summary);
}

static int trace_run(int count, char **arguments)
{
    if (count == 0) {
        print_help(stderr);
        return EXIT_WRONG;
    }
    if (strcmp(arguments[0], "--help") == 0 || strcmp(arguments[0], "-h") == 0) {
        print_help(stdout);
        return EXIT_DONE;
    }
    for (size_t i = 0; i < SUBCOMMANDS; i++)
        if (strcmp(subcommands[i]->name + strlen("trace "), arguments[0]) == 0)
            return subcommands[i]->run(count - 1, arguments + 1);
    return fail_with(&command_trace,
                     "no subcommand is called '%s'; `vramlab trace --help` lists them",
                     arguments[0]);
}
