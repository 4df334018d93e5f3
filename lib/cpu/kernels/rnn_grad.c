/* LSTM and GRU, backward. W is packed transposed. Every block of streams then goes back through its frames
 * and stores the gradients of the gates and the h before each frame. dw and dbias are then those of a linear
 * layer over all rows.
 *
 * The gradient of h through W starts from the direct part (GRU: dh z, LSTM: 0) and adds the gates in order.
 * The gradient of the recurrent part of the gates equals that of the whole gate, except for the third gate of
 * a GRU, which the reset gate has scaled: it has its own buffer. */
#include "cpu/kernels/panel.h"
#include "cpu/kernels/rnn_parts.h"

enum { P = XPH_PANEL };

/* Columns of the gates whose gradients are those in dgx. */
static int64_t first_gates(const xph_rnn_args *args)
{
    return args->kind == XPH_RNN_LSTM ? 4 * args->hidden : 2 * args->hidden;
}

/* A block of streams on its way back. packed: [panels of H][G*H][P]; dh, dc: [streams, H] from the next
 * frame; before: [M, H] h before every row; third: [M, H] gradient of W_n h + bias_n of a GRU. */
typedef struct walk {
    const xph_rnn_grad_args *grad;
    const xph_rnn_args *args;
    int64_t first, streams, t;
    real *packed, *dh, *dc, *before, *third;
} walk;

static int64_t packed_reals(const xph_rnn_args *args)
{
    return blocks_of(args->hidden, P) * P * gates_of(args);
}

static int64_t kept_reals(const xph_rnn_args *args)
{
    int64_t rows = args->batch * args->time;
    return packed_reals(args) +
           (2 * args->batch + (args->kind == XPH_RNN_LSTM ? 1 : 2) * rows) * args->hidden;
}

static walk walk_of(const xph_rnn_grad_args *grad, int64_t first, int64_t streams)
{
    const xph_rnn_args *args = &grad->fwd;
    int64_t all = args->batch * args->hidden;
    walk w = {.grad = grad, .args = args, .first = first, .streams = streams, .packed = grad->scratch};
    w.dh = w.packed + packed_reals(args) + first * args->hidden;
    w.dc = w.dh + all;
    w.before = w.packed + packed_reals(args) + 2 * all;
    w.third = w.before + all * args->time;
    return w;
}

XPH_INLINE int64_t row_of(const walk *w, int64_t r)
{
    return (w->first + r) * w->args->time + w->t;
}

/* The state before a frame, part 0 (h) or 1 (c); NULL where it is zero. */
XPH_INLINE const real *state_before(const walk *w, int64_t r, int part)
{
    const xph_rnn_args *args = w->args;
    int64_t row = row_of(w, r);
    if (args->reset && args->reset[row]) return NULL;
    if (w->t > 0 && part == 0) return (const real *)args->y + (row - 1) * args->ldy;
    if (w->t > 0) return (const real *)args->saved + (row - 1) * saved_width(args) + 4 * args->hidden;
    if (!args->state_in) return NULL;
    return (const real *)args->state_in + (w->first + r) * args->ld_state + part * args->hidden;
}

/* ---- cells ---- */

/* Units from u on of one row. dh, dc: gradient from the next frame; dc is taken back one frame, dh is left
 * for the product with W. */
XPH_INLINE void lstm_units(const walk *w, int64_t r, const real *before, int64_t u, const int64_t count)
{
    int64_t hidden = w->args->hidden, row = row_of(w, r), at = r * hidden + u;
    const real *s = (const real *)w->args->saved + row * 5 * hidden + u;
    real *d = (real *)w->grad->dgx + row * w->grad->lddgx + u;
    vec one = vec_all(R(1.0)), zero = {0}, i = take(s, count), f = take(s + hidden, count);
    vec g = take(s + 2 * hidden, count), o = take(s + 3 * hidden, count);
    vec tanh_c = vec_tanh(take(s + 4 * hidden, count)), old = before ? take(before + u, count) : zero;
    vec dh = take((const real *)w->grad->dy + row * w->grad->lddy + u, count) + take(w->dh + at, count);
    vec dc = vec_fma(dh * o, vec_fma(-tanh_c, tanh_c, one), take(w->dc + at, count));
    give(d, dc * g * i * (one - i), count);
    give(d + hidden, before ? dc * old * f * (one - f) : zero, count);
    give(d + 2 * hidden, dc * i * vec_fma(-g, g, one), count);
    give(d + 3 * hidden, dh * tanh_c * o * (one - o), count);
    give(w->dc + at, dc * f, count);
    give(w->dh + at, zero, count);
}

/* dh is left with the part that goes straight back to h, dh z. */
XPH_INLINE void gru_units(const walk *w, int64_t r, const real *before, int64_t u, const int64_t count)
{
    int64_t hidden = w->args->hidden, row = row_of(w, r), at = r * hidden + u;
    const real *s = (const real *)w->args->saved + row * 4 * hidden + u;
    real *d = (real *)w->grad->dgx + row * w->grad->lddgx + u;
    vec one = vec_all(R(1.0)), zero = {0}, reset = take(s, count), z = take(s + hidden, count);
    vec n = take(s + 2 * hidden, count), m = take(s + 3 * hidden, count);
    vec old = before ? take(before + u, count) : zero;
    vec dh = take((const real *)w->grad->dy + row * w->grad->lddy + u, count) + take(w->dh + at, count);
    vec dn = dh * (one - z) * vec_fma(-n, n, one);
    give(d, dn * m * reset * (one - reset), count);
    give(d + hidden, dh * (old - n) * z * (one - z), count);
    give(d + 2 * hidden, dn, count);
    give(w->third + row * hidden + u, dn * reset, count);
    give(w->dh + at, dh * z, count);
}

XPH_INLINE void units(const walk *w, int64_t r, const real *before, int64_t u, const int64_t count)
{
    if (w->args->kind == XPH_RNN_LSTM)
        lstm_units(w, r, before, u, count);
    else
        gru_units(w, r, before, u, count);
}

static void cell_back(const walk *w, int64_t r)
{
    int64_t hidden = w->args->hidden, whole = hidden / VEC * VEC;
    const real *before = state_before(w, r, w->args->kind == XPH_RNN_LSTM ? 1 : 0),
               *h = state_before(w, r, 0);
    for (int64_t u = 0; u < whole; u += VEC) units(w, r, before, u, VEC);
    if (whole < hidden) units(w, r, before, whole, hidden - whole);
    real *keep = w->before + row_of(w, r) * hidden;
    if (h)
        memcpy(keep, h, (size_t)hidden * sizeof(real));
    else
        memset(keep, 0, (size_t)hidden * sizeof(real));
}

/* ---- back through W ---- */

/* What the strip after this one will read and write in these columns: that of the same frame while the
 * weights stay, else this one in the frame before. */
static prefetches prefetches_of(const walk *now, int64_t rows, int64_t r, int64_t u)
{
    const xph_rnn_args *args = now->args;
    walk w = *now;
    if (!weights_stay(args))
        w.t--;
    else if ((r += rows) >= w.streams)
        r = 0, w.t--;
    prefetches all = {.rows = strip_rows(w.streams - r)};
    if (w.t < 0 || u + P > args->hidden) return all;
    int64_t hidden = args->hidden, time = args->time, row = row_of(&w, r), width = saved_width(args);
    const real *saved = (const real *)args->saved + row * width + u, *dgx = (const real *)w.grad->dgx + u;
    for (int64_t g = 0; g < 4 * hidden; g += hidden) prefetch_add(&all, saved + g, time * width);
    for (int64_t g = 0; g < gates_of(args); g += hidden)
        prefetch_add(&all, dgx + row * w.grad->lddgx + g, time * w.grad->lddgx);
    prefetch_add(&all, (const real *)w.grad->dy + row * w.grad->lddy + u, time * w.grad->lddy);
    prefetch_add(&all, w.before + row * hidden + u, time * hidden);
    if (args->kind == XPH_RNN_GRU) prefetch_add(&all, w.third + row * hidden + u, time * hidden);
    if (w.t == 0) return all;
    prefetch_add(&all, (const real *)args->y + (row - 1) * args->ldy + u, time * args->ldy);
    if (args->kind == XPH_RNN_LSTM)
        prefetch_add(&all, saved - hidden, time * width); /* c of the frame before that */
    return all;
}

/* dh += the gates' gradients times W: P units from u on of a strip of streams. */
static void back_strip(const walk *w, int64_t rows, int64_t r, int64_t u)
{
    const xph_rnn_args *args = w->args;
    int64_t hidden = args->hidden, gates = gates_of(args), row = row_of(w, r);
    int64_t ready = first_gates(args);
    prefetches next = prefetches_of(w, rows, r, u);
    job j = {.a = (const real *)w->grad->dgx + row * w->grad->lddgx,
             .lda = args->time * w->grad->lddgx,
             .b = w->packed + u * gates,
             .depth = ready,
             .columns = int_min(P, hidden - u),
             .start = w->dh + r * hidden + u,
             .ld_start = hidden,
             .to = w->dh + r * hidden + u,
             .ld = hidden,
             .prefetch = &next};
    strip_times_panel(rows, j);
    if (ready == gates) return;
    j.a = w->third + row * hidden;
    j.lda = args->time * hidden;
    j.b += ready * P;
    j.depth = hidden;
    strip_times_panel(rows, j);
}

static void frame_back(const walk *w)
{
    int64_t hidden = w->args->hidden;
    size_t bytes = (size_t)hidden * sizeof(real);
    bool stay = weights_stay(w->args);
    for (int64_t r = 0; r < w->streams && !stay; r++) cell_back(w, r);
    for (place at = {0, 0}; at.r < w->streams;) {
        int64_t rows = strip_rows(w->streams - at.r);
        for (int64_t r = at.r; r < at.r + rows && stay && at.u == 0; r++) cell_back(w, r);
        back_strip(w, rows, at.r, at.u);
        at = next_place(w->args, w->streams, at, rows);
    }
    for (int64_t r = 0; r < w->streams && w->args->reset; r++)
        if (w->args->reset[row_of(w, r)]) {
            memset(w->dh + r * hidden, 0, bytes);
            memset(w->dc + r * hidden, 0, bytes);
        }
}

/* ---- phases ---- */

static int64_t pack_items(const void *given)
{
    return blocks_of(((const xph_rnn_grad_args *)given)->fwd.hidden, P);
}

static void pack_run(const void *given, int64_t begin, int64_t end)
{
    const xph_rnn_grad_args *grad = given;
    int64_t hidden = grad->fwd.hidden, gates = gates_of(&grad->fwd);
    for (int64_t panel = begin; panel < end; panel++)
        panel_straight((const real *)grad->fwd.w + panel * P, hidden, gates, int_min(P, hidden - panel * P),
                       (real *)grad->scratch + panel * P * gates);
}

static int64_t back_items(const void *given)
{
    const xph_rnn_args *args = &((const xph_rnn_grad_args *)given)->fwd;
    return blocks_of(args->batch, streams_per_item(args));
}

/* Gradients of the state between time and the outside: from dstate_out, or to dstate_in. */
static void carry(const walk *w, const real *from, real *to)
{
    int64_t hidden = w->args->hidden, width = state_width(w->args);
    size_t bytes = (size_t)hidden * sizeof(real);
    for (int64_t r = 0; r < w->streams; r++) {
        int64_t at = (w->first + r) * w->args->ld_state;
        if (from) memcpy(w->dh + r * hidden, from + at, bytes);
        if (from && width > hidden) memcpy(w->dc + r * hidden, from + at + hidden, bytes);
        if (to) memcpy(to + at, w->dh + r * hidden, bytes);
        if (to && width > hidden) memcpy(to + at + hidden, w->dc + r * hidden, bytes);
    }
}

static void back_run(const void *given, int64_t begin, int64_t end)
{
    const xph_rnn_grad_args *grad = given;
    int64_t item = streams_per_item(&grad->fwd), last = int_min(grad->fwd.batch, end * item);
    for (int64_t first = begin * item, streams; first < last; first += streams) {
        streams = next_streams(last - first);
        walk w = walk_of(grad, first, streams);
        memset(w.dh, 0, (size_t)(streams * grad->fwd.hidden) * sizeof(real));
        memset(w.dc, 0, (size_t)(streams * grad->fwd.hidden) * sizeof(real));
        carry(&w, grad->dstate_out, NULL);
        for (w.t = grad->fwd.time; w.t-- > 0;) frame_back(&w);
        carry(&w, NULL, grad->dstate_in);
    }
}

/* dw and dbias are those of a linear layer with the states before as inputs: part 0 the gates whose
 * gradients are in dgx, part 1 the third of a GRU. */
static xph_linear_grad_args weights_shape(const xph_rnn_grad_args *grad, int part)
{
    const xph_rnn_args *args = &grad->fwd;
    return (xph_linear_grad_args){.type = args->type,
                                  .rows = args->batch * args->time,
                                  .in = args->hidden,
                                  .out = part ? args->hidden : first_gates(args),
                                  .ldx = args->hidden,
                                  .lddy = part ? args->hidden : grad->lddgx};
}

static xph_linear_grad_args weights_of(const xph_rnn_grad_args *grad, int part)
{
    xph_linear_grad_args linear = weights_shape(grad, part);
    walk w = walk_of(grad, 0, 0);
    int64_t first = part * first_gates(&grad->fwd);
    linear.x = w.before;
    linear.dy = part ? w.third : grad->dgx;
    linear.dw = grad->dw ? (real *)grad->dw + first * linear.in : NULL;
    linear.dbias = grad->dbias ? (real *)grad->dbias + first : NULL;
    return linear;
}

static const xph_candidate *product_of(const xph_rnn_grad_args *grad, int part)
{
    return (const xph_candidate *)grad->products[part];
}

static int parts_of(const xph_rnn_grad_args *grad)
{
    return grad->fwd.kind == XPH_RNN_LSTM ? 1 : 2;
}

static size_t linear_scratch(const xph_rnn_grad_args *grad, int part)
{
    xph_linear_grad_args linear = weights_shape(grad, part);
    const xph_candidate *c = product_of(grad, part);
    return c->scratch_bytes ? (c->scratch_bytes(&linear) + 63) & ~(size_t)63 : 0;
}

static size_t kept_bytes(const xph_rnn_grad_args *grad)
{
    return ((size_t)kept_reals(&grad->fwd) * sizeof(real) + 63) & ~(size_t)63;
}

static size_t grad_scratch(const void *given)
{
    const xph_rnn_grad_args *grad = given;
    size_t bytes = kept_bytes(grad) + linear_scratch(grad, 0);
    return parts_of(grad) > 1 ? bytes + linear_scratch(grad, 1) : bytes;
}

/* Phase `p` of the linear gradients, the items of the second behind those of the first. */
static int64_t linear_items(const xph_rnn_grad_args *grad, int part, int p)
{
    xph_linear_grad_args linear = weights_of(grad, part);
    const xph_phase *phase = &product_of(grad, part)->phase[p];
    return phase->run ? phase->items(&linear) : 0;
}

static int64_t weight_items(const xph_rnn_grad_args *grad, int p)
{
    int64_t items = linear_items(grad, 0, p);
    return parts_of(grad) > 1 ? items + linear_items(grad, 1, p) : items;
}

static void weight_run(const xph_rnn_grad_args *grad, int p, int64_t begin, int64_t end)
{
    unsigned char *scratch = (unsigned char *)grad->scratch + kept_bytes(grad);
    for (int part = 0; part < parts_of(grad); part++) {
        xph_linear_grad_args linear = weights_of(grad, part);
        int64_t items = linear_items(grad, part, p);
        linear.scratch = scratch;
        if (begin < items && end > 0)
            product_of(grad, part)->phase[p].run(&linear, int_max(0, begin), int_min(items, end));
        scratch += linear_scratch(grad, part);
        begin -= items;
        end -= items;
    }
}

#define WEIGHT_PHASE(p)                                                                                      \
  static int64_t weight_items_##p(const void *given)                                                         \
  {                                                                                                          \
    return weight_items(given, p);                                                                           \
  }                                                                                                          \
  static void weight_run_##p(const void *given, int64_t begin, int64_t end)                                  \
  {                                                                                                          \
    weight_run(given, p, begin, end);                                                                        \
  }
WEIGHT_PHASE(0)
WEIGHT_PHASE(1)
WEIGHT_PHASE(2)
WEIGHT_PHASE(3)

void XPH_FN(xph_rnn_grad_compose)(xph_rnn_grad_args *args)
{
    for (int part = 0; part < 2; part++) {
        const xph_linear_grad_args linear = weights_shape(args, part);
        args->products[part] = (const xph_kernel *)xph_kernels_first(XPH_LIST(linear_grad), &linear);
    }
}

/* Training knows no weights of fewer bits; and the gradient of linear must fit behind the two phases here. */
static bool grad_accepts(const void *given)
{
    const xph_rnn_grad_args *grad = given;
    return grad->fwd.weights == 0 && grad->products[0] && grad->products[1];
}

const xph_candidate XPH_LIST(rnn_grad)[] = {
    {XPH_LABEL("rnn_grad"),
     grad_accepts,
     grad_scratch,
     {{pack_items, pack_run},
      {back_items, back_run},
      {weight_items_0, weight_run_0},
      {weight_items_1, weight_run_1},
      {weight_items_2, weight_run_2},
      {weight_items_3, weight_run_3}}},
    XPH_LIST_END,
};
