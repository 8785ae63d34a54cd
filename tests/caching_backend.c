/*
 * caching_backend.c - PyTorch's allocator as a backend: its two drivers, and what they answer.
 */
#include <vramlab/registry.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define MIB (UINT64_C(1) << 20)

static vram_backend *make(const char *spec, uint64_t arena_bytes)
{
    vram_backend *backend = NULL;
    vram_error error = {""};
    cr_assert(
        vram_create_from_text(spec, &(vram_config){.arena_bytes = arena_bytes}, &backend, &error),
        "%s", error.text);
    return backend;
}

static vram_result ask(vram_backend *backend, uint64_t size_bytes, vram_block *block)
{
    const vram_result result = vram_alloc(backend, (vram_request){.size_bytes = size_bytes}, block);
    vram_fault fault;
    cr_assert(vram_check(backend, &fault), "%s", fault.invariant);
    return result;
}

/* 2 MiB x 100 in an arena of 200 MiB, every second released: 100 MiB free, in holes of 2 MiB. */
static vram_backend *with_holes(const char *spec)
{
    vram_backend *backend = make(spec, 240 * MIB);
    vram_block blocks[12];
    for (int i = 0; i < 12; i++)
        cr_assert(eq(int, ask(backend, 20 * MIB, &blocks[i]), VRAM_OK));
    for (int i = 0; i < 12; i += 2)
        cr_assert(eq(int, vram_release(backend, blocks[i]), VRAM_OK));
    return backend;
}

Test(caching_backend, on_a_card_segments_do_not_fragment_and_in_an_arena_they_do)
{
    vram_backend *card = with_holes("caching:driver=counting");
    vram_backend *arena = with_holes("caching");
    vram_block block = {0};
    cr_expect(eq(int, ask(card, 60 * MIB, &block), VRAM_OK));
    cr_expect(gt(u64, block.offset_bytes, 240 * MIB)); /* an address that one arena does not have */
    cr_expect(eq(int, ask(arena, 60 * MIB, &block), VRAM_NO_SPACE));
    const vram_failure failure = vram_explain(arena, (vram_request){.size_bytes = 60 * MIB});
    cr_expect(eq(int, failure.reason, VRAM_REASON_FRAGMENTED));
    cr_expect(eq(u64, failure.free_bytes, 120 * MIB));
    cr_expect(eq(u64, failure.largest_free_bytes, 20 * MIB));
    const vram_failure counted = vram_explain(card, (vram_request){.size_bytes = 61 * MIB});
    cr_expect(eq(u64, counted.largest_free_bytes, 60 * MIB));
    vram_destroy(card);
    vram_destroy(arena);
}

Test(caching_backend, every_result_names_the_driver)
{
    static const char *const rows[][2] = {
        {"caching", "caching:driver=arena"},
        {"caching:driver=counting", "caching:driver=counting"},
        {"caching:max_split_size=64MiB", "caching:max_split_size=64MiB,driver=arena"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        vram_backend *backend = make(rows[i][0], 64 * MIB);
        cr_expect(eq(str, backend->spec, (char *)rows[i][1]));
        vram_destroy(backend);
    }
}

Test(caching_backend, expandable_segments_need_the_counting_driver)
{
    vram_backend *backend = NULL;
    vram_error error = {""};
    cr_expect(
        not(vram_create_from_text("caching:expandable_segments=on",
                                  &(vram_config){.arena_bytes = 64 * MIB}, &backend, &error)));
    cr_expect(ne(ptr, strstr(error.text, "driver=counting"), NULL));
    backend = make("caching:driver=counting,expandable_segments=on", 200 * MIB);
    vram_block block;
    cr_expect(eq(int, ask(backend, 150 * MIB, &block), VRAM_OK));
    cr_expect(eq(int, ask(backend, 51 * MIB, &block), VRAM_NO_SPACE)); /* 160 are mapped by now */
    cr_expect(eq(int, ask(backend, 50 * MIB, &block), VRAM_OK));
    vram_destroy(backend);
}

Test(caching_backend, a_larger_alignment_is_served_by_padding)
{
    static const char *const specs[] = {"caching", "caching:driver=counting"};
    for (size_t i = 0; i < 2; i++) {
        vram_backend *backend = make(specs[i], 64 * MIB);
        vram_block blocks[8];
        for (int k = 0; k < 8; k++) {
            const vram_request request = {.size_bytes = 700, .align_bytes = 4096};
            cr_assert(eq(int, vram_alloc(backend, request, &blocks[k]), VRAM_OK));
            cr_expect(eq(u64, blocks[k].offset_bytes % 4096, 0));
            cr_expect(vram_check(backend, NULL));
        }
        for (int k = 0; k < 8; k++)
            cr_expect(eq(int, vram_release(backend, blocks[k]), VRAM_OK));
        cr_expect(eq(int, vram_release(backend, blocks[0]), VRAM_STALE_BLOCK));
        cr_expect(eq(u64, vram_stats_of(backend).padding_bytes, 0));
        cr_expect(eq(u64, vram_stats_of(backend).free_bytes, 64 * MIB));
        cr_expect(vram_check(backend, NULL));
        vram_destroy(backend);
    }
}
