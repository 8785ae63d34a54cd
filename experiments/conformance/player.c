/*
 * player.c - a script, act by act, on one instance of the backend.
 */
#include "conformance/player.h"

#include "conformance/host_memory.h"

#include <vramlab/registry.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { UPKEEP_MAX = 1000000, MOVES_MAX = 64 };

static uint32_t ids_of(const vram_script *script)
{
    uint32_t ids = 0;
    for (uint32_t i = 0; i < script->count; i++)
        if (script->acts[i].id >= ids)
            ids = script->acts[i].id + 1;
    return ids;
}

vram_opening player_open(vram_player *self, vram_stage *stage)
{
    *self = (vram_player){.stage = stage};
    const vram_script *script = &stage->script;
    const vram_config config = {.arena_bytes = script->arena_bytes,
                                .unit_bytes = script->unit_bytes};
    vram_error error = {""};
    stage->act = UINT32_MAX;
    stage_call(stage, "create");
    if (!vram_create_from_text(stage->spec, &config, &self->backend, &error)) {
        self->backend = NULL;
        snprintf(stage->refusal, sizeof stage->refusal, "%.255s", error.text);
        if (error.text[0] != '\0')
            return OPENING_REFUSED;
        stage_find(stage, "create", "an arena that cannot be had is refused with a message",
                   "create failed for %" PRIu64 " bytes and left no message", script->arena_bytes);
        return OPENING_BROKEN;
    }
    self->block_count = ids_of(script);
    self->blocks = calloc(self->block_count + 1, sizeof *self->blocks);
    self->model = vram_model_create(self->backend->arena_bytes, self->backend->address_bytes);
    if (self->blocks == NULL || self->model == NULL)
        abort(); /* the suite's own memory, not the backend's */
    return player_examine(self) ? OPENING_DONE : OPENING_BROKEN;
}

void player_close(vram_player *self)
{
    stage_call(self->stage, "destroy");
    vram_destroy(self->backend);
    vram_model_destroy(self->model);
    free(self->blocks);
    *self = (vram_player){.stage = self->stage};
}

bool player_examine(vram_player *self)
{
    vram_fault fault = {.invariant = "nothing"};
    vram_error error = {""};
    stage_call(self->stage, "check");
    if (!vram_check(self->backend, &fault))
        return stage_find(self->stage, "check", "the backend's own invariants hold",
                          "its check reports \"%s\" at %" PRIu64, fault.invariant,
                          fault.offset_bytes);
    stage_call(self->stage, "walk");
    if (!vram_model_agrees(self->model, self->backend, &error))
        return stage_find(self->stage, "conservation",
                          "the walk tiles the arena, and it, the six parts of stats and the live "
                          "blocks agree",
                          "%.255s", error.text);
    return true;
}

/* ---- the acts ---- */

/* Around a call that is made without host memory when the player is starved. */
static void begin_call(vram_player *self, const char *call)
{
    stage_call(self->stage, call);
    if (self->starved)
        host_memory_fail_from(0);
}

static void end_call(vram_player *self)
{
    if (self->starved)
        host_memory_restore();
}

/* The answer was VRAM_NO_METADATA: nothing has changed, and with memory it is another. */
static bool ask_again(vram_player *self, const vram_request *request, vram_player_block *block)
{
    const vram_block before = block->block;
    if (!player_examine(self))
        return false;
    stage_call(self->stage, "alloc");
    block->result = vram_alloc(self->backend, *request, &block->block);
    if (block->result == VRAM_NO_METADATA)
        return stage_find(self->stage, "metadata",
                          "with host memory to be had again, an allocation is served",
                          "the answer is still \"no metadata\"");
    return answer_to_alloc(self, request, block->result, &block->block, &before);
}

static bool play_alloc(vram_player *self, const vram_act *played)
{
    const vram_request request = {.size_bytes = played->size_bytes,
                                  .align_bytes = played->align_bytes,
                                  .stream = played->stream};
    const vram_block before = {.offset_bytes = 0x5a5a5a5a5a5a5a5a, .handle = played->id};
    vram_player_block *block = &self->blocks[played->id];
    block->block = before;
    begin_call(self, "alloc");
    block->result = vram_alloc(self->backend, request, &block->block);
    end_call(self);
    if (!answer_to_alloc(self, &request, block->result, &block->block, &before) ||
        (block->result == VRAM_NO_METADATA && !ask_again(self, &request, block)))
        return false;
    self->stage->served += block->result == VRAM_OK;
    block->align_bytes = request.align_bytes;
    block->state = block->result == VRAM_OK ? BLOCK_LIVE : BLOCK_NONE;
    return true;
}

static bool release_block(vram_player *self, const vram_player_block *block)
{
    begin_call(self, "release");
    vram_result result = vram_release(self->backend, block->block);
    end_call(self);
    if (result == VRAM_NO_METADATA && self->starved) { /* nothing has changed */
        if (!player_examine(self))
            return false;
        stage_call(self->stage, "release");
        result = vram_release(self->backend, block->block);
    }
    return answer_to_release(self, block, result);
}

static bool play_release(vram_player *self, vram_player_block *block)
{
    if (block->state == BLOCK_NONE)
        return true;
    if (!release_block(self, block))
        return false;
    block->state = BLOCK_GONE;
    return true;
}

static bool play_forge(vram_player *self, const vram_act *played, const vram_player_block *block)
{
    vram_player_block forged = *block;
    forged.state = BLOCK_NONE;
    switch ((vram_forgery)played->variant) {
    case FORGE_NULL:
        forged.block = (vram_block){0};
        break;
    case FORGE_SLOT:
        forged.block.handle |= UINT32_MAX;
        break;
    case FORGE_GENERATION:
        forged.block.handle += UINT64_C(1) << 32;
        break;
    case FORGE_OFFSET:
        forged.block.offset_bytes += self->backend->unit_bytes;
        break;
    case FORGERIES:
        return true;
    }
    if (block->state != BLOCK_LIVE && played->variant != FORGE_NULL)
        return true;
    return release_block(self, &forged);
}

static bool play_resize(vram_player *self, const vram_act *played, vram_player_block *block)
{
    if (block->state == BLOCK_NONE || self->backend->ops->resize == NULL)
        return true;
    const vram_block before = block->block;
    begin_call(self, "resize");
    const vram_result result = vram_resize(self->backend, &block->block, played->size_bytes);
    end_call(self);
    if (block->state == BLOCK_GONE)
        return result == VRAM_STALE_BLOCK || result == VRAM_UNSUPPORTED ||
               result == VRAM_NO_SPACE ||
               stage_find(self->stage, "stale", "a released block cannot be resized",
                          "the answer was \"%s\"", vram_result_name(result));
    return answer_to_resize(self, &before, &block->block, played->size_bytes, result);
}

static bool play_use(vram_player *self, const vram_act *played, const vram_player_block *block)
{
    if (block->state != BLOCK_LIVE || self->backend->ops->use == NULL)
        return true;
    stage_call(self->stage, "use");
    const vram_result result = self->backend->ops->use(self->backend, block->block, played->stream);
    return result == VRAM_OK || result == VRAM_UNSUPPORTED ||
           stage_find(self->stage, "use", "a live block may be used by any stream",
                      "the answer was \"%s\"", vram_result_name(result));
}

static bool play_maintain(vram_player *self)
{
    if (self->backend->ops->maintain == NULL)
        return true;
    for (uint32_t step = 0; step < UPKEEP_MAX; step++) {
        stage_call(self->stage, "maintain");
        if (!self->backend->ops->maintain(self->backend))
            return true;
    }
    return stage_find(self->stage, "upkeep", "upkeep comes to an end",
                      "after %d steps there is still more to do", UPKEEP_MAX);
}

/* ---- compaction ---- */

static vram_player_block *find_handle(vram_player *self, uint64_t handle)
{
    for (uint32_t id = 0; id < self->block_count; id++)
        if (self->blocks[id].state == BLOCK_LIVE && self->blocks[id].block.handle == handle)
            return &self->blocks[id];
    return NULL;
}

static bool make_move(vram_player *self, const vram_move *move)
{
    vram_player_block *block = find_handle(self, move->handle);
    if (block == NULL || block->block.offset_bytes != move->from_bytes ||
        move->to_bytes >= move->from_bytes || move->size_bytes > block->block.granted_bytes)
        return stage_find(self->stage, "compaction",
                          "a move takes a live block from where it is to a lower offset",
                          "%" PRIu64 " bytes are to move from %" PRIu64 " to %" PRIu64
                          " (handle %" PRIx64 ")",
                          move->size_bytes, move->from_bytes, move->to_bytes, move->handle);
    const vram_block before = block->block;
    stage_call(self->stage, "commit_move");
    const vram_result result = self->backend->ops->commit_move(self->backend, move, &block->block);
    if (result != VRAM_OK || block->block.offset_bytes != move->to_bytes)
        return stage_find(self->stage, "compaction", "a planned move can be made",
                          "the move from %" PRIu64 " to %" PRIu64
                          " was answered \"%s\", the block is at %" PRIu64,
                          move->from_bytes, move->to_bytes, vram_result_name(result),
                          block->block.offset_bytes);
    return answer_replaces(self, &before, &block->block, move->size_bytes, block->align_bytes) &&
           player_examine(self);
}

static bool play_compact(vram_player *self, uint64_t budget_bytes)
{
    if (self->backend->ops->plan_moves == NULL || self->backend->ops->commit_move == NULL)
        return true;
    vram_move moves[MOVES_MAX];
    stage_call(self->stage, "plan_moves");
    const size_t count =
        self->backend->ops->plan_moves(self->backend, budget_bytes, moves, MOVES_MAX);
    uint64_t moved_bytes = 0;
    for (size_t i = 0; i < count && i < MOVES_MAX; i++)
        moved_bytes += moves[i].size_bytes;
    if (count > MOVES_MAX || moved_bytes > budget_bytes)
        return stage_find(self->stage, "compaction", "a plan keeps to its bounds",
                          "%zu moves of %" PRIu64 " bytes, with at most %d of %" PRIu64 " allowed",
                          count, moved_bytes, MOVES_MAX, budget_bytes);
    for (size_t i = 0; i < count; i++)
        if (!make_move(self, &moves[i]))
            return false;
    return true;
}

static bool dispatch(vram_player *self, const vram_act *played)
{
    const vram_ops *ops = self->backend->ops;
    vram_player_block *block = &self->blocks[played->id];
    switch ((vram_act_kind)played->kind) {
    case ACT_ALLOC:
        return play_alloc(self, played);
    case ACT_RELEASE:
        return play_release(self, block);
    case ACT_RESIZE:
        return play_resize(self, played, block);
    case ACT_FORGE:
        return play_forge(self, played, block);
    case ACT_USE:
        return play_use(self, played, block);
    case ACT_SYNC:
        stage_call(self->stage, "sync");
        if (ops->sync != NULL)
            ops->sync(self->backend, played->stream == ALL_STREAMS ? UINT32_MAX : played->stream);
        return true;
    case ACT_WAIT:
        stage_call(self->stage, "wait");
        if (ops->wait != NULL)
            ops->wait(self->backend, played->stream, (uint32_t)played->size_bytes);
        return true;
    case ACT_MAINTAIN:
        return play_maintain(self);
    case ACT_TRIM:
        stage_call(self->stage, "trim");
        if (ops->trim != NULL)
            ops->trim(self->backend);
        return true;
    case ACT_COMPACT:
        return play_compact(self, played->size_bytes);
    }
    return true;
}

bool player_act(vram_player *self, const vram_act *played)
{
    self->stage->steps++;
    if (!dispatch(self, played))
        return false;
    if (++self->since_check < self->stage->check_every)
        return true;
    self->since_check = 0;
    return player_examine(self);
}

bool player_acts(vram_player *self, uint32_t from, uint32_t to)
{
    const vram_script *script = &self->stage->script;
    for (uint32_t i = from; i < to && i < script->count; i++) {
        self->stage->act = i;
        if (!player_act(self, &script->acts[i]))
            return false;
    }
    return true;
}

bool player_release_all(vram_player *self)
{
    self->stage->act = UINT32_MAX;
    for (uint32_t id = 0; id < self->block_count; id++)
        if (self->blocks[id].state == BLOCK_LIVE && !play_release(self, &self->blocks[id]))
            return false;
    return player_examine(self);
}

bool player_settle(vram_player *self)
{
    const vram_act trim = {.kind = ACT_TRIM};
    const vram_act sync = {.kind = ACT_SYNC, .stream = ALL_STREAMS};
    return player_act(self, &(vram_act){.kind = ACT_MAINTAIN}) && player_act(self, &trim) &&
           player_act(self, &sync) && /* for what a layer has just given to the one inside */
           player_act(self, &trim) && player_examine(self);
}
