/*
 * score.c - space and speed of a backend, as coursework is marked.
 *
 *   space   lower bound / smallest arena in which the workload completes: 1 is perfect
 *   speed   time of list best fit / own time, each the least of several passes, at most 1
 *   score   60 of space and 40 of speed, as geometric means over the workloads
 *
 * The weights are those of the malloc laboratory of CS:APP (Bryant and O'Hallaron), which measures
 * space in the same way and speed against the C library.
 */
#include "cli/score.h"

#include "study/stats.h"

#include <vramlab/driver.h>
#include <vramlab/registry.h>

#include <math.h>
#include <string.h>
#include <sys/mman.h>

enum { PASSES = 5, ROOMY = 4 }; /* times are taken in an arena of so many lower bounds */
static const char reference[] = "list";
static const double space_weight = 60;
static const double speed_weight = 40;
static const double step_share = 0.01;

static const struct {
    const char *name;
    const char *trace;
} workloads[] = {
    {"mix", "generate:mix,live=1000,ops=20000"},
    {"dl", "generate:dl,buffers=200,ops=20000"},
    {"fixed", "generate:fixed,live=1000,ops=20000"},
};
enum { WORKLOADS = sizeof workloads / sizeof workloads[0] };

/* A workload, read once; children inherit it. */
typedef struct workload {
    vram_trace *trace;
    vram_calls *calls;
    vram_profile profile;
    uint64_t bound_bytes;
} workload;

/* What a child measures, in memory that outlives it. */
typedef struct measure {
    double space[WORKLOADS]; /* 0: does not complete in any arena */
    double ns[WORKLOADS];    /* an operation */
    char trouble[256];
} measure;

typedef struct errand {
    const workload *workloads;
    measure *into;
} errand;

static bool open_workload(size_t index, workload *out, vram_error *error)
{
    vram_trace_summary summary;
    *out = (workload){.trace = NULL};
    if (!vram_trace_open(workloads[index].trace, NULL, &out->trace, error) ||
        !vram_trace_hold(out->trace, error) || !vram_trace_summarise(out->trace, &summary, error) ||
        !vram_profile_of(out->trace, &out->profile, error) ||
        !vram_calls_of(out->trace, &out->calls, error))
        return false;
    out->bound_bytes = summary.peak_live_unit_bytes;
    return true;
}

static void close_workloads(workload *all)
{
    for (size_t i = 0; i < WORKLOADS; i++) {
        vram_calls_free(all[i].calls);
        vram_trace_close(all[i].trace);
    }
}

/* ---- in the child ---- */

static void show_life(void *stage, double share)
{
    (void)share;
    stage_call(stage, "a replay");
}

static bool measure_space(vram_stage *stage, const workload *on, double *space, vram_error *error)
{
    const vram_fit_options how = {
        .spec = stage->spec,
        .lower_bound_bytes = on->bound_bytes,
        .step_share = step_share,
        .profile = &on->profile,
        .progress = show_life,
        .progress_context = stage,
    };
    vram_fit_result fit = {0};
    if (!vram_fit(on->trace, &how, &fit, error))
        return false;
    *space = fit.smallest_bytes > 0 ? (double)on->bound_bytes / (double)fit.smallest_bytes : 0;
    return true;
}

static bool measure_time(vram_stage *stage, const workload *on, double *ns, vram_error *error)
{
    const vram_config config = {
        .arena_bytes = on->bound_bytes * ROOMY,
        .unit_bytes = vram_trace_info_of(on->trace)->unit_bytes,
        .profile = &on->profile,
    };
    double least = INFINITY;
    for (int pass = 0; pass < PASSES; pass++) {
        vram_backend *backend;
        uint64_t refused = 0;
        stage_call(stage, "a timed replay");
        if (!vram_create_from_text(stage->spec, &config, &backend, error))
            return false;
        const uint64_t taken_ns = vram_calls_run(on->calls, backend, &refused);
        vram_destroy(backend);
        least = fmin(least, (double)taken_ns / (double)vram_calls_count(on->calls));
    }
    *ns = least;
    return true;
}

static vram_verdict measure_all(vram_stage *stage, const void *context)
{
    const errand *self = context;
    vram_error error = {""};
    for (size_t i = 0; i < WORKLOADS; i++)
        if (!measure_space(stage, &self->workloads[i], &self->into->space[i], &error) ||
            !measure_time(stage, &self->workloads[i], &self->into->ns[i], &error)) {
            snprintf(self->into->trouble, sizeof self->into->trouble, "%.255s", error.text);
            return NOT_POSSIBLE;
        }
    return HOLDS;
}

/* ---- the table ---- */

static const column columns[] = {
    {"backend", "backend", COLUMN_TEXT}, {"mix_space", "mix space", COLUMN_NUMBER},
    {"mix_ns", "ns", COLUMN_NUMBER},     {"dl_space", "dl space", COLUMN_NUMBER},
    {"dl_ns", "ns", COLUMN_NUMBER},      {"fixed_space", "fixed space", COLUMN_NUMBER},
    {"fixed_ns", "ns", COLUMN_NUMBER},   {"space", "space", COLUMN_NUMBER},
    {"speed", "speed", COLUMN_NUMBER},   {"score", "score", COLUMN_NUMBER},
};

static void set_number(table *rows, const char *name, const char *suffix, double value)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    table_set(rows, full, "%.4f", value);
    table_show(rows, full, "%.*f", value < 10 ? 3 : 1, value);
}

/* A workload that completes in no arena makes the mean, and so the score, 0. */
static double mean_of(const double *values)
{
    const double mean = vram_geomean(values, WORKLOADS);
    return isnan(mean) ? 0 : mean;
}

static void add_row(table *rows, const char *spec, const measure *own, const measure *beside)
{
    double speed[WORKLOADS];
    table_row(rows);
    table_set(rows, "backend", "%s", spec);
    for (size_t i = 0; i < WORKLOADS; i++) {
        speed[i] = fmin(1, beside->ns[i] / own->ns[i]);
        set_number(rows, workloads[i].name, "_space", own->space[i]);
        set_number(rows, workloads[i].name, "_ns", own->ns[i]);
    }
    const double space = mean_of(own->space);
    set_number(rows, "space", "", space);
    set_number(rows, "speed", "", mean_of(speed));
    set_number(rows, "score", "",
               space > 0 ? space_weight * space + speed_weight * mean_of(speed) : 0);
}

/* One stack in a child. False, with its message, when it cannot be measured. */
static bool measure_stack(const char *spec, const vram_limits *limits, const errand *how,
                          vram_error *error)
{
    *how->into = (measure){.trouble = ""};
    vram_stage *stage = stage_new(spec);
    if (stage == NULL)
        return vram_fail(error, "out of host memory");
    progress_begin(spec);
    const vram_verdict verdict = contained_do(stage, limits, measure_all, how, NULL);
    progress_end();
    const bool measured = verdict == HOLDS || vram_fail(error, "%s cannot be scored: %s", spec,
                                                        verdict == BROKEN ? stage->finding.happened
                                                                          : how->into->trouble);
    stage_free(stage);
    return measured;
}

static bool add_all(table *rows, const char *spec, const vram_limits *limits, const errand *how,
                    vram_error *error)
{
    if (!measure_stack(reference, limits, how, error))
        return false;
    const measure beside = *how->into;
    if (!measure_stack(spec, limits, how, error))
        return false;
    add_row(rows, spec, how->into, &beside);
    for (size_t i = 0; vram_registry_at(i) != NULL; i++) {
        const vram_ops *ops = vram_registry_at(i);
        if (ops->layer || ops->special)
            continue;
        if (!measure_stack(ops->name, limits, how, error))
            return false;
        add_row(rows, ops->name, how->into, &beside);
    }
    return true;
}

bool score_write(const char *spec, const vram_limits *limits, table_format format, FILE *out,
                 vram_error *error)
{
    workload all[WORKLOADS] = {{.trace = NULL}};
    errand how = {.workloads = all};
    how.into =
        mmap(NULL, sizeof *how.into, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (how.into == MAP_FAILED)
        return vram_fail(error, "out of host memory");
    table *rows = table_new(columns, sizeof columns / sizeof columns[0]);
    bool done = true;
    for (size_t i = 0; done && i < WORKLOADS; i++)
        done = open_workload(i, &all[i], error);
    done = done && add_all(rows, spec, limits, &how, error);
    if (done)
        table_write(rows, format, out);
    if (done && format == TABLE_TEXT)
        fprintf(out,
                "\nspace: lower bound over smallest arena; speed: time of %s over own, at most 1; "
                "score: %g of space, %g of speed\n",
                reference, space_weight, speed_weight);
    table_free(rows);
    close_workloads(all);
    munmap(how.into, sizeof *how.into);
    return done;
}
