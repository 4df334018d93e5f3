/* A backend whose operations refuse the first time they run, each wanting more scratch from its next candidate: results are
 * those of before, scratch is the operation's own, memory that is not there is told, and nothing stays. The backend is the
 * CPU's behind a table that refuses. */
#include "model_case.h"

#include "model/net_plan.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 1, SECOND = 2, MORE = 5000, BATCH = 3, TIME = 9 };

static const xph_backend *real;
static int64_t refusals, allocations;
static bool starved;

/* A candidate of the table that refuses: what run is given instead of a kernel of the CPU's. */
typedef struct refusing {
    xph_op op;
    uint32_t bit;
    const xph_kernel *kernel;
} refusing;
static refusing seen[2 * XPH_OP_COUNT];

/* All that refuse are steps of a net. */
static size_t real_scratch(xph_device *device, const refusing *one, const void *args)
{
    xph_op_info info = {0};
    xph_step_args copy = *(const xph_step_args *)args;
    assert_int_equal(real->query(device, one->op, &copy, &info), EXPHIL_OK);
    return info.scratch_bytes;
}

static bool is_net(xph_op op)
{
    return op != XPH_OP_LINEAR_PACK && op != XPH_OP_SCAN_PACK && op != XPH_OP_PACKS &&
           op != XPH_OP_POLICY_LOSS;
}

/* Linears have none in any candidate. */
static exphil_status query(xph_device *device, xph_op op, void *args, xph_op_info *info)
{
    const uint32_t refused = info->refused;
    if (refused & SECOND) return EXPHIL_E_UNSUPPORTED;
    XPH_TRY(real->query(device, op, args, info));
    info->refused = refused;
    info->candidate = refused & FIRST || !is_net(op) ? SECOND : FIRST;
    if (info->scratch_bytes && info->candidate == SECOND) info->scratch_bytes += MORE;
    refusing *one = &seen[2 * op + (info->candidate == SECOND)];
    if (one->kernel) assert_ptr_equal(one->kernel, info->kernel);
    *one = (refusing){op, info->candidate, info->kernel};
    info->kernel = (const xph_kernel *)one;
    return EXPHIL_OK;
}

static void *scratch_of(xph_op op, const void *args)
{
    switch (op) {
    case XPH_OP_SCAN:
        return ((const xph_scan_args *)args)->scratch;
    case XPH_OP_SCAN_GRAD:
        return ((const xph_scan_grad_args *)args)->scratch;
    case XPH_OP_RNN:
        return ((const xph_rnn_args *)args)->scratch;
    case XPH_OP_RNN_GRAD:
        return ((const xph_rnn_grad_args *)args)->scratch;
    case XPH_OP_CONV_GRAD:
        return ((const xph_conv_grad_args *)args)->scratch;
    case XPH_OP_NORM_GRAD:
        return ((const xph_norm_grad_args *)args)->scratch;
    case XPH_OP_LINEAR_GRAD:
        return ((const xph_linear_grad_args *)args)->scratch;
    default:
        return NULL;
    }
}

/* Who was promised scratch may write all of it. */
static exphil_status run(xph_stream *stream, const xph_kernel *kernel, const void *args)
{
    const refusing *one = (const refusing *)kernel;
    if (one->bit == FIRST) {
        refusals++;
        return EXPHIL_E_UNSUPPORTED;
    }
    void *scratch = scratch_of(one->op, args);
    size_t bytes = scratch ? real_scratch(stream->device, one, args) : 0;
    if (bytes) memset(scratch, 0xff, bytes + MORE);
    return real->run(stream, one->kernel, args);
}

static exphil_status alloc(xph_device *device, size_t bytes, void **address)
{
    allocations++;
    return starved ? EXPHIL_E_MEMORY : real->alloc(device, bytes, address);
}

/* ---- a net ---- */

typedef struct outcome {
    unsigned char *logits, *gradients;
    size_t logits_bytes, gradients_bytes;
} outcome;

static exphil_status run_net(xph_net *net, const model_case *c, void *state)
{
    const xph_net_io io = model_case_io(c, c->state, state);
    XPH_TRY(xph_net_forward(net, c->weights, c->packed, &io));
    return xph_net_backward(net, c->weights, c->packed, &io, c->dlogits, c->dvalues, c->gradients);
}

static outcome work(exphil_context *context, bool refuses)
{
    const exphil_model_config config = model_case_config("mamba lstm attention", EXPHIL_TYPE_F32);
    xph_device *device = xph_context_backend(context);
    real = device->backend;
    xph_backend table = *real;
    table.query = query;
    table.run = run;
    table.alloc = alloc;
    exphil_model *model = model_case_create(context, &config);
    model_case *c = model_case_make(model, BATCH, TIME, 4, 0.1, 3);
    void *state = calloc((size_t)(BATCH * c->shape->state), c->shape->real_bytes);
    xph_net *net = NULL;
    refusals = allocations = 0;
    if (refuses) device->backend = &table;
    assert_int_equal(xph_net_create(model, BATCH, TIME, XPH_NET_TRAIN, &net, NULL), EXPHIL_OK);
    if (refuses) {
        starved = true;
        assert_int_equal(run_net(net, c, state), EXPHIL_E_MEMORY);
        starved = false;
    }
    outcome o = {.logits_bytes = (size_t)(c->rows * c->shape->logits) * c->shape->real_bytes,
                 .gradients_bytes = (size_t)c->shape->weights * c->shape->real_bytes};
    memset(c->gradients, 0, o.gradients_bytes);
    assert_int_equal(run_net(net, c, state), EXPHIL_OK);
    o.logits = memcpy(malloc(o.logits_bytes), xph_net_logits(net), o.logits_bytes);
    o.gradients = memcpy(malloc(o.gradients_bytes), c->gradients, o.gradients_bytes);
    const int64_t settled = refusals, taken = allocations;
    memset(c->gradients, 0, o.gradients_bytes);
    assert_int_equal(run_net(net, c, state), EXPHIL_OK);
    assert_memory_equal(c->gradients, o.gradients, o.gradients_bytes);
    assert_int_equal(refusals, settled);
    assert_int_equal(allocations, taken);
    if (refuses) assert_true(settled > 20 && taken > 1);
    xph_net_destroy(net);
    device->backend = real;
    free(state);
    model_case_free(c);
    exphil_model_destroy(model);
    return o;
}

static void the_next_candidate_has_its_own_scratch(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    outcome plain = work(context, false), other = work(context, true);
    assert_memory_equal(plain.logits, other.logits, plain.logits_bytes);
    assert_memory_equal(plain.gradients, other.gradients, plain.gradients_bytes);
    free(plain.logits);
    free(plain.gradients);
    free(other.logits);
    free(other.gradients);
    exphil_context_destroy(context);
}

/* The query that has no candidate left is the end of it. */
static exphil_status refuse_all(xph_stream *stream, const xph_kernel *kernel, const void *args)
{
    return EXPHIL_E_UNSUPPORTED;
}

static void none_left_is_told(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    const exphil_model_config config = model_case_config("mlp", EXPHIL_TYPE_F32);
    xph_device *device = xph_context_backend(context);
    real = device->backend;
    xph_backend table = *real;
    table.query = query;
    table.run = refuse_all;
    exphil_model *model = model_case_create(context, &config);
    model_case *c = model_case_make(model, BATCH, TIME, 0, 0.1, 3);
    xph_net *net = NULL;
    device->backend = &table;
    assert_int_equal(xph_net_create(model, BATCH, TIME, XPH_NET_TRAIN, &net, NULL), EXPHIL_OK);
    assert_int_equal(run_net(net, c, NULL), EXPHIL_E_UNSUPPORTED);
    xph_net_destroy(net);
    device->backend = real;
    model_case_free(c);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_candidate_has_its_own_scratch),
        cmocka_unit_test(none_left_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
