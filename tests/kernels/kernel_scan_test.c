/* Selective scan against its equations in double, frames against chunks, resets, carried state and its
 * gradient, all gradients against differences. */
#include "scan_case.h"

#include <math.h>

static const scan_shape shapes[] = {
    {1, 1, 1, 1, 0, false, false, false, 0}, {1, 1, 16, 16, 0, true, true, true, 0},
    {2, 5, 3, 4, 1, true, true, true, 3},    {0, 4, 5, 4, 0, true, true, true, 0},
    {2, 0, 5, 4, 1, true, false, true, 2},   {3, 7, 67, 3, 2, true, true, false, 4},
    {1, 2, 130, 2, 0, true, true, true, 0},  {2, 17, 17, 5, 0, false, true, true, 2},
    {1, 33, 9, 7, 3, true, false, true, 1},  {1, 48, 5, 3, 1, true, true, true, 9},
    {2, 20, 15, 1, 0, true, true, true, 6},  {2, 1, 37, 16, 1, true, true, true, 0},
    {1, 1, 5, 32, 0, true, false, true, 2},  {1, 19, 80, 16, 0, true, true, true, 7},
};

static scan_layer layer_make(const scan_shape *s)
{
    scan_layer l = scan_layer_make(s);
    l.y = case_zeros(l.rows * s->width);
    l.out = case_zeros(s->batch * l.state);
    return l;
}

static void layer_frame(scan_layer *l, int64_t row, int64_t d, double *h)
{
    int64_t states = l->s.states, i = row * l->s.width + d;
    double delta = log1p(exp(l->dt[i] + (l->bias ? l->bias[d] : 0))), y = l->skip ? l->skip[d] * l->x[i] : 0;
    for (int64_t n = 0; n < states; n++) {
        if (l->reset && l->reset[row]) h[n] = 0;
        h[n] = exp(-delta * exp(l->a_log[d * states + n])) * h[n] + delta * l->x[i] * l->b[row * states + n];
        y += l->c[row * states + n] * h[n];
    }
    l->y[i] = l->z ? y * l->z[i] / (1 + exp(-l->z[i])) : y;
}

static void layer_forward(scan_layer *l)
{
    const scan_shape *s = &l->s;
    for (int64_t i = 0; i < s->batch * s->width; i++) {
        int64_t b = i / s->width, d = i % s->width, at = b * l->state + d * s->states;
        for (int64_t n = 0; n < s->states; n++) l->out[at + n] = l->in ? l->in[at + n] : 0;
        for (int64_t t = 0; t < s->time; t++) layer_frame(l, b * s->time + t, d, l->out + at);
    }
}

static void forward(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        scan_layer l = layer_make(&shapes[i]);
        layer_forward(&l);
        kt_case c = scan_case(&l);
        kt_check(&c);
        case_release();
    }
}

/* Stream b of all, frame by frame, its state in place. */
static void one_stream(const scan_layer *all, const xph_kernel_set *set, int64_t b, double *const *together)
{
    const scan_shape *s = &all->s;
    double *carried = kt_copy(all->in ? all->in + b * all->state : case_zeros(all->state), all->state);
    for (int64_t t = 0; t < s->time; t++) {
        double *result[KT_MOST];
        int64_t row = b * s->time + t;
        scan_layer one = scan_frame_of(all, row);
        kt_case c = scan_case_carried(&one, carried);
        kt_run(&c, set, NULL, 1, result);
        case_same("frame", result[SCAN_Y], together[SCAN_Y] + row * s->width, s->width);
        carried = result[SCAN_STATE];
    }
    case_same("state", carried, together[SCAN_STATE] + b * all->state, all->state);
}

static void frames(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        scan_layer all = layer_make(&shapes[i]);
        EACH_SET(set) {
            double *together[KT_MOST];
            kt_case c = scan_case(&all);
            kt_run(&c, set, NULL, 2, together);
            for (int64_t b = 0; b < all.s.batch; b++) one_stream(&all, set, b, together);
        }
        case_release();
    }
}

static double objective(void *context)
{
    scan_layer *l = context;
    layer_forward(l);
    double sum = case_dot(l->y, l->dy, l->rows * l->s.width);
    return l->dout ? sum + case_dot(l->out, l->dout, l->s.batch * l->state) : sum;
}

enum { MANY_FRAMES = 100 };

/* NULL for many frames: too many differences, see along. */
static double *differences(scan_layer *l, double *x, int64_t count, const double *before)
{
    return x && l->s.time <= MANY_FRAMES ? kt_differences(objective, l, x, count, before) : NULL;
}

/* gradient - before, along a direction, against the difference of the objective along it. */
static void along(scan_layer *l, const char *what, double *x, int64_t count, const double *gradient,
                  const double *before)
{
    double *to = case_random(count, -1, 1), step = 1e-6, slope = 0, difference = 0;
    for (int64_t i = 0; i < count; i++) slope += to[i] * (gradient[i] - (before ? before[i] : 0));
    for (int sign = -1; sign <= 1; sign += 2) {
        for (int64_t i = 0; i < count; i++) x[i] += sign * step * to[i];
        difference += sign * objective(l) / (2 * step);
        for (int64_t i = 0; i < count; i++) x[i] -= sign * step * to[i];
    }
    case_close(what, &slope, &difference, 1, 1e-6);
}

/* The gradients that the case asks for, along directions. */
static void gradient_along(const scan_shape *s, scan_layer *l, const kt_case *c, const double *da)
{
    double *got[KT_MOST];
    kt_reference(c, got);
    along(l, "dx along", l->x, l->rows * s->width, got[SCAN_DX], NULL);
    along(l, "ddt along", l->dt, l->rows * s->width, got[SCAN_DX + 1], NULL);
    along(l, "db along", l->b, l->rows * s->states, got[SCAN_DX + 2], NULL);
    along(l, "dc along", l->c, l->rows * s->states, got[SCAN_DX + 3], NULL);
    along(l, "da_log along", l->a_log, l->state, got[SCAN_DX + 5], da);
    along(l, "dstate_in along", l->in, s->batch * l->state, got[SCAN_DX + 8], NULL);
}

static void gradient_shape(const scan_shape *s)
{
    scan_layer l = layer_make(s);
    int64_t width = s->width;
    kt_case c = scan_gradient_case(&l);
    kt_tensor *to = c.tensors + SCAN_DX;
    to[0].want = differences(&l, l.x, l.rows * width, NULL);
    to[1].want = differences(&l, l.dt, l.rows * width, NULL);
    to[2].want = differences(&l, l.b, l.rows * s->states, NULL);
    to[3].want = differences(&l, l.c, l.rows * s->states, NULL);
    to[4].want = differences(&l, l.z, l.rows * width, NULL);
    to[5].want = differences(&l, l.a_log, l.state, to[5].x);
    to[6].want = differences(&l, l.skip, width, to[6].x);
    to[7].want = differences(&l, l.bias, width, to[7].x);
    to[8].want = differences(&l, l.in, s->batch * l.state, NULL);
    kt_check(&c);
    if (s->time > MANY_FRAMES) gradient_along(s, &l, &c, to[5].x);
    case_release();
}

static void gradient(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(50 + i);
        gradient_shape(&shapes[i]);
    }
    /* More streams and groups of channels than slots of scratch. */
    case_seed(70);
    gradient_shape(&(scan_shape){70, 2, 2, 2, 0, true, true, true, 3});
    /* More frames than a span, once with a reset in it, and states too short for a second block of channels. */
    case_seed(71);
    gradient_shape(&(scan_shape){1, 300, 18, 16, 0, true, true, true, 0});
    case_seed(72);
    gradient_shape(&(scan_shape){1, 270, 70, 16, 1, true, true, true, 200});
    case_seed(73);
    gradient_shape(&(scan_shape){1, 130, 18, 130, 0, true, true, true, 60});
}

/* Rates that are fixed are those of a_log = log(n + 1), in frames as in chunks, and have no gradient. */
static void fixed_rates(void **state)
{
    const scan_shape some[] = {{2, 5, 37, 6, 1, true, false, true, 3},
                               {2, 1, 37, 16, 1, true, true, true, 0},
                               {1, 19, 80, 16, 0, true, false, true, 7}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        case_seed(110 + i);
        scan_layer l = scan_layer_fixed(&some[i]);
        l.y = case_zeros(l.rows * l.s.width);
        l.out = case_zeros(l.s.batch * l.state);
        layer_forward(&l);
        kt_case c = scan_case(&l), g = scan_gradient_case(&l);
        kt_check(&c);
        EACH_SET(set) {
            double *together[KT_MOST];
            kt_run(&c, set, NULL, 2, together);
            for (int64_t b = 0; b < l.s.batch; b++) one_stream(&l, set, b, together);
        }
        g.tensors[SCAN_DX + 1].want = differences(&l, l.dt, l.rows * l.s.width, NULL);
        g.tensors[SCAN_DX + 2].want = differences(&l, l.b, l.rows * l.s.states, NULL);
        kt_check(&g);
        case_release();
    }
}

/* What is bad stays bad until a reset; a strong decay forgets everything, and nothing overflows. */
static void bad_numbers(void **state)
{
    const scan_shape s = {1, 12, 20, 4, 0, false, true, true, 0};
    case_seed(9);
    scan_layer l = layer_make(&s);
    l.reset = case_alloc((size_t)s.time);
    for (int64_t t = 0; t < s.time; t++) l.reset[t] = t == 7;
    l.x[2 * s.width + 5] = NAN;
    l.dt[3 * s.width + 6] = INFINITY;
    l.b[9 * s.states + 1] = -INFINITY;
    for (int64_t t = 0; t < s.time; t++) {
        l.dt[t * s.width + 3] = 1e4;
        l.z[t * s.width + 3] = -1e4;
        l.dt[t * s.width + 4] = -1e4;
    }
    for (int64_t n = 0; n < s.states; n++) l.a_log[3 * s.states + n] = 20;
    EACH_SET(set) {
        double *result[KT_MOST];
        kt_case c = scan_case(&l);
        kt_run(&c, set, NULL, 1, result);
        for (int64_t i = 0; i < s.time * s.width; i++) {
            int64_t t = i / s.width, d = i % s.width;
            bool bad = t >= 9 || (d == 5 && t >= 2 && t < 7) || (d == 6 && t >= 3 && t < 7);
            /* With a step of 0 the infinite input is multiplied by 0: not a number either. */
            if (isfinite(result[SCAN_Y][i]) == bad)
                fail_msg("%s, frame %d channel %d", set->name, (int)t, (int)d);
        }
    }
    case_release();
}

/* Runs set's scan_pack for every scan: args->decay stands in a scratch of the case. */
static void prepare_decay(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_scan_args *args = given;
    size_t real = set->type == XPH_F64 ? sizeof(double) : sizeof(float);
    void *decay = case_alloc((size_t)(args->width * args->states) * real);
    const xph_scan_pack_args pack = {set->type, args->width, args->states, args->a_log, decay};
    const xph_phase *phase = set->op[XPH_OP_SCAN_PACK]->phase;
    phase->run(&pack, 0, phase->items(&pack));
    args->decay = decay;
}

/* A decay prepared by scan_pack gives the bits of one made anew, for every candidate. */
static void prepared(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        EACH_SET(set) {
            for (const xph_candidate *one = set->op[XPH_OP_SCAN]; one->name; one++) {
                double *anew[KT_MOST], *given[KT_MOST];
                case_seed(i);
                scan_layer l = layer_make(&shapes[i]);
                kt_case c = scan_case(&l);
                if (kt_run(&c, set, one, 1, anew)) {
                    c.prepare = prepare_decay;
                    kt_run(&c, set, one, 1, given);
                    case_same("y", given[SCAN_Y], anew[SCAN_Y], l.rows * l.s.width);
                    case_same("state", given[SCAN_STATE], anew[SCAN_STATE], l.s.batch * l.state);
                }
                case_release();
            }
        }
    }
}

/* Many chunks of frames, some steps beyond the range of the exponential. */
static void long_time(void **state)
{
    case_seed(90);
    const scan_shape s = {1, 300, 18, 16, 0, true, true, true, 50};
    scan_layer l = layer_make(&s);
    for (int64_t i = 0; i < l.rows * s.width; i += 97) l.dt[i] = 60;
    layer_forward(&l);
    kt_case c = scan_case(&l);
    kt_check(&c);
    case_release();
}

/* More streams and groups of channels than slots of scratch; and as many states as there may be. */
static void many_groups(void **state)
{
    const scan_shape some[] = {{90, 12, 70, 16, 0, true, true, true, 5},
                               {3, 40, 18, 256, 1, true, true, true, 9}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        case_seed(95 + i);
        scan_layer l = layer_make(&some[i]);
        layer_forward(&l);
        kt_case c = scan_case(&l);
        kt_check(&c);
        case_release();
    }
}

/* States beyond the limit of the CPU are not accepted. */
static void most_states(void **state)
{
    xph_scan_args args = {.batch = 1, .time = 1, .width = 1, .states = 257};
    xph_scan_args fit = {.batch = 1, .time = 1, .width = 1, .states = 256};
    assert_null(xph_kernels_choose(&xph_kernels_f32_ref, XPH_OP_SCAN, &args));
    assert_non_null(xph_kernels_choose(&xph_kernels_f32_ref, XPH_OP_SCAN, &fit));
    assert_null(xph_kernels_pick(XPH_BF16, XPH_ISA_AVX512));
    assert_ptr_equal(xph_kernels_pick(XPH_F32, XPH_ISA_REF), &xph_kernels_f32_ref);
    assert_ptr_equal(xph_kernels_pick(XPH_F64, XPH_ISA_REF), &xph_kernels_f64_ref);
#ifdef XPH_HAVE_X86_SETS
    assert_ptr_equal(xph_kernels_pick(XPH_F64, XPH_ISA_AVX2), &xph_kernels_f64_avx2);
    assert_ptr_equal(xph_kernels_pick(XPH_F64, XPH_ISA_AVX512), &xph_kernels_f64_avx2);
#else
    assert_ptr_equal(xph_kernels_pick(XPH_F64, XPH_ISA_AVX512), &xph_kernels_f64_ref);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward),     cmocka_unit_test(frames),      cmocka_unit_test(gradient),
        cmocka_unit_test(bad_numbers), cmocka_unit_test(prepared),    cmocka_unit_test(long_time),
        cmocka_unit_test(fixed_rates), cmocka_unit_test(many_groups), cmocka_unit_test(most_states)};
    return cmocka_run_group_tests_name("kernel_scan", tests, NULL, NULL);
}
