/*
 * compact.c - moves blocks together, as the backend plans it, so that free bytes become one span.
 *
 *   plan_moves -> for each move, in order: copy the bytes, commit_move, tell timeline and model
 *        ^                                                                  |
 *        +---- again, until nothing is planned or the budget is spent <-----+
 *
 * A backend knows its blocks by handle, the driver by slot of the trace; each plan is matched by a
 * sorted list of the handles that live. Moves only ever go down, so that a pass ends.
 */
#include "run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PLAN_MOVES = 1024 };

typedef struct owner {
    uint64_t handle;
    size_t slot;
} owner;

static int by_handle(const void *one, const void *other)
{
    const uint64_t a = ((const owner *)one)->handle;
    const uint64_t b = ((const owner *)other)->handle;
    return (a > b) - (a < b);
}

/* The blocks that live now, by handle; the caller frees them. */
static owner *collect_owners(const vram_run *self, size_t *count)
{
    owner *const owners = calloc(self->slot_count + 1, sizeof *owners);
    *count = 0;
    for (size_t slot = 0; owners != NULL && slot < self->slot_count; slot++)
        if (self->slots[slot].block.handle != 0)
            owners[(*count)++] = (owner){.handle = self->slots[slot].block.handle, .slot = slot};
    if (owners != NULL)
        qsort(owners, *count, sizeof *owners, by_handle);
    return owners;
}

static bool check_move(vram_run *self, const vram_move *move, const owner *found)
{
    if (found == NULL)
        return vram_run_fail(self, "it plans to move a block at %" PRIu64 " that does not live",
                             move->from_bytes);
    const vram_block *const block = &self->slots[found->slot].block;
    if (move->from_bytes != block->offset_bytes || move->size_bytes != block->granted_bytes)
        return vram_run_fail(self,
                             "it plans to move %" PRIu64 " bytes from %" PRIu64
                             "; the block has %" PRIu64 " at %" PRIu64,
                             move->size_bytes, move->from_bytes, block->granted_bytes,
                             block->offset_bytes);
    if (move->to_bytes >= move->from_bytes)
        return vram_run_fail(self,
                             "it plans to move the block at %" PRIu64 " up, to %" PRIu64
                             ": compaction only moves down",
                             move->from_bytes, move->to_bytes);
    return true;
}

static bool copy_bytes(vram_run *self, const vram_move *move)
{
    vram_error why = {0};
    if (self->bytes == NULL || self->bytes->ops->move(self->bytes, move->to_bytes, move->from_bytes,
                                                      move->size_bytes, &why))
        return true;
    return vram_run_fail(self, "%s", why.text);
}

static bool make_move(vram_run *self, const vram_event *event, const vram_move *move,
                      vram_slot *slot)
{
    const vram_slot before = *slot;
    if (!copy_bytes(self, move))
        return false;
    const vram_result outcome = self->backend->ops->commit_move(self->backend, move, &slot->block);
    if (outcome != VRAM_OK)
        return vram_run_fail(
            self, "the move that it planned from %" PRIu64 " to %" PRIu64 " was answered \"%s\"",
            move->from_bytes, move->to_bytes, vram_result_name(outcome));
    self->granted_bytes += slot->block.granted_bytes - before.block.granted_bytes;
    self->result->moves++;
    self->result->moved_bytes += move->size_bytes;
    self->last_ns = 0;
    if (self->record != NULL && !vram_record_about_block(self, event, slot, VRAM_OP_MOVE))
        return false;
    return self->model == NULL || vram_verify_move(self, &before, slot, move->to_bytes);
}

/* Makes the moves of one plan; false on an error. */
static bool make_moves(vram_run *self, const vram_event *event, const vram_move *moves,
                       size_t count)
{
    size_t owner_count;
    owner *const owners = collect_owners(self, &owner_count);
    if (owners == NULL)
        return vram_run_no_memory(self, "a compaction");
    bool sound = true;
    for (size_t index = 0; sound && index < count; index++) {
        const owner key = {.handle = moves[index].handle};
        const owner *const found = bsearch(&key, owners, owner_count, sizeof *owners, by_handle);
        sound = check_move(self, &moves[index], found) &&
                make_move(self, event, &moves[index], &self->slots[found->slot]);
    }
    free(owners);
    return sound;
}

bool vram_compact(vram_run *self, const vram_event *event)
{
    if (self->backend->ops->plan_moves == NULL || self->backend->ops->commit_move == NULL)
        return vram_run_fail(self, "it cannot be compacted: it plans no moves");
    const uint64_t budget_bytes = self->options->compact.budget_bytes;
    uint64_t left_bytes = budget_bytes != 0 ? budget_bytes : UINT64_MAX;
    self->result->compactions++;
    /* Bytes are copied only when the device stands still. */
    if (self->order != NULL && !vram_order_sync(self->order, self->event, VRAM_ALL_STREAMS))
        return vram_run_no_memory(self, "the order of streams");
    for (;;) {
        vram_move moves[PLAN_MOVES];
        const uint64_t moved_before_bytes = self->result->moved_bytes;
        const size_t count =
            self->backend->ops->plan_moves(self->backend, left_bytes, moves, PLAN_MOVES);
        if (count == 0)
            break;
        if (!make_moves(self, event, moves, count))
            return false;
        const uint64_t moved_bytes = self->result->moved_bytes - moved_before_bytes;
        if (moved_bytes > left_bytes)
            return vram_run_fail(
                self, "it planned moves of %" PRIu64 " bytes where %" PRIu64 " were allowed",
                moved_bytes, left_bytes);
        left_bytes -= moved_bytes;
    }
    return self->model == NULL || vram_verify_contents(self);
}

/* One word of the text: what is before the first comma, without it. */
static bool parse_word(const char *word, vram_compaction *compaction, vram_error *error)
{
    static const char every[] = "every=", budget[] = "budget=";
    if (strcmp(word, "failure") == 0)
        compaction->on_failure = true;
    else if (strncmp(word, every, sizeof every - 1) == 0)
        return vram_parse_count(word + sizeof every - 1, &compaction->every, error);
    else if (strncmp(word, budget, sizeof budget - 1) == 0)
        return vram_parse_size(word + sizeof budget - 1, 0, &compaction->budget_bytes, error);
    else
        return vram_fail(
            error,
            "'%s' says nothing of compaction: write every=10000, failure, budget=64MiB "
            "or several, with commas",
            word);
    return true;
}

bool vram_parse_compaction(const char *text, vram_compaction *compaction, vram_error *error)
{
    *compaction = (vram_compaction){0};
    for (bool more = true; more;) {
        char word[64];
        const size_t length = strcspn(text, ",");
        const size_t kept = length < sizeof word ? length : sizeof word - 1;
        memcpy(word, text, kept);
        word[kept] = '\0';
        if (!parse_word(word, compaction, error))
            return false;
        more = text[length] == ',';
        text += length + more;
    }
    if (compaction->every == 0 && !compaction->on_failure)
        return vram_fail(error, "compaction never happens: write every=10000 or failure");
    return true;
}
