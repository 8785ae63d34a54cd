/*
 * cmd_bench.c - `vramlab bench`: what an operation costs, in one run for all backends.
 *
 * The backends take turns, pass by pass, so that a busy moment of the machine hits all of them, and
 * the backend `null` runs along: what it takes is the cost of the loop and the contract, and is
 * taken off in the column `net`.
 */
#include "cli/bench_device.h"
#include "cli/job.h"

#include "study/stats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct fields {
    job_fields job; /* first: the rows of JOB_OPTION_ROWS point into it */
    uint64_t repetitions;
    double seconds;
    bool no_percentiles;
    bool streams;
    const char *threads;
    const char *format;
} fields;

enum { THREAD_COUNTS = 16 };

/* How many threads are to be measured; none stands for a plain run. */
typedef struct thread_counts {
    uint32_t list[THREAD_COUNTS];
    size_t count;
} thread_counts;

static const option_row options[] = {
    JOB_OPTION_ROWS,
    {.name = "--arena",
     .kind = OPTION_TEXT,
     .value = "[KIND:]SIZE",
     .offset = offsetof(job_fields, arena),
     .help = "the arena (default 16GiB)"},
    {.name = "--repetitions",
     .alias = "-r",
     .kind = OPTION_COUNT,
     .value = "N",
     .offset = offsetof(fields, repetitions),
     .help = "passes over each workload (default 7)"},
    {.name = "--seconds",
     .kind = OPTION_REAL,
     .value = "S",
     .offset = offsetof(fields, seconds),
     .help = "a backend that has used so many seconds on a workload makes no further pass,\n"
             "and none with more threads (default 5)"},
    {.name = "--threads",
     .kind = OPTION_TEXT,
     .value = "N,N",
     .offset = offsetof(fields, threads),
     .help = "instead, so many threads at once on one backend, each with blocks of its own:\n"
             "1,2,4,8. The time is that of the whole over the operations of all threads.\n"
             "Default: every backend under the layer `locked`"},
    {.name = "--no-percentiles",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, no_percentiles),
     .help = "leave out the pass in which every call is timed by itself"},
    {.name = "--streams",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, streams),
     .help = "on --arena cuda: no times, but whether bytes are reused while another stream still\n"
             "reads them, on each backend without and with the layer `stream`"},
    {.name = "--format",
     .kind = OPTION_WORD,
     .words = "table|csv|json",
     .offset = offsetof(fields, format),
     .help = "table (default), csv or json on standard output"},
    {.name = NULL},
};

static int bench_run(int count, char **arguments);

const command command_bench = {
    .name = "bench",
    .usage = "[WORKLOAD|TRACE...] [--backend A,B]",
    .summary = "time an operation, of all backends in one run",
    .text =
        "Replays workloads (default: mix dl fixed) on every backend and tells the time an\n"
        "operation took: the least and the median over the passes, and of single calls the\n"
        "percentiles. The backend `null`, which does next to nothing, runs along; `net` is the\n"
        "least time above it.\n\n"
        "  vramlab bench\n"
        "  vramlab bench mix --backend tlsf,list:policy=best --repetitions 21\n"
        "  vramlab bench mix --backend tlsf+locked --threads 1,2,4,8\n"
        "  vramlab bench generate:mix,live=100000 job.pickle --format csv\n\n"
        "With --arena cuda:SIZE it measures on the card instead: the time of single calls on\n"
        "every backend and on cudaMalloc and cudaMallocAsync, of small and of large requests with\n"
        "the card idle, and with a kernel of 5 ms in flight; and how often the driver is "
        "called.\n\n"
        "  vramlab bench --arena cuda:8GiB\n"
        "  vramlab bench --arena cuda:64MiB --streams",
    .options = options,
    .run = bench_run,
};

static const column columns[] = {
    {"workload", "workload", COLUMN_TEXT},
    {"backend", NULL, COLUMN_TEXT},
    {"options", NULL, COLUMN_TEXT},
    {"stack", "backend", COLUMN_TEXT},
    {"threads", NULL, COLUMN_NUMBER},
    {"arena_bytes", NULL, COLUMN_NUMBER},
    {"operations", NULL, COLUMN_NUMBER},
    {"refused", "refused", COLUMN_NUMBER},
    {"repetitions", "passes", COLUMN_NUMBER},
    {"ns_per_op_min", "min", COLUMN_NUMBER},
    {"ns_per_op_median", "median", COLUMN_NUMBER},
    {"null_ns_per_op", NULL, COLUMN_NUMBER},
    {"net_ns_per_op", "net", COLUMN_NUMBER},
    {"alloc_p50_ns", "alloc p50", COLUMN_NUMBER},
    {"alloc_p99_ns", "p99", COLUMN_NUMBER},
    {"alloc_p999_ns", NULL, COLUMN_NUMBER},
    {"alloc_max_ns", "max", COLUMN_NUMBER},
    {"free_p50_ns", "free p50", COLUMN_NUMBER},
    {"free_p99_ns", "p99", COLUMN_NUMBER},
    {"free_p999_ns", NULL, COLUMN_NUMBER},
    {"free_max_ns", "max", COLUMN_NUMBER},
};

/* A backend in the race; the first is null. */
typedef struct runner {
    const char *spec;
    uint32_t threads; /* 0: none but our own, as is the case for null */
    vram_backend *backend;
    double *pass_ns; /* an operation, by pass */
    size_t passes;
    double spent_s;
    uint64_t refused;
    vram_latency alloc_ns, release_ns;
} runner;

typedef struct race {
    const fields *given;
    const thread_counts *threads;
    replay_job job;
    vram_calls *calls;
    runner *runners;
    size_t count;
} race;

/* The first is null; then each stack, with each number of threads. */
static size_t spec_of(const race *self, size_t index)
{
    return (index - 1) / (self->threads->count > 0 ? self->threads->count : 1);
}

static uint32_t threads_of(const race *self, size_t index)
{
    return self->threads->count > 0 ? self->threads->list[(index - 1) % self->threads->count] : 0;
}

/* null never reuses a byte: it gets the largest arena that there can be. */
static bool make_backend(const race *self, size_t index, vram_backend **out, vram_error *error)
{
    if (index == 0) {
        const vram_config config = {
            .arena_bytes = VRAM_ARENA_MAX,
            .unit_bytes = vram_trace_info_of(self->job.trace)->unit_bytes,
        };
        return vram_create_from_text("null", &config, out, error);
    }
    return job_backend(&self->job, spec_of(self, index), self->job.arena_bytes, out, error);
}

static bool prepare(race *self, vram_error *error)
{
    const size_t counts = self->threads->count > 0 ? self->threads->count : 1;
    self->count = self->job.spec_count * counts + 1;
    self->runners = calloc(self->count, sizeof *self->runners);
    if (self->runners == NULL)
        return vram_fail(error, "out of host memory");
    if (!vram_calls_of(self->job.trace, &self->calls, error))
        return false;
    if (vram_calls_count(self->calls) == 0)
        return vram_fail(error, "%s makes no calls: there is nothing to measure",
                         vram_trace_info_of(self->job.trace)->path);
    for (size_t i = 0; i < self->count; i++) {
        runner *at = &self->runners[i];
        at->spec = i == 0 ? "null" : self->job.specs[spec_of(self, i)];
        at->threads = i == 0 ? 0 : threads_of(self, i);
        at->pass_ns = calloc((size_t)self->given->repetitions, sizeof *at->pass_ns);
        if (at->pass_ns == NULL)
            return vram_fail(error, "out of host memory");
        if (!make_backend(self, i, &at->backend, error))
            return false;
    }
    return true;
}

/* *pass_ns is the time of an operation. */
static bool run_calls(race *self, runner *at, double *pass_ns, vram_error *error)
{
    const double calls = (double)vram_calls_count(self->calls);
    if (at->threads == 0) {
        *pass_ns = (double)vram_calls_run(self->calls, at->backend, &at->refused) / calls;
        at->spent_s += *pass_ns * calls * 1e-9;
        return true;
    }
    vram_threads_result result;
    if (!vram_calls_run_threads(self->calls, at->backend, at->threads, &result, error))
        return false;
    *pass_ns = result.seconds * 1e9 / (double)result.calls;
    at->refused = result.refused;
    at->spent_s += result.seconds;
    return true;
}

/* Its seconds are used up: its own, or before its first pass those of the same stack with fewer
 * threads, which would take longer still with more. */
static bool is_spent(const race *self, size_t index)
{
    const runner *at = &self->runners[index];
    if (at->passes > 0)
        return at->spent_s >= self->given->seconds;
    const runner *before = at - 1;
    return index > 1 && before->threads > 0 && before->threads < at->threads &&
           (before->passes == 0 ||
            before->spent_s / (double)before->passes >= self->given->seconds);
}

static bool run_passes(race *self, vram_error *error)
{
    const uint64_t repetitions = self->given->repetitions;
    for (uint64_t pass = 0; pass < repetitions; pass++)
        for (size_t i = 0; i < self->count; i++) {
            runner *at = &self->runners[i];
            progress_show(NULL,
                          ((double)pass + (double)i / (double)self->count) / (double)repetitions);
            if (is_spent(self, i))
                continue;
            if (!run_calls(self, at, &at->pass_ns[at->passes++], error))
                return false;
        }
    return true;
}

/* Each call timed by itself, on a fresh backend. */
static bool time_calls(race *self, size_t index, vram_error *error)
{
    vram_backend *backend;
    if (!make_backend(self, index, &backend, error))
        return false;
    const vram_replay_options replay = {
        .on_failure = VRAM_SKIP_FAILURES,
        .time_calls = true,
        .look_at_event = UINT64_MAX,
    };
    vram_replay_result result;
    const bool replayed = vram_replay(self->job.trace, backend, &replay, &result, error);
    vram_destroy(backend);
    self->runners[index].alloc_ns = result.alloc_ns;
    self->runners[index].release_ns = result.release_ns;
    return replayed;
}

static double least(const double *values, size_t count)
{
    return vram_quantile(values, count, 0);
}

static void add_time(table *rows, const char *name, double ns)
{
    table_set(rows, name, "%.3f", ns);
    table_show(rows, name, "%.1f", ns);
}

static void add_row(const race *self, table *rows, const char *workload, const runner *at)
{
    const runner *null = &self->runners[0];
    const double null_ns = least(null->pass_ns, null->passes);
    const double least_ns = least(at->pass_ns, at->passes);
    const size_t name_length = strcspn(at->spec, ":+");
    const bool is_null = at == null;
    table_row(rows);
    table_set(rows, "workload", "%s", workload);
    table_set(rows, "backend", "%.*s", (int)name_length, at->spec);
    table_set(rows, "options", "%s", at->spec + name_length + (at->spec[name_length] == ':'));
    table_set(rows, "stack", "%s", at->spec);
    if (at->threads > 0) {
        table_set(rows, "threads", "%u", at->threads);
        table_show(rows, "stack", "%s, %u threads", at->spec, at->threads);
    }
    table_set(rows, "arena_bytes", "%" PRIu64, at->backend->arena_bytes);
    table_set(rows, "operations", "%" PRIu64, vram_calls_count(self->calls));
    table_set(rows, "refused", "%" PRIu64, at->refused);
    table_set(rows, "repetitions", "%zu", at->passes);
    add_time(rows, "ns_per_op_min", least_ns);
    add_time(rows, "ns_per_op_median", vram_median(at->pass_ns, at->passes));
    add_time(rows, "null_ns_per_op", null_ns);
    if (at->threads == 0)
        add_time(rows, "net_ns_per_op", is_null ? 0 : least_ns - null_ns);
    table_latency(rows, "alloc", &at->alloc_ns);
    table_latency(rows, "free", &at->release_ns);
}

static void race_close(race *self)
{
    for (size_t i = 0; self->runners != NULL && i < self->count; i++) {
        vram_destroy(self->runners[i].backend);
        free(self->runners[i].pass_ns);
    }
    free(self->runners);
    vram_calls_free(self->calls);
    job_close(&self->job);
}

/* With threads, and no backends asked for: every backend under the layer that makes it safe. */
static bool lock_specs(replay_job *job, vram_error *error)
{
    for (size_t i = 0; i < job->spec_count; i++) {
        char *locked = NULL;
        if (asprintf(&locked, "%s+locked", job->specs[i]) < 0)
            return vram_fail(error, "out of host memory");
        free(job->specs[i]);
        job->specs[i] = locked;
    }
    return true;
}

static bool measure(race *self, vram_error *error)
{
    const bool threaded = self->threads->count > 0;
    if (threaded && self->given->job.backends == NULL && !lock_specs(&self->job, error))
        return false;
    if (!prepare(self, error) || !run_passes(self, error))
        return false;
    for (size_t i = 0; !threaded && !self->given->no_percentiles && i < self->count; i++)
        if (!time_calls(self, i, error))
            return false;
    return true;
}

static int bench_workload(const fields *given, const thread_counts *threads, const char *path,
                          table *rows)
{
    race self = {.given = given, .threads = threads};
    vram_error error;
    int status = job_open(&self.job, &command_bench, &given->job, path);
    if (status >= 0) {
        race_close(&self);
        return status;
    }
    const char *const generated = "generate:";
    const bool is_generated = strncmp(path, generated, strlen(generated)) == 0;
    const char *workload = is_generated ? path + strlen(generated) : file_name(path);
    progress_begin(workload);
    const bool done = measure(&self, &error);
    progress_end();
    for (size_t i = 0; done && i < self.count; i++)
        if (self.runners[i].passes > 0)
            add_row(&self, rows, workload, &self.runners[i]);
    status = done ? EXIT_DONE : fail_with(&command_bench, "%s", error.text);
    race_close(&self);
    return status;
}

/* Reads "1,2,4,8". */
static bool read_threads(const char *text, thread_counts *threads, vram_error *error)
{
    for (bool more = text != NULL; more;) {
        const size_t length = strcspn(text, ",");
        uint64_t count = 0;
        char word[8];
        if (length >= sizeof word || threads->count == THREAD_COUNTS)
            return vram_fail(error, "up to %d numbers of 1 to %d are allowed", THREAD_COUNTS,
                             VRAM_THREADS_MAX);
        memcpy(word, text, length);
        word[length] = '\0';
        if (!vram_parse_count(word, &count, error))
            return false;
        if (count < 1 || count > VRAM_THREADS_MAX)
            return vram_fail(error, "%s threads: 1 to %d are allowed", word, VRAM_THREADS_MAX);
        threads->list[threads->count++] = (uint32_t)count;
        more = text[length] == ',';
        text += length + more;
    }
    return true;
}

/* "mix" is the workload, unless there is such a file. */
static const char *path_of(const char *argument, char *text, size_t text_bytes)
{
    static const char *const short_names[] = {"mix", "dl", "fixed"};
    for (size_t i = 0; i < sizeof short_names / sizeof short_names[0]; i++)
        if (strcmp(argument, short_names[i]) == 0 && access(argument, F_OK) != 0) {
            snprintf(text, text_bytes, "generate:%s", argument);
            return text;
        }
    return argument;
}

static int bench_run(int count, char **arguments)
{
    static char *usual[] = {"mix", "dl", "fixed"};
    fields given = {
        .job = {.arena = "16GiB"},
        .repetitions = 7,
        .seconds = 5,
        .format = "table",
    };
    int status = options_read(&command_bench, &count, arguments, &given);
    if (status >= 0)
        return status;
    if (given.repetitions == 0 || given.repetitions > 10000)
        return fail_with(&command_bench, "--repetitions must be 1 to 10000");
    thread_counts threads = {.count = 0};
    vram_error error;
    if (!read_threads(given.threads, &threads, &error))
        return fail_with(&command_bench, "--threads: %s", error.text);
    const table_format format = table_format_of(given.format);
    if (strcmp(given.job.arena, "cuda") == 0)
        return fail_with(&command_bench, "--arena cuda: write its size too, such as cuda:8GiB");
    if (strncmp(given.job.arena, "cuda:", 5) == 0) {
        if (count != 0)
            return fail_with(&command_bench, "--arena cuda: measures calls of its own, no trace");
        if (given.threads != NULL)
            return fail_with(&command_bench, "--threads is not possible with --arena cuda");
        const bench_device_fields device = {.self = &command_bench,
                                            .arena = given.job.arena + 5,
                                            .backends = given.job.backends,
                                            .format = format};
        return given.streams ? bench_device_streams(&device) : bench_device(&device);
    }
    if (given.streams)
        return fail_with(&command_bench, "--streams needs real streams: --arena cuda:SIZE");
    if (count == 0) {
        arguments = usual;
        count = sizeof usual / sizeof usual[0];
    }
    table *rows = table_new(columns, sizeof columns / sizeof columns[0]);
    status = EXIT_DONE;
    for (int i = 0; status == EXIT_DONE && i < count; i++) {
        char text[32];
        status = bench_workload(&given, &threads, path_of(arguments[i], text, sizeof text), rows);
    }
    if (status == EXIT_DONE)
        table_write(rows, format, stdout);
    table_free(rows);
    return status;
}
