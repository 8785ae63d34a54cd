/*
 * cmd_check.c - `vramlab check`: the conformance suite on one backend, and for what breaks a
 * minimal trace.
 *
 * Nothing of the backend runs in this process: a plug-in is loaded by the children that play, so
 * that whatever it does to them is a finding.
 */
#include "cli/command.h"
#include "cli/score.h"
#include "conformance/host_memory.h"
#include "conformance/reduce.h"

#include <vramlab/output.h>
#include <vramlab/registry.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct fields {
    const char *property;
    uint64_t acts;
    uint64_t seed;
    double silence_s;
    const char *memory;
    double reduce_s;
    const char *out;
    bool score;
    const char *format;
} fields;

static const option_row options[] = {
    {.name = "--property",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .offset = offsetof(fields, property),
     .help = "only this one"},
    {.name = "--acts",
     .kind = OPTION_COUNT,
     .value = "N",
     .offset = offsetof(fields, acts),
     .help = "calls made by random_steps (default 100000)"},
    {.name = "--seed",
     .kind = OPTION_COUNT,
     .value = "N",
     .offset = offsetof(fields, seed),
     .help = "of the random scripts (default 1)"},
    {.name = "--silence",
     .kind = OPTION_REAL,
     .value = "S",
     .offset = offsetof(fields, silence_s),
     .help = "seconds of the processor's time after which a call that has not returned is taken\n"
             "to hang (default 5)"},
    {.name = "--memory",
     .kind = OPTION_TEXT,
     .value = "SIZE",
     .offset = offsetof(fields, memory),
     .help = "host memory that the backend may take (default 2GiB)"},
    {.name = "--reduce",
     .kind = OPTION_REAL,
     .value = "S",
     .offset = offsetof(fields, reduce_s),
     .help = "seconds spent on making each failing sequence minimal (default 20)"},
    {.name = "--out",
     .kind = OPTION_TEXT,
     .value = "DIR",
     .offset = offsetof(fields, out),
     .help = "also write each minimal trace to DIR/PROPERTY.trace"},
    {.name = "--score",
     .kind = OPTION_FLAG,
     .offset = offsetof(fields, score),
     .help = "when all hold: space and speed beside the built-in backends, and a mark of 100"},
    {.name = "--format",
     .kind = OPTION_WORD,
     .words = "table|csv|json",
     .offset = offsetof(fields, format),
     .help = "table (default), csv or json on standard output"},
    {.name = NULL},
};

static int check_run(int count, char **arguments);

const command command_check = {
    .name = "check",
    .usage = "NAME|FILE.so [--property NAME] [--out DIR] [--score]",
    .summary = "whether an allocator keeps the contract, and if not, in how few calls it breaks it",
    .text = "Tries every property that a backend must have: no overlap, in bounds, aligned, every\n"
            "byte accounted for, stale blocks refused, full recovery, the same answers again, no\n"
            "leak, and more. The backend runs in a child process, so that a crash, a hang or a\n"
            "memory that grows without bounds is reported. What breaks a property is reduced to\n"
            "a minimal trace, printed with what was expected and what happened.\n\n"
            "  vramlab check ./mine.so\n"
            "  vramlab check buddy:min=64+reserve --acts 1000000\n"
            "  vramlab check ./mine.so --score\n\n"
            "Exit status 0: all hold; 1: one is broken; 2: there is no such backend.",
    .options = options,
    .run = check_run,
};

static const column columns[] = {
    {"backend", NULL, COLUMN_TEXT},
    {"property", "property", COLUMN_TEXT},
    {"outcome", "outcome", COLUMN_TEXT},
    {"acts", "calls", COLUMN_NUMBER},
    {"broken", NULL, COLUMN_TEXT},
    {"trace_acts", NULL, COLUMN_NUMBER},
    {"arena_bytes", NULL, COLUMN_NUMBER},
    {"seed", NULL, COLUMN_NUMBER},
    {"proves", "what it proves", COLUMN_TEXT},
    {"expected", NULL, COLUMN_TEXT},
    {"happened", NULL, COLUMN_TEXT},
    {"trace", NULL, COLUMN_TEXT},
};

/* A rule that has been broken, and by which properties again. */
typedef struct rule {
    char name[sizeof((vram_finding *)0)->broken];
    char again[512];
} rule;

/* One check of one backend. */
typedef struct check {
    fields given;
    const char *spec;
    vram_limits limits;
    vram_stage *stage;
    table *rows;
    FILE *report; /* what stands below the table */
    char *report_text;
    size_t report_bytes;
    uint32_t broken;
    rule told[16]; /* rules whose minimal trace has been shown */
    uint32_t told_count;
} check;

/* ---- what runs in the children ---- */

/* Only loads and parses: what the user wrote may be wrong. */
static vram_verdict load(vram_stage *stage, const void *context)
{
    (void)context;
    vram_error error = {""};
    stage_call(stage, "dlopen");
    if (vram_spec_is_valid(stage->spec, &error))
        return HOLDS;
    snprintf(stage->refusal, sizeof stage->refusal, "%.255s", error.text);
    return NOT_POSSIBLE;
}

typedef struct play_order {
    const vram_property *property;
    const fields *given;
} play_order;

static vram_verdict play(vram_stage *stage, const void *context)
{
    const play_order *order = context;
    return property_run(order->property, stage, &(vram_effort){.random_acts = order->given->acts},
                        order->given->seed);
}

/* ---- the report ---- */

/* False: it has been told, and the property is noted there. */
static bool tell_once(check *self, const char *broken, const vram_property *property)
{
    for (uint32_t i = 0; i < self->told_count; i++) {
        rule *told = &self->told[i];
        const size_t used = strlen(told->again);
        if (strcmp(told->name, broken) != 0)
            continue;
        snprintf(told->again + used, sizeof told->again - used, "%s%s", used > 0 ? ", " : "",
                 property->name);
        return false;
    }
    if (self->told_count < sizeof self->told / sizeof self->told[0])
        strcpy(self->told[self->told_count++].name, broken);
    return true;
}

/* The trace as text, its note first; the caller frees it. */
static char *trace_text(const check *self, const vram_property *property)
{
    const vram_finding *found = &self->stage->finding;
    char *note = NULL;
    char *text = NULL;
    size_t bytes = 0;
    if (asprintf(&note,
                 "vramlab check %s: %s, %s, in an arena of %" PRIu64 " bytes\nexpected: %s\n"
                 "happened: %s",
                 self->spec, property->name, found->broken, self->stage->script.arena_bytes,
                 found->expected, found->happened) < 0)
        abort();
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        abort();
    script_print(&self->stage->script, note, found->act, out);
    fclose(out);
    free(note);
    return text;
}

static bool save_trace(const check *self, const vram_property *property, const char *text,
                       vram_error *error)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s.trace", self->given.out, property->name) < 0)
        abort();
    vram_output output;
    bool saved = make_folder(self->given.out, error) && vram_output_open(&output, path, error);
    if (saved) {
        fputs(text, output.file);
        saved = vram_output_commit(&output, error);
    }
    free(path);
    return saved;
}

static void add_row(check *self, const vram_property *property, const char *outcome, uint64_t acts)
{
    table_row(self->rows);
    table_set(self->rows, "backend", "%s", self->spec);
    table_set(self->rows, "property", "%s", property->name);
    table_set(self->rows, "outcome", "%s", outcome);
    table_set(self->rows, "acts", "%" PRIu64, acts);
    table_set(self->rows, "seed", "%" PRIu64, self->given.seed);
    table_set(self->rows, "proves", "%s", property->proves);
}

/* A broken property: reduced, unless the same rule was before, and written down. */
static bool report_broken(check *self, const vram_property *property, uint64_t acts,
                          vram_error *error)
{
    vram_stage *stage = self->stage;
    self->broken++;
    add_row(self, property, "BROKEN", acts);
    const bool fresh = tell_once(self, stage->finding.broken, property);
    vram_reduction reduction = {.acts_had = stage->script.count};
    if (fresh)
        reduction = reduce_script(stage, property, &self->limits, self->given.reduce_s);
    const vram_finding *found = &stage->finding;
    table_set(self->rows, "broken", "%s", found->broken);
    table_set(self->rows, "arena_bytes", "%" PRIu64, stage->script.arena_bytes);
    table_set(self->rows, "expected", "%s", found->expected);
    table_set(self->rows, "happened", "%s", found->happened);
    if (!fresh)
        return true;
    fprintf(self->report, "\n%s: %s\n", property->name, found->broken);
    char *text = trace_text(self, property);
    table_set(self->rows, "trace_acts", "%" PRIu32, stage->script.count);
    table_set(self->rows, "trace", "%s", text);
    fprintf(self->report,
            "  expected  %s\n  happened  %s\n  %s trace: %" PRIu32 " of %" PRIu32
            " calls, arena %" PRIu64 " bytes\n\n%s",
            found->expected, found->happened, reduction.complete ? "minimal" : "shortened",
            stage->script.count, reduction.acts_had, stage->script.arena_bytes, text);
    const bool saved = self->given.out == NULL || save_trace(self, property, text, error);
    free(text);
    return saved;
}

static void show_pulse(const vram_stage *stage)
{
    (void)stage;
    progress_show(NULL, 0);
}

static bool check_property(check *self, const vram_property *property, vram_error *error)
{
    const uint64_t acts = self->stage->steps;
    const play_order order = {.property = property, .given = &self->given};
    progress_begin(property->name);
    const vram_verdict verdict = contained_do(self->stage, &self->limits, play, &order, show_pulse);
    progress_end();
    const uint64_t played = self->stage->steps - acts;
    const bool unwatched =
        strcmp(property->name, "no_host_memory") == 0 && !host_memory_is_watched();
    if (verdict == BROKEN)
        return report_broken(self, property, played, error);
    if (verdict == NOT_POSSIBLE && !unwatched) {
        self->broken++;
        fprintf(self->report, "\n%s: no arena could be had; the last answer was: %s\n",
                property->name, self->stage->refusal);
    }
    add_row(self, property,
            verdict == HOLDS         ? "holds"
            : verdict == NOT_OFFERED ? "not offered"
                                     : "not possible",
            played);
    return true;
}

/* ---- the command ---- */

static bool is_chosen(const check *self, const vram_property *property)
{
    return self->given.property == NULL || strcmp(self->given.property, property->name) == 0;
}

static int check_name(const fields *given)
{
    for (size_t i = 0; given->property != NULL; i++) {
        if (property_at(i) == NULL) {
            char names[512] = "";
            for (size_t k = 0; property_at(k) != NULL; k++)
                snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                         k > 0 ? ", " : "", property_at(k)->name);
            return fail_with(&command_check, "no property is called '%s'; there are: %s",
                             given->property, names);
        }
        if (strcmp(property_at(i)->name, given->property) == 0)
            break;
    }
    return -1;
}

/* False: the text names no backend, and that has been said. */
static bool can_be_loaded(check *self, int *status)
{
    const vram_verdict loaded = contained_do(self->stage, &self->limits, load, NULL, NULL);
    if (loaded == HOLDS)
        return true;
    *status = loaded == BROKEN ? fail_with(&command_check, "%s cannot even be loaded: %s",
                                           self->spec, self->stage->finding.happened)
                               : fail_with(&command_check, "%s", self->stage->refusal);
    return false;
}

/* As CSV or JSON there is one table: with --score that of the score, unless something is broken. */
static int write_report(check *self)
{
    const table_format format = table_format_of(self->given.format);
    fclose(self->report);
    self->report = NULL;
    const bool score = self->given.score && self->broken == 0;
    if (format == TABLE_TEXT || !score)
        table_write(self->rows, format, stdout);
    if (format == TABLE_TEXT) {
        fputs(self->report_text, stdout);
        for (uint32_t i = 0; i < self->told_count; i++)
            if (self->told[i].again[0] != '\0')
                printf("\n%s: the same in %s\n", self->told[i].name, self->told[i].again);
        if (self->broken == 0)
            printf("\n%s keeps the contract, as far as %" PRIu64 " calls can tell.\n", self->spec,
                   self->stage->steps);
        else
            printf("\n%s breaks the contract%s.\n", self->spec,
                   self->given.score ? ": no score" : "");
        if (score)
            putchar('\n');
    }
    vram_error error = {""};
    if (score && !score_write(self->spec, &self->limits, format, stdout, &error))
        return fail_with(&command_check, "%s", error.text);
    return self->broken == 0 ? EXIT_DONE : EXIT_NO;
}

static int check_backend(check *self)
{
    int status = EXIT_DONE;
    if (!can_be_loaded(self, &status))
        return status;
    self->report = open_memstream(&self->report_text, &self->report_bytes);
    if (self->report == NULL)
        return fail_with(&command_check, "out of host memory");
    vram_error error = {""};
    for (size_t i = 0; property_at(i) != NULL; i++)
        if (is_chosen(self, property_at(i)) && !check_property(self, property_at(i), &error))
            return fail_with(&command_check, "%s", error.text);
    return write_report(self);
}

static int check_run(int count, char **arguments)
{
    check self = {.given = {.acts = 100000,
                            .seed = 1,
                            .silence_s = 5,
                            .memory = "2GiB",
                            .reduce_s = 20,
                            .format = "table"}};
    vram_error error = {""};
    int status = options_read(&command_check, &count, arguments, &self.given);
    if (status < 0)
        status = check_name(&self.given);
    if (status >= 0)
        return status;
    if (count != 1)
        return fail_with(&command_check, "one backend is wanted: vramlab check %s",
                         command_check.usage);
    self.limits.silence_s = self.given.silence_s;
    if (!vram_parse_size(self.given.memory, 0, &self.limits.memory_bytes, &error))
        return fail_with(&command_check, "--memory: %s", error.text);
    if (!(self.limits.silence_s > 0) || !(self.given.reduce_s >= 0))
        return fail_with(&command_check, "--silence and --reduce are seconds, above 0");
    self.spec = arguments[0];
    self.stage = stage_new(self.spec);
    if (self.stage == NULL)
        return fail_with(&command_check, "'%.40s...' is too long, or the host is out of memory",
                         self.spec);
    self.rows = table_new(columns, sizeof columns / sizeof columns[0]);
    status = check_backend(&self);
    if (self.report != NULL)
        fclose(self.report);
    free(self.report_text);
    table_free(self.rows);
    stage_free(self.stage);
    return status;
}
