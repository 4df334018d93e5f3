/* The CUDA kernels of LSTM and GRU on the emulated GPU: against the CPU's in double, both directions, with resets and
 * carried state, units that no tile divides; frames alone against chunks, in place; saturated gates. */
#include "device_case.h"

#include "emu_control.h"

#include <math.h>
#include <string.h>

typedef struct shape {
    int32_t kind;
    int64_t batch, time, hidden, pad;
    int resets; /* one frame in so many; 0: none */
    bool carried;
} shape;

static const shape shapes[] = {
    {XPH_RNN_LSTM, 1, 1, 1, 0, 0, false},
    {XPH_RNN_GRU, 1, 1, 1, 0, 0, false},
    {XPH_RNN_LSTM, 2, 5, 7, 1, 3, true},
    {XPH_RNN_GRU, 2, 5, 7, 2, 3, true},
    {XPH_RNN_LSTM, 33, 3, 33, 0, 2, true},
    {XPH_RNN_GRU, 35, 4, 41, 3, 5, true},
    {XPH_RNN_LSTM, 3, 9, 64, 4, 4, false},
    {XPH_RNN_GRU, 1, 30, 16, 0, 0, true},
    {XPH_RNN_LSTM, 0, 3, 4, 0, 0, true},
    {XPH_RNN_GRU, 2, 0, 5, 0, 0, true},
    {XPH_RNN_LSTM, 2, 0, 5, 1, 0, true},
    {XPH_RNN_GRU, 3, 5, 100, 0, 1, false},
    {XPH_RNN_LSTM, 9, 2, 136, 0, 3, true},
    {XPH_RNN_GRU, 70, 2, 20, 4, 3, true},
    {XPH_RNN_LSTM, 66, 3, 12, 0, 3, true},
    {XPH_RNN_GRU, 1, 2, 260, 0, 0, true},
    {XPH_RNN_LSTM, 37, 3, 32, 0, 3, true},
    {XPH_RNN_GRU, 33, 4, 32, 1, 3, true},
    {XPH_RNN_LSTM, 2, 2, 160, 0, 0, true},
    {XPH_RNN_GRU, 5, 2, 96, 2, 2, false},
    /* of clusters: tiles of 8, 16 and 32 streams that are not full, several clusters, blocks of other sizes */
    {XPH_RNN_LSTM, 3, 7, 32, 1, 3, true},
    {XPH_RNN_GRU, 19, 6, 32, 0, 4, true},
    {XPH_RNN_LSTM, 70, 6, 64, 3, 5, true},
    {XPH_RNN_GRU, 41, 7, 64, 1, 0, false},
    {XPH_RNN_LSTM, 9, 6, 96, 0, 3, true},
    {XPH_RNN_GRU, 1, 8, 128, 2, 0, true},
    {XPH_RNN_LSTM, 5, 6, 192, 0, 2, false},
};

typedef struct layer {
    shape s;
    int64_t gates, state, saved;
    double *gx, *w, *bias, *state_in, *dy, *dstate_out;
    uint8_t *reset;
    void *packed; /* for the CPU */
} layer;

static void *pack(const layer *l)
{
    const xph_kernel_set *set = &xph_kernels_f64_ref;
    xph_linear_pack_args args = {set->type, 0, l->s.hidden, l->gates, l->w, NULL, NULL};
    args.packed = case_alloc(xph_kernels_packed_bytes(XPH_OP_LINEAR_PACK, &args));
    case_run(xph_kernels_choose(set, XPH_OP_LINEAR_PACK, &args), &args, 1);
    return args.packed;
}

static layer layer_make(const shape *s)
{
    bool lstm = s->kind == XPH_RNN_LSTM;
    int64_t rows = s->batch * s->time;
    double size = 1.5 / sqrt((double)s->hidden);
    layer l = {.s = *s, .gates = (lstm ? 4 : 3) * s->hidden, .state = (lstm ? 2 : 1) * s->hidden};
    l.saved = (lstm ? 5 : 4) * s->hidden;
    l.gx = case_random(rows * l.gates, -2, 2);
    l.w = case_random(l.gates * s->hidden, -size, size);
    l.bias = case_random(l.gates, -0.5, 0.5);
    l.dy = case_random(rows * s->hidden, -1, 1);
    l.state_in = s->carried ? case_random(s->batch * l.state, -1, 1) : NULL;
    l.dstate_out = s->carried ? case_random(s->batch * l.state, -1, 1) : NULL;
    l.reset = kt_resets(rows, s->resets);
    l.packed = pack(&l);
    return l;
}

static xph_rnn_args args_of(const layer *l)
{
    return (xph_rnn_args){.kind = l->s.kind,
                          .batch = l->s.batch,
                          .time = l->s.time,
                          .hidden = l->s.hidden,
                          .packed = l->packed,
                          .reset = l->reset};
}

/* Weights as matrix units read them, which rows of floats do without. */
static void pack_here(const kt_case *c, const xph_kernel_set *set, void *given)
{
    const layer *l = c->context;
    xph_rnn_args *args = given;
    int64_t count = l->gates * l->s.hidden;
    if (args->type == XPH_F32 || args->weights) return;
    float *w = case_alloc((size_t)count * sizeof *w);
    for (int64_t i = 0; i < count; i++) w[i] = (float)l->w[i];
    xph_linear_pack_args pack = {args->type, 0, l->s.hidden, l->gates, w, NULL, NULL};
    args->packed = pack.packed = case_alloc(xph_cuda_packed_bytes(XPH_OP_LINEAR_PACK, &pack));
    device_do(xph_cuda_linear_pack, &pack);
}

enum { Y = 4, SAVED = 5, STATE_OUT = 6 }; /* places in the table below */

static kt_case forward_case(const layer *l)
{
    const shape *s = &l->s;
    int64_t rows = s->batch * s->time;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_rnn_args, gx, ldgx, rows, l->gates, KT_IN, l->gx, NULL),
        KT_FLAT(xph_rnn_args, w, l->gates, s->hidden, KT_IN, l->w, NULL),
        KT_FLAT(xph_rnn_args, bias, 1, l->gates, KT_IN, l->bias, NULL),
        KT_FIELD(xph_rnn_args, state_in, ld_state, s->batch, l->state, KT_IN, l->state_in, NULL),
        KT_FIELD(xph_rnn_args, y, ldy, rows, s->hidden, KT_OUT, NULL, NULL),
        KT_FLAT(xph_rnn_args, saved, rows, l->saved, KT_OUT, NULL, NULL),
        KT_FIELD(xph_rnn_args, state_out, ld_state, s->batch, l->state, KT_OUT, NULL, NULL),
    };
    const xph_rnn_args args = args_of(l);
    kt_case c = KT_CASE("rnn", XPH_OP_RNN, args, offsetof(xph_rnn_args, scratch), tensors, s->pad);
    c.prepare = pack_here;
    c.context = l;
    return c;
}

static device_case on_device(const kt_case *c, const xph_cuda_candidate *list, const layer *l, xph_type type,
                             size_t reset_at)
{
    device_case d = device_case_of(c, list, type);
    d.reset_at = l->reset ? reset_at : KT_DENSE;
    d.rows = l->s.batch * l->s.time;
    return d;
}

static void forward(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        case_seed(i / DEVICE_TYPES);
        layer l = layer_make(&shapes[i / DEVICE_TYPES]);
        kt_case c = forward_case(&l);
        device_case d =
            on_device(&c, xph_cuda_rnn, &l, device_types[i % DEVICE_TYPES], offsetof(xph_rnn_args, reset));
        device_check(&d);
        case_release();
    }
}

/* Floats of which matrix units read ten bits of the fraction, and weights that do not lie as they need them. */
static void tf32(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (shapes[i].hidden % 32) continue; /* no work for matrix units */
        case_seed(i + 150);
        layer l = layer_make(&shapes[i]);
        kt_case c = forward_case(&l);
        KT_ARGS(&c, xph_rnn_args)->math = XPH_MATH_TF32;
        device_case d = on_device(&c, xph_cuda_rnn, &l, XPH_F32, offsetof(xph_rnn_args, reset));
        d.tolerance = 3e-3;
        device_check(&d);
        case_release();
    }
}

static void forget_packed(const kt_case *c, const xph_kernel_set *set, void *given)
{
    ((xph_rnn_args *)given)->packed = NULL;
}

/* Rows of bfloat16 without packed weights: the numbers of the other kernels. */
static void without_packed_weights(void **state)
{
    const shape s = {XPH_RNN_LSTM, 3, 4, 32, 0, 3, true};
    case_seed(170);
    layer l = layer_make(&s);
    kt_case c = forward_case(&l);
    c.prepare = forget_packed;
    device_case d = on_device(&c, xph_cuda_rnn, &l, XPH_BF16, offsetof(xph_rnn_args, reset));
    device_check(&d);
    case_release();
}

/* What forward saves, in double. */
static void run_forward(const layer *l, double *results[KT_MOST])
{
    kt_case c = forward_case(l);
    c.prepare = NULL; /* it packs for the device */
    kt_reference(&c, results);
}

static void gradient_shape(const shape *s, xph_type type, int32_t math)
{
    const bool weights = s->hidden < 42; /* of many the gradients are those of linear, which others test */
    double *after[KT_MOST];
    layer l = layer_make(s);
    int64_t rows = s->batch * s->time;
    run_forward(&l, after);
    double *dw = weights ? case_random(l.gates * s->hidden, -1, 1) : NULL;
    double *dbias = weights ? case_random(l.gates, -1, 1) : NULL;
    const int32_t adds = weights ? KT_ADD : KT_IN, carries = s->carried ? KT_OUT : KT_IN;
    const kt_tensor tensors[] = {
        KT_FLAT(xph_rnn_grad_args, fwd.w, l.gates, s->hidden, KT_IN, l.w, NULL),
        KT_FLAT(xph_rnn_grad_args, fwd.bias, 1, l.gates, KT_IN, l.bias, NULL),
        KT_FIELD(xph_rnn_grad_args, fwd.state_in, fwd.ld_state, s->batch, l.state, KT_IN, l.state_in, NULL),
        KT_FIELD(xph_rnn_grad_args, fwd.y, fwd.ldy, rows, s->hidden, KT_IN, after[Y], NULL),
        KT_FLAT(xph_rnn_grad_args, fwd.saved, rows, l.saved, KT_IN, after[SAVED], NULL),
        KT_FIELD(xph_rnn_grad_args, dy, lddy, rows, s->hidden, KT_IN, l.dy, NULL),
        KT_FIELD(xph_rnn_grad_args, dstate_out, fwd.ld_state, s->batch, l.state, KT_IN, l.dstate_out, NULL),
        KT_FIELD(xph_rnn_grad_args, dgx, lddgx, rows, l.gates, KT_OUT, NULL, NULL),
        KT_FLAT(xph_rnn_grad_args, dw, l.gates, s->hidden, adds, dw, NULL),
        KT_FLAT(xph_rnn_grad_args, dbias, 1, l.gates, adds, dbias, NULL),
        KT_FIELD(xph_rnn_grad_args, dstate_in, fwd.ld_state, s->batch, l.state, carries, NULL, NULL),
    };
    xph_rnn_grad_args args = {.fwd = args_of(&l)};
    args.fwd.math = math;
    const kt_case c =
        KT_CASE("rnn_grad", XPH_OP_RNN_GRAD, args, offsetof(xph_rnn_grad_args, scratch), tensors, s->pad);
    device_case d = on_device(&c, xph_cuda_rnn_grad, &l, type, offsetof(xph_rnn_grad_args, fwd.reset));
    if (math == XPH_MATH_TF32) d.tolerance = 3e-3;
    device_check(&d);
    case_release();
}

static void gradient(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        case_seed(50 + i / DEVICE_TYPES);
        gradient_shape(&shapes[i / DEVICE_TYPES], device_types[i % DEVICE_TYPES], XPH_MATH_F32);
    }
}

static void gradient_tf32(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (shapes[i].hidden % 32) continue;
        case_seed(i + 180);
        gradient_shape(&shapes[i], XPH_F32, XPH_MATH_TF32);
    }
}

/* So many weights that the gradients of gates have room once in shared memory, not twice. */
static void gradient_in_one_buffer(void **state)
{
    const shape s = {XPH_RNN_LSTM, 9, 6, 256, 0, 3, true};
    case_seed(190);
    gradient_shape(&s, XPH_F32, XPH_MATH_TF32);
}

/* More than every device has to give: 16 blocks. */
static void sixteen_blocks(void **state)
{
    const shape s = {XPH_RNN_GRU, 1, 6, 512, 0, 3, true};
    case_seed(191);
    layer l = layer_make(&s);
    kt_case c = forward_case(&l);
    device_case d = on_device(&c, xph_cuda_rnn, &l, XPH_BF16, offsetof(xph_rnn_args, reset));
    device_check(&d);
    case_release();
    gradient_shape(&s, XPH_BF16, XPH_MATH_F32);
}

static void in_place(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_rnn_args *args = given;
    pack_here(c, set, args);
    args->state_in = args->state_out;
}

/* gx made by a product with the unit matrix, from numbers and into a place in the host's memory. */
static xph_linear_args input_of(const layer *l, xph_type type)
{
    float *x = case_alloc((size_t)l->gates * sizeof *x),
          *w = case_alloc((size_t)(l->gates * l->gates) * sizeof *w);
    for (int64_t i = 0; i < l->gates; i++) x[i] = (float)l->gx[i];
    for (int64_t i = 0; i < l->gates * l->gates; i++) w[i] = i % (l->gates + 1) ? 0.0f : 1.0f;
    xph_linear_args args = {.type = type, .rows = 1, .in = l->gates, .out = l->gates};
    args.x = x;
    args.w = w;
    args.y = case_alloc((size_t)l->gates * sizeof *x);
    args.ldx = args.ldy = l->gates;
    return args;
}

static void input_here(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_rnn_args *args = given;
    in_place(c, set, args);
    args->input = input_of(c->context, args->type);
    args->gx = args->input.y;
    args->ldgx = args->input.ldy;
}

/* One stream, frame by frame, its state in place, without what backward needs, the input part given or made there: the
 * bits of the batch at once. */
static void frames_of_shape(const shape *s, xph_type type)
{
    double *whole[KT_MOST], *result[KT_MOST];
    layer l = layer_make(s);
    kt_case c = forward_case(&l);
    device_case d = on_device(&c, xph_cuda_rnn, &l, type, offsetof(xph_rnn_args, reset));
    device_run(&d, whole);
    int64_t b = s->batch - 1, gates = l.gates;
    double *carried = kt_copy(l.state_in + b * l.state, l.state);
    for (int64_t t = 0; t < s->time; t++) {
        layer one = l;
        int64_t row = b * s->time + t;
        one.s.batch = one.s.time = 1;
        one.gx = l.gx + row * gates;
        if (one.reset) one.reset += row;
        c = forward_case(&one);
        c.tensors[STATE_OUT].role = KT_ADD;
        c.tensors[STATE_OUT].x = carried;
        c.tensors[SAVED].role = KT_IN; /* NULL */
        c.prepare = t % 2 && type == XPH_F32 ? input_here : in_place;
        c.context = &one;
        d = on_device(&c, xph_cuda_rnn, &one, type, offsetof(xph_rnn_args, reset));
        device_run(&d, result);
        case_same("y of a frame", result[Y], whole[Y] + row * s->hidden, s->hidden);
        carried = result[STATE_OUT];
    }
    case_same("state", carried, whole[STATE_OUT] + b * l.state, l.state);
    case_release();
}

static void frames_have_the_bits_of_a_chunk(void **state)
{
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
        if (!shapes[i / 2].carried || !shapes[i / 2].batch) continue;
        case_seed(i / 2 + 120);
        frames_of_shape(&shapes[i / 2], i % 2 ? XPH_BF16 : XPH_F32);
    }
}

/* Saturated gates: 1e4 and infinities of either sign give the limits, not NaN; a NaN is seen. */
static void extremes_saturate(void **state)
{
    for (int kind = XPH_RNN_LSTM; kind <= XPH_RNN_GRU; kind++) {
        const shape s = {kind, 2, 2, 3, 0, 0, false};
        double *result[KT_MOST];
        case_seed(1);
        layer l = layer_make(&s);
        for (int64_t k = 0; k < 4 * l.gates; k++) l.gx[k] = (k % 2 ? -1 : 1) * (k % 3 ? 1e4 : INFINITY);
        kt_case c = forward_case(&l);
        device_case d = on_device(&c, xph_cuda_rnn, &l, XPH_F32, offsetof(xph_rnn_args, reset));
        device_run(&d, result);
        for (int64_t k = 0; k < 4 * s.hidden; k++) assert_true(fabs(result[Y][k]) <= 1);
        l.gx[0] = NAN;
        device_run(&d, result);
        for (int64_t k = 0; k < 4 * s.hidden; k++) /* the whole stream from its second frame on */
            assert_int_equal(isnan(result[Y][k]), k == 0 || k / s.hidden == 1);
        case_release();
    }
}

/* Packed for the set or, without one, in memory of the device. */
static void *pack_narrow(const layer *l, const xph_kernel_set *set, xph_type weights)
{
    int64_t count = l->gates * l->s.hidden;
    float *w = set ? case_alloc((size_t)count * sizeof *w) : emu_alloc((size_t)count * sizeof *w, sizeof *w);
    for (int64_t i = 0; i < count; i++) w[i] = (float)l->w[i];
    xph_linear_pack_args args = {XPH_F32, weights, l->s.hidden, l->gates, w, NULL, NULL};
    if (set) {
        args.packed = case_alloc(xph_kernels_packed_bytes(XPH_OP_LINEAR_PACK, &args));
        case_run(xph_kernels_choose(set, XPH_OP_LINEAR_PACK, &args), &args, 1);
    } else {
        args.packed = emu_alloc(xph_cuda_packed_bytes(XPH_OP_LINEAR_PACK, &args), sizeof(float));
        device_do(xph_cuda_linear_pack, &args);
        emu_free(w);
    }
    return args.packed;
}

static void narrow_shape(const shape *s, xph_type weights)
{
    const xph_kernel_set *set = &xph_kernels_f32_ref;
    double *want[KT_MOST], *got[KT_MOST];
    layer l = layer_make(s);
    kt_case c = forward_case(&l);
    xph_rnn_args *args = KT_ARGS(&c, xph_rnn_args);
    args->weights = weights;
    args->packed = pack_narrow(&l, set, weights);
    assert_true(kt_run(&c, set, NULL, 1, want));
    void *packed = pack_narrow(&l, NULL, weights);
    args->packed = packed;
    device_case d = on_device(&c, xph_cuda_rnn, &l, XPH_F32, offsetof(xph_rnn_args, reset));
    device_run(&d, got);
    for (int i = Y; i <= STATE_OUT; i++)
        case_close(c.tensors[i].name, got[i], want[i], c.tensors[i].rows * c.tensors[i].width, 2e-2);
    emu_free(packed);
    case_release();
}

/* Near the CPU's: where a number lies between two levels, its last bit may tell to which it goes. */
static void narrow_weights(void **state)
{
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
        case_seed(i / 2 + 200);
        narrow_shape(&shapes[i / 2], i % 2 ? XPH_I8 : XPH_BF16);
    }
}

static void narrow_weights_are_not_trained(void **state)
{
    xph_rnn_grad_args args = {.fwd = {.weights = XPH_I8, .batch = 1, .time = 1, .hidden = 8}};
    uint32_t bit;
    assert_null(xph_cuda_choose(XPH_OP_RNN_GRAD, &args, 0, &bit));
    args.fwd.weights = 0;
    assert_non_null(xph_cuda_choose(XPH_OP_RNN_GRAD, &args, 0, &bit));
}

/* ---- products of a layer ---- */

static int product_runs, product_gives;

static int product_launch(const void *args, struct CUstream_st *stream)
{
    product_runs++;
    return product_gives;
}

static const xph_cuda_candidate stand_in = {"stand-in", NULL, NULL, product_launch};

/* A layer runs the product that was chosen with it, and what that one refuses it refuses, before it has read or written
 * anything: there is no memory. */
static void a_layer_refuses_with_its_product(void **state)
{
    uint32_t bit, other;
    xph_rnn_args args = {.batch = 1, .time = 1, .hidden = 32, .input = {.rows = 1, .in = 8, .out = 128}};
    const xph_cuda_candidate *chosen = xph_cuda_choose(XPH_OP_RNN, &args, 0, &bit);
    const xph_kernel *product = args.input_product;
    assert_ptr_equal(xph_cuda_choose(XPH_OP_RNN, &args, bit, &other), chosen);
    assert_non_null(args.input_product);
    assert_ptr_not_equal(args.input_product, product);
    assert_int_not_equal(other, bit);
    assert_null(xph_cuda_choose(XPH_OP_RNN, &args, bit | other, &other)); /* no third one is there */
    product_runs = 0;
    product_gives = XPH_CUDA_REFUSED;
    int layers = 0;
    args.input_product = (const xph_kernel *)&stand_in;
    for (const xph_cuda_candidate *k = xph_cuda_rnn; k->name; k++, layers++)
        assert_int_equal(k->launch(&args, NULL), XPH_CUDA_REFUSED);
    assert_int_equal(product_runs, layers);
    assert_null(emu_fault());
}

static const char *name_of(xph_op op, void *args)
{
    uint32_t bit;
    return xph_cuda_choose(op, args, 0, &bit)->name;
}

/* More than 8 blocks, and what no cluster takes: few frames, units that blocks do not share evenly, too many, floats. */
static void clusters_take(void **state)
{
    const struct {
        int64_t hidden, time;
        xph_type type;
        const char *forward, *back;
    } cases[] = {
        {512, 6, XPH_BF16, "rnn_cluster", "rnn_grad_cluster"},
        {256, 6, XPH_F32, "rnn_cluster", "rnn_grad_cluster"},
        {96, 6, XPH_F32, "rnn_cluster", "rnn_grad_cluster"},
        {160, 6, XPH_F16, "rnn_cluster", "rnn_grad_tensor"},
        {256, 5, XPH_F32, "rnn_tensor", "rnn_grad_tensor"},
        {512, 6, XPH_F32, "rnn_tensor", "rnn_grad_tensor"},
        {1024, 6, XPH_BF16, "rnn_tensor", "rnn_grad_tensor"},
        {48, 6, XPH_BF16, "rnn_stay", "rnn_grad_few"},
        {64, 6, XPH_F64, "rnn_stay", "rnn_grad_cluster"}, /* stands for floats that may not be rounded */
        {256, 6, XPH_F64, "rnn_cluster_floats", "rnn_grad_cluster"},
        {160, 6, XPH_F64, "rnn_cluster_floats", "rnn_grad_few"},
        {136, 6, XPH_F64, "rnn_few", "rnn_grad_few"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        xph_rnn_args a = {.type = cases[i].type, .math = XPH_MATH_TF32};
        if (a.type == XPH_F64) a.type = XPH_F32, a.math = XPH_MATH_F32;
        a.batch = 1;
        a.time = cases[i].time;
        a.hidden = cases[i].hidden;
        xph_rnn_grad_args g = {.fwd = a};
        assert_string_equal(name_of(XPH_OP_RNN, &a), cases[i].forward);
        assert_string_equal(name_of(XPH_OP_RNN_GRAD, &g), cases[i].back);
    }
}

/* Nor does a gradient look for others. */
static void a_gradient_runs_the_products_it_was_chosen_with(void **state)
{
    float number = 0.0f;
    for (int32_t kind = XPH_RNN_LSTM; kind <= XPH_RNN_GRU; kind++) {
        uint32_t bit;
        xph_rnn_grad_args args = {.fwd = {.kind = kind, .batch = 1, .time = 0, .hidden = 4}, .dw = &number};
        const xph_cuda_candidate *chosen = xph_cuda_choose(XPH_OP_RNN_GRAD, &args, 0, &bit);
        const int products = kind == XPH_RNN_LSTM ? 1 : 2;
        product_runs = product_gives = 0;
        for (int i = 0; i < products; i++) {
            assert_ptr_equal(args.products[i], &xph_cuda_linear_grad[1]); /* no library is there */
            args.products[i] = (const xph_kernel *)&stand_in;
        }
        args.scratch = emu_alloc(chosen->scratch_bytes(&args), sizeof(float));
        assert_int_equal(chosen->launch(&args, NULL), 0);
        assert_int_equal(product_runs, products);
        assert_null(emu_fault());
        emu_free(args.scratch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward),
        cmocka_unit_test(tf32),
        cmocka_unit_test(without_packed_weights),
        cmocka_unit_test(gradient),
        cmocka_unit_test(gradient_tf32),
        cmocka_unit_test(gradient_in_one_buffer),
        cmocka_unit_test(sixteen_blocks),
        cmocka_unit_test(frames_have_the_bits_of_a_chunk),
        cmocka_unit_test(extremes_saturate),
        cmocka_unit_test(narrow_weights),
        cmocka_unit_test(narrow_weights_are_not_trained),
        cmocka_unit_test(a_layer_refuses_with_its_product),
        cmocka_unit_test(clusters_take),
        cmocka_unit_test(a_gradient_runs_the_products_it_was_chosen_with),
    };
    return cmocka_run_group_tests_name("cuda_rnn", tests, NULL, NULL);
}
