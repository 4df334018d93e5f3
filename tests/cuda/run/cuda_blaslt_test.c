/* Products by cuBLASLt as cuda/blaslt.c asks for them, with a library in its place that does what the real one is documented
 * to do: shapes, transposes, strides, bias, residual, types, and what happens where it refuses. */
#include "emulated.h"
#include "model_case.h"

#include "device/work.h"

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

/* y = x W^T + bias + residual with padded rows; then dx, dw, dbias of it. */
static void one_product(const rig *r, xph_type type, int64_t rows, int64_t in, int64_t out, bool bias,
                        bool residual, bool add)
{
    const xph_backend *backend = r->device->backend;
    const int64_t ldx = in + 3, ldy = out + 5;
    static float x[MOST], w[MOST], b[MOST], y[MOST], dy[MOST], dx[MOST], dw[MOST], db[MOST], got[MOST];
    static double want[MOST];
    const double tolerance = type == XPH_BF16 ? 2e-2 : 1e-5;
    assert_true(rows * ldx <= MOST && rows * ldy <= MOST && in * out <= MOST);
    void *dev_x = numbers(r, type, rows * ldx, 1, x), *dev_w = numbers(r, XPH_F32, in * out, 2, w),
         *dev_b = numbers(r, XPH_F32, out, 3, b), *dev_y = numbers(r, type, rows * ldy, 4, y),
         *dev_dy = numbers(r, type, rows * ldy, 5, dy), *dev_dx = numbers(r, type, rows * ldx, 6, dx),
         *dev_dw = numbers(r, XPH_F32, in * out, 7, dw), *dev_db = numbers(r, XPH_F32, out, 8, db);
    xph_linear_pack_args pack = {.type = type, .in = in, .out = out, .w = dev_w, .bias = bias ? dev_b : NULL};
    xph_op_info info = {0};
    assert_int_equal(backend->query(r->device, XPH_OP_LINEAR_PACK, &pack, &info), EXPHIL_OK);
    assert_int_equal(backend->alloc(r->device, info.packed_bytes, &pack.packed), EXPHIL_OK);
    const size_t packed_bytes = info.packed_bytes;
    assert_int_equal(backend->run(r->stream, info.kernel, &pack), EXPHIL_OK);
    xph_linear_args a = {.type = type,
                         .rows = rows,
                         .in = in,
                         .out = out,
                         .x = dev_x,
                         .ldx = ldx,
                         .w = dev_w,
                         .packed = pack.packed,
                         .bias = bias ? dev_b : NULL,
                         .residual = residual ? dev_y : NULL,
                         .ldr = ldy,
                         .y = dev_y,
                         .ldy = ldy};
    run_linear(r, &a);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t o = 0; o < out; o++) {
            double sum = (bias ? (double)b[o] : 0.0) + (residual ? (double)y[i * ldy + o] : 0.0);
            for (int64_t k = 0; k < in; k++) sum += (double)x[i * ldx + k] * (double)w[o * in + k];
            want[i * out + o] = sum;
        }
    fetch(r, type, dev_y, rows * ldy, got);
    near("y", got, want, rows, out, ldy, tolerance);
    xph_linear_grad_args g = {.type = type,
                              .rows = rows,
                              .in = in,
                              .out = out,
                              .x = dev_x,
                              .ldx = ldx,
                              .w = dev_w,
                              .packed = pack.packed,
                              .dy = dev_dy,
                              .lddy = ldy,
                              .dx = dev_dx,
                              .lddx = ldx,
                              .dx_add = add,
                              .dw = dev_dw,
                              .dbias = dev_db};
    assert_int_equal(backend->query(r->device, XPH_OP_LINEAR_GRAD, &g, &info), EXPHIL_OK);
    assert_string_equal(info.name, "linear_grad_cublaslt");
    assert_int_equal(backend->alloc(r->device, info.scratch_bytes, &g.scratch), EXPHIL_OK);
    assert_int_equal(backend->run(r->stream, info.kernel, &g), EXPHIL_OK);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < in; k++) {
            double sum = add ? (double)dx[i * ldx + k] : 0.0;
            for (int64_t o = 0; o < out; o++) sum += (double)dy[i * ldy + o] * (double)w[o * in + k];
            want[i * in + k] = sum;
        }
    fetch(r, type, dev_dx, rows * ldx, got);
    near("dx", got, want, rows, in, ldx, tolerance);
    for (int64_t o = 0; o < out; o++)
        for (int64_t k = 0; k < in; k++) {
            double sum = (double)dw[o * in + k];
            for (int64_t i = 0; i < rows; i++) sum += (double)dy[i * ldy + o] * (double)x[i * ldx + k];
            want[o * in + k] = sum;
        }
    fetch(r, XPH_F32, dev_dw, in * out, got);
    near("dw", got, want, out, in, in, 1e-5);
    for (int64_t o = 0; o < out; o++) {
        want[o] = (double)db[o];
        for (int64_t i = 0; i < rows; i++) want[o] += (double)dy[i * ldy + o];
    }
    fetch(r, XPH_F32, dev_db, out, got);
    near("dbias", got, want, 1, out, out, 1e-5);
    backend->free(r->device, g.scratch, info.scratch_bytes);
    backend->free(r->device, pack.packed, packed_bytes);
    drop(r, dev_x, type, rows * ldx);
    drop(r, dev_w, XPH_F32, in * out);
    drop(r, dev_b, XPH_F32, out);
    drop(r, dev_y, type, rows * ldy);
    drop(r, dev_dy, type, rows * ldy);
    drop(r, dev_dx, type, rows * ldx);
    drop(r, dev_dw, XPH_F32, in * out);
    drop(r, dev_db, XPH_F32, out);
}

static void products(void **state)
{
    (void)state;
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
    (void)state;
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

/* That is no refusal: who knows what was done. */
static void a_product_that_failed_is_a_lost_device(void **state)
{
    (void)state;
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
        cmocka_unit_test(a_product_that_failed_is_a_lost_device),
    };
    setenv("EXPHIL_CUBLASLT", EMULATED_BLASLT, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
