/*
 * command.c - the command as a person meets it: columns, files, and what wrong calls are told.
 */
#include "shell.h"

#include <sys/stat.h>
#include <unistd.h>

#define OOM "traces/data/oom_fragmented.pickle.gz"

/* Wrong calls, and a part of what each must be told. All exit 2 and print nothing that looks like a
 * result. */
static const struct {
    const char *arguments;
    const char *told;
} wrong_calls[] = {
    {"", "usage: vramlab COMMAND"},
    {"dance", "no command is called 'dance'"},
    {"compare", "one trace is expected"},
    {"compare " OOM " " OOM, "one trace is expected"},
    {"compare traces/data/no-such-file", "no-such-file"},
    {"compare README.md", "README.md"},
    {"compare traces/data", "traces/data"},
    {"compare /dev/null", "/dev/null"},
    {"compare " OOM " --arena", "--arena needs a value"},
    {"compare " OOM " --arena 3XiB", "unit 'XiB'"},
    {"compare " OOM " --arena 0", "out of range"},
    {"compare " OOM " --arena floppy:3GiB", "no kind of arena is called 'floppy'"},
    {"compare " OOM " --frobnicate", "no option is called '--frobnicate'"},
    {"compare " OOM " --format xml", "'xml' is none of table|csv|json"},
    {"compare " OOM " --backend liszt", "no backend is called 'liszt'; there are:"},
    {"compare " OOM " --backend list:policy=quickest", "none of first|next|best|worst"},
    {"compare " OOM " --backend list:polizei=best", "no option 'polizei'; it has: policy"},
    {"compare " OOM " --backend list:unit=3", "not a power of two"},
    {"compare " OOM " --backend list:unit=1,unit=2", "given twice"},
    {"compare " OOM " --backend ./no-such.so", "no-such.so"},
    {"compare " OOM " --backend list+list", "no layer is called 'list'"},
    {"compare " OOM " --device 7", "device"},
    {"compare " OOM " --out /dev/null/here", "--out"},
    {"fit " OOM " --step 7", "--step"},
    {"fit " OOM " --step abc", "'abc' is not a number"},
    {"heatmap", "a trace is expected"},
    {"heatmap " OOM " --backend list --compare buddy", "give one"},
    {"heatmap " OOM " --backend list --size 9x9", "9 x 9 pixels"},
    {"heatmap " OOM " --backend list --size big", "--size: 'big'"},
    {"heatmap " OOM " --backend list --by colour", "none of occupancy|size|age"},
    {"heatmap " OOM " --backend list --window 5", "--window: '5' is not a stretch"},
    {"heatmap " OOM " --backend list --window 9..5", "--window: '9..5' is empty"},
    {"heatmap " OOM " --backend list --addresses 2GiB..1GiB", "--addresses: '2GiB..1GiB' is empty"},
    {"heatmap " OOM " --backend list --addresses x..1GiB", "--addresses: 'x'"},
    {"heatmap " OOM " --backend list --dpi 99999", "--dpi"},
    {"view", "a trace is expected"},
    {"view " OOM " --backend list --at soon --screenshot x.png", "'soon' is no moment"},
    {"view " OOM " --backend list --size 5x5 --screenshot x.png", "5 x 5"},
    {"heatmap " OOM " --backend list -o /no/such/folder/f.png", "/no/such/folder/f.png"},
    {"trace", "usage: vramlab trace"},
    {"trace dance", "no subcommand is called 'dance'"},
    {"trace info", "a trace is expected"},
    {"list everything", "'everything' is not expected"},
    {"bench --arena cuda", "write its size too, such as cuda:8GiB"},
    {"bench --arena cuda:8GiB mix", "measures calls of its own"},
    {"bench --arena cuda:8GiB --threads 2", "--threads is not possible with --arena cuda"},
    {"bench --streams", "--streams needs real streams"},
    {"validate", "a recording is expected"},
    {"validate traces/data/no-such-file", "no-such-file: cannot open"},
    {"validate README.md", "this is not a memory snapshot of PyTorch"},
    {"validate tests", "is a folder"},
    {"validate " OOM " --cap 0", "--cap: '0' is no memory at all"},
    {"validate " OOM " --cap -5", "--cap: '-5' is not a size"},
    {"validate " OOM " --cap 80%", "a share is not possible here"},
    {"validate " OOM " --cut 1", "--cut: '1' leaves nothing"},
    {"validate " OOM " --cut nan", "--cut: 'nan' is not a share"},
    {"validate " OOM " --device 7", "it has no device 7"},
    {"validate " OOM " --device 4294967296", "'4294967296' is out of range"},
    {"validate " OOM " --device -1", "'-1' is not a whole number"},
};

Test(command, a_wrong_call_exits_2_and_is_told_what_would_be_right)
{
    for (size_t i = 0; i < sizeof wrong_calls / sizeof wrong_calls[0]; i++) {
        said *answer = vramlab("%s", wrong_calls[i].arguments);
        cr_expect(answer->status == 2, "vramlab %s: exit %d\n%s", wrong_calls[i].arguments,
                  answer->status, answer->text);
        cr_expect(strstr(answer->text, wrong_calls[i].told) != NULL, "vramlab %s:\n%s",
                  wrong_calls[i].arguments, answer->text);
        cr_expect(strstr(answer->text, "Verdict") == NULL);
        free(answer);
    }
}

Test(command, every_command_has_a_help_that_ends_well)
{
    static const char *const names[] = {"compare", "fit",        "heatmap", "view",
                                        "trace",   "trace info", "list"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        said *help = vramlab("%s --help", names[i]);
        cr_expect(help->status == 0, "%s", names[i]);
        cr_expect(strstr(help->text, "usage: vramlab") != NULL, "%s", help->text);
        free(help);
    }
    said *version = vramlab("--version");
    cr_expect(version->status == 0);
    free(version);
}

Test(command, compare_prints_a_row_a_backend_within_100_columns_and_a_verdict_last)
{
    said *table = vramlab("compare " OOM " --backend list:policy=best,buddy,naive");
    cr_assert(table->status == 0, "%s", table->text);
    cr_expect(strstr(table->text, "4,466 events") != NULL);
    cr_expect(strstr(table->text, "ran out of memory") != NULL);
    static const char *const rows[] = {"\nbackend", "\nlist:policy=best", "\nbuddy", "\nnaive",
                                       "\nPyTorch itself"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect(strstr(table->text, rows[i]) != NULL, "no row begins with %s", rows[i] + 1);
    bool in_table = false;
    const char *last = table->text;
    for (char *line = table->text; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        in_table = length > 0 && (in_table || strncmp(line, "backend", 7) == 0);
        cr_expect(!in_table || length <= 100, "%.*s", (int)length, line);
        last = line;
        line += length + (line[length] == '\n');
    }
    cr_expect(strncmp(last, "Verdict: 1 of 3 allocators would have survived", 46) == 0, "%s", last);
    free(table);
}

Test(command, compare_has_the_columns_that_scripts_rely_on)
{
    static const char *const columns[] = {
        "trace",
        "backend",
        "options",
        "arena_bytes",
        "outcome",
        "failed_event",
        "failed_bytes",
        "free_bytes",
        "largest_free_bytes",
        "reason",
        "peak_live_bytes",
        "peak_granted_bytes",
        "peak_extent_bytes",
        "smallest_arena_bytes",
        "no_failure_from_bytes",
        "internal_at_peak",
        "external_at_peak",
        "ns_per_op",
    };
    said *csv = vramlab("compare " OOM " --backend list --format csv");
    char text[256];
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        csv_field(csv->text, 1, columns[i], text);
    free(csv);
}

Test(command, compare_writes_whole_files_and_no_others)
{
    char folder[] = P_tmpdir "/vramlab-command-XXXXXX";
    cr_assert(mkdtemp(folder) != NULL);
    said *run =
        vramlab("compare " OOM " --quick --backend list --out %s/a/b && ls %s/a/b", folder, folder);
    cr_expect(run->status == 0, "%s", run->text);
    cr_expect(strstr(run->text, "compare.csv\ncompare.json\nheatmap-list.png\n") != NULL, "%s",
              run->text);
    cr_expect(strstr(run->text, ".part") == NULL, "%s", run->text);
    char line[256];
    snprintf(line, sizeof line, "rm -r %s", folder);
    cr_expect(system(line) == 0);
    free(run);
}

Test(command, verification_on_real_memory_finds_nothing_wrong)
{
    said *run = vramlab("compare traces/data/multi_stream.pickle.gz --verify --arena host:400MiB "
                        "--quick --backend list");
    cr_expect(run->status == 0, "%s", run->text);
    cr_expect(strstr(run->text, "Verdict: 1 of 1") != NULL, "%s", run->text);
    free(run);
}

Test(command, compare_answers_no_when_no_backend_completes)
{
    said *run = vramlab("compare " OOM " --quick --backend fixed,naive");
    cr_expect(run->status == 1, "%s", run->text);
    cr_expect(strstr(run->text, "Verdict: 0 of 2") != NULL, "%s", run->text);
    free(run);
}

Test(command, fit_answers_no_when_nothing_fits)
{
    said *run = vramlab("fit traces/data/bert_infer_varlen.pickle.gz --backend fixed:block=1MiB");
    cr_expect(run->status == 1, "%s", run->text);
    cr_expect(strstr(run->text, "does not fit") != NULL, "%s", run->text);
    free(run);
}
