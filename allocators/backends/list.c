/*
 * list.c - address-ordered spans, split on allocation and merged on release; four ways to choose.
 *
 *     0                                                             end  arena
 *     |####A####|....|####B####|..........|##C##|...................|xxx|      'x' less than a unit
 *               `--. `-------------.      `-----.
 *        first  [4] -> [10] -> [19]      a tree by address that knows its largest span
 *        best   bin 4: (4)   bin 10: (10)   bin 19: (19)      a tree by size in each bin of sizes
 *
 *   first   the lowest span that is large enough
 *   next    the same, from the end of the block placed last, and around
 *   best    the smallest span that is large enough, the lowest among equals
 *   worst   the largest span, the lowest among equals (first, when alignment rules those out)
 *
 * A block takes the front of its span. What is left over stays a span of its own, behind it and,
 * when an alignment above the unit moved the block up, before it.
 *
 * I1 to I4 are those of core/spans.h: tiled, whole units, numbered, counted.
 * I5  no two neighbours are both free.
 * I6  the trees list exactly the free spans, each in the bin of its size.
 * I7  each tree is in order, and a heap.
 * I8  by address, each span knows the largest one under it.
 *
 * alloc, release, resize: O(log spans) expected, more only while alignment rejects spans that are
 * large enough. check: O(spans). Host memory: 32 bytes a span, by address 36, and a sixteenth to
 * grow. Wilson et al. 1995; Knuth, TAOCP 2.5.
 */
#include "core/size_bins.h"
#include "core/span_moves.h"
#include "core/span_tree.h"

#include <stdlib.h>

typedef enum list_policy { LIST_FIRST, LIST_NEXT, LIST_BEST, LIST_WORST } list_policy;

typedef struct list {
    vram_backend head;
    spans spans;
    span_order order;
    list_policy policy;
    uint64_t end_bytes;   /* the arena in whole units */
    uint64_t rover_bytes; /* next: where the search begins */
    size_bins bins;       /* trees that are not empty */
    uint32_t first_bin;   /* best: the bin of one unit, to which tree 0 belongs */
    uint32_t tree_count;
    uint32_t roots[]; /* best: a tree for each bin; otherwise one */
} list;

enum { LIST_POLICY, LIST_UNIT };
static const vram_option list_options[] = {
    [LIST_POLICY] = {.name = "policy",
                     .type = VRAM_OPTION_CHOICE,
                     .fallback = "best",
                     .choices = "first|next|best|worst",
                     .help = "which of the free spans that are large enough is taken"},
    [LIST_UNIT] = VRAM_UNIT_OPTION,
    {.name = NULL},
};

/* The tree of a size, as an index into roots and bins. */
static uint32_t tree_of(const list *self, uint64_t size_bytes)
{
    return self->order.by_address ? 0 : size_bin_of(size_bytes) - self->first_bin;
}

/* Puts a span that is no longer live, or just came to be, among the free ones. */
static void list_free_span(void *backend, uint32_t number)
{
    list *self = backend;
    const uint32_t tree = tree_of(self, self->spans.at[number].size_bytes);
    span_tree_insert(&self->order, &self->roots[tree], number);
    size_bins_set(&self->bins, tree);
}

static void unlist_free_span(void *backend, uint32_t number)
{
    list *self = backend;
    const uint32_t tree = tree_of(self, self->spans.at[number].size_bytes);
    span_tree_remove(&self->order, &self->roots[tree], number);
    if (self->roots[tree] == 0)
        size_bins_clear(&self->bins, tree);
}

static span_index index_of(list *self)
{
    return (span_index){.spans = &self->spans,
                        .unit_bytes = self->head.unit_bytes,
                        .self = self,
                        .add = list_free_span,
                        .drop = unlist_free_span};
}

static void list_destroy(vram_backend *backend)
{
    list *self = (list *)backend;
    spans_destroy(&self->spans);
    free(self->order.largest);
    free(self);
}

static bool list_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    uint64_t unit_bytes = 0;
    if (!vram_unit_of(config, &config->values[LIST_UNIT], &unit_bytes, error))
        return false;
    const list_policy policy = (list_policy)config->values[LIST_POLICY].number;
    const uint32_t first_bin = size_bin_of(unit_bytes);
    const uint64_t end_bytes = config->arena_bytes & ~(unit_bytes - 1);
    const uint32_t tree_count =
        policy == LIST_BEST && end_bytes > 0 ? size_bin_of(end_bytes) - first_bin + 1 : 1;
    list *self = calloc(1, sizeof *self + tree_count * sizeof self->roots[0]);
    if (self == NULL)
        return vram_fail(error, "out of host memory");
    self->head.arena_bytes = config->arena_bytes;
    self->head.unit_bytes = unit_bytes;
    self->policy = policy;
    self->end_bytes = end_bytes;
    self->first_bin = first_bin;
    self->tree_count = tree_count;
    self->order = (span_order){.spans = &self->spans,
                               .by_address = policy != LIST_BEST,
                               .knows_largest = policy != LIST_BEST};
    if (!spans_create(&self->spans, 0) || !span_order_reserve(&self->order)) {
        list_destroy(&self->head);
        return vram_fail(error, "out of host memory");
    }
    if (end_bytes > 0)
        list_free_span(self, spans_append(&self->spans, end_bytes));
    *out = &self->head;
    return true;
}

static uint32_t choose_best(const list *self, uint64_t size_bytes, uint64_t align_bytes)
{
    uint32_t tree = size_bins_next(&self->bins, tree_of(self, size_bytes));
    while (tree < SIZE_BIN_NONE) {
        const uint32_t found =
            span_tree_smallest_fit(&self->order, self->roots[tree], size_bytes, align_bytes);
        if (found != 0)
            return found;
        tree = size_bins_next(&self->bins, tree + 1);
    }
    return 0;
}

/* The lowest span that ends above from_bytes and holds the block; only for policies by address. */
static uint32_t choose_lowest(const list *self, uint64_t from_bytes, uint64_t size_bytes,
                              uint64_t align_bytes)
{
    return span_tree_lowest_fit(&self->order, self->roots[0], from_bytes, size_bytes, align_bytes);
}

static uint32_t choose_next(const list *self, uint64_t size_bytes, uint64_t align_bytes)
{
    const uint32_t ahead = choose_lowest(self, self->rover_bytes, size_bytes, align_bytes);
    return ahead != 0 ? ahead : choose_lowest(self, 0, size_bytes, align_bytes);
}

static uint32_t choose_worst(const list *self, uint64_t size_bytes, uint64_t align_bytes)
{
    const uint32_t root = self->roots[0];
    const uint32_t largest = root != 0 ? self->order.largest[root] : 0;
    if (largest == 0 || span_fits(&self->spans.at[largest], size_bytes, align_bytes))
        return largest;
    return choose_lowest(self, 0, size_bytes, align_bytes);
}

static uint32_t choose(const list *self, uint64_t size_bytes, uint64_t align_bytes)
{
    switch (self->policy) {
    case LIST_FIRST:
        return choose_lowest(self, 0, size_bytes, align_bytes);
    case LIST_NEXT:
        return choose_next(self, size_bytes, align_bytes);
    case LIST_BEST:
        return choose_best(self, size_bytes, align_bytes);
    case LIST_WORST:
        return choose_worst(self, size_bytes, align_bytes);
    }
    return 0;
}

/* Cuts the block out of a free span and lists what is left of it. Returns the block's span. */
static uint32_t carve(list *self, uint32_t number, uint64_t size_bytes, uint64_t align_bytes)
{
    unlist_free_span(self, number);
    const uint64_t gap_bytes = span_gap(&self->spans.at[number], align_bytes);
    if (gap_bytes > 0) {
        const uint32_t aligned = spans_split(&self->spans, number, gap_bytes);
        list_free_span(self, number);
        number = aligned;
    }
    if (self->spans.at[number].size_bytes > size_bytes)
        list_free_span(self, spans_split(&self->spans, number, size_bytes));
    return number;
}

static bool reserve(list *self, uint32_t new_spans)
{
    return spans_reserve(&self->spans, new_spans) && span_order_reserve(&self->order);
}

static vram_result list_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    list *self = (list *)backend;
    const uint64_t unit_bytes = self->head.unit_bytes;
    const uint64_t size_bytes = vram_round_up(request->size_bytes, unit_bytes);
    const uint32_t found = choose(self, size_bytes, request->align_bytes);
    if (found == 0)
        return VRAM_NO_SPACE;
    if (!reserve(self, 2))
        return VRAM_NO_METADATA;
    const uint32_t number = carve(self, found, size_bytes, request->align_bytes);
    *out = spans_publish(&self->spans, number, request->align_bytes, unit_bytes);
    self->rover_bytes = out->offset_bytes + size_bytes;
    return VRAM_OK;
}

static vram_result list_release(vram_backend *backend, vram_block block)
{
    list *self = (list *)backend;
    const span_index index = index_of(self);
    const uint32_t number = spans_find(&self->spans, &block);
    if (number == 0)
        return VRAM_STALE_BLOCK;
    spans_retire(&self->spans, number);
    span_index_free(&index, number);
    if (self->spans.live_blocks == 0) /* an empty arena has no memory of what was in it */
        self->rover_bytes = 0;
    return VRAM_OK;
}

static vram_result list_resize(vram_backend *backend, vram_block *block, uint64_t size_bytes)
{
    list *self = (list *)backend;
    const span_index index = index_of(self);
    if (!reserve(self, 1))
        return VRAM_NO_METADATA;
    return span_index_resize(&index, block, vram_round_up(size_bytes, self->head.unit_bytes));
}

static size_t list_plan_moves(const vram_backend *backend, uint64_t budget_bytes, vram_move *moves,
                              size_t max_moves)
{
    const list *self = (const list *)backend;
    return spans_plan_moves(&self->spans, self->head.unit_bytes, budget_bytes, moves, max_moves);
}

static vram_result list_commit_move(vram_backend *backend, const vram_move *move, vram_block *block)
{
    list *self = (list *)backend;
    const span_index index = index_of(self);
    return reserve(self, 1) ? span_index_commit_move(&index, move, block) : VRAM_NO_METADATA;
}

static void list_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const list *self = (const list *)backend;
    spans_walk(&self->spans, self->head.arena_bytes, visit, context);
}

/* One tree, and the sizes that belong there. */
typedef struct list_tree {
    const list *self;
    uint32_t tree;
} list_tree;

static bool is_of_tree(const void *context, const span *it)
{
    const list_tree *of = context;
    return tree_of(of->self, it->size_bytes) == of->tree;
}

static bool list_check(const vram_backend *backend, vram_fault *fault)
{
    const list *self = (const list *)backend;
    spans_free tiled;
    spans_free listed = {0};
    if (!spans_check(&self->spans, self->end_bytes, self->head.unit_bytes, &tiled, fault) ||
        !spans_check_merged(&self->spans, fault))
        return false;
    for (uint32_t tree = 0; tree < self->tree_count; tree++) {
        if (size_bins_has(&self->bins, tree) != (self->roots[tree] != 0))
            return vram_fault_at(fault, "I6 listed", 0);
        if (!span_tree_check(&self->order, self->roots[tree], is_of_tree,
                             &(list_tree){.self = self, .tree = tree}, &listed, fault))
            return false;
    }
    if (listed.count != tiled.count || listed.bytes != tiled.bytes)
        return vram_fault_at(fault, "I6 listed", 0);
    return true;
}

static void list_stats(const vram_backend *backend, vram_stats *out)
{
    const list *self = (const list *)backend;
    spans_stats(&self->spans, self->head.arena_bytes, self->end_bytes, out);
    out->bookkeeping_bytes += sizeof *self + self->tree_count * sizeof self->roots[0] +
                              self->order.largest_capacity * sizeof self->order.largest[0];
}

const vram_ops vram_list_ops = {
    .abi = VRAM_ABI,
    .name = "list",
    .summary = "address-ordered spans, split and merged; first, next, best or worst fit",
    .options = list_options,
    .create = list_create,
    .destroy = list_destroy,
    .alloc = list_alloc,
    .release = list_release,
    .walk = list_walk,
    .check = list_check,
    .stats = list_stats,
    .resize = list_resize,
    .plan_moves = list_plan_moves,
    .commit_move = list_commit_move,
};
