/* source.c - what every format shares: places in messages, anomalies, streams. */
#include "reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *vram_source_where(const vram_source *source, char text[64])
{
    if (source->record_name != NULL)
        snprintf(text, 64, "%s %" PRIu64, source->record_name, source->record);
    else if (source->input == NULL)
        snprintf(text, 64, "at the start");
    else if (source->input->line > 0)
        snprintf(text, 64, "line %" PRIu64, source->input->line);
    else
        snprintf(text, 64, "byte %" PRIu64, vram_input_position(source->input));
    return text;
}

/* The message behind the path and the place. */
static void fail_at(const vram_source *source, vram_error *error, const char *hint,
                    const char *format, va_list arguments)
{
    char message[512], where[64];
    vsnprintf(message, sizeof message, format, arguments);
    vram_fail(error, "%s: %s: %s%s", source->path, vram_source_where(source, where), message, hint);
}

vram_step vram_source_fail(const vram_source *source, vram_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail_at(source, error, "", format, arguments);
    va_end(arguments);
    return VRAM_STEP_ERROR;
}

vram_step vram_source_expected(const vram_source *source, const vram_scan *scan, const char *what,
                               vram_error *error)
{
    char found[VRAM_EXCERPT];
    return vram_source_fail(source, error, "found %s, expected %s", vram_scan_excerpt(scan, found),
                            what);
}

vram_step vram_source_line(vram_source *source, vram_scan *line, vram_error *error)
{
    const char *text;
    size_t bytes;
    switch (vram_input_line(source->input, &text, &bytes, error)) {
    case VRAM_LINE:
        *line = scan_over(text, bytes);
        return VRAM_STEP_EVENT;
    case VRAM_LINE_END:
        return VRAM_STEP_END;
    case VRAM_LINE_ERROR:
        break;
    }
    return VRAM_STEP_ERROR;
}

bool vram_source_tag(vram_source *source, vram_scan text, vram_raw *event, vram_error *error)
{
    if (vram_names_intern(&source->tags, text.at, (size_t)(text.end - text.at), &event->tag))
        return true;
    vram_source_fail(source, error, "out of memory");
    return false;
}

bool vram_source_anomaly(vram_source *source, vram_anomaly anomaly, vram_error *error,
                         const char *format, ...)
{
    source->info->anomalies[anomaly]++;
    if (!source->options->strict)
        return true;
    va_list arguments;
    va_start(arguments, format);
    fail_at(source, error, " (an error because of --strict)", format, arguments);
    va_end(arguments);
    return false;
}

bool vram_source_stream(vram_source *source, uint64_t handle, uint32_t *index)
{
    vram_trace_info *info = source->info;
    if (info->streams > 0 && handle == source->last_handle) {
        *index = source->last_stream;
        return true;
    }
    const uint32_t *found = vram_idmap_find(&source->stream_index, handle);
    *index = found != NULL ? *found : info->streams;
    if (found == NULL) {
        if (!vram_reserve((void **)&source->streams, &source->stream_capacity, *index + 1u,
                          sizeof *source->streams) ||
            !vram_idmap_put(&source->stream_index, handle, *index))
            return false;
        source->streams[info->streams++] = handle;
    }
    source->last_handle = handle;
    source->last_stream = *index;
    return true;
}

static const struct {
    const char *name;
    size_t offset;
} figures[] = {
    {"peak_reserved_bytes", offsetof(vram_recorded, peak_reserved_bytes)},
    {"peak_allocated_bytes", offsetof(vram_recorded, peak_allocated_bytes)},
    {"out_of_memory", offsetof(vram_recorded, out_of_memory)},
    {"device_events", offsetof(vram_recorded, device_events)},
    {"blocks_before", offsetof(vram_recorded, blocks_before)},
    {"bytes_before", offsetof(vram_recorded, bytes_before)},
};
enum { FIGURES = sizeof figures / sizeof figures[0] };

const char *vram_recorded_name(size_t index)
{
    return index < FIGURES ? figures[index].name : NULL;
}

uint64_t *vram_recorded_field(vram_recorded *recorded, const char *name, size_t name_bytes)
{
    for (size_t i = 0; i < FIGURES; i++)
        if (strlen(figures[i].name) == name_bytes && memcmp(figures[i].name, name, name_bytes) == 0)
            return (uint64_t *)(void *)((char *)recorded + figures[i].offset);
    return NULL;
}
