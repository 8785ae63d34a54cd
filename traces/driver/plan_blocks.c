/*
 * plan_blocks.c - the lives of a trace's blocks, as the planner wants them.
 */
#include <vramlab/plan.h>

#include <stdlib.h>

enum { NO_BLOCK = 0 };

typedef struct instant {
    uint64_t moment;
    uint64_t time; /* ns, or the moment where there is no clock */
} instant;

typedef struct lives {
    vram_plan_block *blocks;
    size_t count, capacity;
    uint32_t *open; /* by slot: index of its block + 1, or NO_BLOCK */
    size_t open_count, open_capacity;
    uint64_t unit_bytes;
} lives;

static bool cover_slot(lives *self, uint32_t slot)
{
    const size_t wanted = (size_t)slot + 1;
    if (!vram_reserve((void **)&self->open, &self->open_capacity, wanted, sizeof *self->open))
        return false;
    while (self->open_count < wanted)
        self->open[self->open_count++] = NO_BLOCK;
    return true;
}

static bool begin_life(lives *self, instant now, uint64_t size_bytes)
{
    if (self->count == UINT32_MAX - 1 || !vram_reserve((void **)&self->blocks, &self->capacity,
                                                       self->count + 1, sizeof *self->blocks))
        return false;
    const uint64_t rounded_bytes = (size_bytes + self->unit_bytes - 1) & ~(self->unit_bytes - 1);
    self->blocks[self->count++] = (vram_plan_block){
        .from = now.moment, .to = UINT64_MAX, .size_bytes = rounded_bytes, .life = now.time};
    return true;
}

/* Until here `life` was the time of birth. */
static void end_block(vram_plan_block *block, instant now)
{
    block->to = now.moment;
    block->life = now.time - block->life;
}

static void end_life(lives *self, uint32_t slot, instant now)
{
    if (self->open[slot] != NO_BLOCK)
        end_block(&self->blocks[self->open[slot] - 1], now);
    self->open[slot] = NO_BLOCK;
}

static bool note_event(lives *self, const vram_event *event, instant now, bool tries)
{
    switch ((vram_event_kind)event->kind) {
    case VRAM_EVENT_ALLOC:
    case VRAM_EVENT_RESIZE:
        if (!cover_slot(self, event->slot))
            return false;
        end_life(self, event->slot, now);
        if (!begin_life(self, now, event->size_bytes))
            return false;
        self->open[event->slot] = (uint32_t)self->count;
        return true;
    case VRAM_EVENT_FREE:
        if (!cover_slot(self, event->slot))
            return false;
        end_life(self, event->slot, now);
        return true;
    case VRAM_EVENT_TRY:
        if (!tries)
            return true;
        if (!begin_life(self, now, event->size_bytes))
            return false;
        end_block(&self->blocks[self->count - 1], (instant){now.moment + 1, now.time + 1});
        return true;
    case VRAM_EVENT_RETIRE:
    case VRAM_EVENT_USE:
    case VRAM_EVENT_SYNC:
    case VRAM_EVENT_WAIT:
    case VRAM_EVENT_MARK:
    case VRAM_EVENT_KINDS:
        break;
    }
    return true;
}

bool vram_plan_blocks_of(vram_trace *trace, bool tries, vram_plan_block **blocks, size_t *count,
                         vram_error *error)
{
    lives self = {.unit_bytes = vram_trace_info_of(trace)->unit_bytes};
    const bool has_clock = vram_trace_info_of(trace)->has_clock;
    vram_event event;
    instant now = {0, 0};
    uint64_t alloc_ns = UINT64_MAX; /* of the event before, when it was an allocation */
    vram_step step = VRAM_STEP_END;
    bool good = vram_trace_rewind(trace, error);
    while (good && (step = vram_trace_next(trace, &event, error)) == VRAM_STEP_EVENT) {
        const bool allocates = event.kind == VRAM_EVENT_ALLOC;
        now.moment += !(allocates && event.time_ns == alloc_ns);
        now.time = has_clock ? event.time_ns : now.moment;
        alloc_ns = allocates ? event.time_ns : UINT64_MAX;
        if (!note_event(&self, &event, now, tries))
            good = vram_fail(error, "the host is out of memory after %zu blocks", self.count);
    }
    good = good && step == VRAM_STEP_END && vram_trace_rewind(trace, error);
    for (size_t i = 0; i < self.count; i++)
        if (self.blocks[i].to == UINT64_MAX)
            end_block(&self.blocks[i], (instant){now.moment + 1, now.time + 1});
    free(self.open);
    if (!good) {
        free(self.blocks);
        return false;
    }
    *blocks = self.blocks;
    *count = self.count;
    return true;
}
