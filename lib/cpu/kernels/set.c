/* The table of one kernel set: what lib/cpu/kernels offers for every operation, compiled with the flags of
 * XPH_SET. */
#include "cpu/kernels/real.h"

#include "base/base.h"

#define LEVEL_f64_ref        XPH_ISA_REF
#define LEVEL_f32_ref        XPH_ISA_REF
#define LEVEL_f64_avx2       XPH_ISA_AVX2
#define LEVEL_f32_avx2       XPH_ISA_AVX2
#define LEVEL_f32_avx512     XPH_ISA_AVX512
#define LEVEL_f32_neon       XPH_ISA_NEON
#define LEVEL_f32_simd128    XPH_ISA_SIMD128
#define LEVEL_f32_relaxed    XPH_ISA_RELAXED
/* These have instructions for products of narrow numbers only; all else is that of XPH_BASE_SET. */
#define LEVEL_f32_avx2vnni   XPH_ISA_AVX2_VNNI
#define LEVEL_f32_avx512vnni XPH_ISA_AVX512_VNNI
#define LEVEL_f32_avx512bf16 XPH_ISA_AVX512_BF16
#define LEVEL_f32_neondot    XPH_ISA_NEON_DOT

#define ENTRY(NAME, op) [XPH_OP_##NAME] = XPH_LIST(op),
#if defined(XPH_BASE_SET)
#  define BASE_LIST(op)          XPH_JOIN(XPH_JOIN(xph_##op, _), XPH_BASE_SET)
#  define BASE_ENTRY(NAME, op)   [XPH_OP_##NAME] = BASE_LIST(op),
#  define BASE_DECLARE(NAME, op) extern const xph_candidate BASE_LIST(op)[];
#  define NO_ENTRY(NAME, op)
XPH_OPS(NO_ENTRY, BASE_DECLARE)
#else
#  define BASE_ENTRY ENTRY
#endif

static void compose(xph_op op, void *args)
{
    if (op == XPH_OP_RNN) XPH_FN(xph_rnn_compose)(args);
    if (op == XPH_OP_RNN_GRAD) XPH_FN(xph_rnn_grad_compose)(args);
}

const xph_kernel_set XPH_FN(xph_kernels) = {
    XPH_TEXT(XPH_SET), REAL_TYPE, XPH_JOIN(LEVEL_, XPH_SET), {XPH_OPS(ENTRY, BASE_ENTRY)}, compose,
};
