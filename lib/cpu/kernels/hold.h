/* A multiply-add of registers and a load that is done once, for the inner loops of matrix products. Written
 * out, because compilers reload a column for every row, or move the sums between registers until they run
 * out. */
#ifndef XPH_CPU_KERNELS_HOLD_H
#define XPH_CPU_KERNELS_HOLD_H

#include "cpu/kernels/vec.h"

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
