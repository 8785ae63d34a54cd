/* maker.c - see maker.h. */
#include "maker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TWO_PI 6.283185307179586

/* ---- the heap of ends ---- */

static bool earlier(const maker_end *a, const maker_end *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->id < b->id;
}

static void push_end(maker *self, maker_end end)
{
    if (!vram_reserve((void **)&self->ends, &self->end_capacity, self->end_count + 1,
                      sizeof *self->ends)) {
        self->out_of_memory = true;
        return;
    }
    size_t at = self->end_count++;
    for (; at > 0 && earlier(&end, &self->ends[(at - 1) / 2]); at = (at - 1) / 2)
        self->ends[at] = self->ends[(at - 1) / 2];
    self->ends[at] = end;
}

static maker_end pop_end(maker *self)
{
    const maker_end first = self->ends[0], last = self->ends[--self->end_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= self->end_count)
            break;
        if (child + 1 < self->end_count && earlier(&self->ends[child + 1], &self->ends[child]))
            child++;
        if (!earlier(&self->ends[child], &last))
            break;
        self->ends[at] = self->ends[child];
        at = child;
    }
    if (self->end_count > 0)
        self->ends[at] = last;
    return first;
}

/* ---- events ---- */

static void add(maker *self, vram_raw event)
{
    if (!vram_reserve((void **)&self->queue, &self->queue_capacity, self->queued + 1,
                      sizeof *self->queue)) {
        self->out_of_memory = true;
        return;
    }
    event.time_ns = self->now_ns;
    self->queue[self->queued++] = event;
}

uint64_t maker_hold(maker *self, uint64_t size_bytes)
{
    const uint64_t id = self->next_id++;
    add(self, (vram_raw){.kind = VRAM_EVENT_ALLOC,
                         .id = id,
                         .size_bytes = size_bytes > 0 ? size_bytes : 1,
                         .stream = self->stream,
                         .tag = self->tag,
                         .align_log2 = self->align_log2});
    return id;
}

uint64_t maker_alloc(maker *self, uint64_t size_bytes, uint64_t life_ns)
{
    const uint64_t id = maker_hold(self, size_bytes);
    const uint64_t lived_ns = life_ns > 0 ? life_ns : 1; /* its end comes behind it in the queue */
    if (lived_ns < MAKER_FOREVER - self->now_ns)
        push_end(self, (maker_end){.due_ns = self->now_ns + lived_ns, .id = id});
    return id;
}

void maker_free(maker *self, uint64_t id)
{
    add(self, (vram_raw){.kind = VRAM_EVENT_FREE, .id = id});
}

void maker_resize(maker *self, uint64_t id, uint64_t size_bytes)
{
    add(self, (vram_raw){.kind = VRAM_EVENT_RESIZE,
                         .id = id,
                         .size_bytes = size_bytes,
                         .stream = self->stream,
                         .tag = self->tag});
}

void maker_use(maker *self, uint64_t id, uint32_t stream)
{
    add(self, (vram_raw){.kind = VRAM_EVENT_USE, .id = id, .stream = stream});
}

void maker_retire(maker *self, uint64_t id)
{
    add(self, (vram_raw){.kind = VRAM_EVENT_RETIRE, .id = id});
}

void maker_sync(maker *self)
{
    add(self, (vram_raw){.kind = VRAM_EVENT_SYNC, .stream = UINT64_MAX});
}

static uint32_t intern(maker *self, const char *name)
{
    uint32_t index = 0;
    if (!vram_names_intern(&self->source->tags, name, strlen(name), &index))
        self->out_of_memory = true;
    return index;
}

void maker_mark(maker *self, const char *name)
{
    add(self, (vram_raw){.kind = VRAM_EVENT_MARK, .tag = intern(self, name)});
}

void maker_tag(maker *self, const char *name)
{
    self->tag = intern(self, name);
}

/* ---- the format ---- */

void *maker_open(vram_source *source, size_t bytes, uint64_t seed, vram_error *error)
{
    maker *self = calloc(1, bytes);
    if (self == NULL) {
        vram_fail(error, "%s: out of memory", source->path);
        return NULL;
    }
    self->source = source;
    self->random = vram_random_from(seed);
    source->state = self;
    source->info->unit_bytes = 512;
    source->info->has_clock = true;
    source->record_name = "step";
    return self;
}

void maker_give_back(maker *self)
{
    free(self->queue);
    free(self->ends);
}

void maker_close(vram_source *source)
{
    maker_give_back(source->state);
    free(source->state);
    source->state = NULL;
}

/* Fills the queue: the frees due before the step's time come out as they fall due. */
static void refill(maker *self, maker_step *step)
{
    self->queued = self->taken = 0;
    if (!self->ended)
        self->ended = !step(self);
    self->source->record++;
}

vram_step maker_next(vram_source *source, maker_step *step, vram_raw *event, vram_error *error)
{
    maker *self = source->state;
    for (;;) {
        if (self->out_of_memory)
            return vram_source_fail(source, error, "out of memory");
        const bool waiting = self->taken < self->queued;
        const uint64_t next_ns = waiting ? self->queue[self->taken].time_ns : MAKER_FOREVER;
        if (self->end_count > 0 && (waiting || self->ended) && self->ends[0].due_ns <= next_ns) {
            const maker_end end = pop_end(self);
            *event = (vram_raw){.kind = VRAM_EVENT_FREE, .id = end.id, .time_ns = end.due_ns};
            return VRAM_STEP_EVENT;
        }
        if (waiting) {
            *event = self->queue[self->taken++];
            return VRAM_STEP_EVENT;
        }
        if (self->ended)
            return VRAM_STEP_END;
        refill(self, step);
    }
}

/* ---- numbers drawn ---- */

double maker_normal(vram_random *random) /* Box and Muller 1958 */
{
    const double radius = sqrt(-2 * log(1 - vram_random_unit(random)));
    return radius * cos(TWO_PI * vram_random_unit(random));
}

double maker_exponential(vram_random *random, double mean)
{
    return -mean * log(1 - vram_random_unit(random));
}

/* A number of bytes or ns out of a real one; what is out of range goes to its end. */
static uint64_t whole(double value)
{
    return value < 1 ? 1 : value > 9e18 ? (uint64_t)9e18 : (uint64_t)value;
}

uint64_t maker_log_normal(vram_random *random, double median, double sigma)
{
    return whole(median * exp(sigma * maker_normal(random)));
}

uint64_t maker_log_uniform(vram_random *random, uint64_t least, uint64_t most)
{
    const double low = log((double)least), high = log((double)most);
    return whole(exp(low + (high - low) * vram_random_unit(random)));
}

uint64_t maker_between(vram_random *random, uint64_t least, uint64_t most)
{
    return least + vram_random_below(random, most - least + 1);
}
