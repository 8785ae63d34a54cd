/*
 * mtrace.c - the log of glibc's mtrace().
 *
 *     = Start
 *     @ ./a.out:(f+0x1)[0x8048] + 0x804a378 0x10     malloc          "- 0x.." free
 *     @ ./a.out:[0x8048] < 0x804a378                 the old half of a realloc
 *     @ ./a.out:[0x8048] > 0x804a390 0x20            and the new one
 *     @ ./a.out:[0x8048] ! 0x804a390 0x20            a realloc that failed
 *     = End
 *
 * The caller becomes the tag. A realloc is a RESIZE that gives the block its new address. glibc
 * source, malloc/mtrace.c.
 */
#include "formats.h"

#include <stdlib.h>

typedef struct mtrace {
    uint64_t old_id; /* of a realloc whose new half is still to come */
    bool has_old;
} mtrace;

static int mtrace_probe(const char *head, size_t head_bytes)
{
    vram_scan scan = scan_over(head, head_bytes);
    return scan_text(&scan, "= Start") ? 3 : 0;
}

static void mtrace_close(vram_source *source)
{
    free(source->state);
    source->state = NULL;
}

static bool mtrace_open(vram_source *source, vram_error *error)
{
    source->state = calloc(1, sizeof(mtrace));
    if (source->state == NULL)
        return vram_fail(error, "%s: out of memory", source->path);
    source->info->unit_bytes = 16;
    return true;
}

/* "@ caller ", if the line has one. The operation is the first sign that stands alone behind it. */
static vram_scan take_caller(vram_scan *line)
{
    if (!scan_text(line, "@ "))
        return (vram_scan){.at = line->at, .end = line->at};
    const char *start = line->at;
    for (const char *at = start; line->end - at >= 4; at++)
        if (at[0] == ' ' && strchr("+-<>!", at[1]) != NULL && at[2] == ' ' && at[3] == '0') {
            line->at = at + 1;
            return (vram_scan){.at = start, .end = at};
        }
    return (vram_scan){.at = start, .end = start};
}

/* What the sign means, the realloc's halves joined; KINDS for the first half. */
static vram_event_kind kind_of(mtrace *state, char sign, vram_raw *event)
{
    const bool resizes = sign == '>' && state->has_old;
    switch (sign) {
    case '+':
    case '>':
        if (!resizes)
            return VRAM_EVENT_ALLOC;
        event->renames = true;
        event->new_id = event->id;
        event->id = state->old_id;
        state->has_old = false;
        return VRAM_EVENT_RESIZE;
    case '-':
        return VRAM_EVENT_FREE;
    case '!':
        return VRAM_EVENT_TRY;
    default:
        state->old_id = event->id;
        state->has_old = true;
        return VRAM_EVENT_KINDS;
    }
}

static vram_step read_operation(vram_source *source, vram_scan line, vram_raw *event,
                                vram_error *error)
{
    mtrace *state = source->state;
    const vram_scan caller = take_caller(&line);
    const char sign = scan_done(&line) ? 0 : *line.at;
    if (sign == 0 || strchr("+-<>!", sign) == NULL)
        return vram_source_expected(source, &line, "an operation: + - < > or !", error);
    line.at++;
    if (!scan_blanks(&line) || !scan_number(&line, &event->id))
        return vram_source_expected(source, &line, "an address", error);
    event->null_id = event->id == 0;
    const bool sized = sign == '+' || sign == '>' || sign == '!';
    if (sized && (!scan_blanks(&line) || !scan_number(&line, &event->size_bytes)))
        return vram_source_expected(source, &line, "a size in hexadecimal", error);
    scan_blanks(&line);
    if (!scan_done(&line))
        return vram_source_expected(source, &line, "the end of the line", error);
    event->kind = (uint8_t)kind_of(state, sign, event);
    return vram_source_tag(source, caller, event, error) ? VRAM_STEP_EVENT : VRAM_STEP_ERROR;
}

static vram_step mtrace_next(vram_source *source, vram_raw *event, vram_error *error)
{
    for (;;) {
        vram_scan line;
        vram_step step = vram_source_line(source, &line, error);
        if (step != VRAM_STEP_EVENT)
            return step;
        scan_blanks(&line);
        if (scan_done(&line) || *line.at == '=')
            continue;
        *event = (vram_raw){0};
        step = read_operation(source, line, event, error);
        if (step != VRAM_STEP_EVENT || event->kind != VRAM_EVENT_KINDS)
            return step;
    }
}

const vram_format vram_format_mtrace = {
    .name = "mtrace",
    .summary = "glibc mtrace log",
    .probe = mtrace_probe,
    .open = mtrace_open,
    .next = mtrace_next,
    .close = mtrace_close,
};
