/*
 * damage_tlsf.c - what tlsf's check notices: each way to damage its structure, by the name of the
 * invariant that it breaks. What all backends over core/spans share is damaged in damage_list.c
 * too; here once each.
 */
#include "backends/tlsf.c"
#include "damage.h"

#include <criterion/criterion.h>
#include <vramlab/registry.h>

/*
 * Blocks of 3, 5, 3, 5, 3, 5 units, of which those of 3 and the second of 5 are released:
 *   |...|AAAAA|...........|BBBBB|.....        bins 3: one, bin 11: one, and the rest
 */
enum { UNIT = 512, ARENA = 100 * UNIT + 100 };

static tlsf *make(void)
{
    vram_backend *backend;
    vram_error error;
    vram_block blocks[8];
    cr_assert(vram_create_from_text("tlsf", &(vram_config){.arena_bytes = ARENA}, &backend, &error),
              "%s", error.text);
    for (uint64_t i = 0; i < 8; i++)
        cr_assert_eq(vram_alloc(backend, (vram_request){.size_bytes = (i % 2 == 0 ? 3 : 5) * UNIT},
                                &blocks[i]),
                     VRAM_OK);
    for (size_t i = 0; i < 8; i += 2)
        cr_assert_eq(vram_release(backend, blocks[i]), VRAM_OK);
    cr_assert_eq(vram_release(backend, blocks[3]), VRAM_OK);
    return (tlsf *)backend;
}

static uint32_t nth(const tlsf *self, unsigned n)
{
    uint32_t number = self->spans.at[0].after;
    while (n-- > 0)
        number = self->spans.at[number].after;
    return number;
}

static uint32_t bin_of(const tlsf *self, uint32_t number)
{
    return size_bin_of(self->spans.at[number].size_bytes);
}

static void shift_an_offset(tlsf *self)
{
    self->spans.at[nth(self, 1)].offset_bytes += UNIT;
}
static void move_a_border_off_the_unit(tlsf *self)
{
    self->spans.at[nth(self, 0)].size_bytes += 1;
    self->spans.at[nth(self, 1)].offset_bytes += 1;
    self->spans.at[nth(self, 1)].size_bytes -= 1;
}
static void lose_an_unused_number(tlsf *self)
{
    self->spans.unused_count--;
}
static void miscount_the_live(tlsf *self)
{
    self->spans.live_blocks++;
}
static void leave_neighbours_apart(tlsf *self)
{
    const uint32_t number = nth(self, 2);
    remove_free(self, number, bin_of(self, number));
    push_free(self, spans_split(&self->spans, number, UNIT));
    push_free(self, number);
}
static void forget_a_free_span(tlsf *self)
{
    const uint32_t number = nth(self, 2);
    remove_free(self, number, bin_of(self, number));
}
static void file_in_the_wrong_bin(tlsf *self)
{
    const uint32_t number = nth(self, 2);
    remove_free(self, number, bin_of(self, number));
    self->spans.at[number].size_bytes += 64 * UNIT;
    push_free(self, number);
    self->spans.at[number].size_bytes -= 64 * UNIT;
}
static void list_a_live_span(tlsf *self)
{
    const uint32_t number = nth(self, 2);
    self->spans.at[number].state = SPAN_LIVE;
    self->spans.granted_bytes += self->spans.at[number].size_bytes;
    self->spans.live_blocks++;
}
static void loop_a_list(tlsf *self)
{
    const uint32_t number = nth(self, 2);
    self->spans.at[number].left = self->spans.at[number].right = number;
    self->heads[bin_of(self, number)] = number;
}
static void leave_the_table(tlsf *self)
{
    self->spans.at[nth(self, 2)].right = self->spans.capacity + 1;
}
static void unmirror_a_list(tlsf *self)
{
    self->spans.at[nth(self, 2)].left = nth(self, 0);
}
static void drop_a_step(tlsf *self)
{
    size_bins_clear(&self->bins, bin_of(self, nth(self, 2)));
}
static void set_a_step(tlsf *self)
{
    size_bins_set(&self->bins, size_bin_of(2 * UNIT));
}
static void drop_a_level(tlsf *self)
{
    self->bins.levels &= self->bins.levels - 1;
}
static void set_a_level_beyond_the_arena(tlsf *self)
{
    self->bins.levels |= UINT64_C(1) << 50;
}

static const struct {
    const char *name;
    void (*inflict)(tlsf *self);
    const char *invariant;
} damages[] = {
    {"shift_an_offset", shift_an_offset, "I1 tiled"},
    {"move_a_border_off_the_unit", move_a_border_off_the_unit, "I2 whole units"},
    {"lose_an_unused_number", lose_an_unused_number, "I3 numbered"},
    {"miscount_the_live", miscount_the_live, "I4 counted"},
    {"leave_neighbours_apart", leave_neighbours_apart, "I5 merged"},
    {"forget_a_free_span", forget_a_free_span, "I6 listed"},
    {"file_in_the_wrong_bin", file_in_the_wrong_bin, "I6 listed"},
    {"list_a_live_span", list_a_live_span, "I6 listed"},
    {"loop_a_list", loop_a_list, "I6 listed"},
    {"leave_the_table", leave_the_table, "I6 listed"},
    {"unmirror_a_list", unmirror_a_list, "I6 listed"},
    {"drop_a_step", drop_a_step, "I7 marked"},
    {"set_a_step", set_a_step, "I7 marked"},
    {"drop_a_level", drop_a_level, "I7 marked"},
    {"set_a_level_beyond_the_arena", set_a_level_beyond_the_arena, "I7 marked"},
};

Test(damage_tlsf, every_broken_invariant_is_noticed_by_its_name)
{
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        tlsf *self = make();
        cr_assert(vram_check(&self->head, NULL), "broken before any damage");
        damages[i].inflict(self);
        expect_noticed(&self->head, "tlsf", damages[i].name, damages[i].invariant);
    }
}

/* Completeness: the look is bounded, but a span that must hold the block is never overlooked. */
Test(damage_tlsf, the_whole_arena_is_served_at_any_alignment)
{
    for (uint64_t align = UNIT; align <= UINT64_C(2) << 20; align *= 2) {
        vram_backend *backend;
        vram_error error;
        vram_block block;
        cr_assert(
            vram_create_from_text("tlsf", &(vram_config){.arena_bytes = ARENA}, &backend, &error));
        cr_expect_eq(vram_alloc(backend,
                                (vram_request){.size_bytes = 100 * UNIT, .align_bytes = align},
                                &block),
                     VRAM_OK);
        vram_destroy(backend);
    }
}
