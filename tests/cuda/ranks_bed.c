/* A bed for the tests of sums over ranks. */
#include "ranks_bed.h"

#include "test_places.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const xph_backend *xph_backend_query(uint32_t abi, const xph_host *host);

fake_nccl *ranks_fake;
const xph_backend *ranks_gpu;

/* ---- the host ---- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
char ranks_log[4096];
atomic_int ranks_cancelled;
static atomic_int live;

static void *host_alloc(void *context, size_t bytes)
{
    atomic_fetch_add(&live, 1);
    return malloc(bytes);
}

static void host_free(void *context, void *pointer, size_t bytes)
{
    atomic_fetch_sub(&live, 1);
    free(pointer);
}

static void host_log(void *context, exphil_log_level level, const char *message)
{
    pthread_mutex_lock(&log_lock);
    size_t used = strlen(ranks_log);
    if (level <= EXPHIL_LOG_WARNING) snprintf(ranks_log + used, sizeof ranks_log - used, "%s\n", message);
    pthread_mutex_unlock(&log_lock);
}

static int32_t host_cancelled(void *context)
{
    return atomic_load(&ranks_cancelled);
}

xph_host ranks_host = {.struct_size = sizeof ranks_host,
                       .abi = XPH_BACKEND_ABI,
                       .alloc = host_alloc,
                       .free = host_free,
                       .log = host_log,
                       .cancelled = host_cancelled};

/* ---- ranks ---- */

void rank_fail(const rank_of *r, const char *file, int line, const char *words)
{
    fprintf(stderr, "%s:%d: rank %d of %d: %s\n", file, line, r->rank, r->ranks, words);
    fprintf(stderr, "error: %s\nlog: %s\nstand-in: %s\n", r->error.message, ranks_log, ranks_fake->said);
    fprintf(stderr, "emulated GPU: %s\n", emu_fault() ? emu_fault() : "");
    _exit(1);
}

void rank_open(rank_of *r)
{
    WANT(r, ranks_gpu->device_open(&ranks_host, r->rank, &r->device, &r->error) == EXPHIL_OK);
    WANT(r, ranks_gpu->stream_create(r->device, 0, &r->stream) == EXPHIL_OK);
    WANT(r, ranks_gpu->comm_open(r->device, &r->args, &r->comm, &r->error) == EXPHIL_OK);
}

void rank_close(rank_of *r)
{
    if (r->comm) ranks_gpu->comm_close(r->comm);
    if (r->stream) ranks_gpu->stream_destroy(r->stream);
    if (r->device) ranks_gpu->device_close(r->device);
}

static void *rank_run(void *of)
{
    rank_of *r = of;
    r->body(r);
    return NULL;
}

void ranks_id(uint8_t id[XPH_COMM_ID_BYTES])
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (ranks_gpu->comm_id(id, &error) < 0) fail_msg("%s", error.message);
}

void rank_init(rank_of *r, int rank, int ranks, uint32_t flags, const uint8_t *id)
{
    *r = (rank_of){.rank = rank, .ranks = ranks, .error = EXPHIL_ERROR_INIT};
    r->args = (xph_comm_args){
        .id = id, .rank = rank, .ranks = ranks, .flags = flags, .timeout_ms = PATIENT, .bytes = MOST * 8};
}

void ranks_clean(void)
{
    if (ranks_fake->said[0]) fail_msg("the stand-in says: %s", ranks_fake->said);
    if (emu_fault()) fail_msg("the emulated GPU says: %s", emu_fault());
    assert_int_equal(atomic_load(&ranks_fake->alive), 0);
    assert_int_equal(atomic_load(&live), 0);
    assert_int_equal(emu_allocated(), 0);
    assert_int_equal(emu_count().objects, 0);
}

void ranks_run(rank_of *r, int count, void (*body)(rank_of *r))
{
    pthread_t threads[FAKE_NCCL_RANKS];
    for (int i = 0; i < count; i++) {
        r[i].body = body;
        assert_int_equal(pthread_create(&threads[i], NULL, rank_run, &r[i]), 0);
    }
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

void ranks_run_group(int ranks, uint32_t flags, void (*body)(rank_of *r), void *arg)
{
    uint8_t id[XPH_COMM_ID_BYTES];
    rank_of r[FAKE_NCCL_RANKS];
    ranks_id(id);
    for (int i = 0; i < ranks; i++) {
        rank_init(&r[i], i, ranks, flags, id);
        r[i].arg = arg;
    }
    ranks_run(r, ranks, body);
    ranks_clean();
}

int ranks_set_up(void **state)
{
    memset(ranks_fake->fault, 0, sizeof ranks_fake->fault);
    memset(ranks_fake->said, 0, sizeof ranks_fake->said);
    ranks_fake->version = 0;
    ranks_log[0] = 0;
    atomic_store(&ranks_cancelled, 0);
    emu_clear();
    emu_timing(EMU_EAGER, 0);
    return 0;
}

/* ---- numbers whose order of addition shows ---- */

static double ranks_number(int rank, int64_t i, uint64_t seed)
{
    uint64_t x =
        (uint64_t)rank * 0x9e3779b97f4a7c15u + (uint64_t)i * 0xbf58476d1ce4e5b9u + seed * 0x94d049bb133111ebu;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    const double unit = (double)(x >> 11) * 0x1p-53 - 0.5;
    return unit * (double)(1 << (x & 15));
}

size_t ranks_size(xph_type type)
{
    return type == XPH_F64 ? 8 : 4;
}

void ranks_fill(xph_type type, void *to, int64_t count, int rank, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        if (type == XPH_F64)
            ((double *)to)[i] = ranks_number(rank, i, seed);
        else
            ((float *)to)[i] = (float)ranks_number(rank, i, seed);
    }
}

/* Of ranks from..to - 1 of a tree over 2^k of them, as a child would write it down. */
static double tree_of(xph_type type, int from, int to, int64_t i, uint64_t seed)
{
    if (to - from == 1)
        return type == XPH_F64 ? ranks_number(from, i, seed) : (double)(float)ranks_number(from, i, seed);
    int half = 1;
    while (2 * half < to - from) half *= 2;
    const double left = tree_of(type, from, from + half, i, seed),
                 right = tree_of(type, from + half, to, i, seed);
    return type == XPH_F64 ? left + right : (double)((float)left + (float)right);
}

void ranks_want(xph_type type, void *to, int64_t count, int ranks, bool tree, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        double wide = ranks_number(0, i, seed);
        float narrow = (float)wide;
        for (int rank = 1; rank < ranks; rank++) {
            wide += ranks_number(rank, i, seed);
            narrow += (float)ranks_number(rank, i, seed);
        }
        if (type == XPH_F64)
            ((double *)to)[i] = tree ? tree_of(type, 0, ranks, i, seed) : wide;
        else
            ((float *)to)[i] = tree ? (float)tree_of(type, 0, ranks, i, seed) : narrow;
    }
}

meeting *meeting_make(int ranks)
{
    meeting *m = calloc(1, sizeof *m);
    pthread_barrier_init(&m->all, NULL, (unsigned)ranks);
    return m;
}

void meeting_end(meeting *m)
{
    pthread_barrier_destroy(&m->all);
    free(m);
}

bool ranks_agree(const rank_of *r, const void *got, size_t bytes)
{
    meeting *m = r->arg;
    if (!m) return true; /* a process of its own */
    if (r->rank == 0) memcpy(m->shared, got, bytes);
    pthread_barrier_wait(&m->all);
    bool same = memcmp(m->shared, got, bytes) == 0;
    pthread_barrier_wait(&m->all);
    return same;
}

bool ranks_near(xph_type type, const void *got, const void *right, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const double a = type == XPH_F64 ? ((const double *)got)[i] : (double)((const float *)got)[i];
        const double b = type == XPH_F64 ? ((const double *)right)[i] : (double)((const float *)right)[i];
        if (!(a - b < 1e-1 && b - a < 1e-1)) return false;
    }
    return true;
}

/* ---- ranks that are processes ---- */

/* Status of one that ended well, for waitpid. */
static int run_process(rank_of *r, void (*body)(rank_of *r))
{
    pid_t child = fork();
    if (child) return child;
    body(r);
    if (ranks_fake->said[0]) fprintf(stderr, "rank %d: the stand-in says: %s\n", r->rank, ranks_fake->said);
    _exit(ranks_fake->said[0] ? 1 : 0);
}

void ranks_run_processes(int ranks, void (*const body[])(rank_of *r), const int status[])
{
    uint8_t id[XPH_COMM_ID_BYTES];
    rank_of r[FAKE_NCCL_RANKS];
    pid_t child[FAKE_NCCL_RANKS];
    ranks_id(id);
    for (int i = 0; i < ranks; i++) {
        rank_init(&r[i], i, ranks, 0, id);
        child[i] = run_process(&r[i], body[i]);
    }
    bool wrong = false;
    for (int left = ranks; left; left--) {
        int got = -1, i = 0;
        const pid_t ended = waitpid(-1, &got, 0);
        while (i < ranks - 1 && child[i] != ended) i++;
        wrong |= !WIFEXITED(got) || WEXITSTATUS(got) != status[i];
        child[i] = 0;
        /* Others would wait for it. */
        for (int k = 0; wrong && k < ranks; k++)
            if (child[k]) kill(child[k], SIGKILL);
    }
    assert_false(wrong);
}

int ranks_main(int (*run)(void))
{
    void *library = dlopen(RANKS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    ranks_fake = dlsym(library, "fake");
    ranks_fake->meet = emu_meet;
    ranks_fake->capturing = emu_capturing;
    ranks_fake->device = emu_device;
    ranks_fake->device_of = emu_device_of;
    ranks_fake->stream_device = emu_stream_device;
    ranks_gpu = xph_backend_query(XPH_BACKEND_ABI, &ranks_host);
    setenv("EXPHIL_NCCL", RANKS_LIBRARY, 1);
    setenv("EXPHIL_CUBLASLT", "none", 1);
    emu_devices(4, 0);
    emu_protect(1);
    return run();
}
