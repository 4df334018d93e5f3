/* The loss of one row of what was played (lib/learn/policy.h says which), in double from + - * / alone: the same arithmetic for
 * every device, so that all have the same bits. XPH_ON_DEVICE is the prefix that the device's compiler needs (base/scalar.h).
 *
 * What is measured of a row is a sum over its units, in order: a categorical head is one, and so is a bit of a Bernoulli head. */
#ifndef XPH_DEVICE_POLICY_ROW_H
#define XPH_DEVICE_POLICY_ROW_H

#include "base/scalar.h"
#include "device/operations.h"

/* The logarithms of 1 + e^x and 1 + e^-x: less the logarithms of the chances of 0 and of 1. */
typedef struct xph_bit {
    double up, down;
} xph_bit;

XPH_ON_DEVICE static inline xph_bit xph_bit_of(double x)
{
    const double rest = xph_power(x > 0.0 ? -x : x), more = rest < 1e-8 ? rest : xph_log_double(1.0 + rest);
    const xph_bit bit = {(x > 0.0 ? x : 0.0) + more, (-x > 0.0 ? -x : 0.0) + more};
    return bit;
}

/* Numbers of one head of one row: what the policy, the one that played and the teacher say, each by its logs and chances. Those
 * of old and teacher lie `step` apart, NULL: there is none. */
typedef struct xph_policy_head {
    const double *log, *p, *old, *old_p, *teacher, *teacher_p;
    int64_t step;
    int32_t action;
} xph_policy_head;

typedef struct xph_policy_unit {
    double entropy, kl_old, kl_to_teacher, kl_from_teacher;
} xph_policy_unit;

XPH_ON_DEVICE static inline xph_policy_unit xph_classes_unit(const xph_policy_head *h, int32_t count)
{
    xph_policy_unit unit = {0.0, 0.0, 0.0, 0.0};
    for (int32_t i = 0; i < count; i++) {
        const double log = h->log[i], p = h->p[i];
        const int64_t at = i * h->step;
        unit.entropy -= p * log;
        if (h->old) unit.kl_old += h->old_p[at] * (h->old[at] - log);
        if (!h->teacher) continue;
        unit.kl_to_teacher += p * (log - h->teacher[at]);
        unit.kl_from_teacher += h->teacher_p[at] * (h->teacher[at] - log);
    }
    return unit;
}

/* KL between two bits; p: the chance of the first. */
XPH_ON_DEVICE static inline double xph_bit_divergence(xph_bit a, double p, xph_bit b)
{
    return p * (b.down - a.down) + (1.0 - p) * (b.up - a.up);
}

XPH_ON_DEVICE static inline xph_policy_unit xph_bit_unit(const xph_policy_head *h, int32_t i)
{
    const double p = h->p[i];
    const int64_t at = i * h->step;
    const xph_bit own = xph_bit_of(h->log[i]);
    xph_policy_unit unit = {p * own.down + (1.0 - p) * own.up, 0.0, 0.0, 0.0};
    if (h->old) unit.kl_old = xph_bit_divergence(xph_bit_of(h->old[at]), h->old_p[at], own);
    if (h->teacher) {
        const xph_bit taught = xph_bit_of(h->teacher[at]);
        unit.kl_to_teacher = xph_bit_divergence(own, p, taught);
        unit.kl_from_teacher = xph_bit_divergence(taught, h->teacher_p[at], own);
    }
    return unit;
}

/* By the scaled logit of class i, and of bit i. unit: that of all classes. */
XPH_ON_DEVICE static inline double xph_class_gradient(const xph_policy_terms *terms, const xph_policy_head *h,
                                                      const xph_policy_unit *unit, double advance, int32_t i)
{
    const double log = h->log[i], p = h->p[i];
    const int64_t at = i * h->step;
    double d = advance * ((i == h->action ? 1.0 : 0.0) - p) + terms->entropy * p * (log + unit->entropy);
    if (h->old) d += terms->to_old * (p - h->old_p[at]);
    if (h->teacher) {
        d += terms->to_teacher * p * (log - h->teacher[at] - unit->kl_to_teacher);
        d += terms->from_teacher * (p - h->teacher_p[at]);
    }
    return d;
}
XPH_ON_DEVICE static inline double xph_bit_gradient(const xph_policy_terms *terms, const xph_policy_head *h,
                                                    double advance, int32_t i)
{
    const double y = h->log[i], p = h->p[i], spread = p * (1.0 - p);
    const int64_t at = i * h->step;
    double d = advance * ((double)(h->action >> i & 1) - p) + terms->entropy * spread * y;
    if (h->old) d += terms->to_old * (p - h->old_p[at]);
    if (h->teacher) {
        d += terms->to_teacher * spread * (y - h->teacher[at]);
        d += terms->from_teacher * (p - h->teacher_p[at]);
    }
    return d;
}

XPH_ON_DEVICE static inline void xph_policy_add(xph_policy_result *result, const xph_policy_unit *unit)
{
    result->entropy += unit->entropy;
    result->kl_old += unit->kl_old;
    result->kl_to_teacher += unit->kl_to_teacher;
    result->kl_from_teacher += unit->kl_from_teacher;
}

/* What the surrogate asks of log p: its gradient is advance * (gradient of log p). */
XPH_ON_DEVICE static inline double xph_policy_surrogate(const xph_policy_terms *terms, double advantage,
                                                        double ratio, xph_policy_result *result)
{
    const double low = 1.0 - terms->clip, high = 1.0 + terms->clip;
    const double bounded = ratio < low ? low : ratio > high ? high : ratio;
    const double free = ratio * advantage, held = bounded * advantage;
    result->ratio = ratio;
    result->clipped = held < free ? 1.0 : 0.0;
    result->surrogate = held < free ? held : free;
    return held < free ? 0.0 : -terms->surrogate * free;
}

/* Of all units. */
XPH_ON_DEVICE static inline double xph_policy_row_loss(const xph_policy_terms *terms,
                                                       const xph_policy_result *result)
{
    return -terms->surrogate * result->surrogate + terms->to_old * result->kl_old +
           terms->to_teacher * result->kl_to_teacher + terms->from_teacher * result->kl_from_teacher -
           terms->entropy * result->entropy;
}

/* What a row is at the imitation of its action: at the probability that it has, the surrogate of an action with advantage 1 has
 * the gradient of its log-probability. */
#define XPH_POLICY_IMITATES                                                                                  \
  {                                                                                                          \
    1.0, 1.0, 0.0, 0.0, 0.0, 0.0                                                                             \
  }

#endif
