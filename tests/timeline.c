/*
 * timeline.c - timelines in memory and in files.
 */
#include "made_timeline.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { HEAD_BYTES = 96, CHECKSUM_BYTES = 4 };

typedef struct scratch_path {
    char path[64];
} scratch_path;

static scratch_path scratch_file(void)
{
    scratch_path scratch = {P_tmpdir "/vramlab-timeline-XXXXXX"};
    const int file = mkstemp(scratch.path);
    cr_assert_neq(file, -1);
    close(file);
    return scratch;
}

static unsigned char *read_all(const char *path, size_t *bytes)
{
    FILE *const file = fopen(path, "rb");
    cr_assert_not_null(file);
    unsigned char *const content = malloc(1 << 22);
    *bytes = fread(content, 1, 1 << 22, file);
    fclose(file);
    return content;
}

static void write_all(const char *path, const unsigned char *content, size_t bytes)
{
    FILE *const file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(content, 1, bytes, file), bytes);
    fclose(file);
}

static bool same_texts(char **a, char **b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(a[i], b[i]) != 0)
            return false;
    return true;
}

static bool same_bytes(const void *a, const void *b, size_t count, size_t element_bytes)
{
    return count == 0 || memcmp(a, b, count * element_bytes) == 0;
}

static bool same(const vram_timeline *a, const vram_timeline *b)
{
    return strcmp(a->trace, b->trace) == 0 && strcmp(a->backend, b->backend) == 0 &&
           a->arena_bytes == b->arena_bytes && a->unit_bytes == b->unit_bytes &&
           a->has_clock == b->has_clock && a->complete == b->complete &&
           a->op_count == b->op_count && a->life_count == b->life_count &&
           a->failure_count == b->failure_count && a->cause_count == b->cause_count &&
           a->tag_count == b->tag_count && a->stack_count == b->stack_count &&
           a->stream_count == b->stream_count &&
           same_bytes(a->ops, b->ops, a->op_count, sizeof *a->ops) &&
           same_bytes(a->lives, b->lives, a->life_count, sizeof *a->lives) &&
           same_bytes(a->failures, b->failures, a->failure_count, sizeof *a->failures) &&
           same_bytes(a->causes, b->causes, a->cause_count, sizeof *a->causes) &&
           same_bytes(a->streams, b->streams, a->stream_count, sizeof *a->streams) &&
           same_texts(a->tags, b->tags, a->tag_count) &&
           same_texts(a->stacks, b->stacks, a->stack_count);
}

Test(timeline, is_the_same_after_saving_and_loading)
{
    const scratch_path scratch = scratch_file();
    vram_error error = {""};
    for (uint64_t seed = 1; seed <= 5; seed++) {
        vram_timeline loaded;
        vram_timeline made = made_random_timeline(seed, 200 * seed, 4096, 300);
        made.complete = seed % 2 == 0;
        made.has_clock = seed % 3 == 0;
        cr_assert(vram_timeline_save(&made, scratch.path, &error), "seed %d: %s", (int)seed,
                  error.text);
        cr_assert(vram_timeline_is_file(scratch.path));
        cr_assert(vram_timeline_load(scratch.path, &loaded, &error), "seed %d: %s", (int)seed,
                  error.text);
        cr_assert(same(&made, &loaded), "seed %d", (int)seed);
        vram_timeline_free(&made);
        vram_timeline_free(&loaded);
    }
    unlink(scratch.path);
}

Test(timeline, that_is_empty_is_saved_and_loaded)
{
    const scratch_path scratch = scratch_file();
    vram_error error = {""};
    vram_timeline made, loaded;
    cr_assert(vram_timeline_begin(&made, "t", "b", 1 << 20, 512, false));
    cr_assert(vram_timeline_save(&made, scratch.path, &error));
    cr_assert(vram_timeline_load(scratch.path, &loaded, &error), "%s", error.text);
    cr_assert(same(&made, &loaded));
    vram_timeline_free(&made);
    vram_timeline_free(&loaded);
    unlink(scratch.path);
}

static void make_small(vram_timeline *timeline)
{
    *timeline = made_random_timeline(42, 30, 1000, 200);
}

Test(timeline, is_refused_at_every_truncation)
{
    const scratch_path scratch = scratch_file();
    vram_timeline made, loaded;
    make_small(&made);
    cr_assert(vram_timeline_save(&made, scratch.path, NULL));
    size_t bytes;
    unsigned char *const content = read_all(scratch.path, &bytes);
    for (size_t length = 0; length < bytes; length++) {
        vram_error error = {""};
        write_all(scratch.path, content, length);
        cr_assert_not(vram_timeline_load(scratch.path, &loaded, &error), "length %zu", length);
        cr_assert_not_null(strstr(error.text, scratch.path), "length %zu: %s", length, error.text);
        cr_assert_null(loaded.ops);
    }
    content[bytes] = 0;
    write_all(scratch.path, content, bytes + 1);
    cr_assert_not(vram_timeline_load(scratch.path, &loaded, NULL), "one byte too long");
    free(content);
    vram_timeline_free(&made);
    unlink(scratch.path);
}

Test(timeline, is_refused_with_any_byte_changed)
{
    const scratch_path scratch = scratch_file();
    vram_timeline made, loaded;
    make_small(&made);
    cr_assert(vram_timeline_save(&made, scratch.path, NULL));
    size_t bytes;
    unsigned char *const content = read_all(scratch.path, &bytes);
    for (size_t at = 0; at < bytes; at++) {
        content[at] ^= (unsigned char)(1u << at % 8);
        write_all(scratch.path, content, bytes);
        cr_assert_not(vram_timeline_load(scratch.path, &loaded, NULL), "byte %zu", at);
        content[at] ^= (unsigned char)(1u << at % 8);
    }
    free(content);
    vram_timeline_free(&made);
    unlink(scratch.path);
}

Test(timeline, of_a_later_version_is_refused_by_its_version)
{
    const scratch_path scratch = scratch_file();
    vram_error error = {""};
    vram_timeline made, loaded;
    make_small(&made);
    cr_assert(vram_timeline_save(&made, scratch.path, NULL));
    size_t bytes;
    unsigned char *const content = read_all(scratch.path, &bytes);
    content[8] = 2;
    write_all(scratch.path, content, bytes);
    cr_assert_not(vram_timeline_load(scratch.path, &loaded, &error));
    cr_assert_not_null(strstr(error.text, "version 2"), "%s", error.text);
    free(content);
    vram_timeline_free(&made);
    unlink(scratch.path);
}

/* The head's counts, set to what no file can hold, with a checksum that agrees. */
Test(timeline, with_absurd_counts_is_refused_before_memory_is_taken)
{
    const scratch_path scratch = scratch_file();
    vram_timeline made, loaded;
    make_small(&made);
    cr_assert(vram_timeline_save(&made, scratch.path, NULL));
    size_t bytes;
    unsigned char *const content = read_all(scratch.path, &bytes);
    for (size_t count = 0; count < 8; count++) {
        unsigned char *const damaged = malloc(bytes);
        memcpy(damaged, content, bytes);
        memset(damaged + HEAD_BYTES - (count + 1) * 8, 0xff, 7);
        const uint32_t checksum = (uint32_t)crc32(0, damaged, (unsigned)(bytes - CHECKSUM_BYTES));
        memcpy(damaged + bytes - CHECKSUM_BYTES, &checksum, sizeof checksum);
        write_all(scratch.path, damaged, bytes);
        cr_assert_not(vram_timeline_load(scratch.path, &loaded, NULL), "count %zu", count);
        free(damaged);
    }
    free(content);
    vram_timeline_free(&made);
    unlink(scratch.path);
}

/* ---- unsound, though saved with the right checksum ---- */

static void block_unknown(vram_timeline *t)
{
    t->ops[1].block = 99;
}
static void kind_unknown(vram_timeline *t)
{
    t->ops[0].kind = VRAM_OP_KINDS;
}
static void beyond_arena(vram_timeline *t)
{
    t->ops[0].offset_bytes = t->arena_bytes - 1;
}
static void offset_wraps(vram_timeline *t)
{
    t->ops[0].offset_bytes = UINT64_MAX;
}
static void granted_too_small(vram_timeline *t)
{
    t->ops[0].granted_bytes = t->ops[0].size_bytes - 1;
}
static void size_zero(vram_timeline *t)
{
    t->ops[0].size_bytes = 0;
}
static void released_elsewhere(vram_timeline *t)
{
    t->ops[2].offset_bytes++;
}
static void released_larger(vram_timeline *t)
{
    t->ops[2].size_bytes++;
}
static void released_twice(vram_timeline *t)
{
    t->ops[3] = t->ops[2];
}
static void retired_twice(vram_timeline *t)
{
    t->ops[5] = t->ops[4];
}
static void failure_unknown(vram_timeline *t)
{
    t->ops[6].block = 1;
}
static void failure_elsewhere(vram_timeline *t)
{
    t->failures[0].op = 0;
}
static void reason_unending(vram_timeline *t)
{
    memset(t->failures[0].reason, 'x', 24);
}
static void birth_elsewhere(vram_timeline *t)
{
    t->lives[0].birth = 1;
}
static void death_early(vram_timeline *t)
{
    t->lives[0].death = 1;
}
static void death_untold(vram_timeline *t)
{
    t->lives[1].death = 6;
}
static void clock_backwards(vram_timeline *t)
{
    t->ops[1].time_ns = 0;
}
static void event_backwards(vram_timeline *t)
{
    t->ops[1].event = 0;
}
static void causes_exceed(vram_timeline *t)
{
    t->causes[0].padding_bytes = t->arena_bytes + 1;
}
static void causes_wrap(vram_timeline *t)
{
    t->causes[0].bound_bytes = UINT64_MAX - 1;
}
static void causes_beyond(vram_timeline *t)
{
    t->causes[0].op = 999;
}

static void make_of_each_kind(vram_timeline *t)
{
    cr_assert(vram_timeline_begin(t, "t", "b", 1000, 1, true));
    const uint32_t first = made_alloc(t, 1, 0, 100, 110);
    const uint32_t second = made_alloc(t, 2, 200, 50, 50);
    made_release(t, 3, first);
    made_on_block(t, VRAM_OP_MOVE, 4, second, 0);
    made_on_block(t, VRAM_OP_RETIRE, 5, second, 0);
    made_on_block(t, VRAM_OP_MARK, 6, second, 0);
    made_fail(t, 7, 5000, "bytes");
    cr_assert(vram_timeline_note_causes(t, &(vram_op_causes){.padding_bytes = 3}));
}

Test(timeline, that_is_unsound_is_refused_whatever_its_checksum)
{
    static void (*const damages[])(vram_timeline *) = {
        block_unknown,   kind_unknown,       beyond_arena,    offset_wraps,    granted_too_small,
        size_zero,       released_elsewhere, released_larger, released_twice,  retired_twice,
        failure_unknown, failure_elsewhere,  reason_unending, birth_elsewhere, death_early,
        death_untold,    clock_backwards,    event_backwards, causes_exceed,   causes_wrap,
        causes_beyond,
    };
    const scratch_path scratch = scratch_file();
    vram_error error = {""};
    vram_timeline made, loaded;
    make_of_each_kind(&made);
    cr_assert(vram_timeline_check(&made, &error), "%s", error.text);
    vram_timeline_free(&made);
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        make_of_each_kind(&made);
        damages[i](&made);
        cr_expect_not(vram_timeline_check(&made, &error), "damage %zu is not seen", i);
        cr_assert(vram_timeline_save(&made, scratch.path, &error));
        cr_expect_not(vram_timeline_load(scratch.path, &loaded, &error), "damage %zu is loaded", i);
        vram_timeline_free(&made);
    }
    unlink(scratch.path);
}

Test(timeline, that_cannot_be_written_leaves_what_was_there)
{
    vram_error error = {""};
    vram_timeline made;
    make_small(&made);
    cr_assert_not(vram_timeline_save(&made, "/nowhere/at/all.timeline", &error));
    cr_assert_not_null(strstr(error.text, "/nowhere/at/all.timeline"), "%s", error.text);
    cr_assert_not(vram_timeline_save(&made, P_tmpdir, &error), "a folder is not replaced");
    vram_timeline_free(&made);
}

Test(timeline, notes_causes_only_when_they_change)
{
    vram_timeline made;
    cr_assert(vram_timeline_begin(&made, "t", "b", 1000, 1, false));
    const uint64_t padding[] = {0, 3, 3, 5, 5, 3};
    for (uint32_t i = 0; i < 6; i++) {
        made_alloc(&made, i, i * 10, 10, 10);
        cr_assert(vram_timeline_note_causes(&made, &(vram_op_causes){.padding_bytes = padding[i]}));
    }
    cr_assert_eq(made.cause_count, 3);
    cr_assert_eq(made.causes[1].op, 3);
    /* The last word on an operation counts. */
    cr_assert(vram_timeline_note_causes(&made, &(vram_op_causes){.padding_bytes = 5}));
    cr_assert_eq(made.cause_count, 2);
    vram_timeline_free(&made);
}
