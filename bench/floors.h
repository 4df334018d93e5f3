/* What this core can do at most, measured beside every other figure: arithmetic, and reading memory by size. */
#ifndef EXPHIL_BENCH_FLOORS_H
#define EXPHIL_BENCH_FLOORS_H

#include "harness.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { FLOOR_SIZES = 12 };

typedef struct bench_floors {
    char isa[16]; /* widest that was measured */
    double fma;   /* f32, flop per ns (2 per multiply-add) */
    double fma_avx2;
    double bf16;        /* products of bfloat16 in float; 0: not there */
    double int8;        /* products of bytes in int32, op per ns; 0: not there */
    double exponential; /* e^x of a float by a polynomial of degree 5, per ns */
    double fma_threads; /* of all requested threads together */
    int threads;
    int64_t size[FLOOR_SIZES]; /* bytes, ascending */
    double read[FLOOR_SIZES];  /* bytes per ns */
    double write;              /* storing to memory, bytes per ns */
} bench_floors;

/* Takes about effort_ns of time for each figure. */
void bench_floors_measure(bench_floors *floors, int threads, double effort_ns);
/* Bytes per ns of reading so many bytes again and again. */
double bench_floors_read(const bench_floors *floors, double bytes);

/* A floor to be measured in turn with what it is a floor of. */
enum { FLOOR_NONE, FLOOR_FMA, FLOOR_BF16, FLOOR_INT8, FLOOR_EXP, FLOOR_READ, FLOOR_PASS };
typedef struct
    bench_pass { /* FLOOR_READ: sums count floats of in[0]; FLOOR_PASS: reads all in, writes all out */
    const float *in[4];
    float *out[3];
    int64_t count;
} bench_pass;
/* amount: flop, exponentials or bytes of the measured work; one call of the work does *per_call of it. pass must stay.
 * False: this processor has no such instruction. */
bool bench_floor_work(int kind, bench_pass *pass, bench_work *work, double *per_call);
const char *bench_floor_name(int kind);

json_t *bench_floors_json(const bench_floors *floors);
void bench_floors_print(const bench_floors *floors);

#endif
