/*
 * advise.h - the options with which a backend serves a trace in the least memory.
 *
 * The search starts from the stack as given and walks the options that matter for space, one after
 * another: each value of an option is fitted with the best of those before it kept. A change is
 * kept only when neither the smallest arena nor the size from which no arena fails becomes larger,
 * and one becomes smaller. Hence advice is never worse than what the search started from. It is the
 * best of the candidates tried, not of all that there are: options are not tried in all
 * combinations.
 */
#ifndef VRAMLAB_STUDY_ADVISE_H
#define VRAMLAB_STUDY_ADVISE_H

#include <vramlab/driver.h>

typedef struct vram_advise_options {
    const char *spec; /* the stack to start from; what it sets already stays as it is */
    uint64_t lower_bound_bytes;
    const vram_profile *profile;
    bool quick; /* only the first value of each option */
    void (*progress)(void *context, double share);
    void *progress_context;
} vram_advise_options;

typedef struct vram_advice {
    char *spec;           /* what to paste; the caller frees it */
    vram_fit_result fit;  /* of it */
    vram_fit_result from; /* of the stack as given */
    uint64_t candidates;  /* stacks fitted, the given one included */
} vram_advice;

/* False with a message when the given stack cannot be fitted; then nothing is to be freed. Where it
 * does not fit and no candidate does, fit.smallest_bytes is 0. */
bool vram_advise(vram_trace *trace, const vram_advise_options *options, vram_advice *advice,
                 vram_error *error);

/* Is `fit` no larger than `best` in both sizes, and smaller in one? Anything is better than what
 * does not fit. */
bool vram_advise_is_better(const vram_fit_result *fit, const vram_fit_result *best);

/* The stack with one more option on its backend, or one more layer when the key is "+". NULL when
 * it is set already, or there is no host memory; the caller frees it. */
char *vram_advise_with(const char *spec, const char *key, const char *value);

enum { VRAM_ADVISE_POOLS = 256 }; /* size of the text below */

/*
 * The course's pools, made exact: the four size classes up to 1 MiB with the most bytes alive at
 * once, as the value of `classes` with `shares` behind it: "2048/65536,shares=0.5%/3.25%". Each
 * share is the given portion of what the class needs by itself. False when no class needs any.
 */
bool vram_advise_pools(const vram_profile *profile, uint64_t unit_bytes, uint64_t arena_bytes,
                       double portion, char text[VRAM_ADVISE_POOLS]);

#endif
