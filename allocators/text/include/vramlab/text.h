/*
 * vramlab/text.h - error messages, sizes and growable arrays: the little that every part needs.
 *
 * Knows nothing of allocators, traces or pictures.
 */
#ifndef VRAMLAB_TEXT_H
#define VRAMLAB_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * An error for a person: what was wrong, where, and what would be right. The caller owns the
 * storage; text is empty until a call fails. Every function that takes a vram_error accepts NULL.
 */
typedef struct vram_error {
    char text[768];
} vram_error;

/* Writes the message, cut at the end of the storage. Returns false, so that `return vram_fail(...)`
 * reads well. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
bool vram_fail(vram_error *error, const char *format, ...);

/*
 * Reads a size: decimal digits, an optional fraction, an optional unit (B, KiB, MiB, GiB, TiB, also
 * K, M, G, T, KB, MB, GB, TB; all powers of 1024, any case), nothing after it. "80%" is a share of
 * whole_bytes (an error when whole_bytes is 0). False, with a message that names the text, when it
 * is not a size or exceeds 2^63.
 */
bool vram_parse_size(const char *text, uint64_t whole_bytes, uint64_t *size_bytes,
                     vram_error *error);

/* Reads an unsigned decimal number that fills the whole text. */
bool vram_parse_count(const char *text, uint64_t *count, vram_error *error);

/* Reads a share: "0.08" or "8%". */
bool vram_parse_ratio(const char *text, double *ratio, vram_error *error);

enum { VRAM_SIZE_TEXT = 24 };

/* Writes a size for a person: "84.00 MiB", "512 B". Returns text. */
const char *vram_format_size(uint64_t size_bytes, char text[VRAM_SIZE_TEXT]);

/* Writes an exact count with thousands separators: "487,717,888". Returns text. */
const char *vram_format_count(uint64_t count, char text[32]);

/*
 * Makes room for `count` elements in a growable array: geometric growth, all-or-nothing. False when
 * the host is out of memory or the size would overflow; the array is then unchanged.
 */
bool vram_reserve(void **array, size_t *capacity, size_t count, size_t element_bytes);

/* The next number of a seeded generator whose state is one word: splitmix64. */
uint64_t vram_next_random(uint64_t *state);

#ifdef __cplusplus
}
#endif
#endif
