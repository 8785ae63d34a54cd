/*
 * cell.c - one cell of a study: a fit, a replay or a race, and its rows.
 */
#include "cli/cell.h"

#include "cli/job.h"
#include "study/machine.h"
#include "study/stats.h"

#include <vramlab/plan.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct cell_job {
    const command *which;
    const study *study;
    const study_cell *cell;
    replay_job job;
    table *rows;
    vram_error *error;
} cell_job;

static const column columns[] = {
    {"study", NULL, COLUMN_TEXT},
    {"cell", NULL, COLUMN_NUMBER},
    {"trace", NULL, COLUMN_TEXT},
    {"seed", NULL, COLUMN_NUMBER},
    {"repetition", NULL, COLUMN_NUMBER},
    {"measure", NULL, COLUMN_TEXT},
    {"stack", NULL, COLUMN_TEXT},
    {"backend", NULL, COLUMN_TEXT},
    {"options", NULL, COLUMN_TEXT},
    {"arena", NULL, COLUMN_TEXT},
    {"arena_bytes", NULL, COLUMN_NUMBER},
    {"outcome", NULL, COLUMN_TEXT},
    {"requests", NULL, COLUMN_NUMBER},
    {"served", NULL, COLUMN_NUMBER},
    {"served_ratio", NULL, COLUMN_NUMBER},
    {"failed_event", NULL, COLUMN_NUMBER},
    {"failed_bytes", NULL, COLUMN_NUMBER},
    {"free_bytes", NULL, COLUMN_NUMBER},
    {"largest_free_bytes", NULL, COLUMN_NUMBER},
    {"reason", NULL, COLUMN_TEXT},
    {"bound_bytes", NULL, COLUMN_NUMBER},
    {"recorded_reserved_bytes", NULL, COLUMN_NUMBER},
    {"recorded_span_ns", NULL, COLUMN_NUMBER},
    {"peak_live_bytes", NULL, COLUMN_NUMBER},
    {"peak_granted_bytes", NULL, COLUMN_NUMBER},
    {"peak_extent_bytes", NULL, COLUMN_NUMBER},
    {"smallest_arena_bytes", NULL, COLUMN_NUMBER},
    {"smallest_ratio", NULL, COLUMN_NUMBER},
    {"no_failure_from_bytes", NULL, COLUMN_NUMBER},
    {"no_failure_ratio", NULL, COLUMN_NUMBER},
    {"failures_between", NULL, COLUMN_NUMBER},
    {"internal_at_peak", NULL, COLUMN_NUMBER},
    {"external_at_peak", NULL, COLUMN_NUMBER},
    {"bookkeeping_bytes", NULL, COLUMN_NUMBER},
    {"operations", NULL, COLUMN_NUMBER},
    {"ns_per_op", NULL, COLUMN_NUMBER},
    {"null_ns_per_op", NULL, COLUMN_NUMBER},
    {"net_ns_per_op", NULL, COLUMN_NUMBER},
    {"run", NULL, COLUMN_TEXT},
    {"commit", NULL, COLUMN_TEXT},
    {"compiler", NULL, COLUMN_TEXT},
    {"cpu", NULL, COLUMN_TEXT},
    {"gpu", NULL, COLUMN_TEXT},
    {"driver", NULL, COLUMN_TEXT},
};

table *cell_table(void)
{
    return table_new(columns, sizeof columns / sizeof columns[0]);
}

static void set_count(table *rows, const char *name, uint64_t value)
{
    table_set(rows, name, "%" PRIu64, value);
}

enum { RUN_TEXT = 128 };

/* Where the cell ran and when: times may only be compared when this is the same. */
static void name_run(char text[RUN_TEXT])
{
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    snprintf(text, RUN_TEXT, "%s-%ld-%lld", host, (long)getpid(), (long long)time(NULL));
}

/* Begins a row with all that does not depend on the measure. */
static void begin_row(const cell_job *self, const char *spec)
{
    const machine here = machine_here();
    const vram_trace_info *info = vram_trace_info_of(self->job.trace);
    const size_t name_length = strcspn(spec, ":+");
    table *const rows = self->rows;
    table_row(rows);
    table_set(rows, "study", "%s", self->study->name);
    set_count(rows, "cell", self->cell->index);
    table_set(rows, "trace", "%s", file_name(self->cell->trace));
    table_set(rows, "seed", "%s", self->cell->seed);
    set_count(rows, "repetition", self->cell->repetition);
    table_set(rows, "measure", "%s", study_measure_name(self->study->measure));
    table_set(rows, "stack", "%s", spec);
    table_set(rows, "backend", "%.*s", (int)name_length, spec);
    table_set(rows, "options", "%s", spec + name_length + (spec[name_length] == ':'));
    set_count(rows, "bound_bytes", self->job.summary.peak_live_unit_bytes);
    set_count(rows, "recorded_reserved_bytes", info->recorded.peak_reserved_bytes);
    if (info->has_clock)
        set_count(rows, "recorded_span_ns", self->job.summary.last_ns - self->job.summary.first_ns);
    if (self->cell->arena != NULL) {
        table_set(rows, "arena", "%s", self->cell->arena);
        set_count(rows, "arena_bytes", self->job.arena_bytes);
    }
    table_set(rows, "commit", "%s", here.commit);
    table_set(rows, "compiler", "%s", here.compiler);
    table_set(rows, "cpu", "%s", here.cpu);
    table_set(rows, "gpu", "%s", here.gpu);
    table_set(rows, "driver", "%s", here.driver);
}

/* ---- fit ---- */

static uint64_t bound_of(const cell_job *self)
{
    return self->study->asks ? self->job.summary.peak_with_try_unit_bytes
                             : self->job.summary.peak_live_unit_bytes;
}

static void add_fit_row(const cell_job *self, const char *spec, const vram_fit_result *fit)
{
    table *const rows = self->rows;
    begin_row(self, spec);
    table_set(rows, "outcome", "%s", fit->smallest_bytes > 0 ? "fits" : "does not fit");
    set_count(rows, "bound_bytes", bound_of(self));
    if (fit->below.reason != VRAM_REASON_NONE)
        table_set(rows, "reason", "%s", vram_reason_name(fit->below.reason));
    if (fit->smallest_bytes == 0)
        return;
    const double bound = bound_of(self) > 0 ? (double)bound_of(self) : 1;
    set_count(rows, "smallest_arena_bytes", fit->smallest_bytes);
    table_set(rows, "smallest_ratio", "%.6f", (double)fit->smallest_bytes / bound);
    set_count(rows, "no_failure_from_bytes", fit->no_failure_from_bytes);
    table_set(rows, "no_failure_ratio", "%.6f", (double)fit->no_failure_from_bytes / bound);
    set_count(rows, "failures_between", fit->anomalies);
}

static bool is_bound(const char *backend)
{
    return strcmp(backend, "offline") == 0 || strcmp(backend, "two-ended") == 0;
}

/* The arena that the best plan, or placement by hints, needs. */
static bool run_bound(const cell_job *self)
{
    const bool offline = strcmp(self->cell->backend, "offline") == 0;
    vram_plan_block *blocks = NULL;
    size_t count = 0;
    if (!vram_plan_blocks_of(self->job.trace, self->study->asks, &blocks, &count, self->error))
        return false;
    const vram_plan_options how = {.looks = self->study->looks};
    vram_plan plan = {.height_bytes = 0};
    uint64_t needed_bytes = 0;
    bool done;
    if (offline) {
        done = vram_plan_make(blocks, count, &how, &plan, self->error);
        needed_bytes = plan.height_bytes;
    } else {
        done = vram_plan_two_ended(blocks, count, bound_of(self), &needed_bytes, self->error);
    }
    free(blocks);
    if (!done)
        return false;
    const vram_fit_result reached = {.smallest_bytes = needed_bytes,
                                     .no_failure_from_bytes = needed_bytes};
    add_fit_row(self, self->cell->backend, &reached);
    if (offline)
        table_set(self->rows, "options", "%s", plan.method);
    return true;
}

static bool run_fit(const cell_job *self)
{
    const vram_fit_options how = {
        .spec = self->job.specs[0],
        .lower_bound_bytes = bound_of(self),
        .step_share = self->study->step,
        .tries = self->study->asks,
        .compact = self->job.compact,
        .profile = &self->job.profile,
    };
    vram_fit_result fit = {0};
    if (!vram_fit(self->job.trace, &how, &fit, self->error))
        return false;
    add_fit_row(self, self->job.specs[0], &fit);
    return true;
}

/* ---- replay ---- */

static void add_replay_row(const cell_job *self, const vram_replay_result *replay)
{
    table *const rows = self->rows;
    const vram_look *look = replay->look.taken ? &replay->look : &replay->failure_look;
    begin_row(self, self->job.specs[0]);
    table_set(rows, "outcome", "%s", replay->completed ? "completes" : "fails");
    set_count(rows, "requests", replay->requests);
    set_count(rows, "served", replay->served);
    if (replay->requests > 0)
        table_set(rows, "served_ratio", "%.6f", (double)replay->served / (double)replay->requests);
    set_count(rows, "peak_live_bytes", replay->peak_live_bytes);
    set_count(rows, "peak_granted_bytes", replay->peak_granted_bytes);
    set_count(rows, "peak_extent_bytes", replay->peak_extent_bytes);
    set_count(rows, "bookkeeping_bytes", replay->bookkeeping_bytes);
    if (look->taken) {
        table_set(rows, "internal_at_peak", "%.6f", vram_look_internal(look));
        table_set(rows, "external_at_peak", "%.6f", vram_look_external(look));
    }
    if (replay->completed)
        return;
    set_count(rows, "failed_event", replay->first_failure_event);
    set_count(rows, "failed_bytes", replay->first_failure.size_bytes);
    set_count(rows, "free_bytes", replay->failure.free_bytes);
    set_count(rows, "largest_free_bytes", replay->failure.largest_free_bytes);
    table_set(rows, "reason", "%s", vram_reason_name(replay->failure.reason));
}

static bool run_replay(const cell_job *self)
{
    vram_backend *backend = NULL;
    if (!job_backend(&self->job, 0, self->job.arena_bytes, &backend, self->error))
        return false;
    const vram_replay_options how = {
        .on_failure = VRAM_SKIP_FAILURES,
        .compact = job_compaction(&self->job, backend),
        .look_at_event = self->job.summary.peak_event,
    };
    vram_replay_result replay;
    const bool done = vram_replay(self->job.trace, backend, &how, &replay, self->error);
    vram_destroy(backend);
    if (done)
        add_replay_row(self, &replay);
    return done;
}

/* ---- time ---- */

/* One pass over the calls on a fresh backend; null gets all there is, as it never reuses a byte. */
static bool time_pass(const cell_job *self, vram_calls *calls, size_t index, double *ns,
                      uint64_t *refused)
{
    const bool is_null = index == self->job.spec_count;
    const vram_config config = {.arena_bytes = VRAM_ARENA_MAX, .unit_bytes = 1};
    vram_backend *backend = NULL;
    if (is_null ? !vram_create_from_text("null", &config, &backend, self->error)
                : !job_backend(&self->job, index, self->job.arena_bytes, &backend, self->error))
        return false;
    *ns = (double)vram_calls_run(calls, backend, refused) / (double)vram_calls_count(calls);
    vram_destroy(backend);
    return true;
}

/* All backends and null take turns, pass by pass; ns[backend] is the least of its passes. */
static bool race(const cell_job *self, vram_calls *calls, double *ns, uint64_t *refused)
{
    for (uint64_t pass = 0; pass < self->study->passes; pass++)
        for (size_t i = 0; i <= self->job.spec_count; i++) {
            double pass_ns;
            if (!time_pass(self, calls, i, &pass_ns, &refused[i]))
                return false;
            if (pass == 0 || pass_ns < ns[i])
                ns[i] = pass_ns;
        }
    return true;
}

static void add_time_rows(const cell_job *self, uint64_t operations, const double *ns,
                          const uint64_t *refused)
{
    const double null_ns = ns[self->job.spec_count];
    char run[RUN_TEXT]; /* one for all rows, however the clock moves on meanwhile */
    name_run(run);
    for (size_t i = 0; i < self->job.spec_count; i++) {
        begin_row(self, self->job.specs[i]);
        table_set(self->rows, "outcome", "%s", refused[i] == 0 ? "completes" : "fails");
        set_count(self->rows, "operations", operations);
        table_set(self->rows, "ns_per_op", "%.3f", ns[i]);
        table_set(self->rows, "null_ns_per_op", "%.3f", null_ns);
        table_set(self->rows, "net_ns_per_op", "%.3f", ns[i] - null_ns);
        table_set(self->rows, "run", "%s", run);
    }
}

static bool run_time(const cell_job *self)
{
    const size_t count = self->job.spec_count + 1;
    vram_calls *calls = NULL;
    double *ns = calloc(count, sizeof *ns);
    uint64_t *refused = calloc(count, sizeof *refused);
    bool done = ns != NULL && refused != NULL;
    if (!done)
        vram_fail(self->error, "out of host memory");
    done = done && vram_calls_of(self->job.trace, &calls, self->error);
    if (done && vram_calls_count(calls) == 0)
        done = vram_fail(self->error, "%s makes no calls: there is nothing to time",
                         self->cell->trace);
    done = done && race(self, calls, ns, refused);
    if (done)
        add_time_rows(self, vram_calls_count(calls), ns, refused);
    vram_calls_free(calls);
    free(refused);
    free(ns);
    return done;
}

/* ---- the cell ---- */

static bool measure(const cell_job *self)
{
    switch (self->study->measure) {
    case STUDY_FIT:
        return is_bound(self->cell->backend) ? run_bound(self) : run_fit(self);
    case STUDY_REPLAY:
        return run_replay(self);
    case STUDY_TIME:
        return run_time(self);
    }
    return false;
}

/* The stacks of the cell as --backend takes them. */
static char *backends_of(const study *of, const study_cell *cell)
{
    if (cell->backend != NULL)
        return strdup(is_bound(cell->backend) ? "null" : cell->backend);
    char *text = strdup("");
    for (size_t i = 0; text != NULL && i < of->backends.count; i++) {
        char *longer = NULL;
        if (asprintf(&longer, "%s%s%s", text, i > 0 ? "," : "", of->backends.items[i]) < 0)
            longer = NULL;
        free(text);
        text = longer;
    }
    return text;
}

int cell_run(const command *which, const study *of, const study_cell *cell, table *rows)
{
    vram_error error = {""};
    cell_job self = {.which = which, .study = of, .cell = cell, .rows = rows, .error = &error};
    char *backends = backends_of(of, cell);
    if (backends == NULL)
        return fail_with(which, "out of host memory");
    const job_fields fields = {.arena = cell->arena, .backends = backends, .compact = of->compact};
    int status = job_open(&self.job, which, &fields, cell->trace);
    if (status < 0)
        status = measure(&self) ? EXIT_DONE : fail_with(which, "%s: %s", cell->trace, error.text);
    job_close(&self.job);
    free(backends);
    return status;
}
