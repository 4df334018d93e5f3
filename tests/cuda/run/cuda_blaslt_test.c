/* Products by cuBLASLt as cuda/blaslt.c asks for them, with a library in its place that does what the real one is documented
 * to do: shapes, transposes, strides, bias, residual, types, and what happens where it refuses. */
#include "emulated.h"
#include "model_case.h"

#include "device/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rig {
    exphil_context *context;
    xph_device *device;
    xph_stream *stream;
} rig;

static rig rig_make(void)
{
    rig r = {.context = emulated_context()};
    r.device = xph_context_backend(r.context);
    assert_int_equal(r.device->backend->stream_create(r.device, XPH_STREAM_NET, &r.stream), EXPHIL_OK);
    return r;
}

static void rig_end(rig *r)
{
    r->device->backend->stream_destroy(r->stream);
    exphil_context_destroy(r->context);
}

/* A block of count numbers on the device, filled with small random ones. */
static void *numbers(const rig *r, xph_type type, int64_t count, uint64_t seed, float *host)
{
    void *at = NULL;
    xph_rng rng = {seed, 0, 0};
    uint16_t *narrow = malloc((size_t)count * sizeof *narrow);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        host[i] = (float)model_case_uniform(&rng, -1.0, 1.0);
        memcpy(&bits, &host[i], sizeof bits);
        bits &= type == XPH_BF16 ? 0xffff0000u : 0xffffffffu;
        memcpy(&host[i], &bits, sizeof bits);
        narrow[i] = (uint16_t)(bits >> 16);
    }
    size_t bytes = (size_t)count * (type == XPH_BF16 ? 2 : 4);
    assert_int_equal(r->device->backend->alloc(r->device, bytes, &at), EXPHIL_OK);
    assert_int_equal(
        r->device->backend->upload(r->stream, at, type == XPH_BF16 ? (void *)narrow : (void *)host, bytes),
        EXPHIL_OK);
    assert_int_equal(r->device->backend->stream_wait(r->stream), EXPHIL_OK);
    free(narrow);
    return at;
}

static void fetch(const rig *r, xph_type type, const void *at, int64_t count, float *to)
{
    uint16_t *narrow = malloc((size_t)count * sizeof *narrow);
    void *into = type == XPH_BF16 ? (void *)narrow : (void *)to;
    assert_int_equal(
        r->device->backend->download(r->stream, into, at, (size_t)count * (type == XPH_BF16 ? 2 : 4)),
        EXPHIL_OK);
    assert_int_equal(r->device->backend->stream_wait(r->stream), EXPHIL_OK);
    for (int64_t i = 0; type == XPH_BF16 && i < count; i++) {
        uint32_t bits = (uint32_t)narrow[i] << 16;
        memcpy(&to[i], &bits, sizeof bits);
    }
    free(narrow);
}

static void drop(const rig *r, void *at, xph_type type, int64_t count)
{
    r->device->backend->free(r->device, at, (size_t)count * (type == XPH_BF16 ? 2 : 4));
}

static void near(const char *what, const float *got, const double *want, int64_t rows, int64_t width,
                 int64_t ld, double tolerance)
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < width; i++) {
            double off = fabs((double)got[row * ld + i] - want[row * width + i]);
            if (!(off <= tolerance * (1.0 + fabs(want[row * width + i]))))
                fail_msg("%s[%lld][%lld] is %g, want %g", what, (long long)row, (long long)i,
                         (double)got[row * ld + i], want[row * width + i]);
        }
}

enum { MOST = 4096 };

/* As a plan does it. */
static void run_linear(const rig *r, xph_linear_args *a)
{
    const xph_backend *backend = r->device->backend;
    xph_op_info info = {0};
    assert_int_equal(backend->query(r->device, XPH_OP_LINEAR, a, &info), EXPHIL_OK);
    assert_string_equal(info.name, "linear_cublaslt");
    exphil_status status = backend->run(r->stream, info.kernel, a);
    if (status == EXPHIL_E_UNSUPPORTED) {
        info.refused = info.candidate;
        assert_int_equal(backend->query(r->device, XPH_OP_LINEAR, a, &info), EXPHIL_OK);
        assert_string_equal(info.name, "linear_few");
        status = backend->run(r->stream, info.kernel, a);
    }
    assert_int_equal(status, EXPHIL_OK);
}

/* y = x W^T + bias + residual with padded rows, and what it is made of: numbers here and on the device. */
typedef struct product {
    xph_type type;
    int64_t rows, in, out, ldx, ldy;
    bool bias, residual, add;
    float x[MOST], w[MOST], b[MOST], y[MOST], dy[MOST], dx[MOST], dw[MOST], db[MOST];
    void *dev_x, *dev_w, *dev_b, *dev_y, *dev_dy, *dev_dx, *dev_dw, *dev_db, *packed, *scratch;
    size_t packed_bytes, scratch_bytes;
} product;

static void product_make(const rig *r, product *p)
{
    assert_true(p->rows * p->ldx <= MOST && p->rows * p->ldy <= MOST && p->in * p->out <= MOST);
    p->dev_x = numbers(r, p->type, p->rows * p->ldx, 1, p->x);
    p->dev_w = numbers(r, XPH_F32, p->in * p->out, 2, p->w);
    p->dev_b = numbers(r, XPH_F32, p->out, 3, p->b);
    p->dev_y = numbers(r, p->type, p->rows * p->ldy, 4, p->y);
    p->dev_dy = numbers(r, p->type, p->rows * p->ldy, 5, p->dy);
    p->dev_dx = numbers(r, p->type, p->rows * p->ldx, 6, p->dx);
    p->dev_dw = numbers(r, XPH_F32, p->in * p->out, 7, p->dw);
    p->dev_db = numbers(r, XPH_F32, p->out, 8, p->db);
    xph_linear_pack_args pack = {
        .type = p->type, .in = p->in, .out = p->out, .w = p->dev_w, .bias = p->bias ? p->dev_b : NULL};
    xph_op_info info = {0};
    const xph_backend *backend = r->device->backend;
    assert_int_equal(backend->query(r->device, XPH_OP_LINEAR_PACK, &pack, &info), EXPHIL_OK);
    assert_int_equal(backend->alloc(r->device, info.packed_bytes, &pack.packed), EXPHIL_OK);
    assert_int_equal(backend->run(r->stream, info.kernel, &pack), EXPHIL_OK);
    p->packed = pack.packed;
    p->packed_bytes = info.packed_bytes;
}

static void product_free(const rig *r, const product *p)
{
    r->device->backend->free(r->device, p->scratch, p->scratch_bytes);
    r->device->backend->free(r->device, p->packed, p->packed_bytes);
    drop(r, p->dev_x, p->type, p->rows * p->ldx);
    drop(r, p->dev_w, XPH_F32, p->in * p->out);
    drop(r, p->dev_b, XPH_F32, p->out);
    drop(r, p->dev_y, p->type, p->rows * p->ldy);
    drop(r, p->dev_dy, p->type, p->rows * p->ldy);
    drop(r, p->dev_dx, p->type, p->rows * p->ldx);
    drop(r, p->dev_dw, XPH_F32, p->in * p->out);
    drop(r, p->dev_db, XPH_F32, p->out);
}

static double product_tolerance(const product *p)
{
    return p->type == XPH_BF16 ? 2e-2 : 1e-5;
}

static void check_forward(const rig *r, const product *p)
{
    static float got[MOST];
    static double want[MOST];
    xph_linear_args a = {.type = p->type,
                         .rows = p->rows,
                         .in = p->in,
                         .out = p->out,
                         .x = p->dev_x,
                         .ldx = p->ldx,
                         .w = p->dev_w,
                         .packed = p->packed,
                         .bias = p->bias ? p->dev_b : NULL,
                         .residual = p->residual ? p->dev_y : NULL,
                         .ldr = p->ldy,
                         .y = p->dev_y,
                         .ldy = p->ldy};
    run_linear(r, &a);
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t o = 0; o < p->out; o++) {
            double sum =
                (p->bias ? (double)p->b[o] : 0.0) + (p->residual ? (double)p->y[i * p->ldy + o] : 0.0);
            for (int64_t k = 0; k < p->in; k++)
                sum += (double)p->x[i * p->ldx + k] * (double)p->w[o * p->in + k];
            want[i * p->out + o] = sum;
        }
    fetch(r, p->type, p->dev_y, p->rows * p->ldy, got);
    near("y", got, want, p->rows, p->out, p->ldy, product_tolerance(p));
}

static void run_gradient(const rig *r, product *p)
{
    const xph_backend *backend = r->device->backend;
    xph_op_info info = {0};
    xph_linear_grad_args g = {.type = p->type,
                              .rows = p->rows,
                              .in = p->in,
                              .out = p->out,
                              .x = p->dev_x,
                              .ldx = p->ldx,
                              .w = p->dev_w,
                              .packed = p->packed,
                              .dy = p->dev_dy,
                              .lddy = p->ldy,
                              .dx = p->dev_dx,
                              .lddx = p->ldx,
                              .dx_add = p->add,
                              .dw = p->dev_dw,
                              .dbias = p->dev_db};
    assert_int_equal(backend->query(r->device, XPH_OP_LINEAR_GRAD, &g, &info), EXPHIL_OK);
    assert_string_equal(info.name, "linear_grad_cublaslt");
    assert_int_equal(backend->alloc(r->device, info.scratch_bytes, &g.scratch), EXPHIL_OK);
    assert_int_equal(backend->run(r->stream, info.kernel, &g), EXPHIL_OK);
    p->scratch = g.scratch;
    p->scratch_bytes = info.scratch_bytes;
}

static void check_gradient(const rig *r, const product *p)
{
    static float got[MOST];
    static double want[MOST];
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t k = 0; k < p->in; k++) {
            double sum = p->add ? (double)p->dx[i * p->ldx + k] : 0.0;
            for (int64_t o = 0; o < p->out; o++)
                sum += (double)p->dy[i * p->ldy + o] * (double)p->w[o * p->in + k];
            want[i * p->in + k] = sum;
        }
    fetch(r, p->type, p->dev_dx, p->rows * p->ldx, got);
    near("dx", got, want, p->rows, p->in, p->ldx, product_tolerance(p));
    for (int64_t o = 0; o < p->out; o++)
        for (int64_t k = 0; k < p->in; k++) {
            double sum = (double)p->dw[o * p->in + k];
            for (int64_t i = 0; i < p->rows; i++)
                sum += (double)p->dy[i * p->ldy + o] * (double)p->x[i * p->ldx + k];
            want[o * p->in + k] = sum;
        }
    fetch(r, XPH_F32, p->dev_dw, p->in * p->out, got);
    near("dw", got, want, p->out, p->in, p->in, 1e-5);
    for (int64_t o = 0; o < p->out; o++) {
        want[o] = (double)p->db[o];
        for (int64_t i = 0; i < p->rows; i++) want[o] += (double)p->dy[i * p->ldy + o];
    }
    fetch(r, XPH_F32, p->dev_db, p->out, got);
    near("dbias", got, want, 1, p->out, p->out, 1e-5);
}

/* The product, then dx, dw, dbias of it. */
static void one_product(const rig *r, xph_type type, int64_t rows, int64_t in, int64_t out, bool bias,
                        bool residual, bool add)
{
    static product p;
    p.type = type;
    p.rows = rows;
    p.in = in;
    p.out = out;
    p.ldx = in + 3;
    p.ldy = out + 5;
    p.bias = bias;
    p.residual = residual;
    p.add = add;
    product_make(r, &p);
    check_forward(r, &p);
    run_gradient(r, &p);
    check_gradient(r, &p);
    product_free(r, &p);
}

static void products(void **state)
{
    emulated_gpu()->timing(EMU_EAGER, 1);
    emulated_gpu()->protect(0);
    fake_blaslt *lt = emulated_blaslt();
    rig r = rig_make();
    for (int variant = 0; variant < 8; variant++)
        for (int narrow = 0; narrow < 2; narrow++) {
            int before = lt->products;
            one_product(&r, narrow ? XPH_BF16 : XPH_F32, 1 + 7 * variant, 17, 24 - variant, variant & 1,
                        variant & 2, variant & 4);
            assert_int_equal(lt->products - before, 3);
        }
    rig_end(&r);
    assert_int_equal(lt->alive, 0);
    emulated_clean();
}

/* Then own kernels do the product, and only that; the library is not asked again. */
static void what_it_refuses(void **state)
{
    static const int places[] = {FAKE_AT_QUERY, FAKE_AT_RUN};
    fake_blaslt *lt = emulated_blaslt();
    for (int i = 0; i < 6; i++) {
        rig r = rig_make();
        *lt = (fake_blaslt){.call = lt->call, .capturing = lt->capturing, .spoil = lt->spoil};
        lt->where = places[i / 3];
        lt->which = 1 << i % 3;
        lt->status = 15;
        one_product(&r, XPH_BF16, 9, 16, 8, true, true, false);
        one_product(&r, XPH_F32, 9, 16, 8, true, true, true);
        assert_int_equal(lt->products, 4);
        assert_int_equal(lt->refusals, 2);
        assert_int_equal(lt->shapes, 2);
        rig_end(&r);
    }
    lt->where = FAKE_NOWHERE;
    emulated_clean();
}

enum { HIDDEN = 8, GATES = 4 * HIDDEN };

/* A frame of an LSTM with the product before it: h on the device. */
static void frame_of(const rig *r, xph_rnn_args *a, xph_op_info *info, float *gx, float *h)
{
    static float w[GATES * HIDDEN], bias[GATES], x[HIDDEN];
    *a = (xph_rnn_args){.kind = XPH_RNN_LSTM, .batch = 1, .time = 1, .hidden = HIDDEN, .ldgx = GATES};
    a->ldy = HIDDEN;
    a->ld_state = 2 * HIDDEN;
    a->input = (xph_linear_args){.rows = 1, .in = HIDDEN, .out = GATES, .ldx = HIDDEN, .ldy = GATES};
    assert_int_equal(r->device->backend->query(r->device, XPH_OP_RNN, a, info), EXPHIL_OK);
    a->w = a->input.w = numbers(r, XPH_F32, GATES * HIDDEN, 1, w);
    a->bias = numbers(r, XPH_F32, GATES, 2, bias);
    a->input.x = numbers(r, XPH_F32, HIDDEN, 3, x);
    a->gx = a->input.y = numbers(r, XPH_F32, GATES, 4, gx);
    a->y = numbers(r, XPH_F32, HIDDEN, 5, h);
    assert_int_equal(r->device->backend->alloc(r->device, info->scratch_bytes, &a->scratch), EXPHIL_OK);
}

static void frame_drop(const rig *r, const xph_rnn_args *a, size_t scratch_bytes)
{
    r->device->backend->free(r->device, a->scratch, scratch_bytes);
    drop(r, (void *)(uintptr_t)a->w, XPH_F32, GATES * HIDDEN);
    drop(r, (void *)(uintptr_t)a->bias, XPH_F32, GATES);
    drop(r, (void *)(uintptr_t)a->input.x, XPH_F32, HIDDEN);
    drop(r, a->input.y, XPH_F32, GATES);
    drop(r, a->y, XPH_F32, HIDDEN);
}

/* Then the layer has done nothing; asked again it is the same with another product, and the library is left alone. */
static void what_it_refuses_of_a_layer(void **state)
{
    fake_blaslt *lt = emulated_blaslt();
    float want[HIDDEN], gx[GATES], h[HIDDEN], got_gx[GATES], got[HIDDEN];
    for (int refused = 0; refused < 2; refused++) {
        rig r = rig_make();
        const xph_backend *backend = r.device->backend;
        xph_rnn_args a;
        xph_op_info info = {0};
        lt->where = refused ? FAKE_AT_RUN : FAKE_NOWHERE;
        lt->which = FAKE_ALL;
        lt->status = 15;
        lt->products = lt->refusals = 0;
        frame_of(&r, &a, &info, gx, h);
        const xph_op_info first = info;
        const xph_kernel *chosen = a.input_product;
        assert_int_equal(backend->run(r.stream, info.kernel, &a), refused ? EXPHIL_E_UNSUPPORTED : EXPHIL_OK);
        if (refused) {
            fetch(&r, XPH_F32, a.input.y, GATES, got_gx);
            fetch(&r, XPH_F32, a.y, HIDDEN, got);
            assert_memory_equal(got_gx, gx, sizeof gx);
            assert_memory_equal(got, h, sizeof h);
            info.refused = info.candidate;
            assert_int_equal(backend->query(r.device, XPH_OP_RNN, &a, &info), EXPHIL_OK);
            assert_ptr_equal(info.kernel, first.kernel);
            assert_int_equal(info.scratch_bytes, first.scratch_bytes);
            assert_ptr_not_equal(a.input_product, chosen);
            for (int i = 0; i < 2; i++) assert_int_equal(backend->run(r.stream, info.kernel, &a), EXPHIL_OK);
        }
        fetch(&r, XPH_F32, a.y, HIDDEN, refused ? got : want);
        assert_int_equal(lt->products, !refused);
        assert_int_equal(lt->refusals, refused);
        frame_drop(&r, &a, first.scratch_bytes);
        rig_end(&r);
    }
    for (int i = 0; i < HIDDEN; i++) assert_true(fabsf(got[i] - want[i]) <= 1e-5f);
    lt->where = FAKE_NOWHERE;
    emulated_clean();
}

/* That is no refusal: who knows what was done. */
static void a_product_that_failed_is_a_lost_device(void **state)
{
    fake_blaslt *lt = emulated_blaslt();
    rig r = rig_make();
    static float x[64], w[64], y[64];
    void *dev_x = numbers(&r, XPH_F32, 64, 1, x), *dev_w = numbers(&r, XPH_F32, 64, 2, w),
         *dev_y = numbers(&r, XPH_F32, 64, 3, y);
    xph_linear_args a = {
        .rows = 8, .in = 8, .out = 8, .x = dev_x, .ldx = 8, .w = dev_w, .y = dev_y, .ldy = 8};
    lt->where = FAKE_AT_RUN;
    lt->which = FAKE_ALL;
    lt->status = 13;
    assert_int_equal(xph_run_once(r.stream, XPH_OP_LINEAR, &a), EXPHIL_E_DEVICE);
    assert_int_equal(r.device->backend->native_code(r.device), 719); /* cudaErrorLaunchFailure */
    lt->where = FAKE_NOWHERE;
    drop(&r, dev_x, XPH_F32, 64);
    drop(&r, dev_w, XPH_F32, 64);
    drop(&r, dev_y, XPH_F32, 64);
    rig_end(&r);
    emulated_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(what_it_refuses),
        cmocka_unit_test(what_it_refuses_of_a_layer),
        cmocka_unit_test(a_product_that_failed_is_a_lost_device),
    };
    setenv("EXPHIL_CUBLASLT", EMULATED_BLASLT, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
