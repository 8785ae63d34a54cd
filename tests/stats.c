/* stats.c - medians, geometric means and their intervals, against values worked out by hand. */
#include "study/stats.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

static const double ulps = 1e-12;

Test(stats, median_and_quantiles_interpolate_between_the_values)
{
    const double odd[] = {5, 1, 3};
    const double even[] = {4, 1, 2, 3};
    cr_assert(epsilon_eq(dbl, vram_median(odd, 3), 3, ulps));
    cr_assert(epsilon_eq(dbl, vram_median(even, 4), 2.5, ulps));
    cr_assert(epsilon_eq(dbl, vram_quantile(even, 4, 0), 1, ulps));
    cr_assert(epsilon_eq(dbl, vram_quantile(even, 4, 1), 4, ulps));
    cr_assert(epsilon_eq(dbl, vram_quantile(even, 4, 0.25), 1.75, ulps));
    cr_assert(epsilon_eq(dbl, odd[0], 5, ulps), "the values are left in their order");
}

Test(stats, geometric_mean_of_reciprocals_is_one)
{
    const double ratios[] = {2, 0.5, 8, 0.125};
    cr_assert(epsilon_eq(dbl, vram_geomean(ratios, 4), 1, ulps));
    const double rising[] = {1, 10, 100};
    cr_assert(epsilon_eq(dbl, vram_geomean(rising, 3), 10, 1e-9));
}

Test(stats, what_does_not_exist_is_not_a_number)
{
    const double bad[] = {1, 0, 2};
    cr_assert(isnan(vram_median(bad, 0)));
    cr_assert(isnan(vram_geomean(bad, 0)));
    cr_assert(isnan(vram_geomean(bad, 3)), "zero has no logarithm");
    cr_assert(isnan(vram_geomean_estimate(bad, 3, 1).low));
    cr_assert(isnan(vram_median_estimate(bad, 0, 1).value));
}

Test(stats, interval_of_a_single_value_or_of_equal_values_is_that_value)
{
    const double equal[] = {7, 7, 7, 7};
    for (size_t count = 1; count <= 4; count++) {
        const vram_estimate estimate = vram_median_estimate(equal, count, 3);
        cr_assert(epsilon_eq(dbl, estimate.low, 7, ulps));
        cr_assert(epsilon_eq(dbl, estimate.high, 7, ulps));
        cr_assert(eq(sz, estimate.count, count));
    }
}

Test(stats, the_same_seed_gives_the_same_interval)
{
    const double values[] = {1, 2, 4, 8, 16, 32, 64};
    const vram_estimate once = vram_geomean_estimate(values, 7, 42);
    const vram_estimate again = vram_geomean_estimate(values, 7, 42);
    cr_assert(epsilon_eq(dbl, once.low, again.low, 0));
    cr_assert(epsilon_eq(dbl, once.high, again.high, 0));
}

/* The interval is worth its name when it holds the true median in about 95 of 100 samples. */
Test(stats, interval_covers_the_true_median_nineteen_times_in_twenty)
{
    enum { SAMPLES = 400, SIZE = 25 };
    unsigned short state[3] = {1, 2, 3};
    size_t covered = 0;
    for (size_t sample = 0; sample < SAMPLES; sample++) {
        double values[SIZE];
        for (size_t i = 0; i < SIZE; i++)
            values[i] = exp(erand48(state)); /* median sqrt(e) */
        const vram_estimate estimate = vram_median_estimate(values, SIZE, sample);
        covered += estimate.low <= exp(0.5) && exp(0.5) <= estimate.high;
    }
    cr_log_info("covered %zu of %d", covered, SAMPLES);
    cr_assert(covered >= SAMPLES * 90 / 100, "covered only %zu of %d", covered, SAMPLES);
    cr_assert(covered < SAMPLES, "an interval that is never wrong is too wide");
}

Test(stats, pairs_are_compared_pair_by_pair)
{
    /* The second is a tenth less in nine pairs and equal in one; unpaired, the spread hides it. */
    double first[10];
    double second[10];
    for (size_t i = 0; i < 10; i++) {
        first[i] = pow(10, (double)i);
        second[i] = first[i] * (i == 9 ? 1 : 0.9);
    }
    const vram_paired paired = vram_compare_pairs(first, second, 10, 1);
    cr_assert(eq(sz, paired.less, 9));
    cr_assert(eq(sz, paired.equal, 1));
    cr_assert(eq(sz, paired.more, 0));
    cr_assert(epsilon_eq(dbl, paired.ratio.value, pow(0.9, 0.9), 1e-9));
    cr_assert(paired.ratio.high < 1);
    cr_assert(epsilon_eq(dbl, paired.sign_p, 2.0 / 512, 1e-9));
}

Test(stats, an_even_split_says_nothing)
{
    const double first[] = {1, 1, 1, 1};
    const double second[] = {2, 2, 0.5, 0.5};
    const vram_paired paired = vram_compare_pairs(first, second, 4, 1);
    cr_assert(epsilon_eq(dbl, paired.ratio.value, 1, ulps));
    cr_assert(epsilon_eq(dbl, paired.sign_p, 1, ulps));
}
