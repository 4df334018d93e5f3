/* See returns.h. */
#include "learn/returns.h"

#include "base/scalar.h"

#include <exphil/learn.h>

double xph_discount(double half_life_frames)
{
    return xph_exp_double(-0.6931471805599453 / half_life_frames);
}

/* Does an episode end before the action of row t acts? */
static bool ends_before(const xph_lane *lane, int64_t t)
{
    for (int64_t f = t; f < t + lane->delay; f++)
        if (lane->end[f] != EXPHIL_GOES_ON) return true;
    return false;
}

void xph_returns(const xph_lane *lane, double gamma, double lambda, double *advantage, double *target,
                 uint8_t *acts)
{
    double later = 0.0;
    for (int64_t t = lane->time - 1; t >= 0; t--) {
        const int64_t f = t + lane->delay;
        const double value = (double)lane->value[t];
        const bool goes_on = lane->end[f] == EXPHIL_GOES_ON;
        double next = (double)lane->value[t + 1];
        acts[t] = !ends_before(lane, t);
        if (lane->end[f] == EXPHIL_OVER) next = 0.0;
        if (lane->end[f] == EXPHIL_CUT_OFF && lane->delay == 0) next = (double)lane->cut_off[f];
        later = (double)lane->reward[f] + gamma * next - value + (goes_on ? gamma * lambda * later : 0.0);
        if (!acts[t]) later = 0.0;
        advantage[t] = later;
        target[t] = value + later;
    }
}

double xph_unexplained(double miss, double square, double scale)
{
    return square > 1e-14 * scale ? miss / square : 1.0;
}

void xph_whole_returns(const float *reward, int64_t frames, double gamma, double cut_off, double *to)
{
    double later = cut_off;
    for (int64_t t = frames - 1; t >= 0; t--) {
        later = (double)reward[t] + gamma * later;
        to[t] = later;
    }
}
