/* Bare cells: see cells.h. */
#include "cells.h"
#include "harness.h"
#include "say.h"

#include "device/device.h"

int64_t bench_cell_gates(int kind)
{
    return kind == CELL_LSTM ? 4 : kind == CELL_GRU ? 3 : 1;
}

static const xph_backend *backend_of(const bench_cell *c)
{
    return c->stream->device->backend;
}

static bool pack(const bench_cell *c, int64_t in, int64_t out, const float *w, void **packed, size_t *bytes)
{
    xph_linear_pack_args args = {.type = XPH_F32, .weights = c->weights, .in = in, .out = out, .w = w};
    xph_op_info info = {0};
    if (backend_of(c)->query(c->stream->device, XPH_OP_LINEAR_PACK, &args, &info) < 0) return false;
    *packed = args.packed = bench_memory(info.packed_bytes);
    *bytes += info.packed_bytes;
    return backend_of(c)->run(c->stream, info.kernel, &args) >= 0;
}

static bool choose(const bench_cell *c, xph_op op, void *args, const xph_kernel **kernel, void **scratch)
{
    xph_op_info info = {0};
    if (backend_of(c)->query(c->stream->device, op, args, &info) < 0) return false;
    *kernel = info.kernel;
    *scratch = bench_memory(info.scratch_bytes);
    return true;
}

bool bench_open(int32_t threads, const char *isa, uint32_t flags, exphil_context **context,
                xph_stream **stream)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.threads = threads;
    config.cpu_isa = isa;
    if (exphil_context_create(&config, context, &error) < 0) {
        bench_say(NULL, error.message);
        return false;
    }
    xph_device *device = xph_context_backend(*context);
    return device->backend->stream_create(device, flags, stream) >= 0;
}

static void draw(bench_cell *c)
{
    size_t in = (size_t)c->in, hidden = (size_t)c->hidden, rows = (size_t)c->rows;
    size_t out = (size_t)bench_cell_gates(c->kind) * hidden;
    c->w_in = bench_floats(out * in, 0.1f);
    c->b_in = bench_floats(out, 0.1f);
    c->w_out = bench_floats(out * hidden, 0.08f);
    c->b_out = bench_floats(out, 0.1f);
    c->gain = bench_floats(hidden, 0.5f);
    for (size_t i = 0; i < hidden; i++) c->gain[i] += 1;
    c->shift = bench_floats(hidden, 0.1f);
    c->x = bench_floats(rows * in, 1);
    c->state = bench_floats(rows * hidden * (c->kind == CELL_LSTM ? 2 : 1), 0.5f);
    c->y = bench_memory(rows * hidden * sizeof(float));
    c->middle = bench_memory(rows * out * sizeof(float));
}

static bool connect(bench_cell *c)
{
    int64_t hidden = c->hidden, out = bench_cell_gates(c->kind) * hidden;
    c->first =
        (xph_linear_args){.type = XPH_F32, .weights = c->weights, .rows = c->rows, .in = c->in, .out = out};
    c->first.x = c->x, c->first.ldx = c->in;
    c->first.w = c->w_in, c->first.bias = c->b_in;
    c->first.y = c->middle, c->first.ldy = out;
    c->second = (xph_linear_args){
        .type = XPH_F32, .weights = c->weights, .rows = c->rows, .in = hidden, .out = hidden};
    c->second.x = c->middle, c->second.ldx = hidden;
    c->second.w = c->w_out, c->second.bias = c->b_out;
    c->second.y = c->y, c->second.ldy = hidden;
    c->norm = (xph_norm_args){
        .type = XPH_F32, .act = XPH_ACT_SILU, .rows = c->rows, .width = hidden, .epsilon = 1e-5};
    c->norm.x = c->norm.y = c->middle, c->norm.ldx = c->norm.ldy = hidden;
    c->norm.gain = c->gain, c->norm.shift = c->shift;
    c->rnn =
        (xph_rnn_args){.type = XPH_F32, .weights = c->weights, .batch = c->rows, .time = 1, .hidden = hidden};
    c->rnn.kind = c->kind == CELL_GRU ? XPH_RNN_GRU : XPH_RNN_LSTM;
    c->rnn.gx = c->middle, c->rnn.ldgx = out;
    c->rnn.w = c->w_out, c->rnn.bias = c->b_out;
    c->rnn.state_in = c->rnn.state_out = c->state;
    c->rnn.ld_state = hidden * (c->kind == CELL_LSTM ? 2 : 1);
    c->rnn.y = c->y, c->rnn.ldy = hidden;
    if (!pack(c, c->in, out, c->w_in, &c->packed_in, &c->weight_bytes) ||
        !pack(c, hidden, out, c->w_out, &c->packed_out, &c->weight_bytes))
        return false;
    c->first.packed = c->packed_in;
    c->second.packed = c->rnn.packed = c->packed_out;
    if (c->rows == 1 && c->kind != CELL_MLP) c->rnn.input = c->first;
    void *none;
    if (!choose(c, XPH_OP_LINEAR, &c->first, &c->first_kernel, &c->scratch_in)) return false;
    if (c->kind != CELL_MLP) return choose(c, XPH_OP_RNN, &c->rnn, &c->rnn_kernel, &c->rnn.scratch);
    return choose(c, XPH_OP_NORM, &c->norm, &c->norm_kernel, &none) &&
           choose(c, XPH_OP_LINEAR, &c->second, &c->second_kernel, &c->scratch_out);
}

bool bench_cell_make(bench_cell *cell, int kind, int64_t in, int64_t hidden, int64_t rows, xph_type weights,
                     const char *isa)
{
    *cell = (bench_cell){.kind = kind, .weights = weights, .in = in, .hidden = hidden, .rows = rows};
    bench_seed(7);
    if (bench_open(1, isa, XPH_STREAM_INLINE, &cell->context, &cell->stream)) {
        draw(cell);
        if (connect(cell)) return true;
    }
    bench_cell_end(cell);
    return false;
}

void bench_cell_step(void *arg, int64_t calls)
{
    bench_cell *c = arg;
    xph_stream *s = c->stream;
    exphil_status (*run)(xph_stream * stream, const xph_kernel *kernel, const void *args) =
        backend_of(c)->run;
    for (int64_t i = 0; i < calls; i++) {
        c->first.back = c->second.back = c->rnn.input.back = c->rnn.back = !c->rnn.back; /* as sessions do */
        if (!c->rnn.input.rows) (void)run(s, c->first_kernel, &c->first);
        if (c->kind == CELL_MLP) {
            (void)run(s, c->norm_kernel, &c->norm);
            (void)run(s, c->second_kernel, &c->second);
        } else {
            (void)run(s, c->rnn_kernel, &c->rnn);
        }
    }
}

void bench_cell_end(bench_cell *cell)
{
    if (cell->stream) backend_of(cell)->stream_destroy(cell->stream);
    exphil_context_destroy(cell->context);
    cell->stream = NULL;
    cell->context = NULL;
}
