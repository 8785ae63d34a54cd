/*
 * view.h - the viewer's state: what is shown, and where on the picture. Not installed.
 *
 *   view.c    state, time, what a key does       layout.c  where everything is
 *   map.c     an arena at one moment as cells    paint.c   draws it all into the raster
 *   hands.c   pointer: zoom, pan, hover, follow  script.c, film.c, window.c  drive it
 */
#ifndef VRAMLAB_VIZ_VIEW_H
#define VRAMLAB_VIZ_VIEW_H

#include "../raster.h"
#include "../text.h"

#include <vramlab/cursor.h>
#include <vramlab/viewer.h>

typedef enum map_layout { MAP_ROWS, MAP_HILBERT, MAP_TIME, MAP_LAYOUTS } map_layout;

typedef enum colour_by {
    BY_SIZE,
    BY_AGE,
    BY_OCCUPANCY,
    BY_STREAM,
    BY_TAG,
    BY_STATE,
    COLOURS
} colour_by;

/* What BY_STATE tells apart; the first are kinds of colour, free and never have their own. */
typedef enum block_state { STATE_LIVE, STATE_ROUNDING, STATE_PENDING, STATES } block_state;

typedef struct colour_theme {
    vram_colour ground, panel, ink, grey, line, free, never, accent, alarm;
} colour_theme;

typedef struct panel {
    const vram_timeline *timeline;
    vram_cursor *cursor;
    bool shown;
    uint32_t *retired_at; /* by block: its RETIRE operation, or UINT32_MAX; NULL: there are none */
    uint64_t largest_granted;
    uint32_t *tries; /* events of the asks that were refused when recorded */
    size_t try_count, try_capacity;
    uint64_t largest_free_bytes; /* at the cursor's moment */
    size_t largest_free_op;      /* for which it was computed; SIZE_MAX: none */
    vram_curves curves;          /* of the width of the scrubber */
    vram_rect box, map;          /* where the panel and its map are */
    vram_raster heat;            /* MAP_TIME: the picture, made anew when it no longer fits */
    vram_window heat_zoom;
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
    colour_by colour;
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
    struct cells *cells;                        /* map.c's own */
};

const colour_theme *theme_of(const vram_view *view);
int letters_of(const vram_view *view); /* size of ordinary lettering in pixels */

/* layout.c */
void lay_out(vram_view *view);
cell_grid grid_of(const vram_view *view, const panel *of);
int panel_at(const vram_view *view, int x, int y); /* NO_PANEL */

/* map.c */
bool paint_map(vram_view *view, panel *of);
/* The address under a point of the panel's map; false when there is none. */
bool address_at(const vram_view *view, const panel *of, int x, int y, uint64_t *address_bytes);
void free_cells(vram_view *view);
vram_colour colour_of_share(double share);                        /* of numeric colours */
vram_colour colour_of_kind(const vram_view *view, uint32_t kind); /* of the others */
bool colour_is_numeric(colour_by colour);
const char *colour_name(colour_by colour);
const char *layout_name(map_layout layout);

/* view.c */
bool seek_all(vram_view *view);
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
