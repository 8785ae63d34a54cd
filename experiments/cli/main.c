/*
 * main.c - the command `vramlab`: finds the subcommand and runs it.
 */
#include "cli/command.h"

#include <string.h>

extern const command command_attack;
extern const command command_advise;
extern const command command_bench;
extern const command command_check;
extern const command command_compare;
extern const command command_fit;
extern const command command_heatmap;
extern const command command_list;
extern const command command_stats;
extern const command command_sweep;
extern const command command_trace;
extern const command command_validate;
extern const command command_view;

/* In the order in which --help shows them. */
/* clang-format off */
static const command *const commands[] = { /* a row each, so that two additions do not collide */
    &command_compare,
    &command_fit,
    &command_advise,
    &command_heatmap,
    &command_view,
    &command_trace,
    &command_bench,
    &command_check,
    &command_attack,
    &command_sweep,
    &command_stats,
    &command_validate,
    &command_list,
};
/* clang-format on */
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(FILE *out)
{
    fputs("vramlab replays recordings of GPU memory allocation on interchangeable allocators, and "
          "shows where\nthe memory went and which allocator would have survived.\n\n"
          "usage: vramlab COMMAND [ARGUMENTS]\n\n",
          out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n`vramlab COMMAND --help` tells the rest, with examples.\n"
          "Sizes read 3GiB, 64KiB, 512 or 80% (powers of 1024). Exit status: 0 done; 1 the answer "
          "is no; 2 the input or\nthe call was wrong.\n",
          out);
}

static const command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

int main(int count, char **arguments)
{
    if (count < 2) {
        print_help(stderr);
        return EXIT_WRONG;
    }
    const char *name = arguments[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        const command *about = count > 2 ? find_command(arguments[2]) : NULL;
        if (about != NULL)
            options_help(about);
        else
            print_help(stdout);
        return EXIT_DONE;
    }
    if (strcmp(name, "--version") == 0) {
        puts("vramlab " VRAMLAB_VERSION);
        return EXIT_DONE;
    }
    const command *found = find_command(name);
    if (found == NULL) {
        fprintf(stderr, "vramlab: no command is called '%s'; `vramlab --help` lists them\n", name);
        return EXIT_WRONG;
    }
    const int status = found->run(count - 2, arguments + 2);
    if (fflush(stdout) != 0 && status == EXIT_DONE) {
        perror("vramlab: standard output");
        return EXIT_WRONG;
    }
    return status;
}
