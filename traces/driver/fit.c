/*
 * fit.c - the least arena in which a trace completes.
 *
 *   bound                 smallest      no failure from
 *     |xxxxxxxxxxxxxxxxxxxxx|o o o x o o x|o o o o o o o o ...   every tick a replay
 *     |-----------> gallop first: is there a success at all, and how far away?
 *
 * A larger arena may fail where a smaller one completed, so bisection could answer anything.
 * Hence every size is tried, upwards from the lower bound: in steps of step_share of the bound up
 * to twice the bound, above that in steps ten times as coarse relative to the size itself; each
 * rounded down to the trace's unit. A failing arena is cheap, as the replay stops at its first
 * failure.
 *
 * The scan ends when it is safe to say that no larger arena fails:
 *   - the last QUIET_STEPS sizes completed, or
 *   - the last FEW_STEPS did and the arena holds all that was ever touched in an arena without
 *     limits, and one more of the largest request: there is always room at the end.
 * Both are rules of experience, not proofs; the answer says how many arenas were tried.
 */
#include <vramlab/driver.h>
#include <vramlab/registry.h>

#include <inttypes.h>

enum {
    QUIET_STEPS = 128,
    FEW_STEPS = 24,
    COARSE = 10, /* how much coarser steps become above twice the bound */
};

typedef struct search {
    vram_trace *trace;
    const vram_fit_options *options;
    vram_fit_result *result;
    vram_error *error;
    double share;
    uint64_t unit_bytes;
    uint64_t limit_bytes;      /* no larger arena is tried */
    uint64_t enough_bytes;     /* footprint without limits + the largest request */
    uint64_t known_good_bytes; /* the gallop's success */
} search;

/* What became of one arena. */
typedef struct attempt {
    bool completed;
    uint64_t extent_bytes;
    vram_failure failure;
    uint64_t failed_event;
} attempt;

static uint64_t whole_units(const search *self, double size_bytes)
{
    return (uint64_t)(size_bytes + 0.5) & ~(self->unit_bytes - 1);
}

/* Replays in an arena of this size. False on an error; an arena that is too small for the backend
 * to be made at all has failed, unless it is the largest: then the stack itself is wrong. */
static bool try_arena(search *self, uint64_t arena_bytes, attempt *tried)
{
    const vram_config config = {
        .arena_bytes = arena_bytes,
        .unit_bytes = self->unit_bytes,
        .profile = self->options->profile,
    };
    vram_error why = {0};
    vram_backend *backend;
    *tried = (attempt){0};
    self->result->arenas_tried++;
    if (!vram_create_from_text(self->options->spec, &config, &backend, &why))
        return arena_bytes < self->limit_bytes || vram_fail(self->error, "%s", why.text);
    const vram_compaction never = {0};
    const vram_replay_options replay = {
        .tries = self->options->tries,
        .compact = backend->ops->plan_moves != NULL ? self->options->compact : never,
        .look_at_event = UINT64_MAX,
    };
    vram_replay_result result;
    const bool replayed = vram_replay(self->trace, backend, &replay, &result, self->error);
    vram_destroy(backend);
    *tried = (attempt){
        .completed = result.completed,
        .extent_bytes = result.peak_extent_bytes,
        .failure = result.failure,
        .failed_event = result.first_failure_event,
    };
    return replayed;
}

static void show_progress(const search *self, uint64_t arena_bytes)
{
    const double bound = (double)self->options->lower_bound_bytes;
    const double end = (double)self->known_good_bytes + QUIET_STEPS * self->share * bound;
    const double share = ((double)arena_bytes - bound) / (end - bound);
    if (self->options->progress != NULL)
        self->options->progress(self->options->progress_context, share < 1 ? share : 1);
}

/* The size of step `step`, given the one before it. */
static uint64_t size_at(const search *self, uint64_t step, uint64_t before_bytes)
{
    const double bound = (double)self->options->lower_bound_bytes;
    const double fine = bound * (1.0 + (double)step * self->share);
    const double coarse = (double)before_bytes * (1.0 + COARSE * self->share);
    const uint64_t next_bytes = whole_units(self, fine <= 2 * bound ? fine : coarse);
    return next_bytes > before_bytes ? next_bytes : before_bytes + self->unit_bytes;
}

/* The largest request of the held trace, refused asks included when they are made. */
static uint64_t largest_request(const search *self)
{
    size_t count;
    uint64_t largest_bytes = 0;
    const vram_event *const events = vram_trace_events(self->trace, &count);
    for (size_t index = 0; index < count; index++) {
        const vram_event_kind kind = (vram_event_kind)events[index].kind;
        const bool asks = kind == VRAM_EVENT_ALLOC || kind == VRAM_EVENT_RESIZE ||
                          (kind == VRAM_EVENT_TRY && self->options->tries);
        if (asks && events[index].size_bytes > largest_bytes)
            largest_bytes = events[index].size_bytes;
    }
    return largest_bytes;
}

/* Is there an arena that completes, and how far up? Doubles the distance from the bound. The
 * arena without limits also tells how much is ever touched. False on an error; when there is none,
 * known_good_bytes stays 0. */
static bool gallop(search *self)
{
    attempt tried;
    if (!try_arena(self, self->limit_bytes, &tried))
        return false;
    if (!tried.completed) {
        self->result->below = tried.failure;
        self->result->below_event = tried.failed_event;
        return true;
    }
    self->enough_bytes = tried.extent_bytes + largest_request(self);
    const double bound = (double)self->options->lower_bound_bytes;
    for (double distance = self->share; self->known_good_bytes == 0; distance *= 2) {
        const uint64_t arena_bytes = whole_units(self, bound * (1.0 + distance));
        if (arena_bytes >= self->limit_bytes) {
            self->known_good_bytes = self->limit_bytes;
        } else {
            if (!try_arena(self, arena_bytes, &tried))
                return false;
            if (tried.completed)
                self->known_good_bytes = arena_bytes;
        }
    }
    return true;
}

static bool scan(search *self)
{
    vram_fit_result *const result = self->result;
    uint64_t arena_bytes = self->options->lower_bound_bytes;
    uint64_t failures = 0; /* since the smallest */
    uint64_t quiet = 0;    /* sizes that completed since the last failure */
    for (uint64_t step = 1; arena_bytes <= self->limit_bytes; step++) {
        attempt tried;
        if (!try_arena(self, arena_bytes, &tried))
            return false;
        if (tried.completed) {
            if (result->smallest_bytes == 0)
                result->smallest_bytes = arena_bytes;
            if (quiet++ == 0) {
                result->no_failure_from_bytes = arena_bytes;
                result->anomalies = failures;
            }
        } else if (result->smallest_bytes == 0) {
            result->below = tried.failure;
            result->below_event = tried.failed_event;
        } else {
            failures++;
            quiet = 0;
        }
        if (quiet >= QUIET_STEPS || (quiet >= FEW_STEPS && arena_bytes >= self->enough_bytes))
            return true;
        show_progress(self, arena_bytes);
        arena_bytes = size_at(self, step, arena_bytes);
    }
    return true;
}

bool vram_fit(vram_trace *trace, const vram_fit_options *options, vram_fit_result *result,
              vram_error *error)
{
    *result = (vram_fit_result){0};
    if (options->lower_bound_bytes == 0)
        return vram_fail(error, "the lower bound of the search is 0: the trace asks for nothing");
    if (!vram_trace_hold(trace, error))
        return false;
    const double give_up = options->give_up_ratio > 0 ? options->give_up_ratio : 64;
    search self = {
        .trace = trace,
        .options = options,
        .result = result,
        .error = error,
        .share = options->step_share > 0 ? options->step_share : 0.001,
        .unit_bytes = vram_trace_info_of(trace)->unit_bytes,
    };
    self.limit_bytes = whole_units(&self, (double)options->lower_bound_bytes * give_up);
    if (self.limit_bytes > VRAM_ARENA_MAX)
        self.limit_bytes = VRAM_ARENA_MAX;
    return gallop(&self) && (self.known_good_bytes == 0 || scan(&self));
}
