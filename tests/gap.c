/*
 * gap.c - between reserved and requested memory, by cause and by culprit, in recordings of PyTorch.
 */
#include "validate/gap.h"

#include "open_recording.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static gap_report measure(const vram_snapshot *snapshot)
{
    gap_report gap;
    vram_error error = {""};
    cr_assert(gap_measure(snapshot, 0, &gap, &error), "%s", error.text);
    cr_expect(eq(u64,
                 gap.rounding_bytes + gap.pending_bytes + gap.held_bytes + gap.whole_bytes +
                     gap.other_stream_bytes,
                 gap.reserved_bytes - gap.requested_bytes));
    return gap;
}

Test(gap, the_parts_add_up_in_every_recording)
{
    static const char *const names[] = {
        "resnet50_train", "gpt2_train_varlen", "multi_stream",   "expandable_tight", "maxsplit_big",
        "gc06_churn",     "slow_streams",      "graphs_pending", "oom_fragmented",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        vram_snapshot *snapshot = open_recording(names[i]);
        if (snapshot == NULL)
            continue;
        gap_report gap = measure(snapshot);
        for (size_t k = 0; k < gap.segment_count; k++) {
            uint64_t held_bytes = 0;
            for (size_t p = 0; p < gap.segments[k].pin_count; p++)
                held_bytes += gap.pins[gap.segments[k].first_pin + p].size_bytes;
            cr_expect(ge(sz, gap.segments[k].pin_count, 1));
            cr_expect(eq(u64, held_bytes + gap.segments[k].free_bytes, gap.segments[k].size_bytes),
                      "%s", names[i]);
        }
        gap_free(&gap);
        vram_snapshot_close(snapshot);
    }
}

/* The figures of PyTorch's own message: 84.00 MiB could not be had, 2.96 GiB reserved. */
Test(gap, at_an_out_of_memory_it_is_what_pytorch_reported)
{
    vram_snapshot *snapshot = open_recording("oom_fragmented");
    if (snapshot == NULL)
        return;
    gap_report gap = measure(snapshot);
    cr_expect(gap.out_of_memory);
    cr_expect(eq(u64, gap.asked_bytes, 86738944));
    cr_expect(eq(u64, gap.segment_bytes, 88080384));
    cr_expect(eq(u64, gap.reserved_bytes, 3187671040 - 2 * 2097152)); /* two segments went back */
    cr_expect(eq(u64, gap.largest_free_bytes, 68929536));
    cr_expect(eq(u64, gap.held_bytes, 487717888 - 2 * 2097152));
    cr_expect(eq(u64, gap.whole_bytes, 0));
    cr_expect(eq(u64, gap.segments[0].free_bytes, 68929536));
    cr_expect(eq(u64, gap.pins[gap.segments[0].first_pin].event, 2417));
    gap_free(&gap);
    vram_snapshot_close(snapshot);
}

Test(gap, a_recorded_stack_names_who_holds_the_memory)
{
    vram_snapshot *snapshot = open_recording("unet_train_frames");
    if (snapshot == NULL)
        return;
    gap_report gap = measure(snapshot);
    const gap_pin *pin = &gap.pins[gap.segments[0].first_pin];
    cr_expect(ne(ptr, strstr(vram_snapshot_stack(snapshot, pin->frames), "adam.py"), NULL));
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    gap_print(&gap, snapshot, out);
    fclose(out);
    cr_expect(ne(ptr, strstr(text, "When it reserved most (event 4,072"), NULL), "%s", text);
    cr_expect(ne(ptr, strstr(text, "adam.py"), NULL), "%s", text);
    free(text);
    gap_free(&gap);
    vram_snapshot_close(snapshot);
}
