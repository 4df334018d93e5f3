/* LSTM and GRU, forward: the recurrent part. The input parts of the gates are computed before, by one linear
 * over all frames.
 *
 * Every gate starts from its bias and takes h[0], h[1], ... in order, then joins the input part, gate = gx +
 * (bias + W h). Streams go through the frames in blocks. Where the width is a multiple of a panel, the gates
 * of XPH_PANEL units of a strip of streams are computed and used at once: they never leave L1, and the memory
 * of the next strip is prefetched meanwhile. Otherwise, and for weights of fewer bits or one frame of one
 * stream, the product is that of linear, one frame of a block of streams at a time.
 *
 * A single frame also computes the input part here: both weight matrices are then read forwards in one frame
 * and backwards in the next, and each frame begins with what the last one left in the cache. */
#include "cpu/kernels/rnn_parts.h"

enum { P = XPH_PANEL, MOST_GATES = 4, ALONE = VEC_BYTES == 64 ? MOST_GATES : 1 };

/* A block of streams on its way. h, next: [streams, H] before and after the frame; c the same of an LSTM;
 * product: [streams, G*H] where it is written down. */
typedef struct walk {
    const xph_rnn_args *args;
    int64_t first, streams, t;
    real *h, *next, *c, *product;
} walk;

/* Scratch of one stream: h twice, c, the product. */
static size_t fused_scratch(const void *given)
{
    const xph_rnn_args *args = given;
    return (size_t)(args->batch * 3 * args->hidden) * sizeof(real);
}

static size_t plain_scratch(const void *given)
{
    const xph_rnn_args *args = given;
    return (size_t)(args->batch * (3 * args->hidden + gates_of(args))) * sizeof(real);
}

static walk walk_of(const xph_rnn_args *args, int64_t first, int64_t streams)
{
    int64_t all = args->batch * args->hidden;
    real *scratch = args->scratch;
    walk w = {.args = args, .first = first, .streams = streams};
    w.h = scratch + first * args->hidden;
    w.next = w.h + all;
    w.c = w.next + all;
    w.product = scratch + 3 * all + first * gates_of(args);
    return w;
}

XPH_INLINE int64_t row_of(const walk *w, int64_t r)
{
    return (w->first + r) * w->args->time + w->t;
}

XPH_INLINE const real *input_of(const walk *w, int64_t r)
{
    return (const real *)w->args->gx + row_of(w, r) * w->args->ldgx;
}

/* ---- cells ---- */

/* Units from u on of stream r of the block: whole gates come in, h goes out. */
XPH_INLINE void lstm_cell(const walk *w, int64_t r, int64_t u, const vec *gate, const int64_t count)
{
    const xph_rnn_args *args = w->args;
    int64_t hidden = args->hidden, row = row_of(w, r), at = r * hidden + u;
    vec i = vec_sigmoid(gate[0]), f = vec_sigmoid(gate[1]), g = vec_tanh(gate[2]), o = vec_sigmoid(gate[3]);
    vec c = vec_fma(f, take(w->c + at, count), i * g), h = o * vec_tanh(c);
    give(w->c + at, c, count);
    give(w->next + at, h, count);
    give((real *)args->y + row * args->ldy + u, h, count);
    if (!args->saved) return;
    real *saved = (real *)args->saved + row * 5 * hidden + u;
    give(saved, i, count);
    give(saved + hidden, f, count);
    give(saved + 2 * hidden, g, count);
    give(saved + 3 * hidden, o, count);
    give(saved + 4 * hidden, c, count);
}

/* The third gate comes without its input part. */
XPH_INLINE void gru_cell(const walk *w, int64_t r, int64_t u, const vec *gate, const int64_t count)
{
    const xph_rnn_args *args = w->args;
    int64_t hidden = args->hidden, row = row_of(w, r), at = r * hidden + u;
    vec reset = vec_sigmoid(gate[0]), z = vec_sigmoid(gate[1]);
    vec n = vec_tanh(vec_fma(reset, gate[2], take(input_of(w, r) + 2 * hidden + u, count)));
    vec h = vec_fma(z, take(w->h + at, count) - n, n);
    give(w->next + at, h, count);
    give((real *)args->y + row * args->ldy + u, h, count);
    if (!args->saved) return;
    real *saved = (real *)args->saved + row * 4 * hidden + u;
    give(saved, reset, count);
    give(saved + hidden, z, count);
    give(saved + 2 * hidden, n, count);
    give(saved + 3 * hidden, gate[2], count);
}

/* ---- one frame, gates used where they are made ---- */

/* The units at a place: panels may run from the last to the first. */
XPH_INLINE int64_t units_at(const xph_rnn_args *args, int64_t u)
{
    return args->back ? args->hidden - P - u : u;
}

/* What comes after a place, perhaps in the next frame, will read and write. */
static prefetches prefetches_of(const walk *now, place at, int64_t rows)
{
    prefetches all = {.count = 0};
    walk w = *now;
    at = next_place(w.args, w.streams, at, rows);
    if (at.r >= w.streams) at = (place){0, 0}, w.t++;
    if (w.t == w.args->time) return all;
    const xph_rnn_args *args = w.args;
    int64_t hidden = args->hidden, time = args->time, width = saved_width(args), row = row_of(&w, at.r);
    at.u = units_at(args, at.u);
    all.rows = strip_rows(w.streams - at.r);
    for (int64_t g = 0; g < gates_of(args); g += hidden)
        prefetch_add(&all, input_of(&w, at.r) + g + at.u, time * args->ldgx);
    prefetch_add(&all, (const real *)args->y + row * args->ldy + at.u, time * args->ldy);
    for (int64_t g = 0; g < width && args->saved; g += hidden)
        prefetch_add(&all, (const real *)args->saved + row * width + g + at.u, time * width);
    return all;
}

/* Gate g of P units from u on of `rows` streams into to [rows][G*P]; the third of a GRU without its input
 * part. */
XPH_INLINE void gate_of_strip(const walk *w, const int gates, int g, int64_t rows, int64_t r, int64_t u,
                              real *to, prefetches *prefetch)
{
    const xph_rnn_args *args = w->args;
    int64_t hidden = args->hidden, column = g * hidden + u;
    strip_times_panel(rows, (job){.a = w->h + r * hidden,
                                  .lda = hidden,
                                  .b = (const real *)args->packed + column * hidden,
                                  .depth = hidden,
                                  .columns = P,
                                  .start = (const real *)args->bias + column,
                                  .to = to + g * P,
                                  .ld = MOST_GATES * P,
                                  .add = g < 2 || gates == 4 ? input_of(w, r) + column : NULL,
                                  .ld_add = args->time * args->ldgx,
                                  .prefetch = prefetch});
}

/* `some` gates from g on of one stream: as many at once as there are registers for. A few sums would wait
 * for each other, and L2 gives most when panels are read side by side. */
XPH_INLINE void gates_alone(const walk *w, const int some, int g, int64_t r, int64_t u, real *to)
{
    enum { EACH = P / VEC };
    int64_t hidden = w->args->hidden;
    const real *bias = (const real *)w->args->bias + g * hidden + u, *h = w->h + r * hidden;
    const real *b = (const real *)w->args->packed + (g * hidden + u) * hidden;
    vec sum[ALONE * EACH];
    XPH_UNROLL
    for (int i = 0; i < some * EACH; i++) sum[i] = vec_load(bias + i / EACH * hidden + i % EACH * VEC);
    for (int64_t k = 0; k < hidden; k++, b += P) {
        multiplier x = multiplier_of(h[k]);
        XPH_UNROLL
        for (int i = 0; i < some * EACH; i += VEC_LOADS) {
            vec loaded[VEC_LOADS];
            vecs_load(loaded, VEC_LOADS, b + i / EACH * hidden * hidden + i % EACH * VEC);
            XPH_UNROLL
            for (int j = 0; j < VEC_LOADS; j++) sum[i + j] = vec_fma_by(x, loaded[j], sum[i + j]);
        }
    }
    XPH_UNROLL
    for (int i = 0; i < some * EACH; i++) vec_store(to + g * P + i * VEC, sum[i]);
}

XPH_INLINE void strip_alone(const walk *w, const int gates, int64_t r, int64_t u, real *to)
{
    const real *gx = input_of(w, r) + u;
    if (ALONE == 1)
        for (int g = 0; g < gates; g++) gates_alone(w, 1, g, r, u, to);
    else
        gates_alone(w, gates, 0, r, u, to);
    for (int g = 0; g < gates && (g < 2 || gates == 4); g++)
        for (int64_t k = 0; k < P; k += VEC)
            vec_store(to + g * P + k, vec_load(to + g * P + k) + vec_load(gx + g * w->args->hidden + k));
}

XPH_INLINE void strip_of_cells(const walk *w, const int gates, int64_t rows, place at)
{
    real made[STRIP * MOST_GATES * P];
    int64_t r = at.r, u = units_at(w->args, at.u);
    prefetches next = prefetches_of(w, at, rows);
    if (rows == 1)
        strip_alone(w, gates, r, u, made);
    else
        for (int g = 0; g < gates; g++) gate_of_strip(w, gates, g, rows, r, u, made, &next);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < P; k += VEC) {
            vec gate[MOST_GATES];
            for (int g = 0; g < gates; g++) gate[g] = vec_load(made + (i * MOST_GATES + g) * P + k);
            if (gates == 4)
                lstm_cell(w, r + i, u + k, gate, VEC);
            else
                gru_cell(w, r + i, u + k, gate, VEC);
        }
}

static void fused_frame(const walk *w)
{
    for (place at = {0, 0}; at.r < w->streams;) {
        int64_t rows = strip_rows(w->streams - at.r);
        if (w->args->kind == XPH_RNN_LSTM)
            strip_of_cells(w, 4, rows, at);
        else
            strip_of_cells(w, 3, rows, at);
        at = next_place(w->args, w->streams, at, rows);
    }
}

/* ---- one frame, product by linear ---- */

static xph_linear_args product_of(const walk *w)
{
    const xph_rnn_args *args = w->args;
    return (xph_linear_args){.type = args->type,
                             .weights = args->weights,
                             .rows = w->streams,
                             .in = args->hidden,
                             .out = gates_of(args),
                             .x = w->h,
                             .ldx = args->hidden,
                             .w = args->w,
                             .packed = args->packed,
                             .bias = args->bias,
                             .y = w->product,
                             .ldy = gates_of(args),
                             .back = args->back};
}

XPH_INLINE void cells(const walk *w, const int gates, int64_t r, int64_t u, const int64_t count)
{
    int64_t hidden = w->args->hidden;
    const real *product = w->product + r * gates * hidden + u, *gx = input_of(w, r) + u;
    vec gate[MOST_GATES];
    for (int g = 0; g < gates; g++) {
        gate[g] = take(product + g * hidden, count);
        if (g < 2 || gates == 4) gate[g] += take(gx + g * hidden, count);
    }
    if (gates == 4)
        lstm_cell(w, r, u, gate, count);
    else
        gru_cell(w, r, u, gate, count);
}

XPH_INLINE void stream_of_cells(const walk *w, const int gates, int64_t r)
{
    int64_t hidden = w->args->hidden, whole = hidden / VEC * VEC;
    for (int64_t u = 0; u < whole; u += VEC) cells(w, gates, r, u, VEC);
    if (whole < hidden) cells(w, gates, r, whole, hidden - whole);
}

static void multiply(const xph_kernel *kernel, const xph_linear_args *product)
{
    const xph_candidate *linear = (const xph_candidate *)kernel;
    for (int i = 0; i < XPH_PHASES && linear->phase[i].run; i++)
        linear->phase[i].run(product, 0, linear->phase[i].items(product));
}

static void plain_frame(const walk *w)
{
    const xph_rnn_args *args = w->args;
    const xph_linear_args product = product_of(w);
    if (args->input.rows && !args->back) multiply(args->input_product, &args->input);
    multiply(args->product, &product);
    if (args->input.rows && args->back) multiply(args->input_product, &args->input);
    for (int64_t r = 0; r < w->streams; r++) {
        if (w->args->kind == XPH_RNN_LSTM)
            stream_of_cells(w, 4, r);
        else
            stream_of_cells(w, 3, r);
    }
}

/* ---- streams through time ---- */

static void begin_streams(const walk *w)
{
    const xph_rnn_args *args = w->args;
    size_t bytes = (size_t)args->hidden * sizeof(real);
    for (int64_t r = 0; r < w->streams; r++) {
        const real *from =
            args->state_in ? (const real *)args->state_in + (w->first + r) * args->ld_state : NULL;
        real *h = w->h + r * args->hidden, *c = w->c + r * args->hidden;
        if (from)
            memcpy(h, from, bytes);
        else
            memset(h, 0, bytes);
        if (from && args->kind == XPH_RNN_LSTM)
            memcpy(c, from + args->hidden, bytes);
        else
            memset(c, 0, bytes);
    }
}

static void reset_streams(const walk *w)
{
    size_t bytes = (size_t)w->args->hidden * sizeof(real);
    for (int64_t r = 0; r < w->streams && w->args->reset; r++)
        if (w->args->reset[row_of(w, r)]) {
            memset(w->h + r * w->args->hidden, 0, bytes);
            memset(w->c + r * w->args->hidden, 0, bytes);
        }
}

static void end_streams(const walk *w)
{
    const xph_rnn_args *args = w->args;
    size_t bytes = (size_t)args->hidden * sizeof(real);
    for (int64_t r = 0; r < w->streams && args->state_out; r++) {
        real *to = (real *)args->state_out + (w->first + r) * args->ld_state;
        memcpy(to, w->h + r * args->hidden, bytes);
        if (args->kind == XPH_RNN_LSTM) memcpy(to + args->hidden, w->c + r * args->hidden, bytes);
    }
}

static void through_time(const xph_rnn_args *args, int64_t begin, int64_t end, void (*frame)(const walk *w))
{
    int64_t item = streams_per_item(args), last = int_min(args->batch, end * item);
    for (int64_t first = begin * item, streams; first < last; first += streams) {
        streams = next_streams(last - first);
        walk w = walk_of(args, first, streams);
        begin_streams(&w);
        for (w.t = 0; w.t < args->time; w.t++) {
            reset_streams(&w);
            frame(&w);
            real *before = w.h;
            w.h = w.next;
            w.next = before;
        }
        end_streams(&w);
    }
}

static int64_t stream_items(const void *given)
{
    const xph_rnn_args *args = given;
    return blocks_of(args->batch, streams_per_item(args));
}

static void fused_run(const void *given, int64_t begin, int64_t end)
{
    through_time(given, begin, end, fused_frame);
}

static void plain_run(const void *given, int64_t begin, int64_t end)
{
    through_time(given, begin, end, plain_frame);
}

static bool fused_accepts(const void *given)
{
    const xph_rnn_args *args = given;
    return args->weights == 0 && args->hidden % P == 0 && !args->input.rows;
}

/* Blocks of streams differ in their rows alone, by which no product is chosen. */
void XPH_FN(xph_rnn_compose)(xph_rnn_args *args)
{
    walk w = {.args = args, .streams = args->batch};
    xph_linear_args product = product_of(&w);
    args->product = (const xph_kernel *)xph_kernels_first(XPH_LIST(linear), &product);
    args->input_product =
        args->input.rows ? (const xph_kernel *)xph_kernels_first(XPH_LIST(linear), &args->input) : NULL;
}

/* Weights that some candidate of linear takes. */
static bool plain_accepts(const void *given)
{
    const xph_rnn_args *args = given;
    return args->product && (!args->input.rows || args->input_product);
}

const xph_candidate XPH_LIST(rnn)[] = {
    {XPH_LABEL("rnn_fused"), fused_accepts, fused_scratch, {{stream_items, fused_run}}},
    {XPH_LABEL("rnn"), plain_accepts, plain_scratch, {{stream_items, plain_run}}},
    XPH_LIST_END,
};
