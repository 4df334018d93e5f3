/* Counts of bytes and operations from the arguments of every operation. Rows are counted in the type they are
 * stored in; weights, states, data kept for backward and gradients of weights are floats. */
#include "op_work.h"

static double size_of(xph_type type)
{
    return type == XPH_F64 ? 8.0 : type == XPH_F32 ? 4.0 : 2.0;
}

static double cells(int64_t a, int64_t b)
{
    return (double)a * (double)b;
}

/* Of a number of weights: `plain` where they are not of fewer bits. */
static double weight_size(xph_type weights, double plain)
{
    return weights == XPH_I8 ? 1.0 : weights == XPH_BF16 ? 2.0 : plain;
}

static op_work linear_work(const xph_linear_args *a)
{
    double s = size_of(a->type);
    return (op_work){s * (cells(a->rows, a->in) + cells(a->rows, a->out) * (a->residual ? 2 : 1)) +
                         weight_size(a->weights, s) * cells(a->in, a->out),
                     2 * cells(a->rows, a->in) * (double)a->out, "linear"};
}

static op_work linear_grad_work(const xph_linear_grad_args *g)
{
    double s = size_of(g->type), x = cells(g->rows, g->in), y = cells(g->rows, g->out),
           w = cells(g->in, g->out);
    double times = (g->dx ? 1.0 : 0.0) + (g->dw ? 1.0 : 0.0);
    return (op_work){s * (x + y + (g->dx ? x * (g->dx_add ? 2 : 1) + w : 0.0)) + (g->dw ? 8 * w : 0.0),
                     2 * x * (double)g->out * times, "linear backward"};
}

static op_work norm_work(const xph_norm_args *a)
{
    double s = size_of(a->type), x = cells(a->rows, a->width);
    return (op_work){2 * s * x + (a->saved ? 8.0 * (double)a->rows : 0.0), 8 * x, "norm"};
}

static op_work norm_grad_work(const xph_norm_grad_args *g)
{
    double s = size_of(g->fwd.type), x = cells(g->fwd.rows, g->fwd.width);
    return (op_work){s * x * (g->dx_add ? 4 : 3) + 8.0 * (double)g->fwd.rows, 16 * x, "norm backward"};
}

static op_work conv_work(const xph_conv_args *a)
{
    double x = cells(a->batch * a->time, a->width);
    return (op_work){2 * size_of(a->type) * x, x * (2 * (double)a->taps + 6), "conv"};
}

static op_work conv_grad_work(const xph_conv_grad_args *g)
{
    double x = cells(g->fwd.batch * g->fwd.time, g->fwd.width);
    return (op_work){3 * size_of(g->fwd.type) * x, x * (6 * (double)g->fwd.taps + 10), "conv backward"};
}

/* Per number of the state: an exponential counted as one operation, three multiply-adds. */
static op_work scan_work(const xph_scan_args *a)
{
    double m = (double)(a->batch * a->time), x = m * (double)a->width;
    return (op_work){size_of(a->type) * (x * (a->z ? 4 : 3) + 2 * m * (double)a->states),
                     7 * x * (double)a->states, "scan"};
}

static op_work scan_grad_work(const xph_scan_grad_args *g)
{
    const xph_scan_args *a = &g->fwd;
    double m = (double)(a->batch * a->time), x = m * (double)a->width;
    return (op_work){size_of(a->type) * (x * (a->z ? 7 : 5) + 4 * m * (double)a->states),
                     24 * x * (double)a->states, "scan backward"};
}

static double pairs(const xph_attention_args *a)
{
    double count = 0;
    for (int64_t t = 0; t < a->time; t++) count += (double)(t + 1 < a->window ? t + 1 : a->window);
    return count * cells(a->batch, a->heads) * (double)a->dim;
}

static op_work attention_work(const xph_attention_args *a)
{
    double x = cells(a->batch * a->time, a->heads) * (double)a->dim;
    return (op_work){4 * size_of(a->type) * x, 4 * pairs(a), "attention"};
}

static op_work attention_grad_work(const xph_attention_grad_args *g)
{
    double x = cells(g->fwd.batch * g->fwd.time, g->fwd.heads) * (double)g->fwd.dim;
    return (op_work){8 * size_of(g->fwd.type) * x, 10 * pairs(&g->fwd), "attention backward"};
}

static op_work rnn_work(const xph_rnn_args *a)
{
    double m = (double)(a->batch * a->time), gates = a->kind == XPH_RNN_LSTM ? 4 : 3, h = (double)a->hidden;
    double kept = a->saved ? 4 * (gates + 1) : 0;
    op_work input = {0};
    if (a->input.rows) input = linear_work(&a->input);
    return (op_work){m * h * (size_of(a->type) * (gates + 1) + kept) +
                         weight_size(a->weights, 4) * gates * h * h + input.bytes,
                     2 * m * gates * h * h + input.flop, a->kind == XPH_RNN_LSTM ? "lstm" : "gru"};
}

static op_work rnn_grad_work(const xph_rnn_grad_args *g)
{
    double m = (double)(g->fwd.batch * g->fwd.time), gates = g->fwd.kind == XPH_RNN_LSTM ? 4 : 3,
           h = (double)g->fwd.hidden;
    return (op_work){m * h * (size_of(g->fwd.type) * (gates + 2) + 4 * (gates + 1)) + 12 * gates * h * h,
                     4 * m * gates * h * h, g->fwd.kind == XPH_RNN_LSTM ? "lstm backward" : "gru backward"};
}

static op_work rows_work(const xph_embed_args *a, const char *name)
{
    double width = (double)(a->floats + a->slots * a->logits);
    for (int64_t i = 0; i < a->ids; i++) width += (double)a->tables[i].width;
    return (op_work){(double)a->rows * (width * size_of(a->type) +
                                        4.0 * (double)(a->floats + a->ids + a->slots * a->heads)),
                     0, name};
}

static op_work heads_work(const xph_heads_args *a)
{
    double weights = cells(a->width + 1, a->logits), rows = cells(a->rows, a->width);
    return (op_work){size_of(a->type) * (rows + cells(a->rows, a->logits) * (a->base ? 2 : 1) + weights),
                     2 * rows * (double)a->logits, "heads"};
}

static op_work heads_grad_work(const xph_heads_grad_args *g)
{
    const xph_heads_args *a = &g->fwd;
    return (op_work){size_of(a->type) * (2 * cells(a->rows, a->width) + cells(a->rows, a->logits)),
                     4 * cells(a->rows, a->width) * (double)a->logits, "heads backward"};
}

static op_work embed_work(const xph_embed_args *a)
{
    return rows_work(a, "embed");
}

static op_work embed_grad_work(const xph_embed_grad_args *g)
{
    return rows_work(&g->fwd, "embed backward");
}

static op_work sample_work(const xph_sample_args *a)
{
    return heads_work(&a->heads);
}

/* ---- beside the net ---- */

static op_work loss_work(const xph_loss_args *a)
{
    double x = cells(a->rows, a->logits);
    return (op_work){2 * size_of(a->type) * x, 20 * x, "loss"};
}

/* Logits and gradients, and in double what was said in play and by a teacher. */
static op_work policy_loss_work(const xph_policy_loss_args *a)
{
    const double x = cells(a->rows, a->logits),
                 said = a->part == XPH_POLICY_LOGS ? 1 : (a->old != NULL) + (a->teacher != NULL);
    return (op_work){(4 * (a->part == XPH_POLICY_LOGS ? 1 : 2) + 16 * said) * x, 150 * x, "policy loss"};
}

static double packs_bytes(const xph_packs_args *a)
{
    double bytes = 0;
    for (int64_t i = 0; i < a->matrices; i++)
        bytes += a->type == XPH_F32 ? 0 : 6 * cells(a->matrix[i].in, a->matrix[i].out);
    for (int64_t i = 0; i < a->decays; i++) bytes += 8 * cells(a->decay[i].width, a->decay[i].states);
    return bytes;
}

static op_work heads_loss_work(const xph_heads_loss_args *a)
{
    const xph_heads_args *f = &a->grad.fwd;
    const double trunk = cells(f->rows, f->width), logits = cells(f->rows, f->logits);
    const double flop = trunk * (double)f->logits, rows = size_of(f->type) * trunk;
    if (a->part == XPH_HEADS_LOGITS) return (op_work){rows + 4 * logits, 2 * flop, "heads"};
    if (a->part == XPH_HEADS_GIVEN) return (op_work){2 * rows + 4 * logits, 6 * flop, "heads backward"};
    return (op_work){2 * rows + size_of(f->type) * logits, 8 * flop, "heads and loss"};
}

#define WORK_OF(name, bytes, flop, shown)                                                                    \
  static op_work name##_work(const xph_##name##_args *a)                                                     \
  {                                                                                                          \
    (void)a;                                                                                                 \
    return (op_work){bytes, flop, shown};                                                                    \
  }
WORK_OF(linear_pack, a->type == XPH_F32 ? 0 : 6 * cells(a->in, a->out), 0, "pack")
WORK_OF(scan_pack, 8 * cells(a->width, a->states), 0, "scan pack")
WORK_OF(packs, packs_bytes(a), 0, "packs")
WORK_OF(adam, (a->ema ? 36.0 : 28.0) * (double)a->count, 15 * (double)a->count, "adam")
WORK_OF(norm2, 4.0 * (double)a->count, 2 * (double)a->count, "gradient norm")
WORK_OF(axpby, 3 * size_of(a->type) * (double)a->count, 2 * (double)a->count, "axpby")
WORK_OF(round, 8 * cells(a->in, a->out), 0, "round")
WORK_OF(cast, 6.0 * (double)a->count, 0, "cast")
WORK_OF(activate, 2 * size_of(a->type) * (double)a->count, 10 * (double)a->count, "activate")
WORK_OF(activate_grad, 3 * size_of(a->fwd.type) * (double)a->fwd.count, 20 * (double)a->fwd.count,
        "activate backward")
WORK_OF(codes, 3 * size_of(a->type) * cells(a->rows, a->width), 0, "codes")
WORK_OF(codes_grad, 3 * size_of(a->fwd.type) * cells(a->fwd.rows, a->fwd.width), 0, "codes backward")
WORK_OF(clear, 8, 0, "clear") /* an update that is made clears nothing */

op_work op_work_of(xph_op op, const void *args)
{
#define WORK(NAME, name)                                                                                     \
  case XPH_OP_##NAME:                                                                                        \
    return name##_work(args);
    switch (op) {
        XPH_EACH_OP(WORK)
    default:
        return (op_work){0, 0, "?"};
    }
}
