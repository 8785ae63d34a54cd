/*
 * contained.h - plays in a child process, so that what a broken backend does to its process is a
 * finding and not a misfortune.
 */
#ifndef CONFORMANCE_CONTAINED_H
#define CONFORMANCE_CONTAINED_H

#include "conformance/conformance.h"

typedef struct vram_limits {
    double silence_s;      /* of the processor's time that one call may take */
    uint64_t memory_bytes; /* resident in the child */
    bool quiet;            /* what the child prints is thrown away */
} vram_limits;

/* What is done in the child; its answer is brought back. */
typedef vram_verdict vram_deed(vram_stage *stage, const void *context);

/*
 * Does the deed in a child. BROKEN with the finding "crash", "hang", "memory" or "exit" when it did
 * not come to its end, at the act and in the call that the stage shows. `tick`, if not NULL, is
 * called now and then meanwhile.
 */
vram_verdict contained_do(vram_stage *stage, const vram_limits *limits, vram_deed *deed,
                          const void *context, void (*tick)(const vram_stage *stage));

#endif
