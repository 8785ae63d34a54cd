/*
 * score.h - what a backend is worth in space and speed beside the built-in ones, in one run.
 */
#ifndef VRAMLAB_SCORE_H
#define VRAMLAB_SCORE_H

#include "cli/command.h"
#include "conformance/contained.h"

/*
 * Measures the stack and every built-in backend, each in a child, and writes the table. False with
 * a message when a workload or a child cannot be made, or the stack cannot be measured.
 */
bool score_write(const char *spec, const vram_limits *limits, table_format format, FILE *out,
                 vram_error *error);

#endif
