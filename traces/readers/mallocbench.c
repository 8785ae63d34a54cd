/*
 * mallocbench.c - malloc-bench's traces: one protocol-buffers message, proto2, without a length.
 *
 *     1 (repeated): a line, which holds one of      2: most blocks live at once
 *         1 malloc   1 result id  2 size  3 alignment
 *         2 free     1 id         2, 3 hints
 *         3 realloc  1 result id  2 input id  3 size
 *         4 calloc   1 result id  2 members   3 size of one
 *
 * Ids are reused after a free; a missing one is NULL, and a realloc may keep its id. The count in
 * field 2 is held against the body at the end. Wire format: protobuf.dev, Encoding.
 */
#include "formats.h"

#include <inttypes.h>
#include <stdlib.h>

enum { LINE_MAX_BYTES = 1024, WIRE_VARINT = 0, WIRE_BYTES = 2, OPERATIONS = 4, FIELDS = 4 };

typedef struct mallocbench {
    uint64_t told_blocks; /* field 2 */
    bool told, checked;
} mallocbench;

/* One operation: its number (1 malloc ...), and the fields by number, where given. */
typedef struct operation {
    uint64_t code;
    uint64_t field[FIELDS];
    bool given[FIELDS];
} operation;

/* ---- the wire ---- */

static bool take_varint(vram_scan *scan, uint64_t *number)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (scan_done(scan))
            return false;
        const unsigned char byte = (unsigned char)*scan->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *number = value;
            return true;
        }
    }
    return false;
}

/* The bytes of a length-delimited field. */
static bool take_bytes(vram_scan *scan, vram_scan *inside)
{
    uint64_t bytes;
    if (!take_varint(scan, &bytes) || bytes > (uint64_t)(scan->end - scan->at))
        return false;
    *inside = scan_over(scan->at, (size_t)bytes);
    scan->at += bytes;
    return true;
}

/* A line: one field of bytes, in which all fields are varints. */
static bool take_operation(vram_scan line, operation *op)
{
    *op = (operation){0};
    uint64_t key, number;
    vram_scan body;
    if (!take_varint(&line, &key) || (key & 7) != WIRE_BYTES || !take_bytes(&line, &body) ||
        !scan_done(&line))
        return false;
    op->code = key >> 3;
    while (!scan_done(&body)) {
        if (!take_varint(&body, &key) || (key & 7) != WIRE_VARINT || !take_varint(&body, &number))
            return false;
        if (key >> 3 < FIELDS) {
            op->field[key >> 3] = number;
            op->given[key >> 3] = true;
        }
    }
    return op->code >= 1 && op->code <= OPERATIONS;
}

static int mallocbench_probe(const char *head, size_t head_bytes)
{
    vram_scan scan = scan_over(head, head_bytes), line;
    operation op;
    uint64_t key, number;
    int lines = 0;
    while (!scan_done(&scan)) {
        const vram_scan start = scan;
        if (!take_varint(&scan, &key))
            break;
        if (key == (2 << 3 | WIRE_VARINT) && take_varint(&scan, &number))
            continue;
        if (key != (1 << 3 | WIRE_BYTES))
            return 0;
        if (!take_bytes(&scan, &line)) /* cut by the end of the head, when it was long enough */
            return lines > 0 && start.end - start.at < LINE_MAX_BYTES ? 2 : 0;
        if (!take_operation(line, &op))
            return 0;
        lines++;
    }
    return lines > 0 ? 2 : 0;
}

/* ---- events ---- */

static void mallocbench_close(vram_source *source)
{
    free(source->state);
    source->state = NULL;
}

static bool mallocbench_open(vram_source *source, vram_error *error)
{
    source->state = calloc(1, sizeof(mallocbench));
    if (source->state == NULL)
        return vram_fail(error, "%s: out of memory", source->path);
    source->info->unit_bytes = 16;
    return true;
}

enum { FREE = 2, REALLOC, CALLOC };

/* size * members, or what no machine has when it does not fit. */
static uint64_t product(uint64_t members, uint64_t size_bytes)
{
    return size_bytes != 0 && members > UINT64_MAX / size_bytes ? UINT64_MAX : members * size_bytes;
}

static bool set_alignment(vram_source *source, uint64_t align_bytes, vram_raw *event,
                          vram_error *error)
{
    if (align_bytes == 0 || (align_bytes & (align_bytes - 1)) != 0) {
        vram_source_fail(source, error, "an alignment of %" PRIu64 ", not a power of two",
                         align_bytes);
        return false;
    }
    event->align_log2 = (uint8_t)__builtin_ctzll(align_bytes);
    return true;
}

static bool make_event(vram_source *source, const operation *op, vram_raw *event, vram_error *error)
{
    event->id = op->field[1];
    event->null_id = !op->given[1];
    switch (op->code) {
    case FREE:
        event->kind = VRAM_EVENT_FREE;
        return true;
    case REALLOC:
        event->kind = VRAM_EVENT_RESIZE;
        event->id = op->field[2];
        event->null_id = !op->given[2];
        event->renames = true;
        event->new_id = op->field[1];
        event->size_bytes = op->field[3];
        return true;
    case CALLOC:
        event->kind = VRAM_EVENT_ALLOC;
        event->size_bytes = product(op->field[2], op->field[3]);
        break;
    default:
        event->kind = VRAM_EVENT_ALLOC;
        event->size_bytes = op->field[2];
        if (op->given[3] && !set_alignment(source, op->field[3], event, error))
            return false;
    }
    if (event->null_id && event->size_bytes > 0) /* it was asked for and refused */
        event->kind = VRAM_EVENT_TRY;
    return true;
}

/* The next field of the message; END behind the last. */
static vram_step take_field(vram_source *source, vram_raw *event, bool *is_event, vram_error *error)
{
    mallocbench *state = source->state;
    vram_input *input = source->input;
    if (!vram_input_need(input, LINE_MAX_BYTES, error))
        return VRAM_STEP_ERROR;
    vram_scan scan = {.at = input->at, .end = input->end}, line;
    uint64_t key;
    operation op;
    if (scan_done(&scan))
        return VRAM_STEP_END;
    const bool keyed = take_varint(&scan, &key);
    *is_event = keyed && key == (1 << 3 | WIRE_BYTES);
    if (*is_event) {
        if (!take_bytes(&scan, &line))
            return vram_source_fail(source, error, "a line that is cut, or above %d bytes",
                                    LINE_MAX_BYTES);
        if (!take_operation(line, &op))
            return vram_source_fail(source, error,
                                    "a line that is none of malloc, free, realloc and calloc");
        if (!make_event(source, &op, event, error))
            return VRAM_STEP_ERROR;
    } else if (keyed && key == (2 << 3 | WIRE_VARINT) && take_varint(&scan, &state->told_blocks)) {
        state->told = true;
    } else {
        return vram_source_fail(source, error,
                                "found neither a line (key 10) nor the most blocks (key 16)");
    }
    input->at = scan.at;
    return VRAM_STEP_EVENT;
}

static bool check_count(vram_source *source, vram_error *error)
{
    mallocbench *state = source->state;
    if (!state->told || state->checked || state->told_blocks == source->peak_blocks)
        return true;
    state->checked = true;
    return vram_source_anomaly(source, VRAM_ANOMALY_HEADER, error,
                               "tells of %" PRIu64 " blocks live at once; there are %" PRIu64,
                               state->told_blocks, source->peak_blocks);
}

static vram_step mallocbench_next(vram_source *source, vram_raw *event, vram_error *error)
{
    for (;;) {
        bool is_event = false;
        const vram_step step = take_field(source, event, &is_event, error);
        if (step == VRAM_STEP_END && !check_count(source, error))
            return VRAM_STEP_ERROR;
        if (step != VRAM_STEP_EVENT || is_event)
            return step;
    }
}

const vram_format vram_format_mallocbench = {
    .name = "malloc-bench",
    .summary = "malloc-bench protocol-buffers trace",
    .probe = mallocbench_probe,
    .open = mallocbench_open,
    .next = mallocbench_next,
    .close = mallocbench_close,
};
