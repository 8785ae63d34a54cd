/*
 * host.c - an arena of host memory, so that contents can be written, moved and read back.
 *
 * The memory is mapped without being reserved: pages exist once they are written.
 */
#include "arena/kinds.h"
#include "arena/pattern.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct host_arena {
    vram_arena head;
    unsigned char *bytes;
    uint64_t mapped_bytes;
} host_arena;

static bool host_create(uint64_t size_bytes, vram_arena **out, vram_error *error)
{
    char size[VRAM_SIZE_TEXT];
    host_arena *self = calloc(1, sizeof *self);
    if (self == NULL)
        return vram_fail(error, "out of host memory");
    self->mapped_bytes = size_bytes;
    self->bytes = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (self->bytes == MAP_FAILED) {
        free(self);
        return vram_fail(error, "cannot map %s of host memory: choose a smaller arena or 'virtual'",
                         vram_format_size(size_bytes, size));
    }
    *out = &self->head;
    return true;
}

static void host_destroy(vram_arena *arena)
{
    host_arena *self = (host_arena *)arena;
    munmap(self->bytes, self->mapped_bytes);
    free(self);
}

static bool host_fill(vram_arena *arena, uint64_t offset_bytes, uint64_t size_bytes, uint64_t seed,
                      vram_error *error)
{
    (void)error;
    vram_pattern_fill(((host_arena *)arena)->bytes + offset_bytes, size_bytes, seed);
    return true;
}

static bool host_compare(vram_arena *arena, uint64_t offset_bytes, uint64_t size_bytes,
                         uint64_t seed, uint64_t *differs_at, vram_error *error)
{
    (void)error;
    const uint64_t at =
        vram_pattern_compare(((host_arena *)arena)->bytes + offset_bytes, size_bytes, seed);
    *differs_at = at == UINT64_MAX ? UINT64_MAX : offset_bytes + at;
    return true;
}

static bool host_move(vram_arena *arena, uint64_t to_bytes, uint64_t from_bytes,
                      uint64_t size_bytes, vram_error *error)
{
    (void)error;
    unsigned char *bytes = ((host_arena *)arena)->bytes;
    memmove(bytes + to_bytes, bytes + from_bytes, size_bytes);
    return true;
}

static void *host_base(vram_arena *arena)
{
    return ((host_arena *)arena)->bytes;
}

const vram_arena_ops vram_arena_host = {
    .name = "host",
    .summary = "real host memory: contents are written and read back by --verify",
    .create = host_create,
    .destroy = host_destroy,
    .fill = host_fill,
    .compare = host_compare,
    .move = host_move,
    .base = host_base,
};
