/* Compares two models on the same frames: how far apart their logits are, and how often they would act alike.
 * Teacher-forced like evaluation, so that one differing action does not lead the two into different games. */
#include "train/train.h"

#include "base/double.h"

/* One of the two. */
typedef struct side {
    const char *name;
    const exphil_model *model;
    exphil_model *retained;
    const void *packed;
    xph_feed feed;
    float *narrow;
    double *wide; /* logits of the batch */
    size_t narrow_bytes, wide_bytes;
} side;

typedef struct comparing {
    exphil_context *context;
    xph_sampler *sampler;
    xph_losses losses; /* of no interest, but a forward comes with them */
    side side[2];
    int64_t frames, agreed;
    struct {
        double largest, squares, kl;
        int64_t agreed;
    } head[EXPHIL_HEADS_MAX];
} comparing;

/* ---- one row ------------------------------------------------------------------------------------------- */

/* With p = sigmoid(a), q = sigmoid(b): p log(p/q) + (1-p) log((1-p)/(1-q)) = p (a-b) + softplus(b) -
 * softplus(a). */
static double divergence_of_bits(const double *a, const double *b, int32_t count)
{
    double sum = 0.0;
    for (int32_t i = 0; i < count; i++) {
        double one =
            (a[i] - b[i]) / (1.0 + xph_exp_of(-a[i])) + xph_softplus_of(b[i]) - xph_softplus_of(a[i]);
        sum += one > 0.0 ? one : 0.0;
    }
    return sum;
}

static double log_of_sum(const double *logit, int32_t count)
{
    double most = logit[0], sum = 0.0;
    for (int32_t k = 1; k < count; k++) most = logit[k] > most ? logit[k] : most;
    for (int32_t k = 0; k < count; k++) sum += xph_exp_of(logit[k] - most);
    return most + xph_log_of(sum);
}

static double divergence_of_classes(const double *a, const double *b, int32_t count)
{
    double of_a = log_of_sum(a, count), of_b = log_of_sum(b, count), sum = 0.0;
    for (int32_t k = 0; k < count; k++) sum += xph_exp_of(a[k] - of_a) * ((a[k] - of_a) - (b[k] - of_b));
    return sum > 0.0 ? sum : 0.0;
}

static int32_t likeliest(const xph_head *head, const double *logit)
{
    int32_t best = 0;
    for (int32_t k = 0; k < head->count; k++) {
        if (head->kind == EXPHIL_BERNOULLI)
            best |= (int32_t)(logit[k] > 0.0) << k;
        else if (logit[k] > logit[best])
            best = k;
    }
    return best;
}

/* Returns whether both have the same most likely value. */
static bool count_head(comparing *c, const xph_head *head, int64_t h, const double *a, const double *b)
{
    for (int32_t k = 0; k < head->count; k++) {
        double error = __builtin_fabs(a[k] - b[k]);
        c->head[h].largest = error > c->head[h].largest ? error : c->head[h].largest;
        c->head[h].squares += error * error;
    }
    c->head[h].kl += head->kind == EXPHIL_BERNOULLI ? divergence_of_bits(a, b, head->count)
                                                    : divergence_of_classes(a, b, head->count);
    bool agree = likeliest(head, a) == likeliest(head, b);
    c->head[h].agreed += agree;
    return agree;
}

/* Both numbers subtract to 0 only when they are finite. */
static exphil_status check_finite(const comparing *c, const xph_head *head, int64_t h, int64_t at,
                                  exphil_error *error)
{
    for (int i = 0; i < 2; i++)
        for (int32_t k = 0; k < head->count; k++)
            if (!xph_finite(c->side[i].wide[at + k]))
                return xph_fail(error, EXPHIL_E_NUMERIC,
                                "comparison: a logit of head %s is not finite in the %s",
                                xph_model_spec(c->side[i].model)->heads[h].name, c->side[i].name);
    return EXPHIL_OK;
}

static exphil_status count_batch(comparing *c, const exphil_batch *batch, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(c->side[0].model);
    const xph_head *heads = xph_model_heads(c->side[0].model);
    for (int64_t row = 0; row < batch->batch * batch->time; row++) {
        bool all = true;
        if (!(batch->mask[row] > 0.0f)) continue;
        for (int64_t h = 0; h < shape->heads; h++) {
            int64_t at = row * shape->logits + heads[h].first;
            XPH_TRY(check_finite(c, &heads[h], h, at, error));
            all &= count_head(c, &heads[h], h, c->side[0].wide + at, c->side[1].wide + at);
        }
        c->frames++;
        c->agreed += all;
    }
    return EXPHIL_OK;
}

/* ---- the run ------------------------------------------------------------------------------------------- */

static void comparing_free(comparing *c)
{
    for (int i = 0; i < 2; i++) {
        side *s = &c->side[i];
        xph_free(c->context, s->narrow, s->narrow_bytes);
        xph_free(c->context, s->wide, s->wide_bytes);
        xph_feed_destroy(&s->feed);
        if (s->retained) xph_model_release(s->retained);
    }
    xph_sampler_destroy(c->sampler);
}

static exphil_status side_make(side *s, exphil_context *context, const xph_losses *losses,
                               const exphil_batch *first, exphil_error *error)
{
    size_t count = (size_t)(first->batch * first->time * xph_model_shape_of(s->model)->logits);
    s->retained = xph_model_retain(s->model);
    XPH_TRY(xph_model_packed(s->retained, &s->packed, error));
    XPH_TRY(xph_feed_create(s->model, losses, first->batch, first->time, 1, 0, &s->feed, error));
    s->narrow_bytes = count * sizeof *s->narrow;
    s->wide_bytes = count * sizeof *s->wide;
    s->narrow = xph_alloc(context, s->narrow_bytes);
    s->wide = xph_alloc(context, s->wide_bytes);
    return s->narrow && s->wide ? EXPHIL_OK : xph_no_memory(s->narrow_bytes + s->wide_bytes, error);
}

static exphil_status side_run(side *s, const xph_losses *losses, const exphil_batch *batch,
                              exphil_error *error)
{
    double sums[EXPHIL_HEADS_MAX];
    exphil_status status =
        xph_feed_measure(&s->feed, xph_model_weights(s->model), s->packed, losses, batch, sums);
    if (status >= 0) status = xph_feed_logits(&s->feed, s->narrow, s->wide);
    if (status >= 0) status = xph_feed_swap(&s->feed);
    if (status < 0) return xph_fail(error, status, "comparison: the device failed on the %s", s->name);
    return EXPHIL_OK;
}

static exphil_status compare(comparing *c, const exphil_dataset *dataset, int64_t batch_size,
                             exphil_error *error)
{
    exphil_batch batch = EXPHIL_BATCH_INIT;
    XPH_TRY(xph_losses_take(xph_model_spec(c->side[0].model), NULL, &c->losses, error));
    XPH_TRY(xph_whole_sampler(c->side[0].model, dataset, batch_size, NULL, &c->sampler, &batch, error));
    for (int i = 0; i < 2; i++) XPH_TRY(side_make(&c->side[i], c->context, &c->losses, &batch, error));
    int64_t batches = xph_sampler_batches(c->sampler);
    for (int64_t b = 0; b < batches; b++) {
        if (xph_cancelled(c->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "comparison cancelled by the host");
        XPH_TRY(xph_sampler_batch(c->sampler, 0, b, &batch, error));
        for (int i = 0; i < 2; i++) XPH_TRY(side_run(&c->side[i], &c->losses, &batch, error));
        XPH_TRY(count_batch(c, &batch, error));
    }
    return EXPHIL_OK;
}

/* ---- the report ---------------------------------------------------------------------------------------- */

static void fill(const comparing *c, exphil_comparison *to)
{
    const xph_model_shape *shape = xph_model_shape_of(c->side[0].model);
    const xph_head *heads = xph_model_heads(c->side[0].model);
    double frames = c->frames ? (double)c->frames : 1.0, squares = 0.0;
    to->frames = c->frames;
    to->heads = shape->heads;
    to->agreement = (double)c->agreed / frames;
    for (int64_t h = 0; h < shape->heads; h++) {
        exphil_head_comparison *head = &to->head[h];
        head->max_error = c->head[h].largest;
        head->rms_error = __builtin_sqrt(c->head[h].squares / (frames * (double)heads[h].count));
        head->kl = c->head[h].kl / frames;
        head->agreement = (double)c->head[h].agreed / frames;
        to->max_error = head->max_error > to->max_error ? head->max_error : to->max_error;
        to->kl += head->kl;
        squares += c->head[h].squares;
    }
    to->rms_error = __builtin_sqrt(squares / (frames * (double)shape->logits));
}

static exphil_status differs(const char *what, int64_t reference, int64_t model, exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_MISMATCH, "%s of the reference is %lld, of the model %lld", what,
                    (long long)reference, (long long)model);
}

/* Both must see the same inputs and give the same heads. */
static exphil_status check_pair(const exphil_model *reference, const exphil_model *model, exphil_error *error)
{
    const xph_model_shape *a = xph_model_shape_of(reference), *b = xph_model_shape_of(model);
    if (xph_model_context(reference) != xph_model_context(model))
        return xph_fail(error, EXPHIL_E_MISMATCH, "reference and model are of different contexts");
    if (a->spec_hash != b->spec_hash)
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "the spec of the reference is %s/%s (%016llx), of the model %s/%s "
                        "(%016llx)",
                        xph_model_spec(reference)->layout, xph_model_spec(reference)->codec,
                        (unsigned long long)a->spec_hash, xph_model_spec(model)->layout,
                        xph_model_spec(model)->codec, (unsigned long long)b->spec_hash);
    if (a->mode != b->mode) return differs("mode", a->mode, b->mode, error);
    XPH_TRY(xph_told_same(xph_model_told(reference), xph_model_told(model), "the reference's", "the model's",
                          error));
    if (a->delay != b->delay) return differs("delay_frames", a->delay, b->delay, error);
    if (a->slots != b->slots) return differs("action_slots", a->slots, b->slots, error);
    if (a->neutral_start != b->neutral_start)
        return differs("neutral_start", a->neutral_start, b->neutral_start, error);
    if (a->window != b->window) return differs("window_frames", a->window, b->window, error);
    return EXPHIL_OK;
}

static exphil_status compare_checked(const exphil_model *reference, const exphil_model *model,
                                     const exphil_dataset *dataset, int64_t batch,
                                     exphil_comparison *comparison, exphil_error *error)
{
    exphil_comparison known = EXPHIL_COMPARISON_INIT;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_comparison, comparison, error)); /* before the work, not after it */
    XPH_TRY(check_pair(reference, model, error));
    XPH_TRY(exphil_dataset_query(dataset, &info, error));
    XPH_TRY(xph_model_weights_hash(reference, &known.reference_hash, error));
    known.content_hash = info.content_hash;
    exphil_context *context = xph_model_context(model);
    comparing *c = xph_calloc(context, 1, sizeof *c);
    if (!c) return xph_no_memory(sizeof *c, error);
    c->context = context;
    c->side[0].name = "reference";
    c->side[0].model = reference;
    c->side[1].name = "model";
    c->side[1].model = model;
    exphil_status status = compare(c, dataset, batch, error);
    if (status >= 0) fill(c, &known);
    comparing_free(c);
    xph_free(context, c, sizeof *c);
    if (status < 0) return status;
    return XPH_GIVE(exphil_comparison, comparison, &known, error);
}

exphil_status exphil_model_compare(const exphil_model *reference, const exphil_model *model,
                                   const exphil_dataset *dataset, int64_t batch,
                                   exphil_comparison *comparison, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!reference || !model || !dataset || !comparison)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL",
                        !reference ? "reference"
                        : !model   ? "model"
                        : !dataset ? "dataset"
                                   : "comparison");
    XPH_TRY(xph_context_check(xph_model_context(reference), error));
    XPH_TRY(xph_context_check(xph_model_context(model), error));
    return compare_checked(reference, model, dataset, batch, comparison, error);
}
