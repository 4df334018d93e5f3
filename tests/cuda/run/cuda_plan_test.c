/* Plans of memory on the emulated GPU: device memory and pinned memory are what was planned, and the largest batch that is
 * named fits within the context's limit, while twice it does not. */
#include "emulated.h"
#include "plan_case.h"

static const plan_place gpu = {"cuda:0", EMULATED_FOLDER, NULL, 0};

static void planned_is_taken(void **state)
{
    (void)state;
    for (int i = 0; i < PLAN_CASES; i += PLAN_NEXT) {
        exphil_error error = EXPHIL_ERROR_INIT;
        plan_taken taken;
        plan_case *c = plan_case_open(i, &gpu);
        exphil_plan plan = plan_case_plan(c, 0, 0), updates = plan_case_updates(c);
        if (plan_case_run(c, 0, &taken, &error) < 0) fail_msg("%s: %s", plan_case_name(i), error.message);
        assert_true(plan.device_steady_bytes == updates.device_peak_bytes);
        assert_planned(plan_case_name(i), "device", updates.device_peak_bytes, taken.device);
        assert_planned(plan_case_name(i), "device, all", plan.device_peak_bytes, taken.device_peak);
        /* How many decoded games are held depends on how far lanes have come: tests/train/plan_test.c goes far enough. */
        bool games = plan.host_bytes[EXPHIL_PLAN_GAMES] != 0;
        if (!games) assert_planned(plan_case_name(i), "host", updates.host_peak_bytes, taken.host);
        if (!games) assert_planned(plan_case_name(i), "host, all", plan.host_peak_bytes, taken.host_peak);
        plan_case_close(c);
    }
    emulated_clean();
}

static void largest_fits_the_device(void **state)
{
    (void)state;
    for (int i = 0; i < PLAN_CASES; i += PLAN_NEXT) {
        plan_place place = gpu;
        plan_case *c = plan_case_open(i, &gpu);
        exphil_plan own = plan_case_plan(c, 0, 0);
        place.limit_bytes = 2 * (size_t)own.device_peak_bytes;
        plan_case_close(c);
        c = plan_case_open(i, &place);
        exphil_plan plan = plan_case_plan(c, 0, 0);
        assert_true(plan.device_room_bytes < place.limit_bytes && plan.fits);
        assert_true(plan.largest_batch >= own.batch);
        plan_case_fits(c, plan.largest_batch);
        plan_case_close(c);
    }
    emulated_clean();
}

/* A card that is smaller than the limit, and one whose limit is given to the plan alone. */
static void the_least_limit_counts(void **state)
{
    exphil_plan_config config = EXPHIL_PLAN_CONFIG_INIT;
    exphil_plan plan = EXPHIL_PLAN_INIT;
    (void)state;
    plan_place place = gpu;
    place.limit_bytes = 64 << 20;
    emulated_gpu()->memory(32 << 20);
    plan_case *c = plan_case_open(0, &place);
    config.model = c->model;
    assert_int_equal(exphil_trainer_plan(c->context, &config, &plan, NULL), EXPHIL_OK);
    assert_true(plan.device_room_bytes < 32 << 20 && plan.device_room_bytes > 30 << 20);
    int64_t card = plan.largest_batch;
    config.device_limit_bytes = 24 << 20;
    assert_int_equal(exphil_trainer_plan(c->context, &config, &plan, NULL), EXPHIL_OK);
    assert_true(plan.device_room_bytes == 24 << 20);
    assert_true(plan.largest_batch < card && plan.largest_batch > 0);
    plan_case_close(c);
    emulated_gpu()->memory(0);
    emulated_clean();
}

static void unseen(const emu_event *event) {}

/* Memory alone is looked at: kernels do nothing. */
static int setup(void **state)
{
    emulated_gpu()->dry(unseen);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planned_is_taken),
        cmocka_unit_test(largest_fits_the_device),
        cmocka_unit_test(the_least_limit_counts),
    };
    return cmocka_run_group_tests(tests, setup, test_leave);
}
