/*
 * umpire.c - LLNL Umpire's replay logs: one JSON object a line, in the form of 2019 and the
 * present.
 *
 *     now:  {"name":"allocate", "numeric_args":{"size":64}, "string_args":{"pointer":"0x1"}, ...}
 *     2019: {"event":"allocate", "payload":{"size":64}, "result":{"memory_ptr":"0x1"}, ...}
 *
 * In 2019 a call is logged when it is entered, without a result, and again when it has returned;
 * only the latter counts. A reallocate is a request (current_ptr, size) and a reply (new_ptr); the
 * allocate and deallocate that may come between them are the reallocation, and without them it was
 * done in place. Lines that start with '#' are comments.
 */
#include "umpire.h"

#include "formats.h"

#include <stdlib.h>

/* What one object tells; texts that are too long to be one of ours are cut. */
typedef struct call {
    char name[32];
    uint64_t size_bytes, time_ns, pointer, current, renewed;
    bool has_size, has_pointer, has_current, has_renewed, has_result;
} call;

typedef struct umpire {
    vram_umpire umpire;
    vram_json json;
} umpire;

/* ---- one object ---- */

static void copy_name(call *c, const vram_json *json)
{
    const size_t bytes =
        json->text_bytes < sizeof c->name - 1 ? json->text_bytes : sizeof c->name - 1;
    memcpy(c->name, json->text, bytes);
    c->name[bytes] = '\0';
}

/* "0x200040000010", or "0" for NULL; false for anything else. */
static bool address_of(const vram_json *json, uint64_t *address)
{
    vram_scan scan = scan_over(json->text, json->text_bytes);
    return scan_number(&scan, address) && scan_done(&scan);
}

static void take_member(call *c, const vram_json *json, const char *key, vram_json_token token)
{
    const bool text = token == VRAM_JSON_TEXT, number = token == VRAM_JSON_INT;
    if (json->depth == 1 && text && (strcmp(key, "name") == 0 || strcmp(key, "event") == 0))
        copy_name(c, json);
    else if (json->depth == 1 && number && strcmp(key, "timestamp") == 0)
        c->time_ns = json->number;
    else if (json->depth != 2)
        return;
    else if (number && strcmp(key, "size") == 0) {
        c->size_bytes = json->number;
        c->has_size = true;
    } else if (text && (strcmp(key, "pointer") == 0 || strcmp(key, "memory_ptr") == 0))
        c->has_pointer = address_of(json, &c->pointer);
    else if (text && strcmp(key, "current_ptr") == 0)
        c->has_current = address_of(json, &c->current);
    else if (text && strcmp(key, "new_ptr") == 0)
        c->has_renewed = address_of(json, &c->renewed);
}

static bool read_members(vram_json *json, call *c, vram_error *error)
{
    char key[32] = "";
    while (json->depth > 0) {
        const vram_json_token token = vram_json_next(json, error);
        if (token == VRAM_JSON_ERROR)
            return false;
        if (token == VRAM_JSON_KEY) {
            const bool fits = json->text_bytes < sizeof key;
            memcpy(key, fits ? json->text : "", fits ? json->text_bytes + 1 : 1);
            c->has_result = c->has_result || (json->depth == 1 && strcmp(key, "result") == 0);
        } else {
            take_member(c, json, key, token);
        }
    }
    return true;
}

/* ---- what it means ---- */

static void make_alloc(const call *c, vram_raw *event)
{
    event->kind = VRAM_EVENT_ALLOC;
    event->id = c->pointer;
    event->null_id = c->pointer == 0;
    event->size_bytes = c->size_bytes;
    if (event->null_id && c->size_bytes > 0)
        event->kind = VRAM_EVENT_TRY;
}

static bool take_reallocate(vram_umpire *state, const call *c, vram_raw *event)
{
    if (!c->has_renewed) {
        *state = (vram_umpire){.open = c->has_current && c->has_size,
                               .old_id = c->current,
                               .size_bytes = c->size_bytes};
        return false;
    }
    const vram_umpire request = *state;
    *state = (vram_umpire){0};
    if (!request.open || request.nested)
        return false;
    event->kind = VRAM_EVENT_RESIZE;
    event->id = request.old_id;
    event->null_id = request.old_id == 0;
    event->renames = true;
    event->new_id = c->renewed;
    event->size_bytes = request.size_bytes;
    return true;
}

/* Whether the call is an event. */
static bool make_event(vram_umpire *state, const call *c, vram_raw *event)
{
    event->time_ns = c->time_ns;
    if (strcmp(c->name, "reallocate") == 0)
        return take_reallocate(state, c, event);
    const bool allocates = strcmp(c->name, "allocate") == 0;
    if ((!allocates && strcmp(c->name, "deallocate") != 0) || !c->has_pointer)
        return false;
    state->nested = true;
    if (allocates) {
        make_alloc(c, event);
    } else {
        event->kind = VRAM_EVENT_FREE;
        event->id = c->pointer;
        event->null_id = c->pointer == 0;
    }
    return true;
}

vram_step vram_umpire_read(vram_source *source, vram_umpire *state, vram_json *json,
                           vram_raw *event, bool *is_event, vram_error *error)
{
    const vram_json_token token = vram_json_next(json, error);
    if (token == VRAM_JSON_END)
        return VRAM_STEP_END;
    if (token == VRAM_JSON_ERROR)
        return VRAM_STEP_ERROR;
    if (token != VRAM_JSON_OBJECT)
        return vram_source_fail(source, error, "found a JSON value, expected an object");
    call c = {.size_bytes = 0};
    if (!read_members(json, &c, error))
        return VRAM_STEP_ERROR;
    *event = (vram_raw){0};
    *is_event = make_event(state, &c, event);
    return VRAM_STEP_EVENT;
}

/* ---- the format ---- */

/* The first line that is no comment, up to its end or that of the head. */
static vram_scan first_object(vram_scan scan)
{
    vram_scan line;
    do {
        line = scan_until(&scan, "\n");
        scan_char(&scan, '\n');
    } while (!scan_done(&scan) && (scan_done(&line) || *line.at == '#'));
    return line;
}

static int umpire_probe(const char *head, size_t head_bytes)
{
    const vram_scan line = first_object(scan_over(head, head_bytes));
    if (scan_done(&line) || *line.at != '{')
        return 0;
    const bool now = scan_holds(&line, "\"category\"") && scan_holds(&line, "\"timestamp\"");
    const bool then = scan_holds(&line, "\"kind\"") && scan_holds(&line, "\"replay\"");
    return now || then ? 3 : 0;
}

static void umpire_close(vram_source *source)
{
    umpire *state = source->state;
    vram_json_free(&state->json);
    free(state);
    source->state = NULL;
}

static bool umpire_open(vram_source *source, vram_error *error)
{
    umpire *state = calloc(1, sizeof *state);
    if (state == NULL)
        return vram_fail(error, "%s: out of memory", source->path);
    source->state = state;
    vram_json_start(&state->json, source->input);
    source->info->unit_bytes = 16;
    source->info->has_clock = true;
    source->record_name = "line";
    return true;
}

static vram_step umpire_next(vram_source *source, vram_raw *event, vram_error *error)
{
    umpire *state = source->state;
    for (;;) {
        bool is_event;
        if (!vram_json_skip_comments(&state->json, error))
            return VRAM_STEP_ERROR;
        source->record = state->json.line;
        const vram_step step =
            vram_umpire_read(source, &state->umpire, &state->json, event, &is_event, error);
        if (step != VRAM_STEP_EVENT || is_event)
            return step;
    }
}

const vram_format vram_format_umpire = {
    .name = "umpire",
    .summary = "LLNL Umpire replay log",
    .probe = umpire_probe,
    .open = umpire_open,
    .next = umpire_next,
    .close = umpire_close,
};
