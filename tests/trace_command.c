/*
 * trace_command.c - `vramlab trace ...` as a user meets it: what it writes, says and exits with.
 */
#include "made_file.h"
#include "shell.h"

#include <unistd.h>

/* Runs the command, expects its exit status and a text in what it said. */
#define EXPECT(expected, says, ...)                                                                \
    do {                                                                                           \
        said *const answer = vramlab(__VA_ARGS__);                                                 \
        cr_expect_eq(answer->status, expected, "%d: %s", answer->status, answer->text);            \
        cr_expect_not_null(strstr(answer->text, says), "'%s' does not say '%s'", answer->text,     \
                           says);                                                                  \
        free(answer);                                                                              \
    } while (0)

Test(trace_command, convert_translates_and_tells_what_was_lost)
{
    const made_file stem = make_file("", 0);
    EXPECT(0, "14,010 events in 14,010 lines",
           "trace convert traces/data/multi_stream.pickle.gz -o %s.vt.gz", stem.path);
    EXPECT(0, "189  moments at which a block was let go", "trace convert %s.vt.gz -o %s.rep",
           stem.path, stem.path);
    EXPECT(0, "6,913  ids", "trace convert %s.vt.gz -o %s.csv --to minimalloc", stem.path,
           stem.path);
    EXPECT(0, "minimalloc", "trace info %s.csv", stem.path);
    EXPECT(0, "open it in ui.perfetto.dev",
           "trace convert case:vllm-41268 --export perfetto -b list -o %s.json", stem.path);
    static const char *const ends[] = {"", ".vt.gz", ".rep", ".csv", ".json"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", stem.path, ends[i]);
        cr_expect_eq(unlink(path), 0, "%s", path);
    }
}

Test(trace_command, wrong_calls_exit_with_2_and_say_what_is_right)
{
    EXPECT(2, "-o FILE", "trace convert traces/data/multi_stream.pickle.gz");
    EXPECT(2, "one trace and a file", "trace convert -o build/x.vt");
    EXPECT(2, "morse", "trace convert case:vllm-41268 -o build/x.vt --to morse");
    EXPECT(2, "go with --export", "trace convert case:vllm-41268 -o build/x.vt -b list");
    EXPECT(2, "name it with --backend",
           "trace convert case:vllm-41268 -o build/x --export perfetto");
    EXPECT(2, "none of the formats", "trace info traces/data/README.md");
    EXPECT(2, "raise the limit",
           "trace info traces/data/resnet50_train.pickle.gz --inflate-limit 64KiB");
    EXPECT(2, "is not a size", "trace info traces/data/resnet50_train.pickle.gz --inflate-limit x");
    EXPECT(2, "no workload is called \"morse\"", "trace generate morse");
    EXPECT(2, "there is no option 'colour'", "trace generate random,colour=3");
    EXPECT(2, "one workload is expected", "trace generate");
    EXPECT(2, "one trace is expected", "trace fit-model");
    EXPECT(2, "no subcommand is called 'paint'", "trace paint");
}

Test(trace_command, generate_tells_the_seed_and_writes_its_text_down)
{
    const made_file file = make_file("", 0);
    EXPECT(0, "seed         7 ", "trace generate random,allocs=100,seed=7");
    EXPECT(0, "200 events", "trace generate random,allocs=100,seed=7");
    EXPECT(0, "native", "trace generate random,allocs=100,seed=7 -o %s", file.path);
    size_t count;
    char *const text = bytes_of(file.path, &count);
    cr_expect_not_null(strstr(text, "\n# generate:random,allocs=100,seed=7\n"));
    free(text);
    EXPECT(0, "allocs       50 ", "trace generate --like %s allocs=50", file.path);
    EXPECT(0, "100 blocks, 0 never freed", "trace fit-model %s", file.path);
    EXPECT(0, "trace,of,count", "trace fit-model %s --format csv", file.path);
    drop_file(file);
}
