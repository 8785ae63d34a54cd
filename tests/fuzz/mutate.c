/*
 * mutate.c - a fuzzer without coverage, for compilers without libFuzzer.
 *
 *     mutate FOLDER COUNT [SEED]
 *
 * Runs each file of the corpus as it is and packed, then COUNT changed ones: a file, changed one to
 * eight times by flips, numbers at their limits, pieces cut, doubled, moved or taken from another
 * file. The same seed gives the same files. An input that fails is left as mutate-crash.bin; one
 * that takes more than ten seconds of the processor's time counts as a hang.
 */
#include "fuzz.h"

#include <vramlab/text.h>

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <zlib.h>

enum { FILES_MAX = 256, INPUT_MAX = 1 << 16, HANG_SECONDS = 10 };

typedef struct bytes {
    uint8_t *data;
    size_t count;
} bytes;

/* There when a sanitizer is. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static bytes corpus[FILES_MAX];
static size_t corpus_count;
static uint8_t input[INPUT_MAX];
static size_t input_count;
static uint64_t random_state;

static uint64_t next_random(void)
{
    return vram_next_random(&random_state);
}

static size_t below(size_t bound)
{
    return bound == 0 ? 0 : (size_t)(next_random() % bound);
}

static void leave_bytes(void)
{
    FILE *const file = fopen("mutate-crash.bin", "wb");
    if (file != NULL) {
        fwrite(input, 1, input_count, file);
        fclose(file);
    }
    fprintf(stderr, "mutate: the input that fails is in mutate-crash.bin (%zu bytes)\n",
            input_count);
}

static void on_signal(int signal_number)
{
    if (signal_number == SIGPROF)
        fprintf(stderr, "mutate: an input takes longer than %d s\n", HANG_SECONDS);
    leave_bytes();
    signal(signal_number, SIG_DFL);
    raise(signal_number == SIGPROF ? SIGABRT : signal_number);
}

static void run_input(void)
{
    const struct itimerval long_since = {.it_value.tv_sec = HANG_SECONDS}, never = {0};
    setitimer(ITIMER_PROF, &long_since, NULL);
    LLVMFuzzerTestOneInput(input, input_count);
    setitimer(ITIMER_PROF, &never, NULL);
}

/* ---- the corpus ---- */

static bool read_file(const char *path)
{
    FILE *const file = fopen(path, "rb");
    if (file == NULL)
        return false;
    bytes *one = &corpus[corpus_count];
    one->data = malloc(INPUT_MAX);
    one->count = one->data != NULL ? fread(one->data, 1, INPUT_MAX, file) : 0;
    fclose(file);
    corpus_count++;
    return one->data != NULL;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool read_corpus(const char *folder)
{
    struct dirent **names;
    const int count =
        scandir(folder, &names, is_visible, alphasort); /* the same order everywhere */
    if (count <= 0)
        return false;
    bool read = true;
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        read = read && corpus_count < FILES_MAX && read_file(path);
        free(names[i]);
    }
    free(names);
    return read;
}

/* ---- changes ---- */

static void set_number(size_t at)
{
    static const uint64_t limits[] = {0,          1,         0x7f,      0x80,       0xff,
                                      0x7fff,     0x8000,    0xffff,    0x7fffffff, 0x80000000,
                                      0xffffffff, INT64_MAX, UINT64_MAX};
    const uint64_t number = limits[below(sizeof limits / sizeof limits[0])];
    const size_t width = (size_t)1 << below(4);
    for (size_t i = 0; i < width && at + i < input_count; i++)
        input[at + i] = (uint8_t)(number >> (8 * i));
}

static void set_digits(size_t at)
{
    static const char *const texts[] = {"0",
                                        "-1",
                                        "9",
                                        "18446744073709551615",
                                        "4611686018427387903",
                                        "99999999999999999999",
                                        "0x",
                                        "1e9",
                                        "\"",
                                        "\n",
                                        ",",
                                        "{"};
    const char *text = texts[below(sizeof texts / sizeof texts[0])];
    for (size_t i = 0; text[i] != '\0' && at + i < input_count; i++)
        input[at + i] = (uint8_t)text[i];
}

static void cut(size_t at, size_t count)
{
    if (count > input_count - at)
        count = input_count - at;
    memmove(input + at, input + at + count, input_count - at - count);
    input_count -= count;
}

static void insert(size_t at, const uint8_t *from, size_t count)
{
    if (count > INPUT_MAX - input_count)
        count = INPUT_MAX - input_count;
    uint8_t copy[256];
    if (count > sizeof copy)
        count = sizeof copy;
    memcpy(copy, from, count);
    memmove(input + at + count, input + at, input_count - at);
    memcpy(input + at, copy, count);
    input_count += count;
}

static void splice(size_t at)
{
    const bytes *other = &corpus[below(corpus_count)];
    if (other->count == 0)
        return;
    const size_t from = below(other->count);
    insert(at, other->data + from, 1 + below(other->count - from));
}

static void change(void)
{
    if (input_count == 0) {
        splice(0);
        return;
    }
    const size_t at = below(input_count);
    switch (below(8)) {
    case 0:
        input[at] ^= (uint8_t)(1u << below(8));
        break;
    case 1:
        input[at] = (uint8_t)next_random();
        break;
    case 2:
        set_number(at);
        break;
    case 3:
        set_digits(at);
        break;
    case 4:
        cut(at, 1 + below(16));
        break;
    case 5:
        insert(at, input + at, 1 + below(input_count - at));
        break;
    case 6:
        splice(at);
        break;
    default:
        cut(at, below(2) ? input_count : 1 + below(input_count));
        break;
    }
}

/* The input folded by gzip, when that fits. */
static void pack(void)
{
    static uint8_t packed[INPUT_MAX];
    z_stream stream = {.next_in = input,
                       .avail_in = (uInt)input_count,
                       .next_out = packed,
                       .avail_out = INPUT_MAX};
    if (deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return;
    const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    if (whole) {
        input_count = INPUT_MAX - stream.avail_out;
        memcpy(input, packed, input_count);
    }
    deflateEnd(&stream);
}

static void take(size_t i)
{
    input_count = corpus[i].count;
    memcpy(input, corpus[i].data, input_count);
}

int main(int count, char **arguments)
{
    if (count < 3 || !read_corpus(arguments[1])) {
        fprintf(stderr, "usage: mutate FOLDER COUNT [SEED]; FOLDER holds 1 to %d files\n",
                FILES_MAX);
        return 2;
    }
    const uint64_t runs = strtoull(arguments[2], NULL, 10);
    random_state = count > 3 ? strtoull(arguments[3], NULL, 10) : 1;
    printf("%s: %zu files, %llu changed ones, seed %llu\n", arguments[1], corpus_count,
           (unsigned long long)runs, (unsigned long long)random_state);
    signal(SIGPROF, on_signal);
    signal(SIGABRT, on_signal);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(leave_bytes);
    for (size_t i = 0; i < corpus_count; i++) {
        take(i);
        run_input();
        pack();
        run_input();
    }
    for (uint64_t i = 0; i < runs; i++) {
        take(below(corpus_count));
        for (size_t changes = 1 + below(8); changes > 0; changes--)
            change();
        if (below(16) == 0)
            pack();
        run_input();
    }
    for (size_t i = 0; i < corpus_count; i++)
        free(corpus[i].data);
    return 0;
}
