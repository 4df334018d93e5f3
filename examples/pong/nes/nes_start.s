; Start of a NES program: the file's header, the machine's reset, and the interrupt at the end of each picture.
; Mapper 0 with 16 KiB of program and 8 KiB of writable tile memory. The picture is drawn by nes_main.c.
        .export __STARTUP__ : absolute = 1
        .export _picture_done
        .import _main, copydata, zerobss
        .import __STACK_START__, __STACK_SIZE__
        .importzp sp

.segment "HEADER"
        .byte "NES", $1A
        .byte 1, 0              ; 16 KiB of program; no tile ROM: tile memory is RAM
        .byte 1, 0              ; two name tables side by side
        .res  8, 0

.segment "ZEROPAGE"
_picture_done:
        .res 1

.segment "STARTUP"
reset:  sei
        cld
        ldx #$FF
        txs
        inx
        stx $2000               ; no interrupts and no picture while we set up
        stx $2001
        stx $4010
        lda #$40
        sta $4017
        bit $2002
warm1:  bit $2002               ; the picture unit is ready after two blanks
        bpl warm1
        txa
clear:  sta $00,x
        sta $0100,x
        sta $0300,x
        sta $0400,x
        sta $0500,x
        sta $0600,x
        sta $0700,x
        inx
        bne clear
        lda #$F8                ; sprites start below the screen
hide:   sta $0200,x
        inx
        bne hide
warm2:  bit $2002
        bpl warm2
        lda #<(__STACK_START__ + __STACK_SIZE__)
        sta sp
        lda #>(__STACK_START__ + __STACK_SIZE__)
        sta sp+1
        jsr zerobss
        jsr copydata
        jsr _main
halt:   jmp halt

; The picture is finished: sprites from page 2, and one for the main loop.
blank:  pha
        lda #0
        sta $2003
        lda #2
        sta $4014
        lda #1
        sta _picture_done
        pla
ignore: rti

.segment "VECTORS"
        .word blank, reset, ignore
