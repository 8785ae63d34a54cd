/* peers.c - the workloads mix, dl and fixed are those with which other allocators were measured. */
#include "generate/peers.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

/* Opens the workload without a trace around it, so that its generator can be asked afterwards. */
static void check_draws(const vram_workload *workload, uint64_t ops, uint64_t peak_bytes,
                        uint64_t next_draw)
{
    enum { IDS = 16384 };
    static uint32_t live_bytes[IDS];
    vram_error error = {0};
    vram_trace_info info = {0};
    vram_source source = {.path = workload->format.name, .info = &info};
    cr_assert(workload->format.open(&source, &error), "%s", error.text);
    uint64_t count = 0, live = 0, peak = 0;
    for (vram_raw event; workload->format.next(&source, &event, &error) == VRAM_STEP_EVENT;
         count++) {
        cr_assert(lt(u64, event.id, IDS));
        cr_assert(eq(int, event.kind == VRAM_EVENT_ALLOC, live_bytes[event.id] == 0));
        live += event.size_bytes;
        live -= live_bytes[event.id];
        live_bytes[event.id] = (uint32_t)event.size_bytes;
        peak = live > peak ? live : peak;
    }
    cr_assert(eq(u64, count, ops), "%s", workload->format.name);
    cr_assert(eq(u64, peak, peak_bytes), "%s", workload->format.name);
    cr_assert(eq(u64, vram_peers_next_draw(&source), next_draw), "%s", workload->format.name);
    cr_assert(zero(u64, live), "all is freed in the end");
    workload->format.close(&source);
}

Test(peers, operations_peaks_and_the_draw_after_the_last_are_the_published_ones)
{
    check_draws(&vram_workload_mix, 2010146, 1375030945, 0xa1005be1b8f6e93f);
    check_draws(&vram_workload_dl, 2004000, 507516161, 0xd0c24e52069cd4e2);
    check_draws(&vram_workload_fixed, 2010042, 688128000, 0x1d96a9a86a220ee9);
}

Test(peers, a_workload_opens_like_a_file_and_again_from_its_start)
{
    vram_error error = {0};
    vram_trace *trace = NULL;
    cr_assert(vram_trace_open("generate:mix,ops=30000,live=100,seed=5", NULL, &trace, &error), "%s",
              error.text);
    cr_assert(eq(u64, vram_trace_info_of(trace)->unit_bytes, 256));
    vram_trace_summary first, second;
    cr_assert(vram_trace_summarise(trace, &first, &error), "%s", error.text);
    cr_assert(vram_trace_summarise(trace, &second, &error), "%s", error.text);
    cr_assert(zero(int, memcmp(&first, &second, sizeof first)));
    cr_assert(eq(u64, first.by_kind[VRAM_EVENT_ALLOC], first.by_kind[VRAM_EVENT_FREE]));
    cr_assert(le(u64, first.peak_live_blocks, 105));
    cr_assert(ge(u64, first.events, 30000));
    vram_trace_close(trace);
}

Test(peers, wrong_options_are_named)
{
    static const struct {
        const char *path, *said;
    } wrong[] = {
        {"generate:mixx", "mixx"},
        {"generate:mix,op=3", "no option 'op'; there is: ops, live, seed"},
        {"generate:mix,ops=many", "ops: "},
        {"generate:mix,live=3", "live=3 is out of range"},
        {"generate:dl,buffers=0", "buffers=0 is out of range"},
        {"generate:fixed,size=2GiB", "size=2147483648 is out of range"},
        {"generate:fixed,seed=0", "seed=0 is out of range"},
        {"generate:mix,ops", "ops: "},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        vram_error error = {0};
        vram_trace *trace = NULL;
        cr_assert(not(vram_trace_open(wrong[i].path, NULL, &trace, &error)), "%s", wrong[i].path);
        cr_assert(strstr(error.text, wrong[i].said) != NULL, "%s said: %s", wrong[i].path,
                  error.text);
    }
}
