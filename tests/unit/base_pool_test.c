/* Threads: every item once, worker numbers never shared, several callers at a time, the host's executor, sleep. */
#include "test.h"
#include "test_modes.h"

#include <stdio.h>
#include <stdlib.h>

#define ITEMS   500
#define WORKERS 64

typedef struct work {
    exphil_context *context;
    atomic_int done[ITEMS];
    atomic_int inside[WORKERS];
    atomic_int shared, worst_worker, odd_mode, signals_open;
} work;

static void item(void *arg, int64_t i, int32_t worker)
{
    work *w = arg;
    if (atomic_fetch_add(&w->inside[worker], 1) != 0) atomic_fetch_add(&w->shared, 1);
    atomic_fetch_add(&w->done[i], 1);
    int worst = atomic_load(&w->worst_worker);
    while (worker > worst && !atomic_compare_exchange_weak(&w->worst_worker, &worst, worker)) {
    }
    if (worker > 0 && (test_mode() & ~TEST_FLAGS) != TEST_PLAIN) atomic_fetch_add(&w->odd_mode, 1);
    if (worker > 0 && test_signals_open()) atomic_fetch_add(&w->signals_open, 1);
    for (volatile int spin = 0; spin < 300; spin++) {
    }
    atomic_fetch_sub(&w->inside[worker], 1);
}

static void check(work *w, int64_t count)
{
    for (int64_t i = 0; i < ITEMS; i++) assert_int_equal(atomic_load(&w->done[i]), i < count ? 1 : 0);
    assert_int_equal(atomic_load(&w->shared), 0);
}

static void every_item_runs_once(void **state)
{
    assert_true(test_signals_open() == test_has_signals());
    const int32_t threads[] = {1, 2, 3, 8};
    const int64_t counts[] = {0, 1, 2, 7, ITEMS};
    for (size_t t = 0; t < 4; t++) {
        test_memory memory;
        test_memory_init(&memory);
        exphil_context *context = test_context(&memory, NULL, threads[t]);
        assert_int_equal(xph_workers(context), threads[t]);
        for (int round = 0; round < 20; round++) {
            for (size_t c = 0; c < 5; c++) {
                work w = {.context = context};
                xph_parallel(context, item, &w, counts[c]);
                check(&w, counts[c]);
                assert_true(atomic_load(&w.worst_worker) < threads[t]);
                assert_int_equal(atomic_load(&w.signals_open), 0);
            }
        }
        exphil_context_destroy(context);
        assert_memory_clean(&memory);
    }
}

static void *caller(void *arg)
{
    exphil_context *context = arg;
    for (int round = 0; round < 100; round++) {
        work w = {.context = context};
        xph_parallel(context, item, &w, ITEMS / 5);
        for (int64_t i = 0; i < ITEMS / 5; i++) {
            if (atomic_load(&w.done[i]) != 1) return "an item did not run once";
        }
        if (atomic_load(&w.shared)) return "a worker number was shared";
    }
    return NULL;
}

static void callers_do_not_disturb_each_other(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 3);
    test_thread thread[4];
    for (int i = 0; i < 4; i++) test_thread_start(&thread[i], caller, context);
    for (int i = 0; i < 4; i++) {
        const char *complaint = test_thread_join(&thread[i]);
        if (complaint) fail_msg("%s", complaint);
    }
    exphil_context_destroy(context);
}

static void threads_compute_in_the_plain_mode(void **state)
{
    test_needs_modes();
    const uint32_t entry = test_mode();
    exphil_context *context = test_context(NULL, NULL, 4);
    work w = {.context = context};
    test_mode_set(TEST_ODD); /* where new threads inherit it */
    for (int i = 0; i < 20; i++) {
        memset(w.done, 0, sizeof w.done);
        xph_parallel(context, item, &w, ITEMS);
    }
    test_mode_set(entry);
    assert_int_equal(atomic_load(&w.odd_mode), 0);
    exphil_context_destroy(context);
}

static int calls;

static void backwards(void *user, void (*fn)(void *arg, int64_t i, int32_t worker), void *arg, int64_t count)
{
    calls++;
    test_mode_set(TEST_ODD);
    for (int64_t i = count; i-- > 0;) fn(arg, i, (int32_t)(i % 5));
    test_mode_set(TEST_PLAIN);
}

static void the_hosts_executor_is_used(void **state)
{
    exphil_executor executor = {sizeof executor, NULL, 5, 0, backwards};
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    config.executor = &executor;
    assert_int_equal(exphil_context_create(&config, &context, NULL), EXPHIL_OK);
    assert_int_equal(xph_workers(context), 5);
    work w = {.context = context};
    xph_parallel(context, item, &w, 100);
    assert_int_equal(calls, 1);
    check(&w, 100);
    assert_int_equal(atomic_load(&w.odd_mode), 0);
    assert_int_equal(atomic_load(&w.worst_worker), 4);
    exphil_context_destroy(context);
}

/* The pool is made in the middle of a call: no memory for it means that the caller works alone. */
static void without_memory_the_caller_works_alone(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 4);
    memory.fail_at = atomic_load(&memory.calls) + 1;
    work w = {.context = context};
    xph_parallel(context, item, &w, ITEMS);
    check(&w, ITEMS);
    assert_int_equal(atomic_load(&w.worst_worker), 0);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

#ifndef EXPHIL_SANITIZE /* the sanitizers need the address space themselves */
static int hardly_any_stacks(void *unused)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    config.threads = WORKERS;
    if (exphil_context_create(&config, &context, NULL) != EXPHIL_OK) return 1;
    if (!test_limit_memory((size_t)8 << 20)) return 2;
    static work w;
    w.context = context;
    xph_parallel(context, item, &w, ITEMS);
    for (int i = 0; i < ITEMS; i++) {
        if (atomic_load(&w.done[i]) != 1) return 4;
    }
    /* 8 MiB hold eight stacks; glibc may have kept up to 40 MiB of those of earlier threads. */
    if (atomic_load(&w.worst_worker) >= 49) return 5;
    exphil_context_destroy(context);
    return 0;
}

/* In a child that may hardly map more memory only a few of the stacks can be had. */
static void fewer_threads_do_the_same_work(void **state)
{
    if (test_emulated()) test_left_out("an emulator keeps no limit of the address space");
    assert_int_equal(test_in_copy(hardly_any_stacks, NULL), 0);
}
#endif

/* Between hold and release threads look for work for a moment; that ends, held or not. */
static void held_threads_do_the_same_work(void **state)
{
    for (int32_t threads = 2; threads <= 8; threads *= 2) {
        exphil_context *context = test_context(NULL, NULL, threads);
        xph_parallel_hold(context);
        for (int round = 0; round < 300; round++) {
            work w = {.context = context};
            xph_parallel(context, item, &w, 1 + round % 40);
            check(&w, 1 + round % 40);
            if (round % 100 == 99) xph_sleep(1000000);
            if (round == 150) xph_parallel_release(context);
        }
        exphil_context_destroy(context);
    }
}

static void idle_threads_sleep(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 2);
    xph_parallel_hold(context); /* and nobody lets go */
    work w = {.context = context};
    xph_parallel(context, item, &w, ITEMS);
    /* When they begin to sleep is the system's affair; threads that look for work for ever never do. */
    int64_t used = INT64_MAX;
    for (int tries = 0; tries < 600 && used >= 10000000; tries++) {
        int64_t before = test_processor_ns();
        xph_sleep(100000000);
        used = test_processor_ns() - before;
    }
    assert_true(used < 10000000);
    exphil_context_destroy(context);
}

/* ---- single threads and locks ------------------------------------------------------------------------------ */

typedef struct mailbox {
    xph_mutex *mutex;
    int sent, seen;
    char frame[1];
} mailbox;

static void reader(void *arg)
{
    mailbox *box = arg;
    volatile char stack[400 * 1024];
    for (size_t i = 0; i < sizeof stack; i += 4096) stack[i] = 1; /* the stack is as deep as promised */
    xph_mutex_lock(box->mutex);
    while (box->seen < 100) {
        while (box->sent == box->seen) xph_mutex_wait(box->mutex);
        box->seen++;
        xph_mutex_broadcast(box->mutex);
    }
    xph_mutex_unlock(box->mutex);
}

static void a_thread_and_a_lock(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    mailbox box = {0};
    xph_thread *thread = NULL;
    assert_int_equal(xph_mutex_create(context, &box.mutex, NULL), EXPHIL_OK);
    assert_int_equal(xph_thread_create(context, reader, &box, &thread, NULL), EXPHIL_OK);
    xph_mutex_lock(box.mutex);
    for (int i = 0; i < 100; i++) {
        box.sent++;
        xph_mutex_broadcast(box.mutex);
        while (box.seen < box.sent) xph_mutex_wait(box.mutex);
    }
    xph_mutex_unlock(box.mutex);
    xph_thread_join(thread);
    assert_int_equal(box.seen, 100);
    memory.fail_at = atomic_load(&memory.calls) + 1;
    memory.fail_on = true;
    xph_mutex *none = NULL;
    assert_int_equal(xph_mutex_create(context, &none, NULL), EXPHIL_E_MEMORY);
    assert_int_equal(xph_thread_create(context, reader, &box, &thread, NULL), EXPHIL_E_MEMORY);
    xph_mutex_destroy(box.mutex);
    xph_mutex_destroy(none);
    xph_thread_join(NULL);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

static void busy_is_for_one(void **state)
{
    xph_busy busy = {0};
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_true(xph_busy_enter(&busy));
    assert_false(xph_busy_enter(&busy));
    assert_int_equal(xph_busy_error("session", &error), EXPHIL_E_BUSY);
    assert_string_equal(error.message, "session is in use on another thread");
    xph_busy_leave(&busy);
    assert_true(xph_busy_enter(&busy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_runs_once),
        cmocka_unit_test(callers_do_not_disturb_each_other),
        cmocka_unit_test(threads_compute_in_the_plain_mode),
        cmocka_unit_test(the_hosts_executor_is_used),
        cmocka_unit_test(without_memory_the_caller_works_alone),
#ifndef EXPHIL_SANITIZE
        cmocka_unit_test(fewer_threads_do_the_same_work),
#endif
        cmocka_unit_test(held_threads_do_the_same_work),
        cmocka_unit_test(idle_threads_sleep),
        cmocka_unit_test(a_thread_and_a_lock),
        cmocka_unit_test(busy_is_for_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
