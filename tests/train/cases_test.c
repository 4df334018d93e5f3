/* Policies learn from real replays, end to end through the public interface.
 *   A  a closed-loop expert: trained on one recording, scored on another, then played in its own loop
 *   B  an open-loop script whose state alone is ambiguous: memory must work, and what has none must not cheat
 *   C  human play, last fifth held out: better than copying the previous input, better than class frequencies */
#include "test.h"

#include <exphil/slp.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    exphil_status check_status = (call);                                                                     \
    if (check_status < 0) fail_msg("%s: %s: %s", #call, exphil_status_name(check_status), error.message);    \
  } while (0)

typedef struct recipe {
    const char *blocks;
    int64_t hidden, head_width, updates, batch, time, attention_window;
    double rate;
    int32_t no_previous;
    uint64_t seed;
    const exphil_spec *spec;
} recipe;

static exphil_dataset *load(exphil_context *context, const char *path, int32_t last)
{
    exphil_dataset *dataset = NULL;
    exphil_replay_config config = EXPHIL_REPLAY_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.port = 1;
    config.last_frame = last;
    CHECK(exphil_dataset_create(context, NULL, &dataset, &error));
    CHECK(exphil_dataset_add_replay(dataset, path, &config, NULL, &error));
    return dataset;
}

static exphil_model *train(exphil_context *context, exphil_dataset *dataset, const recipe *how)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *start = NULL, *model = NULL;
    exphil_prefetcher *prefetcher = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    config.spec = how->spec;
    config.blocks = how->blocks;
    config.hidden = how->hidden;
    config.head_width = how->head_width;
    config.attention_heads = 2;
    config.attention_dim = 16;
    config.attention_window_frames = how->attention_window;
    config.no_previous_action = how->no_previous;
    config.seed = how->seed;
    CHECK(exphil_model_create(context, &config, &start, &error));
    CHECK(exphil_model_sampling(start, &sampling, &error));
    sampling.batch = how->batch;
    sampling.time = how->time;
    sampling.seed = how->seed;
    CHECK(exphil_prefetcher_create(dataset, &sampling, &prefetcher, &error));
    adam.rate = how->rate;
    adam.schedule = EXPHIL_SCHEDULE_COSINE;
    adam.warmup_updates = 10;
    adam.total_updates = how->updates;
    CHECK(exphil_optimizer_create(start, &adam, &optimizer, &error));
    CHECK(exphil_trainer_create(start, optimizer, prefetcher, NULL, &trainer, &error));
    for (int64_t i = 0; i < how->updates; i++) CHECK(exphil_trainer_step(trainer, &metrics, &error));
    CHECK(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &model, &error));
    print_message("%-10s %" PRId64 " updates, last loss %.6f\n", how->blocks, how->updates, metrics.loss);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_prefetcher_destroy(prefetcher);
    exphil_model_destroy(start);
    return model;
}

static exphil_report evaluate(const exphil_model *model, const exphil_dataset *dataset,
                              const exphil_dataset *from)
{
    exphil_report report = EXPHIL_REPORT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    CHECK(exphil_evaluate(model, dataset, from, NULL, 0, &report, &error));
    return report;
}

/* ---- the expert's loop ------------------------------------------------------------------------------------------ */

enum { CYCLE = 9 };

/* Frames 0..8 of the recording are one turn of the cycle: states as observed and what the expert did in each. */
typedef struct loop {
    exphil_melee_frame state[CYCLE];
    int32_t action[CYCLE][EXPHIL_HEADS_MAX];
} loop;

static void record_loop(exphil_context *context, const char *path, loop *to)
{
    static const int states[CYCLE] = {361, 24, 24, 24, 365, 365, 365, 366, 361};
    exphil_slp *slp = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    CHECK(exphil_slp_open(context, path, NULL, &slp, &error));
    for (int i = 0; i < CYCLE; i++) {
        exphil_pad pad;
        to->state[i] = (exphil_melee_frame){.struct_size = sizeof to->state[i]};
        CHECK(exphil_slp_melee_frame(slp, 122 + i, 1, 0, &to->state[i], &error));
        CHECK(exphil_slp_melee_pad(slp, 123 + i, 1, &pad, &error));
        CHECK(exphil_melee_pad_encode(NULL, &pad, to->action[i], &error));
        assert_int_equal(to->state[i].player[0].action_state, states[i]);
    }
    exphil_slp_destroy(slp);
}

/* The world goes on only if the policy does what the expert does in this state. */
static int64_t play_loop(const exphil_model *model, const loop *world, int64_t frames)
{
    exphil_session *session = NULL;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    int64_t played = 0;
    config.deterministic = 1;
    CHECK(exphil_model_spec(model, &spec, &error));
    CHECK(exphil_session_create(model, &config, &session, &error));
    for (int64_t t = 0; t < frames; t++, played++) {
        exphil_melee_frame frame = world->state[t % CYCLE];
        int32_t action[EXPHIL_HEADS_MAX];
        exphil_pad pad;
        frame.frame = (int32_t)t - 1;
        CHECK(exphil_session_step(session, &frame, &pad));
        CHECK(exphil_melee_pad_encode(NULL, &pad, action, &error));
        if (memcmp(action, world->action[t % CYCLE], (size_t)spec.head_count * sizeof *action) != 0) break;
    }
    exphil_session_destroy(session);
    return played;
}

static void case_a(const recipe *how)
{
    const char *teach = test_replay("training/fox_multishine_closed.slp");
    const char *examine = test_replay("training/fox_ms_teacher_2min.slp");
    if (!teach || !examine) skip();
    exphil_context *context = test_context(NULL, NULL, 0);
    exphil_dataset *lesson = load(context, teach, 1678), *exam = load(context, examine, 7078);
    loop world;
    record_loop(context, teach, &world);
    exphil_model *model = train(context, lesson, how);
    exphil_report report = evaluate(model, exam, lesson);
    int64_t played = play_loop(model, &world, 10000);
    print_message("case A, %s: %.4f %% of %" PRId64 " frames exact (copy %.1f %%, majority %.1f %%); %" PRId64
                  " frames of the loop without a miss\n",
                  how->blocks, 100 * report.exact_accuracy, report.frames, 100 * report.exact_copy,
                  100 * report.exact_majority, played);
    assert_int_equal(report.frames, 7079);
    assert_true(report.exact_accuracy >= 0.999);
    assert_int_equal(played, 10000);
    exphil_model_destroy(model);
    exphil_dataset_destroy(exam);
    exphil_dataset_destroy(lesson);
    exphil_context_destroy(context);
}

static recipe tiny(const char *blocks)
{
    return (recipe){.blocks = blocks,
                    .hidden = 32,
                    .head_width = 32,
                    .updates = 300,
                    .batch = 8,
                    .time = 30,
                    .attention_window = 16,
                    .rate = 5e-3,
                    .seed = 1};
}

static void test_a_mamba(void **state)
{
    recipe how = tiny("mamba");
    case_a(&how);
}
static void test_a_lstm(void **state)
{
    recipe how = tiny("lstm");
    case_a(&how);
}
static void test_a_gru(void **state)
{
    recipe how = tiny("gru");
    case_a(&how);
}
static void test_a_attention(void **state)
{
    recipe how = tiny("attention");
    case_a(&how);
}

/* ---- B ------------------------------------------------------------------------------------------------------------ */

/* What case B shows of a frame: action state, whole frames in it, airborne. 89-92 % of the script's inputs follow from
 * these three; the rest depends on where the script is, which only memory tells. (Whole melee2 rows are nearly unique in
 * a thousand frames, so a large enough memoryless net could learn them by heart.) */
enum { B_FRAMES = 994, B_IDS = 3 };
static const exphil_id_spec b_ids[B_IDS] = {{"action_state", 544, 16}, {"age", 64, 8}, {"airborne", 2, 2}};

typedef struct script {
    int32_t id[B_FRAMES][B_IDS], action[B_FRAMES][EXPHIL_HEADS_MAX];
    exphil_spec spec;
} script;

static exphil_dataset *load_script(exphil_context *context, const char *path, script *to)
{
    static const float no_floats;
    static int32_t actions[B_FRAMES * EXPHIL_HEADS_MAX];
    exphil_slp *slp = NULL;
    exphil_dataset *dataset = NULL;
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    CHECK(exphil_melee_spec(NULL, NULL, &spec, &error));
    spec.layout = "coarse";
    spec.float_count = 0;
    spec.id_count = B_IDS;
    spec.ids = b_ids;
    spec.layout_hash = 0;
    to->spec = spec;
    CHECK(exphil_slp_open(context, path, NULL, &slp, &error));
    for (int t = 0; t < B_FRAMES; t++) {
        exphil_melee_frame frame = {.struct_size = sizeof frame};
        exphil_pad pad;
        CHECK(exphil_slp_melee_frame(slp, 122 + t, 1, 0, &frame, &error));
        CHECK(exphil_slp_melee_pad(slp, 123 + t, 1, &pad, &error));
        CHECK(exphil_melee_pad_encode(NULL, &pad, to->action[t], &error));
        to->id[t][0] = frame.player[0].action_state;
        to->id[t][1] = (int32_t)frame.player[0].state_age & 63;
        to->id[t][2] = frame.player[0].airborne != 0;
        memcpy(&actions[t * spec.head_count], to->action[t], (size_t)spec.head_count * sizeof(int32_t));
    }
    exphil_slp_destroy(slp);
    config.spec = &spec;
    CHECK(exphil_dataset_create(context, &config, &dataset, &error));
    CHECK(exphil_dataset_add_rows(dataset, 1, B_FRAMES, &no_floats, &to->id[0][0], actions, &error));
    return dataset;
}

/* Share of frames that a table from what is seen to the commonest action gets right: no memoryless policy beats it. */
static double table_ceiling(const script *of)
{
    int64_t right = 0;
    size_t bytes = (size_t)of->spec.head_count * sizeof(int32_t);
    for (int i = 0; i < B_FRAMES; i++) {
        int first = i, best = 0;
        for (int k = 0; k < i && first == i; k++)
            if (memcmp(of->id[k], of->id[i], sizeof of->id[i]) == 0) first = k;
        for (int a = i; first == i && a < B_FRAMES; a++) {
            int same = 0;
            if (memcmp(of->id[a], of->id[i], sizeof of->id[i]) != 0) continue;
            for (int k = i; k < B_FRAMES; k++)
                same += memcmp(of->id[k], of->id[i], sizeof of->id[i]) == 0 &&
                        memcmp(of->action[k], of->action[a], bytes) == 0;
            if (same > best) best = same;
        }
        right += best;
    }
    return (double)right / (double)B_FRAMES;
}

static double case_b(const char *blocks)
{
    static script shown;
    const char *path = test_replay("formats/fox_multishine.slp");
    if (!path) skip();
    exphil_context *context = test_context(NULL, NULL, 0);
    exphil_dataset *dataset = load_script(context, path, &shown);
    recipe how = tiny(blocks);
    how.spec = &shown.spec;
    how.updates = 4000;
    how.no_previous = 1;
    how.time = 60;
    how.batch = 2;
    how.rate = 1e-2;
    how.attention_window = 60;
    exphil_model *model = train(context, dataset, &how);
    exphil_report report = evaluate(model, dataset, NULL);
    double ceiling = table_ceiling(&shown);
    print_message("case B, %s: %.3f %% of %" PRId64 " frames exact (a table of what is seen: %.3f %%)\n",
                  blocks, 100 * report.exact_accuracy, report.frames, 100 * ceiling);
    assert_int_equal(report.frames, B_FRAMES);
    assert_true(ceiling > 0.85 && ceiling < 0.93);
    exphil_model_destroy(model);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    return report.exact_accuracy;
}

static void test_b_mamba(void **state)
{
    assert_true(case_b("mamba") >= 0.99);
}
static void test_b_lstm(void **state)
{
    assert_true(case_b("lstm") >= 0.99);
}
static void test_b_gru(void **state)
{
    assert_true(case_b("gru") >= 0.99);
}
static void test_b_attention(void **state)
{
    assert_true(case_b("attention") >= 0.99);
}
static void test_b_mlp(void **state)
{
    assert_true(case_b("mlp*2") < 0.93);
}

/* ---- C ------------------------------------------------------------------------------------------------------------ */

/* How often the policy does the same with weights of fewer bits. */
static double agreement(const exphil_model *model, const exphil_dataset *dataset, int32_t type)
{
    exphil_model *quantized = NULL;
    exphil_comparison c = EXPHIL_COMPARISON_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    CHECK(exphil_model_quantize(model, type, &quantized, &error));
    CHECK(exphil_model_compare(model, quantized, dataset, 0, &c, &error));
    print_message("case C, %s: %.3f %% of %" PRId64
                  " actions as in f32, kl %.6f, logits by %.4f at most, %.5f rms\n",
                  type == EXPHIL_TYPE_I8 ? "int8" : "bf16", 100 * c.agreement, c.frames, c.kl, c.max_error,
                  c.rms_error);
    exphil_model_destroy(quantized);
    return c.agreement;
}

static void test_c(void **state)
{
    const char *path = test_replay("training/mewtwo_shfair_only.slp");
    if (!path) skip();
    exphil_context *context = test_context(NULL, NULL, 0);
    exphil_dataset *all = load(context, path, 0), *kept = NULL, *held = NULL;
    exphil_split_config split = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    split.by = EXPHIL_SPLIT_TIME;
    split.held_out = 0.2;
    CHECK(exphil_dataset_split(all, &split, &kept, &held, &error));
    recipe how = tiny("gru");
    how.updates = 85;
    how.batch = 16;
    how.time = 60;
    how.rate = 3e-3;
    how.head_width = 128;
    exphil_model *model = train(context, kept, &how);
    exphil_report report = evaluate(model, held, kept);
    print_message(
        "case C: exact %.2f %% (copy %.2f %%, majority %.2f %%), change frames %.2f %% (copy 0 %%, majority "
        "%.2f %%), nll %.4f (frequencies %.4f)\n",
        100 * report.exact_accuracy, 100 * report.exact_copy, 100 * report.exact_majority,
        100 * report.exact_change_accuracy, 100 * report.exact_majority_change, report.nll,
        report.frequency_nll);
    assert_true(report.exact_accuracy >= report.exact_copy);
    assert_true(report.nll < report.frequency_nll);
    assert_true(agreement(model, held, EXPHIL_TYPE_BF16) >= 0.999);
    assert_true(agreement(model, held, EXPHIL_TYPE_I8) >= 0.995);
    exphil_model_destroy(model);
    exphil_dataset_destroy(held);
    exphil_dataset_destroy(kept);
    exphil_dataset_destroy(all);
    exphil_context_destroy(context);
}

/* All cases, or those whose name fits argv[1]. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_mamba),     cmocka_unit_test(test_a_lstm),      cmocka_unit_test(test_a_gru),
        cmocka_unit_test(test_a_attention), cmocka_unit_test(test_b_mamba),     cmocka_unit_test(test_b_lstm),
        cmocka_unit_test(test_b_gru),       cmocka_unit_test(test_b_attention), cmocka_unit_test(test_b_mlp),
        cmocka_unit_test(test_c),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
