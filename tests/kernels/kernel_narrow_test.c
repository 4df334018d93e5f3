/* Weights of fewer bits: rounding, packing and products, bit for bit what lib/device/backend.h says, written down once more
 * here in the plainest way; every candidate of every set must give exactly that. */
#include "narrow_case.h"

#include "cpu/simd/fma.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const narrow_shape shapes[] = {
    {1, 1, 1, 0, true, true},       {1, 0, 5, 0, true, true},      {0, 5, 3, 0, true, false},
    {1, 2, 16, 0, false, false},    {3, 3, 17, 1, true, false},    {1, 288, 1024, 0, true, false},
    {1, 67, 200, 0, true, true},    {2, 33, 130, 3, false, true},  {5, 130, 65, 0, true, true},
    {7, 64, 96, 0, true, true},     {8, 31, 80, 1, true, false},   {13, 258, 300, 0, false, false},
    {14, 100, 129, 0, true, true},  {23, 515, 47, 2, true, true},  {64, 70, 272, 0, true, false},
    {100, 9, 33, 0, true, true},    {29, 1030, 33, 0, true, true}, {1, 14400, 20, 0, true, true},
    {2, 7170, 300, 1, false, true},
};

/* ---- rounding, said in doubles ---- */

/* Nearest even multiple of 2^(exponent - 7). */
static float plain_bf16(float x, bool flush)
{
    if (!isfinite(x) || x == 0.0f || (flush && fabsf(x) < 0x1p-50f)) return isfinite(x) ? 0.0f : x;
    int exponent = ilogb((double)x) < -126 ? -126 : ilogb((double)x);
    double unit = ldexp(1.0, exponent - 7);
    return (float)(nearbyint((double)x / unit) * unit);
}

static float plain_scale(const float *w, int64_t count)
{
    float largest = 0.0f;
    for (int64_t k = 0; k < count; k++) {
        if (!isfinite(w[k])) return NAN;
        largest = fmaxf(largest, fabsf(w[k]));
    }
    if (largest == 0.0f) return 1.0f;
    double scale = fmax((double)(largest / 127.0f), 0x1p-100), unit = ldexp(1.0, ilogb(scale) - 15);
    return (float)fmin(ceil(scale / unit) * unit, 0x1p120);
}

static int plain_level(float w, float scale)
{
    if (isnan(scale)) return 0;
    return (int)fmax(-127.0, fmin(127.0, nearbyint((double)(w / scale))));
}

typedef struct rounded {
    double *to;
    void *q;
    float *scale;
} rounded;

static rounded round_with(const xph_kernel_set *set, xph_type weights, const float *w, int64_t in,
                          int64_t out)
{
    rounded r = {case_alloc((size_t)(in * out) * sizeof(double)), case_alloc((size_t)(in * out) * 2),
                 case_alloc((size_t)out * sizeof(float))};
    double *wide = case_alloc((size_t)(in * out) * sizeof *wide);
    for (int64_t i = 0; i < in * out; i++) wide[i] = (double)w[i];
    void *given = case_give(set->type, wide, out, in, in);
    xph_round_args args = {
        .type = set->type, .weights = weights, .in = in, .out = out, .w = given, .to = given};
    args.q = r.q, args.scale = r.scale;
    const xph_candidate *c = xph_kernels_choose(set, XPH_OP_ROUND, &args);
    assert_non_null(c);
    case_run(c, &args, 2);
    r.to = case_take(set->type, given, out, in, in);
    args.q = NULL, args.scale = NULL;
    case_run(c, &args, 1); /* again: the same */
    case_same("rounded twice", case_take(set->type, given, out, in, in), r.to, in * out);
    return r;
}

static void rounding_i8(const xph_kernel_set *set, const float *w, int64_t in, int64_t out)
{
    rounded r = round_with(set, XPH_I8, w, in, out);
    for (int64_t o = 0; o < out; o++) {
        float scale = plain_scale(w + o * in, in);
        assert_true(narrow_same(r.scale[o], scale));
        for (int64_t k = 0; k < in; k++) {
            int level = plain_level(w[o * in + k], scale);
            assert_int_equal(((int8_t *)r.q)[o * in + k], level);
            assert_true(narrow_same((float)r.to[o * in + k], scale * (float)level));
            assert_true(isnan(scale) || (double)scale * level == r.to[o * in + k]); /* exact */
        }
    }
}

static void rounding_bf16(const xph_kernel_set *set, const float *w, int64_t in, int64_t out)
{
    rounded r = round_with(set, XPH_BF16, w, in, out);
    for (int64_t i = 0; i < in * out; i++) {
        float want = plain_bf16(w[i], true);
        uint32_t bits;
        memcpy(&bits, &want, sizeof bits);
        assert_true(narrow_same((float)r.to[i], want));
        assert_true(isnan(want) || ((uint16_t *)r.q)[i] == bits >> 16);
    }
}

static void rounding(void **state)
{
    EACH_SET(set) {
        for (int kind = 0; kind < NARROW_KINDS; kind++) {
            case_seed((uint64_t)kind);
            float *w = narrow_numbers(kind, 37 * 21);
            rounding_bf16(set, w, 37, 21);
            rounding_i8(set, w, 37, 21);
        }
        rounding_bf16(set, narrow_special, NARROW_SPECIAL, 1);
        for (int64_t i = 0; i < NARROW_SPECIAL; i++) rounding_i8(set, narrow_special + i, 1, 1);
        rounding_i8(set, narrow_special, 3, 4);
        rounding_i8(set, narrow_special, NARROW_SPECIAL, 1);
        case_release();
    }
}

/* All bfloat16s become floats and the same bfloat16s again; floats between go to the nearest. */
static void casts(void **state)
{
    EACH_SET(set) {
        uint16_t *narrow = case_alloc(65536 * 2), *back = case_alloc(65536 * 2);
        for (int i = 0; i < 65536; i++) narrow[i] = (uint16_t)i;
        void *wide = case_alloc(65536 * case_bytes(set->type));
        xph_cast_args args = {set->type, XPH_BF16, 0, 0, 65536, narrow, wide};
        case_run(set->op[XPH_OP_CAST], &args, 3);
        args = (xph_cast_args){set->type, XPH_BF16, 1, 0, 65536, wide, back};
        case_run(set->op[XPH_OP_CAST], &args, 2);
        double *values = case_take(set->type, wide, 1, 65536, 65536);
        for (int i = 0; i < 65536; i++)
            assert_int_equal(back[i], isnan(values[i]) ? narrow[i] | 0x40 : narrow[i]);
        case_seed(3);
        float *x = narrow_numbers(NARROW_SIZES, 999);
        double *given = case_zeros(999);
        for (int i = 0; i < 999; i++) given[i] = (double)x[i];
        args =
            (xph_cast_args){set->type, XPH_BF16, 1, 0, 999, case_give(set->type, given, 1, 999, 999), back};
        case_run(set->op[XPH_OP_CAST], &args, 1);
        for (int i = 0; i < 999; i++) assert_true((float)values[back[i]] == plain_bf16(x[i], false));
        case_release();
    }
}

/* ---- products ---- */

static float want_bf16(const narrow_layer *l, const float *x, const float *w)
{
    float sum = 0.0f;
    for (int64_t k = 0; k < l->s.in; k += 2) {
        if (k + 1 < l->s.in) sum = xph_fmaf(plain_bf16(x[k + 1], true), plain_bf16(w[k + 1], true), sum);
        sum = xph_fmaf(plain_bf16(x[k], true), plain_bf16(w[k], true), sum);
    }
    return sum;
}

static float want_i8(const narrow_layer *l, const float *x, const float *w, float bias)
{
    float largest = 0.0f, scale = plain_scale(w, l->s.in);
    int64_t sum = 0;
    for (int64_t k = 0; k < l->s.in; k++) {
        if (!isfinite(x[k])) return NAN;
        largest = fmaxf(largest, fabsf(x[k]));
    }
    float inverse = 127.0f / largest;
    for (int64_t k = 0; k < l->s.in && largest >= 0x1p-100f; k++)
        sum += (int64_t)nearbyint((double)x[k] * (double)inverse) * plain_level(w[k], scale);
    if (largest < 0x1p-100f) largest = 0.0f;
    return xph_fmaf(largest / 127.0f * scale, (float)sum, bias);
}

/* What the layer gives. */
static float *layer_want(const narrow_layer *l, xph_type weights)
{
    const narrow_shape *s = &l->s;
    float *want = case_alloc((size_t)(s->rows * s->out) * sizeof *want);
    for (int64_t m = 0; m < s->rows; m++) {
        for (int64_t n = 0; n < s->out; n++) {
            const float *x = l->x + m * s->in, *w = l->w + n * s->in;
            float bias = l->bias ? l->bias[n] : 0.0f;
            float y = weights == XPH_I8 ? want_i8(l, x, w, bias) : want_bf16(l, x, w) + bias;
            want[m * s->out + n] = l->residual ? y + l->residual[m * s->out + n] : y;
        }
    }
    return want;
}

static void *pack_with(const xph_kernel_set *set, xph_type weights, const float *w, int64_t in, int64_t out,
                       size_t *bytes)
{
    xph_linear_pack_args args = {set->type, weights, in, out, w, NULL, NULL};
    const xph_candidate *c = xph_kernels_choose(set, XPH_OP_LINEAR_PACK, &args);
    assert_non_null(c);
    *bytes = xph_kernels_packed_bytes(XPH_OP_LINEAR_PACK, &args);
    args.packed = case_alloc(*bytes);
    case_run(c, &args, 2);
    return args.packed;
}

static void run_layer(const xph_kernel_set *set, const xph_candidate *c, const narrow_layer *l,
                      const float *wanted, xph_linear_args *args, int threads)
{
    const narrow_shape *s = &l->s;
    float *y = narrow_padded(l->residual, s->rows, s->out, args->ldy);
    args->y = y;
    args->residual = l->residual ? y : NULL;
    args->back = !args->back;
    case_run(c, args, threads);
    for (int64_t m = 0; m < s->rows; m++) {
        for (int64_t n = 0; n < s->out; n++) {
            float got = y[m * args->ldy + n], want = wanted[m * s->out + n];
            if (!narrow_same(got, want))
                fail_msg("%s, %lld x %lld x %lld: y[%lld][%lld] = %.9g, expected %.9g", c->name,
                         (long long)s->rows, (long long)s->in, (long long)s->out, (long long)m, (long long)n,
                         (double)got, (double)want);
        }
    }
    case_padding_intact(set->type, y, s->rows, s->out, args->ldy);
}

static void check_wanted(const narrow_layer *l, xph_type weights, const float *want)
{
    const narrow_shape *s = &l->s;
    void *first = NULL;
    EACH_SET(set) {
        size_t bytes;
        int ran = 0;
        xph_linear_args args = {
            .type = set->type, .weights = weights, .rows = s->rows, .in = s->in, .out = s->out};
        if (set->type != XPH_F32) continue;
        void *mark = NULL, *packed = pack_with(set, weights, l->w, s->in, s->out, &bytes);
        if (!first) first = packed;
        assert_int_equal(bytes % 64, 0);
        assert_memory_equal(first, packed, bytes);
        args.packed = packed, args.bias = l->bias;
        args.ldx = s->in + s->pad, args.ldy = args.ldr = s->out + s->pad;
        args.x = narrow_padded(l->x, s->rows, s->in, args.ldx);
        mark = case_mark();
        for (const xph_candidate *c = set->op[XPH_OP_LINEAR]; c->name; c++) {
            if (c->accepts && !c->accepts(&args)) continue;
            run_layer(set, c, l, want, &args, 1);
            run_layer(set, c, l, want, &args, 3);
            case_guard_front(true);
            run_layer(set, c, l, want, &args, 2);
            case_guard_front(false);
            case_release_to(mark);
            ran++;
        }
        assert_true(ran > 0);
    }
}

static void check_layer(const narrow_layer *l, xph_type weights)
{
    check_wanted(l, weights, layer_want(l, weights));
}

static void products_bf16(void **state)
{
    narrow_products(shapes, sizeof shapes / sizeof *shapes, XPH_BF16, check_layer);
}

static void products_i8(void **state)
{
    narrow_products(shapes, sizeof shapes / sizeof *shapes, XPH_I8, check_layer);
}

static void nasty_numbers(void **state)
{
    const narrow_shape some[] = {{1, 203, 161, 0, true, false}, {17, 64, 48, 0, false, true}};
    narrow_nasty_numbers(some, check_layer);
}

static bool all_finite(const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

/* What is bad is seen in all of its row or column, and nowhere else. */
static void check_bad(const narrow_layer *l, xph_type weights)
{
    const float *want = layer_want(l, weights);
    int64_t in = l->s.in, out = l->s.out;
    for (int64_t m = 0; m < l->s.rows; m++)
        for (int64_t n = 0; n < out; n++)
            assert_int_equal(isfinite(want[m * out + n]) != 0,
                             all_finite(l->x + m * in, in) && all_finite(l->w + n * in, in));
    check_wanted(l, weights, want);
}

static void bad_numbers(void **state)
{
    narrow_bad_numbers(check_bad);
}

static void check_largest(const narrow_layer *l, xph_type weights)
{
    const float *want = layer_want(l, weights);
    assert_true(want[0] > 262000.0f && want[1] < -262000.0f && want[3] < -262000.0f);
    check_wanted(l, weights, want);
}

static void largest_sums(void **state)
{
    narrow_largest_sums(check_largest);
}

/* What is rounded packs to the same. */
static void rounded_packs_alike(void **state)
{
    enum { IN = 53, OUT = 70 };
    EACH_SET(set) {
        if (set->type != XPH_F32) continue;
        for (int i = 0; i < 2 * NARROW_KINDS; i++) {
            xph_type weights = i % 2 ? XPH_I8 : XPH_BF16;
            size_t bytes;
            case_seed((uint64_t)i);
            float *w = narrow_numbers(i / 2, IN * OUT), *to = case_alloc(sizeof *to * IN * OUT);
            xph_round_args args = {
                .type = XPH_F32, .weights = weights, .in = IN, .out = OUT, .w = w, .to = to};
            case_run(set->op[XPH_OP_ROUND], &args, 1);
            void *a = pack_with(set, weights, w, IN, OUT, &bytes);
            assert_memory_equal(a, pack_with(set, weights, to, IN, OUT, &bytes), bytes);
            case_release();
        }
    }
}

/* Nothing takes weights it has no kernel for. */
static void refused(void **state)
{
    EACH_SET(set) {
        for (xph_type weights = 1; weights < 8; weights++) {
            bool known = set->type == XPH_F32 && (weights == XPH_BF16 || weights == XPH_I8);
            xph_linear_args linear = {.type = set->type, .weights = weights, .rows = 3, .in = 8, .out = 8};
            xph_linear_pack_args pack = {.type = set->type, .weights = weights, .in = 8, .out = 8};
            xph_rnn_args rnn = {.type = set->type, .weights = weights, .batch = 2, .time = 2, .hidden = 8};
            xph_rnn_grad_args grad = {.fwd = rnn};
            assert_int_equal(xph_kernels_choose(set, XPH_OP_LINEAR, &linear) != NULL, known);
            assert_int_equal(xph_kernels_choose(set, XPH_OP_LINEAR_PACK, &pack) != NULL, known);
            assert_int_equal(xph_kernels_choose(set, XPH_OP_RNN, &rnn) != NULL, known);
            assert_null(xph_kernels_choose(set, XPH_OP_RNN_GRAD, &grad));
            linear.in = pack.in = 131073; /* more than int32 holds the sums of */
            known = known && weights == XPH_BF16;
            assert_int_equal(xph_kernels_choose(set, XPH_OP_LINEAR, &linear) != NULL, known);
            assert_int_equal(xph_kernels_choose(set, XPH_OP_LINEAR_PACK, &pack) != NULL, known);
        }
        xph_round_args none = {.type = set->type, .weights = 0, .in = 8, .out = 8};
        assert_null(xph_kernels_choose(set, XPH_OP_ROUND, &none));
    }
}

/* A level uses the best set at or below it. */
static void sets_of_levels(void **state)
{
    for (xph_isa level = XPH_ISA_REF; level < XPH_ISA_COUNT; level++) {
        const xph_kernel_set *set = xph_kernels_pick(XPH_F32, level);
        assert_non_null(set);
#if defined(XPH_HAVE_X86_SETS)
        const bool built = level < XPH_ISA_NEON;
#elif defined(XPH_HAVE_ARM_SETS)
        const bool built = level >= XPH_ISA_NEON && level < XPH_ISA_SIMD128;
#else
        const bool built = false;
#endif
        assert_int_equal(set->isa, built ? level : XPH_ISA_REF);
        assert_string_equal(set->name + strlen("f32_"), xph_isa_name(set->isa));
        for (xph_op op = 0; op < XPH_OP_COUNT; op++) assert_non_null(set->op[op]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding),
        cmocka_unit_test(casts),
        cmocka_unit_test(products_bf16),
        cmocka_unit_test(products_i8),
        cmocka_unit_test(nasty_numbers),
        cmocka_unit_test(bad_numbers),
        cmocka_unit_test(largest_sums),
        cmocka_unit_test(refused),
        cmocka_unit_test(rounded_packs_alike),
        cmocka_unit_test(sets_of_levels),
    };
    return cmocka_run_group_tests_name("kernel_narrow", tests, NULL, NULL);
}
