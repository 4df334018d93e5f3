/* The loss of learning from play, by the emulated GPU and by the host beside it: one update, to the last bit. What the host refuses
 * there the device refuses, and what it lacks ends nothing. */
#include "emulated.h"
#include "learn_case.h"

#include "device/device.h"

#include <math.h>
#include <stdlib.h>

enum { CHUNKS = 2, LANES = 4 };
#if defined(EXPHIL_SANITIZE) /* five times as slow, and about other mistakes */
enum { RUNS = 1, LOST_EVERY = 301 };
#else
enum { RUNS = 4, LOST_EVERY = 37 };
#endif

static void late(void)
{
    emulated_gpu()->timing(EMU_LAZY, 1);
    emulated_gpu()->protect(1);
}

/* Every term has a part in it. */
static learn_plan plan_of(const char *blocks)
{
    learn_plan plan = learn_plan_of(blocks);
    plan.taught = true;
    plan.lanes = LANES;
    plan.learner.batches = 2;
    plan.learner.to_old = 0.3;
    plan.learner.to_teacher = 0.2;
    plan.learner.from_teacher = 0.1;
    plan.learner.entropy = 0.05;
    plan.learner.imitation = 0.5;
    plan.learner.most_kl = 1e9;
    plan.learner.burn_in = 2;
    plan.model.delay_frames = 1;
    plan.device = "cuda:0";
    plan.backend_path = EMULATED_FOLDER;
    plan.play[1].temperature = 1.5f;
    return plan;
}

/* ---- a device without a kernel for it ---- */

static struct {
    const xph_backend *real;
    xph_backend table;
} lacking;

static exphil_status query(xph_device *device, xph_op op, void *args, xph_op_info *info)
{
    return op == XPH_OP_POLICY_LOSS ? EXPHIL_E_UNSUPPORTED : lacking.real->query(device, op, args, info);
}

static void lack(const learn_run *run, bool lacks)
{
    xph_device *device = xph_context_backend(run->context);
    if (!lacks) {
        device->backend = lacking.real;
        return;
    }
    lacking.real = device->backend;
    lacking.table = *device->backend;
    lacking.table.query = query;
    device->backend = &lacking.table;
}

/* ---- chunks ---- */

/* A chunk by hand, in which the host decides some rows. */
static void play(const learn_run *run, noise *n)
{
    static const int32_t shown[3] = {5, 1, 3};
    exphil_session *session = exphil_rollout_session(run->rollout);
    exphil_status status = EXPHIL_OK;
    for (int t = 0; status == EXPHIL_OK; t++) {
        float floats[13 * LANES], reward[LANES];
        int32_t ids[2 * LANES], actions[3 * LANES];
        uint8_t ends[LANES];
        for (int b = 0; b < LANES; b++) {
            noise_row(n, b, floats + 13 * b, ids + 2 * b);
            reward[b] = (float)((t * 7 + b * 3) % 5) - 2.0f;
            ends[b] = (t + b) % 9 == 8 ? EXPHIL_OVER : EXPHIL_GOES_ON;
        }
        assert_ok(exphil_rollout_step(run->rollout, floats, ids, actions));
        for (int b = 0; b < LANES; b++)
            if ((t + 2 * b) % 4 == 1) assert_ok(exphil_session_override(session, b, shown));
        status = exphil_rollout_reward(run->rollout, reward, ends, floats, ids);
    }
    assert_int_equal(status, EXPHIL_END);
}

typedef struct outcome {
    exphil_learner_metrics metrics[CHUNKS];
    uint64_t weights[CHUNKS];
} outcome;

static outcome learn(const learn_plan *plan, bool lacks, bool on_device)
{
    noise n = {.fail_at = 0};
    outcome found = {.weights = {0}};
    learn_run run = learn_begin(plan);
    for (int b = 0; b < LANES; b++) n.rng[b] = (xph_rng){.seed = 40 + (uint64_t)b, .stream = XPH_RNG_TEST};
    if (lacks) lack(&run, true);
    for (int k = 0; k < CHUNKS; k++) {
        found.metrics[k] = (exphil_learner_metrics)EXPHIL_LEARNER_METRICS_INIT;
        play(&run, &n);
        assert_ok(exphil_learner_update(run.learner, run.rollout, &found.metrics[k], NULL));
        found.weights[k] = learn_weights(&run);
        assert_true((run.learner->loss.kernel != NULL) == on_device);
        assert_true(found.metrics[k].imitated > 0 && found.metrics[k].rows > found.metrics[k].imitated);
    }
    if (lacks) lack(&run, false);
    learn_end(&run);
    return found;
}

static void near(const char *what, double found, double wanted, double part)
{
    if (!(fabs(found - wanted) <= part * fabs(wanted))) fail_msg("%s: %.17g, not %.17g", what, found, wanted);
}

/* part: how far sums may be apart. */
static void compare(const exphil_learner_metrics *a, const exphil_learner_metrics *b, double part)
{
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->imitated, b->imitated);
    assert_int_equal(a->updates, b->updates);
    near("loss", a->loss, b->loss, part);
    near("value_loss", a->value_loss, b->value_loss, part);
    near("ratio", a->ratio, b->ratio, part);
    near("clipped", a->clipped, b->clipped, part);
    near("kl_old", a->kl_old, b->kl_old, part);
    near("kl_to_teacher", a->kl_to_teacher, b->kl_to_teacher, part);
    near("kl_from_teacher", a->kl_from_teacher, b->kl_from_teacher, part);
    near("entropy", a->entropy, b->entropy, part);
    near("nll", a->nll, b->nll, part);
    near("gradient_norm", a->gradient_norm, b->gradient_norm, part);
}

static void an_update_is_the_host_s(void **state)
{
    static const char *const patterns[] = {"gru attention", "mamba"};
    late();
    for (size_t i = 0; i < RUNS; i++) {
        learn_plan plan = plan_of(patterns[i % 2]);
        plan.precision = i < 2 ? EXPHIL_PRECISION_F32 : i < 3 ? EXPHIL_PRECISION_TF32 : EXPHIL_PRECISION_BF16;
        plan.model.heads = (int32_t)(i % 2);
        plan.learner.value_only = i == 1;
        const outcome device = learn(&plan, false, true), host = learn(&plan, true, false);
        emulated_clean();
        for (int k = 0; k < CHUNKS; k++) {
            assert_true(device.weights[k] == host.weights[k]);
            assert_true(device.metrics[k].recomputed == host.metrics[k].recomputed);
            assert_true(device.metrics[k].recomputed < 1e-6 || plan.precision != EXPHIL_PRECISION_F32);
            compare(&device.metrics[k], &host.metrics[k], 1e-9);
        }
        assert_true(host.metrics[CHUNKS - 1].kl_to_teacher > 0.0 && host.metrics[CHUNKS - 1].nll > 0.0);
    }
}

/* The CPU's kernels are others, so that numbers come to be apart. */
static void the_cpu_learns_alike(void **state)
{
    late();
    learn_plan plan = plan_of("gru attention");
    const outcome gpu = learn(&plan, false, true);
    emulated_clean();
    plan.device = NULL;
    const outcome cpu = learn(&plan, false, false);
    near("loss", gpu.metrics[0].loss, cpu.metrics[0].loss, 1e-4);
    near("kl_old", gpu.metrics[0].kl_old, cpu.metrics[0].kl_old, 1e-2);
    near("value_loss", gpu.metrics[0].value_loss, cpu.metrics[0].value_loss, 1e-3);
    near("nll", gpu.metrics[0].nll, cpu.metrics[0].nll, 1e-4);
    near("gradient_norm", gpu.metrics[0].gradient_norm, cpu.metrics[0].gradient_norm, 1e-3);
    assert_int_equal(gpu.metrics[0].rows, cpu.metrics[0].rows);
    assert_int_equal(gpu.metrics[0].imitated, cpu.metrics[0].imitated);
}

static void every_order_gives_the_same_bits(void **state)
{
    const learn_plan plan = plan_of("gru");
    outcome first = {.weights = {0}};
    emulated_gpu()->protect(0);
    for (int i = 0; i < EMU_SCHEDULES; i++) {
        emulated_gpu()->timing((i + 1) % EMU_TIMINGS, (uint64_t)i);
        emulated_gpu()->schedule(i);
        const outcome found = learn(&plan, false, true);
        if (i == 0) first = found;
        for (int k = 0; k < CHUNKS; k++) {
            assert_true(found.weights[k] == first.weights[k]);
            compare(&found.metrics[k], &first.metrics[k], 0.0);
        }
    }
    emulated_gpu()->schedule(EMU_FORWARD);
    emulated_clean();
}

/* ---- what is refused ---- */

/* An update of the trainer's own, by the batch that the learner had last: it asks nothing of the values. */
static uint64_t imitate(const learn_run *run)
{
    const xph_part *part = &run->learner->part;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    batch.batch = run->learner->each;
    batch.time = run->learner->time;
    batch.floats = part->floats;
    batch.ids = part->ids;
    batch.past = part->past;
    batch.actions = part->actions;
    batch.mask = part->mask;
    batch.reset = part->reset;
    assert_ok(exphil_trainer_step_batch(run->trainer, &batch, NULL, NULL));
    return learn_weights(run);
}

/* The chunk is done with, and nothing of it stays: neither in the weights nor in the gradients of values. */
static void what_is_not_finite_is_refused(void **state)
{
    uint64_t after[2];
    late();
    for (int lacks = 0; lacks < 2; lacks++) {
        learn_plan plan = plan_of("gru");
        noise n = {.fail_at = 5, .bad = 3e38f};
        exphil_error error = EXPHIL_ERROR_INIT;
        plan.learner.reward_scale = 1e9;
        learn_run run = learn_begin(&plan);
        const exphil_world world = noise_world(&n, plan.lanes);
        const uint64_t before = learn_weights(&run);
        if (lacks) lack(&run, true);
        assert_ok(exphil_rollout_run(run.rollout, &world, NULL));
        assert_int_equal(exphil_learner_update(run.learner, run.rollout, NULL, &error), EXPHIL_E_NUMERIC);
        assert_non_null(strstr(error.message, "is not finite"));
        assert_true(learn_weights(&run) == before);
        const exphil_learner_metrics m = learn_chunk(&run, &world);
        assert_true(m.updates == 4 && isfinite(m.loss) && learn_weights(&run) != before);
        n.frames = 0;
        assert_ok(exphil_rollout_run(run.rollout, &world, NULL));
        assert_int_equal(exphil_learner_update(run.learner, run.rollout, NULL, NULL), EXPHIL_E_NUMERIC);
        after[lacks] = imitate(&run);
        if (lacks) lack(&run, false);
        learn_end(&run);
        emulated_clean();
    }
    assert_true(after[0] == after[1]);
}

static void updates_are_taken_back(void **state)
{
    late();
    learn_plan plan = plan_of("gru");
    noise n = {.fail_at = 0};
    plan.learner.most_kl = 1e-12;
    learn_run run = learn_begin(&plan);
    const exphil_world world = noise_world(&n, plan.lanes);
    const uint64_t before = learn_weights(&run);
    for (int i = 0; i < 2; i++) {
        const exphil_learner_metrics m = learn_chunk(&run, &world);
        assert_true(m.taken_back == 1 && m.kl_old > 1e-12 && learn_weights(&run) == before);
    }
    learn_end(&run);
    emulated_clean();
}

/* ---- what may fail ---- */

/* The n-th allocation of the first chunk is refused: the next try has the bits of a run in which none was. */
static void memory_may_end(void **state)
{
    late();
    learn_plan plan = plan_of("gru");
    uint64_t wanted = 0;
    for (int64_t fails = 0, done = 0; !done; fails++) {
        noise n = {.fail_at = 0};
        exphil_error error = EXPHIL_ERROR_INIT;
        learn_run run = learn_begin(&plan);
        const exphil_world world = noise_world(&n, plan.lanes);
        assert_ok(exphil_rollout_run(run.rollout, &world, NULL));
        emulated_gpu()->fail_allocation(fails);
        exphil_status status = exphil_learner_update(run.learner, run.rollout, NULL, &error);
        emulated_gpu()->fail_allocation(0);
        done = fails && status == EXPHIL_OK;
        if (status != EXPHIL_OK) {
            assert_int_equal(status, EXPHIL_E_MEMORY);
            assert_ok(exphil_learner_update(run.learner, run.rollout, NULL, NULL));
        }
        assert_non_null(run.learner->loss.kernel);
        if (!fails) wanted = learn_weights(&run);
        assert_true(learn_weights(&run) == wanted);
        learn_end(&run);
        emulated_clean();
        assert_true(fails < 400);
    }
}

/* A device that is lost at any operation says so, and everything ends. Its memory is nobody's then: the last of these tests. */
static void the_device_may_be_lost(void **state)
{
    late();
    learn_plan plan = plan_of("gru");
    plan.learner.epochs = 1;
    for (int64_t fails = 1, done = 0; !done; fails += LOST_EVERY) {
        noise n = {.fail_at = 0};
        learn_run run = learn_begin(&plan);
        const exphil_world world = noise_world(&n, plan.lanes);
        assert_ok(exphil_rollout_run(run.rollout, &world, NULL));
        emulated_gpu()->fail_operation(fails);
        const exphil_status status = exphil_learner_update(run.learner, run.rollout, NULL, NULL);
        emulated_gpu()->fail_operation(0);
        if (status != EXPHIL_OK) assert_int_equal(status, EXPHIL_E_DEVICE);
        done = status == EXPHIL_OK;
        learn_end(&run);
        emulated_gpu()->clear();
        assert_true(fails < 5000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_is_the_host_s),         cmocka_unit_test(the_cpu_learns_alike),
        cmocka_unit_test(every_order_gives_the_same_bits), cmocka_unit_test(what_is_not_finite_is_refused),
        cmocka_unit_test(updates_are_taken_back),          cmocka_unit_test(memory_may_end),
        cmocka_unit_test(the_device_may_be_lost),
    };
    setenv("EXPHIL_CUDA_JOIN", "none", 1); /* what is played first is emulated ten times as fast so */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
