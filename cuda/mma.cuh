/* Matrix units of a warp: D += A B with A of 16 rows, B of 8 columns, sums in float. Fragments lie as the PTX
 * manual says (sections on mma.m16n8k8 for tf32, mma.m16n8k16 for bfloat16, ldmatrix); with lane = 4 g + q:
 *   C, D       c[0], c[1]: row g, columns 2 q and 2 q + 1; c[2], c[3]: row g + 8
 *   tf32       a[0..3]: (g, q), (g + 8, q), (g, q + 4), (g + 8, q + 4) as (row, k); b[0], b[1]: k = q, q + 4 of column g
 *   bfloat16   (and float16) registers hold two neighbours in k, the lower one in the lower half; k = 2 q + {0, 1} stands
 *              for q above, and + 8 for + 4
 * On the emulated GPU every lane computes its four numbers in float, which the hardware may do in another
 * order and with other roundings of the last bits: these kernels can be compared only within a tolerance.
 */
#ifndef XPH_CUDA_MMA_CUH
#define XPH_CUDA_MMA_CUH

#include "element.cuh"

/* Nearest of the numbers with 10 bits of fraction, ties away from zero; a float that matrix units take as it is. */
__device__ inline float to_tf32(float x)
{
#ifdef __CUDACC__
    unsigned y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return __uint_as_float(y);
#else
    const unsigned bits = __float_as_uint(x);
    return x - x == 0.0f ? __uint_as_float((bits + 0x1000u) & ~0x1fffu) : x;
#endif
}

/* Two bfloat16s, nearest even, the first in the lower half. */
__device__ inline unsigned pack_bf16(float low, float high)
{
#ifdef __CUDACC__
    unsigned y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
#else
    return __float2bfloat16(low).bits | static_cast<unsigned>(__float2bfloat16(high).bits) << 16;
#endif
}

#ifdef __CUDACC__

__device__ inline void mma_tf32(float &c0, float &c1, float &c2, float &c3, const unsigned (&a)[4],
                                unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void mma_bf16(float &c0, float &c1, float &c2, float &c3, const unsigned (&a)[4],
                                unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void mma_f16(float &c0, float &c1, float &c2, float &c3, const unsigned (&a)[4],
                               unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Four matrices of 8 rows of 16 bytes: lane l gives the address of row l % 8 of matrix l / 8, and gets of every matrix the
 * q-th 4 bytes of row g. */
__device__ inline void load_matrices(unsigned (&to)[4], const void *row)
{
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}
/* Of numbers of 2 bytes, transposed: a lane gets rows 2 q and 2 q + 1 of column g. */
__device__ inline void load_transposed(unsigned (&to)[4], const void *row)
{
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

#else

/* What the lanes of a warp show each other. */
struct emu_fragments {
    unsigned a[32][4], b[32][2];
};
inline emu_fragments &emu_shown(const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    static emu_fragments all[emu::MOST_CLUSTER][32];
    const unsigned lane = threadIdx.x % 32;
    emu_fragments &own = all[emu::cluster_rank()][threadIdx.x / 32];
    memcpy(own.a[lane], a, sizeof own.a[lane]);
    own.b[lane][0] = b0, own.b[lane][1] = b1;
    __syncwarp();
    return own;
}

/* c[i] of a lane: row g + 8 (i / 2), column 2 q + i % 2. */
template <class Product>
inline void emu_mma(float &c0, float &c1, float &c2, float &c3, const emu_fragments &f,
                    const Product &product)
{
    const unsigned g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
    float *const c[4] = {&c0, &c1, &c2, &c3};
    for (unsigned i = 0; i < 4; i++) *c[i] += product(f, g, i / 2, 2 * q + i % 2);
    __syncwarp();
}

inline void mma_tf32(float &c0, float &c1, float &c2, float &c3, const unsigned (&a)[4], unsigned b0,
                     unsigned b1)
{
    emu_mma(c0, c1, c2, c3, emu_shown(a, b0, b1),
            [](const emu_fragments &f, unsigned g, unsigned upper, unsigned column) {
                float s = 0.0f;
                for (unsigned k = 0; k < 8; k++) {
                    const float x = __uint_as_float(f.a[4 * g + k % 4][upper + k / 4 * 2] & ~0x1fffu);
                    s += x * __uint_as_float(f.b[4 * column + k % 4][k / 4] & ~0x1fffu);
                }
                return s;
            });
}

inline float emu_bf16_of(unsigned both, unsigned upper)
{
    return __uint_as_float(upper ? both & 0xffff0000u : both << 16);
}
inline float emu_f16_of(unsigned both, unsigned upper)
{
    return __half2float(__half{static_cast<uint16_t>(upper ? both >> 16 : both & 0xffffu)});
}

/* of: one number of a register. */
template <float of(unsigned, unsigned)>
inline void emu_mma_halves(float &c0, float &c1, float &c2, float &c3, const unsigned (&a)[4], unsigned b0,
                           unsigned b1)
{
    emu_mma(c0, c1, c2, c3, emu_shown(a, b0, b1),
            [](const emu_fragments &f, unsigned g, unsigned upper, unsigned column) {
                float s = 0.0f;
                for (unsigned k = 0; k < 16; k++) {
                    const unsigned lane = k % 8 / 2;
                    const float x = of(f.a[4 * g + lane][upper + k / 8 * 2], k % 2);
                    s += x * of(f.b[4 * column + lane][k / 8], k % 2);
                }
                return s;
            });
}

inline void mma_bf16(float &c0, float &c1, float &c2, float &c3, const unsigned (&a)[4], unsigned b0,
                     unsigned b1)
{
    emu_mma_halves<emu_bf16_of>(c0, c1, c2, c3, a, b0, b1);
}
inline void mma_f16(float &c0, float &c1, float &c2, float &c3, const unsigned (&a)[4], unsigned b0,
                    unsigned b1)
{
    emu_mma_halves<emu_f16_of>(c0, c1, c2, c3, a, b0, b1);
}

inline const unsigned char *emu_row(const void *row, unsigned lane)
{
    const uintptr_t at = __shfl_sync(0xffffffffu, reinterpret_cast<uintptr_t>(row), static_cast<int>(lane));
    return reinterpret_cast<const unsigned char *>(at);
}
inline void load_matrices(unsigned (&to)[4], const void *row)
{
    const unsigned g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
    for (unsigned m = 0; m < 4; m++) memcpy(&to[m], emu_row(row, 8 * m + g) + 4 * q, 4);
    __syncwarp();
}
inline void load_transposed(unsigned (&to)[4], const void *row)
{
    const unsigned g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
    for (unsigned m = 0; m < 4; m++) {
        uint16_t pair[2];
        for (unsigned i = 0; i < 2; i++) memcpy(&pair[i], emu_row(row, 8 * m + 2 * q + i) + 2 * g, 2);
        to[m] = pair[0] | static_cast<unsigned>(pair[1]) << 16;
    }
    __syncwarp();
}

#endif

#endif
