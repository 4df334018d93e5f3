/* LSTM and GRU: the equations in double, frames against chunks, resets, carried state and its gradient, all
 * gradients against differences. */
#include "kernel_case.h"

#include <math.h>

typedef struct shape {
    int32_t kind;
    int64_t batch, time, hidden;
    bool carried;
    int resets; /* one frame in so many; 0: none */
    int64_t pad;
} shape;

static const shape shapes[] = {
    {XPH_RNN_LSTM, 1, 1, 1, false, 0, 0},  {XPH_RNN_GRU, 1, 1, 1, false, 0, 0},
    {XPH_RNN_LSTM, 2, 5, 7, true, 3, 1},   {XPH_RNN_GRU, 2, 5, 7, true, 3, 2},
    {XPH_RNN_LSTM, 19, 3, 33, true, 2, 0}, {XPH_RNN_GRU, 17, 4, 41, true, 5, 3},
    {XPH_RNN_LSTM, 3, 9, 64, false, 4, 0}, {XPH_RNN_GRU, 1, 30, 16, true, 0, 0},
    {XPH_RNN_LSTM, 0, 3, 4, true, 0, 0},   {XPH_RNN_GRU, 2, 0, 5, true, 0, 0},
    {XPH_RNN_LSTM, 2, 0, 5, true, 0, 1},   {XPH_RNN_GRU, 3, 11, 100, false, 1, 0},
    {XPH_RNN_LSTM, 9, 4, 64, true, 3, 1},  {XPH_RNN_GRU, 15, 3, 128, true, 4, 0},
    {XPH_RNN_LSTM, 2, 6, 128, true, 0, 0}, {XPH_RNN_GRU, 2, 5, 64, false, 2, 2},
    {XPH_RNN_LSTM, 1, 4, 64, true, 0, 0},  {XPH_RNN_GRU, 3, 3, 64, true, 2, 0},
    {XPH_RNN_LSTM, 65, 2, 64, true, 3, 0}, {XPH_RNN_GRU, 70, 2, 64, true, 3, 0},
};

typedef struct rnn {
    shape s;
    int64_t gates, state;
    double *gx, *w, *bias, *state_in, *dy, *dstate_out;
    uint8_t *reset;
    double *y, *saved, *state_out; /* results */
    double *dgx, *dw, *dbias, *dstate_in;
    int64_t saved_width;
} rnn;

static rnn rnn_make(const shape *s)
{
    bool lstm = s->kind == XPH_RNN_LSTM;
    rnn a = {.s = *s, .gates = (lstm ? 4 : 3) * s->hidden, .state = (lstm ? 2 : 1) * s->hidden};
    int64_t rows = s->batch * s->time;
    a.saved_width = (lstm ? 5 : 4) * s->hidden;
    a.gx = case_random(rows * a.gates, -2, 2);
    a.w = case_random(a.gates * s->hidden, -0.7, 0.7);
    a.bias = case_random(a.gates, -0.5, 0.5);
    a.dy = case_random(rows * s->hidden, -1, 1);
    if (s->carried) a.state_in = case_random(s->batch * a.state, -1, 1);
    if (s->carried) a.dstate_out = case_random(s->batch * a.state, -1, 1);
    if (s->resets) a.reset = case_alloc((size_t)rows);
    for (int64_t i = 0; i < rows && s->resets; i++) a.reset[i] = case_below(s->resets) == 0;
    return a;
}

static void *pack(const xph_kernel_set *set, const rnn *a, const void *w)
{
    xph_linear_pack_args args = {set->type, 0, a->s.hidden, a->gates, w, NULL, NULL};
    args.packed = case_alloc(xph_kernels_packed_bytes(XPH_OP_LINEAR_PACK, &args));
    case_run(xph_kernels_choose(set, XPH_OP_LINEAR_PACK, &args), &args, 1);
    return args.packed;
}

/* Each time the other way round. */
static xph_rnn_args rnn_args(const rnn *a, const xph_kernel_set *set)
{
    static int32_t back;
    xph_type type = set->type;
    int64_t rows = a->s.batch * a->s.time;
    xph_rnn_args args = {.type = type,
                         .kind = a->s.kind,
                         .back = back = !back,
                         .batch = a->s.batch,
                         .time = a->s.time,
                         .hidden = a->s.hidden,
                         .ldgx = a->gates + a->s.pad,
                         .reset = a->reset,
                         .ld_state = a->state + a->s.pad,
                         .ldy = a->s.hidden + a->s.pad};
    args.gx = case_give(type, a->gx, rows, a->gates, args.ldgx);
    args.w = case_give(type, a->w, a->gates, a->s.hidden, a->s.hidden);
    args.packed = pack(set, a, args.w);
    args.bias = case_give(type, a->bias, 1, a->gates, a->gates);
    args.state_in = case_give(type, a->state_in, a->s.batch, a->state, args.ld_state);
    args.state_out = case_give(type, case_zeros(a->s.batch * a->state), a->s.batch, a->state, args.ld_state);
    args.y = case_give(type, case_zeros(rows * a->s.hidden), rows, a->s.hidden, args.ldy);
    args.saved = case_alloc((size_t)(rows * a->saved_width) * case_bytes(type));
    return args;
}

/* By candidate number `which` of those that accept, counted round. */
static void rnn_run_by(rnn *a, const xph_kernel_set *set, int which, int threads)
{
    xph_rnn_args args = rnn_args(a, set);
    const xph_candidate *c = NULL;
    set->compose(XPH_OP_RNN, &args);
    for (const xph_candidate *each = set->op[XPH_OP_RNN]; each->name && which >= 0; each++)
        if (!each->accepts || each->accepts(&args)) c = each, which--;
    int64_t rows = a->s.batch * a->s.time;
    args.scratch = case_scratch(c, &args);
    case_run(c, &args, threads);
    a->y = case_take(set->type, args.y, rows, a->s.hidden, args.ldy);
    a->saved = case_take(set->type, args.saved, rows, a->saved_width, a->saved_width);
    a->state_out = case_take(set->type, args.state_out, a->s.batch, a->state, args.ld_state);
    case_padding_intact(set->type, args.y, rows, a->s.hidden, args.ldy);
}

static void rnn_run(rnn *a, const xph_kernel_set *set, int threads)
{
    rnn_run_by(a, set, 0, threads);
}

static void grad_run(rnn *a, const xph_kernel_set *set, int threads)
{
    const xph_candidate *c = set->op[XPH_OP_RNN_GRAD];
    xph_type type = set->type;
    int64_t rows = a->s.batch * a->s.time, weights = a->gates * a->s.hidden;
    xph_rnn_grad_args args = {
        .fwd = rnn_args(a, set), .lddy = a->s.hidden + a->s.pad, .lddgx = a->gates + a->s.pad};
    args.fwd.state_out = NULL;
    args.fwd.y = case_give(type, a->y, rows, a->s.hidden, args.fwd.ldy);
    args.fwd.saved = case_give(type, a->saved, rows, a->saved_width, a->saved_width);
    args.dy = case_give(type, a->dy, rows, a->s.hidden, args.lddy);
    args.dgx = case_give(type, case_zeros(rows * a->gates), rows, a->gates, args.lddgx);
    double *before = case_zeros(weights + a->gates);
    for (int64_t i = 0; i < weights + a->gates; i++) before[i] = 0.5;
    args.dw = case_give(type, before, a->gates, a->s.hidden, a->s.hidden);
    args.dbias = case_give(type, before, 1, a->gates, a->gates);
    args.dstate_out = case_give(type, a->dstate_out, a->s.batch, a->state, args.fwd.ld_state);
    if (a->state_in)
        args.dstate_in =
            case_give(type, case_zeros(a->s.batch * a->state), a->s.batch, a->state, args.fwd.ld_state);
    set->compose(XPH_OP_RNN_GRAD, &args);
    args.scratch = case_scratch(c, &args);
    case_run(c, &args, threads);
    a->dgx = case_take(type, args.dgx, rows, a->gates, args.lddgx);
    a->dw = case_take(type, args.dw, a->gates, a->s.hidden, a->s.hidden);
    a->dbias = case_take(type, args.dbias, 1, a->gates, a->gates);
    for (int64_t i = 0; i < weights; i++) a->dw[i] -= 0.5;
    for (int64_t i = 0; i < a->gates; i++) a->dbias[i] -= 0.5;
    if (a->state_in) a->dstate_in = case_take(type, args.dstate_in, a->s.batch, a->state, args.fwd.ld_state);
    case_padding_intact(type, args.dgx, rows, a->gates, args.lddgx);
}

/* ---- reference ---- */

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static void reference_frame(const rnn *a, const double *gx, const double *before, double *after)
{
    int64_t n = a->s.hidden;
    for (int64_t k = 0; k < n; k++) {
        double g[4] = {0};
        for (int64_t i = 0; i < a->gates / n; i++)
            g[i] = a->bias[i * n + k] + case_dot(a->w + (i * n + k) * n, before, n);
        if (a->s.kind == XPH_RNN_LSTM) {
            for (int i = 0; i < 4; i++) g[i] += gx[i * n + k];
            after[n + k] = sigmoid(g[1]) * before[n + k] + sigmoid(g[0]) * tanh(g[2]);
            after[k] = sigmoid(g[3]) * tanh(after[n + k]);
        } else {
            double z = sigmoid(gx[n + k] + g[1]);
            after[k] = (1 - z) * tanh(gx[2 * n + k] + sigmoid(gx[k] + g[0]) * g[2]) + z * before[k];
        }
    }
}

static void reference(rnn *a)
{
    a->y = case_zeros(a->s.batch * a->s.time * a->s.hidden);
    a->state_out = case_zeros(a->s.batch * a->state);
    double *before = case_zeros(a->state);
    for (int64_t b = 0; b < a->s.batch; b++) {
        double *state = a->state_out + b * a->state;
        if (a->state_in) memcpy(state, a->state_in + b * a->state, (size_t)a->state * sizeof *state);
        for (int64_t t = 0; t < a->s.time; t++) {
            int64_t row = b * a->s.time + t;
            bool fresh = a->reset && a->reset[row];
            for (int64_t k = 0; k < a->state; k++) before[k] = fresh ? 0 : state[k];
            reference_frame(a, a->gx + row * a->gates, before, state);
            memcpy(a->y + row * a->s.hidden, state, (size_t)a->s.hidden * sizeof *state);
        }
    }
}

static void forward_is_the_equations(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        case_guard_front(i % 2);
        rnn a = rnn_make(&shapes[i]), expected = a;
        reference(&expected);
        EACH_SET(set) {
            double tolerance = set->type == XPH_F64 ? 1e-13 : 5e-6;
            rnn_run(&a, set, 1);
            case_close("y", a.y, expected.y, a.s.batch * a.s.time * a.s.hidden, tolerance);
            case_close("state", a.state_out, expected.state_out, a.s.batch * a.state, tolerance);
        }
        case_release();
    }
}

static void bits_do_not_depend_on_set_or_threads(void **state)
{
    const xph_kernel_set *sets[CASE_SETS];
    int count = case_sets(sets);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        rnn first = rnn_make(&shapes[i]), a = first;
        int64_t rows = a.s.batch * a.s.time;
        rnn_run(&first, &xph_kernels_f32_ref, 1);
        grad_run(&first, &xph_kernels_f32_ref, 1);
        for (int s = 1; s < count; s++) {
            int threads = s == 1 ? 4 : s;
            rnn_run(&a, sets[s], threads);
            grad_run(&a, sets[s], threads);
            case_same("y", a.y, first.y, rows * a.s.hidden);
            case_same("state", a.state_out, first.state_out, a.s.batch * a.state);
            case_same("saved", a.saved, first.saved, rows * a.saved_width);
            case_same("dgx", a.dgx, first.dgx, rows * a.gates);
            case_same("dw", a.dw, first.dw, a.gates * a.s.hidden);
            case_same("dbias", a.dbias, first.dbias, a.gates);
            if (a.state_in) case_same("dstate_in", a.dstate_in, first.dstate_in, a.s.batch * a.state);
            rnn_run_by(&a, sets[s], 1, threads);
            case_same("y by the next candidate", a.y, first.y, rows * a.s.hidden);
            case_same("saved by the next candidate", a.saved, first.saved, rows * a.saved_width);
        }
        case_release();
    }
}

/* A product of gx and the unit matrix that makes gx. */
static xph_linear_args input_of(const rnn *a, const xph_kernel_set *set, const void *gx)
{
    double *unit = case_zeros(a->gates * a->gates);
    for (int64_t i = 0; i < a->gates; i++) unit[i * a->gates + i] = 1.0;
    xph_linear_args args = {.type = set->type, .rows = 1, .in = a->gates, .out = a->gates, .ldx = a->gates};
    args.x = gx;
    args.w = case_give(set->type, unit, a->gates, a->gates, a->gates);
    args.ldy = a->gates;
    args.y = case_give(set->type, case_zeros(a->gates), 1, a->gates, a->gates);
    return args;
}

/* One stream, frame by frame, its state in place, without what backward needs, the input part given or made
 * there: the bits of the batch at once. */
static void steps_have_the_bits_of_the_whole(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (!shapes[i].carried || !shapes[i].batch) continue;
        case_seed(i);
        rnn a = rnn_make(&shapes[i]);
        int64_t b = a.s.batch - 1;
        EACH_SET(set) {
            xph_type type = set->type;
            rnn_run(&a, set, 1);
            void *carried = case_give(type, a.state_in + b * a.state, 1, a.state, a.state);
            for (int64_t t = 0; t < a.s.time; t++) {
                rnn one = a;
                int64_t row = b * a.s.time + t;
                one.s.batch = one.s.time = 1;
                one.gx = a.gx + row * a.gates;
                one.reset = a.reset ? a.reset + row : NULL;
                xph_rnn_args args = rnn_args(&one, set);
                args.state_in = args.state_out = carried;
                args.saved = NULL;
                if (t % 2) args.input = input_of(&a, set, args.gx);
                if (t % 2) args.gx = args.input.y, args.ldgx = a.gates, args.input.back = args.back;
                const xph_candidate *c = xph_kernels_choose(set, XPH_OP_RNN, &args);
                args.scratch = case_scratch(c, &args);
                case_run(c, &args, 1);
                case_same("y", case_take(type, args.y, 1, a.s.hidden, args.ldy), a.y + row * a.s.hidden,
                          a.s.hidden);
            }
            case_same("state", case_take(type, carried, 1, a.state, a.state), a.state_out + b * a.state,
                      a.state);
        }
        case_release();
    }
}

/* ---- gradients ---- */

static double objective(void *context)
{
    rnn *a = context;
    void *mark = case_mark();
    rnn_run(a, &xph_kernels_f64_ref, 1);
    double sum = case_dot(a->y, a->dy, a->s.batch * a->s.time * a->s.hidden);
    if (a->dstate_out) sum += case_dot(a->state_out, a->dstate_out, a->s.batch * a->state);
    case_release_to(mark);
    return sum;
}

static const shape grad_shapes[] = {
    {XPH_RNN_LSTM, 1, 1, 1, false, 0, 0}, {XPH_RNN_GRU, 1, 1, 1, false, 0, 0},
    {XPH_RNN_LSTM, 2, 5, 7, true, 3, 1},  {XPH_RNN_GRU, 2, 5, 7, true, 3, 2},
    {XPH_RNN_LSTM, 17, 3, 3, true, 4, 0}, {XPH_RNN_GRU, 17, 3, 3, true, 4, 0},
    {XPH_RNN_LSTM, 1, 9, 4, false, 0, 0}, {XPH_RNN_GRU, 1, 9, 4, true, 0, 0},
};

static void gradient_is_the_derivative(void **state)
{
    for (size_t i = 0; i < sizeof grad_shapes / sizeof *grad_shapes; i++) {
        case_seed(i + 90);
        rnn a = rnn_make(&grad_shapes[i]);
        rnn_run(&a, &xph_kernels_f64_ref, 1);
        grad_run(&a, &xph_kernels_f64_ref, 1);
        case_gradient("dgx", objective, &a, a.gx, a.dgx, a.s.batch * a.s.time * a.gates, 1e-6);
        case_gradient("dw", objective, &a, a.w, a.dw, a.gates * a.s.hidden, 1e-6);
        case_gradient("dbias", objective, &a, a.bias, a.dbias, a.gates, 1e-6);
        if (a.state_in)
            case_gradient("dstate_in", objective, &a, a.state_in, a.dstate_in, a.s.batch * a.state, 1e-6);
        case_release();
    }
}

static void gradient_in_single_is_that_in_double(void **state)
{
    const xph_kernel_set *set = xph_kernels_pick(XPH_F32, xph_cpu_detect());
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        rnn a = rnn_make(&shapes[i]), exact = a;
        rnn_run(&exact, &xph_kernels_f64_ref, 1);
        grad_run(&exact, &xph_kernels_f64_ref, 1);
        rnn_run(&a, set, 2);
        grad_run(&a, set, 2);
        case_close("dgx", a.dgx, exact.dgx, a.s.batch * a.s.time * a.gates, 2e-5);
        case_close("dw", a.dw, exact.dw, a.gates * a.s.hidden, 2e-5);
        case_close("dbias", a.dbias, exact.dbias, a.gates, 2e-5);
        case_release();
    }
}

/* Saturated gates: +-1e4 and infinities give the limits, not NaN. */
static void extremes_saturate(void **state)
{
    static const shape s = {XPH_RNN_LSTM, 1, 2, 3, false, 0, 0};
    EACH_SET(set) {
        case_seed(1);
        rnn a = rnn_make(&s);
        for (int64_t k = 0; k < 2 * a.gates; k++) a.gx[k] = (k % 2 ? -1 : 1) * (k % 3 ? 1e4 : INFINITY);
        rnn_run(&a, set, 1);
        grad_run(&a, set, 1);
        for (int64_t k = 0; k < 2 * s.hidden; k++) assert_true(fabs(a.y[k]) <= 1);
        for (int64_t k = 0; k < 2 * a.gates; k++) assert_true(isfinite(a.dgx[k]));
        a.gx[0] = NAN;
        rnn_run(&a, set, 1);
        assert_true(isnan(a.y[0]));
        case_release();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_the_equations),
        cmocka_unit_test(bits_do_not_depend_on_set_or_threads),
        cmocka_unit_test(steps_have_the_bits_of_the_whole),
        cmocka_unit_test(gradient_is_the_derivative),
        cmocka_unit_test(gradient_in_single_is_that_in_double),
        cmocka_unit_test(extremes_saturate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
