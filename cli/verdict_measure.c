/* What the rules of a verdict look at: measures of a report, an examination, a history and the options of the run. */
#include "verdict.h"

#include <math.h>

/* Means over a stretch of the curve of the loss, from and to as shares of it. */
static double stretch(const history *of, double from, double to)
{
    int64_t first = (int64_t)(from * (double)of->count), end = (int64_t)(to * (double)of->count);
    double sum = 0.0;
    if (end <= first) end = first + 1;
    if (end > of->count) end = of->count;
    if (first >= end) first = end - 1;
    for (int64_t i = first; i < end; i++) sum += of->loss[i];
    return sum / (double)(end - first);
}

/* The held-out nll at an update, on the line between the scores around it. */
static double nll_at(const history *h, double update)
{
    const history_score *before = &h->held[0], *after = &h->last;
    for (int64_t i = 0; i < h->held_count; i++) {
        if ((double)h->held[i].update <= update) before = &h->held[i];
        if ((double)h->held[i].update < update) continue;
        after = &h->held[i];
        break;
    }
    double span = (double)(after->update - before->update);
    double part = span > 0.0 ? (update - (double)before->update) / span : 0.0;
    return history_nll(h, before) + part * (history_nll(h, after) - history_nll(h, before));
}

/* In the second half at most every fourth score is above the one before: what swings, or restarts, says nothing of what is to
 * come. */
static bool falls_steadily(const history *h)
{
    int64_t rises = 0, steps = 0;
    for (int64_t i = 1; i < h->held_count; i++) {
        if (2 * h->held[i].update <= h->last.update) continue;
        rises += history_nll(h, &h->held[i]) > history_nll(h, &h->held[i - 1]);
        steps++;
    }
    return 4 * rises <= steps;
}

/* The last two quarters fell by d1 and d2: going on as it slows, the curve falls by d2 (r + r^2 + ...), r = d2 / d1. */
static void measure_fall(const history *h, verdict_case *c)
{
    double end = (double)h->last.update, last = history_nll(h, &h->last);
    if (h->held_seen < 4 || !falls_steadily(h)) return;
    double middle = nll_at(h, 0.5 * end), late = nll_at(h, 0.75 * end);
    c->fell = late - last;
    if (c->fell <= 0.0 || middle <= late) return;
    double ratio = fmin(c->fell / (middle - late), 0.8);
    c->to_come = c->fell * ratio / (1.0 - ratio);
}

static void measure_history(const history *h, verdict_case *c)
{
    c->refused = h->refused;
    c->run = h->count > 0;
    c->points = h->held_seen;
    c->best_update = h->best.update;
    c->best_nll = history_nll(h, &h->best);
    c->last_nll = history_nll(h, &h->last);
    c->by_alone = h->by == SCORE_ALONE && h->last.alone;
    measure_fall(h, c);
    if (!c->run) return;
    c->first = h->first;
    c->peak = h->peak;
    c->middle = stretch(h, 0.45, 0.55);
    c->end = stretch(h, 0.9, 1.0);
    c->least = c->end;
    for (int twentieth = 0; twentieth <= 18; twentieth++) {
        double at = 0.05 * twentieth, here = stretch(h, at, at + 0.1);
        if (here < c->least) c->least = here;
    }
}

/* Of the heads that vary in what is recorded, the one whose decisions vary most. */
static void measure_exam(const exam *e, verdict_case *c)
{
    double frames = e->frames ? (double)e->frames : 1.0;
    c->commonest = 1.0;
    for (int64_t h = 0; h < e->spec.head_count; h++) {
        int64_t most = 0;
        if (e->spec.heads[h].kind == EXPHIL_BERNOULLI) {
            for (int32_t i = 0; i < e->spec.heads[h].count; i++) {
                c->recorded_presses += (double)e->head[h].bit[i].recorded / frames;
                c->decided_presses += (double)e->head[h].bit[i].decided / frames;
                c->drawn_presses += e->head[h].bit[i].probability / frames;
                double decided = (double)e->head[h].bit[i].decided / frames;
                if (1.0 - decided < c->commonest && decided < 0.5) c->commonest = 1.0 - decided;
                if (decided < c->commonest && decided >= 0.5) c->commonest = decided;
            }
            continue;
        }
        for (int32_t k = 0; k < e->spec.heads[h].count &&
                            k < (int32_t)(sizeof e->head[h].classes / sizeof e->head[h].classes[0]);
             k++)
            if (e->head[h].classes[k] > most) most = e->head[h].classes[k];
        if ((double)most / frames < c->commonest) c->commonest = (double)most / frames;
    }
}

static double given(const json_t *options, const char *name, double otherwise)
{
    const json_t *value = json_object_get(options, name);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static void measure_options(const verdict_facts *facts, verdict_case *c)
{
    const json_t *options = facts->options;
    c->slots = facts->policy->action_slots;
    c->delay = facts->policy->delay_frames;
    c->rate = given(options, "rate", 0.0);
    c->decay = given(options, "decay", 0.0);
    c->button_weight = given(options, "button-weight", 1.0);
    c->unclipped = given(options, "clip", 1.0) < 0.0;
    c->uncopied = given(options, "drop-past", 0.0) > 0.0 || given(options, "own-past", 0.0) > 0.0;
}

void verdict_measure(const verdict_facts *facts, verdict_case *c)
{
    const exphil_report *scored = facts->scored;
    *c = (verdict_case){.nll = scored->nll};
    measure_options(facts, c);
    c->train_nll = facts->train ? facts->train->nll : 0.0;
    c->train_loss = facts->train ? facts->train->loss : 0.0;
    c->frequency = scored->frequency_nll;
    c->forced = scored->exact_accuracy;
    c->alone = scored->alone_accuracy;
    c->alone_nll = scored->alone_nll;
    c->measured_alone = scored->alone_frames > 0;
    c->majority = scored->exact_majority;
    c->copy = scored->exact_copy;
    if (facts->seen) measure_exam(facts->seen, c);
    if (facts->of) measure_history(facts->of, c);
    if (c->by_alone && c->measured_alone) c->nll = scored->alone_nll;
}

json_t *verdict_case_json(const verdict_case *c)
{
    json_t *o = json_object();
#define REAL(name)  json_object_set_new(o, #name, json_real(c->name))
#define WHOLE(name) json_object_set_new(o, #name, json_integer(c->name))
    REAL(first), REAL(peak), REAL(middle), REAL(end), REAL(least), WHOLE(updates), WHOLE(refused),
        WHOLE(frames);
    REAL(passes), WHOLE(best_update), WHOLE(points);
    REAL(train_nll), REAL(nll), REAL(frequency), REAL(forced), REAL(alone), REAL(majority), REAL(copy);
    WHOLE(slots), REAL(recorded_presses), REAL(decided_presses), REAL(drawn_presses), REAL(commonest),
        REAL(best_nll), REAL(last_nll), REAL(fell), REAL(to_come);
#undef REAL
#undef WHOLE
    return o;
}

json_t *verdict_json(const verdict *v)
{
    return json_pack("{s:s,s:s,s:s}", "name", v->name, "figure", v->figure, "advice", v->advice);
}
