/* Which kernels run: the best set of a type that the instruction set level allows, and in it the first
 * candidate that accepts the arguments. */
#include "cpu/kernels.h"

#include "base/base.h"

#define SET(name) &xph_kernels_##name,
static const xph_kernel_set *const sets[] = {XPH_SETS(SET)};

const xph_kernel_set *xph_kernels_pick(xph_type type, int32_t isa)
{
    const xph_kernel_set *best = NULL;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        if (sets[i]->type == type && xph_isa_within(sets[i]->isa, isa)) best = sets[i];
    return best;
}

const xph_candidate *xph_kernels_first(const xph_candidate *list, const void *args)
{
    for (const xph_candidate *c = list; c->name; c++)
        if (!c->accepts || c->accepts(args)) return c;
    return NULL;
}

const xph_candidate *xph_kernels_choose(const xph_kernel_set *set, xph_op op, void *args)
{
    if (!set || op < 0 || op >= XPH_OP_COUNT) return NULL;
    set->compose(op, args);
    return xph_kernels_first(set->op[op], args);
}

static size_t whole(int64_t count, size_t unit)
{
    return ((size_t)count + unit - 1) / unit * unit;
}

/* Reals; two bfloat16s or four int8s together, and of int8 a scale and a sum per column. */
static size_t panels_bytes(xph_type type, xph_type weights, int64_t in, int64_t out)
{
    if (weights == XPH_BF16) return whole(out, XPH_NARROW_PANEL) * whole(in, 2) * sizeof(uint16_t);
    if (weights == XPH_I8)
        return whole(out, XPH_NARROW_PANEL) * (whole(in, 4) + sizeof(float) + sizeof(int32_t));
    return whole(out, XPH_PANEL) * (size_t)in * (type == XPH_F64 ? sizeof(double) : sizeof(float));
}

static size_t decay_bytes(xph_type type, int64_t width, int64_t states)
{
    return (size_t)width * (size_t)states * (type == XPH_F64 ? sizeof(double) : sizeof(float));
}

size_t xph_kernels_packed_bytes(xph_op op, const void *args)
{
    const xph_linear_args *linear = args;
    const xph_linear_pack_args *pack = args;
    const xph_rnn_args *rnn = args;
    const xph_scan_args *scan = args;
    const xph_scan_pack_args *scan_pack = args;
    if (op == XPH_OP_LINEAR) return panels_bytes(linear->type, linear->weights, linear->in, linear->out);
    if (op == XPH_OP_LINEAR_PACK) return panels_bytes(pack->type, pack->weights, pack->in, pack->out);
    if (op == XPH_OP_RNN)
        return panels_bytes(rnn->type, rnn->weights, rnn->hidden,
                            (rnn->kind == XPH_RNN_LSTM ? 4 : 3) * rnn->hidden);
    if (op == XPH_OP_SCAN) return decay_bytes(scan->type, scan->width, scan->states);
    if (op == XPH_OP_SCAN_PACK) return decay_bytes(scan_pack->type, scan_pack->width, scan_pack->states);
    return 0;
}
