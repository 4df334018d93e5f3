/* The causal convolution against the formula in double, frames against chunks, resets, carried state and its
 * gradient, all gradients against differences. */
#include "kernel_test.h"

#include <math.h>

typedef struct shape {
    int64_t batch, time, width, taps, pad;
    bool carried;
    int64_t resets; /* one frame in so many; 0: none */
} shape;

static const shape shapes[] = {
    {1, 1, 1, 1, 0, false, 0},  {1, 1, 1, 4, 0, true, 0},    {2, 5, 3, 4, 1, true, 3},
    {0, 4, 5, 4, 0, true, 0},   {2, 0, 5, 4, 1, true, 2},    {3, 7, 67, 4, 2, true, 4},
    {1, 2, 130, 4, 0, true, 0}, {2, 11, 16, 3, 0, false, 2}, {2, 9, 65, 2, 3, true, 1},
    {1, 40, 5, 17, 1, true, 9}, {2, 3, 4, 9, 0, true, 0},    {1, 6, 3, 150, 0, true, 4},
};

typedef struct layer {
    shape s;
    int64_t state; /* elements of one state */
    double *x, *w, *bias, *in, *out, *y, *dy, *dout;
    uint8_t *reset;
} layer;

static layer layer_make(const shape *s)
{
    layer l = {.s = *s, .state = (s->taps - 1) * s->width};
    int64_t rows = s->batch * s->time;
    l.x = case_random(rows * s->width, -2, 2);
    l.w = case_random(s->width * s->taps, -1, 1);
    l.bias = case_random(s->width, -1, 1);
    l.dy = case_random(rows * s->width, -1, 1);
    l.y = case_zeros(rows * s->width);
    l.out = case_zeros(s->batch * l.state);
    l.in = s->carried ? case_random(s->batch * l.state, -2, 2) : NULL;
    l.dout = s->carried ? case_random(s->batch * l.state, -1, 1) : NULL;
    l.reset = kt_resets(rows, s->resets);
    return l;
}

/* Input of channel d at frame t (below 0: carried) as seen from frame `from`. */
static double input(const layer *l, int64_t b, int64_t from, int64_t t, int64_t d)
{
    const shape *s = &l->s;
    for (int64_t r = t < 0 ? 0 : t + 1; l->reset && r <= from; r++)
        if (l->reset[b * s->time + r]) return 0;
    if (t >= 0) return l->x[(b * s->time + t) * s->width + d];
    return l->in ? l->in[b * l->state + (s->taps - 1 + t) * s->width + d] : 0;
}

static void layer_forward(layer *l)
{
    const shape *s = &l->s;
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

static kt_case forward_case(const layer *l, kt_tensor tensors[KT_MOST], xph_conv_args *args)
{
    const shape *s = &l->s;
    int64_t rows = s->batch * s->time;
    const kt_tensor list[] = {
        KT_FIELD(xph_conv_args, x, ldx, rows, s->width, KT_IN, l->x, NULL),
        KT_FLAT(xph_conv_args, w, s->width, s->taps, KT_IN, l->w, NULL),
        KT_FLAT(xph_conv_args, bias, 1, s->width, KT_IN, l->bias, NULL),
        KT_FIELD(xph_conv_args, y, ldy, rows, s->width, KT_OUT, NULL, l->y),
        KT_FIELD(xph_conv_args, state_out, ld_state, s->batch, l->state, KT_OUT, NULL, l->out),
        KT_FIELD(xph_conv_args, state_in, ld_state, s->batch, l->state, KT_IN, l->in, NULL),
    };
    memcpy(tensors, list, sizeof list);
    *args = (xph_conv_args){
        .batch = s->batch, .time = s->time, .width = s->width, .taps = s->taps, .reset = l->reset};
    return (kt_case){"conv", XPH_OP_CONV, args,  sizeof *args, KT_DENSE, tensors,
                     6,      s->pad,      1e-13, 3e-6,         NULL,     NULL};
}

static void forward(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        kt_tensor tensors[KT_MOST];
        xph_conv_args args;
        case_seed(i);
        layer l = layer_make(&shapes[i]);
        layer_forward(&l);
        kt_case c = forward_case(&l, tensors, &args);
        kt_check(&c);
        case_release();
    }
}

static void in_place(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_conv_args *args = given;
    args->state_in = args->state_out;
}

/* One stream frame by frame, its state in place, gives the bits of all streams and frames at once. */
static void frames(void **state)
{
    const xph_kernel_set *sets[8];
    int count = case_sets(sets);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        layer all = layer_make(&shapes[i]);
        const shape *s = &shapes[i];
        for (int k = 0; k < count; k++) {
            double *together[KT_MOST], *result[KT_MOST];
            kt_tensor tensors[KT_MOST];
            xph_conv_args args;
            kt_case c = forward_case(&all, tensors, &args);
            kt_run(&c, sets[k], sets[k]->op[XPH_OP_CONV], 2, together);
            for (int64_t b = 0; b < s->batch; b++) {
                double *carried = kt_copy(all.in ? all.in + b * all.state : case_zeros(all.state), all.state);
                for (int64_t t = 0; t < s->time; t++) {
                    int64_t row = b * s->time + t;
                    layer one = all;
                    one.s.batch = one.s.time = 1;
                    one.x = all.x + row * s->width;
                    one.reset = all.reset ? all.reset + row : NULL;
                    c = forward_case(&one, tensors, &args);
                    tensors[4].role = KT_ADD;
                    tensors[4].x = carried;
                    c.count = 5;
                    c.prepare = in_place;
                    kt_run(&c, sets[k], sets[k]->op[XPH_OP_CONV], 1, result);
                    case_same("frame", result[3], together[3] + row * s->width, s->width);
                    carried = result[4];
                }
                case_same("state", carried, together[4] + b * all.state, all.state);
            }
        }
        case_release();
    }
}

static double objective(void *context)
{
    layer *l = context;
    layer_forward(l);
    double sum = case_dot(l->y, l->dy, l->s.batch * l->s.time * l->s.width);
    return l->dout ? sum + case_dot(l->out, l->dout, l->s.batch * l->state) : sum;
}

static void gradient_shape(const shape *s)
{
    layer l = layer_make(s);
    int64_t rows = s->batch * s->time, weights = s->width * s->taps;
    double *dw = case_random(weights, -1, 1), *dbias = case_random(s->width, -1, 1);
    double *want_x = kt_differences(objective, &l, l.x, rows * s->width, NULL);
    double *want_w = kt_differences(objective, &l, l.w, weights, dw);
    double *want_b = kt_differences(objective, &l, l.bias, s->width, dbias);
    double *want_in = l.in ? kt_differences(objective, &l, l.in, s->batch * l.state, NULL) : NULL;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_conv_grad_args, fwd.x, fwd.ldx, rows, s->width, KT_IN, l.x, NULL),
        KT_FLAT(xph_conv_grad_args, fwd.w, s->width, s->taps, KT_IN, l.w, NULL),
        KT_FLAT(xph_conv_grad_args, fwd.bias, 1, s->width, KT_IN, l.bias, NULL),
        KT_FIELD(xph_conv_grad_args, fwd.state_in, fwd.ld_state, s->batch, l.state, KT_IN, l.in, NULL),
        KT_FIELD(xph_conv_grad_args, dy, lddy, rows, s->width, KT_IN, l.dy, NULL),
        KT_FIELD(xph_conv_grad_args, dstate_out, fwd.ld_state, s->batch, l.state, KT_IN, l.dout, NULL),
        KT_FIELD(xph_conv_grad_args, dx, lddx, rows, s->width, KT_OUT, NULL, want_x),
        KT_FLAT(xph_conv_grad_args, dw, s->width, s->taps, KT_ADD, dw, want_w),
        KT_FLAT(xph_conv_grad_args, dbias, 1, s->width, KT_ADD, dbias, want_b),
        KT_FIELD(xph_conv_grad_args, dstate_in, fwd.ld_state, s->batch, l.state, KT_OUT, NULL, want_in),
    };
    const xph_conv_grad_args args = {
        .fwd = {.batch = s->batch, .time = s->time, .width = s->width, .taps = s->taps, .reset = l.reset}};
    /* Without a carried state nothing flows into one. */
    const kt_case c = {"conv_grad",
                       XPH_OP_CONV_GRAD,
                       &args,
                       sizeof args,
                       offsetof(xph_conv_grad_args, scratch),
                       tensors,
                       l.in ? 10 : 9,
                       s->pad,
                       1e-6,
                       3e-5,
                       NULL,
                       NULL};
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
    const shape s = {1, 12, 20, 4, 0, false, 0};
    const xph_kernel_set *sets[8];
    int count = case_sets(sets);
    case_seed(9);
    layer l = layer_make(&s);
    l.x[2 * s.width + 7] = NAN;
    for (int64_t t = 0; t < s.time; t++) l.x[t * s.width + 3] = -1e4;
    for (int k = 0; k < count; k++) {
        double *result[KT_MOST];
        kt_tensor tensors[KT_MOST];
        xph_conv_args args;
        kt_case c = forward_case(&l, tensors, &args);
        kt_run(&c, sets[k], sets[k]->op[XPH_OP_CONV], 1, result);
        for (int64_t i = 0; i < s.time * s.width; i++) {
            int64_t t = i / s.width, d = i % s.width;
            assert_int_equal(isfinite(result[3][i]) == 0, d == 7 && t >= 2 && t < 6);
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
