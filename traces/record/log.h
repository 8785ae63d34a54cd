/*
 * log.h - a trace in vramlab's own format, written while a program runs.
 *
 * For the recorders: no part of the library is needed. Calls may come from any thread; each event
 * is one line, and lines never mix. A log that cannot be written says so once and falls silent: it
 * must not stop the program that it watches.
 */
#ifndef VRAMLAB_RECORD_LOG_H
#define VRAMLAB_RECORD_LOG_H

#include <stdint.h>

typedef struct trace_log trace_log;

/* "%p" in the path stands for the number of the process. NULL, after a line on stderr, when the
 * file cannot be made. */
trace_log *trace_log_open(const char *path, uint64_t unit_bytes);
void trace_log_close(trace_log *self); /* NULL is allowed here and in all calls below */

/* `id` is the block's address. */
void trace_log_alloc(trace_log *self, uint64_t id, uint64_t size_bytes, uint64_t stream);
void trace_log_free(trace_log *self, uint64_t id);
void trace_log_use(trace_log *self, uint64_t id, uint64_t stream);
void trace_log_refused(trace_log *self, uint64_t size_bytes, uint64_t stream);

#endif
