/* recording.c - a device's history: its streams, its settings, and the bracket of its memory cap.
 */
#include "validate/recording.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------
 * streams: numbered in the order of their handles, which is the order of PyTorch's free sets */

static int by_handle(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint32_t recording_stream_number(const recording *self, uint64_t handle)
{
    const uint64_t *found =
        bsearch(&handle, self->streams, self->stream_count, sizeof handle, by_handle);
    return found == NULL ? 0 : (uint32_t)(found - self->streams);
}

bool recording_owns(const recording *self, const vram_snapshot_segment *segment)
{
    return segment->device == self->device;
}

static bool number_streams(recording *self)
{
    const vram_snapshot *snapshot = self->snapshot;
    const size_t most = snapshot->context_count + snapshot->segment_count + 1;
    self->streams = calloc(most, sizeof *self->streams);
    self->context_streams = calloc(snapshot->context_count + 1, sizeof *self->context_streams);
    if (self->streams == NULL || self->context_streams == NULL)
        return false;
    size_t count = 0;
    for (size_t i = 0; i < snapshot->context_count; i++)
        self->streams[count++] = snapshot->contexts[i].stream;
    for (size_t i = 0; i < snapshot->segment_count; i++)
        self->streams[count++] = snapshot->segments[i].stream;
    qsort(self->streams, count, sizeof *self->streams, by_handle);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || self->streams[i] != self->streams[i - 1])
            self->streams[self->stream_count++] = self->streams[i];
    for (size_t i = 0; i < snapshot->context_count; i++)
        self->context_streams[i] = recording_stream_number(self, snapshot->contexts[i].stream);
    return true;
}

/* ------------------------------------------------------------------------------------------------
 * settings */

/* The number after "key:" in the text of PYTORCH_ALLOC_CONF, in MiB; the default when absent. */
static uint64_t conf_mib(const char *conf, const char *key, uint64_t default_bytes)
{
    const size_t length = strlen(key);
    for (const char *at = conf; (at = strstr(at, key)) != NULL; at += length) {
        const bool begins = at == conf || at[-1] == ',' || at[-1] == ' ';
        if (begins && at[length] == ':')
            return strtoull(at + length + 1, NULL, 10) << 20;
    }
    return default_bytes;
}

/* No file says how large the card is; the range of expandable segments is never the limit. */
#define CARD_BYTES (UINT64_C(1) << 40)

static void read_settings(recording *self)
{
    const vram_snapshot_settings *from = &self->snapshot->settings;
    vram_caching_settings *to = &self->settings;
    *to = vram_caching_defaults(CARD_BYTES);
    to->max_split_bytes = from->max_split_bytes;
    to->gc_threshold = from->garbage_collection_threshold;
    to->expandable = from->expandable_segments;
    to->large_segment_bytes =
        conf_mib(from->conf, "large_segment_size_mb", to->large_segment_bytes);
    to->max_non_split_rounding_bytes =
        conf_mib(from->conf, "max_non_split_rounding_mb", to->max_non_split_rounding_bytes);
    _Static_assert((int)VRAM_SNAPSHOT_ROUNDUP_KEYS == (int)VRAM_CACHING_INTERVALS, "one each");
    for (int i = 0; i < VRAM_CACHING_INTERVALS; i++)
        to->roundup_divisions[i] = (uint32_t)from->roundup_divisions[i];
}

/* ------------------------------------------------------------------------------------------------
 * memory taken from the driver, and its limit */

static int64_t change_of(const vram_snapshot_event *event)
{
    switch ((vram_snapshot_action)event->action) {
    case VRAM_SNAPSHOT_SEGMENT_ALLOC:
    case VRAM_SNAPSHOT_SEGMENT_MAP:
        return (int64_t)event->size_bytes;
    case VRAM_SNAPSHOT_SEGMENT_FREE:
    case VRAM_SNAPSHOT_SEGMENT_UNMAP:
        return -(int64_t)event->size_bytes;
    case VRAM_SNAPSHOT_OTHER:
    case VRAM_SNAPSHOT_ALLOC:
    case VRAM_SNAPSHOT_FREE_REQUESTED:
    case VRAM_SNAPSHOT_FREE_COMPLETED:
    case VRAM_SNAPSHOT_OOM:
    case VRAM_SNAPSHOT_SNAPSHOT:
    case VRAM_SNAPSHOT_ANNOTATE:
    case VRAM_SNAPSHOT_ACTIONS:
        break;
    }
    return 0;
}

/* What PyTorch holds against the cap when it serves a request by mapping pages. */
static uint64_t mapping_ask(const recording *self, size_t event)
{
    while (event < self->count && self->events[event].action != VRAM_SNAPSHOT_ALLOC)
        event++;
    if (event == self->count)
        return 0;
    const uint64_t rounded_bytes =
        vram_caching_round(&self->settings, self->events[event].size_bytes);
    return vram_caching_segment_bytes(&self->settings, rounded_bytes);
}

static void raise(uint64_t *most, uint64_t value)
{
    if (*most < value)
        *most = value;
}

static void follow_reserved(recording *self)
{
    uint64_t reserved_bytes = self->reserved_bytes;
    self->peak_reserved_bytes = reserved_bytes;
    bool mapping = false; /* the cap was tested before the first piece */
    for (size_t i = 0; i < self->count; i++) {
        const vram_snapshot_event *event = &self->events[i];
        if (event->action == VRAM_SNAPSHOT_SEGMENT_MAP) {
            if (!mapping)
                raise(&self->reserved_least_bytes, reserved_bytes + mapping_ask(self, i));
            mapping = true;
        } else if (event->action == VRAM_SNAPSHOT_ALLOC) {
            mapping = false;
        }
        reserved_bytes += (uint64_t)change_of(event);
        if (reserved_bytes > self->peak_reserved_bytes)
            self->peak_event = i;
        raise(&self->peak_reserved_bytes, reserved_bytes);
        if (event->action == VRAM_SNAPSHOT_SEGMENT_ALLOC)
            raise(&self->reserved_least_bytes, reserved_bytes);
        if (event->action != VRAM_SNAPSHOT_OOM)
            continue;
        if (self->first_oom == SIZE_MAX)
            self->first_oom = i;
        const uint64_t refused_bytes =
            reserved_bytes +
            vram_caching_segment_bytes(&self->settings,
                                       vram_caching_round(&self->settings, event->size_bytes));
        if (refused_bytes < self->refused_least_bytes)
            self->refused_least_bytes = refused_bytes;
    }
}

static void measure_reserved(recording *self)
{
    for (size_t i = 0; i < self->snapshot->segment_count; i++)
        if (recording_owns(self, &self->snapshot->segments[i]))
            self->reserved_bytes += self->snapshot->segments[i].total_bytes;
    for (size_t i = 0; i < self->count; i++)
        self->reserved_bytes -= (uint64_t)change_of(&self->events[i]);
    self->refused_least_bytes = UINT64_MAX;
    self->first_oom = SIZE_MAX;
    follow_reserved(self);
}

/* The roundest number from least to most: people set caps such as 3 GiB. */
static uint64_t roundest(uint64_t least, uint64_t most)
{
    for (uint32_t bit = 62; bit > 0; bit--) {
        const uint64_t step = UINT64_C(1) << bit;
        const uint64_t number = (least + step - 1) / step * step;
        if (number <= most && number >= least)
            return number;
    }
    return least;
}

static void choose_cap(recording *self, uint64_t given_bytes)
{
    if (given_bytes != 0)
        self->settings.cap_bytes = given_bytes;
    else if (self->refused_least_bytes > self->reserved_least_bytes &&
             self->refused_least_bytes != UINT64_MAX)
        self->settings.cap_bytes =
            roundest(self->reserved_least_bytes, self->refused_least_bytes - 1);
    else if (self->refused_least_bytes != UINT64_MAX || self->settings.gc_threshold > 0)
        self->settings.cap_bytes = self->reserved_least_bytes;
}

/* ------------------------------------------------------------------------------------------------
 * opening */

bool recording_open(recording *self, const vram_snapshot *snapshot, const validate_options *options,
                    vram_error *error)
{
    *self = (recording){.snapshot = snapshot, .device = options->device};
    if (options->device >= snapshot->device_count)
        return vram_fail(error, "it has no device %u: it has %zu, counted from 0", options->device,
                         snapshot->device_count);
    const vram_snapshot_device *device = &snapshot->devices[options->device];
    self->first_event = (size_t)(options->cut_share * (double)device->event_count);
    self->events = snapshot->events + device->first_event + self->first_event;
    self->count = device->event_count - self->first_event;
    if (self->count == 0)
        return vram_fail(error,
                         "device %u has no history in it: record with "
                         "torch.cuda.memory._record_memory_history()",
                         options->device);
    read_settings(self);
    measure_reserved(self);
    choose_cap(self, options->cap_bytes);
    if (!number_streams(self) || !recording_find_lives(self)) {
        recording_close(self);
        return vram_fail(error, "out of host memory");
    }
    return true;
}

void recording_close(recording *self)
{
    free(self->streams);
    free(self->context_streams);
    free(self->pools);
    free(self->lives);
    free(self->open_gaps);
}
