/*
 * vramlab/backend.h - the contract between an allocator and everything that uses it.
 *
 * A backend manages an arena of bytes that it never touches: it keeps all bookkeeping on the host
 * and hands out 64-bit offsets. The device address of a block is the arena's base + offset, so the
 * same backend runs on a GPU, on host memory or on an 80 GiB arena that exists on paper only.
 *
 *     const vram_config config = {.arena_bytes = 1 << 30};
 *     const vram_request request = {.size_bytes = 1000, .align_bytes = 256};
 *     vram_backend *backend;
 *     vram_block block;
 *     vram_error error;
 *
 *     if (!vram_create_from_text("buddy:min=512", &config, &backend, &error)) // registry.h
 *         return fail(error.text);
 *     if (vram_alloc(backend, request, &block) == VRAM_OK)
 *         vram_release(backend, block);
 *     vram_destroy(backend);
 *
 * Callers use the functions at the end. Authors of backends fill in a vram_ops and derive their
 * state from vram_backend; allocators/README.md shows how, `vramlab check` says whether it is
 * right. Calls on one backend are not thread-safe unless the layer `locked` or `magazine` is
 * outermost; different backends share nothing.
 */
#ifndef VRAMLAB_BACKEND_H
#define VRAMLAB_BACKEND_H

#include <vramlab/text.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a call. Running out of space is data, not an error of the program. */
typedef enum vram_result {
    VRAM_OK,
    VRAM_NO_SPACE,    /* nothing that the backend may hand out fits; vram_explain tells why */
    VRAM_BAD_REQUEST, /* zero size, or an alignment that is not a power of two or above
                         VRAM_ALIGN_MAX */
    VRAM_STALE_BLOCK, /* released before, or never given out by this backend */
    VRAM_NO_METADATA, /* the host could not grow the bookkeeping; nothing has changed */
    VRAM_UNSUPPORTED, /* the backend does not offer this optional operation */
} vram_result;

/* Why there was no space. */
typedef enum vram_reason {
    VRAM_REASON_NONE,       /* there was space */
    VRAM_REASON_BYTES,      /* fewer bytes free in all than were asked for */
    VRAM_REASON_FRAGMENTED, /* enough bytes free in all, none of the free spans large enough */
    VRAM_REASON_CLASS_FULL, /* the pool or class that may serve this size has no free block */
    VRAM_REASON_OVERSIZE,   /* larger than any block that this backend can ever serve */
    VRAM_REASON_PENDING, /* it would fit but for memory that waits for an event on another stream */
    VRAM_REASON_INJECTED, /* the layer `faulty` was told to fail here */
    VRAM_REASON_COUNT
} vram_reason;

#define VRAM_ALIGN_MAX (UINT64_C(1) << 40)
#define VRAM_ARENA_MAX (UINT64_C(1) << 50)

/* What is asked for. */
typedef struct vram_request {
    uint64_t size_bytes;  /* at least 1 */
    uint64_t align_bytes; /* a power of two; 0 asks for the backend's unit */
    uint32_t stream;      /* index of the stream on which the block will be used first */
    uint32_t tag;         /* what it is for, an index that only the caller understands */
} vram_request;

/* What was given. A plain value; {0} is the null block. The bytes are the caller's until
 * vram_release. */
typedef struct vram_block {
    uint64_t offset_bytes;  /* from the arena's base, a multiple of the alignment asked for */
    uint64_t granted_bytes; /* what the block occupies, at least what was asked for */
    uint64_t handle;        /* generation << 32 | slot; a generation is never 0 */
} vram_block;

/* What a stretch of the arena is at this moment. */
typedef enum vram_span_kind {
    VRAM_SPAN_LIVE,    /* one granted block */
    VRAM_SPAN_FREE,    /* any request that fits may have it */
    VRAM_SPAN_BOUND,   /* free, but only as whole blocks of block_bytes: a run of free slots of one
                          pool or class */
    VRAM_SPAN_PENDING, /* released, but another stream may still use it */
    VRAM_SPAN_RESERVE, /* free, kept back for emergencies */
    VRAM_SPAN_PADDING, /* can never be handed out: a tail smaller than a block, a gap of alignment
                        */
    VRAM_SPAN_KINDS
} vram_span_kind;

typedef struct vram_span {
    uint64_t offset_bytes;
    uint64_t size_bytes;
    uint64_t block_bytes; /* BOUND: size of each slot in the run; otherwise equal to size_bytes */
    uint64_t handle;      /* LIVE: the block's handle; otherwise 0 */
    vram_span_kind kind;
} vram_span;

typedef void vram_visit(void *context, const vram_span *span);

/* Bytes by cause; the first six add up to the arena exactly. Kept as counters: stats is O(1) in
 * every backend. */
typedef struct vram_stats {
    uint64_t granted_bytes;
    uint64_t free_bytes;
    uint64_t bound_bytes;
    uint64_t pending_bytes;
    uint64_t reserve_bytes;
    uint64_t padding_bytes;
    uint64_t live_blocks;
    uint64_t spans; /* entries of bookkeeping now in use: live and free spans that have a record */
    uint64_t bookkeeping_bytes; /* host memory held by the backend, capacity included */
    uint64_t waits;             /* inserted by the layer `stream` since creation */
    uint64_t reserve_requests;  /* that only the layer `reserve` could serve, since creation */
} vram_stats;

/* Why an allocation would fail now. */
typedef struct vram_failure {
    vram_reason reason;
    uint64_t free_bytes;         /* free + bound + pending + reserve */
    uint64_t largest_free_bytes; /* the largest single request that could be served */
} vram_failure;

/* A broken invariant, by the number under which the backend's opening comment lists it. */
typedef struct vram_fault {
    const char *invariant; /* such as "I3 merged" */
    uint64_t offset_bytes; /* where in the arena */
} vram_fault;

/* ---- options: a backend's own table, read from text by the registry ---- */

typedef enum vram_option_type {
    VRAM_OPTION_SIZE,   /* 512, 64KiB, 8% (of the arena) */
    VRAM_OPTION_COUNT,  /* a whole number */
    VRAM_OPTION_RATIO,  /* 0.08 or 8% */
    VRAM_OPTION_FLAG,   /* on or off */
    VRAM_OPTION_CHOICE, /* one of the words in `choices` */
    VRAM_OPTION_TEXT,   /* anything without ':' ',' '+'; lists are written with '/' */
} vram_option_type;

/* One row of a backend's option table. */
typedef struct vram_option {
    const char *name;
    vram_option_type type;
    const char *fallback; /* the default, written as a user would */
    uint64_t least,
        most; /* SIZE, COUNT: allowed range; RATIO: in thousandths; most = 0 means no bound */
    const char *choices; /* CHOICE: "first|next|best"; SIZE, COUNT: one word allowed instead of a
                            number, such as "auto" */
    const char *help;    /* one line */
    bool shown; /* a result must name it: part of the backend's spec even when it is the default */
} vram_option;

/* A parsed value, in the order of the table. */
typedef struct vram_value {
    uint64_t number;  /* SIZE: bytes; COUNT; FLAG: 0 or 1; CHOICE: index of the word */
    double ratio;     /* RATIO */
    const char *text; /* as written; lives as long as the backend */
    bool word;        /* SIZE, COUNT: the word in `choices` was given instead of a number */
    bool given;       /* false: this is the fallback */
} vram_value;

/* ---- what a backend is made from, and what it consists of ---- */

enum { VRAM_PROFILE_CLASSES = 64 };

/* What is known of a workload before it runs. Class k holds requests of 2^k .. 2^(k+1)-1 bytes. */
typedef struct vram_profile {
    uint64_t largest_bytes;                           /* largest single request */
    uint64_t smallest_bytes;                          /* smallest single request */
    uint64_t peak_live_bytes;                         /* most requested bytes alive at once */
    uint64_t class_requests[VRAM_PROFILE_CLASSES];    /* requests in all */
    uint64_t class_peak_blocks[VRAM_PROFILE_CLASSES]; /* most of its blocks alive at once */
    uint64_t class_peak_bytes[VRAM_PROFILE_CLASSES]; /* most of its requested bytes alive at once */
    uint64_t class_largest_bytes[VRAM_PROFILE_CLASSES]; /* largest request of the class */
} vram_profile;

struct vram_arena; /* vramlab/arena.h */

/* What a backend is made from. Only arena_bytes must be set by a caller. */
typedef struct vram_config {
    uint64_t arena_bytes; /* 1 .. VRAM_ARENA_MAX; a layer passes its inner backend what it leaves */
    uint64_t unit_bytes;  /* granularity natural to the workload, a power of two; 0: 512. An option
                             unit= overrides it */
    const vram_profile *profile; /* may be NULL; only read during create */
    struct vram_arena *arena;    /* may be NULL; only for backends that are the driver itself */
    const vram_value *values;    /* set by the registry: the options, in the order of the table */
    struct vram_backend *inner; /* set by the registry for a layer, which then owns it; else NULL */
} vram_config;

typedef struct vram_ops vram_ops;

/*
 * The head of every backend. Embed it as the first member. create sets arena_bytes and unit_bytes
 * (and address_bytes where it differs); core fills in the rest after it.
 *
 * address_bytes is above arena_bytes only in a backend that models a driver with virtual memory:
 * arena_bytes of it at any offsets below address_bytes. Its spans still come in address order, do
 * not overlap and add up to arena_bytes, but there are gaps between them. It has no use for an
 * arena with bytes, and no layer that lays something beside it will wrap it.
 */
typedef struct vram_backend {
    const vram_ops *ops;
    uint64_t arena_bytes;
    uint64_t unit_bytes; /* what an alignment of 0 means; a layer that leaves 0 gets its inner's */
    uint64_t address_bytes; /* offsets are below it; 0 from create stands for arena_bytes */
    char *spec;             /* the stack as written: "buddy:min=512"; owned by core */
    void *owned_values;     /* owned by core */
} vram_backend;

/*
 * What a stack asks of the program that owns the streams. Any of them may be NULL: on an arena
 * without a device there is nothing to ask, and the layer counts what it would have done.
 */
typedef struct vram_stream_hooks {
    bool (*poll)(void *context, uint32_t stream); /* is all work queued on it so far over? */
    /* Makes what is queued on `waiter` from now on wait for what is queued on `stream` so far. */
    void (*order)(void *context, uint32_t waiter, uint32_t stream);
    void (*sync)(void *context); /* makes the host wait for all streams */
    void *context;
} vram_stream_hooks;

/* The handle that stands for whatever block lives at the offset; only under the layer `pointer`. */
#define VRAM_HANDLE_BY_OFFSET UINT64_MAX

/* A block moved by compaction: the driver copies the bytes, then calls commit_move. */
typedef struct vram_move {
    uint64_t handle;
    uint64_t from_bytes;
    uint64_t to_bytes; /* below from_bytes; the ranges may overlap */
    uint64_t size_bytes;
} vram_move;

#define VRAM_ABI 1u

/*
 * The table of operations, constant and static. `self` is never NULL. Requests that no backend may
 * accept never arrive: a size is at least 1 and at most the arena, an alignment is a power of two
 * from 1 to VRAM_ALIGN_MAX (never 0), a handle has a generation.
 *
 * A handle is generation << 32 | slot: no two live blocks have the same, and one that was released
 * is not given out again for as long as 32 bits of generation allow. The bits are the backend's
 * own; what callers rely on is that {0} is no block. When the last live block has been released a
 * backend must answer as if it were new: what is kept may save time, not change an outcome (only
 * `caching`, which copies PyTorch rule for rule, does not).
 */
struct vram_ops {
    uint32_t abi;               /* VRAM_ABI */
    const char *name;           /* lower case, no blanks */
    const char *summary;        /* one line for `vramlab list` */
    const vram_option *options; /* ends with a null name; NULL when there are none */
    bool layer;                 /* wraps config->inner */
    bool concurrent; /* its calls may be made from several threads at once (not walk and check) */
    bool special;    /* left out of comparisons unless asked for: null, the driver's own */

    /* Makes an instance. On failure returns false with a message that says what would be right, and
     * leaks nothing; config->inner is then still the caller's. */
    bool (*create)(const vram_config *config, vram_backend **out, vram_error *error);
    void (*destroy)(vram_backend *self);

    /* On any result but VRAM_OK nothing has changed, *out included. A release looks the block up by
     * handle and offset; its granted_bytes are what the caller made of them. */
    vram_result (*alloc)(vram_backend *self, const vram_request *request, vram_block *out);
    vram_result (*release)(vram_backend *self, vram_block block);

    /* Every span in address order; together they tile the arena, and none is empty. O(spans). */
    void (*walk)(const vram_backend *self, vram_visit *visit, void *context);
    /* Its own invariants, by two unrelated walks; false and *fault for the first that is broken.
     * Never loops forever. */
    bool (*check)(const vram_backend *self, vram_fault *fault);
    /* O(1), as it is called at every event. Sets every field; those not its own to 0. */
    void (*stats)(const vram_backend *self, vram_stats *out);

    /* ---- optional, NULL when not offered ---- */

    /* Layer: how many bytes of config->arena_bytes it leaves to its inner backend; default all. */
    uint64_t (*inner_bytes)(const vram_config *config);

    /* Sets reason when core's own answer (BYTES or FRAGMENTED, from a walk) would be wrong. The
     * numbers are filled in already. */
    void (*explain)(const vram_backend *self, const vram_request *request, vram_failure *failure);
    /* Grows or shrinks in place. VRAM_NO_SPACE when it cannot be done in place; the block is then
     * as before. */
    vram_result (*resize)(vram_backend *self, vram_block *block, uint64_t size_bytes);
    /* One bounded step of upkeep; true when there is more to do. */
    bool (*maintain)(vram_backend *self);
    /* Plans at most max_moves moves of at most budget_bytes in all; returns how many. Changes
     * nothing. */
    size_t (*plan_moves)(const vram_backend *self, uint64_t budget_bytes, vram_move *moves,
                         size_t max_moves);
    /* Makes a planned move true; *block is then where the block lives. */
    vram_result (*commit_move)(vram_backend *self, const vram_move *move, vram_block *block);
    /* Gives cached memory back (to the arena, to the inner backend, to the driver). Returns the
     * bytes. */
    uint64_t (*trim)(vram_backend *self);
    /* Another stream uses the block too: it must not be reused before that stream has passed its
     * release. */
    vram_result (*use)(vram_backend *self, vram_block block, uint32_t stream);
    /* The host has waited for all work queued on the stream (or on all streams: UINT32_MAX). */
    void (*sync)(vram_backend *self, uint32_t stream);
    /* Work queued on `waiter` from now on starts after all work queued on `stream` until now. */
    void (*wait)(vram_backend *self, uint32_t waiter, uint32_t stream);
    /* Who is to be asked about streams from now on; hooks are copied. */
    void (*hook)(vram_backend *self, const vram_stream_hooks *hooks);
};

/* What a plug-in defines; vramlab defines none. See registry.h for how it is named, and
 * allocators/README.md for how it is written. */
extern const vram_ops vram_plugin;

/* ---- calls ---- */

/*
 * Serves a request. VRAM_BAD_REQUEST for a zero size or a bad alignment; VRAM_NO_SPACE at once for
 * a size above the arena; otherwise the backend's answer. On VRAM_OK *out holds the block; on
 * anything else *out is unchanged.
 */
vram_result vram_alloc(vram_backend *self, vram_request request, vram_block *out);

/* Gives a block back. VRAM_STALE_BLOCK for the null block, for one released before, and for another
 * backend's, unless that has the same handle and place by chance. VRAM_NO_METADATA from a layer
 * that must note it and cannot: the block is then still live. */
vram_result vram_release(vram_backend *self, vram_block block);

/* Why this request would fail now; reason VRAM_REASON_NONE is never returned. Costs a walk. */
vram_failure vram_explain(const vram_backend *self, vram_request request);

/*
 * Grows or shrinks a block where it is. VRAM_OK: *block says what it occupies now. VRAM_NO_SPACE
 * when only another place would do, VRAM_UNSUPPORTED when the backend never tries: the block is as
 * before.
 */
vram_result vram_resize(vram_backend *self, vram_block *block, uint64_t size_bytes);

/* Shows every byte of the arena once, in address order. O(spans); `visit` must not change it. */
void vram_walk(const vram_backend *self, vram_visit *visit, void *context);

/* True when all invariants hold; otherwise *fault, which may be NULL, is the first that does not.
 * O(bookkeeping). */
bool vram_check(const vram_backend *self, vram_fault *fault);

vram_stats vram_stats_of(const vram_backend *self); /* O(1) */

void vram_destroy(vram_backend *self); /* NULL is allowed; live blocks need not be released first */

const char *vram_result_name(vram_result result); /* "no space" */
const char *vram_reason_name(vram_reason reason); /* "fragmented" */
const char *vram_span_kind_name(vram_span_kind kind);

#ifdef __cplusplus
}
#endif
#endif
