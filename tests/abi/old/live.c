/* The old program, learning behind the game: from a person who takes over, from rewards, and Melee. New weights enter where the
 * program says, so that what is learnt does not depend on how fast. */
#include "old.h"

#if EXPHIL_VERSION >= 200

enum { FRAMES = 160, PIECE = 40, SETTLE = 50 };

static exphil_model *make_model(exphil_context *context)
{
    exphil_model_config *config = task_config();
    config->no_previous_action = 1;
    config->value = EXPHIL_VALUE_SHARED;
    return task_model(context, config);
}

static exphil_live_config *make_config(int32_t way)
{
    exphil_live_config *config = EDGE(exphil_live_config, EXPHIL_LIVE_CONFIG_INIT);
    exphil_session_config *session = EDGE(exphil_session_config, EXPHIL_SESSION_CONFIG_INIT);
    exphil_context_config *context = EDGE(exphil_context_config, EXPHIL_CONTEXT_CONFIG_INIT);
    exphil_optimizer_config *optimizer = EDGE(exphil_optimizer_config, EXPHIL_OPTIMIZER_CONFIG_INIT);
    exphil_trainer_config *trainer = EDGE(exphil_trainer_config, EXPHIL_TRAINER_CONFIG_INIT);
    session->seed = 3;
    context->threads = 1;
    context->io = host_io;
    optimizer->rate = 0.01;
    trainer->checkpoint_blocks = 1;
    config->session = session, config->context = context, config->optimizer = optimizer,
    config->trainer = trainer;
    config->way = way;
    config->paced = 1;
    config->seed = 11;
    return config;
}

/* Plays frames [first, end): a person does in the first half of every piece. */
static void play(exphil_live *live, int64_t first, int64_t end)
{
    for (int64_t t = first; t < end; t++) {
        float floats[TASK_FLOATS];
        int32_t ids[1], person[TASK_HEADS], actions[TASK_HEADS];
        int plays = t % PIECE < PIECE / 2;
        task_row(5, t, floats, ids, person);
        DONE(exphil_live_step_row(live, floats, ids, plays ? person : NULL, actions));
        CHECK(!plays || memcmp(actions, person, sizeof actions) == 0);
        digest(actions, sizeof actions);
        if (t % 70 == 69) DONE(exphil_live_reward(live, 0, EXPHIL_OVER, NULL, NULL));
        if (t % SETTLE == SETTLE - 1) DONE(exphil_live_settle(live, error));
    }
}

static exphil_live_info *query(exphil_live *live)
{
    exphil_live_info *info = EDGE(exphil_live_info, EXPHIL_LIVE_INFO_INIT);
    exphil_model *model = NULL;
    DONE(exphil_live_settle(live, error));
    DONE(exphil_live_query(live, info, error));
    DONE(exphil_live_model(live, &model, error));
    CHECK(info->updates > 0 && info->adopted > 0 && !info->dropped && info->failed == EXPHIL_OK);
    DIGEST(info);
    digest_weights(model);
    exphil_model_destroy(model);
    return info;
}

static exphil_live *make_pupil(exphil_context *context, const exphil_dataset *dataset)
{
    exphil_live_config *config = make_config(EXPHIL_LIVE_IMITATE);
    exphil_sampling *sampling = EDGE(exphil_sampling, EXPHIL_SAMPLING_INIT);
    exphil_model *model = make_model(context);
    exphil_live *live = NULL;
    DONE(exphil_model_sampling(model, sampling, error));
    sampling->batch = 4;
    sampling->time = 16;
    config->sampling = sampling, config->dataset = dataset;
    config->piece_frames = PIECE;
    config->updates = 4;
    config->approved = 0.25;
    config->rollback_frames = 8;
    DONE(exphil_live_create(model, config, &live, error));
    exphil_model_destroy(model);
    return live;
}

/* Another one goes on from the first one's checkpoint as the first one does. */
static void imitate(exphil_context *context)
{
    exphil_dataset *dataset = task_dataset(context);
    exphil_live *first = make_pupil(context, dataset), *again = make_pupil(context, dataset);
    exphil_model *model[2] = {NULL, NULL};
    exphil_model_info *info[2];
    play(first, 0, FRAMES);
    CHECK(query(first)->person == FRAMES / 2);
    DONE(exphil_live_save(first, "live", error));
    DONE(exphil_live_resume(again, "live", error));
    DONE(exphil_live_model(first, &model[0], error));
    DONE(exphil_live_model(again, &model[1], error));
    for (int i = 0; i < 2; i++) {
        info[i] = EDGE(exphil_model_info, EXPHIL_MODEL_INFO_INIT);
        DONE(exphil_model_query(model[i], info[i], error));
        exphil_model_destroy(model[i]);
    }
    CHECK(info[0]->weights_hash == info[1]->weights_hash);
    play(again, 0, FRAMES / 2);
    CHECK(query(again)->frames == FRAMES / 2);
    digest_end("live person");
    exphil_live_destroy(first);
    exphil_live_destroy(again);
    exphil_dataset_destroy(dataset);
}

/* A frame in which the class is right is worth 1. */
static void reinforce(exphil_context *context)
{
    exphil_live_config *config = make_config(EXPHIL_LIVE_REINFORCE);
    exphil_learner_config *learner = EDGE(exphil_learner_config, EXPHIL_LEARNER_CONFIG_INIT);
    exphil_model *model = make_model(context);
    exphil_live *live = NULL;
    learner->epochs = 2;
    learner->half_life_frames = 2;
    config->learner = learner;
    config->time = 32;
    config->context = NULL; /* memory and files are those of the model's */
    DONE(exphil_live_create(model, config, &live, error));
    exphil_model_destroy(model);
    for (int64_t t = 0; t < 4 * 32; t++) {
        float floats[TASK_FLOATS], next[TASK_FLOATS];
        int32_t ids[1], right[TASK_HEADS], actions[TASK_HEADS], later[TASK_HEADS], next_ids[1];
        task_row(6, t, floats, ids, right);
        task_row(6, t + 1, next, next_ids, later);
        DONE(exphil_live_step_row(live, floats, ids, NULL, actions));
        digest(actions, sizeof actions);
        DONE(exphil_live_reward(live, actions[0] == right[0] ? 1.0f : 0.0f,
                                t % 50 == 49 ? EXPHIL_OVER : EXPHIL_GOES_ON, next, next_ids));
        if (t % 32 == 31) DONE(exphil_live_settle(live, error));
    }
    CHECK(query(live)->reward > 0);
    digest_end("live reward");
    exphil_live_destroy(live);
}

/* A person presses what the replay has. */
static void melee_live(exphil_context *context)
{
    exphil_live_config *config = make_config(EXPHIL_LIVE_IMITATE);
    exphil_model_config *small = task_config();
    exphil_melee_frame *frame = EDGE(exphil_melee_frame, EXPHIL_MELEE_FRAME_INIT);
    exphil_model *model;
    exphil_live *live = NULL;
    exphil_slp *slp = NULL;
    exphil_pad person, pad;
    small->spec = NULL;
    small->blocks = "mlp";
    model = task_model(context, small);
    config->piece_frames = 20;
    config->updates = 2;
    DONE(exphil_slp_open(context, REPLAY, NULL, &slp, error));
    DONE(exphil_live_create(model, config, &live, error));
    for (int64_t at = 0; at < exphil_slp_frame_count(slp); at++) {
        DONE(exphil_slp_melee_frame(slp, at, 1, 2, frame, error));
        DONE(exphil_slp_melee_pad(slp, at, 1, &person, error));
        DONE(exphil_live_step(live, frame, at % 2 ? &person : NULL, &pad));
        CHECK(at % 2 == 0 || memcmp(&pad, &person, sizeof pad) == 0);
        digest(&pad, sizeof pad);
    }
    CHECK(query(live)->frames == exphil_slp_frame_count(slp));
    digest_end("live Melee");
    exphil_live_destroy(live);
    exphil_slp_destroy(slp);
    exphil_model_destroy(model);
}

void live(exphil_context *context)
{
    imitate(context);
    reinforce(context);
    melee_live(context);
}

#else
typedef int nothing_before_0_2;
#endif
