/*
 * csv.h - fields of a line, separated by commas, and columns by name.
 *
 * Blanks around a field and double quotes around it are dropped; a comma inside quotes does not
 * separate. Fields beyond the last place are left out.
 */
#ifndef VRAMLAB_READERS_CSV_H
#define VRAMLAB_READERS_CSV_H

#include "scan.h"

enum { VRAM_CSV_FIELDS = 64, VRAM_CSV_NONE = VRAM_CSV_FIELDS };

typedef struct vram_csv {
    vram_scan fields[VRAM_CSV_FIELDS];
    size_t count;
} vram_csv;

void vram_csv_split(vram_scan line, vram_csv *csv);

/* The place of the first of the names (separated by '|') in a header, whatever the letters' case;
 * VRAM_CSV_NONE when none is there. */
size_t vram_csv_column(const vram_csv *header, const char *names);

/* The field, or an empty one when the line is shorter. */
vram_scan vram_csv_field(const vram_csv *csv, size_t place);

#endif
