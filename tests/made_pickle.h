/*
 * made_pickle.h - pickles written opcode by opcode, for tests of the reader.
 *
 *     made_pickle p = pickle_start(4);
 *     pickle_put(&p, "}(");  pickle_text(&p, "segments");  ...
 */
#ifndef VRAMLAB_TESTS_MADE_PICKLE_H
#define VRAMLAB_TESTS_MADE_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct made_pickle {
    unsigned char *bytes;
    size_t count, capacity;
    int protocol;   /* 2: BINUNICODE and BINPUT, as PyTorch's C++ writes; 4, 5: as CPython's */
    uint32_t memos; /* memo slots used */
    bool single;    /* one key and one item at a time */
} made_pickle;

made_pickle pickle_start(int protocol);
void pickle_raw(made_pickle *p, const void *bytes, size_t count);
void pickle_put(made_pickle *p, const char *opcodes); /* no null bytes */
void pickle_text(made_pickle *p, const char *text);
void pickle_number(made_pickle *p, uint64_t number); /* the shortest opcode that holds it */
void pickle_negative(made_pickle *p, int32_t number);
/* Containers: begin, then the members, then end. In a dict each member is key (pickle_text), value.
 */
void pickle_begin(made_pickle *p, char kind); /* '}' or ']' */
void pickle_end(made_pickle *p, char kind);
/* Behind each pair or item when `single`; nothing otherwise. */
void pickle_member(made_pickle *p, char kind);
void pickle_stop(made_pickle *p);

/* {action: ..., addr: ..., size: ..., stream: ..., time_us: ...} as an item of the list in hand */
void pickle_event(made_pickle *p, const char *action, uint64_t addr, uint64_t size, uint64_t stream,
                  uint64_t time_us);
/* One block as an item of the list in hand; no address when it is 0. */
void pickle_block(made_pickle *p, uint64_t address, uint64_t size, uint64_t requested,
                  const char *state);
/* The keys of a segment but its blocks and the end; the list of blocks is begun. */
void pickle_segment(made_pickle *p, uint64_t address, uint64_t total, uint64_t stream,
                    const char *type, uint64_t device);
void pickle_segment_end(made_pickle *p);

#endif
