/*
 * perfetto.c - a timeline as Chrome trace JSON: it parses, and its tracks tell what happened.
 */
#include "made_file.h"

#include "readers/json.h"

#include <vramlab/driver.h>
#include <vramlab/perfetto.h>
#include <vramlab/registry.h>

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What was read of one event. */
typedef struct seen {
    char name[64], phase[8], reason[32];
    double time, value;
} seen;

static void take_member(seen *event, const char *key, const vram_json *json, vram_json_token token)
{
    char *const text = strcmp(key, "name") == 0  ? event->name
                       : strcmp(key, "ph") == 0  ? event->phase
                       : strcmp(key, "why") == 0 ? event->reason
                                                 : NULL;
    if (text != NULL && token == VRAM_JSON_TEXT)
        memcpy(text, json->text, json->text_bytes + 1);
    const double number = token == VRAM_JSON_INT ? (double)json->number : json->real;
    if (strcmp(key, "ts") == 0)
        event->time = number;
    if (strcmp(key, "value") == 0)
        event->value = number;
}

/* All events of the file, in order; *count of them. */
static seen *read_events(const char *path, size_t *count)
{
    size_t bytes, capacity = 0;
    char *const text = bytes_of(path, &bytes);
    vram_input input = vram_input_over(text, bytes, path);
    vram_json json;
    vram_json_start(&json, &input);
    seen *events = NULL;
    char key[64] = "";
    *count = 0;
    vram_json_token token;
    vram_error error;
    while ((token = vram_json_next(&json, &error)) != VRAM_JSON_END) {
        cr_assert_neq(token, VRAM_JSON_ERROR, "%s", error.text);
        if (token == VRAM_JSON_OBJECT && json.depth == 3) { /* document, list, event */
            cr_assert(vram_reserve((void **)&events, &capacity, *count + 1, sizeof *events));
            events[(*count)++] = (seen){.time = -1};
        } else if (token == VRAM_JSON_KEY) {
            cr_assert_lt(json.text_bytes, sizeof key);
            memcpy(key, json.text, json.text_bytes + 1);
        } else if (json.depth >= 3 && *count > 0) {
            take_member(&events[*count - 1], key, &json, token);
        }
    }
    vram_json_free(&json);
    free(text);
    return events;
}

/* The last value of a track. */
static double last_value(const seen *events, size_t count, const char *name)
{
    double value = -1;
    for (size_t i = 0; i < count; i++)
        if (strcmp(events[i].name, name) == 0)
            value = events[i].value;
    return value;
}

static double greatest_value(const seen *events, size_t count, const char *name)
{
    double value = -1;
    for (size_t i = 0; i < count; i++)
        if (strcmp(events[i].name, name) == 0 && events[i].value > value)
            value = events[i].value;
    return value;
}

static vram_replay_result export_replay(const char *trace_text, const char *stack,
                                        uint64_t arena_bytes, const char *path)
{
    const made_file file = make_file(trace_text, strlen(trace_text));
    vram_trace *trace;
    vram_backend *backend;
    vram_timeline timeline = {0};
    vram_replay_result result;
    vram_error error = {{0}};
    cr_assert(vram_trace_open(file.path, NULL, &trace, &error), "%s", error.text);
    cr_assert(
        vram_create_from_text(stack, &(vram_config){.arena_bytes = arena_bytes}, &backend, &error),
        "%s", error.text);
    cr_assert(vram_replay(trace, backend,
                          &(vram_replay_options){.record = &timeline, .look_at_event = UINT64_MAX},
                          &result, &error),
              "%s", error.text);
    cr_assert(vram_perfetto_write(&timeline, path, &error), "%s", error.text);
    vram_timeline_free(&timeline);
    vram_destroy(backend);
    vram_trace_close(trace);
    drop_file(file);
    return result;
}

Test(perfetto, tracks_marks_and_refusals_are_those_of_the_replay)
{
    static const char text[] = "vramlab trace 1\nunit 512\na 1 1000 @1000\na 2 3000 @2500\n"
                               "m \"a \\\"phase\\\"\" @3000\nf 1 @4000\na 3 4000 @5000\n";
    const made_file out = make_file("", 0);
    const vram_replay_result result = export_replay(text, "list:policy=best", 6144, out.path);
    cr_expect_not(result.completed);
    size_t count;
    seen *const events = read_events(out.path, &count);
    cr_expect_str_eq(events[0].name + strlen(events[0].name) - 4, "best", "%s", events[0].name);
    cr_expect_eq(greatest_value(events, count, "live (bytes)"), 4000);
    cr_expect_eq(last_value(events, count, "live (bytes)"), 3000);
    cr_expect_eq(last_value(events, count, "granted (bytes)"), 3072);
    cr_expect_eq(last_value(events, count, "free, any request (bytes)"), 3072);
    cr_expect_eq(last_value(events, count, "largest free (bytes)"), 2048);
    cr_expect_float_eq(last_value(events, count, "external fragmentation (%)"), 33.333, 0.001);
    const seen *const mark = &events[count - 2], *const refusal = &events[count - 1];
    cr_expect_str_eq(mark->name, "a \"phase\"");
    cr_expect_float_eq(mark->time, 2, 1e-9);
    cr_expect_str_eq(refusal->name, "refused");
    cr_expect_str_eq(refusal->reason, "too few bytes");
    cr_expect_float_eq(refusal->time, 4, 1e-9);
    for (size_t i = 1; i + 3 < count; i++)
        cr_expect_leq(events[i].time, events[i + 1].time);
    free(events);
    drop_file(out);
}

/* More operations than points: the file stays bounded and the peak is in it. */
Test(perfetto, a_long_timeline_keeps_its_peak)
{
    enum { PAIRS = 300000, PEAK = 123457 };
    char *text;
    size_t bytes;
    FILE *const made = open_memstream(&text, &bytes);
    fprintf(made, "vramlab trace 1\n");
    for (int i = 0; i < PAIRS; i++)
        fprintf(made, "a %d %d\nf %d\n", i, i == PEAK ? 5000 : 100, i);
    fclose(made);
    const made_file out = make_file("", 0);
    export_replay(text, "list:policy=best", 1 << 20, out.path);
    size_t count;
    seen *const events = read_events(out.path, &count);
    cr_expect_eq(greatest_value(events, count, "live (bytes)"), 5000);
    cr_expect_eq(last_value(events, count, "live (bytes)"), 0);
    free(events);
    free(text);
    drop_file(out);
}
