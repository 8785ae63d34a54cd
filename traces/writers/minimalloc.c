/*
 * minimalloc.c - MiniMalloc's CSV: id,lower,upper,size and, when a block asks for it, alignment.
 *
 * Rows are in the order of the allocations. lower and upper are times when the trace's clock can
 * hold the order of its events: every block lives for a while, and at no time an allocation comes
 * before a free. Otherwise they are the numbers of the events. Ids are written when no two blocks
 * share one; else tags, when every block has one of its own; else blocks are numbered.
 */
#include "writer.h"

#include "../readers/idmap.h"

#include <stdlib.h>
#include <string.h>

#define NO_END UINT64_MAX

/* A block, with both of the measures of its life. */
typedef struct life {
    uint64_t id, size_bytes;
    uint64_t start_ns, end_ns, start_event, end_event; /* NO_END: it lives on */
    uint32_t tag;
    uint8_t align_log2;
} life;

typedef struct minimalloc {
    life *lives;
    size_t count, capacity;
    size_t *by_slot;
    size_t slot_capacity;
    uint64_t last_ns;       /* time of the event before */
    uint64_t last_alloc_ns; /* time of the last allocation; NO_END before the first */
    bool clock_holds, aligned;
} minimalloc;

static bool minimalloc_begin(writing *w)
{
    minimalloc *state = calloc(1, sizeof *state);
    if (state == NULL)
        return false;
    state->clock_holds = w->info->has_clock;
    state->last_alloc_ns = NO_END;
    w->state = state;
    return true;
}

static bool open_life(writing *w, const vram_event *event)
{
    minimalloc *state = w->state;
    if (!vram_reserve((void **)&state->lives, &state->capacity, state->count + 1,
                      sizeof *state->lives) ||
        !vram_reserve((void **)&state->by_slot, &state->slot_capacity, (size_t)event->slot + 1,
                      sizeof *state->by_slot))
        return false;
    state->by_slot[event->slot] = state->count;
    state->lives[state->count++] = (life){.id = event->id,
                                          .size_bytes = event->size_bytes,
                                          .start_ns = clock_ns(w, event),
                                          .end_ns = NO_END,
                                          .start_event = w->report->events,
                                          .end_event = NO_END,
                                          .tag = event->tag,
                                          .align_log2 = event->align_log2};
    state->aligned = state->aligned || event->align_log2 != 0;
    state->last_alloc_ns = clock_ns(w, event);
    return true;
}

static void close_life(writing *w, const vram_event *event)
{
    minimalloc *state = w->state;
    life *ended = &state->lives[state->by_slot[event->slot]];
    ended->end_ns = clock_ns(w, event);
    ended->end_event = w->report->events;
    if (ended->end_ns == ended->start_ns || ended->end_ns == state->last_alloc_ns)
        state->clock_holds = false; /* a reader would put this free before that allocation */
}

static bool minimalloc_event(writing *w, const vram_event *event)
{
    minimalloc *state = w->state;
    lose_attributes(w, event, LOSE_STACK | LOSE_STREAM);
    state->last_ns = clock_ns(w, event);
    switch ((vram_event_kind)event->kind) {
    case VRAM_EVENT_ALLOC:
        return open_life(w, event);
    case VRAM_EVENT_FREE:
        close_life(w, event);
        break;
    case VRAM_EVENT_RESIZE:
        lose_event(w, event);
        close_life(w, event);
        return open_life(w, event);
    case VRAM_EVENT_RETIRE:
    case VRAM_EVENT_TRY:
    case VRAM_EVENT_USE:
    case VRAM_EVENT_SYNC:
    case VRAM_EVENT_WAIT:
    case VRAM_EVENT_MARK:
    case VRAM_EVENT_KINDS:
        lose_event(w, event);
        break;
    }
    return true;
}

/* ---- the end: what the blocks are called, then the rows ---- */

typedef enum naming { BY_ID, BY_TAG, BY_NUMBER } naming;

/* Whether every block has a name of its own. *unique is false when not. */
static bool find_unique(const minimalloc *state, bool tags, bool *unique)
{
    vram_idmap seen = {0};
    bool room = true;
    *unique = true;
    for (size_t i = 0; i < state->count && *unique && room; i++) {
        const uint64_t name = tags ? state->lives[i].tag : state->lives[i].id;
        *unique = vram_idmap_find(&seen, name) == NULL && (!tags || name != 0);
        room = vram_idmap_put(&seen, name, 0);
    }
    vram_idmap_free(&seen);
    return room;
}

/* A tag can stand in a field as it is. */
static bool tags_are_plain(const writing *w)
{
    const minimalloc *state = w->state;
    for (size_t i = 0; i < state->count; i++) {
        const char *tag = vram_trace_tag(w->trace, state->lives[i].tag);
        if (tag[strcspn(tag, ",\"\n\r")] != '\0' || *tag == ' ' || *tag == '\0')
            return false;
    }
    return true;
}

static bool choose_naming(const writing *w, naming *names)
{
    const minimalloc *state = w->state;
    bool ids, tags;
    if (!find_unique(state, false, &ids) || !find_unique(state, true, &tags))
        return false;
    *names = tags && tags_are_plain(w) ? BY_TAG : ids ? BY_ID : BY_NUMBER;
    return true;
}

static void write_life(writing *w, size_t number, naming names)
{
    const minimalloc *state = w->state;
    const life *l = &state->lives[number];
    const bool clock = state->clock_holds;
    const uint64_t start = clock ? l->start_ns : l->start_event;
    uint64_t end = clock ? l->end_ns : l->end_event;
    if (end == NO_END) {
        lose(w, VRAM_LOSS_NEVER_FREED);
        end = clock ? state->last_ns + 1 : w->report->events + 1;
    }
    if (names == BY_TAG)
        sink_text(&w->sink, vram_trace_tag(w->trace, l->tag));
    else
        sink_decimal(&w->sink, names == BY_ID ? l->id : number);
    const uint64_t fields[] = {start, end, l->size_bytes, UINT64_C(1) << l->align_log2};
    for (size_t i = 0; i < (state->aligned ? 4 : 3); i++) {
        sink_text(&w->sink, ",");
        sink_decimal(&w->sink, fields[i]);
    }
    sink_text(&w->sink, "\n");
    w->report->lines++;
    if (names != BY_TAG && l->tag != 0)
        lose(w, VRAM_LOSS_TAG);
    if (names != BY_ID && (names == BY_NUMBER || l->id != number))
        lose(w, VRAM_LOSS_ID);
}

static bool minimalloc_end(writing *w)
{
    minimalloc *state = w->state;
    naming names;
    if (!choose_naming(w, &names))
        return false;
    sink_text(&w->sink,
              state->aligned ? "id,lower,upper,size,alignment\n" : "id,lower,upper,size\n");
    for (size_t i = 0; i < state->count; i++)
        write_life(w, i, names);
    if (w->info->has_clock && !state->clock_holds)
        w->report->lost[VRAM_LOSS_TIME] = w->report->events;
    return true;
}

static void minimalloc_drop(writing *w)
{
    minimalloc *state = w->state;
    if (state != NULL) {
        free(state->lives);
        free(state->by_slot);
    }
    free(state);
}

const vram_writer vram_writer_minimalloc = {
    .name = "minimalloc",
    .summary = "MiniMalloc CSV of lifetimes: ids or tags, sizes, alignments",
    .unit_bytes = 1,
    .begin = minimalloc_begin,
    .event = minimalloc_event,
    .end = minimalloc_end,
    .drop = minimalloc_drop,
};
