/*
 * job.h - what compare, fit, heatmap and the others have in common: a trace with its summary, the
 * arena it is replayed in, and the backends that are asked for.
 */
#ifndef VRAMLAB_JOB_H
#define VRAMLAB_JOB_H

#include "cli/command.h"

#include <vramlab/driver.h>
#include <vramlab/registry.h>

typedef struct replay_job {
    const command *self; /* for messages */
    vram_trace *trace;   /* held in memory, unless it is very long */
    vram_trace_summary summary;
    vram_profile profile;
    const char *arena_kind; /* "virtual" */
    uint64_t arena_bytes;
    vram_compaction compact;
    const char *arena_origin; /* "what PyTorch had reserved at its peak": for the report */
    char **specs;             /* the backends, as stacks */
    size_t spec_count;
} replay_job;

/* The options that every replaying command has; embed as the first field of the command's own. */
typedef struct job_fields {
    const char *arena;
    const char *backends;
    const char *compact;
    uint32_t device;
    bool strict;
} job_fields;

#define JOB_OPTION_ROWS                                                                            \
    {.name = "--backend",                                                                          \
     .alias = "-b",                                                                                \
     .kind = OPTION_TEXT,                                                                          \
     .value = "A,B",                                                                               \
     .offset = offsetof(job_fields, backends),                                                     \
     .help = "backend stacks, such as list:policy=best,tlsf+stream (see `vramlab list`);\n"        \
             "default: every backend with its defaults"},                                          \
        {.name = "--device",                                                                       \
         .kind = OPTION_INDEX,                                                                     \
         .value = "N",                                                                             \
         .offset = offsetof(job_fields, device),                                                   \
         .help = "PyTorch snapshots: whose history to replay (default 0)"},                        \
    {                                                                                              \
        .name = "--strict", .kind = OPTION_FLAG, .offset = offsetof(job_fields, strict),           \
        .help = "an anomaly of the trace is an error rather than a count"                          \
    }

#define JOB_ARENA_ROW                                                                              \
    {                                                                                              \
        .name = "--arena", .kind = OPTION_TEXT, .value = "[KIND:]SIZE",                            \
        .offset = offsetof(job_fields, arena),                                                     \
        .help = "the arena: 3GiB, host:512MiB, or a share of peak live such as 110%;\n"            \
                "default: what PyTorch had reserved at its peak, else 125 % of peak live"          \
    }

#define JOB_COMPACT_ROW                                                                            \
    {                                                                                              \
        .name = "--compact", .kind = OPTION_TEXT, .value = "WHEN",                                 \
        .offset = offsetof(job_fields, compact),                                                   \
        .help = "move blocks together, on backends that can: every=10000 (events), failure (and\n" \
                "ask again), or both with a comma; budget=64MiB bounds the bytes moved at once"    \
    }

/*
 * Opens and summarises the trace, settles the arena and the backends. Returns -1 to go on, or the
 * exit status after a message. job_close is safe in every case.
 */
int job_open(replay_job *self, const command *which, const job_fields *fields, const char *path);
void job_close(replay_job *self);

/* What was asked with --compact, where the backend plans moves; else never. */
vram_compaction job_compaction(const replay_job *self, const vram_backend *backend);

/* Makes the backend at `index` over arena_bytes. */
bool job_backend(const replay_job *self, size_t index, uint64_t arena_bytes, vram_backend **out,
                 vram_error *error);

/* Prints what the recording is: events, span of time, peak live, what PyTorch reserved, whether it
 * ran out. */
void job_describe(const replay_job *self, FILE *out);

/* The share of a stack's text that is a name for files: letters, digits and single dashes. */
void job_file_stem(const char *spec, char stem[64]);

/* Sets CALL_p50_ns, _p99_ns, _p999_ns and _max_ns; leaves them empty when nothing was called. */
void table_latency(table *rows, const char *call, const vram_latency *latency);

/* "GiB", "MiB", "KiB" or "B", whichever suits a column of sizes up to largest_bytes, and what to
 * divide by. */
typedef struct unit_scale {
    const char *name;
    double bytes;
    int decimals;
} unit_scale;
unit_scale unit_for(uint64_t largest_bytes);

#endif
