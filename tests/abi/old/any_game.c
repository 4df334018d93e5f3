/* The old program, any game: rows, training by hand and from the prefetcher, weights of fewer bits, a file, play and rollback. */
#include "old.h"

#define FRAMES 400
#define FLOATS 3
#define NAME   "old_program.safetensors"

static float floats[FRAMES * FLOATS];
static int32_t ids[FRAMES], actions[FRAMES * 2];

/* Stick and button follow the first float and the id of the frame before, when they are decided; a policy learns it in a few
 * updates. */
static void fill_rows(void)
{
    uint32_t state = 7;
    for (int t = 0; t < FRAMES; t++) {
        for (int i = 0; i < FLOATS; i++) {
            state = state * 1664525u + 1013904223u;
            floats[t * FLOATS + i] = (float)(state >> 8) / 8388608.0f - 1.0f;
        }
        ids[t] = (int32_t)(state >> 30);
        if (t + 1 == FRAMES) break;
        actions[t * 2 + 2] = floats[t * FLOATS] > 0;
        actions[t * 2 + 3] = ids[t] & 1;
    }
}

static exphil_spec *make_spec(void)
{
    static const exphil_head_spec heads[] = {{"stick", EXPHIL_CATEGORICAL, 2, 0, 0},
                                             {"button", EXPHIL_BERNOULLI, 1, 0, 0}};
    static const exphil_id_spec id = {"kind", 4, 0};
    exphil_spec *spec = EDGE(exphil_spec, EXPHIL_SPEC_INIT);
    spec->layout = "old", spec->codec = "old", spec->float_count = FLOATS;
    spec->id_count = 1, spec->ids = &id, spec->head_count = 2, spec->heads = heads;
    return spec;
}

static void digest_spec(const exphil_spec *spec)
{
    uint64_t hash = exphil_spec_hash(spec);
    CHECK(hash != 0);
    digest(&hash, sizeof hash);
    digest(spec->layout, strlen(spec->layout));
    digest(spec->heads[0].name, strlen(spec->heads[0].name));
}

static exphil_dataset *make_data(exphil_context *context, const exphil_spec *spec)
{
    exphil_dataset_config *config = EDGE(exphil_dataset_config, EXPHIL_DATASET_CONFIG_INIT);
    exphil_dataset_info *info = EDGE(exphil_dataset_info, EXPHIL_DATASET_INFO_INIT);
    exphil_episode_info *episode = EDGE(exphil_episode_info, EXPHIL_EPISODE_INFO_INIT);
    exphil_spec *back = EDGE(exphil_spec, EXPHIL_SPEC_INIT);
    exphil_dataset *dataset = NULL;
    config->spec = spec;
    DONE(exphil_dataset_create(context, config, &dataset, error));
    DONE(exphil_dataset_add_rows(dataset, 1, FRAMES, floats, ids, actions, error));
    DONE(exphil_dataset_query(dataset, info, error));
    DONE(exphil_dataset_episode(dataset, 0, episode, error));
    DONE(exphil_dataset_spec(dataset, back, error));
    CHECK(info->frames == FRAMES && episode->frames == FRAMES);
    DIGEST(info);
    DIGEST(episode);
    digest_spec(back);
    digest_end("dataset");
    return dataset;
}

static void split(exphil_dataset *dataset, exphil_dataset **kept, exphil_dataset **held_out)
{
    exphil_split_config *config = EDGE(exphil_split_config, EXPHIL_SPLIT_CONFIG_INIT);
    config->held_out = 0.25;
    config->by = EXPHIL_SPLIT_TIME;
    DONE(exphil_dataset_split(dataset, config, kept, held_out, error));
}

static void digest_model(const exphil_model *model, const char *what)
{
    exphil_model_info *info = EDGE(exphil_model_info, EXPHIL_MODEL_INFO_INIT);
    exphil_tensor_info *tensor = EDGE(exphil_tensor_info, EXPHIL_TENSOR_INFO_INIT);
    exphil_spec *spec = EDGE(exphil_spec, EXPHIL_SPEC_INIT);
    DONE(exphil_model_query(model, info, error));
    DONE(exphil_model_spec(model, spec, error));
    DIGEST(info);
    digest_spec(spec);
    for (int64_t i = 0; i < info->tensor_count; i++) {
        DONE(exphil_model_tensor_info(model, i, tensor, error));
        void *data = malloc(tensor->size_bytes);
        CHECK(data);
        DONE(exphil_model_tensor_get(model, tensor->name, data, tensor->size_bytes, error));
        DIGEST(tensor);
        digest(data, tensor->size_bytes);
        free(data);
    }
    digest_end(what);
}

static exphil_model *make_model(exphil_context *context, const exphil_spec *spec)
{
    exphil_model_config *config = EDGE(exphil_model_config, EXPHIL_MODEL_CONFIG_INIT);
    exphil_model *model = NULL;
    config->spec = spec;
    config->blocks = "gru";
    config->hidden = 16;
    config->head_width = 16;
    config->delay_frames = 1;
    DONE(exphil_model_create(context, config, &model, error));
    digest_model(model, "model");
    return model;
}

static exphil_optimizer *make_optimizer(const exphil_model *model)
{
    exphil_optimizer_config *rates = EDGE(exphil_optimizer_config, EXPHIL_OPTIMIZER_CONFIG_INIT);
    exphil_optimizer *optimizer = NULL;
    rates->rate = 0.02;
    DONE(exphil_optimizer_create(model, rates, &optimizer, error));
    return optimizer;
}

static int32_t alone(void *user, void *data, int64_t count, int32_t type)
{
    (void)type;
    *(int64_t *)user += 1;
    return data && count > 0 ? 0 : 1;
}

static exphil_trainer *make_trainer(const exphil_model *model, exphil_optimizer *optimizer,
                                    exphil_prefetcher *prefetcher, int64_t *reductions)
{
    static const exphil_head_loss losses[2] = {{1, 0.05, 0, NULL}, {0.5, 0, 1, NULL}};
    exphil_communicator rank = {sizeof rank, reductions, alone, 0, 1};
    exphil_trainer_config *config = EDGE(exphil_trainer_config, EXPHIL_TRAINER_CONFIG_INIT);
    exphil_trainer *trainer = NULL;
    config->losses = losses;
    config->communicator = EDGE_OF(rank);
    DONE(exphil_trainer_create(model, optimizer, prefetcher, config, &trainer, error));
    return trainer;
}

void digest_metrics(exphil_metrics *metrics)
{
    metrics->time_ns = metrics->waited_ns = 0;
    DIGEST(metrics);
}

static exphil_prefetcher *make_prefetcher(const exphil_model *model, const exphil_dataset *dataset)
{
    exphil_sampling *sampling = EDGE(exphil_sampling, EXPHIL_SAMPLING_INIT);
    exphil_prefetcher *prefetcher = NULL;
    DONE(exphil_model_sampling(model, sampling, error));
    DIGEST(sampling);
    sampling->batch = 4;
    sampling->time = 20;
    DONE(exphil_prefetcher_create(dataset, sampling, &prefetcher, error));
    return prefetcher;
}

/* Batches that the program takes itself, and gives to a trainer that has no prefetcher. */
static void train_by_hand(const exphil_model *model, const exphil_dataset *dataset)
{
    exphil_prefetcher *prefetcher = make_prefetcher(model, dataset);
    exphil_prefetcher_info *info = EDGE(exphil_prefetcher_info, EXPHIL_PREFETCHER_INFO_INIT);
    exphil_batch *batch = EDGE(exphil_batch, EXPHIL_BATCH_INIT);
    exphil_metrics *metrics = EDGE(exphil_metrics, EXPHIL_METRICS_INIT);
    exphil_optimizer *optimizer = make_optimizer(model);
    int64_t reductions = 0;
    exphil_trainer *trainer = make_trainer(model, optimizer, NULL, &reductions);
    for (int64_t i = 0; i < 3; i++) {
        DONE(exphil_prefetcher_next(prefetcher, batch, error));
        size_t rows = (size_t)(batch->batch * batch->time);
        digest(&batch->epoch, 3 * sizeof batch->epoch);
        digest(batch->floats, rows * FLOATS * sizeof *batch->floats);
        digest(batch->ids, rows * sizeof *batch->ids);
        digest(batch->actions, rows * 2 * sizeof *batch->actions);
        digest(batch->mask, rows * sizeof *batch->mask);
        digest(batch->reset, rows);
        DONE(exphil_trainer_step_batch(trainer, batch, metrics, error));
        digest_metrics(metrics);
    }
    DONE(exphil_prefetcher_query(prefetcher, info, error));
    CHECK(info->delivered == 3);
    digest(&info->batches_per_epoch, 3 * sizeof info->delivered);
    digest_end("by hand");
    exphil_prefetcher_destroy(prefetcher);
    exphil_optimizer_destroy(optimizer);
    exphil_trainer_destroy(trainer);
}

/* Trains a model; what was learned is in its reports. */
static exphil_model *train(const exphil_model *model, const exphil_dataset *kept,
                           const exphil_dataset *held_out)
{
    exphil_metrics *metrics = EDGE(exphil_metrics, EXPHIL_METRICS_INIT);
    exphil_report *report = EDGE(exphil_report, EXPHIL_REPORT_INIT),
                  *same = EDGE(exphil_report, EXPHIL_REPORT_INIT);
    exphil_optimizer_info *state = EDGE(exphil_optimizer_info, EXPHIL_OPTIMIZER_INFO_INIT);
    exphil_prefetcher *prefetcher = make_prefetcher(model, kept);
    exphil_optimizer *optimizer = make_optimizer(model);
    int64_t reductions = 0;
    exphil_trainer *trainer = make_trainer(model, optimizer, prefetcher, &reductions);
    exphil_model *trained = NULL;
    double first = 0;
    for (int update = 0; update < 60; update++) {
        DONE(exphil_trainer_step(trainer, metrics, error));
        if (!update) first = metrics->loss;
        digest_metrics(metrics);
    }
    CHECK(metrics->update == 60 && metrics->loss < first && reductions >= 60);
    DONE(exphil_optimizer_query(optimizer, state, error));
    CHECK(state->updates == 60);
    DIGEST(state);
    DONE(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &trained, error));
    DONE(exphil_trainer_evaluate(trainer, EXPHIL_WEIGHTS, held_out, kept, report, error));
    DIGEST(report);
    DONE(exphil_evaluate(trained, held_out, NULL, NULL, 0, same, error));
    CHECK(same->heads == 2 && same->frames == report->frames &&
          same->head[0].nll < same->head[0].frequency_nll);
    DIGEST(same);
    digest_end("trained");
    exphil_prefetcher_destroy(prefetcher);
    exphil_optimizer_destroy(optimizer);
    exphil_trainer_destroy(trainer);
    return trained;
}

/* Fewer bits, what they change, and a file that tells it. */
static void quantize(exphil_context *context, const exphil_model *trained, const exphil_dataset *dataset)
{
    exphil_comparison *comparison = EDGE(exphil_comparison, EXPHIL_COMPARISON_INIT);
    exphil_comparison *kept = EDGE(exphil_comparison, EXPHIL_COMPARISON_INIT);
    exphil_model *small = NULL, *loaded = NULL;
    DONE(exphil_model_quantize(trained, EXPHIL_TYPE_BF16, &small, error));
    DONE(exphil_model_compare(trained, small, dataset, 0, comparison, error));
    CHECK(comparison->frames > 0 && comparison->heads == 2);
    DIGEST(comparison);
    DONE(exphil_model_calibration_set(small, comparison, error));
    DONE(exphil_model_save(small, "small.safetensors", error));
    DONE(exphil_model_load(context, "small.safetensors", &loaded, error));
    DONE(exphil_model_calibration_get(loaded, kept, error));
    CHECK(memcmp(comparison, kept, sizeof *kept) == 0);
    digest_model(loaded, "quantised");
    exphil_model_destroy(small);
    exphil_model_destroy(loaded);
}

static exphil_session *make_session(exphil_context *context, const exphil_spec *spec,
                                    const exphil_model *trained)
{
    static const int32_t delay = 1, mode = EXPHIL_MODE_CARRY;
    static const exphil_head_play heads[2] = {{0.5f, 0, 0, 0}, {0, 1, 0, 0}};
    exphil_session_config *config = EDGE(exphil_session_config, EXPHIL_SESSION_CONFIG_INIT);
    exphil_model *model = NULL;
    exphil_session *session = NULL;
    config->heads = heads, config->spec = spec, config->delay_frames = &delay, config->mode = &mode;
    config->seed = 5;
    config->deliver = EXPHIL_DELIVER_DECIDED;
    DONE(exphil_model_save(trained, NAME, error));
    DONE(exphil_model_load(context, NAME, &model, error));
    DONE(exphil_session_create(model, config, &session, error));
    exphil_model_destroy(model);
    return session;
}

/* After a rollback the same frames give the same actions and logits. */
static void play(exphil_session *session)
{
    static int32_t action[2][FRAMES * 2];
    exphil_session_info *info = EDGE(exphil_session_info, EXPHIL_SESSION_INFO_INIT);
    float logits[2][3];
    size_t size = exphil_session_state_size(session);
    void *state = malloc(size);
    CHECK(state && exphil_session_state_save(session, 0, state, size) == EXPHIL_OK);
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < FRAMES; t++)
            DONE(exphil_session_step_row(session, floats + t * FLOATS, ids + t, NULL, &action[pass][t * 2]));
        DONE(exphil_session_logits(session, 0, logits[pass], 3));
        DONE(exphil_session_state_restore(session, 0, state, size));
    }
    CHECK(memcmp(action[0], action[1], sizeof action[0]) == 0 &&
          memcmp(logits[0], logits[1], sizeof logits[0]) == 0);
    DONE(exphil_session_query(session, info, error));
    CHECK(info->steps == 2 * FRAMES && info->float_count == FLOATS && info->state_bytes == size);
    digest(action[0], sizeof action[0]);
    digest(logits[0], sizeof logits[0]);
    digest(&info->streams, 6 * sizeof info->streams);
    digest_end("played");
    free(state);
}

/* Why a call failed, from the call and from the object. */
static void refuse(exphil_context *context, exphil_session *session)
{
    exphil_model *model = NULL;
    exphil_error *why = EDGE(exphil_error, EXPHIL_ERROR_INIT);
    CHECK(exphil_model_load(context, "none.safetensors", &model, error) == EXPHIL_E_IO && !model);
    CHECK(error->status == EXPHIL_E_IO && strstr(error->message, "none.safetensors"));
    DIGEST(error);
    CHECK(exphil_session_logits(session, 7, NULL, 0) == EXPHIL_E_INVALID);
    CHECK(exphil_session_error(session, why) == EXPHIL_E_INVALID && why->status == EXPHIL_E_INVALID);
    DIGEST(why);
    digest_end("refused");
}

void any_game(exphil_context *context)
{
    exphil_spec *spec = make_spec();
    exphil_dataset *dataset = NULL, *kept = NULL, *held_out = NULL;
    fill_rows();
    dataset = make_data(context, spec);
    split(dataset, &kept, &held_out);
    exphil_model *model = make_model(context, spec);
    train_by_hand(model, kept);
    exphil_model *trained = train(model, kept, held_out);
    digest_model(trained, "weights");
    quantize(context, trained, held_out);
    exphil_session *session = make_session(context, spec, trained);
    play(session);
    refuse(context, session);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_model_destroy(trained);
    exphil_dataset_destroy(dataset);
    exphil_dataset_destroy(kept);
    exphil_dataset_destroy(held_out);
}
