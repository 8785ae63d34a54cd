/* umpire.h - one JSON text of an Umpire replay log as raw events; shared by the log and SQLite. */
#ifndef VRAMLAB_READERS_UMPIRE_H
#define VRAMLAB_READERS_UMPIRE_H

#include "json.h"
#include "reader.h"

/* A reallocation whose reply is still to come. */
typedef struct vram_umpire {
    uint64_t old_id, size_bytes;
    bool open;   /* the request was seen, the reply was not */
    bool nested; /* allocations or frees were seen in between: they tell what happened */
} vram_umpire;

/* Reads the value that the JSON is at. *is_event is false for what is no allocation. END: no value.
 */
vram_step vram_umpire_read(vram_source *source, vram_umpire *state, vram_json *json,
                           vram_raw *event, bool *is_event, vram_error *error);

#endif
