/* A communicator of libexphil over MPI. Every rank sends each other rank its part of the data, each adds up one part in the order
 * of the ranks and sends the sum back; little data goes whole to every rank, in one round. MPI's own reductions add in an order
 * of their own, which depends on the MPI and on the number of ranks.
 *
 * MPI has no time limits: what is awaited is asked for again and again, up to a deadline. After one, MPI may still read and write
 * the memory that it was given. So it is given only memory of this library, which is never freed then. */
#define _GNU_SOURCE
#include "exphil_mpi.h"

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Fault-tolerant calls: Open MPI 5 has them. */
#if defined(OPEN_MPI) && defined(__has_include)
#  if __has_include(<mpi-ext.h>)
#    include <mpi-ext.h>
#  endif
#endif
#if defined(OMPI_HAVE_MPI_EXT_FTMPI) && OMPI_HAVE_MPI_EXT_FTMPI
#  define FAULT_TOLERANT
#endif

#define DEFAULT_TIMEOUT_MS 30000
#define DEFAULT_START_MS   600000
#define MOST_MS            INT32_MAX
#define NS_PER_MS          INT64_C(1000000)
#define SPIN_NS            INT64_C(1000000)  /* asked without a pause: what comes soon comes at once */
#define SPIN_CROWDED_NS    INT64_C(50000)    /* where ranks share processors */
#define YIELD_NS           INT64_C(20000000) /* then others may run in between, who may be what is awaited */
#define NAP_NS             100000            /* then this thread sleeps in between */
#define ABORT_SECONDS      3

#define SLOT_BYTES  64                 /* a slot begins with its header, so that data is aligned */
#define PIECE_BYTES ((int64_t)1 << 20) /* stays in caches, and takes less time than a wait without a pause */
#define SMALL_BYTES ((int64_t)1 << 12) /* goes whole to every rank: what MPIs send without asking first */
#define BLOCK       1024               /* elements that are added at a time, so that they stay near */
#define NAME_BYTES  (MPI_MAX_PROCESSOR_NAME + 1)

/* First in every message: equal on all ranks. */
typedef struct header {
    int64_t call;  /* number of the reduction */
    int64_t count; /* of the reduction */
    int32_t type;
    int32_t round; /* which message of the reduction */
} header;

/* A message in memory: SLOT_BYTES, whose last are the header, then data. Sent are header and data. */
typedef struct message {
    unsigned char *slot;
    int64_t data_bytes;
} message;

struct exphil_mpi {
    MPI_Comm comm;
    exphil_mpi_config config;
    int rank, ranks;
    int32_t local_rank, local_ranks;
    bool ours;     /* MPI is finalised by close */
    bool tolerant; /* a reduction ends with an agreement */
    bool started;  /* a reduction has succeeded */
    int agreed;
    int32_t code; /* why it is broken; 0: it is not */
    int64_t calls, reduced_ns, deadline_ns, limit_ms, spin_ns;
    header head;          /* of the round that is going on */
    unsigned char *slots; /* [2*ranks]: the first half is sent, or takes results, the other is received */
    int64_t slot_bytes;
    message *out, *in;    /* [ranks] what goes to and comes from each rank in a round */
    MPI_Request *request; /* [2*ranks], those that receive first */
    MPI_Status *status;   /* [2*ranks] */
    int *peer;            /* [2*ranks], of each request */
    int requests;
    unsigned char **part; /* [ranks] what is added up */
    char why[sizeof((exphil_error *)0)->message];
};

/* What a rank tells the others when it begins. */
typedef struct hello {
    int64_t timeout_ms, start_ms;
    int32_t tree;
    char name[NAME_BYTES];
} hello;

static const exphil_mpi_config default_config = EXPHIL_MPI_CONFIG_INIT;

/* ---- errors ------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) static exphil_status fail(exphil_error *error, exphil_status status,
                                                                int32_t code, const char *format, ...)
{
    if (!error || error->struct_size < sizeof *error) return status;
    va_list args;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    error->status = status;
    error->native_code = code;
    return status;
}

/* Breaks the object; the first reason stays. */
__attribute__((format(printf, 3, 4))) static int32_t broken(exphil_mpi *mpi, int32_t code, const char *format,
                                                            ...)
{
    if (mpi->code) return mpi->code;
    va_list args;
    va_start(args, format);
    vsnprintf(mpi->why, sizeof mpi->why, format, args);
    va_end(args);
    mpi->code = code;
    return code;
}

/* The class of an error of MPI, never 0, and its words. */
static int32_t broken_by_mpi(exphil_mpi *mpi, int error, const char *what)
{
    int class = MPI_ERR_UNKNOWN, length = 0;
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    if (MPI_Error_class(error, &class) != MPI_SUCCESS || class <= 0) class = MPI_ERR_UNKNOWN;
    if (MPI_Error_string(error, text, &length) != MPI_SUCCESS) text[0] = '\0';
    text[MPI_MAX_ERROR_STRING] = '\0';
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20) *c = ' ';
    return broken(mpi, class, "%s: %.160s", what, text);
}

/* Ranks do not make the same call. */
static int32_t unequal(exphil_mpi *mpi, int peer)
{
    return broken(mpi, EXPHIL_MPI_UNEQUAL,
                  "rank %d reduces another count or type than rank %d, or is not at reduction %lld", peer,
                  mpi->rank, (long long)mpi->head.call);
}

/* ---- waiting ------------------------------------------------------------------------------------------------ */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void limit(exphil_mpi *mpi, int64_t ms)
{
    mpi->limit_ms = ms;
    mpi->deadline_ns = now_ns() + ms * NS_PER_MS;
}

/* Between two questions. */
static void rest(const exphil_mpi *mpi, int64_t waited_ns)
{
    const struct timespec nap = {0, NAP_NS};
    if (waited_ns > YIELD_NS)
        nanosleep(&nap, NULL);
    else if (waited_ns > mpi->spin_ns)
        sched_yield();
}

/* A message has failed. */
static int32_t broken_by_message(exphil_mpi *mpi, int i, int error)
{
    int class = 0;
    char what[48];
    MPI_Error_class(error, &class);
    if (class == MPI_ERR_TRUNCATE) return unequal(mpi, mpi->peer[i]);
    snprintf(what, sizeof what, "a message %s rank %d", i < mpi->ranks - 1 ? "from" : "to", mpi->peer[i]);
    return broken_by_mpi(mpi, error, what);
}

/* Waits for all requests, up to the deadline. */
static int32_t wait_all(exphil_mpi *mpi)
{
    int first = 0; /* that is not done */
    for (int64_t began = now_ns(), waited = 0;; waited = now_ns() - began) {
        for (int i = first; i < mpi->requests; i++) {
            int done = 1;
            int error = mpi->request[i] == MPI_REQUEST_NULL
                            ? MPI_SUCCESS
                            : MPI_Test(&mpi->request[i], &done, &mpi->status[i]);
            if (error != MPI_SUCCESS) return broken_by_message(mpi, i, error);
            if (done && i == first) first++;
        }
        if (first == mpi->requests) return 0;
        if (began + waited > mpi->deadline_ns)
            return broken(mpi, EXPHIL_MPI_TIMED_OUT, "rank %d has not answered rank %d within %lld ms",
                          mpi->peer[first], mpi->rank, (long long)mpi->limit_ms);
        rest(mpi, waited);
    }
}

/* Waits for one request that is no message. */
static int32_t wait_one(exphil_mpi *mpi, MPI_Request request, const char *what)
{
    for (int64_t began = now_ns(), waited = 0;; waited = now_ns() - began) {
        int done = 0;
        int error = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS) return broken_by_mpi(mpi, error, what);
        if (done) return 0;
        if (began + waited > mpi->deadline_ns)
            return broken(mpi, EXPHIL_MPI_TIMED_OUT, "%s: not all ranks have come within %lld ms", what,
                          (long long)mpi->limit_ms);
        rest(mpi, waited);
    }
}

/* ---- messages ----------------------------------------------------------------------------------------------- */

/* Slot i of 2*ranks. */
static unsigned char *slot(const exphil_mpi *mpi, int i)
{
    return mpi->slots + (int64_t)i * mpi->slot_bytes;
}

static unsigned char *data_of(unsigned char *of)
{
    return of + SLOT_BYTES;
}

/* Every slot gets room for so much data; none is in use. */
static bool make_room(exphil_mpi *mpi, int64_t data_bytes)
{
    int64_t needed = (SLOT_BYTES + data_bytes + SLOT_BYTES - 1) / SLOT_BYTES * SLOT_BYTES;
    if (needed <= mpi->slot_bytes) return true;
    free(mpi->slots);
    mpi->slot_bytes = 0;
    mpi->slots = aligned_alloc(SLOT_BYTES, (size_t)needed * 2 * (size_t)mpi->ranks);
    if (!mpi->slots) return false;
    mpi->slot_bytes = needed;
    return true;
}

static int32_t begin_messages(exphil_mpi *mpi, bool sending)
{
    const int head_bytes = (int)sizeof(header);
    for (int i = 1; i < mpi->ranks; i++) { /* each rank begins with another one */
        int peer = sending ? (mpi->rank + i) % mpi->ranks : (mpi->rank + mpi->ranks - i) % mpi->ranks;
        const message *m = sending ? &mpi->out[peer] : &mpi->in[peer];
        unsigned char *from = data_of(m->slot) - head_bytes;
        int bytes = head_bytes + (int)m->data_bytes;
        MPI_Request *request = &mpi->request[mpi->requests];
        int error = sending ? MPI_Isend(from, bytes, MPI_BYTE, peer, 0, mpi->comm, request)
                            : MPI_Irecv(from, bytes, MPI_BYTE, peer, 0, mpi->comm, request);
        if (error != MPI_SUCCESS) return broken_by_mpi(mpi, error, "a message");
        mpi->peer[mpi->requests++] = peer;
    }
    return 0;
}

/* What came is what was awaited. */
static int32_t check_messages(exphil_mpi *mpi)
{
    for (int i = 0; i < mpi->ranks - 1; i++) {
        int bytes = 0, peer = mpi->peer[i];
        const message *m = &mpi->in[peer];
        MPI_Get_count(&mpi->status[i], MPI_BYTE, &bytes);
        if (bytes != (int)sizeof(header) + (int)m->data_bytes ||
            memcmp(data_of(m->slot) - sizeof(header), &mpi->head, sizeof(header)) != 0)
            return unequal(mpi, peer);
    }
    return 0;
}

/* One round: out goes to, in comes from every other rank. */
static int32_t exchange(exphil_mpi *mpi)
{
    mpi->head.round++;
    mpi->requests = 0;
    for (int k = 0; k < mpi->ranks; k++)
        if (k != mpi->rank) memcpy(data_of(mpi->out[k].slot) - sizeof(header), &mpi->head, sizeof(header));
    if (begin_messages(mpi, false) || begin_messages(mpi, true) || wait_all(mpi)) return mpi->code;
    return check_messages(mpi);
}

/* ---- the reduction ------------------------------------------------------------------------------------------ */

static void add(unsigned char *to, const unsigned char *from, int64_t count, int32_t type)
{
    if (type == EXPHIL_TYPE_F64) {
        double *restrict sum = (double *)(void *)to;
        const double *restrict value = (const double *)(const void *)from;
        for (int64_t i = 0; i < count; i++) sum[i] += value[i];
    } else {
        float *restrict sum = (float *)(void *)to;
        const float *restrict value = (const float *)(const void *)from;
        for (int64_t i = 0; i < count; i++) sum[i] += value[i];
    }
}

/* The sum of all parts, in part[0]; the others are used up. */
static void fold(exphil_mpi *mpi, int64_t count, int32_t type, int64_t size)
{
    for (int64_t at = 0; at < count; at += BLOCK) {
        int64_t n = count - at < BLOCK ? count - at : BLOCK, bytes = at * size;
        if (!mpi->config.tree)
            for (int k = 1; k < mpi->ranks; k++) add(mpi->part[0] + bytes, mpi->part[k] + bytes, n, type);
        else
            for (int step = 1; step < mpi->ranks; step *= 2)
                for (int k = 0; k + step < mpi->ranks; k += 2 * step)
                    add(mpi->part[k] + bytes, mpi->part[k + step] + bytes, n, type);
    }
}

/* Every rank gets everything, and adds it up. */
static int32_t reduce_whole(exphil_mpi *mpi, unsigned char *data, int64_t count, int32_t type, int64_t size)
{
    int64_t bytes = count * size;
    if (!make_room(mpi, bytes))
        return broken(mpi, EXPHIL_MPI_NO_MEMORY, "no memory to reduce %lld bytes", (long long)bytes);
    for (int k = 0; k < mpi->ranks; k++) {
        mpi->out[k] = (message){slot(mpi, 0), bytes};
        mpi->in[k] = (message){slot(mpi, mpi->ranks + k), bytes};
        mpi->part[k] = data_of(k == mpi->rank ? slot(mpi, 0) : mpi->in[k].slot);
    }
    if (bytes) memcpy(data_of(slot(mpi, 0)), data, (size_t)bytes);
    if (exchange(mpi)) return mpi->code;
    fold(mpi, count, type, size);
    if (bytes) memcpy(data, mpi->part[0], (size_t)bytes);
    return 0;
}

/* The first element of rank k's part. */
static int64_t first_of(const exphil_mpi *mpi, int64_t count, int k)
{
    int64_t rest_of = count % mpi->ranks;
    return count / mpi->ranks * k + (k < rest_of ? k : rest_of);
}

static int64_t part_bytes(const exphil_mpi *mpi, int64_t count, int k, int64_t size)
{
    return (first_of(mpi, count, k + 1) - first_of(mpi, count, k)) * size;
}

/* Every rank adds up a part, and gives it to all. */
static int32_t reduce_parts(exphil_mpi *mpi, unsigned char *data, int64_t count, int32_t type, int64_t size)
{
    int64_t own = part_bytes(mpi, count, mpi->rank, size), most = part_bytes(mpi, count, 0, size);
    if (!make_room(mpi, most))
        return broken(mpi, EXPHIL_MPI_NO_MEMORY, "no memory to reduce %lld bytes", (long long)(count * size));
    for (int k = 0; k < mpi->ranks; k++) {
        mpi->out[k] = (message){slot(mpi, k), part_bytes(mpi, count, k, size)};
        mpi->in[k] = (message){slot(mpi, mpi->ranks + k), own};
        mpi->part[k] = data_of(k == mpi->rank ? mpi->out[k].slot : mpi->in[k].slot);
        memcpy(data_of(mpi->out[k].slot), data + first_of(mpi, count, k) * size,
               (size_t)mpi->out[k].data_bytes);
    }
    if (exchange(mpi)) return mpi->code;
    fold(mpi, own / size, type, size);
    for (int k = 0; k < mpi->ranks; k++) {
        mpi->in[k] = mpi->out[k];
        if (k == mpi->rank) continue;
        mpi->out[k] = (message){mpi->part[0] - SLOT_BYTES, own};
    }
    if (exchange(mpi)) return mpi->code;
    for (int k = 0; k < mpi->ranks; k++)
        memcpy(data + first_of(mpi, count, k) * size,
               k == mpi->rank ? mpi->part[0] : data_of(mpi->in[k].slot), (size_t)mpi->in[k].data_bytes);
    return 0;
}

/* In pieces, whose sizes MPI can count. */
static int32_t reduce(exphil_mpi *mpi, unsigned char *data, int64_t count, int32_t type)
{
    int64_t size = type == EXPHIL_TYPE_F64 ? 8 : 4, most = PIECE_BYTES / size;
    if ((type != EXPHIL_TYPE_F32 && type != EXPHIL_TYPE_F64) || count < 0 || (count && !data))
        return broken(mpi, EXPHIL_MPI_MISUSED, "all_reduce: data %s, count %lld, type %d",
                      data ? "given" : "NULL", (long long)count, type);
    mpi->head = (header){mpi->calls, count, type, 0};
    limit(mpi, mpi->started ? mpi->config.timeout_ms : mpi->config.start_ms);
    if (mpi->ranks == 1) return 0;
    do {
        int64_t n = count < most ? count : most;
        if (n * size <= SMALL_BYTES ? reduce_whole(mpi, data, n, type, size)
                                    : reduce_parts(mpi, data, n, type, size))
            return mpi->code;
        count -= n;
        if (count) data += n * size;
    } while (count);
    return 0;
}

/* All ranks learn whether all have succeeded. */
static void agree(exphil_mpi *mpi)
{
#ifdef FAULT_TOLERANT
    MPI_Request request;
    bool revoked = mpi->code != 0;
    if (revoked) MPIX_Comm_revoke(mpi->comm); /* those who wait for this rank wait no longer */
    mpi->agreed = !revoked;
    int error = MPIX_Comm_iagree(mpi->comm, &mpi->agreed, &request);
    if (error != MPI_SUCCESS)
        broken_by_mpi(mpi, error, "the agreement");
    else if (!wait_one(mpi, request, "the agreement") && !mpi->agreed)
        broken(mpi, EXPHIL_MPI_ELSEWHERE, "the reduction has failed on another rank");
    if (mpi->code && !revoked) MPIX_Comm_revoke(mpi->comm);
#else
    (void)mpi;
#endif
}

/* MPICH calls the handler of MPI_COMM_WORLD, others that of MPI_COMM_SELF, for what fails in a message of any communicator. So both
 * return errors while this library waits, and are as the host left them afterwards. */
typedef struct handlers {
    MPI_Errhandler world, self;
} handlers;

static handlers return_errors(void)
{
    handlers hosts = {MPI_ERRHANDLER_NULL, MPI_ERRHANDLER_NULL};
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &hosts.world);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &hosts.self);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    return hosts;
}

static void give_back(handlers hosts)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, hosts.world);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, hosts.self);
    MPI_Errhandler_free(&hosts.world);
    MPI_Errhandler_free(&hosts.self);
}

/* NULL, or why MPI may not be called here. */
static const char *unusable(void)
{
    int yes = 0, level = MPI_THREAD_SINGLE;
    MPI_Initialized(&yes);
    if (!yes) return "MPI is not initialised";
    MPI_Finalized(&yes);
    if (yes) return "MPI is finalised";
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_FUNNELED)
        return "MPI was initialised with MPI_THREAD_SINGLE; MPI_Init_thread with MPI_THREAD_FUNNELED";
    MPI_Is_thread_main(&yes);
    if (level == MPI_THREAD_FUNNELED && !yes)
        return "MPI was initialised with MPI_THREAD_FUNNELED by another thread; MPI_THREAD_SERIALIZED allows "
               "this one";
    return NULL;
}

static int32_t all_reduce(void *user, void *data, int64_t count, int32_t type)
{
    exphil_mpi *mpi = user;
    int64_t began = now_ns();
    const char *why = mpi->code ? NULL : unusable();
    mpi->calls++;
    if (why) broken(mpi, EXPHIL_MPI_MISUSED, "all_reduce: %s", why);
    if (!mpi->code) {
        handlers hosts = return_errors();
        reduce(mpi, data, count, type);
        if (mpi->tolerant) agree(mpi);
        mpi->started |= !mpi->code;
        give_back(hosts);
    }
    mpi->reduced_ns += now_ns() - began;
    return mpi->code;
}

/* ---- beginning and end -------------------------------------------------------------------------------------- */

static void release(exphil_mpi *mpi)
{
    free(mpi->slots);
    free(mpi->out);
    free(mpi->in);
    free(mpi->request);
    free(mpi->status);
    free(mpi->peer);
    free(mpi->part);
    free(mpi);
}

/* What is given, with defaults; a newer program's fields must be zero. */
static exphil_status take(exphil_mpi_config *config, const exphil_mpi_config *given, exphil_error *error)
{
    *config = default_config;
    if (given) {
        if (given->struct_size < sizeof *given)
            return fail(error, EXPHIL_E_INVALID, 0,
                        "exphil_mpi_config.struct_size is %zu, at least %zu expected; use its INIT macro",
                        given->struct_size, sizeof *given);
        for (size_t i = sizeof *given; i < given->struct_size; i++)
            if (((const unsigned char *)given)[i])
                return fail(error, EXPHIL_E_VERSION, 0,
                            "exphil_mpi_config uses byte %zu; this library knows %zu", i, sizeof *given);
        *config = *given;
    }
    if (!config->timeout_ms) config->timeout_ms = DEFAULT_TIMEOUT_MS;
    if (!config->start_ms) config->start_ms = DEFAULT_START_MS;
    if (config->timeout_ms < 1 || config->timeout_ms > MOST_MS)
        return fail(error, EXPHIL_E_INVALID, 0, "timeout_ms is %lld, must be 1..%d, or 0",
                    (long long)config->timeout_ms, MOST_MS);
    if (config->start_ms < 1 || config->start_ms > MOST_MS)
        return fail(error, EXPHIL_E_INVALID, 0, "start_ms is %lld, must be 1..%d, or 0",
                    (long long)config->start_ms, MOST_MS);
    if (config->tree != 0 && config->tree != 1)
        return fail(error, EXPHIL_E_INVALID, 0, "tree is %d, must be 0 or 1", config->tree);
    return EXPHIL_OK;
}

/* Arrays of one entry a rank. */
static bool make_arrays(exphil_mpi *mpi)
{
    size_t n = (size_t)mpi->ranks;
    mpi->out = calloc(n, sizeof *mpi->out);
    mpi->in = calloc(n, sizeof *mpi->in);
    mpi->request = calloc(2 * n, sizeof(MPI_Request));
    mpi->status = calloc(2 * n, sizeof(MPI_Status));
    mpi->peer = calloc(2 * n, sizeof *mpi->peer);
    mpi->part = calloc(n, sizeof *mpi->part);
    return mpi->out && mpi->in && mpi->request && mpi->status && mpi->peer && mpi->part &&
           make_room(mpi, (int64_t)sizeof(hello));
}

/* The ranks tell each other who they are, and see that they want the same. */
static exphil_status meet(exphil_mpi *mpi, exphil_error *error)
{
    hello own = {mpi->config.timeout_ms, mpi->config.start_ms, mpi->config.tree, ""}, other;
    int length = 0;
    MPI_Get_processor_name(own.name, &length);
    for (int k = 0; k < mpi->ranks; k++) {
        mpi->out[k] = (message){slot(mpi, 0), (int64_t)sizeof own};
        mpi->in[k] = (message){slot(mpi, mpi->ranks + k), (int64_t)sizeof own};
    }
    memcpy(data_of(slot(mpi, 0)), &own, sizeof own);
    if (exchange(mpi)) return EXPHIL_E_IO;
    for (int k = 0; k < mpi->ranks; k++) {
        memcpy(&other, data_of(k == mpi->rank ? slot(mpi, 0) : mpi->in[k].slot), sizeof other);
        if (other.timeout_ms != own.timeout_ms || other.start_ms != own.start_ms || other.tree != own.tree)
            return fail(error, EXPHIL_E_MISMATCH, 0,
                        "rank %d has timeout_ms %lld, start_ms %lld, tree %d; rank %d: %lld, %lld, %d", k,
                        (long long)other.timeout_ms, (long long)other.start_ms, other.tree, mpi->rank,
                        (long long)own.timeout_ms, (long long)own.start_ms, own.tree);
        if (memcmp(other.name, own.name, NAME_BYTES) != 0) continue;
        mpi->local_rank += k < mpi->rank;
        mpi->local_ranks++;
    }
    return EXPHIL_OK;
}

/* Takes mpi, whose communicator is its own. */
static exphil_status begin(exphil_mpi *mpi, exphil_mpi **out, exphil_error *error)
{
    MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(mpi->comm, &mpi->rank);
    MPI_Comm_size(mpi->comm, &mpi->ranks);
#ifdef FAULT_TOLERANT
    int *value = NULL, found = 0;
    if (MPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, (void *)&value, &found) == MPI_SUCCESS)
        mpi->tolerant = found && value && *value;
#endif
    /* Not freed: the others wait for this rank. */
    if (!make_arrays(mpi)) return fail(error, EXPHIL_E_MEMORY, 0, "no memory for %d ranks", mpi->ranks);
    exphil_status status = meet(mpi, error);
    if (mpi->tolerant) agree(mpi);
    mpi->spin_ns = mpi->local_ranks <= sysconf(_SC_NPROCESSORS_ONLN) ? SPIN_NS : SPIN_CROWDED_NS;
    if (mpi->code) return fail(error, EXPHIL_E_IO, mpi->code, "the ranks do not meet: %s", mpi->why);
    if (status < 0) {
        MPI_Comm_free(&mpi->comm);
        release(mpi);
        return status;
    }
    *out = mpi;
    return EXPHIL_OK;
}

static exphil_status open_checked(MPI_Comm comm, const exphil_mpi_config *config, bool ours, exphil_mpi **out,
                                  exphil_error *error)
{
    MPI_Request request;
    exphil_mpi *mpi = calloc(1, sizeof *mpi);
    if (!mpi) return fail(error, EXPHIL_E_MEMORY, 0, "no memory for a communicator");
    mpi->config = *config;
    mpi->ours = ours;
    limit(mpi, config->start_ms);
    int wrong = MPI_Comm_idup(comm, &mpi->comm, &request);
    if (wrong != MPI_SUCCESS)
        broken_by_mpi(mpi, wrong, "MPI_Comm_idup");
    else
        wait_one(mpi, request, "MPI_Comm_idup");
    if (mpi->code) return fail(error, EXPHIL_E_IO, mpi->code, "%s", mpi->why);
    return begin(mpi, out, error);
}

EXPHIL_API exphil_status exphil_mpi_open(MPI_Comm comm, const exphil_mpi_config *config, exphil_mpi **mpi,
                                         exphil_error *error)
{
    exphil_mpi_config known;
    int between = 0;
    if (!mpi) return fail(error, EXPHIL_E_INVALID, 0, "mpi is NULL");
    exphil_status status = take(&known, config, error);
    if (status < 0) return status;
    const char *why = unusable();
    if (why) return fail(error, EXPHIL_E_STATE, 0, "%s", why);
    if (!comm || comm == MPI_COMM_NULL) return fail(error, EXPHIL_E_INVALID, 0, "comm is MPI_COMM_NULL");
    MPI_Comm_test_inter(comm, &between);
    if (between) return fail(error, EXPHIL_E_INVALID, 0, "comm is an intercommunicator");
    handlers hosts = return_errors();
    status = open_checked(comm, &known, false, mpi, error);
    give_back(hosts);
    return status;
}

EXPHIL_API exphil_status exphil_mpi_open_world(int *argc, char ***argv, const exphil_mpi_config *config,
                                               exphil_mpi **mpi, exphil_error *error)
{
    exphil_mpi_config known;
    int yes = 0, level = 0;
    if (!mpi) return fail(error, EXPHIL_E_INVALID, 0, "mpi is NULL");
    exphil_status status = take(&known, config, error);
    if (status < 0) return status;
    MPI_Finalized(&yes);
    if (yes) return fail(error, EXPHIL_E_STATE, 0, "MPI is finalised");
    MPI_Initialized(&yes);
    if (yes) return fail(error, EXPHIL_E_STATE, 0, "MPI is initialised already: use exphil_mpi_open");
    int wrong = MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &level);
    if (wrong != MPI_SUCCESS) return fail(error, EXPHIL_E_IO, wrong, "MPI_Init_thread fails");
    const char *why = unusable();
    if (why) return fail(error, EXPHIL_E_STATE, 0, "%s", why);
    handlers hosts = return_errors();
    status = open_checked(MPI_COMM_WORLD, &known, true, mpi, error);
    give_back(hosts);
    return status;
}

#ifdef FAULT_TOLERANT
/* EXPHIL_E_IO on all ranks that are left, or on none: they agree at the end of their meeting. */
static exphil_status shrink_once(exphil_mpi *mpi, exphil_mpi **smaller, exphil_error *error)
{
    exphil_mpi *left = calloc(1, sizeof *left);
    if (!left) return fail(error, EXPHIL_E_MEMORY, 0, "no memory for a communicator");
    left->config = mpi->config;
    left->started = mpi->started;
    int wrong = MPIX_Comm_shrink(mpi->comm, &left->comm);
    if (wrong != MPI_SUCCESS) {
        broken_by_mpi(left, wrong, "MPIX_Comm_shrink");
        return fail(error, EXPHIL_E_IO, left->code, "%s", left->why);
    }
    limit(left, left->config.start_ms);
    return begin(left, smaller, error);
}

static exphil_status shrink(exphil_mpi *mpi, exphil_mpi **smaller, exphil_error *error)
{
    exphil_status status = EXPHIL_E_IO;
    broken(mpi, EXPHIL_MPI_MISUSED, "it was shrunk");
    MPIX_Comm_revoke(mpi->comm);
    for (int lost = 0; lost < mpi->ranks && status == EXPHIL_E_IO; lost++) /* one may die meanwhile */
        status = shrink_once(mpi, smaller, error);
    if (status < 0) return status;
    (*smaller)->ours = mpi->ours;
    mpi->ours = false;
    return EXPHIL_OK;
}
#endif

EXPHIL_API exphil_status exphil_mpi_shrink(exphil_mpi *mpi, exphil_mpi **smaller, exphil_error *error)
{
    if (!mpi || !smaller) return fail(error, EXPHIL_E_INVALID, 0, "%s is NULL", mpi ? "smaller" : "mpi");
    const char *why = unusable();
    if (why) return fail(error, EXPHIL_E_STATE, 0, "%s", why);
#ifdef FAULT_TOLERANT
    if (mpi->tolerant) {
        handlers hosts = return_errors();
        exphil_status status = shrink(mpi, smaller, error);
        give_back(hosts);
        return status;
    }
#endif
    return fail(error, EXPHIL_E_UNSUPPORTED, 0, "this MPI is not fault-tolerant, or was not launched so");
}

/* All ranks have come to the end, and the communicator is freed. */
static exphil_status leave(exphil_mpi *mpi)
{
    MPI_Request request;
    limit(mpi, mpi->config.timeout_ms);
    int wrong = MPI_Ibarrier(mpi->comm, &request);
    if (wrong != MPI_SUCCESS) broken_by_mpi(mpi, wrong, "MPI_Ibarrier");
    if (mpi->code || wait_one(mpi, request, "the end")) return EXPHIL_E_IO;
    MPI_Comm_free(&mpi->comm);
    return EXPHIL_OK;
}

EXPHIL_API exphil_status exphil_mpi_close(exphil_mpi *mpi)
{
    int finalised = 0;
    if (!mpi) return EXPHIL_OK;
    if (mpi->code) return EXPHIL_E_IO;
    MPI_Finalized(&finalised);
    if (!finalised) {
        if (unusable()) return EXPHIL_E_STATE;
        handlers hosts = return_errors();
        exphil_status status = leave(mpi);
        give_back(hosts);
        if (status < 0) return status;
        if (mpi->ours) MPI_Finalize();
    }
    release(mpi);
    return EXPHIL_OK;
}

/* ---- what else is asked ------------------------------------------------------------------------------------- */

EXPHIL_API exphil_status exphil_mpi_communicator(exphil_mpi *mpi, exphil_communicator *out,
                                                 exphil_error *error)
{
    const size_t least = offsetof(exphil_communicator, ranks) + sizeof out->ranks;
    if (!mpi || !out) return fail(error, EXPHIL_E_INVALID, 0, "%s is NULL", mpi ? "out" : "mpi");
    if (out->struct_size < least)
        return fail(error, EXPHIL_E_INVALID, 0,
                    "exphil_communicator.struct_size is %zu, at least %zu expected", out->struct_size, least);
    out->user = mpi;
    out->all_reduce = all_reduce;
    out->rank = mpi->rank;
    out->ranks = mpi->ranks;
    return EXPHIL_OK;
}

EXPHIL_API exphil_status exphil_mpi_local(const exphil_mpi *mpi, int32_t *rank, int32_t *ranks,
                                          exphil_error *error)
{
    if (!mpi || !rank || !ranks)
        return fail(error, EXPHIL_E_INVALID, 0, "%s is NULL", !mpi ? "mpi" : rank ? "ranks" : "rank");
    *rank = mpi->local_rank;
    *ranks = mpi->local_ranks;
    return EXPHIL_OK;
}

EXPHIL_API exphil_status exphil_mpi_time(const exphil_mpi *mpi, int64_t *reduced_ns, int64_t *calls,
                                         exphil_error *error)
{
    if (!mpi || !reduced_ns || !calls)
        return fail(error, EXPHIL_E_INVALID, 0, "%s is NULL",
                    !mpi         ? "mpi"
                    : reduced_ns ? "calls"
                                 : "reduced_ns");
    *reduced_ns = mpi->reduced_ns;
    *calls = mpi->calls;
    return EXPHIL_OK;
}

EXPHIL_API const char *exphil_mpi_why(const exphil_mpi *mpi)
{
    return mpi && mpi->code ? mpi->why : "";
}

/* MPICH 4.0 never ends MPI_Abort on another communicator than the world. */
EXPHIL_API void exphil_mpi_abort(exphil_mpi *mpi, int32_t code)
{
    (void)mpi; /* is of the world */
    int begun = 0, finalised = 0, status = code >= 1 && code <= 255 ? code : 1;
    sigset_t alarms;
    signal(SIGALRM, SIG_DFL);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(ABORT_SECONDS);
    MPI_Initialized(&begun);
    MPI_Finalized(&finalised);
    if (begun && !finalised) MPI_Abort(MPI_COMM_WORLD, status);
    _exit(status);
}
