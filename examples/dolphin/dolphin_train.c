/* A small policy from a recorded corpus: the order of exphil.h section 9. */
#include "dolphin_train.h"

#include <stdio.h>

/* The teacher is a function of what is seen: no memory, no past actions, which a policy would only learn to repeat. */
enum { HIDDEN = 64, BATCH = 32, TIME = 32, UPDATES = 4000, REPORTS = 8 };

struct run {
    exphil_dataset *all, *kept, *held_out;
    exphil_model *model, *trained;
    exphil_prefetcher *prefetcher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
};

static exphil_status prepare(exphil_context *context, const exphil_spec *spec, const char *corpus,
                             struct run *r, exphil_error *error)
{
    exphil_model_config model = EXPHIL_MODEL_CONFIG_INIT;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_optimizer_config optimizer = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_split_config split = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_status status;
    model.spec = spec, model.blocks = "mlp*2", model.hidden = HIDDEN, model.head_width = HIDDEN,
    model.seed = 1;
    model.no_previous_action = 1;
    optimizer.schedule = EXPHIL_SCHEDULE_COSINE, optimizer.rate = 4e-3, optimizer.decay = 0.01;
    optimizer.warmup_updates = UPDATES / 20, optimizer.total_updates = UPDATES;
    split.held_out = 0.05, split.by = EXPHIL_SPLIT_TIME;
    if ((status = exphil_dataset_open(context, corpus, &r->all, error)) < 0 ||
        (status = exphil_dataset_split(r->all, &split, &r->kept, &r->held_out, error)) < 0 ||
        (status = exphil_model_create(context, &model, &r->model, error)) < 0 ||
        (status = exphil_model_sampling(r->model, &sampling, error)) < 0)
        return status;
    sampling.batch = BATCH, sampling.time = TIME, sampling.seed = 1;
    if ((status = exphil_prefetcher_create(r->kept, &sampling, &r->prefetcher, error)) < 0 ||
        (status = exphil_optimizer_create(r->model, &optimizer, &r->optimizer, error)) < 0)
        return status;
    return exphil_trainer_create(r->model, r->optimizer, r->prefetcher, NULL, &r->trainer, error);
}

static exphil_status update(struct run *r, exphil_error *error)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    for (int u = 1; u <= UPDATES; u++) {
        exphil_status status = exphil_trainer_step(r->trainer, &metrics, error);
        if (status < 0) return status;
        if (u % (UPDATES / REPORTS) == 0)
            printf("update %d of %d, epoch %lld: loss %.4f\n", u, UPDATES, (long long)metrics.epoch,
                   metrics.loss),
                fflush(stdout);
    }
    return EXPHIL_OK;
}

static exphil_status judge(struct run *r, exphil_error *error)
{
    exphil_report report = EXPHIL_REPORT_INIT;
    exphil_status status =
        exphil_trainer_evaluate(r->trainer, EXPHIL_WEIGHTS, r->held_out, r->kept, &report, error);
    if (status >= 0)
        printf("held out %lld frames: %.1f %% as recorded, of %lld changes %.1f %%\n",
               (long long)report.frames, 100 * report.exact_accuracy, (long long)report.change_frames,
               100 * report.exact_change_accuracy);
    return status;
}

exphil_status dolphin_train(exphil_context *context, const exphil_spec *spec, const char *corpus,
                            const char *weights, exphil_error *error)
{
    struct run r = {0};
    exphil_status status = prepare(context, spec, corpus, &r, error);
    if (status >= 0) status = update(&r, error);
    if (status >= 0) status = judge(&r, error);
    if (status >= 0) status = exphil_trainer_model(r.trainer, EXPHIL_WEIGHTS, &r.trained, error);
    if (status >= 0) status = exphil_model_save(r.trained, weights, error);
    exphil_model_destroy(r.trained);
    exphil_trainer_destroy(r.trainer);
    exphil_optimizer_destroy(r.optimizer);
    exphil_prefetcher_destroy(r.prefetcher);
    exphil_model_destroy(r.model);
    exphil_dataset_destroy(r.held_out);
    exphil_dataset_destroy(r.kept);
    exphil_dataset_destroy(r.all);
    return status;
}
