/*
 * validate.h - a PyTorch recording replayed on the model of PyTorch's allocator, and compared.
 *
 *     validate_report report;
 *     if (!validate_recording(snapshot, &(validate_options){0}, &report, &error)) ...
 *     report.exact ...
 *
 * The recording's requests and releases drive the model (vramlab/caching.h). Every block's address,
 * every call of the driver, every failure and in the end every block must be as recorded. What a
 * file cannot tell is taken from it or inferred, and counted in the report: where the driver put a
 * segment, when a delayed release was done, calls of empty_cache, the memory cap, the pool of
 * segments that were gone in the end, and what was there before recording began.
 */
#ifndef VRAMLAB_VALIDATE_H
#define VRAMLAB_VALIDATE_H

#include <vramlab/caching.h>
#include <vramlab/snapshot.h>

typedef struct validate_options {
    uint32_t device;
    uint64_t cap_bytes; /* the memory fraction times the card; 0: inferred */
    double cut_share;   /* forget this share of the history first, to try how it is rebuilt */
} validate_options;

/* A count that the recording has and the model reached. */
typedef struct validate_count {
    uint64_t recorded;
    uint64_t equal;
} validate_count;

typedef struct validate_report {
    bool exact;
    char difference[512]; /* the first one, with both sides; "" when exact */
    uint64_t difference_event;
    uint64_t events; /* of the history, after the cut */
    validate_count allocations, segment_events, out_of_memory;
    validate_count final_blocks; /* of the segments at the end, inactive ones included */
    uint64_t recorded_peak_reserved_bytes;
    vram_caching_settings settings;
    vram_caching_stats model; /* at the end */
    /* what was taken from the file or inferred */
    uint64_t bases;                /* segments whose address is the recording's */
    uint64_t delayed_frees;        /* whose completion came later than the release */
    uint64_t empty_caches;         /* calls that leave no event of their own */
    uint64_t pools_inferred;       /* segments gone in the end that must have been a capture's */
    uint64_t reserved_least_bytes; /* the largest total that was not refused */
    uint64_t refused_least_bytes;  /* the smallest that was: the cap is below; UINT64_MAX: none */
    uint64_t before_blocks, before_bytes, before_segments; /* there when the history begins */
    uint64_t before_slack_bytes; /* of these blocks, told by later placements or by small gaps */
} validate_report;

/* False with a message when the recording has no such device or no history, or the host is out of
 * memory; otherwise the report tells, whatever the outcome. */
bool validate_recording(const vram_snapshot *snapshot, const validate_options *options,
                        validate_report *report, vram_error *error);

#endif
