/*
 * made_file.h - files made by a test, and traces read back as text.
 */
#ifndef VRAMLAB_TESTS_MADE_FILE_H
#define VRAMLAB_TESTS_MADE_FILE_H

#include <vramlab/trace.h>

typedef struct made_file {
    char path[64];
} made_file;

/* A file of these bytes; the caller drops it. */
made_file make_file(const void *bytes, size_t count);
made_file make_gzip(const void *bytes, size_t count);
void drop_file(made_file file);
/* The bytes of a file, for free(). */
char *bytes_of(const char *path, size_t *count);

/*
 * Every event on a line, as "alloc 7 4096 slot 0 at 12 stream 0x0 align 3 tag 'x'", for free();
 * only what is not 0 after the size. NULL with a message when the trace cannot be read.
 */
char *events_of(const char *path, const vram_trace_options *options, vram_error *error);
/* The counts of anomalies that are not 0: "double free 1, zero size 2". `text` holds 512. */
const char *anomalies_of(const char *path, char text[512]);

/* True when the file is read to its end without an error. */
bool reads(const char *path, const vram_trace_options *options, vram_error *error);

#endif
