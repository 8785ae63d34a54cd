/*
 * script.c - hands from a file, one line each; '#' begins a comment.
 *
 *   key shift+right       a key by its name, as often as a number behind it says: key right 10
 *   text 40%              typed into the field that `g` opens
 *   move 400 300          the pointer
 *   press 400 300 [2]     a button goes down, for the second time within a moment
 *   release 400 300
 *   click 400 300 [2]     press and release
 *   wheel 400 300 -3
 *   size 1280 800
 *   tick 0.5              seconds pass
 *   go failure            as --at
 *   shot FILE.png         the view as it is now
 *   expect event=12       the state line must hold this; see vram_view_state
 *   print                 the state line, on standard output
 */
#include "view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct line {
    const char *path;
    int number;
    char *word;
    char *rest;
} line;

static bool wrong(const line *at, vram_error *error, const char *expected)
{
    return vram_fail(error, "%s: line %d: '%s %s': expected %s", at->path, at->number, at->word,
                     at->rest, expected);
}

static bool press_key(vram_view *view, const line *at, vram_error *error)
{
    char name[32];
    int times = 1;
    if (sscanf(at->rest, "%31s %d", name, &times) < 1 || times < 1 || times > 1000000)
        return wrong(at, error, "a key's name and perhaps how often");
    for (int i = 0; i < times; i++)
        if (!vram_view_key(view, name))
            return wrong(at, error, "a key that `vramlab view --help` lists");
    return true;
}

/* The commands that take two or three numbers. */
static bool point(vram_view *view, const line *at, vram_error *error)
{
    int x;
    int y;
    int third = 1;
    if (sscanf(at->rest, "%d %d %d", &x, &y, &third) < 2)
        return wrong(at, error, "X Y");
    if (strcmp(at->word, "move") == 0)
        vram_view_move(view, x, y);
    if (strcmp(at->word, "press") == 0 || strcmp(at->word, "click") == 0)
        vram_view_press(view, x, y, third);
    if (strcmp(at->word, "release") == 0 || strcmp(at->word, "click") == 0)
        vram_view_release(view, x, y);
    if (strcmp(at->word, "wheel") == 0)
        vram_view_wheel(view, x, y, third);
    if (strcmp(at->word, "size") == 0 && !vram_view_resize(view, x, y))
        return vram_fail(error, "the host is out of memory for a view of %d x %d", x, y);
    return true;
}

static bool expect(const vram_view *view, const line *at, vram_error *error)
{
    char state[400];
    char padded[408];
    char wanted[120];
    vram_view_state(view, state, sizeof state);
    snprintf(padded, sizeof padded, " %s ", state);
    snprintf(wanted, sizeof wanted, " %.100s ", at->rest);
    return strstr(padded, wanted) != NULL ||
           vram_fail(error, "%s: line %d: expected '%s', the state is: %s", at->path, at->number,
                     at->rest, state);
}

static bool run_line(vram_view *view, const line *at, vram_error *error)
{
    static const char *const points[] = {"move", "press", "release", "click", "wheel", "size"};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
        if (strcmp(at->word, points[i]) == 0)
            return point(view, at, error);
    if (strcmp(at->word, "key") == 0)
        return press_key(view, at, error);
    if (strcmp(at->word, "text") == 0)
        return vram_view_text(view, at->rest), true;
    if (strcmp(at->word, "tick") == 0)
        return vram_view_tick(view, atof(at->rest)), true;
    if (strcmp(at->word, "go") == 0)
        return vram_view_go(view, at->rest, error);
    if (strcmp(at->word, "shot") == 0)
        return vram_view_save(view, at->rest, error);
    if (strcmp(at->word, "expect") == 0)
        return expect(view, at, error);
    if (strcmp(at->word, "print") == 0) {
        char state[400];
        vram_view_state(view, state, sizeof state);
        puts(state);
        return true;
    }
    return wrong(at, error,
                 "key, text, move, press, release, click, wheel, size, tick, go, shot, "
                 "expect or print");
}

static bool run_text(vram_view *view, const char *path, FILE *in, vram_error *error)
{
    char text[512];
    for (int number = 1; fgets(text, sizeof text, in) != NULL; number++) {
        text[strcspn(text, "#\r\n")] = '\0';
        char *word = text + strspn(text, " \t");
        for (char *end = word + strlen(word); end > word && (end[-1] == ' ' || end[-1] == '\t');)
            *--end = '\0';
        if (*word == '\0')
            continue;
        char *rest = word + strcspn(word, " \t");
        if (*rest != '\0')
            *rest++ = '\0';
        rest += strspn(rest, " \t");
        int width;
        int height;
        if (!run_line(view, &(line){path, number, word, rest}, error))
            return false;
        /* What hands meet is what has been painted. */
        if (vram_view_paint(view, &width, &height) == NULL)
            return vram_fail(error, "the host is out of memory for the view");
    }
    return true;
}

bool vram_view_script(vram_view *view, const char *path, vram_error *error)
{
    FILE *in = fopen(path, "r");
    if (in == NULL)
        return vram_fail(error, "cannot read the script %s: %s", path, strerror(errno));
    const bool played = run_text(view, path, in, error);
    fclose(in);
    return played;
}
