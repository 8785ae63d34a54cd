/*
 * vramlab/timeline.h - what happened when one trace was replayed on one backend.
 *
 * A finished timeline is a plain value in memory or in a file (version in its head). Metrics,
 * heatmap and viewer need nothing else, and would draw one that another program wrote.
 */
#ifndef VRAMLAB_TIMELINE_H
#define VRAMLAB_TIMELINE_H

#include <vramlab/text.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum vram_op_kind {
    VRAM_OP_ALLOC,   /* served */
    VRAM_OP_RELEASE, /* the block's bytes are free (or pending, see stats) again */
    VRAM_OP_FAIL,    /* an allocation that was refused: see vram_op_failure */
    VRAM_OP_RETIRE,  /* the program let go; the bytes are not free yet */
    VRAM_OP_MOVE,    /* compaction moved the block: offset_bytes is where it lives now */
    VRAM_OP_MARK,    /* tag names the moment */
    VRAM_OP_KINDS
} vram_op_kind;

/* One operation. Offsets and sizes of RELEASE, RETIRE are those of the block, so that a reader
 * needs no look-up. */
typedef struct vram_op {
    uint64_t time_ns;       /* of the trace event */
    uint64_t offset_bytes;  /* FAIL: 0 */
    uint64_t size_bytes;    /* requested */
    uint64_t granted_bytes; /* what the block occupies; FAIL: 0 */
    uint32_t block; /* number of the block: the n-th ALLOC of this timeline; FAIL: index into the
                       failures */
    uint32_t latency_ns; /* of the backend's call, when it was timed, else 0 */
    uint32_t tag;
    uint32_t event; /* index of the trace event that it belongs to; ascending: the common clock of
                       several backends that replay one trace */
    uint16_t stream;
    uint8_t kind;  /* vram_op_kind */
    uint8_t flags; /* VRAM_OP_FLAG_... */
    uint32_t reserved;
} vram_op;

enum {
    VRAM_OP_FLAG_TRY = 1, /* belongs to an ask that was refused when recorded */
};

typedef struct vram_op_failure {
    uint64_t op;                 /* index of the FAIL operation */
    uint64_t event;              /* index of the trace event */
    uint64_t free_bytes;         /* as the backend reported */
    uint64_t largest_free_bytes; /* largest request that it could have served */
    char reason[24];             /* "fragmented" */
} vram_op_failure;

/* Bytes by cause from operation `op` on until the next entry; all zero before the first. Kept when
 * they change, which the operations alone do not tell. */
typedef struct vram_op_causes {
    uint64_t op;
    uint64_t bound_bytes, pending_bytes, reserve_bytes,
        padding_bytes; /* the rest is live, internal or free */
} vram_op_causes;

/* A block's life, derived from the operations. */
typedef struct vram_life {
    uint32_t birth; /* index of its ALLOC */
    uint32_t death; /* index of its RELEASE, or UINT32_MAX when it lives to the end */
    uint64_t id;    /* as in the trace */
    uint32_t stack; /* index into the stacks; 0 is none */
    uint32_t reserved;
} vram_life;

typedef struct vram_timeline {
    char *trace;   /* name of the trace, without folders */
    char *backend; /* the stack as written: "list:policy=best" */
    uint64_t arena_bytes;
    uint64_t unit_bytes;
    bool has_clock;
    bool complete; /* every event was replayed; otherwise it ended at the last failure */
    vram_op *ops;
    size_t op_count;
    vram_life *lives;
    size_t life_count;
    vram_op_failure *failures;
    size_t failure_count;
    vram_op_causes *causes; /* ascending by op */
    size_t cause_count;
    char **tags;
    size_t tag_count; /* tags[0] is "" */
    char **stacks;
    size_t stack_count; /* stacks[0] is "" */
    uint64_t *streams;
    size_t stream_count;
    struct {
        size_t ops, lives, failures, causes, tags, stacks, streams;
    } capacity; /* of the arrays above: the writer's own */
} vram_timeline;

/* ---- writing: the driver's side. All return false when the host is out of memory. ---- */

/* Starts an empty timeline; copies the strings. Zeroed storage is a valid empty timeline for
 * vram_timeline_free. */
bool vram_timeline_begin(vram_timeline *timeline, const char *trace, const char *backend,
                         uint64_t arena_bytes, uint64_t unit_bytes, bool has_clock);

/*
 * Appends an operation. For ALLOC, op->block is set to the new block's number and id, stack go into
 * its life; for RELEASE, RETIRE and MOVE the caller names the block and its life is closed or kept.
 */
bool vram_timeline_append(vram_timeline *timeline, vram_op *op, uint64_t id, uint32_t stack);

/* Appends a FAIL operation with its reasons; failure->op and op->block are set. */
bool vram_timeline_append_failure(vram_timeline *timeline, vram_op *op, vram_op_failure *failure);

/* Notes the bytes by cause after the last operation (causes->op is not read), unless they are as
 * last noted. */
bool vram_timeline_note_causes(vram_timeline *timeline, const vram_op_causes *causes);

/* Names by index; gaps are filled with "" and 0. */
bool vram_timeline_set_tag(vram_timeline *timeline, uint32_t index, const char *text);
bool vram_timeline_set_stack(vram_timeline *timeline, uint32_t index, const char *text);
bool vram_timeline_set_stream(vram_timeline *timeline, uint32_t index, uint64_t handle);

void vram_timeline_free(vram_timeline *timeline); /* leaves it zeroed */

/* ---- reading ---- */

/* Names by index; "" for an index beyond the last. */
const char *vram_timeline_tag(const vram_timeline *timeline, uint32_t index);
const char *vram_timeline_stack(const vram_timeline *timeline, uint32_t index);

/*
 * Where blocks live while the operations are read in order. Takes memory only once a block moves.
 *
 *     vram_places places = {.timeline = timeline};
 *     for each operation: if it is a MOVE, vram_place_move(&places, op) after looking at the old
 * place vram_places_free(&places);
 */
typedef struct vram_place {
    uint64_t offset_bytes;
    uint32_t since_op; /* the ALLOC or MOVE by which the block came here */
} vram_place;

typedef struct vram_places {
    const vram_timeline *timeline;
    vram_place *moved; /* by block; since_op 0 where it has not moved */
} vram_places;

vram_place vram_place_of(const vram_places *places, uint32_t block);
bool vram_place_move(vram_places *places, uint32_t op); /* false: out of host memory */
void vram_places_free(vram_places *places);

/*
 * Whether the timeline is sound, and if not, what is wrong and where: every index is in range, time
 * does not run backwards, every block is released at most once and from where it is, lies within
 * the arena and is at least as large as what was asked for. That no two live blocks overlap is told
 * by vram_metrics_walk. Linear.
 */
bool vram_timeline_check(const vram_timeline *timeline, vram_error *error);

const char *vram_op_kind_name(vram_op_kind kind); /* "release" */

/*
 * ---- files ----
 *
 * All numbers are little-endian.
 *
 *   magic      8 bytes "VRAMTL\r\n"          version    u32, now 1
 *   flags      u32: 1 has_clock, 2 complete
 *   arena_bytes, unit_bytes                  u64 each
 *   counts     u64 each: ops, lives, failures, causes, streams, tags, stacks, bytes of strings
 *   ops        56 bytes each, as vram_op     lives      24 bytes each, as vram_life
 *   failures   56 bytes each                 causes     40 bytes each        streams  u64 each
 *   strings    trace, backend, tags, stacks, each ended by a zero byte
 *   checksum   u32, CRC-32 of all before it
 */

/* Writes beside and renames: the file is whole or absent. */
bool vram_timeline_save(const vram_timeline *timeline, const char *path, vram_error *error);
/*
 * Refuses, by name, a file that is damaged, truncated or of a later version; what is returned has
 * passed vram_timeline_check.
 */
bool vram_timeline_load(const char *path, vram_timeline *timeline, vram_error *error);
bool vram_timeline_is_file(const char *path); /* begins with the magic of a saved timeline */

#ifdef __cplusplus
}
#endif
#endif
