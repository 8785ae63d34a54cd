/*
 * virtual.c - an arena of nothing: offsets only, any size, no memory.
 */
#include "arena/kinds.h"

#include <stdlib.h>

static bool virtual_create(uint64_t size_bytes, vram_arena **out, vram_error *error)
{
    (void)size_bytes;
    *out = calloc(1, sizeof **out);
    return *out != NULL || vram_fail(error, "out of host memory");
}

static void virtual_destroy(vram_arena *self)
{
    free(self);
}

const vram_arena_ops vram_arena_virtual = {
    .name = "virtual",
    .summary = "offsets only: any size, no memory behind it",
    .create = virtual_create,
    .destroy = virtual_destroy,
};
