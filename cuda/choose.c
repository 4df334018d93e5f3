/* Which candidate does an operation. */
#include "kernels.h"

#define ENTRY(NAME, name) [XPH_OP_##NAME] = xph_cuda_##name,
static const xph_cuda_candidate *const lists[XPH_OP_COUNT] = {XPH_EACH_OP(ENTRY)};

const xph_cuda_candidate *xph_cuda_choose(xph_op op, const void *args, uint32_t refused, uint32_t *bit)
{
    *bit = 1;
    if (op < 0 || op >= XPH_OP_COUNT) return NULL;
    for (const xph_cuda_candidate *k = lists[op]; k->name; k++, *bit <<= 1)
        if (!(refused & *bit) && k->accepts(args)) return k;
    return NULL;
}
