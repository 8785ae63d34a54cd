/*
 * records.c - dictionaries to records, by the keys that PyTorch writes.
 *
 * Every known key and word is interned first, in the order of the table, so that its index is its
 * enumerator and a dictionary is packed by switches, without comparing a text.
 */
#include "build.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEY_NONE,
    KEY_ACTION,
    KEY_ADDR,
    KEY_DEVICE_FREE,
    KEY_SIZE,
    KEY_STREAM,
    KEY_TIME_US,
    KEY_COMPILE_CONTEXT,
    KEY_USER_METADATA,
    KEY_CATEGORY,
    KEY_POOL_ID,
    KEY_FRAMES,
    KEY_STATE,
    KEY_ADDRESS,
    KEY_REQUESTED_SIZE,
    KEY_TOTAL_SIZE,
    KEY_ALLOCATED_SIZE,
    KEY_ACTIVE_SIZE,
    KEY_SEGMENT_TYPE,
    KEY_SEGMENT_POOL_ID,
    KEY_IS_EXPANDABLE,
    KEY_DEVICE,
    KEY_BLOCKS,
    KEY_FILENAME,
    KEY_NAME,
    KEY_LINE,
    WORD_SMALL,
    WORD_NOT_AVAILABLE,
    WORD_INACTIVE, /* in the order of vram_snapshot_state */
    WORD_ALLOCATED,
    WORD_PENDING_FREE,
    WORD_AWAITING_FREE,
    WORD_FIRST_ACTION, /* in the order of vram_snapshot_action, from ALLOC on */
};

static const char *const words[WORD_FIRST_ACTION] = {
    [KEY_NONE] = "",
    [KEY_ACTION] = "action",
    [KEY_ADDR] = "addr",
    [KEY_DEVICE_FREE] = "device_free",
    [KEY_SIZE] = "size",
    [KEY_STREAM] = "stream",
    [KEY_TIME_US] = "time_us",
    [KEY_COMPILE_CONTEXT] = "compile_context",
    [KEY_USER_METADATA] = "user_metadata",
    [KEY_CATEGORY] = "category",
    [KEY_POOL_ID] = "pool_id",
    [KEY_FRAMES] = "frames",
    [KEY_STATE] = "state",
    [KEY_ADDRESS] = "address",
    [KEY_REQUESTED_SIZE] = "requested_size",
    [KEY_TOTAL_SIZE] = "total_size",
    [KEY_ALLOCATED_SIZE] = "allocated_size",
    [KEY_ACTIVE_SIZE] = "active_size",
    [KEY_SEGMENT_TYPE] = "segment_type",
    [KEY_SEGMENT_POOL_ID] = "segment_pool_id",
    [KEY_IS_EXPANDABLE] = "is_expandable",
    [KEY_DEVICE] = "device",
    [KEY_BLOCKS] = "blocks",
    [KEY_FILENAME] = "filename",
    [KEY_NAME] = "name",
    [KEY_LINE] = "line",
    [WORD_SMALL] = "small",
    [WORD_NOT_AVAILABLE] = "N/A",
    [WORD_INACTIVE] = "inactive",
    [WORD_ALLOCATED] = "active_allocated",
    [WORD_PENDING_FREE] = "active_pending_free",
    [WORD_AWAITING_FREE] = "active_awaiting_free",
};

bool build_start(vram_build *build, vram_input *input, vram_error *error)
{
    *build = (vram_build){.input = input, .error = error};
    uint32_t index;
    for (uint32_t i = 0; i < WORD_FIRST_ACTION; i++)
        if (!vram_names_intern(&build->names, words[i], strlen(words[i]), &index))
            return build_fail(build, "out of memory");
    for (unsigned action = VRAM_SNAPSHOT_ALLOC; action < VRAM_SNAPSHOT_ACTIONS; action++) {
        const char *name = vram_snapshot_action_name((vram_snapshot_action)action);
        if (!vram_names_intern(&build->names, name, strlen(name), &index))
            return build_fail(build, "out of memory");
    }
    return true;
}

/* ---- fields ---- */

static bool wrong_type(vram_build *build, uint32_t key, const char *expected)
{
    return build_fail(build, "the value of \"%s\" is not %s", vram_names_text(&build->names, key),
                      expected);
}

/* NONE leaves the field as it is. */
static bool number_of(vram_build *build, uint32_t key, const build_value *value, uint64_t *number)
{
    if (value->type == BUILD_NONE)
        return true;
    if (value->type == BUILD_FLOAT && value->real >= 0 && value->real < 9.2e18) {
        *number = (uint64_t)value->real;
        return true;
    }
    if (value->type != BUILD_INT && value->type != BUILD_BOOL)
        return wrong_type(build, key, "a number");
    *number = value->number;
    return true;
}

static bool flag_of(vram_build *build, uint32_t key, const build_value *value, bool *flag)
{
    uint64_t number = *flag;
    if (!number_of(build, key, value, &number))
        return false;
    *flag = number != 0;
    return true;
}

static bool text_of(vram_build *build, uint32_t key, const build_value *value, uint32_t *index)
{
    if (value->type == BUILD_NONE)
        return true;
    if (value->type != BUILD_TEXT)
        return wrong_type(build, key, "a text");
    *index = (uint32_t)value->number;
    return true;
}

/* The frames of a list, equal lists once; the list itself becomes their index. */
static bool frames_of(vram_build *build, uint32_t key, const build_value *value, uint32_t *stack)
{
    const build_value resolved = build_resolve(build, *value);
    if (resolved.type == BUILD_NONE)
        return true;
    if (resolved.type == BUILD_STACK) {
        *stack = (uint32_t)resolved.number;
        return true;
    }
    if (resolved.type != BUILD_LIST)
        return wrong_type(build, key, "a list of frames");
    size_t count, frames = 0;
    const build_value *items = build_items(build, &resolved, &count);
    if (!vram_reserve((void **)&build->scratch, &build->scratch_capacity, count,
                      sizeof *build->scratch))
        return build_fail(build, "out of memory");
    for (size_t i = 0; i < count; i++)
        if (items[i].type == BUILD_FRAME)
            build->scratch[frames++] = (uint32_t)items[i].number;
    if (!vram_names_intern(&build->stacks, frames > 0 ? (const char *)build->scratch : "",
                           frames * sizeof *build->scratch, stack))
        return build_fail(build, "out of memory");
    return build_turn_list(build, &resolved, BUILD_STACK, *stack);
}

/* A pair of numbers; the list itself becomes their index. */
static bool pool_of(vram_build *build, uint32_t key, const build_value *value, uint64_t pool[2])
{
    const build_value resolved = build_resolve(build, *value);
    if (resolved.type == BUILD_NONE)
        return true;
    if (resolved.type == BUILD_POOL) {
        memcpy(pool, vram_names_text(&build->pools, (uint32_t)resolved.number), 2 * sizeof *pool);
        return true;
    }
    size_t count = 0;
    const build_value *items = build_items(build, &resolved, &count);
    if (resolved.type != BUILD_LIST || count != 2)
        return wrong_type(build, key, "a pair of numbers");
    if (!number_of(build, key, &items[0], &pool[0]) || !number_of(build, key, &items[1], &pool[1]))
        return false;
    uint32_t index;
    if (!vram_names_intern(&build->pools, (const char *)pool, 2 * sizeof *pool, &index))
        return build_fail(build, "out of memory");
    return build_turn_list(build, &resolved, BUILD_POOL, index);
}

/* ---- records ---- */

typedef struct event_draft {
    vram_snapshot_event event;
    build_context context;
} event_draft;

static void set_action(vram_snapshot_event *event, uint32_t word)
{
    const uint32_t action = word - WORD_FIRST_ACTION + VRAM_SNAPSHOT_ALLOC;
    event->action = (word >= WORD_FIRST_ACTION && action < VRAM_SNAPSHOT_ACTIONS
                         ? action
                         : (uint32_t)VRAM_SNAPSHOT_OTHER) &
                    0xffu;
}

static bool set_event(vram_build *build, event_draft *draft, uint32_t key, const build_value *value)
{
    uint32_t word = 0;
    switch (key) {
    case KEY_ACTION:
        if (!text_of(build, key, value, &word))
            return false;
        set_action(&draft->event, word);
        return true;
    case KEY_ADDR:
    case KEY_DEVICE_FREE:
        return number_of(build, key, value, &draft->event.address);
    case KEY_SIZE:
        return number_of(build, key, value, &draft->event.size_bytes);
    case KEY_STREAM:
        return number_of(build, key, value, &draft->context.stream);
    case KEY_TIME_US:
        return number_of(build, key, value, &draft->event.time_us);
    case KEY_COMPILE_CONTEXT:
        if (!text_of(build, key, value, &word))
            return false;
        draft->context.compile = word == WORD_NOT_AVAILABLE ? KEY_NONE : word;
        return true;
    case KEY_USER_METADATA:
    case KEY_CATEGORY:
        if (!text_of(build, key, value, &word))
            return false;
        if (word != KEY_NONE)
            draft->context.metadata = word;
        return true;
    case KEY_POOL_ID:
        draft->context.has_pool = 1;
        return pool_of(build, key, value, draft->context.pool);
    case KEY_FRAMES:
        return frames_of(build, key, value, &draft->event.frames);
    default:
        return true;
    }
}

static bool set_block(vram_build *build, vram_snapshot_block *block, uint32_t key,
                      const build_value *value)
{
    uint32_t word = 0;
    switch (key) {
    case KEY_STATE:
        if (!text_of(build, key, value, &word))
            return false;
        block->state = word == WORD_ALLOCATED ? VRAM_SNAPSHOT_ALLOCATED
                       : word == WORD_PENDING_FREE || word == WORD_AWAITING_FREE
                           ? VRAM_SNAPSHOT_PENDING_FREE
                           : VRAM_SNAPSHOT_INACTIVE;
        return word == WORD_INACTIVE || block->state != VRAM_SNAPSHOT_INACTIVE ||
               build_fail(build,
                          "a block's state is \"%.40s\"; expected active_allocated, "
                          "active_pending_free or inactive",
                          vram_names_text(&build->names, word));
    case KEY_ADDRESS:
        return number_of(build, key, value, &block->address);
    case KEY_SIZE:
        return number_of(build, key, value, &block->size_bytes);
    case KEY_REQUESTED_SIZE:
        return number_of(build, key, value, &block->requested_bytes);
    case KEY_FRAMES:
        return frames_of(build, key, value, &block->frames);
    default:
        return true;
    }
}

/* The blocks of a segment are packed one after another, so they are one run. */
static bool set_blocks(vram_build *build, vram_snapshot_segment *segment, const build_value *value)
{
    size_t count;
    const build_value *items = build_items(build, value, &count);
    if (value->type != BUILD_LIST || count > 1 || (count == 1 && items->type != BUILD_BLOCK))
        return wrong_type(build, KEY_BLOCKS, "a list of blocks");
    segment->first_block = count == 1 ? (size_t)items->number : 0;
    segment->block_count = count == 1 ? items->count : 0;
    return true;
}

static bool set_segment(vram_build *build, vram_snapshot_segment *segment, uint32_t key,
                        const build_value *value)
{
    uint32_t word = 0;
    uint64_t number = segment->device;
    switch (key) {
    case KEY_ADDRESS:
        return number_of(build, key, value, &segment->address);
    case KEY_TOTAL_SIZE:
        return number_of(build, key, value, &segment->total_bytes);
    case KEY_ALLOCATED_SIZE:
        return number_of(build, key, value, &segment->allocated_bytes);
    case KEY_ACTIVE_SIZE:
        return number_of(build, key, value, &segment->active_bytes);
    case KEY_REQUESTED_SIZE:
        return number_of(build, key, value, &segment->requested_bytes);
    case KEY_STREAM:
        return number_of(build, key, value, &segment->stream);
    case KEY_SEGMENT_TYPE:
        if (!text_of(build, key, value, &word))
            return false;
        segment->small = word == WORD_SMALL;
        return true;
    case KEY_SEGMENT_POOL_ID:
        return pool_of(build, key, value, segment->pool);
    case KEY_IS_EXPANDABLE:
        return flag_of(build, key, value, &segment->expandable);
    case KEY_FRAMES:
        return frames_of(build, key, value, &segment->frames);
    case KEY_BLOCKS:
        return set_blocks(build, segment, value);
    case KEY_DEVICE:
        if (!number_of(build, key, value, &number))
            return false;
        if (number > VRAM_SNAPSHOT_DEVICE_MAX)
            return wrong_type(build, key, "the number of a device");
        segment->device = (uint32_t)number;
        return true;
    default:
        return true;
    }
}

static bool set_frame(vram_build *build, build_frame *frame, uint32_t key, const build_value *value)
{
    switch (key) {
    case KEY_FILENAME:
        return text_of(build, key, value, &frame->file);
    case KEY_NAME:
        return text_of(build, key, value, &frame->function);
    case KEY_LINE:
        return number_of(build, key, value, &frame->line);
    default:
        return true;
    }
}

build_type build_kind_of(const build_value *pairs, size_t count)
{
    for (size_t i = 0; i + 1 < count; i += 2) {
        if (pairs[i].type != BUILD_TEXT)
            continue;
        switch (pairs[i].number) {
        case KEY_ACTION:
            return BUILD_EVENT;
        case KEY_STATE:
            return BUILD_BLOCK;
        case KEY_TOTAL_SIZE:
            return BUILD_SEGMENT;
        case KEY_FILENAME:
            return BUILD_FRAME;
        default:
            break;
        }
    }
    return BUILD_DICT;
}

/* The draft of whichever record is in hand. */
typedef union draft {
    event_draft event;
    vram_snapshot_block block;
    vram_snapshot_segment segment;
    build_frame frame;
} draft;

static bool set_fields(vram_build *build, build_type type, draft *d, const build_value *pairs,
                       size_t count)
{
    for (size_t i = 0; i + 1 < count; i += 2) {
        if (pairs[i].type != BUILD_TEXT || pairs[i].number >= WORD_SMALL)
            continue;
        const uint32_t key = (uint32_t)pairs[i].number;
        const build_value *value = &pairs[i + 1];
        const bool set = type == BUILD_EVENT     ? set_event(build, &d->event, key, value)
                         : type == BUILD_BLOCK   ? set_block(build, &d->block, key, value)
                         : type == BUILD_SEGMENT ? set_segment(build, &d->segment, key, value)
                                                 : set_frame(build, &d->frame, key, value);
        if (!set)
            return false;
    }
    return true;
}

/* Contexts mostly repeat from one event to the next. */
static bool intern_context(vram_build *build, const build_context *context,
                           vram_snapshot_event *event)
{
    uint32_t index = build->last_context;
    if (index == 0 || memcmp(&build->last, context, sizeof *context) != 0) {
        if (!vram_names_intern(&build->contexts, (const char *)context, sizeof *context, &index))
            return build_fail(build, "out of memory");
        if (index >= 1u << 24)
            return build_fail(build, "more than 2^24 different streams, pools and texts of events");
        build->last_context = index;
        build->last = *context;
    }
    event->context = index & 0xffffffu;
    return true;
}

/* Room for the record at `index`, which may be the next. */
static bool room(vram_build *build, void **records, size_t *capacity, size_t *count, uint64_t index,
                 size_t record_bytes)
{
    if (index < *count)
        return true;
    if (!vram_reserve(records, capacity, *count + 1, record_bytes))
        return build_fail(build, "out of memory");
    (*count)++;
    return true;
}

/* Writes the draft to its place, or behind the last record when *index is their number. */
static bool store(vram_build *build, build_type type, const draft *d, uint64_t *index)
{
    uint32_t frame;
    if (type == BUILD_EVENT) {
        if (!room(build, (void **)&build->events, &build->event_capacity, &build->event_count,
                  *index, sizeof *build->events))
            return false;
        build->events[*index] = d->event.event;
        return intern_context(build, &d->event.context, &build->events[*index]);
    }
    if (type == BUILD_BLOCK) {
        if (!room(build, (void **)&build->blocks, &build->block_capacity, &build->block_count,
                  *index, sizeof *build->blocks))
            return false;
        build->blocks[*index] = d->block;
        return true;
    }
    if (type == BUILD_SEGMENT) {
        if (!room(build, (void **)&build->segments, &build->segment_capacity, &build->segment_count,
                  *index, sizeof *build->segments))
            return false;
        build->segments[*index] = d->segment;
        return true;
    }
    if (!vram_names_intern(&build->frames, (const char *)&d->frame, sizeof d->frame, &frame))
        return build_fail(build, "out of memory");
    *index = frame;
    return true;
}

bool build_new_record(vram_build *build, build_type type, const build_value *pairs, size_t count,
                      build_value *record)
{
    draft d;
    memset(&d, 0, sizeof d);
    if (type == BUILD_BLOCK)
        d.block.address = VRAM_SNAPSHOT_NO_ADDRESS;
    *record = (build_value){.type = type,
                            .count = 1,
                            .number = type == BUILD_EVENT   ? build->event_count
                                      : type == BUILD_BLOCK ? build->block_count
                                                            : build->segment_count};
    return set_fields(build, type, &d, pairs, count) && store(build, type, &d, &record->number);
}

bool build_amend_record(vram_build *build, const build_value *record, const build_value *pairs,
                        size_t count)
{
    uint64_t index = record->number + record->count - 1;
    draft d;
    memset(&d, 0, sizeof d);
    if (record->type == BUILD_EVENT) {
        d.event.event = build->events[index];
        memcpy(&d.event.context, vram_names_text(&build->contexts, d.event.event.context),
               sizeof d.event.context);
    } else if (record->type == BUILD_BLOCK) {
        d.block = build->blocks[index];
    } else if (record->type == BUILD_SEGMENT) {
        d.segment = build->segments[index];
    } else {
        return build_fail(build, "a stack frame is changed after it was complete");
    }
    return set_fields(build, record->type, &d, pairs, count) &&
           store(build, record->type, &d, &index);
}
