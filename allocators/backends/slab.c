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
 * Classes are `steps` to each doubling of the unit. When the last live block goes, the empty slabs
 * go too: an empty arena has no memory of what was in it.
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
#include "backends/slab.h"

#include <vramlab/registry.h>

#include <stdlib.h>

_Static_assert(sizeof(slab_record) == 320, "as the comment above says; its head is a cache line");

#define MOST_ALIGN_BYTES (UINT64_C(2) << 20) /* slabs are aligned to at most this */

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

/* By the whole units in size - 1. */
static uint32_t class_of_units(const slab *self, uint64_t units)
{
    const uint32_t steps_log2 = self->step_log2;
    const uint32_t shift =
        units >> steps_log2 == 0 ? 0 : 63 - (uint32_t)__builtin_clzll(units) - steps_log2;
    return (shift << steps_log2) + (uint32_t)(units >> shift);
}

static uint32_t class_of(const slab *self, uint64_t size_bytes)
{
    const uint64_t units = (size_bytes - 1) >> self->unit_log2;
    return units < SLAB_TABLE_UNITS ? self->class_by_units[units] : class_of_units(self, units);
}

static uint64_t class_bytes(const slab *self, uint32_t class)
{
    const uint32_t steps = UINT32_C(1) << self->step_log2;
    const uint32_t shift = class < steps ? 0 : (class >> self->step_log2) - 1;
    const uint64_t units = ((uint64_t)(class - (shift << self->step_log2)) + 1) << shift;
    return units << self->unit_log2;
}

static uint64_t natural_alignment(uint64_t object_bytes)
{
    const uint64_t lowest_bit = object_bytes & -object_bytes;
    return lowest_bit < MOST_ALIGN_BYTES ? lowest_bit : MOST_ALIGN_BYTES;
}

static uint32_t objects_to_aim_at(const slab *self, uint64_t object_bytes)
{
    const uint64_t fit = self->target_bytes / object_bytes;
    return fit < SLAB_OBJECTS_LEAST  ? SLAB_OBJECTS_LEAST
           : fit > SLAB_OBJECTS_MOST ? SLAB_OBJECTS_MOST
                                     : (uint32_t)fit;
}

/* ---- lists of a cache: the first has no `before`, so that to take it off is one store ---- */

static inline void link_slab(slab *self, uint32_t *first, uint32_t number)
{
    self->slabs[number].after = *first;
    self->slabs[*first].before = number; /* slab 0, at the end, takes it too */
    *first = number;
}

static void unlink_slab(slab *self, uint32_t *first, uint32_t number)
{
    const slab_record *record = &self->slabs[number];
    if (*first == number) {
        *first = record->after;
        return;
    }
    self->slabs[record->before].after = record->after;
    self->slabs[record->after].before = record->before;
}

/* ---- slabs come and go ---- */

static bool reserve_record(slab *self)
{
    if (self->unused == 0 && (self->slabs_made == SLAB_LARGE_SLOT / SLAB_OBJECTS_MOST ||
                              !vram_reserve((void **)&self->slabs, &self->slab_capacity,
                                            self->slabs_made + 1u, sizeof *self->slabs)))
        return false;
    return vram_offset_map_reserve(&self->by_offset);
}

static uint32_t take_record(slab *self)
{
    const uint32_t number = self->unused;
    if (number == 0)
        return self->slabs_made++;
    self->unused = self->slabs[number].after;
    return number;
}

/* Gives an empty slab, in its cache's list, back to the page layer. */
static void drop_slab(slab *self, uint32_t number)
{
    slab_record *record = &self->slabs[number];
    slab_cache *of = &self->caches[record->class];
    unlink_slab(self, &of->empty, number);
    of->empty_count--;
    of->slab_count--;
    const uint64_t objects_bytes = slab_objects(record) * record->object_bytes;
    self->object_bytes -= objects_bytes;
    self->free_object_bytes -= objects_bytes;
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
        while (self->caches[class].empty != 0) {
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
    slab_cache *of = &self->caches[class];
    const uint32_t objects = objects_to_aim_at(self, of->object_bytes);
    const uint64_t objects_bytes = objects * of->object_bytes;
    if (!reserve_record(self))
        return VRAM_NO_METADATA;
    const vram_request wanted = {.size_bytes = objects_bytes,
                                 .align_bytes = of->align_bytes,
                                 .stream = request->stream,
                                 .tag = request->tag};
    vram_block page;
    const vram_result result = take_pages(self, &wanted, &page);
    if (result != VRAM_OK)
        return result;
    const uint32_t number = take_record(self);
    const uint64_t all_mask = UINT64_MAX >> (SLAB_OBJECTS_MOST - objects);
    self->slabs[number] = (slab_record){.page = page,
                                        .free_mask = all_mask,
                                        .all_mask = all_mask,
                                        .object_bytes = of->object_bytes,
                                        .class = class};
    vram_offset_map_put(&self->by_offset, page.offset_bytes, number);
    link_slab(self, &of->empty, number);
    of->empty_count++;
    of->slab_count++;
    self->object_bytes += objects_bytes;
    self->free_object_bytes += objects_bytes;
    self->tail_bytes += page.granted_bytes - objects_bytes;
    return VRAM_OK;
}

/* The cache has no partial slab: an empty one becomes it. */
static vram_result open_slab(slab *self, uint32_t class, const vram_request *request)
{
    slab_cache *of = &self->caches[class];
    if (of->empty == 0) {
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

/* A slab, still in the list of partial ones, has just become empty: it is kept, or goes. */
static void close_slab(slab *self, uint32_t number)
{
    slab_cache *of = &self->caches[self->slabs[number].class];
    unlink_slab(self, &of->partial, number);
    link_slab(self, &of->empty, number);
    if (++of->empty_count > self->empty_kept)
        drop_slab(self, number);
}

/* ---- alloc: what is seldom needed stands apart, so that the rest needs no stack ---- */

static __attribute__((noinline)) vram_result take_large(slab *self, const vram_request *request,
                                                        vram_block *out)
{
    const vram_result result = take_pages(self, request, out);
    if (result != VRAM_OK)
        return result;
    out->handle |= SLAB_LARGE_SLOT;
    self->large_blocks++;
    return VRAM_OK;
}

/* The lowest free object of the first partial slab; there is one. */
static inline void take_object(slab *self, slab_cache *of, vram_block *out)
{
    const uint32_t number = of->partial;
    slab_record *record = &self->slabs[number];
    const uint32_t object = (uint32_t)__builtin_ctzll(record->free_mask);
    const uint32_t generation = (uint32_t)self->taken * 2 + 1; /* never 0 */
    self->taken++;
    self->free_object_bytes -= record->object_bytes;
    record->generations[object] = generation;
    record->free_mask &= record->free_mask - 1;
    if (record->free_mask == 0)
        of->partial = record->after;
    out->offset_bytes = record->page.offset_bytes + object * record->object_bytes;
    out->granted_bytes = record->object_bytes;
    out->handle = slab_handle(generation, number, object);
}

/* The first of the classes from this one on whose objects are aligned as asked for; class_count:
 * none. */
static uint32_t aligned_class(const slab *self, uint32_t class, uint64_t align_bytes)
{
    while (class < self->class_count && self->caches[class].align_bytes < align_bytes)
        class ++;
    return class;
}

/* What slab_alloc does when the class is not aligned enough or has no partial slab. */
static __attribute__((noinline)) vram_result
take_slowly(slab *self, uint32_t class, const vram_request *request, vram_block *out)
{
    class = aligned_class(self, class, request->align_bytes);
    if (class == self->class_count)
        return take_large(self, request, out);
    if (self->caches[class].partial == 0) {
        const vram_result result = open_slab(self, class, request);
        if (result == VRAM_NO_SPACE)
            return take_large(self, request, out);
        if (result != VRAM_OK)
            return result;
    }
    take_object(self, &self->caches[class], out);
    return VRAM_OK;
}

static vram_result slab_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    slab *self = (slab *)backend;
    if (request->size_bytes > self->large_bytes)
        return take_large(self, request, out);
    const uint32_t class = class_of(self, request->size_bytes);
    slab_cache *of = &self->caches[class];
    if (request->align_bytes > of->align_bytes || of->partial == 0)
        return take_slowly(self, class, request, out);
    take_object(self, of, out);
    return VRAM_OK;
}

/* ---- release, resize ---- */

static bool is_large(uint64_t handle)
{
    return (handle & SLAB_LARGE_SLOT) != 0;
}

static vram_block as_page(vram_block block)
{
    block.handle &= ~(uint64_t)SLAB_LARGE_SLOT;
    return block;
}

/* The page layer's blocks that are slabs are not the caller's to release. */
static bool names_a_slab(const slab *self, vram_block page)
{
    const uint32_t number = vram_offset_map_find(&self->by_offset, page.offset_bytes);
    return number != VRAM_OFFSET_MAP_NONE && self->slabs[number].page.handle == page.handle;
}

static void trim_when_all_is_free(slab *self)
{
    if (slab_live_objects(self) + self->large_blocks == 0)
        slab_trim(&self->head);
}

/* The slab of a live object; NULL for a block of the page layer, whose slots are above all others,
 * and for a stale one. */
static inline slab_record *slab_of(const slab *self, const vram_block *block)
{
    const uint32_t number = (uint32_t)block->handle / SLAB_OBJECTS_MOST;
    const uint32_t object = (uint32_t)block->handle % SLAB_OBJECTS_MOST;
    if (number >= self->slabs_made)
        return NULL;
    slab_record *record = &self->slabs[number];
    return record->generations[object] == block->handle >> 32 &&
                   block->offset_bytes == record->page.offset_bytes + object * record->object_bytes
               ? record
               : NULL;
}

static __attribute__((noinline)) vram_result release_large(vram_backend *backend, vram_block block)
{
    slab *self = (slab *)backend;
    if (!is_large(block.handle) || names_a_slab(self, as_page(block)))
        return VRAM_STALE_BLOCK;
    const vram_result result = vram_release(self->pages, as_page(block));
    if (result != VRAM_OK)
        return result;
    self->large_blocks--;
    trim_when_all_is_free(self);
    return VRAM_OK;
}

static __attribute__((noinline)) vram_result release_last_object(slab *self, uint32_t number)
{
    close_slab(self, number);
    trim_when_all_is_free(self);
    return VRAM_OK;
}

static vram_result slab_release(vram_backend *backend, vram_block block)
{
    slab *self = (slab *)backend;
    slab_record *record = slab_of(self, &block);
    if (record == NULL)
        return release_large(backend, block);
    const uint32_t number = (uint32_t)block.handle / SLAB_OBJECTS_MOST;
    const uint32_t object = (uint32_t)block.handle % SLAB_OBJECTS_MOST;
    if (record->free_mask == 0)
        link_slab(self, &self->caches[record->class].partial, number);
    record->free_mask |= UINT64_C(1) << object;
    record->generations[object] = 0;
    self->given++;
    self->free_object_bytes += record->object_bytes;
    return record->free_mask == record->all_mask ? release_last_object(self, number) : VRAM_OK;
}

static vram_result slab_resize(vram_backend *backend, vram_block *block, uint64_t size_bytes)
{
    slab *self = (slab *)backend;
    const slab_record *record = slab_of(self, block);
    if (record != NULL)
        return size_bytes <= record->object_bytes ? VRAM_OK : VRAM_NO_SPACE;
    vram_block page = as_page(*block);
    if (!is_large(block->handle) || names_a_slab(self, page))
        return VRAM_STALE_BLOCK;
    const vram_result result = vram_resize(self->pages, &page, size_bytes);
    if (result == VRAM_OK) {
        *block = page;
        block->handle |= SLAB_LARGE_SLOT;
    }
    return result;
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

static void make_caches(slab *self)
{
    for (uint32_t units = 0; units < SLAB_TABLE_UNITS; units++)
        self->class_by_units[units] = (uint16_t)class_of_units(self, units);
    self->class_count = class_of(self, self->large_bytes) + 1;
    for (uint32_t class = 0; class < self->class_count; class ++) {
        const uint64_t object_bytes = class_bytes(self, class);
        self->caches[class] = (slab_cache){.object_bytes = object_bytes,
                                           .align_bytes = natural_alignment(object_bytes)};
    }
}

/* Slab 0, which is none. */
static bool make_no_slab(slab *self)
{
    if (!vram_reserve((void **)&self->slabs, &self->slab_capacity, 1, sizeof *self->slabs))
        return false;
    self->slabs[0] = (slab_record){.class = 0};
    self->slabs_made = 1;
    return true;
}

static bool slab_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    const vram_value *values = config->values;
    uint64_t unit_bytes = 0;
    if (!vram_unit_of(config, &values[SLAB_UNIT], &unit_bytes, error))
        return false;
    slab *self = calloc(1, sizeof *self);
    if (self == NULL || !make_no_slab(self)) {
        free(self);
        return vram_fail(error, "slab: out of host memory");
    }
    const uint64_t large_bytes = values[SLAB_LARGE].number;
    self->head.arena_bytes = config->arena_bytes;
    self->head.unit_bytes = unit_bytes;
    self->unit_log2 = (uint32_t)__builtin_ctzll(unit_bytes);
    self->step_log2 = (uint32_t)values[SLAB_STEPS].number;
    self->empty_kept = (uint32_t)values[SLAB_EMPTY].number;
    self->target_bytes = values[SLAB_TARGET].number;
    self->large_bytes = large_bytes < config->arena_bytes ? large_bytes : config->arena_bytes;
    make_caches(self);
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

const vram_ops vram_slab_ops = {
    .abi = VRAM_ABI,
    .name = "slab",
    .summary = "caches of equal objects in slabs from a page layer; large requests to that layer",
    .options = slab_options,
    .create = slab_create,
    .destroy = slab_destroy,
    .alloc = slab_alloc,
    .release = slab_release,
    .walk = slab_walk,
    .check = slab_check,
    .stats = slab_stats,
    .explain = slab_explain,
    .resize = slab_resize,
    .trim = slab_trim,
};
