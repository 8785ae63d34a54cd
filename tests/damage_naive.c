/*
 * damage_naive.c - what naive's check notices, by the name of the invariant that is broken; and
 * that its two ways to find a block do what the picture says.
 */
#include "backends/naive.c"
#include "damage.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <vramlab/registry.h>

enum { KIB = 1024 };

static naive *make(const char *options)
{
    vram_backend *backend;
    vram_error error;
    char spec[64];
    snprintf(spec, sizeof spec, "naive%s", options);
    cr_assert(vram_create_from_text(spec, &(vram_config){.arena_bytes = 1 << 20}, &backend, &error),
              "%s", error.text);
    return (naive *)backend;
}

static vram_block ask(naive *self, uint64_t size_bytes)
{
    vram_block block = {0};
    cr_assert_eq(vram_alloc(&self->head, (vram_request){.size_bytes = size_bytes}, &block),
                 VRAM_OK);
    cr_assert(vram_check(&self->head, NULL));
    return block;
}

static void give(naive *self, vram_block block)
{
    cr_assert_eq(vram_release(&self->head, block), VRAM_OK);
    cr_assert(vram_check(&self->head, NULL));
}

/* | 4 KiB free | 8 KiB live | 4 KiB free | 16 KiB live | */
static naive *with_holes(const char *options)
{
    naive *self = make(options);
    const vram_block a = ask(self, 4 * KIB);
    ask(self, 8 * KIB);
    const vram_block c = ask(self, 4 * KIB);
    ask(self, 16 * KIB);
    give(self, a);
    give(self, c);
    return self;
}

static void shift_an_offset(naive *self)
{
    self->blocks[1].offset_bytes += 512;
}
static void empty_a_block(naive *self)
{
    self->blocks[2].size_bytes = 0;
}
static void move_the_cut(naive *self)
{
    self->cut_bytes += 512;
}
static void miscount_the_granted(naive *self)
{
    self->granted_bytes -= 512;
}
static void miscount_the_live(naive *self)
{
    self->live_blocks++;
}
static void lose_a_bin(naive *self)
{
    vram_offset_map_remove(&self->bins, 4 * KIB);
}
static void loop_a_bin(naive *self)
{
    self->blocks[vram_offset_map_find(&self->bins, 4 * KIB)].next = 0;
    self->blocks[0].next = 0;
}
static void bin_a_live_block(naive *self)
{
    self->blocks[0].next = 1;
}
static void leave_the_blocks(naive *self)
{
    self->blocks[0].next = 77;
}

Test(damage_naive, every_damage_is_noticed_under_its_invariant)
{
    static const struct {
        const char *name;
        void (*inflict)(naive *self);
        const char *invariant;
    } damages[] = {
        {"shift_an_offset", shift_an_offset, "I1 tiled"},
        {"empty_a_block", empty_a_block, "I1 tiled"},
        {"move_the_cut", move_the_cut, "I1 tiled"},
        {"miscount_the_granted", miscount_the_granted, "I3 counted"},
        {"miscount_the_live", miscount_the_live, "I3 counted"},
        {"lose_a_bin", lose_a_bin, "I2 binned"},
        {"loop_a_bin", loop_a_bin, "I2 binned"},
        {"bin_a_live_block", bin_a_live_block, "I2 binned"},
        {"leave_the_blocks", leave_the_blocks, "I2 binned"},
    };
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        naive *self = with_holes(":bins=hash");
        damages[i].inflict(self);
        expect_noticed(&self->head, "naive", damages[i].name, damages[i].invariant);
    }
}

Test(damage_naive, a_small_request_takes_a_large_block_whole_in_the_list_and_not_by_hash)
{
    naive *list = with_holes("");
    cr_expect_eq(ask(list, 512).granted_bytes, 4 * KIB, "claim C5 of the course");
    vram_destroy(&list->head);
    naive *hash = with_holes(":bins=hash");
    cr_expect_eq(ask(hash, 512).granted_bytes, 512);
    cr_expect_eq(ask(hash, 4 * KIB).offset_bytes, 12 * KIB, "the one released last");
    cr_expect_eq(ask(hash, 4 * KIB).offset_bytes, 0);
    vram_destroy(&hash->head);
}

Test(damage_naive, rounding_to_powers_of_two_lets_near_sizes_share_blocks)
{
    naive *self = make(":bins=hash,round=pow2");
    ask(self, 100 * KIB);
    const vram_block a = ask(self, 65 * KIB);
    cr_expect_eq(a.granted_bytes, 128 * KIB);
    give(self, a);
    cr_expect_eq(ask(self, 127 * KIB).offset_bytes, a.offset_bytes);
    vram_destroy(&self->head);
}
