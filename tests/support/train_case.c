/* Runs of training for tests. */
#include "train_case.h"

#include <exphil/conditions.h>
#include <stdlib.h>

train_plan train_plan_of(const char *blocks, int32_t mode)
{
    train_plan plan = {.model = model_case_config(blocks, EXPHIL_TYPE_F32),
                       .sampling = EXPHIL_SAMPLING_INIT,
                       .adam = EXPHIL_OPTIMIZER_CONFIG_INIT,
                       .trainer = EXPHIL_TRAINER_CONFIG_INIT,
                       .episodes = 5,
                       .threads = 1};
    plan.model.mode = mode;
    plan.model.window_frames = mode == EXPHIL_MODE_WINDOW ? 6 : 0;
    plan.sampling.batch = 4;
    plan.sampling.time = mode == EXPHIL_MODE_WINDOW ? 0 : 8;
    plan.sampling.seed = 3;
    plan.adam.rate = 5e-3;
    return plan;
}

/* ---- the task ---------------------------------------------------------------------------------------------------- */

int64_t train_episode_frames(int64_t episode)
{
    return 41 + 13 * episode;
}

static float draw(int64_t episode, int64_t t, int i)
{
    const uint64_t key[3] = {(uint64_t)episode, (uint64_t)t, (uint64_t)i};
    return (float)(int64_t)(xph_hash(key, sizeof key) % 2001) / 1000.0f - 1.0f;
}

void train_row(int64_t episode, int64_t t, float *floats, int32_t *ids, int32_t *action)
{
    for (int i = 0; i < 13; i++) floats[i] = draw(episode, t, i);
    ids[0] = (int32_t)(episode % 5);
    ids[1] = (int32_t)(t % 7);
    action[0] = (floats[0] > 0) | (floats[1] > 0.3f) << 1 | (floats[2] < 0.1f) << 2;
    action[1] = (int32_t)((floats[3] + 1.0f) * 2.49f);
    action[2] = t > 0 && draw(episode, t - 1, 4) > 0 ? 3 : 1;
}

exphil_dataset *train_dataset(exphil_context *context, int64_t episodes)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset *dataset = NULL;
    config.spec = &model_case_spec;
    assert_ok(exphil_dataset_create(context, &config, &dataset, NULL));
    for (int64_t e = 0; e < episodes; e++) {
        int64_t frames = train_episode_frames(e);
        float *floats = malloc((size_t)(frames * 13) * sizeof *floats);
        int32_t *ids = malloc((size_t)(frames * 2) * sizeof *ids),
                *actions = malloc((size_t)(frames * 3) * sizeof *actions);
        for (int64_t t = 0; t < frames; t++) train_row(e, t, floats + t * 13, ids + t * 2, actions + t * 3);
        assert_ok(exphil_dataset_add_rows(dataset, (uint64_t)e, frames, floats, ids, actions, NULL));
        free(floats);
        free(ids);
        free(actions);
    }
    return dataset;
}

int32_t train_value(int64_t episode, const exphil_condition_spec *condition)
{
    return 1 + (int32_t)(episode % condition->values);
}

void train_tell(exphil_dataset *dataset, const exphil_condition_spec *condition)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    assert_ok(exphil_dataset_query(dataset, &info, NULL));
    for (int64_t e = 0; e < info.games; e++)
        assert_ok(exphil_dataset_condition(dataset, condition->name, (uint64_t)e, 0,
                                           train_value(e, condition), NULL));
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    exphil_status check_status = (call);                                                                     \
    if (check_status < 0) fail_msg("%s: %s: %s", #call, exphil_status_name(check_status), error.message);    \
  } while (0)

static exphil_context *context_of(const train_plan *plan)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (plan->memory) config.allocator = &plan->memory->hook;
    if (plan->io) config.io = &plan->io->hook;
    config.threads = plan->threads;
    config.cpu_isa = plan->isa;
    config.device = plan->device;
    config.backend_path = plan->backend_path;
    config.cancel = plan->cancel;
    config.cancel_user = plan->cancel_user;
    config.log = plan->log;
    config.log_user = plan->log_user;
    config.log_level = plan->log_level;
    CHECK(exphil_context_create(&config, &context, &error));
    return context;
}

train_run train_begin(const train_plan *plan)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    train_run run = {.context = context_of(plan)};
    run.dataset = train_dataset(run.context, plan->episodes);
    for (int64_t i = 0; i < plan->model.condition_count; i++)
        train_tell(run.dataset, &plan->model.conditions[i]);
    CHECK(exphil_model_create(run.context, &plan->model, &run.model, &error));
    if (!plan->by_hand) {
        exphil_sampling sampling = EXPHIL_SAMPLING_INIT, given = plan->sampling;
        CHECK(exphil_model_sampling(run.model, &sampling, &error));
        given.mode = sampling.mode;
        given.delay_frames = sampling.delay_frames;
        given.action_slots = sampling.action_slots;
        given.neutral_start = sampling.neutral_start;
        given.conditions = sampling.conditions;
        given.condition_count = sampling.condition_count;
        given.delays = sampling.delays;
        given.delay_count = sampling.delay_count;
        if (sampling.time) given.time = sampling.time;
        CHECK(exphil_prefetcher_create(run.dataset, &given, &run.prefetcher, &error));
    }
    CHECK(exphil_optimizer_create(run.model, &plan->adam, &run.optimizer, &error));
    CHECK(exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &plan->trainer, &run.trainer,
                                &error));
    return run;
}

void train_end(train_run *run)
{
    exphil_trainer_destroy(run->trainer);
    exphil_optimizer_destroy(run->optimizer);
    exphil_prefetcher_destroy(run->prefetcher);
    exphil_model_destroy(run->model);
    exphil_dataset_destroy(run->dataset);
    exphil_context_destroy(run->context);
    *run = (train_run){NULL, NULL, NULL, NULL, NULL, NULL};
}

exphil_metrics train_steps(train_run *run, int64_t updates)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    for (int64_t i = 0; i < updates; i++) CHECK(exphil_trainer_step(run->trainer, &metrics, &error));
    return metrics;
}

/* ---- batches of the host's own ----------------------------------------------------------------------------------- */

exphil_batch train_batch(const exphil_model *model, int64_t batch, int64_t time, int64_t first_episode)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_model_query(model, &info, NULL));
    int64_t rows = batch * time, slots = info.action_slots;
    float *floats = calloc((size_t)(rows * 13), sizeof *floats), *mask = calloc((size_t)rows, sizeof *mask);
    int32_t *ids = calloc((size_t)(rows * 2), sizeof *ids),
            *actions = calloc((size_t)(rows * 3), sizeof *actions);
    int32_t *past = calloc((size_t)(rows * 3 * slots) + 1, sizeof *past);
    int64_t told = info.condition_count + (info.delay_count > 0);
    int32_t *conditions = told ? calloc((size_t)(rows * told), sizeof *conditions) : NULL;
    for (int64_t i = 0; i < rows * told; i++) conditions[i] = 1;
    uint8_t *reset = calloc((size_t)rows, 1);
    for (int64_t row = 0; row < rows; row++) {
        train_row(first_episode + row / time, row % time, floats + row * 13, ids + row * 2,
                  actions + row * 3);
        for (int64_t s = 0; s < slots; s++)
            if (row % time > s)
                memcpy(past + (row * slots + s) * 3, actions + (row - 1 - s) * 3, 3 * sizeof *past);
        mask[row] = 1;
        reset[row] = row % time == 0;
    }
    return (exphil_batch){
        sizeof(exphil_batch), batch, time, 0, 0, rows, floats, ids, past, actions, mask, reset, NULL,
        conditions,           NULL,  NULL};
}

void train_batch_free(exphil_batch *batch)
{
    const void *const parts[] = {batch->floats, batch->ids,   batch->past,      batch->actions,
                                 batch->mask,   batch->reset, batch->conditions};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) free((void *)(uintptr_t)parts[i]);
}

/* ---- what there is to compare ------------------------------------------------------------------------------------ */

/* In order with what the trainer has given to the device. */
static void fetch(const exphil_trainer *trainer, void *to, const void *from, size_t bytes)
{
    const xph_backend *backend = trainer->device->backend;
    xph_stream *stream = NULL;
    if (!from || !bytes) return;
    if (trainer->feed.net) {
        assert_int_equal(backend->stream_wait(xph_net_stream(trainer->feed.net)), EXPHIL_OK);
    }
    assert_int_equal(backend->stream_create(trainer->device, 0, &stream), EXPHIL_OK);
    assert_int_equal(backend->download(stream, to, from, bytes), EXPHIL_OK);
    assert_int_equal(backend->stream_wait(stream), EXPHIL_OK);
    backend->stream_destroy(stream);
}

unsigned char *train_snapshot(const exphil_trainer *trainer, size_t *bytes)
{
    const exphil_optimizer *optimizer = trainer->optimizer;
    assert_int_equal(xph_trainer_settle((exphil_trainer *)(uintptr_t)trainer, NULL), EXPHIL_OK);
    const void *const arenas[] = {trainer->weights, optimizer->m, optimizer->v, optimizer->average};
    const int64_t counters[] = {optimizer->updates, trainer->frames, trainer->epoch, trainer->index};
    size_t arena = trainer->arena_bytes;
    *bytes = 4 * arena + trainer->feed.state_bytes + sizeof counters;
    unsigned char *all = calloc(1, *bytes);
    for (int i = 0; i < 4; i++) fetch(trainer, all + (size_t)i * arena, arenas[i], arena);
    fetch(trainer, all + 4 * arena, trainer->feed.state[0], trainer->feed.state_bytes);
    memcpy(all + *bytes - sizeof counters, counters, sizeof counters);
    return all;
}
