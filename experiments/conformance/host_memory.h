/*
 * host_memory.h - the host's memory under watch: how many blocks a thread holds, and what happens
 * when there is no more.
 *
 * The file defines malloc and its kin for the whole program, plug-ins included, in front of the C
 * library's own. Where a sanitizer has done so already nothing is watched, and it finds leaks
 * itself.
 */
#ifndef CONFORMANCE_HOST_MEMORY_H
#define CONFORMANCE_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

bool host_memory_is_watched(void);

/* Blocks that this thread has allocated and not freed. */
int64_t host_memory_blocks(void);

/* From the n-th allocation of this thread on (0 is the next one) there is no memory. */
void host_memory_fail_from(uint64_t n);
/* There is memory again. Returns how many allocations were refused. */
uint64_t host_memory_restore(void);

#endif
