/* A stand-in for NCCL on emulated GPUs: the functions that cuda/nccl.c looks up, over ranks that are threads or processes of
 * one machine. What they share lies in POSIX shared memory named by the id: a ring of bytes from every rank to every other.
 * An exchange is an operation of its stream that moves what the rings have room for whenever it is tried (emu_meet), so it
 * waits for its peers as a kernel of NCCL does, and an abort lets it go.
 *
 * It is strict: whatever NCCL leaves undefined, waits for for ever or documents as wrong is a mistake that `said` tells, as
 * counts and types that do not fit, memory or a stream of another device, calls while the last one is in progress or after
 * the end, groups that do not end, a recording before the first use, an end while recordings are there.
 *
 * A test that links it wires it to the device (fake_nccl.h). In a program it wires itself to the plugin that calls it, and then
 * writes a mistake on stderr; EXPHIL_FAKE_NCCL_CUT is the begin of paths: while BEGIN-2 is there, rank 2 is cut off, neither
 * sends nor takes anything, and waits.
 */
#include "fake_nccl.h"

#include "nccl_api.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define API       __attribute__((visibility("default")))
#define ID_PREFIX "/exphil-fake-nccl-"

enum { RING = 1 << 16, SOON = 2 };
enum { COMING, READY, ENQUEUEING, LEAVING, ENDED }; /* phases of a communicator */

API fake_nccl fake;

/* From one rank to another; the numbers of bytes that were ever written and read. */
typedef struct ring {
    _Atomic uint64_t written, read;
    unsigned char bytes[RING];
} ring;

typedef struct world {
    atomic_int ranks;                 /* as the first that came has it */
    atomic_int wrong;                 /* one came who does not fit */
    atomic_int came[FAKE_NCCL_RANKS]; /* 1 + its device */
    atomic_int arrived;
    atomic_int gone;                                    /* one gave up */
    atomic_int knows[FAKE_NCCL_RANKS][FAKE_NCCL_RANKS]; /* the first exchange of one rank with another */
    ring rings[FAKE_NCCL_RANKS][FAKE_NCCL_RANKS];
} world;

typedef struct header {
    int32_t plain, type;
    int64_t count;
} header;

typedef struct transfer {
    int send, peer, type;
    size_t count, at; /* at: bytes that were moved, with the header */
    unsigned char *data;
} transfer;

/* An exchange: a group, or a plain sum, whose transfers are of all numbers with all peers. */
typedef struct plan {
    struct ncclComm *comm;
    void *stream;
    bool recorded, stuck, hangs, plain;
    int type;
    size_t count;
    const void *from;
    unsigned char *to, *others; /* of a plain sum */
    int transfers;
    transfer transfer[2 * FAKE_NCCL_RANKS];
} plan;

/* Stays after its end, so that whoever uses it then is found out. */
struct ncclComm {
    struct ncclComm *next;
    world *shared;
    char name[NC_ID_BYTES];
    int rank, ranks, device;
    atomic_int failed; /* a ncclResult_t */
    int phase, polls, bomb, exchanges;
    bool connected, finalized;
    atomic_bool aborted;
    atomic_int enqueued, recorded; /* plans that live */
    plan *pending, *running;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ncclComm *comms;
static _Thread_local int depth;
static _Thread_local plan *open_group;
static _Thread_local char last_error[256];
static bool wired; /* by itself */

/* ---- mistakes ---- */

__attribute__((format(printf, 2, 3))) static int mistake(int code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(last_error, sizeof last_error, format, list);
    va_end(list);
    pthread_mutex_lock(&lock);
    if (!fake.said[0]) memcpy(fake.said, last_error, sizeof fake.said);
    pthread_mutex_unlock(&lock);
    if (wired) dprintf(STDERR_FILENO, "stand-in for NCCL: a mistake: %s\n", last_error);
    return code;
}

static bool is_known(const struct ncclComm *comm)
{
    bool known = false;
    pthread_mutex_lock(&lock);
    for (const struct ncclComm *c = comms; c; c = c->next) known |= c == comm;
    pthread_mutex_unlock(&lock);
    return known;
}

/* 0, or why the communicator cannot be used now. */
static int check_comm(const struct ncclComm *comm, const char *what)
{
    if (!is_known(comm)) return mistake(NC_INVALID_ARGUMENT, "%s: no communicator", what);
    if (comm->phase == ENDED) return mistake(NC_INVALID_ARGUMENT, "%s: the communicator is gone", what);
    if (comm->phase != READY && !atomic_load(&comm->failed))
        return mistake(NC_INVALID_ARGUMENT, "%s: the call before is still in progress", what);
    if (atomic_load(&comm->failed)) return mistake(NC_INVALID_USAGE, "%s: the communicator has failed", what);
    return NC_SUCCESS;
}

/* ---- the device ---- */

static void find(void *in, const char *name, void *function)
{
    void *found = dlsym(in, name);
    memcpy(function, &found, sizeof found);
}

/* To the plugin that has this address. */
static void wire(const void *caller)
{
    Dl_info of;
    void *plugin = !fake.meet && dladdr(caller, &of) ? dlopen(of.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (!plugin) return;
    find(plugin, "emu_meet", &fake.meet);
    find(plugin, "emu_capturing", &fake.capturing);
    find(plugin, "emu_device", &fake.device);
    find(plugin, "emu_device_of", &fake.device_of);
    find(plugin, "emu_stream_device", &fake.stream_device);
    wired = fake.meet != NULL;
}

/* The number of a device among those of the machine, of which CUDA_VISIBLE_DEVICES may show a program only some. */
static int of_machine(int device)
{
    const char *at = wired ? getenv("CUDA_VISIBLE_DEVICES") : NULL;
    for (int i = 0; at && i < device; i++) at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
    return at ? atoi(at) : device;
}

static bool is_cut(const struct ncclComm *comm)
{
    const char *begin = wired ? getenv("EXPHIL_FAKE_NCCL_CUT") : NULL;
    char path[4096];
    if (!begin) return false;
    snprintf(path, sizeof path, "%s-%d", begin, comm->rank);
    return access(path, F_OK) == 0;
}

/* ---- coming ---- */

API int ncclGetVersion(int *version)
{
    wire(__builtin_return_address(0));
    *version = fake.version ? fake.version : FAKE_NCCL_VERSION;
    return NC_SUCCESS;
}

static atomic_int ids;

static void name_id(nc_id *id, int number)
{
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, ID_PREFIX "%ld-%d", (long)getpid(), number);
}

/* What nobody came to. */
__attribute__((destructor)) static void drop_ids(void)
{
    nc_id id;
    for (int i = 0; i < atomic_load(&ids); i++) {
        name_id(&id, i);
        shm_unlink(id.internal);
    }
}

API int ncclGetUniqueId(nc_id *id)
{
    name_id(id, atomic_fetch_add(&ids, 1));
    int file = shm_open(id->internal, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (file < 0) return NC_SYSTEM_ERROR;
    bool sized = ftruncate(file, sizeof(world)) == 0;
    close(file);
    return sized ? NC_SUCCESS : NC_SYSTEM_ERROR;
}

static world *find_world(const nc_id *id)
{
    if (memcmp(id->internal, ID_PREFIX, strlen(ID_PREFIX)) != 0) return NULL;
    int file = shm_open(id->internal, O_RDWR, 0600);
    if (file < 0) return NULL;
    void *at = mmap(NULL, sizeof(world), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return at == MAP_FAILED ? NULL : at;
}

static int check_config(const nc_config *config)
{
    if (!config || config->size < sizeof *config || config->magic != NC_CONFIG_MAGIC)
        return mistake(NC_INVALID_ARGUMENT, "the configuration was not initialized");
    if (config->version < NC_LEAST_VERSION || config->blocking != 0)
        return mistake(NC_INVALID_ARGUMENT, "the configuration's version or blocking");
    return NC_SUCCESS;
}

/* Devices are those of one machine. */
static void enter(struct ncclComm *comm)
{
    world *w = comm->shared;
    int first = 0, device = of_machine(comm->device);
    if (!atomic_compare_exchange_strong(&w->ranks, &first, comm->ranks) && first != comm->ranks)
        atomic_store(&w->wrong, NC_INTERNAL_ERROR);
    for (int rank = 0; rank < comm->ranks; rank++)
        if (atomic_load(&w->came[rank]) == 1 + device) atomic_store(&w->wrong, NC_INVALID_USAGE);
    if (atomic_exchange(&w->came[comm->rank], 1 + device)) atomic_store(&w->wrong, NC_INTERNAL_ERROR);
    if (atomic_fetch_add(&w->arrived, 1) + 1 == comm->ranks) shm_unlink(comm->name);
}

API int ncclCommInitRankConfig(nc_comm *comm, int ranks, nc_id id, int rank, nc_config *config)
{
    *comm = NULL;
    int code = check_config(config);
    if (code) return code;
    if (ranks < 1 || ranks > FAKE_NCCL_RANKS || rank < 0 || rank >= ranks)
        return mistake(NC_INVALID_ARGUMENT, "rank %d of %d", rank, ranks);
    if (fake.fault[rank].init_code) {
        snprintf(last_error, sizeof last_error, "it was told to fail");
        return fake.fault[rank].init_code;
    }
    struct ncclComm *made = calloc(1, sizeof *made);
    made->shared = find_world(&id);
    if (!made->shared) {
        free(made);
        return mistake(NC_INVALID_ARGUMENT, "no such id");
    }
    memcpy(made->name, id.internal, sizeof made->name);
    made->rank = rank;
    made->ranks = ranks;
    made->device = fake.device();
    made->phase = COMING;
    made->polls = fake.fault[rank].init_polls;
    enter(made);
    pthread_mutex_lock(&lock);
    made->next = comms;
    comms = made;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&fake.alive, 1);
    *comm = made;
    return NC_IN_PROGRESS;
}

/* ---- bytes that move ---- */

static size_t bytes_of(int type)
{
    return type == NC_INT8 ? 1 : type == NC_FLOAT32 ? 4 : 8;
}

static void ring_copy(ring *r, uint64_t place, unsigned char *data, size_t bytes, bool write)
{
    for (size_t done = 0; done < bytes;) {
        const size_t at = (size_t)((place + done) % RING), room = RING - at;
        const size_t n = bytes - done < room ? bytes - done : room;
        if (write)
            memcpy(r->bytes + at, data + done, n);
        else
            memcpy(data + done, r->bytes + at, n);
        done += n;
    }
}

/* How many bytes went. */
static size_t put(ring *r, const void *data, size_t bytes)
{
    const uint64_t written = atomic_load(&r->written), room = RING - (written - atomic_load(&r->read));
    const size_t n = bytes < room ? bytes : (size_t)room;
    ring_copy(r, written, (unsigned char *)(uintptr_t)data, n, true);
    atomic_store(&r->written, written + n);
    return n;
}

static size_t get(ring *r, void *data, size_t bytes)
{
    const uint64_t read = atomic_load(&r->read), there = atomic_load(&r->written) - read;
    const size_t n = bytes < there ? bytes : (size_t)there;
    ring_copy(r, read, data, n, false);
    atomic_store(&r->read, read + n);
    return n;
}

static void fits(const plan *p, const transfer *t, const header *theirs)
{
    if (theirs->plain == p->plain && theirs->type == t->type && theirs->count == (int64_t)t->count) return;
    mistake(0, "rank %d waits for %zu numbers of type %d of rank %d, which sends %lld of type %d",
            p->comm->rank, t->count, t->type, t->peer, (long long)theirs->count, theirs->type);
    atomic_store(&p->comm->failed, NC_INVALID_USAGE);
}

static bool is_done(const transfer *t)
{
    return t->at == sizeof(header) + t->count * bytes_of(t->type);
}

static void move(const plan *p, transfer *t)
{
    struct ncclComm *c = p->comm;
    header h = {p->plain, t->type, (int64_t)t->count};
    ring *r = t->send ? &c->shared->rings[c->rank][t->peer] : &c->shared->rings[t->peer][c->rank];
    if (t->at == 0) { /* a header goes as one */
        const uint64_t there = atomic_load(&r->written) - atomic_load(&r->read);
        if (t->send ? RING - there < sizeof h : there < sizeof h) return;
        t->at += t->send ? put(r, &h, sizeof h) : get(r, &h, sizeof h);
        if (!t->send) fits(p, t, &h);
        if (atomic_load(&c->failed)) return;
    }
    const size_t done = t->at - sizeof h, left = t->count * bytes_of(t->type) - done;
    t->at += t->send ? put(r, t->data + done, left) : get(r, t->data + done, left);
}

/* From the last rank to the first: no order that anyone promised. */
static void add_up(const plan *p)
{
    const int ranks = p->comm->ranks, rank = p->comm->rank;
    for (size_t i = 0; i < p->count; i++) {
        double wide = 0;
        float narrow = 0;
        for (int k = ranks - 1; k >= 0; k--) {
            const void *of = k == rank ? p->from : p->others + (size_t)k * p->count * bytes_of(p->type);
            if (p->type == NC_FLOAT64)
                wide = k == ranks - 1 ? ((const double *)of)[i] : wide + ((const double *)of)[i];
            else
                narrow = k == ranks - 1 ? ((const float *)of)[i] : narrow + ((const float *)of)[i];
        }
        if (p->type == NC_FLOAT64)
            ((double *)p->to)[i] = wide;
        else
            ((float *)p->to)[i] = narrow;
    }
}

/* As often as the device tries it, under its lock. */
static int meet(const void *data)
{
    plan *p = *(plan *const *)data;
    struct ncclComm *c = p->comm;
    if (atomic_load(&c->aborted)) {
        c->running = NULL;
        return 1;
    }
    if (p->stuck || is_cut(c) || atomic_load(&c->failed)) return 0;
    if (c->running && c->running != p) return 0;
    if (!c->running) {
        for (int i = 0; i < p->transfers; i++) p->transfer[i].at = 0;
        p->hangs = atomic_fetch_add(&fake.runs[c->rank], 1) + 1 == fake.fault[c->rank].hangs_at;
    }
    c->running = p;
    if (p->hangs) atomic_store(&fake.hung, 1);
    if (p->hangs) return 0;
    bool all = true;
    for (int i = 0; i < p->transfers; i++) {
        if (!is_done(&p->transfer[i])) move(p, &p->transfer[i]);
        all &= is_done(&p->transfer[i]);
    }
    if (!all || atomic_load(&c->failed)) return 0;
    if (p->plain) add_up(p);
    c->running = NULL;
    return 1;
}

static void gone(const void *data)
{
    plan *p = *(plan *const *)data;
    atomic_fetch_sub(p->recorded ? &p->comm->recorded : &p->comm->enqueued, 1);
    free(p->others);
    free(p);
}

/* ---- exchanges ---- */

static plan *new_plan(struct ncclComm *comm, void *stream)
{
    plan *p = calloc(1, sizeof *p);
    p->comm = comm;
    p->stream = stream;
    return p;
}

static int check_place(const struct ncclComm *comm, const void *address, int type, void *stream)
{
    if (type != NC_INT8 && type != NC_FLOAT32 && type != NC_FLOAT64)
        return mistake(NC_INVALID_ARGUMENT, "type %d", type);
    if (fake.device_of(address) != comm->device || fake.stream_device(stream) != comm->device)
        return mistake(NC_INVALID_ARGUMENT, "rank %d: memory or a stream of another device", comm->rank);
    return NC_SUCCESS;
}

/* 0, or how it was told to answer where work is recorded. */
static int check_capture(const struct ncclComm *comm, void *stream)
{
    const int code = fake.fault[comm->rank].refuses;
    if (!code || !fake.capturing(stream)) return NC_SUCCESS;
    snprintf(last_error, sizeof last_error, "it was told to refuse recordings");
    return code;
}

/* It will be enqueued when the communicator is asked. */
static int begin(plan *p)
{
    struct ncclComm *c = p->comm;
    const fake_nccl_fault *fault = &fake.fault[c->rank];
    p->recorded = fake.capturing(p->stream);
    if (p->recorded && !c->connected)
        mistake(0, "rank %d: recorded before the first use outside of a recording", c->rank);
    c->exchanges++;
    p->stuck = fault->stuck_at == c->exchanges;
    if (p->stuck && fault->async_code) c->bomb = SOON;
    c->pending = p;
    c->phase = ENQUEUEING;
    c->polls = fault->group_polls;
    atomic_fetch_add(&fake.exchanges, 1);
    atomic_fetch_add(&fake.recorded, p->recorded);
    return NC_IN_PROGRESS;
}

API int ncclGroupStart(void)
{
    depth++;
    return NC_SUCCESS;
}

API int ncclGroupEnd(void)
{
    if (!depth) return mistake(NC_INVALID_USAGE, "a group ends that did not begin");
    if (--depth || !open_group) return NC_SUCCESS;
    plan *p = open_group;
    open_group = NULL;
    return begin(p);
}

static int add_transfer(int send, const void *data, size_t count, int type, int peer, nc_comm comm,
                        void *stream)
{
    int code = check_comm(comm, send ? "ncclSend" : "ncclRecv");
    if (!code) code = check_place(comm, data, type, stream);
    if (!code) code = check_capture(comm, stream);
    if (code) return code;
    if (!depth) return mistake(NC_INVALID_USAGE, "an exchange outside of a group");
    if (peer < 0 || peer >= comm->ranks || peer == comm->rank)
        return mistake(NC_INVALID_ARGUMENT, "rank %d exchanges with %d", comm->rank, peer);
    if (!open_group) open_group = new_plan(comm, stream);
    plan *p = open_group;
    if (p->comm != comm || p->stream != stream || p->transfers == 2 * FAKE_NCCL_RANKS)
        return mistake(NC_INVALID_USAGE, "a group of several communicators, streams or too many exchanges");
    p->transfer[p->transfers++] = (transfer){send, peer, type, count, 0, (unsigned char *)(uintptr_t)data};
    return NC_SUCCESS;
}

API int ncclSend(const void *from, size_t count, int type, int peer, nc_comm comm, struct CUstream_st *stream)
{
    return add_transfer(1, from, count, type, peer, comm, stream);
}

API int ncclRecv(void *to, size_t count, int type, int peer, nc_comm comm, struct CUstream_st *stream)
{
    return add_transfer(0, to, count, type, peer, comm, stream);
}

API int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, nc_comm comm,
                      struct CUstream_st *stream)
{
    int code = check_comm(comm, "ncclAllReduce");
    if (!code) code = check_place(comm, from, type, stream);
    if (!code) code = check_place(comm, to, type, stream);
    if (!code) code = check_capture(comm, stream);
    if (code) return code;
    if (depth || op != NC_SUM || type == NC_INT8)
        return mistake(NC_INVALID_USAGE, "a sum in a group, or none");
    plan *p = new_plan(comm, stream);
    p->plain = true;
    p->type = type;
    p->count = count;
    p->from = from;
    p->to = to;
    p->others = malloc((size_t)comm->ranks * count * bytes_of(type) + 1);
    for (int peer = 0; peer < comm->ranks; peer++) {
        unsigned char *row = p->others + (size_t)peer * count * bytes_of(type);
        if (peer == comm->rank) continue;
        p->transfer[p->transfers++] = (transfer){1, peer, type, count, 0, (unsigned char *)(uintptr_t)from};
        p->transfer[p->transfers++] = (transfer){0, peer, type, count, 0, row};
    }
    atomic_fetch_add(&fake.plain_sums, 1);
    return begin(p);
}

/* ---- what is in progress ---- */

static bool all_came(struct ncclComm *c)
{
    int wrong = atomic_load(&c->shared->wrong);
    if (wrong) {
        snprintf(last_error, sizeof last_error,
                 wrong == NC_INVALID_USAGE ? "Duplicate GPU detected" : "ranks do not fit together");
        atomic_store(&c->failed, wrong);
        return false;
    }
    return atomic_load(&c->shared->arrived) == c->ranks;
}

/* The first exchange of two ranks waits for both. */
static bool all_know(const plan *p)
{
    const struct ncclComm *c = p->comm;
    bool all = true;
    for (int i = 0; i < p->transfers; i++) {
        const int peer = p->transfer[i].peer;
        atomic_store(&c->shared->knows[c->rank][peer], 1);
        all &= atomic_load(&c->shared->knows[peer][c->rank]) != 0;
    }
    return all;
}

static void enqueue(struct ncclComm *c)
{
    plan *p = c->pending;
    c->pending = NULL;
    c->connected = true;
    atomic_fetch_add(p->recorded ? &c->recorded : &c->enqueued, 1);
    c->phase = READY;
    if (fake.meet(p->stream, meet, gone, &p, sizeof p)) atomic_store(&c->failed, NC_UNHANDLED_CUDA_ERROR);
}

static void go_on(struct ncclComm *c)
{
    if (c->phase == COMING && all_came(c) && c->polls-- <= 0) c->phase = READY;
    if (c->phase == ENQUEUEING && all_know(c->pending) && c->polls-- <= 0) enqueue(c);
    if (c->phase == LEAVING && !atomic_load(&c->enqueued) && !atomic_load(&c->recorded)) c->phase = READY;
}

API int ncclCommGetAsyncError(nc_comm comm, int *error)
{
    if (!is_known(comm) || comm->phase == ENDED)
        return mistake(NC_INVALID_ARGUMENT, "a communicator that is gone is asked");
    if (comm->phase != READY && !is_cut(comm))
        go_on(comm);
    else if (comm->phase == READY && comm->bomb && !--comm->bomb)
        atomic_store(&comm->failed, fake.fault[comm->rank].async_code);
    if (fake.hears && atomic_load(&comm->shared->gone)) atomic_store(&comm->failed, NC_REMOTE_ERROR);
    const int failed = atomic_load(&comm->failed);
    *error = failed ? failed : comm->phase != READY ? NC_IN_PROGRESS : NC_SUCCESS;
    return NC_SUCCESS;
}

/* ---- leaving ---- */

API int ncclCommFinalize(nc_comm comm)
{
    int code = check_comm(comm, "ncclCommFinalize");
    if (code) return code;
    if (depth) mistake(0, "a group that has no end");
    if (atomic_load(&comm->recorded)) mistake(0, "an end while recordings hold the communicator");
    comm->finalized = true;
    comm->phase = LEAVING;
    return NC_IN_PROGRESS;
}

static void leave(struct ncclComm *comm)
{
    comm->phase = ENDED;
    shm_unlink(comm->name);
    atomic_fetch_sub(&fake.alive, 1);
}

API int ncclCommDestroy(nc_comm comm)
{
    int code = check_comm(comm, "ncclCommDestroy");
    if (code) return code;
    if (!comm->finalized) mistake(0, "destroyed without an end");
    leave(comm);
    munmap(comm->shared, sizeof *comm->shared);
    return NC_SUCCESS;
}

/* Waits for recordings as the real one does. The memory stays: the device may have it in hand. */
API int ncclCommAbort(nc_comm comm)
{
    const struct timespec little = {0, 100000};
    if (!is_known(comm) || comm->phase == ENDED)
        return mistake(NC_INVALID_ARGUMENT, "a communicator that is gone is aborted");
    atomic_store(&comm->aborted, true);
    atomic_store(&comm->shared->gone, 1);
    atomic_fetch_add(&fake.aborts, 1);
    if (comm->pending) {
        free(comm->pending->others);
        free(comm->pending);
        comm->pending = NULL;
    }
    while (atomic_load(&comm->recorded)) nanosleep(&little, NULL);
    leave(comm);
    return NC_SUCCESS;
}

/* ---- words ---- */

API const char *ncclGetErrorString(int result)
{
    static const char *const words[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return result >= 0 && result <= NC_IN_PROGRESS ? words[result] : "unknown result code";
}

API const char *ncclGetLastError(nc_comm comm)
{
    (void)comm;
    return last_error;
}
