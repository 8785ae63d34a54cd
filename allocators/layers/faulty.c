/*
 * faulty.c - refuses chosen allocations, so that a program's answer to "no" can be tested.
 *
 * `nth=5` refuses the fifth allocation and no other; `nth=5,every=10` the 5th, 15th, 25th ...
 * A refusal is VRAM_NO_SPACE and is explained as injected. Nothing else is changed.
 */
#include "layers/layer.h"

typedef struct faulty {
    vram_layer layer;
    uint64_t nth;
    uint64_t every;
    uint64_t allocations;
    bool injected; /* the last allocation was refused here */
} faulty;

enum { FAULTY_NTH, FAULTY_EVERY };
static const vram_option faulty_options[] = {
    [FAULTY_NTH] = {.name = "nth",
                    .type = VRAM_OPTION_COUNT,
                    .fallback = "0",
                    .help = "the allocation that is refused, counted from 1; 0: none"},
    [FAULTY_EVERY] = {.name = "every",
                      .type = VRAM_OPTION_COUNT,
                      .fallback = "0",
                      .help = "from there on each so many; 0: only that one"},
    {.name = NULL},
};

static bool faulty_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    faulty *self = vram_layer_new(config, sizeof *self, "faulty", error);
    if (self == NULL)
        return false;
    self->nth = config->values[FAULTY_NTH].number;
    self->every = config->values[FAULTY_EVERY].number;
    *out = &self->layer.head;
    return true;
}

static bool is_chosen(const faulty *self)
{
    if (self->nth == 0 || self->allocations < self->nth)
        return false;
    const uint64_t beyond = self->allocations - self->nth;
    return beyond == 0 || (self->every != 0 && beyond % self->every == 0);
}

static vram_result faulty_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    faulty *self = (faulty *)backend;
    self->allocations++;
    self->injected = is_chosen(self);
    return self->injected ? VRAM_NO_SPACE : vram_layer_alloc(backend, request, out);
}

static void faulty_explain(const vram_backend *backend, const vram_request *request,
                           vram_failure *failure)
{
    if (((const faulty *)backend)->injected)
        failure->reason = VRAM_REASON_INJECTED;
    else
        vram_layer_explain(backend, request, failure);
}

const vram_ops vram_faulty_ops = {
    .abi = VRAM_ABI,
    .layer = true,
    .name = "faulty",
    .summary = "refuses chosen allocations, to test a program's answer to \"no\"",
    .options = faulty_options,
    .create = faulty_create,
    .destroy = vram_layer_destroy,
    .alloc = faulty_alloc,
    .release = vram_layer_release,
    .walk = vram_layer_walk,
    .check = vram_layer_check,
    .stats = vram_layer_stats,
    .explain = faulty_explain,
    .resize = vram_layer_resize,
    .maintain = vram_layer_maintain,
    .plan_moves = vram_layer_plan_moves,
    .commit_move = vram_layer_commit_move,
    .trim = vram_layer_trim,
    .use = vram_layer_use,
    .sync = vram_layer_sync,
    .wait = vram_layer_wait,
    .hook = vram_layer_hook,
};
