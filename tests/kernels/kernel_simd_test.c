/* The vectors of one set against what lib/cpu/simd/vec.h says of each operation, lane by lane, and their functions against
 * those of one number, bit by bit. One program for each set, compiled as its kernels are (tests/CMakeLists.txt); by itself
 * this file is the set of 16 bytes of floats, for every processor. */
#ifndef SET_BYTES
#  define XPH_REAL_F32
#  define SET_BYTES 16
#  define SET_ISA   XPH_ISA_REF
#endif
#include "cpu/simd/columns.h"
#include "cpu/simd/lanes.h"
#include "cpu/simd/vec_element.h"

#include "kernel_case.h"

#include <math.h>

_Static_assert(VEC_BYTES == SET_BYTES, "these are not the vectors of the set");

static const real numbers[] = {R(0.0),   R(-0.0),   R(1.0),      R(-1.0),      R(0.3),   R(-0.3),
                               R(7.5),   R(-7.5),   R(0x1p-149), R(-0x1p-126), R(3e38),  R(-3e38),
                               INFINITY, -INFINITY, R(88.0),     R(-88.0),     R(126.0), R(-126.0),
                               NAN,      -NAN,      R(12345.678)};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static void same_bits(const char *what, real x, real got, real want)
{
    if (isnan(got) && isnan(want)) return;
    if (memcmp(&got, &want, sizeof got) != 0)
        fail_msg("%s(%a) = %a, should be %a", what, (double)x, (double)got, (double)want);
}

/* Neighbours in `numbers`: a lane sees only itself. */
static vec some(int from)
{
    vec v;
    for (int i = 0; i < VEC; i++) v[i] = numbers[(from + i) % NUMBERS];
    return v;
}

static void lane_by_lane(void **state)
{
    for (int i = 0; i < NUMBERS; i++)
        for (int j = 0; j < NUMBERS; j++) {
            vec a = some(i), b = some(j), yes = vec_all(R(2.0)), no = vec_all(R(3.0)), held = no;
            uint32_t greater = vec_greater(a, b), equal = vec_equal(a, b);
            bool all = true;
            vec most = vec_max(a, b), least = vec_min(a, b), sum = vec_fma(a, b, no);
            vec where = vec_where_greater(a, b, yes, no), same = vec_where_equal(a, b, yes, no);
            vec minus = vec_where_minus(a, yes, no), low = vec_at_least(a, b), high = vec_at_most(a, b);
            vec times = vec_fma_by(multiplier_of(a[0]), b, no);
            VEC_FMA_HELD(held, multiplier_of(a[0]), b);
            for (int l = 0; l < VEC; l++) {
                same_bits("max", a[l], most[l], a[l] > b[l] ? a[l] : b[l]);
                same_bits("min", a[l], least[l], a[l] < b[l] ? a[l] : b[l]);
                same_bits("at_least", a[l], low[l], a[l] < b[l] ? b[l] : a[l]);
                same_bits("at_most", a[l], high[l], a[l] > b[l] ? b[l] : a[l]);
                same_bits("fma", a[l], sum[l], FMA(a[l], b[l], R(3.0)));
                same_bits("fma_by", a[0], times[l], FMA(a[0], b[l], R(3.0)));
                same_bits("fma_held", a[0], held[l], times[l]);
                same_bits("where_greater", a[l], where[l], a[l] > b[l] ? R(2.0) : R(3.0));
                same_bits("where_equal", a[l], same[l], a[l] == b[l] ? R(2.0) : R(3.0));
                same_bits("where_minus", a[l], minus[l], signbit(a[l]) ? R(2.0) : R(3.0));
                assert_int_equal(greater >> l & 1, a[l] > b[l]);
                assert_int_equal(equal >> l & 1, a[l] == b[l]);
                all = all && a[l] <= b[l];
            }
            assert_true((greater | equal) < 1u << VEC);
            assert_int_equal(vec_all_at_most(a, b), all);
        }
}

/* Of one vector. NaN is left out of what may make a number of it. */
static void one_by_one(void **state)
{
    const real limit = R(88.0);
    for (int i = 0; i < NUMBERS; i++) {
        vec x = some(i), root = vec_sqrt(x), within = vec_within(x, limit), held = x;
        vec low = vec_not_below(x, R(-7.5)), high = vec_not_above(x, R(7.5));
        VEC_HOLD(held);
        for (int l = 0; l < VEC; l++) {
            same_bits("sqrt", x[l], root[l], REAL_SQRT(x[l]));
            same_bits("hold", x[l], held[l], x[l]);
            if (!isnan(x[l]))
                same_bits("within", x[l], within[l], x[l] > limit ? limit : x[l] < -limit ? -limit : x[l]);
            same_bits("not_below", x[l], low[l], x[l] < R(-7.5) ? R(-7.5) : x[l]);
            same_bits("not_above", x[l], high[l], x[l] > R(7.5) ? R(7.5) : x[l]);
        }
    }
}

/* Neither more nor less memory than requested: what is behind cannot be touched. */
static void parts(void **state)
{
    for (int64_t count = 0; count < 2 * VEC; count++) {
        real all[2 * VEC], to[2 * VEC];
        for (int i = 0; i < 2 * VEC; i++) all[i] = (real)(i + 1), to[i] = R(-1.0);
        size_t bytes = (size_t)count * sizeof *all;
        real *from = case_alloc(bytes), *end = case_alloc(bytes);
        memcpy(from, all, bytes), memcpy(end, to, bytes);
        vec v = vec_load_part(from, count), first = vec_first(count % VEC, vec_load(all), vec_all(R(9.0)));
        vec_store_part(to, vec_load(all), count);
        vec_store_part(end, vec_load(all), count);
        for (int i = 0; i < VEC; i++) assert_true(v[i] == (i < count ? all[i] : R(0.0)));
        for (int i = 0; i < VEC; i++) assert_true(first[i] == (i < count % VEC ? all[i] : R(9.0)));
        for (int i = 0; i < 2 * VEC; i++) assert_true(to[i] == (i < count && i < VEC ? all[i] : R(-1.0)));
        assert_memory_equal(end, to, bytes);
    }
    case_release();
}

/* x[0..count) in halves. */
static real halved(const real *x, int count)
{
    real half[LANES];
    memcpy(half, x, (size_t)count * sizeof *x);
    for (int width = count / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) half[i] += half[i + width];
    return half[0];
}

/* Halves are added: another order of some of these numbers gives another sum. */
static void sums_of_lanes(void **state)
{
    case_seed(1);
    for (int round = 0; round < 50; round++) {
        real x[LANES], row[VEC][VEC];
        vec lane[LANE_VECS], rows[VEC];
        for (int i = 0; i < LANES; i++) x[i] = (real)case_uniform(-1, 1) / R(3.0);
        for (int i = 0; i < (int)LANE_VECS; i++) lane[i] = vec_load(x + i * (int)VEC);
        same_bits("join_lanes", 0, join_lanes(lane), halved(x, LANES));
        for (int i = 0; i < VEC; i++) {
            for (int l = 0; l < VEC; l++) row[i][l] = (real)case_uniform(-1, 1) / R(3.0);
            rows[i] = vec_load(row[i]);
        }
        vec sums = vec_sum_rows(rows);
        for (int i = 0; i < VEC; i++) {
            same_bits("sum", (real)i, vec_sum(rows[i]), halved(row[i], VEC));
            same_bits("sum_rows", (real)i, sums[i], halved(row[i], VEC));
        }
#ifdef XPH_REAL_F32
        vec fours = vec_sum_fours(rows);
        for (int i = 0; i < VEC; i++)
            same_bits("sum_fours", (real)i, fours[i], halved(row[i % 4] + i / 4 * 4, 4));
#endif
    }
}

/* The largest lane, wherever it is. */
static void top_anywhere(void **state)
{
    for (int at = 0; at < LANES; at++) {
        real x[LANES];
        vec lane[LANE_VECS];
        for (int i = 0; i < LANES; i++) x[i] = (real)(i == at ? -1 : -2 - i);
        for (int i = 0; i < (int)LANE_VECS; i++) lane[i] = vec_load(x + i * (int)VEC);
        same_bits("top_of_lanes", (real)at, top_of_lanes(lane), R(-1.0));
        same_bits("top", (real)at, vec_top(lane[at / (int)VEC]), R(-1.0));
    }
}

#ifdef XPH_REAL_F32

/* Of a matrix of quarters and of each quarter, and quarters from rows and repeated. */
static void quarters(void **state)
{
    enum { QUARTERS = VEC / 4 };
    float in[VEC][VEC], repeated[4] = {1, 2, 3, 4};
    const float *row[VEC];
    vec x[VEC], four = vec_repeat_four(repeated);
    for (int i = 0; i < VEC; i++) {
        for (int l = 0; l < VEC; l++) in[i][l] = (float)(100 * i + l);
        x[i] = vec_load(in[i]), row[i] = in[i];
    }
    vec_transpose_quarters(x);
    for (int i = 0; i < QUARTERS; i++)
        for (int l = 0; l < VEC; l++) assert_true(x[i][l] == in[l / 4][4 * i + l % 4]);
    for (int i = 0; i < 4; i++) x[i] = vec_load(in[i]);
    vec_transpose4(x);
    for (int i = 0; i < 4; i++)
        for (int l = 0; l < VEC; l++) assert_true(x[i][l] == in[l % 4][l / 4 * 4 + i]);
    vec loaded = vec_load_fours(row, 0);
    for (int l = 0; l < VEC; l++)
        assert_true(loaded[l] == in[l / 4 * 4][l % 4] && four[l] == repeated[l % 4]);
}

static void integers(void **state)
{
    uint32_t numbers_of[2][VEC];
    int32_t whole[VEC];
    uint8_t bytes[VEC_NARROW * VEC];
    vec_bits many[VEC_NARROW];
    vec_int n;
    for (int i = 0; i < VEC; i++) {
        numbers_of[0][i] = 0x9e3779b9u * (uint32_t)(i + 1),
        numbers_of[1][i] = 0x85ebca6bu * (uint32_t)(i + 3);
        whole[i] = (int32_t)numbers_of[0][i] / (i + 1);
    }
    memcpy(&n, whole, sizeof n);
    vec_bits a = vec_bits_load(numbers_of[0]), b = vec_bits_load(numbers_of[1]), most = vec_bits_max(a, b);
    uint32_t top = 0;
    for (int i = 0; i < VEC; i++) {
        assert_true(most[i] == (a[i] > b[i] ? a[i] : b[i]));
        assert_true(vec_of_int(n)[i] == (float)whole[i]);
        top = a[i] > top ? a[i] : top;
    }
    assert_true(vec_bits_top(a) == top);
    for (int k = 0; k < VEC_NARROW; k++) many[k] = k % 2 ? a : b;
    vec_store_bytes(bytes, many, 0x80);
    for (int i = 0; i < VEC_NARROW * (int)VEC; i++)
        assert_int_equal(bytes[i], (many[i / (int)VEC][i % (int)VEC] ^ 0x80u) & 0xffu);
}

#endif

static void transposes(void **state)
{
    enum { MOST = 11, LD = 13 }; /* of at most 16 lanes */
    real from[2 * 16 * LD], to[LD * MOST], column[MOST * 17], back[16 * LD];
    for (int i = 0; i < 2 * 16 * LD; i++) from[i] = (real)i;
    for (int rows = 0; rows <= MOST; rows++)
        for (int columns = 0; columns <= MOST; columns++) {
            for (int i = 0; i < LD * MOST; i++) to[i] = R(-1.0);
            transpose(to, MOST, from, LD, rows, columns);
            for (int j = 0; j < LD; j++)
                for (int i = 0; i < MOST; i++)
                    assert_true(to[j * MOST + i] == (i < rows && j < columns ? from[i * LD + j] : R(-1.0)));
        }
    for (int count = 1; count <= MOST; count++) {
        const real *row[VEC];
        real *out[VEC];
        for (int r = 0; r < VEC; r++) row[r] = from + 2 * r * LD, out[r] = back + r * LD;
        for (int i = 0; i < VEC * LD; i++) back[i] = R(-1.0);
        columns_in(row, 1, count, column, VEC);
        for (int k = 0; k < count; k++)
            for (int r = 0; r < VEC; r++) assert_true(column[k * (int)VEC + r] == row[r][1 + k]);
        columns_out(column, 2, count, out);
        for (int r = 0; r < VEC; r++)
            for (int k = 0; k < LD; k++)
                assert_true(out[r][k] == (k >= 2 && k < count + 2 ? row[r][k - 1] : R(-1.0)));
        columns_in(row, 1, count, column, 17);
        for (int k = 0; k < count; k++)
            for (int r = 0; r < VEC; r++) assert_true(column[k * 17 + r] == row[r][1 + k]);
    }
}

typedef struct function {
    const char *name;
    vec (*lanes)(vec x);
    real (*single)(real x);
    real low, high;
} function;

#define FUNCTION(name)                                                                                       \
  static vec lanes_##name(vec x)                                                                             \
  {                                                                                                          \
    return vec_##name(x);                                                                                    \
  }                                                                                                          \
  static real single_##name(real x)                                                                          \
  {                                                                                                          \
    return real_##name(x);                                                                                   \
  }
FUNCTION(exp)
FUNCTION(exp2_falling)
FUNCTION(exp_down)
FUNCTION(log)
FUNCTION(log1p_unit)
FUNCTION(tanh)
FUNCTION(sigmoid)
FUNCTION(silu)
FUNCTION(silu_slope)
FUNCTION(softplus)

/* The real whose first 32 bits these are. */
static real real_of(uint32_t bits)
{
#ifdef XPH_REAL_F32
    return float_from(bits);
#else
    uint64_t all = (uint64_t)bits << 32 | bits;
    real x;
    memcpy(&x, &all, sizeof x);
    return x;
#endif
}

static void functions_of_one_number(void **state)
{
#define ROW(name, low, high)                                                                                 \
  {                                                                                                          \
#    name, lanes_##name, single_##name, low, high                                                            \
  }
    const function all[] = {ROW(exp, -INFINITY, INFINITY),        ROW(exp2_falling, -INFINITY, R(0.0)),
                            ROW(exp_down, -INFINITY, INFINITY),   ROW(log, R(0x1p-149), INFINITY),
                            ROW(log1p_unit, R(0.0), R(1.0)),      ROW(tanh, -INFINITY, INFINITY),
                            ROW(sigmoid, -INFINITY, INFINITY),    ROW(silu, -INFINITY, INFINITY),
                            ROW(silu_slope, -INFINITY, INFINITY), ROW(softplus, -INFINITY, INFINITY)};
    for (size_t f = 0; f < sizeof all / sizeof *all; f++)
        for (uint64_t bits = 0; bits < UINT64_C(1) << 30; bits += 9973)
            for (int first = 0; first < 4; first += VEC) { /* the two highest bits: the sign is one */
                vec x, y;
                for (int i = 0; i < VEC; i++)
                    x[i] = real_of((uint32_t)(bits + ((uint64_t)(first + i) << 30)));
                y = all[f].lanes(x);
                for (int i = 0; i < VEC; i++)
                    if (isnan(x[i]) || (x[i] >= all[f].low && x[i] <= all[f].high))
                        same_bits(all[f].name, x[i], y[i], all[f].single(x[i]));
            }
}

/* By itself, so that nothing of the set runs before main has asked. */
static __attribute__((noinline)) int run(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(lane_by_lane), cmocka_unit_test(one_by_one),
        cmocka_unit_test(parts),        cmocka_unit_test(sums_of_lanes),
        cmocka_unit_test(top_anywhere),
#ifdef XPH_REAL_F32
        cmocka_unit_test(quarters),     cmocka_unit_test(integers),
#endif
        cmocka_unit_test(transposes),   cmocka_unit_test(functions_of_one_number)};
    return cmocka_run_group_tests_name("kernel_simd", tests, NULL, NULL);
}

int main(void)
{
    if (xph_cpu_has(SET_ISA)) return run();
    print_message("SKIPPED: vectors of %s, which this processor does not have\n", xph_isa_name(SET_ISA));
    return 0;
}
