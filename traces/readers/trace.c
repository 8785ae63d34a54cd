/*
 * trace.c - a trace as its user sees it: opened by content, normalised, held, summarised.
 *
 *   vram_trace_next:  held events, or  format->next -> vram_normalise -> queue -> one event
 *
 * T1  after END or an error every further call answers the same until a rewind.
 * T2  a rewind keeps the numbers of tags, stacks and streams; the anomalies of the pass before stay
 *     until the first event is read anew.
 */
#include "../generate/generate.h"
#include "normalise.h"
#include "pytorch.h"
#include "reader.h"

#include <stdlib.h>
#include <string.h>

enum { PROGRESS_EVENTS = 1 << 20 };

struct vram_trace {
    vram_source source;
    vram_trace_info info;
    vram_trace_options options;
    const vram_format *format;
    bool opened; /* the format's open has succeeded and its close has not been called */
    char *path;
    vram_normaliser normaliser;
    vram_event queue[VRAM_NORMALISED_MAX];
    uint32_t queued, taken;
    vram_step ended;   /* END or ERROR once reached; otherwise EVENT */
    vram_error failed; /* why, when ended is ERROR */
    vram_event *held;
    size_t held_count, held_capacity, held_next;
    bool is_held;
};

/* ---- finding the format ---- */

static const vram_format *surest_format(const char *head, size_t head_bytes)
{
    const vram_format *best = NULL;
    int surest = 0;
    for (size_t i = 0; vram_formats[i] != NULL; i++) {
        const int sure = vram_formats[i]->probe(head, head_bytes);
        if (sure > surest) {
            surest = sure;
            best = vram_formats[i];
        }
    }
    return best;
}

static const vram_format *format_named(const char *name)
{
    for (size_t i = 0; vram_formats[i] != NULL; i++)
        if (strcmp(vram_formats[i]->name, name) == 0)
            return vram_formats[i];
    return NULL;
}

static bool choose_format(vram_trace *trace, const char *head, size_t head_bytes, vram_error *error)
{
    const char *name = trace->options.format;
    trace->format = name != NULL ? format_named(name) : surest_format(head, head_bytes);
    if (trace->format != NULL)
        return true;
    if (name != NULL)
        return vram_fail(error, "no format is called \"%s\"; `vramlab list` names them", name);
    return vram_fail(error,
                     "%s: begins like none of the formats that vramlab reads (`vramlab list` names "
                     "them)",
                     trace->path);
}

/* The workload whose name starts the spec. */
static const vram_format *workload_of(const vram_workload *const list[], const char *spec)
{
    const size_t name_bytes = strcspn(spec, ",");
    for (size_t i = 0; list[i] != NULL; i++) {
        const vram_format *format = &list[i]->format;
        if (strlen(format->name) == name_bytes && memcmp(format->name, spec, name_bytes) == 0)
            return format;
    }
    return NULL;
}

static bool find_workload(vram_trace *trace, const vram_workload *const list[], const char *kind,
                          size_t prefix_bytes, vram_error *error)
{
    const char *spec = trace->path + prefix_bytes;
    trace->format = workload_of(list, spec);
    if (trace->format == NULL)
        return vram_fail(error, "no %s is called \"%.*s\"; `vramlab list` names them", kind,
                         (int)strcspn(spec, ","), spec);
    trace->source.path = spec;
    return true;
}

static bool find_file(vram_trace *trace, vram_error *error)
{
    vram_input *input;
    if (!vram_input_open(trace->path, &trace->options, &input, error))
        return false;
    trace->source.input = input;
    if (!vram_input_need(input, VRAM_PROBE_BYTES, error))
        return false;
    const size_t visible = (size_t)(input->end - input->at);
    if (visible == 0)
        return vram_fail(error, "%s: is empty", trace->path);
    return choose_format(trace, input->at,
                         visible < VRAM_PROBE_BYTES ? visible : (size_t)VRAM_PROBE_BYTES, error);
}

static bool find_format(vram_trace *trace, vram_error *error)
{
    static const char generate[] = "generate:", named[] = "case:";
    if (strncmp(trace->path, generate, sizeof generate - 1) == 0)
        return find_workload(trace, vram_workloads, "workload", sizeof generate - 1, error);
    if (strncmp(trace->path, named, sizeof named - 1) == 0)
        return find_workload(trace, vram_cases, "case", sizeof named - 1, error);
    return find_file(trace, error);
}

static bool open_format(vram_trace *trace, vram_error *error)
{
    trace->opened = trace->format->open(&trace->source, error);
    return trace->opened;
}

static void close_format(vram_trace *trace)
{
    if (trace->opened)
        trace->format->close(&trace->source);
    trace->opened = false;
}

bool vram_trace_open(const char *path, const vram_trace_options *options, vram_trace **out,
                     vram_error *error)
{
    vram_trace *trace = calloc(1, sizeof *trace);
    if (trace == NULL || (trace->path = strdup(path)) == NULL) {
        free(trace);
        return vram_fail(error, "%s: out of memory", path);
    }
    if (options != NULL)
        trace->options = *options;
    trace->source.path = trace->path;
    trace->source.options = &trace->options;
    trace->source.info = &trace->info;
    trace->info.path = trace->path;
    trace->info.unit_bytes = 1;
    if (!find_format(trace, error) || !open_format(trace, error)) {
        vram_trace_close(trace);
        return false;
    }
    if (trace->info.format == NULL)
        trace->info.format = trace->format->name;
    *out = trace;
    return true;
}

void vram_trace_close(vram_trace *trace)
{
    if (trace == NULL)
        return;
    close_format(trace);
    vram_input_close(trace->source.input);
    vram_names_free(&trace->source.tags);
    vram_names_free(&trace->source.stacks);
    vram_idmap_free(&trace->source.stream_index);
    free(trace->source.streams);
    vram_normaliser_free(&trace->normaliser);
    free(trace->held);
    free(trace->path);
    free(trace);
}

/* ---- reading ---- */

static vram_step end_with(vram_trace *trace, vram_step step, const vram_error *error)
{
    trace->ended = step;
    if (step == VRAM_STEP_ERROR && error != NULL)
        trace->failed = *error;
    if (step == VRAM_STEP_END)
        trace->info.anomalies[VRAM_ANOMALY_NEVER_FREED] = trace->normaliser.live.count;
    return step;
}

/* The next event from the file. */
static vram_step read_event(vram_trace *trace, vram_event *event)
{
    vram_error error = {{0}};
    if (trace->normaliser.raws == 0)
        memset(trace->info.anomalies, 0, sizeof trace->info.anomalies);
    while (trace->taken == trace->queued) {
        vram_raw raw = {0};
        const vram_step step = trace->format->next(&trace->source, &raw, &error);
        if (step != VRAM_STEP_EVENT)
            return end_with(trace, step, &error);
        trace->taken = 0;
        if (!vram_normalise(&trace->normaliser, &trace->source, &raw, trace->queue, &trace->queued,
                            &error)) {
            trace->queued = 0;
            return end_with(trace, VRAM_STEP_ERROR, &error);
        }
    }
    *event = trace->queue[trace->taken++];
    return VRAM_STEP_EVENT;
}

static void tell_names(vram_trace *trace)
{
    trace->info.tags = vram_names_count(&trace->source.tags);
    if (trace->format->stack == NULL)
        trace->info.stacks = vram_names_count(&trace->source.stacks);
}

vram_step vram_trace_next(vram_trace *trace, vram_event *event, vram_error *error)
{
    if (trace->is_held && trace->held_next < trace->held_count) {
        *event = trace->held[trace->held_next++];
        return VRAM_STEP_EVENT;
    }
    if (trace->is_held)
        return VRAM_STEP_END;
    const vram_step step =
        trace->ended != VRAM_STEP_EVENT ? trace->ended : read_event(trace, event);
    tell_names(trace);
    if (step == VRAM_STEP_ERROR && error != NULL)
        *error = trace->failed;
    return step;
}

static bool reopen_format(vram_trace *trace, vram_error *error)
{
    close_format(trace);
    return (trace->source.input == NULL || vram_input_rewind(trace->source.input, error)) &&
           open_format(trace, error);
}

bool vram_trace_rewind(vram_trace *trace, vram_error *error)
{
    trace->held_next = 0;
    if (trace->is_held)
        return true;
    vram_normaliser_reset(&trace->normaliser);
    trace->source.peak_blocks = 0;
    trace->queued = trace->taken = 0;
    trace->ended = VRAM_STEP_EVENT;
    vram_error why = {{0}};
    const bool again = trace->format->rewind != NULL ? trace->format->rewind(&trace->source, &why)
                                                     : reopen_format(trace, &why);
    if (!again) {
        end_with(trace, VRAM_STEP_ERROR, &why);
        if (error != NULL)
            *error = why;
    }
    return again;
}

bool vram_trace_hold(vram_trace *trace, vram_error *error)
{
    if (trace->is_held)
        return vram_trace_rewind(trace, error);
    if ((trace->normaliser.raws > 0 || trace->ended != VRAM_STEP_EVENT) &&
        !vram_trace_rewind(trace, error))
        return false;
    trace->held_count = 0;
    for (;;) {
        if (!vram_reserve((void **)&trace->held, &trace->held_capacity, trace->held_count + 1,
                          sizeof *trace->held))
            return vram_fail(error, "%s: out of memory for %zu events", trace->path,
                             trace->held_count + 1);
        const vram_step step = vram_trace_next(trace, &trace->held[trace->held_count], error);
        if (step == VRAM_STEP_ERROR)
            return false;
        if (step == VRAM_STEP_END)
            break;
        trace->held_count++;
    }
    trace->is_held = true;
    trace->held_next = 0;
    return true;
}

const vram_event *vram_trace_events(const vram_trace *trace, size_t *count)
{
    if (!trace->is_held)
        return NULL;
    *count = trace->held_count;
    return trace->held;
}

/* ---- looking ---- */

bool vram_trace_look_closer(vram_trace *trace, vram_error *error)
{
    return trace->format->look_closer == NULL || trace->format->look_closer(&trace->source, error);
}

const vram_trace_info *vram_trace_info_of(const vram_trace *trace)
{
    return &trace->info;
}

const char *vram_trace_tag(const vram_trace *trace, uint32_t tag)
{
    return vram_names_text(&trace->source.tags, tag);
}

const char *vram_trace_stack(const vram_trace *trace, uint32_t stack)
{
    if (trace->format->stack != NULL)
        return trace->format->stack(&trace->source, stack);
    return vram_names_text(&trace->source.stacks, stack);
}

uint64_t vram_trace_stream(const vram_trace *trace, uint32_t stream)
{
    return stream < trace->info.streams ? trace->source.streams[stream] : 0;
}

const vram_snapshot *vram_trace_snapshot(const vram_trace *trace)
{
    return vram_pytorch_snapshot(&trace->source, trace->format);
}

const char *vram_anomaly_name(vram_anomaly anomaly)
{
    static const char *const names[VRAM_ANOMALIES] = {
        [VRAM_ANOMALY_UNKNOWN_FREE] = "free of an unknown block",
        [VRAM_ANOMALY_DOUBLE_FREE] = "double free",
        [VRAM_ANOMALY_NULL_FREE] = "free of NULL",
        [VRAM_ANOMALY_ZERO_SIZE] = "zero size",
        [VRAM_ANOMALY_LIVE_ALLOC] = "allocation of a live block",
        [VRAM_ANOMALY_NEVER_FREED] = "never freed",
        [VRAM_ANOMALY_HEADER] = "header differs from body",
        [VRAM_ANOMALY_CLOCK] = "time runs backwards",
        [VRAM_ANOMALY_UNKNOWN_RESIZE] = "resize of an unknown block",
        [VRAM_ANOMALY_SKIPPED] = "entry skipped",
    };
    return (unsigned)anomaly < VRAM_ANOMALIES ? names[anomaly] : "unknown";
}

const char *vram_event_kind_name(vram_event_kind kind)
{
    static const char *const names[VRAM_EVENT_KINDS] = {
        [VRAM_EVENT_ALLOC] = "alloc",   [VRAM_EVENT_FREE] = "free", [VRAM_EVENT_RETIRE] = "retire",
        [VRAM_EVENT_RESIZE] = "resize", [VRAM_EVENT_TRY] = "try",   [VRAM_EVENT_USE] = "use",
        [VRAM_EVENT_SYNC] = "sync",     [VRAM_EVENT_WAIT] = "wait", [VRAM_EVENT_MARK] = "mark",
    };
    return (unsigned)kind < VRAM_EVENT_KINDS ? names[kind] : "unknown";
}
