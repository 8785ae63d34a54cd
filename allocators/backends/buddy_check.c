/*
 * buddy_check.c - the invariants that buddy.c numbers.
 */
#include "backends/buddy.h"

/* I5, I9, I10 for one span of the chain. */
static bool span_is_sound(const buddy *self, uint32_t number, vram_fault *fault)
{
    const span *at = self->spans.at;
    const span *it = &at[number];
    const uint64_t size_bytes = it->size_bytes;
    if (!span_is_free(it))
        return (it->offset_bytes & (buddy_hull(size_bytes) - 1)) == 0 ||
               vram_fault_at(fault, "I10 aligned", it->offset_bytes);
    if (buddy_first_piece(self, it) != size_bytes)
        return vram_fault_at(fault, "I9 a power of two", it->offset_bytes);
    const span *after = &at[it->after];
    if (!span_is_free(after))
        return true;
    const bool twins = after->size_bytes == size_bytes && size_bytes < self->max_bytes &&
                       (it->offset_bytes & size_bytes) == 0;
    const bool runs = size_bytes >= self->max_bytes && after->size_bytes >= self->max_bytes;
    return !(twins || runs) || vram_fault_at(fault, "I5 merged", it->offset_bytes);
}

/* One list or tree, and the blocks that belong there. */
typedef struct buddy_list {
    const buddy *self;
    uint32_t order;
    uint32_t alignment;
} buddy_list;

static bool is_of_list(const void *context, const span *it)
{
    const buddy_list *list = context;
    return buddy_order_of(list->self, it->size_bytes) == list->order &&
           buddy_alignment_of(list->self, it->offset_bytes) == list->alignment;
}

/* I6 for one list: adds what it holds to *listed. */
static bool list_is_sound(const buddy *self, uint32_t order, uint32_t alignment, spans_free *listed,
                          vram_fault *fault)
{
    const spans *table = &self->spans;
    const buddy_list list = {.self = self, .order = order, .alignment = alignment};
    uint32_t before = 0;
    for (uint32_t number = self->heads[order * self->alignments + alignment]; number != 0;
         number = table->at[number].right) {
        if (number >= table->capacity || listed->count++ >= spans_count(table))
            return vram_fault_at(fault, "I6 listed", 0);
        const span *it = &table->at[number];
        if (!span_is_free(it) || it->left != before || !is_of_list(&list, it))
            return vram_fault_at(fault, "I6 listed", it->offset_bytes);
        listed->bytes += it->size_bytes;
        before = number;
    }
    return true;
}

/* I6 and I7 for one tree. */
static bool tree_is_sound(const buddy *self, uint32_t order, uint32_t alignment, spans_free *listed,
                          vram_fault *fault)
{
    const buddy_list list = {.self = self, .order = order, .alignment = alignment};
    return span_tree_check(&self->order, self->heads[order * self->alignments + alignment],
                           is_of_list, &list, listed, fault);
}

static bool lists_are_sound(const buddy *self, const spans_free *tiled, vram_fault *fault)
{
    spans_free listed = {0};
    for (uint32_t order = 0; order <= self->max_order; order++) {
        const uint64_t listed_before = listed.count;
        for (uint32_t alignment = 0; alignment < self->alignments; alignment++) {
            const bool empty = self->heads[order * self->alignments + alignment] == 0;
            if ((self->by_order[order].lists >> alignment & 1) != !empty)
                return vram_fault_at(fault, "I6 listed", 0);
            if (!empty && !(self->by_address ? tree_is_sound : list_is_sound)(
                              self, order, alignment, &listed, fault))
                return false;
        }
        const uint64_t blocks = listed.count - listed_before;
        if (blocks != self->by_order[order].free_blocks ||
            (self->orders >> order & 1) != (blocks != 0))
            return vram_fault_at(fault, "I8 counted by order", 0);
    }
    return (listed.count == tiled->count && listed.bytes == tiled->bytes) ||
           vram_fault_at(fault, "I6 listed", 0);
}

bool buddy_check(const vram_backend *backend, vram_fault *fault)
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
