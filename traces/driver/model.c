/*
 * model.c - the live intervals of an arena as a treap: ordered by offset, a heap by priority.
 *
 *            [4k,6k) 91                 '[from,end) priority'
 *           /          \
 *     [0,2k) 40      [8k,9k) 77
 *
 * Live intervals never overlap, so an interval can only collide with the last one that begins
 * before its end. Priorities are random, the depth is O(log live) on average, and no operation
 * needs rotations: insertion splits a subtree, removal merges two.
 */
#include "model.h"

#include <inttypes.h>
#include <stdlib.h>

enum { NIL = 0 };

typedef struct node {
    vram_block block;
    uint32_t left, right; /* right also chains the nodes that are not in use */
    uint32_t priority;
} node;

struct vram_model {
    uint64_t arena_bytes;
    uint64_t address_bytes; /* above arena_bytes: virtual addresses, gaps between spans */
    uint64_t granted_bytes;
    uint64_t live_blocks;
    node *nodes; /* nodes[NIL] is never in the tree */
    size_t capacity;
    uint32_t used; /* nodes ever handed out, NIL included */
    uint32_t root;
    uint32_t unused; /* first of the chain of nodes to use again */
    uint64_t random;
};

vram_model *vram_model_create(uint64_t arena_bytes, uint64_t address_bytes)
{
    vram_model *self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->arena_bytes = arena_bytes;
    self->address_bytes = address_bytes;
    self->used = 1;
    self->random = UINT64_C(0x9E3779B97F4A7C15);
    return self;
}

void vram_model_destroy(vram_model *self)
{
    if (self == NULL)
        return;
    free(self->nodes);
    free(self);
}

static uint32_t next_priority(vram_model *self)
{
    self->random ^= self->random << 13;
    self->random ^= self->random >> 7;
    self->random ^= self->random << 17;
    return (uint32_t)(self->random >> 32);
}

static uint32_t take_node(vram_model *self)
{
    if (self->unused != NIL) {
        const uint32_t taken = self->unused;
        self->unused = self->nodes[taken].right;
        return taken;
    }
    if (!vram_reserve((void **)&self->nodes, &self->capacity, (size_t)self->used + 1,
                      sizeof *self->nodes))
        return NIL;
    return self->used++;
}

static void split_at(vram_model *self, uint32_t root, uint64_t offset_bytes, uint32_t *below,
                     uint32_t *above)
{
    while (root != NIL) {
        node *at = &self->nodes[root];
        if (at->block.offset_bytes < offset_bytes) {
            *below = root;
            below = &at->right;
            root = at->right;
        } else {
            *above = root;
            above = &at->left;
            root = at->left;
        }
    }
    *below = NIL;
    *above = NIL;
}

static uint32_t merge(vram_model *self, uint32_t below, uint32_t above)
{
    uint32_t root = NIL;
    uint32_t *link = &root;
    while (below != NIL && above != NIL) {
        if (self->nodes[below].priority > self->nodes[above].priority) {
            *link = below;
            link = &self->nodes[below].right;
            below = *link;
        } else {
            *link = above;
            link = &self->nodes[above].left;
            above = *link;
        }
    }
    *link = below != NIL ? below : above;
    return root;
}

/* The last block that begins before this offset, or NIL. */
static uint32_t last_before(const vram_model *self, uint64_t offset_bytes)
{
    uint32_t found = NIL;
    for (uint32_t at = self->root; at != NIL;) {
        if (self->nodes[at].block.offset_bytes < offset_bytes) {
            found = at;
            at = self->nodes[at].right;
        } else {
            at = self->nodes[at].left;
        }
    }
    return found;
}

bool vram_model_find_overlap(const vram_model *self, uint64_t offset_bytes, uint64_t size_bytes,
                             vram_block *block)
{
    const uint32_t last = last_before(self, offset_bytes + size_bytes);
    if (last == NIL)
        return false;
    const vram_block *const found = &self->nodes[last].block;
    if (found->offset_bytes + found->granted_bytes <= offset_bytes)
        return false;
    *block = *found;
    return true;
}

static bool is_acceptable(const vram_model *self, const vram_request *request,
                          const vram_block *block, vram_error *error)
{
    const uint64_t from = block->offset_bytes;
    const uint64_t granted = block->granted_bytes;
    if (granted < request->size_bytes)
        return vram_fail(error,
                         "%" PRIu64 " bytes were asked for and %" PRIu64 " granted at %" PRIu64,
                         request->size_bytes, granted, from);
    if (from > self->address_bytes || granted > self->address_bytes - from)
        return vram_fail(error,
                         "the block of %" PRIu64 " bytes at %" PRIu64
                         " leaves the arena of %" PRIu64 " bytes",
                         granted, from, self->address_bytes);
    if (request->align_bytes != 0 && from % request->align_bytes != 0)
        return vram_fail(error,
                         "the block at %" PRIu64 " is not at a multiple of %" PRIu64
                         ", the alignment asked for",
                         from, request->align_bytes);
    if (block->handle >> 32 == 0)
        return vram_fail(error, "the handle of the block at %" PRIu64 " has generation 0", from);
    vram_block other;
    if (vram_model_find_overlap(self, from, granted, &other))
        return vram_fail(error,
                         "the block at [%" PRIu64 ", %" PRIu64
                         ") overlaps the live block at [%" PRIu64 ", %" PRIu64 ")",
                         from, from + granted, other.offset_bytes,
                         other.offset_bytes + other.granted_bytes);
    return true;
}

bool vram_model_add(vram_model *self, const vram_request *request, const vram_block *block,
                    vram_error *error)
{
    if (!is_acceptable(self, request, block, error))
        return false;
    const uint32_t added = take_node(self);
    if (added == NIL)
        return vram_fail(error, "the host is out of memory for the model's blocks");
    node *const nodes = self->nodes;
    nodes[added] = (node){.block = *block, .priority = next_priority(self)};
    uint32_t *link = &self->root;
    while (*link != NIL && nodes[*link].priority >= nodes[added].priority) {
        node *const at = &nodes[*link];
        link = at->block.offset_bytes < block->offset_bytes ? &at->right : &at->left;
    }
    split_at(self, *link, block->offset_bytes, &nodes[added].left, &nodes[added].right);
    *link = added;
    self->live_blocks++;
    self->granted_bytes += block->granted_bytes;
    return true;
}

/* Where the tree points at the block that begins here; points at NIL when there is none. */
static uint32_t *link_to(vram_model *self, uint64_t offset_bytes)
{
    uint32_t *link = &self->root;
    while (*link != NIL && self->nodes[*link].block.offset_bytes != offset_bytes) {
        node *const at = &self->nodes[*link];
        link = at->block.offset_bytes < offset_bytes ? &at->right : &at->left;
    }
    return link;
}

static bool same_block(const vram_block *one, const vram_block *other)
{
    return one->offset_bytes == other->offset_bytes && one->granted_bytes == other->granted_bytes &&
           one->handle == other->handle;
}

bool vram_model_remove(vram_model *self, const vram_block *block, vram_error *error)
{
    uint32_t *const link = link_to(self, block->offset_bytes);
    const uint32_t removed = *link;
    if (removed == NIL || !same_block(&self->nodes[removed].block, block))
        return vram_fail(
            error, "a block at %" PRIu64 " was released that is not live (handle %" PRIx64 ")",
            block->offset_bytes, block->handle);
    *link = merge(self, self->nodes[removed].left, self->nodes[removed].right);
    self->nodes[removed].right = self->unused;
    self->unused = removed;
    self->live_blocks--;
    self->granted_bytes -= block->granted_bytes;
    return true;
}

uint64_t vram_model_live_blocks(const vram_model *self)
{
    return self->live_blocks;
}

uint64_t vram_model_granted_bytes(const vram_model *self)
{
    return self->granted_bytes;
}

bool vram_stats_add_up(const vram_stats *stats, uint64_t arena_bytes)
{
    return stats->granted_bytes + stats->free_bytes + stats->bound_bytes + stats->pending_bytes +
               stats->reserve_bytes + stats->padding_bytes ==
           arena_bytes;
}

/* ---- the walk, compared span by span ---- */

typedef struct comparison {
    const vram_model *model;
    vram_error *error;
    bool agrees;
    uint64_t end_bytes; /* of the last span */
    uint64_t all_bytes; /* of all spans */
    uint64_t live_blocks;
    uint64_t kind_bytes[VRAM_SPAN_KINDS];
} comparison;

static bool span_is_sound(const comparison *self, const vram_span *span)
{
    const uint64_t from = span->offset_bytes;
    const bool may_have_gaps = self->model->address_bytes > self->model->arena_bytes;
    if (from != self->end_bytes && !(may_have_gaps && from > self->end_bytes))
        return vram_fail(self->error,
                         "the walk leaves the arena untiled: a span ends at %" PRIu64
                         " and the next begins at %" PRIu64,
                         self->end_bytes, from);
    if (span->size_bytes == 0 || from > self->model->address_bytes ||
        span->size_bytes > self->model->address_bytes - from)
        return vram_fail(
            self->error,
            "the walk has a %s span of %" PRIu64 " bytes at %" PRIu64 " in an arena of %" PRIu64,
            vram_span_kind_name(span->kind), span->size_bytes, from, self->model->address_bytes);
    const bool slots = span->kind == VRAM_SPAN_BOUND;
    if (span->block_bytes == 0 ||
        (slots ? span->size_bytes % span->block_bytes != 0 : span->block_bytes != span->size_bytes))
        return vram_fail(self->error,
                         "the %s span of %" PRIu64 " bytes at %" PRIu64
                         " says that its blocks have %" PRIu64 " bytes",
                         vram_span_kind_name(span->kind), span->size_bytes, from,
                         span->block_bytes);
    return true;
}

static bool span_is_known(const comparison *self, const vram_span *span)
{
    const uint32_t last = last_before(self->model, span->offset_bytes + 1);
    const vram_block walked = {
        .offset_bytes = span->offset_bytes,
        .granted_bytes = span->size_bytes,
        .handle = span->handle,
    };
    if (last != NIL && same_block(&self->model->nodes[last].block, &walked))
        return true;
    return vram_fail(self->error,
                     "the walk shows a live block at [%" PRIu64 ", %" PRIu64
                     ") with handle %" PRIx64 " that the model does not have",
                     walked.offset_bytes, walked.offset_bytes + walked.granted_bytes,
                     walked.handle);
}

static void compare_span(void *context, const vram_span *span)
{
    comparison *const self = context;
    if (!self->agrees)
        return;
    if (!span_is_sound(self, span) ||
        (span->kind == VRAM_SPAN_LIVE && !span_is_known(self, span))) {
        self->agrees = false;
        return;
    }
    self->end_bytes = span->offset_bytes + span->size_bytes;
    self->all_bytes += span->size_bytes;
    self->kind_bytes[span->kind] += span->size_bytes;
    self->live_blocks += span->kind == VRAM_SPAN_LIVE;
}

static bool same_bytes(const comparison *walked, const vram_stats *stats, vram_error *error)
{
    const uint64_t counted[VRAM_SPAN_KINDS] = {
        [VRAM_SPAN_LIVE] = stats->granted_bytes,    [VRAM_SPAN_FREE] = stats->free_bytes,
        [VRAM_SPAN_BOUND] = stats->bound_bytes,     [VRAM_SPAN_PENDING] = stats->pending_bytes,
        [VRAM_SPAN_RESERVE] = stats->reserve_bytes, [VRAM_SPAN_PADDING] = stats->padding_bytes,
    };
    for (uint32_t kind = 0; kind < VRAM_SPAN_KINDS; kind++)
        if (walked->kind_bytes[kind] != counted[kind])
            return vram_fail(error, "stats counts %" PRIu64 " %s bytes and the walk %" PRIu64,
                             counted[kind], vram_span_kind_name((vram_span_kind)kind),
                             walked->kind_bytes[kind]);
    return true;
}

bool vram_model_agrees(const vram_model *self, const vram_backend *backend, vram_error *error)
{
    comparison walked = {.model = self, .error = error, .agrees = true};
    vram_walk(backend, compare_span, &walked);
    if (!walked.agrees)
        return false;
    if (walked.all_bytes != self->arena_bytes)
        return vram_fail(error, "the walk shows %" PRIu64 " of %" PRIu64 " bytes", walked.all_bytes,
                         self->arena_bytes);
    if (walked.live_blocks != self->live_blocks)
        return vram_fail(error, "the walk shows %" PRIu64 " live blocks and the model has %" PRIu64,
                         walked.live_blocks, self->live_blocks);
    const vram_stats stats = vram_stats_of(backend);
    if (stats.live_blocks != self->live_blocks)
        return vram_fail(error, "stats counts %" PRIu64 " live blocks and the model %" PRIu64,
                         stats.live_blocks, self->live_blocks);
    return same_bytes(&walked, &stats, error);
}
