/*
 * oracle.h - the recorded driver: answers as the recording did, and notices the first call that the
 * recording does not have.
 */
#ifndef VRAMLAB_VALIDATE_ORACLE_H
#define VRAMLAB_VALIDATE_ORACLE_H

#include "validate/recording.h"

typedef struct oracle {
    const recording *recording;
    size_t next, end; /* events that the call under way may explain: [next, end) */
    size_t matched;   /* calls of the driver that were as recorded */
    size_t bases;     /* addresses that only the recording knew */
    bool differs;
    size_t differs_at; /* event */
    char difference[512];
    uint64_t chosen_address; /* of the block that the model gave instead; 0: it is something else */
    uint64_t chosen_bytes;   /* and the rounded request */
} oracle;

/* The model's driver; the context is the oracle. */
vram_caching_driver oracle_driver(oracle *self);

/* Notes the first difference: what is recorded at this event, and what the model did. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void oracle_differs(oracle *self, size_t event, const char *format, ...);

/* "segment_alloc of 20.00 MiB at 0x7f.. on stream 3" */
enum { EVENT_TEXT = 160 };
const char *oracle_event_text(const recording *self, size_t event, char text[EVENT_TEXT]);

/* True when no recorded call of the driver is left over; otherwise notes the difference. */
bool oracle_is_done(oracle *self);

/* ---- final.c ---- */

/* Compares every block of every segment with what the snapshot shows in the end. False:
 * the host is out of memory. */
bool validate_final_layout(const recording *history, const vram_caching *model, oracle *differences,
                           validate_report *report);

#endif
