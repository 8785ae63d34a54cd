/*
 * vramlab/viewer.h - several timelines of one trace, animated in step.
 *
 * Everything is drawn into a picture in memory by one path, so that a window, a screenshot, a frame
 * of a film and a test show the same pixels. SDL only shows that picture and hands over keys and
 * pointer.
 */
#ifndef VRAMLAB_VIEWER_H
#define VRAMLAB_VIEWER_H

#include <vramlab/metrics.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VRAM_VIEW_PANELS = 9,
    VRAM_VIEW_LEAST_WIDTH = 640,
    VRAM_VIEW_LEAST_HEIGHT = 400,
    VRAM_VIEW_MOST = 8192,
};

typedef struct vram_view vram_view;

typedef struct vram_view_options {
    uint32_t width, height; /* pixels; 0: 1280 x 800 */
    double scale;           /* of letters and lines, 0.5 to 4; 0: 1 */
    bool light;             /* theme; default dark */
    const char *layout;     /* "rows", "hilbert", "time"; NULL: rows */
    const char *colour;     /* "size", "age", "occupancy", "stream", "tag", "state"; NULL: size */
} vram_view_options;

/* The timelines must outlive the view. Makes keyframes and curves: O(operations). */
bool vram_view_new(const vram_timeline *const *timelines, size_t count,
                   const vram_view_options *options, vram_view **out, vram_error *error);
void vram_view_free(vram_view *view); /* NULL is allowed */

/* ---- what hands do; each is also a line of a script ---- */

/* A key by name: "space", "right", "shift+right", "ctrl+right", "m", "?", "return" ... False: no
 * such key. */
bool vram_view_key(vram_view *view, const char *key);
void vram_view_text(vram_view *view, const char *text); /* typed into the field that `g` opens */
void vram_view_move(vram_view *view, int x, int y);
void vram_view_press(vram_view *view, int x, int y, int clicks);
void vram_view_release(vram_view *view, int x, int y);
void vram_view_wheel(vram_view *view, int x, int y, int steps);
bool vram_view_resize(vram_view *view, int width, int height); /* false: out of host memory */

/* Lets the time of playing pass. */
void vram_view_tick(vram_view *view, double seconds);

/* Makes at once all keyframes that ticks would make by and by. */
void vram_view_settle(vram_view *view);

/* "40%", "event=1234", "time=0.5" (seconds), "failure", "start", "end". False with a message. */
bool vram_view_go(vram_view *view, const char *where, vram_error *error);

bool vram_view_wants_to_quit(const vram_view *view);
bool vram_view_is_playing(const vram_view *view);
bool vram_view_needs_paint(const vram_view *view); /* time alone changes what is shown */
uint64_t vram_view_event(const vram_view *view);   /* events [0, this) have happened */
/* One line that tells the state: "event=12 of=99 playing=0 layout=rows colour=size ..." for
 * scripts. */
void vram_view_state(const vram_view *view, char *text, size_t text_bytes);

/* ---- pictures ---- */

/* Draws and returns the pixels, 0xRRGGBB, row by row; valid until the next call. NULL: out of host
 * memory. */
const uint32_t *vram_view_paint(vram_view *view, int *width, int *height);
bool vram_view_save(vram_view *view, const char *path, vram_error *error); /* PNG */
/* Where the key `s` wants the view saved, once; NULL otherwise. */
const char *vram_view_save_asked(vram_view *view);
void vram_view_say(vram_view *view, const char *message); /* shown for a moment in the last line */

/* Writes the keys and what they do, as --help and the overlay show them. */
void vram_view_print_keys(FILE *out);

/* ---- without hands ---- */

/* Plays a script (see script.c for its lines). False with a message that names the line. */
bool vram_view_script(vram_view *view, const char *path, vram_error *error);

/* Saves `count` frames from start to end as DIR/frame-000001.png ... */
bool vram_view_frames(vram_view *view, const char *folder, uint32_t count, vram_error *error);
/* The same as a film, by ffmpeg; the name's end says which: .mp4, .webm, .gif. */
bool vram_view_film(vram_view *view, const char *path, uint32_t count, uint32_t per_second,
                    vram_error *error);

/* What `count` frames cost with a random seek each. */
typedef struct vram_view_bench {
    double frames_per_second;
    double seek_ms_mean, seek_ms_worst; /* all panels together */
    double paint_ms_mean, paint_ms_worst;
} vram_view_bench;
bool vram_view_measure(vram_view *view, uint32_t count, vram_view_bench *bench, vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
