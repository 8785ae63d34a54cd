/* order.c - which reuse of bytes is early: against reachability in the graph of all queued work,
 * and for stream layers that are wrong on purpose. */
#include "driver/order.h"
#include "hand_trace.h"

#include <vramlab/driver.h>
#include <vramlab/registry.h>

#include <criterion/new/assert.h>
#include <string.h>

static const uint64_t seed = 0x9E3779B97F4A7C15;

static uint32_t below(uint64_t *state, uint32_t bound)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 33) % bound;
}

/* ---- the oracle: a node for each stream and event, an edge for each "comes after" ---- */

enum { STREAMS = 4, EVENTS = 48, BYTES = 12 };

typedef struct graph {
    bool waits[EVENTS][STREAMS]
              [STREAMS]; /* [event][from][to]: edge (from, event) -> (to, event + 1) */
} graph;

static bool reaches(const graph *g, uint32_t from, uint64_t event, uint32_t to, uint64_t until)
{
    bool reached[STREAMS] = {false};
    reached[from] = true;
    for (; event < until; event++) {
        bool next[STREAMS];
        memcpy(next, reached, sizeof next);
        for (uint32_t a = 0; a < STREAMS; a++)
            for (uint32_t b = 0; b < STREAMS; b++)
                next[b] |= reached[a] && g->waits[event][a][b];
        memcpy(reached, next, sizeof next);
    }
    return reached[to];
}

/* Per byte and stream: the event + 1 of the release before which that stream may have used it. */
typedef struct world {
    graph work;
    uint64_t used[BYTES][STREAMS];
    struct block {
        uint32_t from, size, stream;
        vram_users users;
        bool also[STREAMS];
        bool live;
    } blocks[BYTES]; /* by first byte */
    bool taken[BYTES];
} world;

static bool oracle_is_early(const world *w, uint32_t from, uint32_t size, uint32_t stream,
                            uint64_t event)
{
    for (uint32_t at = from; at < from + size; at++)
        for (uint32_t user = 0; user < STREAMS; user++)
            if (w->used[at][user] != 0 && user != stream &&
                !reaches(&w->work, user, w->used[at][user] - 1, stream, event))
                return true;
    return false;
}

static void take(world *w, vram_order *order, uint64_t event, uint64_t *random)
{
    const uint32_t from = below(random, BYTES), most = BYTES - from < 4 ? BYTES - from : 4;
    const uint32_t size = 1 + below(random, most), stream = below(random, STREAMS);
    for (uint32_t at = from; at < from + size; at++)
        if (w->taken[at])
            return;
    vram_early_reuse early;
    cr_assert(vram_order_take(order, event, stream, from, size, &early));
    cr_assert(eq(int, early.event != UINT64_MAX, oracle_is_early(w, from, size, stream, event)));
    memset(&w->taken[from], true, size);
    memset(w->used[from], 0, size * sizeof w->used[0]);
    w->blocks[from] = (struct block){.from = from, .size = size, .stream = stream, .live = true};
}

static void give_back(world *w, vram_order *order, uint64_t event, struct block *block)
{
    cr_assert(
        vram_order_give_back(order, event, block->stream, block->users, block->from, block->size));
    vram_order_forget_users(order, &block->users);
    memset(&w->taken[block->from], false, block->size);
    for (uint32_t at = block->from; at < block->from + block->size; at++)
        for (uint32_t user = 0; user < STREAMS; user++)
            if (user == block->stream || block->also[user])
                w->used[at][user] = event + 1;
    block->live = false;
}

static void one_event(world *w, vram_order *order, uint64_t event, uint64_t *random)
{
    struct block *const block = &w->blocks[below(random, BYTES)];
    const uint32_t a = below(random, STREAMS), b = below(random, STREAMS);
    switch (below(random, 8)) {
    case 0:
        if (block->live && a != block->stream) {
            cr_assert(vram_order_use(order, &block->users, a));
            block->also[a] = true;
        }
        break;
    case 1:
        cr_assert(vram_order_wait(order, event, a, b));
        w->work.waits[event][b][a] = true;
        break;
    case 2:
        if (below(random, 3) != 0)
            break;
        cr_assert(vram_order_sync(order, event, a));
        for (uint32_t to = 0; to < STREAMS; to++)
            w->work.waits[event][a][to] = true;
        break;
    case 3:
        if (below(random, 10) != 0)
            break;
        cr_assert(vram_order_sync(order, event, VRAM_ALL_STREAMS));
        memset(w->work.waits[event], true, sizeof w->work.waits[event]);
        break;
    case 4:
    case 5:
        if (block->live)
            give_back(w, order, event, block);
        break;
    default:
        take(w, order, event, random);
    }
}

Test(order, reuse_is_early_exactly_when_no_path_leads_from_the_last_use_to_the_next)
{
    cr_log_info("seed %#llx", (unsigned long long)seed);
    uint64_t random = seed;
    for (uint32_t run = 0; run < 4000; run++) {
        world w = {0};
        vram_order *order = vram_order_create();
        for (uint64_t event = 0; event < EVENTS; event++)
            one_event(&w, order, event, &random);
        vram_order_destroy(order);
    }
}

/* ---- through the driver ---- */

static vram_replay_result replay_on(vram_backend *backend, vram_trace *trace, bool verify)
{
    vram_replay_result result;
    vram_error error = {0};
    const vram_replay_options options = {.on_failure = VRAM_SKIP_FAILURES,
                                         .streams = true,
                                         .verify = verify,
                                         .look_at_event = UINT64_MAX};
    cr_assert(vram_replay(trace, backend, &options, &result, &error), "%s", error.text);
    return result;
}

static vram_backend *make(const char *spec, uint64_t arena_bytes)
{
    vram_backend *backend = NULL;
    vram_error error = {0};
    const vram_config config = {.arena_bytes = arena_bytes, .unit_bytes = 1};
    cr_assert(vram_create_from_text(spec, &config, &backend, &error), "%s", error.text);
    return backend;
}

/* list gives the bytes at 0 again, whoever asks. */
Test(order, a_backend_that_knows_no_streams_is_early_unless_somebody_waited)
{
    static const struct {
        const char *text;
        uint64_t early;
    } cases[] = {
        {"a 1 9 s0\nf 1\na 2 9 s0\n", 0},
        {"a 1 9 s0\nf 1\na 2 9 s1\n", 1},
        {"a 1 9 s0\nf 1\ny\na 2 9 s1\n", 0},
        {"a 1 9 s0\nf 1\ny s0\na 2 9 s1\n", 0},
        {"a 1 9 s0\ny\nf 1\na 2 9 s1\n", 1}, /* waited before the release: work may have followed */
        {"a 1 9 s0\nf 1\nw 0 s1\na 2 9 s1\n", 0},
        {"a 1 9 s0\nf 1\nw 1 s0\na 2 9 s1\n", 1}, /* the wrong way round */
        {"a 1 9 s0\nf 1\nw 0 s2\nw 2 s1\na 2 9 s1\n", 0},
        {"a 1 9 s0\nf 1\nw 2 s1\nw 0 s2\na 2 9 s1\n", 1},
        {"a 1 9 s0\nf 1\nw 0 s2\ny s2\na 2 9 s1\n", 0},
        {"a 1 9 s0\nu 1 s1\nf 1\na 2 9 s0\n", 1},
        {"a 1 9 s0\nu 1 s1\nf 1\ny s1\na 2 9 s0\n", 0},
        {"a 1 9 s0\nu 1 s1\np 1\nf 1\na 2 9 s0\n", 0}, /* its FREE came once the others were done */
        {"a 1 9 s0\nu 1 s1\np 1\nf 1\na 2 9 s1\n", 1}, /* but its own stream may still work */
        {"a 1 9 s0\nu 1 s1\np 1\ny s0\nf 1\na 2 9 s1\n", 0},
        {"a 1 9 s0\nr 1 5\na 2 4 s1\n", 1}, /* the end of a block that shrank */
        {"a 1 5 s0\na 2 4 s1\nf 2\nr 1 9\n", 1},
        {"a 1 5 s0\nu 1 s1\nr 1 9\nf 1\na 2 9 s0\n", 1},
        {"a 1 9 s0\nf 1\na 2 3 s1\nf 2\na 3 9 s0\n", 2}, /* 0..3 from 1, then 3 gets it back */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "unit 1\n%s", cases[i].text);
        vram_trace *trace = hand_trace(text);
        vram_backend *backend = make("list", 100);
        cr_assert(eq(u64, replay_on(backend, trace, false).early_reuses, cases[i].early), "%s",
                  cases[i].text);
        vram_destroy(backend);
        vram_trace_close(trace);
    }
}

Test(order, tells_who_got_the_bytes_too_early_and_from_whom)
{
    vram_trace *trace = hand_trace("unit 1\na 1 9 s5\na 2 9 s5\nf 2\na 3 4 s7\n");
    vram_backend *backend = make("list", 100);
    const vram_early_reuse early = replay_on(backend, trace, false).first_early_reuse;
    cr_assert(eq(u64, early.event, 3));
    cr_assert(eq(u64, early.released_event, 2));
    cr_assert(eq(u64, early.offset_bytes, 9));
    cr_assert(eq(u64, early.size_bytes, 4));
    cr_assert(eq(u64, vram_trace_stream(trace, early.by_stream), 7));
    cr_assert(eq(u64, vram_trace_stream(trace, early.of_stream), 5));
    vram_destroy(backend);
    vram_trace_close(trace);
}

/* ---- a stream layer, right and wrong ---- */

typedef enum layer_fault {
    LAYER_SOUND,       /* a block is free again once the host has waited for each of its streams */
    LAYER_FORGETS_USE, /* waits for the block's own stream only */
    LAYER_ANY_SYNC,    /* takes a wait for one stream as one for all */
    LAYER_LATE_USE,    /* counts a wait that came before the release */
    LAYER_NONE,        /* frees at once */
    LAYER_FAULTS
} layer_fault;

enum { PENDING = 4096, LAYER_STREAMS = 3 };

typedef struct layer {
    vram_backend head;
    vram_backend *inner;
    layer_fault fault;
    struct kept {
        vram_block block;
        bool waits_for[LAYER_STREAMS];
        bool pending, live;
    } kept[PENDING]; /* by the inner handle's slot */
    uint64_t pending_bytes;
} layer;

static struct kept *kept_of(layer *self, vram_block block)
{
    return &self->kept[(uint32_t)block.handle % PENDING];
}

static void layer_destroy(vram_backend *backend)
{
    vram_destroy(((layer *)backend)->inner);
    free(backend);
}

static vram_result layer_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    layer *self = (layer *)backend;
    const vram_result outcome = vram_alloc(self->inner, *request, out);
    if (outcome == VRAM_OK) {
        struct kept *kept = kept_of(self, *out);
        cr_assert(not(kept->live || kept->pending));
        *kept = (struct kept){.block = *out, .live = true};
        kept->waits_for[request->stream] = true;
    }
    return outcome;
}

static void settle(layer *self, struct kept *kept)
{
    bool waits = false;
    for (uint32_t stream = 0; stream < LAYER_STREAMS; stream++)
        waits |= kept->waits_for[stream];
    if (!kept->pending || waits)
        return;
    kept->pending = false;
    self->pending_bytes -= kept->block.granted_bytes;
    vram_release(self->inner, kept->block);
}

static vram_result layer_release(vram_backend *backend, vram_block block)
{
    layer *self = (layer *)backend;
    struct kept *kept = kept_of(self, block);
    kept->live = false;
    kept->pending = true;
    self->pending_bytes += block.granted_bytes;
    if (self->fault == LAYER_NONE)
        memset(kept->waits_for, false, sizeof kept->waits_for);
    settle(self, kept);
    return VRAM_OK;
}

static vram_result layer_use(vram_backend *backend, vram_block block, uint32_t stream)
{
    layer *self = (layer *)backend;
    if (self->fault != LAYER_FORGETS_USE)
        kept_of(self, block)->waits_for[stream] = true;
    return VRAM_OK;
}

static void layer_sync(vram_backend *backend, uint32_t stream)
{
    layer *self = (layer *)backend;
    for (struct kept *kept = self->kept; kept < self->kept + PENDING; kept++)
        for (uint32_t user = 0; user < LAYER_STREAMS; user++)
            if ((kept->pending || (kept->live && self->fault == LAYER_LATE_USE)) &&
                (stream == VRAM_ALL_STREAMS || stream == user || self->fault == LAYER_ANY_SYNC)) {
                kept->waits_for[user] = false;
                settle(self, kept);
            }
}

static void layer_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    vram_walk(((const layer *)backend)->inner, visit, context);
}

static bool layer_check(const vram_backend *backend, vram_fault *fault)
{
    return vram_check(((const layer *)backend)->inner, fault);
}

static void layer_stats(const vram_backend *backend, vram_stats *out)
{
    const layer *self = (const layer *)backend;
    *out = vram_stats_of(self->inner);
    out->granted_bytes -= self->pending_bytes;
    out->pending_bytes += self->pending_bytes;
}

static const vram_ops layer_ops = {
    .abi = VRAM_ABI,
    .name = "layer",
    .summary = "keeps released blocks until it thinks that they are safe",
    .destroy = layer_destroy,
    .alloc = layer_alloc,
    .release = layer_release,
    .walk = layer_walk,
    .check = layer_check,
    .stats = layer_stats,
    .use = layer_use,
    .sync = layer_sync,
};

static vram_backend *layer_over(vram_backend *inner, layer_fault fault)
{
    layer *self = calloc(1, sizeof *self);
    self->head = *inner;
    self->head.ops = &layer_ops;
    self->head.spec = strdup("layer");
    self->head.owned_values = NULL;
    self->inner = inner;
    self->fault = fault;
    return &self->head;
}

/* Random work on three streams: blocks are allocated, used elsewhere, released; streams are synced.
 */
static char *random_work(uint64_t *random)
{
    enum { LINES = 3000, IDS = 60 };
    static char text[LINES * 16];
    bool live[IDS] = {false};
    char *at = text + sprintf(text, "unit 1\n");
    for (uint32_t line = 0; line < LINES; line++) {
        const uint32_t id = below(random, IDS), stream = below(random, LAYER_STREAMS);
        const uint32_t what = below(random, 10);
        if (!live[id])
            at += sprintf(at, "a %u %u s%u\n", id, 1 + below(random, 300), stream);
        else if (what < 6)
            at += sprintf(at, "f %u\n", id);
        else if (what < 8)
            at += sprintf(at, "u %u s%u\n", id, stream);
        else
            at += what < 9 ? sprintf(at, "y s%u\n", stream)
                           : sprintf(at, "w %u s%u\n", stream, id % 3);
        live[id] = live[id] ? what >= 6 : true;
    }
    return text;
}

Test(order, a_wrong_stream_layer_is_caught_and_a_sound_one_is_not)
{
    cr_log_info("seed %#llx", (unsigned long long)seed);
    uint64_t random = seed;
    for (uint32_t round = 0; round < 5; round++) {
        vram_trace *trace = hand_trace(random_work(&random));
        for (layer_fault fault = LAYER_SOUND; fault < LAYER_FAULTS; fault++) {
            vram_backend *backend = layer_over(make("list", 1 << 20), fault);
            const vram_replay_result result = replay_on(backend, trace, false);
            cr_assert(result.completed);
            cr_assert(eq(int, result.early_reuses == 0, fault == LAYER_SOUND),
                      "fault %d: %llu early", fault, (unsigned long long)result.early_reuses);
            vram_destroy(backend);
        }
        vram_trace_close(trace);
    }
}

/* The layer `stream`, with room for everything and with so little that it must wait for streams. */
Test(order, the_stream_layer_gives_nothing_early_whatever_its_switches_and_however_tight)
{
    static const char *const specs[] = {
        "list+stream",
        "tlsf+stream:follow=off",
        "list+stream:internal=off",
        "buddy:min=1+stream:follow=off,internal=off",
        "tlsf+reserve:share=10%+stream",
        "list+stream+locked",
    };
    static const uint64_t arenas[] = {1 << 20, 12 << 10, 8 << 10};
    uint64_t random = seed;
    vram_trace *trace = hand_trace(random_work(&random));
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        for (size_t j = 0; j < sizeof arenas / sizeof arenas[0]; j++) {
            vram_backend *backend = make(specs[i], arenas[j]);
            const vram_replay_result result = replay_on(backend, trace, true);
            cr_assert(zero(u64, result.early_reuses), "%s in %llu: event %llu", specs[i],
                      (unsigned long long)arenas[j],
                      (unsigned long long)result.first_early_reuse.event);
            cr_assert(gt(u64, result.served, 100), "%s", specs[i]);
            vram_destroy(backend);
        }
    vram_trace_close(trace);
}

Test(order, on_the_recording_of_three_streams_the_layer_and_pytorchs_rules_give_nothing_early)
{
    static const struct {
        const char *spec;
        bool safe;
    } cases[] = {{"tlsf", false}, {"tlsf+stream", true}, {"list+stream", true}, {"caching", true}};
    vram_trace *trace = NULL;
    vram_error error = {0};
    cr_assert(vram_trace_open("traces/data/multi_stream.pickle.gz", NULL, &trace, &error), "%s",
              error.text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        vram_backend *backend = make(cases[i].spec, 470 << 20);
        const vram_replay_result result = replay_on(backend, trace, false);
        cr_assert(result.completed, "%s", cases[i].spec);
        cr_assert(eq(int, result.early_reuses == 0, cases[i].safe), "%s", cases[i].spec);
        vram_destroy(backend);
    }
    vram_trace_close(trace);
}
