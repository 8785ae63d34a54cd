/*
 * contained.c - a child that plays, and a parent that watches its beats, time and memory.
 */
#include "conformance/contained.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_FIRST_US = 50, LOOK_LAST_US = 10000, ASLEEP_FACTOR = 3 };

static double used_s(pid_t child)
{
    clockid_t clock;
    struct timespec now;
    return clock_getcpuclockid(child, &clock) == 0 && clock_gettime(clock, &now) == 0
               ? (double)now.tv_sec + (double)now.tv_nsec / 1e9
               : 0;
}

/* It waits for something, rather than for the processor. */
static bool is_asleep(pid_t child)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)child);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    char state = '?';
    const int read = fscanf(file, "%*d (%*[^)]) %c", &state);
    fclose(file);
    return read == 1 && state == 'S';
}

static uint64_t resident_bytes(pid_t child)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/statm", (long)child);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    uint64_t pages = 0;
    uint64_t resident = 0;
    const int read = fscanf(file, "%" SCNu64 " %" SCNu64, &pages, &resident);
    fclose(file);
    return read == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* A child prints to standard error, so that the parent's output stays its own, and leaves no core.
 */
static void become_child(pid_t parent, bool quiet)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* it died before the line above */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    const int nowhere = quiet ? open("/dev/null", O_WRONLY) : -1;
    if (nowhere >= 0)
        dup2(nowhere, STDERR_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

/* Where it happened: "release" of the act at hand. */
static bool find_here(vram_stage *stage, const char *broken, const char *what)
{
    return stage_find(stage, broken, "every call returns, in bounded time and memory",
                      "%s in the call `%s`", what, stage->call);
}

static void note_death(vram_stage *stage, int status)
{
    char what[96];
    if (WIFSIGNALED(status))
        snprintf(what, sizeof what, "the process died of signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(what, sizeof what, "the process ended itself with status %d", WEXITSTATUS(status));
    find_here(stage, WIFSIGNALED(status) ? "crash" : "exit", what);
}

static void end_child(pid_t child)
{
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* What the watcher remembers of the last sign of life. Neither time passes while the child only
 * waits for a busy machine. */
typedef struct pulse {
    uint64_t beats;
    double used_s;   /* the child's, at that sign */
    double asleep_s; /* by the looks since then that found it asleep */
} pulse;

static bool is_silent(pulse *last, const vram_stage *stage, pid_t child, double paused_s,
                      double silence_s)
{
    const pulse now = {stage->beats, used_s(child), 0};
    if (now.beats != last->beats) {
        *last = now;
        return false;
    }
    last->asleep_s += is_asleep(child) ? paused_s : 0;
    return now.used_s - last->used_s > silence_s || last->asleep_s > ASLEEP_FACTOR * silence_s;
}

static void watch(pid_t child, vram_stage *stage, const vram_limits *limits,
                  void (*tick)(const vram_stage *stage))
{
    pulse last = {stage->beats, used_s(child), 0};
    useconds_t pause_us = LOOK_FIRST_US;
    int status = 0;
    pid_t ended;
    while ((ended = waitpid(child, &status, WNOHANG)) != child) {
        if (ended < 0 && errno != EINTR)
            return;
        char what[96];
        if (is_silent(&last, stage, child, pause_us * 1e-6, limits->silence_s)) {
            end_child(child);
            snprintf(what, sizeof what, "nothing came back within %g s", limits->silence_s);
            find_here(stage, "hang", what);
            return;
        }
        if (resident_bytes(child) > limits->memory_bytes) {
            end_child(child);
            char size[VRAM_SIZE_TEXT];
            snprintf(what, sizeof what, "the process took more than %s of host memory",
                     vram_format_size(limits->memory_bytes, size));
            find_here(stage, "memory", what);
            return;
        }
        if (tick != NULL)
            tick(stage);
        usleep(pause_us);
        pause_us = pause_us * 2 < LOOK_LAST_US ? pause_us * 2 : LOOK_LAST_US;
    }
    if (stage->verdict == UINT32_MAX)
        note_death(stage, status);
}

vram_verdict contained_do(vram_stage *stage, const vram_limits *limits, vram_deed *deed,
                          const void *context, void (*tick)(const vram_stage *stage))
{
    const pid_t parent = getpid();
    stage->finding = (vram_finding){.found = false};
    stage->verdict = UINT32_MAX;
    stage->act = UINT32_MAX;
    stage->call = "nothing";
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) {
        stage_find(stage, "fork", "a child process", "%s", strerror(errno));
        return BROKEN;
    }
    if (child == 0) {
        become_child(parent, limits->quiet);
        stage->verdict = deed(stage, context);
        _exit(0);
    }
    watch(child, stage, limits, tick);
    return stage->verdict == UINT32_MAX ? BROKEN : (vram_verdict)stage->verdict;
}
