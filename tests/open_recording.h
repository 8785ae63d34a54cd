/*
 * open_recording.h - recordings of PyTorch for tests: those of the repository, and what lies beside
 * it.
 */
#ifndef VRAMLAB_TESTS_OPEN_RECORDING_H
#define VRAMLAB_TESTS_OPEN_RECORDING_H

#include <vramlab/snapshot.h>

/* By name, without ending. NULL, after a line that says SKIPPED, when it is not there; a failed
 * assertion when it cannot be read. */
vram_snapshot *open_recording(const char *name);

#endif
