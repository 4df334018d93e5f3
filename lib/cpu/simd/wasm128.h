/* The vectors of vec.h in WebAssembly's SIMD: 4 floats. How many registers there are is the host's; x86-64 has 16.
 *
 * A multiply-add rounded once is relaxed_madd where that is known to be fused (XPH_ISA_RELAXED, lib/base/processor.c). Else it is
 * made in double, as in fma.h: the product is exact, the sum is rounded to 53 bits and then to 24. Rounding twice differs from
 * rounding once only where the first result lies in the middle between two floats, which its last 29 bits tell of a normal float.
 * For those, and for what is no larger than the least normal float, exact_fma rounds to odd first. */
#include <wasm_simd128.h>

enum { VEC_NARROW = 4, VEC_NEAR_PAYS = 0, VEC_ABREAST = 1, VEC_LOADS = 1 };

#define VEC_HOLD(x)             (void)(x)
#define VEC_HOLD_TWO(x, y)      (void)(x), (void)(y)
#define VEC_FMA_HELD(sum, a, b) sum = vec_fma(a, b, sum)

XPH_INLINE vec vec_all(real x)
{
    return (vec)wasm_f32x4_splat(x);
}

#if defined(__wasm_relaxed_simd__)
XPH_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return (vec)wasm_f32x4_relaxed_madd((v128_t)a, (v128_t)b, (v128_t)c);
}
#else
XPH_INLINE v128_t low_doubles(vec x)
{
    return wasm_f64x2_promote_low_f32x4((v128_t)x);
}
XPH_INLINE v128_t high_doubles(vec x)
{
    return wasm_f64x2_promote_low_f32x4(wasm_i64x2_shuffle((v128_t)x, (v128_t)x, 1, 1));
}
/* Each rounded to a float. */
XPH_INLINE vec floats_of(v128_t low, v128_t high)
{
    return (vec)wasm_i64x2_shuffle(wasm_f32x4_demote_f64x2_zero(low), wasm_f32x4_demote_f64x2_zero(high), 0,
                                   2);
}
/* a b + c to odd, as xph_fmaf has it. */
XPH_INLINE v128_t odd_fma(v128_t a, v128_t b, v128_t c)
{
    const v128_t product = wasm_f64x2_mul(a, b), sum = wasm_f64x2_add(product, c),
                 t = wasm_f64x2_sub(sum, product),
                 rest = wasm_f64x2_add(wasm_f64x2_sub(product, wasm_f64x2_sub(sum, t)), wasm_f64x2_sub(c, t));
    const v128_t minus = wasm_i64x2_shr(wasm_v128_xor(sum, rest), 63), one = wasm_i64x2_splat(1);
    /* 1, or -1 where the rest makes it smaller; nothing where the last bit is 1 */
    const v128_t away = wasm_v128_and(wasm_v128_or(minus, one), wasm_i64x2_sub(wasm_v128_and(sum, one), one));
    const v128_t zero = wasm_f64x2_splat(0.0),
                 some = wasm_v128_or(wasm_f64x2_gt(rest, zero), wasm_f64x2_lt(rest, zero));
    return wasm_i64x2_add(sum, wasm_v128_and(away, some));
}
/* Not in line: it is rare, and products are unrolled. */
static __attribute__((noinline, unused)) vec exact_fma(vec a, vec b, vec c)
{
    return floats_of(odd_fma(low_doubles(a), low_doubles(b), low_doubles(c)),
                     odd_fma(high_doubles(a), high_doubles(b), high_doubles(c)));
}
/* It is 30 instructions: in line in products only, or a page would have to fetch half as much again. */
#  if defined(XPH_PRODUCTS)
XPH_INLINE
#  else
static __attribute__((noinline, unused))
#  endif
vec vec_fma(vec a, vec b, vec c)
{
    const v128_t low = wasm_f64x2_add(wasm_f64x2_mul(low_doubles(a), low_doubles(b)), low_doubles(c)),
                 high = wasm_f64x2_add(wasm_f64x2_mul(high_doubles(a), high_doubles(b)), high_doubles(c));
    const vec sum = floats_of(low, high);
    const v128_t rest = wasm_i64x2_const_splat(0x1fffffff), middle = wasm_i64x2_const_splat(0x10000000),
                 least = wasm_f32x4_const_splat(0x1p-126f);
    const v128_t doubt = wasm_v128_or(wasm_v128_or(wasm_i64x2_eq(wasm_v128_and(low, rest), middle),
                                                   wasm_i64x2_eq(wasm_v128_and(high, rest), middle)),
                                      wasm_f32x4_le(wasm_f32x4_abs((v128_t)sum), least));
    return __builtin_expect(wasm_v128_any_true(doubt), 0) ? exact_fma(a, b, c) : sum;
}
#endif
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
    return (vec)wasm_f32x4_sqrt((v128_t)x);
}

/* ---- comparisons and parts: a lane of a mask is all ones or 0 ---- */

XPH_INLINE vec mask_choose(v128_t lanes, vec yes, vec no)
{
    return (vec)wasm_v128_bitselect((v128_t)yes, (v128_t)no, lanes);
}
XPH_INLINE v128_t greater(vec a, vec b)
{
    return wasm_f32x4_gt((v128_t)a, (v128_t)b);
}
/* pmax(x, y) is x < y ? y : x. */
XPH_INLINE vec vec_max(vec a, vec b)
{
    return (vec)wasm_f32x4_pmax((v128_t)b, (v128_t)a);
}
XPH_INLINE vec vec_min(vec a, vec b)
{
    return (vec)wasm_f32x4_pmin((v128_t)b, (v128_t)a);
}
XPH_INLINE vec vec_within(vec x, real limit)
{
    return vec_min(vec_all(limit), vec_max(vec_all(-limit), x));
}
XPH_INLINE vec vec_of_int(vec_int n)
{
    return (vec)wasm_f32x4_convert_i32x4((v128_t)n);
}
XPH_INLINE uint32_t vec_greater(vec a, vec b)
{
    return wasm_i32x4_bitmask(greater(a, b));
}
XPH_INLINE uint32_t vec_equal(vec a, vec b)
{
    return wasm_i32x4_bitmask(wasm_f32x4_eq((v128_t)a, (v128_t)b));
}
XPH_INLINE bool vec_all_at_most(vec a, vec b)
{
    return wasm_i32x4_all_true(wasm_f32x4_le((v128_t)a, (v128_t)b));
}
XPH_INLINE vec vec_where_greater(vec a, vec b, vec yes, vec no)
{
    return mask_choose(greater(a, b), yes, no);
}
XPH_INLINE vec vec_where_equal(vec a, vec b, vec yes, vec no)
{
    return mask_choose(wasm_f32x4_eq((v128_t)a, (v128_t)b), yes, no);
}
XPH_INLINE vec vec_where_minus(vec x, vec yes, vec no)
{
    return mask_choose(wasm_i32x4_shr((v128_t)x, 31), yes, no);
}
XPH_INLINE vec vec_first(int64_t count, vec v, vec rest)
{
    const v128_t place = wasm_i32x4_const(0, 1, 2, 3);
    return mask_choose(wasm_i32x4_lt(place, wasm_i32x4_splat((int32_t)count)), v, rest);
}
XPH_INLINE vec vec_load_part(const real *from, int64_t count)
{
    v128_t v = wasm_f32x4_const_splat(0.0f);
    if (count >= VEC) return vec_load(from);
    if (count == 1) v = wasm_v128_load32_zero(from);
    if (count >= 2) v = wasm_v128_load64_zero(from);
    if (count == 3) v = wasm_v128_load32_lane(from + 2, v, 2);
    return (vec)v;
}
XPH_INLINE void vec_store_part(real *to, vec v, int64_t count)
{
    if (count >= VEC) {
        vec_store(to, v);
        return;
    }
    if (count == 1) wasm_v128_store32_lane(to, (v128_t)v, 0);
    if (count >= 2) wasm_v128_store64_lane(to, (v128_t)v, 0);
    if (count == 3) wasm_v128_store32_lane(to + 2, (v128_t)v, 2);
}

/* ---- exponents ---- */

/* Where the difference is not exact, close to 1, the number before it. whole is the power itself. */
XPH_INLINE vec vec_floor_parts(vec x, vec *whole)
{
    vec below = (vec)wasm_f32x4_floor((v128_t)x), f = x - below;
    *whole = (vec)((vec_bits)(below + vec_all(ROUNDER + 127.0f)) << 23);
    return (vec)((vec_bits)f + (vec_bits)greater(f + below, x));
}
XPH_INLINE vec vec_times_two_to(vec x, vec whole)
{
    return x * whole;
}

/* ---- sums of lanes ---- */

XPH_INLINE real vec_sum(vec a)
{
    return (a[0] + a[2]) + (a[1] + a[3]);
}
XPH_INLINE real vec_top(vec a)
{
    vec most = vec_max(a, QUARTER_OF(a, a, 2, 3, 0, 1));
    return most[0] > most[1] ? most[0] : most[1];
}
XPH_INLINE vec vec_sum_fours(const vec x[4])
{
    vec a = QUARTER_OF(x[0], x[1], 0, 1, 4, 5) + QUARTER_OF(x[0], x[1], 2, 3, 6, 7);
    vec b = QUARTER_OF(x[2], x[3], 0, 1, 4, 5) + QUARTER_OF(x[2], x[3], 2, 3, 6, 7);
    return QUARTER_OF(a, b, 0, 2, 4, 6) + QUARTER_OF(a, b, 1, 3, 5, 7);
}
XPH_INLINE vec vec_sum_rows(const vec row[VEC])
{
    return vec_sum_fours(row);
}

/* ---- transposition ---- */

XPH_INLINE void vec_transpose4(vec x[4])
{
    quarter_transpose(x);
}
XPH_INLINE void vec_transpose_quarters(vec x[1])
{
    (void)x;
}
XPH_INLINE vec vec_load_fours(const real *const *row, int64_t at)
{
    return vec_load(row[0] + at);
}
XPH_INLINE void vec_store_fours(real *const *row, int64_t at, vec v)
{
    vec_store(row[0] + at, v);
}
XPH_INLINE vec vec_repeat_four(const real *from)
{
    return vec_load(from);
}

/* ---- integers ---- */

XPH_INLINE vec_bits vec_bits_max(vec_bits a, vec_bits b)
{
    return (vec_bits)wasm_u32x4_max((v128_t)a, (v128_t)b);
}
XPH_INLINE uint32_t vec_bits_top(vec_bits a)
{
    vec_bits half = vec_bits_max(a, (vec_bits)wasm_i64x2_shuffle((v128_t)a, (v128_t)a, 1, 0));
    return half[0] > half[1] ? half[0] : half[1];
}
XPH_INLINE void vec_store_bytes(uint8_t *to, const vec_bits v[VEC_NARROW], uint8_t flip)
{
    const v128_t low = wasm_i8x16_shuffle((v128_t)v[0], (v128_t)v[1], 0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8,
                                          12, 16, 20, 24, 28),
                 high = wasm_i8x16_shuffle((v128_t)v[2], (v128_t)v[3], 0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8,
                                           12, 16, 20, 24, 28);
    wasm_v128_store(to, wasm_v128_xor(wasm_i64x2_shuffle(low, high, 0, 2), wasm_u8x16_splat(flip)));
}
