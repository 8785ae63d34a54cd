/*
 * reserve.c - a share of the arena that is opened only when the rest has failed, and counted.
 *
 *   | inner backend                                             | reserve: a list of its own |
 *   0                                                        base                        arena
 *
 * A request that the inner backend refuses for lack of space is asked of the reserve. A block
 * belongs to the part in which it lies. The reserve begins at a multiple of 2 MiB where the arena
 * is large enough for that, else of the unit; a request aligned above that is not served from it.
 *
 * I1  the inner backend manages [0, base), the reserve [base, arena), each by its own invariants.
 *
 * Cost: nothing while the rest serves. The course, chapter 4.
 */
#include "layers/layer.h"

#include <vramlab/registry.h>

#include <stdlib.h>

#define COARSE_BYTES (UINT64_C(2) << 20)
#define KEPT_BIT     (UINT64_C(1) << 63)

typedef struct reserve {
    vram_layer layer;
    vram_backend *kept;
    uint64_t base_bytes;
    uint64_t requests; /* that only the reserve could serve */
} reserve;

enum { RESERVE_SHARE };
static const vram_option reserve_options[] = {
    [RESERVE_SHARE] = {.name = "share",
                       .type = VRAM_OPTION_RATIO,
                       .fallback = "8%",
                       .least = 1,
                       .most = 900,
                       .help = "of the arena that is kept back; the course teaches 5 to 10 %"},
    {.name = NULL},
};

static uint64_t reserve_inner_bytes(const vram_config *config)
{
    const double share = config->values[RESERVE_SHARE].ratio;
    const uint64_t left_bytes =
        config->arena_bytes - (uint64_t)(share * (double)config->arena_bytes);
    const uint64_t unit_bytes = config->unit_bytes != 0 ? config->unit_bytes : 512;
    const uint64_t grain_bytes = left_bytes >= 8 * COARSE_BYTES ? COARSE_BYTES
                                 : left_bytes >= 2 * unit_bytes ? unit_bytes
                                                                : 1;
    return left_bytes & ~(grain_bytes - 1);
}

static bool reserve_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    reserve *self = vram_layer_new(config, sizeof *self, "reserve", error);
    if (self == NULL)
        return false;
    vram_config kept = *config;
    self->base_bytes = reserve_inner_bytes(config);
    kept.arena_bytes = config->arena_bytes - self->base_bytes;
    kept.unit_bytes = config->inner->unit_bytes;
    if (config->inner->address_bytes > config->inner->arena_bytes) {
        free(self);
        return vram_fail(error, "reserve cannot lie beside %s, whose addresses are not the arena's",
                         config->inner->ops->name);
    }
    if (kept.arena_bytes > 0 && !vram_create_from_text("list", &kept, &self->kept, error)) {
        free(self);
        return false;
    }
    self->layer.head.address_bytes = config->arena_bytes;
    *out = &self->layer.head;
    return true;
}

static void reserve_destroy(vram_backend *backend)
{
    vram_destroy(((reserve *)backend)->kept);
    vram_layer_destroy(backend);
}

/*
 * Blocks of the reserve as callers know them, and as its list does. Both parts begin to count
 * generations at 1; one bit keeps their handles apart.
 */
static vram_block from_kept(const reserve *self, vram_block block)
{
    block.offset_bytes += self->base_bytes;
    block.handle ^= KEPT_BIT;
    return block;
}

static vram_block to_kept(const reserve *self, vram_block block)
{
    block.offset_bytes -= self->base_bytes;
    block.handle ^= KEPT_BIT;
    return block;
}

static bool is_kept(const reserve *self, vram_block block)
{
    return self->kept != NULL && block.offset_bytes >= self->base_bytes;
}

static vram_result reserve_alloc(vram_backend *backend, const vram_request *request,
                                 vram_block *out)
{
    reserve *self = (reserve *)backend;
    const vram_result result = vram_layer_alloc(backend, request, out);
    if (result != VRAM_NO_SPACE || self->kept == NULL ||
        (self->base_bytes & (request->align_bytes - 1)) != 0)
        return result;
    vram_block block;
    const vram_result kept = vram_alloc(self->kept, *request, &block);
    if (kept != VRAM_OK)
        return kept;
    self->requests++;
    *out = from_kept(self, block);
    return VRAM_OK;
}

static vram_result reserve_release(vram_backend *backend, vram_block block)
{
    reserve *self = (reserve *)backend;
    return is_kept(self, block) ? vram_release(self->kept, to_kept(self, block))
                                : vram_layer_release(backend, block);
}

static vram_result reserve_resize(vram_backend *backend, vram_block *block, uint64_t size_bytes)
{
    reserve *self = (reserve *)backend;
    if (!is_kept(self, *block))
        return vram_layer_resize(backend, block, size_bytes);
    vram_block kept = to_kept(self, *block);
    const vram_result result = vram_resize(self->kept, &kept, size_bytes);
    if (result == VRAM_OK)
        *block = from_kept(self, kept);
    return result;
}

static vram_result reserve_use(vram_backend *backend, vram_block block, uint32_t stream)
{
    return is_kept((const reserve *)backend, block) ? VRAM_UNSUPPORTED
                                                    : vram_layer_use(backend, block, stream);
}

typedef struct kept_walk {
    vram_visit *visit;
    void *context;
    uint64_t base_bytes;
} kept_walk;

static void visit_kept(void *context, const vram_span *span)
{
    const kept_walk *walk = context;
    vram_span own = *span;
    own.offset_bytes += walk->base_bytes;
    if (own.kind == VRAM_SPAN_LIVE)
        own.handle ^= KEPT_BIT;
    if (own.kind == VRAM_SPAN_FREE)
        own.kind = VRAM_SPAN_RESERVE;
    walk->visit(walk->context, &own);
}

static void reserve_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const reserve *self = (const reserve *)backend;
    kept_walk walk = {.visit = visit, .context = context, .base_bytes = self->base_bytes};
    vram_layer_walk(backend, visit, context);
    if (self->kept != NULL)
        vram_walk(self->kept, visit_kept, &walk);
}

static bool reserve_check(const vram_backend *backend, vram_fault *fault)
{
    const reserve *self = (const reserve *)backend;
    const uint64_t kept_bytes = self->kept == NULL ? 0 : self->kept->arena_bytes;
    if (self->layer.inner->arena_bytes != self->base_bytes ||
        kept_bytes != backend->arena_bytes - self->base_bytes)
        return vram_fault_at(fault, "I1 parted", self->base_bytes);
    return vram_layer_check(backend, fault) &&
           (self->kept == NULL || vram_check(self->kept, fault));
}

static void reserve_stats(const vram_backend *backend, vram_stats *out)
{
    const reserve *self = (const reserve *)backend;
    vram_layer_stats(backend, out);
    out->reserve_requests += self->requests;
    if (self->kept == NULL)
        return;
    const vram_stats kept = vram_stats_of(self->kept);
    out->granted_bytes += kept.granted_bytes;
    out->reserve_bytes += kept.free_bytes;
    out->padding_bytes += kept.padding_bytes;
    out->live_blocks += kept.live_blocks;
    out->spans += kept.spans;
    out->bookkeeping_bytes += kept.bookkeeping_bytes;
}

static void reserve_explain(const vram_backend *backend, const vram_request *request,
                            vram_failure *failure)
{
    const reserve *self = (const reserve *)backend;
    vram_layer_explain(backend, request, failure);
    if (self->kept == NULL || (self->base_bytes & (request->align_bytes - 1)) != 0)
        return;
    const uint64_t kept_bytes = vram_explain(self->kept, *request).largest_free_bytes;
    if (kept_bytes > failure->largest_free_bytes)
        failure->largest_free_bytes = kept_bytes;
}

const vram_ops vram_reserve_ops = {
    .abi = VRAM_ABI,
    .layer = true,
    .name = "reserve",
    .summary = "a share of the arena that is opened only when the rest has failed",
    .options = reserve_options,
    .inner_bytes = reserve_inner_bytes,
    .create = reserve_create,
    .destroy = reserve_destroy,
    .alloc = reserve_alloc,
    .release = reserve_release,
    .walk = reserve_walk,
    .check = reserve_check,
    .stats = reserve_stats,
    .explain = reserve_explain,
    .resize = reserve_resize,
    .maintain = vram_layer_maintain,
    .plan_moves = vram_layer_plan_moves,
    .commit_move = vram_layer_commit_move,
    .trim = vram_layer_trim,
    .use = reserve_use,
    .sync = vram_layer_sync,
    .wait = vram_layer_wait,
    .hook = vram_layer_hook,
};
