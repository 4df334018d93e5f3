/* A run of exphil/ops.h allocates nothing; with one thread it takes no lock and makes no system call; the floating-point mode of
 * the host is neither felt nor changed. */
#include "ops_case.h"

#include "traps.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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
                assert_true(atomic_load(&trap_locks) > before[1]); /* the traps do trap */
            bench_free(&b);
        }
}

#ifndef EXPHIL_SANITIZE /* sanitizers call the system themselves */

enum { FINE = 0, WRONG = 3, NO_SECCOMP = 4 };

static void child_life(bool guilty)
{
    const struct rlimit no_core = {0, 0};
    bench b;
    (void)setrlimit(RLIMIT_CORE, &no_core);
    bench_make(&b, 2, 1);
    bool fine = hot(&b);
    if (!traps_give_up_system_calls()) _exit(NO_SECCOMP);
    for (int i = 0; i < ROUNDS; i++) fine &= hot(&b);
    if (guilty) (void)getppid();
    _exit(fine ? FINE : WRONG);
}

static int run_child(bool guilty)
{
    pid_t child = fork();
    if (child == 0) child_life(guilty);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != NO_SECCOMP) return status;
    print_message("SKIPPED: this system has no seccomp filters\n");
    skip();
    return status;
}

static void the_system_is_never_called(void **state)
{
    int status = run_child(false);
    if (WIFSIGNALED(status)) fail_msg("ended by signal %d: a system call was made", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), FINE);
    status = run_child(true);
    assert_true(WIFSIGNALED(status));
}

/* An object made before fork() is refused in the child. */
static void a_forked_child_is_refused(void **state)
{
    bench b;
    bench_make(&b, 2, 0);
    pid_t child = fork();
    if (child == 0) {
        bool fine = ops_run_do(b.ops, b.run[0][0], NULL) == EXPHIL_E_STATE;
        exphil_ops_destroy(b.ops);
        _exit(fine ? FINE : WRONG);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == FINE);
    bench_free(&b);
}
#endif

#ifndef EXPHIL_SANITIZE /* sanitizers need more */

/* A thread of 64 KiB, of which one page is the guard; so wide another guard that no array reaches over it. */
enum { SMALL = (64 << 10) - 4096, WIDE = 64 << 10, PAINT = 0xA5, DEEPEST = 48 << 10 };

static void *on_small_stack(void *arg)
{
    return hot(arg) ? arg : NULL;
}

static void a_small_stack_is_enough(void **state)
{
    bench b;
    bench_make(&b, 1, 1);
    unsigned char *memory =
        mmap(NULL, WIDE + SMALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *stack = memory + WIDE;
    pthread_attr_t attributes;
    pthread_t id;
    void *fine = NULL;
    size_t untouched = 0;
    assert_true(memory != MAP_FAILED);
    assert_int_equal(mprotect(memory, WIDE, PROT_NONE), 0);
    memset(stack, PAINT, SMALL);
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, SMALL), 0);
    assert_int_equal(pthread_create(&id, &attributes, on_small_stack, &b), 0);
    pthread_join(id, &fine);
    pthread_attr_destroy(&attributes);
    assert_non_null(fine);
    while (untouched < SMALL && stack[untouched] == PAINT) untouched++;
    if (SMALL - untouched > DEEPEST) fail_msg("%zu bytes of a stack were used", SMALL - untouched);
    munmap(memory, WIDE + SMALL);
    bench_free(&b);
}
#endif

#if defined(__SSE__)
#  include <xmmintrin.h>

static uint64_t outcome(bench *b, unsigned mode)
{
    uint64_t hash = 0;
    for (int i = 0; i < RUNS; i++) {
        ops_run *r = b->run[i][0];
        _mm_setcsr(mode);
        exphil_status status = ops_run_do(b->ops, r, NULL);
        unsigned after = _mm_getcsr();
        _mm_setcsr(0x1F80);
        assert_int_equal(status, EXPHIL_OK);
        assert_int_equal(after, mode);
        for (int k = 0; k < r->c->count; k++)
            if (ops_is_out(r, k)) hash = xph_mix(hash) ^ xph_hash(r->laid[k].data, r->laid[k].bytes);
    }
    return hash;
}

static void host_modes_are_not_felt(void **state)
{
    /* rounding up, down, to zero; flush to zero and denormals are zero; exceptions trapped */
    static const unsigned modes[] = {0x5F80, 0x3F80, 0x7F80, 0x9FC0, 0xDFC0, 0x1F80 & ~0x1F80u};
    bench b, other;
    bench_make(&b, 2, 0);
    const uint64_t wanted = outcome(&b, 0x1F80);
    bench_free(&b);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        bench_make(&other, 2, 0);
        if (outcome(&other, modes[i]) != wanted) fail_msg("another result with MXCSR %04x", modes[i]);
        bench_free(&other);
    }
}
#else
static void host_modes_are_not_felt(void **state)
{
    print_message("SKIPPED: the modes are known on x86 only\n");
    skip();
}
#endif

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
