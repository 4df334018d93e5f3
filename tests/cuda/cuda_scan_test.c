/* The CUDA kernels of the selective scan on the emulated GPU: against the CPU's in double, frames against chunks,
 * resets, carried state, states of all paddings, widths that fill no block. */
#include "device_case.h"
#include "scan_case.h"

#include <math.h>
#include <string.h>

static const scan_shape shapes[] = {
    {1, 1, 1, 1, 0, false, false, false, 0},  {1, 1, 16, 16, 0, true, true, true, 0},
    {2, 5, 3, 4, 1, true, true, true, 3},     {0, 4, 5, 4, 0, true, true, true, 0},
    {2, 0, 5, 4, 1, true, false, true, 2},    {3, 7, 67, 3, 2, true, true, false, 4},
    {1, 37, 40, 16, 0, true, true, true, 9},  {2, 17, 33, 8, 3, false, true, true, 2},
    {1, 61, 100, 16, 0, true, true, true, 0}, {1, 33, 9, 32, 3, true, false, true, 1},
    {2, 9, 37, 64, 1, true, true, true, 5},   {1, 16, 130, 31, 0, true, true, true, 7},
    {3, 1, 70, 64, 4, true, true, true, 2},   {2, 1, 35, 32, 0, true, true, true, 0},
    {1, 24, 65, 12, 0, true, true, true, 0},  {3, 1, 160, 16, 0, true, true, true, 0},
    {2, 1, 33, 8, 2, true, true, false, 2},
};

static device_case on_device(const kt_case *c, xph_type type, int64_t rows)
{
    device_case d = device_case_of(c, xph_cuda_scan, type);
    d.reset_at = offsetof(xph_scan_args, reset);
    d.rows = rows;
    return d;
}

static void forward(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        case_seed(i / DEVICE_TYPES);
        scan_layer l = scan_layer_make(&shapes[i / DEVICE_TYPES]);
        kt_case c = scan_case(&l);
        device_case d = on_device(&c, device_types[i % DEVICE_TYPES], l.rows);
        device_check(&d);
        case_release();
    }
}

/* As many channels as the candidate with fewer lanes asks for, with each padding. */
static void many_channels(void **state)
{
    for (int64_t states = 7; states <= 63; states = 2 * states + 1) {
        const scan_shape s = {32, 3, 521, states, 0, true, true, true, 4};
        case_seed((uint64_t)states);
        scan_layer l = scan_layer_make(&s);
        kt_case c = scan_case(&l);
        device_case d = on_device(&c, XPH_F32, l.rows);
        device_check(&d);
        case_release();
    }
}

/* Stream b of all, frame by frame, its state in place. */
static void one_stream(const scan_layer *all, xph_type type, int64_t b, double *const *together)
{
    const scan_shape *s = &all->s;
    double *carried = kt_copy(all->in ? all->in + b * all->state : case_zeros(all->state), all->state);
    for (int64_t t = 0; t < s->time; t++) {
        double *result[KT_MOST];
        int64_t row = b * s->time + t;
        scan_layer one = scan_frame_of(all, row);
        kt_case c = scan_case_carried(&one, carried);
        device_case d = on_device(&c, type, 1);
        device_run(&d, result);
        case_same("frame", result[SCAN_Y], together[SCAN_Y] + row * s->width, s->width);
        carried = result[SCAN_STATE];
    }
    case_same("state", carried, together[SCAN_STATE] + b * all->state, all->state);
}

static void frames_have_the_bits_of_a_chunk(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        double *together[KT_MOST];
        xph_type type = device_types[i % DEVICE_TYPES];
        case_seed(i / DEVICE_TYPES);
        scan_layer all = scan_layer_make(&shapes[i / DEVICE_TYPES]);
        kt_case c = scan_case(&all);
        device_case d = on_device(&c, type, all.rows);
        device_run(&d, together);
        for (int64_t b = 0; b < all.s.batch; b++) one_stream(&all, type, b, together);
        case_release();
    }
}

static double *prepared_decay; /* for the kernel of the next test */

static void prepare_decay(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_scan_args *args = given;
    prepared_decay = case_zeros(args->width * args->states);
    const xph_scan_pack_args pack = {args->type, args->width, args->states, args->a_log, prepared_decay};
    assert_int_equal(xph_cuda_scan_pack->launch(&pack, NULL), 0);
    args->decay = prepared_decay;
}

static void prepared_rates_give_the_same_bits(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        double *with[KT_MOST], *without[KT_MOST];
        case_seed(i);
        scan_layer l = scan_layer_make(&shapes[i]);
        kt_case c = scan_case(&l);
        device_case d = on_device(&c, XPH_F32, l.rows);
        device_run(&d, without);
        c.prepare = prepare_decay;
        device_run(&d, with);
        case_same("y", with[SCAN_Y], without[SCAN_Y], l.rows * l.s.width);
        case_same("state", with[SCAN_STATE], without[SCAN_STATE], l.s.batch * l.state);
        case_release();
    }
}

/* The bottleneck of a frame's dt, and its product. */
typedef struct bottleneck {
    int64_t rank, pad;
    double *x, *w, *bias;
    float *rows, *weights, *added; /* in the device's memory */
} bottleneck;

static float *on_the_device(const double *x, int64_t rows, int64_t width, int64_t ld)
{
    const size_t bytes = (size_t)(rows * ld) * sizeof(float);
    float *to = emu_alloc(bytes, sizeof *to);
    assert_non_null(to);
    for (int64_t i = 0; i < rows * width; i++) to[i / width * ld + i % width] = (float)x[i];
    return to;
}

static bottleneck bottleneck_make(const scan_layer *l, int64_t rank, int64_t pad)
{
    bottleneck n = {.rank = rank, .pad = pad};
    n.x = case_random(l->rows * rank, -1, 1);
    n.w = case_random(l->s.width * rank, -1, 1);
    n.bias = rank % 2 ? NULL : case_random(l->s.width, -2, 1);
    for (int64_t i = 0; i < l->rows * rank; i++) n.x[i] = (double)(float)n.x[i];
    for (int64_t i = 0; i < l->s.width * rank; i++) n.w[i] = (double)(float)n.w[i];
    return n;
}

static const bottleneck *asked; /* for the kernel of the next test */

static void ask_for_product(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_scan_args *a = given;
    a->step = (xph_linear_args){.rows = a->batch,
                                .in = asked->rank,
                                .out = a->width,
                                .x = asked->rows,
                                .ldx = asked->rank + asked->pad,
                                .w = asked->weights,
                                .bias = asked->added};
    a->dt = NULL; /* it is not read */
}

/* dt as a product in the scan of a frame: what the scan makes of the double product. */
static void a_frame_makes_its_own_steps(void **state)
{
    static const scan_shape some[] = {{3, 1, 130, 16, 0, true, true, true, 0},
                                      {1, 1, 32, 16, 0, true, true, true, 0},
                                      {2, 1, 37, 4, 3, true, false, true, 2},
                                      {2, 1, 521, 64, 0, true, true, true, 0},
                                      {4, 1, 96, 31, 1, false, true, false, 0}};
    static const int64_t ranks[] = {16, 1, 33, 64, 12};
    for (size_t i = 0; i < sizeof some / sizeof *some * sizeof ranks / sizeof *ranks; i++) {
        case_seed(90 + i);
        scan_layer l = scan_layer_make(&some[i % 5]);
        bottleneck n = bottleneck_make(&l, ranks[i / 5], i % 3 ? 0 : (int64_t)i);
        for (int64_t row = 0; row < l.rows; row++)
            for (int64_t d = 0; d < l.s.width; d++) {
                double sum = n.bias ? n.bias[d] : 0.0;
                for (int64_t k = 0; k < n.rank; k++) sum += n.x[row * n.rank + k] * n.w[d * n.rank + k];
                l.dt[row * l.s.width + d] = sum;
            }
        n.rows = on_the_device(n.x, l.rows, n.rank, n.rank + n.pad);
        n.weights = on_the_device(n.w, l.s.width, n.rank, n.rank);
        n.added = n.bias ? on_the_device(n.bias, 1, l.s.width, l.s.width) : NULL;
        kt_case c = scan_case(&l);
        c.prepare = ask_for_product;
        asked = &n;
        device_case d = on_device(&c, XPH_F32, l.rows);
        d.tolerance = 2e-5; /* dt is a sum of up to 64 products in float */
        d.beside = emu_allocated();
        device_check(&d);
        emu_free(n.rows);
        emu_free(n.weights);
        if (n.added) emu_free(n.added);
        case_release();
    }
}

/* Only one frame, rows and weights of floats, and a bottleneck that is not too wide. */
static void other_products_are_not_made(void **state)
{
    const xph_scan_args good = {.batch = 2,
                                .time = 1,
                                .width = 32,
                                .states = 16,
                                .step = {.rows = 2, .in = 64, .out = 32, .ldx = 64}};
    xph_scan_args bad[6];
    uint32_t bit;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) bad[i] = good;
    bad[0].time = 2;
    bad[1].step.in = 65;
    bad[2].step.weights = XPH_BF16;
    bad[3].step.rows = 3;
    bad[4].step.out = 31;
    bad[5].type = bad[5].step.type = XPH_BF16;
    assert_non_null(xph_cuda_first(xph_cuda_scan, &good, 0, &bit));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_null(xph_cuda_first(xph_cuda_scan, &bad[i], 0, &bit));
}

static void gradient_shape(const scan_shape *s, xph_type type)
{
    scan_layer l = scan_layer_make(s);
    const kt_case c = scan_gradient_case(&l);
    device_case d = device_case_of(&c, xph_cuda_scan_grad, type);
    d.reset_at = offsetof(xph_scan_grad_args, fwd.reset);
    d.rows = l.rows;
    device_check(&d);
    case_release();
}

static void gradient(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int k = 0; k < DEVICE_TYPES; k++) {
            case_seed(50 + i);
            gradient_shape(&shapes[i], device_types[k]);
        }
    }
}

/* More streams than strands of the last sums, and a long walk. */
static void gradients_over_many(void **state)
{
    case_seed(70);
    gradient_shape(&(scan_shape){21, 3, 5, 2, 0, true, true, true, 3}, XPH_F32);
    case_seed(71);
    gradient_shape(&(scan_shape){1, 300, 18, 16, 0, true, true, true, 200}, XPH_F32);
}

static void fixed_rates(void **state)
{
    const scan_shape some[] = {{2, 5, 37, 6, 1, true, false, true, 3},
                               {3, 1, 70, 16, 4, true, true, true, 2}};
    for (size_t i = 0; i < DEVICE_TYPES * sizeof some / sizeof *some; i++) {
        xph_type type = device_types[i % DEVICE_TYPES];
        case_seed(80 + i / DEVICE_TYPES);
        scan_layer l = scan_layer_fixed(&some[i / DEVICE_TYPES]);
        const kt_case c = scan_case(&l), g = scan_gradient_case(&l);
        device_case d = on_device(&c, type, l.rows);
        device_check(&d);
        d = device_case_of(&g, xph_cuda_scan_grad, type);
        d.reset_at = offsetof(xph_scan_grad_args, fwd.reset);
        d.rows = l.rows;
        device_check(&d);
        case_release();
    }
}

/* ---- marks, and sums of columns ---- */

enum { RUNS_MOST = 8 };
static struct {
    int64_t width;
    int runs;
    float *dz[RUNS_MOST], *ddt[RUNS_MOST]; /* of every run */
} summed;

static float *numbered(int64_t count)
{
    float *x = case_alloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = 0.25F * (float)(i % 7);
    return x;
}

/* What every candidate of the forward pass leaves, which is the same. */
static void *marks_of(xph_scan_args forward)
{
    size_t bytes = xph_scan_saved_bytes(&forward);
    void *first = NULL;
    forward.ldy = forward.width;
    forward.state_out = NULL;
    for (const xph_cuda_candidate *k = xph_cuda_scan; k->name && bytes; k++) {
        if (!k->accepts(&forward)) continue;
        forward.marks = case_alloc(bytes);
        forward.y = case_alloc((size_t)(forward.batch * forward.time * forward.width) * sizeof(float));
        memset(forward.marks, 0xff, bytes);
        assert_int_equal(k->launch(&forward, NULL), 0);
        if (first) assert_memory_equal(forward.marks, first, bytes);
        if (!first) first = forward.marks;
    }
    return first;
}

static void leave_marks(const kt_case *c, const xph_kernel_set *set, void *given)
{
    assert_non_null(marks_of(*(xph_scan_args *)given));
}

/* With few lanes a channel and with many. */
static void marks_of_many_channels(void **state)
{
    for (int64_t states = 7; states <= 63; states = 2 * states + 1) {
        const scan_shape s = {32, 17, 521, states, 0, true, true, true, 4};
        double *result[KT_MOST];
        case_seed((uint64_t)states);
        scan_layer l = scan_layer_make(&s);
        kt_case c = scan_case(&l);
        device_case d = on_device(&c, XPH_F32, l.rows);
        c.prepare = leave_marks;
        device_run(&d, result);
        case_release();
    }
}

static void prepare_marks(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_scan_grad_args *g = given;
    assert_true(summed.runs < RUNS_MOST);
    summed.width = g->fwd.width;
    g->fwd.marks = marks_of(g->fwd);
    g->fwd.marked = 1;
    if (g->fwd.z) g->dz_sum = numbered(summed.width);
    g->ddt_sum = numbered(summed.width);
    summed.dz[summed.runs] = g->dz_sum;
    summed.ddt[summed.runs++] = g->ddt_sum;
}

static void check_sums(const scan_layer *l, const float *sum, const double *of, double tolerance)
{
    const int64_t width = l->s.width;
    float *before = numbered(width);
    double *got = case_zeros(width), *want = case_zeros(width);
    for (int64_t d = 0; d < width; d++) {
        got[d] = (double)sum[d];
        want[d] = (double)before[d];
        for (int64_t r = 0; of && r < l->rows; r++) want[d] += of[r * width + d];
    }
    case_close("sums of columns", got, want, width, tolerance);
}

/* As without them to the bit, and within tolerance of the CPU's, under all schedules. */
static void gradient_with_marks(const scan_shape *s, xph_type type)
{
    double *with[KT_MOST], *without[KT_MOST];
    scan_layer l = scan_layer_make(s);
    kt_case c = scan_gradient_case(&l);
    device_case d = device_case_of(&c, xph_cuda_scan_grad, type);
    d.reset_at = offsetof(xph_scan_grad_args, fwd.reset);
    d.rows = l.rows;
    device_run(&d, without);
    c.prepare = prepare_marks;
    summed.runs = 0;
    device_run(&d, with);
    for (int i = 0; i < c.count; i++)
        if (with[i])
            case_same(c.tensors[i].name, with[i], without[i], c.tensors[i].rows * c.tensors[i].width);
    if (l.z) check_sums(&l, summed.dz[0], with[SCAN_DZ], d.tolerance);
    check_sums(&l, summed.ddt[0], l.bias ? NULL : with[SCAN_DDT], d.tolerance);
    device_check(&d);
    for (int k = 1; k < summed.runs; k++) {
        if (l.z) assert_memory_equal(summed.dz[k], summed.dz[0], (size_t)s->width * sizeof(float));
        assert_memory_equal(summed.ddt[k], summed.ddt[0], (size_t)s->width * sizeof(float));
    }
    case_release();
}

static void marks_and_sums(void **state)
{
    const scan_shape some[] = {
        {2, 5, 3, 4, 1, true, true, true, 3},     {1, 8, 20, 16, 0, true, true, true, 0},
        {1, 37, 40, 16, 0, true, true, true, 9},  {2, 17, 133, 8, 3, false, true, true, 2},
        {1, 61, 100, 16, 4, true, true, true, 0}, {1, 33, 9, 32, 3, true, false, true, 1},
        {2, 9, 37, 64, 1, true, true, true, 5},   {1, 16, 130, 31, 0, true, true, false, 7},
        {1, 24, 65, 12, 0, true, true, true, 0},  {2, 40, 64, 16, 0, false, false, true, 13},
    };
    for (size_t i = 0; i < DEVICE_TYPES * sizeof some / sizeof *some; i++) {
        case_seed(90 + i / DEVICE_TYPES);
        gradient_with_marks(&some[i / DEVICE_TYPES], device_types[i % DEVICE_TYPES]);
    }
}

/* What is bad stays bad until a reset, and nothing overflows. */
static void bad_numbers(void **state)
{
    const scan_shape s = {1, 12, 20, 4, 0, false, true, true, 0};
    double *result[KT_MOST];
    case_seed(9);
    scan_layer l = scan_layer_make(&s);
    l.reset = case_alloc((size_t)s.time);
    for (int64_t t = 0; t < s.time; t++) l.reset[t] = t == 7;
    l.x[2 * s.width + 5] = NAN;
    l.dt[3 * s.width + 6] = INFINITY;
    for (int64_t t = 0; t < s.time; t++) {
        l.dt[t * s.width + 3] = 1e4;
        l.z[t * s.width + 3] = -1e4;
        l.dt[t * s.width + 4] = -1e4;
    }
    for (int64_t n = 0; n < s.states; n++) l.a_log[3 * s.states + n] = 20;
    kt_case c = scan_case(&l);
    device_case d = on_device(&c, XPH_F32, l.rows);
    device_run(&d, result);
    for (int64_t i = 0; i < s.time * s.width; i++) {
        int64_t t = i / s.width, channel = i % s.width;
        bool bad = (channel == 5 && t >= 2 && t < 7) || (channel == 6 && t >= 3 && t < 7);
        if (isfinite(result[SCAN_Y][i]) == bad) fail_msg("frame %d channel %d", (int)t, (int)channel);
    }
    case_release();
}

static void too_many_states_are_not_accepted(void **state)
{
    const xph_scan_grad_args args = {.fwd = {.batch = 1, .time = 1, .width = 1, .states = 65}};
    const xph_scan_grad_args wide = {
        .fwd = {.type = XPH_F64, .batch = 1, .time = 1, .width = 1, .states = 16}};
    for (const xph_cuda_candidate *k = xph_cuda_scan; k->name; k++) {
        assert_false(k->accepts(&args.fwd));
        assert_false(k->accepts(&wide.fwd));
    }
    assert_false(xph_cuda_scan_grad->accepts(&args));
    assert_false(xph_cuda_scan_grad->accepts(&wide));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward),
                                       cmocka_unit_test(many_channels),
                                       cmocka_unit_test(frames_have_the_bits_of_a_chunk),
                                       cmocka_unit_test(prepared_rates_give_the_same_bits),
                                       cmocka_unit_test(a_frame_makes_its_own_steps),
                                       cmocka_unit_test(other_products_are_not_made),
                                       cmocka_unit_test(gradient),
                                       cmocka_unit_test(gradients_over_many),
                                       cmocka_unit_test(fixed_rates),
                                       cmocka_unit_test(marks_of_many_channels),
                                       cmocka_unit_test(marks_and_sums),
                                       cmocka_unit_test(bad_numbers),
                                       cmocka_unit_test(too_many_states_are_not_accepted)};
    return cmocka_run_group_tests_name("cuda_scan", tests, NULL, NULL);
}
