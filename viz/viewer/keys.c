/*
 * keys.c - what each key does, and moments by name.
 */
#include "view.h"

#include <stdlib.h>
#include <string.h>

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

static void press_play(vram_view *self, int unused)
{
    (void)unused;
    if (!self->playing && self->event == self->events)
        go_to_event(self, 0);
    self->playing = !self->playing;
}

static void press_step(vram_view *self, int events)
{
    self->playing = false;
    if (events < 0)
        go_to_event(self, self->event < (uint64_t)-events ? 0 : self->event - (uint64_t)-events);
    else
        go_to_event(self, self->event + (uint64_t)events);
}

static void press_failure(vram_view *self, int direction)
{
    self->playing = false;
    const uint64_t event =
        direction > 0 ? next_failure(self, self->event) : last_failure(self, self->event);
    if (event == UINT64_MAX)
        vram_view_say(self, direction > 0 ? "no later refusal" : "no earlier refusal");
    else
        go_to_event(self, event + 1);
}

static void press_end(vram_view *self, int end)
{
    self->playing = false;
    go_to_event(self, end ? self->events : 0);
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
    if (!set_colour(self, (vram_by)(((int)self->key.by + change + VRAM_BYS) % VRAM_BYS)))
        vram_view_say(self, "the host is out of memory for these colours");
}

static void press_theme(vram_view *self, int unused)
{
    (void)unused;
    self->light = !self->light;
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
        go_to_event(self, where[0] == 's' ? 0 : self->events);
        return true;
    }
    if (strcmp(where, "failure") == 0) {
        const uint64_t event = next_failure(self, 0);
        if (event == UINT64_MAX)
            return vram_fail(error, "no request was refused");
        go_to_event(self, event + 1);
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
        go_to_event(self, event_at_time(self, (uint64_t)(value * 1e9)));
    else
        go_to_event(self,
                    is_share ? (uint64_t)(value / 100 * (double)self->events) : (uint64_t)value);
    return true;
}
