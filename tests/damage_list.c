/*
 * damage_list.c - what list's check notices: each way to damage its structure, by the name of the
 * invariant that it breaks.
 */
#include "backends/list.c"
#include "core/span_tree.c"
#include "damage.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <vramlab/registry.h>

/*
 * Live blocks of 1, 2, .. units, every third released, in an arena of a unit more than a whole one:
 *   |A|..|CCC|DDDD|.....|FFFFFF|GGGGGGG|........|IIIIIIIII|.....
 */
enum { BLOCKS = 9, UNIT = 512, ARENA = 100 * UNIT + 100 };

static list *make(const char *policy, vram_block blocks[BLOCKS])
{
    char spec[64];
    vram_backend *backend;
    vram_error error;
    snprintf(spec, sizeof spec, "list:policy=%s", policy);
    cr_assert(vram_create_from_text(spec, &(vram_config){.arena_bytes = ARENA}, &backend, &error),
              "%s", error.text);
    for (uint64_t i = 0; i < BLOCKS; i++)
        cr_assert_eq(vram_alloc(backend, (vram_request){.size_bytes = (i + 1) * UNIT}, &blocks[i]),
                     VRAM_OK);
    for (uint64_t i = 1; i < BLOCKS; i += 3)
        cr_assert_eq(vram_release(backend, blocks[i]), VRAM_OK);
    return (list *)backend;
}

/* The spans in address order: 0 A, 1 free, 2 C, 3 D, 4 free, ... */
static span *nth(list *self, unsigned n)
{
    uint32_t number = self->spans.at[0].after;
    while (n-- > 0)
        number = self->spans.at[number].after;
    return &self->spans.at[number];
}

static uint32_t number_of(const list *self, const span *it)
{
    return (uint32_t)(it - self->spans.at);
}

static void shift_an_offset(list *self)
{
    nth(self, 2)->offset_bytes += UNIT;
}
static void stretch_a_size(list *self)
{
    nth(self, 3)->size_bytes += UNIT;
}
static void empty_a_span(list *self)
{
    nth(self, 0)->size_bytes = 0;
}
static void exceed_the_arena(list *self)
{
    nth(self, 9)->size_bytes += UNIT;
}
static void cut_the_chain(list *self)
{
    nth(self, 5)->after = 0;
}
static void tie_a_loop(list *self)
{
    nth(self, 5)->after = number_of(self, nth(self, 2));
}
static void leave_the_table(list *self)
{
    nth(self, 5)->after = self->spans.capacity + 7;
}
static void unmirror_a_neighbour(list *self)
{
    nth(self, 5)->before = number_of(self, nth(self, 3));
}
static void move_a_border_off_the_unit(list *self)
{
    nth(self, 2)->size_bytes += 1;
    nth(self, 3)->offset_bytes += 1;
    nth(self, 3)->size_bytes -= 1;
}
static void lose_an_unused_number(list *self)
{
    self->spans.unused = self->spans.at[self->spans.unused].left;
}
static void loop_the_unused_numbers(list *self)
{
    self->spans.at[self->spans.unused].left = self->spans.unused;
}
static void call_a_span_unused(list *self)
{
    nth(self, 3)->right = SPAN_UNUSED;
}
static void miscount_the_granted(list *self)
{
    self->spans.granted_bytes += UNIT;
}
static void miscount_the_live(list *self)
{
    self->spans.live_blocks--;
}
/* The free span behind A is halved, both halves in the table as free, one of them listed nowhere.
 */
static void leave_neighbours_apart(list *self)
{
    const uint32_t back = spans_split(&self->spans, number_of(self, nth(self, 1)), UNIT);
    self->spans.at[back].left = self->spans.at[back].right = 0;
}
static void forget_a_free_span(list *self)
{
    unlist_free_span(self, number_of(self, nth(self, 4)));
}
static void list_a_live_span(list *self)
{
    const uint32_t number = number_of(self, nth(self, 1));
    self->spans.at[number].generation = 1;
    self->spans.at[number].state = SPAN_LIVE;
    self->spans.live_blocks++;
    self->spans.granted_bytes += self->spans.at[number].size_bytes;
}
static void list_outside_the_table(list *self)
{
    nth(self, 1)->left = self->spans.capacity + 3;
}
static void loop_a_tree(list *self)
{
    nth(self, 1)->left = number_of(self, nth(self, 1));
}
static void drop_a_bit(list *self)
{
    size_bins_clear(&self->bins, tree_of(self, nth(self, 1)->size_bytes));
}
static void set_a_bit(list *self)
{
    size_bins_set(&self->bins, tree_of(self, 64 * UNIT) + 1);
}
static void file_in_the_wrong_bin(list *self)
{
    const uint32_t number = number_of(self, nth(self, 1));
    const uint32_t wrong = tree_of(self, 64 * UNIT) + 1;
    unlist_free_span(self, number);
    span_tree_insert(&self->order, &self->roots[wrong], number);
    size_bins_set(&self->bins, wrong);
}
static void mirror_a_tree(list *self)
{
    span *root = &self->spans.at[self->roots[0]];
    const uint32_t left = root->left;
    root->left = root->right;
    root->right = left;
}
static void misjudge_the_largest(list *self)
{
    const uint32_t root = self->roots[0];
    self->order.largest[root] = number_of(self, nth(self, 1));
}

/* A rotation: the order stays, the heap does not. */
static void break_the_heap(list *self)
{
    uint32_t *root = &self->roots[0];
    span *top = &self->spans.at[*root];
    const uint32_t child = top->left != 0 ? top->left : top->right;
    span *lower = &self->spans.at[child];
    if (top->left == child) {
        top->left = lower->right;
        lower->right = *root;
    } else {
        top->right = lower->left;
        lower->left = *root;
    }
    self->order.largest[*root] = largest_under(&self->order, *root);
    *root = child;
    self->order.largest[child] = largest_under(&self->order, child);
}

typedef struct damage {
    const char *name;
    void (*inflict)(list *self);
    const char *invariant;
} damage;

/* Damage that any policy's check must notice. */
static const damage any_policy[] = {
    {"shift_an_offset", shift_an_offset, "I1 tiled"},
    {"stretch_a_size", stretch_a_size, "I1 tiled"},
    {"empty_a_span", empty_a_span, "I1 tiled"},
    {"exceed_the_arena", exceed_the_arena, "I1 tiled"},
    {"cut_the_chain", cut_the_chain, "I1 tiled"},
    {"tie_a_loop", tie_a_loop, "I1 tiled"},
    {"leave_the_table", leave_the_table, "I1 tiled"},
    {"unmirror_a_neighbour", unmirror_a_neighbour, "I1 tiled"},
    {"move_a_border_off_the_unit", move_a_border_off_the_unit, "I2 whole units"},
    {"lose_an_unused_number", lose_an_unused_number, "I3 numbered"},
    {"loop_the_unused_numbers", loop_the_unused_numbers, "I3 numbered"},
    {"call_a_span_unused", call_a_span_unused, "I3 numbered"},
    {"miscount_the_granted", miscount_the_granted, "I4 counted"},
    {"miscount_the_live", miscount_the_live, "I4 counted"},
    {"leave_neighbours_apart", leave_neighbours_apart, "I5 merged"},
    {"forget_a_free_span", forget_a_free_span, "I6 listed"},
    {"list_a_live_span", list_a_live_span, "I6 listed"},
    {"list_outside_the_table", list_outside_the_table, "I6 listed"},
    {"loop_a_tree", loop_a_tree, "I6 listed"},
};
static const damage by_size_only[] = {
    {"drop_a_bit", drop_a_bit, "I6 listed"},
    {"set_a_bit", set_a_bit, "I6 listed"},
    {"file_in_the_wrong_bin", file_in_the_wrong_bin, "I6 listed"},
};
static const damage by_address_only[] = {
    {"mirror_a_tree", mirror_a_tree, "I7 ordered"},
    {"break_the_heap", break_the_heap, "I7 ordered"},
    {"misjudge_the_largest", misjudge_the_largest, "I8 largest"},
};

static void inflict_all(const char *policy, const damage *damages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        vram_block blocks[BLOCKS];
        list *self = make(policy, blocks);
        cr_assert(vram_check(&self->head, NULL), "%s: broken before any damage", policy);
        damages[i].inflict(self);
        expect_noticed(&self->head, policy, damages[i].name, damages[i].invariant);
    }
}

Test(damage_list, every_broken_invariant_is_noticed_by_its_name)
{
    static const char *const policies[] = {"first", "next", "best", "worst"};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++)
        inflict_all(policies[i], any_policy, sizeof any_policy / sizeof any_policy[0]);
    inflict_all("best", by_size_only, sizeof by_size_only / sizeof by_size_only[0]);
    inflict_all("first", by_address_only, sizeof by_address_only / sizeof by_address_only[0]);
}
