/*
 * vramlab/model.h - what a trace's blocks are like: sizes, lifetimes, and how the two are tied.
 *
 *     vram_model model;
 *     if (!vram_model_measure(trace, &model, &error)) ...
 *     vram_model_free(&model);
 *
 * "generate:like,file=TRACE" draws from the same measurement.
 */
#ifndef VRAMLAB_MODEL_H
#define VRAMLAB_MODEL_H

#include <vramlab/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VRAM_LIVES_ON UINT64_MAX

/* A block of the trace, in the order of the allocations; a resize ends one and begins another. */
typedef struct vram_model_block {
    uint64_t size_bytes;
    uint64_t life;   /* in allocations, from 0; VRAM_LIVES_ON when it is never freed */
    uint64_t stream; /* handle */
    uint32_t tag;    /* of the trace */
    uint8_t align_log2;
} vram_model_block;

/* The families that are held against what was measured. */
typedef enum vram_family {
    VRAM_FAMILY_UNIFORM,
    VRAM_FAMILY_LOG_UNIFORM,
    VRAM_FAMILY_LOG_NORMAL,
    VRAM_FAMILY_EXPONENTIAL,
    VRAM_FAMILIES
} vram_family;

enum { VRAM_MODEL_QUANTILES = 7 };
extern const double vram_model_shares[VRAM_MODEL_QUANTILES]; /* 0, 0.01, 0.1, 0.5, 0.9, 0.99, 1 */

typedef struct vram_distribution {
    uint64_t count;
    uint64_t quantiles[VRAM_MODEL_QUANTILES];
    double mean;
    double log_mean, log_sigma;     /* of the natural logarithms */
    double distance[VRAM_FAMILIES]; /* largest gap between the two shares below, 0 to 1
                                       (Kolmogorov and Smirnov) */
    vram_family nearest;
} vram_distribution;

typedef struct vram_model {
    vram_model_block *blocks;
    size_t count;
    uint64_t never_freed;
    uint64_t distinct_sizes;
    double common_share;  /* of the blocks that have one of the ten commonest sizes */
    double zipf_exponent; /* of the sizes' frequencies by rank; 0 when there are under three */
    double correlation;   /* of the logarithms of size and life, over the blocks that are freed */
    vram_distribution sizes; /* bytes */
    vram_distribution lives; /* allocations, of the blocks that are freed, + 1 so that none is 0 */
} vram_model;

/* Reads the whole trace, which is left at its start. */
bool vram_model_measure(vram_trace *trace, vram_model *model, vram_error *error);
void vram_model_free(vram_model *model);

const char *vram_family_name(vram_family family); /* as the workload "random" calls it */

#ifdef __cplusplus
}
#endif
#endif
