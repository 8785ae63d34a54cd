/* hand_trace.h - traces written by hand, in vramlab's own format, for tests. */
#ifndef VRAMLAB_TESTS_HAND_TRACE_H
#define VRAMLAB_TESTS_HAND_TRACE_H

#include <vramlab/trace.h>

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Opens the text, which begins after the line that names the format. The file is gone at once. */
static inline vram_trace *hand_trace(const char *text)
{
    char path[] = P_tmpdir "/vramlab-hand-XXXXXX";
    const int file = mkstemp(path);
    cr_assert(file >= 0);
    FILE *const out = fdopen(file, "w");
    fprintf(out, "vramlab trace 1\n%s", text);
    fclose(out);
    vram_trace *trace = NULL;
    vram_error error = {0};
    const bool opened =
        vram_trace_open(path, NULL, &trace, &error) && vram_trace_hold(trace, &error);
    unlink(path);
    cr_assert(opened, "%s", error.text);
    return trace;
}

#endif
