/*
 * snapshot.c - a finished vram_build as the vram_snapshot that others see.
 *
 * The records stay where the build packed them; only contexts and annotations are written anew,
 * with texts instead of indices, and the stack, the nodes and the memo are given back.
 */
#include "pickle.h"
#include "pytorch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct owned {
    vram_snapshot seen; /* first: the two pointers are one */
    vram_build build;   /* owns the records, texts, frames and stacks */
    vram_snapshot_context *contexts;
    vram_snapshot_device *devices;
    vram_snapshot_annotation *annotations;
    char **stack_texts; /* by stack; NULL until asked for */
} owned;

static const char *text_of(const owned *self, uint32_t index)
{
    return vram_names_text(&self->build.names, index);
}

/* ---- taking the root apart ---- */

/* The one run of records that a list must be, or none when it is empty. */
static bool run_of(owned *self, const build_value *list, build_type type, const char *what,
                   size_t *first, size_t *count)
{
    size_t items_count;
    const build_value *items = build_items(&self->build, list, &items_count);
    if (list->type != BUILD_LIST || items_count > 1 || (items_count == 1 && items->type != type))
        return build_fail(&self->build, "%s", what);
    *first = items_count == 1 ? (size_t)items->number : 0;
    *count = items_count == 1 ? items->count : 0;
    return true;
}

static bool take_segments(owned *self, const build_value *list)
{
    size_t first = 0;
    if (!run_of(self, list, BUILD_SEGMENT, "\"segments\" is not a list of segments", &first,
                &self->seen.segment_count))
        return false;
    if (self->seen.segment_count > 0)
        self->seen.segments = self->build.segments + first;
    return true;
}

/* As many devices as there are histories, and as the segments name. */
static bool make_devices(owned *self, size_t histories)
{
    size_t count = histories;
    for (size_t i = 0; i < self->seen.segment_count; i++)
        if (self->seen.segments[i].device >= count)
            count = self->seen.segments[i].device + 1u;
    if (count > VRAM_SNAPSHOT_DEVICE_MAX + 1)
        return build_fail(&self->build, "histories of %zu devices", count);
    self->devices = calloc(count + 1, sizeof *self->devices);
    if (self->devices == NULL)
        return build_fail(&self->build, "out of memory");
    self->seen.devices = self->devices;
    self->seen.device_count = count;
    return true;
}

static bool take_histories(owned *self, const build_value *list)
{
    size_t count;
    const build_value *items = build_items(&self->build, list, &count);
    if (list->type != BUILD_LIST && list->type != BUILD_NONE)
        return build_fail(&self->build, "\"device_traces\" is not a list");
    if (!make_devices(self, count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!run_of(self, &items[i], BUILD_EVENT,
                    "a history in \"device_traces\" is not a list of events",
                    &self->devices[i].first_event, &self->devices[i].event_count))
            return false;
    return true;
}

static uint64_t number_at(const owned *self, const build_value *dict, const char *key,
                          uint64_t fallback)
{
    const build_value value = build_look_up(&self->build, dict, key);
    return value.type == BUILD_INT || value.type == BUILD_BOOL ? value.number : fallback;
}

static const char *text_at(const owned *self, const build_value *dict, const char *key)
{
    const build_value value = build_look_up(&self->build, dict, key);
    return value.type == BUILD_TEXT ? text_of(self, (uint32_t)value.number) : "";
}

static void take_settings(owned *self, const build_value *dict)
{
    vram_snapshot_settings *settings = &self->seen.settings;
    settings->present = dict->type == BUILD_DICT;
    settings->conf = text_at(self, dict, "PYTORCH_CUDA_ALLOC_CONF");
    settings->max_split_bytes = number_at(self, dict, "max_split_size", UINT64_MAX);
    const build_value threshold = build_look_up(&self->build, dict, "garbage_collection_threshold");
    settings->garbage_collection_threshold = threshold.type == BUILD_FLOAT ? threshold.real : 0;
    settings->expandable_segments = number_at(self, dict, "expandable_segments", 0) != 0;
    const build_value roundup = build_look_up(&self->build, dict, "roundup_power2_divisions");
    for (unsigned i = 0; i < VRAM_SNAPSHOT_ROUNDUP_KEYS; i++) {
        char key[16];
        snprintf(key, sizeof key, "%u", 1u << i);
        settings->roundup_divisions[i] = number_at(self, &roundup, key, 0);
    }
}

static bool take_annotations(owned *self, const build_value *list)
{
    size_t count;
    const build_value *items = build_items(&self->build, list, &count);
    if (list->type != BUILD_LIST || count == 0)
        return true;
    self->annotations = calloc(count, sizeof *self->annotations);
    if (self->annotations == NULL)
        return build_fail(&self->build, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const build_value item = build_resolve(&self->build, items[i]);
        self->annotations[i] = (vram_snapshot_annotation){
            .time_us = number_at(self, &item, "time_us", 0),
            .name = text_at(self, &item, "name"),
            .stage = text_at(self, &item, "stage"),
            .device = (uint32_t)number_at(self, &item, "device", 0),
        };
    }
    self->seen.annotations = self->annotations;
    self->seen.annotation_count = count;
    return true;
}

static bool take_root(owned *self)
{
    vram_build *build = &self->build;
    const build_value root = build_resolve(build, build->stack[0]);
    const build_value none = {.type = BUILD_NONE};
    if (root.type == BUILD_LIST) /* memory_snapshot() of before 2022 */
        return take_segments(self, &root) && take_histories(self, &none);
    const build_value segments = build_look_up(build, &root, "segments");
    const build_value histories = build_look_up(build, &root, "device_traces");
    const build_value settings = build_look_up(build, &root, "allocator_settings");
    const build_value annotations = build_look_up(build, &root, "external_annotations");
    if (segments.type != BUILD_LIST)
        return build_fail(build, "this is not a memory snapshot: it has no list \"segments\"");
    take_settings(self, &settings);
    return take_segments(self, &segments) && take_histories(self, &histories) &&
           take_annotations(self, &annotations);
}

/* ---- writing anew ---- */

static bool make_contexts(owned *self)
{
    vram_build *build = &self->build;
    const uint32_t count = vram_names_count(&build->contexts);
    self->contexts = calloc(count, sizeof *self->contexts);
    if (self->contexts == NULL)
        return build_fail(build, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        build_context from = {0};
        if (i > 0)
            memcpy(&from, vram_names_text(&build->contexts, i), sizeof from);
        self->contexts[i] = (vram_snapshot_context){.stream = from.stream,
                                                    .pool = {from.pool[0], from.pool[1]},
                                                    .metadata = text_of(self, from.metadata),
                                                    .compile = text_of(self, from.compile),
                                                    .has_pool = from.has_pool != 0};
    }
    self->seen.contexts = self->contexts;
    self->seen.context_count = count;
    return true;
}

/* Snapshots of before 2023 tell no addresses of blocks: they are the running sum of the sizes. */
static void count_addresses(owned *self)
{
    for (size_t i = 0; i < self->seen.segment_count; i++) {
        const vram_snapshot_segment *segment = &self->seen.segments[i];
        uint64_t address = segment->address;
        for (size_t j = 0; j < segment->block_count; j++) {
            vram_snapshot_block *block = &self->build.blocks[segment->first_block + j];
            if (block->address == VRAM_SNAPSHOT_NO_ADDRESS)
                block->address = address;
            address += block->size_bytes;
        }
    }
}

static bool finish(owned *self)
{
    vram_build *build = &self->build;
    if (!take_root(self) || !make_contexts(self))
        return false;
    count_addresses(self);
    self->seen.events = build->events;
    self->seen.event_count = build->event_count;
    self->seen.blocks = build->blocks;
    self->seen.block_count = build->block_count;
    self->seen.stack_count = vram_names_count(&build->stacks);
    build_give_back(build);
    return true;
}

static bool read_file(owned *self, vram_input *input, vram_error *error)
{
    if (!build_start(&self->build, input, error))
        return false;
    if (!vram_input_need(input, 1, error))
        return false;
    const bool pickle = input->at < input->end && (unsigned char)*input->at == 0x80;
    if (!pickle && input->at < input->end && strchr(" \t\r\n{[", *input->at) == NULL)
        return vram_fail(error,
                         "%s: this is not a memory snapshot of PyTorch, which is a pickle or JSON: "
                         "write one with torch.cuda.memory._dump_snapshot()",
                         input->path);
    self->seen.format = pickle ? "pytorch-snapshot" : "pytorch-snapshot-json";
    return (pickle ? vram_pickle_read(&self->build) : vram_snapshot_json_read(&self->build)) &&
           finish(self);
}

bool vram_pytorch_load(vram_input *input, vram_snapshot **out, vram_error *error)
{
    owned *self = calloc(1, sizeof *self);
    if (self == NULL)
        return vram_fail(error, "%s: out of memory", input->path);
    if (!read_file(self, input, error)) {
        vram_snapshot_close(&self->seen);
        return false;
    }
    self->build.input = NULL;
    self->build.error = NULL;
    *out = &self->seen;
    return true;
}

bool vram_snapshot_open(const char *path, const vram_trace_options *options, vram_snapshot **out,
                        vram_error *error)
{
    static const vram_trace_options defaults;
    vram_input *input;
    if (!vram_input_open(path, options != NULL ? options : &defaults, &input, error))
        return false;
    const bool loaded = vram_pytorch_load(input, out, error);
    vram_input_close(input);
    return loaded;
}

void vram_snapshot_close(vram_snapshot *snapshot)
{
    owned *self = (owned *)snapshot;
    if (self == NULL)
        return;
    for (size_t i = 0; self->stack_texts != NULL && i < self->seen.stack_count; i++)
        free(self->stack_texts[i]);
    free(self->stack_texts);
    free(self->contexts);
    free(self->devices);
    free(self->annotations);
    build_free(&self->build);
    free(self);
}

/* ---- texts ---- */

/* Writes the frames, one a line; returns the length. Counts only when text is NULL. */
static size_t write_frames(const owned *self, uint32_t stack, char *text, size_t room)
{
    const char *frames = vram_names_text(&self->build.stacks, stack);
    const uint32_t count =
        vram_names_bytes(&self->build.stacks, stack) / (uint32_t)sizeof(uint32_t);
    size_t length = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index;
        build_frame frame;
        memcpy(&index, frames + i * sizeof index, sizeof index);
        memcpy(&frame, vram_names_text(&self->build.frames, index), sizeof frame);
        const int written =
            snprintf(text != NULL ? text + length : NULL, text != NULL ? room - length : 0,
                     "%s%s:%llu %s", i > 0 ? "\n" : "", text_of(self, frame.file),
                     (unsigned long long)frame.line, text_of(self, frame.function));
        length += written > 0 ? (size_t)written : 0;
    }
    return length;
}

const char *vram_snapshot_stack(const vram_snapshot *snapshot, uint32_t frames)
{
    owned *self = (owned *)snapshot; /* the cache is not part of what is constant */
    if (frames == 0 || frames >= snapshot->stack_count)
        return "";
    if (self->stack_texts == NULL &&
        (self->stack_texts = calloc(snapshot->stack_count, sizeof *self->stack_texts)) == NULL)
        return "";
    char **text = &self->stack_texts[frames];
    if (*text == NULL) {
        const size_t length = write_frames(self, frames, NULL, 0);
        *text = malloc(length + 1);
        if (*text == NULL)
            return "";
        (*text)[0] = '\0';
        write_frames(self, frames, *text, length + 1);
    }
    return *text;
}

const char *vram_snapshot_action_name(vram_snapshot_action action)
{
    static const char *const names[VRAM_SNAPSHOT_ACTIONS] = {
        [VRAM_SNAPSHOT_OTHER] = "other",
        [VRAM_SNAPSHOT_ALLOC] = "alloc",
        [VRAM_SNAPSHOT_FREE_REQUESTED] = "free_requested",
        [VRAM_SNAPSHOT_FREE_COMPLETED] = "free_completed",
        [VRAM_SNAPSHOT_SEGMENT_ALLOC] = "segment_alloc",
        [VRAM_SNAPSHOT_SEGMENT_FREE] = "segment_free",
        [VRAM_SNAPSHOT_SEGMENT_MAP] = "segment_map",
        [VRAM_SNAPSHOT_SEGMENT_UNMAP] = "segment_unmap",
        [VRAM_SNAPSHOT_OOM] = "oom",
        [VRAM_SNAPSHOT_SNAPSHOT] = "snapshot",
        [VRAM_SNAPSHOT_ANNOTATE] = "annotate",
    };
    return (unsigned)action < VRAM_SNAPSHOT_ACTIONS ? names[action] : "other";
}
