/*
 * theme.c - see theme.h.
 */
#include "theme.h"

const vram_theme vram_dark = {
    .ground = 0x121317,
    .panel = 0x1B1D23,
    .ink = 0xE8E8EA,
    .grey = 0x9A9CA5,
    .line = 0x4A4D58,
    .free = 0x3A3D48,
    .never = 0x202229,
    .accent = 0x56B4E9,
    .alarm = 0xFF6B5E,
    .granted = 0xE69F00,
    .extent = 0x2FBF94,
    .external = 0xDD8FBE,
};

const vram_theme vram_light = {
    .ground = 0xFFFFFF,
    .panel = 0xFFFFFF,
    .ink = 0x1F2024,
    .grey = 0x63656D,
    .line = 0x6F727A,
    .free = 0xFFFFFF,
    .never = 0xE4E5E8,
    .accent = 0x0072B2,
    .alarm = 0xC8402F,
    .granted = 0xB45F06,
    .extent = 0x00795A,
    .external = 0xA0457C,
};
