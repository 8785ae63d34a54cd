/*
 * vramlab/cursor.h - the live blocks of a timeline at any moment.
 *
 *     vram_cursor *cursor;
 *     if (!vram_cursor_new(&timeline, &cursor, &error)) ...
 *     vram_cursor_seek(cursor, op);
 *     for (size_t i = 0; i < cursor->count; i++)
 *         ... cursor->live[i].offset_bytes, timeline.lives[cursor->live[i].block]
 *
 * Any moment is reached in O(live + K) from the nearest keyframe at or before it; K grows with the
 * number of live blocks so that all keyframes together stay within 128 MiB.
 */
#ifndef VRAMLAB_CURSOR_H
#define VRAMLAB_CURSOR_H

#include <vramlab/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vram_live {
    uint64_t offset_bytes; /* where the block is at this moment */
    uint32_t block;
} vram_live;

typedef struct vram_cursor {
    const vram_timeline *timeline;
    size_t op;             /* operations [0, op) have happened */
    const vram_live *live; /* in no particular order; valid until the next seek */
    size_t count;
    uint64_t live_bytes, granted_bytes; /* of those */
    uint64_t highest_bytes; /* highest end of any block until now: nothing above it was ever used */
} vram_cursor;

/* O(operations). The timeline must outlive the cursor, which stands at its beginning. */
bool vram_cursor_new(const vram_timeline *timeline, vram_cursor **out, vram_error *error);
void vram_cursor_free(vram_cursor *cursor); /* NULL is allowed */

/* Goes to the moment after `op` operations, at most timeline->op_count. False: out of host memory;
 * the cursor then stands where it was. */
bool vram_cursor_seek(vram_cursor *cursor, size_t op);

/* The longest run of bytes that no live block occupies. O(live log live). */
uint64_t vram_cursor_largest_free(const vram_cursor *cursor);

/* The live block at an address, as an index into cursor->live; SIZE_MAX when there is none.
 * O(live). */
size_t vram_cursor_at(const vram_cursor *cursor, uint64_t address_bytes);

#ifdef __cplusplus
}
#endif
#endif
