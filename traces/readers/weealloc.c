/*
 * weealloc.c - wee_alloc's text: "Alloc(SIZE)," or "Free(INDEX)," a line, where INDEX counts the
 * lines Alloc from 0.
 */
#include "formats.h"

#include <stdlib.h>

static int weealloc_probe(const char *head, size_t head_bytes)
{
    vram_scan scan = scan_over(head, head_bytes);
    uint64_t number;
    while (scan_blanks(&scan) || scan_char(&scan, '\n') || scan_char(&scan, '\r'))
        continue;
    return (scan_text(&scan, "Alloc(") || scan_text(&scan, "Free(")) &&
                   scan_decimal(&scan, &number) && scan_char(&scan, ')')
               ? 3
               : 0;
}

static bool weealloc_open(vram_source *source, vram_error *error)
{
    source->state = calloc(1, sizeof(uint64_t)); /* how many lines Alloc there were */
    if (source->state == NULL)
        return vram_fail(error, "%s: out of memory", source->path);
    source->info->unit_bytes = 16;
    return true;
}

static void weealloc_close(vram_source *source)
{
    free(source->state);
    source->state = NULL;
}

static vram_step weealloc_next(vram_source *source, vram_raw *event, vram_error *error)
{
    uint64_t *allocs = source->state;
    vram_scan line;
    do {
        const vram_step step = vram_source_line(source, &line, error);
        if (step != VRAM_STEP_EVENT)
            return step;
        scan_blanks(&line);
    } while (scan_done(&line));
    const vram_scan whole = line;
    const bool allocates = scan_text(&line, "Alloc(");
    uint64_t number;
    if ((!allocates && !scan_text(&line, "Free(")) || !scan_decimal(&line, &number) ||
        !scan_char(&line, ')'))
        return vram_source_expected(source, &whole, "Alloc(size), or Free(index),", error);
    scan_char(&line, ',');
    scan_blanks(&line);
    if (!scan_done(&line))
        return vram_source_expected(source, &line, "the end of the line", error);
    event->kind = allocates ? VRAM_EVENT_ALLOC : VRAM_EVENT_FREE;
    event->id = allocates ? (*allocs)++ : number;
    event->size_bytes = allocates ? number : 0;
    return VRAM_STEP_EVENT;
}

const vram_format vram_format_weealloc = {
    .name = "weealloc",
    .summary = "wee_alloc text: Alloc(size), and Free(index),",
    .probe = weealloc_probe,
    .open = weealloc_open,
    .next = weealloc_next,
    .close = weealloc_close,
};
