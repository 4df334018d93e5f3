/* Sums over ranks by NVIDIA's NCCL, if the machine has it: opened by name when a group of ranks is made or joined, never
 * linked.
 *
 * A sum in an order of ours is two exchanges and a kernel: data is cut into a slice for each rank, which gets it from all the
 * others, adds it up (ranks.cu) and sends it to all. That moves as many bytes as a ring would. What NCCL calls a sum
 * (ncclAllReduce) adds in an order that its version and the machines decide: only for who asks for it.
 *
 * Communicators do not block: NCCL works on in threads of its own after a call, and is asked until it is done, so that every
 * wait of the host for other ranks has an end. Nothing may be enqueued behind it before. ncclCommAbort itself waits, among
 * others for recordings to be destroyed, so it has a thread of its own, which xph_cuda_comm_close joins. */
#include "device.h"
#include "nccl_api.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef XPH_NCCL_NAME /* an emulated GPU has none: the real one would look for a driver */
#  define XPH_NCCL_NAME "libnccl.so.2"
#endif

enum { SLICE_ROUND = 4, HELLO_VERSION = 1 };
enum { GONE = -1, TIMED_OUT = -2, CANCELLED = -3 }; /* beside ncclResult_t */

struct xph_comm {
    xph_cuda_device *device;
    int32_t rank, ranks;
    uint32_t flags;
    int32_t timeout_ms;
    int64_t bytes;
    unsigned char *scratch; /* a slice of every rank, then hellos */
    size_t scratch_bytes, hello_at;
    pthread_mutex_t lock; /* of what follows; nobody waits with it */
    nc_comm nccl;         /* NULL: not there, or gone */
    nc_comm ended;        /* what ender ends */
    pthread_t ender;
    bool ending;
    atomic_bool failed;
};

/* What every rank sends to all when it comes. */
typedef struct hello {
    int32_t version, ranks;
    uint32_t flags, reserved;
    int64_t bytes;
} hello;

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static nc_library library; /* loaded once, stays */
static bool loaded;

/* ---- the library ---- */

/* The name of the first that it lacks, or NULL. */
static const char *find_functions(void *at, nc_library *found)
{
#define FIND(name)                                                                                           \
  *(void **)(&found->name) = dlsym(at, #name);                                                               \
  if (!found->name) return #name;
    NC_EACH_FUNCTION(FIND)
#undef FIND
    return NULL;
}

/* Up to 2.8 a version has four digits. */
static exphil_status check_version(const nc_library *found, const char *name, exphil_error *error)
{
    int version = 0;
    int code = found->ncclGetVersion(&version);
    if (code)
        return xph_cuda_fail(error, EXPHIL_E_UNSUPPORTED, code, "cuda: NCCL (%s) does not tell its version",
                             name);
    if (version >= NC_LEAST_VERSION) return EXPHIL_OK;
    const int major = version < 10000 ? 1000 : 10000;
    return xph_cuda_fail(error, EXPHIL_E_VERSION, 0,
                         "cuda: NCCL %d.%d.%d (%s) is too old, 2.18 or newer is needed", version / major,
                         version % major / 100, version % 100, name);
}

/* EXPHIL_NCCL: a path to use instead, or "none". */
static exphil_status load(exphil_error *error)
{
    const char *asked = secure_getenv("EXPHIL_NCCL");
    const char *name = asked && *asked ? asked : XPH_NCCL_NAME;
    nc_library found;
    if (strcmp(name, "none") == 0)
        return xph_cuda_fail(error, EXPHIL_E_UNSUPPORTED, 0,
                             "cuda: no sums over ranks: EXPHIL_NCCL is \"none\"");
    const char *why;
    void *at = xph_cuda_library(name, &why);
    if (!at)
        return xph_cuda_fail(error, EXPHIL_E_UNSUPPORTED, 0,
                             "cuda: no sums over ranks without NCCL (EXPHIL_NCCL names it): %s%s%s",
                             why && strstr(why, name) ? "" : name, why && !strstr(why, name) ? ": " : "",
                             why ? why : "");
    const char *lacking = find_functions(at, &found);
    exphil_status status = lacking ? xph_cuda_fail(error, EXPHIL_E_UNSUPPORTED, 0,
                                                   "cuda: %s is no NCCL: it lacks %s", name, lacking)
                                   : check_version(&found, name, error);
    if (status < 0) {
        dlclose(at);
        return status;
    }
    library = found;
    loaded = true;
    return EXPHIL_OK;
}

static exphil_status want_library(exphil_error *error)
{
    pthread_mutex_lock(&loading);
    exphil_status status = loaded ? EXPHIL_OK : load(error);
    pthread_mutex_unlock(&loading);
    return status;
}

exphil_status xph_cuda_comm_id(uint8_t id[XPH_COMM_ID_BYTES], exphil_error *error)
{
    nc_id made;
    _Static_assert(sizeof made == XPH_COMM_ID_BYTES, "an id is an id");
    exphil_status status = want_library(error);
    if (status < 0) return status;
    int code = library.ncclGetUniqueId(&made);
    if (code)
        return xph_cuda_fail(error, EXPHIL_E_IO, code, "cuda: NCCL makes no id: %s (%s)",
                             library.ncclGetErrorString(code), library.ncclGetLastError(NULL));
    memcpy(id, &made, sizeof made);
    return EXPHIL_OK;
}

/* ---- waiting ---- */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A wait that began so long ago goes on: sleeps, longer from time to time. */
static void nap(long *ns)
{
    const struct timespec t = {0, *ns};
    nanosleep(&t, NULL);
    if (*ns < 1000000) *ns += *ns / 4;
}

static bool is_bad(int code)
{
    return code != NC_SUCCESS && code != NC_IN_PROGRESS;
}

static int state_of(xph_comm *comm)
{
    int state = NC_SUCCESS;
    pthread_mutex_lock(&comm->lock);
    int code = comm->nccl ? library.ncclCommGetAsyncError(comm->nccl, &state) : GONE;
    pthread_mutex_unlock(&comm->lock);
    return code ? code : state;
}

/* Until NCCL has done what it was asked. */
static int settle(xph_comm *comm, int64_t until)
{
    long ns = 20000;
    for (;;) {
        int code = state_of(comm);
        if (code != NC_IN_PROGRESS) return code;
        if (now_ms() >= until) return TIMED_OUT;
        nap(&ns);
    }
}

/* ---- the end of one ---- */

static void *end(void *of)
{
    const xph_comm *comm = of;
    cudaSetDevice(comm->device->ordinal);
    library.ncclCommAbort(comm->ended);
    return NULL;
}

/* No signal of the host's comes to a thread of ours. */
static bool begin_end(xph_comm *comm)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool begun = pthread_create(&comm->ender, NULL, end, comm) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return begun;
}

void xph_cuda_comm_abort(xph_comm *comm)
{
    atomic_store(&comm->failed, true);
    pthread_mutex_lock(&comm->lock);
    bool first = comm->nccl != NULL;
    if (first) {
        comm->ended = comm->nccl;
        comm->nccl = NULL;
        comm->ending = begin_end(comm);
    }
    pthread_mutex_unlock(&comm->lock);
    if (first && !comm->ending) end(comm);
}

/* What the library says of a failure, or what it has no word for. */
static void words_of(const xph_comm *comm, int code, char *text, size_t bytes)
{
    if (code == TIMED_OUT)
        snprintf(text, bytes, "other ranks did not come within %d ms", (int)comm->timeout_ms);
    else if (code == GONE)
        snprintf(text, bytes, "the sums were given up");
    else if (code == CANCELLED)
        snprintf(text, bytes, "cancelled");
    else
        snprintf(text, bytes, "%s (%s)", library.ncclGetErrorString(code), library.ncclGetLastError(NULL));
}

static void tell(const xph_comm *comm, exphil_log_level level, int code, const char *what)
{
    char text[512], words[320];
    const xph_host *host = &comm->device->host;
    words_of(comm, code, words, sizeof words);
    snprintf(text, sizeof text, "cuda:%d: NCCL, rank %d of %d: %s: %s", comm->device->ordinal,
             (int)comm->rank, (int)comm->ranks, what, words);
    host->log(host->context, level, text);
}

static exphil_status give_up(xph_comm *comm, int code, const char *what)
{
    tell(comm, EXPHIL_LOG_ERROR, code, what);
    xph_cuda_comm_abort(comm);
    return EXPHIL_E_IO;
}

/* What is enqueued stays: whoever has work behind it stops that first, and aborts then. */
int32_t xph_cuda_comm_state(xph_comm *comm)
{
    if (atomic_load(&comm->failed)) return XPH_COMM_FAILED;
    int code = state_of(comm);
    if (!is_bad(code)) return code == NC_IN_PROGRESS ? XPH_COMM_IN_PROGRESS : XPH_COMM_OK;
    if (!atomic_exchange(&comm->failed, true)) tell(comm, EXPHIL_LOG_ERROR, code, "failed");
    return XPH_COMM_FAILED;
}

/* ---- exchanges ---- */

typedef struct sum {
    xph_comm *comm;
    cudaStream_t stream;
    unsigned char *data;
    int64_t count, slice; /* numbers; a slice of them to each rank */
    size_t size;          /* of a number */
    xph_type type;
    int nccl_type;
} sum;

/* Numbers of the data in the slices before this rank's, and in its own. */
static int64_t begin_of(const sum *s, int32_t rank)
{
    return s->slice * rank < s->count ? s->slice * rank : s->count;
}

static int64_t length_of(const sum *s, int32_t rank)
{
    return begin_of(s, rank + 1) - begin_of(s, rank);
}

static void *slice_of(const sum *s, int32_t rank)
{
    return s->data + (size_t)begin_of(s, rank) * s->size;
}

static int give(const sum *s, const void *from, int64_t count, int32_t peer)
{
    if (!count) return NC_SUCCESS;
    return library.ncclSend(from, (size_t)count, s->nccl_type, peer, s->comm->nccl, s->stream);
}

static int take(const sum *s, void *to, int64_t count, int32_t peer)
{
    if (!count) return NC_SUCCESS;
    return library.ncclRecv(to, (size_t)count, s->nccl_type, peer, s->comm->nccl, s->stream);
}

/* To everyone theirs, from everyone mine. */
static int scatter(const sum *s, int32_t peer)
{
    const int32_t rank = s->comm->rank;
    void *place = s->comm->scratch + (size_t)(s->slice * peer) * s->size;
    int code = give(s, slice_of(s, peer), length_of(s, peer), peer);
    return is_bad(code) ? code : take(s, place, length_of(s, rank), peer);
}

/* To everyone mine, from everyone theirs. */
static int gather(const sum *s, int32_t peer)
{
    const int32_t rank = s->comm->rank;
    int code = give(s, slice_of(s, rank), length_of(s, rank), peer);
    return is_bad(code) ? code : take(s, slice_of(s, peer), length_of(s, peer), peer);
}

/* Of bytes, behind one another: every rank's come to all. */
static int greet(const sum *s, int32_t peer)
{
    const int64_t each = (int64_t)sizeof(hello);
    int code = give(s, s->data + s->comm->rank * each, each, peer);
    return is_bad(code) ? code : take(s, s->data + peer * each, each, peer);
}

static int reduce(const sum *s, int32_t unused)
{
    (void)unused;
    return library.ncclAllReduce(s->data, s->data, (size_t)s->count, s->nccl_type, NC_SUM, s->comm->nccl,
                                 s->stream);
}

/* With every peer, at once. */
static int group(const sum *s, int (*with)(const sum *s, int32_t peer))
{
    const xph_comm *comm = s->comm;
    int code = library.ncclGroupStart();
    if (is_bad(code)) return code;
    for (int32_t peer = 0; peer < comm->ranks && !is_bad(code); peer++)
        if (peer != comm->rank) code = with(s, peer);
    int ended = library.ncclGroupEnd();
    return is_bad(code) ? code : ended;
}

/* Enqueued when it returns. */
static int exchange(const sum *s, int (*with)(const sum *s, int32_t peer), int64_t until)
{
    pthread_mutex_lock(&s->comm->lock);
    int code = !s->comm->nccl ? GONE : with == reduce ? reduce(s, 0) : group(s, with);
    pthread_mutex_unlock(&s->comm->lock);
    return is_bad(code) ? code : settle(s->comm, until);
}

/* ---- a sum ---- */

static int64_t slice_for(int64_t count, int32_t ranks)
{
    const int64_t round = (int64_t)SLICE_ROUND * ranks;
    return (count / round + (count % round != 0)) * SLICE_ROUND;
}

/* While work is recorded, and the communicator is as it was. */
static bool refuses(const sum *s, int code)
{
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    if (code < 0 || cudaStreamIsCapturing(s->stream, &capture)) return false;
    return capture != cudaStreamCaptureStatusNone && state_of(s->comm) == NC_SUCCESS;
}

static exphil_status end_sum(const sum *s, int code, const char *what)
{
    if (!code) return EXPHIL_OK;
    if (!refuses(s, code)) return give_up(s->comm, code, what);
    tell(s->comm, EXPHIL_LOG_WARNING, code, "a recording is refused");
    return EXPHIL_E_UNSUPPORTED;
}

static exphil_status sum_in_order(const sum *s, int64_t until)
{
    xph_comm *comm = s->comm;
    const xph_ranks_args args = {.type = s->type,
                                 .tree = (comm->flags & XPH_COMM_TREE) != 0,
                                 .rank = comm->rank,
                                 .ranks = comm->ranks,
                                 .count = length_of(s, comm->rank),
                                 .stride = s->slice,
                                 .own = slice_of(s, comm->rank),
                                 .others = comm->scratch};
    int code = exchange(s, scatter, until);
    if (code) return end_sum(s, code, "slices to all ranks");
    exphil_status status =
        xph_cuda_check(&comm->device->base, (cudaError_t)xph_ranks(&args, s->stream), "adding up ranks");
    if (status < 0) {
        xph_cuda_comm_abort(comm);
        return status;
    }
    code = exchange(s, gather, until);
    return end_sum(s, code, "sums to all ranks");
}

static exphil_status sum_plain(const sum *s, int64_t until)
{
    int code = exchange(s, reduce, until);
    return end_sum(s, code, "a plain sum");
}

/* NULL: nothing is wrong with them. */
static const char *wrong_argument(const xph_comm *comm, const xph_stream *stream, const void *data,
                                  int64_t count, xph_type type)
{
    const int64_t size = type == XPH_F64 ? 8 : 4;
    if (type != XPH_F32 && type != XPH_F64) return "type is neither f32 nor f64";
    if (count < 0 || count > comm->bytes / size) return "count is more than the bytes it was opened for";
    if (count && (!data || (uintptr_t)data % 16)) return "data is not aligned to 16 bytes";
    return stream->device == &comm->device->base ? NULL : "stream is another device's";
}

exphil_status xph_cuda_comm_reduce(xph_comm *comm, xph_stream *stream, void *data, int64_t count,
                                   xph_type type)
{
    const xph_host *host = &comm->device->host;
    const char *wrong = wrong_argument(comm, stream, data, count, type);
    char text[160];
    if (wrong) {
        snprintf(text, sizeof text, "cuda:%d: a sum over ranks: %s", comm->device->ordinal, wrong);
        host->log(host->context, EXPHIL_LOG_ERROR, text);
        return EXPHIL_E_INVALID;
    }
    if (atomic_load(&comm->failed)) return EXPHIL_E_IO;
    const bool plain = (comm->flags & XPH_COMM_PLAIN) != 0;
    if (!count || (comm->ranks == 1 && !plain)) return EXPHIL_OK;
    XPH_ON(stream->device);
    const sum s = {.comm = comm,
                   .stream = ((xph_cuda_stream *)stream)->stream,
                   .data = data,
                   .count = count,
                   .slice = slice_for(count, comm->ranks),
                   .size = type == XPH_F64 ? 8 : 4,
                   .type = type,
                   .nccl_type = type == XPH_F64 ? NC_FLOAT64 : NC_FLOAT32};
    const int64_t until = now_ms() + comm->timeout_ms;
    return plain ? sum_plain(&s, until) : sum_in_order(&s, until);
}

/* ---- coming together ---- */

static exphil_status fail(const xph_comm *comm, exphil_error *error, exphil_status status, int code,
                          const char *what)
{
    char words[320];
    words_of(comm, code, words, sizeof words);
    return xph_cuda_fail(error, code == CANCELLED ? EXPHIL_E_CANCELLED : status, code > 0 ? code : 0,
                         "cuda:%d: NCCL, rank %d of %d: %s: %s", comm->device->ordinal, (int)comm->rank,
                         (int)comm->ranks, what, words);
}

/* As settle, and the host may end it. done: what has to have happened, too, or NULL. */
static int come(xph_comm *comm, cudaEvent_t done, int64_t until)
{
    const xph_host *host = &comm->device->host;
    long ns = 20000;
    for (;;) {
        int code = state_of(comm);
        if (is_bad(code)) return code;
        cudaError_t happened = done ? cudaEventQuery(done) : cudaSuccess;
        if (happened == cudaErrorNotReady) cudaGetLastError();
        if (happened && happened != cudaErrorNotReady) return NC_UNHANDLED_CUDA_ERROR;
        if (code == NC_SUCCESS && !happened) return NC_SUCCESS;
        if (host->cancelled && host->cancelled(host->context)) return CANCELLED;
        if (now_ms() >= until) return TIMED_OUT;
        nap(&ns);
    }
}

static exphil_status join(xph_comm *comm, const uint8_t *id_bytes, int64_t until, exphil_error *error)
{
    nc_config config = {.size = sizeof config,
                        .magic = NC_CONFIG_MAGIC,
                        .version = NC_LEAST_VERSION,
                        .blocking = 0,
                        .cga_cluster_size = NC_UNDEFINED,
                        .min_ctas = NC_UNDEFINED,
                        .max_ctas = NC_UNDEFINED,
                        .split_share = NC_UNDEFINED};
    nc_id id;
    memcpy(&id, id_bytes, sizeof id);
    int code = library.ncclCommInitRankConfig(&comm->nccl, comm->ranks, id, comm->rank, &config);
    if (!is_bad(code)) code = come(comm, NULL, until);
    /* two ranks on one GPU, say: it would fail again */
    const exphil_status status = code == NC_INVALID_USAGE ? EXPHIL_E_INVALID : EXPHIL_E_IO;
    return code ? fail(comm, error, status, code, "coming together") : EXPHIL_OK;
}

/* What of a rank's is not as ours. */
static const char *difference(const hello *own, const hello *theirs)
{
    return theirs->version != own->version ? "is of another release"
           : theirs->ranks != own->ranks   ? "was opened with other ranks"
           : theirs->flags != own->flags   ? "was opened with other flags"
           : theirs->bytes != own->bytes   ? "was opened with other bytes"
                                           : NULL;
}

static exphil_status compare(const xph_comm *comm, const hello *of, exphil_error *error)
{
    for (int32_t rank = 0; rank < comm->ranks; rank++) {
        const char *what = difference(&of[comm->rank], &of[rank]);
        if (what)
            return xph_cuda_fail(error, EXPHIL_E_MISMATCH, 0, "cuda:%d: NCCL, rank %d of %d: rank %d %s",
                                 comm->device->ordinal, (int)comm->rank, (int)comm->ranks, (int)rank, what);
    }
    return EXPHIL_OK;
}

/* Connects all ranks, too: a sum can be recorded then. */
static int say_hello(xph_comm *comm, cudaStream_t stream, cudaEvent_t done, hello *of, int64_t until)
{
    const int64_t bytes = (int64_t)sizeof *of * comm->ranks;
    const sum s = {.comm = comm,
                   .stream = stream,
                   .data = comm->scratch + comm->hello_at,
                   .count = bytes,
                   .size = 1,
                   .nccl_type = NC_INT8};
    const size_t own_at = sizeof *of * (size_t)comm->rank;
    if (cudaMemcpyAsync(s.data + own_at, &of[comm->rank], sizeof *of, cudaMemcpyHostToDevice, stream))
        return NC_UNHANDLED_CUDA_ERROR;
    int code = exchange(&s, greet, until);
    if (code) return code;
    if (cudaEventRecord(done, stream)) return NC_UNHANDLED_CUDA_ERROR;
    code = come(comm, done, until);
    if (code) return code;
    if (cudaMemcpyAsync(of, s.data, (size_t)bytes, cudaMemcpyDeviceToHost, stream) ||
        cudaStreamSynchronize(stream))
        return NC_UNHANDLED_CUDA_ERROR;
    return NC_SUCCESS;
}

static exphil_status agree(xph_comm *comm, int64_t until, exphil_error *error)
{
    const xph_host *host = &comm->device->host;
    const size_t bytes = sizeof(hello) * (size_t)comm->ranks;
    cudaStream_t stream = NULL;
    cudaEvent_t done = NULL;
    hello *of = host->alloc(host->context, bytes);
    if (!of) return xph_cuda_fail(error, EXPHIL_E_MEMORY, 0, "cuda: could not get %zu bytes", bytes);
    memset(of, 0, bytes);
    of[comm->rank] =
        (hello){.version = HELLO_VERSION, .ranks = comm->ranks, .flags = comm->flags, .bytes = comm->bytes};
    int code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) ||
                       cudaEventCreateWithFlags(&done, cudaEventDisableTiming)
                   ? NC_UNHANDLED_CUDA_ERROR
                   : say_hello(comm, stream, done, of, until);
    exphil_status status =
        code ? fail(comm, error, EXPHIL_E_IO, code, "the first exchange") : compare(comm, of, error);
    if (code) xph_cuda_comm_abort(comm); /* or the stream would not come to its end */
    if (stream) cudaStreamSynchronize(stream);
    if (done) cudaEventDestroy(done);
    if (stream) cudaStreamDestroy(stream);
    if (code) cudaGetLastError();
    host->free(host->context, of, bytes);
    return status;
}

static exphil_status check_args(const xph_comm_args *args, exphil_error *error)
{
    const uint32_t tree = XPH_COMM_TREE, plain = XPH_COMM_PLAIN;
    const char *wrong = !args->id                                         ? "id is NULL"
                        : args->ranks < 1 || args->ranks > XPH_COMM_RANKS ? "ranks is not in 1..256"
                        : args->rank < 0 || args->rank >= args->ranks     ? "rank is not in 0..ranks-1"
                        : args->flags & ~(tree | plain)                   ? "flags has unknown bits"
                        : args->flags == (tree | plain)                   ? "flags has TREE and PLAIN"
                        : args->timeout_ms < 1                            ? "timeout_ms is below 1"
                        : args->bytes < 0 || args->bytes > INT64_MAX / 4  ? "bytes is out of range"
                                                                          : NULL;
    if (!wrong) return EXPHIL_OK;
    return xph_cuda_fail(error, EXPHIL_E_INVALID, 0, "sums over ranks: %s (rank %d, ranks %d)", wrong,
                         (int)args->rank, (int)args->ranks);
}

_Static_assert(XPH_COMM_RANKS == 256, "as check_args says");

static exphil_status open_on(xph_comm *comm, const xph_comm_args *args, exphil_error *error)
{
    const int64_t until = now_ms() + comm->timeout_ms;
    const size_t slice = (size_t)slice_for(args->bytes, args->ranks); /* of bytes: at least that of numbers */
    comm->hello_at = args->flags & XPH_COMM_PLAIN ? 0 : (slice + 8 * SLICE_ROUND) * (size_t)args->ranks;
    comm->scratch_bytes = comm->hello_at + sizeof(hello) * (size_t)args->ranks;
    exphil_status status = xph_cuda_alloc(&comm->device->base, comm->scratch_bytes, (void **)&comm->scratch);
    if (status < 0)
        return xph_cuda_fail(error, status, 0, "cuda:%d: no %zu bytes for sums over ranks",
                             comm->device->ordinal, comm->scratch_bytes);
    status = join(comm, args->id, until, error);
    return status < 0 ? status : agree(comm, until, error);
}

exphil_status xph_cuda_comm_open(xph_device *device, const xph_comm_args *args, xph_comm **comm,
                                 exphil_error *error)
{
    const xph_host *host = &((xph_cuda_device *)device)->host;
    exphil_status status = check_args(args, error);
    if (status >= 0) status = want_library(error);
    if (status < 0) return status;
    xph_comm *made = host->alloc(host->context, sizeof *made);
    if (made) memset(made, 0, sizeof *made);
    if (made && pthread_mutex_init(&made->lock, NULL) != 0) {
        host->free(host->context, made, sizeof *made);
        made = NULL;
    }
    if (!made) return xph_cuda_fail(error, EXPHIL_E_MEMORY, 0, "cuda: could not get %zu bytes", sizeof *made);
    made->device = (xph_cuda_device *)device;
    made->rank = args->rank;
    made->ranks = args->ranks;
    made->flags = args->flags;
    made->timeout_ms = args->timeout_ms;
    made->bytes = args->bytes;
    XPH_ON(device);
    status = open_on(made, args, error);
    if (status < 0) {
        xph_cuda_comm_abort(made);
        xph_cuda_comm_close(made);
        return status;
    }
    *comm = made;
    return EXPHIL_OK;
}

/* Where all is well, every rank waits for the others. */
static int part(xph_comm *comm)
{
    int code = library.ncclCommFinalize(comm->nccl);
    if (!is_bad(code)) code = settle(comm, now_ms() + comm->timeout_ms);
    if (!code) code = library.ncclCommDestroy(comm->nccl);
    if (!code) comm->nccl = NULL;
    return code;
}

void xph_cuda_comm_close(xph_comm *comm)
{
    xph_device *device = &comm->device->base;
    const xph_host *host = &comm->device->host;
    XPH_ON(device);
    int code = atomic_load(&comm->failed) ? NC_SUCCESS : part(comm);
    if (code) tell(comm, EXPHIL_LOG_ERROR, code, "parting");
    xph_cuda_comm_abort(comm);
    if (comm->ending) pthread_join(comm->ender, NULL);
    xph_cuda_free(device, comm->scratch, comm->scratch_bytes);
    pthread_mutex_destroy(&comm->lock);
    host->free(host->context, comm, sizeof *comm);
}
