/*
 * vma_json.c - dumps of the Vulkan and the D3D12 Memory Allocator: a heap at one moment.
 *
 * Wherever the document holds a list "Suballocations" or "DedicatedAllocations", each object of it
 * whose Type is not FREE is a block; the events are their allocations in the order of the document.
 * The name, else the type, becomes the tag. "Total" tells how many there are and how many bytes;
 * that is held against the body.
 */
#include "formats.h"
#include "json.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct vma_json {
    vram_json json;
    uint32_t list_depth;  /* of the objects in the list in hand; 0 outside */
    uint32_t total_depth; /* of the members of "Total"; 0 outside */
    bool ended;
    uint64_t told_blocks, told_bytes; /* by Total; UINT64_MAX when it does not say */
    uint64_t blocks, bytes;
} vma_json;

/* The object in hand. */
typedef struct suballocation {
    uint64_t size_bytes;
    char type[64], name[256];
} suballocation;

static int vma_json_probe(const char *head, size_t head_bytes)
{
    vram_scan scan = scan_over(head, head_bytes);
    while (scan_blanks(&scan) || scan_char(&scan, '\n') || scan_char(&scan, '\r'))
        continue;
    if (scan_done(&scan) || *scan.at != '{')
        return 0;
    const bool two = scan_holds(&scan, "\"Total\"") && scan_holds(&scan, "\"UnusedRanges\"");
    const bool three = scan_holds(&scan, "\"Total\"") && scan_holds(&scan, "\"BlockBytes\"");
    return two || three || scan_holds(&scan, "\"Suballocations\"") ? 2 : 0;
}

static void vma_json_close(vram_source *source)
{
    vma_json *state = source->state;
    vram_json_free(&state->json);
    free(state);
    source->state = NULL;
}

static bool vma_json_open(vram_source *source, vram_error *error)
{
    vma_json *state = calloc(1, sizeof *state);
    if (state == NULL)
        return vram_fail(error, "%s: out of memory", source->path);
    source->state = state;
    state->told_blocks = state->told_bytes = UINT64_MAX;
    vram_json_start(&state->json, source->input);
    source->info->unit_bytes = 256;
    source->record_name = "line";
    return true;
}

static void copy_text(char *to, size_t room, const vram_json *json)
{
    const size_t bytes = json->text_bytes < room - 1 ? json->text_bytes : room - 1;
    memcpy(to, json->text, bytes);
    to[bytes] = '\0';
}

/* One member of the object in hand, whose key was just read. */
static bool take_member(vma_json *state, suballocation *block, vram_error *error)
{
    vram_json *json = &state->json;
    enum {
        OTHER,
        SIZE,
        TYPE,
        NAME
    } key = strcmp(json->text, "Size") == 0   ? SIZE
            : strcmp(json->text, "Type") == 0 ? TYPE
            : strcmp(json->text, "Name") == 0 ? NAME
                                              : OTHER;
    const vram_json_token token = vram_json_next(json, error);
    if (key == SIZE && token == VRAM_JSON_INT)
        block->size_bytes = json->number;
    else if (key == TYPE && token == VRAM_JSON_TEXT)
        copy_text(block->type, sizeof block->type, json);
    else if (key == NAME && token == VRAM_JSON_TEXT)
        copy_text(block->name, sizeof block->name, json);
    return token != VRAM_JSON_ERROR && vram_json_skip(json, token, error);
}

/* The rest of an object of the list. *is_event is false when it is a free range. */
static vram_step take_object(vram_source *source, vram_raw *event, bool *is_event,
                             vram_error *error)
{
    vma_json *state = source->state;
    suballocation block = {0};
    vram_json_token token;
    while ((token = vram_json_next(&state->json, error)) == VRAM_JSON_KEY)
        if (!take_member(state, &block, error))
            return VRAM_STEP_ERROR;
    if (token == VRAM_JSON_ERROR)
        return VRAM_STEP_ERROR;
    *is_event = strcmp(block.type, "FREE") != 0;
    if (!*is_event)
        return VRAM_STEP_EVENT;
    const char *tag = block.name[0] != '\0' ? block.name : block.type;
    event->kind = VRAM_EVENT_ALLOC;
    event->id = state->blocks++;
    event->size_bytes = block.size_bytes;
    state->bytes += block.size_bytes;
    return vram_source_tag(source, scan_over(tag, strlen(tag)), event, error) ? VRAM_STEP_EVENT
                                                                              : VRAM_STEP_ERROR;
}

/* A figure of "Total", in the words of VMA 2 or 3. */
static bool take_total(vma_json *state, vram_error *error)
{
    vram_json *json = &state->json;
    uint64_t *told =
        strcmp(json->text, "Allocations") == 0 || strcmp(json->text, "AllocationCount") == 0
            ? &state->told_blocks
        : strcmp(json->text, "UsedBytes") == 0 || strcmp(json->text, "AllocationBytes") == 0
            ? &state->told_bytes
            : NULL;
    const vram_json_token token = vram_json_next(json, error);
    if (told != NULL && token == VRAM_JSON_INT)
        *told = json->number;
    return token != VRAM_JSON_ERROR && vram_json_skip(json, token, error);
}

/* What a key opens: the list of blocks, or the totals at the top of the document. */
static bool take_key(vma_json *state, vram_error *error)
{
    vram_json *json = &state->json;
    const bool list = strcmp(json->text, "Suballocations") == 0 ||
                      strcmp(json->text, "DedicatedAllocations") == 0;
    const bool total = json->depth == 1 && strcmp(json->text, "Total") == 0;
    if (!list && !total)
        return true;
    const vram_json_token token = vram_json_next(json, error);
    if (list && token == VRAM_JSON_ARRAY)
        state->list_depth = json->depth;
    else if (total && token == VRAM_JSON_OBJECT)
        state->total_depth = json->depth;
    else
        return token != VRAM_JSON_ERROR && vram_json_skip(json, token, error);
    return true;
}

static vram_step finish(vram_source *source, vram_error *error)
{
    vma_json *state = source->state;
    const bool blocks_fit = state->told_blocks == UINT64_MAX || state->told_blocks == state->blocks;
    const bool bytes_fit = state->told_bytes == UINT64_MAX || state->told_bytes == state->bytes;
    state->ended = true;
    if ((!blocks_fit || !bytes_fit) &&
        !vram_source_anomaly(source, VRAM_ANOMALY_HEADER, error,
                             "\"Total\" tells of %" PRIu64 " blocks and %" PRIu64
                             " bytes; there are %" PRIu64 " and %" PRIu64,
                             state->told_blocks, state->told_bytes, state->blocks, state->bytes))
        return VRAM_STEP_ERROR;
    return VRAM_STEP_END;
}

static vram_step vma_json_next(vram_source *source, vram_raw *event, vram_error *error)
{
    vma_json *state = source->state;
    vram_json *json = &state->json;
    while (!state->ended) {
        source->record = json->line;
        const vram_json_token token = vram_json_next(json, error);
        if (token == VRAM_JSON_ERROR)
            return VRAM_STEP_ERROR;
        if (token == VRAM_JSON_END || json->depth == 0)
            return finish(source, error);
        if (json->depth < state->list_depth)
            state->list_depth = 0;
        if (json->depth < state->total_depth)
            state->total_depth = 0;
        bool is_event = false;
        if (token == VRAM_JSON_OBJECT && json->depth == state->list_depth + 1 &&
            state->list_depth > 0) {
            if (take_object(source, event, &is_event, error) == VRAM_STEP_ERROR)
                return VRAM_STEP_ERROR;
        } else if (token == VRAM_JSON_KEY &&
                   !(json->depth == state->total_depth ? take_total(state, error)
                                                       : take_key(state, error))) {
            return VRAM_STEP_ERROR;
        }
        if (is_event)
            return VRAM_STEP_EVENT;
    }
    return VRAM_STEP_END;
}

const vram_format vram_format_vma_json = {
    .name = "vma-json",
    .summary = "Vulkan or D3D12 Memory Allocator dump: one moment",
    .probe = vma_json_probe,
    .open = vma_json_open,
    .next = vma_json_next,
    .close = vma_json_close,
};
