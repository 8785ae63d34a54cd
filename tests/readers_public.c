/*
 * readers_public.c - 75 files that other people recorded, in 13 formats, against counts that were
 * made without vramlab.
 *
 * The files lie beside the repository, in ../shared/traces/public; where they are absent the tests
 * say so and are skipped.
 */
#include "made_file.h"

#include <vramlab/snapshot.h>

#include <assert.h>
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "../shared/traces/public/"

/*
 * Counts of operations as the file has them; peak, least and greatest size in bytes.
 *
 * Two things differ from a count of lines, and are right as they are here. A reallocation of Umpire
 * is logged as a request, a reply and, unless it was done in place, an allocation and a free
 * between them: of 42, 27 were in place and are resizes, of up to 372 bytes, which makes 372 the
 * greatest request. And a block of zero bytes is no block: in tut_replay_log.json one shares its
 * address with the next block, which a count by address takes for an allocation of a live block and
 * a double free.
 */
typedef struct public_file {
    const char *path, *format;
    uint64_t allocs, frees, resizes, uses, refused;
    uint64_t zero_sizes, zero_sizes_freed, null_frees, unknown_resizes, never_freed;
    uint64_t peak_bytes, least_bytes, greatest_bytes;
} public_file;

static const public_file files[] = {
    {"rep-mit6172/ls_trace.rep", "rep", 454, 454, 0, 0, 0, 0, 0, 0, 0, 0, 78015, 2, 32816},
    {"rep-mit6172/trace_c1_v0.rep", "rep", 12979, 12979, 0, 0, 0, 0, 0, 0, 0, 0, 247600, 16, 32640},
    {"rep-mit6172/trace_c1_v1.rep", "rep", 13690, 13690, 0, 0, 0, 0, 0, 0, 0, 0, 247600, 16, 32640},
    {"rep-mit6172/trace_c3_v1.rep", "rep", 4145, 4145, 0, 0, 0, 0, 0, 0, 0, 0, 1300623, 32, 32560},
    {"rep-mit6172/trace_c4_v0.rep", "rep", 9302, 9302, 0, 0, 0, 0, 0, 0, 0, 0, 1754816, 32, 32684},
    {"rep-mit6172/trace_c4_v1.rep", "rep", 9036, 9036, 0, 0, 0, 0, 0, 0, 0, 0, 1417949, 16, 32719},
    {"rep-mit6172/trace_c5_v0.rep", "rep", 15305, 15305, 0, 0, 0, 0, 0, 0, 0, 0, 212024, 16, 32640},
    {"rep-mit6172/trace_c6_v0.rep", "rep", 2709, 2709, 0, 2578, 0, 0, 0, 0, 0, 0, 328601, 35,
     32591},
    {"rep-mit6172/trace_c7_v0.rep", "rep", 1920, 1920, 0, 0, 0, 0, 0, 0, 0, 0, 301332, 8, 65859},
    {"rep-mit6172/trace_c8_v0.rep", "rep", 2155, 2155, 0, 4092, 0, 0, 0, 0, 0, 0, 228552, 8, 32396},
    {"minimalloc-csv/google_A.1048576.csv", "minimalloc", 154, 154, 0, 0, 0, 0, 0, 0, 0, 0, 1048576,
     1024, 656384},
    {"minimalloc-csv/google_B.1048576.csv", "minimalloc", 170, 170, 0, 0, 0, 0, 0, 0, 0, 0, 1048576,
     1024, 632832},
    {"minimalloc-csv/google_C.1048576.csv", "minimalloc", 203, 203, 0, 0, 0, 0, 0, 0, 0, 0, 1039360,
     1024, 712704},
    {"minimalloc-csv/google_D.1048576.csv", "minimalloc", 213, 213, 0, 0, 0, 0, 0, 0, 0, 0, 986112,
     1024, 211968},
    {"minimalloc-csv/google_E.1048576.csv", "minimalloc", 215, 215, 0, 0, 0, 0, 0, 0, 0, 0, 1048576,
     1024, 604160},
    {"minimalloc-csv/google_F.1048576.csv", "minimalloc", 296, 296, 0, 0, 0, 0, 0, 0, 0, 0, 1048576,
     32768, 110592},
    {"minimalloc-csv/google_G.1048576.csv", "minimalloc", 308, 308, 0, 0, 0, 0, 0, 0, 0, 0, 1048576,
     30720, 121856},
    {"minimalloc-csv/google_H.1048576.csv", "minimalloc", 316, 316, 0, 0, 0, 0, 0, 0, 0, 0, 1048576,
     34816, 117760},
    {"minimalloc-csv/google_I.1048576.csv", "minimalloc", 374, 374, 0, 0, 0, 0, 0, 0, 0, 0, 1048576,
     1024, 881664},
    {"minimalloc-csv/google_J.1048576.csv", "minimalloc", 409, 409, 0, 0, 0, 0, 0, 0, 0, 0, 989184,
     1024, 333824},
    {"minimalloc-csv/google_K.1048576.csv", "minimalloc", 454, 454, 0, 0, 0, 0, 0, 0, 0, 0, 1048576,
     1024, 858112},
    {"minimalloc-csv/idealloc_iopddl_G_1.csv", "minimalloc", 816, 816, 0, 0, 0, 0, 0, 0, 0, 0,
     3030937746, 8, 1207959553},
    {"minimalloc-csv/idealloc_iopddl_S_1.csv", "minimalloc", 28526, 28526, 0, 0, 0, 0, 0, 0, 0, 0,
     1498635932, 2, 268435457},
    {"minimalloc-csv/idealloc_somas_tensors_resnet50.csv", "minimalloc", 1042, 1042, 0, 0, 0, 0, 0,
     0, 0, 0, 1515472556, 4, 51380224},
    {"minimalloc-csv/ptf_challenging_D.cap1048576.csv", "minimalloc", 213, 213, 0, 0, 0, 0, 0, 0, 0,
     0, 986112, 1024, 211968},
    {"minimalloc-csv/ptf_challenging_F.cap1048576.csv", "minimalloc", 296, 296, 0, 0, 0, 0, 0, 0, 0,
     0, 1048576, 32768, 110592},
    {"minimalloc-csv/ptf_challenging_K.cap1048576.csv", "minimalloc", 454, 454, 0, 0, 0, 0, 0, 0, 0,
     0, 1048576, 1024, 858112},
    {"minimalloc-csv/ptf_rand_1.cap294.csv", "minimalloc", 25, 25, 0, 0, 0, 0, 0, 0, 0, 0, 294, 4,
     31},
    {"minimalloc-csv/ptf_stress_1.cap578.csv", "minimalloc", 25, 25, 0, 0, 0, 0, 0, 0, 0, 0, 578, 8,
     124},
    {"minimalloc-csv/ptf_stress_12.cap8583.csv", "minimalloc", 300, 300, 0, 0, 0, 0, 0, 0, 0, 0,
     8583, 5, 128},
    {"minimalloc-csv/ptf_stress_6.cap4748.csv", "minimalloc", 150, 150, 0, 0, 0, 0, 0, 0, 0, 0,
     4748, 5, 127},
    {"weealloc-trace/dogfood.trace", "weealloc", 32472, 13604, 0, 0, 0, 0, 0, 0, 0, 18868, 1359176,
     2, 198802},
    {"weealloc-trace/ffmpeg.trace", "weealloc", 1832, 1805, 0, 0, 0, 0, 0, 0, 0, 27, 604146, 2,
     72704},
    {"weealloc-trace/find.trace", "weealloc", 567, 563, 0, 0, 0, 0, 0, 0, 0, 4, 66494, 2, 32816},
    {"weealloc-trace/gcc-hello.trace", "weealloc", 11431, 6344, 0, 0, 0, 0, 0, 0, 0, 5087, 9303005,
     1, 1366424},
    {"weealloc-trace/grep-recursive.trace", "weealloc", 657, 619, 0, 0, 0, 2, 2, 0, 0, 38, 117450,
     0, 36872},
    {"weealloc-trace/ls.trace", "weealloc", 45, 37, 0, 0, 0, 0, 0, 0, 0, 8, 55989, 2, 32816},
    {"mallocbench-pb/grep.trace", "malloc-bench", 64528, 64691, 180, 0, 0, 0, 0, 0, 163, 0, 7253688,
     2, 4019762},
    {"mallocbench-pb/mc_server.trace", "malloc-bench", 221444, 222091, 2537, 0, 0, 0, 0, 0, 647, 0,
     68012253, 1, 10368016},
    {"mallocbench-pb/mc_server_small.trace", "malloc-bench", 27972, 30813, 326, 0, 0, 0, 0, 2549,
     292, 0, 18092978, 1, 5796880},
    {"mallocbench-pb/scp.trace", "malloc-bench", 35710, 35710, 0, 0, 0, 0, 0, 0, 0, 0, 930721, 2,
     261376},
    {"mallocbench-pb/simple_calloc.trace", "malloc-bench", 2374, 2374, 0, 0, 0, 0, 0, 0, 0, 0,
     78634, 1, 72704},
    {"mallocbench-pb/simple_realloc.trace", "malloc-bench", 4, 4, 1, 0, 0, 0, 0, 0, 0, 0, 73878, 4,
     72704},
    {"mallocbench-pb/ssh.trace", "malloc-bench", 11405, 11412, 191, 0, 0, 0, 0, 0, 7, 0, 793091, 1,
     263680},
    {"mallocbench-pb/test-zero.trace", "malloc-bench", 3, 4, 1, 0, 0, 1, 0, 1, 1, 0, 9963, 128,
     8811},
    {"umpire-replay/output.numa.replay", "umpire", 183, 183, 27, 0, 0, 12, 12, 0, 0, 0, 372, 0,
     372},
    {"umpire-replay/output.replay", "umpire", 177, 177, 27, 0, 0, 12, 12, 0, 0, 0, 372, 0, 372},
    {"umpire-replay/output.sqlite.replay", "umpire-sqlite", 177, 177, 27, 0, 0, 12, 12, 0, 0, 0,
     372, 0, 372},
    {"umpire-replay/tut_replay_log.json", "umpire", 64, 64, 0, 0, 0, 1, 1, 0, 0, 0, 32880, 0, 1015},
    {"vma-recording/vma_doc_example_1.2.csv", "vma-recording", 8, 8, 0, 0, 0, 0, 0, 0, 0, 0,
     4076348, 60, 4009984},
    {"vma-recording/vma_doc_example_1.3.csv", "vma-recording", 8, 8, 0, 0, 0, 0, 0, 0, 0, 0,
     4076348, 60, 4009984},
    {"vma-recording/vma_doc_example_1.8.csv", "vma-recording", 8, 8, 0, 0, 0, 0, 0, 0, 0, 0,
     4076348, 60, 4009984},
    {"vma-json/gpumemdump_sample.json", "vma-json", 132, 0, 0, 0, 0, 0, 0, 0, 0, 132, 73401500, 60,
     6095200},
    {"vma-json/vma_stats_1b0bd18.json", "vma-json", 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 8062124, 60,
     7995760},
    {"vma-json/vma_stats_9f09ef5.json", "vma-json", 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 8062124, 60,
     7995760},
    {"interval-log/alexnet_train.log", "interval-log", 193, 193, 0, 0, 0, 0, 0, 0, 0, 0, 1443669632,
     4, 150994944},
    {"mtrace/rahuldcosta_mtrace.log", "mtrace", 6, 2, 0, 0, 0, 0, 0, 0, 0, 4, 96, 16, 16},
    {"rmm-csv/rmm_doc_example.csv", "rmm-csv", 2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 3072, 1024, 2048},
    {"rmm-csv-legacy/numba_nbep7_1.csv", "rmm-csv", 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 80, 80, 80},
    {"rmm-debug-log/PipeTGL_rmm_log.txt", "rmm-log", 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10737418240,
     10737418240},
    {"rmm-debug-log/blazingsql_rmm_log.txt", "rmm-log", 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 30506240,
     35006976},
    {"rmm-debug-log/gdlog_rmm_log.txt", "rmm-log", 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 15162789376,
     15162789376},
};
enum { FILES = sizeof files / sizeof files[0] };

static bool there(void)
{
    if (access(FOLDER "README.md", R_OK) == 0)
        return true;
    cr_skip_test(FOLDER " is absent");
    return false;
}

static void expect_count(const public_file *file, const char *what, uint64_t got, uint64_t expected)
{
    cr_expect_eq(got, expected, "%s: %s: %" PRIu64 ", expected %" PRIu64, file->path, what, got,
                 expected);
}

/* The least and the greatest request, refused ones included, as the sum counts only what was
 * served. */
static void refused_range(vram_trace *trace, vram_trace_summary *sum)
{
    vram_event event;
    while (vram_trace_next(trace, &event, NULL) == VRAM_STEP_EVENT) {
        if (event.kind != VRAM_EVENT_TRY)
            continue;
        if (sum->least_bytes == 0 || event.size_bytes < sum->least_bytes)
            sum->least_bytes = event.size_bytes;
        if (event.size_bytes > sum->greatest_bytes)
            sum->greatest_bytes = event.size_bytes;
    }
}

static void check_file(const public_file *file)
{
    char path[256];
    snprintf(path, sizeof path, FOLDER "%s", file->path);
    vram_trace *trace;
    vram_trace_summary sum;
    vram_error error = {{0}};
    cr_assert(vram_trace_open(path, NULL, &trace, &error), "%s", error.text);
    cr_assert(vram_trace_summarise(trace, &sum, &error), "%s", error.text);
    const vram_trace_info *info = vram_trace_info_of(trace);
    const uint64_t *odd = info->anomalies;
    cr_expect_str_eq(info->format, file->format);
    const uint64_t unborn = odd[VRAM_ANOMALY_UNKNOWN_RESIZE];
    /* A resize of nothing is an allocation here, and a resize in the file. */
    expect_count(file, "allocations and resizes",
                 sum.by_kind[VRAM_EVENT_ALLOC] + sum.by_kind[VRAM_EVENT_RESIZE] +
                     odd[VRAM_ANOMALY_ZERO_SIZE],
                 file->allocs + file->resizes);
    expect_count(file, "resizes", sum.by_kind[VRAM_EVENT_RESIZE] + unborn, file->resizes);
    expect_count(file, "frees",
                 sum.by_kind[VRAM_EVENT_FREE] + odd[VRAM_ANOMALY_NULL_FREE] +
                     file->zero_sizes_freed,
                 file->frees);
    expect_count(file, "uses", sum.by_kind[VRAM_EVENT_USE], file->uses);
    expect_count(file, "refused", sum.by_kind[VRAM_EVENT_TRY], file->refused);
    expect_count(file, "zero sizes", odd[VRAM_ANOMALY_ZERO_SIZE], file->zero_sizes);
    expect_count(file, "frees of NULL", odd[VRAM_ANOMALY_NULL_FREE], file->null_frees);
    expect_count(file, "resizes of nothing", unborn, file->unknown_resizes);
    expect_count(file, "never freed", odd[VRAM_ANOMALY_NEVER_FREED], file->never_freed);
    expect_count(file, "peak", sum.peak_live_bytes, file->peak_bytes);
    refused_range(trace, &sum);
    if (file->zero_sizes == 0)
        expect_count(file, "least", sum.least_bytes, file->least_bytes);
    expect_count(file, "greatest", sum.greatest_bytes, file->greatest_bytes);
    static const vram_anomaly none[] = {
        VRAM_ANOMALY_UNKNOWN_FREE, VRAM_ANOMALY_DOUBLE_FREE, VRAM_ANOMALY_LIVE_ALLOC,
        VRAM_ANOMALY_HEADER,       VRAM_ANOMALY_CLOCK,       VRAM_ANOMALY_SKIPPED,
    };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        expect_count(file, vram_anomaly_name(none[i]), odd[none[i]], 0);
    vram_trace_close(trace);
}

Test(readers_public, every_file_reads_with_the_counts_made_without_vramlab)
{
    if (there())
        for (size_t i = 0; i < FILES; i++)
            check_file(&files[i]);
}

/* Snapshots: events, blocks from before and never freed; peak of what the history itself
 * allocates; what PyTorch held at the end. */
static const struct {
    const char *name;
    uint64_t allocs, frees, before, never_freed, peak_bytes;
    uint64_t segments, blocks, reserved_bytes;
} snapshots[] = {
    {"Felixburton7_dump_snapshot.pickle", 0, 0, 73, 0, 0, 3, 76, 46137344},
    {"LfieLike_my_snapshot.pickle", 0, 1, 840, 0, 0, 259, 868, 17133731840},
    {"Wedsonlin_medium_128_inference_memory_snapshot.pickle", 1280, 1280, 223, 0, 35651584, 98, 230,
     1763704832},
    {"Wedsonlin_medium_128_training_memory_snapshot.pickle", 6526, 6305, 664, 659, 5221560324, 377,
     918, 7235174400},
    {"bolongcheng_memory_snapshot_xl_fwd_cl128_dtypetorch.float32.pickle", 1704, 1704, 294, 0,
     89128960, 2, 297, 13759414272},
    {"bolongcheng_memory_snapshot_xl_fwd_cl512_dtypetorch.bfloat16.pickle", 2218, 2218, 294, 0,
     25768124416, 2, 297, 39734738944},
    {"cranberrii_memory_snapshot.pickle", 3505, 3325, 622, 180, 4780407592, 215, 1079, 6471811072},
    {"facebookresearch_output.pickle", 520, 520, 17, 0, 2255398132, 5, 17, 262144000},
    {"kkaitlyn111_memory_ctx128_forward.pickle", 2058, 1155, 324, 903, 5723951104, 516, 1276,
     19667091456},
    {"kkaitlyn111_memory_ctx256_forward_mixed.pickle", 2702, 1414, 325, 1288, 14599517184, 827,
     1821, 28848422912},
    {"silmont2000_mem_snapshot.pickle", 36, 26, 0, 10, 3249143816, 9, 20, 3781165056},
    {"silmont2000_memory_forward_bf16_128.pickle", 937, 937, 137, 0, 256025600, 43, 178, 861929472},
    {"silmont2000_memory_forward_fp32_128.pickle", 681, 681, 137, 0, 33031168, 29, 164, 610271232},
};
enum { SNAPSHOTS = sizeof snapshots / sizeof snapshots[0] };
static_assert(FILES + SNAPSHOTS == 75, "the README lists 75 files");

/* The most bytes live at once, the blocks from before left aside; they are the first allocations.
 */
static uint64_t peak_of_history(vram_trace *trace, uint64_t before)
{
    const uint64_t slots = vram_trace_info_of(trace)->slots + 1;
    bool *const old = calloc(slots, sizeof *old);
    uint64_t live = 0, peak = 0;
    vram_event event;
    while (vram_trace_next(trace, &event, NULL) == VRAM_STEP_EVENT) {
        if (event.kind == VRAM_EVENT_ALLOC) {
            old[event.slot] = before > 0;
            before -= before > 0;
            live += old[event.slot] ? 0 : event.size_bytes;
        } else if (event.kind == VRAM_EVENT_FREE) {
            live -= old[event.slot] ? 0 : event.size_bytes;
        }
        peak = live > peak ? live : peak;
    }
    free(old);
    return peak;
}

/* Blocks that the history allocates and never frees. */
static uint64_t leaks_of_history(vram_trace *trace, uint64_t before)
{
    const uint64_t slots = vram_trace_info_of(trace)->slots + 1;
    bool *const live = calloc(slots, sizeof *live);
    vram_event event;
    while (vram_trace_next(trace, &event, NULL) == VRAM_STEP_EVENT) {
        if (event.kind == VRAM_EVENT_ALLOC) {
            live[event.slot] = before == 0;
            before -= before > 0;
        } else if (event.kind == VRAM_EVENT_FREE) {
            live[event.slot] = false;
        }
    }
    uint64_t leaks = 0;
    for (uint64_t i = 0; i < slots; i++)
        leaks += live[i];
    free(live);
    cr_assert(vram_trace_rewind(trace, NULL));
    return leaks;
}

static void check_snapshot(size_t i)
{
    char path[256];
    snprintf(path, sizeof path, FOLDER "pytorch-snapshot/%s", snapshots[i].name);
    vram_trace *trace;
    vram_trace_summary sum;
    vram_error error = {{0}};
    cr_assert(vram_trace_open(path, NULL, &trace, &error), "%s", error.text);
    cr_assert(vram_trace_summarise(trace, &sum, &error), "%s", error.text);
    const uint64_t before = vram_trace_info_of(trace)->recorded.blocks_before;
    cr_expect_eq(before, snapshots[i].before, "%s", path);
    cr_expect_eq(sum.by_kind[VRAM_EVENT_ALLOC] - before, snapshots[i].allocs, "%s", path);
    cr_expect_eq(sum.by_kind[VRAM_EVENT_FREE], snapshots[i].frees, "%s", path);
    cr_expect_eq(leaks_of_history(trace, before), snapshots[i].never_freed, "%s", path);
    cr_expect_eq(peak_of_history(trace, before), snapshots[i].peak_bytes, "%s", path);
    const vram_snapshot *snapshot = vram_trace_snapshot(trace);
    uint64_t reserved = 0;
    for (size_t k = 0; k < snapshot->segment_count; k++)
        reserved += snapshot->segments[k].total_bytes;
    cr_expect_eq(snapshot->segment_count, snapshots[i].segments, "%s", path);
    cr_expect_eq(snapshot->block_count, snapshots[i].blocks, "%s", path);
    cr_expect_eq(reserved, snapshots[i].reserved_bytes, "%s", path);
    vram_trace_close(trace);
}

Test(readers_public, every_snapshot_reads_with_the_counts_made_without_vramlab)
{
    if (there())
        for (size_t i = 0; i < SNAPSHOTS; i++)
            check_snapshot(i);
}

/* Formats are told apart by content, so a file must be claimed however it is called. */
Test(readers_public, packed_files_read_the_same)
{
    if (!there())
        return;
    for (size_t i = 0; i < FILES; i += 3) {
        char path[256];
        snprintf(path, sizeof path, FOLDER "%s", files[i].path);
        size_t count;
        char *const bytes = bytes_of(path, &count);
        const made_file packed = make_gzip(bytes, count);
        vram_error error = {{0}};
        char *const plain_events = events_of(path, NULL, &error);
        char *const packed_events = events_of(packed.path, NULL, &error);
        cr_assert_not_null(packed_events, "%s: %s", path, error.text);
        cr_expect_str_eq(packed_events, plain_events, "%s", path);
        free(plain_events);
        free(packed_events);
        free(bytes);
        drop_file(packed);
    }
}

/* Holds where the files are absent too, so that the suite is never empty. */
Test(readers_public, the_tables_name_75_files_each_once_with_counts_that_can_be)
{
    cr_expect_eq(FILES + SNAPSHOTS, 75);
    for (size_t i = 0; i < FILES; i++) {
        cr_expect(files[i].frees <= files[i].allocs + files[i].resizes + files[i].null_frees + 1);
        cr_expect(files[i].least_bytes <= files[i].greatest_bytes, "%s", files[i].path);
        for (size_t k = i + 1; k < FILES; k++)
            cr_expect_str_neq(files[i].path, files[k].path);
    }
    for (size_t i = 0; i < SNAPSHOTS; i++)
        for (size_t k = i + 1; k < SNAPSHOTS; k++)
            cr_expect_str_neq(snapshots[i].name, snapshots[k].name);
}
