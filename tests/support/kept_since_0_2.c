/* Kinds of files that 0.2 brought: a corpus of games; a policy that is told conditions and its delay, has a value head and carries
 * notes; checkpoints of a learner and of a live policy by both ways. */
#include "kept_case.h"

#include "live_case.h"
#include "slp_writer.h"
#include "test_places.h"

#include <exphil/games.h>
#include <exphil/notes.h>

#include <stdio.h>
#include <stdlib.h>

enum { CHUNKS = 2, SAMPLES = 6, LIVE_FRAMES = 120, REWARDED = 32 };

static void hash_double(xph_hasher *hasher, double value)
{
    xph_hash_add(hasher, &value, sizeof value);
}

/* ---- corpora of games ------------------------------------------------------------------------------------------------- */

static exphil_games_writer *games_writer(exphil_context *context, const char *path, int32_t stored)
{
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    exphil_games_writer *writer = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.stored = stored;
    if (exphil_games_create(context, path, &config, &writer, &error) < 0)
        fail_msg("%s: %s", path, error.message);
    return writer;
}

/* One real game, and small ones of other recorders. Compressed, so that what reads it is a decoder, too. */
static void write_games(exphil_context *context, const char *folder)
{
    exphil_games_writer *writer = games_writer(context, kept_in(folder, "replays", ".games"), 0);
    assert_ok(exphil_games_add(writer, EXPHIL_SOURCE_DIR "/tests/data/kept/replay.slp", NULL, NULL));
    for (int which = 0; which < SAMPLES; which++) {
        slp_writer sample;
        slp_sample(&sample, which);
        exphil_status status = exphil_games_add_memory(writer, sample.data, sample.bytes, NULL, NULL);
        assert_true(status == EXPHIL_OK || status == EXPHIL_E_UNSUPPORTED);
        slp_free(&sample);
    }
    assert_ok(exphil_games_finish(writer, NULL, NULL));
    exphil_games_writer_destroy(writer);
}

/* What 0.2 says of a game: structs may have grown since. */
static void hash_game(xph_hasher *hasher, const exphil_games *games, int64_t index)
{
    exphil_game_info info = EXPHIL_GAME_INFO_INIT;
    exphil_slp_info settings = EXPHIL_SLP_INFO_INIT;
    exphil_slp_result result = EXPHIL_SLP_RESULT_INIT;
    exphil_slp *slp = NULL;
    assert_ok(exphil_games_game(games, index, &info, &settings, NULL));
    assert_ok(exphil_games_read(games, index, &slp, NULL));
    assert_ok(exphil_slp_result_get(slp, &result, NULL));
    const uint64_t hashes[2] = {info.content_hash, info.source_hash};
    const int64_t numbers[] = {
        info.match_tag, info.day,      info.winner,          info.certain_end,
        info.finite,    result.reason, settings.frame_count, exphil_slp_frame_count(slp)};
    xph_hash_add(hasher, hashes, sizeof hashes);
    xph_hash_add(hasher, numbers, sizeof numbers);
    xph_hash_add(hasher, info.player, sizeof info.player);
    exphil_slp_destroy(slp);
}

/* Rows of all players, as the library's own layout and those of others have them. */
static uint64_t rows_of(exphil_context *context, const exphil_games *games, const char *layout,
                        const char *codec)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_dataset *dataset = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_ok(exphil_melee_spec(layout, codec, &spec, NULL));
    config.spec = &spec;
    assert_ok(exphil_dataset_create(context, &config, &dataset, NULL));
    if (exphil_dataset_add_games(dataset, games, NULL, NULL, &error) < 0)
        fail_msg("%s: %s", layout, error.message);
    assert_ok(exphil_dataset_query(dataset, &info, NULL));
    assert_true(info.frames > 100);
    uint64_t digest = kept_frames(dataset, &info);
    exphil_dataset_destroy(dataset);
    return digest;
}

static void tell_games(kept_results *to, exphil_context *context, const char *folder)
{
    static const char *const layouts[][2] = {{"melee2", "exphil81"},
                                             {"exphil288", "exphil81-floor"},
                                             {"slippi", "slippi"},
                                             {"slippi-nana", "slippi-fine"}};
    exphil_games *games = NULL;
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_hasher hasher;
    if (exphil_games_open(context, kept_in(folder, "replays", ".games"), &games, &error) < 0)
        fail_msg("replays.games: %s", error.message);
    if (exphil_games_verify(games, &error) < 0) fail_msg("replays.games: %s", error.message);
    assert_ok(exphil_games_query(games, &info, NULL));
    assert_true(info.games > 1 && !info.recovered);
    kept_tell(to, "replays", "content", info.hash);
    exphil_games_writer *writer =
        games_writer(context, test_path("again"), 1); /* games stay as they are packed */
    xph_hash_begin(&hasher);
    for (int64_t i = 0; i < info.games; i++) {
        hash_game(&hasher, games, i);
        assert_ok(exphil_games_copy(writer, games, i, NULL, NULL));
    }
    kept_tell(to, "replays", "games", xph_hash_end(&hasher));
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        kept_tell(to, "replays", layouts[i][0], rows_of(context, games, layouts[i][0], layouts[i][1]));
    assert_ok(exphil_games_finish(writer, NULL, NULL));
    exphil_games_writer_destroy(writer);
    kept_tell(to, "replays", "saved-again", kept_digest(test_path("again")));
    exphil_games_destroy(games);
}

/* ---- a policy that is told ---------------------------------------------------------------------------------------------- */

static const exphil_condition_spec conditions[] = {{"rank", 3, 4, 0.25}, {"style", 2, 0, 0}};
static const int32_t delays[] = {1, 3};

static train_plan told_plan(void)
{
    train_plan plan = train_plan_of("gru attention", EXPHIL_MODE_CARRY);
    model_case_end(&plan.model, 1);
    plan.model.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    plan.model.conditions = conditions, plan.model.condition_count = 2;
    plan.model.delays = delays, plan.model.delay_count = 2;
    plan.model.delay_frames = 0;
    plan.model.neutral_start = 1;
    plan.model.value = EXPHIL_VALUE_SHARED;
    plan.model.norm_epsilon = 1e-4;
    plan.episodes = 3;
    plan.adam.ema_decay = 0.98;
    plan.sampling.drop_past = 0.25;
    plan.sampling.balance_action = 0.5;
    plan.trainer.own_past = 0.5;
    plan.trainer.own_past_ramp_updates = 10;
    plan.trainer.saved_weights = EXPHIL_WEIGHTS_AVERAGED;
    return plan;
}

static void write_told(const char *folder)
{
    train_plan plan = told_plan();
    train_run run = train_begin(&plan);
    (void)train_steps(&run, KEPT_BEFORE);
    assert_ok(exphil_trainer_notes_set(run.trainer,
                                       "{\"train\": {\"of\": \"0.2\", \"sign\": \"\xe2\x9c\x93\"}}", NULL));
    assert_ok(exphil_trainer_save(run.trainer, kept_in(folder, "told", ".safetensors"), NULL));
    kept_write_narrow(run.context, run.dataset, folder, "told");
    kept_write_state(run.context, folder, "told");
    train_end(&run);
}

static void tell_told_run(kept_results *to, const char *folder)
{
    static const int32_t nothing[2];
    train_plan plan = told_plan();
    train_run run = train_begin(&plan);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_report report = EXPHIL_REPORT_INIT;
    exphil_evaluation how = EXPHIL_EVALUATION_INIT;
    exphil_model *model = NULL;
    if (exphil_trainer_resume(run.trainer, kept_in(folder, "told", ".safetensors"), &error) < 0)
        fail_msg("told: %s", error.message);
    (void)train_steps(&run, KEPT_AFTER);
    assert_ok(exphil_trainer_save(run.trainer, test_path("after"), NULL));
    kept_tell(to, "told", "trained-on", kept_digest(test_path("after")));
    kept_tell(to, "told", "checkpoint", kept_digest(test_path("after.optimizer")));
    assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &model, NULL));
    how.conditions = nothing, how.condition_count = 2, how.delay_frames = &delays[1];
    report.alone_most_frames = 60;
    assert_ok(exphil_evaluate_as(model, run.dataset, &how, &report, NULL));
    const double losses[2] = {report.loss, report.alone_nll};
    kept_tell(to, "told", "loss", xph_hash(losses, sizeof losses));
    exphil_model_destroy(model);
    train_end(&run);
}

static void tell_told(kept_results *to, exphil_context *context, const char *folder)
{
    const char *notes = NULL;
    kept_tell_model(to, context, folder, "told");
    kept_tell_state(to, context, folder, "told");
    exphil_model *model = kept_load(context, kept_in(folder, "told", ".safetensors"));
    assert_ok(exphil_model_notes(model, &notes, NULL));
    assert_non_null(strstr(notes, "\"of\": \"0."));
    kept_tell(to, "told", "notes", xph_hash(notes, strlen(notes)));
    exphil_model_destroy(model);
    for (int k = 0; k < 2; k++) {
        char name[64];
        (void)snprintf(name, sizeof name, "told-%s", kept_narrow[k].name);
        kept_tell_model(to, context, folder, name);
        kept_tell_state(to, context, folder, name);
    }
    tell_told_run(to, folder);
}

/* ---- a learner ---------------------------------------------------------------------------------------------------------- */

static learn_plan learnt_plan(void)
{
    learn_plan plan = learn_plan_of("mamba mlp");
    plan.model.delay_frames = 2;
    plan.model.neutral_start = 1;
    plan.taught = true;
    plan.learner.to_teacher = 0.1;
    plan.learner.entropy = 0.01;
    plan.learner.most_kl = 0.5;
    return plan;
}

static uint64_t learn_on(learn_run *run, const exphil_world *world)
{
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    for (int i = 0; i < CHUNKS; i++) {
        exphil_learner_metrics m = learn_chunk(run, world);
        assert_true(m.recomputed == 0.0 && m.rows > 0);
        hash_double(&hasher, m.loss);
        hash_double(&hasher, m.kl_to_teacher);
        hash_double(&hasher, m.episode_return);
    }
    return xph_hash_end(&hasher);
}

static void write_learnt(const char *folder)
{
    learn_plan plan = learnt_plan();
    noise games = {.fail_at = 0};
    learn_run run = learn_begin(&plan);
    const exphil_world world = noise_kept_world(&games, plan.lanes);
    (void)learn_on(&run, &world);
    assert_ok(exphil_learner_save(run.learner, run.rollout, &world, kept_in(folder, "learnt", ".safetensors"),
                                  NULL));
    learn_end(&run);
}

static void tell_learnt(kept_results *to, exphil_context *context, const char *folder)
{
    learn_plan plan = learnt_plan();
    noise games = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    learn_run run = learn_begin(&plan);
    const exphil_world world = noise_kept_world(&games, plan.lanes);
    kept_tell_model(to, context, folder, "learnt");
    if (exphil_learner_resume(run.learner, run.rollout, &world, kept_in(folder, "learnt", ".safetensors"),
                              &error) < 0)
        fail_msg("learnt: %s", error.message);
    kept_tell(to, "learnt", "learnt-on", learn_on(&run, &world));
    assert_ok(exphil_learner_save(run.learner, run.rollout, &world, test_path("after"), NULL));
    kept_tell(to, "learnt", "trained-on", kept_digest(test_path("after")));
    kept_tell(to, "learnt", "checkpoint", kept_digest(test_path("after.optimizer")));
    learn_end(&run);
}

/* ---- learning behind a game --------------------------------------------------------------------------------------------- */

static exphil_live *live_of(live_bench *bench, int32_t way)
{
    static exphil_learner_config learner = EXPHIL_LEARNER_CONFIG_INIT;
    live_bench_make(bench, way == EXPHIL_LIVE_IMITATE ? "gru" : "mlp", 1);
    bench->config.paced = 1;
    bench->config.way = way;
    if (way == EXPHIL_LIVE_IMITATE) {
        bench->config.approved = 0.25;
    } else {
        learner.epochs = 2;
        bench->config.sampling = NULL;
        bench->config.learner = &learner;
        bench->config.piece_frames = bench->config.updates = 0;
        bench->config.time = REWARDED;
    }
    return live_bench_live(bench);
}

/* Chunks in which stick 2 is worth something. */
static void play_rewarded(exphil_live *live, uint64_t seed, uint64_t *hash)
{
    noise game = {.rng = {{.seed = seed, .stream = XPH_RNG_TEST}}};
    float floats[13];
    int32_t ids[2], actions[3];
    noise_row(&game, 0, floats, ids);
    for (int i = 0; i < 2 * REWARDED; i++) {
        assert_ok(exphil_live_step_row(live, floats, ids, NULL, actions));
        *hash = xph_mix(*hash + xph_hash(actions, sizeof actions));
        noise_row(&game, 0, floats, ids);
        assert_ok(exphil_live_reward(live, actions[1] == 2 ? 1.0f : 0.0f,
                                     i % 20 == 19 ? EXPHIL_OVER : EXPHIL_GOES_ON, floats, ids));
        if (i % REWARDED == REWARDED - 1) assert_ok(exphil_live_settle(live, NULL));
    }
}

static uint64_t live_on(exphil_live *live, int32_t way, uint64_t seed)
{
    static const live_plan plan = {LIVE_FRAMES, 30, 50, 70, 40};
    live_person person = live_person_of(seed, 1);
    uint64_t hash = 0;
    if (way == EXPHIL_LIVE_IMITATE)
        live_play(live, &person, &plan, &hash);
    else
        play_rewarded(live, seed, &hash);
    assert_ok(exphil_live_settle(live, NULL));
    return xph_mix(hash + live_weights(live));
}

static const char *const ways[] = {"live-person", "live-reward"};

static void write_live(const char *folder, int32_t way)
{
    live_bench bench;
    exphil_live *live = live_of(&bench, way);
    exphil_error error = EXPHIL_ERROR_INIT;
    (void)live_on(live, way, 1);
    if (exphil_live_save(live, kept_in(folder, ways[way], ".safetensors"), &error) < 0)
        fail_msg("%s: %s", ways[way], error.message);
    exphil_live_destroy(live);
    live_bench_free(&bench);
}

static void tell_live(kept_results *to, exphil_context *context, const char *folder, int32_t way)
{
    live_bench bench;
    exphil_live *live = live_of(&bench, way);
    exphil_error error = EXPHIL_ERROR_INIT;
    kept_tell_model(to, context, folder, ways[way]);
    if (exphil_live_resume(live, kept_in(folder, ways[way], ".safetensors"), &error) < 0)
        fail_msg("%s: %s", ways[way], error.message);
    const int64_t updates = live_info(live).updates;
    assert_true(updates > 0);
    kept_tell(to, ways[way], "learnt-on", live_on(live, way, 2));
    assert_true(live_info(live).updates > updates);
    assert_ok(exphil_live_save(live, test_path("after"), NULL));
    kept_tell(to, ways[way], "trained-on", kept_digest(test_path("after")));
    kept_tell(to, ways[way], "checkpoint", kept_digest(test_path("after.optimizer")));
    exphil_live_destroy(live);
    live_bench_free(&bench);
}

/* ---- all ---------------------------------------------------------------------------------------------------------------- */

void kept_write_0_2(exphil_context *context, const char *folder)
{
    write_games(context, folder);
    write_told(folder);
    write_learnt(folder);
    for (int32_t way = 0; way < 2; way++) write_live(folder, way);
}

/* A file that a later release lacks is missed in its results.txt. */
void kept_tell_0_2(kept_results *to, exphil_context *context, const char *folder)
{
    if (test_exists(kept_in(folder, "replays", ".games"))) tell_games(to, context, folder);
    if (test_exists(kept_in(folder, "told", ".safetensors"))) tell_told(to, context, folder);
    if (test_exists(kept_in(folder, "learnt", ".safetensors"))) tell_learnt(to, context, folder);
    for (int32_t way = 0; way < 2; way++)
        if (test_exists(kept_in(folder, ways[way], ".safetensors"))) tell_live(to, context, folder, way);
}
