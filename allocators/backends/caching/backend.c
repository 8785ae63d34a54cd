/*
 * backend.c - `caching`: PyTorch's CUDA caching allocator as a backend of this library.
 *
 *   requests ->  model.c  -> segments of 2 MiB, 20 MiB, n * 2 MiB -> a driver:
 *
 *   arena      | seg 0 | seg 1 |..free..| seg 2 |......free.......|padding|
 *              0                        segments carved from one arena, lowest first      arena
 *
 *   counting   | seg 0 | seg 1 |  gap   | seg 2 |..free..|padding|         gap           |
 *              0                           addresses without end, memory counted in bytes
 *
 * A card's driver puts scattered pages behind consecutive addresses, so only the sum of all
 * segments must fit: that is `counting`. Its addresses are fresh and descending to the model, which
 * orders equal blocks by them; to the outside each segment lies at the lowest offset with room, so
 * that without fragmentation both drivers show the same picture. Memory in no segment is shown as
 * free in the lowest gaps. On `arena` segments themselves can fragment, and it runs out earlier.
 *
 * I1..I6  of the model (model.c).
 * R1, R2  of the space from which segments are carved (ranges.h).
 * D1      each taken range belongs to a segment of its size, and each segment has one.
 * D2      granted, padding and free are what the blocks add up to.
 *
 * alloc: the model's cost, plus O(segments) for a new segment. Requests are aligned to 512; a
 * larger alignment is served by asking for more and padding the front.
 */
#include "backends/caching/ranges.h"

#include "core/core.h"

#include <stdlib.h>

/* Virtual addresses for one byte of memory; a range of expandable segments takes 9/8 of the arena
 * for each stream and half, so this suffices for 14 streams. */
enum { ADDRESSES_A_BYTE = 32 };

typedef struct caching {
    vram_backend head;
    vram_caching *model;
    caching_ranges ranges;
    uint64_t memory_bytes;       /* whole multiples of 2 MiB; the rest of the arena is padding */
    uint64_t space_bytes;        /* of the ranges: memory_bytes, or more when counting */
    uint64_t next_address_bytes; /* counting: fresh ones end below it */
    uint64_t padding_bytes;      /* in front of live blocks, for alignment */
    bool counting;
} caching;

enum {
    DRIVER,
    MAX_SPLIT,
    MAX_NON_SPLIT_ROUNDING,
    ROUNDUP,
    GC_THRESHOLD,
    FRACTION,
    EXPANDABLE,
    LARGE_SEGMENT,
    SEARCH_AFTER_SYNC,
};

static const vram_option caching_options[] = {
    [DRIVER] = {.name = "driver",
                .type = VRAM_OPTION_CHOICE,
                .fallback = "arena",
                .choices = "arena|counting",
                .help = "arena: segments from one contiguous arena; counting: as on a card, only "
                        "their sum must fit",
                .shown = true},
    [MAX_SPLIT] = {.name = "max_split_size",
                   .type = VRAM_OPTION_SIZE,
                   .fallback = "unlimited",
                   .least = UINT64_C(20) << 20,
                   .choices = "unlimited",
                   .help = "blocks from this size on are never split"},
    [MAX_NON_SPLIT_ROUNDING] = {.name = "max_non_split_rounding",
                                .type = VRAM_OPTION_SIZE,
                                .fallback = "20MiB",
                                .help = "most slack in a block that is not split"},
    [ROUNDUP] = {.name = "roundup_power2_divisions",
                 .type = VRAM_OPTION_TEXT,
                 .fallback = "0",
                 .help = "steps between powers of two: 4, or by MiB 256=1/512=2/>=8"},
    [GC_THRESHOLD] = {.name = "garbage_collection_threshold",
                      .type = VRAM_OPTION_RATIO,
                      .fallback = "0",
                      .most = 1000,
                      .help = "share of the memory fraction above which old segments go back"},
    [FRACTION] = {.name = "memory_fraction",
                  .type = VRAM_OPTION_RATIO,
                  .fallback = "1",
                  .least = 1,
                  .most = 1000,
                  .help = "share of the arena that may be reserved"},
    [EXPANDABLE] = {.name = "expandable_segments",
                    .type = VRAM_OPTION_FLAG,
                    .fallback = "off",
                    .help = "segments grow page by page (driver=counting only)"},
    [LARGE_SEGMENT] = {.name = "large_segment_size",
                       .type = VRAM_OPTION_SIZE,
                       .fallback = "20MiB",
                       .least = VRAM_CACHING_MIN_LARGE,
                       .help =
                           "segment for requests from 1 to 10 MiB; page of expandable segments"},
    [SEARCH_AFTER_SYNC] = {.name = "search_after_sync",
                           .type = VRAM_OPTION_FLAG,
                           .fallback = "off",
                           .help = "look again after waiting for events, as PyTorch does not"},
    {.name = NULL},
};

/* ------------------------------------------------------------------------------------------------
 * the driver under the model */

static bool place(caching *self, segment *s)
{
    const uint32_t range = caching_ranges_take(&self->ranges, s->size_bytes, s->index);
    if (range == NONE)
        return false;
    s->cookie = range;
    s->address_bytes = self->ranges.ranges[range].offset_bytes;
    if (self->counting) {
        self->next_address_bytes -= s->size_bytes;
        s->address_bytes = self->next_address_bytes;
    }
    return true;
}

static uint64_t unreserved_bytes(const caching *self)
{
    return self->memory_bytes - vram_caching_stats_of(self->model)->reserved_bytes;
}

static bool driver_take(void *context, segment *s)
{
    caching *self = context;
    return s->size_bytes <= unreserved_bytes(self) && place(self, s);
}

static bool driver_reserve(void *context, segment *s)
{
    return place(context, s);
}

static void driver_give_back(void *context, const segment *s)
{
    caching *self = context;
    caching_ranges_give(&self->ranges, (uint32_t)s->cookie);
}

static bool driver_map(void *context, const segment *s, uint64_t address_bytes, uint64_t size_bytes)
{
    (void)s;
    (void)address_bytes;
    return size_bytes <= unreserved_bytes(context);
}

static void driver_unmap(void *context, const segment *s, uint64_t address_bytes,
                         uint64_t size_bytes)
{
    (void)context;
    (void)s;
    (void)address_bytes;
    (void)size_bytes;
}

/* ------------------------------------------------------------------------------------------------
 * creation */

static bool read_settings(const vram_config *config, vram_caching_settings *settings,
                          vram_error *error)
{
    const vram_value *values = config->values;
    *settings = vram_caching_defaults(config->arena_bytes);
    if (!values[MAX_SPLIT].word)
        settings->max_split_bytes = values[MAX_SPLIT].number;
    if (values[FRACTION].given)
        settings->cap_bytes = (uint64_t)(values[FRACTION].ratio * (double)config->arena_bytes);
    settings->max_non_split_rounding_bytes = values[MAX_NON_SPLIT_ROUNDING].number;
    settings->gc_threshold = values[GC_THRESHOLD].ratio;
    settings->expandable = values[EXPANDABLE].number != 0;
    settings->large_segment_bytes = values[LARGE_SEGMENT].number;
    settings->search_after_sync = values[SEARCH_AFTER_SYNC].number != 0;
    if (!vram_caching_parse_divisions(values[ROUNDUP].text, settings->roundup_divisions, error))
        return false;
    if (settings->large_segment_bytes % VRAM_CACHING_SMALL_SEGMENT != 0)
        return vram_fail(error, "caching: large_segment_size=%s is not a multiple of 2 MiB",
                         values[LARGE_SEGMENT].text);
    if (settings->expandable && values[DRIVER].number == 0)
        return vram_fail(error, "caching: expandable_segments=on needs driver=counting: pages are "
                                "mapped to any free memory, which one arena cannot do");
    return true;
}

static void caching_destroy(vram_backend *backend)
{
    caching *self = (caching *)backend;
    vram_caching_destroy(self->model);
    caching_ranges_destroy(&self->ranges);
    free(self);
}

static bool caching_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    vram_caching_settings settings;
    if (!read_settings(config, &settings, error))
        return false;
    caching *self = calloc(1, sizeof *self);
    if (self == NULL)
        return vram_fail(error, "out of host memory");
    self->head.unit_bytes = VRAM_CACHING_MIN_BLOCK;
    self->head.arena_bytes = config->arena_bytes;
    self->counting = config->values[DRIVER].number == 1;
    self->memory_bytes = config->arena_bytes - config->arena_bytes % VRAM_CACHING_SMALL_SEGMENT;
    self->space_bytes = self->memory_bytes;
    if (self->counting) {
        self->space_bytes *= ADDRESSES_A_BYTE;
        self->head.address_bytes =
            self->space_bytes + config->arena_bytes % VRAM_CACHING_SMALL_SEGMENT;
        self->next_address_bytes = UINT64_C(1) << 63;
    }
    const vram_caching_driver driver = {.context = self,
                                        .take = driver_take,
                                        .give_back = driver_give_back,
                                        .reserve = driver_reserve,
                                        .unreserve = driver_give_back,
                                        .map = driver_map,
                                        .unmap = driver_unmap};
    self->model = vram_caching_create(&settings, &driver);
    if (self->model == NULL || !caching_ranges_create(&self->ranges, self->space_bytes)) {
        caching_destroy(&self->head);
        return vram_fail(error, "out of host memory");
    }
    *out = &self->head;
    return true;
}

/* ------------------------------------------------------------------------------------------------
 * blocks */

static uint64_t offset_of(const caching *self, const block *b)
{
    const segment *s = vram_caching_segment_at(self->model, b->segment);
    return self->ranges.ranges[s->cookie].offset_bytes + (b->address_bytes - s->address_bytes);
}

/* The block as its user knows it: its cookie is the padding in front. */
static vram_block public_block(const caching *self, uint32_t slot)
{
    const block *b = vram_caching_at(self->model, slot);
    return (vram_block){.offset_bytes = offset_of(self, b) + b->cookie,
                        .granted_bytes = b->size_bytes - b->cookie,
                        .handle = (uint64_t)b->generation << 32 | slot};
}

static vram_result caching_alloc(vram_backend *backend, const vram_request *request,
                                 vram_block *out)
{
    caching *self = (caching *)backend;
    uint64_t spare_bytes = 0;
    if (request->align_bytes > VRAM_CACHING_MIN_BLOCK)
        spare_bytes = request->align_bytes - VRAM_CACHING_MIN_BLOCK;
    uint32_t slot = NONE;
    const vram_caching_ask ask = {.size_bytes = request->size_bytes + spare_bytes,
                                  .stream = request->stream};
    const vram_result result = vram_caching_alloc(self->model, &ask, &slot);
    if (result != VRAM_OK)
        return result;
    if (spare_bytes > 0) {
        const uint64_t offset_bytes = public_block(self, slot).offset_bytes;
        const uint64_t padding_bytes =
            vram_round_up(offset_bytes, request->align_bytes) - offset_bytes;
        vram_caching_note(self->model, slot, padding_bytes);
        self->padding_bytes += padding_bytes;
    }
    *out = public_block(self, slot);
    return VRAM_OK;
}

/* The slot of a live block, or NONE. */
static uint32_t slot_of(const caching *self, vram_block given)
{
    const uint32_t slot = (uint32_t)given.handle;
    if (slot >= vram_caching_slots(self->model))
        return NONE;
    const block *b = vram_caching_at(self->model, slot);
    const bool live = b->state == VRAM_CACHING_LIVE && b->generation == given.handle >> 32 &&
                      public_block(self, slot).offset_bytes == given.offset_bytes;
    return live ? slot : NONE;
}

static vram_result caching_release(vram_backend *backend, vram_block given)
{
    caching *self = (caching *)backend;
    const uint32_t slot = slot_of(self, given);
    if (slot == NONE)
        return VRAM_STALE_BLOCK;
    self->padding_bytes -= vram_caching_at(self->model, slot)->cookie;
    vram_caching_free(self->model, slot);
    return VRAM_OK;
}

static vram_result caching_use(vram_backend *backend, vram_block given, uint32_t stream)
{
    caching *self = (caching *)backend;
    const uint32_t slot = slot_of(self, given);
    return slot == NONE ? VRAM_STALE_BLOCK : vram_caching_use(self->model, slot, stream);
}

static void caching_sync(vram_backend *backend, uint32_t stream)
{
    vram_caching_sync(((caching *)backend)->model, stream);
}

static uint64_t caching_trim(vram_backend *backend)
{
    return vram_caching_empty_cache(((caching *)backend)->model);
}

/* ------------------------------------------------------------------------------------------------
 * looking */

typedef struct walk {
    vram_visit *visit;
    void *context;
    uint64_t unreserved_bytes; /* not shown yet */
} walk;

static void show(const walk *self, uint64_t offset_bytes, uint64_t size_bytes, vram_span_kind kind)
{
    if (size_bytes > 0)
        self->visit(self->context, &(vram_span){.offset_bytes = offset_bytes,
                                                .size_bytes = size_bytes,
                                                .block_bytes = size_bytes,
                                                .kind = kind});
}

static void show_block(const caching *self, const walk *shown, uint32_t slot)
{
    const block *b = vram_caching_at(self->model, slot);
    if (b->state == VRAM_CACHING_FREE)
        show(shown, offset_of(self, b), b->size_bytes, VRAM_SPAN_FREE);
    else if (b->state == VRAM_CACHING_PENDING)
        show(shown, offset_of(self, b), b->size_bytes, VRAM_SPAN_PENDING);
    if (b->state != VRAM_CACHING_LIVE)
        return;
    const vram_block given = public_block(self, slot);
    show(shown, given.offset_bytes - b->cookie, b->cookie, VRAM_SPAN_PADDING);
    shown->visit(shown->context, &(vram_span){.offset_bytes = given.offset_bytes,
                                              .size_bytes = given.granted_bytes,
                                              .block_bytes = given.granted_bytes,
                                              .handle = given.handle,
                                              .kind = VRAM_SPAN_LIVE});
}

static void caching_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const caching *self = (const caching *)backend;
    walk shown = {visit, context, unreserved_bytes(self)};
    for (uint32_t index = 0; index != NONE; index = self->ranges.ranges[index].next) {
        const caching_range *range = &self->ranges.ranges[index];
        if (range->owner == NONE) {
            const uint64_t free_bytes = range->size_bytes < shown.unreserved_bytes
                                            ? range->size_bytes
                                            : shown.unreserved_bytes;
            show(&shown, range->offset_bytes, free_bytes, VRAM_SPAN_FREE);
            shown.unreserved_bytes -= free_bytes;
            continue;
        }
        const segment *s = vram_caching_segment_at(self->model, range->owner);
        for (uint32_t slot = s->first; slot != NONE;
             slot = vram_caching_at(self->model, slot)->next)
            show_block(self, &shown, slot);
    }
    show(&shown, self->space_bytes, self->head.arena_bytes - self->memory_bytes, VRAM_SPAN_PADDING);
}

static void caching_stats(const vram_backend *backend, vram_stats *out)
{
    const caching *self = (const caching *)backend;
    const vram_caching_stats *model = vram_caching_stats_of(self->model);
    *out = (vram_stats){
        .granted_bytes = model->allocated_bytes - self->padding_bytes,
        .free_bytes = self->memory_bytes - model->active_bytes,
        .pending_bytes = model->active_bytes - model->allocated_bytes,
        .padding_bytes = self->padding_bytes + (self->head.arena_bytes - self->memory_bytes),
        .live_blocks = model->live_blocks,
        .spans = model->blocks + self->ranges.used,
        .bookkeeping_bytes = sizeof *self + vram_caching_host_bytes(self->model) +
                             self->ranges.capacity * sizeof *self->ranges.ranges,
    };
}

/* The longest run of memory that a new segment could have once all cached memory is given back. */
static uint64_t largest_segment_bytes(const caching *self)
{
    uint64_t given_back_bytes = 0;
    uint64_t run_bytes = 0;
    uint64_t largest_bytes = 0;
    for (uint32_t index = 0; index != NONE; index = self->ranges.ranges[index].next) {
        const caching_range *range = &self->ranges.ranges[index];
        const bool is_free = range->owner == NONE;
        const block *first =
            is_free ? NULL
                    : vram_caching_at(self->model,
                                      vram_caching_segment_at(self->model, range->owner)->first);
        const bool whole =
            !is_free && first->state == VRAM_CACHING_FREE && first->size_bytes == range->size_bytes;
        given_back_bytes += whole ? range->size_bytes : 0;
        run_bytes = is_free || whole ? run_bytes + range->size_bytes : 0;
        largest_bytes = run_bytes > largest_bytes ? run_bytes : largest_bytes;
    }
    if (self->counting)
        largest_bytes = unreserved_bytes(self) + given_back_bytes;
    const uint64_t cap_bytes = vram_caching_settings_of(self->model)->cap_bytes;
    const uint64_t kept_bytes =
        vram_caching_stats_of(self->model)->reserved_bytes - given_back_bytes;
    const uint64_t allowed_bytes = cap_bytes > kept_bytes ? cap_bytes - kept_bytes : 0;
    return largest_bytes < allowed_bytes ? largest_bytes : allowed_bytes;
}

/* The largest request that gets a segment out of so much memory. From 1 to 10 MiB it would have to
 * be one of 20 MiB. */
static uint64_t request_of_segment(uint64_t segment_bytes)
{
    if (segment_bytes >= VRAM_CACHING_MIN_LARGE)
        return segment_bytes;
    return segment_bytes >= VRAM_CACHING_SMALL_SEGMENT ? VRAM_CACHING_SMALL_MAX : 0;
}

/* Cached blocks serve their own stream and pool only, and free segments any. */
static void caching_explain(const vram_backend *backend, const vram_request *request,
                            vram_failure *failure)
{
    const caching *self = (const caching *)backend;
    const uint64_t cached_bytes = vram_caching_largest_free(self->model, request->stream);
    const uint64_t fresh_bytes = request_of_segment(largest_segment_bytes(self));
    const uint64_t seen_bytes = failure->largest_free_bytes; /* by the walk, for whom it may be */
    failure->largest_free_bytes = cached_bytes > fresh_bytes ? cached_bytes : fresh_bytes;
    if (failure->reason == VRAM_REASON_FRAGMENTED &&
        (request->size_bytes <= seen_bytes || request->size_bytes <= failure->largest_free_bytes))
        failure->reason = VRAM_REASON_CLASS_FULL; /* what is free is the other half's, another
                                                     stream's, or no segment for this size */
}

/* ------------------------------------------------------------------------------------------------
 * check */

static bool check_places(const caching *self, vram_fault *fault)
{
    uint64_t taken = 0;
    for (uint32_t index = 0; index != NONE; index = self->ranges.ranges[index].next) {
        const caching_range *range = &self->ranges.ranges[index];
        if (range->owner == NONE)
            continue;
        const segment *s = vram_caching_segment_at(self->model, range->owner);
        if (s == NULL || s->vacant || s->cookie != index || s->size_bytes != range->size_bytes ||
            (!self->counting && s->address_bytes != range->offset_bytes))
            return vram_fault_at(fault, "D1 placed", range->offset_bytes);
        taken++;
    }
    return taken == vram_caching_stats_of(self->model)->segments ||
           vram_fault_at(fault, "D1 placed", 0);
}

typedef struct sums {
    uint64_t bytes[VRAM_SPAN_KINDS];
} sums;

static void add_span(void *context, const vram_span *span)
{
    ((sums *)context)->bytes[span->kind] += span->size_bytes;
}

static bool caching_check(const vram_backend *backend, vram_fault *fault)
{
    const caching *self = (const caching *)backend;
    if (!vram_caching_check(self->model, fault) ||
        !caching_ranges_check(&self->ranges, self->space_bytes, fault) ||
        !check_places(self, fault))
        return false;
    sums walked = {{0}};
    caching_walk(backend, add_span, &walked);
    vram_stats stats;
    caching_stats(backend, &stats);
    return (walked.bytes[VRAM_SPAN_LIVE] == stats.granted_bytes &&
            walked.bytes[VRAM_SPAN_FREE] == stats.free_bytes &&
            walked.bytes[VRAM_SPAN_PENDING] == stats.pending_bytes &&
            walked.bytes[VRAM_SPAN_PADDING] == stats.padding_bytes) ||
           vram_fault_at(fault, "D2 counted", 0);
}

const vram_ops vram_caching_ops = {
    .abi = VRAM_ABI,
    .name = "caching",
    .summary = "PyTorch's CUDA caching allocator, rule for rule",
    .options = caching_options,
    .create = caching_create,
    .destroy = caching_destroy,
    .alloc = caching_alloc,
    .release = caching_release,
    .walk = caching_walk,
    .check = caching_check,
    .stats = caching_stats,
    .explain = caching_explain,
    .trim = caching_trim,
    .use = caching_use,
    .sync = caching_sync,
};
