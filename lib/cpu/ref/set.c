/* The table of one kernel set: what lib/cpu/ref offers for every operation, compiled with the flags of
 * XPH_SET. */
#include "cpu/ref/real.h"

#include "base/base.h"

#define LEVEL_f64_ref    XPH_ISA_REF
#define LEVEL_f32_ref    XPH_ISA_REF
#define LEVEL_f32_avx2   XPH_ISA_AVX2
#define LEVEL_f32_avx512 XPH_ISA_AVX512

#define ENTRY(op) XPH_LIST(op),

const xph_kernel_set XPH_FN(xph_kernels) = {
    XPH_TEXT(XPH_SET),
    REAL_TYPE,
    XPH_JOIN(LEVEL_, XPH_SET),
    {XPH_ALL_LISTS(ENTRY)},
};

_Static_assert(XPH_OP_COUNT == 25, "XPH_ALL_LISTS follows xph_op");
