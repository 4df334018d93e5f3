/* The prefetcher delivers exactly what the sampler makes, in order, with an end after every epoch, whoever
 * is faster; seeking, a second caller, and ending at any moment. */
#include "data_case.h"

#include "data/data.h"

#include <time.h>

enum { EPISODES = 5, SLOTS = 2 };
static const int64_t lengths[EPISODES] = {70, 33, 120, 8, 51};

static exphil_sampling sampling_of(int32_t buffers)
{
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    how.batch = 3;
    how.time = 8;
    how.action_slots = SLOTS;
    how.delay_frames = 1;
    how.seed = 42;
    how.buffers = buffers;
    return how;
}

static void pause_ns(long ns)
{
    xph_sleep(ns);
}

static exphil_prefetcher *prefetcher_of(const exphil_dataset *dataset, const exphil_sampling *how)
{
    exphil_prefetcher *prefetcher = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_prefetcher_create(dataset, how, &prefetcher, &error) != EXPHIL_OK)
        fail_msg("%s", error.message);
    return prefetcher;
}

static void same_batch(const exphil_batch *a, const exphil_batch *b)
{
    size_t rows = (size_t)(b->batch * b->time);
    assert_int_equal(a->epoch, b->epoch);
    assert_int_equal(a->index, b->index);
    assert_int_equal(a->frames, b->frames);
    assert_memory_equal(a->floats, b->floats, rows * DATA_FLOATS * sizeof(float));
    assert_memory_equal(a->ids, b->ids, rows * DATA_IDS * sizeof(int32_t));
    assert_memory_equal(a->past, b->past, rows * SLOTS * DATA_HEADS * sizeof(int32_t));
    assert_memory_equal(a->actions, b->actions, rows * DATA_HEADS * sizeof(int32_t));
    assert_memory_equal(a->mask, b->mask, rows * sizeof(float));
    assert_memory_equal(a->reset, b->reset, rows);
}

/* The next batch must be this one. */
static void expect(exphil_prefetcher *prefetcher, xph_sampler *sampler, int64_t epoch, int64_t index)
{
    exphil_batch got = EXPHIL_BATCH_INIT, want = EXPHIL_BATCH_INIT;
    assert_int_equal(exphil_prefetcher_next(prefetcher, &got, NULL), EXPHIL_OK);
    assert_int_equal(xph_sampler_batch(sampler, epoch, index, &want, NULL), EXPHIL_OK);
    same_batch(&got, &want);
}

static void test_order(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, lengths, EPISODES);
    static const int32_t buffers[] = {0, 1, 2, 7, 64};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        exphil_sampling how = sampling_of(buffers[i]);
        xph_sampler *sampler = NULL;
        assert_int_equal(xph_sampler_create(dataset, &how, &sampler, NULL), EXPHIL_OK);
        exphil_prefetcher *prefetcher = prefetcher_of(dataset, &how);
        int64_t batches = xph_sampler_batches(sampler);
        for (int64_t epoch = 0; epoch < 4; epoch++) {
            for (int64_t index = 0; index < batches; index++) {
                if (index % 5 == epoch) pause_ns(300000); /* sometimes the thread is ahead */
                expect(prefetcher, sampler, epoch, index);
            }
            exphil_batch batch = EXPHIL_BATCH_INIT;
            assert_int_equal(exphil_prefetcher_next(prefetcher, &batch, NULL), EXPHIL_END);
            assert_null(batch.floats);
        }
        exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
        assert_int_equal(exphil_prefetcher_query(prefetcher, &info, NULL), EXPHIL_OK);
        assert_int_equal(info.batches_per_epoch, batches);
        assert_int_equal(info.frames_per_epoch, 70 + 33 + 120 + 8 + 51 - EPISODES);
        assert_int_equal(info.delivered, 4 * batches);
        assert_true(info.worked_ns >= 0 && info.waits >= 0 && info.waits <= info.delivered);
        assert_true(info.waited_ns >= 0 &&
                    (info.waits > 0 || info.waited_ns == 0)); /* a clock may be coarse */
        exphil_prefetcher_destroy(prefetcher);
        xph_sampler_destroy(sampler);
    }
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* What next gave stays as it is until the next call, however far ahead the thread is. */
static void test_pointers_live(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, lengths, EPISODES);
    exphil_sampling how = sampling_of(1);
    xph_sampler *sampler = NULL;
    assert_int_equal(xph_sampler_create(dataset, &how, &sampler, NULL), EXPHIL_OK);
    exphil_prefetcher *prefetcher = prefetcher_of(dataset, &how);
    for (int64_t index = 0; index < xph_sampler_batches(sampler); index++) {
        exphil_batch got = EXPHIL_BATCH_INIT, want = EXPHIL_BATCH_INIT;
        assert_int_equal(exphil_prefetcher_next(prefetcher, &got, NULL), EXPHIL_OK);
        pause_ns(1000000);
        assert_int_equal(xph_sampler_batch(sampler, 0, index, &want, NULL), EXPHIL_OK);
        same_batch(&got, &want);
    }
    exphil_prefetcher_destroy(prefetcher);
    xph_sampler_destroy(sampler);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

static void test_seek(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, lengths, EPISODES);
    exphil_sampling how = sampling_of(3);
    xph_sampler *sampler = NULL;
    assert_int_equal(xph_sampler_create(dataset, &how, &sampler, NULL), EXPHIL_OK);
    exphil_prefetcher *prefetcher = prefetcher_of(dataset, &how);
    int64_t batches = xph_sampler_batches(sampler);
    xph_rng rng = {.seed = 2, .stream = XPH_RNG_TEST};
    for (int round = 0; round < 300; round++) {
        int64_t epoch = (int64_t)xph_rng_below(&rng, 50),
                index = (int64_t)xph_rng_below(&rng, (uint64_t)batches);
        assert_int_equal(exphil_prefetcher_seek(prefetcher, epoch, index, NULL), EXPHIL_OK);
        if (round % 3 == 0) pause_ns((long)xph_rng_below(&rng, 100000));
        uint64_t take = xph_rng_below(&rng, 5);
        for (uint64_t i = 0; i < take && index < batches; i++, index++)
            expect(prefetcher, sampler, epoch, index);
    }
    /* Away from the end of an epoch: no end any more. */
    assert_int_equal(exphil_prefetcher_seek(prefetcher, 3, batches - 1, NULL), EXPHIL_OK);
    expect(prefetcher, sampler, 3, batches - 1);
    assert_int_equal(exphil_prefetcher_seek(prefetcher, 1, 0, NULL), EXPHIL_OK);
    expect(prefetcher, sampler, 1, 0);
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_prefetcher_seek(prefetcher, 0, batches, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_prefetcher_seek(prefetcher, 0, -1, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_prefetcher_seek(prefetcher, -1, 0, &error), EXPHIL_E_INVALID);
    expect(prefetcher, sampler, 1, 1); /* a refused seek changes nothing */
    exphil_prefetcher_destroy(prefetcher);
    xph_sampler_destroy(sampler);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* Creation and the end follow each other at all distances; the dataset and the context go first. */
static void test_end_at_any_moment(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    xph_rng rng = {.seed = 3, .stream = XPH_RNG_TEST};
    for (int round = 0; round < 300; round++) {
        exphil_context *context = test_context(&memory, NULL, 1);
        exphil_dataset *dataset = data_make(context, lengths, EPISODES);
        exphil_sampling how = sampling_of(1 + round % 4);
        how.mode = round % 2 ? EXPHIL_MODE_WINDOW : EXPHIL_MODE_CARRY;
        exphil_prefetcher *prefetcher = prefetcher_of(dataset, &how);
        exphil_dataset_destroy(dataset);
        exphil_context_destroy(context);
        if (round % 3) pause_ns((long)xph_rng_below(&rng, 50000));
        for (int i = 0; i < round % 7; i++) {
            exphil_batch batch = EXPHIL_BATCH_INIT;
            assert_int_equal(exphil_prefetcher_next(prefetcher, &batch, NULL), EXPHIL_OK);
        }
        exphil_prefetcher *kept = round % 5 ? NULL : xph_prefetcher_retain(prefetcher);
        exphil_prefetcher_destroy(prefetcher);
        if (kept) {
            exphil_batch batch = EXPHIL_BATCH_INIT;
            assert_int_equal(exphil_prefetcher_next(kept, &batch, NULL), EXPHIL_OK);
            xph_prefetcher_release(kept);
        }
    }
    assert_memory_clean(&memory);
}

/* A long plan in the background does not hold up the end: it is given up on the way. */
static void test_end_within_a_plan(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, (const int64_t[]){2000000}, 1);
    exphil_sampling how = sampling_of(1);
    how.mode = EXPHIL_MODE_WINDOW;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    exphil_prefetcher *prefetcher = prefetcher_of(dataset, &how);
    int64_t started = xph_clock_ns();
    assert_int_equal(exphil_prefetcher_next(prefetcher, &batch, NULL), EXPHIL_OK);
    int64_t whole = xph_clock_ns() - started;
    exphil_prefetcher_destroy(prefetcher);
    bool quick = false;
    for (int i = 0; i < 20 && !quick; i++) { /* one quick end is enough: the machine may be busy */
        prefetcher = prefetcher_of(dataset, &how);
        pause_ns((long)(whole / 10)); /* the plan has begun */
        started = xph_clock_ns();
        exphil_prefetcher_destroy(prefetcher);
        quick = xph_clock_ns() - started < whole / 2;
    }
    assert_true(quick);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* ---- threads of the host ----------------------------------------------------------------------------- */

typedef struct rival {
    exphil_prefetcher *prefetcher;
    atomic_int taken, refused, wrong;
} rival;

static void *compete(void *arg)
{
    rival *r = arg;
    for (int i = 0; i < 400; i++) {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
        exphil_status status = exphil_prefetcher_next(r->prefetcher, &batch, NULL);
        if (status >= 0) atomic_fetch_add(&r->taken, status == EXPHIL_OK);
        if (status == EXPHIL_E_BUSY) atomic_fetch_add(&r->refused, 1);
        if (status < 0 && status != EXPHIL_E_BUSY) atomic_fetch_add(&r->wrong, 1);
        status = exphil_prefetcher_query(r->prefetcher, &info, NULL);
        if (status < 0 && status != EXPHIL_E_BUSY) atomic_fetch_add(&r->wrong, 1);
        if (i % 50 == 0) status = exphil_prefetcher_seek(r->prefetcher, i, 0, NULL);
    }
    return NULL;
}

static void test_rivals(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, lengths, EPISODES);
    exphil_sampling how = sampling_of(2);
    rival r = {.prefetcher = prefetcher_of(dataset, &how)};
    test_thread threads[3];
    for (int i = 0; i < 3; i++) test_thread_start(&threads[i], compete, &r);
    for (int i = 0; i < 3; i++) (void)test_thread_join(&threads[i]);
    assert_int_equal(atomic_load(&r.wrong), 0);
    assert_true(atomic_load(&r.taken) > 0);
    exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
    assert_int_equal(exphil_prefetcher_query(r.prefetcher, &info, NULL), EXPHIL_OK);
    assert_int_equal(info.delivered, atomic_load(&r.taken));
    exphil_prefetcher_destroy(r.prefetcher);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* The host goes on adding to the dataset meanwhile. */
static void test_growing_dataset(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, lengths, EPISODES);
    exphil_sampling how = sampling_of(2);
    exphil_prefetcher *prefetcher = prefetcher_of(dataset, &how);
    uint64_t content = data_info(dataset).content_hash;
    for (int64_t e = 0; e < 60; e++) {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        assert_int_equal(data_add(dataset, e, 200, NULL), EXPHIL_OK);
        assert_true(exphil_prefetcher_next(prefetcher, &batch, NULL) >= 0);
    }
    assert_true(xph_dataset_content_hash(xph_prefetcher_dataset(prefetcher)) == content);
    assert_int_equal(xph_prefetcher_sampling(prefetcher)->buffers, 2);
    exphil_prefetcher_destroy(prefetcher);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* ---- failures ---------------------------------------------------------------------------------------- */

static int32_t cancel_now(void *user)
{
    return *(int32_t *)user;
}

static void test_failures(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    int32_t cancel = 0;
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    config.allocator = &memory.hook;
    config.cancel = cancel_now;
    config.cancel_user = &cancel;
    exphil_context *context = NULL;
    assert_int_equal(exphil_context_create(&config, &context, NULL), EXPHIL_OK);
    exphil_dataset *dataset = data_make(context, lengths, EPISODES);
    exphil_sampling how = sampling_of(2);
    exphil_prefetcher *prefetcher = NULL;
    long long failures = 0;
    for (; !prefetcher; failures++) {
        memory.fail_at = atomic_load(&memory.calls) + failures + 1;
        exphil_status status = exphil_prefetcher_create(dataset, &how, &prefetcher, NULL);
        assert_int_equal(status, prefetcher ? EXPHIL_OK : EXPHIL_E_MEMORY);
    }
    assert_true(failures > 10);
    /* From here on memory is not needed. */
    memory.fail_at = 1;
    memory.fail_on = true;
    exphil_batch batch = EXPHIL_BATCH_INIT, small = {.struct_size = 8};
    for (int i = 0; i < 200; i++) assert_true(exphil_prefetcher_next(prefetcher, &batch, NULL) >= 0);
    /* A refused call takes no batch. */
    exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
    assert_int_equal(exphil_prefetcher_query(prefetcher, &info, NULL), EXPHIL_OK);
    int64_t delivered = info.delivered;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_prefetcher_next(prefetcher, NULL, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_prefetcher_next(prefetcher, &small, &error), EXPHIL_E_INVALID);
    assert_non_null(strstr(error.message, "exphil_batch"));
    cancel = 1;
    assert_int_equal(exphil_prefetcher_next(prefetcher, &batch, &error), EXPHIL_E_CANCELLED);
    cancel = 0;
    assert_int_equal(exphil_prefetcher_query(prefetcher, &info, NULL), EXPHIL_OK);
    assert_int_equal(info.delivered, delivered);
    assert_int_equal(exphil_prefetcher_query(prefetcher, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_prefetcher_next(NULL, &batch, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_prefetcher_create(NULL, NULL, &prefetcher, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_prefetcher_create(dataset, NULL, NULL, NULL), EXPHIL_E_INVALID);
    exphil_prefetcher_destroy(NULL);
    exphil_prefetcher_destroy(prefetcher);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_pointers_live),
        cmocka_unit_test(test_seek),
        cmocka_unit_test(test_end_at_any_moment),
        cmocka_unit_test(test_end_within_a_plan),
        cmocka_unit_test(test_rivals),
        cmocka_unit_test(test_growing_dataset),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
