/* formats.c - the list of formats. The order decides only between equally sure probes. */
#include "formats.h"

const vram_format *const vram_formats[] = {
    &vram_format_native,        &vram_format_pytorch,
    &vram_format_pytorch_json,  &vram_format_rmm_csv,
    &vram_format_rmm_log,       &vram_format_rep,
    &vram_format_minimalloc,    &vram_format_mtrace,
    &vram_format_weealloc,      &vram_format_mallocbench,
    &vram_format_umpire,
#ifdef VRAMLAB_SQLITE
    &vram_format_sqlite,
#endif
    &vram_format_vma_recording, &vram_format_vma_json,
    &vram_format_interval_log,  NULL, /* the end */
};
