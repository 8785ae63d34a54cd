/*
 * arena.c - the kinds of arena by name.
 */
#include <vramlab/arena.h>
#include <vramlab/backend.h>

#include "arena/kinds.h"

#include <string.h>

static const vram_arena_ops *const kinds[] = {
    &vram_arena_virtual,
    &vram_arena_host,
    &vram_arena_cuda,
};

const vram_arena_ops *vram_arena_kind_at(size_t index)
{
    return index < sizeof kinds / sizeof kinds[0] ? kinds[index] : NULL;
}

bool vram_arena_create(const char *kind, uint64_t size_bytes, vram_arena **out, vram_error *error)
{
    if (size_bytes == 0 || size_bytes > VRAM_ARENA_MAX)
        return vram_fail(error, "an arena of %llu bytes is not possible: 1 byte to 1 PiB",
                         (unsigned long long)size_bytes);
    for (size_t i = 0; vram_arena_kind_at(i) != NULL; i++) {
        if (strcmp(kinds[i]->name, kind) != 0)
            continue;
        if (!kinds[i]->create(size_bytes, out, error))
            return false;
        (*out)->ops = kinds[i];
        (*out)->size_bytes = size_bytes;
        return true;
    }
    return vram_fail(error, "no kind of arena is called '%s': virtual, host, cuda", kind);
}

void vram_arena_destroy(vram_arena *self)
{
    if (self != NULL)
        self->ops->destroy(self);
}

bool vram_arena_has_bytes(const vram_arena *self)
{
    return self != NULL && self->ops->fill != NULL;
}
