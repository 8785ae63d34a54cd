/*
 * input.c - files behind the moving window of input.h.
 *
 *   plain:  read() straight into the window
 *   gzip:   read() -> packed -> inflate() -> window; several members in a row are one file
 */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { WINDOW_BYTES = 1 << 18, PACKED_BYTES = 1 << 16, LINE_MAX_BYTES = 1 << 20 };

#define INFLATE_LIMIT  (UINT64_C(64) << 30)
#define INFLATE_RATIO  1100 /* deflate cannot fold by more than 1032 */
#define PROGRESS_BYTES (UINT64_C(1) << 22)

struct vram_input_file {
    int descriptor;
    uint64_t file_bytes;     /* on disk */
    uint64_t taken_bytes;    /* read from disk */
    uint64_t unfolded_bytes; /* that have entered the window */
    uint64_t limit_bytes;    /* for unfolded_bytes of a gzip file */
    uint64_t told_bytes;     /* taken_bytes when progress was last told */
    char *window;
    size_t window_bytes;
    bool ended; /* no byte will follow those in the window */
    bool gzip;
    bool between_members;
    z_stream stream;
    unsigned char *packed;
    const vram_trace_options *options;
};

static bool fail_system(const vram_input *input, const char *what, vram_error *error)
{
    return vram_fail(error, "%s: %s: %s", input->path, what, strerror(errno));
}

static void tell_progress(struct vram_input_file *file)
{
    if (file->options->progress == NULL || file->taken_bytes - file->told_bytes < PROGRESS_BYTES)
        return;
    file->told_bytes = file->taken_bytes;
    file->options->progress(file->options->progress_context,
                            (double)file->taken_bytes / (double)file->file_bytes);
}

/* Up to `room` bytes from disk; 0 at the end of the file. */
static bool take(vram_input *input, void *to, size_t room, size_t *taken, vram_error *error)
{
    struct vram_input_file *file = input->file;
    ssize_t count;
    do
        count = read(file->descriptor, to, room);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return fail_system(input, "cannot read", error);
    *taken = (size_t)count;
    file->taken_bytes += (uint64_t)count;
    tell_progress(file);
    return true;
}

static bool fail_gzip(const vram_input *input, const char *what, vram_error *error)
{
    return vram_fail(error, "%s: damaged gzip after %llu unfolded bytes: %s", input->path,
                     (unsigned long long)input->file->unfolded_bytes, what);
}

/* Makes sure that inflate has packed bytes; false in *more at the end of the file. */
static bool take_packed(vram_input *input, bool *more, vram_error *error)
{
    struct vram_input_file *file = input->file;
    *more = true;
    if (file->stream.avail_in > 0)
        return true;
    size_t taken;
    if (!take(input, file->packed, PACKED_BYTES, &taken, error))
        return false;
    file->stream.next_in = file->packed;
    file->stream.avail_in = (uInt)taken;
    *more = taken > 0;
    return true;
}

/* After a member: another may follow; anything else behind it is padding, as gzip(1) has it. */
static bool next_member(vram_input *input, bool *more, vram_error *error)
{
    struct vram_input_file *file = input->file;
    if (!take_packed(input, more, error))
        return false;
    if (*more && file->stream.next_in[0] != 0x1f)
        *more = false;
    if (!*more)
        return true;
    if (inflateReset(&file->stream) != Z_OK)
        return fail_gzip(input, "cannot start the next member", error);
    file->between_members = false;
    return true;
}

/* Up to `room` unfolded bytes; 0 at the end of the file. */
static bool unfold(vram_input *input, char *to, size_t room, size_t *given, vram_error *error)
{
    struct vram_input_file *file = input->file;
    file->stream.next_out = (unsigned char *)to;
    file->stream.avail_out = (uInt)room;
    while (file->stream.avail_out == room) {
        bool more;
        if (file->between_members ? !next_member(input, &more, error)
                                  : !take_packed(input, &more, error))
            return false;
        if (!more && !file->between_members && file->stream.total_in > 0)
            return fail_gzip(input, "the file ends in the middle", error);
        if (!more)
            break;
        const int answer = inflate(&file->stream, Z_NO_FLUSH);
        if (answer == Z_STREAM_END)
            file->between_members = true;
        else if (answer != Z_OK)
            return fail_gzip(input, file->stream.msg != NULL ? file->stream.msg : "unknown code",
                             error);
    }
    *given = room - file->stream.avail_out;
    return true;
}

/* Room behind `end` for at least one more byte; what was read moves out of the window first. */
static bool make_room(vram_input *input, size_t bytes, vram_error *error)
{
    struct vram_input_file *file = input->file;
    const size_t visible = (size_t)(input->end - input->at);
    size_t window_bytes = file->window_bytes;
    if (bytes >= window_bytes) { /* grow only as the bytes really come: by doubling */
        window_bytes = visible + visible / 2 > window_bytes ? window_bytes * 2 : window_bytes;
    }
    char *window = file->window;
    if (window_bytes != file->window_bytes && (window = malloc(window_bytes)) == NULL)
        return vram_fail(error, "%s: out of memory for %zu bytes in one piece", input->path,
                         window_bytes);
    memmove(window, input->at, visible);
    if (window != file->window) {
        free(file->window);
        file->window = window;
        file->window_bytes = window_bytes;
    }
    input->at = window;
    input->end = window + visible;
    return true;
}

static bool check_limit(vram_input *input, vram_error *error)
{
    struct vram_input_file *file = input->file;
    if (!file->gzip || file->unfolded_bytes <= file->limit_bytes)
        return true;
    char limit[VRAM_SIZE_TEXT];
    return vram_fail(error,
                     "%s: unfolds to more than %s; if that is what it should hold, raise the limit "
                     "(trace convert --inflate-limit)",
                     input->path, vram_format_size(file->limit_bytes, limit));
}

bool vram_input_need(vram_input *input, size_t bytes, vram_error *error)
{
    struct vram_input_file *file = input->file;
    while ((size_t)(input->end - input->at) < bytes && file != NULL && !file->ended) {
        if (!make_room(input, bytes, error))
            return false;
        char *to = file->window + (input->end - file->window);
        const size_t room = file->window_bytes - (size_t)(to - file->window);
        size_t given;
        if (file->gzip ? !unfold(input, to, room, &given, error)
                       : !take(input, to, room, &given, error))
            return false;
        input->end += given;
        file->unfolded_bytes += given;
        file->ended = given == 0;
        if (!check_limit(input, error))
            return false;
    }
    return true;
}

static vram_line no_line_feed(vram_input *input, const char **line, size_t *bytes,
                              vram_error *error)
{
    if (input->end - input->at > LINE_MAX_BYTES) {
        vram_fail(error, "%s: line %llu: longer than 1 MiB", input->path,
                  (unsigned long long)input->line + 1);
        return VRAM_LINE_ERROR;
    }
    if (input->at == input->end)
        return VRAM_LINE_END;
    *line = input->at; /* the last line, without a line feed */
    *bytes = (size_t)(input->end - input->at);
    input->at = input->end;
    input->line++;
    return VRAM_LINE;
}

vram_line vram_input_line(vram_input *input, const char **line, size_t *bytes, vram_error *error)
{
    const char *feed = NULL;
    size_t searched = 0;
    for (;;) {
        const size_t visible = (size_t)(input->end - input->at);
        feed = memchr(input->at + searched, '\n', visible - searched);
        if (feed != NULL || visible > LINE_MAX_BYTES)
            break;
        searched = visible;
        if (!vram_input_need(input, visible + 1, error))
            return VRAM_LINE_ERROR;
        if ((size_t)(input->end - input->at) == visible)
            break;
    }
    if (feed == NULL)
        return no_line_feed(input, line, bytes, error);
    *line = input->at;
    *bytes = (size_t)(feed - input->at);
    if (*bytes > 0 && feed[-1] == '\r')
        (*bytes)--;
    input->at = feed + 1;
    input->line++;
    return VRAM_LINE;
}

void vram_input_untake(vram_input *input, const char *line)
{
    input->at = line;
    input->line--;
}

vram_input vram_input_over(const char *bytes, size_t count, const char *path)
{
    return (vram_input){.at = bytes, .end = bytes + count, .path = path};
}

static bool start_gzip(vram_input *input, vram_error *error)
{
    struct vram_input_file *file = input->file;
    const size_t visible = (size_t)(input->end - input->at);
    file->gzip =
        visible >= 2 && (unsigned char)input->at[0] == 0x1f && (unsigned char)input->at[1] == 0x8b;
    if (!file->gzip)
        return true;
    file->packed = malloc(PACKED_BYTES);
    if (file->packed == NULL || inflateInit2(&file->stream, 15 + 16) != Z_OK) {
        free(file->packed);
        file->packed = NULL;
        file->gzip = false;
        return vram_fail(error, "%s: out of memory", input->path);
    }
    return vram_input_rewind(input, error);
}

bool vram_input_rewind(vram_input *input, vram_error *error)
{
    struct vram_input_file *file = input->file;
    if (lseek(file->descriptor, 0, SEEK_SET) != 0)
        return fail_system(input, "cannot go back to the start", error);
    if (file->gzip) {
        inflateReset(&file->stream);
        file->stream.avail_in = 0;
    }
    file->between_members = false;
    file->ended = false;
    file->taken_bytes = 0;
    file->told_bytes = 0;
    file->unfolded_bytes = 0;
    input->at = input->end = file->window;
    input->line = 0;
    return true;
}

static bool open_regular(vram_input *input, vram_error *error)
{
    struct vram_input_file *file = input->file;
    file->descriptor = open(input->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->descriptor < 0)
        return fail_system(input, "cannot open", error);
    struct stat status;
    if (fstat(file->descriptor, &status) != 0)
        return fail_system(input, "cannot look at", error);
    if (S_ISDIR(status.st_mode))
        return vram_fail(error, "%s: is a folder; a trace is a file", input->path);
    if (!S_ISREG(status.st_mode))
        return vram_fail(error,
                         "%s: is not a regular file; save it to one first (it is read more "
                         "than once)",
                         input->path);
    file->file_bytes = (uint64_t)status.st_size;
    const uint64_t by_ratio = file->file_bytes < INFLATE_LIMIT / INFLATE_RATIO
                                  ? file->file_bytes * INFLATE_RATIO
                                  : INFLATE_LIMIT;
    file->limit_bytes = file->options->inflate_limit != 0 ? file->options->inflate_limit : by_ratio;
    return true;
}

bool vram_input_open(const char *path, const vram_trace_options *options, vram_input **out,
                     vram_error *error)
{
    vram_input *input = calloc(1, sizeof *input);
    struct vram_input_file *file = calloc(1, sizeof *file);
    char *window = malloc(WINDOW_BYTES);
    if (input == NULL || file == NULL || window == NULL) {
        free(input);
        free(file);
        free(window);
        return vram_fail(error, "%s: out of memory", path);
    }
    *file = (struct vram_input_file){
        .descriptor = -1, .window = window, .window_bytes = WINDOW_BYTES, .options = options};
    *input = (vram_input){.at = window, .end = window, .path = path, .file = file};
    if (!open_regular(input, error) || !vram_input_need(input, 2, error) ||
        !start_gzip(input, error)) {
        vram_input_close(input);
        return false;
    }
    *out = input;
    return true;
}

void vram_input_close(vram_input *input)
{
    if (input == NULL)
        return;
    struct vram_input_file *file = input->file;
    if (file->gzip)
        inflateEnd(&file->stream);
    if (file->descriptor >= 0)
        close(file->descriptor);
    free(file->packed);
    free(file->window);
    free(file);
    free(input);
}

uint64_t vram_input_position(const vram_input *input)
{
    return input->file->unfolded_bytes - (uint64_t)(input->end - input->at);
}

uint64_t vram_input_file_bytes(const vram_input *input)
{
    return input->file->file_bytes;
}

bool vram_input_is_gzip(const vram_input *input)
{
    return input->file->gzip;
}
