/* settings.c - size classes and the settings that change them. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

vram_caching_settings vram_caching_defaults(uint64_t device_bytes)
{
    return (vram_caching_settings){
        .cap_bytes = VRAM_CACHING_UNLIMITED,
        .device_bytes = device_bytes,
        .max_split_bytes = VRAM_CACHING_UNLIMITED,
        .max_non_split_rounding_bytes = UINT64_C(20) << 20,
        .large_segment_bytes = UINT64_C(20) << 20,
    };
}

static uint32_t floor_log2(uint64_t value)
{
    return 63u - (uint32_t)__builtin_clzll(value);
}

/* The setting for sizes from 2^k MiB to below twice that; the ends reach to 0 and to the top. */
static uint32_t interval_of(uint64_t size_bytes)
{
    const uint32_t log2_bytes = floor_log2(size_bytes);
    if (log2_bytes < 20)
        return 0;
    return log2_bytes - 20 < VRAM_CACHING_INTERVALS ? log2_bytes - 20 : VRAM_CACHING_INTERVALS - 1;
}

uint64_t vram_caching_round(const vram_caching_settings *settings, uint64_t size_bytes)
{
    if (size_bytes < VRAM_CACHING_MIN_BLOCK)
        return VRAM_CACHING_MIN_BLOCK;
    const uint64_t divisions = settings->roundup_divisions[interval_of(size_bytes)];
    uint64_t step_bytes = VRAM_CACHING_MIN_BLOCK;
    if (divisions > 1 && size_bytes > VRAM_CACHING_MIN_BLOCK * divisions) {
        const uint64_t power_bytes = UINT64_C(1) << floor_log2(size_bytes);
        if (power_bytes / divisions > step_bytes)
            step_bytes = power_bytes / divisions;
    }
    return caching_round_up(size_bytes, step_bytes);
}

uint64_t vram_caching_segment_bytes(const vram_caching_settings *settings, uint64_t rounded_bytes)
{
    if (rounded_bytes <= VRAM_CACHING_SMALL_MAX)
        return VRAM_CACHING_SMALL_SEGMENT;
    if (rounded_bytes < VRAM_CACHING_MIN_LARGE)
        return settings->large_segment_bytes;
    return caching_round_up(rounded_bytes, VRAM_CACHING_ROUND_LARGE);
}

/* ------------------------------------------------------------------------------------------------
 * roundup_power2_divisions: one number for all sizes, or a list of "MiB:number" whose first key
 * also stands for everything below it and whose ">" for everything above the last. */

static bool read_power(const char **text, uint32_t *value)
{
    char *end;
    const unsigned long number = strtoul(*text, &end, 10);
    if (end == *text || number > (1ul << 15) || (number & (number - 1)) != 0)
        return false;
    *text = end;
    *value = (uint32_t)number;
    return true;
}

static bool read_list(const char *text, uint32_t divisions[VRAM_CACHING_INTERVALS])
{
    uint32_t next = 0;
    for (bool first = true; *text != '\0'; first = false) {
        uint32_t key_mib = 0, number = 0;
        const bool rest = *text == '>';
        text += rest;
        if ((!rest && (!read_power(&text, &key_mib) || key_mib == 0)) ||
            (*text != ':' && *text != '='))
            return false;
        text++;
        if (!read_power(&text, &number) || (*text != '\0' && *text != ',' && *text != '/'))
            return false;
        text += *text != '\0';
        uint32_t from = next, to = VRAM_CACHING_INTERVALS - 1;
        if (!rest) {
            to = floor_log2(key_mib);
            from = first ? 0 : to;
        }
        for (uint32_t k = from; k <= to; k++)
            divisions[k] = number;
        next = to + 1;
    }
    return true;
}

bool vram_caching_parse_divisions(const char *text, uint32_t divisions[VRAM_CACHING_INTERVALS],
                                  vram_error *error)
{
    uint32_t parsed[VRAM_CACHING_INTERVALS] = {0};
    const char *rest = text;
    uint32_t all;
    if (read_power(&rest, &all) && *rest == '\0') {
        for (int k = 0; k < VRAM_CACHING_INTERVALS; k++)
            parsed[k] = all;
    } else if (*text == '\0' || !read_list(text, parsed)) {
        return vram_fail(error,
                         "\"%s\" is no list of divisions: one power of two such as 4, or MiB=power "
                         "pairs such as 256=1/512=2/>=8",
                         text);
    }
    memcpy(divisions, parsed, sizeof parsed);
    return true;
}
