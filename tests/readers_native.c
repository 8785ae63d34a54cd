/*
 * readers_native.c - the native text, gzip, and what a trace promises whatever its format.
 */
#include "made_file.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "vramlab trace 1\n"

/* A file that uses everything. */
static const char sample[] = HEAD "# a comment, and a blank line\n\n"
                                  "unit 256   # its granularity\n"
                                  "recorded peak_reserved_bytes 4096\n"
                                  "stack 7 \"main.py:3 step\\nmain.py:9 <module>\"\n"
                                  "a 1 4096 @1500 s0x7f10 ^512 k7 \"weights\"\n"
                                  "a 0x2 100 @1500\t# in hexadecimal\n"
                                  "m \"phase \\\"two\\\"\" @1600\n"
                                  "u 2 s1\n"
                                  "w 0x7f10 s1\n"
                                  "y s1 @1700\n"
                                  "y\n"
                                  "r 2 300\n"
                                  "p 1\n"
                                  "t 900 s1\n"
                                  "f 1 @2000\n"
                                  "f 2";

static const char sample_events[] =
    "alloc 1 4096 stream 0x7f10 align 9 tag 'weights' stack 'main.py:3 step\nmain.py:9 <module>'\n"
    "alloc 2 100 slot 1\n"
    "mark 0 0 at 100 tag 'phase \"two\"'\n"
    "use 2 100 slot 1 at 100 stream 0x1\n"
    "wait 0 0 at 100 stream 0x1\n"
    "sync 0 0 at 200 stream 0x1\n"
    "sync 0 0 at 200 all streams\n"
    "resize 2 300 slot 1 at 200\n"
    "retire 1 4096 at 200\n"
    "try 0 900 at 200 stream 0x1\n"
    "free 1 4096 at 500\n"
    "free 2 300 slot 1 at 500\n";

static void check_events(made_file file, const char *expected)
{
    vram_error error = {{0}};
    char *const events = events_of(file.path, NULL, &error);
    cr_assert_not_null(events, "%s", error.text);
    cr_expect_str_eq(events, expected);
    free(events);
}

Test(readers_native, every_kind_and_attribute_is_read)
{
    const made_file plain = make_file(sample, sizeof sample - 1);
    check_events(plain, sample_events);
    vram_trace *trace;
    cr_assert(vram_trace_open(plain.path, NULL, &trace, NULL));
    const vram_trace_info *info = vram_trace_info_of(trace);
    cr_expect_str_eq(info->format, "native");
    cr_expect_eq(info->unit_bytes, 256);
    cr_expect_eq(info->recorded.peak_reserved_bytes, 4096);
    cr_expect(info->has_clock);
    vram_trace_close(trace);
    drop_file(plain);
}

Test(readers_native, gzip_and_carriage_returns_change_nothing)
{
    const made_file packed = make_gzip(sample, sizeof sample - 1);
    check_events(packed, sample_events);
    size_t packed_bytes;
    char *const once = bytes_of(packed.path, &packed_bytes);
    drop_file(packed);

    char with_returns[2 * sizeof sample];
    size_t count = 0;
    for (const char *at = sample; *at != '\0'; at++) {
        if (*at == '\n')
            with_returns[count++] = '\r';
        with_returns[count++] = *at;
    }
    const made_file returns = make_file(with_returns, count);
    check_events(returns, sample_events);
    drop_file(returns);

    /* two gzip members and padding behind them are one file */
    static const char more[] = "\na 3 5\n";
    const made_file second = make_gzip(more, sizeof more - 1);
    size_t second_bytes;
    char *const tail = bytes_of(second.path, &second_bytes);
    drop_file(second);
    char *const both = calloc(1, packed_bytes + second_bytes + 64);
    memcpy(both, once, packed_bytes);
    memcpy(both + packed_bytes, tail, second_bytes);
    const made_file joined = make_file(both, packed_bytes + second_bytes + 64);
    char expected[sizeof sample_events + 64];
    snprintf(expected, sizeof expected, "%salloc 3 5 slot 1 at 500\n", sample_events);
    check_events(joined, expected);
    drop_file(joined);
    free(both);
    free(tail);
    free(once);
}

/* What is wrong with a line, and what the message must say. */
static const struct {
    const char *text, *says;
} bad_files[] = {
    {"", "is empty"},
    {"hello\n", "none of the formats"},
    {"vramlab trace 2\n", "version 1"},
    {"vramlab trace \n", "version 1"},
    {HEAD "unit 3\n", "line 2: found \"3\", expected a power of two"},
    {HEAD "unit 8388608\n", "expected a power of two up to 2 MiB"},
    {HEAD "unit\n", "line 2: found the end of the line"},
    {HEAD "recorded colour 3\n", "found \"colour 3\", expected a figure"},
    {HEAD "recorded out_of_memory many\n", "a number"},
    {HEAD "stack 1 main\n", "double quotes"},
    {HEAD "stack one \"main\"\n", "the stack's number"},
    {HEAD "a 1\n", "line 2: found the end of the line, expected a blank and the size"},
    {HEAD "a one 5\n", "the block's id"},
    {HEAD "a 1 -5\n", "found \"-5\""},
    {HEAD "a 1 5x\n", "found \"x\", expected a blank"},
    {HEAD "a 1 18446744073709551616\n", "the size in bytes"},
    {HEAD "a 0x11111111111111111 1\n", "the block's id"},
    {HEAD "a 1 9223372036854775808\n", "no machine has 2^62 bytes"},
    {HEAD "a 1 4611686018427387903\na 2 5\n", "line 3: 5 bytes on top of 4611686018427387903"},
    {HEAD "a 1 5 ^3\n", "a power of two"},
    {HEAD "a 1 5 ^0\n", "a power of two"},
    {HEAD "a 1 5 ^4611686018427387904\n", "the largest is 2^40"},
    {HEAD "a 1 5 @\n", "a time in ns"},
    {HEAD "a 1 5 sx\n", "a stream's handle"},
    {HEAD "a 1 5 k1\n", "a stack declared above"},
    {HEAD "a 1 5 n3\n", "the new id of a resized block"},
    {HEAD "a 1 5 %3\n", "found \"%3\", expected @time"},
    {HEAD "a 1 5 \"x\n", "a closing double quote"},
    {HEAD "a 1 5 \"x\\\n", "a closing double quote"},
    {HEAD "a 1 5 \"\\q\"\n", "behind a backslash"},
    {HEAD "m\n", "a name in double quotes"},
    {HEAD "u 1\n", "the stream"},
    {HEAD "w 1\n", "the stream"},
    {HEAD "w\n", "the stream waited for"},
    {HEAD "z 1\n", "found \"z 1\", expected an event"},
    {HEAD "a 1 5\nunit 512\n", "line 3: found \"unit 512\", expected an event"},
    {HEAD "a 1 5 \x1b[31m\n", "found \"?[31m\""},
};

Test(readers_native, a_bad_line_is_named_with_what_was_expected)
{
    for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
        const made_file file = make_file(bad_files[i].text, strlen(bad_files[i].text));
        vram_error error = {{0}};
        cr_expect_not(reads(file.path, NULL, &error), "%s", bad_files[i].text);
        cr_expect_not_null(strstr(error.text, bad_files[i].says), "'%s' does not say '%s'",
                           error.text, bad_files[i].says);
        drop_file(file);
    }
}

Test(readers_native, a_line_of_more_than_a_mebibyte_is_refused)
{
    const size_t count = 3 << 20;
    char *const text = malloc(count);
    memset(text, '#', count);
    memcpy(text, HEAD, sizeof HEAD - 1);
    const made_file file = make_file(text, count);
    vram_error error = {{0}};
    cr_expect_not(reads(file.path, NULL, &error));
    cr_expect_not_null(strstr(error.text, "line 2: longer than 1 MiB"), "%s", error.text);
    drop_file(file);
    text[1 << 20] = '\n'; /* just short enough, and again to the end */
    text[2 << 20] = '\n';
    const made_file lines = make_file(text, (2 << 20) + 1);
    cr_expect(reads(lines.path, NULL, &error), "%s", error.text);
    drop_file(lines);
    free(text);
}

Test(readers_native, what_is_not_a_file_is_refused)
{
    static const struct {
        const char *path, *says;
    } cases[] = {{"/nowhere/at/all", "cannot open"},
                 {"/", "is a folder"},
                 {"/dev/null", "not a regular file"},
                 {"generate:nothing", "no workload is called \"nothing\""},
                 {"case:nothing,x=1", "no case is called \"nothing\""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        vram_error error = {{0}};
        cr_expect_not(reads(cases[i].path, NULL, &error));
        cr_expect_not_null(strstr(error.text, cases[i].says), "%s", error.text);
    }
}

/* What is odd in a file, the events that remain, and what is counted. */
static const struct {
    const char *body, *events, *anomalies;
    bool strict_reads;
} odd_files[] = {
    {"a 1 5\nf 1\n", "alloc 1 5\nfree 1 5\n", "", true},
    {"f 1\n", "", "free of an unknown block 1", false},
    {"a 1 5\nf 1\nf 1\n", "alloc 1 5\nfree 1 5\n", "double free 1", false},
    {"a 1 0\nf 1\n", "", "zero size 1", false},
    {"a 1 0\na 1 5\nf 1\nf 1\n", "alloc 1 5\nfree 1 5\n", "zero size 1", false},
    {"a 1 5\na 1 6\n", "alloc 1 5\nfree 1 5\nalloc 1 6\n",
     "allocation of a live block 1, never freed 1", false},
    {"a 1 5\n", "alloc 1 5\n", "never freed 1", true},
    {"r 1 5\n", "alloc 1 5\n", "never freed 1, resize of an unknown block 1", false},
    {"a 1 5\nr 1 0\nf 1\n", "alloc 1 5\nfree 1 5\n", "zero size 1", false},
    {"a 1 5\nr 1 7 n2\na 1 6\nf 2\nf 1\n",
     "alloc 1 5\nresize 2 7\nalloc 1 6 slot 1\nfree 2 7\nfree 1 6 slot 1\n", "", true},
    {"a 1 5\na 2 6\nr 1 7 n2\nf 2\n",
     "alloc 1 5\nalloc 2 6 slot 1\nfree 2 6 slot 1\nresize 2 7\nfree 2 7\n",
     "allocation of a live block 1", false},
    {"a 1 0\nr 1 7\nf 1\n", "alloc 1 7\nfree 1 7\n", "zero size 1", false},
    {"a 1 5\np 1\np 1\nf 1\n", "alloc 1 5\nretire 1 5\nfree 1 5\n", "double free 1", false},
    {"p 1\n", "", "free of an unknown block 1", false},
    {"u 1 s2\n", "", "free of an unknown block 1", false},
    {"t 0\n", "", "zero size 1", false},
    {"a 1 5 @9\na 2 5 @7\nf 1 @8\nf 2 @10\n",
     "alloc 1 5\nalloc 2 5 slot 1\nfree 1 5\nfree 2 5 slot 1 at 1\n", "time runs backwards 2",
     false},
    {"a 1 5\na 2 5\nf 1\na 3 5\nf 2\nf 3\n",
     "alloc 1 5\nalloc 2 5 slot 1\nfree 1 5\nalloc 3 5\nfree 2 5 slot 1\nfree 3 5\n", "", true},
};

Test(readers_native, anomalies_are_counted_and_mended_by_rule_or_refused_when_strict)
{
    for (size_t i = 0; i < sizeof odd_files / sizeof odd_files[0]; i++) {
        char text[256], counted[512];
        const int count = snprintf(text, sizeof text, HEAD "%s", odd_files[i].body);
        const made_file file = make_file(text, (size_t)count);
        check_events(file, odd_files[i].events);
        cr_expect_str_eq(anomalies_of(file.path, counted), odd_files[i].anomalies);
        vram_error error = {{0}};
        const vram_trace_options strict = {.strict = true};
        cr_expect_eq(reads(file.path, &strict, &error), odd_files[i].strict_reads, "%s",
                     odd_files[i].body);
        if (!odd_files[i].strict_reads)
            cr_expect_not_null(strstr(error.text, "because of --strict"), "%s", error.text);
        drop_file(file);
    }
}

Test(readers_native, every_prefix_reads_or_says_why)
{
    for (size_t count = 0; count < sizeof sample - 1; count++) {
        const made_file file = make_file(sample, count);
        vram_error error = {{0}};
        if (!reads(file.path, NULL, &error))
            cr_expect_not_null(strstr(error.text, file.path), "%zu: %s", count, error.text);
        drop_file(file);
    }
}

Test(readers_native, every_prefix_of_a_gzip_file_is_refused)
{
    const made_file whole = make_gzip(sample, sizeof sample - 1);
    size_t bytes;
    char *const packed = bytes_of(whole.path, &bytes);
    drop_file(whole);
    for (size_t count = 0; count < bytes; count++) {
        const made_file file = make_file(packed, count);
        vram_error error = {{0}};
        cr_expect_not(reads(file.path, NULL, &error), "%zu of %zu bytes", count, bytes);
        drop_file(file);
    }
    for (size_t at = 0; at < bytes; at++) { /* a damaged byte is noticed or changes nothing */
        packed[at] ^= 0x20;
        const made_file file = make_file(packed, bytes);
        vram_error error = {{0}};
        char *const events = events_of(file.path, NULL, &error);
        cr_expect(events == NULL || strcmp(events, sample_events) == 0, "byte %zu", at);
        free(events);
        drop_file(file);
        packed[at] ^= 0x20;
    }
    free(packed);
}

Test(readers_native, a_gzip_bomb_stops_at_the_limit)
{
    const size_t count = 8 << 20;
    char *const text = malloc(count);
    memset(text, '\n', count);
    memcpy(text, HEAD, sizeof HEAD - 1);
    const made_file bomb = make_gzip(text, count);
    vram_error error = {{0}};
    const vram_trace_options low = {.inflate_limit = 1 << 20};
    cr_expect_not(reads(bomb.path, &low, &error));
    cr_expect_not_null(strstr(error.text, "unfolds to more than 1.00 MiB"), "%s", error.text);
    cr_expect_not_null(strstr(error.text, "raise the limit"), "%s", error.text);
    const vram_trace_options high = {.inflate_limit = 9 << 20};
    cr_expect(reads(bomb.path, &high, &error), "%s", error.text);
    drop_file(bomb);
    free(text);
}

/* ---- what a trace promises ---- */

static bool same_event(const vram_event *a, const vram_event *b)
{
    return a->id == b->id && a->size_bytes == b->size_bytes && a->time_ns == b->time_ns &&
           a->slot == b->slot && a->stream == b->stream && a->tag == b->tag &&
           a->stack == b->stack && a->kind == b->kind && a->align_log2 == b->align_log2;
}

Test(readers_native, holding_and_rewinding_give_the_same_events)
{
    const made_file file = make_gzip(sample, sizeof sample - 1);
    vram_trace *streamed, *held;
    cr_assert(vram_trace_open(file.path, NULL, &streamed, NULL));
    cr_assert(vram_trace_open(file.path, NULL, &held, NULL));
    vram_event event, other;
    for (int i = 0; i < 3; i++) /* a hold in the middle still holds the whole */
        cr_assert_eq(vram_trace_next(held, &event, NULL), VRAM_STEP_EVENT);
    size_t count = 0;
    cr_expect_null(vram_trace_events(held, &count));
    cr_assert(vram_trace_hold(held, NULL));
    cr_assert_not_null(vram_trace_events(held, &count));
    cr_expect_eq(count, 12);
    for (int pass = 0; pass < 3; pass++) {
        for (size_t i = 0; i < count; i++) {
            cr_assert_eq(vram_trace_next(streamed, &event, NULL), VRAM_STEP_EVENT);
            cr_assert_eq(vram_trace_next(held, &other, NULL), VRAM_STEP_EVENT);
            cr_assert(same_event(&event, &other));
        }
        for (int i = 0; i < 2; i++) {
            cr_expect_eq(vram_trace_next(streamed, &event, NULL), VRAM_STEP_END);
            cr_expect_eq(vram_trace_next(held, &other, NULL), VRAM_STEP_END);
        }
        cr_assert(vram_trace_rewind(streamed, NULL));
        cr_assert(vram_trace_rewind(held, NULL));
    }
    vram_trace_close(streamed);
    vram_trace_close(held);
    drop_file(file);
}

Test(readers_native, an_error_stays_until_a_rewind)
{
    static const char text[] = HEAD "a 1 5\nz\n";
    const made_file file = make_file(text, sizeof text - 1);
    vram_trace *trace;
    cr_assert(vram_trace_open(file.path, NULL, &trace, NULL));
    vram_event event;
    for (int pass = 0; pass < 2; pass++) {
        cr_expect_eq(vram_trace_next(trace, &event, NULL), VRAM_STEP_EVENT);
        for (int i = 0; i < 2; i++) {
            vram_error error = {{0}};
            cr_expect_eq(vram_trace_next(trace, &event, &error), VRAM_STEP_ERROR);
            cr_expect_not_null(strstr(error.text, "line 3"), "%s", error.text);
        }
        cr_expect(vram_trace_rewind(trace, NULL));
    }
    vram_trace_close(trace);
    drop_file(file);
}

Test(readers_native, the_summary_counts_what_a_hand_counts)
{
    static const char text[] = HEAD "unit 512\na 1 1 @5\na 2 1024 @6\nt 4000 @7\nr 1 600 @8\n"
                                    "f 2 @9\na 3 10 @10\nf 1 @11\n";
    const made_file file = make_file(text, sizeof text - 1);
    vram_trace *trace;
    vram_trace_summary sum;
    cr_assert(vram_trace_open(file.path, NULL, &trace, NULL));
    for (int pass = 0; pass < 2; pass++) {
        cr_assert(vram_trace_summarise(trace, &sum, NULL));
        cr_expect_eq(sum.events, 7);
        cr_expect_eq(sum.by_kind[VRAM_EVENT_ALLOC], 3);
        cr_expect_eq(sum.by_kind[VRAM_EVENT_TRY], 1);
        cr_expect_eq(sum.last_ns - sum.first_ns, 6);
        cr_expect_eq(sum.least_bytes, 1);
        cr_expect_eq(sum.greatest_bytes, 1024);
        cr_expect_eq(sum.peak_live_bytes, 1624);
        cr_expect_eq(sum.peak_live_unit_bytes, 2048);
        cr_expect_eq(sum.peak_event, 3);
        cr_expect_eq(sum.peak_live_blocks, 2);
        cr_expect_eq(sum.live_at_end_blocks, 1);
        cr_expect_eq(sum.live_at_end_bytes, 10);
        cr_expect_eq(sum.largest_try_bytes, 4000);
        cr_expect_eq(sum.peak_with_try_unit_bytes, 512 + 1024 + 4096);
        cr_expect_eq(vram_trace_info_of(trace)->anomalies[VRAM_ANOMALY_NEVER_FREED], 1);
    }
    vram_trace_close(trace);
    drop_file(file);
}

/* Ids that collide, shift and return: the table of live ids against a plain array. */
Test(readers_native, ids_are_found_whatever_order_they_come_and_go_in)
{
    enum { IDS = 300, STEPS = 20000 };
    char *text;
    size_t bytes;
    FILE *const out = open_memstream(&text, &bytes);
    fprintf(out, HEAD);
    bool live[IDS] = {false};
    uint64_t state = 2026, expected_live = 0, expected_bytes = 0;
    for (int i = 0; i < STEPS; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const unsigned k = (unsigned)(state >> 33) % IDS;
        fprintf(out, live[k] ? "f %" PRIu64 "\n" : "a %" PRIu64 " 7\n", (uint64_t)k << 56 | k);
        live[k] = !live[k];
    }
    for (int k = 0; k < IDS; k++)
        expected_live += live[k];
    expected_bytes = expected_live * 7;
    fclose(out);
    const made_file file = make_file(text, bytes);
    vram_trace *trace;
    vram_trace_summary sum;
    cr_assert(vram_trace_open(file.path, NULL, &trace, NULL));
    cr_assert(vram_trace_summarise(trace, &sum, NULL));
    cr_expect_eq(sum.events, STEPS);
    cr_expect_eq(sum.live_at_end_blocks, expected_live);
    cr_expect_eq(sum.live_at_end_bytes, expected_bytes);
    cr_expect_leq(vram_trace_info_of(trace)->slots, IDS);
    vram_trace_close(trace);
    drop_file(file);
    free(text);
}
