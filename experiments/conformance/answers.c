/*
 * answers.c - what a call may answer, by the contract.
 */
#include "conformance/player.h"

#include <inttypes.h>
#include <string.h>

static bool same_block(const vram_block *one, const vram_block *other)
{
    return memcmp(one, other, sizeof *one) == 0;
}

/* ---- a block was served ---- */

static bool block_is_sound(vram_player *self, const vram_request *request, const vram_block *block)
{
    const uint64_t from = block->offset_bytes;
    const uint64_t granted = block->granted_bytes;
    const uint64_t end_bytes = self->backend->address_bytes;
    const uint64_t align_bytes =
        request->align_bytes != 0 ? request->align_bytes : self->backend->unit_bytes;
    if (granted < request->size_bytes)
        return stage_find(self->stage, "size", "a block has at least the bytes asked for",
                          "%" PRIu64 " bytes were asked for, %" PRIu64 " granted at %" PRIu64,
                          request->size_bytes, granted, from);
    if (from > end_bytes || granted > end_bytes - from)
        return stage_find(self->stage, "bounds", "a block lies within the arena",
                          "the block [%" PRIu64 ", %" PRIu64 ") leaves the arena of %" PRIu64
                          " bytes",
                          from, from + granted, end_bytes);
    if (from % align_bytes != 0)
        return stage_find(
            self->stage, "alignment", "a block begins at a multiple of the alignment asked for",
            "the block at %" PRIu64 " is not at a multiple of %" PRIu64, from, align_bytes);
    if (block->handle >> 32 == 0)
        return stage_find(self->stage, "handle", "the generation in a handle is never 0",
                          "the block at %" PRIu64 " has the handle %" PRIx64, from, block->handle);
    vram_block other;
    if (vram_model_find_overlap(self->model, from, granted, &other))
        return stage_find(self->stage, "overlap", "no byte belongs to two live blocks",
                          "the block [%" PRIu64 ", %" PRIu64 ") overlaps the live block [%" PRIu64
                          ", %" PRIu64 ")",
                          from, from + granted, other.offset_bytes,
                          other.offset_bytes + other.granted_bytes);
    return true;
}

static bool add_to_model(vram_player *self, const vram_request *request, const vram_block *block)
{
    vram_error error = {""};
    return vram_model_add(self->model, request, block, &error) ||
           stage_find(self->stage, "model", "a block that the model accepts", "%s", error.text);
}

static bool remove_from_model(vram_player *self, const vram_block *block)
{
    vram_error error = {""};
    return vram_model_remove(self->model, block, &error) ||
           stage_find(self->stage, "model", "a block that the model knows", "%s", error.text);
}

bool answer_replaces(vram_player *self, const vram_block *before, const vram_block *after,
                     uint64_t size_bytes, uint64_t align_bytes)
{
    const vram_request request = {.size_bytes = size_bytes, .align_bytes = align_bytes};
    return remove_from_model(self, before) && block_is_sound(self, &request, after) &&
           add_to_model(self, &request, after);
}

/* ---- there was no space ---- */

static uint64_t round_up(uint64_t bytes, uint64_t unit_bytes)
{
    return (bytes + unit_bytes - 1) & ~(unit_bytes - 1);
}

/* Looks for a free span into which the request would have fitted. */
typedef struct fit_search {
    uint64_t size_bytes;
    uint64_t align_bytes;
    bool found;
    vram_span span;
} fit_search;

static void search_fit(void *context, const vram_span *span)
{
    fit_search *self = context;
    if (self->found || span->kind != VRAM_SPAN_FREE)
        return;
    const uint64_t gap_bytes = round_up(span->offset_bytes, self->align_bytes) - span->offset_bytes;
    if (gap_bytes > span->size_bytes || self->size_bytes > span->size_bytes - gap_bytes)
        return;
    self->found = true;
    self->span = *span;
}

static uint64_t all_free(const vram_stats *stats)
{
    return stats->free_bytes + stats->bound_bytes + stats->pending_bytes + stats->reserve_bytes;
}

static bool reason_is_right(vram_player *self, const vram_request *request,
                            const vram_failure *failure)
{
    static const char explains[] = "explain gives the reason, and numbers that agree with stats";
    const vram_stats stats = vram_stats_of(self->backend);
    const uint64_t size_bytes = request->size_bytes;
    const bool enough = size_bytes <= failure->free_bytes;
    const char *name = vram_reason_name(failure->reason);
    if (failure->reason == VRAM_REASON_NONE || failure->reason >= VRAM_REASON_COUNT)
        return stage_find(self->stage, "explain", explains,
                          "a refused request of %" PRIu64 " bytes has the reason %d", size_bytes,
                          (int)failure->reason);
    if (failure->free_bytes != all_free(&stats))
        return stage_find(self->stage, "explain", explains,
                          "explain counts %" PRIu64 " free bytes, stats %" PRIu64,
                          failure->free_bytes, all_free(&stats));
    if (size_bytes > self->backend->arena_bytes && failure->reason != VRAM_REASON_OVERSIZE)
        return stage_find(self->stage, "explain", "more than the arena is oversize",
                          "%" PRIu64 " bytes were refused as \"%s\"", size_bytes, name);
    if (failure->reason == VRAM_REASON_BYTES && enough)
        return stage_find(self->stage, "explain",
                          "too few bytes: fewer are free in all than were asked for",
                          "%" PRIu64 " bytes were refused as \"%s\" with %" PRIu64 " free",
                          size_bytes, name, failure->free_bytes);
    if (failure->reason == VRAM_REASON_FRAGMENTED && !enough)
        return stage_find(self->stage, "explain", "fragmented: enough bytes are free in all",
                          "%" PRIu64 " bytes were refused as \"%s\" with %" PRIu64 " free",
                          size_bytes, name, failure->free_bytes);
    return true;
}

/* Fragmented is right only when it could not have been served. */
static bool largest_is_less(vram_player *self, const vram_request *request,
                            const vram_failure *failure)
{
    if (failure->reason != VRAM_REASON_FRAGMENTED ||
        request->align_bytes > self->backend->unit_bytes ||
        request->size_bytes > failure->largest_free_bytes)
        return true;
    return stage_find(
        self->stage, "explain", "fragmented: the request is larger than any that could be served",
        "%" PRIu64 " bytes were refused (%s), %" PRIu64
        " are said to be the largest that could be served",
        request->size_bytes, vram_reason_name(failure->reason), failure->largest_free_bytes);
}

static bool refusal_is_right(vram_player *self, const vram_request *request)
{
    const uint64_t unit_bytes = self->backend->unit_bytes;
    stage_call(self->stage, "explain");
    const vram_failure failure = vram_explain(self->backend, *request);
    if (!reason_is_right(self, request, &failure))
        return false;
    if (failure.reason != VRAM_REASON_BYTES && failure.reason != VRAM_REASON_FRAGMENTED)
        return true; /* free bytes are not what it lacked */
    fit_search search = {
        .size_bytes = round_up(request->size_bytes, unit_bytes),
        .align_bytes = request->align_bytes > unit_bytes ? request->align_bytes : unit_bytes,
    };
    stage_call(self->stage, "walk");
    vram_walk(self->backend, search_fit, &search);
    if (!search.found)
        return largest_is_less(self, request, &failure);
    return stage_find(self->stage, "refusal",
                      "a request that fits a free span of the walk is served",
                      "%" PRIu64 " bytes at a multiple of %" PRIu64
                      " were refused (%s) with [%" PRIu64 ", %" PRIu64 ") free",
                      request->size_bytes, search.align_bytes, vram_reason_name(failure.reason),
                      search.span.offset_bytes, search.span.offset_bytes + search.span.size_bytes);
}

/* ---- the answers ---- */

static bool is_bad(const vram_request *request)
{
    const uint64_t align_bytes = request->align_bytes;
    return request->size_bytes == 0 || align_bytes > VRAM_ALIGN_MAX ||
           (align_bytes & (align_bytes - 1)) != 0;
}

static bool wrong_result(vram_player *self, const char *expected, const vram_request *request,
                         vram_result result)
{
    return stage_find(self->stage, "answer", expected,
                      "a request of %" PRIu64 " bytes at a multiple of %" PRIu64
                      " was answered \"%s\"",
                      request->size_bytes, request->align_bytes, vram_result_name(result));
}

bool answer_to_alloc(vram_player *self, const vram_request *request, vram_result result,
                     const vram_block *out, const vram_block *before)
{
    if (result != VRAM_OK && !same_block(out, before))
        return stage_find(self->stage, "answer", "a refused request leaves *out as it was",
                          "the answer was \"%s\", and *out was written to",
                          vram_result_name(result));
    if (is_bad(request))
        return result == VRAM_BAD_REQUEST ||
               wrong_result(self, "zero bytes or a bad alignment is a bad request", request,
                            result);
    switch (result) {
    case VRAM_OK:
        return block_is_sound(self, request, out) && add_to_model(self, request, out);
    case VRAM_NO_SPACE:
        return refusal_is_right(self, request);
    case VRAM_NO_METADATA:
        return self->starved ||
               wrong_result(self, "no metadata: only when the host has no memory", request, result);
    case VRAM_BAD_REQUEST:
    case VRAM_STALE_BLOCK:
    case VRAM_UNSUPPORTED:
        break;
    }
    return wrong_result(self, "a sound request is served, or there is no space", request, result);
}

bool answer_to_release(vram_player *self, const vram_player_block *released, vram_result result)
{
    const vram_block *block = &released->block;
    if (released->state == BLOCK_LIVE) {
        if (result == VRAM_OK)
            return remove_from_model(self, block);
        return stage_find(self->stage, "release", "a live block can be released",
                          "the release of the live block at %" PRIu64 " was answered \"%s\"",
                          block->offset_bytes, vram_result_name(result));
    }
    if (result == VRAM_STALE_BLOCK)
        return true;
    return stage_find(self->stage, "stale",
                      "releasing a block that was released before, or never given out, is answered "
                      "\"stale block\"",
                      "the release of the block at %" PRIu64 " with handle %" PRIx64
                      " was answered \"%s\"",
                      block->offset_bytes, block->handle, vram_result_name(result));
}

bool answer_to_resize(vram_player *self, const vram_block *before, const vram_block *after,
                      uint64_t size_bytes, vram_result result)
{
    static const char in_place[] = "a resize is done in place, or leaves the block as it was";
    const bool may_fail = result == VRAM_NO_SPACE || result == VRAM_UNSUPPORTED ||
                          (result == VRAM_NO_METADATA && self->starved);
    if (result != VRAM_OK && !may_fail)
        return stage_find(self->stage, "resize", in_place,
                          "the resize of a live block to %" PRIu64 " bytes was answered \"%s\"",
                          size_bytes, vram_result_name(result));
    if (result != VRAM_OK ? !same_block(before, after)
                          : before->offset_bytes != after->offset_bytes)
        return stage_find(self->stage, "resize", in_place,
                          "the resize to %" PRIu64 " bytes was answered \"%s\", and the block at "
                          "%" PRIu64 " (%" PRIu64 " bytes) became one at %" PRIu64 " (%" PRIu64 ")",
                          size_bytes, vram_result_name(result), before->offset_bytes,
                          before->granted_bytes, after->offset_bytes, after->granted_bytes);
    return result != VRAM_OK || answer_replaces(self, before, after, size_bytes, 1);
}
