/* snapshot_json.c - a snapshot written as JSON drives the same machine as a pickle does. */
#include "json.h"
#include "pickle.h"

static bool take(vram_build *build, const vram_json *json, vram_json_token token)
{
    build_value value = {.type = BUILD_NONE, .count = 1};
    switch (token) {
    case VRAM_JSON_OBJECT:
        return build_push_node(build, BUILD_DICT) && build_mark(build);
    case VRAM_JSON_OBJECT_END:
        return build_set_all(build);
    case VRAM_JSON_ARRAY:
        return build_push_node(build, BUILD_LIST) && build_mark(build);
    case VRAM_JSON_ARRAY_END:
        return build_append_all(build);
    case VRAM_JSON_KEY:
    case VRAM_JSON_TEXT:
        return build_push_text(build, json->text, json->text_bytes);
    case VRAM_JSON_INT:
        return build_push_number(build, json->number);
    case VRAM_JSON_REAL:
        value.type = BUILD_FLOAT;
        value.real = json->real;
        return build_push(build, value);
    case VRAM_JSON_BOOL:
        value.type = BUILD_BOOL;
        value.number = json->number;
        return build_push(build, value);
    case VRAM_JSON_NULL:
        return build_push(build, value);
    case VRAM_JSON_ERROR:
    case VRAM_JSON_END:
        break;
    }
    return false;
}

static bool read_value(vram_build *build, vram_json *json)
{
    for (;;) {
        const vram_json_token token = vram_json_next(json, build->error);
        if (token == VRAM_JSON_ERROR)
            return false;
        if (token == VRAM_JSON_END)
            return build_fail(build, "the file holds no JSON value");
        if (!take(build, json, token))
            return false;
        if (json->depth == 0)
            return true;
    }
}

bool vram_snapshot_json_read(vram_build *build)
{
    vram_json json;
    vram_json_start(&json, build->input);
    const bool read = read_value(build, &json);
    vram_json_free(&json);
    return read;
}
