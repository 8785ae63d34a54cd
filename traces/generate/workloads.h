/* workloads.h - the workloads by name, for workloads.c. */
#ifndef VRAMLAB_GENERATE_WORKLOADS_H
#define VRAMLAB_GENERATE_WORKLOADS_H

#include "generate.h"

extern const vram_workload vram_workload_random, vram_workload_training, vram_workload_serving,
    vram_workload_inference, vram_workload_frames, vram_workload_like;

#endif
