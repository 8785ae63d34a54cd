/*
 * span_moves.h - resizing in place and compaction, for backends that merge what is free (list,
 * tlsf).
 *
 *   before   |###A###|....|##B##|.........|####C####|......|##D##|
 *                    `-- window of one plan --------------'
 *   after    |###A###|##B##|####C####|....................|##D##|
 *
 * A plan slides the live blocks of one window down to the window's start, so that everything free
 * in it becomes one span; of all windows that the budget and the number of moves allow, it takes
 * the one that yields the largest span. Moves are made in the order of the plan, each into free
 * space.
 */
#ifndef VRAMLAB_SPAN_MOVES_H
#define VRAMLAB_SPAN_MOVES_H

#include "core/spans.h"

/* How a backend keeps its free spans. Both are told of spans whose size and place are right. */
typedef struct span_index {
    spans *spans;
    uint64_t unit_bytes;
    void *self;
    void (*add)(void *self, uint32_t number);  /* has become free */
    void (*drop)(void *self, uint32_t number); /* is free no longer, or about to change */
} span_index;

/* Frees a span that was live, after merging it with its free neighbours. Inline: every release
 * comes through here, and the index's two calls are then no calls. */
static inline void span_index_free(const span_index *self, uint32_t number)
{
    spans *table = self->spans;
    const uint32_t before = table->at[number].before;
    const uint32_t after = table->at[number].after;
    if (span_is_free(&table->at[after])) {
        self->drop(self->self, after);
        spans_join(table, number, after);
    }
    if (span_is_free(&table->at[before])) {
        self->drop(self->self, before);
        spans_join(table, before, number);
        number = before;
    }
    self->add(self->self, number);
}

/* vram_ops.resize to whole units. The table must have room for one more span. */
vram_result span_index_resize(const span_index *self, vram_block *block, uint64_t wanted_bytes);

/* vram_ops.plan_moves. O(spans). */
size_t spans_plan_moves(const spans *self, uint64_t unit_bytes, uint64_t budget_bytes,
                        vram_move *moves, size_t max_moves);

/* vram_ops.commit_move; VRAM_NO_SPACE when the space below the block is not free. The table must
 * have room for one more span. */
vram_result span_index_commit_move(const span_index *self, const vram_move *move,
                                   vram_block *block);

/* The invariant of all these backends: no two neighbours are both free. */
bool spans_check_merged(const spans *self, vram_fault *fault);

#endif
