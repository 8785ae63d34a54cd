/*
 * magazine.c - each thread keeps a few released blocks of each size for itself, so that most calls
 * meet no lock that another thread holds.
 *
 *   thread 1   magazines   1 KiB [o o o .]   64 KiB [o . . .]      o: released, kept for this
 * thread thread 2   magazines   1 KiB [o . . .] |  miss, or full: half of it
 *                 v
 *             [ lock ] --> inner backend
 *
 * A request takes a block of exactly its size (in units) from its thread's magazine, else from the
 * inner backend. When that has no space, every magazine is emptied and it is asked once more. When
 * the last live block is released all magazines are emptied: an empty arena has no memory of what
 * was in it.
 *
 * I1  records that are live or kept are the live blocks of the inner backend; the map finds each.
 * I2  kept records are in one magazine each.
 * I3  the counters equal the sums over the records.
 *
 * A record is one word of state, changed by compare-and-swap: whichever of two releases of the same
 * block comes first wins, the other is told that its block is stale. alloc, release: O(1), an
 * uncontended lock. Host memory: 64 bytes a block and 13 KiB a thread. Bonwick and Adams 2001.
 */
#include "core/offset_map.h"
#include "layers/layer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define NO_RECORD UINT32_MAX
enum {
    SIZES = 64,          /* magazines of a thread; a size beyond them is not kept */
    DEPTH_MOST = 48,     /* blocks of a magazine */
    CHUNK_RECORDS = 512, /* records are allocated in chunks, which never move */
    CHUNKS_MOST = 1 << 16,
};

/* Upper half: the generation; lower half: 1 while live, 0 while kept or unused. */
typedef _Atomic uint64_t record_word;

typedef struct record {
    vram_block inner;
    uint64_t size_bytes; /* in units */
    record_word word;
    uint32_t next; /* of the unused ones */
    bool kept;
} record;

typedef struct magazine {
    uint64_t size_bytes; /* 0: free for any size */
    uint32_t count;
    uint32_t records[DEPTH_MOST];
} magazine;

struct cache;

typedef struct magazines {
    vram_layer layer;
    uint32_t depth;
    pthread_key_t key;       /* this thread's cache */
    pthread_mutex_t central; /* guards all below and the inner backend */
    struct cache *caches;    /* of all threads, those that have ended too */
    vram_offset_map by_offset;
    record *chunks[CHUNKS_MOST];
    uint32_t made, unused;
    _Atomic uint64_t live, kept, live_bytes, kept_bytes;
} magazines;

/* What one thread keeps. Its lock is taken by others only to empty it or to look. */
typedef struct cache {
    magazines *owner;
    struct cache *next;
    pthread_mutex_t mutex;
    bool ended; /* the thread is gone: another may take the cache over */
    magazine sizes[SIZES];
} cache;

enum { MAGAZINE_DEPTH };
static const vram_option magazine_options[] = {
    [MAGAZINE_DEPTH] = {.name = "depth",
                        .type = VRAM_OPTION_COUNT,
                        .fallback = "16",
                        .least = 1,
                        .most = DEPTH_MOST,
                        .help = "blocks of one size that a thread keeps"},
    {.name = NULL},
};

static void thread_ends(void *context)
{
    cache *own = context;
    pthread_mutex_lock(&own->mutex);
    own->ended = true;
    pthread_mutex_unlock(&own->mutex);
}

static bool magazine_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    magazines *self = vram_layer_new(config, sizeof *self, "magazine", error);
    if (self == NULL)
        return false;
    if (pthread_key_create(&self->key, thread_ends) != 0) {
        free(self);
        return vram_fail(error, "magazine: no more thread-local storage for another instance");
    }
    pthread_mutex_init(&self->central, NULL);
    self->depth = (uint32_t)config->values[MAGAZINE_DEPTH].number;
    self->unused = NO_RECORD;
    *out = &self->layer.head;
    return true;
}

static void magazine_destroy(vram_backend *backend)
{
    magazines *self = (magazines *)backend;
    pthread_key_delete(self->key);
    while (self->caches != NULL) {
        cache *first = self->caches;
        self->caches = first->next;
        pthread_mutex_destroy(&first->mutex);
        free(first);
    }
    for (uint32_t i = 0; i < CHUNKS_MOST && self->chunks[i] != NULL; i++)
        free(self->chunks[i]);
    vram_offset_map_free(&self->by_offset);
    pthread_mutex_destroy(&self->central);
    vram_layer_destroy(backend);
}

/* ---- records ---- */

static record *record_at(const magazines *self, uint32_t number)
{
    return &self->chunks[number / CHUNK_RECORDS][number % CHUNK_RECORDS];
}

/* Under the central lock. */
static bool reserve_record(magazines *self)
{
    if (!vram_offset_map_reserve(&self->by_offset))
        return false;
    const uint32_t chunk = self->made / CHUNK_RECORDS;
    if (self->unused != NO_RECORD)
        return true;
    if (chunk == CHUNKS_MOST)
        return false;
    if (self->chunks[chunk] != NULL) /* made for a request that was then refused, or not full */
        return true;
    self->chunks[chunk] = calloc(CHUNK_RECORDS, sizeof(record));
    return self->chunks[chunk] != NULL;
}

/* Under the central lock. */
static uint32_t take_record(magazines *self)
{
    const uint32_t number = self->unused;
    if (number == NO_RECORD)
        return self->made++;
    self->unused = record_at(self, number)->next;
    return number;
}

/* Makes a record live under a new generation. */
static vram_block publish(magazines *self, uint32_t number)
{
    record *it = record_at(self, number);
    uint32_t generation = (uint32_t)(atomic_load(&it->word) >> 32) + 1;
    if (generation == 0) /* a generation is never 0 */
        generation = 1;
    atomic_fetch_add(&self->live, 1);
    atomic_fetch_add(&self->live_bytes, it->inner.granted_bytes);
    atomic_store(&it->word, (uint64_t)generation << 32 | 1);
    return (vram_block){.offset_bytes = it->inner.offset_bytes,
                        .granted_bytes = it->inner.granted_bytes,
                        .handle = (uint64_t)generation << 32 | number};
}

/* The record of a live block, taken over by the caller, or NO_RECORD when the block is stale. */
static uint32_t claim(magazines *self, vram_block block)
{
    const uint32_t number = (uint32_t)block.handle;
    if (number / CHUNK_RECORDS >= CHUNKS_MOST || self->chunks[number / CHUNK_RECORDS] == NULL)
        return NO_RECORD;
    record *it = record_at(self, number);
    uint64_t expected = (block.handle & ~(uint64_t)UINT32_MAX) | 1;
    if (!atomic_compare_exchange_strong(&it->word, &expected, expected - 1))
        return NO_RECORD;
    if (it->inner.offset_bytes == block.offset_bytes)
        return number;
    atomic_store(&it->word, expected); /* another backend's block, by chance of this handle */
    return NO_RECORD;
}

/* ---- the inner backend, under the central lock ---- */

/* False when the inner backend has no host memory for it; nothing has changed then. */
static bool give_back(magazines *self, uint32_t number)
{
    record *it = record_at(self, number);
    if (vram_release(self->layer.inner, it->inner) != VRAM_OK)
        return false;
    vram_offset_map_remove(&self->by_offset, it->inner.offset_bytes);
    it->kept = false;
    it->next = self->unused;
    self->unused = number;
    return true;
}

static void empty_magazine(magazines *self, magazine *of, uint32_t keep)
{
    while (of->count > keep && give_back(self, of->records[of->count - 1])) {
        const record *it = record_at(self, of->records[--of->count]);
        atomic_fetch_sub(&self->kept, 1);
        atomic_fetch_sub(&self->kept_bytes, it->inner.granted_bytes);
    }
    if (of->count == 0)
        of->size_bytes = 0;
}

/* Empties the magazines of all threads. True when anything was kept. */
static bool empty_all(magazines *self)
{
    const uint64_t kept = atomic_load(&self->kept);
    for (cache *each = self->caches; each != NULL; each = each->next) {
        pthread_mutex_lock(&each->mutex);
        for (size_t i = 0; i < SIZES; i++)
            empty_magazine(self, &each->sizes[i], 0);
        pthread_mutex_unlock(&each->mutex);
    }
    return kept > 0;
}

/* ---- caches ---- */

static cache *adopt_cache(magazines *self)
{
    for (cache *each = self->caches; each != NULL; each = each->next) {
        pthread_mutex_lock(&each->mutex);
        const bool ended = each->ended;
        each->ended = false;
        pthread_mutex_unlock(&each->mutex);
        if (ended)
            return each;
    }
    cache *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return NULL;
    pthread_mutex_init(&fresh->mutex, NULL);
    fresh->owner = self;
    fresh->next = self->caches;
    self->caches = fresh;
    return fresh;
}

/* This thread's cache; NULL when the host is out of memory, and then the thread does without. */
static cache *own_cache(magazines *self)
{
    cache *own = pthread_getspecific(self->key);
    if (own != NULL)
        return own;
    pthread_mutex_lock(&self->central);
    own = adopt_cache(self);
    pthread_mutex_unlock(&self->central);
    if (own != NULL)
        pthread_setspecific(self->key, own);
    return own;
}

/* The magazine of this size, or one that is free for it; NULL when the thread keeps too many sizes.
 */
static magazine *magazine_of(cache *own, uint64_t size_bytes)
{
    const size_t home = (size_t)((size_bytes * UINT64_C(0x9E3779B97F4A7C15)) >> 58);
    magazine *vacant = NULL;
    for (size_t i = 0; i < 8; i++) {
        magazine *each = &own->sizes[(home + i) % SIZES];
        if (each->size_bytes == size_bytes)
            return each;
        if (each->size_bytes == 0 && vacant == NULL)
            vacant = each;
    }
    return vacant;
}

/* A kept block of this size, or NO_RECORD. */
static uint32_t take_kept(magazines *self, const vram_request *request, uint64_t size_bytes)
{
    cache *own = own_cache(self);
    uint32_t number = NO_RECORD;
    if (own == NULL)
        return NO_RECORD;
    pthread_mutex_lock(&own->mutex);
    magazine *of = magazine_of(own, size_bytes);
    if (of != NULL && of->count > 0) {
        record *it = record_at(self, of->records[of->count - 1]);
        if ((it->inner.offset_bytes & (request->align_bytes - 1)) == 0) {
            number = of->records[--of->count];
            it->kept = false;
            atomic_fetch_sub(&self->kept, 1);
            atomic_fetch_sub(&self->kept_bytes, it->inner.granted_bytes);
            if (of->count == 0)
                of->size_bytes = 0;
        }
    }
    pthread_mutex_unlock(&own->mutex);
    return number;
}

/* Keeps a record that the caller has claimed. False when there is no place for it. */
static bool keep(magazines *self, uint32_t number)
{
    record *it = record_at(self, number);
    cache *own = own_cache(self);
    if (own == NULL)
        return false;
    pthread_mutex_lock(&own->mutex);
    magazine *of = magazine_of(own, it->size_bytes);
    const bool kept = of != NULL && of->count < self->depth;
    if (kept) {
        of->size_bytes = it->size_bytes;
        of->records[of->count++] = number;
        it->kept = true;
        atomic_fetch_add(&self->kept, 1);
        atomic_fetch_add(&self->kept_bytes, it->inner.granted_bytes);
    }
    pthread_mutex_unlock(&own->mutex);
    return kept;
}

/* ---- operations ---- */

static vram_result magazine_alloc(vram_backend *backend, const vram_request *request,
                                  vram_block *out)
{
    magazines *self = (magazines *)backend;
    const uint64_t size_bytes = vram_round_up(request->size_bytes, self->layer.head.unit_bytes);
    uint32_t number = take_kept(self, request, size_bytes);
    if (number != NO_RECORD) {
        *out = publish(self, number);
        return VRAM_OK;
    }
    vram_block inner;
    pthread_mutex_lock(&self->central);
    vram_result result =
        reserve_record(self) ? vram_layer_alloc(backend, request, &inner) : VRAM_NO_METADATA;
    if (result == VRAM_NO_SPACE && empty_all(self))
        result = vram_layer_alloc(backend, request, &inner);
    if (result == VRAM_OK) {
        number = take_record(self);
        record *it = record_at(self, number);
        it->inner = inner;
        it->size_bytes = size_bytes;
        it->kept = false;
        vram_offset_map_put(&self->by_offset, inner.offset_bytes, number);
        *out = publish(self, number);
    }
    pthread_mutex_unlock(&self->central);
    return result;
}

static bool give_back_now(magazines *self, uint32_t number)
{
    pthread_mutex_lock(&self->central);
    const bool given = give_back(self, number);
    pthread_mutex_unlock(&self->central);
    return given;
}

static vram_result magazine_release(vram_backend *backend, vram_block block)
{
    magazines *self = (magazines *)backend;
    const uint32_t number = claim(self, block);
    if (number == NO_RECORD)
        return VRAM_STALE_BLOCK;
    const uint64_t granted_bytes = record_at(self, number)->inner.granted_bytes;
    if (!keep(self, number) && !give_back_now(self, number)) {
        atomic_store(&record_at(self, number)->word, (block.handle & ~(uint64_t)UINT32_MAX) | 1);
        return VRAM_NO_METADATA;
    }
    atomic_fetch_sub(&self->live_bytes, granted_bytes);
    if (atomic_fetch_sub(&self->live, 1) > 1)
        return VRAM_OK;
    pthread_mutex_lock(&self->central);
    if (atomic_load(&self->live) == 0)
        empty_all(self);
    pthread_mutex_unlock(&self->central);
    return VRAM_OK;
}

static void magazine_sync(vram_backend *backend, uint32_t stream)
{
    magazines *self = (magazines *)backend;
    pthread_mutex_lock(&self->central);
    vram_layer_sync(backend, stream);
    pthread_mutex_unlock(&self->central);
}

static uint64_t magazine_trim(vram_backend *backend)
{
    magazines *self = (magazines *)backend;
    pthread_mutex_lock(&self->central);
    empty_all(self);
    const uint64_t trimmed_bytes = vram_layer_trim(backend);
    pthread_mutex_unlock(&self->central);
    return trimmed_bytes;
}

static bool magazine_maintain(vram_backend *backend)
{
    magazines *self = (magazines *)backend;
    pthread_mutex_lock(&self->central);
    const bool more = vram_layer_maintain(backend);
    pthread_mutex_unlock(&self->central);
    return more;
}

/* ---- looking: exact while no other thread is at work ---- */

static void lock_all(magazines *self)
{
    pthread_mutex_lock(&self->central);
    for (cache *each = self->caches; each != NULL; each = each->next)
        pthread_mutex_lock(&each->mutex);
}

static void unlock_all(magazines *self)
{
    for (cache *each = self->caches; each != NULL; each = each->next)
        pthread_mutex_unlock(&each->mutex);
    pthread_mutex_unlock(&self->central);
}

static magazines *self_of(const vram_backend *backend)
{
    return (magazines *)(uintptr_t)backend; /* the locks of a const backend are not const */
}

typedef struct walk_state {
    const magazines *self;
    vram_visit *visit;
    void *context;
} walk_state;

static void visit_inner(void *context, const vram_span *span)
{
    const walk_state *walk = context;
    vram_span own = *span;
    if (own.kind == VRAM_SPAN_LIVE) {
        const uint32_t number = vram_offset_map_find(&walk->self->by_offset, own.offset_bytes);
        const uint64_t word = atomic_load(&record_at(walk->self, number)->word);
        const bool is_live = (word & 1) != 0;
        own.kind = is_live ? VRAM_SPAN_LIVE : VRAM_SPAN_BOUND;
        own.handle = is_live ? (word & ~(uint64_t)UINT32_MAX) | number : 0;
    }
    walk->visit(walk->context, &own);
}

static void magazine_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    magazines *self = self_of(backend);
    walk_state walk = {.self = self, .visit = visit, .context = context};
    lock_all(self);
    vram_layer_walk(backend, visit_inner, &walk);
    unlock_all(self);
}

typedef struct check_state {
    const magazines *self;
    uint64_t blocks, live, kept, live_bytes, kept_bytes;
    uint64_t wrong_at; /* UINT64_MAX: nothing wrong */
} check_state;

static void check_inner(void *context, const vram_span *span)
{
    check_state *check = context;
    const magazines *self = check->self;
    if (span->kind != VRAM_SPAN_LIVE)
        return;
    const uint32_t number = vram_offset_map_find(&self->by_offset, span->offset_bytes);
    check->blocks++;
    if (number >= self->made || record_at(self, number)->inner.handle != span->handle) {
        check->wrong_at = span->offset_bytes;
        return;
    }
    const record *it = record_at(self, number);
    const bool is_live = (atomic_load(&it->word) & 1) != 0;
    check->live += is_live;
    check->kept += it->kept;
    check->live_bytes += is_live ? it->inner.granted_bytes : 0;
    check->kept_bytes += it->kept ? it->inner.granted_bytes : 0;
    if (is_live == it->kept)
        check->wrong_at = span->offset_bytes;
}

/* I2: what the magazines hold, each record kept and of the magazine's size. UINT64_MAX: not so. */
static uint64_t count_kept(const magazines *self)
{
    uint64_t count = 0;
    for (const cache *each = self->caches; each != NULL; each = each->next)
        for (size_t i = 0; i < SIZES; i++) {
            const magazine *of = &each->sizes[i];
            if (of->count > DEPTH_MOST || (of->count == 0) != (of->size_bytes == 0))
                return UINT64_MAX;
            for (uint32_t k = 0; k < of->count; k++, count++)
                if (of->records[k] >= self->made || !record_at(self, of->records[k])->kept ||
                    record_at(self, of->records[k])->size_bytes != of->size_bytes)
                    return UINT64_MAX;
        }
    return count;
}

static bool check_all(const magazines *self, const vram_backend *backend, vram_fault *fault)
{
    check_state check = {.self = self, .wrong_at = UINT64_MAX};
    if (!vram_layer_check(backend, fault))
        return false;
    vram_layer_walk(backend, check_inner, &check);
    if (check.wrong_at != UINT64_MAX || check.blocks != self->by_offset.count)
        return vram_fault_at(fault, "I1 recorded", check.wrong_at);
    if (count_kept(self) != check.kept)
        return vram_fault_at(fault, "I2 kept", 0);
    if (check.live != atomic_load(&self->live) || check.kept != atomic_load(&self->kept) ||
        check.live_bytes != atomic_load(&self->live_bytes) ||
        check.kept_bytes != atomic_load(&self->kept_bytes))
        return vram_fault_at(fault, "I3 counted", 0);
    return true;
}

static bool magazine_check(const vram_backend *backend, vram_fault *fault)
{
    magazines *self = self_of(backend);
    lock_all(self);
    const bool sound = check_all(self, backend, fault);
    unlock_all(self);
    return sound;
}

static void magazine_stats(const vram_backend *backend, vram_stats *out)
{
    magazines *self = self_of(backend);
    lock_all(self);
    vram_layer_stats(backend, out);
    out->granted_bytes -= atomic_load(&self->kept_bytes);
    out->bound_bytes += atomic_load(&self->kept_bytes);
    out->live_blocks -= atomic_load(&self->kept);
    out->bookkeeping_bytes += sizeof *self - sizeof self->layer +
                              (uint64_t)self->made * sizeof(record) +
                              self->by_offset.capacity * sizeof *self->by_offset.entries;
    for (const cache *each = self->caches; each != NULL; each = each->next)
        out->bookkeeping_bytes += sizeof *each;
    unlock_all(self);
}

static void magazine_explain(const vram_backend *backend, const vram_request *request,
                             vram_failure *failure)
{
    magazines *self = self_of(backend);
    pthread_mutex_lock(&self->central);
    vram_layer_explain(backend, request, failure);
    pthread_mutex_unlock(&self->central);
}

/* Streams, sizes and places of blocks are the inner backend's business, and it does not know which
 * of its blocks are kept: what would need both is not offered. */
const vram_ops vram_magazine_ops = {
    .abi = VRAM_ABI,
    .layer = true,
    .concurrent = true,
    .name = "magazine",
    .summary = "each thread keeps a few released blocks of each size for itself",
    .options = magazine_options,
    .create = magazine_create,
    .destroy = magazine_destroy,
    .alloc = magazine_alloc,
    .release = magazine_release,
    .walk = magazine_walk,
    .check = magazine_check,
    .stats = magazine_stats,
    .explain = magazine_explain,
    .maintain = magazine_maintain,
    .trim = magazine_trim,
    .sync = magazine_sync,
};
