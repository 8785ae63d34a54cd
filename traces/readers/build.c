/* build.c - the value stack, containers and memo of build.h. */
#include "build.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 1000, STACK_FREE = 4096, SPARE_ITEMS = 64 };

bool build_fail(vram_build *build, const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return vram_fail(build->error, "%s: byte %" PRIu64 ": %s", build->input->path,
                     vram_input_position(build->input), message);
}

static bool out_of_memory(vram_build *build)
{
    return build_fail(build, "out of memory");
}

static bool is_record(build_type type)
{
    return type == BUILD_EVENT || type == BUILD_BLOCK || type == BUILD_SEGMENT ||
           type == BUILD_FRAME;
}

/* ---- the stack ---- */

bool build_make_room(vram_build *build)
{
    if (build->stack_count > STACK_FREE + vram_input_position(build->input) / 4)
        return build_fail(build, "nested too deep: %zu values are unfinished", build->stack_count);
    return vram_reserve((void **)&build->stack, &build->stack_capacity, build->stack_count + 1,
                        sizeof *build->stack) ||
           out_of_memory(build);
}

/* Many files write the same text anew for each event, so the last one is tried first. */
bool build_push_text(vram_build *build, const char *text, size_t bytes)
{
    uint32_t index = build->last_text;
    if (vram_names_bytes(&build->names, index) != bytes ||
        memcmp(vram_names_text(&build->names, index), text, bytes) != 0) {
        if (!vram_names_intern(&build->names, text, bytes, &index))
            return out_of_memory(build);
        if (bytes > 0)
            build->last_text = index;
    }
    return build_push(build, (build_value){.type = BUILD_TEXT, .count = 1, .number = index});
}

bool build_push_node(vram_build *build, build_type type)
{
    const bool recycled = build->spare_count > 0;
    uint32_t index;
    if (recycled) {
        index = build->spare_nodes[--build->spare_count];
    } else {
        if (build->node_count >= BUILD_MEMO_INDEX ||
            !vram_reserve((void **)&build->nodes, &build->node_capacity, build->node_count + 1,
                          sizeof *build->nodes))
            return out_of_memory(build);
        index = (uint32_t)build->node_count++;
    }
    build_node *node = &build->nodes[index];
    *node = (build_node){.items = recycled ? node->items : NULL,
                         .capacity = recycled ? node->capacity : 0,
                         .type = (uint8_t)type};
    return build_push(build, (build_value){.type = type, .count = 1, .number = index});
}

/* How many values lie above the topmost mark, or in all. */
static size_t above_mark(const vram_build *build)
{
    const size_t floor = build->mark_count > 0 ? build->marks[build->mark_count - 1] : 0;
    return build->stack_count - floor;
}

static bool need(vram_build *build, size_t values)
{
    return above_mark(build) >= values ||
           build_fail(build, "the stack holds %zu values where %zu are needed", above_mark(build),
                      values);
}

bool build_pop(vram_build *build)
{
    if (!need(build, 1))
        return false;
    build->stack_count--;
    return true;
}

bool build_mark(vram_build *build)
{
    if (build->mark_count >= DEPTH_MAX)
        return build_fail(build, "nested more than %d deep; a snapshot is 7 deep", DEPTH_MAX);
    if (!vram_reserve((void **)&build->marks, &build->mark_capacity, build->mark_count + 1,
                      sizeof *build->marks))
        return out_of_memory(build);
    build->marks[build->mark_count++] = build->stack_count;
    return true;
}

static bool need_mark(vram_build *build)
{
    return build->mark_count > 0 || build_fail(build, "no mark is set");
}

bool build_pop_mark(vram_build *build)
{
    if (!need_mark(build))
        return false;
    build->stack_count = build->marks[--build->mark_count];
    return true;
}

/* ---- containers ---- */

static build_node *node_of(const vram_build *build, const build_value *value, build_type type)
{
    if (value->type != type)
        return NULL;
    build_node *node = &build->nodes[value->number];
    return node->type == type ? node : NULL;
}

build_value build_resolve(const vram_build *build, build_value value)
{
    if (value.type != BUILD_LIST && value.type != BUILD_DICT)
        return value;
    const build_node *node = &build->nodes[value.number];
    if (node->type == BUILD_LIST || node->type == BUILD_DICT)
        return value;
    return (build_value){.type = (build_type)node->type, .count = 1, .number = node->count};
}

const build_value *build_items(const vram_build *build, const build_value *value, size_t *count)
{
    const build_node *node = node_of(build, value, BUILD_LIST);
    if (node == NULL)
        node = node_of(build, value, BUILD_DICT);
    *count = node != NULL ? node->count : 0;
    return node != NULL ? node->items : NULL;
}

/* Most lists are short, so growth starts at two rather than with vram_reserve's sixteen. */
static bool reserve_items(vram_build *build, build_node *node, size_t count)
{
    if (count <= node->capacity)
        return true;
    const size_t twice = node->capacity < 1 ? 2 : (size_t)node->capacity * 2;
    const size_t capacity = count > twice ? count : twice;
    build_value *items =
        capacity < UINT32_MAX / 4 ? realloc(node->items, capacity * sizeof *items) : NULL;
    if (items == NULL)
        return out_of_memory(build);
    node->items = items;
    node->capacity = (uint32_t)capacity;
    return true;
}

/* Whether `next` goes on where the run `last` ends. */
static bool follows(const build_value *last, const build_value *next)
{
    return is_record(last->type) && last->type == next->type && last->type != BUILD_FRAME &&
           last->number + last->count == next->number && next->count < UINT32_MAX - last->count;
}

static bool add_item(vram_build *build, build_node *node, build_value item)
{
    build_value *last = node->count > 0 ? &node->items[node->count - 1] : NULL;
    if (last != NULL && follows(last, &item)) {
        last->count += item.count;
        return true;
    }
    if (node->count == node->capacity && !reserve_items(build, node, node->count + 1u))
        return false;
    node->items[node->count++] = item;
    return true;
}

static void set_memo(vram_build *build, uint32_t slot, build_type type, uint64_t index)
{
    build->memo[slot] = (uint32_t)type << BUILD_MEMO_SHIFT | (uint32_t)index;
}

/* The node was a dictionary or list and is now the record, stack or pool `as`. It is given back,
 * its items kept for the next, when only the memo knew of it. */
static bool turn_node(vram_build *build, uint32_t index, build_value as, bool reuse)
{
    if (as.number > BUILD_MEMO_INDEX)
        return build_fail(build, "more than 2^28 values of one kind");
    build_node *node = &build->nodes[index];
    reuse = reuse && !node->memo_twice;
    if (!reuse || node->capacity > SPARE_ITEMS) {
        free(node->items);
        node->items = NULL;
        node->capacity = 0;
    }
    node->type = (uint8_t)as.type;
    node->count = (uint32_t)as.number;
    if (!reuse)
        return true;
    if (node->memo != 0)
        set_memo(build, node->memo - 1, as.type, as.number);
    if (!vram_reserve((void **)&build->spare_nodes, &build->spare_capacity, build->spare_count + 1,
                      sizeof *build->spare_nodes))
        return out_of_memory(build);
    build->spare_nodes[build->spare_count++] = index;
    return true;
}

bool build_turn_list(vram_build *build, const build_value *list, build_type as, uint32_t index)
{
    return turn_node(build, (uint32_t)list->number,
                     (build_value){.type = as, .count = 1, .number = index}, as == BUILD_POOL);
}

/* A dictionary whose keys are complete enough to tell a record becomes one; *value with it. */
static bool pack(vram_build *build, build_value *value, const build_value *pairs, size_t count,
                 bool reuse)
{
    const build_type kind = build_kind_of(pairs, count);
    if (kind == BUILD_DICT)
        return true;
    build_value record;
    if (!build_new_record(build, kind, pairs, count, &record))
        return false;
    if (!turn_node(build, (uint32_t)value->number, record, reuse))
        return false;
    *value = record;
    return true;
}

/* Packs a dictionary that was filled key by key. */
static bool pack_item(vram_build *build, build_value *item)
{
    const build_node *node = node_of(build, item, BUILD_DICT);
    if (node == NULL) {
        *item = build_resolve(build, *item);
        return true;
    }
    return pack(build, item, node->items, node->count, false);
}

static bool append_items(vram_build *build, const build_value *list, size_t first)
{
    for (size_t i = first; i < build->stack_count; i++) {
        build_value *item = &build->stack[i];
        if (!pack_item(build, item))
            return false;
        build_node *node = node_of(build, list, BUILD_LIST); /* packing may have moved the nodes */
        if (node == NULL)
            return build_fail(build, "something is appended to what is not a list");
        if (!add_item(build, node, *item))
            return false;
    }
    build->stack_count = first;
    return true;
}

bool build_append_all(vram_build *build)
{
    if (!need_mark(build))
        return false;
    const size_t first = build->marks[--build->mark_count];
    if (!need(build, build->stack_count - first + 1))
        return false;
    const build_value list = build->stack[first - 1];
    return append_items(build, &list, first);
}

bool build_append(vram_build *build)
{
    if (!need(build, 2))
        return false;
    const build_value list = build->stack[build->stack_count - 2];
    return append_items(build, &list, build->stack_count - 1);
}

static bool keep_pairs(vram_build *build, build_node *node, const build_value *pairs, size_t count)
{
    if (!reserve_items(build, node, node->count + count))
        return false;
    for (size_t i = 0; i < count; i++)
        node->items[node->count++] = build_resolve(build, pairs[i]);
    return true;
}

/* A finished record joins the run below it, when there is one in the same list. */
static void join_run(vram_build *build)
{
    if (above_mark(build) < 2)
        return;
    build_value *last = &build->stack[build->stack_count - 2];
    if (!follows(last, last + 1))
        return;
    last->count += last[1].count;
    build->stack_count--;
}

/* A dictionary filled at once is packed here; one filled key by key, when it enters a list. */
static bool set_pairs(vram_build *build, size_t first, bool at_once)
{
    build_value *dict = &build->stack[first - 1];
    const build_value *pairs = &build->stack[first];
    const size_t count = build->stack_count - first;
    if (count % 2 != 0)
        return build_fail(build, "a dictionary has a key without a value");
    *dict = build_resolve(build, *dict);
    build_node *node = node_of(build, dict, BUILD_DICT);
    bool set;
    if (is_record(dict->type))
        set = build_amend_record(build, dict, pairs, count);
    else if (node == NULL)
        return build_fail(build, "a key is set in what is not a dictionary");
    else if (at_once && node->count == 0 && build_kind_of(pairs, count) != BUILD_DICT)
        set = pack(build, dict, pairs, count, true);
    else
        set = keep_pairs(build, node, pairs, count);
    build->stack_count = first;
    if (set && is_record(dict->type))
        join_run(build);
    return set;
}

bool build_set_all(vram_build *build)
{
    if (!need_mark(build))
        return false;
    const size_t first = build->marks[--build->mark_count];
    return need(build, build->stack_count - first + 1) && set_pairs(build, first, true);
}

bool build_set(vram_build *build)
{
    return need(build, 3) && set_pairs(build, build->stack_count - 2, false);
}

/* The values from `first` on become one list or dictionary. */
static bool collect(vram_build *build, size_t first, build_type type)
{
    const size_t count = build->stack_count - first;
    if (!build_push_node(build, type))
        return false;
    const build_value made = build->stack[--build->stack_count];
    if (type == BUILD_LIST) {
        if (!append_items(build, &made, first))
            return false;
    } else {
        if (count % 2 != 0)
            return build_fail(build, "a dictionary has a key without a value");
        if (!keep_pairs(build, &build->nodes[made.number], &build->stack[first], count))
            return false;
        build->stack_count = first;
    }
    return build_push(build, made);
}

bool build_collect_marked(vram_build *build, build_type type)
{
    return need_mark(build) && collect(build, build->marks[--build->mark_count], type);
}

bool build_collect(vram_build *build, size_t count)
{
    return need(build, count) && collect(build, build->stack_count - count, BUILD_LIST);
}

/* ---- the memo ---- */

/* What the memo can hold of a value: itself when it is an index, else a node that holds it. */
static bool memo_entry(vram_build *build, const build_value *value, uint32_t slot, build_type *type,
                       uint64_t *index)
{
    *type = value->type;
    *index = value->number + (is_record(value->type) ? value->count - 1 : 0);
    if (value->type == BUILD_LIST || value->type == BUILD_DICT) {
        build_node *node = &build->nodes[value->number];
        node->memo_twice = node->memo_twice || node->memo != 0;
        node->memo = slot + 1;
        return true;
    }
    if (value->type == BUILD_TEXT || value->type == BUILD_STACK || value->type == BUILD_POOL ||
        is_record(value->type))
        return *index <= BUILD_MEMO_INDEX || build_fail(build, "more than 2^28 values of one kind");
    const build_value scalar = *value;
    if (!build_push_node(build, BUILD_LIST))
        return false;
    *type = BUILD_BOX;
    *index = build->stack[--build->stack_count].number;
    return add_item(build, &build->nodes[*index], scalar);
}

bool build_memoize(vram_build *build, uint64_t slot)
{
    if (!need(build, 1))
        return false;
    if (slot >= vram_input_position(build->input) || slot >= UINT32_MAX)
        return build_fail(build, "memo slot %" PRIu64 " in a file that has not had so many bytes",
                          slot);
    if (slot >= build->memo_count) {
        const size_t count = (size_t)slot + 1;
        if (!vram_reserve((void **)&build->memo, &build->memo_capacity, count, sizeof *build->memo))
            return out_of_memory(build);
        memset(build->memo + build->memo_count, 0,
               (count - build->memo_count) * sizeof *build->memo);
        build->memo_count = count;
    }
    build_type type;
    uint64_t index;
    const build_value top = build->stack[build->stack_count - 1];
    if (!memo_entry(build, &top, (uint32_t)slot, &type, &index))
        return false;
    set_memo(build, (uint32_t)slot, type, index);
    return true;
}

bool build_recall_other(vram_build *build, uint64_t slot)
{
    if (slot >= build->memo_count || build->memo[slot] == 0)
        return build_fail(build, "memo slot %" PRIu64 " is empty", slot);
    return build_push(build, build->nodes[build->memo[slot] & BUILD_MEMO_INDEX].items[0]);
}

/* ---- look-ups, start, end ---- */

build_value build_look_up(const vram_build *build, const build_value *dict, const char *key)
{
    const build_node *node = node_of(build, dict, BUILD_DICT);
    for (size_t i = 0; node != NULL && i + 1 < node->count; i += 2)
        if (node->items[i].type == BUILD_TEXT &&
            strcmp(vram_names_text(&build->names, (uint32_t)node->items[i].number), key) == 0)
            return build_resolve(build, node->items[i + 1]);
    return (build_value){.type = BUILD_NONE, .count = 1};
}

static void drop(void **memory)
{
    free(*memory);
    *memory = NULL;
}

void build_give_back(vram_build *build)
{
    for (size_t i = 0; i < build->node_count; i++)
        free(build->nodes[i].items);
    build->node_count = build->memo_count = build->stack_count = 0;
    drop((void **)&build->stack);
    drop((void **)&build->marks);
    drop((void **)&build->nodes);
    drop((void **)&build->spare_nodes);
    drop((void **)&build->memo);
    drop((void **)&build->scratch);
    vram_names_free(&build->contexts);
    vram_names_free(&build->pools);
}

void build_free(vram_build *build)
{
    build_give_back(build);
    free(build->events);
    free(build->blocks);
    free(build->segments);
    vram_names_free(&build->names);
    vram_names_free(&build->frames);
    vram_names_free(&build->stacks);
    *build = (vram_build){0};
}
