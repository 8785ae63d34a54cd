/*
 * gap.h - between what PyTorch had reserved and what its program used: by cause, and by culprit.
 *
 *     gap_report gap;
 *     if (gap_measure(snapshot, device, &gap, &error)) gap_print(&gap, snapshot, stdout);
 *     gap_free(&gap);
 *
 * The moment looked at is the first out-of-memory of the recording, else the request that took
 * reserved memory to its peak. "Another stream" and "in reach" are meant from that request's view.
 */
#ifndef VRAMLAB_GAP_H
#define VRAMLAB_GAP_H

#include "validate/validate.h"

#include <stdio.h>

/* A live block in a segment whose free memory it keeps from being given back. */
typedef struct gap_pin {
    uint64_t requested_bytes, size_bytes;
    uint64_t event;  /* which allocated it; UINT64_MAX: before the history begins */
    uint64_t stream; /* handle */
    uint32_t frames; /* for vram_snapshot_stack; 0: not recorded */
    const char *tag; /* user metadata; "" for none; owned by the snapshot */
} gap_pin;

/* A segment with free memory that its live blocks hold. Its size is the memory in it: an expandable
 * segment has addresses for far more. */
typedef struct gap_segment {
    uint64_t address, size_bytes, free_bytes, largest_free_bytes;
    uint64_t stream;
    size_t first_pin, pin_count; /* into pins, largest first */
} gap_segment;

typedef struct gap_report {
    bool out_of_memory; /* the moment is the first one; otherwise the peak of reserved memory */
    uint64_t event;
    uint64_t asked_bytes;   /* by the request at that moment */
    uint64_t segment_bytes; /* and what that asks of the driver */
    uint64_t reserved_bytes, requested_bytes;
    /* reserved - requested, by cause; adds up exactly */
    uint64_t rounding_bytes;     /* in live blocks: to 512, or slack that was not split off */
    uint64_t pending_bytes;      /* released, but another stream's event is outstanding */
    uint64_t held_bytes;         /* free inside segments of the same stream that live blocks hold */
    uint64_t whole_bytes;        /* in wholly free segments of the same stream */
    uint64_t other_stream_bytes; /* free, but bound to other streams */
    uint64_t largest_free_bytes; /* the largest free block of the same stream */
    gap_segment *segments;       /* with free memory and live blocks, most free first */
    size_t segment_count;
    gap_pin *pins;
    size_t pin_count;
} gap_report;

/* False with a message when the model does not follow the recording to that moment. */
bool gap_measure(const vram_snapshot *snapshot, uint32_t device, gap_report *gap,
                 vram_error *error);
void gap_free(gap_report *gap);

/* A paragraph for a person: the parts, and the segments that matter most with their blocks. */
void gap_print(const gap_report *gap, const vram_snapshot *snapshot, FILE *out);

#endif
