/*
 * span_moves.c - resizing in place, and compaction by sliding blocks down.
 */
#include "core/span_moves.h"

vram_result span_index_resize(const span_index *self, vram_block *block, uint64_t wanted_bytes)
{
    spans *table = self->spans;
    const uint32_t number = spans_find(table, block);
    if (number == 0)
        return VRAM_STALE_BLOCK;
    const uint64_t had_bytes = table->at[number].size_bytes;
    const uint32_t after = table->at[number].after;
    const bool after_is_free = span_is_free(&table->at[after]);
    if (wanted_bytes > had_bytes + (after_is_free ? table->at[after].size_bytes : 0))
        return VRAM_NO_SPACE;
    if (wanted_bytes != had_bytes && after_is_free) {
        self->drop(self->self, after);
        spans_join(table, number, after);
    }
    if (table->at[number].size_bytes > wanted_bytes)
        self->add(self->self, spans_split(table, number, wanted_bytes));
    table->granted_bytes += wanted_bytes - had_bytes;
    block->granted_bytes = wanted_bytes;
    return VRAM_OK;
}

/* A stretch of neighbours that begins and ends with a free span. */
typedef struct window {
    uint32_t first;      /* its first span, 0: none yet */
    uint32_t end;        /* the span behind its last */
    uint64_t free_bytes; /* in it */
    uint64_t live_bytes; /* to move */
    uint64_t live_blocks;
} window;

/* Makes a window begin at its next free span. `until` is where the search has got to. */
static void drop_first(const spans *self, window *at, uint32_t until)
{
    uint32_t number = at->first;
    at->free_bytes -= self->at[number].size_bytes;
    for (number = self->at[number].after; number != until && !span_is_free(&self->at[number]);
         number = self->at[number].after) {
        at->live_bytes -= self->at[number].size_bytes;
        at->live_blocks--;
    }
    at->first = number != until ? number : 0;
}

/* The window with most free bytes among those that can be moved. Each span enters once and leaves
 * once. */
static window best_window(const spans *self, uint64_t budget_bytes, size_t max_moves)
{
    window best = {0};
    window now = {0};
    for (uint32_t number = self->at[0].after; number != 0; number = self->at[number].after) {
        const span *it = &self->at[number];
        if (!span_is_free(it)) {
            now.live_bytes += now.first != 0 ? it->size_bytes : 0;
            now.live_blocks += now.first != 0;
            while (now.first != 0 && (now.live_bytes > budget_bytes || now.live_blocks > max_moves))
                drop_first(self, &now, it->after);
            continue;
        }
        now.first = now.first != 0 ? now.first : number;
        now.end = it->after;
        now.free_bytes += it->size_bytes;
        if (now.free_bytes > best.free_bytes)
            best = now;
    }
    return best;
}

size_t spans_plan_moves(const spans *self, uint64_t unit_bytes, uint64_t budget_bytes,
                        vram_move *moves, size_t max_moves)
{
    const window chosen = best_window(self, budget_bytes, max_moves);
    if (chosen.live_blocks == 0)
        return 0;
    size_t count = 0;
    uint64_t largest_before_bytes = 0;
    uint64_t reached_bytes = self->at[chosen.first].offset_bytes;
    uint64_t end_bytes = reached_bytes;
    for (uint32_t number = self->at[0].after; number != 0; number = self->at[number].after)
        if (span_is_free(&self->at[number]) && self->at[number].size_bytes > largest_before_bytes)
            largest_before_bytes = self->at[number].size_bytes;
    for (uint32_t number = chosen.first; number != chosen.end; number = self->at[number].after) {
        const span *it = &self->at[number];
        end_bytes = span_end(it);
        if (span_is_free(it))
            continue;
        const uint64_t to_bytes = vram_round_up(reached_bytes, span_alignment(it, unit_bytes));
        if (to_bytes < it->offset_bytes)
            moves[count++] = (vram_move){.handle = (uint64_t)it->generation << 32 | number,
                                         .from_bytes = it->offset_bytes,
                                         .to_bytes = to_bytes,
                                         .size_bytes = it->size_bytes};
        reached_bytes = to_bytes + it->size_bytes;
    }
    /* Gaps of alignment may have eaten the gain. */
    return end_bytes - reached_bytes > largest_before_bytes ? count : 0;
}

vram_result span_index_commit_move(const span_index *self, const vram_move *move, vram_block *block)
{
    spans *table = self->spans;
    const vram_block moved = {.offset_bytes = move->from_bytes, .handle = move->handle};
    const uint32_t number = spans_find(table, &moved);
    if (number == 0)
        return VRAM_STALE_BLOCK;
    span *it = &table->at[number];
    const uint32_t below = it->before;
    span *gap = &table->at[below];
    const uint64_t alignment_bytes = span_alignment(it, self->unit_bytes);
    if (!span_is_free(gap) || move->to_bytes < gap->offset_bytes ||
        move->to_bytes >= it->offset_bytes || (move->to_bytes & (alignment_bytes - 1)) != 0)
        return VRAM_NO_SPACE;
    const uint64_t size_bytes = it->size_bytes;
    const uint64_t left_bytes = move->to_bytes - gap->offset_bytes;
    self->drop(self->self, below);
    it->size_bytes += gap->size_bytes - left_bytes;
    it->offset_bytes = move->to_bytes;
    gap->size_bytes = left_bytes;
    const uint32_t behind = spans_split(table, number, size_bytes);
    if (left_bytes > 0)
        self->add(self->self, below);
    else
        spans_unlink(table, below);
    span_index_free(self, behind);
    *block = (vram_block){
        .offset_bytes = move->to_bytes, .granted_bytes = size_bytes, .handle = move->handle};
    return VRAM_OK;
}

bool spans_check_merged(const spans *self, vram_fault *fault)
{
    for (uint32_t number = self->at[0].after; number != 0; number = self->at[number].after)
        if (span_is_free(&self->at[number]) && span_is_free(&self->at[self->at[number].after]))
            return vram_fault_at(fault, "I5 merged", self->at[number].offset_bytes);
    return true;
}
