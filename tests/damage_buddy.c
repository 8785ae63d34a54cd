/*
 * damage_buddy.c - what buddy's check notices: each way to damage its structure, by the name of the
 * invariant that it breaks.
 */
#include "backends/buddy.c"
#include "damage.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <vramlab/registry.h>

/*
 * Roots of at most 16 blocks in an arena of 41 blocks and a bit: a run of two roots, one of 8, one
 * of 1. Live blocks of 1, 2, 4 and 1 leave, of the first two roots, in address order:
 *   |A|.|BB|CCCC|D|.|..|....|................|........|.|
 *    0 1  2    4  8 9 10   12               16       32 40
 */
enum { UNIT = 512, ARENA = 41 * UNIT + 100 };

static buddy *make(const char *place)
{
    static const uint64_t units[] = {1, 2, 4, 1, 1};
    vram_block blocks[5];
    vram_backend *backend;
    vram_error error;
    char spec[64];
    snprintf(spec, sizeof spec, "buddy:min=512,max=8KiB,place=%s", place);
    cr_assert(vram_create_from_text(spec, &(vram_config){.arena_bytes = ARENA}, &backend, &error),
              "%s", error.text);
    vram_block first;
    /* The single block of the last root goes first; it is taken, and given back at the end. */
    cr_assert_eq(vram_alloc(backend, (vram_request){.size_bytes = UNIT}, &first), VRAM_OK);
    vram_block eight;
    cr_assert_eq(vram_alloc(backend, (vram_request){.size_bytes = 8 * UNIT}, &eight), VRAM_OK);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        cr_assert_eq(vram_alloc(backend, (vram_request){.size_bytes = units[i] * UNIT}, &blocks[i]),
                     VRAM_OK);
    cr_assert_eq(vram_release(backend, blocks[3]), VRAM_OK);
    cr_assert_eq(vram_release(backend, first), VRAM_OK);
    cr_assert_eq(vram_release(backend, eight), VRAM_OK);
    return (buddy *)backend;
}

/* The span that begins at this many blocks. */
static uint32_t at_block(const buddy *self, uint64_t block)
{
    const span *at = self->spans.at;
    uint32_t number = at[0].after;
    while (number != 0 && at[number].offset_bytes != block * UNIT)
        number = at[number].after;
    cr_assert_neq(number, 0, "no span begins at block %llu", (unsigned long long)block);
    return number;
}

static void shift_an_offset(buddy *self)
{
    self->spans.at[at_block(self, 4)].offset_bytes += UNIT;
}
static void cut_the_chain(buddy *self)
{
    self->spans.at[at_block(self, 4)].after = 0;
}
static void move_a_border_off_the_unit(buddy *self)
{
    self->spans.at[at_block(self, 1)].size_bytes += 1;
    self->spans.at[at_block(self, 2)].size_bytes -= 1;
    self->spans.at[self->spans.at[at_block(self, 1)].after].offset_bytes += 1;
}
static void lose_an_unused_number(buddy *self)
{
    self->spans.unused_count--;
}
static void miscount_the_granted(buddy *self)
{
    self->spans.granted_bytes -= UNIT;
}
/* Free blocks of 1 and 2 become one of 3. */
static void make_a_block_of_three(buddy *self)
{
    const uint32_t one = at_block(self, 9);
    const uint32_t two = at_block(self, 10);
    remove_free(self, one);
    remove_free(self, two);
    spans_join(&self->spans, one, two);
    push_free(self, one);
}
static void leave_twins_apart(buddy *self)
{
    const uint32_t four = at_block(self, 12);
    remove_free(self, four);
    const uint32_t upper = spans_split(&self->spans, four, 2 * UNIT);
    push_free(self, four);
    push_free(self, upper);
}
/* A third root where there was one: its release must join the run before it. */
static void leave_runs_apart(buddy *self)
{
    vram_block root;
    vram_block other;
    cr_assert_eq(vram_alloc(&self->head, (vram_request){.size_bytes = 16 * UNIT}, &root), VRAM_OK);
    cr_assert_eq(vram_alloc(&self->head, (vram_request){.size_bytes = 8 * UNIT}, &other), VRAM_OK);
    (void)other;
    self->max_bytes = 8 * UNIT; /* two free roots of half the size, side by side */
    const uint32_t number = spans_find(&self->spans, &root);
    spans_retire(&self->spans, number);
    const uint32_t upper = spans_split(&self->spans, number, 8 * UNIT);
    self->max_order--;
    push_free(self, number);
    push_free(self, upper);
}
static void forget_a_free_block(buddy *self)
{
    remove_free(self, at_block(self, 12));
}
static void file_under_the_wrong_order(buddy *self)
{
    const uint32_t one = at_block(self, 1);
    remove_free(self, one);
    self->spans.at[one].size_bytes *= 2;
    push_free(self, one);
    self->spans.at[one].size_bytes /= 2;
}
static void list_a_live_block(buddy *self)
{
    const uint32_t number = at_block(self, 12);
    self->spans.at[number].state = SPAN_LIVE;
    self->spans.granted_bytes += self->spans.at[number].size_bytes;
    self->spans.live_blocks++;
}
static void loop_a_list(buddy *self)
{
    const uint32_t number = at_block(self, 12);
    self->spans.at[number].right = number;
    self->spans.at[number].left = number;
}
static void leave_the_table(buddy *self)
{
    self->spans.at[at_block(self, 12)].right = self->spans.capacity + 5;
}
static void drop_an_alignment_bit(buddy *self)
{
    self->by_order[2].lists = 0;
}
static void drop_an_order_bit(buddy *self)
{
    self->orders &= ~UINT64_C(4);
}
static void miscount_an_order(buddy *self)
{
    self->by_order[0].free_blocks++;
}
static void miscount_the_bound(buddy *self)
{
    self->bound_bytes += UNIT;
}
static void place_a_block_off_its_size(buddy *self)
{
    const uint32_t number = at_block(self, 1); /* a live block of 3 at 1 */
    const uint32_t two = at_block(self, 2);
    remove_free(self, number);
    spans_join(&self->spans, number, two);
    self->spans.at[number].generation = 1;
    self->spans.at[number].state = SPAN_LIVE;
    self->spans.granted_bytes += UNIT;
}

/* Puts the only two blocks of a tree the wrong way round: the one on top stays, its child changes
 * sides. */
static void mirror_a_tree(buddy *self)
{
    /* Three more blocks of 4 leave two free ones in one tree. */
    vram_block block;
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(vram_alloc(&self->head, (vram_request){.size_bytes = 4 * UNIT}, &block),
                     VRAM_OK);
    for (size_t tree = 0; tree < (self->max_order + 1) * self->alignments; tree++) {
        span *top = &self->spans.at[self->heads[tree]];
        if (self->heads[tree] == 0 || (top->left == 0) == (top->right == 0))
            continue;
        const uint32_t child = top->left;
        top->left = top->right;
        top->right = child;
        return;
    }
    cr_assert_fail("no tree of two blocks");
}

typedef struct damage {
    const char *name;
    void (*inflict)(buddy *self);
    const char *invariant;
} damage;

/* Of lists and trees alike. */
static const damage damages[] = {
    {"shift_an_offset", shift_an_offset, "I1 tiled"},
    {"cut_the_chain", cut_the_chain, "I1 tiled"},
    {"move_a_border_off_the_unit", move_a_border_off_the_unit, "I2 whole units"},
    {"lose_an_unused_number", lose_an_unused_number, "I3 numbered"},
    {"miscount_the_granted", miscount_the_granted, "I4 counted"},
    {"make_a_block_of_three", make_a_block_of_three, "I9 a power of two"},
    {"leave_twins_apart", leave_twins_apart, "I5 merged"},
    {"leave_runs_apart", leave_runs_apart, "I5 merged"},
    {"forget_a_free_block", forget_a_free_block, "I6 listed"},
    {"file_under_the_wrong_order", file_under_the_wrong_order, "I6 listed"},
    {"list_a_live_block", list_a_live_block, "I6 listed"},
    {"loop_a_list", loop_a_list, "I6 listed"},
    {"leave_the_table", leave_the_table, "I6 listed"},
    {"drop_an_alignment_bit", drop_an_alignment_bit, "I6 listed"},
    {"drop_an_order_bit", drop_an_order_bit, "I8 counted by order"},
    {"miscount_an_order", miscount_an_order, "I8 counted by order"},
    {"miscount_the_bound", miscount_the_bound, "I8 counted by order"},
    {"place_a_block_off_its_size", place_a_block_off_its_size, "I10 aligned"},
};

static const damage of_trees[] = {
    {"mirror_a_tree", mirror_a_tree, "I7 ordered"},
};

static void inflict_all(const char *place, const damage *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buddy *self = make(place);
        cr_assert(vram_check(&self->head, NULL), "broken before any damage");
        list[i].inflict(self);
        expect_noticed(&self->head, place, list[i].name, list[i].invariant);
    }
}

Test(damage_buddy, every_broken_invariant_is_noticed_by_its_name)
{
    inflict_all("recent", damages, sizeof damages / sizeof damages[0]);
    inflict_all("low", damages, sizeof damages / sizeof damages[0]);
    inflict_all("low", of_trees, sizeof of_trees / sizeof of_trees[0]);
}
