/*
 * lanes.h - what is known of the order of streams, for the layer `stream`. Not installed.
 *
 *              stream 0      stream 1      host
 *   mark 1     release
 *                            waits for 0
 *   mark 2     release
 *                                          syncs 1
 *
 *   knows[1][0] = 1: work queued on 1 from now on comes after mark 1 of stream 0
 *   host[0]     = 1: so does everything, for the host has waited for 1
 *
 * A mark is a place in a stream's queue; marks of a stream count from 1.
 */
#ifndef VRAMLAB_LANES_H
#define VRAMLAB_LANES_H

#include <stdbool.h>
#include <stdint.h>

enum { LANES_MOST = 4096 };

typedef struct lanes {
    uint32_t count; /* streams below it are known */
    uint32_t capacity;
    uint64_t *marks; /* [u]: the last mark of the stream */
    uint64_t *host;  /* [u]: what the host has waited for */
    uint64_t *knows; /* [t * capacity + u] */
} lanes;

/* Makes the stream known. False when there are too many or the host is out of memory. */
bool lanes_reserve(lanes *self, uint32_t stream);
void lanes_free(lanes *self);
uint64_t lanes_host_bytes(const lanes *self);

/* A new mark at the end of the stream's queue. */
uint64_t lanes_mark(lanes *self, uint32_t stream);

/* True when what was queued on `user` up to the mark is over before anything that is queued on
 * `stream` from now on begins; waits are only relied on when follow is set. */
bool lanes_is_safe(const lanes *self, uint32_t stream, uint32_t user, uint64_t mark, bool follow);

/* True when the host has waited for it, so that it is safe for every stream, those yet unknown too.
 */
bool lanes_is_over(const lanes *self, uint32_t user, uint64_t mark);

void lanes_wait(lanes *self, uint32_t waiter, uint32_t stream);
void lanes_sync(lanes *self, uint32_t stream); /* UINT32_MAX: all */

#endif
