/* Whole training runs on a card, through the plugin and the public interface: near the CPU's losses, the same bits in every
 * run, and after the third update no more memory. The plugin is that of $EXPHIL_BACKEND_DIR. */
#include "train_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UPDATES = 20, RUNS = 20, LONG = 1000, ASIDE = 77 };

static const char *const all_blocks[] = {"mamba",     "lstm", "gru",
                                         "attention", "mlp",  "mamba attention (lstm ffn)"};
static const struct {
    const char *name;
    int32_t precision;
    double tolerance; /* of losses against the CPU's */
} precisions[] = {
    {"f32", EXPHIL_PRECISION_F32, 1e-4},
    {"tf32", EXPHIL_PRECISION_TF32, 3e-2},
    {"bf16", EXPHIL_PRECISION_BF16, 3e-2},
};

/* RUNS, or fewer where they take long. */
static int runs_asked(void)
{
    const char *asked = getenv("EXPHIL_CARD_RUNS");
    const int runs = asked ? atoi(asked) : RUNS;
    return runs > 1 ? runs : 2;
}

static train_plan plan_of(const char *blocks, const char *device, int32_t precision)
{
    train_plan plan = train_plan_of(blocks, EXPHIL_MODE_CARRY);
    plan.device = device;
    plan.trainer.precision = precision;
    return plan;
}

/* Losses by the number of their update: a device that is behind gives them later. */
static void losses_of(const train_plan *plan, double losses[UPDATES + 1])
{
    train_run run = train_begin(plan);
    for (int i = 0; i <= UPDATES; i++) losses[i] = -1;
    for (int i = 0; i <= UPDATES; i++) {
        const exphil_metrics metrics = train_steps(&run, 1);
        if (metrics.update <= UPDATES) losses[metrics.update] = metrics.loss;
    }
    train_end(&run);
}

static void losses_are_those_of_the_cpu(void **state)
{
    (void)state;
    for (size_t b = 0; b < sizeof all_blocks / sizeof *all_blocks; b++) {
        double cpu[UPDATES + 1], card[UPDATES + 1];
        train_plan plan = plan_of(all_blocks[b], "cpu", EXPHIL_PRECISION_F32);
        losses_of(&plan, cpu);
        for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++) {
            double worst = 0;
            plan = plan_of(all_blocks[b], "cuda:0", precisions[p].precision);
            losses_of(&plan, card);
            for (int i = 1; i <= UPDATES; i++) worst = fmax(worst, fabs(card[i] - cpu[i]) / cpu[i]);
            printf("%-28s %-4s loss %.6f -> %.6f, worst difference %.1e\n", all_blocks[b], precisions[p].name,
                   card[1], card[UPDATES], worst);
            if (!(worst <= precisions[p].tolerance)) fail_msg("%s: %g", all_blocks[b], worst);
        }
    }
}

static unsigned char *run_once(const train_plan *plan, size_t *bytes)
{
    train_run run = train_begin(plan);
    train_steps(&run, UPDATES);
    unsigned char *all = train_snapshot(run.trainer, bytes);
    train_end(&run);
    return all;
}

static void every_run_gives_the_same_bits(void **state)
{
    (void)state;
    const int runs = runs_asked();
    for (size_t b = 0; b < sizeof all_blocks / sizeof *all_blocks; b++) {
        for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++) {
            const train_plan plan = plan_of(all_blocks[b], "cuda:0", precisions[p].precision);
            size_t bytes, other;
            unsigned char *first = run_once(&plan, &bytes);
            for (int i = 1; i < runs; i++) {
                unsigned char *next = run_once(&plan, &other);
                assert_int_equal(other, bytes);
                if (memcmp(first, next, bytes) != 0)
                    fail_msg("%s in %s: run %d differs", all_blocks[b], precisions[p].name, i + 1);
                free(next);
            }
            free(first);
        }
    }
    printf("%d runs of %d updates, the same bits\n", runs, UPDATES);
}

static exphil_memory_info memory_of(const train_run *run)
{
    exphil_memory_info info = EXPHIL_MEMORY_INFO_INIT;
    assert_int_equal(exphil_context_memory(run->context, &info, NULL), EXPHIL_OK);
    return info;
}

/* What is asked of the driver after the third update: nothing. Of all requests 98 in 100 are met by what is there. */
static void memory_is_used_again(void **state)
{
    (void)state;
    const int64_t updates = runs_asked() < RUNS ? 50 : LONG;
    const train_plan plan = plan_of("mamba", "cuda:0", EXPHIL_PRECISION_BF16);
    train_run run = train_begin(&plan);
    train_steps(&run, 3);
    const exphil_memory_info early = memory_of(&run);
    train_steps(&run, updates - 3);
    const exphil_memory_info late = memory_of(&run);
    train_end(&run);
    const uint64_t since = late.device_requests - early.device_requests,
                   again = late.device_reused - early.device_reused;
    printf("after the third of %lld updates: %llu requests, %llu of them met from what was there; peak %llu "
           "bytes\n",
           (long long)updates, (unsigned long long)since, (unsigned long long)again,
           (unsigned long long)late.device_peak_bytes);
    assert_int_equal(since, again);
    assert_int_equal(late.device_peak_bytes, early.device_peak_bytes);
}

static void look_for_a_card(void)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = NULL;
    config.device = "cuda:0";
    config.threads = 1;
    if (exphil_context_create(&config, &context, &error) < 0) {
        printf("SKIPPED: %s\n", error.message);
        exit(ASIDE);
    }
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(losses_are_those_of_the_cpu),
                                       cmocka_unit_test(every_run_gives_the_same_bits),
                                       cmocka_unit_test(memory_is_used_again)};
    look_for_a_card();
    return cmocka_run_group_tests_name("card_run", tests, NULL, NULL);
}
