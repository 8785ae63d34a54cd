/*
 * input.h - a file as a window of unread bytes that moves forward: plain, or gzip unfolded on the
 * way.
 *
 *          at            end
 *   .......|#############|......      '.' read and forgotten, or not yet read   '#' visible
 *
 * Memory is the window: 256 KiB, or what one `need` asks for, and never more than the file gives.
 */
#ifndef VRAMLAB_READERS_INPUT_H
#define VRAMLAB_READERS_INPUT_H

#include <vramlab/trace.h>

typedef struct vram_input {
    const char *at, *end; /* the visible bytes; readers advance `at` */
    const char *path;
    uint64_t line; /* lines taken by vram_input_line so far */
    struct vram_input_file *file;
} vram_input;

/* Fails, with the path, on what is not a regular file that can be read. */
bool vram_input_open(const char *path, const vram_trace_options *options, vram_input **out,
                     vram_error *error);
bool vram_input_rewind(vram_input *input, vram_error *error);
void vram_input_close(vram_input *input); /* NULL is allowed */

/*
 * Makes at least `bytes` bytes visible, or all that are left. False when the file cannot be read,
 * is damaged gzip, or unfolds beyond the limit.
 */
bool vram_input_need(vram_input *input, size_t bytes, vram_error *error);

typedef enum vram_line { VRAM_LINE, VRAM_LINE_END, VRAM_LINE_ERROR } vram_line;

/* The next line without its LF or CR LF; visible until the next call. Longer than 1 MiB is an
 * error. */
vram_line vram_input_line(vram_input *input, const char **line, size_t *bytes, vram_error *error);

/* Gives the line back that was taken last: the next call takes it again. */
void vram_input_untake(vram_input *input, const char *line);

/* An input over bytes in memory, which stay the caller's; needs no close. */
vram_input vram_input_over(const char *bytes, size_t count, const char *path);

uint64_t vram_input_position(const vram_input *input);   /* of `at`, in unfolded bytes */
uint64_t vram_input_file_bytes(const vram_input *input); /* on disk */
bool vram_input_is_gzip(const vram_input *input);

#endif
