/*
 * tlsf.c - free spans in bins of nearly equal sizes, found by two bit scans.
 *
 *   0                                                          end  arena
 *   |###A###|....|##B##|.........|####C####|...................|xxx|      'x' less than a unit
 *            [2]         [4]                [6]
 *   levels  .1..1..1        a bit for each power of two that has a free span
 *   steps   ..1..           for each of them 32 bits, one a bin
 *   heads   bin -> [4] <-> [9] <-> [7]       spans of about that size, a low one in front
 *
 * A request looks at a few spans in the bin of its own size, for one that is large enough. Failing
 * that, any span of the next bin in use is large enough, so that its first is taken. What
 * the block leaves of a span goes back to a bin at once, behind it and, when an alignment above the
 * unit moved the block up, before it; a released span first swallows its free neighbours.
 *
 * I1 to I4 are those of core/spans.h: tiled, whole units, numbered, counted.
 * I5  no two neighbours are both free.
 * I6  the lists hold exactly the free spans, each in the bin of its size.
 * I7  the bits of core/size_bins.h are set for the bins whose list is not empty.
 *
 * alloc, release, resize: O(1), the growth of the table (core/spans) averaged. A request may be
 * refused although a span of its own bin would hold it, when that stands behind the first LOOK_LAST
 * of its list: such a refusal is "class full". check: O(spans). Host memory: 32 bytes a span, and a
 * sixteenth to grow. Masmano et al. 2004.
 */
#include "core/size_bins.h"
#include "core/span_moves.h"

#include <stdlib.h>

/* Left to itself the compiler makes the short ways long. */
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define COLD          __attribute__((noinline, cold))

/* Spans looked at when nothing larger is free, before a request is refused. */
enum { LOOK_LAST = 64 };

typedef struct tlsf {
    vram_backend head;
    spans spans;
    uint64_t end_bytes; /* the arena in whole units */
    size_bins bins;
    uint32_t look; /* spans of the bin of its size that a request looks at */
    uint32_t bin_count;
    uint32_t heads[]; /* a bin: the first of its list, 0 when there is none */
} tlsf;

enum { TLSF_UNIT, TLSF_LOOK };
static const vram_option tlsf_options[] = {
    [TLSF_UNIT] = VRAM_UNIT_OPTION,
    [TLSF_LOOK] = {.name = "look",
                   .type = VRAM_OPTION_COUNT,
                   .fallback = "16",
                   .least = 1,
                   .most = 65536,
                   .help = "spans of the bin of its own size that a request looks at"},
    {.name = NULL},
};

/* ---- bins ---- */

/* Lists a free span: in front when it lies below the first, else right behind it. The low addresses
 * are so used first, for a comparison. */
static ALWAYS_INLINE void push_free(tlsf *self, uint32_t number)
{
    span *at = self->spans.at;
    const uint32_t bin = size_bin_of(at[number].size_bytes);
    const uint32_t first = self->heads[bin];
    if (first != 0 && at[first].offset_bytes < at[number].offset_bytes) {
        const uint32_t second = at[first].right;
        at[number].left = first;
        at[number].right = second;
        at[second].left = number; /* span 0 has no use for it */
        at[first].right = number;
        return;
    }
    at[number].left = 0;
    at[number].right = first;
    at[first].left = number;
    self->heads[bin] = number;
    size_bins_set(&self->bins, bin);
}

static ALWAYS_INLINE void remove_free(tlsf *self, uint32_t number, uint32_t bin)
{
    span *at = self->spans.at;
    const uint32_t before = at[number].left;
    const uint32_t next = at[number].right;
    at[next].left = before;
    if (before != 0) {
        at[before].right = next;
        return;
    }
    self->heads[bin] = next;
    if (next == 0)
        size_bins_clear(&self->bins, bin);
}

/* ---- life ---- */

static void tlsf_destroy(vram_backend *backend)
{
    tlsf *self = (tlsf *)backend;
    spans_destroy(&self->spans);
    free(self);
}

static bool tlsf_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    uint64_t unit_bytes = 0;
    if (!vram_unit_of(config, &config->values[TLSF_UNIT], &unit_bytes, error))
        return false;
    /* A request for all of the arena is looked up in whole units, which may exceed it. */
    const uint32_t bin_count = size_bin_of(vram_round_up(config->arena_bytes, unit_bytes)) + 1;
    tlsf *self = calloc(1, sizeof *self + bin_count * sizeof self->heads[0]);
    if (self == NULL)
        return vram_fail(error, "out of host memory");
    self->head.arena_bytes = config->arena_bytes;
    self->head.unit_bytes = unit_bytes;
    self->end_bytes = config->arena_bytes & -unit_bytes;
    self->look = (uint32_t)config->values[TLSF_LOOK].number;
    self->bin_count = bin_count;
    if (!spans_create(&self->spans, 0)) {
        tlsf_destroy(&self->head);
        return vram_fail(error, "out of host memory");
    }
    if (self->end_bytes > 0)
        push_free(self, spans_append(&self->spans, self->end_bytes));
    *out = &self->head;
    return true;
}

/* ---- operations ---- */

/* The first of `look` spans, in the bins in use from this one on, that holds such a block, or 0. */
static uint32_t look_from(const tlsf *self, uint32_t bin, uint32_t look, uint64_t size_bytes,
                          uint64_t align_bytes)
{
    for (bin = size_bins_next(&self->bins, bin); bin != SIZE_BIN_NONE;
         bin = size_bins_next(&self->bins, bin + 1))
        for (uint32_t number = self->heads[bin]; number != 0;
             number = self->spans.at[number].right) {
            if (span_fits(&self->spans.at[number], size_bytes, align_bytes))
                return number;
            if (--look == 0)
                return 0;
        }
    return 0;
}

/*
 * A free span that holds such a block, or 0. First a look at the bin of its size and those above;
 * then any span of a bin so large that no gap of alignment could be in the way; then a longer look,
 * at the bin where that is so for some, and at the smaller ones.
 */
static uint32_t choose(const tlsf *self, uint64_t size_bytes, uint64_t align_bytes)
{
    const uint64_t unit_bytes = self->head.unit_bytes;
    const uint64_t gap_most_bytes = align_bytes > unit_bytes ? align_bytes - unit_bytes : 0;
    const uint32_t own = size_bin_of(size_bytes);
    const uint32_t padded = size_bin_of(size_bytes + gap_most_bytes);
    uint32_t found = look_from(self, own, self->look, size_bytes, align_bytes);
    if (found != 0)
        return found;
    const uint32_t above = size_bins_next(&self->bins, padded + 1);
    if (above != SIZE_BIN_NONE)
        return self->heads[above];
    found = look_from(self, padded, LOOK_LAST, size_bytes, align_bytes);
    return found != 0 || padded == own ? found
                                       : look_from(self, own, LOOK_LAST, size_bytes, align_bytes);
}

/* Makes the front of a span, which is in no list, the caller's block, and lists the rest. */
static inline vram_block take_front(tlsf *self, uint32_t number, uint64_t size_bytes,
                                    uint64_t align_bytes)
{
    if (self->spans.at[number].size_bytes > size_bytes)
        push_free(self, spans_split(&self->spans, number, size_bytes));
    return spans_publish(&self->spans, number, align_bytes, self->head.unit_bytes);
}

/* Serves what the short way of tlsf_alloc does not. */
static COLD vram_result alloc_the_long_way(tlsf *self, const vram_request *request, vram_block *out)
{
    spans *table = &self->spans;
    const uint64_t size_bytes = vram_round_up(request->size_bytes, self->head.unit_bytes);
    uint32_t number = choose(self, size_bytes, request->align_bytes);
    if (number == 0)
        return VRAM_NO_SPACE;
    if (!spans_reserve(table, 2))
        return VRAM_NO_METADATA;
    remove_free(self, number, size_bin_of(table->at[number].size_bytes));
    const uint64_t gap_bytes = span_gap(&table->at[number], request->align_bytes);
    if (gap_bytes > 0) {
        const uint32_t aligned = spans_split(table, number, gap_bytes);
        push_free(self, number);
        number = aligned;
    }
    *out = take_front(self, number, size_bytes, request->align_bytes);
    return VRAM_OK;
}

static vram_result tlsf_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    tlsf *self = (tlsf *)backend;
    const span *at = self->spans.at;
    const uint64_t size_bytes = vram_round_up(request->size_bytes, self->head.unit_bytes);
    uint32_t bin = size_bin_of(size_bytes);
    uint32_t number = self->heads[bin];
    uint32_t look = self->look;
    while (number != 0 && at[number].size_bytes < size_bytes)
        number = --look > 0 ? at[number].right : 0;
    if (number == 0) {
        bin = size_bins_next(&self->bins, bin + 1);
        number = bin != SIZE_BIN_NONE ? self->heads[bin] : 0;
    }
    if (number == 0 || self->spans.unused_count == 0 ||
        request->align_bytes > self->head.unit_bytes)
        return alloc_the_long_way(self, request, out);
    remove_free(self, number, bin);
    *out = take_front(self, number, size_bytes, 0);
    return VRAM_OK;
}

static ALWAYS_INLINE void drop_free(void *backend, uint32_t number)
{
    tlsf *self = backend;
    remove_free(self, number, size_bin_of(self->spans.at[number].size_bytes));
}

static ALWAYS_INLINE void add_free(void *backend, uint32_t number)
{
    push_free(backend, number);
}

static span_index index_of(tlsf *self)
{
    return (span_index){.spans = &self->spans,
                        .unit_bytes = self->head.unit_bytes,
                        .self = self,
                        .add = add_free,
                        .drop = drop_free};
}

static vram_result tlsf_release(vram_backend *backend, vram_block block)
{
    tlsf *self = (tlsf *)backend;
    const span_index index = index_of(self);
    const uint32_t number = spans_find(&self->spans, &block);
    if (number == 0)
        return VRAM_STALE_BLOCK;
    spans_retire(&self->spans, number);
    span_index_free(&index, number);
    return VRAM_OK;
}

static vram_result tlsf_resize(vram_backend *backend, vram_block *block, uint64_t size_bytes)
{
    tlsf *self = (tlsf *)backend;
    const span_index index = index_of(self);
    if (!spans_reserve(&self->spans, 1))
        return VRAM_NO_METADATA;
    return span_index_resize(&index, block, vram_round_up(size_bytes, self->head.unit_bytes));
}

static size_t tlsf_plan_moves(const vram_backend *backend, uint64_t budget_bytes, vram_move *moves,
                              size_t max_moves)
{
    const tlsf *self = (const tlsf *)backend;
    return spans_plan_moves(&self->spans, self->head.unit_bytes, budget_bytes, moves, max_moves);
}

static vram_result tlsf_commit_move(vram_backend *backend, const vram_move *move, vram_block *block)
{
    tlsf *self = (tlsf *)backend;
    const span_index index = index_of(self);
    return spans_reserve(&self->spans, 1) ? span_index_commit_move(&index, move, block)
                                          : VRAM_NO_METADATA;
}

/* ---- examination ---- */

static void tlsf_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const tlsf *self = (const tlsf *)backend;
    spans_walk(&self->spans, self->head.arena_bytes, visit, context);
}

/* I6 and I7 for one bin: adds what its list holds to *listed. */
static bool bin_is_sound(const tlsf *self, uint32_t bin, spans_free *listed, vram_fault *fault)
{
    const spans *table = &self->spans;
    if (size_bins_has(&self->bins, bin) != (self->heads[bin] != 0))
        return vram_fault_at(fault, "I7 marked", 0);
    uint32_t before = 0;
    for (uint32_t number = self->heads[bin]; number != 0; number = table->at[number].right) {
        if (number >= table->capacity || listed->count++ >= spans_count(table))
            return vram_fault_at(fault, "I6 listed", 0);
        const span *it = &table->at[number];
        if (!span_is_free(it) || it->left != before || size_bin_of(it->size_bytes) != bin)
            return vram_fault_at(fault, "I6 listed", it->offset_bytes);
        listed->bytes += it->size_bytes;
        before = number;
    }
    return true;
}

/* I7 between the two levels of bits, beyond the last bin included. */
static bool levels_are_sound(const tlsf *self, vram_fault *fault)
{
    for (uint32_t level = 0; level <= SIZE_BIN_LEVELS; level++)
        if ((self->bins.levels >> level & 1) != (self->bins.steps[level] != 0))
            return vram_fault_at(fault, "I7 marked", 0);
    return true;
}

static bool tlsf_check(const vram_backend *backend, vram_fault *fault)
{
    const tlsf *self = (const tlsf *)backend;
    spans_free tiled;
    spans_free listed = {0};
    if (!spans_check(&self->spans, self->end_bytes, self->head.unit_bytes, &tiled, fault) ||
        !spans_check_merged(&self->spans, fault) || !levels_are_sound(self, fault))
        return false;
    for (uint32_t bin = 0; bin < self->bin_count; bin++)
        if (!bin_is_sound(self, bin, &listed, fault))
            return false;
    return (listed.count == tiled.count && listed.bytes == tiled.bytes) ||
           vram_fault_at(fault, "I6 listed", 0);
}

static void tlsf_stats(const vram_backend *backend, vram_stats *out)
{
    const tlsf *self = (const tlsf *)backend;
    spans_stats(&self->spans, self->head.arena_bytes, self->end_bytes, out);
    out->bookkeeping_bytes += sizeof *self + self->bin_count * sizeof self->heads[0];
}

/* A span that would do, but stands too far behind in the list of its bin. */
static void tlsf_explain(const vram_backend *backend, const vram_request *request,
                         vram_failure *failure)
{
    const tlsf *self = (const tlsf *)backend;
    const uint64_t size_bytes = vram_round_up(request->size_bytes, self->head.unit_bytes);
    const span *at = self->spans.at;
    for (uint32_t number = at[0].after; number != 0; number = at[number].after)
        if (span_is_free(&at[number]) && span_fits(&at[number], size_bytes, request->align_bytes))
            failure->reason = VRAM_REASON_CLASS_FULL;
}

const vram_ops vram_tlsf_ops = {
    .abi = VRAM_ABI,
    .name = "tlsf",
    .summary = "two-level bins of free spans, found and merged in constant time",
    .options = tlsf_options,
    .create = tlsf_create,
    .destroy = tlsf_destroy,
    .alloc = tlsf_alloc,
    .release = tlsf_release,
    .walk = tlsf_walk,
    .check = tlsf_check,
    .stats = tlsf_stats,
    .explain = tlsf_explain,
    .resize = tlsf_resize,
    .plan_moves = tlsf_plan_moves,
    .commit_move = tlsf_commit_move,
};
