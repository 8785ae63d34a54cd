/*
 * segregated.c - a pool of equal blocks for each class of sizes, and one region for all the rest.
 *
 *   | general: large requests and overflow  | 512K | 512K | 128K |128K| .. | 2K | 2K | 2K |~~|
 *   0                                 pools_bytes                                        arena
 *
 * A request takes a block of the smallest class that is large enough; when that class is full, of
 * the next one up; when all are full, a piece of the general region. Requests above `large` go to
 * the general region at once, apart from the small ones. The general region is a backend of its own
 * (general=list). It lies at the bottom, because only there its alignments are the arena's; so the
 * pools are at the top, and the highest address in use says nothing. Classes lie in descending
 * order, so that blocks of a power of two are aligned to their size.
 *
 * I1  class sizes ascend; the pools lie end to end from pools_bytes in descending order, and the
 *     general region ends at or below pools_bytes.
 * I2  slots are numbered without overlap across the pools, below 2^31; from there on they are the
 *     general region's.
 * P1 to P4 are those of core/pool.h, for each pool; the general region has its own.
 *
 * alloc: O(classes) when classes are full, else O(1); the general region as its backend. release:
 * O(classes). stats: O(classes). check: O(blocks). Host memory: 4.2 bytes for each block that was
 * ever given out. The course, chapters 3 and 4.
 */
#include "backends/segregated_plan.h"
#include "core/pool.h"

#include <vramlab/registry.h>

#include <stdlib.h>

#define GENERAL_SLOT (UINT32_C(1) << 31) /* set in the slot of a block of the general region */

typedef struct size_class {
    vram_pool pool;
    uint64_t align_bytes; /* every block starts at a multiple of it */
    uint32_t first_slot;
} size_class;

typedef struct segregated {
    vram_backend head;
    vram_backend *general; /* NULL when the pools take everything */
    uint64_t pools_bytes;  /* where the pools begin */
    uint64_t end_bytes;    /* where they end */
    uint64_t large_bytes;
    uint32_t class_count;
    uint8_t first_class[65]; /* by width of size - 1 in bits: the first class that may serve */
    size_class classes[SEGREGATED_CLASSES]; /* ascending by block size */
} segregated;

enum { SEGREGATED_CLASSES_OPTION, SEGREGATED_SHARES, SEGREGATED_LARGE, SEGREGATED_GENERAL, UNIT };

static const vram_option segregated_options[] = {
    [SEGREGATED_CLASSES_OPTION] =
        {.name = "classes",
         .type = VRAM_OPTION_TEXT,
         .fallback = "auto",
         .help = "block sizes, 2KiB/8KiB/...; pow2; how many to derive from the trace, 2 to 16; "
                 "auto: 6, without a trace 2KiB to 512KiB by fours"},
    [SEGREGATED_SHARES] =
        {.name = "shares",
         .type = VRAM_OPTION_TEXT,
         .fallback = "auto",
         .help = "of the arena for each class, 5%/10%/...; equal; trace: as measured; auto: trace "
                 "or else equal. The rest is general"},
    [SEGREGATED_LARGE] = {.name = "large",
                          .type = VRAM_OPTION_SIZE,
                          .fallback = "1MiB",
                          .least = 1,
                          .most = VRAM_ARENA_MAX,
                          .help = "requests above it go to the general region at once"},
    [SEGREGATED_GENERAL] = {.name = "general",
                            .type = VRAM_OPTION_TEXT,
                            .fallback = "list",
                            .help = "the backend of the general region"},
    [UNIT] = VRAM_UNIT_OPTION,
    {.name = NULL},
};

static unsigned bit_width(uint64_t value)
{
    return value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
}

static uint64_t power_of_two_in(uint64_t value)
{
    return value & -value;
}

/* Fills first_class: sizes of w bits less one are at most 2^w and above 2^(w-1). */
static void index_classes(segregated *self)
{
    for (unsigned width = 0; width <= 64; width++) {
        uint8_t k = 0;
        while (k < self->class_count && width > 0 &&
               self->classes[k].pool.block_bytes <= UINT64_C(1) << (width - 1))
            k++;
        self->first_class[width] = k;
    }
}

/* Lays the pools end to end, the largest class first, as near to the arena's end as alignment
 * allows. */
static bool lay_out(segregated *self, const segregated_plan *plan, vram_error *error)
{
    uint64_t total_bytes = 0;
    uint64_t align_bytes = self->head.unit_bytes;
    uint64_t slots = 0;
    for (uint32_t k = 0; k < plan->class_count; k++) {
        total_bytes += plan->counts[k] * plan->block_bytes[k];
        slots += plan->counts[k];
        if (plan->counts[k] > 0)
            align_bytes = power_of_two_in(plan->block_bytes[k]);
    }
    if (slots >= GENERAL_SLOT)
        return vram_fail(error, "segregated: %llu blocks in all, at most %u: take larger classes",
                         (unsigned long long)slots, GENERAL_SLOT - 1);
    self->pools_bytes = (self->head.arena_bytes - total_bytes) & ~(align_bytes - 1);
    self->end_bytes = self->pools_bytes;
    self->class_count = plan->class_count;
    uint32_t first_slot = 0;
    for (uint32_t k = plan->class_count; k-- > 0;) {
        size_class *class = &self->classes[k];
        if (!vram_pool_init(&class->pool, self->end_bytes, plan->block_bytes[k],
                            (uint32_t)plan->counts[k]))
            return vram_fail(error, "segregated: out of host memory");
        class->align_bytes = power_of_two_in(plan->block_bytes[k] | self->end_bytes);
        class->first_slot = first_slot;
        first_slot += class->pool.count;
        self->end_bytes += plan->counts[k] * plan->block_bytes[k];
    }
    index_classes(self);
    return true;
}

/* The general region begins at 0, so that its offsets and alignments are the arena's own. */
static bool make_general(segregated *self, const vram_config *config, const char *name,
                         vram_error *error)
{
    vram_config own = *config;
    vram_error why = {""};
    own.arena_bytes = self->pools_bytes;
    own.unit_bytes = self->head.unit_bytes;
    return vram_create_from_text(name, &own, &self->general, &why) ||
           vram_fail(error, "segregated: general=%s: %s", name, why.text);
}

static void segregated_destroy(vram_backend *backend)
{
    segregated *self = (segregated *)backend;
    for (uint32_t k = 0; k < SEGREGATED_CLASSES; k++)
        vram_pool_free(&self->classes[k].pool);
    vram_destroy(self->general);
    free(self);
}

static bool segregated_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    const vram_value *values = config->values;
    uint64_t unit_bytes = 0;
    segregated_plan plan = {.large_bytes = values[SEGREGATED_LARGE].number,
                            .large_is_given = values[SEGREGATED_LARGE].given};
    if (!vram_unit_of(config, &values[UNIT], &unit_bytes, error) ||
        !segregated_make_plan(config, values[SEGREGATED_CLASSES_OPTION].text,
                              values[SEGREGATED_SHARES].text, unit_bytes, &plan, error))
        return false;
    segregated *self = calloc(1, sizeof *self);
    if (self == NULL)
        return vram_fail(error, "segregated: out of host memory");
    self->head.arena_bytes = config->arena_bytes;
    self->head.unit_bytes = unit_bytes;
    self->large_bytes = plan.large_bytes;
    if (!lay_out(self, &plan, error) ||
        (self->pools_bytes > 0 &&
         !make_general(self, config, values[SEGREGATED_GENERAL].text, error))) {
        segregated_destroy(&self->head);
        return false;
    }
    *out = &self->head;
    return true;
}

static vram_result take_general(segregated *self, const vram_request *request, vram_block *out)
{
    if (self->general == NULL)
        return VRAM_NO_SPACE;
    const vram_result result = vram_alloc(self->general, *request, out);
    if (result == VRAM_OK)
        out->handle |= GENERAL_SLOT;
    return result;
}

static vram_result segregated_alloc(vram_backend *backend, const vram_request *request,
                                    vram_block *out)
{
    segregated *self = (segregated *)backend;
    uint32_t k = request->size_bytes <= self->large_bytes
                     ? self->first_class[bit_width(request->size_bytes - 1)]
                     : self->class_count;
    for (; k < self->class_count; k++) {
        size_class *class = &self->classes[k];
        if (class->pool.block_bytes < request->size_bytes ||
            class->align_bytes < request->align_bytes)
            continue;
        const vram_result result = vram_pool_take(&class->pool, out);
        if (result == VRAM_OK)
            out->handle += class->first_slot;
        if (result != VRAM_NO_SPACE)
            return result;
    }
    return take_general(self, request, out);
}

static bool is_general(uint64_t handle)
{
    return (handle & GENERAL_SLOT) != 0;
}

/* The class whose pool has this slot, as an index; class_count when there is none. */
static uint32_t class_of(const segregated *self, uint64_t handle)
{
    uint32_t k = 0;
    while (k < self->class_count && (uint32_t)handle < self->classes[k].first_slot)
        k++; /* numbered downwards: the smallest class has the highest slots */
    return k;
}

static vram_block as_general(vram_block block)
{
    block.handle &= ~(uint64_t)GENERAL_SLOT;
    return block;
}

static vram_result segregated_release(vram_backend *backend, vram_block block)
{
    segregated *self = (segregated *)backend;
    if (is_general(block.handle))
        return self->general == NULL ? VRAM_STALE_BLOCK
                                     : vram_release(self->general, as_general(block));
    const uint32_t k = class_of(self, block.handle);
    if (k == self->class_count)
        return VRAM_STALE_BLOCK;
    return vram_pool_give(&self->classes[k].pool, block.handle - self->classes[k].first_slot,
                          block.offset_bytes);
}

static vram_result segregated_resize(vram_backend *backend, vram_block *block, uint64_t size_bytes)
{
    segregated *self = (segregated *)backend;
    if (is_general(block->handle)) {
        if (self->general == NULL)
            return VRAM_STALE_BLOCK;
        vram_block inner = as_general(*block);
        const vram_result result = vram_resize(self->general, &inner, size_bytes);
        if (result == VRAM_OK) {
            *block = inner;
            block->handle |= GENERAL_SLOT;
        }
        return result;
    }
    const uint32_t k = class_of(self, block->handle);
    if (k == self->class_count ||
        !vram_pool_owns(&self->classes[k].pool, block->handle - self->classes[k].first_slot,
                        block->offset_bytes))
        return VRAM_STALE_BLOCK;
    return size_bytes <= self->classes[k].pool.block_bytes ? VRAM_OK : VRAM_NO_SPACE;
}

/* Passes the spans of a part on, its live ones under the handles that callers know. */
typedef struct renumber {
    vram_visit *visit;
    void *context;
    uint64_t add;
} renumber;

static void visit_renumbered(void *context, const vram_span *span)
{
    const renumber *as = context;
    vram_span own = *span;
    if (own.kind == VRAM_SPAN_LIVE)
        own.handle += as->add;
    as->visit(as->context, &own);
}

static void visit_padding(uint64_t from_bytes, uint64_t to_bytes, vram_visit *visit, void *context)
{
    if (from_bytes < to_bytes)
        visit(context, &(vram_span){.offset_bytes = from_bytes,
                                    .size_bytes = to_bytes - from_bytes,
                                    .block_bytes = to_bytes - from_bytes,
                                    .kind = VRAM_SPAN_PADDING});
}

static void segregated_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const segregated *self = (const segregated *)backend;
    renumber as = {.visit = visit, .context = context, .add = GENERAL_SLOT};
    if (self->general != NULL)
        vram_walk(self->general, visit_renumbered, &as);
    for (uint32_t k = self->class_count; k-- > 0;) {
        as.add = self->classes[k].first_slot;
        vram_pool_walk(&self->classes[k].pool, visit_renumbered, &as);
    }
    visit_padding(self->end_bytes, self->head.arena_bytes, visit, context);
}

/* I1 and I2: where the pools lie and how their slots are numbered. */
static bool check_layout(const segregated *self, vram_fault *fault)
{
    uint64_t end_bytes = self->pools_bytes;
    uint64_t slots = 0;
    for (uint32_t k = self->class_count; k-- > 0;) {
        const vram_pool *pool = &self->classes[k].pool;
        if (pool->base_bytes != end_bytes ||
            (k > 0 && pool->block_bytes <= self->classes[k - 1].pool.block_bytes))
            return vram_fault_at(fault, "I1 laid out", pool->base_bytes);
        if (self->classes[k].first_slot != slots)
            return vram_fault_at(fault, "I2 numbered", pool->base_bytes);
        end_bytes += pool->count * pool->block_bytes;
        slots += pool->count;
    }
    const uint64_t general_bytes = self->general == NULL ? 0 : self->general->arena_bytes;
    if (end_bytes != self->end_bytes || end_bytes > self->head.arena_bytes ||
        general_bytes != self->pools_bytes)
        return vram_fault_at(fault, "I1 laid out", end_bytes);
    return slots < GENERAL_SLOT || vram_fault_at(fault, "I2 numbered", 0);
}

static bool segregated_check(const vram_backend *backend, vram_fault *fault)
{
    const segregated *self = (const segregated *)backend;
    if (!check_layout(self, fault))
        return false;
    for (uint32_t k = 0; k < self->class_count; k++)
        if (!vram_pool_check(&self->classes[k].pool, fault))
            return false;
    return self->general == NULL || vram_check(self->general, fault);
}

static void segregated_stats(const vram_backend *backend, vram_stats *out)
{
    const segregated *self = (const segregated *)backend;
    *out = self->general == NULL ? (vram_stats){0} : vram_stats_of(self->general);
    out->padding_bytes += self->head.arena_bytes - self->end_bytes;
    out->bookkeeping_bytes += sizeof *self;
    for (uint32_t k = 0; k < self->class_count; k++) {
        const vram_pool *pool = &self->classes[k].pool;
        const uint64_t live = vram_pool_live(pool);
        out->granted_bytes += live * pool->block_bytes;
        out->bound_bytes += (pool->count - live) * pool->block_bytes;
        out->live_blocks += live;
        out->spans += pool->touched;
        out->bookkeeping_bytes += vram_pool_host_bytes(pool);
    }
}

/* Bytes that only the general region lacks are free elsewhere, cut into slots. */
static vram_reason general_reason(const segregated *self, const vram_request *request)
{
    const vram_reason reason = vram_explain(self->general, *request).reason;
    return reason == VRAM_REASON_BYTES ? VRAM_REASON_FRAGMENTED : reason;
}

static void segregated_explain(const vram_backend *backend, const vram_request *request,
                               vram_failure *failure)
{
    const segregated *self = (const segregated *)backend;
    const uint32_t last = self->class_count - 1;
    const bool has_class = self->class_count > 0 && request->size_bytes <= self->large_bytes &&
                           request->size_bytes <= self->classes[last].pool.block_bytes;
    if (has_class)
        failure->reason = VRAM_REASON_CLASS_FULL;
    else if (self->general == NULL)
        failure->reason = VRAM_REASON_OVERSIZE;
    else if (failure->reason != VRAM_REASON_BYTES) /* else they are missing in the pools too */
        failure->reason = general_reason(self, request);
}

const vram_ops vram_segregated_ops = {
    .abi = VRAM_ABI,
    .name = "segregated",
    .summary = "a pool of equal blocks for each class of sizes, a general region for the rest",
    .options = segregated_options,
    .create = segregated_create,
    .destroy = segregated_destroy,
    .alloc = segregated_alloc,
    .release = segregated_release,
    .walk = segregated_walk,
    .check = segregated_check,
    .stats = segregated_stats,
    .explain = segregated_explain,
    .resize = segregated_resize,
};
