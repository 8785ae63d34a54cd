/*
 * readers_formats.c - every format on hand-made files: what it means, what is wrong, what is cut.
 */
#include "made_file.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef VRAMLAB_SQLITE
#include <sqlite3.h>
#endif

#define RMM "Thread,Time,Action,Pointer,Size,Stream\n"
#define RMM2019                                                                                    \
    "Event Type,Device ID,Address,Stream,Size (bytes),Free Memory,Total Memory,Current Allocs,"    \
    "Start,End,Elapsed,Location\n"
#define VMA "Vulkan Memory Allocator,Calls recording\n1,8\n"

typedef struct sample {
    const char *format, *text, *events, *anomalies;
} sample;

static const sample samples[] = {
    {"rmm-csv",
     RMM "1,23:59:59.500000,allocate,0x10,100,0x0\n"
         "1,23:59:59:750000,allocate failure,(nil),5000,0x2\n"
         "2,00:00:00.000001,allocate,0x20,300,2\n"
         "2,00:00:00.250000,free,0x10,100,0x0\n"
         "2,00:00:00.250000,free,0x0,0,0x0\n"
         "1,00:00:00.3,deallocate,0x20,300,0x2\r\n\n",
     "alloc 16 100\n"
     "try 0 5000 at 250000000 stream 0x2\n"
     "alloc 32 300 slot 1 at 500001000 stream 0x2\n"
     "free 16 100 at 750000000\n"
     "free 32 300 slot 1 at 800000000 stream 0x2\n",
     "free of NULL 1, time runs backwards 1"},
    {"rmm-csv",
     RMM2019 "Alloc,0,0x7f,0,80,0,0,1,1.5,1.6,0.1,a.py:1\n"
             "Alloc,1,0x7f,0,81,0,0,1,1.5,1.6,0.1,a.py:1\n"
             "Realloc,0,0x7f,0,90,0,0,1,1.75,1.8,0.1,a.py:1\n"
             "Free,0,0x7f,0,0,0,0,0,2,2.1,0.1,a.py:2\n",
     "alloc 127 80\nresize 127 90 at 250000000\nfree 127 90 at 500000000\n", ""},
    {"rmm-log",
     "[ 1][08:00:00:000001][info  ] ----- RMM LOG BEGIN [PTDS DISABLED] -----\n"
     "[ 1][08:00:00:000002][trace ] [A][stream 0x1][4096B]\n"
     "[ 1][08:00:00:000003][trace ] [A][stream 0x1][4096B][0x7f00]\n"
     "[ 1][08:00:00:000004][error ] [A][Stream 0x1][Upstream 99B][FAILURE maximum pool size]\n"
     "[ 1][08:00:00:000005][trace ] [D][stream 0x1][4096B][0x7f00]\n"
     "stray\n",
     "alloc 32512 4096 stream 0x1\ntry 0 99 at 1000 stream 0x1\n"
     "free 32512 4096 at 2000 stream 0x1\n",
     "entry skipped 1"},
    {"rep", "100\n2\n6\n1\na 0 10\nw 0 10\nr 0 20\na 1 5\nf -1\nf 0\n",
     "alloc 0 10\nuse 0 10\nresize 0 20\nalloc 1 5 slot 1\nfree 0 20\n",
     "free of NULL 1, never freed 1"},
    {"rep", "1\n1\n2\n100\n0 a 0 10\n3 f 0\n", "alloc 0 10\nfree 0 10\n", ""},
    {"rep", "1\n3\na 0 10\nf 0\nr 0 7\n", "alloc 0 10\nfree 0 10\nalloc 0 7\n",
     "never freed 1, resize of an unknown block 1"},
    {"rep", "100\n7\n2\n1\na 0 10\nf 0\n", "alloc 0 10\nfree 0 10\n", "header differs from body 1"},
    {"minimalloc", "id,lower,upper,size\n7,0,4,10\n9,2,8,20\n8,4,6,30\n",
     "alloc 7 10\nalloc 9 20 slot 1 at 2\nfree 7 10 at 4\nalloc 8 30 at 4\nfree 8 30 at 6\n"
     "free 9 20 slot 1 at 8\n",
     ""},
    {"minimalloc", "size,end,begin,id,alignment,gaps\r\n10,3,0,b,8,1-2\r\n20,7,9,c,,\r\n",
     "alloc 0 10 align 3 tag 'b'\nfree 0 10 at 4\n", "entry skipped 1"},
    {"minimalloc", "id,lower,upper,size\n1,0,1,5\n1,1,2,6\n",
     "alloc 0 5 tag '1'\nfree 0 5 at 1\nalloc 1 6 at 1 tag '1'\nfree 1 6 at 2\n", ""},
    {"mtrace",
     "= Start\n@ ./a.out:(f+0x1)[0x80] + 0x10 0x20\n@ ./a b:[0x81] < 0x10\n"
     "@ ./a b:[0x81] > 0x30 0x40\n+ 0x50 0x8\n@ x:[0x1] ! 0x50 0x1000\n- 0x30\n- 0x30\n= End\n",
     "alloc 16 32 tag './a.out:(f+0x1)[0x80]'\nresize 48 64 tag './a b:[0x81]'\n"
     "alloc 80 8 slot 1\ntry 80 4096 tag 'x:[0x1]'\nfree 48 64\n",
     "double free 1, never freed 1"},
    {"weealloc", "Alloc(5),\nAlloc(0),\nAlloc(7),\nFree(2),\nFree(1),\nFree(0),",
     "alloc 0 5\nalloc 2 7 slot 1\nfree 2 7 slot 1\nfree 0 5\n", "zero size 1"},
    {"interval-log", "3 4 10\n0 9 20\n4 5 30\n",
     "alloc 1 20\nalloc 0 10 slot 1\nfree 0 10 slot 1\nalloc 2 30 slot 1\nfree 2 30 slot 1\n"
     "free 1 20\n",
     ""},
    {"umpire",
     "# a comment\n"
     "{\"category\":\"metadata\",\"name\":\"version\",\"timestamp\":5}\n"
     "{\"category\":\"operation\",\"name\":\"allocate\",\"numeric_args\":{\"size\":64},"
     "\"string_args\":{\"pointer\":\"0x10\"},\"timestamp\":10}\n"
     /* in place */
     "{\"name\":\"reallocate\",\"numeric_args\":{\"size\":128},"
     "\"string_args\":{\"current_ptr\":\"0x10\"},\"timestamp\":11}\n"
     "{\"name\":\"reallocate\",\"string_args\":{\"new_ptr\":\"0x20\"},\"timestamp\":12}\n"
     /* by a free and an allocation */
     "{\"name\":\"reallocate\",\"numeric_args\":{\"size\":9},"
     "\"string_args\":{\"current_ptr\":\"0x20\"},\"timestamp\":13}\n"
     "{\"name\":\"deallocate\",\"string_args\":{\"pointer\":\"0x20\"},\"timestamp\":14}\n"
     "{\"name\":\"allocate\",\"numeric_args\":{\"size\":9},"
     "\"string_args\":{\"pointer\":\"0x30\"},\"timestamp\":15}\n"
     "{\"name\":\"reallocate\",\"string_args\":{\"new_ptr\":\"0x30\"},\"timestamp\":16}\n"
     "{\"name\":\"deallocate\",\"string_args\":{\"pointer\":\"0\"},\"timestamp\":17}\n"
     "{\"name\":\"copy\",\"numeric_args\":{\"size\":[1,{\"size\":2}]},\"timestamp\":18}\n",
     "alloc 16 64\nresize 32 128 at 2\nfree 32 128 at 4\nalloc 48 9 at 5\n",
     "free of NULL 1, never freed 1"},
    {"umpire",
     "{ \"kind\":\"replay\", \"timestamp\":7, \"event\": \"allocate\", \"payload\": { "
     "\"size\": 12 } }\n"
     "{ \"kind\":\"replay\", \"timestamp\":8, \"event\": \"allocate\", \"payload\": { "
     "\"size\": 12 }, \"result\": { \"memory_ptr\": \"0x40\" } }\n"
     "{ \"kind\":\"replay\", \"timestamp\":9, \"event\": \"deallocate\", \"payload\": { "
     "\"memory_ptr\": \"0x40\" } }\n",
     "alloc 64 12\nfree 64 12 at 1\n", ""},
    {"vma-recording",
     VMA "Config,Begin\nConfig,End\n"
         "9,0.5,0,vmaCreateBuffer,0,768,1,0,4,2,0,0,0,0,A0,a name, with commas\n"
         "9,0.75,1,vmaCreateImage,0,1,37,8,4,2,1,1,1,1,1,0,8,36,2,0,0,0,0,B0,\n"
         "9,1.000,1,vmaMapMemory,A0\n"
         "9,1.000,1,vmaResizeAllocation,A0,800\n"
         "9,1.5,1,vmaFreeMemoryPages,A0 B0\n"
         "9,2.000,1,vmaDestroyImage,B0\n"
         "9,2.000,1,vmaDestroyBuffer,0\n",
     "alloc 160 768 tag 'a name, with commas'\nalloc 176 256 slot 1 at 250000000\n"
     "resize 160 800 at 500000000\nfree 176 256 slot 1 at 1500000000\n",
     "free of NULL 1, never freed 1, entry skipped 1"},
    {"vma-json",
     "{\"Total\": {\"BlockBytes\": 100, \"AllocationCount\": 3, \"AllocationBytes\": 35},\n"
     "\"DefaultPools\": {\"Type 0\": {\"Blocks\": {\"0\": {\"Suballocations\": [\n"
     "{\"Offset\": 0, \"Type\": \"BUFFER\", \"Size\": 10, \"CustomData\": {\"Size\": 7}},\n"
     "{\"Offset\": 10, \"Type\": \"FREE\", \"Size\": 70},\n"
     "{\"Offset\": 80, \"Type\": \"IMAGE\", \"Size\": 20, \"Name\": \"\\u00e9\\n\"}]}},\n"
     "\"DedicatedAllocations\": [{\"Type\": \"BUFFER\", \"Size\": 5}]}}}",
     "alloc 0 10 tag 'BUFFER'\nalloc 1 20 slot 1 tag '\xc3\xa9\n'\nalloc 2 5 slot 2 tag 'BUFFER'\n",
     "never freed 3"},
    {"vma-json",
     "{\"Total\": {\"UnusedRanges\": 0, \"Allocations\": 2, \"UsedBytes\": 9}, "
     "\"Suballocations\": [{\"Size\": 9, \"Type\": \"BUFFER\"}]}",
     "alloc 0 9 tag 'BUFFER'\n", "never freed 1, header differs from body 1"},
    {"malloc-bench",
     "\x0a\x06\x0a\x04\x08\x01\x10\x40"         /* malloc 1, 64 bytes */
     "\x0a\x08\x0a\x06\x08\x02\x10\x08\x18\x20" /* malloc 2, 8 bytes aligned to 32 */
     "\x0a\x08\x1a\x06\x08\x03\x10\x01\x18\x05" /* realloc of 1 to 5 bytes, now 3 */
     "\x0a\x08\x22\x06\x08\x04\x10\x03\x18\x07" /* calloc 4, 3 of 7 bytes */
     "\x0a\x04\x0a\x02\x10\x09"                 /* malloc that answered NULL */
     "\x0a\x04\x12\x02\x10\x08"                 /* free of NULL, with a hint */
     "\x0a\x04\x12\x02\x08\x03"                 /* free 3 */
     "\x10\x03",                                /* three blocks at most */
     "alloc 1 64\nalloc 2 8 slot 1 align 5\nresize 3 5\nalloc 4 21 slot 2\ntry 0 9\nfree 3 5\n",
     "free of NULL 1, never freed 2"},
    {"malloc-bench", "\x10\x05\x0a\x06\x0a\x04\x08\x01\x10\x40", "alloc 1 64\n",
     "never freed 1, header differs from body 1"},
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

Test(readers_formats, each_is_told_by_content_and_means_what_it_says)
{
    for (size_t i = 0; i < SAMPLES; i++) {
        const made_file file = make_file(samples[i].text, strlen(samples[i].text));
        vram_error error = {{0}};
        vram_trace *trace;
        cr_assert(vram_trace_open(file.path, NULL, &trace, &error), "%zu: %s", i, error.text);
        cr_expect_str_eq(vram_trace_info_of(trace)->format, samples[i].format);
        vram_trace_close(trace);
        char *const events = events_of(file.path, NULL, &error);
        cr_assert_not_null(events, "%zu: %s", i, error.text);
        cr_expect_str_eq(events, samples[i].events);
        char counted[512];
        cr_expect_str_eq(anomalies_of(file.path, counted), samples[i].anomalies, "%zu: %s", i,
                         counted);
        free(events);
        drop_file(file);
    }
}

Test(readers_formats, rewinding_gives_the_same_events_again)
{
    for (size_t i = 0; i < SAMPLES; i++) {
        const made_file file = make_file(samples[i].text, strlen(samples[i].text));
        vram_trace *trace;
        vram_trace_summary first, second;
        cr_assert(vram_trace_open(file.path, NULL, &trace, NULL));
        cr_assert(vram_trace_summarise(trace, &first, NULL));
        uint64_t anomalies[VRAM_ANOMALIES];
        memcpy(anomalies, vram_trace_info_of(trace)->anomalies, sizeof anomalies);
        cr_assert(vram_trace_summarise(trace, &second, NULL));
        cr_expect_eq(memcmp(&first, &second, sizeof first), 0, "%zu", i);
        cr_expect_eq(memcmp(anomalies, vram_trace_info_of(trace)->anomalies, sizeof anomalies), 0,
                     "%zu", i);
        vram_trace_close(trace);
        drop_file(file);
    }
}

Test(readers_formats, strict_refuses_what_is_odd_and_nothing_else)
{
    for (size_t i = 0; i < SAMPLES; i++) {
        const made_file file = make_file(samples[i].text, strlen(samples[i].text));
        const vram_trace_options strict = {.strict = true};
        vram_error error = {{0}};
        const bool odd = samples[i].anomalies[0] != '\0' &&
                         (strncmp(samples[i].anomalies, "never freed", 11) != 0 ||
                          strchr(samples[i].anomalies, ',') != NULL);
        cr_expect_eq(reads(file.path, &strict, &error), !odd, "%zu: %s", i, error.text);
        cr_expect_eq(strstr(error.text, "--strict") != NULL, odd, "%zu: %s", i, error.text);
        drop_file(file);
    }
}

Test(readers_formats, every_prefix_reads_or_says_why)
{
    for (size_t i = 0; i < SAMPLES; i++)
        for (size_t count = 0; count < strlen(samples[i].text); count++) {
            const made_file file = make_file(samples[i].text, count);
            vram_error error = {{0}};
            if (!reads(file.path, NULL, &error))
                cr_expect_not_null(strstr(error.text, file.path), "%zu, %zu bytes: %s", i, count,
                                   error.text);
            drop_file(file);
        }
}

/* Files whose format is clear and whose content is wrong. */
static const struct {
    const char *text, *says;
} bad_files[] = {
    {RMM "1,25:00:00.0,free,0x1,1,0x0\n", "line 2: found \"25:00:00.0\", expected a time"},
    {RMM "1,noon,free,0x1,1,0x0\n", "expected a time"},
    {RMM "1,1.5,shrink,0x1,1,0x0\n", "expected allocate, free"},
    {RMM "1,1.5,free,here,1,0x0\n", "expected a pointer"},
    {RMM "1,1.5,free,0x1,many,0x0\n", "expected a size in bytes"},
    {RMM "1,1.5,free,0x1,1\n", "expected a stream's handle"},
    {RMM "1,1.5\n", "expected allocate, free"},
    {"Action,Pointer\n", "columns for time and size"},
    {RMM2019 "Alloc,x,0x7f,0,80\n", "the number of a device"},
    {"1\n1\na 0\n", "line 3: found the end of the line, expected a size"},
    {"1\n1\na x 5\n", "expected an id"},
    {"1\n1\na 0 5 5\n", "expected the end of the line"},
    {"1\n1\na 0 5\nb 0\n", "line 4: found \"b 0\", expected an operation"},
    {"1\n1\na 99999999999999999999 5\n", "expected an id"},
    {"id,lower,upper,size\n1,0,x,5\n", "line 2: found \"x\", expected the time of its end"},
    {"id,lower,upper,size\n1,0\n", "expected the time of its end"},
    {"id,lower,upper,size\n1,0,3,-1\n", "expected a size"},
    {"id,lower,upper,size,alignment\n1,0,3,1,3\n", "a power of two"},
    {"= Start\n@ x:[0x1] + 0x10\n", "a size in hexadecimal"},
    {"= Start\n@ x:[0x1] * 0x10\n", "an operation"},
    {"= Start\n+ here 0x1\n", "an address"},
    {"= Start\n- 0x1 0x2\n", "expected the end of the line"},
    {"Alloc(5),\nAlloc(x),\n", "line 2: found \"Alloc(x),\", expected Alloc(size)"},
    {"Alloc(5),\nAlloc(5);\n", "the end of the line"},
    {"{\"category\":1,\"timestamp\":2}\n{\"a\" 1}", "line 2: JSON: found '1', expected ':'"},
    {"{\"category\":1,\"timestamp\":2}\n[]", "expected an object"},
    {"{\"category\":1,\"timestamp\":2}\n{\"a\":tru}", "a value"},
    {"{\"category\":1,\"timestamp\":2}\n{\"a\":\"\\x\"}", "behind a backslash"},
    {"{\"category\":1,\"timestamp\":2}\n{\"a\":\"\\u12g4\"}", "a hexadecimal digit"},
    {"{\"category\":1,\"timestamp\":2}\n{\"a\":1-2}", "a number"},
    {"{\"category\":1,\"timestamp\":2}\n{\"a\":1,}", "a key in quotes"},
    {"{\"category\":1,\"timestamp\":2}\n{\"a\":[1,]}", "a value"},
    {"{\"category\":1,\"timestamp\":2}\n{\"a\":[1}", "',' or ']'"},
    {"{\"category\":1,\"timestamp\":2}\n{\"a\":\"\n\"}", "closing quote"},
    {VMA "9,0.5,0,vmaCreateBuffer,0,768\n", "an allocation in hexadecimal"},
    {VMA "9,x,0,vmaFreeMemory,A0\n", "a time in seconds"},
    {VMA "9,1,0,vmaCreateImage,0,1,37,8,x,2,1,1,1,1,1,0,8,36,2,0,0,0,0,B0,\n", "an extent"},
    {VMA "9,1,0,vmaCreateImage,0,1,37,4294967295,4294967295,4294967295,1,1,1,1,1,0,8,36,2,0,0,0,0,"
         "B0,\n",
     "too large"},
    {"{\"Suballocations\": [{\"Size\": 5}", "the JSON ends"},
    {"\x0a\x06\x0a\x04\x08\x01\x10\x40\x0a\x06\x0a\x04\x08", "cut"},
};

Test(readers_formats, what_is_wrong_is_said_with_its_place)
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

/* What comes behind the head by which the format was told. */
Test(readers_formats, what_is_wrong_far_behind_is_said_too)
{
    static const struct {
        const char *repeated, *end, *says;
    } cases[] = {
        {"0 1 5\n", "1 1 5\n", "line 1001: found \"1 1 5\", expected three numbers"},
        {"0 1 5\n", "3 4\n", "line 1001: found \"3 4\", expected three numbers"},
        {"\x0a\x06\x0a\x04\x08\x01\x10\x40", "\x1a\x01x", "byte 8000: found neither a line"},
        {"\x0a\x06\x0a\x04\x08\x01\x10\x40", "\x0a\x03\x2a\x01x", "none of malloc, free"},
        {"\x0a\x06\x0a\x04\x08\x01\x10\x40", "\xff", "byte 8000: found neither a line"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text;
        size_t count;
        FILE *const out = open_memstream(&text, &count);
        for (int k = 0; k < 1000; k++)
            fputs(cases[i].repeated, out);
        fputs(cases[i].end, out);
        fclose(out);
        const made_file file = make_file(text, count);
        vram_error error = {{0}};
        cr_expect_not(reads(file.path, NULL, &error));
        cr_expect_not_null(strstr(error.text, cases[i].says), "'%s' does not say '%s'", error.text,
                           cases[i].says);
        drop_file(file);
        free(text);
    }
}

Test(readers_formats, json_is_nested_no_deeper_than_its_bound)
{
    enum { DEEP = 100000 };
    static const char head[] = "{\"Suballocations\": ";
    char *const text = malloc(sizeof head + DEEP);
    memcpy(text, head, sizeof head - 1);
    memset(text + sizeof head - 1, '[', DEEP);
    const made_file file = make_file(text, sizeof head - 1 + DEEP);
    vram_error error = {{0}};
    cr_expect_not(reads(file.path, NULL, &error));
    cr_expect_not_null(strstr(error.text, "nested more than 256 deep"), "%s", error.text);
    drop_file(file);
    free(text);
}

/* ---- SQLite ---- */

#ifdef VRAMLAB_SQLITE
static made_file make_database(const char *statements)
{
    const made_file file = make_file("", 0);
    sqlite3 *database;
    char *message = NULL;
    cr_assert_eq(sqlite3_open(file.path, &database), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(database, statements, NULL, NULL, &message), SQLITE_OK, "%s",
                 message);
    sqlite3_close(database);
    return file;
}

/* The table as Nsight Systems documents it, with rows of two devices, kinds, processes and
 * contexts, not in order of time. */
static const char nsight[] =
    "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid INTEGER NOT NULL,"
    " deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, address INTEGER NOT NULL,"
    " pc INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL,"
    " memoryOperationType INTEGER NOT NULL, name TEXT, correlationId INTEGER, streamId INTEGER);"
    "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES"
    " (300, 1, 0, 1, 4096, 0, 512, 2, 1, NULL, 3, 7)," /* the first block's free */
    " (100, 1, 0, 1, 4096, 0, 512, 2, 0, NULL, 1, 7),"
    " (200, 1, 0, 2, 4096, 0, 1024, 2, 0, NULL, 2, 7)," /* same address, other context */
    " (210, 1, 0, 1, 8192, 0, 99, 1, 0, NULL, 2, 7),"   /* pinned host memory */
    " (220, 1, 1, 1, 4096, 0, 77, 2, 0, NULL, 2, 7),"   /* other device */
    " (400, 1, 0, 1, 4096, 0, 512, 2, 9, NULL, 3, 7);"; /* an operation that is none */

static void expect_events(made_file file, uint32_t device, const char *expected)
{
    vram_error error = {{0}};
    char *const events = events_of(file.path, &(vram_trace_options){.device = device}, &error);
    cr_assert_not_null(events, "%s", error.text);
    cr_expect_str_eq(events, expected);
    free(events);
}

Test(readers_formats, nsight_exports_give_the_memory_events_of_a_device)
{
    static const char expected[] = "alloc 1 512 stream 0x7\nalloc 2 1024 slot 1 at 100 stream 0x7\n"
                                   "free 1 512 at 200 stream 0x7\n";
    const made_file file = make_database(nsight);
    expect_events(file, 0, expected);
    expect_events(file, 1, "alloc 1 77 stream 0x7\n");
    char counted[512];
    cr_expect_str_eq(anomalies_of(file.path, counted), "never freed 1, entry skipped 1");
    size_t count;
    char *const bytes = bytes_of(file.path, &count);
    const made_file packed = make_gzip(bytes, count);
    expect_events(packed, 0, expected);
    for (size_t at = 0; at < count; at += 37) { /* damage is noticed, or does no harm */
        bytes[at] ^= 0x55;
        const made_file damaged = make_file(bytes, count);
        vram_error error = {{0}};
        reads(damaged.path, NULL, &error);
        drop_file(damaged);
        bytes[at] ^= 0x55;
    }
    for (size_t length = 16; length < count; length += 61) { /* a cut file is refused */
        const made_file cut = make_file(bytes, length);
        vram_error error = {{0}};
        cr_expect_not(reads(cut.path, NULL, &error), "%zu of %zu bytes", length, count);
        drop_file(cut);
    }
    free(bytes);
    drop_file(packed);
    drop_file(file);
}

Test(readers_formats, sqlite_files_cannot_run_what_they_hold)
{
    static const struct {
        const char *statements, *says;
    } cases[] = {
        {"CREATE TABLE T (x)", "without a table that vramlab knows"},
        {"CREATE VIEW EVENTS(EVENT) AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r)"
         " SELECT '{}' FROM r WHERE x > 1",
         "without a table that vramlab knows"},
        {"CREATE TABLE EVENTS (other TEXT)", "no such column"},
        {"CREATE TABLE EVENTS (EVENT TEXT); INSERT INTO EVENTS VALUES ('{')", "the JSON ends"},
        {"CREATE TABLE EVENTS (EVENT TEXT); INSERT INTO EVENTS VALUES ('[]')", "an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const made_file file = make_database(cases[i].statements);
        vram_error error = {{0}};
        cr_expect_not(reads(file.path, NULL, &error), "%s", cases[i].statements);
        cr_expect_not_null(strstr(error.text, cases[i].says), "'%s' does not say '%s'", error.text,
                           cases[i].says);
        drop_file(file);
    }
}
#endif
