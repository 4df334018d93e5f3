/* Two registers multiplied into a third, and a load that is done once: for the inner loops of matrix products.
 * Written out, because compilers load a column anew for every row, or turn the sums round between registers until
 * there are none left. */
#ifndef XPH_CPU_SIMD_HOLD_H
#define XPH_CPU_SIMD_HOLD_H

#include "cpu/simd/vec.h"

#if VEC_BYTES == 64
#  define TILE_HOLD(x)             __asm__("" : "+v"(x))
#  define TILE_FMA(sum, x, column) __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(column))
#elif VEC_BYTES == 32
#  define TILE_HOLD(x)             __asm__("" : "+x"(x))
#  define TILE_FMA(sum, x, column) __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(x), "x"(column))
#else
#  define TILE_HOLD(x)             (void)(x)
#  define TILE_FMA(sum, x, column) sum = vec_fma(x, column, sum)
#endif

#endif
