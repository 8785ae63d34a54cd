/*
 * window_none.c - the viewer of a build without SDL2 (VRAMLAB_VIEWER=OFF): pictures and films only.
 */
#include "window.h"

bool vram_view_window(vram_view **view, const char *title,
                      vram_view *(*opened)(void *context, const char *path), void *context,
                      vram_error *error)
{
    (void)view;
    (void)title;
    (void)opened;
    (void)context;
    return vram_fail(error, "this build has no window (it was configured with VRAMLAB_VIEWER=OFF); "
                            "use --screenshot, --frames or --video");
}
