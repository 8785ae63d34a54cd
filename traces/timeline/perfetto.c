/*
 * perfetto.c - Chrome trace JSON: a counter event ("ph":"C") wherever a figure changes, instants
 * ("ph":"i") for marks and refusals. Format: "Trace Event Format", Google, 2016.
 */
#include <vramlab/metrics.h>
#include <vramlab/output.h>
#include <vramlab/perfetto.h>

#include <inttypes.h>

enum { POINTS_MAX = 200000 };

typedef enum track {
    LIVE,
    GRANTED,
    FREE,
    BOUND,
    PENDING,
    RESERVE,
    PADDING,
    LARGEST,
    EXTERNAL,
    TRACKS
} track;

static const char *const track_names[TRACKS] = {
    "live (bytes)",        "granted (bytes)",       "free, any request (bytes)",
    "free, bound (bytes)", "free, pending (bytes)", "free, reserve (bytes)",
    "padding (bytes)",     "largest free (bytes)",  "external fragmentation (%)",
};

typedef struct writing {
    const vram_timeline *timeline;
    FILE *out;
    uint64_t stride;  /* operations of a stretch */
    vram_moment best; /* of the stretch: greatest live */
    bool has_best;
    double last[TRACKS]; /* as written; below 0 before the first */
} writing;

static void quoted(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 32)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

/* In microseconds, as the format wants it. */
static double time_of(const writing *w, const vram_op *op)
{
    return w->timeline->has_clock ? (double)op->time_ns / 1000 : (double)op->event;
}

static void write_moment(writing *w, const vram_moment *moment)
{
    const double figures[TRACKS] = {
        [LIVE] = (double)moment->live_bytes,
        [GRANTED] = (double)vram_moment_granted(moment),
        [FREE] = (double)moment->free_bytes,
        [BOUND] = (double)moment->bound_bytes,
        [PENDING] = (double)moment->pending_bytes,
        [RESERVE] = (double)moment->reserve_bytes,
        [PADDING] = (double)moment->padding_bytes,
        [LARGEST] = (double)moment->largest_free_bytes,
        [EXTERNAL] = 100 * vram_moment_external(moment),
    };
    const double time = time_of(w, &w->timeline->ops[moment->op]);
    for (int i = 0; i < TRACKS; i++) {
        if (figures[i] == w->last[i])
            continue;
        w->last[i] = figures[i];
        fprintf(w->out,
                ",\n{\"name\":\"%s\",\"ph\":\"C\",\"pid\":1,\"ts\":%.3f,\"args\":{\"value\":%.*f}}",
                track_names[i], time, i == EXTERNAL ? 3 : 0, figures[i]);
    }
}

static bool take_moment(void *context, const vram_moment *moment)
{
    writing *w = context;
    if (!w->has_best || moment->live_bytes > w->best.live_bytes)
        w->best = *moment;
    w->has_best = true;
    const bool last = moment->op + 1 == w->timeline->op_count;
    if ((moment->op + 1) % w->stride != 0 && !last)
        return true;
    if (w->best.op != moment->op)
        write_moment(w, &w->best);
    write_moment(w, moment);
    w->has_best = false;
    return true;
}

static void write_instant(const writing *w, const vram_op *op, const char *name, const char *reason)
{
    fprintf(w->out, ",\n{\"name\":");
    quoted(w->out, name);
    fprintf(w->out, ",\"ph\":\"i\",\"s\":\"p\",\"pid\":1,\"tid\":1,\"ts\":%.3f,\"args\":{",
            time_of(w, op));
    if (reason != NULL) {
        fprintf(w->out, "\"asked\":%" PRIu64 ",\"why\":", op->size_bytes);
        quoted(w->out, reason);
    }
    fprintf(w->out, "}}");
}

static void write_instants(const writing *w)
{
    const vram_timeline *timeline = w->timeline;
    for (size_t i = 0; i < timeline->op_count; i++) {
        const vram_op *op = &timeline->ops[i];
        if (op->kind == VRAM_OP_MARK)
            write_instant(w, op, op->tag < timeline->tag_count ? timeline->tags[op->tag] : "",
                          NULL);
        else if (op->kind == VRAM_OP_FAIL)
            write_instant(w, op, "refused",
                          op->block < timeline->failure_count ? timeline->failures[op->block].reason
                                                              : "");
    }
}

static bool write_events(writing *w, vram_error *error)
{
    fprintf(w->out,
            "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"arena_bytes\":%" PRIu64 "},\n"
            "\"traceEvents\":[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":"
            "{\"name\":",
            w->timeline->arena_bytes);
    char name[512];
    snprintf(name, sizeof name, "%s on %s", w->timeline->trace, w->timeline->backend);
    quoted(w->out, name);
    fprintf(w->out, "}}");
    if (!vram_metrics_walk(w->timeline, take_moment, w, error))
        return false;
    write_instants(w);
    fprintf(w->out, "\n]}\n");
    return true;
}

bool vram_perfetto_write(const vram_timeline *timeline, const char *path, vram_error *error)
{
    vram_output output;
    if (!vram_output_open(&output, path, error))
        return false;
    writing w = {
        .timeline = timeline, .out = output.file, .stride = timeline->op_count / POINTS_MAX + 1};
    for (int i = 0; i < TRACKS; i++)
        w.last[i] = -1;
    if (write_events(&w, error))
        return vram_output_commit(&output, error);
    vram_output_discard(&output);
    return false;
}
