/* Sums of one row in registers: lane i of LANES takes the elements i, i + LANES, ... in order, then halves are joined
 * (i with i + 8, + 4, + 2, + 1). The lanes are the same in all sets, however many registers hold them, so the results
 * are too. */
#ifndef XPH_CPU_SIMD_LANES_H
#define XPH_CPU_SIMD_LANES_H

#include "cpu/simd/vec.h"

enum { LANES = 16, LANE_VECS = LANES / VEC };

/* Keeps a number that several instructions use in a register: compilers would rather read it again each time. */
#if VEC_BYTES == 64
#  define VEC_HOLD(x) __asm__("" : "+v"(x))
#elif VEC_BYTES == 32
#  define VEC_HOLD(x) __asm__("" : "+x"(x))
#else
#  define VEC_HOLD(x) (void)(x)
#endif

#if VEC_BYTES == 64
XPH_INLINE vec vec_max(vec a, vec b)
{
    return (vec)_mm512_max_ps((__m512)a, (__m512)b);
}
#elif VEC_BYTES == 32
XPH_INLINE vec vec_max(vec a, vec b)
{
    return (vec)_mm256_max_ps((__m256)a, (__m256)b);
}
#else
/* b where they are equal or not ordered, as the instructions do */
XPH_INLINE vec vec_max(vec a, vec b)
{
    for (int i = 0; i < VEC; i++) b[i] = a[i] > b[i] ? a[i] : b[i];
    return b;
}
#endif

/* The LANES numbers in lane[0..LANE_VECS) joined. */
#if VEC_BYTES >= 32
XPH_INLINE __m128 join_256(__m256 a)
{
    return _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
}
XPH_INLINE real join_lanes(const vec *lane)
{
#  if VEC_BYTES == 64
    __m512 all = (__m512)lane[0];
    __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(all), 1));
    __m128 four = join_256(_mm256_add_ps(_mm512_castps512_ps256(all), high));
#  else
    __m128 four = join_256(_mm256_add_ps((__m256)lane[0], (__m256)lane[1]));
#  endif
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
#else
XPH_INLINE real join_lanes(const vec *lane)
{
    real x[LANES];
    memcpy(x, lane, sizeof x);
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) x[i] += x[i + width];
    return x[0];
}
#endif

/* The first count numbers of a register (more than VEC: all), the rest 0; and back. Nothing beyond is touched. */
#if VEC_BYTES == 64
XPH_INLINE __mmask16 part_mask(int64_t count)
{
    return (__mmask16)(count >= VEC ? 0xffffu : (1u << count) - 1u);
}
XPH_INLINE vec vec_load_part(const real *from, int64_t count)
{
    return (vec)_mm512_maskz_loadu_ps(part_mask(count), from);
}
XPH_INLINE void vec_store_part(real *to, vec v, int64_t count)
{
    _mm512_mask_storeu_ps(to, part_mask(count), (__m512)v);
}
#elif VEC_BYTES == 32
XPH_INLINE __m256i part_mask(int64_t count)
{
    const __m256i place = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)int_min(count, VEC)), place);
}
XPH_INLINE vec vec_load_part(const real *from, int64_t count)
{
    return (vec)_mm256_maskload_ps(from, part_mask(count));
}
XPH_INLINE void vec_store_part(real *to, vec v, int64_t count)
{
    _mm256_maskstore_ps(to, part_mask(count), (__m256)v);
}
#else
XPH_INLINE vec vec_load_part(const real *from, int64_t count)
{
    vec v = {0};
    for (int64_t i = 0; i < int_min(count, VEC); i++) v[i] = from[i];
    return v;
}
XPH_INLINE void vec_store_part(real *to, vec v, int64_t count)
{
    for (int64_t i = 0; i < int_min(count, VEC); i++) to[i] = v[i];
}
#endif

/* Bits of the lanes where a > b, and where they are equal; a > b ? yes : no, and a == b ? yes : no. */
#if VEC_BYTES == 64
XPH_INLINE uint32_t vec_above(vec a, vec b)
{
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ);
}
XPH_INLINE uint32_t vec_equal(vec a, vec b)
{
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ);
}
XPH_INLINE vec vec_larger(vec a, vec b, vec yes, vec no)
{
    __mmask16 lanes = _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ);
    return (vec)_mm512_mask_blend_ps(lanes, (__m512)no, (__m512)yes);
}
XPH_INLINE vec vec_same(vec a, vec b, vec yes, vec no)
{
    __mmask16 lanes = _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ);
    return (vec)_mm512_mask_blend_ps(lanes, (__m512)no, (__m512)yes);
}
#elif VEC_BYTES == 32
XPH_INLINE uint32_t vec_above(vec a, vec b)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_GT_OQ));
}
XPH_INLINE uint32_t vec_equal(vec a, vec b)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_EQ_OQ));
}
XPH_INLINE vec vec_larger(vec a, vec b, vec yes, vec no)
{
    __m256 lanes = _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_GT_OQ);
    return (vec)_mm256_blendv_ps((__m256)no, (__m256)yes, lanes);
}
XPH_INLINE vec vec_same(vec a, vec b, vec yes, vec no)
{
    __m256 lanes = _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_EQ_OQ);
    return (vec)_mm256_blendv_ps((__m256)no, (__m256)yes, lanes);
}
#else
XPH_INLINE uint32_t vec_above(vec a, vec b)
{
    uint32_t bits = 0;
    for (int i = 0; i < VEC; i++) bits |= (uint32_t)(a[i] > b[i]) << i;
    return bits;
}
XPH_INLINE uint32_t vec_equal(vec a, vec b)
{
    uint32_t bits = 0;
    for (int i = 0; i < VEC; i++) bits |= (uint32_t)(a[i] == b[i]) << i;
    return bits;
}
XPH_INLINE vec vec_larger(vec a, vec b, vec yes, vec no)
{
    for (int i = 0; i < VEC; i++) no[i] = a[i] > b[i] ? yes[i] : no[i];
    return no;
}
XPH_INLINE vec vec_same(vec a, vec b, vec yes, vec no)
{
    for (int i = 0; i < VEC; i++) no[i] = a[i] == b[i] ? yes[i] : no[i];
    return no;
}
#endif

/* The largest of the lanes; none is NaN. */
#if VEC_BYTES >= 32
XPH_INLINE real vec_top(vec a)
{
#  if VEC_BYTES == 64
    __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd((__m512)a), 1));
    __m256 eight = _mm256_max_ps(_mm512_castps512_ps256((__m512)a), high);
#  else
    __m256 eight = (__m256)a;
#  endif
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}
#else
XPH_INLINE real vec_top(vec a)
{
    real top = a[0];
    for (int i = 1; i < VEC; i++) top = a[i] > top ? a[i] : top;
    return top;
}
#endif

#endif
