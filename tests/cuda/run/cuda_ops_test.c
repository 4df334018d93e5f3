/* exphil/ops.h on the emulated GPU: every operation on device memory and on a stream of the caller's, against the CPU in double.
 * A run is work of that stream alone: it waits for nothing, allocates nothing, and never touches the null stream. */
#include "emulated.h"
#include "ops_case.h"

#include "device/device.h"

#include <math.h>

enum { RUNS = 13 };

/* With what a stream of the plugin begins (cuda/device.h). */
typedef struct plugin_stream {
    xph_stream base;
    void *native;
} plugin_stream;

/* ---- arrays on the device -------------------------------------------------------------------------------- */

typedef struct bench {
    exphil_context *context, *host;
    exphil_ops *ops, *host_ops;
    xph_device *device;
    xph_stream *own; /* lends its cudaStream_t: to us it is the caller's */
} bench;

static bench bench_make(void)
{
    bench b = {.context = emulated_context(), .host = test_context(NULL, NULL, 1)};
    b.ops = ops_make(b.context, 0);
    b.host_ops = ops_make(b.host, 0);
    b.device = xph_context_backend(b.context);
    assert_int_equal(b.device->backend->stream_create(b.device, 0, &b.own), EXPHIL_OK);
    return b;
}

static void bench_end(const bench *b)
{
    b->device->backend->stream_destroy(b->own);
    exphil_ops_destroy(b->ops);
    exphil_ops_destroy(b->host_ops);
    exphil_context_destroy(b->context);
    exphil_context_destroy(b->host);
    case_release();
    emulated_clean();
}

static void *to_device(const bench *b, const void *from, size_t bytes)
{
    void *to = NULL;
    if (!bytes) return NULL;
    assert_int_equal(b->device->backend->alloc(b->device, bytes, &to), EXPHIL_OK);
    assert_int_equal(b->device->backend->upload(b->own, to, from, bytes), EXPHIL_OK);
    return to;
}

/* Bytes so far behind the start of memory. */
typedef struct piece {
    char *memory, *at;
    size_t bytes;
} piece;

static piece piece_of(const bench *b, const void *from, size_t bytes, size_t behind)
{
    piece p = {.bytes = bytes};
    if (!bytes) return p;
    unsigned char *all = case_alloc(behind + bytes);
    memset(all, 0, behind);
    memcpy(all + behind, from, bytes);
    p.memory = to_device(b, all, behind + bytes);
    p.at = p.memory + behind;
    return p;
}

typedef struct moved {
    ops_run *r;
    piece array[OPS_MOST], saved, workspace;
} moved;

/* odd: addresses are multiples of an element's size and of nothing more, that of the workspace of one byte. */
static moved move_there(const bench *b, ops_run *r, bool odd)
{
    moved m = {.r = r};
    for (int i = 0; i < r->c->count; i++) {
        if (!ops_is_in(r, i) && !ops_is_out(r, i)) continue;
        m.array[i] =
            piece_of(b, r->laid[i].data, r->laid[i].bytes, odd ? sizeof(float) * (size_t)case_below(4) : 0);
        memcpy(r->args + r->c->array[i].at, &m.array[i].at, sizeof m.array[i].at);
    }
    m.saved = piece_of(b, r->saved, r->saved_bytes, odd ? sizeof(float) * (size_t)case_below(4) : 0);
    m.workspace = piece_of(b, r->workspace, r->workspace_bytes, odd ? (size_t)case_below(20) : 0);
    if (r->c->saved_at) memcpy(r->args + r->c->saved_at, &m.saved.at, sizeof m.saved.at);
    assert_int_equal(b->device->backend->stream_wait(b->own), EXPHIL_OK);
    return m;
}

static void take_back(const bench *b, const piece *p, void *to)
{
    if (p->at && to) assert_int_equal(b->device->backend->download(b->own, to, p->at, p->bytes), EXPHIL_OK);
}

static void let_go(const bench *b, const piece *p)
{
    b->device->backend->free(b->device, p->memory, p->bytes + (size_t)(p->at - p->memory));
}

static void bring_back(const bench *b, const moved *m)
{
    for (int i = 0; i < m->r->c->count; i++) take_back(b, &m->array[i], m->r->laid[i].data);
    take_back(b, &m->saved, m->r->saved);
    assert_int_equal(b->device->backend->stream_wait(b->own), EXPHIL_OK);
    for (int i = 0; i < m->r->c->count; i++) let_go(b, &m->array[i]);
    let_go(b, &m->saved);
    let_go(b, &m->workspace);
}

/* The device runs, and is asked for nothing but work of the stream. */
static void run_there(const bench *b, const moved *m)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    const emulated *gpu = emulated_gpu();
    void *stream = ((const plugin_stream *)b->own)->native;
    gpu->counts_clear();
    if (exphil_ops_run(b->ops, m->r->args, m->workspace.at, m->r->workspace_bytes, stream, &error) < 0)
        fail_msg("%s", error.message);
    const emu_counts c = gpu->count();
    assert_int_equal(c.mallocs + c.frees + c.pinned + c.synchronisations + c.null_streams, 0);
    assert_true(c.launches > 0);
}

/* ---- the same numbers ------------------------------------------------------------------------------------ */

static const ops_shape shapes[] = {
    {2, 5, 8, 4, 3, 0}, {3, 9, 33, 5, 0, 0}, {1, 1, 64, 16, 0, 0}, {4, 20, 64, 8, 6, 1}};

/* Of results that are zero but for rounding too. */
static void check_close(const ops_run *r, const ops_run *wanted, int i)
{
    const double *x = ops_run_result(r, i), *y = ops_run_result(wanted, i);
    const int64_t count = ops_elements(&r->c->array[i]);
    const double size = count ? sqrt(case_dot(y, y, count) / (double)count) : 0.0;
    for (int64_t k = 0; k < count; k++)
        if (!(fabs(x[k] - y[k]) <= 2e-5 * (fabs(y[k]) + size) + 1e-5))
            fail_msg("%s of %s: %g, must be %g", r->c->array[i].name, exphil_op_name(r->op), x[k], y[k]);
}

/* Case c, forward or backward. */
static void check_case(const bench *b, ops_case *c, bool backward, int layout, bool odd)
{
    void *exact = backward ? ops_forward_of(b->host_ops, c, EXPHIL_OPS_F64) : NULL;
    ops_run *wanted = ops_run_make(b->host_ops, c, backward, EXPHIL_OPS_F64, OPS_DENSE, exact);
    assert_int_equal(ops_run_do(b->host_ops, wanted, NULL), EXPHIL_OK);
    void *saved = NULL;
    if (backward) { /* what is saved is the device's own */
        ops_run *forward = ops_run_make(b->ops, c, false, EXPHIL_OPS_F32, OPS_DENSE, NULL);
        moved m = move_there(b, forward, odd);
        run_there(b, &m);
        bring_back(b, &m);
        saved = forward->saved;
    }
    ops_run *r = ops_run_make(b->ops, c, backward, EXPHIL_OPS_F32, layout, saved);
    moved m = move_there(b, r, odd);
    run_there(b, &m);
    bring_back(b, &m);
    for (int i = 0; i < c->count; i++)
        if (ops_is_out(r, i)) check_close(r, wanted, i);
}

static void check_run(const bench *b, int number, const ops_shape *s, int layout)
{
    case_seed((uint64_t)number);
    check_case(b, ops_case_make(ops_forward[number % 7], s), number >= 7, layout, false);
    case_release();
}

static void the_numbers_are_those_of_the_cpu(void **state)
{
    for (int timing = 0; timing < EMU_TIMINGS; timing++) {
        emulated_gpu()->timing(timing, 5);
        bench b = bench_make();
        for (int number = 0; number < RUNS; number++)
            check_run(&b, number, &shapes[number % 7 == 0 ? timing + 1 : (number + timing) % 4],
                      timing == EMU_LAZY ? OPS_PADDED : OPS_DENSE);
        bench_end(&b);
    }
    emulated_gpu()->timing(EMU_EAGER, 0);
}

/* ---- any shape ------------------------------------------------------------------------------------------- */

/* Some of what may be missing; of what is not there goes no gradient. */
static void leave_some_out(ops_case *c)
{
    static const char *const may[] = {"delta_bias", "skip",  "z",          "bias",   "state_in",
                                      "state_out",  "reset", "dstate_out", "h_in",   "h_out",
                                      "c_in",       "c_out", "dh_out",     "dc_out", "average"};
    for (int i = 0; i < c->count; i++) {
        ops_array *a = &c->array[i];
        bool can = a->role & OPS_BACKWARD_OUT;
        for (size_t k = 0; k < sizeof may / sizeof *may; k++) can |= strcmp(a->name, may[k]) == 0;
        if (can && case_below(3) == 0) a->left_out = true;
    }
    for (int i = 0; i < c->count; i++)
        for (int k = 0; k < c->count; k++)
            if (c->array[k].role & OPS_BACKWARD_OUT && strcmp(c->array[k].name + 1, c->array[i].name) == 0)
                c->array[k].left_out |= c->array[i].left_out;
}

/* Shapes, resets, what is missing, where arrays lie and how far apart their rows: all drawn. */
static void arrays_of_any_kind(void **state)
{
    enum { EACH = 30 };
    bench b = bench_make();
    for (int i = 0; i < EACH * RUNS; i++) {
        case_seed(1000 + (uint64_t)i);
        const int number = i % RUNS;
        const bool norm = ops_forward[number % 7] == EXPHIL_OP_NORM;
        const int64_t least = norm ? 8 : 1,
                      most = norm ? 600 : 90; /* rows of few numbers may differ by little */
        const int64_t width = least + case_below(case_below(3) ? 20 : most);
        const bool fours = case_below(2); /* kernels move four at once where addresses let them */
        const ops_shape s = {.batch = 1 + case_below(case_below(4) ? 4 : 20),
                             .frames = 1 + case_below(case_below(3) ? 9 : 40),
                             .width = fours ? (width + 3) / 4 * 4 : width,
                             .more = 1 + case_below(16),
                             .resets = case_below(2) ? 1 + case_below(7) : 0,
                             .flag = (int32_t)case_below(2)};
        ops_case *c = ops_case_make(ops_forward[number % 7], &s);
        leave_some_out(c);
        check_case(&b, c, number >= 7, case_below(2) ? OPS_PADDED : OPS_DENSE, true);
        case_release();
    }
    bench_end(&b);
}

/* Nothing of a run has happened when the call returns: it is the stream's. */
static void a_run_is_work_of_the_stream(void **state)
{
    emulated_gpu()->timing(EMU_LAZY, 0);
    bench b = bench_make();
    case_seed(1);
    ops_case *c = ops_case_make(EXPHIL_OP_NORM, &shapes[1]);
    moved m = move_there(&b, ops_run_make(b.ops, c, false, EXPHIL_OPS_F32, OPS_DENSE, NULL), false);
    run_there(&b, &m);
    assert_int_equal(emulated_gpu()->count().operations, 0);
    bring_back(&b, &m);
    assert_true(emulated_gpu()->count().operations > 0);
    bench_end(&b);
    emulated_gpu()->timing(EMU_EAGER, 0);
}

/* ---- what it has not ------------------------------------------------------------------------------------- */

static void refused(const bench *b, const void *args, const char *says)
{
    exphil_op_info info = EXPHIL_OP_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_ops_query(b->ops, args, &info, &error), EXPHIL_E_UNSUPPORTED);
    assert_says(&error, says);
}

static void what_it_has_not_is_refused(void **state)
{
    bench b = bench_make();
    case_seed(3);
    ops_case *c = ops_case_make(EXPHIL_OP_SCAN, &(ops_shape){2, 7, 12, 4, 0, 1});
    ops_run *r = ops_run_make(b.host_ops, c, false, EXPHIL_OPS_F32, OPS_DENSE, NULL);
    exphil_scan_args *args = (exphil_scan_args *)(void *)r->args;
    args->type = EXPHIL_OPS_F64;
    refused(&b, args, "scan: the device cuda has no kernel");
    args->type = EXPHIL_OPS_F32;
    args->u.column_stride = 7;
    refused(&b, args, "scan: u.column_stride is 7, must be 1 on this device");
    bench_end(&b);
}

/* ---- what no grid is wide enough for ----------------------------------------------------------------------- */

/* Arguments of a frame whose arrays lie anywhere: a query reads none. */
typedef union any_args {
    exphil_conv_args conv;
    exphil_scan_args scan;
    exphil_norm_args norm;
} any_args;

static any_args conv_of(int32_t op, int64_t width, int64_t frames)
{
    static float there;
    any_args a = {.conv = EXPHIL_CONV_ARGS_INIT};
    a.conv.op = op, a.conv.batch = 1, a.conv.frames = frames, a.conv.width = width, a.conv.taps = 1;
    a.conv.x.data = a.conv.weight.data = a.conv.dy.data = &there;
    a.conv.y.data = a.conv.dx.data = &there;
    return a;
}

static any_args scan_of(int32_t op, int64_t width, int64_t states, int64_t frames)
{
    static float there;
    any_args a = {.scan = EXPHIL_SCAN_ARGS_INIT};
    exphil_scan_args *s = &a.scan;
    s->op = op, s->batch = 1, s->frames = frames, s->width = width, s->states = states;
    s->u.data = s->delta.data = s->a_log.data = s->b.data = s->c.data = s->dy.data = &there;
    s->y.data = s->du.data = s->ddelta.data = s->db.data = s->dc.data = &there;
    return a;
}

static any_args norm_of(int32_t op, int64_t width)
{
    static float there;
    any_args a = {.norm = EXPHIL_NORM_ARGS_INIT};
    a.norm.op = op, a.norm.batch = a.norm.frames = 1, a.norm.width = width;
    a.norm.x.data = a.norm.gain.data = a.norm.shift.data = a.norm.dy.data = &there;
    a.norm.y.data = a.norm.dx.data = &there;
    return a;
}

static void taken(const bench *b, const void *args)
{
    exphil_op_info info = EXPHIL_OP_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_ops_query(b->ops, args, &info, &error) < 0) fail_msg("%s", error.message);
}

/* 65535 blocks lie beside each other, of so many channels. */
static void what_is_too_wide_is_refused_before_it_runs(void **state)
{
    enum { MOST = 65535 };
    bench b = bench_make();
    for (int wide = 0; wide < 2; wide++) {
        const int64_t blocks = MOST + wide;
        const any_args all[] = {
            conv_of(EXPHIL_OP_CONV, blocks * 128, 1),
            conv_of(EXPHIL_OP_CONV, blocks * 128, 2),
            conv_of(EXPHIL_OP_CONV_GRAD, blocks * 128, 1),
            norm_of(EXPHIL_OP_NORM_GRAD, blocks * 256),
            scan_of(EXPHIL_OP_SCAN, blocks * 128, 3, 1),
            scan_of(EXPHIL_OP_SCAN, blocks * 128, 3, 2),
            scan_of(EXPHIL_OP_SCAN, blocks * 64, 32, 2),
            scan_of(EXPHIL_OP_SCAN, blocks * 32, 64, 2),
            scan_of(EXPHIL_OP_SCAN_GRAD, blocks * 128, 8, 1),
            scan_of(EXPHIL_OP_SCAN_GRAD, blocks * 64, 9, 40),
            scan_of(EXPHIL_OP_SCAN_GRAD, blocks * 32, 32, 40),
            scan_of(EXPHIL_OP_SCAN_GRAD, blocks * 16, 33, 1),
        };
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            if (wide)
                refused(&b, &all[i], "has no kernel for this type and these fields");
            else
                taken(&b, &all[i]);
    }
    any_args norm = norm_of(EXPHIL_OP_NORM, (MOST + (int64_t)1) * 256);
    taken(&b, &norm); /* has no blocks beside each other */
    bench_end(&b);
}

/* Strides that 32 bits do not hold. */
static void rows_too_far_apart_are_refused(void **state)
{
    bench b = bench_make();
    static const size_t at[] = {
        offsetof(exphil_scan_args, u),  offsetof(exphil_scan_args, delta), offsetof(exphil_scan_args, z),
        offsetof(exphil_scan_args, dy), offsetof(exphil_scan_args, du),    offsetof(exphil_scan_args, ddelta),
        offsetof(exphil_scan_args, dz), offsetof(exphil_scan_args, b),     offsetof(exphil_scan_args, c)};
    for (size_t i = 0; i < 2 * sizeof at / sizeof *at; i++) {
        static float there;
        any_args a = scan_of(EXPHIL_OP_SCAN_GRAD, 8, 4, 3);
        a.scan.z.data = a.scan.dz.data = &there;
        exphil_input *array = (exphil_input *)(void *)((char *)&a.scan + at[i / 2]);
        array->frame_stride = i % 2 ? ((int64_t)1 << 32) + 8 : ((int64_t)1 << 27) - 8;
        array->batch_stride = 3 * array->frame_stride;
        if (i % 2)
            refused(&b, &a, "has no kernel for this type and these fields");
        else
            taken(&b, &a);
    }
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_numbers_are_those_of_the_cpu),
        cmocka_unit_test(arrays_of_any_kind),
        cmocka_unit_test(a_run_is_work_of_the_stream),
        cmocka_unit_test(what_it_has_not_is_refused),
        cmocka_unit_test(what_is_too_wide_is_refused_before_it_runs),
        cmocka_unit_test(rows_too_far_apart_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
