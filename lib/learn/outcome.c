/* Imitation that asks what came of it: rows count by how much better than expected they went (advantage-weighted regression,
 * Peng et al. 2019), and the value is learnt beside. */
#include "learn/learn.h"
#include "learn/returns.h"

#include "base/scalar.h"

#define BETA_LEAST 1e-6
#define EXP_MOST   700.0

typedef struct outcome {
    exphil_trainer *trainer;
    exphil_outcome_config config; /* defaults filled in */
    const exphil_batch *batch;
    exphil_forward forward;
    xph_policy policy;
    int64_t rows;
    double *weight;         /* [rows] of a row in imitation */
    double *logs, *chances; /* [T, L] of the rows of one lane */
    /* [rows]: whether the return is known and the row counts */
    uint8_t *known;
    int64_t *places; /* of known rows, for the shuffle */
    float *dlogits, *dvalues;
    exphil_outcome_metrics result;
    unsigned char *memory;
    size_t memory_bytes;
} outcome;

/* ---- configuration and memory ------------------------------------------------------------------------------ */

static exphil_status take_config(exphil_outcome_config *c, exphil_error *error)
{
    const char *bad = !(c->imitation >= -1e6 && c->imitation <= 1e6) ? "imitation"
                      : !(c->value >= 0.0 && c->value <= 1e6)        ? "value"
                      : !(c->beta >= 0.0 && c->beta <= 1e9)          ? "beta"
                      : c->beta > 0.0 && c->beta < BETA_LEAST        ? "beta"
                      : !(c->cap >= 0.0 && c->cap <= 1e9)            ? "cap"
                      : c->warm_up < 0                               ? "warm_up"
                      : c->shuffle != 0 && c->shuffle != 1           ? "shuffle"
                      : c->reserved                                  ? "reserved"
                                                                     : NULL;
    if (bad) return xph_fail(error, EXPHIL_E_INVALID, "outcome config: %s is out of range", bad);
    c->imitation = c->imitation == 0.0 ? 1.0 : c->imitation < 0.0 ? 0.0 : c->imitation;
    if (c->value == 0.0) c->value = 0.5;
    if (c->cap == 0.0) c->cap = 5.0;
    return EXPHIL_OK;
}

static size_t cut_all(outcome *o, unsigned char *base)
{
    xph_cutter c = {base, 0};
    o->weight = xph_cut(&c, o->rows, 1, sizeof(double));
    o->logs = xph_cut(&c, o->batch->time, o->policy.logits, sizeof(double));
    o->chances = xph_cut(&c, o->batch->time, o->policy.logits, sizeof(double));
    o->known = xph_cut(&c, o->rows, 1, 1);
    o->places = xph_cut(&c, o->rows, 1, sizeof(int64_t));
    o->dlogits = xph_cut(&c, o->rows, o->policy.logits, sizeof(float));
    o->dvalues = xph_cut(&c, o->rows, 1, sizeof(float));
    return c.at;
}

static exphil_status make(outcome *o, exphil_error *error)
{
    const exphil_model *model = o->trainer->model;
    o->rows = o->batch->batch * o->batch->time;
    o->policy = (xph_policy){.head = xph_model_heads(model),
                             .heads = xph_model_shape_of(model)->heads,
                             .logits = xph_model_shape_of(model)->logits};
    for (int64_t h = 0; h < o->policy.heads; h++) o->policy.temperature[h] = 1.0;
    o->memory_bytes = cut_all(o, NULL);
    o->memory = xph_calloc(o->trainer->context, 1, o->memory_bytes);
    if (!o->memory) return xph_no_memory(o->memory_bytes, error);
    cut_all(o, o->memory);
    return EXPHIL_OK;
}

/* ---- weights ------------------------------------------------------------------------------------------------ */

static double value_at(const outcome *o, int64_t row)
{
    return (double)((const float *)o->forward.values)[row];
}

static bool counts(const outcome *o, int64_t row)
{
    return o->batch->mask[row] > 0.0f;
}

/* exp((G - V) / beta) by its logarithm, so that none is too large for a number. Returns how many rows are known. */
static int64_t weigh(outcome *o, bool plain, double *most)
{
    int64_t known = 0;
    const double cap = xph_log_double(o->config.cap);
    *most = -1e300;
    for (int64_t row = 0; row < o->rows; row++) {
        double G = o->batch->returns ? (double)o->batch->returns[row] : 0.0;
        o->known[row] = counts(o, row) && o->batch->returns && G == G;
        if (!o->known[row]) continue;
        double log = plain ? 0.0 : (G - value_at(o, row)) / o->config.beta;
        o->result.clipped += !plain && log > cap;
        o->weight[row] = log > cap ? cap : log;
        if (o->weight[row] > *most) *most = o->weight[row];
        o->places[known++] = row;
    }
    return known;
}

static void shuffle(outcome *o, int64_t known)
{
    xph_rng rng = {.seed = o->config.seed,
                   .stream = XPH_RNG_LEARN | (uint64_t)o->trainer->optimizer->updates << 8};
    for (int64_t i = known - 1; i > 0; i--) {
        int64_t k = (int64_t)xph_rng_below(&rng, (uint64_t)i + 1);
        double kept = o->weight[o->places[i]];
        o->weight[o->places[i]] = o->weight[o->places[k]];
        o->weight[o->places[k]] = kept;
    }
}

/* Weights of the known rows with mean 1; rows of which nothing is known weigh 1. */
static void make_weights(outcome *o)
{
    double most, sum = 0.0, mass = 0.0, square = 0.0;
    const bool plain = o->config.beta == 0.0 || o->trainer->optimizer->updates < o->config.warm_up;
    const int64_t known = weigh(o, plain, &most);
    for (int64_t i = 0; i < known; i++) {
        double *w = &o->weight[o->places[i]], below = *w - most;
        *w = below < -EXP_MOST ? 0.0 : xph_exp_double(below);
        sum += *w * (double)o->batch->mask[o->places[i]];
        mass += (double)o->batch->mask[o->places[i]];
    }
    for (int64_t i = 0; i < known; i++) o->weight[o->places[i]] *= sum > 0.0 ? mass / sum : 1.0;
    if (o->config.shuffle) shuffle(o, known);
    for (int64_t i = 0; i < known; i++)
        square += o->weight[o->places[i]] * o->weight[o->places[i]] * (double)o->batch->mask[o->places[i]];
    for (int64_t row = 0; row < o->rows; row++)
        if (!o->known[row]) o->weight[row] = 1.0;
    o->result.known = known;
    o->result.effective = square > 0.0 ? mass / square : 0.0;
    o->result.clipped = known ? o->result.clipped / (double)known : 0.0;
}

/* ---- the loss ------------------------------------------------------------------------------------------------ */

/* Row t of the lane whose logs and chances are at hand. */
static void add_row(outcome *o, int64_t row, int64_t t, double scale, double value_scale)
{
    const int64_t width = o->policy.logits;
    const double mask = (double)o->batch->mask[row], weight = o->config.imitation * mask * o->weight[row];
    const int32_t *action = o->batch->actions + row * o->policy.heads;
    double nll = xph_policy_imitate(&o->policy, action, o->logs + t * width, o->chances + t * width,
                                    weight * scale, o->dlogits + row * width, XPH_F32);
    o->result.nll += mask * scale * nll;
    o->result.loss += weight * scale * nll;
    if (!o->known[row]) return;
    double miss = value_at(o, row) - (double)o->batch->returns[row];
    o->dvalues[row] = (float)(2.0 * o->config.value * mask * value_scale * miss);
    o->result.value_loss += mask * value_scale * miss * miss;
}

/* The rows of a lane, from this one on. */
static void add_lane(outcome *o, int64_t from, double scale, double value_scale)
{
    const int64_t time = o->batch->time;
    const float *logits = o->forward.logits;
    xph_policy_logs(&o->policy, logits + from * o->policy.logits, XPH_F32, time, o->logs);
    xph_policy_chances(&o->policy, o->logs, time, o->chances);
    for (int64_t t = 0; t < time; t++)
        if (counts(o, from + t)) add_row(o, from + t, t, scale, value_scale);
}

static double unexplained(const outcome *o, double mass)
{
    double mean = 0.0, square = 0.0;
    for (int64_t row = 0; row < o->rows; row++)
        if (o->known[row]) mean += (double)o->batch->mask[row] * (double)o->batch->returns[row] / mass;
    for (int64_t row = 0; row < o->rows; row++) {
        if (!o->known[row]) continue;
        double apart = (double)o->batch->returns[row] - mean;
        square += (double)o->batch->mask[row] * apart * apart / mass;
    }
    return xph_unexplained(o->result.value_loss, square, mean * mean);
}

static void make_gradients(outcome *o)
{
    double mass = 0.0, known = 0.0;
    for (int64_t row = 0; row < o->rows; row++) {
        mass += (double)o->batch->mask[row];
        if (o->known[row]) known += (double)o->batch->mask[row];
    }
    for (int64_t lane = 0; lane < o->batch->batch; lane++)
        add_lane(o, lane * o->batch->time, 1.0 / mass, known > 0.0 ? 1.0 / known : 0.0);
    o->result.loss += o->config.value * o->result.value_loss;
    o->result.unexplained = known > 0.0 ? unexplained(o, known) : 0.0;
}

/* ---- the update ---------------------------------------------------------------------------------------------- */

static exphil_status learn(outcome *o, exphil_error *error)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    XPH_TRY(exphil_trainer_forward(o->trainer, o->batch, NULL, 0, &o->forward, error));
    exphil_status status = make(o, error);
    if (status < 0) {
        XPH_TRY(exphil_trainer_abandon(o->trainer, NULL));
        return status;
    }
    make_weights(o);
    make_gradients(o);
    XPH_TRY(exphil_trainer_backward(o->trainer, o->dlogits, o->dvalues, o->result.loss, &metrics, error));
    o->result.update = metrics.update;
    o->result.frames = metrics.frames;
    o->result.gradient_norm = metrics.gradient_norm;
    return EXPHIL_OK;
}

static exphil_status check(const exphil_trainer *trainer, const exphil_outcome_config *config,
                           exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    if (!trainer->prefetcher) return xph_fail(error, EXPHIL_E_STATE, "trainer has no prefetcher");
    if (!shape->value) return xph_fail(error, EXPHIL_E_INVALID, "trainer: the model has no value head");
    if (shape->type != XPH_F32) return xph_fail(error, EXPHIL_E_UNSUPPORTED, "trainer: a model of doubles");
    if (trainer->communicator.all_reduce)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "trainer: it has a communicator");
    if (config->imitation == 0.0 && trainer->optimizer->config.decay > 0.0)
        return xph_fail(
            error, EXPHIL_E_UNSUPPORTED,
            "outcome config: imitation: the optimizer's decay would move the policy where only the value "
            "is learnt");
    return xph_split_possible(trainer, error);
}

exphil_status exphil_trainer_step_outcome(exphil_trainer *trainer, const exphil_outcome_config *config,
                                          exphil_outcome_metrics *metrics, exphil_error *error)
{
    XPH_OWN_FPU;
    outcome o = {.trainer = trainer,
                 .config = EXPHIL_OUTCOME_CONFIG_INIT,
                 .forward = EXPHIL_FORWARD_INIT,
                 .result = EXPHIL_OUTCOME_METRICS_INIT};
    exphil_batch batch = EXPHIL_BATCH_INIT;
    xph_taken taken;
    if (!trainer) return xph_fail(error, EXPHIL_E_INVALID, "trainer is NULL");
    XPH_TRY(xph_context_check(trainer->context, error));
    XPH_TRY(XPH_TAKE(exphil_outcome_config, &o.config, config, error));
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_outcome_metrics, metrics, error));
    XPH_TRY(take_config(&o.config, error));
    XPH_TRY(check(trainer, &o.config, error));
    XPH_TRY(xph_trainer_take(trainer, &batch, &taken, error));
    o.batch = &batch;
    exphil_status status = learn(&o, error);
    xph_free(trainer->context, o.memory, o.memory_bytes);
    if (status < 0 && status != EXPHIL_E_NUMERIC) xph_trainer_put_back(trainer, &taken);
    if (status < 0 || !metrics) return status;
    return XPH_GIVE(exphil_outcome_metrics, metrics, &o.result, error);
}
