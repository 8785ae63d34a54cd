/*
 * readers_pytorch.c - snapshots of PyTorch: recordings, hand-made pickles, and hostile ones.
 */
#include "made_file.h"
#include "made_pickle.h"

#include <vramlab/snapshot.h>

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- recordings ---- */

/* What torch.cuda.memory_stats and the files themselves said, counted apart from vramlab. */
static const struct {
    const char *name;
    uint64_t events, allocs, retires, peak_live, peak_reserved, peak_allocated, ooms;
    bool bundled;
} recordings[] = {
    {"resnet50_train", 13760, 4546, 0, 4443076608, 5813305344, 4457134080, 0, true},
    {"gpt2_train_varlen", 36887, 12218, 0, 13651973632, 17039360000, 13673592320, 0, true},
    {"bert_infer_varlen", 109885, 36618, 0, 552976384, 1027604480, 569905152, 0, true},
    {"video_pipeline_mixed", 6537, 2176, 0, 3542667776, 3808428032, 3542667776, 0, true},
    {"multi_stream", 20767, 6910, 189, 288576512, 492830720, 292466688, 0, true},
    {"unet_train_frames", 14904, 4951, 0, 1156675072, 1606418432, 1160672768, 0, true},
    {"oom_fragmented", 4466, 1467, 0, 2880303616, 3187671040, 2898949120, 1, true},
    {"expandable_gpt2", 11794, 3897, 0, 9273841664, 9326034944, 9273841664, 0, false},
    {"roundup4_bert", 15948, 5310, 0, 314710016, 452984832, 345244672, 0, false},
    {"maxsplit64_churn", 9558, 3161, 0, 2176735232, 3070230528, 2200761344, 0, false},
    {"gc06_churn", 7984, 2628, 0, 3793378304, 4259315712, 3819149824, 2, false},
    {"slow_streams", 4506, 1501, 415, 343955968, 658505728, 332729344, 0, false},
    {"cuda_graphs", 1390, 461, 0, 164395008, 188743680, 164395008, 0, false},
    {"churn_tight", 12554, 4156, 0, 929678848, 1063256064, 944605696, 1, false},
    {"expandable_tight", 9887, 3167, 0, 1974793728, 2143289344, 1974793728, 4, false},
    {"maxsplit_big", 8609, 2599, 0, 3028459520, 3221225472, 3111470592, 3, false},
    {"multi_release", 9405, 3087, 116, 836857344, 1073741824, 840178688, 2, false},
    {"graphs_pending", 670, 209, 0, 210325504, 272629760, 210325504, 0, false},
    {"zero_and_edges", 86, 25, 0, 135268864, 150994944, 137366016, 0, false},
};
enum { RECORDINGS = sizeof recordings / sizeof recordings[0] };

static void check_recording(size_t i, const char *path)
{
    vram_trace *trace;
    vram_trace_summary sum;
    vram_error error = {{0}};
    cr_assert(vram_trace_open(path, NULL, &trace, &error), "%s", error.text);
    cr_assert(vram_trace_summarise(trace, &sum, &error), "%s", error.text);
    const vram_trace_info *info = vram_trace_info_of(trace);
    cr_expect_eq(info->recorded.device_events, recordings[i].events, "%s", path);
    cr_expect_eq(sum.by_kind[VRAM_EVENT_ALLOC] - info->recorded.blocks_before, recordings[i].allocs,
                 "%s", path);
    cr_expect_eq(sum.by_kind[VRAM_EVENT_RETIRE], recordings[i].retires, "%s", path);
    cr_expect_eq(sum.by_kind[VRAM_EVENT_TRY], recordings[i].ooms, "%s", path);
    cr_expect_eq(info->recorded.out_of_memory, recordings[i].ooms, "%s", path);
    cr_expect_eq(sum.peak_live_unit_bytes, recordings[i].peak_live, "%s", path);
    cr_expect_eq(info->recorded.peak_reserved_bytes, recordings[i].peak_reserved, "%s", path);
    cr_expect_eq(info->recorded.peak_allocated_bytes, recordings[i].peak_allocated, "%s", path);
    for (unsigned k = 0; k < VRAM_ANOMALIES; k++)
        cr_expect(k == VRAM_ANOMALY_NEVER_FREED || info->anomalies[k] == 0, "%s: %s", path,
                  vram_anomaly_name((vram_anomaly)k));
    vram_trace_close(trace);
}

Test(readers_pytorch, recordings_give_the_figures_that_pytorch_itself_gave)
{
    for (size_t i = 0; i < RECORDINGS; i++) {
        char path[256];
        snprintf(path, sizeof path,
                 recordings[i].bundled ? "traces/data/%s.pickle.gz"
                                       : "../shared/traces/pytorch/%s.pickle",
                 recordings[i].name);
        if (recordings[i].bundled || access(path, R_OK) == 0)
            check_recording(i, path);
        else
            fprintf(stderr, "SKIPPED: %s is absent\n", path);
    }
}

Test(readers_pytorch, blocks_from_before_come_first_in_address_order)
{
    vram_trace *trace;
    cr_assert(vram_trace_open("traces/data/oom_fragmented.pickle.gz", NULL, &trace, NULL));
    const vram_trace_info *info = vram_trace_info_of(trace);
    cr_expect_eq(info->recorded.blocks_before, 3);
    cr_expect_eq(info->recorded.bytes_before, 68157440);
    cr_expect(info->recorded.cut);
    vram_event event;
    uint64_t last_id = 0, bytes = 0;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(vram_trace_next(trace, &event, NULL), VRAM_STEP_EVENT);
        cr_expect_eq(event.kind, VRAM_EVENT_ALLOC);
        cr_expect_eq(event.time_ns, 0);
        cr_expect_gt(event.id, last_id);
        last_id = event.id;
        bytes += event.size_bytes;
    }
    cr_expect_eq(bytes, 68157440);
    vram_trace_close(trace);
}

Test(readers_pytorch, stacks_are_read_and_shared)
{
    vram_snapshot *snapshot;
    cr_assert(vram_snapshot_open("traces/data/unet_train_frames.pickle.gz", NULL, &snapshot, NULL));
    cr_expect_gt(snapshot->stack_count, 1);
    cr_expect_lt(snapshot->stack_count, 1000);
    bool adam = false;
    for (uint32_t i = 0; i < snapshot->stack_count; i++)
        adam = adam || strstr(vram_snapshot_stack(snapshot, i), "torch/optim/adam.py") != NULL;
    cr_expect(adam);
    cr_expect_str_eq(vram_snapshot_stack(snapshot, 0), "");
    cr_expect_str_eq(vram_snapshot_stack(snapshot, UINT32_MAX), "");
    vram_snapshot_close(snapshot);
}

/* ---- a whole small snapshot, in every way in which one may be written ---- */

enum { BASE = 0x7f0000 };

static void put_segments(made_pickle *p)
{
    pickle_text(p, "segments");
    pickle_begin(p, ']');
    pickle_segment(p, BASE, 4096, 0, "small", 0);
    pickle_block(p, 0, 512, 100, "active_allocated");      /* never freed, from before */
    pickle_block(p, 0, 1024, 1000, "active_pending_free"); /* let go before */
    pickle_block(p, 0, 2560, 7, "inactive");
    pickle_segment_end(p);
    pickle_segment(p, UINT64_C(0x8000000000000000), 2097152, 9, "large", 1);
    pickle_segment_end(p);
    pickle_end(p, ']');
    pickle_member(p, '}');
}

static void put_histories(made_pickle *p)
{
    pickle_text(p, "device_traces");
    pickle_begin(p, ']');
    pickle_begin(p, ']');
    pickle_event(p, "segment_alloc", BASE, 4096, 0, 10);
    pickle_event(p, "alloc", BASE + 1536, 600, 0, 11);
    pickle_event(p, "free_requested", BASE + 4096, 50, 9, 12); /* from before */
    pickle_event(p, "free_requested", BASE + 1536, 600, 0, 13);
    pickle_event(p, "free_completed", BASE + 1536, 600, 0, 14);
    pickle_event(p, "free_completed", BASE + 4096, 50, 9, 15);
    pickle_event(p, "oom", 777, 8192, 0, 16);
    pickle_event(p, "free_completed", BASE + 8192, 60, 0, 17); /* from before, already let go */
    pickle_event(p, "dance", 1, 2, 3, 18);
    pickle_end(p, ']');
    pickle_member(p, ']');
    pickle_begin(p, ']');
    pickle_event(p, "alloc", UINT64_C(0x8000000000000000), 1, 9, 20);
    pickle_end(p, ']');
    pickle_member(p, ']');
    pickle_end(p, ']');
    pickle_member(p, '}');
}

static void put_settings(made_pickle *p)
{
    pickle_text(p, "allocator_settings");
    pickle_begin(p, '}');
    pickle_text(p, "max_split_size");
    pickle_negative(p, -1);
    pickle_member(p, '}');
    pickle_text(p, "PYTORCH_CUDA_ALLOC_CONF");
    pickle_text(p, "roundup_power2_divisions:4");
    pickle_member(p, '}');
    pickle_text(p, "garbage_collection_threshold");
    pickle_raw(p, "G\x3f\xe8\0\0\0\0\0\0", 9); /* 0.75, big-endian */
    pickle_member(p, '}');
    pickle_text(p, "expandable_segments");
    pickle_put(p, "\x88");
    pickle_member(p, '}');
    pickle_text(p, "roundup_power2_divisions");
    pickle_begin(p, '}');
    pickle_text(p, "32768");
    pickle_number(p, 4);
    pickle_member(p, '}');
    pickle_end(p, '}');
    pickle_member(p, '}');
    pickle_end(p, '}');
    pickle_member(p, '}');
}

static made_pickle small_snapshot(int protocol, bool single)
{
    made_pickle p = pickle_start(protocol);
    p.single = single;
    pickle_begin(&p, '}');
    put_segments(&p);
    put_histories(&p);
    put_settings(&p);
    pickle_end(&p, '}');
    pickle_stop(&p);
    return p;
}

static const char small_events[] = "alloc 8323072 100\n"
                                   "alloc 8323584 1000 slot 1\n"
                                   "retire 8323584 1000 slot 1\n"
                                   "alloc 8327168 50 slot 2 stream 0x9\n"
                                   "alloc 8331264 60 slot 3\n"
                                   "retire 8331264 60 slot 3\n"
                                   "alloc 8324608 600 slot 4 at 1000\n"
                                   "retire 8327168 50 slot 2 at 2000 stream 0x9\n"
                                   "free 8324608 600 slot 4 at 3000\n"
                                   "free 8327168 50 slot 2 at 5000 stream 0x9\n"
                                   "try 0 8192 at 6000\n"
                                   "free 8331264 60 slot 3 at 7000\n";

static void check_small(const made_pickle *p)
{
    const made_file file = make_file(p->bytes, p->count);
    vram_error error = {{0}};
    char *events = events_of(file.path, NULL, &error);
    cr_assert_not_null(events, "protocol %d: %s", p->protocol, error.text);
    cr_expect_str_eq(events, small_events);
    free(events);
    events = events_of(file.path, &(vram_trace_options){.device = 1}, &error);
    cr_assert_not_null(events, "%s", error.text);
    cr_expect_str_eq(events, "alloc 9223372036854775808 1 stream 0x9\n");
    free(events);
    cr_expect_not(reads(file.path, &(vram_trace_options){.device = 2}, &error));
    cr_expect_not_null(strstr(error.text, "has 2 devices"), "%s", error.text);
    char counted[512];
    cr_expect_str_eq(anomalies_of(file.path, counted), "never freed 2, entry skipped 1");
    drop_file(file);
}

Test(readers_pytorch, every_protocol_and_way_of_filling_gives_the_same_events)
{
    for (int protocol = 2; protocol <= 5; protocol++)
        for (int single = 0; single < 2; single++) {
            made_pickle p = small_snapshot(protocol, single);
            check_small(&p);
            /* what follows the end is padding */
            pickle_raw(&p, "\0\0\0\0", 4);
            check_small(&p);
            free(p.bytes);
        }
}

Test(readers_pytorch, segments_blocks_and_settings_are_as_written)
{
    made_pickle p = small_snapshot(4, false);
    const made_file file = make_file(p.bytes, p.count);
    vram_snapshot *s;
    vram_error error;
    cr_assert(vram_snapshot_open(file.path, NULL, &s, &error), "%s", error.text);
    cr_assert_eq(s->segment_count, 2);
    cr_expect_eq(s->segments[0].total_bytes, 4096);
    cr_expect(s->segments[0].small);
    cr_expect_eq(s->segments[1].stream, 9);
    cr_expect_eq(s->segments[1].address, UINT64_C(1) << 63);
    cr_expect_eq(s->segments[1].block_count, 0);
    cr_assert_eq(s->segments[0].block_count, 3);
    const vram_snapshot_block *blocks = s->blocks + s->segments[0].first_block;
    cr_expect_eq(blocks[2].address, BASE + 1536);
    cr_expect_eq(blocks[1].state, VRAM_SNAPSHOT_PENDING_FREE);
    cr_expect_eq(s->device_count, 2);
    cr_assert_eq(s->devices[0].event_count, 9);
    const vram_snapshot_event *oom = s->events + s->devices[0].first_event + 6;
    cr_expect_eq(oom->action, VRAM_SNAPSHOT_OOM);
    cr_expect_eq(oom->address, 777);
    cr_expect_eq(oom->time_us, 16);
    cr_expect_eq(s->settings.max_split_bytes, UINT64_MAX);
    cr_expect_eq(s->settings.garbage_collection_threshold, 0.75);
    cr_expect(s->settings.expandable_segments);
    cr_expect_eq(s->settings.roundup_divisions[15], 4);
    cr_expect_eq(s->settings.roundup_divisions[0], 0);
    cr_expect_str_eq(s->settings.conf, "roundup_power2_divisions:4");
    vram_snapshot_close(s);
    drop_file(file);
    free(p.bytes);
}

Test(readers_pytorch, the_same_as_json_gives_the_same_events)
{
    static const char json[] =
        "{\"segments\": [{\"device\": 0, \"address\": 8323072, \"total_size\": 4096, \"stream\": 0,"
        " \"segment_type\": \"small\", \"segment_pool_id\": [0, 0], \"blocks\": ["
        "{\"size\": 512, \"requested_size\": 100, \"state\": \"active_allocated\"},"
        "{\"size\": 1024, \"requested_size\": 1000, \"state\": \"active_awaiting_free\"},"
        "{\"size\": 2560, \"requested_size\": 7, \"state\": \"inactive\", \"frames\": []}]}],"
        "\n\"device_traces\": [["
        "{\"action\": \"segment_alloc\", \"addr\": 8323072, \"size\": 4096, \"time_us\": 10},"
        "{\"size\": 600, \"addr\": 8324608, \"action\": \"alloc\", \"time_us\": 11, \"stream\": 0},"
        "{\"action\": \"free_requested\", \"addr\": 8327168, \"size\": 50, \"stream\": 9, "
        "\"time_us\": 12.0},"
        "{\"action\": \"free_requested\", \"addr\": 8324608, \"size\": 600, \"time_us\": 13},"
        "{\"action\": \"free_completed\", \"addr\": 8324608, \"size\": 600, \"time_us\": 14},"
        "{\"action\": \"free_completed\", \"addr\": 8327168, \"size\": 50, \"stream\": 9, "
        "\"time_us\": 15},"
        "{\"action\": \"oom\", \"device_free\": 7, \"size\": 8192, \"time_us\": 16},"
        "{\"action\": \"free_completed\", \"addr\": 8331264, \"size\": 60, \"time_us\": 17}]]}";
    const made_file file = make_file(json, sizeof json - 1);
    vram_error error = {{0}};
    char *const events = events_of(file.path, NULL, &error);
    cr_assert_not_null(events, "%s", error.text);
    cr_expect_str_eq(events, small_events);
    free(events);
    drop_file(file);
    for (size_t count = 60; count < sizeof json - 1; count++) {
        const made_file prefix = make_file(json, count);
        cr_expect_not(reads(prefix.path, NULL, &error), "%zu bytes", count);
        drop_file(prefix);
    }
}

/* ---- hostile files ---- */

static void expect_refusal(const void *bytes, size_t count, const char *says)
{
    const made_file file = make_file(bytes, count);
    vram_error error = {{0}};
    cr_expect_not(reads(file.path, NULL, &error));
    cr_expect_not_null(strstr(error.text, says), "'%s' does not say '%s'", error.text, says);
    drop_file(file);
}

Test(readers_pytorch, every_opcode_that_could_run_code_is_refused_by_name)
{
    static const struct {
        unsigned char code;
        const char *name;
    } opcodes[] = {{'c', "GLOBAL"},   {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},  {'b', "BUILD"},
                   {'i', "INST"},     {'o', "OBJ"},           {0x81, "NEWOBJ"}, {0x92, "NEWOBJ_EX"},
                   {0x82, "EXT1"},    {0x83, "EXT2"},         {0x84, "EXT4"},   {'P', "PERSID"},
                   {'Q', "BINPERSID"}};
    for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; i++) {
        char says[64];
        snprintf(says, sizeof says, "the opcode %s could run code", opcodes[i].name);
        const unsigned char first[] = {0x80, 4, opcodes[i].code, 'o', 's', '\n', '.'};
        expect_refusal(first, sizeof first, says);
        made_pickle p = pickle_start(4); /* and in the middle of what looks well */
        pickle_begin(&p, '}');
        put_segments(&p);
        pickle_raw(&p, &opcodes[i].code, 1);
        pickle_put(&p, "u.");
        expect_refusal(p.bytes, p.count, says);
        free(p.bytes);
    }
}

Test(readers_pytorch, every_other_byte_is_data_or_refused)
{
    static const char data[] = "().01JKMNGX]ael}dsuthjqr\x80\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d"
                               "\x94\x95";
    for (unsigned code = 1; code < 256; code++) {
        if (strchr(data, (int)code) != NULL)
            continue;
        const unsigned char bytes[] = {0x80, 4, (unsigned char)code, '.'};
        expect_refusal(bytes, sizeof bytes, code == '2' ? "DUP" : "");
        const made_file file = make_file(bytes, sizeof bytes);
        vram_error error = {{0}};
        reads(file.path, NULL, &error);
        cr_expect(strstr(error.text, "refused") != NULL ||
                      strstr(error.text, "not an opcode") != NULL,
                  "0x%02x: %s", code, error.text);
        drop_file(file);
    }
}

Test(readers_pytorch, a_snapshot_cut_at_any_byte_is_refused)
{
    for (int protocol = 2; protocol <= 4; protocol += 2) {
        made_pickle p = small_snapshot(protocol, false);
        for (size_t count = 2; count < p.count; count++)
            expect_refusal(p.bytes, count, "");
        free(p.bytes);
    }
}

Test(readers_pytorch, a_changed_byte_never_breaks_the_reader)
{
    made_pickle p = small_snapshot(4, false);
    for (size_t at = 2; at < p.count; at++)
        for (unsigned change = 1; change < 256; change <<= 1) {
            p.bytes[at] ^= (unsigned char)change;
            const made_file file = make_file(p.bytes, p.count);
            vram_error error = {{0}};
            if (!reads(file.path, NULL, &error))
                cr_expect_neq(error.text[0], '\0');
            drop_file(file);
            p.bytes[at] ^= (unsigned char)change;
        }
    free(p.bytes);
}

/* Short pickles that are wrong in one way each. */
static const struct {
    const char *bytes;
    size_t count;
    const char *says;
} bad_pickles[] = {
#define BAD(bytes, says)                                                                           \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, says                                                             \
    }
    BAD("\x80\x06N.", "none of the formats"),
    BAD("\x80\x04N.", "no list \"segments\""),
    BAD("\x80\x04}.", "no list \"segments\""),
    BAD("\x80\x04.", "ends with 0 values"),
    BAD("\x80\x04NN.", "ends with 2 values"),
    BAD("\x80\x04N(.", "ends with 1 values"),
    BAD("\x80\x04N\x80\x01.", "protocol 1"),
    BAD("\x80\x04\x30.", "holds 0 values where 1"),
    BAD("\x80\x04\x31.", "no mark"),
    BAD("\x80\x04u.", "no mark"),
    BAD("\x80\x04"
        "e.",
        "no mark"),
    BAD("\x80\x04(e.", "holds 0 values where 1"),
    BAD("\x80\x04N(Ne.", "not a list"),
    BAD("\x80\x04N(NNu.", "not a dictionary"),
    BAD("\x80\x04}(Nu.", "a key without a value"),
    BAD("\x80\x04(Nd.", "a key without a value"),
    BAD("\x80\x04Na.", "holds 1 values where 2"),
    BAD("\x80\x04NNs.", "holds 2 values where 3"),
    BAD("\x80\x04N(s.", "holds 0 values where 3"),
    BAD("\x80\x04N\x86.", "holds 1 values where 2"),
    BAD("\x80\x04h\x00.", "memo slot 0 is empty"),
    BAD("\x80\x04j\xff\xff\xff\xff.", "memo slot 4294967295 is empty"),
    BAD("\x80\x04\x94.", "holds 0 values where 1"),
    BAD("\x80\x04Nr\xff\xff\xff\xff.", "has not had so many bytes"),
    BAD("\x80\x04Nq\xff.", "has not had so many bytes"),
    BAD("\x80\x04X\xff\xff\xff\xff.", "the file ends in the middle"),
    BAD("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "a text of 18446744073709551615 bytes"),
    BAD("\x80\x04\x8a\x0a\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01.", "more than 64 bits"),
    BAD("\x80\x04\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x80.", "more than 64 bits"),
    BAD("\x80\x04\x8b\xff\xff\xff\xff.", "an integer of 4294967295 bytes"),
    BAD("\x80\x04}X\x08\x00\x00\x00segmentsNs.", "no list \"segments\""),
    BAD("\x80\x04}X\x08\x00\x00\x00segments](Kae"
        "s.",
        "not a list of segments"),
    BAD("\x80\x04}X\x08\x00\x00\x00segments]sX\x0d\x00\x00\x00"
        "device_traces]Nas.",
        "is not a list of events"),
    BAD("\x80\x04}X\x08\x00\x00\x00segments]sX\x0d\x00\x00\x00"
        "device_tracesK\x01s.",
        "\"device_traces\" is not a list"),
    BAD("\x80\x04}(X\x06\x00\x00\x00"
        "actionK\x01u.",
        "\"action\" is not a text"),
    BAD("\x80\x04}(X\x06\x00\x00\x00"
        "actionNX\x04\x00\x00\x00"
        "addr]u.",
        "\"addr\" is not a number"),
    BAD("\x80\x04}(X\x06\x00\x00\x00"
        "actionNX\x06\x00\x00\x00"
        "framesK\x01u.",
        "\"frames\" is not a list of frames"),
    BAD("\x80\x04}(X\x06\x00\x00\x00"
        "actionNX\x07\x00\x00\x00pool_id]u.",
        "\"pool_id\" is not a pair"),
    BAD("\x80\x04}(X\x05\x00\x00\x00stateX\x04\x00\x00\x00"
        "deadu.",
        "state is \"dead\""),
    BAD("\x80\x04}(X\x0a\x00\x00\x00total_sizeK\x01X\x06\x00\x00\x00"
        "deviceM\x00\x10u.",
        "\"device\" is not the number"),
    BAD("\x80\x04}(X\x0a\x00\x00\x00total_sizeK\x01X\x06\x00\x00\x00"
        "blocks](K\x01"
        "eu.",
        "\"blocks\" is not a list of blocks"),
};

Test(readers_pytorch, what_is_wrong_is_said_with_its_place)
{
    for (size_t i = 0; i < sizeof bad_pickles / sizeof bad_pickles[0]; i++)
        expect_refusal(bad_pickles[i].bytes, bad_pickles[i].count, bad_pickles[i].says);
}

static void expect_repeated(const char *head, char repeated, size_t times, const char *says)
{
    made_pickle p = pickle_start(4);
    pickle_put(&p, head);
    char *const run = malloc(times);
    memset(run, repeated, times);
    pickle_raw(&p, run, times);
    pickle_stop(&p);
    expect_refusal(p.bytes, p.count, says);
    free(run);
    free(p.bytes);
}

Test(readers_pytorch, bombs_are_stopped)
{
    expect_repeated("", '(', 1 << 20, "nested more than 1000 deep");
    expect_repeated("", ']', 1 << 20, "nested too deep");
    expect_repeated("", '}', 1 << 20, "nested too deep");
    expect_repeated("N", '\x85', 1 << 20, "not a list of segments"); /* a tuple in a tuple in ... */
    expect_repeated("N", '\x94', 1 << 20, "no list \"segments\"");   /* the memo, slot after slot */
    expect_repeated("]\x94", 'a', 3, "holds 1 values where 2");
    made_pickle p = pickle_start(4); /* a list that holds itself, doubled again and again */
    pickle_put(&p, "]\x94");
    for (int i = 0; i < 100000; i++)
        pickle_raw(&p, "h\0a", 3);
    pickle_stop(&p);
    expect_refusal(p.bytes, p.count, "");
    free(p.bytes);
}

/* A million events on the stack at once, as PyTorch's C++ writer leaves them. */
Test(readers_pytorch, a_long_unbatched_history_is_read)
{
    enum { PAIRS = 20000 };
    made_pickle p = pickle_start(2);
    pickle_begin(&p, '}');
    pickle_text(&p, "segments");
    pickle_begin(&p, ']');
    pickle_end(&p, ']');
    pickle_text(&p, "device_traces");
    pickle_begin(&p, ']');
    pickle_begin(&p, ']');
    for (uint64_t i = 0; i < PAIRS; i++) {
        pickle_event(&p, "alloc", 512 * i, 100, 0, 0);
        pickle_event(&p, "free_completed", 512 * i, 100, 0, 0);
    }
    pickle_end(&p, ']');
    pickle_end(&p, ']');
    pickle_end(&p, '}');
    pickle_stop(&p);
    const made_file file = make_file(p.bytes, p.count);
    vram_trace *trace;
    vram_trace_summary sum;
    vram_error error = {{0}};
    cr_assert(vram_trace_open(file.path, NULL, &trace, &error), "%s", error.text);
    cr_assert(vram_trace_summarise(trace, &sum, &error), "%s", error.text);
    cr_expect_eq(sum.events, 2 * PAIRS);
    cr_expect_eq(sum.peak_live_bytes, 100);
    cr_expect_not(vram_trace_info_of(trace)->has_clock);
    vram_trace_close(trace);
    drop_file(file);
    free(p.bytes);
}
