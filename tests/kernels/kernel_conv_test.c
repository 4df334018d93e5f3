/* The causal convolution against the formula in double, frames against chunks, resets, carried state and its
 * gradient, all gradients against differences. */
#include "conv_case.h"

#include <math.h>

static const conv_shape shapes[] = {
    {1, 1, 1, 1, 0, false, 0},  {1, 1, 1, 4, 0, true, 0},    {2, 5, 3, 4, 1, true, 3},
    {0, 4, 5, 4, 0, true, 0},   {2, 0, 5, 4, 1, true, 2},    {3, 7, 67, 4, 2, true, 4},
    {1, 2, 130, 4, 0, true, 0}, {2, 11, 16, 3, 0, false, 2}, {2, 9, 65, 2, 3, true, 1},
    {1, 40, 5, 17, 1, true, 9}, {2, 3, 4, 9, 0, true, 0},    {1, 6, 3, 150, 0, true, 4},
};

static conv_layer layer_make(const conv_shape *s)
{
    conv_layer l = conv_layer_make(s);
    l.y = case_zeros(l.rows * s->width);
    l.out = case_zeros(s->batch * l.state);
    return l;
}

/* Input of channel d at frame t (below 0: carried) as seen from frame `from`. */
static double input(const conv_layer *l, int64_t b, int64_t from, int64_t t, int64_t d)
{
    const conv_shape *s = &l->s;
    for (int64_t r = t < 0 ? 0 : t + 1; l->reset && r <= from; r++)
        if (l->reset[b * s->time + r]) return 0;
    if (t >= 0) return l->x[(b * s->time + t) * s->width + d];
    return l->in ? l->in[b * l->state + (s->taps - 1 + t) * s->width + d] : 0;
}

static void layer_forward(conv_layer *l)
{
    const conv_shape *s = &l->s;
    for (int64_t i = 0; i < s->batch * s->time * s->width; i++) {
        int64_t d = i % s->width, t = i / s->width % s->time, b = i / s->width / s->time;
        double p = l->bias[d];
        for (int64_t j = 0; j < s->taps; j++)
            p += l->w[d * s->taps + j] * input(l, b, t, t - s->taps + 1 + j, d);
        l->y[i] = p / (1 + exp(-p));
    }
    for (int64_t i = 0; i < s->batch * l->state; i++) {
        int64_t d = i % s->width, row = i / s->width % (s->taps - 1), b = i / l->state;
        l->out[i] = input(l, b, s->time - 1, s->time - s->taps + 1 + row, d);
    }
}

static void forward(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        conv_layer l = layer_make(&shapes[i]);
        layer_forward(&l);
        kt_case c = conv_case(&l);
        kt_check(&c);
        case_release();
    }
}

/* Stream b of all, frame by frame, its state in place. */
static void one_stream(const conv_layer *all, const xph_kernel_set *set, int64_t b, double *const *together)
{
    const conv_shape *s = &all->s;
    double *carried = kt_copy(all->in ? all->in + b * all->state : case_zeros(all->state), all->state);
    for (int64_t t = 0; t < s->time; t++) {
        double *result[KT_MOST];
        int64_t row = b * s->time + t;
        conv_layer one = conv_frames_of(all, row, 1);
        kt_case c = conv_case_carried(&one, carried);
        kt_run(&c, set, set->op[XPH_OP_CONV], 1, result);
        case_same("frame", result[CONV_Y], together[CONV_Y] + row * s->width, s->width);
        carried = result[CONV_STATE];
    }
    case_same("state", carried, together[CONV_STATE] + b * all->state, all->state);
}

/* One stream frame by frame gives the bits of all streams and frames at once. */
static void frames(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        conv_layer all = layer_make(&shapes[i]);
        EACH_SET(set) {
            double *together[KT_MOST];
            kt_case c = conv_case(&all);
            kt_run(&c, set, set->op[XPH_OP_CONV], 2, together);
            for (int64_t b = 0; b < all.s.batch; b++) one_stream(&all, set, b, together);
        }
        case_release();
    }
}

static double objective(void *context)
{
    conv_layer *l = context;
    layer_forward(l);
    double sum = case_dot(l->y, l->dy, l->rows * l->s.width);
    return l->dout ? sum + case_dot(l->out, l->dout, l->s.batch * l->state) : sum;
}

static void gradient_shape(const conv_shape *s)
{
    conv_layer l = layer_make(s);
    int64_t weights = s->width * s->taps;
    double *dw = case_random(weights, -1, 1), *dbias = case_random(s->width, -1, 1);
    kt_case c = conv_gradient_case(&l, dw, dbias);
    c.tensors[CONV_DX].want = kt_differences(objective, &l, l.x, l.rows * s->width, NULL);
    c.tensors[CONV_DW].want = kt_differences(objective, &l, l.w, weights, dw);
    c.tensors[CONV_DBIAS].want = kt_differences(objective, &l, l.bias, s->width, dbias);
    if (l.in) c.tensors[CONV_DIN].want = kt_differences(objective, &l, l.in, s->batch * l.state, NULL);
    kt_check(&c);
    case_release();
}

static void gradient(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(50 + i);
        gradient_shape(&shapes[i]);
    }
}

/* A bad input is seen for `taps` frames, then gone; a large one does not overflow. */
static void bad_numbers(void **state)
{
    const conv_shape s = {1, 12, 20, 4, 0, false, 0};
    case_seed(9);
    conv_layer l = layer_make(&s);
    l.x[2 * s.width + 7] = NAN;
    for (int64_t t = 0; t < s.time; t++) l.x[t * s.width + 3] = -1e4;
    EACH_SET(set) {
        double *result[KT_MOST];
        kt_case c = conv_case(&l);
        kt_run(&c, set, set->op[XPH_OP_CONV], 1, result);
        for (int64_t i = 0; i < s.time * s.width; i++) {
            int64_t t = i / s.width, d = i % s.width;
            assert_int_equal(isfinite(result[CONV_Y][i]) == 0, d == 7 && t >= 2 && t < 6);
        }
    }
    case_release();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward), cmocka_unit_test(frames),
                                       cmocka_unit_test(gradient), cmocka_unit_test(bad_numbers)};
    return cmocka_run_group_tests_name("kernel_conv", tests, NULL, NULL);
}
