/*
 * profile.c - what a backend may know of a workload before it runs, in one pass.
 */
#include <vramlab/driver.h>

#include <inttypes.h>
#include <stdlib.h>

typedef struct pass {
    vram_profile *profile;
    uint64_t *live; /* by slot: requested bytes, 0 when not live */
    size_t live_count, live_capacity;
    uint64_t live_bytes;
    uint64_t class_blocks[VRAM_PROFILE_CLASSES];
    uint64_t class_bytes[VRAM_PROFILE_CLASSES];
} pass;

static uint32_t class_of(uint64_t size_bytes)
{
    return 63 - (uint32_t)__builtin_clzll(size_bytes);
}

static void raise_to(uint64_t *most, uint64_t value)
{
    if (value > *most)
        *most = value;
}

static void note_request(pass *self, uint64_t size_bytes)
{
    vram_profile *const profile = self->profile;
    const uint32_t class = class_of(size_bytes);
    raise_to(&profile->largest_bytes, size_bytes);
    raise_to(&profile->class_largest_bytes[class], size_bytes);
    if (profile->smallest_bytes == 0 || size_bytes < profile->smallest_bytes)
        profile->smallest_bytes = size_bytes;
    profile->class_requests[class]++;
}

static void begin_life(pass *self, uint32_t slot, uint64_t size_bytes)
{
    vram_profile *const profile = self->profile;
    const uint32_t class = class_of(size_bytes);
    self->live[slot] = size_bytes;
    self->live_bytes += size_bytes;
    self->class_blocks[class]++;
    self->class_bytes[class] += size_bytes;
    raise_to(&profile->peak_live_bytes, self->live_bytes);
    raise_to(&profile->class_peak_blocks[class], self->class_blocks[class]);
    raise_to(&profile->class_peak_bytes[class], self->class_bytes[class]);
}

static void end_life(pass *self, uint32_t slot)
{
    const uint64_t size_bytes = self->live[slot];
    if (size_bytes == 0)
        return;
    const uint32_t class = class_of(size_bytes);
    self->live[slot] = 0;
    self->live_bytes -= size_bytes;
    self->class_blocks[class]--;
    self->class_bytes[class] -= size_bytes;
}

static void note_event(pass *self, const vram_event *event)
{
    if (event->kind == VRAM_EVENT_ALLOC || event->kind == VRAM_EVENT_RESIZE) {
        note_request(self, event->size_bytes);
        end_life(self, event->slot);
        begin_life(self, event->slot, event->size_bytes);
    } else if (event->kind == VRAM_EVENT_FREE) {
        end_life(self, event->slot);
    }
}

static bool cover_slots(pass *self, uint64_t slots, vram_error *error)
{
    if (!vram_reserve((void **)&self->live, &self->live_capacity, (size_t)slots,
                      sizeof *self->live))
        return vram_fail(error, "the host is out of memory for %" PRIu64 " slots", slots);
    while (self->live_count < slots)
        self->live[self->live_count++] = 0;
    return true;
}

bool vram_profile_of(vram_trace *trace, vram_profile *profile, vram_error *error)
{
    pass self = {.profile = profile};
    *profile = (vram_profile){0};
    const vram_trace_info *const info = vram_trace_info_of(trace);
    bool sound = vram_trace_rewind(trace, error);
    while (sound) {
        vram_event event;
        const vram_step got = vram_trace_next(trace, &event, error);
        if (got == VRAM_STEP_END)
            break;
        sound = got == VRAM_STEP_EVENT && cover_slots(&self, info->slots, error);
        if (sound)
            note_event(&self, &event);
    }
    free(self.live);
    return sound && vram_trace_rewind(trace, error);
}
