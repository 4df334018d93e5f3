# Entry, and what the machine runs 60 times a second. The DOL header, which the loader reads, stands in front: the linked image
# is the file. A DOL has up to 7 pieces of code and 11 of data; this one has a single piece of code, which holds all.
    .section .header, "a"
    .long 0x100                 # place of the first piece in the file
    .fill 17, 4, 0
    .long 0x80004000            # where it belongs
    .fill 17, 4, 0
    .long code_bytes            # how long it is (gamecube.ld)
    .fill 17, 4, 0
    .long 0, 0                  # memory to clear: main does it
    .long start
    .fill 7, 4, 0

    .section .entry, "ax"
    .globl start
start:
    lis %r1, 0x8070             # stack, grows down from 7 MiB
    li %r0, 0
    stw %r0, 0(%r1)
    bl main
0:  b 0b

# Copied to the vector of external interrupts, 0x500, of which only the video interface sends any. Counts a field and tells the
# video interface that it was seen. Data translation is switched on because without it the machine would cache its registers.
    .globl retrace_vector, retrace_vector_end
retrace_vector:
    mtsprg 0, %r3
    mtsprg 1, %r4
    mfmsr %r4
    ori %r4, %r4, 0x10
    mtmsr %r4
    isync
    lis %r3, 0xCC00
    lwz %r4, 0x2030(%r3)
    clrlwi %r4, %r4, 1
    stw %r4, 0x2030(%r3)        # the first field ...
    lwz %r4, 0x2034(%r3)
    clrlwi %r4, %r4, 1
    stw %r4, 0x2034(%r3)        # ... and the second
    lis %r3, 0x8030
    lwz %r4, 0x80(%r3)
    addi %r4, %r4, 1
    stw %r4, 0x80(%r3)          # RETRACES of gamecube_main.c
    mfsprg %r4, 1
    mfsprg %r3, 0
    rfi
retrace_vector_end:
    .section .note.GNU-stack, "", @progbits
