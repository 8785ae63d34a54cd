/*
 * picky.c - a plug-in that serves everything or nothing, depending on the size of the arena, so
 * that the answer of `fit` is known beforehand. Its blocks overlap: it is for replays without
 * verification.
 */
#include <vramlab/backend.h>

#include <stdlib.h>

typedef struct picky {
    vram_backend head;
    bool serves;
    bool high;
    vram_stats stats;
} picky;

enum { LEAST, HOLE_FROM, HOLE_TO, HIGH };
static const vram_option picky_options[] = {
    [LEAST] = {.name = "least",
               .type = VRAM_OPTION_SIZE,
               .fallback = "0",
               .help = "serves from here"},
    [HOLE_FROM] = {.name = "from",
                   .type = VRAM_OPTION_SIZE,
                   .fallback = "0",
                   .help = "but not from here"},
    [HOLE_TO] = {.name = "to",
                 .type = VRAM_OPTION_SIZE,
                 .fallback = "0",
                 .help = "up to below here"},
    [HIGH] = {.name = "high",
              .type = VRAM_OPTION_FLAG,
              .fallback = "off",
              .help = "at the arena's end"},
    {.name = NULL},
};

static bool picky_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    (void)error;
    const uint64_t size_bytes = config->arena_bytes;
    const vram_value *const values = config->values;
    picky *self = calloc(1, sizeof *self);
    if (self == NULL)
        return vram_fail(error, "out of host memory");
    self->head.arena_bytes = size_bytes;
    self->head.unit_bytes = 1;
    self->serves = size_bytes >= values[LEAST].number &&
                   !(size_bytes >= values[HOLE_FROM].number && size_bytes < values[HOLE_TO].number);
    self->high = values[HIGH].number != 0;
    self->stats.free_bytes = size_bytes;
    *out = &self->head;
    return true;
}

static void picky_destroy(vram_backend *backend)
{
    free(backend);
}

static vram_result picky_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    const picky *self = (const picky *)backend;
    if (!self->serves)
        return VRAM_NO_SPACE;
    out->offset_bytes = self->high ? backend->arena_bytes - request->size_bytes : 0;
    out->granted_bytes = request->size_bytes;
    out->handle = UINT64_C(1) << 32;
    return VRAM_OK;
}

static vram_result picky_release(vram_backend *backend, vram_block block)
{
    (void)backend;
    (void)block;
    return VRAM_OK;
}

static void picky_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const vram_span all = {.size_bytes = backend->arena_bytes,
                           .block_bytes = backend->arena_bytes,
                           .kind = VRAM_SPAN_FREE};
    visit(context, &all);
}

static bool picky_check(const vram_backend *backend, vram_fault *fault)
{
    (void)backend;
    (void)fault;
    return true;
}

static void picky_stats(const vram_backend *backend, vram_stats *out)
{
    *out = ((const picky *)backend)->stats;
}

const vram_ops vram_plugin = {
    .abi = VRAM_ABI,
    .name = "picky",
    .summary = "serves in some arenas",
    .options = picky_options,
    .create = picky_create,
    .destroy = picky_destroy,
    .alloc = picky_alloc,
    .release = picky_release,
    .walk = picky_walk,
    .check = picky_check,
    .stats = picky_stats,
};
