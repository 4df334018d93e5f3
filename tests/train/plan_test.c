/* Plans of memory: what a training is planned to take is what it takes, and the largest batch that is named fits within a
 * limit that is enforced, while twice it does not. */
#include "plan_case.h"

#include "model_case.h"

#include <stdio.h>

static const plan_place cpu = {NULL, NULL, NULL, 0};

static void planned_is_taken(void **state)
{
    (void)state;
    for (int i = 0; i < PLAN_CASES; i += PLAN_NEXT) {
        exphil_error error = EXPHIL_ERROR_INIT;
        plan_taken taken;
        plan_case *c = plan_case_open(i, &cpu);
        exphil_plan plan = plan_case_plan(c, 0, 0), updates = plan_case_updates(c);
        if (plan_case_run(c, 0, &taken, &error) < 0) fail_msg("%s: %s", plan_case_name(i), error.message);
        assert_true(plan.host_steady_bytes == updates.host_steady_bytes);
        assert_planned(plan_case_name(i), "updates", updates.host_peak_bytes, taken.host);
        assert_planned(plan_case_name(i), "all", plan.host_peak_bytes, taken.host_peak);
        assert_int_equal(taken.device + plan.device_peak_bytes, 0);
        plan_case_close(c);
    }
}

/* Of the host's allocator. */
static void largest_fits_the_host(void **state)
{
    (void)state;
    for (int i = 0; i < PLAN_CASES; i += PLAN_NEXT) {
        test_memory memory;
        plan_place place = cpu;
        test_memory_init(&memory);
        place.memory = &memory;
        plan_case *c = plan_case_open(i, &place);
        exphil_plan own = plan_case_plan(c, 0, 0);
        uint64_t limit = plan_case_plan(c, 2 * own.batch, 0).host_peak_bytes + 3000;
        exphil_plan plan = plan_case_plan(c, 0, limit);
        print_message("%-32s %lld lanes in %llu bytes\n", plan_case_name(i), (long long)plan.largest_batch,
                      (unsigned long long)limit);
        assert_true(plan.largest_batch >= 2 * own.batch && plan.fits);
        assert_true(plan_case_plan(c, plan.largest_batch, limit).fits);
        assert_false(plan_case_plan(c, plan.largest_batch + 1, limit).fits);
        memory.limit_bytes = atomic_load(&memory.live_bytes) + (long long)limit;
        plan_case_fits(c, plan.largest_batch);
        memory.limit_bytes = 0;
        plan_case_close(c);
        assert_memory_clean(&memory);
    }
}

/* Of the context, which counts what models, trainers and batches take. */
static void largest_fits_the_context(void **state)
{
    (void)state;
    for (int i = 0; i < PLAN_CASES; i += PLAN_NEXT) {
        plan_place place = cpu;
        plan_case *c = plan_case_open(i, &cpu);
        exphil_plan own = plan_case_plan(c, 0, 0);
        assert_true(own.limited_room_bytes == UINT64_MAX && own.fits);
        place.limit_bytes = 2 * (size_t)own.limited_peak_bytes;
        plan_case_close(c);
        c = plan_case_open(i, &place);
        exphil_plan plan = plan_case_plan(c, 0, 0);
        assert_true(plan.limited_room_bytes < place.limit_bytes);
        print_message("%-32s %lld lanes in %llu bytes\n", plan_case_name(i), (long long)plan.largest_batch,
                      (unsigned long long)plan.limited_room_bytes);
        assert_true(plan.fits && plan.largest_batch >= own.batch);
        plan_case_fits(c, plan.largest_batch);
        plan_case_close(c);
    }
}

/* ---- what a plan says ---------------------------------------------------------------------------------------------- */

static void purposes_are_all(void **state)
{
    (void)state;
    for (int i = 0; i < PLAN_CASES; i += PLAN_NEXT) {
        plan_case *c = plan_case_open(i, &cpu);
        exphil_plan plan = plan_case_plan(c, 0, 0);
        uint64_t sum = 0, most = 0;
        for (int p = 0; p < EXPHIL_PLAN_SAVING; p++) sum += plan.host_bytes[p];
        for (int p = EXPHIL_PLAN_SAVING; p < EXPHIL_PLAN_UPDATES; p++)
            if (plan.host_bytes[p] > most) most = plan.host_bytes[p];
        assert_true(sum == plan.host_steady_bytes && sum + most == plan.host_peak_bytes);
        assert_true(plan.host_bytes[plan.host_peak_purpose] == most);
        assert_true(plan.host_bytes[EXPHIL_PLAN_MOMENTS] == 2 * plan.host_bytes[EXPHIL_PLAN_GRADIENTS]);
        assert_int_equal(plan.host_bytes[EXPHIL_PLAN_AVERAGE] != 0, c->adam.ema_decay > 0.0);
        assert_int_equal(plan.host_bytes[EXPHIL_PLAN_UPDATES], 0);
        /* What is not told apart is little: of nets this small at most a tenth. */
        assert_true(plan.host_bytes[EXPHIL_PLAN_OTHER] * 8 < plan.host_steady_bytes);
        plan_case_close(c);
    }
}

static uint64_t bytes_of(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long bytes = ftell(file);
    assert_int_equal(fclose(file), 0);
    return (uint64_t)bytes;
}

static void files_are_as_long(void **state)
{
    static const int cases[] = {0, 1, 11, 19};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        plan_taken taken;
        plan_case *c = plan_case_open(cases[i], &cpu);
        exphil_plan plan = plan_case_plan(c, 0, 0);
        assert_ok(plan_case_run(c, 0, &taken, &error));
        assert_planned(plan_case_name(cases[i]), "weights", plan.weights_file_bytes,
                       bytes_of(test_path("plan.safetensors")));
        assert_planned(plan_case_name(cases[i]), "checkpoint", plan.checkpoint_file_bytes,
                       bytes_of(test_path("plan.safetensors.optimizer")));
        plan_case_close(c);
    }
}

/* A model that is made counts its weights, one that is there does not; nothing is left behind. */
static void of_a_configuration(void **state)
{
    test_memory memory;
    plan_place place = cpu;
    exphil_plan_config config = EXPHIL_PLAN_CONFIG_INIT;
    exphil_plan made = EXPHIL_PLAN_INIT, there = EXPHIL_PLAN_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    (void)state;
    test_memory_init(&memory);
    place.memory = &memory;
    plan_case *c = plan_case_open(0, &place);
    long long live = atomic_load(&memory.live_bytes);
    config.model_config = &c->model_config;
    assert_ok(exphil_trainer_plan(c->context, &config, &made, &error));
    config.model_config = NULL;
    config.model = c->model;
    assert_ok(exphil_trainer_plan(NULL, &config, &there, &error));
    assert_int_equal(atomic_load(&memory.live_bytes), live);
    assert_true(made.host_bytes[EXPHIL_PLAN_WEIGHTS] == 2 * there.host_bytes[EXPHIL_PLAN_WEIGHTS]);
    assert_int_equal(made.batch, 16);
    assert_int_equal(made.time, 60);
    assert_int_equal(made.host_bytes[EXPHIL_PLAN_EVALUATION], 0);
    assert_int_equal(made.host_peak_purpose, EXPHIL_PLAN_SAVING);
    config.by_hand = config.no_checkpoint = 1;
    assert_ok(exphil_trainer_plan(c->context, &config, &there, &error));
    assert_int_equal(there.host_bytes[EXPHIL_PLAN_SAVING], 0);
    assert_int_equal(there.host_peak_purpose, EXPHIL_PLAN_UPDATES);
    assert_true(there.host_bytes[EXPHIL_PLAN_BATCHES] < made.host_bytes[EXPHIL_PLAN_BATCHES]);
    config.host_limit_bytes = 1;
    assert_ok(exphil_trainer_plan(c->context, &config, &there, &error));
    assert_int_equal(there.largest_batch + there.fits, 0);
    plan_case_close(c);
    assert_memory_clean(&memory);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------ */

static void refused(const plan_case *c, const exphil_plan_config *config, exphil_status status,
                    const char *words)
{
    exphil_plan plan = EXPHIL_PLAN_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    plan.largest_batch = -7;
    assert_int_equal(exphil_trainer_plan(c->context, config, &plan, &error), status);
    if (!strstr(error.message, words)) fail_msg("\"%s\" lacks \"%s\"", error.message, words);
    assert_int_equal(plan.largest_batch, -7);
}

static void bad_plans_are_refused(void **state)
{
    (void)state;
    plan_case *c = plan_case_open(0, &cpu), *other = plan_case_open(0, &cpu);
    exphil_plan_config good = EXPHIL_PLAN_CONFIG_INIT, bad;
    exphil_sampling sampling = c->sampling;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config trainer = EXPHIL_TRAINER_CONFIG_INIT;
    good.model = c->model;
    refused(c, NULL, EXPHIL_E_INVALID, "config is NULL");
    bad = good, bad.model = NULL;
    refused(c, &bad, EXPHIL_E_INVALID, "neither of model and model_config");
    bad = good, bad.model_config = &c->model_config;
    refused(c, &bad, EXPHIL_E_INVALID, "both of model and model_config");
    bad = good, bad.model = other->model;
    refused(c, &bad, EXPHIL_E_MISMATCH, "model is of another context");
    bad = good, bad.dataset = other->dataset;
    refused(c, &bad, EXPHIL_E_MISMATCH, "dataset is of another context");
    bad = good, bad.scored = other->dataset;
    refused(c, &bad, EXPHIL_E_MISMATCH, "scored is of another context");
    bad = good, bad.alone_most_frames = -1;
    refused(c, &bad, EXPHIL_E_INVALID, "alone_most_frames is -1");
    bad = good, bad.most_batch = 4097;
    refused(c, &bad, EXPHIL_E_INVALID, "most_batch is 4097");
    bad = good, bad.by_hand = 2;
    refused(c, &bad, EXPHIL_E_INVALID, "by_hand is 2");
    bad = good, bad.struct_size = 8;
    refused(c, &bad, EXPHIL_E_INVALID, "struct_size");
    sampling.batch = 4097, bad = good, bad.sampling = &sampling;
    refused(c, &bad, EXPHIL_E_INVALID, "sampling.batch is 4097");
    sampling = c->sampling, sampling.action_slots++;
    refused(c, &bad, EXPHIL_E_MISMATCH, "action_slots");
    adam.beta1 = 2.0, bad = good, bad.optimizer = &adam;
    refused(c, &bad, EXPHIL_E_INVALID, "beta1");
    trainer.accumulate = -1, bad = good, bad.trainer = &trainer;
    refused(c, &bad, EXPHIL_E_INVALID, "accumulate");
    plan_case_close(other);
    plan_case_close(c);
}

/* Any allocation may fail: then the call says so and leaves nothing. */
static void out_of_memory_is_told(void **state)
{
    test_memory memory;
    plan_place place = cpu;
    exphil_plan_config config = EXPHIL_PLAN_CONFIG_INIT;
    (void)state;
    test_memory_init(&memory);
    place.memory = &memory;
    plan_case *c = plan_case_open(10, &place);
    config.model = c->model;
    config.trainer = &c->trainer;
    config.dataset = config.scored = c->dataset;
    config.alone_most_frames = 50;
    config.most_batch = 1;
    long long live = atomic_load(&memory.live_bytes), fails = 0;
    for (exphil_status status = EXPHIL_E_MEMORY; status < 0; fails++) {
        exphil_plan plan = EXPHIL_PLAN_INIT;
        exphil_error error = EXPHIL_ERROR_INIT;
        memory.fail_at = atomic_load(&memory.calls) + 1 + fails;
        status = exphil_trainer_plan(c->context, &config, &plan, &error);
        assert_true(status == EXPHIL_OK || status == EXPHIL_E_MEMORY);
        assert_int_equal(atomic_load(&memory.live_bytes), live);
    }
    memory.fail_at = 0;
    assert_true(fails > 30);
    plan_case_close(c);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planned_is_taken),         cmocka_unit_test(largest_fits_the_host),
        cmocka_unit_test(largest_fits_the_context), cmocka_unit_test(purposes_are_all),
        cmocka_unit_test(files_are_as_long),        cmocka_unit_test(of_a_configuration),
        cmocka_unit_test(bad_plans_are_refused),    cmocka_unit_test(out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
