/* made_file.c - see made_file.h. */
#include "made_file.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static made_file fresh(void)
{
    made_file file = {P_tmpdir "/vramlab-made-XXXXXX"};
    const int descriptor = mkstemp(file.path);
    cr_assert_neq(descriptor, -1);
    close(descriptor);
    return file;
}

made_file make_file(const void *bytes, size_t count)
{
    const made_file file = fresh();
    FILE *const out = fopen(file.path, "wb");
    cr_assert_not_null(out);
    cr_assert_eq(fwrite(bytes, 1, count, out), count);
    fclose(out);
    return file;
}

made_file make_gzip(const void *bytes, size_t count)
{
    const made_file file = fresh();
    gzFile out = gzopen(file.path, "wb9");
    cr_assert_not_null(out);
    cr_assert_eq(gzwrite(out, bytes, (unsigned)count), (int)count);
    gzclose(out);
    return file;
}

void drop_file(made_file file)
{
    unlink(file.path);
}

char *bytes_of(const char *path, size_t *count)
{
    FILE *const file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    fseek(file, 0, SEEK_END);
    *count = (size_t)ftell(file);
    rewind(file);
    char *const bytes = malloc(*count + 1);
    cr_assert_eq(fread(bytes, 1, *count, file), *count);
    bytes[*count] = '\0';
    fclose(file);
    return bytes;
}

static void print_event(FILE *out, const vram_trace *trace, const vram_event *event)
{
    fprintf(out, "%s %" PRIu64 " %" PRIu64, vram_event_kind_name((vram_event_kind)event->kind),
            event->id, event->size_bytes);
    if (event->slot != 0)
        fprintf(out, " slot %" PRIu32, event->slot);
    if (event->time_ns != 0 && vram_trace_info_of(trace)->has_clock)
        fprintf(out, " at %" PRIu64, event->time_ns);
    if (event->stream == UINT32_MAX)
        fprintf(out, " all streams");
    else if (vram_trace_stream(trace, event->stream) != 0)
        fprintf(out, " stream 0x%" PRIx64, vram_trace_stream(trace, event->stream));
    if (event->align_log2 != 0)
        fprintf(out, " align %u", (unsigned)event->align_log2);
    if (event->tag != 0)
        fprintf(out, " tag '%s'", vram_trace_tag(trace, event->tag));
    if (event->stack != 0)
        fprintf(out, " stack '%s'", vram_trace_stack(trace, event->stack));
    fputc('\n', out);
}

char *events_of(const char *path, const vram_trace_options *options, vram_error *error)
{
    vram_trace *trace;
    if (!vram_trace_open(path, options, &trace, error))
        return NULL;
    char *text;
    size_t bytes;
    FILE *const out = open_memstream(&text, &bytes);
    vram_event event;
    vram_step step;
    while ((step = vram_trace_next(trace, &event, error)) == VRAM_STEP_EVENT)
        print_event(out, trace, &event);
    fclose(out);
    vram_trace_close(trace);
    if (step == VRAM_STEP_END)
        return text;
    free(text);
    return NULL;
}

const char *anomalies_of(const char *path, char text[512])
{
    vram_trace *trace;
    vram_error error;
    vram_trace_summary summary;
    cr_assert(vram_trace_open(path, NULL, &trace, &error), "%s", error.text);
    cr_assert(vram_trace_summarise(trace, &summary, &error), "%s", error.text);
    int length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < VRAM_ANOMALIES; i++) {
        const uint64_t count = vram_trace_info_of(trace)->anomalies[i];
        if (count > 0)
            length += snprintf(text + length, 512 - (size_t)length, "%s%s %" PRIu64,
                               length > 0 ? ", " : "", vram_anomaly_name((vram_anomaly)i), count);
    }
    vram_trace_close(trace);
    return text;
}

bool reads(const char *path, const vram_trace_options *options, vram_error *error)
{
    char *const events = events_of(path, options, error);
    free(events);
    return events != NULL;
}
