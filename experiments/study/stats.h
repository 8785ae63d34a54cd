/*
 * stats.h - what a table of measurements may say: medians and geometric means with their
 * uncertainty.
 *
 * Every interval is a percentile bootstrap of 95 %: it resamples what was measured and assumes no
 * distribution. The resampling is seeded, so that a table is the same from run to run.
 */
#ifndef VRAMLAB_STUDY_STATS_H
#define VRAMLAB_STUDY_STATS_H

#include <stddef.h>
#include <stdint.h>

enum { VRAM_BOOTSTRAP_RESAMPLES = 2000 };

/* A statistic and the interval in which it lies with 95 % confidence; all three are NAN when it
 * does not exist. With one value the interval is that value: nothing is known of its spread. */
typedef struct vram_estimate {
    double value;
    double low, high;
    size_t count; /* values that it rests on */
} vram_estimate;

/* The value below which a share (0 .. 1) of the values lies, interpolated; NAN when there are none.
 * O(n log n); the values are left as they are. */
double vram_quantile(const double *values, size_t count, double share);

double vram_median(const double *values, size_t count);

/* exp of the mean logarithm; NAN when there are none or one is not above 0. */
double vram_geomean(const double *values, size_t count);

vram_estimate vram_median_estimate(const double *values, size_t count, uint64_t seed);
vram_estimate vram_geomean_estimate(const double *values, size_t count, uint64_t seed);

/* The same cells measured twice: does the second differ from the first, and by what factor? */
typedef struct vram_paired {
    vram_estimate ratio;      /* geometric mean of second / first */
    size_t less, equal, more; /* pairs in which the second is less, equal, more */
    double sign_p; /* two-sided sign test: chance of so uneven a split if neither were better */
} vram_paired;

/* Values are paired by index and must be above 0. */
vram_paired vram_compare_pairs(const double *first, const double *second, size_t count,
                               uint64_t seed);

#endif
