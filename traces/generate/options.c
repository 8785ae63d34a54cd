/*
 * options.c - the options of a workload, out of "mix,ops=1000,seed=7", and its random numbers.
 */
#include "generate.h"

#include <stdio.h>
#include <string.h>

/* A piece of the spec between commas. */
typedef struct piece {
    const char *key;
    size_t key_bytes;
    const char *value; /* "" without a '=' */
    size_t value_bytes;
} piece;

/* The piece that begins at *at, which then is at the next; false at the end of the spec. */
static bool next_piece(const char **at, piece *found)
{
    if (**at != ',')
        return false;
    const char *const key = *at + 1;
    const size_t bytes = strcspn(key, ",");
    const size_t key_bytes = strcspn(key, "=,");
    const bool has_value = key_bytes < bytes;
    *found = (piece){
        .key = key,
        .key_bytes = key_bytes,
        .value = has_value ? key + key_bytes + 1 : "",
        .value_bytes = has_value ? bytes - key_bytes - 1 : 0,
    };
    *at = key + bytes;
    return true;
}

static bool is_called(const piece *one, const char *name)
{
    return strlen(name) == one->key_bytes && memcmp(one->key, name, one->key_bytes) == 0;
}

static const vram_workload_option *row_of(const vram_workload_option *options, const piece *one)
{
    for (; options != NULL && options->name != NULL; options++)
        if (is_called(one, options->name))
            return options;
    return NULL;
}

bool vram_workload_check(const char *spec, const vram_workload_option *options, vram_error *error)
{
    const char *at = spec + strcspn(spec, ",");
    piece one;
    while (next_piece(&at, &one)) {
        if (row_of(options, &one) != NULL)
            continue;
        char allowed[256] = "";
        for (const vram_workload_option *row = options; row != NULL && row->name != NULL; row++)
            snprintf(allowed + strlen(allowed), sizeof allowed - strlen(allowed), "%s%s",
                     row == options ? "" : ", ", row->name);
        return vram_fail(error, "%s: there is no option '%.*s'; there is: %s", spec,
                         (int)one.key_bytes, one.key, allowed[0] != '\0' ? allowed : "none");
    }
    return true;
}

bool vram_workload_text(const char *spec, const vram_workload_option *options, const char *name,
                        char *text, size_t text_bytes, vram_error *error)
{
    const piece asked = {.key = name, .key_bytes = strlen(name)};
    const vram_workload_option *const row = row_of(options, &asked);
    piece one = {.value = row->fallback, .value_bytes = strlen(row->fallback)};
    const char *at = spec + strcspn(spec, ",");
    for (piece given; next_piece(&at, &given);)
        if (is_called(&given, name))
            one = given;
    if (one.value_bytes >= text_bytes)
        return vram_fail(error, "%s: the value of '%s' is longer than %zu characters", spec, name,
                         text_bytes - 1);
    memcpy(text, one.value, one.value_bytes);
    text[one.value_bytes] = '\0';
    return true;
}

/* "mix,ops=x: ops: " in front of what was wrong with the value. */
static bool wrong_value(const char *spec, const char *name, const vram_error *why,
                        vram_error *error)
{
    return vram_fail(error, "%s: %s: %s", spec, name, why->text);
}

bool vram_workload_size(const char *spec, const vram_workload_option *options, const char *name,
                        uint64_t *bytes, vram_error *error)
{
    char text[64];
    vram_error why = {0};
    return vram_workload_text(spec, options, name, text, sizeof text, error) &&
           (vram_parse_size(text, 0, bytes, &why) || wrong_value(spec, name, &why, error));
}

bool vram_workload_count(const char *spec, const vram_workload_option *options, const char *name,
                         uint64_t *count, vram_error *error)
{
    char text[64];
    vram_error why = {0};
    return vram_workload_text(spec, options, name, text, sizeof text, error) &&
           (vram_parse_count(text, count, &why) || wrong_value(spec, name, &why, error));
}

bool vram_workload_ratio(const char *spec, const vram_workload_option *options, const char *name,
                         double *ratio, vram_error *error)
{
    char text[64];
    vram_error why = {0};
    return vram_workload_text(spec, options, name, text, sizeof text, error) &&
           (vram_parse_ratio(text, ratio, &why) || wrong_value(spec, name, &why, error));
}

/* ---- random numbers ---- */

vram_random vram_random_from(uint64_t seed)
{
    vram_random random;
    for (size_t word = 0; word < 4; word++)
        random.state[word] = vram_next_random(&seed);
    return random;
}

static uint64_t rotated(uint64_t word, uint32_t by)
{
    return word << by | word >> (64 - by);
}

uint64_t vram_random_next(vram_random *random)
{
    uint64_t *const state = random->state;
    const uint64_t result = rotated(state[1] * 5, 7) * 9;
    const uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotated(state[3], 45);
    return result;
}

uint64_t vram_random_below(vram_random *random, uint64_t bound)
{
    const uint64_t uneven = (UINT64_MAX % bound + 1) % bound; /* what does not divide evenly */
    uint64_t drawn;
    do
        drawn = vram_random_next(random);
    while (drawn > UINT64_MAX - uneven);
    return drawn % bound;
}

double vram_random_unit(vram_random *random)
{
    return (double)(vram_random_next(random) >> 11) * 0x1p-53;
}
