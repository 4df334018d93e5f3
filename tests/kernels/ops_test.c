/* exphil/ops.h: every operation gives the bits of the kernel that sessions and trainers run, whatever the strides of the arrays,
 * the instruction set and the number of threads; gradients are those of finite differences. */
#include "ops_case.h"

#include "kernel_test.h"
#include "model_case.h"

#include "model/net_plan.h"

#include <math.h>
#include <stdio.h>

static const ops_shape shapes[] = {
    {2, 5, 8, 4, 3, 0},  {3, 7, 19, 5, 0, 1},  {1, 1, 16, 16, 0, 0}, {1, 9, 33, 3, 4, 1},
    {4, 1, 5, 16, 2, 0}, {2, 1, 20, 16, 0, 1}, {2, 20, 64, 4, 6, 0}, {5, 3, 1, 1, 0, 0},
};
#define SHAPES ((int)(sizeof shapes / sizeof shapes[0]))

static bool has_backward(int32_t op)
{
    return op != EXPHIL_OP_ADAMW;
}

static void run(exphil_ops *ops, ops_run *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (ops_run_do(ops, r, &error) < 0) fail_msg("%s", error.message);
}

static void same_as(const ops_run *r, double *const wanted[OPS_MOST], int layout)
{
    char what[96];
    for (int i = 0; i < r->c->count; i++) {
        if (!ops_is_out(r, i)) continue;
        snprintf(what, sizeof what, "%s of %s, layout %d", r->c->array[i].name, exphil_op_name(r->op),
                 layout);
        case_same(what, ops_run_result(r, i), wanted[i], ops_elements(&r->c->array[i]));
    }
}

/* ---- bits ------------------------------------------------------------------------------------------------ */

static exphil_context *context_of(const char *isa, int32_t threads)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    config.cpu_isa = isa;
    config.threads = threads;
    assert_int_equal(exphil_context_create(&config, &context, NULL), EXPHIL_OK);
    return context;
}

static void check_layouts(exphil_context *context, exphil_ops *ops, ops_case *c, int32_t type)
{
    void *saved = has_backward(c->op) ? ops_forward_of(ops, c, type) : NULL;
    for (int backward = 0; backward <= has_backward(c->op); backward++) {
        double *wanted[OPS_MOST];
        ops_direct(context, c, backward, type, backward ? saved : NULL, wanted);
        for (int layout = 0; layout < OPS_LAYOUTS; layout++) {
            ops_run *r = ops_run_make(ops, c, backward, type, layout, backward ? saved : NULL);
            run(ops, r);
            same_as(r, wanted, layout);
        }
    }
}

static void check_context(exphil_context *context, int32_t threads, int shape_count)
{
    exphil_ops *ops = ops_make(context, threads);
    for (int i = 0; i < 7; i++)
        for (int s = 0; s < shape_count; s++)
            for (int32_t type = EXPHIL_OPS_F32; type <= EXPHIL_OPS_F64; type++) {
                case_guard_front(s % 2);
                case_seed((uint64_t)(100 * i + s));
                check_layouts(context, ops, ops_case_make(ops_forward[i], &shapes[s]), type);
                case_release();
            }
    exphil_ops_destroy(ops);
}

static void the_bits_are_those_of_the_kernels(void **state)
{
    for (xph_isa isa = XPH_ISA_REF; isa < XPH_ISA_COUNT; isa++) {
        if (!xph_cpu_has(isa)) continue;
        exphil_context *context = context_of(xph_isa_name(isa), isa % 2 ? 3 : 1);
        /* sets of products alone differ in nothing here but LSTM and GRU */
        const bool products = isa == XPH_ISA_AVX2_VNNI || isa == XPH_ISA_AVX512_VNNI ||
                              isa == XPH_ISA_AVX512_BF16 || isa == XPH_ISA_NEON_DOT;
        check_context(context, isa == XPH_ISA_AVX2_VNNI, products ? 2 : SHAPES);
        exphil_context_destroy(context);
    }
}

/* What one instruction set gives, all give. */
static void the_bits_are_the_same_in_all_sets(void **state)
{
    for (int i = 0; i < 7; i++) {
        double *wanted[OPS_MOST] = {NULL};
        case_seed(7);
        ops_case *c = ops_case_make(ops_forward[i], &shapes[1]);
        for (xph_isa isa = XPH_ISA_REF; isa < XPH_ISA_COUNT; isa++) {
            if (!xph_cpu_has(isa)) continue;
            exphil_context *context = context_of(xph_isa_name(isa), 2);
            exphil_ops *ops = ops_make(context, 0);
            ops_run *r = ops_run_make(ops, c, false, EXPHIL_OPS_F32, OPS_DENSE, NULL);
            run(ops, r);
            if (isa != XPH_ISA_REF) same_as(r, wanted, OPS_DENSE);
            for (int k = 0; k < c->count; k++)
                if (ops_is_out(r, k)) wanted[k] = ops_run_result(r, k);
            exphil_ops_destroy(ops);
            exphil_context_destroy(context);
        }
        case_release();
    }
}

/* A chunk that is large enough to be cut among threads, copied by them too. */
static void threads_do_not_change_bits(void **state)
{
    const ops_shape large = {8, 40, 160, 4, 9, 0};
    for (int i = 0; i < 7; i++) {
        double *wanted[OPS_MOST] = {NULL};
        case_seed(3);
        ops_case *c = ops_case_make(ops_forward[i], &large);
        for (int32_t threads = 1; threads <= 4; threads++) {
            exphil_context *context = context_of(NULL, threads);
            exphil_ops *ops = ops_make(context, 0);
            ops_run *r = ops_run_make(ops, c, false, EXPHIL_OPS_F32,
                                      threads == 1 ? OPS_DENSE : OPS_COLUMNS_APART, NULL);
            run(ops, r);
            if (threads > 1) same_as(r, wanted, (int)threads);
            for (int k = 0; k < c->count; k++)
                if (ops_is_out(r, k)) wanted[k] = ops_run_result(r, k);
            exphil_ops_destroy(ops);
            exphil_context_destroy(context);
        }
        case_release();
    }
}

/* ---- gradients ------------------------------------------------------------------------------------------- */

/* The array whose gradient is named so. */
static int array_of(const ops_case *c, const char *gradient)
{
    for (int i = 0; i < c->count; i++) {
        if (strcmp(c->array[i].name, gradient + 1) == 0) return i;
        if (strcmp(gradient, "da") == 0 && strcmp(c->array[i].name, "a_log") == 0) return i;
    }
    return -1;
}

static bool is_gradient(const ops_case *c, int i, uint32_t role)
{
    return c->array[i].role & role && c->array[i].name[0] == 'd' && array_of(c, c->array[i].name) >= 0 &&
           strcmp(c->array[i].name, "delta") != 0 && strcmp(c->array[i].name, "delta_bias") != 0;
}

/* Sum of what goes out times the gradients of it; of dense doubles. */
static double objective(exphil_ops *ops, ops_run *r)
{
    double sum = 0.0;
    run(ops, r);
    for (int i = 0; i < r->c->count; i++) {
        if (!is_gradient(r->c, i, OPS_BACKWARD_IN)) continue;
        const int out = array_of(r->c, r->c->array[i].name);
        if (!(r->c->array[out].role & OPS_FORWARD_OUT)) continue;
        sum += case_dot((const double *)(const void *)r->laid[out].data, r->c->array[i].x,
                        ops_elements(&r->c->array[i]));
    }
    return sum;
}

/* Central differences by every number that goes in, against the gradients of a backward run. */
static void check_differences(exphil_ops *ops, const ops_case *c, const ops_run *backward)
{
    const double step = 1e-5;
    ops_run *r = ops_run_make(ops, c, false, EXPHIL_OPS_F64, OPS_DENSE, NULL);
    for (int i = 0; i < c->count; i++) {
        if (!is_gradient(c, i, OPS_BACKWARD_OUT)) continue;
        const int in = array_of(c, c->array[i].name);
        const int64_t count = ops_elements(&c->array[i]);
        double *wanted = case_zeros(count), *at = (double *)(void *)r->laid[in].data;
        for (int64_t k = 0; k < count; k++) {
            const double x = at[k];
            at[k] = x + step;
            wanted[k] = objective(ops, r);
            at[k] = x - step;
            wanted[k] = (wanted[k] - objective(ops, r)) / (2.0 * step);
            at[k] = x;
        }
        case_close(c->array[i].name, ops_run_result(backward, i), wanted, count, 1e-7);
    }
}

static void gradients_are_those_of_differences(void **state)
{
    const ops_shape small[] = {{2, 4, 5, 3, 3, 0}, {1, 3, 4, 2, 0, 1}};
    exphil_context *context = context_of(NULL, 1);
    exphil_ops *ops = ops_make(context, 0);
    for (int i = 0; i < 6; i++)
        for (int s = 0; s < 2; s++) {
            case_seed((uint64_t)(10 * i + s));
            ops_case *c = ops_case_make(ops_forward[i], &small[s]);
            void *saved = ops_forward_of(ops, c, EXPHIL_OPS_F64);
            ops_run *r = ops_run_make(ops, c, true, EXPHIL_OPS_F64, OPS_TIME_FIRST, saved);
            run(ops, r);
            check_differences(ops, c, r);
            case_release();
        }
    exphil_ops_destroy(ops);
    exphil_context_destroy(context);
}

static double norm_of(const double *x, int64_t count)
{
    return sqrt(case_dot(x, x, count));
}

static void gradients_of_floats_are_those_of_doubles(void **state)
{
    const ops_shape middle[] = {{2, 30, 24, 8, 7, 0}, {3, 12, 17, 5, 0, 1}};
    exphil_context *context = context_of(NULL, 1);
    exphil_ops *ops = ops_make(context, 0);
    for (int i = 0; i < 12; i++) {
        double *wanted[OPS_MOST] = {NULL};
        ops_case *c[2];
        for (int k = 0; k < 2; k++) {
            const int32_t type = k ? EXPHIL_OPS_F32 : EXPHIL_OPS_F64;
            case_seed((uint64_t)i);
            c[k] = ops_case_make(ops_forward[i / 2], &middle[i % 2]);
            void *saved = ops_forward_of(ops, c[k], type);
            ops_run *r = ops_run_make(ops, c[k], true, type, OPS_DENSE, saved);
            run(ops, r);
            for (int a = 0; a < c[k]->count; a++) {
                if (!ops_is_out(r, a)) continue;
                const int64_t count = ops_elements(&c[k]->array[a]);
                double *x = ops_run_result(r, a);
                if (!k) wanted[a] = x;
                for (int64_t n = 0; n < count; n++) x[n] -= k ? wanted[a][n] : 0.0;
                if (k && norm_of(x, count) > 1e-6 * norm_of(wanted[a], count))
                    fail_msg("%s of %s: %g of %g", c[k]->array[a].name, exphil_op_name(c[k]->op + 1),
                             norm_of(x, count), norm_of(wanted[a], count));
            }
        }
        case_release();
    }
    exphil_ops_destroy(ops);
    exphil_context_destroy(context);
}

/* ---- a given A ------------------------------------------------------------------------------------------- */

/* A and the logarithm of -A are one: in floats, frame by frame and in chunks, what the logarithm gives in double; and the
 * gradient of the one is that of the other times A. */
static void a_given_rate_is_that_of_its_logarithm(void **state)
{
    const ops_shape some[] = {{2, 1, 20, 16, 0, 1}, {2, 9, 33, 5, 4, 1}, {3, 1, 7, 3, 0, 1}};
    exphil_context *context = context_of(NULL, 1);
    exphil_ops *ops = ops_make(context, 0);
    for (int s = 0; s < 3; s++)
        for (int backward = 0; backward <= 1; backward++) {
            case_seed((uint64_t)s);
            ops_case *given = ops_case_make(EXPHIL_OP_SCAN, &some[s]);
            ops_shape same = some[s];
            same.flag = 0;
            ops_case *logarithm = ops_case_make(EXPHIL_OP_SCAN, &same);
            ((exphil_scan_args *)(void *)logarithm->args)->delta_plain = 1;
            const double *rates = ops_find(given, "a")->x;
            for (int i = 0; i < given->count; i++) logarithm->array[i].x = given->array[i].x;
            ops_array *logs = ops_find(logarithm, "a_log");
            logs->x = kt_copy(rates, ops_elements(logs));
            for (int64_t k = 0; k < ops_elements(logs); k++) logs->x[k] = log(-rates[k]);
            ops_run *r = ops_run_make(ops, given, backward, EXPHIL_OPS_F32, OPS_DENSE, NULL);
            ops_run *wanted = ops_run_make(ops, logarithm, backward, EXPHIL_OPS_F64, OPS_DENSE, NULL);
            run(ops, r);
            run(ops, wanted);
            for (int i = 0; i < given->count; i++) {
                if (!ops_is_out(r, i)) continue;
                double *x = ops_run_result(r, i);
                const bool of_rates = strcmp(given->array[i].name, "da") == 0;
                for (int64_t k = 0; of_rates && k < ops_elements(logs); k++) x[k] *= rates[k];
                case_close(given->array[i].name, x, ops_run_result(wanted, i), ops_elements(&given->array[i]),
                           1e-5);
            }
            case_release();
        }
    exphil_ops_destroy(ops);
    exphil_context_destroy(context);
}

/* ---- arrays that are not there --------------------------------------------------------------------------- */

/* Names of an operation that may be left out together, forward and backward. */
static const struct missing {
    int32_t op;
    const char *names[8];
} missing[] = {
    {EXPHIL_OP_SCAN, {"delta_bias", "ddelta_bias", "skip", "dskip"}},
    {EXPHIL_OP_SCAN, {"z", "dz", "reset"}},
    {EXPHIL_OP_SCAN, {"state_in", "dstate_in", "dstate_out", "state_out"}},
    {EXPHIL_OP_ATTENTION, {"bias", "reset"}},
    {EXPHIL_OP_ATTENTION, {"state_in", "state_out"}},
    {EXPHIL_OP_LSTM, {"bias", "h_in", "dh_in", "c_in", "dc_in"}},
    {EXPHIL_OP_LSTM, {"c_in", "dc_in", "dh_out", "c_out", "reset"}},
    {EXPHIL_OP_GRU, {"bias", "h_in", "dh_in", "h_out", "dh_out"}},
    {EXPHIL_OP_CONV, {"bias", "reset"}},
    {EXPHIL_OP_CONV, {"state_in", "dstate_in", "dstate_out"}},
    {EXPHIL_OP_ADAMW, {"average"}},
};

static void what_is_missing_is_zeros(void **state)
{
    exphil_context *context = context_of(NULL, 1);
    exphil_ops *ops = ops_make(context, 0);
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++)
        for (int s = 0; s < 4; s++) {
            case_seed((uint64_t)(s + 4));
            ops_case *c = ops_case_make(missing[i].op, &shapes[s]);
            for (int k = 0; missing[i].names[k]; k++) ops_leave_out(c, missing[i].names[k]);
            check_layouts(context, ops, c, s % 2);
            case_release();
        }
    exphil_ops_destroy(ops);
    exphil_context_destroy(context);
}

/* Every gradient alone: the others are thrown away, and it has the same bits. */
static void gradients_may_be_had_alone(void **state)
{
    exphil_context *context = context_of(NULL, 1);
    exphil_ops *ops = ops_make(context, 0);
    for (int i = 0; i < 6; i++) {
        double *wanted[OPS_MOST];
        case_seed((uint64_t)i);
        ops_case *c = ops_case_make(ops_forward[i], &shapes[1]);
        void *saved = ops_forward_of(ops, c, EXPHIL_OPS_F32);
        ops_direct(context, c, true, EXPHIL_OPS_F32, saved, wanted);
        for (int a = 0; a < c->count; a++) {
            if (!(c->array[a].role & OPS_BACKWARD_OUT)) continue;
            for (int k = 0; k < c->count; k++)
                c->array[k].left_out = c->array[k].role & OPS_BACKWARD_OUT && k != a;
            ops_run *r = ops_run_make(ops, c, true, EXPHIL_OPS_F32, OPS_PADDED, saved);
            run(ops, r);
            same_as(r, wanted, OPS_PADDED);
        }
        case_release();
    }
    exphil_ops_destroy(ops);
    exphil_context_destroy(context);
}

/* ---- without frames -------------------------------------------------------------------------------------- */

/* States leave as they came, gradients of weights are zero; all else has no elements. */
static void check_empty(const ops_run *r)
{
    for (int i = 0; i < r->c->count; i++) {
        if (!ops_is_out(r, i)) continue;
        const ops_array *a = &r->c->array[i];
        double *x = ops_run_result(r, i), *wanted = case_zeros(ops_elements(a));
        const char *to[] = {"state_out", "h_out", "c_out", "dstate_in", "dh_in", "dc_in"};
        const char *from[] = {"state_in", "h_in", "c_in", "dstate_out", "dh_out", "dc_out"};
        for (int k = 0; k < 6; k++)
            for (int n = 0; strcmp(a->name, to[k]) == 0 && n < r->c->count; n++)
                if (strcmp(r->c->array[n].name, from[k]) == 0 && !r->c->array[n].left_out)
                    wanted = r->c->array[n].x;
        case_same(a->name, x, wanted, ops_elements(a));
    }
}

static void without_frames_states_stay(void **state)
{
    const ops_shape empty[] = {{2, 0, 8, 4, 0, 0}, {0, 5, 8, 4, 0, 0}, {0, 0, 3, 2, 0, 0}};
    exphil_context *context = context_of(NULL, 2);
    exphil_ops *ops = ops_make(context, 0);
    for (int i = 0; i < 36; i++) {
        case_seed((uint64_t)i);
        ops_case *c = ops_case_make(ops_forward[i / 6], &empty[i % 3]);
        if (i / 6 == 2 && i % 2)
            ops_leave_out(c, "c_in"), ops_leave_out(c, "dc_in"), ops_leave_out(c, "dc_out");
        for (int backward = 0; backward <= 1; backward++)
            for (int layout = 0; layout < OPS_LAYOUTS; layout++) {
                ops_run *r = ops_run_make(ops, c, backward, i % 2, layout, NULL);
                run(ops, r);
                check_empty(r);
            }
        case_release();
    }
    exphil_ops_destroy(ops);
    exphil_context_destroy(context);
}

/* ---- in place -------------------------------------------------------------------------------------------- */

static void a_state_may_go_out_where_it_came_in(void **state)
{
    static const char *const names[][2] = {{"state_in", "state_out"}, {"h_in", "h_out"}, {"c_in", "c_out"}};
    exphil_context *context = context_of(NULL, 1);
    exphil_ops *ops = ops_make(context, 0);
    for (int i = 0; i < 6; i++)
        for (int layout = 0; layout < OPS_LAYOUTS && ops_forward[i] != EXPHIL_OP_NORM; layout++) {
            double *wanted[OPS_MOST];
            case_seed((uint64_t)i);
            ops_case *c = ops_case_make(ops_forward[i], &shapes[0]);
            ops_direct(context, c, false, EXPHIL_OPS_F32, NULL, wanted);
            ops_run *r = ops_run_make(ops, c, false, EXPHIL_OPS_F32, layout, NULL);
            for (int n = 0; n < 3; n++)
                for (int a = 0; a < c->count * c->count; a++) {
                    const int in = a / c->count, out = a % c->count;
                    if (strcmp(c->array[in].name, names[n][0]) || strcmp(c->array[out].name, names[n][1]))
                        continue;
                    memcpy(r->args + c->array[out].at, r->args + c->array[in].at, sizeof(exphil_input));
                    r->laid[out] = r->laid[in];
                }
            run(ops, r);
            same_as(r, wanted, layout);
            case_release();
        }
    exphil_ops_destroy(ops);
    exphil_context_destroy(context);
}

/* ---- side by side ---------------------------------------------------------------------------------------- */

/* Three inputs or outputs that begin side by side, rows `distance` apart, the last one's `more`. */
static void lay_beside(ops_run *r, float *memory, const char *const names[3], int64_t distance, int64_t more)
{
    int64_t column = 0;
    for (int n = 0; n < 3; n++)
        for (int i = 0; i < r->c->count; i++) {
            const ops_array *a = &r->c->array[i];
            if (strcmp(a->name, names[n]) != 0) continue;
            const int64_t frame = distance + (n == 2 ? more : 0), batch = frame * a->count[1];
            const exphil_input given = {memory + column, batch, frame, 1};
            for (int64_t k = 0; ops_is_in(r, i) && k < ops_elements(a); k++)
                memory[column + k / a->count[2] * frame + k % a->count[2]] = (float)a->x[k];
            r->laid[i] = (ops_laid){(unsigned char *)given.data, 0, {batch, frame, 1}};
            memcpy(r->args + a->at, &given, sizeof given);
            column += a->count[2];
        }
}

/* What a kernel wants side by side is used where it is only if all of it lies as one matrix. */
static void arrays_side_by_side_are_one(void **state)
{
    static const char *const in[] = {"q", "k", "v"}, *const out[] = {"dq", "dk", "dv"};
    exphil_context *context = context_of(NULL, 1);
    exphil_ops *ops = ops_make(context, 0);
    for (int i = 0; i < 8; i++) {
        const bool backward = i / 4;
        const int64_t span = 16, distance = 3 * span + i % 4 * span, more = i % 4 == 3 ? distance : 0;
        double *wanted[OPS_MOST];
        case_seed((uint64_t)i);
        ops_case *c = ops_case_make(EXPHIL_OP_ATTENTION, &shapes[0]);
        void *saved = ops_forward_of(ops, c, EXPHIL_OPS_F32);
        ops_direct(context, c, backward, EXPHIL_OPS_F32, saved, wanted);
        ops_run *r = ops_run_make(ops, c, backward, EXPHIL_OPS_F32, OPS_DENSE, saved);
        exphil_op_info info = EXPHIL_OP_INFO_INIT;
        lay_beside(r, case_alloc(1 << 16), in, distance, more);
        if (backward) lay_beside(r, case_alloc(1 << 16), out, distance, 0);
        assert_int_equal(exphil_ops_query(ops, r->args, &info, NULL), EXPHIL_OK);
        assert_int_equal(info.copies, more ? 3 : 0);
        run(ops, r);
        same_as(r, wanted, i);
        case_release();
    }
    exphil_ops_destroy(ops);
    exphil_context_destroy(context);
}

/* ---- arrays of a trainer --------------------------------------------------------------------------------- */

static exphil_input rows_at(const void *data, int64_t ld)
{
    return (exphil_input){.data = data, .frame_stride = ld};
}

/* Runs into fresh memory and compares with what the net has there. */
static void check_rows(exphil_ops *ops, const void *args, float *fresh, int64_t rows, int64_t width,
                       const void *have, int64_t ld)
{
    exphil_op_info info = EXPHIL_OP_INFO_INIT;
    assert_int_equal(exphil_ops_query(ops, args, &info, NULL), EXPHIL_OK);
    void *workspace = case_alloc(info.workspace_bytes);
    assert_int_equal(exphil_ops_run(ops, args, workspace, info.workspace_bytes, NULL, NULL), EXPHIL_OK);
    for (int64_t r = 0; r < rows; r++)
        assert_memory_equal(fresh + r * width, (const float *)have + r * ld, (size_t)width * sizeof *fresh);
}

static bool check_conv(exphil_ops *ops, const xph_conv_args *a)
{
    exphil_conv_args args = EXPHIL_CONV_ARGS_INIT;
    float *y = case_alloc((size_t)(a->batch * a->time * a->width) * sizeof *y);
    args.batch = a->batch, args.frames = a->time, args.width = a->width, args.taps = a->taps;
    args.x = rows_at(a->x, a->ldx), args.weight.data = a->w, args.bias.data = a->bias,
    args.reset.data = a->reset;
    args.y.data = y;
    check_rows(ops, &args, y, a->batch * a->time, a->width, a->y, a->ldy);
    return true;
}

static bool check_scan(exphil_ops *ops, const xph_scan_args *a)
{
    exphil_scan_args args = EXPHIL_SCAN_ARGS_INIT;
    float *y = case_alloc((size_t)(a->batch * a->time * a->width) * sizeof *y);
    args.batch = a->batch, args.frames = a->time, args.width = a->width, args.states = a->states;
    args.u = rows_at(a->x, a->ldx), args.delta = rows_at(a->dt, a->lddt), args.a_log.data = a->a_log;
    args.b = rows_at(a->b, a->ldb), args.c = rows_at(a->c, a->ldc), args.skip.data = a->skip;
    args.z = rows_at(a->z, a->ldz), args.reset.data = a->reset, args.y.data = y;
    check_rows(ops, &args, y, a->batch * a->time, a->width, a->y, a->ldy);
    return true;
}

static bool check_attention(exphil_ops *ops, const xph_attention_args *a)
{
    exphil_attention_args args = EXPHIL_ATTENTION_ARGS_INIT;
    const int64_t span = a->heads * a->dim;
    float *y = case_alloc((size_t)(a->batch * a->time * span) * sizeof *y);
    const float *qkv = a->qkv;
    args.batch = a->batch, args.frames = a->time, args.heads = a->heads, args.dim = a->dim,
    args.window = a->window;
    args.q = rows_at(qkv, a->ldqkv), args.k = rows_at(qkv + span, a->ldqkv),
    args.v = rows_at(qkv + 2 * span, a->ldqkv);
    args.bias.data = a->bias, args.reset.data = a->reset, args.y.data = y;
    exphil_op_info info = EXPHIL_OP_INFO_INIT;
    assert_int_equal(exphil_ops_query(ops, &args, &info, NULL), EXPHIL_OK);
    assert_int_equal(info.copies, 0);
    check_rows(ops, &args, y, a->batch * a->time, span, a->y, a->ldy);
    return true;
}

static bool check_rnn(exphil_ops *ops, const xph_rnn_args *a)
{
    exphil_rnn_args args = EXPHIL_RNN_ARGS_INIT;
    float *y = case_alloc((size_t)(a->batch * a->time * a->hidden) * sizeof *y);
    args.op = a->kind == XPH_RNN_LSTM ? EXPHIL_OP_LSTM : EXPHIL_OP_GRU;
    args.batch = a->batch, args.frames = a->time, args.hidden = a->hidden,
    args.gates = rows_at(a->gx, a->ldgx);
    args.weight.data = a->w, args.bias.data = a->bias, args.reset.data = a->reset, args.y.data = y;
    check_rows(ops, &args, y, a->batch * a->time, a->hidden, a->y, a->ldy);
    return true;
}

static bool check_norm(exphil_ops *ops, const xph_norm_args *a)
{
    exphil_norm_args args = EXPHIL_NORM_ARGS_INIT;
    float *y = case_alloc((size_t)(a->rows * a->width) * sizeof *y);
    args.batch = 1, args.frames = a->rows, args.width = a->width, args.silu = a->act,
    args.x = rows_at(a->x, a->ldx);
    args.gain.data = a->gain, args.shift.data = a->shift, args.y.data = y, args.epsilon = a->epsilon;
    check_rows(ops, &args, y, a->rows, a->width, a->y, a->ldy);
    return true;
}

static bool check_step(exphil_ops *ops, const xph_step *step)
{
    switch (step->op) {
    case XPH_OP_CONV:
        return check_conv(ops, &step->args.conv);
    case XPH_OP_SCAN:
        return check_scan(ops, &step->args.scan);
    case XPH_OP_ATTENTION:
        return check_attention(ops, &step->args.attention);
    case XPH_OP_RNN:
        return check_rnn(ops, &step->args.rnn);
    case XPH_OP_NORM:
        return check_norm(ops, &step->args.norm);
    default:
        return false;
    }
}

/* The net of a trainer with one block. Its steps run once more, one by one: what each has computed is asked of the
 * operations again, before a later step takes the memory. */
static void check_block(exphil_context *context, exphil_ops *ops, const char *block)
{
    exphil_model_config config = model_case_config(block, EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(context, &config);
    model_case *c = model_case_make(model, 2, 9, 4, 0.3, 5);
    xph_net *net = NULL;
    int64_t found = 0;
    assert_int_equal(xph_net_create(model, c->batch, c->time, XPH_NET_TRAIN, &net, NULL), EXPHIL_OK);
    assert_int_equal(xph_net_pack(net, c->weights, c->packed), EXPHIL_OK);
    xph_net_io io = model_case_io(c, NULL, NULL);
    assert_int_equal(xph_net_forward(net, c->weights, c->packed, &io), EXPHIL_OK);
    for (const xph_step *step = net->blocks.first; step; step = step->next) {
        assert_int_equal(net->backend->run(net->stream, step->chosen.kernel, &step->args), EXPHIL_OK);
        found += check_step(ops, step);
    }
    assert_true(found >= 2);
    xph_net_destroy(net);
    model_case_free(c);
    exphil_model_destroy(model);
    case_release();
}

static void a_trainers_arrays_give_a_trainers_bits(void **state)
{
    static const char *const blocks[] = {"mamba", "lstm", "gru", "attention", "ffn"};
    exphil_context *context = context_of(NULL, 2);
    exphil_ops *ops = ops_make(context, 0);
    for (int i = 0; i < 5; i++) check_block(context, ops, blocks[i]);
    exphil_ops_destroy(ops);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_are_those_of_the_kernels),
        cmocka_unit_test(the_bits_are_the_same_in_all_sets),
        cmocka_unit_test(threads_do_not_change_bits),
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(gradients_of_floats_are_those_of_doubles),
        cmocka_unit_test(a_given_rate_is_that_of_its_logarithm),
        cmocka_unit_test(what_is_missing_is_zeros),
        cmocka_unit_test(gradients_may_be_had_alone),
        cmocka_unit_test(without_frames_states_stay),
        cmocka_unit_test(a_state_may_go_out_where_it_came_in),
        cmocka_unit_test(arrays_side_by_side_are_one),
        cmocka_unit_test(a_trainers_arrays_give_a_trainers_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
