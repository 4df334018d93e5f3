/* NULL given to every public function: its status, a message that names the culprit, outputs as they were. A row is a
 * call; it fails here unless it is refused in exactly that way. */
#include "misuse_case.h"

#include <exphil/ranks.h>
#include <exphil/slp.h>

static void null_contexts_and_models(void **state)
{
    exphil_context *c = w.run.context;
    exphil_model *m = w.run.model;
    BAD(INVALID, "context", exphil_context_create(NULL, NULL, &e));
    BAD(INVALID, "context", exphil_context_device(NULL, FILL(exphil_device_info), &e));
    BAD(INVALID, "NULL", exphil_context_device(c, NULL, &e));
    BAD(INVALID, "context", exphil_context_memory(NULL, FILL(exphil_memory_info), &e));
    BAD(INVALID, "NULL", exphil_context_memory(c, NULL, &e));
    BAD(INVALID, "NULL", exphil_device_get(0, NULL, &e));
    BAD(INVALID, "NULL", exphil_melee_spec(NULL, NULL, NULL, &e));
    BAD(INVALID, "NULL", exphil_melee_field_get("melee2", 0, NULL, &e));
    BAD(INVALID, "context", exphil_model_create(NULL, NULL, OUT(exphil_model *), &e));
    BAD(INVALID, "model", exphil_model_create(c, NULL, NULL, &e));
    BAD(INVALID, "context", exphil_model_load(NULL, "x", OUT(exphil_model *), &e));
    BAD(INVALID, "path", exphil_model_load(c, NULL, OUT(exphil_model *), &e));
    BAD(INVALID, "model", exphil_model_load(c, "x", NULL, &e));
    BAD(INVALID, "context", exphil_model_load_memory(NULL, "x", 1, OUT(exphil_model *), &e));
    BAD(INVALID, "data", exphil_model_load_memory(c, NULL, 1, OUT(exphil_model *), &e));
    BAD(INVALID, "model", exphil_model_load_memory(c, "x", 1, NULL, &e));
    BAD(INVALID, "model", exphil_model_save(NULL, "x", &e));
    BAD(INVALID, "path", exphil_model_save(m, NULL, &e));
    BAD(INVALID, "model", exphil_model_query(NULL, FILL(exphil_model_info), &e));
    BAD(INVALID, "NULL", exphil_model_query(m, NULL, &e));
    BAD(INVALID, "model", exphil_model_spec(NULL, FILL(exphil_spec), &e));
    BAD(INVALID, "NULL", exphil_model_spec(m, NULL, &e));
    BAD(INVALID, "model", exphil_model_tensor_info(NULL, 0, FILL(exphil_tensor_info), &e));
    BAD(INVALID, "NULL", exphil_model_tensor_info(m, 0, NULL, &e));
    BAD(INVALID, "model", exphil_model_tensor_get(NULL, "norm.bias", OUT(float), 96, &e));
    BAD(INVALID, "name", exphil_model_tensor_get(m, NULL, OUT(float), 96, &e));
    BAD(INVALID, "data", exphil_model_tensor_get(m, "norm.bias", NULL, 96, &e));
    BAD(INVALID, "model", exphil_model_tensor_set(NULL, "norm.bias", w.floats, 96, &e));
    BAD(INVALID, "name", exphil_model_tensor_set(w.hand.model, NULL, w.floats, 96, &e));
    BAD(INVALID, "model",
        exphil_model_tensor_to_dlpack(NULL, "norm.bias", OUT(struct DLManagedTensor *), &e));
    BAD(INVALID, "name", exphil_model_tensor_to_dlpack(m, NULL, OUT(struct DLManagedTensor *), &e));
    BAD(INVALID, "tensor", exphil_model_tensor_to_dlpack(m, "norm.bias", NULL, &e));
    BAD(INVALID, "tensor", exphil_model_tensor_to_dlpack_versioned(m, "norm.bias", NULL, &e));
    BAD(INVALID, "model",
        exphil_model_tensor_to_dlpack_versioned(NULL, "norm.bias", OUT(struct DLManagedTensorVersioned *),
                                                &e));
    BAD(INVALID, "model", exphil_model_tensor_from_dlpack(NULL, "norm.bias", NULL, &e));
    BAD(INVALID, "model", exphil_model_export_onnx(NULL, "x", &e));
    BAD(INVALID, "path", exphil_model_export_onnx(m, NULL, &e));
    BAD(INVALID, "model", exphil_model_calibration_set(NULL, &w.comparison, &e));
    BAD(INVALID, "comparison", exphil_model_calibration_set(w.quantized, NULL, &e));
    BAD(INVALID, "model", exphil_model_calibration_get(NULL, FILL(exphil_comparison), &e));
    BAD(INVALID, "comparison", exphil_model_calibration_get(w.quantized, NULL, &e));
    BAD(INVALID, "model", exphil_model_sampling(NULL, FILL(exphil_sampling), &e));
    BAD(INVALID, "sampling", exphil_model_sampling(m, NULL, &e));
    assert_int_equal(exphil_spec_hash(NULL), 0);
    assert_int_equal(exphil_melee_field_count("pong"), 0);
    assert_string_equal(exphil_status_name(12345), "EXPHIL_UNKNOWN");
}

static void null_data(void **state)
{
    exphil_context *c = w.run.context;
    exphil_dataset *d = w.run.dataset;
    exphil_prefetcher *p = w.run.prefetcher;
    exphil_split_config split = {sizeof split, 0.5, 1, EXPHIL_SPLIT_GAME, 0};
    BAD(INVALID, "context", exphil_dataset_create(NULL, NULL, OUT(exphil_dataset *), &e));
    BAD(INVALID, "dataset", exphil_dataset_create(c, NULL, NULL, &e));
    BAD(INVALID, "context", exphil_dataset_open(NULL, "x", OUT(exphil_dataset *), &e));
    BAD(INVALID, "path", exphil_dataset_open(c, NULL, OUT(exphil_dataset *), &e));
    BAD(INVALID, "dataset", exphil_dataset_open(c, "x", NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_save(NULL, "x", &e));
    BAD(INVALID, "path", exphil_dataset_save(d, NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_add_replay(NULL, "x", NULL, NULL, &e));
    BAD(INVALID, "path", exphil_dataset_add_replay(w.replays, NULL, NULL, NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_add_replay_memory(NULL, "x", 1, NULL, NULL, &e));
    BAD(INVALID, "data", exphil_dataset_add_replay_memory(w.replays, NULL, 1, NULL, NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_add_rows(NULL, 1, 8, w.floats, w.ids, w.actions, &e));
    BAD(INVALID, "floats", exphil_dataset_add_rows(w.empty, 1, 8, NULL, w.ids, w.actions, &e));
    BAD(INVALID, "ids", exphil_dataset_add_rows(w.empty, 1, 8, w.floats, NULL, w.actions, &e));
    BAD(INVALID, "actions", exphil_dataset_add_rows(w.empty, 1, 8, w.floats, w.ids, NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_query(NULL, FILL(exphil_dataset_info), &e));
    BAD(INVALID, "NULL", exphil_dataset_query(d, NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_spec(NULL, FILL(exphil_spec), &e));
    BAD(INVALID, "dataset", exphil_dataset_episode(NULL, 0, FILL(exphil_episode_info), &e));
    BAD(INVALID, "NULL", exphil_dataset_episode(d, 0, NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_frame(NULL, 0, OUT(float), NULL, NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_rows(NULL, 0, 1, OUT(float), NULL, NULL, NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_weight(NULL, 1, 0, 0, 1, 1.0, &e));
    BAD(INVALID, "dataset",
        exphil_dataset_split(NULL, &split, OUT(exphil_dataset *), OUT2(exphil_dataset *), &e));
    BAD(INVALID, "NULL", exphil_dataset_split(d, &split, NULL, OUT2(exphil_dataset *), &e));
    BAD(INVALID, "NULL", exphil_dataset_split(d, &split, OUT(exphil_dataset *), NULL, &e));
    BAD(INVALID, "config is NULL",
        exphil_dataset_split(d, NULL, OUT(exphil_dataset *), OUT2(exphil_dataset *), &e));
    BAD(INVALID, "first_lane", exphil_rank_lanes(4, 0, 2, NULL, OUT(int64_t), &e));
    BAD(INVALID, "lane_count", exphil_rank_lanes(4, 0, 2, OUT(int64_t), NULL, &e));
    BAD(INVALID, "dataset", exphil_prefetcher_create(NULL, NULL, OUT(exphil_prefetcher *), &e));
    BAD(INVALID, "prefetcher", exphil_prefetcher_create(d, NULL, NULL, &e));
    BAD(INVALID, "prefetcher", exphil_prefetcher_next(NULL, FILL(exphil_batch), &e));
    BAD(INVALID, "batch", exphil_prefetcher_next(p, NULL, &e));
    BAD(INVALID, "prefetcher", exphil_prefetcher_seek(NULL, 0, 0, &e));
    BAD(INVALID, "prefetcher", exphil_prefetcher_query(NULL, FILL(exphil_prefetcher_info), &e));
    BAD(INVALID, "NULL", exphil_prefetcher_query(p, NULL, &e));
}

static int32_t no_reduce(void *user, void *data, int64_t count, int32_t type)
{
    return 0;
}

/* Configurations of trainers whose parts are missing or that the CPU does not have. */
static void trainers_of_half_a_configuration(exphil_model *m)
{
    exphil_optimizer *own = NULL;
    exphil_communicator alone = {sizeof alone, NULL, NULL, 0, 1};
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    config.communicator = &alone;
    assert_ok(exphil_optimizer_create(m, NULL, &own, NULL));
    BAD(INVALID, "all_reduce", exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    alone.all_reduce = no_reduce;
    alone.rank = 1;
    BAD(INVALID, "rank 1 of 1", exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    config.communicator = NULL;
    config.precision = 9;
    BAD(INVALID, "precision", exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    config.precision = EXPHIL_PRECISION_TF32; /* the CPU has none but floats */
    BAD(UNSUPPORTED, "precision", exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    config.precision = 0;
    config.loss_scale = 0.5;
    BAD(INVALID, "loss_scale", exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    config.loss_scale = 0.0;
    config.activations = 77;
    BAD(UNSUPPORTED, "activations", exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    config.activations = 0;
    config.checkpoint_blocks = -1;
    BAD(INVALID, "checkpoint_blocks",
        exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    config.checkpoint_blocks = 0;
    for (int32_t type = 1; type <= 9; type += type == 1 ? 3 : 5) { /* F64, F16, none */
        config.fake_quantize = type;
        BAD(UNSUPPORTED, "fake_quantize",
            exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    }
    BAD(UNSUPPORTED, "fake_quantize",
        exphil_trainer_create(w.quantized, own, NULL, NULL, OUT(exphil_trainer *), &e));
    BAD(UNSUPPORTED, "fake_quantize",
        exphil_optimizer_create(w.quantized, NULL, OUT(exphil_optimizer *), &e));
    exphil_optimizer_destroy(own);
}

static void null_evaluations(exphil_model *m, exphil_trainer *t)
{
    BAD(INVALID, "model", exphil_evaluate(NULL, w.run.dataset, NULL, NULL, 0, FILL(exphil_report), &e));
    BAD(INVALID, "dataset", exphil_evaluate(m, NULL, NULL, NULL, 0, FILL(exphil_report), &e));
    BAD(INVALID, "report", exphil_evaluate(m, w.run.dataset, NULL, NULL, 0, NULL, &e));
    exphil_comparison *compared = FILL(exphil_comparison);
    BAD(INVALID, "reference", exphil_model_compare(NULL, m, w.run.dataset, 0, compared, &e));
    BAD(INVALID, "model", exphil_model_compare(m, NULL, w.run.dataset, 0, compared, &e));
    BAD(INVALID, "dataset", exphil_model_compare(m, m, NULL, 0, compared, &e));
    BAD(INVALID, "comparison", exphil_model_compare(m, m, w.run.dataset, 0, NULL, &e));
    BAD(INVALID, "batch", exphil_model_compare(m, m, w.run.dataset, -1, compared, &e));
    BAD(INVALID, "batch", exphil_model_compare(m, m, w.run.dataset, 4097, compared, &e));
    BAD(INVALID, "empty", exphil_model_compare(m, m, w.empty, 0, compared, &e));
    BAD(MISMATCH, "spec", exphil_model_compare(w.melee, m, w.run.dataset, 0, compared, &e));
    BAD(INVALID, "trainer", exphil_trainer_evaluate(NULL, 0, w.run.dataset, NULL, FILL(exphil_report), &e));
    BAD(INVALID, "dataset", exphil_trainer_evaluate(t, 0, NULL, NULL, FILL(exphil_report), &e));
    BAD(INVALID, "report", exphil_trainer_evaluate(t, 0, w.run.dataset, NULL, NULL, &e));
}

static void null_training(void **state)
{
    exphil_model *m = w.run.model;
    exphil_trainer *t = w.run.trainer;
    trainers_of_half_a_configuration(m);
    BAD(INVALID, "model", exphil_optimizer_create(NULL, NULL, OUT(exphil_optimizer *), &e));
    BAD(INVALID, "optimizer", exphil_optimizer_create(m, NULL, NULL, &e));
    BAD(INVALID, "optimizer", exphil_optimizer_query(NULL, FILL(exphil_optimizer_info), &e));
    BAD(INVALID, "NULL", exphil_optimizer_query(w.run.optimizer, NULL, &e));
    BAD(INVALID, "model",
        exphil_trainer_create(NULL, w.run.optimizer, NULL, NULL, OUT(exphil_trainer *), &e));
    BAD(INVALID, "optimizer", exphil_trainer_create(m, NULL, NULL, NULL, OUT(exphil_trainer *), &e));
    BAD(INVALID, "trainer", exphil_trainer_create(m, w.run.optimizer, NULL, NULL, NULL, &e));
    BAD(STATE, "optimizer", exphil_trainer_create(m, w.run.optimizer, NULL, NULL, OUT(exphil_trainer *), &e));
    BAD(INVALID, "trainer", exphil_trainer_step(NULL, FILL(exphil_metrics), &e));
    BAD(INVALID, "trainer", exphil_trainer_step_batch(NULL, &w.batch, NULL, &e));
    BAD(INVALID, "batch", exphil_trainer_step_batch(w.hand.trainer, NULL, NULL, &e));
    BAD(STATE, "prefetcher", exphil_trainer_step(w.hand.trainer, FILL(exphil_metrics), &e));
    BAD(INVALID, "trainer", exphil_trainer_model(NULL, 0, OUT(exphil_model *), &e));
    BAD(INVALID, "model", exphil_trainer_model(t, 0, NULL, &e));
    BAD(INVALID, "which is 7", exphil_trainer_model(t, 7, OUT(exphil_model *), &e));
    BAD(STATE, "ema_decay", exphil_trainer_model(t, EXPHIL_WEIGHTS_AVERAGED, OUT(exphil_model *), &e));
    BAD(INVALID, "trainer", exphil_trainer_save(NULL, "x", &e));
    BAD(INVALID, "path", exphil_trainer_save(t, NULL, &e));
    BAD(INVALID, "path", exphil_trainer_save(t, "", &e));
    BAD(INVALID, "trainer", exphil_trainer_resume(NULL, "x", &e));
    BAD(INVALID, "path", exphil_trainer_resume(t, NULL, &e));
    BAD(INVALID, "path", exphil_trainer_resume(t, "", &e));
    null_evaluations(m, t);
}

static void null_play(void **state)
{
    exphil_session *s = w.session;
    size_t bytes = exphil_session_state_size(s);
    (void)misuse_place(0, 0);
    (void)misuse_place(1, 0);
    BAD(INVALID, "model", exphil_session_create(NULL, NULL, OUT(exphil_session *), &e));
    BAD(INVALID, "session", exphil_session_create(w.run.model, NULL, NULL, &e));
    BAD(INVALID, "session", exphil_session_clone(NULL, OUT(exphil_session *), &e));
    BAD(INVALID, "clone", exphil_session_clone(s, NULL, &e));
    BAD(INVALID, "session", exphil_session_query(NULL, FILL(exphil_session_info), &e));
    BAD(INVALID, "NULL", exphil_session_query(s, NULL, &e));
    BAD(INVALID, "session", exphil_session_error(NULL, &e));
    HOT(w.live, INVALID, "frames is NULL", exphil_session_step(w.live, NULL, OUT(exphil_pad)));
    HOT(w.live, INVALID, "pads is NULL", exphil_session_step(w.live, &w.frame, NULL));
    HOT(s, STATE, "exphil_session_step_row", exphil_session_step(s, &w.frame, OUT(exphil_pad)));
    HOT(s, INVALID, "floats is NULL", exphil_session_step_row(s, NULL, w.ids, NULL, OUT(int32_t)));
    HOT(s, INVALID, "ids is NULL", exphil_session_step_row(s, w.floats, NULL, NULL, OUT(int32_t)));
    HOT(s, INVALID, "actions is NULL", exphil_session_step_row(s, w.floats, w.ids, NULL, NULL));
    HOT(s, INVALID, "logits is NULL", exphil_session_logits(s, 0, NULL, 12));
    HOT(s, INVALID, "action is NULL", exphil_session_override(s, 0, NULL));
    HOT(s, INVALID, "state is NULL", exphil_session_state_save(s, 0, NULL, bytes));
    HOT(s, INVALID, "state is NULL", exphil_session_state_restore(s, 0, NULL, bytes));
    exphil_pad pad;
    int32_t action[3];
    float logits[12];
    assert_int_equal(exphil_session_step(NULL, &w.frame, &pad), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_step_row(NULL, w.floats, w.ids, NULL, action), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_logits(NULL, 0, logits, 12), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_reset(NULL, 0), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_override(NULL, 0, action), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_state_save(NULL, 0, w.block, bytes), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_state_restore(NULL, 0, w.block, bytes), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_state_size(NULL), 0);
}

static void null_melee_and_replays(void **state)
{
    exphil_context *c = w.run.context;
    const exphil_pad pad = {0, 0, 0, 0, 0, 0};
    BAD(INVALID, "frame", exphil_melee_encode(NULL, NULL, OUT(float), OUT2(int32_t), &e));
    BAD(INVALID, "floats", exphil_melee_encode(NULL, &w.frame, NULL, OUT2(int32_t), &e));
    BAD(INVALID, "ids", exphil_melee_encode(NULL, &w.frame, OUT(float), NULL, &e));
    BAD(INVALID, "pad", exphil_melee_pad_encode(NULL, NULL, OUT(int32_t), &e));
    BAD(INVALID, "action", exphil_melee_pad_encode(NULL, &pad, NULL, &e));
    BAD(INVALID, "action", exphil_melee_pad_decode(NULL, NULL, OUT(exphil_pad), &e));
    BAD(INVALID, "pad", exphil_melee_pad_decode(NULL, w.zero, NULL, &e));
    BAD(INVALID, "context", exphil_slp_open(NULL, "x", NULL, OUT(exphil_slp *), &e));
    BAD(INVALID, "path", exphil_slp_open(c, NULL, NULL, OUT(exphil_slp *), &e));
    BAD(INVALID, "slp", exphil_slp_open(c, "x", NULL, NULL, &e));
    BAD(INVALID, "context", exphil_slp_read(NULL, "x", 1, NULL, OUT(exphil_slp *), &e));
    BAD(INVALID, "data", exphil_slp_read(c, NULL, 1, NULL, OUT(exphil_slp *), &e));
    BAD(INVALID, "slp", exphil_slp_read(c, "x", 1, NULL, NULL, &e));
    BAD(INVALID, "slp", exphil_slp_query(NULL, FILL(exphil_slp_info), &e));
    BAD(INVALID, "slp", exphil_slp_result_get(NULL, FILL(exphil_slp_result), &e));
    BAD(INVALID, "context", exphil_slp_stream_create(NULL, OUT(exphil_slp_stream *), &e));
    BAD(INVALID, "stream", exphil_slp_stream_create(c, NULL, &e));
    BAD(INVALID, "stream", exphil_slp_stream_reset(NULL, &e));
    BAD(INVALID, "stream", exphil_slp_stream_push(NULL, "x", 1, OUT(size_t), &e));
    BAD(INVALID, "data", exphil_slp_stream_push(w.stream, NULL, 1, OUT(size_t), &e));
    BAD(INVALID, "used_bytes", exphil_slp_stream_push(w.stream, "x", 1, NULL, &e));
    BAD(INVALID, "stream", exphil_slp_stream_query(NULL, FILL(exphil_slp_info), &e));
    BAD(STATE, "", exphil_slp_stream_query(w.stream, FILL(exphil_slp_info), &e));
    BAD(INVALID, "stream", exphil_slp_stream_melee_frame(NULL, 1, 0, FILL(exphil_melee_frame), &e));
    BAD(STATE, "", exphil_slp_stream_melee_frame(w.stream, 1, 0, FILL(exphil_melee_frame), &e));
    BAD(INVALID, "frame", exphil_slp_stream_melee_frame(w.stream, 1, 0, NULL, &e));
    BAD(INVALID, "slp", exphil_slp_dump(NULL, EXPHIL_SLP_DUMP_STATE, 0, OUT(char), 24, &e));
    assert_int_equal(exphil_slp_frame_count(NULL), 0);
    assert_int_equal(exphil_slp_slot_count(NULL), 0);
    assert_int_equal(exphil_slp_dump_bytes(NULL, EXPHIL_SLP_DUMP_STATE, 0), 0);
    assert_int_equal(exphil_slp_dump_bytes(NULL, EXPHIL_SLP_DUMP_ITEMS, 0), 0);
    assert_null(exphil_slp_frame_at(NULL, 0));
    assert_null(exphil_slp_slot_at(NULL, 0));
    assert_null(exphil_slp_player_at(NULL, 0, 0, 0));
    assert_null(exphil_slp_stream_frame(NULL));
    assert_null(exphil_slp_stream_player(NULL, 0, 0));
    exphil_melee_frame *frame = FILL(exphil_melee_frame);
    BAD(INVALID, "slp", exphil_slp_melee_frame(NULL, 0, 1, 0, frame, &e));
    BAD(INVALID, "slp", exphil_slp_melee_pad(NULL, 0, 1, OUT(exphil_pad), &e));
    const exphil_replay_config port = {sizeof port, NULL, 1, 0, 0, 0};
    BAD(INVALID, "slp",
        exphil_slp_melee_rows(NULL, NULL, NULL, &port, 1, NULL, OUT(float), NULL, NULL, OUT2(int64_t), &e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_contexts_and_models),
        cmocka_unit_test(null_data),
        cmocka_unit_test(null_training),
        cmocka_unit_test(null_play),
        cmocka_unit_test(null_melee_and_replays),
    };
    return cmocka_run_group_tests(tests, misuse_begin, misuse_end);
}
