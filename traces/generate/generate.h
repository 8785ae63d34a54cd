/*
 * generate.h - workloads that are made, not recorded: "generate:mix,seed=7" opens like a file.
 *
 *     spec = name { "," key [ "=" value ] }
 *
 * A workload is a vram_format without probe and input. In open it parses source->path (the text
 * after "generate:" or "case:") with the helpers below; the same text always gives the same events.
 */
#ifndef VRAMLAB_GENERATE_H
#define VRAMLAB_GENERATE_H

#include "../readers/reader.h"

/* One option of a workload, for parsing and for `vramlab list`. The table ends with a null name. */
typedef struct vram_workload_option {
    const char *name;
    const char *fallback; /* as a user would write it */
    const char *help;     /* one line, with the allowed values */
} vram_workload_option;

typedef struct vram_workload {
    vram_format format; /* name, summary, open, next, rewind, close */
    const vram_workload_option *options;
} vram_workload;

/* All workloads of "generate:", and of "case:", ending with NULL (workloads.c, cases.c). */
extern const vram_workload *const vram_workloads[];
extern const vram_workload *const vram_cases[];

/* Checks that every key of the spec is in the table; names the key and what is allowed if not. */
bool vram_workload_check(const char *spec, const vram_workload_option *options, vram_error *error);
/* The value of an option, or its fallback. False with a message that names the option. */
bool vram_workload_size(const char *spec, const vram_workload_option *options, const char *name,
                        uint64_t *bytes, vram_error *error);
bool vram_workload_count(const char *spec, const vram_workload_option *options, const char *name,
                         uint64_t *count, vram_error *error);
bool vram_workload_ratio(const char *spec, const vram_workload_option *options, const char *name,
                         double *ratio, vram_error *error);
bool vram_workload_text(const char *spec, const vram_workload_option *options, const char *name,
                        char *text, size_t text_bytes, vram_error *error);

/* xoshiro256**, seeded by splitmix64 (Blackman and Vigna 2018): the same numbers everywhere. */
typedef struct vram_random {
    uint64_t state[4];
} vram_random;
vram_random vram_random_from(uint64_t seed);
uint64_t vram_random_next(vram_random *random);
uint64_t vram_random_below(vram_random *random, uint64_t bound); /* unbiased; bound at least 1 */
double vram_random_unit(vram_random *random);                    /* 0 <= x < 1 */

#endif
