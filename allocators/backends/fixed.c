/*
 * fixed.c - equal blocks, the lowest free one first.
 *
 *   |  #  |  .  |  #  |  #  |  .  |  .  |  .  | ~~ |      '#' live   '.' free   '~' padding
 *   0   block                                     arena
 *
 * A request takes one block, whatever its size; one that is larger than a block is refused as
 * oversize. Free blocks are found by a hierarchical bitmap (search=bitmap), or as the course's pool
 * finds them, by looking at one flag after another (search=scan); both answer with the same block.
 *
 * I1  block_bytes times the number of blocks, and the tail that is smaller than a block, are the
 *     arena.
 * P1 to P4 are those of core/pool.h, which keeps the blocks.
 *
 * alloc, release: O(1); with search=scan alloc is O(blocks). A request aligned above the largest
 * power of two in block_bytes looks at free runs one by one. check: O(blocks). Host memory: 4.2
 * bytes for each block that was ever given out. The course, chapter 4.
 */
#include "core/pool.h"

#include <stdlib.h>

typedef struct fixed {
    vram_backend head;
    vram_pool pool;
    uint64_t quick_align_bytes; /* every block starts at a multiple of it; 0 with search=scan */
    bool scan;
} fixed;

enum { FIXED_BLOCK, FIXED_SEARCH, FIXED_UNIT };
enum { SEARCH_BITMAP, SEARCH_SCAN };

static const vram_option fixed_options[] = {
    [FIXED_BLOCK] = {.name = "block",
                     .type = VRAM_OPTION_SIZE,
                     .fallback = "auto",
                     .least = 1,
                     .most = VRAM_ARENA_MAX,
                     .choices = "auto",
                     .help = "size of every block; auto: the trace's largest request, else 2MiB"},
    [FIXED_SEARCH] = {.name = "search",
                      .type = VRAM_OPTION_CHOICE,
                      .fallback = "bitmap",
                      .choices = "bitmap|scan",
                      .help = "how the lowest free block is found; scan: one flag after another"},
    [FIXED_UNIT] = VRAM_UNIT_OPTION,
    {.name = NULL},
};

/* What block=auto means: a block for every request, and no block that the arena could not hold. */
static uint64_t auto_block(const vram_config *config, uint64_t unit_bytes)
{
    if (config->profile != NULL && config->profile->largest_bytes > 0)
        return vram_round_up(config->profile->largest_bytes, unit_bytes);
    uint64_t block_bytes = UINT64_C(2) << 20;
    while (block_bytes > unit_bytes && block_bytes > config->arena_bytes)
        block_bytes /= 2;
    return vram_round_up(block_bytes, unit_bytes);
}

static bool fixed_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    const vram_value *block = &config->values[FIXED_BLOCK];
    uint64_t unit_bytes = 0;
    if (!vram_unit_of(config, &config->values[FIXED_UNIT], &unit_bytes, error))
        return false;
    const uint64_t block_bytes =
        block->word ? auto_block(config, unit_bytes) : vram_round_up(block->number, unit_bytes);
    if (config->arena_bytes / block_bytes > UINT32_MAX)
        return vram_fail(error,
                         "fixed: block=%s makes %llu blocks of this arena: at most %u, so at "
                         "least block=%llu",
                         block->text, (unsigned long long)(config->arena_bytes / block_bytes),
                         UINT32_MAX, (unsigned long long)(config->arena_bytes / UINT32_MAX + 1));
    fixed *self = calloc(1, sizeof *self);
    if (self == NULL || !vram_pool_init(&self->pool, 0, block_bytes,
                                        (uint32_t)(config->arena_bytes / block_bytes))) {
        free(self);
        return vram_fail(error, "fixed: out of host memory");
    }
    self->head.arena_bytes = config->arena_bytes;
    self->head.unit_bytes = unit_bytes;
    self->scan = config->values[FIXED_SEARCH].number == SEARCH_SCAN;
    self->quick_align_bytes = self->scan ? 0 : block_bytes & -block_bytes;
    *out = &self->head;
    return true;
}

static void fixed_destroy(vram_backend *backend)
{
    fixed *self = (fixed *)backend;
    vram_pool_free(&self->pool);
    free(self);
}

/*
 * The lowest free slot among each `step`th, touched or not; count when there is none.
 */
static uint64_t scan_for(const vram_pool *pool, uint64_t step)
{
    uint64_t slot = 0;
    while (slot < pool->touched && vram_pool_is_live(pool, (uint32_t)slot))
        slot += step;
    return slot < pool->count ? slot : pool->count;
}

/* The same, by jumping from one run of free slots to the next. */
static uint64_t jump_to(const vram_pool *pool, uint64_t step)
{
    uint64_t slot = 0;
    while (slot < pool->touched) {
        const uint32_t found = vram_bitmap_next(&pool->free, (uint32_t)slot);
        if (found == VRAM_BITMAP_NONE)
            break;
        slot = vram_round_up(found, step);
        if (slot == found)
            return slot;
    }
    slot = vram_round_up(pool->touched, step);
    return slot < pool->count ? slot : pool->count;
}

/* The ways that do not end at the bitmap's first member: a scan, or a block that starts at a
 * multiple of more than every block does. */
static __attribute__((noinline)) vram_result take_slowly(fixed *self, const vram_request *request,
                                                         vram_block *out)
{
    vram_pool *pool = &self->pool;
    const uint64_t natural_bytes = pool->block_bytes & -pool->block_bytes;
    const uint64_t step =
        request->align_bytes > natural_bytes ? request->align_bytes / natural_bytes : 1;
    const uint64_t slot = self->scan ? scan_for(pool, step) : jump_to(pool, step);
    return slot == pool->count ? VRAM_NO_SPACE : vram_pool_take_slot(pool, (uint32_t)slot, out);
}

static vram_result fixed_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    fixed *self = (fixed *)backend;
    if (request->size_bytes > self->pool.block_bytes)
        return VRAM_NO_SPACE;
    if (request->align_bytes > self->quick_align_bytes)
        return take_slowly(self, request, out);
    return vram_pool_take(&self->pool, out);
}

static vram_result fixed_release(vram_backend *backend, vram_block block)
{
    return vram_pool_give(&((fixed *)backend)->pool, block.handle, block.offset_bytes);
}

/* A block has its whole slot from the start, so that only the slot limits it. */
static vram_result fixed_resize(vram_backend *backend, vram_block *block, uint64_t size_bytes)
{
    const vram_pool *pool = &((fixed *)backend)->pool;
    if (!vram_pool_owns(pool, block->handle, block->offset_bytes))
        return VRAM_STALE_BLOCK;
    return size_bytes <= pool->block_bytes ? VRAM_OK : VRAM_NO_SPACE;
}

static uint64_t tail_bytes(const fixed *self)
{
    return self->head.arena_bytes - vram_pool_offset(&self->pool, self->pool.count);
}

static void fixed_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const fixed *self = (const fixed *)backend;
    vram_pool_walk(&self->pool, visit, context);
    if (tail_bytes(self) > 0)
        visit(context, &(vram_span){.offset_bytes = vram_pool_offset(&self->pool, self->pool.count),
                                    .size_bytes = tail_bytes(self),
                                    .block_bytes = tail_bytes(self),
                                    .kind = VRAM_SPAN_PADDING});
}

static bool fixed_check(const vram_backend *backend, vram_fault *fault)
{
    const fixed *self = (const fixed *)backend;
    const vram_pool *pool = &self->pool;
    if (pool->block_bytes == 0 || pool->count != self->head.arena_bytes / pool->block_bytes)
        return vram_fault_at(fault, "I1 tiles", 0);
    return vram_pool_check(pool, fault);
}

static void fixed_stats(const vram_backend *backend, vram_stats *out)
{
    const fixed *self = (const fixed *)backend;
    const vram_pool *pool = &self->pool;
    *out = (vram_stats){
        .granted_bytes = vram_pool_live(pool) * pool->block_bytes,
        .bound_bytes = (pool->count - vram_pool_live(pool)) * pool->block_bytes,
        .padding_bytes = tail_bytes(self),
        .live_blocks = vram_pool_live(pool),
        .spans = pool->touched,
        .bookkeeping_bytes = sizeof *self + vram_pool_host_bytes(pool),
    };
}

static void fixed_explain(const vram_backend *backend, const vram_request *request,
                          vram_failure *failure)
{
    const fixed *self = (const fixed *)backend;
    if (request->size_bytes > self->pool.block_bytes)
        failure->reason = VRAM_REASON_OVERSIZE;
    else if (vram_pool_live(&self->pool) == self->pool.count)
        failure->reason = VRAM_REASON_CLASS_FULL;
    /* else no free block is aligned as asked for: fragmented */
}

const vram_ops vram_fixed_ops = {
    .abi = VRAM_ABI,
    .name = "fixed",
    .summary = "equal blocks, the lowest free one first, in O(1)",
    .options = fixed_options,
    .create = fixed_create,
    .destroy = fixed_destroy,
    .alloc = fixed_alloc,
    .release = fixed_release,
    .walk = fixed_walk,
    .check = fixed_check,
    .stats = fixed_stats,
    .explain = fixed_explain,
    .resize = fixed_resize,
};
