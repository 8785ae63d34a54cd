/*
 * pytorch.c - one device's history in a snapshot, as the events of the program that made it.
 *
 *     before:  blocks that were live before recording began, at time 0, in address order
 *     then:    alloc                             -> ALLOC
 *              free_requested, free_completed    -> FREE when adjacent, else RETIRE ... FREE
 *              oom                               -> TRY
 *              segment_..., snapshot, annotate   -> nothing: PyTorch's own doings
 *
 * A block was live before when the history frees it without having allocated it, or when a segment
 * holds it, active, and the history never names it.
 */
#include "pytorch.h"

#include "allocated.h"
#include "formats.h"
#include "scan.h"

#include <stdlib.h>
#include <string.h>

typedef struct pytorch {
    vram_snapshot *snapshot;
    const vram_snapshot_event *events;
    size_t event_count;
    vram_before *befores; /* by address */
    size_t before_count, before_capacity;
    uint32_t *tags; /* by context */
    size_t next_before, next_event;
    bool retire_before; /* the block of next_before - 1 is still to be let go */
} pytorch;

enum { LIVE, PENDING };
/* Histories beyond are not searched for the peak of what was allocated: it would take more memory
 * than the file. */
enum { WALKED_EVENTS_MAX = 1 << 20 };

static bool out_of_memory(const vram_source *source, vram_error *error)
{
    return vram_fail(error, "%s: out of memory", source->path);
}

/* ---- what was there before ---- */

typedef struct rebuild {
    pytorch *state;
    vram_idmap live; /* address -> LIVE or PENDING */
    vram_idset seen; /* addresses that the history has named */
} rebuild;

static bool add_before(rebuild *r, vram_before block)
{
    pytorch *state = r->state;
    if (!vram_reserve((void **)&state->befores, &state->before_capacity, state->before_count + 1,
                      sizeof *state->befores))
        return false;
    state->befores[state->before_count++] = block;
    return true;
}

/* A free of an address that the history has not named yet is of a block from before. */
static bool on_free(rebuild *r, const vram_snapshot_event *event)
{
    const bool completed = event->action == VRAM_SNAPSHOT_FREE_COMPLETED;
    const bool known = vram_idmap_find(&r->live, event->address) != NULL;
    if (!known && !vram_idset_has(&r->seen, event->address) &&
        !add_before(r, (vram_before){.address = event->address,
                                     .size_bytes = event->size_bytes,
                                     .stream = r->state->snapshot->contexts[event->context].stream,
                                     .frames = event->frames,
                                     .pending = completed}))
        return false;
    if (!vram_idset_add(&r->seen, event->address))
        return false;
    if (!completed)
        return vram_idmap_put(&r->live, event->address, PENDING);
    vram_idmap_remove(&r->live, event->address);
    return true;
}

static bool walk_history(rebuild *r)
{
    for (size_t i = 0; i < r->state->event_count; i++) {
        const vram_snapshot_event *event = &r->state->events[i];
        if (event->action == VRAM_SNAPSHOT_ALLOC) {
            if (!vram_idset_add(&r->seen, event->address) ||
                !vram_idmap_put(&r->live, event->address, LIVE))
                return false;
        } else if (event->action == VRAM_SNAPSHOT_FREE_REQUESTED ||
                   event->action == VRAM_SNAPSHOT_FREE_COMPLETED) {
            if (!on_free(r, event))
                return false;
        }
    }
    return true;
}

static bool walk_blocks(rebuild *r, const vram_snapshot_segment *segment)
{
    for (size_t i = 0; i < segment->block_count; i++) {
        const vram_snapshot_block *block = &r->state->snapshot->blocks[segment->first_block + i];
        if (block->state == VRAM_SNAPSHOT_INACTIVE || vram_idset_has(&r->seen, block->address))
            continue;
        const uint64_t size_bytes =
            block->requested_bytes > 0 ? block->requested_bytes : block->size_bytes;
        if (!vram_idset_add(&r->seen, block->address) ||
            !add_before(r, (vram_before){.address = block->address,
                                         .size_bytes = size_bytes,
                                         .stream = segment->stream,
                                         .frames = block->frames,
                                         .pending = block->state == VRAM_SNAPSHOT_PENDING_FREE}))
            return false;
    }
    return true;
}

static int by_address(const void *left, const void *right)
{
    const vram_before *a = left, *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

static bool rebuild_before(pytorch *state, uint32_t device)
{
    rebuild r = {.state = state};
    bool done = walk_history(&r);
    for (size_t i = 0; done && i < state->snapshot->segment_count; i++)
        if (state->snapshot->segments[i].device == device)
            done = walk_blocks(&r, &state->snapshot->segments[i]);
    vram_idmap_free(&r.live);
    vram_idset_free(&r.seen);
    if (done && state->before_count > 0)
        qsort(state->befores, state->before_count, sizeof *state->befores, by_address);
    return done;
}

/* ---- what the file tells of PyTorch itself ---- */

static uint64_t less(uint64_t from, uint64_t bytes)
{
    return from > bytes ? from - bytes : 0;
}

/* The most that was reserved at once: from what is reserved at the end, events undone one by one.
 */
static uint64_t peak_reserved(const pytorch *state, uint32_t device)
{
    uint64_t reserved = 0;
    for (size_t i = 0; i < state->snapshot->segment_count; i++)
        if (state->snapshot->segments[i].device == device)
            reserved += state->snapshot->segments[i].total_bytes;
    uint64_t peak = reserved;
    for (size_t i = state->event_count; i-- > 0;) {
        const vram_snapshot_event *event = &state->events[i];
        if (event->action == VRAM_SNAPSHOT_SEGMENT_ALLOC ||
            event->action == VRAM_SNAPSHOT_SEGMENT_MAP)
            reserved = less(reserved, event->size_bytes);
        else if (event->action == VRAM_SNAPSHOT_SEGMENT_FREE ||
                 event->action == VRAM_SNAPSHOT_SEGMENT_UNMAP)
            reserved += event->size_bytes;
        peak = reserved > peak ? reserved : peak;
    }
    return peak;
}

static void fill_recorded(const pytorch *state, uint32_t device, vram_recorded *recorded)
{
    *recorded = (vram_recorded){.peak_reserved_bytes = peak_reserved(state, device),
                                .device_events = state->event_count,
                                .blocks_before = state->before_count,
                                .cut = state->before_count > 0};
    for (size_t i = 0; i < state->before_count; i++)
        recorded->bytes_before += state->befores[i].size_bytes;
    for (size_t i = 0; i < state->event_count; i++)
        recorded->out_of_memory += state->events[i].action == VRAM_SNAPSHOT_OOM;
}

/* ---- names ---- */

static int by_number(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Numbers the streams by their handles, as PyTorch's own orders go by them. */
static bool number_streams(vram_source *source, const pytorch *state)
{
    const size_t count = state->snapshot->context_count + state->before_count;
    uint64_t *handles = calloc(count, sizeof *handles);
    bool *used = calloc(state->snapshot->context_count, sizeof *used);
    size_t found = 0;
    bool done = handles != NULL && used != NULL;
    for (size_t i = 0; done && i < state->event_count; i++)
        used[state->events[i].context] = true;
    for (size_t i = 0; done && i < state->snapshot->context_count; i++)
        if (used[i])
            handles[found++] = state->snapshot->contexts[i].stream;
    for (size_t i = 0; done && i < state->before_count; i++)
        handles[found++] = state->befores[i].stream;
    if (done && found > 0)
        qsort(handles, found, sizeof *handles, by_number);
    uint32_t index;
    for (size_t i = 0; done && i < found; i++)
        done = vram_source_stream(source, handles[i], &index);
    free(handles);
    free(used);
    return done;
}

static bool intern_tags(vram_source *source, pytorch *state)
{
    state->tags = calloc(state->snapshot->context_count, sizeof *state->tags);
    if (state->tags == NULL)
        return false;
    for (size_t i = 0; i < state->snapshot->context_count; i++) {
        const char *text = state->snapshot->contexts[i].metadata;
        if (!vram_names_intern(&source->tags, text != NULL ? text : "",
                               text != NULL ? strlen(text) : 0, &state->tags[i]))
            return false;
    }
    return true;
}

/* ---- the format ---- */

static int pickle_probe(const char *head, size_t head_bytes)
{
    return head_bytes > 1 && (unsigned char)head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 ? 2 : 0;
}

static int json_probe(const char *head, size_t head_bytes)
{
    vram_scan scan = scan_over(head, head_bytes);
    while (!scan_done(&scan) && strchr(" \t\r\n", *scan.at) != NULL)
        scan.at++;
    if (scan_done(&scan) || (*scan.at != '{' && *scan.at != '['))
        return 0;
    return scan_holds(&scan, "\"segments\"") || scan_holds(&scan, "\"device_traces\"") ||
                   scan_holds(&scan, "\"segment_type\"")
               ? 2
               : 0;
}

static void pytorch_close(vram_source *source)
{
    pytorch *state = source->state;
    vram_snapshot_close(state->snapshot);
    free(state->befores);
    free(state->tags);
    free(state);
    source->state = NULL;
}

static bool choose_device(const vram_source *source, pytorch *state, vram_error *error)
{
    const vram_snapshot *snapshot = state->snapshot;
    const uint32_t device = source->options->device;
    if (device >= snapshot->device_count)
        return vram_fail(error, "%s: has %zu device%s; --device %u is not one of them",
                         source->path, snapshot->device_count,
                         snapshot->device_count == 1 ? "" : "s", device);
    state->event_count = snapshot->devices[device].event_count;
    if (state->event_count > 0)
        state->events = snapshot->events + snapshot->devices[device].first_event;
    return true;
}

static bool prepare(vram_source *source, vram_error *error)
{
    pytorch *state = source->state;
    if (!vram_pytorch_load(source->input, &state->snapshot, error) ||
        !choose_device(source, state, error))
        return false;
    if (!rebuild_before(state, source->options->device) || !number_streams(source, state) ||
        !intern_tags(source, state))
        return out_of_memory(source, error);
    fill_recorded(state, source->options->device, &source->info->recorded);
    source->info->unit_bytes = 512;
    source->info->has_clock = state->event_count > 0 && state->events[0].time_us > 0;
    source->info->stacks = (uint32_t)state->snapshot->stack_count;
    source->record_name = "event";
    return true;
}

static bool look_closer(vram_source *source, vram_error *error)
{
    const pytorch *state = source->state;
    vram_recorded *recorded = &source->info->recorded;
    if (recorded->peak_allocated_bytes > 0 || state->event_count > WALKED_EVENTS_MAX)
        return true;
    return vram_peak_allocated(state->snapshot, source->options->device, state->befores,
                               state->before_count, &recorded->peak_allocated_bytes) ||
           out_of_memory(source, error);
}

static bool pytorch_open(vram_source *source, vram_error *error)
{
    pytorch *state = calloc(1, sizeof *state);
    if (state == NULL)
        return out_of_memory(source, error);
    source->state = state;
    if (prepare(source, error))
        return true;
    pytorch_close(source);
    return false;
}

static uint64_t time_of(const vram_snapshot_event *event)
{
    return event->time_us < UINT64_MAX / 1000 ? event->time_us * 1000 : UINT64_MAX;
}

static vram_step next_before(pytorch *state, vram_raw *raw)
{
    const vram_before *block =
        &state->befores[state->retire_before ? state->next_before - 1 : state->next_before];
    *raw = (vram_raw){.kind = state->retire_before ? VRAM_EVENT_RETIRE : VRAM_EVENT_ALLOC,
                      .id = block->address,
                      .size_bytes = block->size_bytes,
                      .stream = block->stream,
                      .stack = block->frames,
                      .time_ns = state->event_count > 0 ? time_of(&state->events[0]) : 0};
    if (state->retire_before) {
        state->retire_before = false;
    } else {
        state->retire_before = block->pending;
        state->next_before++;
    }
    return VRAM_STEP_EVENT;
}

/* The kind of program event that the history's next event is; KINDS for none. */
static vram_event_kind kind_of(pytorch *state, const vram_snapshot_event *event)
{
    switch ((vram_snapshot_action)event->action) {
    case VRAM_SNAPSHOT_ALLOC:
        return VRAM_EVENT_ALLOC;
    case VRAM_SNAPSHOT_FREE_COMPLETED:
        return VRAM_EVENT_FREE;
    case VRAM_SNAPSHOT_FREE_REQUESTED:
        if (state->next_event == state->event_count ||
            event[1].action != VRAM_SNAPSHOT_FREE_COMPLETED || event[1].address != event->address)
            return VRAM_EVENT_RETIRE;
        state->next_event++;
        return VRAM_EVENT_FREE;
    case VRAM_SNAPSHOT_OOM:
        return VRAM_EVENT_TRY;
    case VRAM_SNAPSHOT_OTHER:
    case VRAM_SNAPSHOT_SEGMENT_ALLOC:
    case VRAM_SNAPSHOT_SEGMENT_FREE:
    case VRAM_SNAPSHOT_SEGMENT_MAP:
    case VRAM_SNAPSHOT_SEGMENT_UNMAP:
    case VRAM_SNAPSHOT_SNAPSHOT:
    case VRAM_SNAPSHOT_ANNOTATE:
    case VRAM_SNAPSHOT_ACTIONS:
        break;
    }
    return VRAM_EVENT_KINDS;
}

static vram_step pytorch_next(vram_source *source, vram_raw *raw, vram_error *error)
{
    pytorch *state = source->state;
    if (state->retire_before || state->next_before < state->before_count)
        return next_before(state, raw);
    while (state->next_event < state->event_count) {
        const vram_snapshot_event *event = &state->events[state->next_event++];
        source->record = state->next_event;
        if (event->action == VRAM_SNAPSHOT_OTHER &&
            !vram_source_anomaly(source, VRAM_ANOMALY_SKIPPED, error, "an unknown action"))
            return VRAM_STEP_ERROR;
        const vram_event_kind kind = kind_of(state, event);
        if (kind == VRAM_EVENT_KINDS)
            continue;
        *raw = (vram_raw){.kind = (uint8_t)kind,
                          .id = kind == VRAM_EVENT_TRY ? 0 : event->address,
                          .size_bytes = event->size_bytes,
                          .stream = state->snapshot->contexts[event->context].stream,
                          .tag = state->tags[event->context],
                          .stack = event->frames,
                          .time_ns = time_of(event)};
        return VRAM_STEP_EVENT;
    }
    return VRAM_STEP_END;
}

static bool pytorch_rewind(vram_source *source, vram_error *error)
{
    (void)error;
    pytorch *state = source->state;
    state->next_before = state->next_event = 0;
    state->retire_before = false;
    return true;
}

static const char *pytorch_stack(const vram_source *source, uint32_t stack)
{
    const pytorch *state = source->state;
    return vram_snapshot_stack(state->snapshot, stack);
}

const vram_format vram_format_pytorch = {
    .name = "pytorch-snapshot",
    .summary = "torch.cuda.memory._dump_snapshot, pickle of protocol 2 to 5",
    .probe = pickle_probe,
    .open = pytorch_open,
    .next = pytorch_next,
    .rewind = pytorch_rewind,
    .close = pytorch_close,
    .stack = pytorch_stack,
    .look_closer = look_closer,
};

const vram_format vram_format_pytorch_json = {
    .name = "pytorch-snapshot-json",
    .summary = "the same structure as JSON",
    .probe = json_probe,
    .open = pytorch_open,
    .next = pytorch_next,
    .rewind = pytorch_rewind,
    .close = pytorch_close,
    .stack = pytorch_stack,
    .look_closer = look_closer,
};

const vram_snapshot *vram_pytorch_snapshot(const vram_source *source, const vram_format *format)
{
    const pytorch *state = format->open == pytorch_open ? source->state : NULL;
    return state != NULL ? state->snapshot : NULL;
}
