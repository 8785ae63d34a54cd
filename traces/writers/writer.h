/*
 * writer.h - what a written format must offer, and the sink that it writes to.
 */
#ifndef VRAMLAB_WRITERS_WRITER_H
#define VRAMLAB_WRITERS_WRITER_H

#include <vramlab/output.h>
#include <vramlab/write.h>

/* A file under way, packed or not. A failure is remembered until the end. */
typedef struct sink {
    vram_output output;
    void *packed; /* gzFile, or NULL */
    size_t used;
    char buffer[1 << 16];
    bool failed;
} sink;

bool sink_open(sink *self, const char *path, vram_error *error);
bool sink_commit(sink *self, vram_error *error);
void sink_discard(sink *self);
void sink_text(sink *self, const char *text);
void sink_bytes(sink *self, const char *bytes, size_t count);
void sink_decimal(sink *self, uint64_t number);
void sink_hex(sink *self, uint64_t number); /* with 0x */

/* One writing. */
typedef struct writing {
    vram_trace *trace;
    const vram_trace_info *info;
    const vram_trace_summary *summary; /* of the whole trace, when the format asks for it */
    vram_write_report *report;
    sink sink;
    uint64_t *ids; /* by slot: the block's id as it was written last */
    size_t id_capacity;
    void *state; /* the format's own */
} writing;

typedef struct vram_writer {
    const char *name, *summary;
    const char *suffix;  /* of file names, without ".gz"; NULL when several formats share it */
    bool summarise;      /* it needs writing->summary */
    uint64_t unit_bytes; /* that a reader of the format assumes; 0: the format tells it */
    bool (*begin)(writing *w);
    bool (*event)(writing *w, const vram_event *event); /* false: out of memory */
    bool (*end)(writing *w);                            /* NULL: nothing is left to do */
    void (*drop)(writing *w);                           /* frees the state; may be NULL */
} vram_writer;

/* The time that the file's clock told; only where there is one. */
static inline uint64_t clock_ns(const writing *w, const vram_event *event)
{
    return w->info->origin_ns + event->time_ns;
}

static inline void lose(writing *w, vram_loss loss)
{
    w->report->lost[loss]++;
}

/* Counts what most formats have no place for: alignment, tag, stack, stream of a block. */
enum { LOSE_ALIGN = 1, LOSE_TAG = 2, LOSE_STACK = 4, LOSE_STREAM = 8 };
void lose_attributes(writing *w, const vram_event *event, unsigned which);
/* Counts an event that is left out, by its kind. */
void lose_event(writing *w, const vram_event *event);

extern const vram_writer vram_writer_native, vram_writer_minimalloc, vram_writer_rmm_csv,
    vram_writer_rep;

#endif
