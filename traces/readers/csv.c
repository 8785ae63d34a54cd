/* csv.c - see csv.h. */
#include "csv.h"

#include <strings.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static vram_scan trim(vram_scan field)
{
    while (field.at < field.end && is_blank(*field.at))
        field.at++;
    while (field.at < field.end && is_blank(field.end[-1]))
        field.end--;
    if (field.end - field.at >= 2 && *field.at == '"' && field.end[-1] == '"') {
        field.at++;
        field.end--;
    }
    return field;
}

void vram_csv_split(vram_scan line, vram_csv *csv)
{
    csv->count = 0;
    const char *start = line.at;
    bool quoted = false;
    for (const char *at = line.at; csv->count < VRAM_CSV_FIELDS; at++) {
        if (at < line.end && *at == '"')
            quoted = !quoted;
        if (at < line.end && (*at != ',' || quoted))
            continue;
        csv->fields[csv->count++] = trim((vram_scan){.at = start, .end = at});
        if (at == line.end)
            break;
        start = at + 1;
    }
}

size_t vram_csv_column(const vram_csv *header, const char *names)
{
    while (*names != '\0') {
        const size_t length = strcspn(names, "|");
        for (size_t i = 0; i < header->count; i++) {
            const vram_scan *field = &header->fields[i];
            if ((size_t)(field->end - field->at) == length &&
                strncasecmp(field->at, names, length) == 0)
                return i;
        }
        names += length + (names[length] == '|');
    }
    return VRAM_CSV_NONE;
}

vram_scan vram_csv_field(const vram_csv *csv, size_t place)
{
    return place < csv->count ? csv->fields[place] : (vram_scan){.at = "", .end = ""};
}
