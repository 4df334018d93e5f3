/* Several threads share one exphil_ops, each with arrays and a workspace of its own: what each computes has the bits of a run
 * alone. Under the thread sanitizer nothing races. */
#include "ops_case.h"

enum { THREADS = 4, RUNS = 13 };

typedef struct worker {
    exphil_ops *ops;
    ops_run *run[RUNS];
    exphil_status status;
    int64_t rounds;
    test_thread id;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    for (int64_t i = 0; i < w->rounds; i++)
        for (int k = 0; k < RUNS; k++) {
            exphil_op_info info = EXPHIL_OP_INFO_INIT;
            exphil_status asked = exphil_ops_query(w->ops, w->run[k]->args, &info, NULL);
            exphil_status done = ops_run_do(w->ops, w->run[k], NULL);
            if (asked < 0 || done < 0) w->status = EXPHIL_E_INTERNAL;
        }
    return NULL;
}

static uint64_t results(const worker *w)
{
    uint64_t hash = 0;
    for (int k = 0; k < RUNS; k++)
        for (int i = 0; i < w->run[k]->c->count; i++)
            if (ops_is_out(w->run[k], i) && k != 6) /* a step of AdamW goes on from the last */
                hash = xph_mix(hash) ^ xph_hash(w->run[k]->laid[i].data, w->run[k]->laid[i].bytes);
    return hash;
}

static void prepare(worker *w, exphil_ops *ops, int64_t rounds)
{
    const ops_shape shape = {4, 12, 40, 4, 5, 0};
    *w = (worker){.ops = ops, .rounds = rounds};
    case_seed(1);
    for (int k = 0; k < RUNS; k++) {
        ops_case *c = ops_case_make(ops_forward[k % 7], &shape);
        void *saved = k >= 7 ? ops_forward_of(ops, c, EXPHIL_OPS_F32) : NULL;
        w->run[k] =
            ops_run_make(ops, c, k >= 7, EXPHIL_OPS_F32, k % 2 ? OPS_COLUMNS_APART : OPS_DENSE, saved);
    }
}

static void check_shared(int32_t pool, int32_t threads)
{
    exphil_context *context = test_context(NULL, NULL, pool);
    exphil_ops *ops = ops_make(context, threads);
    worker alone, w[THREADS];
    prepare(&alone, ops, 1);
    for (int i = 0; i < THREADS; i++) prepare(&w[i], ops, 6);
    work(&alone);
    for (int i = 0; i < THREADS; i++) test_thread_start(&w[i].id, work, &w[i]);
    for (int i = 0; i < THREADS; i++) (void)test_thread_join(&w[i].id);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(w[i].status, EXPHIL_OK);
        assert_true(results(&w[i]) == results(&alone));
    }
    exphil_ops_destroy(ops);
    exphil_context_destroy(context);
    case_release();
}

static void threads_share_one(void **state)
{
    check_shared(1, 0);
    check_shared(3, 0);
    check_shared(3, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_share_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
