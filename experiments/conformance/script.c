/*
 * script.c - building a script, and writing it as a trace.
 */
#include "conformance/script.h"

#include <inttypes.h>
#include <string.h>

void script_add(vram_script *self, vram_act added)
{
    if (self->count < SCRIPT_MAX)
        self->acts[self->count++] = added;
}

static void print_alloc(const vram_act *self, FILE *out)
{
    fprintf(out, "a %" PRIu32 " %" PRIu64, self->id, self->size_bytes);
    if (self->stream != 0)
        fprintf(out, " s%u", self->stream);
    if (self->align_bytes != 0)
        fprintf(out, " ^%" PRIu64, self->align_bytes);
}

void act_print(const vram_act *self, FILE *out)
{
    static const char *const forgeries[] = {
        "# release of the null block",
        "# release of a block with an unknown slot, made from",
        "# release of a block with a wrong generation, made from",
        "# release of a block with a wrong offset, made from",
    };
    _Static_assert(sizeof forgeries / sizeof forgeries[0] == FORGERIES, "a text for each forgery");
    switch ((vram_act_kind)self->kind) {
    case ACT_ALLOC:
        print_alloc(self, out);
        break;
    case ACT_RELEASE:
        fprintf(out, "f %" PRIu32, self->id);
        break;
    case ACT_RESIZE:
        fprintf(out, "r %" PRIu32 " %" PRIu64, self->id, self->size_bytes);
        break;
    case ACT_FORGE:
        fputs(forgeries[self->variant], out);
        if (self->variant != FORGE_NULL)
            fprintf(out, " %" PRIu32, self->id);
        break;
    case ACT_USE:
        fprintf(out, "u %" PRIu32 " s%u", self->id, self->stream);
        break;
    case ACT_SYNC:
        if (self->stream == ALL_STREAMS)
            fputs("y", out);
        else
            fprintf(out, "y s%u", self->stream);
        break;
    case ACT_WAIT:
        fprintf(out, "w %" PRIu64 " s%u", self->size_bytes, self->stream);
        break;
    case ACT_MAINTAIN:
        fputs("# upkeep, to its end", out);
        break;
    case ACT_TRIM:
        fputs("# trim", out);
        break;
    case ACT_COMPACT:
        fputs("# compaction: all planned moves are made", out);
        break;
    }
}

static void print_note(const char *note, FILE *out)
{
    while (*note != '\0') {
        const size_t length = strcspn(note, "\n");
        fprintf(out, "# %.*s\n", (int)length, note);
        note += length + (note[length] == '\n');
    }
}

void script_print(const vram_script *self, const char *note, uint32_t marked, FILE *out)
{
    fputs("vramlab trace 1\n", out);
    print_note(note, out);
    if (self->unit_bytes != 0)
        fprintf(out, "unit %" PRIu64 "\n", self->unit_bytes);
    for (uint32_t i = 0; i < self->count; i++) {
        act_print(&self->acts[i], out);
        fputs(i == marked ? "  # <- here\n" : "\n", out);
    }
}
