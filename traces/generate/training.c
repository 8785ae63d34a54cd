/*
 * training.c - "training": iterations of a transformer, as PyTorch asks for memory.
 *
 *   live |        /\        /\       weights stay; the first step adds the optimizer's two states;
 *        |    ___/  \___ __/  \__    forward piles activations up, backward takes them down in
 *        |___/                       reverse and leaves gradients, which the step frees
 *        +------------------------> steps, each of another batch and length
 *
 * Sizes follow from hidden width, batch and length, at 4 bytes a number; a stream of its own may
 * copy the next batch.
 */
#include "maker.h"
#include "workloads.h"

#include <stdlib.h>

enum { NUMBER_BYTES = 4, OP_NS = 20000, WEIGHTS = 4, ACTIVATIONS = 6, LAYERS_MAX = 512 };

typedef struct workload {
    maker maker; /* first */
    uint64_t layers, hidden, heads, batch, length, steps, streams;
    uint64_t step;
    bool vary;
    uint64_t *activations; /* ACTIVATIONS a layer */
    uint64_t *gradients;   /* WEIGHTS a layer */
} workload;

static const vram_workload_option options[] = {
    {"steps", "20", "iterations"},
    {"layers", "12", "layers, 1 to 512"},
    {"hidden", "768", "width of the model"},
    {"heads", "12", "heads of attention"},
    {"batch", "8", "greatest batch"},
    {"length", "1024", "greatest length of a sequence"},
    {"vary", "1", "0: every step has the greatest batch and length"},
    {"streams", "1", "2: the next batch is copied on a stream of its own"},
    {"seed", "1", "start of the random numbers"},
    {NULL, NULL, NULL},
};

static bool read_options(const char *spec, workload *w, vram_error *error)
{
    static const char *const names[] = {"steps", "layers", "hidden", "heads",
                                        "batch", "length", "streams"};
    uint64_t *const fields[] = {&w->steps, &w->layers, &w->hidden, &w->heads,
                                &w->batch, &w->length, &w->streams};
    uint64_t vary;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!vram_workload_count(spec, options, names[i], fields[i], error))
            return false;
        if (*fields[i] < 1 || *fields[i] > 1 << 20)
            return vram_fail(error, "%s: %s is between 1 and 1048576", spec, names[i]);
    }
    if (!vram_workload_count(spec, options, "vary", &vary, error))
        return false;
    w->vary = vary != 0;
    return w->layers <= LAYERS_MAX ||
           vram_fail(error, "%s: layers is between 1 and %d", spec, LAYERS_MAX);
}

static void training_close(vram_source *source)
{
    workload *w = source->state;
    free(w->activations);
    free(w->gradients);
    maker_close(source);
}

static bool training_open(vram_source *source, vram_error *error)
{
    const char *spec = source->path;
    uint64_t seed;
    if (!vram_workload_check(spec, options, error) ||
        !vram_workload_count(spec, options, "seed", &seed, error))
        return false;
    workload *w = maker_open(source, sizeof *w, seed, error);
    if (w == NULL)
        return false;
    if (!read_options(spec, w, error)) {
        training_close(source);
        return false;
    }
    w->activations = calloc(w->layers * ACTIVATIONS, sizeof *w->activations);
    w->gradients = calloc(w->layers * WEIGHTS, sizeof *w->gradients);
    if (w->activations != NULL && w->gradients != NULL)
        return true;
    training_close(source);
    return vram_fail(error, "%s: out of memory", spec);
}

/* Bytes of a layer's weights: the three projections, the one behind attention, two of the MLP. */
static uint64_t weight_bytes(const workload *w, uint64_t k)
{
    static const uint64_t squares[WEIGHTS] = {3, 1, 4, 4};
    return squares[k] * w->hidden * w->hidden * NUMBER_BYTES;
}

/* Bytes of a layer's activations: norm, projections, scores, attention's output, MLP's two. */
static uint64_t activation_bytes(const workload *w, uint64_t k, uint64_t batch, uint64_t length)
{
    const uint64_t tokens = batch * length * NUMBER_BYTES;
    const uint64_t sizes[ACTIVATIONS] = {tokens * w->hidden,         3 * tokens * w->hidden,
                                         tokens * w->heads * length, tokens * w->hidden,
                                         4 * tokens * w->hidden,     tokens * w->hidden};
    return sizes[k];
}

static void hold_weights(workload *w, const char *tag)
{
    maker *m = &w->maker;
    maker_tag(m, tag);
    for (uint64_t layer = 0; layer < w->layers; layer++)
        for (uint64_t k = 0; k < WEIGHTS; k++, m->now_ns += OP_NS)
            maker_hold(m, weight_bytes(w, k));
}

static void go_forward(workload *w, uint64_t batch, uint64_t length)
{
    maker *m = &w->maker;
    maker_tag(m, "activation");
    for (uint64_t layer = 0; layer < w->layers; layer++)
        for (uint64_t k = 0; k < ACTIVATIONS; k++, m->now_ns += OP_NS) {
            const uint64_t bytes = activation_bytes(w, k, batch, length);
            w->activations[layer * ACTIVATIONS + k] = maker_hold(m, bytes);
            if (k % 2 == 1) /* the result before the last function, gone at once */
                maker_alloc(m, bytes / 2, OP_NS / 2);
        }
}

static void go_backward(workload *w, uint64_t batch, uint64_t length)
{
    maker *m = &w->maker;
    for (uint64_t layer = w->layers; layer-- > 0;) {
        for (uint64_t k = ACTIVATIONS; k-- > 0; m->now_ns += OP_NS) {
            maker_tag(m, "gradient of an activation");
            maker_alloc(m, activation_bytes(w, k, batch, length), 3 * OP_NS / 2);
            maker_free(m, w->activations[layer * ACTIVATIONS + k]);
        }
        maker_tag(m, "gradient");
        for (uint64_t k = 0; k < WEIGHTS; k++, m->now_ns += OP_NS)
            w->gradients[layer * WEIGHTS + k] = maker_hold(m, weight_bytes(w, k));
    }
}

static void update(workload *w)
{
    maker *m = &w->maker;
    if (w->step == 0) {
        hold_weights(w, "optimizer, first moment");
        hold_weights(w, "optimizer, second moment");
    }
    maker_tag(m, "update");
    for (uint64_t i = 0; i < w->layers * WEIGHTS; i++, m->now_ns += OP_NS)
        maker_alloc(m, weight_bytes(w, i % WEIGHTS), OP_NS / 2);
    for (uint64_t i = 0; i < w->layers * WEIGHTS; i++)
        maker_free(m, w->gradients[i]);
}

static bool training_step(void *self)
{
    workload *w = self;
    maker *m = &w->maker;
    if (w->step == w->steps)
        return false;
    if (w->step == 0)
        hold_weights(w, "weight");
    maker_mark(m, "step");
    const uint64_t batch =
        w->vary ? maker_between(&m->random, (w->batch + 3) / 4, w->batch) : w->batch;
    const uint64_t length =
        w->vary ? maker_between(&m->random, (w->length + 7) / 8, w->length) : w->length;
    m->stream = w->streams > 1 ? 1 : 0;
    maker_tag(m, "input");
    const uint64_t input = maker_hold(m, batch * length * 8);
    m->stream = 0;
    if (w->streams > 1)
        maker_use(m, input, 0);
    go_forward(w, batch, length);
    go_backward(w, batch, length);
    update(w);
    maker_free(m, input);
    w->step++;
    return true;
}

static vram_step training_next(vram_source *source, vram_raw *event, vram_error *error)
{
    return maker_next(source, training_step, event, error);
}

const vram_workload vram_workload_training = {
    .format = {.name = "training",
               .summary = "iterations of a transformer: forward, backward, optimizer",
               .open = training_open,
               .next = training_next,
               .close = training_close},
    .options = options,
};
