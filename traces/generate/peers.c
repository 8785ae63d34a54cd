/*
 * peers.c - mix, dl and fixed: churn with many live blocks, a training loop, churn of one size.
 *
 *   mix, fixed   live |      ______~~~~~~~~~~~~~~~~_         fill, then toss a coin: allocate, or
 *                     |    _/                       \_       free a random one; free all
 *                     +---------------------------------> ops
 *   dl           live |  /\  /\  /\  /\  /\                  each step allocates the same buffers
 * and | /  \/  \/  \/  \/  \                 frees them backwards, but keeps some for
 *                     +---------------------------------> ops  KEPT_STEPS steps
 *
 * The generator and the order of its draws are those with which OffsetAllocator, VMA and the TLSF
 * libraries were measured, so that figures can be laid side by side: xorshift64* (Vigna 2016) with
 * shifts 13, 7, 17. A block's id is the one freed last, or a new one.
 */
#include "peers.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum {
    UNIT_BYTES = 256,
    LEAST_BYTES = 256,
    GREATEST_BYTES = 1 << 20,
    BAND = 20, /* the live blocks of mix and fixed vary by one in so many */
    KEPT_STEPS = 10,
    BATCH_OPS = 1024,
};

#define REDRAW_SHARE 0.05 /* dl: how many sizes of a step are drawn afresh */
#define KEEP_SHARE   0.10 /* dl: how many buffers of a step outlive it */

typedef struct op {
    uint32_t id;
    uint32_t size_bytes; /* 0 frees */
} op;

typedef struct list {
    uint32_t *ids;
    size_t count, capacity;
} list;

typedef struct churn {
    uint64_t random;
    uint64_t ops_wanted; /* no new step begins once so many are recorded */
    uint64_t ops_made;
    uint64_t live_wanted; /* mix, fixed: blocks to fill up to; dl: buffers in a step */
    uint64_t size_bytes;  /* fixed; else 0 */
    bool filled;
    list live;      /* mix, fixed: all that live; dl: the buffers of the step in hand */
    list unused;    /* ids freed, the latest last */
    uint32_t fresh; /* ids ever used */
    op *batch;
    size_t batch_at, batch_count, batch_capacity;
    uint32_t *step_sizes; /* dl */
    list kept[KEPT_STEPS];
    uint32_t step;
    bool out_of_memory;
} churn;

/* ---- draws ---- */

static uint64_t draw(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random * UINT64_C(0x2545F4914F6CDD1D);
}

static double draw_unit(churn *self)
{
    return (double)(draw(&self->random) >> 11) * 0x1p-53;
}

static uint32_t draw_size(churn *self)
{
    const double greatest_share = (double)GREATEST_BYTES / LEAST_BYTES;
    const double size_bytes = floor(LEAST_BYTES * exp(draw_unit(self) * log(greatest_share)));
    if (size_bytes < LEAST_BYTES)
        return LEAST_BYTES;
    return size_bytes > GREATEST_BYTES ? GREATEST_BYTES : (uint32_t)size_bytes;
}

uint64_t vram_peers_next_draw(const vram_source *source)
{
    const churn *const self = source->state;
    uint64_t random = self->random;
    return draw(&random);
}

/* ---- operations into the batch ---- */

static void push(churn *self, list *into, uint32_t id)
{
    if (!vram_reserve((void **)&into->ids, &into->capacity, into->count + 1, sizeof *into->ids))
        self->out_of_memory = true;
    else
        into->ids[into->count++] = id;
}

static void record(churn *self, uint32_t id, uint32_t size_bytes)
{
    if (!vram_reserve((void **)&self->batch, &self->batch_capacity, self->batch_count + 1,
                      sizeof *self->batch)) {
        self->out_of_memory = true;
        return;
    }
    self->batch[self->batch_count++] = (op){.id = id, .size_bytes = size_bytes};
    self->ops_made++;
}

static void allocate(churn *self, uint32_t size_bytes)
{
    const uint32_t id =
        self->unused.count > 0 ? self->unused.ids[--self->unused.count] : self->fresh++;
    push(self, &self->live, id);
    record(self, id, size_bytes);
}

static void release(churn *self, uint32_t id)
{
    push(self, &self->unused, id);
    record(self, id, 0);
}

/* ---- mix and fixed ---- */

static void allocate_one(churn *self)
{
    allocate(self, self->size_bytes != 0 ? (uint32_t)self->size_bytes : draw_size(self));
}

static void release_one(churn *self)
{
    list *const live = &self->live;
    const size_t victim = (size_t)(draw(&self->random) % live->count);
    const uint32_t id = live->ids[victim];
    live->ids[victim] = live->ids[--live->count];
    release(self, id);
}

static void toss(churn *self)
{
    const uint64_t band = self->live_wanted / BAND;
    bool allocates = draw(&self->random) >> 63;
    if (self->live.count <= self->live_wanted - band)
        allocates = true;
    if (self->live.count >= self->live_wanted + band)
        allocates = false;
    if (allocates)
        allocate_one(self);
    else
        release_one(self);
}

static void mix_refill(churn *self)
{
    while (self->batch_count < BATCH_OPS && !self->out_of_memory) {
        self->filled = self->filled || self->live.count == self->live_wanted;
        if (!self->filled)
            allocate_one(self);
        else if (self->ops_made < self->ops_wanted)
            toss(self);
        else if (self->live.count > 0)
            release_one(self);
        else
            return;
    }
}

/* ---- dl ---- */

static void release_kept(churn *self, list *kept)
{
    for (size_t index = 0; index < kept->count; index++)
        release(self, kept->ids[index]);
    kept->count = 0;
}

static void allocate_step(churn *self)
{
    for (uint64_t index = 0; index < self->live_wanted; index++) {
        const bool redrawn = draw_unit(self) < REDRAW_SHARE;
        allocate(self, redrawn ? draw_size(self) : self->step_sizes[index]);
    }
}

/* Backwards; what is kept replaces what was kept KEPT_STEPS steps ago, which is freed after. */
static void release_step(churn *self)
{
    list *const oldest = &self->kept[self->step % KEPT_STEPS];
    list kept = {0};
    while (self->live.count > 0) {
        const uint32_t id = self->live.ids[--self->live.count];
        if (draw_unit(self) < KEEP_SHARE)
            push(self, &kept, id);
        else
            release(self, id);
    }
    release_kept(self, oldest);
    free(oldest->ids);
    *oldest = kept;
}

static void dl_refill(churn *self)
{
    if (!self->filled) {
        for (uint64_t index = 0; index < self->live_wanted; index++)
            self->step_sizes[index] = draw_size(self);
        self->filled = true;
    }
    if (self->ops_made < self->ops_wanted) {
        allocate_step(self);
        release_step(self);
        self->step++;
        return;
    }
    for (uint32_t age = 0; age < KEPT_STEPS; age++)
        release_kept(self, &self->kept[(self->step + age) % KEPT_STEPS]);
}

/* ---- as a format ---- */

static const vram_workload_option mix_options[] = {
    {"ops", "2000000", "operations before the blocks that are left are freed"},
    {"live", "10000", "blocks alive, give or take one in 20 (20 or more)"},
    {"seed", "11400714819323198485", "start of the random numbers, not 0"},
    {0},
};

static const vram_workload_option fixed_options[] = {
    {"ops", "2000000", "operations before the blocks that are left are freed"},
    {"live", "10000", "blocks alive, give or take one in 20 (20 or more)"},
    {"size", "64KiB", "of every block, at most 1 GiB"},
    {"seed", "11400714819323198485", "start of the random numbers, not 0"},
    {0},
};

static const vram_workload_option dl_options[] = {
    {"ops", "2000000", "operations after which no new step begins"},
    {"buffers", "2000", "allocations in a step"},
    {"seed", "11400714819323198485", "start of the random numbers, not 0"},
    {0},
};

static void churn_close(vram_source *source)
{
    churn *const self = source->state;
    if (self == NULL)
        return;
    for (uint32_t age = 0; age < KEPT_STEPS; age++)
        free(self->kept[age].ids);
    free(self->step_sizes);
    free(self->live.ids);
    free(self->unused.ids);
    free(self->batch);
    free(self);
    source->state = NULL;
}

static bool check_range(const char *name, uint64_t value, uint64_t least, uint64_t most,
                        vram_error *error)
{
    return (value >= least && value <= most) ||
           vram_fail(error, "%s=%" PRIu64 " is out of range: %" PRIu64 " to %" PRIu64 " is allowed",
                     name, value, least, most);
}

static bool read_counts(churn *self, const char *spec, const vram_workload_option *options,
                        const char *live_name, uint64_t least_live, vram_error *error)
{
    return vram_workload_check(spec, options, error) &&
           vram_workload_count(spec, options, "ops", &self->ops_wanted, error) &&
           vram_workload_count(spec, options, live_name, &self->live_wanted, error) &&
           vram_workload_count(spec, options, "seed", &self->random, error) &&
           check_range(live_name, self->live_wanted, least_live, UINT32_MAX / 4, error) &&
           check_range("seed", self->random, 1, UINT64_MAX, error);
}

static churn *begin(vram_source *source, vram_error *error)
{
    churn *const self = calloc(1, sizeof *self);
    if (self == NULL)
        vram_fail(error, "the host is out of memory for the workload");
    source->state = self;
    source->info->unit_bytes = UNIT_BYTES;
    return self;
}

static bool mix_open(vram_source *source, vram_error *error)
{
    churn *const self = begin(source, error);
    if (self == NULL)
        return false;
    if (read_counts(self, source->path, mix_options, "live", BAND, error))
        return true;
    churn_close(source);
    return false;
}

static bool fixed_open(vram_source *source, vram_error *error)
{
    churn *const self = begin(source, error);
    if (self == NULL)
        return false;
    if (read_counts(self, source->path, fixed_options, "live", BAND, error) &&
        vram_workload_size(source->path, fixed_options, "size", &self->size_bytes, error) &&
        check_range("size", self->size_bytes, 1, UINT64_C(1) << 30, error))
        return true;
    churn_close(source);
    return false;
}

static bool dl_open(vram_source *source, vram_error *error)
{
    churn *const self = begin(source, error);
    if (self == NULL)
        return false;
    if (read_counts(self, source->path, dl_options, "buffers", 1, error)) {
        self->step_sizes = calloc((size_t)self->live_wanted, sizeof *self->step_sizes);
        if (self->step_sizes != NULL)
            return true;
        vram_fail(error, "the host is out of memory for %" PRIu64 " buffers", self->live_wanted);
    }
    churn_close(source);
    return false;
}

static vram_step next_op(vram_source *source, void (*refill)(churn *), vram_raw *event,
                         vram_error *error)
{
    churn *const self = source->state;
    if (self->batch_at == self->batch_count) {
        self->batch_at = self->batch_count = 0;
        refill(self);
        if (self->out_of_memory)
            return vram_source_fail(source, error, "the host is out of memory for the workload");
        if (self->batch_count == 0)
            return VRAM_STEP_END;
    }
    const op *const made = &self->batch[self->batch_at++];
    *event = (vram_raw){
        .id = made->id,
        .size_bytes = made->size_bytes,
        .kind = made->size_bytes == 0 ? VRAM_EVENT_FREE : VRAM_EVENT_ALLOC,
    };
    return VRAM_STEP_EVENT;
}

static vram_step mix_next(vram_source *source, vram_raw *event, vram_error *error)
{
    return next_op(source, mix_refill, event, error);
}

static vram_step dl_next(vram_source *source, vram_raw *event, vram_error *error)
{
    return next_op(source, dl_refill, event, error);
}

const vram_workload vram_workload_mix = {
    .format =
        {
            .name = "mix",
            .summary = "10,000 live blocks of 256 B to 1 MiB, log-uniform, freed at random",
            .open = mix_open,
            .next = mix_next,
            .close = churn_close,
        },
    .options = mix_options,
};

const vram_workload vram_workload_fixed = {
    .format =
        {
            .name = "fixed",
            .summary = "10,000 live blocks of 64 KiB, freed at random",
            .open = fixed_open,
            .next = mix_next,
            .close = churn_close,
        },
    .options = fixed_options,
};

const vram_workload vram_workload_dl = {
    .format =
        {
            .name = "dl",
            .summary = "training steps of 2,000 buffers freed backwards, a tenth kept ten steps",
            .open = dl_open,
            .next = dl_next,
            .close = churn_close,
        },
    .options = dl_options,
};
