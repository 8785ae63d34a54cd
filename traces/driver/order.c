/*
 * order.c - vector clocks, and for each stream the bytes that it may still be using.
 *
 *   knows[t][u] = e : all that was queued on u before event e is over before anything that is
 * queued on t from now on begins
 *
 *             stream 0      stream 1      host            knows[1][0]   host[0]
 *   event 1   work                                             0            0
 *   event 2                 waits for 0                        2            0
 *   event 3   more work                                        2            0
 *   event 4                               syncs 0              2            4
 *
 *   used[u]: spans in address order, each with the event of the last release before which u may
 *            have used it
 *
 *   | e=7 |      | e=12       | e=3 |
 *
 * A wait hands on what the other stream knows, for its work so far has waited for it; a sync hands
 * it to the host, and what the host queues from then on, on any stream, comes after. Bytes that are
 * given out again are forgotten: their next user comes after the last, or the reuse was reported.
 */
#include "order.h"

#include <stdlib.h>
#include <string.h>

typedef struct used_span {
    uint64_t from_bytes, to_bytes;
    uint64_t time; /* event + 1; 0 is before all */
} used_span;

typedef struct used_map {
    used_span *spans;
    size_t count, capacity;
} used_map;

typedef struct user_entry {
    uint32_t stream;
    vram_users next; /* also chains the entries not in use */
} user_entry;

struct vram_order {
    uint32_t streams;
    uint64_t *knows;   /* [t * streams + u], as time */
    uint64_t *host;    /* [u]: what the host knows, and with it every stream */
    used_map *used;    /* by stream */
    user_entry *users; /* [0] is none */
    size_t user_count, user_capacity;
    vram_users spare;
};

vram_order *vram_order_create(void)
{
    return calloc(1, sizeof(vram_order));
}

void vram_order_destroy(vram_order *self)
{
    if (self == NULL)
        return;
    for (uint32_t stream = 0; stream < self->streams; stream++)
        free(self->used[stream].spans);
    free(self->used);
    free(self->knows);
    free(self->host);
    free(self->users);
    free(self);
}

/* Makes room for a stream that had not been seen. */
static bool cover(vram_order *self, uint32_t stream)
{
    if (stream < self->streams)
        return true;
    const uint32_t old = self->streams;
    const uint32_t count = stream + 1 > 2 * old ? stream + 1 : 2 * old;
    uint64_t *const knows = calloc((size_t)count * count, sizeof *knows);
    uint64_t *const host = calloc(count, sizeof *host);
    used_map *const used = calloc(count, sizeof *used);
    if (knows == NULL || host == NULL || used == NULL) {
        free(knows);
        free(host);
        free(used);
        return false;
    }
    for (uint32_t row = 0; row < old; row++) {
        memcpy(knows + (size_t)row * count, self->knows + (size_t)row * old, old * sizeof *knows);
        host[row] = self->host[row];
        used[row] = self->used[row];
    }
    free(self->knows);
    free(self->host);
    free(self->used);
    self->knows = knows;
    self->host = host;
    self->used = used;
    self->streams = count;
    return true;
}

static uint64_t time_of(uint64_t event)
{
    return event + 1;
}

static void raise_to(uint64_t *known, uint64_t time)
{
    if (time > *known)
        *known = time;
}

/* ---- spans ---- */

/* The first span that ends above this offset. */
static size_t first_above(const used_map *map, uint64_t offset_bytes)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (map->spans[middle].to_bytes > offset_bytes)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The latest time in these bytes. */
static uint64_t latest_in(const used_map *map, uint64_t from_bytes, uint64_t to_bytes)
{
    uint64_t latest = 0;
    for (size_t at = first_above(map, from_bytes);
         at < map->count && map->spans[at].from_bytes < to_bytes; at++)
        raise_to(&latest, map->spans[at].time);
    return latest;
}

/* Gives these bytes this time; 0 forgets them. What sticks out of them on either side stays. */
static bool paint(used_map *map, uint64_t from_bytes, uint64_t to_bytes, uint64_t time)
{
    const size_t first = first_above(map, from_bytes);
    size_t end = first;
    while (end < map->count && map->spans[end].from_bytes < to_bytes)
        end++;
    used_span pieces[3];
    size_t count = 0;
    if (first < end && map->spans[first].from_bytes < from_bytes)
        pieces[count++] =
            (used_span){map->spans[first].from_bytes, from_bytes, map->spans[first].time};
    if (time != 0)
        pieces[count++] = (used_span){from_bytes, to_bytes, time};
    if (first < end && map->spans[end - 1].to_bytes > to_bytes)
        pieces[count++] =
            (used_span){to_bytes, map->spans[end - 1].to_bytes, map->spans[end - 1].time};
    if (!vram_reserve((void **)&map->spans, &map->capacity, map->count + count, sizeof *pieces))
        return false;
    memmove(map->spans + first + count, map->spans + end, (map->count - end) * sizeof *pieces);
    memcpy(map->spans + first, pieces, count * sizeof *pieces);
    map->count = map->count - (end - first) + count;
    return true;
}

/* ---- blocks ---- */

bool vram_order_take(vram_order *self, uint64_t event, uint32_t stream, uint64_t offset_bytes,
                     uint64_t size_bytes, vram_early_reuse *early)
{
    const uint64_t end_bytes = offset_bytes + size_bytes;
    early->event = UINT64_MAX;
    if (!cover(self, stream))
        return false;
    const uint64_t *const knows = self->knows + (size_t)stream * self->streams;
    for (uint32_t user = 0; user < self->streams; user++) {
        used_map *const used = &self->used[user];
        const uint64_t latest = latest_in(used, offset_bytes, end_bytes);
        if (latest == 0)
            continue;
        if (user != stream && latest > knows[user] && latest > self->host[user])
            *early = (vram_early_reuse){
                .event = event,
                .released_event = latest - 1,
                .offset_bytes = offset_bytes,
                .size_bytes = size_bytes,
                .by_stream = stream,
                .of_stream = user,
            };
        if (!paint(used, offset_bytes, end_bytes, 0))
            return false;
    }
    return true;
}

static vram_users take_entry(vram_order *self)
{
    if (self->spare != 0) {
        const vram_users taken = self->spare;
        self->spare = self->users[taken].next;
        return taken;
    }
    if (self->user_count == 0)
        self->user_count = 1;
    if (!vram_reserve((void **)&self->users, &self->user_capacity, self->user_count + 1,
                      sizeof *self->users))
        return 0;
    return (vram_users)self->user_count++;
}

bool vram_order_use(vram_order *self, vram_users *users, uint32_t stream)
{
    for (vram_users at = *users; at != 0; at = self->users[at].next)
        if (self->users[at].stream == stream)
            return true;
    const vram_users added = take_entry(self);
    if (added == 0 || !cover(self, stream))
        return false;
    self->users[added] = (user_entry){.stream = stream, .next = *users};
    *users = added;
    return true;
}

void vram_order_forget_users(vram_order *self, vram_users *users)
{
    while (*users != 0) {
        const vram_users forgotten = *users;
        *users = self->users[forgotten].next;
        self->users[forgotten].next = self->spare;
        self->spare = forgotten;
    }
}

bool vram_order_give_back(vram_order *self, uint64_t event, uint32_t stream, vram_users users,
                          uint64_t offset_bytes, uint64_t size_bytes)
{
    const uint64_t end_bytes = offset_bytes + size_bytes;
    const uint64_t time = time_of(event);
    bool room = cover(self, stream) && paint(&self->used[stream], offset_bytes, end_bytes, time);
    for (vram_users at = users; room && at != 0; at = self->users[at].next)
        room = paint(&self->used[self->users[at].stream], offset_bytes, end_bytes, time);
    return room;
}

/* ---- waiting ---- */

bool vram_order_sync(vram_order *self, uint64_t event, uint32_t stream)
{
    if (stream != VRAM_ALL_STREAMS && !cover(self, stream))
        return false;
    for (uint32_t user = 0; user < self->streams; user++) {
        if (stream == VRAM_ALL_STREAMS || stream == user)
            raise_to(&self->host[user], time_of(event));
        else
            raise_to(&self->host[user], self->knows[(size_t)stream * self->streams + user]);
    }
    return true;
}

bool vram_order_wait(vram_order *self, uint64_t event, uint32_t waiter, uint32_t stream)
{
    if (!cover(self, waiter) || !cover(self, stream))
        return false;
    uint64_t *const knows = self->knows + (size_t)waiter * self->streams;
    for (uint32_t user = 0; user < self->streams; user++)
        raise_to(&knows[user], user == stream ? time_of(event)
                                              : self->knows[(size_t)stream * self->streams + user]);
    return true;
}
