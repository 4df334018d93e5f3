/* Ranks that are missing, slow, wrong or dead, and libraries that are not as one would wish: all is found out and named, and
 * nobody waits for ever. */
#include "ranks_bed.h"

#include "nccl_api.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- ranks that are missing ---- */

static void comes_alone(rank_of *r)
{
    WANT(r, ranks_gpu->device_open(&ranks_host, r->rank, &r->device, &r->error) == EXPHIL_OK);
    WANT(r, ranks_gpu->comm_open(r->device, &r->args, &r->comm, &r->error) < 0);
    WANT(r, !r->comm);
    rank_close(r);
}

static void one_comes_alone(exphil_status status, const char *words, int timeout_ms)
{
    uint8_t id[XPH_COMM_ID_BYTES];
    rank_of r;
    ranks_id(id);
    rank_init(&r, 1, 3, 0, id);
    r.args.timeout_ms = timeout_ms;
    ranks_run(&r, 1, comes_alone);
    assert_int_equal(r.error.status, status);
    assert_says(&r.error, words);
    ranks_clean();
}

static void who_does_not_come_is_not_waited_for(void **state)
{
    one_comes_alone(EXPHIL_E_IO, "rank 1 of 3: coming together: other ranks did not come within 300 ms",
                    IMPATIENT);
    atomic_store(&ranks_cancelled, 1);
    one_comes_alone(EXPHIL_E_CANCELLED, "cancelled", PATIENT);
}

enum { FEW = 100, ASKED = 50 };

/* A sum that cannot end. The host is not held, and may set words of the device meanwhile. */
static void hangs(rank_of *r, void *data, xph_graph *graph)
{
    xph_event *event = NULL;
    int32_t done = 1;
    uint32_t word = 0, *place = NULL;
    WANT(r, ranks_gpu->event_create(r->device, 0, &event) == EXPHIL_OK);
    WANT(r, ranks_gpu->alloc(r->device, sizeof word, (void **)&place) == EXPHIL_OK);
    if (graph)
        WANT(r, ranks_gpu->replay(r->stream, graph) == EXPHIL_OK);
    else
        WANT(r, ranks_gpu->comm_reduce(r->comm, r->stream, data, FEW, XPH_F32) == EXPHIL_OK);
    WANT(r, ranks_gpu->event_mark(event, r->stream) == EXPHIL_OK);
    for (int i = 0; i < ASKED; i++) {
        WANT(r, ranks_gpu->event_done(event, &done) == EXPHIL_OK && !done);
        WANT(r, ranks_gpu->comm_state(r->comm) == XPH_COMM_OK);
    }
    WANT(r, ranks_gpu->word_set(r->device, place, 0xfeed5eedu) == EXPHIL_OK);
    ranks_gpu->comm_abort(r->comm);
    WANT(r, ranks_gpu->comm_state(r->comm) == XPH_COMM_FAILED);
    WANT(r, ranks_gpu->event_wait(event) == EXPHIL_OK);
    WANT(r, ranks_gpu->event_done(event, &done) == EXPHIL_OK && done);
    WANT(r, ranks_gpu->download(r->stream, &word, place, sizeof word) == EXPHIL_OK);
    WANT(r, ranks_gpu->stream_wait(r->stream) == EXPHIL_OK && word == 0xfeed5eedu);
    WANT(r, ranks_gpu->comm_reduce(r->comm, r->stream, data, FEW, XPH_F32) == EXPHIL_E_IO);
    WANT(r, ranks_gpu->comm_state(r->comm) == XPH_COMM_FAILED);
    ranks_gpu->comm_abort(r->comm);
    ranks_gpu->free(r->device, place, sizeof word);
    ranks_gpu->event_destroy(event);
}

static void with_data(rank_of *r, void (*then)(rank_of *r, void *data))
{
    void *data = NULL;
    rank_open(r);
    WANT(r, ranks_gpu->alloc(r->device, FEW * sizeof(float), &data) == EXPHIL_OK);
    WANT(r, ranks_gpu->zero(r->stream, data, FEW * sizeof(float)) == EXPHIL_OK);
    then(r, data);
    ranks_gpu->free(r->device, data, FEW * sizeof(float));
    rank_close(r);
}

static void first_hangs_then(rank_of *r, void *data)
{
    if (r->rank == 0) hangs(r, data, NULL);
    ranks_agree(r, data, 0); /* the other stays until then, and does not take part */
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
    WANT(r, ranks_gpu->comm_reduce(r->comm, r->stream, data, FEW, XPH_F32) == EXPHIL_OK);
    WANT(r, ranks_gpu->record_begin(r->stream) == EXPHIL_OK);
    WANT(r, ranks_gpu->comm_reduce(r->comm, r->stream, data, FEW, XPH_F32) == EXPHIL_OK);
    WANT(r, ranks_gpu->record_end(r->stream, &graph) == EXPHIL_OK);
    WANT(r, ranks_gpu->stream_wait(r->stream) == EXPHIL_OK);
    if (r->rank == 0) hangs(r, data, graph);
    ranks_agree(r, data, 0);
    ranks_gpu->graph_destroy(graph);
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
            meeting *m = meeting_make(2);
            emu_timing(timing, 1);
            ranks_fake->fault[1].stuck_at = bodies[i] == all_hang ? 2 : 0;
            ranks_run_group(2, 0, bodies[i], m);
            meeting_end(m);
            ranks_set_up(state);
        }
    }
}

enum { NEVER = 1 << 30 };

static void *abort_what_waits(void *of)
{
    rank_of *r = of;
    while (ranks_gpu->comm_state(r->comm) != XPH_COMM_IN_PROGRESS) sched_yield();
    ranks_gpu->comm_abort(r->comm);
    return NULL;
}

/* The host itself waits, for peers that are not there yet. */
static void waits_then(rank_of *r, void *data)
{
    pthread_t other;
    ranks_fake->fault[r->rank].group_polls = NEVER;
    if (r->args.timeout_ms == PATIENT) WANT(r, pthread_create(&other, NULL, abort_what_waits, r) == 0);
    WANT(r, ranks_gpu->comm_reduce(r->comm, r->stream, data, FEW, XPH_F32) == EXPHIL_E_IO);
    if (r->args.timeout_ms == PATIENT) pthread_join(other, NULL);
    WANT(r, ranks_gpu->comm_state(r->comm) == XPH_COMM_FAILED);
    WANT(r, ranks_gpu->stream_wait(r->stream) == EXPHIL_OK);
}

static void waits(rank_of *r)
{
    with_data(r, waits_then);
}

static void let_go(int ranks, uint32_t flags, int timeout_ms, const char *words)
{
    uint8_t id[XPH_COMM_ID_BYTES];
    rank_of r[2];
    ranks_id(id);
    for (int i = 0; i < ranks; i++) {
        rank_init(&r[i], i, ranks, flags, id);
        r[i].args.timeout_ms = timeout_ms;
    }
    ranks_run(r, ranks, waits);
    if (!strstr(ranks_log, words)) fail_msg("%s", ranks_log);
    ranks_clean();
    ranks_set_up(NULL);
}

static void a_host_that_waits_is_let_go(void **state)
{
    let_go(2, 0, PATIENT, "rank 1 of 2: slices to all ranks: the sums were given up");
    /* One rank alone meets nobody when it opens, however late that is. */
    let_go(1, XPH_COMM_PLAIN, IMPATIENT, "rank 0 of 1: a plain sum: other ranks did not come within 300 ms");
}

static void dies(rank_of *r)
{
    rank_open(r);
    _exit(7);
}

static void a_process_that_dies(void **state)
{
    void (*const body[])(rank_of *) = {all_hang, dies};
    const int status[] = {0, 7};
    ranks_run_processes(2, body, status);
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
    assert_int_equal(ranks_gpu->comm_id(id, &error), status);
    assert_says(&error, words);
    setenv("EXPHIL_NCCL", RANKS_LIBRARY, 1);
}

/* Before any test that loads it: a library stays. */
static void libraries_are_refused_by_name(void **state)
{
    refused_id("none", EXPHIL_E_UNSUPPORTED, "EXPHIL_NCCL is \"none\"");
    refused_id(NULL, EXPHIL_E_UNSUPPORTED, "none-beside-an-emulated-GPU");
    refused_id("/not/there.so", EXPHIL_E_UNSUPPORTED,
               "no sums over ranks without NCCL (EXPHIL_NCCL names it): /not/there.so");
    refused_id("libm.so.6", EXPHIL_E_UNSUPPORTED, "libm.so.6 is no NCCL: it lacks ncclGetVersion");
    ranks_fake->version = 21703;
    refused_id(RANKS_LIBRARY, EXPHIL_E_VERSION, "NCCL 2.17.3 (");
    refused_id(RANKS_LIBRARY, EXPHIL_E_VERSION, "is too old, 2.18 or newer is needed");
    ranks_fake->version = 2804;
    refused_id(RANKS_LIBRARY, EXPHIL_E_VERSION, "NCCL 2.8.4 (");
}

static void refused_args(xph_device *device, const xph_comm_args *args, const char *words)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_comm *comm = NULL;
    assert_int_equal(ranks_gpu->comm_open(device, args, &comm, &error), EXPHIL_E_INVALID);
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
    assert_int_equal(ranks_gpu->device_open(&ranks_host, 0, &device, &error), EXPHIL_OK);
    REFUSED(id, NULL, "id is NULL");
    REFUSED(ranks, 0, "ranks is not in 1..256");
    REFUSED(ranks, 257, "ranks is not in 1..256");
    REFUSED(rank, 2, "rank is not in 0..ranks-1 (rank 2, ranks 2)");
    REFUSED(rank, -1, "rank is not in 0..ranks-1");
    REFUSED(flags, 4, "flags has unknown bits");
    REFUSED(flags, XPH_COMM_TREE | XPH_COMM_PLAIN, "flags has TREE and PLAIN");
    REFUSED(timeout_ms, 0, "timeout_ms is below 1");
    REFUSED(bytes, -1, "bytes is out of range");
    ranks_gpu->device_close(device);
    ranks_clean();
}

static void wrong_sums(rank_of *r, void *data)
{
    xph_comm *c = r->comm;
    WANT(r, ranks_gpu->comm_reduce(c, r->stream, data, MOST * 2 + 1, XPH_F32) == EXPHIL_E_INVALID);
    WANT(r, ranks_gpu->comm_reduce(c, r->stream, data, -1, XPH_F64) == EXPHIL_E_INVALID);
    WANT(r, ranks_gpu->comm_reduce(c, r->stream, data, 4, XPH_BF16) == EXPHIL_E_INVALID);
    WANT(r, ranks_gpu->comm_reduce(c, r->stream, (char *)data + 4, 4, XPH_F32) == EXPHIL_E_INVALID);
    WANT(r, ranks_gpu->comm_reduce(c, r->stream, NULL, 4, XPH_F32) == EXPHIL_E_INVALID);
    WANT(r, ranks_gpu->comm_state(c) == XPH_COMM_OK);
    WANT(r, ranks_gpu->comm_reduce(c, r->stream, data, FEW, XPH_F32) == EXPHIL_OK);
    WANT(r, ranks_gpu->stream_wait(r->stream) == EXPHIL_OK);
}

static void tries_wrong_sums(rank_of *r)
{
    with_data(r, wrong_sums);
}

static void wrong_sums_are_refused_by_name(void **state)
{
    ranks_run_group(2, 0, tries_wrong_sums, NULL);
    assert_non_null(strstr(ranks_log, "count is more than the bytes it was opened for"));
    assert_non_null(strstr(ranks_log, "type is neither f32 nor f64"));
    assert_non_null(strstr(ranks_log, "data is not aligned to 16 bytes"));
}

/* ---- the library fails ---- */

static void fails_later(rank_of *r, void *data)
{
    xph_event *event = NULL;
    int32_t done = 0;
    WANT(r, ranks_gpu->event_create(r->device, 0, &event) == EXPHIL_OK);
    exphil_status status = ranks_gpu->comm_reduce(r->comm, r->stream, data, FEW, XPH_F32);
    WANT(r, status == EXPHIL_OK || (r->rank == 1 && status == EXPHIL_E_IO));
    WANT(r, ranks_gpu->event_mark(event, r->stream) == EXPHIL_OK);
    while (r->rank == 1 && ranks_gpu->comm_state(r->comm) != XPH_COMM_FAILED)
        WANT(r, ranks_gpu->event_done(event, &done) == EXPHIL_OK && !done);
    WANT(r, r->rank != 1 || ranks_gpu->comm_reduce(r->comm, r->stream, data, FEW, XPH_F32) == EXPHIL_E_IO);
    /* Who has work behind it is not surprised by an end. */
    for (int i = 0; r->rank == 1 && status == EXPHIL_OK && i < ASKED; i++)
        WANT(r, ranks_gpu->event_done(event, &done) == EXPHIL_OK && !done);
    ranks_gpu->comm_abort(r->comm);
    WANT(r, ranks_gpu->stream_wait(r->stream) == EXPHIL_OK);
    ranks_gpu->event_destroy(event);
}

static void has_failed(rank_of *r)
{
    with_data(r, fails_later);
}

static void a_failure_of_the_library_is_told(void **state)
{
    ranks_fake->fault[1] = (fake_nccl_fault){.stuck_at = 2, .async_code = NC_REMOTE_ERROR};
    ranks_run_group(2, 0, has_failed, NULL);
    if (!strstr(ranks_log, "cuda:1: NCCL, rank 1 of 2: ")) fail_msg("%s", ranks_log);
    if (!strstr(ranks_log, "remote process exited")) fail_msg("%s", ranks_log);
}

static void does_not_come(rank_of *r)
{
    WANT(r, ranks_gpu->device_open(&ranks_host, r->rank, &r->device, &r->error) == EXPHIL_OK);
    WANT(r, ranks_gpu->comm_open(r->device, &r->args, &r->comm, &r->error) < 0);
    rank_close(r);
}

static void a_library_that_does_not_start(void **state)
{
    ranks_fake->fault[1].init_code = NC_SYSTEM_ERROR;
    one_comes_alone(EXPHIL_E_IO, "rank 1 of 3: coming together: unhandled system error (it was told to fail)",
                    PATIENT);
    ranks_fake->fault[1].init_code = 0;
    emu_fail_allocation(1);
    one_comes_alone(EXPHIL_E_MEMORY, "bytes for sums over ranks", PATIENT);
    /* The first exchange, of both */
    uint8_t id[XPH_COMM_ID_BYTES];
    rank_of r[2];
    ranks_id(id);
    ranks_fake->fault[0].stuck_at = ranks_fake->fault[1].stuck_at = 1;
    for (int i = 0; i < 2; i++) {
        rank_init(&r[i], i, 2, 0, id);
        r[i].args.timeout_ms = IMPATIENT;
    }
    ranks_run(r, 2, does_not_come);
    for (int i = 0; i < 2; i++) assert_says(&r[i].error, "other ranks did not come within 300 ms");
    ranks_clean();
}

/* ---- ranks that do not fit together ---- */

static void two_that_differ(const char *words, exphil_status status, void (*change)(rank_of *r))
{
    uint8_t id[XPH_COMM_ID_BYTES];
    rank_of r[2];
    ranks_id(id);
    for (int i = 0; i < 2; i++) {
        rank_init(&r[i], i, 2, 0, id);
        if (i) change(&r[i]);
    }
    ranks_run(r, 2, does_not_come);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(r[i].error.status, status);
        assert_says(&r[i].error, words);
    }
    ranks_clean();
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
    WANT(r, ranks_gpu->event_create(r->device, 0, &event) == EXPHIL_OK);
    exphil_status status = ranks_gpu->comm_reduce(r->comm, r->stream, data, r->rank ? 12 : 8, XPH_F32);
    WANT(r, status == EXPHIL_OK || status == EXPHIL_E_IO);
    WANT(r, ranks_gpu->event_mark(event, r->stream) == EXPHIL_OK);
    while (r->rank == 0 && ranks_gpu->comm_state(r->comm) != XPH_COMM_FAILED)
        WANT(r, ranks_gpu->event_done(event, &done) == EXPHIL_OK);
    if (r->rank == 0) counts_differ = 1;
    pthread_barrier_wait(&m->all);
    ranks_gpu->comm_abort(r->comm);
    WANT(r, ranks_gpu->stream_wait(r->stream) == EXPHIL_OK);
    ranks_gpu->event_destroy(event);
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
    two_that_differ("Duplicate GPU detected", EXPHIL_E_INVALID, same_device);
    ranks_id(id);
    meeting *m = meeting_make(2);
    for (int i = 0; i < 2; i++) {
        rank_init(&r[i], i, 2, 0, id);
        r[i].arg = m;
    }
    ranks_run(r, 2, own_count);
    meeting_end(m);
    assert_int_equal(counts_differ, 1);
    assert_non_null(
        strstr(ranks_fake->said, "rank 0 waits for 4 numbers of type 7 of rank 1, which sends 8 of type 7"));
    ranks_fake->said[0] = 0;
    ranks_clean();
}

/* ---- the stand-in finds mistakes ---- */

static void finds(const char *words)
{
    if (!strstr(ranks_fake->said, words)) fail_msg("\"%s\" lacks \"%s\"", ranks_fake->said, words);
    ranks_fake->said[0] = 0;
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

/* A device, and the stand-in without cuda/nccl.c. */
typedef struct bare {
    nc_library nccl;
    xph_device *device;
    xph_stream *stream;
    struct CUstream_st *native;
    void *data;
} bare;

static void bare_open(bare *b)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    find_all(dlopen(RANKS_LIBRARY, RTLD_NOW), &b->nccl);
    assert_int_equal(ranks_gpu->device_open(&ranks_host, 0, &b->device, &error), EXPHIL_OK);
    assert_int_equal(ranks_gpu->stream_create(b->device, 0, &b->stream), EXPHIL_OK);
    assert_int_equal(ranks_gpu->alloc(b->device, 64, &b->data), EXPHIL_OK);
    assert_int_equal(ranks_gpu->zero(b->stream, b->data, 64), EXPHIL_OK);
    b->native = ranks_gpu->stream_native(b->stream);
}

static void bare_close(bare *b)
{
    ranks_gpu->free(b->device, b->data, 64);
    ranks_gpu->stream_destroy(b->stream);
    ranks_gpu->device_close(b->device);
    ranks_clean();
}

static void the_stand_in_is_strict(void **state)
{
    bare b;
    bare_open(&b);
    const nc_library *nccl = &b.nccl;
    alone(nccl, 1);
    finds("blocking");
    assert_int_not_equal(nccl->ncclGroupEnd(), 0);
    finds("a group ends that did not begin");
    nc_comm comm = alone(nccl, 0);
    nccl->ncclAllReduce(b.data, b.data, 4, NC_FLOAT32, NC_SUM, comm, b.native);
    finds("the call before is still in progress");
    assert_int_equal(asked(nccl, comm), 0);
    nccl->ncclSend(b.data, 4, NC_FLOAT32, 0, comm, b.native);
    finds("outside of a group");
    nccl->ncclAllReduce(&b, b.data, 4, NC_FLOAT32, NC_SUM, comm, b.native);
    finds("of another device");
    nccl->ncclGroupStart();
    nccl->ncclSend(b.data, 4, NC_FLOAT32, 0, comm, b.native);
    finds("rank 0 exchanges with 0");
    nccl->ncclCommFinalize(comm);
    finds("a group that has no end");
    nccl->ncclGroupEnd();
    assert_int_equal(asked(nccl, comm), 0);
    assert_int_equal(nccl->ncclCommDestroy(comm), 0);
    assert_int_equal(asked(nccl, comm), -1);
    finds("gone is asked");
    bare_close(&b);
}

static void the_stand_in_counts_ends(void **state)
{
    bare b;
    xph_graph *graph = NULL;
    bare_open(&b);
    const nc_library *nccl = &b.nccl;
    nc_comm comm = alone(nccl, 0);
    assert_int_equal(asked(nccl, comm), 0);
    assert_int_equal(ranks_gpu->record_begin(b.stream), EXPHIL_OK);
    assert_int_equal(nccl->ncclAllReduce(b.data, b.data, 4, NC_FLOAT32, NC_SUM, comm, b.native),
                     NC_IN_PROGRESS);
    assert_int_equal(asked(nccl, comm), 0);
    assert_int_equal(ranks_gpu->record_end(b.stream, &graph), EXPHIL_OK);
    finds("recorded before the first use");
    nccl->ncclCommFinalize(comm);
    finds("recordings hold the communicator");
    assert_int_equal(asked(nccl, comm), NC_IN_PROGRESS);
    ranks_gpu->graph_destroy(graph);
    assert_int_equal(asked(nccl, comm), 0);
    assert_int_equal(atomic_load(&ranks_fake->alive), 1);
    assert_int_equal(nccl->ncclCommAbort(comm), 0);
    nccl->ncclCommAbort(comm);
    finds("gone is aborted");
    comm = alone(nccl, 0);
    assert_int_equal(asked(nccl, comm), 0);
    assert_int_equal(nccl->ncclCommDestroy(comm), 0);
    finds("destroyed without an end");
    bare_close(&b);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(libraries_are_refused_by_name, ranks_set_up),
        cmocka_unit_test_setup(arguments_are_refused_by_name, ranks_set_up),
        cmocka_unit_test_setup(wrong_sums_are_refused_by_name, ranks_set_up),
        cmocka_unit_test_setup(who_does_not_come_is_not_waited_for, ranks_set_up),
        cmocka_unit_test_setup(a_sum_that_hangs_is_given_up, ranks_set_up),
        cmocka_unit_test_setup(a_host_that_waits_is_let_go, ranks_set_up),
        cmocka_unit_test_setup(a_process_that_dies, ranks_set_up),
        cmocka_unit_test_setup(a_failure_of_the_library_is_told, ranks_set_up),
        cmocka_unit_test_setup(a_library_that_does_not_start, ranks_set_up),
        cmocka_unit_test_setup(ranks_that_differ_are_named, ranks_set_up),
        cmocka_unit_test_setup(the_stand_in_is_strict, ranks_set_up),
        cmocka_unit_test_setup(the_stand_in_counts_ends, ranks_set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return ranks_main(run);
}
