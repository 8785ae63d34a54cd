/* log.c - see log.h. */
#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct trace_log {
    FILE *file;
    pthread_mutex_t lock;
    uint64_t start_ns;
    bool broken;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The path with the process number in it; the caller frees it. */
static char *path_of_process(const char *path)
{
    char *text = NULL;
    const char *mark = strstr(path, "%p");
    const int length = mark == NULL ? asprintf(&text, "%s", path)
                                    : asprintf(&text, "%.*s%ld%s", (int)(mark - path), path,
                                               (long)getpid(), mark + 2);
    return length < 0 ? NULL : text;
}

trace_log *trace_log_open(const char *path, uint64_t unit_bytes)
{
    trace_log *self = calloc(1, sizeof *self);
    char *name = path_of_process(path);
    if (self != NULL && name != NULL)
        self->file = fopen(name, "we");
    if (self == NULL || self->file == NULL) {
        fprintf(stderr, "vramlab: no trace is recorded: %s: %s\n", path, strerror(errno));
        free(name);
        free(self);
        return NULL;
    }
    free(name);
    setvbuf(self->file, NULL, _IOFBF, 1 << 20);
    pthread_mutex_init(&self->lock, NULL);
    self->start_ns = now_ns();
    fprintf(self->file, "vramlab trace 1\nunit %" PRIu64 "\n", unit_bytes);
    return self;
}

void trace_log_close(trace_log *self)
{
    if (self == NULL)
        return;
    if (fclose(self->file) != 0 && !self->broken)
        fprintf(stderr, "vramlab: the trace is not whole: %s\n", strerror(errno));
    pthread_mutex_destroy(&self->lock);
    free(self);
}

/* Ends a line that an event began; the lock is held. */
static void end_line(trace_log *self, uint64_t stream)
{
    if (stream != 0)
        fprintf(self->file, " s%#" PRIx64, stream);
    if (fprintf(self->file, " @%" PRIu64 "\n", now_ns() - self->start_ns) < 0 && !self->broken) {
        fprintf(stderr, "vramlab: the trace is not whole: %s\n", strerror(errno));
        self->broken = true;
    }
    pthread_mutex_unlock(&self->lock);
}

void trace_log_alloc(trace_log *self, uint64_t id, uint64_t size_bytes, uint64_t stream)
{
    if (self == NULL)
        return;
    pthread_mutex_lock(&self->lock);
    fprintf(self->file, "a %#" PRIx64 " %" PRIu64, id, size_bytes);
    end_line(self, stream);
}

void trace_log_free(trace_log *self, uint64_t id)
{
    if (self == NULL)
        return;
    pthread_mutex_lock(&self->lock);
    fprintf(self->file, "f %#" PRIx64, id);
    end_line(self, 0);
}

void trace_log_use(trace_log *self, uint64_t id, uint64_t stream)
{
    if (self == NULL)
        return;
    pthread_mutex_lock(&self->lock);
    fprintf(self->file, "u %#" PRIx64 " s%#" PRIx64, id, stream); /* here the default one too */
    end_line(self, 0);
}

void trace_log_refused(trace_log *self, uint64_t size_bytes, uint64_t stream)
{
    if (self == NULL)
        return;
    pthread_mutex_lock(&self->lock);
    fprintf(self->file, "t %" PRIu64, size_bytes);
    end_line(self, stream);
}
