/* workloads.c - the lists of generated workloads and named cases. */
#include "peers.h"

const vram_workload *const vram_workloads[] = {
    &vram_workload_mix,
    &vram_workload_dl,
    &vram_workload_fixed,
    NULL,
};
const vram_workload *const vram_cases[] = {NULL};
