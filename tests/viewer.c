/*
 * viewer.c - the viewer without a window: its clock, keys and pointer, and its pixels against kept
 * pictures.
 *
 * When a picture differs, what was drawn and a picture of the differences are left beside each
 * other in the folder that the message names. VRAMLAB_NEW_REFERENCES=1 keeps what is drawn as the
 * new references.
 */
#include "made_timeline.h"
#include "raster.h"

#include "png.h"

#include <vramlab/cursor.h>
#include <vramlab/viewer.h>

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wundef"
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_PNG
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

enum { ARENA = 1 << 20, OPS = 3000 };

static vram_timeline made(uint64_t seed, const char *backend)
{
    vram_timeline timeline = {0};
    cr_assert(vram_timeline_begin(&timeline, "made", backend, ARENA, 16, true));
    made_at_random(&timeline, seed, OPS, 20000);
    return timeline;
}

/* Two timelines, the second of which ends in a refusal, in a view of this size. */
typedef struct stage {
    vram_timeline timelines[2];
    vram_view *view;
} stage;

static void set_stage(stage *self, const vram_view_options *options)
{
    *self = (stage){.timelines = {made(1, "list"), made(2, "buddy:min=512")}};
    const uint32_t last = self->timelines[1].ops[self->timelines[1].op_count - 1].event;
    made_fail(&self->timelines[1], last + 1, 300000, "fragmented");
    const vram_timeline *const shown[] = {&self->timelines[0], &self->timelines[1]};
    vram_error error = {""};
    cr_assert(vram_view_new(shown, 2, options, &self->view, &error), "%s", error.text);
}

static void strike(stage *self)
{
    vram_view_free(self->view);
    vram_timeline_free(&self->timelines[0]);
    vram_timeline_free(&self->timelines[1]);
}

static bool state_has(const vram_view *view, const char *wanted)
{
    char state[400];
    vram_view_state(view, state, sizeof state);
    return strstr(state, wanted) != NULL;
}

/* ---- cursor ---- */

Test(viewer, a_cursor_finds_what_a_replay_from_the_start_leaves_alive)
{
    vram_timeline timeline = made(5, "list");
    vram_cursor *cursor = NULL;
    vram_error error;
    cr_assert(vram_cursor_new(&timeline, &cursor, &error), "%s", error.text);
    unsigned char *alive = calloc(timeline.life_count, 1);
    uint64_t *place = calloc(timeline.life_count, sizeof *place);
    uint64_t random = 99;
    for (int round = 0; round < 60; round++) {
        const size_t op = vram_next_random(&random) % (timeline.op_count + 1);
        size_t count = 0;
        uint64_t granted_bytes = 0;
        memset(alive, 0, timeline.life_count);
        for (size_t i = 0; i < op; i++) {
            const vram_op *at = &timeline.ops[i];
            if (at->kind == VRAM_OP_ALLOC || at->kind == VRAM_OP_MOVE)
                place[at->block] = at->offset_bytes;
            if (at->kind == VRAM_OP_ALLOC || at->kind == VRAM_OP_RELEASE) {
                alive[at->block] = at->kind == VRAM_OP_ALLOC;
                count += at->kind == VRAM_OP_ALLOC ? 1 : (size_t)-1;
                granted_bytes += at->kind == VRAM_OP_ALLOC ? at->granted_bytes : -at->granted_bytes;
            }
        }
        cr_assert(vram_cursor_seek(cursor, op));
        cr_expect_eq(cursor->count, count);
        cr_expect_eq(cursor->granted_bytes, granted_bytes);
        for (size_t i = 0; i < cursor->count; i++) {
            cr_expect_eq(alive[cursor->live[i].block], 1);
            cr_expect_eq(cursor->live[i].offset_bytes, place[cursor->live[i].block]);
            const size_t found = vram_cursor_at(cursor, cursor->live[i].offset_bytes);
            cr_expect_eq(cursor->live[found].block, cursor->live[i].block);
        }
    }
    free(alive);
    free(place);
    vram_cursor_free(cursor);
    vram_timeline_free(&timeline);
}

/* ---- hands ---- */

static const struct {
    const char *keys; /* pressed one after the other */
    const char *state;
} presses[] = {
    {"home right right right left", "event=2 "},
    {"home shift+right shift+right shift+left right", "event=101 "},
    {"end left", "playing=0"},
    {"m", "layout=hilbert"},
    {"m m", "layout=time"},
    {"m m m", "layout=rows"},
    {"c", "colour=age"},
    {"shift+c", "colour=state"},
    {"t", "theme=light"},
    {"1", "panels=1"},
    {"1 2", "panels=1"},
    {"1 1", "panels=2"},
    {"tab", "focus=2"},
    {"1 tab", "focus=2"},
    {"?", "help=1"},
    {"? escape", "help=0"},
    {"g 1 2 3 return", "event=123 "},
    {"g 5 0 % backspace backspace return", "event=5 "},
    {"g 9 escape", "event=0 "},
    {"space", "playing=1"},
    {"space space", "playing=0"},
};

Test(viewer, keys_do_what_their_help_says)
{
    for (size_t i = 0; i < sizeof presses / sizeof presses[0]; i++) {
        stage self;
        set_stage(&self, NULL);
        char keys[80];
        char state[400];
        snprintf(keys, sizeof keys, "%s", presses[i].keys);
        for (char *key = strtok(keys, " "); key != NULL; key = strtok(NULL, " "))
            cr_expect(vram_view_key(self.view, key), "%s", key);
        vram_view_state(self.view, state, sizeof state);
        cr_expect(state_has(self.view, presses[i].state), "%s: %s", presses[i].keys, state);
        strike(&self);
    }
}

Test(viewer, an_unknown_key_is_told_from_a_known_one_and_nothing_listed_is_unknown)
{
    stage self;
    set_stage(&self, NULL);
    cr_expect(!vram_view_key(self.view, "hyper+z"));
    cr_expect(vram_view_key(self.view, "q"));
    cr_expect(vram_view_wants_to_quit(self.view));
    strike(&self);
}

Test(viewer, ctrl_right_goes_to_the_refusal_and_then_says_that_there_is_no_other)
{
    stage self;
    set_stage(&self, NULL);
    const uint64_t event = self.timelines[1].failures[0].event;
    vram_view_key(self.view, "ctrl+right");
    cr_expect_eq(vram_view_event(self.view), event + 1);
    vram_view_key(self.view, "ctrl+right");
    cr_expect_eq(vram_view_event(self.view), event + 1);
    vram_view_key(self.view, "2"); /* its panel is hidden */
    vram_view_key(self.view, "home");
    vram_view_key(self.view, "ctrl+right");
    cr_expect_eq(vram_view_event(self.view), 0);
    strike(&self);
}

Test(viewer, playing_takes_its_speed_in_events_a_second_and_stops_at_the_end)
{
    stage self;
    set_stage(&self, NULL);
    while (!state_has(self.view, "speed=4 "))
        vram_view_key(self.view, "[");
    vram_view_key(self.view, "space");
    for (int i = 0; i < 100; i++)
        vram_view_tick(self.view, 0.01);
    cr_expect(vram_view_event(self.view) >= 15 && vram_view_event(self.view) <= 16);
    vram_view_tick(self.view, 1e6);
    cr_expect(!vram_view_is_playing(self.view));
    vram_view_key(self.view, "space"); /* starts anew */
    cr_expect_eq(vram_view_event(self.view), 0);
    strike(&self);
}

Test(viewer, the_wheel_zooms_at_the_pointer_drag_moves_and_a_double_click_resets)
{
    stage self;
    set_stage(&self, NULL);
    int width;
    int height;
    unsigned long long from[3];
    unsigned long long to[3];
    char state[400];
    for (int step = 0; step < 3; step++) {
        cr_assert(vram_view_paint(self.view, &width, &height) != NULL);
        vram_view_state(self.view, state, sizeof state);
        cr_assert_eq(sscanf(strstr(state, "zoom="), "zoom=%llu-%llu", &from[step], &to[step]), 2);
        if (step == 0)
            vram_view_wheel(self.view, 300, 300, 5);
        if (step == 1) {
            vram_view_press(self.view, 300, 300, 1);
            vram_view_move(self.view, 300, 250);
            vram_view_release(self.view, 300, 250);
        }
    }
    cr_expect_eq(from[0], 0);
    cr_expect(to[1] - from[1] < to[0] / 2, "%s", state);
    cr_expect_eq(to[2] - from[2], to[1] - from[1]);
    cr_expect_neq(from[2], from[1]);
    vram_view_press(self.view, 300, 300, 2);
    vram_view_release(self.view, 300, 300);
    char whole[64];
    snprintf(whole, sizeof whole, "zoom=0-%llu ", to[0]);
    cr_expect(state_has(self.view, whole));
    strike(&self);
}

Test(viewer, a_click_follows_a_block_and_a_click_beside_lets_go)
{
    stage self;
    set_stage(&self, NULL);
    int width;
    int height;
    cr_expect(vram_view_go(self.view, "60%", NULL));
    cr_assert(vram_view_paint(self.view, &width, &height) != NULL);
    bool followed = false;
    for (int y = 70; y < 500 && !followed; y += 7) {
        vram_view_press(self.view, 100, y, 1);
        vram_view_release(self.view, 100, y);
        followed = !state_has(self.view, "followed=-1");
    }
    cr_expect(followed);
    vram_view_key(self.view, "escape");
    cr_expect(state_has(self.view, "followed=-1"));
    strike(&self);
}

Test(viewer, moments_are_named_and_other_words_are_refused)
{
    static const char *const wrong[] = {
        "", "soon", "-5", "40%%", "event=", "1e", "time=x", "event=1 2", "nan", "failures"};
    stage self;
    set_stage(&self, NULL);
    vram_error error;
    cr_expect(vram_view_go(self.view, "event=17", &error));
    cr_expect_eq(vram_view_event(self.view), 17);
    cr_expect(vram_view_go(self.view, "failure", &error));
    cr_expect_eq(vram_view_event(self.view), self.timelines[1].failures[0].event + 1);
    cr_expect(vram_view_go(self.view, "time=0.000000001", &error));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_expect(!vram_view_go(self.view, wrong[i], &error), "'%s'", wrong[i]);
    strike(&self);
}

/* ---- pictures ---- */

static const struct {
    const char *name;
    vram_view_options options;
    const char *where;
    const char *keys;
} pictures[] = {
    {"rows-size", {.width = 640, .height = 400}, "50%", ""},
    {"hilbert-age-light",
     {.width = 900, .height = 560, .light = true, .layout = "hilbert", .colour = "age"},
     "failure",
     ""},
    {"time-scaled", {.width = 900, .height = 560, .scale = 1.5, .layout = "time"}, "70%", ""},
    {"help", {.width = 800, .height = 600}, "20%", "?"},
};

/* Leaves what was drawn and the differences for a person to look at. */
static void keep_difference(const char *name, vram_view *view, const unsigned char *expected)
{
    char path[512];
    int width;
    int height;
    vram_error error;
    const uint32_t *pixels = vram_view_paint(view, &width, &height);
    vram_raster difference;
    cr_assert(vram_raster_make(&difference, width, height));
    for (int i = 0; i < width * height; i++) {
        const uint32_t wanted = (uint32_t)expected[3 * i] << 16 |
                                (uint32_t)expected[3 * i + 1] << 8 | expected[3 * i + 2];
        difference.pixels[i] = pixels[i] == wanted ? pixels[i] / 4 & 0x3F3F3F : 0xFF0000;
    }
    snprintf(path, sizeof path, "build/%s-drawn.png", name);
    cr_assert(vram_view_save(view, path, &error), "%s", error.text);
    snprintf(path, sizeof path, "build/%s-difference.png", name);
    cr_assert(vram_png_save(&difference, 0, path, &error), "%s", error.text);
    vram_raster_free(&difference);
}

static void compare_picture(const char *name, vram_view *view)
{
    char path[512];
    int width;
    int height;
    int kept_width = 0;
    int kept_height = 0;
    int channels;
    vram_error error;
    snprintf(path, sizeof path, "tests/references/%s.png", name);
    if (getenv("VRAMLAB_NEW_REFERENCES") != NULL)
        cr_assert(vram_view_save(view, path, &error), "%s", error.text);
    const uint32_t *pixels = vram_view_paint(view, &width, &height);
    unsigned char *kept = stbi_load(path, &kept_width, &kept_height, &channels, 3);
    cr_assert(kept != NULL, "%s cannot be read", path);
    cr_assert(kept_width == width && kept_height == height, "%s is %d x %d", path, kept_width,
              kept_height);
    size_t differ = 0;
    for (int i = 0; i < width * height; i++)
        differ += pixels[i] !=
                  ((uint32_t)kept[3 * i] << 16 | (uint32_t)kept[3 * i + 1] << 8 | kept[3 * i + 2]);
    if (differ > 0)
        keep_difference(name, view, kept);
    cr_expect_eq(differ, 0, "%zu pixels of %s differ: see build/%s-difference.png", differ, path,
                 name);
    stbi_image_free(kept);
}

Test(viewer, pictures_are_those_that_were_kept)
{
    for (size_t i = 0; i < sizeof pictures / sizeof pictures[0]; i++) {
        stage self;
        set_stage(&self, &pictures[i].options);
        cr_assert(vram_view_go(self.view, pictures[i].where, NULL));
        if (pictures[i].keys[0] != '\0')
            vram_view_key(self.view, pictures[i].keys);
        compare_picture(pictures[i].name, self.view);
        strike(&self);
    }
}

Test(viewer, the_smallest_and_odd_sizes_are_painted)
{
    static const int sizes[][2] = {{640, 400}, {641, 777}, {1920, 400}, {640, 1600}, {1, 1}};
    stage self;
    set_stage(&self, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int layout = 0; layout < 3; layout++) {
            int width;
            int height;
            cr_assert(vram_view_resize(self.view, sizes[i][0], sizes[i][1]));
            vram_view_key(self.view, "m");
            cr_expect(vram_view_go(self.view, "50%", NULL));
            cr_expect(vram_view_paint(self.view, &width, &height) != NULL);
            cr_expect(width >= 640 && height >= 400);
        }
    strike(&self);
}

Test(viewer, every_colour_is_painted_in_every_layout_without_a_block_too)
{
    vram_timeline empty = {0};
    cr_assert(vram_timeline_begin(&empty, "empty", "list", ARENA, 16, false));
    const vram_timeline *const shown[] = {&empty};
    vram_view *view;
    vram_error error = {""};
    cr_assert(vram_view_new(shown, 1, NULL, &view, &error), "%s", error.text);
    for (int layout = 0; layout < 3; layout++, vram_view_key(view, "m"))
        for (int colour = 0; colour < 6; colour++, vram_view_key(view, "c")) {
            int width;
            int height;
            cr_expect(vram_view_paint(view, &width, &height) != NULL);
        }
    cr_expect(!vram_view_go(view, "failure", &error));
    cr_expect(!vram_view_go(view, "time=1", &error), "it has no clock");
    vram_view_free(view);
    vram_timeline_free(&empty);
}

Test(viewer, options_out_of_range_are_refused_by_name)
{
    static const struct {
        vram_view_options options;
        const char *told;
    } wrong[] = {
        {{.width = 100, .height = 100}, "100 x 100"},
        {{.scale = 9}, "scale"},
        {{.colour = "plaid"}, "plaid"},
        {{.layout = "spiral"}, "spiral"},
    };
    vram_timeline timeline = made(1, "list");
    const vram_timeline *const shown[] = {&timeline};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        vram_view *view = NULL;
        vram_error error = {""};
        cr_expect(!vram_view_new(shown, 1, &wrong[i].options, &view, &error));
        cr_expect(strstr(error.text, wrong[i].told) != NULL, "%s", error.text);
    }
    vram_timeline_free(&timeline);
}

/* ---- scripts ---- */

static bool play(vram_view *view, const char *text, vram_error *error)
{
    char path[] = P_tmpdir "/vramlab-script-XXXXXX";
    const int file = mkstemp(path);
    cr_assert(file >= 0);
    cr_assert(write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    const bool played = vram_view_script(view, path, error);
    unlink(path);
    return played;
}

Test(viewer, a_script_plays_and_expects)
{
    stage self;
    set_stage(&self, NULL);
    vram_error error = {""};
    cr_expect(play(self.view,
                   "# a comment\nkey right 7\nexpect event=7\nkey g\ntext 50\nkey return\n"
                   "expect event=50\nclick 300 200\nwheel 300 200 2\nsize 700 500\ntick 0.5\n"
                   "go end\n",
                   &error),
              "%s", error.text);
    strike(&self);
}

Test(viewer, a_wrong_script_is_told_its_line)
{
    static const struct {
        const char *text;
        const char *told;
    } wrong[] = {
        {"key right\njump\n", "line 2: 'jump "},
        {"key hyper\n", "line 1: 'key hyper'"},
        {"move 5\n", "expected X Y"},
        {"expect event=9\n", "the state is: event=0"},
        {"go nowhere\n", "'nowhere' is no moment"},
        {"shot /no/such/folder/a.png\n", "/no/such/folder/a.png"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        stage self;
        set_stage(&self, NULL);
        vram_error error = {""};
        cr_expect(!play(self.view, wrong[i].text, &error));
        cr_expect(strstr(error.text, wrong[i].told) != NULL, "%s", error.text);
        strike(&self);
    }
}

Test(viewer, a_film_without_a_known_end_or_without_ffmpeg_is_refused_and_leaves_nothing)
{
    char folder[] = P_tmpdir "/vramlab-film-XXXXXX";
    char path[64];
    cr_assert(mkdtemp(folder) != NULL);
    stage self;
    set_stage(&self, NULL);
    vram_error error = {""};
    snprintf(path, sizeof path, "%s/film.avi", folder);
    cr_expect(!vram_view_film(self.view, path, 3, 10, &error));
    cr_expect(strstr(error.text, ".mp4, .webm or .gif") != NULL, "%s", error.text);
    setenv("PATH", "/no/such/folder", 1);
    snprintf(path, sizeof path, "%s/film.mp4", folder);
    cr_expect(!vram_view_film(self.view, path, 3, 10, &error));
    cr_expect(strstr(error.text, "ffmpeg is not installed") != NULL, "%s", error.text);
    cr_expect(rmdir(folder) == 0, "a file was left");
    strike(&self);
}
