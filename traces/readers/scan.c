/* scan.c - see scan.h. */
#include "scan.h"

#include <stdio.h>

const char *vram_scan_excerpt(const vram_scan *scan, char text[VRAM_EXCERPT])
{
    enum { SHOWN = 40 };
    const size_t left = (size_t)(scan->end - scan->at);
    if (left == 0) {
        snprintf(text, VRAM_EXCERPT, "the end of the line");
        return text;
    }
    size_t count = 0;
    text[count++] = '"';
    for (size_t i = 0; i < left && i < SHOWN; i++) {
        const unsigned char c = (unsigned char)scan->at[i];
        text[count++] = c < 32 || c >= 127 ? '?' : (char)c;
    }
    snprintf(text + count, VRAM_EXCERPT - count, left > SHOWN ? "...\"" : "\"");
    return text;
}
