/*
 * run.h - one replay while it runs: what replay.c, record.c, verify.c and look.c share.
 */
#ifndef VRAMLAB_DRIVER_RUN_H
#define VRAMLAB_DRIVER_RUN_H

#include "histogram.h"
#include "model.h"
#include "order.h"

#include <vramlab/driver.h>

/* What the driver knows of the block in one of the trace's slots. */
typedef struct vram_slot {
    vram_block block;    /* handle 0: no live block here */
    uint64_t size_bytes; /* requested */
    uint32_t number; /* the n-th block served; its number in the timeline, the seed of its bytes */
    uint32_t tag;
    uint32_t stack;
    vram_users users; /* other streams that use it, while the order of streams is checked */
    uint16_t stream;
    uint8_t align_log2;
    bool retired;
    uint64_t retired_event; /* when retired: the program's last use of it was before */
} vram_slot;

typedef struct vram_run {
    const vram_replay_options *options;
    vram_trace *trace;
    const vram_trace_info *info;
    vram_backend *backend;
    vram_replay_result *result;
    vram_error *error;
    vram_slot *slots; /* by event.slot */
    size_t slot_count;
    size_t slot_capacity;
    uint64_t event; /* index of the one being replayed */
    uint64_t live_bytes;
    uint64_t granted_bytes;
    uint32_t blocks_served;
    bool stopped;          /* at the first failure, as asked */
    bool observed;         /* by record, model or order: every event is looked at */
    vram_arena *bytes;     /* the arena when it holds bytes, else NULL */
    vram_model *model;     /* while verifying, else NULL */
    vram_order *order;     /* while the order of streams is checked, else NULL */
    bool order_broke;      /* a hook ran out of host memory: the order is no longer to be trusted */
    vram_timeline *record; /* while recording, else NULL */
    vram_histogram *alloc_ns; /* while timing, else NULL */
    vram_histogram *release_ns;
    uint64_t clock_cost_ns;
    uint32_t last_ns; /* latency of the last call, 0 when not timed */
} vram_run;

static inline uint64_t vram_alignment_of(const vram_run *self, uint8_t align_log2)
{
    return align_log2 == 0 ? self->info->unit_bytes : UINT64_C(1) << align_log2;
}

/* An error of the replay: puts trace, event and backend before the message. Returns false. */
__attribute__((format(printf, 2, 3))) bool vram_run_fail(vram_run *self, const char *format, ...);

/* The host could not give memory for `what`. Returns false. */
static inline bool vram_run_no_memory(vram_run *self, const char *what)
{
    return vram_run_fail(self, "the host is out of memory for %s", what);
}

/* ---- step.c ---- */

/* Makes of one event what it asks for. True to go on with the next one; else `stopped`, or an
 * error. */
bool vram_run_step(vram_run *self, const vram_event *event);

/* While observed, after every step: each byte of the arena has one cause. */
bool vram_run_account(vram_run *self);

/* ---- record.c: what happened goes into the timeline; each is called only while recording ---- */

bool vram_record_begin(vram_run *self);
bool vram_record_alloc(vram_run *self, const vram_event *event, vram_slot *slot);
/* RELEASE, RETIRE, MOVE */
bool vram_record_about_block(vram_run *self, const vram_event *event, const vram_slot *slot,
                             vram_op_kind kind);
bool vram_record_failure(vram_run *self, const vram_event *event, const vram_failure *failure);
bool vram_record_mark(vram_run *self, const vram_event *event);
bool vram_record_causes(vram_run *self, const vram_stats *stats);
bool vram_record_finish(vram_run *self); /* the names of tags, stacks and streams */

/* ---- verify.c: the model and the bytes; each is called only while verifying ---- */

bool vram_verify_alloc(vram_run *self, const vram_request *request, const vram_slot *slot);
bool vram_verify_release(vram_run *self, const vram_slot *slot); /* before the backend is told */
/* The contents of `from` have been copied to `to`, which has its own pattern from here on. */
bool vram_verify_copy(vram_run *self, const vram_slot *from, const vram_slot *to);
/* The block of `from` was moved, with its contents, and lives at to_bytes. */
bool vram_verify_move(vram_run *self, const vram_slot *from, const vram_slot *to,
                      uint64_t to_bytes);
bool vram_verify_state(vram_run *self);    /* the backend's own check, its walk against the model */
bool vram_verify_contents(vram_run *self); /* of all that lives */

/* ---- compact.c ---- */

/* One compaction, of which the event is the cause. False on an error. */
bool vram_compact(vram_run *self, const vram_event *event);

/* ---- look.c ---- */

vram_look vram_look_at(const vram_backend *backend, uint64_t event, uint64_t live_bytes);

#endif
