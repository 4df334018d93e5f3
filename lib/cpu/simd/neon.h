/* The vectors of vec.h in AArch64's Advanced SIMD: 4 floats, in 32 registers. */
#include <arm_neon.h>

enum { VEC_NARROW = 4, VEC_NEAR_PAYS = 1, VEC_ABREAST = 2, VEC_LOADS = 2 };

#define VEC_HOLD(x)             __asm__("" : "+w"(x))
#define VEC_HOLD_TWO(x, y)      __asm__("" : "+w"(x), "+w"(y))
#define VEC_FMA_HELD(sum, a, b) sum = vec_fma_by(a, b, sum)

XPH_INLINE vec vec_all(real x)
{
    return (vec)vdupq_n_f32(x);
}
XPH_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return (vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
/* A multiply-add takes one lane of a register for all of its own. */
typedef real multiplier;
XPH_INLINE multiplier multiplier_of(real x)
{
    return x;
}
XPH_INLINE vec vec_fma_by(multiplier a, vec b, vec c)
{
    return (vec)vfmaq_n_f32((float32x4_t)c, (float32x4_t)b, a);
}
XPH_INLINE vec vec_sqrt(vec x)
{
    return (vec)vsqrtq_f32((float32x4_t)x);
}

/* ---- comparisons and parts: a lane of a mask is all ones or 0 ---- */

XPH_INLINE uint32x4_t greater(vec a, vec b)
{
    return vcgtq_f32((float32x4_t)a, (float32x4_t)b);
}
XPH_INLINE vec mask_choose(uint32x4_t lanes, vec yes, vec no)
{
    return (vec)vbslq_f32(lanes, (float32x4_t)yes, (float32x4_t)no);
}
/* Not by fmax and fmin, which make NaN of a NaN in a, and of 0 and -0 always the same one. */
XPH_INLINE vec vec_max(vec a, vec b)
{
    return mask_choose(greater(a, b), a, b);
}
XPH_INLINE vec vec_min(vec a, vec b)
{
    return mask_choose(greater(b, a), a, b);
}
#define VEC_HAS_LIMITS
XPH_INLINE vec vec_not_below(vec x, real low)
{
    return (vec)vmaxq_f32((float32x4_t)x, vdupq_n_f32(low));
}
XPH_INLINE vec vec_not_above(vec x, real high)
{
    return (vec)vminq_f32((float32x4_t)x, vdupq_n_f32(high));
}
XPH_INLINE vec vec_within(vec x, real limit)
{
    return vec_not_above(vec_not_below(x, -limit), limit);
}
XPH_INLINE vec vec_of_int(vec_int n)
{
    return (vec)vcvtq_f32_s32((int32x4_t)n);
}

XPH_INLINE uint32_t bits_of_mask(uint32x4_t lanes)
{
    const uint32x4_t bit = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(lanes, bit));
}
XPH_INLINE uint32_t vec_greater(vec a, vec b)
{
    return bits_of_mask(greater(a, b));
}
XPH_INLINE uint32_t vec_equal(vec a, vec b)
{
    return bits_of_mask(vceqq_f32((float32x4_t)a, (float32x4_t)b));
}
XPH_INLINE bool vec_all_at_most(vec a, vec b)
{
    return vminvq_u32(vcleq_f32((float32x4_t)a, (float32x4_t)b)) != 0;
}
XPH_INLINE vec vec_where_greater(vec a, vec b, vec yes, vec no)
{
    return mask_choose(greater(a, b), yes, no);
}
XPH_INLINE vec vec_where_equal(vec a, vec b, vec yes, vec no)
{
    return mask_choose(vceqq_f32((float32x4_t)a, (float32x4_t)b), yes, no);
}
XPH_INLINE vec vec_where_minus(vec x, vec yes, vec no)
{
    return mask_choose(vcltzq_s32((int32x4_t)x), yes, no);
}
XPH_INLINE vec vec_first(int64_t count, vec v, vec rest)
{
    const uint32x4_t place = {0, 1, 2, 3};
    return mask_choose(vcltq_u32(place, vdupq_n_u32((uint32_t)count)), v, rest);
}
XPH_INLINE vec vec_load_part(const real *from, int64_t count)
{
    float32x4_t v = vdupq_n_f32(0.0f);
    if (count >= VEC) return vec_load(from);
    if (count == 1) v = vld1q_lane_f32(from, v, 0);
    if (count >= 2) v = vcombine_f32(vld1_f32(from), vdup_n_f32(0.0f));
    if (count == 3) v = vld1q_lane_f32(from + 2, v, 2);
    return (vec)v;
}
XPH_INLINE void vec_store_part(real *to, vec v, int64_t count)
{
    if (count >= VEC) {
        vec_store(to, v);
        return;
    }
    if (count == 1) vst1q_lane_f32(to, (float32x4_t)v, 0);
    if (count >= 2) vst1_f32(to, vget_low_f32((float32x4_t)v));
    if (count == 3) vst1q_lane_f32(to + 2, (float32x4_t)v, 2);
}

/* ---- exponents ---- */

/* Where the difference is not exact, close to 1, the number before it. whole is the power itself, made beside what waits
 * for x. */
XPH_INLINE vec vec_floor_parts(vec x, vec *whole)
{
    vec below = (vec)vrndmq_f32((float32x4_t)x), f = x - below;
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
    float32x4_t x = (float32x4_t)a;
    return vaddv_f32(vadd_f32(vget_low_f32(x), vget_high_f32(x)));
}
XPH_INLINE real vec_top(vec a)
{
    return vmaxvq_f32((float32x4_t)a);
}
/* The lanes 0 and 2, 1 and 3 of a, then those of b. */
XPH_INLINE float32x4_t sum_halves(vec a, vec b)
{
    float64x2_t x = (float64x2_t)a, y = (float64x2_t)b;
    return (float32x4_t)((vec)vzip1q_f64(x, y) + (vec)vzip2q_f64(x, y));
}
XPH_INLINE vec vec_sum_fours(const vec x[4])
{
    return (vec)vpaddq_f32(sum_halves(x[0], x[1]), sum_halves(x[2], x[3]));
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
    return (vec_bits)vmaxq_u32((uint32x4_t)a, (uint32x4_t)b);
}
XPH_INLINE uint32_t vec_bits_top(vec_bits a)
{
    return vmaxvq_u32((uint32x4_t)a);
}
/* The low byte of every lane is every fourth of 64: twice every second one. */
XPH_INLINE void vec_store_bytes(uint8_t *to, const vec_bits v[VEC_NARROW], uint8_t flip)
{
    uint16x8_t low = vuzp1q_u16((uint16x8_t)v[0], (uint16x8_t)v[1]);
    uint16x8_t high = vuzp1q_u16((uint16x8_t)v[2], (uint16x8_t)v[3]);
    uint8x16_t all = vuzp1q_u8((uint8x16_t)low, (uint8x16_t)high);
    vst1q_u8(to, veorq_u8(all, vdupq_n_u8(flip)));
}
