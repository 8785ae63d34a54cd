/*
 * file.c - timelines as files (the layout is in timeline.h).
 *
 * Writing streams the arrays as they are, with a running checksum. Reading believes nothing: the
 * head's counts must add up to the file's size to the byte before anything is allocated, the
 * checksum must agree, and then vram_timeline_check replays every operation against the lives, so
 * that whoever uses a loaded timeline may index without asking.
 *
 * Load and save: O(file), no second copy of the arrays.
 */
#include <vramlab/output.h>
#include <vramlab/timeline.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "arrays are written as they are");
_Static_assert(sizeof(vram_op_failure) == 56 && sizeof(vram_op_causes) == 40, "see timeline.h");

static const char magic[8] = {'V', 'R', 'A', 'M', 'T', 'L', '\r', '\n'};
enum { VERSION = 1, HAS_CLOCK = 1, COMPLETE = 2, KNOWN_FLAGS = HAS_CLOCK | COMPLETE };

typedef struct head {
    char magic[8];
    uint32_t version;
    uint32_t flags;
    uint64_t arena_bytes, unit_bytes;
    uint64_t ops, lives, failures, causes, streams, tags, stacks, string_bytes;
} file_head;
_Static_assert(sizeof(file_head) == 96, "no padding in the head");

/* ---- writing ---- */

typedef struct byte_sink {
    FILE *file;
    uint32_t checksum;
} byte_sink;

static void put(byte_sink *self, const void *bytes, size_t count)
{
    if (count == 0)
        return;
    self->checksum = (uint32_t)crc32_z(self->checksum, bytes, count);
    fwrite(bytes, 1, count, self->file); /* vram_output_commit asks ferror */
}

static uint64_t bytes_of_texts(char *const *texts, size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += strlen(texts[i]) + 1;
    return bytes;
}

static void put_texts(byte_sink *self, char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put(self, texts[i], strlen(texts[i]) + 1);
}

bool vram_timeline_save(const vram_timeline *timeline, const char *path, vram_error *error)
{
    vram_output output;
    if (!vram_output_open(&output, path, error))
        return false;
    file_head head = {
        .version = VERSION,
        .flags = (timeline->has_clock ? HAS_CLOCK : 0u) | (timeline->complete ? COMPLETE : 0u),
        .arena_bytes = timeline->arena_bytes,
        .unit_bytes = timeline->unit_bytes,
        .ops = timeline->op_count,
        .lives = timeline->life_count,
        .failures = timeline->failure_count,
        .causes = timeline->cause_count,
        .streams = timeline->stream_count,
        .tags = timeline->tag_count,
        .stacks = timeline->stack_count,
        .string_bytes = bytes_of_texts(&timeline->trace, 1) +
                        bytes_of_texts(&timeline->backend, 1) +
                        bytes_of_texts(timeline->tags, timeline->tag_count) +
                        bytes_of_texts(timeline->stacks, timeline->stack_count),
    };
    memcpy(head.magic, magic, sizeof magic);
    byte_sink sink = {.file = output.file};
    put(&sink, &head, sizeof head);
    put(&sink, timeline->ops, timeline->op_count * sizeof *timeline->ops);
    put(&sink, timeline->lives, timeline->life_count * sizeof *timeline->lives);
    put(&sink, timeline->failures, timeline->failure_count * sizeof *timeline->failures);
    put(&sink, timeline->causes, timeline->cause_count * sizeof *timeline->causes);
    put(&sink, timeline->streams, timeline->stream_count * sizeof *timeline->streams);
    put_texts(&sink, &timeline->trace, 1);
    put_texts(&sink, &timeline->backend, 1);
    put_texts(&sink, timeline->tags, timeline->tag_count);
    put_texts(&sink, timeline->stacks, timeline->stack_count);
    const uint32_t checksum = sink.checksum;
    put(&sink, &checksum, sizeof checksum);
    return vram_output_commit(&output, error);
}

/* ---- reading ---- */

typedef struct byte_source {
    FILE *file;
    const char *path;
    vram_error *error;
    uint32_t checksum;
} byte_source;

static bool get(byte_source *self, void *bytes, size_t count)
{
    if (count == 0)
        return true;
    if (fread(bytes, 1, count, self->file) != count)
        return vram_fail(self->error, "%s: reading failed: %s", self->path,
                         ferror(self->file) ? strerror(errno) : "the file shrank meanwhile");
    self->checksum = (uint32_t)crc32_z(self->checksum, bytes, count);
    return true;
}

/* Allocates and reads an array; `bytes` is known to be within the file's size. */
static bool get_array(byte_source *self, void *array, uint64_t count, size_t element_bytes)
{
    void **const slot = array;
    if (count == 0)
        return true;
    *slot = malloc((size_t)count * element_bytes);
    if (*slot == NULL)
        return vram_fail(self->error, "%s: the host is out of memory", self->path);
    return get(self, *slot, (size_t)count * element_bytes);
}

/* True when the parts that the head tells of fill the file exactly; no sum wraps. */
static bool fills_file(const file_head *head, uint64_t file_bytes)
{
    const struct {
        uint64_t count, element_bytes;
    } parts[] = {
        {head->ops, sizeof(vram_op)},
        {head->lives, sizeof(vram_life)},
        {head->failures, sizeof(vram_op_failure)},
        {head->causes, sizeof(vram_op_causes)},
        {head->streams, sizeof(uint64_t)},
        {head->string_bytes, 1},
    };
    uint64_t left_bytes = file_bytes;
    const uint64_t fixed_bytes = sizeof *head + sizeof(uint32_t);
    if (left_bytes < fixed_bytes)
        return false;
    left_bytes -= fixed_bytes;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].count > left_bytes / parts[i].element_bytes)
            return false;
        left_bytes -= parts[i].count * parts[i].element_bytes;
    }
    return left_bytes == 0;
}

static bool get_head(byte_source *self, file_head *head)
{
    struct stat stat;
    if (fstat(fileno(self->file), &stat) != 0 || !S_ISREG(stat.st_mode))
        return vram_fail(self->error, "%s: not a regular file", self->path);
    const uint64_t file_bytes = (uint64_t)stat.st_size;
    if (fread(head, 1, sizeof *head, self->file) < sizeof head->magic + sizeof head->version ||
        memcmp(head->magic, magic, sizeof magic) != 0)
        return vram_fail(self->error, "%s: not a saved timeline (it does not begin with VRAMTL)",
                         self->path);
    if (head->version != VERSION)
        return vram_fail(self->error,
                         "%s: a timeline of format version %u; this program reads version %u",
                         self->path, head->version, (unsigned)VERSION);
    if (!fills_file(head, file_bytes))
        return vram_fail(self->error,
                         "%s: the timeline is cut off or damaged: its head does not tell of a file "
                         "of %llu bytes",
                         self->path, (unsigned long long)file_bytes);
    if ((head->flags & ~(uint32_t)KNOWN_FLAGS) != 0 || head->ops > UINT32_MAX ||
        head->lives > head->ops || head->failures > head->ops ||
        head->tags + head->stacks > head->string_bytes)
        return vram_fail(self->error, "%s: the timeline's head is damaged", self->path);
    self->checksum = (uint32_t)crc32_z(0, (const unsigned char *)head, sizeof *head);
    return true;
}

/* Takes the next string out of the block of strings. */
static bool take_text(const char **next, const char *end, char **out)
{
    const char *const zero = *next < end ? memchr(*next, '\0', (size_t)(end - *next)) : NULL;
    if (zero == NULL)
        return false;
    *out = strdup(*next);
    *next = zero + 1;
    return *out != NULL;
}

static bool take_texts(const char **next, const char *end, char ***out, size_t *taken, size_t count)
{
    if (count > 0 && (*out = calloc(count, sizeof **out)) == NULL)
        return false;
    while (*taken < count) {
        if (!take_text(next, end, &(*out)[*taken]))
            return false;
        ++*taken;
    }
    return true;
}

static bool get_strings(byte_source *self, const file_head *head, vram_timeline *timeline)
{
    char *strings = NULL;
    bool got = get_array(self, &strings, head->string_bytes, 1);
    if (got) {
        const char *next = strings;
        const char *const end = strings + head->string_bytes;
        got = take_text(&next, end, &timeline->trace) &&
              take_text(&next, end, &timeline->backend) &&
              take_texts(&next, end, &timeline->tags, &timeline->tag_count, head->tags) &&
              take_texts(&next, end, &timeline->stacks, &timeline->stack_count, head->stacks) &&
              next == end;
        if (!got)
            vram_fail(self->error, "%s: the names in the timeline are damaged", self->path);
    }
    free(strings);
    return got;
}

static bool get_all(byte_source *self, const file_head *head, vram_timeline *timeline)
{
    *timeline = (vram_timeline){
        .arena_bytes = head->arena_bytes,
        .unit_bytes = head->unit_bytes,
        .has_clock = (head->flags & HAS_CLOCK) != 0,
        .complete = (head->flags & COMPLETE) != 0,
        .op_count = (size_t)head->ops,
        .life_count = (size_t)head->lives,
        .failure_count = (size_t)head->failures,
        .cause_count = (size_t)head->causes,
        .stream_count = (size_t)head->streams,
    };
    timeline->capacity.ops = timeline->op_count;
    timeline->capacity.lives = timeline->life_count;
    timeline->capacity.failures = timeline->failure_count;
    timeline->capacity.causes = timeline->cause_count;
    timeline->capacity.streams = timeline->stream_count;
    timeline->capacity.tags = (size_t)head->tags;
    timeline->capacity.stacks = (size_t)head->stacks;
    if (!get_array(self, &timeline->ops, head->ops, sizeof *timeline->ops) ||
        !get_array(self, &timeline->lives, head->lives, sizeof *timeline->lives) ||
        !get_array(self, &timeline->failures, head->failures, sizeof *timeline->failures) ||
        !get_array(self, &timeline->causes, head->causes, sizeof *timeline->causes) ||
        !get_array(self, &timeline->streams, head->streams, sizeof *timeline->streams) ||
        !get_strings(self, head, timeline))
        return false;
    const uint32_t computed = self->checksum;
    uint32_t written = 0;
    if (!get(self, &written, sizeof written))
        return false;
    return written == computed ||
           vram_fail(self->error,
                     "%s: the timeline is damaged: its checksum is %08x, should be %08x",
                     self->path, computed, written);
}

static bool sound(byte_source *self, const vram_timeline *timeline)
{
    vram_error wrong;
    return vram_timeline_check(timeline, &wrong) ||
           vram_fail(self->error, "%s: the timeline is damaged: %s", self->path, wrong.text);
}

bool vram_timeline_load(const char *path, vram_timeline *timeline, vram_error *error)
{
    *timeline = (vram_timeline){0};
    byte_source source = {.file = fopen(path, "rb"), .path = path, .error = error};
    if (source.file == NULL)
        return vram_fail(error, "%s: %s", path, strerror(errno));
    file_head head = {0};
    const bool loaded =
        get_head(&source, &head) && get_all(&source, &head, timeline) && sound(&source, timeline);
    fclose(source.file);
    if (!loaded)
        vram_timeline_free(timeline);
    return loaded;
}

bool vram_timeline_is_file(const char *path)
{
    FILE *const file = fopen(path, "rb");
    if (file == NULL)
        return false;
    char begin[sizeof magic];
    const bool is = fread(begin, 1, sizeof begin, file) == sizeof begin &&
                    memcmp(begin, magic, sizeof magic) == 0;
    fclose(file);
    return is;
}
