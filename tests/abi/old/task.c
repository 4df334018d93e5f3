/* What parts of the old program since 0.2 share: a task, rows of it, a model. */
#include "old.h"

#if EXPHIL_VERSION >= 200

exphil_spec *task_spec(void)
{
    static const exphil_head_spec heads[] = {{"move", EXPHIL_CATEGORICAL, 3, 1, 0},
                                             {"press", EXPHIL_BERNOULLI, 2, 0, 0}};
    static const exphil_id_spec id = {"place", 4, 4};
    exphil_spec *spec = EDGE(exphil_spec, EXPHIL_SPEC_INIT);
    spec->layout = "task", spec->codec = "task", spec->float_count = TASK_FLOATS;
    spec->id_count = 1, spec->ids = &id, spec->head_count = TASK_HEADS, spec->heads = heads;
    return spec;
}

static uint32_t drawn(uint64_t game, int64_t t, uint32_t what)
{
    uint64_t x = (game * 1000003u + (uint64_t)(t + 1)) * 31u + what;
    x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 32)) * 0x94D049BB133111EBu;
    return (uint32_t)(x >> 40);
}

void task_row(uint64_t game, int64_t t, float *floats, int32_t *ids, int32_t *actions)
{
    for (uint32_t i = 0; i < TASK_FLOATS; i++) floats[i] = (float)drawn(game, t, i) / 8388608.0f - 1.0f;
    ids[0] = (int32_t)(drawn(game, t, TASK_FLOATS) & 3u);
    actions[0] = floats[0] < -0.3f ? 0 : floats[0] > 0.3f ? 2 : 1;
    actions[1] = (int32_t)(drawn(game, t - 1, TASK_FLOATS) & 3u);
}

exphil_dataset *task_dataset(exphil_context *context)
{
    float floats[TASK_FRAMES][TASK_FLOATS];
    int32_t ids[TASK_FRAMES][1], actions[TASK_FRAMES][TASK_HEADS];
    exphil_dataset_config *config = EDGE(exphil_dataset_config, EXPHIL_DATASET_CONFIG_INIT);
    exphil_dataset *dataset = NULL;
    config->spec = task_spec();
    DONE(exphil_dataset_create(context, config, &dataset, error));
    for (uint64_t game = 1; game <= TASK_GAMES; game++) {
        for (int64_t t = 0; t < TASK_FRAMES; t++) task_row(game, t, floats[t], ids[t], actions[t]);
        DONE(exphil_dataset_add_rows(dataset, game, TASK_FRAMES, floats[0], ids[0], actions[0], error));
    }
    return dataset;
}

exphil_model_config *task_config(void)
{
    exphil_model_config *config = EDGE(exphil_model_config, EXPHIL_MODEL_CONFIG_INIT);
    config->spec = task_spec();
    config->blocks = "gru";
    config->hidden = config->head_width = 8;
    config->neutral_start = 1;
    config->seed = 3;
    return config;
}

exphil_model *task_model(exphil_context *context, const exphil_model_config *config)
{
    exphil_model *model = NULL;
    DONE(exphil_model_create(context, config, &model, error));
    return model;
}

exphil_optimizer *task_optimizer(const exphil_model *model)
{
    exphil_optimizer_config *config = EDGE(exphil_optimizer_config, EXPHIL_OPTIMIZER_CONFIG_INIT);
    exphil_optimizer *optimizer = NULL;
    config->rate = 0.01;
    config->ema_decay = 0.9;
    DONE(exphil_optimizer_create(model, config, &optimizer, error));
    return optimizer;
}

void digest_weights(const exphil_model *model)
{
    exphil_model_info *info = EDGE(exphil_model_info, EXPHIL_MODEL_INFO_INIT);
    DONE(exphil_model_query(model, info, error));
    CHECK(info->weights_hash != 0);
    DIGEST(info);
}

#else
typedef int nothing_before_0_2;
#endif
