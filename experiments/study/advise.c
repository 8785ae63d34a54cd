/*
 * advise.c - the search for a backend's best options on a trace.
 *
 *   given stack --fit--> best so far
 *       for each option, for each value:   best + option=value
 *           fails in the best's own arena -> dropped, after a replay or two
 *           fits there                    -> fitted in full, kept when better
 *
 * Dropping is what makes it quick: a candidate is first asked only for arenas that would improve on
 * the best (give_up_ratio), and most fail in the largest of them at once. One that fails there and
 * completes in a smaller arena is dropped too: an arena that happens to work is no advice.
 */
#include "study/advise.h"

#include <vramlab/registry.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AXIS_VALUES = 6, POOLS = 4, POOL_LARGEST_BYTES = 1 << 20 };

/* One option and what to try, the most promising first. The key "+" adds a layer. */
typedef struct axis {
    const char *backend; /* NULL: any */
    const char *key;
    const char *values[AXIS_VALUES];
} axis;

/* The values "pools" and "half pools" stand for what vram_advise_pools makes. */
static const axis axes[] = {
    {"segregated", "large", {"256KiB", "64KiB", "4MiB", "16MiB"}},
    {"segregated", "classes", {"half pools", "pools", "2", "4", "12", "pow2"}},
    {"segregated", "shares", {"equal"}},
    {"segregated", "general", {"tlsf"}},
    {"naive", "round", {"pow2"}},
    {"buddy", "trim", {"on"}},
    {"buddy", "place", {"low"}},
    {"buddy", "min", {"2KiB", "64KiB", "512KiB", "2MiB"}},
    {"slab", "large", {"64KiB", "256KiB", "16KiB", "4MiB"}},
    {"slab", "slab", {"64KiB", "16KiB", "1MiB"}},
    {"slab", "steps", {"8", "2"}},
    {"slab", "pages", {"tlsf"}},
    {"slab", "empty", {"0"}},
    {"list", "policy", {"first", "worst"}},
    {"list", "unit", {"2KiB", "64KiB"}},
    {"tlsf", "look", {"256", "1"}},
    {"tlsf", "unit", {"2KiB", "64KiB"}},
    {"caching", "roundup_power2_divisions", {"8", "4"}},
    {"caching", "max_split_size", {"64MiB", "256MiB"}},
    {"caching", "garbage_collection_threshold", {"0.6"}},
    {NULL, "+", {"reserve:share=5%", "reserve:share=10%"}},
};
enum { AXES = sizeof axes / sizeof axes[0] };

typedef struct search {
    vram_trace *trace;
    const vram_advise_options *options;
    vram_advice *advice;
} search;

static bool is_axis_of(const axis *self, const char *spec)
{
    const size_t length = strcspn(spec, ":+");
    return self->backend == NULL ||
           (strlen(self->backend) == length && strncmp(self->backend, spec, length) == 0);
}

/* Does the backend part, `length` long, set this option? */
static bool sets(const char *part, size_t length, const char *key)
{
    const size_t key_length = strlen(key);
    for (size_t at = 0; at + key_length + 1 < length; at++)
        if ((part[at] == ':' || part[at] == ',') && part[at + 1 + key_length] == '=' &&
            strncmp(part + at + 1, key, key_length) == 0)
            return true;
    return false;
}

char *vram_advise_with(const char *spec, const char *key, const char *value)
{
    const size_t length = strcspn(spec, "+");
    char *text = NULL;
    int made;
    if (strcmp(key, "+") == 0) {
        char layer[64];
        snprintf(layer, sizeof layer, "+%.*s", (int)strcspn(value, ":"), value);
        if (strstr(spec + length, layer) != NULL)
            return NULL;
        made = asprintf(&text, "%.*s+%s%s", (int)length, spec, value, spec + length);
    } else {
        if (sets(spec, length, key))
            return NULL;
        made = asprintf(&text, "%.*s%c%s=%s%s", (int)length, spec,
                        memchr(spec, ':', length) != NULL ? ',' : ':', key, value, spec + length);
    }
    return made < 0 ? NULL : text;
}

bool vram_advise_is_better(const vram_fit_result *fit, const vram_fit_result *best)
{
    if (fit->smallest_bytes == 0 || best->smallest_bytes == 0)
        return fit->smallest_bytes > 0;
    return fit->smallest_bytes <= best->smallest_bytes &&
           fit->no_failure_from_bytes <= best->no_failure_from_bytes &&
           (fit->smallest_bytes < best->smallest_bytes ||
            fit->no_failure_from_bytes < best->no_failure_from_bytes);
}

/* The class with the most bytes alive at once among those not yet taken; 64 when none is left. */
static uint32_t neediest_class(const vram_profile *profile, uint64_t taken)
{
    uint32_t found = VRAM_PROFILE_CLASSES;
    for (uint32_t k = 0; k < VRAM_PROFILE_CLASSES; k++)
        if (profile->class_peak_bytes[k] > 0 && (taken >> k & 1) == 0 &&
            profile->class_largest_bytes[k] <= POOL_LARGEST_BYTES &&
            (found == VRAM_PROFILE_CLASSES ||
             profile->class_peak_bytes[k] > profile->class_peak_bytes[found]))
            found = k;
    return found;
}

bool vram_advise_pools(const vram_profile *profile, uint64_t unit_bytes, uint64_t arena_bytes,
                       double portion, char text[VRAM_ADVISE_POOLS])
{
    char classes[VRAM_ADVISE_POOLS / 2] = "", shares[VRAM_ADVISE_POOLS / 2] = "";
    size_t classes_used = 0, shares_used = 0;
    uint64_t taken = 0, before_bytes = 0;
    for (int pool = 0; pool < POOLS; pool++) {
        const uint32_t k = neediest_class(profile, taken);
        if (k < VRAM_PROFILE_CLASSES)
            taken |= UINT64_C(1) << k;
    }
    for (uint32_t k = 0; k < VRAM_PROFILE_CLASSES; k++) {
        const uint64_t block_bytes =
            (profile->class_largest_bytes[k] + unit_bytes - 1) & ~(unit_bytes - 1);
        const double share = 100.0 * portion * (double)profile->class_peak_blocks[k] *
                             (double)block_bytes / (double)arena_bytes;
        if ((taken >> k & 1) == 0 || block_bytes == before_bytes || share < 0.001)
            continue; /* two classes within one unit are one pool */
        const char *lead = classes_used > 0 ? "/" : "";
        classes_used += (size_t)snprintf(classes + classes_used, sizeof classes - classes_used,
                                         "%s%llu", lead, (unsigned long long)block_bytes);
        shares_used += (size_t)snprintf(shares + shares_used, sizeof shares - shares_used,
                                        "%s%.3f%%", lead, share);
        before_bytes = block_bytes;
    }
    const int length = snprintf(text, VRAM_ADVISE_POOLS, "%s,shares=%s", classes, shares);
    return classes_used > 0 && length < VRAM_ADVISE_POOLS; /* cut text would be other pools */
}

/* The value of an axis as it must be written, or NULL when the trace gives none. */
static const char *written(const search *self, const char *value, char text[VRAM_ADVISE_POOLS])
{
    const bool half = strcmp(value, "half pools") == 0;
    if (!half && strcmp(value, "pools") != 0)
        return value;
    return vram_advise_pools(self->options->profile, vram_trace_info_of(self->trace)->unit_bytes,
                             self->options->lower_bound_bytes, half ? 0.5 : 1, text)
               ? text
               : NULL;
}

static bool fit(const search *self, const char *spec, double give_up_ratio, vram_fit_result *result,
                vram_error *error)
{
    const vram_fit_options how = {
        .spec = spec,
        .lower_bound_bytes = self->options->lower_bound_bytes,
        .give_up_ratio = give_up_ratio,
        .profile = self->options->profile,
    };
    self->advice->candidates += give_up_ratio > 0 ? 0 : 1;
    return vram_fit(self->trace, &how, result, error);
}

/* Fits the candidate, and keeps it when it is better. What cannot be made over so small an arena is
 * no advice. Takes the text over. */
static void consider(search *self, char *spec)
{
    vram_advice *const best = self->advice;
    const double bound = (double)self->options->lower_bound_bytes;
    const bool certain = best->fit.smallest_bytes == best->fit.no_failure_from_bytes;
    const uint64_t unit_bytes = vram_trace_info_of(self->trace)->unit_bytes;
    vram_error ignored = {""};
    vram_fit_result found = {0};
    bool promising = vram_spec_is_valid(spec, &ignored);
    if (promising && best->fit.smallest_bytes > 0) {
        const uint64_t most_bytes = best->fit.smallest_bytes - (certain ? unit_bytes : 0);
        best->candidates++;
        promising = most_bytes >= self->options->lower_bound_bytes &&
                    fit(self, spec, (double)most_bytes / bound, &found, &ignored) &&
                    found.smallest_bytes > 0;
        best->candidates -= promising ? 1 : 0; /* it is counted when fitted in full */
    }
    if (promising && fit(self, spec, 0, &found, &ignored) &&
        vram_advise_is_better(&found, &best->fit)) {
        free(best->spec);
        best->spec = spec;
        best->fit = found;
        return;
    }
    free(spec);
}

static void walk(search *self, const axis *along)
{
    char *base = strdup(self->advice->spec); /* values replace each other, they do not add up */
    for (size_t i = 0; base != NULL && i < AXIS_VALUES && along->values[i] != NULL; i++) {
        if (i > 0 && self->options->quick)
            break;
        char pools[VRAM_ADVISE_POOLS];
        const char *value = written(self, along->values[i], pools);
        char *candidate = value != NULL ? vram_advise_with(base, along->key, value) : NULL;
        if (candidate != NULL)
            consider(self, candidate);
    }
    free(base);
}

bool vram_advise(vram_trace *trace, const vram_advise_options *options, vram_advice *advice,
                 vram_error *error)
{
    *advice = (vram_advice){0};
    search self = {.trace = trace, .options = options, .advice = advice};
    if (!fit(&self, options->spec, 0, &advice->from, error))
        return false;
    advice->fit = advice->from;
    advice->spec = strdup(options->spec);
    if (advice->spec == NULL)
        return vram_fail(error, "out of host memory");
    for (size_t i = 0; i < AXES; i++) {
        if (options->progress != NULL)
            options->progress(options->progress_context, (double)i / AXES);
        if (is_axis_of(&axes[i], options->spec))
            walk(&self, &axes[i]);
    }
    return true;
}
