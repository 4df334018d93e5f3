/* The vectors of vec.h in AVX2 and FMA: 8 floats. */
#include <immintrin.h>

enum { VEC_NARROW = 4, VEC_NEAR_PAYS = 1, VEC_ABREAST = 2, VEC_LOADS = 1 };

#define VEC_HOLD(x)             __asm__("" : "+x"(x))
#define VEC_HOLD_TWO(x, y)      __asm__("" : "+x"(x), "+x"(y))
#define VEC_FMA_HELD(sum, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b))

XPH_INLINE vec vec_all(real x)
{
    return (vec)_mm256_set1_ps(x);
}
XPH_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
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
    return (vec)_mm256_sqrt_ps((__m256)x);
}
XPH_INLINE vec vec_max(vec a, vec b)
{
    return (vec)_mm256_max_ps((__m256)a, (__m256)b);
}
XPH_INLINE vec vec_min(vec a, vec b)
{
    return (vec)_mm256_min_ps((__m256)a, (__m256)b);
}
XPH_INLINE vec vec_within(vec x, real limit)
{
    return vec_min(vec_all(limit), vec_max(vec_all(-limit), x));
}
XPH_INLINE vec vec_of_int(vec_int n)
{
    return (vec)_mm256_cvtepi32_ps((__m256i)n);
}

/* ---- comparisons and parts ---- */

XPH_INLINE uint32_t vec_greater(vec a, vec b)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_GT_OQ));
}
XPH_INLINE uint32_t vec_equal(vec a, vec b)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_EQ_OQ));
}
XPH_INLINE bool vec_all_at_most(vec a, vec b)
{
    return _mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_LE_OQ)) == 0xff;
}
XPH_INLINE vec vec_where_greater(vec a, vec b, vec yes, vec no)
{
    __m256 lanes = _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_GT_OQ);
    return (vec)_mm256_blendv_ps((__m256)no, (__m256)yes, lanes);
}
XPH_INLINE vec vec_where_equal(vec a, vec b, vec yes, vec no)
{
    __m256 lanes = _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_EQ_OQ);
    return (vec)_mm256_blendv_ps((__m256)no, (__m256)yes, lanes);
}
XPH_INLINE vec vec_where_minus(vec x, vec yes, vec no)
{
    return (vec)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)x);
}

/* The lanes below count. */
XPH_INLINE __m256i part_mask(int64_t count)
{
    const __m256i place = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), place);
}
XPH_INLINE vec vec_first(int64_t count, vec v, vec rest)
{
    return (vec)_mm256_blendv_ps((__m256)rest, (__m256)v, _mm256_castsi256_ps(part_mask(count)));
}
XPH_INLINE vec vec_load_part(const real *from, int64_t count)
{
    return (vec)_mm256_maskload_ps(from, part_mask(int_min(count, VEC)));
}
XPH_INLINE void vec_store_part(real *to, vec v, int64_t count)
{
    _mm256_maskstore_ps(to, part_mask(int_min(count, VEC)), (__m256)v);
}

/* ---- exponents ---- */

/* Where the difference is not exact, close to 1, the number before it. whole is the power itself, made beside what
 * waits for x. */
XPH_INLINE vec vec_floor_parts(vec x, vec *whole)
{
    vec below = (vec)_mm256_floor_ps((__m256)x), f = x - below;
    __m256 above = _mm256_cmp_ps((__m256)(f + below), (__m256)x, _CMP_GT_OQ);
    *whole = (vec)((vec_bits)(below + vec_all(ROUNDER + 127.0f)) << 23);
    return (vec)_mm256_add_epi32((__m256i)f, (__m256i)above);
}
XPH_INLINE vec vec_times_two_to(vec x, vec whole)
{
    return x * whole;
}

/* ---- sums of lanes ---- */

XPH_INLINE real vec_sum(vec a)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128((__m256)a), _mm256_extractf128_ps((__m256)a, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
XPH_INLINE real vec_top(vec a)
{
    __m128 four = _mm_max_ps(_mm256_castps256_ps128((__m256)a), _mm256_extractf128_ps((__m256)a, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}
XPH_INLINE vec vec_sum_fours(const vec x[4])
{
    __m256 a = _mm256_shuffle_ps((__m256)x[0], (__m256)x[1], 0x44) +
               _mm256_shuffle_ps((__m256)x[0], (__m256)x[1], 0xee);
    __m256 b = _mm256_shuffle_ps((__m256)x[2], (__m256)x[3], 0x44) +
               _mm256_shuffle_ps((__m256)x[2], (__m256)x[3], 0xee);
    return (vec)_mm256_shuffle_ps(a, b, 0x88) + (vec)_mm256_shuffle_ps(a, b, 0xdd);
}
XPH_INLINE vec vec_sum_rows(const vec row[VEC])
{
    vec fours[4]; /* of rows i and i + 4 what is left, a half of each */
    XPH_UNROLL
    for (int i = 0; i < 4; i++)
        fours[i] = (vec)_mm256_permute2f128_ps((__m256)row[i], (__m256)row[i + 4], 0x20) +
                   (vec)_mm256_permute2f128_ps((__m256)row[i], (__m256)row[i + 4], 0x31);
    return vec_sum_fours(fours);
}

/* ---- transposition ---- */

XPH_INLINE void vec_transpose4(vec x[4])
{
    __m256 a = _mm256_unpacklo_ps((__m256)x[0], (__m256)x[1]),
           b = _mm256_unpackhi_ps((__m256)x[0], (__m256)x[1]);
    __m256 c = _mm256_unpacklo_ps((__m256)x[2], (__m256)x[3]),
           d = _mm256_unpackhi_ps((__m256)x[2], (__m256)x[3]);
    x[0] = (vec)_mm256_shuffle_ps(a, c, 0x44);
    x[1] = (vec)_mm256_shuffle_ps(a, c, 0xee);
    x[2] = (vec)_mm256_shuffle_ps(b, d, 0x44);
    x[3] = (vec)_mm256_shuffle_ps(b, d, 0xee);
}
XPH_INLINE void vec_transpose_quarters(vec x[2])
{
    __m256 a = (__m256)x[0], b = (__m256)x[1];
    x[0] = (vec)_mm256_permute2f128_ps(a, b, 0x20);
    x[1] = (vec)_mm256_permute2f128_ps(a, b, 0x31);
}
XPH_INLINE vec vec_load_fours(const real *const *row, int64_t at)
{
    return (vec)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row[0] + at)),
                                     _mm_loadu_ps(row[4] + at), 1);
}
XPH_INLINE void vec_store_fours(real *const *row, int64_t at, vec v)
{
    _mm_storeu_ps(row[0] + at, _mm256_castps256_ps128((__m256)v));
    _mm_storeu_ps(row[4] + at, _mm256_extractf128_ps((__m256)v, 1));
}
XPH_INLINE vec vec_repeat_four(const real *from)
{
    return (vec)_mm256_broadcast_ps((const __m128 *)(const void *)from);
}

/* ---- integers ---- */

XPH_INLINE vec_bits vec_bits_max(vec_bits a, vec_bits b)
{
    return (vec_bits)_mm256_max_epu32((__m256i)a, (__m256i)b);
}
XPH_INLINE uint32_t vec_bits_top(vec_bits a)
{
    uint32_t most = a[0];
    for (int i = 1; i < VEC; i++) most = a[i] > most ? a[i] : most;
    return most;
}
/* Low bytes with their sign: packing cuts off what does not fit. */
XPH_INLINE __m256i signed_bytes(vec_bits v)
{
    return _mm256_srai_epi32(_mm256_slli_epi32((__m256i)v, 24), 24);
}
XPH_INLINE void vec_store_bytes(uint8_t *to, const vec_bits v[VEC_NARROW], uint8_t flip)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i low = _mm256_packs_epi32(signed_bytes(v[0]), signed_bytes(v[1]));
    __m256i high = _mm256_packs_epi32(signed_bytes(v[2]), signed_bytes(v[3]));
    __m256i all = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_xor_si256(all, _mm256_set1_epi8((char)flip)));
}
