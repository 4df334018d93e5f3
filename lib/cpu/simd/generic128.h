/* The vectors of vec.h in 16 bytes, by the compiler's own vectors: 4 floats or 2 doubles, on every processor. A fused
 * multiply-add is taken lane by lane; where the processor has one, compilers join these. */

enum { VEC_NARROW = 1, VEC_NEAR_PAYS = 0, VEC_ABREAST = 1, VEC_LOADS = 1 };

#define VEC_HOLD(x)             (void)(x)
#define VEC_HOLD_TWO(x, y)      (void)(x), (void)(y)
#define VEC_FMA_HELD(sum, a, b) sum = vec_fma(a, b, sum)

XPH_INLINE vec vec_all(real x)
{
    vec v = {0};
    for (int i = 0; i < VEC; i++) v[i] = x;
    return v;
}
XPH_INLINE vec vec_fma(vec a, vec b, vec c)
{
    for (int i = 0; i < VEC; i++) c[i] = FMA(a[i], b[i], c[i]);
    return c;
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
    for (int i = 0; i < VEC; i++) x[i] = REAL_SQRT(x[i]);
    return x;
}

/* ---- comparisons and parts: a lane of a mask is all ones or 0 ---- */

XPH_INLINE vec mask_choose(vec_int lanes, vec yes, vec no)
{
    return (vec)(((vec_bits)yes & (vec_bits)lanes) | ((vec_bits)no & ~(vec_bits)lanes));
}
XPH_INLINE uint32_t bits_of_mask(vec_int lanes)
{
    uint32_t bits = 0;
    for (int i = 0; i < VEC; i++) bits |= (uint32_t)(lanes[i] & 1) << i;
    return bits;
}
XPH_INLINE uint32_t vec_greater(vec a, vec b)
{
    return bits_of_mask((vec_int)(a > b));
}
XPH_INLINE uint32_t vec_equal(vec a, vec b)
{
    return bits_of_mask((vec_int)(a == b));
}
XPH_INLINE bool vec_all_at_most(vec a, vec b)
{
    return bits_of_mask((vec_int)(a <= b)) == (1u << VEC) - 1u;
}
XPH_INLINE vec vec_where_greater(vec a, vec b, vec yes, vec no)
{
    return mask_choose((vec_int)(a > b), yes, no);
}
XPH_INLINE vec vec_where_equal(vec a, vec b, vec yes, vec no)
{
    return mask_choose((vec_int)(a == b), yes, no);
}
XPH_INLINE vec vec_where_minus(vec x, vec yes, vec no)
{
    return mask_choose((vec_int)x < 0, yes, no);
}
XPH_INLINE vec vec_max(vec a, vec b)
{
    return mask_choose((vec_int)(a > b), a, b);
}
XPH_INLINE vec vec_min(vec a, vec b)
{
    return mask_choose((vec_int)(a < b), a, b);
}
XPH_INLINE vec vec_within(vec x, real limit)
{
    return vec_min(vec_all(limit), vec_max(vec_all(-limit), x));
}
XPH_INLINE vec vec_first(int64_t count, vec v, vec rest)
{
    for (int i = 0; i < VEC; i++) rest[i] = i < count ? v[i] : rest[i];
    return rest;
}
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

XPH_INLINE real vec_top(vec a)
{
    real most = a[0];
    for (int i = 1; i < VEC; i++) most = a[i] > most ? a[i] : most;
    return most;
}

#if defined(XPH_REAL_F64)

XPH_INLINE real vec_sum(vec a)
{
    return a[0] + a[1];
}
XPH_INLINE vec vec_sum_rows(const vec row[VEC])
{
    return (vec){row[0][0], row[1][0]} + (vec){row[0][1], row[1][1]};
}

#else

XPH_INLINE vec vec_of_int(vec_int n)
{
    vec v = {0};
    for (int i = 0; i < VEC; i++) v[i] = (real)n[i];
    return v;
}

/* ---- exponents ---- */

/* The nearest integer, or the one before it. Where the difference is not exact, close to 1, the number before it. */
XPH_INLINE vec vec_floor_parts(vec x, vec *whole)
{
    const vec rounder = vec_all(ROUNDER);
    vec near = (x + rounder) - rounder, below = mask_choose((vec_int)(near > x), near - vec_all(1.0f), near),
        f = x - below;
    *whole = below;
    return (vec)((vec_int)f + (vec_int)(f + below > x));
}
XPH_INLINE vec vec_times_two_to(vec x, vec whole)
{
    return x * (vec)((vec_bits)(whole + vec_all(ROUNDER + 127.0f)) << 23);
}

/* ---- sums of lanes ---- */

XPH_INLINE real vec_sum(vec a)
{
    return (a[0] + a[2]) + (a[1] + a[3]);
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
    vec_bits more = (vec_bits)(a > b);
    return (a & more) | (b & ~more);
}
XPH_INLINE uint32_t vec_bits_top(vec_bits a)
{
    uint32_t most = a[0];
    for (int i = 1; i < VEC; i++) most = a[i] > most ? a[i] : most;
    return most;
}
XPH_INLINE void vec_store_bytes(uint8_t *to, const vec_bits v[VEC_NARROW], uint8_t flip)
{
    for (int i = 0; i < VEC; i++) to[i] = (uint8_t)(v[0][i] ^ flip);
}

#endif
