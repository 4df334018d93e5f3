/* A host that has unmasked every floating-point exception, as some games and debuggers do, dies of the first signalling NaN
 * or denormal that anybody touches: whatever files and callers hold, the library must raise nothing, and leave no flags. */
#include "play_case.h"
#include "train_case.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(__SSE__)
#  include <xmmintrin.h>

/* The call with everything unmasked; then the mode and the flags are as they were. */
#  define UNMASKED(call)                                                                                     \
    do {                                                                                                     \
      _mm_setcsr(0);                                                                                         \
      exphil_status unmasked = (call);                                                                       \
      unsigned after = _mm_getcsr();                                                                         \
      _mm_setcsr(0x1F80);                                                                                    \
      if (unmasked < 0) fail_msg("%s: %s", #call, exphil_status_name(unmasked));                             \
      assert_int_equal(after, 0);                                                                            \
    } while (0)

#  define REFUSED(want, call)                                                                                \
    do {                                                                                                     \
      _mm_setcsr(0);                                                                                         \
      exphil_status refused = (call);                                                                        \
      unsigned after = _mm_getcsr();                                                                         \
      _mm_setcsr(0x1F80);                                                                                    \
      assert_int_equal(refused, want);                                                                       \
      assert_int_equal(after, 0);                                                                            \
    } while (0)

static exphil_tensor_info matrix_of(const exphil_model *model)
{
    exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
    for (int64_t i = 0; exphil_model_tensor_info(model, i, &info, NULL) == EXPHIL_OK; i++)
        if (info.rank == 2 && info.type == EXPHIL_TYPE_F32) return info;
    fail_msg("no matrix");
    return info;
}

/* Denormals everywhere, then a signalling NaN in one place. */
static void odd_numbers(exphil_model *model)
{
    exphil_tensor_info info = matrix_of(model);
    uint32_t *bits = malloc(info.size_bytes);
    assert_non_null(bits);
    for (size_t i = 0; i < info.size_bytes / 4; i++) bits[i] = 1 + (uint32_t)i % 1000;
    UNMASKED(exphil_model_tensor_set(model, info.name, bits, info.size_bytes, NULL));
    bits[3] = 0x7f800001u;
    REFUSED(EXPHIL_E_NUMERIC, exphil_model_tensor_set(model, info.name, bits, info.size_bytes, NULL));
    free(bits);
}

static void models(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config config = model_case_config("mamba", EXPHIL_TYPE_F32);
    exphil_model *model = play_model(context, &config, 0.1), *again = NULL, *small = NULL;
    odd_numbers(model);
    UNMASKED(exphil_model_save(model, test_path("plain"), NULL));
    UNMASKED(exphil_model_load(context, test_path("plain"), &again, NULL));
    for (int i = 0; i < 2; i++) {
        UNMASKED(exphil_model_quantize(again, i ? EXPHIL_TYPE_I8 : EXPHIL_TYPE_BF16, &small, NULL));
        exphil_comparison c = EXPHIL_COMPARISON_INIT, back = EXPHIL_COMPARISON_INIT;
        c.frames = 3;
        c.agreement = 1.0 / 3;
        c.kl = 1e-300;
        c.heads = 3;
        for (int h = 0; h < 3; h++) c.head[h] = (exphil_head_comparison){0.1 * h, 1e-7 * h, 0.0, 1.0};
        UNMASKED(exphil_model_calibration_set(small, &c, NULL));
        UNMASKED(exphil_model_save(small, test_path("small"), NULL));
        exphil_model_destroy(small);
        UNMASKED(exphil_model_load(context, test_path("small"), &small, NULL));
        UNMASKED(exphil_model_calibration_get(small, &back, NULL));
        assert_true(back.agreement == c.agreement);
        exphil_model_destroy(small);
    }
    exphil_model_destroy(again);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    test_folder_remove();
}

static void runs_and_rows(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    exphil_dataset *opened = NULL;
    (void)train_steps(&run, 2);
    UNMASKED(exphil_trainer_save(run.trainer, test_path("run"), NULL));
    UNMASKED(exphil_trainer_resume(run.trainer, test_path("run"), NULL));
    UNMASKED(exphil_dataset_save(run.dataset, test_path("rows"), NULL));
    UNMASKED(exphil_dataset_open(run.context, test_path("rows"), &opened, NULL));
    UNMASKED(exphil_dataset_verify(opened, NULL));
    exphil_dataset_destroy(opened);
    train_end(&run);
    test_folder_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(models), cmocka_unit_test(runs_and_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    puts("SKIPPED: no SSE");
    return 77;
}
#endif
