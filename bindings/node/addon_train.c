/* Datasets and trainers. Training runs on a worker of Node: progress and the end come as messages through one thread-safe
 * function, in order, and are told on the main thread. */
#include "addon.h"

#include <stdio.h>
#include <stdlib.h>

static napi_value wrap_dataset(napi_env env, exphil_dataset *dataset, struct owner *owner)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    struct handle *handle = NULL;
    exphil_status status = exphil_dataset_query(dataset, &info, &error);
    napi_value value = wrap(env, A_DATASET, dataset, owner, &handle);
    if (!value || !check(env, status, &error)) return NULL;
    handle->floats = info.float_count, handle->ids = info.id_count, handle->heads = info.head_count;
    return value;
}

static napi_value dataset_create(napi_env env, napi_callback_info info)
{
    napi_value value[2]; /* context, spec */
    struct handle *context;
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_id_spec ids[EXPHIL_IDS_MAX] = {{0}};
    exphil_head_spec heads[EXPHIL_HEADS_MAX] = {{0}};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_dataset *dataset = NULL;
    struct texts texts = {.count = 0};
    if (!arguments(env, info, 2, value) || !(context = handle_of(env, value[0], A_CONTEXT))) return NULL;
    bool own = is_set(env, value[1]);
    if (own) config.spec = &spec;
    bool made = (!own || fill_spec(env, value[1], &spec, &texts, ids, heads)) &&
                check(env, exphil_dataset_create(context->raw, &config, &dataset, &error), &error);
    drop_texts(&texts);
    return made ? wrap_dataset(env, dataset, context->owner) : NULL;
}

static napi_value dataset_open(napi_env env, napi_callback_info info)
{
    napi_value value[2];
    struct handle *context;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_dataset *dataset = NULL;
    struct texts texts = {.count = 0};
    if (!arguments(env, info, 2, value) || !(context = handle_of(env, value[0], A_CONTEXT))) return NULL;
    const char *path = keep_text(env, &texts, value[1], "path");
    bool made = path && check(env, exphil_dataset_open(context->raw, path, &dataset, &error), &error);
    drop_texts(&texts);
    return made ? wrap_dataset(env, dataset, context->owner) : NULL;
}

static napi_value dataset_save(napi_env env, napi_callback_info info)
{
    napi_value value[2];
    struct handle *dataset;
    exphil_error error = EXPHIL_ERROR_INIT;
    struct texts texts = {.count = 0};
    if (!arguments(env, info, 2, value) || !(dataset = handle_of(env, value[0], A_DATASET))) return NULL;
    const char *path = keep_text(env, &texts, value[1], "path");
    if (path) check(env, exphil_dataset_save(dataset->raw, path, &error), &error);
    drop_texts(&texts);
    return NULL;
}

/* (dataset, path, options) */
static napi_value add_replay(napi_env env, napi_callback_info info)
{
    napi_value value[3];
    struct handle *dataset;
    exphil_replay_config config = EXPHIL_REPLAY_CONFIG_INIT;
    exphil_replay_result result = EXPHIL_REPLAY_RESULT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    struct texts texts = {.count = 0};
    if (!arguments(env, info, 3, value) || !(dataset = handle_of(env, value[0], A_DATASET))) return NULL;
    const char *path = keep_text(env, &texts, value[1], "path");
    bool added = path && fill(env, value[2], replay_fields, &config, &texts) &&
                 check(env, exphil_dataset_add_replay(dataset->raw, path, &config, &result, &error), &error);
    drop_texts(&texts);
    return added ? tell(env, result_fields, &result) : NULL;
}

/* (dataset, game, floats, ids, actions): as many frames as the actions have. */
static napi_value add_rows(napi_env env, napi_callback_info info)
{
    napi_value value[5];
    struct handle *dataset;
    exphil_error error = EXPHIL_ERROR_INIT;
    void *floats, *ids, *actions;
    bool typed = false;
    uint64_t game = 0;
    size_t length = 0;
    char message[96];
    if (!arguments(env, info, 5, value) || !(dataset = handle_of(env, value[0], A_DATASET)) ||
        !read_number(env, value[1], "game", F_U64, &game))
        return NULL;
    napi_is_typedarray(env, value[4], &typed);
    if (!typed) return array(env, value[4], napi_int32_array, -1, "actions", &actions), NULL;
    napi_get_typedarray_info(env, value[4], NULL, &length, NULL, NULL, NULL);
    if ((int64_t)length % dataset->heads) {
        snprintf(message, sizeof message, "actions: has %zu elements, which are no whole frames of %lld",
                 length, (long long)dataset->heads);
        return fail(env, EXPHIL_E_INVALID, message, 0);
    }
    int64_t frames = (int64_t)length / dataset->heads;
    if (!array(env, value[4], napi_int32_array, (int64_t)length, "actions", &actions) ||
        !array(env, value[2], napi_float32_array, frames * dataset->floats, "floats", &floats) ||
        !array(env, value[3], napi_int32_array, frames * dataset->ids, "ids", &ids))
        return NULL;
    check(env, exphil_dataset_add_rows(dataset->raw, game, frames, floats, ids, actions, &error), &error);
    return NULL;
}

static napi_value dataset_info(napi_env env, napi_callback_info info)
{
    napi_value value;
    struct handle *dataset;
    exphil_dataset_info raw = EXPHIL_DATASET_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!arguments(env, info, 1, &value) || !(dataset = handle_of(env, value, A_DATASET))) return NULL;
    if (!check(env, exphil_dataset_query(dataset->raw, &raw, &error), &error)) return NULL;
    return tell(env, dataset_info_fields, &raw);
}

/* (model, dataset, sampling, optimizer, trainer). The trainer keeps optimizer and prefetcher alive. */
static napi_value trainer_create(napi_env env, napi_callback_info info)
{
    napi_value value[5];
    struct handle *model, *dataset;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_optimizer_config rates = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_prefetcher *prefetcher = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    if (!arguments(env, info, 5, value) || !(model = handle_of(env, value[0], A_MODEL)) ||
        !(dataset = handle_of(env, value[1], A_DATASET)) ||
        !check(env, exphil_model_sampling(model->raw, &sampling, &error), &error) ||
        !fill(env, value[2], sampling_fields, &sampling, NULL) ||
        !fill(env, value[3], optimizer_fields, &rates, NULL) ||
        !fill(env, value[4], trainer_fields, &config, NULL))
        return NULL;
    bool made =
        check(env, exphil_prefetcher_create(dataset->raw, &sampling, &prefetcher, &error), &error) &&
        check(env, exphil_optimizer_create(model->raw, &rates, &optimizer, &error), &error) &&
        check(env, exphil_trainer_create(model->raw, optimizer, prefetcher, &config, &trainer, &error),
              &error);
    exphil_prefetcher_destroy(prefetcher);
    exphil_optimizer_destroy(optimizer);
    return made ? wrap(env, A_TRAINER, trainer, model->owner, NULL) : NULL;
}

/* A trainer that no worker uses: between two updates of a run the library itself would let others in. */
static struct handle *trainer_of(napi_env env, napi_value value)
{
    struct handle *trainer = handle_of(env, value, A_TRAINER);
    if (!trainer || !trainer->busy) return trainer;
    fail(env, EXPHIL_E_BUSY, "trainer: is in use on a worker; await train() first", 0);
    return NULL;
}

static napi_value trainer_step(napi_env env, napi_callback_info info)
{
    napi_value value;
    struct handle *trainer;
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!arguments(env, info, 1, &value) || !(trainer = trainer_of(env, value))) return NULL;
    if (!check(env, exphil_trainer_step(trainer->raw, &metrics, &error), &error)) return NULL;
    return tell(env, metrics_fields, &metrics);
}

struct run;

struct message {
    struct run *run;
    exphil_metrics metrics;
};

/* One run of updates on a worker. Freed when both the last message and the end of the work were seen. The last message is
 * part of it, so that no lack of memory can lose the end. */
struct run {
    struct message end;
    struct handle *trainer;
    napi_async_work work;
    napi_threadsafe_function tell;
    napi_deferred promise;
    napi_ref keep; /* the trainer's external, and so its handle */
    int64_t updates;
    exphil_metrics last;
    exphil_error error;
    exphil_status status;
    int parts;
};

static void part_done(napi_env env, struct run *run)
{
    if (--run->parts) return;
    if (env) napi_delete_async_work(env, run->work);
    free(run);
}

static void run_ends(napi_env env, struct run *run)
{
    run->trainer->busy = false;
    napi_delete_reference(env, run->keep);
    if (run->status < 0)
        napi_reject_deferred(env, run->promise, make_error(env, &run->error, run->status));
    else
        napi_resolve_deferred(env, run->promise, tell(env, metrics_fields, &run->last));
}

/* On the main thread. Without an environment Node is ending, and nobody listens any more. The listener is exphil.js's, which
 * keeps what the caller's throws. */
static void hear(napi_env env, napi_value listener, void *context, void *data)
{
    struct message *message = data;
    struct run *run = message->run;
    napi_value undefined, metrics;
    (void)context;
    if (message == &run->end) {
        if (env) run_ends(env, run);
        part_done(env, run);
        return;
    }
    if (env && listener && is_set(env, listener)) {
        metrics = tell(env, metrics_fields, &message->metrics);
        napi_get_undefined(env, &undefined);
        napi_call_function(env, undefined, listener, 1, &metrics, NULL);
    }
    free(message);
}

static void send_progress(struct run *run)
{
    struct message *message = malloc(sizeof *message);
    if (!message) return; /* progress that nobody hears of; the end is heard */
    *message = (struct message){run, run->last};
    if (napi_call_threadsafe_function(run->tell, message, napi_tsfn_nonblocking) != napi_ok) free(message);
}

/* On the worker. */
static void execute(napi_env env, void *data)
{
    struct run *run = data;
    (void)env;
    for (int64_t i = 0; i < run->updates && !atomic_load(&run->trainer->stop); i++) {
        run->status = exphil_trainer_step(run->trainer->raw, &run->last, &run->error);
        if (run->status < 0) break;
        send_progress(run);
    }
}

/* On the main thread, after execute: messages still in the queue are heard before the last one. */
static void complete(napi_env env, napi_status status, void *data)
{
    struct run *run = data;
    (void)status;
    run->end.run = run;
    if (napi_call_threadsafe_function(run->tell, &run->end, napi_tsfn_nonblocking) != napi_ok)
        part_done(env, run); /* Node is ending */
    napi_release_threadsafe_function(run->tell, napi_tsfn_release);
    part_done(env, run);
}

/* (trainer, updates, listener) -> promise of the last update's metrics. */
static napi_value trainer_train(napi_env env, napi_callback_info info)
{
    napi_value value[3], name, promise;
    struct handle *trainer;
    int64_t updates = 0;
    if (!arguments(env, info, 3, value) || !(trainer = trainer_of(env, value[0])) ||
        !read_number(env, value[1], "updates", F_I64, &updates))
        return NULL;
    if (updates < 1) return fail(env, EXPHIL_E_INVALID, "updates: must be at least 1", 0);
    struct run *run = calloc(1, sizeof *run);
    if (!run) return fail(env, EXPHIL_E_MEMORY, "no memory for a run", 0);
    *run = (struct run){.trainer = trainer,
                        .updates = updates,
                        .last = EXPHIL_METRICS_INIT,
                        .error = EXPHIL_ERROR_INIT,
                        .parts = 2};
    atomic_store(&trainer->stop, 0);
    napi_create_string_utf8(env, "exphil.train", NAPI_AUTO_LENGTH, &name);
    if (napi_create_threadsafe_function(env, value[2], NULL, name, 0, 1, NULL, NULL, NULL, hear,
                                        &run->tell) != napi_ok)
        return free(run), fail(env, EXPHIL_E_INVALID, "onProgress: must be a function", 0);
    napi_create_reference(env, value[0], 1, &run->keep);
    napi_create_promise(env, &run->promise, &promise);
    napi_create_async_work(env, NULL, name, execute, complete, run, &run->work);
    napi_queue_async_work(env, run->work);
    trainer->busy = true;
    return promise;
}

static napi_value trainer_stop(napi_env env, napi_callback_info info)
{
    napi_value value;
    struct handle *trainer;
    if (!arguments(env, info, 1, &value) || !(trainer = handle_of(env, value, A_TRAINER))) return NULL;
    atomic_store(&trainer->stop, 1);
    return NULL;
}

/* (trainer, averaged) */
static napi_value trainer_model(napi_env env, napi_callback_info info)
{
    napi_value value[2];
    struct handle *trainer;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
    int32_t averaged = 0;
    if (!arguments(env, info, 2, value) || !(trainer = trainer_of(env, value[0])) ||
        !read_number(env, value[1], "averaged", F_FLAG, &averaged))
        return NULL;
    int32_t which = averaged ? EXPHIL_WEIGHTS_AVERAGED : EXPHIL_WEIGHTS;
    if (!check(env, exphil_trainer_model(trainer->raw, which, &model, &error), &error)) return NULL;
    return wrap_model(env, model, trainer->owner);
}

static napi_value save_or_resume(napi_env env, napi_callback_info info, bool save)
{
    napi_value value[2];
    struct handle *trainer;
    exphil_error error = EXPHIL_ERROR_INIT;
    struct texts texts = {.count = 0};
    if (!arguments(env, info, 2, value) || !(trainer = trainer_of(env, value[0]))) return NULL;
    const char *path = keep_text(env, &texts, value[1], "path");
    if (path)
        check(env,
              save ? exphil_trainer_save(trainer->raw, path, &error)
                   : exphil_trainer_resume(trainer->raw, path, &error),
              &error);
    drop_texts(&texts);
    return NULL;
}

static napi_value trainer_save(napi_env env, napi_callback_info info)
{
    return save_or_resume(env, info, true);
}

static napi_value trainer_resume(napi_env env, napi_callback_info info)
{
    return save_or_resume(env, info, false);
}

/* (trainer, dataset) */
static napi_value trainer_evaluate(napi_env env, napi_callback_info info)
{
    napi_value value[2];
    struct handle *trainer, *dataset;
    exphil_report report = EXPHIL_REPORT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!arguments(env, info, 2, value) || !(trainer = trainer_of(env, value[0])) ||
        !(dataset = handle_of(env, value[1], A_DATASET)))
        return NULL;
    if (!check(env,
               exphil_trainer_evaluate(trainer->raw, EXPHIL_WEIGHTS, dataset->raw, NULL, &report, &error),
               &error))
        return NULL;
    return tell(env, report_fields, &report);
}

const struct entry train_entries[] = {{"datasetCreate", dataset_create},
                                      {"datasetOpen", dataset_open},
                                      {"datasetSave", dataset_save},
                                      {"addReplay", add_replay},
                                      {"addRows", add_rows},
                                      {"datasetInfo", dataset_info},
                                      {"trainerCreate", trainer_create},
                                      {"trainerStep", trainer_step},
                                      {"trainerTrain", trainer_train},
                                      {"trainerStop", trainer_stop},
                                      {"trainerModel", trainer_model},
                                      {"trainerSave", trainer_save},
                                      {"trainerResume", trainer_resume},
                                      {"trainerEvaluate", trainer_evaluate},
                                      {NULL, NULL}};
