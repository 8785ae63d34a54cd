/*
 * race.c - every backend under every layer that makes it safe for threads, hammered by eight of
 * them.
 *
 * A program of its own, since Criterion's processes do not start under the thread sanitizer, which
 * is what this is for: build/tsan runs it. Without the sanitizer it still proves that no two
 * threads hold the same bytes and that nothing is lost.
 */
#include "mutexed.h"

#include <vramlab/driver.h>
#include <vramlab/registry.h>

#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 8 };
static const vram_config config = {.arena_bytes = UINT64_C(128) << 20, .unit_bytes = 256};
static const char workload[] = "generate:mix,ops=6000,live=100";

static bool hammer(const vram_calls *calls, vram_backend *backend, vram_error *error)
{
    vram_threads_result result;
    return vram_calls_deal_threads(calls, backend, THREADS, &result, error) &&
           vram_calls_run_threads(calls, backend, THREADS / 2, &result, error) &&
           vram_calls_deal_threads(calls, backend, THREADS, &result, error);
}

/* Makes the stack, behind the tests' own mutex when there is no layer. */
static bool hammer_stack(const vram_calls *calls, const char *backend_name, const char *layer_name,
                         vram_error *error)
{
    char spec[128];
    snprintf(spec, sizeof spec, "%s%s%s", backend_name, layer_name != NULL ? "+" : "",
             layer_name != NULL ? layer_name : "");
    printf("%s%s\n", spec, layer_name == NULL ? " behind a mutex" : "");
    fflush(stdout);
    vram_backend *backend = NULL;
    if (!vram_create_from_text(spec, &config, &backend, error))
        return false;
    if (layer_name == NULL)
        backend = mutexed_over(backend);
    const bool sound = hammer(calls, backend, error);
    vram_destroy(backend);
    return sound;
}

static bool hammer_all(const vram_calls *calls, vram_error *error)
{
    for (size_t i = 0; vram_registry_at(i) != NULL; i++) {
        const vram_ops *inner = vram_registry_at(i);
        if (inner->layer || inner->special)
            continue;
        if (!hammer_stack(calls, inner->name, NULL, error))
            return false;
        for (size_t j = 0; vram_registry_at(j) != NULL; j++) {
            const vram_ops *layer = vram_registry_at(j);
            if (layer->layer && layer->concurrent &&
                !hammer_stack(calls, inner->name, layer->name, error))
                return false;
        }
    }
    return true;
}

int main(void)
{
    vram_error error = {""};
    vram_trace *trace = NULL;
    vram_calls *calls = NULL;
    const bool sound = vram_trace_open(workload, NULL, &trace, &error) &&
                       vram_calls_of(trace, &calls, &error) && hammer_all(calls, &error);
    vram_calls_free(calls);
    vram_trace_close(trace);
    if (!sound)
        fprintf(stderr, "race: %s\n", error.text);
    return sound ? EXIT_SUCCESS : EXIT_FAILURE;
}
