/*
 * reader.h - what a format must offer, and what it gets to work with.
 *
 * A format turns bytes into raw events, as the file has them; trace.c makes them fit the promises
 * of vramlab/trace.h (see normalise.h). A generated workload is a format without a file.
 *
 *     bytes -> input.h -> a format: raw events -> normalise.h -> vram_event
 */
#ifndef VRAMLAB_READERS_READER_H
#define VRAMLAB_READERS_READER_H

#include "idmap.h"
#include "input.h"
#include "names.h"
#include "scan.h"

#include <vramlab/trace.h>

/* An event as the file tells it. A format sets kind and what the kind needs and leaves the rest 0.
 */
typedef struct vram_raw {
    uint64_t id;         /* number, address, index: whatever names the block in the file */
    uint64_t size_bytes; /* WAIT: the handle of the stream that is waited for */
    uint64_t time_ns;    /* absolute; ignored unless source->info->has_clock */
    uint64_t stream;     /* handle; SYNC: UINT64_MAX for all */
    uint32_t tag;        /* from vram_names_intern(&source->tags, ...) */
    uint32_t stack;      /* from vram_names_intern(&source->stacks, ...), or the format's own */
    uint8_t kind;        /* vram_event_kind */
    uint8_t align_log2;
    bool null_id; /* FREE, RESIZE: of NULL */
    bool renames; /* RESIZE: from now on the id is new_id */
    uint64_t new_id;
} vram_raw;

/* One opened file, as its format sees it. */
typedef struct vram_source {
    const char *path;
    const vram_trace_options *options; /* never NULL */
    vram_input *input;     /* at the file's start when open is called; NULL for a workload */
    vram_trace_info *info; /* open sets unit_bytes, has_clock, recorded; next counts the anomalies
                              that only the format can see, by vram_source_anomaly */
    vram_names tags, stacks;
    uint64_t *streams; /* handles by index */
    size_t stream_capacity;
    vram_idmap stream_index; /* handle -> index */
    uint64_t last_handle;    /* the stream used last, and its index */
    uint32_t last_stream;
    const char *record_name; /* how messages tell the place: "event"; NULL: by line or byte */
    uint64_t record;         /* number of the record in hand, from 1 */
    uint64_t peak_blocks;    /* most blocks live at once so far, for headers that tell it */
    void *state;             /* the format's own */
} vram_source;

typedef struct vram_format {
    const char *name;    /* "rmm-csv" */
    const char *summary; /* one line for `vramlab list` */

    /* How sure it is, from the first bytes (up to VRAM_PROBE_BYTES, unfolded): 0 not mine, 1 could
     * be, 2 has my structure, 3 bears my name. The surest wins; on a tie, the earlier in the list.
     * NULL: never found by content (a workload). */
    int (*probe)(const char *head, size_t head_bytes);
    /* Sets source->state, and info->format where `name` is too general; counts no anomalies. On
     * failure nothing is left behind. */
    bool (*open)(vram_source *source, vram_error *error);
    vram_step (*next)(vram_source *source, vram_raw *event, vram_error *error);
    /* Back to the first event. NULL: trace.c closes, takes the input to its start and opens. */
    bool (*rewind)(vram_source *source, vram_error *error);
    void (*close)(vram_source *source);
    /* The text of a stack; NULL: source->stacks has it. */
    const char *(*stack)(const vram_source *source, uint32_t stack);
    /* Fills what is not needed to read the events, for a summary; may be NULL. */
    bool (*look_closer)(vram_source *source, vram_error *error);
} vram_format;

enum { VRAM_PROBE_BYTES = 4096 };

#define VRAM_UNIT_MAX (UINT64_C(1) << 21) /* the largest unit_bytes that a file may state */

/* "line 12" or "byte 4711": where the input is. Returns text. */
const char *vram_source_where(const vram_source *source, char text[64]);

/* Fails with the path, the place, and the message: "job.csv: line 3: ...". Returns
 * VRAM_STEP_ERROR. */
__attribute__((format(printf, 3, 4))) vram_step
vram_source_fail(const vram_source *source, vram_error *error, const char *format, ...);

/* As vram_source_fail: "found "xyz", expected WHAT", with what comes next in the scan. */
vram_step vram_source_expected(const vram_source *source, const vram_scan *scan, const char *what,
                               vram_error *error);

/* The next line as a scan; EVENT when there is one. */
vram_step vram_source_line(vram_source *source, vram_scan *line, vram_error *error);

/* Sets event->tag to the text; false, with a message, when out of memory. */
bool vram_source_tag(vram_source *source, vram_scan text, vram_raw *event, vram_error *error);

/* Counts an anomaly; under `strict` fails with the message instead and returns false. */
__attribute__((format(printf, 4, 5))) bool vram_source_anomaly(vram_source *source,
                                                               vram_anomaly anomaly,
                                                               vram_error *error,
                                                               const char *format, ...);

/* The index of a stream's handle, numbered as they first come. False when out of memory. */
bool vram_source_stream(vram_source *source, uint64_t handle, uint32_t *index);

/* The figure by its name in vram_recorded ("cut" apart); NULL when there is none of that name. */
uint64_t *vram_recorded_field(vram_recorded *recorded, const char *name, size_t name_bytes);
/* The names that vram_recorded_field knows, by index; NULL beyond the last. */
const char *vram_recorded_name(size_t index);

/* Calls the format's look_closer (trace.c). */
bool vram_trace_look_closer(vram_trace *trace, vram_error *error);

/* All formats, ending with NULL (readers/formats.c). */
extern const vram_format *const vram_formats[];

#endif
