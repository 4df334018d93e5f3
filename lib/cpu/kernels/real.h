/* Base of every file in lib/cpu/kernels. Each of these files is compiled once per kernel set:
 * -DXPH_SET=f32_avx2 names the set, -DXPH_REAL_F32 or -DXPH_REAL_F64 says what `real` is. Static functions
 * keep plain names; what leaves the file is a list of candidates named by XPH_LIST.
 *
 * What keeps the bits the same in all sets: loops run over independent outputs, so that a compiler may
 * vectorise them without changing any sum; where one long sum is needed it runs in XPH_LANES lanes, of which then
 * halves are added; a*b+c is written FMA(a, b, c) and contraction is off. Single precision uses no libm but fmaf
 * (correctly rounded) and sqrtf.
 */
#ifndef XPH_CPU_KERNELS_REAL_H
#define XPH_CPU_KERNELS_REAL_H

#include "cpu/kernels.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(XPH_REAL_F32)
typedef float real;
#  define R(number)     number##f
#  define FMA(a, b, c)  __builtin_fmaf(a, b, c)
#  define REAL_SQRT(x)  __builtin_sqrtf(x)
#  define REAL_ABS(x)   __builtin_fabsf(x)
#  define REAL_INFINITY __builtin_inff()
#  define REAL_TYPE     XPH_F32
#elif defined(XPH_REAL_F64)
typedef double real;
#  define R(number)     number
#  define FMA(a, b, c)  __builtin_fma(a, b, c)
#  define REAL_SQRT(x)  __builtin_sqrt(x)
#  define REAL_ABS(x)   __builtin_fabs(x)
#  define REAL_INFINITY __builtin_inf()
#  define REAL_TYPE     XPH_F64
#else
#  error "define XPH_REAL_F32 or XPH_REAL_F64, and XPH_SET"
#endif

#define XPH_JOIN_NOW(a, b)   a##b
#define XPH_JOIN(a, b)       XPH_JOIN_NOW(a, b)
#define XPH_TEXT_NOW(a)      #a
#define XPH_TEXT(a)          XPH_TEXT_NOW(a)
/* xph_linear + _ + f32_avx2: for names that leave the file. */
#define XPH_FN(name)         XPH_JOIN(XPH_JOIN(name, _), XPH_SET)
/* The candidates of an operation:
 *   const xph_candidate XPH_LIST(norm)[] = {{.name = XPH_LABEL("norm"), ...}, XPH_LIST_END}; */
#define XPH_LIST(op)         XPH_FN(xph_##op)
#define XPH_LABEL(text)      text "_" XPH_TEXT(XPH_SET)
/* Every list of the set, in the order of xph_op. A set for products alone compiles those of `products` anew. */
/* clang-format off */
#define XPH_LIST_END {.name = NULL}
#define XPH_ALL_LISTS(each) XPH_SPLIT_LISTS(each, each)
#define XPH_SPLIT_LISTS(products, each)                                                                                  \
    products(linear) products(linear_grad) products(linear_pack) each(norm) each(norm_grad) each(conv) each(conv_grad)   \
    each(scan) each(scan_grad) each(attention) each(attention_grad) products(rnn) products(rnn_grad) each(embed)     \
    each(embed_grad) each(heads) each(heads_grad) each(loss) each(sample) each(adam) each(norm2) each(axpby)   \
    each(round) each(cast) each(scan_pack) each(clear)
/* clang-format on */
#define XPH_DECLARE_LIST(op) extern const xph_candidate XPH_LIST(op)[];
XPH_ALL_LISTS(XPH_DECLARE_LIST)

/* Before loops over independent outputs: nothing is carried from one turn to the next. Where clang may not
 * act on it (sanitizers, coverage) that is nothing to warn about. */
#if defined(__clang__)
#  define XPH_VECTOR _Pragma("clang loop vectorize(enable)")
#  pragma clang diagnostic ignored "-Wpass-failed"
#else
#  define XPH_VECTOR _Pragma("GCC ivdep")
#endif

#define XPH_INLINE static inline __attribute__((always_inline, unused))

/* ---- counts: an operation is cut into items of at least some ten thousand multiply-adds, so that handing
 * one to another thread pays. Cuts depend on shapes alone. ---- */

XPH_INLINE int64_t int_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
XPH_INLINE int64_t int_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
XPH_INLINE int64_t blocks_of(int64_t count, int64_t block)
{
    return (count + block - 1) / block;
}
/* Rows per item when a row costs `work` multiply-adds. */
XPH_INLINE int64_t rows_per_item(int64_t work)
{
    return int_max(1, (1 << 16) / int_max(1, work));
}

/* Lanes of a long sum. */
enum { XPH_LANES = 32 };

#include "cpu/simd/element.h"

#endif
