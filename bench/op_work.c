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

static op_work linear(const xph_linear_args *a)
{
    double s = size_of(a->type);
    return (op_work){s * (cells(a->rows, a->in) + cells(a->rows, a->out) * (a->residual ? 2 : 1)) +
                         s * cells(a->in, a->out),
                     2 * cells(a->rows, a->in) * (double)a->out, "linear"};
}

static op_work linear_grad(const xph_linear_grad_args *g)
{
    double s = size_of(g->type), x = cells(g->rows, g->in), y = cells(g->rows, g->out),
           w = cells(g->in, g->out);
    double times = (g->dx ? 1.0 : 0.0) + (g->dw ? 1.0 : 0.0);
    return (op_work){s * (x + y + (g->dx ? x * (g->dx_add ? 2 : 1) + w : 0.0)) + (g->dw ? 8 * w : 0.0),
                     2 * x * (double)g->out * times, "linear backward"};
}

static op_work norm(const xph_norm_args *a)
{
    double s = size_of(a->type), x = cells(a->rows, a->width);
    return (op_work){2 * s * x + (a->saved ? 8.0 * (double)a->rows : 0.0), 8 * x, "norm"};
}

static op_work norm_grad(const xph_norm_grad_args *g)
{
    double s = size_of(g->fwd.type), x = cells(g->fwd.rows, g->fwd.width);
    return (op_work){s * x * (g->dx_add ? 4 : 3) + 8.0 * (double)g->fwd.rows, 16 * x, "norm backward"};
}

static op_work conv(const xph_conv_args *a)
{
    double x = cells(a->batch * a->time, a->width);
    return (op_work){2 * size_of(a->type) * x, x * (2 * (double)a->taps + 6), "conv"};
}

static op_work conv_grad(const xph_conv_grad_args *g)
{
    double x = cells(g->fwd.batch * g->fwd.time, g->fwd.width);
    return (op_work){3 * size_of(g->fwd.type) * x, x * (6 * (double)g->fwd.taps + 10), "conv backward"};
}

/* Per number of the state: an exponential counted as one operation, three multiply-adds. */
static op_work scan(const xph_scan_args *a)
{
    double m = (double)(a->batch * a->time), x = m * (double)a->width;
    return (op_work){size_of(a->type) * (x * (a->z ? 4 : 3) + 2 * m * (double)a->states),
                     7 * x * (double)a->states, "scan"};
}

static op_work scan_grad(const xph_scan_grad_args *g)
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

static op_work attention(const xph_attention_args *a)
{
    double x = cells(a->batch * a->time, a->heads) * (double)a->dim;
    return (op_work){4 * size_of(a->type) * x, 4 * pairs(a), "attention"};
}

static op_work attention_grad(const xph_attention_grad_args *g)
{
    double x = cells(g->fwd.batch * g->fwd.time, g->fwd.heads) * (double)g->fwd.dim;
    return (op_work){8 * size_of(g->fwd.type) * x, 10 * pairs(&g->fwd), "attention backward"};
}

static op_work rnn(const xph_rnn_args *a)
{
    double m = (double)(a->batch * a->time), gates = a->kind == XPH_RNN_LSTM ? 4 : 3, h = (double)a->hidden;
    double kept = a->saved ? 4 * (gates + 1) : 0;
    return (op_work){m * h * (size_of(a->type) * (gates + 1) + kept) + 4 * gates * h * h,
                     2 * m * gates * h * h, a->kind == XPH_RNN_LSTM ? "lstm" : "gru"};
}

static op_work rnn_grad(const xph_rnn_grad_args *g)
{
    double m = (double)(g->fwd.batch * g->fwd.time), gates = g->fwd.kind == XPH_RNN_LSTM ? 4 : 3,
           h = (double)g->fwd.hidden;
    return (op_work){m * h * (size_of(g->fwd.type) * (gates + 2) + 4 * (gates + 1)) + 12 * gates * h * h,
                     4 * m * gates * h * h, g->fwd.kind == XPH_RNN_LSTM ? "lstm backward" : "gru backward"};
}

static op_work embed(const xph_embed_args *a, const char *name)
{
    double width = (double)(a->floats + a->slots * a->logits);
    for (int64_t i = 0; i < a->ids; i++) width += (double)a->tables[i].width;
    return (op_work){(double)a->rows * (width * size_of(a->type) +
                                        4.0 * (double)(a->floats + a->ids + a->slots * a->heads)),
                     0, name};
}

static op_work heads(const xph_heads_args *a)
{
    return (op_work){size_of(a->type) *
                         (cells(a->rows, a->width) + cells(a->rows, a->logits) * (a->base ? 2 : 1)),
                     2 * cells(a->rows, a->width) * (double)a->logits, "heads"};
}

static op_work heads_grad(const xph_heads_grad_args *g)
{
    const xph_heads_args *a = &g->fwd;
    return (op_work){size_of(a->type) * (2 * cells(a->rows, a->width) + cells(a->rows, a->logits)),
                     4 * cells(a->rows, a->width) * (double)a->logits, "heads backward"};
}

static op_work flat(double bytes, double flop, const char *name)
{
    return (op_work){bytes, flop, name};
}

op_work op_work_of(xph_op op, const void *args)
{
    const xph_loss_args *loss = args;
    const xph_adam_args *adam = args;
    const xph_norm2_args *norm2 = args;
    const xph_axpby_args *axpby = args;
    const xph_cast_args *cast = args;
    const xph_linear_pack_args *pack = args;
    const xph_scan_pack_args *decay = args;
    const xph_round_args *rounded = args;
    const xph_sample_args *sample = args;
    switch (op) {
    case XPH_OP_LINEAR:
        return linear(args);
    case XPH_OP_LINEAR_GRAD:
        return linear_grad(args);
    case XPH_OP_LINEAR_PACK:
        return flat(pack->type == XPH_F32 ? 0 : 6 * cells(pack->in, pack->out), 0, "pack");
    case XPH_OP_NORM:
        return norm(args);
    case XPH_OP_NORM_GRAD:
        return norm_grad(args);
    case XPH_OP_CONV:
        return conv(args);
    case XPH_OP_CONV_GRAD:
        return conv_grad(args);
    case XPH_OP_SCAN:
        return scan(args);
    case XPH_OP_SCAN_GRAD:
        return scan_grad(args);
    case XPH_OP_ATTENTION:
        return attention(args);
    case XPH_OP_ATTENTION_GRAD:
        return attention_grad(args);
    case XPH_OP_RNN:
        return rnn(args);
    case XPH_OP_RNN_GRAD:
        return rnn_grad(args);
    case XPH_OP_EMBED:
        return embed(args, "embed");
    case XPH_OP_EMBED_GRAD:
        return embed(&((const xph_embed_grad_args *)args)->fwd, "embed backward");
    case XPH_OP_HEADS:
        return heads(args);
    case XPH_OP_HEADS_GRAD:
        return heads_grad(args);
    case XPH_OP_LOSS:
        return flat(2 * size_of(loss->type) * cells(loss->rows, loss->logits),
                    20 * cells(loss->rows, loss->logits), "loss");
    case XPH_OP_SAMPLE:
        return heads(&sample->heads);
    case XPH_OP_ADAM:
        return flat((adam->ema ? 36.0 : 28.0) * (double)adam->count, 15 * (double)adam->count, "adam");
    case XPH_OP_NORM2:
        return flat(4.0 * (double)norm2->count, 2 * (double)norm2->count, "gradient norm");
    case XPH_OP_AXPBY:
        return flat(3 * size_of(axpby->type) * (double)axpby->count, 2 * (double)axpby->count, "axpby");
    case XPH_OP_ROUND:
        return flat(8 * cells(rounded->in, rounded->out), 0, "round");
    case XPH_OP_CAST:
        return flat(6.0 * (double)cast->count, 0, "cast");
    case XPH_OP_SCAN_PACK:
        return flat(8 * cells(decay->width, decay->states), 0, "scan pack");
    case XPH_OP_CLEAR:
        return flat(8, 0, "clear"); /* an update that is made clears nothing */
    default:
        return flat(0, 0, "?");
    }
}
