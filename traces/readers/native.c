/*
 * native.c - vramlab's own format: text, one event a line (described in traces/README.md).
 *
 *     vramlab trace 1
 *     unit 512
 *     a 1 4096 @1500 s0x7f10 ^256 k3 "weights"
 *     f 1
 *
 *     letter  id?  size?  attributes in any order    '#' starts a comment
 *
 * Which of id and size a letter takes is in the table `kinds`. Lines before the first event may set
 * the unit and what the recording program's own allocator did; stacks may be declared anywhere
 * before their use.
 */
#include "formats.h"
#include "scan.h"

#include <inttypes.h>
#include <stdlib.h>

static const char magic[] = "vramlab trace ";
enum { VERSION = 1 };
#define NO_TIME UINT64_MAX

typedef struct native {
    vram_raw first; /* read by open, to learn whether there is a clock */
    bool has_first;
    uint64_t time_ns;  /* of the event before; NO_TIME when it had none */
    vram_idmap stacks; /* number in the file -> index */
    char *text;        /* a quoted text, unfolded */
    size_t text_capacity;
} native;

/* What a letter takes, and the attributes that mean something to it. */
typedef struct native_kind {
    char letter;
    uint8_t kind;
    bool id, size, tag, stream_needed;
} native_kind;

static const native_kind kinds[] = {
    {'a', VRAM_EVENT_ALLOC, true, true, false, false},
    {'f', VRAM_EVENT_FREE, true, false, false, false},
    {'p', VRAM_EVENT_RETIRE, true, false, false, false},
    {'r', VRAM_EVENT_RESIZE, true, true, false, false},
    {'t', VRAM_EVENT_TRY, false, true, false, false},
    {'u', VRAM_EVENT_USE, true, false, false, true},
    {'y', VRAM_EVENT_SYNC, false, false, false, false},
    {'w', VRAM_EVENT_WAIT, false, true, false, true}, /* the "size" is the other stream */
    {'m', VRAM_EVENT_MARK, false, false, true, false},
};

static const native_kind *kind_of(char letter)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].letter == letter)
            return &kinds[i];
    return NULL;
}

static int native_probe(const char *head, size_t head_bytes)
{
    vram_scan scan = scan_over(head, head_bytes);
    return scan_text(&scan, magic) ? 3 : 0;
}

static bool expected(const vram_source *source, const vram_scan *scan, const char *what,
                     vram_error *error)
{
    vram_source_expected(source, scan, what, error);
    return false;
}

/* ---- pieces of a line ---- */

/* A text in double quotes, with \" \\ \n \t, into state->text. */
static bool read_quoted(vram_source *source, vram_scan *scan, size_t *bytes, vram_error *error)
{
    native *state = source->state;
    if (!scan_char(scan, '"'))
        return expected(source, scan, "a text in double quotes", error);
    if (!vram_reserve((void **)&state->text, &state->text_capacity,
                      (size_t)(scan->end - scan->at) + 1, 1)) {
        vram_source_fail(source, error, "out of memory");
        return false;
    }
    *bytes = 0;
    while (!scan_char(scan, '"')) {
        const bool escaped = scan_char(scan, '\\');
        if (scan_done(scan))
            return expected(source, scan, "a closing double quote", error);
        const char c = *scan->at++;
        const char meant = !escaped ? c : c == 'n' ? '\n' : c == 't' ? '\t' : c;
        if (escaped && c != 'n' && c != 't' && c != '"' && c != '\\') {
            scan->at--;
            return expected(source, scan, "n, t, \" or \\ behind a backslash", error);
        }
        state->text[(*bytes)++] = meant;
    }
    return true;
}

static bool read_tag(vram_source *source, vram_scan *scan, vram_raw *event, vram_error *error)
{
    const native *state = source->state;
    size_t bytes;
    return read_quoted(source, scan, &bytes, error) &&
           vram_source_tag(source, scan_over(state->text, bytes), event, error);
}

static bool read_align(const vram_source *source, vram_scan *scan, vram_raw *event,
                       vram_error *error)
{
    const vram_scan start = *scan;
    uint64_t align_bytes;
    if (!scan_number(scan, &align_bytes) || align_bytes == 0 ||
        (align_bytes & (align_bytes - 1)) != 0)
        return expected(source, &start, "an alignment, a power of two", error);
    event->align_log2 = (uint8_t)__builtin_ctzll(align_bytes);
    return true;
}

static bool read_stack(const vram_source *source, vram_scan *scan, vram_raw *event,
                       vram_error *error)
{
    const native *state = source->state;
    const vram_scan start = *scan;
    uint64_t number;
    const uint32_t *index =
        scan_decimal(scan, &number) ? vram_idmap_find(&state->stacks, number) : NULL;
    if (index == NULL)
        return expected(source, &start, "the number of a stack declared above", error);
    event->stack = *index;
    return true;
}

/* @time  s stream  ^ alignment  k stack  n new id  "tag" */
static bool read_attribute(vram_source *source, vram_scan *scan, vram_raw *event, bool *stream,
                           vram_error *error)
{
    const char sign = *scan->at;
    if (sign == '"')
        return read_tag(source, scan, event, error);
    scan->at++;
    switch (sign) {
    case '@':
        return scan_decimal(scan, &event->time_ns) || expected(source, scan, "a time in ns", error);
    case 's':
        *stream = true;
        return scan_number(scan, &event->stream) ||
               expected(source, scan, "a stream's handle", error);
    case '^':
        return read_align(source, scan, event, error);
    case 'k':
        return read_stack(source, scan, event, error);
    case 'n':
        event->renames = event->kind == VRAM_EVENT_RESIZE;
        if (event->renames && scan_number(scan, &event->new_id))
            return true;
        return expected(source, scan, "the new id of a resized block", error);
    default:
        scan->at--;
        return expected(source, scan, "@time, sSTREAM, ^alignment, kSTACK, nID or \"tag\"", error);
    }
}

static bool read_attributes(vram_source *source, vram_scan *scan, const native_kind *kind,
                            vram_raw *event, vram_error *error)
{
    bool stream = false;
    for (;;) {
        const bool blank = scan_blanks(scan);
        if (scan_done(scan) || *scan->at == '#')
            break;
        if (!blank)
            return expected(source, scan, "a blank", error);
        if (!read_attribute(source, scan, event, &stream, error))
            return false;
    }
    if (kind->stream_needed && !stream)
        return expected(source, scan, "the stream (such as s1)", error);
    if (kind->kind == VRAM_EVENT_SYNC && !stream)
        event->stream = UINT64_MAX;
    if (kind->tag && event->tag == 0)
        return expected(source, scan, "a name in double quotes", error);
    return true;
}

static bool read_event(vram_source *source, vram_scan *scan, const native_kind *kind,
                       vram_raw *event, vram_error *error)
{
    native *state = source->state;
    *event = (vram_raw){.kind = kind->kind, .time_ns = state->time_ns};
    scan->at++;
    if (kind->id && (!scan_blanks(scan) || !scan_number(scan, &event->id)))
        return expected(source, scan, "a blank and the block's id", error);
    if (kind->size && (!scan_blanks(scan) || !scan_number(scan, &event->size_bytes)))
        return expected(source, scan,
                        kind->kind == VRAM_EVENT_WAIT ? "a blank and the stream waited for"
                                                      : "a blank and the size in bytes",
                        error);
    if (!read_attributes(source, scan, kind, event, error))
        return false;
    state->time_ns = event->time_ns;
    return true;
}

/* ---- other lines ---- */

static bool read_unit(vram_source *source, vram_scan *scan, vram_error *error)
{
    vram_scan start = *scan;
    uint64_t unit_bytes;
    if (!scan_number(scan, &unit_bytes) || unit_bytes == 0 ||
        (unit_bytes & (unit_bytes - 1)) != 0 || unit_bytes > VRAM_UNIT_MAX)
        return expected(source, &start, "a power of two up to 2 MiB", error);
    source->info->unit_bytes = unit_bytes;
    return true;
}

static bool read_recorded(vram_source *source, vram_scan *scan, vram_error *error)
{
    vram_scan start = *scan;
    const vram_scan name = scan_until(scan, " \t");
    uint64_t *field =
        vram_recorded_field(&source->info->recorded, name.at, (size_t)(name.end - name.at));
    if (field == NULL)
        return expected(source, &start, "a figure such as peak_reserved_bytes", error);
    if (!scan_blanks(scan) || !scan_number(scan, field))
        return expected(source, scan, "a blank and a number", error);
    source->info->recorded.cut = source->info->recorded.blocks_before > 0;
    return true;
}

static bool declare_stack(vram_source *source, vram_scan *scan, vram_error *error)
{
    native *state = source->state;
    uint64_t number;
    size_t bytes;
    uint32_t index;
    if (!scan_decimal(scan, &number) || !scan_blanks(scan))
        return expected(source, scan, "the stack's number and a blank", error);
    if (!read_quoted(source, scan, &bytes, error))
        return false;
    if (vram_names_intern(&source->stacks, state->text, bytes, &index) &&
        vram_idmap_put(&state->stacks, number, index))
        return true;
    vram_source_fail(source, error, "out of memory");
    return false;
}

/* A line that is not an event. */
static bool read_declaration(vram_source *source, vram_scan *scan, bool started, vram_error *error)
{
    const vram_scan start = *scan;
    const vram_scan word = scan_until(scan, " \t");
    scan_blanks(scan);
    bool read = false;
    if (scan_is(&word, "stack"))
        read = declare_stack(source, scan, error);
    else if (scan_is(&word, "unit") && !started)
        read = read_unit(source, scan, error);
    else if (scan_is(&word, "recorded") && !started)
        read = read_recorded(source, scan, error);
    else
        return expected(source, &start,
                        started ? "an event (a f p r t u y w m) or a stack"
                                : "an event (a f p r t u y w m), unit, recorded or stack",
                        error);
    scan_blanks(scan);
    return read && (scan_done(scan) || *scan->at == '#' ||
                    expected(source, scan, "the end of the line", error));
}

/* The next event; END at the end of the file. */
static vram_step read_line(vram_source *source, bool started, vram_raw *event, vram_error *error)
{
    for (;;) {
        vram_scan scan;
        const vram_step got = vram_source_line(source, &scan, error);
        if (got != VRAM_STEP_EVENT)
            return got;
        scan_blanks(&scan);
        if (scan_done(&scan) || *scan.at == '#')
            continue;
        const native_kind *kind = kind_of(*scan.at);
        const bool alone = scan.at + 1 == scan.end || scan.at[1] == ' ' || scan.at[1] == '\t';
        if (kind != NULL && alone)
            return read_event(source, &scan, kind, event, error) ? VRAM_STEP_EVENT
                                                                 : VRAM_STEP_ERROR;
        if (!read_declaration(source, &scan, started, error))
            return VRAM_STEP_ERROR;
    }
}

static bool read_magic(vram_source *source, vram_error *error)
{
    vram_scan scan;
    if (vram_source_line(source, &scan, error) != VRAM_STEP_EVENT)
        return false;
    uint64_t version = 0;
    scan_text(&scan, magic);
    if (!scan_decimal(&scan, &version) || version != VERSION)
        return expected(source, &scan, "version 1, the only one that this vramlab reads", error);
    scan_blanks(&scan);
    return scan_done(&scan) || expected(source, &scan, "the end of the line", error);
}

/* ---- the format ---- */

static void native_close(vram_source *source)
{
    native *state = source->state;
    vram_idmap_free(&state->stacks);
    free(state->text);
    free(state);
    source->state = NULL;
}

static bool native_open(vram_source *source, vram_error *error)
{
    native *state = calloc(1, sizeof *state);
    if (state == NULL)
        return vram_fail(error, "%s: out of memory", source->path);
    source->state = state;
    state->time_ns = NO_TIME;
    vram_step step = VRAM_STEP_ERROR;
    if (read_magic(source, error))
        step = read_line(source, false, &state->first, error);
    if (step == VRAM_STEP_ERROR) {
        native_close(source);
        return false;
    }
    state->has_first = step == VRAM_STEP_EVENT;
    source->info->has_clock = state->has_first && state->first.time_ns != NO_TIME;
    return true;
}

static vram_step native_next(vram_source *source, vram_raw *event, vram_error *error)
{
    native *state = source->state;
    if (state->has_first) {
        *event = state->first;
        state->has_first = false;
        return VRAM_STEP_EVENT;
    }
    return read_line(source, true, event, error);
}

const vram_format vram_format_native = {
    .name = "native",
    .summary = "vramlab's own text, one event a line",
    .probe = native_probe,
    .open = native_open,
    .next = native_next,
    .close = native_close,
};
