/*
 * vramlab/driver.h - replays a trace on a backend: the only place where events and backends meet.
 *
 *     vram_replay_result result;
 *     if (!vram_replay(trace, backend, &(vram_replay_options){.tries = true}, &result, &error)) ...
 *
 * The driver keeps slot -> block, times calls only when asked to, checks every answer when asked
 * to, and writes down what happened in a timeline when given one.
 */
#ifndef VRAMLAB_DRIVER_H
#define VRAMLAB_DRIVER_H

#include <vramlab/arena.h>
#include <vramlab/backend.h>
#include <vramlab/timeline.h>
#include <vramlab/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum vram_on_failure {
    VRAM_STOP_AT_FAILURE, /* as a program dies of it */
    VRAM_SKIP_FAILURES,   /* the refused block never exists; its later events are ignored */
} vram_on_failure;

/* When and how much to compact; only for backends that plan moves. All zero: never. */
typedef struct vram_compaction {
    uint64_t every;        /* after every so many events; 0: not by count */
    bool on_failure;       /* when a request is refused, which is then made once more */
    uint64_t budget_bytes; /* most bytes that one compaction moves; 0: no bound */
} vram_compaction;

/* Reads "every=10000", "failure" and "budget=64MiB", joined by commas. */
bool vram_parse_compaction(const char *text, vram_compaction *compaction, vram_error *error);

typedef struct vram_replay_options {
    vram_on_failure on_failure;
    bool tries;          /* also make the asks that were refused when recorded (VRAM_EVENT_TRY) */
    bool free_at_retire; /* release at RETIRE rather than at FREE: the optimistic variant */
    bool streams; /* count the bytes that are given to a stream while another may still use them */
    bool time_calls; /* fill alloc_ns, release_ns and the timeline's latencies */
    bool verify; /* check every answer against an interval model, `check` after every step, bytes
                    when arena has them */
    uint64_t check_every; /* verify: calls of the backend's own check, every so many events; 0: 1 */
    uint64_t look_at_event; /* walk the backend after this event and fill result.look; UINT64_MAX:
                               never */
    vram_compaction compact;
    vram_arena *arena;     /* may be NULL */
    vram_timeline *record; /* may be NULL; must be zeroed; filled and owned by the caller even after
                              a failure */
    void (*progress)(void *context, double share);
    void *progress_context;
} vram_replay_options;

/* Bytes by cause at one moment; the parts add up to the arena exactly. */
typedef struct vram_look {
    bool taken;
    uint64_t event;
    uint64_t live_bytes;     /* requested */
    uint64_t internal_bytes; /* granted - live */
    uint64_t free_bytes, bound_bytes, pending_bytes, reserve_bytes, padding_bytes;
    uint64_t largest_free_bytes; /* longest run of bytes that no live or pending block occupies */
} vram_look;

/* external = 1 - largest free / all free; 0 when nothing is free. internal = (granted - live) /
 * granted. */
double vram_look_external(const vram_look *look);
double vram_look_internal(const vram_look *look);

/* Latencies of one operation in ns; zero when calls were not timed. */
typedef struct vram_latency {
    uint64_t calls;
    double mean_ns;
    uint64_t p50_ns, p99_ns, p999_ns, max_ns;
} vram_latency;

/* Bytes that were given to a stream although another one may still be using some of them: nothing
 * says that what was queued on it before their release is over by then. */
typedef struct vram_early_reuse {
    uint64_t event;          /* at which they were given */
    uint64_t released_event; /* at which they had been released */
    uint64_t offset_bytes, size_bytes;
    uint32_t by_stream, of_stream; /* who got them, who may still use them */
} vram_early_reuse;

typedef struct vram_replay_result {
    bool completed;  /* no request was refused */
    uint64_t events; /* replayed */
    uint64_t requests, served, refused;
    uint64_t first_failure_event; /* UINT64_MAX: none */
    vram_request first_failure;   /* what was asked */
    vram_failure failure;         /* why the first one failed */
    vram_look failure_look;       /* the arena at that moment */
    uint64_t peak_live_bytes;     /* requested bytes that were really served */
    uint64_t peak_granted_bytes;
    uint64_t peak_extent_bytes; /* highest end of any block, ever */
    uint64_t bookkeeping_bytes; /* host memory of the backend at its largest */
    vram_look look;             /* at look_at_event */
    vram_latency alloc_ns, release_ns;
    uint64_t compactions, moves, moved_bytes;
    bool streams_checked;
    uint64_t early_reuses; /* allocations, when streams were checked; 0 is what a safe stack has */
    vram_early_reuse first_early_reuse;
} vram_replay_result;

/*
 * Replays from the trace's start to its end or first failure. True when the replay ran, whatever
 * its outcome; false with a message when the trace could not be read, a verification failed (the
 * message says at which event, what and where), or the host ran out of memory.
 */
bool vram_replay(vram_trace *trace, vram_backend *backend, const vram_replay_options *options,
                 vram_replay_result *result, vram_error *error);

/* Measures what a backend may know beforehand (see vram_config.profile). The trace is left at its
 * start. */
bool vram_profile_of(vram_trace *trace, vram_profile *profile, vram_error *error);

/* The least arena in which the trace completes; sizes are tried in steps of `step_bytes` (see fit.c
 * for the search). */
typedef struct vram_fit_options {
    const char *spec;           /* the backend stack */
    uint64_t lower_bound_bytes; /* no smaller arena is tried: peak live in units */
    double step_share;          /* of the lower bound; 0: 0.001 */
    double give_up_ratio;       /* of the lower bound; 0: 64 */
    bool tries;
    vram_compaction compact; /* left out where the backend plans no moves */
    const vram_profile *profile;
    void (*progress)(void *context, double share);
    void *progress_context;
} vram_fit_options;

typedef struct vram_fit_result {
    uint64_t smallest_bytes;        /* 0: none found below the give-up ratio */
    uint64_t no_failure_from_bytes; /* every larger arena tried completed too */
    uint64_t arenas_tried;
    uint64_t anomalies; /* failures between the two */
    vram_failure below; /* why it fails one step below the smallest */
    uint64_t below_event;
} vram_fit_result;

bool vram_fit(vram_trace *trace, const vram_fit_options *options, vram_fit_result *result,
              vram_error *error);

/* ------------------------------------------------------------------------------------------------
 * benchmarks ---- */

/* The calls of a trace and nothing else, as an array: what a benchmark repeats. A resize is a
 * release and an allocation, refused asks are left out, and what lives to the end is released. */
typedef struct vram_calls vram_calls;

/* Holds the trace. The calls live on without it. */
bool vram_calls_of(vram_trace *trace, vram_calls **out, vram_error *error);
void vram_calls_free(vram_calls *calls); /* NULL is allowed */
uint64_t vram_calls_count(const vram_calls *calls);

/* Makes all calls once. Returns how many ns they took; *refused is how many allocations failed. */
uint64_t vram_calls_run(vram_calls *calls, vram_backend *backend, uint64_t *refused);

enum { VRAM_THREADS_MAX = 256 };

/* What several threads did with one backend. */
typedef struct vram_threads_result {
    uint64_t calls, refused; /* of all threads together */
    uint64_t handed_over;    /* blocks released by another thread than the one that allocated */
    double seconds;          /* from the first thread's start to the last one's end */
} vram_threads_result;

/*
 * Makes all calls from `threads` threads at once, each with blocks of its own: throughput, with
 * `threads` times the live blocks. False with a message when the backend is not concurrent, or
 * threads or memory cannot be had.
 */
bool vram_calls_run_threads(const vram_calls *calls, vram_backend *backend, uint32_t threads,
                            vram_threads_result *result, vram_error *error);

/*
 * Deals the calls out to the threads, so that together they make each once: a block's turn is kept
 * (its release after its allocation, its slot's next allocation after that), all else is up to the
 * threads; every fourth block is released by another thread. Each granted byte range is claimed,
 * unit by unit, by the thread that holds it: false with a message when two hold the same unit, a
 * release is not answered VRAM_OK, the backend's check fails at the end or its counts are not zero.
 */
bool vram_calls_deal_threads(const vram_calls *calls, vram_backend *backend, uint32_t threads,
                             vram_threads_result *result, vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
