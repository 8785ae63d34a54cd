/*
 * vramlab/output.h - a file that is whole or absent: written beside its place, then renamed.
 *
 *     vram_output output;
 *     if (!vram_output_open(&output, path, &error))
 *         return false;
 *     fprintf(output.file, ...);
 *     return vram_output_commit(&output, &error);
 */
#ifndef VRAMLAB_OUTPUT_H
#define VRAMLAB_OUTPUT_H

#include <vramlab/text.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vram_output {
    FILE *file;
    char *path;   /* where it will be */
    char *beside; /* where it is until then: the path with the process's number after it */
} vram_output;

bool vram_output_open(vram_output *output, const char *path, vram_error *error);

/* Closes and renames. On any failure, of the writes before included, nothing is left behind and
 * what was at `path` is as before. */
bool vram_output_commit(vram_output *output, vram_error *error);

/* Closes and removes what was written. */
void vram_output_discard(vram_output *output);

#ifdef __cplusplus
}
#endif
#endif
