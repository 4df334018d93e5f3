/* Matrix units: one warp's product of 16 rows and 8 columns, summed in float. Operands are words of 4 bytes along the inner
 * dimension, 8 of them: two bfloat16s or float16s, or one float of which 10 bits of the fraction count (TF32). Lane 4 g + t
 * has the words t and t + 4 of the rows g and g + 8 and of the column g, and the sums of these rows and the columns 2 t and
 * 2 t + 1 (PTX ISA, "Matrix Fragments for mma.m16n8k8 and m16n8k16").
 */
#ifndef XPH_CUDA_TENSOR_CUH
#define XPH_CUDA_TENSOR_CUH

#include "element.cuh"

/* How numbers of a type are multiplied: `Number` as they lie in memory, PER_WORD of them a word. */
struct by_bf16 {
    using Number = __nv_bfloat16;
    static constexpr int PER_WORD = 2;
    static constexpr bool BFLOAT = true;
};
struct by_f16 {
    using Number = __half;
    static constexpr int PER_WORD = 2;
    static constexpr bool BFLOAT = false;
};
struct by_tf32 {
    using Number = float;
    static constexpr int PER_WORD = 1;
};

/* A word as the units take it: TF32 is rounded to nearest, away from zero in the middle; else as it is. */
template <class Kind> __device__ inline unsigned operand(float word)
{
    if constexpr (Kind::PER_WORD > 1) return __float_as_uint(word);
#ifdef __CUDACC__
    unsigned rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(word));
    return rounded;
#else
    return (__float_as_uint(word) + 0x1000u) & 0xffffe000u;
#endif
}

#ifdef __CUDACC__
#  define XPH_MMA(shape)                                                                                     \
    asm("mma.sync.aligned." shape " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"         \
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                             \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#else
inline float part_of(by_bf16, unsigned word, int i)
{
    return __uint_as_float(i ? word & 0xffff0000u : word << 16);
}
inline float part_of(by_f16, unsigned word, int i)
{
    return __half2float(__half{static_cast<uint16_t>(i ? word >> 16 : word & 0xffffu)});
}
inline float part_of(by_tf32, unsigned word, int)
{
    return __uint_as_float(word);
}
#endif

/* sum += a b. a: row g word t, row g + 8 word t, row g word t + 4, row g + 8 word t + 4; b: words t and t + 4 of column g;
 * sum: row g columns 2 t and 2 t + 1, then those of row g + 8. All lanes together. */
template <class Kind>
__device__ inline void add_product(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
#ifdef __CUDACC__
    if constexpr (Kind::PER_WORD == 1)
        XPH_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
    else if constexpr (Kind::BFLOAT)
        XPH_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
    else
        XPH_MMA("m16n8k16.row.col.f32.f16.f16.f32");
#else
    const int lane = static_cast<int>(threadIdx.x) % WARP, g = lane / 4, t = lane % 4;
    for (int k = 0; k < 8; k++) {
        unsigned row[2], column[2];
        for (int i = 0; i < 2; i++) {
            row[i] = __shfl_sync(ALL_LANES, a[i + k / 4 * 2], g * 4 + k % 4);
            column[i] = __shfl_sync(ALL_LANES, b[k / 4], (2 * t + i) * 4 + k % 4);
        }
        for (int i = 0; i < 4 * Kind::PER_WORD; i++) {
            const int to = i / Kind::PER_WORD, half = i % Kind::PER_WORD;
            sum[to] =
                fmaf(part_of(Kind(), row[to / 2], half), part_of(Kind(), column[to % 2], half), sum[to]);
        }
    }
#endif
}

/* ---- two products of a warp, from memory ---- */

constexpr int GROUP =
    16; /* words that four lanes load at once: of a lane's four, two belong to each of two steps */
constexpr int ONCE = 4; /* groups under way */

/* Sums of the rows g and g + 8 and the columns 2 t, 2 t + 1 of two products, each of them twice: of every second step. */
struct products {
    float sum[2][2][4];
};

/* w, h: where the lane's first words lie, of its column of either product and its two rows: lane 4 g + t begins with word
 * 4 t. */
template <class Kind>
__device__ inline void multiply(const float *const (&w)[2], const float *const (&h)[2], int groups,
                                products *p)
{
    for (int first = 0; first < groups; first += ONCE) {
        float4 x[ONCE][2], y[ONCE][2];
        XPH_UNROLL
        for (int i = 0; i < ONCE * 2; i++) {
            if (first + i / 2 >= groups) continue;
            y[i / 2][i % 2] =
                __ldg(reinterpret_cast<const float4 *>(w[i % 2]) + (first + i / 2) * (GROUP / 4));
            x[i / 2][i % 2] = *(reinterpret_cast<const float4 *>(h[i % 2]) + (first + i / 2) * (GROUP / 4));
        }
        XPH_UNROLL
        for (int i = 0; i < ONCE; i++) {
            if (first + i >= groups) continue;
            const float4 &upper = x[i][0], &lower = x[i][1];
            const unsigned a[2][4] = {{operand<Kind>(upper.x), operand<Kind>(lower.x), operand<Kind>(upper.y),
                                       operand<Kind>(lower.y)},
                                      {operand<Kind>(upper.z), operand<Kind>(lower.z), operand<Kind>(upper.w),
                                       operand<Kind>(lower.w)}};
            XPH_UNROLL
            for (int n = 0; n < 2; n++) {
                const float4 &v = y[i][n];
                const unsigned b[2][2] = {{operand<Kind>(v.x), operand<Kind>(v.y)},
                                          {operand<Kind>(v.z), operand<Kind>(v.w)}};
                add_product<Kind>(p->sum[n][0], a[0], b[0]);
                add_product<Kind>(p->sum[n][1], a[1], b[1]);
            }
        }
    }
}

#endif
