/* threads.c - several threads on one backend: nothing is lost, no two hold the same bytes, and a
 * backend that lets them is caught. Built with the thread sanitizer it also proves that the driver
 * has no race. */
#include "crooked.h"
#include "mutexed.h"

#include <vramlab/driver.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static vram_calls *calls_of(const char *path)
{
    vram_trace *trace = NULL;
    vram_calls *calls = NULL;
    vram_error error = {0};
    cr_assert(vram_trace_open(path, NULL, &trace, &error) && vram_calls_of(trace, &calls, &error),
              "%s", error.text);
    vram_trace_close(trace);
    return calls;
}

static vram_backend *make(const char *spec, uint64_t arena_bytes)
{
    vram_backend *backend = NULL;
    vram_error error = {0};
    const vram_config config = {.arena_bytes = arena_bytes, .unit_bytes = 256};
    cr_assert(vram_create_from_text(spec, &config, &backend, &error), "%s", error.text);
    return backend;
}

static const char small_mix[] = "generate:mix,ops=20000,live=200";
static const uint32_t threads[] = {1, 2, 4, 8};
enum { THREADS = sizeof threads / sizeof threads[0] };

Test(threads, together_they_make_each_call_once_and_no_two_hold_the_same_bytes)
{
    vram_calls *calls = calls_of(small_mix);
    static const char *const specs[] = {"list", "buddy", "tlsf"};
    for (size_t spec = 0; spec < sizeof specs / sizeof specs[0]; spec++) {
        vram_backend *backend = mutexed_over(make(specs[spec], 256 << 20));
        for (size_t i = 0; i < THREADS; i++) {
            vram_threads_result result;
            vram_error error = {0};
            cr_assert(vram_calls_deal_threads(calls, backend, threads[i], &result, &error), "%s",
                      error.text);
            cr_assert(eq(u64, result.calls, vram_calls_count(calls)));
            cr_assert(zero(u64, result.refused));
            cr_assert(eq(int, result.handed_over > 0, threads[i] > 1));
        }
        vram_destroy(backend);
    }
    vram_calls_free(calls);
}

Test(threads, a_full_arena_refuses_and_loses_nothing)
{
    vram_calls *calls = calls_of(small_mix);
    vram_backend *backend = mutexed_over(make("list", 8 << 20));
    for (size_t i = 0; i < THREADS; i++) {
        vram_threads_result result;
        vram_error error = {0};
        cr_assert(vram_calls_deal_threads(calls, backend, threads[i], &result, &error), "%s",
                  error.text);
        cr_assert(gt(u64, result.refused, 0));
    }
    vram_destroy(backend);
    vram_calls_free(calls);
}

Test(threads, each_with_blocks_of_its_own_makes_all_calls)
{
    vram_calls *calls = calls_of(small_mix);
    vram_backend *backend = mutexed_over(make("list", 1 << 30));
    for (size_t i = 0; i < THREADS; i++) {
        vram_threads_result result;
        vram_error error = {0};
        cr_assert(vram_calls_run_threads(calls, backend, threads[i], &result, &error), "%s",
                  error.text);
        cr_assert(eq(u64, result.calls, threads[i] * vram_calls_count(calls)));
        cr_assert(zero(u64, result.refused));
        cr_assert(zero(u64, vram_stats_of(backend).live_blocks));
    }
    vram_destroy(backend);
    vram_calls_free(calls);
}

Test(threads, a_backend_that_gives_two_threads_the_same_bytes_is_caught)
{
    static const struct {
        crooked_lie lie;
        const char *said;
    } cases[] = {
        {LIE_OVERLAP, "share"},
        {LIE_OUTSIDE, "leaves the arena"},
        {LIE_REFUSES_RELEASE, "release of a live block was refused"},
        {LIE_BAD_RESULT, "as if it were not"},
        {LIE_CHECK, "I7 honest"},
        {LIE_STATS, "counts 0 live blocks of 1 bytes"},
    };
    vram_calls *calls = calls_of("generate:mix,ops=2000,live=50");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        vram_backend *crooked = crooked_over(make("list", 64 << 20), cases[i].lie, 100, NULL);
        vram_backend *backend = mutexed_over(crooked);
        vram_threads_result result;
        vram_error error = {0};
        cr_assert(not(vram_calls_deal_threads(calls, backend, 4, &result, &error)), "lie %d passed",
                  cases[i].lie);
        cr_assert(strstr(error.text, cases[i].said) != NULL, "lie %d: %s", cases[i].lie,
                  error.text);
        vram_destroy(backend);
    }
    vram_calls_free(calls);
}

Test(threads, what_is_not_made_for_threads_is_refused)
{
    vram_calls *calls = calls_of("generate:mix,ops=2000,live=50");
    vram_backend *plain = make("list", 64 << 20);
    vram_threads_result result;
    vram_error error = {0};
    cr_assert(not(vram_calls_run_threads(calls, plain, 2, &result, &error)));
    cr_assert(strstr(error.text, "locked") != NULL, "%s", error.text);
    vram_backend *backend = mutexed_over(plain);
    cr_assert(not(vram_calls_deal_threads(calls, backend, 0, &result, &error)));
    cr_assert(not(vram_calls_deal_threads(calls, backend, VRAM_THREADS_MAX + 1, &result, &error)));
    vram_destroy(backend);
    vram_calls_free(calls);
}
