/*
 * cuda.c - an arena on a CUDA device: one cudaMalloc at the start, one cudaFree at the end.
 *
 * Patterns are written and compared on the device, by the kernels of kernels.ptx; blocks are moved
 * by copies on the device. All of it is queued on the default stream and waited for.
 *
 * More than 80 % of the card is refused, unless VRAMLAB_FORCE=1: a card that is full makes other
 * programs on it fail.
 */
#include "arena/cudart.h"
#include "arena/kinds.h"
#include "arena/pattern.h"

#include <stdlib.h>
#include <string.h>

#define BOUNCE_BYTES (UINT64_C(32) << 20)

typedef struct cuda_arena {
    vram_arena head;
    const vram_cudart *runtime;
    vram_kernels *kernels;
    char *base;
    uint64_t *found; /* on the device: where a comparison failed; made when first needed */
    char *bounce;    /* on the device: for overlapping moves; made when first needed */
} cuda_arena;

static void cuda_destroy(vram_arena *arena)
{
    cuda_arena *self = (cuda_arena *)arena;
    vram_kernels_unload(self->kernels);
    self->runtime->free(self->bounce);
    self->runtime->free(self->found);
    self->runtime->free(self->base);
    free(self);
}

static bool may_take(const vram_cudart *runtime, uint64_t size_bytes, vram_error *error)
{
    size_t free_bytes, total_bytes;
    const int result = runtime->mem_get_info(&free_bytes, &total_bytes);
    if (result != 0)
        return vram_cudart_fail(error, "cudaMemGetInfo", result);
    const char *force = getenv("VRAMLAB_FORCE");
    const bool forced = force != NULL && strcmp(force, "1") == 0;
    if (forced || size_bytes <= total_bytes / 5 * 4)
        return true;
    char size[VRAM_SIZE_TEXT];
    char total[VRAM_SIZE_TEXT];
    return vram_fail(
        error, "an arena of %s is more than 80 %% of the card's %s; VRAMLAB_FORCE=1 allows it",
        vram_format_size(size_bytes, size), vram_format_size(total_bytes, total));
}

/* What only --verify needs: made when it is first used. */
static bool ready_to_verify(cuda_arena *self, vram_error *error)
{
    if (self->kernels == NULL)
        self->kernels = vram_kernels_load(error);
    if (self->kernels == NULL)
        return false;
    if (self->found != NULL)
        return true;
    const int result = self->runtime->malloc((void **)&self->found, sizeof *self->found);
    return result == 0 || vram_cudart_fail(error, "cudaMalloc", result);
}

static bool cuda_create(uint64_t size_bytes, vram_arena **out, vram_error *error)
{
    vram_error why = {""};
    const vram_cudart *runtime = vram_cudart_load(&why);
    if (runtime == NULL)
        return vram_fail(error, "no cuda arena: %s", why.text);
    if (!may_take(runtime, size_bytes, error))
        return false;
    cuda_arena *self = calloc(1, sizeof *self);
    if (self == NULL)
        return vram_fail(error, "out of host memory");
    self->runtime = runtime;
    const int result = runtime->malloc((void **)&self->base, size_bytes);
    if (result != 0) {
        free(self);
        return vram_cudart_fail(error, "cudaMalloc", result);
    }
    *out = &self->head;
    return true;
}

static uint64_t address_of(const cuda_arena *self, uint64_t offset_bytes)
{
    return (uint64_t)(uintptr_t)self->base + offset_bytes;
}

static bool wait(const cuda_arena *self, int launched, const char *what, vram_error *error)
{
    if (launched != 0)
        return vram_fail(error, "the %s kernel cannot be started (driver error %d)", what,
                         launched);
    const int result = self->runtime->stream_synchronize(NULL);
    return result == 0 || vram_cudart_fail(error, what, result);
}

static bool cuda_fill(vram_arena *arena, uint64_t offset_bytes, uint64_t size_bytes, uint64_t seed,
                      vram_error *error)
{
    cuda_arena *self = (cuda_arena *)arena;
    if (!ready_to_verify(self, error))
        return false;
    const int launched = vram_kernels_fill(self->kernels, address_of(self, offset_bytes),
                                           size_bytes, vram_pattern_first(seed), NULL);
    return wait(self, launched, "fill", error);
}

static bool cuda_compare(vram_arena *arena, uint64_t offset_bytes, uint64_t size_bytes,
                         uint64_t seed, uint64_t *differs_at, vram_error *error)
{
    cuda_arena *self = (cuda_arena *)arena;
    if (!ready_to_verify(self, error))
        return false;
    uint64_t found = UINT64_MAX;
    int result = self->runtime->memcpy(self->found, &found, sizeof found, VRAM_CUDA_COPY);
    if (result != 0)
        return vram_cudart_fail(error, "cudaMemcpy", result);
    const int launched =
        vram_kernels_compare(self->kernels, address_of(self, offset_bytes), size_bytes,
                             vram_pattern_first(seed), (uint64_t)(uintptr_t)self->found, NULL);
    if (!wait(self, launched, "compare", error))
        return false;
    result = self->runtime->memcpy(&found, self->found, sizeof found, VRAM_CUDA_COPY);
    if (result != 0)
        return vram_cudart_fail(error, "cudaMemcpy", result);
    *differs_at = found == UINT64_MAX ? UINT64_MAX : offset_bytes + found;
    return true;
}

static bool copy(const cuda_arena *self, char *to, const char *from, uint64_t size_bytes,
                 vram_error *error)
{
    const int result = self->runtime->memcpy_async(to, from, size_bytes, VRAM_CUDA_COPY, NULL);
    return result == 0 || vram_cudart_fail(error, "cudaMemcpyAsync", result);
}

/* Chunk by chunk through the bounce buffer, in the direction in which no byte is lost. */
static bool move_overlapping(cuda_arena *self, uint64_t to_bytes, uint64_t from_bytes,
                             uint64_t size_bytes, vram_error *error)
{
    if (self->bounce == NULL) {
        const int result = self->runtime->malloc((void **)&self->bounce, BOUNCE_BYTES);
        if (result != 0)
            return vram_cudart_fail(error, "cudaMalloc", result);
    }
    for (uint64_t done = 0; done < size_bytes; done += BOUNCE_BYTES) {
        const uint64_t left_bytes = size_bytes - done;
        const uint64_t chunk_bytes = left_bytes < BOUNCE_BYTES ? left_bytes : BOUNCE_BYTES;
        const uint64_t at = to_bytes < from_bytes ? done : left_bytes - chunk_bytes;
        if (!copy(self, self->bounce, self->base + from_bytes + at, chunk_bytes, error) ||
            !copy(self, self->base + to_bytes + at, self->bounce, chunk_bytes, error))
            return false;
    }
    return true;
}

static bool cuda_move(vram_arena *arena, uint64_t to_bytes, uint64_t from_bytes,
                      uint64_t size_bytes, vram_error *error)
{
    cuda_arena *self = (cuda_arena *)arena;
    const uint64_t distance_bytes =
        to_bytes < from_bytes ? from_bytes - to_bytes : to_bytes - from_bytes;
    const bool moved =
        distance_bytes >= size_bytes
            ? copy(self, self->base + to_bytes, self->base + from_bytes, size_bytes, error)
            : move_overlapping(self, to_bytes, from_bytes, size_bytes, error);
    return moved && wait(self, 0, "move", error);
}

static void *cuda_base(vram_arena *arena)
{
    return ((cuda_arena *)arena)->base;
}

const vram_arena_ops vram_arena_cuda = {
    .name = "cuda",
    .summary = "one cudaMalloc on an NVIDIA card, at most 80 % of it (more with VRAMLAB_FORCE=1)",
    .create = cuda_create,
    .destroy = cuda_destroy,
    .fill = cuda_fill,
    .compare = cuda_compare,
    .move = cuda_move,
    .base = cuda_base,
};
