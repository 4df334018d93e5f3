/* The bare recurrent cells and the bare MLP that other libraries have too, out of the library's own operations and
 * without the rest of a policy: what peers are compared with. */
#ifndef EXPHIL_BENCH_CELLS_H
#define EXPHIL_BENCH_CELLS_H

#include "device/backend.h"

#include <stdbool.h>

enum { CELL_LSTM, CELL_GRU, CELL_MLP };

/* lstm, gru: gates = x W^T + b (in -> 4 or 3 hidden), then the recurrent half. mlp: in -> hidden, LayerNorm + SiLU,
 * hidden -> hidden. */
typedef struct bench_cell {
    int kind;
    xph_type weights;
    int64_t in, hidden, rows; /* rows: streams */
    float *w_in, *b_in;       /* [G*hidden, in] */
    float *w_out, *b_out;     /* [G*hidden, hidden] recurrent, or the second layer */
    float *gain, *shift;      /* mlp: of the norm */
    float *x, *state, *y;     /* [rows,in], [rows, 2 or 1 hidden], [rows,hidden] */
    size_t weight_bytes;      /* packed: what one step reads */
    exphil_context *context;
    xph_stream *stream;
    void *packed_in, *packed_out, *scratch_in, *scratch_out;
    float *middle;
    xph_linear_args first, second;
    xph_norm_args norm;
    xph_rnn_args rnn;
    const xph_kernel *first_kernel, *second_kernel, *norm_kernel, *rnn_kernel;
} bench_cell;

/* Weights and inputs are drawn from one stream of small numbers: a cell of the same shape has the same. Memory is the
 * harness's. False with a message on stderr; also for weights that this release has no kernels for. */
bool bench_cell_make(bench_cell *cell, int kind, int64_t in, int64_t hidden, int64_t rows, xph_type weights,
                     const char *isa);
/* One step: reads x, moves state, fills y. */
void bench_cell_step(void *cell, int64_t calls);
void bench_cell_end(bench_cell *cell);
int64_t bench_cell_gates(int kind);

/* A context and a stream of its device. False with a message on stderr. */
bool bench_open(int32_t threads, const char *isa, uint32_t flags, exphil_context **context,
                xph_stream **stream);

#endif
