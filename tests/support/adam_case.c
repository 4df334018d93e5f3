#include "adam_case.h"

kt_case adam_case(int64_t count, int64_t decay_count, bool averaged)
{
    double *p = case_random(count, -1, 1), *grad = case_random(count, -1, 1), *m = case_random(count, -1, 1);
    double *v = case_random(count, 0, 1), *ema = averaged ? case_random(count, -1, 1) : NULL;
    const kt_tensor tensors[] = {
        KT_FLAT(xph_adam_args, p, 1, count, KT_ADD, p, NULL),
        KT_FLAT(xph_adam_args, grad, 1, count, KT_IN, grad, NULL),
        KT_FLAT(xph_adam_args, m, 1, count, KT_ADD, m, NULL),
        KT_FLAT(xph_adam_args, v, 1, count, KT_ADD, v, NULL),
        KT_FLAT(xph_adam_args, ema, 1, count, averaged ? KT_ADD : KT_IN, ema, NULL),
    };
    const xph_adam_args args = {.count = count,
                                .decay_count = decay_count,
                                .rate = 1e-2,
                                .beta1 = 0.9,
                                .beta2 = 0.95,
                                .epsilon = 1e-8,
                                .decay = 0.1,
                                .correction1 = 1 - 0.9 * 0.9 * 0.9,
                                .correction2 = 1 - 0.95 * 0.95 * 0.95,
                                .grad_scale = 0.37,
                                .ema_decay = 0.99};
    return KT_CASE("adam", XPH_OP_ADAM, args, KT_DENSE, tensors, 0);
}
