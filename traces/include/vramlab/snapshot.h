/*
 * vramlab/snapshot.h - a PyTorch memory snapshot as it was written: segments, events, settings.
 *
 * What `torch.cuda.memory._dump_snapshot` saves (a pickle of protocol 2 to 5, or the same structure
 * as JSON), read without running any of it. vramlab/trace.h turns it into program events; this
 * header is for those who need what PyTorch's own allocator did: the backend `caching` and its
 * validation.
 *
 *     vram_snapshot *snapshot;
 *     if (!vram_snapshot_open("job.pickle", NULL, &snapshot, &error)) ...
 *     for (size_t i = 0; i < snapshot->devices[0].event_count; i++) ...
 *     vram_snapshot_close(snapshot);
 *
 * Names and figures of the format: PyTorch 2.11 source, torch/cuda/_memory_viz.py and
 * c10/cuda/CUDACachingAllocator.cpp.
 */
#ifndef VRAMLAB_SNAPSHOT_H
#define VRAMLAB_SNAPSHOT_H

#include <vramlab/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum vram_snapshot_action {
    VRAM_SNAPSHOT_OTHER, /* an action that this library does not know */
    VRAM_SNAPSHOT_ALLOC,
    VRAM_SNAPSHOT_FREE_REQUESTED,
    VRAM_SNAPSHOT_FREE_COMPLETED,
    VRAM_SNAPSHOT_SEGMENT_ALLOC,
    VRAM_SNAPSHOT_SEGMENT_FREE,
    VRAM_SNAPSHOT_SEGMENT_MAP,
    VRAM_SNAPSHOT_SEGMENT_UNMAP,
    VRAM_SNAPSHOT_OOM,
    VRAM_SNAPSHOT_SNAPSHOT,
    VRAM_SNAPSHOT_ANNOTATE,
    VRAM_SNAPSHOT_ACTIONS
} vram_snapshot_action;

/* What most events of a recording share. Equal contexts have one index. */
typedef struct vram_snapshot_context {
    uint64_t stream;      /* handle; 0 is the default stream */
    uint64_t pool[2];     /* {0, 0}: the default pool */
    const char *metadata; /* user_metadata, or the category of a synthesised trace; "" for none */
    const char *compile;  /* compile_context; "" for none or "N/A" */
    bool has_pool;        /* the file says which pool (2026 and later) */
} vram_snapshot_context;

/* One entry of a device's history, in the allocator's true order. 32 bytes. */
typedef struct vram_snapshot_event {
    uint64_t address;    /* OOM: bytes that the driver had free; 0 when absent */
    uint64_t size_bytes; /* ALLOC, FREE_...: as requested; OOM: rounded; SEGMENT_...: real */
    uint64_t time_us;    /* since the epoch; 0 when absent */
    uint32_t frames; /* see vram_snapshot_stack; 0 is none. Of a free: those of the allocation */
    uint32_t context : 24; /* index into contexts */
    uint32_t action : 8;   /* vram_snapshot_action */
} vram_snapshot_event;

typedef enum vram_snapshot_state {
    VRAM_SNAPSHOT_INACTIVE,
    VRAM_SNAPSHOT_ALLOCATED,   /* active_allocated */
    VRAM_SNAPSHOT_PENDING_FREE /* active_pending_free, active_awaiting_free */
} vram_snapshot_state;

typedef struct vram_snapshot_block {
    uint64_t address; /* counted from the segment's start when the file has none */
    uint64_t size_bytes;
    uint64_t requested_bytes; /* stale when inactive; 0 when absent */
    uint32_t frames;
    uint32_t state; /* vram_snapshot_state */
} vram_snapshot_block;

/* A piece of device memory that PyTorch held when the snapshot was taken. */
typedef struct vram_snapshot_segment {
    uint64_t address;
    uint64_t total_bytes;
    uint64_t allocated_bytes;
    uint64_t active_bytes;
    uint64_t requested_bytes;
    uint64_t stream;
    uint64_t pool[2];                /* {0, 0}: the default pool */
    size_t first_block, block_count; /* into blocks, in address order as written */
    uint32_t device;
    uint32_t frames;
    bool small;      /* of the small pool */
    bool expandable; /* a mapped run of an expandable segment */
} vram_snapshot_segment;

enum { VRAM_SNAPSHOT_ROUNDUP_KEYS = 16 };

/* allocator_settings; the defaults when the file has none. */
typedef struct vram_snapshot_settings {
    bool present;                        /* the file has them */
    const char *conf;                    /* PYTORCH_CUDA_ALLOC_CONF as written; "" when absent */
    uint64_t max_split_bytes;            /* UINT64_MAX: unlimited */
    double garbage_collection_threshold; /* 0: off */
    bool expandable_segments;
    uint64_t roundup_divisions[VRAM_SNAPSHOT_ROUNDUP_KEYS]; /* for sizes from 1 MiB << i; 0: off */
} vram_snapshot_settings;

/* One device's history. */
typedef struct vram_snapshot_device {
    size_t first_event, event_count; /* into events */
} vram_snapshot_device;

/* external_annotations: a name for a moment. */
typedef struct vram_snapshot_annotation {
    uint64_t time_us;
    const char *name;  /* "" when absent */
    const char *stage; /* "START", "END"; "" when absent */
    uint32_t device;
} vram_snapshot_annotation;

/* Everything read, owned by the snapshot and constant. */
typedef struct vram_snapshot {
    const vram_snapshot_event *events;
    size_t event_count; /* of all devices */
    const vram_snapshot_device *devices;
    size_t device_count; /* one for each device index that has a history or a segment */
    const vram_snapshot_segment *segments; /* as in the file: by address */
    size_t segment_count;
    const vram_snapshot_block *blocks;
    size_t block_count;
    const vram_snapshot_context *contexts;
    size_t context_count;
    const vram_snapshot_annotation *annotations;
    size_t annotation_count;
    vram_snapshot_settings settings;
    size_t stack_count; /* frames indices are below this */
    const char *format; /* "pytorch-snapshot" or "pytorch-snapshot-json" */
} vram_snapshot;

/* Reads a snapshot file, plain or gzip. options may be NULL; its device is not looked at. */
bool vram_snapshot_open(const char *path, const vram_trace_options *options, vram_snapshot **out,
                        vram_error *error);
void vram_snapshot_close(vram_snapshot *snapshot); /* NULL is allowed */

/* The snapshot from which a trace is read, owned by the trace; NULL when it is another format. */
const vram_snapshot *vram_trace_snapshot(const vram_trace *trace);

/*
 * The frames as text, one "file:line function" a line, innermost first, without a final line feed;
 * "" for 0. Made on first use and kept.
 */
const char *vram_snapshot_stack(const vram_snapshot *snapshot, uint32_t frames);

const char *vram_snapshot_action_name(vram_snapshot_action action); /* as in the file: "alloc" */

#ifdef __cplusplus
}
#endif
#endif
