/*
 * torch.c - libvramlab_torch.so: the symbols that PyTorch's CUDAPluggableAllocator takes.
 *
 * What is under them, the environment says when the first call comes:
 *
 *   VRAMLAB_BACKEND   the stack (default tlsf)
 *   VRAMLAB_ARENA     cuda:SIZE or cuda:SHARE of the card (default cuda:70%); host:SIZE for tests
 *   VRAMLAB_ON_FULL   spill (default): what does not fit comes from cudaMalloc;
 *                     stop: the process ends with the report
 *   VRAMLAB_TRACE     a file to record to, in vramlab's own format; %p is the process number
 *   VRAMLAB_STATS     a file for the figures as JSON, written at exit
 *   VRAMLAB_QUIET     1: no report at exit
 *
 * PyTorch 2.11 takes a NULL for a tensor at address 0, and a later kernel dies of it: hence spill
 * or stop, and no third way; where there is nothing to spill to, the process ends too. A report
 * comes at exit, and with the first call after a SIGUSR1.
 */
#include "torch/memory.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define EXPORT __attribute__((visibility("default")))

enum { REPORT_BYTES = 1024 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static torch_memory *memory;
static volatile sig_atomic_t report_wanted;

static void want_report(int signal_number)
{
    (void)signal_number;
    report_wanted = 1;
}

static void print_report(void)
{
    char text[REPORT_BYTES];
    torch_memory_report(memory, text, sizeof text);
    fprintf(stderr, "%s\n", text);
}

static void write_stats(const char *path)
{
    char text[REPORT_BYTES];
    torch_memory_json(memory, text, sizeof text);
    FILE *file = fopen(path, "w");
    if (file == NULL || fprintf(file, "%s\n", text) < 0)
        fprintf(stderr, "vramlab: cannot write %s\n", path);
    if (file != NULL)
        fclose(file);
}

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

static void at_exit(void)
{
    torch_memory_finish(memory);
    if (strcmp(setting("VRAMLAB_QUIET", "0"), "1") != 0)
        print_report();
    if (setting("VRAMLAB_STATS", NULL) != NULL)
        write_stats(setting("VRAMLAB_STATS", NULL));
}

static void start(void)
{
    const char *on_full = setting("VRAMLAB_ON_FULL", "spill");
    const bool spills = strcmp(on_full, "spill") == 0;
    vram_error error = {""};
    if (!spills && strcmp(on_full, "stop") != 0)
        vram_fail(&error, "VRAMLAB_ON_FULL=%s: write spill or stop", on_full);
    const torch_settings settings = {.backend = setting("VRAMLAB_BACKEND", "tlsf"),
                                     .arena = setting("VRAMLAB_ARENA", "cuda:70%"),
                                     .trace = setting("VRAMLAB_TRACE", NULL),
                                     .on_full = spills ? TORCH_SPILL : TORCH_STOP};
    if (error.text[0] == '\0')
        memory = torch_memory_open(&settings, &error);
    if (memory == NULL) {
        fprintf(stderr, "vramlab: %s\n", error.text);
        abort(); /* there is no way to tell PyTorch: a NULL would crash a later kernel */
    }
    struct sigaction old;
    if (sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        signal(SIGUSR1, want_report);
    atexit(at_exit);
}

static torch_memory *ready(void)
{
    pthread_once(&once, start);
    if (report_wanted) {
        report_wanted = 0;
        print_report();
    }
    return memory;
}

/* What CUDAPluggableAllocator calls; a cudaStream_t is a pointer. */
EXPORT void *vramlab_malloc(ssize_t size, int device, void *stream);
EXPORT void vramlab_free(void *pointer, ssize_t size, int device, void *stream);
/* For its hooks set_init_fn, set_reset_fn (empty_cache), set_memory_fraction_fn and
 * set_record_stream_fn. */
EXPORT void vramlab_init(int devices);
EXPORT void vramlab_empty_cache(void);
EXPORT void vramlab_memory_fraction(double fraction, int device);
EXPORT void vramlab_record_stream(void *pointer, void *stream);
/* The figures as JSON, as far as they fit. */
EXPORT void vramlab_stats(char *text, size_t size);

void *vramlab_malloc(ssize_t size, int device, void *stream)
{
    (void)device;
    if (size <= 0)
        return NULL;
    void *pointer = torch_memory_alloc(ready(), (uint64_t)size, stream);
    if (pointer == NULL) { /* why was said */
        at_exit();
        abort();
    }
    return pointer;
}

void vramlab_free(void *pointer, ssize_t size, int device, void *stream)
{
    (void)size;
    (void)device;
    (void)stream; /* the one that it was allocated on, as we know */
    torch_memory_free(ready(), pointer);
}

void vramlab_init(int devices)
{
    if (devices > 1)
        fprintf(stderr,
                "vramlab: there are %d devices; the arena is on the current one, and all "
                "tensors are taken to be there\n",
                devices);
    ready();
}

void vramlab_empty_cache(void)
{
    torch_memory_drain(ready());
}

void vramlab_memory_fraction(double fraction, int device)
{
    (void)fraction; /* the arena's size is the limit */
    (void)device;
}

void vramlab_record_stream(void *pointer, void *stream)
{
    torch_memory_use(ready(), pointer, stream);
}

void vramlab_stats(char *text, size_t size)
{
    torch_memory_json(ready(), text, size);
}
