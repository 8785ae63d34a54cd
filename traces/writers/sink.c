/* sink.c - a file under way: a buffer, then the file itself or zlib before it. */
#include "writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

bool sink_open(sink *self, const char *path, vram_error *error)
{
    self->packed = NULL;
    self->used = 0;
    self->failed = false;
    if (!vram_output_open(&self->output, path, error))
        return false;
    if (!ends_with(path, ".gz"))
        return true;
    const int descriptor = dup(fileno(self->output.file)); /* gzclose closes its own */
    self->packed = descriptor >= 0 ? gzdopen(descriptor, "wb") : NULL;
    if (self->packed != NULL)
        return true;
    if (descriptor >= 0)
        close(descriptor);
    vram_output_discard(&self->output);
    return vram_fail(error, "cannot write %s: out of memory", path);
}

static void flush(sink *self)
{
    if (self->packed != NULL)
        self->failed |=
            gzwrite(self->packed, self->buffer, (unsigned)self->used) != (int)self->used;
    else
        self->failed |= fwrite(self->buffer, 1, self->used, self->output.file) != self->used;
    self->used = 0;
}

void sink_bytes(sink *self, const char *bytes, size_t count)
{
    while (count > 0) {
        if (self->used == sizeof self->buffer)
            flush(self);
        const size_t room = sizeof self->buffer - self->used;
        const size_t now = count < room ? count : room;
        memcpy(self->buffer + self->used, bytes, now);
        self->used += now;
        bytes += now;
        count -= now;
    }
}

void sink_text(sink *self, const char *text)
{
    sink_bytes(self, text, strlen(text));
}

void sink_decimal(sink *self, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    sink_bytes(self, digits + at, sizeof digits - at);
}

void sink_hex(sink *self, uint64_t number)
{
    char digits[24];
    const int count = snprintf(digits, sizeof digits, "0x%" PRIx64, number);
    sink_bytes(self, digits, (size_t)count);
}

bool sink_commit(sink *self, vram_error *error)
{
    if (self->used > 0)
        flush(self);
    if (self->packed != NULL)
        self->failed |= gzclose(self->packed) != Z_OK;
    self->packed = NULL;
    if (!self->failed)
        return vram_output_commit(&self->output, error);
    vram_fail(error, "cannot write %s: a write failed", self->output.path);
    vram_output_discard(&self->output);
    return false;
}

void sink_discard(sink *self)
{
    if (self->packed != NULL)
        gzclose(self->packed);
    self->packed = NULL;
    vram_output_discard(&self->output);
}
