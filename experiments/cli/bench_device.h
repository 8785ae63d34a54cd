/* bench_device.h - the part of `vramlab bench` that needs a card; for cmd_bench.c. */
#ifndef VRAMLAB_BENCH_DEVICE_H
#define VRAMLAB_BENCH_DEVICE_H

#include "cli/job.h"

/* Runs `vramlab bench --arena cuda:SIZE`: every backend over one arena of the card, then the
 * driver's own allocators. Returns the exit status. */
int bench_device(const command *self, const char *arena_text, const char *backends, uint64_t rounds,
                 table_format format);

#endif
