/* made_pickle.c - see made_pickle.h. */
#include "made_pickle.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

void pickle_raw(made_pickle *p, const void *bytes, size_t count)
{
    if (p->count + count > p->capacity) {
        p->capacity = 2 * (p->count + count);
        p->bytes = realloc(p->bytes, p->capacity);
        cr_assert_not_null(p->bytes);
    }
    memcpy(p->bytes + p->count, bytes, count);
    p->count += count;
}

void pickle_put(made_pickle *p, const char *opcodes)
{
    pickle_raw(p, opcodes, strlen(opcodes));
}

made_pickle pickle_start(int protocol)
{
    made_pickle p = {.protocol = protocol};
    const unsigned char head[] = {0x80, (unsigned char)protocol};
    pickle_raw(&p, head, sizeof head);
    return p;
}

static void memoize(made_pickle *p)
{
    if (p->protocol >= 4) {
        pickle_put(p, "\x94");
    } else if (p->memos < 256) {
        const unsigned char put[] = {'q', (unsigned char)p->memos};
        pickle_raw(p, put, sizeof put);
    } else {
        pickle_put(p, "r");
        pickle_raw(p, &p->memos, 4);
    }
    p->memos++;
}

void pickle_text(made_pickle *p, const char *text)
{
    const uint32_t count = (uint32_t)strlen(text);
    if (p->protocol >= 4) {
        const unsigned char head[] = {0x8c, (unsigned char)count};
        pickle_raw(p, head, sizeof head);
    } else {
        pickle_put(p, "X");
        pickle_raw(p, &count, 4);
    }
    pickle_raw(p, text, count);
    memoize(p);
}

void pickle_number(made_pickle *p, uint64_t number)
{
    unsigned char bytes[11] = {'K', (unsigned char)number};
    if (number < 256) {
        pickle_raw(p, bytes, 2);
        return;
    }
    if (number < 65536) {
        bytes[0] = 'M';
        memcpy(bytes + 1, &number, 2);
        pickle_raw(p, bytes, 3);
        return;
    }
    if (number < UINT64_C(1) << 31) {
        bytes[0] = 'J';
        memcpy(bytes + 1, &number, 4);
        pickle_raw(p, bytes, 5);
        return;
    }
    unsigned length = 9; /* a sign byte of its own from 2^63 on */
    while (length > 1 && (number >> (8 * (length - 1) - 1)) == 0)
        length--;
    bytes[0] = 0x8a;
    bytes[1] = (unsigned char)length;
    memcpy(bytes + 2, &number, 8);
    bytes[10] = 0;
    pickle_raw(p, bytes, 2 + length);
}

void pickle_negative(made_pickle *p, int32_t number)
{
    pickle_put(p, "J");
    pickle_raw(p, &number, 4);
}

void pickle_begin(made_pickle *p, char kind)
{
    pickle_raw(p, &kind, 1);
    if (p->protocol >= 4)
        memoize(p);
    if (!p->single)
        pickle_put(p, "(");
}

void pickle_member(made_pickle *p, char kind)
{
    if (p->single)
        pickle_put(p, kind == '}' ? "s" : "a");
}

void pickle_end(made_pickle *p, char kind)
{
    if (!p->single)
        pickle_put(p, kind == '}' ? "u" : "e");
}

void pickle_stop(made_pickle *p)
{
    pickle_put(p, ".");
}

static void number_pair(made_pickle *p, const char *key, uint64_t number)
{
    pickle_text(p, key);
    pickle_number(p, number);
    pickle_member(p, '}');
}

static void text_pair(made_pickle *p, const char *key, const char *text)
{
    pickle_text(p, key);
    pickle_text(p, text);
    pickle_member(p, '}');
}

void pickle_event(made_pickle *p, const char *action, uint64_t addr, uint64_t size, uint64_t stream,
                  uint64_t time_us)
{
    pickle_begin(p, '}');
    text_pair(p, "action", action);
    number_pair(p, strcmp(action, "oom") == 0 ? "device_free" : "addr", addr);
    number_pair(p, "size", size);
    number_pair(p, "stream", stream);
    number_pair(p, "time_us", time_us);
    pickle_end(p, '}');
    pickle_member(p, ']');
}

void pickle_block(made_pickle *p, uint64_t address, uint64_t size, uint64_t requested,
                  const char *state)
{
    pickle_begin(p, '}');
    if (address != 0)
        number_pair(p, "address", address);
    number_pair(p, "size", size);
    number_pair(p, "requested_size", requested);
    text_pair(p, "state", state);
    pickle_end(p, '}');
    pickle_member(p, ']');
}

void pickle_segment(made_pickle *p, uint64_t address, uint64_t total, uint64_t stream,
                    const char *type, uint64_t device)
{
    pickle_begin(p, '}');
    number_pair(p, "device", device);
    number_pair(p, "address", address);
    number_pair(p, "total_size", total);
    number_pair(p, "stream", stream);
    text_pair(p, "segment_type", type);
    pickle_text(p, "blocks");
    pickle_begin(p, ']');
}

void pickle_segment_end(made_pickle *p)
{
    pickle_end(p, ']');
    pickle_member(p, '}'); /* blocks */
    pickle_end(p, '}');
    pickle_member(p, ']');
}
