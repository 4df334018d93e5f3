/* The vectors of 16 bytes against what lib/cpu/simd/vec.h says of each operation, lane by lane, and their functions
 * against those of one number, bit by bit. Wider vectors are compared with these by all other tests of kernels. */
#define XPH_REAL_F32
#include "cpu/simd/columns.h"
#include "cpu/simd/lanes.h"
#include "cpu/simd/vec_element.h"

#include "test.h"

#include <math.h>

static const float numbers[] = {0.0f,  -0.0f,     1.0f,       -1.0f,   0.3f,   -0.3f,    7.5f,
                                -7.5f, 0x1p-149f, -0x1p-126f, 3e38f,   -3e38f, INFINITY, -INFINITY,
                                88.0f, -88.0f,    126.0f,     -126.0f, NAN,    -NAN,     12345.678f};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void same_bits(const char *what, float x, float got, float want)
{
    if (isnan(got) && isnan(want)) return;
    if (bits_of(got) != bits_of(want))
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
            vec a = some(i), b = some(j), yes = vec_all(2.0f), no = vec_all(3.0f);
            uint32_t greater = vec_greater(a, b), equal = vec_equal(a, b);
            bool all = true;
            vec most = vec_max(a, b), least = vec_min(a, b), sum = vec_fma(a, b, no);
            vec where = vec_where_greater(a, b, yes, no), same = vec_where_equal(a, b, yes, no);
            vec minus = vec_where_minus(a, yes, no), low = vec_at_least(a, b), high = vec_at_most(a, b);
            for (int l = 0; l < VEC; l++) {
                same_bits("max", a[l], most[l], a[l] > b[l] ? a[l] : b[l]);
                same_bits("min", a[l], least[l], a[l] < b[l] ? a[l] : b[l]);
                same_bits("at_least", a[l], low[l], a[l] < b[l] ? b[l] : a[l]);
                same_bits("at_most", a[l], high[l], a[l] > b[l] ? b[l] : a[l]);
                same_bits("fma", a[l], sum[l], fmaf(a[l], b[l], 3.0f));
                same_bits("where_greater", a[l], where[l], a[l] > b[l] ? 2.0f : 3.0f);
                same_bits("where_equal", a[l], same[l], a[l] == b[l] ? 2.0f : 3.0f);
                same_bits("where_minus", a[l], minus[l], signbit(a[l]) ? 2.0f : 3.0f);
                assert_int_equal(greater >> l & 1, a[l] > b[l]);
                assert_int_equal(equal >> l & 1, a[l] == b[l]);
                all = all && a[l] <= b[l];
            }
            assert_true((greater | equal) < 1u << VEC);
            assert_int_equal(vec_all_at_most(a, b), all);
        }
}

/* Neither more nor less memory than requested. */
static void parts(void **state)
{
    for (int64_t count = 0; count < 2 * VEC; count++) {
        float from[2 * VEC], to[2 * VEC];
        for (int i = 0; i < 2 * VEC; i++) from[i] = (float)(i + 1), to[i] = -1.0f;
        vec v = vec_load_part(from, count), first = vec_first(count % VEC, vec_load(from), vec_all(9.0f));
        vec_store_part(to, vec_load(from), count);
        for (int i = 0; i < VEC; i++) assert_true(v[i] == (i < count ? from[i] : 0.0f));
        for (int i = 0; i < VEC; i++) assert_true(first[i] == (i < count % VEC ? from[i] : 9.0f));
        for (int i = 0; i < 2 * VEC; i++) assert_true(to[i] == (i < count && i < VEC ? from[i] : -1.0f));
    }
}

/* x[0..count) in halves. */
static float halved(const float *x, int count)
{
    float half[LANES];
    memcpy(half, x, (size_t)count * sizeof *x);
    for (int width = count / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) half[i] += half[i + width];
    return half[0];
}

/* Halves are added: another order of these numbers gives another sum. */
static void sums_of_lanes(void **state)
{
    float x[LANES], row[VEC][VEC], top;
    vec lane[LANE_VECS], rows[VEC];
    for (int i = 0; i < LANES; i++) x[i] = (float)(i * i + 1) * (i % 3 ? 0x1.8p20f : -0x1.000002p-3f);
    for (int i = 0; i < (int)LANE_VECS; i++) lane[i] = vec_load(x + i * (int)VEC);
    same_bits("join_lanes", 0, join_lanes(lane), halved(x, LANES));
    top = x[0];
    for (int i = 1; i < LANES; i++) top = fmaxf(top, x[i]);
    same_bits("top_of_lanes", 0, top_of_lanes(lane), top);
    for (int i = 0; i < VEC; i++) {
        rows[i] = lane[i % (int)LANE_VECS] * vec_all((float)(i + 1));
        vec_store(row[i], rows[i]);
    }
    vec sums = vec_sum_rows(rows), fours = vec_sum_fours(rows);
    for (int i = 0; i < VEC; i++) {
        same_bits("sum", (float)i, vec_sum(rows[i]), halved(row[i], VEC));
        same_bits("sum_rows", (float)i, sums[i], halved(row[i], VEC));
        same_bits("sum_fours", (float)i, fours[i], halved(row[i % 4] + i / 4 * 4, 4));
    }
}

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

static void transposes(void **state)
{
    enum { MOST = 11, LD = 13 }; /* of at most 16 lanes */
    float from[2 * 16 * LD], to[LD * MOST], column[MOST * 17], back[16 * LD];
    for (int i = 0; i < 2 * 16 * LD; i++) from[i] = (float)i;
    for (int rows = 0; rows <= MOST; rows++)
        for (int columns = 0; columns <= MOST; columns++) {
            for (int i = 0; i < LD * MOST; i++) to[i] = -1.0f;
            transpose(to, MOST, from, LD, rows, columns);
            for (int j = 0; j < LD; j++)
                for (int i = 0; i < MOST; i++)
                    assert_true(to[j * MOST + i] == (i < rows && j < columns ? from[i * LD + j] : -1.0f));
        }
    for (int count = 1; count <= MOST; count++) {
        const float *row[VEC];
        float *out[VEC];
        for (int r = 0; r < VEC; r++) row[r] = from + 2 * r * LD, out[r] = back + r * LD;
        for (int i = 0; i < VEC * LD; i++) back[i] = -1.0f;
        columns_in(row, 1, count, column, VEC);
        for (int k = 0; k < count; k++)
            for (int r = 0; r < VEC; r++) assert_true(column[k * (int)VEC + r] == row[r][1 + k]);
        columns_out(column, 2, count, out);
        for (int r = 0; r < VEC; r++)
            for (int k = 0; k < LD; k++)
                assert_true(out[r][k] == (k >= 2 && k < count + 2 ? row[r][k - 1] : -1.0f));
        columns_in(row, 1, count, column, 17);
        for (int k = 0; k < count; k++)
            for (int r = 0; r < VEC; r++) assert_true(column[k * 17 + r] == row[r][1 + k]);
    }
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

typedef struct function {
    const char *name;
    vec (*lanes)(vec x);
    float (*single)(float x);
    float low, high;
} function;

#define FUNCTION(name)                                                                                       \
  static vec lanes_##name(vec x)                                                                             \
  {                                                                                                          \
    return vec_##name(x);                                                                                    \
  }                                                                                                          \
  static float single_##name(float x)                                                                        \
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

static void functions_of_one_number(void **state)
{
#define ROW(name, low, high)                                                                                 \
  {                                                                                                          \
#    name, lanes_##name, single_##name, low, high                                                            \
  }
    const function all[] = {ROW(exp, -INFINITY, INFINITY),        ROW(exp2_falling, -INFINITY, 0.0f),
                            ROW(exp_down, -INFINITY, INFINITY),   ROW(log, 0x1p-149f, INFINITY),
                            ROW(log1p_unit, 0.0f, 1.0f),          ROW(tanh, -INFINITY, INFINITY),
                            ROW(sigmoid, -INFINITY, INFINITY),    ROW(silu, -INFINITY, INFINITY),
                            ROW(silu_slope, -INFINITY, INFINITY), ROW(softplus, -INFINITY, INFINITY)};
    for (size_t f = 0; f < sizeof all / sizeof *all; f++)
        for (uint64_t bits = 0; bits < UINT64_C(1) << 30; bits += 9973) {
            vec x, y;
            for (int i = 0; i < VEC; i++) x[i] = float_from((uint32_t)(bits + ((uint64_t)i << 30)));
            y = all[f].lanes(x);
            for (int i = 0; i < VEC; i++)
                if (isnan(x[i]) || (x[i] >= all[f].low && x[i] <= all[f].high))
                    same_bits(all[f].name, x[i], y[i], all[f].single(x[i]));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lane_by_lane),
                                       cmocka_unit_test(parts),
                                       cmocka_unit_test(sums_of_lanes),
                                       cmocka_unit_test(quarters),
                                       cmocka_unit_test(transposes),
                                       cmocka_unit_test(integers),
                                       cmocka_unit_test(functions_of_one_number)};
    return cmocka_run_group_tests_name("kernel_simd", tests, NULL, NULL);
}
