/* The old program, what came of it: rewards and returns, outcome-weighted imitation, a loss of its own, new weights at play. */
#include "old.h"

#if EXPHIL_VERSION >= 200

enum { BATCH = 3, TIME = 20, UPDATES = 8 };

/* A frame is worth what its class is. */
static exphil_dataset *make_data(exphil_context *context)
{
    exphil_dataset *dataset = task_dataset(context);
    for (uint64_t game = 1; game <= TASK_GAMES; game++) {
        float rewards[TASK_FRAMES], floats[TASK_FLOATS];
        for (int64_t t = 0; t < TASK_FRAMES; t++) {
            int32_t ids[1], actions[TASK_HEADS];
            task_row(game, t, floats, ids, actions);
            rewards[t] = (float)actions[0] - 1.0f;
        }
        DONE(exphil_dataset_rewards_set(dataset, game, 0, 0, rewards, TASK_FRAMES, game % 2 == 0, 10, error));
    }
    return dataset;
}

static exphil_prefetcher *make_prefetcher(const exphil_model *model, const exphil_dataset *dataset)
{
    exphil_sampling *sampling = EDGE(exphil_sampling, EXPHIL_SAMPLING_INIT);
    exphil_prefetcher *prefetcher = NULL;
    DONE(exphil_model_sampling(model, sampling, error));
    sampling->batch = BATCH;
    sampling->time = TIME;
    DONE(exphil_prefetcher_create(dataset, sampling, &prefetcher, error));
    return prefetcher;
}

static exphil_model *imitate(const exphil_model *model, const exphil_dataset *dataset)
{
    exphil_outcome_config *config = EDGE(exphil_outcome_config, EXPHIL_OUTCOME_CONFIG_INIT);
    exphil_outcome_metrics *metrics = EDGE(exphil_outcome_metrics, EXPHIL_OUTCOME_METRICS_INIT);
    exphil_report *report = EDGE(exphil_report, EXPHIL_REPORT_INIT);
    exphil_prefetcher *prefetcher = make_prefetcher(model, dataset);
    exphil_optimizer *optimizer = task_optimizer(model);
    exphil_trainer *trainer = NULL;
    exphil_model *trained = NULL;
    config->beta = 0.5;
    config->cap = 3;
    config->warm_up = 2;
    DONE(exphil_trainer_create(model, optimizer, prefetcher, NULL, &trainer, error));
    for (int i = 0; i < UPDATES; i++) {
        DONE(exphil_trainer_step_outcome(trainer, config, metrics, error));
        CHECK(metrics->known > 0 && (metrics->effective < 1) == (i >= 2));
        DIGEST(metrics);
    }
    DONE(exphil_trainer_evaluate(trainer, EXPHIL_WEIGHTS, dataset, NULL, report, error));
    CHECK(report->value_frames > 0 && report->value_loss > 0);
    DIGEST(report);
    DONE(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &trained, error));
    digest_weights(trained);
    digest_end("outcome");
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_prefetcher_destroy(prefetcher);
    return trained;
}

/* Towards logits of 0 and values of 1: what the forward pass gives grows less by it. */
static exphil_model *own_loss(const exphil_model *model, const exphil_dataset *dataset)
{
    static float dlogits[BATCH * TIME * 5], dvalues[BATCH * TIME];
    exphil_batch *batch = EDGE(exphil_batch, EXPHIL_BATCH_INIT);
    exphil_forward *forward = EDGE(exphil_forward, EXPHIL_FORWARD_INIT);
    exphil_metrics *metrics = EDGE(exphil_metrics, EXPHIL_METRICS_INIT);
    exphil_prefetcher *prefetcher = make_prefetcher(model, dataset);
    exphil_optimizer *optimizer = task_optimizer(model);
    exphil_trainer *trainer = NULL;
    exphil_model *trained = NULL;
    double first = 0, loss = 0;
    DONE(exphil_prefetcher_next(prefetcher, batch, error));
    DONE(exphil_trainer_create(model, optimizer, NULL, NULL, &trainer, error));
    for (int i = 0; i < UPDATES; i++) {
        DONE(exphil_trainer_forward(trainer, batch, NULL, 0, forward, error));
        CHECK(forward->rows == BATCH * TIME && forward->logit_count == 5 && forward->values);
        CHECK(exphil_trainer_step_batch(trainer, batch, metrics, error) == EXPHIL_E_STATE);
        loss = 0;
        for (int64_t k = 0; k < forward->rows * 5; k++) {
            dlogits[k] = ((const float *)forward->logits)[k];
            loss += 0.5 * (double)dlogits[k] * (double)dlogits[k];
        }
        for (int64_t k = 0; k < forward->rows; k++) {
            dvalues[k] = ((const float *)forward->values)[k] - 1.0f;
            loss += 0.5 * (double)dvalues[k] * (double)dvalues[k];
        }
        if (!i) first = loss;
        digest(dlogits, sizeof dlogits);
        digest(dvalues, sizeof dvalues);
        if (i == 1)
            DONE(exphil_trainer_abandon(trainer, error));
        else
            DONE(exphil_trainer_backward(trainer, dlogits, dvalues, loss, metrics, error));
        digest_metrics(metrics);
    }
    CHECK(loss < first && metrics->update == UPDATES - 1 && metrics->loss == loss);
    DONE(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &trained, error));
    digest_weights(trained);
    digest_end("own loss");
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_prefetcher_destroy(prefetcher);
    return trained;
}

/* Lanes that begin where sessions stand see what these would see: another first row than without. */
static void from_states(const exphil_model *model, const exphil_dataset *dataset)
{
    exphil_session_config *config = EDGE(exphil_session_config, EXPHIL_SESSION_CONFIG_INIT);
    exphil_batch *batch = EDGE(exphil_batch, EXPHIL_BATCH_INIT);
    exphil_forward *forward = EDGE(exphil_forward, EXPHIL_FORWARD_INIT);
    exphil_prefetcher *prefetcher = make_prefetcher(model, dataset);
    exphil_optimizer *optimizer = task_optimizer(model);
    exphil_trainer *trainer = NULL;
    exphil_session *session = NULL;
    float floats[BATCH][TASK_FLOATS], first[2];
    int32_t ids[BATCH][1], actions[BATCH][TASK_HEADS];
    static uint8_t reset[BATCH * TIME];
    DONE(exphil_prefetcher_next(prefetcher, batch, error));
    batch->reset = reset;
    config->streams = BATCH;
    DONE(exphil_session_create(model, config, &session, error));
    for (int64_t i = 0; i < BATCH; i++) task_row(7, i, floats[i], ids[i], actions[i]);
    DONE(exphil_session_step_row(session, floats[0], ids[0], NULL, actions[0]));
    size_t size = exphil_session_state_size(session);
    unsigned char *states = malloc(BATCH * size);
    CHECK(states);
    for (int64_t i = 0; i < BATCH; i++)
        DONE(exphil_session_state_save(session, i, states + (size_t)i * size, size));
    DONE(exphil_trainer_create(model, optimizer, NULL, NULL, &trainer, error));
    for (int i = 0; i < 2; i++) {
        DONE(exphil_trainer_forward(trainer, batch, i ? states : NULL, i ? BATCH * size : 0, forward, error));
        first[i] = *(const float *)forward->logits;
        digest(forward->logits, (size_t)(forward->rows * forward->logit_count) * sizeof(float));
        DONE(exphil_trainer_abandon(trainer, error));
    }
    CHECK(first[0] != first[1]);
    digest_end("from states");
    free(states);
    exphil_session_destroy(session);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_prefetcher_destroy(prefetcher);
}

/* After half of the frames other weights play, and come back with a state from before. */
static void play(const exphil_model *first, const exphil_model *then)
{
    exphil_session_config *config = EDGE(exphil_session_config, EXPHIL_SESSION_CONFIG_INIT);
    exphil_session_info *info = EDGE(exphil_session_info, EXPHIL_SESSION_INFO_INIT);
    exphil_model *before = NULL;
    exphil_session *session = NULL;
    config->adoptable = 1;
    DONE(exphil_session_create(first, config, &session, error));
    DONE(exphil_model_prepare(then, error));
    for (int64_t t = 0; t < 40; t++) {
        float floats[TASK_FLOATS], value = 0;
        int32_t ids[1], recorded[TASK_HEADS], actions[TASK_HEADS];
        if (t == 20) DONE(exphil_session_adopt(session, then, &before));
        task_row(9, t, floats, ids, recorded);
        DONE(exphil_session_step_row(session, floats, ids, NULL, actions));
        DONE(exphil_session_value(session, 0, &value));
        digest(actions, sizeof actions);
        digest(&value, sizeof value);
    }
    DONE(exphil_session_query(session, info, error));
    CHECK(info->adoptions == 1);
    digest(&info->adoptions, 2 * sizeof info->adoptions);
    digest_end("adopted");
    exphil_model_destroy(before);
    exphil_session_destroy(session);
}

void outcome(exphil_context *context)
{
    exphil_model_config *config = task_config();
    exphil_dataset *dataset = make_data(context);
    exphil_model *plain, *model = NULL;
    config->no_previous_action = 1;
    plain = task_model(context, config);
    DONE(exphil_model_with_value(plain, EXPHIL_VALUE_SHARED, 4, &model, error));
    exphil_model *imitated = imitate(model, dataset), *own = own_loss(model, dataset);
    from_states(own, dataset);
    play(imitated, own);
    exphil_model_destroy(own);
    exphil_model_destroy(imitated);
    exphil_model_destroy(model);
    exphil_model_destroy(plain);
    exphil_dataset_destroy(dataset);
}

#else
typedef int nothing_before_0_2;
#endif
