/*
 * output.c - whole files: written beside, then renamed, so that a reader never meets a half.
 */
#include <vramlab/output.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void forget(vram_output *output)
{
    free(output->path);
    free(output->beside);
    *output = (vram_output){0};
}

bool vram_output_open(vram_output *output, const char *path, vram_error *error)
{
    *output = (vram_output){.path = strdup(path)};
    if (output->path == NULL ||
        asprintf(&output->beside, "%s.%ld.part", path, (long)getpid()) < 0) {
        output->beside = NULL;
        forget(output);
        return vram_fail(error, "cannot write %s: out of host memory", path);
    }
    output->file = fopen(output->beside, "wb");
    if (output->file == NULL) {
        vram_fail(error, "cannot write %s: %s", path, strerror(errno));
        forget(output);
        return false;
    }
    return true;
}

bool vram_output_commit(vram_output *output, vram_error *error)
{
    errno = 0;
    bool written = ferror(output->file) == 0;
    written = fclose(output->file) == 0 && written;
    written = written && rename(output->beside, output->path) == 0;
    if (!written) {
        vram_fail(error, "cannot write %s: %s", output->path,
                  errno != 0 ? strerror(errno) : "a write failed");
        unlink(output->beside);
    }
    forget(output);
    return written;
}

void vram_output_discard(vram_output *output)
{
    fclose(output->file);
    unlink(output->beside);
    forget(output);
}
