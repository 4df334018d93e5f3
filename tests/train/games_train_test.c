/* Training on a corpus of games is training on its rows in a file: the same losses and the same reports, to the last
 * bit. */
#include "game_case.h"
#include "test.h"

#include <exphil/games.h>

#define OK(call)                                                                                             \
  do {                                                                                                       \
    exphil_error error_of = EXPHIL_ERROR_INIT, *error = &error_of;                                           \
    if ((call) < 0) fail_msg("%s:%d: %s", __FILE__, __LINE__, error_of.message);                             \
  } while (0)

static exphil_games *some_games(const char *path)
{
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    exphil_games_writer *writer = NULL;
    exphil_games *games = NULL;
    config.stored = 1;
    OK(exphil_games_create(context, path, &config, &writer, error));
    for (int i = 0; i < 5; i++) {
        slp_writer made;
        slp_begin(&made, &slp_layouts[SLP_NEWEST], true);
        slp_head(&made, &slp_layouts[SLP_NEWEST]);
        game_seed(&made, (uint8_t)(i + 1));
        for (int32_t frame = -123; frame < 300 + 20 * i; frame++) slp_frame(&made, frame, 0x05, frame % 2);
        OK(exphil_games_add_memory(writer, made.data, made.bytes, NULL, error));
        slp_free(&made);
    }
    OK(exphil_games_finish(writer, NULL, error));
    exphil_games_writer_destroy(writer);
    OK(exphil_games_open(context, path, &games, error));
    return games;
}

typedef struct outcome {
    exphil_metrics metrics;
    exphil_report report;
    uint64_t weights;
} outcome;

static outcome train(const exphil_dataset *dataset, int32_t mode, int32_t workers)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    exphil_model *model = NULL, *trained = NULL;
    exphil_prefetcher *prefetcher = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_split_config split = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_dataset *kept = NULL, *held = NULL;
    outcome made = {EXPHIL_METRICS_INIT, EXPHIL_REPORT_INIT, 0};
    config.blocks = "gru";
    config.hidden = 16;
    config.mode = mode;
    config.window_frames = mode == EXPHIL_MODE_WINDOW ? 20 : 0;
    config.delay_frames = 2;
    config.seed = 3;
    split.held_out = 0.3;
    OK(exphil_dataset_split(dataset, &split, &kept, &held, error));
    OK(exphil_model_create(context, &config, &model, error));
    OK(exphil_model_sampling(model, &how, error));
    how.batch = 4;
    how.seed = 9;
    how.workers = workers;
    how.shuffle_frames = mode == EXPHIL_MODE_WINDOW ? 1024 : 0;
    OK(exphil_prefetcher_create(kept, &how, &prefetcher, error));
    OK(exphil_optimizer_create(model, NULL, &optimizer, error));
    OK(exphil_trainer_create(model, optimizer, prefetcher, NULL, &trainer, error));
    for (int i = 0; i < 12; i++) {
        exphil_status status = exphil_trainer_step(trainer, &made.metrics, NULL);
        assert_true(status >= 0);
    }
    OK(exphil_trainer_evaluate(trainer, EXPHIL_WEIGHTS, held, kept, &made.report, error));
    OK(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &trained, error));
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    OK(exphil_model_query(trained, &info, error));
    made.weights = info.weights_hash;
    exphil_model_destroy(trained);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_prefetcher_destroy(prefetcher);
    exphil_model_destroy(model);
    exphil_dataset_destroy(kept);
    exphil_dataset_destroy(held);
    return made;
}

static void same_as_rows(void **state)
{
    exphil_games *games = some_games(test_path("train.games"));
    exphil_dataset *made = NULL, *rows = NULL;
    OK(exphil_dataset_create(context, NULL, &made, error));
    OK(exphil_dataset_add_games(made, games, NULL, NULL, error));
    exphil_games_destroy(games);
    OK(exphil_dataset_save(made, test_path("train.rows"), error));
    OK(exphil_dataset_open(context, test_path("train.rows"), &rows, error));
    for (int32_t mode = EXPHIL_MODE_CARRY; mode <= EXPHIL_MODE_WINDOW; mode++) {
        outcome a = train(rows, mode, 1);
        for (int32_t workers = 1; workers <= 3; workers += 2) {
            outcome b = train(made, mode, workers);
            assert_true(a.weights == b.weights);
            assert_memory_equal(&a.metrics.loss, &b.metrics.loss, sizeof a.metrics.loss);
            assert_memory_equal(&a.report, &b.report, sizeof a.report);
        }
    }
    exphil_dataset_destroy(made);
    exphil_dataset_destroy(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_rows)};
    return cmocka_run_group_tests(tests, context_open, context_close);
}
