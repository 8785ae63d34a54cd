/*
 * record.c - the recorder that is preloaded into a CUDA program, on a program and a runtime of
 * ours.
 */
#include <vramlab/trace.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

Test(record, every_call_of_a_threaded_program_is_in_the_trace)
{
    char path[] = P_tmpdir "/vramlab-record-XXXXXX";
    const int file = mkstemp(path);
    cr_assert(file >= 0);
    close(file);
    char line[2048];
    snprintf(line, sizeof line, "VRAMLAB_TRACE=%s LD_PRELOAD=%s %s", path, RECORD_LIBRARY, APP);
    cr_assert(eq(int, system(line), 0), "%s", line);
    vram_trace *trace = NULL;
    vram_trace_summary summary;
    vram_error error = {""};
    const vram_trace_options strict = {.strict = true};
    cr_assert(vram_trace_open(path, &strict, &trace, &error) &&
                  vram_trace_summarise(trace, &summary, &error),
              "%s", error.text);
    cr_expect(eq(u64, summary.by_kind[VRAM_EVENT_ALLOC], 4 * 100 + 2));
    cr_expect(eq(u64, summary.by_kind[VRAM_EVENT_FREE], 4 * 99 + 1));
    cr_expect(eq(u64, summary.by_kind[VRAM_EVENT_TRY], 1));
    cr_expect(eq(u64, summary.largest_try_bytes, UINT64_C(1) << 60));
    cr_expect(eq(u64, summary.live_at_end_blocks, 5));
    cr_expect(eq(u64, summary.live_at_end_bytes, 4 * 1000 + 6 + 6000));
    const vram_trace_info *info = vram_trace_info_of(trace);
    cr_expect(eq(u32, info->streams, 2));
    cr_expect(info->has_clock);
    vram_trace_close(trace);
    unlink(path);
}

Test(record, a_trace_that_cannot_be_written_does_not_stop_the_program)
{
    char line[2048];
    snprintf(line, sizeof line, "VRAMLAB_TRACE=/nowhere/x LD_PRELOAD=%s %s 2>/dev/null",
             RECORD_LIBRARY, APP);
    cr_expect(eq(int, system(line), 0));
}
