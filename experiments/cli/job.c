/*
 * job.c - a trace, an arena and the backends to replay it on.
 */
#include "cli/job.h"

#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
    if (memory == NULL) {
        fputs("vramlab: out of host memory\n", stderr);
        abort();
    }
    return memory;
}

static bool add_spec(void *context, const char *spec)
{
    replay_job *self = context;
    vram_error error = {""};
    char *name = vram_spec_name(spec, &error);
    if (name == NULL) {
        fail_with(self->self, "--backend: %s", error.text);
        return false;
    }
    self->specs = must(realloc(self->specs, (self->spec_count + 1) * sizeof *self->specs));
    self->specs[self->spec_count++] = name;
    return true;
}

static bool settle_backends(replay_job *self, const char *text)
{
    if (text != NULL)
        return vram_split_specs(text, add_spec, self);
    for (size_t i = 0; vram_registry_at(i) != NULL; i++) {
        const vram_ops *ops = vram_registry_at(i);
        if (!ops->layer && !ops->special && !add_spec(self, ops->name))
            return false;
    }
    return true;
}

static bool is_arena_kind(const char *text, size_t length, const char **kind)
{
    for (size_t i = 0; vram_arena_kind_at(i) != NULL; i++) {
        const char *name = vram_arena_kind_at(i)->name;
        if (strlen(name) == length && strncmp(name, text, length) == 0) {
            *kind = name;
            return true;
        }
    }
    return false;
}

/* By default a named case is replayed in the memory that there was, a snapshot in what PyTorch had
 * reserved, anything else in 1.25 of its peak live. */
static void default_arena(replay_job *self)
{
    const uint64_t reserved_bytes = vram_trace_info_of(self->trace)->recorded.peak_reserved_bytes;
    const uint64_t there_bytes = vram_trace_info_of(self->trace)->arena_bytes;
    const uint64_t live_bytes = self->summary.peak_live_unit_bytes;
    if (there_bytes > 0) {
        self->arena_bytes = there_bytes;
        self->arena_origin = "the memory that there was";
    } else if (reserved_bytes > 0) {
        self->arena_bytes = reserved_bytes;
        self->arena_origin = "what PyTorch had reserved at its peak";
    } else {
        self->arena_bytes = live_bytes + live_bytes / 4;
        self->arena_origin = "125 % of peak live";
    }
    if (self->arena_bytes == 0)
        self->arena_bytes = 1;
}

static int settle_arena(replay_job *self, const char *text)
{
    self->arena_kind = "virtual";
    if (text == NULL) {
        default_arena(self);
        return -1;
    }
    const char *colon = strchr(text, ':');
    const char *size = text;
    if (colon != NULL) {
        if (!is_arena_kind(text, (size_t)(colon - text), &self->arena_kind))
            return fail_with(self->self,
                             "--arena: no kind of arena is called '%.*s' (see `vramlab list`)",
                             (int)(colon - text), text);
        size = colon + 1;
    } else if (is_arena_kind(text, strlen(text), &self->arena_kind)) {
        default_arena(self);
        return -1;
    }
    vram_error error = {""};
    if (!vram_parse_size(size, self->summary.peak_live_unit_bytes, &self->arena_bytes, &error))
        return fail_with(self->self, "--arena: %s", error.text);
    if (self->arena_bytes == 0 || self->arena_bytes > VRAM_ARENA_MAX)
        return fail_with(self->self, "--arena: %s is out of range: 1 B to 1 PiB", size);
    self->arena_origin = "as asked for";
    return -1;
}

/* A longer trace is read anew for each replay: 48 bytes an event would be more than 192 MiB. */
enum { HELD_EVENTS_MAX = 4 << 20 };

int job_open(replay_job *self, const command *which, const job_fields *fields, const char *path)
{
    *self = (replay_job){.self = which};
    if (!settle_backends(self, fields->backends))
        return EXIT_WRONG;
    const vram_trace_options options = {
        .device = fields->device, .strict = fields->strict, .progress = progress_show};
    vram_error error = {""};
    if (fields->compact != NULL && !vram_parse_compaction(fields->compact, &self->compact, &error))
        return fail_with(which, "--compact: %s", error.text);
    progress_begin(file_name(path));
    const bool read =
        vram_trace_open(path, &options, &self->trace, &error) &&
        vram_trace_summarise(self->trace, &self->summary, &error) &&
        (self->summary.events > HELD_EVENTS_MAX || vram_trace_hold(self->trace, &error)) &&
        vram_profile_of(self->trace, &self->profile, &error);
    progress_end();
    if (!read)
        return fail_with(which, "%s", error.text);
    return settle_arena(self, fields->arena);
}

void job_close(replay_job *self)
{
    vram_trace_close(self->trace);
    for (size_t i = 0; i < self->spec_count; i++)
        free(self->specs[i]);
    free(self->specs);
    *self = (replay_job){0};
}

vram_compaction job_compaction(const replay_job *self, const vram_backend *backend)
{
    return backend->ops->plan_moves != NULL ? self->compact : (vram_compaction){0};
}

bool job_backend(const replay_job *self, size_t index, uint64_t arena_bytes, vram_backend **out,
                 vram_error *error)
{
    const vram_config config = {
        .arena_bytes = arena_bytes,
        .unit_bytes = vram_trace_info_of(self->trace)->unit_bytes,
        .profile = &self->profile,
    };
    return vram_create_from_text(self->specs[index], &config, out, error);
}

static void describe_anomalies(const vram_trace_info *info, FILE *out)
{
    const char *lead = "In the file: ";
    char count[32];
    for (size_t i = 0; i < VRAM_ANOMALIES; i++) {
        if (info->anomalies[i] == 0 || i == VRAM_ANOMALY_NEVER_FREED)
            continue;
        fprintf(out, "%s%s %s", lead, vram_format_count(info->anomalies[i], count),
                vram_anomaly_name((vram_anomaly)i));
        lead = ", ";
    }
    if (lead[0] == ',')
        fputs(".\n", out);
}

/* " 3 times", or nothing for once. */
static const char *times_text(uint64_t times, char text[32])
{
    snprintf(text, 32, times == 1 ? "" : " %llu times", (unsigned long long)times);
    return text;
}

static void describe_recorded(const replay_job *self, FILE *out)
{
    const vram_recorded *recorded = &vram_trace_info_of(self->trace)->recorded;
    char size[VRAM_SIZE_TEXT];
    char other[VRAM_SIZE_TEXT];
    char count[32];
    if (recorded->blocks_before > 0)
        fprintf(out, "Live before the recording began: %s blocks, %s.\n",
                vram_format_count(recorded->blocks_before, count),
                vram_format_size(recorded->bytes_before, size));
    if (recorded->peak_reserved_bytes == 0)
        return;
    fprintf(out, "PyTorch reserved %s at its peak",
            vram_format_size(recorded->peak_reserved_bytes, size));
    if (self->summary.peak_live_unit_bytes > 0)
        fprintf(out, " (%.3f of peak live)",
                (double)recorded->peak_reserved_bytes / (double)self->summary.peak_live_unit_bytes);
    if (recorded->out_of_memory == 0)
        fputs(" and did not run out of memory.\n", out);
    else
        fprintf(out, " and ran out of memory%s, asking for %s.\n",
                times_text(recorded->out_of_memory, count),
                vram_format_size(self->summary.largest_try_bytes, other));
}

void job_describe(const replay_job *self, FILE *out)
{
    const vram_trace_info *info = vram_trace_info_of(self->trace);
    const vram_trace_summary *summary = &self->summary;
    char events[32];
    char live[VRAM_SIZE_TEXT];
    const uint64_t recorded_events =
        info->recorded.device_events > 0 ? info->recorded.device_events : summary->events;
    fprintf(out, "%s: %s, %s events", file_name(info->path), info->format,
            vram_format_count(recorded_events, events));
    if (info->has_clock)
        fprintf(out, " over %.3g s", (double)(summary->last_ns - summary->first_ns) / 1e9);
    fprintf(out, ", %s allocations", vram_format_count(summary->by_kind[VRAM_EVENT_ALLOC], events));
    fprintf(out, ", peak live %s.\n", vram_format_size(summary->peak_live_bytes, live));
    describe_recorded(self, out);
    describe_anomalies(info, out);
}

void job_file_stem(const char *spec, char stem[64])
{
    size_t used = 0;
    for (; *spec != '\0' && used + 1 < 64; spec++) {
        const char at = *spec;
        const bool plain = (at >= 'a' && at <= 'z') || (at >= 'A' && at <= 'Z') ||
                           (at >= '0' && at <= '9') || at == '.' || at == '_';
        if (plain)
            stem[used++] = at;
        else if (used > 0 && stem[used - 1] != '-')
            stem[used++] = '-';
    }
    stem[used] = '\0';
}

unit_scale unit_for(uint64_t largest_bytes)
{
    static const unit_scale scales[] = {
        {"B", 1, 0}, {"KiB", 1024, 1}, {"MiB", 1048576, 1}, {"GiB", 1073741824, 3}};
    size_t chosen = 0;
    for (size_t i = 1; i < sizeof scales / sizeof scales[0]; i++)
        if ((double)largest_bytes >= scales[i].bytes * (i == 3 ? 1 : 2))
            chosen = i;
    return scales[chosen];
}

void table_latency(table *rows, const char *call, const vram_latency *latency)
{
    const struct {
        const char *name;
        uint64_t ns;
    } cells[] = {{"p50", latency->p50_ns},
                 {"p99", latency->p99_ns},
                 {"p999", latency->p999_ns},
                 {"max", latency->max_ns}};
    for (size_t i = 0; latency->calls > 0 && i < sizeof cells / sizeof cells[0]; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_%s_ns", call, cells[i].name);
        table_set(rows, name, "%llu", (unsigned long long)cells[i].ns);
    }
}
