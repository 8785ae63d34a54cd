/*
 * spans.c - what happens to a table of spans off the fast path: growth, walks, checks.
 */
#include "core/spans.h"

#include <stdlib.h>

bool spans_create(spans *self, uint64_t begin_bytes)
{
    *self = (spans){.at = NULL};
    if (!spans_grow(self, 1))
        return false;
    self->at[0].offset_bytes = begin_bytes;
    return true;
}

void spans_destroy(spans *self)
{
    free(self->at);
}

enum { MADE_READY = 64 }; /* numbers at a time, so that no call has to prepare a whole sixteenth */

/* Grows by a sixteenth rather than by half: 32 bytes a span then stay below 34 in all, and the
 * copying still averages out (large arrays are remapped rather than copied). */
static bool make_room(spans *self, uint64_t least)
{
    if (least <= self->room)
        return true;
    const uint64_t wanted = least + least / 16 + 16;
    if (wanted > SPAN_UNUSED)
        return false;
    span *at = realloc(self->at, wanted * sizeof *at);
    if (at == NULL)
        return false;
    self->at = at;
    self->room = (uint32_t)wanted;
    return true;
}

bool spans_grow(spans *self, uint32_t unused_count)
{
    const uint64_t least = (uint64_t)self->capacity + unused_count - self->unused_count;
    if (!make_room(self, least))
        return false;
    if (self->capacity == 0) {
        self->at[0] = (span){.state = SPAN_LIVE};
        self->capacity = 1;
    }
    const uint32_t ready =
        self->room - least < MADE_READY ? self->room : (uint32_t)least + MADE_READY;
    for (uint32_t number = ready; number-- > self->capacity;) {
        self->at[number] = (span){.left = self->unused, .right = SPAN_UNUSED};
        self->unused = number;
    }
    self->unused_count += ready - self->capacity;
    self->capacity = ready;
    return true;
}

uint32_t spans_append(spans *self, uint64_t size_bytes)
{
    const uint32_t last = self->at[0].before;
    const uint32_t number = self->unused;
    span *it = &self->at[number];
    self->unused = it->left;
    self->unused_count--;
    *it = (span){.offset_bytes = span_end(&self->at[last]),
                 .size_bytes = size_bytes,
                 .before = last,
                 .after = 0};
    self->at[last].after = number;
    self->at[0].before = number;
    return number;
}

static void show_padding(uint64_t from_bytes, uint64_t to_bytes, vram_visit *visit, void *context)
{
    if (from_bytes < to_bytes)
        visit(context, &(vram_span){.offset_bytes = from_bytes,
                                    .size_bytes = to_bytes - from_bytes,
                                    .block_bytes = to_bytes - from_bytes,
                                    .kind = VRAM_SPAN_PADDING});
}

void spans_walk(const spans *self, uint64_t arena_bytes, vram_visit *visit, void *context)
{
    show_padding(0, self->at[0].offset_bytes, visit, context);
    for (uint32_t number = self->at[0].after; number != 0; number = self->at[number].after) {
        const span *it = &self->at[number];
        const bool live = span_is_live(it);
        visit(context, &(vram_span){.offset_bytes = it->offset_bytes,
                                    .size_bytes = it->size_bytes,
                                    .block_bytes = it->size_bytes,
                                    .handle = live ? (uint64_t)it->generation << 32 | number : 0,
                                    .kind = live ? VRAM_SPAN_LIVE : VRAM_SPAN_FREE});
    }
    show_padding(span_end(&self->at[self->at[0].before]), arena_bytes, visit, context);
}

/* I3: the list of unused numbers has the length it should have and ends. */
static bool unused_list_is_whole(const spans *self)
{
    uint32_t number = self->unused;
    for (uint32_t steps = 0; steps < self->unused_count; steps++) {
        if (number == 0 || number >= self->capacity || self->at[number].right != SPAN_UNUSED)
            return false;
        number = self->at[number].left;
    }
    return number == 0;
}

bool spans_check(const spans *self, uint64_t end_bytes, uint64_t unit_bytes, spans_free *found,
                 vram_fault *fault)
{
    *found = (spans_free){0};
    uint64_t reached_bytes = self->at[0].offset_bytes;
    uint64_t granted_bytes = 0;
    uint64_t live_blocks = 0;
    uint32_t count = 0;
    uint32_t before = 0;
    for (uint32_t number = self->at[0].after; number != 0; number = self->at[number].after) {
        if (number >= self->capacity || ++count >= self->capacity)
            return vram_fault_at(fault, "I1 tiled", reached_bytes);
        const span *it = &self->at[number];
        if (it->before != before || it->offset_bytes != reached_bytes || it->size_bytes == 0 ||
            it->size_bytes > end_bytes - reached_bytes)
            return vram_fault_at(fault, "I1 tiled", reached_bytes);
        if (((it->offset_bytes | it->size_bytes) & (unit_bytes - 1)) != 0)
            return vram_fault_at(fault, "I2 whole units", reached_bytes);
        if (it->right == SPAN_UNUSED)
            return vram_fault_at(fault, "I3 numbered", reached_bytes);
        const bool live = span_is_live(it);
        live_blocks += live;
        granted_bytes += live ? it->size_bytes : 0;
        found->count += !live;
        found->bytes += live ? 0 : it->size_bytes;
        reached_bytes += it->size_bytes;
        before = number;
    }
    if (reached_bytes != end_bytes || self->at[0].before != before)
        return vram_fault_at(fault, "I1 tiled", reached_bytes);
    if (count != spans_count(self) || !unused_list_is_whole(self))
        return vram_fault_at(fault, "I3 numbered", 0);
    if (granted_bytes != self->granted_bytes || live_blocks != self->live_blocks)
        return vram_fault_at(fault, "I4 counted", 0);
    return true;
}

void spans_stats(const spans *self, uint64_t arena_bytes, uint64_t end_bytes, vram_stats *out)
{
    const uint64_t spanned_bytes = end_bytes - self->at[0].offset_bytes;
    *out = (vram_stats){.granted_bytes = self->granted_bytes,
                        .free_bytes = spanned_bytes - self->granted_bytes,
                        .padding_bytes = arena_bytes - spanned_bytes,
                        .live_blocks = self->live_blocks,
                        .spans = spans_count(self),
                        .bookkeeping_bytes = self->room * sizeof *self->at};
}
