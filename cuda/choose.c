/* Which candidate does an operation, once. What an operation calls of others is chosen before it, into its args: a layer of
 * LSTM or GRU calls products, whose candidates may be a library's. */
#include "kernels.h"

/* Bits of the candidates of such a product begin here: they stand in for those of the operation, where it calls one that may
 * refuse. Who calls one does not refuse itself. */
enum { PRODUCT_BITS = 16 };

#define ENTRY(NAME, name) [XPH_OP_##NAME] = xph_cuda_##name,
static const xph_cuda_candidate *const lists[XPH_OP_COUNT] = {XPH_EACH_OP(ENTRY)};

const xph_cuda_candidate *xph_cuda_first(const xph_cuda_candidate *list, const void *args, uint32_t refused,
                                         uint32_t *bit)
{
    *bit = 1;
    for (const xph_cuda_candidate *k = list; k->name; k++, *bit <<= 1)
        if (!(refused & *bit) && k->accepts(args)) return k;
    return NULL;
}

uint32_t xph_cuda_compose(xph_op op, void *args, uint32_t refused)
{
    if (op == XPH_OP_RNN) return xph_rnn_compose(args, refused >> PRODUCT_BITS) << PRODUCT_BITS;
    if (op == XPH_OP_RNN_GRAD) xph_rnn_grad_compose(args);
    return 0;
}

const xph_cuda_candidate *xph_cuda_choose(xph_op op, void *args, uint32_t refused, uint32_t *bit)
{
    if (op < 0 || op >= XPH_OP_COUNT) return NULL;
    const uint32_t product = xph_cuda_compose(op, args, refused);
    const xph_cuda_candidate *candidate = xph_cuda_first(lists[op], args, refused, bit);
    if (product) *bit = product;
    return candidate;
}
