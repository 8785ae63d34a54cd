/*
 * check.c - `vramlab check` on plug-ins that are broken on purpose: each is caught, by the right
 * rule, with a trace of few calls.
 */
#include "shell.h"

#include <criterion/criterion.h>

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

Test(check, every_fault_is_caught_by_its_rule_in_few_calls, .timeout = 300)
{
    for (size_t i = 0; i < FAULTS; i++) {
        if (SANITIZED && (strstr("LEAKS GROWS THIRSTY CRASHES", faults[i].fault) != NULL))
            continue;
        said *run = vramlab("check '%s/lib%s.so' --property %s --memory 512MiB --silence 1",
                            PLUGINS, faults[i].fault, faults[i].property);
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

Test(check, the_sound_template_passes, .timeout = 300)
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
    char folder[] = "/tmp/vramlab-check-XXXXXX";
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
