/* What follows from the norm and the losses of one update: the same arithmetic for every device.
 * XPH_ON_DEVICE is the prefix that the device's compiler needs before such a function. */
#ifndef XPH_DEVICE_SETTLE_H
#define XPH_DEVICE_SETTLE_H

#include "device/backend.h"

#ifndef XPH_ON_DEVICE
#  define XPH_ON_DEVICE
#endif

/* After xph_settle has counted this update: the second when the one before was refused and the host did not know it. */
XPH_ON_DEVICE static inline xph_rates xph_live_rates(const xph_given *given, const xph_control *control)
{
    return given->rates[given->update > control->done ? 1 : 0];
}

/* Of a sum that was ended before it was whole something is missing. */
XPH_ON_DEVICE static inline int xph_all_came(const xph_settle_args *a)
{
    const xph_control *c = a->control;
    const double all = (double)a->ranks * c->self;
    return !a->ranks || (c->came == all && c->came_too == all);
}

XPH_ON_DEVICE static inline int64_t xph_verdict(const xph_settle_args *a, double norm)
{
    const xph_control *c = a->control;
    int loss_bad = 0;
    if (c->stopped || !xph_all_came(a)) return XPH_UPDATE_STOPPED;
    for (int32_t h = 0; h < a->heads; h++) loss_bad |= !(c->head[h] - c->head[h] == 0.0);
    if (c->first_bad >= 0) {
        if (a->growth && !loss_bad && c->loss_scale > a->loss_scale_least) return XPH_UPDATE_OVERFLOW;
        return XPH_UPDATE_BAD_GRADIENT;
    }
    if (loss_bad) return XPH_UPDATE_BAD_LOSS;
    return norm > a->largest && a->clip <= 0.0 ? XPH_UPDATE_TOO_LARGE : XPH_UPDATE_DONE;
}

XPH_ON_DEVICE static inline void xph_settle(const xph_settle_args *a)
{
    xph_control *c = a->control;
    double norm = c->norm / c->loss_scale;
    c->norm = norm;
    c->verdict = xph_verdict(a, norm);
    c->grad_scale = (a->clip > 0.0 && norm > a->clip ? a->clip / norm : 1.0) / c->loss_scale;
    if (c->verdict == XPH_UPDATE_OVERFLOW) {
        double half = c->loss_scale / 2.0;
        c->loss_scale = half > a->loss_scale_least ? half : a->loss_scale_least;
        c->good = 0;
    }
    if (c->verdict != XPH_UPDATE_DONE) return;
    c->done++;
    c->good++;
    c->self = (double)(c->done + 1);
    if (a->growth && c->good >= a->growth && c->loss_scale * 2.0 <= a->loss_scale_most) {
        c->loss_scale *= 2.0;
        c->good = 0;
    }
}

#endif
