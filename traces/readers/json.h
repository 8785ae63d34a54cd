/*
 * json.h - JSON as a stream of tokens, in memory bounded by its longest text.
 *
 * Strict grammar (RFC 8259), values one after another allowed, as in JSON lines. Nested at most
 * VRAM_JSON_DEPTH deep.
 */
#ifndef VRAMLAB_READERS_JSON_H
#define VRAMLAB_READERS_JSON_H

#include "input.h"

typedef enum vram_json_token {
    VRAM_JSON_ERROR,
    VRAM_JSON_END, /* nothing follows */
    VRAM_JSON_OBJECT,
    VRAM_JSON_OBJECT_END,
    VRAM_JSON_ARRAY,
    VRAM_JSON_ARRAY_END,
    VRAM_JSON_KEY,  /* text */
    VRAM_JSON_TEXT, /* text */
    VRAM_JSON_INT,  /* number, in two's complement when negative */
    VRAM_JSON_REAL, /* real */
    VRAM_JSON_BOOL, /* number */
    VRAM_JSON_NULL,
} vram_json_token;

enum { VRAM_JSON_DEPTH = 256 };

typedef struct vram_json {
    vram_input *input;
    char *text; /* of the last KEY or TEXT; ends with a null byte that text_bytes does not count */
    size_t text_bytes, text_capacity;
    uint64_t number;
    double real;
    uint32_t depth;
    uint64_t line;                 /* of what was read last, from 1 */
    bool objects[VRAM_JSON_DEPTH]; /* by depth: an object, not an array */
    bool filled;                   /* the object or array in hand has a member before this */
    bool after_key;
} vram_json;

/* Starts at the input's place. */
void vram_json_start(vram_json *json, vram_input *input);
void vram_json_free(vram_json *json);

vram_json_token vram_json_next(vram_json *json, vram_error *error);
/* Between values: passes over blank lines and lines that start with '#'. */
bool vram_json_skip_comments(vram_json *json, vram_error *error);
/* Reads to the end of the value that `token` began; true at once for a scalar. */
bool vram_json_skip(vram_json *json, vram_json_token token, vram_error *error);

#endif
