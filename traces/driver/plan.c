/*
 * plan.c - offline placement: greedy orders, then a local search, then the search of pack.c.
 *
 *    ^    DDD          order: A B C D
 *    |   CCCCC         Every heuristic is an order of the blocks: each takes the lowest offset that
 *    |  BB  AAAA       is free for all of its life among those before it.
 *    +-----------> moments
 *
 * Greedy orders: the largest size, area (size x lifetime) or lifetime first. Local search: a block
 * that ends at the very top moves in the order before one that was in its way; this is kept unless
 * the plan grows.
 *
 * Placing a block looks at its neighbours only: those whose lives overlap its own. They are listed
 * once, so memory is 8 bytes a pair and a placement O(d log d) for d neighbours.
 */
#include "pack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_LOOKS = 400000000,
    SEARCH_MOST_BLOCKS = 2048, /* beyond, a step of the exact search is too dear to help */
};

typedef struct planner {
    vram_plan_block *blocks;
    size_t count;
    size_t *first; /* count + 1: where a block's neighbours begin */
    uint32_t *neighbours;
    uint32_t *order;       /* the blocks in the order of placement */
    uint32_t *place_of;    /* by block: its place in the order */
    uint64_t *best_offset; /* of the best plan so far */
    uint32_t *scratch;     /* as many as a block has neighbours */
    uint64_t looks_left;
    vram_plan *plan;
    uint64_t target_bytes;
} planner;

/* ---- who is alive with whom ---- */

static int by_birth(const void *left, const void *right, void *context)
{
    const vram_plan_block *const blocks = context;
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    return blocks[a].from != blocks[b].from
               ? (blocks[a].from > blocks[b].from) - (blocks[a].from < blocks[b].from)
               : (a > b) - (a < b);
}

/*
 * Visits the blocks by birth with the list of those alive then. `degree` counts neighbours; with
 * `fill` they are written down. Returns the pairs, or UINT64_MAX when there are too many.
 */
static uint64_t sweep(planner *self, uint32_t *alive, size_t *degree, bool fill)
{
    size_t living = 0;
    uint64_t live_bytes = 0;
    uint64_t pairs = 0;
    for (size_t k = 0; k < self->count; k++) {
        const uint32_t born = self->order[k];
        size_t kept = 0;
        for (size_t i = 0; i < living; i++) {
            const uint32_t other = alive[i];
            if (self->blocks[other].to <= self->blocks[born].from) {
                live_bytes -= self->blocks[other].size_bytes;
                continue;
            }
            alive[kept++] = other;
            if (fill) {
                self->neighbours[self->first[born] + degree[born]] = other;
                self->neighbours[self->first[other] + degree[other]] = born;
            }
            degree[born]++;
            degree[other]++;
        }
        pairs += kept;
        if (pairs > VRAM_PLAN_PAIRS)
            return UINT64_MAX;
        living = kept;
        alive[living++] = born;
        live_bytes += self->blocks[born].size_bytes;
        if (live_bytes > self->plan->bound_bytes)
            self->plan->bound_bytes = live_bytes;
    }
    return pairs;
}

static bool out_of_memory(const planner *self, vram_error *error)
{
    return vram_fail(error, "the host is out of memory for a plan of %zu blocks", self->count);
}

static bool list_neighbours(planner *self, uint32_t *alive, size_t *degree, vram_error *error)
{
    for (uint32_t i = 0; i < self->count; i++)
        self->order[i] = i;
    qsort_r(self->order, self->count, sizeof *self->order, by_birth, self->blocks);
    const uint64_t pairs = sweep(self, alive, degree, false);
    if (pairs == UINT64_MAX)
        return vram_fail(error,
                         "the trace is too large for a plan: more than %" PRIu64
                         " pairs of its %zu blocks are alive together",
                         VRAM_PLAN_PAIRS, self->count);
    self->neighbours = malloc((2 * (size_t)pairs + 1) * sizeof *self->neighbours);
    if (self->neighbours == NULL)
        return out_of_memory(self, error);
    size_t most = 0;
    self->first[0] = 0;
    for (size_t i = 0; i < self->count; i++) {
        self->first[i + 1] = self->first[i] + degree[i];
        most = degree[i] > most ? degree[i] : most;
        degree[i] = 0;
    }
    sweep(self, alive, degree, true);
    self->scratch = malloc((most + 1) * sizeof *self->scratch);
    return self->scratch != NULL || out_of_memory(self, error);
}

/* ---- placing in a given order ---- */

static int by_offset(const void *left, const void *right, void *context)
{
    const vram_plan_block *const blocks = context;
    const vram_plan_block *const a = &blocks[*(const uint32_t *)left];
    const vram_plan_block *const b = &blocks[*(const uint32_t *)right];
    return (a->offset_bytes > b->offset_bytes) - (a->offset_bytes < b->offset_bytes);
}

/* The neighbours before `index` in the order, by offset, in self->scratch; how many. */
static size_t placed_neighbours(planner *self, uint32_t index)
{
    size_t placed = 0;
    for (size_t k = self->first[index]; k < self->first[index + 1]; k++)
        if (self->place_of[self->neighbours[k]] < self->place_of[index])
            self->scratch[placed++] = self->neighbours[k];
    qsort_r(self->scratch, placed, sizeof *self->scratch, by_offset, self->blocks);
    return placed;
}

static void spend(planner *self, uint64_t looks)
{
    self->looks_left -= looks < self->looks_left ? looks : self->looks_left;
}

/* The lowest offset that is free for all of the block's life. */
static void place_lowest(planner *self, uint32_t index)
{
    spend(self, 1 + self->first[index + 1] - self->first[index]);
    const size_t placed = placed_neighbours(self, index);
    vram_plan_block *const block = &self->blocks[index];
    uint64_t at_bytes = 0;
    for (size_t k = 0; k < placed; k++) {
        const vram_plan_block *const other = &self->blocks[self->scratch[k]];
        if (other->offset_bytes > at_bytes && other->offset_bytes - at_bytes >= block->size_bytes)
            break;
        if (other->offset_bytes + other->size_bytes > at_bytes)
            at_bytes = other->offset_bytes + other->size_bytes;
    }
    block->offset_bytes = at_bytes;
}

static uint64_t height_of(const planner *self)
{
    uint64_t height_bytes = 0;
    for (size_t i = 0; i < self->count; i++)
        if (self->blocks[i].offset_bytes + self->blocks[i].size_bytes > height_bytes)
            height_bytes = self->blocks[i].offset_bytes + self->blocks[i].size_bytes;
    return height_bytes;
}

/* Places all from this place in the order on; what comes before stays. Returns the height. */
static uint64_t place_from(planner *self, size_t place)
{
    for (size_t k = place; k < self->count; k++)
        self->place_of[self->order[k]] = (uint32_t)k;
    for (size_t k = place; k < self->count; k++)
        place_lowest(self, self->order[k]);
    return height_of(self);
}

static void keep_if_better(planner *self, uint64_t height_bytes, const char *method)
{
    if (self->plan->method != NULL && height_bytes >= self->plan->height_bytes)
        return;
    self->plan->height_bytes = height_bytes;
    self->plan->method = method;
    for (size_t i = 0; i < self->count; i++)
        self->best_offset[i] = self->blocks[i].offset_bytes;
}

static bool reached(const planner *self)
{
    return self->plan->height_bytes <= self->target_bytes;
}

/* ---- greedy ---- */

static double size_key(const vram_plan_block *block)
{
    return (double)block->size_bytes;
}

static double life_key(const vram_plan_block *block)
{
    return (double)block->life;
}

static double area_key(const vram_plan_block *block)
{
    return size_key(block) * life_key(block);
}

static const struct greedy {
    const char *method;
    double (*key)(const vram_plan_block *block);
} greedy[] = {{"size", size_key}, {"area", area_key}, {"lifetime", life_key}};
enum { GREEDY_ORDERS = sizeof greedy / sizeof greedy[0] };

typedef struct ranking {
    const vram_plan_block *blocks;
    double (*key)(const vram_plan_block *block);
} ranking;

static int by_key(const void *left, const void *right, void *context)
{
    const ranking *const how = context;
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    const double key_a = how->key(&how->blocks[a]);
    const double key_b = how->key(&how->blocks[b]);
    return key_a != key_b ? (key_a < key_b) - (key_a > key_b) : (a > b) - (a < b);
}

static uint64_t place_greedily(planner *self, const struct greedy *how)
{
    ranking rank = {self->blocks, how->key};
    for (uint32_t i = 0; i < self->count; i++)
        self->order[i] = i;
    qsort_r(self->order, self->count, sizeof *self->order, by_key, &rank);
    return place_from(self, 0);
}

/* ---- local search ---- */

/* A block that ends at the very top; among several one at random. */
static uint32_t topmost(const planner *self, uint64_t height_bytes, uint64_t *random)
{
    uint32_t found = 0;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < self->count; i++)
        if (self->blocks[i].offset_bytes + self->blocks[i].size_bytes == height_bytes &&
            vram_next_random(random) % ++seen == 0)
            found = i;
    return found;
}

static void move_in_order(planner *self, size_t from, size_t to)
{
    const uint32_t moved = self->order[from];
    if (to < from)
        memmove(&self->order[to + 1], &self->order[to], (from - to) * sizeof *self->order);
    else
        memmove(&self->order[from], &self->order[from + 1], (to - from) * sizeof *self->order);
    self->order[to] = moved;
}

/* Moves a topmost block before one that was in its way, as long as there are looks. */
static void improve(planner *self, uint64_t height_bytes, uint64_t looks)
{
    uint64_t random = 1;
    const uint64_t looks_after = self->looks_left > looks ? self->looks_left - looks : 0;
    while (self->looks_left > looks_after && !reached(self)) {
        const uint32_t top = topmost(self, height_bytes, &random);
        const size_t placed = placed_neighbours(self, top);
        if (placed == 0)
            return;
        const size_t from = self->place_of[top];
        const size_t to = self->place_of[self->scratch[vram_next_random(&random) % placed]];
        move_in_order(self, from, to);
        const uint64_t tried_bytes = place_from(self, to);
        if (tried_bytes <= height_bytes) {
            height_bytes = tried_bytes;
            keep_if_better(self, height_bytes, "local search");
        } else {
            move_in_order(self, to, from);
            place_from(self, to);
        }
    }
}

/* ---- the exact search ---- */

/* Towards the target; then halfway between what failed and what is known, again and again. */
static void search(planner *self)
{
    enum { HALVINGS = 16 };
    uint64_t failed_bytes = self->target_bytes;
    uint64_t height_bytes = self->target_bytes;
    uint64_t looks = self->looks_left / 2;
    for (int round = 0; round <= HALVINGS; round++) {
        const uint64_t steps = looks / (self->count + 1);
        if (vram_pack(self->blocks, self->count, height_bytes, steps) == VRAM_PACK_FOUND)
            keep_if_better(self, height_of(self), "search");
        else
            failed_bytes = height_bytes;
        height_bytes = failed_bytes + (self->plan->height_bytes - failed_bytes) / 2;
        if (reached(self) || height_bytes == failed_bytes)
            return;
        looks = self->looks_left / (2 * HALVINGS);
    }
}

static bool make_plan(planner *self, uint32_t *alive, size_t *degree, vram_error *error)
{
    if (!list_neighbours(self, alive, degree, error))
        return false;
    if (self->target_bytes < self->plan->bound_bytes)
        self->target_bytes = self->plan->bound_bytes;
    const struct greedy *best = &greedy[0];
    for (size_t i = 0; i < GREEDY_ORDERS && !(i > 0 && reached(self)); i++) {
        keep_if_better(self, place_greedily(self, &greedy[i]), greedy[i].method);
        if (self->plan->method == greedy[i].method)
            best = &greedy[i];
    }
    if (!reached(self))
        improve(self, place_greedily(self, best), self->looks_left / 4);
    if (!reached(self) && self->count <= SEARCH_MOST_BLOCKS)
        search(self);
    for (size_t i = 0; i < self->count; i++)
        self->blocks[i].offset_bytes = self->best_offset[i];
    return true;
}

bool vram_plan_make(vram_plan_block *blocks, size_t count, const vram_plan_options *options,
                    vram_plan *plan, vram_error *error)
{
    *plan = (vram_plan){.method = NULL};
    planner self = {
        .blocks = blocks,
        .count = count,
        .plan = plan,
        .target_bytes = options->target_bytes,
        .looks_left = options->looks > 0 ? options->looks : DEFAULT_LOOKS,
        .first = malloc((count + 1) * sizeof *self.first),
        .order = malloc((count + 1) * sizeof *self.order),
        .place_of = malloc((count + 1) * sizeof *self.place_of),
        .best_offset = malloc((count + 1) * sizeof *self.best_offset),
    };
    uint32_t *const alive = malloc((count + 1) * sizeof *alive);
    size_t *const degree = calloc(count + 1, sizeof *degree);
    const bool ready = self.first != NULL && self.order != NULL && self.place_of != NULL &&
                       self.best_offset != NULL && alive != NULL && degree != NULL;
    const bool made = ready ? make_plan(&self, alive, degree, error) : out_of_memory(&self, error);
    free(degree);
    free(alive);
    free(self.scratch);
    free(self.neighbours);
    free(self.best_offset);
    free(self.place_of);
    free(self.order);
    free(self.first);
    return made;
}
