/*
 * damage_layers.c - what the checks of the layers stream, pointer and reserve notice: each way to
 * damage their structure, by the name of the invariant that it breaks. (magazine:
 * damage_magazine.c)
 */
#include "damage.h"
#include "layers/pointer.c"
#include "layers/reserve.c"
#include "layers/stream.h"

#include <criterion/criterion.h>

enum { MIB = 1024 * 1024 };

static vram_block take(vram_backend *backend, uint64_t size_bytes, uint32_t lane)
{
    vram_block block;
    const vram_request request = {.size_bytes = size_bytes, .stream = lane};
    cr_assert_eq(vram_alloc(backend, request, &block), VRAM_OK);
    return block;
}

/* Three live blocks; under `stream` also two pending ones of one size and one of another. */
static vram_backend *make(const char *spec)
{
    vram_backend *backend = NULL;
    vram_error error = {""};
    cr_assert(
        vram_create_from_text(spec, &(vram_config){.arena_bytes = 16 * MIB}, &backend, &error),
        "%s", error.text);
    take(backend, MIB, 0);
    take(backend, MIB, 1);
    take(backend, 3 * MIB, 2);
    const vram_block a = take(backend, MIB, 0), b = take(backend, MIB, 1),
                     c = take(backend, 2 * MIB, 2);
    vram_release(backend, a);
    vram_release(backend, b);
    vram_release(backend, c);
    cr_assert(vram_check(backend, NULL), "%s", spec);
    return backend;
}

/* ---- stream ---- */

static stream *stream_of(vram_backend *backend)
{
    return (stream *)backend;
}

/* The first pending record that another one follows in its list. */
static record *followed(vram_backend *backend)
{
    stream *self = stream_of(backend);
    uint32_t i = 0;
    while (self->records[i].state != RECORD_PENDING || self->records[i].after == STREAM_NONE)
        cr_assert_lt(++i, self->records_made, "two pending blocks of one size were to be there");
    return &self->records[i];
}

static void stream_forgets_a_block(vram_backend *backend)
{
    vram_offset_map_remove(&stream_of(backend)->by_offset, 0);
}
static void stream_confuses_two_blocks(vram_backend *backend)
{
    record *records = stream_of(backend)->records;
    const vram_block inner = records[0].inner;
    records[0].inner = records[1].inner;
    records[1].inner = inner;
}
static void inner_releases_behind_its_back(vram_backend *backend)
{
    stream *self = stream_of(backend);
    vram_release(self->layer.inner, self->records[0].inner);
}
static void stream_unlinks_a_pending_block(vram_backend *backend)
{
    followed(backend)->after = STREAM_NONE;
}
static void stream_forgets_a_size(vram_backend *backend)
{
    vram_offset_map_remove(&stream_of(backend)->by_size, 2 * MIB);
}
static void stream_links_out_of_its_records(vram_backend *backend)
{
    followed(backend)->after = stream_of(backend)->records_made + 3;
}
static void stream_revives_a_pending_block(vram_backend *backend)
{
    followed(backend)->state = RECORD_LIVE;
}
static void stream_miscounts_live(vram_backend *backend)
{
    stream_of(backend)->live++;
    stream_of(backend)->pending--;
}
static void stream_miscounts_bytes(vram_backend *backend)
{
    stream_of(backend)->pending_bytes -= 512;
}

/* ---- pointer ---- */

static void pointer_forgets_a_block(vram_backend *backend)
{
    vram_offset_map_remove(&((pointer *)backend)->by_offset, 0);
}
static void pointer_remembers_too_much(vram_backend *backend)
{
    pointer *self = (pointer *)backend;
    vram_offset_map_reserve(&self->by_offset);
    vram_offset_map_put(&self->by_offset, 12 * MIB, 0);
}
static void pointer_confuses_two_blocks(vram_backend *backend)
{
    ((pointer *)backend)->blocks[0].block.handle = ((pointer *)backend)->blocks[1].block.handle;
}

/* ---- reserve ---- */

static void reserve_begins_elsewhere(vram_backend *backend)
{
    ((reserve *)backend)->base_bytes += 512;
}
static void reserve_of_another_size(vram_backend *backend)
{
    ((reserve *)backend)->kept->arena_bytes += 512;
}

static const struct {
    const char *spec;
    const char *name;
    void (*inflict)(vram_backend *backend);
    const char *invariant;
} damages[] = {
    {"list+stream", "forgets_a_block", stream_forgets_a_block, "I1 recorded"},
    {"list+stream", "confuses_two_blocks", stream_confuses_two_blocks, "I1 recorded"},
    {"list+stream", "inner_releases_behind_its_back", inner_releases_behind_its_back,
     "I1 recorded"},
    {"list+stream", "unlinks_a_pending_block", stream_unlinks_a_pending_block, "I2 listed"},
    {"list+stream", "forgets_a_size", stream_forgets_a_size, "I2 listed"},
    {"list+stream", "links_out_of_its_records", stream_links_out_of_its_records, "I2 listed"},
    {"list+stream", "revives_a_pending_block", stream_revives_a_pending_block, "I2 listed"},
    {"list+stream", "miscounts_live", stream_miscounts_live, "I3 counted"},
    {"list+stream", "miscounts_bytes", stream_miscounts_bytes, "I3 counted"},
    {"list+pointer", "forgets_a_block", pointer_forgets_a_block, "I1 mapped"},
    {"list+pointer", "remembers_too_much", pointer_remembers_too_much, "I1 mapped"},
    {"list+pointer", "confuses_two_blocks", pointer_confuses_two_blocks, "I1 mapped"},
    {"list+reserve", "begins_elsewhere", reserve_begins_elsewhere, "I1 parted"},
    {"list+reserve", "of_another_size", reserve_of_another_size, "I1 parted"},
};

Test(damage_layers, every_damage_is_noticed_under_its_invariant)
{
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        vram_backend *backend = make(damages[i].spec);
        damages[i].inflict(backend);
        expect_noticed(backend, damages[i].spec, damages[i].name, damages[i].invariant);
    }
}
