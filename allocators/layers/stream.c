/*
 * stream.c - a block freed on one stream is reused at once on that stream, elsewhere only when it
 * is safe.
 *
 *   live      [A: 0] [B: 0,2]                       used by streams 0; 0 and 2
 *   pending   by size   4 MiB -> [C: 0 until mark 7] -> [D: 1 until 3]
 *                       6 MiB -> [E: 0 until 9, 2 until 4]
 *   inner     all of these are its live blocks, beside what is free
 *
 * A release puts a mark on each stream that used the block and keeps the block pending. A request
 * first takes a pending block of its own size that is safe for its stream, then asks the inner
 * backend; when that has no space, blocks whose work the host knows to be over go back to the inner
 * backend, and last, if it may insert waits, all of them. The switches are those of cudaMemPool:
 *
 *   follow         waits that the program itself has made between streams count as safe
 *   opportunistic  before giving up, ask whether a stream is idle; depends on timing, needs a
 * device internal       insert a wait between streams rather than fail; counted in stats
 *
 * What went back while a stream may still use it raises `floor`: whoever takes memory from the
 * inner backend waits for that much of every stream first. When the last live block is released the
 * host waits for all streams: an empty arena has no memory of what was in it.
 *
 * I1  records and live blocks of the inner backend are the same; the map finds each by its offset.
 * I2  a pending record is in the list of its size, and nothing else is.
 * I3  the counters equal the sums over the records.
 *
 * alloc, release: O(1) and the inner backend's; O(records) when that has no space. Host memory: 96
 * bytes a block, 16 for each further stream that uses it.
 */
#include "layers/stream.h"

#include <stdlib.h>

enum { LOOK_AT_MOST = 16 }; /* pending blocks of one size that a request looks at */

enum { STREAM_FOLLOW, STREAM_OPPORTUNISTIC, STREAM_INTERNAL };
static const vram_option stream_options[] = {
    [STREAM_FOLLOW] = {.name = "follow",
                       .type = VRAM_OPTION_FLAG,
                       .fallback = "on",
                       .help = "reuse across streams that the program has ordered by a wait"},
    [STREAM_OPPORTUNISTIC] = {.name = "opportunistic",
                              .type = VRAM_OPTION_FLAG,
                              .fallback = "on",
                              .help =
                                  "reuse what an idle stream has finished with; only on a device"},
    [STREAM_INTERNAL] = {.name = "internal",
                         .type = VRAM_OPTION_FLAG,
                         .fallback = "on",
                         .help = "insert a wait between streams rather than fail"},
    {.name = NULL},
};

static bool stream_create(const vram_config *config, vram_backend **out, vram_error *error)
{
    stream *self = vram_layer_new(config, sizeof *self, "stream", error);
    if (self == NULL)
        return false;
    self->follow = config->values[STREAM_FOLLOW].number != 0;
    self->opportunistic = config->values[STREAM_OPPORTUNISTIC].number != 0;
    self->internal = config->values[STREAM_INTERNAL].number != 0;
    self->unused_record = self->unused_user = STREAM_NONE;
    *out = &self->layer.head;
    return true;
}

static void stream_destroy(vram_backend *backend)
{
    stream *self = (stream *)backend;
    lanes_free(&self->lanes);
    vram_offset_map_free(&self->by_offset);
    vram_offset_map_free(&self->by_size);
    free(self->records);
    free(self->users);
    vram_layer_destroy(backend);
}

/* ---- records and users ---- */

static bool reserve_user(stream *self)
{
    return self->unused_user != STREAM_NONE ||
           vram_reserve((void **)&self->users, &self->user_capacity, self->users_made + 1u,
                        sizeof *self->users);
}

/* Room for one more block with one user, so that nothing can fail once the inner backend has
 * answered. */
static bool reserve_block(stream *self)
{
    return vram_offset_map_reserve(&self->by_offset) && reserve_user(self) &&
           (self->unused_record != STREAM_NONE ||
            vram_reserve((void **)&self->records, &self->record_capacity, self->records_made + 1u,
                         sizeof *self->records));
}

static void add_user(stream *self, record *of, uint32_t lane)
{
    uint32_t number = self->unused_user;
    if (number == STREAM_NONE)
        number = self->users_made++;
    else
        self->unused_user = self->users[number].next;
    self->users[number] = (block_user){.stream = lane, .next = of->users};
    of->users = number;
}

static void drop_users(stream *self, record *of)
{
    while (of->users != STREAM_NONE) {
        const uint32_t number = of->users;
        of->users = self->users[number].next;
        self->users[number].next = self->unused_user;
        self->unused_user = number;
    }
}

static bool has_user(const stream *self, const record *of, uint32_t lane)
{
    for (uint32_t number = of->users; number != STREAM_NONE; number = self->users[number].next)
        if (self->users[number].stream == lane)
            return true;
    return false;
}

static void note_seen(stream *self, uint32_t lane)
{
    self->seen_count += !self->seen[lane];
    self->seen[lane] = true;
}

static vram_block publish(stream *self, uint32_t number, const vram_request *request)
{
    record *it = &self->records[number];
    if (++self->generation == 0) /* a generation is never 0 */
        self->generation = 1;
    it->generation = self->generation;
    it->state = RECORD_LIVE;
    it->align_log2 = (uint8_t)__builtin_ctzll(request->align_bytes);
    it->users = STREAM_NONE;
    add_user(self, it, request->stream);
    note_seen(self, request->stream);
    self->live++;
    return (vram_block){.offset_bytes = it->inner.offset_bytes,
                        .granted_bytes = it->inner.granted_bytes,
                        .handle = stream_handle(self, number)};
}

/* The record of a live block, or STREAM_NONE when the block is stale. */
static uint32_t look_up(const stream *self, vram_block block)
{
    const uint32_t number = (uint32_t)block.handle;
    return number < self->records_made && self->records[number].state == RECORD_LIVE &&
                   self->records[number].generation == block.handle >> 32 &&
                   self->records[number].inner.offset_bytes == block.offset_bytes
               ? number
               : STREAM_NONE;
}

/* ---- pending lists ---- */

static void link_pending(stream *self, uint32_t number)
{
    record *it = &self->records[number];
    it->before = STREAM_NONE;
    it->after = vram_offset_map_find(&self->by_size, it->size_bytes);
    if (it->after != STREAM_NONE) {
        self->records[it->after].before = number;
        vram_offset_map_remove(&self->by_size, it->size_bytes);
    }
    vram_offset_map_put(&self->by_size, it->size_bytes, number);
    it->state = RECORD_PENDING;
    self->pending++;
    self->pending_bytes += it->inner.granted_bytes;
}

static void unlink_pending(stream *self, uint32_t number)
{
    const record *it = &self->records[number];
    if (it->after != STREAM_NONE)
        self->records[it->after].before = it->before;
    if (it->before != STREAM_NONE) {
        self->records[it->before].after = it->after;
    } else {
        vram_offset_map_remove(&self->by_size, it->size_bytes);
        if (it->after != STREAM_NONE)
            vram_offset_map_put(&self->by_size, it->size_bytes, it->after);
    }
    self->pending--;
    self->pending_bytes -= it->inner.granted_bytes;
}

static bool is_safe_for(const stream *self, const record *it, uint32_t lane)
{
    for (uint32_t number = it->users; number != STREAM_NONE; number = self->users[number].next)
        if (!lanes_is_safe(&self->lanes, lane, self->users[number].stream, self->users[number].mark,
                           self->follow))
            return false;
    return true;
}

static bool is_over(const stream *self, const record *it)
{
    for (uint32_t number = it->users; number != STREAM_NONE; number = self->users[number].next)
        if (!lanes_is_over(&self->lanes, self->users[number].stream, self->users[number].mark))
            return false;
    return true;
}

/* Gives a pending block back to the inner backend, over or not. When that has no host memory for
 * it, the block stays pending. */
static void give_back(stream *self, uint32_t number)
{
    record *it = &self->records[number];
    if (vram_release(self->layer.inner, it->inner) != VRAM_OK)
        return;
    unlink_pending(self, number);
    for (uint32_t user = it->users; user != STREAM_NONE; user = self->users[user].next)
        if (self->floor[self->users[user].stream] < self->users[user].mark)
            self->floor[self->users[user].stream] = self->users[user].mark;
    drop_users(self, it);
    vram_offset_map_remove(&self->by_offset, it->inner.offset_bytes);
    it->state = RECORD_UNUSED;
    it->after = self->unused_record;
    self->unused_record = number;
}

/* Gives back what is over, or everything. True when that was anything. */
static bool give_back_all(stream *self, bool even_unfinished)
{
    const uint64_t before = self->pending;
    for (uint32_t number = 0; number < self->records_made && self->pending > 0; number++)
        if (self->records[number].state == RECORD_PENDING &&
            (even_unfinished || is_over(self, &self->records[number])))
            give_back(self, number);
    return self->pending < before;
}

/* ---- streams ---- */

static void order(stream *self, uint32_t waiter, uint32_t lane)
{
    if (self->hooks.order != NULL)
        self->hooks.order(self->hooks.context, waiter, lane);
    lanes_wait(&self->lanes, waiter, lane);
    self->waits++;
}

static void wait_for_all(stream *self)
{
    if (self->hooks.sync != NULL)
        self->hooks.sync(self->hooks.context);
    lanes_sync(&self->lanes, UINT32_MAX);
}

/* Memory of the inner backend may have been given back too early for this stream: it waits, or,
 * where no waits may be inserted, the host does. */
static void reach_floor(stream *self, uint32_t lane)
{
    for (uint32_t other = 0; other < self->lanes.count; other++) {
        if (lanes_is_safe(&self->lanes, lane, other, self->floor[other], self->follow))
            continue;
        if (!self->internal) {
            wait_for_all(self);
            return;
        }
        order(self, lane, other);
    }
}

static void poll_streams(stream *self)
{
    if (!self->opportunistic || self->hooks.poll == NULL)
        return;
    for (uint32_t lane = 0; lane < self->lanes.count; lane++)
        if (self->hooks.poll(self->hooks.context, lane))
            lanes_sync(&self->lanes, lane);
}

/* ---- alloc ---- */

/* A pending block of this size that the stream may have as it is, or STREAM_NONE. */
static uint32_t find_pending(const stream *self, const vram_request *request, uint64_t size_bytes)
{
    uint32_t number = vram_offset_map_find(&self->by_size, size_bytes);
    for (int looks = 0; number != STREAM_NONE && looks < LOOK_AT_MOST; looks++) {
        const record *it = &self->records[number];
        if ((it->inner.offset_bytes & (request->align_bytes - 1)) == 0 &&
            is_safe_for(self, it, request->stream))
            return number;
        number = it->after;
    }
    return STREAM_NONE;
}

static vram_result ask_inner(stream *self, const vram_request *request, vram_block *inner)
{
    vram_result result = vram_alloc(self->layer.inner, *request, inner);
    if (result == VRAM_NO_SPACE && self->pending > 0) {
        poll_streams(self);
        if (give_back_all(self, false))
            result = vram_alloc(self->layer.inner, *request, inner);
    }
    if (result == VRAM_NO_SPACE && self->internal && give_back_all(self, true))
        result = vram_alloc(self->layer.inner, *request, inner);
    if (result == VRAM_OK)
        reach_floor(self, request->stream);
    return result;
}

static vram_result stream_alloc(vram_backend *backend, const vram_request *request, vram_block *out)
{
    stream *self = (stream *)backend;
    const uint64_t size_bytes = vram_round_up(request->size_bytes, self->layer.head.unit_bytes);
    if (!lanes_reserve(&self->lanes, request->stream) || !reserve_block(self))
        return VRAM_NO_METADATA;
    uint32_t number = find_pending(self, request, size_bytes);
    if (number != STREAM_NONE) {
        unlink_pending(self, number);
        drop_users(self, &self->records[number]);
        *out = publish(self, number, request);
        return VRAM_OK;
    }
    vram_block inner;
    const vram_result result = ask_inner(self, request, &inner);
    if (result != VRAM_OK)
        return result;
    number = self->unused_record;
    if (number == STREAM_NONE)
        number = self->records_made++;
    else
        self->unused_record = self->records[number].after;
    self->records[number] = (record){.inner = inner, .size_bytes = size_bytes};
    vram_offset_map_put(&self->by_offset, inner.offset_bytes, number);
    *out = publish(self, number, request);
    return VRAM_OK;
}

/* ---- release ---- */

static vram_result stream_release(vram_backend *backend, vram_block block)
{
    stream *self = (stream *)backend;
    const uint32_t number = look_up(self, block);
    if (number == STREAM_NONE)
        return VRAM_STALE_BLOCK;
    if (!vram_offset_map_reserve(&self->by_size))
        return VRAM_NO_METADATA;
    record *it = &self->records[number];
    for (uint32_t user = it->users; user != STREAM_NONE; user = self->users[user].next)
        self->users[user].mark = lanes_mark(&self->lanes, self->users[user].stream);
    link_pending(self, number);
    self->live--;
    if (self->live == 0)
        wait_for_all(self);
    if (self->live == 0 || self->seen_count == 1)
        give_back_all(self, true);
    return VRAM_OK;
}

static vram_result stream_resize(vram_backend *backend, vram_block *block, uint64_t size_bytes)
{
    stream *self = (stream *)backend;
    const uint32_t number = look_up(self, *block);
    if (number == STREAM_NONE)
        return VRAM_STALE_BLOCK;
    record *it = &self->records[number];
    const uint64_t before_bytes = it->inner.granted_bytes;
    const vram_result result = vram_layer_resize(backend, &it->inner, size_bytes);
    if (result != VRAM_OK)
        return result;
    it->size_bytes = vram_round_up(size_bytes, self->layer.head.unit_bytes);
    block->granted_bytes = it->inner.granted_bytes;
    if (it->inner.granted_bytes > before_bytes) /* what was added may come from below the floor */
        for (uint32_t user = it->users; user != STREAM_NONE; user = self->users[user].next)
            reach_floor(self, self->users[user].stream);
    return VRAM_OK;
}

static vram_result stream_use(vram_backend *backend, vram_block block, uint32_t lane)
{
    stream *self = (stream *)backend;
    const uint32_t number = look_up(self, block);
    if (number == STREAM_NONE)
        return VRAM_STALE_BLOCK;
    if (has_user(self, &self->records[number], lane))
        return VRAM_OK;
    if (!lanes_reserve(&self->lanes, lane) || !reserve_user(self))
        return VRAM_NO_METADATA;
    add_user(self, &self->records[number], lane);
    note_seen(self, lane);
    return VRAM_OK;
}

static void stream_sync(vram_backend *backend, uint32_t lane)
{
    stream *self = (stream *)backend;
    if (lane == UINT32_MAX || lane < self->lanes.count) {
        lanes_sync(&self->lanes, lane);
        give_back_all(self, false);
    }
    vram_layer_sync(backend, lane);
}

static void stream_wait(vram_backend *backend, uint32_t waiter, uint32_t lane)
{
    stream *self = (stream *)backend;
    if (lanes_reserve(&self->lanes, waiter) && lanes_reserve(&self->lanes, lane))
        lanes_wait(&self->lanes, waiter, lane);
    vram_layer_wait(backend, waiter, lane);
}

static void stream_hook(vram_backend *backend, const vram_stream_hooks *hooks)
{
    ((stream *)backend)->hooks = *hooks;
    vram_layer_hook(backend, hooks);
}

static uint64_t stream_trim(vram_backend *backend)
{
    give_back_all((stream *)backend, false);
    return vram_layer_trim(backend);
}

/* ---- moves: the inner backend's, of live blocks, under the names that callers know ---- */

static size_t stream_plan_moves(const vram_backend *backend, uint64_t budget_bytes,
                                vram_move *moves, size_t max_moves)
{
    const stream *self = (const stream *)backend;
    const size_t planned = vram_layer_plan_moves(backend, budget_bytes, moves, max_moves);
    for (size_t i = 0; i < planned; i++) {
        const uint32_t number = vram_offset_map_find(&self->by_offset, moves[i].from_bytes);
        const record *it = number != VRAM_OFFSET_MAP_NONE ? &self->records[number] : NULL;
        const uint64_t align_bytes = it != NULL ? UINT64_C(1) << it->align_log2 : 1;
        /* The inner backend knows the alignment of the request that first had these bytes. */
        if (it == NULL || it->state != RECORD_LIVE || (moves[i].to_bytes & (align_bytes - 1)) != 0)
            return i; /* a later move may rely on this one */
        moves[i].handle = stream_handle(self, number);
    }
    return planned;
}

static vram_result stream_commit_move(vram_backend *backend, const vram_move *move,
                                      vram_block *block)
{
    stream *self = (stream *)backend;
    const uint32_t number =
        look_up(self, (vram_block){.offset_bytes = move->from_bytes, .handle = move->handle});
    if (number == STREAM_NONE)
        return VRAM_STALE_BLOCK;
    if (!vram_offset_map_reserve(&self->by_offset))
        return VRAM_NO_METADATA;
    record *it = &self->records[number];
    vram_move inner = *move;
    inner.handle = it->inner.handle;
    const vram_result result = vram_layer_commit_move(backend, &inner, &it->inner);
    if (result != VRAM_OK)
        return result;
    vram_offset_map_remove(&self->by_offset, move->from_bytes);
    vram_offset_map_put(&self->by_offset, it->inner.offset_bytes, number);
    for (uint32_t user = it->users; user != STREAM_NONE; user = self->users[user].next)
        reach_floor(self, self->users[user].stream);
    *block = (vram_block){.offset_bytes = it->inner.offset_bytes,
                          .granted_bytes = it->inner.granted_bytes,
                          .handle = move->handle};
    return VRAM_OK;
}

const vram_ops vram_stream_ops = {
    .abi = VRAM_ABI,
    .layer = true,
    .name = "stream",
    .summary = "reuse at once on the same stream, elsewhere only when the other has passed it",
    .options = stream_options,
    .create = stream_create,
    .destroy = stream_destroy,
    .alloc = stream_alloc,
    .release = stream_release,
    .walk = stream_walk,
    .check = stream_check,
    .stats = stream_stats,
    .explain = stream_explain,
    .resize = stream_resize,
    .maintain = vram_layer_maintain,
    .plan_moves = stream_plan_moves,
    .commit_move = stream_commit_move,
    .trim = stream_trim,
    .use = stream_use,
    .sync = stream_sync,
    .wait = stream_wait,
    .hook = stream_hook,
};
