/* What an operation of table A cannot but do: bytes that it reads and writes, each once, and arithmetic operations. */
#ifndef EXPHIL_BENCH_OP_WORK_H
#define EXPHIL_BENCH_OP_WORK_H

#include "device/backend.h"

typedef struct op_work {
    double bytes, flop; /* a multiply-add is two */
    const char *name;   /* "linear", "scan backward" */
} op_work;

op_work op_work_of(xph_op op, const void *args);

#endif
