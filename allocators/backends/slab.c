/*
 * slab.c - caches of equal objects, cut out of slabs that a page layer provides.
 *
 *   cache of 48 KiB:   partial -> [##.#.###] -> [#.......]     '#' live   '.' free
 *                      full       [########]                   (in no list)
 *                      empty   -> [........]                   at most `empty` are kept
 *
 *   arena, as the page layer sees it:   | slab | large | slab |........| slab |....
 *
 * A request goes to the cache of its size class; the cache takes the lowest free object of its
 * first partial slab, else an empty slab, else a new one from the page layer. Requests above
 * `large`, and those for which no slab can be had, are blocks of the page layer themselves. When
 * the page layer has nothing left, every empty slab is given back and it is asked once more.
 * Classes are `steps` to each doubling of the unit.
 *
 * I1  each slab is a live block of the page layer, and together with the large blocks they are all
 *     of them; the map finds each slab by its offset.
 * I2  a slab's mask has a bit for exactly those of its objects that are free.
 * I3  a slab is in the list that its number of free objects says, and a cache's counts are those
 *     of its lists.
 * I4  the counters of stats equal the sums over the slabs.
 *
 * alloc, release: O(1), and the page layer's when a slab comes or goes. check: O(objects). Host
 * memory: 320 bytes a slab of 8 to 64 objects, and the page layer's. Bonwick 1994.
 */
#include "core/core.h"
#include "core/offset_map.h"

#include <vramlab/registry.h>

#include <stdlib.h>

#define LARGE_SLOT   (UINT32_C(1) << 31) /* set in the slot of a block of the page layer */
#define NO_SLAB      UINT32_MAX
#define SLAB_NATURAL (UINT64_C(2) << 20) /* slabs are aligned to at most this */

enum {
    OBJECTS_LEAST = 8, /* so that at most an eighth of a slab is needed for one object */
    OBJECTS_MOST = 64, /* bits of a mask */
    CLASSES_MOST = 51 * 8,
};

typedef struct slab_record {
    vram_block page; /* handle 0: this record is unused */
    uint64_t free_mask;
    uint32_t class;
    uint32_t objects;
    uint32_t before, after; /* in its cache's list; unused records are chained by `after` */
    uint32_t generations[OBJECTS_MOST]; /* of live objects; 0 while free */
} slab_record;

typedef struct cache {
    uint64_t object_bytes;
    uint32_t partial; /* first of the list, or NO_SLAB */
    uint32_t empty;
    uint32_t empty_count;
    uint32_t slab_count;
} cache;

typedef struct slab {
    vram_backend head;
    vram_backend *pages;
    vram_offset_map by_offset;
    slab_record *slabs;
    size_t slab_capacity;
    uint32_t slabs_made; /* records below it have been used */
    uint32_t unused;     /* first of the unused records, or NO_SLAB */
    uint32_t generation; /* of the object given out last */
    uint32_t step_log2;
    uint32_t empty_kept;
    uint64_t target_bytes; /* of a slab */
    uint64_t large_bytes;
    uint64_t live_objects, live_object_bytes;
    uint64_t large_blocks;
    uint64_t slab_object_bytes; /* of all objects of all slabs */
    uint64_t tail_bytes;        /* at the ends of slabs */
    uint32_t class_count;
    cache caches[];
} slab;

enum { SLAB_TARGET, SLAB_LARGE, SLAB_EMPTY, SLAB_STEPS, SLAB_PAGES, SLAB_UNIT };

static const vram_option slab_options[] = {
    [SLAB_TARGET] = {.name = "slab",
                     .type = VRAM_OPTION_SIZE,
                     .fallback = "256KiB",
                     .least = 1,
                     .most = VRAM_ARENA_MAX,
                     .help =
                         "size that a slab aims at; it holds 8 to 64 objects whatever they are"},
    [SLAB_LARGE] = {.name = "large",
                    .type = VRAM_OPTION_SIZE,
                    .fallback = "1MiB",
                    .least = 1,
                    .most = VRAM_ARENA_MAX,
                    .help = "requests above it go to the page layer by themselves"},
    [SLAB_EMPTY] = {.name = "empty",
                    .type = VRAM_OPTION_COUNT,
                    .fallback = "1",
                    .least = 0,
                    .most = 1000000,
                    .help = "empty slabs that each cache keeps"},
    [SLAB_STEPS] = {.name = "steps",
                    .type = VRAM_OPTION_CHOICE,
                    .fallback = "4",
                    .choices = "1|2|4|8",
                    .help = "size classes to each doubling"},
    [SLAB_PAGES] = {.name = "pages",
                    .type = VRAM_OPTION_TEXT,
                    .fallback = "list",
                    .help = "the backend that is the page layer"},
    [SLAB_UNIT] = VRAM_UNIT_OPTION,
    {.name = NULL},
};

/* ---- classes: 1, 2, ... units, then `steps` to each doubling ---- */

static uint32_t class_of(const slab *self, uint64_t size_bytes)
{
    const uint64_t last = (size_bytes - 1) / self->head.unit_bytes;
    const uint32_t steps_log2 = self->step_log2;
    const uint32_t shift =
        last >> steps_log2 == 0 ? 0 : 63 - (uint32_t)__builtin_clzll(last) - steps_log2;
    return (shift << steps_log2) + (uint32_t)(last >> shift);
}

static uint64_t class_bytes(const slab *self, uint32_t class)
{
    const uint32_t steps = UINT32_C(1) << self->step_log2;
    const uint32_t shift = class < steps ? 0 : (class >> self->step_log2) - 1;
    const uint64_t units = ((uint64_t)(class - (shift << self->step_log2)) + 1) << shift;
    return units * self->head.unit_bytes;
}

static uint64_t natural_alignment(uint64_t object_bytes)
{
    const uint64_t lowest_bit = object_bytes & -object_bytes;
    return lowest_bit < SLAB_NATURAL ? lowest_bit : SLAB_NATURAL;
}

static uint32_t objects_of(const slab *self, uint64_t object_bytes)
{
    const uint64_t fit = self->target_bytes / object_bytes;
    return fit < OBJECTS_LEAST ? OBJECTS_LEAST : fit > OBJECTS_MOST ? OBJECTS_MOST : (uint32_t)fit;
}

static uint64_t full_mask(uint32_t objects)
{
    return objects == 64 ? UINT64_MAX : (UINT64_C(1) << objects) - 1;
}

/* ---- lists of a cache ---- */

static void link_slab(slab *self, uint32_t *first, uint32_t number)
{
    slab_record *record = &self->slabs[number];
    record->before = NO_SLAB;
    record->after = *first;
    if (*first != NO_SLAB)
        self->slabs[*first].before = number;
    *first = number;
}

static void unlink_slab(slab *self, uint32_t *first, uint32_t number)
{
    const slab_record *record = &self->slabs[number];
    if (record->before != NO_SLAB)
        self->slabs[record->before].after = record->after;
    else
        *first = record->after;
    if (record->after != NO_SLAB)
        self->slabs[record->after].before = record->before;
}

/* ---- slabs come and go ---- */

static bool reserve_record(slab *self)
{
    return (self->unused != NO_SLAB || self->slabs_made < LARGE_SLOT / OBJECTS_MOST) &&
           (self->unused != NO_SLAB || vram_reserve((void **)&self->slabs, &self->slab_capacity,
                                                    self->slabs_made + 1u, sizeof *self->slabs)) &&
           vram_offset_map_reserve(&self->by_offset);
}

static uint32_t take_record(slab *self)
{
    const uint32_t number = self->unused;
    if (number == NO_SLAB)
        return self->slabs_made++;
    self->unused = self->slabs[number].after;
    return number;
}

/* Gives an empty slab, in its cache's list, back to the page layer. */
static void drop_slab(slab *self, uint32_t number)
{
    slab_record *record = &self->slabs[number];
    cache *of = &self->caches[record->class];
    unlink_slab(self, &of->empty, number);
    of->empty_count--;
    of->slab_count--;
    const uint64_t objects_bytes = record->objects * of->object_bytes;
    self->slab_object_bytes -= objects_bytes;
    self->tail_bytes -= record->page.granted_bytes - objects_bytes;
    vram_offset_map_remove(&self->by_offset, record->page.offset_bytes);
    vram_release(self->pages, record->page);
    record->page.handle = 0;
    record->after = self->unused;
    self->unused = number;
}

static uint64_t slab_trim(vram_backend *backend)
{
    slab *self = (slab *)backend;
    uint64_t given_back_bytes = 0;
    for (uint32_t class = 0; class < self->class_count; class ++)
        while (self->caches[class].empty != NO_SLAB) {
            const uint32_t number = self->caches[class].empty;
            given_back_bytes += self->slabs[number].page.granted_bytes;
            drop_slab(self, number);
        }
    return given_back_bytes;
}

/* A block of the page layer; when there is none, once more without any empty slab. */
static vram_result take_pages(slab *self, const vram_request *request, vram_block *out)
{
    const vram_result result = vram_alloc(self->pages, *request, out);
    return result == VRAM_NO_SPACE && slab_trim(&self->head) > 0
               ? vram_alloc(self->pages, *request, out)
               : result;
}

/* Makes a slab, empty and in its cache's list. */
static vram_result make_slab(slab *self, uint32_t class, const vram_request *request)
{
    cache *of = &self->caches[class];
    const uint32_t objects = objects_of(self, of->object_bytes);
    const uint64_t objects_bytes = objects * of->object_bytes;
    if (!reserve_record(self))
        return VRAM_NO_METADATA;
    const vram_request wanted = {.size_bytes = objects_bytes,
                                 .align_bytes = natural_alignment(of->object_bytes),
                                 .stream = request->stream,
                                 .tag = request->tag};
    vram_block page;
    const vram_result result = take_pages(self, &wanted, &page);
    if (result != VRAM_OK)
        return result;
    const uint32_t number = take_record(self);
    self->slabs[number] = (slab_record){
        .page = page, .free_mask = full_mask(objects), .class = class, .objects = objects};
    vram_offset_map_put(&self->by_offset, page.offset_bytes, number);
    link_slab(self, &of->empty, number);
    of->empty_count++;
    of->slab_count++;
    self->slab_object_bytes += objects_bytes;
    self->tail_bytes += page.granted_bytes - objects_bytes;
    return VRAM_OK;
}

/* ---- objects ---- */

static vram_block publish(slab *self, uint32_t number, uint64_t object_bytes)
{
    slab_record *record = &self->slabs[number];
    const uint32_t object = (uint32_t)__builtin_ctzll(record->free_mask);
    record->free_mask &= record->free_mask - 1;
    if (++self->generation == 0) /* a generation is never 0 */
        self->generation = 1;
    record->generations[object] = self->generation;
    self->live_objects++;
    self->live_object_bytes += object_bytes;
    return (vram_block){.offset_bytes = record->page.offset_bytes + object * object_bytes,
                        .granted_bytes = object_bytes,
                        .handle =
                            (uint64_t)self->generation << 32 | (number * OBJECTS_MOST + object)};
}

/* The cache has no partial slab: an empty one becomes it. */
static vram_result open_slab(slab *self, uint32_t class, const vram_request *request)
{
    cache *of = &self->caches[class];
    if (of->empty == NO_SLAB) {
        const vram_result result = make_slab(self, class, request);
        if (result != VRAM_OK)
            return result;
    }
    const uint32_t number = of->empty;
    unlink_slab(self, &of->empty, number);
    of->empty_count--;
    link_slab(self, &of->partial, number);
    return VRAM_OK;
}

static vram_result take_large(slab *self, const vram_request *request, vram_block *out)
{
    const vram_result result = take_pages(self, request, out);
    if (result != VRAM_OK)
        return result;
    out->handle |= LARGE_SLOT;
    self->large_blocks++;
    return VRAM_OK;
}

/* The first class from the size's own on whose objects are aligned as asked for; class_count: none.
 */
static uint32_t aligned_class(const slab *self, const vram_request *request)
{
    uint32_t class = class_of(self, request->size_bytes);
    while (class < self->class_count &&
           natural_alignment(self->caches[class].object_bytes) < request->align_bytes)
        class ++;
    return class;
}

static vram_result slab_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    slab *self = (slab *)backend;
    if (request->size_bytes > self->large_bytes)
        return take_large(self, request, out);
    const uint32_t class = aligned_class(self, request);
    if (class >= self->class_count)
        return take_large(self, request, out);
    cache *of = &self->caches[class];
    if (of->partial == NO_SLAB) {
        const vram_result result = open_slab(self, class, request);
        if (result == VRAM_NO_SPACE)
            return take_large(self, request, out);
        if (result != VRAM_OK)
            return result;
    }
    const uint32_t number = of->partial;
    *out = publish(self, number, of->object_bytes);
    if (self->slabs[number].free_mask == 0)
        unlink_slab(self, &of->partial, number);
    return VRAM_OK;
}

static bool is_large(uint64_t handle)
{
    return (handle & LARGE_SLOT) != 0;
}

static vram_block as_page(vram_block block)
{
    block.handle &= ~(uint64_t)LARGE_SLOT;
    return block;
}

/* The page layer's blocks that are slabs are not the caller's to release. */
static bool names_a_slab(const slab *self, vram_block page)
{
    const uint32_t number = vram_offset_map_find(&self->by_offset, page.offset_bytes);
    return number != VRAM_OFFSET_MAP_NONE && self->slabs[number].page.handle == page.handle;
}

static vram_result release_large(slab *self, vram_block block)
{
    if (names_a_slab(self, as_page(block)))
        return VRAM_STALE_BLOCK;
    const vram_result result = vram_release(self->pages, as_page(block));
    self->large_blocks -= result == VRAM_OK;
    return result;
}

/* The slab of a live object, or NO_SLAB when the block is stale. */
static uint32_t slab_of(const slab *self, const vram_block *block)
{
    const uint32_t number = (uint32_t)block->handle / OBJECTS_MOST;
    const uint32_t object = (uint32_t)block->handle % OBJECTS_MOST;
    if (number >= self->slabs_made)
        return NO_SLAB;
    const slab_record *record = &self->slabs[number];
    if (record->page.handle == 0 || record->generations[object] != block->handle >> 32 ||
        block->offset_bytes !=
            record->page.offset_bytes + object * self->caches[record->class].object_bytes)
        return NO_SLAB;
    return number;
}

/* A slab has just become empty: it is kept, or goes. */
static void close_slab(slab *self, uint32_t number)
{
    cache *of = &self->caches[self->slabs[number].class];
    unlink_slab(self, &of->partial, number);
    link_slab(self, &of->empty, number);
    if (++of->empty_count > self->empty_kept)
        drop_slab(self, number);
}

static void release_object(slab *self, uint32_t number, uint32_t object)
{
    slab_record *record = &self->slabs[number];
    cache *of = &self->caches[record->class];
    if (record->free_mask == 0)
        link_slab(self, &of->partial, number);
    record->free_mask |= UINT64_C(1) << object;
    record->generations[object] = 0;
    self->live_objects--;
    self->live_object_bytes -= of->object_bytes;
    if (record->free_mask == full_mask(record->objects))
        close_slab(self, number);
}

static vram_result slab_release(vram_backend *backend, vram_block block)
{
    slab *self = (slab *)backend;
    if (is_large(block.handle)) {
        const vram_result result = release_large(self, block);
        if (result != VRAM_OK)
            return result;
    } else {
        const uint32_t number = slab_of(self, &block);
        if (number == NO_SLAB)
            return VRAM_STALE_BLOCK;
        release_object(self, number, (uint32_t)block.handle % OBJECTS_MOST);
    }
    if (self->live_objects + self->large_blocks == 0)
        slab_trim(backend); /* an empty arena has no memory of what was in it */
    return VRAM_OK;
}

static vram_result slab_resize(vram_backend *backend, vram_block *block, uint64_t size_bytes)
{
    slab *self = (slab *)backend;
    if (is_large(block->handle)) {
        vram_block page = as_page(*block);
        if (names_a_slab(self, page))
            return VRAM_STALE_BLOCK;
        const vram_result result = vram_resize(self->pages, &page, size_bytes);
        if (result == VRAM_OK) {
            *block = page;
            block->handle |= LARGE_SLOT;
        }
        return result;
    }
    const uint32_t number = slab_of(self, block);
    if (number == NO_SLAB)
        return VRAM_STALE_BLOCK;
    return size_bytes <= self->caches[self->slabs[number].class].object_bytes ? VRAM_OK
                                                                              : VRAM_NO_SPACE;
}

/* ---- creation ---- */

static void slab_destroy(vram_backend *backend)
{
    slab *self = (slab *)backend;
    vram_destroy(self->pages);
    vram_offset_map_free(&self->by_offset);
    free(self->slabs);
    free(self);
}

static bool slab_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    const vram_value *values = config->values;
    uint64_t unit_bytes = 0;
    if (!vram_unit_of(config, &values[SLAB_UNIT], &unit_bytes, error))
        return false;
    slab *self = calloc(1, sizeof *self + CLASSES_MOST * sizeof self->caches[0]);
    if (self == NULL)
        return vram_fail(error, "slab: out of host memory");
    self->head.arena_bytes = config->arena_bytes;
    self->head.unit_bytes = unit_bytes;
    self->unused = NO_SLAB;
    self->step_log2 = (uint32_t)values[SLAB_STEPS].number;
    self->empty_kept = (uint32_t)values[SLAB_EMPTY].number;
    self->target_bytes = values[SLAB_TARGET].number;
    self->large_bytes = values[SLAB_LARGE].number < config->arena_bytes ? values[SLAB_LARGE].number
                                                                        : config->arena_bytes;
    self->class_count = class_of(self, self->large_bytes) + 1;
    for (uint32_t class = 0; class < self->class_count; class ++)
        self->caches[class] =
            (cache){.object_bytes = class_bytes(self, class), .partial = NO_SLAB, .empty = NO_SLAB};
    vram_config own = *config;
    vram_error why = {""};
    own.unit_bytes = unit_bytes;
    if (!vram_create_from_text(values[SLAB_PAGES].text, &own, &self->pages, &why)) {
        slab_destroy(&self->head);
        return vram_fail(error, "slab: pages=%s: %s", values[SLAB_PAGES].text, why.text);
    }
    *out = &self->head;
    return true;
}

/* ---- walk ---- */

typedef struct slab_walk {
    const slab *self;
    vram_visit *visit;
    void *context;
} slab_walk;

/* The objects of a slab: each live one, runs of free ones, and the end that is none. */
static void walk_slab(const slab_walk *walk, uint32_t number)
{
    const slab_record *record = &walk->self->slabs[number];
    const uint64_t object_bytes = walk->self->caches[record->class].object_bytes;
    vram_span span = {.offset_bytes = record->page.offset_bytes, .block_bytes = object_bytes};
    for (uint32_t object = 0; object < record->objects;) {
        const bool is_free = (record->free_mask >> object & 1) != 0;
        uint32_t end = object + 1;
        while (is_free && end < record->objects && (record->free_mask >> end & 1) != 0)
            end++;
        span.size_bytes = (end - object) * object_bytes;
        span.kind = is_free ? VRAM_SPAN_BOUND : VRAM_SPAN_LIVE;
        span.handle = is_free ? 0
                              : (uint64_t)record->generations[object] << 32 |
                                    (number * OBJECTS_MOST + object);
        walk->visit(walk->context, &span);
        span.offset_bytes += span.size_bytes;
        object = end;
    }
    const uint64_t end_bytes = record->page.offset_bytes + record->page.granted_bytes;
    if (span.offset_bytes < end_bytes)
        walk->visit(walk->context, &(vram_span){.offset_bytes = span.offset_bytes,
                                                .size_bytes = end_bytes - span.offset_bytes,
                                                .block_bytes = end_bytes - span.offset_bytes,
                                                .kind = VRAM_SPAN_PADDING});
}

static void visit_page(void *context, const vram_span *span)
{
    const slab_walk *walk = context;
    vram_span own = *span;
    if (own.kind == VRAM_SPAN_LIVE) {
        const uint32_t number = vram_offset_map_find(&walk->self->by_offset, own.offset_bytes);
        if (number != VRAM_OFFSET_MAP_NONE) {
            walk_slab(walk, number);
            return;
        }
        own.handle |= LARGE_SLOT;
    }
    walk->visit(walk->context, &own);
}

static void slab_walk_all(const vram_backend *backend, vram_visit *visit, void *context)
{
    const slab *self = (const slab *)backend;
    slab_walk walk = {.self = self, .visit = visit, .context = context};
    vram_walk(self->pages, visit_page, &walk);
}

/* ---- check ---- */

typedef struct page_count {
    const slab *self;
    uint64_t slabs, larges;
    uint64_t wrong_at; /* UINT64_MAX: nothing wrong */
} page_count;

static void count_page(void *context, const vram_span *span)
{
    page_count *count = context;
    if (span->kind != VRAM_SPAN_LIVE)
        return;
    const slab *self = count->self;
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

static bool check_mask(const slab_record *record, vram_fault *fault)
{
    if ((record->free_mask & ~full_mask(record->objects)) != 0)
        return vram_fault_at(fault, "I2 masked", record->page.offset_bytes);
    for (uint32_t object = 0; object < record->objects; object++)
        if ((record->generations[object] == 0) != ((record->free_mask >> object & 1) != 0))
            return vram_fault_at(fault, "I2 masked", record->page.offset_bytes);
    return true;
}

/* The length of a list whose slabs all pass; UINT32_MAX when one does not, or there is no end. */
static uint32_t count_list(const slab *self, uint32_t first, uint32_t class, bool empties)
{
    uint32_t count = 0;
    uint32_t before = NO_SLAB;
    for (uint32_t number = first; number != NO_SLAB; number = self->slabs[number].after) {
        if (number >= self->slabs_made || count++ > self->slabs_made)
            return UINT32_MAX;
        const slab_record *record = &self->slabs[number];
        const bool is_empty = record->free_mask == full_mask(record->objects);
        if (record->page.handle == 0 || record->class != class || record->before != before ||
            record->free_mask == 0 || is_empty != empties)
            return UINT32_MAX;
        before = number;
    }
    return count;
}

/* What the slabs of one cache add up to, seen from the records rather than from the lists. */
typedef struct tally {
    uint32_t slabs, partial, empty;
} tally;

static bool check_lists(const slab *self, vram_fault *fault)
{
    tally seen[CLASSES_MOST] = {0};
    for (uint32_t number = 0; number < self->slabs_made; number++) {
        const slab_record *record = &self->slabs[number];
        if (record->page.handle == 0)
            continue;
        const bool is_empty = record->free_mask == full_mask(record->objects);
        seen[record->class].slabs++;
        seen[record->class].empty += is_empty;
        seen[record->class].partial += !is_empty && record->free_mask != 0;
    }
    for (uint32_t class = 0; class < self->class_count; class ++) {
        const cache *of = &self->caches[class];
        if (of->slab_count != seen[class].slabs || of->empty_count != seen[class].empty ||
            count_list(self, of->empty, class, true) != seen[class].empty ||
            count_list(self, of->partial, class, false) != seen[class].partial)
            return vram_fault_at(fault, "I3 listed", 0);
    }
    return true;
}

static bool slab_check(const vram_backend *backend, vram_fault *fault)
{
    const slab *self = (const slab *)backend;
    if (!vram_check(self->pages, fault))
        return false;
    uint64_t slabs = 0, objects = 0, live_bytes = 0, object_bytes = 0, tail_bytes = 0;
    for (uint32_t number = 0; number < self->slabs_made; number++) {
        const slab_record *record = &self->slabs[number];
        if (record->page.handle == 0)
            continue;
        if (record->class >= self->class_count || record->objects == 0 ||
            record->objects > OBJECTS_MOST || !check_mask(record, fault))
            return vram_fault_at(fault, "I2 masked", record->page.offset_bytes);
        const uint64_t size_bytes = self->caches[record->class].object_bytes;
        const uint64_t live = record->objects - (uint64_t)__builtin_popcountll(record->free_mask);
        slabs++;
        objects += live;
        live_bytes += live * size_bytes;
        object_bytes += record->objects * size_bytes;
        tail_bytes += record->page.granted_bytes - record->objects * size_bytes;
    }
    if (!check_lists(self, fault))
        return false;
    page_count pages = {.self = self, .wrong_at = UINT64_MAX};
    vram_walk(self->pages, count_page, &pages);
    if (pages.wrong_at != UINT64_MAX || pages.slabs != slabs || self->by_offset.count != slabs ||
        pages.larges != self->large_blocks)
        return vram_fault_at(fault, "I1 paged", pages.wrong_at);
    if (objects != self->live_objects || live_bytes != self->live_object_bytes ||
        object_bytes != self->slab_object_bytes || tail_bytes != self->tail_bytes)
        return vram_fault_at(fault, "I4 counted", 0);
    return true;
}

static void slab_stats(const vram_backend *backend, vram_stats *out)
{
    const slab *self = (const slab *)backend;
    *out = vram_stats_of(self->pages);
    out->granted_bytes =
        out->granted_bytes - self->slab_object_bytes - self->tail_bytes + self->live_object_bytes;
    out->bound_bytes += self->slab_object_bytes - self->live_object_bytes;
    out->padding_bytes += self->tail_bytes;
    out->live_blocks = self->live_objects + self->large_blocks;
    out->spans += self->slabs_made;
    out->bookkeeping_bytes += sizeof *self + CLASSES_MOST * sizeof self->caches[0] +
                              self->slab_capacity * sizeof *self->slabs +
                              self->by_offset.capacity * sizeof *self->by_offset.entries;
}

/* Small requests want a free object of their class, or pages for a slab of it. */
static void slab_explain(const vram_backend *backend, const vram_request *request,
                         vram_failure *failure)
{
    const slab *self = (const slab *)backend;
    if (failure->reason != VRAM_REASON_FRAGMENTED)
        return;
    if (request->size_bytes <= self->large_bytes)
        failure->reason = VRAM_REASON_CLASS_FULL;
    else if (vram_explain(self->pages, *request).reason != VRAM_REASON_BYTES)
        failure->reason = vram_explain(self->pages, *request).reason;
}

const vram_ops vram_slab_ops = {
    .abi = VRAM_ABI,
    .name = "slab",
    .summary = "caches of equal objects in slabs from a page layer; large requests to that layer",
    .options = slab_options,
    .create = slab_create,
    .destroy = slab_destroy,
    .alloc = slab_alloc,
    .release = slab_release,
    .walk = slab_walk_all,
    .check = slab_check,
    .stats = slab_stats,
    .explain = slab_explain,
    .resize = slab_resize,
    .trim = slab_trim,
};
