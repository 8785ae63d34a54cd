/*
 * vramlab/trace.h - a recording as a stream of events, whatever format it was written in.
 *
 *     vram_trace *trace;
 *     if (!vram_trace_open("job.pickle", NULL, &trace, &error)) ...
 *     vram_event event;
 *     vram_step step;
 *     while ((step = vram_trace_next(trace, &event, &error)) == VRAM_STEP_EVENT) ...
 *     vram_trace_close(trace);
 *
 * Formats are told apart by content, plain or gzip. What comes out is normalised: ids are live
 * exactly once between ALLOC and FREE, sizes are at least 1, all that is live adds up to less than
 * 2^62 bytes, time starts at 0 and never runs back, and what the file had wrong is counted in
 * vram_trace_info, by the rule stated at each anomaly.
 */
#ifndef VRAMLAB_TRACE_H
#define VRAMLAB_TRACE_H

#include <vramlab/text.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum vram_event_kind {
    VRAM_EVENT_ALLOC,  /* id, size, align, stream, tag, stack */
    VRAM_EVENT_FREE,   /* id: from here on its bytes may be reused */
    VRAM_EVENT_RETIRE, /* id: the program let go, but another stream may still use it; its FREE
                          comes later */
    VRAM_EVENT_RESIZE, /* id (from here on), new size: in place when possible, else a new block and
                          the old one freed */
    VRAM_EVENT_TRY,    /* size, stream: an ask that was refused when recorded. Tried, and if served,
                          released at once */
    VRAM_EVENT_USE,    /* id, stream: that stream uses the block too */
    VRAM_EVENT_SYNC,   /* stream (UINT32_MAX: all): the host waited for it */
    VRAM_EVENT_WAIT,   /* stream waits for the work queued so far on `other` (in size_bytes) */
    VRAM_EVENT_MARK,   /* tag: a name for this moment: an iteration, a phase */
    VRAM_EVENT_KINDS
} vram_event_kind;

typedef struct vram_event {
    uint64_t id;         /* as in the file; unique among live blocks */
    uint64_t size_bytes; /* as requested, unrounded */
    uint64_t time_ns;    /* since the first event; event number when the file has no clock */
    uint32_t slot;   /* dense number of the block: below vram_trace_info.slots, reused after FREE */
    uint32_t stream; /* index into the streams: by handle for PyTorch, else as they first come */
    uint32_t tag;    /* index into the tags; 0 is "" */
    uint32_t stack;  /* index into the stacks; 0 is none */
    uint8_t kind;    /* vram_event_kind */
    uint8_t align_log2; /* 0: the trace's unit */
} vram_event;

/* What was wrong in the file, and the rule by which reading goes on. `strict` makes each an error.
 */
typedef enum vram_anomaly {
    VRAM_ANOMALY_UNKNOWN_FREE, /* free of an id never seen: dropped */
    VRAM_ANOMALY_DOUBLE_FREE,  /* free of an id already freed: dropped */
    VRAM_ANOMALY_NULL_FREE,    /* free of NULL or -1: dropped */
    VRAM_ANOMALY_ZERO_SIZE,    /* allocation of 0 bytes: dropped together with its free */
    VRAM_ANOMALY_LIVE_ALLOC,   /* allocation of an id still live: the old block is freed first */
    VRAM_ANOMALY_NEVER_FREED,  /* live at the end: left so (counted at the end of the trace; not an
                                  error) */
    VRAM_ANOMALY_HEADER, /* the header's figures are not what the body holds: the body is believed
                          */
    VRAM_ANOMALY_CLOCK,  /* time runs backwards: taken as standing still */
    VRAM_ANOMALY_UNKNOWN_RESIZE, /* resize of an id not live: taken as an allocation */
    VRAM_ANOMALY_SKIPPED,        /* an entry of a kind that has no meaning here: skipped */
    VRAM_ANOMALIES
} vram_anomaly;

/* What the recording program's own allocator did, where the file tells (PyTorch snapshots); zero
 * elsewhere. */
typedef struct vram_recorded {
    uint64_t peak_reserved_bytes;  /* most memory taken from the driver at once */
    uint64_t peak_allocated_bytes; /* blocks: rounded requests and what was not split off; filled by
                                      vram_trace_summarise, 0 when not known */
    uint64_t out_of_memory;        /* how often it ran out */
    uint64_t device_events;        /* events in the file, of every kind */
    uint64_t blocks_before; /* blocks live before recording began, recovered from the segments */
    uint64_t bytes_before;
    bool cut; /* the start of the history is missing from the file */
} vram_recorded;

typedef struct vram_trace_info {
    const char *path;
    const char *format;  /* "pytorch-snapshot" */
    uint64_t unit_bytes; /* natural granularity and default alignment, a power of two: PyTorch 512,
                            CUDA 256, malloc 16, planners 1 */
    uint64_t slots;      /* event.slot is below this, for what was read so far */
    uint32_t streams, tags, stacks; /* how many of each, for what was read so far */
    bool has_clock;                 /* time_ns is time; otherwise it is the event's number */
    uint64_t arena_bytes; /* the memory that there was, where it is known (named cases); else 0 */
    uint64_t origin_ns;   /* what the file's clock said at the first event, once it was read */
    uint64_t anomalies[VRAM_ANOMALIES]; /* so far */
    vram_recorded recorded;
} vram_trace_info;

typedef struct vram_trace_options {
    uint32_t device;    /* PyTorch: which device's history */
    bool strict;        /* anomalies are errors */
    const char *format; /* read the file as this format, whatever it looks like; NULL: by content */
    uint64_t inflate_limit; /* most bytes a gzip file may unfold to; 0: 64 GiB or 1100 times the
                               file, whichever is less */
    void (*progress)(void *context, double share); /* 0 .. 1, now and then; may be NULL */
    void *progress_context;
} vram_trace_options;

typedef enum vram_step { VRAM_STEP_EVENT, VRAM_STEP_END, VRAM_STEP_ERROR } vram_step;

typedef struct vram_trace vram_trace;

/* Opens a file, or a generated workload when the name is "generate:SPEC" or "case:NAME". options
 * may be NULL. */
bool vram_trace_open(const char *path, const vram_trace_options *options, vram_trace **out,
                     vram_error *error);
void vram_trace_close(vram_trace *trace); /* NULL is allowed */

/* The next event. After END or ERROR every further call answers the same until a rewind. */
vram_step vram_trace_next(vram_trace *trace, vram_event *event, vram_error *error);
bool vram_trace_rewind(vram_trace *trace, vram_error *error);

/* Reads the whole trace into memory (48 bytes an event), so that rewinding is free. Leaves it at
 * its start. */
bool vram_trace_hold(vram_trace *trace, vram_error *error);
/* The held events, or NULL when they are not held. */
const vram_event *vram_trace_events(const vram_trace *trace, size_t *count);

const vram_trace_info *vram_trace_info_of(const vram_trace *trace);
const char *vram_trace_tag(const vram_trace *trace, uint32_t tag); /* "" for none */
const char *vram_trace_stack(const vram_trace *trace,
                             uint32_t stack); /* frames, one a line, innermost first; "" for none */
uint64_t vram_trace_stream(const vram_trace *trace, uint32_t stream); /* the handle as recorded */
const char *vram_anomaly_name(vram_anomaly anomaly);
const char *vram_event_kind_name(vram_event_kind kind);

/* What vram_trace_open understands, for lists: formats of files, then workloads. */
typedef struct vram_trace_source {
    const char *group;   /* "format", "generate" or "case" */
    const char *name;    /* a workload opens as "group:name" */
    const char *summary; /* one line */
} vram_trace_source;

typedef struct vram_trace_source_option {
    const char *name;
    const char *fallback; /* as a user would write it */
    const char *help;
} vram_trace_source_option;

/* By index; false beyond the last. */
bool vram_trace_source_at(size_t index, vram_trace_source *source);
/* An option of the source at `index`; false beyond its last. */
bool vram_trace_source_option_at(size_t index, size_t option, vram_trace_source_option *out);

/* One pass over the whole trace, which is left at its start. */
typedef struct vram_trace_summary {
    uint64_t events;
    uint64_t by_kind[VRAM_EVENT_KINDS];
    uint64_t first_ns, last_ns;
    uint64_t least_bytes, greatest_bytes; /* of the requests; 0 when there are none */
    uint64_t peak_live_bytes;             /* requested */
    uint64_t peak_live_unit_bytes; /* each request rounded up to the unit: the lower bound of any
                                      arena */
    uint64_t peak_event; /* index of the event after which live (in units) was first at its peak */
    uint64_t peak_live_blocks;
    uint64_t live_at_end_blocks, live_at_end_bytes;
    uint64_t largest_try_bytes;        /* largest ask that was refused when recorded */
    uint64_t peak_with_try_unit_bytes; /* as peak_live_unit_bytes, counting refused asks at their
                                          moment */
} vram_trace_summary;

bool vram_trace_summarise(vram_trace *trace, vram_trace_summary *summary, vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
