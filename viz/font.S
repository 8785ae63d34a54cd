/*
 * font.S - DejaVu Sans, embedded so that pictures need no font where they are made and look the same
 * everywhere. DejaVu is in the public domain where it changes Bitstream Vera, (c) 2003 Bitstream,
 * Inc., whose licence the font carries within; the file is used as Debian ships it.
 */
    .section .rodata
    .balign 16
    .global vram_font_data
    .global vram_font_data_end
    .hidden vram_font_data
    .hidden vram_font_data_end
vram_font_data:
    .incbin VRAMLAB_FONT
vram_font_data_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits
