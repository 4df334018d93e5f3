/* Base of every file in lib/cpu/kernels. Each of these files is compiled once per kernel set:
 * -DXPH_SET=f32_avx2 names the set, -DXPH_REAL_F32 or -DXPH_REAL_F64 says what `real` is. Static functions
 * keep plain names; what leaves the file is a list of candidates named by XPH_LIST.
 *
 * What keeps the bits the same in all sets: loops run over independent outputs, so that a compiler may
 * vectorise them without changing any sum; where one long sum is needed it runs in XPH_LANES lanes, of which then
 * halves are added; and no rounding is left to a compiler (simd/real.h).
 */
#ifndef XPH_CPU_KERNELS_REAL_H
#define XPH_CPU_KERNELS_REAL_H

#include "cpu/kernels.h"
#include "cpu/simd/real.h"

#include <stddef.h>

#if defined(XPH_REAL_F32)
#  define REAL_TYPE XPH_F32
#else
#  define REAL_TYPE XPH_F64
#endif

#define XPH_JOIN_NOW(a, b)         a##b
#define XPH_JOIN(a, b)             XPH_JOIN_NOW(a, b)
#define XPH_TEXT_NOW(a)            #a
#define XPH_TEXT(a)                XPH_TEXT_NOW(a)
/* xph_linear + _ + f32_avx2: for names that leave the file. */
#define XPH_FN(name)               XPH_JOIN(XPH_JOIN(name, _), XPH_SET)
/* The candidates of an operation:
 *   const xph_candidate XPH_LIST(norm)[] = {{.name = XPH_LABEL("norm"), ...}, XPH_LIST_END}; */
#define XPH_LIST(op)               XPH_FN(xph_##op)
#define XPH_LABEL(text)            text "_" XPH_TEXT(XPH_SET)
/* clang-format off */
#define XPH_LIST_END {.name = NULL}
/* clang-format on */
/* All lists of the set (XPH_OPS). */
#define XPH_DECLARE_LIST(NAME, op) extern const xph_candidate XPH_LIST(op)[];
XPH_EACH_OP(XPH_DECLARE_LIST)
/* xph_kernel_set.compose of the operations that call others of the set. */
void XPH_FN(xph_rnn_compose)(xph_rnn_args *args);
void XPH_FN(xph_rnn_grad_compose)(xph_rnn_grad_args *args);

/* ---- counts: an operation is cut into items of at least some ten thousand multiply-adds, so that handing
 * one to another thread pays. Cuts depend on shapes alone. ---- */

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

#endif
