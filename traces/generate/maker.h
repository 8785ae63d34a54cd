/*
 * maker.h - what most workloads are made with: blocks that end by themselves, in order of time.
 *
 *     step(self):   maker_alloc(size, life) ...  at `now`        frees wait in a heap by their end
 *     next event:   from the queue; when it is empty, the frees that are due before the next step
 *
 * Memory: 24 bytes for each block live at once, and the events of one step.
 */
#ifndef VRAMLAB_GENERATE_MAKER_H
#define VRAMLAB_GENERATE_MAKER_H

#include "generate.h"

#define MAKER_FOREVER UINT64_MAX /* life of a block that is not freed before the end */

typedef struct maker_end {
    uint64_t due_ns, id;
} maker_end;

typedef struct maker {
    vram_source *source;
    vram_random random;
    uint64_t now_ns;
    uint64_t next_id;
    uint64_t stream; /* of the allocations that follow; so are tag and alignment */
    uint32_t tag;
    uint8_t align_log2;
    vram_raw *queue;
    size_t queued, taken, queue_capacity;
    maker_end *ends; /* a binary heap, the earliest first, ties by id */
    size_t end_count, end_capacity;
    bool ended; /* step has answered false: only frees are left */
    bool out_of_memory;
} maker;

/* A workload that embeds a maker as its first member, and makes the events of its next step. False
 * when there is no more; `now_ns` may only grow. */
typedef bool maker_step(void *self);

/* Both return the block's id. */
uint64_t maker_alloc(maker *self, uint64_t size_bytes, uint64_t life_ns);
uint64_t maker_hold(maker *self, uint64_t size_bytes); /* lives until maker_free, or for ever */
void maker_free(maker *self, uint64_t id);
void maker_resize(maker *self, uint64_t id, uint64_t size_bytes);
void maker_use(maker *self, uint64_t id, uint32_t stream);
void maker_retire(maker *self, uint64_t id);
void maker_sync(maker *self); /* the host waits for all streams */
void maker_mark(maker *self, const char *name);
void maker_tag(maker *self, const char *name); /* of the allocations that follow; "" for none */

/* open: allocates `bytes` for a struct that begins with a maker, and sets source->state. */
void *maker_open(vram_source *source, size_t bytes, uint64_t seed, vram_error *error);
vram_step maker_next(vram_source *source, maker_step *step, vram_raw *event, vram_error *error);
void maker_close(vram_source *source); /* for the format's close, when there is no more to free */
void maker_give_back(maker *self);     /* the maker's own memory */

/* ---- numbers drawn ---- */

double maker_normal(vram_random *random); /* mean 0, deviation 1 */
double maker_exponential(vram_random *random, double mean);
uint64_t maker_log_normal(vram_random *random, double median, double sigma);
uint64_t maker_log_uniform(vram_random *random, uint64_t least, uint64_t most);
uint64_t maker_between(vram_random *random, uint64_t least, uint64_t most); /* both included */

#endif
