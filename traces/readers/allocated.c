/*
 * allocated.c - the most that PyTorch's own allocator had allocated at once: sizes of blocks, not
 * of requests.
 *
 * A block is its request rounded up, plus what was too small to be split off: in a large segment a
 * remainder of at most 1 MiB. The file does not tell it, but the neighbours do: where the gap
 * behind a block, up to the next block or the end of its segment, is at most that, it is part of
 * the block, as free blocks there are larger. So the history is walked forward with the set of
 * addresses at which blocks begin, a bitmap over the ranks of all addresses, 64 to a word and a
 * word to a bit of the level above:
 *
 *     level 1   |.#|                    successor: up while the word has nothing behind the bit,
 *     level 0   |....|.#.#|             then down to the first bit of each word. O(log64 n)
 *
 * Memory: about 40 bytes for each different address. PyTorch 2.11 source, CUDACachingAllocator.cpp.
 */
#include "allocated.h"

#include "idmap.h"

#include <stdlib.h>

#define MIN_BLOCK_BYTES     UINT64_C(512)
#define SMALL_SEGMENT_BYTES (UINT64_C(2) << 20)
#define REMAINDER_BYTES     (UINT64_C(1) << 20)  /* more is split off */
#define NON_SPLIT_BYTES     (UINT64_C(20) << 20) /* slack of a block above max_split_size */
enum { LEVELS = 6, NONE = UINT32_MAX };

/* Ranks that are in, with successor and predecessor. */
typedef struct rank_set {
    uint64_t *levels[LEVELS];
    uint32_t count;
} rank_set;

/* What is known of an address. */
typedef struct place {
    uint64_t address;
    uint64_t segment_bytes; /* of the segment that begins here; 0: none */
    uint64_t block_bytes;   /* of the block that begins here */
    bool allocated;         /* and not let go */
} place;

typedef struct walk {
    const vram_snapshot *snapshot;
    const vram_snapshot_event *events;
    size_t event_count;
    place *places; /* by rank, in order of address */
    uint32_t place_count;
    vram_idmap ranks;          /* address -> rank */
    rank_set blocks, segments; /* that begin there now */
    uint64_t allocated, peak;
} walk;

/* ---- sets of ranks ---- */

static bool set_make(rank_set *set, uint32_t count)
{
    set->count = count;
    for (int level = 0; level < LEVELS; level++) {
        count = count / 64 + 1;
        set->levels[level] = calloc(count, sizeof *set->levels[level]);
        if (set->levels[level] == NULL)
            return false;
    }
    return true;
}

static void set_free(rank_set *set)
{
    for (int level = 0; level < LEVELS; level++)
        free(set->levels[level]);
}

static void set_add(rank_set *set, uint32_t rank)
{
    for (int level = 0; level < LEVELS; level++, rank /= 64)
        set->levels[level][rank / 64] |= UINT64_C(1) << (rank % 64);
}

static void set_drop(rank_set *set, uint32_t rank)
{
    for (int level = 0; level < LEVELS; level++, rank /= 64) {
        set->levels[level][rank / 64] &= ~(UINT64_C(1) << (rank % 64));
        if (set->levels[level][rank / 64] != 0)
            break;
    }
}

/* The least rank that is in and above this one. */
static uint32_t set_after(const rank_set *set, uint32_t rank)
{
    for (int level = 0; level < LEVELS; level++, rank /= 64) {
        const uint64_t above = rank % 64 == 63 ? 0 : ~UINT64_C(0) << (rank % 64 + 1);
        uint64_t word = set->levels[level][rank / 64] & above;
        if (word == 0)
            continue;
        rank = rank / 64 * 64 + (uint32_t)__builtin_ctzll(word);
        while (level-- > 0)
            rank = rank * 64 + (uint32_t)__builtin_ctzll(set->levels[level][rank]);
        return rank;
    }
    return NONE;
}

/* The greatest rank that is in and not above this one. */
static uint32_t set_at_or_before(const rank_set *set, uint32_t rank)
{
    if ((set->levels[0][rank / 64] >> (rank % 64) & 1) != 0)
        return rank;
    for (int level = 0; level < LEVELS; level++, rank /= 64) {
        uint64_t word = set->levels[level][rank / 64] & ((UINT64_C(1) << (rank % 64)) - 1);
        if (word == 0)
            continue;
        rank = rank / 64 * 64 + 63 - (uint32_t)__builtin_clzll(word);
        while (level-- > 0)
            rank = rank * 64 + 63 - (uint32_t)__builtin_clzll(set->levels[level][rank]);
        return rank;
    }
    return NONE;
}

/* ---- addresses ---- */

static int by_address(const void *left, const void *right)
{
    const place *a = left, *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

/* Notes an address once; it has no rank yet. */
static bool note(walk *w, size_t *capacity, uint64_t address)
{
    if (vram_idmap_find(&w->ranks, address) != NULL)
        return true;
    if (w->place_count >= NONE - 1 ||
        !vram_reserve((void **)&w->places, capacity, w->place_count + 1u, sizeof *w->places) ||
        !vram_idmap_put(&w->ranks, address, 0))
        return false;
    w->places[w->place_count++] = (place){.address = address};
    return true;
}

static uint32_t rank_of(const walk *w, uint64_t address)
{
    return *vram_idmap_find(&w->ranks, address);
}

static bool is_segment(const vram_snapshot_event *event)
{
    return event->action == VRAM_SNAPSHOT_SEGMENT_ALLOC ||
           event->action == VRAM_SNAPSHOT_SEGMENT_FREE;
}

static bool is_block(const vram_snapshot_event *event)
{
    return event->action == VRAM_SNAPSHOT_ALLOC || event->action == VRAM_SNAPSHOT_FREE_REQUESTED ||
           event->action == VRAM_SNAPSHOT_FREE_COMPLETED;
}

static bool rank_addresses(walk *w, uint32_t device, const vram_before *befores,
                           size_t before_count)
{
    const vram_snapshot *snapshot = w->snapshot;
    size_t capacity = 0;
    bool room = true;
    for (size_t i = 0; room && i < snapshot->segment_count; i++)
        if (snapshot->segments[i].device == device)
            room = note(w, &capacity, snapshot->segments[i].address);
    for (size_t i = 0; room && i < before_count; i++)
        room = note(w, &capacity, befores[i].address);
    for (size_t i = 0; room && i < w->event_count; i++)
        if (is_segment(&w->events[i]) || is_block(&w->events[i]))
            room = note(w, &capacity, w->events[i].address);
    if (!room || !set_make(&w->blocks, w->place_count) || !set_make(&w->segments, w->place_count))
        return false;
    if (w->place_count > 0)
        qsort(w->places, w->place_count, sizeof *w->places, by_address);
    for (uint32_t rank = 0; rank < w->place_count; rank++)
        *vram_idmap_find(&w->ranks, w->places[rank].address) = rank;
    return true;
}

/* ---- segments ---- */

static void open_segment(walk *w, uint64_t address, uint64_t size_bytes)
{
    const uint32_t rank = rank_of(w, address);
    w->places[rank].segment_bytes = size_bytes;
    set_add(&w->segments, rank);
}

static void close_segment(walk *w, uint64_t address)
{
    set_drop(&w->segments, rank_of(w, address));
}

/* Those that were there at the start: the final ones, with the history undone. Mapped ones are left
 * out: what is carved from them has no slack. */
static void undo_segments(walk *w, uint32_t device)
{
    for (size_t i = 0; i < w->snapshot->segment_count; i++) {
        const vram_snapshot_segment *segment = &w->snapshot->segments[i];
        if (segment->device == device && !segment->expandable)
            open_segment(w, segment->address, segment->total_bytes);
    }
    for (size_t i = w->event_count; i-- > 0;) {
        const vram_snapshot_event *event = &w->events[i];
        if (event->action == VRAM_SNAPSHOT_SEGMENT_ALLOC)
            close_segment(w, event->address);
        else if (event->action == VRAM_SNAPSHOT_SEGMENT_FREE)
            open_segment(w, event->address, event->size_bytes);
    }
}

/* ---- blocks ---- */

/* The request rounded as PyTorch does, the interval's divisions included. */
static uint64_t rounded(const vram_snapshot_settings *settings, uint64_t size_bytes)
{
    enum { FIRST_LOG2 = 20 };
    if (size_bytes <= MIN_BLOCK_BYTES || size_bytes >= UINT64_C(1) << 62)
        return MIN_BLOCK_BYTES;
    const int log2 = 63 - __builtin_clzll(size_bytes);
    const int interval = log2 < FIRST_LOG2 ? 0 : log2 - FIRST_LOG2;
    const int last = VRAM_SNAPSHOT_ROUNDUP_KEYS - 1;
    const uint64_t divisions = settings->roundup_divisions[interval < last ? interval : last];
    uint64_t step = MIN_BLOCK_BYTES;
    if (divisions > 1 && (UINT64_C(1) << log2) / divisions > step)
        step = (UINT64_C(1) << log2) / divisions;
    return (size_bytes + step - 1) / step * step;
}

/* What lies between the end of the block and the next one, or the end of the segment, when it was
 * too little to be split off. */
static uint64_t slack(const walk *w, uint32_t rank, uint64_t size_bytes)
{
    const uint32_t base = set_at_or_before(&w->segments, rank);
    if (base == NONE || w->places[base].segment_bytes == SMALL_SEGMENT_BYTES)
        return 0;
    const uint64_t segment_end = w->places[base].address + w->places[base].segment_bytes;
    const uint64_t block_end = w->places[rank].address + size_bytes;
    const uint32_t next = set_after(&w->blocks, rank);
    const uint64_t bound = next != NONE && w->places[next].address < segment_end
                               ? w->places[next].address
                               : segment_end;
    if (block_end > bound)
        return 0;
    const uint64_t gap = bound - block_end;
    const bool whole = size_bytes >= w->snapshot->settings.max_split_bytes;
    return gap <= (whole ? NON_SPLIT_BYTES : REMAINDER_BYTES) ? gap : 0;
}

static void begin_block(walk *w, uint64_t address, uint64_t requested_bytes)
{
    const uint32_t rank = rank_of(w, address);
    const uint64_t size_bytes = rounded(&w->snapshot->settings, requested_bytes);
    place *at = &w->places[rank];
    if (at->allocated) /* a free was lost */
        w->allocated -= at->block_bytes;
    at->block_bytes = size_bytes + slack(w, rank, size_bytes);
    at->allocated = true;
    set_add(&w->blocks, rank);
    w->allocated += at->block_bytes;
    w->peak = w->allocated > w->peak ? w->allocated : w->peak;
}

static void let_go(walk *w, uint64_t address)
{
    place *at = &w->places[rank_of(w, address)];
    if (at->allocated)
        w->allocated -= at->block_bytes;
    at->allocated = false;
}

/* All of them first, as each bounds the one below. */
static void place_befores(walk *w, const vram_before *befores, size_t count)
{
    for (size_t i = 0; i < count; i++)
        set_add(&w->blocks, rank_of(w, befores[i].address));
    for (size_t i = 0; i < count; i++) {
        begin_block(w, befores[i].address, befores[i].size_bytes);
        if (befores[i].pending)
            let_go(w, befores[i].address);
    }
    w->peak = w->allocated;
}

static void take_event(walk *w, const vram_snapshot_event *event)
{
    switch ((vram_snapshot_action)event->action) {
    case VRAM_SNAPSHOT_ALLOC:
        begin_block(w, event->address, event->size_bytes);
        break;
    case VRAM_SNAPSHOT_FREE_COMPLETED:
        let_go(w, event->address);
        set_drop(&w->blocks, rank_of(w, event->address));
        break;
    case VRAM_SNAPSHOT_FREE_REQUESTED:
        let_go(w, event->address);
        break;
    case VRAM_SNAPSHOT_SEGMENT_ALLOC:
        open_segment(w, event->address, event->size_bytes);
        break;
    case VRAM_SNAPSHOT_SEGMENT_FREE:
        close_segment(w, event->address);
        break;
    case VRAM_SNAPSHOT_OTHER:
    case VRAM_SNAPSHOT_SEGMENT_MAP:
    case VRAM_SNAPSHOT_SEGMENT_UNMAP:
    case VRAM_SNAPSHOT_OOM:
    case VRAM_SNAPSHOT_SNAPSHOT:
    case VRAM_SNAPSHOT_ANNOTATE:
    case VRAM_SNAPSHOT_ACTIONS:
        break;
    }
}

bool vram_peak_allocated(const vram_snapshot *snapshot, uint32_t device, const vram_before *befores,
                         size_t before_count, uint64_t *peak_bytes)
{
    const vram_snapshot_device *history = &snapshot->devices[device];
    walk w = {.snapshot = snapshot, .event_count = history->event_count};
    if (w.event_count > 0)
        w.events = snapshot->events + history->first_event;
    const bool ranked = rank_addresses(&w, device, befores, before_count);
    if (ranked) {
        undo_segments(&w, device);
        place_befores(&w, befores, before_count);
        for (size_t i = 0; i < w.event_count; i++)
            take_event(&w, &w.events[i]);
    }
    *peak_bytes = w.peak;
    set_free(&w.blocks);
    set_free(&w.segments);
    vram_idmap_free(&w.ranks);
    free(w.places);
    return ranked;
}
