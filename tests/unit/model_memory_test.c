/* Memory that runs out at any point of making a model or a net: the call fails, nothing is left, outputs
 * are untouched. */
#include "model_case.h"

typedef struct attempt {
    exphil_context *context;
    exphil_model *model;
} attempt;

static exphil_status make_model(attempt *a, exphil_error *error)
{
    exphil_model_config config = model_case_config(ALL_BLOCKS, EXPHIL_TYPE_F32);
    exphil_model *model = NULL;
    exphil_status status = exphil_model_create(a->context, &config, &model, error);
    assert_true((status == EXPHIL_OK) == (model != NULL));
    exphil_model_destroy(model);
    return status;
}

static exphil_status make_net(attempt *a, exphil_error *error)
{
    xph_net *net = NULL;
    exphil_status status = xph_net_create(a->model, 2, 3, XPH_NET_TRAIN, &net, error);
    assert_true((status == EXPHIL_OK) == (net != NULL));
    xph_net_destroy(net);
    return status;
}

static exphil_status make_copy(attempt *a, exphil_error *error)
{
    exphil_model *copy = NULL;
    exphil_status status = xph_model_with_weights(a->model, xph_model_weights(a->model), 0, 0, &copy, error);
    assert_true((status == EXPHIL_OK) == (copy != NULL));
    if (copy) {
        const void *packed = NULL;
        status = xph_model_packed(copy, &packed, error);
    }
    exphil_model_destroy(copy);
    return status;
}

static exphil_status query_model(attempt *a, exphil_error *error)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    return exphil_model_query(a->model, &info, error);
}

/* Refuses call after call until the whole passes. */
static void exhaust(exphil_status (*what)(attempt *a, exphil_error *error))
{
    test_memory memory;
    test_memory_init(&memory);
    attempt a = {.context = test_context(&memory, NULL, 1)};
    exphil_model_config config = model_case_config(ALL_BLOCKS, EXPHIL_TYPE_F32);
    a.model = model_case_create(a.context, &config);
    long long live = atomic_load(&memory.live), refused = 0;
    for (;; refused++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        memory.fail_at = atomic_load(&memory.calls) + refused + 1;
        memory.fail_on = refused % 2;
        exphil_status status = what(&a, &error);
        bool reached = atomic_load(&memory.calls) >= memory.fail_at;
        memory.fail_at = 0;
        assert_int_equal(atomic_load(&memory.live), live);
        if (!reached) {
            assert_int_equal(status, EXPHIL_OK);
            break;
        }
        if (status != EXPHIL_E_MEMORY) fail_msg("call %lld refused: status %d", refused, (int)status);
        assert_int_equal(error.status, EXPHIL_E_MEMORY);
    }
    assert_true(refused >= 1);
    exphil_model_destroy(a.model);
    exphil_context_destroy(a.context);
    assert_memory_clean(&memory);
}

static void models(void **unused)
{
    exhaust(make_model);
}

static void nets(void **unused)
{
    exhaust(make_net);
}

static void copies(void **unused)
{
    exhaust(make_copy);
}

static void queries(void **unused)
{
    exhaust(query_model);
}

/* After creation a net asks for nothing more. */
static void running_allocates_nothing(void **unused)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    exphil_model_config config = model_case_config(ALL_BLOCKS, EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(context, &config);
    model_case *c = model_case_make(model, 2, 6, 3, 0.1, 3);
    xph_net *net = NULL;
    assert_ok(xph_net_create(model, 2, 6, XPH_NET_TRAIN, &net, NULL));
    long long calls = atomic_load(&memory.calls);
    xph_net_io io = model_case_io(c, NULL, c->state);
    assert_ok(xph_net_pack(net, c->weights, c->packed));
    assert_ok(xph_net_forward(net, c->weights, c->packed, &io));
    assert_ok(xph_net_backward(net, c->weights, c->packed, &io, c->dlogits, c->dvalues, c->gradients));
    assert_int_equal(atomic_load(&memory.calls), calls);
    xph_net_destroy(net);
    model_case_free(c);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models),
        cmocka_unit_test(nets),
        cmocka_unit_test(copies),
        cmocka_unit_test(queries),
        cmocka_unit_test(running_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
