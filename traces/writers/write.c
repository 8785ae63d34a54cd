/* write.c - a trace through one of the writers, and the account of what was lost. */
#include "writer.h"

#include "../readers/reader.h"

#include <stdlib.h>
#include <string.h>

static const vram_writer *const writers[] = {
    &vram_writer_native,
    &vram_writer_minimalloc,
    &vram_writer_rmm_csv,
    &vram_writer_rep,
};
enum { WRITERS = sizeof writers / sizeof writers[0] };

const char *vram_write_format_at(size_t index, const char **summary)
{
    if (index >= WRITERS)
        return NULL;
    if (summary != NULL)
        *summary = writers[index]->summary;
    return writers[index]->name;
}

const char *vram_write_format_of(const char *path)
{
    const size_t length = strlen(path);
    const size_t stem = length > 3 && strcmp(path + length - 3, ".gz") == 0 ? length - 3 : length;
    for (size_t i = 0; i < WRITERS; i++) {
        const char *suffix = writers[i]->suffix;
        const size_t bytes = suffix != NULL ? strlen(suffix) : 0;
        if (bytes > 0 && stem > bytes && memcmp(path + stem - bytes, suffix, bytes) == 0)
            return writers[i]->name;
    }
    return NULL;
}

const char *vram_loss_name(vram_loss loss)
{
    static const char *const names[VRAM_LOSSES] = {
        [VRAM_LOSS_TIME] = "times (events are numbered instead)",
        [VRAM_LOSS_PRECISION] = "times below a microsecond",
        [VRAM_LOSS_ID] = "ids (blocks are numbered anew)",
        [VRAM_LOSS_STREAM] = "streams",
        [VRAM_LOSS_ALIGN] = "alignments",
        [VRAM_LOSS_TAG] = "tags",
        [VRAM_LOSS_STACK] = "stacks",
        [VRAM_LOSS_RETIRE] = "moments at which a block was let go before its free",
        [VRAM_LOSS_RESIZE] = "resizes (written as a free and an allocation)",
        [VRAM_LOSS_TRY] = "asks that were refused when recorded",
        [VRAM_LOSS_USE] = "uses of a block",
        [VRAM_LOSS_ORDER] = "syncs and waits",
        [VRAM_LOSS_MARK] = "marks",
        [VRAM_LOSS_UNIT] = "the unit",
        [VRAM_LOSS_RECORDED] = "what the recording program's own allocator did",
        [VRAM_LOSS_NEVER_FREED] = "blocks never freed (given an end behind the last event)",
    };
    return (unsigned)loss < VRAM_LOSSES ? names[loss] : "unknown";
}

void lose_attributes(writing *w, const vram_event *event, unsigned which)
{
    if ((which & LOSE_ALIGN) != 0 && event->align_log2 != 0)
        lose(w, VRAM_LOSS_ALIGN);
    if ((which & LOSE_TAG) != 0 && event->tag != 0)
        lose(w, VRAM_LOSS_TAG);
    if ((which & LOSE_STACK) != 0 && event->stack != 0)
        lose(w, VRAM_LOSS_STACK);
    if ((which & LOSE_STREAM) != 0 && event->stream != UINT32_MAX &&
        vram_trace_stream(w->trace, event->stream) != 0)
        lose(w, VRAM_LOSS_STREAM);
}

void lose_event(writing *w, const vram_event *event)
{
    static const vram_loss losses[VRAM_EVENT_KINDS] = {
        [VRAM_EVENT_RETIRE] = VRAM_LOSS_RETIRE, [VRAM_EVENT_RESIZE] = VRAM_LOSS_RESIZE,
        [VRAM_EVENT_TRY] = VRAM_LOSS_TRY,       [VRAM_EVENT_USE] = VRAM_LOSS_USE,
        [VRAM_EVENT_SYNC] = VRAM_LOSS_ORDER,    [VRAM_EVENT_WAIT] = VRAM_LOSS_ORDER,
        [VRAM_EVENT_MARK] = VRAM_LOSS_MARK,
    };
    lose(w, losses[event->kind]);
}

static bool has_recorded(const vram_recorded *recorded)
{
    static const vram_recorded nothing;
    return memcmp(recorded, &nothing, sizeof nothing) != 0;
}

/* Keeps the id of each slot up to date around the writer's own view of the event. */
static bool write_event(const vram_writer *writer, writing *w, const vram_event *event)
{
    if (!vram_reserve((void **)&w->ids, &w->id_capacity, (size_t)event->slot + 1, sizeof *w->ids))
        return false;
    if (event->kind == VRAM_EVENT_ALLOC)
        w->ids[event->slot] = event->id;
    if (!writer->event(w, event))
        return false;
    if (event->kind == VRAM_EVENT_RESIZE)
        w->ids[event->slot] = event->id;
    w->report->events++;
    return true;
}

static bool write_events(const vram_writer *writer, writing *w, vram_error *error)
{
    if (!writer->begin(w))
        return vram_fail(error, "%s: out of memory", w->info->path);
    vram_event event;
    vram_step step;
    while ((step = vram_trace_next(w->trace, &event, error)) == VRAM_STEP_EVENT)
        if (!write_event(writer, w, &event))
            return vram_fail(error, "%s: out of memory", w->info->path);
    if (step == VRAM_STEP_ERROR)
        return false;
    if (writer->end != NULL && !writer->end(w))
        return vram_fail(error, "%s: out of memory", w->info->path);
    return true;
}

static bool write_file(const vram_writer *writer, writing *w, const char *path, vram_error *error)
{
    if (!sink_open(&w->sink, path, error))
        return false;
    const bool written = write_events(writer, w, error);
    if (writer->drop != NULL)
        writer->drop(w);
    free(w->ids);
    if (written)
        return sink_commit(&w->sink, error);
    sink_discard(&w->sink);
    return false;
}

static const vram_writer *writer_of(const char *name)
{
    for (size_t i = 0; i < WRITERS; i++)
        if (strcmp(writers[i]->name, name) == 0)
            return writers[i];
    return NULL;
}

bool vram_trace_write(vram_trace *trace, const char *format, const char *path,
                      vram_write_report *report, vram_error *error)
{
    const vram_writer *writer = writer_of(format);
    if (writer == NULL)
        return vram_fail(error, "'%s' cannot be written: native, minimalloc, rmm-csv and rep can",
                         format);
    vram_trace_summary summary = {0};
    if (!vram_trace_look_closer(trace, error) ||
        (writer->summarise ? !vram_trace_summarise(trace, &summary, error)
                           : !vram_trace_rewind(trace, error)))
        return false;
    *report = (vram_write_report){0};
    writing *w = calloc(1, sizeof *w);
    if (w == NULL)
        return vram_fail(error, "%s: out of memory", path);
    w->trace = trace;
    w->info = vram_trace_info_of(trace);
    w->summary = &summary;
    w->report = report;
    const bool written = write_file(writer, w, path, error);
    if (writer->unit_bytes != 0) {
        report->lost[VRAM_LOSS_UNIT] = w->info->unit_bytes != writer->unit_bytes;
        report->lost[VRAM_LOSS_RECORDED] = has_recorded(&w->info->recorded);
    }
    free(w);
    return written && vram_trace_rewind(trace, error);
}
