/* Sums over ranks as table A has them, by cuda/nccl.c on a stand-in for NCCL: they are those of a plain loop, to the last bit,
 * for ranks that are threads or processes, enqueued or recorded. */
#include "ranks_bed.h"

#include <stdlib.h>
#include <string.h>

/* ---- the kernel ---- */

static void check_kernel(xph_type type, int ranks, int rank, int64_t count, bool tree)
{
    const size_t size = ranks_size(type), bytes = (size_t)count * size;
    const int64_t stride = count + 3;
    unsigned char *others = emu_alloc((size_t)ranks * (size_t)stride * size, 16), *own = emu_alloc(bytes, 16);
    unsigned char *right = malloc(bytes);
    for (int k = 0; k < ranks; k++)
        if (k != rank) ranks_fill(type, others + (size_t)k * (size_t)stride * size, count, k, 5);
    ranks_fill(type, own, count, rank, 5);
    ranks_want(type, right, count, ranks, tree, 5);
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

/* Of numbers with a guard behind them. */
static void sum_once(rank_of *r, xph_type type, int64_t count, uint64_t seed)
{
    const size_t bytes = (size_t)count * ranks_size(type), all = bytes + 8;
    unsigned char *got = malloc(all), *right = malloc(all);
    void *data = NULL;
    memset(got, 0x5a, all);
    ranks_fill(type, got, count, r->rank, seed);
    ranks_want(type, right, count, r->ranks, (r->args.flags & XPH_COMM_TREE) != 0, seed);
    WANT(r, ranks_gpu->alloc(r->device, all, &data) == EXPHIL_OK);
    WANT(r, ranks_gpu->upload(r->stream, data, got, all) == EXPHIL_OK);
    WANT(r, ranks_gpu->comm_reduce(r->comm, r->stream, data, count, type) == EXPHIL_OK);
    memset(got, 0, all);
    WANT(r, ranks_gpu->download(r->stream, got, data, all) == EXPHIL_OK);
    WANT(r, ranks_gpu->stream_wait(r->stream) == EXPHIL_OK);
    const bool plain = (r->args.flags & XPH_COMM_PLAIN) != 0;
    WANT(r, plain ? ranks_near(type, got, right, count) : memcmp(got, right, bytes) == 0);
    for (size_t i = bytes; i < all; i++) WANT(r, got[i] == 0x5a);
    WANT(r, ranks_agree(r, got, all));
    ranks_gpu->free(r->device, data, all);
    free(got);
    free(right);
}

static void many_sums(rank_of *r)
{
    static const int64_t counts[] = {0, 1, 3, 4, 17, 64, 1001, MOST};
    rank_open(r);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        sum_once(r, XPH_F32, counts[i], i);
        sum_once(r, XPH_F64, counts[i], i + 100);
    }
    WANT(r, ranks_gpu->comm_state(r->comm) == XPH_COMM_OK);
    rank_close(r);
}

static void sums_are_those_of_a_plain_loop(void **state)
{
    static const uint32_t flags[] = {0, XPH_COMM_TREE, XPH_COMM_PLAIN};
    for (int timing = 0; timing < EMU_TIMINGS; timing++) {
        emu_timing(timing, 7);
        for (int ranks = 1; ranks <= 4; ranks++)
            for (int f = 0; f < 3; f++) {
                meeting *m = meeting_make(ranks);
                ranks_fake->fault[ranks - 1].init_polls = ranks_fake->fault[0].group_polls = 3;
                ranks_run_group(ranks, flags[f], many_sums, m);
                meeting_end(m);
            }
    }
    assert_true(atomic_load(&ranks_fake->plain_sums) > 0);
}

/* Else the tests above could not tell one order from another. */
static void the_order_shows(void **state)
{
    float line[1000], tree[1000];
    int differ = 0;
    ranks_want(XPH_F32, line, 1000, 4, false, 1);
    ranks_want(XPH_F32, tree, 1000, 4, true, 1);
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
    WANT(r, ranks_gpu->alloc(r->device, bytes, &from) == EXPHIL_OK &&
                ranks_gpu->alloc(r->device, bytes, &data) == EXPHIL_OK);
    WANT(r, ranks_gpu->zero(r->stream, data, bytes) == EXPHIL_OK);
    WANT(r, ranks_gpu->comm_reduce(r->comm, r->stream, data, COUNT, XPH_F32) == EXPHIL_OK);
    WANT(r, ranks_gpu->record_begin(r->stream) == EXPHIL_OK);
    WANT(r, ranks_gpu->copy(r->stream, data, from, bytes) == EXPHIL_OK);
    WANT(r, ranks_gpu->comm_reduce(r->comm, r->stream, data, COUNT, XPH_F32) == EXPHIL_OK);
    WANT(r, ranks_gpu->record_end(r->stream, &graph) == EXPHIL_OK);
    for (uint64_t time = 0; time < TIMES; time++) {
        ranks_fill(XPH_F32, got, COUNT, r->rank, time);
        ranks_want(XPH_F32, right, COUNT, r->ranks, (r->args.flags & XPH_COMM_TREE) != 0, time);
        WANT(r, ranks_gpu->upload(r->stream, from, got, bytes) == EXPHIL_OK);
        WANT(r, ranks_gpu->replay(r->stream, graph) == EXPHIL_OK);
        WANT(r, ranks_gpu->download(r->stream, got, data, bytes) == EXPHIL_OK);
        WANT(r, ranks_gpu->stream_wait(r->stream) == EXPHIL_OK);
        WANT(r, r->args.flags & XPH_COMM_PLAIN ? ranks_near(XPH_F32, got, right, COUNT)
                                               : memcmp(got, right, bytes) == 0);
        WANT(r, ranks_agree(r, got, bytes));
    }
    ranks_gpu->graph_destroy(graph);
    ranks_gpu->free(r->device, from, bytes);
    ranks_gpu->free(r->device, data, bytes);
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
                meeting *m = meeting_make(ranks);
                ranks_run_group(ranks, flags[f], recorded, m);
                meeting_end(m);
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
    xph_comm_args args = r->args; /* in which rank and number differ */
    args.id = other->id;
    args.rank = r->ranks - 1 - r->rank;
    WANT(r, ranks_gpu->comm_open(r->device, &args, &comm[1], &r->error) == EXPHIL_OK);
    WANT(r, ranks_gpu->stream_create(r->device, 0, &stream[1]) == EXPHIL_OK);
    comm[0] = r->comm;
    stream[0] = r->stream;
    for (int i = 0; i < 2; i++) {
        ranks_fill(XPH_F64, got[i], COUNT, i ? args.rank : r->rank, 9);
        WANT(r, ranks_gpu->alloc(r->device, bytes, &data[i]) == EXPHIL_OK);
        WANT(r, ranks_gpu->upload(stream[i], data[i], got[i], bytes) == EXPHIL_OK);
    }
    for (int i = 0; i < 2; i++)
        WANT(r, ranks_gpu->comm_reduce(comm[i], stream[i], data[i], COUNT, XPH_F64) == EXPHIL_OK);
    for (int i = 1; i >= 0; i--) {
        WANT(r, ranks_gpu->download(stream[i], got[i], data[i], bytes) == EXPHIL_OK);
        WANT(r, ranks_gpu->stream_wait(stream[i]) == EXPHIL_OK);
        ranks_want(XPH_F64, right, COUNT, r->ranks, false, 9);
        WANT(r, memcmp(got[i], right, bytes) == 0);
        ranks_gpu->free(r->device, data[i], bytes);
        free(got[i]);
    }
    free(right);
    ranks_gpu->comm_close(comm[1]);
    ranks_gpu->stream_destroy(stream[1]);
    rank_close(r);
}

static void two_groups_at_once(void **state)
{
    second other;
    for (int timing = 0; timing < EMU_TIMINGS; timing++) {
        emu_timing(timing, 3);
        ranks_id(other.id);
        ranks_run_group(4, 0, two_groups, &other);
    }
}

/* ---- ranks that are processes ---- */

static void ranks_may_be_processes(void **state)
{
    void (*const body[])(rank_of *) = {many_sums, many_sums, many_sums, many_sums};
    const int status[4] = {0};
    ranks_run_processes(2, body, status);
    ranks_run_processes(4, body, status);
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
    assert_int_equal(ranks_gpu->device_open(&ranks_host, 2, &device, &error), EXPHIL_OK);
    assert_int_equal(ranks_gpu->stream_create(device, 0, &stream), EXPHIL_OK);
    assert_int_equal(ranks_gpu->event_create(device, 0, &event), EXPHIL_OK);
    assert_int_equal(ranks_gpu->event_done(event, &done), EXPHIL_OK);
    assert_int_equal(done, 1); /* never marked */
    assert_int_equal(ranks_gpu->alloc(device, 8, (void **)&word), EXPHIL_OK);
    assert_int_equal(ranks_gpu->zero(stream, word, 8), EXPHIL_OK);
    assert_int_equal(ranks_gpu->stream_wait(stream), EXPHIL_OK);
    assert_int_equal(ranks_gpu->copy(stream, word + 1, word, 4), EXPHIL_OK);
    assert_int_equal(ranks_gpu->event_mark(event, stream), EXPHIL_OK);
    assert_int_equal(ranks_gpu->word_set(device, word, 41), EXPHIL_OK); /* before what is enqueued already */
    for (; ranks_gpu->event_done(event, &done) == EXPHIL_OK && !done; asked++) continue;
    assert_in_range(asked, 1, 10);
    assert_int_equal(ranks_gpu->download(stream, got, word, 8), EXPHIL_OK);
    assert_int_equal(ranks_gpu->stream_wait(stream), EXPHIL_OK);
    assert_int_equal(got[0], 41);
    assert_int_equal(got[1], 41);
    assert_int_equal(emu_stream_device(ranks_gpu->stream_native(stream)), 2);
    xph_wrapped place;
    assert_ptr_equal(
        ranks_gpu->stream_native(ranks_gpu->stream_wrap(device, ranks_gpu->stream_native(stream), &place)),
        ranks_gpu->stream_native(stream));
    ranks_gpu->free(device, word, 8);
    ranks_gpu->event_destroy(event);
    ranks_gpu->stream_destroy(stream);
    ranks_gpu->device_close(device);
    ranks_clean();
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_kernel_adds_in_order, ranks_set_up),
        cmocka_unit_test_setup(the_order_shows, ranks_set_up),
        cmocka_unit_test_setup(sums_are_those_of_a_plain_loop, ranks_set_up),
        cmocka_unit_test_setup(sums_are_recorded_and_replayed, ranks_set_up),
        cmocka_unit_test_setup(two_groups_at_once, ranks_set_up),
        cmocka_unit_test_setup(ranks_may_be_processes, ranks_set_up),
        cmocka_unit_test_setup(events_words_and_streams, ranks_set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return ranks_main(run);
}
