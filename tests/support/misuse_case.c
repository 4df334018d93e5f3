/* The world, the outputs and the refusals of the tests of wrong use. */
#include "misuse_case.h"

#include <exphil/slp.h>

misuse_world w;
static _Alignas(64) unsigned char out[OUTS][OUT_BYTES];
_Alignas(64) unsigned char misuse_kept[OUTS][OUT_BYTES];

int misuse_begin(void **state)
{
    test_io_init(&w.io);
    w.plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    w.plan.io = &w.io;
    w.run = train_begin(&w.plan);
    (void)train_steps(&w.run, 1);
    w.plan.by_hand = true;
    w.hand = train_begin(&w.plan);
    w.plan.by_hand = false;
    w.elsewhere = test_context(NULL, NULL, 1);
    exphil_model_config config = model_case_config("mlp", EXPHIL_TYPE_F32);
    config.spec = NULL;
    w.melee = model_case_create(w.run.context, &config);
    assert_ok(exphil_model_quantize(w.run.model, EXPHIL_TYPE_I8, &w.quantized, NULL));
    w.comparison = (exphil_comparison)EXPHIL_COMPARISON_INIT;
    w.comparison.frames = 1;
    w.comparison.heads = 3;
    assert_ok(exphil_model_calibration_set(w.quantized, &w.comparison, NULL));
    w.session = play_session(w.run.model, NULL);
    w.live = play_session(w.melee, NULL);
    exphil_dataset_config data = EXPHIL_DATASET_CONFIG_INIT;
    assert_ok(exphil_dataset_create(w.run.context, &data, &w.replays, NULL));
    data.spec = &model_case_spec;
    assert_ok(exphil_dataset_create(w.run.context, &data, &w.empty, NULL));
    assert_ok(exphil_slp_stream_create(w.run.context, &w.stream, NULL));
    w.batch = train_batch(w.run.model, 2, 4, 0);
    w.frame = melee_frame();
    for (int t = 0; t < 8; t++) train_row(0, t, w.floats + 13 * t, w.ids + 2 * t, w.actions + 3 * t);
    return 0;
}

int misuse_end(void **state)
{
    train_batch_free(&w.batch);
    exphil_slp_stream_destroy(w.stream);
    exphil_dataset_destroy(w.empty);
    exphil_dataset_destroy(w.replays);
    exphil_session_destroy(w.session);
    exphil_session_destroy(w.live);
    exphil_model_destroy(w.quantized);
    exphil_model_destroy(w.melee);
    exphil_context_destroy(w.elsewhere);
    train_end(&w.hand);
    train_end(&w.run);
    test_folder_remove();
    return 0;
}

void *misuse_place(int which, size_t struct_size)
{
    memset(out[which], 0x6B, OUT_BYTES);
    if (struct_size) memcpy(out[which], &struct_size, sizeof struct_size);
    memcpy(misuse_kept[which], out[which], OUT_BYTES);
    return out[which];
}

void misuse_check(const char *call, exphil_status status, exphil_status want, const exphil_error *error,
                  const char *says)
{
    if (status != want)
        fail_msg("%s\n  gives %s, not %s (%s)", call, exphil_status_name(status), exphil_status_name(want),
                 error->message);
    if (error->status != want) fail_msg("%s\n  the error says %s", call, exphil_status_name(error->status));
    if (!strstr(error->message, says)) fail_msg("%s\n  \"%s\" not in \"%s\"", call, says, error->message);
    if (memcmp(out, misuse_kept, sizeof out) != 0) fail_msg("%s\n  wrote to its outputs", call);
}

exphil_status misuse_take_spec(const void *given, exphil_error *e)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset *made = NULL;
    config.spec = given;
    exphil_status status = exphil_dataset_create(w.run.context, &config, &made, e);
    exphil_dataset_destroy(made);
    return status;
}
