/* text.c - messages, sizes and growable arrays. */
#include <vramlab/text.h>

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const uint64_t largest_size_bytes = UINT64_C(1) << 63;

bool vram_fail(vram_error *error, const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return false;
}

/* Reads digits and an optional fraction; *end is behind them. */
static bool read_decimal(const char *text, const char **end, double *value, uint64_t *whole)
{
    const char *at = text;
    bool fits = true;
    *whole = 0;
    for (; isdigit((unsigned char)*at); at++) {
        const uint64_t digit = (uint64_t)(*at - '0');
        fits = fits && *whole <= (UINT64_MAX - digit) / 10;
        *whole = *whole * 10 + digit;
    }
    if (at == text || !fits)
        return false;
    *value = (double)*whole;
    double place = 0.1;
    if (*at == '.' && isdigit((unsigned char)at[1]))
        for (at++; isdigit((unsigned char)*at); at++, place /= 10)
            *value += (*at - '0') * place;
    *end = at;
    return true;
}

/* The power of two that a unit stands for, or -1. */
static int unit_shift(const char *unit)
{
    static const struct {
        const char *name;
        int shift;
    } units[] = {
        {"", 0},     {"B", 0},  {"K", 10},  {"KB", 10},  {"KiB", 10}, {"M", 20},  {"MB", 20},
        {"MiB", 20}, {"G", 30}, {"GB", 30}, {"GiB", 30}, {"T", 40},   {"TB", 40}, {"TiB", 40},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcasecmp(unit, units[i].name) == 0)
            return units[i].shift;
    return -1;
}

bool vram_parse_size(const char *text, uint64_t whole_bytes, uint64_t *size_bytes,
                     vram_error *error)
{
    const char *end = text;
    double value = 0;
    uint64_t whole = 0;
    if (!read_decimal(text, &end, &value, &whole))
        return vram_fail(error, "'%s' is not a size: write 512, 64KiB, 1.5GiB or 80%%", text);
    if (strcmp(end, "%") == 0) {
        if (whole_bytes == 0)
            return vram_fail(error, "'%s': a share is not possible here; write a size", text);
        const double share = value / 100 * (double)whole_bytes;
        if (share >= (double)largest_size_bytes)
            return vram_fail(error, "'%s' is too large", text);
        *size_bytes = (uint64_t)share;
        return true;
    }
    const int shift = unit_shift(end);
    if (shift < 0)
        return vram_fail(
            error, "'%s' is not a size: unit '%s' is none of B, KiB, MiB, GiB, TiB, %%", text, end);
    const double scaled = ldexp(value, shift);
    if (scaled > (double)largest_size_bytes)
        return vram_fail(error, "'%s' is too large: at most 8388608 TiB", text);
    /* Whole numbers stay exact beyond the 53 bits of a double. */
    *size_bytes = value == (double)whole && whole <= largest_size_bytes >> shift ? whole << shift
                                                                                 : (uint64_t)scaled;
    return true;
}

bool vram_parse_count(const char *text, uint64_t *count, vram_error *error)
{
    const char *end = text;
    double value = 0;
    uint64_t whole = 0;
    if (!read_decimal(text, &end, &value, &whole) || *end != '\0' || strchr(text, '.') != NULL)
        return vram_fail(error, "'%s' is not a whole number", text);
    *count = whole;
    return true;
}

bool vram_parse_ratio(const char *text, double *ratio, vram_error *error)
{
    const char *end = text;
    double value = 0;
    uint64_t whole = 0;
    if (!read_decimal(text, &end, &value, &whole) || (*end != '\0' && strcmp(end, "%") != 0))
        return vram_fail(error, "'%s' is not a share: write 0.08 or 8%%", text);
    *ratio = *end == '%' ? value / 100 : value;
    return true;
}

const char *vram_format_size(uint64_t size_bytes, char text[VRAM_SIZE_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;
    double value = (double)size_bytes;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    snprintf(text, VRAM_SIZE_TEXT, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return text;
}

const char *vram_format_count(uint64_t count, char text[32])
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    char *out = text;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
    return text;
}

bool vram_reserve(void **array, size_t *capacity, size_t count, size_t element_bytes)
{
    if (count <= *capacity)
        return true;
    size_t wanted = *capacity < 16 ? 16 : *capacity + *capacity / 2;
    if (wanted < count)
        wanted = count;
    if (wanted > SIZE_MAX / element_bytes)
        return false;
    void *grown = realloc(*array, wanted * element_bytes);
    if (grown == NULL)
        return false;
    *array = grown;
    *capacity = wanted;
    return true;
}

/* Steele, Lea and Flood, OOPSLA 2014: every word once in 2^64 calls. */
uint64_t vram_next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
