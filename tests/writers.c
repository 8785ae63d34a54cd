/*
 * writers.c - traces written and read again: what a format can hold comes back, what it cannot is
 * counted.
 */
#include "made_file.h"

#include <vramlab/write.h>

#include <criterion/criterion.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "vramlab trace 1\n"

static vram_write_report write_trace(const char *from, const char *format, const char *to)
{
    vram_trace *trace;
    vram_error error = {{0}};
    vram_write_report report;
    cr_assert(vram_trace_open(from, NULL, &trace, &error), "%s", error.text);
    cr_assert(vram_trace_write(trace, format, to, &report, &error), "%s: %s", from, error.text);
    vram_trace_close(trace);
    return report;
}

/* Writes `from` in a format and expects the same events to come back. */
static vram_write_report expect_round_trip(const char *from, const char *format)
{
    const made_file file = make_file("", 0);
    const vram_write_report report = write_trace(from, format, file.path);
    vram_error error = {{0}};
    char *const before = events_of(from, NULL, &error);
    char *const after = events_of(file.path, NULL, &error);
    cr_assert_not_null(after, "%s as %s: %s", from, format, error.text);
    cr_expect(strcmp(before, after) == 0, "%s changes as %s", from, format);
    free(before);
    free(after);
    drop_file(file);
    return report;
}

static void expect_no_loss(const char *from, const vram_write_report *report)
{
    for (unsigned i = 0; i < VRAM_LOSSES; i++)
        cr_expect_eq(report->lost[i], 0, "%s: %" PRIu64 " %s", from, report->lost[i],
                     vram_loss_name((vram_loss)i));
}

static const char everything[] =
    HEAD "unit 256\n"
         "recorded peak_reserved_bytes 4096\n"
         "recorded blocks_before 1\n"
         "stack 7 \"main.py:3 \\\"step\\\"\\nmain.py:9 <module>\"\n"
         "a 1 4096 @1500 s0x7f10 ^512 k7 \"a \\\\ \\\"tag\\\"\\twith all\\n\"\n"
         "a 2 100 @1500\n"
         "m \"phase two\" @1600\n"
         "u 2 s1\n"
         "w 0x7f10 s1\n"
         "y s0 @1700\n"
         "y\n"
         "r 2 300\n"
         "r 2 200 n9\n"
         "p 1\n"
         "t 900 s1\n"
         "f 1 @2000\n"
         "f 9\n";

Test(writers, the_native_text_holds_all_there_is)
{
    const made_file file = make_file(everything, sizeof everything - 1);
    const vram_write_report report = expect_round_trip(file.path, "native");
    expect_no_loss(file.path, &report);
    const made_file first = make_file("", 0), second = make_file("", 0);
    write_trace(file.path, "native", first.path);
    write_trace(first.path, "native", second.path);
    size_t count, again;
    char *const once = bytes_of(first.path, &count), *const twice = bytes_of(second.path, &again);
    cr_expect_str_eq(once, twice);
    cr_expect_not_null(strstr(once, "\nunit 256\n"));
    cr_expect_not_null(strstr(once, "\nrecorded peak_reserved_bytes 4096\n"));
    cr_expect_not_null(
        strstr(once, " @1500 s32528 ^512 k1 \"a \\\\ \\\"tag\\\"\\twith all\\n\"\n"));
    free(once);
    free(twice);
    drop_file(first);
    drop_file(second);
    drop_file(file);
}

Test(writers, recordings_and_public_files_survive_the_native_text)
{
    static const char *const folders[] = {"traces/data",
                                          "../shared/traces/public/umpire-replay",
                                          "../shared/traces/public/minimalloc-csv",
                                          "../shared/traces/public/vma-recording",
                                          "../shared/traces/public/mtrace",
                                          "../shared/traces/public/weealloc-trace"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        DIR *const folder = opendir(folders[i]);
        if (folder == NULL) {
            fprintf(stderr, "SKIPPED: %s is absent\n", folders[i]);
            continue;
        }
        struct dirent *entry;
        while ((entry = readdir(folder)) != NULL) {
            char path[512];
            vram_error error;
            snprintf(path, sizeof path, "%s/%s", folders[i], entry->d_name);
            struct stat status;
            if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
                strcmp(entry->d_name, "README.md") == 0 || !reads(path, NULL, &error))
                continue;
            const vram_write_report report = expect_round_trip(path, "native");
            expect_no_loss(path, &report);
        }
        closedir(folder);
    }
}

/* What each format holds of a trace that needs no more. */
static const struct {
    const char *format, *text;
} fitting[] = {
    {"rep", "unit 16\na 0 5\na 1 7\nr 0 9\nu 1 s0\nf 0\na 2 5\nf 2\nf 1\n"},
    {"rmm-csv", "unit 256\na 16 5 @3723000001000 s1\na 32 7 @3723000002000\nt 99 s3\n"
                "f 16 @86399999999000 s1\nf 32\n"},
    {"minimalloc", "a 7 5 @3 ^8\na 9 6 @3\nf 7 @4\na 8 5 @4\nf 9 @9\nf 8\n"},
    {"minimalloc", "a 0 5 @3 \"weights\"\na 1 6 @5 \"bias\"\nf 0 @6\nf 1\n"},
};

Test(writers, what_a_format_can_hold_comes_back_without_loss)
{
    for (size_t i = 0; i < sizeof fitting / sizeof fitting[0]; i++) {
        char text[512];
        const int count = snprintf(text, sizeof text, HEAD "%s", fitting[i].text);
        const made_file file = make_file(text, (size_t)count);
        const vram_write_report report = expect_round_trip(file.path, fitting[i].format);
        expect_no_loss(fitting[i].text, &report);
        drop_file(file);
    }
}

/* What a format cannot hold, and how often it is counted. */
static const struct {
    const char *format, *text;
    vram_loss loss;
    uint64_t count;
} losing[] = {
    {"rep", "a 0 5 @1\nf 0 @2\n", VRAM_LOSS_TIME, 2},
    {"rep", "a 7 5\nf 7\na 1 5\nf 1\n", VRAM_LOSS_ID, 1},
    {"rep", "a 0 5 s1\nf 0\n", VRAM_LOSS_STREAM, 1},
    {"rep", "a 0 5 ^8 \"x\"\nf 0\n", VRAM_LOSS_ALIGN, 1},
    {"rep", "a 0 5 ^8 \"x\"\nf 0\n", VRAM_LOSS_TAG, 1},
    {"rep", "stack 1 \"f\"\na 0 5 k1\nf 0\n", VRAM_LOSS_STACK, 1},
    {"rep", "a 0 5\np 0\nf 0\n", VRAM_LOSS_RETIRE, 1},
    {"rep", "t 5\n", VRAM_LOSS_TRY, 1},
    {"rep", "y\nw 1 s2\n", VRAM_LOSS_ORDER, 2},
    {"rep", "m \"x\"\n", VRAM_LOSS_MARK, 1},
    {"rep", "unit 512\na 0 5\nf 0\n", VRAM_LOSS_UNIT, 1},
    {"rep", "recorded out_of_memory 1\na 0 5\nf 0\n", VRAM_LOSS_RECORDED, 1},
    {"rmm-csv", "a 1 5 @1\nf 1 @2000\n", VRAM_LOSS_PRECISION, 1},
    {"rmm-csv", "a 1 5\nf 1\n", VRAM_LOSS_TIME, 2},
    {"rmm-csv", "a 0 5 @0\nf 0\n", VRAM_LOSS_ID, 1},
    {"rmm-csv", "a 1 5 @0\nr 1 6\nf 1\n", VRAM_LOSS_RESIZE, 1},
    {"rmm-csv", "a 1 5 @0\nu 1 s2\nf 1\n", VRAM_LOSS_USE, 1},
    {"minimalloc", "a 1 5 @1\nf 1 @1\n", VRAM_LOSS_TIME, 2}, /* lives for no time */
    {"minimalloc", "a 1 5 @1\na 2 5 @2\nf 1 @2\nf 2 @3\n", VRAM_LOSS_TIME, 4}, /* free too late */
    {"minimalloc", "a 1 5 @1\nf 1 @2\na 1 5 @2\nf 1 @3\n", VRAM_LOSS_ID, 2},
    {"minimalloc", "a 1 5 \"x\"\na 2 5 \"x\"\nf 1\nf 2\n", VRAM_LOSS_TAG, 2},
    {"minimalloc", "a 1 5 \"x,y\"\nf 1\n", VRAM_LOSS_TAG, 1},
    {"minimalloc", "a 1 5\n", VRAM_LOSS_NEVER_FREED, 1},
    {"minimalloc", "a 1 5 s9\nr 1 7\nf 1\n", VRAM_LOSS_RESIZE, 1},
};

Test(writers, what_a_format_cannot_hold_is_counted)
{
    for (size_t i = 0; i < sizeof losing / sizeof losing[0]; i++) {
        char text[512];
        const int count = snprintf(text, sizeof text, HEAD "%s", losing[i].text);
        const made_file file = make_file(text, (size_t)count), out = make_file("", 0);
        const vram_write_report report = write_trace(file.path, losing[i].format, out.path);
        cr_expect_eq(report.lost[losing[i].loss], losing[i].count, "%s as %s: %" PRIu64 " %s",
                     losing[i].text, losing[i].format, report.lost[losing[i].loss],
                     vram_loss_name(losing[i].loss));
        vram_error error = {{0}};
        cr_expect(report.lines == 0 || reads(out.path, NULL, &error), "%s", error.text);
        drop_file(out);
        drop_file(file);
    }
}

/* Sizes and lifetimes, which every format holds, are the same whatever else is lost. */
Test(writers, peaks_are_the_same_in_every_format)
{
    static const char *const formats[] = {"native", "minimalloc", "rmm-csv", "rep"};
    static const char *const recordings[] = {"traces/data/oom_fragmented.pickle.gz",
                                             "traces/data/multi_stream.pickle.gz"};
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < 4; k++) {
            const made_file out = make_file("", 0);
            write_trace(recordings[i], formats[k], out.path);
            vram_trace *from, *to;
            vram_trace_summary expected, got;
            vram_error error = {{0}};
            cr_assert(vram_trace_open(recordings[i], NULL, &from, &error), "%s", error.text);
            cr_assert(vram_trace_open(out.path, NULL, &to, &error), "%s", error.text);
            cr_assert(vram_trace_summarise(from, &expected, &error), "%s", error.text);
            cr_assert(vram_trace_summarise(to, &got, &error), "%s", error.text);
            cr_expect_eq(got.peak_live_bytes, expected.peak_live_bytes, "%s", formats[k]);
            cr_expect_eq(got.peak_live_blocks, expected.peak_live_blocks, "%s", formats[k]);
            cr_expect_eq(got.by_kind[VRAM_EVENT_ALLOC], expected.by_kind[VRAM_EVENT_ALLOC]);
            vram_trace_close(from);
            vram_trace_close(to);
            drop_file(out);
        }
    }
}

Test(writers, a_packed_file_holds_the_same_and_is_the_same_from_run_to_run)
{
    char plain[128], packed[128], again[128];
    const made_file stem = make_file("", 0);
    snprintf(plain, sizeof plain, "%s.vt", stem.path);
    snprintf(packed, sizeof packed, "%s.vt.gz", stem.path);
    snprintf(again, sizeof again, "%s.2.vt.gz", stem.path);
    cr_expect_str_eq(vram_write_format_of(packed), "native");
    cr_expect_str_eq(vram_write_format_of("a.rep"), "rep");
    cr_expect_null(vram_write_format_of("a.csv"));
    cr_expect_null(vram_write_format_of(".gz"));
    write_trace("traces/data/resnet50_train.pickle.gz", "native", plain);
    write_trace("traces/data/resnet50_train.pickle.gz", "native", packed);
    write_trace("traces/data/resnet50_train.pickle.gz", "native", again);
    size_t first, second, whole;
    char *const one = bytes_of(packed, &first), *const two = bytes_of(again, &second);
    char *const text = bytes_of(plain, &whole);
    cr_expect_eq(first, second);
    cr_expect_eq(memcmp(one, two, first), 0);
    cr_expect_lt(first, whole / 2);
    vram_error error;
    char *const a = events_of(plain, NULL, &error), *const b = events_of(packed, NULL, &error);
    cr_expect_str_eq(a, b);
    free(a);
    free(b);
    free(one);
    free(two);
    free(text);
    unlink(plain);
    unlink(packed);
    unlink(again);
    drop_file(stem);
}

Test(writers, a_failure_leaves_the_old_file_as_it_was)
{
    static const char broken[] = HEAD "a 1 5\nz\n";
    const made_file from = make_file(broken, sizeof broken - 1), out = make_file("old", 3);
    vram_trace *trace;
    vram_write_report report;
    vram_error error = {{0}};
    cr_assert(vram_trace_open(from.path, NULL, &trace, &error), "%s", error.text);
    cr_expect_not(vram_trace_write(trace, "native", out.path, &report, &error));
    cr_expect_not_null(strstr(error.text, "line 3"), "%s", error.text);
    cr_expect_not(vram_trace_write(trace, "native", "/nowhere/x.vt", &report, &error));
    cr_expect_not(vram_trace_write(trace, "morse", out.path, &report, &error));
    cr_expect_not_null(strstr(error.text, "'morse' cannot be written"), "%s", error.text);
    vram_trace_close(trace);
    size_t count;
    char *const bytes = bytes_of(out.path, &count);
    cr_expect_str_eq(bytes, "old");
    free(bytes);
    drop_file(out);
    drop_file(from);
}
