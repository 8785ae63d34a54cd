/*
 * view.c - the viewer's state, its clock, and what each key does to them.
 */
#include "view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const vram_op *birth_of(const vram_timeline *timeline, uint32_t block)
{
    return &timeline->ops[timeline->lives[block].birth];
}

/* ---- making ---- */

static bool note_retired(panel *self)
{
    const vram_timeline *timeline = self->timeline;
    for (size_t i = 0; i < timeline->op_count; i++) {
        if (timeline->ops[i].kind != VRAM_OP_RETIRE)
            continue;
        if (self->retired_at == NULL) {
            self->retired_at = malloc(timeline->life_count * sizeof *self->retired_at);
            if (self->retired_at == NULL)
                return false;
            memset(self->retired_at, 0xff, timeline->life_count * sizeof *self->retired_at);
        }
        self->retired_at[timeline->ops[i].block] = (uint32_t)i;
    }
    return true;
}

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

static bool make_panel(panel *self, const vram_timeline *timeline, vram_error *error)
{
    *self = (panel){.timeline = timeline, .shown = true, .largest_free_op = SIZE_MAX};
    for (size_t i = 0; i < timeline->life_count; i++) {
        const uint64_t granted_bytes = birth_of(timeline, (uint32_t)i)->granted_bytes;
        if (granted_bytes > self->largest_granted)
            self->largest_granted = granted_bytes;
    }
    if (!note_retired(self) || !note_tries(self))
        return vram_fail(error, "the host is out of memory for the viewer");
    return vram_cursor_new(timeline, &self->cursor, error);
}

static uint64_t address_end_of(const vram_timeline *timeline)
{
    uint64_t end_bytes = timeline->arena_bytes;
    for (size_t i = 0; i < timeline->op_count; i++) {
        const vram_op *op = &timeline->ops[i];
        if (op->kind != VRAM_OP_FAIL && op->offset_bytes + op->granted_bytes > end_bytes)
            end_bytes = op->offset_bytes + op->granted_bytes;
    }
    return end_bytes;
}

static int index_of(const char *name, const char *(*name_of)(int), int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name_of(i), name) == 0)
            return i;
    return -1;
}

static const char *colour_at(int index)
{
    return colour_name((colour_by)index);
}

static const char *layout_at(int index)
{
    return layout_name((map_layout)index);
}

static bool read_options(vram_view *self, const vram_view_options *options, vram_error *error)
{
    self->scale = options->scale > 0 ? options->scale : 1;
    self->light = options->light;
    if (self->scale < 0.5 || self->scale > 4)
        return vram_fail(error, "a scale of %g is not possible: 0.5 to 4", self->scale);
    const int colour =
        options->colour == NULL ? BY_SIZE : index_of(options->colour, colour_at, COLOURS);
    const int layout =
        options->layout == NULL ? MAP_ROWS : index_of(options->layout, layout_at, MAP_LAYOUTS);
    if (colour < 0)
        return vram_fail(error,
                         "no colour is called '%s': size, age, occupancy, stream, tag, state",
                         options->colour);
    if (layout < 0)
        return vram_fail(error, "no layout is called '%s': rows, hilbert, time", options->layout);
    self->colour = (colour_by)colour;
    self->layout = (map_layout)layout;
    return true;
}

static bool make_panels(vram_view *self, const vram_timeline *const *timelines, size_t count,
                        vram_error *error)
{
    for (size_t i = 0; i < count; i++) {
        self->panel_count++;
        if (!make_panel(&self->panels[i], timelines[i], error))
            return false;
        const uint64_t events = vram_axis_whole(timelines[i], VRAM_AXIS_EVENT).to;
        const uint64_t end_bytes = address_end_of(timelines[i]);
        self->events = events > self->events ? events : self->events;
        self->address_end = end_bytes > self->address_end ? end_bytes : self->address_end;
    }
    self->zoom = (vram_window){0, self->address_end};
    self->speed = 6;
    while (self->speed < 24 && (UINT64_C(1) << self->speed) * 30 < self->events)
        self->speed++; /* all of it in half a minute */
    return true;
}

bool vram_view_new(const vram_timeline *const *timelines, size_t count,
                   const vram_view_options *options, vram_view **out, vram_error *error)
{
    static const vram_view_options defaults = {0};
    const vram_view_options *how = options != NULL ? options : &defaults;
    if (count == 0 || count > VRAM_VIEW_PANELS)
        return vram_fail(error, "%zu panels are not possible: 1 to %d", count, VRAM_VIEW_PANELS);
    vram_view *self = calloc(1, sizeof *self);
    if (self == NULL)
        return vram_fail(error, "the host is out of memory for the viewer");
    self->followed_panel = NO_PANEL;
    self->font = vram_font_new();
    const int width = how->width != 0 ? (int)how->width : 1280;
    const int height = how->height != 0 ? (int)how->height : 800;
    bool made = self->font != NULL || vram_fail(error, "the host is out of memory for the viewer");
    made = made && read_options(self, how, error) && make_panels(self, timelines, count, error);
    if (made && (width < VRAM_VIEW_LEAST_WIDTH || height < VRAM_VIEW_LEAST_HEIGHT ||
                 width > VRAM_VIEW_MOST || height > VRAM_VIEW_MOST))
        made = vram_fail(error, "a view of %d x %d is not possible: %d x %d to %d x %d", width,
                         height, VRAM_VIEW_LEAST_WIDTH, VRAM_VIEW_LEAST_HEIGHT, VRAM_VIEW_MOST,
                         VRAM_VIEW_MOST);
    if (made && !vram_view_resize(self, width, height))
        made = vram_fail(error, "the host is out of memory for the viewer");
    if (!made) {
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
        vram_cursor_free(self->panels[i].cursor);
        vram_curves_free(&self->panels[i].curves);
        vram_raster_free(&self->panels[i].heat);
        free(self->panels[i].retired_at);
        free(self->panels[i].tries);
    }
    free_cells(self);
    vram_font_free(self->font);
    vram_raster_free(&self->raster);
    free(self);
}

/* ---- clock ---- */

bool seek_all(vram_view *self)
{
    bool found = true;
    for (int i = 0; i < self->panel_count; i++) {
        panel *each = &self->panels[i];
        const size_t op = vram_axis_ops_until(each->timeline, VRAM_AXIS_EVENT, self->event);
        if (each->shown && each->cursor->op != op)
            found = vram_cursor_seek(each->cursor, op) && found;
    }
    return found;
}

static void go_to(vram_view *self, uint64_t event)
{
    self->event = event > self->events ? self->events : event;
    self->fraction = 0;
}

void vram_view_tick(vram_view *self, double seconds)
{
    self->message_seconds -= seconds;
    if (!self->playing)
        return;
    self->fraction += seconds * ldexp(1, self->speed);
    const double whole = floor(self->fraction);
    const double rest = self->fraction - whole;
    go_to(self, self->event + (uint64_t)whole);
    self->fraction = rest;
    if (self->event == self->events)
        self->playing = false;
}

/* The event of the next refusal at or after `from` in any shown panel, or UINT64_MAX. */
static uint64_t next_failure(const vram_view *self, uint64_t from)
{
    uint64_t next = UINT64_MAX;
    for (int i = 0; i < self->panel_count; i++) {
        const vram_timeline *timeline = self->panels[i].timeline;
        for (size_t k = 0; self->panels[i].shown && k < timeline->failure_count; k++) {
            const uint64_t event = timeline->failures[k].event;
            if (event >= from && event < next)
                next = event;
        }
    }
    return next;
}

static uint64_t last_failure(const vram_view *self, uint64_t before)
{
    uint64_t last = UINT64_MAX;
    for (int i = 0; i < self->panel_count; i++) {
        const vram_timeline *timeline = self->panels[i].timeline;
        for (size_t k = 0; self->panels[i].shown && k < timeline->failure_count; k++) {
            const uint64_t event = timeline->failures[k].event;
            if (event + 1 < before && (last == UINT64_MAX || event > last))
                last = event;
        }
    }
    return last;
}

/* ---- keys ---- */

void vram_view_say(vram_view *self, const char *message)
{
    snprintf(self->message, sizeof self->message, "%s", message);
    self->message_seconds = 4;
}

static void press_play(vram_view *self, int unused)
{
    (void)unused;
    if (!self->playing && self->event == self->events)
        go_to(self, 0);
    self->playing = !self->playing;
}

static void press_step(vram_view *self, int events)
{
    self->playing = false;
    if (events < 0)
        go_to(self, self->event < (uint64_t)-events ? 0 : self->event - (uint64_t)-events);
    else
        go_to(self, self->event + (uint64_t)events);
}

static void press_failure(vram_view *self, int direction)
{
    self->playing = false;
    const uint64_t event =
        direction > 0 ? next_failure(self, self->event) : last_failure(self, self->event);
    if (event == UINT64_MAX)
        vram_view_say(self, direction > 0 ? "no later refusal" : "no earlier refusal");
    else
        go_to(self, event + 1);
}

static void press_end(vram_view *self, int end)
{
    self->playing = false;
    go_to(self, end ? self->events : 0);
}

static void press_speed(vram_view *self, int change)
{
    char text[80];
    char count[32];
    self->speed = self->speed + change < 0    ? 0
                  : self->speed + change > 30 ? 30
                                              : self->speed + change;
    snprintf(text, sizeof text, "%s events a second",
             vram_format_count(UINT64_C(1) << self->speed, count));
    vram_view_say(self, text);
}

static void press_layout(vram_view *self, int unused)
{
    (void)unused;
    self->layout = (self->layout + 1) % MAP_LAYOUTS;
    lay_out(self);
}

static void press_colour(vram_view *self, int change)
{
    self->colour = (colour_by)(((int)self->colour + change + COLOURS) % COLOURS);
}

static void press_theme(vram_view *self, int unused)
{
    (void)unused;
    self->light = !self->light;
    for (int i = 0; i < self->panel_count; i++)
        vram_raster_free(&self->panels[i].heat);
}

static void press_panel(vram_view *self, int index)
{
    if (index >= self->panel_count)
        return;
    int shown = 0;
    for (int i = 0; i < self->panel_count; i++)
        shown += self->panels[i].shown;
    if (shown == 1 && self->panels[index].shown) {
        vram_view_say(self, "one panel stays");
        return;
    }
    self->panels[index].shown = !self->panels[index].shown;
    if (!self->panels[self->focus].shown)
        for (int i = 0; i < self->panel_count; i++)
            if (self->panels[i].shown)
                self->focus = i;
    lay_out(self);
}

static void press_focus(vram_view *self, int unused)
{
    (void)unused;
    do
        self->focus = (self->focus + 1) % self->panel_count;
    while (!self->panels[self->focus].shown);
}

static void press_goto(vram_view *self, int unused)
{
    (void)unused;
    self->asking = true;
    self->asked[0] = '\0';
}

static void press_save(vram_view *self, int unused)
{
    (void)unused;
    snprintf(self->save_path, sizeof self->save_path, "vramlab-view-%llu.png",
             (unsigned long long)self->event);
    self->save_asked = true;
}

static void press_help(vram_view *self, int unused)
{
    (void)unused;
    self->help = !self->help;
}

static void press_zoom_out(vram_view *self, int unused)
{
    (void)unused;
    self->zoom = (vram_window){0, self->address_end};
}

static void press_escape(vram_view *self, int unused)
{
    (void)unused;
    if (self->help)
        self->help = false;
    else if (self->followed_panel != NO_PANEL)
        self->followed_panel = NO_PANEL;
    else
        self->quit = true;
}

static void press_quit(vram_view *self, int unused)
{
    (void)unused;
    self->quit = true;
}

const key_row key_rows[] = {
    {"space", "space", "play and pause", press_play, 0},
    {"right", "right, left", "one event on, one back", press_step, 1},
    {"left", NULL, NULL, press_step, -1},
    {"shift+right", "shift + right, left", "a hundred events", press_step, 100},
    {"shift+left", NULL, NULL, press_step, -100},
    {"ctrl+right", "ctrl + right, left", "to the next refused request, to the last", press_failure,
     1},
    {"ctrl+left", NULL, NULL, press_failure, -1},
    {"home", "home, end", "to the start, to the end", press_end, 0},
    {"end", NULL, NULL, press_end, 1},
    {"]", "[ ]", "slower, faster", press_speed, 1},
    {"[", NULL, NULL, press_speed, -1},
    {"m", "m", "map: rows of addresses, Hilbert curve, address by time", press_layout, 0},
    {"c", "c", "colour: size, age, occupancy, stream, tag, state (shift: back)", press_colour, 1},
    {"shift+c", NULL, NULL, press_colour, -1},
    {"t", "t", "dark or light", press_theme, 0},
    {"1", "1 to 9", "show or hide a panel", press_panel, 0},
    {"2", NULL, NULL, press_panel, 1},
    {"3", NULL, NULL, press_panel, 2},
    {"4", NULL, NULL, press_panel, 3},
    {"5", NULL, NULL, press_panel, 4},
    {"6", NULL, NULL, press_panel, 5},
    {"7", NULL, NULL, press_panel, 6},
    {"8", NULL, NULL, press_panel, 7},
    {"9", NULL, NULL, press_panel, 8},
    {"tab", "tab", "whose curves are shown", press_focus, 0},
    {"g", "g", "go to an event, to 40%, or to a time such as 0.5s", press_goto, 0},
    {"0", "0", "all addresses again", press_zoom_out, 0},
    {"s", "s", "save the view as PNG", press_save, 0},
    {"?", "?", "these keys", press_help, 0},
    {"escape", "escape", "close, follow nothing, leave", press_escape, 0},
    {"q", "q", "leave", press_quit, 0},
};
const size_t key_row_count = sizeof key_rows / sizeof key_rows[0];

/* What is done with the pointer; listed under the keys. */
static const char *const pointer_rows[][2] = {
    {"wheel", "zoom addresses at the pointer"},
    {"drag", "move along the addresses; on the curves: move in time"},
    {"double click", "all addresses again"},
    {"hover", "what a block is"},
    {"click", "follow a block through time; on the curves: go there"},
    {"drop a file", "open it"},
};

void vram_view_print_keys(FILE *out)
{
    for (size_t i = 0; i < key_row_count; i++)
        if (key_rows[i].shown != NULL)
            fprintf(out, "  %-20s %s\n", key_rows[i].shown, key_rows[i].help);
    for (size_t i = 0; i < sizeof pointer_rows / sizeof pointer_rows[0]; i++)
        fprintf(out, "  %-20s %s\n", pointer_rows[i][0], pointer_rows[i][1]);
}

/* A key while the field is open. */
static void key_in_field(vram_view *self, const char *key)
{
    const size_t length = strlen(self->asked);
    vram_error error = {""};
    if (strcmp(key, "escape") == 0) {
        self->asking = false;
    } else if (strcmp(key, "backspace") == 0 && length > 0) {
        self->asked[length - 1] = '\0';
    } else if (strcmp(key, "return") == 0) {
        self->asking = false;
        if (length > 0 && !vram_view_go(self, self->asked, &error))
            vram_view_say(self, error.text);
    } else if (strlen(key) == 1) {
        vram_view_text(self, key);
    }
}

bool vram_view_key(vram_view *self, const char *key)
{
    if (self->asking) {
        key_in_field(self, key);
        return true;
    }
    for (size_t i = 0; i < key_row_count; i++)
        if (strcmp(key_rows[i].keys, key) == 0) {
            key_rows[i].press(self, key_rows[i].argument);
            return true;
        }
    return false;
}

void vram_view_text(vram_view *self, const char *text)
{
    const size_t length = strlen(self->asked);
    if (self->asking)
        snprintf(self->asked + length, sizeof self->asked - length, "%s", text);
}

/* ---- moments by name ---- */

/* The event that first happens at or after the time. */
static uint64_t event_at_time(const vram_view *self, uint64_t time_ns)
{
    const vram_timeline *timeline = self->panels[0].timeline;
    const size_t op = vram_axis_ops_until(timeline, VRAM_AXIS_TIME, time_ns);
    return op < timeline->op_count ? timeline->ops[op].event : self->events;
}

bool vram_view_go(vram_view *self, const char *where, vram_error *error)
{
    char *end = NULL;
    const char *number = strncmp(where, "event=", 6) == 0  ? where + 6
                         : strncmp(where, "time=", 5) == 0 ? where + 5
                                                           : where;
    if (strcmp(where, "start") == 0 || strcmp(where, "end") == 0) {
        go_to(self, where[0] == 's' ? 0 : self->events);
        return true;
    }
    if (strcmp(where, "failure") == 0) {
        const uint64_t event = next_failure(self, 0);
        if (event == UINT64_MAX)
            return vram_fail(error, "no request was refused");
        go_to(self, event + 1);
        return true;
    }
    const double value = strtod(number, &end);
    const bool is_time = strncmp(where, "time=", 5) == 0 || strcmp(end, "s") == 0;
    const bool is_share = strcmp(end, "%") == 0;
    if (end == number || !(value >= 0) || (*end != '\0' && !is_share && strcmp(end, "s") != 0))
        return vram_fail(
            error, "'%s' is no moment: 40%%, event=1234, time=0.5, failure, start, end", where);
    if (is_time && !self->panels[0].timeline->has_clock)
        return vram_fail(error, "the trace has no clock: name an event or a share");
    if (is_time)
        go_to(self, event_at_time(self, (uint64_t)(value * 1e9)));
    else
        go_to(self, is_share ? (uint64_t)(value / 100 * (double)self->events) : (uint64_t)value);
    return true;
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
             self->speed, layout_name(self->layout), colour_name(self->colour),
             self->light ? "light" : "dark", shown, self->focus + 1,
             (unsigned long long)self->zoom.from, (unsigned long long)self->zoom.to, self->help,
             self->asking, self->followed_panel == NO_PANEL ? -1 : (int)self->followed_block);
}
