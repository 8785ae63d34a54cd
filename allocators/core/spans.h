/*
 * spans.h - the arena cut into spans, each knowing its neighbours; shared by the backends that
 * split and merge.
 *
 *     0        1        7        3        4        0         numbers of spans; 0 is the arena's end
 *     ... ---> |########|........|######|..| ---> ...        '#' live   '.' free
 *              before <- [ offset, size ] -> after
 *
 * A span is a record of 32 bytes in one growable array and is named by its number, so that the
 * array may move. A live span holds the generation that its handle must show; a free one lends the
 * same two words to the index of the backend that owns it (a tree, a list of a bin). Number 0 is
 * never handed out: it stands before the first and after the last span and counts as live, so that
 * merging needs no test for the ends. Its offset is where the first span begins.
 *
 * I1  following `after` from 0 meets spans that tile the arena, and `before` mirrors it.
 * I2  every size and offset is a multiple of the unit.
 * I3  numbers in that chain and numbers in the list of unused ones are all there are.
 * I4  the counters equal the sums over the chain.
 */
#ifndef VRAMLAB_SPANS_H
#define VRAMLAB_SPANS_H

#include "core/core.h"

/* `right` of a free span is a number below SPAN_UNUSED; of an unused one SPAN_UNUSED; of a live one
 * SPAN_LIVE + log2 of the alignment it was asked for when that is above the unit. */
#define SPAN_UNUSED UINT32_C(0xfffffe00)
#define SPAN_LIVE   UINT32_C(0xffffff00)

typedef struct span {
    uint64_t offset_bytes;
    uint64_t size_bytes;
    uint32_t before; /* neighbours in address order */
    uint32_t after;
    union {
        struct { /* free: links of the backend's index; unused: left is the next unused one */
            uint32_t left;
            uint32_t right;
        };
        struct { /* live */
            uint32_t generation;
            uint32_t state;
        };
    };
} span;
_Static_assert(sizeof(span) == 32, "two spans a cache line");

typedef struct spans {
    span *at;
    uint64_t granted_bytes;
    uint32_t room;         /* records that `at` has memory for */
    uint32_t capacity;     /* numbers that have been made ready, 0 included */
    uint32_t unused;       /* head of the list of unused numbers */
    uint32_t unused_count; /* its length */
    uint32_t generation;   /* of the block handed out last */
    uint64_t live_blocks;
} spans;

/* An empty table, to be laid out with spans_append from begin_bytes on; what lies below is never
 * handed out. False: out of host memory. */
bool spans_create(spans *self, uint64_t begin_bytes);
void spans_destroy(spans *self);

/* Adds a free span behind the last one (the index is the caller's to set); the table must have
 * room. */
uint32_t spans_append(spans *self, uint64_t size_bytes);

bool spans_grow(spans *self, uint32_t unused_count);

/* Makes sure that `unused_count` spans can be split off. Numbers stay, addresses do not. */
static inline bool spans_reserve(spans *self, uint32_t unused_count)
{
    return self->unused_count >= unused_count || spans_grow(self, unused_count);
}

/* Spans in the chain. */
static inline uint32_t spans_count(const spans *self)
{
    return self->capacity - 1 - self->unused_count;
}

static inline bool span_is_live(const span *self)
{
    return self->state >= SPAN_LIVE;
}

static inline bool span_is_free(const span *self)
{
    return self->right < SPAN_UNUSED;
}

static inline uint64_t span_end(const span *self)
{
    return self->offset_bytes + self->size_bytes;
}

/* Where in a free span a block may lie: bytes skipped at its front for the alignment. */
static inline uint64_t span_gap(const span *self, uint64_t align_bytes)
{
    return vram_round_up(self->offset_bytes, align_bytes) - self->offset_bytes;
}

/* True when a free span holds such a block. The span may be too small for its own gap. */
static inline bool span_fits(const span *self, uint64_t size_bytes, uint64_t align_bytes)
{
    const uint64_t gap_bytes = span_gap(self, align_bytes);
    return gap_bytes <= self->size_bytes && size_bytes <= self->size_bytes - gap_bytes;
}

/* Cuts a span in two; the front keeps its number. Returns the back's, whose index is unset. */
static inline uint32_t spans_split(spans *self, uint32_t front, uint64_t front_bytes)
{
    const uint32_t back = self->unused;
    span *f = &self->at[front];
    span *b = &self->at[back];
    self->unused = b->left;
    self->unused_count--;
    b->offset_bytes = f->offset_bytes + front_bytes;
    b->size_bytes = f->size_bytes - front_bytes;
    b->before = front;
    b->after = f->after;
    self->at[f->after].before = back;
    f->after = back;
    f->size_bytes = front_bytes;
    return back;
}

/* Gives a number back that no span has any more. */
static inline void spans_recycle(spans *self, uint32_t number)
{
    self->at[number].left = self->unused;
    self->at[number].right = SPAN_UNUSED;
    self->unused = number;
    self->unused_count++;
}

/* Takes a span out of the chain; its bytes must have gone to a neighbour. */
static inline void spans_unlink(spans *self, uint32_t number)
{
    const span *it = &self->at[number];
    self->at[it->before].after = it->after;
    self->at[it->after].before = it->before;
    spans_recycle(self, number);
}

/* Lets a span swallow the one behind it, whose number becomes unused. */
static inline void spans_join(spans *self, uint32_t front, uint32_t back)
{
    span *f = &self->at[front];
    const span *b = &self->at[back];
    f->size_bytes += b->size_bytes;
    f->after = b->after;
    self->at[b->after].before = front;
    spans_recycle(self, back);
}

/* Declares a span live, under a generation never used before, and describes it to the caller. */
static inline vram_block spans_publish(spans *self, uint32_t number, uint64_t align_bytes,
                                       uint64_t unit_bytes)
{
    span *it = &self->at[number];
    if (++self->generation == 0) /* a generation is never 0 */
        self->generation = 1;
    it->generation = self->generation;
    it->state = SPAN_LIVE + (align_bytes > unit_bytes ? (uint32_t)__builtin_ctzll(align_bytes) : 0);
    self->granted_bytes += it->size_bytes;
    self->live_blocks++;
    return (vram_block){.offset_bytes = it->offset_bytes,
                        .granted_bytes = it->size_bytes,
                        .handle = (uint64_t)it->generation << 32 | number};
}

/* What a live span must be aligned to: what was asked for, or the unit. */
static inline uint64_t span_alignment(const span *self, uint64_t unit_bytes)
{
    return self->state == SPAN_LIVE ? unit_bytes : UINT64_C(1) << (self->state - SPAN_LIVE);
}

/* The live span of a block, or 0 when the block is stale or was never given out here. */
static inline uint32_t spans_find(const spans *self, const vram_block *block)
{
    const uint32_t number = (uint32_t)block->handle;
    if (number >= self->capacity)
        return 0;
    const span *it = &self->at[number];
    return span_is_live(it) && it->generation == block->handle >> 32 &&
                   it->offset_bytes == block->offset_bytes
               ? number
               : 0;
}

/* Takes a live span out of the counters; the caller then makes it free. */
static inline void spans_retire(spans *self, uint32_t number)
{
    self->granted_bytes -= self->at[number].size_bytes;
    self->live_blocks--;
}

/* Every span in address order; what the arena has before and behind them is padding. */
void spans_walk(const spans *self, uint64_t arena_bytes, vram_visit *visit, void *context);

/* What one walk along the chain finds free; the backend compares it with a walk of its own. */
typedef struct spans_free {
    uint64_t count;
    uint64_t bytes;
} spans_free;

/* Tests I1 to I4 for spans that should end at end_bytes. */
bool spans_check(const spans *self, uint64_t end_bytes, uint64_t unit_bytes, spans_free *found,
                 vram_fault *fault);

/* Fills in everything but bookkeeping_bytes beyond the table's own. */
void spans_stats(const spans *self, uint64_t arena_bytes, uint64_t end_bytes, vram_stats *out);

#endif
