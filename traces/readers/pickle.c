/*
 * pickle.c - a pickle machine that can only build data.
 *
 * Opcodes that name, call or build objects are refused by name, before anything else is read, so a
 * snapshot cannot run code here whatever it holds. The rest is what CPython (protocols 4 and 5) and
 * PyTorch's C++ writer (protocol 2) emit, and a little more. The opcodes and their arguments:
 * CPython source, Lib/pickletools.py.
 */
#include "pickle.h"

#include <string.h>

enum {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_POP = '0',
    OP_POP_MARK = '1',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_NONE = 'N',
    OP_BINFLOAT = 'G',
    OP_BINUNICODE = 'X',
    OP_EMPTY_LIST = ']',
    OP_APPEND = 'a',
    OP_APPENDS = 'e',
    OP_LIST = 'l',
    OP_EMPTY_DICT = '}',
    OP_DICT = 'd',
    OP_SETITEM = 's',
    OP_SETITEMS = 'u',
    OP_EMPTY_TUPLE = ')',
    OP_TUPLE = 't',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_PROTO = 0x80,
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
    OP_LONG4 = 0x8b,
    OP_SHORT_BINUNICODE = 0x8c,
    OP_BINUNICODE8 = 0x8d,
    OP_MEMOIZE = 0x94,
    OP_FRAME = 0x95,
};

/* What is refused, and why. */
static const struct {
    unsigned char code;
    bool runs_code;
    const char *name;
} refused[] = {
    {'c', true, "GLOBAL"},
    {0x93, true, "STACK_GLOBAL"},
    {'R', true, "REDUCE"},
    {'b', true, "BUILD"},
    {'i', true, "INST"},
    {'o', true, "OBJ"},
    {0x81, true, "NEWOBJ"},
    {0x92, true, "NEWOBJ_EX"},
    {0x82, true, "EXT1"},
    {0x83, true, "EXT2"},
    {0x84, true, "EXT4"},
    {'P', true, "PERSID"},
    {'Q', true, "BINPERSID"},
    {'B', false, "BINBYTES"},
    {'C', false, "SHORT_BINBYTES"},
    {0x8e, false, "BINBYTES8"},
    {0x96, false, "BYTEARRAY8"},
    {0x97, false, "NEXT_BUFFER"},
    {0x98, false, "READONLY_BUFFER"},
    {0x8f, false, "EMPTY_SET"},
    {0x90, false, "ADDITEMS"},
    {0x91, false, "FROZENSET"},
    {'2', false, "DUP"},
    {'F', false, "FLOAT"},
    {'I', false, "INT"},
    {'L', false, "LONG"},
    {'S', false, "STRING"},
    {'T', false, "BINSTRING"},
    {'U', false, "SHORT_BINSTRING"},
    {'V', false, "UNICODE"},
    {'g', false, "GET"},
    {'p', false, "PUT"},
};

static bool refuse(vram_build *build, unsigned char code)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (refused[i].code == code && refused[i].runs_code)
            return build_fail(build,
                              "the opcode %s could run code: refused. A memory snapshot is plain "
                              "data and needs none",
                              refused[i].name);
        else if (refused[i].code == code)
            return build_fail(build, "the opcode %s, which no memory snapshot holds, is refused",
                              refused[i].name);
    return build_fail(build, "0x%02x is not an opcode of pickle", code);
}

/* ---- arguments ---- */

/*
 * Where the machine is. It lives in registers: kept in *input, each opcode would wait twice for its
 * own last store. input->at is the opcode in hand, for messages.
 */
typedef struct cursor {
    const char *at, *end;
} cursor;

#define INLINE static inline __attribute__((always_inline))

static bool refill(vram_build *build, const char *at, size_t bytes)
{
    vram_input *input = build->input;
    input->at = at;
    if (!vram_input_need(input, bytes, build->error))
        return false;
    return (size_t)(input->end - input->at) >= bytes ||
           build_fail(build, "the file ends in the middle: %zu bytes are needed, %zu are left",
                      bytes, (size_t)(input->end - input->at));
}

/* `bytes` visible bytes at the cursor. */
INLINE bool need(vram_build *build, cursor *c, size_t bytes)
{
    if ((size_t)(c->end - c->at) >= bytes)
        return true;
    const bool there = refill(build, c->at, bytes);
    c->at = build->input->at;
    c->end = build->input->end;
    return there;
}

/* An unsigned little-endian number of 1 to 8 bytes. */
INLINE bool take_number(vram_build *build, cursor *c, size_t bytes, uint64_t *number)
{
    if (!need(build, c, bytes))
        return false;
    uint64_t value = 0;
    memcpy(&value, c->at, bytes);
    c->at += bytes;
    *number = value;
    return true;
}

INLINE bool push_int(vram_build *build, cursor *c, size_t bytes)
{
    uint64_t number;
    if (!take_number(build, c, bytes, &number))
        return false;
    if (bytes == 4)
        number = (uint64_t)(int64_t)(int32_t)(uint32_t)number;
    return build_push_number(build, number);
}

/* Digits in two's complement; what does not fit 64 bits, signed or unsigned, is refused. */
static bool push_digits(vram_build *build, const unsigned char *digits, size_t bytes)
{
    const unsigned char sign = bytes > 0 && digits[bytes - 1] >= 0x80 ? 0xff : 0;
    uint64_t number = sign ? UINT64_MAX : 0;
    for (size_t i = 0; i < bytes; i++) {
        if (i >= 8 && digits[i] != sign)
            return build_fail(build, "an integer of more than 64 bits");
        if (i < 8)
            number = (number & ~(UINT64_C(0xff) << (8 * i))) | (uint64_t)digits[i] << (8 * i);
    }
    return build_push_number(build, number);
}

/* LONG1 and LONG4. Addresses and times take 6 and 7 bytes, which one load of 8 serves. */
INLINE bool push_long(vram_build *build, cursor *c, size_t size_bytes)
{
    enum { LONGEST = 1024 };
    uint64_t bytes;
    if (!take_number(build, c, size_bytes, &bytes))
        return false;
    if (bytes - 1 < 8 && (size_t)(c->end - c->at) >= 8) {
        uint64_t digits;
        memcpy(&digits, c->at, 8);
        c->at += bytes;
        const unsigned unused = 64 - 8 * (unsigned)bytes;
        return build_push_number(build, (uint64_t)((int64_t)(digits << unused) >> unused));
    }
    if (bytes > LONGEST)
        return build_fail(build, "an integer of %llu bytes", (unsigned long long)bytes);
    if (!need(build, c, (size_t)bytes))
        return false;
    const unsigned char *digits = (const unsigned char *)c->at;
    c->at += bytes;
    return push_digits(build, digits, (size_t)bytes);
}

INLINE bool push_float(vram_build *build, cursor *c)
{
    uint64_t big_endian;
    if (!take_number(build, c, 8, &big_endian))
        return false;
    const uint64_t bits = __builtin_bswap64(big_endian);
    build_value value = {.type = BUILD_FLOAT, .count = 1};
    memcpy(&value.real, &bits, sizeof bits);
    return build_push(build, value);
}

INLINE bool push_text(vram_build *build, cursor *c, size_t size_bytes)
{
    uint64_t bytes;
    if (!take_number(build, c, size_bytes, &bytes))
        return false;
    if (bytes > UINT32_MAX)
        return build_fail(build, "a text of %llu bytes", (unsigned long long)bytes);
    if (!need(build, c, (size_t)bytes))
        return false;
    const char *text = c->at;
    c->at += bytes;
    return build_push_text(build, text, (size_t)bytes);
}

INLINE bool push_scalar(vram_build *build, build_type type, uint64_t number)
{
    return build_push(build, (build_value){.type = type, .count = 1, .number = number});
}

INLINE bool recall(vram_build *build, cursor *c, size_t size_bytes)
{
    uint64_t slot;
    return take_number(build, c, size_bytes, &slot) && build_recall(build, slot);
}

INLINE bool memoize(vram_build *build, cursor *c, size_t size_bytes)
{
    uint64_t slot;
    return take_number(build, c, size_bytes, &slot) && build_memoize(build, slot);
}

INLINE bool check_protocol(vram_build *build, cursor *c)
{
    uint64_t protocol;
    if (!take_number(build, c, 1, &protocol))
        return false;
    return (protocol >= 2 && protocol <= 5) ||
           build_fail(build, "pickle protocol %u; vramlab reads 2 to 5", (unsigned)protocol);
}

/* Frames only tell how far a reader may look ahead. */
INLINE bool skip_frame(vram_build *build, cursor *c)
{
    uint64_t bytes;
    return take_number(build, c, 8, &bytes);
}

INLINE bool run(vram_build *build, cursor *c, unsigned char code)
{
    switch (code) {
    case OP_BINGET:
        return recall(build, c, 1);
    case OP_LONG_BINGET:
        return recall(build, c, 4);
    case OP_MEMOIZE:
        return build_memoize(build, build->memo_count);
    case OP_BINPUT:
        return memoize(build, c, 1);
    case OP_LONG_BINPUT:
        return memoize(build, c, 4);
    case OP_SHORT_BINUNICODE:
        return push_text(build, c, 1);
    case OP_BINUNICODE:
        return push_text(build, c, 4);
    case OP_BINUNICODE8:
        return push_text(build, c, 8);
    case OP_BININT1:
        return push_int(build, c, 1);
    case OP_BININT2:
        return push_int(build, c, 2);
    case OP_BININT:
        return push_int(build, c, 4);
    case OP_LONG1:
        return push_long(build, c, 1);
    case OP_LONG4:
        return push_long(build, c, 4);
    case OP_BINFLOAT:
        return push_float(build, c);
    case OP_NONE:
        return push_scalar(build, BUILD_NONE, 0);
    case OP_NEWTRUE:
        return push_scalar(build, BUILD_BOOL, 1);
    case OP_NEWFALSE:
        return push_scalar(build, BUILD_BOOL, 0);
    case OP_MARK:
        return build_mark(build);
    case OP_EMPTY_DICT:
        return build_push_node(build, BUILD_DICT);
    case OP_SETITEMS:
        return build_set_all(build);
    case OP_SETITEM:
        return build_set(build);
    case OP_DICT:
        return build_collect_marked(build, BUILD_DICT);
    case OP_EMPTY_LIST:
    case OP_EMPTY_TUPLE:
        return build_push_node(build, BUILD_LIST);
    case OP_APPENDS:
        return build_append_all(build);
    case OP_APPEND:
        return build_append(build);
    case OP_LIST:
    case OP_TUPLE:
        return build_collect_marked(build, BUILD_LIST);
    case OP_TUPLE1:
        return build_collect(build, 1);
    case OP_TUPLE2:
        return build_collect(build, 2);
    case OP_TUPLE3:
        return build_collect(build, 3);
    case OP_POP:
        return build_pop(build);
    case OP_POP_MARK:
        return build_pop_mark(build);
    case OP_PROTO:
        return check_protocol(build, c);
    case OP_FRAME:
        return skip_frame(build, c);
    default:
        return refuse(build, code);
    }
}

bool vram_pickle_read(vram_build *build)
{
    vram_input *input = build->input;
    cursor c = {.at = input->at, .end = input->end};
    for (;;) {
        if (!need(build, &c, 1))
            return false;
        input->at = c.at;
        const unsigned char code = (unsigned char)*c.at++;
        if (code == OP_STOP)
            break;
        if (!run(build, &c, code))
            return false;
    }
    return (build->stack_count == 1 && build->mark_count == 0) ||
           build_fail(build, "the pickle ends with %zu values; one is expected",
                      build->stack_count);
}
