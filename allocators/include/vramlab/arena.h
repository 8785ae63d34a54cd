/*
 * vramlab/arena.h - the memory under a backend.
 *
 *   virtual   nothing at all: any size up to VRAM_ARENA_MAX, no bytes behind the offsets
 *   host      real host memory, so that contents can be checked
 *   cuda      one cudaMalloc on a device; the CUDA runtime is loaded when it is asked for, so the
 *             same program runs without a driver
 *
 * Written "virtual", "host:2GiB", "cuda:8GiB". The arena and the backend meet only in the driver.
 */
#ifndef VRAMLAB_ARENA_H
#define VRAMLAB_ARENA_H

#include <vramlab/text.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vram_arena vram_arena;

typedef struct vram_arena_ops {
    const char *name;
    const char *summary;
    bool (*create)(uint64_t size_bytes, vram_arena **out, vram_error *error);
    void (*destroy)(vram_arena *self);
    /* Byte access; all NULL when there are no bytes (virtual). Ranges are within the arena. */
    bool (*fill)(vram_arena *self, uint64_t offset_bytes, uint64_t size_bytes, uint64_t seed,
                 vram_error *error);
    /* *differs_at = first byte that is not what fill wrote with this seed, or UINT64_MAX. */
    bool (*compare)(vram_arena *self, uint64_t offset_bytes, uint64_t size_bytes, uint64_t seed,
                    uint64_t *differs_at, vram_error *error);
    /* memmove within the arena. */
    bool (*move)(vram_arena *self, uint64_t to_bytes, uint64_t from_bytes, uint64_t size_bytes,
                 vram_error *error);
    void *(*base)(vram_arena *self);
} vram_arena_ops;

struct vram_arena {
    const vram_arena_ops *ops;
    uint64_t size_bytes;
};

/* Arenas by index, NULL beyond the last. */
const vram_arena_ops *vram_arena_kind_at(size_t index);

/* Makes an arena of this kind. False with a message when the kind is unknown or the memory cannot
 * be had. */
bool vram_arena_create(const char *kind, uint64_t size_bytes, vram_arena **out, vram_error *error);
void vram_arena_destroy(vram_arena *self); /* NULL is allowed */

/* True when contents can be written and read back. */
bool vram_arena_has_bytes(const vram_arena *self);

#ifdef __cplusplus
}
#endif
#endif
