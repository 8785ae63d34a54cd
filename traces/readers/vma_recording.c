/*
 * vma_recording.c - calls recorded by the Vulkan Memory Allocator before its version 3.
 *
 *     Vulkan Memory Allocator,Calls recording
 *     1,8
 *     Config,Begin ... Config,End
 *     THREAD,SECONDS,FRAME,FUNCTION,arguments...
 *
 * The rows of `calls` say where a function has its size and the allocation that it made. The bytes
 * of an image depend on the driver and are not recorded; width * height * depth * 4 stands for
 * them. The user's text, last and possibly with commas, becomes the tag. VMA, docs/Recording file
 * format.
 */
#include "csv.h"
#include "formats.h"

#include <stdlib.h>

enum { FIXED = 4 }; /* thread, seconds, frame, function */

typedef struct vma_call {
    const char *function;
    vram_event_kind kind;
    uint8_t size, handle; /* which argument, from 0 */
    bool image, text;     /* the size is width, height, depth from `size` on; a text follows */
} vma_call;

static const vma_call calls[] = {
    {"vmaCreateBuffer", VRAM_EVENT_ALLOC, 1, 10, false, true},
    {"vmaCreateImage", VRAM_EVENT_ALLOC, 3, 19, true, true},
    {"vmaAllocateMemory", VRAM_EVENT_ALLOC, 0, 9, false, true},
    {"vmaAllocateMemoryForBuffer", VRAM_EVENT_ALLOC, 0, 11, false, true},
    {"vmaAllocateMemoryForImage", VRAM_EVENT_ALLOC, 0, 11, false, true},
    {"vmaDestroyBuffer", VRAM_EVENT_FREE, 0, 0, false, false},
    {"vmaDestroyImage", VRAM_EVENT_FREE, 0, 0, false, false},
    {"vmaFreeMemory", VRAM_EVENT_FREE, 0, 0, false, false},
    {"vmaResizeAllocation", VRAM_EVENT_RESIZE, 1, 0, false, false},
};

static const char first_line[] = "Vulkan Memory Allocator,Calls recording";

static int vma_probe(const char *head, size_t head_bytes)
{
    vram_scan scan = scan_over(head, head_bytes);
    return scan_text(&scan, first_line) ? 3 : 0;
}

static bool vma_open(vram_source *source, vram_error *error)
{
    source->state = calloc(1, sizeof(vram_csv)); /* the row in hand */
    if (source->state == NULL)
        return vram_fail(error, "%s: out of memory", source->path);
    source->info->unit_bytes = 256;
    source->info->has_clock = true;
    vram_scan line;
    for (int i = 0; i < 2; i++) /* the name and the version, of which there is none to refuse */
        if (vram_source_line(source, &line, error) == VRAM_STEP_ERROR) {
            free(source->state);
            return false;
        }
    return true;
}

static void vma_close(vram_source *source)
{
    free(source->state);
    source->state = NULL;
}

static bool number_at(vram_source *source, size_t place, uint64_t *number, const char *what,
                      vram_error *error)
{
    vram_scan field = vram_csv_field(source->state, place);
    const vram_scan start = field;
    if (scan_decimal(&field, number) && scan_done(&field))
        return true;
    vram_source_expected(source, &start, what, error);
    return false;
}

static bool read_size(vram_source *source, const vma_call *call, uint64_t *size_bytes,
                      vram_error *error)
{
    if (!call->image)
        return number_at(source, FIXED + call->size, size_bytes, "a size in bytes", error);
    *size_bytes = 4;
    for (size_t i = 0; i < 3; i++) {
        uint64_t extent;
        if (!number_at(source, FIXED + call->size + i, &extent, "an extent in texels", error))
            return false;
        if (extent > UINT32_MAX || *size_bytes > UINT64_MAX / (extent + 1)) {
            vram_source_fail(source, error, "an image too large to be one");
            return false;
        }
        *size_bytes *= extent;
    }
    return true;
}

/* The text is the rest of the line, commas included. */
static bool read_text(vram_source *source, const vma_call *call, vram_scan line, vram_raw *event,
                      vram_error *error)
{
    const vram_scan handle = vram_csv_field(source->state, FIXED + call->handle);
    vram_scan text = {.at = handle.end, .end = line.end};
    if (!scan_char(&text, ','))
        text.at = text.end;
    return vram_source_tag(source, text, event, error);
}

static bool read_call(vram_source *source, const vma_call *call, vram_scan line, vram_raw *event,
                      vram_error *error)
{
    vram_scan time = vram_csv_field(source->state, 1);
    vram_scan handle = vram_csv_field(source->state, FIXED + call->handle);
    bool of_day;
    event->kind = (uint8_t)call->kind;
    if (!vram_scan_time(&time, &event->time_ns, &of_day) || !scan_done(&time)) {
        vram_source_expected(source, &time, "a time in seconds", error);
        return false;
    }
    if (!scan_hex(&handle, &event->id) || !scan_done(&handle)) {
        vram_source_expected(source, &handle, "an allocation in hexadecimal", error);
        return false;
    }
    event->null_id = event->id == 0;
    if (call->kind != VRAM_EVENT_FREE && !read_size(source, call, &event->size_bytes, error))
        return false;
    if (call->kind == VRAM_EVENT_ALLOC && event->null_id)
        event->kind = VRAM_EVENT_TRY;
    return !call->text || read_text(source, call, line, event, error);
}

static const vma_call *call_of(vram_scan function)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (scan_is(&function, calls[i].function))
            return &calls[i];
    return NULL;
}

/* A call on several allocations at once, which has no place in one event. */
static bool is_pages(vram_scan function)
{
    return scan_is(&function, "vmaAllocateMemoryPages") || scan_is(&function, "vmaFreeMemoryPages");
}

static vram_step vma_next(vram_source *source, vram_raw *event, vram_error *error)
{
    for (;;) {
        vram_scan line;
        const vram_step step = vram_source_line(source, &line, error);
        if (step != VRAM_STEP_EVENT)
            return step;
        vram_csv_split(line, source->state);
        const vram_scan function = vram_csv_field(source->state, 3);
        const vma_call *call = call_of(function);
        if (call != NULL)
            return read_call(source, call, line, event, error) ? VRAM_STEP_EVENT : VRAM_STEP_ERROR;
        if (is_pages(function) &&
            !vram_source_anomaly(source, VRAM_ANOMALY_SKIPPED, error, "a call on several blocks"))
            return VRAM_STEP_ERROR;
    }
}

const vram_format vram_format_vma_recording = {
    .name = "vma-recording",
    .summary = "Vulkan Memory Allocator calls, recorded before its version 3",
    .probe = vma_probe,
    .open = vma_open,
    .next = vma_next,
    .close = vma_close,
};
