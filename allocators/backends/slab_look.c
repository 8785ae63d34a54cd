/*
 * slab_look.c - what can be seen of a slab: its spans, the invariants that slab.c numbers, its
 * bytes by cause.
 */
#include "backends/slab.h"

/* ---- walk ---- */

typedef struct slab_walker {
    const slab *self;
    vram_visit *visit;
    void *context;
} slab_walker;

/* The objects of a slab: each live one, runs of free ones, and the end that is none. */
static void walk_objects(const slab_walker *walker, uint32_t number)
{
    const slab_record *record = &walker->self->slabs[number];
    const uint64_t free_mask = record->free_mask;
    vram_span span = {.offset_bytes = record->page.offset_bytes,
                      .block_bytes = record->object_bytes};
    for (uint32_t object = 0; object < slab_objects(record);) {
        const bool is_free = (free_mask >> object & 1) != 0;
        uint32_t end = object + 1;
        while (is_free && end < SLAB_OBJECTS_MOST && (free_mask >> end & 1) != 0)
            end++;
        span.size_bytes = (end - object) * record->object_bytes;
        span.kind = is_free ? VRAM_SPAN_BOUND : VRAM_SPAN_LIVE;
        span.handle = is_free ? 0 : slab_handle(record->generations[object], number, object);
        walker->visit(walker->context, &span);
        span.offset_bytes += span.size_bytes;
        object = end;
    }
    const uint64_t end_bytes = record->page.offset_bytes + record->page.granted_bytes;
    if (span.offset_bytes < end_bytes)
        walker->visit(walker->context, &(vram_span){.offset_bytes = span.offset_bytes,
                                                    .size_bytes = end_bytes - span.offset_bytes,
                                                    .block_bytes = end_bytes - span.offset_bytes,
                                                    .kind = VRAM_SPAN_PADDING});
}

static void visit_page(void *context, const vram_span *span)
{
    const slab_walker *walker = context;
    vram_span own = *span;
    if (own.kind == VRAM_SPAN_LIVE) {
        const uint32_t number = vram_offset_map_find(&walker->self->by_offset, own.offset_bytes);
        if (number != VRAM_OFFSET_MAP_NONE) {
            walk_objects(walker, number);
            return;
        }
        own.handle |= SLAB_LARGE_SLOT;
    }
    walker->visit(walker->context, &own);
}

void slab_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const slab *self = (const slab *)backend;
    slab_walker walker = {.self = self, .visit = visit, .context = context};
    vram_walk(self->pages, visit_page, &walker);
}

/* ---- check ---- */

static bool is_used(const slab_record *record)
{
    return record->page.handle != 0;
}

static bool is_empty(const slab_record *record)
{
    return record->free_mask == record->all_mask;
}

/* I2 for one slab. */
static bool mask_is_sound(const slab *self, const slab_record *record)
{
    if (record->class >= self->class_count || record->all_mask == 0 ||
        (record->free_mask & ~record->all_mask) != 0 ||
        record->object_bytes != self->caches[record->class].object_bytes)
        return false;
    for (uint32_t object = 0; object < SLAB_OBJECTS_MOST; object++) {
        const bool is_live = ((record->all_mask & ~record->free_mask) >> object & 1) != 0;
        if ((record->generations[object] != 0) != is_live)
            return false;
    }
    return true;
}

/* What the slabs add up to, seen from the records rather than from the lists. */
typedef struct slab_tally {
    uint64_t slabs, live, object_bytes, free_object_bytes, tail_bytes;
    struct {
        uint32_t slabs, partial, empty;
    } caches[SLAB_CLASSES_MOST];
} slab_tally;

/* I2 for every slab, and their sums. */
static bool tally_slabs(const slab *self, slab_tally *tally, vram_fault *fault)
{
    for (uint32_t number = 1; number < self->slabs_made; number++) {
        const slab_record *record = &self->slabs[number];
        if (!is_used(record))
            continue;
        if (!mask_is_sound(self, record))
            return vram_fault_at(fault, "I2 masked", record->page.offset_bytes);
        const uint64_t free = (uint64_t)__builtin_popcountll(record->free_mask);
        const uint64_t objects_bytes = slab_objects(record) * record->object_bytes;
        tally->slabs++;
        tally->live += slab_objects(record) - free;
        tally->object_bytes += objects_bytes;
        tally->free_object_bytes += free * record->object_bytes;
        tally->tail_bytes += record->page.granted_bytes - objects_bytes;
        tally->caches[record->class].slabs++;
        tally->caches[record->class].empty += is_empty(record);
        tally->caches[record->class].partial += !is_empty(record) && record->free_mask != 0;
    }
    return true;
}

/* The length of a list whose slabs all belong there; UINT32_MAX when one does not, or there is no
 * end. */
static uint32_t count_list(const slab *self, uint32_t first, uint32_t class, bool empties)
{
    uint32_t count = 0;
    uint32_t before = 0;
    for (uint32_t number = first; number != 0; number = self->slabs[number].after) {
        if (number >= self->slabs_made || count++ > self->slabs_made)
            return UINT32_MAX;
        const slab_record *record = &self->slabs[number];
        if (!is_used(record) || record->class != class || record->free_mask == 0 ||
            is_empty(record) != empties || (before != 0 && record->before != before))
            return UINT32_MAX;
        before = number;
    }
    return count;
}

/* I3 for every cache. */
static bool lists_are_sound(const slab *self, const slab_tally *tally)
{
    if (self->slabs[0].free_mask != 0)
        return false;
    for (uint32_t class = 0; class < self->class_count; class ++) {
        const slab_cache *of = &self->caches[class];
        if (of->slab_count != tally->caches[class].slabs ||
            of->empty_count != tally->caches[class].empty ||
            count_list(self, of->empty, class, true) != tally->caches[class].empty ||
            count_list(self, of->partial, class, false) != tally->caches[class].partial)
            return false;
    }
    return true;
}

/* The page layer's blocks, seen from its own walk. */
typedef struct page_count {
    const slab *self;
    uint64_t slabs, larges;
    uint64_t wrong_at; /* UINT64_MAX: nothing wrong */
} page_count;

static void count_page(void *context, const vram_span *span)
{
    page_count *count = context;
    const slab *self = count->self;
    if (span->kind != VRAM_SPAN_LIVE)
        return;
    const uint32_t number = vram_offset_map_find(&self->by_offset, span->offset_bytes);
    if (number == VRAM_OFFSET_MAP_NONE) {
        count->larges++;
        return;
    }
    count->slabs++;
    if (number >= self->slabs_made || self->slabs[number].page.handle != span->handle ||
        self->slabs[number].page.granted_bytes != span->size_bytes)
        count->wrong_at = span->offset_bytes;
}

bool slab_check(const vram_backend *backend, vram_fault *fault)
{
    const slab *self = (const slab *)backend;
    slab_tally tally = {0};
    if (!vram_check(self->pages, fault) || !tally_slabs(self, &tally, fault))
        return false;
    if (!lists_are_sound(self, &tally))
        return vram_fault_at(fault, "I3 listed", 0);
    page_count pages = {.self = self, .wrong_at = UINT64_MAX};
    vram_walk(self->pages, count_page, &pages);
    if (pages.wrong_at != UINT64_MAX || pages.slabs != tally.slabs ||
        self->by_offset.count != tally.slabs || pages.larges != self->large_blocks)
        return vram_fault_at(fault, "I1 paged", pages.wrong_at);
    if (tally.live != slab_live_objects(self) || tally.object_bytes != self->object_bytes ||
        tally.free_object_bytes != self->free_object_bytes || tally.tail_bytes != self->tail_bytes)
        return vram_fault_at(fault, "I4 counted", 0);
    return true;
}

/* ---- stats, explain ---- */

void slab_stats(const vram_backend *backend, vram_stats *out)
{
    const slab *self = (const slab *)backend;
    *out = vram_stats_of(self->pages);
    out->granted_bytes -= self->tail_bytes + self->free_object_bytes;
    out->bound_bytes += self->free_object_bytes;
    out->padding_bytes += self->tail_bytes;
    out->live_blocks = slab_live_objects(self) + self->large_blocks;
    out->spans += self->slabs_made - 1;
    out->bookkeeping_bytes += sizeof *self + self->slab_capacity * sizeof *self->slabs +
                              self->by_offset.capacity * sizeof *self->by_offset.entries;
}

/* Small requests want a free object of their class, or pages for a slab of it. */
void slab_explain(const vram_backend *backend, const vram_request *request, vram_failure *failure)
{
    const slab *self = (const slab *)backend;
    if (failure->reason != VRAM_REASON_FRAGMENTED)
        return;
    if (request->size_bytes <= self->large_bytes) {
        failure->reason = VRAM_REASON_CLASS_FULL;
        return;
    }
    const vram_reason reason = vram_explain(self->pages, *request).reason;
    if (reason != VRAM_REASON_BYTES) /* what the pages lack is free in slabs */
        failure->reason = reason;
}
