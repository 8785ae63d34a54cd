/* workloads.c - the list of generated workloads; that of the named cases is in cases.c. */
#include "workloads.h"

#include "peers.h"

const vram_workload *const vram_workloads[] = {
    &vram_workload_mix,       &vram_workload_dl,
    &vram_workload_fixed,     &vram_workload_random,
    &vram_workload_training,  &vram_workload_serving,
    &vram_workload_inference, &vram_workload_frames,
    &vram_workload_like,      NULL,
};
