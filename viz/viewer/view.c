/*
 * view.c - the viewer's state and its clock.
 */
#include "view.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CURVE_WIDTH = 8192, /* at which curves are kept; shown at that of the scrubber */
    KEYFRAMES_LIVE =
        16384, /* live blocks from which on keyframes of cells are worth their memory */
    KEYFRAMES_STEP = 50000, /* operations that go into keyframes at a tick */
};

const vram_op *birth_of(const vram_timeline *timeline, uint32_t block)
{
    return &timeline->ops[timeline->lives[block].birth];
}

/* ---- making ---- */

/* The asks that were refused when recorded. */
static bool note_tries(panel *self)
{
    const vram_timeline *timeline = self->timeline;
    for (size_t i = 0; i < timeline->op_count; i++) {
        const vram_op *op = &timeline->ops[i];
        if ((op->flags & VRAM_OP_FLAG_TRY) == 0 || op->kind == VRAM_OP_RELEASE)
            continue;
        if (!vram_reserve((void **)&self->tries, &self->try_capacity, self->try_count + 1,
                          sizeof *self->tries))
            return false;
        self->tries[self->try_count++] = op->event;
    }
    return true;
}

/* Two halves of what a panel needs, each a walk over all operations, so that two cores can share.
 */
static bool make_numbers(panel *self, uint64_t events, vram_error *error)
{
    if (!vram_moments_make(self->timeline, events, CURVE_WIDTH, &self->moments, error))
        return false;
    for (uint32_t i = 0; i < self->moments.curves.width; i++) {
        const uint64_t live = self->moments.curves.columns[i].greatest.live_blocks;
        self->most_live = live > self->most_live ? live : self->most_live;
    }
    return true;
}

static bool make_blocks(panel *self, uint64_t events, vram_error *error)
{
    (void)events;
    if (!vram_history_make(self->timeline, &self->history, error) ||
        !vram_cursor_new(self->timeline, &self->cursor, error))
        return false;
    self->cells = vram_cells_new(self->cursor, &self->history);
    return (self->cells != NULL && note_tries(self)) ||
           vram_fail(error, "the host is out of memory for the viewer");
}

typedef struct chore {
    bool (*make)(panel *of, uint64_t events, vram_error *error);
    panel *of;
    bool done;
    vram_error error;
} chore;

typedef struct chores {
    chore each[2 * VRAM_VIEW_PANELS];
    int count;
    atomic_int next;
    uint64_t events;
} chores;

static void *do_chores(void *context)
{
    chores *self = context;
    for (int i = atomic_fetch_add(&self->next, 1); i < self->count;
         i = atomic_fetch_add(&self->next, 1))
        self->each[i].done =
            self->each[i].make(self->each[i].of, self->events, &self->each[i].error);
    return NULL;
}

/* Shares the chores with up to seven helpers; what cannot be shared is done here. */
static bool do_all(chores *self, vram_error *error)
{
    enum { MOST_HELPERS = 7 };
    pthread_t helpers[MOST_HELPERS];
    int count = 0;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    while (count < MOST_HELPERS && count + 1 < processors && count + 1 < self->count &&
           pthread_create(&helpers[count], NULL, do_chores, self) == 0)
        count++;
    do_chores(self);
    for (int i = 0; i < count; i++)
        pthread_join(helpers[i], NULL);
    for (int i = 0; i < self->count; i++)
        if (!self->each[i].done)
            return vram_fail(error, "%s", self->each[i].error.text);
    return true;
}

static uint64_t highest_address(const panel *of)
{
    const vram_timeline *timeline = of->timeline;
    uint64_t highest_bytes;
    vram_moments_at(&of->moments, timeline->op_count, &highest_bytes);
    return highest_bytes > timeline->arena_bytes ? highest_bytes : timeline->arena_bytes;
}

static bool make_panels(vram_view *self, const vram_timeline *const *timelines, size_t count,
                        vram_error *error)
{
    chores work = {.count = 0};
    for (size_t i = 0; i < count; i++) {
        panel *of = &self->panels[self->panel_count++];
        *of = (panel){.timeline = timelines[i], .shown = true};
        const uint64_t events = vram_axis_whole(timelines[i], VRAM_AXIS_EVENT).to;
        self->events = events > self->events ? events : self->events;
        work.each[work.count++] = (chore){.make = make_numbers, .of = of};
        work.each[work.count++] = (chore){.make = make_blocks, .of = of};
    }
    work.events = self->events;
    if (!do_all(&work, error))
        return false;
    for (int i = 0; i < self->panel_count; i++) {
        const uint64_t end_bytes = highest_address(&self->panels[i]);
        self->address_end = end_bytes > self->address_end ? end_bytes : self->address_end;
    }
    self->zoom = (vram_window){0, self->address_end};
    self->speed = 6;
    while (self->speed < 24 && (UINT64_C(1) << self->speed) * 30 < self->events)
        self->speed++; /* all of it in half a minute */
    return true;
}

bool set_colour(vram_view *self, vram_by by)
{
    const vram_timeline *timelines[VRAM_VIEW_PANELS];
    vram_key key;
    for (int i = 0; i < self->panel_count; i++)
        timelines[i] = self->panels[i].timeline;
    if (!vram_key_make(&key, by, VRAM_AXIS_EVENT, timelines, (size_t)self->panel_count, NULL))
        return false;
    vram_key_free(&self->key);
    self->key = key;
    return true;
}

static bool read_options(vram_view *self, const vram_view_options *options, vram_by *by,
                         vram_error *error)
{
    int layout = 0;
    self->scale = options->scale > 0 ? options->scale : 1;
    self->light = options->light;
    if (self->scale < 0.5 || self->scale > 4)
        return vram_fail(error, "a scale of %g is not possible: 0.5 to 4", self->scale);
    while (options->layout != NULL && layout < MAP_LAYOUTS &&
           strcmp(layout_name((map_layout)layout), options->layout) != 0)
        layout++;
    if (layout == MAP_LAYOUTS)
        return vram_fail(error, "no layout is called '%s': rows, hilbert, time", options->layout);
    self->layout = (map_layout)layout;
    *by = VRAM_BY_SIZE;
    return options->colour == NULL || vram_by_named(options->colour, by, error);
}

static bool make(vram_view *self, const vram_timeline *const *timelines, size_t count,
                 const vram_view_options *options, vram_error *error)
{
    vram_by by;
    const int width = options->width != 0 ? (int)options->width : 1280;
    const int height = options->height != 0 ? (int)options->height : 800;
    if (width < VRAM_VIEW_LEAST_WIDTH || height < VRAM_VIEW_LEAST_HEIGHT ||
        width > VRAM_VIEW_MOST || height > VRAM_VIEW_MOST)
        return vram_fail(error, "a view of %d x %d is not possible: %d x %d to %d x %d", width,
                         height, VRAM_VIEW_LEAST_WIDTH, VRAM_VIEW_LEAST_HEIGHT, VRAM_VIEW_MOST,
                         VRAM_VIEW_MOST);
    if (!read_options(self, options, &by, error) || !make_panels(self, timelines, count, error))
        return false;
    self->font = vram_font_new();
    return (self->font != NULL && set_colour(self, by) && vram_view_resize(self, width, height)) ||
           vram_fail(error, "the host is out of memory for the viewer");
}

bool vram_view_new(const vram_timeline *const *timelines, size_t count,
                   const vram_view_options *options, vram_view **out, vram_error *error)
{
    static const vram_view_options defaults = {0};
    if (count == 0 || count > VRAM_VIEW_PANELS)
        return vram_fail(error, "%zu panels are not possible: 1 to %d", count, VRAM_VIEW_PANELS);
    vram_view *self = calloc(1, sizeof *self);
    if (self == NULL)
        return vram_fail(error, "the host is out of memory for the viewer");
    self->followed_panel = NO_PANEL;
    if (!make(self, timelines, count, options != NULL ? options : &defaults, error)) {
        vram_view_free(self);
        return false;
    }
    *out = self;
    return true;
}

void vram_view_free(vram_view *self)
{
    if (self == NULL)
        return;
    for (int i = 0; i < self->panel_count; i++) {
        panel *each = &self->panels[i];
        vram_cells_free(each->cells);
        vram_cursor_free(each->cursor);
        vram_history_free(&each->history);
        vram_moments_free(&each->moments);
        vram_curves_free(&each->curves);
        vram_raster_free(&each->heat);
        free(each->tries);
    }
    free(self->hilbert);
    vram_key_free(&self->key);
    vram_raster_free(&self->curve_picture);
    vram_font_free(self->font);
    vram_raster_free(&self->raster);
    free(self);
}

/* ---- clock ---- */

/* Events [0, event) have happened. */
void seek_all(vram_view *self)
{
    for (int i = 0; i < self->panel_count; i++) {
        panel *each = &self->panels[i];
        each->op = self->event == 0
                       ? 0
                       : vram_axis_ops_until(each->timeline, VRAM_AXIS_EVENT, self->event - 1);
        if (each->shown)
            each->moment = vram_moments_at(&each->moments, each->op, &each->highest_bytes);
    }
}

bool look_closely(const panel *of)
{
    return of->cursor->op == of->op || vram_cursor_seek(of->cursor, of->op);
}

void go_to_event(vram_view *self, uint64_t event)
{
    self->event = event > self->events ? self->events : event;
    self->fraction = 0;
}

/* Where many blocks live, keyframes are made a little at a time, so that no frame is late. */
static bool make_keyframes(vram_view *self, size_t operations)
{
    bool more = false;
    for (int i = 0; i < self->panel_count; i++) {
        panel *each = &self->panels[i];
        if (each->shown && self->layout != MAP_TIME && each->most_live > KEYFRAMES_LIVE)
            more = vram_cells_prepare(each->cells, operations) || more;
    }
    return more;
}

void vram_view_settle(vram_view *self)
{
    while (make_keyframes(self, SIZE_MAX))
        continue;
}

void vram_view_tick(vram_view *self, double seconds)
{
    make_keyframes(self, KEYFRAMES_STEP);
    self->message_seconds -= seconds;
    if (!self->playing)
        return;
    self->fraction += seconds * ldexp(1, self->speed);
    const double whole = floor(self->fraction);
    const double rest = self->fraction - whole;
    const double left = (double)(self->events - self->event);
    go_to_event(self, whole < left ? self->event + (uint64_t)whole : self->events);
    self->fraction = rest;
    if (self->event == self->events)
        self->playing = false;
}

void vram_view_say(vram_view *self, const char *message)
{
    snprintf(self->message, sizeof self->message, "%s", message);
    self->message_seconds = 4;
}

/* ---- looking ---- */

bool vram_view_wants_to_quit(const vram_view *self)
{
    return self->quit;
}

bool vram_view_is_playing(const vram_view *self)
{
    return self->playing;
}

bool vram_view_needs_paint(const vram_view *self)
{
    return self->playing || self->message_seconds > -0.1; /* once more when a message goes */
}

uint64_t vram_view_event(const vram_view *self)
{
    return self->event;
}

const char *vram_view_save_asked(vram_view *self)
{
    const bool asked = self->save_asked;
    self->save_asked = false;
    return asked ? self->save_path : NULL;
}

void vram_view_state(const vram_view *self, char *text, size_t text_bytes)
{
    int shown = 0;
    for (int i = 0; i < self->panel_count; i++)
        shown += self->panels[i].shown;
    snprintf(text, text_bytes,
             "event=%llu of=%llu playing=%d speed=%d layout=%s colour=%s theme=%s panels=%d "
             "focus=%d zoom=%llu-%llu help=%d asking=%d followed=%d",
             (unsigned long long)self->event, (unsigned long long)self->events, self->playing,
             self->speed, layout_name(self->layout), vram_by_name(self->key.by),
             self->light ? "light" : "dark", shown, self->focus + 1,
             (unsigned long long)self->zoom.from, (unsigned long long)self->zoom.to, self->help,
             self->asking, self->followed_panel == NO_PANEL ? -1 : (int)self->followed_block);
}
