/* Training on the emulated GPU against training on the CPU: the same model, the same batches, the same losses. All through
 * the public interface, the device being named as a host would. Streams run as late as they may, so that whoever does not
 * wait reads what is not there, and the host that touches the device's memory is stopped. */
#include "emulated.h"
#include "train_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { UPDATES = 50 };

static train_plan on_gpu(train_plan plan)
{
    plan.device = "cuda:0";
    plan.backend_path = EMULATED_FOLDER;
    return plan;
}

/* Losses of all updates, by their numbers: a device that is behind gives them later. */
static void losses_of(const train_plan *plan, double losses[UPDATES + 1])
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    train_run run = train_begin(plan);
    for (int i = 0; i <= UPDATES; i++) losses[i] = -1.0;
    for (int i = 0; i <= UPDATES; i++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        if (exphil_trainer_step(run.trainer, &metrics, &error) < 0) fail_msg("update %d: %s", i, error.message);
        if (metrics.update <= UPDATES) losses[metrics.update] = metrics.loss;
    }
    train_end(&run);
}

static void compare(train_plan plan, double tolerance)
{
    double cpu[UPDATES + 1], gpu[UPDATES + 1], worst = 0.0;
    const train_plan other = on_gpu(plan);
    plan.trainer.precision = EXPHIL_PRECISION_F32;
    losses_of(&plan, cpu);
    losses_of(&other, gpu);
    emulated_clean();
    for (int i = 1; i <= UPDATES; i++) {
        if (gpu[i] < 0.0) fail_msg("no loss of update %d was given", i);
        double off = fabs(gpu[i] - cpu[i]) / cpu[i];
        worst = off > worst ? off : worst;
    }
    print_message("%-28s loss %.6f -> %.6f, worst relative difference %.2e\n", plan.model.blocks, cpu[1], cpu[UPDATES],
                  worst);
    if (!(worst <= tolerance)) fail_msg("%s: losses differ by %g, at most %g is allowed", plan.model.blocks, worst, tolerance);
    assert_true(cpu[UPDATES] < cpu[1]);
}

static void late(void)
{
    emulated_gpu()->timing(EMU_LAZY, 1);
    emulated_gpu()->protect(1);
}

static void each_block_trains_alike(void **state)
{
    static const char *const blocks[] = {"mamba", "lstm", "gru", "attention", "mlp", "(lstm ffn)"};
    (void)state;
    late();
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        compare(train_plan_of(blocks[i], EXPHIL_MODE_CARRY), 1e-4);
}

static void windows_train_alike(void **state)
{
    (void)state;
    late();
    compare(train_plan_of("mamba attention", EXPHIL_MODE_WINDOW), 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_block_trains_alike),
        cmocka_unit_test(windows_train_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
