/*
 * registry.c - backends by name, stacks from text, plug-ins from shared objects.
 */
#include <vramlab/registry.h>

#include "core/core.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row each, so that two additions do not collide. */
/* clang-format off */
static const vram_ops *const registry[] = {
    &vram_fixed_ops,
    &vram_segregated_ops,
    &vram_naive_ops,
    &vram_buddy_ops,
    &vram_slab_ops,
    &vram_list_ops,
    &vram_tlsf_ops,
    &vram_caching_ops,
    &vram_null_ops,
    &vram_reserve_ops,
    &vram_locked_ops,
    &vram_magazine_ops,
    &vram_stream_ops,
    &vram_pointer_ops,
    &vram_checked_ops,
    &vram_faulty_ops,
    &vram_cudamalloc_ops,
    &vram_cudaasync_ops,
};
/* clang-format on */

const vram_ops *vram_registry_at(size_t index)
{
    return index < sizeof registry / sizeof registry[0] ? registry[index] : NULL;
}

const vram_ops *vram_registry_find(const char *name)
{
    for (size_t i = 0; vram_registry_at(i) != NULL; i++)
        if (strcmp(registry[i]->name, name) == 0)
            return registry[i];
    return NULL;
}

static bool names_a_file(const char *name)
{
    const size_t length = strlen(name);
    return strchr(name, '/') != NULL || (length > 3 && strcmp(name + length - 3, ".so") == 0);
}

static bool ops_are_whole(const vram_ops *ops)
{
    return ops->name != NULL && ops->summary != NULL && ops->create != NULL &&
           ops->destroy != NULL && ops->alloc != NULL && ops->release != NULL &&
           ops->walk != NULL && ops->check != NULL && ops->stats != NULL;
}

/*
 * Loads a plug-in. It stays loaded to the end of the process: its table may be used by any number
 * of backends, and dlopen gives the same handle for the same file.
 */
static const vram_ops *load_plugin(const char *path, vram_error *error)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        vram_fail(error, "cannot load the backend %s: %s", path, dlerror());
        return NULL;
    }
    const vram_ops *ops = dlsym(library, VRAM_PLUGIN_SYMBOL);
    if (ops == NULL)
        vram_fail(error, "%s exports no symbol '%s': it must define `const vram_ops %s`", path,
                  VRAM_PLUGIN_SYMBOL, VRAM_PLUGIN_SYMBOL);
    else if (ops->abi != VRAM_ABI)
        vram_fail(error, "%s was built for contract version %u, this program has %u: rebuild it",
                  path, ops->abi, VRAM_ABI);
    else if (!ops_are_whole(ops))
        vram_fail(error,
                  "%s: name, summary, create, destroy, alloc, release, walk, check and "
                  "stats must all be set in its table",
                  path);
    else
        return ops;
    dlclose(library);
    return NULL;
}

static bool refuse_part(const char *name, bool layer, vram_error *error)
{
    char names[400] = "";
    for (size_t i = 0; vram_registry_at(i) != NULL; i++)
        if (registry[i]->layer == layer &&
            strlen(names) + strlen(registry[i]->name) + 3 < sizeof names) {
            strcat(names, names[0] == '\0' ? "" : ", ");
            strcat(names, registry[i]->name);
        }
    return vram_fail(error, "no %s is called '%s'; there are: %s%s", layer ? "layer" : "backend",
                     name, names, layer ? "" : ", and ./FILE.so");
}

/* One part of a stack, found and parsed. */
typedef struct part {
    const vram_ops *ops;
    vram_value *values;
} part;

/* Finds "name:options" and parses its options. Cuts the text in place. */
static bool read_part(char *text, bool layer, uint64_t arena_bytes, part *out, vram_error *error)
{
    char *options = strchr(text, ':');
    if (options != NULL)
        *options++ = '\0';
    const vram_ops *ops = names_a_file(text) ? load_plugin(text, error) : vram_registry_find(text);
    if (ops == NULL && names_a_file(text))
        return false;
    if (ops == NULL || ops->layer != layer)
        return refuse_part(text, layer, error);
    vram_value *values = vram_options_parse(ops->name, ops->options, options, arena_bytes, error);
    *out = (part){.ops = ops, .values = values};
    return values != NULL;
}

/* A stack as parsed: parts[0] is the backend, the rest are layers. */
enum { STACK_MAX = 8 };
typedef struct stack {
    part parts[STACK_MAX];
    uint64_t arena_bytes[STACK_MAX]; /* what each part manages */
    size_t count;
} stack;

static void free_values(stack *self)
{
    for (size_t i = 0; i < self->count; i++)
        free(self->parts[i].values);
}

/* Parses "a:x=1+b". Cuts the text in place; on failure nothing is left behind. */
static bool read_stack(char *text, uint64_t arena_bytes, stack *out, vram_error *error)
{
    *out = (stack){.count = 0};
    while (text != NULL) {
        if (out->count == STACK_MAX) {
            vram_fail(error, "a stack has at most %d parts", STACK_MAX);
            break;
        }
        if (!read_part(strsep(&text, "+"), out->count > 0, arena_bytes, &out->parts[out->count],
                       error))
            break;
        out->count++;
        if (text == NULL)
            return true;
    }
    free_values(out);
    return false;
}

/* What each part manages: the outermost the whole arena, each inner one what its layer leaves. */
static bool share_arena(stack *self, const vram_config *config, vram_error *error)
{
    uint64_t arena_bytes = config->arena_bytes;
    for (size_t i = self->count; i-- > 0;) {
        const vram_ops *ops = self->parts[i].ops;
        self->arena_bytes[i] = arena_bytes;
        if (ops->inner_bytes == NULL)
            continue;
        vram_config own = *config;
        own.arena_bytes = arena_bytes;
        own.values = self->parts[i].values;
        arena_bytes = ops->inner_bytes(&own);
        if (arena_bytes == 0)
            return vram_fail(error, "%s leaves nothing of the arena to %s", ops->name,
                             self->parts[0].ops->name);
    }
    return true;
}

/* Offsets above the arena leave no place for what a layer lays beside its inner backend. */
static bool layer_fits(const vram_ops *layer, const vram_backend *inner, vram_error *error)
{
    if (inner == NULL || inner->address_bytes == inner->arena_bytes || layer->inner_bytes == NULL)
        return true;
    return vram_fail(error,
                     "%s keeps a part of the arena, which %s (virtual addresses) has no "
                     "place for",
                     layer->name, inner->ops->name);
}

/* Makes the parts from the innermost outwards; each takes over its values and its inner backend. */
static vram_backend *make_stack(stack *self, const vram_config *config, vram_error *error)
{
    vram_backend *inner = NULL;
    for (size_t i = 0; i < self->count; i++) {
        vram_config own = *config;
        own.arena_bytes = self->arena_bytes[i];
        own.values = self->parts[i].values;
        own.inner = inner;
        vram_backend *made = NULL;
        if (!layer_fits(self->parts[i].ops, inner, error) ||
            !self->parts[i].ops->create(&own, &made, error)) {
            vram_destroy(inner);
            return NULL;
        }
        made->ops = self->parts[i].ops;
        made->arena_bytes = own.arena_bytes;
        made->spec = NULL;
        made->owned_values = self->parts[i].values;
        self->parts[i].values = NULL;
        if (made->unit_bytes == 0)
            made->unit_bytes = inner != NULL ? inner->unit_bytes : 1;
        if (made->address_bytes == 0)
            made->address_bytes = inner != NULL && inner->address_bytes > inner->arena_bytes
                                      ? inner->address_bytes
                                      : made->arena_bytes;
        inner = made;
    }
    return inner;
}

/* Appends the options of a part that a result must name and that were not given. */
static void name_defaults(const part *self, bool has_options, FILE *out)
{
    for (size_t i = 0; self->ops->options != NULL && self->ops->options[i].name != NULL; i++) {
        const vram_option *option = &self->ops->options[i];
        if (!option->shown || self->values[i].given)
            continue;
        fprintf(out, "%c%s=%s", has_options ? ',' : ':', option->name, option->fallback);
        has_options = true;
    }
}

/* The stack as written, with what a result must name. NULL when the host is out of memory. */
static char *spec_of(const stack *self, const char *text)
{
    char *spec = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&spec, &length);
    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < self->count; i++) {
        const size_t span = strcspn(text, "+");
        fprintf(out, "%s%.*s", i > 0 ? "+" : "", (int)span, text);
        name_defaults(&self->parts[i], memchr(text, ':', span) != NULL, out);
        text += span + (text[span] == '+');
    }
    return fclose(out) == 0 ? spec : NULL;
}

static vram_backend *create_stack(const char *text, char *copy, const vram_config *config,
                                  vram_error *error)
{
    stack parsed;
    if (!read_stack(copy, config->arena_bytes, &parsed, error))
        return NULL;
    char *spec = spec_of(&parsed, text);
    vram_backend *made = NULL;
    if (spec == NULL)
        vram_fail(error, "%s: out of host memory", text);
    else if (share_arena(&parsed, config, error))
        made = make_stack(&parsed, config, error);
    if (made != NULL)
        made->spec = spec;
    else
        free(spec);
    free_values(&parsed);
    return made;
}

bool vram_create_from_text(const char *text, const vram_config *config, vram_backend **out,
                           vram_error *error)
{
    if (config->arena_bytes == 0 || config->arena_bytes > VRAM_ARENA_MAX)
        return vram_fail(error, "an arena of %llu bytes is not possible: 1 byte to 1 PiB",
                         (unsigned long long)config->arena_bytes);
    char *copy = strdup(text);
    if (copy == NULL)
        return vram_fail(error, "%s: out of host memory", text);
    vram_backend *made = create_stack(text, copy, config, error);
    free(copy);
    if (made == NULL)
        return false;
    *out = made;
    return true;
}

char *vram_spec_name(const char *text, vram_error *error)
{
    char *copy = strdup(text);
    char *name = NULL;
    stack parsed;
    if (copy == NULL) {
        vram_fail(error, "%s: out of host memory", text);
    } else if (read_stack(copy, 0, &parsed, error)) {
        name = spec_of(&parsed, text);
        if (name == NULL)
            vram_fail(error, "%s: out of host memory", text);
        free_values(&parsed);
    }
    free(copy);
    return name;
}

bool vram_spec_is_valid(const char *text, vram_error *error)
{
    char *name = vram_spec_name(text, error);
    free(name);
    return name != NULL;
}

/* True when the text up to the next ':' '+' ',' '=' is the name of a part rather than of an option.
 */
static bool begins_a_stack(const char *text)
{
    const size_t length = strcspn(text, ":+,=");
    if (text[length] == '=')
        return false;
    char name[256];
    if (length >= sizeof name)
        return true;
    memcpy(name, text, length);
    name[length] = '\0';
    const vram_ops *ops = vram_registry_find(name);
    return text[length] == ':' || text[length] == '+' || names_a_file(name) ||
           (ops != NULL && !ops->layer);
}

bool vram_split_specs(const char *text, bool (*each)(void *context, const char *spec),
                      void *context)
{
    char *copy = strdup(text);
    if (copy == NULL)
        return false;
    bool going = true;
    char *start = copy;
    bool has_options = false;
    for (char *at = copy; going; at++) {
        has_options = has_options || *at == ':';
        const bool end = *at == '\0';
        if (!end && !(*at == ',' && (!has_options || begins_a_stack(at + 1))))
            continue;
        *at = '\0';
        going = each(context, start);
        start = at + 1;
        has_options = false;
        if (end)
            break;
    }
    free(copy);
    return going;
}
