/*
 * layer.h - what every layer has: the backend inside it, and its operations passed on as they are.
 * Not installed.
 *
 * A layer's table names, for each operation, its own or the one from here. An optional operation
 * that the inner backend does not offer answers as if there were nothing to do: no moves, no bytes,
 * unsupported.
 */
#ifndef VRAMLAB_LAYER_H
#define VRAMLAB_LAYER_H

#include "core/core.h"

/* The head of every layer. The layer owns `inner`. */
typedef struct vram_layer {
    vram_backend head;
    vram_backend *inner;
} vram_layer;

/* Makes a zeroed layer of this size around config->inner. NULL, with a message, when out of memory.
 */
void *vram_layer_new(const vram_config *config, size_t bytes, const char *name, vram_error *error);

/* Destroys the inner backend and frees the layer. */
void vram_layer_destroy(vram_backend *self);

vram_result vram_layer_alloc(vram_backend *self, const vram_request *request, vram_block *out);
vram_result vram_layer_release(vram_backend *self, vram_block block);
void vram_layer_walk(const vram_backend *self, vram_visit *visit, void *context);
bool vram_layer_check(const vram_backend *self, vram_fault *fault);
void vram_layer_stats(const vram_backend *self, vram_stats *out);
void vram_layer_explain(const vram_backend *self, const vram_request *request,
                        vram_failure *failure);
vram_result vram_layer_resize(vram_backend *self, vram_block *block, uint64_t size_bytes);
bool vram_layer_maintain(vram_backend *self);
size_t vram_layer_plan_moves(const vram_backend *self, uint64_t budget_bytes, vram_move *moves,
                             size_t max_moves);
vram_result vram_layer_commit_move(vram_backend *self, const vram_move *move, vram_block *block);
uint64_t vram_layer_trim(vram_backend *self);
vram_result vram_layer_use(vram_backend *self, vram_block block, uint32_t stream);
void vram_layer_sync(vram_backend *self, uint32_t stream);
void vram_layer_wait(vram_backend *self, uint32_t waiter, uint32_t stream);
void vram_layer_hook(vram_backend *self, const vram_stream_hooks *hooks);

#endif
