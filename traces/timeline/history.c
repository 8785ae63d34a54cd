/*
 * history.c - moves sorted by block, so that the last one at or before a moment is found by
 * halving.
 */
#include <vramlab/history.h>

#include <stdlib.h>
#include <string.h>

static int by_block(const void *a, const void *b)
{
    const vram_moved *const left = a;
    const vram_moved *const right = b;
    if (left->block != right->block)
        return left->block < right->block ? -1 : 1;
    return (left->op > right->op) - (left->op < right->op);
}

static bool note(vram_history *self, size_t *capacity, uint32_t index)
{
    const vram_op *const op = &self->timeline->ops[index];
    if (op->kind == VRAM_OP_MOVE) {
        if (!vram_reserve((void **)&self->moves, capacity, self->move_count + 1,
                          sizeof *self->moves))
            return false;
        self->moves[self->move_count++] = (vram_moved){op->block, index};
    }
    if (op->kind == VRAM_OP_RETIRE) {
        const size_t bytes = self->timeline->life_count * sizeof *self->retired_at;
        if (self->retired_at == NULL) {
            self->retired_at = malloc(bytes);
            if (self->retired_at == NULL)
                return false;
            memset(self->retired_at, 0xff, bytes);
        }
        self->retired_at[op->block] = index;
    }
    return true;
}

bool vram_history_make(const vram_timeline *timeline, vram_history *history, vram_error *error)
{
    size_t capacity = 0;
    *history = (vram_history){.timeline = timeline};
    for (uint32_t i = 0; i < timeline->op_count; i++)
        if (!note(history, &capacity, i)) {
            vram_history_free(history);
            return vram_fail(error, "the host is out of memory for the blocks' history");
        }
    if (history->move_count > 0)
        qsort(history->moves, history->move_count, sizeof *history->moves, by_block);
    return true;
}

void vram_history_free(vram_history *history)
{
    free(history->moves);
    free(history->retired_at);
    *history = (vram_history){0};
}

uint64_t vram_history_offset(const vram_history *history, uint32_t block, uint32_t op)
{
    const vram_timeline *const timeline = history->timeline;
    size_t low = 0; /* moves before it are of earlier blocks, or of this one until then */
    size_t high = history->move_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const vram_moved *const moved = &history->moves[middle];
        if (moved->block < block || (moved->block == block && moved->op <= op))
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0 && history->moves[low - 1].block == block)
        return timeline->ops[history->moves[low - 1].op].offset_bytes;
    return timeline->ops[timeline->lives[block].birth].offset_bytes;
}

bool vram_history_retired(const vram_history *history, uint32_t block, uint32_t op)
{
    return history->retired_at != NULL && history->retired_at[block] <= op;
}
