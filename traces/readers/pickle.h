/* pickle.h - how a snapshot is written, into a vram_build. */
#ifndef VRAMLAB_READERS_PICKLE_H
#define VRAMLAB_READERS_PICKLE_H

#include "build.h"

/* Both leave one value, the whole file, on the build's stack. False with a message otherwise. */
bool vram_pickle_read(vram_build *build); /* protocols 2 to 5 */
bool vram_snapshot_json_read(vram_build *build);

#endif
