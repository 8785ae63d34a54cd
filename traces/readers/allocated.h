/* allocated.h - what PyTorch's own allocator had allocated at its peak. */
#ifndef VRAMLAB_READERS_ALLOCATED_H
#define VRAMLAB_READERS_ALLOCATED_H

#include <vramlab/snapshot.h>

/* A block that was live before recording began. */
typedef struct vram_before {
    uint64_t address, size_bytes, stream;
    uint32_t frames;
    bool pending; /* let go before recording began */
} vram_before;

/*
 * The most bytes of blocks allocated at once, freed ones that wait for a stream not counted:
 * rounded requests and what was not split off. `befores` are in address order. False when out of
 * memory.
 */
bool vram_peak_allocated(const vram_snapshot *snapshot, uint32_t device, const vram_before *befores,
                         size_t before_count, uint64_t *peak_bytes);

#endif
