/* native.c - vramlab's own text, which holds all there is (traces/README.md). */
#include "writer.h"

#include "../readers/reader.h"

#include <stdlib.h>
#include <string.h>

typedef struct native {
    uint64_t time_ns; /* of the line before; UINT64_MAX before the first */
    bool *declared;   /* by stack */
    size_t declared_capacity;
} native;

static void quoted(sink *out, const char *text)
{
    sink_text(out, "\"");
    for (; *text != '\0'; text++) {
        const char c = *text;
        if (c == '"' || c == '\\')
            sink_bytes(out, (const char[]){'\\', c}, 2);
        else if (c == '\n')
            sink_bytes(out, "\\n", 2);
        else if (c == '\t')
            sink_bytes(out, "\\t", 2);
        else
            sink_bytes(out, c == '\r' ? " " : &c, 1); /* a line may not end here */
    }
    sink_text(out, "\"");
}

static bool native_begin(writing *w)
{
    native *state = calloc(1, sizeof *state);
    if (state == NULL)
        return false;
    w->state = state;
    state->time_ns = UINT64_MAX;
    sink_text(&w->sink, "vramlab trace 1\n");
    if (strncmp(w->info->path, "generate:", 9) == 0 || strncmp(w->info->path, "case:", 5) == 0) {
        sink_text(&w->sink, "# "); /* so that it can be made again */
        sink_text(&w->sink, w->info->path);
        sink_text(&w->sink, "\n");
    }
    sink_text(&w->sink, "unit ");
    sink_decimal(&w->sink, w->info->unit_bytes);
    vram_recorded recorded = w->info->recorded;
    const char *name;
    for (size_t i = 0; (name = vram_recorded_name(i)) != NULL; i++) {
        const uint64_t number = *vram_recorded_field(&recorded, name, strlen(name));
        if (number == 0)
            continue;
        sink_text(&w->sink, "\nrecorded ");
        sink_text(&w->sink, name);
        sink_text(&w->sink, " ");
        sink_decimal(&w->sink, number);
    }
    sink_text(&w->sink, "\n");
    return true;
}

/* A stack is declared on the line before its first use. */
static bool declare(writing *w, uint32_t stack)
{
    native *state = w->state;
    const size_t before = state->declared_capacity;
    if (!vram_reserve((void **)&state->declared, &state->declared_capacity, (size_t)stack + 1,
                      sizeof *state->declared))
        return false;
    for (size_t i = before; i < state->declared_capacity; i++)
        state->declared[i] = false;
    if (state->declared[stack])
        return true;
    state->declared[stack] = true;
    sink_text(&w->sink, "stack ");
    sink_decimal(&w->sink, stack);
    sink_text(&w->sink, " ");
    quoted(&w->sink, vram_trace_stack(w->trace, stack));
    sink_text(&w->sink, "\n");
    return true;
}

static void number(writing *w, uint64_t value)
{
    sink_text(&w->sink, " ");
    sink_decimal(&w->sink, value);
}

/* Handles that look like addresses are easier to compare in hexadecimal. */
static void handle(writing *w, const char *before, uint64_t value)
{
    sink_text(&w->sink, before);
    if (value < 65536)
        sink_decimal(&w->sink, value);
    else
        sink_hex(&w->sink, value);
}

static void write_operands(writing *w, const vram_event *event)
{
    static const char letters[VRAM_EVENT_KINDS] = {
        [VRAM_EVENT_ALLOC] = 'a',  [VRAM_EVENT_FREE] = 'f', [VRAM_EVENT_RETIRE] = 'p',
        [VRAM_EVENT_RESIZE] = 'r', [VRAM_EVENT_TRY] = 't',  [VRAM_EVENT_USE] = 'u',
        [VRAM_EVENT_SYNC] = 'y',   [VRAM_EVENT_WAIT] = 'w', [VRAM_EVENT_MARK] = 'm'};
    sink_bytes(&w->sink, &letters[event->kind], 1);
    const uint64_t id = w->ids[event->slot];
    switch ((vram_event_kind)event->kind) {
    case VRAM_EVENT_ALLOC:
        number(w, id);
        number(w, event->size_bytes);
        break;
    case VRAM_EVENT_RESIZE:
        number(w, id);
        number(w, event->size_bytes);
        if (event->id != id)
            handle(w, " n", event->id);
        break;
    case VRAM_EVENT_FREE:
    case VRAM_EVENT_RETIRE:
    case VRAM_EVENT_USE:
        number(w, id);
        break;
    case VRAM_EVENT_TRY:
        number(w, event->size_bytes);
        break;
    case VRAM_EVENT_WAIT:
        handle(w, " ", vram_trace_stream(w->trace, (uint32_t)event->size_bytes));
        break;
    case VRAM_EVENT_SYNC:
    case VRAM_EVENT_MARK:
    case VRAM_EVENT_KINDS:
        break;
    }
}

/* A stream is written where it says something: not 0, or a use, wait or sync, which need it. */
static void write_attributes(writing *w, const vram_event *event)
{
    native *state = w->state;
    if (w->info->has_clock && event->time_ns != state->time_ns) {
        sink_text(&w->sink, " @");
        sink_decimal(&w->sink, clock_ns(w, event));
        state->time_ns = event->time_ns;
    }
    const bool needed = event->kind == VRAM_EVENT_USE || event->kind == VRAM_EVENT_WAIT ||
                        event->kind == VRAM_EVENT_SYNC;
    const uint64_t stream = vram_trace_stream(w->trace, event->stream);
    if (event->stream != UINT32_MAX && (needed || stream != 0))
        handle(w, " s", stream);
    if (event->align_log2 != 0) {
        sink_text(&w->sink, " ^");
        sink_decimal(&w->sink, UINT64_C(1) << event->align_log2);
    }
    if (event->stack != 0) {
        sink_text(&w->sink, " k");
        sink_decimal(&w->sink, event->stack);
    }
    if (event->tag != 0 || event->kind == VRAM_EVENT_MARK) {
        sink_text(&w->sink, " ");
        quoted(&w->sink, vram_trace_tag(w->trace, event->tag));
    }
}

static bool native_event(writing *w, const vram_event *event)
{
    if (event->stack != 0 && !declare(w, event->stack))
        return false;
    write_operands(w, event);
    write_attributes(w, event);
    sink_text(&w->sink, "\n");
    w->report->lines++;
    return true;
}

static void native_drop(writing *w)
{
    native *state = w->state;
    free(state->declared);
    free(state);
}

const vram_writer vram_writer_native = {
    .name = "native",
    .summary = "vramlab's own text, one event a line: holds all there is",
    .suffix = ".vt",
    .begin = native_begin,
    .event = native_event,
    .drop = native_drop,
};
