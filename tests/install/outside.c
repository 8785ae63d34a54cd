/* A program of somebody else's: fills an arena through the installed library and counts the blocks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <vramlab/registry.h>
#include <vramlab/trace.h>

int main(int count, char **arguments)
{
    vram_error error = {{0}};
    vram_backend *backend = NULL;
    if (!vram_create_from_text("naive", &(vram_config){.arena_bytes = 1 << 20}, &backend, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    uint64_t blocks = 0;
    vram_block block;
    while (vram_alloc(backend, (vram_request){.size_bytes = 4096}, &block) == VRAM_OK)
        blocks++;
    vram_destroy(backend);
    printf("%" PRIu64 " blocks\n", blocks);
    vram_trace *trace = NULL;
    vram_trace_summary summary;
    if (count != 2 || !vram_trace_open(arguments[1], NULL, &trace, &error) ||
        !vram_trace_summarise(trace, &summary, &error)) {
        fprintf(stderr, "%s\n", error.text);
        vram_trace_close(trace);
        return 2;
    }
    vram_trace_close(trace);
    printf("%" PRIu64 " bytes at peak\n", summary.peak_live_unit_bytes);
    return 0;
}
