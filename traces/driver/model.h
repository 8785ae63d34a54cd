/*
 * model.h - what a correct allocator may do, kept apart from every backend.
 *
 * A set of live intervals with code of its own. The driver's verification and the conformance
 * suite tell it each answer of a backend; it finds the answers that no correct allocator gives.
 */
#ifndef VRAMLAB_DRIVER_MODEL_H
#define VRAMLAB_DRIVER_MODEL_H

#include <vramlab/backend.h>

typedef struct vram_model vram_model;

/* A backend's arena_bytes and address_bytes. NULL when the host is out of memory. */
vram_model *vram_model_create(uint64_t arena_bytes, uint64_t address_bytes);
void vram_model_destroy(vram_model *self); /* NULL is allowed */

/*
 * A block was served. False with a message when it leaves the arena, overlaps a live block, is not
 * aligned to request->align_bytes, is smaller than asked for, or has a null generation; the model
 * is then unchanged. O(log live).
 */
bool vram_model_add(vram_model *self, const vram_request *request, const vram_block *block,
                    vram_error *error);

/* The block was released. False with a message when no live block is exactly this one. O(log live).
 */
bool vram_model_remove(vram_model *self, const vram_block *block, vram_error *error);

/* A live block that touches these bytes; false when there is none. O(log live). */
bool vram_model_find_overlap(const vram_model *self, uint64_t offset_bytes, uint64_t size_bytes,
                             vram_block *block);

uint64_t vram_model_live_blocks(const vram_model *self);
uint64_t vram_model_granted_bytes(const vram_model *self);

/*
 * Compares the backend's own account with the model: the walk tiles the arena in address order
 * (with virtual addresses: its spans add up to the arena), its live spans are exactly the model's
 * blocks, the bytes of each kind are those in stats, and the six parts of stats add up to the
 * arena. False with a message for the first difference. O(spans log live).
 */
bool vram_model_agrees(const vram_model *self, const vram_backend *backend, vram_error *error);

/* True when the six parts of stats add up to the arena. */
bool vram_stats_add_up(const vram_stats *stats, uint64_t arena_bytes);

#endif
