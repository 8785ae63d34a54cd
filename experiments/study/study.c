/*
 * study.c - reads study files, and numbers and names their cells.
 */
#include "study.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED_MARK "{seed}"

typedef struct reader {
    study *study;
    const char *path;
    size_t line;
    const char *section; /* NULL before the first */
    vram_error *error;
} reader;

static bool wrong(const reader *self, const char *found, const char *expected)
{
    return vram_fail(self->error, "%s:%zu: '%s': expected %s", self->path, self->line, found,
                     expected);
}

static bool no_memory(const reader *self)
{
    return vram_fail(self->error, "%s: out of host memory", self->path);
}

static char *trimmed(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}

static bool append(study_list *list, const char *text)
{
    if (!vram_reserve((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items))
        return false;
    list->items[list->count] = strdup(text);
    return list->items[list->count] != NULL && ++list->count > 0;
}

static void free_list(study_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
}

/* ---- [study] ---- */

static const char *const measures[] = {
    [STUDY_FIT] = "fit", [STUDY_REPLAY] = "replay", [STUDY_TIME] = "time"};

const char *study_measure_name(study_measure measure)
{
    return measures[measure];
}

static bool read_measure(const reader *self, const char *value)
{
    for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++)
        if (strcmp(measures[i], value) == 0) {
            self->study->measure = (study_measure)i;
            return true;
        }
    return wrong(self, value, "fit, replay or time");
}

static bool read_count(const reader *self, const char *value, uint64_t least, uint64_t *count)
{
    if (!vram_parse_count(value, count, NULL) || *count < least)
        return wrong(self, value, least > 0 ? "a number of at least 1" : "a number");
    return true;
}

static bool read_step(const reader *self, const char *value)
{
    double *const step = &self->study->step;
    if (!vram_parse_ratio(value, step, NULL) || *step <= 0 || *step > 1)
        return wrong(self, value, "a share above 0 and at most 1, such as 0.001");
    return true;
}

static bool read_text(const reader *self, const char *value, char **text)
{
    free(*text);
    *text = strdup(value);
    return *text != NULL || no_memory(self);
}

static bool read_seeds(const reader *self, char *value)
{
    char *rest = NULL;
    for (char *word = strtok_r(value, " \t", &rest); word != NULL;
         word = strtok_r(NULL, " \t", &rest)) {
        uint64_t seed;
        if (!read_count(self, word, 1, &seed))
            return false;
        if (!append(&self->study->seeds, word))
            return no_memory(self);
    }
    return true;
}

static bool read_flag(const reader *self, const char *value, bool *flag)
{
    *flag = strcmp(value, "on") == 0;
    return *flag || strcmp(value, "off") == 0 || wrong(self, value, "on or off");
}

static bool read_setting(const reader *self, char *line)
{
    char *const equals = strchr(line, '=');
    if (equals == NULL)
        return wrong(self, line, "KEY = VALUE");
    *equals = '\0';
    const char *key = trimmed(line);
    char *const value = trimmed(equals + 1);
    study *const into = self->study;
    if (strcmp(key, "title") == 0)
        return read_text(self, value, &into->title);
    if (strcmp(key, "measure") == 0)
        return read_measure(self, value);
    if (strcmp(key, "seeds") == 0)
        return read_seeds(self, value);
    if (strcmp(key, "repetitions") == 0)
        return read_count(self, value, 1, &into->repetitions);
    if (strcmp(key, "passes") == 0)
        return read_count(self, value, 1, &into->passes);
    if (strcmp(key, "jobs") == 0)
        return read_count(self, value, 1, &into->jobs);
    if (strcmp(key, "looks") == 0)
        return read_count(self, value, 1, &into->looks);
    if (strcmp(key, "step") == 0)
        return read_step(self, value);
    if (strcmp(key, "compact") == 0)
        return read_text(self, value, &into->compact);
    if (strcmp(key, "asks") == 0)
        return read_flag(self, value, &into->asks);
    return wrong(self, key,
                 "one of title, measure, seeds, repetitions, passes, jobs, looks, step, compact, "
                 "asks");
}

/* ---- lists ---- */

static bool is_generated(const char *trace)
{
    return strncmp(trace, "generate:", 9) == 0 || strncmp(trace, "case:", 5) == 0;
}

static bool add_trace(const reader *self, const char *line)
{
    const bool optional = line[0] == '?';
    const char *pattern = line + optional;
    if (is_generated(pattern))
        return append(&self->study->traces, pattern) || no_memory(self);
    glob_t found;
    const int status = glob(pattern, 0, NULL, &found);
    if (status == GLOB_NOMATCH)
        return optional ||
               wrong(self, pattern, "a file that exists, or a pattern that one matches");
    if (status != 0)
        return no_memory(self);
    bool kept = true;
    for (size_t i = 0; kept && i < found.gl_pathc; i++)
        kept = append(&self->study->traces, found.gl_pathv[i]);
    globfree(&found);
    return kept || no_memory(self);
}

static bool read_line(reader *self, char *line)
{
    static const char *const sections[] = {"study", "traces", "backends", "arenas"};
    const size_t length = strlen(line);
    if (line[0] == '[' && line[length - 1] == ']') {
        line[length - 1] = '\0';
        for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
            if (strcmp(sections[i], line + 1) == 0) {
                self->section = sections[i];
                return true;
            }
        return wrong(self, line + 1, "one of [study], [traces], [backends], [arenas]");
    }
    if (self->section == NULL)
        return wrong(self, line, "a section such as [study]");
    if (self->section == sections[0])
        return read_setting(self, line);
    if (self->section == sections[1])
        return add_trace(self, line);
    study_list *const list =
        self->section == sections[2] ? &self->study->backends : &self->study->arenas;
    return append(list, line) || no_memory(self);
}

static bool read_lines(reader *self, FILE *file)
{
    char *line = NULL;
    size_t capacity = 0;
    bool good = true;
    while (good && getline(&line, &capacity, file) >= 0) {
        self->line++;
        line[strcspn(line, "#")] = '\0';
        char *const text = trimmed(line);
        if (text[0] != '\0')
            good = read_line(self, text);
    }
    free(line);
    if (good && ferror(file))
        return vram_fail(self->error, "%s: %s", self->path, strerror(errno));
    return good;
}

/* ---- the whole ---- */

static bool is_whole(const reader *self)
{
    study *const into = self->study;
    if (into->traces.count == 0)
        return vram_fail(self->error, "%s: [traces] names none that is there", self->path);
    if (into->backends.count == 0)
        return vram_fail(self->error, "%s: [backends] is empty", self->path);
    if (into->measure == STUDY_FIT && into->arenas.count > 0)
        return vram_fail(self->error,
                         "%s: [arenas] means nothing to measure = fit, which looks for the "
                         "smallest: leave it out, or measure = replay",
                         self->path);
    if (into->measure != STUDY_FIT && into->arenas.count == 0)
        return vram_fail(self->error,
                         "%s: [arenas] is empty: expected sizes such as 110%% (of peak live) or "
                         "4GiB",
                         self->path);
    if (into->measure == STUDY_TIME && into->jobs == 0)
        into->jobs = 1; /* cells that run at once would disturb each other */
    if (into->seeds.count == 0 && !append(&into->seeds, "1"))
        return no_memory(self);
    return true;
}

bool study_load(const char *path, study *out, vram_error *error)
{
    *out = (study){.repetitions = 1, .passes = 5};
    reader self = {.study = out, .path = path, .error = error};
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return vram_fail(error, "%s: %s", path, strerror(errno));
    const char *slash = strrchr(path, '/');
    out->name = strdup(slash != NULL ? slash + 1 : path);
    if (out->name != NULL)
        out->name[strcspn(out->name, ".")] = '\0';
    const bool good =
        (out->name != NULL || no_memory(&self)) && read_lines(&self, file) && is_whole(&self);
    fclose(file);
    return good;
}

bool study_set_seeds(study *self, uint64_t count, vram_error *error)
{
    if (count == 0 || count > STUDY_MOST_SEEDS)
        return vram_fail(error, "%" PRIu64 " seeds: expected 1 to %d", count, STUDY_MOST_SEEDS);
    free_list(&self->seeds);
    self->seeds = (study_list){0};
    for (uint64_t seed = 1; seed <= count; seed++) {
        char text[24];
        snprintf(text, sizeof text, "%" PRIu64, seed);
        if (!append(&self->seeds, text))
            return vram_fail(error, "out of host memory");
    }
    return true;
}

void study_free(study *self)
{
    free_list(&self->traces);
    free_list(&self->backends);
    free_list(&self->arenas);
    free_list(&self->seeds);
    free(self->compact);
    free(self->title);
    free(self->name);
    *self = (study){0};
}

/* ---- cells ---- */

/* How many seeds a trace has cells for: one, when its name does not depend on the seed. */
static size_t seeds_of(const study *self, size_t trace)
{
    return strstr(self->traces.items[trace], SEED_MARK) != NULL ? self->seeds.count : 1;
}

static size_t cells_a_seed(const study *self)
{
    return (self->measure == STUDY_TIME ? 1 : self->backends.count) *
           (self->measure == STUDY_FIT ? 1 : self->arenas.count) * (size_t)self->repetitions;
}

size_t study_cells(const study *self)
{
    size_t count = 0;
    for (size_t i = 0; i < self->traces.count; i++)
        count += seeds_of(self, i) * cells_a_seed(self);
    return count;
}

static char *with_seed(const char *trace, const char *seed)
{
    const char *mark = strstr(trace, SEED_MARK);
    char *text = NULL;
    if (mark == NULL)
        return strdup(trace);
    if (asprintf(&text, "%.*s%s%s", (int)(mark - trace), trace, seed, mark + strlen(SEED_MARK)) < 0)
        return NULL;
    return text;
}

/* FNV-1a, 64 bits. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return (hash ^ 0xff) * UINT64_C(0x100000001b3); /* an end that no text holds */
}

static void name_cell(const study *self, const char *version, study_cell *cell)
{
    char settings[160];
    snprintf(settings, sizeof settings, "%s %" PRIu64 " %" PRIu64 " %.17g %d %" PRIu64,
             measures[self->measure], self->passes, self->looks, self->step, self->asks,
             cell->repetition);
    uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325), settings);
    hash = hash_text(hash, self->compact);
    hash = hash_text(hash, cell->trace);
    hash = hash_text(hash, cell->arena);
    hash = hash_text(hash, cell->seed);
    for (size_t i = 0; i < self->backends.count; i++)
        if (cell->backend == NULL || cell->backend == self->backends.items[i])
            hash = hash_text(hash, self->backends.items[i]);
    hash = hash_text(hash, version);
    snprintf(cell->name, sizeof cell->name, "%05zu-%016" PRIx64, cell->index, hash);
}

/* Takes the last digit of a number written in mixed radix. */
static size_t digit(size_t *number, size_t radix)
{
    const size_t value = *number % radix;
    *number /= radix;
    return value;
}

bool study_cell_at(const study *self, size_t index, const char *version, study_cell *out)
{
    size_t rest = index;
    size_t trace = 0;
    for (; rest >= seeds_of(self, trace) * cells_a_seed(self); trace++)
        rest -= seeds_of(self, trace) * cells_a_seed(self);
    *out = (study_cell){.index = index};
    out->repetition = digit(&rest, (size_t)self->repetitions) + 1;
    if (self->measure != STUDY_TIME)
        out->backend = self->backends.items[digit(&rest, self->backends.count)];
    if (self->measure != STUDY_FIT)
        out->arena = self->arenas.items[digit(&rest, self->arenas.count)];
    out->seed = self->seeds.items[rest];
    out->trace = with_seed(self->traces.items[trace], out->seed);
    if (out->trace == NULL)
        return false;
    name_cell(self, version, out);
    return true;
}

void study_cell_free(study_cell *cell)
{
    free(cell->trace);
    *cell = (study_cell){0};
}
