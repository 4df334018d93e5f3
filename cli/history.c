/* Curves of a run, in a bounded number of points. */
#include "history.h"

#include <math.h>

void history_update(history *of, double loss)
{
    if (!isfinite(loss)) return;
    if (!of->every) of->every = 1;
    if (!of->updates++) of->first = of->peak = loss;
    if (loss > of->peak) of->peak = loss;
    of->sum += loss;
    if (++of->filled < of->every) return;
    of->loss[of->count++] = of->sum / (double)of->every;
    of->sum = 0.0;
    of->filled = 0;
    if (of->count < HISTORY_MOST) return;
    for (int64_t i = 0; i < HISTORY_MOST / 2; i++) of->loss[i] = (of->loss[2 * i] + of->loss[2 * i + 1]) / 2;
    of->count = HISTORY_MOST / 2;
    of->every *= 2;
}

json_t *history_loss_json(const history *of)
{
    if (!of->updates) return NULL;
    json_t *means = json_array();
    for (int64_t i = 0; i < of->count; i++) json_array_append_new(means, json_real(of->loss[i]));
    return json_pack("{s:I,s:f,s:f,s:I,s:o,s:I,s:f}", "updates", (json_int_t)of->updates, "first", of->first,
                     "peak", of->peak, "every", (json_int_t)of->every, "means", means, "filled",
                     (json_int_t)of->filled, "sum", of->sum);
}

static int64_t count_of(const json_t *json, const char *name)
{
    return (int64_t)json_integer_value(json_object_get(json, name));
}

static double real_of(const json_t *json, const char *name)
{
    double value = json_number_value(json_object_get(json, name));
    return isfinite(value) ? value : 0.0;
}

void history_loss_read(history *of, const json_t *json)
{
    const json_t *means = json_object_get(json, "means");
    size_t count = json_array_size(means);
    int64_t every = count_of(json, "every"), filled = count_of(json, "filled"),
            updates = count_of(json, "updates");
    if (updates < 1 || every < 1 || filled < 0 || filled >= every || count >= HISTORY_MOST) return;
    of->updates = updates;
    of->every = every;
    of->filled = filled;
    of->first = real_of(json, "first");
    of->peak = real_of(json, "peak");
    of->sum = real_of(json, "sum");
    of->count = (int64_t)count;
    for (size_t i = 0; i < count; i++) of->loss[i] = json_number_value(json_array_get(means, i));
}

double history_nll(const history *of, const history_score *score)
{
    return of->by == SCORE_ALONE && score->alone ? score->alone_nll : score->nll;
}

static bool better(const history *of, const history_score *score, const history_score *than)
{
    switch (of->by) {
    case SCORE_LOSS:
        return score->loss < than->loss;
    case SCORE_EXACT:
        return score->accuracy > than->accuracy;
    case SCORE_CHANGE:
        return score->change_accuracy > than->change_accuracy;
    case SCORE_UNEXPLAINED:
        return score->valued && (!than->valued || score->unexplained < than->unexplained);
    default:
        return history_nll(of, score) < history_nll(of, than);
    }
}

/* Of too many points every second one stays. */
static void add(history *of, const history_score *score)
{
    if (of->held_count && of->held[of->held_count - 1].update >= score->update) return;
    if (!of->best.update || better(of, score, &of->best)) of->best = *score;
    of->last = *score;
    if (!of->held_every) of->held_every = 1;
    if (of->held_seen++ % of->held_every) return;
    of->held[of->held_count++] = *score;
    if (of->held_count < HISTORY_MOST) return;
    for (int64_t i = 0; i < HISTORY_MOST / 2; i++) of->held[i] = of->held[2 * i];
    of->held_count = HISTORY_MOST / 2;
    of->held_every *= 2;
}

void history_held(history *of, int64_t update, const exphil_report *report)
{
    history_score score = {.update = update,
                           .loss = report->loss,
                           .nll = report->nll,
                           .accuracy = report->exact_accuracy,
                           .change_accuracy = report->exact_change_accuracy,
                           .alone = report->alone_frames > 0,
                           .unexplained = report->unexplained,
                           .valued = report->value_frames > 0};
    if (score.alone) {
        score.alone_nll = report->alone_nll;
        score.alone_accuracy = report->alone_accuracy;
    }
    if (!isfinite(score.loss)) return;
    /* A second score of the same weights, with more measured, stands in the place of the first. */
    if (of->last.update == update && score.alone) {
        of->last = score;
        if (of->best.update == update) of->best = score;
        return;
    }
    add(of, &score);
}

json_t *history_score_json(const history_score *score)
{
    json_t *json =
        json_pack("{s:I,s:f,s:f,s:f,s:f}", "update", (json_int_t)score->update, "loss", score->loss, "nll",
                  score->nll, "accuracy", score->accuracy, "change_accuracy", score->change_accuracy);
    if (score->valued) json_object_set_new(json, "unexplained", json_real(score->unexplained));
    if (!score->alone) return json;
    json_object_set_new(json, "alone_nll", json_real(score->alone_nll));
    json_object_set_new(json, "alone_accuracy", json_real(score->alone_accuracy));
    return json;
}

static bool number(const json_t *json, const char *name, double *value)
{
    const json_t *member = json_object_get(json, name);
    if (json_is_number(member)) *value = json_number_value(member);
    return json_is_number(member) && isfinite(*value);
}

bool history_score_read(const json_t *json, history_score *score)
{
    history_score known = {.update = (int64_t)json_integer_value(json_object_get(json, "update"))};
    if (known.update < 1 || !number(json, "loss", &known.loss) || !number(json, "nll", &known.nll) ||
        !number(json, "accuracy", &known.accuracy) ||
        !number(json, "change_accuracy", &known.change_accuracy))
        return false;
    known.alone =
        number(json, "alone_nll", &known.alone_nll) && number(json, "alone_accuracy", &known.alone_accuracy);
    known.valued = number(json, "unexplained", &known.unexplained);
    *score = known;
    return true;
}

json_t *history_json(const history *of)
{
    if (!of->last.update) return NULL;
    json_t *curve = json_array();
    for (int64_t i = 0; i < of->held_count; i++) {
        json_t *point =
            json_pack("[I,f,f]", (json_int_t)of->held[i].update, of->held[i].loss, of->held[i].nll);
        if (of->held[i].alone) json_array_append_new(point, json_real(of->held[i].alone_nll));
        json_array_append_new(curve, point);
    }
    return json_pack("{s:o,s:o,s:I,s:I,s:o}", "last", history_score_json(&of->last), "best",
                     history_score_json(&of->best), "count", (json_int_t)of->held_seen, "every",
                     (json_int_t)of->held_every, "curve", curve);
}

void history_read(history *of, const json_t *json)
{
    const json_t *curve = json_object_get(json, "curve");
    history_score last, best;
    if (!history_score_read(json_object_get(json, "last"), &last) ||
        !history_score_read(json_object_get(json, "best"), &best))
        return;
    for (size_t i = 0; i < json_array_size(curve); i++) {
        const json_t *point = json_array_get(curve, i);
        history_score score = {.update = (int64_t)json_integer_value(json_array_get(point, 0)),
                               .loss = json_number_value(json_array_get(point, 1)),
                               .nll = json_number_value(json_array_get(point, 2)),
                               .alone_nll = json_number_value(json_array_get(point, 3)),
                               .alone = json_is_number(json_array_get(point, 3))};
        if (score.update > 0 && isfinite(score.loss) && isfinite(score.nll)) add(of, &score);
    }
    if (count_of(json, "count") >= of->held_count && count_of(json, "every") >= 1) {
        of->held_seen = count_of(json, "count");
        of->held_every = count_of(json, "every");
    }
    of->best = best;
    of->last = last;
}
