/*
 * view.h - the viewer's state: what is shown, and where on the picture. Not installed.
 *
 *   view.c    state and time                     layout.c  where everything is
 *   keys.c    what a key does                    paint.c   draws it all into the raster
 *   hands.c   pointer: zoom, pan, hover, follow  map.c     an arena at one moment, by cells.c
 *   script.c, film.c, window.c  drive it         curves.c  the curves and the scrubber
 */
#ifndef VRAMLAB_VIZ_VIEW_H
#define VRAMLAB_VIZ_VIEW_H

#include "../figure.h"
#include "cells.h"

#include <vramlab/cursor.h>
#include <vramlab/moments.h>
#include <vramlab/viewer.h>

typedef enum map_layout { MAP_ROWS, MAP_HILBERT, MAP_TIME, MAP_LAYOUTS } map_layout;

typedef struct panel {
    const vram_timeline *timeline;
    vram_history history;
    vram_moments moments;
    vram_cursor *cursor; /* stands where it was last needed */
    vram_cells *cells;
    bool shown;
    uint32_t *tries; /* events of the asks that were refused when recorded */
    size_t try_count, try_capacity;
    size_t most_live;
    size_t op; /* operations that have happened at the view's moment, and its numbers: */
    vram_moment moment;
    uint64_t highest_bytes; /* nothing above it was ever used until then */
    vram_curves curves;     /* of the width of the scrubber */
    vram_rect box, map;     /* where the panel and its map are */
    vram_raster heat;       /* MAP_TIME: the picture, made anew when it no longer fits */
    vram_window heat_zoom;
    vram_by heat_by;
    bool heat_light;
} panel;

/* How cells lie: cell i covers cell_bytes from zoom.from + i * cell_bytes. */
typedef struct cell_grid {
    vram_rect area; /* of the picture that the cells fill */
    int side;       /* pixels of a cell */
    uint32_t columns, rows, count;
    uint64_t cell_bytes;
} cell_grid;

enum { NO_PANEL = -1, GOTO_LENGTH = 32 };

struct vram_view {
    panel panels[VRAM_VIEW_PANELS];
    int panel_count;
    uint64_t event, events; /* the clock, 0 .. events */
    bool playing;
    int speed;       /* events a second: 2^speed */
    double fraction; /* of an event, while playing */
    map_layout layout;
    vram_key key; /* what colours mean */
    bool light;
    double scale;
    vram_window zoom; /* addresses shown */
    uint64_t address_end;
    int focus;   /* the panel whose curves are shown */
    int x, y;    /* the pointer */
    bool inside; /* it has been on the picture */
    int pressed_x, pressed_y;
    bool pressed, dragged, scrubbing;
    vram_window pressed_zoom;
    int followed_panel; /* NO_PANEL: nobody is followed */
    uint32_t followed_block;
    bool help, asking; /* the field that `g` opens */
    char asked[GOTO_LENGTH];
    char message[160];
    double message_seconds;
    char save_path[64];
    bool save_asked, quit;
    vram_font *font;
    vram_raster raster;
    vram_rect curves, scrubber, legend, status; /* set by lay_out */
    vram_raster curve_picture;                  /* the curves without playhead and marks, for: */
    int curve_focus;
    bool curve_light;
    uint32_t *hilbert; /* [distance] = y << 16 | x, for the side below */
    uint32_t hilbert_side;
};

const vram_theme *theme_of(const vram_view *view);
int letters_of(const vram_view *view); /* size of ordinary lettering in pixels */

static inline bool rect_holds(vram_rect rect, int x, int y)
{
    return x >= rect.x && x < rect.x + rect.width && y >= rect.y && y < rect.y + rect.height;
}

/* layout.c */
void lay_out(vram_view *view);
cell_grid grid_of(const vram_view *view, const panel *of);
int panel_at(const vram_view *view, int x, int y); /* NO_PANEL */

/* paint.c */
double put(vram_view *view, double x, int baseline, double width, vram_colour colour,
           const char *text); /* cut to the width; returns the width that it took */

/* curves.c */
bool paint_curves(vram_view *view);

/* map.c */
bool seek_maps(vram_view *view); /* numbers and cells to the view's moment; false: out of memory */
bool paint_map(vram_view *view, panel *of);
/* The address under a point of the panel's map; false when there is none. */
bool address_at(const vram_view *view, const panel *of, int x, int y, uint64_t *address_bytes);
const char *layout_name(map_layout layout);

/* view.c */
void seek_all(vram_view *view);
bool look_closely(const panel *of); /* brings the cursor to the moment; false: out of memory */
bool set_colour(vram_view *view, vram_by by);
void go_to_event(vram_view *view, uint64_t event);
const vram_op *birth_of(const vram_timeline *timeline, uint32_t block);

/* hands.c */
void describe_block(const vram_view *view, const panel *of, uint32_t block, char *text,
                    size_t text_bytes);

/* The keys, for --help, the overlay and vram_view_key. */
typedef struct key_row {
    const char *keys;  /* names, separated by blanks */
    const char *shown; /* "arrows": as people read it; NULL: not listed */
    const char *help;
    void (*press)(vram_view *view, int argument);
    int argument;
} key_row;
extern const key_row key_rows[];
extern const size_t key_row_count;

#endif
