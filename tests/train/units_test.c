/* Heads, loss and gradients as one operation (XPH_HEADS_ALL) and its parts, on a CPU that has them in this test alone, composed
 * of its own operations: training and a loss of the host's give what they give without them, and where the one operation is
 * refused updates go on by the parts, which is said once. */
#include "train_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UPDATES = 12 };

/* ---- a backend with one operation more ---- */

static struct fake {
    const xph_backend *real;
    xph_backend backend;
    bool refuses;   /* XPH_HEADS_ALL, when it is to run */
    int64_t ran[3]; /* by part; also what was refused */
} fake;

static const char marker[1];
static const xph_kernel *fake_kernel(void)
{
    return (const xph_kernel *)(const void *)marker;
}

static exphil_status query(xph_device *device, xph_op op, void *args, xph_op_info *info)
{
    if (op != XPH_OP_HEADS_LOSS) return fake.real->query(device, op, args, info);
    if (info->refused) return EXPHIL_E_UNSUPPORTED;
    info->kernel = fake_kernel();
    info->name = "composed";
    info->candidate = 1;
    return EXPHIL_OK;
}

/* One of the CPU's operations, with scratch of its own. */
static void compose(xph_stream *stream, xph_op op, void *args, void **scratch)
{
    xph_op_info info = {0};
    assert_ok(fake.real->query(stream->device, op, args, &info));
    void *memory = test_aligned(64, info.scratch_bytes ? info.scratch_bytes : 1);
    if (scratch) *scratch = memory;
    assert_ok(fake.real->run(stream, info.kernel, args));
    test_aligned_free(memory);
}

static void gradients(xph_stream *stream, const xph_heads_grad_args *given)
{
    xph_heads_grad_args args = *given;
    const float *dz = args.dz;
    float *sum = args.dz_sum;
    args.dz_sum = NULL;
    compose(stream, XPH_OP_HEADS_GRAD, &args, &args.scratch);
    for (int64_t r = 0; sum && r < args.fwd.rows; r++)
        for (int64_t c = 0; c < args.fwd.width; c++) sum[c] += dz[r * args.lddz + c];
}

/* dy may not be wanted, and is the gradient of the operation all the same. */
static void all(xph_stream *stream, const xph_heads_loss_args *args)
{
    const size_t numbers = (size_t)(args->grad.fwd.rows * args->grad.fwd.logits);
    float *logits = malloc(numbers * sizeof *logits), *own = malloc(numbers * sizeof *own);
    xph_heads_args forward = args->grad.fwd;
    xph_heads_grad_args back = args->grad;
    xph_loss_args loss = *args->loss;
    forward.y = logits;
    forward.ldy = forward.logits;
    loss.y = logits;
    if (!back.dy) back.dy = own, back.lddy = forward.logits;
    loss.dy = (void *)(uintptr_t)back.dy;
    loss.lddy = back.lddy;
    compose(stream, XPH_OP_HEADS, &forward, NULL);
    compose(stream, XPH_OP_LOSS, &loss, NULL);
    gradients(stream, &back);
    free(logits);
    free(own);
}

static exphil_status run(xph_stream *stream, const xph_kernel *kernel, const void *args)
{
    if (kernel != fake_kernel()) return fake.real->run(stream, kernel, args);
    const xph_heads_loss_args *a = args;
    xph_heads_args forward = a->grad.fwd;
    fake.ran[a->part]++;
    if (a->part == XPH_HEADS_ALL && fake.refuses) return EXPHIL_E_UNSUPPORTED;
    if (a->part == XPH_HEADS_ALL) all(stream, a);
    if (a->part == XPH_HEADS_LOGITS) compose(stream, XPH_OP_HEADS, &forward, NULL);
    if (a->part == XPH_HEADS_GIVEN) gradients(stream, &a->grad);
    return EXPHIL_OK;
}

static void put_in(const exphil_context *context, bool refuses)
{
    xph_device *device = xph_context_backend(context);
    fake = (struct fake){.real = device->backend, .backend = *device->backend, .refuses = refuses};
    fake.backend.query = query;
    fake.backend.run = run;
    device->backend = &fake.backend;
}

static void take_out(const exphil_context *context)
{
    xph_context_backend(context)->backend = fake.real;
}

/* ---- training ---- */

typedef enum way { PLAIN, WITH, REFUSED } way;

static int said;

static void hear(void *user, exphil_log_level level, const char *message)
{
    (void)user;
    if (level <= EXPHIL_LOG_WARNING && strstr(message, "refuses heads and loss in one operation")) said++;
}

typedef struct taught {
    const char *what;
    int32_t value, heads; /* of the model's config */
    bool by_host;
} taught;

static const taught cases[] = {
    {"imitation", EXPHIL_VALUE_NONE, EXPHIL_HEADS_AUTOREGRESSIVE, false},
    {"imitation, independent heads", EXPHIL_VALUE_SHARED, EXPHIL_HEADS_INDEPENDENT, false},
    {"a loss of the host's", EXPHIL_VALUE_SHARED, EXPHIL_HEADS_AUTOREGRESSIVE, true},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Any gradients: they depend on what forward gives. */
static double update_by_host(exphil_trainer *trainer, const exphil_batch *batch)
{
    exphil_forward forward = EXPHIL_FORWARD_INIT;
    assert_ok(exphil_trainer_forward(trainer, batch, NULL, 0, &forward, NULL));
    const int64_t count = forward.rows * forward.logit_count;
    const float *logits = forward.logits, *values = forward.values;
    float *dlogits = malloc((size_t)count * sizeof *dlogits),
          *dvalues = malloc((size_t)forward.rows * sizeof *dvalues);
    double loss = 0.0;
    for (int64_t i = 0; i < count; i++) {
        loss += (double)logits[i] * (double)logits[i];
        dlogits[i] = i % 3 ? logits[i] / (float)forward.rows : 0.0f;
    }
    for (int64_t r = 0; r < forward.rows; r++) {
        loss += ((double)values[r] - 1.0) * ((double)values[r] - 1.0);
        dvalues[r] = (values[r] - 1.0f) / (float)forward.rows;
    }
    assert_ok(exphil_trainer_backward(trainer, dlogits, dvalues, loss, NULL, NULL));
    free(dlogits);
    free(dvalues);
    return loss;
}

static double update(exphil_trainer *trainer, const exphil_batch *batch, bool by_host)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    if (by_host) return update_by_host(trainer, batch);
    assert_ok(exphil_trainer_step_batch(trainer, batch, &metrics, NULL));
    return metrics.loss;
}

static void trains(const taught *t, way how, double losses[UPDATES])
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    plan.model.value = t->value;
    plan.model.heads = t->heads;
    plan.by_hand = true;
    plan.log = hear;
    plan.log_level = EXPHIL_LOG_WARNING;
    said = 0;
    train_run run = train_begin(&plan);
    exphil_batch batch = train_batch(run.model, 3, 5, 0);
    if (how != PLAIN) put_in(run.context, how == REFUSED);
    for (int i = 0; i < UPDATES; i++) losses[i] = update(run.trainer, &batch, t->by_host);
    if (how != PLAIN) take_out(run.context);
    assert_int_equal(said, how == REFUSED && !t->by_host);
    train_batch_free(&batch);
    train_end(&run);
}

/* What ran: the parts of both heads, or what is one operation. */
static void parts_were_taken(const taught *t, bool refused)
{
    const bool value = t->value != EXPHIL_VALUE_NONE, parts = t->by_host || refused;
    assert_int_equal(fake.ran[XPH_HEADS_ALL], t->by_host ? 0 : refused ? 1 : UPDATES);
    assert_int_equal(fake.ran[XPH_HEADS_LOGITS], parts * (1 + value) * UPDATES);
    assert_int_equal(fake.ran[XPH_HEADS_GIVEN], parts * (1 + value) * UPDATES);
}

static void same_with_and_without(void **state)
{
    for (int i = 0; i < CASES; i++) {
        double plain[UPDATES], other[UPDATES];
        trains(&cases[i], PLAIN, plain);
        assert_true(plain[UPDATES - 1] < plain[0]);
        for (way how = WITH; how <= REFUSED; how++) {
            trains(&cases[i], how, other);
            parts_were_taken(&cases[i], how == REFUSED && !cases[i].by_host);
            for (int k = 0; k < UPDATES; k++)
                if (!(fabs(other[k] - plain[k]) <= 1e-5 * plain[k]))
                    fail_msg("%s, %s: loss of update %d is %.9g, without %.9g", cases[i].what,
                             how == REFUSED ? "refused" : "taken", k, other[k], plain[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_with_and_without)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
