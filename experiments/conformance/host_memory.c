/*
 * host_memory.c - malloc and its kin, counted and made to fail on demand.
 *
 * The C library lets a program define the whole family and exports its own under other names.
 * Everything is counted by thread, so that threads need no lock; a block freed by another thread
 * than allocated it is counted wrongly, which the conformance suite has no use for.
 */
#include "conformance/host_memory.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)

bool host_memory_is_watched(void)
{
    return false;
}

int64_t host_memory_blocks(void)
{
    return 0;
}

void host_memory_fail_from(uint64_t n)
{
    (void)n;
}

uint64_t host_memory_restore(void)
{
    return 0;
}

#else

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t align_bytes, size_t bytes);
void __libc_free(void *block);

static _Thread_local int64_t blocks;
static _Thread_local uint64_t left = UINT64_MAX; /* allocations until there is no memory */
static _Thread_local uint64_t refused;

bool host_memory_is_watched(void)
{
    return true;
}

int64_t host_memory_blocks(void)
{
    return blocks;
}

void host_memory_fail_from(uint64_t n)
{
    left = n;
    refused = 0;
}

uint64_t host_memory_restore(void)
{
    left = UINT64_MAX;
    return refused;
}

static bool may_allocate(void)
{
    if (left == UINT64_MAX)
        return true;
    if (left > 0) {
        left--;
        return true;
    }
    refused++;
    errno = ENOMEM;
    return false;
}

static void *counted(void *block)
{
    blocks += block != NULL;
    return block;
}

void *malloc(size_t bytes)
{
    return may_allocate() ? counted(__libc_malloc(bytes)) : NULL;
}

void *calloc(size_t count, size_t bytes)
{
    return may_allocate() ? counted(__libc_calloc(count, bytes)) : NULL;
}

void *realloc(void *block, size_t bytes)
{
    if (!may_allocate())
        return NULL;
    void *moved = __libc_realloc(block, bytes);
    blocks += block == NULL ? moved != NULL : -(moved == NULL && bytes == 0);
    return moved;
}

void *memalign(size_t align_bytes, size_t bytes)
{
    return may_allocate() ? counted(__libc_memalign(align_bytes, bytes)) : NULL;
}

void *aligned_alloc(size_t align_bytes, size_t bytes)
{
    return memalign(align_bytes, bytes);
}

int posix_memalign(void **out, size_t align_bytes, size_t bytes)
{
    void *block = memalign(align_bytes, bytes);
    if (block == NULL)
        return ENOMEM;
    *out = block;
    return 0;
}

void free(void *block)
{
    blocks -= block != NULL;
    __libc_free(block);
}

#endif
