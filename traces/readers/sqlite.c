/*
 * sqlite.c - traces in SQLite files: Nsight Systems exports, and Umpire's replay logs.
 *
 *     CUDA_GPU_MEMORY_USAGE_EVENTS   start (ns), address, bytes, memoryOperationType (0 allocation,
 *                                    1 free), memKind, deviceId, streamId, ...   nsys export
 *     EVENTS                         EVENT: a JSON text, as in the log           Umpire
 *
 * The file is opened read-only, its schema is not trusted (nothing but plain tables is read), and a
 * query that takes far more steps than a file of its size can need is stopped.
 *
 * Of Nsight's events those of the chosen device in device memory (memKind 2) are read, in order of
 * time. An address is told apart from the same in another process or context. NVIDIA, "Nsight
 * Systems: SQLite schema reference".
 */
#include "formats.h"
#include "umpire.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum { VALUE_MAX_BYTES = 1 << 24, TICK_STEPS = 1 << 16, STEPS_PER_BYTE = 64, FREE_TICKS = 1 << 10 };
enum { DEVICE_MEMORY = 2 };

typedef struct database {
    sqlite3 *file;
    sqlite3_stmt *rows;
    char *bytes; /* a file that was packed, whole */
    uint64_t ticks, ticks_allowed;
    bool nsight;
    vram_umpire umpire;
    vram_names places; /* Nsight: process, context and address -> number */
} database;

static int sqlite_probe(const char *head, size_t head_bytes)
{
    return head_bytes >= 16 && memcmp(head, "SQLite format 3", 16) == 0 ? 2 : 0;
}

static bool fail_sqlite(vram_source *source, vram_error *error)
{
    const database *state = source->state;
    vram_source_fail(source, error, "SQLite: %s", sqlite3_errmsg(state->file));
    return false;
}

/* ---- opening ---- */

static int tick(void *context)
{
    database *state = context;
    return ++state->ticks > state->ticks_allowed;
}

/* The whole of a packed file, in memory that SQLite may free. */
static bool unpack(vram_source *source, sqlite3_int64 *bytes, vram_error *error)
{
    database *state = source->state;
    vram_input *input = source->input;
    size_t want = 1 << 20, have = 0;
    do {
        want *= 2;
        if (!vram_input_need(input, want, error))
            return false;
        have = (size_t)(input->end - input->at);
    } while (have == want);
    state->bytes = malloc(have + 1);
    if (state->bytes == NULL)
        return vram_fail(error, "%s: out of memory", source->path);
    memcpy(state->bytes, input->at, have);
    *bytes = (sqlite3_int64)have;
    return true;
}

static uint64_t big_endian(const unsigned char *bytes, size_t count)
{
    uint64_t number = 0;
    for (size_t i = 0; i < count; i++)
        number = number << 8 | bytes[i];
    return number;
}

/* SQLite reads what is missing at the end of a file as zeros. The head says how long it should be,
 * when the numbers of its last change agree. */
static bool is_whole(vram_source *source, const char *head, uint64_t file_bytes, vram_error *error)
{
    enum { HEAD = 100, PAGE_SIZE = 16, CHANGE = 24, PAGES = 28, CHANGE_AGAIN = 92 };
    const unsigned char *at = (const unsigned char *)head;
    uint64_t page_bytes = file_bytes >= HEAD ? big_endian(at + PAGE_SIZE, 2) : 0;
    page_bytes = page_bytes == 1 ? 65536 : page_bytes;
    const uint64_t expected = file_bytes >= HEAD ? page_bytes * big_endian(at + PAGES, 4) : HEAD;
    const bool agree = file_bytes < HEAD || memcmp(at + CHANGE, at + CHANGE_AGAIN, 4) == 0;
    if (!agree || file_bytes >= expected)
        return true;
    vram_source_fail(source, error, "SQLite: the file is cut: %" PRIu64 " of %" PRIu64 " bytes",
                     file_bytes, expected);
    return false;
}

static bool open_file(vram_source *source, vram_error *error)
{
    database *state = source->state;
    vram_input *input = source->input;
    if (!vram_input_is_gzip(input))
        return vram_input_need(input, 100, error) &&
               is_whole(source, input->at, vram_input_file_bytes(input), error) &&
               (sqlite3_open_v2(source->path, &state->file,
                                SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK ||
                fail_sqlite(source, error));
    sqlite3_int64 bytes = 0;
    if (sqlite3_open_v2(":memory:", &state->file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        return fail_sqlite(source, error);
    return unpack(source, &bytes, error) &&
           is_whole(source, state->bytes, (uint64_t)bytes, error) &&
           (sqlite3_deserialize(state->file, "main", (unsigned char *)state->bytes, bytes, bytes,
                                SQLITE_DESERIALIZE_READONLY) == SQLITE_OK ||
            fail_sqlite(source, error));
}

static void distrust(vram_source *source)
{
    database *state = source->state;
    sqlite3_db_config(state->file, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(state->file, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(state->file, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(state->file, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_limit(state->file, SQLITE_LIMIT_LENGTH, VALUE_MAX_BYTES);
    sqlite3_exec(state->file, "PRAGMA cell_size_check=ON", NULL, NULL, NULL);
    state->ticks_allowed =
        FREE_TICKS + vram_input_file_bytes(source->input) * STEPS_PER_BYTE / TICK_STEPS;
    sqlite3_progress_handler(state->file, TICK_STEPS, tick, state);
}

static bool has_table(vram_source *source, const char *name, bool *has, vram_error *error)
{
    database *state = source->state;
    sqlite3_stmt *query;
    if (sqlite3_prepare_v2(state->file,
                           "SELECT 1 FROM sqlite_master WHERE type='table' AND name=?"
                           " AND sql NOT LIKE 'CREATE VIRTUAL%'",
                           -1, &query, NULL) != SQLITE_OK)
        return fail_sqlite(source, error);
    sqlite3_bind_text(query, 1, name, -1, SQLITE_STATIC);
    const int answer = sqlite3_step(query);
    *has = answer == SQLITE_ROW;
    sqlite3_finalize(query);
    return answer == SQLITE_ROW || answer == SQLITE_DONE || fail_sqlite(source, error);
}

static bool choose_query(vram_source *source, vram_error *error)
{
    static const char nsight[] =
        "SELECT start, address, bytes, memoryOperationType, streamId, globalPid, contextId"
        " FROM CUDA_GPU_MEMORY_USAGE_EVENTS WHERE deviceId=?1 AND memKind=?2 ORDER BY start, rowid";
    database *state = source->state;
    bool umpire;
    if (!has_table(source, "CUDA_GPU_MEMORY_USAGE_EVENTS", &state->nsight, error) ||
        !has_table(source, "EVENTS", &umpire, error))
        return false;
    if (!state->nsight && !umpire) {
        vram_source_fail(source, error,
                         "an SQLite file without a table that vramlab knows; Nsight Systems writes "
                         "CUDA_GPU_MEMORY_USAGE_EVENTS when it runs with --cuda-memory-usage=true");
        return false;
    }
    if (sqlite3_prepare_v2(state->file,
                           state->nsight ? nsight : "SELECT EVENT FROM EVENTS ORDER BY rowid", -1,
                           &state->rows, NULL) != SQLITE_OK)
        return fail_sqlite(source, error);
    if (state->nsight) {
        sqlite3_bind_int64(state->rows, 1, source->options->device);
        sqlite3_bind_int64(state->rows, 2, DEVICE_MEMORY);
    }
    source->info->format = state->nsight ? "nsight-sqlite" : "umpire-sqlite";
    source->info->unit_bytes = state->nsight ? 512 : 16;
    source->info->has_clock = true;
    return true;
}

static void sqlite_close(vram_source *source)
{
    database *state = source->state;
    sqlite3_finalize(state->rows);
    sqlite3_close(state->file);
    vram_names_free(&state->places);
    free(state->bytes);
    free(state);
    source->state = NULL;
}

static bool sqlite_open(vram_source *source, vram_error *error)
{
    database *state = calloc(1, sizeof *state);
    if (state == NULL)
        return vram_fail(error, "%s: out of memory", source->path);
    source->state = state;
    source->record_name = "row";
    bool opened = open_file(source, error);
    if (opened) {
        distrust(source);
        opened = choose_query(source, error);
    }
    if (!opened)
        sqlite_close(source);
    return opened;
}

/* ---- rows ---- */

static bool take_nsight(vram_source *source, vram_raw *event, vram_error *error)
{
    database *state = source->state;
    sqlite3_stmt *rows = state->rows;
    const uint64_t place[3] = {(uint64_t)sqlite3_column_int64(rows, 5),
                               (uint64_t)sqlite3_column_int64(rows, 6),
                               (uint64_t)sqlite3_column_int64(rows, 1)};
    uint32_t number;
    if (!vram_names_intern(&state->places, (const char *)place, sizeof place, &number)) {
        vram_source_fail(source, error, "out of memory");
        return false;
    }
    const int operation = sqlite3_column_int(rows, 3);
    *event = (vram_raw){.kind = operation == 0   ? VRAM_EVENT_ALLOC
                                : operation == 1 ? VRAM_EVENT_FREE
                                                 : VRAM_EVENT_KINDS, /* counted as skipped */
                        .id = number,
                        .null_id = place[2] == 0,
                        .size_bytes = (uint64_t)sqlite3_column_int64(rows, 2),
                        .time_ns = (uint64_t)sqlite3_column_int64(rows, 0),
                        .stream = (uint64_t)sqlite3_column_int64(rows, 4)};
    return true;
}

/* The JSON text of a row; *is_event is false when it is no allocation. */
static bool take_umpire(vram_source *source, vram_raw *event, bool *is_event, vram_error *error)
{
    database *state = source->state;
    const char *text = (const char *)sqlite3_column_text(state->rows, 0);
    const int bytes = sqlite3_column_bytes(state->rows, 0);
    *is_event = false;
    if (text == NULL)
        return true;
    vram_input input = vram_input_over(text, (size_t)bytes, source->path);
    vram_json json;
    vram_json_start(&json, &input);
    const vram_step step = vram_umpire_read(source, &state->umpire, &json, event, is_event, error);
    vram_json_free(&json);
    return step != VRAM_STEP_ERROR;
}

static vram_step sqlite_next(vram_source *source, vram_raw *event, vram_error *error)
{
    database *state = source->state;
    for (;;) {
        const int answer = sqlite3_step(state->rows);
        if (answer == SQLITE_DONE)
            return VRAM_STEP_END;
        source->record++;
        if (answer == SQLITE_INTERRUPT)
            return vram_source_fail(source, error, "the query takes too long for such a file");
        if (answer != SQLITE_ROW)
            return fail_sqlite(source, error) ? VRAM_STEP_END : VRAM_STEP_ERROR;
        bool is_event = true;
        if (!(state->nsight ? take_nsight(source, event, error)
                            : take_umpire(source, event, &is_event, error)))
            return VRAM_STEP_ERROR;
        if (is_event)
            return VRAM_STEP_EVENT;
    }
}

static bool sqlite_rewind(vram_source *source, vram_error *error)
{
    (void)error;
    database *state = source->state;
    sqlite3_reset(state->rows);
    state->ticks = 0;
    state->umpire = (vram_umpire){0};
    source->record = 0;
    return true;
}

const vram_format vram_format_sqlite = {
    .name = "sqlite",
    .summary = "Nsight Systems SQLite export; Umpire replay log in SQLite",
    .probe = sqlite_probe,
    .open = sqlite_open,
    .next = sqlite_next,
    .rewind = sqlite_rewind,
    .close = sqlite_close,
};
