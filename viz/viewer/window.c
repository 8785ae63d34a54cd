/*
 * window.c - SDL2: a window that shows the view's picture and hands keys and pointer over.
 *
 * Printed on standard output when the variable VRAMLAB_VIEW_TRACE is set, for a program that drives
 * the window: READY after the first frame, and the state line after each event.
 */
#include "window.h"

#include <SDL.h>

#include <stdlib.h>
#include <string.h>

/* A key with its modifiers by the name that vram_view_key knows. False for one that has none. */
static bool name_key(SDL_Keysym key, char name[40])
{
    static const struct {
        SDL_Keycode code;
        const char *name;
    } names[] = {
        {SDLK_SPACE, "space"},         {SDLK_RIGHT, "right"},     {SDLK_LEFT, "left"},
        {SDLK_HOME, "home"},           {SDLK_END, "end"},         {SDLK_TAB, "tab"},
        {SDLK_RETURN, "return"},       {SDLK_KP_ENTER, "return"}, {SDLK_ESCAPE, "escape"},
        {SDLK_BACKSPACE, "backspace"},
    };
    const char *shift = (key.mod & KMOD_SHIFT) != 0 ? "shift+" : "";
    const char *ctrl = (key.mod & KMOD_CTRL) != 0 ? "ctrl+" : "";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].code == key.sym) {
            const bool arrow = key.sym == SDLK_RIGHT || key.sym == SDLK_LEFT;
            snprintf(name, 40, "%s%s%s", arrow ? ctrl : "", arrow && *ctrl == '\0' ? shift : "",
                     names[i].name);
            return true;
        }
    if (key.sym >= 'a' && key.sym <= 'z') {
        snprintf(name, 40, "%s%c", key.sym == 'c' ? shift : "", (char)key.sym);
        return true;
    }
    return false; /* digits, brackets and the question mark come as text: layouts differ */
}

typedef struct window {
    vram_view **view;
    SDL_Window *window;
    bool trace;
    bool field_open; /* the next text event is what opened the field */
    vram_view *(*opened)(void *context, const char *path);
    void *context;
} window;

static bool is_asking(const vram_view *view)
{
    char state[400];
    vram_view_state(view, state, sizeof state);
    return strstr(state, "asking=1") != NULL;
}

static void take_key(window *self, SDL_Keysym key)
{
    char name[40];
    const bool before = is_asking(*self->view);
    if (!name_key(key, name) || (before && strlen(name) == 1))
        return; /* while the field is open, letters come as text */
    vram_view_key(*self->view, name);
    self->field_open = !before && is_asking(*self->view);
}

static void take_text(window *self, const char *text)
{
    if (self->field_open) { /* the `g` itself */
        self->field_open = false;
        return;
    }
    if (is_asking(*self->view))
        vram_view_text(*self->view, text);
    else if (strchr("[]?0123456789", text[0]) != NULL && text[0] != '\0' && text[1] == '\0')
        vram_view_key(*self->view, text);
}

static void take_drop(window *self, const char *path)
{
    vram_view *fresh = self->opened != NULL ? self->opened(self->context, path) : NULL;
    int width;
    int height;
    if (fresh == NULL) {
        vram_view_say(*self->view, "this file could not be opened");
        return;
    }
    SDL_GetWindowSize(self->window, &width, &height);
    vram_view_resize(fresh, width, height);
    vram_view_free(*self->view);
    *self->view = fresh;
}

static bool take_event(window *self, const SDL_Event *event)
{
    vram_view *view = *self->view;
    switch (event->type) {
    case SDL_QUIT:
        return false;
    case SDL_KEYDOWN:
        take_key(self, event->key.keysym);
        break;
    case SDL_TEXTINPUT:
        take_text(self, event->text.text);
        break;
    case SDL_MOUSEMOTION:
        vram_view_move(view, event->motion.x, event->motion.y);
        break;
    case SDL_MOUSEBUTTONDOWN:
        if (event->button.button == SDL_BUTTON_LEFT)
            vram_view_press(view, event->button.x, event->button.y, event->button.clicks);
        break;
    case SDL_MOUSEBUTTONUP:
        if (event->button.button == SDL_BUTTON_LEFT)
            vram_view_release(view, event->button.x, event->button.y);
        break;
    case SDL_MOUSEWHEEL:
        vram_view_wheel(view, event->wheel.mouseX, event->wheel.mouseY, event->wheel.y);
        break;
    case SDL_WINDOWEVENT:
        if (event->window.event == SDL_WINDOWEVENT_SIZE_CHANGED)
            vram_view_resize(view, event->window.data1, event->window.data2);
        break;
    case SDL_DROPFILE:
        take_drop(self, event->drop.file);
        SDL_free(event->drop.file);
        break;
    default:
        return true;
    }
    if (self->trace) {
        char state[400];
        vram_view_state(*self->view, state, sizeof state);
        puts(state);
        fflush(stdout);
    }
    return !vram_view_wants_to_quit(*self->view);
}

/* Copies the picture into the window's surface. */
static bool show(window *self, vram_error *error)
{
    int width;
    int height;
    const uint32_t *pixels = vram_view_paint(*self->view, &width, &height);
    SDL_Surface *surface = SDL_GetWindowSurface(self->window);
    if (pixels == NULL || surface == NULL)
        return vram_fail(error, "cannot draw: %s",
                         pixels == NULL ? "out of memory" : SDL_GetError());
    SDL_Surface *picture = SDL_CreateRGBSurfaceWithFormatFrom(
        (void *)(uintptr_t)pixels, width, height, 32, width * 4, SDL_PIXELFORMAT_XRGB8888);
    if (picture == NULL)
        return vram_fail(error, "cannot draw: %s", SDL_GetError());
    SDL_BlitSurface(picture, NULL, surface, NULL);
    SDL_FreeSurface(picture);
    return SDL_UpdateWindowSurface(self->window) == 0 ||
           vram_fail(error, "cannot draw: %s", SDL_GetError());
}

static void save_if_asked(vram_view *view)
{
    vram_error error;
    char message[160];
    const char *path = vram_view_save_asked(view);
    if (path == NULL)
        return;
    if (vram_view_save(view, path, &error))
        snprintf(message, sizeof message, "saved as %s", path);
    else
        snprintf(message, sizeof message, "%.150s", error.text);
    vram_view_say(view, message);
}

/* Takes what has happened. False to leave; *any tells whether there was something. */
static bool take_events(window *self, bool *any)
{
    SDL_Event event;
    while (SDL_PollEvent(&event) == 1) {
        *any = true;
        if (!take_event(self, &event))
            return false;
    }
    return true;
}

/*
 * Polls rather than waits: SDL 2.26 ends a wait by sending the window an event on a connection of
 * its own, and where that arrives after the window is gone, Xlib ends the program.
 */
static bool loop(window *self, vram_error *error)
{
    enum { REST_MS = 8 };
    uint64_t last = SDL_GetTicks64();
    bool stale = true; /* what is shown is not what is */
    bool ready = false;
    while (take_events(self, &stale)) {
        const uint64_t now = SDL_GetTicks64();
        vram_view_tick(*self->view, (double)(now - last) / 1000);
        last = now;
        save_if_asked(*self->view);
        stale = stale || vram_view_needs_paint(*self->view);
        if (!stale) {
            SDL_Delay(REST_MS);
            continue;
        }
        if (!show(self, error))
            return false;
        stale = false;
        if (self->trace && !ready)
            puts("READY"), fflush(stdout);
        ready = true;
    }
    return true;
}

bool vram_view_window(vram_view **view, const char *title,
                      vram_view *(*opened)(void *context, const char *path), void *context,
                      vram_error *error)
{
    int width;
    int height;
    /* Presenting a surface through OpenGL costs 2.5 times as much where there is no GPU. */
    SDL_SetHint(SDL_HINT_FRAMEBUFFER_ACCELERATION, "0");
    if (SDL_Init(SDL_INIT_VIDEO) != 0)
        return vram_fail(error,
                         "no display: %s. Without one, use --screenshot, --frames or --video",
                         SDL_GetError());
    vram_view_paint(*view, &width, &height);
    window self = {.view = view,
                   .opened = opened,
                   .context = context,
                   .trace = getenv("VRAMLAB_VIEW_TRACE") != NULL};
    self.window = SDL_CreateWindow(title, SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, width,
                                   height, SDL_WINDOW_RESIZABLE | SDL_WINDOW_ALLOW_HIGHDPI);
    bool shown =
        self.window != NULL || vram_fail(error, "cannot open a window: %s", SDL_GetError());
    if (shown) {
        SDL_SetWindowMinimumSize(self.window, VRAM_VIEW_LEAST_WIDTH, VRAM_VIEW_LEAST_HEIGHT);
        SDL_StartTextInput();
        shown = loop(&self, error);
        SDL_DestroyWindow(self.window);
    }
    SDL_Quit();
    return shown;
}
