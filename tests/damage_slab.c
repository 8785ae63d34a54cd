/*
 * damage_slab.c - what slab's check notices: each way to damage its structure, by the name of the
 * invariant that it breaks; and that its lists do what the picture says.
 */
#include "backends/slab.c"
#include "damage.h"

#include <criterion/criterion.h>

/* Slabs of eight objects of 4 KiB: two full, one with three live objects, one empty; a large block.
 */
enum { UNIT = 512, OBJECT = 4096, LIVE = 2 * 8 + 3 };

static slab *make(void)
{
    vram_backend *backend;
    vram_error error;
    cr_assert(vram_create_from_text("slab:slab=32KiB,large=64KiB",
                                    &(vram_config){.arena_bytes = 1 << 20}, &backend, &error),
              "%s", error.text);
    vram_block blocks[4 * 8];
    vram_block large;
    for (int i = 0; i < 4 * 8; i++)
        cr_assert(vram_alloc(backend, (vram_request){.size_bytes = OBJECT}, &blocks[i]) == VRAM_OK);
    cr_assert(vram_alloc(backend, (vram_request){.size_bytes = 100000}, &large) == VRAM_OK);
    for (int i = LIVE; i < 4 * 8; i++)
        cr_assert(vram_release(backend, blocks[i]) == VRAM_OK);
    vram_fault fault;
    cr_assert(vram_check(backend, &fault));
    return (slab *)backend;
}

static slab_cache *the_cache(slab *self)
{
    return &self->caches[class_of(self, OBJECT)];
}

static slab_record *partial(slab *self)
{
    return &self->slabs[the_cache(self)->partial];
}

static void free_a_live_object(slab *self)
{
    partial(self)->free_mask |= 1;
}
static void hide_a_free_object(slab *self)
{
    partial(self)->free_mask &= ~(UINT64_C(1) << 7);
}
static void pretend_a_ninth_object(slab *self)
{
    partial(self)->free_mask |= UINT64_C(1) << 8;
}
static void resize_the_objects(slab *self)
{
    partial(self)->object_bytes += UNIT;
}
static void free_an_object_of_no_slab(slab *self)
{
    self->slabs[0].free_mask = 1;
}
static void revive_an_object(slab *self)
{
    partial(self)->generations[7] = 5;
}
static void lose_the_partial_slab(slab *self)
{
    the_cache(self)->partial = 0;
}
static void loop_the_partial_list(slab *self)
{
    partial(self)->after = the_cache(self)->partial;
}
static void leave_the_records(slab *self)
{
    partial(self)->after = self->slabs_made + 9;
}
static void call_the_empty_slab_partial(slab *self)
{
    slab_cache *of = the_cache(self);
    const uint32_t number = of->empty;
    unlink_slab(self, &of->empty, number);
    link_slab(self, &of->partial, number);
}
static void miscount_the_empty(slab *self)
{
    the_cache(self)->empty_count++;
}
static void miscount_the_slabs(slab *self)
{
    the_cache(self)->slab_count--;
}
static void forget_where_a_slab_is(slab *self)
{
    vram_offset_map_remove(&self->by_offset, partial(self)->page.offset_bytes);
}
static void give_its_pages_back(slab *self)
{
    vram_release(self->pages, partial(self)->page);
}
static void miscount_the_large(slab *self)
{
    self->large_blocks++;
}
static void miscount_the_live(slab *self)
{
    self->given++;
}
static void miscount_the_bytes(slab *self)
{
    self->free_object_bytes += OBJECT;
}
static void miscount_the_tails(slab *self)
{
    self->tail_bytes += UNIT;
}

static const struct {
    const char *name;
    void (*inflict)(slab *self);
    const char *invariant;
} damages[] = {
    {"free_a_live_object", free_a_live_object, "I2 masked"},
    {"hide_a_free_object", hide_a_free_object, "I2 masked"},
    {"pretend_a_ninth_object", pretend_a_ninth_object, "I2 masked"},
    {"resize_the_objects", resize_the_objects, "I2 masked"},
    {"free_an_object_of_no_slab", free_an_object_of_no_slab, "I3 listed"},
    {"revive_an_object", revive_an_object, "I2 masked"},
    {"lose_the_partial_slab", lose_the_partial_slab, "I3 listed"},
    {"loop_the_partial_list", loop_the_partial_list, "I3 listed"},
    {"leave_the_records", leave_the_records, "I3 listed"},
    {"call_the_empty_slab_partial", call_the_empty_slab_partial, "I3 listed"},
    {"miscount_the_empty", miscount_the_empty, "I3 listed"},
    {"miscount_the_slabs", miscount_the_slabs, "I3 listed"},
    {"forget_where_a_slab_is", forget_where_a_slab_is, "I1 paged"},
    {"give_its_pages_back", give_its_pages_back, "I1 paged"},
    {"miscount_the_large", miscount_the_large, "I1 paged"},
    {"miscount_the_live", miscount_the_live, "I4 counted"},
    {"miscount_the_bytes", miscount_the_bytes, "I4 counted"},
    {"miscount_the_tails", miscount_the_tails, "I4 counted"},
};

Test(damage_slab, every_damage_is_noticed_under_its_invariant)
{
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        slab *self = make();
        damages[i].inflict(self);
        expect_noticed(&self->head, "slab", damages[i].name, damages[i].invariant);
    }
}

Test(damage_slab, one_empty_slab_is_kept_and_the_last_release_returns_them_all)
{
    slab *self = make();
    cr_expect_eq(the_cache(self)->slab_count, 4);
    cr_expect_eq(the_cache(self)->empty_count, 1);
    cr_expect_eq(slab_trim(&self->head), 8 * OBJECT);
    cr_expect_eq(the_cache(self)->slab_count, 3);
    vram_destroy(&self->head);
}

Test(damage_slab, a_full_page_layer_takes_the_empty_slabs_back)
{
    slab *self = make();
    vram_block block;
    const vram_stats stats = vram_stats_of(self->pages);
    /* More than is free, no more than is free once the empty slab has gone back. */
    const vram_request most = {.size_bytes = stats.free_bytes + 1};
    cr_assert_eq(the_cache(self)->empty_count, 1);
    const vram_result result = vram_alloc(&self->head, most, &block);
    cr_expect_eq(the_cache(self)->empty_count, 0);
    cr_expect(result == VRAM_OK || result == VRAM_NO_SPACE);
    cr_expect(vram_check(&self->head, NULL));
    vram_destroy(&self->head);
}

Test(damage_slab, classes_cover_every_size_with_the_least_object_that_holds_it)
{
    for (uint32_t steps_log2 = 0; steps_log2 <= 3; steps_log2++) {
        slab shape = {.unit_log2 = 4, .step_log2 = steps_log2, .large_bytes = 1 << 20};
        make_caches(&shape);
        for (uint64_t size_bytes = 1; size_bytes < 70000; size_bytes++) {
            const uint32_t class = class_of(&shape, size_bytes);
            cr_assert(class_bytes(&shape, class) >= size_bytes);
            cr_assert(class == 0 || class_bytes(&shape, class - 1) < size_bytes);
        }
    }
}
