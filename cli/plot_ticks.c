/* Labels of axes: round numbers, with units. */
#include "plot.h"

#include "runs.h"

#include <math.h>
#include <string.h>

static const struct {
    double size;
    const char *word;
} units[] = {{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}, {1.0, ""}};

/* 1, 2 or 5 times a power of ten, at least this. */
static double round_step(double least)
{
    double ten = pow(10.0, floor(log10(least)));
    return least <= ten ? ten : least <= 2.0 * ten ? 2.0 * ten : least <= 5.0 * ten ? 5.0 * ten : 10.0 * ten;
}

/* One unit for a whole axis; from 10,000 on. */
static size_t unit_of(double most)
{
    size_t i = 0, last = sizeof units / sizeof units[0] - 1;
    if (most < 1e4) return last;
    while (i < last && most < units[i].size) i++;
    return i;
}

static void tick_text(double at, double step, double most, bool share, char text[24])
{
    double factor = share ? 100.0 : 1.0 / units[unit_of(most)].size, by = step * factor;
    int digits = by < 1.0 ? (int)ceil(-log10(by) - 1e-9) : 0;
    if (fabs(at) < 1e-9 * step)
        (void)snprintf(text, 24, "0%s", share ? " %" : "");
    else if (most >= 1e15 || digits > 6)
        (void)snprintf(text, 24, "%.10g", at);
    else
        (void)snprintf(text, 24, "%.*f%s", digits, at * factor, share ? " %" : units[unit_of(most)].word);
}

void ticks_linear(ticks *t, double low, double high, double least, int most, bool shares)
{
    double step = fmax(round_step((high - low) / most), least), first = ceil(low / step - 1e-9);
    t->count = 0;
    for (int i = 0; i <= most && t->count < TICKS_MOST; i++) {
        double at = (first + i) * step;
        if (at > high + 1e-9 * step || (t->count && at <= t->at[t->count - 1])) break;
        tick_text(at, step, fmax(fabs(low), fabs(high)), shares, t->text[t->count]);
        t->at[t->count++] = at;
    }
}

void ticks_enclose(double *low, double *high, int most)
{
    double step = round_step((*high - *low) / most);
    *low = floor(*low / step + 1e-9) * step;
    *high = ceil(*high / step - 1e-9) * step;
}

/* These multiples of every n-th power of ten. */
static bool powers(ticks *t, double low, double high, const char *multiples, int every, int most)
{
    t->count = 0;
    for (int ten = (int)floor(log10(low)); ten <= (int)floor(log10(high)); ten++)
        for (const char *m = multiples; ten % every == 0 && *m; m++) {
            double at = (*m - '0') * pow(10.0, ten);
            if (at < low * (1.0 - 1e-9) || at > high * (1.0 + 1e-9)) continue;
            if (t->count == most) return false;
            if (at >= 1e-4 && at < 1e15)
                number_text(at, false, t->text[t->count]);
            else
                (void)snprintf(t->text[t->count], sizeof t->text[0], "%.0e", at);
            t->at[t->count++] = at;
        }
    return true;
}

void ticks_logarithmic(ticks *t, double low, double high, int most)
{
    static const char *const multiples[] = {"125", "13", "1"};
    if (most > TICKS_MOST) most = TICKS_MOST;
    if (high < 10.0 * low) {
        ticks_linear(t, low, high, 0.0, most, false);
        return;
    }
    for (size_t i = 0; i < sizeof multiples / sizeof multiples[0]; i++)
        if (powers(t, low, high, multiples[i], 1, most)) return;
    for (int every = 2; !powers(t, low, high, "1", every, most);)
        every = every % 5 == 2 ? every / 2 * 5 : every * 2;
}

void ticks_reach(double *low, double high, int most)
{
    double lowest = *low * (1.0 + 1e-9), from = *low;
    ticks t;
    for (int tries = 0; tries < 200; tries++) {
        double below = 0.0;
        if (tries) from *= 0.8;
        ticks_logarithmic(&t, from, high, most);
        for (int i = 0; i < t.count && t.at[i] <= lowest; i++) below = t.at[i];
        if (below <= 0.0) continue;
        ticks_logarithmic(&t, below, high, most); /* a shorter axis may have others */
        if (!t.count || t.at[0] > lowest) continue;
        *low = below;
        return;
    }
}

void number_text(double number, bool share, char text[24])
{
    size_t unit = unit_of(fabs(number));
    if (share)
        (void)snprintf(text, 24, "%.1f %%", 100.0 * number);
    else if (fabs(number) >= 1e15)
        (void)snprintf(text, 24, "%.4g", number);
    else
        (void)snprintf(text, 24, "%.4g%s", number / units[unit].size, units[unit].word);
}
