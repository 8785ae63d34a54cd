/*
 * torch.c - the symbols that PyTorch calls, from many threads, on host memory and a runtime that
 * stands in: no byte is handed out that another stream may still use.
 */
#include "standin/cudart.h"

#include <vramlab/trace.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* What is loaded, as PyTorch would. */
static struct {
    void *(*malloc)(ssize_t size, int device, void *stream);
    void (*free)(void *pointer, ssize_t size, int device, void *stream);
    void (*record_stream)(void *pointer, void *stream);
    void (*empty_cache)(void);
    void (*stats)(char *text, size_t size);
    int (*stream_create)(void **stream, unsigned flags);
    void (*hold)(void *stream, int held);
    standin_counts (*count)(void);
} lib;

/* The library on this backend and arena, with nothing else of the caller's environment. */
static void load(const char *backend, const char *arena)
{
    static const char *const others[] = {"VRAMLAB_ON_FULL", "VRAMLAB_TRACE", "VRAMLAB_STATS",
                                         "VRAMLAB_FORCE", "STANDIN_BYTES"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        unsetenv(others[i]);
    setenv("VRAMLAB_CUDART", STANDIN, 1);
    setenv("VRAMLAB_BACKEND", backend, 1);
    setenv("VRAMLAB_ARENA", arena, 1);
    setenv("VRAMLAB_QUIET", "1", 1);
    void *library = dlopen(TORCH_LIBRARY, RTLD_NOW);
    void *runtime = dlopen(STANDIN, RTLD_NOW);
    cr_assert(library != NULL && runtime != NULL, "%s", dlerror());
    *(void **)(void *)&lib.malloc = dlsym(library, "vramlab_malloc");
    *(void **)(void *)&lib.free = dlsym(library, "vramlab_free");
    *(void **)(void *)&lib.record_stream = dlsym(library, "vramlab_record_stream");
    *(void **)(void *)&lib.empty_cache = dlsym(library, "vramlab_empty_cache");
    *(void **)(void *)&lib.stats = dlsym(library, "vramlab_stats");
    *(void **)(void *)&lib.stream_create = dlsym(runtime, "cudaStreamCreateWithFlags");
    *(void **)(void *)&lib.hold = dlsym(runtime, "standin_hold");
    *(void **)(void *)&lib.count = dlsym(runtime, "standin_count");
}

static void *new_stream(void)
{
    void *stream = NULL;
    cr_assert(eq(int, lib.stream_create(&stream, 1), 0));
    return stream;
}

/* A figure of the report. */
static uint64_t figure(const char *name)
{
    char text[2048];
    char key[64];
    lib.stats(text, sizeof text);
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = strstr(text, key);
    cr_assert(at != NULL, "%s in %s", name, text);
    return strtoull(at + strlen(key), NULL, 10);
}

Test(torch, one_stream_reuses_at_once)
{
    load("list", "host:64MiB");
    void *a = lib.malloc(1000, 0, NULL);
    cr_assert(ne(ptr, a, NULL));
    cr_expect(eq(u64, (uint64_t)(uintptr_t)a % 512, 0));
    lib.free(a, 1000, 0, NULL);
    cr_expect(eq(ptr, lib.malloc(1000, 0, NULL), a));
    cr_expect(eq(ptr, lib.malloc(0, 0, NULL), NULL));
    lib.free(NULL, 0, 0, NULL);
    cr_expect(eq(u64, figure("delayed"), 0));
    cr_expect(eq(u64, lib.count().events, 0));
}

Test(torch, a_block_of_one_stream_does_not_go_to_another_before_its_event)
{
    load("list", "host:64MiB");
    void *s = new_stream();
    void *t = new_stream();
    void *warm = lib.malloc(512, 0, t);
    void *a = lib.malloc(10 * MIB, 0, s);
    lib.hold(s, 1);
    lib.free(a, 10 * MIB, 0, s);
    void *b = lib.malloc(10 * MIB, 0, t);
    cr_expect(ne(ptr, b, a));                          /* s may still use it */
    cr_expect(eq(ptr, lib.malloc(10 * MIB, 0, s), a)); /* its own stream may have it */
    cr_expect(eq(u64, figure("reused"), 1));
    lib.free(a, 10 * MIB, 0, s);
    lib.hold(s, 0);
    cr_expect(eq(ptr, lib.malloc(10 * MIB, 0, t), a)); /* s is done */
    lib.free(warm, 512, 0, t);
}

/* Blocks were released at once while there was one stream: its work may be outstanding still. */
Test(torch, when_a_second_stream_appears_the_host_waits_for_the_first)
{
    load("list", "host:64MiB");
    void *s = new_stream();
    void *t = new_stream();
    lib.hold(s, 1);
    void *a = lib.malloc(10 * MIB, 0, s);
    lib.free(a, 10 * MIB, 0, s);
    cr_expect(eq(u64, figure("stream_waits"), 0));
    cr_expect(eq(ptr, lib.malloc(10 * MIB, 0, t), a));
    cr_expect(eq(u64, figure("stream_waits"), 1));
}

Test(torch, a_recorded_stream_keeps_the_block_also_from_its_own)
{
    load("list", "host:64MiB");
    void *s = new_stream();
    void *t = new_stream();
    void *a = lib.malloc(10 * MIB, 0, s);
    lib.record_stream(a, t);
    lib.record_stream(a, t);
    lib.record_stream(a, s);
    lib.hold(t, 1);
    lib.free(a, 10 * MIB, 0, s);
    cr_expect(ne(ptr, lib.malloc(10 * MIB, 0, s), a));
    lib.hold(t, 0);
    cr_expect(eq(ptr, lib.malloc(10 * MIB, 0, s), a));
}

Test(torch, when_only_pending_memory_would_fit_the_host_waits)
{
    load("list", "host:16MiB");
    void *s = new_stream();
    void *t = new_stream();
    void *a = lib.malloc(10 * MIB, 0, s);
    lib.record_stream(a, t);
    lib.hold(t, 1);
    lib.free(a, 10 * MIB, 0, s);
    cr_expect(eq(ptr, lib.malloc(12 * MIB, 0, t), a));
    cr_expect(eq(u64, figure("stream_waits"), 2)); /* the first when t appeared */
    cr_expect(eq(u64, figure("spilled"), 0));
}

Test(torch, what_does_not_fit_spills_to_the_driver_and_comes_back)
{
    load("list", "host:16MiB");
    void *a = lib.malloc(12 * MIB, 0, NULL);
    void *b = lib.malloc(8 * MIB, 0, NULL);
    cr_assert(b != NULL && b != a);
    memset(b, 1, 8 * MIB);
    cr_expect(eq(u64, figure("spilled"), 1));
    cr_expect(eq(u64, figure("peak_spilled_bytes"), 8 * MIB));
    lib.free(b, 8 * MIB, 0, NULL);
    cr_expect(eq(u64, lib.count().frees, 1));
    lib.free(a, 12 * MIB, 0, NULL);
    cr_expect(eq(u64, figure("live_bytes"), 0));
}

/* ------------------------------------------------------------------------------------------------
 * what it says */

/* What a process said on stderr, and how it ended. */
typedef struct heard {
    int status; /* exit status; 128 + signal when it died */
    char text[8192];
} heard;

static heard hear(void (*program)(void))
{
    heard self = {.status = -1};
    FILE *said = tmpfile();
    cr_assert(said != NULL);
    const pid_t child = fork();
    if (child == 0) {
        dup2(fileno(said), STDERR_FILENO);
        unsetenv("VRAMLAB_QUIET");
        program();
        exit(EXIT_SUCCESS);
    }
    int status = 0;
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    self.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    rewind(said);
    self.text[fread(self.text, 1, sizeof self.text - 1, said)] = '\0';
    fclose(said);
    return self;
}

static unsigned times_said(const heard *self, const char *what)
{
    unsigned count = 0;
    for (const char *at = self->text; (at = strstr(at, what)) != NULL; at += strlen(what))
        count++;
    return count;
}

static void ask_twice_for_too_much(void)
{
    lib.malloc(2 * MIB, 0, NULL);
    lib.malloc(2 * MIB, 0, NULL);
}

/* How it goes on and what it says, by what there is to spill to. */
static const struct {
    const char *on_full, *runtime, *card_bytes;
    int status;
    unsigned causes, spilled;
    const char *outcome;
} full_rows[] = {
    {"spill", STANDIN, "4294967296", 0, 1, 2, "taken from cudaMalloc (said once a cause)"},
    {"spill", STANDIN, "3145728", 128 + SIGABRT, 2, 1,
     "cudaMalloc: out of memory (2): the process"},
    {"spill", "", "0", 128 + SIGABRT, 1, 0, "there is no CUDA runtime to spill to: the process"},
    {"stop", STANDIN, "4294967296", 128 + SIGABRT, 1, 0, "VRAMLAB_ON_FULL=stop: the process"},
};

Test(torch, when_the_arena_is_full_it_says_what_became_of_the_request)
{
    for (size_t i = 0; i < sizeof full_rows / sizeof full_rows[0]; i++) {
        load("list", "host:1MiB");
        setenv("VRAMLAB_ON_FULL", full_rows[i].on_full, 1);
        setenv("VRAMLAB_CUDART", full_rows[i].runtime, 1);
        setenv("STANDIN_BYTES", full_rows[i].card_bytes, 1);
        const heard said = hear(ask_twice_for_too_much);
        char report[64];
        snprintf(report, sizeof report, ", %u spilled to cudaMalloc (", full_rows[i].spilled);
        cr_expect(eq(int, said.status, full_rows[i].status), "row %zu: %s", i, said.text);
        cr_expect(eq(uint, times_said(&said, "has no room for 2.00 MiB"), full_rows[i].causes));
        cr_expect(eq(uint, times_said(&said, full_rows[i].outcome), 1), "row %zu: %s", i,
                  said.text);
        cr_expect(eq(uint, times_said(&said, report), 1), "row %zu: %s", i, said.text);
        const unsigned taken = times_said(&said, "taken from cudaMalloc");
        cr_expect(eq(uint, taken, full_rows[i].spilled > 0), "row %zu: %s", i, said.text);
    }
}

static void work_and_ask_for_a_report(void)
{
    void *a = lib.malloc(1000, 0, NULL);
    lib.free(a, 1000, 0, NULL);
    raise(SIGUSR1);
    lib.malloc(1 * MIB, 0, NULL);
    lib.malloc(512, 0, NULL);
}

Test(torch, a_report_comes_with_the_first_call_after_the_signal_and_at_exit)
{
    load("list", "host:2MiB");
    const heard said = hear(work_and_ask_for_a_report);
    cr_expect(eq(int, said.status, 0));
    cr_expect(eq(uint, times_said(&said, "vramlab: list"), 2), "%s", said.text);
    cr_expect(eq(uint, times_said(&said, ": 1 allocations on 1 streams, peak live 1.00 KiB, "), 1));
    cr_expect(eq(uint, times_said(&said, ": 3 allocations on 1 streams, peak live 1.00 MiB, "), 1));
    cr_expect(eq(uint, times_said(&said, "needed 1.000 of peak live"), 2), "%s", said.text);
}

static void ask_for_little(void)
{
    lib.malloc(512, 0, NULL);
}

/* Settings, and what the process says of them as it ends. */
static const struct {
    const char *variable, *value, *told;
} wrong_settings[] = {
    {"VRAMLAB_BACKEND", "lisst", "VRAMLAB_BACKEND=lisst: no backend is called 'lisst'"},
    {"VRAMLAB_BACKEND", "list:policy=odd", "none of first|next|best|worst"},
    {"VRAMLAB_ARENA", "16GiB", "VRAMLAB_ARENA=16GiB: write KIND:SIZE"},
    {"VRAMLAB_ARENA", "host:70%", "VRAMLAB_ARENA=host:70%: '70%': a share is not possible here"},
    {"VRAMLAB_ARENA", "host:much", "VRAMLAB_ARENA=host:much: 'much' is not a size"},
    {"VRAMLAB_ARENA", "host:0", "VRAMLAB_ARENA=host:0:"},
    {"VRAMLAB_ARENA", "disk:1GiB", "no kind of arena is called 'disk'"},
    {"VRAMLAB_ARENA", "virtual:1GiB", "it has no bytes to hand out"},
    {"VRAMLAB_ARENA", "cuda:99%", "more than 80 % of the card"},
    {"VRAMLAB_ON_FULL", "pray", "VRAMLAB_ON_FULL=pray: write spill or stop"},
    {"VRAMLAB_CUDART", "/nowhere/cudart.so",
     "the CUDA runtime (/nowhere/cudart.so) cannot be loaded"},
};

Test(torch, a_wrong_setting_ends_the_process_and_is_named)
{
    for (size_t i = 0; i < sizeof wrong_settings / sizeof wrong_settings[0]; i++) {
        load("list", "host:1MiB");
        setenv(wrong_settings[i].variable, wrong_settings[i].value, 1);
        const heard said = hear(ask_for_little);
        cr_expect(eq(int, said.status, 128 + SIGABRT), "%s", said.text);
        cr_expect(eq(uint, times_said(&said, wrong_settings[i].told), 1), "%s=%s: %s",
                  wrong_settings[i].variable, wrong_settings[i].value, said.text);
    }
}

Test(torch, what_the_program_did_is_recorded)
{
    char path[] = P_tmpdir "/vramlab-torch-XXXXXX";
    const int file = mkstemp(path);
    cr_assert(file >= 0);
    close(file);
    load("tlsf", "cuda:64MiB");
    setenv("VRAMLAB_TRACE", path, 1);
    const pid_t child = fork();
    if (child == 0) {
        void *s = new_stream();
        void *a = lib.malloc(1000, 0, NULL);
        void *b = lib.malloc(2000, 0, s);
        lib.record_stream(b, NULL);
        lib.free(a, 1000, 0, NULL);
        exit(lib.malloc(3000, 0, NULL) == NULL || b == NULL);
    }
    int status = 1;
    waitpid(child, &status, 0);
    cr_assert(eq(int, status, 0));
    vram_trace *trace = NULL;
    vram_trace_summary summary;
    vram_error error = {""};
    cr_assert(vram_trace_open(path, NULL, &trace, &error) &&
                  vram_trace_summarise(trace, &summary, &error),
              "%s", error.text);
    cr_expect(eq(u64, summary.by_kind[VRAM_EVENT_ALLOC], 3));
    cr_expect(eq(u64, summary.by_kind[VRAM_EVENT_FREE], 1));
    cr_expect(eq(u64, summary.by_kind[VRAM_EVENT_USE], 1));
    cr_expect(eq(u64, summary.peak_live_bytes, 5000));
    vram_trace_close(trace);
    unlink(path);
}

/* ------------------------------------------------------------------------------------------------
 * many threads, each with a stream that is held now and then */

enum { THREADS = 6, ROUNDS = 3000, HELD = 24 };

/* Bytes that a stream may be using: live blocks, and freed ones while the stream is held. */
typedef struct claim {
    char *from, *to;
    void *stream; /* the only one that may have them again; NULL for live blocks: nobody */
} claim;

static struct {
    pthread_mutex_t lock;
    claim claims[THREADS * (HELD + 64)];
    size_t count;
    unsigned overlaps;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A thread was given [from, to) on its stream: does anybody else claim a byte of it? */
static void claim_bytes(char *from, size_t size, const void *stream)
{
    pthread_mutex_lock(&world.lock);
    for (size_t i = 0; i < world.count; i++) {
        const claim *c = &world.claims[i];
        if (from < c->to && c->from < from + size && c->stream != stream)
            world.overlaps++;
    }
    world.claims[world.count++] = (claim){from, from + size, NULL};
    pthread_mutex_unlock(&world.lock);
}

static void drop_claims(const char *from, const void *stream)
{
    for (size_t i = 0; i < world.count;) {
        const claim *c = &world.claims[i];
        if ((from != NULL && c->from == from && c->stream == NULL) ||
            (from == NULL && c->stream == stream))
            world.claims[i] = world.claims[--world.count];
        else
            i++;
    }
}

static uint32_t draw(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void *churn(void *number)
{
    uint32_t random = 2654435761u * (uint32_t)((uintptr_t)number + 1);
    void *stream = new_stream();
    char *held[HELD] = {NULL};
    size_t sizes[HELD] = {0};
    bool holds = false;
    for (int round = 0; round < ROUNDS; round++) {
        const uint32_t at = draw(&random) % HELD;
        if (draw(&random) % 32 == 0) {
            /* the claims go before the stream does what frees them */
            pthread_mutex_lock(&world.lock);
            if (holds)
                drop_claims(NULL, stream);
            pthread_mutex_unlock(&world.lock);
            holds = !holds;
            lib.hold(stream, holds);
        }
        if (held[at] == NULL) {
            sizes[at] = 1 + draw(&random) % 60000;
            held[at] = lib.malloc((ssize_t)sizes[at], 0, stream);
            if (held[at] != NULL) {
                claim_bytes(held[at], sizes[at], stream);
                memset(held[at], (int)(uintptr_t)number, sizes[at]);
            }
        } else {
            for (size_t i = 0; i < sizes[at]; i += 97)
                cr_assert(eq(int, held[at][i], (char)(uintptr_t)number));
            pthread_mutex_lock(&world.lock);
            drop_claims(held[at], NULL);
            if (holds && world.count < sizeof world.claims / sizeof world.claims[0] - THREADS)
                world.claims[world.count++] = (claim){held[at], held[at] + sizes[at], stream};
            pthread_mutex_unlock(&world.lock);
            lib.free(held[at], (ssize_t)sizes[at], 0, stream);
            held[at] = NULL;
        }
    }
    return NULL;
}

static void churn_on(const char *backend)
{
    load(backend, "host:256MiB");
    lib.malloc(512, 0, new_stream()); /* so that no thread's stream is ever the only one */
    lib.malloc(512, 0, new_stream());
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, churn, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_expect(eq(uint, world.overlaps, 0));
    cr_expect(eq(u64, figure("unknown_frees"), 0));
    cr_expect(eq(u64, figure("streams"), THREADS + 2));
    cr_expect(gt(u64, figure("delayed"), 1000));
}

Test(torch, threads_and_streams_never_share_a_byte_on_tlsf)
{
    churn_on("tlsf");
}

Test(torch, threads_and_streams_never_share_a_byte_on_list)
{
    churn_on("list");
}

Test(torch, threads_and_streams_never_share_a_byte_on_caching)
{
    churn_on("caching");
}
