/*
 * buddy.c - power-of-two blocks, each merged with its twin on release.
 *
 *   order 3 |                               |   |        '#' live   '.' free
 *   order 2 |...............|               |   |
 *   order 1 |               |#######|       |   |
 *   order 0 |               |       |###|...|...|        9 smallest blocks: roots of 8 and of 1
 *           0               4       6   7   8   9
 *
 * A block of order k holds min * 2^k bytes. An arena of any size is a row of roots, each the
 * largest power of two that fits what is left; roots of the largest order that lie side by side are
 * kept as one run, so that a terabyte of small roots costs one record until it is used. A block's
 * twin is always its neighbour in core/spans: no table of orders is needed, and the bookkeeping
 * grows with the blocks, not with the arena.
 *
 * Free blocks stand in lists by order and, within an order, by the power of two that divides their
 * offset: a block that is aligned more strictly than its size asks is found without a search, and
 * one that is aligned better than needed is spared. With place=low each list is a tree by address,
 * and of all free blocks of the least order that will do the lowest is taken.
 *
 * I1 to I4 are those of core/spans.h: tiled, whole units, numbered, counted.
 * I5  twins are never both free, and runs never touch.
 * I6  the lists hold exactly the free blocks, each by its order and alignment; the bits tell which
 *     lists are not empty.
 * I7  place=low: each tree is in order, and a heap.
 * I8  the counters of each order equal the blocks in its lists.
 * I9  a free block is a power of two and starts at a multiple of its size; a run is whole roots.
 * I10 a live block starts at a multiple of its size rounded up to a power of two.
 *
 * alloc, release: O(orders), with place=low O(orders * log blocks); an alignment above the largest
 * order searches the runs. check: O(blocks). Host memory: 32 bytes a block, and a sixteenth to
 * grow. Knuth, TAOCP 2.5; the roots, the trimmed tail and placement from the top as in Linux's
 * gpu_buddy.
 */
#include "backends/buddy.h"

#include <stdlib.h>

enum { BUDDY_MIN, BUDDY_MAX, BUDDY_TRIM, BUDDY_PLACE, BUDDY_TOP, BUDDY_FROM, BUDDY_TO };
static const vram_option buddy_options[] = {
    [BUDDY_MIN] = {.name = "min",
                   .type = VRAM_OPTION_SIZE,
                   .fallback = "trace",
                   .least = 1,
                   .most = UINT64_C(1) << 40,
                   .choices = "trace",
                   .help = "smallest block, a power of two; trace: the trace's own unit"},
    [BUDDY_MAX] = {.name = "max",
                   .type = VRAM_OPTION_SIZE,
                   .fallback = "arena",
                   .least = 1,
                   .most = VRAM_ARENA_MAX,
                   .choices = "arena",
                   .help = "largest block, a power of two; arena: as large as the arena allows"},
    [BUDDY_TRIM] = {.name = "trim",
                    .type = VRAM_OPTION_FLAG,
                    .fallback = "off",
                    .help = "give the rounded tail of a block back at once"},
    [BUDDY_PLACE] = {.name = "place",
                     .type = VRAM_OPTION_CHOICE,
                     .fallback = "recent",
                     .choices = "recent|low",
                     .help = "which free block of the least order is taken: freed last, or lowest"},
    [BUDDY_TOP] = {.name = "top",
                   .type = VRAM_OPTION_SIZE,
                   .fallback = "never",
                   .least = 1,
                   .most = VRAM_ARENA_MAX,
                   .choices = "never",
                   .help =
                       "requests of at least this size take the upper end of what is split and, "
                       "with place=low, the highest block"},
    [BUDDY_FROM] = {.name = "from",
                    .type = VRAM_OPTION_SIZE,
                    .fallback = "0",
                    .most = VRAM_ARENA_MAX,
                    .help = "nothing is placed below this offset"},
    [BUDDY_TO] = {.name = "to",
                  .type = VRAM_OPTION_SIZE,
                  .fallback = "100%",
                  .most = VRAM_ARENA_MAX,
                  .help = "nothing is placed at or above this offset"},
    {.name = NULL},
};

/* ---- lists of free blocks ---- */

static uint32_t *head_of(buddy *self, uint32_t order, uint32_t alignment)
{
    return &self->heads[order * self->alignments + alignment];
}

static void put_in_front(spans *table, uint32_t *head, uint32_t number)
{
    const uint32_t first = *head;
    table->at[number].left = 0;
    table->at[number].right = first;
    table->at[first].left = number; /* span 0 has no use for it */
    *head = number;
}

static void take_out(spans *table, uint32_t *head, uint32_t number)
{
    const uint32_t before = table->at[number].left;
    const uint32_t next = table->at[number].right;
    table->at[next].left = before;
    if (before != 0)
        table->at[before].right = next;
    else
        *head = next;
}

static void push_free(buddy *self, uint32_t number)
{
    const span *it = &self->spans.at[number];
    const uint32_t order = buddy_order_of(self, it->size_bytes);
    const uint32_t alignment = buddy_alignment_of(self, it->offset_bytes);
    uint32_t *head = head_of(self, order, alignment);
    if (self->by_address)
        span_tree_insert(&self->order, head, number);
    else
        put_in_front(&self->spans, head, number);
    self->by_order[order].lists |= UINT64_C(1) << alignment;
    self->by_order[order].free_blocks++;
    self->orders |= UINT64_C(1) << order;
    if (it->size_bytes > self->max_bytes)
        self->bound_bytes += it->size_bytes;
}

static void remove_free(buddy *self, uint32_t number)
{
    const span *it = &self->spans.at[number];
    const uint32_t order = buddy_order_of(self, it->size_bytes);
    const uint32_t alignment = buddy_alignment_of(self, it->offset_bytes);
    uint32_t *head = head_of(self, order, alignment);
    if (self->by_address)
        span_tree_remove(&self->order, head, number);
    else
        take_out(&self->spans, head, number);
    if (*head == 0)
        self->by_order[order].lists &= ~(UINT64_C(1) << alignment);
    if (--self->by_order[order].free_blocks == 0)
        self->orders &= ~(UINT64_C(1) << order);
    if (it->size_bytes > self->max_bytes)
        self->bound_bytes -= it->size_bytes;
}

/* ---- splitting and merging ---- */

/* Frees a span that is in no list: merges it with its twin as often as it can, then lists it. */
static void merge_and_free(buddy *self, uint32_t number)
{
    spans *table = &self->spans;
    uint64_t size_bytes = table->at[number].size_bytes;
    while (size_bytes < self->max_bytes) {
        const bool is_upper = (table->at[number].offset_bytes & size_bytes) != 0;
        const uint32_t twin = is_upper ? table->at[number].before : table->at[number].after;
        if (!span_is_free(&table->at[twin]) || table->at[twin].size_bytes != size_bytes)
            break;
        remove_free(self, twin);
        spans_join(table, is_upper ? twin : number, is_upper ? number : twin);
        number = is_upper ? twin : number;
        size_bytes *= 2;
    }
    if (size_bytes >= self->max_bytes) { /* a root: part of the run at either side */
        const uint32_t before = table->at[number].before;
        const uint32_t after = table->at[number].after;
        if (span_is_free(&table->at[after]) && table->at[after].size_bytes >= self->max_bytes) {
            remove_free(self, after);
            spans_join(table, number, after);
        }
        if (span_is_free(&table->at[before]) && table->at[before].size_bytes >= self->max_bytes) {
            remove_free(self, before);
            spans_join(table, before, number);
            number = before;
        }
    }
    push_free(self, number);
}

/* Cuts a span of any whole number of smallest blocks behind its first piece. Returns the rest, or 0
 * when it was one piece. There are at most two pieces an order, and a run. */
static uint32_t cut_piece(buddy *self, uint32_t number)
{
    const span *it = &self->spans.at[number];
    const uint64_t piece_bytes = buddy_first_piece(self, it);
    return piece_bytes == it->size_bytes ? 0 : spans_split(&self->spans, number, piece_bytes);
}

/* Lists the pieces of a span next to a block that was cut from it: none of them can merge. */
static void list_pieces(buddy *self, uint32_t number)
{
    for (uint32_t rest = 0; number != 0; number = rest) {
        rest = cut_piece(self, number);
        push_free(self, number);
    }
}

/* Frees a span that was live, piece by piece. */
static void free_pieces(buddy *self, uint32_t number)
{
    for (uint32_t rest = 0; number != 0; number = rest) {
        rest = cut_piece(self, number);
        merge_and_free(self, number);
    }
}

/* Records enough for the pieces before and behind a block. */
static bool reserve(buddy *self)
{
    return spans_reserve(&self->spans, 4 * (self->max_order + 1));
}

/* ---- life ---- */

static void buddy_destroy(vram_backend *backend)
{
    buddy *self = (buddy *)backend;
    spans_destroy(&self->spans);
    free(self);
}

/* What the options say, as far as it can be wrong. */
static bool read_options(const vram_config *config, buddy *self, vram_error *error)
{
    const vram_value *values = config->values;
    uint64_t min_bytes = 0;
    if (!values[BUDDY_MIN].word && !vram_is_power_of_two(values[BUDDY_MIN].number))
        return vram_fail(error, "buddy: min=%s is not a power of two", values[BUDDY_MIN].text);
    if (!vram_unit_of(config, &values[BUDDY_MIN], &min_bytes, error))
        return false;
    uint64_t max_bytes = values[BUDDY_MAX].word ? VRAM_ARENA_MAX : values[BUDDY_MAX].number;
    if (!vram_is_power_of_two(max_bytes) || max_bytes < min_bytes)
        return vram_fail(error, "buddy: max=%s is not a power of two of at least min (%llu)",
                         values[BUDDY_MAX].text, (unsigned long long)min_bytes);
    const uint64_t to_bytes = values[BUDDY_TO].number < config->arena_bytes
                                  ? values[BUDDY_TO].number
                                  : config->arena_bytes;
    if (values[BUDDY_FROM].number >= to_bytes)
        return vram_fail(error, "buddy: nothing lies between from=%s and to=%s in an arena of %llu",
                         values[BUDDY_FROM].text, values[BUDDY_TO].text,
                         (unsigned long long)config->arena_bytes);
    self->begin_bytes = vram_round_up(values[BUDDY_FROM].number, min_bytes);
    self->end_bytes = to_bytes & -min_bytes;
    if (self->end_bytes < self->begin_bytes)
        self->end_bytes = self->begin_bytes;
    while (max_bytes > min_bytes && max_bytes > self->end_bytes - self->begin_bytes)
        max_bytes /= 2;
    self->max_bytes = max_bytes;
    self->min_log2 = buddy_log2(min_bytes);
    self->max_order = buddy_log2(max_bytes) - self->min_log2;
    self->top_bytes = values[BUDDY_TOP].word ? UINT64_MAX : values[BUDDY_TOP].number;
    self->trim = values[BUDDY_TRIM].number != 0;
    self->by_address = values[BUDDY_PLACE].number != 0;
    self->head.arena_bytes = config->arena_bytes;
    self->head.unit_bytes = min_bytes;
    return true;
}

static bool buddy_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    buddy read = {0};
    if (!read_options(config, &read, error))
        return false;
    /* Offsets below the end are divided by no more than its leading bit; 0 has a list beyond. */
    const uint32_t end_log2 = read.end_bytes > 0 ? buddy_log2(read.end_bytes) : 0;
    read.alignments = (end_log2 > read.min_log2 ? end_log2 - read.min_log2 : 0) + 2;
    const size_t heads = (size_t)(read.max_order + 1) * read.alignments;
    buddy *self = calloc(1, sizeof *self + heads * sizeof self->heads[0]);
    if (self == NULL)
        return vram_fail(error, "out of host memory");
    *self = read;
    self->order = (span_order){.spans = &self->spans, .by_address = true};
    if (!spans_create(&self->spans, self->begin_bytes) || !reserve(self)) {
        buddy_destroy(&self->head);
        return vram_fail(error, "out of host memory");
    }
    if (self->end_bytes > self->begin_bytes)
        list_pieces(self, spans_append(&self->spans, self->end_bytes - self->begin_bytes));
    *out = &self->head;
    return true;
}

/* ---- operations ---- */

/* What a request of this size occupies. */
static uint64_t granted_for(const buddy *self, uint64_t size_bytes)
{
    return self->trim ? vram_round_up(size_bytes, self->head.unit_bytes)
                      : buddy_hull(size_bytes > self->head.unit_bytes ? size_bytes
                                                                      : self->head.unit_bytes);
}

/* A run in a tree that holds a root at an alignment above its size, anywhere within. */
static uint32_t run_in_tree(const buddy *self, uint32_t root, uint64_t align_bytes)
{
    if (root == 0)
        return 0;
    const span *it = &self->spans.at[root];
    const uint32_t lower = run_in_tree(self, it->left, align_bytes);
    if (lower != 0)
        return lower;
    return span_fits(it, self->max_bytes, align_bytes) ? root
                                                       : run_in_tree(self, it->right, align_bytes);
}

static uint32_t run_in_list(const buddy *self, uint32_t head, uint64_t align_bytes)
{
    while (head != 0 && !span_fits(&self->spans.at[head], self->max_bytes, align_bytes))
        head = self->spans.at[head].right;
    return head;
}

static uint32_t find_in_runs(const buddy *self, uint64_t align_bytes)
{
    uint32_t found = 0;
    for (uint32_t alignment = 0; found == 0 && alignment < self->alignments; alignment++) {
        const uint32_t head = self->heads[self->max_order * self->alignments + alignment];
        found = self->by_address ? run_in_tree(self, head, align_bytes)
                                 : run_in_list(self, head, align_bytes);
    }
    return found;
}

/* Of the trees of one order the lowest block, or the highest. */
static uint32_t end_of_trees(const buddy *self, uint32_t order, uint64_t trees, bool from_top)
{
    const span *at = self->spans.at;
    uint32_t found = 0;
    for (; trees != 0; trees &= trees - 1) {
        const uint32_t root =
            self->heads[order * self->alignments + (uint32_t)__builtin_ctzll(trees)];
        const uint32_t end =
            from_top ? span_tree_last(&self->order, root) : span_tree_first(&self->order, root);
        if (found == 0 || (at[end].offset_bytes > at[found].offset_bytes) == from_top)
            found = end;
    }
    return found;
}

/* A block of the least order that holds one of this size at this alignment, or 0; in lists one of
 * the least alignment. block_bytes is a power of two, align_bytes at least as much. */
static uint32_t find_free(const buddy *self, uint64_t block_bytes, uint64_t align_bytes,
                          bool from_top)
{
    const uint32_t order = buddy_log2(block_bytes) - self->min_log2;
    uint32_t alignment = buddy_log2(align_bytes) - self->min_log2;
    if (alignment >= self->alignments)
        alignment = self->alignments - 1;
    for (uint64_t orders = self->orders >> order << order; orders != 0; orders &= orders - 1) {
        const uint32_t found = (uint32_t)__builtin_ctzll(orders);
        const uint64_t lists = self->by_order[found].lists >> alignment << alignment;
        if (lists == 0)
            continue;
        if (self->by_address)
            return end_of_trees(self, found, lists, from_top);
        return self->heads[found * self->alignments + (uint32_t)__builtin_ctzll(lists)];
    }
    return align_bytes > self->max_bytes ? find_in_runs(self, align_bytes) : 0;
}

/* Cuts a live block out of a free one, which holds it at this place, and lists the rest. */
static vram_block take_from(buddy *self, uint32_t number, uint64_t place_bytes,
                            uint64_t granted_bytes, uint64_t align_bytes)
{
    spans *table = &self->spans;
    const uint32_t below = number;
    remove_free(self, number);
    if (place_bytes > table->at[number].offset_bytes)
        number = spans_split(table, number, place_bytes - table->at[number].offset_bytes);
    const uint32_t above = table->at[number].size_bytes > granted_bytes
                               ? spans_split(table, number, granted_bytes)
                               : 0;
    const vram_block taken = spans_publish(table, number, align_bytes, self->head.unit_bytes);
    if (below != number)
        list_pieces(self, below);
    list_pieces(self, above);
    return taken;
}

static vram_result buddy_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    buddy *self = (buddy *)backend;
    const uint64_t granted_bytes = granted_for(self, request->size_bytes);
    const uint64_t block_bytes = buddy_hull(granted_bytes);
    const uint64_t align_bytes =
        block_bytes > request->align_bytes ? block_bytes : request->align_bytes;
    const bool from_top = request->size_bytes >= self->top_bytes;
    if (block_bytes > self->max_bytes)
        return VRAM_NO_SPACE;
    const uint32_t found = find_free(self, block_bytes, align_bytes, from_top);
    if (found == 0)
        return VRAM_NO_SPACE;
    if (!reserve(self))
        return VRAM_NO_METADATA;
    const span *it = &self->spans.at[found];
    const uint64_t place_bytes = from_top ? (span_end(it) - block_bytes) & -align_bytes
                                          : vram_round_up(it->offset_bytes, align_bytes);
    *out = take_from(self, found, place_bytes, granted_bytes, request->align_bytes);
    return VRAM_OK;
}

static vram_result buddy_release(vram_backend *backend, vram_block block)
{
    buddy *self = (buddy *)backend;
    const uint32_t number = spans_find(&self->spans, &block);
    if (number == 0)
        return VRAM_STALE_BLOCK;
    if (self->trim && !reserve(self))
        return VRAM_NO_METADATA;
    spans_retire(&self->spans, number);
    if (self->trim)
        free_pieces(self, number);
    else /* untrimmed, it is one piece */
        merge_and_free(self, number);
    return VRAM_OK;
}

/* How far a block could grow: the bytes from its start to the end of the free blocks behind it. */
static uint64_t room_bytes(const buddy *self, uint32_t number, uint64_t wanted_bytes)
{
    const span *at = self->spans.at;
    uint64_t room_bytes = at[number].size_bytes;
    for (uint32_t after = at[number].after; room_bytes < wanted_bytes && span_is_free(&at[after]);
         after = at[after].after)
        room_bytes += at[after].size_bytes;
    return room_bytes;
}

static vram_result buddy_resize(vram_backend *backend, vram_block *block, uint64_t size_bytes)
{
    buddy *self = (buddy *)backend;
    spans *table = &self->spans;
    const uint32_t number = spans_find(table, block);
    if (number == 0)
        return VRAM_STALE_BLOCK;
    const uint64_t had_bytes = table->at[number].size_bytes;
    const uint64_t wanted_bytes = granted_for(self, size_bytes);
    const uint64_t block_bytes = buddy_hull(wanted_bytes);
    if (block_bytes > self->max_bytes || (block->offset_bytes & (block_bytes - 1)) != 0 ||
        room_bytes(self, number, wanted_bytes) < wanted_bytes)
        return VRAM_NO_SPACE;
    if (!reserve(self))
        return VRAM_NO_METADATA;
    while (table->at[number].size_bytes < wanted_bytes) {
        remove_free(self, table->at[number].after);
        spans_join(table, number, table->at[number].after);
    }
    if (table->at[number].size_bytes > wanted_bytes)
        free_pieces(self, spans_split(table, number, wanted_bytes));
    table->granted_bytes += wanted_bytes - had_bytes;
    block->granted_bytes = wanted_bytes;
    return VRAM_OK;
}

static vram_result buddy_commit_move(vram_backend *backend, const vram_move *move,
                                     vram_block *block)
{
    buddy *self = (buddy *)backend;
    spans *table = &self->spans;
    const vram_block moved = {.offset_bytes = move->from_bytes, .handle = move->handle};
    const uint32_t number = spans_find(table, &moved);
    if (number == 0)
        return VRAM_STALE_BLOCK;
    if (!reserve(self))
        return VRAM_NO_METADATA;
    const span *it = &table->at[number];
    const uint64_t granted_bytes = it->size_bytes;
    const uint64_t alignment_bytes = span_alignment(it, self->head.unit_bytes);
    uint32_t target = it->before;
    while (table->at[target].offset_bytes > move->to_bytes)
        target = table->at[target].before;
    const span *to = &table->at[target];
    if (move->to_bytes >= move->from_bytes || target == 0 || !span_is_free(to) ||
        granted_bytes > span_end(to) - move->to_bytes ||
        (move->to_bytes & (buddy_hull(granted_bytes) - 1)) != 0 ||
        (move->to_bytes & (alignment_bytes - 1)) != 0)
        return VRAM_NO_SPACE;
    *block = take_from(self, target, move->to_bytes, granted_bytes, alignment_bytes);
    spans_retire(table, number);
    free_pieces(self, number);
    return VRAM_OK;
}

/* ---- examination ---- */

/* A run of roots is bound to blocks of the largest size; everything else is as the table has it. */
typedef struct run_visit {
    const buddy *self;
    vram_visit *visit;
    void *context;
} run_visit;

static void visit_run(void *context, const vram_span *given)
{
    const run_visit *to = context;
    vram_span shown = *given;
    if (shown.kind == VRAM_SPAN_FREE && shown.size_bytes > to->self->max_bytes) {
        shown.kind = VRAM_SPAN_BOUND;
        shown.block_bytes = to->self->max_bytes;
    }
    to->visit(to->context, &shown);
}

static void buddy_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const buddy *self = (const buddy *)backend;
    spans_walk(&self->spans, self->head.arena_bytes, visit_run,
               &(run_visit){.self = self, .visit = visit, .context = context});
}

static void buddy_stats(const vram_backend *backend, vram_stats *out)
{
    const buddy *self = (const buddy *)backend;
    spans_stats(&self->spans, self->head.arena_bytes, self->end_bytes, out);
    out->free_bytes -= self->bound_bytes;
    out->bound_bytes = self->bound_bytes;
    out->bookkeeping_bytes +=
        sizeof *self + (size_t)(self->max_order + 1) * self->alignments * sizeof self->heads[0];
}

static void buddy_explain(const vram_backend *backend, const vram_request *request,
                          vram_failure *failure)
{
    const buddy *self = (const buddy *)backend;
    if (buddy_hull(granted_for(self, request->size_bytes)) > self->max_bytes)
        failure->reason = VRAM_REASON_OVERSIZE;
}

const vram_ops vram_buddy_ops = {
    .abi = VRAM_ABI,
    .name = "buddy",
    .summary = "powers of two, each merged with its twin on release",
    .options = buddy_options,
    .create = buddy_create,
    .destroy = buddy_destroy,
    .alloc = buddy_alloc,
    .release = buddy_release,
    .walk = buddy_walk,
    .check = buddy_check,
    .stats = buddy_stats,
    .explain = buddy_explain,
    .resize = buddy_resize,
    .plan_moves = buddy_plan_moves,
    .commit_move = buddy_commit_move,
};
