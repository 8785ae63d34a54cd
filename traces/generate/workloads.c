/* workloads.c - the lists of generated workloads and named cases. */
#include "generate.h"

const vram_workload *const vram_workloads[] = {NULL};
const vram_workload *const vram_cases[] = {NULL};
