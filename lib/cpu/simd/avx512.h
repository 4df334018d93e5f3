/* The vectors of vec.h in AVX-512 (F, BW, DQ, VL): 16 floats. */
#include <immintrin.h>

enum { VEC_NARROW = 1, VEC_NEAR_PAYS = 1, VEC_ABREAST = 1, VEC_LOADS = 1 };

#define VEC_HOLD(x)             __asm__("" : "+v"(x))
#define VEC_HOLD_TWO(x, y)      __asm__("" : "+v"(x), "+v"(y))
#define VEC_FMA_HELD(sum, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))

XPH_INLINE vec vec_all(real x)
{
    return (vec)_mm512_set1_ps(x);
}
XPH_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
typedef vec multiplier;
XPH_INLINE multiplier multiplier_of(real x)
{
    return vec_all(x);
}
XPH_INLINE vec vec_fma_by(multiplier a, vec b, vec c)
{
    return vec_fma(a, b, c);
}
XPH_INLINE vec vec_sqrt(vec x)
{
    return (vec)_mm512_sqrt_ps((__m512)x);
}
XPH_INLINE vec vec_max(vec a, vec b)
{
    return (vec)_mm512_max_ps((__m512)a, (__m512)b);
}
XPH_INLINE vec vec_min(vec a, vec b)
{
    return (vec)_mm512_min_ps((__m512)a, (__m512)b);
}
XPH_INLINE vec vec_within(vec x, real limit)
{
    return (vec)_mm512_range_ps((__m512)x, _mm512_set1_ps(limit), 2); /* the lesser magnitude, sign of x */
}
XPH_INLINE vec vec_of_int(vec_int n)
{
    return (vec)_mm512_cvtepi32_ps((__m512i)n);
}

/* ---- comparisons and parts ---- */

XPH_INLINE uint32_t vec_greater(vec a, vec b)
{
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ);
}
XPH_INLINE uint32_t vec_equal(vec a, vec b)
{
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ);
}
XPH_INLINE bool vec_all_at_most(vec a, vec b)
{
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LE_OQ) == 0xffffu;
}
XPH_INLINE vec vec_where_greater(vec a, vec b, vec yes, vec no)
{
    __mmask16 lanes = _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ);
    return (vec)_mm512_mask_blend_ps(lanes, (__m512)no, (__m512)yes);
}
XPH_INLINE vec vec_where_equal(vec a, vec b, vec yes, vec no)
{
    __mmask16 lanes = _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ);
    return (vec)_mm512_mask_blend_ps(lanes, (__m512)no, (__m512)yes);
}
XPH_INLINE vec vec_where_minus(vec x, vec yes, vec no)
{
    return (vec)_mm512_mask_mov_ps((__m512)no, _mm512_movepi32_mask((__m512i)x), (__m512)yes);
}
XPH_INLINE vec vec_first(int64_t count, vec v, vec rest)
{
    return (vec)_mm512_mask_mov_ps((__m512)rest, (__mmask16)((1u << count) - 1u), (__m512)v);
}

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

/* ---- exponents ---- */

XPH_INLINE vec vec_floor_parts(vec x, vec *whole)
{
    *whole = x;
    return (vec)_mm512_reduce_ps((__m512)x, 9); /* 1 | 8: down, in silence */
}
XPH_INLINE vec vec_times_two_to(vec x, vec whole)
{
    return (vec)_mm512_scalef_ps((__m512)x, (__m512)whole);
}

/* ---- sums of lanes ---- */

XPH_INLINE __m256 half_of(vec a)
{
    return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd((__m512)a), 1));
}
XPH_INLINE real vec_sum(vec a)
{
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256((__m512)a), half_of(a));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
XPH_INLINE real vec_top(vec a)
{
    __m256 eight = _mm256_max_ps(_mm512_castps512_ps256((__m512)a), half_of(a));
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}
XPH_INLINE vec vec_sum_fours(const vec x[4])
{
    __m512 a = _mm512_shuffle_ps((__m512)x[0], (__m512)x[1], 0x44) +
               _mm512_shuffle_ps((__m512)x[0], (__m512)x[1], 0xee);
    __m512 b = _mm512_shuffle_ps((__m512)x[2], (__m512)x[3], 0x44) +
               _mm512_shuffle_ps((__m512)x[2], (__m512)x[3], 0xee);
    return (vec)_mm512_shuffle_ps(a, b, 0x88) + (vec)_mm512_shuffle_ps(a, b, 0xdd);
}
/* The halves of a added, then those of b. */
XPH_INLINE __m512 sum_halves(vec a, vec b)
{
    return _mm512_shuffle_f32x4((__m512)a, (__m512)b, 0x4e) +
           _mm512_mask_blend_ps(0xff00, (__m512)a, (__m512)b);
}
XPH_INLINE vec vec_sum_rows(const vec row[VEC])
{
    vec fours[4]; /* of rows i, i + 4, ... what is left, a quarter of each */
    XPH_UNROLL
    for (int i = 0; i < 4; i++) {
        __m512 a = sum_halves(row[i], row[i + 4]), b = sum_halves(row[i + 8], row[i + 12]);
        fours[i] = (vec)_mm512_shuffle_f32x4(a, b, 0x88) + (vec)_mm512_shuffle_f32x4(a, b, 0xdd);
    }
    return vec_sum_fours(fours);
}

/* ---- transposition ---- */

XPH_INLINE void vec_transpose4(vec x[4])
{
    __m512 a = _mm512_unpacklo_ps((__m512)x[0], (__m512)x[1]),
           b = _mm512_unpackhi_ps((__m512)x[0], (__m512)x[1]);
    __m512 c = _mm512_unpacklo_ps((__m512)x[2], (__m512)x[3]),
           d = _mm512_unpackhi_ps((__m512)x[2], (__m512)x[3]);
    x[0] = (vec)_mm512_shuffle_ps(a, c, 0x44);
    x[1] = (vec)_mm512_shuffle_ps(a, c, 0xee);
    x[2] = (vec)_mm512_shuffle_ps(b, d, 0x44);
    x[3] = (vec)_mm512_shuffle_ps(b, d, 0xee);
}
XPH_INLINE void vec_transpose_quarters(vec x[4])
{
    __m512 a = _mm512_shuffle_f32x4((__m512)x[0], (__m512)x[1], 0x44);
    __m512 b = _mm512_shuffle_f32x4((__m512)x[2], (__m512)x[3], 0x44);
    __m512 c = _mm512_shuffle_f32x4((__m512)x[0], (__m512)x[1], 0xee);
    __m512 d = _mm512_shuffle_f32x4((__m512)x[2], (__m512)x[3], 0xee);
    x[0] = (vec)_mm512_shuffle_f32x4(a, b, 0x88);
    x[1] = (vec)_mm512_shuffle_f32x4(a, b, 0xdd);
    x[2] = (vec)_mm512_shuffle_f32x4(c, d, 0x88);
    x[3] = (vec)_mm512_shuffle_f32x4(c, d, 0xdd);
}
XPH_INLINE vec vec_load_fours(const real *const *row, int64_t at)
{
    __m512 x = _mm512_castps128_ps512(_mm_loadu_ps(row[0] + at));
    x = _mm512_insertf32x4(x, _mm_loadu_ps(row[4] + at), 1);
    x = _mm512_insertf32x4(x, _mm_loadu_ps(row[8] + at), 2);
    return (vec)_mm512_insertf32x4(x, _mm_loadu_ps(row[12] + at), 3);
}
XPH_INLINE void vec_store_fours(real *const *row, int64_t at, vec v)
{
    _mm_storeu_ps(row[0] + at, _mm512_castps512_ps128((__m512)v));
    _mm_storeu_ps(row[4] + at, _mm512_extractf32x4_ps((__m512)v, 1));
    _mm_storeu_ps(row[8] + at, _mm512_extractf32x4_ps((__m512)v, 2));
    _mm_storeu_ps(row[12] + at, _mm512_extractf32x4_ps((__m512)v, 3));
}
XPH_INLINE vec vec_repeat_four(const real *from)
{
    return (vec)_mm512_broadcast_f32x4(_mm_loadu_ps(from));
}

/* ---- integers ---- */

XPH_INLINE vec_bits vec_bits_max(vec_bits a, vec_bits b)
{
    return (vec_bits)_mm512_max_epu32((__m512i)a, (__m512i)b);
}
XPH_INLINE uint32_t vec_bits_top(vec_bits a)
{
    return _mm512_reduce_max_epu32((__m512i)a);
}
XPH_INLINE void vec_store_bytes(uint8_t *to, const vec_bits v[VEC_NARROW], uint8_t flip)
{
    __m128i bytes = _mm_xor_si128(_mm512_cvtepi32_epi8((__m512i)v[0]), _mm_set1_epi8((char)flip));
    _mm_storeu_si128((__m128i *)(void *)to, bytes);
}
