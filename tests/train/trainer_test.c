/* The parts of an update: schedule, AdamW with clipping and averages, accumulation, refusals, metrics, cancelling. */
#include "train_case.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void assert_says(const exphil_error *error, const char *says)
{
    if (!strstr(error->message, says)) fail_msg("\"%s\" not in \"%s\"", says, error->message);
}

/* ---- schedule ------------------------------------------------------------------------------------------------------- */

static double rate_by_libm(const exphil_optimizer_config *c, int64_t update)
{
    double low = c->rate * c->low_ratio, s = 0.0, since = (double)(update - c->warmup_updates);
    if (update < c->warmup_updates) return c->rate * (double)(update + 1) / (double)c->warmup_updates;
    if (c->schedule == EXPHIL_SCHEDULE_CONSTANT) return c->rate;
    if (c->schedule == EXPHIL_SCHEDULE_COSINE)
        s = fmin(since / (double)(c->total_updates - c->warmup_updates), 1.0);
    if (c->schedule == EXPHIL_SCHEDULE_RESTARTS) {
        double period = (double)c->restart_updates;
        for (; since >= period; period *= c->restart_factor) since -= period;
        s = since / period;
    }
    return low + (c->rate - low) * (1.0 + cos(3.14159265358979323846 * s)) / 2.0;
}

static void rates_are_the_formulas(void **state)
{
    (void)state;
    const exphil_optimizer_config cases[] = {
        {.rate = 1e-3, .schedule = EXPHIL_SCHEDULE_CONSTANT, .restart_factor = 1},
        {.rate = 1e-3, .schedule = EXPHIL_SCHEDULE_CONSTANT, .warmup_updates = 7, .restart_factor = 1},
        {.rate = 0.3, .schedule = EXPHIL_SCHEDULE_COSINE, .total_updates = 100, .restart_factor = 1},
        {.rate = 0.3,
         .schedule = EXPHIL_SCHEDULE_COSINE,
         .total_updates = 1000,
         .warmup_updates = 30,
         .low_ratio = 0.1,
         .restart_factor = 1},
        {.rate = 2e-4, .schedule = EXPHIL_SCHEDULE_RESTARTS, .restart_updates = 13, .restart_factor = 1},
        {.rate = 2e-4,
         .schedule = EXPHIL_SCHEDULE_RESTARTS,
         .restart_updates = 10,
         .restart_factor = 2,
         .warmup_updates = 5,
         .low_ratio = 0.01},
        {.rate = 2e-4, .schedule = EXPHIL_SCHEDULE_RESTARTS, .restart_updates = 10, .restart_factor = 1.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int64_t u = 0; u < 3000; u++) {
            double got = xph_schedule_rate(&cases[i], u), want = rate_by_libm(&cases[i], u);
            if (!(fabs(got - want) <= 4e-16 * cases[i].rate))
                fail_msg("case %zu, update %lld: %.17g, not %.17g", i, (long long)u, got, want);
        }
    exphil_optimizer_config cosine = cases[3];
    assert_true(xph_schedule_rate(&cosine, 0) == 0.3 / 30);
    assert_true(fabs(xph_schedule_rate(&cosine, 1000000) - 0.03) < 1e-16);            /* and stays there */
    assert_true(xph_schedule_rate(&cases[4], 12) < xph_schedule_rate(&cases[4], 13)); /* a restart */
    for (int64_t n = 0; n < 2000; n += 37)
        assert_true(fabs(xph_power(0.999, n) - pow(0.999, (double)n)) <= 1e-13 * pow(0.999, (double)n));
}

/* ---- AdamW ---------------------------------------------------------------------------------------------------------- */

/* By name, not by the library's own mark: matrices decay; biases, norms, A_log, D, heads.past do not. */
static bool should_decay(const char *name, int32_t rank)
{
    if (rank < 2 || strstr(name, "bias") || strstr(name, "A_log")) return false;
    return strcmp(name, "heads.past.weight") != 0;
}

typedef struct reference {
    double *p, *m, *v, *average;
    bool *decays;
    int64_t count;
} reference;

static double number(const exphil_trainer *trainer, const void *arena, int64_t i)
{
    return trainer->feed.model && xph_model_shape_of(trainer->model)->type == XPH_F64
               ? ((const double *)arena)[i]
               : (double)((const float *)arena)[i];
}

static reference reference_make(const exphil_trainer *trainer)
{
    int64_t count = xph_model_shape_of(trainer->model)->weights;
    size_t room = (size_t)count;
    reference r = {calloc(room, 8),
                   calloc(room, 8),
                   calloc(room, 8),
                   calloc(room, 8),
                   calloc(room, sizeof(bool)),
                   count};
    for (int64_t i = 0; i < count; i++) r.p[i] = r.average[i] = number(trainer, trainer->weights, i);
    for (int64_t k = 0; k < xph_model_param_count(trainer->model); k++) {
        const xph_param *param = xph_model_param(trainer->model, k);
        for (int64_t i = 0; i < param->count; i++)
            r.decays[param->offset + i] = should_decay(param->name, param->rank);
    }
    return r;
}

static void reference_free(reference *r)
{
    free(r->p);
    free(r->m);
    free(r->v);
    free(r->average);
    free(r->decays);
}

/* Loshchilov & Hutter 2019, algorithm 2, as exphil.h has it; g is what the trainer's gradient holds after the step. */
static void reference_update(reference *r, const exphil_trainer *trainer, const exphil_optimizer_config *c,
                             int64_t update, const exphil_metrics *metrics)
{
    double square = 0.0, rate = rate_by_libm(c, update - 1);
    double keep = fmin(c->ema_decay, (double)update / ((double)update + 9)); /* update counts from 1 here */
    for (int64_t i = 0; i < r->count; i++) square += pow(number(trainer, trainer->gradients, i), 2);
    double norm = sqrt(square), scale = c->clip_norm > 0 && norm > c->clip_norm ? c->clip_norm / norm : 1.0;
    assert_true(fabs(metrics->gradient_norm - norm) <= 1e-6 * norm);
    assert_true(fabs(metrics->rate - rate) <= 1e-15 * c->rate);
    for (int64_t i = 0; i < r->count; i++) {
        double g = number(trainer, trainer->gradients, i) * scale;
        r->m[i] = c->beta1 * r->m[i] + (1 - c->beta1) * g;
        r->v[i] = c->beta2 * r->v[i] + (1 - c->beta2) * g * g;
        double m = r->m[i] / (1 - pow(c->beta1, (double)update)),
               v = r->v[i] / (1 - pow(c->beta2, (double)update));
        r->p[i] -= rate * (m / (sqrt(v) + c->epsilon) + (r->decays[i] ? c->decay * r->p[i] : 0.0));
        r->average[i] = keep * r->average[i] + (1 - keep) * r->p[i];
    }
}

static double distance(const exphil_trainer *trainer, const void *got, const double *want, int64_t count)
{
    double *numbers = calloc((size_t)count, sizeof *numbers);
    for (int64_t i = 0; i < count; i++) numbers[i] = number(trainer, got, i);
    double error = model_case_error(numbers, want, count);
    free(numbers);
    return error;
}

static void compare_adam(const exphil_optimizer_config *adam, int32_t type, double tolerance)
{
    train_plan plan = train_plan_of("mamba attention gru ffn", EXPHIL_MODE_CARRY);
    plan.model.type = type;
    plan.adam = *adam;
    train_run run = train_begin(&plan);
    reference r = reference_make(run.trainer);
    double clipped = 0;
    for (int64_t u = 1; u <= 50; u++) {
        exphil_metrics metrics = train_steps(&run, 1);
        reference_update(&r, run.trainer, &run.optimizer->config, u, &metrics);
        clipped += metrics.gradient_norm > run.optimizer->config.clip_norm;
    }
    double error = distance(run.trainer, run.trainer->weights, r.p, r.count);
    if (!(error <= tolerance)) fail_msg("weights differ by %g after 50 updates", error);
    const void *const got[3] = {run.optimizer->m, run.optimizer->v, run.optimizer->average};
    const double *const want[3] = {r.m, r.v, r.average};
    for (int i = 0; i < 3; i++) {
        if (got[i]) error = distance(run.trainer, got[i], want[i], r.count);
        if (!(error <= tolerance))
            fail_msg("type %d: %s differs by %g", type, (const char *[]){"m", "v", "average"}[i], error);
    }
    assert_int_equal(run.optimizer->average != NULL, adam->ema_decay > 0);
    if (adam->clip_norm > 0) assert_true(clipped > 5);
    reference_free(&r);
    train_end(&run);
}

static void updates_are_adamw(void **state)
{
    (void)state;
    exphil_optimizer_config plain = EXPHIL_OPTIMIZER_CONFIG_INIT;
    plain.clip_norm = -1;
    exphil_optimizer_config full = EXPHIL_OPTIMIZER_CONFIG_INIT;
    full.rate = 2e-3;
    full.beta1 = 0.8;
    full.beta2 = 0.95;
    full.epsilon = 1e-6;
    full.decay = 0.3;
    full.clip_norm = 0.4;
    full.ema_decay = 0.9;
    full.schedule = EXPHIL_SCHEDULE_COSINE;
    full.warmup_updates = 6;
    full.total_updates = 40;
    full.low_ratio = 0.05;
    compare_adam(&plain, EXPHIL_TYPE_F64, 1e-12);
    compare_adam(&full, EXPHIL_TYPE_F64, 1e-12);
    compare_adam(&full, EXPHIL_TYPE_F32, 2e-5);
}

/* ---- accumulation --------------------------------------------------------------------------------------------------- */

static train_run accumulating(int64_t batch, int64_t parts, int32_t type)
{
    train_plan plan = train_plan_of("gru ffn", EXPHIL_MODE_WINDOW);
    plan.sampling.batch = batch;
    plan.sampling.in_order = 1;
    plan.trainer.accumulate = parts;
    plan.model.type = type;
    return train_begin(&plan);
}

/* Windows in order: two batches of 4 are the batch of 8. */
static void two_halves_are_one(void **state)
{
    (void)state;
    for (int32_t type = EXPHIL_TYPE_F32; type <= EXPHIL_TYPE_F64; type++) {
        train_run halves = accumulating(4, 2, type), whole = accumulating(8, 1, type);
        for (int64_t u = 0; u < (type == EXPHIL_TYPE_F64 ? 20 : 1); u++) {
            exphil_metrics a = train_steps(&halves, 1), b = train_steps(&whole, 1);
            assert_int_equal(a.frames, b.frames);
            assert_true(fabs(a.loss - b.loss) <= 1e-6 * b.loss);
            assert_true(fabs(a.gradient_norm - b.gradient_norm) <= 1e-6 * b.gradient_norm);
        }
        int64_t count = xph_model_shape_of(whole.model)->weights;
        double *want = calloc((size_t)count, sizeof *want);
        const void *pairs[2][2] = {{whole.trainer->gradients, halves.trainer->gradients},
                                   {whole.trainer->weights, halves.trainer->weights}};
        for (int k = 0; k < 2; k++) {
            for (int64_t i = 0; i < count; i++) want[i] = number(whole.trainer, pairs[k][0], i);
            assert_true(distance(halves.trainer, pairs[k][1], want, count) <= 1e-6);
        }
        free(want);
        train_end(&halves);
        train_end(&whole);
    }
}

/* ---- learning -------------------------------------------------------------------------------------------------------- */

static void every_block_learns(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "mamba", "lstm", "gru", "attention", "mlp", "ffn", "(mamba attention)*2"};
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++)
        for (int32_t mode = 0; mode <= 1; mode++) {
            train_plan plan = train_plan_of(patterns[p], mode);
            plan.model.heads = mode ? EXPHIL_HEADS_AUTOREGRESSIVE : EXPHIL_HEADS_INDEPENDENT;
            train_run run = train_begin(&plan);
            double first = train_steps(&run, 1).loss, last = 0.0;
            (void)train_steps(&run, 140);
            for (int i = 0; i < 10; i++) last += train_steps(&run, 1).loss / 10;
            if (!(last < 0.75 * first))
                fail_msg("%s, mode %d: loss from %g to %g only", patterns[p], mode, first, last);
            train_end(&run);
        }
}

static void metrics_tell_what_was_done(void **state)
{
    (void)state;
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    const exphil_head_loss losses[3] = {{2.0, 0, 0, NULL}, {0, 0.1, 1.5, NULL}, {0.5, 0, 0, NULL}};
    plan.trainer.losses = losses;
    plan.adam.warmup_updates = 4;
    train_run run = train_begin(&plan);
    exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
    assert_ok(exphil_prefetcher_query(run.prefetcher, &info, NULL));
    int64_t frames = 0;
    for (int64_t u = 1; u <= 3 * info.batches_per_epoch; u++) {
        exphil_metrics metrics = train_steps(&run, 1);
        exphil_optimizer_info now = EXPHIL_OPTIMIZER_INFO_INIT;
        assert_int_equal(metrics.update, u);
        assert_int_equal(metrics.epoch, (u - 1) / info.batches_per_epoch);
        assert_true(metrics.frames > frames);
        frames = metrics.frames;
        if (u % info.batches_per_epoch == 0)
            assert_int_equal(frames, u / info.batches_per_epoch * info.frames_per_epoch);
        double sum = 2.0 * metrics.head_loss[0] + metrics.head_loss[1] + 0.5 * metrics.head_loss[2];
        assert_true(fabs(metrics.loss - sum) < 1e-12);
        assert_true(metrics.head_loss[3] == 0.0);
        assert_true(metrics.time_ns >= 0 && metrics.waited_ns >= 0 && metrics.waited_ns <= metrics.time_ns);
        assert_int_equal(metrics.skipped, 0);
        assert_true(metrics.rate == plan.adam.rate * (double)(u < 4 ? u : 4) / 4);
        assert_ok(exphil_optimizer_query(run.optimizer, &now, NULL));
        assert_int_equal(now.updates, u);
        assert_true(now.rate == plan.adam.rate * (double)(u < 3 ? u + 1 : 4) / 4);
    }
    exphil_model *model = NULL;
    exphil_model_info trained = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &model, NULL));
    assert_ok(exphil_model_query(model, &trained, NULL));
    assert_int_equal(trained.trained_updates, 3 * info.batches_per_epoch);
    assert_int_equal(trained.trained_frames, frames);
    exphil_model_destroy(model);
    train_end(&run);
}

/* A head with negative weight gives no gradient: its bias, which nothing else reaches, stays as it was. */
static void untrained_heads_stay(void **state)
{
    (void)state;
    train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
    const exphil_head_loss losses[3] = {{0, 0, 0, NULL}, {-1, 0, 0, NULL}, {0, 0, 0, NULL}};
    plan.trainer.losses = losses;
    train_run run = train_begin(&plan);
    (void)train_steps(&run, 10);
    exphil_model *model = NULL;
    float before[12], after[12];
    assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &model, NULL));
    assert_ok(exphil_model_tensor_get(run.model, "heads.logits.bias", before, sizeof before, NULL));
    assert_ok(exphil_model_tensor_get(model, "heads.logits.bias", after, sizeof after, NULL));
    for (int i = 0; i < 12; i++) assert_int_equal(before[i] == after[i], i >= 3 && i < 8);
    exphil_model_destroy(model);
    train_end(&run);
}

/* The model itself is never written, and averaged weights lag behind. */
static void the_model_stays(void **state)
{
    (void)state;
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    plan.adam.ema_decay = 0.99;
    train_run run = train_begin(&plan);
    exphil_model_info before = EXPHIL_MODEL_INFO_INIT, after = EXPHIL_MODEL_INFO_INIT,
                      now = EXPHIL_MODEL_INFO_INIT, slow = EXPHIL_MODEL_INFO_INIT;
    exphil_model *trained = NULL, *average = NULL;
    assert_ok(exphil_model_query(run.model, &before, NULL));
    (void)train_steps(&run, 5);
    assert_ok(exphil_model_query(run.model, &after, NULL));
    assert_true(before.weights_hash == after.weights_hash);
    assert_int_equal(after.trained_updates, 0);
    assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &trained, NULL));
    assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS_AVERAGED, &average, NULL));
    assert_ok(exphil_model_query(trained, &now, NULL));
    assert_ok(exphil_model_query(average, &slow, NULL));
    assert_true(now.weights_hash != before.weights_hash && slow.weights_hash != now.weights_hash);
    exphil_model_destroy(trained);
    exphil_model_destroy(average);
    train_end(&run);
}

/* ---- numbers that are none -------------------------------------------------------------------------------------------- */

/* Input so large that the first product overflows: the update is refused, the tensor named, nothing moved, and the run goes
 * on as if the batch had not been. */
static void overflow_is_refused(void **state)
{
    (void)state;
    train_plan plan = train_plan_of("mamba gru", EXPHIL_MODE_CARRY);
    plan.by_hand = true;
    plan.adam.ema_decay = 0.9;
    plan.adam.warmup_updates = 100;
    train_run run = train_begin(&plan), other = train_begin(&plan);
    exphil_batch good = train_batch(run.model, 3, 8, 0), next = train_batch(run.model, 3, 8, 2),
                 bad = train_batch(run.model, 3, 8, 4);
    float *floats = (float *)(uintptr_t)bad.floats;
    for (int i = 0; i < 13; i++) floats[13 * 9 + i] = i % 2 ? 3e38f : 2.9e38f;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_metrics metrics = EXPHIL_METRICS_INIT, untouched = EXPHIL_METRICS_INIT;
    assert_ok(exphil_trainer_step_batch(run.trainer, &good, NULL, NULL));
    assert_ok(exphil_trainer_step_batch(other.trainer, &good, NULL, NULL));
    size_t bytes, arenas = 4 * run.trainer->arena_bytes;
    unsigned char *before = train_snapshot(run.trainer, &bytes);
    assert_int_equal(exphil_trainer_step_batch(run.trainer, &bad, &metrics, &error), EXPHIL_E_NUMERIC);
    assert_memory_equal(&metrics, &untouched, sizeof metrics);
    assert_says(&error, "update 2 refused: gradient of ");
    const char *name = error.message + strlen("update 2 refused: gradient of ");
    bool known = false;
    for (int64_t i = 0; i < xph_model_param_count(run.model); i++) {
        const char *param = xph_model_param(run.model, i)->name;
        known |= strncmp(name, param, strlen(param)) == 0 && name[strlen(param)] == ' ';
    }
    if (!known) fail_msg("no such tensor: %s", error.message);
    unsigned char *after = train_snapshot(run.trainer, &bytes);
    assert_memory_equal(before, after, arenas);
    assert_memory_equal(before + bytes - 32, after + bytes - 32, 32);
    assert_ok(exphil_trainer_step_batch(run.trainer, &next, &metrics, NULL));
    assert_int_equal(metrics.skipped, 1);
    assert_int_equal(metrics.update, 2);
    assert_ok(exphil_trainer_step_batch(other.trainer, &next, NULL, NULL));
    free(before);
    free(after);
    before = train_snapshot(other.trainer, &bytes);
    after = train_snapshot(run.trainer, &bytes);
    assert_memory_equal(before, after, bytes);
    free(before);
    free(after);
    train_batch_free(&good);
    train_batch_free(&next);
    train_batch_free(&bad);
    train_end(&run);
    train_end(&other);
}

/* A rate beyond reason: whatever updates are refused, weights and moments are finite always. */
static void wild_rates_are_caught(void **state)
{
    (void)state;
    train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
    plan.adam.rate = 9e5;
    plan.adam.decay = 1e-6;
    plan.adam.clip_norm = -1;
    train_run run = train_begin(&plan);
    int refused = 0;
    for (int u = 0; u < 60; u++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        size_t bytes;
        unsigned char *before = train_snapshot(run.trainer, &bytes), *after;
        exphil_status status = exphil_trainer_step(run.trainer, NULL, &error);
        after = train_snapshot(run.trainer, &bytes);
        if (status < 0) {
            assert_int_equal(status, EXPHIL_E_NUMERIC);
            assert_memory_equal(before, after, 3 * run.trainer->arena_bytes);
            assert_says(&error, "refused: ");
            refused++;
        }
        for (size_t i = 0; i < 3 * run.trainer->arena_bytes / sizeof(float); i++) {
            float value;
            memcpy(&value, after + i * sizeof value, sizeof value);
            if (!isfinite(value)) fail_msg("update %d left a number that is none", u);
        }
        free(before);
        free(after);
    }
    print_message("%d of 60 updates refused\n", refused);
    train_end(&run);
}

static void check_batch_refused(train_run *run, exphil_batch *batch, exphil_status status, const char *says)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    size_t bytes;
    unsigned char *before = train_snapshot(run->trainer, &bytes), *after;
    assert_int_equal(exphil_trainer_step_batch(run->trainer, batch, NULL, &error), status);
    assert_says(&error, says);
    after = train_snapshot(run->trainer, &bytes);
    assert_memory_equal(before, after, bytes);
    free(before);
    free(after);
}

static void bad_batches_are_refused(void **state)
{
    (void)state;
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    plan.by_hand = true;
    train_run run = train_begin(&plan);
    exphil_batch batch = train_batch(run.model, 2, 5, 0);
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, NULL, NULL));
#define WRITE(type, field, at, value, status, says)                                                          \
  do {                                                                                                       \
    type *place = (type *)(uintptr_t)batch.field + (at), kept = *place;                                      \
    *place = (value);                                                                                        \
    check_batch_refused(&run, &batch, status, says);                                                         \
    *place = kept;                                                                                           \
  } while (0)
    WRITE(float, floats, 13 * 7 + 4, NAN, EXPHIL_E_NUMERIC, "floats[7][4]");
    WRITE(float, floats, 0, -INFINITY, EXPHIL_E_NUMERIC, "floats[0][0]");
    WRITE(int32_t, ids, 2 * 3 + 1, 7, EXPHIL_E_INVALID, "ids[3] own.character is 7");
    WRITE(int32_t, ids, 0, -1, EXPHIL_E_INVALID, "ids[0] stage is -1");
    WRITE(int32_t, actions, 3 * 9 + 2, 4, EXPHIL_E_INVALID, "row 9: action head trigger is 4");
    WRITE(int32_t, past, 2 * 3 * 2, 8, EXPHIL_E_INVALID, "row 2: action head buttons is 8");
    WRITE(float, mask, 3, -1.0f, EXPHIL_E_INVALID, "mask[3]");
    WRITE(float, mask, 3, NAN, EXPHIL_E_INVALID, "mask[3]");
#undef WRITE
#define WITHOUT(field)                                                                                       \
  do {                                                                                                       \
    exphil_batch without = batch;                                                                            \
    without.field = NULL;                                                                                    \
    check_batch_refused(&run, &without, EXPHIL_E_INVALID, #field " is NULL");                                \
  } while (0)
    WITHOUT(floats);
    WITHOUT(ids);
    WITHOUT(past);
    WITHOUT(actions);
    WITHOUT(mask);
    WITHOUT(reset);
#undef WITHOUT
    exphil_batch other = batch;
    other.time = 10;
    other.batch = 1;
    check_batch_refused(&run, &other, EXPHIL_E_INVALID, "1 x 10, this run has 2 x 5");
    other.batch = 0;
    check_batch_refused(&run, &other, EXPHIL_E_INVALID, "0 x 10");
    other = batch;
    other.struct_size = 12;
    check_batch_refused(&run, &other, EXPHIL_E_INVALID, "struct_size");
    train_batch_free(&batch);
    train_end(&run);
}

/* Rows that do not count change nothing, however wild they are within their ranges. */
static void masked_rows_do_not_count(void **state)
{
    (void)state;
    train_plan plan = train_plan_of("lstm", EXPHIL_MODE_CARRY);
    plan.by_hand = true;
    train_run run = train_begin(&plan), other = train_begin(&plan);
    exphil_batch one = train_batch(run.model, 2, 6, 0), two = train_batch(run.model, 2, 6, 0);
    for (int row = 0; row < 12; row++)
        if (row % 6 >= 4) { /* the end of each lane */
            ((float *)(uintptr_t)one.mask)[row] = ((float *)(uintptr_t)two.mask)[row] = 0;
            for (int i = 0; i < 13; i++) ((float *)(uintptr_t)two.floats)[row * 13 + i] = 9;
            ((int32_t *)(uintptr_t)two.actions)[row * 3 + 1] = 0;
        }
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    one.frames = -77; /* counted, not believed */
    assert_ok(exphil_trainer_step_batch(run.trainer, &one, &metrics, NULL));
    assert_ok(exphil_trainer_step_batch(other.trainer, &two, NULL, NULL));
    assert_int_equal(metrics.frames, 8);
    assert_memory_equal(run.trainer->weights, other.trainer->weights, run.trainer->arena_bytes);
    train_batch_free(&one);
    train_batch_free(&two);
    train_end(&run);
    train_end(&other);
}

/* The place in the data is that of the prefetcher, whatever a host's batch says of itself. */
static void own_batches_do_not_move_the_data(void **state)
{
    (void)state;
    train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    (void)train_steps(&run, 3);
    exphil_batch batch = train_batch(run.model, 4, 8, 0);
    batch.epoch = 1000;
    batch.index = -5;
    int64_t index = run.trainer->index, epoch = run.trainer->epoch;
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, NULL, NULL));
    assert_int_equal(run.trainer->index, index);
    assert_int_equal(run.trainer->epoch, epoch);
    train_batch_free(&batch);
    train_end(&run);
}

/* ---- what does not fit ------------------------------------------------------------------------------------------------ */

static void bad_optimizers_are_refused(void **state)
{
    (void)state;
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config config = model_case_config("mlp", EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(context, &config);
    const struct {
        exphil_optimizer_config config;
        const char *says;
    } cases[] = {
        {{.rate = -1}, "rate"},
        {{.rate = NAN}, "rate"},
        {{.beta1 = 1}, "beta1"},
        {{.beta2 = -0.1}, "beta2"},
        {{.epsilon = -1}, "epsilon"},
        {{.decay = INFINITY}, "decay"},
        {{.rate = 0.5, .decay = 3}, "rate times decay"},
        {{.ema_decay = 1}, "ema_decay"},
        {{.clip_norm = NAN}, "clip_norm"},
        {{.low_ratio = 1.5}, "low_ratio"},
        {{.warmup_updates = -1}, "warmup_updates"},
        {{.total_updates = -1}, "total_updates"},
        {{.restart_updates = -1}, "restart_updates"},
        {{.schedule = 3}, "schedule"},
        {{.schedule = EXPHIL_SCHEDULE_COSINE}, "total_updates"},
        {{.schedule = EXPHIL_SCHEDULE_COSINE, .warmup_updates = 5, .total_updates = 5}, "total_updates"},
        {{.schedule = EXPHIL_SCHEDULE_RESTARTS}, "restart_updates"},
        {{.restart_factor = 0.5}, "restart_factor"},
        {{.reserved = 1}, "reserved"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        exphil_optimizer_config how = cases[i].config;
        exphil_optimizer *optimizer = NULL;
        exphil_error error = EXPHIL_ERROR_INIT;
        how.struct_size = sizeof how;
        assert_int_equal(exphil_optimizer_create(model, &how, &optimizer, &error), EXPHIL_E_INVALID);
        assert_null(optimizer);
        assert_says(&error, cases[i].says);
    }
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

static void bad_trainers_are_refused(void **state)
{
    (void)state;
    static const float weights[5] = {1, 1, 1, 1, 1}, zero[5] = {1, 0, 1, 1, 1}, nan[5] = {1, 1, NAN, 1, 1};
    const struct {
        exphil_head_loss loss[3];
        const char *says;
    } losses[] = {
        {{{NAN, 0, 0, NULL}}, "losses[0].weight"},
        {{{0, 0.1, 0, NULL}}, "losses[0].smoothing: head buttons"},
        {{{0, 0, 0, NULL}, {0, 1.0, 0, NULL}}, "losses[1].smoothing"},
        {{{0, 0, 0, NULL}, {0, -0.1, 0, NULL}}, "losses[1].smoothing"},
        {{{0, 0, -1, NULL}}, "losses[0].focal_gamma"},
        {{{0, 0, 0, NULL}, {0, 0, NAN, NULL}}, "losses[1].focal_gamma"},
        {{{0, 0, 0, NULL}, {0, 0, 0, weights}}, "losses[1].positive_weight: head stick"},
        {{{0, 0, 0, zero}}, "losses[0].positive_weight[1]"},
        {{{0, 0, 0, nan}}, "losses[0].positive_weight[2]"},
    };
    train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        config.losses = losses[i].loss;
        assert_int_equal(
            exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &config, &run.trainer, &error),
            EXPHIL_E_INVALID);
        assert_says(&error, losses[i].says);
    }
    config.losses = NULL;
    config.accumulate = -1;
    assert_int_equal(
        exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &config, &run.trainer, &error),
        EXPHIL_E_INVALID);
    assert_says(&error, "accumulate");
    config.accumulate = 0;
    config.checkpoint_blocks = -1;
    exphil_status status =
        exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &config, &run.trainer, &error);
    assert_int_equal(status, EXPHIL_E_INVALID);
    assert_says(&error, "checkpoint_blocks");
    config.checkpoint_blocks = 0;
    config.activations = EXPHIL_TYPE_F16;
    status = exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &config, &run.trainer, &error);
    assert_int_equal(status, EXPHIL_E_UNSUPPORTED);
    assert_says(&error, "activations");
    config.activations = 0;
    config.precision = EXPHIL_PRECISION_BF16;
    assert_int_equal(
        exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &config, &run.trainer, &error),
        EXPHIL_E_UNSUPPORTED);
    assert_says(&error, "precision");
    assert_null(run.trainer);
    assert_ok(exphil_trainer_create(run.model, run.optimizer, run.prefetcher, NULL, &run.trainer,
                                    NULL)); /* still free */
    exphil_trainer *second = NULL;
    assert_int_equal(exphil_trainer_create(run.model, run.optimizer, NULL, NULL, &second, &error),
                     EXPHIL_E_STATE);
    assert_says(&error, "optimizer already serves another trainer");
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    assert_ok(exphil_trainer_create(run.model, run.optimizer, NULL, NULL, &run.trainer, NULL));
    assert_int_equal(exphil_trainer_step(run.trainer, NULL, &error), EXPHIL_E_STATE);
    assert_says(&error, "no prefetcher");
    assert_int_equal(exphil_trainer_save(run.trainer, test_path("x"), &error), EXPHIL_E_STATE);
    exphil_model *model = NULL;
    assert_int_equal(exphil_trainer_model(run.trainer, 2, &model, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS_AVERAGED, &model, &error),
                     EXPHIL_E_STATE);
    assert_says(&error, "ema_decay");
    assert_null(model);
    train_end(&run);
    test_folder_remove();
}

static void mismatch(const train_run *run, const exphil_model_config *config, const char *one,
                     const char *two)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = model_case_create(run->context, config);
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    assert_ok(exphil_optimizer_create(model, NULL, &optimizer, NULL));
    assert_int_equal(exphil_trainer_create(model, optimizer, run->prefetcher, NULL, &trainer, &error),
                     EXPHIL_E_MISMATCH);
    assert_null(trainer);
    assert_says(&error, one);
    assert_says(&error, two);
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(model);
}

static void other_data_is_refused(void **state)
{
    (void)state;
    train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    exphil_model_config config = plan.model;
    config.delay_frames = 4;
    mismatch(&run, &config, "delay_frames is 1", "model's is 4");
    config = plan.model;
    config.no_previous_action = 1;
    mismatch(&run, &config, "action_slots is 2", "model's is 1");
    config = plan.model;
    config.mode = EXPHIL_MODE_WINDOW;
    mismatch(&run, &config, "mode is 0", "model's is 1");
    config = plan.model;
    config.spec = NULL;
    mismatch(&run, &config, "made-up/made-up", "melee2/exphil81");
    /* an optimizer of another model, and objects of another context */
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_trainer *trainer = NULL;
    config = plan.model;
    config.hidden = 16;
    exphil_model *other = model_case_create(run.context, &config);
    assert_int_equal(exphil_trainer_create(other, run.optimizer, NULL, NULL, &trainer, &error),
                     EXPHIL_E_MISMATCH);
    assert_says(&error, "optimizer was made for a model of another configuration");
    exphil_model_destroy(other);
    train_run elsewhere = train_begin(&plan);
    assert_int_equal(exphil_trainer_create(run.model, elsewhere.optimizer, NULL, NULL, &trainer, &error),
                     EXPHIL_E_MISMATCH);
    assert_says(&error, "contexts");
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    assert_int_equal(
        exphil_trainer_create(run.model, run.optimizer, elsewhere.prefetcher, NULL, &trainer, &error),
        EXPHIL_E_MISMATCH);
    assert_says(&error, "contexts");
    assert_null(trainer);
    train_end(&elsewhere);
    train_end(&run);
    plan = train_plan_of("mlp", EXPHIL_MODE_WINDOW);
    run = train_begin(&plan);
    config = plan.model;
    config.window_frames = 7;
    mismatch(&run, &config, "time is 6", "model's is 7");
    train_end(&run);
}

/* ---- cancelling, a second caller ---------------------------------------------------------------------------------------- */

typedef struct stopper {
    int asked, at;
} stopper;

static int32_t stop_at(void *user)
{
    stopper *s = user;
    return s->at && ++s->asked >= s->at;
}

/* Cancelled wherever it is asked, the update leaves everything as it was, and the next call does what it would have. */
static void cancelled_updates_are_taken_again(void **state)
{
    (void)state;
    for (int64_t accumulate = 1; accumulate <= 3; accumulate += 2) {
        stopper s = {0, 0};
        train_plan plan = train_plan_of("gru mamba", EXPHIL_MODE_CARRY);
        plan.trainer.accumulate = accumulate;
        train_run plain = train_begin(&plan);
        plan.cancel = stop_at;
        plan.cancel_user = &s;
        train_run run = train_begin(&plan);
        int cancelled = 0;
        for (int64_t u = 0; u < 30; u++) { /* over the end of epochs too */
            size_t bytes;
            exphil_error error = EXPHIL_ERROR_INIT;
            (void)train_steps(&plain, 1);
            exphil_status status = EXPHIL_E_CANCELLED;
            for (s.at = 1; status == EXPHIL_E_CANCELLED; s.at++) {
                unsigned char *before = train_snapshot(run.trainer, &bytes), *after;
                s.asked = 0;
                status = exphil_trainer_step(run.trainer, NULL, &error);
                after = train_snapshot(run.trainer, &bytes);
                assert_int_equal(error.status,
                                 status == EXPHIL_OK && !cancelled ? EXPHIL_OK : EXPHIL_E_CANCELLED);
                if (status == EXPHIL_E_CANCELLED) assert_memory_equal(before, after, bytes - 16);
                cancelled += status == EXPHIL_E_CANCELLED;
                free(before);
                free(after);
            }
            assert_int_equal(status, EXPHIL_OK);
            unsigned char *a = train_snapshot(plain.trainer, &bytes),
                          *b = train_snapshot(run.trainer, &bytes);
            assert_memory_equal(a, b, bytes);
            free(a);
            free(b);
        }
        assert_true(cancelled >= 30 * accumulate);
        s.at = 0;
        train_end(&plain);
        train_end(&run);
    }
}

/* Another thread comes while an update is under way: the cancel hook is asked from inside. */
typedef struct intruder {
    exphil_trainer *trainer;
    int calls;
    exphil_status step, save, model, resume;
} intruder;

static void *intrude(void *arg)
{
    intruder *i = arg;
    exphil_model *model = NULL;
    i->step = exphil_trainer_step(i->trainer, NULL, NULL);
    i->save = exphil_trainer_save(i->trainer, "nowhere", NULL);
    i->resume = exphil_trainer_resume(i->trainer, "nowhere", NULL);
    i->model = exphil_trainer_model(i->trainer, EXPHIL_WEIGHTS, &model, NULL);
    return NULL;
}

static int32_t let_in(void *user)
{
    intruder *i = user;
    pthread_t thread;
    if (!i->trainer || i->calls++) return 0;
    assert_int_equal(pthread_create(&thread, NULL, intrude, i), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return 0;
}

static void a_second_thread_is_refused(void **state)
{
    (void)state;
    intruder i = {NULL, 0, 0, 0, 0, 0};
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    plan.cancel = let_in;
    plan.cancel_user = &i;
    train_run run = train_begin(&plan);
    i.trainer = run.trainer;
    (void)train_steps(&run, 1);
    assert_int_equal(i.calls > 0, 1);
    assert_int_equal(i.step, EXPHIL_E_BUSY);
    assert_int_equal(i.save, EXPHIL_E_BUSY);
    assert_int_equal(i.resume, EXPHIL_E_BUSY);
    assert_int_equal(i.model, EXPHIL_E_BUSY);
    (void)train_steps(&run, 1);
    train_end(&run);
}

/* ---- handles in any order ------------------------------------------------------------------------------------------------ */

static void destroy(train_run *run, int which)
{
    switch (which) {
    case 0:
        exphil_context_destroy(run->context);
        break;
    case 1:
        exphil_dataset_destroy(run->dataset);
        break;
    case 2:
        exphil_model_destroy(run->model);
        break;
    case 3:
        exphil_prefetcher_destroy(run->prefetcher);
        break;
    case 4:
        exphil_optimizer_destroy(run->optimizer);
        break;
    default:
        exphil_trainer_destroy(run->trainer);
        break;
    }
}

static void handles_go_in_any_order(void **state)
{
    (void)state;
    for (int code = 0; code < 720; code++) {
        test_memory memory;
        train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
        int left[6] = {0, 1, 2, 3, 4, 5}, rest = code;
        test_memory_init(&memory);
        plan.memory = &memory;
        plan.episodes = 2;
        plan.model.hidden = 4;
        train_run run = train_begin(&plan);
        bool alive = true;
        for (int count = 6; count > 0; count--) {
            int at = rest % count;
            rest /= count;
            destroy(&run, left[at]);
            alive &= left[at] != 5;
            memmove(left + at, left + at + 1, (size_t)(count - 1 - at) * sizeof *left);
            if (alive && code % 7 == 0) (void)train_steps(&run, 1); /* the trainer keeps what it needs */
        }
        assert_memory_clean(&memory);
    }
}

/* The same run to the bit, whatever the number of threads. */
static void threads_do_not_matter(void **state)
{
    (void)state;
    unsigned char *want = NULL;
    for (int32_t threads = 1; threads <= 4; threads++) {
        train_plan plan = train_plan_of("(mamba attention)*2 lstm ffn", EXPHIL_MODE_CARRY);
        plan.threads = threads;
        plan.model.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
        plan.adam.ema_decay = 0.9;
        plan.trainer.accumulate = 2;
        train_run run = train_begin(&plan);
        (void)train_steps(&run, 20);
        size_t bytes;
        unsigned char *got = train_snapshot(run.trainer, &bytes);
        if (want) assert_memory_equal(want, got, bytes);
        if (want)
            free(got);
        else
            want = got;
        train_end(&run);
    }
    free(want);
}

#if defined(__SSE__)
#  include <xmmintrin.h>

static void host_modes_are_not_felt(void **state)
{
    (void)state;
    static const unsigned modes[] = {0x1F80, 0x5F80, 0xDFC0, 0x7F80 & ~0x1F80u, 0x1FBF};
    unsigned char *want = NULL;
    exphil_report first = EXPHIL_REPORT_INIT;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        train_plan plan = train_plan_of("mamba gru", EXPHIL_MODE_CARRY);
        plan.adam.schedule = EXPHIL_SCHEDULE_COSINE;
        plan.adam.total_updates = 37;
        exphil_report report = EXPHIL_REPORT_INIT;
        exphil_optimizer_info info = EXPHIL_OPTIMIZER_INFO_INIT;
        exphil_status status = EXPHIL_OK;
        bool kept = true;
        train_run run = train_begin(&plan);
        _mm_setcsr(modes[i]);
        for (int u = 0; u < 5 && status == EXPHIL_OK; u++) {
            status = exphil_trainer_step(run.trainer, NULL, NULL);
            kept &= _mm_getcsr() == modes[i];
        }
        if (status == EXPHIL_OK)
            status = exphil_trainer_evaluate(run.trainer, EXPHIL_WEIGHTS, run.dataset, NULL, &report, NULL);
        if (status == EXPHIL_OK) status = exphil_optimizer_query(run.optimizer, &info, NULL);
        kept &= _mm_getcsr() == modes[i];
        _mm_setcsr(0x1F80);
        assert_int_equal(status, EXPHIL_OK);
        assert_true(kept);
        size_t bytes;
        unsigned char *got = train_snapshot(run.trainer, &bytes);
        if (want) {
            assert_memory_equal(want, got, bytes);
            assert_memory_equal(&report, &first, sizeof report);
            free(got);
        } else {
            want = got;
            first = report;
        }
        assert_true(info.rate == xph_schedule_rate(&run.optimizer->config, 5));
        train_end(&run);
    }
    free(want);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_the_formulas),
        cmocka_unit_test(updates_are_adamw),
        cmocka_unit_test(two_halves_are_one),
        cmocka_unit_test(every_block_learns),
        cmocka_unit_test(metrics_tell_what_was_done),
        cmocka_unit_test(untrained_heads_stay),
        cmocka_unit_test(the_model_stays),
        cmocka_unit_test(overflow_is_refused),
        cmocka_unit_test(wild_rates_are_caught),
        cmocka_unit_test(bad_batches_are_refused),
        cmocka_unit_test(masked_rows_do_not_count),
        cmocka_unit_test(own_batches_do_not_move_the_data),
        cmocka_unit_test(bad_optimizers_are_refused),
        cmocka_unit_test(bad_trainers_are_refused),
        cmocka_unit_test(other_data_is_refused),
        cmocka_unit_test(cancelled_updates_are_taken_again),
        cmocka_unit_test(a_second_thread_is_refused),
        cmocka_unit_test(handles_go_in_any_order),
        cmocka_unit_test(threads_do_not_matter),
#if defined(__SSE__)
        cmocka_unit_test(host_modes_are_not_felt),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
