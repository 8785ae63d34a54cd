/*
 * vramlab/write.h - a trace written in a format, and what that format could not hold.
 *
 *     vram_write_report report;
 *     if (!vram_trace_write(trace, "rmm-csv", "out.csv.gz", &report, &error)) ...
 *     for (unsigned i = 0; i < VRAM_LOSSES; i++)
 *         if (report.lost[i] > 0) printf("%llu %s\n", report.lost[i], vram_loss_name(i));
 */
#ifndef VRAMLAB_WRITE_H
#define VRAMLAB_WRITE_H

#include <vramlab/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a format may have no place for; counted by event, unless it says otherwise. */
typedef enum vram_loss {
    VRAM_LOSS_TIME,      /* times: replaced by the event's number */
    VRAM_LOSS_PRECISION, /* parts of a time below a microsecond */
    VRAM_LOSS_ID,        /* ids: blocks are numbered anew */
    VRAM_LOSS_STREAM,    /* streams other than the default one */
    VRAM_LOSS_ALIGN,     /* alignments */
    VRAM_LOSS_TAG,       /* tags of blocks */
    VRAM_LOSS_STACK,
    VRAM_LOSS_RETIRE, /* the moment at which a block was let go before it was free */
    VRAM_LOSS_RESIZE, /* resizes: written as a free and an allocation */
    VRAM_LOSS_TRY,    /* asks that were refused when recorded */
    VRAM_LOSS_USE,    /* uses by other streams */
    VRAM_LOSS_ORDER,  /* syncs and waits */
    VRAM_LOSS_MARK,
    VRAM_LOSS_UNIT,        /* once: a unit that the format does not imply */
    VRAM_LOSS_RECORDED,    /* once: what the recording program's own allocator did */
    VRAM_LOSS_NEVER_FREED, /* blocks never freed: given an end behind the last event */
    VRAM_LOSSES
} vram_loss;

typedef struct vram_write_report {
    uint64_t events; /* of the trace */
    uint64_t lines;  /* written, headers apart */
    uint64_t lost[VRAM_LOSSES];
} vram_write_report;

/* The formats that can be written, in the order in which they are listed; NULL beyond the last. */
const char *vram_write_format_at(size_t index, const char **summary);

/* The format that a file's name asks for: "x.vt", "x.vt.gz", "x.rep"; NULL when the name leaves it
 * open. */
const char *vram_write_format_of(const char *path);

/*
 * Writes the whole trace, which is read from its start and left there. Packed by gzip when the path
 * ends in ".gz". The file is whole or absent.
 */
bool vram_trace_write(vram_trace *trace, const char *format, const char *path,
                      vram_write_report *report, vram_error *error);

const char *vram_loss_name(vram_loss loss); /* "alignments" */

#ifdef __cplusplus
}
#endif
#endif
