/*
 * scan.h - numbers and words from a stretch of text that need not end with a null byte.
 *
 * Each call moves `at` behind what it took, and leaves it alone when it returns false.
 */
#ifndef VRAMLAB_READERS_SCAN_H
#define VRAMLAB_READERS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct vram_scan {
    const char *at, *end;
} vram_scan;

static inline vram_scan scan_over(const char *text, size_t bytes)
{
    return (vram_scan){.at = text, .end = text + bytes};
}

static inline bool scan_done(const vram_scan *scan)
{
    return scan->at == scan->end;
}

/* Blanks and tabs; true when there was at least one. */
static inline bool scan_blanks(vram_scan *scan)
{
    const char *start = scan->at;
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t'))
        scan->at++;
    return scan->at > start;
}

/* The character, if it is the next. */
static inline bool scan_char(vram_scan *scan, char c)
{
    if (scan->at == scan->end || *scan->at != c)
        return false;
    scan->at++;
    return true;
}

/* The text, if it comes next. */
static inline bool scan_text(vram_scan *scan, const char *text)
{
    const size_t bytes = strlen(text);
    if ((size_t)(scan->end - scan->at) < bytes || memcmp(scan->at, text, bytes) != 0)
        return false;
    scan->at += bytes;
    return true;
}

/* Decimal digits that fit 64 bits. */
static inline bool scan_decimal(vram_scan *scan, uint64_t *number)
{
    const char *at = scan->at;
    uint64_t value = 0;
    for (; at < scan->end && (unsigned)(*at - '0') < 10; at++) {
        const uint64_t digit = (uint64_t)(*at - '0');
        if (value > UINT64_MAX / 10 || value * 10 > UINT64_MAX - digit)
            return false;
        value = value * 10 + digit;
    }
    if (at == scan->at)
        return false;
    *number = value;
    scan->at = at;
    return true;
}

/* Hexadecimal digits, without 0x, that fit 64 bits. */
static inline bool scan_hex(vram_scan *scan, uint64_t *number)
{
    const char *at = scan->at;
    uint64_t value = 0;
    for (; at < scan->end; at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (digit > 9) {
            digit = ((unsigned char)*at | 32u) - (unsigned)'a' + 10;
            if (digit < 10 || digit > 15)
                break;
        }
        if (value >> 60 != 0)
            return false;
        value = value << 4 | digit;
    }
    if (at == scan->at)
        return false;
    *number = value;
    scan->at = at;
    return true;
}

/* Decimal, or hexadecimal behind 0x. */
static inline bool scan_number(vram_scan *scan, uint64_t *number)
{
    vram_scan hex = *scan;
    if (!scan_text(&hex, "0x") && !scan_text(&hex, "0X"))
        return scan_decimal(scan, number);
    if (!scan_hex(&hex, number))
        return false;
    *scan = hex;
    return true;
}

/* Everything up to one of the characters or the end; may be empty. */
static inline vram_scan scan_until(vram_scan *scan, const char *stops)
{
    const char *start = scan->at;
    while (scan->at < scan->end && strchr(stops, *scan->at) == NULL)
        scan->at++;
    return (vram_scan){.at = start, .end = scan->at};
}

/* The whole of it is this text. */
static inline bool scan_is(const vram_scan *scan, const char *text)
{
    vram_scan rest = *scan;
    return scan_text(&rest, text) && scan_done(&rest);
}

/* The text occurs somewhere in it. */
static inline bool scan_holds(const vram_scan *scan, const char *text)
{
    return memmem(scan->at, (size_t)(scan->end - scan->at), text, strlen(text)) != NULL;
}

/*
 * A time in ns: "12:34:56.123456", "12:34:56:123456" (both *of_day) or seconds as "1634567890.25".
 */
bool vram_scan_time(vram_scan *scan, uint64_t *time_ns, bool *of_day);

enum { VRAM_EXCERPT = 48 };

/* What comes next, for a message: up to 40 characters, none of them a control code; "the end of the
 * line" when nothing does. Returns text. */
const char *vram_scan_excerpt(const vram_scan *scan, char text[VRAM_EXCERPT]);

#endif
