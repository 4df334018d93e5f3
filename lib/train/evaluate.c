/* Evaluation: the training objective and accuracies, beside the baselines that a policy has to beat, counted on the frames
 * that a walk shows (walk.c); figures of a policy whose past actions are its own are those of alone.c. */
#include "train/baseline.h"
#include "train/walk.h"

#include <exphil/conditions.h>

typedef struct tally {
    const exphil_spec *spec;
    const xph_head *heads;
    const xph_baseline *baseline;
    int64_t frames, change_frames, exact, exact_change, exact_copy, exact_majority, exact_majority_change;
    double nll, frequency_nll;
    struct {
        int64_t frames;
        double misses, mean, apart; /* sum of (V - G)^2; of G: mean, and sum of (G - mean)^2 (Welford 1962) */
    } value;
    struct {
        double loss, nll, frequency;
        int64_t right, top3, right_change, changes, majority, copied;
    } head[EXPHIL_HEADS_MAX];
} tally;

/* Counts one head of one frame; returns whether the most likely value is the target. */
static bool count_head(tally *t, int64_t h, const xph_seen *seen)
{
    const int32_t target = seen->target[h];
    bool right = seen->likely[h] == target, change = target != seen->before[h];
    t->head[h].nll += seen->nll[h];
    t->head[h].frequency += xph_baseline_nll(t->baseline, h, target);
    t->head[h].right += right;
    t->head[h].top3 += t->heads[h].kind == EXPHIL_BERNOULLI ? right : seen->rank[h] < 3;
    t->head[h].changes += change;
    t->head[h].right_change += change && right;
    t->head[h].majority += t->baseline->majority[h] == target;
    t->head[h].copied += !change;
    return right;
}

static void count_value(tally *t, const xph_seen *seen)
{
    const double miss = seen->value - seen->outcome, before = seen->outcome - t->value.mean;
    if (miss != miss) return; /* nothing is said, or not known */
    t->value.frames++;
    t->value.misses += miss * miss;
    t->value.mean += before / (double)t->value.frames;
    t->value.apart += before * (seen->outcome - t->value.mean);
}

static exphil_status count_frame(void *arg, const xph_seen *seen, exphil_error *error)
{
    tally *t = arg;
    bool all = true, same = true, majority = true;
    (void)error;
    for (int64_t h = 0; h < t->spec->head_count; h++) {
        all &= count_head(t, h, seen);
        same &= seen->target[h] == seen->before[h];
        majority &= t->baseline->whole[h] == seen->target[h];
    }
    count_value(t, seen);
    t->frames++;
    t->change_frames += !same;
    t->exact += all;
    t->exact_change += all && !same;
    t->exact_copy += same;
    t->exact_majority += majority;
    t->exact_majority_change += majority && !same;
    return EXPHIL_OK;
}

static double share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : 0.0;
}

static void fill_value(const tally *t, exphil_report *report)
{
    report->value_frames = t->value.frames;
    if (!t->value.frames) return;
    report->value_loss = t->value.misses / (double)t->value.frames;
    report->unexplained = t->value.apart > 0.0 ? t->value.misses / t->value.apart : 1.0;
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
    fill_value(t, report);
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

/* Everything an evaluation holds, so that one function frees it. */
typedef struct evaluation {
    xph_walk walk;
    xph_baseline baseline;
} evaluation;

static void evaluation_free(evaluation *e)
{
    xph_baseline_free(&e->baseline);
    xph_walk_free(&e->walk);
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
static exphil_status evaluate_alone(const xph_walk *walk, const void *weights, const void *packed,
                                    exphil_report *known, exphil_error *error)
{
    xph_alone_sums sums;
    if (known->alone_most_frames == 0) return EXPHIL_OK;
    if (xph_model_shape_of(walk->feed.model)->slots) {
        XPH_TRY(xph_walk_alone(walk->feed.model, weights, packed, walk->sampler, known->alone_most_frames,
                               NULL, NULL, &sums, error));
        known->alone_frames = sums.frames;
        known->alone_change_frames = sums.changes;
        known->alone_nll = sums.nll / (double)sums.frames;
        known->alone_accuracy = share(sums.exact, sums.frames);
        known->alone_change_accuracy = share(sums.exact_change, sums.changes);
        return EXPHIL_OK;
    }
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
    double loss_sums[EXPHIL_HEADS_MAX] = {0};
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_report, report, error)); /* before the work, not after it */
    XPH_TRY(alone_asked(report, &known.alone_most_frames, error));
    if (frequencies) XPH_TRY(xph_check_spec(model, frequencies, error));
    evaluation e = {.baseline = {.context = NULL}};
    exphil_status status = xph_walk_make(&e.walk, model, dataset, losses, batch, fixed, error);
    if (status >= 0) status = xph_baseline_make(frequencies ? frequencies : dataset, &e.baseline, error);
    tally t = {.spec = xph_model_spec(model), .heads = xph_model_heads(model), .baseline = &e.baseline};
    if (status >= 0)
        status = xph_walk_run(&e.walk, weights, packed, losses, loss_sums, count_frame, &t, error);
    for (int64_t h = 0; h < t.spec->head_count; h++) t.head[h].loss = loss_sums[h];
    if (status >= 0) fill_report(&t, losses, &known);
    if (status >= 0) status = evaluate_alone(&e.walk, weights, packed, &known, error);
    evaluation_free(&e);
    if (status < 0) return status;
    return XPH_GIVE(exphil_report, report, &known, error);
}

/* ---- how much memory it takes ------------------------------------------------------------------------------------ */

static void add_host(xph_held *to, uint64_t bytes)
{
    to->host += bytes;
}

/* All that is held from the first batch on, and what comes to that while the baseline is made. */
static exphil_status held_teacher_forced(const exphil_model *model, const exphil_dataset *dataset,
                                         const exphil_dataset *frequencies, const xph_losses *losses,
                                         xph_held *during, size_t *before, exphil_error *error)
{
    const exphil_context *context = xph_model_context(model);
    exphil_condition_spec conditions[EXPHIL_CONDITIONS_MAX];
    exphil_sampling sampling;
    xph_data_bytes data;
    xph_walk walk = {.context = xph_model_context(model)};
    xph_held start = xph_context_held(context);
    XPH_TRY(xph_whole_sampling(model, dataset, 0, &sampling, conditions, error));
    XPH_TRY(xph_data_bytes_of(dataset, NULL, &sampling, true, &data, error));
    XPH_TRY(xph_feed_create(model, losses, data.how.batch, data.how.time, 1, 0, &walk.feed, error));
    *during = xph_held_since(context, &start);
    xph_feed_destroy(&walk.feed);
    xph_walk_size(&walk, model, data.how.batch * data.how.time);
    add_host(during, data.batches + data.games + data.order + xph_baseline_bytes(frequencies, before));
    if (xph_context_backend(context)->backend->host_memory) during->limited += data.batches;
    add_host(during, walk.narrow_bytes + walk.wide_bytes + walk.values_bytes);
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
exphil_status xph_fixed_take(const exphil_model *model, const int32_t *conditions, int64_t condition_count,
                             const int32_t *delay, xph_fixed *fixed, exphil_error *error)
{
    const xph_told *told = xph_model_told(model);
    XPH_TRY(xph_told_check(told, conditions, condition_count, "evaluation: ", error));
    *fixed = (xph_fixed){.conditions = conditions};
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
    xph_fixed fixed;
    XPH_TRY(
        xph_fixed_take(model, known.conditions, known.condition_count, known.delay_frames, &fixed, error));
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
