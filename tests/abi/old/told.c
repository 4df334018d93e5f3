/* The old program, policies that are told something: conditions and delays in rows, training, evaluation and play; memory that is
 * planned, frames that are examined, notes. */
#include "old.h"

#if EXPHIL_VERSION >= 200

enum { BATCH = 4, TIME = 16, UPDATES = 6 };

static const exphil_condition_spec conditions[] = {{"rank", 3, 4, 0.25}, {"style", 2, 0, 0}};
static const int32_t delays[] = {0, 2};

static exphil_dataset *make_data(exphil_context *context)
{
    exphil_dataset *dataset = task_dataset(context);
    for (uint64_t game = 1; game <= TASK_GAMES; game++)
        DONE(exphil_dataset_condition(dataset, "rank", game, 0, (int32_t)(game % 4), error));
    DONE(exphil_dataset_condition_episodes(dataset, "style", 1, 2, 2, error));
    return dataset;
}

static exphil_model *make_model(exphil_context *context)
{
    exphil_model_config *config = task_config();
    config->conditions = conditions, config->condition_count = 2;
    config->delays = delays, config->delay_count = 2;
    config->head_layers = 1;
    config->head_activation = EXPHIL_ACTIVATION_RELU;
    exphil_model *model = task_model(context, config);
    DONE(exphil_model_notes_set(model, "{\"old\": [1, 2]}", error));
    digest_weights(model);
    return model;
}

static exphil_sampling *make_sampling(const exphil_model *model)
{
    exphil_sampling *sampling = EDGE(exphil_sampling, EXPHIL_SAMPLING_INIT);
    DONE(exphil_model_sampling(model, sampling, error));
    CHECK(sampling->condition_count == 2 && sampling->delay_count == 2);
    sampling->batch = BATCH;
    sampling->time = TIME;
    sampling->drop_past = 0.25;
    sampling->balance_action = 0.5;
    return sampling;
}

static exphil_trainer_config *make_training(void)
{
    exphil_trainer_config *config = EDGE(exphil_trainer_config, EXPHIL_TRAINER_CONFIG_INIT);
    config->own_past = 0.5;
    config->own_past_ramp_updates = 4;
    config->saved_weights = EXPHIL_WEIGHTS_AVERAGED;
    return config;
}

/* What it says of memory is what the library's own structs take, too; what it says of files is not. */
static void plan(exphil_context *context, const exphil_model *model, const exphil_dataset *dataset)
{
    exphil_plan_config *config = EDGE(exphil_plan_config, EXPHIL_PLAN_CONFIG_INIT);
    exphil_plan *planned = EDGE(exphil_plan, EXPHIL_PLAN_INIT);
    exphil_optimizer_config *rates = EDGE(exphil_optimizer_config, EXPHIL_OPTIMIZER_CONFIG_INIT);
    rates->ema_decay = 0.9;
    config->model = model, config->optimizer = rates, config->sampling = make_sampling(model);
    config->trainer = make_training(), config->dataset = dataset, config->scored = dataset;
    config->most_batch = 8;
    DONE(exphil_trainer_plan(context, config, planned, error));
    CHECK(planned->fits == 1 && planned->batch == BATCH && planned->time == TIME &&
          planned->largest_batch == 8);
    CHECK(planned->host_bytes[EXPHIL_PLAN_MOMENTS] >= 8 * (uint64_t)planned->parameter_count);
    CHECK(planned->host_peak_bytes >= planned->host_steady_bytes && !planned->device_peak_bytes);
    digest(&planned->batch, 4 * sizeof planned->batch);
    digest(&planned->host_bytes[EXPHIL_PLAN_MOMENTS], 2 * sizeof planned->host_bytes[0]);
    digest(&planned->weights_file_bytes, 2 * sizeof planned->weights_file_bytes);
    digest_end("plan");
}

static exphil_model *train(const exphil_model *model, const exphil_dataset *dataset)
{
    exphil_metrics *metrics = EDGE(exphil_metrics, EXPHIL_METRICS_INIT), *same = EDGE_OF(*metrics);
    exphil_prefetcher *prefetcher = NULL;
    exphil_trainer *trainer = NULL;
    exphil_model *trained = NULL;
    exphil_optimizer *optimizer = task_optimizer(model);
    DONE(exphil_prefetcher_create(dataset, make_sampling(model), &prefetcher, error));
    DONE(exphil_trainer_create(model, optimizer, prefetcher, make_training(), &trainer, error));
    for (int i = 0; i < UPDATES; i++) {
        DONE(exphil_trainer_step(trainer, metrics, error));
        DONE(exphil_trainer_wait(trainer, same, error));
        CHECK(same->update == metrics->update && same->loss == metrics->loss);
        digest_metrics(metrics);
    }
    DONE(exphil_trainer_notes_set(trainer, "{\"trained\": 1}", error));
    DONE(exphil_trainer_model(trainer, EXPHIL_WEIGHTS_AVERAGED, &trained, error));
    digest_weights(trained);
    digest_end("told");
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_prefetcher_destroy(prefetcher);
    return trained;
}

static void evaluate(const exphil_model *model, const exphil_dataset *dataset)
{
    static const int32_t nothing[2], something[2] = {3, 1};
    exphil_evaluation *how = EDGE(exphil_evaluation, EXPHIL_EVALUATION_INIT);
    exphil_report *report = EDGE(exphil_report, EXPHIL_REPORT_INIT), *other = EDGE_OF(*report);
    report->alone_most_frames = 50;
    how->conditions = nothing, how->condition_count = 2, how->delay_frames = &delays[1];
    how->batch = 2;
    how->frequencies = dataset;
    DONE(exphil_evaluate_as(model, dataset, how, report, error));
    CHECK(report->frames > 0 && report->alone_frames >= 50);
    how->conditions = something;
    DONE(exphil_evaluate_as(model, dataset, how, other, error));
    CHECK(other->frames == report->frames && other->nll != report->nll);
    how->delay_frames = &conditions[0].values;
    CHECK(exphil_evaluate_as(model, dataset, how, other, error) == EXPHIL_E_MISMATCH);
    DIGEST(report);
    DIGEST(other);
    digest_end("evaluated");
}

static int32_t see(void *user, const exphil_examined *frame)
{
    int64_t *seen = user;
    CHECK(frame->struct_size >= sizeof *frame && frame->delay_frames == 2 && frame->row >= 0);
    digest(&frame->frame, 3 * sizeof frame->frame);
    digest(frame->floats, TASK_FLOATS * sizeof *frame->floats);
    digest(frame->recorded, TASK_HEADS * sizeof *frame->recorded);
    digest(frame->likely, TASK_HEADS * sizeof *frame->likely);
    digest(frame->log_probability, TASK_HEADS * sizeof *frame->log_probability);
    digest(frame->logits, 5 * sizeof *frame->logits);
    ++*seen;
    return 0;
}

static void examine(const exphil_model *model, const exphil_dataset *dataset)
{
    exphil_examination *how = EDGE(exphil_examination, EXPHIL_EXAMINATION_INIT);
    int64_t seen = 0;
    how->see = see, how->user = &seen;
    how->delay_frames = &delays[1];
    DONE(exphil_examine(model, dataset, how, error));
    CHECK(seen == TASK_GAMES * (TASK_FRAMES - 2));
    digest_end("examined");
}

static void play(exphil_context *context, const exphil_model *trained)
{
    static const int32_t first[2] = {1, 0}, then[2] = {0, 2};
    exphil_session_config *config = EDGE(exphil_session_config, EXPHIL_SESSION_CONFIG_INIT);
    exphil_model *model = NULL;
    exphil_session *session = NULL;
    const char *notes = NULL;
    DONE(exphil_model_save(trained, "told.safetensors", error));
    DONE(exphil_model_load(context, "told.safetensors", &model, error));
    DONE(exphil_model_notes(model, &notes, error));
    CHECK(strcmp(notes, "{\"trained\": 1}") == 0);
    config->conditions = first, config->condition_count = 2, config->delay_frames = &delays[1];
    DONE(exphil_session_create(model, config, &session, error));
    for (int64_t t = 0; t < 40; t++) {
        float floats[TASK_FLOATS];
        int32_t ids[1], recorded[TASK_HEADS], actions[TASK_HEADS];
        if (t == 20) DONE(exphil_session_conditions_set(session, -1, then, 2));
        task_row(9, t, floats, ids, recorded);
        DONE(exphil_session_step_row(session, floats, ids, NULL, actions));
        digest(actions, sizeof actions);
    }
    digest_end("told play");
    exphil_session_destroy(session);
    exphil_model_destroy(model);
}

void told(exphil_context *context)
{
    exphil_dataset *dataset = make_data(context);
    exphil_model *model = make_model(context);
    plan(context, model, dataset);
    exphil_model *trained = train(model, dataset);
    evaluate(trained, dataset);
    examine(trained, dataset);
    play(context, trained);
    exphil_model_destroy(trained);
    exphil_model_destroy(model);
    exphil_dataset_destroy(dataset);
}

#else
typedef int nothing_before_0_2;
#endif
