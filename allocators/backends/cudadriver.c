/*
 * cudadriver.c - `cudamalloc` and `cudaasync`: the driver itself, one of its calls for each of
 * ours.
 *
 *   table   slot  0      1      2 ...     address, size, generation
 *                 |      |
 *   device  ... [block] ...... [block] .....    wherever the driver puts them
 *
 * They stand in comparisons so that the cost of a pool has something to be measured against.
 * An offset is the block's address on the device: there is no arena under it, and arena_bytes is
 * only the most that may be live at once, so that all backends have the same memory.
 *
 * cudaasync allocates and frees in the order of streams, one real stream for each of the trace's. A
 * block that another stream uses too is freed behind an event of that stream.
 *
 * I1  a slot is live or in the chain of unused ones, never both.
 * I2  the counters are what the live slots add up to.
 * I3  live blocks do not overlap.
 *
 * alloc, release: the driver's. walk and check sort: O(n log n). Host memory: 40 bytes a block.
 */
#include "core/core.h"

#include "arena/cudart.h"

#include <stdlib.h>

/* Above every device address: where memory that is not taken is shown. */
#define BEYOND (UINT64_C(1) << 60)

enum { NO_SLOT = UINT32_MAX, GRAIN = 512 };

typedef struct driver_block {
    uint64_t address_bytes;
    uint64_t size_bytes;
    uint32_t generation; /* odd while live */
    uint32_t stream;
    uint32_t next; /* unused slots */
} driver_block;

typedef struct cuda_driver {
    vram_backend head;
    const vram_cudart *runtime;
    bool async;
    driver_block *blocks;
    size_t count, capacity;
    uint32_t unused;
    uint64_t granted_bytes;
    uint64_t live_blocks;
    vram_cuda_stream *streams; /* async: by the trace's number, made when first used */
    size_t stream_count, stream_capacity;
    vram_cuda_pool pool;
} cuda_driver;

enum { THRESHOLD, FOLLOW_EVENTS, OPPORTUNISTIC, INTERNAL };

static const vram_option async_options[] = {
    [THRESHOLD] = {.name = "release_threshold",
                   .type = VRAM_OPTION_SIZE,
                   .fallback = "0",
                   .help = "memory that the driver's pool keeps when the host waits"},
    [FOLLOW_EVENTS] = {.name = "follow_events",
                       .type = VRAM_OPTION_FLAG,
                       .fallback = "on",
                       .help = "reuse across streams that wait for each other by events"},
    [OPPORTUNISTIC] = {.name = "opportunistic",
                       .type = VRAM_OPTION_FLAG,
                       .fallback = "on",
                       .help = "reuse across streams when the work happens to be done"},
    [INTERNAL] = {.name = "internal",
                  .type = VRAM_OPTION_FLAG,
                  .fallback = "on",
                  .help = "reuse across streams by dependencies that the driver adds"},
    {.name = NULL},
};

/* ------------------------------------------------------------------------------------------------
 * creation */

static cuda_driver *make(const vram_config *config, bool async, vram_error *error)
{
    vram_error why = {""};
    const vram_cudart *runtime = vram_cudart_load(&why);
    if (runtime == NULL) {
        vram_fail(error, "%s is the CUDA driver itself, and %s", async ? "cudaasync" : "cudamalloc",
                  why.text);
        return NULL;
    }
    cuda_driver *self = calloc(1, sizeof *self);
    if (self == NULL) {
        vram_fail(error, "out of host memory");
        return NULL;
    }
    self->head.arena_bytes = config->arena_bytes;
    self->head.address_bytes = BEYOND + config->arena_bytes;
    self->head.unit_bytes = GRAIN;
    self->runtime = runtime;
    self->async = async;
    self->unused = NO_SLOT;
    return self;
}

static bool malloc_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    cuda_driver *self = make(config, false, error);
    if (self == NULL)
        return false;
    *out = &self->head;
    return true;
}

static void driver_destroy(vram_backend *backend);

static bool set_pool(cuda_driver *self, const vram_value *values, vram_error *error)
{
    static const struct {
        int option, attribute;
    } flags[] = {{FOLLOW_EVENTS, VRAM_CUDA_POOL_FOLLOW_EVENTS},
                 {OPPORTUNISTIC, VRAM_CUDA_POOL_OPPORTUNISTIC},
                 {INTERNAL, VRAM_CUDA_POOL_INTERNAL}};
    int device = 0;
    self->runtime->get_device(&device);
    int result = self->runtime->default_pool(&self->pool, device);
    if (result != 0)
        return vram_cudart_fail(error, "cudaDeviceGetDefaultMemPool", result);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        int on = values[flags[i].option].number != 0;
        result = self->runtime->pool_set(self->pool, flags[i].attribute, &on);
        if (result != 0)
            return vram_cudart_fail(error, "cudaMemPoolSetAttribute", result);
    }
    uint64_t threshold_bytes = values[THRESHOLD].number;
    result = self->runtime->pool_set(self->pool, VRAM_CUDA_POOL_THRESHOLD, &threshold_bytes);
    return result == 0 || vram_cudart_fail(error, "cudaMemPoolSetAttribute", result);
}

static bool async_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    cuda_driver *self = make(config, true, error);
    if (self == NULL)
        return false;
    if (!set_pool(self, config->values, error)) {
        driver_destroy(&self->head);
        return false;
    }
    *out = &self->head;
    return true;
}

/* ------------------------------------------------------------------------------------------------
 * calls of the driver */

static bool stream_of(cuda_driver *self, uint32_t number, vram_cuda_stream *stream)
{
    if (!vram_reserve((void **)&self->streams, &self->stream_capacity, (size_t)number + 1,
                      sizeof *self->streams))
        return false;
    while (self->stream_count <= number)
        self->streams[self->stream_count++] = NULL;
    if (self->streams[number] == NULL &&
        self->runtime->stream_create(&self->streams[number], VRAM_CUDA_NON_BLOCKING) != 0)
        return false;
    *stream = self->streams[number];
    return true;
}

static vram_result take(cuda_driver *self, uint64_t size_bytes, uint32_t stream_number,
                        uint64_t *address_bytes)
{
    void *pointer = NULL;
    int result;
    if (self->async) {
        vram_cuda_stream stream;
        if (!stream_of(self, stream_number, &stream))
            return VRAM_NO_METADATA;
        result = self->runtime->malloc_async(&pointer, size_bytes, stream);
    } else {
        result = self->runtime->malloc(&pointer, size_bytes);
    }
    if (result != 0) {
        self->runtime->last_error();
        return VRAM_NO_SPACE;
    }
    *address_bytes = (uint64_t)(uintptr_t)pointer;
    return VRAM_OK;
}

static void give(cuda_driver *self, const driver_block *block)
{
    void *pointer = (void *)(uintptr_t)block->address_bytes;
    if (self->async)
        self->runtime->free_async(pointer, self->streams[block->stream]);
    else
        self->runtime->free(pointer);
}

/* ------------------------------------------------------------------------------------------------
 * the contract */

static bool is_live(const driver_block *block)
{
    return block->generation % 2 == 1;
}

static void driver_destroy(vram_backend *backend)
{
    cuda_driver *self = (cuda_driver *)backend;
    for (size_t i = 0; i < self->count; i++)
        if (is_live(&self->blocks[i]))
            give(self, &self->blocks[i]);
    for (size_t i = 0; i < self->stream_count; i++)
        if (self->streams[i] != NULL) {
            self->runtime->stream_synchronize(self->streams[i]);
            self->runtime->stream_destroy(self->streams[i]);
        }
    if (self->pool != NULL)
        self->runtime->pool_trim(self->pool, 0);
    free(self->streams);
    free(self->blocks);
    free(self);
}

static bool reserve_slot(cuda_driver *self)
{
    if (self->unused != NO_SLOT)
        return true;
    if (self->count >= NO_SLOT || !vram_reserve((void **)&self->blocks, &self->capacity,
                                                self->count + 1, sizeof *self->blocks))
        return false;
    self->blocks[self->count] = (driver_block){.next = NO_SLOT};
    self->unused = (uint32_t)self->count++;
    return true;
}

static vram_result driver_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    cuda_driver *self = (cuda_driver *)backend;
    const uint64_t size_bytes = vram_round_up(request->size_bytes, GRAIN);
    if (size_bytes > self->head.arena_bytes - self->granted_bytes)
        return VRAM_NO_SPACE;
    if (!reserve_slot(self))
        return VRAM_NO_METADATA;
    const uint32_t slot = self->unused;
    driver_block *block = &self->blocks[slot];
    const vram_result result = take(self, size_bytes, request->stream, &block->address_bytes);
    if (result != VRAM_OK)
        return result;
    if (block->address_bytes % request->align_bytes != 0) { /* no driver promises more than 256 */
        block->stream = request->stream;
        give(self, block);
        return VRAM_NO_SPACE;
    }
    self->unused = block->next;
    block->size_bytes = size_bytes;
    block->stream = request->stream;
    block->generation++;
    self->granted_bytes += size_bytes;
    self->live_blocks++;
    *out = (vram_block){.offset_bytes = block->address_bytes,
                        .granted_bytes = size_bytes,
                        .handle = (uint64_t)block->generation << 32 | slot};
    return VRAM_OK;
}

static driver_block *find(cuda_driver *self, vram_block given)
{
    const uint32_t slot = (uint32_t)given.handle;
    if (slot >= self->count)
        return NULL;
    driver_block *block = &self->blocks[slot];
    const bool same = is_live(block) && block->generation == given.handle >> 32 &&
                      block->address_bytes == given.offset_bytes;
    return same ? block : NULL;
}

static vram_result driver_release(vram_backend *backend, vram_block given)
{
    cuda_driver *self = (cuda_driver *)backend;
    driver_block *block = find(self, given);
    if (block == NULL)
        return VRAM_STALE_BLOCK;
    give(self, block);
    block->generation++;
    block->next = self->unused;
    self->unused = (uint32_t)(block - self->blocks);
    self->granted_bytes -= block->size_bytes;
    self->live_blocks--;
    return VRAM_OK;
}

/* The block's own stream waits for what the other one was given so far, and is freed on after it.
 */
static vram_result async_use(vram_backend *backend, vram_block given, uint32_t stream)
{
    cuda_driver *self = (cuda_driver *)backend;
    const driver_block *block = find(self, given);
    if (block == NULL)
        return VRAM_STALE_BLOCK;
    vram_cuda_stream other;
    vram_cuda_event event;
    if (stream == block->stream)
        return VRAM_OK;
    if (!stream_of(self, stream, &other) ||
        self->runtime->event_create(&event, VRAM_CUDA_NO_TIMING) != 0)
        return VRAM_NO_METADATA;
    const bool waits =
        self->runtime->event_record(event, other) == 0 &&
        self->runtime->stream_wait_event(self->streams[block->stream], event, 0) == 0;
    self->runtime->event_destroy(event);
    return waits ? VRAM_OK : VRAM_NO_METADATA;
}

static void async_sync(vram_backend *backend, uint32_t stream)
{
    cuda_driver *self = (cuda_driver *)backend;
    for (size_t i = 0; i < self->stream_count; i++)
        if (self->streams[i] != NULL && (stream == UINT32_MAX || stream == i))
            self->runtime->stream_synchronize(self->streams[i]);
}

/* ------------------------------------------------------------------------------------------------
 * looking */

static int by_address(const void *a, const void *b)
{
    const vram_span *x = a;
    const vram_span *y = b;
    return (x->offset_bytes > y->offset_bytes) - (x->offset_bytes < y->offset_bytes);
}

/* The live blocks by address; the caller frees them. NULL when there are none, or no memory. */
static vram_span *sorted_spans(const cuda_driver *self)
{
    vram_span *spans = calloc(self->live_blocks + 1, sizeof *spans);
    size_t live = 0;
    for (size_t i = 0; spans != NULL && i < self->count; i++) {
        const driver_block *block = &self->blocks[i];
        if (is_live(block) && live < self->live_blocks)
            spans[live++] = (vram_span){.offset_bytes = block->address_bytes,
                                        .size_bytes = block->size_bytes,
                                        .block_bytes = block->size_bytes,
                                        .handle = (uint64_t)block->generation << 32 | i,
                                        .kind = VRAM_SPAN_LIVE};
    }
    if (live > 0)
        qsort(spans, live, sizeof *spans, by_address);
    return spans;
}

static void driver_walk(const vram_backend *backend, vram_visit *visit, void *context)
{
    const cuda_driver *self = (const cuda_driver *)backend;
    vram_span *spans = sorted_spans(self);
    for (uint64_t i = 0; spans != NULL && i < self->live_blocks; i++)
        visit(context, &spans[i]);
    free(spans);
    const uint64_t free_bytes = self->head.arena_bytes - self->granted_bytes;
    if (free_bytes > 0)
        visit(context, &(vram_span){.offset_bytes = BEYOND,
                                    .size_bytes = free_bytes,
                                    .block_bytes = free_bytes,
                                    .kind = VRAM_SPAN_FREE});
}

static bool check_apart(const cuda_driver *self, vram_fault *fault)
{
    vram_span *spans = sorted_spans(self);
    bool apart = true;
    for (uint64_t i = 1; spans != NULL && apart && i < self->live_blocks; i++)
        if (spans[i - 1].offset_bytes + spans[i - 1].size_bytes > spans[i].offset_bytes)
            apart = vram_fault_at(fault, "I3 apart", spans[i].offset_bytes);
    free(spans);
    return apart;
}

static bool driver_check(const vram_backend *backend, vram_fault *fault)
{
    const cuda_driver *self = (const cuda_driver *)backend;
    uint64_t granted_bytes = 0, live = 0, unused = 0;
    for (size_t i = 0; i < self->count; i++)
        if (is_live(&self->blocks[i])) {
            granted_bytes += self->blocks[i].size_bytes;
            live++;
        }
    for (uint32_t slot = self->unused; slot != NO_SLOT; slot = self->blocks[slot].next)
        if (unused++ == self->count || is_live(&self->blocks[slot]))
            return vram_fault_at(fault, "I1 unused", self->blocks[slot].address_bytes);
    if (live + unused != self->count)
        return vram_fault_at(fault, "I1 unused", 0);
    if (granted_bytes != self->granted_bytes || live != self->live_blocks)
        return vram_fault_at(fault, "I2 counted", 0);
    return check_apart(self, fault);
}

static void driver_stats(const vram_backend *backend, vram_stats *out)
{
    const cuda_driver *self = (const cuda_driver *)backend;
    *out = (vram_stats){.granted_bytes = self->granted_bytes,
                        .free_bytes = self->head.arena_bytes - self->granted_bytes,
                        .live_blocks = self->live_blocks,
                        .spans = self->live_blocks,
                        .bookkeeping_bytes = sizeof *self + self->capacity * sizeof *self->blocks +
                                             self->stream_capacity * sizeof *self->streams};
}

const vram_ops vram_cudamalloc_ops = {
    .abi = VRAM_ABI,
    .name = "cudamalloc",
    .summary = "the CUDA driver itself: cudaMalloc and cudaFree for each request",
    .special = true,
    .create = malloc_create,
    .destroy = driver_destroy,
    .alloc = driver_alloc,
    .release = driver_release,
    .walk = driver_walk,
    .check = driver_check,
    .stats = driver_stats,
};

const vram_ops vram_cudaasync_ops = {
    .abi = VRAM_ABI,
    .name = "cudaasync",
    .summary = "the CUDA driver's stream-ordered pool: cudaMallocAsync and cudaFreeAsync",
    .options = async_options,
    .special = true,
    .create = async_create,
    .destroy = driver_destroy,
    .alloc = driver_alloc,
    .release = driver_release,
    .walk = driver_walk,
    .check = driver_check,
    .stats = driver_stats,
    .use = async_use,
    .sync = async_sync,
};
