/* kernels.S - the text of kernels.ptx as a string of the program. */
    .section .rodata
    .globl vram_kernels_ptx
    .hidden vram_kernels_ptx
    .type vram_kernels_ptx, @object
vram_kernels_ptx:
    .incbin KERNELS_PTX
    .byte 0
    .size vram_kernels_ptx, . - vram_kernels_ptx
    .section .note.GNU-stack, "", @progbits
