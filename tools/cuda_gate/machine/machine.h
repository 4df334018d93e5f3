/* Warps of machine code for sm_90, run for what they execute and not for what they compute: integers, predicates and jumps as
 * they are, floats unknown. A value is known or not, lane by lane; what depends on an unknown one is unknown. tools/cuda-gate
 * writes what this reads: see main.c. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LANES = 32,
    MOST_WARPS = 32, /* of a block */
    REGISTERS = 320, /* R0..R254, RZ = 255, UR0..UR62 = 256.., URZ = 319 */
    RZ = 255,
    UNIFORM = 256,
    PREDICATES = 16, /* P0..P6, PT = 7, UP0 = 8.., UPT = 15 */
    PT = 7,
    BARRIERS = 16,
    SHARED_BYTES = 228 * 1024,
    LOCAL_BYTES = 4096,
    MOST_OPERANDS = 10,
    WINDOW = 0x01000000 /* upper half of the address of shared memory, as of any memory (SR_SWINHI) */
};
#define ALL 0xffffffffu

/* As Python writes them. */
enum operand_kind { REGISTER, IMMEDIATE, PREDICATE, CONSTANT, MEMORY, TARGET, BARRIER, SPECIAL, IGNORED };
enum {
    NEGATIVE = 1, /* of a register: two's complement; of a float its sign */
    ABSOLUTE = 2,
    INVERTED = 4, /* ~R, !P */
    WIDE = 16,    /* the register of an address is a pair */
    WIDE_UNIFORM = 32
};
typedef struct operand {
    int kind, number, flags;
    int64_t value;      /* immediate, offset, index of the instruction that a target is */
    int uniform, scale; /* of an address: -1 or the uniform register; factor of the register */
} operand;

enum {                   /* of an instruction */
       OP_X = 1 << 0,    /* takes a carry */
       OP_WIDE = 1 << 1, /* pair */
       OP_HI = 1 << 2,
       OP_U32 = 1 << 3, /* unsigned */
       OP_EX = 1 << 4,
       OP_OR = 1 << 5,
       OP_XOR = 1 << 6,
       OP_RIGHT = 1 << 7,
       OP_64 = 1 << 8,
       OP_SIGNED = 1 << 9, /* of a shift, of a narrow load */
       OP_SX32 = 1 << 10,
       OP_ALL = 1 << 11, /* of a vote, of a warp */
       OP_UNIFORM = 1 << 12,
       OP_DIV = 1 << 13,
       OP_SH = 1 << 14,
       OP_STORE = 1 << 15,
       OP_LOAD = 1 << 16,
       OP_BF = 1 << 17
};
enum compare { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };
enum exchange { BY_INDEX, BUTTERFLY, UP, DOWN };

typedef struct instruction {
    int op; /* an entry of MACHINE_OPS */
    int guard, guard_flags;
    int flags;
    int what;  /* comparison, exchange; registers that an unknown result takes; bytes of a lane in memory */
    int rule;  /* of a jump whose predicate is unknown: 1 taken */
    int count; /* operands */
    int64_t offset;
    operand operands[MOST_OPERANDS];
} instruction;

/* What is run, and what only makes its result unknown (UNKNOWN) or has no effect (NOTHING). */
/* clang-format off */
#define MACHINE_OPS(X)                                                                                       \
  X(NOTHING) X(UNKNOWN) X(MOV) X(CS2R) X(IMAD) X(IADD3) X(VIADD) X(IABS) X(MINMAX) X(LEA) X(SHF) X(LOP3)     \
  X(PLOP3) X(PRMT) X(SEL) X(ISETP) X(FSETP) X(DSETP) X(FCHK) X(R2P) X(P2R) X(S2R) X(LDC) X(R2UR) X(VOTE)     \
  X(SHFL) X(FLO) X(BREV) X(POPC) X(I2F) X(F2I) X(RCP) X(GLOBAL) X(SHARED) X(LOCAL) X(COPY) X(MATRIX)         \
  X(BRA) X(BSSY) X(BSYNC) X(BREAK) X(CALL) X(RET) X(EXIT) X(BAR) X(WARPSYNC) X(BMSK) X(SGXT)
/* clang-format on */
#define MACHINE_ENUM(name) DO_##name,
enum { MACHINE_OPS(MACHINE_ENUM) OPS };
#undef MACHINE_ENUM

typedef struct kernel {
    char *name;
    int count, parameters; /* where they begin in constant memory */
    instruction *code;
} kernel;

typedef struct launch {
    const kernel *kernel;
    unsigned grid[3], block[3], cluster;
    size_t argument_bytes;
    unsigned char arguments[4096];
} launch;

/* What one instruction did in a block. */
typedef struct account {
    int64_t executed;
    int64_t reads,
        writes; /* sectors of 32 bytes, each with the first instruction of the block that touched it */
    int64_t new_reads, new_writes; /* of them those that the first block of the list did not touch */
    int64_t sectors;               /* as each warp asked for them */
    int64_t unknown;               /* lanes with an address that is not known */
    int64_t taken, passed;         /* lanes that jumped, or did not, by rule */
    uint64_t least, most;          /* addresses */
} account;

enum group_state { RUNS, AT_SYNC, AT_BARRIER };
typedef struct group {
    uint32_t mask, wanted; /* lanes; at a sync those that must come */
    int at;                /* next instruction */
    int state;
} group;

typedef struct warp {
    uint32_t value[REGISTERS][LANES];
    uint32_t known[REGISTERS]; /* bits of lanes */
    uint32_t predicate[PREDICATES], predicate_known[PREDICATES];
    uint32_t barrier[BARRIERS][LANES];
    unsigned char local[LANES][LOCAL_BYTES];
    unsigned char local_known[LANES][LOCAL_BYTES];
    uint32_t live;
    group groups[LANES];
    int group_count;
    unsigned index; /* in its block */
    int64_t executed;
} warp;

typedef struct machine {
    const launch *launch;
    unsigned block[3];
    account *accounts; /* of this block, by instruction */
    unsigned char shared[SHARED_BYTES], shared_known[SHARED_BYTES];
    warp *warps;
    unsigned warp_count;
    int64_t left; /* instructions until a launch is taken for endless */
} machine;

/* main.c: says what is wrong with an instruction, and ends the program. */
_Noreturn void machine_fail(const machine *m, const instruction *i, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* run.c */
void run_block(machine *m);

/* operands.c. Of lanes whose bit is not in the result's mask the value is undefined. */
uint32_t operand_read(const machine *m, const warp *w, const instruction *i, const operand *o,
                      uint32_t values[LANES]);
uint32_t operand_read_pair(const machine *m, const warp *w, const instruction *i, const operand *o,
                           uint64_t values[LANES]);
uint32_t operand_plain(const machine *m, const warp *w, const operand *o,
                       uint32_t values[LANES]); /* no sign: as a float's bits */
uint32_t predicate_read(const warp *w, const operand *o, uint32_t *known);
void register_write(warp *w, int number, uint32_t lanes, uint32_t known, const uint32_t values[LANES]);
void register_forget(warp *w, int number, int count, uint32_t lanes);
void predicate_write(warp *w, int number, uint32_t lanes, uint32_t known, uint32_t values);

/* integer.c: lanes run it, those of sure certainly. */
void run_integer(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure);
/* logic.c: predicates, choices, and what lanes tell each other. */
void run_logic(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure);
/* memory.c */
void run_memory(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure);
void memory_upload(uint64_t address, size_t bytes, const unsigned char *content);
void memory_begin_launch(void);
void memory_begin_block(int number);

#endif
