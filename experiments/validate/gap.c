/* gap.c - see gap.h. Each byte that is reserved and not requested is counted under one cause. */
#include "validate/gap.h"

#include "validate/recording.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct survey {
    const recording *history;
    uint32_t stream; /* of the request */
    gap_report *gap;
    size_t segment_capacity, pin_capacity;
} survey;

/* ------------------------------------------------------------------------------------------------
 * one segment */

typedef struct tally {
    uint64_t mapped_bytes, free_bytes, largest_free_bytes;
    size_t in_use; /* live and pending blocks */
} tally;

static bool add_pin(survey *self, const vram_caching_block *block)
{
    gap_report *gap = self->gap;
    if (!vram_reserve((void **)&gap->pins, &self->pin_capacity, gap->pin_count + 1,
                      sizeof *gap->pins))
        return false;
    gap_pin *pin = &gap->pins[gap->pin_count++];
    *pin = (gap_pin){.requested_bytes = block->requested_bytes,
                     .size_bytes = block->size_bytes,
                     .event = UINT64_MAX,
                     .stream = self->history->streams[block->stream],
                     .tag = ""};
    if (block->cookie == 0)
        return true;
    const vram_snapshot_event *event = &self->history->events[block->cookie - 1];
    pin->event = block->cookie - 1;
    pin->frames = event->frames;
    pin->tag = self->history->snapshot->contexts[event->context].metadata;
    return true;
}

static bool count_block(survey *self, const vram_caching_block *block, tally *sum)
{
    gap_report *gap = self->gap;
    if (block->state == VRAM_CACHING_UNMAPPED)
        return true;
    sum->mapped_bytes += block->size_bytes;
    if (block->state == VRAM_CACHING_FREE) {
        sum->free_bytes += block->size_bytes;
        if (block->size_bytes > sum->largest_free_bytes)
            sum->largest_free_bytes = block->size_bytes;
        return true;
    }
    if (block->state == VRAM_CACHING_LIVE) {
        gap->requested_bytes += block->requested_bytes;
        gap->rounding_bytes += block->size_bytes - block->requested_bytes;
    } else {
        gap->pending_bytes += block->size_bytes;
    }
    sum->in_use++;
    return add_pin(self, block);
}

static int larger_pin_first(const void *a, const void *b)
{
    const gap_pin *x = a;
    const gap_pin *y = b;
    return (x->size_bytes < y->size_bytes) - (x->size_bytes > y->size_bytes);
}

static bool survey_segment(survey *self, const vram_caching *model,
                           const vram_caching_segment *segment)
{
    gap_report *gap = self->gap;
    const size_t first_pin = gap->pin_count;
    tally sum = {0};
    for (uint32_t slot = segment->first; slot != VRAM_CACHING_NONE;
         slot = vram_caching_at(model, slot)->next)
        if (!count_block(self, vram_caching_at(model, slot), &sum))
            return false;
    if (segment->stream != self->stream)
        gap->other_stream_bytes += sum.free_bytes;
    else if (sum.in_use == 0)
        gap->whole_bytes += sum.free_bytes;
    else
        gap->held_bytes += sum.free_bytes;
    if (segment->stream == self->stream && sum.largest_free_bytes > gap->largest_free_bytes)
        gap->largest_free_bytes = sum.largest_free_bytes;
    if (sum.free_bytes == 0 || sum.in_use == 0) {
        gap->pin_count = first_pin;
        return true;
    }
    if (!vram_reserve((void **)&gap->segments, &self->segment_capacity, gap->segment_count + 1,
                      sizeof *gap->segments))
        return false;
    gap->segments[gap->segment_count++] =
        (gap_segment){.address = segment->address_bytes,
                      .size_bytes = sum.mapped_bytes,
                      .free_bytes = sum.free_bytes,
                      .largest_free_bytes = sum.largest_free_bytes,
                      .stream = self->history->streams[segment->stream],
                      .first_pin = first_pin,
                      .pin_count = sum.in_use};
    qsort(&gap->pins[first_pin], sum.in_use, sizeof *gap->pins, larger_pin_first);
    return true;
}

static int most_free_first(const void *a, const void *b)
{
    const gap_segment *x = a;
    const gap_segment *y = b;
    if (x->free_bytes != y->free_bytes)
        return x->free_bytes < y->free_bytes ? 1 : -1;
    return (x->address > y->address) - (x->address < y->address);
}

static bool survey_model(void *context, const vram_caching *model)
{
    survey *self = context;
    self->gap->reserved_bytes = vram_caching_stats_of(model)->reserved_bytes;
    const vram_caching_segment *segment;
    for (uint32_t i = 0; (segment = vram_caching_segment_at(model, i)) != NULL; i++)
        if (!segment->vacant && !survey_segment(self, model, segment))
            return false;
    if (self->gap->segment_count > 0)
        qsort(self->gap->segments, self->gap->segment_count, sizeof *self->gap->segments,
              most_free_first);
    return true;
}

/* ------------------------------------------------------------------------------------------------
 * the moment */

/* The request to look at; history->count when there is none. */
static size_t moment_of(const recording *history)
{
    if (history->first_oom != SIZE_MAX)
        return history->first_oom;
    size_t i = history->peak_event;
    while (i < history->count && history->events[i].action != VRAM_SNAPSHOT_ALLOC)
        i++;
    return i;
}

bool gap_measure(const vram_snapshot *snapshot, uint32_t device, gap_report *gap, vram_error *error)
{
    *gap = (gap_report){.out_of_memory = false};
    recording history;
    if (!recording_open(&history, snapshot, &(validate_options){.device = device}, error))
        return false;
    const size_t moment = moment_of(&history);
    bool done = moment < history.count || vram_fail(error, "it has no allocation at its peak");
    if (done) {
        const vram_snapshot_event *event = &history.events[moment];
        survey self = {
            .history = &history, .stream = recording_stream(&history, event), .gap = gap};
        gap->out_of_memory = event->action == VRAM_SNAPSHOT_OOM;
        gap->event = moment;
        gap->asked_bytes = event->size_bytes;
        gap->segment_bytes = vram_caching_segment_bytes(
            &history.settings, vram_caching_round(&history.settings, event->size_bytes));
        done = recording_look(&history, moment, survey_model, &self, error);
    }
    recording_close(&history);
    if (!done)
        gap_free(gap);
    return done;
}

void gap_free(gap_report *gap)
{
    free(gap->segments);
    free(gap->pins);
    *gap = (gap_report){.out_of_memory = false};
}

/* ------------------------------------------------------------------------------------------------
 * in words */

enum { SHOWN_SEGMENTS = 5, SHOWN_PINS = 3 };

static void print_part(const char *what, uint64_t size_bytes, FILE *out)
{
    char size[VRAM_SIZE_TEXT];
    fprintf(out, "  %-44s %12s\n", what, vram_format_size(size_bytes, size));
}

/* One block, with the innermost frame of its stack when it was recorded. */
static void print_pin(const gap_pin *pin, const vram_snapshot *snapshot, FILE *out)
{
    char size[VRAM_SIZE_TEXT];
    fprintf(out, "      %10s", vram_format_size(pin->requested_bytes, size));
    if (pin->event == UINT64_MAX)
        fputs(", there before the recording began", out);
    else
        fprintf(out, ", allocated at event %" PRIu64, pin->event);
    if (pin->tag[0] != '\0')
        fprintf(out, ", %s", pin->tag);
    const char *stack = vram_snapshot_stack(snapshot, pin->frames);
    if (stack[0] != '\0')
        fprintf(out, ", at %.*s", (int)strcspn(stack, "\n"), stack);
    fputc('\n', out);
}

static void print_segment(const gap_report *gap, const gap_segment *segment,
                          const vram_snapshot *snapshot, FILE *out)
{
    char free_text[VRAM_SIZE_TEXT];
    char size[VRAM_SIZE_TEXT];
    fprintf(out, "  %s free of %s, held by %zu block%s:\n",
            vram_format_size(segment->free_bytes, free_text),
            vram_format_size(segment->size_bytes, size), segment->pin_count,
            segment->pin_count == 1 ? "" : "s");
    for (size_t k = 0; k < segment->pin_count && k < SHOWN_PINS; k++)
        print_pin(&gap->pins[segment->first_pin + k], snapshot, out);
    if (segment->pin_count > SHOWN_PINS)
        fprintf(out, "      and %zu smaller\n", segment->pin_count - SHOWN_PINS);
}

void gap_print(const gap_report *gap, const vram_snapshot *snapshot, FILE *out)
{
    char reserved[VRAM_SIZE_TEXT];
    char requested[VRAM_SIZE_TEXT];
    char asked[VRAM_SIZE_TEXT];
    char segment[VRAM_SIZE_TEXT];
    char count[32];
    fprintf(out,
            "%s (event %s, asking for %s, from the driver %s),\nPyTorch had %s reserved for %s "
            "of live requests. The rest:\n",
            gap->out_of_memory ? "When it ran out" : "When it reserved most",
            vram_format_count(gap->event, count), vram_format_size(gap->asked_bytes, asked),
            vram_format_size(gap->segment_bytes, segment),
            vram_format_size(gap->reserved_bytes, reserved),
            vram_format_size(gap->requested_bytes, requested));
    print_part("rounding and slack in live blocks", gap->rounding_bytes, out);
    print_part("free inside segments that live blocks hold", gap->held_bytes, out);
    print_part("wholly free segments", gap->whole_bytes, out);
    print_part("free, but bound to other streams", gap->other_stream_bytes, out);
    print_part("released, waiting for other streams", gap->pending_bytes, out);
    print_part("largest free block", gap->largest_free_bytes, out);
    if (gap->segment_count == 0)
        return;
    fputs("Free memory is pinned most by:\n", out);
    for (size_t k = 0; k < gap->segment_count && k < SHOWN_SEGMENTS; k++)
        print_segment(gap, &gap->segments[k], snapshot, out);
}
