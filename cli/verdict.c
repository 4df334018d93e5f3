/* The rules of a verdict. Each limit stands between measured cases: bench/verdicts.py has them, with what was measured. */
#include "verdict.h"
#include "commands.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Shares of what could be learnt: how much lower the nll is than that by frequencies alone. */
static double skill(double nll, double frequency)
{
    return frequency > 0.0 ? 1.0 - nll / frequency : 0.0;
}

static void say(verdict *v, verdict_word word, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(verdict *v, verdict_word word, const char *format, ...)
{
    static const char *const names[] = {"good",         "too short",       "overfitted",
                                        "diverged",     "copies its past", "never presses a button",
                                        "data too few", "one class only"};
    va_list values;
    va_start(values, format);
    v->word = word;
    v->name = names[word];
    v->advice[0] = 0;
    vsnprintf(v->figure, sizeof v->figure, format, values);
    va_end(values);
}

static void advise(verdict *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void advise(verdict *v, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(v->advice, sizeof v->advice, format, values);
    va_end(values);
}

/* ---- rules, each with what it was measured on (bench/verdicts.py) ------------------------------------------ */

/* A third of what was too much may be too much, too: the default rate trains. */
static void advise_rate(const verdict_case *c, verdict *v)
{
    const char *clip = c->unclipped ? " and --clip 1" : "";
    if (c->rate > 0.003)
        advise(v, "Begin anew with --rate 0.001%s.", clip);
    else if (c->rate > 0.0)
        advise(v, "Begin anew with --rate %.2g%s.", c->rate / 3.0, clip);
    else
        advise(v, "Begin anew with a third of the rate (--rate)%s.", clip);
}

/* Measured: loss at the end 6 times its least, or once 2 to 300 times that of new weights, and then no better than
 * frequencies; in good runs at most 1.05 times its least. */
static bool diverged(const verdict_case *c, verdict *v)
{
    if (!c->run) return false;
    /* small batches swing: then the weights are as good on all the data as the run was at its best */
    bool ends_high = c->end > 1.5 * c->least && c->end - c->least > 0.05 * (c->first - c->least) &&
                     c->train_loss > 1.5 * c->least;
    bool burst = c->peak > 1.5 * c->first && skill(c->nll, c->frequency) < 0.1;
    if (c->refused > c->updates / 10 || c->refused >= 10)
        say(v, VERDICT_DIVERGED, "%" PRId64 " updates had a loss or gradient that is not finite.",
            c->refused);
    else if (ends_high)
        say(v, VERDICT_DIVERGED,
            "The training loss of the last tenth of the run is %.3g; it was %.3g before.", c->end, c->least);
    else if (burst)
        say(v, VERDICT_DIVERGED,
            "The training loss rose to %.3g, from %.3g at the beginning, and did not recover: the nll is "
            "%.3g, "
            "that by frequencies alone %.3g.",
            c->peak, c->first, c->nll, c->frequency);
    else
        return false;
    advise_rate(c, v);
    return true;
}

/* Alone, as in play, where that was measured. */
static double right(const verdict_case *c)
{
    return c->measured_alone ? c->alone : c->forced;
}

static double known_of(const verdict_case *c)
{
    return skill(c->measured_alone && !c->by_alone ? c->alone_nll : c->nll, c->frequency);
}

/* Measured: what ended within a pass knew 1 % or less, and was right as often as who always takes the commonest action, or less.
 * What else seems wrong with it has had no time to be learnt. */
static bool hardly_begun(const verdict_case *c, verdict *v)
{
    if (!c->run || c->passes >= 1.0 || right(c) > c->majority || skill(c->nll, c->frequency) >= 0.3)
        return false;
    say(v, VERDICT_TOO_SHORT,
        "It has seen %.0f %% of the training data, and is right on %.1f %% of the frames%s; always the "
        "commonest action would be on %.1f %%.",
        100.0 * c->passes, 100.0 * right(c), c->measured_alone ? " alone" : "", 100.0 * c->majority);
    advise(v, "Train longer: without --updates a run makes several passes.");
    return true;
}

/* Measured: what is known of a minute or less, in as many passes as may be, is below nothing. */
static bool tiny(const verdict_case *c)
{
    return c->frames < 3600 && c->passes >= 10.0;
}

/* Measured: held-out nll 1.12 to 2.4 times its least, and 2.5 % or more of what was learnt is lost by it, or 60 % where little
 * was learnt; in good runs at most 1.25 times and 1.2 %, because there is little left to learn. What even its best weights
 * cannot do, other data must. */
static bool overfits(const verdict_case *c, verdict *v)
{
    if (!c->held) return false;
    /* the curve may be of a part of what is held out: at its best the policy was as much better on all of it */
    double back = c->points ? c->last_nll - c->best_nll : 0.0, best = c->nll - back,
           known = skill(best, c->frequency), lost = c->frequency > best ? back / (c->frequency - best) : 1.0;
    bool apart = c->train_nll < 0.8 * c->nll;
    bool rose = apart && c->points > 1 &&
                ((c->last_nll > 1.1 * c->best_nll && lost > 0.03) || (lost > 0.1 && !c->by_alone));
    bool gap =
        apart && !c->by_alone && skill(c->train_nll, c->frequency) > 0.2 && skill(c->nll, c->frequency) < 0.1;
    if (!rose && !gap && !(tiny(c) && known < 0.1)) return false;
    if ((c->frames < 3600 && known < 0.5) || (known < 0.1 && !c->by_alone)) {
        char turned[64] = "";
        if (back > 0.02 * c->best_nll)
            snprintf(turned, sizeof turned, ", and was %.3g after update %" PRId64, best, c->best_update);
        say(v, VERDICT_FEW_DATA,
            "On what was held out the nll is %.3g%s; frequencies alone have %.3g. On the %" PRId64
            " frames learnt from it is %.3g.",
            c->nll, turned, c->frequency, c->frames, c->train_nll);
        advise(v, "Add games: it learnt from %" PRId64 " and is scored on %" PRId64 "%s.", c->games,
               c->held_games, turned[0] ? "; longer training does not help" : "");
    } else {
        say(v, VERDICT_OVERFITTED,
            "Held-out nll%s was %.4g after update %" PRId64 " and is %.4g after update %" PRId64 ".",
            c->by_alone ? " alone" : "", c->best_nll, c->best_update, c->last_nll, c->updates);
        advise(v, "Take the best weights, which are kept, and add games; longer training makes it worse.");
    }
    return true;
}

/* Measured: held-out scores that still fall would gain 30 % and more of what frequencies leave open, in good runs 3 %; where
 * they do not, or none are held out, a training loss that still falls, no lower than on data that it has not seen. */
static bool too_short(const verdict_case *c, verdict *v)
{
    double known = skill(c->train_nll, c->frequency);
    double falls = c->middle > 0.0 ? 1.0 - c->end / c->middle : 0.0;
    bool last = c->points < 3 || c->best_update >= c->updates;
    bool one = c->commonest >= 0.999 && c->passes >= 5.0;
    if (!c->run || !last) return false;
    if (c->to_come > 0.06 * c->frequency && skill(c->nll, c->frequency) < 0.9 && !(one && c->decay > 0.0)) {
        say(v, VERDICT_TOO_SHORT,
            "Held-out nll%s fell by %.2g in the last quarter of the run, to %.3g, and has hardly slowed "
            "down.",
            c->by_alone ? " alone" : "", c->fell, c->last_nll);
    } else {
        if (c->train_nll < 0.8 * c->nll || one || known >= 0.6 || falls < (known < 0.3 ? 0.03 : 0.12))
            return false;
        say(v, VERDICT_TOO_SHORT, "The training loss still fell by %.0f %% in the second half of the run%s.",
            100.0 * falls,
            c->held ? ", and held-out scores are no worse than those on the training data" : "");
    }
    advise(v, "Train longer: twice as many --updates, or more.");
    return true;
}

static bool one_class(const verdict_case *c, verdict *v)
{
    if (c->majority >= 0.995) {
        say(v, VERDICT_ONE_CLASS,
            "%.1f %% of the frames have one and the same recorded action: there is nothing to learn.",
            100.0 * c->majority);
        advise(v, "Choose players who act: another --port or --character, or --least-input 0.2 among many.");
    } else if (c->commonest >= 0.999) {
        say(v, VERDICT_ONE_CLASS,
            "On %.1f %% of the frames its decision is the same, which was recorded on %.1f %%.",
            100.0 * c->commonest, 100.0 * c->majority);
        advise(v, c->decay > 0.0
                      ? "Train with --decay 0 and a lower --rate."
                      : "Train with a lower --rate, and with --balance-action 0.5 if the rest of the "
                        "data is idle.");
    } else {
        return false;
    }
    return true;
}

/* With a delay there are past actions that the frame does not show yet, whatever the options are. */
static void advise_past(const verdict_case *c, verdict *v)
{
    if (!c->delay)
        advise(v, "Better: train with --no-previous-action.");
    else if (!c->uncopied)
        advise(
            v,
            "Better: train with --drop-past 0.5 --own-past 0.5, and keep what is best alone (--best alone).");
    else
        advise(v,
               "Better: keep what is best alone (--best alone), with a higher --drop-past, and more games.");
}

/* Measured: alone right on 0.2 to 0.6 of the frames on which it is right when it is shown what was pressed. */
static bool copies(const verdict_case *c, verdict *v)
{
    if (!c->slots || !c->measured_alone || !(c->alone < 0.8 * c->forced)) return false;
    if (c->frequency > 0.0 && c->nll >= c->frequency)
        return false; /* all begin so, and know nothing else yet */
    say(v, VERDICT_COPIES,
        "Shown the recorded past actions it is right on %.1f %% of the frames, alone on %.1f %%: it repeats "
        "what it is shown.",
        100.0 * c->forced, 100.0 * c->alone);
    if (c->unclipped && c->rate > 0.003)
        advise_rate(c, v);
    else
        advise_past(c, v);
    return true;
}

/* What people press can seldom be foretold to the frame: the likeliest is then no press, but play draws from the
 * probabilities, and they are right. */
static bool never_presses(const verdict_case *c, double share, verdict *v)
{
    if (c->recorded_presses < 0.005 || c->decided_presses >= 0.05 * c->recorded_presses ||
        c->drawn_presses >= share * c->recorded_presses)
        return false;
    say(v, VERDICT_NEVER_PRESSES,
        "Buttons are down %.2f times in 100 frames; by its decisions %.2f times, by its probabilities %.2f.",
        100.0 * c->recorded_presses, 100.0 * c->decided_presses, 100.0 * c->drawn_presses);
    if (c->button_weight < 1.0)
        advise(v, "Train without --button-weight %g.", c->button_weight);
    else
        advise(v, "Train with --button-weight %g.", 3.0 * c->button_weight);
    return true;
}

/* It knows next to nothing, for no reason that is known. */
static bool knows_nothing(const verdict_case *c, verdict *v)
{
    if (!c->run || skill(c->nll, c->frequency) >= 0.05) return false;
    bool turned = c->points > 2 && c->best_update < c->updates;
    say(v, turned ? VERDICT_FEW_DATA : VERDICT_TOO_SHORT, "The nll is %.3g; frequencies alone have %.3g.",
        c->nll, c->frequency);
    advise(v,
           turned ? "Add games: it was best after update %" PRId64 ", and longer training does not help."
                  : "Train longer than %" PRId64 " updates, with another --rate or a larger --hidden.",
           turned ? c->best_update : c->updates);
    return true;
}

/* What is learnt by heart looks good where nothing is held out. One game can only be divided by time. */
static void good(const verdict_case *c, verdict *v)
{
    const char *how = c->measured_alone ? "Alone" : "Shown past actions";
    say(v, VERDICT_GOOD,
        "%s it is right on %.1f %% of the frames%s (the commonest action on %.1f %%), knows %.0f %% of what "
        "frequencies leave open, and by its probabilities presses buttons %.1f times in 100 frames, as "
        "against %.1f recorded.",
        how, 100.0 * right(c), c->held || !c->run ? "" : " that it learnt from", 100.0 * c->majority,
        100.0 * known_of(c), 100.0 * c->drawn_presses, 100.0 * c->recorded_presses);
    if (c->run && !c->held)
        advise(v, "Hold some out (--held-out 0.1%s): scores of its own data say little of others.",
               c->games == 1 ? " --split time" : "");
}

void verdict_of(const verdict_case *c, verdict *v)
{
    /* New weights press on half of the frames: who presses on next to none has learnt that, and other scores suffer by it. */
    if ((c->majority >= 0.995 && one_class(c, v)) || diverged(c, v) || hardly_begun(c, v) ||
        never_presses(c, 0.25, v) || overfits(c, v) || too_short(c, v) || one_class(c, v) || copies(c, v) ||
        never_presses(c, 0.5, v) || knows_nothing(c, v))
        return;
    good(c, v);
}

/* ---- for people ------------------------------------------------------------------------------------------- */

void verdict_print_scored(const verdict_facts *facts)
{
    verdict_case c;
    verdict v;
    if (facts->scored->frames == 0) return;
    verdict_measure(facts, &c);
    verdict_of(&c, &v);
    if (v.word != VERDICT_GOOD)
        verdict_print(&v);
    else if (c.nll >= c.frequency)
        printf("\nOn these frames it knows less than how frequent actions are: nll %.4g, by "
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
