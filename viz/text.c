/*
 * text.c - lettering by stb_truetype. Glyphs are rendered once for each size and quarter of a pixel
 * and kept in a hash table; kerning pairs likewise.
 */
#include "text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STBTT_STATIC
#define STB_TRUETYPE_IMPLEMENTATION
#include <stb/stb_truetype.h>

extern const unsigned char vram_font_data[];

enum { QUARTERS = 4, FIRST_CAPACITY = 256 };

typedef struct glyph {
    uint64_t key; /* 0: empty */
    int x, y;     /* of the bitmap from the pen on the baseline */
    int width, height;
    double advance;
    unsigned char *bitmap;
} glyph;

typedef struct pair {
    uint64_t key; /* 0: empty */
    int units;
} pair;

struct vram_font {
    stbtt_fontinfo info;
    glyph *glyphs;
    size_t glyph_count, glyph_capacity; /* capacity: a power of two */
    pair *pairs;
    size_t pair_count, pair_capacity;
};

vram_font *vram_font_new(void)
{
    vram_font *const self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->glyphs = calloc(FIRST_CAPACITY, sizeof *self->glyphs);
    self->pairs = calloc(FIRST_CAPACITY, sizeof *self->pairs);
    self->glyph_capacity = self->pair_capacity = FIRST_CAPACITY;
    if (self->glyphs == NULL || self->pairs == NULL ||
        !stbtt_InitFont(&self->info, vram_font_data, 0)) {
        vram_font_free(self);
        return NULL;
    }
    return self;
}

void vram_font_free(vram_font *self)
{
    if (self == NULL)
        return;
    for (size_t i = 0; self->glyphs != NULL && i < self->glyph_capacity; i++)
        free(self->glyphs[i].bitmap);
    free(self->glyphs);
    free(self->pairs);
    free(self);
}

/* ---- the two tables: open addressing, at most half full ---- */

static size_t slot_of(uint64_t key, size_t capacity)
{
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (capacity - 1);
}

static glyph *find_glyph(glyph *glyphs, size_t capacity, uint64_t key)
{
    size_t slot = slot_of(key, capacity);
    while (glyphs[slot].key != 0 && glyphs[slot].key != key)
        slot = (slot + 1) & (capacity - 1);
    return &glyphs[slot];
}

static pair *find_pair(pair *pairs, size_t capacity, uint64_t key)
{
    size_t slot = slot_of(key, capacity);
    while (pairs[slot].key != 0 && pairs[slot].key != key)
        slot = (slot + 1) & (capacity - 1);
    return &pairs[slot];
}

static bool grow_glyphs(vram_font *self)
{
    const size_t capacity = self->glyph_capacity * 2;
    glyph *const grown = calloc(capacity, sizeof *grown);
    if (grown == NULL)
        return false;
    for (size_t i = 0; i < self->glyph_capacity; i++)
        if (self->glyphs[i].key != 0)
            *find_glyph(grown, capacity, self->glyphs[i].key) = self->glyphs[i];
    free(self->glyphs);
    self->glyphs = grown;
    self->glyph_capacity = capacity;
    return true;
}

static bool grow_pairs(vram_font *self)
{
    const size_t capacity = self->pair_capacity * 2;
    pair *const grown = calloc(capacity, sizeof *grown);
    if (grown == NULL)
        return false;
    for (size_t i = 0; i < self->pair_capacity; i++)
        if (self->pairs[i].key != 0)
            *find_pair(grown, capacity, self->pairs[i].key) = self->pairs[i];
    free(self->pairs);
    self->pairs = grown;
    self->pair_capacity = capacity;
    return true;
}

static double scale_of(const vram_font *self, int size)
{
    return (double)stbtt_ScaleForMappingEmToPixels(&self->info, (float)size);
}

/* NULL when the host is out of memory: the letter is left out. */
static const glyph *glyph_of(vram_font *self, uint32_t letter, int size, int quarter)
{
    const uint64_t key = (uint64_t)letter << 32 | (uint64_t)size << 8 | (uint64_t)quarter << 1 | 1;
    glyph *found = find_glyph(self->glyphs, self->glyph_capacity, key);
    if (found->key == key)
        return found;
    if (2 * (self->glyph_count + 1) > self->glyph_capacity) {
        if (!grow_glyphs(self))
            return NULL;
        found = find_glyph(self->glyphs, self->glyph_capacity, key);
    }
    const float scale = (float)scale_of(self, size);
    const int index = stbtt_FindGlyphIndex(&self->info, (int)letter);
    int advance, bearing, right, bottom;
    glyph made = {.key = key};
    stbtt_GetGlyphHMetrics(&self->info, index, &advance, &bearing);
    made.advance = advance * (double)scale;
    stbtt_GetGlyphBitmapBoxSubpixel(&self->info, index, scale, scale,
                                    (float)quarter / (float)QUARTERS, 0, &made.x, &made.y, &right,
                                    &bottom);
    made.width = right - made.x;
    made.height = bottom - made.y;
    if (made.width > 0 && made.height > 0) {
        made.bitmap = calloc((size_t)made.width, (size_t)made.height);
        if (made.bitmap == NULL)
            return NULL;
        stbtt_MakeGlyphBitmapSubpixel(&self->info, made.bitmap, made.width, made.height, made.width,
                                      scale, scale, (float)quarter / (float)QUARTERS, 0, index);
    }
    self->glyph_count++;
    *found = made;
    return found;
}

/* In font units. */
static int kerning_of(vram_font *self, uint32_t before, uint32_t letter)
{
    const uint64_t key = (uint64_t)before << 32 | letter;
    pair *found = find_pair(self->pairs, self->pair_capacity, key);
    if (found->key == key)
        return found->units;
    const int units = stbtt_GetCodepointKernAdvance(&self->info, (int)before, (int)letter);
    if (2 * (self->pair_count + 1) > self->pair_capacity) {
        if (!grow_pairs(self))
            return units;
        found = find_pair(self->pairs, self->pair_capacity, key);
    }
    self->pair_count++;
    *found = (pair){key, units};
    return units;
}

/* ---- texts ---- */

/* Takes one letter off a UTF-8 text; bytes that are not UTF-8 stand for themselves. */
static uint32_t next_letter(const char **text)
{
    const unsigned char *const at = (const unsigned char *)*text;
    static const struct {
        unsigned char mask, lead;
        int more;
    } forms[] = {{0xe0, 0xc0, 1}, {0xf0, 0xe0, 2}, {0xf8, 0xf0, 3}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if ((at[0] & forms[i].mask) != forms[i].lead)
            continue;
        uint32_t letter = at[0] & (unsigned char)~forms[i].mask;
        int taken = 0;
        while (taken < forms[i].more && (at[taken + 1] & 0xc0) == 0x80)
            letter = letter << 6 | (at[++taken] & 0x3f);
        if (taken == forms[i].more) {
            *text += taken + 1;
            return letter;
        }
    }
    ++*text;
    return at[0];
}

double vram_text_width(vram_font *self, int size, const char *text)
{
    const double scale = scale_of(self, size);
    double width = 0;
    uint32_t before = 0;
    while (*text != '\0') {
        const uint32_t letter = next_letter(&text);
        const glyph *const glyph = glyph_of(self, letter, size, 0);
        width += before != 0 ? kerning_of(self, before, letter) * scale : 0;
        width += glyph != NULL ? glyph->advance : 0;
        before = letter;
    }
    return width;
}

static double start_of(vram_font *self, int size, vram_align align, const char *text)
{
    switch (align) {
    case VRAM_ALIGN_LEFT:
        break;
    case VRAM_ALIGN_CENTRE:
        return vram_text_width(self, size, text) / 2;
    case VRAM_ALIGN_RIGHT:
        return vram_text_width(self, size, text);
    }
    return 0;
}

static void stamp(vram_raster *on, const glyph *glyph, int x, int y, bool upwards,
                  vram_colour colour)
{
    for (int row = 0; row < glyph->height; row++)
        for (int column = 0; column < glyph->width; column++) {
            const uint32_t share = glyph->bitmap[row * glyph->width + column];
            const int along = glyph->x + column;
            const int below = glyph->y + row;
            if (upwards)
                vram_blend(on, x + below, y - along, colour, share);
            else
                vram_blend(on, x + along, y + below, colour, share);
        }
}

/* Sets the letters along a line that begins at pen 0; `upwards` turns it by a quarter. */
static void set_letters(vram_font *self, vram_raster *on, double start, int across, int size,
                        vram_colour colour, bool upwards, const char *text)
{
    const double scale = scale_of(self, size);
    double pen = start;
    uint32_t before = 0;
    while (*text != '\0') {
        const uint32_t letter = next_letter(&text);
        pen += before != 0 ? kerning_of(self, before, letter) * scale : 0;
        const double whole = floor(pen);
        const glyph *const glyph = glyph_of(self, letter, size, (int)((pen - whole) * QUARTERS));
        before = letter;
        if (glyph == NULL)
            continue;
        if (upwards)
            stamp(on, glyph, across, -(int)whole, true, colour);
        else
            stamp(on, glyph, (int)whole, across, false, colour);
        pen += glyph->advance;
    }
}

void vram_text(vram_font *self, vram_raster *on, double x, int y, int size, vram_colour colour,
               vram_align align, const char *text)
{
    set_letters(self, on, x - start_of(self, size, align, text), y, size, colour, false, text);
}

void vram_text_up(vram_font *self, vram_raster *on, int x, double y, int size, vram_colour colour,
                  vram_align align, const char *text)
{
    set_letters(self, on, -y - start_of(self, size, align, text), x, size, colour, true, text);
}

void vram_text_fit(vram_font *self, int size, double width, const char *text, char *out,
                   size_t out_bytes)
{
    static const char ellipsis[] = "\xe2\x80\xa6";
    const size_t whole = strlen(text);
    if (whole < out_bytes && vram_text_width(self, size, text) <= width) {
        memcpy(out, text, whole + 1);
        return;
    }
    size_t kept = whole < out_bytes - sizeof ellipsis ? whole : out_bytes - sizeof ellipsis;
    for (;; kept--) {
        while (kept > 0 && ((unsigned char)text[kept] & 0xc0) == 0x80)
            kept--; /* never within a letter */
        memcpy(out, text, kept);
        memcpy(out + kept, ellipsis, sizeof ellipsis);
        if (kept == 0 || vram_text_width(self, size, out) <= width)
            return;
    }
}
