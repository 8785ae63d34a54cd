/*
 * lanes.c - vector clocks over streams.
 */
#include "layers/lanes.h"

#include <stdlib.h>
#include <string.h>

static uint64_t *row_of(const lanes *self, uint32_t stream)
{
    return self->knows + (size_t)stream * self->capacity;
}

/* Lays the table out anew for more streams. */
static bool grow(lanes *self, uint32_t capacity)
{
    lanes wider = {.count = self->count, .capacity = capacity};
    wider.marks = calloc(capacity, sizeof *wider.marks);
    wider.host = calloc(capacity, sizeof *wider.host);
    wider.knows = calloc((size_t)capacity * capacity, sizeof *wider.knows);
    if (wider.marks == NULL || wider.host == NULL || wider.knows == NULL) {
        lanes_free(&wider);
        return false;
    }
    for (uint32_t t = 0; t < self->count; t++) {
        wider.marks[t] = self->marks[t];
        wider.host[t] = self->host[t];
        memcpy(row_of(&wider, t), row_of(self, t), self->count * sizeof *wider.knows);
    }
    lanes_free(self);
    *self = wider;
    return true;
}

bool lanes_reserve(lanes *self, uint32_t stream)
{
    if (stream < self->count)
        return true;
    if (stream >= LANES_MOST)
        return false;
    uint32_t capacity = self->capacity == 0 ? 4 : self->capacity;
    while (capacity <= stream)
        capacity *= 2;
    if (capacity > self->capacity && !grow(self, capacity))
        return false;
    self->count = stream + 1;
    return true;
}

void lanes_free(lanes *self)
{
    free(self->marks);
    free(self->host);
    free(self->knows);
    *self = (lanes){0};
}

uint64_t lanes_host_bytes(const lanes *self)
{
    return (uint64_t)self->capacity * (2 + self->capacity) * sizeof(uint64_t);
}

uint64_t lanes_mark(lanes *self, uint32_t stream)
{
    return ++self->marks[stream];
}

bool lanes_is_over(const lanes *self, uint32_t user, uint64_t mark)
{
    return mark <= self->host[user];
}

bool lanes_is_safe(const lanes *self, uint32_t stream, uint32_t user, uint64_t mark, bool follow)
{
    return stream == user || lanes_is_over(self, user, mark) ||
           (follow && mark <= row_of(self, stream)[user]);
}

static void raise(uint64_t *to, uint64_t least)
{
    if (*to < least)
        *to = least;
}

void lanes_wait(lanes *self, uint32_t waiter, uint32_t stream)
{
    uint64_t *to = row_of(self, waiter);
    const uint64_t *from = row_of(self, stream);
    for (uint32_t u = 0; u < self->count; u++)
        raise(&to[u], from[u]);
    raise(&to[stream], self->marks[stream]);
}

void lanes_sync(lanes *self, uint32_t stream)
{
    for (uint32_t t = 0; t < self->count; t++) {
        if (stream != UINT32_MAX && stream != t)
            continue;
        for (uint32_t u = 0; u < self->count; u++)
            raise(&self->host[u], row_of(self, t)[u]);
        raise(&self->host[t], self->marks[t]);
    }
}
