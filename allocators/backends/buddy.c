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
 * one that is aligned better than needed is spared.
 *
 * I1 to I4 are those of core/spans.h: tiled, whole units, numbered, counted.
 * I5  a free block is a power of two and starts at a multiple of its size; a run is whole roots.
 * I6  twins are never both free, and runs never touch.
 * I7  the lists hold exactly the free blocks, each by its order and alignment; the bits tell which
 *     lists are not empty.
 * I8  the counters of each order equal the blocks in its lists.
 * I9  a live block starts at a multiple of its size rounded up to a power of two.
 *
 * alloc, release: O(orders); an alignment above the largest order searches the runs. check:
 * O(blocks). Host memory: 32 bytes a block, and a sixteenth to grow. Knuth, TAOCP 2.5; the roots,
 * the trimmed tail and placement from the top as in Linux's gpu_buddy.
 */
#include "core/spans.h"

#include <stdlib.h>

enum { BUDDY_ORDERS = 51 }; /* an arena of 2^50 bytes with min = 1 */

typedef struct buddy_order {
    uint64_t lists;       /* a bit for each alignment whose list is not empty */
    uint64_t free_blocks; /* a run counts once */
} buddy_order;

typedef struct buddy {
    vram_backend head; /* unit_bytes is the smallest block */
    spans spans;
    uint64_t begin_bytes; /* of what may be handed out, in whole smallest blocks */
    uint64_t end_bytes;
    uint64_t max_bytes;   /* the largest block */
    uint64_t top_bytes;   /* requests of at least this are placed from the top */
    uint64_t bound_bytes; /* free in runs of more than one root */
    bool trim;
    uint32_t min_log2;
    uint32_t max_order;
    uint32_t alignments; /* lists an order */
    uint64_t orders;     /* a bit for each order that has a free block */
    buddy_order by_order[BUDDY_ORDERS];
    uint32_t heads[]; /* [order][alignment]: the block freed last, 0 when there is none */
} buddy;

enum { BUDDY_MIN, BUDDY_MAX, BUDDY_TRIM, BUDDY_TOP, BUDDY_FROM, BUDDY_TO };
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
    [BUDDY_TOP] = {.name = "top",
                   .type = VRAM_OPTION_SIZE,
                   .fallback = "never",
                   .least = 1,
                   .most = VRAM_ARENA_MAX,
                   .choices = "never",
                   .help = "requests of at least this size take the upper half of what is split"},
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

static uint32_t log2_floor(uint64_t value)
{
    return 63 - (uint32_t)__builtin_clzll(value);
}

static uint64_t power_of_two_at_least(uint64_t value)
{
    return value <= 1 ? 1 : UINT64_C(1) << (64 - __builtin_clzll(value - 1));
}

/* The order of a free block; every run has the largest. */
static uint32_t order_of(const buddy *self, uint64_t size_bytes)
{
    return size_bytes >= self->max_bytes ? self->max_order
                                         : log2_floor(size_bytes) - self->min_log2;
}

/* By which power of two, in smallest blocks, an offset can be divided; offset 0 by the largest. */
static uint32_t alignment_of(const buddy *self, uint64_t offset_bytes)
{
    const uint64_t top = UINT64_C(1) << (self->min_log2 + self->alignments - 1);
    return (uint32_t)__builtin_ctzll(offset_bytes | top) - self->min_log2;
}

static uint32_t *head_of(buddy *self, uint32_t order, uint32_t alignment)
{
    return &self->heads[order * self->alignments + alignment];
}

static void push_free(buddy *self, uint32_t number)
{
    span *it = &self->spans.at[number];
    const uint32_t order = order_of(self, it->size_bytes);
    const uint32_t alignment = alignment_of(self, it->offset_bytes);
    uint32_t *head = head_of(self, order, alignment);
    it->left = 0;
    it->right = *head;
    if (*head != 0)
        self->spans.at[*head].left = number;
    *head = number;
    self->by_order[order].lists |= UINT64_C(1) << alignment;
    self->by_order[order].free_blocks++;
    self->orders |= UINT64_C(1) << order;
    if (it->size_bytes > self->max_bytes)
        self->bound_bytes += it->size_bytes;
}

static void remove_free(buddy *self, uint32_t number)
{
    const span *it = &self->spans.at[number];
    const uint32_t order = order_of(self, it->size_bytes);
    if (it->right != 0)
        self->spans.at[it->right].left = it->left;
    if (it->left != 0) {
        self->spans.at[it->left].right = it->right;
    } else {
        const uint32_t alignment = alignment_of(self, it->offset_bytes);
        *head_of(self, order, alignment) = it->right;
        if (it->right == 0)
            self->by_order[order].lists &= ~(UINT64_C(1) << alignment);
    }
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

/* Bytes of the largest block, or run, that may start where this span does and ends within it. */
static uint64_t first_piece(const buddy *self, const span *it)
{
    const uint64_t offset_bytes = it->offset_bytes;
    const uint64_t aligned_bytes = offset_bytes & -offset_bytes; /* 0 at offset 0 */
    if (it->size_bytes >= self->max_bytes && (offset_bytes & (self->max_bytes - 1)) == 0)
        return it->size_bytes & -self->max_bytes;
    const uint64_t fits_bytes = UINT64_C(1) << log2_floor(it->size_bytes);
    return aligned_bytes != 0 && aligned_bytes < fits_bytes ? aligned_bytes : fits_bytes;
}

/* Cuts a span of any whole number of smallest blocks behind its first piece. Returns the rest, or 0
 * when it was one piece. There are at most two pieces an order, and a run. */
static uint32_t cut_piece(buddy *self, uint32_t number)
{
    const span *it = &self->spans.at[number];
    const uint64_t piece_bytes = first_piece(self, it);
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
    self->min_log2 = log2_floor(min_bytes);
    self->max_order = log2_floor(max_bytes) - self->min_log2;
    self->top_bytes = values[BUDDY_TOP].word ? UINT64_MAX : values[BUDDY_TOP].number;
    self->trim = values[BUDDY_TRIM].number != 0;
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
    const uint32_t end_log2 = read.end_bytes > 0 ? log2_floor(read.end_bytes) : 0;
    read.alignments = (end_log2 > read.min_log2 ? end_log2 - read.min_log2 : 0) + 2;
    const size_t heads = (size_t)(read.max_order + 1) * read.alignments;
    buddy *self = calloc(1, sizeof *self + heads * sizeof self->heads[0]);
    if (self == NULL)
        return vram_fail(error, "out of host memory");
    *self = read;
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
    return self->trim
               ? vram_round_up(size_bytes, self->head.unit_bytes)
               : power_of_two_at_least(size_bytes > self->head.unit_bytes ? size_bytes
                                                                          : self->head.unit_bytes);
}

/* A run that holds a root at an alignment above its size, anywhere within. */
static uint32_t find_in_runs(const buddy *self, uint64_t align_bytes)
{
    for (uint32_t alignment = 0; alignment < self->alignments; alignment++)
        for (uint32_t run = self->heads[self->max_order * self->alignments + alignment]; run != 0;
             run = self->spans.at[run].right)
            if (span_fits(&self->spans.at[run], self->max_bytes, align_bytes))
                return run;
    return 0;
}

/* The smallest free block that holds one of this size at this alignment, or 0; among equals one of
 * the least alignment. block_bytes is a power of two, align_bytes at least as much. */
static uint32_t find_free(const buddy *self, uint64_t block_bytes, uint64_t align_bytes)
{
    const uint32_t order = log2_floor(block_bytes) - self->min_log2;
    uint32_t alignment = log2_floor(align_bytes) - self->min_log2;
    if (alignment >= self->alignments)
        alignment = self->alignments - 1;
    for (uint64_t orders = self->orders >> order << order; orders != 0; orders &= orders - 1) {
        const uint32_t found = (uint32_t)__builtin_ctzll(orders);
        const uint64_t lists = self->by_order[found].lists >> alignment << alignment;
        if (lists != 0)
            return self->heads[found * self->alignments + (uint32_t)__builtin_ctzll(lists)];
    }
    return align_bytes > self->max_bytes ? find_in_runs(self, align_bytes) : 0;
}

static vram_result buddy_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    buddy *self = (buddy *)backend;
    spans *table = &self->spans;
    const uint64_t granted_bytes = granted_for(self, request->size_bytes);
    const uint64_t block_bytes = power_of_two_at_least(granted_bytes);
    const uint64_t align_bytes =
        block_bytes > request->align_bytes ? block_bytes : request->align_bytes;
    if (block_bytes > self->max_bytes)
        return VRAM_NO_SPACE;
    uint32_t number = find_free(self, block_bytes, align_bytes);
    if (number == 0)
        return VRAM_NO_SPACE;
    if (!reserve(self))
        return VRAM_NO_METADATA;
    remove_free(self, number);
    const uint64_t offset_bytes = table->at[number].offset_bytes;
    const uint64_t place_bytes = request->size_bytes >= self->top_bytes
                                     ? (span_end(&table->at[number]) - block_bytes) & -align_bytes
                                     : vram_round_up(offset_bytes, align_bytes);
    const uint32_t below = number;
    if (place_bytes > offset_bytes)
        number = spans_split(table, number, place_bytes - offset_bytes);
    const uint32_t above = table->at[number].size_bytes > granted_bytes
                               ? spans_split(table, number, granted_bytes)
                               : 0;
    *out = spans_publish(table, number, request->align_bytes, self->head.unit_bytes);
    if (below != number)
        list_pieces(self, below);
    list_pieces(self, above);
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
    free_pieces(self, number);
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
    const uint64_t block_bytes = power_of_two_at_least(wanted_bytes);
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

/* I5, I6, I9 for one span of the chain. */
static bool span_is_sound(const buddy *self, uint32_t number, vram_fault *fault)
{
    const span *at = self->spans.at;
    const span *it = &at[number];
    const uint64_t size_bytes = it->size_bytes;
    if (!span_is_free(it))
        return (it->offset_bytes & (power_of_two_at_least(size_bytes) - 1)) == 0 ||
               vram_fault_at(fault, "I9 aligned", it->offset_bytes);
    if (first_piece(self, it) != size_bytes)
        return vram_fault_at(fault, "I5 a power of two", it->offset_bytes);
    const span *after = &at[it->after];
    if (!span_is_free(after))
        return true;
    const bool twins = after->size_bytes == size_bytes && size_bytes < self->max_bytes &&
                       (it->offset_bytes & size_bytes) == 0;
    const bool runs = size_bytes >= self->max_bytes && after->size_bytes >= self->max_bytes;
    return !(twins || runs) || vram_fault_at(fault, "I6 merged", it->offset_bytes);
}

/* I7 for one list: adds what it holds to *listed and *blocks. */
static bool list_is_sound(const buddy *self, uint32_t order, uint32_t alignment, spans_free *listed,
                          uint64_t *blocks, vram_fault *fault)
{
    const spans *table = &self->spans;
    const uint32_t head = self->heads[order * self->alignments + alignment];
    if ((self->by_order[order].lists >> alignment & 1) != (head != 0))
        return vram_fault_at(fault, "I7 listed", 0);
    uint32_t before = 0;
    for (uint32_t number = head; number != 0; number = table->at[number].right) {
        if (number >= table->capacity || listed->count++ >= spans_count(table))
            return vram_fault_at(fault, "I7 listed", 0);
        const span *it = &table->at[number];
        if (!span_is_free(it) || it->left != before || order_of(self, it->size_bytes) != order ||
            alignment_of(self, it->offset_bytes) != alignment)
            return vram_fault_at(fault, "I7 listed", it->offset_bytes);
        listed->bytes += it->size_bytes;
        ++*blocks;
        before = number;
    }
    return true;
}

static bool lists_are_sound(const buddy *self, const spans_free *tiled, vram_fault *fault)
{
    spans_free listed = {0};
    for (uint32_t order = 0; order <= self->max_order; order++) {
        uint64_t blocks = 0;
        for (uint32_t alignment = 0; alignment < self->alignments; alignment++)
            if (!list_is_sound(self, order, alignment, &listed, &blocks, fault))
                return false;
        if (blocks != self->by_order[order].free_blocks ||
            (self->orders >> order & 1) != (blocks != 0))
            return vram_fault_at(fault, "I8 counted by order", 0);
    }
    return (listed.count == tiled->count && listed.bytes == tiled->bytes) ||
           vram_fault_at(fault, "I7 listed", 0);
}

static bool buddy_check(const vram_backend *backend, vram_fault *fault)
{
    const buddy *self = (const buddy *)backend;
    const span *at = self->spans.at;
    spans_free tiled;
    if (!spans_check(&self->spans, self->end_bytes, self->head.unit_bytes, &tiled, fault))
        return false;
    uint64_t bound_bytes = 0;
    for (uint32_t number = at[0].after; number != 0; number = at[number].after) {
        if (!span_is_sound(self, number, fault))
            return false;
        if (span_is_free(&at[number]) && at[number].size_bytes > self->max_bytes)
            bound_bytes += at[number].size_bytes;
    }
    if (bound_bytes != self->bound_bytes)
        return vram_fault_at(fault, "I8 counted by order", 0);
    return lists_are_sound(self, &tiled, fault);
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
    if (power_of_two_at_least(granted_for(self, request->size_bytes)) > self->max_bytes)
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
};
