/* model.c - sizes and lifetimes of a trace's blocks, measured and held against four families. */
#include <vramlab/model.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

const double vram_model_shares[VRAM_MODEL_QUANTILES] = {0, 0.01, 0.1, 0.5, 0.9, 0.99, 1};

const char *vram_family_name(vram_family family)
{
    static const char *const names[VRAM_FAMILIES] = {"uniform", "log-uniform", "log-normal",
                                                     "exponential"};
    return (unsigned)family < VRAM_FAMILIES ? names[family] : "unknown";
}

void vram_model_free(vram_model *model)
{
    free(model->blocks);
    *model = (vram_model){0};
}

/* ---- reading ---- */

typedef struct measuring {
    vram_trace *trace;
    vram_model *model;
    size_t capacity;
    size_t *by_slot; /* index of the block that lives there */
    size_t slot_capacity;
} measuring;

static bool begin_block(measuring *m, const vram_event *event)
{
    vram_model *model = m->model;
    if (!vram_reserve((void **)&model->blocks, &m->capacity, model->count + 1,
                      sizeof *model->blocks) ||
        !vram_reserve((void **)&m->by_slot, &m->slot_capacity, (size_t)event->slot + 1,
                      sizeof *m->by_slot))
        return false;
    m->by_slot[event->slot] = model->count;
    model->blocks[model->count++] = (vram_model_block){
        .size_bytes = event->size_bytes,
        .life = VRAM_LIVES_ON,
        .stream = vram_trace_stream(m->trace, event->stream),
        .tag = event->tag,
        .align_log2 = event->align_log2,
    };
    return true;
}

static void end_block(measuring *m, const vram_event *event)
{
    const size_t index = m->by_slot[event->slot];
    m->model->blocks[index].life = m->model->count - 1 - index;
}

static bool read_blocks(measuring *m, vram_error *error)
{
    vram_event event;
    vram_step step;
    while ((step = vram_trace_next(m->trace, &event, error)) == VRAM_STEP_EVENT) {
        if (event.kind == VRAM_EVENT_FREE || event.kind == VRAM_EVENT_RESIZE)
            end_block(m, &event);
        if ((event.kind == VRAM_EVENT_ALLOC || event.kind == VRAM_EVENT_RESIZE) &&
            !begin_block(m, &event))
            return vram_fail(error, "%s: out of memory", vram_trace_info_of(m->trace)->path);
    }
    return step == VRAM_STEP_END;
}

/* ---- distributions ---- */

static int by_number(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* The share of the family below a number, with the parameters that the sample suggests. */
static double share_below(const vram_distribution *d, vram_family family, double value)
{
    const double least = (double)d->quantiles[0];
    const double most = (double)d->quantiles[VRAM_MODEL_QUANTILES - 1];
    switch (family) {
    case VRAM_FAMILY_UNIFORM:
        return most > least ? (value - least) / (most - least) : 1;
    case VRAM_FAMILY_LOG_UNIFORM:
        return most > least ? log(value / least) / log(most / least) : 1;
    case VRAM_FAMILY_LOG_NORMAL:
        return d->log_sigma > 0 ? 0.5 * erfc(-(log(value) - d->log_mean) / (d->log_sigma * sqrt(2)))
                                : 1;
    case VRAM_FAMILY_EXPONENTIAL:
    case VRAM_FAMILIES:
        break;
    }
    return 1 - exp(-value / d->mean);
}

static double distance_to(const vram_distribution *d, vram_family family, const uint64_t *sorted)
{
    double distance = 0;
    for (uint64_t i = 0; i < d->count; i++) {
        if (i + 1 < d->count && sorted[i + 1] == sorted[i])
            continue; /* the step of equal numbers is at the last of them */
        const double gap =
            fabs((double)(i + 1) / (double)d->count - share_below(d, family, (double)sorted[i]));
        distance = gap > distance ? gap : distance;
    }
    return distance;
}

/* Sorts the numbers, which are at least 1. */
static void describe(uint64_t *numbers, size_t count, vram_distribution *d)
{
    *d = (vram_distribution){.count = count};
    if (count == 0)
        return;
    qsort(numbers, count, sizeof *numbers, by_number);
    double sum = 0, logs = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        const double logarithm = log((double)numbers[i]);
        sum += (double)numbers[i];
        logs += logarithm;
        squares += logarithm * logarithm;
    }
    d->mean = sum / (double)count;
    d->log_mean = logs / (double)count;
    d->log_sigma = sqrt(fmax(0, squares / (double)count - d->log_mean * d->log_mean));
    for (int i = 0; i < VRAM_MODEL_QUANTILES; i++)
        d->quantiles[i] = numbers[(size_t)(vram_model_shares[i] * (double)(count - 1))];
    for (unsigned family = 0; family < VRAM_FAMILIES; family++) {
        d->distance[family] = distance_to(d, (vram_family)family, numbers);
        if (d->distance[family] < d->distance[d->nearest])
            d->nearest = (vram_family)family;
    }
}

/* ---- how often sizes repeat ---- */

static int greater_first(const void *left, const void *right)
{
    return by_number(right, left);
}

/* The slope of log frequency over log rank, by least squares. */
static double zipf_exponent(const uint64_t *frequencies, size_t count)
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    if (count < 3)
        return 0;
    for (size_t i = 0; i < count; i++) {
        const double rank = log((double)(i + 1)), often = log((double)frequencies[i]);
        n++;
        x += rank;
        y += often;
        xx += rank * rank;
        xy += rank * often;
    }
    return -(n * xy - x * y) / (n * xx - x * x);
}

/* `sorted` becomes the frequencies. */
static void count_repeats(vram_model *model, uint64_t *sorted)
{
    enum { COMMON = 10 };
    size_t distinct = 0;
    for (size_t i = 0; i < model->count;) {
        size_t next = i;
        while (next < model->count && sorted[next] == sorted[i])
            next++;
        sorted[distinct++] = next - i;
        i = next;
    }
    if (distinct > 0)
        qsort(sorted, distinct, sizeof *sorted, greater_first);
    model->distinct_sizes = distinct;
    model->zipf_exponent = zipf_exponent(sorted, distinct);
    uint64_t common = 0;
    for (size_t i = 0; i < distinct && i < COMMON; i++)
        common += sorted[i];
    model->common_share = model->count > 0 ? (double)common / (double)model->count : 0;
}

/* ---- both together ---- */

static double correlation_of(const vram_model *model)
{
    double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < model->count; i++) {
        if (model->blocks[i].life == VRAM_LIVES_ON)
            continue;
        const double size = log((double)model->blocks[i].size_bytes);
        const double life = log((double)model->blocks[i].life + 1);
        n++;
        x += size;
        y += life;
        xx += size * size;
        yy += life * life;
        xy += size * life;
    }
    const double spread = (n * xx - x * x) * (n * yy - y * y);
    return spread > 0 ? (n * xy - x * y) / sqrt(spread) : 0;
}

static bool sum_up(vram_model *model, vram_error *error)
{
    uint64_t *numbers = malloc((model->count + 1) * sizeof *numbers);
    if (numbers == NULL)
        return vram_fail(error, "out of memory for %zu blocks", model->count);
    size_t freed = 0;
    for (size_t i = 0; i < model->count; i++)
        if (model->blocks[i].life != VRAM_LIVES_ON)
            numbers[freed++] = model->blocks[i].life + 1;
    model->never_freed = model->count - freed;
    describe(numbers, freed, &model->lives);
    for (size_t i = 0; i < model->count; i++)
        numbers[i] = model->blocks[i].size_bytes;
    describe(numbers, model->count, &model->sizes);
    count_repeats(model, numbers);
    model->correlation = correlation_of(model);
    free(numbers);
    return true;
}

bool vram_model_measure(vram_trace *trace, vram_model *model, vram_error *error)
{
    *model = (vram_model){0};
    measuring m = {.trace = trace, .model = model};
    const bool measured = vram_trace_rewind(trace, error) && read_blocks(&m, error) &&
                          sum_up(model, error) && vram_trace_rewind(trace, error);
    free(m.by_slot);
    if (!measured)
        vram_model_free(model);
    return measured;
}
