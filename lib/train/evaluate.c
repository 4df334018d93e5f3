/* Evaluation: the training objective and accuracies, beside the baselines that a policy has to beat. All is
 * teacher-forced: past actions are the recorded ones, state is carried through whole episodes. alone.c has
 * the figures of a policy whose past actions are its own. */
#include "train/baseline.h"
#include "train/train.h"

#include <exphil/conditions.h>

typedef struct tally {
    const exphil_spec *spec;
    const xph_head *heads;
    const xph_baseline *baseline;
    int64_t frames, change_frames, exact, exact_change, exact_copy, exact_majority, exact_majority_change;
    double nll, frequency_nll;
    struct {
        double loss, nll, frequency;
        int64_t right, top3, right_change, changes, majority, copied;
    } head[EXPHIL_HEADS_MAX];
} tally;

/* Counts one head of one frame; returns whether the most likely value is the target. */
static bool count_head(tally *t, int64_t h, const double *logit, int32_t target, int32_t before)
{
    const xph_head *head = &t->heads[h];
    double nll;
    int32_t rank, best = xph_judge_head(head, logit, target, &nll, &rank);
    bool right = best == target, change = target != before;
    t->head[h].nll += nll;
    t->head[h].frequency += xph_baseline_nll(t->baseline, h, target);
    t->head[h].right += right;
    t->head[h].top3 += head->kind == EXPHIL_BERNOULLI ? right : rank < 3;
    t->head[h].changes += change;
    t->head[h].right_change += change && right;
    t->head[h].majority += t->baseline->majority[h] == target;
    t->head[h].copied += !change;
    return right;
}

static void count_row(tally *t, const double *logits, const int32_t *target, const int32_t *before)
{
    bool all = true, same = true, majority = true;
    for (int64_t h = 0; h < t->spec->head_count; h++) {
        all &= count_head(t, h, logits + t->heads[h].first, target[h], before[h]);
        same &= target[h] == before[h];
        majority &= t->baseline->whole[h] == target[h];
    }
    t->frames++;
    t->change_frames += !same;
    t->exact += all;
    t->exact_change += all && !same;
    t->exact_copy += same;
    t->exact_majority += majority;
    t->exact_majority_change += majority && !same;
}

static void count_batch(tally *t, const exphil_batch *batch, const int32_t *before, const double *logits,
                        int64_t width)
{
    int64_t heads = t->spec->head_count;
    for (int64_t row = 0; row < batch->batch * batch->time; row++)
        if (batch->mask[row] > 0.0f)
            count_row(t, logits + row * width, &batch->actions[row * heads], &before[row * heads]);
}

static double share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : 0.0;
}

static void fill_report(const tally *t, const xph_losses *losses, exphil_report *report)
{
    double frames = t->frames ? (double)t->frames : 1.0;
    report->frames = t->frames;
    report->change_frames = t->change_frames;
    report->heads = t->spec->head_count;
    report->exact_accuracy = share(t->exact, t->frames);
    report->exact_change_accuracy = share(t->exact_change, t->change_frames);
    report->exact_majority = share(t->exact_majority, t->frames);
    report->exact_majority_change = share(t->exact_majority_change, t->change_frames);
    report->exact_copy = share(t->exact_copy, t->frames);
    for (int64_t h = 0; h < t->spec->head_count; h++) {
        exphil_head_report *head = &report->head[h];
        head->loss = t->head[h].loss / frames;
        head->nll = t->head[h].nll / frames;
        head->frequency_nll = t->head[h].frequency / frames;
        head->accuracy = share(t->head[h].right, t->frames);
        head->top3 = share(t->head[h].top3, t->frames);
        head->change_accuracy = share(t->head[h].right_change, t->head[h].changes);
        head->majority_accuracy = share(t->head[h].majority, t->frames);
        head->copy_accuracy = share(t->head[h].copied, t->frames);
        report->loss += head->loss * losses->head[h].weight;
        report->nll += head->nll;
        report->frequency_nll += head->frequency_nll;
    }
}

exphil_status xph_feed_logits(const xph_feed *feed, float *narrow, double *wide)
{
    const xph_model_shape *shape = xph_model_shape_of(feed->model);
    const xph_backend *backend = feed->device->backend;
    xph_stream *stream = xph_net_stream(feed->net);
    size_t count = (size_t)(feed->batch * feed->time * shape->logits);
    void *to = shape->type == XPH_F64 ? (void *)wide : (void *)narrow;
    XPH_TRY(backend->download(stream, to, xph_net_logits(feed->net), count * shape->real_bytes));
    XPH_TRY(backend->stream_wait(stream));
    if (shape->type != XPH_F64)
        for (size_t i = 0; i < count; i++) wide[i] = (double)narrow[i];
    return EXPHIL_OK;
}

static exphil_status check_spec(const exphil_model *model, const exphil_dataset *dataset, exphil_error *error)
{
    const exphil_spec *data = xph_dataset_spec_of(dataset), *own = xph_model_spec(model);
    if (xph_dataset_context(dataset) != xph_model_context(model))
        return xph_fail(error, EXPHIL_E_MISMATCH, "dataset and model are of different contexts");
    if (xph_dataset_spec_hash(dataset) == xph_model_shape_of(model)->spec_hash) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_MISMATCH, "the dataset is %s/%s, the model wants %s/%s", data->layout,
                    data->codec, own->layout, own->codec);
}

/* conditions: room for those of sampling. */
static exphil_status whole_sampling(const exphil_model *model, const exphil_dataset *dataset, int64_t batch,
                                    exphil_sampling *sampling,
                                    exphil_condition_spec conditions[EXPHIL_CONDITIONS_MAX],
                                    exphil_error *error)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    if (batch < 0 || batch > 4096) return xph_fail(error, EXPHIL_E_INVALID, "batch must lie in 0..4096");
    XPH_TRY(exphil_dataset_query(dataset, &info, error));
    if (info.frames == 0) return xph_fail(error, EXPHIL_E_INVALID, "dataset is empty");
    *sampling = (exphil_sampling)EXPHIL_SAMPLING_INIT;
    XPH_TRY(exphil_model_sampling(model, sampling, error));
    bool window = sampling->mode == EXPHIL_MODE_WINDOW;
    sampling->batch = batch ? batch : 16;
    if (!window && sampling->batch > info.episodes) sampling->batch = info.episodes;
    sampling->in_order = 1;
    for (int64_t i = 0; i < sampling->condition_count; i++) {
        conditions[i] = sampling->conditions[i];
        conditions[i].mask = 0.0;
    }
    sampling->conditions = conditions;
    sampling->last_only = window;
    sampling->segment_frames = window ? 0 : info.frames;
    return EXPHIL_OK;
}

exphil_status xph_whole_sampler(const exphil_model *model, const exphil_dataset *dataset, int64_t batch,
                                const xph_fixed *fixed, xph_sampler **sampler, exphil_batch *first,
                                exphil_error *error)
{
    exphil_condition_spec conditions[EXPHIL_CONDITIONS_MAX];
    exphil_sampling sampling;
    XPH_TRY(check_spec(model, dataset, error));
    XPH_TRY(whole_sampling(model, dataset, batch, &sampling, conditions, error));
    XPH_TRY(xph_sampler_create(dataset, &sampling, sampler, error));
    xph_sampler_fix(*sampler, fixed ? fixed->conditions : NULL, fixed ? fixed->delay_id : 0);
    return xph_sampler_batch(*sampler, 0, 0, first, error);
}

/* Everything an evaluation holds, so that one function frees it. */
typedef struct evaluation {
    exphil_context *context;
    xph_sampler *sampler;
    xph_feed feed;
    xph_baseline baseline;
    float *narrow;
    double *wide;
    size_t narrow_bytes, wide_bytes;
} evaluation;

static void evaluation_free(evaluation *e)
{
    xph_free(e->context, e->narrow, e->narrow_bytes);
    xph_free(e->context, e->wide, e->wide_bytes);
    xph_baseline_free(&e->baseline);
    xph_feed_destroy(&e->feed);
    xph_sampler_destroy(e->sampler);
}

static void size_logits(evaluation *e, const exphil_model *model, int64_t rows)
{
    size_t count = (size_t)(rows * xph_model_shape_of(model)->logits);
    e->narrow_bytes = count * sizeof(float);
    e->wide_bytes = count * sizeof(double);
}

static exphil_status evaluation_make(evaluation *e, const exphil_model *model, const exphil_dataset *dataset,
                                     const exphil_dataset *frequencies, const xph_losses *losses,
                                     int64_t batch, const xph_fixed *fixed, exphil_error *error)
{
    exphil_batch first = EXPHIL_BATCH_INIT;
    XPH_TRY(xph_whole_sampler(model, dataset, batch, fixed, &e->sampler, &first, error));
    XPH_TRY(xph_feed_create(model, losses, first.batch, first.time, 0, &e->feed, error));
    XPH_TRY(xph_baseline_make(frequencies ? frequencies : dataset, &e->baseline, error));
    size_logits(e, model, first.batch * first.time);
    e->narrow = xph_alloc(e->context, e->narrow_bytes);
    e->wide = xph_alloc(e->context, e->wide_bytes);
    return e->narrow && e->wide ? EXPHIL_OK : xph_no_memory(e->wide_bytes, error);
}

static exphil_status evaluation_run(evaluation *e, const void *weights, const void *packed,
                                    const xph_losses *losses, tally *t, exphil_error *error)
{
    int64_t batches = xph_sampler_batches(e->sampler);
    for (int64_t i = 0; i < batches; i++) {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        double sums[EXPHIL_HEADS_MAX] = {0};
        if (xph_cancelled(e->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "evaluation cancelled by the host");
        XPH_TRY(xph_sampler_batch(e->sampler, 0, i, &batch, error));
        exphil_status status = xph_feed_measure(&e->feed, weights, packed, losses, &batch, sums);
        if (status >= 0) status = xph_feed_logits(&e->feed, e->narrow, e->wide);
        if (status >= 0) status = xph_feed_swap(&e->feed);
        if (status < 0) return xph_fail(error, status, "evaluation: the device failed");
        for (int64_t h = 0; h < t->spec->head_count; h++) {
            if (!(sums[h] - sums[h] == 0.0))
                return xph_fail(error, EXPHIL_E_NUMERIC,
                                "evaluation: the loss of head %s is not finite in batch %lld",
                                t->spec->heads[h].name, (long long)i);
            t->head[h].loss += sums[h];
        }
        count_batch(t, &batch, xph_sampler_before(e->sampler), e->wide,
                    xph_model_shape_of(e->feed.model)->logits);
    }
    return EXPHIL_OK;
}

/* The one field of a report that is read. Reports of 0.1 end before it. */
static exphil_status alone_asked(const exphil_report *report, int64_t *most, exphil_error *error)
{
    const size_t end = offsetof(exphil_report, alone_most_frames) + sizeof report->alone_most_frames;
    *most = report->struct_size >= end ? report->alone_most_frames : 0;
    if (*most >= 0) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "report: alone_most_frames is %lld, must be 0 or more",
                    (long long)*most);
}

/* Where the past is no input, it makes no difference whose it is. */
static exphil_status evaluate_alone(const evaluation *e, const void *weights, const void *packed,
                                    exphil_report *known, exphil_error *error)
{
    if (known->alone_most_frames == 0) return EXPHIL_OK;
    if (xph_model_shape_of(e->feed.model)->slots)
        return xph_evaluate_alone(e->feed.model, weights, packed, e->sampler, known->alone_most_frames, known,
                                  error);
    known->alone_frames = known->frames;
    known->alone_change_frames = known->change_frames;
    known->alone_nll = known->nll;
    known->alone_accuracy = known->exact_accuracy;
    known->alone_change_accuracy = known->exact_change_accuracy;
    return EXPHIL_OK;
}

exphil_status xph_evaluate(const exphil_model *model, const void *weights, const void *packed,
                           const exphil_dataset *dataset, const exphil_dataset *frequencies,
                           const xph_losses *losses, int64_t batch, const xph_fixed *fixed,
                           exphil_report *report, exphil_error *error)
{
    exphil_report known = EXPHIL_REPORT_INIT;
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_report, report, error)); /* before the work, not after it */
    XPH_TRY(alone_asked(report, &known.alone_most_frames, error));
    if (frequencies) XPH_TRY(check_spec(model, frequencies, error));
    evaluation e = {.context = xph_model_context(model)};
    exphil_status status = evaluation_make(&e, model, dataset, frequencies, losses, batch, fixed, error);
    tally t = {.spec = xph_model_spec(model), .heads = xph_model_heads(model), .baseline = &e.baseline};
    if (status >= 0) status = evaluation_run(&e, weights, packed, losses, &t, error);
    if (status >= 0) fill_report(&t, losses, &known);
    if (status >= 0) status = evaluate_alone(&e, weights, packed, &known, error);
    evaluation_free(&e);
    if (status < 0) return status;
    return XPH_GIVE(exphil_report, report, &known, error);
}

/* ---- how much memory it takes ------------------------------------------------------------------------------------ */

static void add_host(xph_held *to, uint64_t bytes)
{
    to->host += bytes;
}

/* All that is held from the first batch on; the greater of what is held before and after. */
static exphil_status held_teacher_forced(const exphil_model *model, const exphil_dataset *dataset,
                                         const exphil_dataset *frequencies, const xph_losses *losses,
                                         xph_held *during, size_t *before, exphil_error *error)
{
    const exphil_context *context = xph_model_context(model);
    exphil_condition_spec conditions[EXPHIL_CONDITIONS_MAX];
    exphil_sampling sampling;
    xph_data_bytes data;
    evaluation e = {.context = xph_model_context(model)};
    xph_held start = xph_context_held(context);
    XPH_TRY(whole_sampling(model, dataset, 0, &sampling, conditions, error));
    XPH_TRY(xph_data_bytes_of(dataset, NULL, &sampling, true, &data, error));
    XPH_TRY(xph_feed_create(model, losses, data.how.batch, data.how.time, 0, &e.feed, error));
    *during = xph_held_since(context, &start);
    xph_feed_destroy(&e.feed);
    size_logits(&e, model, data.how.batch * data.how.time);
    add_host(during, data.batches + data.games + data.order + xph_baseline_bytes(frequencies, before));
    if (xph_context_backend(context)->backend->host_memory) during->limited += data.batches;
    *before = *before > e.narrow_bytes + e.wide_bytes ? *before - e.narrow_bytes - e.wide_bytes : 0;
    add_host(during, e.narrow_bytes + e.wide_bytes);
    return EXPHIL_OK;
}

exphil_status xph_evaluate_held(const exphil_model *model, const exphil_dataset *dataset,
                                const exphil_dataset *frequencies, const xph_losses *losses, int64_t most,
                                xph_held *forced, xph_held *alone, exphil_error *error)
{
    size_t before = 0;
    XPH_TRY(held_teacher_forced(model, dataset, frequencies ? frequencies : dataset, losses, forced, &before,
                                error));
    *alone = (xph_held){.host = 0};
    if (most && xph_model_shape_of(model)->slots) {
        XPH_TRY(xph_alone_held(model, dataset, most, alone, error));
        *alone = (xph_held){alone->host + forced->host, alone->device + forced->device,
                            alone->limited + forced->limited};
    }
    add_host(forced, before);
    return EXPHIL_OK;
}

/* A model of one delay has only that one to choose. */
static exphil_status take_fixed(const exphil_model *model, const exphil_evaluation *how, xph_fixed *fixed,
                                exphil_error *error)
{
    const xph_told *told = xph_model_told(model);
    const int32_t *delay = how->delay_frames;
    XPH_TRY(xph_told_check(told, how->conditions, how->condition_count, "evaluation: ", error));
    if (!delay) return EXPHIL_OK;
    XPH_TRY(xph_told_delay(told, *delay, &fixed->delay_id, error));
    if (told->delays || *delay == xph_model_shape_of(model)->delay) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_MISMATCH, "delay_frames is %d, the model was trained with %d",
                    (int)*delay, (int)xph_model_shape_of(model)->delay);
}

exphil_status exphil_evaluate_as(const exphil_model *model, const exphil_dataset *dataset,
                                 const exphil_evaluation *how, exphil_report *report, exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_evaluation known = EXPHIL_EVALUATION_INIT;
    if (!model || !dataset || !report)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL",
                        !model     ? "model"
                        : !dataset ? "dataset"
                                   : "report");
    XPH_TRY(xph_context_check(xph_model_context(model), error));
    XPH_TRY(XPH_TAKE(exphil_evaluation, &known, how, error));
    xph_fixed fixed = {.conditions = known.conditions};
    XPH_TRY(take_fixed(model, &known, &fixed, error));
    xph_losses taken;
    const void *packed = NULL;
    exphil_model *retained = xph_model_retain(model);
    exphil_status status = xph_losses_take(xph_model_spec(model), known.losses, &taken, error);
    if (status >= 0) status = xph_model_packed(retained, &packed, error);
    if (status >= 0)
        status = xph_evaluate(model, xph_model_weights(model), packed, dataset, known.frequencies, &taken,
                              known.batch, &fixed, report, error);
    xph_model_release(retained);
    return status;
}

exphil_status exphil_evaluate(const exphil_model *model, const exphil_dataset *dataset,
                              const exphil_dataset *frequencies, const exphil_head_loss *losses,
                              int64_t batch, exphil_report *report, exphil_error *error)
{
    const exphil_evaluation how = {
        .struct_size = sizeof how, .frequencies = frequencies, .losses = losses, .batch = batch};
    return exphil_evaluate_as(model, dataset, &how, report, error);
}

exphil_status exphil_trainer_evaluate(const exphil_trainer *trainer, int32_t which,
                                      const exphil_dataset *dataset, const exphil_dataset *frequencies,
                                      exphil_report *report, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!trainer || !dataset || !report)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL",
                        !trainer   ? "trainer"
                        : !dataset ? "dataset"
                                   : "report");
    exphil_model *model = NULL;
    const void *packed = NULL;
    XPH_TRY(exphil_trainer_model(trainer, which, &model, error));
    exphil_status status = EXPHIL_OK;
    if (trainer->fake_quantize)
        status = xph_model_take_rounded(model, trainer->fake_quantize, xph_model_weights(model), error);
    if (status >= 0) status = xph_model_packed(model, &packed, error);
    if (status >= 0)
        status = xph_evaluate(model, xph_model_weights(model), packed, dataset, frequencies, &trainer->losses,
                              0, NULL, report, error);
    xph_model_release(model);
    return status;
}
