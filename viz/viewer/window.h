/*
 * window.h - the view in a window; of the command only, so that the library needs no SDL2.
 */
#ifndef VRAMLAB_VIZ_WINDOW_H
#define VRAMLAB_VIZ_WINDOW_H

#include <vramlab/viewer.h>

/*
 * Opens a window and lets the user at it until it is closed. `opened` is called with a file that
 * was dropped on the window and returns a new view, or NULL; the one before is then freed. False
 * with a message when there is no display.
 */
bool vram_view_window(vram_view **view, const char *title,
                      vram_view *(*opened)(void *context, const char *path), void *context,
                      vram_error *error);

#endif
