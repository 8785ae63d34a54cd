/*
 * build.h - a snapshot under construction: the values on a pickle machine's stack, packed into
 * records as soon as their dictionary closes.
 *
 *     {action: alloc, addr: 7f.., ...}  -> one vram_snapshot_event     value EVENT
 *     {state: inactive, size: ..., }    -> one vram_snapshot_block     value BLOCK
 *     {total_size: ..., blocks: [...]}  -> one vram_snapshot_segment   value SEGMENT
 *     {filename: ..., line: ...}        -> one frame, equal ones once  value FRAME
 *
 * B1  records of one kind that follow each other are one value, a run (first, count), on the stack
 *     and in a list: a million events on the stack take 16 bytes.
 * B2  an index in a value, a node or the memo is below the count of what it names, always.
 * B3  memory stays below a small multiple of the bytes read: the stack below a quarter of them in
 *     values, the memo below their number in slots.
 *
 * Both front ends (pickle.c and json.c) drive this one; snapshot.c takes the result apart.
 */
#ifndef VRAMLAB_READERS_BUILD_H
#define VRAMLAB_READERS_BUILD_H

#include "input.h"
#include "names.h"

#include <vramlab/snapshot.h>

typedef enum build_type {
    BUILD_NONE,
    BUILD_BOOL,
    BUILD_INT,   /* number; two's complement when negative */
    BUILD_FLOAT, /* real */
    BUILD_TEXT,  /* number: index into names */
    BUILD_LIST,  /* number: node; a tuple is a list too */
    BUILD_DICT,  /* number: node; keys and values in turn */
    BUILD_STACK, /* number: index into stacks */
    BUILD_POOL,  /* number: index into pools */
    BUILD_EVENT, /* number: first record, count: how many */
    BUILD_BLOCK,
    BUILD_SEGMENT,
    BUILD_FRAME,
    BUILD_BOX, /* in the memo only: number: node that holds one scalar */
} build_type;

typedef struct build_value {
    build_type type;
    uint32_t count; /* records; 1 otherwise */
    union {
        uint64_t number;
        double real;
    };
} build_value;

typedef struct build_node {
    build_value *items;
    uint32_t count, capacity;
    uint32_t memo; /* the memo slot that names it, + 1 */
    uint8_t type;  /* BUILD_LIST or BUILD_DICT; BUILD_STACK or a record type once turned into one,
                      whose number is then `count` */
    bool memo_twice;
} build_node;

enum { VRAM_SNAPSHOT_DEVICE_MAX = 4095 };
#define VRAM_SNAPSHOT_NO_ADDRESS UINT64_MAX /* of a block, until snapshot.c counts it */

typedef struct build_frame {
    uint32_t function, file; /* indices into names */
    uint64_t line;
} build_frame;

/* As vram_snapshot_context, with indices for texts. */
typedef struct build_context {
    uint64_t stream, pool[2];
    uint32_t metadata, compile; /* indices into names */
    uint32_t has_pool;
    uint32_t unused; /* so that equal contexts are equal bytes */
} build_context;

typedef struct vram_build {
    vram_input *input;
    vram_error *error;
    vram_names names;

    build_value *stack;
    size_t stack_count, stack_capacity;
    size_t *marks; /* heights of the stack */
    size_t mark_count, mark_capacity;
    build_node *nodes;
    size_t node_count, node_capacity;
    uint32_t *spare_nodes;
    size_t spare_count, spare_capacity;
    uint32_t *memo; /* type << 28 | index; type NONE with index 0: empty */
    size_t memo_count, memo_capacity;

    vram_snapshot_event *events;
    size_t event_count, event_capacity;
    vram_snapshot_block *blocks;
    size_t block_count, block_capacity;
    vram_snapshot_segment *segments;
    size_t segment_count, segment_capacity;
    /* Equal ones once; the "texts" are the bytes of a build_context, a build_frame, frame indices
     * (uint32_t each), two numbers (uint64_t). Index 0, "", is nobody's but the empty stack's. */
    vram_names contexts, frames, stacks, pools;
    uint32_t last_context;
    build_context last; /* what it holds */
    uint32_t last_text; /* the text pushed last */
    uint32_t *scratch;  /* frame indices of the list in hand */
    size_t scratch_capacity;
} vram_build;

bool build_start(vram_build *build, vram_input *input, vram_error *error);
void build_free(vram_build *build);
/* Frees what only building needs; records and texts stay. */
void build_give_back(vram_build *build);

/* Fails with "path: byte N: message". */
__attribute__((format(printf, 2, 3))) bool build_fail(vram_build *build, const char *format, ...);

/* ---- for the front ends ---- */

bool build_make_room(vram_build *build); /* on the stack, for one more value */
static inline bool build_push(vram_build *build, build_value value)
{
    if (build->stack_count == build->stack_capacity && !build_make_room(build))
        return false;
    build->stack[build->stack_count++] = value;
    return true;
}
static inline bool build_push_number(vram_build *build, uint64_t number)
{
    return build_push(build, (build_value){.type = BUILD_INT, .count = 1, .number = number});
}
bool build_push_text(vram_build *build, const char *text, size_t bytes);
bool build_push_node(vram_build *build, build_type type); /* an empty LIST or DICT */
bool build_pop(vram_build *build);
bool build_mark(vram_build *build);
bool build_pop_mark(vram_build *build); /* drops everything above the topmost mark, and the mark */
/* The values above the topmost mark go into the list or dictionary below it. */
bool build_append_all(vram_build *build);
bool build_set_all(vram_build *build);
bool build_append(vram_build *build); /* list, value -> list */
bool build_set(vram_build *build);    /* dictionary, key, value -> dictionary */
/* The values above the topmost mark, or the `count` topmost, become one. */
bool build_collect_marked(vram_build *build, build_type type);
bool build_collect(vram_build *build, size_t count);
bool build_memoize(vram_build *build, uint64_t slot);
enum { BUILD_MEMO_SHIFT = 28 };
#define BUILD_MEMO_INDEX ((UINT32_C(1) << BUILD_MEMO_SHIFT) - 1)
bool build_recall_other(vram_build *build, uint64_t slot); /* an empty slot, or a scalar */
static inline bool build_recall(vram_build *build, uint64_t slot)
{
    const uint32_t entry = slot < build->memo_count ? build->memo[slot] : 0;
    const build_type type = (build_type)(entry >> BUILD_MEMO_SHIFT);
    if (type == BUILD_NONE || type == BUILD_BOX)
        return build_recall_other(build, slot);
    return build_push(build,
                      (build_value){.type = type, .count = 1, .number = entry & BUILD_MEMO_INDEX});
}

/* ---- records (records.c) ---- */

/* The record type that the dictionary's keys tell, or BUILD_DICT. `pairs` are keys and values. */
build_type build_kind_of(const build_value *pairs, size_t count);
/* A new record made of the pairs. */
bool build_new_record(vram_build *build, build_type type, const build_value *pairs, size_t count,
                      build_value *record);
/* Sets more fields of a record made before. */
bool build_amend_record(vram_build *build, const build_value *record, const build_value *pairs,
                        size_t count);

/* ---- what snapshot.c reads ---- */

/* The items of a list or dictionary; none for anything else. A turned node is its record. */
const build_value *build_items(const vram_build *build, const build_value *value, size_t *count);
/* A node that was turned into a record, as that record; anything else as it is. */
build_value build_resolve(const vram_build *build, build_value value);
/* The value of a key in a dictionary; NONE when it has none. */
build_value build_look_up(const vram_build *build, const build_value *dict, const char *key);
/* Turns a list into the stack or the pool `as`; the list is given back when only the memo knew it.
 */
bool build_turn_list(vram_build *build, const build_value *list, build_type as, uint32_t index);

#endif
