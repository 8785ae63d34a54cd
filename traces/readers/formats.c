/* formats.c - the list of formats. The order decides only between equally sure probes. */
#include "formats.h"

const vram_format *const vram_formats[] = {
    &vram_format_native,
    &vram_format_pytorch,
    &vram_format_pytorch_json,
    NULL,
};
