/* The rules of a verdict. Each limit stands between measured cases: bench/verdicts.py has them, with what was measured. */
#include "verdict.h"
#include "commands.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Shares of what could be learnt: how much lower the plain loss is than that by frequencies alone. */
static double skill(double nll, double frequency)
{
    return frequency > 0.0 ? 1.0 - nll / frequency : 0.0;
}

static void say(verdict *v, verdict_word word, const char *advice, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void say(verdict *v, verdict_word word, const char *advice, const char *format, ...)
{
    static const char *const names[] = {"good",         "too short",       "overfitted",
                                        "diverged",     "copies its past", "never presses a button",
                                        "data too few", "one class only"};
    va_list values;
    va_start(values, format);
    v->word = word;
    v->name = names[word];
    v->advice = advice;
    vsnprintf(v->figure, sizeof v->figure, format, values);
    va_end(values);
}

/* ---- rules, each with what it was measured on (bench/verdicts.py) ------------------------------------------ */

/* Measured: loss at the end 6 times its least, or once 2 to 300 times that of new weights, and then no better than
 * frequencies; in good runs at most 1.05 times its least. */
static bool diverged(const verdict_case *c, verdict *v)
{
    static const char advice[] = "Begin anew with a third of the rate (--rate), or with --warmup 200.";
    if (!c->run) return false;
    bool ends_high = c->end > 1.5 * c->least && c->end - c->least > 0.05 * (c->first - c->least);
    bool burst = c->peak > 1.5 * c->first && skill(c->nll, c->frequency) < 0.1;
    if (c->refused > c->updates / 10 || c->refused >= 10)
        say(v, VERDICT_DIVERGED, advice, "%" PRId64 " updates had a loss or gradient that is not finite.",
            c->refused);
    else if (ends_high)
        say(v, VERDICT_DIVERGED, advice, "The training loss is %.3g at the end; it was %.3g before.", c->end,
            c->least);
    else if (burst)
        say(v, VERDICT_DIVERGED, advice,
            "The training loss rose to %.3g, from %.3g of new weights, and did not recover: the policy knows "
            "no more than "
            "how frequent actions are.",
            c->peak, c->first);
    else
        return false;
    return true;
}

/* Measured: held-out loss 1.2 to 2.4 times its least, and 2.5 % or more of what was learnt is lost by it; in good runs at most
 * 1.25 times and 1.2 %, because there is little left to learn. What even its best weights cannot do, other data must. */
static bool overfits(const verdict_case *c, verdict *v)
{
    if (!c->held) return false;
    bool lost = c->last_nll - c->best_nll > 0.02 * (c->frequency - c->best_nll);
    bool rose = c->points > 1 && c->held_last > 1.1 * c->held_best && lost && c->train_nll < 0.8 * c->nll;
    bool gap = c->train_nll < 0.5 * c->nll && skill(c->nll, c->frequency) < 0.1;
    if (!rose && !gap) return false;
    if (c->frames < 3600 || skill(c->points ? c->best_nll : c->nll, c->frequency) < 0.1)
        say(v, VERDICT_FEW_DATA, "Add games, of more than one match; longer training does not help.",
            "On what was held out the plain loss was never below %.3g, and frequencies alone have %.3g; on "
            "the %" PRId64 " frames learnt from it is %.3g.",
            c->points ? c->best_nll : c->nll, c->frequency, c->frames, c->train_nll);
    else
        say(v, VERDICT_OVERFITTED, "Stop there (--updates), or add games; longer training makes it worse.",
            "Held-out loss was %.4g after update %" PRId64 " and is %.4g after update %" PRId64 ".",
            c->held_best, c->best_update, c->held_last, c->updates);
    return true;
}

/* Still falling, and as good on what it has not seen: more of the same is what it lacks. */
static bool too_short(const verdict_case *c, verdict *v)
{
    double known = skill(c->train_nll, c->frequency);
    double falls = c->middle > 0.0 ? 1.0 - c->end / c->middle : 0.0;
    if (!c->run || c->train_nll < 0.8 * c->nll) return false;
    if (c->points > 2 && c->best_update < c->updates) return false; /* the held-out score no longer falls */
    bool one = c->commonest >= 0.999 && c->passes >= 5.0;
    if (one || known >= 0.6 || falls < (known < 0.3 ? 0.03 : 0.12)) return false;
    say(v, VERDICT_TOO_SHORT, "Train longer: twice as many --updates, or more.",
        "The training loss still fell by %.0f %% in the second half of the run, and is no lower than on data "
        "that it has not seen.",
        100.0 * falls);
    return true;
}

static bool one_class(const verdict_case *c, verdict *v)
{
    if (c->majority >= 0.995)
        say(v, VERDICT_ONE_CLASS, "Choose players who act: --least-input 0.2.",
            "%.1f %% of the frames have one and the same recorded action: there is nothing to learn.",
            100.0 * c->majority);
    else if (c->commonest >= 0.999)
        say(v, VERDICT_ONE_CLASS,
            "Train with --decay 0 and a lower --rate, and --balance-action 0.5 if the rest of the data is "
            "idle.",
            "On %.1f %% of the frames its decision is the same, which was recorded on %.1f %%.",
            100.0 * c->commonest, 100.0 * c->majority);
    else
        return false;
    return true;
}

/* Measured: alone right on 0.2 to 0.6 of the frames on which it is right when it is shown what was pressed. */
static bool copies(const verdict_case *c, verdict *v)
{
    if (!c->slots || !c->measured_alone || !(c->alone < 0.8 * c->forced)) return false;
    if (c->frequency > 0.0 && c->nll >= c->frequency)
        return false; /* all begin so, and know nothing else yet */
    say(v, VERDICT_COPIES, "Better: " COPYING_ADVICE ".",
        "Shown the recorded past actions it is right on %.1f %% of the frames, alone on %.1f %%: it repeats "
        "what it is "
        "shown.",
        100.0 * c->forced, 100.0 * c->alone);
    return true;
}

static bool never_presses(const verdict_case *c, verdict *v)
{
    if (c->recorded_presses < 0.005 || c->decided_presses >= 0.05 * c->recorded_presses) return false;
    say(v, VERDICT_NEVER_PRESSES, "Train with --button-weight 3.",
        "Buttons are down %.2f times in 100 frames; by its decisions %.2f times.",
        100.0 * c->recorded_presses, 100.0 * c->decided_presses);
    return true;
}

void verdict_of(const verdict_case *c, verdict *v)
{
    if ((c->majority >= 0.995 && one_class(c, v)) || diverged(c, v) || overfits(c, v) || too_short(c, v) ||
        one_class(c, v) || copies(c, v) || never_presses(c, v))
        return;
    if (c->run && skill(c->nll, c->frequency) < 0.05) {
        say(v, VERDICT_TOO_SHORT, "Train longer (--updates), with another --rate or a larger --hidden.",
            "The plain loss is %.3g; frequencies alone have %.3g.", c->nll, c->frequency);
        return;
    }
    say(v, VERDICT_GOOD, "",
        "%s it is right on %.1f %% of the frames; the commonest action would be on %.1f %%.",
        c->measured_alone ? "Alone" : "Shown past actions",
        100.0 * (c->measured_alone ? c->alone : c->forced), 100.0 * c->majority);
}

/* ---- measures ------------------------------------------------------------------------------------------ */

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

static void measure_history(const history *h, verdict_case *c)
{
    c->refused = h->refused;
    c->run = h->count > 0;
    c->points = h->held_seen;
    c->held_best = h->best.loss;
    c->held_last = h->last.loss;
    c->best_update = h->best.update;
    c->best_nll = h->best.nll;
    c->last_nll = h->last.nll;
    if (!c->run) return;
    c->first = h->first;
    c->peak = h->peak;
    c->middle = stretch(h, 0.45, 0.55);
    c->end = stretch(h, 0.9, 1.0);
    c->least = c->end;
    for (double at = 0.0; at < 0.95; at += 0.05) {
        double here = stretch(h, at, at + 0.1);
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

void verdict_measure(const exphil_report *scored, const exphil_report *train, const exam *seen,
                     const history *of, int64_t slots, verdict_case *c)
{
    *c = (verdict_case){.slots = slots};
    c->nll = scored->nll;
    c->train_nll = train ? train->nll : 0.0;
    c->frequency = scored->frequency_nll;
    c->forced = scored->exact_accuracy;
    c->alone = scored->alone_accuracy;
    c->measured_alone = scored->alone_frames > 0;
    c->majority = scored->exact_majority;
    c->copy = scored->exact_copy;
    if (seen) measure_exam(seen, c);
    if (of) measure_history(of, c);
}

json_t *verdict_case_json(const verdict_case *c)
{
    json_t *o = json_object();
#define REAL(name)  json_object_set_new(o, #name, json_real(c->name))
#define WHOLE(name) json_object_set_new(o, #name, json_integer(c->name))
    REAL(first), REAL(peak), REAL(middle), REAL(end), REAL(least), WHOLE(updates), WHOLE(refused),
        WHOLE(frames);
    REAL(passes), REAL(held_best), REAL(held_last), WHOLE(best_update), WHOLE(points);
    REAL(train_nll), REAL(nll), REAL(frequency), REAL(forced), REAL(alone), REAL(majority), REAL(copy);
    WHOLE(slots), REAL(recorded_presses), REAL(decided_presses), REAL(commonest), REAL(best_nll),
        REAL(last_nll);
#undef REAL
#undef WHOLE
    return o;
}

json_t *verdict_json(const verdict *v)
{
    return json_pack("{s:s,s:s,s:s}", "name", v->name, "figure", v->figure, "advice", v->advice);
}

void verdict_print_scored(const exphil_report *scored, const exam *seen, int64_t slots)
{
    verdict_case c;
    verdict v;
    if (scored->frames == 0) return;
    verdict_measure(scored, NULL, seen, NULL, slots, &c);
    verdict_of(&c, &v);
    if (v.word != VERDICT_GOOD)
        verdict_print(&v);
    else if (c.nll >= c.frequency)
        printf("\nOn these frames it knows less than how frequent actions are: plain loss %.4g, by "
               "frequencies %.4g.\n",
               c.nll, c.frequency);
}

void verdict_print(const verdict *v)
{
    putchar('\n');
    if (v->advice[0])
        print_paragraph("Verdict: %s. %s %s", v->name, v->figure, v->advice);
    else
        print_paragraph("Verdict: %s. %s", v->name, v->figure);
}
