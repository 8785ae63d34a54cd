/* json.c - see json.h. */
#include "json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 64 };

static vram_json_token fail(vram_json *json, vram_error *error, const char *expected)
{
    const vram_input *input = json->input;
    const bool ended = input->at == input->end;
    const unsigned char c = ended ? 0 : (unsigned char)*input->at;
    if (ended)
        vram_fail(error, "%s: line %" PRIu64 ": the JSON ends where %s is expected", input->path,
                  json->line, expected);
    else if (c < 32 || c >= 127)
        vram_fail(error, "%s: line %" PRIu64 ": JSON: found byte 0x%02x, expected %s", input->path,
                  json->line, c, expected);
    else
        vram_fail(error, "%s: line %" PRIu64 ": JSON: found '%c', expected %s", input->path,
                  json->line, c, expected);
    return VRAM_JSON_ERROR;
}

static vram_json_token out_of_memory(const vram_json *json, vram_error *error)
{
    vram_fail(error, "%s: out of memory", json->input->path);
    return VRAM_JSON_ERROR;
}

/* At least `bytes` visible bytes, or what is left. */
static inline bool look(vram_json *json, size_t bytes, vram_error *error)
{
    return (size_t)(json->input->end - json->input->at) >= bytes ||
           vram_input_need(json->input, bytes, error);
}

/* The next character that is not blank, not taken; 0 at the end. */
static bool peek(vram_json *json, char *c, vram_error *error)
{
    vram_input *input = json->input;
    for (;;) {
        if (!look(json, 1, error))
            return false;
        if (input->at == input->end) {
            *c = 0;
            return true;
        }
        *c = *input->at;
        if (*c != ' ' && *c != '\t' && *c != '\r' && *c != '\n')
            return true;
        json->line += *c == '\n';
        input->at++;
    }
}

/* ---- texts ---- */

static bool append(vram_json *json, const char *bytes, size_t count, vram_error *error)
{
    if (!vram_reserve((void **)&json->text, &json->text_capacity, json->text_bytes + count + 1, 1))
        return out_of_memory(json, error), false;
    memcpy(json->text + json->text_bytes, bytes, count);
    json->text_bytes += count;
    json->text[json->text_bytes] = '\0';
    return true;
}

static bool append_utf8(vram_json *json, uint32_t code, vram_error *error)
{
    char bytes[4];
    size_t count = 0;
    if (code < 0x80) {
        bytes[count++] = (char)code;
    } else if (code < 0x800) {
        bytes[count++] = (char)(0xc0 | code >> 6);
        bytes[count++] = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        bytes[count++] = (char)(0xe0 | code >> 12);
        bytes[count++] = (char)(0x80 | (code >> 6 & 0x3f));
        bytes[count++] = (char)(0x80 | (code & 0x3f));
    } else {
        bytes[count++] = (char)(0xf0 | code >> 18);
        bytes[count++] = (char)(0x80 | (code >> 12 & 0x3f));
        bytes[count++] = (char)(0x80 | (code >> 6 & 0x3f));
        bytes[count++] = (char)(0x80 | (code & 0x3f));
    }
    return append(json, bytes, count, error);
}

/* The four digits of \uXXXX. */
static bool take_unit(vram_json *json, uint32_t *unit, vram_error *error)
{
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        if (!look(json, 1, error))
            return false;
        const char c = json->input->at < json->input->end ? *json->input->at : 0;
        const uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                               : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
                               : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
                                                      : 16;
        if (digit == 16)
            return fail(json, error, "a hexadecimal digit"), false;
        *unit = *unit << 4 | digit;
        json->input->at++;
    }
    return true;
}

/* Behind \u: one unit, or a pair of surrogates; a lone one is kept as it is. */
static bool take_unicode(vram_json *json, vram_error *error)
{
    uint32_t unit, low;
    if (!take_unit(json, &unit, error) || !look(json, 2, error))
        return false;
    vram_input *input = json->input;
    const bool pair = unit >= 0xd800 && unit < 0xdc00 && input->end - input->at >= 2 &&
                      input->at[0] == '\\' && input->at[1] == 'u';
    if (!pair)
        return append_utf8(json, unit, error);
    input->at += 2;
    if (!take_unit(json, &low, error))
        return false;
    if (low >= 0xdc00 && low < 0xe000)
        return append_utf8(json, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00), error);
    return append_utf8(json, unit, error) && append_utf8(json, low, error);
}

static bool take_escape(vram_json *json, vram_error *error)
{
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (!look(json, 1, error))
        return false;
    const char c = json->input->at < json->input->end ? *json->input->at : 0;
    if (c == 'u') {
        json->input->at++;
        return take_unicode(json, error);
    }
    const char *name = c != 0 ? strchr(names, c) : NULL;
    if (name == NULL)
        return fail(json, error, "one of \" \\ / b f n r t u behind a backslash"), false;
    json->input->at++;
    return append(json, &meant[name - names], 1, error);
}

/* Behind the opening quote. */
static bool take_text(vram_json *json, vram_error *error)
{
    vram_input *input = json->input;
    json->text_bytes = 0;
    if (!append(json, "", 0, error))
        return false;
    for (;;) {
        if (!look(json, 1, error))
            return false;
        const char *at = input->at;
        while (at < input->end && *at != '"' && *at != '\\' && (unsigned char)*at >= 32)
            at++;
        if (!append(json, input->at, (size_t)(at - input->at), error))
            return false;
        const bool more = at == input->end && at > input->at;
        input->at = at;
        if (more)
            continue;
        if (at == input->end || (unsigned char)*at < 32)
            return fail(json, error, "the text's closing quote"), false;
        input->at++;
        if (*at == '"')
            return true;
        if (!take_escape(json, error))
            return false;
    }
}

/* ---- other scalars ---- */

static vram_json_token take_word(vram_json *json, const char *word, vram_json_token token,
                                 uint64_t number, vram_error *error)
{
    const size_t bytes = strlen(word);
    if (!look(json, bytes, error))
        return VRAM_JSON_ERROR;
    if ((size_t)(json->input->end - json->input->at) < bytes ||
        memcmp(json->input->at, word, bytes) != 0)
        return fail(json, error, "a value");
    json->input->at += bytes;
    json->number = number;
    return token;
}

static vram_json_token take_number(vram_json *json, vram_error *error)
{
    if (!look(json, NUMBER_MAX, error))
        return VRAM_JSON_ERROR;
    const vram_input *input = json->input;
    char text[NUMBER_MAX + 1];
    size_t count = 0;
    bool whole = true;
    for (; count < NUMBER_MAX && input->at + count < input->end; count++) {
        const char c = input->at[count];
        const bool digit = c >= '0' && c <= '9';
        if (!digit && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E')
            break;
        whole = whole && (digit || (c == '-' && count == 0));
        text[count] = c;
    }
    text[count] = '\0';
    const bool negative = text[0] == '-';
    const char *at = text + negative;
    uint64_t number = 0;
    for (; whole && *at != '\0'; at++) {
        const uint64_t digit = (uint64_t)(*at - '0');
        if (number > (UINT64_MAX - digit) / 10)
            whole = false;
        else
            number = number * 10 + digit;
    }
    char *end;
    json->real = strtod(text, &end);
    if (count == 0 || count == NUMBER_MAX || *end != '\0' || end == text)
        return fail(json, error, "a number");
    json->input->at += count;
    if (!whole || (negative && number > UINT64_C(1) << 63))
        return VRAM_JSON_REAL;
    json->number = negative ? 0 - number : number;
    return VRAM_JSON_INT;
}

/* ---- structure ---- */

void vram_json_start(vram_json *json, vram_input *input)
{
    *json = (vram_json){.input = input, .line = input->line + 1};
}

void vram_json_free(vram_json *json)
{
    free(json->text);
    *json = (vram_json){0};
}

static vram_json_token open_nest(vram_json *json, bool object, vram_error *error)
{
    if (json->depth == VRAM_JSON_DEPTH) {
        vram_fail(error, "%s: line %" PRIu64 ": JSON nested more than %d deep", json->input->path,
                  json->line, VRAM_JSON_DEPTH);
        return VRAM_JSON_ERROR;
    }
    json->input->at++;
    json->objects[json->depth++] = object;
    json->filled = false;
    return object ? VRAM_JSON_OBJECT : VRAM_JSON_ARRAY;
}

static vram_json_token close_nest(vram_json *json)
{
    json->input->at++;
    json->depth--;
    json->filled = true;
    return json->objects[json->depth] ? VRAM_JSON_OBJECT_END : VRAM_JSON_ARRAY_END;
}

static vram_json_token take_value(vram_json *json, char c, vram_error *error)
{
    json->after_key = false;
    if (c == '{' || c == '[')
        return open_nest(json, c == '{', error);
    json->filled = true;
    switch (c) {
    case '"':
        json->input->at++;
        return take_text(json, error) ? VRAM_JSON_TEXT : VRAM_JSON_ERROR;
    case 't':
        return take_word(json, "true", VRAM_JSON_BOOL, 1, error);
    case 'f':
        return take_word(json, "false", VRAM_JSON_BOOL, 0, error);
    case 'n':
        return take_word(json, "null", VRAM_JSON_NULL, 0, error);
    default:
        if (c == '-' || (c >= '0' && c <= '9'))
            return take_number(json, error);
        return fail(json, error, "a value");
    }
}

/* A key and its colon. */
static vram_json_token take_key(vram_json *json, char c, vram_error *error)
{
    if (c != '"')
        return fail(json, error, "a key in quotes");
    json->input->at++;
    if (!take_text(json, error) || !peek(json, &c, error))
        return VRAM_JSON_ERROR;
    if (c != ':')
        return fail(json, error, "':'");
    json->input->at++;
    json->after_key = true;
    return VRAM_JSON_KEY;
}

vram_json_token vram_json_next(vram_json *json, vram_error *error)
{
    char c;
    if (!peek(json, &c, error))
        return VRAM_JSON_ERROR;
    if (json->depth == 0)
        return c == 0 && json->input->at == json->input->end ? VRAM_JSON_END
                                                             : take_value(json, c, error);
    if (json->after_key)
        return take_value(json, c, error);
    const bool object = json->objects[json->depth - 1];
    if (c == (object ? '}' : ']'))
        return close_nest(json);
    if (json->filled) {
        if (c != ',')
            return fail(json, error, object ? "',' or '}'" : "',' or ']'");
        json->input->at++;
        if (!peek(json, &c, error))
            return VRAM_JSON_ERROR;
    }
    return object ? take_key(json, c, error) : take_value(json, c, error);
}

bool vram_json_skip_comments(vram_json *json, vram_error *error)
{
    char c;
    for (;;) {
        if (!peek(json, &c, error))
            return false;
        if (c != '#')
            return true;
        while (json->input->at < json->input->end && *json->input->at != '\n') {
            json->input->at++;
            if (!look(json, 1, error))
                return false;
        }
    }
}

bool vram_json_skip(vram_json *json, vram_json_token token, vram_error *error)
{
    if (token != VRAM_JSON_OBJECT && token != VRAM_JSON_ARRAY)
        return true;
    const uint32_t outside = json->depth - 1;
    while (json->depth > outside)
        if (vram_json_next(json, error) == VRAM_JSON_ERROR)
            return false;
    return true;
}
