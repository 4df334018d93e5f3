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
#include "choices.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WORKSPACE LT_WORKSPACE
#ifndef XPH_CUBLASLT_NAMES /* an emulated GPU has none: the real one would look for a driver */
#  define XPH_CUBLASLT_NAMES "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"
#endif

enum { DEVICES = 64, MATRICES = LT_MATRICES, ALIGNMENTS = LT_ALIGNMENTS };
enum { NO_ALGORITHM = -1 }; /* beside cublasStatus_t */

typedef lt_shape shape;

typedef struct plan {
    struct plan *next;
    shape key;
    lt_desc desc;
    lt_layout a, b, c, d;
    lt_found found;
    int refused; /* a cublasStatus_t or NO_ALGORITHM; 0: no */
} plan;

typedef struct workspace {
    xph_cuda_stream *of;
    void *address;
} workspace;

struct xph_blaslt {
    pthread_mutex_t lock;
    lt_handle handle;
    plan *plans;
    workspace *workspaces;
    int64_t workspace_count, workspace_capacity;
    lt_choices choices; /* of a file, as it was when the first device was opened; none: the library's own */
    atomic_int users; /* devices of this ordinal that are open; counted under opening, read without it */
};

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static lt_library library; /* loaded once, stays */
static int loaded;         /* 1: it is there; -1: it is not */
static xph_blaslt of_ordinal[DEVICES];

/* ---- the library ---- */

static bool find_functions(void *at)
{
#define FIND(name)                                                                                           \
  do {                                                                                                       \
    *(void **)(&library.name) = dlsym(at, #name);                                                            \
    if (!library.name) return false;                                                                         \
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

/* A loader opens what it is given, and waits for ever at a pipe. A name without a folder is for it to find. */
static const char *no_library(const char *path)
{
    struct stat about;
    if (!strchr(path, '/')) return NULL;
    if (stat(path, &about) != 0) return strerror(errno);
    return S_ISREG(about.st_mode) ? NULL : "it is no regular file";
}

/* EXPHIL_CUBLASLT: a path to use instead, or "none". */
static void load(const xph_cuda_device *device)
{
    static const char *const names[] = {XPH_CUBLASLT_NAMES};
    const char *asked = secure_getenv("EXPHIL_CUBLASLT");
    char text[512];
    void *at = NULL;
    const char *odd = NULL;
    if (loaded) return;
    loaded = -1;
    if (asked && *asked) {
        odd = no_library(asked);
        if (!odd && strcmp(asked, "none") != 0) at = dlopen(asked, RTLD_NOW | RTLD_LOCAL);
    } else {
        for (size_t i = 0; !at && i < sizeof names / sizeof *names; i++)
            at = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    bool wanted = !asked || strcmp(asked, "none") != 0;
    const char *why = at ? "it lacks functions" : odd ? odd : wanted ? dlerror() : NULL;
    if (at && find_functions(at)) {
        loaded = 1;
        snprintf(text, sizeof text, "cuda: products by cuBLASLt %zu", library.cublasLtGetVersion());
        device->host.log(device->host.context, EXPHIL_LOG_INFO, text);
        return;
    }
    snprintf(text, sizeof text, "cuda: no cuBLASLt, products by own kernels: %s", why ? why : "not wanted");
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
            xph_choices_read(path, device, library.cublasLtGetVersion(), &lt->choices, error);
        if (status < 0) return status;
    }
    if (pthread_mutex_init(&lt->lock, NULL) == 0) {
        if (library.cublasLtCreate(&lt->handle) == 0) return EXPHIL_OK;
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
    if (lt && lt->users == 0) status = begin(lt, device, error);
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

static void free_plan(plan *p)
{
    if (p->a) library.cublasLtMatrixLayoutDestroy(p->a);
    if (p->b) library.cublasLtMatrixLayoutDestroy(p->b);
    if (p->c) library.cublasLtMatrixLayoutDestroy(p->c);
    if (p->d) library.cublasLtMatrixLayoutDestroy(p->d);
    if (p->desc) library.cublasLtMatmulDescDestroy(p->desc);
    free(p);
}

void xph_blaslt_close(xph_cuda_device *device)
{
    xph_blaslt *lt = device->blaslt;
    if (!lt) return;
    pthread_mutex_lock(&opening);
    if (--lt->users == 0) {
        while (lt->plans) {
            plan *next = lt->plans->next;
            free_plan(lt->plans);
            lt->plans = next;
        }
        free(lt->workspaces);
        xph_choices_free(&lt->choices);
        library.cublasLtDestroy(lt->handle);
        pthread_mutex_destroy(&lt->lock);
    }
    pthread_mutex_unlock(&opening);
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
static int set_bias(const plan *p, const void *bias)
{
    return library.cublasLtMatmulDescSetAttribute(p->desc, LT_DESC_BIAS_POINTER, &bias, sizeof bias);
}

static int set_desc(plan *p, const void *of_bias)
{
    const shape *s = &p->key;
    const int32_t bias = LT_EPILOGUE_BIAS;
    int code = library.cublasLtMatmulDescCreate(&p->desc, s->compute, LT_R_32F);
    if (!code)
        code = library.cublasLtMatmulDescSetAttribute(p->desc, LT_DESC_TRANSA, &s->transpose_a,
                                                      sizeof s->transpose_a);
    if (!code)
        code = library.cublasLtMatmulDescSetAttribute(p->desc, LT_DESC_TRANSB, &s->transpose_b,
                                                      sizeof s->transpose_b);
    if (!code && s->bias >= 0) {
        code = library.cublasLtMatmulDescSetAttribute(p->desc, LT_DESC_EPILOGUE, &bias, sizeof bias);
        if (!code)
            code = library.cublasLtMatmulDescSetAttribute(p->desc, LT_DESC_BIAS_DATA_TYPE, &s->bias,
                                                          sizeof s->bias);
        if (!code) code = set_bias(p, of_bias);
    }
    return code;
}

static int set_layouts(plan *p)
{
    const shape *s = &p->key;
    uint64_t m = (uint64_t)s->m, n = (uint64_t)s->n, k = (uint64_t)s->k;
    bool ta = s->transpose_a == LT_OP_T, tb = s->transpose_b == LT_OP_T;
    int code = library.cublasLtMatrixLayoutCreate(&p->a, s->type_ab, ta ? k : m, ta ? m : k, s->lda);
    if (!code) code = library.cublasLtMatrixLayoutCreate(&p->b, s->type_ab, tb ? n : k, tb ? k : n, s->ldb);
    if (!code) code = library.cublasLtMatrixLayoutCreate(&p->c, s->type_cd, m, n, s->ldc);
    if (!code) code = library.cublasLtMatrixLayoutCreate(&p->d, s->type_cd, m, n, s->ldd);
    return code;
}

/* At most `wanted` algorithms, best first as the library thinks. */
static int ask_for(const xph_blaslt *lt, const plan *p, lt_found *found, int wanted, int *count)
{
    const uint64_t most = WORKSPACE;
    const uint32_t schemes = LT_REDUCTION_COMPUTE_TYPE | LT_REDUCTION_OUTPUT_TYPE;
    lt_pref pref = NULL;
    *count = 0;
    int code = library.cublasLtMatmulPreferenceCreate(&pref);
    if (code) return code;
    code =
        library.cublasLtMatmulPreferenceSetAttribute(pref, LT_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    if (!code)
        code = library.cublasLtMatmulPreferenceSetAttribute(pref, LT_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                                            sizeof schemes);
    for (int i = 0; !code && i < MATRICES; i++) {
        const uint32_t align = (uint32_t)p->key.align[i];
        code = library.cublasLtMatmulPreferenceSetAttribute(pref, LT_PREF_MIN_ALIGNMENT_A_BYTES + i, &align,
                                                            sizeof align);
    }
    if (!code)
        code = library.cublasLtMatmulAlgoGetHeuristic(lt->handle, p->desc, p->a, p->b, p->c, p->d, pref,
                                                      wanted, found, count);
    library.cublasLtMatmulPreferenceDestroy(pref);
    return code;
}

static int ask(const xph_blaslt *lt, plan *p)
{
    int count = 0, code = ask_for(lt, p, &p->found, 1, &count);
    if (code) return code;
    return count < 1 ? NO_ALGORITHM : p->found.state;
}

/* Of the file, if the library still takes it. 0: it does. */
static int take_choice(const xph_blaslt *lt, plan *p, const lt_choice *choice)
{
    int code = library.cublasLtMatmulAlgoCheck(lt->handle, p->desc, p->a, p->b, p->c, p->d, &choice->algo,
                                               &p->found);
    if (!code) code = p->found.state;
    if (!code && p->found.workspace_bytes > WORKSPACE) code = NO_ALGORITHM;
    p->found.algo = choice->algo; /* the check leaves it as it was */
    return code;
}

/* ---- refusals ---- */

static const char *type_name(int32_t type)
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
             type_name(s->type_ab), s->compute == LT_COMPUTE_32F_FAST_TF32 ? " as tf32" : "",
             s->bias >= 0 ? ", bias " : "", s->bias >= 0 ? type_name(s->bias) : "", (long long)s->lda,
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
    void *d;
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
    int status = set_desc(p, wanted->bias);
    if (!status) status = set_layouts(p);
    const lt_choice *choice = status ? NULL : xph_choices_find(&lt->choices, &p->key, true);
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
    int status = p->shape.bias >= 0 ? set_bias(made, p->bias) : 0;
    if (!status)
        status = library.cublasLtMatmul(lt->handle, made->desc, &one, p->a, made->a, p->b, made->b, &p->beta,
                                        p->c ? p->c : p->d, made->c, p->d, made->d, &made->found.algo, memory,
                                        memory ? WORKSPACE : 0, stream);
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
                 .beta = g->dx_add ? 1.0f : 0.0f};
    return p.a ? multiply(&p, stream) : XPH_CUDA_REFUSED;
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
    } *all;
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
        const shape y = y_shape(args);
        name_of(lt, &y, first);
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

/* ---- tuning ---- */

enum { FOUND_MOST = 32, SAMPLES = 5, LAUNCHES = 8 };

typedef struct bench {
    xph_cuda_device *device;
    xph_blaslt *lt;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    void *workspace, *block[ALIGNMENTS], *at[ALIGNMENTS];
    size_t bytes[ALIGNMENTS];
} bench;

static size_t width_of(int32_t type)
{
    return type == LT_R_32F ? 4 : 2;
}

/* Numbers between 1/2 and 1 of either sign in every type: zeros would cost less power than numbers do. */
static cudaError_t fill(const bench *b, void *to, size_t bytes, int32_t type)
{
    static const uint16_t exponent[] = {0x3800, 0x3f00};
    uint16_t words[4096];
    uint32_t random = 1;
    for (size_t i = 0; i < 4096; i++) {
        random = random * 1664525u + 1013904223u;
        const uint16_t high = (uint16_t)(exponent[type != LT_R_16F] | (random >> 16 & 0x807fu));
        words[i] = type == LT_R_32F && i % 2 == 0 ? (uint16_t)(random >> 16) : high;
    }
    for (size_t done = 0; done < bytes; done += sizeof words) {
        size_t part = bytes - done < sizeof words ? bytes - done : sizeof words;
        cudaError_t code =
            cudaMemcpyAsync((char *)to + done, words, part, cudaMemcpyHostToDevice, b->stream);
        if (code) return code;
    }
    return cudaStreamSynchronize(b->stream);
}

/* Blocks for the matrices of a product, aligned as it was. */
static exphil_status blocks_for(bench *b, const shape *s)
{
    const bool ta = s->transpose_a == LT_OP_T, tb = s->transpose_b == LT_OP_T;
    const int64_t columns[ALIGNMENTS] = {ta ? s->m : s->k, tb ? s->k : s->n, s->n, s->n, 1};
    const int64_t ld[ALIGNMENTS] = {s->lda, s->ldb, s->ldc, s->ldd, s->m};
    const int32_t type[ALIGNMENTS] = {s->type_ab, s->type_ab, s->type_cd, s->type_cd,
                                      s->bias < 0 ? LT_R_32F : s->bias};
    for (int i = 0; i < ALIGNMENTS; i++) {
        size_t size = (size_t)columns[i] * (size_t)ld[i] * width_of(type[i]);
        b->bytes[i] = size + 256;
        exphil_status status = xph_cuda_alloc(&b->device->base, b->bytes[i], &b->block[i]);
        if (status < 0) return status;
        b->at[i] = (char *)b->block[i] + (s->align[i] < 256 ? s->align[i] : 0);
        status = xph_cuda_check(&b->device->base, fill(b, b->at[i], size, type[i]), "filling a matrix");
        if (status < 0) return status;
    }
    return EXPHIL_OK;
}

static void blocks_free(bench *b)
{
    cudaStreamSynchronize(b->stream);
    for (int i = 0; i < ALIGNMENTS; i++) {
        if (b->block[i]) xph_cuda_free(&b->device->base, b->block[i], b->bytes[i]);
        b->block[i] = NULL;
    }
}

static int launch(const bench *b, const plan *p, const lt_found *found, int times)
{
    const float one = 1.0f, zero = 0.0f; /* sums that grow with every launch would end in infinities */
    int code = p->key.bias >= 0 ? set_bias(p, b->at[ALIGNMENTS - 1]) : 0;
    for (int i = 0; !code && i < times; i++)
        code = library.cublasLtMatmul(b->lt->handle, p->desc, &one, b->at[0], p->a, b->at[1], p->b, &zero,
                                      b->at[2], p->c, b->at[3], p->d, &found->algo, b->workspace, WORKSPACE,
                                      b->stream);
    return code;
}

/* The least milliseconds of one launch; below 0: it does not run. */
static float time_of(const bench *b, const plan *p, const lt_found *found)
{
    float least = -1.0f;
    if (launch(b, p, found, 1)) return -1.0f;
    for (int i = 0; i < SAMPLES; i++) {
        float ms = 0.0f;
        if (cudaEventRecord(b->begin, b->stream) || launch(b, p, found, LAUNCHES) ||
            cudaEventRecord(b->end, b->stream) || cudaEventSynchronize(b->end) ||
            cudaEventElapsedTime(&ms, b->begin, b->end))
            return -1.0f;
        if (least < 0.0f || ms < least) least = ms;
    }
    return least / (float)LAUNCHES;
}

static int32_t config(const lt_algo *algo, int attribute)
{
    int32_t value = -1;
    size_t written = 0;
    return library.cublasLtMatmulAlgoConfigGetAttribute(algo, attribute, &value, sizeof value, &written)
               ? -1
               : value;
}

/* Of two that differ by less than a hundredth the one that the library prefers. 0: none runs. */
static int fastest(bench *b, const plan *p, lt_choice *choice, float *own, float *best)
{
    static const int attributes[LT_CONFIGS] = {LT_CONFIG_ID, LT_CONFIG_TILE_ID, LT_CONFIG_STAGES_ID,
                                               LT_CONFIG_SPLITK_NUM};
    lt_found found[FOUND_MOST];
    int count = 0, tried = 0;
    *own = *best = -1.0f;
    if (ask_for(b->lt, p, found, FOUND_MOST, &count)) return 0;
    for (int i = 0; i < count; i++) {
        if (found[i].state || found[i].workspace_bytes > WORKSPACE) continue;
        const float ms = time_of(b, p, &found[i]);
        if (ms < 0.0f) continue;
        if (tried++ == 0) *own = ms;
        if (*best >= 0.0f && ms >= 0.99f * *best) continue;
        *best = ms;
        *choice = (lt_choice){.shape = p->key,
                              .workspace_bytes = (int64_t)found[i].workspace_bytes,
                              .algo = found[i].algo};
        for (int k = 0; k < LT_CONFIGS; k++) choice->config[k] = config(&found[i].algo, attributes[k]);
    }
    return tried;
}

static exphil_status tune_one(bench *b, const plan *p, lt_choices *to, xph_tune_fn told, void *user)
{
    char line[256], name[LT_NAME];
    lt_choice *choice = &to->of[to->count];
    float own = 0.0f, best = 0.0f;
    exphil_status status = blocks_for(b, &p->key);
    const int tried = status < 0 ? 0 : fastest(b, p, choice, &own, &best);
    blocks_free(b);
    if (status < 0) return status;
    if (!tried) {
        /* a product that the library began and did not end is the device's */
        const cudaError_t code = cudaStreamSynchronize(b->stream);
        return code ? xph_cuda_check(&b->device->base, code, "tuning") : EXPHIL_OK;
    }
    to->count++;
    xph_choice_name(choice, name);
    snprintf(line, sizeof line, "%s m %lld n %lld k %lld %s: %s, %.2f us; the library's own %.2f us; %d tried",
             p->key.transpose_a == LT_OP_T   ? "y"
             : p->key.transpose_b == LT_OP_T ? "dw"
                                             : "dx",
             (long long)p->key.m, (long long)p->key.n, (long long)p->key.k, type_name(p->key.type_ab), name,
             (double)best * 1e3, (double)own * 1e3, tried);
    told(user, line);
    return EXPHIL_OK;
}

/* In the order in which they were asked for first. */
static exphil_status tune_all(bench *b, lt_choices *to, xph_tune_fn told, void *user)
{
    exphil_status status = EXPHIL_OK;
    int64_t count = 0;
    for (const plan *p = b->lt->plans; p; p = p->next) count++;
    const plan **order = calloc((size_t)count + 1, sizeof(plan *));
    to->of = calloc((size_t)count + 1, sizeof *to->of);
    if (!order || !to->of) status = EXPHIL_E_MEMORY;
    int64_t i = count;
    for (const plan *p = b->lt->plans; status >= 0 && p; p = p->next) order[--i] = p;
    for (i = 0; status >= 0 && i < count; i++)
        if (!order[i]->refused) status = tune_one(b, order[i], to, told, user);
    free(order);
    return status;
}

static exphil_status bench_open(bench *b)
{
    exphil_status status = xph_cuda_alloc(&b->device->base, WORKSPACE, &b->workspace);
    if (status < 0) return status;
    cudaError_t code = cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking);
    if (!code) code = cudaEventCreateWithFlags(&b->begin, cudaEventDefault);
    if (!code) code = cudaEventCreateWithFlags(&b->end, cudaEventDefault);
    return xph_cuda_check(&b->device->base, code, "a stream to tune on");
}

static void bench_close(bench *b)
{
    if (b->begin) cudaEventDestroy(b->begin);
    if (b->end) cudaEventDestroy(b->end);
    if (b->stream) cudaStreamDestroy(b->stream);
    if (b->workspace) xph_cuda_free(&b->device->base, b->workspace, WORKSPACE);
}

exphil_status xph_cuda_tune(xph_device *device, const char *path, xph_tune_fn told, void *user,
                            exphil_error *error)
{
    XPH_ON(device);
    bench b = {.device = (xph_cuda_device *)device, .lt = ((xph_cuda_device *)device)->blaslt};
    lt_choices choices;
    if (!b.lt) return xph_cuda_fail(error, EXPHIL_E_UNSUPPORTED, 0, "there is no cuBLASLt to tune");
    xph_choices_head(&choices, b.device, library.cublasLtGetVersion());
    pthread_mutex_lock(&b.lt->lock);
    exphil_status status = bench_open(&b);
    if (status >= 0) status = tune_all(&b, &choices, told, user);
    bench_close(&b);
    pthread_mutex_unlock(&b.lt->lock);
    if (status < 0) xph_cuda_fail(error, status, 0, "tuning failed after %lld products", (long long)choices.count);
    if (status >= 0 && !choices.count)
        status = xph_cuda_fail(error, EXPHIL_E_UNSUPPORTED, 0, "cuBLASLt did no product: nothing to tune");
    if (status >= 0) status = xph_choices_write(path, &choices, error);
    xph_choices_free(&choices);
    return status;
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
    {"linear_grad_cublaslt", lt_accepts_grad, xph_linear_grad_scratch, lt_linear_grad},
    {"linear_grad", xph_linear_accepts_grad, xph_linear_grad_scratch, xph_linear_grad},
    {NULL, NULL, NULL, NULL},
};
