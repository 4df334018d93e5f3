/* The policy of the goals (288 numbers a frame, width 256, two Mamba blocks, six heads) as a host trains and
 * plays it on a device, through the public interface alone: updates of 256 sequences of 60 frames in every
 * precision, fed by the prefetcher and by hand, the device memory that they request, and ticks of 1, 32 and
 * 256 players.
 *
 *   cuda_policy [--device cuda:0] [--backend FOLDER] [--json] [--smoke] [PART]...
 *
 * PART: ticks, f32, tf32, bf16 or f16 (updates); all of them where none is named. --json: each row as a line
 * of JSON when it is known. --smoke: a small policy, little of everything, to check that it runs, also on the
 * emulated GPU. Exit status 77: no such device. */
#include "card_program.h"

#include <stdio.h>
#include <stdlib.h>

enum { FLOATS = 288, HEADS = 6, BLOCKS_MOST = 16 };

static const exphil_head_spec heads[HEADS] = {
    {"buttons", EXPHIL_BERNOULLI, 8, 0, 0},   {"main_x", EXPHIL_CATEGORICAL, 17, 8, 0},
    {"main_y", EXPHIL_CATEGORICAL, 17, 8, 0}, {"c_x", EXPHIL_CATEGORICAL, 17, 8, 0},
    {"c_y", EXPHIL_CATEGORICAL, 17, 8, 0},    {"shoulder", EXPHIL_CATEGORICAL, 5, 0, 0},
};

typedef struct plan {
    card_options options;
    int64_t hidden, batch, time, episodes, frames; /* frames of an episode */
    int64_t updates, blocks, long_run, ticks;      /* updates of a block that is timed, blocks */
} plan;

static float number(uint32_t *random)
{
    *random = *random * 1664525u + 1013904223u;
    return (float)((double)(*random >> 8) / 8388608.0 - 1.0);
}

/* ---- what there is to train ---- */

static exphil_spec spec_of(void)
{
    exphil_spec spec = EXPHIL_SPEC_INIT;
    spec.layout = "bench";
    spec.codec = "bench";
    spec.float_count = FLOATS;
    spec.head_count = HEADS;
    spec.heads = heads;
    return spec;
}

static exphil_model *model_of(const plan *p, exphil_context *context)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
    const exphil_spec spec = spec_of();
    config.spec = &spec;
    config.blocks = "mamba*2";
    config.hidden = p->hidden;
    config.seed = 1;
    config.no_previous_action = 1;
    card_must("model", exphil_model_create(context, &config, &model, &error), &error);
    return model;
}

static exphil_dataset *data_of(const plan *p, exphil_context *context)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_dataset *dataset = NULL;
    const exphil_spec spec = spec_of();
    const size_t frames = (size_t)p->frames;
    float *floats = malloc(frames * FLOATS * sizeof *floats);
    int32_t *actions = malloc(frames * HEADS * sizeof *actions);
    uint32_t random = 1;
    config.spec = &spec;
    card_must("dataset", exphil_dataset_create(context, &config, &dataset, &error), &error);
    for (int64_t e = 0; e < p->episodes; e++) {
        for (size_t i = 0; i < frames * FLOATS; i++) floats[i] = number(&random);
        for (size_t i = 0; i < frames * HEADS; i++)
            actions[i] = (int32_t)((i / HEADS / 7 + i) % (size_t)heads[i % HEADS].count);
        card_must("rows",
                  exphil_dataset_add_rows(dataset, (uint64_t)e, p->frames, floats, NULL, actions, &error),
                  &error);
    }
    free(floats);
    free(actions);
    return dataset;
}

typedef struct training {
    exphil_context *context;
    exphil_dataset *dataset;
    exphil_model *model;
    exphil_prefetcher *prefetcher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer; /* NULL: this device has not this precision */
    exphil_batch batch;
    double loss;
} training;

static training training_of(const plan *p, int32_t precision)
{
    training t = {.context = card_open(&p->options, 0)};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    adam.rate = 1e-4;
    adam.decay = 0.01;
    adam.clip_norm = 1;
    config.precision = precision;
    t.dataset = data_of(p, t.context);
    t.model = model_of(p, t.context);
    card_must("sampling", exphil_model_sampling(t.model, &sampling, &error), &error);
    sampling.batch = p->batch;
    sampling.time = p->time;
    card_must("prefetcher", exphil_prefetcher_create(t.dataset, &sampling, &t.prefetcher, &error), &error);
    card_must("optimizer", exphil_optimizer_create(t.model, &adam, &t.optimizer, &error), &error);
    const exphil_status status =
        exphil_trainer_create(t.model, t.optimizer, t.prefetcher, &config, &t.trainer, &error);
    if (status != EXPHIL_E_UNSUPPORTED) card_must("trainer", status, &error);
    return t;
}

static void training_end(training *t)
{
    exphil_trainer_destroy(t->trainer);
    exphil_optimizer_destroy(t->optimizer);
    exphil_prefetcher_destroy(t->prefetcher);
    exphil_model_destroy(t->model);
    exphil_dataset_destroy(t->dataset);
    exphil_context_destroy(t->context);
}

/* A batch of the host's own, the same every time. */
static void give_batch(training *t, const plan *p)
{
    const size_t rows = (size_t)(p->batch * p->time);
    uint32_t random = 7;
    float *floats = malloc(rows * FLOATS * sizeof *floats), *mask = malloc(rows * sizeof *mask);
    int32_t *actions = malloc(rows * HEADS * sizeof *actions);
    uint8_t *reset = calloc(rows, 1);
    for (size_t i = 0; i < rows * FLOATS; i++) floats[i] = number(&random);
    for (size_t i = 0; i < rows * HEADS; i++)
        actions[i] = (int32_t)(i / HEADS % (size_t)heads[i % HEADS].count);
    for (size_t i = 0; i < rows; i++) mask[i] = 1;
    t->batch = (exphil_batch)EXPHIL_BATCH_INIT;
    t->batch.batch = p->batch;
    t->batch.time = p->time;
    t->batch.frames = (int64_t)rows;
    t->batch.floats = floats;
    t->batch.actions = actions;
    t->batch.mask = mask;
    t->batch.reset = reset;
}

static void take_batch(training *t)
{
    free((void *)(uintptr_t)t->batch.floats);
    free((void *)(uintptr_t)t->batch.actions);
    free((void *)(uintptr_t)t->batch.mask);
    free((void *)(uintptr_t)t->batch.reset);
}

/* ---- updates ---- */

static void update(training *t, int64_t count, bool by_hand)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    for (int64_t i = 0; i < count; i++)
        card_must("update",
                  by_hand ? exphil_trainer_step_batch(t->trainer, &t->batch, &metrics, &error)
                          : exphil_trainer_step(t->trainer, &metrics, &error),
                  &error);
    t->loss = metrics.loss;
}

/* Milliseconds of one of many updates: the host may be one ahead of the device. */
static double update_ms(training *t, const plan *p, bool by_hand)
{
    double sample[BLOCKS_MOST];
    update(t, 4, by_hand);
    for (int64_t i = 0; i < p->blocks; i++) {
        const double begin = card_now();
        update(t, p->updates, by_hand);
        sample[i] = (card_now() - begin) * 1e3 / (double)p->updates;
    }
    return card_median(sample, p->blocks);
}

static exphil_memory_info memory_of(const training *t)
{
    exphil_memory_info info = EXPHIL_MEMORY_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    card_must("memory", exphil_context_memory(t->context, &info, &error), &error);
    return info;
}

static json_t *memory_row(training *t, const plan *p, const exphil_memory_info *early)
{
    update(t, p->long_run, false);
    const exphil_memory_info late = memory_of(t);
    const double requests = (double)late.device_requests, reused = (double)late.device_reused;
    const double asked = (requests - reused) - (double)(early->device_requests - early->device_reused);
    json_t *row =
        json_pack("{s:s, s:I, s:f, s:f, s:f, s:f}", "subject", "memory", "updates", (json_int_t)p->long_run,
                  "requests", requests, "reused", reused, "driver_allocations_after_the_third", asked,
                  "peak_bytes", (double)late.device_peak_bytes);
    printf("memory: %.0f requests, %.0f met from what was there; of the driver after the third update: %.0f; "
           "peak %.1f MB\n",
           requests, reused, asked, (double)late.device_peak_bytes * 1e-6);
    return row;
}

static void updates(const plan *p)
{
    static const struct {
        const char *name;
        int32_t precision;
        double bar_ms;
    } kinds[] = {{"f32", EXPHIL_PRECISION_F32, 2.2},
                 {"tf32", EXPHIL_PRECISION_TF32, 1.2},
                 {"bf16", EXPHIL_PRECISION_BF16, 0.85},
                 {"f16", EXPHIL_PRECISION_F16, 0}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (!card_asked_for(&p->options, kinds[k].name)) continue;
        training t = training_of(p, kinds[k].precision);
        if (!t.trainer) {
            printf("SKIPPED: no training in %s on this device\n", kinds[k].name);
            training_end(&t);
            continue;
        }
        update(&t, 3, false);
        const exphil_memory_info early = memory_of(&t);
        const double fed = update_ms(&t, p, false);
        if (kinds[k].precision == EXPHIL_PRECISION_BF16) card_row(&p->options, memory_row(&t, p, &early));
        give_batch(&t, p);
        const double by_hand = update_ms(&t, p, true);
        printf("update, %-4s: %8.3f ms with the prefetcher, %8.3f ms by hand, loss %.4f\n", kinds[k].name,
               fed, by_hand, t.loss);
        card_row(&p->options,
                 json_pack("{s:s, s:s, s:f, s:f, s:f, s:f}", "subject", "update", "type", kinds[k].name, "ms",
                           fed, "by_hand_ms", by_hand, "bar_ms", kinds[k].bar_ms, "loss", t.loss));
        take_batch(&t);
        training_end(&t);
    }
}

/* ---- ticks ---- */

static json_t *tick_row(const plan *p, const exphil_model *model, int64_t streams, double bar_us)
{
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session *session = NULL;
    uint32_t random = 3;
    float *floats = malloc((size_t)streams * FLOATS * sizeof *floats);
    int32_t *actions = malloc((size_t)streams * HEADS * sizeof *actions);
    double *sample = malloc((size_t)p->ticks * sizeof *sample);
    for (int64_t i = 0; i < streams * FLOATS; i++) floats[i] = number(&random);
    config.streams = streams;
    card_must("session", exphil_session_create(model, &config, &session, &error), &error);
    for (int64_t i = -20; i < p->ticks; i++) {
        const double begin = card_now();
        if (exphil_session_step_row(session, floats, NULL, NULL, actions) < 0) {
            (void)exphil_session_error(session, &error);
            card_must("tick", error.status < 0 ? error.status : EXPHIL_E_INTERNAL, &error);
        }
        if (i >= 0) sample[i] = (card_now() - begin) * 1e6;
    }
    const double us = card_median(sample, p->ticks), late = sample[p->ticks * 99 / 100];
    printf("tick of %3d players: %8.1f us, of hundred the slowest %.1f us\n", (int)streams, us, late);
    exphil_session_destroy(session);
    free(floats);
    free(actions);
    free(sample);
    return json_pack("{s:s, s:I, s:f, s:f, s:f}", "subject", "tick", "streams", (json_int_t)streams, "us", us,
                     "p99_us", late, "bar_us", bar_us);
}

static void ticks(const plan *p)
{
    static const struct {
        int64_t streams;
        double bar_us;
    } kinds[] = {{1, 45}, {32, 0}, {256, 80}};
    exphil_context *context = card_open(&p->options, 0);
    exphil_model *model = model_of(p, context);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const int64_t streams = p->options.smoke && kinds[k].streams > 32 ? 33 : kinds[k].streams;
        card_row(&p->options, tick_row(p, model, streams, kinds[k].bar_us));
    }
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* ---- the program ---- */

static plan plan_of(int count, char **words)
{
    plan p = {.options = card_options_of(count, words)};
    p.hidden = 256, p.batch = 256, p.time = 60, p.episodes = 512, p.frames = 130;
    p.updates = 20, p.blocks = 9, p.long_run = 1000, p.ticks = 2000;
    if (!p.options.smoke) return p;
    p.hidden = 8, p.batch = 2, p.time = 3, p.episodes = 4, p.frames = 12;
    p.updates = p.blocks = 1, p.long_run = 3, p.ticks = 1;
    return p;
}

int main(int count, char **words)
{
    const plan p = plan_of(count, words);
    exphil_context *context = card_open(&p.options, 0);
    exphil_device_info info = EXPHIL_DEVICE_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    card_must("device", exphil_context_device(context, &info, &error), &error);
    printf("%s, %s: policy of width %d, %d x %d frames\n", info.name, info.isa, (int)p.hidden, (int)p.batch,
           (int)p.time);
    exphil_context_destroy(context);
    if (card_asked_for(&p.options, "ticks")) ticks(&p);
    updates(&p);
    return 0;
}
