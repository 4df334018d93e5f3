/* The reference in double computes with the processor's fma where it has one, with libm's where it has none: the same bits,
 * of every operation and on odd shapes, in training and evaluation. */
#include "train_case.h"

#include <stdlib.h>

typedef struct outcome {
    unsigned char *trained;
    size_t bytes;
    exphil_report report;
} outcome;

static outcome run_with(train_plan plan, const char *isa)
{
    outcome o = {.report = EXPHIL_REPORT_INIT};
    plan.isa = isa;
    train_run run = train_begin(&plan);
    (void)train_steps(&run, 6);
    o.trained = train_snapshot(run.trainer, &o.bytes);
    assert_ok(exphil_trainer_evaluate(run.trainer, EXPHIL_WEIGHTS, run.dataset, NULL, &o.report, NULL));
    train_end(&run);
    return o;
}

static void every_level_gives_the_same_bits(void **state)
{
    for (int32_t mode = EXPHIL_MODE_CARRY; mode <= EXPHIL_MODE_WINDOW; mode++) {
        train_plan plan = train_plan_of(ALL_BLOCKS, mode);
        plan.model.type = EXPHIL_TYPE_F64;
        plan.model.heads = mode;
        plan.model.delay_frames = 3;
        plan.sampling.batch = 3;
        plan.episodes = 2;
        outcome plain = run_with(plan, "ref");
        for (xph_isa isa = XPH_ISA_REF + 1; isa < XPH_ISA_COUNT; isa++) {
            if (!xph_cpu_has(isa)) continue;
            outcome o = run_with(plan, xph_isa_name(isa));
            assert_int_equal(o.bytes, plain.bytes);
            if (memcmp(o.trained, plain.trained, o.bytes) != 0) fail_msg("%s: other bits", xph_isa_name(isa));
            assert_memory_equal(&o.report, &plain.report, sizeof o.report);
            free(o.trained);
        }
        free(plain.trained);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_level_gives_the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
