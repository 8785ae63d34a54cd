/*
 * stage.h - one run of a property, in memory that the process which watches can read even after the
 * one that plays has died.
 */
#ifndef CONFORMANCE_STAGE_H
#define CONFORMANCE_STAGE_H

#include "conformance/script.h"

/* What does not hold. */
typedef struct finding {
    bool found;
    uint32_t act;       /* of the script; UINT32_MAX: at none in particular */
    char broken[32];    /* the rule: "overlap", "crash" */
    char expected[256]; /* by the contract */
    char happened[768];
} vram_finding;

typedef struct stage {
    char spec[1024];
    uint32_t check_every;      /* the backend's check and walk are examined every so many acts */
    volatile uint32_t act;     /* being played */
    const char *volatile call; /* being made: "alloc" */
    volatile uint64_t beats;   /* calls made so far */
    volatile uint64_t steps;   /* acts played so far, over all scripts */
    volatile uint64_t served;  /* allocations among them that were served */
    volatile uint32_t verdict; /* of a child that came to its end; UINT32_MAX until then */
    char refusal[256];         /* the last message of a create that refused an arena */
    vram_finding finding;
    vram_script script;
} vram_stage;

/* Shared with the children of this process. NULL when the host is out of memory. */
vram_stage *stage_new(const char *spec);
void stage_free(vram_stage *self); /* NULL is allowed */

/* Before each call of the backend. */
static inline void stage_call(vram_stage *self, const char *call)
{
    self->call = call;
    self->beats++;
}

/* Notes what is broken at the current act, unless something has been found before. Returns false.
 */
__attribute__((format(printf, 4, 5))) bool
stage_find(vram_stage *self, const char *broken, const char *expected, const char *happened, ...);

#endif
