/*
 * threads.c - one backend, several threads.
 *
 *   run:   every thread makes all the calls, with blocks of its own
 *
 *   deal:  slot 5   alloc  free | alloc  free | alloc  free        turns 0 1 2 3 4 5
 *          thread     1     1       1     2       1     1           a life's release may be dealt
 * to the next thread
 *
 * A call of `deal` waits for its slot's turn, which is the number of calls made on that slot before
 * it. The first call in the trace's order that is not made yet is never waiting, so the threads
 * cannot wait for each other for ever.
 *
 * A claim is the number of the block that holds a unit of the arena. It is set by exchange after
 * the allocation and must then have been free; it is set free before the release. Two blocks that
 * share a unit are seen however the threads run, and without a lock that would order them.
 */
#include "calls.h"
#include "histogram.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HAND_OVER_EVERY = 4, CLAIM_UNITS_MAX = 1 << 26, PATIENCE = 64, NAP_NS = 20000 };

/* Threads that begin together. */
typedef struct team {
    pthread_mutex_t gate; /* held until all threads are there */
    bool abandoned;       /* they are not: set before the gate opens */
    atomic_bool failed;   /* the first message wins; the others stop */
    pthread_mutex_t error_lock;
    vram_error *error;
    vram_backend *backend;
    const vram_calls *calls;
    /* deal */
    uint64_t unit_bytes;
    uint64_t claim_count;
    atomic_uint *claims; /* by unit of the arena: block holding it, 0 is none */
    atomic_uint *turns;  /* by slot */
    vram_block *blocks;  /* by slot; belongs to whose turn it is */
} team;

/* A call and when it may be made. */
typedef struct dealt_call {
    uint32_t call;
    uint32_t turn;
} dealt_call;

typedef struct member {
    team *team;
    pthread_t thread;
    vram_block *blocks; /* run: its own */
    dealt_call *dealt;
    size_t dealt_count, dealt_capacity;
    uint64_t refused;
    uint64_t begin_ns, end_ns;
} member;

static bool team_fail(team *self, const char *what, uint64_t offset_bytes)
{
    pthread_mutex_lock(&self->error_lock);
    if (!atomic_exchange(&self->failed, true))
        vram_fail(self->error, "%s: %s (at %" PRIu64 ")", self->backend->spec, what, offset_bytes);
    pthread_mutex_unlock(&self->error_lock);
    return false;
}

/* Waits until the team is complete; false when it never will be. */
static bool begin_together(member *self)
{
    pthread_mutex_lock(&self->team->gate);
    const bool complete = !self->team->abandoned;
    pthread_mutex_unlock(&self->team->gate);
    self->begin_ns = vram_now_ns();
    return complete;
}

/* ---- run ---- */

static void *run_member(void *context)
{
    member *const self = context;
    if (!begin_together(self))
        return NULL;
    self->refused = vram_calls_make(self->team->calls, self->team->backend, self->blocks);
    self->end_ns = vram_now_ns();
    return NULL;
}

/* ---- deal ---- */

static bool claim(team *self, const vram_block *block, uint32_t number)
{
    const uint64_t first = block->offset_bytes / self->unit_bytes;
    const uint64_t last = (block->offset_bytes + block->granted_bytes - 1) / self->unit_bytes;
    if (last >= self->claim_count)
        return team_fail(self, "a block leaves the arena", block->offset_bytes);
    for (uint64_t unit = first; unit <= last; unit++)
        if (atomic_exchange_explicit(&self->claims[unit], number, memory_order_relaxed) != 0)
            return team_fail(self, "two live blocks share bytes", unit * self->unit_bytes);
    return true;
}

static bool unclaim(team *self, const vram_block *block, uint32_t number)
{
    const uint64_t first = block->offset_bytes / self->unit_bytes;
    const uint64_t last = (block->offset_bytes + block->granted_bytes - 1) / self->unit_bytes;
    for (uint64_t unit = first; unit <= last; unit++)
        if (atomic_exchange_explicit(&self->claims[unit], 0, memory_order_relaxed) != number)
            return team_fail(self, "two live blocks shared bytes", unit * self->unit_bytes);
    return true;
}

static bool make_call(member *self, const vram_call *made)
{
    team *const with = self->team;
    vram_block *const block = &with->blocks[made->slot];
    const uint32_t number = made->slot + 1;
    if (made->size_bytes == 0) {
        if (block->handle == 0)
            return true;
        if (!unclaim(with, block, number))
            return false;
        const vram_result outcome = vram_release(with->backend, *block);
        block->handle = 0;
        return outcome == VRAM_OK ||
               team_fail(with, "the release of a live block was refused", block->offset_bytes);
    }
    const vram_request request = {
        .size_bytes = made->size_bytes,
        .align_bytes = UINT64_C(1) << made->align_log2,
    };
    const vram_result outcome = vram_alloc(with->backend, request, block);
    if (outcome == VRAM_OK)
        return claim(with, block, number);
    block->handle = 0;
    self->refused++;
    return outcome == VRAM_NO_SPACE ||
           team_fail(with, "a sound request was answered as if it were not", 0);
}

/* Who waits long sleeps: on a busy machine each yield costs the others a slice of time. */
static bool wait_for_turn(team *self, atomic_uint *turn, uint32_t wanted)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    for (int looks = 0; atomic_load_explicit(turn, memory_order_acquire) != wanted; looks++) {
        if (atomic_load_explicit(&self->failed, memory_order_relaxed))
            return false;
        if (looks < PATIENCE)
            sched_yield();
        else
            nanosleep(&nap, NULL);
    }
    return true;
}

static void *deal_member(void *context)
{
    member *const self = context;
    team *const with = self->team;
    if (!begin_together(self))
        return NULL;
    for (size_t index = 0; index < self->dealt_count; index++) {
        const dealt_call *const dealt = &self->dealt[index];
        const vram_call *const made = &with->calls->list[dealt->call];
        atomic_uint *const turn = &with->turns[made->slot];
        if (!wait_for_turn(with, turn, dealt->turn) || !make_call(self, made))
            break;
        atomic_store_explicit(turn, dealt->turn + 1, memory_order_release);
    }
    self->end_ns = vram_now_ns();
    return NULL;
}

/* A slot's lives stay with one thread, but for every fourth release. */
static bool deal_out(const vram_calls *calls, member *members, uint32_t threads,
                     uint64_t *handed_over, vram_error *error)
{
    uint32_t *const turns = calloc(calls->slots + 1, sizeof *turns);
    bool room = turns != NULL && calls->count < UINT32_MAX;
    uint64_t lives = 0;
    for (size_t index = 0; room && index < calls->count; index++) {
        const vram_call *const made = &calls->list[index];
        uint32_t to = made->slot % threads;
        if (made->size_bytes == 0 && threads > 1 && lives++ % HAND_OVER_EVERY == 0) {
            to = (to + 1) % threads;
            ++*handed_over;
        }
        member *const at = &members[to];
        room = vram_reserve((void **)&at->dealt, &at->dealt_capacity, at->dealt_count + 1,
                            sizeof *at->dealt);
        if (room)
            at->dealt[at->dealt_count++] =
                (dealt_call){.call = (uint32_t)index, .turn = turns[made->slot]++};
    }
    free(turns);
    return room ||
           vram_fail(error, "the host is out of memory for the calls of %u threads", threads);
}

/* ---- teams ---- */

static bool check_team(const vram_backend *backend, uint32_t threads, vram_error *error)
{
    if (!backend->ops->concurrent)
        return vram_fail(
            error, "%s is not for several threads: make `locked` or `magazine` its last layer",
            backend->spec);
    return (threads >= 1 && threads <= VRAM_THREADS_MAX) ||
           vram_fail(error, "%u threads: 1 to %d are allowed", threads, VRAM_THREADS_MAX);
}

/* Runs the members; false when a thread could not be made. All are joined in either case. */
static bool run_team(team *self, member *members, uint32_t threads, void *(*work)(void *),
                     vram_threads_result *result)
{
    uint32_t started = 0;
    pthread_mutex_lock(&self->gate);
    while (started < threads &&
           pthread_create(&members[started].thread, NULL, work, &members[started]) == 0)
        started++;
    self->abandoned = started < threads;
    pthread_mutex_unlock(&self->gate);
    for (uint32_t index = 0; index < started; index++)
        pthread_join(members[index].thread, NULL);
    if (started < threads)
        return vram_fail(self->error, "only %u of %u threads could be started", started, threads);
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    for (uint32_t index = 0; index < threads; index++) {
        first_ns = members[index].begin_ns < first_ns ? members[index].begin_ns : first_ns;
        last_ns = members[index].end_ns > last_ns ? members[index].end_ns : last_ns;
        result->refused += members[index].refused;
    }
    result->seconds = (double)(last_ns - first_ns) * 1e-9;
    return !atomic_load(&self->failed);
}

static void free_members(member *members, uint32_t threads)
{
    for (uint32_t index = 0; members != NULL && index < threads; index++) {
        free(members[index].blocks);
        free(members[index].dealt);
    }
    free(members);
}

static member *make_members(team *self, uint32_t threads)
{
    member *const members = calloc(threads, sizeof *members);
    for (uint32_t index = 0; members != NULL && index < threads; index++)
        members[index].team = self;
    return members;
}

bool vram_calls_run_threads(const vram_calls *calls, vram_backend *backend, uint32_t threads,
                            vram_threads_result *result, vram_error *error)
{
    *result = (vram_threads_result){.calls = calls->count * threads};
    if (!check_team(backend, threads, error))
        return false;
    team self = {
        .gate = PTHREAD_MUTEX_INITIALIZER,
        .error_lock = PTHREAD_MUTEX_INITIALIZER,
        .error = error,
        .backend = backend,
        .calls = calls,
    };
    member *const members = make_members(&self, threads);
    bool room = members != NULL;
    for (uint32_t index = 0; room && index < threads; index++) {
        members[index].blocks = calloc(calls->slots + 1, sizeof(vram_block));
        room = members[index].blocks != NULL;
    }
    const bool done = room ? run_team(&self, members, threads, run_member, result)
                           : vram_fail(error, "the host is out of memory for %u threads", threads);
    free_members(members, threads);
    return done;
}

/* Room for turns, claims and blocks; the unit of claims is the backend's, or so large that there
 * are not too many. */
static bool prepare_deal(team *self)
{
    const uint64_t arena_bytes = self->backend->address_bytes;
    self->unit_bytes = self->backend->unit_bytes;
    self->claim_count = arena_bytes / self->unit_bytes + 1;
    if (self->claim_count > CLAIM_UNITS_MAX)
        return vram_fail(self->error,
                         "an arena of %" PRIu64 " bytes has more than %d units of %" PRIu64
                         ": choose a smaller one to check threads",
                         arena_bytes, CLAIM_UNITS_MAX, self->unit_bytes);
    self->claims = calloc(self->claim_count, sizeof *self->claims);
    self->turns = calloc(self->calls->slots + 1, sizeof *self->turns);
    self->blocks = calloc(self->calls->slots + 1, sizeof *self->blocks);
    return (self->claims != NULL && self->turns != NULL && self->blocks != NULL) ||
           vram_fail(self->error, "the host is out of memory for checking threads");
}

/* All was released: the backend must be whole, and empty. */
static bool ended_whole(const vram_backend *backend, vram_error *error)
{
    vram_fault fault = {0};
    if (!vram_check(backend, &fault))
        return vram_fail(error, "%s: its own check finds \"%s\" broken at %" PRIu64, backend->spec,
                         fault.invariant, fault.offset_bytes);
    const vram_stats stats = vram_stats_of(backend);
    return (stats.live_blocks == 0 && stats.granted_bytes == 0) ||
           vram_fail(error,
                     "%s: all was released, and it counts %" PRIu64 " live blocks of %" PRIu64
                     " bytes",
                     backend->spec, stats.live_blocks, stats.granted_bytes);
}

bool vram_calls_deal_threads(const vram_calls *calls, vram_backend *backend, uint32_t threads,
                             vram_threads_result *result, vram_error *error)
{
    *result = (vram_threads_result){.calls = calls->count};
    if (!check_team(backend, threads, error))
        return false;
    team self = {
        .gate = PTHREAD_MUTEX_INITIALIZER,
        .error_lock = PTHREAD_MUTEX_INITIALIZER,
        .error = error,
        .backend = backend,
        .calls = calls,
    };
    member *const members = make_members(&self, threads);
    bool done = members != NULL || vram_fail(error, "the host is out of memory for threads");
    done = done && prepare_deal(&self) &&
           deal_out(calls, members, threads, &result->handed_over, error) &&
           run_team(&self, members, threads, deal_member, result) && ended_whole(backend, error);
    free_members(members, threads);
    free(self.claims);
    free(self.turns);
    free(self.blocks);
    return done;
}
