/* Sums over ranks as table A has them, by cuda/nccl.c on a stand-in for NCCL: ranks are threads or processes, each with an
 * emulated GPU of its own. Sums are those of a plain loop, to the last bit; who is missing, slow, wrong or dead is found out,
 * and nobody waits for ever. */
#include "test.h"
#include "test_places.h"

#include "emu_control.h"
#include "fake_nccl.h"
#include "kernels.h"
#include "nccl_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FAKE_PATH EXPHIL_BINARY_DIR "/tests/plugin-emulated/libfake_nccl.so"

enum {
    MOST = 40000 /* numbers, more than a ring of the stand-in holds */,
    PATIENT = 120000,
    IMPATIENT = 300
};

const xph_backend *xph_backend_query(uint32_t abi, const xph_host *host);

static fake_nccl *fake;
static const xph_backend *gpu;

/* ---- the host ---- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char logged[4096]; /* warnings and errors */
static atomic_int live, cancelled;

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
    size_t used = strlen(logged);
    if (level <= EXPHIL_LOG_WARNING) snprintf(logged + used, sizeof logged - used, "%s\n", message);
    pthread_mutex_unlock(&log_lock);
}

static int32_t host_cancelled(void *context)
{
    return atomic_load(&cancelled);
}

static xph_host host = {.struct_size = sizeof host,
                        .abi = XPH_BACKEND_ABI,
                        .alloc = host_alloc,
                        .free = host_free,
                        .log = host_log,
                        .cancelled = host_cancelled};

/* ---- ranks ---- */

typedef struct rank_of {
    int rank, ranks;
    xph_comm_args args;
    void *arg;
    void (*body)(struct rank_of *r);
    int wrong; /* the line where it was found out, or 0 */
    xph_device *device;
    xph_stream *stream;
    xph_comm *comm;
    exphil_error error;
} rank_of;

/* cmocka's own end the program from another thread. */
#define WANT(r, condition)                                                                                   \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      if (!(r)->wrong) (r)->wrong = __LINE__;                                                                \
      return;                                                                                                \
    }                                                                                                        \
  } while (0)

static void rank_open(rank_of *r)
{
    WANT(r, gpu->device_open(&host, r->rank, &r->device, &r->error) == EXPHIL_OK);
    WANT(r, gpu->stream_create(r->device, 0, &r->stream) == EXPHIL_OK);
    WANT(r, gpu->comm_open(r->device, &r->args, &r->comm, &r->error) == EXPHIL_OK);
}

static void rank_close(rank_of *r)
{
    if (r->comm) gpu->comm_close(r->comm);
    if (r->stream) gpu->stream_destroy(r->stream);
    if (r->device) gpu->device_close(r->device);
}

static void *rank_run(void *of)
{
    rank_of *r = of;
    r->body(r);
    return NULL;
}

static void new_id(uint8_t id[XPH_COMM_ID_BYTES])
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (gpu->comm_id(id, &error) < 0) fail_msg("%s", error.message);
}

static void rank_init(rank_of *r, int rank, int ranks, uint32_t flags, const uint8_t *id)
{
    *r = (rank_of){.rank = rank, .ranks = ranks, .error = EXPHIL_ERROR_INIT};
    r->args = (xph_comm_args){
        .id = id, .rank = rank, .ranks = ranks, .flags = flags, .timeout_ms = PATIENT, .bytes = MOST * 8};
}

static void check_clean(void)
{
    if (fake->said[0]) fail_msg("the stand-in says: %s", fake->said);
    if (emu_fault()) fail_msg("the emulated GPU says: %s", emu_fault());
    assert_int_equal(atomic_load(&fake->alive), 0);
    assert_int_equal(atomic_load(&live), 0);
    assert_int_equal(emu_allocated(), 0);
    assert_int_equal(emu_count().objects, 0);
}

/* As threads. */
static void run_some(rank_of *r, int count, void (*body)(rank_of *r))
{
    pthread_t threads[FAKE_NCCL_RANKS];
    for (int i = 0; i < count; i++) {
        r[i].body = body;
        assert_int_equal(pthread_create(&threads[i], NULL, rank_run, &r[i]), 0);
    }
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++)
        if (r[i].wrong) fail_msg("rank %d: line %d: %s\n%s", i, r[i].wrong, r[i].error.message, logged);
}

/* A whole group. */
static void run_ranks(int ranks, uint32_t flags, void (*body)(rank_of *r), void *arg)
{
    uint8_t id[XPH_COMM_ID_BYTES];
    rank_of r[FAKE_NCCL_RANKS];
    new_id(id);
    for (int i = 0; i < ranks; i++) {
        rank_init(&r[i], i, ranks, flags, id);
        r[i].arg = arg;
    }
    run_some(r, ranks, body);
    check_clean();
}

static int set_up(void **state)
{
    memset(fake->fault, 0, sizeof fake->fault);
    memset(fake->said, 0, sizeof fake->said);
    fake->version = 0;
    logged[0] = 0;
    atomic_store(&cancelled, 0);
    emu_clear();
    emu_timing(EMU_EAGER, 0);
    return 0;
}

/* ---- numbers whose order of addition shows ---- */

static double number_at(int rank, int64_t i, uint64_t seed)
{
    uint64_t x =
        (uint64_t)rank * 0x9e3779b97f4a7c15u + (uint64_t)i * 0xbf58476d1ce4e5b9u + seed * 0x94d049bb133111ebu;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    const double unit = (double)(x >> 11) * 0x1p-53 - 0.5;
    return unit * (double)(1 << (x & 15));
}

static size_t size_of(xph_type type)
{
    return type == XPH_F64 ? 8 : 4;
}

static void fill(xph_type type, void *to, int64_t count, int rank, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        if (type == XPH_F64)
            ((double *)to)[i] = number_at(rank, i, seed);
        else
            ((float *)to)[i] = (float)number_at(rank, i, seed);
    }
}

/* Of ranks from..to - 1 of a tree over 2^k of them, as a child would write it down. */
static double tree_of(xph_type type, int from, int to, int64_t i, uint64_t seed)
{
    if (to - from == 1)
        return type == XPH_F64 ? number_at(from, i, seed) : (double)(float)number_at(from, i, seed);
    int half = 1;
    while (2 * half < to - from) half *= 2;
    const double left = tree_of(type, from, from + half, i, seed),
                 right = tree_of(type, from + half, to, i, seed);
    return type == XPH_F64 ? left + right : (double)((float)left + (float)right);
}

static void want(xph_type type, void *to, int64_t count, int ranks, bool tree, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        double wide = number_at(0, i, seed);
        float narrow = (float)wide;
        for (int rank = 1; rank < ranks; rank++) {
            wide += number_at(rank, i, seed);
            narrow += (float)number_at(rank, i, seed);
        }
        if (type == XPH_F64)
            ((double *)to)[i] = tree ? tree_of(type, 0, ranks, i, seed) : wide;
        else
            ((float *)to)[i] = tree ? (float)tree_of(type, 0, ranks, i, seed) : narrow;
    }
}

/* ---- the kernel ---- */

static void check_kernel(xph_type type, int ranks, int rank, int64_t count, bool tree)
{
    const size_t size = size_of(type), bytes = (size_t)count * size;
    const int64_t stride = count + 3;
    unsigned char *others = emu_alloc((size_t)ranks * (size_t)stride * size, 16), *own = emu_alloc(bytes, 16);
    unsigned char *right = malloc(bytes);
    for (int k = 0; k < ranks; k++)
        if (k != rank) fill(type, others + (size_t)k * (size_t)stride * size, count, k, 5);
    fill(type, own, count, rank, 5);
    want(type, right, count, ranks, tree, 5);
    const xph_ranks_args a = {.type = type,
                              .tree = tree,
                              .rank = rank,
                              .ranks = ranks,
                              .count = count,
                              .stride = stride,
                              .own = own,
                              .others = others};
    assert_int_equal(xph_ranks(&a, NULL), 0);
    assert_null(emu_fault());
    assert_memory_equal(own, right, bytes);
    free(right);
    emu_free(own);
    emu_free(others);
}

static void the_kernel_adds_in_order(void **state)
{
    static const int64_t counts[] = {1, 5, 1023, 1025, 3000};
    emu_protect(0);
    for (int schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
        emu_schedule(schedule);
        for (int ranks = 1; ranks < 10; ranks++)
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
                check_kernel(XPH_F32, ranks, ranks / 2, counts[i], false);
                check_kernel(XPH_F64, ranks, 0, counts[i], false);
                check_kernel(XPH_F32, ranks, ranks - 1, counts[i], true);
                check_kernel(XPH_F64, ranks, ranks / 2, counts[i], true);
            }
    }
    emu_schedule(EMU_FORWARD);
    check_kernel(XPH_F64, XPH_COMM_RANKS, 200, 7, true);
    check_kernel(XPH_F32, XPH_COMM_RANKS, 200, 7, false);
    emu_protect(1);
}

/* ---- sums ---- */

/* What all ranks have is written to the first of them and held against it by the others. */
typedef struct meeting {
    pthread_barrier_t all;
    unsigned char shared[MOST * 8];
} meeting;

static meeting *new_meeting(int ranks)
{
    meeting *m = calloc(1, sizeof *m);
    pthread_barrier_init(&m->all, NULL, (unsigned)ranks);
    return m;
}

static void end_meeting(meeting *m)
{
    pthread_barrier_destroy(&m->all);
    free(m);
}

static bool same_everywhere(const rank_of *r, const void *got, size_t bytes)
{
    meeting *m = r->arg;
    if (!m) return true; /* a process of its own */
    if (r->rank == 0) memcpy(m->shared, got, bytes);
    pthread_barrier_wait(&m->all);
    bool same = memcmp(m->shared, got, bytes) == 0;
    pthread_barrier_wait(&m->all);
    return same;
}

static bool is_near(xph_type type, const void *got, const void *right, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const double a = type == XPH_F64 ? ((const double *)got)[i] : (double)((const float *)got)[i];
        const double b = type == XPH_F64 ? ((const double *)right)[i] : (double)((const float *)right)[i];
        if (!(a - b < 1e-1 && b - a < 1e-1)) return false;
    }
    return true;
}

/* Of numbers with a guard behind them. */
static void sum_once(rank_of *r, xph_type type, int64_t count, uint64_t seed)
{
    const size_t bytes = (size_t)count * size_of(type), all = bytes + 8;
    unsigned char *got = malloc(all), *right = malloc(all);
    void *data = NULL;
    memset(got, 0x5a, all);
    fill(type, got, count, r->rank, seed);
    want(type, right, count, r->ranks, (r->args.flags & XPH_COMM_TREE) != 0, seed);
    WANT(r, gpu->alloc(r->device, all, &data) == EXPHIL_OK);
    WANT(r, gpu->upload(r->stream, data, got, all) == EXPHIL_OK);
    WANT(r, gpu->comm_reduce(r->comm, r->stream, data, count, type) == EXPHIL_OK);
    memset(got, 0, all);
    WANT(r, gpu->download(r->stream, got, data, all) == EXPHIL_OK);
    WANT(r, gpu->stream_wait(r->stream) == EXPHIL_OK);
    const bool plain = (r->args.flags & XPH_COMM_PLAIN) != 0;
    WANT(r, plain ? is_near(type, got, right, count) : memcmp(got, right, bytes) == 0);
    for (size_t i = bytes; i < all; i++) WANT(r, got[i] == 0x5a);
    WANT(r, same_everywhere(r, got, all));
    gpu->free(r->device, data, all);
    free(got);
    free(right);
}

static void many_sums(rank_of *r)
{
    static const int64_t counts[] = {0, 1, 3, 4, 17, 64, 1001, MOST};
    rank_open(r);
    if (r->wrong) return;
    for (size_t i = 0; i < sizeof counts / sizeof *counts && !r->wrong; i++) {
        sum_once(r, XPH_F32, counts[i], i);
        if (!r->wrong) sum_once(r, XPH_F64, counts[i], i + 100);
    }
    WANT(r, gpu->comm_state(r->comm) == XPH_COMM_OK);
    rank_close(r);
}

static void sums_are_those_of_a_plain_loop(void **state)
{
    static const uint32_t flags[] = {0, XPH_COMM_TREE, XPH_COMM_PLAIN};
    for (int timing = 0; timing < EMU_TIMINGS; timing++) {
        emu_timing(timing, 7);
        for (int ranks = 1; ranks <= 4; ranks++)
            for (int f = 0; f < 3; f++) {
                meeting *m = new_meeting(ranks);
                fake->fault[ranks - 1].init_polls = fake->fault[0].group_polls = 3;
                run_ranks(ranks, flags[f], many_sums, m);
                end_meeting(m);
            }
    }
    assert_true(atomic_load(&fake->plain_sums) > 0);
}

/* Else the tests above could not tell one order from another. */
static void the_order_shows(void **state)
{
    float line[1000], tree[1000];
    int differ = 0;
    want(XPH_F32, line, 1000, 4, false, 1);
    want(XPH_F32, tree, 1000, 4, true, 1);
    for (int i = 0; i < 1000; i++) differ += memcmp(&line[i], &tree[i], sizeof *line) != 0;
    assert_in_range(differ, 100, 900);
}

/* ---- recordings ---- */

static void recorded(rank_of *r)
{
    enum { COUNT = 1003, TIMES = 10 };
    const size_t bytes = COUNT * sizeof(float);
    float *got = malloc(bytes), *right = malloc(bytes);
    void *from = NULL, *data = NULL;
    xph_graph *graph = NULL;
    rank_open(r);
    if (r->wrong) return;
    WANT(r, gpu->alloc(r->device, bytes, &from) == EXPHIL_OK &&
                gpu->alloc(r->device, bytes, &data) == EXPHIL_OK);
    WANT(r, gpu->zero(r->stream, data, bytes) == EXPHIL_OK);
    WANT(r, gpu->comm_reduce(r->comm, r->stream, data, COUNT, XPH_F32) == EXPHIL_OK);
    WANT(r, gpu->record_begin(r->stream) == EXPHIL_OK);
    WANT(r, gpu->copy(r->stream, data, from, bytes) == EXPHIL_OK);
    WANT(r, gpu->comm_reduce(r->comm, r->stream, data, COUNT, XPH_F32) == EXPHIL_OK);
    WANT(r, gpu->record_end(r->stream, &graph) == EXPHIL_OK);
    for (uint64_t time = 0; time < TIMES; time++) {
        fill(XPH_F32, got, COUNT, r->rank, time);
        want(XPH_F32, right, COUNT, r->ranks, (r->args.flags & XPH_COMM_TREE) != 0, time);
        WANT(r, gpu->upload(r->stream, from, got, bytes) == EXPHIL_OK);
        WANT(r, gpu->replay(r->stream, graph) == EXPHIL_OK);
        WANT(r, gpu->download(r->stream, got, data, bytes) == EXPHIL_OK);
        WANT(r, gpu->stream_wait(r->stream) == EXPHIL_OK);
        WANT(r, r->args.flags & XPH_COMM_PLAIN ? is_near(XPH_F32, got, right, COUNT)
                                               : memcmp(got, right, bytes) == 0);
        WANT(r, same_everywhere(r, got, bytes));
    }
    gpu->graph_destroy(graph);
    gpu->free(r->device, from, bytes);
    gpu->free(r->device, data, bytes);
    rank_close(r);
    free(got);
    free(right);
}

static void sums_are_recorded_and_replayed(void **state)
{
    static const uint32_t flags[] = {0, XPH_COMM_TREE, XPH_COMM_PLAIN};
    for (int timing = 0; timing < EMU_TIMINGS; timing++) {
        emu_timing(timing, 3);
        for (int ranks = 2; ranks <= 4; ranks += 2)
            for (int f = 0; f < 3; f++) {
                meeting *m = new_meeting(ranks);
                run_ranks(ranks, flags[f], recorded, m);
                end_meeting(m);
            }
    }
}

/* ---- two groups ---- */

typedef struct second {
    uint8_t id[XPH_COMM_ID_BYTES];
} second;

static void two_groups(rank_of *r)
{
    enum { COUNT = 777 };
    const second *other = r->arg;
    const size_t bytes = COUNT * sizeof(double);
    double *got[2] = {malloc(bytes), malloc(bytes)}, *right = malloc(bytes);
    void *data[2] = {NULL, NULL};
    xph_stream *stream[2] = {NULL, NULL};
    xph_comm *comm[2] = {NULL, NULL};
    rank_open(r);
    if (r->wrong) return;
    xph_comm_args args = r->args; /* in which rank and number differ */
    args.id = other->id;
    args.rank = r->ranks - 1 - r->rank;
    WANT(r, gpu->comm_open(r->device, &args, &comm[1], &r->error) == EXPHIL_OK);
    WANT(r, gpu->stream_create(r->device, 0, &stream[1]) == EXPHIL_OK);
    comm[0] = r->comm;
    stream[0] = r->stream;
    for (int i = 0; i < 2; i++) {
        fill(XPH_F64, got[i], COUNT, i ? args.rank : r->rank, 9);
        WANT(r, gpu->alloc(r->device, bytes, &data[i]) == EXPHIL_OK);
        WANT(r, gpu->upload(stream[i], data[i], got[i], bytes) == EXPHIL_OK);
    }
    for (int i = 0; i < 2; i++)
        WANT(r, gpu->comm_reduce(comm[i], stream[i], data[i], COUNT, XPH_F64) == EXPHIL_OK);
    for (int i = 1; i >= 0; i--) {
        WANT(r, gpu->download(stream[i], got[i], data[i], bytes) == EXPHIL_OK);
        WANT(r, gpu->stream_wait(stream[i]) == EXPHIL_OK);
        want(XPH_F64, right, COUNT, r->ranks, false, 9);
        WANT(r, memcmp(got[i], right, bytes) == 0);
        gpu->free(r->device, data[i], bytes);
        free(got[i]);
    }
    free(right);
    gpu->comm_close(comm[1]);
    gpu->stream_destroy(stream[1]);
    rank_close(r);
}

static void two_groups_at_once(void **state)
{
    second other;
    for (int timing = 0; timing < EMU_TIMINGS; timing++) {
        emu_timing(timing, 3);
        new_id(other.id);
        run_ranks(4, 0, two_groups, &other);
    }
}

/* ---- ranks that are processes ---- */

/* Status of one that ended well, for waitpid. */
static int run_process(rank_of *r, void (*body)(rank_of *r))
{
    pid_t child = fork();
    if (child) return child;
    body(r);
    if (r->wrong) fprintf(stderr, "rank %d: line %d: %s\n", r->rank, r->wrong, r->error.message);
    if (fake->said[0]) fprintf(stderr, "rank %d: the stand-in says: %s\n", r->rank, fake->said);
    _exit(r->wrong || fake->said[0] ? 1 : 0);
}

static void run_processes(int ranks, void (*const body[])(rank_of *r), const int status[])
{
    uint8_t id[XPH_COMM_ID_BYTES];
    rank_of r[FAKE_NCCL_RANKS];
    pid_t child[FAKE_NCCL_RANKS];
    new_id(id);
    for (int i = 0; i < ranks; i++) {
        rank_init(&r[i], i, ranks, 0, id);
        child[i] = run_process(&r[i], body[i]);
    }
    for (int i = 0; i < ranks; i++) {
        int got = -1;
        assert_int_equal(waitpid(child[i], &got, 0), child[i]);
        assert_true(WIFEXITED(got));
        assert_int_equal(WEXITSTATUS(got), status[i]);
    }
}

static void ranks_may_be_processes(void **state)
{
    void (*const body[])(rank_of *) = {many_sums, many_sums, many_sums, many_sums};
    const int status[4] = {0};
    run_processes(2, body, status);
    run_processes(4, body, status);
}

/* ---- ranks that are missing ---- */

static void comes_alone(rank_of *r)
{
    WANT(r, gpu->device_open(&host, r->rank, &r->device, &r->error) == EXPHIL_OK);
    WANT(r, gpu->comm_open(r->device, &r->args, &r->comm, &r->error) < 0);
    WANT(r, !r->comm);
    rank_close(r);
}

static void one_comes_alone(exphil_status status, const char *words, int timeout_ms)
{
    uint8_t id[XPH_COMM_ID_BYTES];
    rank_of r;
    new_id(id);
    rank_init(&r, 1, 3, 0, id);
    r.args.timeout_ms = timeout_ms;
    run_some(&r, 1, comes_alone);
    assert_int_equal(r.error.status, status);
    assert_says(&r.error, words);
    check_clean();
}

static void who_does_not_come_is_not_waited_for(void **state)
{
    one_comes_alone(EXPHIL_E_IO, "rank 1 of 3: coming together: other ranks did not come within 300 ms",
                    IMPATIENT);
    atomic_store(&cancelled, 1);
    one_comes_alone(EXPHIL_E_CANCELLED, "cancelled", PATIENT);
}

enum { FEW = 100, ASKED = 50 };

/* A sum that cannot end. The host is not held, and may set words of the device meanwhile. */
static void hangs(rank_of *r, void *data, xph_graph *graph)
{
    xph_event *event = NULL;
    int32_t done = 1;
    uint32_t word = 0, *place = NULL;
    WANT(r, gpu->event_create(r->device, 0, &event) == EXPHIL_OK);
    WANT(r, gpu->alloc(r->device, sizeof word, (void **)&place) == EXPHIL_OK);
    if (graph)
        WANT(r, gpu->replay(r->stream, graph) == EXPHIL_OK);
    else
        WANT(r, gpu->comm_reduce(r->comm, r->stream, data, FEW, XPH_F32) == EXPHIL_OK);
    WANT(r, gpu->event_mark(event, r->stream) == EXPHIL_OK);
    for (int i = 0; i < ASKED; i++) {
        WANT(r, gpu->event_done(event, &done) == EXPHIL_OK && !done);
        WANT(r, gpu->comm_state(r->comm) == XPH_COMM_OK);
    }
    WANT(r, gpu->word_set(r->device, place, 0xfeed5eedu) == EXPHIL_OK);
    gpu->comm_abort(r->comm);
    WANT(r, gpu->comm_state(r->comm) == XPH_COMM_FAILED);
    WANT(r, gpu->event_wait(event) == EXPHIL_OK);
    WANT(r, gpu->event_done(event, &done) == EXPHIL_OK && done);
    WANT(r, gpu->download(r->stream, &word, place, sizeof word) == EXPHIL_OK);
    WANT(r, gpu->stream_wait(r->stream) == EXPHIL_OK && word == 0xfeed5eedu);
    WANT(r, gpu->comm_reduce(r->comm, r->stream, data, FEW, XPH_F32) == EXPHIL_E_IO);
    WANT(r, gpu->comm_state(r->comm) == XPH_COMM_FAILED);
    gpu->comm_abort(r->comm);
    gpu->free(r->device, place, sizeof word);
    gpu->event_destroy(event);
}

static void with_data(rank_of *r, void (*then)(rank_of *r, void *data))
{
    void *data = NULL;
    rank_open(r);
    if (r->wrong) return;
    WANT(r, gpu->alloc(r->device, FEW * sizeof(float), &data) == EXPHIL_OK);
    WANT(r, gpu->zero(r->stream, data, FEW * sizeof(float)) == EXPHIL_OK);
    then(r, data);
    if (r->wrong) return;
    gpu->free(r->device, data, FEW * sizeof(float));
    rank_close(r);
}

static void first_hangs_then(rank_of *r, void *data)
{
    if (r->rank == 0) hangs(r, data, NULL);
    same_everywhere(r, data, 0); /* the other stays until then, and does not take part */
}

static void first_hangs(rank_of *r)
{
    with_data(r, first_hangs_then);
}

static void all_hang_then(rank_of *r, void *data)
{
    hangs(r, data, NULL);
}

static void all_hang(rank_of *r)
{
    with_data(r, all_hang_then);
}

static void recorded_hangs_then(rank_of *r, void *data)
{
    xph_graph *graph = NULL;
    WANT(r, gpu->comm_reduce(r->comm, r->stream, data, FEW, XPH_F32) == EXPHIL_OK);
    WANT(r, gpu->record_begin(r->stream) == EXPHIL_OK);
    WANT(r, gpu->comm_reduce(r->comm, r->stream, data, FEW, XPH_F32) == EXPHIL_OK);
    WANT(r, gpu->record_end(r->stream, &graph) == EXPHIL_OK);
    WANT(r, gpu->stream_wait(r->stream) == EXPHIL_OK);
    if (r->rank == 0) hangs(r, data, graph);
    same_everywhere(r, data, 0);
    gpu->graph_destroy(graph);
}

static void recorded_hangs(rank_of *r)
{
    with_data(r, recorded_hangs_then);
}

static void a_sum_that_hangs_is_given_up(void **state)
{
    for (int timing = 0; timing < EMU_TIMINGS; timing++) {
        static void (*const bodies[])(rank_of *) = {first_hangs, recorded_hangs, all_hang};
        for (int i = 0; i < 3; i++) {
            meeting *m = new_meeting(2);
            emu_timing(timing, 1);
            fake->fault[1].stuck_at = bodies[i] == all_hang ? 2 : 0;
            run_ranks(2, 0, bodies[i], m);
            end_meeting(m);
            set_up(state);
        }
    }
}

static void dies(rank_of *r)
{
    rank_open(r);
    if (!r->wrong) _exit(7);
}

static void a_process_that_dies(void **state)
{
    void (*const body[])(rank_of *) = {all_hang, dies};
    const int status[] = {0, 7};
    run_processes(2, body, status);
}

/* ---- the library fails ---- */

static void fails_later(rank_of *r, void *data)
{
    xph_event *event = NULL;
    int32_t done = 0;
    WANT(r, gpu->event_create(r->device, 0, &event) == EXPHIL_OK);
    exphil_status status = gpu->comm_reduce(r->comm, r->stream, data, FEW, XPH_F32);
    WANT(r, status == EXPHIL_OK || (r->rank == 1 && status == EXPHIL_E_IO));
    WANT(r, gpu->event_mark(event, r->stream) == EXPHIL_OK);
    while (r->rank == 1 && gpu->comm_state(r->comm) != XPH_COMM_FAILED)
        WANT(r, gpu->event_done(event, &done) == EXPHIL_OK && !done);
    WANT(r, r->rank != 1 || gpu->comm_reduce(r->comm, r->stream, data, FEW, XPH_F32) == EXPHIL_E_IO);
    gpu->comm_abort(r->comm);
    WANT(r, gpu->stream_wait(r->stream) == EXPHIL_OK);
    gpu->event_destroy(event);
}

static void has_failed(rank_of *r)
{
    with_data(r, fails_later);
}

static void a_failure_of_the_library_is_told(void **state)
{
    fake->fault[1] = (fake_nccl_fault){.stuck_at = 2, .async_code = NC_REMOTE_ERROR};
    run_ranks(2, 0, has_failed, NULL);
    if (!strstr(logged, "cuda:1: NCCL, rank 1 of 2: ")) fail_msg("%s", logged);
    if (!strstr(logged, "remote process exited")) fail_msg("%s", logged);
}

static void does_not_come(rank_of *r)
{
    WANT(r, gpu->device_open(&host, r->rank, &r->device, &r->error) == EXPHIL_OK);
    WANT(r, gpu->comm_open(r->device, &r->args, &r->comm, &r->error) < 0);
    rank_close(r);
}

static void a_library_that_does_not_start(void **state)
{
    fake->fault[1].init_code = NC_SYSTEM_ERROR;
    one_comes_alone(EXPHIL_E_IO, "rank 1 of 3: coming together: unhandled system error (it was told to fail)",
                    PATIENT);
    fake->fault[1].init_code = 0;
    emu_fail_allocation(1);
    one_comes_alone(EXPHIL_E_MEMORY, "bytes for sums over ranks", PATIENT);
    /* The first exchange, of both */
    uint8_t id[XPH_COMM_ID_BYTES];
    rank_of r[2];
    new_id(id);
    fake->fault[0].stuck_at = fake->fault[1].stuck_at = 1;
    for (int i = 0; i < 2; i++) {
        rank_init(&r[i], i, 2, 0, id);
        r[i].args.timeout_ms = IMPATIENT;
    }
    run_some(r, 2, does_not_come);
    for (int i = 0; i < 2; i++)
        assert_says(&r[i].error, "the first exchange: other ranks did not come within 300 ms");
    check_clean();
}

/* ---- ranks that do not fit together ---- */

static void two_that_differ(const char *words, exphil_status status, void (*change)(rank_of *r))
{
    uint8_t id[XPH_COMM_ID_BYTES];
    rank_of r[2];
    new_id(id);
    for (int i = 0; i < 2; i++) {
        rank_init(&r[i], i, 2, 0, id);
        if (i) change(&r[i]);
    }
    run_some(r, 2, does_not_come);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(r[i].error.status, status);
        assert_says(&r[i].error, words);
    }
    check_clean();
}

static void other_flags(rank_of *r)
{
    r->args.flags = XPH_COMM_PLAIN;
}

static void other_bytes(rank_of *r)
{
    r->args.bytes++;
}

static void other_ranks(rank_of *r)
{
    r->args.ranks = 3;
}

static void same_device(rank_of *r)
{
    r->rank = 0;
}

static int counts_differ;

static void with_own_count(rank_of *r, void *data)
{
    xph_event *event = NULL;
    int32_t done = 0;
    meeting *m = r->arg;
    WANT(r, gpu->event_create(r->device, 0, &event) == EXPHIL_OK);
    exphil_status status = gpu->comm_reduce(r->comm, r->stream, data, r->rank ? 12 : 8, XPH_F32);
    WANT(r, status == EXPHIL_OK || status == EXPHIL_E_IO);
    WANT(r, gpu->event_mark(event, r->stream) == EXPHIL_OK);
    while (r->rank == 0 && gpu->comm_state(r->comm) != XPH_COMM_FAILED)
        WANT(r, gpu->event_done(event, &done) == EXPHIL_OK);
    if (r->rank == 0) counts_differ = 1;
    pthread_barrier_wait(&m->all);
    gpu->comm_abort(r->comm);
    WANT(r, gpu->stream_wait(r->stream) == EXPHIL_OK);
    gpu->event_destroy(event);
}

static void own_count(rank_of *r)
{
    with_data(r, with_own_count);
}

static void ranks_that_differ_are_named(void **state)
{
    uint8_t id[XPH_COMM_ID_BYTES];
    rank_of r[2];
    two_that_differ("was opened with other flags", EXPHIL_E_MISMATCH, other_flags);
    two_that_differ("was opened with other bytes", EXPHIL_E_MISMATCH, other_bytes);
    two_that_differ("ranks do not fit together", EXPHIL_E_IO, other_ranks);
    two_that_differ("Duplicate GPU detected", EXPHIL_E_IO, same_device);
    new_id(id);
    meeting *m = new_meeting(2);
    for (int i = 0; i < 2; i++) {
        rank_init(&r[i], i, 2, 0, id);
        r[i].arg = m;
    }
    run_some(r, 2, own_count);
    end_meeting(m);
    assert_int_equal(counts_differ, 1);
    assert_non_null(
        strstr(fake->said, "rank 0 waits for 4 numbers of type 7 of rank 1, which sends 8 of type 7"));
    fake->said[0] = 0;
    check_clean();
}

/* ---- refusals ---- */

static void refused_id(const char *nccl, exphil_status status, const char *words)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    uint8_t id[XPH_COMM_ID_BYTES];
    if (nccl)
        setenv("EXPHIL_NCCL", nccl, 1);
    else
        unsetenv("EXPHIL_NCCL");
    assert_int_equal(gpu->comm_id(id, &error), status);
    assert_says(&error, words);
    setenv("EXPHIL_NCCL", FAKE_PATH, 1);
}

/* Before any test that loads it: a library stays. */
static void libraries_are_refused_by_name(void **state)
{
    refused_id("none", EXPHIL_E_UNSUPPORTED, "EXPHIL_NCCL is \"none\"");
    refused_id(NULL, EXPHIL_E_UNSUPPORTED, "none-beside-an-emulated-GPU");
    refused_id("/not/there.so", EXPHIL_E_UNSUPPORTED,
               "no sums over ranks without NCCL (EXPHIL_NCCL names it): /not/there.so");
    refused_id("libm.so.6", EXPHIL_E_UNSUPPORTED, "libm.so.6 is no NCCL: it lacks ncclGetVersion");
    fake->version = 21703;
    refused_id(FAKE_PATH, EXPHIL_E_VERSION, "NCCL 2.17.3 (");
    refused_id(FAKE_PATH, EXPHIL_E_VERSION, "is too old, 2.18 or newer is needed");
    fake->version = 2804;
    refused_id(FAKE_PATH, EXPHIL_E_VERSION, "NCCL 2.8.4 (");
}

static void refused_args(xph_device *device, const xph_comm_args *args, const char *words)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_comm *comm = NULL;
    assert_int_equal(gpu->comm_open(device, args, &comm, &error), EXPHIL_E_INVALID);
    assert_says(&error, words);
    assert_null(comm);
}

#define REFUSED(field, value, words)                                                                         \
  do {                                                                                                       \
    xph_comm_args wrong = right;                                                                             \
    wrong.field = value;                                                                                     \
    refused_args(device, &wrong, words);                                                                     \
  } while (0)

static void arguments_are_refused_by_name(void **state)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_device *device = NULL;
    uint8_t id[XPH_COMM_ID_BYTES] = {0};
    const xph_comm_args right = {.id = id, .rank = 1, .ranks = 2, .timeout_ms = 1, .bytes = 8};
    assert_int_equal(gpu->device_open(&host, 0, &device, &error), EXPHIL_OK);
    REFUSED(id, NULL, "id is NULL");
    REFUSED(ranks, 0, "ranks is not in 1..256");
    REFUSED(ranks, 257, "ranks is not in 1..256");
    REFUSED(rank, 2, "rank is not in 0..ranks-1 (rank 2, ranks 2)");
    REFUSED(rank, -1, "rank is not in 0..ranks-1");
    REFUSED(flags, 4, "flags has unknown bits");
    REFUSED(flags, XPH_COMM_TREE | XPH_COMM_PLAIN, "flags has TREE and PLAIN");
    REFUSED(timeout_ms, 0, "timeout_ms is below 1");
    REFUSED(bytes, -1, "bytes is out of range");
    gpu->device_close(device);
    check_clean();
}

static void wrong_sums(rank_of *r, void *data)
{
    xph_comm *c = r->comm;
    WANT(r, gpu->comm_reduce(c, r->stream, data, MOST * 2 + 1, XPH_F32) == EXPHIL_E_INVALID);
    WANT(r, gpu->comm_reduce(c, r->stream, data, -1, XPH_F64) == EXPHIL_E_INVALID);
    WANT(r, gpu->comm_reduce(c, r->stream, data, 4, XPH_BF16) == EXPHIL_E_INVALID);
    WANT(r, gpu->comm_reduce(c, r->stream, (char *)data + 4, 4, XPH_F32) == EXPHIL_E_INVALID);
    WANT(r, gpu->comm_reduce(c, r->stream, NULL, 4, XPH_F32) == EXPHIL_E_INVALID);
    WANT(r, gpu->comm_state(c) == XPH_COMM_OK);
    WANT(r, gpu->comm_reduce(c, r->stream, data, FEW, XPH_F32) == EXPHIL_OK);
    WANT(r, gpu->stream_wait(r->stream) == EXPHIL_OK);
}

static void tries_wrong_sums(rank_of *r)
{
    with_data(r, wrong_sums);
}

static void wrong_sums_are_refused_by_name(void **state)
{
    run_ranks(2, 0, tries_wrong_sums, NULL);
    assert_non_null(strstr(logged, "count is more than the bytes it was opened for"));
    assert_non_null(strstr(logged, "type is neither f32 nor f64"));
    assert_non_null(strstr(logged, "data is not aligned to 16 bytes"));
}

/* ---- what else of the device hosts of several ranks use ---- */

static void events_words_and_streams(void **state)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_device *device = NULL;
    xph_stream *stream = NULL;
    xph_event *event = NULL;
    uint32_t *word = NULL, got[2] = {0};
    int32_t done = 0, asked = 0;
    emu_timing(EMU_LAZY, 0);
    assert_int_equal(gpu->device_open(&host, 2, &device, &error), EXPHIL_OK);
    assert_int_equal(gpu->stream_create(device, 0, &stream), EXPHIL_OK);
    assert_int_equal(gpu->event_create(device, 0, &event), EXPHIL_OK);
    assert_int_equal(gpu->event_done(event, &done), EXPHIL_OK);
    assert_int_equal(done, 1); /* never marked */
    assert_int_equal(gpu->alloc(device, 8, (void **)&word), EXPHIL_OK);
    assert_int_equal(gpu->zero(stream, word, 8), EXPHIL_OK);
    assert_int_equal(gpu->stream_wait(stream), EXPHIL_OK);
    assert_int_equal(gpu->copy(stream, word + 1, word, 4), EXPHIL_OK);
    assert_int_equal(gpu->event_mark(event, stream), EXPHIL_OK);
    assert_int_equal(gpu->word_set(device, word, 41), EXPHIL_OK); /* before what is enqueued already */
    for (; gpu->event_done(event, &done) == EXPHIL_OK && !done; asked++) continue;
    assert_in_range(asked, 1, 10);
    assert_int_equal(gpu->download(stream, got, word, 8), EXPHIL_OK);
    assert_int_equal(gpu->stream_wait(stream), EXPHIL_OK);
    assert_int_equal(got[0], 41);
    assert_int_equal(got[1], 41);
    assert_int_equal(emu_stream_device(gpu->stream_native(stream)), 2);
    xph_wrapped place;
    assert_ptr_equal(gpu->stream_native(gpu->stream_wrap(device, gpu->stream_native(stream), &place)),
                     gpu->stream_native(stream));
    gpu->free(device, word, 8);
    gpu->event_destroy(event);
    gpu->stream_destroy(stream);
    gpu->device_close(device);
    check_clean();
}

/* ---- the stand-in finds mistakes ---- */

static void finds(const char *words)
{
    if (!strstr(fake->said, words)) fail_msg("\"%s\" lacks \"%s\"", fake->said, words);
    fake->said[0] = 0;
}

static nc_comm alone(const nc_library *nccl, int blocking)
{
    nc_config config = {
        .size = sizeof config, .magic = NC_CONFIG_MAGIC, .version = NC_LEAST_VERSION, .blocking = blocking};
    nc_comm comm = NULL;
    nc_id id;
    assert_int_equal(nccl->ncclGetUniqueId(&id), 0);
    nccl->ncclCommInitRankConfig(&comm, 1, id, 0, &config);
    return comm;
}

static int asked(const nc_library *nccl, nc_comm comm)
{
    int code = -1;
    nccl->ncclCommGetAsyncError(comm, &code);
    return code;
}

static void find_all(void *at, nc_library *nccl)
{
#define FIND(name) *(void **)(&nccl->name) = dlsym(at, #name);
    NC_EACH_FUNCTION(FIND)
#undef FIND
}

static void the_stand_in_is_strict(void **state)
{
    nc_library nccl;
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_device *device = NULL;
    xph_stream *stream = NULL;
    xph_graph *graph = NULL;
    void *data = NULL;
    find_all(dlopen(FAKE_PATH, RTLD_NOW), &nccl);
    assert_int_equal(gpu->device_open(&host, 0, &device, &error), EXPHIL_OK);
    assert_int_equal(gpu->stream_create(device, 0, &stream), EXPHIL_OK);
    assert_int_equal(gpu->alloc(device, 64, &data), EXPHIL_OK);
    assert_int_equal(gpu->zero(stream, data, 64), EXPHIL_OK);
    struct CUstream_st *native = gpu->stream_native(stream);
    alone(&nccl, 1);
    finds("blocking");
    assert_int_not_equal(nccl.ncclGroupEnd(), 0);
    finds("a group ends that did not begin");
    nc_comm comm = alone(&nccl, 0);
    nccl.ncclAllReduce(data, data, 4, NC_FLOAT32, NC_SUM, comm, native);
    finds("the call before is still in progress");
    assert_int_equal(asked(&nccl, comm), 0);
    nccl.ncclSend(data, 4, NC_FLOAT32, 0, comm, native);
    finds("outside of a group");
    nccl.ncclAllReduce(&nccl, data, 4, NC_FLOAT32, NC_SUM, comm, native);
    finds("of another device");
    nccl.ncclGroupStart();
    nccl.ncclSend(data, 4, NC_FLOAT32, 0, comm, native);
    finds("rank 0 exchanges with 0");
    nccl.ncclCommFinalize(comm);
    finds("a group that has no end");
    nccl.ncclGroupEnd();
    assert_int_equal(asked(&nccl, comm), 0);
    assert_int_equal(nccl.ncclCommDestroy(comm), 0);
    assert_int_equal(asked(&nccl, comm), -1);
    finds("gone is asked");
    comm = alone(&nccl, 0);
    assert_int_equal(asked(&nccl, comm), 0);
    assert_int_equal(gpu->record_begin(stream), EXPHIL_OK);
    assert_int_equal(nccl.ncclAllReduce(data, data, 4, NC_FLOAT32, NC_SUM, comm, native), NC_IN_PROGRESS);
    assert_int_equal(asked(&nccl, comm), 0);
    assert_int_equal(gpu->record_end(stream, &graph), EXPHIL_OK);
    finds("recorded before the first use");
    nccl.ncclCommFinalize(comm);
    finds("recordings hold the communicator");
    assert_int_equal(asked(&nccl, comm), NC_IN_PROGRESS);
    gpu->graph_destroy(graph);
    assert_int_equal(asked(&nccl, comm), 0);
    assert_int_equal(atomic_load(&fake->alive), 1);
    assert_int_equal(nccl.ncclCommAbort(comm), 0);
    nccl.ncclCommAbort(comm);
    finds("gone is aborted");
    comm = alone(&nccl, 0);
    assert_int_equal(asked(&nccl, comm), 0);
    assert_int_equal(nccl.ncclCommDestroy(comm), 0);
    finds("destroyed without an end");
    gpu->free(device, data, 64);
    gpu->stream_destroy(stream);
    gpu->device_close(device);
    check_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(libraries_are_refused_by_name, set_up),
        cmocka_unit_test_setup(the_kernel_adds_in_order, set_up),
        cmocka_unit_test_setup(the_order_shows, set_up),
        cmocka_unit_test_setup(sums_are_those_of_a_plain_loop, set_up),
        cmocka_unit_test_setup(sums_are_recorded_and_replayed, set_up),
        cmocka_unit_test_setup(two_groups_at_once, set_up),
        cmocka_unit_test_setup(ranks_may_be_processes, set_up),
        cmocka_unit_test_setup(who_does_not_come_is_not_waited_for, set_up),
        cmocka_unit_test_setup(a_sum_that_hangs_is_given_up, set_up),
        cmocka_unit_test_setup(a_process_that_dies, set_up),
        cmocka_unit_test_setup(a_failure_of_the_library_is_told, set_up),
        cmocka_unit_test_setup(a_library_that_does_not_start, set_up),
        cmocka_unit_test_setup(ranks_that_differ_are_named, set_up),
        cmocka_unit_test_setup(arguments_are_refused_by_name, set_up),
        cmocka_unit_test_setup(wrong_sums_are_refused_by_name, set_up),
        cmocka_unit_test_setup(events_words_and_streams, set_up),
        cmocka_unit_test_setup(the_stand_in_is_strict, set_up),
    };
    void *library = dlopen(FAKE_PATH, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    fake = dlsym(library, "fake");
    fake->meet = emu_meet;
    fake->capturing = emu_capturing;
    fake->device = emu_device;
    fake->device_of = emu_device_of;
    fake->stream_device = emu_stream_device;
    gpu = xph_backend_query(XPH_BACKEND_ABI, &host);
    setenv("EXPHIL_NCCL", FAKE_PATH, 1);
    setenv("EXPHIL_CUBLASLT", "none", 1);
    emu_devices(4, 0);
    emu_protect(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
