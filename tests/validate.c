/*
 * validate.c - recordings of PyTorch 2.11 replayed on the model of its allocator.
 *
 * The figures are those that PyTorch itself reported when the recordings were made
 * (torch.cuda.memory_stats). A recording that is not there is skipped, and said to be.
 */
#include "validate/validate.h"

#include "open_recording.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static validate_report replay_with(const vram_snapshot *snapshot, validate_options how)
{
    validate_report report;
    vram_error error = {""};
    cr_assert(validate_recording(snapshot, &how, &report, &error), "%s", error.text);
    return report;
}

typedef struct expected {
    const char *name;
    uint64_t cap_bytes; /* 0: none was set */
    uint64_t allocations, segment_events, out_of_memory, retries;
    uint64_t peak_allocated_bytes, peak_reserved_bytes;
} expected;

static const expected recordings[] = {
    {"resnet50_train", 0, 4546, 127, 0, 0, 4457134080, 5813305344},
    {"gpt2_train_varlen", 0, 12218, 232, 0, 0, 13673592320, 17039360000},
    {"bert_infer_varlen", 0, 36618, 30, 0, 0, 569905152, 1027604480},
    {"video_pipeline_mixed", 0, 2176, 8, 0, 0, 3542667776, 3808428032},
    {"multi_stream", 0, 6910, 38, 0, 0, 292466688, 492830720},
    {"unet_train_frames", 0, 4951, 50, 0, 0, 1160672768, 1606418432},
    {"oom_fragmented", 3 * GIB, 1467, 63, 1, 1, 2898949120, 3187671040},
    {"expandable_gpt2", 0, 3897, 109, 0, 0, 9273841664, 9326034944},
    {"roundup4_bert", 0, 5310, 22, 0, 0, 345244672, 452984832},
    {"maxsplit64_churn", 3 * GIB, 3161, 75, 0, 0, 2200761344, 3070230528},
    {"gc06_churn", 4 * GIB, 2628, 98, 2, 2, 3819149824, 4259315712},
    {"slow_streams", 0, 1501, 31, 0, 0, 332729344, 658505728},
    {"cuda_graphs", 0, 461, 15, 0, 0, 164395008, 188743680},
    {"churn_tight", GIB, 4156, 85, 1, 4, 944605696, 1063256064},
    {"expandable_tight", 2 * GIB, 3167, 382, 4, 16, 1974793728, 2143289344},
    {"maxsplit_big", 3 * GIB, 2599, 809, 3, 23, 3111470592, 3221225472},
    {"multi_release", GIB, 3087, 146, 2, 15, 840178688, 1073741824},
    {"graphs_pending", 0, 209, 51, 0, 0, 210325504, 272629760},
    {"zero_and_edges", 0, 25, 11, 0, 0, 137366016, 150994944},
};
enum { RECORDINGS = sizeof recordings / sizeof recordings[0] };

static void check_report(const expected *row, const validate_report *report)
{
    cr_expect(report->exact, "%s: event %llu: %s", row->name,
              (unsigned long long)report->difference_event, report->difference);
    const struct {
        const char *what;
        uint64_t got, wanted;
    } figures[] = {
        {"allocations", report->allocations.recorded, row->allocations},
        {"allocations equal", report->allocations.equal, row->allocations},
        {"segment events", report->segment_events.recorded, row->segment_events},
        {"segment events equal", report->segment_events.equal, row->segment_events},
        {"out of memory", report->out_of_memory.recorded, row->out_of_memory},
        {"out of memory equal", report->out_of_memory.equal, row->out_of_memory},
        {"out of memory of the model", report->model.out_of_memory, row->out_of_memory},
        {"retries", report->model.retries, row->retries},
        {"peak allocated", report->model.allocated_peak_bytes, row->peak_allocated_bytes},
        {"peak reserved", report->model.reserved_peak_bytes, row->peak_reserved_bytes},
        {"final blocks", report->final_blocks.equal, report->final_blocks.recorded},
    };
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        cr_expect(eq(u64, figures[i].got, figures[i].wanted), "%s: %s", row->name, figures[i].what);
}

Test(validate, nineteen_recordings_are_reproduced_to_the_byte)
{
    for (size_t i = 0; i < RECORDINGS; i++) {
        vram_snapshot *snapshot = open_recording(recordings[i].name);
        if (snapshot == NULL)
            continue;
        const validate_report inferred = replay_with(snapshot, (validate_options){.device = 0});
        check_report(&recordings[i], &inferred);
        if (recordings[i].cap_bytes != 0) {
            const validate_report given =
                replay_with(snapshot, (validate_options){.cap_bytes = recordings[i].cap_bytes});
            check_report(&recordings[i], &given);
            cr_expect(le(u64, inferred.reserved_least_bytes, recordings[i].cap_bytes));
            cr_expect(gt(u64, inferred.refused_least_bytes, recordings[i].cap_bytes));
        }
        vram_snapshot_close(snapshot);
    }
}

Test(validate, cut_recordings_are_rebuilt_and_replay_in_full)
{
    unsigned whole = 0;
    unsigned tried = 0;
    for (size_t i = 0; i < 7; i++) {
        vram_snapshot *snapshot = open_recording(recordings[i].name);
        for (int tenths = 1; snapshot != NULL && tenths <= 9; tenths++) {
            const validate_report report =
                replay_with(snapshot, (validate_options){.cut_share = tenths / 10.0});
            cr_expect(report.exact, "%s cut at %d0 %%: event %llu: %s", recordings[i].name, tenths,
                      (unsigned long long)report.difference_event, report.difference);
            whole += report.exact;
            tried++;
        }
        vram_snapshot_close(snapshot);
    }
    cr_log_info("%u of %u cuts replay in full", whole, tried);
}

Test(validate, recordings_of_others_whose_history_is_cut_replay_in_full)
{
    static const char *const names[] = {
        "LfieLike_my_snapshot",
        "Wedsonlin_medium_128_inference_memory_snapshot",
        "Wedsonlin_medium_128_training_memory_snapshot",
        "bolongcheng_memory_snapshot_xl_fwd_cl128_dtypetorch.float32",
        "bolongcheng_memory_snapshot_xl_fwd_cl512_dtypetorch.bfloat16",
        "cranberrii_memory_snapshot",
        "kkaitlyn111_memory_ctx128_forward",
        "kkaitlyn111_memory_ctx256_forward_mixed",
        "silmont2000_mem_snapshot",
        "silmont2000_memory_forward_bf16_128",
        "silmont2000_memory_forward_fp32_128",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        vram_snapshot *snapshot = open_recording(names[i]);
        if (snapshot == NULL)
            continue;
        const validate_report report = replay_with(snapshot, (validate_options){.device = 0});
        cr_expect(report.exact, "%s: event %llu: %s", names[i],
                  (unsigned long long)report.difference_event, report.difference);
        vram_snapshot_close(snapshot);
    }
}

/* ------------------------------------------------------------------------------------------------
 * a recording that PyTorch did not write is found out */

/* The smallest recording, with its events and blocks open to change. */
typedef struct forged {
    vram_snapshot *original;
    vram_snapshot snapshot;
    vram_snapshot_event *events;
    vram_snapshot_block *blocks;
    vram_snapshot_device device;
} forged;

static void *copied(const void *bytes, size_t size_bytes)
{
    void *copy = malloc(size_bytes + 1);
    cr_assert(ne(ptr, copy, NULL));
    return memcpy(copy, bytes, size_bytes);
}

static bool forge(forged *self)
{
    self->original = open_recording("zero_and_edges");
    if (self->original == NULL)
        return false;
    self->snapshot = *self->original;
    self->events =
        copied(self->original->events, self->original->event_count * sizeof *self->events);
    self->blocks =
        copied(self->original->blocks, self->original->block_count * sizeof *self->blocks);
    self->device = self->original->devices[0];
    self->snapshot.events = self->events;
    self->snapshot.blocks = self->blocks;
    self->snapshot.devices = &self->device;
    return true;
}

static void unforge(forged *self)
{
    free(self->events);
    free(self->blocks);
    vram_snapshot_close(self->original);
}

/* The n-th event of a kind. */
static size_t event_of(const forged *self, vram_snapshot_action action, size_t n)
{
    size_t i = 0;
    while (self->events[i].action != action || n-- > 0)
        i++;
    return i;
}

static void expect_difference(const forged *self, size_t event, const char *said)
{
    const validate_report report = replay_with(&self->snapshot, (validate_options){.device = 0});
    cr_expect(not(report.exact));
    cr_expect(eq(u64, report.difference_event, event), "%s", report.difference);
    cr_expect(ne(ptr, strstr(report.difference, "recorded: "), NULL), "%s", report.difference);
    cr_expect(ne(ptr, strstr(report.difference, said), NULL), "%s", report.difference);
}

Test(validate, a_block_elsewhere_is_a_difference)
{
    forged f;
    if (!forge(&f))
        return;
    const size_t at = event_of(&f, VRAM_SNAPSHOT_ALLOC, 7);
    const uint64_t address = f.events[at].address;
    for (size_t i = at; i < f.device.event_count; i++) /* its releases too */
        f.events[i].address += f.events[i].address == address ? 512 : 0;
    expect_difference(&f, at, "the model: a block at 0x");
    unforge(&f);
}

Test(validate, another_segment_size_is_a_difference)
{
    forged f;
    if (!forge(&f))
        return;
    const size_t at = event_of(&f, VRAM_SNAPSHOT_SEGMENT_ALLOC, 1);
    f.events[at].size_bytes += 2 * MIB;
    expect_difference(&f, at, "the model: segment_alloc of");
    unforge(&f);
}

Test(validate, a_segment_that_is_not_needed_is_a_difference)
{
    forged f;
    if (!forge(&f))
        return;
    /* the second allocation fits into the first one's segment: claim that it took another */
    const size_t at = event_of(&f, VRAM_SNAPSHOT_ALLOC, 1);
    const size_t after = f.device.event_count++ - at;
    f.events = realloc(f.events, f.device.event_count * sizeof *f.events);
    cr_assert(ne(ptr, f.events, NULL));
    f.snapshot.events = f.events;
    memmove(&f.events[at + 1], &f.events[at], after * sizeof *f.events);
    f.events[at].action = VRAM_SNAPSHOT_SEGMENT_ALLOC;
    f.events[at].size_bytes = 2 * MIB;
    f.events[at].address += UINT64_C(1) << 40;
    expect_difference(&f, at, "no call of the driver");
    unforge(&f);
}

Test(validate, slack_that_only_the_final_blocks_show_is_a_difference)
{
    forged f;
    if (!forge(&f))
        return;
    f.blocks[0].size_bytes -= 512;
    expect_difference(&f, f.device.event_count, "where the snapshot shows");
    unforge(&f);
}

Test(validate, a_cap_below_what_was_reserved_is_a_difference)
{
    vram_snapshot *snapshot = open_recording("churn_tight");
    if (snapshot == NULL)
        return;
    const validate_report report =
        replay_with(snapshot, (validate_options){.cap_bytes = 900 * MIB});
    cr_expect(not(report.exact));
    vram_snapshot_close(snapshot);
}

Test(validate, a_device_without_history_is_refused_by_name)
{
    vram_snapshot *snapshot = open_recording("Felixburton7_dump_snapshot");
    if (snapshot == NULL)
        return;
    validate_report report;
    vram_error error = {""};
    cr_expect(not(validate_recording(snapshot, &(validate_options){.device = 0}, &report, &error)));
    cr_expect(ne(ptr, strstr(error.text, "no history"), NULL), "%s", error.text);
    cr_expect(not(validate_recording(snapshot, &(validate_options){.device = 7}, &report, &error)));
    cr_expect(ne(ptr, strstr(error.text, "no device 7"), NULL), "%s", error.text);
    vram_snapshot_close(snapshot);
}
