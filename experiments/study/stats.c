/* stats.c - medians, geometric means, bootstrap intervals and the sign test. */
#include "stats.h"

#include <vramlab/text.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef double statistic(double *values, size_t count);

static const vram_estimate no_estimate = {NAN, NAN, NAN, 0};

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

static double quantile_of_sorted(const double *sorted, size_t count, double share)
{
    const double at = share * (double)(count - 1);
    const size_t below = (size_t)at;
    const size_t above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

static double median_in_place(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return quantile_of_sorted(values, count, 0.5);
}

static double mean_in_place(double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static double *copy_of(const double *values, size_t count)
{
    double *copy = malloc(count * sizeof *copy);
    if (copy != NULL)
        memcpy(copy, values, count * sizeof *copy);
    return copy;
}

double vram_quantile(const double *values, size_t count, double share)
{
    double *sorted = count > 0 ? copy_of(values, count) : NULL;
    if (sorted == NULL)
        return NAN;
    qsort(sorted, count, sizeof *sorted, by_value);
    const double answer = quantile_of_sorted(sorted, count, share);
    free(sorted);
    return answer;
}

double vram_median(const double *values, size_t count)
{
    return vram_quantile(values, count, 0.5);
}

/* The logarithms of the values, or NULL when there are none or one has no logarithm. */
static double *logarithms_of(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(values[i] > 0))
            return NULL;
    double *logs = count > 0 ? copy_of(values, count) : NULL;
    for (size_t i = 0; logs != NULL && i < count; i++)
        logs[i] = log(logs[i]);
    return logs;
}

double vram_geomean(const double *values, size_t count)
{
    double *logs = logarithms_of(values, count);
    const double answer = logs != NULL ? exp(mean_in_place(logs, count)) : NAN;
    free(logs);
    return answer;
}

static vram_estimate bootstrap(const double *values, size_t count, statistic *of, uint64_t seed)
{
    double *drawn = count > 0 ? malloc(count * sizeof *drawn) : NULL;
    double *answers = malloc(VRAM_BOOTSTRAP_RESAMPLES * sizeof *answers);
    vram_estimate estimate = no_estimate;
    if (drawn != NULL && answers != NULL) {
        memcpy(drawn, values, count * sizeof *drawn);
        estimate.value = of(drawn, count);
        estimate.count = count;
        for (size_t k = 0; k < VRAM_BOOTSTRAP_RESAMPLES; k++) {
            for (size_t i = 0; i < count; i++)
                drawn[i] = values[vram_next_random(&seed) % count];
            answers[k] = of(drawn, count);
        }
        qsort(answers, VRAM_BOOTSTRAP_RESAMPLES, sizeof *answers, by_value);
        estimate.low = quantile_of_sorted(answers, VRAM_BOOTSTRAP_RESAMPLES, 0.025);
        estimate.high = quantile_of_sorted(answers, VRAM_BOOTSTRAP_RESAMPLES, 0.975);
    }
    free(answers);
    free(drawn);
    return estimate;
}

vram_estimate vram_median_estimate(const double *values, size_t count, uint64_t seed)
{
    return bootstrap(values, count, median_in_place, seed);
}

vram_estimate vram_geomean_estimate(const double *values, size_t count, uint64_t seed)
{
    double *logs = logarithms_of(values, count);
    if (logs == NULL)
        return no_estimate;
    vram_estimate estimate = bootstrap(logs, count, mean_in_place, seed);
    free(logs);
    estimate.value = exp(estimate.value);
    estimate.low = exp(estimate.low);
    estimate.high = exp(estimate.high);
    return estimate;
}

/* Chance that a fair coin thrown less + more times splits at least as unevenly. */
static double sign_test(size_t less, size_t more)
{
    const size_t throws = less + more;
    const size_t rarer = less < more ? less : more;
    double tail = 0;
    for (size_t k = 0; k <= rarer; k++)
        tail += exp(lgamma((double)throws + 1) - lgamma((double)k + 1) -
                    lgamma((double)(throws - k) + 1) - (double)throws * log(2));
    return fmin(1, 2 * tail);
}

vram_paired vram_compare_pairs(const double *first, const double *second, size_t count,
                               uint64_t seed)
{
    vram_paired paired = {.ratio = no_estimate, .sign_p = 1};
    double *ratios = count > 0 ? malloc(count * sizeof *ratios) : NULL;
    if (ratios == NULL)
        return paired;
    for (size_t i = 0; i < count; i++) {
        ratios[i] = second[i] / first[i];
        paired.less += second[i] < first[i];
        paired.equal += second[i] == first[i];
        paired.more += second[i] > first[i];
    }
    paired.ratio = vram_geomean_estimate(ratios, count, seed);
    paired.sign_p = sign_test(paired.less, paired.more);
    free(ratios);
    return paired;
}
