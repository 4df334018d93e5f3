/* From replays to a policy in one process.
 *   train [-n UPDATES] OUT.safetensors REPLAY.slp|FOLDER...
 * The order is that of exphil.h section 9: data, model, batches, optimizer, trainer, updates, a look at frames that were
 * held out, weights. Files and folders are taken in the order given, those of a folder by name: the same files give the
 * same weights. What cannot be used of a replay is said and passed over. */
#define _DEFAULT_SOURCE
#include "system.h"

#include <errno.h>
#include <exphil/exphil.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Small enough to see something within a minute; an overnight run takes hidden 256 and a hundred times the updates. */
enum { HIDDEN = 64, HEAD_WIDTH = 64, BATCH = 16, UPDATES = 300, REPORTS = 10 };

struct run {
    exphil_context *context;
    exphil_dataset *all, *kept, *held_out;
    exphil_model *model, *trained;
    exphil_prefetcher *prefetcher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
};

static int complain(const char *what, const exphil_error *error)
{
    return fprintf(stderr, "train: %s: %s: %s\n", what, exphil_status_name(error->status), error->message), 1;
}

/* A file, or the replays of a folder. Whoever collects replays has damaged ones among them: they do not stop the run. */
static void add(exphil_dataset *all, const char *path)
{
    char **names;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_replay_result result = EXPHIL_REPLAY_RESULT_INIT;
    int count = system_list(path, ".slp", &names);
    if (count < 0) {
        if (exphil_dataset_add_replay(all, path, NULL, &result, &error) < 0)
            complain(path, &error);
        else
            printf("%s: %lld frames\n", path, (long long)result.frames);
        return;
    }
    for (int i = 0; i < count; i++) {
        size_t bytes = strlen(path) + strlen(names[i]) + 2;
        char *file = malloc(bytes);
        if (file && snprintf(file, bytes, "%s/%s", path, names[i]) > 0) add(all, file);
        free(file);
        free(names[i]);
    }
    free(names);
}

/* Whether OUT can be written shows before the work, not after it: a file beside it is made and removed again. OUT itself
 * stays as it is until the weights are there. */
static int can_write(const char *out)
{
    size_t bytes = strlen(out) + sizeof ".trying";
    char *beside = malloc(bytes);
    int can = beside && snprintf(beside, bytes, "%s.trying", out) > 0 && system_can_write(out, beside);
    if (!can) fprintf(stderr, "train: %s cannot be written: %s\n", out, strerror(errno));
    free(beside);
    return can;
}

/* One game cannot be divided by games: then the end of each player's game is held out. */
static exphil_status split(struct run *r, exphil_error *error)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_split_config config = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_status status = exphil_dataset_query(r->all, &info, error);
    if (status < 0) return status;
    if (!info.frames) {
        *error = (exphil_error){sizeof *error, EXPHIL_E_INVALID, 0, "no replay could be used"};
        return EXPHIL_E_INVALID;
    }
    printf("%lld frames of %lld games\n", (long long)info.frames, (long long)info.games);
    config.held_out = 0.1;
    config.by = info.games > 1 ? EXPHIL_SPLIT_GAME : EXPHIL_SPLIT_TIME;
    return exphil_dataset_split(r->all, &config, &r->kept, &r->held_out, error);
}

static exphil_status prepare(struct run *r, int64_t updates, exphil_error *error)
{
    exphil_model_config model = EXPHIL_MODEL_CONFIG_INIT;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_optimizer_config optimizer = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_status status;
    model.hidden = HIDDEN, model.head_width = HEAD_WIDTH, model.seed = 1;
    optimizer.schedule = EXPHIL_SCHEDULE_COSINE, optimizer.rate = 2e-3, optimizer.decay = 0.01;
    optimizer.warmup_updates = updates / 20, optimizer.total_updates = updates;
    if ((status = exphil_model_create(r->context, &model, &r->model, error)) < 0 ||
        (status = exphil_model_sampling(r->model, &sampling, error)) < 0)
        return status;
    sampling.batch = BATCH, sampling.seed = 1;
    if ((status = exphil_prefetcher_create(r->kept, &sampling, &r->prefetcher, error)) < 0 ||
        (status = exphil_optimizer_create(r->model, &optimizer, &r->optimizer, error)) < 0)
        return status;
    return exphil_trainer_create(r->model, r->optimizer, r->prefetcher, NULL, &r->trainer, error);
}

static exphil_status train(struct run *r, int64_t updates, exphil_error *error)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    for (int64_t u = 1; u <= updates; u++) {
        exphil_status status = exphil_trainer_step(r->trainer, &metrics, error);
        if (status < 0) return status;
        if (u * REPORTS / updates != (u - 1) * REPORTS / updates)
            printf("update %lld of %lld, epoch %lld: loss %.4f, %.0f frames/s\n", (long long)u,
                   (long long)updates, (long long)metrics.epoch, metrics.loss,
                   1e9 * (double)BATCH * 60 / (double)metrics.time_ns),
                fflush(stdout);
    }
    return EXPHIL_OK;
}

/* Most frames repeat the action before: what counts is the share of changes that was foreseen. */
static exphil_status judge(struct run *r, exphil_error *error)
{
    exphil_report report = EXPHIL_REPORT_INIT;
    exphil_status status =
        exphil_trainer_evaluate(r->trainer, EXPHIL_WEIGHTS, r->held_out, r->kept, &report, error);
    if (status >= 0)
        printf("held out %lld frames: %.1f %% exact (repeating the last action %.1f %%), %.1f %% of %lld "
               "changes\n",
               (long long)report.frames, 100 * report.exact_accuracy, 100 * report.exact_copy,
               100 * report.exact_change_accuracy, (long long)report.change_frames);
    return status;
}

int main(int argc, char **argv)
{
    system_arguments(&argc, &argv);
    struct run r = {0};
    exphil_error error = EXPHIL_ERROR_INIT;
    int arg = argc > 2 && !strcmp(argv[1], "-n") ? 3 : 1;
    int64_t updates = arg == 3 ? atoll(argv[2]) : UPDATES;
    if (argc < arg + 2 || updates < 1)
        return fprintf(stderr, "train [-n UPDATES] OUT.safetensors REPLAY.slp|FOLDER...\n"), 2;
    if (!can_write(argv[arg])) return 1;
    if (exphil_context_create(NULL, &r.context, &error) < 0 ||
        exphil_dataset_create(r.context, NULL, &r.all, &error) < 0)
        return complain("start", &error);
    for (int i = arg + 1; i < argc; i++) add(r.all, argv[i]);
    int failed = split(&r, &error) < 0 || prepare(&r, updates, &error) < 0 ||
                 train(&r, updates, &error) < 0 || judge(&r, &error) < 0 ||
                 exphil_trainer_model(r.trainer, EXPHIL_WEIGHTS, &r.trained, &error) < 0 ||
                 exphil_model_save(r.trained, argv[arg], &error) < 0;
    if (!failed) printf("wrote %s\n", argv[arg]);
    exphil_model_destroy(r.trained);
    exphil_trainer_destroy(r.trainer);
    exphil_optimizer_destroy(r.optimizer);
    exphil_prefetcher_destroy(r.prefetcher);
    exphil_model_destroy(r.model);
    exphil_dataset_destroy(r.held_out);
    exphil_dataset_destroy(r.kept);
    exphil_dataset_destroy(r.all);
    exphil_context_destroy(r.context);
    return failed ? complain("nothing is written", &error) : 0;
}
