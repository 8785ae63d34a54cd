/*
 * broken.c - the template of allocators/template with one thing wrong, chosen by FAULT when built:
 * what `vramlab check` must catch. NONE is the template as it is, which must pass.
 *
 * Each fault waits for a moment that a script must bring about, so that catching it takes more than
 * a first call.
 */
#define vram_plugin sound_plugin
#include "mine.c"
#undef vram_plugin

#include <unistd.h>

enum {
    NONE,
    OVERLAPS,   /* hands out the place of the last block, when four are live */
    MISALIGNED, /* forgets alignments above 4 KiB */
    SHORT,      /* grants a unit less than asked for, from 8 units on */
    OUTSIDE,    /* lets the last block reach beyond the end */
    LEAKS,      /* loses a note on each release */
    CRASHES,    /* when the block released was the only one */
    HANGS,      /* when nothing fits */
    GROWS,      /* takes host memory until there is none, when nothing fits */
    EXITS,      /* when nothing fits */
    STALE,      /* accepts what was released before */
    FORGETS,    /* walks past the last live block */
    MISCOUNTS,  /* stats lose what was padded by alignment */
    CHECK_LIES, /* its check calls a sound state broken, with five blocks */
    SPITEFUL,   /* refuses what would fit, every 37th time */
    TIRED,      /* serves half the arena only once it has been full */
    MOODY,      /* places by a counter that all instances share */
    SCRIBBLES,  /* writes *out and then refuses */
    THIRSTY,    /* crashes without host memory */
};

static int moods;
static int *volatile nowhere;

typedef struct record {
    const vram_backend *backend; /* NULL: this record is free */
    uint64_t calls;
    bool tired;
} record;
enum { INSTANCES = 16 };
static record records[INSTANCES];

static record *record_of(const vram_backend *backend)
{
    size_t i = 0;
    while (i < INSTANCES - 1 && records[i].backend != backend)
        i++;
    return &records[i];
}

static bool broken_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    if (!mine_create(config, out, error))
        return false;
    *record_of(NULL) = (record){.backend = *out};
    return true;
}

static void broken_destroy(vram_backend *backend)
{
    *record_of(backend) = (record){.backend = NULL};
    mine_destroy(backend);
}

static uint64_t align_of(const vram_request *request)
{
    return FAULT == MISALIGNED && request->align_bytes > 4096 ? 4096 : request->align_bytes;
}

static void suffer_refusal(vram_block *out)
{
    static volatile bool never;
    while (FAULT == HANGS && !never)
        ;
    if (FAULT == GROWS)
        for (char *at; (at = malloc(1 << 20)) != NULL;)
            memset(at, 1, 1 << 20);
    if (FAULT == EXITS)
        _exit(3);
    if (FAULT == SCRIBBLES)
        out->offset_bytes = 0;
}

/* Every second block of all instances together lies higher than it need. */
static vram_result place_by_mood(vram_backend *backend, vram_request request, vram_block *out)
{
    if (FAULT == MOODY && moods++ % 2 == 1 && request.align_bytes < 8192) {
        const uint64_t align_bytes = request.align_bytes;
        request.align_bytes = 8192;
        if (mine_alloc(backend, &request, out) == VRAM_OK)
            return VRAM_OK;
        request.align_bytes = align_bytes;
    }
    return mine_alloc(backend, &request, out);
}

static vram_result broken_alloc(vram_backend *backend, const vram_request *asked, vram_block *out)
{
    mine *self = (mine *)backend;
    record *note = record_of(backend);
    vram_request request = *asked;
    request.align_bytes = align_of(asked);
    if (FAULT == SPITEFUL && ++note->calls % 37 == 0)
        return VRAM_NO_SPACE;
    if (FAULT == TIRED && note->tired && request.size_bytes > backend->arena_bytes / 2)
        return VRAM_NO_SPACE;
    if (FAULT == THIRSTY && self->count == self->capacity && self->capacity > 0)
        *(volatile char *)malloc(1) = 0;
    const vram_result result = place_by_mood(backend, request, out);
    note->tired = note->tired || result == VRAM_NO_SPACE;
    if (result == VRAM_NO_SPACE)
        suffer_refusal(out);
    if (result != VRAM_OK)
        return result;
    if (FAULT == OVERLAPS && self->count > 4 && out->offset_bytes >= backend->unit_bytes)
        out->offset_bytes -= backend->unit_bytes;
    if (FAULT == SHORT && out->granted_bytes > 8 * backend->unit_bytes)
        out->granted_bytes -= backend->unit_bytes;
    if (FAULT == OUTSIDE && out->offset_bytes + out->granted_bytes == backend->arena_bytes)
        out->granted_bytes++;
    return VRAM_OK;
}

static vram_result broken_release(vram_backend *backend, vram_block block)
{
    const mine *self = (const mine *)backend;
    const bool only = self->count == 1;
    const vram_result result = mine_release(backend, block);
    if (FAULT == LEAKS && result == VRAM_OK)
        *(char *volatile *)&(char *){NULL} = malloc(16);
    if (FAULT == CRASHES && result == VRAM_OK && only)
        *nowhere = 1;
    if (FAULT == STALE && result == VRAM_STALE_BLOCK)
        return VRAM_OK;
    return result;
}

/* Passes on all spans but the last live one. */
typedef struct passing {
    vram_visit *visit;
    void *context;
    uint64_t hidden;
} passing;

static void pass(void *context, const vram_span *span)
{
    const passing *to = context;
    if (span->kind != VRAM_SPAN_LIVE || span->handle != to->hidden)
        to->visit(to->context, span);
}

static void broken_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const mine *self = (const mine *)backend;
    const bool hides = FAULT == FORGETS && self->count > 3;
    passing to = {visit, context, hides ? self->live[self->count - 1].handle : 0};
    mine_walk(backend, pass, &to);
}

static bool broken_check(const vram_backend *backend, vram_fault *fault)
{
    const mine *self = (const mine *)backend;
    if (FAULT != CHECK_LIES || self->count != 5)
        return mine_check(backend, fault);
    *fault = (vram_fault){"I9 imagined", 0};
    return false;
}

static void broken_stats(const vram_backend *backend, vram_stats *out)
{
    const mine *self = (const mine *)backend;
    mine_stats(backend, out);
    if (FAULT == MISCOUNTS && self->count > 1 && gap_end(self, 0) > 0)
        out->free_bytes -= gap_end(self, 0);
}

/* An excuse, without which the refusals of TIRED would be found before their effect. */
static void broken_explain(const vram_backend *backend, const vram_request *request,
                           vram_failure *failure)
{
    (void)request;
    if (FAULT == TIRED && record_of(backend)->tired)
        failure->reason = VRAM_REASON_CLASS_FULL;
}

const vram_ops vram_plugin = {
    .abi = VRAM_ABI,
    .name = "broken",
    .summary = "the template with one thing wrong",
    .create = broken_create,
    .destroy = broken_destroy,
    .alloc = broken_alloc,
    .release = broken_release,
    .walk = broken_walk,
    .check = broken_check,
    .stats = broken_stats,
    .explain = broken_explain,
};
