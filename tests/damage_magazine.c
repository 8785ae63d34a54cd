/*
 * damage_magazine.c - what magazine's check notices: each way to damage its structure, by the name
 * of the invariant that it breaks.
 */
#include "damage.h"
#include "layers/magazine.c"

#include <vramlab/registry.h>

#include <criterion/criterion.h>

enum { SIZE = 4096 };

/* Three live blocks and two kept ones. */
static magazines *make(void)
{
    vram_backend *backend = NULL;
    vram_error error = {""};
    cr_assert(vram_create_from_text("list+magazine", &(vram_config){.arena_bytes = 1 << 20},
                                    &backend, &error),
              "%s", error.text);
    vram_block blocks[5];
    for (int i = 0; i < 5; i++)
        cr_assert_eq(vram_alloc(backend, (vram_request){.size_bytes = SIZE}, &blocks[i]), VRAM_OK);
    vram_release(backend, blocks[1]);
    vram_release(backend, blocks[3]);
    cr_assert(vram_check(backend, NULL));
    return (magazines *)backend;
}

static magazine *the_magazine(magazines *self)
{
    return magazine_of(self->caches, SIZE);
}

static void forget_a_block(magazines *self)
{
    vram_offset_map_remove(&self->by_offset, 0);
}
static void confuse_two_blocks(magazines *self)
{
    record_at(self, 0)->inner.handle = record_at(self, 2)->inner.handle;
}
static void keep_a_live_block(magazines *self)
{
    record_at(self, 0)->kept = true;
}
static void revive_a_kept_block(magazines *self)
{
    atomic_fetch_add(&record_at(self, 1)->word, 1);
}
static void drop_a_kept_block(magazines *self)
{
    the_magazine(self)->count--;
}
static void keep_a_block_of_another_size(magazines *self)
{
    record_at(self, 1)->size_bytes = 2 * SIZE;
}
static void name_no_record(magazines *self)
{
    the_magazine(self)->records[0] = self->made + 7;
}
static void overfill_a_magazine(magazines *self)
{
    the_magazine(self)->count = DEPTH_MOST + 1;
}
static void miscount_live(magazines *self)
{
    atomic_fetch_add(&self->live, 1);
}
static void miscount_kept_bytes(magazines *self)
{
    atomic_fetch_add(&self->kept_bytes, 512);
}

static const struct {
    const char *name;
    void (*inflict)(magazines *self);
    const char *invariant;
} damages[] = {
    {"forget_a_block", forget_a_block, "I1 recorded"},
    {"confuse_two_blocks", confuse_two_blocks, "I1 recorded"},
    {"keep_a_live_block", keep_a_live_block, "I1 recorded"},
    {"revive_a_kept_block", revive_a_kept_block, "I1 recorded"},
    {"drop_a_kept_block", drop_a_kept_block, "I2 kept"},
    {"keep_a_block_of_another_size", keep_a_block_of_another_size, "I2 kept"},
    {"name_no_record", name_no_record, "I2 kept"},
    {"overfill_a_magazine", overfill_a_magazine, "I2 kept"},
    {"miscount_live", miscount_live, "I3 counted"},
    {"miscount_kept_bytes", miscount_kept_bytes, "I3 counted"},
};

Test(damage_magazine, every_damage_is_noticed_under_its_invariant)
{
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        magazines *self = make();
        damages[i].inflict(self);
        expect_noticed(&self->layer.head, "magazine", damages[i].name, damages[i].invariant);
    }
}
