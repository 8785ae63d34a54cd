/*
 * serving.c - "serving" and "inference": what servers of models ask for.
 *
 * serving: requests arrive at random, each with a prompt and an answer of random length. A
 * request's cache of keys and values grows token by token: in pages of a fixed number of tokens,
 * or, with pages=0, in one piece that is resized whenever it is full (by half). Each step of the
 * batch also takes buffers that are gone with the step.
 *
 * inference: bursts of requests and pauses between them. A request runs layer after layer; two
 * layers' buffers are live at once, and the result a while longer. Each stream serves its own.
 */
#include "maker.h"
#include "workloads.h"

#include <stdlib.h>

/* ---- serving ---- */

enum { STEP_NS = 20000000, RUNNING_MAX = 4096, PAGES_MAX = 1 << 16 };

typedef struct request {
    uint64_t tokens, answer_left;
    uint64_t held;   /* tokens that its cache has room for */
    uint64_t *pages; /* ids; with pages=0 one */
    size_t page_count, page_capacity;
} request;

typedef struct serving {
    maker maker; /* first */
    uint64_t requests, token_bytes, page_tokens, batch, prompt, answer, hidden_bytes;
    double rate; /* arrivals a step */
    uint64_t arrived, waiting;
    request *running; /* batch of them; tokens 0: free */
    bool started;
} serving;

static const vram_workload_option serving_options[] = {
    {"requests", "400", "requests in all"},
    {"batch", "32", "requests served at once, 1 to 4096"},
    {"arrivals", "0.5", "mean number of arrivals a step"},
    {"prompt", "512", "median tokens of a prompt"},
    {"answer", "128", "mean tokens of an answer"},
    {"token", "128KiB", "keys and values of a token"},
    {"pages", "16", "tokens in a page of the cache; 0: one piece a request, resized"},
    {"hidden", "16KiB", "buffer of a token within a step"},
    {"weights", "2GiB", "the model"},
    {"seed", "1", "start of the random numbers"},
    {NULL, NULL, NULL},
};

static void serving_close(vram_source *source)
{
    serving *s = source->state;
    for (uint64_t i = 0; s->running != NULL && i < s->batch; i++)
        free(s->running[i].pages);
    free(s->running);
    maker_close(source);
}

static bool read_serving(const char *spec, serving *s, uint64_t *weight_bytes, vram_error *error)
{
    const vram_workload_option *o = serving_options;
    if (!vram_workload_count(spec, o, "requests", &s->requests, error) ||
        !vram_workload_count(spec, o, "batch", &s->batch, error) ||
        !vram_workload_ratio(spec, o, "arrivals", &s->rate, error) ||
        !vram_workload_count(spec, o, "prompt", &s->prompt, error) ||
        !vram_workload_count(spec, o, "answer", &s->answer, error) ||
        !vram_workload_size(spec, o, "token", &s->token_bytes, error) ||
        !vram_workload_count(spec, o, "pages", &s->page_tokens, error) ||
        !vram_workload_size(spec, o, "hidden", &s->hidden_bytes, error) ||
        !vram_workload_size(spec, o, "weights", weight_bytes, error))
        return false;
    if (s->batch < 1 || s->batch > RUNNING_MAX || s->rate <= 0 || s->rate > 1000)
        return vram_fail(error, "%s: batch is between 1 and %d, arrivals above 0 and up to 1000",
                         spec, RUNNING_MAX);
    if (s->prompt > 1 << 20 || s->answer > 1 << 20 || s->token_bytes > 1 << 30 ||
        s->hidden_bytes > 1 << 30)
        return vram_fail(error,
                         "%s: prompt and answer are up to 1048576 tokens, token and hidden "
                         "up to 1 GiB",
                         spec);
    return true;
}

static bool serving_open(vram_source *source, vram_error *error)
{
    const char *spec = source->path;
    uint64_t seed, weight_bytes;
    if (!vram_workload_check(spec, serving_options, error) ||
        !vram_workload_count(spec, serving_options, "seed", &seed, error))
        return false;
    serving *s = maker_open(source, sizeof *s, seed, error);
    if (s == NULL)
        return false;
    if (!read_serving(spec, s, &weight_bytes, error)) {
        serving_close(source);
        return false;
    }
    s->running = calloc(s->batch, sizeof *s->running);
    if (s->running == NULL) {
        serving_close(source);
        return vram_fail(error, "%s: out of memory", spec);
    }
    maker_tag(&s->maker, "weights");
    if (weight_bytes > 0)
        maker_hold(&s->maker, weight_bytes);
    return true;
}

static void add_page(serving *s, request *r)
{
    maker *m = &s->maker;
    if (r->page_count >= PAGES_MAX ||
        !vram_reserve((void **)&r->pages, &r->page_capacity, r->page_count + 1, sizeof *r->pages)) {
        m->out_of_memory = true;
        return;
    }
    maker_tag(m, "page of a cache");
    r->pages[r->page_count++] = maker_hold(m, s->page_tokens * s->token_bytes);
    r->held += s->page_tokens;
}

/* Room for all tokens of the request. */
static void grow_cache(serving *s, request *r)
{
    maker *m = &s->maker;
    while (s->page_tokens > 0 && r->held < r->tokens && !m->out_of_memory)
        add_page(s, r);
    if (s->page_tokens > 0 || r->held >= r->tokens)
        return;
    maker_tag(m, "cache");
    const bool fresh = r->page_count == 0;
    r->held = fresh ? r->tokens : r->held + r->held / 2 + 1;
    r->held = r->held < r->tokens ? r->tokens : r->held;
    if (!fresh) {
        maker_resize(m, r->pages[0], r->held * s->token_bytes);
        return;
    }
    if (!vram_reserve((void **)&r->pages, &r->page_capacity, 1, sizeof *r->pages)) {
        m->out_of_memory = true;
        return;
    }
    r->pages[r->page_count++] = maker_hold(m, r->held * s->token_bytes);
}

static void end_request(serving *s, request *r)
{
    for (size_t i = 0; i < r->page_count; i++)
        maker_free(&s->maker, r->pages[i]);
    r->page_count = 0;
    r->tokens = r->held = 0;
}

static void start_request(serving *s, request *r)
{
    maker *m = &s->maker;
    s->waiting--;
    r->tokens = maker_log_normal(&m->random, (double)(s->prompt > 0 ? s->prompt : 1), 1.0);
    if (r->tokens > PAGES_MAX)
        r->tokens = PAGES_MAX;
    r->answer_left = 1 + (uint64_t)maker_exponential(&m->random, (double)s->answer);
    maker_tag(m, "prompt");
    maker_alloc(m, r->tokens * s->hidden_bytes, STEP_NS / 2);
    grow_cache(s, r);
}

static void arrive(serving *s)
{
    double left = maker_exponential(&s->maker.random, 1); /* arrivals of a Poisson process */
    while (left < s->rate && s->arrived < s->requests) {
        s->arrived++;
        s->waiting++;
        left += maker_exponential(&s->maker.random, 1);
    }
}

static bool serving_step(void *self)
{
    serving *s = self;
    maker *m = &s->maker;
    uint64_t running = 0;
    arrive(s);
    for (uint64_t i = 0; i < s->batch; i++) {
        request *r = &s->running[i];
        if (r->tokens == 0 && s->waiting > 0)
            start_request(s, r);
        if (r->tokens == 0)
            continue;
        running++;
        r->tokens++;
        grow_cache(s, r);
        if (--r->answer_left == 0)
            end_request(s, r);
    }
    maker_tag(m, "step");
    if (running > 0)
        maker_alloc(m, running * s->hidden_bytes, STEP_NS / 2);
    m->now_ns += STEP_NS;
    return running > 0 || s->waiting > 0 || s->arrived < s->requests;
}

static vram_step serving_next(vram_source *source, vram_raw *event, vram_error *error)
{
    return maker_next(source, serving_step, event, error);
}

const vram_workload vram_workload_serving = {
    .format = {.name = "serving",
               .summary = "a server of a language model: prompts, and caches that grow",
               .open = serving_open,
               .next = serving_next,
               .close = serving_close},
    .options = serving_options,
};
