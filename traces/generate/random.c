/*
 * random.c - "random": sizes and lifetimes from stated distributions, tied or not.
 *
 * A block's size and life are quantiles of two normal numbers with the given correlation (a
 * Gaussian copula), so that any two distributions can be tied: correlation=0.8 makes large blocks
 * live long. One allocation a microsecond; lives are counted in allocations. `phases` and `swing`
 * let the population breathe, `ramp` lets it grow: life * (1 + swing sin) * (1 .. ramp).
 */
#include "maker.h"
#include "workloads.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define STEP_NS 1000
#define TWO_PI  6.283185307179586
enum { ZIPF_CLASSES = 64 };

typedef enum shape { UNIFORM, LOG_UNIFORM, LOG_NORMAL, ZIPF, EXPONENTIAL, SHAPES } shape;
static const char *const shape_names[SHAPES] = {"uniform", "log-uniform", "log-normal", "zipf",
                                                "exponential"};

typedef struct distribution {
    shape form;
    double least, most, median, sigma;
} distribution;

typedef struct workload {
    maker maker; /* first */
    distribution size, life;
    double correlation, swing, ramp, share;
    uint64_t allocs, phases, streams;
    uint64_t made;
    double zipf[ZIPF_CLASSES]; /* cumulative */
} workload;

static const vram_workload_option options[] = {
    {"allocs", "100000", "allocations"},
    {"seed", "1", "start of the random numbers"},
    {"size", "log-uniform",
     "uniform, log-uniform, log-normal, zipf (64 sizes, exponent 1) or "
     "exponential"},
    {"size-least", "512", "least size"},
    {"size-most", "64MiB", "greatest size"},
    {"size-median", "64KiB", "log-normal; exponential: the mean"},
    {"size-sigma", "1.5", "log-normal: deviation of the logarithm"},
    {"life", "exponential", "the same for lifetimes, counted in allocations"},
    {"life-least", "1", "least life"},
    {"life-most", "1000000", "greatest life"},
    {"life-median", "1000", "log-normal; exponential: the mean"},
    {"life-sigma", "1.5", "log-normal: deviation of the logarithm"},
    {"correlation", "0", "of size and life, 0 to 1"},
    {"inverse", "0", "1: large blocks live short instead"},
    {"phases", "0", "how often lives swell and shrink"},
    {"swing", "0.5", "by how much, 0 to 1"},
    {"ramp", "1", "how many times as long lives are at the end, whole"},
    {"streams", "1", "streams, drawn at random for each block"},
    {"share", "0", "how many blocks a second stream uses too, 0 to 1"},
    {NULL, NULL, NULL},
};

/* ---- options ---- */

static bool read_shape(const char *spec, const char *name, shape *form, vram_error *error)
{
    char text[32];
    if (!vram_workload_text(spec, options, name, text, sizeof text, error))
        return false;
    for (unsigned i = 0; i < SHAPES; i++)
        if (strcmp(text, shape_names[i]) == 0) {
            *form = (shape)i;
            return true;
        }
    return vram_fail(error,
                     "%s: '%s' is none of uniform, log-uniform, log-normal, zipf, "
                     "exponential",
                     spec, text);
}

/* The options that begin with "size" or "life". */
static bool read_distribution(const char *spec, const char *what, distribution *d,
                              vram_error *error)
{
    static const char *const parts[] = {"least", "most", "median"};
    double *const fields[] = {&d->least, &d->most, &d->median};
    char name[32];
    if (!read_shape(spec, what, &d->form, error))
        return false;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        uint64_t number;
        snprintf(name, sizeof name, "%s-%s", what, parts[i]);
        if (!vram_workload_size(spec, options, name, &number, error))
            return false;
        *fields[i] = (double)number;
    }
    snprintf(name, sizeof name, "%s-sigma", what);
    if (!vram_workload_ratio(spec, options, name, &d->sigma, error))
        return false;
    if (d->least < 1 || d->most < d->least || d->most > 1e15)
        return vram_fail(error, "%s: %s-least and %s-most must satisfy 1 <= least <= most <= 10^15",
                         spec, what, what);
    return true;
}

static bool read_numbers(const char *spec, workload *w, vram_error *error)
{
    uint64_t inverse, ramp;
    if (!vram_workload_count(spec, options, "allocs", &w->allocs, error) ||
        !vram_workload_count(spec, options, "phases", &w->phases, error) ||
        !vram_workload_count(spec, options, "streams", &w->streams, error) ||
        !vram_workload_count(spec, options, "inverse", &inverse, error) ||
        !vram_workload_count(spec, options, "ramp", &ramp, error) ||
        !vram_workload_ratio(spec, options, "swing", &w->swing, error) ||
        !vram_workload_ratio(spec, options, "share", &w->share, error) ||
        !vram_workload_ratio(spec, options, "correlation", &w->correlation, error))
        return false;
    if (w->correlation > 1 || w->swing > 1 || w->share > 1)
        return vram_fail(error, "%s: correlation, swing and share are between 0 and 1", spec);
    if (w->streams < 1 || w->streams > 4096)
        return vram_fail(error, "%s: streams is between 1 and 4096", spec);
    w->correlation = inverse != 0 ? -w->correlation : w->correlation;
    w->ramp = ramp < 1 ? 1 : (double)ramp;
    return true;
}

static void prepare_zipf(workload *w)
{
    double sum = 0;
    for (int i = 0; i < ZIPF_CLASSES; i++)
        w->zipf[i] = sum += 1.0 / (i + 1);
    for (int i = 0; i < ZIPF_CLASSES; i++)
        w->zipf[i] /= sum;
}

static bool random_open(vram_source *source, vram_error *error)
{
    const char *spec = source->path;
    uint64_t seed;
    if (!vram_workload_check(spec, options, error) ||
        !vram_workload_count(spec, options, "seed", &seed, error))
        return false;
    workload *w = maker_open(source, sizeof *w, seed, error);
    if (w == NULL)
        return false;
    if (read_distribution(spec, "size", &w->size, error) &&
        read_distribution(spec, "life", &w->life, error) && read_numbers(spec, w, error)) {
        prepare_zipf(w);
        return true;
    }
    maker_close(source);
    return false;
}

/* ---- draws ---- */

/* The share of a normal population below z. */
static double share_below(double z)
{
    return 0.5 * erfc(-z / sqrt(2));
}

/* The rank of the share, then the size of the rank: ranks are spread over the range by a stride
 * that meets each class once. */
static double zipf_quantile(const workload *w, const distribution *d, double share)
{
    int rank = 0;
    while (rank < ZIPF_CLASSES - 1 && w->zipf[rank] < share)
        rank++;
    const double place = (double)(rank * 37 % ZIPF_CLASSES) / (ZIPF_CLASSES - 1);
    return d->least * pow(d->most / d->least, place);
}

static double quantile(const workload *w, const distribution *d, double z)
{
    const double share = share_below(z);
    double value = 0;
    switch (d->form) {
    case UNIFORM:
        value = d->least + (d->most - d->least) * share;
        break;
    case LOG_UNIFORM:
        value = d->least * pow(d->most / d->least, share);
        break;
    case LOG_NORMAL:
        value = d->median * exp(d->sigma * z);
        break;
    case ZIPF:
        value = zipf_quantile(w, d, share);
        break;
    case EXPONENTIAL:
    case SHAPES:
        value = share < 1 ? -d->median * log1p(-share) : d->most;
        break;
    }
    return value < d->least ? d->least : value > d->most ? d->most : value;
}

static double stretch(const workload *w)
{
    const double progress = (double)w->made / (double)w->allocs;
    const double breath = 1 + w->swing * sin(TWO_PI * (double)w->phases * progress);
    return breath * (1 + (w->ramp - 1) * progress);
}

static bool random_step(void *self)
{
    workload *w = self;
    maker *m = &w->maker;
    if (w->made == w->allocs)
        return false;
    const double z = maker_normal(&m->random), other = maker_normal(&m->random);
    const double tied = w->correlation * z + sqrt(1 - w->correlation * w->correlation) * other;
    const double life = quantile(w, &w->life, tied) * stretch(w);
    m->stream = vram_random_below(&m->random, w->streams);
    const uint64_t id =
        maker_alloc(m, (uint64_t)quantile(w, &w->size, z), (uint64_t)(life * STEP_NS));
    if (w->streams > 1 && vram_random_unit(&m->random) < w->share)
        maker_use(m, id, (uint32_t)vram_random_below(&m->random, w->streams));
    w->made++;
    m->now_ns += STEP_NS;
    return true;
}

static vram_step random_next(vram_source *source, vram_raw *event, vram_error *error)
{
    return maker_next(source, random_step, event, error);
}

const vram_workload vram_workload_random = {
    .format = {.name = "random",
               .summary = "sizes and lifetimes from stated distributions, tied or not",
               .open = random_open,
               .next = random_next,
               .close = maker_close},
    .options = options,
};
