/* mutexed.h - any backend behind a mutex, so that tests of the driver's threads need no layer. */
#ifndef VRAMLAB_TESTS_MUTEXED_H
#define VRAMLAB_TESTS_MUTEXED_H

#include <vramlab/backend.h>

/* Owns `inner`. */
vram_backend *mutexed_over(vram_backend *inner);

#endif
