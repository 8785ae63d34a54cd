/*
 * rep.c - malloclab's ".rep": a header of bare numbers, then one operation a line.
 *
 *     heap bytes, ids, operations, weight        CS:APP 2002, MIT 6.172
 *     weight, ids, operations, heap bytes        CS:APP 2016
 *     ids, operations                            some forks
 *
 *     a ID SIZE   f ID   r ID SIZE   w ID SIZE   with a thread's number before it in one fork
 *
 * `f -1` frees NULL, an id may be used again after its free, `r` of an id without a block is
 * malloc. `w` (MIT) writes into a block and becomes a USE on its own stream. At the end the numbers
 * of ids and operations are held against the body; the heap is a mere suggestion and often too
 * small.
 */
#include "formats.h"

#include <inttypes.h>
#include <stdlib.h>

enum { HEADER_LINES = 4 };

typedef struct rep {
    uint64_t header[HEADER_LINES];
    size_t header_count;
    bool checked; /* the header, at the end */
    uint64_t operations;
    vram_idset ids;
    uint64_t id_count;
} rep;

/* A line that is one number and nothing else. */
static bool is_number(vram_scan line, uint64_t *number)
{
    scan_blanks(&line);
    if (!scan_decimal(&line, number))
        return false;
    scan_blanks(&line);
    return scan_done(&line);
}

/* The letter of an operation, behind a thread's number or not; 0 when there is none. */
static char take_letter(vram_scan *line)
{
    vram_scan at = *line;
    uint64_t thread;
    scan_blanks(&at);
    if (scan_decimal(&at, &thread))
        scan_blanks(&at);
    if (scan_done(&at) || strchr("afrw", *at.at) == NULL)
        return 0;
    const char letter = *at.at++;
    if (!scan_blanks(&at))
        return 0;
    *line = at;
    return letter;
}

static int rep_probe(const char *head, size_t head_bytes)
{
    vram_scan scan = scan_over(head, head_bytes);
    uint64_t number;
    for (int lines = 0; lines <= HEADER_LINES; lines++) {
        vram_scan line = scan_until(&scan, "\r\n");
        scan_char(&scan, '\r');
        scan_char(&scan, '\n');
        if (!is_number(line, &number))
            return lines >= 2 && take_letter(&line) != 0 ? 2 : 0;
    }
    return 0;
}

static void rep_close(vram_source *source)
{
    rep *state = source->state;
    vram_idset_free(&state->ids);
    free(state);
    source->state = NULL;
}

static bool read_header(vram_source *source, rep *state, vram_error *error)
{
    for (;;) {
        vram_scan line;
        const vram_step step = vram_source_line(source, &line, error);
        uint64_t number;
        if (step != VRAM_STEP_EVENT)
            return step == VRAM_STEP_END;
        if (!is_number(line, &number)) {
            vram_input_untake(source->input, line.at);
            return true;
        }
        if (state->header_count == HEADER_LINES) {
            vram_source_expected(source, &line, "an operation: a, f, r or w", error);
            return false;
        }
        state->header[state->header_count++] = number;
    }
}

static bool rep_open(vram_source *source, vram_error *error)
{
    rep *state = calloc(1, sizeof *state);
    if (state == NULL)
        return vram_fail(error, "%s: out of memory", source->path);
    source->state = state;
    if (!read_header(source, state, error)) {
        rep_close(source);
        return false;
    }
    source->info->unit_bytes = 16;
    return true;
}

static bool note_id(vram_source *source, uint64_t id, vram_error *error)
{
    rep *state = source->state;
    state->id_count += !vram_idset_has(&state->ids, id);
    if (vram_idset_add(&state->ids, id))
        return true;
    vram_source_fail(source, error, "out of memory");
    return false;
}

static vram_step read_operation(vram_source *source, vram_scan line, vram_raw *event,
                                vram_error *error)
{
    rep *state = source->state;
    const vram_scan whole = line;
    const char letter = take_letter(&line);
    if (letter == 0)
        return vram_source_expected(source, &whole, "an operation: a, f, r or w, and an id", error);
    event->kind = letter == 'a'   ? VRAM_EVENT_ALLOC
                  : letter == 'f' ? VRAM_EVENT_FREE
                  : letter == 'r' ? VRAM_EVENT_RESIZE
                                  : VRAM_EVENT_USE;
    event->null_id = letter == 'f' && scan_text(&line, "-1");
    if (!event->null_id && !scan_decimal(&line, &event->id))
        return vram_source_expected(source, &line, "an id", error);
    if (letter != 'f' && (!scan_blanks(&line) || !scan_decimal(&line, &event->size_bytes)))
        return vram_source_expected(source, &line, "a size in bytes", error);
    scan_blanks(&line);
    if (!scan_done(&line))
        return vram_source_expected(source, &line, "the end of the line", error);
    state->operations++;
    return event->null_id || note_id(source, event->id, error) ? VRAM_STEP_EVENT : VRAM_STEP_ERROR;
}

/* Both layouts of four lines have ids second and operations third. */
static bool check_header(vram_source *source, vram_error *error)
{
    rep *state = source->state;
    if (state->checked)
        return true;
    state->checked = true;
    const uint64_t *counts = state->header + (state->header_count > 2);
    const bool ids_fit = state->header_count < 2 || counts[0] == state->id_count;
    const bool operations_fit = state->header_count < 2 || counts[1] == state->operations;
    if (ids_fit && operations_fit)
        return true;
    return vram_source_anomaly(source, VRAM_ANOMALY_HEADER, error,
                               "the header tells of %" PRIu64 " ids and %" PRIu64
                               " operations; there are %" PRIu64 " and %" PRIu64,
                               counts[0], counts[1], state->id_count, state->operations);
}

static vram_step rep_next(vram_source *source, vram_raw *event, vram_error *error)
{
    for (;;) {
        vram_scan line;
        const vram_step step = vram_source_line(source, &line, error);
        if (step == VRAM_STEP_END && !check_header(source, error))
            return VRAM_STEP_ERROR;
        if (step != VRAM_STEP_EVENT)
            return step;
        scan_blanks(&line);
        if (!scan_done(&line))
            return read_operation(source, line, event, error);
    }
}

const vram_format vram_format_rep = {
    .name = "rep",
    .summary = "malloclab .rep, in three headers, with MIT's w",
    .probe = rep_probe,
    .open = rep_open,
    .next = rep_next,
    .close = rep_close,
};
