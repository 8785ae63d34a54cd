/*
 * vramlab/perfetto.h - a timeline for ui.perfetto.dev: Chrome trace JSON, one track a figure.
 *
 * Tracks: live, granted, free by cause (any request, bound to a class, pending, reserve, padding),
 * largest free span, external fragmentation in percent. Marks and refused requests are instants.
 * Time is the trace's clock, or a microsecond an event when it has none. Up to 200,000 operations
 * are all there; of more, each of as many stretches gives its greatest live moment and its last.
 */
#ifndef VRAMLAB_PERFETTO_H
#define VRAMLAB_PERFETTO_H

#include <vramlab/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

bool vram_perfetto_write(const vram_timeline *timeline, const char *path, vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
