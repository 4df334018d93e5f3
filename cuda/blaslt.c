/* Products by NVIDIA's cuBLASLt, if the machine has it: opened by name when a device is opened, never linked.
 * Its matrices are column-major, so ours are their own transposes there: y' = W x' with W = (memory of w)'.
 * For every shape an algorithm is requested from the library once, and then kept: the same bits in every run
 * on the same card. Algorithms that add to the output in no fixed order are not taken.
 *
 * Rows of float16 or bfloat16 are multiplied with the copy of the weights that linear_pack made, and get the
 * narrow copy of the bias, which must have the type of the result (cublasLt.h,
 * CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE).
 *
 * A product that the library refuses, on the request for an algorithm or when that is to run, is not requested
 * again: the refusal is logged once with shape and status, and the next candidate computes the product. A
 * gradient, which is two products, is handled here: the other product stays with the library, and scratch is
 * the same.
 */
#include "blaslt.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKSPACE LT_WORKSPACE
#ifndef XPH_CUBLASLT_NAMES /* an emulated GPU has none: the real one would look for a driver */
#  define XPH_CUBLASLT_NAMES "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"
#endif

enum { DEVICES = 64, MATRICES = LT_MATRICES, ALIGNMENTS = LT_ALIGNMENTS };

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
lt_library xph_lt; /* loaded once, stays */
static int loaded; /* 1: it is there; -1: it is not */
static xph_blaslt of_ordinal[DEVICES];

/* ---- the library ---- */

static bool find_functions(void *at)
{
#define FIND(name)                                                                                           \
  do {                                                                                                       \
    *(void **)(&xph_lt.name) = dlsym(at, #name);                                                             \
    if (!xph_lt.name) return false;                                                                          \
  } while (0)
    FIND(cublasLtCreate);
    FIND(cublasLtDestroy);
    FIND(cublasLtGetVersion);
    FIND(cublasLtMatmulDescCreate);
    FIND(cublasLtMatmulDescSetAttribute);
    FIND(cublasLtMatmulDescDestroy);
    FIND(cublasLtMatrixLayoutCreate);
    FIND(cublasLtMatrixLayoutDestroy);
    FIND(cublasLtMatmulPreferenceCreate);
    FIND(cublasLtMatmulPreferenceSetAttribute);
    FIND(cublasLtMatmulPreferenceDestroy);
    FIND(cublasLtMatmulAlgoGetHeuristic);
    FIND(cublasLtMatmulAlgoCheck);
    FIND(cublasLtMatmulAlgoConfigGetAttribute);
    FIND(cublasLtMatmul);
#undef FIND
    return true;
}

/* EXPHIL_CUBLASLT: a path to use instead, or "none". */
static void load(const xph_cuda_device *device)
{
    static const char *const names[] = {XPH_CUBLASLT_NAMES};
    const char *asked = secure_getenv("EXPHIL_CUBLASLT");
    char text[512];
    const char *why = NULL;
    void *at = NULL;
    if (loaded) return;
    loaded = -1;
    if (asked && *asked) {
        if (strcmp(asked, "none") == 0)
            why = "not wanted";
        else
            at = xph_cuda_library(asked, &why);
    } else {
        for (size_t i = 0; !at && i < sizeof names / sizeof *names; i++)
            at = xph_cuda_library(names[i], &why);
    }
    if (at) why = "it lacks functions";
    if (at && find_functions(at)) {
        loaded = 1;
        snprintf(text, sizeof text, "cuda: products by cuBLASLt %zu", xph_lt.cublasLtGetVersion());
        device->host.log(device->host.context, EXPHIL_LOG_INFO, text);
        return;
    }
    if (!why) why = "not found";
    const bool named = asked && *asked && strcmp(asked, "none") != 0 && !strstr(why, asked);
    snprintf(text, sizeof text, "cuda: no cuBLASLt, products by own kernels: %s%.250s%s%s",
             named ? "EXPHIL_CUBLASLT: " : "", named ? asked : "", named ? ": " : "", why);
    device->host.log(device->host.context, EXPHIL_LOG_WARNING, text);
}

/* NULL: none is named. */
static const char *choices_path(void)
{
    const char *path = secure_getenv("EXPHIL_CUBLASLT_CHOICES");
    return path && *path ? path : NULL;
}

/* The first device of an ordinal: what the others share. */
static exphil_status begin(xph_blaslt *lt, const xph_cuda_device *device, exphil_error *error)
{
    const char *path = choices_path();
    lt->plans = NULL;
    lt->workspaces = NULL;
    lt->workspace_count = lt->workspace_capacity = 0;
    lt->choices = (lt_choices){.count = 0};
    if (path) {
        exphil_status status =
            xph_choices_read(path, device, xph_lt.cublasLtGetVersion(), &lt->choices, error);
        if (status < 0) return status;
    }
    if (pthread_mutex_init(&lt->lock, NULL) == 0) {
        if (xph_lt.cublasLtCreate(&lt->handle) == 0) return EXPHIL_OK;
        pthread_mutex_destroy(&lt->lock);
    }
    xph_choices_free(&lt->choices);
    if (path)
        return xph_cuda_fail(error, EXPHIL_E_UNSUPPORTED, 0,
                             "EXPHIL_CUBLASLT_CHOICES: %.200s: cuBLASLt does not start", path);
    device->host.log(device->host.context, EXPHIL_LOG_WARNING,
                     "cuda: cuBLASLt does not start, products by own kernels");
    return EXPHIL_E_UNSUPPORTED;
}

/* The first device of an ordinal is open: its choices are those of all, and nobody is to believe that it has others. */
static exphil_status join(const xph_blaslt *lt, const xph_cuda_device *device, exphil_error *error)
{
    const char *path = choices_path();
    lt_choices own = {.count = 0};
    char text[160];
    if (!path && lt->choices.count) {
        snprintf(
            text, sizeof text,
            "cuda:%d: products as EXPHIL_CUBLASLT_CHOICES said when it was opened first, until all close it",
            device->ordinal);
        device->host.log(device->host.context, EXPHIL_LOG_WARNING, text);
    }
    if (!path) return EXPHIL_OK;
    exphil_status status = xph_choices_read(path, device, xph_lt.cublasLtGetVersion(), &own, error);
    if (status >= 0 && !xph_choices_same(&own, &lt->choices))
        status =
            xph_cuda_fail(error, EXPHIL_E_UNSUPPORTED, 0,
                          "EXPHIL_CUBLASLT_CHOICES: %.200s: cuda:%d is open with other choices, which hold "
                          "until all close it",
                          path, device->ordinal);
    xph_choices_free(&own);
    return status;
}

/* Whoever names choices wants the bits that they give. */
static exphil_status without(exphil_error *error)
{
    const char *path = choices_path();
    if (!path) return EXPHIL_OK;
    return xph_cuda_fail(error, EXPHIL_E_UNSUPPORTED, 0,
                         "EXPHIL_CUBLASLT_CHOICES: %.200s: there is no cuBLASLt to choose from", path);
}

exphil_status xph_blaslt_open(xph_cuda_device *device, exphil_error *error)
{
    exphil_status status = EXPHIL_OK;
    xph_blaslt *lt = NULL;
    pthread_mutex_lock(&opening);
    load(device);
    if (loaded == 1 && device->ordinal < DEVICES) lt = &of_ordinal[device->ordinal];
    if (lt) status = lt->users ? join(lt, device, error) : begin(lt, device, error);
    if (status == EXPHIL_E_UNSUPPORTED && !choices_path()) { /* it does not start */
        status = EXPHIL_OK;
        lt = NULL;
    }
    if (lt && status >= 0) {
        lt->users++;
        device->blaslt = lt;
    }
    pthread_mutex_unlock(&opening);
    return status >= 0 && !lt ? without(error) : status;
}

void xph_lt_free(plan *p)
{
    if (p->a) xph_lt.cublasLtMatrixLayoutDestroy(p->a);
    if (p->b) xph_lt.cublasLtMatrixLayoutDestroy(p->b);
    if (p->c) xph_lt.cublasLtMatrixLayoutDestroy(p->c);
    if (p->d) xph_lt.cublasLtMatrixLayoutDestroy(p->d);
    if (p->desc) xph_lt.cublasLtMatmulDescDestroy(p->desc);
}

void xph_blaslt_close(xph_cuda_device *device)
{
    xph_blaslt *lt = device->blaslt;
    lt_choices used = {.count = 0};
    if (!lt) return;
    pthread_mutex_lock(&opening);
    if (--lt->users == 0) {
        while (lt->plans) {
            plan *next = lt->plans->next;
            xph_lt_free(lt->plans);
            free(lt->plans);
            lt->plans = next;
        }
        free(lt->workspaces);
        used = lt->choices;
        lt->choices = (lt_choices){.count = 0};
        xph_lt.cublasLtDestroy(lt->handle);
        pthread_mutex_destroy(&lt->lock);
    }
    pthread_mutex_unlock(&opening);
    xph_choices_tell(&used, device); /* the host's log may open or close contexts */
    xph_choices_free(&used);
}

/* ---- workspaces ---- */

exphil_status xph_blaslt_prepare(xph_cuda_stream *stream)
{
    xph_cuda_device *device = (xph_cuda_device *)stream->base.device;
    xph_blaslt *lt = device->blaslt;
    if (!lt || stream->workspace) return EXPHIL_OK;
    exphil_status status = xph_cuda_alloc(&device->base, WORKSPACE, &stream->workspace);
    if (status < 0) return status;
    pthread_mutex_lock(&lt->lock);
    if (lt->workspace_count == lt->workspace_capacity) {
        int64_t capacity = lt->workspace_capacity ? 2 * lt->workspace_capacity : 16;
        workspace *more = realloc(lt->workspaces, (size_t)capacity * sizeof *more);
        if (more) {
            lt->workspaces = more;
            lt->workspace_capacity = capacity;
        }
    }
    bool noted = lt->workspace_count < lt->workspace_capacity;
    if (noted) lt->workspaces[lt->workspace_count++] = (workspace){stream, stream->workspace};
    pthread_mutex_unlock(&lt->lock);
    return noted ? EXPHIL_OK : EXPHIL_E_MEMORY;
}

size_t xph_blaslt_bytes(const xph_device *device)
{
    return ((const xph_cuda_device *)device)->blaslt ? xph_cuda_rounded(WORKSPACE) : 0;
}

void xph_blaslt_forget(xph_cuda_stream *stream)
{
    xph_cuda_device *device = (xph_cuda_device *)stream->base.device;
    xph_blaslt *lt = device->blaslt;
    if (!lt || !stream->workspace) return;
    pthread_mutex_lock(&lt->lock);
    for (int64_t i = 0; i < lt->workspace_count; i++)
        if (lt->workspaces[i].of == stream) lt->workspaces[i--] = lt->workspaces[--lt->workspace_count];
    pthread_mutex_unlock(&lt->lock);
    xph_cuda_free(&device->base, stream->workspace, WORKSPACE);
    stream->workspace = NULL;
}

static const workspace *workspace_of(const xph_blaslt *lt, cudaStream_t stream)
{
    for (int64_t i = 0; i < lt->workspace_count; i++)
        if (lt->workspaces[i].of->stream == stream) return &lt->workspaces[i];
    return NULL;
}

/* ---- plans ---- */

/* The library reads off the address of the bias how it is aligned. */
int xph_lt_bias(const plan *p, const void *bias)
{
    return xph_lt.cublasLtMatmulDescSetAttribute(p->desc, LT_DESC_BIAS_POINTER, &bias, sizeof bias);
}

static int set_desc(plan *p, const void *of_bias)
{
    const shape *s = &p->asked;
    const int32_t bias = LT_EPILOGUE_BIAS;
    int code = xph_lt.cublasLtMatmulDescCreate(&p->desc, s->compute, LT_R_32F);
    if (!code)
        code = xph_lt.cublasLtMatmulDescSetAttribute(p->desc, LT_DESC_TRANSA, &s->transpose_a,
                                                     sizeof s->transpose_a);
    if (!code)
        code = xph_lt.cublasLtMatmulDescSetAttribute(p->desc, LT_DESC_TRANSB, &s->transpose_b,
                                                     sizeof s->transpose_b);
    if (!code && s->bias >= 0) {
        code = xph_lt.cublasLtMatmulDescSetAttribute(p->desc, LT_DESC_EPILOGUE, &bias, sizeof bias);
        if (!code)
            code = xph_lt.cublasLtMatmulDescSetAttribute(p->desc, LT_DESC_BIAS_DATA_TYPE, &s->bias,
                                                         sizeof s->bias);
        if (!code) code = xph_lt_bias(p, of_bias);
    }
    return code;
}

static int set_layouts(plan *p)
{
    const shape *s = &p->asked;
    uint64_t m = (uint64_t)s->m, n = (uint64_t)s->n, k = (uint64_t)s->k;
    bool ta = s->transpose_a == LT_OP_T, tb = s->transpose_b == LT_OP_T;
    int code = xph_lt.cublasLtMatrixLayoutCreate(&p->a, s->type_ab, ta ? k : m, ta ? m : k, s->lda);
    if (!code) code = xph_lt.cublasLtMatrixLayoutCreate(&p->b, s->type_ab, tb ? n : k, tb ? k : n, s->ldb);
    if (!code) code = xph_lt.cublasLtMatrixLayoutCreate(&p->c, s->type_cd, m, n, s->ldc);
    if (!code) code = xph_lt.cublasLtMatrixLayoutCreate(&p->d, s->type_cd, m, n, s->ldd);
    return code;
}

int xph_lt_describe(plan *p, const void *of_bias)
{
    const int code = set_desc(p, of_bias);
    return code ? code : set_layouts(p);
}

/* At most `wanted` algorithms, best first as the library thinks. */
int xph_lt_ask(const xph_blaslt *lt, const plan *p, lt_found *found, int wanted, int *count)
{
    const uint64_t most = WORKSPACE;
    const uint32_t schemes = LT_REDUCTION_COMPUTE_TYPE | LT_REDUCTION_OUTPUT_TYPE;
    lt_pref pref = NULL;
    *count = 0;
    int code = xph_lt.cublasLtMatmulPreferenceCreate(&pref);
    if (code) return code;
    code = xph_lt.cublasLtMatmulPreferenceSetAttribute(pref, LT_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    if (!code)
        code = xph_lt.cublasLtMatmulPreferenceSetAttribute(pref, LT_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                                           sizeof schemes);
    for (int i = 0; !code && i < MATRICES; i++) {
        const uint32_t align = (uint32_t)p->asked.align[i];
        code = xph_lt.cublasLtMatmulPreferenceSetAttribute(pref, LT_PREF_MIN_ALIGNMENT_A_BYTES + i, &align,
                                                           sizeof align);
    }
    if (!code)
        code = xph_lt.cublasLtMatmulAlgoGetHeuristic(lt->handle, p->desc, p->a, p->b, p->c, p->d, pref,
                                                     wanted, found, count);
    xph_lt.cublasLtMatmulPreferenceDestroy(pref);
    return code;
}

static int ask(const xph_blaslt *lt, plan *p)
{
    int count = 0, code = xph_lt_ask(lt, p, &p->found, 1, &count);
    if (code) return code;
    return count < 1 ? NO_ALGORITHM : p->found.state;
}

/* Of the file, if the library still takes it. 0: it does. */
static int take_choice(const xph_blaslt *lt, plan *p, const lt_choice *choice)
{
    int code =
        xph_lt.cublasLtMatmulAlgoCheck(lt->handle, p->desc, p->a, p->b, p->c, p->d, &choice->algo, &p->found);
    if (!code) code = p->found.state;
    if (!code && p->found.workspace_bytes > WORKSPACE) code = NO_ALGORITHM;
    p->found.algo = choice->algo; /* the check leaves it as it was */
    return code;
}

/* ---- refusals ---- */

const char *xph_lt_type(int32_t type)
{
    return type == LT_R_16BF ? "bf16" : type == LT_R_16F ? "f16" : "f32";
}

static const char *status_name(int status)
{
    static const char *const names[] = {
        [1] = "NOT_INITIALIZED", [3] = "ALLOC_FAILED",    [7] = "INVALID_VALUE",  [8] = "ARCH_MISMATCH",
        [11] = "MAPPING_ERROR",  [14] = "INTERNAL_ERROR", [15] = "NOT_SUPPORTED", [16] = "LICENSE_ERROR"};
    if (status == NO_ALGORITHM) return "no algorithm";
    const char *known = status > 0 && status < (int)(sizeof names / sizeof *names) ? names[status] : NULL;
    return known ? known : "unknown";
}

/* The same product by other addresses. */
static bool said(const xph_blaslt *lt, const plan *refused)
{
    for (const plan *p = lt->plans; p; p = p->next)
        if (p != refused && p->refused && memcmp(&p->key, &refused->key, offsetof(shape, align)) == 0)
            return true;
    return false;
}

/* In the terms of the layer: y = x W^T, dw = dy^T x, dx = dy W. */
static void tell(const xph_blaslt *lt, const plan *p, const xph_cuda_stream *stream, const char *when)
{
    const shape *s = &p->key;
    const bool forward = s->transpose_a == LT_OP_T, dw = s->transpose_b == LT_OP_T;
    const xph_cuda_device *device = (const xph_cuda_device *)stream->base.device;
    char text[320];
    if (said(lt, p)) return;
    snprintf(text, sizeof text,
             "cuda:%d: cuBLASLt refuses %s of %lld rows, %lld to %lld (%s%s%s%s; distances of rows %lld %lld "
             "%lld): status %d (%s) %s; own kernels do it",
             device->ordinal,
             forward ? "y"
             : dw    ? "dw"
                     : "dx",
             (long long)(dw ? s->k : s->n), (long long)(forward ? s->k : s->m),
             (long long)(forward ? s->m
                         : dw    ? s->n
                                 : s->k),
             xph_lt_type(s->type_ab), s->compute == LT_COMPUTE_32F_FAST_TF32 ? " as tf32" : "",
             s->bias >= 0 ? ", bias " : "", s->bias >= 0 ? xph_lt_type(s->bias) : "", (long long)s->lda,
             (long long)s->ldb, (long long)s->ldd, p->refused, status_name(p->refused), when);
    device->host.log(device->host.context, EXPHIL_LOG_WARNING, text);
}

/* Whatever the library left in the way of errors is no one's: what stays of it the next call finds again. A recording may
 * hold half of what it did. */
static int refuse(const xph_blaslt *lt, plan *p, int status, xph_cuda_stream *stream, const char *when)
{
    cudaGetLastError();
    p->refused = status;
    if (stream) tell(lt, p, stream, when);
    if (stream && stream->recording) stream->spoilt = 1;
    return XPH_CUDA_REFUSED;
}

/* ---- products ---- */

typedef struct product {
    shape shape;
    const void *a, *b, *c, *bias;
    void *d, *scratch; /* scratch: NULL where there is none */
    float beta;
} product;

/* Under the lock. NULL: no memory. */
static plan *plan_of(xph_blaslt *lt, const product *wanted, xph_cuda_stream *stream)
{
    plan *p = lt->plans;
    while (p && memcmp(&p->key, &wanted->shape, sizeof p->key) != 0) p = p->next;
    if (p) return p;
    p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->key = wanted->shape;
    const lt_choice *choice = xph_choices_take(&lt->choices, &p->key);
    p->asked = xph_lt_transposed(&p->key, choice ? choice->shape.transposed : 0);
    int status = xph_lt_describe(p, wanted->bias);
    if (!status) status = choice ? take_choice(lt, p, choice) : ask(lt, p);
    p->next = lt->plans;
    lt->plans = p;
    if (status)
        refuse(lt, p, status, stream,
               choice ? "when asked for the one that was chosen" : "when asked for an algorithm");
    return p;
}

static int32_t alignment(const void *address)
{
    uintptr_t low = (uintptr_t)address & -(uintptr_t)address;
    return low == 0 || low > 256 ? 256 : (int32_t)low;
}

static xph_blaslt *current(void)
{
    int ordinal = -1;
    if (loaded != 1 || cudaGetDevice(&ordinal) != cudaSuccess || ordinal < 0 || ordinal >= DEVICES)
        return NULL;
    return of_ordinal[ordinal].users ? &of_ordinal[ordinal] : NULL;
}

/* The device itself failed, or may have begun. */
static bool is_fatal(int status)
{
    return status == LT_STATUS_EXECUTION_FAILED || status == LT_STATUS_MAPPING_ERROR;
}

static int fatal(void)
{
    cudaError_t code = cudaPeekAtLastError();
    return (int)(code ? code : cudaErrorLaunchFailure);
}

/* Under the lock. */
static int multiply_by(xph_blaslt *lt, plan *made, const product *p, xph_cuda_stream *own,
                       cudaStream_t stream, void *memory)
{
    const float one = 1.0f;
    if (made->refused) return XPH_CUDA_REFUSED;
    if (!memory && made->found.workspace_bytes) return XPH_CUDA_REFUSED; /* not a stream of table A's */
    const void *operand[2] = {p->a, p->b};
    if (made->asked.transposed && !p->scratch) return XPH_CUDA_REFUSED;
    const int code = xph_lt_transpose(&made->key, made->asked.transposed, operand, p->scratch, stream);
    if (code) return code;
    int status = p->shape.bias >= 0 ? xph_lt_bias(made, p->bias) : 0;
    if (!status)
        status = xph_lt.cublasLtMatmul(lt->handle, made->desc, &one, operand[0], made->a, operand[1], made->b,
                                       &p->beta, p->c ? p->c : p->d, made->c, p->d, made->d,
                                       &made->found.algo, memory, memory ? WORKSPACE : 0, stream);
    if (!status) return cudaSuccess;
    if (is_fatal(status)) return fatal();
    return refuse(lt, made, status, own, "when it was to run");
}

/* A cudaError_t, or XPH_CUDA_REFUSED: nothing was done. */
static int multiply(product *p, cudaStream_t stream)
{
    xph_blaslt *lt = current();
    const void *address[ALIGNMENTS] = {p->a, p->b, p->c ? p->c : p->d, p->d, p->bias};
    if (!lt) return XPH_CUDA_REFUSED;
    for (int i = 0; i < ALIGNMENTS; i++) p->shape.align[i] = alignment(address[i]);
    pthread_mutex_lock(&lt->lock);
    const workspace *known = workspace_of(lt, stream);
    xph_cuda_stream *own = known ? known->of : NULL;
    plan *made = plan_of(lt, p, own);
    int code = made ? multiply_by(lt, made, p, own, stream, known ? known->address : NULL)
                    : (int)cudaErrorMemoryAllocation;
    pthread_mutex_unlock(&lt->lock);
    return code;
}

static int32_t type_of(xph_type type)
{
    return type == XPH_BF16 ? LT_R_16BF : type == XPH_F16 ? LT_R_16F : LT_R_32F;
}

static int32_t compute_of(xph_type type, int32_t math)
{
    return type == XPH_F32 && math == XPH_MATH_TF32 ? LT_COMPUTE_32F_FAST_TF32 : LT_COMPUTE_32F;
}

static bool known(xph_type type)
{
    return type == XPH_F32 || type == XPH_BF16 || type == XPH_F16;
}

static bool lt_accepts(const void *args)
{
    const xph_linear_args *a = args;
    return current() && known(a->type) && !a->weights && a->rows && a->in && a->out;
}

/* Of the type of the result. */
static const void *bias_of(const xph_linear_args *a)
{
    if (!a->bias || a->type == XPH_F32) return a->bias;
    return (const char *)a->packed + xph_packed_bias_at(a->in, a->out);
}

static shape y_shape(const xph_linear_args *a)
{
    return (shape){.m = a->out,
                   .n = a->rows,
                   .k = a->in,
                   .lda = a->in,
                   .ldb = a->ldx,
                   .ldc = a->residual ? a->ldr : a->ldy,
                   .ldd = a->ldy,
                   .transpose_a = LT_OP_T,
                   .transpose_b = LT_OP_N,
                   .type_ab = type_of(a->type),
                   .type_cd = type_of(a->type),
                   .compute = compute_of(a->type, a->math),
                   .bias = a->bias ? type_of(a->type) : -1};
}

static int lt_linear(const void *args, cudaStream_t stream)
{
    const xph_linear_args *a = args;
    if (a->type != XPH_F32 && !a->packed) return XPH_CUDA_REFUSED;
    product p = {.shape = y_shape(a),
                 .a = a->type == XPH_F32 ? a->w : a->packed,
                 .b = a->x,
                 .c = a->residual,
                 .bias = bias_of(a),
                 .d = a->y,
                 .beta = a->residual ? 1.0f : 0.0f};
    return multiply(&p, stream);
}

static bool lt_accepts_grad(const void *args)
{
    const xph_linear_grad_args *g = args;
    return current() && known(g->type) && g->rows && g->in && g->out;
}

static shape dw_shape(const xph_linear_grad_args *g)
{
    return (shape){.m = g->in,
                   .n = g->out,
                   .k = g->rows,
                   .lda = g->ldx,
                   .ldb = g->lddy,
                   .ldc = g->in,
                   .ldd = g->in,
                   .transpose_a = LT_OP_N,
                   .transpose_b = LT_OP_T,
                   .type_ab = type_of(g->type),
                   .type_cd = LT_R_32F,
                   .compute = compute_of(g->type, g->math),
                   .bias = -1};
}

/* dw += dy^T x */
static int multiply_dw(const xph_linear_grad_args *g, cudaStream_t stream)
{
    product p = {.shape = dw_shape(g),
                 .a = g->x,
                 .b = g->dy,
                 .c = g->dw,
                 .d = g->dw,
                 .scratch = g->scratch,
                 .beta = 1.0f};
    return multiply(&p, stream);
}

static shape dx_shape(const xph_linear_grad_args *g)
{
    return (shape){.m = g->in,
                   .n = g->rows,
                   .k = g->out,
                   .lda = g->in,
                   .ldb = g->lddy,
                   .ldc = g->lddx,
                   .ldd = g->lddx,
                   .transpose_a = LT_OP_N,
                   .transpose_b = LT_OP_N,
                   .type_ab = type_of(g->type),
                   .type_cd = type_of(g->type),
                   .compute = compute_of(g->type, g->math),
                   .bias = -1};
}

/* dx = dy W, or dx += */
static int multiply_dx(const xph_linear_grad_args *g, cudaStream_t stream)
{
    product p = {.shape = dx_shape(g),
                 .a = g->type == XPH_F32 ? g->w : g->packed,
                 .b = g->dy,
                 .c = g->dx,
                 .d = g->dx,
                 .scratch = g->scratch,
                 .beta = g->dx_add ? 1.0f : 0.0f};
    return p.a ? multiply(&p, stream) : XPH_CUDA_REFUSED;
}

/* Its parts run one after the other: each has all of it. */
static size_t lt_grad_scratch(const void *args)
{
    const shape dw = dw_shape(args), dx = dx_shape(args);
    const xph_blaslt *lt = current();
    const size_t own = xph_linear_grad_scratch(args);
    const size_t of_dw = lt ? xph_choices_scratch(&lt->choices, &dw) : 0;
    const size_t of_dx = lt ? xph_choices_scratch(&lt->choices, &dx) : 0;
    const size_t more = of_dw > of_dx ? of_dw : of_dx;
    return own > more ? own : more;
}

static int own_grad(const xph_linear_grad_args *g, cudaStream_t stream)
{
    return xph_linear_accepts_grad(g) ? xph_linear_grad(g, stream) : (int)cudaErrorInvalidValue;
}

/* What the library does not do - the gradient of the bias, always - is left to the next candidate. */
static int lt_linear_grad(const void *args, cudaStream_t stream)
{
    const xph_linear_grad_args *g = args;
    xph_linear_grad_args rest = *g;
    int code = g->dw ? multiply_dw(g, stream) : XPH_CUDA_REFUSED;
    if (code == cudaSuccess) rest.dw = NULL;
    rest.dx = NULL; /* last: it may lie where x does */
    if (code == XPH_CUDA_REFUSED) code = cudaSuccess;
    if (!code && (rest.dw || rest.dbias)) code = own_grad(&rest, stream);
    if (code || !g->dx) return code;
    code = multiply_dx(g, stream);
    if (code != XPH_CUDA_REFUSED) return code;
    rest = *g;
    rest.dw = rest.dbias = NULL;
    return own_grad(&rest, stream);
}

/* ---- names of products with a choice ---- */

/* Kept for good: plans hold them. As many as there are choices in the files that a process reads. */
static const char *kept_name(const char *name)
{
    static struct kept {
        struct kept *next;
        char name[];
    } * all;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    struct kept *k = all;
    while (k && strcmp(k->name, name) != 0) k = k->next;
    if (!k) {
        k = malloc(sizeof *k + strlen(name) + 1);
        if (k) {
            strcpy(k->name, name);
            k->next = all;
            all = k;
        }
    }
    pthread_mutex_unlock(&lock);
    return k ? k->name : NULL;
}

static void name_of(const xph_blaslt *lt, const shape *of, char name[LT_NAME])
{
    const lt_choice *choice = xph_choices_find(&lt->choices, of, false);
    snprintf(name, LT_NAME, "-");
    if (choice) xph_choice_name(choice, name);
}

const char *xph_blaslt_name(const xph_device *device, const xph_cuda_candidate *of, const void *args)
{
    const xph_blaslt *lt = ((const xph_cuda_device *)device)->blaslt;
    char name[128], first[LT_NAME], second[LT_NAME];
    if (!lt || !lt->choices.count) return of->name;
    if (of->launch == lt_linear) {
        /* a plan has no addresses yet: whether there is a bias is not known */
        shape y = y_shape(args);
        name_of(lt, &y, first);
        y.bias = y.bias < 0 ? y.type_cd : -1;
        if (*first == '-') name_of(lt, &y, first);
        if (*first == '-') return of->name;
        snprintf(name, sizeof name, "%s/%s", of->name, first);
    } else if (of->launch == lt_linear_grad) {
        const shape dw = dw_shape(args), dx = dx_shape(args);
        name_of(lt, &dw, first);
        name_of(lt, &dx, second);
        if (*first == '-' && *second == '-') return of->name;
        snprintf(name, sizeof name, "%s/%s/%s", of->name, first, second);
    } else {
        return of->name;
    }
    const char *kept = kept_name(name);
    return kept ? kept : of->name;
}

/* ---- candidates of products: the library's, then own ones ---- */

const xph_cuda_candidate xph_cuda_linear[] = {
    {"linear_cublaslt", lt_accepts, NULL, lt_linear},
    {"linear_narrow", xph_narrow_accepts, NULL, xph_narrow_linear},
    {"linear_few", xph_linear_accepts_few, NULL, xph_linear_few},
    {"linear", xph_linear_accepts, NULL, xph_linear},
    {NULL, NULL, NULL, NULL},
};
const xph_cuda_candidate xph_cuda_linear_grad[] = {
    {"linear_grad_cublaslt", lt_accepts_grad, lt_grad_scratch, lt_linear_grad},
    {"linear_grad", xph_linear_accepts_grad, xph_linear_grad_scratch, xph_linear_grad},
    {NULL, NULL, NULL, NULL},
};
