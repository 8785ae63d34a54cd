/*
 * options.c - options as text, read by a backend's own table.
 */
#include "core/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t table_rows(const vram_option *table)
{
    size_t rows = 0;
    while (table != NULL && table[rows].name != NULL)
        rows++;
    return rows;
}

/* Position of a word in "first|next|best", or -1. */
static int choice_index(const char *choices, const char *word)
{
    const size_t length = strlen(word);
    int index = 0;
    for (const char *at = choices; *at != '\0'; index++) {
        const size_t span = strcspn(at, "|");
        if (span == length && strncmp(at, word, span) == 0)
            return index;
        at += span + (at[span] == '|');
    }
    return -1;
}

static void format_bound(const vram_option *option, uint64_t bound, char text[VRAM_SIZE_TEXT])
{
    if (option->type == VRAM_OPTION_SIZE)
        vram_format_size(bound, text);
    else
        snprintf(text, VRAM_SIZE_TEXT, "%g",
                 (double)bound / (option->type == VRAM_OPTION_RATIO ? 1000 : 1));
}

static bool refuse_range(const char *who, const vram_option *option, const char *text,
                         vram_error *error)
{
    char least[VRAM_SIZE_TEXT];
    char most[VRAM_SIZE_TEXT];
    format_bound(option, option->least, least);
    format_bound(option, option->most, most);
    if (option->most == 0)
        return vram_fail(error, "%s: %s=%s is out of range: at least %s", who, option->name, text,
                         least);
    return vram_fail(error, "%s: %s=%s is out of range: %s to %s", who, option->name, text, least,
                     most);
}

static bool in_range(const vram_option *option, uint64_t number)
{
    return number >= option->least && (option->most == 0 || number <= option->most);
}

static bool parse_number(const char *who, const vram_option *option, uint64_t arena_bytes,
                         vram_value *value, vram_error *error)
{
    const char *text = value->text;
    if (option->choices != NULL && strcmp(text, option->choices) == 0) {
        value->word = true;
        return true;
    }
    vram_error why = {""};
    const bool is_size = option->type == VRAM_OPTION_SIZE;
    const bool unresolved = is_size && arena_bytes == 0 && strchr(text, '%') != NULL;
    if (unresolved)
        return true;
    if (!(is_size ? vram_parse_size(text, arena_bytes, &value->number, &why)
                  : vram_parse_count(text, &value->number, &why)))
        return vram_fail(error, "%s: %s: %s%s%s", who, option->name, why.text,
                         option->choices != NULL ? ", or the word " : "",
                         option->choices != NULL ? option->choices : "");
    return in_range(option, value->number) || refuse_range(who, option, text, error);
}

static bool parse_ratio(const char *who, const vram_option *option, vram_value *value,
                        vram_error *error)
{
    vram_error why = {""};
    if (!vram_parse_ratio(value->text, &value->ratio, &why))
        return vram_fail(error, "%s: %s: %s", who, option->name, why.text);
    const bool sane = value->ratio <= 1e6;
    return (sane && in_range(option, (uint64_t)(value->ratio * 1000 + 0.5))) ||
           refuse_range(who, option, value->text, error);
}

static bool parse_flag(const char *text, uint64_t *number)
{
    static const char *const words[][2] = {{"off", "on"}, {"no", "yes"}, {"0", "1"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        for (uint64_t on = 0; on < 2; on++)
            if (strcmp(text, words[i][on]) == 0) {
                *number = on;
                return true;
            }
    return false;
}

static bool parse_choice(const char *who, const vram_option *option, vram_value *value,
                         vram_error *error)
{
    const int index = choice_index(option->choices, value->text);
    if (index < 0)
        return vram_fail(error, "%s: %s=%s is none of %s", who, option->name, value->text,
                         option->choices);
    value->number = (uint64_t)index;
    return true;
}

/* Parses one value, whose text is set already. */
static bool parse_value(const char *who, const vram_option *option, uint64_t arena_bytes,
                        vram_value *value, vram_error *error)
{
    switch (option->type) {
    case VRAM_OPTION_SIZE:
    case VRAM_OPTION_COUNT:
        return parse_number(who, option, arena_bytes, value, error);
    case VRAM_OPTION_RATIO:
        return parse_ratio(who, option, value, error);
    case VRAM_OPTION_FLAG:
        return parse_flag(value->text, &value->number) ||
               vram_fail(error, "%s: %s=%s: write on or off", who, option->name, value->text);
    case VRAM_OPTION_CHOICE:
        return parse_choice(who, option, value, error);
    case VRAM_OPTION_TEXT:
        return true;
    }
    return vram_fail(error, "%s: option %s has no known type", who, option->name);
}

static bool refuse_name(const char *who, const vram_option *table, const char *name,
                        vram_error *error)
{
    char names[400] = "";
    size_t used = 0;
    for (size_t i = 0; i < table_rows(table) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ",
                                 table[i].name);
    if (names[0] == '\0')
        return vram_fail(error, "%s has no options, but '%s' was given", who, name);
    return vram_fail(error, "%s has no option '%s'; it has: %s", who, name, names);
}

/* Points the value of one "key=value" or bare flag at its text. Cuts the item in place. */
static bool take_item(const char *who, const vram_option *table, char *item, vram_value *values,
                      vram_error *error)
{
    char *equals = strchr(item, '=');
    if (equals != NULL)
        *equals = '\0';
    for (size_t i = 0; i < table_rows(table); i++) {
        if (strcmp(table[i].name, item) != 0)
            continue;
        if (values[i].given)
            return vram_fail(error, "%s: option %s is given twice", who, item);
        if (equals == NULL && table[i].type != VRAM_OPTION_FLAG)
            return vram_fail(error, "%s: option %s needs a value, such as %s=%s", who, item, item,
                             table[i].fallback);
        values[i].text = equals == NULL ? "on" : equals + 1;
        values[i].given = true;
        return true;
    }
    return refuse_name(who, table, item, error);
}

static bool parse_all(const char *who, const vram_option *table, char *text, uint64_t arena_bytes,
                      vram_value *values, vram_error *error)
{
    while (text != NULL && *text != '\0')
        if (!take_item(who, table, strsep(&text, ","), values, error))
            return false;
    for (size_t i = 0; i < table_rows(table); i++) {
        if (!values[i].given)
            values[i].text = table[i].fallback;
        if (!parse_value(who, &table[i], arena_bytes, &values[i], error))
            return false;
    }
    return true;
}

vram_value *vram_options_parse(const char *who, const vram_option *table, const char *text,
                               uint64_t arena_bytes, vram_error *error)
{
    const char *given = text == NULL ? "" : text;
    const size_t values_bytes = (table_rows(table) + 1) * sizeof(vram_value);
    vram_value *values = calloc(1, values_bytes + strlen(given) + 1);
    if (values == NULL) {
        vram_fail(error, "%s: out of host memory", who);
        return NULL;
    }
    char *copy = (char *)values + values_bytes;
    memcpy(copy, given, strlen(given) + 1);
    if (!parse_all(who, table, copy, arena_bytes, values, error)) {
        free(values);
        return NULL;
    }
    return values;
}

bool vram_unit_of(const vram_config *config, const vram_value *unit, uint64_t *unit_bytes,
                  vram_error *error)
{
    *unit_bytes = !unit->word ? unit->number : config->unit_bytes != 0 ? config->unit_bytes : 512;
    return vram_is_power_of_two(*unit_bytes) ||
           vram_fail(error, "unit=%s is not a power of two", unit->text);
}
