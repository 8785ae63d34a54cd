/*
 * core.h - what core's files and the backends share; not installed.
 */
#ifndef VRAMLAB_CORE_H
#define VRAMLAB_CORE_H

#include <vramlab/backend.h>

/*
 * Parses "key=value,key" (NULL or "" for all defaults) by the table into one block of memory: a
 * vram_value a row, then the texts they point to. The caller frees it. NULL, with a message that
 * names `who`, when something is unknown or out of range. Shares of sizes are taken of arena_bytes;
 * where that is 0 they stay unresolved.
 */
vram_value *vram_options_parse(const char *who, const vram_option *table, const char *text,
                               uint64_t arena_bytes, vram_error *error);

/* Tables of the built-in backends and layers; registry.c lists them. */
extern const vram_ops vram_naive_ops;
extern const vram_ops vram_null_ops;
extern const vram_ops vram_fixed_ops;
extern const vram_ops vram_segregated_ops;
extern const vram_ops vram_slab_ops;
extern const vram_ops vram_reserve_ops, vram_locked_ops, vram_magazine_ops, vram_stream_ops,
    vram_pointer_ops, vram_checked_ops, vram_faulty_ops;
extern const vram_ops vram_list_ops;
extern const vram_ops vram_caching_ops;
extern const vram_ops vram_cudamalloc_ops;
extern const vram_ops vram_cudaasync_ops;
extern const vram_ops vram_buddy_ops;
extern const vram_ops vram_tlsf_ops;

/* unit_bytes is a power of two; size_bytes is at most VRAM_ARENA_MAX, so that nothing wraps. */
static inline uint64_t vram_round_up(uint64_t size_bytes, uint64_t unit_bytes)
{
    return (size_bytes + unit_bytes - 1) & ~(unit_bytes - 1);
}

static inline bool vram_is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* A finding of check: stored, and false returned. */
static inline bool vram_fault_at(vram_fault *fault, const char *invariant, uint64_t offset_bytes)
{
    *fault = (vram_fault){.invariant = invariant, .offset_bytes = offset_bytes};
    return false;
}

/*
 * The option `unit` that most backends have, and the unit to work with: the option's when given,
 * else the workload's, else 512.
 */
#define VRAM_UNIT_OPTION                                                                           \
    {                                                                                              \
        .name = "unit", .type = VRAM_OPTION_SIZE, .fallback = "trace", .least = 1,                 \
        .most = UINT64_C(1) << 30, .choices = "trace",                                             \
        .help = "sizes are rounded up to a multiple of it; a power of two; trace: the trace's own" \
    }

bool vram_unit_of(const vram_config *config, const vram_value *unit, uint64_t *unit_bytes,
                  vram_error *error);

#endif
