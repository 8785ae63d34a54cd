/*
 * cases.c - "case:NAME": sequences that made somebody's allocator fail, from the figures that were
 * published with the report.
 *
 * Each case names its thread, the memory that was there (info->arena_bytes) and the sizes of the
 * report; what the report leaves out is made as simple as it can be, so that an allocator that
 * avoids the fault in question passes. They ask for an answer, pass or fail, and for the bytes that
 * are stranded: arena less what is live, when a request is refused.
 */
#include "maker.h"

#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

enum { TICK_NS = 1000000, COMB_MAX = 512 };

typedef struct named_case {
    const char *name;
    uint64_t arena_bytes;
    void (*build)(maker *m);
} named_case;

/* ---- pieces ---- */

static uint64_t take(maker *m, uint64_t size_bytes)
{
    m->now_ns += TICK_NS;
    return maker_hold(m, size_bytes);
}

static void give(maker *m, uint64_t id)
{
    m->now_ns += TICK_NS;
    maker_free(m, id);
}

/* Blocks that go between blocks that stay: afterwards holes of `gone_bytes`, each closed by a kept
 * block above it. */
static void comb(maker *m, uint64_t teeth, uint64_t kept_bytes, uint64_t gone_bytes)
{
    uint64_t gone[COMB_MAX];
    for (uint64_t i = 0; i < teeth && i < COMB_MAX; i++) {
        gone[i] = take(m, gone_bytes);
        take(m, kept_bytes);
    }
    for (uint64_t i = 0; i < teeth && i < COMB_MAX; i++)
        give(m, gone[i]);
}

/* ---- rapidsai/rmm ---- */

/* The same balanced sequence three times: 61.4 GB in use, then 11.4 GB asked for. */
static void build_rmm_1969(maker *m)
{
    enum { RUNS = 3, TABLES = 40 };
    for (int run = 0; run < RUNS; run++) {
        uint64_t tables[TABLES];
        maker_mark(m, "run");
        for (int i = 0; i < TABLES; i++) {
            const uint64_t scratch = take(m, 500000000);
            tables[i] = take(m, UINT64_C(61400000000) / TABLES);
            give(m, scratch);
        }
        give(m, take(m, 11400000000));
        for (int i = 0; i < TABLES; i++)
            give(m, tables[i]);
    }
}

/* What one stream has used and freed must serve another. */
static void build_rmm_2039(maker *m)
{
    enum { PIECES = 24 };
    for (uint64_t stream = 1; stream <= 2; stream++) {
        uint64_t pieces[PIECES];
        m->stream = stream;
        for (int i = 0; i < PIECES; i++)
            pieces[i] = take(m, GIB);
        for (int i = 0; i < PIECES; i++)
            give(m, pieces[i]);
    }
}

/* 53,514,136,688 bytes in use, the rest in holes just too small for 132,870,728. */
static void build_rmm_1245(maker *m)
{
    enum { TEETH = 234 };
    comb(m, TEETH, UINT64_C(53514136688) / TEETH, 132370000);
    take(m, 132870728);
}

static void build_rmm_496(maker *m)
{
    take(m, 8 * GIB);
    take(m, 8 * GIB);
}

/* ---- NVIDIA/cudf-spark ---- */

/* 9,319,438,848 bytes in use of 40 GB; 345,571,976 asked for. */
static void build_cudf_4045(maker *m)
{
    enum { GROUPS = 96, PARTS = 3 };
    uint64_t gone[GROUPS * PARTS];
    for (int i = 0; i < GROUPS; i++) {
        take(m, UINT64_C(9319438848) / GROUPS);
        for (int k = 0; k < PARTS; k++)
            gone[i * PARTS + k] = take(m, 106500000);
    }
    for (int i = 0; i < GROUPS * PARTS; i++)
        give(m, gone[i]);
    take(m, 345571976);
}

/* ---- pytorch ---- */

/* The large tensor's memory is cut by three survivors while it is free; the next iteration asks for
 * it again. */
static void build_pytorch_35901(maker *m)
{
    static const uint64_t survivors[] = {16515072, 11400192, 18191360};
    uint64_t rest = 499214336;
    for (size_t i = 0; i < sizeof survivors / sizeof survivors[0]; i++)
        rest -= survivors[i];
    take(m, rest);
    maker_mark(m, "iteration 1");
    give(m, take(m, 11643387904));
    for (size_t i = 0; i < sizeof survivors / sizeof survivors[0]; i++)
        take(m, survivors[i]);
    maker_mark(m, "iteration 2");
    give(m, take(m, 11643387904));
}

/* 54.14 GiB live of 79.35, 686.41 MiB refused. */
static void build_pytorch_110194(maker *m)
{
    enum { TEETH = 38 };
    comb(m, TEETH, (uint64_t)(54.14 * (double)GIB) / TEETH, 679 * MIB);
    take(m, (uint64_t)(686.41 * (double)MIB));
}

/* A block that another stream still uses is let go; after a wait it must serve the next request. */
static void build_pytorch_189504(maker *m)
{
    for (int round = 0; round < 3; round++) {
        const uint64_t id = take(m, 600 * MIB);
        maker_use(m, id, 1);
        maker_retire(m, id);
        m->now_ns += TICK_NS;
        maker_sync(m);
        maker_free(m, id);
    }
}

/* Batch N, then N + 1, over 56 layers: each layer's memory is a sliver too small. */
static void build_pytorch_96995(maker *m)
{
    enum { LAYERS = 56, BATCH = 32, TIMES = 4 };
    for (uint64_t batch = BATCH; batch <= BATCH + 1; batch++) {
        uint64_t activations[LAYERS];
        maker_mark(m, "iteration");
        for (int layer = 0; layer < LAYERS; layer++) {
            activations[layer] = take(m, batch * MIB);
            give(m, take(m, batch * TIMES * MIB));
        }
        for (int layer = LAYERS; layer-- > 0;)
            give(m, activations[layer]);
    }
}

/* ---- vllm, torchrec ---- */

/* Loading weights: 530 MiB for a moment, then 270 MiB kept, which lands in what was freed. */
static void build_vllm_41268(maker *m)
{
    for (int layer = 0; layer < 60; layer++) {
        give(m, take(m, 530 * MIB));
        take(m, 270 * MIB);
    }
}

/* A block of 16 GiB is freed and taken again in the middle of a step; a small one comes between. */
static void build_torchrec_4584(maker *m)
{
    enum { ACTIVATIONS = 16 };
    uint64_t activations[ACTIVATIONS];
    take(m, 29 * GIB);
    uint64_t table = take(m, 16 * GIB);
    for (int i = 0; i < ACTIVATIONS; i++)
        activations[i] = take(m, 2 * GIB);
    for (int step = 0; step < 4; step++) {
        maker_mark(m, "step");
        const int passing = 3 * step + 2;
        give(m, table);
        give(m, activations[passing]);
        activations[passing] = take(m, 2 * GIB);
        table = take(m, 16 * GIB);
    }
}

/* ---- llama.cpp, tensorflow ---- */

/* Each buffer is a little larger than all that were cached before it: 500 MB in all. */
static void build_llamacpp_22107(maker *m)
{
    uint64_t before = take(m, 2000000);
    for (uint64_t i = 1; i <= 218; i++) {
        const uint64_t next = take(m, 2000000 + i * 2800);
        give(m, before);
        before = next;
    }
    give(m, before);
}

/* 684.25 MiB are freed, a small tensor stays, and 1,026.94 MiB are asked for: the planner reused
 * the chunk for the small one and took another for the large. */
static void build_llamacpp_16788(maker *m)
{
    give(m, take(m, (uint64_t)(684.25 * (double)MIB)));
    take(m, MIB);
    take(m, (uint64_t)(1026.94 * (double)MIB));
}

/* 6.5 GiB are free, in three pieces between what stays. */
static void build_pieces(maker *m)
{
    comb(m, 3, 3 * GIB, 2 * GIB + GIB / 6);
}

static void build_tensorflow_43850(maker *m)
{
    build_pieces(m);
    take(m, (uint64_t)(5.81 * (double)GIB));
}

/* The same heap under a cap of 1 GB a piece: 6.09 GiB in all. */
static void build_tensorflow_43850_split(maker *m)
{
    build_pieces(m);
    for (int i = 0; i < 6; i++)
        take(m, (uint64_t)(6.09 * (double)GIB) / 6);
}

/* ---- the list ---- */

/* name, the report and what happened, memory that was there, builder */
#define LIST(X)                                                                                    \
    X("rmm-1969",                                                                                  \
      "rapidsai/rmm #1969: the same sequence three times, 61.4 of 84.6 GB, then 11.4 GB",          \
      84600000000, build_rmm_1969)                                                                 \
    X("rmm-2039", "rapidsai/rmm #2039: 24 GiB on one stream, then on another, of 40", 40 * GIB,    \
      build_rmm_2039)                                                                              \
    X("rmm-1245", "rapidsai/rmm #1245: 132,870,728 B refused with 53.5 of 84.5 GB in use",         \
      84490059776, build_rmm_1245)                                                                 \
    X("rmm-496", "rapidsai/rmm #496: a second 8 GiB on a card of 32,510 MiB", 32510 * MIB,         \
      build_rmm_496)                                                                               \
    X("cudf-4045", "NVIDIA/cudf-spark #4045: 345,571,976 B refused with 9.3 of 40 GB in use",      \
      40000000000, build_cudf_4045)                                                                \
    X("pytorch-35901", "pytorch #35901: survivors pin 11.6 GB; the same tensor fails next time",   \
      12142602240, build_pytorch_35901)                                                            \
    X("pytorch-110194", "pytorch #110194: 686 MiB refused with 54.14 of 79.35 GiB live",           \
      (uint64_t)(79.35 * (double)GIB), build_pytorch_110194)                                       \
    X("pytorch-189504", "pytorch #189504: a block pending on another stream, after a wait", GIB,   \
      build_pytorch_189504)                                                                        \
    X("pytorch-96995", "pytorch PR #96995: batch N, then N + 1, over 56 layers", 2100 * MIB,       \
      build_pytorch_96995)                                                                         \
    X("vllm-41268", "vllm PR #41268: 530 MiB for a moment, 270 MiB kept, sixty times",             \
      16800 * MIB, build_vllm_41268)                                                               \
    X("torchrec-4584", "meta-pytorch/torchrec #4584: 16 GiB freed and taken again, 77 of 77 GiB",  \
      77 * GIB, build_torchrec_4584)                                                               \
    X("llamacpp-22107", "llama.cpp #22107: each buffer a little larger than any before", 64000000, \
      build_llamacpp_22107)                                                                        \
    X("llamacpp-16788", "llama.cpp PR #16788: 684 MiB freed, a small one, then 1,027 MiB",         \
      (uint64_t)(1026.94 * (double)MIB) + MIB + 4096, build_llamacpp_16788)                        \
    X("tensorflow-43850", "tensorflow PR #43850: one heap of 5.81 GiB, 6.5 GiB free in pieces",    \
      15 * GIB + GIB / 2 + MIB, build_tensorflow_43850)                                            \
    X("tensorflow-43850-split", "tensorflow PR #43850: the same heap in pieces of 1 GB",           \
      15 * GIB + GIB / 2 + MIB, build_tensorflow_43850_split)

#define AS_CASE(name, summary, arena_bytes, build) {name, arena_bytes, build},
static const named_case cases[] = {LIST(AS_CASE)};
enum { CASES = sizeof cases / sizeof cases[0] };

static bool case_open(vram_source *source, vram_error *error)
{
    if (!vram_workload_check(source->path, NULL, error))
        return false;
    for (size_t i = 0; i < CASES; i++) {
        if (strcmp(cases[i].name, source->path) != 0)
            continue;
        maker *m = maker_open(source, sizeof *m, 1, error);
        if (m == NULL)
            return false;
        source->info->arena_bytes = cases[i].arena_bytes;
        cases[i].build(m);
        return true;
    }
    return vram_fail(error, "no case is called \"%s\"", source->path);
}

/* Everything was made by open. */
static bool case_step(void *self)
{
    (void)self;
    return false;
}

static vram_step case_next(vram_source *source, vram_raw *event, vram_error *error)
{
    return maker_next(source, case_step, event, error);
}

#define AS_WORKLOAD(case_name, case_summary, arena_bytes, build)                                   \
    {.format = {.name = case_name,                                                                 \
                .summary = case_summary,                                                           \
                .open = case_open,                                                                 \
                .next = case_next,                                                                 \
                .close = maker_close}},
static const vram_workload workloads[] = {LIST(AS_WORKLOAD)};

#define AS_INDEX(name, summary, arena_bytes, build) INDEX_##build,
enum { LIST(AS_INDEX) };
#define AS_POINTER(name, summary, arena_bytes, build) &workloads[INDEX_##build],
const vram_workload *const vram_cases[] = {LIST(AS_POINTER) NULL};
