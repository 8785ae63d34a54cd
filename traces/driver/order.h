/*
 * order.h - happens-before over streams: which stream may still be using which bytes.
 *
 * The host queues work on streams; a stream works in order, two streams in any order unless one
 * waits for the other or the host has waited in between. A block's bytes may be given to another
 * stream only when all that was queued on its users before its release is over by then.
 */
#ifndef VRAMLAB_DRIVER_ORDER_H
#define VRAMLAB_DRIVER_ORDER_H

#include <vramlab/driver.h>

enum { VRAM_ALL_STREAMS = UINT32_MAX };

/* The streams that use a block beside the one for which it was allocated: a chain inside the
 * vram_order; 0 is none. */
typedef uint32_t vram_users;

typedef struct vram_order vram_order;

/* Event numbers never fall from call to call. The calls that return a bool fail only when the host
 * is out of memory. */
vram_order *vram_order_create(void);
void vram_order_destroy(vram_order *self); /* NULL is allowed */

/* These bytes are given to the stream. *early tells of another stream that may still be using one
 * of them; early->event is UINT64_MAX when there is none. O(streams * spans). */
bool vram_order_take(vram_order *self, uint64_t event, uint32_t stream, uint64_t offset_bytes,
                     uint64_t size_bytes, vram_early_reuse *early);

/* The stream uses the block from now on too. */
bool vram_order_use(vram_order *self, vram_users *users, uint32_t stream);

/* The block is gone, or the other users are known to be done. */
void vram_order_forget_users(vram_order *self, vram_users *users);

/* These bytes are given back: work queued on the stream and the users before `event` may still
 * touch them. O(spans). */
bool vram_order_give_back(vram_order *self, uint64_t event, uint32_t stream, vram_users users,
                          uint64_t offset_bytes, uint64_t size_bytes);

/* The host has waited for the stream, or for all. */
bool vram_order_sync(vram_order *self, uint64_t event, uint32_t stream);

/* `waiter` waits for what is queued on `stream` so far. */
bool vram_order_wait(vram_order *self, uint64_t event, uint32_t waiter, uint32_t stream);

#endif
