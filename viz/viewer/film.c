/*
 * film.c - many views in a row: as pictures, as a film through ffmpeg, and as a measurement.
 */
#include "view.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Frame i of n: from the first event to the last. */
static void go_to_frame(vram_view *view, uint32_t frame, uint32_t count)
{
    view->event =
        count < 2 ? view->events : (uint64_t)((double)view->events * frame / (count - 1) + 0.5);
}

bool vram_view_frames(vram_view *view, const char *folder, uint32_t count, vram_error *error)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return vram_fail(error, "cannot make the folder %s: %s", folder, strerror(errno));
    for (uint32_t i = 0; i < count; i++) {
        char path[4096];
        go_to_frame(view, i, count);
        if (snprintf(path, sizeof path, "%s/frame-%06u.png", folder, i + 1) >= (int)sizeof path)
            return vram_fail(error, "the folder's name is too long");
        if (!vram_view_save(view, path, error))
            return false;
    }
    return true;
}

/* ---- ffmpeg ---- */

static const struct {
    const char *end;
    const char *arguments[12];
} films[] = {
    {".mp4", {"-c:v", "libx264", "-preset", "medium", "-crf", "18", "-pix_fmt", "yuv420p", NULL}},
    {".webm", {"-c:v", "libvpx-vp9", "-crf", "30", "-b:v", "0", "-pix_fmt", "yuv420p", NULL}},
    {".gif",
     {"-vf", "split[a][b];[a]palettegen[p];[b][p]paletteuse=dither=none", "-loop", "0", NULL}},
};

static const char *const *arguments_for(const char *path)
{
    const char *end = strrchr(path, '.');
    for (size_t i = 0; end != NULL && i < sizeof films / sizeof films[0]; i++)
        if (strcmp(films[i].end, end) == 0)
            return films[i].arguments;
    return NULL;
}

/* Starts ffmpeg reading raw frames from a pipe; writes beside its place. */
static pid_t start_ffmpeg(const vram_view *view, const char *path, uint32_t per_second,
                          int *pipe_in)
{
    char size[32];
    char rate[16];
    const char *arguments[32] = {"ffmpeg", "-nostdin", "-loglevel", "error", "-y",
                                 "-f",     "rawvideo", "-pix_fmt",  "bgr0",  "-s",
                                 size,     "-r",       rate,        "-i",    "-"};
    size_t count = 15;
    snprintf(size, sizeof size, "%dx%d", view->raster.width, view->raster.height);
    snprintf(rate, sizeof rate, "%u", per_second);
    for (const char *const *each = arguments_for(path); *each != NULL; each++)
        arguments[count++] = *each;
    arguments[count++] = path;
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
        execvp("ffmpeg", (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    close(ends[0]);
    *pipe_in = ends[1];
    return child;
}

static bool write_whole(int to, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length > 0) {
        const ssize_t wrote = write(to, at, length);
        if (wrote <= 0 && errno != EINTR)
            return false;
        at += wrote > 0 ? wrote : 0;
        length -= wrote > 0 ? (size_t)wrote : 0;
    }
    return true;
}

static bool send_frames(vram_view *view, int to, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int width;
        int height;
        go_to_frame(view, i, count);
        const uint32_t *pixels = vram_view_paint(view, &width, &height);
        if (pixels == NULL ||
            !write_whole(to, pixels, (size_t)width * (size_t)height * sizeof *pixels))
            return false;
    }
    return true;
}

/* "DIR/name.mp4" becomes "DIR/part-PID-name.mp4": the end tells ffmpeg the format. */
static char *beside(const char *path)
{
    const char *slash = strrchr(path, '/');
    const int folder = slash != NULL ? (int)(slash - path + 1) : 0;
    char *name = NULL;
    return asprintf(&name, "%.*spart-%ld-%s", folder, path, (long)getpid(), path + folder) < 0
               ? NULL
               : name;
}

bool vram_view_film(vram_view *view, const char *path, uint32_t count, uint32_t per_second,
                    vram_error *error)
{
    if (arguments_for(path) == NULL)
        return vram_fail(error, "%s: a film's name ends in .mp4, .webm or .gif", path);
    /* Films of odd width or height cannot be coded in 4:2:0. */
    if (!vram_view_resize(view, view->raster.width & ~1, view->raster.height & ~1))
        return vram_fail(error, "the host is out of memory for the view");
    char *part = beside(path);
    int to = -1;
    int status = 0;
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    const pid_t child = part != NULL ? start_ffmpeg(view, part, per_second, &to) : -1;
    bool made = child > 0 && send_frames(view, to, count);
    if (to >= 0)
        close(to);
    if (child > 0)
        waitpid(child, &status, 0);
    signal(SIGPIPE, before);
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127)
        made = vram_fail(error, "ffmpeg is not installed: install it (the Debian package ffmpeg), "
                                "or save pictures with --frames DIR");
    else if (!made || status != 0)
        made = vram_fail(error, "%s: ffmpeg could not make the film (see above)", path);
    else if (rename(part, path) != 0)
        made = vram_fail(error, "cannot write %s: %s", path, strerror(errno));
    if (!made && part != NULL)
        unlink(part);
    free(part);
    return made;
}

/* ---- measuring ---- */

static double milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

bool vram_view_measure(vram_view *view, uint32_t count, vram_view_bench *bench, vram_error *error)
{
    uint64_t random = UINT64_C(0x9E3779B97F4A7C15);
    int first_width;
    int first_height;
    *bench = (vram_view_bench){0};
    if (vram_view_paint(view, &first_width, &first_height) == NULL)
        return vram_fail(error, "the host is out of memory for the view");
    vram_view_settle(view);
    const double begin = milliseconds();
    for (uint32_t i = 0; i < count; i++) {
        int width;
        int height;
        view->event = vram_next_random(&random) % (view->events + 1);
        const double before = milliseconds();
        const bool sought = seek_maps(view);
        const double between = milliseconds();
        const bool painted = vram_view_paint(view, &width, &height) != NULL && sought;
        const double after = milliseconds();
        if (!painted)
            return vram_fail(error, "the host is out of memory for the view");
        bench->seek_ms_mean += (between - before) / count;
        bench->paint_ms_mean += (after - between) / count;
        if (between - before > bench->seek_ms_worst)
            bench->seek_ms_worst = between - before;
        if (after - between > bench->paint_ms_worst)
            bench->paint_ms_worst = after - between;
    }
    bench->frames_per_second = count / ((milliseconds() - begin) / 1e3);
    return true;
}
