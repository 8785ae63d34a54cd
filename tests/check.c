/*
 * check.c - `vramlab check` on plug-ins that are broken on purpose: each is caught, by the right
 * rule, with a trace of few calls.
 */
#include "shell.h"

#include <criterion/criterion.h>
#include <math.h>

/* What plugins/broken.c is built as, and what must be found. */
static const struct {
    const char *fault;
    const char *property; /* that is asked about */
    const char *broken;
    int most_calls; /* of the minimal trace */
} faults[] = {
    {"OVERLAPS", "random_steps", "overlap", 5},
    {"MISALIGNED", "alignment", "alignment", 2},
    {"SHORT", "random_steps", "size", 1},
    {"OUTSIDE", "exhaustion", "bounds", 2},
    {"LEAKS", "host_memory", "leak", 2},
    {"CRASHES", "random_steps", "crash", 2},
    {"HANGS", "exhaustion", "hang", 2},
    {"GROWS", "exhaustion", "memory", 2},
    {"EXITS", "exhaustion", "exit", 2},
    {"STALE", "stale_blocks", "stale", 3},
    {"FORGETS", "random_steps", "conservation", 4},
    {"MISCOUNTS", "random_steps", "conservation", 4},
    {"CHECK_LIES", "random_steps", "check", 5},
    {"SPITEFUL", "random_steps", "refusal", 40},
    {"TIRED", "exhaustion", "recovery", 3},
    {"MOODY", "determinism", "determinism", 3},
    {"SCRIBBLES", "exhaustion", "answer", 2},
    {"THIRSTY", "no_host_memory", "crash", 66},
};
enum { FAULTS = sizeof faults / sizeof faults[0] };

static bool says(const said *run, const char *text)
{
    return strstr(run->text, text) != NULL;
}

/* Lines of the trace that are calls. */
static int calls_in(const char *text)
{
    int calls = 0;
    const char *line = strstr(text, "vramlab trace 1\n");
    while (line != NULL && (line = strchr(line, '\n')) != NULL) {
        line++;
        calls += strchr("afry", *line) != NULL && *line != '\0' && line[1] == ' ';
        calls += strncmp(line, "# release", 9) == 0;
    }
    return calls;
}

#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 }; /* host memory is the sanitizer's, and it dies in its own way */
#else
enum { SANITIZED = 0 };
#endif

Test(check, every_fault_is_caught_by_its_rule_in_few_calls)
{
    for (size_t i = 0; i < FAULTS; i++) {
        if (SANITIZED && (strstr("LEAKS GROWS THIRSTY CRASHES", faults[i].fault) != NULL))
            continue;
        const char *silence_s = strcmp(faults[i].broken, "hang") == 0 ? "1" : "30";
        said *run = vramlab("check '%s/lib%s.so' --property %s --memory 512MiB --silence %s "
                            "--reduce 100000",
                            PLUGINS, faults[i].fault, faults[i].property, silence_s);
        cr_expect(run->status == 1, "%s: exit %d\n%s", faults[i].fault, run->status, run->text);
        char rule[128];
        snprintf(rule, sizeof rule, "\n%s: %s\n", faults[i].property, faults[i].broken);
        cr_expect(says(run, rule), "%s: not %s\n%s", faults[i].fault, rule, run->text);
        cr_expect(says(run, "minimal trace"), "%s: not minimal\n%s", faults[i].fault, run->text);
        const int calls = calls_in(run->text);
        cr_expect(calls <= faults[i].most_calls, "%s: %d calls, not %d\n%s", faults[i].fault, calls,
                  faults[i].most_calls, run->text);
        free(run);
    }
}

Test(check, the_sound_template_passes)
{
    said *run = vramlab("check '%s/libNONE.so' --acts 20000", PLUGINS);
    cr_expect(run->status == 0, "exit %d\n%s", run->status, run->text);
    cr_expect(says(run, "keeps the contract"), "%s", run->text);
    free(run);
}

Test(check, what_cannot_be_checked_is_said)
{
    static const struct {
        const char *arguments;
        const char *says;
    } rows[] = {
        {"nothing", "no backend is called 'nothing'"},
        {"./absent.so", "./absent.so"},
        {"list:policy=luck", "policy"},
        {"list --property luck", "random_steps"},
        {"list --memory plenty", "--memory"},
        {"list --silence 0", "--silence"},
        {"", "one backend"},
        {"list buddy", "one backend"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        said *run = vramlab("check %s", rows[i].arguments);
        cr_expect(run->status == 2, "%s: exit %d\n%s", rows[i].arguments, run->status, run->text);
        cr_expect(says(run, rows[i].says), "%s: %s", rows[i].arguments, run->text);
        free(run);
    }
}

Test(check, the_minimal_trace_fails_in_compare_too)
{
    char folder[] = P_tmpdir "/vramlab-check-XXXXXX";
    cr_assert(mkdtemp(folder) != NULL);
    said *run = vramlab("check '%s/libOVERLAPS.so' --property random_steps --out %s --format csv",
                        PLUGINS, folder);
    cr_expect(run->status == 1, "%s", run->text);
    char arena[256];
    /* The fields with commas are quoted, and come later. */
    csv_field(run->text, 1, "arena_bytes", arena);
    said *replayed =
        vramlab("compare %s/random_steps.trace --backend '%s/libOVERLAPS.so' --arena %s "
                "--verify",
                folder, PLUGINS, arena);
    cr_expect(replayed->status == 2, "%s", replayed->text);
    cr_expect(says(replayed, "overlaps the live block"), "%s", replayed->text);
    free(run);
    free(replayed);
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_expect(system(command) == 0);
}

/* A number of a CSV row, named by its first field. */
static double scored(const char *csv, const char *backend, const char *column)
{
    const size_t length = strlen(backend);
    size_t row = 1;
    const char *line = strchr(csv, '\n');
    for (; line != NULL && line[1] != '\0'; line = strchr(line + 1, '\n'), row++)
        if (strncmp(line + 1, backend, length) == 0 && line[1 + length] == ',')
            return csv_number(csv, row, column);
    cr_assert(false, "no row of %s in:\n%s", backend, csv);
    return 0;
}

/* Commas within quotes are none to csv_field. */
static void blot_quoted_commas(char *csv)
{
    bool quoted = false;
    for (; *csv != '\0'; csv++) {
        quoted = quoted != (*csv == '"');
        if (quoted && *csv == ',')
            *csv = ';';
    }
}

Test(check, the_score_is_space_by_fit_and_speed_by_list)
{
    said *run = vramlab("check '%s/libNONE.so' --property alignment --score --format csv", PLUGINS);
    cr_assert(run->status == 0, "%s", run->text);
    said *fit = vramlab("fit generate:mix,live=1000,ops=20000 --backend buddy,list --step 0.01 "
                        "--format csv");
    cr_assert(fit->status == 0, "%s", fit->text);
    blot_quoted_commas(fit->text);
    const double buddy = csv_number(fit->text, 1, "smallest_ratio");
    const double list = csv_number(fit->text, 2, "smallest_ratio");
    cr_expect(fabs(scored(run->text, "buddy", "mix_space") - 1 / buddy) < 1e-3, "%s", run->text);
    cr_expect(fabs(scored(run->text, "list", "mix_space") - 1 / list) < 1e-3, "%s", run->text);
    static const char *const names[] = {"fixed", "buddy", "list", "tlsf"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const double space = scored(run->text, names[i], "space");
        const double speed = scored(run->text, names[i], "speed");
        cr_expect(space > 0 && space <= 1 && speed > 0 && speed <= 1, "%s", run->text);
        cr_expect(fabs(scored(run->text, names[i], "score") - 60 * space - 40 * speed) < 0.01);
    }
    cr_expect(strstr(run->text, "libNONE.so,") != NULL, "%s", run->text);
    free(run);
    free(fit);
    said *broken = vramlab("check '%s/libMISALIGNED.so' --property alignment --score", PLUGINS);
    cr_expect(broken->status == 1 && says(broken, "no score"), "%s", broken->text);
    free(broken);
}
