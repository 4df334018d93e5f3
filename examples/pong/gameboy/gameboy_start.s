; Start of a Game Boy program: a jump at the entry point, cleared memory, then main. gameboy_rom.c writes the header.
        .module start
        .globl  _main

        .area   _ENTRY (ABS)
        .org    0x0100
        nop
        jp      begin
        .org    0x0150
begin:  di
        ld      sp, #0xDFFE
        ld      hl, #0xC000
        ld      bc, #0x1F00             ; all of it but the stack
clear:  xor     a
        ld      (hl+), a
        dec     bc
        ld      a, b
        or      c
        jr      nz, clear
        call    initialise
        call    _main
halted: jr      halted

        ; The order in which the linker lays out what the compiler makes.
        .area   _HOME
        .area   _CODE
        .area   _INITIALIZER
        .area   _GSINIT
initialise:
        .area   _GSFINAL
        ret
        .area   _DATA
        .area   _INITIALIZED
        .area   _BSEG
        .area   _BSS
        .area   _HEAP
