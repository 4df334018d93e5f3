/* An update is AdamW: schedule, clipping, averages, accumulation, beside the formulas in double. */
#include "train_case.h"

#include <math.h>
#include <stdlib.h>

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
        assert_true(fabs(xph_whole_power(0.999, n) - pow(0.999, (double)n)) <= 1e-13 * pow(0.999, (double)n));
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
    size_t n = (size_t)count;
    reference r = {calloc(n, 8), calloc(n, 8), calloc(n, 8), calloc(n, 8), calloc(n, sizeof(bool)), count};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_the_formulas),
        cmocka_unit_test(updates_are_adamw),
        cmocka_unit_test(two_halves_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
