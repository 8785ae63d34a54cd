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

/* Digits behind a point or colon, as ns; more than nine are cut. */
static uint64_t fraction_ns(vram_scan *scan)
{
    uint64_t ns = 0, place = 100000000;
    for (; scan->at < scan->end && (unsigned)(*scan->at - '0') < 10; scan->at++, place /= 10)
        ns += (uint64_t)(*scan->at - '0') * place;
    return ns;
}

bool vram_scan_time(vram_scan *scan, uint64_t *time_ns, bool *of_day)
{
    enum { SECOND_NS = 1000000000 };
    vram_scan at = *scan;
    uint64_t seconds, minutes;
    if (!scan_decimal(&at, &seconds) || seconds > UINT64_MAX / SECOND_NS / 4)
        return false;
    *of_day = scan_char(&at, ':');
    if (*of_day) {
        if (seconds > 23 || !scan_decimal(&at, &minutes) || minutes > 59 || !scan_char(&at, ':'))
            return false;
        seconds = seconds * 3600 + minutes * 60;
        if (!scan_decimal(&at, &minutes) || minutes > 60)
            return false;
        seconds += minutes;
    }
    *time_ns = seconds * SECOND_NS;
    if (scan_char(&at, '.') || (*of_day && scan_char(&at, ':')))
        *time_ns += fraction_ns(&at);
    *scan = at;
    return true;
}
