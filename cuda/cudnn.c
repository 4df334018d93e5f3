/* Attention by NVIDIA's cuDNN, if the machine has it: opened by name when a shape for it is first asked for, never linked.
 * Forward alone. The gradient stays with own kernels: what a learned bias needs of cuDNN there, the gradient of a whole
 * [heads, time, time] matrix for each stream, is more to move than they do in all.
 *
 * The library knows neither resets nor the ring. It computes every stream as one whole episode, and a kernel of ours does
 * the tiles again of which that is not true (attention_tile.cu), so that results are right whatever the resets are; where
 * that would be most of them the library is not asked (args.fresh).
 *
 * For every shape a graph is described, an engine requested, and both kept: the same bits in every run on the same card.
 * Engines that add in no fixed order are not taken. Its workspace, the bias as a matrix and the log-sum-exp as it lays it
 * out are in the operation's scratch. A shape that the library refuses, when it is asked or when that is to run, is not
 * requested again: the refusal is logged once with shape and status, and the next candidate does it.
 */
#include "cudnn_attention.h"
#include "device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef XPH_CUDNN_NAMES /* an emulated GPU has none: the real one would look for a driver */
#  define XPH_CUDNN_NAMES "libcudnn.so.9", "libcudnn.so"
#endif

enum { DEVICES = 64, WHOLE = 8 /* what dim and distances of rows are multiples of */, ALIGNED = 16 };
enum { TIME_LEAST = 512, WORKSPACE_MOST = 64 << 20, BIAS_MOST = 32 << 20, ROUND = 256 };

typedef struct plan {
    struct plan *next;
    xph_cudnn_shape key;
    xph_cudnn_graph graph;
    int refused; /* a cudnnStatus_t or XPH_CUDNN_NO_ENGINE; 0: no */
} plan;

/* Of an ordinal. A handle is no thing for two threads at once: contexts that share a device wait for each other while
 * work is enqueued. */
typedef struct xph_cudnn {
    dn_handle handle; /* from the first shape on */
    plan *plans;
    int users; /* devices of this ordinal that are open */
    int failed;
} xph_cudnn;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static dn_library library;                               /* loaded once, stays */
static int loaded;                                       /* 1: it is there; -1: it is not */
static xph_cudnn of_ordinal[DEVICES];

/* For whom this thread is at work, which candidates are not told. */
static _Thread_local const xph_cuda_device *asking;
static _Thread_local xph_cuda_stream *running;

void xph_cudnn_for(const xph_device *device, xph_stream *stream)
{
    asking = (const xph_cuda_device *)device;
    running = (xph_cuda_stream *)stream;
}

static void say(exphil_log_level level, const char *text)
{
    if (asking) asking->host.log(asking->host.context, level, text);
}

/* ---- the library ---- */

static bool find_functions(void *at)
{
#define FIND(name)                                                                                           \
  *(void **)(&library.name) = dlsym(at, #name);                                                              \
  if (!library.name) return false;
    DN_EACH_FUNCTION(FIND)
#undef FIND
    return true;
}

/* EXPHIL_CUDNN: a path to use instead, or "none". Under the lock, by a thread that asks for a device. */
static bool load(void)
{
    static const char *const names[] = {XPH_CUDNN_NAMES};
    const char *asked = secure_getenv("EXPHIL_CUDNN");
    const char *why = NULL;
    char text[512];
    void *at = NULL;
    if (loaded) return loaded > 0;
    loaded = -1;
    if (asked && strcmp(asked, "none") == 0) return false;
    if (asked && *asked) {
        at = xph_cuda_library(asked, &why);
    } else {
        for (size_t i = 0; !at && i < sizeof names / sizeof *names; i++)
            at = xph_cuda_library(names[i], &why);
    }
    if (at) why = "it lacks functions";
    if (at && find_functions(at)) {
        const size_t version = library.cudnnGetVersion();
        loaded = version >= DN_LEAST_VERSION ? 1 : -1;
        why = "it is too old";
        snprintf(text, sizeof text, "cuda: attention by cuDNN %zu", version);
        if (loaded > 0) say(EXPHIL_LOG_INFO, text);
    }
    if (loaded > 0) return true;
    if (!why) why = "not found";
    const bool named = asked && *asked && !strstr(why, asked);
    snprintf(text, sizeof text, "cuda: no cuDNN, attention by own kernels: %s%.250s%s%s",
             named ? "EXPHIL_CUDNN: " : "", named ? asked : "", named ? ": " : "", why);
    say(asked && *asked ? EXPHIL_LOG_WARNING : EXPHIL_LOG_INFO, text);
    return false;
}

void xph_cudnn_open(const xph_cuda_device *device)
{
    if (device->ordinal >= DEVICES) return;
    pthread_mutex_lock(&lock);
    of_ordinal[device->ordinal].users++;
    pthread_mutex_unlock(&lock);
}

void xph_cudnn_close(const xph_cuda_device *device)
{
    if (device->ordinal >= DEVICES) return;
    pthread_mutex_lock(&lock);
    xph_cudnn *dn = &of_ordinal[device->ordinal];
    if (--dn->users == 0) {
        while (dn->plans) {
            plan *next = dn->plans->next;
            xph_cudnn_graph_drop(&library, &dn->plans->graph);
            free(dn->plans);
            dn->plans = next;
        }
        if (dn->handle) library.cudnnDestroy(dn->handle);
        dn->handle = NULL;
        dn->failed = 0;
    }
    pthread_mutex_unlock(&lock);
    xph_cudnn_for(NULL, NULL);
}

/* Under the lock. NULL: there is none to ask. */
static xph_cudnn *current(void)
{
    int ordinal = -1;
    if (loaded < 0 || cudaGetDevice(&ordinal) != cudaSuccess || ordinal < 0 || ordinal >= DEVICES)
        return NULL;
    xph_cudnn *dn = &of_ordinal[ordinal];
    return dn->users && !dn->failed && load() ? dn : NULL;
}

/* ---- refusals ---- */

static const char *status_name(int status)
{
    if (status == XPH_CUDNN_NO_ENGINE) return "no engine";
    if (status >= DN_EXECUTION_FAILED) return "EXECUTION_FAILED";
    if (status >= DN_INTERNAL_ERROR) return "INTERNAL_ERROR";
    if (status >= DN_NOT_SUPPORTED) return "NOT_SUPPORTED";
    if (status >= DN_BAD_PARAM) return "BAD_PARAM";
    return status == DN_NOT_INITIALIZED ? "NOT_INITIALIZED" : "unknown";
}

static void tell(const plan *p, const char *when)
{
    const xph_cudnn_shape *s = &p->key;
    char text[320];
    snprintf(text, sizeof text,
             "cuda:%d: cuDNN refuses attention of %lld x %lld frames, %lld heads of %lld, window %lld (%s; "
             "distances of rows %lld %lld): status %d (%s) %s%s; own kernels do it",
             asking ? asking->ordinal : 0, (long long)s->batch, (long long)s->time, (long long)s->heads,
             (long long)s->dim, (long long)s->window, s->type == DN_BFLOAT16 ? "bf16" : "f16",
             (long long)s->ld_in, (long long)s->ld_out, p->refused, status_name(p->refused), when,
             p->graph.where ? p->graph.where : "");
    say(EXPHIL_LOG_WARNING, text);
}

/* Whatever the library left in the way of errors is no one's. A recording may hold half of what it did. */
static int refuse(plan *p, int status, const char *when)
{
    cudaGetLastError();
    p->refused = status;
    tell(p, when);
    if (running && running->recording) running->spoilt = 1;
    return XPH_CUDA_REFUSED;
}

/* ---- plans ---- */

static bool start(xph_cudnn *dn)
{
    char text[128];
    if (dn->handle) return true;
    const int status = library.cudnnCreate(&dn->handle);
    if (!status) return true;
    cudaGetLastError();
    dn->handle = NULL;
    dn->failed = 1;
    snprintf(text, sizeof text, "cuda: cuDNN does not start, attention by own kernels: status %d (%s)",
             status, status_name(status));
    say(EXPHIL_LOG_WARNING, text);
    return false;
}

static plan *known(const xph_cudnn *dn, const xph_cudnn_shape *s)
{
    plan *p = dn->plans;
    while (p && memcmp(&p->key, s, sizeof *s) != 0) p = p->next;
    return p;
}

/* Under the lock; refused or not. NULL: no memory. */
static plan *plan_of(xph_cudnn *dn, const xph_cudnn_shape *s)
{
    plan *p = known(dn, s);
    if (p) return p;
    p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->key = *s;
    int status = xph_cudnn_graph_make(&library, dn->handle, s, &p->graph);
    if (!status) status = xph_cudnn_plan_make(&library, dn->handle, &p->graph, WORKSPACE_MOST);
    p->next = dn->plans;
    dn->plans = p;
    if (status) refuse(p, status, "when asked for ");
    return p;
}

/* ---- attention ---- */

static xph_cudnn_shape shape_of(const xph_attention_args *a)
{
    return (xph_cudnn_shape){.batch = a->batch,
                             .heads = a->heads,
                             .time = a->time,
                             .dim = a->dim,
                             .window = a->window < a->time ? a->window : a->time,
                             .ld_in = a->ldqkv,
                             .ld_out = a->ldy,
                             .type = a->type == XPH_BF16 ? DN_BFLOAT16 : DN_HALF};
}

static size_t rounded(int64_t bytes)
{
    return ((size_t)bytes + ROUND - 1) / ROUND * ROUND;
}

/* Scratch: the bias as a matrix, the log-sum-exp, the workspace. */
static size_t bias_bytes(const xph_attention_args *a)
{
    return rounded(a->heads * a->time * a->time * (int64_t)sizeof(float));
}
static size_t stats_bytes(const xph_attention_args *a)
{
    return rounded(a->batch * a->heads * a->time * (int64_t)sizeof(float));
}

/* The bias as a matrix is written and read again for every stream: no more of it than the other matrices, nor than lies
 * in a cache. And most tiles are to be right at once: where streams begin anew, or windows are short. */
static bool is_worth_it(const xph_attention_args *a)
{
    const int64_t others = a->batch * a->time * a->heads * a->dim * 4 * 2;
    return (a->type == XPH_BF16 || a->type == XPH_F16) && a->method == XPH_ATTENTION_AUTO && a->batch > 0 &&
           a->time >= TIME_LEAST && a->dim % WHOLE == 0 && a->ldqkv % WHOLE == 0 && a->ldy % WHOLE == 0 &&
           a->heads <= BIAS_MOST / a->time / a->time && (int64_t)bias_bytes(a) <= BIAS_MOST &&
           (int64_t)bias_bytes(a) <= others && (a->fresh || a->window <= a->time / 4);
}

/* Makes the plan, which is why a query may take seconds: engines are compiled. */
bool xph_cudnn_attention_accepts(const void *args)
{
    const xph_attention_args *a = args;
    if (!xph_attention_fix_accepts(a) || !is_worth_it(a)) return false;
    const xph_cudnn_shape s = shape_of(a);
    pthread_mutex_lock(&lock);
    xph_cudnn *dn = current();
    const plan *p = dn && start(dn) ? plan_of(dn, &s) : NULL;
    const bool accepts = p && !p->refused;
    pthread_mutex_unlock(&lock);
    return accepts;
}

size_t xph_cudnn_attention_scratch(const void *args)
{
    const xph_attention_args *a = args;
    const xph_cudnn_shape s = shape_of(a);
    pthread_mutex_lock(&lock);
    xph_cudnn *dn = current();
    const plan *p = dn ? known(dn, &s) : NULL;
    const size_t workspace = p ? rounded(p->graph.workspace) : 0;
    pthread_mutex_unlock(&lock);
    return ROUND + bias_bytes(a) + stats_bytes(a) + workspace;
}

static bool is_fatal(int status)
{
    return status >= DN_EXECUTION_FAILED && status < DN_STATUS_END;
}

static int execute(const xph_attention_args *a, unsigned char *scratch, cudaStream_t stream)
{
    const xph_cudnn_shape s = shape_of(a);
    const size_t part = (size_t)(a->heads * a->dim) * sizeof(uint16_t);
    unsigned char *const qkv = (unsigned char *)(uintptr_t)a->qkv;
    void *const data[] = {
        [XPH_CUDNN_Q] = qkv,        [XPH_CUDNN_K] = qkv + part, [XPH_CUDNN_V] = qkv + 2 * part,
        [XPH_CUDNN_BIAS] = scratch, [XPH_CUDNN_Y] = a->y,       [XPH_CUDNN_STATS] = scratch + bias_bytes(a)};
    xph_cudnn *dn = current();
    plan *p = dn ? known(dn, &s) : NULL;
    if (!p || p->refused) return XPH_CUDA_REFUSED;
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        if ((uintptr_t)data[i] % ALIGNED)
            return refuse(p, DN_BAD_PARAM_MISALIGNED_POINTER, "for its addresses");
    int status = library.cudnnSetStream(dn->handle, stream);
    if (!status)
        status =
            xph_cudnn_run(&library, dn->handle, &p->graph, data, scratch + bias_bytes(a) + stats_bytes(a));
    if (!status) return cudaSuccess;
    if (!is_fatal(status)) return refuse(p, status, "when it was to run");
    const cudaError_t code = cudaPeekAtLastError();
    return (int)(code ? code : cudaErrorLaunchFailure);
}

int xph_cudnn_attention(const void *args, cudaStream_t stream)
{
    const xph_attention_args *a = args;
    unsigned char *scratch = a->scratch;
    scratch += (ROUND - (uintptr_t)scratch % ROUND) % ROUND;
    int code = xph_attention_spread_bias(a, (float *)scratch, stream);
    if (code) return code;
    pthread_mutex_lock(&lock);
    code = execute(a, scratch, stream);
    pthread_mutex_unlock(&lock);
    if (code) return code;
    return xph_attention_fix(a, (const float *)(scratch + bias_bytes(a)), stream);
}
