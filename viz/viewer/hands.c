/*
 * hands.c - the pointer: zoom, pan, hover, follow, scrub.
 */
#include "view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LEAST_ZOOM_BYTES = 4096, DRAG_PIXELS = 4 };

static bool on_curves(const vram_view *view, int x, int y)
{
    return rect_holds(view->curves, x, y) || rect_holds(view->scrubber, x, y);
}

static void scrub(vram_view *view, int x)
{
    const double share = (double)(x - view->scrubber.x) / (double)(view->scrubber.width - 1);
    const double clamped = share < 0 ? 0 : share > 1 ? 1 : share;
    view->event = (uint64_t)(clamped * (double)view->events + 0.5);
    view->fraction = 0;
}

/* A window of this length around, kept within the addresses. */
static vram_window window_from(const vram_view *view, double from, double length)
{
    const double end = (double)view->address_end;
    const double least = fmin(end, LEAST_ZOOM_BYTES);
    const double kept = length > end ? end : length < least ? least : length;
    const double start = from < 0 ? 0 : from + kept > end ? end - kept : from;
    const uint64_t first = (uint64_t)start;
    uint64_t last = (uint64_t)(start + kept);
    last = last > view->address_end ? view->address_end : last;
    return (vram_window){first, last > first ? last : first + 1};
}

static void pan(vram_view *view, int x, int y)
{
    const int index = panel_at(view, view->pressed_x, view->pressed_y);
    if (index == NO_PANEL)
        return;
    const panel *of = &view->panels[index];
    const double length = (double)(view->pressed_zoom.to - view->pressed_zoom.from);
    const cell_grid grid = grid_of(view, of);
    double bytes = 0;
    if (view->layout == MAP_TIME)
        bytes = length * (y - view->pressed_y) / of->map.height;
    else if (view->layout == MAP_ROWS && grid.area.height > 0)
        bytes = -length * (y - view->pressed_y) / grid.area.height;
    else if (grid.area.width > 0)
        bytes = -length * (x - view->pressed_x) / grid.area.width;
    view->zoom = window_from(view, (double)view->pressed_zoom.from + bytes, length);
}

void vram_view_move(vram_view *view, int x, int y)
{
    view->x = x;
    view->y = y;
    view->inside = true;
    if (!view->pressed)
        return;
    if (view->scrubbing) {
        scrub(view, x);
        return;
    }
    const int dx = x - view->pressed_x;
    const int dy = y - view->pressed_y;
    view->dragged = view->dragged || dx * dx + dy * dy >= DRAG_PIXELS * DRAG_PIXELS;
    if (view->dragged)
        pan(view, x, y);
}

void vram_view_press(vram_view *view, int x, int y, int clicks)
{
    view->x = x;
    view->y = y;
    view->inside = true;
    view->pressed = true;
    view->dragged = false;
    view->pressed_x = x;
    view->pressed_y = y;
    view->pressed_zoom = view->zoom;
    view->scrubbing = on_curves(view, x, y);
    if (view->scrubbing) {
        view->playing = false;
        scrub(view, x);
    } else if (clicks == 2) {
        view->zoom = (vram_window){0, view->address_end};
        view->pressed_zoom = view->zoom;
    }
}

/* The block under the pointer in a panel; false when there is none. */
static bool block_under(const vram_view *view, const panel *of, int x, int y, uint32_t *block)
{
    uint64_t address_bytes;
    if (!address_at(view, of, x, y, &address_bytes))
        return false;
    const size_t found = look_closely(of) ? vram_cursor_at(of->cursor, address_bytes) : SIZE_MAX;
    if (found == SIZE_MAX)
        return false;
    *block = of->cursor->live[found].block;
    return true;
}

void vram_view_release(vram_view *view, int x, int y)
{
    const bool clicked = view->pressed && !view->dragged && !view->scrubbing;
    view->pressed = view->scrubbing = false;
    const int index = panel_at(view, x, y);
    uint32_t block;
    if (!clicked || index == NO_PANEL)
        return;
    view->focus = index;
    if (block_under(view, &view->panels[index], x, y, &block)) {
        view->followed_panel = index;
        view->followed_block = block;
    } else {
        view->followed_panel = NO_PANEL;
    }
}

void vram_view_wheel(vram_view *view, int x, int y, int steps)
{
    const int index = panel_at(view, x, y);
    uint64_t address_bytes;
    if (index == NO_PANEL || !address_at(view, &view->panels[index], x, y, &address_bytes))
        return;
    const double length = (double)(view->zoom.to - view->zoom.from);
    const double wanted = length * pow(0.8, steps);
    const double before = ((double)address_bytes - (double)view->zoom.from) / length;
    view->zoom = window_from(view, (double)address_bytes - before * wanted, wanted);
}

static void format_span(const vram_timeline *timeline, const vram_op *from, uint64_t to_event,
                        uint64_t to_ns, char *text, size_t text_bytes)
{
    char count[32];
    const uint64_t events = to_event > from->event ? to_event - from->event : 0;
    vram_format_count(events, count);
    if (timeline->has_clock && to_ns >= from->time_ns)
        snprintf(text, text_bytes, "%s events, %.3f ms", count,
                 (double)(to_ns - from->time_ns) / 1e6);
    else
        snprintf(text, text_bytes, "%s events", count);
}

void describe_block(const vram_view *view, const panel *of, uint32_t block, char *text,
                    size_t text_bytes)
{
    const vram_timeline *timeline = of->timeline;
    const vram_life *life = &timeline->lives[block];
    const vram_op *birth = &timeline->ops[life->birth];
    const vram_op *death = life->death == UINT32_MAX ? NULL : &timeline->ops[life->death];
    const vram_op *now = of->op > 0 ? &timeline->ops[of->op - 1] : birth;
    char requested[VRAM_SIZE_TEXT];
    char granted[VRAM_SIZE_TEXT];
    char age[80];
    char lifetime[80];
    const uint64_t offset_bytes = vram_history_offset(
        &of->history, block, of->op > life->birth ? (uint32_t)(of->op - 1) : life->birth);
    format_span(timeline, birth, view->event, now->time_ns, age, sizeof age);
    if (death != NULL)
        format_span(timeline, birth, death->event, death->time_ns, lifetime, sizeof lifetime);
    else
        snprintf(lifetime, sizeof lifetime, "to the end");
    int used = snprintf(
        text, text_bytes,
        "block %u, id 0x%" PRIx64 "\nasked for %s (%" PRIu64 " B)\ngranted %s\nat 0x%" PRIx64
        "\nage %s\nlives %s\nstream 0x%" PRIx64,
        block, life->id, vram_format_size(birth->size_bytes, requested), birth->size_bytes,
        vram_format_size(birth->granted_bytes, granted), offset_bytes, age, lifetime,
        birth->stream < timeline->stream_count ? timeline->streams[birth->stream] : birth->stream);
    if (birth->tag != 0 && used > 0 && (size_t)used < text_bytes)
        used += snprintf(text + used, text_bytes - (size_t)used, "\ntag %s",
                         vram_timeline_tag(timeline, birth->tag));
    if (life->stack != 0 && used > 0 && (size_t)used < text_bytes)
        snprintf(text + used, text_bytes - (size_t)used, "\n%s",
                 vram_timeline_stack(timeline, life->stack));
}
