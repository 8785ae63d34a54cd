/*
 * shelf.c - see shelf.h.
 */
#include "cli/shelf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool shelf_has_room(const shelf *self, vram_error *error)
{
    return self->count < self->most ||
           vram_fail(error, "at most %zu at once: name fewer backends with --backend", self->most);
}

static bool reserve(shelf *self)
{
    if (self->timelines == NULL)
        self->timelines = calloc(self->most, sizeof *self->timelines);
    if (self->timelines == NULL) {
        fputs("vramlab: out of host memory\n", stderr);
        abort();
    }
    return true;
}

static bool replay_one(shelf *self, const replay_job *job, const shelf_fields *given, size_t index,
                       vram_error *error)
{
    vram_backend *backend = NULL;
    vram_replay_result result;
    if (!shelf_has_room(self, error) || !reserve(self))
        return false;
    progress_begin(job->specs[index]);
    bool done = job_backend(job, index, job->arena_bytes, &backend, error);
    if (done) {
        const vram_replay_options how = {
            .on_failure = given->skip ? VRAM_SKIP_FAILURES : VRAM_STOP_AT_FAILURE,
            .tries = true,
            .look_at_event = UINT64_MAX,
            .compact = job_compaction(job, backend),
            .record = &self->timelines[self->count],
            .progress = progress_show,
        };
        done = vram_replay(job->trace, backend, &how, &result, error);
        self->count++; /* a timeline is freed even after a failure */
    }
    progress_end();
    vram_destroy(backend);
    return done;
}

int shelf_add(shelf *self, const command *which, const shelf_fields *given, const char *path)
{
    vram_error error = {""};
    if (vram_timeline_is_file(path)) {
        if (!shelf_has_room(self, &error) || !reserve(self) ||
            !vram_timeline_load(path, &self->timelines[self->count], &error))
            return fail_with(which, "%s", error.text);
        self->count++;
        return -1;
    }
    replay_job job;
    int status = job_open(&job, which, &given->job, path);
    for (size_t i = 0; status < 0 && i < job.spec_count; i++)
        if (!replay_one(self, &job, given, i, &error))
            status = fail_with(which, "%s", error.text);
    job_close(&job);
    return status;
}

void shelf_free(shelf *self)
{
    for (size_t i = 0; i < self->count; i++)
        vram_timeline_free(&self->timelines[i]);
    free(self->timelines);
    self->timelines = NULL;
    self->count = 0;
}

const vram_timeline **shelf_pointers(const shelf *self)
{
    const vram_timeline **pointers = calloc(self->count + 1, sizeof *pointers);
    if (pointers == NULL) {
        fputs("vramlab: out of host memory\n", stderr);
        abort();
    }
    for (size_t i = 0; i < self->count; i++)
        pointers[i] = &self->timelines[i];
    return pointers;
}

/* ---- words ---- */

bool read_picture_size(const char *text, uint32_t *width, uint32_t *height, vram_error *error)
{
    unsigned long numbers[2] = {0, 0};
    char *end = NULL;
    numbers[0] = strtoul(text, &end, 10);
    if (*end == 'x')
        numbers[1] = strtoul(end + 1, &end, 10);
    if (*end != '\0' || numbers[0] == 0 || numbers[1] == 0 || numbers[0] > 65536 ||
        numbers[1] > 65536)
        return vram_fail(error, "'%s' is not a size such as 1600x1000", text);
    *width = (uint32_t)numbers[0];
    *height = (uint32_t)numbers[1];
    return true;
}

/* Cuts "FROM..TO" in two; an end may be left out. False when there are no two dots. */
static bool cut_window(const char *text, char from[64], char to[64])
{
    const char *dots = strstr(text, "..");
    if (dots == NULL || dots - text >= 64 || strlen(dots + 2) >= 64)
        return false;
    snprintf(from, 64, "%.*s", (int)(dots - text), text);
    snprintf(to, 64, "%s", dots + 2);
    return true;
}

bool read_address_window(const char *text, vram_window whole, vram_window *window,
                         vram_error *error)
{
    char from[64];
    char to[64];
    *window = whole;
    if (!cut_window(text, from, to))
        return vram_fail(error, "'%s' is not a stretch such as 1GiB..2GiB or 10%%..50%%", text);
    if ((from[0] != '\0' && !vram_parse_size(from, whole.to, &window->from, error)) ||
        (to[0] != '\0' && !vram_parse_size(to, whole.to, &window->to, error)))
        return false;
    return window->from < window->to || vram_fail(error, "'%s' is empty", text);
}

static bool read_position(const char *text, vram_axis axis, vram_window whole, uint64_t *position,
                          vram_error *error)
{
    char *end = NULL;
    const double number = strtod(text, &end);
    const bool share = strcmp(end, "%") == 0;
    if (end == text || (*end != '\0' && !share) || !(number >= 0) || number > 1e18)
        return vram_fail(error, "'%s' is not a number of %s, nor a share such as 40%%", text,
                         axis == VRAM_AXIS_TIME ? "seconds" : "events");
    const double positions = share                    ? number / 100 * (double)whole.to
                             : axis == VRAM_AXIS_TIME ? number * 1e9
                                                      : number;
    *position = positions < 1.8e19 ? (uint64_t)llround(positions) : UINT64_MAX;
    return true;
}

bool read_time_window(const char *text, vram_axis axis, vram_window whole, vram_window *window,
                      vram_error *error)
{
    char from[64];
    char to[64];
    *window = whole;
    if (!cut_window(text, from, to))
        return vram_fail(error, "'%s' is not a stretch such as %s or 10%%..50%%", text,
                         axis == VRAM_AXIS_TIME ? "0.5..1.25" : "1000..2000");
    if ((from[0] != '\0' && !read_position(from, axis, whole, &window->from, error)) ||
        (to[0] != '\0' && !read_position(to, axis, whole, &window->to, error)))
        return false;
    return window->from < window->to || vram_fail(error, "'%s' is empty", text);
}

vram_window shelf_whole_time(const shelf *self, vram_axis axis)
{
    vram_window whole = {0, 1};
    for (size_t i = 0; i < self->count; i++) {
        const uint64_t to = vram_axis_whole(&self->timelines[i], axis).to;
        whole.to = to > whole.to ? to : whole.to;
    }
    return whole;
}

vram_window shelf_whole_arena(const shelf *self)
{
    vram_window whole = {0, 1};
    for (size_t i = 0; i < self->count; i++)
        if (self->timelines[i].arena_bytes > whole.to)
            whole.to = self->timelines[i].arena_bytes;
    return whole;
}
