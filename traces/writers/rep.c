/*
 * rep.c - malloclab's .rep: four header lines, then a, f, r and w.
 *
 * Blocks are numbered by allocation, as ids there are used once. The header is that of CS:APP 2002:
 * peak bytes, ids, operations, weight 1.
 */
#include "writer.h"

#include <stdlib.h>

typedef struct rep {
    uint64_t blocks;   /* allocated so far */
    uint64_t *numbers; /* by slot */
    size_t capacity;
} rep;

static bool rep_begin(writing *w)
{
    const vram_trace_summary *sum = w->summary;
    const uint64_t operations = sum->by_kind[VRAM_EVENT_ALLOC] + sum->by_kind[VRAM_EVENT_FREE] +
                                sum->by_kind[VRAM_EVENT_RESIZE] + sum->by_kind[VRAM_EVENT_USE];
    const uint64_t header[] = {sum->peak_live_bytes, sum->by_kind[VRAM_EVENT_ALLOC], operations, 1};
    for (size_t i = 0; i < sizeof header / sizeof header[0]; i++) {
        sink_decimal(&w->sink, header[i]);
        sink_text(&w->sink, "\n");
    }
    w->state = calloc(1, sizeof(rep));
    return w->state != NULL;
}

static void line(writing *w, char letter, uint64_t number, const uint64_t *size_bytes)
{
    sink_bytes(&w->sink, (const char[]){letter, ' '}, 2);
    sink_decimal(&w->sink, number);
    if (size_bytes != NULL) {
        sink_text(&w->sink, " ");
        sink_decimal(&w->sink, *size_bytes);
    }
    sink_text(&w->sink, "\n");
    w->report->lines++;
}

static bool rep_event(writing *w, const vram_event *event)
{
    rep *state = w->state;
    if (!vram_reserve((void **)&state->numbers, &state->capacity, (size_t)event->slot + 1,
                      sizeof *state->numbers))
        return false;
    uint64_t *number = &state->numbers[event->slot];
    lose_attributes(w, event, LOSE_ALIGN | LOSE_TAG | LOSE_STACK | LOSE_STREAM);
    switch ((vram_event_kind)event->kind) {
    case VRAM_EVENT_ALLOC:
        *number = state->blocks++;
        if (*number != event->id)
            lose(w, VRAM_LOSS_ID);
        line(w, 'a', *number, &event->size_bytes);
        break;
    case VRAM_EVENT_FREE:
        line(w, 'f', *number, NULL);
        break;
    case VRAM_EVENT_RESIZE:
        line(w, 'r', *number, &event->size_bytes);
        break;
    case VRAM_EVENT_USE:
        line(w, 'w', *number, &event->size_bytes);
        break;
    case VRAM_EVENT_RETIRE:
    case VRAM_EVENT_TRY:
    case VRAM_EVENT_SYNC:
    case VRAM_EVENT_WAIT:
    case VRAM_EVENT_MARK:
    case VRAM_EVENT_KINDS:
        lose_event(w, event);
        break;
    }
    if (w->info->has_clock)
        lose(w, VRAM_LOSS_TIME);
    return true;
}

static void rep_drop(writing *w)
{
    rep *state = w->state;
    if (state != NULL)
        free(state->numbers);
    free(state);
}

const vram_writer vram_writer_rep = {
    .name = "rep",
    .summary = "malloclab .rep: ids, sizes, resizes and uses",
    .suffix = ".rep",
    .summarise = true,
    .unit_bytes = 16,
    .begin = rep_begin,
    .event = rep_event,
    .drop = rep_drop,
};
