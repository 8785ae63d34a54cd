/*
 * host.c - an arena of host memory, so that contents can be written, moved and read back.
 *
 * The memory is mapped without being reserved: pages exist once they are written. A block's pattern
 * depends on its seed and on the position inside the block, so that a byte that moved by accident,
 * or that another block overwrote, does not match.
 */
#include "arena/kinds.h"

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

/* The eight bytes of the pattern at word `index` of a block (Steele and Lea's splitmix64
 * finaliser). */
static uint64_t pattern_word(uint64_t seed, uint64_t index)
{
    uint64_t word = seed + (index + 1) * UINT64_C(0x9E3779B97F4A7C15);
    word = (word ^ (word >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94D049BB133111EB);
    return word ^ (word >> 31);
}

static bool host_fill(vram_arena *arena, uint64_t offset_bytes, uint64_t size_bytes, uint64_t seed,
                      vram_error *error)
{
    (void)error;
    unsigned char *at = ((host_arena *)arena)->bytes + offset_bytes;
    for (uint64_t done = 0; done < size_bytes; done += sizeof(uint64_t)) {
        const uint64_t word = pattern_word(seed, done / sizeof word);
        const uint64_t left = size_bytes - done;
        memcpy(at + done, &word, left < sizeof word ? left : sizeof word);
    }
    return true;
}

static bool host_compare(vram_arena *arena, uint64_t offset_bytes, uint64_t size_bytes,
                         uint64_t seed, uint64_t *differs_at, vram_error *error)
{
    (void)error;
    const unsigned char *at = ((host_arena *)arena)->bytes + offset_bytes;
    *differs_at = UINT64_MAX;
    for (uint64_t done = 0; done < size_bytes; done += sizeof(uint64_t)) {
        const uint64_t word = pattern_word(seed, done / sizeof word);
        const unsigned char *expected = (const unsigned char *)&word;
        for (uint64_t i = 0; i < sizeof word && done + i < size_bytes; i++)
            if (at[done + i] != expected[i]) {
                *differs_at = offset_bytes + done + i;
                return true;
            }
    }
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
