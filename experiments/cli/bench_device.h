/* bench_device.h - the part of `vramlab bench` that needs a card; for cmd_bench.c. */
#ifndef VRAMLAB_BENCH_DEVICE_H
#define VRAMLAB_BENCH_DEVICE_H

#include "cli/job.h"

typedef struct bench_device_fields {
    const command *self;  /* for messages */
    const char *arena;    /* the size, without "cuda:" */
    const char *backends; /* NULL: all */
    table_format format;
} bench_device_fields;

/* `vramlab bench --arena cuda:SIZE`: single calls of every backend over one arena of the card, then
 * of the driver's own allocators. Returns the exit status. */
int bench_device(const bench_device_fields *given);

/* `vramlab bench --arena cuda:SIZE --streams`: every backend without and with the layer `stream` on
 * real streams. EXIT_NO when bytes were reused early under the layer. */
int bench_device_streams(const bench_device_fields *given);

#endif
