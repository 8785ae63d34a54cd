/*
 * vramlab/registry.h - backends by name, with options as text.
 *
 *     stack  = part { "+" part }             a backend, then layers, innermost first; at most 8
 *     part   = name [ ":" option { "," option } ]
 *     option = key "=" value | key           a bare key switches a flag on
 *
 *     tlsf
 *     list:policy=best,unit=256
 *     tlsf+reserve:share=8%+stream           stream around reserve around tlsf
 *     ./mine.so:depth=4                      a plug-in
 *
 * A name with a slash or ending in ".so" is a shared object that exports vram_plugin (backend.h).
 * It stays loaded to the end of the process.
 */
#ifndef VRAMLAB_REGISTRY_H
#define VRAMLAB_REGISTRY_H

#include <vramlab/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VRAM_PLUGIN_SYMBOL "vram_plugin"

/* The built-in backends and layers, in the order in which they are listed. NULL beyond the last. */
const vram_ops *vram_registry_at(size_t index);

/* A built-in backend or layer by name, or NULL. */
const vram_ops *vram_registry_find(const char *name);

/*
 * Makes the stack that the text describes over config->arena_bytes. config->values and ->inner are
 * ignored. False with a message that names the part, option and value that was wrong and what is
 * allowed; nothing is left behind.
 */
bool vram_create_from_text(const char *text, const vram_config *config, vram_backend **out,
                           vram_error *error);

/* Only parses: true when the text names known parts with acceptable options. Sizes in percent are
 * not resolved. */
bool vram_spec_is_valid(const char *text, vram_error *error);

/*
 * The stack as a result must name it: as written, with the options that are always shown
 * ("caching" is "caching:driver=arena"). The caller frees it; NULL with a message when the text is
 * not valid.
 */
char *vram_spec_name(const char *text, vram_error *error);

/*
 * Splits "a,b:x=1,y=2,c" at commas that begin a new backend name (not an option of the one before).
 * Calls `each` with each stack; stops and returns false when that returns false.
 */
bool vram_split_specs(const char *text, bool (*each)(void *context, const char *spec),
                      void *context);

#ifdef __cplusplus
}
#endif
#endif
