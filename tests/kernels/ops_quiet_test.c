/* A run of exphil/ops.h allocates nothing; with one thread it takes no lock and makes no system call; the floating-point mode of
 * the host is neither felt nor changed. */
#include "ops_case.h"

#include "test_modes.h"
#include "traps.h"

#include <stdlib.h>

enum { RUNS = 13, ROUNDS = 20 };

typedef struct bench {
    test_memory memory;
    exphil_context *context;
    exphil_ops *ops;
    ops_run *run[RUNS][OPS_LAYOUTS];
} bench;

static void bench_make(bench *b, int32_t pool, int32_t threads)
{
    const ops_shape shape = {2, 17, 40, 4, 5, 0};
    test_memory_init(&b->memory);
    b->context = test_context(&b->memory, NULL, pool);
    b->ops = ops_make(b->context, threads);
    case_seed(1);
    for (int i = 0; i < RUNS; i++)
        for (int layout = 0; layout < OPS_LAYOUTS; layout++) {
            ops_case *c = ops_case_make(ops_forward[i % 7], &shape);
            void *saved = i >= 7 ? ops_forward_of(b->ops, c, layout % 2) : NULL;
            b->run[i][layout] = ops_run_make(b->ops, c, i >= 7, layout % 2, layout, saved);
        }
}

static void bench_free(bench *b)
{
    exphil_ops_destroy(b->ops);
    exphil_context_destroy(b->context);
    assert_memory_clean(&b->memory);
    case_release();
}

/* Every operation, and calls that fail. Nothing of cmocka in here: the caller may have no system calls. */
static bool hot(bench *b)
{
    bool fine = true;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_op_info info = EXPHIL_OP_INFO_INIT;
    for (int i = 0; i < RUNS; i++)
        for (int layout = 0; layout < OPS_LAYOUTS; layout++) {
            ops_run *r = b->run[i][layout];
            fine &= exphil_ops_query(b->ops, r->args, &info, NULL) == EXPHIL_OK;
            fine &= ops_run_do(b->ops, r, &error) == EXPHIL_OK;
            fine &= exphil_ops_run(b->ops, r->args, r->args, SIZE_MAX, NULL, &error) == EXPHIL_E_INVALID;
        }
    return fine;
}

static void nothing_is_allocated_or_locked(void **state)
{
    for (int32_t pool = 1; pool <= 3; pool += 2)
        for (int32_t threads = 0; threads <= 1; threads++) {
            bench b;
            bench_make(&b, pool, threads);
            assert_true(hot(&b));
            const long long before[] = {atomic_load(&b.memory.calls), atomic_load(&trap_locks),
                                        atomic_load(&trap_mallocs)};
            bool fine = true;
            traps_watch();
            for (int i = 0; i < ROUNDS / 4; i++) fine &= hot(&b);
            assert_true(fine);
            assert_int_equal(atomic_load(&b.memory.calls), before[0]);
            assert_int_equal(atomic_load(&trap_mallocs), before[2]);
            if (pool == 1 || threads == 1)
                assert_int_equal(atomic_load(&trap_locks), before[1]);
            else
                assert_true(atomic_load(&trap_locks) > before[1] || !traps_count()); /* the traps do trap */
            bench_free(&b);
        }
}

#ifndef EXPHIL_SANITIZE /* sanitizers call the system themselves */

static int live(void *guilty)
{
    bench b;
    bench_make(&b, 2, 1);
    bool fine = hot(&b);
    if (!traps_give_up_system_calls()) return TRAPS_NO_FILTER;
    for (int i = 0; i < ROUNDS; i++) fine &= hot(&b);
    if (guilty) traps_call_the_system();
    return fine ? TRAPS_FINE : TRAPS_WRONG;
}

static void the_system_is_never_called(void **state)
{
    bool guilty = true;
    assert_quiet_life(live, NULL);
    assert_guilty_life(live, &guilty);
}

static int in_a_child(void *bench_of_the_parent)
{
    bench *b = bench_of_the_parent;
    const bool fine = ops_run_do(b->ops, b->run[0][0], NULL) == EXPHIL_E_STATE;
    exphil_ops_destroy(b->ops);
    return fine ? 0 : 1;
}

/* An object made before fork() is refused in the child. */
static void a_forked_child_is_refused(void **state)
{
    bench b;
    bench_make(&b, 2, 0);
    const int status = test_in_copy(in_a_child, &b);
    assert_int_equal(status, 0);
    bench_free(&b);
}
#endif

#ifndef EXPHIL_SANITIZE /* sanitizers need more */

/* A thread of 64 KiB, of which one page is the guard. */
enum { SMALL = (64 << 10) - 4096, DEEPEST = 48 << 10 };

static void *on_small_stack(void *arg)
{
    return hot(arg) ? arg : NULL;
}

static void a_small_stack_is_enough(void **state)
{
    bench b;
    size_t used = 0;
    bench_make(&b, 1, 1);
    assert_non_null(test_on_small_stack(SMALL, on_small_stack, &b, &used));
    if (used > DEEPEST) fail_msg("%zu bytes of a stack were used", used);
    bench_free(&b);
}
#endif

static uint64_t outcome(bench *b, uint32_t mode)
{
    uint64_t hash = 0;
    for (int i = 0; i < RUNS; i++) {
        ops_run *r = b->run[i][0];
        test_mode_set(mode);
        exphil_status status = ops_run_do(b->ops, r, NULL);
        const uint32_t after = test_mode();
        test_mode_set(TEST_PLAIN);
        assert_int_equal(status, EXPHIL_OK);
        assert_int_equal(after, mode);
        for (int k = 0; k < r->c->count; k++)
            if (ops_is_out(r, k)) hash = xph_mix(hash) ^ xph_hash(r->laid[k].data, r->laid[k].bytes);
    }
    return hash;
}

static void host_modes_are_not_felt(void **state)
{
    test_needs_modes();
    bench b, other;
    bench_make(&b, 2, 0);
    const uint64_t wanted = outcome(&b, TEST_PLAIN);
    bench_free(&b);
    for (int i = 0; i < TEST_MODE_COUNT; i++) {
        bench_make(&other, 2, 0);
        if (outcome(&other, test_modes[i]) != wanted)
            fail_msg("another result with mode %04x", (unsigned)test_modes[i]);
        bench_free(&other);
    }
}

/* A context is made or nothing is left, whatever allocation fails. */
static void no_memory_is_no_ops(void **state)
{
    for (long long at = 1; at <= 3; at++) {
        test_memory memory;
        exphil_ops *ops = NULL;
        exphil_error error = EXPHIL_ERROR_INIT;
        test_memory_init(&memory);
        exphil_context *context = test_context(&memory, NULL, 1);
        memory.fail_at = atomic_load(&memory.calls) + at;
        const exphil_status status = exphil_ops_create(context, NULL, &ops, &error);
        assert_int_equal(status, at <= 2 ? EXPHIL_E_MEMORY : EXPHIL_OK);
        exphil_ops_destroy(ops);
        exphil_context_destroy(context);
        assert_memory_clean(&memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_allocated_or_locked),
#ifndef EXPHIL_SANITIZE
        cmocka_unit_test(the_system_is_never_called),     cmocka_unit_test(a_forked_child_is_refused),
        cmocka_unit_test(a_small_stack_is_enough),
#endif
        cmocka_unit_test(host_modes_are_not_felt),        cmocka_unit_test(no_memory_is_no_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
