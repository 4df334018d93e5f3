/* Products of a warp by matrix units (mma.cuh), for the three types of rows. Operands are words of 4 bytes along the inner
 * dimension, 8 of them a step: two bfloat16s or float16s, or one float of which 10 bits of the fraction count (TF32). Lane
 * 4 g + t has the words t and t + 4 of the rows g and g + 8 and of the column g, and the sums of these rows and the columns
 * 2 t and 2 t + 1.
 */
#ifndef XPH_CUDA_TENSOR_CUH
#define XPH_CUDA_TENSOR_CUH

#include "mma.cuh"

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

/* A word as the units take it: TF32 is rounded, the others are already. */
template <class Kind> __device__ inline unsigned operand(float word)
{
    return __float_as_uint(Kind::PER_WORD > 1 ? word : to_tf32(word));
}

/* sum += a b. a: row g word t, row g + 8 word t, row g word t + 4, row g + 8 word t + 4; b: words t and t + 4 of column g;
 * sum: row g columns 2 t and 2 t + 1, then those of row g + 8. All lanes together. */
template <class Kind>
__device__ inline void add_product(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    if constexpr (Kind::PER_WORD == 1)
        mma_tf32(sum[0], sum[1], sum[2], sum[3], a, b[0], b[1]);
    else if constexpr (Kind::BFLOAT)
        mma_bf16(sum[0], sum[1], sum[2], sum[3], a, b[0], b[1]);
    else
        mma_f16(sum[0], sum[1], sum[2], sum[3], a, b[0], b[1]);
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
