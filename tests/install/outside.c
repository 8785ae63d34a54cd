/* A program of somebody else's: fills an arena through the installed library and counts the blocks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <vramlab/registry.h>

int main(void)
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
    return 0;
}
