/* Values out of range and files that are not there, given to every public function: its status, a message that names the
 * culprit, outputs as they were. A row is a call; it fails here unless it is refused in exactly that way. */
#include "misuse_case.h"

#include <exphil/ranks.h>
#include <exphil/slp.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>

static void values_of_tensors(exphil_context *c)
{
    float some[24] = {0}, bad[24] = {0};
    bad[7] = NAN;
    BAD(INVALID, "index", exphil_model_tensor_info(w.run.model, -1, FILL(exphil_tensor_info), &e));
    BAD(INVALID, "index", exphil_model_tensor_info(w.run.model, 100000, FILL(exphil_tensor_info), &e));
    BAD(INVALID, "norm.bios", exphil_model_tensor_get(w.run.model, "norm.bios", OUT(float), 96, &e));
    BAD(INVALID, "size_bytes", exphil_model_tensor_get(w.run.model, "norm.bias", OUT(float), 95, &e));
    BAD(STATE, "use", exphil_model_tensor_set(w.run.model, "norm.bias", some, 96, &e));
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    exphil_model *own = model_case_create(c, &config);
    BAD(INVALID, "size_bytes", exphil_model_tensor_set(own, "norm.bias", some, 100, &e));
    BAD(NUMERIC, "norm.bias", exphil_model_tensor_set(own, "norm.bias", bad, 96, &e));
    BAD(INVALID, "nothing", exphil_model_tensor_set(own, "nothing", some, 96, &e));
    exphil_model_destroy(own);
    BAD(STATE, "rounded", exphil_model_tensor_set(w.quantized, "norm.bias", some, 96, &e));
}

static void values_of_quantized_models(void)
{
    BAD(INVALID, "model", exphil_model_quantize(NULL, EXPHIL_TYPE_BF16, OUT(exphil_model *), &e));
    BAD(INVALID, "quantized", exphil_model_quantize(w.run.model, EXPHIL_TYPE_BF16, NULL, &e));
    BAD(INVALID, "type", exphil_model_quantize(w.run.model, 99, OUT(exphil_model *), &e));
    BAD(INVALID, "type", exphil_model_quantize(w.run.model, -1, OUT(exphil_model *), &e));
    BAD(UNSUPPORTED, "F64", exphil_model_quantize(w.run.model, EXPHIL_TYPE_F64, OUT(exphil_model *), &e));
    BAD(STATE, "rounded", exphil_model_quantize(w.quantized, EXPHIL_TYPE_BF16, OUT(exphil_model *), &e));
    exphil_comparison comparison = w.comparison;
    comparison.frames = 0;
    BAD(INVALID, "frames", exphil_model_calibration_set(w.quantized, &comparison, &e));
    BAD(STATE, "not quantised", exphil_model_calibration_set(w.run.model, &w.comparison, &e));
    BAD(STATE, "calibrated", exphil_model_calibration_get(w.run.model, FILL(exphil_comparison), &e));
}

static void values_of_models(void **state)
{
    exphil_context *c = w.run.context;
    static const struct {
        exphil_model_config config;
        exphil_status status;
        const char *says;
    } cases[] = {
        {{.hidden = -1}, EXPHIL_E_INVALID, "hidden"},
        {{.hidden = INT64_MAX}, EXPHIL_E_INVALID, "hidden"},
        {{.head_width = -5}, EXPHIL_E_INVALID, "head_width"},
        {{.mamba_states = INT64_MIN}, EXPHIL_E_INVALID, "mamba_states"},
        {{.mamba_expand = 1 << 30}, EXPHIL_E_INVALID, "mamba_expand"},
        {{.mamba_taps = -2}, EXPHIL_E_INVALID, "mamba_taps"},
        {{.mamba_rank = -2}, EXPHIL_E_INVALID, "mamba_rank"},
        {{.attention_heads = -1}, EXPHIL_E_INVALID, "attention_heads"},
        {{.attention_dim = -1}, EXPHIL_E_INVALID, "attention_dim"},
        {{.attention_window_frames = -1}, EXPHIL_E_INVALID, "attention_window_frames"},
        {{.ffn_expand = -1}, EXPHIL_E_INVALID, "ffn_expand"},
        {{.mode = EXPHIL_MODE_WINDOW, .window_frames = -1}, EXPHIL_E_INVALID, "window_frames"},
        {{.delay_frames = 65}, EXPHIL_E_INVALID, "delay_frames"},
        {{.delay_frames = -1}, EXPHIL_E_INVALID, "delay_frames"},
        {{.no_previous_action = 2}, EXPHIL_E_INVALID, "no_previous_action"},
        {{.mode = 2}, EXPHIL_E_INVALID, "mode"},
        {{.heads = 2}, EXPHIL_E_INVALID, "heads"},
        {{.type = 99}, EXPHIL_E_UNSUPPORTED, "type"},
        {{.reserved = 1}, EXPHIL_E_INVALID, "reserved"},
        {{.blocks = "mamba*0"}, EXPHIL_E_INVALID, "blocks"},
        {{.blocks = "rwkv"}, EXPHIL_E_INVALID, "blocks"},
        {{.blocks = ""}, EXPHIL_E_INVALID, "blocks"},
        {{.blocks = "(gru"}, EXPHIL_E_INVALID, "blocks"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        exphil_model_config config = cases[i].config;
        exphil_error e = EXPHIL_ERROR_INIT;
        config.struct_size = sizeof config;
        exphil_status status = exphil_model_create(c, &config, OUT(exphil_model *), &e);
        misuse_check(cases[i].says, status, cases[i].status, &e, cases[i].says);
    }
    values_of_tensors(c);
    values_of_quantized_models();
    BAD(FORMAT, "", exphil_model_load_memory(c, "x", 1, OUT(exphil_model *), &e));
    BAD(FORMAT, "", exphil_model_load_memory(c, "x", 0, OUT(exphil_model *), &e));
}

static void counts_of_specs(exphil_spec good)
{
    exphil_spec spec = good;
    spec.float_count = 4097;
    BAD(INVALID, "float_count", misuse_take_spec(&spec, &e));
    spec.float_count = -1;
    BAD(INVALID, "float_count", misuse_take_spec(&spec, &e));
    spec = good;
    spec.id_count = 65;
    BAD(INVALID, "id_count", misuse_take_spec(&spec, &e));
    spec = good;
    spec.ids = NULL;
    BAD(INVALID, "ids", misuse_take_spec(&spec, &e));
    spec = good;
    spec.head_count = 0;
    BAD(INVALID, "head_count", misuse_take_spec(&spec, &e));
    spec.head_count = 17;
    BAD(INVALID, "head_count", misuse_take_spec(&spec, &e));
    spec = good;
    spec.heads = NULL;
    BAD(INVALID, "heads", misuse_take_spec(&spec, &e));
    spec = good;
    spec.layout = NULL;
    BAD(INVALID, "layout", misuse_take_spec(&spec, &e));
    spec = good;
    spec.codec = "a name of more than thirty-one bytes";
    BAD(INVALID, "codec", misuse_take_spec(&spec, &e));
    spec = good;
    spec.float_count = spec.id_count = 0;
    BAD(INVALID, "float_count", misuse_take_spec(&spec, &e));
}

static void values_of_specs(void **state)
{
    static const exphil_head_spec good_head = {"head", EXPHIL_CATEGORICAL, 3, 1, 0};
    static const exphil_id_spec good_id = {"id", 5, 0};
    static const struct {
        exphil_head_spec head;
        const char *says;
    } heads[] = {
        {{NULL, EXPHIL_CATEGORICAL, 3, 0, 0}, "name"},
        {{"Upper", EXPHIL_CATEGORICAL, 3, 0, 0}, "name"},
        {{"h", 2, 3, 0, 0}, "kind"},
        {{"h", EXPHIL_BERNOULLI, 32, 0, 0}, "count"},
        {{"h", EXPHIL_CATEGORICAL, 1, 0, 0}, "count"},
        {{"h", EXPHIL_CATEGORICAL, 1025, 0, 0}, "count"},
        {{"h", EXPHIL_CATEGORICAL, 3, 3, 0}, "neutral"},
        {{"h", EXPHIL_BERNOULLI, 2, 4, 0}, "neutral"},
        {{"h", EXPHIL_CATEGORICAL, 3, -1, 0}, "neutral"},
        {{"h", EXPHIL_CATEGORICAL, 3, 0, 1}, "reserved"},
    };
    static const struct {
        exphil_id_spec id;
        const char *says;
    } ids[] = {
        {{NULL, 5, 0}, "name"},       {{"", 5, 0}, "name"},     {{"i", 0, 0}, "entries"},
        {{"i", 65537, 0}, "entries"}, {{"i", 5, 257}, "width"}, {{"i", 5, -1}, "width"},
    };
    exphil_spec good = {sizeof good, "toy", "toy", 2, 1, &good_id, 1, &good_head, 0};
    assert_int_equal(misuse_take_spec(&good, NULL), EXPHIL_OK);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        exphil_spec spec = good;
        spec.heads = &heads[i].head;
        BAD(INVALID, heads[i].says, misuse_take_spec(&spec, &e));
        assert_int_equal(exphil_spec_hash(&spec), 0);
    }
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        exphil_spec spec = good;
        spec.ids = &ids[i].id;
        BAD(INVALID, ids[i].says, misuse_take_spec(&spec, &e));
    }
    counts_of_specs(good);
}

static void values_of_rows(void)
{
    float floats[8 * 13];
    int32_t ids[16], actions[24];
    memcpy(floats, w.floats, sizeof floats);
    memcpy(ids, w.ids, sizeof ids);
    memcpy(actions, w.actions, sizeof actions);
    floats[13 * 2 + 5] = INFINITY;
    BAD(NUMERIC, "row 2", exphil_dataset_add_rows(w.empty, 1, 8, floats, ids, actions, &e));
    floats[13 * 2 + 5] = 0;
    ids[2 * 7] = 5;
    BAD(INVALID, "row 7", exphil_dataset_add_rows(w.empty, 1, 8, floats, ids, actions, &e));
    ids[2 * 7] = 0;
    actions[3 * 1 + 1] = 5;
    BAD(INVALID, "row 1", exphil_dataset_add_rows(w.empty, 1, 8, floats, ids, actions, &e));
    actions[3 * 1 + 1] = -1;
    BAD(INVALID, "row 1", exphil_dataset_add_rows(w.empty, 1, 8, floats, ids, actions, &e));
    BAD(INVALID, "frames", exphil_dataset_add_rows(w.empty, 1, 0, floats, ids, w.actions, &e));
    BAD(INVALID, "frames", exphil_dataset_add_rows(w.empty, 1, -8, floats, ids, w.actions, &e));
    BAD(INVALID, "frames", exphil_dataset_add_rows(w.empty, 1, INT64_MAX, floats, ids, w.actions, &e));
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    assert_ok(exphil_dataset_query(w.empty, &info, NULL));
    assert_int_equal(info.frames, 0);
}

static void values_of_splits(exphil_dataset *d)
{
    static const struct {
        exphil_split_config config;
        const char *says;
    } splits[] = {
        {{.held_out = 0}, "held_out"},
        {{.held_out = 1}, "held_out"},
        {{.held_out = NAN}, "held_out"},
        {{.held_out = 0.5, .by = 3}, "by"},
        {{.held_out = 0.5, .reserved = 1}, "reserved"},
    };
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        exphil_split_config config = splits[i].config;
        config.struct_size = sizeof config;
        BAD(INVALID, splits[i].says,
            exphil_dataset_split(d, &config, OUT(exphil_dataset *), OUT2(exphil_dataset *), &e));
    }
    exphil_split_config half = {sizeof half, 0.5, 1, EXPHIL_SPLIT_GAME, 0};
    BAD(INVALID, "", exphil_dataset_split(w.empty, &half, OUT(exphil_dataset *), OUT2(exphil_dataset *), &e));
}

static void values_of_sampling(exphil_dataset *d)
{
    static const struct {
        exphil_sampling how;
        const char *says;
    } samplings[] = {
        {{.batch = -1}, "batch"},
        {{.batch = 4097}, "batch"},
        {{.time = -1}, "time"},
        {{.time = INT64_MAX}, "time"},
        {{.stride = -1}, "stride"},
        {{.segment_frames = -1}, "segment_frames"},
        {{.mode = 3}, "mode"},
        {{.delay_frames = 65}, "delay_frames"},
        {{.delay_frames = -1}, "delay_frames"},
        {{.action_slots = 66}, "action_slots"},
        {{.in_order = 2}, "in_order"},
        {{.last_only = 1}, "last_only"},
        {{.buffers = 65}, "buffers"},
        {{.shuffle_frames = 65536}, "shuffle_frames"},
        {{.mode = EXPHIL_MODE_WINDOW, .shuffle_frames = 5}, "shuffle_frames is 5"},
        {{.first_lane = 1}, "first_lane"},
        {{.first_lane = 16, .lane_count = 1}, "first_lane"},
        {{.first_lane = 15, .lane_count = 2}, "lane_count"},
        {{.mirror = -0.1}, "mirror"},
        {{.mirror = 1.0 + 1e-9}, "mirror"},
        {{.mirror = NAN}, "mirror"},
    };
    for (size_t i = 0; i < sizeof samplings / sizeof samplings[0]; i++) {
        exphil_sampling how = samplings[i].how;
        how.struct_size = sizeof how;
        BAD(INVALID, samplings[i].says, exphil_prefetcher_create(d, &how, OUT(exphil_prefetcher *), &e));
    }
}

static void values_of_data(void **state)
{
    exphil_dataset *d = w.run.dataset;
    values_of_rows();
    BAD(INVALID, "index", exphil_dataset_frame(d, -1, OUT(float), NULL, NULL, &e));
    BAD(INVALID, "index", exphil_dataset_frame(d, INT64_MAX, OUT(float), NULL, NULL, &e));
    BAD(INVALID, "first is -1; there are ", exphil_dataset_rows(d, -1, 1, OUT(float), NULL, NULL, NULL, &e));
    BAD(INVALID, "first is 9223372036854775807",
        exphil_dataset_rows(d, INT64_MAX, INT64_MAX, OUT(float), NULL, NULL, NULL, &e));
    BAD(INVALID, "count is -1; from 1 on there are ",
        exphil_dataset_rows(d, 1, -1, OUT(float), NULL, NULL, OUT2(int64_t), &e));
    BAD(INVALID, "count is 9223372036854775807",
        exphil_dataset_rows(d, 1, INT64_MAX, OUT(float), NULL, NULL, OUT2(int64_t), &e));
    BAD(INVALID, "index", exphil_dataset_episode(d, 5, FILL(exphil_episode_info), &e));
    BAD(INVALID, "index", exphil_dataset_episode(d, -1, FILL(exphil_episode_info), &e));
    values_of_splits(d);
    values_of_sampling(d);
    BAD(INVALID, "ranks is 5", exphil_rank_lanes(4, 0, 5, OUT(int64_t), OUT2(int64_t), &e));
    BAD(INVALID, "rank is -1", exphil_rank_lanes(4, -1, 2, OUT(int64_t), OUT2(int64_t), &e));
    BAD(INVALID, "", exphil_prefetcher_create(w.empty, NULL, OUT(exphil_prefetcher *), &e));
    BAD(INVALID, "epoch", exphil_prefetcher_seek(w.run.prefetcher, -1, 0, &e));
    BAD(INVALID, "index", exphil_prefetcher_seek(w.run.prefetcher, 0, 1 << 20, &e));
    BAD(MISMATCH, "made-up", exphil_evaluate(w.melee, d, NULL, NULL, 0, FILL(exphil_report), &e));
    BAD(INVALID, "empty", exphil_evaluate(w.run.model, w.empty, NULL, NULL, 0, FILL(exphil_report), &e));
    BAD(INVALID, "Melee", exphil_dataset_add_replay_memory(d, "x", 1, NULL, NULL, &e));
    BAD(FORMAT, "", exphil_dataset_add_replay_memory(w.replays, "x", 1, NULL, NULL, &e));
    BAD(FORMAT, "", exphil_dataset_add_replay_memory(w.replays, "x", 0, NULL, NULL, &e));
}

static void values_of_play(void **state)
{
    exphil_session *s = w.session;
    static const struct {
        exphil_session_config config;
        const char *says;
    } configs[] = {
        {{.streams = -1}, "streams"},
        {{.streams = 4097}, "streams"},
        {{.deadline_ns = -1}, "deadline_ns"},
        {{.deliver = 2}, "deliver"},
        {{.deterministic = 2}, "deterministic"},
    };
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        exphil_session_config config = configs[i].config;
        config.struct_size = sizeof config;
        BAD(INVALID, configs[i].says, exphil_session_create(w.run.model, &config, OUT(exphil_session *), &e));
    }
    static const struct {
        exphil_head_play play;
        const char *says;
    } plays[] = {
        {{-1, 0, 0, 0}, "heads[1].temperature"},  {{NAN, 0, 0, 0}, "heads[1].temperature"},
        {{0, 0, 1.5f, 0}, "heads[1].press"},      {{0, 0, 0, -0.5f}, "heads[1].press"},
        {{0, 0, 0.3f, 0.6f}, "heads[1].release"}, {{INFINITY, 0, 0, 0}, "heads[1].temperature"},
        {{0, 2, 0, 0}, "heads[1].deterministic"}, {{0, -1, 0, 0}, "heads[1].deterministic"},
    };
    for (size_t i = 0; i < sizeof plays / sizeof plays[0]; i++) {
        const exphil_head_play heads[3] = {{0, 0, 0, 0}, plays[i].play, {0, 0, 0, 0}};
        exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
        config.heads = heads;
        BAD(INVALID, plays[i].says, exphil_session_create(w.run.model, &config, OUT(exphil_session *), &e));
    }
    float floats[13];
    int32_t ids[2], wild[3] = {0, 5, 0};
    memcpy(floats, w.floats, sizeof floats);
    memcpy(ids, w.ids, sizeof ids);
    floats[12] = NAN;
    HOT(s, NUMERIC, "floats[12]", exphil_session_step_row(s, floats, ids, NULL, OUT(int32_t)));
    floats[12] = 0;
    ids[1] = -1;
    HOT(s, INVALID, "ids[1]", exphil_session_step_row(s, floats, ids, NULL, OUT(int32_t)));
    HOT(s, INVALID, "stick is 5", exphil_session_override(s, 0, wild));
    HOT(s, INVALID, "stream is 1", exphil_session_reset(s, 1));
    HOT(s, INVALID, "stream is -2", exphil_session_reset(s, -2));
    HOT(s, INVALID, "count", exphil_session_logits(s, 0, OUT(float), 11));
    HOT(s, INVALID, "stream is 9", exphil_session_logits(s, 9, OUT(float), 12));
    HOT(s, INVALID, "size_bytes", exphil_session_state_save(s, 0, OUT(unsigned char), 5));
    HOT(s, INVALID, "size_bytes", exphil_session_state_restore(s, 0, w.block, SIZE_MAX));
    memset(w.block, 0, sizeof w.block);
    HOT(s, FORMAT, "state", exphil_session_state_restore(s, 0, w.block, exphil_session_state_size(s)));
}

static void values_of_melee(void **state)
{
    exphil_melee_frame f = w.frame;
    f.player[1].y = NAN;
    BAD(NUMERIC, "own.y", exphil_melee_encode(NULL, &f, OUT(float), OUT2(int32_t), &e));
    HOT(w.live, NUMERIC, "own.y", exphil_session_step(w.live, &f, OUT(exphil_pad)));
    f = w.frame;
    f.own_port = 1;
    BAD(INVALID, "own_port", exphil_melee_encode(NULL, &f, OUT(float), OUT2(int32_t), &e));
    HOT(w.live, INVALID, "own_port", exphil_session_step(w.live, &f, OUT(exphil_pad)));
    f.own_port = 5;
    BAD(INVALID, "own_port", exphil_melee_encode(NULL, &f, OUT(float), OUT2(int32_t), &e));
    f = w.frame;
    f.opponent_port = 2;
    BAD(INVALID, "opponent_port", exphil_melee_encode(NULL, &f, OUT(float), OUT2(int32_t), &e));
    f = w.frame;
    f.item_count = 16;
    BAD(INVALID, "item_count", exphil_melee_encode(NULL, &f, OUT(float), OUT2(int32_t), &e));
    BAD(INVALID, "pong", exphil_melee_encode("pong", &w.frame, OUT(float), OUT2(int32_t), &e));
    BAD(INVALID, "pong", exphil_melee_spec("pong", NULL, FILL(exphil_spec), &e));
    BAD(INVALID, "pong", exphil_melee_spec(NULL, "pong", FILL(exphil_spec), &e));
    BAD(INVALID, "", exphil_melee_field_get("melee2", -1, FILL(exphil_melee_field), &e));
    BAD(INVALID, "", exphil_melee_field_get("melee2", 1 << 20, FILL(exphil_melee_field), &e));
    const exphil_pad bad = {0, NAN, 0, 0, 0, 0};
    int32_t wild[EXPHIL_HEADS_MAX] = {-1};
    BAD(NUMERIC, "main_x", exphil_melee_pad_encode(NULL, &bad, OUT(int32_t), &e));
    BAD(INVALID, "pong", exphil_melee_pad_encode("pong", &bad, OUT(int32_t), &e));
    BAD(INVALID, "", exphil_melee_pad_decode(NULL, wild, OUT(exphil_pad), &e));
    BAD(INVALID, "", exphil_device_get(-1, FILL(exphil_device_info), &e));
    BAD(INVALID, "", exphil_device_get(1 << 20, FILL(exphil_device_info), &e));
}

/* ---- files -------------------------------------------------------------------------------------------------------------- */

static void files_that_are_not_there(void **state)
{
    exphil_context *c = w.run.context;
    char absent[512], folder[512];
    (void)snprintf(absent, sizeof absent, "%s", test_path("absent"));
    (void)snprintf(folder, sizeof folder, "%s", test_folder());
    BAD(IO, "absent", exphil_model_load(c, absent, OUT(exphil_model *), &e));
    BAD(IO, "absent", exphil_dataset_open(c, absent, OUT(exphil_dataset *), &e));
    BAD(IO, "absent", exphil_dataset_add_replay(w.replays, absent, NULL, NULL, &e));
    BAD(IO, "absent", exphil_trainer_resume(w.run.trainer, absent, &e));
    BAD(IO, "absent", exphil_slp_open(c, absent, NULL, OUT(exphil_slp *), &e));
    BAD(IO, "", exphil_model_load(c, folder, OUT(exphil_model *), &e));
    BAD(FORMAT, "no file whose name ends in .games",
        exphil_dataset_open(c, folder, OUT(exphil_dataset *), &e));
    BAD(IO, "", exphil_model_save(w.run.model, folder, &e));
    BAD(IO, "", exphil_dataset_save(w.run.dataset, folder, &e));
    (void)snprintf(absent, sizeof absent, "%s", test_path("no/such/folder"));
    BAD(IO, "no/such/folder", exphil_model_save(w.run.model, absent, &e));
    BAD(IO, "no/such/folder", exphil_trainer_save(w.run.trainer, absent, &e));
    BAD(IO, "no/such/folder", exphil_dataset_save(w.run.dataset, absent, &e));
}

static void disks_that_are_full(void **state)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s", test_path("full"));
    for (int which = 0; which < 3; which++) {
        exphil_error e = EXPHIL_ERROR_INIT;
        w.io.code = ENOSPC;
        w.io.fail_on = true;
        w.io.fail_at = atomic_load(&w.io.calls) + 5; /* somewhere among the writes */
        exphil_status status = which == 0   ? exphil_model_save(w.run.model, path, &e)
                               : which == 1 ? exphil_dataset_save(w.run.dataset, path, &e)
                                            : exphil_trainer_save(w.run.trainer, path, &e);
        w.io.fail_at = 0;
        w.io.fail_on = false;
        misuse_check("save", status, EXPHIL_E_IO, &e, "No space left");
        assert_int_equal(e.native_code, ENOSPC);
        assert_false(test_exists(path));
    }
}

/* Numbers next to which one more or one less does not fit: an overflow ends the run under the sanitizers. */
static void numbers_at_the_ends(void **state)
{
    static const int64_t far[] = {INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1, -2};
    exphil_session *s = w.session;
    exphil_model *m = w.run.model;
    exphil_dataset *d = w.run.dataset;
    size_t bytes = exphil_session_state_size(s);
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        int64_t n = far[i];
        HOT(s, INVALID, "stream", exphil_session_reset(s, n));
        HOT(s, INVALID, "stream", exphil_session_override(s, n, w.zero));
        HOT(s, INVALID, "stream", exphil_session_logits(s, n, OUT(float), 12));
        HOT(s, INVALID, "count", exphil_session_logits(s, 0, OUT(float), n));
        HOT(s, INVALID, "stream", exphil_session_state_save(s, n, OUT(unsigned char), bytes));
        HOT(s, INVALID, "stream", exphil_session_state_restore(s, n, w.block, bytes));
        BAD(INVALID, "index", exphil_dataset_frame(d, n, OUT(float), NULL, NULL, &e));
        BAD(INVALID, "index", exphil_dataset_episode(d, n, FILL(exphil_episode_info), &e));
        BAD(INVALID, "frames", exphil_dataset_add_rows(w.empty, 1, n, w.floats, w.ids, w.actions, &e));
        BAD(INVALID, "epoch", exphil_prefetcher_seek(w.run.prefetcher, n, 0, &e));
        BAD(INVALID, "index", exphil_prefetcher_seek(w.run.prefetcher, 0, n, &e));
        BAD(INVALID, "batch", exphil_evaluate(m, d, NULL, NULL, n, FILL(exphil_report), &e));
        BAD(INVALID, "batch", exphil_model_compare(m, m, d, n, FILL(exphil_comparison), &e));
        BAD(INVALID, "", exphil_model_tensor_info(m, n, FILL(exphil_tensor_info), &e));
        BAD(INVALID, "", exphil_melee_field_get("melee2", n, FILL(exphil_melee_field), &e));
        BAD(INVALID, "", exphil_device_get(n, FILL(exphil_device_info), &e));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_models),         cmocka_unit_test(values_of_specs),
        cmocka_unit_test(values_of_data),           cmocka_unit_test(values_of_play),
        cmocka_unit_test(values_of_melee),          cmocka_unit_test(numbers_at_the_ends),
        cmocka_unit_test(files_that_are_not_there), cmocka_unit_test(disks_that_are_full),
    };
    return cmocka_run_group_tests(tests, misuse_begin, misuse_end);
}
